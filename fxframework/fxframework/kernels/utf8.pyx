# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Validation of UTF-8 in place."""

cimport cython
from libc.stdint cimport int64_t, uint8_t

__all__ = ["Utf8"]


@cython.final
cdef class Utf8:
    """Validates ranges of a source (uint8)."""

    def __init__(self, data):
        self.data = data

    cpdef bint valid(self, int64_t start, int64_t nbytes) noexcept nogil:
        """Return whether the ``nbytes`` bytes from ``start``, all within the source, are UTF-8."""
        cdef int64_t every, at, end, lead, more, low, high
        every = 0
        at = start
        end = start + nbytes
        while at < end:
            every |= self.data[at]
            at += 1
        if every < 0x80:
            return True
        at = start
        while at < end:
            lead = self.data[at]
            at += 1
            if lead < 0x80:
                continue
            if lead < 0xC2 or lead > 0xF4:
                return False
            more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
            if more > end - at:
                return False
            # The first byte restricts the second; later ones may be any continuation byte.
            low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
            high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
            while more > 0:
                if self.data[at] < low or self.data[at] > high:
                    return False
                low = 0x80
                high = 0xBF
                at += 1
                more -= 1
        return True
