"""`convert`, `salvage`, `verify` and `diff` in Python: what the command line does, it calls."""

from __future__ import annotations

import gzip
import io
import mmap
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import attrs
import pytest

import fxframework as fxf
from fx_trace.write.archive import Archive
from fxframework.conversion import Action, plan
from fxframework.errors import ExitCode, FxError, UnreadableError, UsageError, WriteRefusedError
from fxframework.host import Host
from fxframework.registry import Exporter
from fxframework.targets import targets_for
from fxframework.testing.cli import run_cli

from ..cases import cases
from . import toy

ROOT = Path(__file__).resolve().parents[2]
BOOT = ROOT / "examples" / "scenarios" / "boot.golden" / "boot.fxt"
LOGS = ROOT / "examples" / "scenarios" / "logs.golden" / "logs.fxlog"
INSPECT = ROOT / "examples" / "scenarios" / "inspect.golden" / "busy.inspect"
CALLS = ROOT / "examples" / "xray" / "spellcheck.xray"
EVERY = (BOOT, LOGS, INSPECT, CALLS)


# --- one plan ------------------------------------------------------------------------------------


@cases(
    ("inputs", "out", "select", "action"),
    [
        ((BOOT,), "a.fxt", None, Action.REWRITE),
        ((BOOT,), "a.fxt", fxf.Selection(threads=("main",)), Action.EXTRACT),
        ((BOOT, BOOT), "a.fxt", None, Action.MERGE),
        ((CALLS,), "a.fxt", None, Action.MERGE),
        ((BOOT,), "a.json", None, Action.EXPORT),
        ((BOOT,), "a.jsonl", None, Action.EXPORT),
        ((BOOT,), "a.csv", fxf.Selection(stop_ns=10**9), Action.EXPORT),
    ],
)
def test_the_way_of_a_conversion(
    inputs: tuple[Path, ...],
    out: str,
    select: fxf.Selection | None,
    action: Action,
    tmp_path: Path,
) -> None:
    report = fxf.convert(inputs, tmp_path / out, select=select)
    assert report.action == action
    assert report.nbytes == (tmp_path / out).stat().st_size
    assert [one.path for one in report.inputs] == [str(one) for one in inputs]


def test_python_and_the_command_line_write_the_same_bytes(tmp_path: Path) -> None:
    """Of every format, and in every format that one can become, once."""
    written_suffixes: set[str] = set()
    for source in EVERY:
        with fxf.open(source) as capture:
            names = [target.suffixes[0] for target in targets_for(_host(), capture)
                     if target.suffixes]  # fmt: skip
        new_suffixes = sorted({*names} - written_suffixes)
        written_suffixes |= {*names}
        for suffix in [*new_suffixes, source.suffix]:
            a, b = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
            try:
                fxf.convert(source, a)
                status = ExitCode.OK
            except FxError as error:
                status = error.exit_code
            assert run_cli("convert", source, b).exit_code == status, suffix
            assert a.exists() == b.exists() == (status is ExitCode.OK)
            if a.exists():
                assert written(a) == written(b), (source.name, suffix)
                a.unlink()
                b.unlink()


def written(path: Path) -> bytes:
    """What is in a file, without what differs from run to run."""
    if path.suffix in {".duckdb", ".db"}:
        return b""  # a database places its pages as it likes
    return re.sub(rb'"observedTimeUnixNano":"\d+"', b"", path.read_bytes())


def _host() -> fxf.Host:
    from fxframework.host import default_host

    return default_host()


def test_an_open_capture_stays_open(tmp_path: Path) -> None:
    with fxf.open(BOOT) as capture:
        report = capture.export(tmp_path / "a.csv", table="counters")
        assert report.rows["counters"] == len(capture.table("counters"))
        assert (tmp_path / "a.csv").read_text().count("\n") == report.rows["counters"] + 1
        capture.export(tmp_path / "b.txt")


def test_a_selected_part_is_extracted_with_what_it_needs(tmp_path: Path) -> None:
    part = fxf.Selection(threads=("main",))
    with fxf.open(BOOT) as capture:
        report = capture.select(part).export(tmp_path / "a.fxt")
    assert report.action is Action.EXTRACT
    fxf.convert(BOOT, tmp_path / "b.fxt", select=part)
    assert (tmp_path / "a.fxt").read_bytes() == (tmp_path / "b.fxt").read_bytes()
    assert not [f for f in fxf.verify(tmp_path / "a.fxt") if f.severity > fxf.Severity.INFO]


def test_what_is_there_stays_without_force(tmp_path: Path) -> None:
    out = tmp_path / "a.csv"
    out.write_text("mine")
    with pytest.raises(WriteRefusedError, match="exists") as refused:
        fxf.convert(BOOT, out)
    assert "force=True" in refused.value.remedy
    with pytest.raises(WriteRefusedError, match="force=True") as refused:
        Archive(out)
    assert "force=True" in refused.value.remedy
    assert out.read_text() == "mine"
    fxf.convert(BOOT, out, force=True)
    assert out.read_text() != "mine"


def test_unknown_options_are_refused_with_those_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no option 'tabel' applies here; did you mean 'table'"):
        fxf.convert(BOOT, tmp_path / "a.csv", tabel="slices")
    with pytest.raises(UsageError) as refused:
        fxf.convert(BOOT, tmp_path / "a.csv", moniker="x")
    assert "csv: table, delimiter" in refused.value.remedy
    assert "moniker" not in refused.value.remedy
    assert not list(tmp_path.iterdir())


def test_an_option_of_another_format_is_refused_by_every_command(tmp_path: Path) -> None:
    """`-o moniker=x` belongs to Inspect, and a trace has none."""
    for command in (["cat", BOOT], ["info", BOOT], ["convert", BOOT, tmp_path / "a.otlp.json"],
                    ["convert", BOOT, tmp_path / "a.csv"], ["verify", BOOT]):  # fmt: skip
        done = run_cli(*command, "-o", "moniker=x")
        assert done.exit_code == ExitCode.USAGE, command
        assert "no option 'moniker' applies here" in done.stderr


def test_no_input() -> None:
    with pytest.raises(UsageError, match="at least one input"):
        fxf.convert([], "a.csv")
    with pytest.raises(UsageError, match="at least one capture"):
        fxf.sql([], "select 1")


# --- every verb takes every kind of input --------------------------------------------------------


def mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


GIVEN: dict[str, Callable[[Path], Any]] = {
    "str": str,
    "Path": Path,
    "bytes": Path.read_bytes,
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "memoryview": lambda path: memoryview(path.read_bytes()),
    "mmap": mapped,
    "capture": fxf.open,
}
VERBS: dict[str, Callable[[Any, Path], Any]] = {
    "convert": lambda given, out: (fxf.convert(given, out), out.read_bytes())[1],
    "salvage": lambda given, out: (fxf.salvage(given, out), out.read_bytes())[1],
    "verify": lambda given, _: fxf.verify(given),
    "diff": lambda given, _: fxf.diff(given, given).same,
    "sql": lambda given, _: fxf.sql(
        given, "select count(*) as n, max(ts) as t from slices_with_names"
    ).to_pylist(),
}
MANY: dict[str, Callable[[Iterable[Any]], Any]] = {
    "list": list, "tuple": tuple, "generator": lambda some: (one for one in some)
}  # fmt: skip


@cases("kind", GIVEN)
@cases("verb", VERBS)
def test_a_verb_takes_paths_bytes_and_captures(verb: str, kind: str, tmp_path: Path) -> None:
    if verb == "sql":
        pytest.importorskip("duckdb", reason="sql needs the extra sql")
    run = VERBS[verb]
    expected = run(BOOT, tmp_path / "a.fxt")
    given = GIVEN[kind](BOOT)
    assert run(given, tmp_path / "b.fxt") == expected
    if kind == "capture":
        assert given.summary().records  # still open
        given.close()


def test_open_files_are_read_from_where_they_are(tmp_path: Path) -> None:
    expected = BOOT.read_bytes()
    for file in (BOOT.open("rb"), io.BytesIO(gzip.compress(expected))):
        with file, fxf.open(file) as capture:
            assert capture.source.data.tobytes() == expected
    out = tmp_path / "both.fxt"
    with BOOT.open("rb") as file:
        assert fxf.convert(file, out).inputs[0].path == str(BOOT)
        behind = io.BytesIO(b"12345678" + expected)
        behind.seek(8)
        assert fxf.verify(behind) == []
    with BOOT.open(encoding="latin-1") as text, pytest.raises(UsageError, match="text, not bytes"):
        fxf.open(text)  # type: ignore[arg-type]
    with pytest.raises(UnreadableError, match="null"):
        fxf.open("a\0b")


def test_one_value_of_a_criterion_stands_for_itself() -> None:
    with fxf.open(BOOT) as capture:
        expected = len(capture.select(fxf.Selection(threads=("main",))).table("slices"))
        assert len(capture.select(fxf.Selection(threads="main")).table("slices")) == expected > 0
    assert fxf.Selection(tags="a", pids=1) == fxf.Selection(tags=["a"], pids=[1])


@cases("many", MANY)
@cases("verb", ["convert", "sql"])
def test_a_verb_of_many_takes_any_mixture(verb: str, many: str, tmp_path: Path) -> None:
    if verb == "sql":
        pytest.importorskip("duckdb", reason="sql needs the extra sql")
    run = VERBS[verb]
    one = [make(BOOT) for make in GIVEN.values()]
    assert run(MANY[many](one[:1]), tmp_path / "one.fxt") == run(BOOT, tmp_path / "same.fxt")
    found = run(MANY[many](one), tmp_path / "all.fxt")
    if verb == "sql":
        [row], [single] = found, run(BOOT, tmp_path / "n.fxt")
        assert row == {"n": len(one) * single["n"], "t": single["t"]}
    one[-1].close()


def test_sql_opens_files_with_their_format_and_options() -> None:
    pytest.importorskip("duckdb", reason="sql needs the extra sql")
    query = "select count(*) as n from slices where name like 'suggest%'"
    named = fxf.sql(CALLS, query, instr_map=CALLS.with_suffix(".csv"), format="xray")
    assert named.to_pylist() == [{"n": 3}]
    assert fxf.sql([CALLS], query).to_pylist() == [{"n": 0}]
    with pytest.raises(UnreadableError):
        fxf.sql("gone.fxt", query)


# --- suffixes that do not apply ------------------------------------------------------------------


def _suffixes() -> list[str]:
    host = _host()
    owners = [*host.exporters, *host.writers.values()]
    return sorted({suffix for owner in owners for suffix in owner.suffixes})


@cases("source", EVERY, ids=lambda path: str(path.name))
def test_every_suffix_is_written_by_who_has_it_or_refused(source: Path) -> None:
    """The longest suffix counts: what does not take the capture passes it to nobody else."""
    host = _host()
    with fxf.open(source) as capture:
        able = targets_for(host, capture)
        for suffix in _suffixes():
            owners = [
                one for one in (*host.exporters, *host.writers.values()) if suffix in one.suffixes
            ]
            fitting = [one for one in owners if one in able]
            if fitting:
                assert plan(host, [capture], f"out{suffix}").target in fitting, suffix
            else:
                with pytest.raises(UsageError) as refused:
                    plan(host, [capture], f"out{suffix}")
                assert refused.value.remedy


def test_a_compound_suffix_says_what_it_needs(tmp_path: Path) -> None:
    done = run_cli("convert", LOGS, tmp_path / "x.speedscope.json")
    assert done.exit_code == ExitCode.USAGE
    assert "'.speedscope.json' is the suffix of speedscope" in done.stderr
    assert "a table of slices" in done.stderr
    done = run_cli("convert", INSPECT, tmp_path / "x.otlp.json")
    assert done.exit_code == ExitCode.USAGE
    assert "a table of logs" in done.stderr
    assert not list(tmp_path.iterdir())


def test_an_exporter_with_the_suffix_of_a_writer_is_named(tmp_path: Path) -> None:
    class Plugin:
        @fxf.hookimpl
        def fx_exporters(self) -> list[Exporter]:
            return [attrs.evolve(toy.TEXT, name="outline", accepts="trace", suffixes=(".fxt",))]

    host = Host()
    host.register(Plugin(), name="outlines")
    out = tmp_path / "x.fxt"
    done = run_cli("convert", BOOT, out, host=host)
    assert f"{out} is written by trace; its suffix also belongs to outline" in done.stderr
    assert "choose with -t outline" in done.stderr
    assert out.read_bytes() == BOOT.read_bytes()
    assert "suffix" not in run_cli("convert", BOOT, tmp_path / "y.fxt").stderr
    done = run_cli("convert", BOOT, tmp_path / "z.fxt", "-t", "trace", host=host)
    assert "suffix" not in done.stderr


@cases("name", ["x.pftrace", "x.html", "x.db", "x.folded", "x.xyz", "x", "x.tree"])
@cases("source", EVERY, ids=lambda path: str(path.name))
def test_only_what_the_capture_can_become_is_suggested(name: str, source: Path) -> None:
    host = _host()
    with fxf.open(source) as capture:
        able = {suffix for one in targets_for(host, capture) for suffix in one.suffixes}
        try:
            plan(host, [capture], name)
        except UsageError as error:
            others = set(_suffixes()) - able
            hint = error.message.partition("did you mean")[2]
            listed = error.remedy.partition("; ")[0].replace(",", " ").split()
            assert not [suffix for suffix in others if f"'{suffix}'" in hint]
            assert others.isdisjoint(listed)
            assert name not in {f"x{suffix}" for suffix in able}


def test_what_a_file_can_become_is_listed() -> None:
    text = run_cli("convert", "--list", LOGS).text
    assert "otlp" in text
    assert "speedscope" not in text
    listed = run_cli("convert", "--list", LOGS, "--json").json()
    assert listed["format"] == "log"
    assert "json" in {target["to"] for target in listed["targets"]}


# --- nothing sound -------------------------------------------------------------------------------


@cases("out", ["a.xyz", "a"])
def test_an_output_is_refused_before_records_are_read(out: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="suffix"):
        fxf.convert(tmp_path / "missing.jsonl", tmp_path / out)
    result = run_cli("convert", tmp_path / "missing.jsonl", tmp_path / out)
    assert result.exit_code == ExitCode.USAGE
    assert "captures can become .arrow" in result.stderr


@cases("suffix", [".fxt", ".json", ".csv", ".jsonl"])
def test_a_records_file_without_a_record_replaces_nothing(suffix: str, tmp_path: Path) -> None:
    lines = tmp_path / "g.jsonl"
    lines.write_text('{"fxframework":"records","format":"trace","version":1}\nnonsense\n{"a":1}\n')
    out = tmp_path / f"g2{suffix}"
    out.write_text("precious")
    done = run_cli("convert", lines, out, "--force")
    assert done.exit_code == ExitCode.FAILED
    assert out.read_text() == "precious"
    with pytest.raises(UnreadableError):
        fxf.convert(lines, out, force=True)


def test_an_empty_capture_is_the_same_bytes_again(tmp_path: Path) -> None:
    lines = tmp_path / "g.jsonl"
    lines.write_text('{"fxframework":"records","format":"trace","version":1}\n')
    fxf.convert(lines, tmp_path / "g.fxt")
    assert (tmp_path / "g.fxt").read_bytes() == b""


# --- the others ----------------------------------------------------------------------------------


def test_salvage_says_what_was_lost(tmp_path: Path) -> None:
    damaged = bytearray(BOOT.read_bytes())
    damaged[4000:4016] = b"\xff" * 16
    report = fxf.salvage(bytes(damaged), tmp_path / "a.fxt")
    assert report.lossy
    assert report.count == len(report.losses) > 0
    assert report.lost_bytes == sum(loss.nbytes for loss, _ in report.losses)
    assert report.nbytes == (tmp_path / "a.fxt").stat().st_size
    assert not [f for f in fxf.verify(tmp_path / "a.fxt") if f.severity > fxf.Severity.WARNING]


def test_verify_lists_findings_and_checks_options() -> None:
    damaged = BOOT.read_bytes()[:-5]
    found = fxf.verify(damaged)
    assert found == sorted(found, key=lambda one: -1 if one.offset is None else one.offset)
    assert any(one.severity >= fxf.Severity.WARNING for one in found)
    with pytest.raises(UsageError, match="no option 'colour'"):
        fxf.verify(damaged, colour=1)


def test_diff() -> None:
    assert fxf.diff(BOOT, BOOT).same
    assert not fxf.diff(INSPECT, INSPECT.with_name("first.inspect"), by="entry").same
    with pytest.raises(UsageError, match="by 'size'"):
        fxf.diff(BOOT, BOOT, by="size")


# --- logs as OTLP --------------------------------------------------------------------------------


def test_otlp_says_that_times_are_missing_and_names_the_processes(tmp_path: Path) -> None:
    for source in (BOOT, LOGS):
        out = tmp_path / f"{source.stem}.otlp.json"
        report = fxf.convert(source, out)
        assert any("offset from UTC is not known" in what for what in report.dropped), source
        assert "unknown_service" not in out.read_text()
    done = run_cli("convert", LOGS, tmp_path / "again.otlp.json")
    assert "offset from UTC is not known" in done.stderr
