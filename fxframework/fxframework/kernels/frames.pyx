# distutils: extra_compile_args = -O2
# cython: boundscheck=True, cdivision=True, show_performance_hints=False
"""Frames: where the records of a declared format begin and end, thousands at a time.

``fxframework.wire.framing`` says what the numbers are and makes a ``Frames`` for a format.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memchr

import numpy as np

cdef enum:
    # Numbers of ``numbers``, in the order of ``fxframework.wire.framing``.
    KIND_AT, KIND_BYTES, KIND_SHIFT, KIND_MASK
    SUB_AT, SUB_BYTES, SUB_SHIFT, SUB_MASK
    SIZE_AT, SIZE_BYTES, SIZE_SHIFT, SIZE_MASK
    UNIT, PLUS, FIXED, HEAD, MOST, ALIGN, PADDED, POWER
    MARK_KIND, MARK_AT, MARK_BYTES, MARK_VALUE, OTHER
    NUMBERS

cdef enum:
    # Numbers of each entry of ``kinds``.
    ENTRY_KIND, ENTRY_SECOND, ENTRY_SIZE, ENTRY_MOST, ENTRY
    # Numbers of each entry of ``prefixes``.
    PREFIX_AT = 0
    PREFIX_BYTES, PREFIX_SHIFT, PREFIX_MASK, PREFIX_UNIT, PREFIX_PLUS, PREFIX_LEAST
    PREFIX_TEXT_AT, PREFIX_UNTIL, PREFIX

cdef enum:
    DIRECT = 4096           # kinds below it are found in a table
    CONFIRMED = 3           # records in a row that show that they begin off the alignment

cdef int64_t LARGEST = <int64_t>1 << 40     # the largest size in a header of a growing file
cdef int64_t LARGEST_POWER = 31             # as ``fxframework.wire.families`` has it
cdef int64_t BEYOND = -(<int64_t>1 << 62)   # a size that no record can have

# Why there is no record: the numbers of ``fxframework.wire.framing``.
cdef int64_t UNKNOWN = -1, CUT = -2, BAD_SIZE = -3, NO_KIND = -4, NO_ORDER = -5, PADDING = -6

# Why ``read`` stopped.
cdef enum:
    FULL, AT_END, ASKS


cdef class Frames:
    """Finds records one after another, and the next one after damage.

    ``data`` is uint8. ``numbers``, ``kinds`` and ``prefixes`` (all int64, contiguous) are those of
    ``fxframework.wire.framing.Numbers``. The rows of the last ``read`` are ``places``, ``sizes``,
    ``kinds_found`` (int64 of shape (room,)), ``entries`` (int32) and ``orders`` (uint8, 1 for big
    endian): an entry is the number of a kind, or says why there is no record.

    ``big`` is the byte order at hand, ``growing`` whether more bytes may follow the end of the
    data, ``asking`` whether damage is left to the caller, who knows where it ends.
    """

    cdef const uint8_t[::1] data
    cdef int64_t[NUMBERS] numbers
    cdef const int64_t[::1] kinds, prefixes
    cdef int32_t[::1] direct
    cdef int64_t[::1] place, size, kind
    cdef int32_t[::1] entry
    cdef uint8_t[::1] order
    cdef readonly object places, sizes, kinds_found, entries, orders
    cdef readonly int64_t next, found_size, found_kind
    cdef public int big, growing, asking
    cdef int64_t total, count, beyond_end
    cdef bint searching
    cdef int64_t[256] absent    # by byte: from where on the data have none

    def __init__(self, data, numbers, kinds, prefixes, int64_t room):
        self.data, self.kinds, self.prefixes = data, kinds, prefixes
        self.total = self.data.shape[0]
        self.count = self.kinds.shape[0] // ENTRY
        if len(numbers) != NUMBERS or self.prefixes.shape[0] != PREFIX * self.count:
            raise ValueError("the numbers of a framing are not as many as its kinds ask for")
        cdef int64_t number
        for number in range(256):
            self.absent[number] = self.total
        direct = np.full(DIRECT, -1, np.int32)
        for number in range(NUMBERS):
            self.numbers[number] = numbers[number]
        for number in range(self.count - 1, -1, -1):
            if 0 <= self.kinds[ENTRY * number + ENTRY_KIND] < DIRECT:
                direct[self.kinds[ENTRY * number + ENTRY_KIND]] = number
        self.direct = direct
        self.places = np.empty(room, np.int64)
        self.sizes = np.empty(room, np.int64)
        self.kinds_found = np.empty(room, np.int64)
        self.entries = np.empty(room, np.int32)
        self.orders = np.empty(room, np.uint8)
        self.place, self.size, self.kind = self.places, self.sizes, self.kinds_found
        self.entry, self.order = self.entries, self.orders

    def read(self, int64_t at, int64_t most, int64_t end):
        """Fill rows from byte ``at`` on; return how many there are, and why it stopped.

        It stops at ``most`` rows, and behind the first row that ends at byte ``end`` or later
        (0), at the end of the data (1), or before a record whose size or damage whose end only the
        caller can tell (2). ``next`` is the byte behind the last row.
        """
        cdef int64_t rows = 0, entry, size, kind, limit = min(most, self.place.shape[0])
        cdef int64_t usual_kind = 0, usual_entry = 0, usual_size = 0
        cdef int why = FULL, big = self.big
        # Whether the kind at hand has come before, so that entry and size need not be looked up:
        # the place of the next record then does not wait for them.
        cdef bint known = False
        cdef bint may_repeat = self.numbers[SUB_BYTES] == 0
        if end > self.total:
            end = self.total
        with nogil:
            while rows < limit and at < end:
                size = 0
                if known and self.total - at >= self.numbers[HEAD]:
                    kind = usual_kind
                    if self.numbers[KIND_BYTES]:
                        kind = self.part(at, KIND_AT, big)
                    if kind == usual_kind:
                        entry = usual_entry
                        size = usual_size
                        if self.numbers[SIZE_BYTES]:
                            size = self.announced(at)
                            if not self.possible(entry, size):
                                size = 0
                        if size > self.total - at:
                            size = 0
                if size == 0:
                    entry = self.frame(at)
                    size = self.found_size
                    kind = self.found_kind
                    if entry >= 0:
                        if size == 0:
                            known = False
                            size = self.by_prefix(at, entry)
                            if size == 0:
                                self.big = big
                                why = ASKS
                                break
                        else:
                            usual_kind, usual_entry, usual_size = kind, entry, size
                            known = may_repeat and not (
                                self.numbers[MARK_BYTES] and kind == self.numbers[MARK_KIND])
                        big = self.big
                    else:
                        self.big = big
                        if entry != UNKNOWN and entry != PADDING:
                            if self.growing and entry == CUT:
                                size = self.total - at
                            elif self.asking:
                                why = ASKS
                                break
                            else:
                                size = self.find(at + 1, at) - at
                self.place[rows] = at
                self.size[rows] = size
                self.kind[rows] = kind
                self.entry[rows] = <int32_t>entry
                self.order[rows] = <uint8_t>big
                rows += 1
                at += size
        if why == FULL and at >= self.total:
            why = AT_END
        self.next = at
        return rows, why

    def entry_at(self, int64_t at):
        """Return the entry of the record at a byte of the data, or why there is no record.

        ``found_size`` is its size (0 if only its fields tell it), or that of an unknown record or
        of padding; ``found_kind`` is the number of its kind.
        """
        if not 0 <= at <= self.total:
            raise IndexError(f"byte {at} lies outside of {self.total} bytes")
        return self.frame(at)

    def next_fitting(self, int64_t at, int64_t origin):
        """Return the first byte from ``at`` on where a record fits, as ``read`` finds it."""
        if not 0 <= at <= self.total:
            raise IndexError(f"byte {at} lies outside of {self.total} bytes")
        return self.find(at, origin)

    cdef inline int64_t load(self, int64_t at, int64_t nbytes, int big) noexcept nogil:
        """Return the integer of 1 to 8 bytes at a byte; 8 bytes wrap to a sign."""
        # Safe: whoever calls this has compared ``at + nbytes`` with the end of the data, either
        # itself or, for what lies in the head of a record, in ``frame``.
        cdef const uint8_t* octets = &self.data[at]
        cdef uint64_t value = 0
        cdef int64_t index
        if big:
            for index in range(nbytes):
                value = value << 8 | octets[index]
        elif nbytes == 8:
            for index in range(8):  # one load, once compiled
                value |= <uint64_t>octets[index] << 8 * index
        elif nbytes == 4:
            for index in range(4):
                value |= <uint64_t>octets[index] << 8 * index
        else:
            for index in range(nbytes):
                value |= <uint64_t>octets[index] << 8 * index
        return <int64_t>value

    cdef int64_t part(self, int64_t at, int64_t first, int big) noexcept nogil:
        """Return a number of a record's head: its place, bytes, shift and mask are in a row."""
        cdef int64_t word = self.load(at + self.numbers[first], self.numbers[first + 1], big)
        return <int64_t>(<uint64_t>word >> self.numbers[first + 2]) & self.numbers[first + 3]

    cdef int64_t frame(self, int64_t at) noexcept nogil:
        """Return the entry of the record at a byte, or why there is none; set its size."""
        cdef int64_t rest = self.total - at, kind = 0, size, entry
        cdef int order
        self.found_size = 0
        self.found_kind = 0
        if rest < self.numbers[HEAD]:
            return self.not_framed(at, CUT)
        if self.numbers[KIND_BYTES]:
            kind = self.part(at, KIND_AT, self.big)
        self.found_kind = kind
        if self.numbers[MARK_BYTES] and kind == self.numbers[MARK_KIND]:
            order = self.order_at(at)
            if order < 0:
                if self.growing and self.numbers[MARK_AT] + self.numbers[MARK_BYTES] > rest:
                    return CUT
                return NO_ORDER
            self.big = order
        entry = self.entry_of(at, kind)
        size = self.numbers[FIXED]
        if self.numbers[SIZE_BYTES]:
            size = self.announced(at)
            if size == BEYOND and not self.growing:
                return self.not_framed(at, CUT)
            if not self.possible(entry, size):
                return self.not_framed(at, BAD_SIZE)
        elif size == 0 and entry >= 0:
            size = self.kinds[ENTRY * entry + ENTRY_SIZE]
        if size > rest:
            return self.not_framed(at, BAD_SIZE if self.growing and entry < 0 else CUT)
        self.found_size = size
        if entry >= 0:
            return entry
        return self.not_framed(at, UNKNOWN if size else NO_KIND)

    cdef int64_t by_prefix(self, int64_t at, int64_t entry) noexcept nogil:
        """Return the size of a record of which one number tells it; 0 if that is not so here."""
        cdef int64_t first = PREFIX * entry, rest = self.total - at, size, number
        cdef int64_t least = self.prefixes[first + PREFIX_LEAST]
        if least <= 0 or least > rest:
            return 0
        size = self.prefixes[first + PREFIX_PLUS]
        if self.prefixes[first + PREFIX_BYTES]:
            # Safe: the number lies in the bytes that the record has at least.
            number = self.load(at + self.prefixes[first + PREFIX_AT],
                               self.prefixes[first + PREFIX_BYTES], self.big)
            number = <int64_t>(<uint64_t>number >> self.prefixes[first + PREFIX_SHIFT])
            number &= self.prefixes[first + PREFIX_MASK]
            if number < 0 or number > (rest - size) // self.prefixes[first + PREFIX_UNIT]:
                return 0
            size += number * self.prefixes[first + PREFIX_UNIT]
        if self.prefixes[first + PREFIX_UNTIL] >= 0:
            size += self.text_length(at + self.prefixes[first + PREFIX_TEXT_AT],
                                     <int>self.prefixes[first + PREFIX_UNTIL])
        if size < least or size > rest or 0 < self.kinds[ENTRY * entry + ENTRY_MOST] < size:
            return 0
        # Behind the last record of a growing file there may be more of it.
        return 0 if self.growing and size == rest else size

    cdef int64_t text_length(self, int64_t start, int byte) noexcept nogil:
        """Return the bytes before the first ``byte`` from ``start`` on; BEYOND if there is none."""
        cdef const uint8_t* octets
        cdef const void* found
        if start >= self.total or start >= self.absent[byte]:
            return BEYOND
        octets = &self.data[start]
        found = memchr(octets, byte, self.total - start)  # safe: up to the end of the data
        if found == NULL:
            self.absent[byte] = start
            return BEYOND
        return <const uint8_t*>found - octets

    cdef bint possible(self, int64_t entry, int64_t size) noexcept nogil:
        """Whether the head of a record may say this size."""
        cdef int64_t most
        if size < self.numbers[HEAD] or size <= 0 or size & (self.numbers[ALIGN] - 1):
            return False
        most = self.numbers[MOST] if entry < 0 else self.kinds[ENTRY * entry + ENTRY_MOST]
        return most == 0 or size <= most

    cdef int64_t announced(self, int64_t at) noexcept nogil:
        """Return the size that a record's head says; BEYOND if it is larger than any may be."""
        cdef int64_t size = self.part(at, SIZE_AT, self.big)
        if self.numbers[POWER]:
            return self.numbers[UNIT] << size if 0 <= size <= LARGEST_POWER else BEYOND
        if size < 0 or size > (LARGEST if self.growing else self.total):
            return BEYOND
        return size * self.numbers[UNIT] + self.numbers[PLUS]

    cdef int64_t entry_of(self, int64_t at, int64_t kind) noexcept nogil:
        """Return the entry of a kind; that of other kinds, or -1, if it has none."""
        cdef int64_t number = 0, second = 0, wanted
        if 0 <= kind < DIRECT:
            number = self.direct[kind]
            if number < 0:
                return self.numbers[OTHER]
        if self.numbers[SUB_BYTES]:
            second = self.part(at, SUB_AT, self.big)
        while number < self.count:
            # The entry of all other kinds, if there is one, is the last and has no kind.
            if number != self.numbers[OTHER] and self.kinds[ENTRY * number + ENTRY_KIND] == kind:
                wanted = self.kinds[ENTRY * number + ENTRY_SECOND]
                if wanted < 0 or wanted == second:
                    return number
            number += 1
        return self.numbers[OTHER]

    cdef int order_at(self, int64_t at) noexcept nogil:
        """Return 1 if the mark of the byte order is big endian, 0 if little, -1 if neither."""
        cdef int64_t place = at + self.numbers[MARK_AT], nbytes = self.numbers[MARK_BYTES]
        if nbytes > self.total - place:
            return -1
        if self.load(place, nbytes, 0) == self.numbers[MARK_VALUE]:
            return 0
        return 1 if self.load(place, nbytes, 1) == self.numbers[MARK_VALUE] else -1

    cdef int64_t not_framed(self, int64_t at, int64_t why) noexcept nogil:
        """Return why there is no record, which may be that there is padding."""
        cdef int64_t end = at
        if self.searching or not self.numbers[PADDED]:
            return why
        while end < self.total and self.data[end] == 0:
            end += 1
        if end < self.total:
            end -= (end - at) & (self.numbers[ALIGN] - 1)
        if end == at:
            return why
        self.found_size = end - at
        return CUT if self.growing and end == self.total else PADDING

    cdef int64_t find(self, int64_t at, int64_t origin) noexcept nogil:
        """Return the first byte from ``at`` on where a record fits, or the end of the data.

        A record fits if its kind is known, its size possible, and if another one of a known kind,
        or the end of the data, follows. Off the alignment, which counts from ``origin``, it is the
        first of CONFIRMED records.
        """
        cdef int big = self.big
        cdef int64_t kind = self.found_kind, wanted
        self.searching = True
        self.beyond_end = 0
        while at < self.total:
            self.big = big
            wanted = CONFIRMED if (at - origin) & (self.numbers[ALIGN] - 1) else 2
            if self.follow(at, wanted):
                break
            at = max(at + 1, self.beyond_end)
        self.searching = False
        self.big = big
        self.found_kind = kind
        return at

    cdef bint follow(self, int64_t at, int64_t wanted) noexcept nogil:
        """Whether so many records follow from a byte; the last may be one that cannot be seen.

        It cannot where the data ends, and behind a record whose fields say how long it is.
        """
        cdef int64_t count = 0, entry = self.frame(at)
        while entry >= 0:
            count += 1
            if count == wanted:
                return True
            at += self.found_size
            if self.found_size == 0 or (at == self.total and not self.growing):
                return count + 1 == wanted
            entry = self.frame(at)
        if self.growing and count and entry == CUT:
            self.beyond_end = self.total
        return False
