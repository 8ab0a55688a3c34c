"""Writes rows of numbers and texts as lines of separated cells, quoted where necessary."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.annotations import Bytes, Fallible, View, i64, status
from fxframework.kernels.buffers import view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.output import Output

__all__ = ["Cells"]

I64 = NDArray[np.int64]

# Kinds of columns, as letters: signed and unsigned numbers, pooled texts, texts of these rows
# verbatim or quoted where necessary, and JSON objects.
SIGNED = 0x73
NATURAL = 0x6E
POOLED = 0x70
VERBATIM = 0x76
OBJECT = 0x61
TEXT = 0x74

SEPARATOR = 0
ROW_END = 1
OPEN = 2
CLOSE = 3
COMMA = 4
QUOTE = 0x22
APOSTROPHE = 0x27
SPECIAL = 1
FORMULA = 2
MORE = 1
END = 0


class Cells(Kernel):
    """Writes rows as lines of cells with separators.

    A text with a byte of ``special`` is quoted; one that begins with a byte of ``formulas`` gets
    an apostrophe. ``run`` returns END after the last row, MORE once ``most`` bytes are written;
    ``out.take()`` returns the bytes.
    """

    out: Output
    marks: Bytes
    kinds: Bytes
    pool: Bytes
    texts: Bytes
    member_kinds: Bytes
    values: View[i64]
    pool_bounds: View[i64]
    text_bounds: View[i64]
    starts: View[i64]
    stops: View[i64]
    names: View[i64]
    members: View[i64]
    most: i64
    columns: i64
    row: i64
    rows: i64

    def __init__(self, separator: bytes, *, special: bytes, formulas: bytes, most: int) -> None:
        self.out = Output([separator, b"\r\n", b'"{', b'}"', b","], memoryview(bytes(8)))
        marks = np.zeros(256, np.uint8)
        marks[list(special)] |= SPECIAL
        marks[list(formulas)] |= FORMULA
        self.marks = marks.data
        self.most = most
        self.row = 0
        self.rows = 0
        self.columns = 0
        none = view(np.zeros(1, np.int64), np.int64)
        letters = view(np.zeros(1, np.uint8), np.uint8)
        self.kinds = letters
        self.values = none
        self.pool = letters
        self.pool_bounds = none
        self.texts = letters
        self.text_bounds = none
        self.starts = none
        self.stops = none
        self.names = none
        self.member_kinds = letters
        self.members = none

    def load(
        self,
        kinds: str,
        values: NDArray[np.int64],
        pool: tuple[NDArray[np.uint8], NDArray[np.int64]],
        texts: tuple[NDArray[np.uint8], NDArray[np.int64]],
    ) -> None:
        """Set the rows: the kind of each column, and values of shape (columns, rows).

        Kinds are a, the index of an object; s and n, signed and unsigned numbers; p, the index of
        a text in the pool; v and t, the index of a text of these rows, verbatim or quoted where
        necessary. ``pool`` and ``texts`` are bytes with the bounds of the texts.
        """
        self.kinds = view(np.frombuffer(kinds.encode(), np.uint8), np.uint8)
        self.columns, self.rows = values.shape
        self.values = view(values.reshape(-1) if values.size else np.zeros(1), np.int64)
        self.pool, self.pool_bounds = view(pool[0], np.uint8), view(pool[1], np.int64)
        self.texts, self.text_bounds = view(texts[0], np.uint8), view(texts[1], np.int64)
        self.row = 0

    def load_objects(
        self, starts: I64, stops: I64, names: I64, kinds: NDArray[np.uint8], values: I64
    ) -> None:
        """Set the objects: begin and end of the members of each, of shape (objects,).

        For each member, of shape (members,): the text of its name and colon in the pool, and the
        kind and value as for columns. All texts must have their quotes doubled.
        """
        self.starts, self.stops = view(starts, np.int64), view(stops, np.int64)
        self.names, self.members = view(names, np.int64), view(values, np.int64)
        self.member_kinds = view(kinds, np.uint8)

    def step(self) -> Fallible[i64]:
        """Write rows until ``most`` bytes are written."""
        while self.row < self.rows:
            if self.out.used >= self.most:
                return MORE
            self.write_row(self.row)
            self.row += 1
        return END

    def write_row(self, row: i64) -> status:
        """Write a row."""
        column = 0
        while column < self.columns:
            if column:
                self.out.literal(SEPARATOR)
            value = self.values[column * self.rows + row]
            kind = self.kinds[column]
            if kind == OBJECT:
                self.json(self.starts[value], self.stops[value])
            else:
                self.cell(kind, value)
            column += 1
        self.out.literal(ROW_END)
        return 0

    def cell(self, kind: i64, value: i64) -> status:
        """Write a value of a kind."""
        if kind == SIGNED:
            self.out.signed(value)
        elif kind == NATURAL:
            self.out.natural(value)
        elif kind == POOLED:
            self.copy(self.pool_bounds[value], self.pool_bounds[value + 1])
        elif kind == VERBATIM:
            self.verbatim(self.text_bounds[value], self.text_bounds[value + 1])
        else:
            self.text(self.text_bounds[value], self.text_bounds[value + 1])
        return 0

    def json(self, first: i64, stop: i64) -> status:
        """Write members as an object; nothing if there are none."""
        if first == stop:
            return 0
        self.out.literal(OPEN)
        at = first
        while at < stop:
            if at > first:
                self.out.literal(COMMA)
            name = self.names[at]
            self.copy(self.pool_bounds[name], self.pool_bounds[name + 1])
            self.cell(self.member_kinds[at], self.members[at])
            at += 1
        self.out.literal(CLOSE)
        return 0

    def copy(self, start: i64, end: i64) -> status:
        """Copy bytes of the pool."""
        used = self.out.used
        if used + end - start > self.out.size:
            self.out.grow(end - start)
        while start < end:
            self.out.data[used] = self.pool[start]
            used += 1
            start += 1
        self.out.used = used
        return 0

    def verbatim(self, start: i64, end: i64) -> status:
        """Copy bytes of the texts of these rows."""
        used = self.out.used
        if used + end - start > self.out.size:
            self.out.grow(end - start)
        while start < end:
            self.out.data[used] = self.texts[start]
            used += 1
            start += 1
        self.out.used = used
        return 0

    def text(self, start: i64, end: i64) -> status:
        """Write a text, quoted if it is empty or has a special byte."""
        formula = 0
        if start < end and self.marks[self.texts[start]] & FORMULA:
            formula = 1
        quoted = 1 if start == end else 0
        at = start
        while at < end:
            if self.marks[self.texts[at]] & SPECIAL:
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
            byte = self.texts[at]
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
