"""Batches: the columns of a batch of rows of each table, made of raw rows (``rows.py``)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace.indexed import THREADS
from fx_trace.kinds import SchedulingType
from fx_trace.meaning import ASYNC_SCOPE, EVENTS_OF, KIND_OF_SLICE, A, E, are_rows_of
from fx_trace.read.chunks import Chunk
from fx_trace.read.first_pass import EventPass
from fx_trace.read.match import durations
from fxframework.kernels.arrays import I64
from fxframework.kernels.buffers import gathered
from fxframework.kit.scanned import Batch, Columns, value_columns
from fxframework.model.schema import TABLE_CODES
from fxframework.model.strings import StringPool, TextColumn

WAKER_TYPES = (
    A.INT32, A.UINT32, A.INT64, A.UINT64, A.KOID
)  # fmt: skip
"""Types of arguments that can name a thread."""


class _Picked:
    """Rows picked by a mask or by indices; all of them are taken as they are, without copying."""

    def __init__(self, rows: NDArray[Any]) -> None:
        self._index: NDArray[Any] | None = rows
        if rows.dtype == np.bool_:
            # A mask of one value for all rows, without strides, is that of all of them.
            is_all = rows.strides == (0,) or bool(rows.all())
            self._index = None if is_all else np.flatnonzero(rows)
        self.count = int(rows.size if self._index is None else self._index.size)

    def __call__(self, column: NDArray[Any]) -> NDArray[Any]:
        return column if self._index is None else gathered(column, self._index)


class _Maker:
    """Makes the columns of a part, each when it is asked for. It does not refer to the capture."""

    def __init__(
        self, passed: EventPass, part: Chunk, pool: StringPool, data: NDArray[np.uint8]
    ) -> None:
        self.passed = passed
        self.chunk = part
        self.pool = pool
        self.data = data

    def events_of(self, table: str) -> _Picked:
        """Return the events that have a row in a table."""
        kind = self.chunk.events.kind
        kinds = EVENTS_OF[table]
        events_seen = self.passed.reader.events_seen
        if not events_seen(*kinds):
            return _Picked(np.zeros(0, np.int64))
        if events_seen(*kinds) == events_seen(*vars(E).values()):
            return _Picked(np.broadcast_to(np.True_, kind.size))
        return _Picked(are_rows_of(table, kind))

    def times_of(self, picked: _Picked) -> Callable[[], I64]:
        """Return a function that gives the times of some events, which it makes once."""
        return functools.cache(lambda: picked(self.chunk.events.time))

    def common(self, picked: _Picked, ts: Callable[[], I64] | None = None) -> Columns:
        """Return the columns that every event has."""
        events = self.chunk.events
        times = ts or self.times_of(picked)

        def ticks() -> NDArray[np.uint64]:
            if events.time is events.ticks:
                return times().view(np.uint64)
            return picked(events.ticks).view(np.uint64)

        return {
            "offset": lambda: picked(events.offset),
            "ts": times,
            "ticks": ticks,
            "thread": lambda: picked(events.thread),
            "category": lambda: picked(events.category),
            "name": lambda: picked(events.name),
        }

    def ids_of(self, picked: _Picked, kind: int) -> NDArray[np.uint64]:
        """Return the ids of events of an asynchronous kind, and 0 of others."""
        if not self.passed.reader.events_seen(kind):
            return np.broadcast_to(np.uint64(0), picked.count)
        events = self.chunk.events
        has_id = picked(events.kind) == kind
        ids = np.where(has_id, picked(events.word), 0)
        return ids.view(np.uint64)

    def slices(self) -> tuple[int, Columns]:
        """Durations and asynchronous operations."""
        events = self.chunk.events
        spans = self.passed.spans
        events_seen = self.passed.reader.events_seen
        picked = self.events_of("slices")
        first_row = self.chunk.first["slices"]
        rows = slice(first_row, first_row + picked.count)

        def kinds() -> NDArray[np.uint8]:
            number_of_events = events_seen(*EVENTS_OF["slices"])
            for kind in EVENTS_OF["slices"]:
                if events_seen(kind) == number_of_events:  # all are of this kind
                    return np.broadcast_to(KIND_OF_SLICE[kind], picked.count)
            return np.asarray(KIND_OF_SLICE[picked(events.kind)])

        times = self.times_of(picked)

        return picked.count, {
            **self.common(picked, times),
            "dur": lambda: durations(times(), spans.end[rows]),
            "depth": lambda: spans.depth[rows],
            "parent": lambda: spans.parent[rows],
            "kind": kinds,
            "id": lambda: self.ids_of(picked, E.ASYNC_BEGIN),
        }

    def instants(self) -> tuple[int, Columns]:
        """Points in time."""
        events = self.chunk.events
        picked = self.events_of("instants")
        has_async = self.passed.reader.events_seen(E.ASYNC_INSTANT) > 0

        def scopes() -> NDArray[np.uint8]:
            scope = picked(events.word).astype(np.uint8)
            if has_async:
                scope[picked(events.kind) == E.ASYNC_INSTANT] = ASYNC_SCOPE
            return scope

        return picked.count, {
            **self.common(picked),
            "scope": scopes,
            "id": lambda: self.ids_of(picked, E.ASYNC_INSTANT),
        }

    def flows(self) -> tuple[int, Columns]:
        """Points of flows."""
        events = self.chunk.events
        spans = self.passed.spans
        picked = self.events_of("flows")
        first_row = self.chunk.first["flows"]
        rows = slice(first_row, first_row + picked.count)
        return picked.count, {
            **self.common(picked),
            "id": lambda: picked(events.word).view(np.uint64),
            "phase": lambda: (picked(events.kind) - E.FLOW_BEGIN).astype(np.uint8),
            "slice": lambda: spans.flows[rows],
        }

    def counters(self) -> tuple[int, Columns]:
        """Values of counters."""
        events = self.chunk.events
        args = self.chunk.args
        picked = _Picked(self.chunk.counters.event)
        arg = self.chunk.counters.arg
        kind = args.type[arg]
        value = args.value[arg]
        is_double = kind == A.DOUBLE

        def values() -> NDArray[np.float64]:
            # Large unsigned integers are negative here, as all values are held as int64.
            is_large = (kind == A.UINT64) & (value < 0)
            unsigned = value.view(np.uint64).astype(np.float64)
            numbers = np.where(is_large, unsigned, value)
            doubles = value.view(np.float64)
            return np.asarray(np.where(is_double, doubles, numbers))

        return picked.count, {
            **self.common(picked),
            "id": lambda: picked(events.word).view(np.uint64),
            "series": lambda: args.name[arg],
            "value": values,
            "value_int": lambda: np.where(is_double, 0, value),
            "is_int": lambda: ~is_double,
        }

    def sched(self) -> tuple[int, Columns]:
        """Context switches and wakeups."""
        sched = self.chunk.sched
        tasks = self.passed.tasks
        is_switch = sched.kind == SchedulingType.CONTEXT_SWITCH
        is_legacy = sched.kind == SchedulingType.LEGACY_CONTEXT_SWITCH

        def threads(column: I64, has_tid: NDArray[np.bool_]) -> NDArray[np.int32]:
            # Legacy switches name threads as events do: those are numbered already.
            named_threads = tasks.threads_of(column, has_tid)
            return np.where(is_legacy, column, named_threads).astype(np.int32)

        return int(sched.kind.size), {
            "offset": sched.offset,
            "ts": sched.time,
            "ticks": sched.ticks.view(np.uint64),
            "cpu": lambda: sched.cpu.astype(np.uint16),
            "kind": sched.kind,
            "prev": lambda: threads(sched.prev, is_switch),
            "next": lambda: threads(sched.next, ~is_legacy),
            "prev_state": sched.state,
            "prev_priority": sched.prev_priority,
            "next_priority": sched.next_priority,
            "waker": self.wakers,
        }

    def wakers(self) -> NDArray[np.uint64]:
        """Return what the first integer argument `waker` of each wakeup says; 0 without one."""
        sched = self.chunk.sched
        args = self.chunk.args
        wakers = np.zeros(sched.kind.size, np.uint64)
        of_wakeups = np.flatnonzero(args.name == self.pool.code("waker"))
        is_waker = args.table[of_wakeups] == TABLE_CODES["sched"]
        is_waker &= np.isin(args.type[of_wakeups], WAKER_TYPES)
        of_wakeups = of_wakeups[is_waker]
        rows = args.parent[of_wakeups] - self.chunk.first["sched"]
        # From the last argument of a record to the first, which then holds.
        # Of several wakers of a row, the first one stays: it is written last.
        values = args.value[of_wakeups].view(np.uint64)
        wakers[rows[::-1]] = values[::-1]
        wakers[sched.kind != SchedulingType.THREAD_WAKEUP] = 0
        return wakers

    def logs(self) -> tuple[int, Columns]:
        """Log records."""
        logs = self.chunk.logs
        tasks = self.passed.tasks
        data = self.data
        rows = int(logs.thread.size)
        no_text = np.broadcast_to(np.int32(-1), rows)
        return rows, {
            "offset": logs.offset,
            "ts": logs.time,
            "ticks": logs.ticks.view(np.uint64),
            "severity": np.broadcast_to(np.uint8(0), rows),
            "severity_name": no_text,
            "pid": lambda: tasks.pids[logs.thread],
            "tid": lambda: tasks.tids[logs.thread],
            "tags": no_text,
            "component": no_text,
            "message": lambda: TextColumn.gather(data, logs.start, logs.length),
            "file": no_text,
            "line": np.broadcast_to(np.uint32(0), rows),
            "dropped": np.broadcast_to(np.uint64(0), rows),
        }

    def blobs(self) -> tuple[int, Columns]:
        """Return the columns of `blobs`, and how many rows they have."""
        blobs = self.chunk.blobs
        return int(blobs.type.size), {
            "offset": blobs.offset,
            "name": blobs.name,
            "type": blobs.type,
            "size": lambda: blobs.length.view(np.uint64),
            "data": lambda: np.column_stack((blobs.start, blobs.length)),
        }

    def objects(self) -> tuple[int, Columns]:
        """Annotations of objects."""
        objects = self.chunk.objects
        return int(objects.kind.size), {
            "offset": objects.offset,
            "kind": objects.kind,
            "type": objects.type,
            "id": objects.value.view(np.uint64),
            "pid": objects.pid.view(np.uint64),
            "name": objects.name,
        }

    def profiler(self) -> tuple[int, Columns]:
        """Modules, mappings and backtraces."""
        rows = self.chunk.profiler
        pool = self.pool

        def build_ids() -> NDArray[np.int32]:
            codes, code_of_row = np.unique(rows.build_id, return_inverse=True)
            hex_codes = np.full(codes.size, -1, np.int32)
            for place in np.flatnonzero(codes >= 0).tolist():
                build_id = pool.bytes_of(int(codes[place]))
                hex_codes[place] = pool.intern(build_id.hex().encode())
            return hex_codes[code_of_row]

        return int(rows.kind.size), {
            "offset": rows.offset,
            "ts": rows.time,
            "ticks": rows.ticks.view(np.uint64),
            "kind": rows.kind,
            "thread": rows.thread,
            "pid": rows.pid.view(np.uint64),
            "module": rows.module,
            "name": rows.name,
            "build_id": build_ids,
            "flags": rows.flags.view(np.uint32),
            "address": rows.address.view(np.uint64),
            "size": rows.size.view(np.uint64),
            "vaddr": rows.vaddr.view(np.uint64),
            "frames": lambda: np.column_stack((rows.start, rows.length)),
        }

    def args(self) -> tuple[int, Columns]:
        """Arguments."""
        args = self.chunk.args
        annotations = self.chunk.annotations
        passed = self.passed
        rows = int(args.type.size)

        def parents() -> I64:
            if not passed.reader.has_end_args:
                return np.asarray(args.parent)
            # Those of an end belong to the slice that it closes, which only matching knows.
            of_ends = np.flatnonzero(args.parent <= wire.PARENT_END)
            parent: I64 = args.parent.copy()
            end_numbers = wire.PARENT_END - parent[of_ends]
            parent[of_ends] = passed.spans.ends[end_numbers]
            return parent

        def annotated() -> NDArray[np.int32]:
            if not annotations.arg.size:
                return np.broadcast_to(np.int32(-1), rows)
            names = np.full(rows, -1, np.int32)
            names[annotations.arg] = annotations.name
            return names

        return rows, {
            "offset": args.offset,
            "table": args.table,
            "parent": parents,
            "name": args.name,
            "type": args.type,
            **value_columns(args.type, args.value, passed.reader.types_seen),
            "trace_annotation": annotated,
        }


_MAKERS: dict[str, Callable[[_Maker], tuple[int, Columns]]] = {
    "slices": _Maker.slices,
    "instants": _Maker.instants,
    "counters": _Maker.counters,
    "flows": _Maker.flows,
    "sched": _Maker.sched,
    "logs": _Maker.logs,
    "args": _Maker.args,
    "blobs": _Maker.blobs,
    "trace_objects": _Maker.objects,
    "trace_profiler": _Maker.profiler,
}


def batch_of(
    name: str, passed: EventPass, part: Chunk, pool: StringPool, data: NDArray[np.uint8]
) -> Batch:
    """Return the rows of a streamed table that a part holds."""
    rows, columns = _MAKERS[name](_Maker(passed, part, pool, data))
    return Batch(part.first[name], rows, columns)


def small_columns(name: str, passed: EventPass, pool: StringPool) -> Columns:
    """Return the columns of `threads` or `processes`, but ``row``."""
    tasks = passed.tasks
    if name == "threads":
        names = tasks.names.copy()
        for thread in np.flatnonzero(tasks.gone).tolist():
            unknown_name = THREADS.unknown(int(tasks.gone[thread]) - 1)
            names[thread] = pool.intern(unknown_name.encode())
        return {
            "offset": tasks.offsets,
            "id": np.arange(tasks.pids.size, dtype=np.int32),
            "pid": tasks.pids,
            "tid": tasks.tids,
            "name": names,
        }
    return {
        "offset": tasks.process_offsets,
        "pid": tasks.processes,
        "name": tasks.process_names,
    }
