"""Names out of a capture stay names: in every exporter, on a terminal, in SQL and in file names.

Captures of the same structure, once with plain names and once with hostile ones, must have the same
structure in every form.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from fx_inspect import Inspector
from fx_log import LogWriter
from fx_trace.write.archive import Archive
from fxframework.errors import FxError
from fxframework.host import default_host
from fxframework.io.sink import Sink
from fxframework.registry import parse_options
from fxframework.testing.cli import run_cli

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


MAKE: dict[str, Callable[[tuple[str, ...]], bytes]] = {
    "trace": trace,
    "log": log,
    "inspect": inspect,
}


def exported(data: bytes, format: str, name: str, **options: str) -> bytes:
    host = default_host()
    with host.open(data, format=format) as capture:
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


STRUCTURE: dict[str, Callable[[bytes], Any]] = {
    "json": document, "records": lines, "csv": cells, "speedscope": document, "html": tags,
    "dot": statements, "folded": stacks, "otlp": document, "journald": entries,
    "tree-json": document,
}  # fmt: skip
"""How the structure of what an exporter writes is seen. Other forms count the length of what they
hold, or are text for people, which a terminal gets with escapes."""
CASES = [
    (format, exporter.name)
    for format in MAKE
    for exporter in default_host().exporters
    if exporter.name in STRUCTURE
    and (exporter.accepts == format or not isinstance(exporter.accepts, str))
]


@pytest.mark.parametrize(("format", "name"), sorted(set(CASES)))
def test_structure_is_that_of_plain_names(format: str, name: str) -> None:
    make, structure = MAKE[format], STRUCTURE[name]
    try:
        plain = exported(make(PLAIN), format, name)
    except FxError:
        pytest.skip(f"{name} does not take {format}")
    assert structure(exported(make(NAMES), format, name)) == structure(plain)


@pytest.mark.parametrize("format", MAKE)
def test_a_spreadsheet_finds_no_formula(format: str) -> None:
    data = exported(MAKE[format](NAMES), format, "csv", spreadsheet="yes")
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
    "inspect": [["info"], ["cat"], ["cat", "--table", "properties"], ["selectors"]],
}  # fmt: skip


@pytest.mark.parametrize(
    ("format", "words"), [(format, words) for format, some in TERMINAL.items() for words in some]
)
def test_a_terminal_gets_no_control(format: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2J\u202e.bin"
    path.write_bytes(MAKE[format](NAMES))
    done = run_cli(*words, "-f", format, "--color", "never", path, terminal=True)
    assert done.exit_code in {0, 3}, done.stderr
    assert not CONTROL.search(done.text.replace("\n", " "))
    assert not CONTROL.search(done.stderr)


def test_a_query_cannot_be_continued_by_a_name(tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    path = tmp_path / "x'); DROP TABLE slices; --.fxt"
    path.write_bytes(trace(NAMES))
    done = run_cli("sql", path, "select distinct name from slices where depth = 0", "--json")
    assert done.exit_code == 0, done.stderr
    assert all(json.dumps(name)[1:-1] in done.text for name in NAMES if name.isascii())


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl", "pftrace"])
def test_files_have_the_names_that_were_given(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "in.fxt"
    path.write_bytes(trace(NAMES))
    out = tmp_path / f"-o\n\x1b[2J\u202e'$(id).{suffix}"
    done = run_cli("convert", path, out, "--color", "never", terminal=True)
    assert done.exit_code in {0, 3}, done.stderr
    assert not CONTROL.search(done.stderr)
    assert sorted(tmp_path.iterdir()) == sorted([path, out])
