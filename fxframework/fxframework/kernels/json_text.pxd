cimport cython
from libc.stdint cimport int64_t, uint64_t, uint8_t

@cython.final
cdef class JsonText:
    cdef uint64_t seed, multiplier, other
    cdef const uint8_t[::1] data
    cdef uint64_t mixed

    cdef int64_t begin(self) noexcept nogil
    cdef int64_t number(self, uint64_t value) noexcept nogil
    cdef int64_t key(self, int64_t start, int64_t end) noexcept nogil
    cdef int64_t string_end(self, int64_t at) noexcept nogil
    cdef int64_t literal_end(self, int64_t at) noexcept nogil
    cdef bint is_whole(self, int64_t at, int64_t end) noexcept nogil
    cdef int64_t value_end(self, int64_t at) noexcept nogil
    cdef int64_t take(self, int64_t at, int64_t end) noexcept nogil
