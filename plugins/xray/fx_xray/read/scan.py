"""The scan: the bytes of a trace to its sound stretches, its buffers and its findings.

Every record is looked at once, and its size checked (``FdrScan.cross``, ``event``;
``BasicScan.next_record``). A scan stops at any record and goes on from there: the caller sets
``until`` and calls ``run()``. What comes behind it (``timeline``) reads sound records only and
need not check them; ``decoder.py`` lets it step from record to record.
"""

from __future__ import annotations

from typing import final

from fx_xray import rules
from fx_xray.format import (
    BASIC_ARGUMENT_THREAD_AT,
    BASIC_BYTES,
    BASIC_ID_AT,
    BASIC_KIND_AT,
    BASIC_PID_VERSION,
    BASIC_TAIL_EXIT_VERSION,
    BASIC_THREAD_AT,
    BIG,
    BIG_FUNCTION_KIND,
    BIG_IS_METADATA,
    BIG_METADATA_KIND,
    BUFFER_EXTENTS,
    CALL_ARGUMENT,
    CLOCK_FOLLOWERS,
    CPU_TSC_AT,
    CUSTOM_EVENT,
    CUT,
    CUT_REACH_BITS,
    CUT_RECORD_JUMP,
    CUT_SHORT,
    DAMAGED,
    DELTA,
    DELTA_AT,
    EARLY,
    END_OF_BUFFER,
    ENTER,
    ENTER_ARG,
    EVENT_DELTA_VERSION,
    EXTENT_AT,
    EXTENTS_VERSION,
    FOREIGN_TYPED,
    FUNCTION,
    FUNCTION_BYTES,
    FUNCTION_DELTA_AT,
    FUNCTION_ID,
    FUNCTION_KIND,
    GARBAGE_RUN,
    HAS_PID,
    HAS_THREAD,
    HEADER_BYTES,
    INHABITED,
    IS_METADATA,
    KIND_0,
    KIND_1,
    KIND_2,
    LATEST,
    LEAST_BUFFER,
    LITTLE,
    LOW64,
    META,
    METADATA_BYTES,
    METADATA_KIND,
    MICROS_AT,
    NEW_BUFFER,
    NEW_CPU,
    NOT_A_CALL,
    OF_LAST,
    ORPHAN,
    PADDING,
    PID,
    PID_VERSION,
    PROCESS_AT,
    SECOND_IN_MICROS,
    SECONDS_AT,
    SETTLED,
    SIGN,
    SIGN32,
    SIZE_AT,
    START,
    TAIL_EXIT,
    THREAD_AT,
    TIMELESS,
    TSC_WRAP,
    TYPE_AT,
    TYPED_EVENT,
    UNKNOWN,
    WALL_TIME,
    WALLED,
    WRAP_TSC_AT,
)
from fx_xray.read.framing import Blocks, Scan
from fxframework.io.words import BYTE_1, BYTE_2, BYTE_3, BYTE_4, BYTE_5, BYTE_6, BYTE_7, HIGH_HALF
from fxframework.kernels.annotations import (
    Fallible,
    View,
    flag,
    i64,
    inline,
    status,
    u8,
    u64,
    void,
)
from fxframework.kernels.notes import Notes

try:
    import cython
except ImportError:  # only who compiles needs Cython
    from fxframework.io import plain as cython

__all__ = ["BasicScan", "FdrScan"]

ONE = 1
BYTE, WORD_BITS = 8, 64


@final
class Bytes:
    """The bytes of a trace, read as numbers; ``big`` says the order of their bytes."""

    data: View[u8]
    size: i64
    big: flag

    def __init__(self, data: memoryview, *, big: bool) -> None:
        self.data = memoryview(data)
        self.size = len(self.data)
        self.big = big

    @inline
    def word(self, at: i64) -> i64:
        """Return the eight bytes from ``at`` on as a little-endian int64."""
        if not cython.compiled:
            return int.from_bytes(self.data[at : at + 8], "little", signed=True)
        return (
            self.data[at]
            | BYTE_1.put(self.data[at + 1])
            | BYTE_2.put(self.data[at + 2])
            | BYTE_3.put(self.data[at + 3])
            | BYTE_4.put(self.data[at + 4])
            | BYTE_5.put(self.data[at + 5])
            | BYTE_6.put(self.data[at + 6])
            | BYTE_7.put(self.data[at + 7])
        )

    @inline
    def number(self, at: i64, nbytes: i64) -> i64:
        """Return the ``nbytes`` bytes from ``at`` on as a number; eight as int64."""
        value: u64 = 0
        index = 0
        while index < nbytes:
            place = at + index if self.big else at + nbytes - 1 - index
            value = value << BYTE | self.data[place]
            index += 1
        if not cython.compiled:
            return wrapped(value)
        return value

    @inline
    def signed32(self, at: i64) -> i64:
        """Return the four bytes from ``at`` on as a signed number."""
        value = self.number(at, 4)
        return value - 2 * (value & SIGN32)


class FdrScan(Scan):
    """The scan of a trace of the flight data recorder, from behind its header on."""

    bytes: Bytes
    data: View[u8]
    blocks: Blocks
    order: i64
    most: i64
    cuts: i64
    limit: i64
    page: i64
    searched: i64
    following: i64
    last_offset: i64
    last_record: i64
    typed: i64
    last: i64
    garbage: i64
    bounded: flag
    by_extents: flag
    timed: flag
    mend: flag

    def __init__(
        self,
        data: memoryview,
        notes: Notes,
        *,
        version: int,
        order: int,
        buffer_size: int,
        most: int,
    ) -> None:
        Scan.__init__(self, len(data), notes, version)
        self.bytes = Bytes(data, big=order != LITTLE)
        self.data = self.bytes.data
        self.blocks = Blocks()
        self.order = order
        self.most = most
        self.limit = HEADER_BYTES
        self.searched = 0
        self.following = -1
        self.bounded = True
        self.by_extents = version >= EXTENTS_VERSION
        self.page = min(buffer_size, self.size + 1) if buffer_size >= LEAST_BUFFER else 0
        self.last = START
        self.last_offset = 0
        self.last_record = 0
        self.timed = False
        self.garbage = 0
        self.mend = True
        self.cuts = 0
        self.typed = 0
        if not self.by_extents:
            self.turn_page(HEADER_BYTES)

    def literally(self) -> None:
        """Count records as they are in the file, also those that were cut in half."""
        self.mend = False

    def finish(self) -> None:
        """End the last buffer, at the end of the file."""
        self.close_block(self.size)

    def skip(self, offset: int) -> None:
        """Step over buffers before a byte that sound extents bound."""
        while self.by_extents and self.sound_extents(self.at):
            end = self.at + METADATA_BYTES + self.bytes.number(self.at + EXTENT_AT, 8)
            # With sound extents behind it, whatever is in a buffer ends there.
            if end > offset or not self.sound_extents(end):
                return
            self.at = self.limit = end

    def sound_until(self) -> int:
        """Return up to where all that is sound is a record like those before; 0 if unknown."""
        trusted = self.padded <= self.at and self.garbage < GARBAGE_RUN
        return self.rest() if trusted else 0

    def step(self) -> Fallible[i64]:
        """Scan on, up to byte ``until`` at least."""
        while self.at < self.until:
            if self.at < self.padded:
                self.skip_space()
                continue
            if self.garbage >= GARBAGE_RUN and self.skip_garbage():
                continue
            if self.at == self.limit:
                self.pass_limit()
            first = self.data[self.at]
            big = self.order == BIG
            metadata = BIG_IS_METADATA.get(first) if big else IS_METADATA.get(first)
            end = self.at + (METADATA_BYTES if metadata else FUNCTION_BYTES)
            lost = False
            while end > self.limit and not lost:
                lost = self.cross(end) != 0
            if lost:
                continue
            if metadata:
                self.metadata(BIG_METADATA_KIND.get(first) if big else METADATA_KIND.get(first))
            else:
                self.function()
        return 0

    # --- Where buffers end ---

    def begins(self, at: i64, kind: i64) -> flag:
        """Return whether the first byte of a kind of metadata record is at ``at``."""
        if at >= self.size:
            return False
        if self.order == BIG:
            return self.data[at] == BIG_IS_METADATA.put(META) | BIG_METADATA_KIND.put(kind)
        return self.data[at] == IS_METADATA.put(META) | METADATA_KIND.put(kind)

    def sound_extents(self, at: i64) -> flag:
        """Return whether there are extents at ``at`` that do not run past the end of the file."""
        left = self.size - at - METADATA_BYTES
        if left < 0 or not self.begins(at, BUFFER_EXTENTS):
            return False
        nbytes = self.bytes.number(at + EXTENT_AT, 8)
        return 0 <= nbytes <= left

    def next_extents(self, at: i64) -> i64:
        """Return where the next buffer begins that is valid; the end of the file if none does."""
        if self.searched <= at <= self.following:
            return self.following
        self.searched = at
        self.following = self.first_extents(at)
        return self.following

    def first_extents(self, at: i64) -> i64:
        """Look for the buffer that ``next_extents`` returns."""
        start = at
        while start < self.size:
            if self.sound_extents(start):
                behind = start + METADATA_BYTES
                if behind == self.size or self.begins(behind, NEW_BUFFER):
                    return start
            start += 1
        return self.size

    def rest(self) -> i64:
        """Return where records end that are given up with this one.

        That is the limit, or where a valid buffer begins if nothing bounds this one.
        """
        if self.bounded or not self.by_extents:
            return self.limit
        return self.next_extents(self.at + 1)

    def skip_garbage(self) -> status:
        """Give up the rest of a buffer where too many records are invalid; 0: nothing is left."""
        self.garbage = 0
        end = self.limit if self.bounded else self.next_extents(self.at)
        if end <= self.at:
            return 0
        self.lose(rules.GARBAGE, self.at, end, end - self.at)
        return 1

    def unbind(self) -> void:
        """Believe no limit but the end of the file."""
        self.page = 0
        self.limit = self.size
        self.bounded = False

    def turn_page(self, at: i64) -> void:
        """Set the limit of version 1: where the buffer that begins at ``at`` ends by its size."""
        left = self.size - at
        self.bounded = 0 < self.page <= left
        self.limit = at + (self.page if self.bounded else left)

    def pass_limit(self) -> status:
        """Go on behind a limit."""
        if self.by_extents:
            if not self.begins(self.at, BUFFER_EXTENTS):
                self.notes.add(rules.NO_EXTENTS, self.at, self.record, 0)
            self.unbind()  # extents bound what follows them
        elif self.block < 0 or self.begins(self.at, NEW_BUFFER):
            self.close_block(self.at)
            self.turn_page(self.at)
        else:
            self.unbind()
        return 0

    def cross(self, end: i64) -> status:
        """Decide on a record that runs past the limit to ``end``: 1 lost, 0 the limit is new."""
        code = 0
        if self.limit == self.size:
            code = rules.PAST_FILE
        elif not self.by_extents:
            if self.begins(self.limit, NEW_BUFFER):
                code = rules.PAST_BUFFER
        elif self.sound_extents(self.limit):
            code = rules.PAST_BUFFER
        elif not self.begins(self.at, BUFFER_EXTENTS):
            self.notes.add(rules.NO_EXTENTS, self.at, self.record, 0)
        else:
            self.overlap()
        if code:
            return self.cut_off(code, end)
        self.unbind()
        return 0

    def cut_off(self, code: i64, end: i64) -> status:
        """Give up what is left of the buffer, where a record runs past it to ``end``."""
        if self.block >= 0:
            self.blocks.flags[self.block] |= CUT_SHORT
        self.lose(code, self.at, self.rest(), end - self.at)
        return 1

    def overlap(self) -> status:
        """Report extents that begin before those of the buffer before them end."""
        self.notes.add(rules.EXTENTS_OVERLAP, self.at, self.record, self.limit - self.at)
        return 0

    def buffer_end(self, end: i64) -> Fallible[i64]:
        """Return where the space of a version-1 buffer ends whose records end at ``end``."""
        follows = self.begins(end, NEW_BUFFER)
        if self.by_extents:
            if follows or self.begins(end, BUFFER_EXTENTS):
                return end
            return self.limit
        if self.page:
            boundary = HEADER_BYTES
            used = end - HEADER_BYTES
            with_space = used + self.page - 1
            boundary += with_space - with_space % self.page
            if boundary == self.size or self.begins(boundary, NEW_BUFFER):
                return boundary
            if boundary < self.size and not follows:
                return boundary
            self.unbind()
        return end if follows else self.size

    def skip_space(self) -> status:
        """Take the space behind the end record of version 1 as one record."""
        at = self.at
        end = self.padded
        every = 0
        place = at
        while place < end:
            every |= self.data[place]
            place += 1
        if every:
            self.notes.add(rules.STALE_SPACE, at, self.record, end - at)
        self.garbage = 0
        self.kinds[PADDING] += 1
        self.record += 1
        self.at = end
        return 0

    # --- Stretches and buffers ---

    def end_stretch(self, at: i64) -> status:
        """End the sound stretch, if there is one, before ``at``."""
        if 0 <= self.open < at:
            self.stretches.add(self.open, at, self.block, 0, 0)
        self.open = -1
        return 0

    def lose(self, code: i64, at: i64, end: i64, value: i64) -> status:
        """Give up the bytes from ``at`` to ``end``; something new begins behind them."""
        self.notes.add(code, at, self.record, value)
        self.losses.add(at, end, code)
        self.end_stretch(at)
        self.garbage = 0
        self.called = False
        self.kinds[DAMAGED] += 1
        self.record += 1
        self.at = end
        return 0

    def unsound(self, code: i64, end: i64, value: i64, kind: i64) -> status:
        """Step over a record that is invalid, of which the size is known."""
        self.notes.add(code, self.at, self.record, value)
        self.losses.add(self.at, end, code)
        self.end_stretch(self.at)
        self.garbage += 1
        self.called = False
        self.kinds[kind] += 1
        self.record += 1
        self.at = end
        return 0

    def close_block(self, at: i64) -> status:
        """End the buffer before ``at``, as another begins there or the file ends."""
        self.end_stretch(at)
        if self.block < 0:
            return 0
        if self.last == NEW_BUFFER or self.last == WALL_TIME or self.last == PID:
            self.notes.add(rules.ENDS_IN_PREAMBLE, self.last_offset, self.last_record, self.last)
        if self.last != START and not self.by_extents:
            self.notes.add(rules.NO_END_RECORD, self.last_offset, self.last_record, 0)
        flags = self.blocks.flags[self.block]
        if self.by_extents and flags & FOREIGN_TYPED and not flags & CUT_SHORT:
            self.notes.add(rules.LOST_TAIL, self.last_offset, self.last_record, 16 * self.typed)
        self.leave_block(at)
        return 0

    def leave_block(self, at: i64) -> void:
        """Note that no buffer is open from ``at`` on."""
        self.blocks.stop[self.block] = at
        self.blocks.records[self.block] += self.record
        self.block = -1
        self.called = False

    def open_block(self) -> status:
        """Begin a buffer, unless one is open."""
        if self.block >= 0:
            return 0
        self.blocks.add(self.at, self.record)
        self.block = self.blocks.rows - 1
        self.last = START
        self.timed = False
        self.called = False
        self.typed = 0
        return 0

    def may_follow(self, kind: i64) -> flag:
        """Return whether a kind of record may follow the one before it in the buffer."""
        last = self.last
        if last == START:
            return kind == BUFFER_EXTENTS or kind == NEW_BUFFER
        if last == BUFFER_EXTENTS:
            return kind == NEW_BUFFER
        if last == NEW_BUFFER:
            return kind == WALL_TIME
        if last == WALL_TIME:
            return kind == PID or kind == NEW_CPU
        if last == PID:
            return kind == NEW_CPU
        if kind == CALL_ARGUMENT:
            return last == FUNCTION or last == CALL_ARGUMENT
        return kind in (NEW_CPU, TSC_WRAP, CUSTOM_EVENT, TYPED_EVENT, FUNCTION, END_OF_BUFFER)

    def follow(self, kind: i64) -> status:
        """Compare a record with the one before it in the buffer."""
        if not self.may_follow(kind):
            self.notes.add(rules.OUT_OF_ORDER, self.at, self.record, OF_LAST.put(self.last) | kind)
        self.last = kind
        self.last_offset = self.at
        self.last_record = self.record
        return 0

    def settle(self) -> status:
        """Decide what the thread of the buffer is, as something of it is read."""
        flags = self.blocks.flags[self.block]
        if not flags & SETTLED:
            if not flags & HAS_THREAD:
                self.notes.add(rules.NO_THREAD, self.at, self.record, 0)
            self.blocks.flags[self.block] = flags | SETTLED
        return 0

    # --- Time ---

    def advance(self, delta: i64) -> status:
        """Count the time on from that of the record before."""
        if self.timed:
            self.base += delta
            if not cython.compiled:
                self.base = wrapped(self.base)
        elif not self.blocks.flags[self.block] & TIMELESS:
            self.notes.add(rules.NO_TIME, self.at, self.record, 0)
            self.blocks.flags[self.block] |= TIMELESS
        return 0

    def cut_time(self, kind: i64) -> i64:
        """Return the biased time of a record whose second half was overwritten; LATEST: it was not.

        The low bits of its time are still there, and a record that may follow it begins in its
        middle.
        """
        if self.order != LITTLE:
            return LATEST
        word = self.bytes.word(self.at + 8)
        if IS_METADATA.get(word):
            follows = METADATA_KIND.get(word)
            sound = follows <= PID and CLOCK_FOLLOWERS & (ONE << follows) != 0
            if follows == END_OF_BUFFER:
                sound = self.version < EXTENTS_VERSION
        else:
            sound = FUNCTION_KIND.get(word) <= ENTER_ARG and FUNCTION_ID.get(word) != 0
        if not sound:
            return LATEST
        below = BYTE * (CPU_TSC_AT if kind == NEW_CPU else WRAP_TSC_AT)
        mask = (ONE << (WORD_BITS - below)) - 1
        low = (self.bytes.word(self.at) >> below) & mask
        ahead = (low - self.base) & mask  # the bias changes none of the low bits
        if ahead >> CUT_REACH_BITS or self.base > LATEST - ahead:
            return LATEST
        return self.base + ahead

    def take_clock(self, kind: i64, tsc: i64) -> status:
        """Take the time that a record says; return the bytes that the record has."""
        nbytes = METADATA_BYTES
        time = tsc ^ SIGN
        flags = self.blocks.flags[self.block]
        if self.timed:
            far = time - self.base if time >= self.base else self.base - time
            if far < 0 or far > CUT_RECORD_JUMP:
                mended = self.cut_time(kind)
                if mended == LATEST:
                    apart = time - self.base
                    if not cython.compiled:
                        apart = wrapped(apart)
                    self.notes.add(rules.TIME_JUMP, self.at, self.record, apart)
                else:
                    self.notes.add(rules.CUT_RECORD, self.at, self.record, mended ^ SIGN)
                    self.cuts += 1
                    if self.mend:
                        time = mended
                        nbytes = 8
                        self.end_stretch(self.at)
                        self.stretches.add(self.at, self.at + 8, self.block, CUT, mended)
        if not self.timed and not flags & TIMELESS:
            self.blocks.tsc[self.block] = tsc
        self.timed = True
        self.base = time
        return nbytes

    # --- Records ---

    def function(self) -> status:
        """Scan the function record, and those that follow it."""
        word = self.bytes.word(self.at)
        delta = DELTA.get(word)
        if self.order != LITTLE:
            delta = self.bytes.number(self.at + FUNCTION_DELTA_AT, 4)
            word = self.bytes.number(self.at, 4)
            if self.order == BIG:
                word = FUNCTION_KIND.put(BIG_FUNCTION_KIND.get(word))
        if KIND_2.get(word):
            kind = FUNCTION_KIND.get(word)
            return self.unsound(rules.BAD_FUNCTION, self.at + FUNCTION_BYTES, kind, DAMAGED)
        self.open_block()
        self.follow(FUNCTION)
        self.settle()
        self.advance(delta)
        self.blocks.flags[self.block] |= INHABITED
        if self.open < 0:
            self.open = self.at
        self.garbage = 0
        self.called = True
        self.kinds[FUNCTION] += 1
        self.entries += 1 - (KIND_0.get(word) ^ KIND_1.get(word))
        self.record += 1
        self.at += FUNCTION_BYTES
        if self.order == LITTLE and self.timed:
            self.functions()
        return 0

    def functions(self) -> void:
        """Step over the function records here, which are most of a trace."""
        at = self.at
        base = self.base
        exits = 0
        stop = min(self.limit, self.until) - FUNCTION_BYTES
        while at <= stop:
            word = self.bytes.word(at)
            if word & NOT_A_CALL:
                break
            base += DELTA.get(word)
            exits += KIND_0.get(word) ^ KIND_1.get(word)
            at += FUNCTION_BYTES
        count = (at - self.at) // FUNCTION_BYTES
        if not cython.compiled:
            base = wrapped(base)
        if count:
            self.base = base
            self.last_offset = at - FUNCTION_BYTES
            self.kinds[FUNCTION] += count
            self.entries += count - exits
            self.record += count
            self.last_record = self.record - 1
            self.at = at

    def metadata(self, kind: i64) -> status:
        """Scan the metadata record, whose 16 bytes are there."""
        if kind > PID:
            return self.unsound(rules.UNKNOWN_METADATA, self.at + METADATA_BYTES, kind, UNKNOWN)
        if kind == CUSTOM_EVENT or kind == TYPED_EVENT:
            return self.event(kind)
        self.garbage = 0
        if (self.version < EXTENTS_VERSION and kind == BUFFER_EXTENTS) or (
            self.version < PID_VERSION and kind == PID
        ):
            self.notes.add(rules.NEWER_RECORD, self.at, self.record, kind)
        if kind == CALL_ARGUMENT:
            return self.argument()
        if kind == END_OF_BUFFER:
            return self.end_of_buffer()
        nbytes = METADATA_BYTES
        if kind == NEW_BUFFER:
            self.new_buffer()
        elif kind == BUFFER_EXTENTS:
            self.extents()
        elif kind == WALL_TIME:
            micros = self.bytes.signed32(self.at + MICROS_AT)
            if micros < 0 or micros >= SECOND_IN_MICROS:
                self.notes.add(rules.BAD_WALL_TIME, self.at, self.record, micros)
        self.open_block()
        self.follow(kind)
        self.called = False
        block = self.block
        flags = self.blocks.flags[block]
        if kind == NEW_BUFFER:
            self.blocks.tid[block] = self.bytes.signed32(self.at + THREAD_AT)
            self.blocks.flags[block] |= HAS_THREAD
        elif kind == NEW_CPU:
            nbytes = self.take_clock(kind, self.bytes.number(self.at + CPU_TSC_AT, 8))
        elif kind == TSC_WRAP:
            nbytes = self.take_clock(kind, self.bytes.number(self.at + WRAP_TSC_AT, 8))
        elif kind == WALL_TIME:
            if not flags & (WALLED | SETTLED):
                self.blocks.seconds[block] = self.bytes.number(self.at + SECONDS_AT, 8)
                self.blocks.micros[block] = self.bytes.signed32(self.at + MICROS_AT)
                self.blocks.flags[block] |= WALLED
        elif kind == PID and not flags & SETTLED:
            self.blocks.pid[block] = self.bytes.signed32(self.at + PROCESS_AT)
            self.blocks.flags[block] |= HAS_PID
        if kind != BUFFER_EXTENTS:
            self.blocks.flags[block] |= INHABITED
        if nbytes == METADATA_BYTES and self.open < 0:
            self.open = self.at
        self.kinds[kind] += 1
        self.record += 1
        self.at += nbytes
        return 0

    def new_buffer(self) -> status:
        """End the buffer before a NewBuffer, unless it is the one that this begins."""
        if self.block < 0 or self.blocks.flags[self.block] & (SETTLED | HAS_THREAD):
            self.close_block(self.at)
        return 0

    def extents(self) -> status:
        """Begin the buffer that extents bound."""
        if self.by_extents and self.bounded:
            self.overlap()
        self.close_block(self.at)
        self.by_extents = True
        self.page = 0
        left = self.size - self.at - METADATA_BYTES
        nbytes = self.bytes.number(self.at + EXTENT_AT, 8)
        self.bounded = 0 <= nbytes <= left
        if not self.bounded:
            over = nbytes - left
            if not cython.compiled:
                over = wrapped(over)
            self.notes.add(rules.EXTENTS_PAST_FILE, self.at, self.record, over)
            nbytes = left
        self.limit = self.at + METADATA_BYTES + nbytes
        return 0

    def end_of_buffer(self) -> status:
        """Scan the end record of a version-1 buffer; later versions have none."""
        end = self.at + METADATA_BYTES
        if self.version >= EXTENTS_VERSION:
            self.notes.add(rules.END_RECORD, self.at, self.record, 0)
            self.end_stretch(self.at)
            self.called = False
        else:
            self.open_block()
            self.follow(END_OF_BUFFER)
            self.blocks.flags[self.block] |= INHABITED
            if self.open < 0:
                self.open = self.at
        self.kinds[END_OF_BUFFER] += 1
        self.record += 1
        self.at = end
        if self.version < EXTENTS_VERSION:
            self.end_stretch(end)
            self.leave_block(end)
            self.padded = self.buffer_end(end)
        return 0

    def argument(self) -> status:
        """Scan an argument of the call before it."""
        self.open_block()
        self.follow(CALL_ARGUMENT)
        self.settle()
        if not self.called:
            self.notes.add(rules.ORPHAN_ARGUMENT, self.at, self.record, 0)
        self.blocks.flags[self.block] |= INHABITED if self.timed else INHABITED | EARLY
        if self.open < 0:
            self.open = self.at
        self.kinds[CALL_ARGUMENT] += 1
        self.record += 1
        self.at += METADATA_BYTES
        return 0

    def event(self, kind: i64) -> status:
        """Scan a custom or typed event with its payload."""
        size = self.bytes.signed32(self.at + SIZE_AT)
        if size < 0:
            return self.lose(rules.BAD_SIZE, self.at, self.rest(), size)
        end = self.at + METADATA_BYTES + size
        while end > self.limit:
            if self.cross(end):
                return 0
        if self.rest() < end:
            self.cut_off(rules.PAST_BUFFER, end)
            return 0
        self.garbage = 0
        if self.version < PID_VERSION and kind == TYPED_EVENT:
            self.notes.add(rules.NEWER_RECORD, self.at, self.record, kind)
        if size == 0:
            self.notes.add(rules.EMPTY_EVENT, self.at, self.record, 0)
        self.open_block()
        self.follow(kind)
        self.settle()
        self.called = False
        if self.version >= EVENT_DELTA_VERSION:
            self.advance(self.bytes.signed32(self.at + DELTA_AT))
            if kind == TYPED_EVENT:
                self.typed += 1
                if self.bytes.number(self.at + TYPE_AT + 2, 5):
                    self.blocks.flags[self.block] |= FOREIGN_TYPED
        if self.open < 0:
            self.open = self.at
        self.blocks.flags[self.block] |= INHABITED if self.timed else INHABITED | EARLY
        if self.most and end - self.at > self.most:
            self.notes.add(rules.RECORD_TOO_LARGE, self.at, self.record, end - self.at)
            self.losses.add(self.at, end, rules.RECORD_TOO_LARGE)
            self.kinds[DAMAGED] += 1
        else:
            self.kinds[kind] += 1
        self.record += 1
        self.at = end
        return 0


class BasicScan(Scan):
    """The scan of a trace of basic mode, from behind its header on.

    The ``block`` of a stretch is its process, times 2^32, and its thread.
    """

    bytes: Bytes
    data: View[u8]
    called_id: i64
    run_id: i64
    run_flags: i64

    def __init__(self, data: memoryview, notes: Notes, *, version: int, big: bool) -> None:
        Scan.__init__(self, len(data), notes, version)
        self.bytes = Bytes(data, big=big)
        self.data = self.bytes.data
        self.called_id = 0
        self.run_id = 0
        self.run_flags = 0

    def step(self) -> Fallible[i64]:
        """Scan on, up to byte ``until`` at least."""
        while self.at < self.until:
            self.next_record()
            self.record += 1
            self.at = min(self.at + BASIC_BYTES, self.size)
        return 0

    def finish(self) -> None:
        """End the last stretch, where the last whole record ends."""
        self.end_run(self.size - self.size % BASIC_BYTES)

    def skip(self, offset: int) -> None:
        """Step over whole records before a byte."""
        self.at = max(HEADER_BYTES, offset - (offset - HEADER_BYTES) % BASIC_BYTES)

    def end_run(self, at: i64) -> status:
        """End what one thread wrote before ``at``."""
        if 0 <= self.open < at:
            self.stretches.add(self.open, at, self.run_id, self.run_flags, 0)
        self.open = -1
        return 0

    def unsound(self, code: i64, value: i64) -> status:
        """Step over a record that is invalid."""
        self.notes.add(code, self.at, self.record, value)
        self.losses.add(self.at, min(self.at + BASIC_BYTES, self.size), code)
        self.end_run(self.at)
        self.called = False
        self.kinds[DAMAGED] += 1
        return 0

    def next_record(self) -> status:
        """Scan one record."""
        at = self.at
        if self.size - at < BASIC_BYTES:
            return self.unsound(rules.PARTIAL_RECORD, self.size - at)
        type = self.bytes.number(at, 2)
        if type > 1:
            return self.unsound(rules.BAD_TYPE, type)
        kind = self.data[at + BASIC_KIND_AT]
        if type == 0 and kind > ENTER_ARG:
            return self.unsound(rules.BAD_KIND, kind)
        function = self.bytes.signed32(at + BASIC_ID_AT)
        place = at + (BASIC_ARGUMENT_THREAD_AT if type else BASIC_THREAD_AT)
        run = self.bytes.number(place, 4)
        if self.version >= BASIC_PID_VERSION:
            run |= HIGH_HALF.put(self.bytes.number(place + 4, 4))
            if not cython.compiled:
                run = wrapped(run)
        flags = 0
        if type == 0:
            self.kinds[FUNCTION] += 1
            if kind == TAIL_EXIT and self.version < BASIC_TAIL_EXIT_VERSION:
                self.notes.add(rules.BASIC_TAIL_EXIT, at, self.record, 0)
            if kind == ENTER or kind == ENTER_ARG:
                self.entries += 1
            self.called = True
            self.called_id = function
        else:
            self.kinds[CALL_ARGUMENT] += 1
            if not self.called or function != self.called_id or run != self.run_id:
                self.notes.add(rules.BASIC_ORPHAN, at, self.record, function)
                self.called = False
                flags = ORPHAN
        if self.open < 0 or run != self.run_id or flags:
            self.end_run(at)
            self.open = at
            self.run_id = run
            self.run_flags = flags
        return 0


def wrapped(value: int) -> int:
    """Return the low 64 bits of a Python number as int64, which compiled code has by itself."""
    return ((value - SIGN) & LOW64) + SIGN
