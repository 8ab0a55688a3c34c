"""Kernel: slices of each track as begin and end events that nest, in order of time.

A track of Perfetto holds slices that nest. A slice that overlaps another without nesting in it
goes on a further lane of its track, so that nothing is lost.
"""

OPEN = 0x7FFF_FFFF_FFFF_FFFF
"""End of a slice that was never closed: it has no end event."""
MAX_LANES = 32
"""Lanes of one track; where all are taken, a slice is cut short to fit on the first."""


class Nesting:
    """Events of ``n`` slices, which are sorted by track, start, depth, and end (longest first).

    ``track``, ``depth`` (int64), ``start`` and ``end`` (int64, ns) describe the slices, all of
    shape (n,). ``events`` (int64, 2n) gets ``i`` for the begin and ``~i`` for the end of slice
    ``i``, ``lane`` (int64, n) its lane; ``end`` is changed where a slice was cut short.
    """

    def __init__(self, track, start, end, depth, events, lane, below):  # type: ignore[no-untyped-def]
        self.track = track
        self.start = start
        self.end = end
        self.depth = depth
        self.events = events
        self.lane = lane
        self.below = below
        self.tops = [-1] * MAX_LANES
        self.lanes = 0
        self.count = 0
        self.cut = 0

    def run(self):  # type: ignore[no-untyped-def]
        """Fill the arrays; gives the number of events."""
        last = -1
        for i in range(len(self.start)):
            if i and self.track[i] != last:
                self.finish()
            last = self.track[i]
            self.place(i)
        self.finish()
        return self.count

    def place(self, i):  # type: ignore[no-untyped-def]
        """Put slice ``i`` on the first lane where it nests."""
        for lane in range(self.lanes):
            self.close_before(lane, i)
            top = self.tops[lane]
            if top < 0 or self.end[top] >= self.end[i]:
                self.push(lane, i)
                return
        if self.lanes < MAX_LANES:
            self.lanes += 1
            self.tops[self.lanes - 1] = -1
            self.push(self.lanes - 1, i)
            return
        self.end[i] = self.end[self.tops[0]]
        self.cut += 1
        self.push(0, i)

    def push(self, lane, i):  # type: ignore[no-untyped-def]
        """Begin slice ``i`` on a lane."""
        self.below[i] = self.tops[lane]
        self.tops[lane] = i
        self.lane[i] = lane
        self.events[self.count] = i
        self.count += 1

    def close_before(self, lane, i):  # type: ignore[no-untyped-def]
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

    def finish(self):  # type: ignore[no-untyped-def]
        """End all slices of a track."""
        for lane in range(self.lanes):
            top = self.tops[lane]
            while top >= 0:
                self.close(top)
                top = self.below[top]
        self.lanes = 0

    def close(self, i):  # type: ignore[no-untyped-def]
        """End slice ``i``, if it has an end."""
        if self.end[i] != OPEN:
            self.events[self.count] = ~i
            self.count += 1
