"""Vectorized reading of records whose fields are at fixed places: a field of many, then the next.

Such a record changes nothing that later ones depend on, so that their order matters to rows alone.
An operation (``ops.py``) is decoded once for up to 256 records and does the same for each. The
first record that is not sound ends them; the interpreter of programs (``program.py``) reads it.
"""

from __future__ import annotations

from typing import final

from fxframework.kernels import ops
from fxframework.kernels.annotations import Array, View, flag, i64, public, u64
from fxframework.kernels.buffers import full, room
from fxframework.kernels.framing import Framing
from fxframework.kernels.texts import Texts
from fxframework.kernels.utf8 import Utf8

__all__ = ["Vectors"]

MOST = 256
"""Records that are read together."""
LEAST = 8
"""Fewer records are read one by one."""
LONGEST = 1024
"""Most records that are read one by one before it is tried again to read many."""
HEAD = 3
"""Numbers per entry of ``heads``: the first operation, the class, and the table (-1: none)."""
UNSIGNED = 14
"""The operation ``u|`` of ``wire.expressions``."""
LOW64 = 0xFFFFFFFFFFFFFFFF
MOST64 = 0x7FFFFFFFFFFFFFFF


@final
class Vectors:
    """Reads records into ``cells``; these, ``slots``, ``rows`` and ``kinds`` are the interpreter's.

    ``code`` (int64) has the operations, ``heads`` (int64) where those of an entry begin. Vector v
    is ``lanes[v * MOST : (v + 1) * MOST]``; values of records of one entry lie side by side there.
    """

    framing: Framing
    texts: Texts
    utf8: Utf8
    code: View[i64]
    heads: View[i64]
    slots: Array[i64]
    rows: Array[i64]
    kinds: Array[i64]
    cells: Array[i64]
    room: i64
    lanes: Array[i64]
    order: Array[i64]
    counts: Array[i64]
    next: Array[i64]
    most: i64
    unaligned: i64
    idle: i64
    pause: i64
    beyond: i64

    def __init__(
        self, framing: Framing, texts: Texts, utf8: Utf8, arrays: list[memoryview], vectors: int
    ) -> None:
        code, heads, slots, rows, kinds = arrays
        self.framing = framing
        self.texts = texts
        self.utf8 = utf8
        self.code = memoryview(code)
        self.heads = memoryview(heads)
        self.slots = memoryview(slots)
        self.rows = memoryview(rows)
        self.kinds = memoryview(kinds)
        self.cells = room(1, "i8")
        self.room = 0
        self.lanes = full(vectors * MOST, "i8")
        self.order = full(MOST, "i8")
        self.counts = full(self.framing.entries + 1, "i8")
        self.next = full(len(rows), "i8")
        self.most = MOST
        self.unaligned = 0
        self.idle = 0
        self.beyond = 0
        self.pause = 1

    @public
    def read(self, pos: i64) -> i64:
        """Read the records from a byte on; return how many, and leave their end to ``framing``."""
        if self.idle:
            self.idle -= 1
            return 0
        most = self.most
        table = 0
        while table < len(self.rows):
            if self.room - self.rows[table] < most:
                most = self.room - self.rows[table]
            table += 1
        count = self.framing.several(pos, most)
        if count < LEAST:
            self.rest()
            return 0
        self.arrange(count)
        if self.framing.mixed:
            sound = self.mixed(count)
        else:
            big = self.framing.entries * self.framing.big
            sound = self.entry(self.framing.found[0] + big, 0, count)
        self.adapt(sound, count)
        self.enter(sound)
        if sound < count:
            self.framing.end = self.framing.places[sound]
        return sound

    def mixed(self, count: i64) -> i64:
        """Read records of several entries; return how many are sound before one that is not."""
        big = self.framing.entries * self.framing.big
        sound = count
        begin = 0
        while begin < count:
            entry = self.framing.found[self.order[begin]]
            end = begin + 1
            while end < count and self.framing.found[self.order[end]] == entry:
                end += 1
            stop = self.entry(entry + big, begin, end)
            if stop < end:
                sound = min(sound, self.order[stop])
            begin = end
        return sound

    def adapt(self, sound: i64, count: i64) -> i64:
        """Choose how many records to try next, given how many of these were sound."""
        if sound == count:
            self.most = min(MOST, 2 * self.most)
            self.pause = 1
        else:
            self.most = max(LEAST, sound)
            if sound < LEAST:
                self.rest()
        return 0

    def rest(self) -> i64:
        """Leave some records to be read one by one; twice as many the next time."""
        self.idle = self.pause
        self.pause = min(LONGEST, 2 * self.pause)
        return 0

    def arrange(self, count: i64) -> i64:
        """Order the records by entry, and give each the row of its table that the file gives it."""
        if self.framing.mixed:
            return self.sort(count)
        head = HEAD * (self.framing.found[0] + self.framing.entries * self.framing.big)
        row = 0
        if self.heads[head + 2] >= 0:
            row = self.rows[self.heads[head + 2]]
        places = 0
        lane = 0
        while lane < count:
            places |= self.framing.places[lane]
            self.lanes[ops.PLACES * MOST + lane] = self.framing.places[lane]
            self.lanes[ops.ROWS * MOST + lane] = row + lane
            lane += 1
        self.unaligned = places & 7
        return 0

    def sort(self, count: i64) -> i64:
        """Order records of several entries."""
        big = self.framing.entries * self.framing.big
        size = len(self.counts)
        index = 0
        while index < size:
            self.counts[index] = 0
            index += 1
        index = 0
        while index < count:
            self.counts[self.framing.found[index] + 1] += 1
            index += 1
        index = 1
        while index < size:
            self.counts[index] += self.counts[index - 1]
            index += 1
        index = 0
        while index < len(self.rows):
            self.next[index] = self.rows[index]
            index += 1
        places = 0
        index = 0
        while index < count:
            places |= self.framing.places[index]
            entry = self.framing.found[index]
            lane = self.counts[entry]
            self.counts[entry] += 1
            self.order[lane] = index
            self.lanes[ops.PLACES * MOST + lane] = self.framing.places[index]
            table = self.heads[HEAD * (entry + big) + 2]
            if table >= 0:
                self.lanes[ops.ROWS * MOST + lane] = self.next[table]
                self.next[table] += 1
            index += 1
        self.unaligned = places & 7
        return 0

    def enter(self, count: i64) -> i64:
        """Count the records, and their rows."""
        big = self.framing.entries * self.framing.big
        if self.framing.mixed == 0:
            head = HEAD * (self.framing.found[0] + big)
            self.kinds[self.heads[head + 1]] += count
            if self.heads[head + 2] >= 0:
                self.rows[self.heads[head + 2]] += count
            return 0
        index = 0
        while index < count:
            head = HEAD * (self.framing.found[index] + big)
            self.kinds[self.heads[head + 1]] += 1
            if self.heads[head + 2] >= 0:
                self.rows[self.heads[head + 2]] += 1
            index += 1
        return 0

    # --- Operations -----------------------------------------------------------------------------

    def entry(self, number: i64, begin: i64, end: i64) -> i64:
        """Read the records of one entry; return the first lane of one that is not sound."""
        ip = self.heads[HEAD * number]
        while True:
            code = self.code[ip]
            a = self.code[ip + 1]
            b = self.code[ip + 2]
            c = self.code[ip + 3]
            d = self.code[ip + 4]
            if code == ops.VECTOR_TAKE:
                self.take(a, b, c, d, begin, end)
            elif code == ops.VECTOR_LOAD:
                self.load(a, b, c, begin, end)
            elif code == ops.VECTOR_PUT:
                self.put(a, b, c, d, begin, end)
            elif code == ops.VECTOR_KEEP:
                self.keep(a, b, c, d, begin, end)
            elif code == ops.VECTOR_CELL:
                self.cell(a, c, begin, end)
            elif code == ops.VECTOR_TEXT:
                end = self.text(a, b, c, begin, end)
            elif code == ops.VECTOR_RESERVED:
                end = self.reserved(a, begin, end)
            elif code == ops.VECTOR_EXPECT:
                end = self.expect(a, begin, end)
            elif code == ops.VECTOR_KNOWN:
                end = self.known(a, b, begin, end)
            elif code == ops.VECTOR_FILL:
                self.fill(a, b, begin, end)
            elif code == ops.VECTOR_SLOT:
                self.fill(a, self.slots[b], begin, end)
            elif code == ops.VECTOR_PLACE:
                self.place(a, b, begin, end)
            elif code == ops.VECTOR_CALC:
                end = self.calc(a, b, c, d, begin, end)
            elif code == ops.VECTOR_SPAN:
                self.place(ops.STARTS, a, begin, end)
                self.fill(ops.LENGTHS, b, begin, end)
            elif code == ops.VECTOR_TRIM:
                self.trim(a, begin, end)
            elif code == ops.VECTOR_UTF8:
                end = self.valid(begin, end)
            elif code == ops.VECTOR_ZEROS:
                end = self.zeros(a, b, begin, end)
            else:
                return end
            ip += ops.WIDTH

    def load(self, offset: i64, nbytes: i64, big: i64, begin: i64, end: i64) -> i64:
        """Read the words at an offset of the records."""
        lane = begin
        if nbytes == 8 and (self.unaligned | (offset & 7) | big) == 0:
            while lane < end:
                at = self.lanes[ops.PLACES * MOST + lane] + offset
                self.lanes[ops.WORDS * MOST + lane] = self.framing.words[at >> 3]
                lane += 1
        elif nbytes == 4 and big == 0:
            while lane < end:
                at = self.lanes[ops.PLACES * MOST + lane] + offset
                self.lanes[ops.WORDS * MOST + lane] = self.framing.half(at)
                lane += 1
        else:
            while lane < end:
                at = self.lanes[ops.PLACES * MOST + lane] + offset
                self.lanes[ops.WORDS * MOST + lane] = self.framing.load(at, nbytes, big)
                lane += 1
        return 0

    def take(self, offset: i64, nbytes: i64, column: i64, sign: i64, begin: i64, end: i64) -> i64:
        """Fill a column with little-endian integers at an offset of the records."""
        first = column * self.room
        lane = begin
        if nbytes == 8 and (self.unaligned | (offset & 7)) == 0:
            while lane < end:
                at = self.lanes[ops.PLACES * MOST + lane] + offset
                row = self.lanes[ops.ROWS * MOST + lane]
                self.cells[first + row] = self.framing.words[at >> 3]
                lane += 1
            return 0
        while lane < end:
            value = self.framing.load(self.lanes[ops.PLACES * MOST + lane] + offset, nbytes, 0)
            row = self.lanes[ops.ROWS * MOST + lane]
            self.cells[first + row] = (value ^ sign) - sign
            lane += 1
        return 0

    def put(self, shift: i64, mask: i64, column: i64, sign: i64, begin: i64, end: i64) -> i64:
        """Fill a column with bits of the words."""
        first = column * self.room
        lane = begin
        if mask == -1 and shift == 0:
            while lane < end:
                row = self.lanes[ops.ROWS * MOST + lane]
                self.cells[first + row] = self.lanes[ops.WORDS * MOST + lane]
                lane += 1
            return 0
        while lane < end:
            value = (self.lanes[ops.WORDS * MOST + lane] >> shift) & mask
            row = self.lanes[ops.ROWS * MOST + lane]
            self.cells[first + row] = (value ^ sign) - sign
            lane += 1
        return 0

    def keep(self, shift: i64, mask: i64, vector: i64, sign: i64, begin: i64, end: i64) -> i64:
        """Fill a vector with bits of the words."""
        lane = begin
        while lane < end:
            value = (self.lanes[ops.WORDS * MOST + lane] >> shift) & mask
            self.lanes[vector * MOST + lane] = (value ^ sign) - sign
            lane += 1
        return 0

    def cell(self, vector: i64, column: i64, begin: i64, end: i64) -> i64:
        """Fill a column with a vector."""
        first = column * self.room
        lane = begin
        while lane < end:
            row = self.lanes[ops.ROWS * MOST + lane]
            self.cells[first + row] = self.lanes[vector * MOST + lane]
            lane += 1
        return 0

    def text(self, vector: i64, table: i64, column: i64, begin: i64, end: i64) -> i64:
        """Fill a column with codes of texts; end before a text that nothing declared."""
        first = column * self.room
        lane = begin
        while lane < end:
            number = self.texts.find(table, self.lanes[vector * MOST + lane])
            if number < 0:
                return lane
            row = self.lanes[ops.ROWS * MOST + lane]
            self.cells[first + row] = self.texts.codes[number]
            lane += 1
        return end

    def known(self, vector: i64, table: i64, begin: i64, end: i64) -> i64:
        """End before a number that a table does not have."""
        lane = begin
        while lane < end:
            if self.texts.find(table, self.lanes[vector * MOST + lane]) < 0:
                return lane
            lane += 1
        return end

    def expect(self, vector: i64, begin: i64, end: i64) -> i64:
        """End before a zero."""
        lane = begin
        while lane < end and self.lanes[vector * MOST + lane]:
            lane += 1
        return lane

    def reserved(self, mask: i64, begin: i64, end: i64) -> i64:
        """End before a word in which a bit of the mask is set."""
        lane = begin
        while lane < end and self.lanes[ops.WORDS * MOST + lane] & mask == 0:
            lane += 1
        return lane

    def fill(self, vector: i64, value: i64, begin: i64, end: i64) -> i64:
        """Fill a vector with one value."""
        lane = begin
        while lane < end:
            self.lanes[vector * MOST + lane] = value
            lane += 1
        return 0

    def place(self, vector: i64, offset: i64, begin: i64, end: i64) -> i64:
        """Fill a vector with the places of an offset of the records."""
        lane = begin
        while lane < end:
            self.lanes[vector * MOST + lane] = self.lanes[ops.PLACES * MOST + lane] + offset
            lane += 1
        return 0

    def calc(self, vector: i64, operation: i64, left: i64, right: i64, begin: i64, end: i64) -> i64:
        """Compute a vector of two others; end before a number that saturates."""
        lane = begin
        if operation == UNSIGNED:
            while lane < end and self.lanes[left * MOST + lane] >= 0:
                self.lanes[vector * MOST + lane] = self.lanes[left * MOST + lane]
                lane += 1
            return lane
        while lane < end:
            self.lanes[vector * MOST + lane] = self.calculated(
                operation, self.lanes[left * MOST + lane], self.lanes[right * MOST + lane]
            )
            if self.beyond:
                self.beyond = 0
                return lane
            lane += 1
        return end

    def calculated(self, operation: i64, left: i64, right: i64) -> i64:
        """Return the result of an operation of ``wire.expressions``, which wraps or saturates."""
        if operation == 0:
            return self.wrapped((left + right) & LOW64)
        if operation == 1:
            return self.wrapped((left - right) & LOW64)
        if operation == 2:
            return self.wrapped((left * right) & LOW64)
        if operation == 3:
            return left & right
        if operation == 4:
            return left | right
        if operation == 5:
            return self.wrapped((left << right) & LOW64) if 0 <= right < 64 else 0
        if operation == 6:
            return left >> right if 0 <= right < 64 else 0
        if operation == 7:
            return 1 if left == right else 0
        if operation == 8:
            return 1 if left != right else 0
        if operation == 9:
            return 1 if left < right else 0
        if operation == 10:
            return 1 if left <= right else 0
        if operation == 11:
            value = self.wrapped((left + right) & LOW64)
            fits = (left < 0) != (right < 0) or (left < 0) == (value < 0)
            return value if fits else self.saturated(left < 0)
        if operation == 12 or (operation == 13 and right == -1):
            if operation == 13:
                right = left
                left = 0
            value = self.wrapped((left - right) & LOW64)
            fits = (left < 0) == (right < 0) or (left < 0) == (value < 0)
            return value if fits else self.saturated(left < 0)
        if operation == 13:
            value = self.wrapped((left * right) & LOW64)
            fits = right == 0 or (value // right == left and value % right == 0)
            return value if fits else self.saturated((left < 0) != (right < 0))
        return left if left >= 0 else self.saturated(False)

    def saturated(self, negative: flag) -> i64:
        """Return the least or the greatest number, and remember that another one is beyond it."""
        self.beyond = 1
        value: i64 = MOST64
        return -value - 1 if negative else value

    def wrapped(self, value: u64) -> i64:
        """Return 64 bits as a signed number."""
        if value > MOST64:
            return -(LOW64 - value) - 1
        return value

    def trim(self, pad: i64, begin: i64, end: i64) -> i64:
        """Shorten spans by the padding at their ends."""
        lane = begin
        while lane < end:
            start = self.lanes[ops.STARTS * MOST + lane]
            length = self.lanes[ops.LENGTHS * MOST + lane]
            while length > 0 and self.framing.data[start + length - 1] == pad:
                length -= 1
            self.lanes[ops.LENGTHS * MOST + lane] = length
            lane += 1
        return 0

    def valid(self, begin: i64, end: i64) -> i64:
        """End before a span that is not UTF-8."""
        lane = begin
        while lane < end:
            start = self.lanes[ops.STARTS * MOST + lane]
            if not self.utf8.valid(start, self.lanes[ops.LENGTHS * MOST + lane]):
                return lane
            lane += 1
        return end

    def zeros(self, offset: i64, nbytes: i64, begin: i64, end: i64) -> i64:
        """End before a record whose bytes at an offset are not zero."""
        lane = begin
        while lane < end:
            at = self.lanes[ops.PLACES * MOST + lane] + offset
            stop = at + nbytes
            while at < stop:
                if self.framing.data[at]:
                    return lane
                at += 1
            lane += 1
        return end
