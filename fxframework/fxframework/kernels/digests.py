"""Digests of record JSON: one number per line for the contents of a record, wherever it is."""

from __future__ import annotations

from fxframework.kernels.annotations import Bytes, Column, Fallible, flag, i32, i64, u64
from fxframework.kernels.json_text import JsonText
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap
from fxframework.kernels.rows import Rows

__all__ = ["LineDigests", "LineRows"]

NEWLINE = 0x0A
QUOTE = 0x22
COMMA = 0x2C
MINUS = 0x2D
ZERO = 0x30
NINE = 0x39
COLON = 0x3A
OPEN_LIST = 0x5B
CLOSE_LIST = 0x5D
LOWER_A = 0x61
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

    data: Bytes
    text: JsonText
    lines: LineRows
    kinds: PairMap
    pos: i64

    def __init__(self) -> None:
        self.data = memoryview(b"\n")
        self.text = JsonText()
        self.lines = LineRows()
        self.kinds = PairMap()
        self.pos = 0

    def read_from(self, data: bytes) -> None:
        """Digest these lines next."""
        self.data = memoryview(data)
        self.text.read_from(data)
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
            row = self.lines.add_row()
            self.lines.digest[row] = self.text.mixed
            self.lines.kind[row] = kind
            self.lines.start[row] = start
        return 0

    def line(self, start: i64) -> Fallible[i64]:
        """Digest the line at byte ``start``; return the number of its kind, or -1."""
        self.pos = start
        if self.data[start] != OPEN_OBJECT or self.data[start + 1] != QUOTE:
            return -1
        if self.text.key(start + 1, start + 9) != RECORD:
            return -1
        if self.data[start + 8] != QUOTE or self.data[start + 9] != COLON:
            return -1
        if self.data[start + 10] != QUOTE:
            return -1
        end = self.text.string_end(start + HEAD - 1)
        if end < 0:
            return -1
        self.text.begin()
        self.text.take(start + HEAD, end - 1)
        kind = self.kinds.number(self.text.mixed, end - start)
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
                end = self.text.string_end(at)
                if end < 0:
                    return False
                if self.data[end] != COLON:
                    self.text.take(at, end)
                    if judged:
                        plain = False
                        judged = False
                    self.pos = end
                    continue
                name = self.text.key(at, end)
                self.pos = end + 1
                if name == REFS:
                    self.pos = self.text.value_end(end + 1)
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
                        last = self.text.string_end(end + 1)
                    if last < 0 or self.data[last] != CLOSE_OBJECT:
                        return False
                    if plain:
                        self.text.take(at, last)
                    self.pos = last
                    continue
                self.text.take(at, end)
                judged = depth == 1 and name not in (RECORD, CODE)
                continue
            if byte in (OPEN_OBJECT, OPEN_LIST):
                depth += 1
                self.text.take(at, at + 1)
                plain = plain and not judged
                judged = False
                self.pos = at + 1
            elif byte in (CLOSE_OBJECT, CLOSE_LIST):
                depth -= 1
                self.text.take(at, at + 1)
                self.pos = at + 1
                if depth == 0:
                    return self.data[at + 1] == NEWLINE
            elif byte == MINUS or ZERO <= byte <= NINE or LOWER_A <= byte <= LOWER_Z:
                end = self.text.literal_end(at)
                self.text.take(at, end)
                if judged and not self.text.is_whole(at, end):
                    plain = False
                judged = False
                self.pos = end
            else:
                return False

    def place(self, at: i64) -> flag:
        """Skip an offset and the size that follows it; return whether they are there."""
        start = at
        while ZERO <= self.data[at] <= NINE:
            at += 1
        if at == start or self.data[at] != COMMA or self.data[at + 1] != QUOTE:
            return False
        end = self.text.string_end(at + 1)
        if end < 0 or self.text.key(at + 1, end) != NBYTES or self.data[end] != COLON:
            return False
        at = end + 1
        while ZERO <= self.data[at] <= NINE:
            at += 1
        self.pos = at
        return at > end + 1 and self.data[at] in (COMMA, CLOSE_OBJECT)
