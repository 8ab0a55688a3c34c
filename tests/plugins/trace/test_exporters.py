"""Chrome JSON and text: what they say of each record, and that nothing goes in silence."""

from __future__ import annotations

import base64
import json
import random
import re
import struct
import tracemalloc
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace import format as wire
from fx_trace import plugin
from fx_trace.export import blobs, chrome_json, nesting, text, windows
from fx_trace.export import events as events_of
from fx_trace.export.nesting import ENDLESS, ON_THREAD, Nesting
from fx_trace.read.decoder import RecordEncoder
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.exporters import chrome as any_chrome
from fxframework.exporters import text as any_text
from fxframework.io.sink import Sink
from fxframework.kit import in_time
from fxframework.kit.in_time import Events
from fxframework.model.capture import Capture

from ...cases import cases

MAGIC = {"record": "metadata", "kind": "trace_info", "info_type": 0, "magic": "0x16547846"}
T = [1000, 1001]
Shown = dict[str, Any]
EXPORTS: dict[str, Any] = {"json": chrome_json.JsonExport, "text": text.TextExport}


def trace(*records: Shown) -> bytes:
    encoder = RecordEncoder()
    return b"".join(encoder.encode(record) for record in (MAGIC, *records))


def event(kind: str, ticks: int, name: str, args: Iterable[Any] = (), **more: Any) -> Shown:
    shown = [{"name": n, "type": t, "value": v} for n, t, v in args]
    thread = more.pop("thread", T)
    return {
        "record": "event",
        "event": kind,
        "timestamp": ticks,
        "thread": thread,
        "category": more.pop("category", "cat"),
        "name": name,
        "args": shown,
        **more,
    }


def export(which: str, data: bytes | Capture) -> tuple[bytes, Mapping[str, int]]:
    sink = Sink.memory()
    opened = data if isinstance(data, Capture) else fxf.open(data, format="trace")
    with opened as capture:
        session = EXPORTS[which](sink, {})
        session.write(capture)
        return sink.getvalue(), session.close()


def chrome(*records: Shown) -> tuple[list[Shown], list[Shown], Mapping[str, int]]:
    """Events, system events, and what was left out."""
    output, dropped = export("json", trace(*records))
    document = json.loads(output)
    assert document["displayTimeUnit"] == "ns"
    assert document["systemTraceEvents"]["type"] == "fuchsia"
    return document["traceEvents"], document["systemTraceEvents"]["events"], dropped


def lines(*records: Shown) -> list[str]:
    output, _ = export("text", trace(*records))
    return [line.strip() for line in output.decode().splitlines()]


# --- Chrome JSON ---------------------------------------------------------------------------------


def test_it_is_what_trace2json_writes() -> None:
    """The expectation of trace2json's own test, at 24 MHz, to the nanosecond."""
    tick = 24_000_000 // 1_000_000
    events, system, dropped = chrome(
        {"record": "initialization", "ticks_per_second": 24_000_000},
        event("duration_begin", 0, "begin_end_ref"),
        event("duration_complete", 110_000 * tick, "complete", end_timestamp=150_000 * tick),
        event("async_begin", 500_000 * tick + 5, "async", id=1),
        event("async_end", 600_016 * tick, "async", id=1),
        event("duration_end", 1_000_000 * tick, "begin_end_ref"),
        {
            "record": "scheduling", "kind": "legacy_context_switch", "cpu": 0, "timestamp": 1,
            "outgoing_state": 2, "outgoing": [4660, 17185], "incoming": T,
            "outgoing_priority": 0, "incoming_priority": 20,
        },
    )  # fmt: skip
    common = {"cat": "cat", "pid": 1000, "tid": 1001}
    assert events == [
        {**common, "name": "begin_end_ref", "ts": 0.0, "ph": "B"},
        {**common, "name": "complete", "ts": 110000.0, "ph": "X", "dur": 40000.0},
        {**common, "name": "async", "ts": 500000.208, "ph": "b", "id": 1},
        {**common, "name": "async", "ts": 600016.0, "ph": "e", "id": 1},
        {**common, "name": "begin_end_ref", "ts": 1000000.0, "ph": "E"},
    ]
    assert system == [
        {
            "ph": "k",
            "ts": 0.041,
            "cpu": 0,
            "out": {"pid": 4660, "tid": 17185, "state": 2, "prio": 0},
            "in": {"pid": 1000, "tid": 1001, "prio": 20},
        }
    ]
    assert dropped == {}


def test_arguments_have_the_forms_of_trace2json() -> None:
    values = [
        ("null", "null", None),
        ("int32", "int32", -3),
        ("uint32", "uint32", 4_000_000_000),
        ("int64", "int64", -(1 << 63)),
        ("uint64", "uint64", (1 << 64) - 1),
        ("double", "double", 0.1),
        ("nan", "double", "NaN"),
        ("far", "double", "-Infinity"),
        ("string", "string", 'a "b"\n\\'),
        ("pointer", "pointer", 0xABC),
        ("koid", "koid", 77),
        ("bool", "bool", True),
        ("blob", "blob", "c0ffee"),
    ]
    [shown], _, _ = chrome(event("instant", 5, "i", values))
    assert shown["args"] == {
        "null": None,
        "int32": -3,
        "uint32": 4_000_000_000,
        "int64": -(1 << 63),
        "uint64": (1 << 64) - 1,
        "double": 0.1,
        "nan": "NaN",
        "far": "-Infinity",
        "string": 'a "b"\n\\',
        "pointer": "0xabc",
        "koid": "#77",
        "bool": True,
        "blob": base64.b64encode(bytes.fromhex("c0ffee")).decode(),
    }


@cases("value", [(1 << 63) - 1, 1 << 63, (1 << 63) + 1, 10**19, (1 << 64) - 1])
def test_values_of_counters_are_exact(value: int) -> None:
    args = [("n", "uint64", value)]
    output, _ = export("json", trace(event("counter", 4, "c", args, counter_id=1)))
    written = re.search(r'"args":\{"n":([^}]*)\}', output.decode())
    assert written
    assert Decimal(written[1]) == value
    # Perfetto reads digits alone as int64.
    assert written[1].isdigit() == (value < 1 << 63)


def test_a_name_that_stands_again_is_numbered() -> None:
    [shown], _, _ = chrome(event("instant", 5, "i", [("a", "int32", n) for n in (1, 2, 3)]))
    assert shown["args"] == {"a": 1, "a#2": 2, "a#3": 3}


def test_scopes_ids_and_phases() -> None:
    events, _, dropped = chrome(
        event("instant", 1, "t"),
        event("instant", 2, "p", scope="process"),
        event("instant", 3, "g", scope="global"),
        event("counter", 4, "c", [("n", "int32", 5), ("s", "string", "x")], counter_id=255),
        event("counter", 5, "d", [("n", "double", 0.5)], counter_id=0),
        event("counter", 6, "none", [("s", "string", "x")], counter_id=0),
        event("async_instant", 7, "n", id=1 << 63),
        event("flow_begin", 8, "f", id=9),
        event("flow_step", 9, "f", id=9),
        event("flow_end", 10, "f", id=9),
        {"record": "log", "timestamp": 11, "thread": T, "message": "a\nb"},
    )
    shown = [
        {k: v for k, v in each.items() if k not in {"cat", "pid", "tid", "ts"}} for each in events
    ]
    assert shown == [
        {"name": "t", "ph": "i", "s": "t"},
        {"name": "p", "ph": "i", "s": "p"},
        {"name": "g", "ph": "i", "s": "g"},
        {"name": "c", "ph": "C", "id": "0xff", "args": {"n": 5, "s": "x"}},
        {"name": "d", "ph": "C", "args": {"n": 0.5}},
        {"name": "n", "ph": "n", "id": 1 << 63},
        {"name": "f", "ph": "s", "id": "9"},
        {"name": "f", "ph": "t", "id": "9"},
        {"name": "f", "ph": "f", "bp": "e", "id": "9"},
        {"name": "log", "ph": "i", "s": "g", "args": {"message": "a\nb"}},
    ]
    assert dropped == {"counters without a number": 1}


def _phases(events: Iterable[Shown]) -> list[tuple[str, str, float]]:
    return [(each["ph"], each["name"], each["ts"]) for each in events]


def test_begins_and_ends_stand_so_that_sorting_by_time_nests_them() -> None:
    """Slices that touch, one of no length at the end of another, and a parent recorded last."""
    events, _, _ = chrome(
        event("duration_begin", 2000, "child"),
        event("duration_end", 3000, "child"),
        event("duration_begin", 3000, "empty"),
        event("duration_end", 3000, "empty"),
        event("duration_end", 3000, "outer"),
        event("duration_begin", 3000, "next"),
        event("duration_end", 4000, "next"),
        event("duration_begin", 1000, "outer"),
    )
    expected = [
        ("B", "outer", 1.0),
        ("B", "child", 2.0),
        ("E", "child", 3.0),
        ("B", "empty", 3.0),
        ("E", "empty", 3.0),
        ("E", "outer", 3.0),
        ("B", "next", 3.0),
        ("E", "next", 4.0),
    ]
    assert _phases(events) == expected
    assert sorted(expected, key=lambda each: each[2]) == expected


def test_an_open_begin_stays_open_and_arguments_of_an_end_stay_with_it() -> None:
    events, _, dropped = chrome(
        event("duration_end", 500, "stray", [("lost", "int32", 1)]),
        event("duration_begin", 1000, "open"),
        event("duration_begin", 2000, "shut", [("in", "int32", 1)]),
        event("duration_end", 3000, "shut", [("out", "int32", 2)]),
        event("async_begin", 4000, "op", id=7),
        event("async_end", 5000, "op", [("rc", "int32", 0)], id=7),
        event("async_end", 6000, "other", id=7),
    )
    assert _phases(events) == [
        ("B", "open", 1.0),
        ("B", "shut", 2.0),
        ("b", "op", 4.0),
        ("e", "op", 5.0),
        ("E", "shut", 3.0),
    ]
    assert [each.get("args") for each in events] == [None, {"in": 1}, None, {"rc": 0}, {"out": 2}]
    assert dropped == {"ends that close nothing": 2, "arguments of ends that close nothing": 1}


def test_a_flow_stands_within_its_slice() -> None:
    events, _, _ = chrome(
        event("duration_begin", 1000, "a"),
        event("duration_end", 2000, "a"),
        event("flow_begin", 2000, "f", id=1),
        event("duration_begin", 2000, "b"),
        event("flow_end", 2000, "f", id=1),
        event("duration_end", 2000, "b"),
    )
    assert [ph for ph, *_ in _phases(events)] == ["B", "E", "s", "B", "f", "E"]


@cases("rows", [1, 100])
def test_an_asynchronous_end_stands_at_its_time(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fx_trace.export.windows.ROWS", rows)
    events, _, _ = chrome(
        event("async_begin", 1000, "op", id=7),
        event("async_begin", 1500, "other", id=8),
        event("async_instant", 2000, "op", id=7),
        event("instant", 2500, "i"),
        event("async_end", 3000, "op", [("rc", "int32", 0)], id=7),
        event("async_begin", 3000, "op", id=7),
        event("async_end", 3000, "op", id=7),
        event("instant", 3500, "i"),
        event("async_end", 4000, "other", id=8),
    )
    assert _phases(events) == [
        ("b", "op", 1.0), ("b", "other", 1.5), ("n", "op", 2.0), ("i", "i", 2.5), ("e", "op", 3.0),
        ("b", "op", 3.0), ("e", "op", 3.0), ("i", "i", 3.5), ("e", "other", 4.0),
    ]  # fmt: skip


def test_a_complete_event_that_ends_before_it_begins_has_no_length() -> None:
    [shown], _, dropped = chrome(event("duration_complete", 10, "x", end_timestamp=5))
    assert shown["dur"] == 0
    assert not dropped


def test_the_longest_name_wins() -> None:
    def process(koid: int, name: str) -> Shown:
        return {"record": "kernel_object", "object_type": 1, "koid": koid, "name": name, "args": []}

    def thread(koid: int, name: str, pid: int) -> Shown:
        arg = {"name": "process", "type": "koid", "value": pid}
        return {
            "record": "kernel_object", "object_type": 2, "koid": koid, "name": name, "args": [arg],
        }  # fmt: skip

    events, system, dropped = chrome(
        process(1000, "audio_core.cm"),
        process(1000, "audio"),
        process(0, "idle"),
        thread(1001, "mixer", 1000),
        thread(1001, "mix", 1000),
        {"record": "kernel_object", "object_type": 19, "koid": 5, "name": "fifo", "args": []},
        event("instant", 5, "i"),
    )
    assert system == [
        {"ph": "p", "pid": 0, "name": "idle", "sort_index": -1},
        {"ph": "p", "pid": 1000, "name": "audio_core.cm"},
        {"ph": "t", "pid": 1000, "tid": 1001, "name": "mixer"},
    ]
    names = {(each["name"], each["pid"]): each["args"] for each in events if each["ph"] == "M"}
    assert names == {
        ("process_name", 0): {"name": "idle"},
        ("process_name", 1000): {"name": "audio_core.cm"},
        ("thread_name", 1000): {"name": "mixer"},
    }
    assert dropped == {"kernel objects other than processes and threads": 1}


def test_switches_and_wakeups_keep_their_arguments() -> None:
    weight = {"name": "incoming_weight", "type": "int32", "value": 7}
    waker = {"name": "waker", "type": "koid", "value": 12}
    _, system, _ = chrome(
        {
            "record": "scheduling", "kind": "context_switch", "cpu": 3, "timestamp": 1000,
            "outgoing_state": 3, "outgoing_tid": 11, "incoming_tid": 12, "args": [weight],
        },
        {
            "record": "scheduling", "kind": "thread_wakeup", "cpu": 3, "timestamp": 2000,
            "waking_tid": 11, "args": [waker],
        },
    )  # fmt: skip
    assert system == [
        {
            "ph": "k", "ts": 1.0, "cpu": 3, "out": {"tid": 11, "state": 3},
            "in": {"tid": 12, "prio": 7}, "args": {"incoming_weight": 7},
        },
        {"ph": "w", "ts": 2.0, "cpu": 3, "tid": 11, "args": {"waker": "#12"}},
    ]  # fmt: skip


def test_blobs_that_trace2json_writes_and_those_that_it_leaves_out() -> None:
    branches = struct.pack("<HHIQQ3Q", 2, 1, 0, 99, 7, 10, 20, 30)

    def blob(kind: int, payload: bytes) -> Shown:
        return {
            "record": "blob", "name": "b", "blob_type": kind, "size": len(payload),
            "payload_hex": payload.hex(),
        }  # fmt: skip

    def large(category: str) -> Shown:
        return {
            "record": "large", "large_type": 0, "blob_format": 0, "category": category, "name": "m",
            "timestamp": 5000, "thread": T, "args": [], "size": 3, "payload_hex": "010203",
        }  # fmt: skip

    output, dropped = export(
        "json",
        trace(
            event("instant", 5, "i"),
            blob(2, branches),
            blob(2, branches[:-1]),
            blob(1, b"x"),
            large("fidl:blob"),
            large("other"),
            {
                "record": "userspace_object", "pointer": 1, "process": 2, "name": "o", "args": [],
            },
        ),
    )  # fmt: skip
    document = json.loads(output)
    assert document["lastBranch"] == {
        "records": [
            {
                "cpu": 2,
                "aspace": 7,
                "event_time": 99,
                "branches": [{"from": 10, "to": 20, "info": 30}],
            }
        ]
    }
    assert document["traceEvents"][-1] == {
        "ph": "O",
        "id": "",
        "cat": "fidl:blob",
        "name": "m",
        "ts": 5.0,
        "pid": 1000,
        "tid": 1001,
        "blob": "AQID",
    }
    assert dropped == {"blobs": 2, "large blobs": 1, "userspace objects": 1}


def test_names_that_are_not_utf_8_make_json_all_the_same() -> None:
    data = trace(event("instant", 5, "names", [("abcdefgh", "string", "valuable")]))
    data = data.replace(b"names", b"n\xff\0\x7f\\").replace(b"abcdefgh", b"\xc3(bcd\n\x1b\\")
    data = data.replace(b"valuable", b'\xed\xa0\x80val"\\')
    output, _ = export("json", data)
    [shown] = json.loads(output)["traceEvents"]
    assert shown["name"] == "n\ufffd\0\x7f\\"
    assert shown["args"] == {"\ufffd(bcd\n\x1b\\": '\ufffd\ufffd\ufffdval"\\'}
    text, _ = export("text", data)
    assert text.decode().count("\n") == 1


# --- Text ----------------------------------------------------------------------------------------


def test_text_is_one_line_an_event_in_order_of_time() -> None:
    assert lines(
        {
            "record": "kernel_object", "object_type": 1, "koid": 1000, "name": "app", "args": [],
        },
        event("duration_complete", 2_500, "draw", [("n", "int32", 1)], end_timestamp=1_002_500),
        event("instant", 1, "go", [("k", "koid", 1000), ("s", "string", "a b")], scope="global"),
        event("counter", 3_000_000_000, "mem", [("a", "int32", 1), ("b", "double", 0.5)],
              counter_id=4),
        event("async_begin", 5, "load", id=6, category=""),
        event("flow_begin", 2_500, "f", id=7),
        {"record": "log", "timestamp": 9, "thread": [1, 2], "message": "two\nlines"},
        {
            "record": "scheduling", "kind": "context_switch", "cpu": 3, "timestamp": 10,
            "outgoing_state": 3, "outgoing_tid": 1001, "incoming_tid": 12, "args": [],
        },
        {
            "record": "scheduling", "kind": "thread_wakeup", "cpu": 0, "timestamp": 11,
            "waking_tid": 1001, "args": [{"name": "weight", "type": "int32", "value": 2}],
        },
    ) == [
        '0.000000001 app(1000)/1001 instant scope=global cat:go k=#1000(app) s="a b"',
        "0.000000005 app(1000)/1001 async id=6 load unclosed",
        r'0.000000009 1/2 log "two\nlines"',
        "0.000000010 cpu3 switch app(1000)/1001 blocked -> 0/12",
        "0.000000011 cpu0 wakeup app(1000)/1001 weight=2",
        "0.000002500 app(1000)/1001 slice cat:draw dur=1ms n=1",
        "0.000002500 app(1000)/1001 flow-begin id=7 cat:f",
        "3.000000000 app(1000)/1001 counter id=4 cat:mem a=1 b=0.5",
    ]  # fmt: skip


@cases("export", [chrome_json.JsonExport, any_chrome.ChromeExport], ids=["trace", "any"])
def test_threads_that_were_never_registered_have_tids_of_their_own(export: Any) -> None:
    # Begins and ends of one tid are matched by readers, whatever threads they are of.
    words = [(4 | 2 << 4 | 2 << 16 | index << 24, 10 * index) for index in (5, 6, 5, 7)]
    sink = Sink.memory()
    with fxf.open(wire.MAGIC_BYTES + struct.pack("<8Q", *sum(words, ()))) as capture:
        session = export(sink, {"sched": "both"})
        session.write(capture)
        session.close()
    events = json.loads(sink.getvalue())["traceEvents"]
    own = {each["args"]["name"]: each["tid"] for each in events if each["ph"] == "M"}
    assert own == {"<thr#5>": 0, "<thr#6>": (1 << 31) - 1, "<thr#7>": (1 << 31) - 2}
    shown = sorted((each["ts"], each["tid"]) for each in events if each["ph"] in "BX")
    at = {"<thr#5>": 0.05, "<thr#6>": 0.06, "<thr#7>": 0.07}
    assert shown == sorted((at[name], own[name]) for name in ("<thr#5>", *own))


def test_text_shows_threads_that_were_never_registered() -> None:
    [line] = lines(event("instant", 5, "i", thread="<thr#9>", refs={"thread": 9}))
    assert line == "0.000000005 <thr#9> instant cat:i"


# --- Both ----------------------------------------------------------------------------------------


def _long(count: int) -> bytes:
    """Events of three threads whose times jump about, with arguments and open ends."""
    chance = random.Random(7)
    records = []
    for number in range(count):
        ticks = chance.randrange(10 * count)
        kind = chance.choice(["duration_begin", "duration_end", "instant", "duration_complete"])
        more = {"end_timestamp": ticks + 3} if kind == "duration_complete" else {}
        args = [("n", "int32", number)]
        records.append(
            event(kind, ticks, f"e{number % 9}", args, thread=[1, 2 + number % 3], **more)
        )
    return trace(*records)


@pytest.mark.parametrize("which", ["json", "text"])
def test_what_does_not_fit_into_memory_comes_out_the_same(
    which: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small the batches are, and however soon events go to a file."""
    data = _long(400)
    expected = export(which, data)
    monkeypatch.setattr(windows, "ROWS", 7)
    assert export(which, data) == expected
    monkeypatch.setattr(in_time, "MOST_WAITING", 20)
    for events, nbytes in ((7, 1 << 18), (1 << 12, 150)):
        monkeypatch.setattr(in_time, "PIECE", events)
        monkeypatch.setattr(in_time, "PIECE_BYTES", nbytes)
        assert export(which, data) == expected
    monkeypatch.setattr(nesting, "PIECE", 3)
    monkeypatch.setattr(nesting, "SPARE", 0)
    monkeypatch.setattr(events_of, "TEXT_BYTES", 50)
    assert export(which, data) == expected


def test_ends_that_wait_for_long_keep_their_arguments() -> None:
    """Slices of two threads in turn, so that no end is written in the order that they began."""
    records = [event("duration_begin", 0, "s0", thread=[1, 2])]
    count = 1500
    for number in range(1, count):
        text = [("end", "string", f"{number - 1} " + "x" * 1000)]
        begun, ended = [1, 2 + number % 2], [1, 2 + (number - 1) % 2]
        records.append(event("duration_begin", 2 * number, f"s{number}", thread=begun))
        records.append(event("duration_end", 2 * number + 1, f"s{number - 1}", text, thread=ended))
    events, _, _ = chrome(*records)
    ends = [each["args"]["end"].split()[0] for each in events if each["ph"] == "E"]
    assert sorted(map(int, ends)) == list(range(count - 1))
    assert [each["name"] for each in events if each["ph"] == "E"] == [f"s{end}" for end in ends]


@given(st.permutations(range(12)))
def test_text_is_in_order_of_time_whatever_the_file_is_in(order: list[int]) -> None:
    shown = lines(*(event("instant", 10 * place, f"i{place}") for place in order))
    assert [line.split(":")[-1] for line in shown] == [f"i{place}" for place in range(12)]


@cases("which", ["json", "text"])
def test_nothing_to_write_is_refused(which: str) -> None:
    for data in (trace(), trace({"record": "string", "index": 1, "value": "x"}), b"\xff" * 16):
        with pytest.raises(WriteRefusedError, match="nothing to write"):
            export(which, data)


def test_a_second_capture_is_refused_by_json_and_follows_in_text() -> None:
    data = trace(event("instant", 5, "i"))
    sink = Sink.memory()
    with fxf.open(data, format="trace") as first, fxf.open(data, format="trace") as second:
        session = chrome_json.JsonExport(sink, {})
        session.write(first)
        with pytest.raises(WriteRefusedError, match="one capture"):
            session.write(second)
        sink = Sink.memory()
        session = text.TextExport(sink, {})
        session.write(first)
        session.write(second)
    assert len(sink.getvalue().splitlines()) == 2


@cases("which", ["json", "text"])
def test_a_stretch_of_time_is_exported_as_it_is(which: str) -> None:
    data = trace(
        event("duration_begin", 0, "outer", [("a", "int32", 1)]),
        event("instant", 50, "early"),
        event("duration_complete", 100, "inner", [("b", "int32", 2)], end_timestamp=200),
        event("instant", 150, "mid"),
        event("duration_end", 300, "outer", [("c", "int32", 3)]),
        event("duration_complete", 400, "late", end_timestamp=500),
    )
    window = fxf.open(data, format="trace").between(120, 350)
    text = export(which, window)[0].decode()
    assert [name for name in ("outer", "early", "inner", "mid", "late") if name in text] == [
        "outer",
        "inner",
        "mid",
    ]
    sign = ":" if which == "json" else "="
    assert all(f"{name}{sign}" in text.replace('"', "") for name in "abc")


def test_blobs_of_one_name_are_joined() -> None:
    """Perfetto packets come in chunks, in files that may hold nothing else."""
    chunks = [b"\n\x05first", b"\n\x06second", b"\n\x05third"]
    records = [{"record": "metadata", "kind": "trace_info", "info_type": 0, "magic": "0x16547846"}]
    records += [
        {"record": "blob", "name": "perfetto", "blob_type": 3, "payload_hex": chunk.hex()}
        for chunk in chunks
    ]
    encoder = RecordEncoder()
    data = b"".join(encoder.encode(record) for record in records)
    other = encoder.encode(
        {"record": "blob", "name": "other", "blob_type": 1, "payload_hex": b"?".hex()}
    )
    for options in ({}, {"name": "perfetto"}):
        sink = Sink.memory()
        with fxf.open(data, format="trace") as capture:
            session = blobs.BlobExport(sink, options)
            session.write(capture)
            assert session.close() == {}
        assert sink.getvalue() == b"".join(chunks)
    sink = Sink.memory()
    with fxf.open(data + other, format="trace") as capture:
        with pytest.raises(WriteRefusedError, match="several names: 'perfetto', 'other'"):
            blobs.BlobExport(sink, {}).write(capture)
        with pytest.raises(WriteRefusedError, match="no blobs named 'absent'"):
            blobs.BlobExport(sink, {"name": "absent"}).write(capture)
        session = blobs.BlobExport(sink, {"name": "perfetto"})
        session.write(capture)
        assert session.close() == {"blobs of other names": 1}


def test_blobs_without_a_name_are_not_taken_for_those_that_nobody_named(tmp_path: Path) -> None:
    # Fuchsia's trace engine fills what is left of a buffer with blobs that have no name.
    encoder = RecordEncoder()
    data = wire.MAGIC_BYTES + b"".join(
        encoder.encode(
            {"record": "blob", "name": name, "blob_type": 1, "payload_hex": payload.hex()}
        )
        for name, payload in (("perfetto", b"packets!"), ("", bytes(8)))
    )
    out = tmp_path / "out.blob"
    with pytest.raises(WriteRefusedError, match="several names: '', 'perfetto'"):
        fxf.convert(data, out)
    fxf.convert(data, out, name="")
    assert out.read_bytes() == bytes(8)


@cases(
    ("suffix", "lost"),
    [
        ("pftrace", {"flows": 1, "sched": 2, None: 2}),
        ("otlp-traces.json", {"flows": 1, None: 2}),
    ],
)
def test_arguments_that_nothing_in_the_output_holds_are_counted(
    tmp_path: Path, suffix: str, lost: dict[str | None, int]
) -> None:
    def some(**more: Any) -> dict[str, Any]:
        args = [{"name": "note", "type": "string", "value": "x"}]
        place = {"thread": [1, 2], "category": "c", "name": "n"}
        return {"record": "event", "timestamp": 5, "args": args, **place, **more}

    encoder = RecordEncoder()
    switch = {"cpu": 0, "timestamp": 6, "outgoing_state": 3, "outgoing_tid": 2, "incoming_tid": 3}
    weight = {"name": "incoming_weight", "type": "int32", "value": 7}
    records = [
        some(event="duration_complete", end_timestamp=9),
        some(event="flow_begin", id=1),
        some(event="counter", counter_id=1),
        some(event="duration_end", timestamp=20),
        {**some(), "record": "scheduling", "kind": "context_switch", **switch},
    ]
    for field in ("thread", "category", "name"):
        del records[-1][field]
    records[-1]["args"].append(weight)
    data = wire.MAGIC_BYTES + b"".join(map(encoder.encode, records))
    report = fxf.convert(data, tmp_path / f"out.{suffix}")
    named = {(name and f"arguments of {name}") or "arguments that belong to no row": count
             for name, count in lost.items()}  # fmt: skip
    assert {k: v for k, v in report.dropped.items() if k.startswith("arguments")} == named


def test_memory_does_not_grow_with_what_a_text_multiplies() -> None:
    """One long string, referred to again and again: text, JSON and record JSON are written in
    pieces of some megabytes."""
    long = "n" * 30_000
    encoder = RecordEncoder()
    data = b"".join(
        encoder.encode(record)
        for record in [
            {"record": "metadata", "kind": "trace_info", "info_type": 0, "magic": "0x16547846"},
            {"record": "string", "index": 1, "value": long},
            {"record": "thread", "index": 1, "pid": 1, "tid": 2},
        ]
    )
    event = wire.RecordType.EVENT | 2 << 4 | 1 << 24 | 1 << 32 | 1 << 48
    for at in range(4000):
        data += event.to_bytes(8, "little") + at.to_bytes(8, "little")

    class Counting:
        def __init__(self) -> None:
            self.written = self.largest = 0

        def write(self, data: Any) -> None:
            self.written += len(data)
            self.largest = max(self.largest, len(data))

    exports: list[Any] = [text.TextExport, chrome_json.JsonExport]
    for open_one in (*exports, any_text.TextExport, any_chrome.ChromeExport):
        sink = Counting()
        with fxf.open(data, format="trace") as capture:
            tracemalloc.start()
            open_one(sink, {}).write(capture)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert sink.written > 4000 * 60_000
        assert sink.largest < 24 << 20
        assert peak < 120 << 20
    with fxf.open(data, format="trace") as capture:
        largest = max(map(len, capture.records_json()))
    assert largest < 8 << 20


# --- Context switches in Chrome JSON -------------------------------------------------------------


def switches() -> bytes:
    """A switch from a named thread to one without a name, and a wakeup."""
    name = "a b=\n\tc"
    return trace(
        {"record": "kernel_object", "object_type": 2, "koid": 1001, "name": name,
         "args": [{"name": "process", "type": "koid", "value": 1000}]},
        {"record": "scheduling", "kind": "context_switch", "cpu": 5, "timestamp": 1_000_000_007,
         "outgoing_state": 3, "outgoing_tid": 1001, "incoming_tid": 1002, "args": []},
        {"record": "scheduling", "kind": "thread_wakeup", "cpu": 5, "timestamp": 1_000_000_009,
         "waking_tid": 1001, "args": []},
    )  # fmt: skip


def as_json(form: str) -> tuple[bytes, Mapping[str, int]]:
    sink = Sink.memory()
    with fxf.open(switches(), format="trace") as capture:
        session = chrome_json.JsonExport(sink, {"sched": form})
        session.write(capture)
        return sink.getvalue(), session.close()


def test_switches_for_perfetto_are_lines_of_ftrace() -> None:
    document = json.loads(as_json("ftrace")[0])
    name = "a b=\n\tc".replace("=", "_")
    for blank in " \n\t":
        name = name.replace(blank, "\N{NO-BREAK SPACE}")
    other = "Thread\N{NO-BREAK SPACE}1002"
    head, switch, wakeup = document["systemTraceEvents"].splitlines()
    assert head == "# tracer: nop"
    assert switch == (
        f"{name}-1001 (1000) [005] .... 1.0000000075: sched_switch: prev_comm={name} "
        f"prev_pid=1001 prev_prio=0 prev_state=S ==> next_comm={other} next_pid=1002 next_prio=0"
    )
    assert wakeup == (
        f"<...>-4294967295 (-----) [005] .... 1.0000000095: sched_waking: comm={name} pid=1001 "
        "prio=0 target_cpu=005"
    )


def test_switches_for_both_keep_what_other_parsers_take() -> None:
    both, fuchsia = (json.loads(as_json(form)[0]) for form in ("both", "fuchsia"))
    assert both == fuchsia
    assert [each["ph"] for each in both["systemTraceEvents"]["events"]] == ["t", "k", "w"]
    assert b"# tracer" in as_json("both")[0]
    assert b"# tracer" not in as_json("fuchsia")[0]


def test_a_capture_without_switches_has_one_member_of_that_name() -> None:
    output, _ = export("json", trace(event("instant", 1, "a")))
    assert b'"systemTraceEvents"' not in output
    assert json.loads(output)["systemTraceEvents"] == {"type": "fuchsia", "events": []}


def test_an_unknown_form_of_switches_is_refused() -> None:
    (sched,) = {o for e in plugin.fx_exporters() for o in e.options if o.name == "sched"}
    with pytest.raises(UsageError, match="did you mean 'ftrace'"):
        sched.accept("ftrase")


def test_an_event_in_an_outer_slice_of_many_ends_those_within() -> None:
    count, outer = 3000, 1000
    kernel = Nesting(2, comma=False)
    rows = np.arange(count + 1)
    places = np.zeros((6, count + 1), np.int64)
    places[1] = 1
    places[2] = rows - 1
    places[3] = rows
    places[4] = ENDLESS
    places[5] = 1
    places[:, count] = ON_THREAD, 1, 0, outer, 0, 0
    letters = np.frombuffer(b"be" * count + b"!!", np.uint8)
    events = Events(rows, letters, 2 * rows, np.full(count + 1, 2), places)
    written = kernel.texts(events).tobytes() + b"".join(ends.tobytes() for ends in kernel.rest())
    shown = written.replace(b",\n", b"")
    assert shown == b"b" * count + b"e" * (count - outer - 1) + b"!!" + b"e" * (outer + 1)
