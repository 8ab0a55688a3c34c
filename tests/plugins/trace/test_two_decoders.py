"""The two decoders held against each other: ``records.py``, one at a time, and the kernels.

They share nothing but layout constants. Whatever the bytes, their records count the same, their
rows hold the same values, and they find the same faults in the same records.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from fx_trace import format as wire
from fx_trace.read.capture import TraceCapture
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.model.schema import STANDARD_TABLES

from ...properties import share
from .streams import any_bytes, damaged, fxt_streams

ROWS = {
    "duration_begin": "slices",
    "duration_complete": "slices",
    "async_begin": "slices",
    "instant": "instants",
    "async_instant": "instants",
    "flow_begin": "flows",
    "flow_step": "flows",
    "flow_end": "flows",
}
WORDS = {"duration_complete": "end_timestamp", "counter": "counter_id"}
SYNTAX = {*range(1, 9), *range(101, 116), 201, 203, 204, 205, 206, 207, 209}
NUMERIC = {"int32", "uint32", "int64", "uint64", "double"}


def opened(data: bytes) -> TraceCapture:
    return TraceCapture(Source.open(data), OpenRequest())


def number_of(value: Any) -> Any:
    """A double as its bits, so that NaN equals itself; anything else as it is."""
    return struct.unpack("<Q", struct.pack("<d", value))[0] if isinstance(value, float) else value


def expected(capture: TraceCapture) -> dict[str, list[Any]]:
    """The rows that the records of a capture make, told from their JSON."""
    rows: dict[str, list[Any]] = {
        name: [] for name in ("slices", "instants", "flows", "counters", "sched", "logs", "args")
    }
    rows["kinds"] = []
    for record in capture.records():
        shown = record.to_json()
        kind = shown["record"]
        args = [a for a in shown.get("args", []) if isinstance(a["type"], str)]
        subkind = shown.get("event") if kind == "event" else shown.get("kind")
        rows["kinds"].append(kind if subkind is None else f"{kind} {subkind}")
        at = shown["offset"]
        if kind == "event" and isinstance(subkind, str):
            head = (at, shown["timestamp"], shown["category"], shown["name"])
            if subkind in ROWS:
                rows[ROWS[subkind]].append((*head, *person(shown)))
            elif subkind == "counter":
                rows["counters"] += [
                    (*head, shown["counter_id"], a["name"], value_of(a))
                    for a in args
                    if a["type"] in NUMERIC
                ]
        elif kind == "scheduling" and isinstance(subkind, str):
            rows["sched"].append((at, shown["timestamp"], shown["cpu"]))
        elif kind == "log":
            rows["logs"].append((at, shown["timestamp"], shown["message"]))
        if kind != "event" or isinstance(subkind, str):
            rows["args"] += [(at, a["name"], a["type"], value_of(a)) for a in shown.get("args", [])]
    return rows


def person(shown: dict[str, Any]) -> tuple[Any, ...]:
    thread = shown["thread"]
    return (0, 0) if isinstance(thread, str) else tuple(thread)


def value_of(arg: dict[str, Any]) -> Any:
    """An argument's value in the form that ``found`` gives it."""
    kind, value = arg["type"], arg["value"]
    if isinstance(kind, int) or kind == "null":
        return None
    if kind == "double":
        if "value_bits" in arg:
            return ("bits", int(str(arg["value_bits"]), 0))
        return ("bits", number_of(float(value)))
    if kind == "bool":
        return int(value)
    return value


def found(capture: TraceCapture) -> dict[str, list[Any]]:
    """The same from the tables."""
    pool = capture.strings
    threads = capture.table("threads")
    pids, tids = threads["pid"].tolist(), threads["tid"].tolist()
    rows: dict[str, list[Any]] = {}

    def columns_of(name: str, *wanted: str) -> list[tuple[Any, ...]]:
        table = capture.table(name)
        return list(
            zip(
                *(
                    table.texts(column)
                    if STANDARD_TABLES[name].column(column).kind in ("code", "text")
                    else table[column].tolist()
                    for column in wanted
                ),
                strict=True,
            )
        )

    for name in ("slices", "instants", "flows"):
        rows[name] = [
            (*row[:4], pids[row[4]], tids[row[4]])
            for row in columns_of(name, "offset", "ticks", "category", "name", "thread")
        ]
    rows["counters"] = [
        (*row[:6], row[7] if row[8] else ("bits", number_of(row[6])))
        for row in columns_of(
            "counters", "offset", "ticks", "category", "name", "id", "series", "value", "value_int",
            "is_int",
        )
    ]  # fmt: skip
    rows["sched"] = columns_of("sched", "offset", "ticks", "cpu")
    rows["logs"] = columns_of("logs", "offset", "ticks", "message")
    args = capture.table("args")
    rows["args"] = [
        (offset, name, wire.ARG_NAMES.get(kind, kind), arg_value(kind, whole, real, code, pool))
        for offset, name, kind, whole, real, code in zip(
            args["offset"].tolist(), args.texts("name"), args["type"].tolist(),
            args["int"].tolist(), args["float"].view("u8").tolist(), args["str"].tolist(),
            strict=True,
        )
    ]  # fmt: skip
    return rows


def arg_value(kind: int, whole: int, real: int, code: int, pool: Any) -> Any:
    if kind == 0 or kind > wire.ArgType.BLOB:
        return None
    if kind == wire.ArgType.DOUBLE:
        return ("bits", real)
    if kind == wire.ArgType.STRING:
        return pool[code]
    if kind == wire.ArgType.BLOB:
        return pool.bytes_of(code).hex()
    unsigned = kind in (wire.ArgType.UINT64, wire.ArgType.POINTER, wire.ArgType.KOID)
    return whole & (1 << 64) - 1 if unsigned else whole


def unsigned_counters(rows: list[Any]) -> list[Any]:
    """Counter values with uint64 wrapped, as ``value_int`` holds them."""
    return [
        (*row, value - (1 << 64) if isinstance(value, int) and value >> 63 == 1 else value)
        for *row, value in rows
    ]


def findings(capture: TraceCapture) -> set[tuple[str, int | None]]:
    return {
        (found.code, found.record)
        for found in capture.diagnostics
        if found.code.startswith("FXT") and int(found.code[3:]) in SYNTAX
    }


def agree(data: bytes) -> None:
    by_records, by_tables = opened(data), opened(data)
    wanted = expected(by_records)
    by_tables.scan()
    got = found(by_tables)
    kinds = Counter(wanted.pop("kinds"))
    assert by_tables.summary().kinds == kinds
    wanted["counters"] = unsigned_counters(wanted["counters"])
    for name, rows in wanted.items():
        assert got[name] == rows, name
    assert findings(by_tables) == findings(by_records)


@hypothesis.given(fxt_streams())
def test_agree_on_sound_streams(data: bytes) -> None:
    agree(data)


@hypothesis.given(damaged(fxt_streams()))
def test_agree_on_damaged_streams(data: bytes) -> None:
    agree(data)


@hypothesis.given(any_bytes())
def test_agree_on_any_bytes(data: bytes) -> None:
    agree(data)


@share(1 / 3)
@hypothesis.given(fxt_streams(), st.integers(0, 7))
def test_agree_at_every_truncation(data: bytes, phase: int) -> None:
    for length in range(phase, min(len(data), 4000), 8):
        agree(data[:length])


TIMES_OUTSIDE = struct.pack(
    "<18Q",
    0x16547846040010, 0x100010022, 0x61, 0x100010022, 0x61, 0x1000000010015,
    *(65, 1, 9_223_372_037, 0), *2 * (0x1000100000044, 0, 0, 0),
)  # fmt: skip
"""A rate of one tick a second, and two events whose times do not fit 63 bits."""
GREATEST_TIME = struct.pack(
    "<10Q", 0x16547846040010, 0x1000100000044, 0, 0, 0, 0x80049, (1 << 63) - 1, 0, 0, 0
)
"""An event, and a log record at the greatest time that fits 63 bits."""


@hypothesis.given(damaged(fxt_streams()) | fxt_streams(), st.sampled_from([1, 2, 7, 1000]))
@hypothesis.example(TIMES_OUTSIDE, 1)
@hypothesis.example(GREATEST_TIME, 1)
def test_batches_are_the_table_wherever_they_break(data: bytes, events: int) -> None:
    whole = opened(data)
    streamed = opened(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fxframework.wire.blocks.BLOCK_BYTES", 24 * events)
        batches = {name: list(streamed.batches(name, max(events, 2))) for name in streamed.schemas}
    for name in whole.schemas:
        table = whole.table(name)
        assert sum(len(batch) for batch in batches[name]) == len(table)
        assert all(len(batch) <= max(events, 2) for batch in batches[name])
        for column in table.columns:
            kind = table.schema.column(column).kind
            if kind == "code":
                got = [text for batch in batches[name] for text in batch.texts(column)]
                assert got == table.texts(column), (name, column)
            else:
                got = [repr(value) for batch in batches[name] for value in list(batch[column])]
                assert got == [repr(value) for value in list(table[column])], (name, column)
    mine = Counter((found.code, found.offset) for found in whole.diagnostics)
    theirs = Counter((found.code, found.offset) for found in streamed.diagnostics)
    assert mine == theirs
