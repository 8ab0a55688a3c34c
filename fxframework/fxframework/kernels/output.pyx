# cython: boundscheck=True, wraparound=False, show_performance_hints=False
"""Rows of text: texts, numbers and JSON strings that columns have, written one after another.

Bounds are not checked in what writes a value: it makes room for it first, and compares what it
reads with the texts or the source once. Nor are they where rows are written: ``load`` sees to it
that each part has a value in every row.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t, uint8_t
from libc.string cimport memcpy

import numpy as np

from fxframework.kernels import parts
from fxframework.kernels.buffers import grown, room

cdef int64_t COPIED = parts.COPIED, FRACTION = parts.FRACTION, HEX = parts.HEX, HEX16 = parts.HEX16
cdef int64_t MARK = parts.MARK, MEMBERS = parts.MEMBERS
cdef int64_t NATURAL = parts.NATURAL, QUOTED = parts.QUOTED, SIGNED = parts.SIGNED
cdef int64_t SKIP = parts.SKIP, STRETCH = parts.STRETCH, STRETCH_HEX = parts.STRETCH_HEX
cdef int64_t TEXT = parts.TEXT, ZEROS = parts.ZEROS

cdef enum:
    FIRST_ROOM = 1 << 16
    DIGITS = 20         # of the largest number
    DECIMALS = 9        # of FRACTION
    LONGEST_ESCAPE = 6
    ESCAPE = 8          # bytes of an entry of ``escapes``, of which the last is the size
    # Characters.
    QUOTE = 0x22
    APOSTROPHE = 0x27
    MINUS = 0x2D
    POINT = 0x2E
    ZERO = 0x30
    # Marks of a byte.
    SPECIAL = 1
    FORMULA = 2
    # Literals around members.
    BEFORE = 0
    BETWEEN, BEHIND
    # Rows of ``held``.
    LEAD = 0
    HELD_KIND, HELD_VALUE, TAIL, MEMBER

cdef const uint8_t* HEX_DIGITS = b"0123456789abcdef"
cdef bytes ALL_PAIRS = b"".join(b"%02d" % number for number in range(100))
cdef const uint8_t* PAIRS = ALL_PAIRS

# Texts are looked at by the word, which took a third of JSON's time: in each byte of a word.
cdef uint64_t ONES = 0x0101010101010101, HIGH_BITS = 0x8080808080808080
cdef uint64_t BLANKS = 0x2020202020202020, QUOTES = 0x2222222222222222
cdef uint64_t BACKSLASHES = 0x5C5C5C5C5C5C5C5C


cdef inline bint may_have_escapes(uint64_t word) noexcept nogil:
    """Whether a word has a byte that JSON escapes: below the blank, a quote or a backslash."""
    cdef uint64_t quotes = word ^ QUOTES, backslashes = word ^ BACKSLASHES
    cdef uint64_t below = (word - BLANKS) & ~word
    return (below | (quotes - ONES) & ~quotes | (backslashes - ONES) & ~backslashes) & HIGH_BITS != 0


@cython.final
cdef class RowWriter:
    """Writes rows of a template to ``data``, of which ``used`` bytes are filled.

    ``fxframework.kernels.templates`` loads them. Arrays are int64, but for those of bytes.
    ``literals`` are texts by number, ``texts`` those of COPIED and QUOTED; the bounds of text ``n``
    are numbers ``n`` and ``n + 1``. ``marks_of`` has SPECIAL and FORMULA of each byte, ``escapes``
    its escape in JSON. ``held`` are the members, of shape (4, members): a literal, the kind and the
    value, and another literal.
    """

    cdef public const uint8_t[::1] literals, texts
    cdef public const int64_t[::1] literal_bounds, bounds
    cdef readonly const uint8_t[::1] source
    cdef readonly uint8_t[::1] data
    cdef public int64_t used
    cdef int64_t size
    cdef const uint8_t[::1] marks_of, escapes
    cdef const int64_t[::1] leads, kinds, places, steps, values
    cdef public const int64_t[:, ::1] held
    cdef int64_t[::1] ends, marks
    cdef int64_t parts, row, rows, most

    def __init__(self, source, marks_of, escapes):
        self.source, self.marks_of, self.escapes = source, marks_of, escapes
        if self.marks_of.shape[0] != 256 or self.escapes.shape[0] != 256 * ESCAPE:
            raise ValueError("marks and escapes are not those of all bytes")
        self.data = room(FIRST_ROOM, "u1")
        self.size = FIRST_ROOM
        self.texts = bytes(1)
        self.bounds = np.zeros(1, np.int64)
        self.held = np.zeros((MEMBER, 0), np.int64)

    def load(self, int64_t rows, const int64_t[:, ::1] parts, const int64_t[::1] values,
             int64_t[::1] marks):
        """Set the template and its columns.

        ``parts`` are, for each part: the text before it (-1: none), its kind, where its values
        begin, and the step from row to row. ``marks`` gets the places of MARK, by row.
        """
        self.leads, self.kinds, self.places, self.steps = parts[0], parts[1], parts[2], parts[3]
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
            if part == self.parts - 1 and self.kinds[part] in (MEMBERS, STRETCH, STRETCH_HEX):
                raise IndexError(f"part {part} is not followed by its end")
            if self.kinds[part] == MARK and marks.shape[0] < rows:
                raise IndexError(f"{marks.shape[0]} marks for {rows} rows")

    def run(self, int64_t[::1] ends, int64_t most):
        """Write rows until ``most`` bytes are there; set their ends, and return whether any are left."""
        if ends.shape[0] < self.rows:
            raise IndexError(f"{ends.shape[0]} ends for {self.rows} rows")
        self.ends = ends
        self.most = most
        with nogil:
            self.write_rows()
        return self.row < self.rows

    @cython.boundscheck(False)
    cdef int write_rows(self) except -1 nogil:
        """Write rows until ``most`` bytes are written."""
        cdef int64_t part, value
        while self.row < self.rows and self.used < self.most:
            part = 0
            while part < self.parts:
                if self.leads[part] >= 0:
                    self.literal(self.leads[part])
                value = self.values[self.places[part] + self.steps[part] * self.row]
                if self.kinds[part] == SKIP:
                    part += max(value, 0)
                else:
                    self.cell(part, value)
                part += 1
            self.ends[self.row] = self.used
            self.row += 1
        return 0

    @cython.boundscheck(False)
    cdef inline int cell(self, int64_t part, int64_t value) except -1 nogil:
        """Write the value of a part."""
        cdef int64_t kind = self.kinds[part], stop
        if kind == MARK:
            self.marks[self.row] = self.used
        elif kind in (MEMBERS, STRETCH, STRETCH_HEX):
            stop = self.values[self.places[part + 1] + self.steps[part + 1] * self.row]
            if kind == STRETCH:
                self.json_text(value, stop)
            elif kind == STRETCH_HEX:
                self.hex_text(value, stop)
            else:
                self.members(value, stop)
        else:
            self.value(kind, value)
        return 0

    cdef inline int value(self, int64_t kind, int64_t value) except -1 nogil:
        """Write a value of a kind."""
        if kind == TEXT:
            self.literal(value)
        elif kind == SIGNED:
            if value < 0:
                self.letter(MINUS)
            # The magnitude of the least signed number fits an unsigned number.
            self.natural(0 - <uint64_t>value if value < 0 else value, 1)
        elif kind == NATURAL:
            self.natural(value, 1)
        elif kind == COPIED:
            self.copy(&self.texts[0], self.texts.shape[0], self.bounds[value], self.bounds[value + 1])
        elif kind == QUOTED:
            self.quote(self.bounds[value], self.bounds[value + 1])
        elif kind == HEX:
            self.hexadecimal(value, 1)
        elif kind == HEX16:
            self.hexadecimal(value, 16)
        elif kind == FRACTION and value:
            self.letter(POINT)
            self.natural(value, DECIMALS)
            while self.data[self.used - 1] == ZERO:  # not all digits are
                self.used -= 1
        elif kind >= ZEROS:
            self.natural(value, kind - ZEROS)
        return 0

    cdef int members(self, int64_t first, int64_t stop) except -1 nogil:
        """Write members; nothing if there are none."""
        cdef int64_t member
        if first >= stop:
            return 0
        self.literal(BEFORE)
        for member in range(first, stop):
            if member > first:
                self.literal(BETWEEN)
            self.literal(self.held[LEAD, member])
            self.value(self.held[HELD_KIND, member], self.held[HELD_VALUE, member])
            self.literal(self.held[TAIL, member])
        self.literal(BEHIND)
        return 0

    # --- Values ------------------------------------------------------------------------------------

    cdef inline int make_room(self, int64_t nbytes) except -1 nogil:
        """Make room for ``nbytes`` more bytes."""
        if self.used + nbytes > self.size:
            self.grow(nbytes)
        return 0

    cdef int grow(self, int64_t nbytes) except -1 with gil:
        """Make room for ``nbytes`` more bytes, and for twice as many at least."""
        self.size = max(2 * self.size, self.used + nbytes)
        self.data = grown(self.data, self.size, self.used)
        return 0

    cdef int check(self, int64_t start, int64_t end, int64_t size) except -1 nogil:
        """Raise IndexError for a stretch that there is not."""
        if not 0 <= start <= end <= size:
            with gil:
                raise IndexError(f"{start} to {end} of {size}")
        return 0

    cdef inline int literal(self, int64_t number) except -1 nogil:
        """Write a literal."""
        return self.copy(&self.literals[0], self.literals.shape[0],
                         self.literal_bounds[number], self.literal_bounds[number + 1])

    @cython.boundscheck(False)
    cdef inline int copy(self, const uint8_t* texts, int64_t size, int64_t start,
                         int64_t end) except -1 nogil:
        """Write bytes of some texts, which have ``size`` bytes together."""
        self.check(start, end, size)
        self.make_room(end - start)
        memcpy(&self.data[self.used], texts + start, end - start)
        self.used += end - start
        return 0

    @cython.boundscheck(False)
    cdef int letter(self, uint8_t letter) except -1 nogil:
        """Write a character."""
        self.make_room(1)
        self.data[self.used] = letter
        self.used += 1
        return 0

    @cython.boundscheck(False)
    cdef int natural(self, uint64_t value, int64_t least) except -1 nogil:
        """Write an unsigned number in at least so many digits, of at most DIGITS."""
        cdef uint8_t[2 * DIGITS] digits  # the second half is only copied
        cdef int64_t at = DIGITS
        while value >= 100:
            at -= 2
            memcpy(&digits[at], PAIRS + 2 * (value % 100), 2)
            value //= 100
        at -= 2
        memcpy(&digits[at], PAIRS + 2 * value, 2)
        if value < 10:
            at += 1
        while DIGITS - at < least:
            at -= 1
            digits[at] = ZERO
        self.make_room(DIGITS)
        memcpy(&self.data[self.used], &digits[at], DIGITS)
        self.used += DIGITS - at
        return 0

    @cython.boundscheck(False)
    cdef int hexadecimal(self, uint64_t value, int64_t digits) except -1 nogil:
        """Write an unsigned number in hex, in at least so many digits."""
        while digits < 16 and value >> 4 * digits:
            digits += 1
        self.make_room(digits)
        while digits > 0:
            digits -= 1
            self.data[self.used] = HEX_DIGITS[value >> 4 * digits & 15]
            self.used += 1
        return 0

    @cython.boundscheck(False)
    cdef int json_text(self, int64_t start, int64_t end) except -1 nogil:
        """Write UTF-8 from one byte of the source up to another as a JSON string."""
        cdef const uint8_t* octets
        cdef const uint8_t* escape
        cdef int64_t left = end - start, plain, used
        self.check(start, end, self.source.shape[0])
        # An escape is copied with what is behind it in its entry.
        self.make_room(LONGEST_ESCAPE * left + ESCAPE)
        used = self.used
        self.data[used] = QUOTE
        used += 1
        octets = &self.source[start]
        while left:
            plain = self.plain(octets, left)
            memcpy(&self.data[used], octets, plain)
            used += plain
            octets += plain
            left -= plain
            if left:
                escape = &self.escapes[ESCAPE * octets[0]]
                memcpy(&self.data[used], escape, LONGEST_ESCAPE)
                used += escape[ESCAPE - 1]
                octets += 1
                left -= 1
        self.data[used] = QUOTE
        self.used = used + 1
        return 0

    @cython.boundscheck(False)
    cdef inline int64_t plain(self, const uint8_t* octets, int64_t nbytes) noexcept nogil:
        """Return how many bytes from the first one on a JSON string has as they are."""
        cdef int64_t at = 0
        cdef uint64_t word
        while nbytes - at >= 8:
            memcpy(&word, octets + at, 8)
            if may_have_escapes(word):
                break
            at += 8
        while at < nbytes and not self.escapes[ESCAPE * octets[at] + ESCAPE - 1]:
            at += 1
        return at

    @cython.boundscheck(False)
    cdef int hex_text(self, int64_t start, int64_t end) except -1 nogil:
        """Write bytes from one of the source up to another in hex."""
        cdef int64_t at
        self.check(start, end, self.source.shape[0])
        self.make_room(2 * (end - start))
        for at in range(start, end):
            self.data[self.used] = HEX_DIGITS[self.source[at] >> 4]
            self.data[self.used + 1] = HEX_DIGITS[self.source[at] & 15]
            self.used += 2
        return 0

    @cython.boundscheck(False)
    cdef int quote(self, int64_t start, int64_t end) except -1 nogil:
        """Write a text of the columns, quoted if it is empty or has a special byte."""
        cdef int64_t at, used
        cdef bint is_quoted = start == end
        self.check(start, end, self.texts.shape[0])
        for at in range(start, end):
            if self.marks_of[self.texts[at]] & SPECIAL:
                is_quoted = True
                break
        self.make_room(2 * (end - start) + 3)
        used = self.used
        if is_quoted:
            self.data[used] = QUOTE
            used += 1
        if start < end and self.marks_of[self.texts[start]] & FORMULA:
            self.data[used] = APOSTROPHE
            used += 1
        for at in range(start, end):
            if self.texts[at] == QUOTE:
                self.data[used] = QUOTE
                used += 1
            self.data[used] = self.texts[at]
            used += 1
        if is_quoted:
            self.data[used] = QUOTE
            used += 1
        self.used = used
        return 0
