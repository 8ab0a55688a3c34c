cimport cython
from libc.stdint cimport int64_t, uint8_t


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


cdef inline bint is_utf8(const uint8_t* octets, int64_t length) noexcept nogil:
    """Whether some bytes are UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF."""
    cdef int64_t index = 0
    cdef uint8_t lead, low, high
    cdef int more
    while index < length:
        lead = octets[index]
        index += 1
        if lead < 0x80:
            continue
        if lead < 0xC2 or lead > 0xF4:
            return False
        more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        if more > length - index:
            return False
        # The first byte restricts the second; later ones may be any continuation byte.
        low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
        high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
        while more:
            if octets[index] < low or octets[index] > high:
                return False
            low, high = 0x80, 0xBF
            index += 1
            more -= 1
    return True
