"""Sound stretches: what salvage copies of a log as it is, and records without damaged arguments."""

from __future__ import annotations

from fx_log import format as wire
from fx_log.read.framing import ArgumentWalk, Framer, LogFramer
from fxframework.kernels.alignment import Judge
from fxframework.kernels.annotations import (
    Array,
    Fallible,
    View,
    flag,
    i64,
    status,
    u8,
    virtual,
)
from fxframework.kernels.buffers import room
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.notes import Notes

__all__ = ["LogJudge", "RecordStretches", "Stretches"]

ROWS = 1 << 14
"""Most stretches of a run."""
MADE = 1 << 17
"""Words of mended records after which a run ends."""
SIZE_BITS = wire.SIZE.mask


class Stretches(Kernel):
    """Divides what a framer finds into stretches; every frame of packets is copied.

    ``run`` stops behind the frame in which the framer passes ``until``, or earlier; ``done`` is 1
    at the end of the file. It replaces the ``rows`` stretches of the last run: bytes ``begins`` to
    ``ends`` of what is framed, or of ``made`` where ``mended`` is 1. ``places`` has the byte of
    what is framed at which each begins.
    """

    framer: Framer
    until: i64
    done: flag
    rows: i64
    begins: Array[i64]
    ends: Array[i64]
    places: Array[i64]
    mended: Array[u8]
    made: Array[i64]
    used: i64

    def __init__(self, framer: Framer, made: int = 0) -> None:
        self.framer = framer
        self.until = 0
        self.done = 0
        self.rows = 0
        self.begins = room(ROWS, "i8")
        self.ends = room(ROWS, "i8")
        self.places = room(ROWS, "i8")
        self.mended = room(ROWS, "u1")
        self.made = room(made, "i8")
        self.used = 0

    def step(self) -> Fallible[i64]:
        """Divide frames; return the number of stretches."""
        self.rows = 0
        self.used = 0
        while self.framer.pos < self.until and self.rows < ROWS - 2 and self.used < MADE:
            if not self.framer.advance():
                self.done = 1
                break
            self.frame()
        return self.rows

    @virtual
    def frame(self) -> status:
        """Add the frame that the framer found."""
        self.copy(self.framer.offset, self.framer.end)
        return 0

    def copy(self, begin: i64, end: i64) -> status:
        """Add bytes that are copied, to the last stretch if they follow it."""
        row = self.rows - 1
        if row >= 0 and not self.mended[row] and self.ends[row] == begin:
            self.ends[row] = end
            return 0
        return self.add(begin, end, begin, 0)

    def add(self, begin: i64, end: i64, place: i64, mended: i64) -> status:
        """Add a stretch."""
        row = self.rows
        self.begins[row] = begin
        self.ends[row] = end
        self.places[row] = place
        self.mended[row] = mended
        self.rows = row + 1
        return 0


class RecordStretches(Stretches):
    """Divides structured records: those without damaged arguments are copied, others mended.

    ``before`` is the number of words before a record in its frame (the header of an entry),
    ``suffixed`` whether a suffix follows each record. What mending leaves out is in the framer's
    notes, with its bytes as the value.
    """

    words: View[i64]
    arguments: ArgumentWalk
    before: i64
    suffixed: flag

    def __init__(self, framer: Framer, words: memoryview, before: int, suffixed: int) -> None:
        Stretches.__init__(self, framer, MADE + wire.MOST_ARGUMENTS + 8)
        self.words = memoryview(words)
        self.before = before
        self.arguments = ArgumentWalk(words)
        self.suffixed = suffixed

    def frame(self) -> status:
        """Add the frame that the framer found."""
        start = self.framer.start
        end = start + self.framer.size
        begin = start - self.before
        lacks_suffix = self.lacks_suffix(end)
        if self.is_sound(start, end) and not lacks_suffix:
            self.copy(8 * begin, self.framer.end)
            return 0
        self.mend(start, end)
        if lacks_suffix:
            self.empty_suffix()
        elif self.framer.suffix >= 0:
            self.copy(8 * end, self.framer.end)
        return 0

    def lacks_suffix(self, end: i64) -> flag:
        """Return whether the suffix that must follow word ``end`` runs past the end of the file."""
        return (
            self.suffixed and self.framer.suffix < 0 and len(self.words) - end >= wire.SUFFIX_WORDS
        )

    def is_sound(self, start: i64, end: i64) -> flag:
        """Return whether every argument can be decoded, and only the record is in its entry."""
        if self.before and self.words[start - 1] != 8 * (end - start):
            return False
        at = start + wire.MIN_RECORD_WORDS
        while at < end:
            at = self.arguments.after(at, end)
            if self.arguments.fault:
                return False
        return True

    def mend(self, start: i64, end: i64) -> status:
        """Add the record without its damaged arguments; as an entry with nothing behind it."""
        first = self.used
        begin = start - self.before
        self.keep(begin, start + wire.MIN_RECORD_WORDS)
        at = start + wire.MIN_RECORD_WORDS
        while at < end:
            after = self.arguments.after(at, end)
            fault = self.arguments.fault
            if fault:
                place = self.framer.place(at)
                self.framer.notes.add(fault, place, self.framer.index, 8 * (after - at))
            else:
                self.keep(at, after)
            at = after
        record = first + self.before
        size = self.used - record
        self.made[record] = (self.words[start] & ~SIZE_BITS) | wire.SIZE.put(size)
        if self.before:
            self.made[record - 1] = 8 * size
        self.add(8 * first, 8 * self.used, 8 * begin, 1)
        return 0

    def keep(self, at: i64, end: i64) -> status:
        """Append words ``at`` to ``end`` to ``made``."""
        for word in range(at, end):
            self.made[self.used] = self.words[word]
            self.used += 1
        return 0

    def empty_suffix(self) -> status:
        """Add a suffix without moniker, URL and count."""
        first = self.used
        for _ in range(wire.SUFFIX_WORDS):
            self.made[self.used] = 0
            self.used += 1
        self.add(8 * first, 8 * self.used, self.framer.end, 1)
        return 0


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
