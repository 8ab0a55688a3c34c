"""Rows of text from templates: sequences of parts filled from columns."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.kernels.arrays import I64, U8
from fxframework.kernels.buffers import grown
from fxframework.kernels.moments import PLAIN_PARTS
from fxframework.kernels.output import RowWriter
from fxframework.kernels.parts import MARK, NOTHING, STRETCH_END

Cell = bytes | tuple[int, NDArray[np.generic] | int]
"""A part of a template: a constant text, or a kind (``parts.py``) with its column or a constant
value."""

PIECE = 1 << 20
"""Bytes of rows that are given at a time."""
ENDLESS = 1 << 62
LITERAL_BYTES = 1 << 16
LITERALS = 64
"""Room for texts, at first."""
BRACES = 3
"""How many texts surround members: the first ones."""
SPECIAL = 1
FORMULA = 2
"""Marks of a byte, as ``output.pyx`` has them."""
ESCAPE = 8
"""Bytes of an escape and its size, likewise."""
NONE = -1
NO_SOURCE = memoryview(bytes(8))


@functools.cache
def json_escapes() -> U8:
    """Return JSON's escape of each byte and its size, uint8 of shape (2048,); a size of 0: none."""
    table = np.zeros((256, ESCAPE), np.uint8)
    for character in (*range(0x20), *b'"\\'):
        escape = orjson.dumps(chr(character))[1:-1]
        table[character, : len(escape)] = list(escape)
        table[character, ESCAPE - 1] = len(escape)
    return table.reshape(-1)


class Templates:
    """Writes rows of templates.

    ``before``, ``between`` and ``behind`` surround the members of a row, if there are any. Numbers
    of texts (``text``) are valid until ``forget`` changes ``version``. A text of the kind QUOTED is
    quoted if it is empty or has a byte of ``special``; one that begins with a byte of ``formulas``
    gets an apostrophe. Whole seconds are padded with blanks to ``width`` characters. Stretches are
    of ``source`` (uint8).
    """

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
        marks_of = np.zeros(256, np.uint8)
        marks_of[list(special)] |= SPECIAL
        marks_of[list(formulas)] |= FORMULA
        self._writer = RowWriter(source, marks_of, json_escapes())
        self._width = width
        self._literals = np.zeros(LITERAL_BYTES, np.uint8)
        self._bounds = np.zeros(LITERALS, np.int64)
        self._count = 0
        """How many texts there are in ``_literals``."""
        self._numbers: dict[bytes, int] = {}
        self._lasting: dict[tuple[bytes, ...], I64] = {}
        """Numbers of texts that parts of a kind need again and again."""
        self._columns: list[tuple[NDArray[np.uint8], I64]] = []
        self._held = 0
        self.version = 0
        self.marks = np.zeros(0, np.int64)
        self._add([before, between, behind])

    def text(self, text: bytes) -> int:
        """Return the number of a text."""
        number = self._numbers.get(text)
        if number is None:
            number = self._add([text])
            self._numbers[text] = number
        return number

    def shared_texts(self, texts: Sequence[bytes]) -> I64:
        """Return the numbers of texts, of equal ones the same, int64 of shape (texts,)."""
        numbers = self._numbers
        new_texts = [text for text in dict.fromkeys(texts) if text not in numbers]
        first_number = self._add(new_texts)
        numbers.update(zip(new_texts, range(first_number, self._count), strict=True))
        return np.array([numbers[text] for text in texts], np.int64)

    def texts(self, texts: Sequence[bytes]) -> I64:
        """Return numbers of texts that are used once, int64 of shape (texts,)."""
        return self._add(texts) + np.arange(len(texts))

    def _add(self, texts: Sequence[bytes]) -> int:
        """Enter texts; return the number of the first."""
        first_number = self._count
        self._count += len(texts)
        joined = b"".join(texts)
        start = int(self._bounds[first_number])
        end = start + len(joined)
        if self._count >= self._bounds.size:
            self._bounds = np.asarray(grown(self._bounds, 2 * self._count, first_number + 1))
        if end >= self._literals.size:
            self._literals = np.asarray(grown(self._literals, 2 * end, start))
        self._literals[start:end] = np.frombuffer(joined, np.uint8)
        ends = start + np.cumsum([len(text) for text in texts])
        self._bounds[first_number + 1 : self._count + 1] = ends
        return first_number

    def _lasting_texts(self, texts: Sequence[bytes]) -> I64:
        """Return the numbers of texts that are asked for again and again."""
        key = tuple(texts)
        numbers = self._lasting.get(key)
        if numbers is None:
            numbers = self._lasting[key] = self.shared_texts(texts)
        return numbers

    def column(self, data: NDArray[np.uint8], bounds: I64) -> I64:
        """Hold texts, given by their bytes and bounds, until ``forget``; return their numbers.

        The numbers are for the kinds COPIED and QUOTED, int64 of shape (texts,).
        """
        first_number = self._held
        self._columns.append((data, bounds))
        self._held = first_number + bounds.size
        return np.arange(first_number, first_number + bounds.size - 1)

    def forget(self, most: int = ENDLESS) -> bool:
        """Forget all rows and columns of texts; also the texts if they take over ``most`` bytes."""
        self._writer.used = 0
        self.forget_columns()
        if self._bounds[self._count] <= most:
            return False
        self._count = BRACES
        self._numbers.clear()
        self._lasting.clear()
        self.version += 1
        return True

    def forget_columns(self) -> None:
        """Forget all columns of texts; what was written with them stays."""
        self._columns = []
        self._held = 0

    def letters(self) -> NDArray[np.uint8]:
        """Return everything written since ``forget``, as a view."""
        return np.asarray(self._writer.data)[: self._writer.used]

    def hold(self, befores: I64, kinds: I64, values: I64, behinds: I64) -> None:
        """Set the members, by columns of shape (members,).

        A member is a text, a value of a kind, and another text.
        """
        self._writer.held = np.stack((befores, kinds, values, behinds)).astype(np.int64, copy=False)

    def write(self, rows: int, *parts: Cell) -> tuple[I64, I64]:
        """Write rows; return begin and end of each in ``letters``, both of shape (rows,).

        Columns have the shape (rows,); those of MEMBERS and MEMBERS_END are indexes of members.
        Raises IndexError if a stretch lies outside of the source.
        """
        bounds = np.empty(rows + 1, np.int64)
        bounds[0] = self._writer.used
        if rows:
            self._load(rows, parts)
            self._writer.run(bounds[1:], ENDLESS)
        return bounds[:rows], bounds[1:]

    def pieces(self, rows: int, *parts: Cell, most: int = PIECE) -> Iterator[bytes]:
        """Write rows as ``write`` does; yield them in pieces of about ``most`` bytes."""
        if rows:
            self._load(rows, parts)
            ends = np.empty(rows, np.int64)
            while self._writer.run(ends, most):
                yield self.take()
        yield self.take()

    def take(self) -> bytes:
        """Return what was written since the last call, and forget it."""
        letters = self.letters().tobytes()
        self._writer.used = 0
        return letters

    def _load(self, rows: int, parts: Sequence[Cell]) -> None:
        """Set the template and its columns."""
        # The writer gets a row for each part with a column: the number of the constant text before
        # it, the kind, where its values begin in one array of all values, and whether there is a
        # value for each row. The part NOTHING at the end is for a constant text behind all.
        part_rows: list[tuple[int, int, int, bool]] = []
        columns: list[NDArray[Any]] = []
        value_count = 0
        constant_text = b""
        previous_column = np.zeros(0, np.int64)
        for cell in self._plain_parts(parts):
            if isinstance(cell, bytes):
                constant_text += cell
                continue
            kind, values = cell
            column = np.asarray(values)
            text_number = self.text(constant_text) if constant_text else NONE
            part_rows.append((text_number, kind, value_count, column.ndim > 0))
            constant_text = b""
            columns.append(column)
            if kind == STRETCH_END:
                self._check_stretches(previous_column, column)
            elif kind == MARK:
                self.marks = np.zeros(rows, np.int64)
            value_count += column.size
            previous_column = column
        all_values = np.empty(value_count, np.int64)
        start = 0
        for column in columns:
            all_values[start : start + column.size] = signed(column)
            start += column.size
        if self._columns:
            self._join()
        part_table = np.ascontiguousarray(np.array(part_rows, np.int64).T)
        self._writer.literals = self._literals
        self._writer.literal_bounds = self._bounds[: self._count + 1]
        self._writer.load(rows, part_table, all_values, self.marks)

    def _plain_parts(self, parts: Sequence[Cell]) -> Iterator[Cell]:
        """Yield parts as the writer knows them, and one that writes nothing."""
        for cell in parts:
            if isinstance(cell, bytes) or cell[0] not in PLAIN_PARTS:
                yield cell
                continue
            kind, values = cell
            yield from PLAIN_PARTS[kind](
                signed(np.asarray(values)), self._lasting_texts, self._width
            )
        yield NOTHING, 0

    def _check_stretches(self, starts: NDArray[Any], ends: NDArray[Any]) -> None:
        """Raise IndexError if a stretch lies outside of the source."""
        total = len(self._writer.source)
        if starts.size and (starts.min() < 0 or ends.max() > total or (starts > ends).any()):
            msg = f"a stretch lies outside of {total} bytes"
            raise IndexError(msg)

    def _join(self) -> None:
        """Make one column of all that are held."""
        if len(self._columns) > 1:
            bounds_in_all = []
            start = 0
            for data, bounds in self._columns:
                bounds_in_all.append(bounds + start)
                start += data.size
            letters = np.concatenate([data for data, _ in self._columns])
            self._columns = [(letters, np.concatenate(bounds_in_all))]
        data, bounds = self._columns[0]
        self._writer.texts = data if data.size else np.zeros(1, np.uint8)
        self._writer.bounds = np.ascontiguousarray(bounds, np.int64)


def signed(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers so that they can be stored as int64: uint64 by their bits."""
    return values.view(np.int64) if values.dtype == np.uint64 else values
