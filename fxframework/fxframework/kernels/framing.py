"""Framing of declared formats: where records begin and end, and where to go on after damage."""

from __future__ import annotations

from typing import final

from fxframework.kernels import ops
from fxframework.kernels.annotations import Array, Bytes, View, flag, i32, i64, public, u64
from fxframework.kernels.buffers import full

__all__ = ["Framing"]

(
    KIND_AT, KIND_BYTES, KIND_SHIFT, KIND_MASK, SUB_AT, SUB_BYTES, SUB_SHIFT, SUB_MASK,
    SIZE_AT, SIZE_BYTES, SIZE_SHIFT, SIZE_MASK, UNIT, PLUS, FIXED, HEAD, MOST, ALIGN, PADDED,
    MARK_KIND, MARK_AT, MARK_BYTES, MARK_VALUE, OTHER,
) = range(24)  # fmt: skip
ENTRY = 4
"""Numbers per entry of ``kinds``: kind, second kind (-1: any), size (0: by header or by fields),
and the most that a header may say (0: any)."""
DIRECT = 4096
CONFIRMED = 3
"""Records in a row that show that they begin off the alignment."""
BEYOND = -(1 << 62)
"""A size that is larger than the file, or than LARGEST if that is growing."""
LARGEST = 1 << 40
LOW64 = 0xFFFFFFFFFFFFFFFF
MOST64 = 0x7FFFFFFFFFFFFFFF


@final
class Framing:
    """Tells the kind and the size of the record at a byte, and finds the next one after damage.

    ``data`` is uint8, ``words`` its whole words (int64). ``numbers`` (int64) has the places of the
    kind, of a second kind and of the size (each: offset, bytes, shift, mask; bytes 0 if there is
    none), then UNIT to OTHER as named above; ``kinds`` has the entries, ordered by kind.

    ``frame`` returns the number of an entry, or why there is no record: UNKNOWN (``size`` skips
    it), CUT, BAD_SIZE, NO_KIND (its size is not known), NO_ORDER (neither byte order fits) or
    PADDING (``size`` zero bytes). ``size`` is 0 if the fields say where the record ends.

    If the file is ``growing`` (1), more may follow: what may be the beginning of a record of a
    known kind, or of padding, is CUT, and damage that a record at the end of the data would end
    reaches to this end.
    """

    data: Bytes
    words: View[i64]
    numbers: View[i64]
    kinds: View[i64]
    direct: Array[i32]
    end: i64
    total: i64
    entries: i64
    kind: i64
    size: i64
    big: i64
    searching: i64
    growing: i64

    def __init__(
        self, data: memoryview, words: memoryview, numbers: memoryview, kinds: memoryview
    ) -> None:
        self.data = memoryview(data)
        self.words = memoryview(words)
        self.numbers = memoryview(numbers)
        self.kinds = memoryview(kinds)
        self.total = len(data)
        self.entries = len(kinds) // ENTRY
        self.size = 0
        self.big = 0
        self.searching = 0
        self.growing = 0
        self.kind = 0
        self.end = 0
        self.direct = full(DIRECT, "i4", -1)
        number = self.entries
        while number > 0:
            number -= 1
            if 0 <= self.kinds[ENTRY * number] < DIRECT:
                self.direct[self.kinds[ENTRY * number]] = number

    def load(self, at: i64, nbytes: i64, big: i64) -> i64:
        """Return the integer of 1 to 8 bytes at a byte, 8 bytes with a sign."""
        if nbytes == 8 and at & 7 == 0 and big == 0:
            return self.words[at >> 3]
        value: u64 = 0
        index = 0
        if big:
            while index < nbytes:
                value = (value << 8) | self.data[at + index]
                index += 1
        elif nbytes == 4:
            return self.half(at)
        elif nbytes == 8:
            value = self.half(at + 4)
            value = (value << 32) | self.half(at)
        else:
            while index < nbytes:
                octet: u64 = self.data[at + index]
                value |= octet << (8 * index)
                index += 1
        return self.wrapped(value)

    def half(self, at: i64) -> i64:
        """Return the unsigned integer of 4 bytes, little-endian, at a byte."""
        value = self.data[at + 3]
        value = (value << 8) | self.data[at + 2]
        value = (value << 8) | self.data[at + 1]
        return (value << 8) | self.data[at]

    def wrapped(self, value: u64) -> i64:
        """Return 64 bits as a signed number."""
        if value > MOST64:
            return -(LOW64 - value) - 1
        return value

    @public
    def frame(self, at: i64) -> i64:
        """Find the entry and the size of the record at a byte."""
        self.size = 0
        rest = self.total - at
        if rest < self.numbers[HEAD]:
            return self.not_framed(at, ops.CUT)
        big = self.big
        kind = 0
        if self.numbers[KIND_BYTES]:
            kind = self.load(at + self.numbers[KIND_AT], self.numbers[KIND_BYTES], big)
            kind = (kind >> self.numbers[KIND_SHIFT]) & self.numbers[KIND_MASK]
        self.kind = kind
        if self.numbers[MARK_BYTES] and kind == self.numbers[MARK_KIND]:
            big = self.order(at)
            if big < 0:
                cut = at + self.numbers[MARK_AT] + self.numbers[MARK_BYTES] > self.total
                return ops.CUT if cut and self.growing else ops.NO_ORDER
            self.big = big
        entry = self.entry(at, kind, big)
        size = self.numbers[FIXED]
        if self.numbers[SIZE_BYTES]:
            size = self.announced(at, big)
            if size == BEYOND and self.growing == 0:
                return self.not_framed(at, ops.CUT)
            if not self.possible(entry, size):
                return self.not_framed(at, ops.BAD_SIZE)
        elif not size and entry >= 0:
            size = self.kinds[ENTRY * entry + 2]
        if size > rest:
            return self.not_framed(at, ops.BAD_SIZE if self.growing and entry < 0 else ops.CUT)
        self.size = size
        if entry >= 0:
            return entry
        if size:
            return self.not_framed(at, ops.UNKNOWN)
        return self.not_framed(at, ops.NO_KIND)

    def possible(self, entry: i64, size: i64) -> flag:
        """Whether the header of a record may have this size."""
        if size < self.numbers[HEAD] or size <= 0 or size & (self.numbers[ALIGN] - 1):
            return False
        most = self.numbers[MOST] if entry < 0 else self.kinds[ENTRY * entry + 3]
        return most == 0 or size <= most

    def announced(self, at: i64, big: i64) -> i64:
        """Return the size in the header of a record; BEYOND if it is larger than any may be."""
        size = self.load(at + self.numbers[SIZE_AT], self.numbers[SIZE_BYTES], big)
        size = (size >> self.numbers[SIZE_SHIFT]) & self.numbers[SIZE_MASK]
        if size < 0 or size > (LARGEST if self.growing else self.total):
            return BEYOND
        return size * self.numbers[UNIT] + self.numbers[PLUS]

    def entry(self, at: i64, kind: i64, big: i64) -> i64:
        """Return the entry for a kind; -1 if there is none."""
        number = 0
        if 0 <= kind < DIRECT:
            number = self.direct[kind]
            if number < 0:
                return self.numbers[OTHER]
        second = 0
        if self.numbers[SUB_BYTES]:
            second = self.load(at + self.numbers[SUB_AT], self.numbers[SUB_BYTES], big)
            second = (second >> self.numbers[SUB_SHIFT]) & self.numbers[SUB_MASK]
        while number < self.entries:
            wanted = self.kinds[ENTRY * number + 1]
            if self.kinds[ENTRY * number] == kind and (wanted < 0 or wanted == second):
                return number
            number += 1
        return self.numbers[OTHER]

    def order(self, at: i64) -> i64:
        """Return 1 if the mark of the byte order is big-endian, 0 if little, -1 if neither."""
        place = at + self.numbers[MARK_AT]
        if place + self.numbers[MARK_BYTES] > self.total:
            return -1
        if self.load(place, self.numbers[MARK_BYTES], 0) == self.numbers[MARK_VALUE]:
            return 0
        if self.load(place, self.numbers[MARK_BYTES], 1) == self.numbers[MARK_VALUE]:
            return 1
        return -1

    def not_framed(self, at: i64, why: i64) -> i64:
        """Return why there is no record, which may be that there is padding."""
        if not self.padded(at):
            return why
        return ops.CUT if self.growing and at + self.size == self.total else ops.PADDING

    def padded(self, at: i64) -> flag:
        """Whether padding begins at a byte; ``size`` is then that of all of it."""
        if self.searching or not self.numbers[PADDED]:
            return False
        end = at
        while end < self.total and self.data[end] == 0:
            end += 1
        if end < self.total:
            end -= (end - at) & (self.numbers[ALIGN] - 1)
        if end == at:
            return False
        self.size = end - at
        return True

    @public
    def find(self, at: i64, origin: i64) -> i64:
        """Return the first byte from ``at`` on where a record fits, or the end of the data.

        A record fits if its kind is known, its size possible, and if another one of a known kind,
        or the end of the data, follows. Off the alignment, which counts from ``origin``, it is the
        first of CONFIRMED records.
        """
        big = self.big
        unit = self.numbers[ALIGN]
        self.searching = 1
        self.end = 0
        while at < self.total:
            self.big = big
            if self.follow(at, CONFIRMED if (at - origin) & (unit - 1) else 2):
                break
            at = max(at + 1, self.end)
        self.searching = 0
        self.big = big
        return at

    def follow(self, at: i64, wanted: i64) -> flag:
        """Whether so many records follow from a byte; the last may be one that cannot be seen.

        It cannot where the data ends, and behind a record whose fields say how long it is.
        """
        count = 0
        found = self.frame(at)
        while found >= 0:
            count += 1
            if count == wanted:
                return True
            at += self.size
            if self.size == 0 or (at == self.total and self.growing == 0):
                return count + 1 == wanted
            found = self.frame(at)
        if self.growing and count and found == ops.CUT:
            self.end = self.total
        return False
