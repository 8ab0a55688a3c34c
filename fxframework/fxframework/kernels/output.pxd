cimport cython
from libc.stdint cimport int64_t, uint64_t, uint8_t

@cython.final
cdef class Output:
    cdef public int64_t[::1] bounds
    cdef uint8_t[::1] literals
    cdef public const uint8_t[::1] texts
    cdef readonly const uint8_t[::1] source
    cdef const uint8_t[::1] escapes
    cdef public uint8_t[::1] data
    cdef readonly uint8_t[::1] digits
    cdef public int64_t size, count, used

    cdef int grow(self, int64_t nbytes) except -1 with gil
    cdef int literal(self, int64_t number) except -1 nogil
    cdef int text(self, int64_t start, int64_t end) except -1 nogil
    cdef int natural(self, uint64_t value) except -1 nogil
    cdef int signed(self, int64_t value) except -1 nogil
    cdef int padded(self, uint64_t value, int64_t places) except -1 nogil
    cdef int json_text(self, int64_t start, int64_t nbytes) except -1 nogil
    cdef int hexadecimal(self, int64_t start, int64_t nbytes) except -1 nogil
    cdef int real(self, double value, int64_t bits) except -1 nogil
    cdef int decimal(self, int64_t whole, int64_t places, int64_t bits) except -1 nogil
    cdef int real_by_host(self, double value) except -1 with gil
    cdef int put(self, const uint8_t[::1] data) except -1 with gil
