"""Buffers: what records of the flight data recorder say to each other, of a block at once.

Which buffer a record is in, whether it may follow the one before, which times were cut, and what of
it can be read as events (``SoundRows``). ``frames.FdrPolicy`` has found where the records are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray import rules
from fx_xray.format import (
    BUFFER_EXTENTS,
    CALL_ARGUMENT,
    CPU_TSC_AT,
    CUSTOM_EVENT,
    CUT,
    CUT_REACH_BITS,
    CUT_RECORD_JUMP,
    CUT_SHORT,
    DAMAGED,
    EARLY,
    END_OF_BUFFER,
    ENTER_ARG,
    EVENT_DELTA_VERSION,
    EXTENTS_VERSION,
    FIRST,
    FOLLOWS,
    FOREIGN_TYPED,
    FUNCTION,
    FUNCTION_BYTES,
    HAS_PID,
    HAS_THREAD,
    INHABITED,
    KIND_NAMES,
    METADATA_BYTES,
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
    Fdr,
    Function,
    TypedEvent,
    place,
)
from fx_xray.read.columns import expanded, latest, shifted
from fx_xray.read.frames import IS_EVENT, ROOM, FdrPolicy, Found, Records, Rows
from fxframework.errors import Rule
from fxframework.kernels.sorting import begins_of_runs, ends_of_runs
from fxframework.kit.scanned import FINDING_FIELDS

__all__ = ["MOST_CUTS", "FdrFrames", "Frames", "Notes", "SoundRows", "are_far", "mended_times"]

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
IS_CALL, IS_CLOCK = (np.isin(np.arange(START + 1), kinds) for kinds in (CALLS, [NEW_CPU, TSC_WRAP]))


class SoundRows:
    """Rows of sound records, which events are read of.

    ``table`` gives columns: ``begin``, ``count`` (records), ``block`` (the buffer, in basic mode
    the thread), ``code`` (the kind of the records) and ``flags``. ``cut_times`` are the times of
    the rows that were CUT.
    """

    def __init__(self) -> None:
        self.parts: list[tuple[NDArray[Any], ...]] = []
        self.cut_times: list[int] = []

    def add(self, begin: I64, count: I64, code: Any, block: I64, flags: Any) -> None:
        """Add some."""
        if begin.size:
            bytes_of_row = (code.astype(np.uint8), flags.astype(np.uint8))
            self.parts.append((begin, count.astype(np.int32), block, *bytes_of_row))

    def lengthen(self, count: int) -> None:
        """Let the last row have so many records more."""
        if count:
            self.parts[-1][1][-1] += count

    def table(self) -> list[NDArray[Any]]:
        """Return the columns, each of shape (rows,); they are no longer held here."""
        parts = self.parts or [(*np.zeros((3, 0), np.int64), *np.zeros((2, 0), np.uint8))]
        self.parts = []
        return [np.concatenate(column) for column in zip(*parts, strict=True)]


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
            new_findings = np.empty((row.size, FINDING_FIELDS), np.int64)
            for column, values in enumerate((int(rule), offset, record, value)):
                new_findings[:, column] = values
            self.rows.append(row)
            self.found.append(new_findings)

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
    second halves too. After the last block, ``buffers``, ``sound`` and ``losses`` are whole.
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
        self.sound = SoundRows()
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
        cut_row = block.find_cut()
        if cut_row >= 0:
            # A record begins in the middle of the one that was cut: what follows is read again.
            resume_at = int(rows.begin[cut_row]) + METADATA_BYTES // 2
            self.policy.go_back(rows, cut_row, resume_at)
            self.room = max(LEAST_ROOM, 2 * cut_row)
            columns: list[Any] = [column[: cut_row + 1].copy() for column in rows]
            rows = Rows(*columns)
            rows.end[cut_row] = resume_at
            cut_tsc = block.mended
            block = Block(self, rows)
            block.cut_row = cut_row
            block.mended = cut_tsc
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
        rows = self.rows
        carry = self.carry
        kind = rows.kind
        index = self.index
        is_member = self.is_member
        closes_buffer = rows.closes | (kind == BUFFER_EXTENTS) & is_member
        if carry.number < 0 and index.size:
            closes_buffer[0] = True
        last_closing = latest(closes_buffer)
        # The first record behind what closes a buffer opens one.
        self.member_before = shifted(latest(is_member))
        opens_buffer = is_member & (last_closing >= 0) & (self.member_before < last_closing)
        # So does a NewBuffer, unless only extents of its buffer were read.
        is_new = (kind == NEW_BUFFER) & is_member
        begun_before = shifted(latest(self.is_call | is_new))
        carry_begun = bool(carry.flags & (SETTLED | HAS_THREAD))
        in_this = np.where(
            last_closing >= 0, begun_before >= last_closing, (begun_before >= 0) | carry_begun
        )
        opens_buffer |= is_new & in_this
        self.opens = opens_buffer
        self.closers = np.flatnonzero(closes_buffer | opens_buffer)
        self.local = np.cumsum(opens_buffer)
        last_opening = latest(opens_buffer)
        self.is_open = last_opening >= last_closing
        if carry.number < 0:
            self.is_open &= last_opening >= 0
        self.first_row = np.concatenate([[-1], np.flatnonzero(opens_buffer)])
        """The row with which each buffer begins."""
        self.start_row = np.where(self.is_open, self.first_row[self.local], -1)

    def first_of(self, mask: Bools, carried: bool = False) -> I64:
        """Return the first row of each buffer where a mask holds, NO_ROW for none.

        ``carried`` says that it did in the open buffer, before this block: -1.
        """
        marked_rows = np.flatnonzero(mask & self.is_open)
        first_rows = np.full(self.first_row.size, NO_ROW)
        if marked_rows.size:
            buffers = self.local[marked_rows]
            is_first = begins_of_runs(buffers)
            first_rows[buffers[is_first]] = marked_rows[is_first]
        if carried:
            first_rows[0] = -1
        return first_rows

    def last_of(self, mask: Bools) -> I64:
        """Return the last row of each buffer where a mask holds, -1 for none."""
        marked_rows = np.flatnonzero(mask & self.is_open)
        last_rows = np.full(self.first_row.size, -1)
        if marked_rows.size:
            buffers = self.local[marked_rows]
            is_last = ends_of_runs(buffers)
            last_rows[buffers[is_last]] = marked_rows[is_last]
        return last_rows

    # --- Time -------------------------------------------------------------------------------------

    def find_cut(self) -> int:
        """Find when clocks were read; return the first record that was cut in half, or -1."""
        rows = self.rows
        carry = self.carry
        clock = np.flatnonzero(self.is_clock)
        tsc = np.empty(clock.size, np.int64)
        for kind in (NEW_CPU, TSC_WRAP):
            mine = rows.kind[clock] == kind
            (tsc[mine],) = self.records.metadata(kind, rows.begin[clock[mine]], "tsc")
        tsc[clock == self.cut_row] = self.mended
        self.clock = clock
        self.clock_tsc = tsc
        first_clock = self.first_of(self.is_clock, carry.is_timed)
        last_clock = self.last_of(self.is_clock)
        self.first_clock = first_clock
        # Where no clock follows, nobody asks how late it is.
        is_between = (self.index > first_clock[self.local]) & self.is_advance & self.is_open
        between = np.flatnonzero(is_between & (self.index < last_clock[self.local]))
        self.behind = np.flatnonzero(is_between & (self.index > last_clock[self.local]))
        if not clock.size:
            self.jumps = (clock, tsc)
            return -1
        deltas = np.zeros(self.index.size, np.int64)
        deltas[between] = self._deltas(self._advances(between))
        sums = np.cumsum(deltas)
        clock_before = np.append(carry.base, tsc[:-1])
        base = clock_before + np.diff(sums[clock], prepend=0)
        if carry.is_timed and carry.owed and self.local[clock[0]] == 0:
            # Of arrays, a sum wraps as the times of records do.
            base[:1] += np.concatenate([self._deltas(rows) for rows in carry.owed]).sum()
        buffer = self.local[clock]
        is_timed = np.diff(buffer, prepend=0 if carry.is_timed else -1) == 0
        jumps = np.flatnonzero(is_timed & are_far(tsc, base))
        self.jumps = clock[jumps], (tsc - base)[jumps]
        if not jumps.size or self.records.big or not self.frames_read.mends:
            return -1
        if self.frames_read.cuts >= MOST_CUTS:
            return -1
        rows_cut = clock[jumps]
        mended, is_cut = mended_times(
            self.records,
            rows.kind[rows_cut],
            rows.begin[rows_cut],
            base[jumps],
            ends=self.version < EXTENTS_VERSION,
        )
        cuts = np.flatnonzero(is_cut)
        if not cuts.size:
            return -1
        self.mended = int(mended[cuts[0]])
        return int(rows_cut[cuts[0]])

    def _advances(self, row: I64) -> I64:
        """Return begin, records and kind of rows, of shape (3, rows)."""
        rows = self.rows
        return np.stack([rows.begin[row], rows.counts[row], rows.kind[row]])

    def _deltas(self, rows: I64) -> I64:
        """Return by how much rows (``_advances``) advance the time, int64 of shape (rows,)."""
        begin, count, kind = rows
        deltas = np.empty(begin.size, np.int64)
        function = np.flatnonzero(kind == FUNCTION)
        if function.size:
            places, firsts = expanded(begin[function], count[function])
            (record_deltas,) = self.records.fields(Function, places, "delta")
            deltas[function] = np.add.reduceat(record_deltas, firsts)
        event = np.flatnonzero(kind != FUNCTION)
        (deltas[event],) = self.records.metadata(TYPED_EVENT, begin[event], "delta")
        return deltas

    # --- The buffers ------------------------------------------------------------------------------

    def frames(self, end: int | None = None) -> Frames:
        """Return the records, with what is wrong with them; go on behind them.

        With an ``end``, the buffer that is open there ends.
        """
        frames = self.frames_read
        rows = self.rows
        begin = rows.begin
        policy_findings = frames.policy.found
        self._add_found([each for each in policy_findings if each.rule != rules.EXTENTS_PAST_FILE])
        self._check_versions()
        columns = self._columns()
        self._end_buffers(columns, end)
        self._add_found([each for each in policy_findings if each.rule == rules.EXTENTS_PAST_FILE])
        follows_call = self._follows_call()
        is_function = (rows.kind == FUNCTION) & self.is_member
        is_called = np.where(rows.kind == CALL_ARGUMENT, follows_call, is_function)
        self._check_records(columns, is_called)
        fault = self._too_large()
        frames.ordinal += int(rows.counts.sum())
        shown_kind = np.where((fault > 0) & (rows.kind != UNKNOWN), DAMAGED, rows.kind)
        np.add.at(frames.kinds, shown_kind, rows.counts)
        lost_rows = np.flatnonzero(fault > 0)
        if lost_rows.size:
            frames.losses.append(
                np.stack([begin[lost_rows], rows.end[lost_rows], fault[lost_rows]])
            )
        tsc = np.zeros(begin.size, np.int64)
        if self.cut_row >= 0:
            tsc[self.cut_row] = self.mended
            frames.sound.cut_times.append(self.mended)
            frames.cuts += 1
        number = np.where(self.is_open, frames.buffer_count - 1 + self.local, -1)
        self._add_sound(number, follows_call)
        if end is None:
            self._go_on(columns, is_called)
        notes, rows_noted = self.notes.in_order()
        noted_at = begin[rows_noted] if begin.size else np.full(rows_noted.size, frames.policy.size)
        return Frames(begin, rows.end, rows.counts, rows.kind, fault, number, is_called, tsc,
                      notes, noted_at)  # fmt: skip

    def _add_found(self, findings: list[Found]) -> None:
        """Enter findings of the policy, but for those behind a record that was cut."""
        rows = self.rows
        for finding in findings:
            row = np.searchsorted(rows.begin, [finding.at], side="right") - 1
            if rows.end.size and finding.at < rows.end[-1]:
                self.notes.add(finding.rule, row, finding.offset, self.ordinals[row], finding.value)

    def _columns(self) -> dict[str, I64]:
        """Return what is known of each buffer, and the rows at which something of it is decided."""
        rows = self.rows
        carry = self.carry
        index = self.index
        begin = rows.begin
        kind = rows.kind
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
        before_settled = index < settled[self.local]
        thread = self.last_of((kind == NEW_BUFFER) & self.is_member)
        has_thread = np.flatnonzero(thread >= 0)
        (columns["tid"][has_thread],) = metadata(NEW_BUFFER, begin[thread[has_thread]], "thread")
        process = self.last_of((kind == PID) & before_settled & self.is_member)
        has_process = np.flatnonzero(process >= 0)
        (columns["pid"][has_process],) = metadata(PID, begin[process[has_process]], "process")
        is_wall = (kind == WALL_TIME) & before_settled & self.is_member
        wall = self.first_of(is_wall, bool(carry.flags & WALLED))
        walled = np.flatnonzero((wall >= 0) & (wall < NO_ROW))
        columns["seconds"][walled], columns["micros"][walled] = metadata(
            WALL_TIME, begin[wall[walled]], "seconds", "micros"
        )
        no_thread = (settled >= 0) & (settled < NO_ROW) & ((thread < 0) | (thread > settled))
        no_thread[0] &= not carry.flags & HAS_THREAD
        clock = self.first_clock
        advance = self.first_of(self.is_advance)
        no_time = advance < clock
        no_time[0] &= not carry.flags & TIMELESS
        is_timeless = no_time | (flags & TIMELESS != 0)
        timed = np.flatnonzero((clock >= 0) & (clock < NO_ROW) & ~is_timeless)
        columns["tsc"][timed] = self.clock_tsc[np.searchsorted(self.clock, clock[timed])]
        own_time = self.first_of((kind == CALL_ARGUMENT) & self.is_member | self.is_event)
        spare_rows = np.flatnonzero((kind == TYPED_EVENT) & self.is_member)
        if self.version < EVENT_DELTA_VERSION:
            spare_rows = spare_rows[:0]
        numbers = self.records.numbers
        is_foreign = numbers.integers(begin[spare_rows] + SPARE_AT, SPARE_BYTES, big=False) != 0
        columns["typed"] += np.bincount(self.local[spare_rows], minlength=count)
        marks = {
            SETTLED: settled < NO_ROW,
            HAS_THREAD: thread >= 0,
            HAS_PID: process >= 0,
            WALLED: wall < NO_ROW,
            TIMELESS: is_timeless,
            EARLY: own_time < clock,
            INHABITED: self.last_of(self.is_member & (kind != BUFFER_EXTENTS)) >= 0,
            CUT_SHORT: self.last_of(rows.is_cut_off) >= 0,
            FOREIGN_TYPED: np.isin(np.arange(count), self.local[spare_rows[is_foreign]]),
        }
        for flag, holds in marks.items():
            flags |= np.where(holds, flag, 0)
        columns["no_thread"] = np.where(no_thread, settled, -1)
        columns["no_time"] = np.where(no_time, advance, -1)
        last_member = self.last_of(self.is_member)
        has_last = np.flatnonzero(last_member >= 0)
        last_member = last_member[has_last]
        # Of calls that follow one another, the last record is the last call.
        last_bytes = rows.end[last_member] - begin[last_member]
        last_bytes[kind[last_member] == FUNCTION] = FUNCTION_BYTES
        for name, values in (
            ("last", kind[last_member]),
            ("last_offset", rows.end[last_member] - last_bytes),
            ("last_record", self.ordinals[last_member] + rows.counts[last_member] - 1),
        ):
            columns[name] = np.full(count, getattr(carry, name))
            columns[name][has_last] = values
        return columns

    def _end_buffers(self, columns: dict[str, I64], end: int | None) -> None:
        """Report what is wrong with buffers that end; enter them."""
        rows = self.rows
        closer_index = np.searchsorted(self.closers, self.first_row, side="right")
        has_ended = closer_index < self.closers.size
        has_ended[0] &= self.carry.number >= 0
        buffer = np.flatnonzero(has_ended)
        row = self.closers[closer_index[buffer]]
        if end is None:
            stop = rows.begin[row]
            record = self.ordinals[row]
            by_extents = rows.by_extents[row]
        else:
            buffer = np.arange(int(self.carry.number >= 0))
            row = np.zeros(buffer.size, np.int64)
            stop = np.full(buffer.size, end)
            record = np.full(buffer.size, self.frames_read.ordinal)
            by_extents = np.full(buffer.size, self.frames_read.policy.by_extents)
        if not buffer.size:
            return
        own_columns = {name: column[buffer] for name, column in columns.items()}
        last_kind = own_columns["last"]
        flags = own_columns["flags"]
        # The end record of version 1 ended the buffer before.
        goes_on = (last_kind != END_OF_BUFFER) | (self.version >= EXTENTS_VERSION)
        in_preamble = np.isin(last_kind, [NEW_BUFFER, WALL_TIME, PID])
        no_end = goes_on & ~by_extents
        is_foreign = (flags & (FOREIGN_TYPED | CUT_SHORT)) == FOREIGN_TYPED
        lost_tail = goes_on & by_extents & is_foreign
        for rule, holds, value in (
            (rules.ENDS_IN_PREAMBLE, in_preamble, last_kind),
            (rules.NO_END_RECORD, no_end, 0 * last_kind),
            (rules.LOST_TAIL, lost_tail, METADATA_BYTES * own_columns["typed"]),
        ):
            buffers_noted = np.flatnonzero(holds)
            self.notes.add(
                rule,
                row[buffers_noted],
                own_columns["last_offset"][buffers_noted],
                own_columns["last_record"][buffers_noted],
                value[buffers_noted],
            )
        own_columns |= {"stop": stop, "records": record - own_columns["first_record"]}
        self.frames_read.blocks_done.append(np.stack([own_columns[name] for name in COLUMNS]))

    def _go_on(self, columns: dict[str, I64], is_called: Bools) -> None:
        """Note what is known behind the block."""
        frames = self.frames_read
        frames.buffer_count += int(self.opens.sum())
        if not self.index.size:
            return
        if not self.is_open[-1]:
            frames.open = OpenBuffer()
            return
        names = [
            attribute.name for attribute in attrs.fields(OpenBuffer) if attribute.name in columns
        ]
        rows_behind = self.behind[self.local[self.behind] == self.local[-1]]
        owed = []
        if rows_behind.size:
            owed.append(self._advances(rows_behind))
        base = 0
        if self.clock.size:
            base = int(self.clock_tsc[-1])
        if self.carry.number >= 0 and not self.local[-1] and not self.is_clock.any():
            base = self.carry.base
            owed = self.carry.owed + owed
        frames.open = OpenBuffer(
            number=frames.buffer_count - 1,
            is_timed=bool(self.first_clock[-1] < NO_ROW),
            base=base,
            owed=owed,
            is_called=bool(is_called[-1]),
            **{name: int(columns[name][-1]) for name in names},
        )

    # --- The records ------------------------------------------------------------------------------

    def _follows_call(self) -> Bools:
        """Return which rows follow a call directly, but for its arguments."""
        kind = self.rows.kind
        carry = self.carry
        is_function = (kind == FUNCTION) & self.is_member
        is_argument = (kind == CALL_ARGUMENT) & self.is_member
        call = shifted(latest(~is_argument))
        is_same_buffer = self.is_open[call] & (self.local[call] == self.local)
        is_near = is_function[call] & is_same_buffer
        carried = carry.is_called and carry.number >= 0
        follows: Bools = np.where(call >= 0, is_near, carried & (self.local == 0))
        return follows

    def _check_versions(self) -> None:
        """Report records that came with later versions."""
        kind = self.rows.kind
        newer = []
        if self.version < EXTENTS_VERSION:
            newer.append(BUFFER_EXTENTS)
        if self.version < PID_VERSION:
            newer += [PID, TYPED_EVENT]
        if newer:
            row = np.flatnonzero(np.isin(kind, newer) & self.is_member)
            begin = self.rows.begin[row]
            ordinal = self.ordinals[row]
            self.notes.add(rules.NEWER_RECORD, row, begin, ordinal, kind[row])

    def _check_records(self, columns: dict[str, I64], is_called: Bools) -> None:
        """Report what is wrong with records."""
        rows = self.rows
        index = self.index
        carry = self.carry
        begin = rows.begin
        kind = rows.kind
        is_member = self.is_member

        def report(rule: Rule, rows_found: I64, value: Any = 0) -> None:
            self.notes.add(rule, rows_found, begin[rows_found], self.ordinals[rows_found], value)

        rows_found = np.flatnonzero(rows.fault == int(rules.BAD_FUNCTION))
        report(
            rules.BAD_FUNCTION,
            rows_found,
            self.records.fields(Function, begin[rows_found], "kind")[0],
        )
        rows_found = np.flatnonzero(kind == UNKNOWN)
        report(
            rules.UNKNOWN_METADATA,
            rows_found,
            *self.records.fields(Fdr, begin[rows_found], "_kind"),
        )
        if self.version >= EXTENTS_VERSION:
            report(rules.END_RECORD, np.flatnonzero((kind == END_OF_BUFFER) & (rows.fault == 0)))
        rows_found = np.flatnonzero((kind == WALL_TIME) & is_member)
        (micros,) = self.records.metadata(WALL_TIME, begin[rows_found], "micros")
        is_wrong = (micros < 0) | (micros >= SECOND_IN_MICROS)
        report(rules.BAD_WALL_TIME, rows_found[is_wrong], micros[is_wrong])
        report(
            rules.EMPTY_EVENT, np.flatnonzero(self.is_event & (rows.end - begin == METADATA_BYTES))
        )
        last_kind = np.where(self.member_before < 0, carry.last, kind[self.member_before])
        if index.size:
            is_first = self.member_before < self.start_row
            last_kind[is_first] = START
        rows_found = np.flatnonzero(is_member & ~MAY_FOLLOW[last_kind, kind])
        last_kinds = last_kind[rows_found].astype(np.int64)
        report(rules.OUT_OF_ORDER, rows_found, (1 << OF_LAST.low) * last_kinds + kind[rows_found])
        report(rules.NO_THREAD, np.sort(columns["no_thread"][columns["no_thread"] >= 0]))
        is_orphan = (kind == CALL_ARGUMENT) & is_member & ~is_called
        report(rules.ORPHAN_ARGUMENT, np.flatnonzero(is_orphan))
        report(rules.NO_TIME, np.sort(columns["no_time"][columns["no_time"] >= 0]))
        report(rules.TIME_JUMP, *self.jumps)
        if self.cut_row >= 0:
            report(rules.CUT_RECORD, np.array([self.cut_row]), self.mended)

    def _too_large(self) -> I64:
        """Return by which rule rows are not sound; events may be larger than a limit."""
        rows = self.rows
        max_bytes = self.frames_read.most
        if not max_bytes:
            return rows.fault
        nbytes = rows.end - rows.begin
        large_rows = np.flatnonzero(self.is_event & (nbytes > max_bytes))
        self.notes.add(
            rules.RECORD_TOO_LARGE,
            large_rows,
            rows.begin[large_rows],
            self.ordinals[large_rows],
            nbytes[large_rows],
        )
        fault = rows.fault.copy()
        fault[large_rows] = int(rules.RECORD_TOO_LARGE)
        return fault

    def _add_sound(self, number: I64, follows_call: Bools) -> None:
        """Enter the rows of sound records."""
        rows = self.rows
        flags = np.where(self.opens, FIRST, 0) | np.where(follows_call, FOLLOWS, 0)
        flags |= np.where(self.index == self.cut_row, CUT, 0)
        sound = np.flatnonzero(self.is_member)
        self.frames_read.sound.add(
            rows.begin[sound],
            rows.counts[sound],
            rows.kind[sound],
            number[sound].astype(np.int32),
            flags[sound],
        )


def are_far(times: I64, bases: I64) -> Bools:
    """Return which times are so far from others that their records may have been cut in half."""
    is_later = times.view(np.uint64) >= bases.view(np.uint64)
    apart = times - bases
    is_far: Bools = np.where(is_later, apart, -apart).view(np.uint64) > np.uint64(CUT_RECORD_JUMP)
    return is_far


def mended_times(
    records: Records, kind: NDArray[Any], begin: I64, base: I64, *, ends: bool
) -> tuple[I64, Bools]:
    """Return the times that clocks had whose second half was overwritten, and which were.

    The clocks begin at some places, in little-endian order. The low bits of such a time are still
    there, and a record that may follow it begins in the middle of its record; ``ends`` says whether
    an end record may be there.
    """
    half = METADATA_BYTES // 2
    ahead = np.zeros(begin.size, np.int64)
    for clock, tsc_at in ((NEW_CPU, CPU_TSC_AT), (TSC_WRAP, WRAP_TSC_AT)):
        mine = np.flatnonzero(kind == clock)
        low_half = records.numbers.integers(begin[mine] + tsc_at, half - tsc_at, big=False)
        ahead[mine] = low_half - base[mine] & (1 << 8 * (half - tsc_at)) - 1
    mended = base + ahead
    is_reached = (ahead < 1 << CUT_REACH_BITS) & (mended.view(np.uint64) >= base.view(np.uint64))
    is_metadata, follower = records.fields(Fdr, begin + half, "_type", "_kind")
    may_follow = (IS_CLOCK | IS_EVENT)[np.minimum(follower, START)]
    if ends:
        may_follow |= follower == END_OF_BUFFER
    function_kind, function = records.fields(Function, begin + half, "kind", "function_id")
    is_function = (function_kind <= ENTER_ARG) & (function != 0)
    return mended, is_reached & np.where(is_metadata != 0, may_follow, is_function)
