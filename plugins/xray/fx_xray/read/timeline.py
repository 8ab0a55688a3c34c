"""The timeline: the events of a trace in order of time, out of its sound stretches.

A thread's events keep the order in which it wrote them: its times count as the latest so far.
Threads are merged by these, then by their numbers. Of all threads that are behind the others,
thousands of records are read together, as columns.
"""

from __future__ import annotations

import abc
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray.format import (
    ARGUED,
    ARGUMENT,
    BACK,
    BASIC_BYTES,
    CALL_ARGUMENT,
    CUSTOM,
    CUSTOM_EVENT,
    CUT,
    ENTER,
    ENTER_ARG,
    EVENT_CPU_VERSION,
    EVENT_DELTA_VERSION,
    FIRST,
    FOLLOWS,
    FUNCTION,
    FUNCTION_BYTES,
    METADATA_BYTES,
    NEW_CPU,
    NO_CPU,
    SIGN,
    TSC_WRAP,
    TYPED,
    TYPED_EVENT,
    BasicArgument,
    BasicFunction,
    CallArgument,
    Function,
)
from fx_xray.read.buffers import IS_CALL
from fx_xray.read.columns import are_back, is_below, let_rise_on
from fx_xray.read.events import Events
from fx_xray.read.frames import IS_EVENT, Records
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import ends_of_runs, joined_ranges, order_and_keys
from fxframework.wire.state import Change, register_columns

NEARBY: Final = 40
"""Bits of the ticks by which an event with a time of its own may be ahead of its thread."""
TOGETHER: Final = 1 << 17
"""Records that are read together, of all threads."""
LEAST: Final = 1 << 8
"""Records of a thread that are read at once, at least, if it has them."""
PEEKED: Final = 8
"""Records that are read of each of many threads, to know when it begins."""
HELD: Final = 1 << 20
"""Events that are held, about, before the earliest of them are given out though few."""
Columns = dict[str, NDArray[Any]]


class ThreadRows(NamedTuple):
    """Rows of sound records in the order of their threads, and in each in the order of writing.

    The records of a row are of one kind, and follow one another in the file. The rows of thread n
    are from ``first[n]`` to before ``first[n + 1]``.
    """

    begin: I64
    """The byte at which the first record of each row begins."""
    record: I64
    """The number of this record among those of all rows; behind the last row, how many there are.
    """
    code: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    """FIRST, CUT, FOLLOWS and ARGUED (``format``)."""
    first: I64
    based: I64
    """The rows that are FIRST or CUT, ascending."""
    base: I64
    """The time of each of these: that of the buffer before its first NewCPUId, or that of the
    record that was cut."""


class ThreadStates:
    """Where each thread is: what the records so far say of those that follow, by thread."""

    def __init__(self, rows: ThreadRows) -> None:
        count = rows.first.size - 1
        self.record = rows.record[rows.first[:-1]]
        """The number of the next record."""
        self.base = np.zeros(count, np.int64)
        """The time that deltas are added to."""
        self.cpu = np.full(count, NO_CPU)
        self.function = np.zeros(count, np.int64)
        """The function of the last call."""
        self.last_call = np.zeros(count, np.int64)
        """The time of the last call."""
        self.latest = np.full(count, SIGN)
        """The latest time so far; biased, as are those that threads are merged by."""


@attrs.define
class Walked:
    """Records that were found, those of each thread in a *part*: rows, and each event alone."""

    row: I64
    """The number of each row among those of all threads."""
    begin: I64
    count: I64
    code: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    thread: I64
    """Begin, number of events, kind, flags and thread of each row, as far as it was read."""
    place: I64
    """The place of the record of each event."""
    first: I64
    """The first event of each row, or behind it if it has none."""
    part_first: I64
    """The first row of each part."""
    part_last: I64
    """The last row of each part."""

    def last_records(self, rows: I64 | slice = slice(None)) -> I64:
        """Return the last event of some rows."""
        return self.first[rows] + self.count[rows] - 1


class Part(NamedTuple):
    """Events of threads, those of each in their order."""

    columns: Columns
    """By the names of ``Events``; kinds of events that go back in time have BACK."""
    key: I64
    """When each event comes."""

    def some(self, rows: I64) -> Part:
        """Return some of the events."""
        return Part(picked_columns(self.columns, rows), self.key[rows])


def add_values(columns: Columns) -> None:
    """Add columns for what only arguments and custom and typed events have."""
    columns["value"] = np.zeros(columns["kind"].size, np.uint64)
    columns["size"] = np.zeros(columns["kind"].size, np.int32)


class Threads(abc.ABC):
    """Reads the events of threads, some of each of several at a time.

    ``most`` is the largest record, in bytes; 0 for any.
    """

    step: int
    """Bytes of records that follow one another in one row."""
    argument: Any
    """The class of records of arguments."""

    def __init__(self, records: Records, rows: ThreadRows, *, most: int = 0) -> None:
        self.records = records
        self.rows = rows
        self.most = most
        self.end_record = rows.record[rows.first[1:]]
        """The number of the record behind the last one of each thread."""
        self.states = ThreadStates(rows)

    @property
    def open_threads(self) -> I64:
        """The threads that have more records, ascending."""
        return np.flatnonzero(self.states.record < self.end_record)

    def read(self, threads: I64, most: int | I64) -> Part:
        """Return the next events of threads, of ``most`` records of each at most.

        Of the last threads there are none, where those before have enough.
        """
        walked = self._walked(threads, most)
        columns, key = self.events(walked)
        begins = walked.first[walked.part_first]
        has_some = np.diff(begins, append=key.size) > 0
        threads = walked.thread[walked.part_first[has_some]]
        let_rise_on(key, begins[has_some], threads, self.states.latest)
        part = Part(columns, key)
        if self.most and "size" in columns:
            is_large = columns["size"] > self.most - METADATA_BYTES
            is_large &= columns["kind"] >= CUSTOM
            if is_large.any():
                return part.some(np.flatnonzero(~is_large))
        return part

    def _walked(self, threads: I64, most: int | I64) -> Walked:
        """Go on to the next records of threads that have some, at most ``most`` of each."""
        rows = self.rows
        begin_record = self.states.record[threads]
        record_counts = np.minimum(self.end_record[threads] - begin_record, most)
        counts_before = np.cumsum(record_counts) - record_counts
        threads = threads[counts_before < TOGETHER]
        begin_record = begin_record[: threads.size]
        end_record = begin_record + record_counts[: threads.size]
        self.states.record[threads] = end_record
        first_row = np.searchsorted(rows.record, begin_record, side="right") - 1
        end_row = np.searchsorted(rows.record, end_record)
        row_counts = end_row - first_row
        row = joined_ranges(first_row, row_counts)
        part_first = np.cumsum(row_counts) - row_counts
        part_last = part_first + row_counts - 1
        begin = rows.begin[row]
        flags = rows.flags[row]
        count = np.diff(rows.record)[row]
        # The first records of the first row of a part may have been read before.
        skipped = begin_record - rows.record[first_row]
        begin[part_first] += self.step * skipped
        count[part_first] -= skipped
        continued = part_first[skipped > 0]
        flags[continued] &= np.uint8(0xFF - FIRST)
        flags[continued] |= np.uint8(FOLLOWS)
        # The last records of its last row may be left for later.
        left = rows.record[end_row] - end_record
        count[part_last] -= left
        flags[part_last[left > 0]] &= np.uint8(0xFF - ARGUED)
        code = rows.code[row]
        count[~IS_CALL[code]] = 0  # they only say something of others
        place = joined_ranges(begin, count, self.step)
        return Walked(
            row=row,
            begin=begin,
            count=count,
            code=code,
            flags=flags,
            thread=np.repeat(threads, row_counts),
            place=place,
            first=np.cumsum(count) - count,
            part_first=part_first,
            part_last=part_last,
        )

    def events(self, walked: Walked) -> tuple[Columns, I64]:
        """Return the events, and the biased time by which each comes.

        The states of the threads go on behind the records.
        """
        count = walked.place.size
        out: Columns = {
            "kind": np.empty(count, np.uint8),
            "function": np.empty(count, np.uint32),
            "offset": walked.place,
            "thread": np.repeat(walked.thread.astype(np.int32), walked.count),
        }
        code = walked.code
        function = np.flatnonzero(code == FUNCTION)
        argument = np.flatnonzero(code == CALL_ARGUMENT)
        if argument.size or IS_EVENT[code].any():
            add_values(out)
        tsc, cpu = self.read_calls(out, walked)
        self._read_arguments(out, walked, argument)
        # Calls that arguments follow are such, also where they say nothing of them.
        argued = walked.last_records(np.flatnonzero(walked.flags & ARGUED))
        is_entry = out["kind"][argued] == ENTER
        out["kind"][argued[is_entry]] = ENTER_ARG
        if function.size:
            self.mark_back(out["kind"], walked, function, tsc)
            self._go_on(walked, out, tsc, function)
        out |= {"tsc": tsc.view(np.uint64), "cpu": cpu}
        return out, tsc ^ SIGN

    @abc.abstractmethod
    def read_calls(self, out: Columns, walked: Walked) -> tuple[I64, NDArray[np.uint16]]:
        """Read kind and function of calls into ``out``; return time and CPU of each event.

        The states of time and CPU go on behind them.
        """

    @abc.abstractmethod
    def mark_back(self, kinds: NDArray[np.uint8], walked: Walked, function: I64, tsc: I64) -> None:
        """Mark the calls that are earlier than the one before in their thread.

        ``function`` are the rows of calls, at least one.
        """

    def of_call(self, walked: Walked, row: I64, values: Any, of_thread: I64) -> I64:
        """Return, for rows of arguments, what the call before each has in the column ``values``.

        ``of_thread`` has the value of the last call that was read before, by thread.
        """
        calls = np.flatnonzero(walked.code == FUNCTION)
        # The last row of calls before each; 0 stands for none.
        call_number = np.searchsorted(calls, row)
        call = np.append(-1, calls)[call_number]
        own_values = np.append(0, values[walked.last_records(calls)])[call_number]
        part_number = np.searchsorted(walked.part_first, row, side="right") - 1
        is_in_part = call >= walked.part_first[part_number]
        return np.where(is_in_part, own_values, of_thread[walked.thread[row]])

    def _read_arguments(self, out: Columns, walked: Walked, row: I64) -> None:
        """Read arguments of calls, and of none."""
        if not row.size:
            return
        record = walked.first[row]
        has_call = walked.flags[row] & FOLLOWS != 0
        function = self.of_call(walked, row, out["function"], self.states.function)
        out["kind"][record] = ARGUMENT
        out["function"][record] = np.where(has_call, function, 0)
        (values,) = self.records.fields(self.argument, walked.begin[row], "value")
        out["value"][record] = values.view(np.uint64)
        out["size"][record] = np.where(has_call, 0, -1)

    def _go_on(self, walked: Walked, out: Columns, tsc: I64, function: I64) -> None:
        """Enter the last call of each thread, given the rows of calls."""
        last_functions = function[ends_of_runs(walked.thread[function])]
        last_call = walked.last_records(last_functions)
        threads = walked.thread[last_functions]
        self.states.last_call[threads] = tsc[last_call]
        self.states.function[threads] = out["function"][last_call]


class FdrThreads(Threads):
    """Reads events of the flight data recorder."""

    step = FUNCTION_BYTES
    argument = CallArgument

    def events(self, walked: Walked) -> tuple[Columns, I64]:
        """Return the events, as ``Threads.events`` says.

        Up to version 4, custom and typed events have times of their own.
        """
        out, order = super().events(walked)
        if self.records.version >= EVENT_DELTA_VERSION:
            return out, order
        tsc = out["tsc"].view(np.int64)
        for kind in (CUSTOM_EVENT, TYPED_EVENT):
            row = np.flatnonzero(walked.code == kind)
            record = walked.first[row]
            (own_times,) = self.records.metadata(kind, walked.begin[row], "tsc")
            order[record] = in_place(own_times, tsc[record]) ^ SIGN
            tsc[record] = own_times
            out["cpu"][record] = NO_CPU
            if kind == CUSTOM_EVENT and self.records.version == EVENT_CPU_VERSION:
                (out["cpu"][record],) = self.records.metadata(kind, walked.begin[row], "cpu")
        return out, order

    def read_calls(self, out: Columns, walked: Walked) -> tuple[I64, NDArray[np.uint16]]:
        """Read calls and events into ``out``; return time and CPU of each event."""
        # Functions are most of all: the others are read as such too, which is cheaper than to pick.
        names = ("kind", "function_id", "delta")
        columns = self.records.fields(Function, walked.place, *names)
        out["kind"][:], out["function"][:], delta = columns
        other_records = walked.first[(walked.code != FUNCTION) & (walked.count > 0)]
        out["kind"][other_records] = 0
        out["function"][other_records] = 0
        delta[other_records] = 0
        for kind, shown_kind in ((CUSTOM_EVENT, CUSTOM), (TYPED_EVENT, TYPED)):
            row = np.flatnonzero(walked.code == kind)
            if row.size:
                self._read_events(out, delta, walked, row, kind)
                out["kind"][walked.first[row]] = shown_kind
        return self._state(walked, delta)

    def _read_events(self, out: Columns, delta: I64, walked: Walked, row: I64, kind: int) -> None:
        """Read custom or typed events into ``out``, and into ``delta`` if they have one."""
        record = walked.first[row]
        begin = walked.begin[row]
        out["value"][record] = begin + METADATA_BYTES
        (out["size"][record],) = self.records.metadata(kind, begin, "_size")
        if kind == TYPED_EVENT:
            (out["function"][record],) = self.records.metadata(kind, begin, "event_type")
        if self.records.version >= EVENT_DELTA_VERSION:
            (delta[record],) = self.records.metadata(kind, begin, "delta")

    def _state(self, walked: Walked, delta: I64) -> tuple[I64, NDArray[np.uint16]]:
        """Return time and CPU of each event.

        Records that say a time set it; others add to it, as they do to the time of their thread
        before them, or of a buffer that begins without.
        """
        states = self.states
        flags = walked.flags
        sums = np.append(0, np.cumsum(delta))
        sums_before = sums[walked.first]
        base = np.zeros(flags.size, np.int64)
        based = np.flatnonzero(flags & (FIRST | CUT))
        number_of_base = np.searchsorted(self.rows.based, walked.row[based])
        base[based] = self.rows.base[number_of_base]
        time_sets = []
        cpu_sets = []
        for kind in (NEW_CPU, TSC_WRAP):
            row = np.flatnonzero(walked.code == kind)
            names = ("tsc", "cpu") if kind == NEW_CPU else ("tsc",)
            begin = walked.begin[row]
            tsc, *cpus = self.records.metadata(kind, begin, *names)
            tsc = np.where(flags[row] & CUT != 0, base[row], tsc)
            time_sets.append(sets(row, tsc - sums_before[row]))
            cpu_sets += [sets(row, cpu) for cpu in cpus]
        # Buffers begin without a CPU; other parts go on where their thread is.
        cpu = np.full(flags.size, NO_CPU)
        part_first = walked.part_first
        goes_on = part_first[flags[part_first] & FIRST == 0]
        base[goes_on] = states.base[walked.thread[goes_on]]
        cpu[goes_on] = states.cpu[walked.thread[goes_on]]
        begins = np.union1d(part_first, np.flatnonzero(flags & FIRST))
        time_before = sets(begins, base[begins] - sums_before[begins])
        cpu_before = sets(begins, cpu[begins])
        _, time_of_rows = register_columns(0, flags.size, time_sets, time_before)
        _, cpu_of_rows = register_columns(0, flags.size, cpu_sets, cpu_before)
        last_rows = walked.part_last
        threads = walked.thread[last_rows]
        sums_behind = sums[walked.first[last_rows] + walked.count[last_rows]]
        states.base[threads] = time_of_rows[last_rows] + sums_behind
        states.cpu[threads] = cpu_of_rows[last_rows]
        tsc = sums[1:] + np.repeat(time_of_rows, walked.count)
        return tsc, np.repeat(cpu_of_rows.astype(np.uint16), walked.count)

    def mark_back(self, kinds: NDArray[np.uint8], walked: Walked, function: I64, tsc: I64) -> None:
        """Mark the calls that are earlier than the one before in their thread."""
        begins = walked.first[function]
        end_times = tsc[walked.last_records(function)]
        thread = walked.thread[function]
        is_back = are_back(tsc[begins], end_times, thread, self.states.last_call)
        # One that follows another directly is never earlier, as its delta has no sign.
        is_back &= walked.flags[function] & FOLLOWS == 0
        kinds[begins[is_back]] |= BACK


class BasicThreads(Threads):
    """Reads events of basic mode."""

    step = BASIC_BYTES
    argument = BasicArgument

    def read_calls(self, out: Columns, walked: Walked) -> tuple[I64, NDArray[np.uint16]]:
        """Read calls into ``out``; return time and CPU of each event.

        Arguments have those of the call before them.
        """
        # Calls are most of all: arguments are read as such too, which is cheaper than to pick.
        names = ("cpu", "kind", "function_id", "tsc")
        columns = self.records.fields(BasicFunction, walked.place, *names)
        cpu, out["kind"][:], out["function"][:], tsc = columns
        argument = np.flatnonzero(walked.code == CALL_ARGUMENT)
        if argument.size:
            record = walked.first[argument]
            has_call = walked.flags[argument] & FOLLOWS != 0
            tsc[record] = self.of_call(walked, argument, tsc, self.states.last_call)
            cpu_of_call = self.of_call(walked, argument, cpu, self.states.cpu)
            cpu[record] = np.where(has_call, cpu_of_call, NO_CPU)
        last_rows = walked.part_last
        self.states.cpu[walked.thread[last_rows]] = cpu[walked.last_records(last_rows)]
        return tsc, cpu.astype(np.uint16)

    def mark_back(self, kinds: NDArray[np.uint8], walked: Walked, function: I64, tsc: I64) -> None:
        """Mark the calls that are earlier than the one before in their thread."""
        del function  # any call of a row may be earlier than the one before
        calls = np.flatnonzero(kinds < ARGUMENT)
        thread = np.repeat(walked.thread, walked.count)[calls]
        is_back = are_back(tsc[calls], tsc[calls], thread, self.states.last_call)
        kinds[calls[is_back]] |= BACK


def in_place(own: I64, base: I64) -> I64:
    """Return when events with times of their own come in their thread.

    Such a time may be nonsense: only one that is a little ahead of the thread counts.
    """
    ahead = own - base
    is_near = (ahead >= 0) & (ahead < 1 << NEARBY)
    return np.where(is_near & ~is_below(own, base), own, base)


def sets(records: I64, values: I64) -> Change:
    """Return the change of a register that some records set."""
    return Change(records, values, np.zeros(records.size, np.bool_))


# --- Merging --------------------------------------------------------------------------------------


def in_time(threads: Threads) -> Iterator[Events]:
    """Yield the events of all threads merged by time, thousands at once."""
    if threads.open_threads.size == 1:
        while threads.open_threads.size:
            part = threads.read(threads.open_threads, TOGETHER)
            if part.key.size:
                yield events_of(part.columns)
        return
    window = Window(threads)
    while threads.open_threads.size:
        window.fill()
        if events := window.take():
            yield events
    if window.parts:
        yield window.ordered(None)


class Window:
    """The events of threads that were read and not yet given out."""

    def __init__(self, threads: Threads) -> None:
        self.threads = threads
        self.parts: list[Part] = []
        self.held = 0
        open_threads = threads.open_threads
        count = max(open_threads.size, 1)
        self.most = max(LEAST, TOGETHER // count)
        """Records of a thread that are read at once."""
        self.enough = max(HELD, 2 * LEAST * count)
        """Events that are held before those that are due are given out though they be few."""
        self.pace = 0.0
        """Ticks from an event to the next, about; 0 if all threads can be read together."""
        if count * self.most > TOGETHER:
            # Where each thread begins tells which of them to read first.
            threads_at_once = TOGETHER // PEEKED
            for start in range(0, count, threads_at_once):
                self.read(open_threads[start : start + threads_at_once], PEEKED)
            ticks = [np.diff(part.key) for part in self.parts if part.key.size > 1]
            if ticks:
                self.pace = max(1.0, float(np.median(np.concatenate(ticks))))

    def read(self, threads: I64, most: int | I64) -> None:
        """Read more of some threads, of the first ones at least."""
        part = self.threads.read(threads, most)
        if part.key.size:
            self.parts.append(part)
            self.held += part.key.size

    def fill(self) -> None:
        """Read more of the threads that are behind the others: these have to wait for them."""
        open_threads = self.threads.open_threads
        reached = self.threads.states.latest[open_threads]
        if self.held > self.enough:
            self.read(open_threads[[np.argmin(reached)]], TOGETHER)
            return
        order = np.argsort(reached, kind="stable")
        most = self.most if not self.pace else self.records_of_each(open_threads[order])
        self.read(open_threads[order], most)

    def records_of_each(self, threads: I64) -> I64:
        """Return how many records to read of each of many threads, of which the first is behind.

        Those that are behind go up to one time, as far as their pace tells. Threads may follow one
        another: then few of them are read, and whole.
        """
        states = self.threads.states
        left = self.threads.end_record[threads] - states.record[threads]
        reached = states.latest[threads]
        ahead = (reached - reached[0]).view(np.uint64) / self.pace

        def records_up_to(time: float) -> Any:
            return np.minimum(np.maximum(time - ahead, 0), left)

        # Up to where the next thread is, so many have fewer records than are read together.
        count = bisect_left(ahead, TOGETHER, key=lambda time: records_up_to(time).sum())
        time = ahead[count - 1]
        time += (TOGETHER - records_up_to(time).sum()) / count
        records: I64 = records_up_to(time).astype(np.int64)
        return np.maximum(records, self.most)

    def take(self) -> Events | None:
        """Take the events that come before all that are not read; None where they are few."""
        open_threads = self.threads.open_threads
        if not open_threads.size:
            return None
        until = int(self.threads.states.latest[open_threads].min())
        count = sum(int(np.count_nonzero(part.key < until)) for part in self.parts)
        if count == 0 or 2 * count < self.held <= self.enough:
            return None
        return self.ordered(until)

    def ordered(self, until: int | None) -> Events:
        """Take the events before a time, or all, and return them in order of time."""
        part = joined(self.parts)
        self.parts = []
        self.held = 0
        rows = None
        key = part.key
        thread = part.columns["thread"]
        if until is not None:
            is_left = key >= until
            if is_left.any():
                left = part.some(np.flatnonzero(is_left))
                self.parts = [left]
                self.held = left.key.size
                rows = np.flatnonzero(~is_left)
                key = key[rows]
                thread = thread[rows]
        order = order_by_time(key, thread)
        if order is None:
            order = rows
        elif rows is not None:
            order = rows[order]
        return events_of(part.columns, order)


def order_by_time(key: I64, thread: NDArray[np.int32]) -> I64 | None:
    """Return the order of events by time, then by thread; None where they are in it.

    Those of one time and thread stay in order.
    """
    order, key_in_order = order_and_keys(key)
    if key_in_order is None:
        key_in_order = key if order is None else key[order]
    is_next_tied = key_in_order[1:] == key_in_order[:-1]
    if not is_next_tied.any():
        return order
    is_tied = np.append(is_next_tied, False)
    is_tied[1:] |= is_next_tied
    places = np.flatnonzero(is_tied)
    if order is None:
        order = np.arange(key.size)
    events = order[places]
    order[places] = events[np.lexsort((thread[events], key[events]))]
    return order


def joined(parts: list[Part]) -> Part:
    """Return the events of several parts as one."""
    if len(parts) == 1:
        return parts[0]
    if any("value" in part.columns for part in parts):
        for part in parts:
            if "value" not in part.columns:
                add_values(part.columns)
    columns = {}
    for name in parts[0].columns:
        columns[name] = np.concatenate([part.columns[name] for part in parts])
    return Part(columns, np.concatenate([part.key for part in parts]))


def picked_columns(columns: Columns, rows: I64) -> Columns:
    """Return some rows of columns."""
    return {name: column.take(rows) for name, column in columns.items()}


def events_of(columns: Columns, order: I64 | None = None) -> Events:
    """Return columns as events, in an order if one is given."""
    in_order = dict(columns) if order is None else picked_columns(columns, order)
    if "value" not in columns:
        count = columns["kind"].size
        in_order["value"] = np.broadcast_to(np.uint64(0), count)
        in_order["size"] = np.broadcast_to(np.int32(0), count)
    return Events(**in_order)
