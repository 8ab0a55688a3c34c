cimport cython
from fxframework.kernels.kernel cimport Kernel

cdef class Nesting(Kernel):
    cdef const long long[::1] track, start, end, depth
    cdef long long size, at, most, never, limit, swept, sweeping
    cdef int[::1] first_lane, lane_next, lane_top, open_depth, open_below
    cdef long long[::1] open_end
    cdef readonly long long[::1] lane_track, slices, times
    cdef readonly int[::1] lane_level, lanes
    cdef long long tracks, lane_room, open_room, open_used, open_free, room
    cdef readonly long long lane_count, open_count, count, cut

    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(track=cython.longlong, lane=cython.longlong, last=cython.longlong, top=cython.longlong, level=cython.longlong)
    cdef int place(self, long long i) except -1 nogil
    @cython.final
    @cython.locals(top=cython.longlong, slot=cython.longlong)
    cdef int push(self, long long lane, long long i, long long end) except -1 nogil
    @cython.final
    @cython.locals(top=cython.longlong, start=cython.longlong, end=cython.longlong)
    cdef int close_before(self, long long lane, long long i) noexcept nogil
    @cython.final
    @cython.locals(top=cython.longlong)
    cdef int sweep(self, long long lane) noexcept nogil
    @cython.final
    @cython.locals(top=cython.longlong)
    cdef int close(self, long long lane) noexcept nogil
    @cython.final
    @cython.locals(slot=cython.longlong)
    cdef long long slot(self) except -1 nogil
    @cython.final
    @cython.locals(lane=cython.longlong)
    cdef long long new_lane(self, long long track, long long last, long long level) except -1 nogil
    @cython.final
    cdef int more_tracks(self, long long track) except -1 with gil
    @cython.final
    cdef int more_lanes(self) except -1 with gil
    @cython.final
    cdef int more_open(self) except -1 with gil
