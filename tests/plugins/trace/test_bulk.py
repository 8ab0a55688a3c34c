"""Tables become a trace that has the same tables; what it has no place for is counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace import format as wire
from fx_trace.sample import sample
from fx_trace.write.bulk import NAMES, TABLES, Bulk
from fxframework.errors import Severity, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import STANDARD_TABLES, TABLE_CODES
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

from .streams import fxt_streams
from .test_extracting import names_of, rows

MAGIC = wire.MAGIC_BYTES


def table(which: str, pool: StringPool, count: int, /, **given: Any) -> Table:
    """A standard table of so many rows."""
    return Table.of(STANDARD_TABLES[which], pool, **{"row": range(count), **given})


def written(tables: dict[str, Table], pool: StringPool, **options: Any) -> tuple[bytes, Bulk]:
    bulk = Bulk(tables, pool, **options)
    return MAGIC + b"".join(bytes(block) for block in bulk.blocks()), bulk


def of_capture(capture: Capture, **options: Any) -> tuple[bytes, Bulk]:
    tables = {name: capture.table(name) for name in (*TABLES, *NAMES, "args", "blobs")}
    return written(tables, capture.strings, source=capture.source.data, **options)


def no_losses(data: bytes) -> None:
    with fxf.open(data) as capture:
        capture.scan()
        worst = capture.diagnostics.worst
        assert worst is None or worst <= Severity.WARNING, capture.diagnostics


def comparable(capture: Capture) -> dict[str, list[Any]]:
    """Rows in order of time, without ticks, and arguments only where their event has a row."""
    out = {}
    for name, found in rows(capture).items():
        schema = STANDARD_TABLES[name]
        columns = [c.name for c in schema.all_columns
                   if c.name not in {"row", "offset", "depth", "parent", "slice"}]  # fmt: skip
        drop = {columns.index("ticks")}
        if name == "slices":
            drop.add(columns.index("kind"))
        if name == "counters":
            drop.add(columns.index("value"))
        out[name] = sorted(
            (tuple(x for at, x in enumerate(row) if at not in drop) for row in found), key=repr
        )
    return out


def ordinary(capture: Capture) -> bool:
    """Whether all times lie where they come back, and strings are UTF-8 and registered."""
    low, high = -1, 1 << 62
    for name in TABLES:
        found = capture.table(name)
        if len(found) and not (found["ts"].min() > low and found["ts"].max() < high):
            return False
        if name == "slices" and len(found) and found["dur"].max() >= high:
            return False
    capture.scan()
    return not {"FXT0105", "FXT0110", "FXT0301", "FXT0303", "FXT0304", "FXT0305"} & set(
        capture.diagnostics.counts
    )


@given(fxt_streams())
def test_tables_of_a_trace_come_back(data: bytes) -> None:
    with fxf.open(data, format="trace") as whole:
        if not ordinary(whole):
            return
        again, bulk = of_capture(whole)
        assert not {what for what in bulk.dropped if not what.startswith("arguments")}
        with fxf.open(again) as mine:
            expected, found = comparable(whole), comparable(mine)
            for name in ("instants", "flows", "logs", "slices", "counters", "sched"):
                assert found[name] == expected[name], name
            names = [{k: v for k, v in each.items() if v is not None} for each in names_of(whole)]
            assert [
                {k: v for k, v in each.items() if v is not None} for each in names_of(mine)
            ] == names


@given(fxt_streams())
def test_any_tables_become_a_sound_trace(data: bytes) -> None:
    with fxf.open(data, format="trace") as whole:
        try:
            again, _ = of_capture(whole)
        except WriteRefusedError as error:
            assert error.code == "FXT0404"  # noqa: PT017 (the only reason to refuse)
            return
    no_losses(again)


def test_many_events_come_back_in_every_column() -> None:
    with fxf.open(sample(400_000)) as whole:
        again, bulk = of_capture(whole)
        assert bulk.dropped == {}
        with fxf.open(again) as mine:
            for name in ("slices", "args"):
                ours, theirs = mine.table(name), whole.table(name)
                for column in ours.columns:
                    if column != "offset":
                        assert ours.plain(column) == theirs.plain(column), column


def test_more_strings_and_threads_than_slots() -> None:
    pool = StringPool()
    count = 40_000
    texts = [f"name {n}" for n in range(count)]
    threads = table("threads", pool, 300, id=range(300), pid=[1] * 300, tid=range(300))
    instants = table(
        "instants", pool, count, ts=range(count), name=texts, category=["c"] * count,
        thread=[n % 300 for n in range(count)],
    )  # fmt: skip
    data, bulk = written({"threads": threads, "instants": instants}, pool)
    assert bulk.dropped == {}
    with fxf.open(data) as capture:
        assert capture.table("instants").texts("name") == texts
        tids = capture.table("threads")["tid"][capture.table("instants")["thread"]]
        assert tids.tolist() == [n % 300 for n in range(count)]
        assert capture.diagnostics.counts == {}


def test_long_strings_are_cut_at_a_character() -> None:
    pool = StringPool()
    text = "é" * 20_000
    instants = table("instants", pool, 2, name=[text, "short"], thread=[-1, -1])
    data, bulk = written({"instants": instants}, pool)
    assert bulk.dropped == {"ends of long strings": 1}
    with fxf.open(data) as capture:
        assert capture.table("instants").texts("name") == ["é" * 16_000, "short"]


def test_arguments_beyond_fifteen() -> None:
    pool = StringPool()
    instants = table("instants", pool, 1, name=["n"])
    args = table(
        "args", pool, 17, table=[TABLE_CODES["instants"]] * 17, parent=[0] * 17,
        name=[f"a{n}" for n in range(17)], type=[wire.ArgType.INT32] * 17, int=range(17),
    )  # fmt: skip
    data, bulk = written({"instants": instants, "args": args}, pool)
    assert bulk.dropped == {"arguments beyond 15 of a record": 2}
    with fxf.open(data) as capture:
        assert capture.table("args")["int"].tolist() == list(range(15))


def test_arguments_that_a_record_has_no_room_for() -> None:
    pool = StringPool()
    blob = "b" * 4000
    instants = table("instants", pool, 2, name=["n", "m"], ts=[1, 2])
    args = table(
        "args", pool, 13, table=[TABLE_CODES["instants"]] * 13, parent=[0] * 12 + [1],
        name=[f"a{n}" for n in range(13)], int=range(13),
        type=[*[wire.ArgType.BLOB] * 10, wire.ArgType.INT32, 14, wire.ArgType.INT32],
        str=[blob] * 10 + [-1] * 3,
    )  # fmt: skip
    data, bulk = written({"instants": instants, "args": args}, pool)
    assert bulk.dropped == {
        "arguments that a record has no room for": 2, "arguments of unknown types": 1,
    }  # fmt: skip
    with fxf.open(data) as capture:
        names = capture.table("args").texts("name")
        assert names == [*(f"a{n}" for n in range(8)), "a10", "a12"]
        assert capture.diagnostics.counts == {}


def test_arguments_of_all_types_and_of_rows_that_are_not_there() -> None:
    pool = StringPool()
    types = [int(kind) for kind in wire.ArgType]
    whole = [0, -5, 7, -(1 << 63), -1, 0, 0, 1 << 40, 77, 1, 0]
    args = table(
        "args", pool, 13,
        table=[3] * 11 + [2, 3], parent=[0] * 11 + [0, 9],
        name=[f"a{n}" for n in range(13)], type=[*types, 3, 3], int=[*whole, 1, 1],
        float=[0] * 5 + [np.nan] + [0] * 7, str=[-1] * 6 + ["text"] + [-1] * 3 + ["\udcff\0blob"]
        + [-1, -1],
    )  # fmt: skip
    data, bulk = written({"instants": table("instants", pool, 1, name=["n"]), "args": args}, pool)
    assert bulk.dropped == {"arguments of rows that are not written": 2}
    with fxf.open(data) as capture:
        (event,) = [r for r in capture.records() if r.to_json()["record"] == "event"]
        shown = [(a["type"], a["value"]) for a in event.to_json()["args"]]
    assert shown == [
        ("null", None), ("int32", -5), ("uint32", 7), ("int64", -(1 << 63)),
        ("uint64", (1 << 64) - 1), ("double", "NaN"), ("string", "text"), ("pointer", 1 << 40),
        ("koid", 77), ("bool", True), ("blob", "ff00626c6f62"),
    ]  # fmt: skip


def test_narrow_types_give_way_to_wide_values() -> None:
    pool = StringPool()
    args = table(
        "args", pool, 2, table=[3, 3], parent=[0, 0], name=["a", "b"], type=[1, 2],
        int=[1 << 40, -1],
    )  # fmt: skip
    data, _ = written({"instants": table("instants", pool, 1), "args": args}, pool)
    with fxf.open(data) as capture:
        assert capture.table("args")["type"].tolist() == [3, 4]
        assert capture.table("args")["int"].tolist() == [1 << 40, -1]


def test_counters_without_arguments() -> None:
    pool = StringPool()
    counters = table(
        "counters", pool, 4, ts=[1, 1, 2, 3], name=["c"] * 4, series=["x", "y", "x", "x"],
        value=[1.5, 2, 3, 1e300], value_int=[0, 2, 1 << 40, 0], is_int=[0, 1, 1, 0],
        offset=[8, 8, 16, 24], id=[5] * 4,
    )  # fmt: skip
    data, _ = written({"counters": counters}, pool)
    with fxf.open(data) as capture:
        assert capture.summary().kinds["event counter"] == 3
        mine = capture.table("counters")
        assert mine.texts("series") == ["x", "y", "x", "x"]
        assert mine["value"].tolist() == [1.5, 2, 1 << 40, 1e300]
        assert mine["value_int"].tolist() == [0, 2, 1 << 40, 0]
        assert mine["id"].tolist() == [5] * 4


def test_what_encloses_comes_first() -> None:
    pool = StringPool()
    slices = table(
        "slices", pool, 3, ts=[0, 0, 5], dur=[5, 10, 5], depth=[1, 0, 1], kind=[3, 3, 3],
        parent=[1, -1, 1],
        name=["inner", "outer", "last"],
    )  # fmt: skip
    data, _ = written({"slices": slices}, pool)
    with fxf.open(data) as capture:
        mine = capture.table("slices")
        assert mine.texts("name") == ["outer", "inner", "last"]
        assert mine["depth"].tolist() == [0, 1, 1]


def test_slices_that_do_not_say_what_encloses_them() -> None:
    pool = StringPool()
    slices = table(
        "slices", pool, 4, ts=[0, 5, 8, 20], dur=[20, 3, 12, 0], kind=[3] * 4,
        name=["outer", "first", "second", "moment"],
    )  # fmt: skip
    data, _ = written({"slices": slices}, pool)
    with fxf.open(data) as capture:
        mine = capture.table("slices")
        assert mine.texts("name") == ["outer", "first", "second", "moment"]
        assert mine["depth"].tolist() == [0, 1, 1, 0]
        assert mine["dur"].tolist() == [20, 3, 12, 0]
        assert capture.diagnostics.counts == {}


def test_asynchronous_slices_that_touch() -> None:
    pool = StringPool()
    slices = table(
        "slices", pool, 4, ts=[0, 10, 10, 10], dur=[10, 0, 5, -1], kind=[2] * 4, id=[1, 1, 1, 2],
        name=["a", "a", "a", "b"],
    )  # fmt: skip
    data, _ = written({"slices": slices}, pool)
    with fxf.open(data) as capture:
        mine = capture.table("slices")
        found = sorted(zip(mine["ts"].tolist(), mine["dur"].tolist(), strict=True))
        assert found == [(0, 10), (10, -1), (10, 0), (10, 5)]


def test_times_before_zero_are_moved_and_told() -> None:
    pool = StringPool()
    data, bulk = written(
        {"instants": table("instants", pool, 2, ts=[-5, 10], thread=[-1, -1])}, pool
    )
    assert list(bulk.dropped) == ["the beginning of time: all times are later by 5 ns"]
    with fxf.open(data) as capture:
        assert capture.table("instants")["ts"].tolist() == [0, 15]


def test_times_that_span_too_much() -> None:
    pool = StringPool()
    tables = {"instants": table("instants", pool, 2, ts=[-5, NS_MAX], thread=[-1, -1])}
    with pytest.raises(WriteRefusedError) as refused:
        written(tables, pool)
    assert refused.value.code == "FXT0404"


def logs(pool: StringPool) -> Table:
    return table(
        "logs", pool, 2, ts=[1, 2], pid=[5, 5], tid=[6, 7], severity=[0x30, 0x40],
        severity_name=["INFO", "WARN"], tags=["a,b", -1], component=["core/x", -1],
        message=["hello", "é" * 20_000], file=["x.cc", -1], line=[3, 0], dropped=[0, 9],
    )  # fmt: skip


def test_logs_as_records_say_what_they_drop() -> None:
    pool = StringPool()
    data, bulk = written({"logs": logs(pool)}, pool)
    assert bulk.dropped == {
        "ends of long messages": 1, "severity of logs": 2, "tags of logs": 1,
        "component of logs": 1, "file of logs": 1, "line of logs": 1, "dropped of logs": 1,
    }  # fmt: skip
    with fxf.open(data) as capture:
        mine = capture.table("logs")
        assert list(mine["message"]) == ["hello", "é" * 16_000]
        assert mine["tid"].tolist() == [6, 7]
        assert mine["ts"].tolist() == [1, 2]


def test_logs_as_instants_keep_their_fields() -> None:
    pool = StringPool()
    args = table("args", pool, 1, table=[7], parent=[1], name=["k"], type=[3], int=[4])
    data, bulk = written({"logs": logs(pool), "args": args}, pool, logs_as_instants=True)
    assert bulk.dropped == {"ends of long strings": 1}
    with fxf.open(data) as capture:
        events = [r.to_json() for r in capture.records() if r.to_json()["record"] == "event"]
    assert [event["name"] for event in events] == ["INFO", "WARN"]
    assert {a["name"]: a["value"] for a in events[0]["args"]} == {
        "message": "hello", "severity": 0x30, "tags": "a,b", "component": "core/x",
        "file": "x.cc", "line": 3,
    }  # fmt: skip
    assert {a["name"]: a["value"] for a in events[1]["args"] if a["name"] != "message"} == {
        "severity": 0x40, "dropped": 9, "k": 4,
    }  # fmt: skip


def test_the_fields_of_a_log_come_before_its_keys() -> None:
    pool = StringPool()
    keys = [f"k{number}" for number in range(15)]
    args = table("args", pool, 15, table=[7] * 15, parent=[1] * 15, name=keys, type=[3] * 15)
    data, bulk = written({"logs": logs(pool), "args": args}, pool, logs_as_instants=True)
    assert bulk.dropped == {"ends of long strings": 1, "arguments beyond 15 of a record": 3}
    with fxf.open(data) as capture:
        second = [r.to_json() for r in capture.records() if r.to_json()["record"] == "event"][1]
    assert [a["name"] for a in second["args"]] == ["message", "severity", "dropped", *keys[:12]]


def test_bytes_of_a_type_that_a_log_cannot_have_become_a_blob() -> None:
    pool = StringPool()
    value = pool.intern(bytes.fromhex("0010000000000000"))
    args = table("args", pool, 2, table=[7] * 2, parent=[1] * 2, name=["koid", "odd"],
                 type=[8, 13], str=[value] * 2)  # fmt: skip
    data, bulk = written({"logs": logs(pool), "args": args}, pool, logs_as_instants=True)
    assert bulk.dropped == {"ends of long strings": 1}
    with fxf.open(data) as capture:
        second = [r.to_json() for r in capture.records() if r.to_json()["record"] == "event"][1]
    assert [(a["name"], a["type"], a["value"]) for a in second["args"][3:]] == [
        (name, "blob", "0010000000000000") for name in ("koid", "odd")
    ]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3)), max_size=40))
def test_small_blocks_are_one_trace(given_rows: list[tuple[int, int]]) -> None:
    pool = StringPool()
    ts = [time for time, _ in given_rows]
    instants = table("instants", pool, len(ts), ts=ts, thread=[t - 1 for _, t in given_rows])
    threads = table("threads", pool, 3, id=[0, 1, 2], pid=[1, 1, 1], tid=[1, 2, 3])
    at_once, _ = written({"instants": instants, "threads": threads}, pool)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fx_trace.write.bulk.BLOCK", 1)
        in_pieces, _ = written({"instants": instants, "threads": threads}, pool)
    assert in_pieces == at_once


def test_threads_that_are_not_listed_are_nobody() -> None:
    pool = StringPool()
    data, bulk = written({"instants": table("instants", pool, 2, thread=[-1, 7])}, pool)
    assert bulk.dropped == {"threads that are not listed": 1}
    with fxf.open(data) as capture:
        assert capture.table("threads")["pid"].tolist() == [0]


def test_codes_that_the_pool_lacks() -> None:
    pool = StringPool()
    with pytest.raises(ValueError, match="not in the pool"):
        written({"instants": table("instants", pool, 1, name=[99], thread=[-1])}, pool)


def test_an_empty_capture() -> None:
    sink = Sink.memory()
    data, bulk = written({}, StringPool())
    sink.write(data)
    assert bulk.dropped == {}
    no_losses(data)


def test_priorities_become_arguments_where_there_are_none() -> None:
    pool = StringPool()
    sched = table(
        "sched", pool, 3, ts=[1, 2, 3], kind=[1, 2, 0], cpu=[300, 2, 300], prev=[0, -1, 0],
        next=[1, 0, 1], prev_state=[3, 0, 3], prev_priority=[5, -1, 256], next_priority=[-7, 9, 24],
    )  # fmt: skip
    threads = table("threads", pool, 2, id=[0, 1], pid=[1, 1], tid=[11, 12])
    data, bulk = written({"sched": sched, "threads": threads}, pool)
    assert bulk.dropped == {"CPU numbers above 255": 1, "priorities that 8 bits do not hold": 1}
    with fxf.open(data) as capture:
        mine = capture.table("sched")
        assert mine["prev_priority"].tolist() == [5, -1, 255]
        assert mine["next_priority"].tolist() == [-7, 9, 24]
        assert mine["cpu"].tolist() == [300, 2, 44]
        assert capture.table("args").texts("name") == [
            "outgoing_weight",
            "incoming_weight",
            "weight",
        ]
