# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Rows of text from templates: sequences of parts filled from columns."""

cimport cython
from libc.stdint cimport int64_t, uint64_t, uint8_t

from fxframework.kernels.output cimport Output

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels import parts
from fxframework.kernels.buffers import full, view
from fxframework.kernels.parts import NOTHING, STRETCH_END

cdef int64_t CLOCK = parts.CLOCK, COPIED = parts.COPIED, HEX = parts.HEX, HEX16 = parts.HEX16
cdef int64_t ITEMS = parts.ITEMS, LENGTH = parts.LENGTH, MARK = parts.MARK, MEMBERS = parts.MEMBERS
cdef int64_t MICROS = parts.MICROS, NATURAL = parts.NATURAL, QUOTED = parts.QUOTED
cdef int64_t REAL = parts.REAL, SECONDS = parts.SECONDS, SIGNED = parts.SIGNED, SKIP = parts.SKIP
cdef int64_t STRETCH = parts.STRETCH, STRETCH_HEX = parts.STRETCH_HEX, TEXT = parts.TEXT

__all__ = ["Cell", "Templates", "signed"]

I64 = NDArray[np.int64]
Cell = bytes | tuple[int, NDArray[np.generic] | int]
"""A part of a template: a constant text, or a kind (``parts.py``) with its column or a constant
value."""

cdef enum:
    MORE = 1
    END = 0
PIECE = 1 << 20
"""Bytes of rows that are given at a time."""
ENDLESS = 1 << 62

cdef enum:
    ZERO = 0x30
    BLANK = 0x20
    QUOTE = 0x22
    APOSTROPHE = 0x27
    MINUS = 0x2D
    POINT = 0x2E
    LETTER_A = 0x61
    LETTER_M = 0x6D
    LETTER_N = 0x6E
    LETTER_S = 0x73
    LETTER_U = 0x75
cdef uint64_t LOW64 = 0xFFFFFFFFFFFFFFFFULL

cdef enum:
    SPECIAL = 1
    FORMULA = 2
NONE = -1

cdef enum:
    BEFORE = 0
    BETWEEN = 1
    BEHIND = 2
NO_SOURCE = memoryview(bytes(8))


@cython.final
cdef class Templates:
    """Writes rows of templates to ``out``.

    ``before``, ``between`` and ``behind`` surround the members of a row, if there are any. Numbers
    of texts (``text``) are valid until ``forget`` changes ``version``. A text of the kind QUOTED is
    quoted if it is empty or has a byte of ``special``; one that begins with a byte of ``formulas``
    gets an apostrophe. Whole seconds are padded with blanks to ``width`` characters. Stretches are
    of ``source`` (uint8).
    """

    cdef readonly Output out
    cdef readonly int64_t[::1] bits
    cdef readonly double[::1] doubles
    cdef list _braces
    cdef public dict _numbers
    cdef list _columns
    cdef int64_t _held
    cdef readonly int64_t version
    cdef const int64_t[::1] leads
    cdef readonly const int64_t[::1] kinds, places
    cdef const int64_t[::1] steps
    cdef readonly const int64_t[::1] values, bounds
    cdef const uint8_t[::1] marks_of
    cdef const int64_t[::1] befores, member_kinds, members_held, behinds
    cdef public int64_t[::1] ends
    cdef int64_t[::1] marked
    cdef readonly object marks
    cdef public int64_t parts
    cdef readonly int64_t row
    cdef public int64_t rows
    cdef int64_t most, width

    def __init__(self, before, between, behind, *, special=b"", formulas=b"", width=6,
                 source=NO_SOURCE):
        self._braces = [before, between, behind]
        self.out = Output(self._braces, source)
        self.bits = full(1, "i8")
        self.doubles = view(np.asarray(self.bits).view("f8"), np.float64)
        self._numbers = {}
        self._columns = []
        self._held = 0
        self.version = 0
        none = view(np.zeros(1, np.int64), np.int64)
        self.leads = none
        self.kinds = none
        self.places = none
        self.steps = none
        self.values = none
        self.bounds = none
        marks = np.zeros(256, np.uint8)
        marks[list(special)] |= SPECIAL
        marks[list(formulas)] |= FORMULA
        self.marks_of = marks.data
        self.befores = none
        self.member_kinds = none
        self.members_held = none
        self.behinds = none
        self.ends = none
        self.marked = none
        self.marks = np.zeros(0, np.int64)
        self.parts = 0
        self.row = 0
        self.rows = 0
        self.most = ENDLESS
        self.width = width

    # --- Interface for Python --------------------------------------------------------------------

    def text(self, text):
        """Return the number of a text."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = self.out.add(text)
        return number

    def texts(self, texts):
        """Return numbers of texts that are used once, int64 of shape (texts,)."""
        return self.out.add_all(texts) + np.arange(len(texts))

    def column(self, data, bounds):
        """Hold texts, given by their bytes and bounds, until ``forget``; return their numbers.

        The numbers are for the kinds COPIED and QUOTED, int64 of shape (texts,).
        """
        first = int(self._held)
        self._columns.append((data, bounds))
        self._held = first + bounds.size
        return np.arange(first, first + bounds.size - 1)

    def forget(self, most=ENDLESS):
        """Forget all rows and columns of texts; also the texts if they take over ``most`` bytes."""
        self.out.used = 0
        self.forget_columns()
        if self.out.held() <= most:
            return False
        self.out.forget(len(self._braces))
        self._numbers.clear()
        self.version += 1
        return True

    def forget_columns(self):
        """Forget all columns of texts; what was written with them stays."""
        self._columns = []
        self._held = 0

    def letters(self):
        """Return everything written since ``forget``, as a view."""
        return self.out.written()

    def hold(self, befores, kinds, values, behinds):
        """Set the members, by columns of shape (members,).

        A member is a text, a value of a kind, and another text.
        """
        columns = [
            view(each if each.size else np.zeros(1), np.int64)
            for each in (befores, kinds, values, behinds)
        ]
        self.befores, self.member_kinds, self.members_held, self.behinds = columns

    def write(self, rows, *parts):
        """Write rows; return begin and end of each in ``letters``, both of shape (rows,).

        Columns have the shape (rows,); those of MEMBERS and MEMBERS_END are indexes of members.
        Raises IndexError if a stretch lies outside of the source.
        """
        bounds = np.empty(rows + 1, np.int64)
        bounds[0] = self.out.used
        if rows:
            self._load(rows, parts)
            self.ends = bounds[1:].data
            self.most = ENDLESS
            self.run()
        return bounds[:rows], bounds[1:]

    def pieces(self, rows, *parts, most=PIECE):
        """Write rows as ``write`` does; yield them in pieces of about ``most`` bytes."""
        if rows:
            self._load(rows, parts)
            self.ends = np.empty(rows, np.int64).data
            self.most = most
            while self.run():
                yield self.out.take()
        yield self.out.take()

    def _load(self, rows, parts):
        """Set the template and its columns."""
        leads = []
        kinds = []
        places = []
        steps = []
        columns = []
        size = 0
        lead = b""
        starts = np.zeros(0, np.int64)
        for part in (*parts, (NOTHING, 0)):
            if isinstance(part, bytes):
                lead += part
                continue
            kind, column = part
            values = np.asarray(column)
            leads.append(self.text(lead) if lead else NONE)
            lead = b""
            kinds.append(kind)
            places.append(size)
            steps.append(int(values.ndim > 0))
            columns.append(values)
            size += values.size
            if kind == STRETCH_END:
                self._check_stretches(starts, values)
            starts = values
        filled = np.empty(size, np.int64)
        for place, values in zip(places, columns, strict=True):
            filled[place : place + values.size] = signed(values)
        self.leads = view(np.array(leads), np.int64)
        self.kinds = view(np.array(kinds), np.int64)
        self.places = view(np.array(places), np.int64)
        self.steps = view(np.array(steps), np.int64)
        self.values = view(filled, np.int64)
        if self._columns:
            self._join()
        if MARK in kinds:
            self.marks = np.zeros(rows, np.int64)
            self.marked = self.marks.data
        self.parts, self.row, self.rows = len(kinds), 0, rows

    def _check_stretches(self, starts, ends):
        """Raise IndexError if a stretch lies outside of the source."""
        total = len(self.out.source)
        if starts.size and (starts.min() < 0 or ends.max() > total or (starts > ends).any()):
            msg = f"a stretch lies outside of {total} bytes"
            raise IndexError(msg)

    def _join(self):
        """Make one column of all that are held."""
        if len(self._columns) > 1:
            places, start = [], 0
            for data, bounds in self._columns:
                places.append(bounds + start)
                start += data.size
            letters = np.concatenate([data for data, _ in self._columns])
            self._columns = [(letters, np.concatenate(places))]
        data, bounds = self._columns[0]
        self.out.texts = view(data if data.size else np.zeros(1), np.uint8)
        self.bounds = view(bounds, np.int64)

    # --- Kernel ----------------------------------------------------------------------------------

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

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
                    part += value
                else:
                    self.cell(part, value, row)
                part += 1
            self.ends[row] = self.out.used
            self.row = row + 1
        return END

    cdef inline int cell(self, int64_t part, int64_t value, int64_t row) except -1 nogil:
        """Write the value of a part."""
        cdef int64_t kind, stop
        kind = self.kinds[part]
        if kind == MARK:
            self.marked[row] = self.out.used
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
        elif kind == REAL:
            self.bits[0] = value
            self.out.real(self.doubles[0], value)
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

    cdef int quote(self, int64_t start, int64_t end) except -1 nogil:
        """Write a text of the columns, quoted if it is empty or has a special byte."""
        cdef int64_t formula, quoted, at, used, byte
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
            return <uint64_t>(LOW64 - (<uint64_t>value) + 1)
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


def signed(values):
    """Return numbers so that they can be stored as int64: uint64 by their bits."""
    return values.view(np.int64) if values.dtype == np.uint64 else values
