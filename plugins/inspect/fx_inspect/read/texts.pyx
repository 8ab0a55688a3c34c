# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Texts: the bytes of names, strings and buffers, which may be in chains of extents.

Strings become codes here (``Interning``).
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from fx_inspect.read.scan cimport Scan
from fxframework.kernels.fields cimport Field, field, get
from fxframework.kernels.rows cimport Notes
from fxframework.kernels.pools cimport Pool, Utf8

from fx_inspect import format as wire
from fx_inspect import rules
from fxframework.kernels.buffers import full, room

cdef int64_t BUFFER = wire.BUFFER, BUFFER_BYTES = wire.BUFFER_BYTES, BUFFER_UTF8 = wire.BUFFER_UTF8
cdef int64_t EXTENT = wire.EXTENT, NAME = wire.NAME, NAME_LENGTH = wire.NAME_LENGTH
cdef int64_t STRING = wire.STRING, UNIT = wire.UNIT
cdef Field BUFFER_EXTENT = field(wire.BUFFER_EXTENT), BUFFER_FORMAT = field(wire.BUFFER_FORMAT)
cdef Field ORDER = field(wire.ORDER), STRING_LENGTH = field(wire.STRING_LENGTH)
cdef Field TOTAL_LENGTH = field(wire.TOTAL_LENGTH)
cdef int64_t CHAINS_OVER_THE_FILE = rules.CHAINS_OVER_THE_FILE, CHAIN_CYCLE = rules.CHAIN_CYCLE
cdef int64_t CHAIN_TOO_LONG = rules.CHAIN_TOO_LONG, CHAIN_TOO_SHORT = rules.CHAIN_TOO_SHORT
cdef int64_t CHAIN_WITHOUT_EXTENT = rules.CHAIN_WITHOUT_EXTENT, NOT_UTF8 = rules.NOT_UTF8
cdef int64_t STRING_OVER_LIMIT = rules.STRING_OVER_LIMIT

__all__ = ["Interning", "TextColumnFill", "TextCopy", "Texts"]

cdef enum:
    STRING_AT = 12
    PAYLOAD_AT = 8
    BY_BYTE = 48  # Bytes up to which a loop copies faster than a call.


@cython.final
cdef class TextCopy:
    """Copies texts out of their blocks."""

    def __init__(self, scan, words, data):
        self.words = words
        self.data = data
        self.scan = scan
        self.out = room(0, "u1")

    def to(self, out):
        """Copy to these bytes (uint8) from now on."""
        self.out = out

    cdef int text(self, int64_t unit, int64_t nbytes, int64_t at) except -1 nogil:
        """Copy the first ``nbytes`` bytes of the text of a block to byte ``at``.

        The block is a NAME, a STRING_REFERENCE or a BUFFER_VALUE with extents that was found to
        have that many bytes.
        """
        cdef int64_t header, type, begin, size, extent
        header = self.words[2 * unit]
        type = self.scan.starts[unit] - 1
        begin = 0
        size = 0
        extent = 0
        if type == NAME:
            begin = UNIT * unit + PAYLOAD_AT
            size = nbytes
        elif type == STRING:
            begin = UNIT * unit + STRING_AT
            size = min(nbytes, (UNIT << get(ORDER, header)) - STRING_AT)
            extent = (header >> self.scan.index_at) & self.scan.index_mask
        else:
            extent = get(BUFFER_EXTENT, self.words[2 * unit + 1])
        while True:
            if size <= BY_BYTE:
                self.bytes(begin, size, at)
            else:
                self.out[at : at + size] = self.data[begin : begin + size]
            at += size
            nbytes -= size
            if nbytes <= 0:
                return 0
            header = self.words[2 * extent]
            begin = UNIT * extent + PAYLOAD_AT
            size = min(nbytes, (UNIT << get(ORDER, header)) - PAYLOAD_AT)
            extent = (header >> self.scan.index_at) & self.scan.index_mask

    cdef int64_t bytes(self, int64_t begin, int64_t size, int64_t at) noexcept nogil:
        """Copy a few bytes of the file."""
        cdef int64_t index
        index = 0
        while index < size:
            self.out[at + index] = self.data[begin + index]
            index += 1
        return 0


@cython.final
cdef class Texts:
    """Finds how many bytes each string and each buffer has, and whether they are UTF-8.

    ``length`` (int64) has the bytes of each NAME and STRING_REFERENCE, -1 for a name that says more
    than its block holds; ``buffer`` (int64) those of each BUFFER_VALUE. ``owner`` (int32) has, for
    each extent, 1 + the record whose chain it was in last, or 0; ``twice`` (uint8) whether it is in
    several chains. All chains together give at most as many bytes as the file has.
    """

    def __init__(self, scan, words, data, max_string, notes):
        self.words = words
        self.scan = scan
        self.notes = notes
        self.max_string = max_string
        self.length = room(scan.strings, "i8")
        self.buffer = full(scan.buffers, "i8")
        self.owner = full(scan.extents, "i4")
        self.twice = full(scan.extents, "u1")
        scratch = room(scan.nbytes if scan.extents else 0, "u1")
        self.copy = TextCopy(scan, words, data)
        self.copy.to(scratch)
        self.in_file = Utf8(data)
        self.in_scratch = Utf8(scratch)
        self.left = scan.nbytes
        self.fault = 0
        self.rest = 0

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Look at all texts."""
        cdef int64_t record, type
        record = 0
        while record < self.scan.count:
            type = self.scan.type[record]
            if type == NAME:
                self.name(record, self.scan.unit[record])
            elif type == STRING:
                self.string(record, self.scan.unit[record])
            elif type == BUFFER:
                self.value(record, self.scan.unit[record])
            record += 1
        return 0

    cdef int name(self, int64_t record, int64_t unit) except -1 nogil:
        """Look at a NAME."""
        cdef int64_t nbytes, number
        nbytes = (self.words[2 * unit] >> self.scan.index_at) & NAME_LENGTH
        number = self.scan.numbers[unit]
        if nbytes > (UNIT << self.scan.order[record]) - PAYLOAD_AT:
            self.length[number] = -1
            return 0
        self.fault = 0
        self.check(record, unit, nbytes, nbytes)
        self.length[number] = self.bounded(record, unit, nbytes)
        return 0

    cdef int string(self, int64_t record, int64_t unit) except -1 nogil:
        """Look at a STRING_REFERENCE."""
        cdef int64_t total, inline, number, first
        total = get(STRING_LENGTH, self.words[2 * unit + 1])
        inline = min(total, (UNIT << self.scan.order[record]) - STRING_AT)
        number = self.scan.numbers[unit]
        if unit == 0:
            self.length[number] = inline
            return 0
        first = (self.words[2 * unit] >> self.scan.index_at) & self.scan.index_mask
        self.length[number] = self.chained(record, unit, inline, first, total, 1)
        return 0

    cdef int value(self, int64_t record, int64_t unit) except -1 nogil:
        """Look at a BUFFER_VALUE whose bytes are in extents."""
        cdef int64_t payload, format, first, total, is_text, number
        payload = self.words[2 * unit + 1]
        format = get(BUFFER_FORMAT, payload)
        if unit == 0 or format > BUFFER_BYTES:
            return 0
        first = get(BUFFER_EXTENT, payload)
        total = get(TOTAL_LENGTH, payload)
        is_text = format == BUFFER_UTF8
        number = self.scan.numbers[unit]
        self.buffer[number] = self.chained(record, unit, 0, first, total, is_text)
        return 0

    cdef int64_t chained(self, int64_t record, int64_t unit, int64_t inline, int64_t first,
                         int64_t total, bint is_text) except? -9 nogil:
        """Return the bytes that a block has, ``inline`` of them in it, others in extents."""
        cdef int64_t nbytes
        self.fault = 0
        nbytes = inline + self.follow(record, first, total - inline)
        if self.fault == CHAIN_WITHOUT_EXTENT or self.fault == CHAIN_CYCLE:
            self.notes.add(self.fault, UNIT * unit, record, self.rest)
        elif self.fault != 0:
            self.notes.add(self.fault, UNIT * unit, record, total - nbytes)
        else:
            if is_text:
                self.check(record, unit, nbytes, inline)
            if self.rest != 0:
                self.notes.add(CHAIN_TOO_LONG, UNIT * unit, record, self.rest)
        return self.bounded(record, unit, nbytes)

    cdef int check(self, int64_t record, int64_t unit, int64_t nbytes,
                   int64_t inline) except -1 nogil:
        """Report a text that is not UTF-8; ``inline`` bytes of it are in its block."""
        cdef int64_t begin
        if unit == 0:
            return 0
        if nbytes <= inline:
            begin = UNIT * unit + PAYLOAD_AT
            if self.scan.type[record] == STRING:
                begin = UNIT * unit + STRING_AT
            if self.in_file.valid(begin, nbytes):
                return 0
        else:
            self.copy.text(unit, nbytes, 0)
            if self.in_scratch.valid(0, nbytes):
                return 0
        self.notes.add(NOT_UTF8, UNIT * unit, record, 0)
        return 0

    cdef int64_t bounded(self, int64_t record, int64_t unit, int64_t nbytes) except? -9 nogil:
        """Return the bytes that are kept of a text, which may be over the limit."""
        if nbytes <= self.max_string:
            return nbytes
        self.notes.add(STRING_OVER_LIMIT, UNIT * unit, record, nbytes)
        return self.max_string

    cdef int64_t follow(self, int64_t record, int64_t unit, int64_t wanted) noexcept nogil:
        """Return how many bytes of ``wanted`` the chain from a unit gives to a record.

        ``fault`` is what ended it early, or stays 0; ``rest`` is the unit at which it went wrong or
        goes on.
        """
        cdef int64_t given, extent, header, part
        given = 0
        while given < wanted:
            self.rest = unit
            if unit == 0:
                self.fault = CHAIN_TOO_SHORT
                return given
            if unit >= self.scan.units or self.scan.starts[unit] != EXTENT + 1:
                self.fault = CHAIN_WITHOUT_EXTENT
                return given
            extent = self.scan.numbers[unit]
            if self.owner[extent] == record + 1:
                self.fault = CHAIN_CYCLE
                return given
            if self.owner[extent] != 0:
                self.twice[extent] = 1
            self.owner[extent] = record + 1
            header = self.words[2 * unit]
            part = min((UNIT << get(ORDER, header)) - PAYLOAD_AT, wanted - given)
            if part > self.left:
                given += self.left
                self.left = 0
                self.fault = CHAINS_OVER_THE_FILE
                return given
            given += part
            self.left -= part
            unit = (header >> self.scan.index_at) & self.scan.index_mask
        self.rest = unit
        return given


@cython.final
cdef class Interning:
    """Enters the strings that have uses, of ``longest`` bytes at most, into a pool.

    ``code`` (int32) has the code of each NAME and STRING_REFERENCE, -1 for one without uses; behind
    them one more -1, which the string -1 of a value without a name finds.
    """

    cdef public Scan scan
    cdef public TextCopy copy
    cdef readonly const int64_t[::1] length
    cdef public const int32_t[::1] uses
    cdef public Pool pool
    cdef readonly int32_t[::1] code

    def __init__(self, scan, copy, length, uses, longest, pool):
        self.scan = scan
        self.copy = copy
        self.length = length
        self.uses = uses
        self.pool = pool
        self.code = full(scan.strings + 1, "i4", -1)
        scratch = full(longest // 8 + 2, "i8")
        pool.read_from(scratch)
        copy.to(memoryview(scratch).cast("B"))

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Enter them in the order of the file."""
        cdef int64_t record, type, unit, string, nbytes
        record = 0
        while record < self.scan.count:
            type = self.scan.type[record]
            if type == NAME or type == STRING:
                unit = self.scan.unit[record]
                string = self.scan.numbers[unit]
                if self.uses[string] > 0:
                    nbytes = self.length[string]
                    self.copy.text(unit, nbytes, 0)
                    self.code[string] = self.pool.intern(0, nbytes)
            record += 1
        return 0


@cython.final
cdef class TextColumnFill:
    """Copies the texts of blocks one after another, to where ``offsets`` (int64) says."""

    cdef public TextCopy copy
    cdef public const int32_t[::1] source
    cdef public const int64_t[::1] offsets
    cdef public int64_t rows

    def __init__(self, copy, source, offsets, out):
        self.copy = copy
        self.source = source
        self.offsets = offsets
        self.rows = len(source)
        copy.to(out)

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Copy all of them."""
        cdef int64_t row, size
        row = 0
        while row < self.rows:
            size = self.offsets[row + 1] - self.offsets[row]
            if size > 0:
                self.copy.text(self.source[row], size, self.offsets[row])
            row += 1
        return 0
