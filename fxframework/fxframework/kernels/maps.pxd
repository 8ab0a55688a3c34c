cimport cython
from libc.stdint cimport int64_t, uint64_t

@cython.final
cdef class PairMap:
    cdef uint64_t seed, multiplier
    cdef readonly uint64_t other
    cdef int64_t used, mask
    cdef readonly int64_t[::1] first
    cdef int64_t[::1] second
    cdef readonly int64_t[::1] value

    cdef int64_t find(self, int64_t first, int64_t second) noexcept nogil
    cpdef int64_t get(self, int64_t first, int64_t second) noexcept nogil
    cpdef int put(self, int64_t first, int64_t second, int64_t value) except -1 nogil
    cpdef int64_t number(self, int64_t first, int64_t second) except? -9 nogil
    cdef int grow(self) except -1 with gil
    cdef int64_t enter_again(self, int64_t[::1] first, int64_t[::1] second, int64_t[::1] value,
                             int64_t mask) noexcept nogil


@cython.final
cdef class CountMap:
    cdef uint64_t seed, multiplier
    cdef int64_t used, mask
    cdef readonly int64_t[::1] keys, counts

    cdef int64_t find(self, int64_t key) noexcept nogil
    cpdef int64_t get(self, int64_t key) noexcept nogil
    cpdef int add(self, int64_t key, int64_t amount) except -1 nogil
    cdef int grow(self) except -1 with gil
    cdef int64_t enter_again(self, int64_t[::1] keys, int64_t[::1] counts,
                             int64_t mask) noexcept nogil
