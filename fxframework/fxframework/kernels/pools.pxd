cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t

@cython.final
cdef class Pool:
    cdef uint64_t seed, multiplier, other
    cdef readonly int64_t count, filled
    cdef int64_t room, word_room, mask
    cdef readonly int64_t[::1] words, starts, lengths
    cdef readonly uint8_t[::1] valid
    cdef int32_t[::1] hashes, slots

    cdef int64_t hash_of(self, const uint8_t* text, int64_t nbytes) noexcept nogil
    cdef int64_t find(self, int64_t tag, const uint8_t* text, int64_t nbytes) noexcept nogil
    cdef int64_t intern(self, const uint8_t* text, int64_t nbytes) except -1 nogil
    cdef int reserve(self, int64_t strings, int64_t words) except -1 with gil
    cdef int64_t enter_again(self) noexcept nogil
    cdef int64_t free_slot(self, int64_t tag) noexcept nogil


@cython.final
cdef class PairMap:
    cdef uint64_t seed, multiplier, other
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
