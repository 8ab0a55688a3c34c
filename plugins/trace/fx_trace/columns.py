"""Raw columns: the arrays that ``scan`` fills and carries, made, grown and taken in chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import kernels as k
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX
from fxframework.model.clock import Clock
from fxframework.model.strings import StringPool

__all__ = ["Chunk", "Scanner", "grown_map", "new_map"]

WORST_ARGS = 16
WORST_STRINGS = 34
WORST_THREADS = 4
WORST_FINDINGS = 48
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
    k.Args: (np.uint8, np.uint8, np.int32, np.int64, np.int64, np.int64),
    k.Sched: (np.uint8, np.uint8, *[np.int32] * 3, *[np.int64] * 4),
    k.Logs: (np.int32, *[np.int64] * 4),
    k.Blobs: (np.uint8, np.int32, *[np.int64] * 3),
    k.Objects: (np.uint8, np.uint8, np.int32, *[np.int64] * 3),
    k.Sparse: (*[np.int64] * 4,),
}


def _columns(kind: Any, rows: int) -> Any:
    return kind(*(np.empty(rows, dtype) for dtype in _DTYPES[kind]))


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
    """Runs ``scan`` over a file, from its beginning, once."""

    def __init__(
        self,
        words: NDArray[np.int64],
        streams: NDArray[np.int64],
        pool: StringPool,
        limits: Limits,
    ) -> None:
        self.file = k.Words(words, streams)
        self.total = int(words.size)
        self.pool = pool
        self.nbytes = 8 * self.total
        for text in k.WELL_KNOWN:
            pool.intern(text)
        per_code = limits.max_findings or 1 << 62
        self.threads = k.Threads(*(np.zeros(64, np.int64) for _ in range(4)))
        self.state = k.State(
            scalars=np.zeros(k.SCALARS, np.int64),
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
            valid=np.ones(pool.arrays.starts.size, np.uint8),
            findings=np.zeros(256 * k.FINDING_FIELDS, np.int64),
            counts=np.zeros(640, np.int64),
            scratch=np.zeros(4, np.int64),
            limits=np.array([limits.max_string, limits.max_record], np.int64),
        )
        scalars = self.state.scalars
        self.state.counts[1] = per_code
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
                status = self._run(self.total, events)
                full = int(self.state.scalars[k.N_EVENTS]) >= events or (
                    int(self.state.scalars[k.N_ARGS]) >= 4 * events
                )
                if status == k.DONE or full:
                    break
            yield self._take(first)

    def whole(self) -> Chunk:
        """Read the whole file into one chunk."""
        self._make_room(1024)
        first = self._first()
        self._finish(min(FIRST_WORDS, self.total), 1 << 12)
        done = int(self.state.scalars[k.POS])
        if done < self.total:
            # The rest is likely to be as dense as its beginning was.
            scale = 1.05 * self.total / max(done, 1)
            for kind, counter in _ROWS.items():
                used = int(self.state.scalars[counter])
                if used > 64:
                    rows = min(int(scale * used) + 4096, self.total // 2 + 64 + used)
                    self._outputs[kind] = _resized(self._outputs[kind], used, rows)
            self._finish(self.total, 1 << 16)
        return self._take(first)

    def _finish(self, limit: int, step: int) -> None:
        while self._run(limit, step) != k.DONE:
            pass

    def _run(self, limit: int, step: int) -> int:
        """Scan on, for as many records as there is room for, at least ``step`` if need be."""
        budget = self._room()
        if budget < min(step, 64):
            self._make_room(step)
            budget = self._room()
        self._reserve_strings()
        outputs = self._outputs
        before = int(self.state.scalars[k.POS])
        status: int = self._scan(
            self.file,
            self.total,
            limit,
            budget,
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
        if status == k.FULL and int(self.state.scalars[k.POS]) == before and budget > 0:
            self._reserve_strings(k.RECORD_STRING_WORDS)
        return status

    def _room(self) -> int:
        """Records that certainly fit into everything but the string words."""
        scalars = self.state.scalars
        room = []
        for kind, counter in _ROWS.items():
            worst = WORST_ARGS if kind is k.Args else 1
            room.append((self._outputs[kind][0].size - int(scalars[counter])) // worst)
        sparse = self._outputs[k.Sparse].counter_event.size
        for counter in (k.N_COUNTERS, k.N_ANNOTATIONS):
            room.append((sparse - int(scalars[counter])) // WORST_ARGS)
        state, used = self.state, self.pool.arrays.used
        room.append((self.pool.arrays.starts.size - int(used[0])) // WORST_STRINGS)
        room.append((self.pool.arrays.slots.size // 2 - int(used[0])) // WORST_STRINGS)
        room.append((self.threads.pid.size - int(scalars[k.N_THREADS])) // WORST_THREADS)
        for table in (state.string_map, state.thread_map, state.identities, state.objects):
            room.append((table.value.size // 2 - int(table.used[0])) // WORST_THREADS)
        for table in (state.provider_map, state.clock_map):
            room.append(table.value.size // 2 - int(table.used[0]))
        room.append(state.providers.size // k.PROVIDER_FIELDS - int(scalars[k.N_PROVIDERS]))
        room.append(state.clocks.size // k.CLOCK_FIELDS - int(scalars[k.N_CLOCKS]))
        room.append(state.segments.size // k.SEGMENT_FIELDS - int(scalars[k.N_SEGMENTS]) - 1)
        rows = state.findings.size // k.FINDING_FIELDS - int(state.counts[0])
        room.append(rows // WORST_FINDINGS)
        return max(0, min(room))

    def _make_room(self, records: int) -> None:
        """Room for about that many more records: twice what is used, or their usual need."""
        state, scalars = self.state, self.state.scalars
        # Half of what is there may be in use before we double; a step asks for its usual need.
        for kind, counter in _ROWS.items():
            used = int(scalars[counter])
            worst = WORST_ARGS if kind is k.Args else 1
            usual = {k.Events: records, k.Args: 2 * records}.get(kind, 64)
            need = used + max(usual, 64 * worst)
            if need > self._outputs[kind][0].size:
                self._outputs[kind] = _resized(self._outputs[kind], used, max(need, 3 * used // 2))
        used = max(int(scalars[k.N_COUNTERS]), int(scalars[k.N_ANNOTATIONS]))
        if used + 64 * WORST_ARGS > self._outputs[k.Sparse].counter_event.size:
            self._outputs[k.Sparse] = _resized(
                self._outputs[k.Sparse], used, 2 * used + 64 * WORST_ARGS
            )
        strings = int(self.pool.arrays.used[0])
        if (self.pool.arrays.starts.size - strings) < 64 * WORST_STRINGS:
            self.pool.reserve(strings + 64 * WORST_STRINGS, 0)
        if self.pool.arrays.slots.size < 2 * (strings + 64 * WORST_STRINGS):
            self.pool.reserve(64 * WORST_STRINGS, 0)
        valid = _longer(state.valid, self.pool.arrays.starts.size, fill=1)
        known = int(scalars[k.N_THREADS])
        if known + 64 * WORST_THREADS > self.threads.pid.size:
            size = 2 * known + 64 * WORST_THREADS
            self.threads = k.Threads(*(_longer(column, size) for column in self.threads))
        more = 64 * WORST_THREADS
        self.state = state._replace(
            valid=valid,
            string_map=grown_map(state.string_map, more, self.nbytes),
            thread_map=grown_map(state.thread_map, more, self.nbytes),
            identities=grown_map(state.identities, more, self.nbytes),
            objects=grown_map(state.objects, more, self.nbytes),
            provider_map=grown_map(state.provider_map, 64),
            clock_map=grown_map(state.clock_map, 64),
            providers=_room_for(state.providers, k.PROVIDER_FIELDS, int(scalars[k.N_PROVIDERS])),
            clocks=_room_for(state.clocks, k.CLOCK_FIELDS, int(scalars[k.N_CLOCKS])),
            segments=_room_for(state.segments, k.SEGMENT_FIELDS, int(scalars[k.N_SEGMENTS])),
            findings=_room_for(
                state.findings, k.FINDING_FIELDS, int(state.counts[0]), 64 * WORST_FINDINGS
            ),
        )

    def _reserve_strings(self, words: int = 0) -> None:
        """Room for the strings of the next record, and some more."""
        self.pool.reserve(0, max(words, 4096) + 96)

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


def _room_for(array: NDArray[Any], fields: int, used: int, more: int = 64) -> NDArray[Any]:
    if (used + more) * fields <= array.size:
        return array
    return _longer(array, (2 * used + more) * fields)
