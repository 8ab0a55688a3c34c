cimport cython
from fxframework.kernels.kernel cimport Kernel
from fxframework.kernels.output cimport Output
from fxframework.kernels.rows cimport Rows

cdef int SLICE, ON_THREAD, ALONE, MORE, END, NONE, SPARE, FEW
cdef long long ENDLESS

@cython.final
cdef class Opened(Rows):
    cdef public long long[::1] below, row, thread, until, start, size, same

cdef class Nesting(Kernel):
    cdef readonly Output out
    cdef Opened opened
    cdef long long[::1] tops, index
    cdef unsigned char[::1] ends
    cdef const unsigned char[::1] data
    cdef const long long[::1] starts, sizes, times, what, thread, parent, row, until, tail
    cdef long long free, mask, used, live, most, at, count
    cdef public bint comma

    @cython.locals(what=cython.longlong)
    cdef long long step(self) except? -1 nogil
    @cython.final
    @cython.locals(thread=cython.longlong, size=cython.longlong)
    cdef int slice(self, long long at) except -1 nogil
    @cython.final
    @cython.locals(
        thread=cython.longlong, row=cython.longlong, around=cython.longlong, until=cython.longlong
    )
    cdef int settle(self, long long at) except -1 nogil
    @cython.final
    @cython.locals(
        size=cython.longlong, place=cython.longlong, used=cython.longlong, end=cython.longlong,
        slot=cython.longlong,
    )
    cdef int open(self, long long at, long long thread, long long start) except -1 nogil
    @cython.final
    @cython.locals(
        place=cython.longlong, start=cython.longlong, size=cython.longlong, used=cython.longlong,
        end=cython.longlong,
    )
    cdef int close(self, long long thread) except -1 nogil
    @cython.final
    @cython.locals(slot=cython.longlong, at=cython.longlong)
    cdef int unlist(self, long long place) except -1 nogil
    @cython.final
    @cython.locals(
        index=cython.longlong[::1], thread=cython.longlong, threads=cython.longlong,
        place=cython.longlong, slot=cython.longlong,
    )
    cdef int widen(self) except -1 with gil
    @cython.final
    @cython.locals(used=cython.longlong, end=cython.longlong)
    cdef int text(self, long long start, long long size) except -1 nogil
    @cython.final
    cdef int separate(self, long long size) except -1 nogil
    @cython.final
    @cython.locals(
        old=cython.uchar[::1], fresh=cython.uchar[::1], thread=cython.longlong,
        threads=cython.longlong, place=cython.longlong, start=cython.longlong, end=cython.longlong,
        used=cython.longlong,
    )
    cdef int tidy(self, long long size) except -1 with gil
    @cython.locals(threads=cython.longlong, place=cython.longlong, thread=cython.longlong)
    cpdef int finish(self) except -1
