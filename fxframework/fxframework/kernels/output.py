"""The output buffer of kernels: writes literals, numbers and JSON strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.kernels.annotations import (
    Array,
    Bytes,
    c_source,
    external,
    f64,
    i64,
    status,
    u8,
    u64,
    void,
    with_gil,
)
from fxframework.kernels.buffers import full, grown, room, view

try:
    import cython
except ImportError:  # Cython is only needed to compile
    from fxframework.io import plain as cython

__all__ = ["Output"]

BEGIN = 1 << 16
FEW = 64
DIGITS = 20
LONGEST_ESCAPE = 6
LOW64 = 0xFFFFFFFFFFFFFFFF
QUOTE = 0x22
BACKSLASH = 0x5C
BLANK = 0x20
ZERO = 0x30
MINUS = 0x2D
POINT = 0x2E
PLACES = 9
LEAST_REAL = 1e-4
MOST_REAL = 1e15
LETTER_A = 0x61
# A byte that is stored may be any byte of the object, as far as C knows: a loop of bytes loads the
# places of both arrays again for each.
# Texts are looked at by the word, and digits written two at a time, which took half of JSON's time.
COPY: c_source = r"""
#include <stdint.h>
#include <string.h>
#define fxf_copy(to, from, nbytes) ((void)memcpy(&(to), &(from), (size_t)(nbytes)))
#define fxf_plain(from, nbytes) fxf_plain_bytes(&(from), nbytes)
#define fxf_natural(to, value) fxf_put_natural(&(to), value)
#define FXF_ONES 0x0101010101010101ull
#define FXF_HIGH 0x8080808080808080ull
/* The high bit of each byte below the blank, or that is another; one behind such a byte may be
   set, too. */
#define FXF_BELOW_BLANK(word) (((word) - FXF_ONES * 0x20) & ~(word) & FXF_HIGH)
#define FXF_ZERO(word) (((word) - FXF_ONES) & ~(word) & FXF_HIGH)
#define FXF_ESCAPED(word) (FXF_BELOW_BLANK(word) | FXF_ZERO((word) ^ FXF_ONES * 0x22) \
                           | FXF_ZERO((word) ^ FXF_ONES * 0x5c))

static inline uint64_t fxf_word(const unsigned char *bytes, int64_t nbytes) {
    uint64_t word = 0;
    uint32_t low, high;
    if (nbytes >= 8) {
        memcpy(&word, bytes, 8);
    } else if (nbytes >= 4) {  /* the two halves overlap */
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + nbytes - 4, 4);
        word = low | (uint64_t)high << 32;
    } else if (nbytes > 0) {
        word = FXF_ONES * 'a' << 24 | (uint64_t)bytes[nbytes - 1] << 16
             | (uint64_t)bytes[nbytes / 2] << 8 | bytes[0];
    }
    return word;
}

static inline int64_t fxf_plain_bytes(const unsigned char *bytes, int64_t nbytes) {
    int64_t at = 0;
    uint64_t word;
    for (; nbytes - at >= 8; at += 8) {
        word = fxf_word(bytes + at, 8);
        if (FXF_ESCAPED(word)) break;
    }
    word = fxf_word(bytes + at, nbytes - at);
    if (nbytes - at < 8 && (nbytes == at || !FXF_ESCAPED(word))) return nbytes;
    while (at < nbytes && bytes[at] >= 0x20 && bytes[at] != 0x22 && bytes[at] != 0x5c) at++;
    return at;
}

static inline int64_t fxf_put_natural(unsigned char *to, uint64_t value) {
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
        "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
        "8081828384858687888990919293949596979899";
    unsigned char digits[40];  /* the last 20 are only copied */
    int at = 20;
    for (; value >= 100; value /= 100) memcpy(digits + (at -= 2), pairs + 2 * (value % 100), 2);
    if (value >= 10) memcpy(digits + (at -= 2), pairs + 2 * value, 2);
    else digits[--at] = (unsigned char)('0' + value);
    memcpy(to, digits + at, 20);
    return 20 - at;
}
"""


@external
def fxf_copy(to: u8, source: u8, nbytes: i64) -> void:
    """Copy bytes from one element of an array on to those from another one on; compiled only."""


@external
def fxf_plain(source: u8, nbytes: i64) -> i64:
    """Return how many bytes from one element on a JSON string has as they are; compiled only."""
    raise NotImplementedError


@external
def fxf_natural(to: u8, value: u64) -> i64:
    """Write the digits of a number; return how many. There is room for DIGITS; compiled only."""
    raise NotImplementedError


@final
class Output:
    """A growing buffer with ``used`` bytes.

    ``literals`` are texts written by number, ``texts`` (uint8) other ones; strings are read from
    ``source`` (uint8).
    """

    bounds: Array[i64]
    literals: Array[u8]
    source: Bytes
    texts: Bytes
    escapes: Bytes
    data: Array[u8]
    digits: Array[u8]
    size: i64
    count: i64
    used: i64

    def __init__(self, literals: Sequence[bytes], source: memoryview) -> None:
        self.bounds = full(FEW, "i8")
        self.literals = room(BEGIN, "u1")
        self.count = 0
        for literal in literals:
            self.add(literal)
        self.source = memoryview(source)
        self.texts = memoryview(bytes(1))
        self.data = room(BEGIN, "u1")
        self.size = BEGIN
        self.used = 0
        self.digits = room(DIGITS, "u1")
        self.escapes = escapes()

    def add(self, literal: bytes) -> int:
        """Add a literal; return its number."""
        return self.add_all([literal])

    def add_all(self, literals: Sequence[bytes]) -> int:
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

    def forget(self, count: int) -> None:
        """Forget all literals except the first ``count``."""
        self.count = min(self.count, count)

    def held(self) -> int:
        """Return the total size of the literals in bytes."""
        return self.bounds[self.count]

    @with_gil
    def grow(self, nbytes: i64) -> status:
        """Make room for ``nbytes`` more bytes."""
        size = self.size
        while size < self.used + nbytes:
            size *= 2
        self.data = grown(self.data, size, self.used)
        self.size = size
        return 0

    def literal(self, number: i64) -> status:
        """Write a literal."""
        start = self.bounds[number]
        end = self.bounds[number + 1]
        if self.used + end - start > self.size:
            self.grow(end - start)
        used = self.used
        self.used = used + end - start
        if cython.compiled:
            fxf_copy(self.data[used], self.literals[start], end - start)
            return 0
        while start < end:
            self.data[used] = self.literals[start]
            used += 1
            start += 1
        return 0

    def text(self, start: i64, end: i64) -> status:
        """Write bytes of ``texts``."""
        if self.used + end - start > self.size:
            self.grow(end - start)
        used = self.used
        self.used = used + end - start
        if cython.compiled:
            fxf_copy(self.data[used], self.texts[start], end - start)
            return 0
        while start < end:
            self.data[used] = self.texts[start]
            used += 1
            start += 1
        return 0

    def natural(self, value: u64) -> status:
        """Write an unsigned 64-bit number."""
        if self.used + DIGITS > self.size:
            self.grow(DIGITS)
        if cython.compiled:
            self.used += fxf_natural(self.data[self.used], value)
            return 0
        left: u64 = value & LOW64
        at = DIGITS
        while True:
            rest: u64 = left // 10
            at -= 1
            self.digits[at] = ZERO + (left - 10 * rest)
            left = rest
            if not left:
                break
        used = self.used
        self.used = used + DIGITS - at
        while at < DIGITS:
            self.data[used] = self.digits[at]
            used += 1
            at += 1
        return 0

    def signed(self, value: i64) -> status:
        """Write a signed 64-bit number."""
        if value >= 0:
            return self.natural(value)
        if self.used + 1 > self.size:
            self.grow(1)
        self.data[self.used] = MINUS
        self.used += 1
        # The magnitude of the least signed number fits an unsigned number.
        return self.natural((LOW64 - (value & LOW64) + 1) & LOW64)

    def padded(self, value: u64, places: i64) -> status:
        """Write the last ``places`` digits of an unsigned number, with leading zeros."""
        if self.used + places > self.size:
            self.grow(places)
        at = self.used + places
        self.used = at
        left: u64 = value
        while places > 0:
            rest: u64 = left // 10
            at -= 1
            self.data[at] = ZERO + (left - 10 * rest)
            left = rest
            places -= 1
        return 0

    def json_text(self, start: i64, nbytes: i64) -> status:
        """Write ``nbytes`` bytes of UTF-8 from byte ``start`` of the source as a JSON string."""
        if self.used + LONGEST_ESCAPE * nbytes + 2 > self.size:
            self.grow(LONGEST_ESCAPE * nbytes + 2)
        used = self.used
        self.data[used] = QUOTE
        used += 1
        at = start
        end = start + nbytes
        while at < end:
            if cython.compiled:
                plain = fxf_plain(self.source[at], end - at)
                fxf_copy(self.data[used], self.source[at], plain)
                used += plain
                at += plain
                if at == end:
                    break
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

    def hexadecimal(self, start: i64, nbytes: i64) -> status:
        """Write ``nbytes`` bytes from byte ``start`` of the source in hex."""
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

    def real(self, value: f64, bits: i64) -> status:
        """Write a finite double, given with its bits, as the shortest text that reads back.

        Decimals of up to 15 digits read back to distinct doubles, so one that reads back to the
        value is the shortest. Doubles with more digits are written by orjson.
        """
        size: f64 = -value if bits < 0 else value
        scale: f64 = 1.0
        places = 0
        while places <= PLACES and (size >= LEAST_REAL or size == 0.0):
            scaled: f64 = size * scale
            if scaled >= MOST_REAL:
                break
            whole = int(scaled + 0.5)
            if whole / scale == size:
                return self.decimal(whole, places, bits)
            scale *= 10.0
            places += 1
        return self.real_by_host(value)

    def decimal(self, whole: i64, places: i64, bits: i64) -> status:
        """Write a number with ``places`` digits after its point; ``bits`` has the sign."""
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

    @with_gil
    def real_by_host(self, value: f64) -> status:
        """Write a finite double with orjson."""
        self.put(memoryview(orjson.dumps(value)))
        return 0

    @with_gil
    def put(self, data: Bytes) -> status:
        """Write bytes."""
        nbytes = len(data)
        if self.used + nbytes > self.size:
            self.grow(nbytes)
        self.data[self.used : self.used + nbytes] = data
        self.used += nbytes
        return 0

    def line(self, value: Any) -> None:
        """Write a value as a line of JSON."""
        self.put(memoryview(orjson.dumps(value) + b"\n"))

    def written(self) -> NDArray[np.uint8]:
        """Return the bytes written since the last ``take``, as a view."""
        written: NDArray[np.uint8] = np.asarray(self.data)[: self.used]
        return written

    def take(self) -> bytes:
        """Return the bytes written since the last call and empty the buffer."""
        taken = np.asarray(self.data)[: self.used].tobytes()
        self.used = 0
        return taken


def escapes() -> memoryview:
    """Return JSON's escape of each character up to the backslash, zero-padded to LONGEST_ESCAPE."""
    table = bytearray(LONGEST_ESCAPE * (BACKSLASH + 1))
    for character in (*range(BLANK), QUOTE, BACKSLASH):
        quoted = orjson.dumps(chr(character))
        start = LONGEST_ESCAPE * character
        table[start : start + len(quoted) - 2] = quoted[1 : len(quoted) - 1]
    return view(np.frombuffer(bytes(table), np.uint8), np.uint8)
