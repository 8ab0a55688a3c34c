from libc.stdint cimport int64_t, uint8_t

cdef class Judge:
    cdef uint8_t[::1] window
    cdef int64_t[::1] words
    cdef int64_t total

    cdef int64_t whole(self, int64_t at) noexcept nogil
    cdef int64_t stated(self, int64_t at) noexcept nogil
    cdef bint leads(self, int64_t at) noexcept nogil
    cdef int64_t behind(self, int64_t before, int64_t at) noexcept nogil
