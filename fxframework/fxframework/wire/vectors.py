"""Vectorized programs: of the records of a program, those that can be read many at a time.

These have a fixed size and fields at fixed places, make at most one row, and change nothing that
later records depend on. ``fxframework.kernels.vectors`` reads them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels import ops
from fxframework.wire.format import Format, kinds_of

__all__ = ["Vectorized", "vectorized"]

POS, NBYTES = 0, 1
"""Slots of the place and the size of the record."""
NOT_HERE = 0, -1, -1
"""First operation, class and table of an entry that is not read many at a time."""


class Vectorized(NamedTuple):
    """What the kernel needs."""

    code: NDArray[np.int64]
    heads: NDArray[np.int64]
    """Three numbers per entry: the first operation, the class, and the table (-1: none)."""
    sizes: NDArray[np.int64]
    """Size of the records of each entry; 0 if they are not read many at a time."""
    vectors: int
    """Number of vectors."""


class _OneByOneError(Exception):
    """The records of an entry have to be read one by one."""


class _Entry:
    """Translates the program of an entry."""

    def __init__(self, code: list[int], ip: int, fixed: int) -> None:
        self.code = code
        self.ip = ip
        self.fixed = fixed
        self.first: list[tuple[int, ...]] = []
        self.made: list[tuple[int, ...]] = []
        self.lanes = {POS: ops.PLACES}
        self.vectors = ops.FREE
        self.at = 0
        self.word: tuple[int, int, int] | None = None
        """Offset, size and byte order of a word that was not needed yet."""
        self.table = -1
        self.ended = False
        self.cls = self.translate()

    def vector(self, slot: int, *, new: bool = False) -> int:
        """Return the vector of a slot, which has what the slot has unless it is ``new``."""
        if new or slot not in self.lanes:
            self.lanes[slot] = self.vectors
            self.vectors += 1
            if slot == NBYTES:
                self.first.append((ops.VECTOR_FILL, self.lanes[slot], self.fixed))
            elif not new:
                self.first.append((ops.VECTOR_SLOT, self.lanes[slot], slot))
        return self.lanes[slot]

    def add(self, *operation: int) -> None:
        """Add an operation."""
        self.made.append(operation)

    def load(self) -> None:
        """Add what reads the word at hand, the first time that it is needed."""
        if self.word is not None:
            self.add(ops.VECTOR_LOAD, *self.word)
            self.word = None

    def translate(self) -> int:
        """Translate the operations; return the number of the class. Raises _OneByOneError."""
        while True:
            number, a, b, c, d, _ = self.code[self.ip : self.ip + ops.WIDTH]
            self.ip += ops.WIDTH
            if number == ops.END:
                if self.at != self.fixed or (self.table >= 0 and not self.ended):
                    raise _OneByOneError
                return a
            self.operation(number, a, b, c, d)
            if self.at > self.fixed:
                raise _OneByOneError

    def operation(self, number: int, a: int, b: int, c: int, d: int) -> None:
        """Translate an operation."""
        if number == ops.LOAD:
            self.word = self.at, a, b
            self.at += a
        elif number == ops.PUT:
            self.put(a, b, c, d)
        elif number == ops.KEEP:
            self.load()
            self.add(ops.VECTOR_KEEP, a, b, self.vector(c, new=True), d)
        elif number == ops.RESERVED:
            self.load()
            self.add(ops.VECTOR_RESERVED, a)
        elif number == ops.PUTPOS:
            if a:
                self.add(ops.VECTOR_FILL, self.vector(-1, new=True), self.at)
            self.add(ops.VECTOR_CELL, self.lanes[-1] if a else ops.PLACES, 0, c)
        elif number == ops.PUTSLOT:
            self.add(ops.VECTOR_CELL, self.vector(a), 0, c)
        elif number == ops.PUTREF:
            self.add(ops.VECTOR_TEXT, self.vector(a), b, c)
        elif number == ops.KNOWN:
            self.add(ops.VECTOR_KNOWN, self.vector(a), b)
        elif number == ops.EXPECT:
            if b:
                self.add(ops.VECTOR_EXPECT, self.vector(a))
        elif number == ops.CONST:
            self.add(ops.VECTOR_FILL, self.vector(a, new=True), b)
        elif number == ops.CALC:
            left, right = self.vector(c), self.vector(d)
            self.add(ops.VECTOR_CALC, self.vector(a, new=True), b, left, right)
        elif number == ops.ROW:
            self.row(a, end=bool(b))
        else:
            self.octets(number, a, b, c)

    def put(self, shift: int, mask: int, column: int, sign: int) -> None:
        """Translate what fills a column with bits of the word at hand."""
        if self.word is not None and self.code[self.ip] in (ops.LOAD, ops.ROW, ops.BODY):
            offset, nbytes, big = self.word
            if shift == 0 and big == 0 and mask in (-1, (1 << 8 * nbytes) - 1):
                self.add(ops.VECTOR_TAKE, offset, nbytes, column, sign)
                self.word = None
                return
        self.load()
        self.add(ops.VECTOR_PUT, shift, mask, column, sign)

    def row(self, table: int, *, end: bool) -> None:
        """Translate the beginning or the end of a row."""
        if self.ended or (end and table != self.table) or (not end and self.table >= 0):
            raise _OneByOneError
        self.table = table
        self.ended = end

    def octets(self, number: int, a: int, b: int, c: int) -> None:
        """Translate an operation on bytes that are not a number."""
        if number == ops.SPAN and b < 0:
            self.add(ops.VECTOR_SPAN, self.at, a)
            self.at += a
        elif number == ops.TRIM:
            self.add(ops.VECTOR_TRIM, a)
        elif number == ops.UTF8:
            self.add(ops.VECTOR_UTF8)
        elif number == ops.PUTSPAN:
            self.add(ops.VECTOR_CELL, ops.STARTS, 0, c)
            self.add(ops.VECTOR_CELL, ops.LENGTHS, 0, c + 1)
        elif number == ops.BODY and b == 0:
            if self.at < self.fixed:
                self.add(ops.VECTOR_ZEROS, self.at, self.fixed - self.at)
            self.at = self.fixed
        else:
            raise _OneByOneError


def size_of_fields(code: list[int], ip: int) -> int:
    """Return the bytes of fields of a fixed size, and the padding behind them."""
    nbytes = 0
    while True:
        number, a, b = code[ip : ip + 3]
        if number == ops.LOAD or (number == ops.SPAN and b < 0):
            nbytes += a
        elif number in (ops.END, ops.HANDOVER):
            return nbytes
        elif number == ops.BODY:
            return -(-nbytes // max(1, a)) * max(1, a)
        ip += ops.WIDTH


def vectorized(format: Format, code: list[int], entries: Sequence[int]) -> Vectorized:
    """Translate the program of a format.

    Records that a second kind tells apart are left to be read one by one.
    """
    kinds = [(second, cls.layout.size) for _, second, cls in kinds_of(format)]
    if format.family.other is not None:
        kinds.append((-1, 0))
    made: list[int] = []
    heads: list[int] = []
    sizes: list[int] = []
    vectors = ops.FREE
    family = format.family
    for number, ip in enumerate(entries):
        second, fixed = kinds[number % len(kinds)]
        fixed = family.nbytes or fixed
        if family.size is not None:
            fixed = size_of_fields(code, ip)
        entry = None
        if second < 0 and fixed:
            with contextlib.suppress(_OneByOneError):
                entry = _Entry(code, ip, fixed)
        if entry is None:
            heads += NOT_HERE
            sizes.append(0)
            continue
        heads += len(made), entry.cls, entry.table
        sizes.append(fixed)
        vectors = max(vectors, entry.vectors)
        for operation in [*entry.first, *entry.made, (ops.VECTOR_END,)]:
            made += [*operation, 0, 0, 0, 0, 0][: ops.WIDTH]
    return Vectorized(
        np.array([*made, 0], "i8"), np.array(heads, "i8"), np.array(sizes, "i8"), vectors
    )
