"""Column records: the records of one shape, or parts of records, whose fields are columns.

Columns give the sizes of records (``measure``), sizes give their places, and each field is written
to its places (``put``). Columns are made of record JSON (``groups.py``), or by a format's own
writer. Records that do not fit their numbers are *odd*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from fxframework.kernels.arrays import I64, U8
from fxframework.kit.lossless import UnfitError
from fxframework.wire.beside import Spare
from fxframework.wire.cursor import AT, SIZE
from fxframework.wire.expressions import (
    Calculation,
    Checksum,
    Constant,
    Expression,
    Register,
    as_numbers,
    calculated_columns,
    wrapped,
)
from fxframework.wire.families import LARGEST_POWER
from fxframework.wire.fields import Bits, Field, Integer, Number
from fxframework.wire.floats import Float
from fxframework.wire.json_columns import Column, Numbers, scatter, store
from fxframework.wire.json_shapes import Shape, ShapeEntry
from fxframework.wire.known import gaps_to
from fxframework.wire.lists import Listed
from fxframework.wire.spans import Span, Text
from fxframework.wire.state import State


class ItemLists(Protocol):
    """Lists of parts, one of each record."""

    counts: I64
    """Items of each record."""

    def measure(self, place: Numbers) -> I64:
        """Return the bytes of each list, which begins at a place of its record."""

    def put(self, out: U8, places: I64) -> None:
        """Write the items of lists that begin at these places."""


class ColumnRecords:
    """Records of one shape as columns of shape (records,).

    Before ``measure``, the public fields have a column: numbers, bits of floats and flags in
    ``numbers``, texts and bytes in ``columns``, lists of parts in ``lists``. A field that shows an
    entry of a table has the number that says which in ``indexes``; bytes in ``columns`` are those
    of texts that are in the records.
    """

    def __init__(self, shape: Shape, state: State, count: int) -> None:
        self.shape = shape
        self.layout = shape.layout
        self.state = state
        self.big = state.big
        self.odd = np.zeros(count, np.bool_)
        """Records that do not fit. They stay in the columns, as something usual."""
        self.numbers: dict[Expression, Numbers] = dict(shape.kinds)
        self.known: dict[Expression, Numbers] = {}
        """All numbers of fields as ``measure`` finds them, and checksums."""
        self.columns: dict[Field, Column] = {}
        self.lists: dict[Field, ItemLists] = {}
        self.indexes: dict[Field, I64] = {}
        self.places: dict[Field, Numbers] = {}
        """Bytes of a record before each field."""
        self.size: Numbers | None = None

    def field(self, name: str) -> Field:
        """Return the field of a name; of a choice, that of the kind that the records have."""
        for field, value in self.shape.values.items():
            if field.name == name and value is not None:
                return value
        raise KeyError(name)

    # --- Sizes ----------------------------------------------------------------------------------

    def measure(self) -> I64:
        """Return the sizes of the records; mark those that do not fit their numbers.

        It is called again once references are looked up: texts that are in the records have bytes,
        those that a number stands for have none.
        """
        place: Numbers = 0
        in_tail = False
        self.known = dict(self.numbers)
        self.size = None
        for entry in self.shape.entries:
            if entry.field.tail and not in_tail:
                place = self._padded(place)
                in_tail = True
            self.places[entry.field] = place
            if entry.value is not None and not entry.is_left_out:
                place = place + self._nbytes(entry.value, place)
        if not in_tail:
            place = self._padded(place)
        # Numbers that say a size are known only now.
        self.size = place
        for entry in self.shape.entries:
            self._check(entry)
        if self.layout.word and self.big and not self.state.mirrored:
            raise UnfitError  # such a word may show another kind
        return np.broadcast_to(self.size, self.odd.shape).astype(np.int64)

    def _nbytes(self, field: Field, place: Numbers) -> Numbers:
        """Return the bytes of a field that begins at a place."""
        if isinstance(field, Bits):
            # The first field of a word has its bytes, the others none.
            nbytes_of_word, _ = self.layout.words.get(field, (0, 0))
            return nbytes_of_word
        if isinstance(field, Integer | Float):
            return self._there(field) * field.nbytes
        if isinstance(field, Spare):
            return field.own
        if field in self.lists:
            return self.lists[field].measure(place)
        if field not in self.columns:
            return 0
        nbytes: Numbers = self.columns[field].lengths
        aligned = field.aligned if isinstance(field, Span) else 1
        if aligned > 1:
            nbytes = nbytes + gaps_to(aligned, -(place + nbytes))
        return nbytes * self._inline(field)

    def _there(self, field: Field) -> Numbers:
        """Return 1 where a field is in the record, else 0."""
        if field.when is None or field.public:
            return 1
        is_there: I64 = np.broadcast_to(self._value(field.when, 0) != 0, self.odd.shape)
        return is_there

    def _inline(self, field: Field) -> Numbers:
        """Return 1 where a text is in the record, 0 where a number stands for it."""
        if not isinstance(field, Text) or field not in self.indexes:
            return 1
        is_inline: I64 = self.indexes[field] & field.inline != 0
        return is_inline

    def _padded(self, fields_end: Numbers) -> Numbers:
        """Return the place behind the padding of the fields that end there, before the tail."""
        layout = self.layout
        padded_end = fields_end
        whole_size: Numbers = layout.fixed
        if layout.family.power:
            assert layout.family.size is not None  # noqa: S101 (it says the power)
            powers = np.minimum(self._number(layout.family.size), LARGEST_POWER)
            whole_size = layout.family.unit << powers
        if layout.fixed or layout.family.power:
            padded_end = np.maximum(fields_end, whole_size - layout.tail)
            self.odd |= fields_end > whole_size - layout.tail
        elif layout.align > 1:
            padded_end = fields_end + gaps_to(layout.align, -(fields_end + layout.tail))
        if layout.rest is not None:
            # A field that takes all there is would be read with the padding.
            self.odd |= fields_end != padded_end
        return padded_end

    def _check(self, entry: ShapeEntry) -> None:
        """Mark records that would not be read as what they are."""
        field = entry.field
        value = entry.value
        place = self.places[field]
        if isinstance(field, Number) and not field.checksums and not entry.is_left_out:
            self._number(field)
        if field.when is not None and field.public:
            holds = self._value(field.when, place) != 0
            self.odd |= holds != entry.has_key
        # A count or a length that is a number of the record follows from the list or text itself
        # (``_implied``); one that is computed from other fields must agree with it.
        if isinstance(value, Listed):
            items = self.lists.get(value) or self.columns.get(value)
            count = value.count
            if items is not None and count is not None and not isinstance(count, Number):
                self.odd |= self._value(count, place) != items.counts
        elif isinstance(value, Span) and value in self.columns and value not in self.indexes:
            nbytes = value.nbytes
            if nbytes is not None and not isinstance(nbytes, Number):
                self.odd |= self._value(nbytes, place) != self.columns[value].lengths

    # --- Numbers --------------------------------------------------------------------------------

    def _number(self, field: Number) -> Numbers:
        """Return the numbers of a field; mark those that do not fit it."""
        if field in self.known:
            return self.known[field]
        # Where the number comes from: what is shown, nothing, the size, an expression, or the
        # fields that it describes.
        if field in self.indexes:
            number: Numbers = self.indexes[field]
        elif self.layout.is_reserved(field):
            number = 0
        elif field.role == "size" and not field.size_power:
            number = self._units_of_size()
        elif field.equals is not None:
            word = self.layout.word_of.get(field, field)
            number = self._value(field.equals, self.places[word])
        else:
            number = self._implied(field)
        least, most = field.range
        if field.nbits < 64 and not are_within(number, least, most):
            self.odd |= (number < least) | (number > most)
        if field.when is not None and not field.public:
            number = number * self._there(field)
        self.known[field] = number
        return number

    def _units_of_size(self) -> Numbers:
        """Return the number that says the size of the records."""
        family = self.layout.family
        size = self._value(SIZE, 0)
        is_power_of_two = family.unit & family.unit - 1 == 0
        if is_power_of_two:  # a division takes seven times as long
            units = size - family.plus >> family.unit.bit_length() - 1
        else:
            units = (size - family.plus) // family.unit
        self.odd |= units * family.unit + family.plus != size
        if self.layout.most:
            self.odd |= size > self.layout.most
        return units

    def _implied(self, number: Number) -> Numbers:
        """Return the number that other fields imply; they must agree."""
        if number not in self.layout.implied:
            raise UnfitError
        implied: list[Numbers] = []
        for how, field, factor, summand in self.layout.implied[number]:
            # A field of a choice only implies it where the records have that one.
            holder = self.layout.choice_of.get(field, field)
            if self.shape.values[holder] is field:
                by_field = self._implied_by(how, field, factor, summand)
                if by_field is not None:
                    implied.append(by_field)
        if not implied:
            return 0
        for further in implied[1:]:
            self.odd |= implied[0] != further
        return implied[0]

    def _implied_by(self, how: str, field: Field, factor: int, summand: int) -> Numbers | None:
        """Return a number that a field implies, such as its length or its count of items.

        The field has ``factor * number + summand`` of them; None if it implies nothing.
        """
        has_bytes = field in self.columns or field in self.lists
        if how == "present":  # ``factor`` is the number of an absent field, ``summand`` of others
            is_present = has_bytes or field in self.indexes or field in self.numbers
            return summand if is_present else factor
        if how == "number" and field in self.numbers:
            return self.numbers[field]
        if how == "index" and field in self.indexes:
            return self.indexes[field]
        if not has_bytes:
            return None
        counts = (self.columns.get(field) or self.lists[field]).counts
        if summand:
            counts = counts - summand
        if factor == 1:
            return counts
        self.odd |= counts % factor != 0
        return counts // factor

    def _value(self, expression: Expression, place: Numbers) -> Numbers:
        """Return the numbers of an expression of a field that begins at a place."""
        if isinstance(expression, Constant):
            return wrapped(expression.number)
        if expression is AT:
            return place
        # Before ``measure`` knows the size, nothing that depends on it can be computed.
        if expression is SIZE and self.size is not None:
            return self.size
        if isinstance(expression, Number):
            return self._number(expression)
        if isinstance(expression, Checksum) and expression in self.known:
            return self.known[expression]
        if isinstance(expression, Register) and expression is not SIZE:
            return wrapped(self.state.registers.get(expression, expression.initial))
        if type(expression) is not Calculation:
            raise UnfitError
        left = self._value(expression.left, place)
        right = self._value(expression.right, place)
        number: Numbers = as_numbers(calculated_columns(expression.symbol, left, right))
        return number

    # --- Bytes ----------------------------------------------------------------------------------

    def put(self, out: U8, places: I64) -> None:
        """Write the records to their places."""
        for entry in self.shape.entries:
            field = entry.value
            if field is None or entry.is_left_out:
                continue
            if isinstance(field, Bits) and field not in self.layout.words and not field.checksums:
                continue  # it is in the word that another one begins
            field_places = places + self.places[entry.field]
            if isinstance(field, Number):
                self._sum_up(field, out, places)
            if field in self.layout.words:
                nbytes, _ = self.layout.words[field]
                store(out, field_places, self._word(field), nbytes, big=self.big)
            elif isinstance(field, Integer | Float):
                self._put_number(field, out, field_places)
            elif field in self.lists:
                self.lists[field].put(out, field_places)
            elif field in self.columns:
                self._put_column(field, out, field_places)

    def _put_number(self, field: Integer | Float, out: U8, places: I64) -> None:
        """Write the numbers of a field, where it is there."""
        number = self._number(field) if isinstance(field, Number) else self.known[field]
        is_there = self._there(field)
        if isinstance(is_there, int):
            store(out, places, number, field.nbytes, big=self.big)
        else:
            numbers = np.broadcast_to(number, places.shape)
            store(out, places[is_there], numbers[is_there], field.nbytes, big=self.big)

    def _put_column(self, field: Field, out: U8, places: I64) -> None:
        """Write the bytes of a field, but not those of texts that a number stands for."""
        column = self.columns[field]
        is_inline = self._inline(field)
        if not isinstance(is_inline, int):
            column = column.only(is_inline != 0)
        scatter(out, places, column)

    def _word(self, first: Field) -> Numbers:
        """Return the words that a field of bits begins."""
        nbytes, _ = self.layout.words[first]
        mirrored = self.state.mirrored
        word: Numbers = 0
        for field in self.layout.fields:
            if isinstance(field, Bits) and self.layout.word_of[field] is first:
                number = self._number(field)
                mask = wrapped((1 << field.nbits) - 1)
                if field.nbits < 64 and not are_within(number, 0, mask):  # signed, or odd
                    number = number & mask
                number = calculated_columns("<<", number, field.shift(nbytes, mirrored))
                if isinstance(word, int):
                    word = number | word
                else:
                    word |= number
        return word

    def _sum_up(self, field: Number, out: U8, places: I64) -> None:
        """Add the checksums in a number, of the bytes before it."""
        if not field.checksums:
            return
        ends = places + self.places[self.layout.word_of.get(field, field)]
        data = out.data
        for checksum in field.checksums:
            sums = (
                checksum.of(data[start:end])
                for start, end in zip(places.tolist(), ends.tolist(), strict=True)
            )
            self.known[checksum] = np.fromiter(map(wrapped, sums), np.int64, places.size)
        # The bytes of what is odd are made already: it cannot be left to the encoder any more.
        odd_before = self.odd.copy()
        self._number(field)
        if (self.odd & ~odd_before).any():
            raise UnfitError


def are_within(numbers: Numbers, least: int, most: int) -> bool:
    """Return whether numbers are of a range, both ends included."""
    if isinstance(numbers, int):
        return least <= numbers <= most
    if not numbers.size:
        return True
    return least <= int(numbers.min()) and int(numbers.max()) <= most


def laid_out(sizes: I64, counts: I64) -> tuple[I64, I64]:
    """Return the bytes of lists, and the bytes before each item in its list.

    ``sizes`` are those of all items, ``counts`` how many each list has: items of 4, 4 and 8 bytes,
    two lists of 2 and 1, are lists of 8 bytes each, with 0, 4 and 0 bytes before the items.
    """
    bounds = np.append(0, np.cumsum(sizes))
    ends = np.cumsum(counts)
    begins = bounds[ends - counts]
    return bounds[ends] - begins, bounds[:-1] - np.repeat(begins, counts)


class ColumnItems:
    """The items of a list of parts, of all records of some columns.

    ``groups`` has the columns of items of one shape, and which of all items these are.
    """

    def __init__(
        self,
        owners: ColumnRecords,
        counts: I64,
        unit: int,
        groups: Sequence[tuple[I64, ColumnRecords]],
    ) -> None:
        self.counts = counts
        """Items of each record."""
        self.groups = groups
        self._unit = unit
        self._owners = owners
        self._offsets = np.zeros(int(counts.sum()), np.int64)
        """Bytes of the list before each item."""

    def measure(self, place: Numbers) -> I64:
        """Return the bytes of each list, which begins at a place of its record."""
        sizes = np.zeros(self._offsets.size, np.int64)
        for rows, group in self.groups:
            sizes[rows] = group.measure()
            if group.odd.any():
                owner_of_item = np.repeat(np.arange(self.counts.size), self.counts)
                self._owners.odd[owner_of_item[rows[group.odd]]] = True
        if self._unit > 1:
            sizes += gaps_to(self._unit, -sizes)
            self._owners.odd |= place % self._unit != 0
        nbytes, self._offsets = laid_out(sizes, self.counts)
        return nbytes

    def put(self, out: U8, places: I64) -> None:
        """Write the items of lists that begin at these places."""
        item_places = np.repeat(places, self.counts) + self._offsets
        for rows, group in self.groups:
            group.put(out, item_places[rows])
