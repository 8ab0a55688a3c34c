"""Texts: the bytes of names, strings and buffers, which may be in chains of extents.

Strings become codes here (``Interning``).
"""

from __future__ import annotations

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.read.scan import Scan
from fxframework.kernels.annotations import Array, Bytes, Fallible, View, flag, i32, i64, status, u8
from fxframework.kernels.buffers import full, room
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.notes import Notes
from fxframework.kernels.pools import Pool
from fxframework.kernels.utf8 import Utf8

__all__ = ["Interning", "TextColumnFill", "TextCopy", "Texts"]

STRING_AT = 12
PAYLOAD_AT = 8
BY_BYTE = 48
"""Bytes up to which a loop copies faster than a call."""


class TextCopy:
    """Copies texts out of their blocks."""

    words: View[i64]
    data: Bytes
    scan: Scan
    out: Array[u8]

    def __init__(self, scan: Scan, words: memoryview, data: memoryview) -> None:
        self.words = memoryview(words)
        self.data = memoryview(data)
        self.scan = scan
        self.out = room(0, "u1")

    def to(self, out: memoryview) -> None:
        """Copy to these bytes (uint8) from now on."""
        self.out = memoryview(out)

    def text(self, unit: i64, nbytes: i64, at: i64) -> status:
        """Copy the first ``nbytes`` bytes of the text of a block to byte ``at``.

        The block is a NAME, a STRING_REFERENCE or a BUFFER_VALUE with extents that was found to
        have that many bytes.
        """
        header = self.words[2 * unit]
        type = self.scan.starts[unit] - 1
        begin = 0
        size = 0
        extent = 0
        if type == wire.NAME:
            begin = wire.UNIT * unit + PAYLOAD_AT
            size = nbytes
        elif type == wire.STRING:
            begin = wire.UNIT * unit + STRING_AT
            size = min(nbytes, (wire.UNIT << wire.ORDER.get(header)) - STRING_AT)
            extent = (header >> self.scan.index_at) & self.scan.index_mask
        else:
            extent = wire.BUFFER_EXTENT.get(self.words[2 * unit + 1])
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
            begin = wire.UNIT * extent + PAYLOAD_AT
            size = min(nbytes, (wire.UNIT << wire.ORDER.get(header)) - PAYLOAD_AT)
            extent = (header >> self.scan.index_at) & self.scan.index_mask

    def bytes(self, begin: i64, size: i64, at: i64) -> i64:
        """Copy a few bytes of the file."""
        index = 0
        while index < size:
            self.out[at + index] = self.data[begin + index]
            index += 1
        return 0


class Texts(Kernel):
    """Finds how many bytes each string and each buffer has, and whether they are UTF-8.

    ``length`` (int64) has the bytes of each NAME and STRING_REFERENCE, -1 for a name that says more
    than its block holds; ``buffer`` (int64) those of each BUFFER_VALUE. ``owner`` (int32) has, for
    each extent, 1 + the record whose chain it was in last, or 0; ``twice`` (uint8) whether it is in
    several chains. All chains together give at most as many bytes as the file has.
    """

    words: View[i64]
    scan: Scan
    notes: Notes
    max_string: i64
    length: Array[i64]
    buffer: Array[i64]
    owner: Array[i32]
    twice: Array[u8]
    copy: TextCopy
    in_file: Utf8
    in_scratch: Utf8
    left: i64
    rest: i64
    fault: i64

    def __init__(
        self, scan: Scan, words: memoryview, data: memoryview, max_string: int, notes: Notes
    ) -> None:
        self.words = memoryview(words)
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

    def step(self) -> Fallible[i64]:
        """Look at all texts."""
        record = 0
        while record < self.scan.count:
            type = self.scan.type[record]
            if type == wire.NAME:
                self.name(record, self.scan.unit[record])
            elif type == wire.STRING:
                self.string(record, self.scan.unit[record])
            elif type == wire.BUFFER:
                self.value(record, self.scan.unit[record])
            record += 1
        return 0

    def name(self, record: i64, unit: i64) -> status:
        """Look at a NAME."""
        nbytes = (self.words[2 * unit] >> self.scan.index_at) & wire.NAME_LENGTH
        number = self.scan.numbers[unit]
        if nbytes > (wire.UNIT << self.scan.order[record]) - PAYLOAD_AT:
            self.length[number] = -1
            return 0
        self.fault = 0
        self.check(record, unit, nbytes, nbytes)
        self.length[number] = self.bounded(record, unit, nbytes)
        return 0

    def string(self, record: i64, unit: i64) -> status:
        """Look at a STRING_REFERENCE."""
        total = wire.STRING_LENGTH.get(self.words[2 * unit + 1])
        inline = min(total, (wire.UNIT << self.scan.order[record]) - STRING_AT)
        number = self.scan.numbers[unit]
        if unit == 0:
            self.length[number] = inline
            return 0
        first = (self.words[2 * unit] >> self.scan.index_at) & self.scan.index_mask
        self.length[number] = self.chained(record, unit, inline, first, total, 1)
        return 0

    def value(self, record: i64, unit: i64) -> status:
        """Look at a BUFFER_VALUE whose bytes are in extents."""
        payload = self.words[2 * unit + 1]
        format = wire.BUFFER_FORMAT.get(payload)
        if unit == 0 or format > wire.BUFFER_BYTES:
            return 0
        first = wire.BUFFER_EXTENT.get(payload)
        total = wire.TOTAL_LENGTH.get(payload)
        is_text = format == wire.BUFFER_UTF8
        number = self.scan.numbers[unit]
        self.buffer[number] = self.chained(record, unit, 0, first, total, is_text)
        return 0

    def chained(
        self, record: i64, unit: i64, inline: i64, first: i64, total: i64, is_text: flag
    ) -> Fallible[i64]:
        """Return the bytes that a block has, ``inline`` of them in it, others in extents."""
        self.fault = 0
        nbytes = inline + self.follow(record, first, total - inline)
        if self.fault == rules.CHAIN_WITHOUT_EXTENT or self.fault == rules.CHAIN_CYCLE:
            self.notes.add(self.fault, wire.UNIT * unit, record, self.rest)
        elif self.fault != 0:
            self.notes.add(self.fault, wire.UNIT * unit, record, total - nbytes)
        else:
            if is_text:
                self.check(record, unit, nbytes, inline)
            if self.rest != 0:
                self.notes.add(rules.CHAIN_TOO_LONG, wire.UNIT * unit, record, self.rest)
        return self.bounded(record, unit, nbytes)

    def check(self, record: i64, unit: i64, nbytes: i64, inline: i64) -> status:
        """Report a text that is not UTF-8; ``inline`` bytes of it are in its block."""
        if unit == 0:
            return 0
        if nbytes <= inline:
            begin = wire.UNIT * unit + PAYLOAD_AT
            if self.scan.type[record] == wire.STRING:
                begin = wire.UNIT * unit + STRING_AT
            if self.in_file.valid(begin, nbytes):
                return 0
        else:
            self.copy.text(unit, nbytes, 0)
            if self.in_scratch.valid(0, nbytes):
                return 0
        self.notes.add(rules.NOT_UTF8, wire.UNIT * unit, record, 0)
        return 0

    def bounded(self, record: i64, unit: i64, nbytes: i64) -> Fallible[i64]:
        """Return the bytes that are kept of a text, which may be over the limit."""
        if nbytes <= self.max_string:
            return nbytes
        self.notes.add(rules.STRING_OVER_LIMIT, wire.UNIT * unit, record, nbytes)
        return self.max_string

    def follow(self, record: i64, unit: i64, wanted: i64) -> i64:
        """Return how many bytes of ``wanted`` the chain from a unit gives to a record.

        ``fault`` is what ended it early, or stays 0; ``rest`` is the unit at which it went wrong or
        goes on.
        """
        given = 0
        while given < wanted:
            self.rest = unit
            if unit == 0:
                self.fault = rules.CHAIN_TOO_SHORT
                return given
            if unit >= self.scan.units or self.scan.starts[unit] != wire.EXTENT + 1:
                self.fault = rules.CHAIN_WITHOUT_EXTENT
                return given
            extent = self.scan.numbers[unit]
            if self.owner[extent] == record + 1:
                self.fault = rules.CHAIN_CYCLE
                return given
            if self.owner[extent] != 0:
                self.twice[extent] = 1
            self.owner[extent] = record + 1
            header = self.words[2 * unit]
            part = min((wire.UNIT << wire.ORDER.get(header)) - PAYLOAD_AT, wanted - given)
            if part > self.left:
                given += self.left
                self.left = 0
                self.fault = rules.CHAINS_OVER_THE_FILE
                return given
            given += part
            self.left -= part
            unit = (header >> self.scan.index_at) & self.scan.index_mask
        self.rest = unit
        return given


class Interning(Kernel):
    """Enters the strings that have uses, of ``longest`` bytes at most, into a pool.

    ``code`` (int32) has the code of each NAME and STRING_REFERENCE, -1 for one without uses; behind
    them one more -1, which the string -1 of a value without a name finds.
    """

    scan: Scan
    copy: TextCopy
    length: View[i64]
    uses: View[i32]
    pool: Pool
    code: Array[i32]

    def __init__(
        self,
        scan: Scan,
        copy: TextCopy,
        length: memoryview,
        uses: memoryview,
        longest: int,
        pool: Pool,
    ) -> None:
        self.scan = scan
        self.copy = copy
        self.length = memoryview(length)
        self.uses = memoryview(uses)
        self.pool = pool
        self.code = full(scan.strings + 1, "i4", -1)
        scratch = full(longest // 8 + 2, "i8")
        pool.read_from(scratch)
        copy.to(memoryview(scratch).cast("B"))

    def step(self) -> Fallible[i64]:
        """Enter them in the order of the file."""
        record = 0
        while record < self.scan.count:
            type = self.scan.type[record]
            if type == wire.NAME or type == wire.STRING:
                unit = self.scan.unit[record]
                string = self.scan.numbers[unit]
                if self.uses[string] > 0:
                    nbytes = self.length[string]
                    self.copy.text(unit, nbytes, 0)
                    self.code[string] = self.pool.intern(0, nbytes)
            record += 1
        return 0


class TextColumnFill(Kernel):
    """Copies the texts of blocks one after another, to where ``offsets`` (int64) says."""

    copy: TextCopy
    source: View[i32]
    offsets: View[i64]
    rows: i64

    def __init__(
        self, copy: TextCopy, source: memoryview, offsets: memoryview, out: memoryview
    ) -> None:
        self.copy = copy
        self.source = memoryview(source)
        self.offsets = memoryview(offsets)
        self.rows = len(source)
        copy.to(out)

    def step(self) -> Fallible[i64]:
        """Copy all of them."""
        row = 0
        while row < self.rows:
            size = self.offsets[row + 1] - self.offsets[row]
            if size > 0:
                self.copy.text(self.source[row], size, self.offsets[row])
            row += 1
        return 0
