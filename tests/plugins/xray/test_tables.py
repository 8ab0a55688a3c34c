"""Tables and events of XRay traces: what llvm-xray says of real ones, and what rows are made of."""

from __future__ import annotations

import gc
import json
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from fx_xray import format as fx
from fx_xray.read.capture import BasicCapture, EventCapture, FdrCapture
from fx_xray.read.events import Events
from fx_xray.read.log import GivenLog
from fx_xray.sample import THREADS, sample
from fxframework.errors import LimitError, StrictError
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest

from ...cases import cases
from .traces import TSC, basic, buffer, call, event, header, packed, preamble, trace

TRACES = Path(__file__).parents[2] / "conformance" / "xray"
CONVERTED = {
    str(path.relative_to(TRACES)): path
    for path in sorted(TRACES.rglob("*.xray"))
    if (path.parent / "expected" / path.stem / "convert.yaml").exists()
}
TRACE_EVENTS = {
    name: path
    for name, path in CONVERTED.items()
    if (path.parent / "expected" / path.stem / "trace_event.json").exists()
}
HZ = 2_500_000_000
"""The frequency of the handmade traces."""
KINDS = {0: "function-enter", 1: "function-exit", 2: "function-tail-exit", 3: "function-enter-arg"}
KINDS |= {5: "custom-event", 6: "typed-event"}


def capture(data: bytes | Path, limits: dict[str, int] | None = None, **options: Any) -> Any:
    source = Source.open(data)
    request = OpenRequest(options=options, limits=Limits(**(limits or {})))
    form = BasicCapture if source.read(2, 2) == bytes(2) else FdrCapture
    return form(source, request)


def rows(opened: EventCapture, table: str, *names: str) -> list[tuple[Any, ...]]:
    made = opened.table(table)
    return list(zip(*(made.plain(name) for name in names), strict=True))


def plain_events(opened: EventCapture) -> Iterator[tuple[Any, ...]]:
    """kind, function, tsc, cpu, pid, tid, value or payload of each event."""
    pids, tids = opened.event_threads()
    for chunk in opened.events():
        for kind, function, tsc, cpu, thread, _, value, size in zip(
            *(column.tolist() for column in chunk), strict=True
        ):
            what = value if kind == 4 else None
            if kind > 4:
                what = opened.payloads[value : value + size].tobytes()
            yield kind, function, tsc, cpu, int(pids[thread]), int(tids[thread]), what


# --- What llvm-xray says of real traces -----------------------------------------------------------


@cases("name", CONVERTED)
def test_events_are_those_that_llvm_xray_converts(name: str) -> None:
    path = CONVERTED[name]
    text = (path.parent / "expected" / path.stem / "convert.yaml").read_text(errors="replace")
    want = Counter()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    version = capture(path).version
    for record in yaml.load(text, loader)["records"] or []:
        kind = record["kind"]
        about = record["func-id"] if kind.startswith("function") else record["type"]
        if kind == "custom-event":
            about = 0
        cpu = record["cpu"]
        if kind == "custom-event" and version < 5:
            cpu = None  # llvm-xray reads the padding of early versions
        process = record.get("process", 0) if version > 1 else 0
        arguments = tuple(record.get("args", ()))
        want[kind, about, record["tsc"], cpu, process, record["thread"], arguments] += 1
    found: list[list[Any]] = []
    latest: dict[int, list[Any]] = {}
    for kind, function, tsc, cpu, process, thread, what in plain_events(capture(path)):
        if kind == 4:
            latest[thread][6] += (what,)
            continue
        if kind == 5 and version < 5:
            cpu = None
        row = [KINDS[kind], function, tsc, cpu, process, thread, ()]
        found.append(row)
        latest[thread] = row
    assert Counter(map(tuple, found)) == want


@cases("name", TRACE_EVENTS)
def test_slices_are_those_of_llvm_xrays_trace_events(name: str) -> None:
    path = TRACE_EVENTS[name]
    text = (path.parent / "expected" / path.stem / "trace_event.json").read_text()
    begins = Counter(
        (each["name"], each["tid"], float(each["ts"]))
        for each in json.loads(text)["traceEvents"]
        if each["ph"] == "B"
    )
    opened = capture(path)
    tids = opened.log.tids.view(np.int64).astype(np.uint32)
    scale = 1e6 / (opened.frequency or 1e6)
    digits = 4 if opened.version > 2 else 3
    slices = rows(opened, "slices", "name", "thread", "ticks")
    mine = Counter(
        (name, str(tids[thread]), float(f"{ticks * scale:.{digits}f}"))
        for name, thread, ticks in slices
    )
    assert mine.keys() == begins.keys()
    assert mine == begins


def test_times_of_events_are_those_that_their_payloads_say() -> None:
    opened = capture(TRACES / "fdr5-taildrift-clang16.xray")
    drifts = [
        tsc - int.from_bytes(what[:8], "little") for _, _, tsc, *_, what in plain_events(opened)
    ]
    assert len(drifts) > 10
    assert all(0 <= drift <= 104 for drift in drifts[1:])  # the first call is not warm


# --- The two faults of compiler-rt ----------------------------------------------------------------


def test_what_is_left_of_buffers_with_short_extents_is_read() -> None:
    opened = capture(TRACES / "fdr5-typed-shortextents-clang16.xray")
    assert len(opened.table("slices")) == len(
        capture(TRACES / "fdr5-all-clang16.xray").table("slices")
    )
    counts = opened.diagnostics.counts
    assert counts["FXX0101"] + counts["FXX0102"] == len(opened.table("xray_buffers"))
    assert set(rows(opened, "instants", "xray_event_type")) >= {(0,)}


def test_records_that_were_cut_in_half_are_mended_in_tables() -> None:
    opened = capture(TRACES / "fdr5-tailmigrate-corrupt-clang19.xray")
    opened.scan()
    assert opened.diagnostics.counts["FXX0205"] == 6
    ticks = opened.table("slices").array("ticks").astype(np.int64)
    assert (np.diff(ticks) >= 0).all()
    assert int(ticks[-1] - ticks[0]) < opened.frequency  # and not hours
    values = opened.table("args").array("uint").tolist()
    # Those that llvm-xray swallows are every second one of these.
    assert values == [0, 100, 1, 101, 2, 102, 3, 103, 4, 104, 5, 105]
    cpus = opened.table("slices").array("xray_cpu").tolist()
    assert set(cpus) == {0, 1}


# --- Calls ----------------------------------------------------------------------------------------


def made(*records: Any, **more: Any) -> Any:
    return capture(header() + buffer(*records), **more)


def test_calls_nest() -> None:
    opened = made(call(1), call(2, delta=0), call(2, "tail_exit"), call(3), call(3, "exit", 7),
                  call(1, "exit"))  # fmt: skip
    columns = ("xray_function", "depth", "parent", "xray_ticks", "xray_exit", "kind")
    assert rows(opened, "slices", *columns) == [
        (1, 0, -1, 307, "exit", "call"),
        (2, 1, 0, 100, "tail_exit", "call"),
        (3, 1, 0, 7, "exit", "call"),
    ]
    assert opened.diagnostics.counts.keys() == {"FXX0601"}


def test_an_exit_of_an_outer_call_ends_those_within() -> None:
    opened = made(call(1), call(2), call(3), call(1, "exit"), call(4))
    assert rows(opened, "slices", "name", "xray_ticks", "dur", "xray_exit") == [
        ("1", 300, 120, "exit"),
        ("2", 200, 80, "unwound"),
        ("3", 100, 40, "unwound"),
        ("4", -1, -1, "none"),
    ]
    counts = opened.diagnostics.counts
    assert (counts["FXX0303"], counts["FXX0302"]) == (2, 1)
    facts = opened.summary().facts
    assert (facts["unwound"], facts["unmatched_entries"]) == (2, 1)


def test_an_exit_of_no_call_is_an_instant() -> None:
    opened = made(call(7, "exit"), call(1), call(8, "exit"), call(1, "exit"))
    assert rows(opened, "instants", "category", "name") == [
        ("unmatched_exit", "7"), ("unmatched_exit", "8"),
    ]  # fmt: skip
    assert rows(opened, "slices", "xray_ticks") == [(200,)]
    assert opened.diagnostics.counts["FXX0301"] == 2
    functions = rows(opened, "xray_functions", "id", "calls", "name", "object")
    assert functions == [(1, 1, "1", 0), (7, 0, "7", 0), (8, 0, "8", 0)]


def test_arguments_belong_to_their_calls() -> None:
    arguments = [fx.CallArgument(value=value) for value in (5, (1 << 64) - 1, 9)]
    opened = made(call(1), *arguments[:2], call(2, "exit"), arguments[2])
    assert rows(opened, "args", "table", "parent", "name", "type", "uint", "int", "str") == [
        ("slices", 0, "arg0", "uint64", 5, 5, None),
        ("slices", 0, "arg1", "uint64", (1 << 64) - 1, -1, None),
        ("instants", 0, "arg0", "uint64", 9, 9, None),
    ]
    assert rows(opened, "slices", "xray_entry") == [("enter_arg",)]


def test_an_argument_of_no_call_stands_alone() -> None:
    opened = made(fx.CallArgument(value=5), call(1), fx.TscWrap(tsc=TSC), fx.CallArgument(value=6))
    assert rows(opened, "args", "parent", "uint") == [(-1, 5), (-1, 6)]
    opened.scan()
    assert opened.diagnostics.counts["FXX0207"] == 2
    assert rows(opened, "slices", "xray_entry") == [("enter",)]


def test_payloads_are_arguments_of_events() -> None:
    opened = made(event(b"caf\xff"), event(b"typed", event_type=300))
    assert rows(opened, "instants", "category", "name", "xray_event_type", "xray_cpu") == [
        ("custom_event", "custom_event", 0, 2), ("typed_event", "typed_event", 300, 2),
    ]  # fmt: skip
    found = rows(opened, "args", "parent", "name", "type", "uint")
    assert found == [
        (0, "data", "blob", 0), (1, "data", "blob", 0), (1, "event_type", "uint32", 300),
    ]  # fmt: skip
    codes = opened.table("args").array("str").tolist()
    assert [opened.strings.bytes_of(code) for code in codes[:2]] == [b"caf\xff", b"typed"]
    assert codes[2] == -1


def test_depth_beyond_the_limit_is_kept_at_it() -> None:
    opened = capture(header() + buffer(*(call(id) for id in range(1, 100))), {"max_depth": 70})
    assert rows(opened, "slices", "depth")[-1] == (70,)
    assert rows(opened, "slices", "parent")[-1] == (97,)
    opened.scan()
    assert opened.diagnostics.counts["FXX0306"] == 28


def test_many_exits_of_functions_that_are_not_open_are_told_quickly() -> None:
    """Each of these would go down the whole stack, were calls not counted by function."""
    calls = [call(1) for _ in range(30_000)] + [call(2, "exit") for _ in range(30_000)]
    opened = made(*calls)
    assert opened.summary().facts["unmatched_exits"] == 30_000


# --- Threads, blocks and times --------------------------------------------------------------------


def test_threads_are_merged_by_time() -> None:
    one = buffer(call(1, delta=10), call(1, "exit", 20), thread=5, tsc=100)
    two = buffer(call(2, delta=15), call(2, "exit", 5), call(3, delta=10), thread=6, tsc=100)
    opened = capture(header() + one + two)
    assert rows(opened, "slices", "ticks", "thread", "name") == [
        (110, 0, "1"), (115, 1, "2"), (130, 1, "3"),
    ]  # fmt: skip
    assert rows(opened, "threads", "id", "pid", "tid") == [(0, 9, 5), (1, 9, 6)]
    assert rows(opened, "processes", "pid") == [(9,)]


def test_buffers_of_a_thread_follow_their_wall_time() -> None:
    """llvm-xray sorts these by a relation that is no order (notes §2.1)."""
    late = buffer(call(1, "exit"), seconds=2, micros=5, tsc=9000)
    early = buffer(call(1), seconds=1, micros=999_999, tsc=1000)
    opened = capture(header() + late + early)
    assert rows(opened, "slices", "ticks", "xray_ticks") == [(1100, 8000)]
    assert rows(opened, "xray_buffers", "thread", "seconds", "micros", "ticks", "nbytes") == [
        (0, 2, 5, 9000, 88), (0, 1, 999_999, 1000, 88),
    ]  # fmt: skip


def test_a_thread_whose_times_go_back_keeps_the_order_of_its_calls() -> None:
    opened = made(call(1, delta=0), fx.NewCpu(cpu=9, tsc=TSC - 50), call(1, "exit", 0))
    assert rows(opened, "slices", "xray_ticks", "dur", "xray_exit") == [(0, 0, "exit")]
    opened.scan()
    assert opened.diagnostics.counts["FXX0304"] == 1


def test_times_are_exact() -> None:
    opened = made(call(1, delta=1), call(1, "exit", 3))
    assert rows(opened, "slices", "ts", "dur") == [
        ((TSC + 1) * 10**9 // HZ, (TSC + 4) * 10**9 // HZ - (TSC + 1) * 10**9 // HZ)
    ]
    assert opened.ticks_per_second == HZ


def test_a_frequency_may_be_given() -> None:
    data = header(cycle_frequency=0) + buffer(call(1), call(1, "exit"))
    unknown, given = capture(data), capture(data, cycle_frequency=HZ)
    assert rows(unknown, "slices", "ts", "dur") == [(TSC + 100, 100)]
    assert unknown.ticks_per_second == 0
    assert unknown.diagnostics.counts["FXX0007"] == 1
    assert rows(given, "slices", "dur") == [(40,)]
    assert "FXX0007" not in given.diagnostics.counts


def test_times_beyond_64_bits_of_nanoseconds_are_the_greatest() -> None:
    data = header(cycle_frequency=1) + buffer(call(1), call(1, "exit"))
    opened = capture(data)
    assert rows(opened, "slices", "ts", "ticks") == [((1 << 63) - 1, TSC + 100)]
    assert opened.diagnostics.counts["FXX0305"] == 1


def test_all_times_beyond_64_bits_are_listed() -> None:
    data = header(cycle_frequency=1) + buffer(*[call(1), call(1, "exit")] * 3)
    opened = capture(data)
    opened.scan()
    listed = [each.offset for each in opened.diagnostics if each.code == "FXX0305"]
    assert len(set(listed)) == opened.diagnostics.counts["FXX0305"] == 3
    assert "FXF0104" not in opened.diagnostics.counts


def test_a_buffer_without_a_time_has_its_wall_time() -> None:
    records = [*preamble(seconds=2, micros=500_000)[:-1], call(1, delta=5), call(1, "exit", 10)]
    data = packed(*records)
    opened = capture(header() + packed(fx.BufferExtents(bytes=len(data))) + data)
    assert rows(opened, "slices", "ticks", "xray_ticks", "xray_cpu") == [
        (5 * HZ // 2 + 5, 10, 65535)
    ]
    opened.scan()
    assert opened.diagnostics.counts["FXX0203"] == 1


# --- Captures -------------------------------------------------------------------------------------


def test_a_summary_says_what_there_is() -> None:
    opened = capture(sample(100_000))
    summary = opened.summary()
    assert summary.facts["threads"] == THREADS
    assert summary.facts["buffers"] == 6
    assert summary.facts["functions"] == summary.rows["xray_functions"] > 50
    assert summary.facts["unmatched_entries"] == 0
    assert summary.rows["slices"] == len(opened.table("slices"))
    assert len(summary.timeline) == THREADS
    assert sum(map(sum, dict(summary.timeline).values())) == summary.rows["slices"]
    assert opened.diagnostics.counts.keys() == {"FXX0601"}


def test_functions_have_names_where_there_is_a_map(tmp_path: Path) -> None:
    names = tmp_path / "map.csv"
    names.write_text("function_id,name\n1,first\n2,_ZN1a1bEv\n")
    data = header() + buffer(call(1), call(2), call(3))
    opened = capture(data, instr_map=str(names))
    assert rows(opened, "slices", "name") == [("first",), ("a::b()",), ("3",)]
    assert rows(opened, "xray_functions", "name", "linkage_name")[1] == ("a::b()", "_ZN1a1bEv")
    assert opened.summary().facts["named_functions"] == 2
    assert opened.diagnostics.counts["FXX0602"] == 1
    assert "FXX0601" not in opened.diagnostics.counts
    mangled = capture(data, instr_map=str(names), demangle=False)
    assert rows(mangled, "slices", "name")[1] == ("_ZN1a1bEv",)


@cases("opened", [capture(trace()), capture(basic())])
def test_findings_are_reported_once(opened: EventCapture) -> None:
    damaged = type(opened)(Source.open(opened.source.read(0, 100)), OpenRequest())
    list(damaged.records())
    first = dict(damaged.diagnostics.counts)
    list(damaged.records())
    damaged.scan()
    damaged.summary()
    list(damaged.records())
    later = damaged.diagnostics.counts
    assert {code: later[code] for code in first} == first


def test_strict_reading_stops_at_loss() -> None:
    source = Source.open(trace()[:-3])
    with pytest.raises(StrictError) as refused:
        FdrCapture(source, OpenRequest(strict=True)).scan()
    assert refused.value.code == "FXX0103"


def test_tables_are_bounded_by_memory() -> None:
    opened = capture(trace(), {"max_memory": 10})
    with pytest.raises(LimitError):
        opened.table("slices")
    assert sum(len(batch) for batch in opened.batches("slices")) == opened.summary().rows["slices"]


def test_memory_is_free_once_nobody_has_the_capture() -> None:
    gc.collect()
    gc.disable()
    try:
        opened = capture(trace())
        for name in opened.schemas:
            made = opened.table(name)
            for column in made.columns:
                made[column]
        held = weakref.ref(opened)
        del opened, made
        assert held() is None
    finally:
        gc.enable()


@cases(
    ("data", "kind", "order"),
    [
        (trace(), FdrCapture, {}),
        (trace(byte_order="big"), FdrCapture, {"write_byte_order": "big"}),
        (basic(byte_order="big"), BasicCapture, {"write_byte_order": "big"}),
    ],
)
def test_the_writer_is_told_the_byte_order(data: bytes, kind: type, order: dict[str, str]) -> None:
    opened = capture(data)
    assert isinstance(opened, kind)
    assert opened.writer_options == order


@cases("order", ["big", "big-lsb"])
def test_tables_do_not_depend_on_the_byte_order(order: str) -> None:
    for version in range(1, 6):
        little, big = capture(trace(version)), capture(trace(version, order))
        for name in ("slices", "instants", "args", "xray_buffers"):
            names = [column for column in little.table(name).columns if column != "str"]
            assert rows(little, name, *names) == rows(big, name, *names)


def test_given_events_are_merged_as_those_of_files() -> None:
    whole = capture(sample(40_000))
    parts = [list(column) for column in zip(*whole.events(), strict=True)]
    events = Events(*(np.concatenate(column) for column in parts))
    shuffled = np.argsort(events.thread, kind="stable")
    pids, tids = whole.event_threads()
    log = GivenLog(
        Events(*(column[shuffled] for column in events)),
        pids, tids, whole.payloads, {},
    )  # fmt: skip
    again = Events(*(np.concatenate(column) for column in zip(*log.events(), strict=True)))
    for left, right in zip(events, again, strict=True):
        assert np.array_equal(left, right)


def test_threads_are_merged_at_the_end_of_time_too() -> None:
    """The one that is mentioned first comes first where times are the same, also at the last."""
    last = (1 << 64) - 1
    files = [buffer(call(1, delta=0), thread=1, tsc=last), buffer(call(2, delta=0), thread=2)]
    files[1] += buffer(call(3, delta=0), thread=2, seconds=4, tsc=last)
    files.append(buffer(call(4, delta=0), thread=3, tsc=last))
    opened = capture(header() + b"".join(files))
    assert rows(opened, "slices", "name") == [("2",), ("1",), ("3",), ("4",)]
