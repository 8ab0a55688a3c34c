cimport cython

@cython.final
cdef class Utf8:
    cdef const unsigned char[::1] data

    @cython.locals(
        every=cython.int, at=cython.longlong, end=cython.longlong, lead=cython.int,
        more=cython.int, low=cython.int, high=cython.int,
    )
    cpdef bint valid(self, long long start, long long nbytes) noexcept nogil
