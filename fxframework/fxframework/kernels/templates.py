"""Rows of text from templates: sequences of parts filled from columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.annotations import Array, Fallible, View, i64, status, u64
from fxframework.kernels.buffers import view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.output import Output
from fxframework.kernels.parts import (
    HEX,
    LENGTH,
    MARK,
    MEMBERS,
    MICROS,
    NATURAL,
    SECONDS,
    SIGNED,
    TEXT,
)

__all__ = ["Cell", "Templates"]

I64 = NDArray[np.int64]
Cell = bytes | tuple[int, NDArray[np.generic] | int]
"""A part of a template: a constant text, or a kind (``parts.py``) with its column or a constant
value."""

ZERO = 0x30
BLANK = 0x20
MINUS = 0x2D
POINT = 0x2E
LETTER_A = 0x61
LETTER_M = 0x6D
LETTER_N = 0x6E
LETTER_S = 0x73
LETTER_U = 0x75
WIDTH = 6
"""Minimum width of whole seconds, padded with blanks."""
LOW64 = 0xFFFFFFFFFFFFFFFF


class Templates(Kernel):
    """Writes rows of templates to ``out``; written rows can be members of later rows.

    ``before``, ``between`` and ``behind`` surround the members of a row, if there are any. Numbers
    of texts (``text``) are valid until the next call of ``forget``.
    """

    out: Output
    _braces: list[bytes]
    _numbers: dict[bytes, int]
    kinds: View[i64]
    places: View[i64]
    steps: View[i64]
    values: View[i64]
    member_starts: View[i64]
    member_ends: View[i64]
    ends: Array[i64]
    marked: Array[i64]
    marks: I64
    parts: i64
    rows: i64

    def __init__(self, before: bytes, between: bytes, behind: bytes) -> None:
        self._braces = [before, between, behind]
        self.out = Output(self._braces, memoryview(bytes(8)))
        self._numbers = {}
        none = view(np.zeros(1, np.int64), np.int64)
        self.kinds = none
        self.places = none
        self.steps = none
        self.values = none
        self.ends = none
        self.marked = none
        self.marks = np.zeros(0, np.int64)
        self.member_starts = none
        self.member_ends = none
        self.parts = 0
        self.rows = 0

    # --- Interface for Python --------------------------------------------------------------------

    def text(self, text: bytes) -> int:
        """Return the number of a text."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = self.out.add(text)
        return number

    def texts(self, texts: Sequence[bytes]) -> I64:
        """Return numbers of texts that are used once, int64 of shape (texts,)."""
        return self.out.add_all(texts) + np.arange(len(texts))

    def forget(self, most: int) -> bool:
        """Forget all rows, and also the texts if they take more than ``most`` bytes."""
        self.out.used = 0
        if self.out.held() <= most:
            return False
        self.out.forget(len(self._braces))
        self._numbers.clear()
        return True

    def letters(self) -> NDArray[np.uint8]:
        """Return everything written since ``forget``, as a view."""
        return self.out.written()

    def hold(self, starts: I64, ends: I64) -> None:
        """Set the members: begin and end of each in ``letters``, of shape (members,)."""
        self.member_starts = view(starts if starts.size else np.zeros(1), np.int64)
        self.member_ends = view(ends if ends.size else np.zeros(1), np.int64)

    def write(self, rows: int, *parts: Cell) -> tuple[I64, I64]:
        """Write rows; return begin and end of each in ``letters``, both of shape (rows,).

        Columns have the shape (rows,); those of MEMBERS and MEMBERS_END are indexes of members.
        """
        kinds: list[int] = []
        places: list[int] = []
        steps: list[int] = []
        columns: list[I64] = []
        size = 0
        for part in parts:
            kind, column = (TEXT, self.text(part)) if isinstance(part, bytes) else part
            values = np.asarray(column)
            kinds.append(kind)
            places.append(size)
            steps.append(int(values.ndim > 0))
            filled = np.atleast_1d(values).astype(np.int64, copy=False)
            columns.append(filled)
            size += filled.size
        begin = int(self.out.used)
        bounds = np.empty(rows + 1, np.int64)
        bounds[0] = begin
        if rows:
            self.kinds = view(np.array(kinds), np.int64)
            self.places = view(np.array(places), np.int64)
            self.steps = view(np.array(steps), np.int64)
            self.values = view(np.concatenate(columns), np.int64)
            self.ends = bounds[1:].data
            if MARK in kinds:
                self.marks = np.zeros(rows, np.int64)
                self.marked = self.marks.data
            self.parts, self.rows = len(parts), rows
            self.run()
        return bounds[:rows], bounds[1:]

    # --- Kernel ----------------------------------------------------------------------------------

    def step(self) -> Fallible[i64]:
        """Write all rows."""
        row = 0
        while row < self.rows:
            part = 0
            while part < self.parts:
                self.cell(part, self.values[self.places[part] + self.steps[part] * row], row)
                part += 1
            self.ends[row] = self.out.used
            row += 1
        return 0

    def cell(self, part: i64, value: i64, row: i64) -> status:
        """Write the value of a part."""
        kind = self.kinds[part]
        if kind == TEXT:
            self.out.literal(value)
        elif kind == SIGNED:
            self.out.signed(value)
        elif kind == NATURAL:
            self.out.natural(value)
        elif kind == HEX:
            self.hexadecimal(value)
        elif kind == MICROS:
            self.micros(value)
        elif kind == SECONDS:
            self.seconds(value)
        elif kind == LENGTH:
            self.length(value)
        elif kind == MARK:
            self.marked[row] = self.out.used
        elif kind == MEMBERS:
            self.members(value, self.values[self.places[part + 1] + self.steps[part + 1] * row])
        return 0

    def members(self, first: i64, stop: i64) -> status:
        """Write members; nothing if there are none."""
        at = first
        while at < stop:
            self.out.literal(1 if at > first else 0)
            self.copy(self.member_starts[at], self.member_ends[at])
            at += 1
        if first < stop:
            self.out.literal(2)
        return 0

    def copy(self, start: i64, end: i64) -> status:
        """Copy bytes ``start`` to ``end`` of the output to its end."""
        if self.out.used + end - start > self.out.size:
            self.out.grow(end - start)
        used = self.out.used
        while start < end:
            self.out.data[used] = self.out.data[start]
            used += 1
            start += 1
        self.out.used = used
        return 0

    def letter(self, letter: i64) -> status:
        """Write a character."""
        if self.out.used + 1 > self.out.size:
            self.out.grow(1)
        self.out.data[self.out.used] = letter
        self.out.used += 1
        return 0

    def hexadecimal(self, value: i64) -> status:
        """Write an unsigned number in hex."""
        left: u64 = value & LOW64
        digits = 1
        while digits < 16 and left >> (4 * digits):
            digits += 1
        while digits > 0:
            digits -= 1
            digit = (left >> (4 * digits)) & 15
            self.letter(ZERO + digit if digit < 10 else LETTER_A + digit - 10)
        return 0

    def micros(self, ns: i64) -> status:
        """Write nanoseconds as exact microseconds."""
        size: u64 = self.magnitude(ns)
        if ns < 0:
            self.letter(MINUS)
        self.out.natural(size // 1000)
        self.letter(POINT)
        self.out.padded(size % 1000, 3)
        return 0

    def magnitude(self, value: i64) -> u64:
        """Return the absolute value."""
        if value < 0:
            return (LOW64 - (value & LOW64) + 1) & LOW64
        return value

    def seconds(self, ns: i64) -> status:
        """Write nanoseconds as exact seconds, padded with blanks."""
        size: u64 = self.magnitude(ns)
        whole: u64 = size // 1000000000
        letters = 1 + (ns < 0)
        left: u64 = whole // 10
        while left:
            letters += 1
            left //= 10
        while letters < WIDTH:
            self.letter(BLANK)
            letters += 1
        if ns < 0:
            self.letter(MINUS)
        self.out.natural(whole)
        self.letter(POINT)
        self.out.padded(size % 1000000000, 9)
        return 0

    def length(self, ns: i64) -> status:
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

    def fraction(self, whole: u64, rest: u64, places: i64) -> status:
        """Write a number and its decimals without trailing zeros."""
        self.out.natural(whole)
        if rest == 0:
            return 0
        left: u64 = rest // 10
        while left * 10 == rest:
            rest = left
            left = rest // 10
            places -= 1
        self.letter(POINT)
        self.out.padded(rest, places)
        return 0
