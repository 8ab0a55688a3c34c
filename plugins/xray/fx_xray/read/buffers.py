"""Buffers: what records of the flight data recorder say to each other, of a block at once.

Which buffer a record is in, whether it may follow the one before, which times were cut, and what of
it can be read as events (``Stretches``). ``frames.FdrPolicy`` has found where the records are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray import rules
from fx_xray.format import (
    BIG_METADATA_KIND,
    BUFFER_EXTENTS,
    CALL_ARGUMENT,
    CPU_TSC_AT,
    CUSTOM_EVENT,
    CUT,
    CUT_REACH_BITS,
    CUT_RECORD_JUMP,
    CUT_SHORT,
    DAMAGED,
    DELTA_AT,
    EARLY,
    END_OF_BUFFER,
    ENTER_ARG,
    EVENT_DELTA_VERSION,
    EXTENTS_VERSION,
    FOREIGN_TYPED,
    FUNCTION,
    FUNCTION_BYTES,
    FUNCTION_DELTA_AT,
    FUNCTION_ID,
    FUNCTION_KIND,
    HAS_PID,
    HAS_THREAD,
    INHABITED,
    IS_METADATA,
    KIND_NAMES,
    METADATA_BYTES,
    METADATA_KIND,
    NEW_BUFFER,
    NEW_CPU,
    OF_LAST,
    PID,
    PID_VERSION,
    SECOND_IN_MICROS,
    SETTLED,
    START,
    TIMELESS,
    TSC_WRAP,
    TYPED_EVENT,
    UNKNOWN,
    WALL_TIME,
    WALLED,
    WRAP_TSC_AT,
    TypedEvent,
    place,
)
from fx_xray.read.frames import ROOM, FdrPolicy, Found, Records, Rows, function_fields
from fxframework.errors import Rule
from fxframework.kit.scanned import FINDING_FIELDS

__all__ = ["MOST_CUTS", "FdrFrames", "Frames", "Notes", "Stretches"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Bools = NDArray[np.bool_]
MOST_CUTS: Final = 1000
"""Records that were cut in half and are mended; a file that seems to have more is not mended any
further."""
LEAST_ROOM: Final = 64
"""Records of a block behind one that ended early, at least."""
SPARE_AT: Final = place(TypedEvent, "event_type").end
SPARE_BYTES: Final = METADATA_BYTES - SPARE_AT
"""Of a typed event: bytes that are uninitialised memory in those of compiler-rt."""
NO_ROW: Final = 1 << 62


def followers() -> Bools:
    """Return which kinds of records may follow which: by the one before, then by kind."""
    may = np.zeros((START + 1, START + 1), np.bool_)
    may[START, [BUFFER_EXTENTS, NEW_BUFFER]] = True
    may[BUFFER_EXTENTS, NEW_BUFFER] = True
    may[NEW_BUFFER, WALL_TIME] = True
    may[WALL_TIME, [PID, NEW_CPU]] = True
    may[PID, NEW_CPU] = True
    settled = [NEW_CPU, TSC_WRAP, CUSTOM_EVENT, TYPED_EVENT, FUNCTION, END_OF_BUFFER, CALL_ARGUMENT]
    for last in settled:
        may[last, settled[:-1]] = True
    may[[FUNCTION, CALL_ARGUMENT], CALL_ARGUMENT] = True
    return may


MAY_FOLLOW: Final = followers()
CALLS: Final = [FUNCTION, CALL_ARGUMENT, CUSTOM_EVENT, TYPED_EVENT]
"""Kinds of records that say something of their thread."""
IS_CALL, IS_CLOCK, IS_EVENT = (
    np.isin(np.arange(START + 1), kinds)
    for kinds in (CALLS, [NEW_CPU, TSC_WRAP], [CUSTOM_EVENT, TYPED_EVENT])
)


class Stretches:
    """Sound records that follow each other in one buffer, or in basic mode in one thread.

    ``table`` gives columns: ``start``, ``stop``, ``block`` (the buffer, in basic mode the thread),
    ``tsc`` (of a record that was cut, its time) and ``flags``.
    """

    def __init__(self) -> None:
        self.parts: list[I64] = []

    def add(self, start: I64, stop: I64, block: I64, tsc: I64, flags: I64) -> None:
        """Add some; the first goes on with the last one before where both are of one kind."""
        if not start.size:
            return
        rows = np.stack([start, stop, block, tsc, flags])
        if self.parts:
            last = self.parts[-1]
            goes_on = last[1, -1] == start[0] and last[2, -1] == block[0]
            if goes_on and not (last[4, -1] & CUT or flags[0]):
                last[1, -1] = stop[0]
                rows = rows[:, 1:]
        if rows.size:
            self.parts.append(rows)

    def table(self) -> I64:
        """Return the columns, int64 of shape (5, stretches)."""
        return np.concatenate([np.zeros((5, 0), np.int64), *self.parts], axis=1)


class Notes:
    """Findings of one block, which are put in order by the row that they are found at."""

    def __init__(self) -> None:
        self.rows: list[I64] = []
        self.found: list[I64] = []

    def add(self, rule: Rule, row: I64, offset: Any, record: Any, value: Any = 0) -> None:
        """Add findings by one rule; all but the rule are columns, or the same of all of them.

        Those of one row are in the order in which they are added.
        """
        if row.size:
            found = np.empty((row.size, FINDING_FIELDS), np.int64)
            for column, values in enumerate((int(rule), offset, record, value)):
                found[:, column] = values
            self.rows.append(row)
            self.found.append(found)

    def in_order(self) -> tuple[I64, I64]:
        """Return the findings, of shape (findings, 4), and the row of each."""
        if not self.rows:
            return np.zeros((0, FINDING_FIELDS), np.int64), np.zeros(0, np.int64)
        rows = np.concatenate(self.rows)
        order = np.argsort(rows, kind="stable")
        return np.concatenate(self.found)[order], rows[order]


@attrs.frozen(eq=False)
class Frames:
    """Records of a block as columns; functions that follow one another are one row."""

    begin: I64
    end: I64
    count: I64
    kind: U8
    fault: I64
    """The number of the rule by which a row is not a sound record; SPACE; else 0."""
    block: I64
    """The buffer, -1 for none; in basic mode the thread."""
    is_called: Bools
    """Whether arguments of a call may follow; of an argument, whether it has a call."""
    tsc: I64
    """Of a record that was cut in half, the bits of the time that it had."""
    notes: I64
    """Findings: rule, offset, number of the record, value; of shape (findings, 4)."""
    noted_at: I64
    """The byte whose record each finding was made at."""


@attrs.define
class OpenBuffer:
    """What is known of the buffer at hand behind a block; in ``flags`` as in the table."""

    number: int = -1
    """-1: none is open."""
    start: int = 0
    first_record: int = 0
    seconds: int = 0
    micros: int = 0
    tsc: int = 0
    pid: int = 0
    tid: int = 0
    flags: int = 0
    typed: int = 0
    is_timed: bool = False
    base: int = 0
    """The time that the last clock said, if it is timed."""
    owed: list[I64] = attrs.field(factory=list)
    """Rows that came since, by which the time is ahead: begin, records and kind of each."""
    last: int = START
    last_offset: int = 0
    last_record: int = 0
    is_called: bool = False


COLUMNS: Final = ("start", "stop", "seconds", "micros", "tsc", "records", "pid", "tid", "flags")
"""Of ``FdrFrames.buffers``."""


class FdrFrames:
    """Reads the records of a trace of the flight data recorder, block by block.

    With ``mends``, records that were cut in half are read as what they were, and the ones in their
    second halves too. After the last block, ``buffers``, ``stretches`` and ``losses`` are whole.
    """

    def __init__(
        self, records: Records, buffer_size: int, most: int, *, mends: bool = True
    ) -> None:
        self.records = records
        self.version = records.version
        self.policy = FdrPolicy(records, buffer_size)
        self.most = most
        """The largest record, in bytes; 0 for any."""
        self.mends = mends
        self.cuts = 0
        self.ordinal = 1
        """The number of the next record; 0 is the header."""
        self.kinds = np.zeros(len(KIND_NAMES), np.int64)
        self.stretches = Stretches()
        self.losses: list[I64] = []
        self.blocks_done: list[I64] = []
        self.buffer_count = 0
        self.open = OpenBuffer()
        self.room = ROOM

    @property
    def at(self) -> int:
        """The byte up to which records were read."""
        return self.policy.at

    def skip(self, offset: int) -> None:
        """Step over buffers before a byte that sound extents bound."""
        self.policy.skip(offset)

    def blocks(self, most: int = ROOM) -> Iterator[Frames]:
        """Yield the records, ``most`` or some more at a time; the last block may be empty."""
        self.room = most
        while self.at < self.policy.size:
            yield self.read(most)
        yield self.finish()

    # --- One block --------------------------------------------------------------------------------

    def read(self, most: int) -> Frames:
        """Read a block."""
        rows = self.policy.gather(min(most, self.room))
        self.room = min(most, 2 * self.room)
        block = Block(self, rows)
        cut = block.find_cut()
        if cut >= 0:
            # A record begins in the middle of the one that was cut: what follows is read again.
            at = int(rows.begin[cut]) + METADATA_BYTES // 2
            self.policy.go_back(rows, cut, at)
            self.room = max(LEAST_ROOM, 2 * cut)
            rows = rows._replace(
                **{name: column[: cut + 1].copy() for name, column in rows._asdict().items()}
            )
            rows.end[cut] = at
            cut_tsc = block.mended
            block = Block(self, rows)
            block.cut_row, block.mended = cut, cut_tsc
            block.find_cut()
        return block.frames()

    def finish(self) -> Frames:
        """End the last buffer, at the end of the file."""
        none = np.zeros(0, np.int64)
        rows = Rows(none, none, none, none.astype(np.uint8), none, *np.zeros((3, 0), np.bool_))
        self.policy.found = []
        block = Block(self, rows)
        block.find_cut()
        return block.frames(self.policy.size)

    def buffers(self) -> dict[str, I64]:
        """Return what buffers there are, as columns of COLUMNS."""
        rows = np.concatenate([np.zeros((len(COLUMNS), 0), np.int64), *self.blocks_done], axis=1)
        return dict(zip(COLUMNS, rows, strict=True))


class Block:
    """The records of one block, with what is known of the buffers that they are in.

    Buffers have *local* numbers: 0 is the one that is open before the block, if one is.
    """

    def __init__(self, frames: FdrFrames, rows: Rows) -> None:
        self.frames_read = frames
        self.records = frames.records
        self.version = frames.version
        self.rows = rows
        self.carry = frames.open
        self.notes = Notes()
        self.mended = 0
        self.cut_row = -1
        count = rows.begin.size
        self.ordinals = frames.ordinal + np.cumsum(rows.counts) - rows.counts
        kind = rows.kind
        self.index = np.arange(count)
        self.is_member = rows.fault == 0
        if self.version >= EXTENTS_VERSION:
            self.is_member &= kind != END_OF_BUFFER
        self.is_call = IS_CALL[kind] & self.is_member
        self.is_clock = IS_CLOCK[kind] & self.is_member
        is_event = IS_EVENT[kind] & self.is_member
        self.is_advance = (kind == FUNCTION) & self.is_member
        if self.version >= EVENT_DELTA_VERSION:
            self.is_advance |= is_event
        self.is_event = is_event
        self._number_buffers()

    def _number_buffers(self) -> None:
        """Say which buffer each row is in."""
        rows, carry = self.rows, self.carry
        kind, index, is_member = rows.kind, self.index, self.is_member
        closes = rows.closes | (kind == BUFFER_EXTENTS) & is_member
        if carry.number < 0 and index.size:
            closes[0] = True
        last_closing = latest(closes, index)
        # The first record behind what closes a buffer opens one.
        self.member_before = shifted(latest(is_member, index))
        opens = is_member & (last_closing >= 0) & (self.member_before < last_closing)
        # So does a NewBuffer, unless only extents of its buffer were read.
        is_new = (kind == NEW_BUFFER) & is_member
        before = shifted(latest(self.is_call | is_new, index))
        begun = bool(carry.flags & (SETTLED | HAS_THREAD))
        in_this = np.where(last_closing >= 0, before >= last_closing, (before >= 0) | begun)
        opens |= is_new & in_this
        self.opens = opens
        self.closers = np.flatnonzero(closes | opens)
        self.local = np.cumsum(opens)
        last_opening = latest(opens, index)
        self.is_open = last_opening >= last_closing
        if carry.number < 0:
            self.is_open &= last_opening >= 0
        self.first_row = np.concatenate([[-1], np.flatnonzero(opens)])
        """The row with which each buffer begins."""
        self.start_row = np.where(self.is_open, self.first_row[self.local], -1)

    def first_of(self, mask: Bools, carried: bool = False) -> I64:
        """Return the first row of each buffer where a mask holds, NO_ROW for none.

        ``carried`` says that it did in the open buffer, before this block: -1.
        """
        at = np.flatnonzero(mask & self.is_open)
        out = np.full(self.first_row.size, NO_ROW)
        if at.size:
            buffers = self.local[at]
            is_first = np.append(True, buffers[1:] != buffers[:-1])
            out[buffers[is_first]] = at[is_first]
        if carried:
            out[0] = -1
        return out

    def last_of(self, mask: Bools) -> I64:
        """Return the last row of each buffer where a mask holds, -1 for none."""
        at = np.flatnonzero(mask & self.is_open)
        out = np.full(self.first_row.size, -1)
        if at.size:
            buffers = self.local[at]
            is_last = np.append(buffers[1:] != buffers[:-1], True)
            out[buffers[is_last]] = at[is_last]
        return out

    # --- Time -------------------------------------------------------------------------------------

    def find_cut(self) -> int:
        """Find when clocks were read; return the first record that was cut in half, or -1."""
        rows, carry = self.rows, self.carry
        clock = np.flatnonzero(self.is_clock)
        tsc = np.empty(clock.size, np.int64)
        for kind in (NEW_CPU, TSC_WRAP):
            mine = rows.kind[clock] == kind
            tsc[mine] = self.records.metadata(kind, rows.begin[clock[mine]], "tsc")[0]
        tsc[clock == self.cut_row] = self.mended
        self.clock, self.clock_tsc = clock, tsc
        first, last = self.first_of(self.is_clock, carry.is_timed), self.last_of(self.is_clock)
        self.first_clock = first
        # Where no clock follows, nobody asks how late it is.
        is_between = (self.index > first[self.local]) & self.is_advance & self.is_open
        between = np.flatnonzero(is_between & (self.index < last[self.local]))
        self.behind = np.flatnonzero(is_between & (self.index > last[self.local]))
        if not clock.size:
            self.jumps = (clock, tsc)
            return -1
        deltas = np.zeros(self.index.size, np.int64)
        deltas[between] = self._deltas(self._advances(between))
        sums = np.cumsum(deltas)
        base = np.concatenate([[carry.base], tsc[:-1]]) + np.diff(sums[clock], prepend=0)
        if carry.is_timed and carry.owed and self.local[clock[0]] == 0:
            # Of arrays, a sum wraps as the times of records do.
            base[:1] += np.concatenate([self._deltas(rows) for rows in carry.owed]).sum()
        buffer = self.local[clock]
        is_timed = np.diff(buffer, prepend=0 if carry.is_timed else -1) == 0
        apart = tsc - base
        is_later = tsc.view(np.uint64) >= base.view(np.uint64)
        far = np.where(is_later, apart, -apart).view(np.uint64)
        jumps = np.flatnonzero(is_timed & (far > np.uint64(CUT_RECORD_JUMP)))
        self.jumps = clock[jumps], apart[jumps]
        if not jumps.size or self.records.big or not self.frames_read.mends:
            return -1
        if self.frames_read.cuts >= MOST_CUTS:
            return -1
        mended, is_cut = self._mended(clock[jumps], base[jumps])
        cuts = np.flatnonzero(is_cut)
        if not cuts.size:
            return -1
        self.mended = int(mended[cuts[0]])
        return int(clock[jumps[cuts[0]]])

    def _advances(self, row: I64) -> I64:
        """Return begin, records and kind of rows, of shape (3, rows)."""
        rows = self.rows
        return np.stack([rows.begin[row], rows.counts[row], rows.kind[row]])

    def _deltas(self, rows: I64) -> I64:
        """Return by how much rows (``_advances``) advance the time, int64 of shape (rows,)."""
        begin, count, kind = rows
        numbers, big = self.records.numbers, self.records.big
        deltas = np.empty(begin.size, np.int64)
        function = np.flatnonzero(kind == FUNCTION)
        if function.size:
            places, firsts = expanded(begin[function], count[function])
            parts = numbers.integers(places + FUNCTION_DELTA_AT, 4, big=big)
            deltas[function] = np.add.reduceat(parts, firsts)
        event = np.flatnonzero(kind != FUNCTION)
        deltas[event] = numbers.integers(begin[event] + DELTA_AT, 4, big=big, signed=True)
        return deltas

    def _mended(self, rows: I64, base: I64) -> tuple[I64, Bools]:
        """Return the times that clocks had whose second half was overwritten, and which were.

        The low bits of such a time are still there, and a record that may follow it begins in the
        middle of its record.
        """
        begin = self.rows.begin[rows]
        half = self.records.words(begin + METADATA_BYTES // 2)
        is_sound = half_follows(half, ends=self.version < EXTENTS_VERSION)
        below = 8 * np.where(self.rows.kind[rows] == NEW_CPU, CPU_TSC_AT, WRAP_TSC_AT)
        low_bits = (np.int64(1) << (64 - below)) - 1
        low = self.records.words(begin) >> below & low_bits
        ahead = low - base & low_bits
        mended = base + ahead
        wraps = mended.view(np.uint64) < base.view(np.uint64)
        return mended, is_sound & (ahead >> CUT_REACH_BITS == 0) & ~wraps

    # --- The buffers ------------------------------------------------------------------------------

    def frames(self, end: int | None = None) -> Frames:
        """Return the records, with what is wrong with them; go on behind them.

        With an ``end``, the buffer that is open there ends.
        """
        frames, rows = self.frames_read, self.rows
        begin = rows.begin
        found = frames.policy.found
        self._add_found([each for each in found if each.rule != rules.EXTENTS_PAST_FILE])
        self._check_versions()
        columns = self._columns()
        self._end_buffers(columns, end)
        self._add_found([each for each in found if each.rule == rules.EXTENTS_PAST_FILE])
        is_called = self._is_called()
        self._check_records(columns, is_called)
        fault = self._too_large()
        frames.ordinal += int(rows.counts.sum())
        shown = np.where((fault > 0) & (rows.kind != UNKNOWN), DAMAGED, rows.kind)
        np.add.at(frames.kinds, shown, rows.counts)
        lost = np.flatnonzero(fault > 0)
        if lost.size:
            frames.losses.append(np.stack([begin[lost], rows.end[lost], fault[lost]]))
        tsc = np.zeros(begin.size, np.int64)
        if self.cut_row >= 0:
            tsc[self.cut_row] = self.mended
            frames.cuts += 1
        number = np.where(self.is_open, frames.buffer_count - 1 + self.local, -1)
        self._add_stretches(number, tsc)
        if end is None:
            self._go_on(columns, is_called)
        notes, at = self.notes.in_order()
        noted_at = begin[at] if begin.size else np.full(at.size, frames.policy.size)
        return Frames(begin, rows.end, rows.counts, rows.kind, fault, number, is_called, tsc,
                      notes, noted_at)  # fmt: skip

    def _add_found(self, found: list[Found]) -> None:
        """Enter findings of the policy, but for those behind a record that was cut."""
        rows = self.rows
        for each in found:
            row = np.searchsorted(rows.begin, [each.at], side="right") - 1
            if rows.end.size and each.at < rows.end[-1]:
                self.notes.add(each.rule, row, each.offset, self.ordinals[row], each.value)

    def _columns(self) -> dict[str, I64]:
        """Return what is known of each buffer, and the rows at which something of it is decided."""
        rows, carry, index = self.rows, self.carry, self.index
        begin, kind = rows.begin, rows.kind
        metadata = self.records.metadata
        opening = self.first_row[1:]
        count = self.first_row.size
        columns = {
            name: np.concatenate([[getattr(carry, name)], np.zeros(count - 1, np.int64)])
            for name in ("seconds", "micros", "tsc", "pid", "tid", "flags", "typed")
        }
        columns["start"] = np.concatenate([[carry.start], begin[opening]])
        columns["first_record"] = np.concatenate([[carry.first_record], self.ordinals[opening]])
        flags = columns["flags"]
        settled = self.first_of(self.is_call, bool(carry.flags & SETTLED))
        # Only what comes before the first call says something of the buffer.
        before = index < settled[self.local]
        thread = self.last_of((kind == NEW_BUFFER) & self.is_member)
        has_thread = np.flatnonzero(thread >= 0)
        (columns["tid"][has_thread],) = metadata(NEW_BUFFER, begin[thread[has_thread]], "thread")
        process = self.last_of((kind == PID) & before & self.is_member)
        has_process = np.flatnonzero(process >= 0)
        (columns["pid"][has_process],) = metadata(PID, begin[process[has_process]], "process")
        is_wall = (kind == WALL_TIME) & before & self.is_member
        wall = self.first_of(is_wall, bool(carry.flags & WALLED))
        walled = np.flatnonzero((wall >= 0) & (wall < NO_ROW))
        columns["seconds"][walled], columns["micros"][walled] = metadata(
            WALL_TIME, begin[wall[walled]], "seconds", "micros"
        )
        no_thread = (settled >= 0) & (settled < NO_ROW) & ((thread < 0) | (thread > settled))
        no_thread[0] &= not carry.flags & HAS_THREAD
        clock, advance = self.first_clock, self.first_of(self.is_advance)
        no_time = advance < clock
        no_time[0] &= not carry.flags & TIMELESS
        is_timeless = no_time | (flags & TIMELESS != 0)
        timed = np.flatnonzero((clock >= 0) & (clock < NO_ROW) & ~is_timeless)
        columns["tsc"][timed] = self.clock_tsc[np.searchsorted(self.clock, clock[timed])]
        own = self.first_of((kind == CALL_ARGUMENT) & self.is_member | self.is_event)
        spare = np.flatnonzero((kind == TYPED_EVENT) & self.is_member)
        if self.version < EVENT_DELTA_VERSION:
            spare = spare[:0]
        numbers = self.records.numbers
        is_foreign = numbers.integers(begin[spare] + SPARE_AT, SPARE_BYTES, big=False) != 0
        columns["typed"] += np.bincount(self.local[spare], minlength=count)
        marks = {
            SETTLED: settled < NO_ROW,
            HAS_THREAD: thread >= 0,
            HAS_PID: process >= 0,
            WALLED: wall < NO_ROW,
            TIMELESS: is_timeless,
            EARLY: own < clock,
            INHABITED: self.last_of(self.is_member & (kind != BUFFER_EXTENTS)) >= 0,
            CUT_SHORT: self.last_of(rows.is_cut_off) >= 0,
            FOREIGN_TYPED: np.isin(np.arange(count), self.local[spare[is_foreign]]),
        }
        for flag, holds in marks.items():
            flags |= np.where(holds, flag, 0)
        columns["no_thread"] = np.where(no_thread, settled, -1)
        columns["no_time"] = np.where(no_time, advance, -1)
        last = self.last_of(self.is_member)
        has_last = np.flatnonzero(last >= 0)
        last = last[has_last]
        for name, values in (
            ("last", kind[last]),
            ("last_offset", rows.end[last] - np.where(kind[last] == FUNCTION, FUNCTION_BYTES,
                                                      rows.end[last] - begin[last])),
            ("last_record", self.ordinals[last] + rows.counts[last] - 1),
        ):  # fmt: skip
            columns[name] = np.full(count, getattr(carry, name))
            columns[name][has_last] = values
        return columns

    def _end_buffers(self, columns: dict[str, I64], end: int | None) -> None:
        """Report what is wrong with buffers that end; enter them."""
        rows = self.rows
        closer = np.searchsorted(self.closers, self.first_row, side="right")
        ends = closer < self.closers.size
        ends[0] &= self.carry.number >= 0
        buffer = np.flatnonzero(ends)
        row = self.closers[closer[buffer]]
        if end is None:
            stop, record, by_extents = rows.begin[row], self.ordinals[row], rows.by_extents[row]
        else:
            buffer = np.arange(int(self.carry.number >= 0))
            row = np.zeros(buffer.size, np.int64)
            stop, record = np.full(buffer.size, end), np.full(buffer.size, self.frames_read.ordinal)
            by_extents = np.full(buffer.size, self.frames_read.policy.by_extents)
        if not buffer.size:
            return
        mine = {name: column[buffer] for name, column in columns.items()}
        last, flags = mine["last"], mine["flags"]
        # The end record of version 1 ended the buffer before.
        goes_on = (last != END_OF_BUFFER) | (self.version >= EXTENTS_VERSION)
        in_preamble = np.isin(last, [NEW_BUFFER, WALL_TIME, PID])
        no_end = goes_on & ~by_extents
        is_foreign = (flags & (FOREIGN_TYPED | CUT_SHORT)) == FOREIGN_TYPED
        lost_tail = goes_on & by_extents & is_foreign
        for rule, holds, value in (
            (rules.ENDS_IN_PREAMBLE, in_preamble, last),
            (rules.NO_END_RECORD, no_end, 0 * last),
            (rules.LOST_TAIL, lost_tail, METADATA_BYTES * mine["typed"]),
        ):
            at = np.flatnonzero(holds)
            self.notes.add(
                rule, row[at], mine["last_offset"][at], mine["last_record"][at], value[at]
            )
        mine |= {"stop": stop, "records": record - mine["first_record"]}
        self.frames_read.blocks_done.append(np.stack([mine[name] for name in COLUMNS]))

    def _go_on(self, columns: dict[str, I64], is_called: Bools) -> None:
        """Note what is known behind the block."""
        frames = self.frames_read
        frames.buffer_count += int(self.opens.sum())
        if not self.index.size:
            return
        if not self.is_open[-1]:
            frames.open = OpenBuffer()
            return
        names = [each.name for each in attrs.fields(OpenBuffer) if each.name in columns]
        behind = self.behind[self.local[self.behind] == self.local[-1]]
        owed = [self._advances(behind)] if behind.size else []
        base = int(self.clock_tsc[-1]) if self.clock.size else 0
        if self.carry.number >= 0 and not self.local[-1] and not self.is_clock.any():
            base, owed = self.carry.base, self.carry.owed + owed
        frames.open = OpenBuffer(
            number=frames.buffer_count - 1,
            is_timed=bool(self.first_clock[-1] < NO_ROW),
            base=base,
            owed=owed,
            is_called=bool(is_called[-1]),
            **{name: int(columns[name][-1]) for name in names},
        )

    # --- The records ------------------------------------------------------------------------------

    def _is_called(self) -> Bools:
        """Return whether arguments may follow each row; of an argument, whether it has a call."""
        kind, carry = self.rows.kind, self.carry
        is_function: Bools = (kind == FUNCTION) & self.is_member
        is_argument = (kind == CALL_ARGUMENT) & self.is_member
        if not is_argument.any():
            return is_function
        call = shifted(latest(~is_argument, self.index))
        is_near = is_function[call] & self.is_open[call] & (self.local[call] == self.local)
        carried = carry.is_called and carry.number >= 0
        is_near = np.where(call >= 0, is_near, carried & (self.local == 0))
        out: Bools = np.where(is_argument, is_near, is_function)
        return out

    def _check_versions(self) -> None:
        """Report records that came with later versions."""
        kind = self.rows.kind
        newer = [BUFFER_EXTENTS] if self.version < EXTENTS_VERSION else []
        newer += [PID, TYPED_EVENT] if self.version < PID_VERSION else []
        if newer:
            row = np.flatnonzero(np.isin(kind, newer) & self.is_member)
            begin, ordinal = self.rows.begin[row], self.ordinals[row]
            self.notes.add(rules.NEWER_RECORD, row, begin, ordinal, kind[row])

    def _check_records(self, columns: dict[str, I64], is_called: Bools) -> None:
        """Report what is wrong with records."""
        rows, index, carry = self.rows, self.index, self.carry
        begin, kind, is_member = rows.begin, rows.kind, self.is_member

        def report(rule: Rule, row: I64, value: Any = 0) -> None:
            self.notes.add(rule, row, begin[row], self.ordinals[row], value)

        row = np.flatnonzero(rows.fault == int(rules.BAD_FUNCTION))
        report(rules.BAD_FUNCTION, row, function_fields(self.records, begin[row])[0])
        row = np.flatnonzero(kind == UNKNOWN)
        kinds = BIG_METADATA_KIND if self.records.mirrored else METADATA_KIND
        report(rules.UNKNOWN_METADATA, row, kinds.get(self.records.data[begin[row]].astype(int)))
        if self.version >= EXTENTS_VERSION:
            report(rules.END_RECORD, np.flatnonzero((kind == END_OF_BUFFER) & (rows.fault == 0)))
        row = np.flatnonzero((kind == WALL_TIME) & is_member)
        (micros,) = self.records.metadata(WALL_TIME, begin[row], "micros")
        is_wrong = (micros < 0) | (micros >= SECOND_IN_MICROS)
        report(rules.BAD_WALL_TIME, row[is_wrong], micros[is_wrong])
        report(
            rules.EMPTY_EVENT, np.flatnonzero(self.is_event & (rows.end - begin == METADATA_BYTES))
        )
        last = np.where(self.member_before < 0, carry.last, kind[self.member_before])
        if index.size:
            is_first = self.member_before < self.start_row
            last[is_first] = START
        row = np.flatnonzero(is_member & ~MAY_FOLLOW[last, kind])
        report(rules.OUT_OF_ORDER, row, last[row].astype(np.int64) << OF_LAST.low | kind[row])
        report(rules.NO_THREAD, np.sort(columns["no_thread"][columns["no_thread"] >= 0]))
        is_orphan = (kind == CALL_ARGUMENT) & is_member & ~is_called
        report(rules.ORPHAN_ARGUMENT, np.flatnonzero(is_orphan))
        report(rules.NO_TIME, np.sort(columns["no_time"][columns["no_time"] >= 0]))
        report(rules.TIME_JUMP, *self.jumps)
        if self.cut_row >= 0:
            report(rules.CUT_RECORD, np.array([self.cut_row]), self.mended)

    def _too_large(self) -> I64:
        """Return by which rule rows are not sound; events may be larger than a limit."""
        rows, most = self.rows, self.frames_read.most
        if not most:
            return rows.fault
        nbytes = rows.end - rows.begin
        row = np.flatnonzero(self.is_event & (nbytes > most))
        self.notes.add(
            rules.RECORD_TOO_LARGE, row, rows.begin[row], self.ordinals[row], nbytes[row]
        )
        fault = rows.fault.copy()
        fault[row] = int(rules.RECORD_TOO_LARGE)
        return fault

    def _add_stretches(self, number: I64, tsc: I64) -> None:
        """Enter the stretches of sound records."""
        is_cut = self.index == self.cut_row
        is_member = self.is_member
        before = np.append(False, is_member[:-1]) & ~np.append(False, is_cut[:-1])
        begins = is_member & ~(before & ~is_cut & ~self.opens)
        follows = np.append(begins[1:] | ~is_member[1:], True)
        first, last = np.flatnonzero(begins), np.flatnonzero(is_member & follows[: self.index.size])
        self.frames_read.stretches.add(
            self.rows.begin[first],
            self.rows.end[last],
            number[first],
            tsc[first],
            np.where(is_cut[first], CUT, 0),
        )


# --- Columns --------------------------------------------------------------------------------------


def half_follows(half: I64, *, ends: bool) -> Bools:
    """Return where the second half of a clock could be a record that follows one.

    ``half`` has its eight bytes; ``ends`` says whether an end record may be there.
    """
    follower = METADATA_KIND.get(half)
    may_follow = (IS_CLOCK | IS_EVENT)[np.minimum(follower, START)]
    if ends:
        may_follow |= follower == END_OF_BUFFER
    is_function = (FUNCTION_KIND.get(half) <= ENTER_ARG) & (FUNCTION_ID.get(half) != 0)
    return np.where(IS_METADATA.get(half) != 0, may_follow, is_function)


def latest(mask: Bools, index: I64) -> I64:
    """Return the last row up to each where a mask holds, -1 for none."""
    return np.maximum.accumulate(np.where(mask, index, -1))


def shifted(rows: I64) -> I64:
    """Return what the row before each has, -1 for the first."""
    return np.concatenate([[-1], rows[:-1]])[: rows.size]


def expanded(begin: I64, count: I64, step: int = FUNCTION_BYTES) -> tuple[I64, I64]:
    """Return the places of records that follow one another, and the first record of each row.

    ``begin`` and ``count`` are by row; ``step`` is the size of the records of one row.
    """
    firsts = np.cumsum(count) - count
    places = np.repeat(begin - step * firsts, count)
    places += step * np.arange(places.size)
    return places, firsts
