"""Each known difference from Perfetto, shown on a trace of its own."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

import fxframework as fxf

from . import fxt
from .divergences import DIVERGENCES, SAYS
from .perfetto import Perfetto, PerfettoError, assert_verdict

T, U, V = (11, 12), (11, 13), (21, 22)
SLICES = "select ts, dur, name from slice order by id"
ASYNC = "select ts, dur, depth from slice order by ts"
ARGS = "select key, value_type, int_value, string_value from args where key like 'a%' order by key"
NAMED = "select tid, pid from thread left join process using (upid) where thread.name is not null"
SCHED = """
    select ts, tid, pid, priority from sched_slice
    join thread using (utid) left join process using (upid)"""


@attrs.frozen
class Case:
    """A trace, and what is read of it."""

    trace: bytes
    sql: str
    theirs: list[tuple[Any, ...]] | str
    """Rows, or what the error says."""
    table: str
    columns: str
    ours: list[tuple[Any, ...]]


def begin(ticks: int, name: str) -> bytes:
    return fxt.event("duration_begin", ticks, T, name)


def end(ticks: int) -> bytes:
    return fxt.event("duration_end", ticks, T, "end")


def complete(ticks: int, until: int, name: str) -> bytes:
    return fxt.event("duration_complete", ticks, T, name, word=until)


def instant(ticks: int, name: fxt.Text = "i", thread: fxt.Who = T, **more: Any) -> bytes:
    return fxt.event("instant", ticks, thread, name, **more)


def operation(kind: str, ticks: int, number: int, thread: fxt.Who = T, **more: Any) -> bytes:
    return fxt.event(f"async_{kind}", ticks, thread, more.pop("name", "op"), word=number, **more)


def big_endian(words: bytes) -> bytes:
    return b"".join(words[at : at + 8][::-1] for at in range(0, len(words), 8))


def flow(kind: str, ticks: int, *args: fxt.Arg) -> bytes:
    return fxt.event(f"flow_{kind}", ticks, T, "f", args, word=1)


I5 = instant(5)
DEEP = 514
"""Slices in each other, two more than Perfetto nests."""
CASES = {
    "overlap": Case(
        complete(0, 10, "a") + complete(5, 15, "b"),
        SLICES,
        [(0, 10, "a")],
        "slices",
        "ts dur name depth parent",
        [(0, 10, "a", 0, -1), (5, 10, "b", 1, 0)],
    ),
    "same-start": Case(
        complete(0, 5, "short") + complete(0, 10, "long"),
        SLICES,
        [(0, 5, "short")],
        "slices",
        "ts dur name depth parent",
        [(0, 5, "short", 1, 1), (0, 10, "long", 0, -1)],
    ),
    "complete-backwards": Case(
        complete(10, 5, "a"), SLICES, [], "slices", "ts dur name", [(10, 0, "a")]
    ),
    "begin-in-complete": Case(
        complete(0, 10, "outer") + begin(5, "inner") + end(15),
        SLICES,
        [(0, 10, "outer"), (5, 5, "inner")],
        "slices",
        "ts dur name depth",
        [(0, 10, "outer", 0), (5, 10, "inner", 1)],
    ),
    "instants": Case(
        instant(5, word=2), SLICES, [(5, 0, "i")], "instants", "ts name scope", [(5, "i", "global")]
    ),
    "async-processes": Case(
        operation("begin", 1, 7)
        + operation("begin", 2, 7, V)
        + operation("end", 5, 7)
        + operation("end", 9, 7, V),
        ASYNC,
        [(1, 8, 0), (2, 3, 1)],
        "slices",
        "ts dur depth",
        [(1, 4, 0), (2, 7, 0)],
    ),
    "async-category": Case(
        operation("begin", 1, 7, category="a") + operation("end", 5, 7, category="b"),
        ASYNC,
        [(1, -1, 0)],
        "slices",
        "ts dur depth",
        [(1, 4, 0)],
    ),
    "async-stray-end": Case(
        operation("begin", 2, 2000)
        + operation("end", 12, 2000, name="other")
        + operation("end", 18, 2001),
        ASYNC,
        [(2, 16, 0)],
        "slices",
        "ts dur depth",
        [(2, -1, 0)],
    ),
    "flow-topmost": Case(
        complete(0, 5, "a")
        + fxt.event("flow_begin", 7, T, "f", word=1)
        + complete(10, 15, "b")
        + fxt.event("flow_end", 12, T, "f", word=1),
        "select slice_out, slice_in from flow",
        [(0, 1)],
        "flows",
        "phase slice",
        [("begin", -1), ("end", 1)],
    ),
    "flow-outside": Case(
        flow("begin", 2) + complete(5, 10, "b") + flow("end", 7),
        "select slice_out, slice_in from flow",
        [],
        "flows",
        "phase slice",
        [("begin", -1), ("end", 0)],
    ),
    "flow-twice": Case(
        complete(0, 10, "a")
        + flow("begin", 1)
        + complete(11, 15, "b")
        + flow("begin", 12)
        + complete(20, 25, "c")
        + flow("end", 21),
        "select slice_out, slice_in from flow",
        [(0, 2)],
        "flows",
        "phase slice",
        [("begin", 0), ("begin", 1), ("end", 2)],
    ),
    "flow-args": Case(
        complete(0, 10, "a") + flow("begin", 5, ("a", "bool", 1)),
        ARGS,
        [],
        "args",
        "name type int",
        [("a", "bool", 1)],
    ),
    "too-deep": Case(
        b"".join(begin(ts, "b") for ts in range(DEEP))
        + b"".join(end(ts) for ts in range(DEEP, 2 * DEEP)),
        "select count(*) as slices, max(depth), sum(dur = -1) as open from slice",
        [(DEEP, 511, 2)],
        "slices",
        "dur",
        [(2 * (DEEP - depth) - 1,) for depth in range(DEEP)],
    ),
    "arg-repeated": Case(
        instant(5, args=[("a", "int32", 1), ("a", "int32", 2)]),
        ARGS,
        [("a", "int", 2, None)],
        "args",
        "name type int",
        [("a", "int32", 1), ("a", "int32", 2)],
    ),
    "arg-null-blob": Case(
        instant(5, args=[("a0", "null", None), ("a1", "blob", b"xyz")]),
        ARGS,
        [("a0", "string", None, "null"), ("a1", "string", None, "unknown")],
        "args",
        "name type str",
        [("a0", "null", None), ("a1", "blob", "xyz")],
    ),
    "arg-unsigned": Case(
        instant(5, args=[("a", "uint64", (1 << 64) - 2)]),
        ARGS,
        [("a", "int", -2, None)],
        "args",
        "name int uint",
        [("a", -2, (1 << 64) - 2)],
    ),
    "unregistered-string": Case(
        instant(5, 77), SLICES, [], "instants", "ts name", [(5, "<str#77>")]
    ),
    "unregistered-argument": Case(
        fxt.kernel_object(2, 12, "named", [(77, "koid", 11)]) + I5,
        NAMED,
        [(12, 0)],
        "threads",
        "pid tid name",
        [(11, 12, "named")],
    ),
    "unregistered-thread": Case(
        instant(5, "i", 9),
        "select tid, pid from thread_track join thread using (utid) join process using (upid)",
        [(0, 0)],
        "threads",
        "name",
        [("<thr#9>",)],
    ),
    "default-provider": Case(
        fxt.string(1, "one") + fxt.provider_info(5, "p") + instant(5, 1),
        SLICES,
        [],
        "instants",
        "ts name",
        [(5, "one")],
    ),
    "unknown-section": Case(
        fxt.provider_section(9) + I5, SLICES, [], "instants", "ts name", [(5, "i")]
    ),
    "koid-32": Case(
        instant(5, "i", (1 << 63 | 5, 1 << 63 | 6)),
        "select tid, pid from thread_track join thread using (utid) join process using (upid)",
        [(6, 5)],
        "threads",
        "pid tid",
        [(1 << 63 | 5, 1 << 63 | 6)],
    ),
    "thread-of-switch": Case(
        I5 + fxt.context_switch(7, 0, 99, 12, 1, [("incoming_weight", "int32", 4)]),
        SCHED,
        [(7, 12, 0, 4)],
        "threads",
        "pid tid",
        [(11, 12), (0, 99)],
    ),
    "thread-without-process": Case(
        fxt.kernel_object(2, 12, "named") + I5,
        NAMED,
        [(12, 0)],
        "threads",
        "pid tid name",
        [(11, 12, "named")],
    ),
    "process-type": Case(
        fxt.kernel_object(2, 12, "named", [("process", "uint64", 11)]) + I5,
        NAMED,
        [],
        "threads",
        "pid tid name",
        [(11, 12, "named")],
    ),
    "far-cpu": Case(
        fxt.context_switch(7, 4096, 99, 12, 1), SCHED, "unreachable", "sched", "ts cpu", [(7, 4096)]
    ),
    "priority-not-given": Case(
        fxt.context_switch(7, 0, 99, 12, 1),
        SCHED,
        [(7, 12, 0, 0)],
        "sched",
        "ts next_priority",
        [(7, -1)],
    ),
    "weight-type": Case(
        fxt.context_switch(7, 0, 99, 12, 1, [("incoming_weight", "int64", 4)]),
        SCHED,
        [],
        "sched",
        "ts next_priority",
        [(7, -1)],
    ),
    "base-tick": Case(
        fxt.initialization(1_000_000_000, 1000, 5) + instant(1500),
        SLICES,
        [(1500, 0, "i")],
        "instants",
        "ts ticks",
        [(500, 1500)],
    ),
    "rate-zero": Case(fxt.initialization(0) + I5, SLICES, [], "instants", "ts", [(5,)]),
    "ticks-rounding": Case(
        fxt.initialization(24_000_001) + instant(1 << 50),
        SLICES,
        [(46_912_494_163_722_240, 0, "i")],
        "instants",
        "ts",
        [((1 << 50) * 1_000_000_000 // 24_000_001,)],
    ),
    "time-overflow": Case(
        instant(1 << 63), SLICES, [], "instants", "ts ticks", [((1 << 63) - 1, 1 << 63)]
    ),
    "size-zero": Case(
        fxt.words(0) + I5, SLICES, "Unexpected record of size 0", "instants", "ts", [(5,)]
    ),
    "large-size": Case(
        fxt.large_blob("c", "n", b"\xef" * 32768) + I5, SLICES, [], "instants", "ts", [(5,)]
    ),
    "no-magic": Case(I5, SLICES, "Unknown trace type", "instants", "ts", [(5,)]),
    "big-endian": Case(
        fxt.string(1, ""), SLICES, "Unknown trace type", "trace_objects", "id", [(5,)]
    ),
    "other-records": Case(
        fxt.log(5, T, "message") + fxt.userspace_object(7, T, "object") + fxt.blob("b", b"1"),
        "select count(*) as n from (select id from slice union all select id from android_logs)",
        [(0,)],
        "logs",
        "ts message",
        [(5, "message")],
    ),
    "bad-packet": Case(
        fxt.blob("b", b"\x0a\x01\xff", 3) + I5,
        SLICES,
        "Failed to parse proto packet",
        "blobs",
        "name",
        [("b",)],
    ),
    "made-up-threads": Case(
        I5, "select tid from thread", [(0,), (11,), (12,)], "threads", "tid", [(12,)]
    ),
}
WHOLE = {
    "no-magic": I5,
    "big-endian": big_endian(fxt.MAGIC + fxt.kernel_object(1, 5, "")),
}
"""Traces that do not begin with the little-endian magic number."""


def test_every_difference_has_a_case_and_what_perfetto_says_of_it() -> None:
    assert CASES.keys() == DIVERGENCES.keys() == SAYS.keys()


@pytest.mark.parametrize("name", CASES)
def test_difference(name: str, perfetto: Perfetto) -> None:
    case = CASES[name]
    trace = WHOLE.get(name, fxt.MAGIC + case.trace)
    loaded = perfetto(trace)
    if isinstance(case.theirs, str):
        with pytest.raises(PerfettoError, match=case.theirs):
            loaded.query(case.sql)
    else:
        rows = loaded.query(case.sql)
        assert [tuple(row.values()) for row in rows] == case.theirs
    assert_verdict(loaded, DIVERGENCES[name].says)
    with fxf.open(trace, format="trace") as capture:
        table = capture.table(case.table)
        columns = [table.plain(column) for column in case.columns.split()]
        assert list(zip(*columns, strict=True)) == case.ours
