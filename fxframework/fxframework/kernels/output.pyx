# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""The output buffer of kernels: writes literals, numbers and JSON strings."""

cimport cython
from libc.stdint cimport int64_t, uint64_t, uint8_t
from libc.string cimport memcpy

import numpy as np
import orjson

from fxframework.kernels.buffers import full, grown, room, view

__all__ = ["Output"]

BEGIN = 1 << 16
FEW = 64

cdef enum:
    DIGITS = 20
    LONGEST_ESCAPE = 6
cdef uint64_t LOW64 = 0xFFFFFFFFFFFFFFFFULL

cdef enum:
    QUOTE = 0x22
    BACKSLASH = 0x5C
    BLANK = 0x20
    ZERO = 0x30
    MINUS = 0x2D
    POINT = 0x2E
    PLACES = 9
cdef double LEAST_REAL = 1e-4
cdef double MOST_REAL = 1e15

cdef enum:
    LETTER_A = 0x61
# A byte that is stored may be any byte of the object, as far as C knows: a loop of bytes loads the
# places of both arrays again for each.
@cython.final
cdef class Output:
    """A growing buffer with ``used`` bytes.

    ``literals`` are texts written by number, ``texts`` (uint8) other ones; strings are read from
    ``source`` (uint8).
    """

    def __init__(self, literals, source):
        self.bounds = full(FEW, "i8")
        self.literals = room(BEGIN, "u1")
        self.count = 0
        for literal in literals:
            self.add(literal)
        self.source = source
        self.texts = bytes(1)
        self.data = room(BEGIN, "u1")
        self.size = BEGIN
        self.used = 0
        self.digits = room(DIGITS, "u1")
        self.escapes = escapes()

    def add(self, literal):
        """Add a literal; return its number."""
        return self.add_all([literal])

    def add_all(self, literals):
        """Add literals; return the number of the first."""
        number = self.count
        start = self.bounds[number]
        joined = b"".join(literals)
        end = start + len(joined)
        count = number + len(literals)
        if count + 1 > len(self.bounds):
            self.bounds = grown(self.bounds, 2 * count + FEW, number + 1)
        if end > len(self.literals):
            self.literals = grown(self.literals, 2 * end, start)
        np.asarray(self.literals)[start:end] = np.frombuffer(joined, np.uint8)
        for literal in literals:
            start += len(literal)
            number += 1
            self.bounds[number] = start
        self.count = count
        return count - len(literals)

    def forget(self, count):
        """Forget all literals except the first ``count``."""
        self.count = min(self.count, count)

    def held(self):
        """Return the total size of the literals in bytes."""
        return self.bounds[self.count]

    cdef int grow(self, int64_t nbytes) except -1 with gil:
        """Make room for ``nbytes`` more bytes."""
        cdef int64_t size
        size = self.size
        while size < self.used + nbytes:
            size *= 2
        self.data = grown(self.data, size, self.used)
        self.size = size
        return 0

    cdef int literal(self, int64_t number) except -1 nogil:
        """Write a literal."""
        cdef int64_t start, end, used
        start = self.bounds[number]
        end = self.bounds[number + 1]
        if self.used + end - start > self.size:
            self.grow(end - start)
        used = self.used
        self.used = used + end - start
        memcpy(&self.data[used], &self.literals[start], end - start)
        return 0

    cdef int text(self, int64_t start, int64_t end) except -1 nogil:
        """Write bytes of ``texts``."""
        cdef int64_t used
        if self.used + end - start > self.size:
            self.grow(end - start)
        used = self.used
        self.used = used + end - start
        memcpy(&self.data[used], &self.texts[start], end - start)
        return 0

    cdef int natural(self, uint64_t value) except -1 nogil:
        """Write an unsigned 64-bit number."""
        cdef uint64_t left, rest
        cdef int64_t at, used
        if self.used + DIGITS > self.size:
            self.grow(DIGITS)
        left = value
        at = DIGITS
        while True:
            rest = left // 10
            at -= 1
            self.digits[at] = ZERO + (left - 10 * rest)
            left = rest
            if not left:
                break
        used = self.used
        self.used = used + DIGITS - at
        memcpy(&self.data[used], &self.digits[at], DIGITS - at)
        return 0

    cdef int signed(self, int64_t value) except -1 nogil:
        """Write a signed 64-bit number."""
        if value >= 0:
            return self.natural(value)
        if self.used + 1 > self.size:
            self.grow(1)
        self.data[self.used] = MINUS
        self.used += 1
        # The magnitude of the least signed number fits an unsigned number.
        return self.natural(<uint64_t>(LOW64 - (<uint64_t>value) + 1))

    cdef int padded(self, uint64_t value, int64_t places) except -1 nogil:
        """Write the last ``places`` digits of an unsigned number, with leading zeros."""
        cdef int64_t at
        cdef uint64_t left, rest
        if self.used + places > self.size:
            self.grow(places)
        at = self.used + places
        self.used = at
        left = value
        while places > 0:
            rest = left // 10
            at -= 1
            self.data[at] = ZERO + (left - 10 * rest)
            left = rest
            places -= 1
        return 0

    cdef int json_text(self, int64_t start, int64_t nbytes) except -1 nogil:
        """Write ``nbytes`` bytes of UTF-8 from byte ``start`` of the source as a JSON string."""
        cdef int64_t used, at, end, byte, index, stop
        if self.used + LONGEST_ESCAPE * nbytes + 2 > self.size:
            self.grow(LONGEST_ESCAPE * nbytes + 2)
        used = self.used
        self.data[used] = QUOTE
        used += 1
        at = start
        end = start + nbytes
        while at < end:
            byte = self.source[at]
            at += 1
            if byte >= BLANK and byte not in (QUOTE, BACKSLASH):
                self.data[used] = byte
                used += 1
                continue
            index = LONGEST_ESCAPE * byte
            stop = index + LONGEST_ESCAPE
            while index < stop and self.escapes[index]:
                self.data[used] = self.escapes[index]
                used += 1
                index += 1
        self.data[used] = QUOTE
        self.used = used + 1
        return 0

    cdef int hexadecimal(self, int64_t start, int64_t nbytes) except -1 nogil:
        """Write ``nbytes`` bytes from byte ``start`` of the source in hex."""
        cdef int64_t used, at, end, byte, high, low
        if self.used + 2 * nbytes > self.size:
            self.grow(2 * nbytes)
        used = self.used
        at = start
        end = start + nbytes
        while at < end:
            byte = self.source[at]
            at += 1
            high = byte >> 4
            low = byte & 15
            self.data[used] = ZERO + high if high < 10 else LETTER_A + high - 10
            self.data[used + 1] = ZERO + low if low < 10 else LETTER_A + low - 10
            used += 2
        self.used = used
        return 0

    cdef int real(self, double value, int64_t bits) except -1 nogil:
        """Write a finite double, given with its bits, as the shortest text that reads back.

        Decimals of up to 15 digits read back to distinct doubles, so one that reads back to the
        value is the shortest. Doubles with more digits are written by orjson.
        """
        cdef double size, scale, scaled
        cdef int64_t places, whole
        size = -value if bits < 0 else value
        scale = 1.0
        places = 0
        while places <= PLACES and (size >= LEAST_REAL or size == 0.0):
            scaled = size * scale
            if scaled >= MOST_REAL:
                break
            whole = int(scaled + 0.5)
            if whole / scale == size:
                return self.decimal(whole, places, bits)
            scale *= 10.0
            places += 1
        return self.real_by_host(value)

    cdef int decimal(self, int64_t whole, int64_t places, int64_t bits) except -1 nogil:
        """Write a number with ``places`` digits after its point; ``bits`` has the sign."""
        cdef int64_t used, at, left, count, rest
        if self.used + DIGITS + 3 > self.size:
            self.grow(DIGITS + 3)
        used = self.used
        if bits < 0:
            self.data[used] = MINUS
            used += 1
        at = DIGITS
        if places == 0:
            at -= 1
            self.digits[at] = ZERO
        left = whole
        count = 0
        while left > 0 or count <= places:
            if count == places:
                at -= 1
                self.digits[at] = POINT
            rest = left // 10
            at -= 1
            self.digits[at] = ZERO + (left - 10 * rest)
            left = rest
            count += 1
        while at < DIGITS:
            self.data[used] = self.digits[at]
            used += 1
            at += 1
        self.used = used
        return 0

    cdef int real_by_host(self, double value) except -1 with gil:
        """Write a finite double with orjson."""
        self.put(memoryview(orjson.dumps(value)))
        return 0

    cdef int put(self, const uint8_t[::1] data) except -1 with gil:
        """Write bytes."""
        cdef int64_t nbytes
        nbytes = len(data)
        if self.used + nbytes > self.size:
            self.grow(nbytes)
        self.data[self.used : self.used + nbytes] = data
        self.used += nbytes
        return 0

    def line(self, value):
        """Write a value as a line of JSON."""
        self.put(memoryview(orjson.dumps(value) + b"\n"))

    def written(self):
        """Return the bytes written since the last ``take``, as a view."""
        written = np.asarray(self.data)[: self.used]
        return written

    def take(self):
        """Return the bytes written since the last call and empty the buffer."""
        taken = np.asarray(self.data)[: self.used].tobytes()
        self.used = 0
        return taken


def escapes():
    """Return JSON's escape of each character up to the backslash, zero-padded to LONGEST_ESCAPE."""
    table = bytearray(LONGEST_ESCAPE * (BACKSLASH + 1))
    for character in (*range(BLANK), QUOTE, BACKSLASH):
        quoted = orjson.dumps(chr(character))
        start = LONGEST_ESCAPE * character
        table[start : start + len(quoted) - 2] = quoted[1 : len(quoted) - 1]
    return view(np.frombuffer(bytes(table), np.uint8), np.uint8)
