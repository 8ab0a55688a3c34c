cimport cython
from fxframework.kernels.kernel cimport Kernel

cdef class Nesting(Kernel):
    cdef const long long[::1] track, start, depth
    cdef long long[::1] end, below, tops
    cdef readonly long long[::1] events, lane
    cdef long long size, lanes, most, open, limit
    cdef readonly long long count, cut

    @cython.locals(i=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(lane=cython.longlong, top=cython.longlong)
    cdef int place(self, long long i) noexcept nogil
    @cython.final
    cdef int push(self, long long lane, long long i) noexcept nogil
    @cython.final
    @cython.locals(top=cython.longlong, start=cython.longlong, end=cython.longlong)
    cdef int close_before(self, long long lane, long long i) noexcept nogil
    @cython.final
    @cython.locals(lane=cython.longlong, top=cython.longlong)
    cdef int finish(self) noexcept nogil
    @cython.final
    cdef int close(self, long long i) noexcept nogil
