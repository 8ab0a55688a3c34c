"""Rows of text from templates: sequences of parts filled from columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.annotations import (
    Array,
    Bytes,
    Fallible,
    View,
    f64,
    flag,
    i64,
    inline,
    status,
    u64,
)
from fxframework.kernels.buffers import full, view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.output import Output
from fxframework.kernels.parts import (
    CLOCK,
    COPIED,
    HEX,
    HEX16,
    ITEMS,
    LENGTH,
    MARK,
    MEMBERS,
    MICROS,
    NATURAL,
    NOTHING,
    QUOTED,
    REAL,
    SECONDS,
    SIGNED,
    SKIP,
    STRETCH,
    STRETCH_END,
    STRETCH_HEX,
    TEXT,
)

__all__ = ["Cell", "Templates", "signed"]

I64 = NDArray[np.int64]
Cell = bytes | tuple[int, NDArray[np.generic] | int]
"""A part of a template: a constant text, or a kind (``parts.py``) with its column or a constant
value."""

MORE = 1
END = 0
PIECE = 1 << 20
"""Bytes of rows that are given at a time."""
ENDLESS = 1 << 62
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
LOW64 = 0xFFFFFFFFFFFFFFFF
SPECIAL = 1
FORMULA = 2
NONE = -1
BEFORE = 0
BETWEEN = 1
BEHIND = 2
NO_SOURCE = memoryview(bytes(8))


class Templates(Kernel):
    """Writes rows of templates to ``out``.

    ``before``, ``between`` and ``behind`` surround the members of a row, if there are any. Numbers
    of texts (``text``) are valid until ``forget`` changes ``version``. A text of the kind QUOTED is
    quoted if it is empty or has a byte of ``special``; one that begins with a byte of ``formulas``
    gets an apostrophe. Whole seconds are padded with blanks to ``width`` characters. Stretches are
    of ``source`` (uint8).
    """

    out: Output
    bits: Array[i64]
    doubles: Array[f64]
    _braces: list[bytes]
    _numbers: dict[bytes, int]
    _columns: list[Any]
    _held: i64
    version: i64
    leads: View[i64]
    kinds: View[i64]
    places: View[i64]
    steps: View[i64]
    values: View[i64]
    bounds: View[i64]
    marks_of: Bytes
    befores: View[i64]
    member_kinds: View[i64]
    members_held: View[i64]
    behinds: View[i64]
    ends: Array[i64]
    marked: Array[i64]
    marks: I64
    parts: i64
    row: i64
    rows: i64
    most: i64
    width: i64

    def __init__(
        self,
        before: bytes,
        between: bytes,
        behind: bytes,
        *,
        special: bytes = b"",
        formulas: bytes = b"",
        width: int = 6,
        source: memoryview = NO_SOURCE,
    ) -> None:
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

    def text(self, text: bytes) -> int:
        """Return the number of a text."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = self.out.add(text)
        return number

    def texts(self, texts: Sequence[bytes]) -> I64:
        """Return numbers of texts that are used once, int64 of shape (texts,)."""
        return self.out.add_all(texts) + np.arange(len(texts))

    def column(self, data: NDArray[np.uint8], bounds: I64) -> I64:
        """Hold texts, given by their bytes and bounds, until ``forget``; return their numbers.

        The numbers are for the kinds COPIED and QUOTED, int64 of shape (texts,).
        """
        first = int(self._held)
        self._columns.append((data, bounds))
        self._held = first + bounds.size
        return np.arange(first, first + bounds.size - 1)

    def forget(self, most: int = ENDLESS) -> bool:
        """Forget all rows and columns of texts; also the texts if they take over ``most`` bytes."""
        self.out.used = 0
        self.forget_columns()
        if self.out.held() <= most:
            return False
        self.out.forget(len(self._braces))
        self._numbers.clear()
        self.version += 1
        return True

    def forget_columns(self) -> None:
        """Forget all columns of texts; what was written with them stays."""
        self._columns = []
        self._held = 0

    def letters(self) -> NDArray[np.uint8]:
        """Return everything written since ``forget``, as a view."""
        return self.out.written()

    def hold(self, befores: I64, kinds: I64, values: I64, behinds: I64) -> None:
        """Set the members, by columns of shape (members,).

        A member is a text, a value of a kind, and another text.
        """
        columns = [
            view(each if each.size else np.zeros(1), np.int64)
            for each in (befores, kinds, values, behinds)
        ]
        self.befores, self.member_kinds, self.members_held, self.behinds = columns

    def write(self, rows: int, *parts: Cell) -> tuple[I64, I64]:
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

    def pieces(self, rows: int, *parts: Cell, most: int = PIECE) -> Iterator[bytes]:
        """Write rows as ``write`` does; yield them in pieces of about ``most`` bytes."""
        if rows:
            self._load(rows, parts)
            self.ends = np.empty(rows, np.int64).data
            self.most = most
            while self.run():
                yield self.out.take()
        yield self.out.take()

    def _load(self, rows: int, parts: Sequence[Cell]) -> None:
        """Set the template and its columns."""
        leads: list[int] = []
        kinds: list[int] = []
        places: list[int] = []
        steps: list[int] = []
        columns: list[Any] = []
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

    def _check_stretches(self, starts: NDArray[Any], ends: NDArray[Any]) -> None:
        """Raise IndexError if a stretch lies outside of the source."""
        total = len(self.out.source)
        if starts.size and (starts.min() < 0 or ends.max() > total or (starts > ends).any()):
            msg = f"a stretch lies outside of {total} bytes"
            raise IndexError(msg)

    def _join(self) -> None:
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

    def step(self) -> Fallible[i64]:
        """Write rows until ``most`` bytes are written."""
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

    @inline
    def cell(self, part: i64, value: i64, row: i64) -> status:
        """Write the value of a part."""
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

    @inline
    def value(self, kind: i64, value: i64) -> status:
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

    def members(self, first: i64, stop: i64, surrounded: flag) -> status:
        """Write members; nothing if there are none."""
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

    def quote(self, start: i64, end: i64) -> status:
        """Write a text of the columns, quoted if it is empty or has a special byte."""
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

    def letter(self, letter: i64) -> status:
        """Write a character."""
        if self.out.used + 1 > self.out.size:
            self.out.grow(1)
        self.out.data[self.out.used] = letter
        self.out.used += 1
        return 0

    def hexadecimal(self, value: i64, digits: i64) -> status:
        """Write an unsigned number in hex, in at least so many digits."""
        left: u64 = value & LOW64
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
        while letters < self.width:
            self.letter(BLANK)
            letters += 1
        if ns < 0:
            self.letter(MINUS)
        self.out.natural(whole)
        self.letter(POINT)
        self.out.padded(size % 1000000000, 9)
        return 0

    def clock(self, ns: i64) -> status:
        """Write nanoseconds as seconds in at least five digits, with six decimals."""
        micros = ns // 1000 if ns > 0 else 0
        whole = micros // 1000000
        if whole < 100000:
            self.out.padded(whole, 5)
        else:
            self.out.natural(whole)
        self.letter(POINT)
        self.out.padded(micros - 1000000 * whole, 6)
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


def signed(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers so that they can be stored as int64: uint64 by their bits."""
    return values.view(np.int64) if values.dtype == np.uint64 else values
