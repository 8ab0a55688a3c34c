# cython: boundscheck=False, wraparound=False, show_performance_hints=False
# Bounds are not checked: no loop goes beyond a newline, with which the lines end.
"""Digests of record JSON: one number per line for the contents of a record, wherever it is."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t

from fxframework.kernels.pools cimport PairMap
from fxframework.kernels.rows cimport Loop, Rows

from fxframework.kernels.hashing import FIRST, SECOND, SEED

cdef enum:
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
    # Bytes of ``{"record":"``, with which a line begins.
    HEAD = 11

# Keys as numbers of their bytes: b"record" and so on, the first byte in the highest place.
cdef int64_t RECORD = 0x7265636F7264, CODE = 0x636F6465, OFFSET = 0x6F6666736574
cdef int64_t NBYTES = 0x6E6279746573, REFS = 0x72656673, RAW = 0x726177


@cython.final
cdef class JsonText:
    """Lines of JSON in ``data``, which must end with a newline; no method reads past a newline.

    ``mixed`` is the hash so far of what ``take`` was called for.
    """

    cdef uint64_t seed, multiplier, other, mixed
    cdef const uint8_t[::1] data

    def __init__(self):
        self.seed = SEED
        self.multiplier = FIRST
        self.other = SECOND
        self.data = b"\n"
        self.mixed = 0

    def read_from(self, data):
        """Set the lines."""
        self.data = data

    cdef int64_t begin(self) noexcept nogil:
        """Begin a new hash."""
        self.mixed = self.seed
        return 0

    cdef int64_t number(self, uint64_t value) noexcept nogil:
        """Mix a number into the hash."""
        cdef uint64_t mixed
        mixed = (self.mixed ^ value) * self.multiplier
        mixed = (mixed ^ (mixed >> 29)) * self.other
        self.mixed = mixed ^ (mixed >> 32)
        return 0

    cdef int64_t key(self, int64_t start, int64_t end) noexcept nogil:
        """Return the bytes of a short key between its quotes as a number; 0 for a long one."""
        cdef int64_t name, at
        if end - start > 8 + 1:
            return 0
        name = 0
        at = start + 1
        while at < end - 1 and self.data[at] != NEWLINE:
            name = (name << 8) | self.data[at]
            at += 1
        return name

    cdef int64_t string_end(self, int64_t at) noexcept nogil:
        """Return the byte after a string that begins at ``at``; -1 if it does not end."""
        cdef int64_t byte
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

    cdef int64_t literal_end(self, int64_t at) noexcept nogil:
        """Return the byte after a number, true, false or null."""
        cdef int64_t byte
        while True:
            byte = self.data[at]
            if byte in (COMMA, CLOSE_OBJECT, CLOSE_LIST, NEWLINE):
                return at
            at += 1

    cdef bint is_whole(self, int64_t at, int64_t end) noexcept nogil:
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

    cdef int64_t value_end(self, int64_t at) noexcept nogil:
        """Return the byte after a value of any kind; -1 if it does not end in its line."""
        cdef int64_t depth, byte
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

    cdef int64_t take(self, int64_t at, int64_t end) noexcept nogil:
        """Mix the bytes of a token into the hash."""
        cdef uint64_t mixed, word, high
        cdef int64_t size
        mixed = self.mixed
        size = end - at
        word = 0
        while at + 8 <= end:
            word = (
                self.data[at]
                | <int64_t>self.data[at + 1] << 8
                | <int64_t>self.data[at + 2] << 16
                | <int64_t>self.data[at + 3] << 24
            )
            high = (
                self.data[at + 4]
                | <int64_t>self.data[at + 5] << 8
                | <int64_t>self.data[at + 6] << 16
                | <int64_t>self.data[at + 7] << 24
            )
            word |= high << 32
            mixed = (mixed ^ word) * self.multiplier
            mixed = (mixed ^ (mixed >> 29)) * self.other
            mixed ^= mixed >> 32
            at += 8
        word = 0
        while at < end:
            word = (word << 8) | self.data[at]
            at += 1
        mixed = (mixed ^ word ^ (size << 56)) * self.multiplier
        mixed = (mixed ^ (mixed >> 29)) * self.other
        self.mixed = mixed ^ (mixed >> 32)
        return 0


@cython.final
cdef class LineRows(Rows):
    """A row per line: its digest, the number of its kind, and its first byte.

    The kind is -1 for a line that the kernel does not know how to digest.
    """

    cdef public uint64_t[::1] digest
    cdef public int32_t[::1] kind
    cdef public int64_t[::1] start

    COLUMNS = ("digest", "u8"), ("kind", "i4"), ("start", "i8")


@cython.final
cdef class LineDigests(Loop):
    """Digests the lines of ``data`` into ``lines``.

    The digest is of all but what says where a record is: ``refs`` and the adjacent pair of
    ``offset`` and ``nbytes``, at all levels. ``raw`` is part of it where everything else but
    ``record`` and ``code`` is integers and bools. A line whose first key is not ``record``, or that
    has blanks between its tokens, or those keys in another order, has the kind -1.

    ``data`` must end with a newline. ``kinds`` numbers the kinds in order of first mention.
    """

    cdef const uint8_t[::1] data
    cdef JsonText text
    cdef readonly LineRows lines
    cdef readonly PairMap kinds
    cdef int64_t pos

    def __init__(self):
        self.data = b"\n"
        self.text = JsonText()
        self.lines = LineRows()
        self.kinds = PairMap()
        self.pos = 0

    def read_from(self, data):
        """Digest these lines next."""
        self.data = data
        self.text.read_from(data)
        self.pos = 0

    cdef int64_t step(self) except? -9 nogil:
        """Digest all lines; empty ones have no row."""
        cdef int64_t end, start, kind, row
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

    cdef int64_t line(self, int64_t start) except? -9 nogil:
        """Digest the line at byte ``start``; return the number of its kind, or -1."""
        cdef int64_t end, kind
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

    cdef bint members(self) noexcept nogil:
        """Digest the members after the kind, up to the end of the line; return whether all are."""
        cdef int64_t depth, plain, judged, at, byte, end, name, last
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

    cdef bint place(self, int64_t at) noexcept nogil:
        """Skip an offset and the size that follows it; return whether they are there."""
        cdef int64_t start, end
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
