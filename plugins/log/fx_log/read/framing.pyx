# cython: boundscheck=True, wraparound=False, cdivision=True, show_performance_hints=False
"""Framing: where the records of a file begin and end, for whatever reads them.

A framer moves over one stretch at a time: a record, padding or damage. It checks the sizes of
records (``fault``) and reports damage to ``notes``. Positions are words, of packets bytes.
``frames`` has what comes of it.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t

from fxframework.kernels.alignment cimport Judge
from fxframework.kernels.rows cimport Notes

import numpy as np

from fx_log import format as wire
from fx_log import rules

cdef enum:
    NOWHERE = -1
    LONG_RUN = 16   # records that their arguments fill, in a row, of which no more is asked
    LAST = 0        # what a framer finds: the end of the file, a record, or what is not one
    FRAME, OTHER

cdef enum:
    # Columns of rows; ``COLUMNS`` has their names.
    BEGIN, END, START, SIZE, SUFFIX, TAG, INDEX, FAULT, WIDTH

COLUMNS = ("begin", "end", "start", "size", "suffix", "tag", "index", "fault")
cdef int64_t LATEST = 0x7FFFFFFFFFFFFFFF


@cython.final
cdef class Bits:
    """Some bits of a word, as declared."""

    cdef int64_t low, mask

    def __init__(self, declared):
        self.low, self.mask = declared.low, declared.mask >> declared.low

    cdef inline int64_t get(self, int64_t word) noexcept nogil:
        return (word >> self.low) & self.mask


cdef Bits TYPE = Bits(wire.TYPE), SIZE_WORDS = Bits(wire.SIZE), HEADER_TAG = Bits(wire.HEADER_TAG)
cdef Bits SEVERITY = Bits(wire.HEADER_SEVERITY), RESERVED = Bits(wire.RESERVED)
cdef Bits MONIKER_BYTES = Bits(wire.MONIKER_BYTES), URL_BYTES = Bits(wire.URL_BYTES)
cdef Bits ARG_TYPE = Bits(wire.ARG_TYPE), ARG_SIZE = Bits(wire.ARG_SIZE)
cdef Bits NAME_REF = Bits(wire.NAME_REF), VALUE_REF = Bits(wire.VALUE_REF)

cdef int64_t RECORD_TYPE = wire.RECORD_TYPE, MIN_RECORD_WORDS = wire.MIN_RECORD_WORDS
cdef int64_t SUFFIX_WORDS = wire.SUFFIX_WORDS, CHAIN = wire.CHAIN, SOUND_RUN = wire.SOUND_RUN
cdef int64_t STRING = wire.STRING, INLINE = wire.INLINE, MAX_STRING = wire.MAX_STRING
cdef int64_t NUMBER_TYPES = wire.NUMBER_TYPES, ARGUMENT_TYPES = wire.ARGUMENT_TYPES
cdef int64_t LEAST_PLAUSIBLE = wire.LEAST_PLAUSIBLE, MOST_PLAUSIBLE = wire.MOST_PLAUSIBLE
cdef int64_t ENTRY_WORDS = wire.ENTRY_HEADER_WORDS, MAX_ENTRY_WORDS = wire.MAX_ENTRY_WORDS
cdef int64_t STREAM_LENGTH = wire.STREAM_LENGTH, PACKET_HEADER = wire.PACKET_HEADER
cdef int64_t PACKET_SEVERITY = wire.PACKET_SEVERITY, MIN_PACKET = wire.MIN_PACKET
cdef int64_t MAX_PACKET = wire.MAX_PACKET, MAX_TAGS = wire.MAX_TAGS, MAX_TAG_BYTES = wire.MAX_TAG_BYTES

cdef int64_t ODD_BYTES = rules.ODD_BYTES, ZERO_WORDS = rules.ZERO_WORDS
cdef int64_t NOT_A_RECORD = rules.NOT_A_RECORD, TIME_TRUNCATED = rules.TIME_TRUNCATED
cdef int64_t RECORD_TOO_SMALL = rules.RECORD_TOO_SMALL, RECORD_TRUNCATED = rules.RECORD_TRUNCATED
cdef int64_t OVER_MAX_RECORD = rules.OVER_MAX_RECORD, SUFFIX_TRUNCATED = rules.SUFFIX_TRUNCATED
cdef int64_t NUMBER_MISSING = rules.NUMBER_MISSING, UNKNOWN_SIZE = rules.UNKNOWN_SIZE
cdef int64_t RESERVED_REFERENCE = rules.RESERVED_REFERENCE, STRING_TRUNCATED = rules.STRING_TRUNCATED
cdef int64_t ENTRY_TOO_SMALL = rules.ENTRY_TOO_SMALL, ENTRY_TOO_LONG = rules.ENTRY_TOO_LONG
cdef int64_t ENTRY_WITHOUT_RECORD = rules.ENTRY_WITHOUT_RECORD
cdef int64_t ENTRY_TRAILING_BYTES = rules.ENTRY_TRAILING_BYTES
cdef int64_t ENTRY_PADDING_NOT_ZERO = rules.ENTRY_PADDING_NOT_ZERO
cdef int64_t PACKET_TRUNCATED = rules.PACKET_TRUNCATED, PACKET_TOO_SHORT = rules.PACKET_TOO_SHORT
cdef int64_t PACKET_NOT_TERMINATED = rules.PACKET_NOT_TERMINATED, PAST_THE_END = rules.PAST_THE_END
cdef int64_t MANY_TAGS_RULE = rules.MANY_TAGS, LONG_TAG_RULE = rules.LONG_TAG


cdef class Framer:
    """Base of the framers: at ``pos``, in units of ``unit`` bytes, before the record ``record``.

    With ``splits``, for salvage, damage ends where sound records follow that a size hides. ``base``,
    ``wrap`` and ``capacity`` are those of a ring: words from ``wrap`` on are ``capacity`` bytes
    before the place that follows from the byte ``base`` of the first word.
    """

    cdef readonly Notes notes
    cdef readonly int64_t pos, unit, base, wrap, capacity
    cdef public int64_t record, total
    cdef public bint splits
    cdef readonly bint done
    cdef int64_t start, size, tag, suffix, why
    cdef object room

    def __init__(self, notes):
        self.notes = notes
        self.unit = 8
        self.suffix = NOWHERE
        self.wrap = LATEST

    def rows(self, int64_t most, int64_t nbytes):
        """Move over up to ``most`` stretches, or ``nbytes`` bytes; return COLUMNS of them.

        They are int64 of shape (columns, stretches). All but the last three columns are in the
        framer's unit. ``suffix`` is -1 where there is none; ``index`` is the number of the record,
        ``fault`` that of the rule by which a stretch is not a record, or 0. Behind the last one
        ``done`` is set.
        """
        # They are collected as rows, whose memory serves for the next ones too, and copied.
        if self.room is None or self.room.shape[0] < most:
            self.room = np.empty((most, WIDTH), np.int64)
        cdef int64_t[:, ::1] row = self.room
        cdef int64_t count = 0, begin, index, until = self.pos + nbytes // self.unit
        cdef int found
        while count < most and self.pos < until:
            begin, index = self.pos, self.record
            found = self.next()
            if found == LAST:
                self.done = True
                break
            row[count, BEGIN], row[count, END] = begin, self.pos
            row[count, START], row[count, SIZE] = self.start, self.size
            row[count, SUFFIX], row[count, TAG] = self.suffix, self.tag
            row[count, INDEX], row[count, FAULT] = index, 0 if found == FRAME else self.why
            count += 1
        return np.array(self.room[:count].T, order="C")

    cdef int next(self) except -1:
        """Move over the next stretch. Return FRAME, OTHER, or LAST at the end of the file."""
        return LAST

    cdef int64_t sound_size(self, int64_t at) except -1:
        """Return the size of the sound record or packet at ``at``; 0 if there is none."""
        return 0

    cdef bint is_sound(self, int64_t at) except -1:
        """Return whether a sound record or packet is at ``at``, or the end."""
        return at == self.total or self.sound_size(at) > 0

    cdef int64_t sound_from(self, int64_t start, int64_t end) except -1:
        """Return the first place from ``start`` at which sound ones follow; ``end`` if none do.

        They are three in a row, or fewer that end there, or where all of them do.
        """
        cdef int64_t at, run, size
        while start < end:
            at, run, size = start, 0, self.sound_size(start)
            while size and run < SOUND_RUN:
                at += size
                run += 1
                size = 0 if at == end or at == self.total else self.sound_size(at)
            if run == SOUND_RUN or at == end or at == self.total:
                return start
            start += 1
        return end

    cdef int64_t place(self, int64_t word) noexcept:
        """Return the byte offset in the file of a word of the framed stretch."""
        return 8 * word + self.base - (self.capacity if word >= self.wrap else 0)

    cdef int damage(self, int64_t code, int64_t offset, int64_t value) except -1:
        """Report a stretch that is not a record, which counts as one."""
        self.why = code
        self.notes.add(code, offset, self.record, value)
        self.record += 1
        return OTHER

    cdef int framed(self, int64_t start, int64_t size, int64_t tag) noexcept:
        """Take a record."""
        self.start, self.size, self.tag = start, size, tag
        self.record += 1
        return FRAME


cdef int64_t after_string(int64_t ref, int64_t at, int64_t end, int64_t* fault) noexcept nogil:
    """Return the word after the string of a reference, whose bytes are at word ``at``."""
    cdef int64_t after
    if ref < INLINE:
        if ref:
            fault[0] = RESERVED_REFERENCE
        return at
    after = at + ((ref & MAX_STRING) + 7) // 8
    if after > end:
        fault[0] = STRING_TRUNCATED
    return after


cdef int64_t after_argument(
    const int64_t[::1] words, int64_t at, int64_t end, int64_t* fault
) noexcept nogil:
    """Return the word after the argument at word ``at`` of a record up to word ``end``.

    Behind one that cannot be decoded, for which ``fault`` is a rule, it is where its stated size
    ends.
    """
    cdef int64_t word = words[at], kind = ARG_TYPE.get(word), size = ARG_SIZE.get(word), after
    fault[0] = 0
    after = after_string(NAME_REF.get(word), at + 1, end, fault)
    if not fault[0]:
        if kind == STRING:
            after = after_string(VALUE_REF.get(word), after, end, fault)
        elif NUMBER_TYPES & (1 << kind):
            if after >= end:
                fault[0] = NUMBER_MISSING
            after += 1
        elif not ARGUMENT_TYPES & (1 << kind):
            if not after - at <= size <= end - at:
                fault[0] = UNKNOWN_SIZE
            after = at + size
    if fault[0]:
        return at + size if 1 <= size <= end - at else end
    return after


def arguments(const int64_t[::1] words, const int64_t[::1] starts, const int64_t[::1] sizes):
    """Return the arguments of records, which begin at bytes ``starts`` and have ``sizes`` bytes.

    Of each: the row of its record, its first byte, the byte behind it, and the rule by which it
    cannot be decoded, or 0; int64 of shape (4, arguments).
    """
    cdef int64_t room = 8 * starts.shape[0] + 64
    found = np.empty((4, room), np.int64)
    cdef int64_t[:, ::1] column = found
    cdef int64_t record, at, end, fault = 0, count = 0
    for record in range(starts.shape[0]):
        at = starts[record] // 8 + MIN_RECORD_WORDS
        end = (starts[record] + sizes[record]) // 8
        if not 0 <= at <= end <= words.shape[0]:
            raise IndexError(f"a record from word {at} to {end} of {words.shape[0]}")
        while at < end:
            if count == room:
                found = np.concatenate((found, np.empty_like(found)), axis=1)
                room, column = 2 * room, found
            column[0, count], column[1, count] = record, 8 * at
            at = after_argument(words, at, end, &fault)
            column[2, count], column[3, count] = 8 * at, fault
            count += 1
    return found[:, :count]


cdef class LogFramer(Framer):
    """Structured records, one after another, in a file of ``nbytes`` bytes."""

    cdef const int64_t[::1] words
    cdef int64_t nbytes, max_record
    cdef bint suffixed

    def __init__(self, words, int64_t nbytes, notes, int64_t max_record, bint suffixed):
        Framer.__init__(self, notes)
        self.words = words
        self.total = self.words.shape[0]
        self.nbytes, self.max_record, self.suffixed = nbytes, max_record, suffixed

    cdef int next(self) except -1:
        cdef int64_t at = self.pos, word, size, fault, hidden
        if 8 * at >= self.nbytes:
            return LAST
        if at == self.total:
            self.pos = at + 1
            return self.damage(ODD_BYTES, 8 * at, self.nbytes - 8 * at)
        word = self.words[at]
        if word == 0:
            while self.pos < self.total and self.words[self.pos] == 0:
                self.pos += 1
            return self.damage(ZERO_WORDS, 8 * at, self.pos - at)
        size = SIZE_WORDS.get(word)
        fault = self.fault(word, size, self.total - at)
        if fault:
            self.pos = self.sound_after(at + 1)
            # Odd bytes at the end belong to damage before them.
            self.pos += self.pos == self.total
            return self.damage(fault, 8 * at, TYPE.get(word) if fault == NOT_A_RECORD else size)
        self.pos = at + size
        hidden = self.hidden_in(at) if self.splits else 0
        if hidden:
            self.pos = hidden
            return self.damage(NOT_A_RECORD, 8 * at, RECORD_TYPE)
        if 0 < self.max_record < 8 * size:
            return self.damage(OVER_MAX_RECORD, 8 * at, 8 * size)
        self.framed(at, size, HEADER_TAG.get(word))
        self.suffix = NOWHERE
        if self.suffixed and self.pos + 2 <= self.total:
            self.attribution()
        return FRAME

    cdef int64_t fault(self, int64_t word, int64_t size, int64_t left) noexcept:
        """Return the finding about the header of an unreadable record; 0 for a sound one."""
        if TYPE.get(word) != RECORD_TYPE:
            return NOT_A_RECORD
        if left == 1:
            return TIME_TRUNCATED
        if size < MIN_RECORD_WORDS:
            return RECORD_TOO_SMALL
        return RECORD_TRUNCATED if size > left else 0

    cdef int attribution(self) except -1:
        """Step over the suffix after the record, if it fits the file."""
        cdef int64_t at = self.pos, nwords = self.suffix_words(at)
        if nwords > self.total - at:
            self.notes.add(SUFFIX_TRUNCATED, 8 * at, self.record - 1, 8 * nwords)
            return 0
        self.suffix = at
        self.record += 1
        self.pos = at + nwords
        return 0

    cdef int64_t suffix_words(self, int64_t at) noexcept nogil:
        """Return the words of the suffix at word ``at``."""
        cdef int64_t word = self.words[at]
        return SUFFIX_WORDS + (MONIKER_BYTES.get(word) + 7) // 8 + (URL_BYTES.get(word) + 7) // 8

    cdef int64_t hidden_in(self, int64_t at) noexcept nogil:
        """Return the word from which other records follow within the one at word ``at``.

        0 if none do. Their arguments fill them exactly, and they reach its end, or are many; its
        own do not.
        """
        cdef int64_t end = at + SIZE_WORDS.get(self.words[at]), first, run
        if self.chained(at):
            return 0
        for first in range(at + 1, end):
            at, run = first, 0
            while at < end and run < LONG_RUN and self.plausible(at) and self.chained(at):
                at += SIZE_WORDS.get(self.words[at])
                if self.suffixed and at < self.total:
                    at += self.suffix_words(at)
                run += 1
            if run == LONG_RUN or (run >= SOUND_RUN and at >= end):
                return first
        return 0

    cdef bint plausible(self, int64_t at) noexcept nogil:
        """Return whether the word at ``at`` looks like the header of a record within the file."""
        cdef int64_t word = self.words[at]
        return (
            TYPE.get(word) == RECORD_TYPE
            and MIN_RECORD_WORDS <= SIZE_WORDS.get(word) <= self.total - at
            and RESERVED.get(word) == 0
            and 0 < SEVERITY.get(word) <= MOST_PLAUSIBLE
        )

    cdef bint chained(self, int64_t start) noexcept nogil:
        """Return whether arguments fill the record exactly whose plausible header is at ``start``."""
        cdef int64_t end = start + SIZE_WORDS.get(self.words[start]), at = start + MIN_RECORD_WORDS
        cdef int64_t word, after, count = 0, fault = 0
        while at < end and count < CHAIN:
            word = self.words[at]
            after = after_argument(self.words, at, end, &fault)
            if fault or not ARGUMENT_TYPES & (1 << ARG_TYPE.get(word)):
                return False
            if after - at != ARG_SIZE.get(word):
                return False
            at = after
            count += 1
        return at == end and count > 0

    cdef int64_t sound_after(self, int64_t start) noexcept nogil:
        """Return the first word from ``start`` at which reading can resume; else the end.

        It begins a plausible record that its arguments fill exactly, or three plausible records in
        a row, or fewer that end where the file does.
        """
        cdef int64_t begin, at, run
        for begin in range(start, self.total):
            if not self.plausible(begin):
                continue
            if self.chained(begin):
                return begin
            at, run = begin, 0
            while run < SOUND_RUN and at < self.total and self.plausible(at):
                at += SIZE_WORDS.get(self.words[at])
                run += 1
            if run == SOUND_RUN or at == self.total:
                return begin
        return self.total


cdef class RingFramer(Framer):
    """The entries of a ring that hold a record, in the words between its tail and its head."""

    cdef const int64_t[::1] words

    def __init__(self, words, notes, int64_t base, int64_t wrap, int64_t capacity):
        Framer.__init__(self, notes)
        self.words = words
        self.total = self.words.shape[0]
        self.base, self.wrap, self.capacity = base, wrap, capacity

    cdef int next(self) except -1:
        cdef int64_t at = self.pos, left = self.total - at, offset = self.place(at)
        cdef int64_t length, most, size, hidden
        cdef bint short = left < ENTRY_WORDS
        if left <= 0:
            return LAST
        length = 0 if short else self.words[at + 1]
        most = 8 * (min(left, MAX_ENTRY_WORDS) - ENTRY_WORDS)
        if short or not 0 <= length <= most:
            self.pos = self.sound_from(at + 1, self.total) if self.splits else self.total
            return self.damage(ENTRY_TOO_SMALL if short else ENTRY_TOO_LONG, offset, length)
        size = ENTRY_WORDS + (length + 7) // 8
        if self.splits and not self.is_sound(at) and not self.is_sound(at + size):
            hidden = self.sound_from(at + 1, at + size)
            if hidden < at + size:
                self.pos = hidden
                return self.damage(ENTRY_TOO_LONG, offset, length)
        return self.entry(at, size, length, offset)

    cdef int64_t sound_size(self, int64_t at) except -1:
        """Return the words of the entry at word ``at`` if its record fills it, else 0."""
        cdef int64_t left = self.total - at - ENTRY_WORDS, header, size
        if left < MIN_RECORD_WORDS:
            return 0
        header = self.words[at + ENTRY_WORDS]
        size = SIZE_WORDS.get(header)
        if (
            self.words[at + 1] != 8 * size
            or TYPE.get(header) != RECORD_TYPE
            or not MIN_RECORD_WORDS <= size <= left
        ):
            return 0
        return ENTRY_WORDS + size

    cdef int entry(self, int64_t at, int64_t size, int64_t length, int64_t offset) except -1:
        """Read an entry of ``size`` words and ``length`` bytes. Return FRAME if it has a record."""
        cdef int64_t start = at + ENTRY_WORDS, index = self.record, words = 0
        cdef bint found
        self.pos = at + size
        if length >= 8 * MIN_RECORD_WORDS and TYPE.get(self.words[start]) == RECORD_TYPE:
            words = SIZE_WORDS.get(self.words[start])
        found = words >= MIN_RECORD_WORDS and 8 * words <= length
        if not found:
            self.notes.add(ENTRY_WITHOUT_RECORD, offset, index, length)
        elif 8 * words < length:
            self.notes.add(ENTRY_TRAILING_BYTES, offset, index, length - 8 * words)
        if length % 8 and self.words[self.pos - 1] >> (8 * (length % 8)):
            self.notes.add(ENTRY_PADDING_NOT_ZERO, offset, index, 0)
        self.why = ENTRY_WITHOUT_RECORD
        self.framed(start, words if found else 0, self.words[at])
        return FRAME if found else OTHER


cdef class PacketFramer(Framer):
    """Legacy packets: those of a container from byte ``start``, or (-1) a single packet."""

    cdef const uint8_t[::1] data
    cdef bint single

    def __init__(self, data, notes, int64_t start):
        Framer.__init__(self, notes)
        self.data = data
        self.total = self.data.shape[0]
        self.unit = 1
        self.single = start < 0
        self.pos = min(max(0, start), self.total)

    cdef int next(self) except -1:
        cdef int64_t at = self.pos, start = at, size = self.total, fault, hidden
        if at >= self.total:
            return LAST
        if not self.single:
            start = at + STREAM_LENGTH
            size = self.number(at) & 0xFFFFFFFF if start <= self.total else 0
            if size > self.total - start:
                self.pos = self.sound_from(at + 1, self.total) if self.splits else self.total
                return self.damage(PACKET_TRUNCATED, at, size)
        self.pos = start + size
        fault = self.fault(start, self.pos)
        if (
            self.splits
            and not self.single
            and not (self.is_sound(self.pos) and not fault and self.is_whole(start, self.pos))
        ):
            hidden = self.sound_from(at + 1, self.pos)
            if hidden < self.pos:
                fault = PACKET_TRUNCATED
                self.pos = hidden
        return self.damage(fault, at, size) if fault else self.framed(start, size, 0)

    cdef int64_t fault(self, int64_t start, int64_t end) except -1:
        """Return the finding about an unreadable packet; 0 for a sound one."""
        cdef int64_t at = start + PACKET_HEADER, tags = 0, size
        if end - start < MIN_PACKET:
            return PACKET_TOO_SHORT
        if self.data[end - 1]:
            return PACKET_NOT_TERMINATED
        while at < end:
            size = self.data[at]
            at += 1
            if size == 0:
                return PAST_THE_END if at >= end else 0
            if tags == MAX_TAGS:
                return MANY_TAGS_RULE
            if size > MAX_TAG_BYTES:
                return LONG_TAG_RULE
            if at + size > end:
                return PAST_THE_END
            tags += 1
            at += size
        return PAST_THE_END

    cdef bint is_whole(self, int64_t start, int64_t end) except -1:
        """Return whether the message of a packet without a fault ends where the packet does."""
        cdef int64_t at = start + PACKET_HEADER
        while self.data[at]:
            at += 1 + self.data[at]
        at += 1
        while at < end and self.data[at]:
            at += 1
        return at == end - 1

    cdef int64_t sound_size(self, int64_t at) except -1:
        """Return the bytes of the plausible packet at byte ``at``, with its length; 0 for none."""
        cdef int64_t start = at + STREAM_LENGTH, size, severity
        if start > self.total:
            return 0
        size = self.number(at)
        if not MIN_PACKET <= size <= min(MAX_PACKET, self.total - start):
            return 0
        severity = self.number(start + PACKET_SEVERITY)
        if (
            not LEAST_PLAUSIBLE <= severity <= MOST_PLAUSIBLE
            or self.fault(start, start + size)
            or not self.is_whole(start, start + size)
        ):
            return 0
        return STREAM_LENGTH + size

    cdef int64_t number(self, int64_t at) except? -1:
        """Return the signed little-endian number of 4 bytes at byte ``at``."""
        cdef int64_t low = self.data[at] | self.data[at + 1] << 8 | self.data[at + 2] << 16
        cdef int64_t high = self.data[at + 3]
        return low + ((high - 256 if high >= 128 else high) << 24)


cdef class LogJudge(Judge):
    """Tells where records of a log are, with the suffixes behind them."""

    cdef LogFramer framer

    def __init__(self, bint suffixed):
        Judge.__init__(self)
        self.framer = LogFramer(np.asarray(self.words), 0, Notes(0, 1), 0, suffixed)

    cdef int64_t whole(self, int64_t at) noexcept nogil:
        """Return the words of the record at word ``at`` that its arguments fill; 0 if none is."""
        cdef int64_t size = self.stated(at)
        return size if size and self.framer.chained(at) else 0

    cdef int64_t stated(self, int64_t at) noexcept nogil:
        """Return the words of a record by the header at word ``at``, which few words look like."""
        cdef int64_t size
        self.framer.total = self.total
        if not self.framer.plausible(at):
            return 0
        size = SIZE_WORDS.get(self.words[at])
        if self.framer.suffixed and at + size < self.total:
            size += self.framer.suffix_words(at + size)
        return size
