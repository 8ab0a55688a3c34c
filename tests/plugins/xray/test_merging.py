"""Captures merged into a trace: every call is there as it was, or it is counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from fx_xray.read.capture import EventCapture
from fx_xray.rules import RULES
from fx_xray.write.merge import converted, open_merge, open_merge_basic
from fx_xray.write.packer import IdAllocator
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import Capture, OpenRequest, Record, Summary
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import STANDARD_TABLES, TABLE_CODES, TableSchema
from fxframework.model.selection import Selection
from fxframework.model.table import Table

from ...cases import cases
from .packed import opened
from .traces import basic, buffer, call, header, trace


class HandMade(Capture):
    """A capture of a format without events, whose tables are given."""

    format = "hand-made"
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        name: STANDARD_TABLES[name]
        for name in ("processes", "threads", "slices", "instants", "args", "counters")
    }

    def __init__(self, **tables: Mapping[str, Any]) -> None:
        super().__init__(Source.open(b""), OpenRequest(), Diagnostics(RULES))
        self._made = {
            name: Table.of(schema, self.strings, **tables.get(name, {}))
            for name, schema in self.schemas.items()
        }

    def records(self) -> Iterator[Record]:
        return iter(())

    def summary(self) -> Summary:
        return Summary(records=0, kinds={}, start_ns=None, end_ns=None, facts={})

    def scan(self) -> None: ...

    def _table(self, name: str) -> Table:
        return self._made[name]

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        yield self._made[name]


def _slices(*rows: tuple[int, int, str, int, int], thread: int = 0) -> dict[str, Any]:
    """Slices of a thread: time, length, name, depth, parent."""
    ts, dur, name, depth, parent = zip(*rows, strict=True)
    return {"ts": ts, "dur": dur, "name": name, "depth": depth, "parent": parent,
            "thread": [thread] * len(rows)}  # fmt: skip


def _threads(*koids: tuple[int, int]) -> dict[str, Any]:
    return {"id": range(len(koids)), "pid": [p for p, _ in koids], "tid": [t for _, t in koids]}


def _merged(*captures: Capture, basic: bool = False, **options: Any) -> tuple[
    EventCapture, dict[str, int]
]:  # fmt: skip
    sink = Sink.memory()
    session = (open_merge_basic if basic else open_merge)(sink, options)
    for capture in captures:
        session.write(capture)
    dropped = dict(session.close())
    return opened(sink.getvalue(), "xray-basic" if basic else "xray"), dropped


def _calls(capture: Capture) -> list[tuple[Any, ...]]:
    table = capture.table("slices")
    names = ("ts", "dur", "xray_function", "thread", "depth", "parent")
    return list(zip(*(table.array(name).tolist() for name in names), strict=True))


NESTED = _slices(
    (10, 100, "main", 0, -1),
    (10, 0, "empty", 1, 0),
    (10, 50, "f", 1, 0),
    (20, 40, "g", 2, 2),  # ends with f
    (60, 50, "g", 1, 0),  # begins where f ends, ends with main
    (110, 0, "main", 0, -1),
)


@cases("basic", [False, True])
def test_slices_nest_as_they_did(basic: bool) -> None:
    given = HandMade(threads=_threads((5, 6)), slices=NESTED)
    capture, dropped = _merged(given, basic=basic)
    assert _calls(capture) == [
        (10, 100, 1, 0, 0, -1),
        (10, 0, 2, 0, 1, 0),
        (10, 50, 3, 0, 1, 0),
        (20, 40, 4, 0, 2, 2),
        (60, 50, 4, 0, 1, 0),
        (110, 0, 1, 0, 0, -1),
    ]
    assert [int(ids[0]) for ids in capture.event_threads()] == [5, 6]
    assert dropped == {"names of functions (-o names=FILE keeps them in a file)": 4}


def test_a_slice_that_never_ended_has_no_exit() -> None:
    given = HandMade(threads=_threads((5, 6)), slices=_slices((1, -1, "a", 0, -1)))
    capture, _ = _merged(given)
    assert [chunk.kind.tolist() for chunk in capture.events()] == [[0]]
    assert _calls(capture) == [(1, -1, 1, 0, 0, -1)]


def test_what_has_no_place_is_counted() -> None:
    slices = _slices((-5, 10, "a", 0, -1), (0, 3, "b", 1, 0), (1, 9, "async", 0, -1))
    slices["kind"] = [1, 1, 2]
    slices["category"] = ["c", None, None]
    counters = {"ts": [1, 2], "name": ["n", "n"], "series": ["s", "s"]}
    instants = {"ts": [2, 3], "thread": [0, 0], "name": ["here", None], "scope": [0, 255]}
    in_slices = TABLE_CODES["slices"]
    args = {"table": [in_slices] * 3, "parent": [1, 1, 1], "name": ["n", "t", "u"],
            "type": [3, 6, 4], "int": [-1, 0, 0], "uint": [0, 0, 7],
            "str": [None, "text", None]}  # fmt: skip
    given = HandMade(
        threads=_threads((5, 1 << 40)), slices=slices, counters=counters, instants=instants,
        args=args,
    )  # fmt: skip
    capture, dropped = _merged(given)
    assert dropped == {
        "names of functions (-o names=FILE keeps them in a file)": 2,
        "asynchronous slices": 1,
        "asynchronous instants": 1,
        "categories": 1,
        "times before zero": 1,
        "rows of counters": 2,
        "arguments": 1,
        "names of arguments": 2,
        "numbers of threads": 1,
    }
    assert [(ts, dur) for ts, dur, *_ in _calls(capture)] == [(0, 5), (0, 3)]
    shown = capture.table("args")
    assert shown.array("uint").tolist()[:2] == [(1 << 64) - 1, 7]
    assert bytes(capture.payloads).count(b"here") == 1


@cases("form", ["xray", "xray-basic"])
def test_ids_do_not_depend_on_how_threads_are_grouped(form: str) -> None:
    pids, tids = np.array([5, 5, 7, 8], np.uint64), np.array([6, 7, 6, 6], np.uint64)
    more = np.array([5, 9, 1 << 40], np.uint64), np.array([6, 1 << 40, 6], np.uint64)
    apart, together = (IdAllocator(form, version) for version in [5 if form == "xray" else 3] * 2)
    found = [apart.numbers(pids, tids), apart.numbers(*more)]
    both = together.numbers(np.append(pids, more[0]), np.append(tids, more[1]))
    assert [np.append(*each).tolist() for each in zip(*found, strict=True)] == [
        each.tolist() for each in both
    ]
    assert apart.dropped == together.dropped


def test_ends_beyond_what_is_around_are_cut() -> None:
    given = HandMade(
        threads=_threads((5, 6)), slices=_slices((0, 10, "a", 0, -1), (5, 20, "b", 1, 0))
    )
    capture, dropped = _merged(given)
    assert [(ts, dur) for ts, dur, *_ in _calls(capture)] == [(0, 10), (5, 5)]
    assert dropped["ends of slices beyond what is around them"] == 1


@cases("version", range(1, 6))
def test_a_trace_keeps_its_events(version: int) -> None:
    whole = opened(trace(version))
    capture, dropped = _merged(whole, version=version)
    for name in ("slices", "instants"):
        for column in ("ticks", "xray_cpu", "thread"):
            assert (
                capture.table(name).array(column).tolist()
                == whole.table(name).array(column).tolist()
            )
    assert _calls(capture) == _calls(whole)
    assert not dropped
    assert capture.frequency == whole.frequency
    assert capture.version == version


def test_a_part_of_a_trace_keeps_its_events() -> None:
    whole = opened(trace())
    part = whole.select(Selection(threads=(f"{whole.event_threads()[1][0]}",)))
    capture, _ = _merged(part)
    wanted = part.table("slices").array("ticks").tolist()
    assert wanted
    assert capture.table("slices").array("ticks").tolist() == wanted


def test_basic_mode_becomes_the_recorders_and_back() -> None:
    first = opened(basic(3), "xray-basic")
    recorder, _ = _merged(first)
    again, _ = _merged(recorder, basic=True)
    assert _calls(again) == _calls(recorder) == _calls(first)
    assert again.frequency == first.frequency


def test_byte_orders_are_written() -> None:
    whole = opened(trace())
    for order in ("big", "big-lsb"):
        capture, _ = _merged(whole, write_byte_order=order)
        assert capture.byte_order == order
        assert _calls(capture) == _calls(whole)


def test_counters_of_other_frequencies_are_converted() -> None:
    slow = opened(header(cycle_frequency=1000) + buffer(call(), call(kind="exit"), tsc=2000))
    fast = opened(header(cycle_frequency=3000) + buffer(call(), call(kind="exit"), tsc=6001))
    capture, dropped = _merged(slow, fast)
    assert capture.frequency == 1000
    assert sorted(capture.table("slices").array("ticks").tolist()) == [2034, 2100]
    assert any("other frequencies" in what for what in dropped)


def test_conversion_is_exact() -> None:
    import numpy as np

    ticks = np.array([0, 1, 2, 10**9, (1 << 63) + 7, (1 << 64) - 1], np.uint64)
    for given, wanted in ((3, 2), (2_596_120_000, 10**9), (10**9, 2_596_120_000), (1, 1 << 40)):
        exact = [
            min((tick * wanted + given // 2) // given, (1 << 64) - 1) for tick in ticks.tolist()
        ]
        assert converted(ticks, given, wanted).tolist() == exact


def test_names_go_beside_it(tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    given = HandMade(threads=_threads((5, 6)), slices=_slices((0, 9, "a,b", 0, -1)))
    _, dropped = _merged(given, names=str(names))
    assert names.read_text() == 'function_id,name\n1,"a,b"\n'
    assert not dropped
    with pytest.raises(WriteRefusedError):
        open_merge(Sink.memory(), {"names": str(names)})


def test_options_that_make_no_sense_are_refused() -> None:
    for options in (
        {"version": 6},
        {"version": 1, "buffer_size": 1 << 40},
        {"write_byte_order": "x"},
    ):
        with pytest.raises(UsageError):
            open_merge(Sink.memory(), options)
    with pytest.raises(WriteRefusedError) as refused:
        open_merge(Sink.memory(), {"buffer_size": 100})
    assert refused.value.code == "FXX0508"


def test_nothing_is_a_header() -> None:
    capture, dropped = _merged(version=4)
    assert (capture.version, capture.source.size, dropped) == (4, 32, {})
