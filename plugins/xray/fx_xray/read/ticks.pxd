cimport cython
from fxframework.kernels.kernel cimport Kernel

cdef int NS_BITS
cdef long long LATEST, NS_PER_SECOND, SIGN, ONE, LARGEST_RATE, FAST_RATE, REACH, REST


cdef class Nanoseconds(Kernel):
    cdef long long rate, count, ns, left, base, near, reach, factor
    cdef bint with_spans
    cdef const long long[::1] ticks, lengths
    cdef long long[::1] starts, spans

    @cython.locals(
        row=cython.longlong, tick=cython.longlong, ahead=cython.longlong, ns=cython.longlong,
        over=cython.longlong, start=cython.longlong, length=cython.longlong,
    )
    cdef long long step(self) except? -1 nogil
    @cython.locals(ahead=cython.longlong)
    @cython.final
    cdef inline long long ahead_of(self, long long tick) noexcept nogil
    @cython.locals(ns=cython.longlong, left=cython.longlong, end=cython.longlong, span=cython.longlong)
    @cython.final
    cdef long long distant(self, long long tick, long long length, long long start) noexcept nogil
    @cython.locals(
        rate=cython.longlong, whole=cython.longlong, left=cython.longlong, bit=cython.int,
        carry=cython.bint, fraction=cython.longlong, rest=cython.longlong, space=cython.longlong,
    )
    @cython.final
    cdef void divide(self, long long ticks) noexcept nogil
    @cython.final
    cdef long long quotient(self, long long number, long long rate) noexcept nogil


cdef class Pick(Kernel):
    cdef long long count
    cdef const int[::1] table
    cdef const unsigned int[::1] keys
    cdef int[::1] out

    @cython.locals(row=cython.longlong)
    cdef long long step(self) except? -1 nogil
