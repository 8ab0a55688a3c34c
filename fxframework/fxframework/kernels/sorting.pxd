cimport cython
from fxframework.kernels.kernel cimport Kernel

cdef unsigned long long LOW64
cdef int DIGIT
cdef int DIGITS

cdef class StableOrder(Kernel):
    cdef const long long[::1] keys
    cdef readonly long long[::1] order
    cdef unsigned long long[::1] above
    cdef long long[::1] other_order
    cdef unsigned long long[::1] other_above
    cdef long long[::1] places
    cdef long long count

    @cython.locals(width=cython.ulonglong, shift=cython.int)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(row=cython.longlong)
    cdef bint in_order(self) noexcept nogil
    @cython.final
    @cython.locals(
        low=cython.longlong, high=cython.longlong, key=cython.longlong, row=cython.longlong
    )
    cdef unsigned long long measure(self) noexcept nogil
    @cython.final
    @cython.locals(
        last=cython.ulonglong, place=cython.longlong, row=cython.longlong, many=cython.longlong,
        total=cython.longlong, key=cython.ulonglong, to=cython.longlong,
    )
    cdef int sort_by(self, int shift) noexcept nogil
