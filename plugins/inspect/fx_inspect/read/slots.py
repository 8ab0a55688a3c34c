"""Slots: the elements of arrays as columns, those of one array after those of another.

Also where those of each property begin among those of all, as its text does.
"""

from __future__ import annotations

from fx_inspect import format as wire
from fx_inspect.format import SLOT_STRING
from fx_inspect.read import tables
from fx_inspect.read.scan import Scan
from fxframework.kernels.annotations import Array, Bytes, Fallible, View, i32, i64, u8, u32
from fxframework.kernels.buffers import room
from fxframework.kernels.kernel import Kernel

__all__ = ["PropertyPlaces", "SlotPlaces", "SlotRanges", "SlotStrings", "SlotValues"]


class PropertyPlaces(Kernel):
    """Of properties in order: their types, and where the slots and the text of each begin.

    ``rows`` (int32) are the properties' rows of ``type`` (uint8) and ``length`` (uint32), which is
    of slots or of bytes. ``types`` is uint8, ``first_slot`` and ``first_text`` (int64) have the
    sums before each property and of all.
    """

    rows: View[i32]
    type: Bytes
    length: View[u32]
    count: i64
    types: Array[u8]
    first_slot: Array[i64]
    first_text: Array[i64]

    def __init__(self, rows: memoryview, type: memoryview, length: memoryview) -> None:
        self.rows = memoryview(rows)
        self.type = memoryview(type)
        self.length = memoryview(length)
        self.count = len(rows)
        self.types = room(self.count, "u1")
        self.first_slot = room(self.count + 1, "i8")
        self.first_text = room(self.count + 1, "i8")

    def step(self) -> Fallible[i64]:
        """Fill the columns."""
        slots = 0
        nbytes = 0
        row = 0
        while row < self.count:
            at = self.rows[row]
            type = self.type[at]
            self.types[row] = type
            self.first_slot[row] = slots
            self.first_text[row] = nbytes
            if type >= tables.INT_ARRAY:
                slots += self.length[at]
            else:
                nbytes += self.length[at]
            row += 1
        self.first_slot[row] = slots
        self.first_text[row] = nbytes
        return 0


class SlotRanges(Kernel):
    """The first slot and the number of slots of properties, two numbers (int64) each.

    ``starts`` (int64) has where the slots of each of these properties begin and those of the last
    end, ``types`` (uint8) their types; one without slots has 0 and 0.
    """

    starts: View[i64]
    types: Bytes
    count: i64
    values: Array[i64]

    def __init__(self, starts: memoryview, types: memoryview) -> None:
        self.starts = memoryview(starts)
        self.types = memoryview(types)
        self.count = len(types)
        self.values = room(2 * self.count, "i8")

    def step(self) -> Fallible[i64]:
        """Fill the column."""
        row = 0
        while row < self.count:
            start = self.starts[row]
            self.values[2 * row] = start if self.types[row] >= tables.INT_ARRAY else 0
            self.values[2 * row + 1] = self.starts[row + 1] - start
            row += 1
        return 0


class SlotValues(Kernel):
    """The 64 bits (int64) of slots of arrays of one type; zeros for slots of others.

    Row ``i`` begins at ``units[i]`` (int32), is of ``types[i]`` (uint8), and has the slots from
    ``starts[i]`` to ``starts[i + 1]`` (int64); ``values`` gets those from ``first`` to ``stop``.
    """

    words: View[i64]
    units: View[i32]
    types: Bytes
    starts: View[i64]
    wanted: i64
    rows: i64
    first: i64
    stop: i64
    values: Array[i64]

    def __init__(
        self,
        words: memoryview,
        units: memoryview,
        types: memoryview,
        starts: memoryview,
        wanted: int,
        bounds: tuple[int, int],
    ) -> None:
        self.words = memoryview(words)
        self.units = memoryview(units)
        self.types = memoryview(types)
        self.starts = memoryview(starts)
        self.wanted = wanted
        self.rows = len(units)
        self.first = bounds[0]
        self.stop = bounds[1]
        self.values = room(bounds[1] - bounds[0], "i8")

    def step(self) -> Fallible[i64]:
        """Fill the column."""
        row = 0
        while row < self.rows:
            self.array(row)
            row += 1
        return 0

    def array(self, row: i64) -> i64:
        """Fill the column with the slots of a row."""
        start = self.starts[row]
        at = max(start, self.first)
        end = min(self.starts[row + 1], self.stop)
        size = end - at
        to = at - self.first
        index = 0
        if self.types[row] == self.wanted:
            begin = 2 * self.units[row] + 2 - start + at
            while index < size:
                self.values[to + index] = self.words[begin + index]
                index += 1
        else:
            while index < size:
                self.values[to + index] = 0
                index += 1
        return 0


class SlotStrings(Kernel):
    """The codes (int32) of slots of arrays of strings; -1 for slots of others.

    Rows are as in ``SlotValues``; ``code`` (int32) has the codes of strings.
    """

    scan: Scan
    words: View[i64]
    units: View[i32]
    types: Bytes
    starts: View[i64]
    code: View[i32]
    rows: i64
    first: i64
    stop: i64
    values: Array[i32]

    def __init__(
        self,
        scan: Scan,
        words: memoryview,
        units: memoryview,
        types: memoryview,
        starts: memoryview,
        code: memoryview,
        bounds: tuple[int, int],
    ) -> None:
        self.scan = scan
        self.words = memoryview(words)
        self.units = memoryview(units)
        self.types = memoryview(types)
        self.starts = memoryview(starts)
        self.code = memoryview(code)
        self.rows = len(units)
        self.first = bounds[0]
        self.stop = bounds[1]
        self.values = room(bounds[1] - bounds[0], "i4")

    def step(self) -> Fallible[i64]:
        """Fill the column."""
        row = 0
        while row < self.rows:
            at = max(self.starts[row], self.first)
            end = min(self.starts[row + 1], self.stop)
            of_strings = 1 if self.types[row] == tables.STRING_ARRAY else 0
            while at < end:
                found = -1
                if of_strings:
                    found = self.string(2 * self.units[row] + 2, at - self.starts[row])
                self.values[at - self.first] = found
                at += 1
            row += 1
        return 0

    def string(self, begin: i64, slot: i64) -> i64:
        """Return the code of a slot; 0, the empty string, for one that refers to no string."""
        unit = SLOT_STRING.get(self.words[begin + slot // 2] >> 32 * (slot % 2))
        if unit > 0 and unit < self.scan.units and self.scan.starts[unit] == wire.STRING + 1:
            return self.code[self.scan.numbers[unit]]
        return 0


class SlotPlaces(Kernel):
    """Where slots are: their array, their place in it, and the byte offset of its block.

    ``parent`` (int64) is the row of the array, ``slot`` (int32) counts from 0, ``offset`` is int64.
    ``starts`` (int64) has the first slot of each row from ``row`` on, ``units`` (int32) the units
    of the rows' blocks.
    """

    units: View[i32]
    starts: View[i64]
    rows: i64
    row: i64
    first: i64
    stop: i64
    parent: Array[i64]
    slot: Array[i32]
    offset: Array[i64]

    def __init__(
        self, units: memoryview, starts: memoryview, row: int, bounds: tuple[int, int]
    ) -> None:
        self.units = memoryview(units)
        self.starts = memoryview(starts)
        self.rows = len(starts) - 1
        self.row = row
        self.first = bounds[0]
        self.stop = bounds[1]
        self.parent = room(bounds[1] - bounds[0], "i8")
        self.slot = room(bounds[1] - bounds[0], "i4")
        self.offset = room(bounds[1] - bounds[0], "i8")

    def step(self) -> Fallible[i64]:
        """Fill the columns."""
        row = 0
        while row < self.rows:
            self.array(row)
            row += 1
        return 0

    def array(self, row: i64) -> i64:
        """Fill the columns with the slots of a row."""
        at = max(self.starts[row], self.first)
        slot = at - self.starts[row]
        size = min(self.starts[row + 1], self.stop) - at
        to = at - self.first
        number = self.row + row
        index = 0
        while index < size:
            self.parent[to + index] = number
            index += 1
        number = 16 * self.units[row]
        index = 0
        while index < size:
            self.offset[to + index] = number
            index += 1
        index = 0
        while index < size:
            self.slot[to + index] = slot + index
            index += 1
        return 0
