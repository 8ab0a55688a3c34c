"""Slots: the elements of arrays as columns, those of one array after those of another."""

from __future__ import annotations

from collections.abc import Sequence

from fx_inspect import format as wire
from fx_inspect.read import tables
from fx_inspect.read.scan import Scan
from fxframework.kernels.annotations import Array, Bytes, Fallible, View, i32, i64
from fxframework.kernels.buffers import room
from fxframework.kernels.kernel import Kernel

__all__ = ["PLACES", "SlotColumns"]

PLACES = 0
"""Instead of a type: where slots are."""


class SlotColumns(Kernel):
    """Columns of the slots ``bounds`` (first and stop) of arrays.

    Row ``i`` of ``rows`` begins at a unit (int32), is of a type (uint8), and has the slots from one
    start (int64) to the next. For a ``wanted`` type of numbers, ``values`` (int64) has the 64 bits
    of its slots, for STRING_ARRAY ``numbers`` (int32) their codes, of the strings in ``code``
    (int32); slots of other arrays have 0, or -1. For PLACES, ``values`` is the row of the array,
    counted from ``row``, ``numbers`` the place in it, and ``offsets`` (int64) the byte at which its
    block begins.
    """

    scan: Scan
    words: View[i64]
    units: View[i32]
    types: Bytes
    starts: View[i64]
    code: View[i32]
    row: i64
    wanted: i64
    first: i64
    stop: i64
    values: Array[i64]
    numbers: Array[i32]
    offsets: Array[i64]

    def __init__(
        self,
        scan: Scan,
        words: memoryview,
        rows: Sequence[memoryview],
        code: memoryview,
        row: int,
        wanted: int,
        bounds: tuple[int, int],
    ) -> None:
        units, types, starts = rows
        self.scan = scan
        self.words = memoryview(words)
        self.units = memoryview(units)
        self.types = memoryview(types)
        self.starts = memoryview(starts)
        self.code = memoryview(code)
        self.row = row
        self.wanted = wanted
        self.first = bounds[0]
        self.stop = bounds[1]
        count = bounds[1] - bounds[0]
        self.values = room(0 if wanted == tables.STRING_ARRAY else count, "i8")
        self.numbers = room(count if wanted in (PLACES, tables.STRING_ARRAY) else 0, "i4")
        self.offsets = room(count if wanted == PLACES else 0, "i8")

    def step(self) -> Fallible[i64]:
        """Fill the columns, array by array."""
        row = 0
        while row < len(self.units):
            start = self.starts[row]
            at = max(start, self.first)
            size = min(self.starts[row + 1], self.stop) - at
            if self.wanted == PLACES:
                self.places(row, at - start, at - self.first, size)
            elif self.wanted == tables.STRING_ARRAY:
                self.strings(row, at - start, at - self.first, size)
            else:
                self.bits(row, at - start, at - self.first, size)
            row += 1
        return 0

    def bits(self, row: i64, slot: i64, to: i64, size: i64) -> i64:
        """Fill in the words of an array."""
        index = 0
        if self.types[row] == self.wanted:
            begin = 2 * self.units[row] + 2 + slot
            while index < size:
                self.values[to + index] = self.words[begin + index]
                index += 1
        else:
            while index < size:
                self.values[to + index] = 0
                index += 1
        return 0

    def strings(self, row: i64, slot: i64, to: i64, size: i64) -> i64:
        """Fill in the codes of an array."""
        index = 0
        while index < size:
            found = -1
            if self.types[row] == tables.STRING_ARRAY:
                found = self.string(2 * self.units[row] + 2, slot + index)
            self.numbers[to + index] = found
            index += 1
        return 0

    def string(self, begin: i64, slot: i64) -> i64:
        """Return the code of a slot; 0, the empty string, for one that refers to no string."""
        unit = wire.SLOT_STRING.get(self.words[begin + slot // 2] >> 32 * (slot % 2))
        if unit > 0 and unit < self.scan.units and self.scan.starts[unit] == wire.STRING + 1:
            return self.code[self.scan.numbers[unit]]
        return 0

    def places(self, row: i64, slot: i64, to: i64, size: i64) -> i64:
        """Fill in where the slots of an array are."""
        number = self.row + row
        index = 0
        while index < size:
            self.values[to + index] = number
            index += 1
        number = wire.UNIT * self.units[row]
        index = 0
        while index < size:
            self.offsets[to + index] = number
            index += 1
        index = 0
        while index < size:
            self.numbers[to + index] = slot + index
            index += 1
        return 0
