# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Begins and ends of the calls of a thread, nested, in order of time."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from fxframework.kernels.rows cimport Rows

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.buffers import full, room, view

__all__ = ["Pairing"]

I64 = NDArray[np.int64]


@cython.final
cdef class Nested(Rows):
    """The open calls, the outermost first: place, frame, and end in ns."""

    cdef public int32_t[::1] place, frame
    cdef public int64_t[::1] end

    COLUMNS = ("place", "i4"), ("frame", "i4"), ("end", "i8")


@cython.final
cdef class Moments(Rows):
    """Begins (``ends`` 0) and ends (1) of calls: frame, and time in ns."""

    cdef public uint8_t[::1] ends
    cdef public int32_t[::1] frame
    cdef public int64_t[::1] at

    COLUMNS = ("ends", "u1"), ("frame", "i4"), ("at", "i8")


@cython.final
cdef class Pairing:
    """Makes the begins and ends of calls, which ``load`` gives by thread in order of their starts.

    A call ends no later than the one around it, and than ``last`` (ns); ``overlaps`` counts calls
    that are cut thereby. ``size`` is the number of calls of the capture.
    """

    cdef const int64_t[::1] start, length
    cdef const int32_t[::1] places
    cdef readonly const int32_t[::1] frames, parents
    cdef uint8_t[::1] inside
    cdef readonly Nested open
    cdef readonly Moments moments
    cdef readonly int64_t count, size
    cdef int64_t now, last
    cdef readonly int64_t overlaps

    def __init__(self, size):
        none, few = room(0, "i8"), room(0, "i4")
        self.start = self.length = none
        self.places = self.frames = self.parents = few
        self.inside = full(size, "u1")
        self.open = Nested()
        self.moments = Moments()
        self.count = 0
        self.size = size
        self.now = 0
        self.last = 0
        self.overlaps = 0

    def begin(self, first, last):
        """Begin a thread, whose calls lie between these times."""
        self.now, self.last = first, last

    def load(self, places, start, length, frames, parents):
        """Set the next calls of the thread, all of shape (calls,); none: its end.

        ``places`` are numbers of calls, and ``parents`` those of the calls around them, -1 for
        none; a length of -1 is that of a call that does not end.
        """
        self.count = places.size
        self.places, self.frames = view(places, "i4"), view(frames, "i4")
        self.parents = view(parents, "i4")
        self.start, self.length = view(start, "i8"), view(length, "i8")
        self.moments.renew(2 * self.count + self.open.rows)

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Make the begins and ends up to the last of the calls; without calls, those still open."""
        cdef int64_t index
        index = 0
        while index < self.count:
            self.enter(index)
            index += 1
        while self.count == 0 and self.open.rows:
            self.now = max(self.now, self.open.end[self.open.rows - 1])
            self.leave()
        return 0

    cdef int enter(self, int64_t index) except -1 nogil:
        """End the calls that a call is not in, and begin it."""
        cdef int64_t begin, took, parent, end, held, top, ended, row
        begin = self.start[index]
        took = self.length[index]
        parent = self.parents[index]
        end = self.last
        if took >= 0 and (begin < 0 or took <= self.last - begin):
            end = min(begin + took, self.last)
        held = 0 <= parent < self.size and self.inside[parent]
        while self.open.rows:
            top = self.open.rows - 1
            ended = self.open.end[top]
            if self.open.place[top] == parent or (ended > begin and parent >= 0 and not held):
                break
            if ended > begin:
                self.overlaps += 1
            self.now = max(self.now, min(ended, begin))
            self.leave()
            held = 0 <= parent < self.size and self.inside[parent]
        self.now = begin
        row = self.open.rows
        if row and end > self.open.end[row - 1]:
            self.overlaps += 1
            end = self.open.end[row - 1]
        if row == self.open.room:
            self.open.grow()
        self.open.place[row] = self.places[index]
        self.open.frame[row] = self.frames[index]
        self.open.end[row] = end
        self.open.rows = row + 1
        self.inside[self.places[index]] = 1
        return self.moment(0, self.frames[index])

    cdef int leave(self) except -1 nogil:
        """End the innermost call."""
        cdef int64_t top
        top = self.open.rows - 1
        self.open.rows = top
        self.inside[self.open.place[top]] = 0
        return self.moment(1, self.open.frame[top])

    cdef int moment(self, int64_t ends, int64_t frame) except -1 nogil:
        """Note a begin or an end at the time that it is."""
        cdef int64_t row
        row = self.moments.add_row()
        self.moments.ends[row] = ends
        self.moments.frame[row] = frame
        self.moments.at[row] = self.now
        return 0
