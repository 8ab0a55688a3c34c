"""Shapes of lines of record JSON: what lines have in common, and the values that differ."""

from __future__ import annotations

from fxframework.kernels.annotations import (
    Array,
    Bytes,
    Column,
    Fallible,
    f64,
    flag,
    i64,
    u8,
    u64,
    with_gil,
)
from fxframework.kernels.buffers import room
from fxframework.kernels.json_text import JsonText
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.rows import Rows

__all__ = ["INTEGER", "REAL", "TEXT", "LineShapes", "ShapeRows", "ValueRows"]

LOW64 = 0xFFFFFFFFFFFFFFFF
INTEGER = 1
REAL = 2
TEXT = 3
NEWLINE = 0x0A
QUOTE = 0x22
COMMA = 0x2C
MINUS = 0x2D
ZERO = 0x30
NINE = 0x39
COLON = 0x3A
OPEN_LIST = 0x5B
BACKSLASH = 0x5C
CLOSE_LIST = 0x5D
LOWER_A = 0x61
LOWER_Z = 0x7A
OPEN_OBJECT = 0x7B
CLOSE_OBJECT = 0x7D
LETTER_B = 0x62
LETTER_F = 0x66
LETTER_N = 0x6E
LETTER_R = 0x72
LETTER_T = 0x74
LETTER_U = 0x75
OFFSET = 0x6F6666736574
NBYTES = 0x6E6279746573
DIGITS = 19
"""Decimal digits that always fit 64 bits."""


class ShapeRows(Rows):
    """A row per line: its shape (0: none), its first byte, and the index of its first value."""

    shape: Column[u64]
    start: Column[i64]
    value: Column[i64]


class ValueRows(Rows):
    """A row per value: an integer modulo 2^64 or the hash of a string; a real number.

    ``start`` and ``nbytes`` locate the bytes of a string in ``unescaped``.
    """

    number: Column[u64]
    real: Column[f64]
    start: Column[i64]
    nbytes: Column[i64]


class LineShapes(Kernel):
    """Finds the shape and the values of the lines of ``data``, which must end with a newline.

    Lines have one shape if they have the same keys, the same kinds of values, strings of the same
    size in words of 8 bytes, the same literals and the same ``nbytes``. The values are integers,
    real numbers and strings in the order of the text, without the record's ``offset`` and
    ``nbytes``. A line with blanks between its tokens has no shape.
    """

    data: Bytes
    unescaped: Array[u8]
    text: JsonText
    lines: ShapeRows
    values: ValueRows
    pos: i64
    size: i64

    def __init__(self) -> None:
        self.data = memoryview(b"\n")
        self.unescaped = room(1, "u1")
        self.text = JsonText()
        self.lines = ShapeRows()
        self.values = ValueRows()
        self.pos = 0
        self.size = 0

    def read_from(self, data: bytes) -> None:
        """Read these lines next."""
        self.data = memoryview(data)
        self.unescaped = room(len(data), "u1")
        self.text.read_from(data)
        self.pos = 0

    def step(self) -> Fallible[i64]:
        """Read all lines, the empty ones too."""
        end = len(self.data)
        while self.pos < end:
            row = self.lines.add_row()
            first = self.values.rows
            self.lines.start[row] = self.pos
            self.lines.value[row] = first
            self.text.begin()
            if self.line():
                # A shape is odd: 0 says that there is none.
                self.lines.shape[row] = self.text.mixed | 1
            else:
                self.lines.shape[row] = 0
                self.values.rows = first
                while self.data[self.pos] != NEWLINE:
                    self.pos += 1
            self.pos += 1
        return 0

    def line(self) -> Fallible[flag]:
        """Read the line at ``pos`` up to its newline; return whether it has a shape."""
        depth = 0
        while True:
            at = self.pos
            byte = self.data[at]
            if byte in (COMMA, COLON, OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST):
                self.text.number(byte)
                self.pos = at + 1
                if byte in (OPEN_OBJECT, OPEN_LIST):
                    depth += 1
                elif byte in (CLOSE_OBJECT, CLOSE_LIST):
                    depth -= 1
                    if depth <= 0:
                        return depth == 0 and self.data[at + 1] == NEWLINE
            elif depth == 0:
                return False
            elif byte == QUOTE:
                end = self.text.string_end(at)
                if end < 0:
                    return False
                if self.data[end] != COLON:
                    if not self.string(at, end):
                        return False
                    continue
                self.text.take(at, end)
                self.pos = end + 1
                name = self.text.key(at, end)
                if depth == 1 and name in (OFFSET, NBYTES):
                    end = self.text.literal_end(self.pos)
                    if name == NBYTES:
                        self.text.take(self.pos, end)
                    self.pos = end
            elif byte == MINUS or ZERO <= byte <= NINE:
                if not self.numeral(at):
                    return False
            elif LOWER_A <= byte <= LOWER_Z:
                end = self.text.literal_end(at)
                self.text.take(at, end)
                self.pos = end
            else:
                return False

    def value(self) -> Fallible[i64]:
        """Return the row for the next value."""
        row = self.values.add_row()
        self.values.real[row] = 0.0
        self.values.start[row] = 0
        self.values.nbytes[row] = 0
        return row

    def numeral(self, at: i64) -> Fallible[flag]:
        """Read a number; return whether it is an integer of 64 bits or a real number."""
        end = self.text.literal_end(at)
        self.pos = end
        row = self.value()
        if not self.text.is_whole(at, end):
            self.text.number(REAL)
            self.values.number[row] = 0
            return self.real(row, at, end)
        self.text.number(INTEGER)
        negative = self.data[at] == MINUS
        at += negative
        number: u64 = 0
        if end - at > DIGITS + 1 or end == at:
            return False
        last = at + DIGITS
        while at < end:
            digit: u64 = self.data[at] - ZERO
            if digit > 9:
                return False
            if at >= last and (
                number > 1844674407370955161 or (number == 1844674407370955161 and digit > 5)
            ):
                return False
            number = (number * 10 + digit) & LOW64
            at += 1
        if negative:
            number = (LOW64 - number + 1) & LOW64
        self.values.number[row] = number
        return True

    @with_gil
    def real(self, row: i64, at: i64, end: i64) -> Fallible[flag]:
        """Store a real number; return whether it is one."""
        try:
            self.values.real[row] = float(bytes(self.data[at:end]))
        except ValueError:
            return False
        return True

    def string(self, at: i64, end: i64) -> Fallible[flag]:
        """Store the string from the quote at ``at`` on; return whether its escapes are bytes."""
        self.pos = end
        row = self.value()
        start = at + 1
        out = start
        at = start
        while at < end - 1:
            byte = self.data[at]
            at += 1
            if byte == BACKSLASH:
                byte = self.escaped(at)
                if byte < 0:
                    return False
                at += 5 if self.data[at] == LETTER_U else 1
            self.unescaped[out] = byte
            out += 1
        nbytes = out - start
        self.values.start[row] = start
        self.values.nbytes[row] = nbytes
        self.text.number(TEXT)
        self.text.number((nbytes + 7) >> 3)
        shape: u64 = self.text.mixed
        self.text.begin()
        self.text.take(start, end - 1)
        self.values.number[row] = self.text.mixed
        self.text.mixed = shape
        return True

    def escaped(self, at: i64) -> i64:
        """Return the byte of the escape whose letter is at ``at``; -1 for a wider character."""
        letter = self.data[at]
        if letter == LETTER_N:
            return 0x0A
        if letter == LETTER_T:
            return 0x09
        if letter == LETTER_R:
            return 0x0D
        if letter == LETTER_B:
            return 0x08
        if letter == LETTER_F:
            return 0x0C
        if letter != LETTER_U:
            return letter
        number = 0
        place = 1
        while place < 5:
            digit = self.data[at + place]
            if ZERO <= digit <= NINE:
                number = 16 * number + digit - ZERO
            elif LOWER_A <= digit <= LETTER_F:
                number = 16 * number + digit - LOWER_A + 10
            else:
                return -1
            place += 1
        return number if number < 0x80 else -1
