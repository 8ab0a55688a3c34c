"""Which buffer each event goes into, and which clock comes before it, of many events together.

A buffer begins with the time and the CPU of its first event. A later event whose time no delta can
say, or that is on another CPU, has a clock before it: a NewCPUId or a TSCWrap.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any, Final, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray import format as wire
from fx_xray.format import (
    ARGUMENT,
    CUSTOM,
    ENTER_ARG,
    EVENT_DELTA_VERSION,
    EXTENTS_VERSION,
    FUNCTION_BYTES,
    METADATA_BYTES,
    NEW_CPU,
    NO_CPU,
    TSC_WRAP,
    TYPED,
    WRAP_TICKS,
    BufferForm,
)
from fx_xray.read.buffers import are_far, mended_times
from fx_xray.read.columns import following, latest, shifted
from fx_xray.read.frames import Records
from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.sorting import begins_of_runs
from fxframework.wire.packing import put_numbers

NO_CLOCK: Final = -1


class Rows(NamedTuple):
    """Events with their numbers, those of each thread together and in their order: columns.

    They have those of ``Events``, whose times and values are int64 here.
    """

    kind: NDArray[np.uint8]
    function: NDArray[np.uint32]
    tsc: I64
    cpu: NDArray[np.uint16]
    """NO_CPU of custom and typed events of which it is not known; ``buffers_of`` fills it in."""
    thread: NDArray[np.int32]
    offset: I64
    value: I64
    """Of an argument, its bits; of an event, where its payload begins."""
    size: NDArray[np.int32]
    number: I64
    """A number that ascends in the order in which events were given; negative of those whose
    buffer was begun before."""


@attrs.define(eq=False)
class Buffers:
    """Buffers as columns, those of each thread in their order, and what was decided of each row."""

    first: I64
    """The first row of each."""
    end: I64
    """The row behind its last one."""
    ended_by: I64
    """The row with which it turned out to be full; -1 of the last buffer of a thread."""
    last_clock: I64
    """The kind of a clock at its end, of a call that had to go into the next one; else NO_CLOCK."""
    clock: NDArray[np.int8]
    """The kind of the clock before each row, or NO_CLOCK."""
    base: I64
    """The time from which the delta of each row counts."""
    nbytes: I64
    """The bytes of each row, without its clock; 0 of one that is lost."""
    is_lost: Bools
    """Which rows are arguments that no buffer of version 1 has room for."""


def buffers_of(rows: Rows, form: BufferForm) -> Buffers:
    """Put rows into buffers; the first row of each thread begins one."""
    return _Division(rows, form).divide()


def far_times(tsc: I64, base: I64, version: int) -> Bools:
    """Return which times no delta to ``base`` can say; one of the other sign counts as far."""
    has_same_sign = (tsc < 0) == (base < 0)
    fits = (tsc >= base) & (tsc - base <= WRAP_TICKS[version])
    is_near: Bools = has_same_sign & fits
    return ~is_near


def looks_cut(kind: NDArray[Any], tsc: I64, base: I64) -> Bools:
    """Return which clocks a reader takes for records that were cut in half.

    It does where the time is far from the one before, its low bits are near it, and the second
    half of the record could be a record itself.
    """
    is_cut = are_far(tsc, base)
    far = np.flatnonzero(is_cut)
    places = METADATA_BYTES * np.arange(far.size)
    out = np.zeros(METADATA_BYTES * far.size, np.uint8)
    dialect = wire.Dialect()
    for clock, record in ((NEW_CPU, wire.NewCpu), (TSC_WRAP, wire.TscWrap)):
        of_kind = kind[far] == clock
        columns = {"tsc": tsc[far[of_kind]]}
        put_numbers(out, places[of_kind], record.layout, columns, dialect.state())
    clocks = Records(out, dialect)
    _, is_mended = mended_times(clocks, kind[far], places, base[far], ends=True)
    is_cut[far] = is_mended
    return is_cut


class _Division:
    """Divides rows into buffers.

    Sizes and clocks are first those of one endless buffer for each thread. Where a buffer begins,
    its first row needs no clock; and up to version 4, where it begins with an event that has a time
    of its own, the clock of the next call is another one.
    """

    def __init__(self, rows: Rows, form: BufferForm) -> None:
        self.rows = rows
        self.form = form
        self.room = form.room
        kind = rows.kind
        count = rows.kind.size
        self.is_argument = kind == ARGUMENT
        is_event = kind >= CUSTOM
        self.has_own_time = is_event & (form.version < EVENT_DELTA_VERSION)
        self.is_timed = ~(self.is_argument | self.has_own_time)
        is_first = begins_of_runs(rows.thread)
        self.thread_first = np.flatnonzero(is_first)
        # The rows that say time and CPU for those behind them.
        sets_time = self.is_timed | is_first
        self.cpu_is_unknown = is_event & (rows.cpu == NO_CPU) & (rows.number >= 0)
        self._fill_cpus(sets_time, is_first)
        setter_before = shifted(latest(sets_time))
        self.base = rows.tsc[setter_before]
        self.clock = np.full(count, NO_CLOCK, np.int8)
        may_wrap = self.is_timed & ~is_first
        is_far = far_times(rows.tsc, self.base, form.version)
        if self.has_own_time.any():
            # llvm-xray reads half of the time of a typed event as a delta: a TSCWrap corrects it.
            is_typed = self.has_own_time & (kind == TYPED)
            typed = np.cumsum(is_typed) - is_typed
            is_far |= typed > typed[setter_before]
        self.clock[may_wrap & is_far] = TSC_WRAP
        is_elsewhere = rows.cpu != rows.cpu[setter_before]
        self.clock[may_wrap & is_elsewhere] = NEW_CPU
        self.nbytes = np.full(count, FUNCTION_BYTES)
        self.nbytes[self.is_argument] = METADATA_BYTES
        if is_event.any():
            payload_bytes = rows.size[is_event].astype(np.int64)
            self.nbytes[is_event] = METADATA_BYTES + payload_bytes
        has_clock = self.clock != NO_CLOCK
        self.ends = np.cumsum(self.nbytes + METADATA_BYTES * has_clock)
        """Where each row ends in the endless buffer."""
        clocked = np.flatnonzero(has_clock)
        is_cut = looks_cut(self.clock[clocked], rows.tsc[clocked], self.base[clocked])
        self.breaks = clocked[is_cut]
        """Rows that have to begin a buffer, as their clocks would look cut in half."""
        self.is_lost = np.zeros(count, np.bool_)

    @cached_property
    def call(self) -> I64:
        """The call that each argument belongs to."""
        return latest(self.rows.kind <= ENTER_ARG)

    @cached_property
    def next_timed(self) -> I64:
        """The first row behind each that sets the time for those behind it."""
        return following(self.is_timed)

    @cached_property
    def next_other(self) -> I64:
        """The first row behind each that is not an argument."""
        return following(~self.is_argument)

    def _fill_cpus(self, sets_time: Bools, is_first: Bools) -> None:
        """Let events of unknown CPUs have that of their thread, which is 0 where it begins."""
        unknown = np.flatnonzero(self.cpu_is_unknown)
        if unknown.size:
            known_before = latest(sets_time & ~self.cpu_is_unknown)[unknown]
            is_here = known_before >= latest(is_first)[unknown]
            self.rows.cpu[unknown] = np.where(is_here, self.rows.cpu[known_before], 0)

    def divide(self) -> Buffers:
        """Return the buffers."""
        buffers: list[tuple[int, int, int, int]] = []
        thread_bounds = [*self.thread_first.tolist(), self.rows.kind.size]
        for start, stop in itertools.pairwise(thread_bounds):
            end = start
            while end < stop:
                start = end
                end, ended_by = self._end_of(start, stop)
                # An argument that does not fit takes its call along, but not the clock before it.
                last_clock = NO_CLOCK
                if ended_by > end:
                    last_clock = int(self.clock[end])
                buffers.append((start, end, ended_by, last_clock))
        columns = np.array(buffers, np.int64).reshape(-1, 4).T
        first_rows, ends, ending_rows, last_clocks = columns
        self.clock[first_rows] = NO_CLOCK
        # The time of a buffer is that of its first row.
        says_time = self.clock != NO_CLOCK
        says_time[first_rows] = True
        self.base[says_time] = self.rows.tsc[says_time]
        self.nbytes[self.is_lost] = 0
        return Buffers(
            first=first_rows,
            end=ends,
            ended_by=ending_rows,
            last_clock=last_clocks,
            clock=self.clock,
            base=self.base,
            nbytes=self.nbytes,
            is_lost=self.is_lost,
        )

    def _end_of(self, start: int, stop: int) -> tuple[int, int]:
        """Return where the buffer ends that begins with a row, and the row that ends it.

        ``stop`` is the end of the thread; if it comes first, no row ends the buffer, which is -1.
        """
        begin = int(self.ends[start] - self.nbytes[start])
        full_at = begin + self.room
        if self.has_own_time[start]:
            row = self._own_time_end(start, stop, full_at)
        else:
            row = self._first_beyond(start, full_at)
            if self.breaks.size:
                row = min(row, self._next_break(start, stop))
        if row >= stop:
            return stop, -1
        if not self.is_argument[row]:
            return row, row
        call = int(self.call[row])
        if call > start:
            return call, row
        # The buffer has nothing but a call, whose arguments do not fit.
        next_row = min(int(self.next_other[row]), stop)
        if self.form.version < EXTENTS_VERSION:
            self.is_lost[row:next_row] = True
            full_at += int(self.ends[next_row - 1] - self.ends[row - 1])
            beyond = max(next_row, self._first_beyond(start, full_at))
            next_row = min(beyond, self._next_break(start, stop), stop)
            if next_row < stop and self.is_argument[next_row]:
                return int(self.call[next_row]), next_row
        return (stop, -1) if next_row == stop else (next_row, next_row)

    def _next_break(self, row: int, stop: int) -> int:
        """Return the first row behind one that has to begin a buffer, ``stop`` if there is none."""
        place = int(self.breaks.searchsorted(row, "right"))
        return int(self.breaks[place]) if place < self.breaks.size else stop

    def _first_beyond(self, start: int, full_at: int) -> int:
        """Return the first row behind ``start`` that ends beyond a place of the endless buffer."""
        return max(start + 1, int(self.ends.searchsorted(full_at, "right")))

    def _own_time_end(self, start: int, stop: int, full_at: int) -> int:
        """Return the row that ends a buffer which begins with an event with a time of its own.

        Such an event sets time and CPU only because the buffer begins with it. So the clock of the
        next call, and the CPUs that are not known up to there, are decided again.
        """
        rows = self.rows
        call = min(int(self.next_timed[start]), stop)
        unknown = np.flatnonzero(self.cpu_is_unknown[start:call])
        rows.cpu[start + unknown] = rows.cpu[start]
        beyond = self._first_beyond(start, full_at)
        if beyond < call or call == stop:
            return beyond
        old_bytes = int(self.ends[call] - self.ends[call - 1] - self.nbytes[call])
        tsc = rows.tsc[call : call + 1]
        base = rows.tsc[start : start + 1]
        self.base[call] = base[0]
        self.clock[call] = NO_CLOCK
        if rows.cpu[call] != rows.cpu[start]:
            self.clock[call] = NEW_CPU
        elif far_times(tsc, base, self.form.version)[0] or TYPED in rows.kind[start:call]:
            self.clock[call] = TSC_WRAP
        new_bytes = 0
        if self.clock[call] != NO_CLOCK:
            new_bytes = METADATA_BYTES
            if looks_cut(self.clock[call : call + 1], tsc, base)[0]:
                return call
        beyond = self._first_beyond(start, full_at + old_bytes - new_bytes)
        return min(max(call, beyond), self._next_break(call, stop))
