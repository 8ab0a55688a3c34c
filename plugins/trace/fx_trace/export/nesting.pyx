# cython: boundscheck=False, wraparound=False, show_performance_hints=False
# Bounds are not checked: rows are numbers of what was opened here, with room for it.
"""Chrome JSON in order: events that come in order of time, and the ends of slices between them."""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from fxframework.kernels.output cimport Output
from fxframework.kernels.rows cimport Loop, Rows

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.buffers import full, room, view

__all__ = ["Nesting"]

I64 = NDArray[np.int64]

cdef enum:
    # What an event is: a slice, an event within the slices of its thread, or one of no thread.
    SLICE = 0
    ON_THREAD = 1
    ALONE = 2
    MORE = 1
    END = 0
    NONE = -1
    SPARE = 1 << 20
FEW = 1 << 10
# When a slice ends that was never closed.
cdef int64_t ENDLESS = <int64_t>(1ULL << 63)


@cython.final
cdef class Opened(Rows):
    """Slices that may enclose others: the one below, its row, when it ends, and its end's text."""

    cdef public int64_t[::1] below, row, thread, until, start, size, same

    COLUMNS = (("below", "i8"), ("row", "i8"), ("thread", "i8"), ("until", "i8"), ("start",
               "i8"), ("size", "i8"), ("same", "i8"))


@cython.final
cdef class Nesting(Loop):
    """Writes events, and before each the ends of slices of its thread that it is not in.

    ``run`` gives END behind the last event, MORE once ``most`` bytes are written; ``out.take()``
    gives them. ``comma`` is 0 until the first one is written.
    """

    cdef readonly Output out
    cdef Opened opened
    cdef int64_t[::1] tops
    cdef int64_t[::1] index
    cdef readonly uint8_t[::1] ends
    cdef readonly const uint8_t[::1] data
    cdef readonly const int64_t[::1] starts, sizes
    cdef readonly const int64_t[::1] times, thread, parent, row
    cdef const int64_t[::1] what, until
    cdef const int64_t[::1] tail
    cdef int64_t free, mask
    cdef int64_t used, live, most, at, count
    cdef public bint comma

    def __init__(self, threads, most):
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

    def load(self, events, places):
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

    cdef int64_t step(self) except? -9 nogil:
        """Write events until there is enough."""
        cdef int64_t what
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

    cdef int slice(self, int64_t at) except -1 nogil:
        """Write a slice, which is open from here on."""
        cdef int64_t thread, size
        thread = self.thread[at]
        while self.tops[thread] >= 0 and self.opened.row[self.tops[thread]] != self.parent[at]:
            self.close(thread)
        size = self.sizes[at] - self.tail[at]
        self.text(self.starts[at], size)
        self.open(at, thread, self.starts[at] + size)
        return 0

    cdef int settle(self, int64_t at) except -1 nogil:
        """End the slices of its thread that an event is not in."""
        cdef int64_t thread, row, around, until
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

    cdef int open(self, int64_t at, int64_t thread, int64_t start) except -1 nogil:
        """Put a slice on the others of its thread; its end's text is at byte ``start``."""
        cdef int64_t size, place, slot, used, end
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

    cdef int close(self, int64_t thread) except -1 nogil:
        """Write the end of the last slice that is open on a thread."""
        cdef int64_t place, start, size, used, end
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

    cdef int unlist(self, int64_t place) except -1 nogil:
        """Take a slice out of the index of open slices by row."""
        cdef int64_t slot, at
        slot = self.opened.row[place] & self.mask
        at = self.index[slot]
        if at == place:
            self.index[slot] = self.opened.same[place]
            return 0
        while self.opened.same[at] != place:
            at = self.opened.same[at]
        self.opened.same[at] = self.opened.same[place]
        return 0

    cdef int widen(self) except -1 with gil:
        """Make the index of open slices twice as wide."""
        cdef int64_t[::1] index
        cdef int64_t thread, threads, place, slot
        self.mask = 2 * self.mask + 1
        index = full(self.mask + 1, "i8", NONE)
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

    cdef int text(self, int64_t start, int64_t size) except -1 nogil:
        """Write letters of the events."""
        cdef int64_t used, end
        self.separate(size)
        used = self.out.used
        end = start + size
        while start < end:
            self.out.data[used] = self.data[start]
            used += 1
            start += 1
        self.out.used = used
        return 0

    cdef int separate(self, int64_t size) except -1 nogil:
        """Write what is between two events; there is room for ``size`` bytes behind it."""
        if self.comma:
            self.out.literal(0)
        self.comma = 1
        if self.out.used + size > self.out.size:
            self.out.grow(size)
        return 0

    cdef int tidy(self, int64_t size) except -1 with gil:
        """Make room for ``size`` more bytes of ends: leave out those that were written."""
        cdef uint8_t[::1] old, fresh
        cdef int64_t thread, threads, place, start, end, used
        old = self.ends
        fresh = room(2 * (self.live + size) + SPARE, "u1")
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

    cpdef bint finish(self) except? -1 with gil:
        """Write the ends that are still to come, as ``run`` does; those of no thread come last."""
        cdef int64_t threads, place, thread
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
