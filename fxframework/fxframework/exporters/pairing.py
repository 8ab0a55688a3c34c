"""Begins and ends of the calls of a thread, nested, in order of time."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.annotations import Array, Column, Fallible, View, i32, i64, status, u8
from fxframework.kernels.buffers import full, room, view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.rows import Rows

__all__ = ["Pairing"]

I64 = NDArray[np.int64]


@final
class Nested(Rows):
    """The open calls, the outermost first: place, frame, and end in ns."""

    place: Column[i32]
    frame: Column[i32]
    end: Column[i64]


@final
class Moments(Rows):
    """Begins (``ends`` 0) and ends (1) of calls: frame, and time in ns."""

    ends: Column[u8]
    frame: Column[i32]
    at: Column[i64]


class Pairing(Kernel):
    """Makes the begins and ends of calls, which ``load`` gives by thread in order of their starts.

    A call ends no later than the one around it, and than ``last`` (ns); ``overlaps`` counts calls
    that are cut thereby. ``size`` is the number of calls of the capture.
    """

    start: View[i64]
    length: View[i64]
    places: View[i32]
    frames: View[i32]
    parents: View[i32]
    inside: Array[u8]
    open: Nested
    moments: Moments
    count: i64
    size: i64
    now: i64
    last: i64
    overlaps: i64

    def __init__(self, size: int) -> None:
        no_times = room(0, "i8")
        no_numbers = room(0, "i4")
        self.start = no_times
        self.length = no_times
        self.places = no_numbers
        self.frames = no_numbers
        self.parents = no_numbers
        self.inside = full(size, "u1")
        self.open = Nested()
        self.moments = Moments()
        self.count = 0
        self.size = size
        self.now = 0
        self.last = 0
        self.overlaps = 0

    def begin(self, first: int, last: int) -> None:
        """Begin a thread, whose calls lie between these times."""
        self.now = first
        self.last = last

    def load(
        self,
        places: NDArray[np.int32],
        start: I64,
        length: I64,
        frames: NDArray[np.int32],
        parents: NDArray[np.int32],
    ) -> None:
        """Set the next calls of the thread, all of shape (calls,); none: its end.

        ``places`` are numbers of calls, and ``parents`` those of the calls around them, -1 for
        none; a length of -1 is that of a call that does not end.
        """
        self.count = places.size
        self.places = view(places, "i4")
        self.frames = view(frames, "i4")
        self.parents = view(parents, "i4")
        self.start = view(start, "i8")
        self.length = view(length, "i8")
        self.moments.renew(2 * self.count + self.open.rows)

    def step(self) -> Fallible[i64]:
        """Make the begins and ends up to the last of the calls; without calls, those still open."""
        index = 0
        while index < self.count:
            self.enter(index)
            index += 1
        while self.count == 0 and self.open.rows:
            self.now = max(self.now, self.open.end[self.open.rows - 1])
            self.leave()
        return 0

    def enter(self, index: i64) -> status:
        """End the calls that a call is not in, and begin it."""
        begin = self.start[index]
        duration = self.length[index]
        parent = self.parents[index]
        # A call that does not end lasts to the last time. Compared so that no sum overflows.
        end = self.last
        if duration >= 0 and (begin < 0 or duration <= self.last - begin):
            end = min(begin + duration, self.last)
        parent_is_open = 0 <= parent < self.size and self.inside[parent]
        while self.open.rows:
            top = self.open.rows - 1
            top_end = self.open.end[top]
            if self.open.place[top] == parent:
                break
            # A call whose parent was left out, or has ended, stays in what goes on.
            if top_end > begin and parent >= 0 and not parent_is_open:
                break
            # Calls end in reverse order of their begins: one that is to go on ends here.
            if top_end > begin:
                self.overlaps += 1
            self.now = max(self.now, min(top_end, begin))
            self.leave()
            parent_is_open = 0 <= parent < self.size and self.inside[parent]
        self.now = begin
        row = self.open.rows
        # Nor may it end after the call that it is in.
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

    def leave(self) -> status:
        """End the innermost call."""
        top = self.open.rows - 1
        self.open.rows = top
        self.inside[self.open.place[top]] = 0
        return self.moment(1, self.open.frame[top])

    def moment(self, ends: i64, frame: i64) -> status:
        """Note a begin or an end at the time that it is."""
        row = self.moments.add_row()
        self.moments.ends[row] = ends
        self.moments.frame[row] = frame
        self.moments.at[row] = self.now
        return 0
