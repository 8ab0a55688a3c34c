"""The scan: the bytes of a VMO to blocks, and to the stretches between them.

Objects, record JSON and tables take them from here; ``Scan.record`` checks their sizes. Words are
int64, with their bits as they are in the file.
"""

from __future__ import annotations

from fx_inspect import format as wire
from fx_inspect import rules
from fxframework.kernels.annotations import (
    Array,
    Fallible,
    View,
    flag,
    i32,
    i64,
    status,
    u8,
    with_gil,
)
from fxframework.kernels.buffers import full, room
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.notes import Notes

__all__ = ["Scan"]

TYPE_AT = wire.TYPE.low
MAGIC = int.from_bytes(wire.MAGIC, "little")
FROZEN_GENERATION = -2
ONE = 1
NOT_LOOKED = 0
FOLLOWING = 1
FITTING = 2
RUN = 32
"""Blocks that follow one another where reading goes on after damage; fewer at the end."""


class Scan(Kernel):
    """Finds the records of a VMO, and reports what each of them is by itself.

    ``unit`` (int32), ``type`` and ``order`` (uint8) have the records in the order of the file, as
    many as ``count``. ``starts`` (uint8) has 1 + the type of the block that begins at each unit, or
    0; ``numbers`` (int32) which node, extent, string or buffer it is. Nodes count from 1: the root
    is 0. ``tally`` (int64) counts records by 16 * type + order. Without ``places`` these two are
    empty, and free lists are not followed.
    """

    words: View[i64]
    reserved: View[i64]
    notes: Notes
    nbytes: i64
    units: i64
    places: flag
    at: i64
    most: i64
    index_at: i64
    index_mask: i64
    name_at: i64
    type_at: i64
    type_mask: i64
    types: i64
    max_version: i64
    max_record: i64
    unit: Array[i32]
    type: Array[u8]
    order: Array[u8]
    starts: Array[u8]
    numbers: Array[i32]
    follow: Array[u8]
    tally: Array[i64]
    count: i64
    nodes: i64
    values: i64
    extents: i64
    strings: i64
    buffers: i64
    links: i64
    damaged_bytes: i64
    unknown_bytes: i64
    padding_bytes: i64
    resumed: i64

    def __init__(
        self,
        words: memoryview,
        nbytes: int,
        layout: memoryview,
        max_record: int,
        notes: Notes,
        places: bool,
    ) -> None:
        self.words = memoryview(words)
        self.places = places
        self.at = 0
        self.most = 1 << 62
        self.notes = notes
        self.nbytes = nbytes
        self.units = len(words) // 2
        self.type_at = layout[0]
        self.type_mask = layout[1]
        self.index_at = layout[2]
        self.index_mask = layout[3]
        self.name_at = layout[4]
        self.types = layout[5]
        self.max_version = layout[6]
        self.reserved = memoryview(layout)[7:]
        self.max_record = max_record
        self.unit = room(self.units + 1, "i4")
        self.type = room(self.units + 1, "u1")
        self.order = room(self.units + 1, "u1")
        self.starts = full(self.units if places else 0, "u1")
        self.numbers = room(self.units if places else 0, "i4")
        self.follow = room(0, "u1")
        self.tally = full(256 * 16, "i8")
        self.count = 0
        self.nodes = 0
        self.values = 0
        self.extents = 0
        self.strings = 0
        self.buffers = 0
        self.links = 0
        self.damaged_bytes = 0
        self.unknown_bytes = 0
        self.padding_bytes = 0
        self.resumed = NOT_LOOKED

    def step(self) -> Fallible[i64]:
        """Find all records, or as many as ``most``."""
        while self.count < self.most and self.following():
            pass
        if self.places:
            self.free_lists()
        return 0

    def following(self) -> Fallible[i64]:
        """Find the next record, which ends at unit ``at``. Return 0 at the end of the file."""
        if wire.UNIT * self.at >= self.nbytes:
            return 0
        self.at = self.record(self.at)
        if self.count == 1 and self.type[0] == wire.HEADER:
            self.header()
        return 1

    def record(self, unit: i64) -> Fallible[i64]:
        """Find the record at a unit. Return the unit after it."""
        if unit == self.units:
            self.notes.add(
                rules.TRAILING_BYTES, wire.UNIT * unit, self.count, self.nbytes - wire.UNIT * unit
            )
            return self.damaged(unit, unit + 1)
        word = self.words[2 * unit]
        if word == 0 and self.words[2 * unit + 1] == 0:
            end = unit + 1
            while end < self.units and self.words[2 * end] == 0 and self.words[2 * end + 1] == 0:
                end += 1
            if end > unit + 1:
                self.padding_bytes += wire.UNIT * (end - unit)
                return self.enter(unit, wire.PADDING, 0, end)
        order = wire.ORDER.get(word)
        size = ONE << order
        type = (word >> self.type_at) & self.type_mask
        if size > self.units - unit:
            if order <= wire.MAX_ORDER and type < self.types:
                self.notes.add(rules.BLOCK_PAST_THE_END, wire.UNIT * unit, self.count, order)
                # The bytes after the last unit belong to it.
                return self.damaged(unit, self.units + 1)
            self.notes.add(rules.NO_BLOCK, wire.UNIT * unit, self.count, order)
            return self.damaged(unit, self.resume(unit))
        if wire.UNIT * size > self.max_record:
            self.notes.add(rules.BLOCK_OVER_LIMIT, wire.UNIT * unit, self.count, wire.UNIT * size)
            return self.damaged(unit, unit + size)
        self.block(unit, type, order)
        return unit + size

    def block(self, unit: i64, type: i64, order: i64) -> status:
        """Add a block, and report findings about it."""
        at = wire.UNIT * unit
        word = self.words[2 * unit]
        payload = self.words[2 * unit + 1]
        if order > wire.MAX_ORDER:
            self.notes.add(rules.LARGE_BLOCK, at, self.count, wire.UNIT << order)
        if type >= self.types:
            self.notes.add(rules.UNKNOWN_TYPE, at, self.count, type)
            self.unknown_bytes += wire.UNIT << order
            self.enter(unit, wire.UNKNOWN_BLOCK, order, unit)
            return 0
        if word & self.reserved[2 * type] != 0:
            self.notes.add(rules.RESERVED_BITS_SET, at, self.count, word)
        elif payload & self.reserved[2 * type + 1] != 0:
            self.notes.add(rules.RESERVED_BITS_SET, at, self.count, payload)
        number = 0
        if type == wire.NODE:
            if unit > 0:  # index 0 is the root, whatever its block is
                self.nodes += 1
                number = self.nodes
        elif type == wire.EXTENT:
            number = self.extents
            self.extents += 1
        elif type == wire.NAME or type == wire.STRING:
            number = self.strings
            self.strings += 1
        elif type == wire.LINK:
            self.links += 1
        elif type == wire.BUFFER:
            self.values += 1
            number = self.buffers
            self.buffers += 1
        elif type == wire.BOOL:
            self.values += 1
            if payload != 0 and payload != 1:
                self.notes.add(rules.INVALID_BOOL, at, self.count, payload)
        elif (type >= wire.INT and type <= wire.DOUBLE) or type == wire.ARRAY:
            self.values += 1
        elif type == wire.RESERVED:
            self.notes.add(rules.RESERVED_BLOCK, at, self.count, type)
        elif type == wire.HEADER and unit > 0:
            self.notes.add(rules.SECOND_HEADER, at, self.count, type)
        if self.places:
            self.starts[unit] = type + 1
            self.numbers[unit] = number
        self.enter(unit, type, order, unit)
        return 0

    def damaged(self, unit: i64, end: i64) -> Fallible[i64]:
        """Add a stretch without blocks. Return its end."""
        self.damaged_bytes += min(wire.UNIT * end, self.nbytes) - wire.UNIT * unit
        return self.enter(unit, wire.DAMAGED, 0, end)

    def enter(self, unit: i64, type: i64, order: i64, end: i64) -> Fallible[i64]:
        """Add a record. Return ``end``."""
        if unit == 0 and type != wire.HEADER:
            self.notes.add(rules.NO_HEADER, 0, self.count, type)
        self.unit[self.count] = unit
        self.type[self.count] = type
        self.order[self.count] = order
        self.tally[16 * type + order] += 1
        self.count += 1
        return end

    def free_lists(self) -> status:
        """Report free blocks whose list continues with a block that is not free, or larger."""
        record = 0
        while record < self.count:
            unit = self.unit[record]
            if self.type[record] == wire.FREE and unit > 0:
                after = (self.words[2 * unit] >> self.index_at) & self.index_mask
                if after != 0 and not self.free(after, self.order[record]):
                    self.notes.add(rules.FREE_LIST, wire.UNIT * unit, record, after)
            record += 1
        return 0

    def free(self, unit: i64, order: i64) -> flag:
        """Return whether a free block of an order begins at a unit; padding is free units."""
        if unit < self.units and self.starts[unit] == wire.FREE + 1:
            return wire.ORDER.get(self.words[2 * unit]) == order
        low = 0
        high = self.count
        while high - low > 1:
            middle = (low + high) // 2
            if self.unit[middle] <= unit:
                low = middle
            else:
                high = middle
        return unit < self.units and order == 0 and self.type[low] == wire.PADDING

    def fits(self, unit: i64) -> i64:
        """Return the units of the block at a unit; 0 if none can begin there."""
        word = self.words[2 * unit]
        order = wire.ORDER.get(word)
        size = ONE << order
        if order > wire.MAX_ORDER or size > self.units - unit:
            return 0
        if (word >> self.type_at) & self.type_mask >= self.types:
            return 0
        # In the later layout the bits between the order and the type are zero.
        if self.type_at == TYPE_AT and wire.RESERVED_BITS.get(word) != 0:
            return 0
        return size

    def resume(self, unit: i64) -> Fallible[i64]:
        """Return the next unit from which blocks follow, or where one fits, or the end.

        They follow if they lead to the end of the file, or if ``RUN`` of them are not zero.
        """
        if self.resumed == NOT_LOOKED:
            self.find_runs()
            self.resumed = FOLLOWING
        at = unit + 1
        if self.resumed == FOLLOWING:
            while at < self.units:
                if self.follow[at] >= RUN:
                    return at
                at += 1
            self.resumed = FITTING
            at = unit + 1
        while at < self.units:
            if self.fits(at) > 0:
                return at
            at += 1
        return self.units

    def find_runs(self) -> status:
        """Find how many blocks follow one another from each unit: up to ``RUN``, or to the end."""
        self.make_runs()
        self.follow[self.units] = RUN
        at = self.units - 1
        while at >= 0:
            size = self.fits(at)
            run = 0
            if size > 0:
                run = self.follow[at + size]
                if run < RUN and self.words[2 * at] != 0:
                    run += 1
            self.follow[at] = run
            at -= 1
        return 0

    @with_gil
    def make_runs(self) -> status:
        """Allocate a byte per unit."""
        self.follow = room(self.units + 1, "u1")
        return 0

    def header(self) -> status:
        """Report findings about the header."""
        word = self.words[0]
        generation = self.words[1]
        magic = wire.HEADER_MAGIC.get(word)
        if magic != MAGIC:
            self.notes.add(rules.OTHER_MAGIC, 0, 0, magic)
        version = wire.BEFORE_MAGIC.get(word) >> self.index_at
        if version > self.max_version:
            self.notes.add(rules.UNKNOWN_VERSION, 0, 0, version)
        elif version == 0 and self.max_version > 0:
            self.notes.add(rules.VERSION_ZERO_IN_NEW_LAYOUT, 0, 0, 0)
        if generation % 2 != 0:
            self.notes.add(rules.LOCKED, 0, 0, generation)
        elif generation == FROZEN_GENERATION:
            self.notes.add(rules.FROZEN_VMO, 0, 0, 0)
        order = wire.ORDER.get(word)
        if order > 0:
            size = wire.VMO_SIZE.get(self.words[2])
            if size < wire.UNIT << order or size > wire.MAX_VMO or size % wire.UNIT != 0:
                self.notes.add(rules.NO_SIZE, 0, 0, size)
            elif size > self.nbytes:
                self.notes.add(rules.SHORTER_THAN_ITS_SIZE, 0, 0, size)
            elif size < self.nbytes:
                self.notes.add(rules.LONGER_THAN_ITS_SIZE, 0, 0, size)
        return 0
