"""Framing: where the records of a file begin and end, for scans, the decoder and salvage.

A framer moves over one stretch (a record, padding or damage) each time ``next`` is called, and to
the next record with ``advance``. It checks the sizes of records (``fault``) and
reports damage. Its fields then describe the record it found. Positions are words, of packets bytes.
"""

from __future__ import annotations

from typing import final

from fx_log import format as wire
from fx_log import rules, tables
from fxframework.kernels.alignment import Judge
from fxframework.kernels.annotations import (
    Bytes,
    Column,
    Fallible,
    View,
    flag,
    i32,
    i64,
    status,
    virtual,
)
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.notes import Notes
from fxframework.kernels.rows import Rows

__all__ = [
    "ArgumentList",
    "ArgumentWalk",
    "FrameList",
    "Framer",
    "LogFramer",
    "LogJudge",
    "PacketFramer",
    "RingFramer",
]

NOWHERE = -1
SIGN = 0x80
LONG_RUN = 16
"""Records that their arguments fill, one after the other, of which no more is asked."""
LAST, FRAME, OTHER = range(3)
"""What a framer finds: the end of the file, a record, or what is not one."""


class Framer:
    """Base of the framers. ``unit`` is in bytes.

    With ``splits``, for salvage, damage ends where sound records follow that a size hides.
    """

    notes: Notes
    unit: i64
    pos: i64
    record: i64
    start: i64
    size: i64
    tag: i64
    suffix: i64
    why: i64
    base: i64
    wrap: i64
    capacity: i64
    total: i64
    splits: flag

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.total = 0
        self.unit = 8
        self.splits = False
        self.pos = 0
        self.record = 0
        self.start = 0
        self.size = 0
        self.tag = 0
        self.suffix = NOWHERE
        self.why = 0
        self.base = 0
        self.wrap = tables.LATEST
        self.capacity = 0

    @virtual
    def next(self) -> status:
        """Move over the next stretch. Return FRAME, OTHER, or LAST at the end of the file."""
        return LAST

    @virtual
    def sound_size(self, at: i64) -> i64:  # noqa: ARG002 (for others)
        """Return the size of the sound record or packet at ``at``; 0 if there is none."""
        return 0

    def is_sound(self, at: i64) -> flag:
        """Return whether a sound record or packet is at ``at``, or the end."""
        return at == self.total or self.sound_size(at) > 0

    def sound_from(self, start: i64, end: i64) -> i64:
        """Return the first place from ``start`` at which sound ones follow; ``end`` if none do.

        They are three in a row, or fewer that end there, or where all of them do.
        """
        while start < end:
            at = start
            run = 0
            size = self.sound_size(at)
            while size and run < wire.SOUND_RUN:
                at += size
                run += 1
                size = 0 if at in (end, self.total) else self.sound_size(at)
            if run == wire.SOUND_RUN or at in (end, self.total):
                return start
            start += 1
        return end

    def place(self, word: i64) -> i64:
        """Return the byte offset in the file of a word of the framed stretch."""
        if word >= self.wrap:
            return 8 * word + self.base - self.capacity
        return 8 * word + self.base

    def damage(self, code: i64, offset: i64, value: i64) -> status:
        """Report a damaged stretch, which is one record."""
        self.why = code
        self.notes.add(code, offset, self.record, value)
        self.record += 1
        return 0


class ArgumentWalk:
    """Steps over the arguments of records; ``fault`` is the finding about the last one, or 0."""

    words: View[i64]
    fault: i64

    def __init__(self, words: memoryview) -> None:
        self.words = memoryview(words)
        self.fault = 0

    def after(self, at: i64, end: i64) -> i64:
        """Return the word after the argument at word ``at`` of a record up to word ``end``.

        Behind an argument that cannot be decoded, it is where its stated size ends.
        """
        word = self.words[at]
        kind = wire.ARG_TYPE.get(word)
        size = wire.ARG_SIZE.get(word)
        self.fault = 0
        after = self.after_string(wire.NAME_REF.get(word), at + 1, end)
        if not self.fault:
            if kind == wire.STRING:
                after = self.after_string(wire.VALUE_REF.get(word), after, end)
            elif wire.NUMBER_TYPES & (1 << kind):
                if after >= end:
                    self.fault = rules.NUMBER_MISSING
                after += 1
            elif not wire.ARGUMENT_TYPES & (1 << kind):
                if not after - at <= size <= end - at:
                    self.fault = rules.UNKNOWN_SIZE
                after = at + size
        if self.fault:
            return at + size if 1 <= size <= end - at else end
        return after

    def after_string(self, ref: i64, at: i64, end: i64) -> i64:
        """Return the word after the string of a reference, whose bytes are at word ``at``."""
        if ref < wire.INLINE:
            if ref:
                self.fault = rules.RESERVED_REFERENCE
            return at
        after = at + (((ref & wire.MAX_STRING) + 7) // 8)
        if after > end:
            self.fault = rules.STRING_TRUNCATED
        return after


class LogFramer(Framer):
    """Structured records, one after another, in a file of ``nbytes`` bytes."""

    words: View[i64]
    arguments: ArgumentWalk
    nbytes: i64
    max_record: i64
    suffixed: flag

    def __init__(
        self, words: memoryview, nbytes: int, notes: Notes, max_record: int, suffixed: int
    ) -> None:
        Framer.__init__(self, notes)
        self.words = memoryview(words)
        self.arguments = ArgumentWalk(words)
        self.total = len(words)
        self.nbytes = nbytes
        self.max_record = max_record
        self.suffixed = suffixed

    def next(self) -> status:
        """Move over the next stretch. Return FRAME, OTHER, or LAST at the end of the file."""
        at = self.pos
        if 8 * at >= self.nbytes:
            return LAST
        if at == self.total:
            self.damage(rules.ODD_BYTES, 8 * at, self.nbytes - 8 * at)
            self.pos = at + 1
            return OTHER
        word = self.words[at]
        if word == 0:
            self.padding(at)
            return OTHER
        size = wire.SIZE.get(word)
        fault = self.fault(word, size, self.total - at)
        if fault:
            value = wire.TYPE.get(word) if fault == rules.NOT_A_RECORD else size
            self.damage(fault, 8 * at, value)
            at = self.sound_after(at + 1)
            # Odd bytes at the end belong to damage before them.
            self.pos = at if at < self.total else at + 1
            return OTHER
        self.pos = at + size
        hidden = self.hidden_in(at) if self.splits else 0
        if hidden:
            self.damage(rules.NOT_A_RECORD, 8 * at, wire.RECORD_TYPE)
            self.pos = hidden
            return OTHER
        if 0 < self.max_record < 8 * size:
            self.damage(rules.OVER_MAX_RECORD, 8 * at, 8 * size)
            return OTHER
        self.start = at
        self.size = size
        self.tag = wire.HEADER_TAG.get(word)
        self.suffix = NOWHERE
        self.record += 1
        if self.suffixed and self.pos + 2 <= self.total:
            self.attribution()
        return FRAME

    def padding(self, at: i64) -> status:
        """Step over a run of zero words."""
        until = at + 1
        while until < self.total and self.words[until] == 0:
            until += 1
        self.why = rules.ZERO_WORDS
        self.notes.add(rules.ZERO_WORDS, 8 * at, self.record, until - at)
        self.record += 1
        self.pos = until
        return 0

    def fault(self, word: i64, size: i64, left: i64) -> i64:
        """Return the finding about the header of an unreadable record; 0 for a sound one."""
        if wire.TYPE.get(word) != wire.RECORD_TYPE:
            return rules.NOT_A_RECORD
        if left == 1:
            return rules.TIME_TRUNCATED
        if size < wire.MIN_RECORD_WORDS:
            return rules.RECORD_TOO_SMALL
        return rules.RECORD_TRUNCATED if size > left else 0

    def attribution(self) -> status:
        """Step over the suffix after the record, if it fits the file."""
        at = self.pos
        body = self.suffix_words(at)
        if body > self.total - at:
            self.notes.add(rules.SUFFIX_TRUNCATED, 8 * at, self.record - 1, 8 * body)
            return 0
        self.suffix = at
        self.record += 1
        self.pos = at + body
        return 0

    def suffix_words(self, at: i64) -> i64:
        """Return the words of the suffix at word ``at``."""
        word = self.words[at]
        return (
            wire.SUFFIX_WORDS
            + (wire.MONIKER_BYTES.get(word) + 7) // 8
            + (wire.URL_BYTES.get(word) + 7) // 8
        )

    def hidden_in(self, at: i64) -> i64:
        """Return the word from which other records follow within the one at word ``at``.

        0 if none do. Their arguments fill them exactly, and they reach its end, or are many; its
        own do not.
        """
        if self.chained(at):
            return 0
        end = at + wire.SIZE.get(self.words[at])
        first = at + 1
        while first < end:
            run = 0
            at = first
            while at < end and run < LONG_RUN and self.plausible(at) and self.chained(at):
                at += wire.SIZE.get(self.words[at])
                if self.suffixed and at < self.total:
                    at += self.suffix_words(at)
                run += 1
            if run == LONG_RUN or (run >= wire.SOUND_RUN and at >= end):
                return first
            first += 1
        return 0

    def plausible(self, at: i64) -> flag:
        """Return whether the word at ``at`` looks like the header of a record within the file."""
        word = self.words[at]
        size = wire.SIZE.get(word)
        if (
            wire.TYPE.get(word) != wire.RECORD_TYPE
            or size < wire.MIN_RECORD_WORDS
            or size > self.total - at
        ):
            return False
        return (
            wire.RESERVED.get(word) == 0
            and 0 < wire.HEADER_SEVERITY.get(word) <= wire.MOST_PLAUSIBLE
        )

    def chained(self, start: i64) -> flag:
        """Return whether a plausible header is at ``start`` and arguments fill the record."""
        end = start + wire.SIZE.get(self.words[start])
        at = start + wire.MIN_RECORD_WORDS
        count = 0
        while at < end and count < wire.CHAIN:
            word = self.words[at]
            after = self.arguments.after(at, end)
            known = wire.ARGUMENT_TYPES & (1 << wire.ARG_TYPE.get(word))
            if self.arguments.fault or not known or after - at != wire.ARG_SIZE.get(word):
                return False
            at = after
            count += 1
        return at == end and count > 0

    def sound_after(self, start: i64) -> i64:
        """Return the first word from ``start`` at which reading can resume.

        The end where there is none.

        It begins a plausible record that its arguments fill exactly, or three plausible records in
        a row, or fewer that end where the file does.
        """
        begin = start
        while begin < self.total:
            if self.plausible(begin) and self.chained(begin):
                return begin
            at = begin
            good = 0
            while good < wire.SOUND_RUN and at < self.total and self.plausible(at):
                at += wire.SIZE.get(self.words[at])
                good += 1
            if good == wire.SOUND_RUN or (good > 0 and at == self.total):
                return begin
            begin += 1
        return self.total


class RingFramer(Framer):
    """The entries of a ring that hold a record, in the words between its tail and its head.

    ``base`` is the byte offset in the file of the first word. Words from ``wrap`` on are
    ``capacity`` bytes before the place that follows from it.
    """

    words: View[i64]

    def __init__(
        self, words: memoryview, notes: Notes, base: int, wrap: int, capacity: int
    ) -> None:
        Framer.__init__(self, notes)
        self.words = memoryview(words)
        self.total = len(words)
        self.base = base
        self.wrap = wrap
        self.capacity = capacity

    def next(self) -> status:
        """Move over the next entry. Return FRAME, OTHER, or LAST at the end of the ring."""
        at = self.pos
        left = self.total - at
        if left <= 0:
            return LAST
        offset = self.place(at)
        short = left < wire.ENTRY_HEADER_WORDS
        length = 0 if short else self.words[at + 1]
        most = 8 * (min(left, wire.MAX_ENTRY_WORDS) - wire.ENTRY_HEADER_WORDS)
        if short or not 0 <= length <= most:
            self.damage(rules.ENTRY_TOO_SMALL if short else rules.ENTRY_TOO_LONG, offset, length)
            self.pos = self.sound_from(at + 1, self.total) if self.splits else self.total
            return OTHER
        size = wire.ENTRY_HEADER_WORDS + (length + 7) // 8
        if self.splits and not self.is_sound(at) and not self.is_sound(at + size):
            hidden = self.sound_from(at + 1, at + size)
            if hidden < at + size:
                self.damage(rules.ENTRY_TOO_LONG, offset, length)
                self.pos = hidden
                return OTHER
        return self.entry(at, size, length, offset)

    def sound_size(self, at: i64) -> i64:
        """Return the words of the entry at word ``at`` if its record fills it, else 0."""
        left = self.total - at - wire.ENTRY_HEADER_WORDS
        if left < wire.MIN_RECORD_WORDS:
            return 0
        header = self.words[at + wire.ENTRY_HEADER_WORDS]
        size = wire.SIZE.get(header)
        if (
            self.words[at + 1] != 8 * size
            or wire.TYPE.get(header) != wire.RECORD_TYPE
            or not wire.MIN_RECORD_WORDS <= size <= left
        ):
            return 0
        return wire.ENTRY_HEADER_WORDS + size

    def entry(self, at: i64, size: i64, length: i64, offset: i64) -> status:
        """Read an entry of ``size`` words and ``length`` bytes. Return FRAME if it has a record."""
        start = at + wire.ENTRY_HEADER_WORDS
        self.pos = at + size
        index = self.record
        self.record += 1
        words = 0
        if (
            length >= 8 * wire.MIN_RECORD_WORDS
            and wire.TYPE.get(self.words[start]) == wire.RECORD_TYPE
        ):
            words = wire.SIZE.get(self.words[start])
        found = words >= wire.MIN_RECORD_WORDS and 8 * words <= length
        if not found:
            self.why = rules.ENTRY_WITHOUT_RECORD
            self.notes.add(rules.ENTRY_WITHOUT_RECORD, offset, index, length)
        elif 8 * words < length:
            self.notes.add(rules.ENTRY_TRAILING_BYTES, offset, index, length - 8 * words)
        if length % 8 and self.words[self.pos - 1] >> (8 * (length % 8)):
            self.notes.add(rules.ENTRY_PADDING_NOT_ZERO, offset, index, 0)
        self.start = start
        self.size = words if found else 0
        self.tag = self.words[at]
        return FRAME if found else OTHER


class PacketFramer(Framer):
    """Legacy packets: those of a container from byte ``start``, or (-1) a single packet."""

    data: Bytes
    single: flag

    def __init__(self, data: memoryview, notes: Notes, start: int) -> None:
        Framer.__init__(self, notes)
        self.data = memoryview(data)
        self.total = len(data)
        self.unit = 1
        self.single = 1 if start < 0 else 0
        self.pos = max(0, start)
        self.pos = min(self.pos, self.total)

    def next(self) -> status:
        """Move over the next packet. Return FRAME, OTHER, or LAST at the end of the file."""
        at = self.pos
        if at >= self.total:
            return LAST
        start = at
        size = self.total
        if not self.single:
            start = at + wire.STREAM_LENGTH
            size = self.number(at, wire.STREAM_LENGTH) & tables.LOW32 if start <= self.total else 0
            if size > self.total - start:
                self.damage(rules.PACKET_TRUNCATED, at, size)
                self.pos = self.sound_from(at + 1, self.total) if self.splits else self.total
                return OTHER
        self.pos = start + size
        fault = self.fault(start, self.pos)
        if (
            self.splits
            and not self.single
            and not (self.is_sound(self.pos) and not fault and self.is_whole(start, self.pos))
        ):
            hidden = self.sound_from(at + 1, self.pos)
            if hidden < self.pos:
                fault = rules.PACKET_TRUNCATED
                self.pos = hidden
        if fault:
            self.damage(fault, at, size)
            return OTHER
        self.start = start
        self.size = size
        self.record += 1
        return FRAME

    def fault(self, start: i64, end: i64) -> i64:
        """Return the finding about an unreadable packet; 0 for a sound one."""
        if end - start < wire.MIN_PACKET:
            return rules.PACKET_TOO_SHORT
        if self.data[end - 1]:
            return rules.PACKET_NOT_TERMINATED
        at = start + wire.PACKET_HEADER
        tags = 0
        while at < end:
            size = self.data[at]
            at += 1
            if size == 0:
                return rules.PAST_THE_END if at >= end else 0
            if tags == wire.MAX_TAGS:
                return rules.MANY_TAGS
            if size > wire.MAX_TAG_BYTES:
                return rules.LONG_TAG
            if at + size > end:
                return rules.PAST_THE_END
            tags += 1
            at += size
        return rules.PAST_THE_END

    def is_whole(self, start: i64, end: i64) -> flag:
        """Return whether the message of a packet without a fault ends where the packet does."""
        at = start + wire.PACKET_HEADER
        while self.data[at]:
            at += 1 + self.data[at]
        at += 1
        while at < end and self.data[at]:
            at += 1
        return at == end - 1

    def sound_size(self, at: i64) -> i64:
        """Return the bytes of the plausible packet at byte ``at``, with its length; 0 for none."""
        start = at + wire.STREAM_LENGTH
        if start > self.total:
            return 0
        size = self.number(at, wire.STREAM_LENGTH)
        if not wire.MIN_PACKET <= size <= min(wire.MAX_PACKET, self.total - start):
            return 0
        severity = self.number(start + wire.PACKET_SEVERITY, 4)
        if (
            not wire.LEAST_PLAUSIBLE <= severity <= wire.MOST_PLAUSIBLE
            or self.fault(start, start + size)
            or not self.is_whole(start, start + size)
        ):
            return 0
        return wire.STREAM_LENGTH + size

    def number(self, at: i64, nbytes: i64) -> i64:
        """Return the signed little-endian number of ``nbytes`` bytes at byte ``at``."""
        value = self.data[at + nbytes - 1]
        if value >= SIGN:
            value -= 2 * SIGN
        for place in range(nbytes - 2, -1, -1):
            value = 256 * value + self.data[at + place]
        return value


@final
class FramePlaces(Rows):
    """Stretches, in the framer's unit: where each begins and ends, and the record in it.

    ``suffix`` is that of a record, -1 where there is none, ``tag`` its tag, ``index`` the number of
    the record, and ``fault`` that of the rule by which the stretch is not a record, else 0.
    """

    begin: Column[i64]
    end: Column[i64]
    start: Column[i64]
    size: Column[i64]
    suffix: Column[i64]
    tag: Column[i64]
    index: Column[i64]
    fault: Column[i64]


class FrameList(Kernel):
    """Collects stretches, as rows: frames, and what lies between them.

    ``run`` takes up to ``most`` of them, replacing those of the last call. It stops earlier behind
    ``nbytes`` bytes. ``done`` is 1 at the end of the file.
    """

    framer: Framer
    most: i64
    nbytes: i64
    done: flag
    places: FramePlaces

    def __init__(self, framer: Framer, most: int, nbytes: int) -> None:
        self.framer = framer
        self.most = most
        self.nbytes = nbytes
        self.done = 0
        self.places = FramePlaces()

    def step(self) -> Fallible[i64]:
        """Collect stretches. Return their number."""
        self.places.rows = 0
        until = self.framer.pos + self.nbytes // self.framer.unit
        while self.places.rows < self.most and self.framer.pos < until:
            begin = self.framer.pos
            index = self.framer.record
            found = self.framer.next()
            if found == LAST:
                self.done = 1
                break
            row = self.places.add_row()
            self.places.begin[row] = begin
            self.places.end[row] = self.framer.pos
            self.places.start[row] = self.framer.start
            self.places.size[row] = self.framer.size
            self.places.suffix[row] = self.framer.suffix
            self.places.tag[row] = self.framer.tag
            self.places.index[row] = index
            self.places.fault[row] = 0 if found == FRAME else self.framer.why
        return self.places.rows


@final
class ArgumentPlaces(Rows):
    """Where arguments are: the record of each (its row), its word, and what is wrong with it."""

    record: Column[i64]
    word: Column[i64]
    fault: Column[i32]


class ArgumentList(Kernel):
    """Finds the arguments of records, which are words ``starts`` to ``ends``."""

    walk: ArgumentWalk
    starts: View[i64]
    ends: View[i64]
    places: ArgumentPlaces

    def __init__(self, words: memoryview, starts: memoryview, ends: memoryview) -> None:
        self.walk = ArgumentWalk(words)
        self.starts = memoryview(starts)
        self.ends = memoryview(ends)
        self.places = ArgumentPlaces(8 * len(starts) + 64)

    def step(self) -> Fallible[i64]:
        """Find all of them. Return their number."""
        for record in range(len(self.starts)):
            end = self.ends[record]
            at = self.starts[record] + wire.MIN_RECORD_WORDS
            while at < end:
                row = self.places.add_row()
                self.places.record[row] = record
                self.places.word[row] = at
                at = self.walk.after(at, end)
                self.places.fault[row] = self.walk.fault
        return self.places.rows


class LogJudge(Judge):
    """Tells where records of a log are, with the suffixes behind them."""

    framer: LogFramer

    def __init__(self, suffixed: int) -> None:
        Judge.__init__(self)
        self.framer = LogFramer(self.words, 0, Notes(0, 1), 0, suffixed)

    def whole(self, at: i64) -> i64:
        """Return the words of the record at word ``at`` that its arguments fill; 0 if none is."""
        size = self.stated(at)
        return size if size and self.framer.chained(at) else 0

    def stated(self, at: i64) -> i64:
        """Return the words of a record by the header at word ``at``, which few words look like."""
        self.framer.total = self.total
        if not self.framer.plausible(at):
            return 0
        size = wire.SIZE.get(self.words[at])
        if self.framer.suffixed and at + size < self.total:
            size += self.framer.suffix_words(at + size)
        return size
