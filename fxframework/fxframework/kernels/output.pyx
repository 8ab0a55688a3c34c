# cython: boundscheck=True, wraparound=False, show_performance_hints=False
"""Text that kernels write: literals, numbers and JSON strings, and rows of templates.

Bounds are not checked in what writes a value: it makes room for it first, and compares what it
reads with the texts or the source once. Nor are they where rows are written: ``load`` sees to it
that each part has a value in every row.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t, uint8_t
from libc.string cimport memcpy

import numpy as np
import orjson

from fxframework.kernels import parts
from fxframework.kernels.buffers import full, grown, room, view

BEGIN = 1 << 16
FEW = 64

cdef int64_t CLOCK = parts.CLOCK, COPIED = parts.COPIED, HEX = parts.HEX, HEX16 = parts.HEX16
cdef int64_t ITEMS = parts.ITEMS, LENGTH = parts.LENGTH, MARK = parts.MARK, MEMBERS = parts.MEMBERS
cdef int64_t MICROS = parts.MICROS, NATURAL = parts.NATURAL, QUOTED = parts.QUOTED
cdef int64_t SECONDS = parts.SECONDS, SIGNED = parts.SIGNED, SKIP = parts.SKIP
cdef int64_t STRETCH = parts.STRETCH, STRETCH_HEX = parts.STRETCH_HEX, TEXT = parts.TEXT

cdef enum:
    DIGITS = 20
    LONGEST_ESCAPE = 6
    # Characters.
    BLANK = 0x20
    QUOTE = 0x22
    APOSTROPHE = 0x27
    MINUS = 0x2D
    POINT = 0x2E
    ZERO = 0x30
    BACKSLASH = 0x5C
    LETTER_A = 0x61
    LETTER_M = 0x6D
    LETTER_N = 0x6E
    LETTER_S = 0x73
    LETTER_U = 0x75
    # Whether rows are left.
    END = 0
    MORE = 1
    # Marks of a byte.
    SPECIAL = 1
    FORMULA = 2
    # Literals around members.
    BEFORE = 0
    BETWEEN = 1
    BEHIND = 2

# Texts are looked at by the word, and digits written two at a time, which took half of JSON's time.
cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #define FXF_ONES 0x0101010101010101ull
    #define FXF_HIGH 0x8080808080808080ull
    /* The high bit of each byte below the blank, or that is another; one behind such a byte may be
       set, too. */
    #define FXF_BELOW_BLANK(word) (((word) - FXF_ONES * 0x20) & ~(word) & FXF_HIGH)
    #define FXF_ZERO(word) (((word) - FXF_ONES) & ~(word) & FXF_HIGH)
    #define FXF_ESCAPED(word) (FXF_BELOW_BLANK(word) | FXF_ZERO((word) ^ FXF_ONES * 0x22) \\
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

    static inline int64_t fxf_plain(const unsigned char *bytes, int64_t nbytes) {
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

    static inline int64_t fxf_natural(unsigned char *to, uint64_t value) {
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
    # How many bytes a JSON string has as they are.
    int64_t fxf_plain(const uint8_t* source, int64_t nbytes) noexcept nogil
    # Write the digits of a number, for which there is room for DIGITS; return how many.
    int64_t fxf_natural(uint8_t* to, uint64_t value) noexcept nogil


@cython.final
cdef class Output:
    """A growing buffer with ``used`` bytes.

    ``literals`` are texts written by number, ``texts`` (uint8) other ones; strings are read from
    ``source`` (uint8).
    """

    cdef int64_t[::1] bounds
    cdef uint8_t[::1] literals, data
    cdef public const uint8_t[::1] texts
    cdef readonly const uint8_t[::1] source
    cdef const uint8_t[::1] escapes
    cdef int64_t size, count
    cdef public int64_t used

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

    cdef int refuse(self, int64_t start, int64_t end, int64_t size) except -1 with gil:
        """Raise IndexError for a text that there is not."""
        raise IndexError(f"{start} to {end} of {size}")

    @cython.boundscheck(False)
    cdef int literal(self, int64_t number) except -1 nogil:
        """Write a literal."""
        cdef int64_t start, end, used
        if number < 0 or number >= self.count:
            self.refuse(number, number + 1, self.count)
        start = self.bounds[number]
        end = self.bounds[number + 1]
        if self.used + end - start > self.size:
            self.grow(end - start)
        used = self.used
        self.used = used + end - start
        memcpy(&self.data[used], &self.literals[start], end - start)
        return 0

    @cython.boundscheck(False)
    cdef int text(self, int64_t start, int64_t end) except -1 nogil:
        """Write bytes of ``texts``."""
        cdef int64_t used
        if start < 0 or end < start or end > self.texts.shape[0]:
            self.refuse(start, end, self.texts.shape[0])
        if self.used + end - start > self.size:
            self.grow(end - start)
        used = self.used
        self.used = used + end - start
        memcpy(&self.data[used], &self.texts[start], end - start)
        return 0

    @cython.boundscheck(False)
    cdef int natural(self, uint64_t value) except -1 nogil:
        """Write an unsigned 64-bit number."""
        if self.used + DIGITS > self.size:
            self.grow(DIGITS)
        self.used += fxf_natural(&self.data[self.used], value)
        return 0

    @cython.boundscheck(False)
    cdef int signed(self, int64_t value) except -1 nogil:
        """Write a signed 64-bit number."""
        if value >= 0:
            return self.natural(value)
        if self.used + 1 > self.size:
            self.grow(1)
        self.data[self.used] = MINUS
        self.used += 1
        # The magnitude of the least signed number fits an unsigned number.
        return self.natural(0 - <uint64_t>value)

    @cython.boundscheck(False)
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

    @cython.boundscheck(False)
    cdef int json_text(self, int64_t start, int64_t nbytes) except -1 nogil:
        """Write ``nbytes`` bytes of UTF-8 from byte ``start`` of the source as a JSON string."""
        cdef int64_t used, at, end, byte, index, stop, plain
        if start < 0 or nbytes < 0 or nbytes > self.source.shape[0] - start:
            self.refuse(start, start + nbytes, self.source.shape[0])
        if self.used + LONGEST_ESCAPE * nbytes + 2 > self.size:
            self.grow(LONGEST_ESCAPE * nbytes + 2)
        used = self.used
        self.data[used] = QUOTE
        used += 1
        at = start
        end = start + nbytes
        while at < end:
            plain = fxf_plain(&self.source[at], end - at)
            memcpy(&self.data[used], &self.source[at], plain)
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

    @cython.boundscheck(False)
    cdef int hexadecimal(self, int64_t start, int64_t nbytes) except -1 nogil:
        """Write ``nbytes`` bytes from byte ``start`` of the source in hex."""
        cdef int64_t used, at, end, byte, high, low
        if start < 0 or nbytes < 0 or nbytes > self.source.shape[0] - start:
            self.refuse(start, start + nbytes, self.source.shape[0])
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


@cython.final
cdef class RowWriter:
    """Writes rows of a template to ``out``; ``fxframework.kernels.templates`` loads them.

    Arrays are int64. ``marks_of`` (uint8) has SPECIAL and FORMULA of each byte; ``width`` is that
    of whole seconds. ``bounds`` are those of the texts of COPIED and QUOTED in ``out.texts``.
    """

    cdef Output out
    cdef int64_t[::1] ends, marks
    cdef const uint8_t[::1] marks_of
    cdef const int64_t[::1] leads, kinds, places, steps, values
    cdef const int64_t[::1] befores, member_kinds, members_held, behinds
    cdef public const int64_t[::1] bounds
    cdef int64_t parts, row, rows, most, width

    def __init__(self, Output out, const uint8_t[::1] marks_of, int64_t width):
        self.out = out
        self.marks_of = marks_of
        self.width = width
        self.bounds = np.zeros(1, np.int64)
        self.hold(self.bounds, self.bounds, self.bounds, self.bounds)

    def hold(self, const int64_t[::1] befores, const int64_t[::1] kinds,
             const int64_t[::1] values, const int64_t[::1] behinds):
        """Set the members: numbers of a text, the kind and value, and numbers of another text."""
        self.befores = befores
        self.member_kinds = kinds
        self.members_held = values
        self.behinds = behinds

    def load(self, int64_t rows, const int64_t[:, ::1] parts, const int64_t[::1] values,
             int64_t[::1] marks):
        """Set the template and its columns.

        ``parts`` are, for each part: the text before it (-1: none), its kind, where its values
        begin, and the step from row to row. ``marks`` gets the places of MARK, by row.
        """
        self.leads = parts[0]
        self.kinds = parts[1]
        self.places = parts[2]
        self.steps = parts[3]
        self.values = values
        self.marks = marks
        self.parts = parts.shape[1]
        self.row = 0
        self.rows = rows
        cdef int64_t part, last_value
        for part in range(self.parts):
            last_value = self.places[part] + self.steps[part] * (rows - 1)
            if self.steps[part] not in (0, 1) or not 0 <= self.places[part] <= last_value < values.shape[0]:
                raise IndexError(f"part {part} has no values for {rows} rows")
            if part == self.parts - 1 and self.kinds[part] in (MEMBERS, ITEMS, STRETCH, STRETCH_HEX):
                raise IndexError(f"part {part} is not followed by its end")
            if self.kinds[part] == MARK and marks.shape[0] < rows:
                raise IndexError(f"{marks.shape[0]} marks for {rows} rows")

    def run(self, int64_t[::1] ends, int64_t most):
        """Write rows until ``most`` bytes are there; set their ends, and return whether any are left."""
        if ends.shape[0] < self.rows:
            raise IndexError(f"{ends.shape[0]} ends for {self.rows} rows")
        self.ends = ends
        self.most = most
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    @cython.boundscheck(False)
    cdef int64_t step(self) except? -9 nogil:
        """Write rows until ``most`` bytes are written."""
        cdef int64_t row, part, lead, value
        while self.row < self.rows:
            if self.out.used >= self.most:
                return MORE
            row = self.row
            part = 0
            while part < self.parts:
                lead = self.leads[part]
                if lead >= 0:
                    self.out.literal(lead)
                value = self.values[self.places[part] + self.steps[part] * row]
                if self.kinds[part] == SKIP:
                    part += max(value, 0)
                else:
                    self.cell(part, value, row)
                part += 1
            self.ends[row] = self.out.used
            self.row = row + 1
        return END

    @cython.boundscheck(False)
    cdef inline int cell(self, int64_t part, int64_t value, int64_t row) except -1 nogil:
        """Write the value of a part."""
        cdef int64_t kind, stop
        kind = self.kinds[part]
        if kind == MARK:
            self.marks[row] = self.out.used
        elif kind in (MEMBERS, ITEMS):
            stop = self.values[self.places[part + 1] + self.steps[part + 1] * row]
            self.members(value, stop, kind == MEMBERS)
        elif kind in (STRETCH, STRETCH_HEX):
            stop = self.values[self.places[part + 1] + self.steps[part + 1] * row]
            if kind == STRETCH:
                self.out.json_text(value, stop - value)
            else:
                self.out.hexadecimal(value, stop - value)
        else:
            self.value(kind, value)
        return 0

    cdef inline int value(self, int64_t kind, int64_t value) except -1 nogil:
        """Write a value of a kind."""
        if kind == TEXT:
            self.out.literal(value)
        elif kind == SIGNED:
            self.out.signed(value)
        elif kind == NATURAL:
            self.out.natural(value)
        elif kind == COPIED:
            self.out.text(self.bounds[value], self.bounds[value + 1])
        elif kind == QUOTED:
            self.quote(self.bounds[value], self.bounds[value + 1])
        elif kind == HEX:
            self.hexadecimal(value, 1)
        elif kind == HEX16:
            self.hexadecimal(value, 16)
        elif kind == MICROS:
            self.micros(value)
        elif kind == SECONDS:
            self.seconds(value)
        elif kind == LENGTH:
            self.length(value)
        elif kind == CLOCK:
            self.clock(value)
        return 0

    cdef int members(self, int64_t first, int64_t stop, bint surrounded) except -1 nogil:
        """Write members; nothing if there are none."""
        cdef int64_t at
        if first >= stop:
            return 0
        if surrounded:
            self.out.literal(BEFORE)
        at = first
        while at < stop:
            if surrounded and at > first:
                self.out.literal(BETWEEN)
            self.out.literal(self.befores[at])
            self.value(self.member_kinds[at], self.members_held[at])
            self.out.literal(self.behinds[at])
            at += 1
        if surrounded:
            self.out.literal(BEHIND)
        return 0

    @cython.boundscheck(False)
    cdef int quote(self, int64_t start, int64_t end) except -1 nogil:
        """Write a text of the columns, quoted if it is empty or has a special byte."""
        cdef int64_t formula, quoted, at, used, byte
        if start < 0 or end < start or end > self.out.texts.shape[0]:
            self.out.refuse(start, end, self.out.texts.shape[0])
        formula = 0
        if start < end and self.marks_of[self.out.texts[start]] & FORMULA:
            formula = 1
        quoted = 1 if start == end else 0
        at = start
        while at < end:
            if self.marks_of[self.out.texts[at]] & SPECIAL:
                quoted = 1
                break
            at += 1
        if self.out.used + 2 * (end - start) + 3 > self.out.size:
            self.out.grow(2 * (end - start) + 3)
        used = self.out.used
        if quoted:
            self.out.data[used] = QUOTE
            used += 1
        if formula:
            self.out.data[used] = APOSTROPHE
            used += 1
        at = start
        while at < end:
            byte = self.out.texts[at]
            if byte == QUOTE:
                self.out.data[used] = QUOTE
                used += 1
            self.out.data[used] = byte
            used += 1
            at += 1
        if quoted:
            self.out.data[used] = QUOTE
            used += 1
        self.out.used = used
        return 0

    @cython.boundscheck(False)
    cdef int letter(self, int64_t letter) except -1 nogil:
        """Write a character."""
        if self.out.used + 1 > self.out.size:
            self.out.grow(1)
        self.out.data[self.out.used] = letter
        self.out.used += 1
        return 0

    cdef int hexadecimal(self, int64_t value, int64_t digits) except -1 nogil:
        """Write an unsigned number in hex, in at least so many digits."""
        cdef uint64_t left
        cdef int64_t digit
        left = <uint64_t>value
        while digits < 16 and left >> (4 * digits):
            digits += 1
        while digits > 0:
            digits -= 1
            digit = (left >> (4 * digits)) & 15
            self.letter(ZERO + digit if digit < 10 else LETTER_A + digit - 10)
        return 0

    cdef int micros(self, int64_t ns) except -1 nogil:
        """Write nanoseconds as exact microseconds."""
        cdef uint64_t size
        size = self.magnitude(ns)
        if ns < 0:
            self.letter(MINUS)
        self.out.natural(size // 1000)
        self.letter(POINT)
        self.out.padded(size % 1000, 3)
        return 0

    cdef uint64_t magnitude(self, int64_t value) noexcept nogil:
        """Return the absolute value."""
        if value < 0:
            return 0 - <uint64_t>value
        return value

    cdef int seconds(self, int64_t ns) except -1 nogil:
        """Write nanoseconds as exact seconds, padded with blanks."""
        cdef uint64_t size, whole, left
        cdef int64_t letters
        size = self.magnitude(ns)
        whole = size // 1000000000
        letters = 1 + (ns < 0)
        left = whole // 10
        while left:
            letters += 1
            left //= 10
        while letters < self.width:
            self.letter(BLANK)
            letters += 1
        if ns < 0:
            self.letter(MINUS)
        self.out.natural(whole)
        self.letter(POINT)
        self.out.padded(size % 1000000000, 9)
        return 0

    cdef int clock(self, int64_t ns) except -1 nogil:
        """Write nanoseconds as seconds in at least five digits, with six decimals."""
        cdef int64_t micros, whole
        micros = ns // 1000 if ns > 0 else 0
        whole = micros // 1000000
        if whole < 100000:
            self.out.padded(whole, 5)
        else:
            self.out.natural(whole)
        self.letter(POINT)
        self.out.padded(micros - 1000000 * whole, 6)
        return 0

    cdef int length(self, int64_t ns) except -1 nogil:
        """Write nanoseconds exactly, in the largest unit that fits."""
        if ns >= 1000000000:
            self.fraction(ns // 1000000000, ns % 1000000000, 9)
        elif ns >= 1000000:
            self.fraction(ns // 1000000, ns % 1000000, 6)
            self.letter(LETTER_M)
        elif ns >= 1000:
            self.fraction(ns // 1000, ns % 1000, 3)
            self.letter(LETTER_U)
        else:
            self.out.signed(ns)
            self.letter(LETTER_N)
        self.letter(LETTER_S)
        return 0

    cdef int fraction(self, uint64_t whole, uint64_t rest, int64_t places) except -1 nogil:
        """Write a number and its decimals without trailing zeros."""
        cdef uint64_t left
        self.out.natural(whole)
        if rest == 0:
            return 0
        left = rest // 10
        while left * 10 == rest:
            rest = left
            left = rest // 10
            places -= 1
        self.letter(POINT)
        self.out.padded(rest, places)
        return 0
