"""A trace of any size: what the figures of streaming are measured on.

``python tests/bench/large.py OUT MEGABYTES`` writes it: slices with arguments, recorded whole and
as begins and ends, counters, and instants with arguments, on eight threads, times ascending. One
stretch is made by the writer of tables, and repeated with its times moved on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fx_trace.layout import MAGIC_WORD, EventType, RecordType
from fx_trace.write.bulk import Bulk
from fxframework.model.schema import ARG_TYPES, STANDARD_TABLES, TABLE_CODES
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

THREADS = 8
STEP = 1000
"""Nanoseconds between two steps."""
INNER = 8
"""Steps of a thread within its outer slice."""
STEPS = 1 << 16
"""Steps of a stretch."""


def _tables(pool: StringPool, steps: int) -> dict[str, Table]:
    number = np.arange(steps)
    thread, turn = number % THREADS, number // THREADS
    words = [
        pool.intern(f"{word}{n:02}".encode())
        for word in ("name", "category", "key", "text")
        for n in range(16)
    ]
    names, categories, keys, texts = np.array(words, np.int32).reshape(4, 16)
    ts = STEP * number
    outer = np.flatnonzero(turn % INNER == 0)
    begin_ts, complete_ts = ts[outer], ts + 2
    count = outer.size
    starts = np.concatenate((begin_ts, complete_ts))
    order = np.argsort(starts, kind="stable")
    kind = np.concatenate((np.zeros(count, np.uint8), np.ones(steps, np.uint8)))[order]
    dur = np.concatenate((np.full(count, STEP * (THREADS * INNER - 1)), np.full(steps, STEP // 2)))[
        order
    ]
    whose = np.concatenate((thread[outer], thread))[order]
    place = np.arange(order.size)
    row_of = np.empty(order.size, np.int64)
    row_of[order] = place
    parent = np.full(order.size, -1)
    parent[row_of[count:]] = row_of[
        np.searchsorted(outer, (turn // INNER) * INNER * THREADS + thread)
    ]
    slices = Table.of(
        STANDARD_TABLES["slices"],
        pool,
        ts=starts[order],
        ticks=starts[order].astype(np.uint64),
        dur=dur,
        thread=whose,
        category=categories[place % 3],
        name=names[place % 13],
        kind=kind,
        depth=(kind == 1).astype(np.int32),
        parent=parent,
    )
    some = number[::4]
    counters = Table.of(
        STANDARD_TABLES["counters"],
        pool,
        ts=ts[some] + 4,
        ticks=(ts[some] + 4).astype(np.uint64),
        thread=thread[some],
        category="category03",
        name="name14",
        id=some % 2,
        series="key08",
        value=some * 1.0,
        value_int=some,
        is_int=True,
    )
    few = number[::8]
    instants = Table.of(
        STANDARD_TABLES["instants"],
        pool,
        ts=ts[few] + 6,
        ticks=(ts[few] + 6).astype(np.uint64),
        thread=thread[few],
        category="category04",
        name="name15",
        scope=0,
    )
    with_args = np.flatnonzero(kind == 1)
    types = {name: code for code, name in ARG_TYPES.items()}
    parts = [
        (TABLE_CODES["slices"], with_args, keys[0], "int64", with_args * 3, -1),
        (TABLE_CODES["slices"], with_args[::2], keys[1], "string", 0, texts[with_args[::2] % 16]),
        (TABLE_CODES["instants"], np.arange(few.size), keys[2], "uint32", few % 1000, -1),
        (TABLE_CODES["counters"], np.arange(some.size), keys[8], "int64", some, -1),
    ]
    columns = {
        "table": [np.full(p[1].size, p[0]) for p in parts],
        "parent": [p[1] for p in parts],
        "name": [np.full(p[1].size, p[2]) for p in parts],
        "type": [np.full(p[1].size, types[p[3]]) for p in parts],
        "int": [np.broadcast_to(p[4], p[1].size) for p in parts],
        "str": [np.broadcast_to(p[5], p[1].size) for p in parts],
    }
    joined = {name: np.concatenate(some) for name, some in columns.items()}
    args = Table.of(STANDARD_TABLES["args"], pool, uint=joined["int"].astype(np.uint64), **joined)
    threads = Table.of(
        STANDARD_TABLES["threads"],
        pool,
        id=np.arange(THREADS),
        pid=1000 + np.arange(THREADS) % 2,
        tid=2000 + np.arange(THREADS),
        name=[f"thread{n}" for n in range(THREADS)],
    )
    processes = Table.of(STANDARD_TABLES["processes"], pool, pid=[1000, 1001], name=["one", "two"])
    return {
        "slices": slices,
        "counters": counters,
        "instants": instants,
        "args": args,
        "threads": threads,
        "processes": processes,
    }


def pieces(nbytes: int, steps: int = STEPS) -> Iterator[bytes]:
    """The trace in stretches, of at least ``nbytes`` in all."""
    pool = StringPool()
    first = b"".join(bytes(block) for block in Bulk(_tables(pool, steps), pool).blocks())
    words = np.frombuffer(first, np.int64).copy()
    at = 0
    events: list[int] = []
    complete: list[int] = []
    while at < words.size:
        header = int(words[at])
        size = header >> 4 & 0xFFF
        if header & 15 == RecordType.EVENT:
            events.append(at)
            if header >> 16 & 15 == EventType.DURATION_COMPLETE:
                complete.append(at + size - 1)
        at += size
    start = events[0]
    yield MAGIC_WORD.to_bytes(8, "little") + words[:start].tobytes()
    written = 8 * start
    body = words[start:]
    times = np.array([event + 1 for event in events] + complete) - start
    while written < nbytes:
        yield body.tobytes()
        written += body.nbytes
        body[times] += STEP * steps


if __name__ == "__main__":
    with Path(sys.argv[1]).open("wb") as file:
        file.writelines(pieces(int(float(sys.argv[2]) * 1e6)))
