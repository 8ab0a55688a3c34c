"""A trace of any size: what the figures of streaming are measured on.

``python tests/bench/large.py OUT MEGABYTES`` writes it: slices with arguments, recorded whole and
as begins and ends, counters, and instants with arguments, on eight threads, times ascending. One
stretch is made by the writer of tables, and repeated with its times moved on.

``python tests/bench/large.py OUT MEGABYTES disordered`` writes one as programs record it: two
providers one after the other, of four threads each; slices written at their ends, so that the
inner ones come first; asynchronous operations and flows from thread to thread, each with an id of
its own; and on each thread a slice around all others, written last.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np

from fx_trace import Archive, TraceWriter
from fx_trace.format import MAGIC_WORD, EventType
from fx_trace.kinds import RecordType
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


class Stretch:
    """Records that are repeated, with their times and ids moved on."""

    def __init__(self, records: bytes) -> None:
        words = np.frombuffer(records, np.int64).copy()
        at = 0
        times: list[int] = []
        ids: list[int] = []
        start = words.size
        while at < words.size:
            header = int(words[at])
            size = header >> 4 & 0xFFF
            if header & 15 == RecordType.EVENT:
                start = min(at, start)
                times.append(at + 1)
                kind = header >> 16 & 15
                if kind == EventType.DURATION_COMPLETE:
                    times.append(at + size - 1)
                elif kind > EventType.DURATION_COMPLETE:
                    ids.append(at + size - 1)
            at += size
        self.first = words[:start].tobytes()
        """What comes before the events."""
        self._body = words[start:]
        self._times, self._ids = (np.array(some, np.int64) - start for some in (times, ids))

    def repeated(self, nbytes: int, nanoseconds: int, ids: int = 0) -> Iterator[bytes]:
        """The events again and again, at least ``nbytes`` of them, each time so much later."""
        written = 0
        while written < nbytes:
            yield self._body.tobytes()
            written += self._body.nbytes
            self._body[self._times] += nanoseconds
            self._body[self._ids] += ids


def pieces(nbytes: int, steps: int = STEPS) -> Iterator[bytes]:
    """The trace in stretches, of at least ``nbytes`` in all."""
    pool = StringPool()
    stretch = Stretch(b"".join(bytes(block) for block in Bulk(_tables(pool, steps), pool).blocks()))
    yield MAGIC_WORD.to_bytes(8, "little") + stretch.first
    yield from stretch.repeated(nbytes, STEP * steps)


# --- Events as they are recorded -----------------------------------------------------------------

SLICES = ((150, 200), (250, 300), (100, 500), (600, 800), (0, 900))
"""Begins and ends of the slices of a step, in the order in which they end."""


def disordered(nbytes: int, steps: int = STEPS >> 3) -> Iterator[bytes]:
    """A trace whose events step back in time, of at least ``nbytes`` in all."""
    for provider in (1, 2):
        threads = [(1000 + provider, 2000 + THREADS * provider + n) for n in range(THREADS // 2)]
        buffer = BytesIO()
        with Archive(buffer) as archive:
            writer = archive.provider(provider, f"provider{provider}", ticks_per_second=10**9)
            writer.process(threads[0][0], f"process{provider}")
            for number in range(steps):
                _step(writer, threads, number, steps)
        stretch = Stretch(buffer.getvalue())
        yield stretch.first if provider == 1 else stretch.first[8:]
        end = 0
        for piece in stretch.repeated(nbytes // 2, STEP * steps, ids=steps):
            yield piece
            end += STEP * steps
        buffer = BytesIO()
        with Archive(buffer) as archive:
            writer = archive.provider(1, ticks_per_second=1, strings="inline", threads="inline")
            for thread in threads:
                writer.duration_complete("category", "everything", 0, end, thread=thread)
        yield from Stretch(buffer.getvalue()).repeated(1, 0)


def _step(writer: TraceWriter, threads: list[tuple[int, int]], number: int, steps: int) -> None:
    """The events of a step on each thread; ids are below ``steps``."""
    begin = number % 4 == 0 and number + 2 < steps
    end = number % 4 == 2
    for turn, thread in enumerate(threads):
        at = STEP * number + turn
        if turn == 0 and begin:
            writer.async_begin("category", "operation", number, thread=thread, timestamp=at + 160)
            writer.flow_begin("category", "flow", number + 1, thread=thread, timestamp=at + 170)
        if turn == 3 and end:
            writer.async_end("category", "operation", number - 2, thread=thread, timestamp=at + 160)
            writer.flow_end("category", "flow", number - 1, thread=thread, timestamp=at + 170)
        writer.instant("category", "moment", {"number": number}, thread=thread, timestamp=at + 180)
        for place, (start, stop) in enumerate(SLICES):
            args = {"key": number % 100} if place % 2 else {}
            name = f"name{(number + place) % 13:02}"
            writer.duration_complete("category", name, at + start, at + stop, args, thread=thread)


if __name__ == "__main__":
    out, megabytes, *shape = sys.argv[1:]
    make = disordered if shape == ["disordered"] else pieces
    with Path(out).open("wb") as file:
        file.writelines(make(int(float(megabytes) * 1e6)))
