"""Kernel: slices of each track as begin and end events that nest, in order of time.

A track of Perfetto holds slices that nest. A slice that overlaps another without nesting in it
goes on a further lane of its track, so that nothing is lost.
"""

from __future__ import annotations

from typing import Any

from fxframework.kernels.buffers import full, view
from fxframework.kernels.kernel import Kernel

LANES = 32
"""Lanes of one track; where all are taken, a slice is cut short to fit on the first."""
OPEN = 0x7FFF_FFFF_FFFF_FFFF
"""End of a slice that was never closed: it has no end event."""


class Nesting(Kernel):
    """Events of slices that are sorted by track, start, depth and end (the longest first).

    ``track``, ``depth``, ``start`` and ``end`` (ns) are int64 of shape (n,). Afterwards
    ``events[:count]`` has ``i`` for the begin and ``~i`` for the end of slice ``i``, ``lane`` the
    lane of each slice; ``end`` is changed where a slice was cut short, ``cut`` counts these.

    ``lane`` (int64 of shape (n,)) may be given: a slice that has one, and not -1, goes there, if it
    precedes all of its track that have none. What ends at ``limit`` or later stays open.
    """

    def __init__(
        self, track: Any, start: Any, end: Any, depth: Any, lane: Any = None, limit: int = OPEN
    ) -> None:
        self.track = view(track, "i8")
        self.start = view(start, "i8")
        self.end = view(end, "i8")
        self.depth = view(depth, "i8")
        self.size = len(start)
        self.events = full(2 * self.size, "i8")
        self.lane = full(self.size, "i8", -1) if lane is None else view(lane, "i8")
        self.below = full(self.size, "i8")
        self.tops = full(LANES, "i8", -1)
        self.most = LANES
        self.open = OPEN
        self.limit = limit
        self.lanes = 0
        self.count = 0
        self.cut = 0

    def step(self) -> int:
        """Fill the arrays."""
        for i in range(self.size):
            if i > 0 and self.track[i] != self.track[i - 1]:
                self.finish()
            self.place(i)
        self.finish()
        return 0

    def place(self, i: int) -> int:
        """Put slice ``i`` on its lane, or on the first one where it nests."""
        lane = self.lane[i]
        if lane >= 0:
            while self.lanes <= lane:
                self.tops[self.lanes] = -1
                self.lanes += 1
            return self.push(lane, i)
        for lane in range(self.lanes):
            self.close_before(lane, i)
            top = self.tops[lane]
            if top < 0 or self.end[top] >= self.end[i]:
                return self.push(lane, i)
        if self.lanes < self.most:
            self.tops[self.lanes] = -1
            self.lanes += 1
            return self.push(self.lanes - 1, i)
        self.end[i] = self.end[self.tops[0]]
        self.cut += 1
        return self.push(0, i)

    def push(self, lane: int, i: int) -> int:
        """Begin slice ``i`` on a lane."""
        self.below[i] = self.tops[lane]
        self.tops[lane] = i
        self.lane[i] = lane
        self.events[self.count] = i
        self.count += 1
        return 0

    def close_before(self, lane: int, i: int) -> int:
        """End what is over on a lane when slice ``i`` begins."""
        top = self.tops[lane]
        start = self.start[i]
        while top >= 0:
            end = self.end[top]
            if end > start:
                break
            if end == start and self.depth[top] < self.depth[i] and self.end[i] <= end:
                break
            self.close(top)
            top = self.below[top]
        self.tops[lane] = top
        return 0

    def finish(self) -> int:
        """End all slices of a track that end before the limit."""
        for lane in range(self.lanes):
            top = self.tops[lane]
            while top >= 0 and self.end[top] < self.limit:
                self.close(top)
                top = self.below[top]
        self.lanes = 0
        return 0

    def close(self, i: int) -> int:
        """End slice ``i``, if it has an end."""
        if self.end[i] != self.open:
            self.events[self.count] = ~i
            self.count += 1
        return 0
