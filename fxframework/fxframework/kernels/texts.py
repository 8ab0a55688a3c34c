"""The texts that the records of a declared format refer to by number."""

from __future__ import annotations

from typing import final

from fxframework.kernels.annotations import (
    Array,
    i64,
    public,
    status,
    with_gil,
)
from fxframework.kernels.buffers import full, grown, room
from fxframework.kernels.maps import PairMap
from fxframework.kernels.utf8 import Utf8

__all__ = ["Texts"]

GENERATION = 1 << 20
RECENT = 256
"""Texts that were asked for lately and are found without a hash."""


@final
class Texts:
    """Tables of texts, each a range of the file, by table and index.

    Each text has a number: its place is ``starts[number]`` and ``lengths[number]`` (-1 minus the
    length, if it is not UTF-8). ``tables`` (int64) has the key of each table, which changes when
    its texts are forgotten.
    """

    utf8: Utf8
    tables: Array[i64]
    numbers: PairMap
    starts: Array[i64]
    lengths: Array[i64]
    recent: Array[i64]
    used: i64

    def __init__(self, utf8: Utf8, tables: memoryview) -> None:
        self.utf8 = utf8
        self.tables = memoryview(tables)
        self.numbers = PairMap()
        self.starts = room(64, "i8")
        self.lengths = room(64, "i8")
        self.recent = full(3 * RECENT, "i8", -1)
        self.used = 0

    def name(self, table: int, value: int, number: int) -> None:
        """Enter the number of a value's name, in a table of names."""
        self.numbers.put(table, value, number)

    @public
    def find(self, table: i64, index: i64) -> i64:
        """Return the number of a text; -1 if nothing declared it."""
        key = self.tables[table]
        slot = 3 * ((index ^ (table << 3)) & (RECENT - 1))
        if self.recent[slot] == key and self.recent[slot + 1] == index:
            return self.recent[slot + 2]
        number = self.numbers.get(key, index)
        if number >= 0:
            self.recent[slot] = key
            self.recent[slot + 1] = index
            self.recent[slot + 2] = number
        return number

    @public
    def define(self, table: i64, index: i64, start: i64, length: i64) -> status:
        """Declare the bytes from ``start`` as text ``index`` of a table."""
        key = self.tables[table]
        number = self.numbers.get(key, index)
        if number < 0:
            number = self.used
            if number >= len(self.starts):
                self.grow()
            self.used += 1
            self.numbers.put(key, index, number)
        self.starts[number] = start
        self.lengths[number] = length
        if not self.utf8.valid(start, length):
            self.lengths[number] = -1 - length
        return 0

    @public
    def forget(self, table: i64) -> i64:
        """Forget the texts of a table."""
        self.tables[table] += GENERATION
        return 0

    @with_gil
    def grow(self) -> status:
        """Make room for more texts."""
        size = 2 * len(self.starts)
        self.starts = grown(self.starts, size, self.used)
        self.lengths = grown(self.lengths, size, self.used)
        return 0
