"""The timeline: the events of a trace in order of time, out of its sound stretches.

A thread's events keep the order in which it wrote them: its times count as the latest so far.
Threads are merged by these, then by their numbers. Of all threads that are behind the others,
thousands of records are read together, as columns.
"""

from __future__ import annotations

import abc
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
    ORPHAN,
    SIGN,
    TSC_WRAP,
    TYPED,
    TYPED_EVENT,
    BasicArgument,
    BasicFunction,
    Function,
)
from fx_xray.read.columns import expanded, let_rise_on, shifted
from fx_xray.read.events import Events
from fx_xray.read.frames import Records
from fxframework.kernels.sorting import begins_of_runs, ends_of_runs, stable_order
from fxframework.wire.state import Change, register_columns

__all__ = ["BasicThreads", "FdrThreads", "ThreadRows", "Threads", "in_time"]

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]
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
TYPE_BYTES: Final = 2
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
    """FIRST, CUT, ORPHAN, FOLLOWS and ARGUED (``format``)."""
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
        """The time that deltas are added to; in basic mode that of the last call."""
        self.cpu = np.full(count, NO_CPU)
        self.function = np.zeros(count, np.int64)
        """The function of the last call."""
        self.last_call = np.zeros(count, np.int64)
        """The time of the last call."""
        self.latest = np.full(count, SIGN)
        """The latest time so far; biased, as are those that threads are merged by."""


@attrs.define
class Walked:
    """Records that were found, those of each thread in a *part*: rows, and each record alone."""

    row: I64
    """The number of each row among those of all threads."""
    begin: I64
    count: I64
    code: NDArray[np.uint8]
    flags: NDArray[np.uint8]
    thread: I64
    """Begin, number of records, kind, flags and thread of each row, as far as it was read."""
    place: I64
    """The place of each record."""
    first: I64
    """The first record of each row."""
    part_first: I64
    """The first row of each part."""
    part_last: I64
    """The last row of each part."""
    goes_on: Bools
    """Whether records of the last row of each part are left."""

    def last_records(self, rows: I64 | slice = slice(None)) -> I64:
        """Return the last record of some rows."""
        return self.first[rows] + self.count[rows] - 1


class Part(NamedTuple):
    """Events of threads, those of each in their order."""

    columns: Columns
    """Columns of the records; kinds of events that go back in time have BACK."""
    rows: I64
    """The records that are events."""
    key: I64
    """When each event comes."""
    threads: I64
    """The threads that have events."""
    begins: I64
    """The first event of each of these threads."""

    def without_empty(self, counts: I64) -> Part:
        """Return the same, but for threads that have no events; ``counts`` are those of each."""
        has_some = counts > 0
        begins = np.cumsum(counts) - counts
        return self._replace(threads=self.threads[has_some], begins=begins[has_some])

    def where(self, mask: Bools) -> Part:
        """Return the events where a mask holds."""
        counts = np.zeros(0, np.int64)
        if mask.size:
            counts = np.add.reduceat(mask, self.begins, dtype=np.int64)
        chosen = self._replace(rows=self.rows[mask], key=self.key[mask])
        return chosen.without_empty(counts)


class Threads(abc.ABC):
    """Reads the events of threads, some of each of several at a time."""

    step: int
    """Bytes of records that follow one another in one row."""
    most = 0
    """The largest record, in bytes; 0 for any."""

    def __init__(self, records: Records, rows: ThreadRows) -> None:
        self.records = records
        self.rows = rows
        self.end_record = rows.record[rows.first[1:]]
        """The number of the record behind the last one of each thread."""
        self.states = ThreadStates(rows)

    @property
    def open_threads(self) -> I64:
        """The threads that have more records, ascending."""
        return np.flatnonzero(self.states.record < self.end_record)

    def read(self, threads: I64, most: int) -> Part:
        """Return the next events of threads, of ``most`` records of each at most.

        Of the last threads there are none, where those before have enough.
        """
        walked = self._walked(threads, most)
        columns, key, is_event = self.events(walked)
        part_first = walked.part_first
        events = np.arange(walked.place.size)
        if not is_event.all():
            events = np.flatnonzero(np.repeat(is_event, walked.count))
            key = key[events]
        begins = np.searchsorted(events, walked.first[part_first])
        counts = np.diff(begins, append=events.size)
        part = Part(columns, events, key, walked.thread[part_first], begins)
        part = part.without_empty(counts)
        let_rise_on(part.key, part.begins, part.threads, self.states.latest)
        if self.most and "size" in columns:
            payload_bytes = columns["size"][events].astype(np.int64)
            fits = METADATA_BYTES + payload_bytes <= self.most
            return part.where(fits | (columns["kind"][events] < CUSTOM))
        return part

    def _walked(self, threads: I64, most: int) -> Walked:
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
        row, part_first = expanded(first_row, row_counts, step=1)
        part_last = part_first + row_counts - 1
        begin = rows.begin[row]
        flags = rows.flags[row]
        count = np.diff(rows.record)[row]
        # The first records of the first row of a part may have been read before.
        skipped = begin_record - rows.record[first_row]
        begin[part_first] += self.step * skipped
        count[part_first] -= skipped
        continued = part_first[skipped > 0]
        flags[continued] &= np.uint8(0xFF - FIRST - ORPHAN)
        flags[continued] |= np.uint8(FOLLOWS)
        # The last records of its last row may be left for later.
        left = rows.record[end_row] - end_record
        goes_on = left > 0
        count[part_last] -= left
        flags[part_last[goes_on]] &= np.uint8(0xFF - ARGUED)
        place, first_records = expanded(begin, count, self.step)
        return Walked(
            row=row,
            begin=begin,
            count=count,
            code=rows.code[row],
            flags=flags,
            thread=np.repeat(threads, row_counts),
            place=place,
            first=first_records,
            part_first=part_first,
            part_last=part_last,
            goes_on=goes_on,
        )

    @abc.abstractmethod
    def events(self, walked: Walked) -> tuple[Columns, I64, Bools]:
        """Return an event for each record, the biased time by which it comes, and which rows count.

        The states of the threads go on behind the records.
        """


def columns_of(walked: Walked) -> Columns:
    """Return columns for an event of each record, still without its kind, function, time and CPU.

    Calls have no ``value`` and ``size``, which then are not there.
    """
    count = walked.place.size
    return {
        "kind": np.empty(count, np.uint8),
        "function": np.empty(count, np.uint32),
        "offset": walked.place,
        "thread": np.repeat(walked.thread.astype(np.int32), walked.count),
    }


def add_values(columns: Columns) -> None:
    """Add columns for what only arguments and custom and typed events have."""
    columns["value"] = np.zeros(columns["kind"].size, np.uint64)
    columns["size"] = np.zeros(columns["kind"].size, np.int32)


class FdrThreads(Threads):
    """Reads events of the flight data recorder."""

    step = FUNCTION_BYTES

    def __init__(self, records: Records, rows: ThreadRows, *, most: int) -> None:
        super().__init__(records, rows)
        self.most = most

    def events(self, walked: Walked) -> tuple[Columns, I64, Bools]:
        """Return an event for each record, as ``Threads.events`` says."""
        out = columns_of(walked)
        first_records = walked.first
        code = walked.code
        is_function = code == FUNCTION
        is_argument = code == CALL_ARGUMENT
        is_event = (code == CUSTOM_EVENT) | (code == TYPED_EVENT)
        is_shown = is_function | is_argument | is_event
        if (is_argument | is_event).any():
            add_values(out)
        # Functions are most of all: the others are read as such too, which is cheaper than to pick.
        names = ("kind", "function_id", "delta")
        columns = self.records.fields(Function, walked.place, *names)
        out["kind"][:], out["function"][:], delta = columns
        other_records = first_records[~is_function]
        out["kind"][other_records] = 0
        out["function"][other_records] = 0
        delta[other_records] = 0
        own_times = self._read_events(out, delta, walked, np.flatnonzero(is_event))
        tsc, cpu = self._state(walked, delta)
        self._read_arguments(out, walked, np.flatnonzero(is_argument))
        # Calls that arguments follow are such, also where they say nothing of them.
        argued = walked.last_records(np.flatnonzero(walked.flags & ARGUED))
        is_entry = out["kind"][argued] == ENTER
        out["kind"][argued[is_entry]] = ENTER_ARG
        function = np.flatnonzero(is_function)
        self._mark_back(out["kind"], walked, function, tsc)
        self._go_on(walked, out, tsc, cpu, function)
        order = tsc ^ SIGN
        if own_times is not None:
            event = first_records[is_event]
            order[event] = in_place(own_times, tsc[event]) ^ SIGN
            tsc[event] = own_times
            cpu[event] = NO_CPU
            if self.records.version == EVENT_CPU_VERSION:
                custom = np.flatnonzero(code == CUSTOM_EVENT)
                places = walked.begin[custom]
                (cpu[first_records[custom]],) = self.records.metadata(CUSTOM_EVENT, places, "cpu")
        out |= {"tsc": tsc.view(np.uint64), "cpu": cpu}
        return out, order, is_shown

    def _read_events(self, out: Columns, delta: I64, walked: Walked, event: I64) -> I64 | None:
        """Read custom and typed events; return their own times, up to version 4."""
        with_deltas = self.records.version >= EVENT_DELTA_VERSION
        own_times = None
        time_name = "delta"
        if event.size and not with_deltas:
            own_times = np.zeros(event.size, np.int64)
            time_name = "tsc"
        for kind, shown_kind in ((CUSTOM_EVENT, CUSTOM), (TYPED_EVENT, TYPED)):
            is_of_kind = walked.code[event] == kind
            row = event[is_of_kind]
            if not row.size:
                continue
            record = walked.first[row]
            begin = walked.begin[row]
            size, time = self.records.metadata(kind, begin, "_size", time_name)
            if own_times is None:
                delta[record] = time
            else:
                own_times[is_of_kind] = time
            out["kind"][record] = shown_kind
            if kind == TYPED_EVENT:
                (event_type,) = self.records.metadata(kind, begin, "event_type")
                out["function"][record] = event_type
            out["value"][record] = begin + METADATA_BYTES
            out["size"][record] = size
        return own_times

    def _state(self, walked: Walked, delta: I64) -> tuple[I64, NDArray[np.uint16]]:
        """Return time and CPU as of each record.

        Records that say a time set it; others add to it, as they do to the time of their thread
        before them, or of a buffer that begins without.
        """
        states = self.states
        flags = walked.flags
        first_records = walked.first
        sums = np.cumsum(delta)
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
            record = first_records[row]
            tsc = np.where(flags[row] & CUT != 0, base[row], tsc)
            time_sets.append(sets(record, tsc - sums[record]))
            cpu_sets += [sets(record, cpu) for cpu in cpus]
        # Buffers begin without a CPU; other parts go on where their thread is.
        cpu = np.full(flags.size, NO_CPU)
        part_first = walked.part_first
        goes_on = part_first[flags[part_first] & FIRST == 0]
        base[goes_on] = states.base[walked.thread[goes_on]]
        cpu[goes_on] = states.cpu[walked.thread[goes_on]]
        begins = np.union1d(part_first, np.flatnonzero(flags & FIRST))
        record = first_records[begins]
        # The first record of a part adds its delta, too.
        sums_before = sums[record] - delta[record]
        time_before = sets(record, base[begins] - sums_before)
        cpu_before = sets(record, cpu[begins])
        _, times = register_columns(0, sums.size, time_sets, time_before)
        _, cpu_of_record = register_columns(0, sums.size, cpu_sets, cpu_before)
        return sums + times, cpu_of_record.astype(np.uint16)

    def _read_arguments(self, out: Columns, walked: Walked, row: I64) -> None:
        """Read arguments of calls, and of none."""
        if not row.size:
            return
        record = walked.first[row]
        has_call = walked.flags[row] & FOLLOWS != 0
        calls = np.flatnonzero(walked.code == FUNCTION)
        last_functions = out["function"][walked.last_records(calls)]
        # The last row of calls before each; 0 stands for none.
        call_number = np.searchsorted(calls, row)
        call = np.append(-1, calls)[call_number]
        own_function = np.append(np.uint32(0), last_functions)[call_number]
        part_number = np.searchsorted(walked.part_first, row, side="right") - 1
        function_before = self.states.function[walked.thread[row]]
        is_in_part = call >= walked.part_first[part_number]
        function = np.where(is_in_part, own_function, function_before)
        out["kind"][record] = ARGUMENT
        out["function"][record] = np.where(has_call, function, 0)
        (value,) = self.records.metadata(CALL_ARGUMENT, walked.begin[row], "value")
        out["value"][record] = value.view(np.uint64)
        out["size"][record] = np.where(has_call, 0, -1)

    def _mark_back(self, kinds: NDArray[np.uint8], walked: Walked, function: I64, tsc: I64) -> None:
        """Mark the calls that are earlier than the one before in their thread."""
        if not function.size:
            return
        begins = walked.first[function]
        end_times = tsc[walked.last_records(function)]
        thread = walked.thread[function]
        is_back = are_back(tsc[begins], end_times, thread, self.states.last_call)
        # One that follows another directly is never earlier, as its delta has no sign.
        is_back &= walked.flags[function] & FOLLOWS == 0
        kinds[begins[is_back]] |= BACK

    def _go_on(
        self, walked: Walked, out: Columns, tsc: I64, cpu: NDArray[np.uint16], function: I64
    ) -> None:
        """Enter what the records say of those behind them."""
        states = self.states
        thread = walked.thread
        last_records = walked.last_records(walked.part_last)
        threads = thread[walked.part_last]
        states.base[threads] = tsc[last_records]
        states.cpu[threads] = cpu[last_records]
        if function.size:
            of_call = thread[function]
            last_functions = function[ends_of_runs(of_call)]
            last_call = walked.last_records(last_functions)
            states.last_call[thread[last_functions]] = tsc[last_call]
            states.function[thread[last_functions]] = out["function"][last_call]


class BasicThreads(Threads):
    """Reads events of basic mode."""

    step = BASIC_BYTES

    def events(self, walked: Walked) -> tuple[Columns, I64, Bools]:
        """Return an event for each record, as ``Threads.events`` says."""
        out = columns_of(walked)
        place = walked.place
        states = self.states
        thread = out["thread"]
        is_argument = self._is_argument(place)
        call = np.flatnonzero(~is_argument)
        argument = np.flatnonzero(is_argument)
        cpus, kinds, functions, tsc = self.records.fields(
            BasicFunction, place[call], "cpu", "kind", "function_id", "tsc"
        )
        # Of an argument: those of the last call before it, of its thread.
        call_number = np.cumsum(~is_argument) - 1
        part_begins = walked.first[walked.part_first]
        first_record = np.repeat(part_begins, np.diff(part_begins, append=place.size))
        # Number -1, before the first call, is the last of these: no record.
        call_record = np.append(call, -1)[call_number]
        is_here = call_record >= first_record
        has_call = np.ones(place.size, np.bool_)
        orphan_rows = walked.flags & ORPHAN != 0
        has_call[walked.first[orphan_rows]] = False

        def known(of_calls: I64, of_threads: I64) -> I64:
            own = np.append(of_calls, 0)[call_number]
            return np.where(is_here, own, of_threads[thread])

        times = known(tsc, states.base)
        function = known(functions, states.function)
        cpu = known(cpus, states.cpu)
        self._mark_arguments(kinds, walked, call, is_argument)
        is_back = are_back(tsc, tsc, thread[call], states.base)
        out["kind"][call] = kinds + BACK * is_back
        if argument.size:
            add_values(out)
            out["kind"][argument] = ARGUMENT
            (value,) = self.records.fields(BasicArgument, place[argument], "value")
            out["value"][argument] = value.view(np.uint64)
            out["size"][argument] = np.where(has_call[argument], 0, -1)
        out["function"] = np.where(has_call, function, 0).astype(np.uint32)
        out["cpu"] = np.where(has_call, cpu, NO_CPU).astype(np.uint16)
        out["tsc"] = times.view(np.uint64)
        last_records = walked.last_records(walked.part_last)
        threads = thread[last_records]
        states.base[threads] = times[last_records]
        states.cpu[threads] = out["cpu"][last_records]
        states.function[threads] = out["function"][last_records]
        all_rows = np.ones(walked.count.size, np.bool_)
        return out, times ^ SIGN, all_rows

    def _mark_arguments(self, kinds: I64, walked: Walked, call: I64, is_argument: Bools) -> None:
        """Let calls that arguments follow be such, also where they say nothing of them."""
        # Between a call and its arguments, no row ends.
        is_argued = np.append(is_argument[1:], False)
        is_argued[walked.last_records()] = False
        # The record behind the last one of a part is not among these, but in the file.
        last_records = walked.last_records(walked.part_last[walked.goes_on])
        places_behind = walked.place[last_records] + BASIC_BYTES
        is_argued[last_records] = self._is_argument(places_behind)
        kinds[is_argued[call] & (kinds == ENTER)] = ENTER_ARG

    def _is_argument(self, places: I64) -> Bools:
        """Return which of the records at some places are arguments."""
        types = self.records.numbers.integers(places, TYPE_BYTES, big=self.records.big)
        is_argument: Bools = types != 0
        return is_argument


def in_place(own: I64, base: I64) -> I64:
    """Return when events with times of their own come in their thread.

    Such a time may be nonsense: only one that is a little ahead of the thread counts.
    """
    ahead = own - base
    is_near = (ahead >= 0) & (ahead < 1 << NEARBY)
    return np.where(is_near & ~is_below(own, base), own, base)


def is_below(ticks: I64, others: I64) -> Bools:
    """Return which ticks are below others, as numbers without a sign."""
    return ticks.view(np.uint64) < others.view(np.uint64)


def are_back(begin: I64, end: I64, thread: NDArray[Any], last_end: NDArray[np.int64]) -> Bools:
    """Return which calls begin before the one before them in their thread ended.

    ``begin`` and ``end`` are of calls that follow one another, those of each ``thread`` together;
    ``last_end`` has by thread the end of the last call before these.
    """
    end_before = shifted(end)
    is_first = begins_of_runs(thread)
    end_before[is_first] = last_end[thread[is_first]]
    return is_below(begin, end_before)


def sets(records: I64, values: I64) -> Change:
    """Return the change of a register that some records set."""
    return Change(records, values, np.zeros(records.size, np.bool_))


# --- Merging --------------------------------------------------------------------------------------


def in_time(threads: Threads) -> Iterator[Events]:
    """Yield the events of all threads merged by time, thousands at once."""
    if threads.open_threads.size == 1:
        while threads.open_threads.size:
            part = threads.read(threads.open_threads, TOGETHER)
            if part.rows.size:
                yield events_of(part.columns, part.rows)
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
        if count * self.most > TOGETHER:
            # Where each thread begins tells which of them to read first.
            threads_at_once = TOGETHER // PEEKED
            for start in range(0, count, threads_at_once):
                self.read(open_threads[start : start + threads_at_once], PEEKED)

    def read(self, threads: I64, most: int) -> None:
        """Read more of some threads, of the first ones at least."""
        part = self.threads.read(threads, most)
        if part.rows.size:
            self.parts.append(part)
            self.held += part.rows.size

    def fill(self) -> None:
        """Read more of the threads that are behind the others: these have to wait for them."""
        open_threads = self.threads.open_threads
        reached = self.threads.states.latest[open_threads]
        if self.held > self.enough:
            self.read(open_threads[[np.argmin(reached)]], TOGETHER)
        else:
            self.read(open_threads[np.argsort(reached, kind="stable")], self.most)

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
        rows = part.rows
        key = part.key
        if until is not None:
            is_left = key >= until
            part_left = part.where(is_left)
            count_left = part_left.rows.size
            if count_left:
                columns = picked_columns(part.columns, part_left.rows)
                held_part = part_left._replace(columns=columns, rows=np.arange(count_left))
                self.parts = [held_part]
                self.held = count_left
                rows = rows[~is_left]
                key = key[~is_left]
        by_time = stable_order(key)
        if by_time is not None:
            rows = rows[by_time]
        return events_of(part.columns, rows)


def joined(parts: list[Part]) -> Part:
    """Return the events of several parts as one, in the order of threads."""
    if len(parts) == 1 and (np.diff(parts[0].threads) > 0).all():
        return parts[0]
    if any("value" in part.columns for part in parts):
        for part in parts:
            if "value" not in part.columns:
                add_values(part.columns)
    records = [part.columns["kind"].size for part in parts]
    first_records = np.cumsum([0, *records[:-1]])
    columns = {}
    for name in parts[0].columns:
        columns[name] = np.concatenate([part.columns[name] for part in parts])
    events = [part.rows.size for part in parts]
    rows = np.concatenate([part.rows for part in parts])
    rows += np.repeat(first_records, events)
    thread = np.concatenate([part.threads for part in parts])
    first_events = np.cumsum([0, *events[:-1]])
    begin = np.concatenate([part.begins for part in parts])
    begin += np.repeat(first_events, [part.begins.size for part in parts])
    count = np.diff(begin, append=rows.size)
    # Of events of one time, those of the first thread come first; those of a thread stay in order.
    order = np.argsort(thread, kind="stable")
    event, firsts = expanded(begin[order], count[order], step=1)
    is_first = begins_of_runs(thread[order])
    key = np.concatenate([part.key for part in parts])
    threads = thread[order][is_first]
    return Part(columns, rows[event], key[event], threads, firsts[is_first])


def picked_columns(columns: Columns, rows: I64) -> Columns:
    """Return some rows of columns."""
    return {name: column[rows] for name, column in columns.items()}


def events_of(columns: Columns, rows: I64) -> Events:
    """Return some rows of columns as events."""
    chosen = picked_columns(columns, rows)
    if "value" not in columns:
        chosen["value"] = np.broadcast_to(np.uint64(0), rows.size)
        chosen["size"] = np.broadcast_to(np.int32(0), rows.size)
    return Events(**chosen)
