cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class PairMap:
    cdef int64_t[:, ::1] entry
    cdef readonly int64_t count
    cdef int64_t mask

    cdef int64_t slot_of(self, int64_t first, int64_t second) noexcept nogil
    cpdef int64_t get(self, int64_t first, int64_t second) noexcept nogil
    cpdef int put(self, int64_t first, int64_t second, int64_t value) except -1 nogil
    cpdef int64_t number(self, int64_t first, int64_t second) except? -9 nogil
    cdef int make(self, int64_t slots) except -1
    cdef int grow(self) except -1 with gil
    cdef object numbers_of(self, const int64_t[::1] numbers, bint enters)
