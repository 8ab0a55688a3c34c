"""The scanner: runs the scan over a file, and gives its rows in chunks, with their times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.read.scan import Scan
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX
from fxframework.kernels.buffers import view
from fxframework.kernels.notes import Notes
from fxframework.model.clock import NS_MAX, NS_MIN, NS_PER_SECOND, Clock
from fxframework.model.strings import StringPool

__all__ = ["EVENTS", "LOGS", "PROFILER", "SCHED", "Chunk", "Scanner", "TimedChunk", "Times"]

I64 = NDArray[np.int64]
WINDOW_WORDS = 1 << 22
"""Words after which the file's pages are released."""
FIRST_WORDS = 1 << 17
"""Words read before the capacity for a whole file is estimated."""
FEW = 1 << 10
"""Rows that need no estimate."""


class Filled(SimpleNamespace):
    """Filled rows of a class of ``fx_trace.read.rows``: its columns, each of shape (rows,)."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> NDArray[Any]: ...


@attrs.define
class Chunk:
    """Raw rows of consecutive records."""

    events: Filled
    args: Filled
    sched: Filled
    logs: Filled
    blobs: Filled
    objects: Filled
    profiler: Filled
    counters: Filled
    """The event and the argument of each row, within the chunk."""
    annotations: Filled
    """Arguments, within the chunk, and the names of the objects that they mean."""
    segments: I64
    """Shape (n, 5): clock, and the rows of events, sched, logs and profiler from which it holds."""
    first: dict[str, int]
    """By table, and of `ends`: the row of the chunk's first one."""


class Scanner:
    """Runs ``Scan`` over a file, from its beginning, once."""

    def __init__(self, words: I64, streams: I64, pool: StringPool, limits: Limits) -> None:
        self.pool = pool
        self.nbytes = words.nbytes
        self.notes = Notes(rules.RULES.numbers, limits.max_findings)
        pool.pool.read_from(view(streams, "i8"))
        self.scan = Scan(words, streams, streams.view(np.uint8), pool.pool, self.notes)
        self.scan.max_string = limits.max_string
        self.scan.bounds.max_record = limits.max_record

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return 8 * self.scan.pos

    @property
    def kinds(self) -> I64:
        """Records of each kind: by 16 * type + subtype, and by the numbers of ``scan``."""
        return np.asarray(self.scan.kinds)

    def seen(self, *kinds: int) -> int:
        """Return the number of events of these types so far."""
        return sum(int(self.scan.kinds[16 * wire.RECORD_EVENT + kind]) for kind in kinds)

    @property
    def rows(self) -> dict[str, int]:
        """Rows so far, by table, and of `ends`."""
        scan = self.scan
        return {
            "slices": scan.slices,
            "instants": scan.instants,
            "counters": scan.counter_rows,
            "flows": scan.flows,
            "sched": scan.sched_rows,
            "logs": scan.log_rows,
            "args": scan.arg_rows,
            "blobs": scan.blob_rows,
            "trace_objects": scan.object_rows,
            "trace_profiler": scan.profiler_rows,
            "ends": scan.ends,
        }

    def clocks(self) -> list[Clock]:
        """Return the clocks in force so far, by number; 0 counts nanoseconds."""
        rows = self.scan.providers.clocks.filled()
        return [
            Clock(rate & U64_MAX, base & U64_MAX, None if wall == -1 else wall & U64_MAX)
            for rate, base, wall in zip(
                rows["rate"].tolist(), rows["base"].tolist(), rows["wall"].tolist(), strict=True
            )
        ]

    def chunks(self, events: int) -> Iterator[Chunk]:
        """Read on, giving chunks of up to about that many events, to the end of the file."""
        self.scan.most = events
        while self.position < self.nbytes:
            first = self.rows
            self._run(self.nbytes // 8)
            yield self._take(first)

    def whole(self, release: Callable[[int, int], None]) -> Chunk:
        """Read the whole file into one chunk; ``release`` is called with bytes that are done."""
        scan, first = self.scan, self.rows
        total = self.nbytes // 8
        done = min(FIRST_WORDS, total)
        self._run(done)
        if done < total:
            # The rest is likely to be as dense as its beginning was.
            scale = 1.05 * total / max(done, 1)
            for rows in (scan.events, scan.args, scan.sched, scan.logs, scan.blobs, scan.profiler):
                if rows.rows > FEW:
                    rows.resize(min(int(scale * rows.rows) + 4096, total // 2 + 64 + rows.rows))
        while done < total:
            before, done = done, min(done + WINDOW_WORDS, total)
            self._run(done)
            release(8 * before, 8 * done)
        return self._take(first)

    def _run(self, limit: int) -> bool:
        """Read the records that begin before word ``limit``; False where rows are to be taken."""
        self.scan.limit = limit
        return bool(self.scan.run())

    def _take(self, first: dict[str, int]) -> Chunk:
        """Return what was filled since the last time."""
        scan, providers = self.scan, self.scan.providers
        segments = np.column_stack(list(providers.segments.taken(16).values()))
        chunk = Chunk(
            events=Filled(**scan.events.taken()),
            args=Filled(**scan.args.taken()),
            sched=Filled(**scan.sched.taken()),
            logs=Filled(**scan.logs.taken()),
            blobs=Filled(**scan.blobs.taken()),
            objects=Filled(**scan.objects.taken()),
            profiler=Filled(**scan.profiler.taken()),
            counters=Filled(**scan.counters.taken()),
            annotations=Filled(**scan.annotations.taken()),
            segments=segments,
            first=first,
        )
        if providers.clock:
            # The clock in force goes on into the next chunk.
            providers.go_on()
        return chunk


# --- Times of a chunk ----------------------------------------------------------------------------
EVENTS, SCHED, LOGS, PROFILER = 1, 2, 3, 4
"""Columns of ``Chunk.segments``."""


class Times:
    """The times of a chunk; ``large_ticks`` is whether a tick count has bit 63 set."""

    def __init__(self, chunk: Chunk, clocks: list[Clock], *, large_ticks: bool) -> None:
        self._chunk = chunk
        self._clocks = clocks
        self._small = not large_ticks
        self.events, self.lost = self._ns(chunk.events.ticks, EVENTS)

    def may_be_lost(self) -> bool:
        """Return whether a time of any row may not fit 63 bits.

        True where one of an event does not.
        """
        if self.lost or not self._small:
            return True
        slowest = min(clock.ticks_per_second for clock in self._clocks)
        bound = NS_MAX * slowest // NS_PER_SECOND
        farthest = max(clock.base_ticks for clock in self._clocks)
        rows = (self._chunk.sched.ticks, self._chunk.logs.ticks, self._chunk.profiler.ticks)
        return any(ticks.size and max(int(ticks.max()), farthest) > bound for ticks in rows)

    def _ns(self, ticks: I64, field: int) -> tuple[I64, int]:
        unsigned = ticks.view(np.uint64)
        parts = self._parts(ticks.size, field)
        if len(parts) == 1 and self._small and self._clocks[parts[0][0]].is_identity:
            return ticks, 0
        if len(parts) == 1:
            return self._clocks[parts[0][0]].to_ns(unsigned)
        out = np.empty(ticks.size, np.int64)
        lost = 0
        for clock, start, stop in parts:
            out[start:stop], missed = self._clocks[clock].to_ns(unsigned[start:stop])
            lost += missed
        return out, lost

    def _parts(self, rows: int, field: int) -> list[tuple[int, int, int]]:
        """(clock, first row, row after the last), empty ones left out; at least one."""
        segments = self._chunk.segments
        clocks = [0, *segments[:, 0].tolist()]
        starts = [0, *segments[:, field].tolist()]
        stops = [*starts[1:], rows]
        parts = [part for part in zip(clocks, starts, stops, strict=True) if part[1] < part[2]]
        return parts or [(0, 0, rows)]

    def by_clock(self, *columns: list[int]) -> Iterator[NDArray[np.uint64]]:
        """For each column, given by clock, its value for each event, shape (events,)."""
        for column in columns:
            rows = self._chunk.events.ticks.size
            parts = self._parts(rows, EVENTS)
            if len(parts) == 1:
                yield np.broadcast_to(np.uint64(column[parts[0][0]]), rows)
                continue
            out = np.empty(rows, np.uint64)
            for clock, start, stop in parts:
                out[start:stop] = column[clock]
            yield out

    def finish(self) -> I64:
        """Ends of complete events, shape (events,); other rows mean nothing."""
        return self._ns(self._chunk.events.word, EVENTS)[0]

    def outside(self, ticks: I64, field: int) -> NDArray[np.bool_]:
        """Return which times of a table, of shape (rows,), do not fit 63 bits."""
        unsigned, out = ticks.view(np.uint64), np.zeros(ticks.size, np.bool_)
        for number, start, stop in self._parts(ticks.size, field):
            clock, rows = self._clocks[number], unsigned[start:stop]
            first, behind = clock.ticks(NS_MIN), clock.ticks(NS_MAX + 1)
            if first > 0:
                out[start:stop] |= rows < np.uint64(first)
            if behind <= U64_MAX:
                out[start:stop] |= rows >= np.uint64(behind)
        return out

    def sched(self) -> I64:
        """Return the times of scheduling rows."""
        return self._ns(self._chunk.sched.ticks, SCHED)[0]

    def logs(self) -> I64:
        """Return the times of log rows."""
        return self._ns(self._chunk.logs.ticks, LOGS)[0]

    def profiler(self) -> I64:
        """Return the times of profiler rows."""
        return self._ns(self._chunk.profiler.ticks, PROFILER)[0]


@attrs.frozen
class TimedChunk:
    """The raw rows of consecutive records, and their times."""

    chunk: Chunk
    times: Times
