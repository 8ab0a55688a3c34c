cimport cython
from libc.stdint cimport int64_t, uint8_t

@cython.final
cdef class Utf8:
    cdef public const uint8_t[::1] data

    cpdef bint valid(self, int64_t start, int64_t nbytes) noexcept nogil
