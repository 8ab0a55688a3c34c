"""Times of a chunk's rows in nanoseconds, each by the clock that was in force there."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace.read.scanner import Chunk
from fxframework.io.words import U64_MAX
from fxframework.model.clock import NS_MAX, NS_MIN, NS_PER_SECOND, Clock

__all__ = ["EVENTS", "LOGS", "PROFILER", "SCHED", "TimedChunk", "Times"]

I64 = NDArray[np.int64]
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
