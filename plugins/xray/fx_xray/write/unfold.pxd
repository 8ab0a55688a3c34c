cimport cython
from fxframework.kernels.kernel cimport Kernel

cdef int NOTHING
cdef long long LATEST


cdef class Unfold(Kernel):
    cdef const long long[::1] order, time, dur, depth, thread
    cdef long long slices, threads
    cdef long long[::1] top, latest, below, ends
    cdef readonly long long[::1] rows, times
    cdef readonly long long count, clamped

    @cython.locals(place=cython.longlong, lane=cython.longlong, node=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    cdef void put(self, long long row, long long time) noexcept nogil
    @cython.final
    @cython.locals(end=cython.longlong)
    cdef void leave(self, long long node, long long bound) noexcept nogil
    @cython.final
    @cython.locals(
        lane=cython.longlong, begin=cython.longlong, node=cython.longlong, end=cython.longlong,
        until=cython.longlong,
    )
    cdef void enter(self, long long row) noexcept nogil
