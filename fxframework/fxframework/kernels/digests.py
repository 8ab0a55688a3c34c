"""Digests of record JSON: one number per line for the contents of a record, wherever it is."""

from __future__ import annotations

from fxframework.kernels.annotations import Bytes, Column, Fallible, flag, i32, i64, u64
from fxframework.kernels.hashing import FIRST, SECOND, SEED
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap
from fxframework.kernels.rows import Rows

__all__ = ["LineDigests", "LineRows"]

LOW64 = 0xFFFFFFFFFFFFFFFF
NEWLINE = 0x0A
QUOTE = 0x22
COMMA = 0x2C
MINUS = 0x2D
POINT = 0x2E
ZERO = 0x30
NINE = 0x39
COLON = 0x3A
UPPER_E = 0x45
OPEN_LIST = 0x5B
BACKSLASH = 0x5C
CLOSE_LIST = 0x5D
LOWER_A = 0x61
LOWER_E = 0x65
LOWER_F = 0x66
LOWER_N = 0x6E
LOWER_T = 0x74
LOWER_Z = 0x7A
OPEN_OBJECT = 0x7B
CLOSE_OBJECT = 0x7D
# Keys as numbers of their bytes: b"record" and so on, the first byte in the highest place.
RECORD = 0x7265636F7264
CODE = 0x636F6465
OFFSET = 0x6F6666736574
NBYTES = 0x6E6279746573
REFS = 0x72656673
RAW = 0x726177
HEAD = 11
"""Bytes of ``{"record":"``, with which a line begins."""


class LineRows(Rows):
    """A row per line: its digest, the number of its kind, and its first byte.

    The kind is -1 for a line that the kernel does not know how to digest.
    """

    digest: Column[u64]
    kind: Column[i32]
    start: Column[i64]


class LineDigests(Kernel):
    """Digests the lines of ``data`` into ``lines``.

    The digest is of all but what says where a record is: ``refs`` and the adjacent pair of
    ``offset`` and ``nbytes``, at all levels. ``raw`` is part of it where everything else but
    ``record`` and ``code`` is integers and bools. A line whose first key is not ``record``, or that
    has blanks between its tokens, or those keys in another order, has the kind -1.

    ``data`` must end with a newline. ``kinds`` numbers the kinds in order of first mention.
    """

    seed: u64
    multiplier: u64
    other: u64
    data: Bytes
    lines: LineRows
    kinds: PairMap
    mixed: u64
    pos: i64

    def __init__(self) -> None:
        self.seed = SEED
        self.multiplier = FIRST
        self.other = SECOND
        self.data = memoryview(b"\n")
        self.lines = LineRows()
        self.kinds = PairMap()
        self.mixed = 0
        self.pos = 0

    def read_from(self, data: bytes) -> None:
        """Digest these lines next."""
        self.data = memoryview(data)
        self.pos = 0

    def step(self) -> Fallible[i64]:
        """Digest all lines; empty ones have no row."""
        end = len(self.data)
        while self.pos < end:
            start = self.pos
            if self.data[start] == NEWLINE:
                self.pos = start + 1
                continue
            kind = self.line(start)
            if kind < 0:
                while self.data[self.pos] != NEWLINE:
                    self.pos += 1
            if self.lines.rows == self.lines.room:
                self.lines.grow()
            row = self.lines.rows
            self.lines.digest[row] = self.mixed
            self.lines.kind[row] = kind
            self.lines.start[row] = start
            self.lines.rows = row + 1
        return 0

    def line(self, start: i64) -> Fallible[i64]:
        """Digest the line at byte ``start``; return the number of its kind, or -1."""
        self.pos = start
        if self.data[start] != OPEN_OBJECT or self.data[start + 1] != QUOTE:
            return -1
        if self.key(start + 1, start + 9) != RECORD:
            return -1
        if self.data[start + 8] != QUOTE or self.data[start + 9] != COLON:
            return -1
        if self.data[start + 10] != QUOTE:
            return -1
        end = self.string_end(start + HEAD - 1)
        if end < 0:
            return -1
        self.mixed = self.seed
        self.take(start + HEAD, end - 1)
        kind = self.kinds.number(self.mixed, end - start)
        self.pos = end
        return kind if self.members() else -1

    def members(self) -> flag:
        """Digest the members after the kind, up to the end of the line; return whether all are."""
        depth = 1
        plain = True
        judged = False
        """Whether the next value decides if all values are integers and bools."""
        while True:
            at = self.pos
            byte = self.data[at]
            if byte == COMMA:
                self.pos = at + 1
                continue
            if byte == QUOTE:
                end = self.string_end(at)
                if end < 0:
                    return False
                if self.data[end] != COLON:
                    self.take(at, end)
                    if judged:
                        plain = False
                        judged = False
                    self.pos = end
                    continue
                name = self.key(at, end)
                self.pos = end + 1
                if name == REFS:
                    self.pos = self.value_end(end + 1)
                    if self.pos < 0:
                        self.pos = end
                        return False
                    continue
                if name == OFFSET:
                    if not self.place(end + 1):
                        return False
                    continue
                if name == NBYTES:
                    return False
                if depth == 1 and name == RAW:
                    last = -1
                    if self.data[end + 1] == QUOTE:
                        last = self.string_end(end + 1)
                    if last < 0 or self.data[last] != CLOSE_OBJECT:
                        return False
                    if plain:
                        self.take(at, last)
                    self.pos = last
                    continue
                self.take(at, end)
                judged = depth == 1 and name not in (RECORD, CODE)
                continue
            if byte in (OPEN_OBJECT, OPEN_LIST):
                depth += 1
                self.take(at, at + 1)
                plain = plain and not judged
                judged = False
                self.pos = at + 1
            elif byte in (CLOSE_OBJECT, CLOSE_LIST):
                depth -= 1
                self.take(at, at + 1)
                self.pos = at + 1
                if depth == 0:
                    return self.data[at + 1] == NEWLINE
            elif byte == MINUS or ZERO <= byte <= NINE or LOWER_A <= byte <= LOWER_Z:
                end = self.literal_end(at)
                self.take(at, end)
                if judged and not self.whole(at, end):
                    plain = False
                judged = False
                self.pos = end
            else:
                return False

    def key(self, start: i64, end: i64) -> i64:
        """Return the bytes of a short key between its quotes as a number; 0 for a long one."""
        if end - start > 8 + 1:
            return 0
        name = 0
        at = start + 1
        while at < end - 1 and self.data[at] != NEWLINE:
            name = (name << 8) | self.data[at]
            at += 1
        return name

    def place(self, at: i64) -> flag:
        """Skip an offset and the size that follows it; return whether they are there."""
        start = at
        while ZERO <= self.data[at] <= NINE:
            at += 1
        if at == start or self.data[at] != COMMA or self.data[at + 1] != QUOTE:
            return False
        end = self.string_end(at + 1)
        if end < 0 or self.key(at + 1, end) != NBYTES or self.data[end] != COLON:
            return False
        at = end + 1
        while ZERO <= self.data[at] <= NINE:
            at += 1
        self.pos = at
        return at > end + 1 and self.data[at] in (COMMA, CLOSE_OBJECT)

    def string_end(self, at: i64) -> i64:
        """Return the byte after a string that begins at ``at``; -1 if it does not end."""
        at += 1
        while True:
            byte = self.data[at]
            if byte == QUOTE:
                return at + 1
            if byte == NEWLINE:
                return -1
            at += 1
            if byte == BACKSLASH:
                if self.data[at] == NEWLINE:
                    return -1
                at += 1

    def literal_end(self, at: i64) -> i64:
        """Return the byte after a number, true, false or null."""
        while True:
            byte = self.data[at]
            if byte in (COMMA, CLOSE_OBJECT, CLOSE_LIST, NEWLINE):
                return at
            at += 1

    def whole(self, at: i64, end: i64) -> flag:
        """Return whether a literal is an integer or a bool."""
        if self.data[at] in (LOWER_T, LOWER_F):
            return True
        if self.data[at] == LOWER_N:
            return False
        while at < end:
            if self.data[at] in (POINT, LOWER_E, UPPER_E):
                return False
            at += 1
        return True

    def value_end(self, at: i64) -> i64:
        """Return the byte after a value of any kind; -1 if it does not end in its line."""
        depth = 0
        while True:
            byte = self.data[at]
            if byte == QUOTE:
                at = self.string_end(at)
                if at < 0:
                    return -1
            elif byte in (OPEN_OBJECT, OPEN_LIST):
                depth += 1
                at += 1
            elif byte in (CLOSE_OBJECT, CLOSE_LIST):
                depth -= 1
                at += 1
            elif byte == NEWLINE:
                return -1
            elif byte in (COMMA, COLON):
                at += 1
            else:
                at = self.literal_end(at + 1)
            if depth <= 0:
                return at

    def take(self, at: i64, end: i64) -> i64:
        """Mix the bytes of a token into the digest."""
        mixed: u64 = self.mixed
        size = end - at
        word: u64 = 0
        while at + 8 <= end:
            word = (
                self.data[at]
                | self.data[at + 1] << 8
                | self.data[at + 2] << 16
                | self.data[at + 3] << 24
            )
            high: u64 = (
                self.data[at + 4]
                | self.data[at + 5] << 8
                | self.data[at + 6] << 16
                | self.data[at + 7] << 24
            )
            word |= high << 32
            mixed = ((mixed ^ word) * self.multiplier) & LOW64
            mixed = ((mixed ^ (mixed >> 29)) * self.other) & LOW64
            mixed ^= mixed >> 32
            at += 8
        word = 0
        while at < end:
            word = (word << 8) | self.data[at]
            at += 1
        mixed = ((mixed ^ word ^ (size << 56)) * self.multiplier) & LOW64
        mixed = ((mixed ^ (mixed >> 29)) * self.other) & LOW64
        self.mixed = mixed ^ (mixed >> 32)
        return 0
