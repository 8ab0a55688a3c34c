# cython: boundscheck=False, wraparound=False, show_performance_hints=False
# Bounds are not checked: lanes, slots and rows are numbers of what was made here, with room for it.
"""Begins and ends of slices in lanes, on each of which they nest."""

cimport cython
from libc.stdint cimport int32_t, int64_t

from fxframework.kernels.rows cimport Loop

import numpy as np

from fxframework.kernels.buffers import full, grown, room, view

LANES = 32
"""The most lanes per track; if all are in use, a slice is cut short to fit on the first."""
EVENTS = 1 << 15
"""The most events per run."""
OPEN = 0x7FFF_FFFF_FFFF_FFFF
"""End of a slice that was never closed and gets no end event."""


@cython.final
cdef class Nesting(Loop):
    """Makes events of slices in batches; on each track slices are sorted, outer ones first.

    Call ``load`` with slices or ``end_before`` for ends, then ``run`` until it returns 0. Each run
    makes ``count`` events: ``slices`` (int64) has the index of the slice that begins, or -1 for an
    end, ``times`` (int64) the ns, ``lanes`` (int32) the lane. The events of a lane are in order;
    ends may be late. ``lane_track`` and ``lane_level`` are track and level of each lane.
    ``lane_count``, ``open_count`` and ``cut`` are the numbers of lanes, of open slices, and of
    slices that were cut short.
    """

    cdef const int64_t[::1] track
    cdef readonly const int64_t[::1] start, end, depth
    cdef readonly int64_t size, at, most
    cdef int64_t never, limit, swept, sweeping
    cdef int32_t[::1] first_lane, lane_next, lane_top, open_depth, open_below
    cdef int64_t[::1] open_end
    cdef readonly int64_t[::1] lane_track, slices, times
    cdef readonly int32_t[::1] lane_level, lanes
    cdef public int64_t tracks
    cdef int64_t lane_room, open_room, open_used, open_free, room
    cdef readonly int64_t lane_count, open_count, count, cut

    def __init__(self):
        none = view([], "i8")
        self.track = none
        self.start = none
        self.end = none
        self.depth = none
        self.size = 0
        self.at = 0
        self.most = LANES
        self.never = OPEN
        self.limit = 0
        self.swept = 0
        self.sweeping = 0
        self.first_lane = full(16, "i4", -1)
        self.tracks = 16
        self.lane_count = 0
        self.lane_room = 16
        self.lane_track = room(16, "i8")
        self.lane_level = room(16, "i4")
        self.lane_next = room(16, "i4")
        self.lane_top = room(16, "i4")
        self.open_count = 0
        self.open_room = 16
        self.open_used = 0
        self.open_free = -1
        self.open_end = room(16, "i8")
        self.open_depth = room(16, "i4")
        self.open_below = room(16, "i4")
        self.room = EVENTS
        self.slices = room(EVENTS, "i8")
        self.times = room(EVENTS, "i8")
        self.lanes = room(EVENTS, "i4")
        self.count = 0
        self.cut = 0

    def load(self, track, start, end, depth):
        """Set the slices, int64 of equal length; ``end`` is ``OPEN`` for a slice without an end."""
        self.track = view(track, "i8")
        self.start = view(start, "i8")
        self.end = view(end, "i8")
        self.depth = view(depth, "i8")
        self.size = len(self.track)
        self.at = 0

    def end_before(self, limit):
        """Request the ends before ``limit`` (ns), if no later slice begins earlier."""
        self.limit = limit
        self.swept = 0
        self.sweeping = 1

    cdef int64_t step(self) except? -9 nogil:
        """Make events; return 1 if there was no room for all of them."""
        self.count = 0
        while self.at < self.size:
            if self.place(self.at):
                return 1
            self.at += 1
        if self.sweeping:
            while self.swept < self.lane_count:
                if self.sweep(self.swept):
                    return 1
                self.swept += 1
            self.sweeping = 0
        return 0

    cdef int place(self, int64_t i) except -1 nogil:
        """Put slice ``i`` on the first lane where it nests; return 1 if there is no room."""
        cdef int64_t track, lane, last, level, top
        track = self.track[i]
        if track >= self.tracks:
            self.more_tracks(track)
        lane = self.first_lane[track]
        last = lane
        level = 0
        while lane >= 0:
            if self.close_before(lane, i):
                return 1
            top = self.lane_top[lane]
            if top < 0 or self.open_end[top] >= self.end[i]:
                return self.push(lane, i, self.end[i])
            last = lane
            lane = self.lane_next[lane]
            level += 1
        if level < self.most:
            return self.push(self.new_lane(track, last, level), i, self.end[i])
        if self.count == self.room:
            return 1
        self.cut += 1
        lane = self.first_lane[track]
        return self.push(lane, i, self.open_end[self.lane_top[lane]])

    cdef int push(self, int64_t lane, int64_t i, int64_t end) except -1 nogil:
        """Begin slice ``i`` on a lane; return 1 if there is no room."""
        cdef int64_t top, slot
        if self.count == self.room:
            return 1
        top = self.lane_top[lane]
        # Slices around a slice that never ends do not end either, so store only one of them.
        if end != self.never or top < 0:
            slot = self.slot()
            self.open_end[slot] = end
            self.open_depth[slot] = self.depth[i]
            self.open_below[slot] = top
            self.lane_top[lane] = slot
        self.slices[self.count] = i
        self.times[self.count] = self.start[i]
        self.lanes[self.count] = lane
        self.count += 1
        return 0

    cdef int64_t close_before(self, int64_t lane, int64_t i) noexcept nogil:
        """End the slices of a lane that are over when slice ``i`` begins; return 1 without room."""
        cdef int64_t start, top, end
        start = self.start[i]
        top = self.lane_top[lane]
        while top >= 0:
            end = self.open_end[top]
            if end > start:
                return 0
            if end == start and self.open_depth[top] < self.depth[i] and self.end[i] <= end:
                return 0
            if self.close(lane):
                return 1
            top = self.lane_top[lane]
        return 0

    cdef int64_t sweep(self, int64_t lane) noexcept nogil:
        """End the slices of a lane that end before the limit; return 1 if there is no room."""
        cdef int64_t top
        top = self.lane_top[lane]
        while top >= 0 and self.open_end[top] < self.limit:
            if self.close(lane):
                return 1
            top = self.lane_top[lane]
        return 0

    cdef int64_t close(self, int64_t lane) noexcept nogil:
        """End the innermost slice of a lane; return 1 if there is no room."""
        cdef int64_t top
        if self.count == self.room:
            return 1
        top = self.lane_top[lane]
        self.slices[self.count] = -1
        self.times[self.count] = self.open_end[top]
        self.lanes[self.count] = lane
        self.count += 1
        self.lane_top[lane] = self.open_below[top]
        self.open_below[top] = self.open_free
        self.open_free = top
        self.open_count -= 1
        return 0

    cdef int64_t slot(self) except? -9 nogil:
        """Return a free slot for an open slice."""
        cdef int64_t slot
        self.open_count += 1
        slot = self.open_free
        if slot >= 0:
            self.open_free = self.open_below[slot]
            return slot
        if self.open_used == self.open_room:
            self.more_open()
        self.open_used += 1
        return self.open_used - 1

    cdef int64_t new_lane(self, int64_t track, int64_t last, int64_t level) except? -9 nogil:
        """Add a lane after the last one of a track (-1: none); return its number."""
        cdef int64_t lane
        if self.lane_count == self.lane_room:
            self.more_lanes()
        lane = self.lane_count
        self.lane_count += 1
        self.lane_track[lane] = track
        self.lane_level[lane] = level
        self.lane_next[lane] = -1
        self.lane_top[lane] = -1
        if last >= 0:
            self.lane_next[last] = lane
        else:
            self.first_lane[track] = lane
        return lane

    cdef int more_tracks(self, int64_t track) except -1 with gil:
        """Make room for a track."""
        cdef int64_t size
        size = max(track + 1, self.tracks + self.tracks // 2)
        self.first_lane = grown(self.first_lane, size, self.tracks)
        np.asarray(self.first_lane)[self.tracks :] = -1
        self.tracks = size
        return 0

    cdef int more_lanes(self) except -1 with gil:
        """Make room for more lanes."""
        cdef int64_t used, size
        used = self.lane_room
        size = used + used // 2
        self.lane_track = grown(self.lane_track, size, used)
        self.lane_level = grown(self.lane_level, size, used)
        self.lane_next = grown(self.lane_next, size, used)
        self.lane_top = grown(self.lane_top, size, used)
        self.lane_room = size
        return 0

    cdef int more_open(self) except -1 with gil:
        """Make room for more open slices."""
        cdef int64_t used, size
        used = self.open_room
        size = used + used // 2
        self.open_end = grown(self.open_end, size, used)
        self.open_depth = grown(self.open_depth, size, used)
        self.open_below = grown(self.open_below, size, used)
        self.open_room = size
        return 0
