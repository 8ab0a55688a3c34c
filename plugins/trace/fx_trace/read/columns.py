"""Raw columns: the arrays that ``scan`` fills and carries, made, grown and taken in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace.read import scan as k
from fxframework.io import arena
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX
from fxframework.model.clock import Clock
from fxframework.model.strings import StringPool

__all__ = ["Chunk", "Scanner", "grown_map", "new_map"]

STEP = 1 << 12
"""Entries for which there is room in everything before `scan` is called, for large files."""
WINDOW_WORDS = 1 << 22
"""Words after which the file's pages are let go of."""
FIRST_WORDS = 1 << 17
"""Words read before the capacity for a whole file is estimated."""

_ROWS = {
    k.Events: k.N_EVENTS,
    k.Args: k.N_ARGS,
    k.Sched: k.N_SCHED,
    k.Logs: k.N_LOGS,
    k.Blobs: k.N_BLOBS,
    k.Objects: k.N_OBJECTS,
}
_DTYPES: dict[Any, tuple[type, ...]] = {
    k.Events: (np.uint8, np.int32, np.int32, np.int32, np.int64, np.int64, np.int64),
    k.Args: (np.uint8, np.uint8, np.int32, *[np.int64] * 3),
    k.Sched: (np.uint8, np.uint8, *[np.int32] * 3, *[np.int64] * 4),
    k.Logs: (np.int32, *[np.int64] * 4),
    k.Blobs: (np.uint8, np.int32, *[np.int64] * 3),
    k.Objects: (np.uint8, np.uint8, np.int32, *[np.int64] * 3),
    k.Sparse: (*[np.int64] * 4,),
}


def _columns(kind: Any, rows: int) -> Any:
    return kind(*(arena.empty(rows, dtype) for dtype in _DTYPES[kind]))


def _resized(columns: Any, used: int, rows: int) -> Any:
    """The same columns with room for ``rows``; the first ``used`` stay."""
    larger = _columns(type(columns), rows)
    for old, new in zip(columns, larger, strict=True):
        new[:used] = old[:used]
    return larger


def new_map(entries: int) -> k.Map:
    """An empty map with room for that many entries."""
    slots = 1 << max(4, (2 * entries - 1).bit_length())
    empty = np.full(slots, -1, np.int64)
    return k.Map(np.zeros(slots, np.int64), np.zeros(slots, np.int64), empty, np.zeros(1, np.int64))


def grown_map(table: k.Map, more: int, nbytes: int = 0) -> k.Map:
    """The map with room for that many more entries."""
    if 2 * (int(table.used[0]) + more) <= table.value.size:
        return table
    larger = new_map(2 * (int(table.used[0]) + more))
    k.map_refill.for_size(nbytes)(table, larger)
    return larger


@attrs.define
class Chunk:
    """Raw rows of consecutive records."""

    events: k.Events
    args: k.Args
    sched: k.Sched
    logs: k.Logs
    blobs: k.Blobs
    objects: k.Objects
    sparse: k.Sparse
    """Event and argument indices in it are within the chunk."""
    segments: NDArray[np.int64]
    """Shape (n, 5): clock, and the rows of events, sched and logs from which it holds."""
    first: dict[str, int]
    """Row of the chunk's first slice, instant, counter, flow, sched, blob, object, arg, log."""


class Scanner:
    """Runs ``scan`` over a file, from its beginning, once.

    ``before`` is the scanner that last filled the same pool, if any did.
    """

    def __init__(
        self,
        words: NDArray[np.int64],
        streams: NDArray[np.int64],
        pool: StringPool,
        limits: Limits,
        before: Scanner | None = None,
    ) -> None:
        self.file = k.Words(words, streams)
        self.total = int(words.size)
        self.pool = pool
        self.nbytes = 8 * self.total
        self._step = max(2 * k.RECORD_SLACK, min(STEP, self.total))
        for text in k.WELL_KNOWN:
            pool.intern(text)
        per_code = limits.max_findings or 1 << 62
        self.threads = k.Threads(*(np.zeros(64, np.int64) for _ in range(4)))
        scalars = np.zeros(k.SCALARS, np.int64)
        # Of strings that an earlier scan entered, it is known whether they are UTF-8.
        valid = np.ones(0, np.uint8) if before is None else before.state.texts.valid
        self.state: k.State = k.State(
            scalars=scalars,
            strings=np.zeros(1 << 15, np.int64),
            threads=np.zeros(1 << 8, np.int64),
            string_map=new_map(64),
            thread_map=new_map(64),
            identities=new_map(64),
            objects=new_map(64),
            provider_map=new_map(8),
            clock_map=new_map(8),
            providers=np.zeros(8 * k.PROVIDER_FIELDS, np.int64),
            clocks=np.zeros(8 * k.CLOCK_FIELDS, np.int64),
            segments=np.zeros(64 * k.SEGMENT_FIELDS, np.int64),
            kinds=np.zeros(k.KINDS, np.int64),
            notes=k.Notes(
                scalars=scalars,
                findings=np.zeros(256 * k.FINDING_FIELDS, np.int64),
                counts=np.zeros(640, np.int64),
            ),
            texts=k.Texts(
                valid=_longer(valid, pool.arrays.starts.size, fill=1),
                limits=np.array([limits.max_string, limits.max_record], np.int64),
                scratch=np.zeros(4, np.int64),
            ),
            tables=np.array(k.PLAIN_TABLES, np.int64),
        )
        self.state.notes.counts[1] = per_code
        scalars[k.LAST_INLINE] = -1
        scalars[k.GENERATION] = 1
        self.state.strings[0] = 1 << 32
        # Provider 0 and a clock of nanoseconds stand before any record says so.
        scalars[k.N_PROVIDERS] = scalars[k.N_CLOCKS] = 1
        self.state.clocks[:3] = (1_000_000_000, 0, -1)
        k.map_put.plain(self.state.provider_map, 0, 0, 0)
        k.map_put.plain(self.state.clock_map, 1_000_000_000, 0, 0)
        self._outputs: dict[Any, Any] = {kind: _columns(kind, 64) for kind in _DTYPES}
        self._scan = k.scan.for_size(self.nbytes)

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return 8 * int(self.state.scalars[k.POS])

    def clocks(self) -> list[Clock]:
        """The clocks met so far, by number; 0 counts nanoseconds."""
        rows = self.state.clocks.reshape(-1, k.CLOCK_FIELDS)[: int(self.state.scalars[k.N_CLOCKS])]
        return [
            Clock(rate & U64_MAX, base & U64_MAX, None if wall == -1 else wall & U64_MAX)
            for rate, base, wall in rows.tolist()
        ]

    def chunks(self, events: int) -> Iterator[Chunk]:
        """Read on, giving chunks of up to about that many events, to the end of the file."""
        while self.position < self.nbytes:
            self._outputs = {kind: _columns(kind, 64) for kind in _DTYPES}
            self._make_room(events)
            first = self._first()
            while True:
                status = self._run(self.total)
                scalars = self.state.scalars
                counters = (k.N_EVENTS, k.N_ARGS, k.N_SCHED, k.N_LOGS, k.N_OBJECTS, k.N_BLOBS)
                if status == k.DONE or max(int(scalars[at]) for at in counters) >= events:
                    break
            yield self._take(first)

    def whole(self, release: Callable[[int, int], None]) -> Chunk:
        """Read the whole file into one chunk; ``release`` is told which bytes were done with."""
        self._make_room()
        first = self._first()
        self._finish(min(FIRST_WORDS, self.total))
        done = int(self.state.scalars[k.POS])
        if done < self.total:
            # The rest is likely to be as dense as its beginning was.
            scale = 1.05 * self.total / max(done, 1)
            for kind, counter in _ROWS.items():
                used = int(self.state.scalars[counter])
                if used > self._step // 8:
                    rows = min(int(scale * used) + 4096, self.total // 2 + 64 + used)
                    self._outputs[kind] = _resized(self._outputs[kind], used, rows)
            while done < self.total:
                before, done = done, min(done + WINDOW_WORDS, self.total)
                self._finish(done)
                release(8 * before, 8 * done)
        return self._take(first)

    def _finish(self, limit: int) -> None:
        while self._run(limit) != k.DONE:
            pass

    def _run(self, limit: int) -> int:
        """Scan on until something is full; make room for that first, where it already is."""
        if self._slack() < k.RECORD_SLACK:
            self._make_room()
        outputs, scalars = self._outputs, self.state.scalars
        scalars[k.SLACK] = self._slack()
        before = int(scalars[k.POS])
        status: int = self._scan(
            self.file,
            self.total,
            limit,
            outputs[k.Events],
            outputs[k.Args],
            outputs[k.Sched],
            outputs[k.Logs],
            outputs[k.Blobs],
            outputs[k.Objects],
            outputs[k.Sparse],
            self.threads,
            self.pool.arrays,
            self.state,
        )
        if status == k.FULL and int(scalars[k.POS]) == before:
            self._make_room()
            self.pool.reserve(0, k.RECORD_STRING_WORDS + 96)
        return status

    def _slack(self) -> int:
        """Rare entries that certainly fit: the least room of all but events, args and words."""
        state, scalars, pool = self.state, self.state.scalars, self.pool.arrays
        room = [
            self._outputs[kind][0].size - int(scalars[counter])
            for kind, counter in _ROWS.items()
            if kind not in (k.Events, k.Args)
        ]
        sparse = self._outputs[k.Sparse].counter_event.size
        room += [sparse - int(scalars[counter]) for counter in (k.N_COUNTERS, k.N_ANNOTATIONS)]
        strings = int(pool.used[0])
        room += [min(pool.starts.size, pool.slots.size // 2) - strings]
        room += [self.threads.pid.size - int(scalars[k.N_THREADS])]
        room += [
            table.value.size // 2 - int(table.used[0])
            for table in state
            if isinstance(table, k.Map)
        ]
        room += [array.size // fields - used - 1 for array, fields, used in self._records()]
        return int(min(room))

    def _records(self) -> list[tuple[NDArray[np.int64], int, int]]:
        """The flat arrays of records in the state: array, fields of a record, records in use."""
        state, scalars = self.state, self.state.scalars
        return [
            (state.providers, k.PROVIDER_FIELDS, int(scalars[k.N_PROVIDERS])),
            (state.clocks, k.CLOCK_FIELDS, int(scalars[k.N_CLOCKS])),
            (state.segments, k.SEGMENT_FIELDS, int(scalars[k.N_SEGMENTS])),
            (state.notes.findings, k.FINDING_FIELDS, int(state.notes.counts[0])),
        ]

    def _make_room(self, events: int = 0) -> None:
        """Room for a step more of everything, and half as much again of what is in use."""
        step, scalars = self._step, self.state.scalars
        for kind, counter in _ROWS.items():
            used = int(scalars[counter])
            least = max(step, {k.Events: events, k.Args: 2 * events}.get(kind, 0))
            if used + least > self._outputs[kind][0].size:
                rows = max(used + least, 3 * used // 2)
                self._outputs[kind] = _resized(self._outputs[kind], used, rows)
        used = max(int(scalars[k.N_COUNTERS]), int(scalars[k.N_ANNOTATIONS]))
        if used + step > self._outputs[k.Sparse].counter_event.size:
            rows = 3 * used // 2 + step
            self._outputs[k.Sparse] = _resized(self._outputs[k.Sparse], used, rows)
        self.pool.reserve(step, step)
        known = int(scalars[k.N_THREADS])
        if known + step > self.threads.pid.size:
            size = 3 * known // 2 + step
            self.threads = k.Threads(*(_longer(column, size) for column in self.threads))
        providers, clocks, segments, findings = (
            array
            if (used + step) * fields <= array.size
            else _longer(array, (3 * used // 2 + step) * fields)
            for array, fields, used in self._records()
        )
        maps: dict[str, Any] = {
            name: grown_map(table, step, self.nbytes)
            for name, table in self.state._asdict().items()
            if isinstance(table, k.Map)
        }
        self.state = self.state._replace(
            texts=self.state.texts._replace(
                valid=_longer(self.state.texts.valid, self.pool.arrays.starts.size, fill=1)
            ),
            notes=self.state.notes._replace(findings=findings),
            providers=providers,
            clocks=clocks,
            segments=segments,
            **maps,
        )

    def _first(self) -> dict[str, int]:
        scalars = self.state.scalars
        return {
            name: int(scalars[counter])
            for name, counter in (
                ("slices", k.T_SLICES),
                ("instants", k.T_INSTANTS),
                ("counters", k.T_COUNTERS),
                ("flows", k.T_FLOWS),
                ("sched", k.T_SCHED),
                ("blobs", k.T_BLOBS),
                ("trace_objects", k.T_OBJECTS),
                ("args", k.T_ARGS),
                ("logs", k.T_LOGS),
                ("ends", k.T_ENDS),
            )
        }

    def _take(self, first: dict[str, int]) -> Chunk:
        """What was filled since the last time, and empty outputs."""
        scalars = self.state.scalars
        outputs = self._outputs

        def used(kind: Any) -> Any:
            rows = int(scalars[_ROWS[kind]])
            return kind(*(column[:rows] for column in outputs[kind]))

        counters, notes = int(scalars[k.N_COUNTERS]), int(scalars[k.N_ANNOTATIONS])
        sparse = outputs[k.Sparse]
        segments = self.state.segments[: int(scalars[k.N_SEGMENTS]) * k.SEGMENT_FIELDS]
        chunk = Chunk(
            events=used(k.Events),
            args=used(k.Args),
            sched=used(k.Sched),
            logs=used(k.Logs),
            blobs=used(k.Blobs),
            objects=used(k.Objects),
            sparse=k.Sparse(
                sparse.counter_event[:counters],
                sparse.counter_arg[:counters],
                sparse.annotated[:notes],
                sparse.annotation[:notes],
            ),
            segments=segments.reshape(-1, k.SEGMENT_FIELDS).copy(),
            first=first,
        )
        for counter in (*_ROWS.values(), k.N_COUNTERS, k.N_ANNOTATIONS):
            scalars[counter] = 0
        # The clock in force goes on into the next chunk.
        self.state.segments[:4] = (int(scalars[k.CLOCK]), 0, 0, 0)
        scalars[k.N_SEGMENTS] = 1 if int(scalars[k.CLOCK]) else 0
        return chunk


def _longer(array: NDArray[Any], size: int, fill: int = 0) -> NDArray[Any]:
    if array.size >= size:
        return array
    longer = np.full(size, fill, array.dtype)
    longer[: array.size] = array
    return longer
