"""Names out of a capture stay names: in every exporter, on a terminal, in SQL and in file names.

Captures of the same structure, once with plain names and once with hostile ones, must have the same
structure in every form.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fx_inspect import Inspector
from fx_log import LogWriter
from fx_trace.write.archive import Archive
from fx_xray import format as records
from fx_xray.write.encoder import packed
from fxframework.errors import FxError
from fxframework.host import default_host
from fxframework.io.sink import Sink
from fxframework.registry import parse_options
from fxframework.testing.cli import run_cli

from ..cases import cases

NAMES = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<!--",
    "=cmd|' /C calc'!A1",
    "@SUM(1+1)",
    "+1",
    "-1",
    "\tx",
    "\x1b[2J\x1b]0;title\x07",
    "\u202egnp.exe\u2066\u2028\u061c",
    "\x9b1m",
    'a"b;\n}-> c[label="|{',
    "'); DROP TABLE slices; --",
    "../../etc/passwd\0",
    "a;b c 17\r\nd",
    "%s%n${jndi:x}\\N\\l",
    "{}[],:null",
)
PLAIN = tuple(
    chr(ord("a") + number) + "p" * (len(name.encode()) - 1) for number, name in enumerate(NAMES)
)
"""As many names, each of as many bytes."""
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def trace(names: tuple[str, ...]) -> bytes:
    sink = Sink.memory()
    with Archive(sink) as archive:
        out = archive.provider(1, names[0], ticks_per_second=10**9)
        for number, name in enumerate(names):
            out.process(number + 1, name)
            thread = out.thread(number + 1, number + 100, name)
            at = 1000 * number
            inner = {"thread": thread}
            out.duration_complete(name, name, at, at + 500, {name: name}, **inner)
            out.duration_complete(name, f"{name} in", at + 1, at + 50, {"n": 1}, **inner)
            out.instant(name, name, {name: 7}, timestamp=at + 2, **inner)
            out.counter(name, name, {name: 7}, timestamp=at + 3, **inner)
            out.log(name, thread=thread, timestamp=at + 4)
    return sink.getvalue()


def log(names: tuple[str, ...]) -> bytes:
    sink = Sink.memory()
    out = LogWriter(sink, clock=lambda: 5, pid=1, tid=2)
    for name in names:
        out.write("INFO", name, {name: name}, tags=[name])
    out.close()
    return sink.getvalue()


def inspect(names: tuple[str, ...]) -> bytes:
    tree = Inspector()
    for name in names:
        tree.root.create_child(name).create_string(name, name)
    return bytes(tree.copy())


def xray(names: tuple[str, ...]) -> bytes:
    """Calls of functions 1, 2, …, which `mapped` names, and events with names for payloads."""
    body: list[records.XrayRecord] = []
    for number, name in enumerate(names, 1):
        body += [
            records.Function(kind="enter", function_id=number, delta=9),
            records.CustomEvent(data=name.encode(), delta=1),
            records.TypedEvent(data=name.encode(), delta=1, event_type=5),
            records.Function(kind="exit", function_id=number, delta=9),
        ]
    dialect = records.Dialect(version=5, byte_order="little")
    head = [records.NewBuffer(thread=7), records.WallTime(seconds=1, micros=2)]
    data = b"".join(
        packed(each, dialect)
        for each in [*head, records.Pid(process=9), records.NewCpu(cpu=1, tsc=5), *body]
    )
    header = records.FileHeader(version=5, type=1, cycle_frequency=10**9, buffer_size=1 << 16)
    return header.pack() + packed(records.BufferExtents(bytes=len(data)), dialect) + data


def mapped(names: tuple[str, ...]) -> bytes:
    """A map in YAML that names functions 1, 2, …"""
    return b"".join(
        b"- { id: %d, address: 0x%x, function: 0x%x, kind: function-enter, always-instrument: true,"
        b" function-name: %s, version: 2 }\n"
        % (number, 16 * number, 16 * number, json.dumps(name).encode())
        for number, name in enumerate(names, 1)
    )


def llvm_yaml(names: tuple[str, ...]) -> bytes:
    head = (
        "---\nheader:\n  version: 5\n  type: 1\n  constant-tsc: true\n  nonstop-tsc: true\n"
        "  cycle-frequency: 1000000000\nrecords:\n"
    )
    lines = [
        f"  - {{ type: 0, func-id: {number}, function: {json.dumps(name)}, cpu: 1, thread: 2, "
        f"kind: function-{kind}, tsc: {10 * number + at} }}\n"
        for number, name in enumerate(names, 1)
        for at, kind in enumerate(("enter", "exit"))
    ]
    return (head + "".join(lines)).encode()


MAKE: dict[str, Callable[[tuple[str, ...]], bytes]] = {
    "xray": xray,
    "llvm-yaml": llvm_yaml,
    "trace": trace,
    "log": log,
    "inspect": inspect,
}


def made(format: str, names: tuple[str, ...], folder: Path) -> tuple[Path, dict[str, str]]:
    """A capture with these names, and the options that it is read with."""
    path, beside = folder / "a\x1b[2J\u202e.bin", folder / "b\x1b[2J\u202e.yaml"
    path.write_bytes(MAKE[format](names))
    if format != "xray":
        return path, {}
    beside.write_bytes(mapped(names))
    return path, {"instr_map": str(beside)}


def exported(names: tuple[str, ...], format: str, name: str, folder: Path, **options: str) -> bytes:
    host = default_host()
    path, reading = made(format, names, folder)
    with host.open(path, format=format, options=reading) as capture:
        exporter = host.exporter(name, format=capture.format, tables=capture.tables)
        sink = Sink.memory()
        session = exporter.open(sink, parse_options(options, exporter.options, whose=name))
        session.write(capture)
        session.close()
        return sink.getvalue()


def shape_of(value: Any) -> Any:
    """The structure of a JSON value: its types, without names and texts."""
    if isinstance(value, dict):
        return sorted(str(shape_of(each)) for each in value.values())
    if isinstance(value, list):
        return [shape_of(each) for each in value]
    return type(value).__name__


class Tags(HTMLParser):
    """The elements of a page, with the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


def tags(data: bytes) -> Any:
    page = Tags()
    page.feed(data.decode())
    return page.found


def statements(data: bytes) -> Any:
    """DOT without what is in quotes."""
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', data.decode(), flags=re.DOTALL).split("\n")


def stacks(data: bytes) -> Any:
    """Folded stacks: frames and number of each line."""
    lines = [line.rpartition(" ") for line in data.decode().splitlines(keepends=False)]
    return sorted((stack.count(";"), int(number)) for stack, _, number in lines)


def cells(data: bytes) -> Any:
    rows = list(csv.reader(io.StringIO(data.decode(), newline="")))
    return [len(row) for row in rows]


def document(data: bytes) -> Any:
    try:
        return shape_of(json.loads(data))
    except json.JSONDecodeError:
        return lines(data)


def lines(data: bytes) -> Any:
    return [shape_of(json.loads(line)) for line in data.split(b"\n") if line]


def entries(data: bytes) -> Any:
    """journald's export format: the fields of each entry."""
    found: list[list[bytes]] = [[]]
    while data:
        line, _, data = data.partition(b"\n")
        if not line:
            found.append([])
        elif b"=" in line:
            found[-1].append(line.partition(b"=")[0])
        else:
            found[-1].append(line)
            data = data[9 + int.from_bytes(data[:8], "little") :]
    return [len(fields) for fields in found]


SCALAR = re.compile(r"""(function|data): ('(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|\w+)(?=[, ])""")


def yaml_lines(data: bytes) -> Any:
    """The lines of llvm-xray's YAML without names and payloads."""
    return [SCALAR.sub(r"\1", line) for line in data.decode().split("\n")]


STRUCTURE: dict[str, Callable[[bytes], Any]] = {
    "json": document, "records": lines, "csv": cells, "speedscope": document, "html": tags,
    "dot": statements, "folded": stacks, "otlp": document, "journald": entries,
    "tree-json": document, "llvm-yaml": yaml_lines, "flamegraph": tags, "otlp-traces": document,
    "firefox": document,
}  # fmt: skip
"""How the structure of what an exporter writes is seen. Other forms count the length of what they
hold, or are text for people, which a terminal gets with escapes."""
OF_SLICES = {"speedscope", "folded", "flamegraph", "dot", "otlp-traces", "firefox"}
OF_LOGS = {"otlp", "journald"}
REFUSED = {"log": OF_SLICES, "inspect": OF_SLICES | OF_LOGS, "xray": OF_LOGS, "llvm-yaml": OF_LOGS}
"""Exporters that write nothing of a format, because it has none of the tables that they show."""
CASES = {
    (format, exporter.name)
    for format in MAKE
    for exporter in default_host().exporters
    if exporter.name in STRUCTURE
    and (exporter.accepts == format or not isinstance(exporter.accepts, str))
}
TAKEN = sorted((format, name) for format, name in CASES if name not in REFUSED.get(format, ()))


@cases(("format", "name"), TAKEN)
def test_structure_is_that_of_plain_names(format: str, name: str, tmp_path: Path) -> None:
    structure = STRUCTURE[name]
    plain = structure(exported(PLAIN, format, name, tmp_path))
    assert structure(exported(NAMES, format, name, tmp_path)) == plain


@cases(("format", "name"), sorted(CASES - set(TAKEN)))
def test_what_has_nothing_to_show_is_refused(format: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(FxError):
        exported(PLAIN, format, name, tmp_path)


@cases("format", MAKE)
def test_a_spreadsheet_finds_no_formula(format: str, tmp_path: Path) -> None:
    data = exported(NAMES, format, "csv", tmp_path, spreadsheet="yes")
    for row in csv.reader(io.StringIO(data.decode(), newline="")):
        for cell in row:
            assert cell[:1] not in set("=+@\t\r")
            assert cell[:1] != "-" or int(cell) < 0


TERMINAL = {
    "trace": [
        ["info"], ["verify"], ["cat"], ["cat", "--records"], ["cat", "--table", "slices"],
        ["cat", "--table", "args"], ["cat", "--table", "threads"], ["account"], ["stack"],
        ["graph"], ["info", "--json"],
    ],
    "log": [["info"], ["cat"], ["cat", "--records"], ["cat", "--table", "logs"]],
    "xray": [
        ["info"], ["verify"], ["cat"], ["cat", "--table", "xray_functions"],
        ["cat", "--table", "args"], ["account"], ["account", "--csv"], ["stack"], ["graph"],
    ],
    "llvm-yaml": [["cat"], ["cat", "--records"], ["account"]],
    "inspect": [["info"], ["cat"], ["cat", "--table", "properties"], ["selectors"]],
}  # fmt: skip


@cases(
    ("format", "words"), [(format, words) for format, some in TERMINAL.items() for words in some]
)
def test_a_terminal_gets_no_control(format: str, words: list[str], tmp_path: Path) -> None:
    path, options = made(format, NAMES, tmp_path)
    for name, value in options.items():
        words = [*words, "-o", f"{name}={value}"]
    done = run_cli(*words, "-f", format, "--color", "never", path, terminal=True)
    assert done.exit_code in {0, 3}, done.stderr
    assert not CONTROL.search(done.text.replace("\n", " "))
    assert not CONTROL.search(done.stderr)


FILE_NAME = "e\x1b]0;PWN\x07\x1b[31m\u202e"
"""A name of a file that takes over a terminal."""
OF_FILES = (
    "info", "info -v", "cat", "cat --records", "verify", "verify -v", "account", "stack",
    "convert --list", "info --json", "verify --json", "cat --json",
)  # fmt: skip


@cases("words", OF_FILES)
def test_a_name_of_a_file_does_not_control_a_terminal(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    file = tmp_path / f"{FILE_NAME}.fxt"
    file.write_bytes(trace(PLAIN)[:-4])
    done = run_cli(*words.split(), file, terminal=True)
    shown = done.text + done.stderr
    assert not CONTROL.search(re.sub("\r?\x1b\\[K", "", shown)), shown


@cases("way", ["scenario", "output", "golden", "folder"])
def test_names_in_a_scenario_do_not_control_a_terminal(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    hostile = json.dumps(FILE_NAME)
    output = hostile if way == "output" else '"a.fxt"'
    text = (
        f"[scenario]\nname = {hostile if way == 'scenario' else chr(34) + 'x' + chr(34)}\n"
        f'[[step]]\ndo = "target.archive"\nas = {output}\n'
        f'[[step]]\ndo = "golden.compare"\noutput = {output}\n'
        f"golden = {hostile if way == 'golden' else output}\n"
    )
    (tmp_path / "s.toml").write_text(text)
    out = tmp_path / (FILE_NAME if way == "folder" else "out")
    for words in (("--update-golden",), ("--force", "-v")):
        done = run_cli("replay", tmp_path / "s.toml", "--out", out, *words, terminal=True)
        assert done.exit_code == 0, done.stderr
        shown = done.text + done.stderr
        assert not CONTROL.search(re.sub("\r?\x1b\\[K", "", shown)), shown


def test_a_query_cannot_be_continued_by_a_name(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    path = tmp_path / "x'); DROP TABLE slices; --.fxt"
    path.write_bytes(trace(NAMES))
    done = run_cli("sql", path, "select distinct name from slices where depth = 0", "--json")
    assert done.exit_code == 0, done.stderr
    assert all(json.dumps(name)[1:-1] in done.text for name in NAMES if name.isascii())


@cases("suffix", ["csv", "json", "jsonl", "pftrace"])
def test_files_have_the_names_that_were_given(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "in.fxt"
    path.write_bytes(trace(NAMES))
    out = tmp_path / f"-o\n\x1b[2J\u202e'$(id).{suffix}"
    done = run_cli("convert", path, out, "--color", "never", terminal=True)
    assert done.exit_code in {0, 3}, done.stderr
    assert not CONTROL.search(done.stderr)
    assert sorted(tmp_path.iterdir()) == sorted([path, out])


# --- Names of files ------------------------------------------------------------------------------

ODD = {"bytes": b"a\xff", "control": b'n"e\n\x1b[2J\x7f', "emoji": "\U0001f600é".encode()}
"""Names of files as POSIX allows them."""
FILES: dict[str, bytes] = {
    "trace": trace(PLAIN), "log": log(PLAIN), "inspect": inspect(PLAIN), "xray": xray(PLAIN),
}  # fmt: skip
TARGETS = sorted(
    (format, exporter.name)
    for format, data in FILES.items()
    for exporter in default_host().exporters_for(
        format, default_host().open(data, format=format).tables
    )
)
COMMANDS = {
    "info": ("IN",),
    "json": ("info", "--json", "IN"),
    "verify": ("verify", "IN"),
    "diff": ("diff", "IN", "IN"),
    "explain": ("explain", "IN@0"),
    "salvage": ("salvage", "IN", "OUT"),
    "align": ("convert", "IN", "OUT", "-t", "perfetto", "--align", "IN:0=0"),
    "merge": ("convert", "IN", "IN", "OUT", "-t", "trace"),
    "to a trace": ("convert", "IN", "OUT", "-t", "trace"),
    "both": ("convert", "IN", "IN", "OUT", "-t", "parquet"),
    "list": ("convert", "IN", "--list"),
    "stack": ("stack", "IN"),
    "graph": ("graph", "IN", "--out", "OUT"),
    "sql": ("sql", "IN", "select 1 from diagnostics"),
    "sql in no encoding": ("sql", "IN", "select 'IN'"),
    "batch": ("batch", "IN", "--out", "ds", "--jobs", "1", "--host", "IN"),
    "batch into it": ("batch", "IN", "--out", "OUT", "--jobs", "1"),
    "not there": ("info", "IN.gone"),
    "a list": ("batch", "@IN.gone", "--out", "ds"),
    "no format": ("-f", "IN", "IN"),
    "no option": ("info", "IN", "-o", "IN=1"),
    "no thread": ("convert", "IN", "OUT", "-t", "trace", "--thread", "IN"),
}


def named(folder: Path, kind: str, suffix: str = "") -> str:
    return os.fsdecode(os.fsencode(folder) + b"/" + ODD[kind] + suffix.encode())


@pytest.mark.skipif(os.name == "nt", reason="names of files are bytes on POSIX only")
@cases(("format", "target"), TARGETS)
def test_any_name_of_a_file_is_exported(format: str, target: str, tmp_path: Path) -> None:
    """Takes seconds: each target has a way of its own with the name of its input.

    A target gets every name with a file of the first of its formats, and of others the oddest.
    """
    plain = tmp_path / "plain.in"
    plain.write_bytes(FILES[format])
    status = run_cli("convert", plain, tmp_path / "o", "-t", target).exit_code
    is_first = format == next(other for other, name in TARGETS if name == target)
    for kind in ODD if is_first else ("control",):
        path, out = named(tmp_path, kind, ".in"), named(tmp_path, kind, ".out")
        Path(path).write_bytes(FILES[format])
        done = run_cli("convert", path, out, "-t", target, "-f", format)
        assert "FXF0000" not in done.stderr
        assert done.exit_code == status, (kind, done.stderr)
        if status == 0 and target in {
            "json",
            "html",
            "otlp",
            "speedscope",
            "flamegraph",
            "firefox",
        }:
            assert Path(out).read_bytes().decode()


@pytest.mark.skipif(os.name == "nt", reason="names of files are bytes on POSIX only")
@cases("kind", ODD)
@cases("command", COMMANDS)
def test_any_name_of_a_file_is_taken_or_refused(
    command: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Takes seconds: each command, over files of half of the formats.

    With the next kind of name, or of commands, it is the other half: each pair is tried.
    """
    monkeypatch.chdir(tmp_path)
    half = ([*COMMANDS].index(command) + [*ODD].index(kind)) % 2
    for format, data in [*FILES.items()][half::2]:
        path = named(Path(), kind, ".in")
        Path(path).write_bytes(data)
        given = {"IN": path, "OUT": named(Path(), kind, f".{format}.out")}
        words = [
            re.sub("IN|OUT", lambda found: given[found[0]], word)  # noqa: B023
            for word in COMMANDS[command]
        ]
        done = run_cli(*words)
        assert "FXF0000" not in done.stderr, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="names of files are bytes on POSIX only")
@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("format", ["trace", "log", "xray"])
def test_what_is_recorded_from_any_name_is_replayed(
    format: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = named(Path(), kind, ".in")
    Path(path).write_bytes(FILES[format])
    assert run_cli("record", path, "-f", format).exit_code == 0
    (scenario,) = tmp_path.glob("*.toml")
    replayed = run_cli("replay", scenario)
    assert replayed.exit_code == 0, replayed.stderr
    refused = run_cli("record", path, "-f", format, "--out", named(Path(), kind, ".x.toml"))
    assert refused.exit_code == (2 if kind == "bytes" else 0)
    assert ("not UTF-8" in refused.stderr) == (kind == "bytes")
