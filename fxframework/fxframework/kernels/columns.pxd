cimport cython
from fxframework.kernels.kernel cimport Kernel

cdef class SplitNumbers(Kernel):
    cdef const unsigned char[::1] types
    cdef const long long[::1] values
    cdef const int[::1] rows
    cdef long long wanted, otherwise, count
    cdef bint chosen
    cdef readonly long long[::1] out

    @cython.locals(row=cython.longlong, at=cython.longlong, kind=cython.int)
    cdef long long step(self) except? -1 nogil

cdef class SplitCodes(Kernel):
    cdef const unsigned char[::1] types
    cdef const long long[::1] values
    cdef long long wanted, otherwise, count
    cdef readonly int[::1] out

    @cython.locals(row=cython.longlong, kind=cython.int)
    cdef long long step(self) except? -1 nogil

cdef class Taken(Kernel):
    cdef const int[::1] rows
    cdef const int[::1] values
    cdef const int[::1] through
    cdef long long count
    cdef bint indirect
    cdef readonly int[::1] out

    @cython.locals(row=cython.longlong, at=cython.longlong)
    cdef long long step(self) except? -1 nogil

cdef class CopiedStretches(Kernel):
    cdef const unsigned char[::1] source
    cdef const long long[::1] starts
    cdef const long long[::1] offsets
    cdef unsigned char[::1] out
    cdef long long size, count

    @cython.locals(
        row=cython.longlong, to=cython.longlong, size=cython.longlong, start=cython.longlong,
        index=cython.longlong,
    )
    cdef long long step(self) except? -1 nogil
