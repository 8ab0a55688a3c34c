"""Buffers: what records of the flight data recorder say to each other, of a block at once.

Which buffer a record is in, whether it may follow the one before, which times were cut, and what of
it can be read as events (``SoundRows``). ``frames.FdrPolicy`` has found where the records are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
)
from fx_xray.read.columns import latest, shifted
from fx_xray.read.frames import IS_EVENT, ROOM, FdrPolicy, GatheredParts, Records, Rows
from fxframework.errors import Rule
from fxframework.kernels.arrays import I64, U8, Bools
from fxframework.kernels.sorting import begins_of_runs, ends_of_runs, joined_ranges
from fxframework.model.diagnostics import Found
from fxframework.wire.findings import FIELDS, findings_of

MOST_CUTS: Final = 1000
"""Records that were cut in half and are mended; a file that seems to have more is not mended any
further."""
LEAST_ROOM: Final = 64
"""Records of a block behind one that ended early, at least."""
SPARE_AT: Final = TypedEvent.layout.place("event_type").end
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
            columns = (count.astype(np.int32), block, code.astype(np.uint8), flags.astype(np.uint8))
            self.parts.append((begin, *columns))

    def lengthen(self, count: int) -> None:
        """Let the last row have so many records more."""
        if count:
            self.parts[-1][1][-1] += count

    def table(self) -> list[NDArray[Any]]:
        """Return the columns, each of shape (rows,); they are no longer held here."""
        no_numbers = np.zeros(0, np.int64)
        no_bytes = np.zeros(0, np.uint8)
        parts = self.parts or [(no_numbers, no_numbers, no_numbers, no_bytes, no_bytes)]
        self.parts = []
        return [np.concatenate(column) for column in zip(*parts, strict=True)]


class Notes:
    """Findings of one block, which are put in order by the row that they are found at.

    ``begin`` and ``ordinals`` have the place and the number of the record of each row. Findings at
    one row are in the order in which they are added.
    """

    def __init__(self, begin: I64, ordinals: I64) -> None:
        self.begin = begin
        self.ordinals = ordinals
        self.rows: list[I64] = []
        self.found: list[I64] = []

    def report(self, rule: Rule, row: I64, value: Any = 0) -> None:
        """Add findings by one rule about the records of rows."""
        self.add(rule, row, self.begin[row], self.ordinals[row], value)

    def add(self, rule: Rule, row: I64, offset: Any, record: Any, value: Any) -> None:
        """Add findings by one rule; all but the rule are columns, or the same of all of them."""
        if row.size:
            self.rows.append(row)
            self.found.append(findings_of(rule, offset, record, value, row.size))

    def in_order(self) -> I64:
        """Return the findings, of shape (findings, 4)."""
        if not self.rows:
            return np.zeros((0, FIELDS), np.int64)
        order = np.argsort(np.concatenate(self.rows), kind="stable")
        return np.concatenate(self.found)[order]


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
    notes: I64
    """Findings: rule, offset, number of the record, value; of shape (findings, 4)."""


NOTHING_KNOWN: Final = {
    "start": 0, "first_record": 0, "seconds": 0, "micros": 0, "tsc": 0, "pid": 0, "tid": 0,
    "flags": 0, "typed": 0, "last": START, "last_offset": 0, "last_record": 0,
}  # fmt: skip
"""What columns of buffers say, before anything is known of one; ``last`` is its last record."""


@attrs.define
class OpenBuffer:
    """What is known of the buffer at hand behind a block."""

    number: int = -1
    """-1: none is open."""
    facts: dict[str, int] = attrs.field(factory=lambda: dict(NOTHING_KNOWN))
    """By the names of NOTHING_KNOWN."""
    is_timed: bool = False
    base: int = 0
    """The time that the last clock said, if it is timed."""
    owed: list[I64] = attrs.field(factory=list)
    """Rows that came since, by which the time is ahead: begin, records and kind of each."""
    is_called: bool = False

    @property
    def flags(self) -> int:
        """The marks of the buffer, as in the table."""
        return self.facts["flags"]


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
            block = Block(self, rows, cut_row, block.mended)
            block.find_cut()
        return block.frames()

    def finish(self) -> Frames:
        """End the last buffer, at the end of the file."""
        self.policy.gathered.found = []
        block = Block(self, GatheredParts().joined())
        block.find_cut()
        return block.frames(self.policy.size)

    def buffers(self) -> dict[str, I64]:
        """Return what buffers there are, as columns of COLUMNS."""
        no_buffers = np.zeros((len(COLUMNS), 0), np.int64)
        rows = np.concatenate([no_buffers, *self.blocks_done], axis=1)
        return dict(zip(COLUMNS, rows, strict=True))


class RowKinds:
    """What each row of a block is."""

    def __init__(self, rows: Rows, version: int) -> None:
        kind = rows.kind
        self.is_member = rows.fault == 0
        """Sound records of a buffer."""
        if version >= EXTENTS_VERSION:
            self.is_member &= kind != END_OF_BUFFER
        self.is_call = IS_CALL[kind] & self.is_member
        self.is_clock = IS_CLOCK[kind] & self.is_member
        self.is_event = IS_EVENT[kind] & self.is_member
        self.is_function = (kind == FUNCTION) & self.is_member
        self.is_argument = (kind == CALL_ARGUMENT) & self.is_member
        self.is_advance = self.is_function
        """What has a delta."""
        if version >= EVENT_DELTA_VERSION:
            self.is_advance = self.is_function | self.is_event


class BufferNumbers:
    """Which buffer each row of a block is in.

    Buffers have *local* numbers: 0 is the one that is open before the block, if one is.
    """

    def __init__(self, rows: Rows, kinds: RowKinds, carry: OpenBuffer) -> None:
        is_member = kinds.is_member
        closes_buffer = rows.closes | (rows.kind == BUFFER_EXTENTS) & is_member
        if carry.number < 0 and closes_buffer.size:
            closes_buffer[0] = True
        last_closing = latest(closes_buffer)
        # The first record behind what closes a buffer opens one.
        self.member_before = shifted(latest(is_member))
        opens_buffer = is_member & (last_closing >= 0) & (self.member_before < last_closing)
        # So does a NewBuffer, unless only extents of its buffer were read.
        is_new = (rows.kind == NEW_BUFFER) & is_member
        begun_before = shifted(latest(kinds.is_call | is_new))
        carry_has_begun = bool(carry.flags & (SETTLED | HAS_THREAD))
        has_begun_in_block = begun_before >= np.maximum(last_closing, 0)
        has_begun = has_begun_in_block | (last_closing < 0) & carry_has_begun
        opens_buffer |= is_new & has_begun
        self.opens = opens_buffer
        self.closers = np.flatnonzero(closes_buffer | opens_buffer)
        """Rows with which the buffer before them ends."""
        self.local = np.cumsum(opens_buffer)
        last_opening = latest(opens_buffer)
        self.is_open = last_opening >= last_closing
        if carry.number < 0:
            self.is_open &= last_opening >= 0
        self.first_row = np.concatenate([[-1], np.flatnonzero(opens_buffer)])
        """The row with which each buffer begins."""
        self.start_row = np.where(self.is_open, self.first_row[self.local], -1)
        """The row with which the buffer of each row begins."""

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


class Block:
    """The records of one block, with what is known of the buffers that they are in."""

    def __init__(self, frames: FdrFrames, rows: Rows, cut_row: int = -1, mended: int = 0) -> None:
        self.frames_read = frames
        self.records = frames.records
        self.version = frames.version
        self.rows = rows
        self.carry = frames.open
        self.cut_row = cut_row
        """The row that was cut in half, if it is known."""
        self.mended = mended
        """The time of this row."""
        self.ordinals = frames.ordinal + np.cumsum(rows.counts) - rows.counts
        self.notes = Notes(rows.begin, self.ordinals)
        self.kinds = RowKinds(rows, self.version)
        self.buffers = BufferNumbers(rows, self.kinds, self.carry)

    # --- Time -------------------------------------------------------------------------------------

    def find_cut(self) -> int:
        """Find when clocks were read; return the first record that was cut in half, or -1."""
        rows = self.rows
        carry = self.carry
        buffers = self.buffers
        is_clock = self.kinds.is_clock
        clock = np.flatnonzero(is_clock)
        tsc = np.empty(clock.size, np.int64)
        for kind in (NEW_CPU, TSC_WRAP):
            is_of_kind = rows.kind[clock] == kind
            begin = rows.begin[clock[is_of_kind]]
            (tsc[is_of_kind],) = self.records.metadata(kind, begin, "tsc")
        tsc[clock == self.cut_row] = self.mended
        self.clock = clock
        self.clock_tsc = tsc
        self.first_clock = buffers.first_of(is_clock, carry.is_timed)
        index = np.arange(rows.begin.size)
        last_clock = buffers.last_of(is_clock)[buffers.local]
        is_behind_clock = index > self.first_clock[buffers.local]
        is_timed_advance = is_behind_clock & self.kinds.is_advance & buffers.is_open
        # Where no clock follows, nobody asks how late it is.
        self.behind = np.flatnonzero(is_timed_advance & (index > last_clock))
        if not clock.size:
            self.jumps = (clock, tsc)
            return -1
        between = np.flatnonzero(is_timed_advance & (index < last_clock))
        deltas = np.zeros(index.size, np.int64)
        deltas[between] = self._deltas(self._advances(between))
        sums = np.cumsum(deltas)
        clock_before = np.append(carry.base, tsc[:-1])
        base = clock_before + np.diff(sums[clock], prepend=0)
        clock_buffer = buffers.local[clock]
        if carry.is_timed and carry.owed and clock_buffer[0] == 0:
            owed_deltas = [self._deltas(advances) for advances in carry.owed]
            # Of arrays, a sum wraps as the times of records do.
            base[:1] += np.concatenate(owed_deltas).sum()
        timed_buffer = 0 if carry.is_timed else -1
        is_timed = np.diff(clock_buffer, prepend=timed_buffer) == 0
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
            counts = count[function]
            places = joined_ranges(begin[function], counts, FUNCTION_BYTES)
            (record_deltas,) = self.records.fields(Function, places, "delta")
            deltas[function] = np.add.reduceat(record_deltas, np.cumsum(counts) - counts)
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
        # Findings at one row are reported in the order in which they are added: extents that go
        # past the file after what is wrong with the buffer before them.
        late_findings = []
        for finding in frames.policy.gathered.found:
            if finding.rule == rules.EXTENTS_PAST_FILE:
                late_findings.append(finding)
            else:
                self._add_found(finding)
        self._check_versions()
        columns = self._columns()
        self._end_buffers(columns, end)
        for finding in late_findings:
            self._add_found(finding)
        follows_call = self._follows_call()
        is_argument = rows.kind == CALL_ARGUMENT
        is_called = np.where(is_argument, follows_call, self.kinds.is_function)
        self._check_records(columns, is_called)
        fault = self._too_large()
        frames.ordinal += int(rows.counts.sum())
        is_lost = fault > 0
        shown_kind = np.where(is_lost & (rows.kind != UNKNOWN), DAMAGED, rows.kind)
        np.add.at(frames.kinds, shown_kind, rows.counts)
        if is_lost.any():
            losses = np.stack([begin[is_lost], rows.end[is_lost], fault[is_lost]])
            frames.losses.append(losses)
        if self.cut_row >= 0:
            frames.sound.cut_times.append(self.mended)
            frames.cuts += 1
        numbers_in_file = frames.buffer_count - 1 + self.buffers.local
        number = np.where(self.buffers.is_open, numbers_in_file, -1)
        self._add_sound(number, follows_call)
        if end is None:
            self._go_on(columns, is_called)
        notes = self.notes.in_order()
        return Frames(begin, rows.end, rows.counts, rows.kind, fault, number, is_called, notes)

    def _add_found(self, finding: Found) -> None:
        """Enter a finding of the policy, unless it is behind a record that was cut."""
        rows = self.rows
        if rows.end.size and finding.offset < rows.end[-1]:
            row = np.searchsorted(rows.begin, [finding.offset], side="right") - 1
            self.notes.add(finding.rule, row, finding.offset, self.ordinals[row], finding.value)

    def _columns(self) -> dict[str, I64]:
        """Return what is known of each buffer, and the rows at which something of it is decided."""
        rows = self.rows
        carry = self.carry
        buffers = self.buffers
        begin = rows.begin
        kind = rows.kind
        is_member = self.kinds.is_member
        opening = buffers.first_row[1:]
        count = buffers.first_row.size
        columns: dict[str, I64] = {}
        for name, unknown in NOTHING_KNOWN.items():
            columns[name] = np.full(count, unknown)
            columns[name][0] = carry.facts[name]
        columns["start"][1:] = begin[opening]
        columns["first_record"][1:] = self.ordinals[opening]
        flags = columns["flags"]
        settled = buffers.first_of(self.kinds.is_call, bool(carry.flags & SETTLED))
        # Only what comes before the first call says something of the buffer.
        is_unsettled = np.arange(begin.size) < settled[buffers.local]
        may_describe = is_unsettled & is_member
        thread = buffers.last_of((kind == NEW_BUFFER) & is_member)
        self._read_into(columns, {"tid": "thread"}, NEW_BUFFER, thread)
        process = buffers.last_of((kind == PID) & may_describe)
        self._read_into(columns, {"pid": "process"}, PID, process)
        is_wall = (kind == WALL_TIME) & may_describe
        wall = buffers.first_of(is_wall, bool(carry.flags & WALLED))
        self._read_into(columns, {"seconds": "seconds", "micros": "micros"}, WALL_TIME, wall)
        is_settled_here = (settled >= 0) & (settled < NO_ROW)
        no_thread = is_settled_here & ((thread < 0) | (thread > settled))
        no_thread[0] &= not carry.flags & HAS_THREAD
        clock = self.first_clock
        advance = buffers.first_of(self.kinds.is_advance)
        no_time = advance < clock
        no_time[0] &= not carry.flags & TIMELESS
        is_timeless = no_time | (flags & TIMELESS != 0)
        is_timed_here = (clock >= 0) & (clock < NO_ROW) & ~is_timeless
        clock_number = np.searchsorted(self.clock, clock[is_timed_here])
        columns["tsc"][is_timed_here] = self.clock_tsc[clock_number]
        own_time = buffers.first_of(self.kinds.is_argument | self.kinds.is_event)
        typed_buffers, foreign_buffers = self._typed_events()
        columns["typed"] += np.bincount(typed_buffers, minlength=count)
        is_inhabitant = is_member & (kind != BUFFER_EXTENTS)
        marks = {
            SETTLED: settled < NO_ROW,
            HAS_THREAD: thread >= 0,
            HAS_PID: process >= 0,
            WALLED: wall < NO_ROW,
            TIMELESS: is_timeless,
            EARLY: own_time < clock,
            INHABITED: buffers.last_of(is_inhabitant) >= 0,
            CUT_SHORT: buffers.last_of(rows.is_cut_off) >= 0,
            FOREIGN_TYPED: np.isin(np.arange(count), foreign_buffers),
        }
        for flag, holds in marks.items():
            flags |= np.where(holds, flag, 0)
        columns["no_thread"] = np.where(no_thread, settled, -1)
        columns["no_time"] = np.where(no_time, advance, -1)
        self._add_last_records(columns)
        return columns

    def _read_into(
        self, columns: dict[str, I64], fields: Mapping[str, str], kind: int, row: I64
    ) -> None:
        """Set columns to fields of a metadata record of each buffer, where one is in the block."""
        is_here = (row >= 0) & (row < NO_ROW)
        values = self.records.metadata(kind, self.rows.begin[row[is_here]], *fields.values())
        for name, column in zip(fields, values, strict=True):
            columns[name][is_here] = column

    def _typed_events(self) -> tuple[I64, I64]:
        """Return the buffers of typed events, and of those with other bytes than compiler-rt's."""
        rows = self.rows
        is_typed = (rows.kind == TYPED_EVENT) & self.kinds.is_member
        if self.version < EVENT_DELTA_VERSION:
            is_typed[:] = False
        spare = rows.begin[is_typed] + SPARE_AT
        is_foreign = self.records.numbers.integers(spare, SPARE_BYTES, big=False) != 0
        buffers = self.buffers.local[is_typed]
        return buffers, buffers[is_foreign]

    def _add_last_records(self, columns: dict[str, I64]) -> None:
        """Add kind, offset and number of the last record of each buffer."""
        rows = self.rows
        last_row = self.buffers.last_of(self.kinds.is_member)
        has_last = last_row >= 0
        last_row = last_row[has_last]
        kind = rows.kind[last_row]
        # Of calls that follow one another, the last record is the last call.
        last_bytes = rows.end[last_row] - rows.begin[last_row]
        last_bytes[kind == FUNCTION] = FUNCTION_BYTES
        last_record = self.ordinals[last_row] + rows.counts[last_row] - 1
        for name, values in (
            ("last", kind),
            ("last_offset", rows.end[last_row] - last_bytes),
            ("last_record", last_record),
        ):
            columns[name][has_last] = values

    def _end_buffers(self, columns: dict[str, I64], end: int | None) -> None:
        """Report what is wrong with buffers that end; enter them."""
        rows = self.rows
        closers = self.buffers.closers
        closer_index = np.searchsorted(closers, self.buffers.first_row, side="right")
        has_ended = closer_index < closers.size
        has_ended[0] &= self.carry.number >= 0
        buffer = np.flatnonzero(has_ended)
        row = closers[closer_index[buffer]]
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
        tail_bytes = METADATA_BYTES * own_columns["typed"]
        for rule, holds, value in (
            (rules.ENDS_IN_PREAMBLE, in_preamble, last_kind),
            (rules.NO_END_RECORD, no_end, np.zeros_like(last_kind)),
            (rules.LOST_TAIL, lost_tail, tail_bytes),
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
        ended = np.stack([own_columns[name] for name in COLUMNS])
        self.frames_read.blocks_done.append(ended)

    def _go_on(self, columns: dict[str, I64], is_called: Bools) -> None:
        """Note what is known behind the block."""
        frames = self.frames_read
        frames.buffer_count += int(self.buffers.opens.sum())
        local = self.buffers.local
        if not local.size:
            return
        frames.open = OpenBuffer()
        if not self.buffers.is_open[-1]:
            return
        rows_behind = self.behind[local[self.behind] == local[-1]]
        owed = []
        if rows_behind.size:
            owed.append(self._advances(rows_behind))
        base = 0
        if self.clock.size:
            base = int(self.clock_tsc[-1])
        elif self.carry.number >= 0 and not local[-1]:
            # The buffer was open before the block, and no clock came since.
            base = self.carry.base
            owed = self.carry.owed + owed
        frames.open.number = frames.buffer_count - 1
        frames.open.is_timed = bool(self.first_clock[-1] < NO_ROW)
        frames.open.base = base
        frames.open.owed = owed
        frames.open.is_called = bool(is_called[-1])
        frames.open.facts = {name: int(columns[name][-1]) for name in NOTHING_KNOWN}

    # --- The records ------------------------------------------------------------------------------

    def _follows_call(self) -> Bools:
        """Return which rows follow a call directly, but for its arguments."""
        carry = self.carry
        local = self.buffers.local
        call = shifted(latest(~self.kinds.is_argument))
        is_same_buffer = self.buffers.is_open[call] & (local[call] == local)
        follows_here = self.kinds.is_function[call] & is_same_buffer
        carry_is_called = carry.is_called and carry.number >= 0
        follows_carry = carry_is_called & (local == 0)
        follows: Bools = np.where(call >= 0, follows_here, follows_carry)
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
            row = np.flatnonzero(np.isin(kind, newer) & self.kinds.is_member)
            self.notes.report(rules.NEWER_RECORD, row, kind[row])

    def _check_records(self, columns: dict[str, I64], is_called: Bools) -> None:
        """Report what is wrong with records."""
        rows = self.rows
        begin = rows.begin
        kind = rows.kind
        is_member = self.kinds.is_member
        report = self.notes.report
        row = np.flatnonzero(rows.fault == int(rules.BAD_FUNCTION))
        (bad_kind,) = self.records.fields(Function, begin[row], "kind")
        report(rules.BAD_FUNCTION, row, bad_kind)
        row = np.flatnonzero(kind == UNKNOWN)
        (unknown_kind,) = self.records.fields(Fdr, begin[row], "_kind")
        report(rules.UNKNOWN_METADATA, row, unknown_kind)
        if self.version >= EXTENTS_VERSION:
            is_sound_end = (kind == END_OF_BUFFER) & (rows.fault == 0)
            report(rules.END_RECORD, np.flatnonzero(is_sound_end))
        row = np.flatnonzero((kind == WALL_TIME) & is_member)
        (micros,) = self.records.metadata(WALL_TIME, begin[row], "micros")
        is_wrong = (micros < 0) | (micros >= SECOND_IN_MICROS)
        report(rules.BAD_WALL_TIME, row[is_wrong], micros[is_wrong])
        is_empty = rows.end - begin == METADATA_BYTES
        report(rules.EMPTY_EVENT, np.flatnonzero(self.kinds.is_event & is_empty))
        last_kind = self._kinds_before()
        row = np.flatnonzero(is_member & ~MAY_FOLLOW[last_kind, kind])
        both_kinds = (1 << OF_LAST.low) * last_kind[row].astype(np.int64) + kind[row]
        report(rules.OUT_OF_ORDER, row, both_kinds)
        no_thread = columns["no_thread"]
        report(rules.NO_THREAD, np.sort(no_thread[no_thread >= 0]))
        report(rules.ORPHAN_ARGUMENT, np.flatnonzero(self.kinds.is_argument & ~is_called))
        no_time = columns["no_time"]
        report(rules.NO_TIME, np.sort(no_time[no_time >= 0]))
        report(rules.TIME_JUMP, *self.jumps)
        if self.cut_row >= 0:
            report(rules.CUT_RECORD, np.array([self.cut_row]), self.mended)

    def _kinds_before(self) -> NDArray[Any]:
        """Return the kind of the record before each in its buffer; START for the first one."""
        kind = self.rows.kind
        member_before = self.buffers.member_before
        kind_before = np.where(member_before < 0, self.carry.facts["last"], kind[member_before])
        kind_before[member_before < self.buffers.start_row] = START
        return kind_before

    def _too_large(self) -> I64:
        """Return by which rule rows are not sound; events may be larger than a limit."""
        rows = self.rows
        max_bytes = self.frames_read.most
        if not max_bytes:
            return rows.fault
        nbytes = rows.end - rows.begin
        large_rows = np.flatnonzero(self.kinds.is_event & (nbytes > max_bytes))
        self.notes.report(rules.RECORD_TOO_LARGE, large_rows, nbytes[large_rows])
        fault = rows.fault.copy()
        fault[large_rows] = int(rules.RECORD_TOO_LARGE)
        return fault

    def _add_sound(self, number: I64, follows_call: Bools) -> None:
        """Enter the rows of sound records."""
        rows = self.rows
        flags = np.where(self.buffers.opens, FIRST, 0)
        flags[follows_call] |= FOLLOWS
        if self.cut_row >= 0:
            flags[self.cut_row] |= CUT
        sound = np.flatnonzero(self.kinds.is_member)
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
    distance = np.where(is_later, apart, -apart).view(np.uint64)
    is_far: Bools = distance > np.uint64(CUT_RECORD_JUMP)
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
    for clock, tsc_offset in ((NEW_CPU, CPU_TSC_AT), (TSC_WRAP, WRAP_TSC_AT)):
        of_kind = np.flatnonzero(kind == clock)
        low_bytes = half - tsc_offset
        low_mask = (1 << 8 * low_bytes) - 1
        low_bits = records.numbers.integers(begin[of_kind] + tsc_offset, low_bytes, big=False)
        ahead[of_kind] = (low_bits - base[of_kind]) & low_mask
    mended = base + ahead
    does_not_wrap = mended.view(np.uint64) >= base.view(np.uint64)
    is_reached = (ahead < 1 << CUT_REACH_BITS) & does_not_wrap
    # The record whose bytes are in the second half.
    is_metadata, follower = records.fields(Fdr, begin + half, "_type", "_kind")
    may_follow = (IS_CLOCK | IS_EVENT)[np.minimum(follower, START)]
    if ends:
        may_follow |= follower == END_OF_BUFFER
    names = ("kind", "function_id", "delta")
    function_kind, function, delta = records.fields(Function, begin + half, *names)
    # No time between two records is none that a counter shows: it is padding that was cleared, of a
    # clock whose time is far from the one before.
    is_function = (function_kind <= ENTER_ARG) & (function != 0) & (delta != 0)
    is_record = np.where(is_metadata != 0, may_follow, is_function)
    return mended, is_reached & is_record
