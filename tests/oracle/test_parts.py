"""Perfetto on what we make of traces: parts of them, and the same from their tables."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace.write.bulk import NAMES, TABLES, Bulk
from fx_trace.write.extract import extract
from fx_trace.write.merge import open_merge
from fxframework.io.sink import Sink
from fxframework.model.selection import Selection

from ..properties import share
from . import compare
from .captures import captures
from .perfetto import Perfetto

FILES = Path(__file__).parents[1] / "conformance" / "trace" / "files"
MAGIC_TRACE = FILES / "magic_trace_sample.fxt"
generated = settings(
    share(1 / 3),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


def part(trace: bytes, selection: Selection, **options: Any) -> bytes:
    sink = Sink.memory()
    with fxf.open(trace, format="trace") as capture:
        extract(capture, selection, sink, options)
    return sink.getvalue()


def from_tables(trace: bytes) -> bytes:
    with fxf.open(trace, format="trace") as capture:
        tables = {name: capture.table(name) for name in (*TABLES, *NAMES, "args", "blobs")}
        bulk = Bulk(tables, capture.strings, source=capture.source.data)
        return trace[:8] + b"".join(bytes(block) for block in bulk.blocks())


def span(trace: bytes) -> tuple[int, int]:
    with fxf.open(trace, format="trace") as capture:
        summary = capture.summary()
    return summary.start_ns or 0, summary.end_ns or 0


def touches(row: tuple[Any, ...], at: int, start: int, stop: int) -> bool:
    """Whether a slice, whose time and length stand at ``at``, has a part in a stretch."""
    ts, dur = row[at], row[at + 1]
    return ts < stop and (dur == -1 or ts + dur > start or ts >= start)


def reuses_slots(trace: bytes) -> bool:
    """Whether records cannot be brought into another order, since indices change their meaning."""
    with fxf.open(trace) as capture:
        shown = [record.to_json() for record in capture.records()]
    slots = [(x["record"], x["index"]) for x in shown if x["record"] in {"string", "thread"}]
    return len(slots) != len(set(slots))


def check_part(perfetto: Perfetto, trace: bytes, start: int, stop: int) -> None:
    small = part(trace, Selection(start_ns=start, stop_ns=stop))
    whole, mine = perfetto(trace), perfetto(small)
    theirs, found = compare.theirs(whole), compare.theirs(mine)
    for what, at in (("slices", 2), ("async", 0)):
        expected = Counter(
            {row: n for row, n in theirs[what].items() if touches(row, at, start, stop)}
        )
        assert found[what] == expected, what
    for what in ("nesting", "flows", "wakeups", "processes", "threads"):
        assert not found[what] - theirs[what], what
    for what, at in (("counters", 2), ("wakeups", 0)):
        expected = Counter({row: n for row, n in theirs[what].items() if start <= row[at] < stop})
        assert found[what] == expected, what
    # Of the last switch on each CPU it is not known when it ends.
    last = {cpu: max(r[1] for r in found["sched"] if r[0] == cpu) for cpu, *_ in found["sched"]}
    inner = Counter({row: n for row, n in found["sched"].items() if row[1] < last[row[0]]})
    assert not inner - theirs["sched"]
    assert set(mine.stats()) <= set(whole.stats())


def test_parts_of_magic_trace(perfetto: Perfetto) -> None:
    trace = MAGIC_TRACE.read_bytes()
    start, stop = span(trace)
    width = (stop - start) // 10
    for number in (0, 4, 9):
        check_part(perfetto, trace, start + number * width, start + (number + 1) * width)


@generated
@given(st.lists(captures(), min_size=1, max_size=3), st.integers(0, 9), st.integers(1, 9))
def test_parts_of_generated_captures(
    perfetto: Perfetto, traces: list[bytes], first: int, length: int
) -> None:
    """Takes seconds, as all with generated captures: Perfetto starts afresh for each."""
    for trace in traces:
        start, stop = span(trace)
        width = max(1, (stop - start) // 10)
        check_part(perfetto, trace, start + first * width, start + (first + length) * width)


@generated
@given(st.lists(captures(), min_size=1, max_size=3), st.integers(0, 9))
def test_slices_closed_at_the_bounds(perfetto: Perfetto, traces: list[bytes], first: int) -> None:
    for trace in traces:
        start, stop = span(trace)
        width = max(1, (stop - start) // 10)
        low, high = start + first * width, start + (first + 2) * width
        mine = perfetto(part(trace, Selection(start_ns=low, stop_ns=high), open_slices="close"))
        with fxf.open(trace) as capture:
            rates = [p["ticks_per_second"] for p in capture.summary().facts["providers"]]
        tick = max(-(-1_000_000_000 // rate) for rate in rates or [1_000_000_000])
        for row in compare.theirs(mine)["slices"]:
            assert low - tick < row[2] < high + tick
            assert row[3] == -1 or row[2] + row[3] < high + tick
        if not reuses_slots(trace):
            assert set(mine.stats()) <= set(perfetto(trace).stats())


@generated
@given(st.lists(captures(), min_size=1, max_size=3), st.data())
def test_parts_by_thread_and_category(
    perfetto: Perfetto, traces: list[bytes], hand: st.DataObject
) -> None:
    for trace in traces:
        theirs = compare.theirs(perfetto(trace))
        tasks = sorted({(row[0], row[1]) for row in theirs["slices"]})
        if not tasks:
            continue
        pid, tid = hand.draw(st.sampled_from(tasks))
        mine = perfetto(part(trace, Selection(threads=(f"{pid}/{tid}",))))
        found = compare.theirs(mine)
        assert found["slices"] == Counter(
            {row: n for row, n in theirs["slices"].items() if row[:2] == (pid, tid)}
        )
        assert not found["flows"] - theirs["flows"]
        assert set(mine.stats()) <= set(perfetto(trace).stats())
        category = hand.draw(st.sampled_from(sorted({row[5] for row in theirs["slices"]})))
        mine = perfetto(part(trace, Selection(categories=(category,))))
        assert compare.theirs(mine)["slices"] == Counter(
            {row: n for row, n in theirs["slices"].items() if row[5] == category}
        )
        assert set(mine.stats()) <= set(perfetto(trace).stats())


def test_magic_trace_from_its_tables(perfetto: Perfetto) -> None:
    trace = MAGIC_TRACE.read_bytes()
    mine = perfetto(from_tables(trace))
    assert compare.differences(compare.theirs(perfetto(trace)), compare.theirs(mine)) == {}
    assert mine.stats() == {}


@generated
@given(st.lists(captures(), min_size=1, max_size=3))
def test_generated_captures_from_their_tables(perfetto: Perfetto, traces: list[bytes]) -> None:
    for trace in traces:
        mine = perfetto(from_tables(trace))
        assert compare.differences(compare.theirs(perfetto(trace)), compare.theirs(mine)) == {}
        assert set(mine.stats()) <= set(perfetto(trace).stats())


@generated
@given(st.lists(captures(), min_size=2, max_size=3))
def test_several_captures_in_one_archive(perfetto: Perfetto, traces: list[bytes]) -> None:
    """What each has is there; threads of one id are one for Perfetto, whoever had it."""
    sink = Sink.memory()
    session = open_merge(sink, {})
    for trace in traces:
        with fxf.open(trace, format="trace") as capture:
            session.write(capture)
    assert set(session.close()) <= {"padding"}
    found = compare.theirs(perfetto(sink.getvalue()))
    views = [compare.theirs(perfetto(trace)) for trace in traces]
    for what in ("counters", "wakeups"):
        assert sum(found[what].values()) == sum(sum(view[what].values()) for view in views)
    tasks = [{row[:2] for row in view["slices"]} for view in views]
    if len(set().union(*tasks)) == sum(map(len, tasks)):
        names = Counter(row[4] for row in found["slices"].elements())
        each = itertools.chain.from_iterable(view["slices"].elements() for view in views)
        assert names == Counter(row[4] for row in each)


def test_an_archive_of_a_trace_and_tables(perfetto: Perfetto, tmp_path: Path) -> None:
    """Through the command line, as a person merges two files."""
    pytest.importorskip("click")
    from fxframework.testing.cli import run_cli

    out = tmp_path / "both.fxt"
    result = run_cli("convert", MAGIC_TRACE, MAGIC_TRACE, out)
    assert result.exit_code == 0, result.stderr
    one = perfetto(MAGIC_TRACE.read_bytes()).query("select count(*) as n from slice")
    both = perfetto(out.read_bytes())
    assert both.query("select count(*) as n from slice")[0]["n"] > one[0]["n"]
