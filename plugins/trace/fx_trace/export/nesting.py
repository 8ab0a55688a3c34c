"""Chrome JSON in order: events that come in order of time, and the ends of slices between them."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.annotations import (
    Array,
    Bytes,
    Column,
    Fallible,
    View,
    flag,
    i64,
    public,
    status,
    u8,
    with_gil,
)
from fxframework.kernels.buffers import full, room, view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.output import Output
from fxframework.kernels.rows import Rows

__all__ = ["Nesting"]

I64 = NDArray[np.int64]
SLICE, ON_THREAD, ALONE = range(3)
"""What an event is: a slice, an event within the slices of its thread, or one of no thread."""
MORE = 1
END = 0
NONE = -1
SPARE = 1 << 20
FEW = 1 << 10
ENDLESS = -0x8000000000000000
"""When a slice ends that was never closed."""


@final
class Opened(Rows):
    """Slices that may enclose others: the one below, its row, when it ends, and its end's text."""

    below: Column[i64]
    row: Column[i64]
    thread: Column[i64]
    until: Column[i64]
    start: Column[i64]
    size: Column[i64]
    same: Column[i64]


class Nesting(Kernel):
    """Writes events, and before each the ends of slices of its thread that it is not in.

    ``run`` gives END behind the last event, MORE once ``most`` bytes are written; ``out.take()``
    gives them. ``comma`` is 0 until the first one is written.
    """

    out: Output
    opened: Opened
    tops: Array[i64]
    index: Array[i64]
    ends: Array[u8]
    data: Bytes
    starts: View[i64]
    sizes: View[i64]
    times: View[i64]
    what: View[i64]
    thread: View[i64]
    parent: View[i64]
    row: View[i64]
    until: View[i64]
    tail: View[i64]
    free: i64
    mask: i64
    used: i64
    live: i64
    most: i64
    at: i64
    count: i64
    comma: flag

    def __init__(self, threads: int, most: int) -> None:
        self.out = Output([b",\n"], memoryview(bytes(8)))
        self.tops = full(threads, "i8", NONE)
        self.opened = Opened()
        self.free = NONE
        self.mask = FEW - 1
        self.index = full(FEW, "i8", NONE)
        self.ends = room(SPARE, "u1")
        self.used = 0
        self.live = 0
        self.most = most
        self.comma = 0
        self.at = 0
        self.count = 0
        none = view(np.zeros(1, np.int64), np.int64)
        self.data = view(np.zeros(1, np.uint8), np.uint8)
        self.starts = none
        self.sizes = none
        self.times = none
        self.what = none
        self.thread = none
        self.parent = none
        self.row = none
        self.until = none
        self.tail = none

    def load(self, events: tuple[NDArray[np.uint8], I64, I64, I64], places: I64) -> None:
        """Take events: letters, where each begins in them, its bytes, and its time.

        ``places``, of shape (6, events), are what it is; the place of its thread in ``threads``;
        the rows of the slice around it and of itself (of an event on a thread: of its slice); when
        it ends; and of its bytes those that are its end's.
        """
        data, starts, sizes, times = events
        self.count = starts.size
        self.at = 0
        if not self.count:
            return
        self.data = view(data, np.uint8)
        self.starts = view(starts, np.int64)
        self.sizes = view(sizes, np.int64)
        self.times = view(times, np.int64)
        self.what = view(places[0], np.int64)
        self.thread = view(places[1], np.int64)
        self.parent = view(places[2], np.int64)
        self.row = view(places[3], np.int64)
        self.until = view(places[4], np.int64)
        self.tail = view(places[5], np.int64)

    def step(self) -> Fallible[i64]:
        """Write events until there is enough."""
        while self.at < self.count:
            if self.out.used >= self.most:
                return MORE
            what = self.what[self.at]
            if what == SLICE:
                self.slice(self.at)
            else:
                if what == ON_THREAD:
                    self.settle(self.at)
                self.text(self.starts[self.at], self.sizes[self.at])
            self.at += 1
        return END

    def slice(self, at: i64) -> status:
        """Write a slice, which is open from here on."""
        thread = self.thread[at]
        while self.tops[thread] >= 0 and self.opened.row[self.tops[thread]] != self.parent[at]:
            self.close(thread)
        size = self.sizes[at] - self.tail[at]
        self.text(self.starts[at], size)
        self.open(at, thread, self.starts[at] + size)
        return 0

    def settle(self, at: i64) -> status:
        """End the slices of its thread that an event is not in."""
        thread = self.thread[at]
        row = self.row[at]
        around = NONE
        if row >= 0:
            around = self.index[row & self.mask]
            while around >= 0 and not (
                self.opened.row[around] == row and self.opened.thread[around] == thread
            ):
                around = self.opened.same[around]
        if around >= 0:
            while self.tops[thread] != around:
                self.close(thread)
            return 0
        while self.tops[thread] >= 0:
            until = self.opened.until[self.tops[thread]]
            if until == ENDLESS or until > self.times[at]:
                break
            self.close(thread)
        return 0

    def open(self, at: i64, thread: i64, start: i64) -> status:
        """Put a slice on the others of its thread; its end's text is at byte ``start``."""
        size = self.tail[at]
        if self.used + size > len(self.ends):
            self.tidy(size)
        place = self.free
        if place >= 0:
            self.free = self.opened.below[place]
        else:
            place = self.opened.add_row()
            if place > self.mask:
                self.widen()
        self.opened.below[place] = self.tops[thread]
        self.opened.row[place] = self.row[at]
        self.opened.thread[place] = thread
        slot = self.row[at] & self.mask
        self.opened.same[place] = self.index[slot]
        self.index[slot] = place
        self.opened.until[place] = self.until[at]
        self.opened.start[place] = self.used
        self.opened.size[place] = size
        used = self.used
        end = start + size
        while start < end:
            self.ends[used] = self.data[start]
            used += 1
            start += 1
        self.used = used
        self.live += size
        self.tops[thread] = place
        return 0

    def close(self, thread: i64) -> status:
        """Write the end of the last slice that is open on a thread."""
        place = self.tops[thread]
        start = self.opened.start[place]
        size = self.opened.size[place]
        self.tops[thread] = self.opened.below[place]
        self.opened.below[place] = self.free
        self.free = place
        self.unlist(place)
        if size == 0:
            return 0
        self.separate(size)
        used = self.out.used
        end = start + size
        if end == self.used:
            self.used = start
        while start < end:
            self.out.data[used] = self.ends[start]
            used += 1
            start += 1
        self.out.used = used
        self.live -= size
        return 0

    def unlist(self, place: i64) -> status:
        """Take a slice out of the index of open slices by row."""
        slot = self.opened.row[place] & self.mask
        at = self.index[slot]
        if at == place:
            self.index[slot] = self.opened.same[place]
            return 0
        while self.opened.same[at] != place:
            at = self.opened.same[at]
        self.opened.same[at] = self.opened.same[place]
        return 0

    @with_gil
    def widen(self) -> status:
        """Make the index of open slices twice as wide."""
        self.mask = 2 * self.mask + 1
        index: Array[i64] = full(self.mask + 1, "i8", NONE)
        self.index = index
        thread = 0
        threads = len(self.tops)
        while thread < threads:
            place = self.tops[thread]
            while place >= 0:
                slot = self.opened.row[place] & self.mask
                self.opened.same[place] = index[slot]
                index[slot] = place
                place = self.opened.below[place]
            thread += 1
        return 0

    def text(self, start: i64, size: i64) -> status:
        """Write letters of the events."""
        self.separate(size)
        used = self.out.used
        end = start + size
        while start < end:
            self.out.data[used] = self.data[start]
            used += 1
            start += 1
        self.out.used = used
        return 0

    def separate(self, size: i64) -> status:
        """Write what is between two events; there is room for ``size`` bytes behind it."""
        if self.comma:
            self.out.literal(0)
        self.comma = 1
        if self.out.used + size > self.out.size:
            self.out.grow(size)
        return 0

    @with_gil
    def tidy(self, size: i64) -> status:
        """Make room for ``size`` more bytes of ends: leave out those that were written."""
        old: Array[u8] = self.ends
        fresh: Array[u8] = room(2 * (self.live + size) + SPARE, "u1")
        self.ends = fresh
        self.used = 0
        thread = 0
        threads = len(self.tops)
        while thread < threads:
            place = self.tops[thread]
            while place >= 0:
                start = self.opened.start[place]
                end = start + self.opened.size[place]
                self.opened.start[place] = self.used
                used = self.used
                while start < end:
                    fresh[used] = old[start]
                    used += 1
                    start += 1
                self.used = used
                place = self.opened.below[place]
            thread += 1
        return 0

    @public
    @with_gil
    def finish(self) -> Fallible[flag]:
        """Write the ends that are still to come, as ``run`` does; those of no thread come last."""
        threads = len(self.tops)
        place = 1
        while place <= threads:
            thread = place if place < threads else 0
            while self.tops[thread] >= 0:
                if self.out.used >= self.most:
                    return MORE
                self.close(thread)
            place += 1
        return END
