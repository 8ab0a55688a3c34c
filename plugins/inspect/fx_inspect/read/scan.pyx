# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""The scan: the bytes of a VMO to blocks, and to the stretches between them.

Objects, record JSON and tables take them from here; ``Scan.record`` checks their sizes. Words are
int64, with their bits as they are in the file.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from fxframework.kernels.fields cimport Field, field, get
from fxframework.kernels.rows cimport Notes

from fx_inspect import format as wire
from fx_inspect import rules
from fxframework.kernels.buffers import full, room

cdef int64_t ARRAY = wire.ARRAY, BOOL = wire.BOOL, BUFFER = wire.BUFFER, DAMAGED = wire.DAMAGED
cdef int64_t DOUBLE = wire.DOUBLE, EXTENT = wire.EXTENT, FREE = wire.FREE, HEADER = wire.HEADER
cdef int64_t INT = wire.INT, LINK = wire.LINK, MAX_ORDER = wire.MAX_ORDER, MAX_VMO = wire.MAX_VMO
cdef int64_t NAME = wire.NAME, NODE = wire.NODE, PADDING = wire.PADDING, RESERVED = wire.RESERVED
cdef int64_t STRING = wire.STRING, UNIT = wire.UNIT, UNKNOWN_BLOCK = wire.UNKNOWN_BLOCK
cdef Field BEFORE_MAGIC = field(wire.BEFORE_MAGIC), HEADER_MAGIC = field(wire.HEADER_MAGIC)
cdef Field ORDER = field(wire.ORDER), RESERVED_BITS = field(wire.RESERVED_BITS)
cdef Field VMO_SIZE = field(wire.VMO_SIZE)
cdef int64_t BLOCK_OVER_LIMIT = rules.BLOCK_OVER_LIMIT
cdef int64_t BLOCK_PAST_THE_END = rules.BLOCK_PAST_THE_END, FREE_LIST = rules.FREE_LIST
cdef int64_t FROZEN_VMO = rules.FROZEN_VMO, INVALID_BOOL = rules.INVALID_BOOL
cdef int64_t LARGE_BLOCK = rules.LARGE_BLOCK, LOCKED = rules.LOCKED
cdef int64_t LONGER_THAN_ITS_SIZE = rules.LONGER_THAN_ITS_SIZE, NO_BLOCK = rules.NO_BLOCK
cdef int64_t NO_HEADER = rules.NO_HEADER, NO_SIZE = rules.NO_SIZE, OTHER_MAGIC = rules.OTHER_MAGIC
cdef int64_t RESERVED_BITS_SET = rules.RESERVED_BITS_SET, RESERVED_BLOCK = rules.RESERVED_BLOCK
cdef int64_t SECOND_HEADER = rules.SECOND_HEADER
cdef int64_t SHORTER_THAN_ITS_SIZE = rules.SHORTER_THAN_ITS_SIZE
cdef int64_t TRAILING_BYTES = rules.TRAILING_BYTES, UNKNOWN_TYPE = rules.UNKNOWN_TYPE
cdef int64_t UNKNOWN_VERSION = rules.UNKNOWN_VERSION
cdef int64_t VERSION_ZERO_IN_NEW_LAYOUT = rules.VERSION_ZERO_IN_NEW_LAYOUT

__all__ = ["Scan"]

cdef int64_t TYPE_AT = wire.TYPE.low
cdef int64_t MAGIC = int.from_bytes(wire.MAGIC, "little")

cdef enum:
    FROZEN_GENERATION = -2
    ONE = 1
    NOT_LOOKED = 0
    FOLLOWING = 1
    FITTING = 2
    # Blocks that follow one another where reading goes on after damage; fewer at the end.
    RUN = 32


@cython.final
cdef class Scan:
    """Finds the records of a VMO, and reports what each of them is by itself.

    ``unit`` (int32), ``type`` and ``order`` (uint8) have the records in the order of the file, as
    many as ``count``. ``starts`` (uint8) has 1 + the type of the block that begins at each unit, or
    0; ``numbers`` (int32) which node, extent, string or buffer it is. Nodes count from 1: the root
    is 0. ``tally`` (int64) counts records by 16 * type + order. Without ``places`` these two are
    empty, and free lists are not followed.
    """

    def __init__(self, words, nbytes, layout, max_record, notes, places):
        self.words = words
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

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Find all records, or as many as ``most``."""
        while self.count < self.most and self.following():
            pass
        if self.places:
            self.free_lists()
        return 0

    cdef int64_t following(self) except? -9 nogil:
        """Find the next record, which ends at unit ``at``. Return 0 at the end of the file."""
        if UNIT * self.at >= self.nbytes:
            return 0
        self.at = self.record(self.at)
        if self.count == 1 and self.type[0] == HEADER:
            self.header()
        return 1

    cdef int64_t record(self, int64_t unit) except? -9 nogil:
        """Find the record at a unit. Return the unit after it."""
        cdef int64_t word, end, order, size, type
        if unit == self.units:
            self.notes.add(
                TRAILING_BYTES, UNIT * unit, self.count, self.nbytes - UNIT * unit
            )
            return self.damaged(unit, unit + 1)
        word = self.words[2 * unit]
        if word == 0 and self.words[2 * unit + 1] == 0:
            end = unit + 1
            while end < self.units and self.words[2 * end] == 0 and self.words[2 * end + 1] == 0:
                end += 1
            if end > unit + 1:
                self.padding_bytes += UNIT * (end - unit)
                return self.enter(unit, PADDING, 0, end)
        order = get(ORDER, word)
        size = <int64_t>ONE << order
        type = (word >> self.type_at) & self.type_mask
        if size > self.units - unit:
            if order <= MAX_ORDER and type < self.types:
                self.notes.add(BLOCK_PAST_THE_END, UNIT * unit, self.count, order)
                # The bytes after the last unit belong to it.
                return self.damaged(unit, self.units + 1)
            self.notes.add(NO_BLOCK, UNIT * unit, self.count, order)
            return self.damaged(unit, self.resume(unit))
        if UNIT * size > self.max_record:
            self.notes.add(BLOCK_OVER_LIMIT, UNIT * unit, self.count, UNIT * size)
            return self.damaged(unit, unit + size)
        self.block(unit, type, order)
        return unit + size

    cdef int block(self, int64_t unit, int64_t type, int64_t order) except -1 nogil:
        """Add a block, and report findings about it."""
        cdef int64_t at, word, payload, number
        at = UNIT * unit
        word = self.words[2 * unit]
        payload = self.words[2 * unit + 1]
        if order > MAX_ORDER:
            self.notes.add(LARGE_BLOCK, at, self.count, UNIT << order)
        if type >= self.types:
            self.notes.add(UNKNOWN_TYPE, at, self.count, type)
            self.unknown_bytes += UNIT << order
            self.enter(unit, UNKNOWN_BLOCK, order, unit)
            return 0
        if word & self.reserved[2 * type] != 0:
            self.notes.add(RESERVED_BITS_SET, at, self.count, word)
        elif payload & self.reserved[2 * type + 1] != 0:
            self.notes.add(RESERVED_BITS_SET, at, self.count, payload)
        number = 0
        if type == NODE:
            if unit > 0:  # index 0 is the root, whatever its block is
                self.nodes += 1
                number = self.nodes
        elif type == EXTENT:
            number = self.extents
            self.extents += 1
        elif type == NAME or type == STRING:
            number = self.strings
            self.strings += 1
        elif type == LINK:
            self.links += 1
        elif type == BUFFER:
            self.values += 1
            number = self.buffers
            self.buffers += 1
        elif type == BOOL:
            self.values += 1
            if payload != 0 and payload != 1:
                self.notes.add(INVALID_BOOL, at, self.count, payload)
        elif (type >= INT and type <= DOUBLE) or type == ARRAY:
            self.values += 1
        elif type == RESERVED:
            self.notes.add(RESERVED_BLOCK, at, self.count, type)
        elif type == HEADER and unit > 0:
            self.notes.add(SECOND_HEADER, at, self.count, type)
        if self.places:
            self.starts[unit] = type + 1
            self.numbers[unit] = number
        self.enter(unit, type, order, unit)
        return 0

    cdef int64_t damaged(self, int64_t unit, int64_t end) except? -9 nogil:
        """Add a stretch without blocks. Return its end."""
        self.damaged_bytes += min(UNIT * end, self.nbytes) - UNIT * unit
        return self.enter(unit, DAMAGED, 0, end)

    cdef int64_t enter(self, int64_t unit, int64_t type, int64_t order,
                       int64_t end) except? -9 nogil:
        """Add a record. Return ``end``."""
        if unit == 0 and type != HEADER:
            self.notes.add(NO_HEADER, 0, self.count, type)
        self.unit[self.count] = unit
        self.type[self.count] = type
        self.order[self.count] = order
        self.tally[16 * type + order] += 1
        self.count += 1
        return end

    cdef int free_lists(self) except -1 nogil:
        """Report free blocks whose list continues with a block that is not free, or larger."""
        cdef int64_t record, unit, after
        record = 0
        while record < self.count:
            unit = self.unit[record]
            if self.type[record] == FREE and unit > 0:
                after = (self.words[2 * unit] >> self.index_at) & self.index_mask
                if after != 0 and not self.free(after, self.order[record]):
                    self.notes.add(FREE_LIST, UNIT * unit, record, after)
            record += 1
        return 0

    cdef bint free(self, int64_t unit, int64_t order) noexcept nogil:
        """Return whether a free block of an order begins at a unit; padding is free units."""
        cdef int64_t low, high, middle
        if unit < self.units and self.starts[unit] == FREE + 1:
            return get(ORDER, self.words[2 * unit]) == order
        low = 0
        high = self.count
        while high - low > 1:
            middle = (low + high) // 2
            if self.unit[middle] <= unit:
                low = middle
            else:
                high = middle
        return unit < self.units and order == 0 and self.type[low] == PADDING

    cdef int64_t fits(self, int64_t unit) noexcept nogil:
        """Return the units of the block at a unit; 0 if none can begin there."""
        cdef int64_t word, order, size
        word = self.words[2 * unit]
        order = get(ORDER, word)
        size = <int64_t>ONE << order
        if order > MAX_ORDER or size > self.units - unit:
            return 0
        if (word >> self.type_at) & self.type_mask >= self.types:
            return 0
        # In the later layout the bits between the order and the type are zero.
        if self.type_at == TYPE_AT and get(RESERVED_BITS, word) != 0:
            return 0
        return size

    cdef int64_t resume(self, int64_t unit) except? -9 nogil:
        """Return the next unit from which blocks follow, or where one fits, or the end.

        They follow if they lead to the end of the file, or if ``RUN`` of them are not zero.
        """
        cdef int64_t at
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

    cdef int find_runs(self) except -1 nogil:
        """Find how many blocks follow one another from each unit: up to ``RUN``, or to the end."""
        cdef int64_t at, size, run
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

    cdef int make_runs(self) except -1 with gil:
        """Allocate a byte per unit."""
        self.follow = room(self.units + 1, "u1")
        return 0

    cdef int header(self) except -1 nogil:
        """Report findings about the header."""
        cdef int64_t word, generation, magic, version, order, size
        word = self.words[0]
        generation = self.words[1]
        magic = get(HEADER_MAGIC, word)
        if magic != MAGIC:
            self.notes.add(OTHER_MAGIC, 0, 0, magic)
        version = get(BEFORE_MAGIC, word) >> self.index_at
        if version > self.max_version:
            self.notes.add(UNKNOWN_VERSION, 0, 0, version)
        elif version == 0 and self.max_version > 0:
            self.notes.add(VERSION_ZERO_IN_NEW_LAYOUT, 0, 0, 0)
        if generation % 2 != 0:
            self.notes.add(LOCKED, 0, 0, generation)
        elif generation == FROZEN_GENERATION:
            self.notes.add(FROZEN_VMO, 0, 0, 0)
        order = get(ORDER, word)
        if order > 0:
            size = get(VMO_SIZE, self.words[2])
            if size < UNIT << order or size > MAX_VMO or size % UNIT != 0:
                self.notes.add(NO_SIZE, 0, 0, size)
            elif size > self.nbytes:
                self.notes.add(SHORTER_THAN_ITS_SIZE, 0, 0, size)
            elif size < self.nbytes:
                self.notes.add(LONGER_THAN_ITS_SIZE, 0, 0, size)
        return 0
