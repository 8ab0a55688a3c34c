# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""JSON text for kernels: where strings and values of a line end, and hashes of its bytes."""

cimport cython
from libc.stdint cimport int64_t, uint64_t, uint8_t

from fxframework.kernels.hashing import FIRST, SECOND, SEED

__all__ = ["JsonText"]

LOW64 = 0xFFFFFFFFFFFFFFFF

cdef enum:
    NEWLINE = 0x0A
    QUOTE = 0x22
    COMMA = 0x2C
    POINT = 0x2E
    COLON = 0x3A
    UPPER_E = 0x45
    OPEN_LIST = 0x5B
    BACKSLASH = 0x5C
    CLOSE_LIST = 0x5D
    LOWER_E = 0x65
    LOWER_F = 0x66
    LOWER_N = 0x6E
    LOWER_T = 0x74
    OPEN_OBJECT = 0x7B
    CLOSE_OBJECT = 0x7D


@cython.final
cdef class JsonText:
    """Lines of JSON in ``data``, which must end with a newline; no method reads past a newline.

    ``mixed`` is the hash so far of what ``take`` was called for.
    """

    def __init__(self):
        self.seed = SEED
        self.multiplier = FIRST
        self.other = SECOND
        self.data = b"\n"
        self.mixed = 0

    def read_from(self, data):
        """Set the lines."""
        self.data = data

    cdef int64_t begin(self) noexcept nogil:
        """Begin a new hash."""
        self.mixed = self.seed
        return 0

    cdef int64_t number(self, uint64_t value) noexcept nogil:
        """Mix a number into the hash."""
        cdef uint64_t mixed
        mixed = (self.mixed ^ value) * self.multiplier
        mixed = (mixed ^ (mixed >> 29)) * self.other
        self.mixed = mixed ^ (mixed >> 32)
        return 0

    cdef int64_t key(self, int64_t start, int64_t end) noexcept nogil:
        """Return the bytes of a short key between its quotes as a number; 0 for a long one."""
        cdef int64_t name, at
        if end - start > 8 + 1:
            return 0
        name = 0
        at = start + 1
        while at < end - 1 and self.data[at] != NEWLINE:
            name = (name << 8) | self.data[at]
            at += 1
        return name

    cdef int64_t string_end(self, int64_t at) noexcept nogil:
        """Return the byte after a string that begins at ``at``; -1 if it does not end."""
        cdef int64_t byte
        at += 1
        while True:
            byte = self.data[at]
            if byte == QUOTE:
                return at + 1
            if byte == NEWLINE:
                return -1
            at += 1
            if byte == BACKSLASH:
                if self.data[at] == NEWLINE:
                    return -1
                at += 1

    cdef int64_t literal_end(self, int64_t at) noexcept nogil:
        """Return the byte after a number, true, false or null."""
        cdef int64_t byte
        while True:
            byte = self.data[at]
            if byte in (COMMA, CLOSE_OBJECT, CLOSE_LIST, NEWLINE):
                return at
            at += 1

    cdef bint is_whole(self, int64_t at, int64_t end) noexcept nogil:
        """Return whether a literal is an integer or a bool."""
        if self.data[at] in (LOWER_T, LOWER_F):
            return True
        if self.data[at] == LOWER_N:
            return False
        while at < end:
            if self.data[at] in (POINT, LOWER_E, UPPER_E):
                return False
            at += 1
        return True

    cdef int64_t value_end(self, int64_t at) noexcept nogil:
        """Return the byte after a value of any kind; -1 if it does not end in its line."""
        cdef int64_t depth, byte
        depth = 0
        while True:
            byte = self.data[at]
            if byte == QUOTE:
                at = self.string_end(at)
                if at < 0:
                    return -1
            elif byte in (OPEN_OBJECT, OPEN_LIST):
                depth += 1
                at += 1
            elif byte in (CLOSE_OBJECT, CLOSE_LIST):
                depth -= 1
                at += 1
            elif byte == NEWLINE:
                return -1
            elif byte in (COMMA, COLON):
                at += 1
            else:
                at = self.literal_end(at + 1)
            if depth <= 0:
                return at

    cdef int64_t take(self, int64_t at, int64_t end) noexcept nogil:
        """Mix the bytes of a token into the hash."""
        cdef uint64_t mixed, word, high
        cdef int64_t size
        mixed = self.mixed
        size = end - at
        word = 0
        while at + 8 <= end:
            word = (
                self.data[at]
                | <int64_t>self.data[at + 1] << 8
                | <int64_t>self.data[at + 2] << 16
                | <int64_t>self.data[at + 3] << 24
            )
            high = (
                self.data[at + 4]
                | <int64_t>self.data[at + 5] << 8
                | <int64_t>self.data[at + 6] << 16
                | <int64_t>self.data[at + 7] << 24
            )
            word |= high << 32
            mixed = (mixed ^ word) * self.multiplier
            mixed = (mixed ^ (mixed >> 29)) * self.other
            mixed ^= mixed >> 32
            at += 8
        word = 0
        while at < end:
            word = (word << 8) | self.data[at]
            at += 1
        mixed = (mixed ^ word ^ (size << 56)) * self.multiplier
        mixed = (mixed ^ (mixed >> 29)) * self.other
        self.mixed = mixed ^ (mixed >> 32)
        return 0
