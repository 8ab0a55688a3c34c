# cython: boundscheck=True, cdivision=True, show_performance_hints=False
"""Frames: where the records of a declared format begin and end, and the items in them.

``fxframework.wire.framing`` says what the numbers are and makes a ``Frames`` for a format.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memchr, memcpy

import numpy as np

cdef enum:
    # Numbers of ``numbers``, in the order of ``fxframework.wire.framing``.
    KIND_AT, KIND_BYTES, KIND_SHIFT, KIND_MASK
    SUB_AT, SUB_BYTES, SUB_SHIFT, SUB_MASK
    SIZE_AT, SIZE_BYTES, SIZE_SHIFT, SIZE_MASK
    UNIT, PLUS, FIXED, HEAD, MOST, ALIGN, PADDED, POWER
    MARK_KIND, MARK_AT, MARK_BYTES, MARK_VALUE, OTHER, LEAST, CLOSED
    NUMBERS
    # Numbers of each entry of ``kinds``.
    ENTRY_KIND = 0
    ENTRY_SECOND, ENTRY_SIZE, ENTRY_MOST, ENTRY_LEAST, ENTRY_MASK, ENTRY
    # Numbers of each entry of ``prefixes``.
    PREFIX_AT = 0
    PREFIX_BYTES, PREFIX_SHIFT, PREFIX_MASK, PREFIX_UNIT, PREFIX_PLUS, PREFIX_LEAST
    PREFIX_TEXT_AT, PREFIX_UNTIL, PREFIX_ALIGN, PREFIX
    # Numbers of each entry of ``likely``.
    LIKELY_AT = 0
    LIKELY_BYTES, LIKELY_SHIFT, LIKELY_MASK, LIKELY_LEAST, LIKELY_SPAN, LIKELY
    # Numbers of each part of an item that has parts, and what they are.
    PART_HOW = 0
    PART_PLUS, PART_SHIFT, PART_MASK, PART_INLINE, PART_ALIGN
    PART_SHORT, PART_BAD, PART_LONG, PART
    COUNTED = 0     # so many bytes as a number in the head says
    STATED          # up to where the item says that it ends
    TEXTS           # texts, each behind a byte with its size; a size of zero ends them
    UNTIL           # up to a byte that ends it
    ABSENT          # bytes that are there where a number in the head is 0
    LISTED          # as many items of another kind as a number in the head says
    NO_PART         # the item has no more
    # Numbers of each way in which contents may lie behind a head: the bits under a mask have a
    # value, of two other masks some bit is set, and the next way that heads of the kind may have.
    HEAD_MASK = 0
    HEAD_VALUE, HEAD_SOME, HEAD_MORE, HEAD_NEXT, HEAD_NUMBERS
    # Why ``read`` stopped.
    FULL = 0
    AT_END, ASKS
    WORD = 8
    DIRECT = 4096           # kinds below it are found in a table
    CONFIRMED = 3           # records in a row that show where records begin
    LONG_RUN = 16           # so many in a row show it wherever they end

cdef int64_t LARGEST = <int64_t>1 << 40     # the largest size in a header of a growing file
cdef int64_t LARGEST_POWER = 31             # as ``fxframework.wire.families`` has it
cdef int64_t BEYOND = -(<int64_t>1 << 62)   # a size that no record can have
cdef int64_t SMALL = <int64_t>1 << 31       # the product of two numbers below it does not overflow
cdef int64_t OF_NO_KIND = -1                # the fault of an item whose kind is not declared

# Why there is no record: the numbers of ``fxframework.wire.framing``.
cdef int64_t UNKNOWN = -1, CUT = -2, BAD_SIZE = -3, NO_KIND = -4, NO_ORDER = -5, PADDING = -6
cdef int64_t BEHIND = -7, HIDING = -8


cdef inline int64_t load(const uint8_t* octets, int64_t nbytes, bint big) noexcept nogil:
    """Return an integer of 1 to 8 bytes; 8 bytes wrap to a sign."""
    cdef uint64_t value = 0
    cdef int64_t index
    if big:
        for index in range(nbytes):
            value = value << 8 | octets[index]
    elif nbytes == 8:
        memcpy(&value, octets, 8)  # one load, once compiled
    elif nbytes == 4:
        memcpy(&value, octets, 4)
    else:
        for index in range(nbytes):
            value |= <uint64_t>octets[index] << 8 * index
    return <int64_t>value


@cython.final
cdef class Items:
    """The items of the lists of many records, one list after another.

    An item is ``size`` bytes long, or as long as a number in its first ``head`` bytes says:
    ``place``, ``nbytes``, ``shift``, ``mask``, then ``unit`` and ``plus`` bytes. Where the number is
    a kind, ``sizes`` has pairs of kind and size, one after another, and ``plus`` is the size of all
    other kinds, 0 if there are none. Behind each comes padding to a multiple of ``pad`` from the
    start of its record.

    Or an item has ``parts`` (int64 of shape (ways, parts, PART)) behind its first word, which has
    all numbers that say how long they are; ``ways`` (int32) has the way of each kind, -1 for kinds
    that are not declared, by ``kind_shift`` and the size of the array, a power of two. Kinds from
    ``way_of_others`` on are not declared either, but their items can be passed over. The size that
    such an item states, in its first word too, has to be that of its parts.

    With ``heads`` (int64 of shape (ways, HEAD_NUMBERS)) the items are records, whose contents may
    lie in several ways behind their heads. Records may hold items of another kind, ``listed``.
    """

    cdef int64_t size, head, pad, place, nbytes, shift, mask, unit, plus
    cdef int64_t pad_mask  # of a gap, where ``pad`` is a power of two; else 0
    cdef int head_bits     # 2 to this power is at most the bytes of the shortest item
    cdef const int64_t[::1] sizes
    cdef int64_t kind_shift, kind_mask, way_of_others
    cdef const int32_t[::1] ways
    cdef const int64_t[:, :, ::1] parts
    cdef const int32_t* first_way
    cdef const int64_t* first_part
    cdef int64_t width
    cdef const int64_t[:, ::1] heads
    cdef Items listed
    cdef bint big, has_parts, has_heads

    def __init__(self, size, head, pad, big, place=0, nbytes=0, shift=0, mask=0, unit=1, plus=0,
                 sizes=(), kind_shift=0, ways=None, parts=None, way_of_others=0, heads=None, listed=None):
        self.sizes = np.array(sizes, np.int64)
        self.size, self.head, self.pad, self.big = size, head, pad, big
        self.place, self.nbytes, self.shift, self.mask = place, nbytes, shift, mask
        self.unit, self.plus = unit, plus
        if self.place + self.nbytes > max(self.head, self.size) or self.pad < 1:
            raise ValueError("the size of an item is not in its head")
        # Divisions took half of the time of ``walk``.
        self.pad_mask = 0 if pad & pad - 1 else pad - 1
        self.head_bits = max(1, head).bit_length() - 1
        self.has_parts = parts is not None
        if self.has_parts:
            self.ways, self.parts, self.kind_shift = ways, parts, kind_shift
            self.kind_mask, self.way_of_others = self.ways.shape[0] - 1, way_of_others
            if self.parts.shape[2] != PART or self.kind_mask & self.ways.shape[0]:
                raise ValueError("the numbers of an item are not as many as its parts ask for")
            if max(ways) >= self.parts.shape[0]:
                raise ValueError("an item has a way that there is not")
            # Safe: a way is a row of ``parts``, and is found by as many bits as there are ways.
            self.first_way, self.first_part = &self.ways[0], &self.parts[0, 0, 0]
            self.width = self.parts.shape[1]
        self.listed, self.has_heads = listed, heads is not None
        if self.has_heads:
            self.heads = heads
            if self.heads.shape[1] != HEAD_NUMBERS or self.heads.shape[0] != self.parts.shape[0]:
                raise ValueError("the numbers of heads are not as many as there are ways")
            if any(0 <= way <= number for number, way in enumerate(self.heads[:, HEAD_NEXT])):
                raise ValueError("the ways of a head do not end")

    def walk(self, const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] places,
             const int64_t[::1] limits, const int64_t[::1] counts):
        """Return the items of lists at ``places`` of records at ``starts``, up to ``limits``.

        A list behind its limit is empty. ``counts`` has their items, -1 for as many as there is room
        for. The result is begin, size, list and number in it of all items (int64 of shape (4,
        items)), and by list the place behind the last and its padding, and whether all of them fit.
        """
        cdef int64_t rows = starts.shape[0], row, at, limit, size, used = 0, left, first, room = 1
        cdef int64_t pad = self.pad, pad_mask = self.pad_mask
        ends, fit = np.empty(rows, np.int64), np.empty(rows, np.uint8)
        cdef int64_t[::1] end_of = ends
        cdef uint8_t[::1] fits_of = fit
        for row in range(rows):
            if not 0 <= places[row] <= data.shape[0] or limits[row] > data.shape[0]:
                raise IndexError(f"a list at bytes {places[row]} to {limits[row]} of {data.shape[0]}")
            size = max(0, limits[row] - places[row]) >> self.head_bits
            room += min(<uint64_t>counts[row], <uint64_t>size)  # -1 is more than there is room for
        items = np.empty((4, room), np.int64)
        cdef int64_t[:, ::1] column = items
        cdef int64_t* begin_of = &column[0, 0]
        cdef const uint8_t* octets = &data[0] if data.shape[0] else NULL
        for row in range(rows):
            at, limit, left, first = places[row], max(limits[row], places[row]), counts[row], used
            fits_of[row] = True
            while left and (left > 0 or at < limit):
                size = self.size_at(octets + at, at, limit)
                if size <= 0:
                    fits_of[row] = False
                    break
                begin_of[used], begin_of[room + used] = at, size  # safe: no item is shorter
                begin_of[2 * room + used], begin_of[3 * room + used] = row, used - first
                used += 1
                left -= 1
                at += size
                if pad_mask:
                    at = min(at + (starts[row] - at & pad_mask), limit)
                elif pad > 1:
                    at = min(at + (pad - (at - starts[row]) % pad) % pad, limit)
            end_of[row] = at
        return items[:, :used], ends, fit.view(bool)

    cdef inline int64_t size_at(self, const uint8_t* item, int64_t at, int64_t limit) noexcept nogil:
        """Return the size of the item at a byte; 0 if there is no room for it."""
        cdef int64_t index, size = self.size, number
        if limit - at < self.head or at == limit:
            return 0
        if self.nbytes:
            # Safe: the number lies within the item's head.
            number = load(item + self.place, self.nbytes, self.big)
            number = <int64_t>(<uint64_t>number >> self.shift) & self.mask
            size = self.plus
            if self.sizes.shape[0]:
                for index in range(0, self.sizes.shape[0] - 1, 2):
                    if self.sizes[index] == number:
                        size = self.sizes[index + 1]
                        break
            elif number < 0 or number > limit - at:
                return 0
            # A division takes longer than all else here.
            elif (number >= SMALL or self.unit >= SMALL) and number > (limit - at) // self.unit:
                return 0
            else:
                size += number * self.unit
        return size if self.head <= size <= limit - at else 0

    def chains(self, const uint8_t[::1] data, const int64_t[::1] starts, const int64_t[::1] limits):
        """Return the items that fill stretches of the data, from ``starts`` up to ``limits``.

        Of each: the row of its stretch, its begin, the place behind it, and the rule by which it
        cannot be read, or 0; int64 of shape (4, items). Such an item is as long as it states, or
        all that is left.
        """
        cdef int64_t rows = starts.shape[0], row, at, limit, fault = 0, used = 0
        cdef int64_t room = 8 * rows + 64
        items = np.empty((4, room), np.int64)
        cdef int64_t[:, ::1] column = items
        cdef int64_t* row_of = &column[0, 0]
        cdef const uint8_t* octets = &data[0] if data.shape[0] else NULL
        for row in range(rows):
            at, limit = starts[row], limits[row]
            # With this, reading up to the limit is safe.
            if not 0 <= at <= limit <= data.shape[0]:
                raise IndexError(f"a list at bytes {at} to {limit} of {data.shape[0]}")
            while at < limit:
                if used == room:
                    items = np.concatenate((items, np.empty_like(items)), axis=1)
                    room, column = 2 * room, items
                    row_of = &column[0, 0]
                # Safe: each of the four rows has ``room`` numbers.
                row_of[used], row_of[room + used] = row, at
                at = self.end_of(octets, at, limit, &fault)
                row_of[2 * room + used], row_of[3 * room + used] = at, fault
                used += 1
        return items[:, :used]

    cdef inline int64_t stated_size(self, int64_t word) noexcept nogil:
        """Return the size that the first word of an item states; 0 if it states none."""
        return ((word >> self.shift) & self.mask) * self.unit + self.plus

    cdef inline int64_t way_of(self, int64_t word) noexcept nogil:
        """Return the way of an item with this first word; -1 if its kind is not declared."""
        return self.first_way[(word >> self.kind_shift) & self.kind_mask]

    cdef inline int64_t end_of(
        self, const uint8_t* octets, int64_t at, int64_t limit, int64_t* fault
    ) noexcept nogil:
        """Return the place behind the item with parts at a byte, which ends by ``limit``.

        ``fault`` is set to the rule by which it cannot be read, or 0.
        """
        cdef int64_t word, way, length, end
        fault[0] = OF_NO_KIND
        if limit - at < WORD:
            return limit
        # Safe: whoever reads a first word has compared its end with the limit.
        word = load(octets + at, WORD, self.big)
        way = self.way_of(word)
        if way >= 0:
            end = self.end_of_way(octets, way, word, at, limit, fault)
            if fault[0] == 0:
                return end
        length = self.stated_size(word)
        return at + length if 0 < length <= limit - at else limit

    cdef inline int64_t end_of_way(
        self, const uint8_t* octets, int64_t way, int64_t word, int64_t begin, int64_t limit,
        int64_t* fault
    ) noexcept nogil:
        """Return the place behind the parts of an item, which lie in one way.

        ``fault`` is set to the rule by which they cannot be read, or 0.
        """
        cdef int64_t at = begin, number, length, left
        cdef const int64_t* part = self.first_part + way * self.width * PART
        fault[0] = 0
        for left in range(self.width):
            if part[PART_HOW] != COUNTED:
                if part[PART_HOW] == NO_PART:
                    break
                at = self.end_of_part(octets, part, word, begin, at, limit, fault)
            else:
                number = (word >> part[PART_SHIFT]) & part[PART_MASK]
                length = number
                if part[PART_INLINE]:
                    # Bytes follow if this bit is set; other numbers but 0 refer to a table, or to
                    # nothing, which is bad.
                    if number & part[PART_INLINE]:
                        length = number & (part[PART_INLINE] - 1)
                    elif number:
                        fault[0] = part[PART_BAD]
                        length = 0
                at += part[PART_PLUS] + ((length + part[PART_ALIGN] - 1) & -part[PART_ALIGN])
            if at > limit and fault[0] == 0:
                fault[0] = part[PART_SHORT]
            if fault[0]:
                break
            part += PART
        return at

    cdef int64_t end_of_part(
        self, const uint8_t* octets, const int64_t* part, int64_t word, int64_t begin,
        int64_t at, int64_t limit, int64_t* fault
    ) noexcept nogil:
        """Return the place behind a part of the item that begins at byte ``begin``."""
        cdef int64_t end, number = (word >> part[PART_SHIFT]) & part[PART_MASK]
        at += part[PART_PLUS]
        if part[PART_HOW] == STATED:
            end = begin + self.stated_size(word)
            return end if end >= at else limit + 1
        if part[PART_HOW] == ABSENT:
            return at if number else at + part[PART_INLINE]
        if part[PART_HOW] == LISTED:
            while number and at < limit:
                end = self.listed.end_of(octets, at, limit, fault)
                if fault[0] or not self.listed.is_exact(octets, at, end):
                    return limit + 1
                at = end
                number -= 1
            return limit + 1 if number else at
        return self.end_of_texts(octets, part, at, limit, fault) if at < limit else limit + 1

    cdef int64_t end_of_texts(
        self, const uint8_t* octets, const int64_t* part, int64_t at, int64_t limit,
        int64_t* fault
    ) noexcept nogil:
        """Return the place behind a text that a byte ends, or behind texts that a size of 0 ends.

        ``limit + 1`` if the end is not there.
        """
        cdef int64_t count = 0, size
        cdef const void* ending
        if part[PART_HOW] == UNTIL:
            ending = memchr(octets + at, <int>part[PART_MASK], limit - at)
            return limit + 1 if ending == NULL else <const uint8_t*>ending - octets + 1
        while at < limit:
            size = octets[at]
            at += 1
            if size == 0:
                return at
            if count == part[PART_INLINE]:
                fault[0] = part[PART_BAD]
                return at
            if size > part[PART_MASK]:
                fault[0] = part[PART_LONG]
                return at
            count += 1
            at += size
        return limit + 1

    cdef bint fill(
        self, const uint8_t* octets, int64_t at, int64_t limit, int64_t most
    ) noexcept nogil:
        """Whether items with parts fill a stretch exactly: 1 to ``most``, each as it states."""
        cdef int64_t end, count = 0, fault = 0
        if self.has_heads:
            return self.is_filled(octets, at, limit)
        while at < limit and count < most:
            if limit - at < WORD:
                return False
            end = self.end_of(octets, at, limit, &fault)
            if fault or not self.is_exact(octets, at, end):
                return False
            at = end
            count += 1
        return at == limit and count > 0

    cdef inline bint is_exact(self, const uint8_t* octets, int64_t at, int64_t end) noexcept nogil:
        """Whether the item at a byte, whose parts end at ``end``, is of a kind and says so."""
        cdef int64_t word = load(octets + at, WORD, self.big)
        if self.way_of(word) >= self.way_of_others:
            return False
        return self.nbytes == 0 or self.stated_size(word) == end - at

    cdef bint is_filled(self, const uint8_t* octets, int64_t at, int64_t limit) noexcept nogil:
        """Whether the contents of a record, which has a head, end at ``limit`` in some way."""
        cdef int64_t word = load(octets + at, WORD, self.big), fault = 0
        cdef int64_t way = self.way_of_head(self.way_of(word), word)
        while way >= 0:
            if self.end_of_way(octets, way, word, at, limit, &fault) == limit and fault == 0:
                return True
            way = self.way_of_head(self.heads[way, HEAD_NEXT], word)
        return False

    cdef int64_t way_of_head(self, int64_t way, int64_t word) noexcept nogil:
        """Return the first way, from ``way`` on, of records of which a word may be the head; or -1."""
        while way >= 0 and (
            word & self.heads[way, HEAD_MASK] != self.heads[way, HEAD_VALUE]
            or word & self.heads[way, HEAD_SOME] == 0
            or word & self.heads[way, HEAD_MORE] == 0
        ):
            way = self.heads[way, HEAD_NEXT]
        return way


@cython.final
cdef class Frames:
    """Finds records one after another, and the next one after damage.

    ``data`` is uint8. ``numbers``, ``kinds`` and ``prefixes`` (all int64, contiguous) are those of
    ``fxframework.wire.framing.Numbers``. The rows of the last ``read`` are ``places``, ``sizes``,
    ``kinds_found`` (int64 of shape (room,)), ``entries`` (int32) and ``orders`` (uint8, 1 for big
    endian): an entry is the number of a kind, or says why there is no record.

    ``big`` is the byte order at hand, ``growing`` whether more bytes may follow the end of the
    data, ``asking`` whether damage is left to the caller, who knows where it ends.

    ``rule`` says where reading goes on (``fxframework.wire.framing.Resumption``). With
    ``splitting``, a record that its items do not fill ends where others begin that theirs do, if
    ``confirm`` agrees, which is given the place and the size of the record.
    ``behind`` are items of which one follows each record: a row of its own. Records of one size
    whose first byte is one of ``joined`` (uint8 of shape (256,)) share a row with those before them.
    """

    cdef const uint8_t[::1] data, joined
    cdef int64_t[NUMBERS] numbers
    cdef const int64_t[::1] kinds, prefixes
    cdef int32_t[::1] direct
    cdef int64_t[::1] place, size, kind
    cdef int32_t[::1] entry
    cdef uint8_t[::1] order
    cdef readonly object places, sizes, kinds_found, entries, orders
    cdef readonly int64_t next, found_size, found_kind
    cdef public int big, growing, asking, splitting
    cdef public object confirm
    cdef public int64_t total
    cdef int64_t count, beyond_end, content_end
    cdef Items items, behind
    cdef const int64_t[:, ::1] likely
    cdef bint searching, has_rule, has_items, has_behind, has_joined, alone, by_contents
    cdef int64_t step, items_at, most_items
    cdef int64_t[256] absent    # by byte: from where on the data have none

    def __init__(self, data, numbers, kinds, prefixes, int64_t room, rule=None, behind=None, joined=None):
        self.data, self.kinds, self.prefixes = data, kinds, prefixes
        self.total = self.data.shape[0]
        self.count = self.kinds.shape[0] // ENTRY
        if len(numbers) != NUMBERS or self.prefixes.shape[0] != PREFIX * self.count:
            raise ValueError("the numbers of a framing are not as many as its kinds ask for")
        cdef int64_t number
        self.absent = [self.total] * 256
        self.numbers = numbers
        direct = np.full(DIRECT, -1, np.int32)
        for number in range(self.count - 1, -1, -1):
            if 0 <= self.kinds[ENTRY * number + ENTRY_KIND] < DIRECT:
                direct[self.kinds[ENTRY * number + ENTRY_KIND]] = number
        self.direct = direct
        room += behind is not None  # a record and what is behind it are in one reading
        self.places, self.sizes, self.kinds_found = np.empty((3, room), np.int64)
        self.entries, self.orders = np.empty(room, np.int32), np.empty(room, np.uint8)
        self.place, self.size, self.kind = self.places, self.sizes, self.kinds_found
        self.entry, self.order = self.entries, self.orders
        self.step, self.has_rule = 1, rule is not None
        if self.has_rule:
            self.likely, self.alone, self.step = rule.likely, rule.alone, rule.step
            self.items, self.items_at, self.most_items = rule.items, rule.items_at, rule.most
            self.has_items = self.items is not None
            self.by_contents = self.has_items and self.items.has_heads
            if self.likely.shape[1] != LIKELY or self.step < 1:
                raise ValueError("the numbers of a rule are not as many as it needs")
        self.behind, self.has_behind = behind, behind is not None
        self.joined, self.has_joined = joined, joined is not None
        if self.has_items and not self.items.has_parts or self.has_behind and not self.behind.has_parts:
            raise ValueError("items that fill a record, or follow it, have parts")

    def read(self, int64_t at, int64_t most, int64_t end):
        """Fill rows from byte ``at`` on; return how many there are, and why it stopped.

        It stops at ``most`` records, and behind the first row that ends at byte ``end`` or later
        (0), at the end of the data (1), or before a record whose size or damage whose end only the
        caller can tell (2). ``next`` is the byte behind the last row.
        """
        cdef int64_t rows = 0, entry, size, kind, inner, limit = min(most, self.place.shape[0] - self.has_behind)
        cdef int why = FULL, big = self.big
        cdef bint may_split = self.splitting and self.has_items
        end = min(end, self.total)
        with nogil:
            while rows < limit and at < end:
                if not may_split and self.numbers[SUB_BYTES] == 0:
                    limit = self.plain_rows(&at, &rows, limit, end)
                    if rows >= limit or at >= end:
                        break
                entry = self.frame(at)
                size = self.found_size
                kind = self.found_kind
                if entry >= 0:
                    if size == 0:
                        size = self.by_prefix(at, entry)
                        if size == 0:
                            self.big = big
                            why = ASKS
                            break
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
                if may_split and (entry >= 0 or entry == UNKNOWN):
                    inner = self.hidden(at, size)
                    if inner and self.confirm is not None:
                        with gil:
                            inner = inner if self.confirm(at, size) else 0
                    if inner:
                        entry = HIDING
                        size = inner - at
                self.put(rows, at, size, kind, entry)
                rows += 1
                at += size
                if self.has_behind and entry >= 0:
                    self.put_behind(&at, &rows)
        if why == FULL and at >= self.total:
            why = AT_END
        self.next = at
        return rows, why

    @cython.boundscheck(False)  # ``read`` has as many rows
    cdef inline void put(self, int64_t row, int64_t at, int64_t size, int64_t kind, int64_t entry) noexcept nogil:
        """Fill a row."""
        self.place[row], self.size[row], self.kind[row] = at, size, kind
        self.entry[row], self.order[row] = <int32_t>entry, <uint8_t>self.big

    cdef void put_behind(self, int64_t* at, int64_t* row) noexcept nogil:
        """Fill a row with what is behind a record, and go behind it, if there is something."""
        cdef int64_t fault = 0, end
        if at[0] < self.total:
            end = self.behind.end_of(&self.data[0], at[0], self.total, &fault)
            if fault == 0:
                self.put(row[0], at[0], end - at[0], 0, BEHIND)
                at[0] = end
                row[0] += 1

    @cython.boundscheck(False)
    cdef int64_t plain_rows(self, int64_t* next_at, int64_t* next_row, int64_t limit, int64_t end) noexcept nogil:
        """Fill rows up to the next record that ``frame`` has to look at; return how many may be filled.

        Entry and bounds of a kind are looked up once for all that follow one another: the place of
        the next record then does not wait for them.
        """
        cdef int64_t at = next_at[0], row = next_row[0], kind = 0, usual = 0, entry = -1, size = 0
        cdef int64_t said, nbytes, fitting, mask = 0, least = 0, most = 0, align = self.numbers[ALIGN] - 1
        cdef int64_t kind_bytes = self.numbers[KIND_BYTES], size_bytes = self.numbers[SIZE_BYTES]
        cdef int64_t last = min(end - 1, self.total - self.numbers[HEAD]), power = self.numbers[POWER]
        while row < limit and at <= last:
            if kind_bytes:
                kind = self.part(at, KIND_AT, self.big)
            if kind != usual or entry < 0:
                usual, entry = kind, self.entry_of(at, kind)
                if entry < 0 or self.numbers[MARK_BYTES] and kind == self.numbers[MARK_KIND]:
                    break
                least = most = size = self.numbers[FIXED] or self.kinds[ENTRY * entry + ENTRY_SIZE]
                if size_bytes:
                    mask, most = self.kinds[ENTRY * entry + ENTRY_MASK], self.kinds[ENTRY * entry + ENTRY_MOST]
                    least = max(self.numbers[LEAST], self.kinds[ENTRY * entry + ENTRY_LEAST])
            if size_bytes:
                said = self.load(at + self.numbers[SIZE_AT], size_bytes, self.big)
                said = <int64_t>(<uint64_t>said >> self.numbers[SIZE_SHIFT]) & mask
                if <uint64_t>said > <uint64_t>(LARGEST_POWER if power else self.total):
                    break
                size = self.numbers[UNIT] << said if power else said * self.numbers[UNIT] + self.numbers[PLUS]
                if size & align:
                    break
            if size <= 0 or size < least or 0 < most < size or size > self.total - at:
                break
            nbytes = size
            if self.has_joined and self.joined[self.data[at]]:
                fitting = min(last, self.total - size)
                while at + nbytes <= fitting and row + 1 < limit and self.joined[self.data[at + nbytes]]:
                    nbytes, limit = nbytes + size, limit - 1
            self.put(row, at, nbytes, kind, entry)
            row += 1
            at += nbytes
            if self.has_behind:
                self.put_behind(&at, &row)
        next_at[0], next_row[0] = at, row
        return limit

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

    @cython.boundscheck(False)
    cdef inline int64_t load(self, int64_t at, int64_t nbytes, int big) noexcept nogil:
        """Return the integer of 1 to 8 bytes at a byte; 8 bytes wrap to a sign."""
        # Safe: whoever calls this has compared ``at + nbytes`` with the end of the data, either
        # itself or, for what lies in the head of a record, in ``frame``.
        return load(&self.data[at], nbytes, big)

    cdef inline int64_t part(self, int64_t at, int64_t first, int big) noexcept nogil:
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
        if entry < 0 and self.numbers[CLOSED]:
            return self.not_framed(at, NO_KIND)
        size = self.numbers[FIXED]
        if self.numbers[SIZE_BYTES]:
            size = self.announced(at, entry)
            if size == BEYOND and not self.growing:
                return self.not_framed(at, CUT)
            if not self.possible(entry, size):
                return self.not_framed(at, BAD_SIZE)
        elif size == 0 and entry >= 0:
            size = self.kinds[ENTRY * entry + ENTRY_SIZE]
        if size > rest:
            return self.not_framed(at, BAD_SIZE if self.growing and entry < 0 else CUT)
        self.found_size = size
        self.content_end = at + size
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
        self.content_end = at + size
        size = (size + self.prefixes[first + PREFIX_ALIGN] - 1) & -self.prefixes[first + PREFIX_ALIGN]
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

    cdef inline bint possible(self, int64_t entry, int64_t size) noexcept nogil:
        """Whether the head of a record may say this size."""
        cdef int64_t most
        if size < self.numbers[LEAST] or size <= 0 or size & (self.numbers[ALIGN] - 1):
            return False
        if entry >= 0 and size < self.kinds[ENTRY * entry + ENTRY_LEAST]:
            return False
        most = self.numbers[MOST] if entry < 0 else self.kinds[ENTRY * entry + ENTRY_MOST]
        return most == 0 or size <= most

    cdef inline int64_t announced(self, int64_t at, int64_t entry) noexcept nogil:
        """Return the size that a record's head says; BEYOND if it is larger than any may be."""
        cdef int64_t size = self.said(at, entry)
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
        while self.total - end >= WORD and self.load(end, WORD, 0) == 0:
            end += WORD
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
        first of CONFIRMED records. A format's own rule says it otherwise (``goes_on``).
        """
        cdef int big = self.big
        cdef int64_t kind = self.found_kind, wanted, place = -1
        self.searching = True
        self.beyond_end = 0
        if self.by_contents:
            place = self.behind_contents(origin)
        if place >= 0:
            at = place
        elif self.has_rule:
            at += (self.step - (at - origin) % self.step) % self.step
        while at < self.total and place < 0:
            self.big = big
            if self.has_rule:
                if self.goes_on(at):
                    break
                at += self.step
                continue
            wanted = CONFIRMED if (at - origin) & (self.numbers[ALIGN] - 1) else 2
            if self.follow(at, wanted):
                break
            at = max(at + 1, self.beyond_end)
        self.searching = False
        self.big = big
        self.found_kind = kind
        return min(at, self.total)

    cdef bint goes_on(self, int64_t at) noexcept nogil:
        """Whether reading may go on at a byte, by the rule of the format.

        A record that its items fill is enough, if it is enough ``alone``. Else records follow that
        are likely, or without that, filled: CONFIRMED, or fewer up to the end of the data.
        """
        cdef int64_t count = 0, size
        cdef bint is_full
        if self.by_contents:
            return self.goes_on_by_contents(at)
        while count < CONFIRMED and at < self.total:
            size = self.likely_size(at)
            if size == 0:
                return False
            if self.has_items and (count == 0 or not self.alone):
                is_full = self.filled(at)
                if self.alone and is_full:
                    return True
                if not self.alone and not is_full:
                    return False
            at += size
            count += 1
        return True

    cdef bint goes_on_by_contents(self, int64_t at) noexcept nogil:
        """Whether a record that its contents fill is at a byte, or CONFIRMED of possible sizes.

        A head of a kind and a size alone may be any small number: behind such a record another one
        has to follow that is filled, or the end of the data.
        """
        cdef int64_t size = self.likely_size(at), end = at + size, count
        if size == 0:
            return False
        if self.filled(at) and (self.says_more(at) or end == self.total or self.is_full(end)):
            return True
        for count in range(CONFIRMED - 1):
            size = self.likely_size(end) if end < self.total else 0
            if size == 0:
                return False
            end += size
        return True

    cdef bint is_full(self, int64_t at) noexcept nogil:
        """Whether there is a record at a byte that its contents fill."""
        return at < self.total and self.likely_size(at) > 0 and self.filled(at)

    cdef int64_t kind_at(self, int64_t at) noexcept nogil:
        """Return the number of the kind of the record at a byte, whose head is there."""
        return self.part(at, KIND_AT, self.big)

    cdef inline int64_t said(self, int64_t at, int64_t entry) noexcept nogil:
        """Return the number that a record's head says as the size, whether it may be or not."""
        cdef int64_t mask = self.numbers[SIZE_MASK], number
        if entry >= 0:
            mask = self.kinds[ENTRY * entry + ENTRY_MASK]
        number = self.load(at + self.numbers[SIZE_AT], self.numbers[SIZE_BYTES], self.big)
        return <int64_t>(<uint64_t>number >> self.numbers[SIZE_SHIFT]) & mask

    cdef int64_t said_words(self, int64_t at) noexcept nogil:
        """Return the number that the head at a byte says as the size, by the entry of its kind."""
        return self.said(at, self.entry_of(at, self.kind_at(at)))

    cdef bint says_more(self, int64_t at) noexcept nogil:
        """Whether the first word of a record has bits beside its kind and its size."""
        cdef int64_t word = self.load(at, WORD, self.big)
        word &= ~(self.numbers[KIND_MASK] << self.numbers[KIND_SHIFT])
        return word & ~(self.numbers[SIZE_MASK] << self.numbers[SIZE_SHIFT]) != 0

    cdef int64_t behind_contents(self, int64_t at) noexcept nogil:
        """Return the place behind the contents of a damaged record, where records go on; -1 if none.

        Either the data ends there, or a record follows that its contents fill.
        """
        cdef const uint8_t* octets = &self.data[0]
        cdef int64_t word, way, end, fault = 0
        if self.total - at < WORD:
            return -1
        word = load(octets + at, WORD, self.big)
        way = self.items.way_of_head(self.items.way_of(word), word)
        while way >= 0:
            end = self.items.end_of_way(octets, way, word, at, self.total, &fault)
            if fault == 0 and (end == self.total or self.is_full(end)):
                return end
            way = self.items.way_of_head(self.items.heads[way, HEAD_NEXT], word)
        return -1

    cdef int64_t likely_size(self, int64_t at) noexcept nogil:
        """Return the size of the record at a byte if its head is likely; 0 if none is there."""
        cdef int64_t entry = self.frame(at), size = self.found_size, number, place, value
        if entry < 0:
            return 0
        if size == 0:
            size = self.by_prefix(at, entry)
        for number in range(self.likely.shape[0] if size else 0):
            place = at + self.likely[number, LIKELY_AT]
            if self.likely[number, LIKELY_BYTES] > self.total - place:
                return 0
            value = self.load(place, self.likely[number, LIKELY_BYTES], self.big)
            value = <int64_t>(<uint64_t>value >> self.likely[number, LIKELY_SHIFT])
            # Without a sign: a number below the least is a very large one.
            value = (value - self.likely[number, LIKELY_LEAST]) & self.likely[number, LIKELY_MASK]
            if <uint64_t>value > <uint64_t>self.likely[number, LIKELY_SPAN]:
                return 0
        return size

    cdef bint filled(self, int64_t at) noexcept nogil:
        """Whether its items fill the record at a byte, whose size was just found."""
        return self.items.fill(&self.data[0], at + self.items_at, self.content_end, self.most_items)

    cdef int64_t hidden(self, int64_t begin, int64_t size) noexcept nogil:
        """Return the byte at which others begin within a record of a damaged size; 0 if none do.

        Their items fill them, its own do not; LONG_RUN follow one another, or CONFIRMED, which pass
        its end. If no record is likely but for its items, CONFIRMED do, or fewer that end with it.
        Records that are known by their contents have to begin within it.
        """
        cdef int64_t end = begin + size, first = begin, at, count
        cdef int big = self.big
        cdef int64_t entry = self.frame(begin)
        if self.found_size == 0:
            self.by_prefix(begin, entry)
        if self.filled(begin):
            return 0
        self.searching = True
        while True:
            first += self.step
            if first >= end:
                break
            at = first
            count = 0
            while count < LONG_RUN and at < self.total:
                if at >= end and (count >= CONFIRMED or self.by_contents):
                    break
                size = self.likely_size(at)
                if size == 0 or not self.filled(at):
                    break
                at = self.behind_all(at + size)
                count += 1
                if not self.alone and (count == CONFIRMED or at == end):
                    break
            if count == LONG_RUN or (count >= CONFIRMED and (at >= end or not self.alone)) or (
                    count and not self.alone and (at == end or at == self.total)):
                break
        self.searching = False
        self.big = big
        return first if first < end else 0

    cdef int64_t behind_all(self, int64_t at) noexcept nogil:
        """Return the place behind what follows a record that ends at a byte."""
        cdef int64_t fault = 0, end
        if not self.has_behind or at >= self.total:
            return at
        end = self.behind.end_of(&self.data[0], at, self.total, &fault)
        return self.total + WORD if fault else end

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


cdef enum:
    # Of ``Alignment``.
    SHORT = 512         # bytes of a record that costs little if its header is wrong
    STRIDE = 64         # words that are looked at on one alignment before the others
    LONGEST = 1 << 15   # bytes before damage within which the record begins that may have it

NOTHING = np.zeros((0, 3), np.int64)


cdef class Alignment:
    """Finds the stretches behind which records go on off the alignment of those before them.

    ``frames`` are those of the whole data, whose records are whole words. First words may
    be ``opaque``: of records whose contents they do not measure; or ``weak``: parts of others look
    like them. ``timed`` are those of records that have a time in their second word, which of two
    that follow one another are less than ``soon`` apart. Each is int64 of shape (words, 3): a mask,
    the bits under it, and a mask of which some bit is set.

    A stretch ends where CONFIRMED records follow one another. The last record before a place where
    none follows belongs to it, since bytes may be missing in it, unless the header of the next one
    is there; so may the one before that. The time is in proportion to the data.
    """

    cdef Frames frames
    cdef const int64_t[:, ::1] opaque, weak, timed
    cdef int64_t soon, total
    cdef readonly int64_t pos
    cdef int64_t before, earlier    # records before ``pos``; -1 where there are none
    cdef int64_t end                # of the last run that is over before ``pos``

    def __init__(self, Frames frames, opaque=NOTHING, weak=NOTHING, timed=NOTHING, soon=0):
        if not frames.has_items:
            raise ValueError("an alignment needs items that fill records")
        self.frames = frames
        frames.searching = True
        self.total = frames.total
        self.before = self.earlier = -1
        self.opaque, self.weak, self.timed, self.soon = opaque, weak, timed, soon

    def stretches(self, int64_t until):
        """Walk on up to byte ``until``; return where stretches begin and end, a list of pairs."""
        cdef int64_t begin, place
        found = []
        while self.pos < until:
            self.walk(until)
            if self.pos >= until or self.goes_on():
                continue
            if self.pos - self.before > LONGEST:
                self.before = -1
            begin = self.pos
            with nogil:
                place = self.search()
            if place < self.total and (place - begin) % WORD:
                if self.before >= 0 and (place < begin or not self.behind(self.before, begin)):
                    begin = self.before
                found.append((begin, place))
            self.pos = place
            self.before = self.earlier = -1
        return found

    cdef void walk(self, int64_t until) noexcept nogil:
        """Pass over records as long as they follow one another."""
        cdef int64_t size = self.whole(self.pos)
        cdef bint sure = False
        while size and size <= self.total - self.pos and self.pos < until:
            self.before = self.pos if sure or self.earlier < 0 else self.earlier
            self.earlier = self.pos
            self.pos += size
            size = self.behind(self.earlier, self.pos)
            sure = 0 < size <= SHORT
            if not sure:
                size = self.whole(self.pos)

    cdef bint goes_on(self) noexcept nogil:
        """Move over zero words or one record at ``pos`` behind which records go on.

        Return whether they do, on the alignment.
        """
        cdef int64_t begin = self.pos, at = begin, after, run = 0, steps = 0, size
        while self.total - at >= WORD and self.word(at) == 0:
            at += WORD
        if at == begin:
            at += self.stated(at)
        after = at
        while at > begin and run < CONFIRMED and steps < LONG_RUN and self.total - at >= WORD:
            size = self.whole(at)
            run += size > 0
            if size == 0:
                size = self.stated(at)
            if size == 0:
                return False
            steps += 1
            at += size
        if after == begin or run < CONFIRMED and not 0 <= self.total - at < WORD:
            return False
        self.pos = after
        self.before = self.earlier = -1
        return True

    cdef int64_t search(self) noexcept nogil:
        """Return the first byte, on any alignment, where records follow; ``total`` if none do.

        It is looked for on each alignment in turn, a few words further each time.
        """
        cdef int64_t start = self.before if self.before >= 0 else self.pos, limit = start, shift, at
        cdef int64_t best = self.total
        cdef int64_t[WORD] next_of
        for shift in range(WORD):
            next_of[shift] = start + shift
            if start + shift < self.pos and (self.pos - start - shift) % WORD == 0:
                next_of[shift] = self.pos  # the record there follows the one before it
        while limit < self.total and best == self.total:
            limit += WORD * STRIDE
            for shift in range(WORD):
                at = next_of[shift]
                while at < limit and at < best:
                    if self.runs(at):
                        best = at
                    at = max(at + WORD, self.end)
                next_of[shift] = at
        return best

    cdef bint runs(self, int64_t begin) noexcept nogil:
        """Return whether enough records follow from a byte, which go on behind ``pos``.

        Set ``end`` to where they end if they are enough, but do not.
        """
        cdef int64_t at = begin, run = 0, size
        while run < CONFIRMED or at <= self.pos:
            size = self.whole(at)
            if size == 0 or size > self.total - at:
                break
            at += size
            run += 1
        self.end = at if at <= self.pos and run >= CONFIRMED else 0
        if at <= self.pos or run == 0 or not self.leads(begin):
            return False
        return run >= CONFIRMED or run == CONFIRMED - 1 and 0 <= self.total - at < WORD

    cdef int64_t word(self, int64_t at) noexcept nogil:
        """Return the word at a byte; 0 where none is left."""
        return self.frames.load(at, WORD, self.frames.big) if self.total - at >= WORD else 0

    cdef int64_t whole(self, int64_t at) noexcept nogil:
        """Return the size of the record at a byte that its items fill; 0 if none is.

        Of opaque ones, only one that is larger than others can be.
        """
        cdef int64_t size = self.size_at(at)
        if size and self.frames.filled(at):
            return size
        size = self.opaque_size(at)
        return size if size > WORD * self.frames.numbers[SIZE_MASK] else 0

    cdef int64_t stated(self, int64_t at) noexcept nogil:
        """Return the size of a record by the header at a byte, which few words look like."""
        cdef int64_t size = self.opaque_size(at), word = self.word(at)
        if size or self.frames.by_contents and (
                self.frames.items.way_of_head(self.frames.items.way_of(word), word) < 0):
            return size
        return self.size_at(at)

    cdef bint leads(self, int64_t at) noexcept nogil:
        """Return whether the whole record at a byte is not what parts of others look like.

        A header without fields of its own looks like a number, and one with a time like a text,
        unless that of the next record is near.
        """
        cdef int64_t end
        if not self.frames.by_contents:
            return True
        if self.is_among(at, self.timed):
            end = at + self.size_at(at)
            if self.total - end >= WORD and self.frames.kind_at(at) == self.frames.kind_at(end):
                return self.behind(at, end) > 0
        return self.frames.says_more(at) and not self.is_among(at, self.weak)

    cdef int64_t behind(self, int64_t before, int64_t at) noexcept nogil:
        """Return the size of the record at a byte, by its header; 0 if it may be none.

        The record before it, or the one before that, begins at byte ``before``. Behind one with a
        time, only one of the kind whose time is near is certain.
        """
        cdef int64_t size, row
        cdef uint64_t elapsed
        for row in range(self.timed.shape[0]):
            if self.word(before) & self.timed[row, 0] == self.timed[row, 1]:
                break
        else:
            return self.stated(at)
        if not self.is_among(at, self.timed) or self.total - at < 2 * WORD:
            return 0
        elapsed = <uint64_t>(self.word(at + WORD) - self.word(before + WORD) + self.soon)
        size = self.frames.said_words(at)
        return WORD * size if elapsed < <uint64_t>(2 * self.soon) and size > 1 else 0

    cdef bint is_among(self, int64_t at, const int64_t[:, ::1] words) noexcept nogil:
        """Whether the word at a byte is one of some first words."""
        cdef int64_t row, word = self.word(at)
        for row in range(words.shape[0]):
            if word & words[row, 0] == words[row, 1] and word & words[row, 2]:
                return True
        return False

    cdef int64_t opaque_size(self, int64_t at) noexcept nogil:
        """Return the size of an opaque record by the header at a byte; 0 for others."""
        return WORD * self.frames.said_words(at) if self.is_among(at, self.opaque) else 0

    cdef int64_t size_at(self, int64_t at) noexcept nogil:
        """Return the size of the likely record at a byte, with what is behind it; 0 for none."""
        cdef int64_t size = self.frames.likely_size(at)
        return self.frames.behind_all(at + size) - at if size else 0
