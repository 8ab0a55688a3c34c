"""Unfolds slices into entries and exits with the same nesting."""

from __future__ import annotations

from fx_xray.format import LATEST, NOTHING, SIGN
from fxframework.kernels.annotations import Array, Fallible, View, i64, void
from fxframework.kernels.buffers import full, room
from fxframework.kernels.kernel import Kernel

__all__ = ["Unfold"]


class Unfold(Kernel):
    """Makes an entry and an exit of each slice.

    ``order`` has rows by time, what encloses others first; ``thread``, ``time``, ``dur`` and
    ``depth`` are by row. Fills ``rows``, an exit as ``~row``, and ``times``, ``count`` of each;
    ``clamped`` is how many ends had to come earlier.
    """

    order: View[i64]
    time: View[i64]
    dur: View[i64]
    depth: View[i64]
    thread: View[i64]
    slices: i64
    threads: i64
    top: Array[i64]
    latest: Array[i64]
    below: Array[i64]
    ends: Array[i64]
    rows: Array[i64]
    times: Array[i64]
    count: i64
    clamped: i64

    def __init__(
        self,
        order: memoryview,
        thread: memoryview,
        time: memoryview,
        dur: memoryview,
        depth: memoryview,
        *,
        threads: int,
    ) -> None:
        count = len(order)
        self.order = memoryview(order)
        self.thread = memoryview(thread)
        self.time = memoryview(time)
        self.dur = memoryview(dur)
        self.depth = memoryview(depth)
        self.slices = count
        self.threads = threads
        self.top = full(threads, "i8", NOTHING)
        """Innermost open slice of each thread."""
        self.latest = full(threads, "i8", SIGN)
        """Last time of each thread."""
        self.below = full(count, "i8")
        """Enclosing slice of each row."""
        self.ends = full(count, "i8")
        """End of each row; of an unclosed slice, the end of the enclosing one."""
        self.rows = room(2 * count, "i8")
        self.times = room(2 * count, "i8")
        self.count = 0
        self.clamped = 0

    def step(self) -> Fallible[i64]:
        """Unfold all slices."""
        place = 0
        while place < self.slices:
            self.enter(self.order[place])
            place += 1
        lane = 0
        while lane < self.threads:
            node = self.top[lane]
            while node >= 0:
                self.leave(node, LATEST)
                node = self.below[node]
            lane += 1
        return 0

    def put(self, row: i64, time: i64) -> void:
        """Add an entry or an exit."""
        self.rows[self.count] = row
        self.times[self.count] = time
        self.count += 1

    def leave(self, node: i64, bound: i64) -> void:
        """Add the exit of a slice, at its bound at the latest; none for an unclosed slice."""
        if self.dur[node] < 0:
            return
        end = self.ends[node]
        if end > bound:
            end = bound
            self.clamped += 1
        self.put(~node, end)

    def enter(self, row: i64) -> void:
        """Add the entry of a slice, after the exits of slices that end before it."""
        lane = self.thread[row]
        begin = max(self.time[row], self.latest[lane])
        node = self.top[lane]
        while node >= 0 and self.depth[node] >= self.depth[row]:
            self.leave(node, begin)
            node = self.below[node]
        end = self.ends[node] if node >= 0 else LATEST
        if self.dur[row] >= 0:
            until = self.time[row]
            if until > 0 and self.dur[row] > LATEST - until:
                until = LATEST
            else:
                until += self.dur[row]
            until = max(until, begin)
            if until > end:
                self.clamped += 1
            else:
                end = until
        self.ends[row] = end
        self.below[row] = node
        self.top[lane] = row
        self.latest[lane] = begin
        self.put(row, begin)
