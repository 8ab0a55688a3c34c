"""What the tables of a trace mean: nesting, time, threads, names, flows, counters, annotations."""

from __future__ import annotations

import gzip
import random
import struct
from collections import Counter
from typing import Any

import numpy as np
import pytest

from fx_trace.format import MAGIC_BYTES
from fx_trace.read.capture import TraceCapture
from fx_trace.read.decoder import RecordEncoder
from fx_trace.read.tables import OBJECTS
from fx_trace.sample import sample
from fxframework.errors import LimitError, StrictError, UsageError
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import TABLE_CODES
from fxframework.model.selection import Selection

from ...cases import cases

MAGIC = {"record": "metadata", "kind": "trace_info", "info_type": 0, "magic": "0x16547846"}


def built(*records: dict[str, Any], big_endian: bool = False) -> bytes:
    """The bytes of these records, behind the magic number."""
    encoder = RecordEncoder(big_endian=big_endian)
    return b"".join(encoder.encode(record) for record in (MAGIC, *records))


def event(event: str, timestamp: int, name: str = "", **more: Any) -> dict[str, Any]:
    return {
        "record": "event",
        "event": event,
        "timestamp": timestamp,
        "thread": more.pop("thread", [1, 2]),
        "category": more.pop("category", "c"),
        "name": name,
        "args": more.pop("args", []),
        **more,
    }


def complete(start: int, end: int, name: str, **more: Any) -> dict[str, Any]:
    return event("duration_complete", start, name, end_timestamp=end, **more)


def arg(name: str, type: str, value: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "value": value}


def opened(*records: dict[str, Any], **limits: int) -> TraceCapture:
    return over(built(*records), **limits)


def over(data: bytes, *, strict: bool = False, **limits: int) -> TraceCapture:
    return TraceCapture(Source.open(data), OpenRequest(limits=Limits(**limits), strict=strict))


def rows(capture: TraceCapture, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Rows of a table, as Python values; code columns as text."""
    found = capture.table(table)
    kinds = {column.name: column.kind for column in found.schema.all_columns}
    return list(
        zip(
            *(
                found.texts(name) if kinds[name] in ("code", "text") else found[name].tolist()
                for name in columns
            ),
            strict=True,
        )
    )


def codes(capture: TraceCapture) -> dict[str, int]:
    capture.scan()
    return {code: n for code, n in capture.diagnostics.counts.items() if code != "FXT0202"}


# --- Slices ------------------------------------------------------------------------------------


def test_begins_and_ends_nest() -> None:
    capture = opened(
        event("duration_begin", 10, "outer"),
        event("duration_begin", 20, "inner"),
        event("duration_end", 30, "inner"),
        event("duration_end", 50, "outer"),
        event("duration_begin", 60, "after"),
        event("duration_end", 61),
    )
    assert rows(capture, "slices", "name", "ts", "dur", "depth", "parent", "kind") == [
        ("outer", 10, 40, 0, -1, 0),
        ("inner", 20, 10, 1, 0, 0),
        ("after", 60, 1, 0, -1, 0),
    ]
    assert codes(capture) == {}


def test_complete_events_written_at_their_ends_nest_by_time() -> None:
    # The usual order of a writer: the inner one ends, and is written, first.
    capture = opened(complete(20, 30, "inner"), complete(10, 50, "outer"), complete(55, 60, "next"))
    assert rows(capture, "slices", "name", "dur", "depth", "parent") == [
        ("inner", 10, 1, 1),
        ("outer", 40, 0, -1),
        ("next", 5, 0, -1),
    ]
    assert codes(capture) == {"FXT0304": 1}


@cases("whole", [True, False])
def test_a_step_back_in_time_is_reported_where_a_thread_steps_back(whole: bool) -> None:
    # The second record is older than the first, but of another thread, which is in order.
    capture = opened(
        complete(100, 110, "a"),
        complete(50, 60, "other", thread=[1, 9]),
        complete(200, 210, "b"),
        complete(150, 160, "late"),
        complete(140, 145, "later"),
    )
    if not whole:
        list(capture.batches("slices", 2))
    assert codes(capture) == {"FXT0304": 1}
    late = rows(capture, "slices", "name", "offset")[3]
    assert late[0] == "late"
    assert [d.offset for d in capture.diagnostics if d.code == "FXT0304"] == [late[1]]


def test_of_complete_events_that_begin_together_the_longer_is_outside() -> None:
    spans = (("short", 20), ("long", 40), ("middle", 30))
    capture = opened(*(complete(10, end, name) for name, end in spans))
    assert rows(capture, "slices", "name", "depth", "parent") == [
        ("short", 2, 2),
        ("long", 0, -1),
        ("middle", 1, 1),
    ]


def test_an_end_at_the_time_of_the_next_begin_makes_siblings() -> None:
    capture = opened(complete(10, 20, "a"), complete(20, 20, "point"), complete(20, 30, "b"))
    assert rows(capture, "slices", "name", "depth", "dur") == [
        ("a", 0, 10),
        ("point", 1, 0),
        ("b", 0, 10),
    ]


def test_threads_do_not_nest_into_each_other() -> None:
    capture = opened(complete(10, 50, "a"), complete(20, 30, "b", thread=[1, 3]))
    assert rows(capture, "slices", "name", "depth", "parent", "thread") == [
        ("a", 0, -1, 0),
        ("b", 0, -1, 1),
    ]


def test_what_does_not_match_is_kept_and_said() -> None:
    capture = opened(
        event("duration_end", 5),
        event("duration_begin", 10, "open"),
        complete(30, 20, "backwards"),
        event("async_end", 40, "never", id=7),
    )
    assert rows(capture, "slices", "name", "dur", "depth") == [
        ("open", -1, 0),
        ("backwards", 0, 1),
    ]
    assert codes(capture) == {"FXT0302": 1, "FXT0303": 1, "FXT0301": 1, "FXT0306": 1}
    by_code = {finding.code: finding for finding in capture.diagnostics}
    data = built()
    assert by_code["FXT0302"].offset == len(data)
    assert by_code["FXT0303"].offset == len(data) + len(built(event("duration_end", 5))) - len(data)


@cases("in_order", [True, False])
@cases(
    ("end", "differs"),
    [
        ({"name": "a"}, False),
        ({"name": ""}, False),
        ({"name": "b"}, True),
        ({"name": "a", "category": ""}, False),
        ({"name": "", "category": "d"}, True),
        ({"name": "b", "category": "d"}, True),
        ({"name": "<str#9>", "refs": {"name": 9}}, False),
    ],
)
def test_an_end_has_the_name_and_category_of_its_begin(
    end: dict[str, Any], differs: bool, in_order: bool
) -> None:
    records = [event("duration_begin", 10, "a"), event("duration_end", 20, **end)]
    capture = opened(*(records if in_order else records[::-1]))
    assert rows(capture, "slices", "name", "dur") == [("a", 10)]
    assert ("FXT0312" in codes(capture)) == differs
    if differs:
        found = next(found for found in capture.diagnostics if found.code == "FXT0312")
        before = built(*records[:1]) if in_order else built()
        assert found.offset == len(before)
        texts = ('"b"', '"a"') if end["name"] == "b" else ('"d"', '"c"')
        assert all(text in found.message for text in texts)


@cases("in_order", [True, False])
def test_ends_are_matched_by_name_on_request(in_order: bool) -> None:
    """What was begun inside is never closed; other ends close nothing, or the innermost."""
    unknown = {"name": "<str#9>", "refs": {"name": 9}}
    records = [
        event("duration_begin", 1, "outer"),
        event("duration_begin", 2, "mark"),
        event("duration_complete", 3, "whole", end_timestamp=90),
        event("duration_begin", 4, "inner"),
        event("duration_end", 5, "nobody's"),
        event("duration_end", 6, "inner"),
        event("duration_end", 7, "outer"),
        event("duration_begin", 8, "next"),
        event("duration_begin", 9, "last"),
        event("duration_end", 10, ""),
        event("duration_end", 11, **unknown),
    ]
    data = built(*(records if in_order else records[::-1]))
    request = OpenRequest(options={"match": "name"})
    capture = TraceCapture(Source.open(data), request)
    found = rows(capture, "slices", "ts", "name", "dur", "depth")
    assert sorted(found) == [
        (1, "outer", 6, 0), (2, "mark", -1, 1), (3, "whole", 87, 2), (4, "inner", 2, 3),
        (8, "next", 3, 0), (9, "last", 1, 1),
    ]  # fmt: skip
    counts = codes(capture)
    assert (counts["FXT0302"], counts["FXT0303"]) == (1, 1)
    assert "FXT0312" not in counts


def test_names_of_ends_are_compared_thread_by_thread_at_any_depth() -> None:
    chance = random.Random(312)
    made, stacks, wrong = [], {thread: list[str]() for thread in (3, 4, 5)}, 0
    for time in range(600):
        thread, name = chance.choice((3, 4, 5)), chance.choice("xyz")
        stack = stacks[thread]
        if stack and chance.random() < 0.5:
            wrong += stack.pop() != name
            kind = "duration_end"
        else:
            stack.append(name)
            kind = "duration_begin"
        made.append(event(kind, time, name, thread=[1, thread]))
    for records in (made, made[::-1]):
        data = built(*records)
        assert codes(over(data))["FXT0312"] == wrong


@cases(
    ("kinds", "expected"),
    [
        (("flow_begin", "flow_step", "flow_end"), {}),
        (("flow_end", "flow_begin"), {"FXT0304": 1}),
        (("flow_begin", "flow_step"), {"FXT0310": 1}),
        (("flow_step", "flow_end"), {"FXT0309": 1}),
        (("async_begin", "async_instant", "async_end"), {}),
        (("async_instant", "async_instant"), {"FXT0311": 1}),
    ],
)
def test_flows_and_operations_begin_and_end(
    kinds: tuple[str, ...], expected: dict[str, int]
) -> None:
    times = range(len(kinds)) if "FXT0304" not in expected else (20, 10)
    made = [event(kind, time, id=7) for kind, time in zip(kinds, times, strict=True)]
    other = [event("flow_begin", 90, id=8), event("flow_end", 91, id=8, thread=[3, 4])]
    capture = opened(*made, *other)
    assert codes(capture) == expected
    unpaired = expected.keys() - {"FXT0304"}
    found = {finding.offset for finding in capture.diagnostics if finding.code in unpaired}
    assert found == ({len(built())} if unpaired else set())


def test_complete_events_that_overlap_in_part_are_both_kept() -> None:
    capture = opened(complete(10, 30, "first"), complete(20, 40, "second"))
    assert rows(capture, "slices", "name", "dur", "depth", "parent") == [
        ("first", 20, 0, -1),
        ("second", 20, 1, 0),
    ]
    assert codes(capture) == {"FXT0305": 1}


def test_asynchronous_operations_match_by_process_name_and_id() -> None:
    capture = opened(
        event("async_begin", 10, "load", id=1),
        event("async_begin", 12, "load", id=2, thread=[1, 3]),
        event("async_begin", 13, "load", id=1, thread=[9, 9]),
        event("async_instant", 15, "load", id=1),
        event("async_end", 20, "load", id=1, thread=[1, 3]),
        event("async_begin", 21, "load", id=2),
        event("async_end", 30, "load", id=2),
        event("async_end", 40, "load", id=2),
    )
    assert rows(capture, "slices", "ts", "dur", "id", "kind", "depth", "parent") == [
        (10, 10, 1, 2, 0, -1),
        (12, 28, 2, 2, 0, -1),
        (13, -1, 1, 2, 0, -1),
        (21, 9, 2, 2, 1, 1),
    ]
    assert rows(capture, "instants", "ts", "id", "scope") == [(15, 1, 255)]


def test_depth_is_told_up_to_the_limit() -> None:
    nested = [complete(i, 100 - i, f"{i}") for i in range(6)]
    capture = opened(*nested, max_depth=3)
    assert [depth for (depth,) in rows(capture, "slices", "depth")] == [0, 1, 2, 3, 3, 3]
    assert codes(capture) == {"FXT0308": 2}


def test_very_deep_stacks_of_many_threads() -> None:
    deep = 300
    begins = [
        event("duration_begin", level, f"{level}", thread=[1, tid])
        for level in range(deep)
        for tid in (5, 6)
    ]
    ends = [
        event("duration_end", 2 * deep - level, "", thread=[1, tid])
        for level in reversed(range(deep))
        for tid in (5, 6)
    ]
    found = rows(opened(*begins, *ends), "slices", "depth", "dur")
    assert found == [(level, 2 * (deep - level)) for level in range(deep) for _ in "56"]


# --- Instants, counters, flows -----------------------------------------------------------------


def test_scopes_of_instants() -> None:
    capture = opened(
        event("instant", 1, "plain"),
        event("instant", 2, "process", scope="process"),
        event("instant", 3, "global", scope="global"),
        event("instant", 4, "odd", scope=77),
    )
    assert rows(capture, "instants", "name", "scope") == [
        ("plain", 0),
        ("process", 1),
        ("global", 2),
        ("odd", 77),
    ]
    assert codes(capture) == {"FXT0115": 1}


def test_a_part_has_the_arguments_of_counters_that_are_not_numbers_and_of_objects() -> None:
    counters = [
        event("counter", at, "mem", counter_id=3, category=category,
              args=[arg("unit", "string", unit), arg("used", "int32", at), arg("by", "koid", 5)])
        for at, category, unit in ((5, "c", "MiB"), (6, "other", "KiB"))
    ]  # fmt: skip
    named = {"record": "kernel_object", "object_type": 4, "koid": 5, "name": "channel",
             "args": [arg("peer", "koid", 6)]}  # fmt: skip
    capture = opened(named, *counters)
    whole = list(capture.table("args").texts("name"))
    assert whole == ["peer", "unit", "used", "by", "unit", "used", "by"]
    for part, expected in (
        (capture.between(None, None), whole),
        (capture.between(6, None), ["peer", "unit", "used", "by"]),
        (capture.select(Selection(categories=("other",))), ["peer", "unit", "used", "by"]),
    ):
        for size in (1, 2, 100):
            batches = list(part.batches("args", size))
            assert [name for batch in batches for name in batch.texts("name")] == expected
        shown = {text for text in part.table("args").texts("str") if text}
        assert shown == {"KiB"} | ({"MiB"} if expected is whole else set())


def test_findings_show_numbers_of_64_bits_without_a_sign() -> None:
    most = (1 << 64) - 1
    rate = {"record": "initialization", "ticks_per_second": 5}
    capture = opened(rate, {**rate, "ticks_per_second": most}, event("instant", 4, scope=most))
    capture.scan()
    assert [(found.code, found.message.rpartition(": ")[2]) for found in capture.diagnostics] == [
        ("FXT0209", f"{most} ticks per second"),
        ("FXT0115", f"scope {most}"),
    ]


def test_every_number_of_a_counter_is_a_row() -> None:
    big = (1 << 64) - 2
    capture = opened(
        event(
            "counter",
            5,
            "mem",
            counter_id=3,
            args=[
                arg("free", "int64", -4),
                arg("used", "uint64", big),
                arg("load", "double", 0.5),
                arg("unit", "string", "MiB"),
            ],
        )
    )
    assert rows(capture, "counters", "name", "series", "id", "value", "value_int", "is_int") == [
        ("mem", "free", 3, -4.0, -4, True),
        ("mem", "used", 3, float(big), -2, True),
        ("mem", "load", 3, 0.5, 0, False),
    ]
    assert rows(capture, "args", "table", "parent", "name") == [
        (TABLE_CODES["counters"], 0, "free"),
        (TABLE_CODES["counters"], 1, "used"),
        (TABLE_CODES["counters"], 2, "load"),
        (TABLE_CODES["counters"], -1, "unit"),
    ]
    assert codes(capture) == {"FXT0307": 1}


def test_flows_bind_to_the_slice_that_encloses_them() -> None:
    capture = opened(
        complete(10, 20, "a"),
        event("flow_begin", 12, "f", id=9),
        event("flow_step", 25, "f", id=9),
        complete(30, 40, "b", thread=[1, 3]),
        event("flow_end", 40, "f", id=9, thread=[1, 3]),
    )
    assert rows(capture, "flows", "ts", "id", "phase", "slice") == [
        (12, 9, 0, 0),
        (25, 9, 1, -1),
        (40, 9, 2, 1),
    ]


# --- Arguments and annotations -----------------------------------------------------------------


def test_arguments_of_every_type_and_of_ends() -> None:
    capture = opened(
        event(
            "duration_begin",
            1,
            "s",
            args=[
                arg("n", "null", None),
                arg("i", "int32", -5),
                arg("u", "uint32", 5),
                arg("I", "int64", -(1 << 63)),
                arg("U", "uint64", (1 << 64) - 1),
                arg("d", "double", "NaN"),
                arg("s", "string", "text"),
                arg("p", "pointer", 0xFFFF_FFFF_8000_0000),
                arg("k", "koid", 77),
                arg("b", "bool", True),
                arg("x", "blob", "00ff"),
            ],
        ),
        event("duration_end", 2, args=[arg("late", "int32", 1)]),
        event("duration_end", 3, args=[arg("lost", "int32", 2)]),
    )
    found = capture.table("args")
    assert found["parent"].tolist() == [0] * 12 + [-1]
    whole = dict(zip(found.texts("name"), found["int"].tolist(), strict=True))
    assert whole == {
        "n": 0, "i": -5, "u": 5, "I": -(1 << 63), "U": -1, "d": 0, "s": 0,
        "p": 0xFFFF_FFFF_8000_0000 - (1 << 64), "k": 77, "b": 1, "x": 0, "late": 1, "lost": 2,
    }  # fmt: skip
    assert found["uint"].tolist()[4] == (1 << 64) - 1
    assert np.isnan(found["float"][5])
    assert np.count_nonzero(found["float"]) == 1
    assert found.texts("str")[6] == "text"
    assert capture.strings.bytes_of(int(found["str"][10])) == b"\x00\xff"
    assert [code for code in found["str"].tolist() if code < 0] == [-1] * 11


def test_objects_annotate_what_comes_later() -> None:
    record = {"record": "userspace_object", "pointer": 4096, "process": 1, "name": "Widget"}
    capture = opened(
        event("instant", 1, "before", args=[arg("p", "pointer", 4096), arg("k", "koid", 77)]),
        {**record, "args": []},
        {"record": "kernel_object", "object_type": 4, "koid": 77, "name": "pipe", "args": []},
        event("instant", 2, "after", args=[arg("p", "pointer", 4096), arg("k", "koid", 77)]),
        event("instant", 3, "elsewhere", thread=[8, 9], args=[arg("p", "pointer", 4096)]),
    )
    assert rows(capture, "args", "name", "trace_annotation") == [
        ("p", None),
        ("k", None),
        ("p", "Widget"),
        ("k", "pipe"),
        ("p", None),
    ]
    assert rows(capture, "trace_objects", "kind", "type", "id", "pid", "name") == [
        (1, 0, 4096, 1, "Widget"),
        (0, 4, 77, 0, "pipe"),
    ]
    assert OBJECTS.name in capture.tables


# --- Threads, processes, scheduling --------------------------------------------------------------


def test_names_of_processes_and_threads_are_the_last_ones() -> None:
    process = {"record": "kernel_object", "object_type": 1, "koid": 1, "args": []}
    thread = {"record": "kernel_object", "object_type": 2, "koid": 2}
    capture = opened(
        {**process, "name": "old"},
        {**thread, "name": "main", "args": [arg("process", "koid", 1)]},
        event("instant", 1, "i"),
        {**process, "name": "new"},
        {"record": "kernel_object", "object_type": 2, "koid": 5, "name": "idle", "args": []},
    )
    assert rows(capture, "processes", "pid", "name") == [(1, "new"), (0, None)]
    assert rows(capture, "threads", "id", "pid", "tid", "name") == [
        (0, 1, 2, "main"),
        (1, 0, 5, "idle"),
    ]


def test_context_switches_find_their_threads_by_koid() -> None:
    capture = opened(
        event("instant", 1, "i", thread=[1, 20]),
        {"record": "kernel_object", "object_type": 2, "koid": 30, "name": "worker",
         "args": [arg("process", "koid", 3)]},
        {"record": "scheduling", "kind": "context_switch", "cpu": 700, "timestamp": 5,
         "outgoing_state": 3, "outgoing_tid": 20, "incoming_tid": 30,
         "args": [arg("incoming_weight", "int32", 8), arg("outgoing_weight", "int32", -2)]},
        {"record": "scheduling", "kind": "thread_wakeup", "cpu": 1, "timestamp": 6,
         "waking_tid": 40, "args": [arg("weight", "int32", 4)]},
        {"record": "scheduling", "kind": "legacy_context_switch", "cpu": 2, "timestamp": 7,
         "outgoing_state": 2, "outgoing": [1, 20], "incoming": [6, 60],
         "outgoing_priority": 3, "incoming_priority": 4},
    )  # fmt: skip
    threads = {row[0]: row[1:] for row in rows(capture, "threads", "id", "pid", "tid", "name")}
    found = rows(
        capture, "sched", "ts", "cpu", "kind", "prev", "next", "prev_state", "prev_priority",
        "next_priority",
    )  # fmt: skip
    tasks = [(threads.get(row[3]), threads.get(row[4])) for row in found]
    assert tasks == [
        ((1, 20, None), (3, 30, "worker")),
        (None, (0, 40, None)),
        ((1, 20, None), (6, 60, None)),
    ]
    assert [(*row[:3], *row[5:]) for row in found] == [
        (5, 700, 1, 3, -2, 8),
        (6, 1, 2, 255, -1, 4),
        (7, 2, 0, 2, 3, 4),
    ]


def test_a_wakeup_names_its_waker() -> None:
    def wakeup(*args: dict[str, Any]) -> dict[str, Any]:
        return {"record": "scheduling", "kind": "thread_wakeup", "cpu": 1, "timestamp": 6,
                "waking_tid": 40, "args": list(args)}  # fmt: skip

    largest = (1 << 64) - 1
    capture = opened(
        wakeup(arg("weight", "int32", 4)),
        wakeup(arg("waker", "koid", largest), arg("waker", "koid", 7)),
        wakeup(arg("waker", "string", "main"), arg("waker", "uint32", 9)),
        {"record": "scheduling", "kind": "context_switch", "cpu": 0, "timestamp": 7,
         "outgoing_state": 3, "outgoing_tid": 20, "incoming_tid": 30,
         "args": [arg("waker", "koid", 8)]},
        event("instant", 1, "i", args=[arg("waker", "koid", 5)]),
        wakeup(arg("waker", "int64", 11)),
    )  # fmt: skip
    assert rows(capture, "sched", "waker") == [(0,), (largest,), (9,), (0,), (11,)]
    parts = [batch["waker"] for batch in capture.batches("sched", rows=2)]
    assert np.concatenate(parts).tolist() == [0, largest, 9, 0, 11]


def test_threads_that_were_never_registered_are_told_apart() -> None:
    capture = opened(
        event("instant", 1, "a", thread="<thr#5>", refs={"thread": 5}),
        event("instant", 2, "b", thread="<thr#6>", refs={"thread": 6}),
        event("instant", 3, "c", thread="<thr#5>", refs={"thread": 5}),
    )
    assert [thread for (thread,) in rows(capture, "instants", "thread")] == [0, 1, 0]
    assert rows(capture, "threads", "name") == [("<thr#5>",), ("<thr#6>",)]
    assert codes(capture) == {"FXT0105": 3}


# --- Providers and clocks ------------------------------------------------------------------------


def test_each_provider_has_its_own_strings_threads_and_rate() -> None:
    def provider(number: int, rate: int, text: str, tid: int) -> list[dict[str, Any]]:
        return [
            {"record": "metadata", "kind": "provider_info", "id": number, "name": f"p{number}"},
            {"record": "initialization", "ticks_per_second": rate},
            {"record": "string", "index": 1, "value": text},
            {"record": "thread", "index": 1, "pid": number, "tid": tid},
        ]

    def mark(text: str, number: int, tid: int) -> dict[str, Any]:
        refs = {"name": 1, "thread": 1}
        return event("instant", 1000, text, category="", thread=[number, tid], refs=refs)

    capture = opened(
        *provider(1, 1000, "one", 11),
        mark("one", 1, 11),
        *provider(2, 500, "two", 22),
        mark("two", 2, 22),
        {"record": "metadata", "kind": "provider_section", "id": 1},
        mark("one", 1, 11),
    )
    assert rows(capture, "instants", "ts", "name", "thread") == [
        (1_000_000_000, "one", 0),
        (2_000_000_000, "two", 1),
        (1_000_000_000, "one", 0),
    ]
    facts = capture.summary().facts
    assert [(p["id"], p["name"], p["ticks_per_second"]) for p in facts["providers"]] == [
        (1, "p1", 1000),
        (2, "p2", 500),
    ]
    assert codes(capture) == {}


def test_base_tick_and_wall_time() -> None:
    capture = opened(
        {"record": "initialization", "ticks_per_second": 3, "base_tick": 100,
         "base_wall_ns": 1_650_000_000_000_000_000},
        event("instant", 101, "a"),
        event("instant", 99, "b"),
    )  # fmt: skip
    assert rows(capture, "instants", "ts", "ticks") == [(333_333_333, 101), (-333_333_334, 99)]
    assert capture.summary().facts["clocks"][0]["base_wall_ns"] == 1_650_000_000_000_000_000
    assert codes(capture) == {"FXT0204": 1}


@cases("rate", [10**9, 1, 3_000_000_000, 10**10, 1 << 63])
def test_durations_and_times_are_exact(rate: int) -> None:
    ticks = [0, 1, 7, 10**9 + 1, 123_456_789_012]
    capture = opened(
        {"record": "initialization", "ticks_per_second": rate},
        *(complete(t, t + 1_000_003, "x", thread=[1, t + 1]) for t in ticks),
    )
    expected = []
    for start in ticks:
        begin = start * 10**9 // rate
        end = (start + 1_000_003) * 10**9 // rate
        expected.append((begin, end - begin) if end <= NS_MAX else None)
    got = rows(capture, "slices", "ts", "dur")
    assert [row for row, want in zip(got, expected, strict=True) if want is not None] == [
        want for want in expected if want is not None
    ]


def test_times_beyond_63_bits_are_kept_and_said() -> None:
    capture = opened(
        {"record": "initialization", "ticks_per_second": 1},
        event("instant", 40_000_000_000, "far"),
        event("instant", 4, "near"),
        complete(5, 40_000_000_000, "long"),
    )
    assert rows(capture, "instants", "ts", "ticks") == [
        (NS_MAX, 40_000_000_000),
        (4_000_000_000, 4),
    ]
    assert codes(capture)["FXT0208"] == 1


@cases("limit", [0, 1, 3, 7, 1000])
@cases("whole", [True, False])
def test_each_time_beyond_63_bits_is_listed_up_to_the_limit(whole: bool, limit: int) -> None:
    late = struct.pack("<QQ", 4 | 2 << 4 | 1 << 24, 1 << 62)
    log = struct.pack("<QQ", 9 | 2 << 4 | 1 << 32, 1 << 62)
    rate = struct.pack("<QQQQQ", 1 | 2 << 4, 1, 3 | 3 << 4 | 1 << 16, 1, 2)
    capture = over(MAGIC_BYTES + rate + (late + log) * 5, max_findings=limit)
    if whole:
        capture.table("instants")
    capture.scan()
    assert codes(capture)["FXT0208"] == 10
    offsets = [found.offset for found in capture.diagnostics if found.code == "FXT0208"]
    assert offsets == [48 + 16 * n for n in range(min(limit or 10, 10))]


def test_a_rate_of_zero_leaves_the_rate_as_it_was() -> None:
    capture = opened(
        {"record": "initialization", "ticks_per_second": 1000},
        {"record": "initialization", "ticks_per_second": 0},
        event("instant", 1, "a"),
    )
    assert rows(capture, "instants", "ts") == [(1_000_000,)]
    assert codes(capture) == {"FXT0203": 1}


# --- The file as a whole ----------------------------------------------------------------------

MIXED = (
    {"record": "string", "index": 1, "value": "städtisch"},
    {"record": "thread", "index": 1, "pid": 1, "tid": 2},
    complete(10, 20, "städtisch", refs={"name": 1, "thread": 1},
             args=[arg("a", "string", "inline"), arg("d", "double", 1.5)]),
    {"record": "log", "timestamp": 12, "thread": [1, 2], "message": "grüße"},
    {"record": "blob", "name": "b", "blob_type": 1, "payload_hex": "010203"},
)  # fmt: skip


def test_big_endian_files_give_the_same_tables() -> None:
    little, big = over(built(*MIXED)), over(built(*MIXED, big_endian=True))
    assert (little.big_endian, big.big_endian) == (False, True)
    for name in little.schemas:
        for column in little.table(name).columns:
            left, right = little.table(name), big.table(name)
            if left.schema.column(column).kind == "code":
                assert left.texts(column) == right.texts(column)
            else:
                assert list(map(repr, left[column])) == list(map(repr, right[column]))
    assert rows(big, "logs", "message", "pid", "tid") == [("grüße", 1, 2)]


def test_gzip_is_unpacked_and_its_damage_said() -> None:
    data = built(*MIXED)
    packed = gzip.compress(data)
    assert rows(over(packed), "slices", "name") == [("städtisch",)]
    cut = over(packed[:-9])
    assert codes(cut)["FXF0101"] == 1


def test_blobs_say_where_their_bytes_are() -> None:
    data = built(*MIXED)
    capture = over(data)
    ((name, kind, size, place),) = rows(capture, "blobs", "name", "type", "size", "data")
    assert (name, kind, size) == ("b", 1, 3)
    start, length = place
    assert data[start : start + length] == b"\x01\x02\x03"


def test_strict_stops_at_the_first_loss() -> None:
    data = built(event("instant", 1, "a")) + bytes(7)
    with pytest.raises(StrictError) as stopped:
        over(data, strict=True).table("instants")
    assert stopped.value.code == "FXT0005"
    assert stopped.value.offset == len(data) - 7


def test_whole_tables_respect_max_memory_and_batches_stay_below_it() -> None:
    data = built(*(complete(i, i + 1, "x") for i in range(200)))
    capture = over(data, max_memory=1000)
    with pytest.raises(LimitError, match="max_memory"):
        capture.table("slices")
    assert sum(len(batch) for batch in capture.batches("slices", 7)) == 200


def test_long_strings_are_cut_where_the_limit_says() -> None:
    capture = opened(event("instant", 1, "abcdefghijkl"), max_string=10)
    assert rows(capture, "instants", "name") == [("abcdefghij",)]
    assert codes(capture) == {"FXT0116": 1}


def test_unknown_tables_are_refused_by_name() -> None:
    with pytest.raises(UsageError, match="slices"):
        opened().table("slice")


def test_findings_are_counted_beyond_those_that_are_kept() -> None:
    capture = opened(*(event("duration_end", i) for i in range(20)), max_findings=3)
    assert codes(capture) == {"FXT0302": 20}
    assert [found.code for found in capture.diagnostics].count("FXT0302") == 3


def test_unknown_references_are_counted_beyond_those_that_are_kept() -> None:
    thread, known, unknown = 3 << 24, 1 << 32, 2 << 48
    instants = struct.pack("<QQ", 4 | 2 << 4 | thread | known | unknown, 0) * 20
    string = struct.pack("<Q8s", 2 | 2 << 4 | 1 << 16 | 8 << 32, b"category")
    section = struct.pack("<Q", 1 << 4 | 2 << 16 | 7 << 20)
    of_provider = {"FXT0104": 40, "FXT0105": 40, "FXT0106": 20}
    for limit in (3, 30, 1000):
        capture = over(MAGIC_BYTES + string + instants + section + instants, max_findings=limit)
        assert of_provider.items() <= codes(capture).items()
        kept = Counter(found.code for found in capture.diagnostics)
        assert {code: kept[code] for code in of_provider} == {
            code: min(limit, count) for code, count in of_provider.items()
        }


def test_a_switch_beyond_all_nanoseconds_is_told_whoever_asks() -> None:
    records: list[dict[str, Any]] = [
        {"record": "initialization", "ticks_per_second": 1},
        {"record": "scheduling", "kind": "context_switch", "cpu": 0, "timestamp": 9_223_372_037,
         "outgoing_state": 3, "outgoing_tid": 1, "incoming_tid": 2, "args": []},
    ]  # fmt: skip
    with opened(*records) as whole, opened(*records) as batches:
        assert whole.table("sched")["ts"].tolist() == [NS_MAX]
        assert len(list(batches.batches("sched", 1))) == 1
        assert whole.diagnostics.counts == batches.diagnostics.counts == {"FXT0208": 1}


RATE = {"record": "initialization"}


@cases("introduced", ["provider_info", "provider_section"])
@cases(
    ("before", "own", "after", "expected"),
    [
        (10**6, None, None, 5000),  # for all that follows
        (10**6, 10**3, None, 5_000_000),  # but for a provider that says its own
        (None, None, 10**6, 5),  # what provider 0 says later does not reach back
        (None, None, None, 5),
    ],
)
def test_a_rate_before_the_first_provider(
    introduced: str, before: int | None, own: int | None, after: int | None, expected: int
) -> None:
    provider = {"record": "metadata", "kind": introduced, "id": 7}
    if introduced == "provider_info":
        provider["name"] = "p"
    records = [
        *([{**RATE, "ticks_per_second": before}] if before else []),
        provider,
        *([{**RATE, "ticks_per_second": own}] if own else []),
        event("instant", 5),
        *(
            [
                {"record": "metadata", "kind": "provider_section", "id": 0},
                {**RATE, "ticks_per_second": after},
            ]
            if after
            else []
        ),
    ]
    capture = opened(*records)
    assert rows(capture, "instants", "ts") == [(expected,)]
    decoded = [record for record in opened(*records).records() if record.to_json().get("event")]
    assert [record.ns for record in decoded] == [expected]
    codes = {found.code for found in capture.diagnostics}
    assert ("FXT0202" in codes) == (before is None and own is None)
    assert "FXT0209" not in codes


def test_profiler_records_have_a_table() -> None:
    head = {"record": "profiler", "timestamp": 4}
    module = {**head, "kind": "module", "module_id": 3, "name": "libc.so", "build_id": "beef"}
    mmap = {**head, "kind": "mmap", "module_id": 3, "flags": 5, "start_address": 1 << 63}
    capture = opened(
        {**RATE, "ticks_per_second": 10**6},
        {**module, "thread": [1, 2]},
        {**mmap, "process": 9, "range": 4096, "vaddr": 64},
        {**head, "kind": "backtrace", "thread": [1, 3], "flags": 1 << 20, "frames": [10, 11, 12]},
        {**head, "kind": "backtrace", "thread": [1, 3], "frames": []},
    )
    columns = ("kind", "ts", "pid", "module", "name", "build_id", "flags", "address", "size")
    assert rows(capture, "trace_profiler", *columns) == [
        (0, 4000, 1, 3, "libc.so", "beef", 0, 0, 0),
        (1, 4000, 9, 3, None, None, 5, 1 << 63, 4096),
        (2, 4000, 1, -1, None, None, 1 << 20, 0, 0),
        (2, 4000, 1, -1, None, None, 0, 0, 0),
    ]
    table = capture.table("trace_profiler")
    data = capture.source.data
    frames = [
        data[start : start + length].view("<u8").tolist()
        for start, length in table.array("frames").tolist()
    ]
    assert frames == [[], [], [10, 11, 12], []]
    tids = capture.table("threads").array("tid")
    threads = table.array("thread")
    assert [int(tids[thread]) if thread >= 0 else None for thread in threads] == [2, None, 3, 3]
    shown = [record.to_json() for record in capture.records()]
    assert [record.get("flags") for record in shown[3:]] == [5, 1 << 20, None]
    assert capture.diagnostics.counts == {"FXT0113": 1}


@cases(
    ("data", "code", "words"),
    [
        # An event of 3 words that claims an argument behind its thread and time.
        ((4 | 3 << 4 | 1 << 20, 5, 1), "FXT0004", "at least 4 words, the record has 3"),
        ((2 | 1 << 4 | 1 << 16 | 9 << 32,), "FXT0004", "at least 3 words, the record has 1"),
        ((4 | 3 << 4 | 4 << 16 | 1 << 24, 5, 3), "FXT0301", "the time of the end, not a length"),
    ],
)
def test_findings_say_what_is_wrong(data: tuple[int, ...], code: str, words: str) -> None:
    thread = (3 | 3 << 4 | 1 << 16, 1, 2)
    whole = built() + b"".join(word.to_bytes(8, "little") for word in (*thread, *data))
    by_tables = over(whole)
    by_tables.scan()
    found = {found.code: found.message for found in by_tables.diagnostics}
    assert words in found[code]
    if code == "FXT0004":
        by_records = over(whole)
        list(by_records.records())
        assert found[code] in {found.message for found in by_records.diagnostics}


def test_odd_bytes_are_reported_behind_damage_too() -> None:
    whole = built(event("instant", 1))
    for data in (whole + b"odd", whole[:-3], whole + (4 | 99 << 4).to_bytes(8, "little") + b"odd"):
        by_tables, by_records = over(data), over(data)
        by_tables.scan()
        list(by_records.records())
        for capture in (by_tables, by_records):
            (found,) = [found for found in capture.diagnostics if found.code == "FXT0005"]
            assert f"{len(data)} bytes" in found.message


def named_by_index(count: int) -> list[dict[str, Any]]:
    """Strings under few indices, each registered anew before the event that it names."""
    made: list[dict[str, Any]] = []
    for number in range(count):
        index = 1 + number % 5
        made.append({"record": "string", "index": index, "value": f"name {number % 40} é"})
        made.append(event("instant", number, f"name {number % 40} é", refs={"name": index}))
    return made


@cases("damage", [False, True])
def test_strings_that_are_hashed_ahead_have_the_codes_of_those_that_are_met(damage: bool) -> None:
    data = bytearray(built(*named_by_index(200)))
    if damage:  # sizes that lead astray, and strings of other bytes
        hand = random.Random(3)
        for _ in range(60):
            data[hand.randrange(16, len(data))] ^= 1 << hand.randrange(8)
    capture = over(bytes(data))
    expected = [
        record.name.encode(errors="surrogateescape").decode(errors="replace")
        for record in over(bytes(data)).records()
        if getattr(record, "event", "") == "instant"
    ]
    assert len(expected) > 80
    assert capture.table("instants").texts("name") == expected


def test_what_a_provider_registers_again_holds_when_its_section_goes_on() -> None:
    def section(number: int) -> dict[str, Any]:
        return {"record": "metadata", "kind": "provider_section", "id": number}

    def string(value: str) -> dict[str, Any]:
        return {"record": "string", "index": 7, "value": value}

    def named(value: str) -> dict[str, Any]:
        return event("instant", 1, value, refs={"name": 7})

    info = {"record": "metadata", "kind": "provider_info"}
    made = [{**info, "id": 1, "name": "one"}, string("first"), string("second"), named("second")]
    made += [{**info, "id": 2, "name": "two"}, named("<str#7>"), string("other"), named("other")]
    made += [section(1), named("second"), string("third"), section(2), named("other"), section(1)]
    made += [named("third"), {**info, "id": 1, "name": "one"}, named("<str#7>")]
    capture = opened(*made)
    expected = ["second", "<str#7>", "other", "second", "other", "third", "<str#7>"]
    assert capture.table("instants").texts("name") == expected
    assert capture.diagnostics.counts["FXT0104"] == 2


def test_what_plain_events_refer_to_is_reported_in_the_order_it_is_met() -> None:
    bad = built(event("instant", 1, "sound"), event("instant", 2, "12345678", category="abcdefgh"))
    data = bytearray(bad)
    data[data.index(b"12345678")] = 0xFF
    data[data.index(b"abcdefgh")] = 0xFE
    gone = event("instant", 3, "<str#9>", category="<str#8>", thread="<thr#4>",
                 refs={"name": 9, "category": 8, "thread": 4})  # fmt: skip
    capture = over(bytes(data) + built(gone, gone, gone)[8:])
    capture.scan()
    found = [(each.code, each.offset, each.message) for each in capture.diagnostics]
    again = over(bytes(data) + built(gone, gone, gone)[8:])
    for _ in again.records():
        pass
    assert [each[0] for each in found[1:3]] == ["FXT0107", "FXT0107"]
    assert len(found) == 1 + 2 + 3 * 3
    others = [(one.code, one.offset, one.message) for one in again.diagnostics]
    assert sorted(found[1:]) == sorted(others)


@cases("most", [16, 24, 32, 40, 64])
def test_a_limit_of_records_holds_for_tables_and_objects_alike(most: int) -> None:
    data = sample(20_000)
    request = OpenRequest(limits=Limits(max_record=most))
    tables, objects = (TraceCapture(Source.open(data), request) for _ in range(2))
    tables.scan()
    damaged = [record for record in objects.records() if record.to_json()["record"] == "damaged"]
    assert tables.diagnostics.counts.get("FXT0008", 0) == len(damaged)
    assert len(damaged) > 0 or most == 64


def test_slices_that_begin_at_one_time_are_the_same_in_batches() -> None:
    data = built(
        complete(50, 60, "late"),
        complete(40, 41, "short"),
        complete(40, 50, "long"),
        complete(40, 45, "middle"),
    )
    whole = over(data).table("slices")
    assert whole["depth"].tolist() == [0, 2, 0, 1]
    (batch,) = over(data).batches("slices")
    for column in ("ts", "dur", "depth", "parent"):
        assert batch[column].tolist() == whole[column].tolist(), column


@cases("start", [NS_MAX - 1, NS_MAX, 1 << 63, (1 << 64) - 4])
@cases("out_of_order", [False, True])
def test_slices_nest_at_the_last_time_there_is(start: int, out_of_order: bool) -> None:
    """What is open then has no end; that time looks the same."""
    kinds = ("begin", "begin", "complete", "end", "end", "end", "begin")
    events = [
        complete(start, start, "n") if kind == "complete" else event(f"duration_{kind}", start, "n")
        for kind in kinds
    ]
    earlier = [event("instant", 1), event("instant", 0)] if out_of_order else []
    with opened(*earlier, *events) as capture:
        slices = capture.table("slices")
        assert slices["depth"].tolist() == [0, 1, 2, 0]
        assert slices["parent"].tolist() == [-1, 0, 1, -1]
        assert capture.diagnostics.counts["FXT0302"] == 1
