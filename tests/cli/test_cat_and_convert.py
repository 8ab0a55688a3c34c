"""`cat` and `convert`: what comes out, where it goes, and what is never touched."""

from __future__ import annotations

import gzip
import json
import types
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
import toy

import fxframework as fxf
from fxframework import hookimpl
from fxframework.cli import cat
from fxframework.errors import ExitCode
from fxframework.host import Host
from fxframework.io.sink import Sink
from fxframework.kit import RecordRewriter
from fxframework.registry import Confidence, Exporter, Reader, Writer
from fxframework.testing.cli import run_cli

from ..cases import cases

BOOT = Path(__file__).parents[2] / "examples" / "scenarios" / "boot.golden" / "boot.fxt"
DAMAGED = toy.toy(toy.mark("m", 1), toy.record(9), toy.record(7), b"odd")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    path = tmp_path / "damaged.toy"
    path.write_bytes(DAMAGED)
    return path


def register(host: Host, name: str, **hooks: Any) -> None:
    module = types.ModuleType(name)
    for hook, function in hooks.items():
        setattr(module, hook, hookimpl(function))
    host.register(module, name=name, distribution=f"{name}-dist")
    assert not host.failures


# --- cat ---------------------------------------------------------------------------------------


def test_cat_gives_the_formats_text(host: Host, sample: Path) -> None:
    assert run_cli("cat", sample, host=host).text == "magic \nmark one\nspan two\nmark three\n"
    loud = run_cli("cat", sample, "-o", "loud=yes", host=host)
    assert loud.text.startswith("MAGIC")


def test_cat_records_is_one_object_per_line_and_nothing_else(host: Host, damaged: Path) -> None:
    result = run_cli("cat", "--records", damaged, host=host)
    lines = result.json_lines()
    assert [line["record"] for line in lines] == ["magic", "mark", "damaged", "unknown", "damaged"]
    assert sum(line["nbytes"] for line in lines) == len(DAMAGED)
    assert result.stdout == run_cli("cat", "--json", damaged, host=host).stdout


def test_cat_table_by_tabs_aligned_or_as_json(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.toy"
    path.write_bytes(toy.toy(toy.mark("a\tb\\", 1), toy.mark("", 2)))
    lines = run_cli("cat", path, "--table", "instants", host=host).text.splitlines()
    rows = [dict(zip(lines[0].split("\t"), line.split("\t"), strict=True)) for line in lines[1:]]
    assert [row["name"] for row in rows] == ["a\\tb\\\\", ""]
    assert [(row["category"], row["scope"]) for row in rows] == [("null", "thread")] * 2
    objects = run_cli("cat", path, "--table", "instants", "--json", host=host).json_lines()
    assert [row["name"] for row in objects] == ["a\tb\\", ""]
    assert objects[0]["category"] is None
    terminal = run_cli("cat", path, "--table", "instants", "--color", "never", host=host,
                       terminal=True).text.splitlines()  # fmt: skip
    assert terminal[0].startswith("ts")
    assert terminal[1].index("a\\tb") == terminal[0].index("name")
    assert " 10/main " in f"{terminal[1]} "
    whole = run_cli("cat", path, "--table", "instants", "--color", "never", "-v", host=host,
                    terminal=True).text.splitlines()  # fmt: skip
    assert whole[0].startswith("row  offset  ts")


def test_cat_table_of_many_rows_keeps_its_columns(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a.toy"
    path.write_bytes(toy.toy(*(toy.mark("m", at) for at in range(9_000))))
    lines = run_cli("cat", path, "--table", "instants", host=host).text.splitlines()
    assert len(lines) == 9_001
    assert lines[-1].startswith("8999\t")
    assert len(run_cli("cat", path, "--table", "instants", host=host, terminal=True)
               .text.splitlines()) == 9_001  # fmt: skip


@cases(
    ("value", "text"),
    [(None, "null"), (True, "true"), (False, "false"), ((8, 3), "8+3"), (1.5, "1.5"), ("", "")],
)
def test_values_as_text(value: Any, text: str) -> None:
    assert cat._text(value) == text


def test_an_empty_table_is_its_header(host: Host, sample: Path) -> None:
    result = run_cli("cat", sample, "--table", "blobs", host=host)
    assert result.exit_code == ExitCode.OK
    assert len(result.text.splitlines()) == 1


def test_findings_are_a_table(host: Host, damaged: Path) -> None:
    lines = run_cli("cat", damaged, "--table", "diagnostics", host=host).text.splitlines()
    assert lines[1].split("\t")[:4] == ["TOY0001", "data_loss", "32", "2"]


def test_a_double_that_json_cannot_hold_is_a_string(
    host: Host, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = toy.ToyCapture._table

    def table(self: toy.ToyCapture, name: str) -> Any:
        found = made(self, name)
        if name == "args":
            return found.replaced(float=np.array([float("nan"), float("-inf")]))
        return found

    monkeypatch.setattr(toy.ToyCapture, "_table", table)
    rows = run_cli("cat", sample, "--table", "args", "--json", host=host).json_lines()
    assert [row["float"] for row in rows] == ["NaN", "-Infinity"]
    assert [row["uint"] for row in rows] == [7, 2**64 - 1]


def test_standard_input(host: Host) -> None:
    result = run_cli("cat", "-", stdin=toy.SAMPLE, host=host)
    assert "mark one" in result.text
    packed = run_cli("cat", "-", stdin=gzip.compress(toy.SAMPLE), host=host)
    assert packed.stdout == result.stdout


def test_a_format_without_text_of_its_own_shows_its_rows(host: Host, sample: Path) -> None:
    bare = Reader(format="bare", title="", suffixes=(), open=toy.open_toy,
                  options=toy.READER.options, sniff=lambda probe: Confidence.NONE)  # fmt: skip

    def open_bare(source: Any, request: Any) -> Any:
        capture = toy.open_toy(source, request)
        capture.format = "bare"  # type: ignore[misc]
        return capture

    import attrs

    register(host, "bare", fx_readers=lambda: [attrs.evolve(bare, open=open_bare)])
    result = run_cli("cat", "-f", "bare", sample, host=host)
    assert result.exit_code == ExitCode.OK
    timed = [line for line in result.text.splitlines() if line.startswith("[")]
    assert [line.split()[1] for line in timed] == ["instants", "slices", "instants"]
    assert "name=one" in timed[0]
    chrome = run_cli("convert", "-f", "bare", sample, "-", "-t", "json", host=host)
    assert next(e["name"] for e in json.loads(chrome.stdout)["traceEvents"]) == "two"


# --- times -------------------------------------------------------------------------------------


@cases(
    ("since", "until", "names"),
    [
        ("0", None, ["one", "two", "three"]),
        ("500ns", None, ["two", "three"]),
        ("1us", None, ["two", "three"]),
        ("1.001us", "4us", []),
        ("0.001ms", "0.0000040s", ["two"]),
        (None, "@2001", ["one", "two"]),
        ("@2000", "@5000", ["two"]),
        ("1µs", "2us", ["two"]),
    ],
)
def test_since_and_until(
    host: Host, sample: Path, since: str | None, until: str | None, names: list[str]
) -> None:
    times = [text for pair in (("--since", since), ("--until", until)) if pair[1] for text in pair]
    found = run_cli("cat", *times, sample, host=host)
    assert [line.split()[1] for line in found.text.splitlines()[1:]] == names
    records = run_cli(*times, "cat", "--records", sample, host=host).json_lines()
    assert [record["name"] for record in records[1:]] == names


@cases("text", ["2h", "s", "", "1.5", "1.0001us", "-1s", "1/2s", "@", "@1.5",
                                  "@2s", "nan", "1e-3ns", "0x10"])  # fmt: skip
def test_what_is_no_time(host: Host, sample: Path, text: str) -> None:
    result = run_cli("cat", sample, "--since", text, host=host)
    assert result.exit_code == ExitCode.USAGE
    assert "invalid time" in result.stderr


def test_nothing_to_count_from(host: Host) -> None:
    result = run_cli("cat", "-", "--table", "instants", "--since", "1s", stdin=toy.toy(), host=host)
    assert result.exit_code == ExitCode.USAGE
    assert "nothing in it has a time" in result.stderr
    assert run_cli("cat", "-", "--table", "instants", "--since", "@1", stdin=toy.toy(),
                   host=host).exit_code == ExitCode.OK  # fmt: skip


# --- convert: what OUT names -------------------------------------------------------------------


def test_the_suffix_of_out_names_the_form(host: Host, damaged: Path, tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl"
    again = tmp_path / "again.TOY"
    table = tmp_path / "a.csv"
    assert run_cli("convert", damaged, lines, host=host).exit_code == ExitCode.FINDINGS
    assert json.loads(lines.read_bytes().splitlines()[0])["format"] == "toy"
    assert run_cli("convert", lines, again, host=host).exit_code == ExitCode.FINDINGS
    assert again.read_bytes() == DAMAGED
    assert run_cli("convert", damaged, table, host=host).exit_code == ExitCode.FINDINGS
    assert table.read_bytes().startswith(b"row,offset")


def test_a_format_is_written_again(host: Host, damaged: Path, tmp_path: Path) -> None:
    out = tmp_path / "b.toy"
    run_cli("convert", damaged, out, host=host)
    assert out.read_bytes() == DAMAGED
    run_cli("convert", damaged, out, "-o", "magic=no", "--force", host=host)
    assert out.read_bytes() == DAMAGED[8:]
    headless = tmp_path / "c.toy"
    run_cli("convert", f"toy:{out}", headless, host=host)
    assert headless.read_bytes() == DAMAGED[8:]


def test_a_records_file_is_written_once(
    host: Host, damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, out = tmp_path / "a.jsonl", tmp_path / "b.toy"
    run_cli("convert", damaged, lines, host=host)
    written: list[Any] = []
    write = toy.ToyWriter.write
    monkeypatch.setattr(
        toy.ToyWriter, "write", lambda self, one: (written.append(one), write(self, one))
    )
    assert run_cli("convert", lines, out, host=host).exit_code == ExitCode.FINDINGS
    assert (len(written), out.read_bytes()) == (5, DAMAGED)
    run_cli("convert", lines, out, "-o", "magic=no", "--force", host=host)
    assert out.read_bytes() == DAMAGED[8:]


def test_gz_is_compressed_and_the_suffix_before_it_counts(
    host: Host, damaged: Path, tmp_path: Path
) -> None:
    out = tmp_path / "b.toy.gz"
    run_cli("convert", damaged, out, host=host)
    assert gzip.decompress(out.read_bytes()) == DAMAGED
    first = out.read_bytes()
    run_cli("convert", damaged, out, "--force", host=host)
    assert out.read_bytes() == first


def test_t_names_an_exporter_or_a_format(host: Host, sample: Path) -> None:
    assert run_cli("convert", sample, "-", "-t", "toy", host=host).stdout == toy.SAMPLE
    assert run_cli("convert", sample, "-", "-t", "text", host=host).text.startswith("magic")
    lines = run_cli("convert", sample, "-", "-t", "records", host=host).stdout
    assert run_cli("convert", "-", "-", "-t", "toy", stdin=lines, host=host).stdout == toy.SAMPLE


def test_formats_of_one_suffix_go_by_the_input(host: Host, sample: Path, tmp_path: Path) -> None:
    register(host, "twin", fx_writers=lambda: [
        Writer(format="twin", title="", suffixes=(".toy",), open=toy.ToyWriter)])  # fmt: skip
    out = tmp_path / "out.toy"
    assert run_cli("convert", sample, out, host=host).exit_code == ExitCode.OK
    for name in ("x-one", "x-two"):
        writer = Writer(format=name, title="", suffixes=(".x",), open=toy.ToyWriter)
        register(host, name, fx_writers=lambda writer=writer: [writer])
    result = run_cli("convert", sample, tmp_path / "out.x", host=host)
    assert result.exit_code == ExitCode.USAGE
    assert "x-one, x-two" in result.stderr


def test_exporters_of_one_suffix(host: Host, sample: Path, tmp_path: Path) -> None:
    def exporter(name: str) -> Exporter:
        return Exporter(name=name, title="", accepts="toy", suffixes=(".tree",), open=toy.ToyText)

    out = tmp_path / "out.tree"
    register(host, "trees", fx_exporters=lambda: [exporter("shape"), exporter("other")])
    result = run_cli("convert", sample, out, host=host)
    assert result.exit_code == ExitCode.USAGE
    assert "other, shape" in result.stderr
    register(host, "plain", fx_exporters=lambda: [exporter("tree")])
    assert run_cli("convert", sample, out, host=host).exit_code == ExitCode.OK


class NoSession:
    """What exporters do wrong: it takes a sink alone, and is no session."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink


class Closing(toy.ToyText):
    """A session whose counts are none."""

    counts: Any = ("a",)

    def close(self) -> Any:
        return self.counts


class WritingText(toy.ToyText):
    """A session that writes text, not bytes."""

    def write(self, capture: Any) -> None:
        self._sink.write("text")


@pytest.mark.parametrize(
    ("opened", "message"),
    [
        (
            NoSession,
            "a function is called with 2 arguments, but NoSession.__init__() takes 2 positional",
        ),
        (lambda sink, options: NoSession(sink), "not an object with write() and close()"),
        (Closing, "close() returned ('a',), not names with counts"),
        (type("Sized", (Closing,), {"counts": {"a": "b"}}), "not names with counts"),
        (WritingText, "a sink takes bytes, not str (called in "),
    ],
)
def test_a_faulty_exporter_is_blamed(
    host: Host, sample: Path, tmp_path: Path, opened: Any, message: str
) -> None:
    faulty = Exporter(name="faulty", accepts="toy", open=opened)
    register(host, "faulty", fx_exporters=lambda: [faulty])
    result = run_cli("convert", sample, tmp_path / "out.faulty", host=host)
    assert result.exit_code == ExitCode.FAILED
    assert "error[FXF0009]" in result.stderr
    assert message in result.stderr
    assert not (tmp_path / "out.faulty").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"open": lambda sink: sink}, "a function is called with 3 arguments, but "),
        ({"open": lambda *_: None}, "open() returned None, not an object with write() and close()"),
        ({"extract": lambda capture: {}}, "a function is called with 4 arguments, but "),
        ({"extract": lambda *_: ["a"]}, "extract() returned ['a'], not names with counts"),
        ({"salvage": lambda capture: []}, "a function is called with 3 arguments, but "),
        ({"salvage": lambda *_: None}, "salvage() returned None, not losses"),
        ({"salvage": lambda *_: ["a"]}, "salvage() gives 'a', not a Loss"),
    ],
)
def test_a_faulty_writer_is_blamed(
    sample: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    writer = attrs.evolve(toy.WRITER, **changes)
    host = Host(discover=False)
    register(host, "faulty", fx_readers=lambda: [toy.READER], fx_writers=lambda: [writer])
    command = ["salvage"] if "salvage" in changes else ["convert"]
    part = ["--since", "0"] if "extract" in changes else []
    result = run_cli(*command, *part, sample, tmp_path / "out.toy", host=host)
    assert result.exit_code == ExitCode.FAILED
    assert "error[FXF0009]" in result.stderr
    assert f"toy of the plugin faulty (faulty-dist): {message}" in result.stderr
    assert not (tmp_path / "out.toy").exists()


@pytest.mark.parametrize(
    ("merge", "message"),
    [
        (lambda sink: sink, "a function is called with 2 arguments, but "),
        (lambda sink, options: None, "not an object with write() and close()"),
        (Closing, "close() returned ('a',), not names with counts"),
    ],
)
@pytest.mark.parametrize("command", ["convert", "salvage"])
def test_a_faulty_merge_is_blamed(
    host: Host, sample: Path, tmp_path: Path, command: str, merge: Any, message: str
) -> None:
    writer = Writer(format="other", open=toy.WRITER.open, accepts="toy", merge=merge)
    register(host, "faulty", fx_writers=lambda: [writer])
    result = run_cli(command, sample, tmp_path / "out.other", host=host)
    assert "error[FXF0009]: other of the plugin faulty (faulty-dist): " in result.stderr
    assert message in result.stderr


@pytest.mark.parametrize(
    ("changes", "command", "message"),
    [
        ({"explain": lambda source: []}, "explain", "a function is called with 2 arguments, but "),
        ({"explain": lambda *_: None}, "explain", "explain() returned None, not a list of fields"),
        ({"snapshot": lambda: None}, "watch", "a function is called with 1 arguments, but "),
        ({"snapshot": lambda _path: b""}, "watch", "snapshot() returned b'', not a snapshot"),
    ],
)
def test_a_faulty_reader_is_blamed(
    sample: Path, changes: dict[str, Any], command: str, message: str
) -> None:
    reader = attrs.evolve(toy.READER, **changes)
    host = Host(discover=False)
    register(host, "faulty", fx_readers=lambda: [reader])
    place = f"{sample}@0" if command == "explain" else str(sample)
    result = run_cli(command, place, host=host)
    assert result.exit_code == ExitCode.FAILED
    assert f"error[FXF0009]: toy of the plugin faulty (faulty-dist): {message}" in result.stderr


def test_rules_that_are_no_catalogue_leave_the_others_alone(sample: Path) -> None:
    host = Host(discover=False)
    reader = attrs.evolve(toy.READER, rules=lambda: None)
    register(host, "faulty", fx_readers=lambda: [reader])
    result = run_cli("explain", "FXF0104", host=host)
    assert result.exit_code == ExitCode.OK
    assert "the rule catalogue cannot be loaded" in result.stderr


def test_counts_of_what_was_left_out_may_be_of_numpy(
    host: Host, sample: Path, tmp_path: Path
) -> None:
    counting = type("Counting", (Closing,), {"counts": {"a": np.int64(3)}})
    exporter = Exporter(name="counting", accepts="toy", open=counting)
    register(host, "counting", fx_exporters=lambda: [exporter])
    result = run_cli("convert", "--json", sample, tmp_path / "out.counting", host=host)
    assert result.json()["dropped"] == {"a": 3}


def test_another_format_cannot_be_written(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"who knows")
    result = run_cli("convert", "-f", "records", path, tmp_path / "o.toy", host=host)
    assert result.exit_code == ExitCode.USAGE
    assert "records captures cannot be written as toy" in result.stderr


def test_several_trees_are_not_offered_what_is_refused(tmp_path: Path) -> None:
    tree = tmp_path / "tree.inspect"
    tree.write_bytes(fxf.Host().readers["inspect"].sample(4096))
    result = run_cli("convert", tree, tree, tmp_path / "both.inspect")
    assert result.exit_code == ExitCode.USAGE
    assert "several inspect captures cannot be merged into one file" in result.stderr
    offered = result.stderr.partition("they can become: ")[2].strip().split(", ")
    assert "json" in offered
    assert "inspect" not in offered


def test_several_inputs_into_one_exporter(host: Host, sample: Path, tmp_path: Path) -> None:
    result = run_cli("convert", sample, sample, "-", "-t", "text", host=host)
    assert result.text.count("mark one") == 2
    out = tmp_path / "a.csv"
    refused = run_cli("convert", sample, sample, out, host=host)
    assert refused.exit_code == ExitCode.FAILED
    assert "error[FXF0002]" in refused.stderr
    assert not out.exists()


def test_an_exporter_must_take_every_input(host: Host, sample: Path, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"who knows")
    for inputs in ((sample, f"records:{path}"), (f"records:{path}", sample)):
        result = run_cli("convert", *inputs, "-", "-t", "picture", host=host)
        assert result.exit_code == ExitCode.USAGE
        assert "exporter 'picture' does not take records captures" in result.stderr


def test_what_has_no_place_is_told(host: Host, sample: Path) -> None:
    result = run_cli("convert", sample, "-", "-t", "csv", host=host)
    assert result.stderr == "note: not written as csv: rows of instants (2)\n"
    assert not run_cli("-q", "convert", sample, "-", "-t", "csv", host=host).stderr


# --- convert: where it goes --------------------------------------------------------------------


def test_an_existing_file_is_kept(host: Host, sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("precious")
    result = run_cli("convert", sample, out, host=host)
    assert result.exit_code == ExitCode.FAILED
    assert "--force" in result.stderr
    assert out.read_text() == "precious"
    assert run_cli("convert", sample, out, "--force", host=host).exit_code == ExitCode.OK
    assert out.read_text() != "precious"


def test_a_failure_leaves_nothing_behind(host: Host, sample: Path, tmp_path: Path) -> None:
    class Failing:
        def __init__(self, sink: Sink, options: Any) -> None:
            self.sink = sink

        def write(self, capture: Any) -> None:
            self.sink.write(b"half of it")
            raise RuntimeError("half way")

    register(host, "failing", fx_exporters=lambda: [
        Exporter(name="half", title="", accepts="toy", suffixes=(".half",), open=Failing)])  # type: ignore[arg-type] # fmt: skip
    out = tmp_path / "out.half"
    before = sorted(tmp_path.iterdir())
    assert run_cli("convert", sample, out, host=host).exit_code == ExitCode.FAILED
    assert sorted(tmp_path.iterdir()) == before
    out.write_text("precious")
    assert run_cli("convert", sample, out, "--force", host=host).exit_code == ExitCode.FAILED
    assert out.read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == len(before) + 1


def test_a_file_may_be_replaced_by_what_is_made_of_it(host: Host, damaged: Path) -> None:
    result = run_cli("convert", damaged, damaged, "--force", host=host)
    assert result.exit_code == ExitCode.FINDINGS
    assert damaged.read_bytes() == DAMAGED


def test_a_folder_that_is_not_there(host: Host, sample: Path, tmp_path: Path) -> None:
    result = run_cli("convert", sample, tmp_path / "no" / "out.csv", host=host)
    assert result.exit_code == ExitCode.FAILED
    assert "cannot write there" in result.stderr
    assert run_cli("convert", sample, tmp_path, "-t", "csv", host=host).exit_code == ExitCode.FAILED


def test_binary_output_does_not_go_to_a_terminal(host: Host, sample: Path) -> None:
    for to in ("toy", "picture"):
        result = run_cli("convert", sample, "-", "-t", to, host=host, terminal=True)
        assert result.exit_code == ExitCode.USAGE
        assert "terminal" in result.stderr
        forced = run_cli("convert", sample, "-", "-t", to, "--force", host=host, terminal=True)
        assert forced.exit_code == ExitCode.OK
        assert run_cli("convert", sample, "-", "-t", to, host=host).exit_code == ExitCode.OK
    result = run_cli("convert", sample, "-", "-t", "csv", host=host, terminal=True)
    assert result.exit_code == ExitCode.OK


def test_a_report_as_json(host: Host, damaged: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    result = run_cli("convert", damaged, out, "--json", host=host)
    assert result.exit_code == ExitCode.FINDINGS
    report = result.json()
    assert report == {
        "fxframework": "convert",
        "version": 1,
        "inputs": [
            {"path": str(damaged), "format": "toy", "findings": {"TOY0001": 2, "TOY0002": 1}}
        ],
        "out": str(out),
        "to": "csv",
        "action": "export",
        "bytes": out.stat().st_size,
        "dropped": {},
        "left_out": {},
        "skipped": {},
        "renumbered": {},
    }


def test_slices_that_are_skipped_are_counted_and_said(tmp_path: Path) -> None:
    skipping = ("--min-duration", "100us", "--exclude-function", "lay*")
    for out in (tmp_path / "part.fxt", tmp_path / "part.csv"):
        result = run_cli("convert", BOOT, out, *skipping)
        assert "note: left out: 40 short slices, 24 calls of excluded functions\n" in result.stderr
    report = fxf.convert(
        BOOT, tmp_path / "again.fxt",
        select=fxf.Selection(min_duration_ns=100_000, exclude_functions=("lay*",)),
    )  # fmt: skip
    assert report.skipped == {"short slices": 40, "calls of excluded functions": 24}
    with fxf.open(tmp_path / "again.fxt") as part:
        slices = part.table("slices")
        assert "layout" not in slices.texts("name")
        assert slices["dur"].min() >= 100_000
    result = run_cli("cat", BOOT, "--table", "slices", *skipping)
    assert "40 short slices" in result.stderr
    assert len(result.text.splitlines()) == 1 + len(slices)
    calls = BOOT.parents[2] / "xray" / "spellcheck.xray"
    single = run_cli("cat", calls, "--table", "slices", "--exclude-function", "1")
    assert "left out: 1 call of excluded functions" in single.stderr
    for length in ("@5", "much", "-5us"):
        wrong = run_cli("cat", BOOT, "--min-duration", length)
        assert wrong.exit_code == ExitCode.USAGE
        assert f"invalid length '{length}'" in wrong.stderr
        assert "@NS" not in wrong.stderr


def test_a_capture_in_parts(tmp_path: Path) -> None:
    out = tmp_path / "boot.fxt"
    result = run_cli("convert", BOOT, out, "--split", "3", "--thread", "render", "--json")
    names = [str(tmp_path / f"boot-00{number}.fxt") for number in (1, 2, 3)]
    assert [part["out"] for part in result.json()["parts"]] == names
    assert result.stderr.count("note: wrote") == 3
    for arguments in (
        ("convert", BOOT, BOOT, out, "--split", "3"),
        ("convert", BOOT, out, "--split", "3", "--align", "boot:offset=1"),
        ("convert", BOOT, out, "--split", "three"),
    ):
        assert run_cli(*arguments).exit_code == ExitCode.USAGE


def test_what_was_written_is_said(host: Host, sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    result = run_cli("convert", sample, out, host=host)
    assert f"note: wrote {out}: csv, {out.stat().st_size} bytes\n" in result.stderr
    again = run_cli("-q", "convert", sample, out, "--force", host=host)
    assert not again.stderr


def test_what_the_writer_finds_is_told(
    host: Host, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def close(self: toy.ToyWriter) -> None:
        self.found.add(toy.DAMAGED, value="the writer ran out of paint")  # type: ignore[attr-defined]

    made = toy.ToyWriter.__init__

    def init(self: toy.ToyWriter, sink: Sink, options: Any, diagnostics: Any) -> None:
        made(self, sink, options, diagnostics)
        self.found = diagnostics  # type: ignore[attr-defined]

    monkeypatch.setattr(toy.ToyWriter, "__init__", init)
    monkeypatch.setattr(toy.ToyWriter, "close", close)
    result = run_cli("convert", sample, tmp_path / "o.toy", host=host)
    assert result.exit_code == ExitCode.FINDINGS
    assert "warning[TOY0001]: a record is damaged: the writer ran out of paint" in result.stderr


def test_a_record_that_the_writer_refuses_is_located(
    host: Host, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy, "record", lambda *_: (_ for _ in ()).throw(
        toy.WriteRefusedError("no more boxes")))  # fmt: skip
    out = tmp_path / "o.toy"
    result = run_cli("convert", sample, out, host=host)
    assert result.exit_code == ExitCode.FAILED
    assert f"error[FXF0002]: no more boxes\n  --> {sample} @ 0x00000008" in result.stderr
    assert not out.exists()


def test_a_capture_is_copied_to_its_own_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without reading records as objects, and with its damage and findings."""
    monkeypatch.setattr(RecordRewriter, "write", None)
    for name, data in (("boot", BOOT.read_bytes()), ("damaged", BOOT.read_bytes()[:-4])):
        path, out = tmp_path / f"{name}.fxt", tmp_path / f"{name}-again.fxt"
        path.write_bytes(data)
        result = run_cli("convert", path, out)
        assert result.exit_code == (ExitCode.OK if name == "boot" else ExitCode.FINDINGS)
        assert out.read_bytes() == data
        assert run_cli("convert", path, out, "--big-endian", "--force").exit_code != ExitCode.OK


@cases("suffix", ["", ".gz"])
def test_the_size_that_is_reported_is_that_of_the_file(tmp_path: Path, suffix: str) -> None:
    boot = Path(__file__).parents[2] / "examples" / "scenarios" / "boot.golden" / "boot.fxt"
    out = tmp_path / f"boot.json{suffix}"
    done = run_cli("convert", boot, out)
    assert done.stderr == f"note: wrote {out}: json, {out.stat().st_size:,} bytes\n"
    again = tmp_path / f"again.json{suffix}"
    assert fxf.convert(boot, again).nbytes == again.stat().st_size
    sound = tmp_path / f"sound.fxt{suffix}"
    assert fxf.salvage(boot, sound).nbytes == sound.stat().st_size


def test_a_table_is_chosen_as_in_cat(host: Host, sample: Path, tmp_path: Path) -> None:
    printed = run_cli("cat", sample, "--table", "instants", host=host).text.splitlines()
    short, long = tmp_path / "short.csv", tmp_path / "long.csv"
    assert run_cli("convert", sample, short, "--table", "instants", host=host).exit_code == 0
    assert run_cli("convert", sample, long, "-o", "table=instants", host=host).exit_code == 0
    assert short.read_bytes() == long.read_bytes()
    assert len(short.read_text().splitlines()) == len(printed)
    unknown = run_cli("convert", sample, "-", "-t", "csv", "--table", "instant", host=host)
    assert unknown.exit_code == ExitCode.USAGE
    assert "did you mean 'instants'" in unknown.stderr
