"""The timeline: the events of a trace in order of time, out of its sound stretches.

A thread's events keep the order in which it wrote them: its times count as the latest so far.
Threads are merged by these, then by their numbers, a window of time after another.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray.format import (
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
    FUNCTION,
    FUNCTION_BYTES,
    METADATA_BYTES,
    NEW_CPU,
    NO_CPU,
    SIGN,
    START,
    TSC_WRAP,
    TYPED,
    TYPED_EVENT,
    BasicArgument,
    BasicFunction,
)
from fx_xray.read.buffers import expanded, latest, shifted
from fx_xray.read.events import Events, picked
from fx_xray.read.frames import Records, function_fields, heads_of
from fxframework.kernels.heads import Heads

__all__ = ["BasicThreads", "FdrThreads", "ThreadStretches", "Threads", "in_time"]

I64 = NDArray[np.int64]
Bools = NDArray[np.bool_]
NEARBY: Final = 40
"""Bits of the ticks by which an event with a time of its own may be ahead of its thread."""
HELD: Final = 1 << 20
"""Events of all threads that are held at once, about."""
LEAST: Final = 1 << 8
"""Events of a thread that are read at once, at least."""
GROUP: Final = 1 << 11
"""Records of threads that are read together."""
TYPE_BYTES: Final = 2
Columns = dict[str, NDArray[Any]]


class ThreadStretches(NamedTuple):
    """Sound stretches in the order of their threads, and in each in the order of writing.

    ``base`` is the time of a record that was cut, or of a buffer before its first NewCPUId. Those
    of thread n are from ``first[n]`` to before ``first[n + 1]``.
    """

    start: I64
    stop: I64
    base: I64
    flags: NDArray[np.uint8]
    first: I64


@attrs.define
class Thread:
    """Where a thread is: what the records so far say of those that follow."""

    at: int = 0
    stretch: int = 0
    last_stretch: int = -1
    """The stretch of the last record."""
    base: int = 0
    """The time that deltas are added to; in basic mode that of the last call."""
    cpu: int = NO_CPU
    function: int = 0
    """The function of the last call."""
    is_called: bool = False
    """Whether arguments of the last call may follow, in its stretch."""
    last_call: int = 0
    """The time of the last call."""
    latest: int = SIGN
    """The latest time so far; biased, as are those that threads are merged by."""


@attrs.define
class Walked:
    """Records that were found: rows of them, as ``Heads.walk`` has them, and each alone."""

    begin: I64
    end: I64
    count: I64
    code: NDArray[np.uint8]
    stretch: I64
    """The stretch of each row, among those of the lane."""
    thread: I64
    """The thread of each row."""
    place: I64
    """The place of each record."""
    first: I64
    """The first record of each row."""
    stop: int
    """The end of the last stretch."""


class Threads(abc.ABC):
    """Reads the events of threads, some of one *lane* at a time.

    A lane is a thread, or threads that follow one another and have few records: they are read
    whole, and put in order of time.
    """

    step: int
    """Bytes of records that follow one another in one row."""
    most = 0
    """The largest record, in bytes; 0 for any."""

    def __init__(self, records: Records, stretches: ThreadStretches, table: I64, room: int) -> None:
        self.records = records
        self.stretches = stretches
        self.heads = Heads(records.data, table, max(1, room), int(records.big))
        sums = np.concatenate([[0], np.cumsum(stretches.stop - stretches.start)])
        nbytes = np.diff(sums[stretches.first]).tolist()
        # The first thread of each lane, and the number of threads.
        self.bounds = [0]
        most = min(room, GROUP) * self.step
        left = most
        for thread, size in enumerate(nbytes):
            if thread and size > left:
                self.bounds.append(thread)
                left = most
            left -= size
        self.bounds += [len(nbytes)] if nbytes else []
        self.count = len(self.bounds) - 1
        self.threads = [Thread() for _ in range(self.count)]

    def read(self, number: int, most: int) -> tuple[Events, I64] | None:
        """Return the next events of a lane, of ``most`` records at most, and when they come.

        The kinds of events that go back in time have BACK. None if it has no more records.
        """
        thread, heads = self.threads[number], self.heads
        first_thread, end_thread = self.bounds[number : number + 2]
        is_group = end_thread > first_thread + 1
        first = self.stretches.first
        mine = slice(int(first[first_thread]), int(first[end_thread]))
        heads.at, heads.stretch = thread.at, thread.stretch
        rows, _ = heads.walk(
            self.stretches.start[mine],
            self.stretches.stop[mine],
            self.records.data.size if is_group else most,
        )
        thread.at, thread.stretch = heads.at, heads.stretch
        if not rows:
            return None
        columns: Any = heads.places, heads.ends, heads.counts, heads.codes, heads.stretches
        begin, end, count, code, stretch = (column[:rows].copy() for column in columns)
        stretch = stretch.astype(np.int64)
        of_thread = np.full(rows, first_thread)
        if is_group:
            of_thread = np.searchsorted(first, mine.start + stretch, side="right") - 1
        place, first_record = expanded(begin, count, self.step)
        stop = int(self.stretches.stop[mine.start + int(stretch[-1])])
        walked = Walked(begin, end, count, code, stretch, of_thread, place, first_record, stop)
        events, key = self.events(thread, walked, mine.start)
        thread.last_stretch = int(stretch[-1])
        is_back = np.append(False, key[1:] < key[:-1])[: key.size]
        for part in parts_by_thread(events["thread"], is_back):
            np.maximum.accumulate(key[part], out=key[part])
        if key.size and not is_group:
            np.maximum(key, thread.latest, out=key)
            thread.latest = int(key[-1])
        if is_group:
            order = np.argsort(key, kind="stable")
            key = key[order]
            events = {name: column[order] for name, column in events.items()}
        if self.most:
            nbytes = events["size"].astype(np.int64) + METADATA_BYTES
            is_fit = (events["kind"] < CUSTOM) | (nbytes <= self.most)
            key, events = key[is_fit], {name: each[is_fit] for name, each in events.items()}
        if not (events["kind"] & (BACK - 1) >= ARGUMENT).any():
            # Calls have neither, and there may be many.
            for name in ("value", "size"):
                events[name] = np.broadcast_to(events[name][:0].dtype.type(0), key.size)
        return Events(**events), key

    @abc.abstractmethod
    def events(self, thread: Thread, walked: Walked, base: int) -> tuple[Columns, I64]:
        """Return the events of records, and the biased time by which each is in its thread.

        ``base`` is the number of the thread's first stretch.
        """


def columns_of(walked: Walked) -> Columns:
    """Return columns for an event of each record, still without its time, CPU and thread."""
    count = walked.place.size
    return {
        "kind": np.zeros(count, np.uint8),
        "function": np.zeros(count, np.uint32),
        "offset": walked.place,
        "value": np.zeros(count, np.uint64),
        "size": np.zeros(count, np.int32),
        "thread": np.repeat(walked.thread.astype(np.int32), walked.count),
    }


def parts_by_thread(thread: NDArray[np.int32], mask: Bools) -> list[slice]:
    """Return where the events of each thread are that have one where a mask holds.

    Those of a thread follow one another.
    """
    begins = np.flatnonzero(np.append(True, thread[1:] != thread[:-1])[: thread.size])
    ends = np.append(begins[1:], thread.size)
    chosen = np.unique(np.searchsorted(begins, np.flatnonzero(mask), side="right") - 1)
    return list(map(slice, begins[chosen].tolist(), ends[chosen].tolist()))


class FdrThreads(Threads):
    """Reads events of the flight data recorder."""

    step = FUNCTION_BYTES

    def __init__(
        self, records: Records, stretches: ThreadStretches, room: int, *, most: int
    ) -> None:
        super().__init__(records, stretches, heads_of(records.version, records.order), room)
        self.most = most

    def events(self, thread: Thread, walked: Walked, base: int) -> tuple[Columns, I64]:
        """Return the events of records, and the biased time by which each is in its thread."""
        out, begin, stretch = columns_of(walked), walked.begin, walked.stretch
        kinds, first = out["kind"], walked.first
        flags = self.stretches.flags[base + stretch]
        code = np.where(flags & CUT != 0, np.uint8(START), walked.code)
        is_function, is_argument = code == FUNCTION, code == CALL_ARGUMENT
        is_event = (code == CUSTOM_EVENT) | (code == TYPED_EVENT)
        # Functions are most of all: they are read together.
        if is_function.all():
            kinds[:], out["function"][:], delta = function_fields(self.records, walked.place)
        else:
            delta = np.zeros(walked.place.size, np.int64)
            every = np.flatnonzero(np.repeat(is_function, walked.count))
            kinds[every], out["function"][every], delta[every] = function_fields(
                self.records, walked.place[every]
            )
        own_times = self._read_events(out, delta, walked, np.flatnonzero(is_event))
        opens = np.append(thread.last_stretch, stretch[:-1]) != stretch
        tsc, cpu = self._state(thread, walked, delta, opens & (flags & FIRST != 0), base)
        has_call = self._has_call(thread, walked, is_function, is_argument)
        self._read_arguments(thread, out, walked, np.flatnonzero(is_argument), has_call)
        function = np.flatnonzero(is_function)
        self._mark_arguments(kinds, walked, function, is_argument)
        begins, ends = first[function], first[function] + walked.count[function] - 1
        last_calls = np.append(thread.last_call, tsc[ends])
        of_thread = walked.thread[function]
        is_same = np.append(True, of_thread[1:] == of_thread[:-1])[: function.size]
        is_back = tsc[begins].view(np.uint64) < last_calls[:-1].view(np.uint64)
        is_back &= is_same
        kinds[begins[is_back & ~has_call[function]]] |= BACK
        thread.base, thread.cpu, thread.last_call = int(tsc[-1]), int(cpu[-1]), int(last_calls[-1])
        if function.size:
            thread.function = int(out["function"][ends[-1]])
        thread.is_called = bool(is_function[-1] or (is_argument[-1] and has_call[-1]))
        order = tsc ^ SIGN
        if own_times is not None:
            event = first[is_event]
            order[event] = in_place(own_times, tsc[event]) ^ SIGN
            tsc[event] = own_times
            cpu[event] = NO_CPU
            if self.records.version == EVENT_CPU_VERSION:
                custom = np.flatnonzero(code == CUSTOM_EVENT)
                (cpu[first[custom]],) = self.records.metadata(CUSTOM_EVENT, begin[custom], "cpu")
        out |= {"tsc": tsc.view(np.uint64), "cpu": cpu}
        return self._shown(out, order, walked, is_function | is_argument | is_event)

    def _read_events(self, out: Columns, delta: I64, walked: Walked, event: I64) -> I64 | None:
        """Read custom and typed events; return their own times, up to version 4."""
        with_deltas = self.records.version >= EVENT_DELTA_VERSION
        own_times = None if with_deltas or not event.size else np.zeros(event.size, np.int64)
        for kind, shown in ((CUSTOM_EVENT, CUSTOM), (TYPED_EVENT, TYPED)):
            is_mine = walked.code[event] == kind
            mine = event[is_mine]
            if not mine.size:
                continue
            record, begin = walked.first[mine], walked.begin[mine]
            names = ["delta" if with_deltas else "tsc"]
            names += ["event_type"] if kind == TYPED_EVENT else []
            time, *types = self.records.metadata(kind, begin, *names)
            if own_times is None:
                delta[record] = time
            else:
                own_times[is_mine] = time
            out["kind"][record] = shown
            if types:
                out["function"][record] = types[0]
            out["value"][record] = begin + METADATA_BYTES
            out["size"][record] = walked.end[mine] - begin - METADATA_BYTES
        return own_times

    def _state(
        self, thread: Thread, walked: Walked, delta: I64, is_first: Bools, base: int
    ) -> tuple[I64, NDArray[np.uint16]]:
        """Return time and CPU as of each record.

        Records that say a time set it; others, and where a buffer begins without, add to it.
        """
        code, first, begin = walked.code, walked.first, walked.begin
        sums = np.cumsum(delta)
        bases = self.stretches.base[base + walked.stretch]
        is_cut = self.stretches.flags[base + walked.stretch] & CUT != 0
        opening = np.flatnonzero(is_first)
        rows, values, is_opening = [opening], [bases[opening]], [np.ones(opening.size, bool)]
        cpus, cpu_rows = [np.full(opening.size, NO_CPU)], [opening]
        for kind in (NEW_CPU, TSC_WRAP):
            row = np.flatnonzero(code == kind)
            if row.size:
                (tsc,) = self.records.metadata(kind, begin[row], "tsc")
                rows.append(row)
                values.append(np.where(is_cut[row], bases[row], tsc))
                is_opening.append(np.zeros(row.size, bool))
            if kind == NEW_CPU and row.size:
                cpus += self.records.metadata(kind, begin[row], "cpu")
                cpu_rows.append(row)
        row, value = settled(rows, values)
        opens = settled(rows, is_opening)[1].astype(bool)
        record = first[row]
        ahead = value - sums[record] + np.where(opens, delta[record], 0)
        tsc = sums + carried(thread.base, record, ahead, sums.size)
        row, value = settled(cpu_rows, cpus)
        cpu = carried(thread.cpu, first[row], value, sums.size).astype(np.uint16)
        return tsc, cpu

    def _has_call(
        self, thread: Thread, walked: Walked, is_function: Bools, is_argument: Bools
    ) -> Bools:
        """Return where arguments may be of a call, as of before each row."""
        stretch = walked.stretch
        before = shifted(latest(~is_argument, np.arange(stretch.size)))
        is_near = is_function[before] & (stretch[before] == stretch)
        is_next = thread.is_called & (stretch == thread.last_stretch)
        out: Bools = np.where(before >= 0, is_near, is_next)
        return out

    def _read_arguments(
        self, thread: Thread, out: Columns, walked: Walked, row: I64, has_call: Bools
    ) -> None:
        """Read arguments of calls, and of none."""
        if not row.size:
            return
        record, has_call = walked.first[row], has_call[row]
        calls = np.flatnonzero(walked.code == FUNCTION)
        last = walked.first[calls] + walked.count[calls] - 1
        functions = np.append(thread.function, out["function"][last])
        function = functions[np.searchsorted(calls, row)]
        out["kind"][record] = ARGUMENT
        out["function"][record] = np.where(has_call, function, 0)
        (value,) = self.records.metadata(CALL_ARGUMENT, walked.begin[row], "value")
        out["value"][record] = value.view(np.uint64)
        out["size"][record] = np.where(has_call, 0, -1)

    def _mark_arguments(
        self, kinds: NDArray[np.uint8], walked: Walked, function: I64, is_argument: Bools
    ) -> None:
        """Let calls that arguments follow be such, also where they say nothing of them."""
        stretch = walked.stretch
        follows = np.append(is_argument[1:] & (stretch[1:] == stretch[:-1]), False)
        end = int(walked.end[-1])
        if end < walked.stop:
            head = heads_of(self.records.version, self.records.order)[self.records.data[end]]
            follows[-1] = int(head[1]) == CALL_ARGUMENT
        row = function[follows[function]]
        last = walked.first[row] + walked.count[row] - 1
        kinds[last[kinds[last] == ENTER]] = ENTER_ARG

    def _shown(
        self, out: Columns, order: I64, walked: Walked, is_shown: Bools
    ) -> tuple[Columns, I64]:
        """Return the records that are events."""
        if not is_shown.all():
            shown = np.flatnonzero(np.repeat(is_shown, walked.count))
            out = {name: column[shown] for name, column in out.items()}
            order = order[shown]
        return out, order


BASIC_HEADS: Final = np.tile(np.array([BASIC_BYTES, 0, 0, 0, 0, 0, 0, 1]), (256, 1))
"""All records of basic mode have one size (``Heads``)."""


class BasicThreads(Threads):
    """Reads events of basic mode."""

    step = BASIC_BYTES

    def __init__(self, records: Records, stretches: ThreadStretches, room: int) -> None:
        super().__init__(records, stretches, BASIC_HEADS, room)

    def events(self, thread: Thread, walked: Walked, base: int) -> tuple[Columns, I64]:
        """Return the events of records, and the biased time by which each is in its thread."""
        del base
        out, place = columns_of(walked), walked.place
        stretch = np.repeat(walked.stretch, walked.count)
        numbers, big = self.records.numbers, self.records.big
        is_argument = numbers.integers(place, TYPE_BYTES, big=big) != 0
        call, argument = np.flatnonzero(~is_argument), np.flatnonzero(is_argument)
        cpus, kinds, functions, tsc = self.records.fields(
            BasicFunction, place[call], "cpu", "kind", "function_id", "tsc"
        )
        # Of an argument: those of the last call before it.
        before = np.cumsum(~is_argument)
        times = np.append(thread.base, tsc)[before]
        of_thread = out["thread"]
        call_thread = np.append(of_thread[:1], of_thread[call])[before]
        times[call_thread != of_thread] = 0
        near = shifted(latest(~is_argument, np.arange(place.size)))
        has_call = np.where(
            near >= 0,
            stretch[near] == stretch,
            thread.is_called & (stretch == thread.last_stretch),
        )
        has_call |= ~is_argument
        function = np.append(thread.function, functions)[before]
        cpu = np.append(thread.cpu, cpus)[before]
        is_back = tsc.view(np.uint64) < np.append(thread.base, tsc)[:-1].view(np.uint64)
        is_back &= np.append(True, np.diff(of_thread[call]) == 0)[: call.size]
        follows = np.append(is_argument[1:] & (stretch[1:] == stretch[:-1]), False)
        end = int(walked.end[-1])
        if end < walked.stop:
            follows[-1] = bool(numbers.integers(np.array([end]), TYPE_BYTES, big=big)[0])
        kinds = np.where(follows[call] & (kinds == ENTER), ENTER_ARG, kinds)
        out["kind"][call] = kinds | np.where(is_back, BACK, 0)
        out["kind"][argument] = ARGUMENT
        (value,) = self.records.fields(BasicArgument, place[argument], "value")
        out["value"][argument] = value.view(np.uint64)
        out["size"][argument] = np.where(has_call[argument], 0, -1)
        out["function"] = np.where(has_call, function, 0).astype(np.uint32)
        out["cpu"] = np.where(has_call, cpu, NO_CPU).astype(np.uint16)
        out["tsc"] = times.view(np.uint64)
        thread.base, thread.cpu, thread.function = int(times[-1]), int(cpu[-1]), int(function[-1])
        thread.is_called = bool(has_call[-1])
        return out, times ^ SIGN


def in_place(own: I64, base: I64) -> I64:
    """Return when events with times of their own come in their thread.

    Such a time may be nonsense: only one that is a little ahead of the thread counts.
    """
    ahead = own - base
    is_later = own.view(np.uint64) >= base.view(np.uint64)
    return np.where(is_later & (ahead >> NEARBY == 0), own, base)


def settled(rows: list[I64], values: list[Any]) -> tuple[I64, I64]:
    """Return rows in order and the value of each: of those of one row, the last that is given."""
    row, value = np.concatenate(rows), np.concatenate(values)
    if len(rows) > 1:
        order = np.argsort(row, kind="stable")
        row, value = row[order], value[order]
        is_last = np.append(row[1:] != row[:-1], True)[: row.size]
        row, value = row[is_last], value[is_last]
    return row, value


def carried(before: int, record: I64, value: I64, count: int) -> I64:
    """Return the last value as of each of ``count`` records, from the given ones on."""
    if not record.size:
        return np.broadcast_to(np.int64(before), count)
    bounds = np.concatenate([[0], record, [count]])
    return np.repeat(np.append(before, value), np.diff(bounds))


# --- Merging --------------------------------------------------------------------------------------


class Window:
    """The events of lanes that were read and not yet given out."""

    def __init__(self, threads: Threads, most: int) -> None:
        self.threads = threads
        self.most = most
        count = threads.count
        self.parts: list[list[tuple[Events, I64]]] = [[] for _ in range(count)]
        self.left = np.zeros(count, np.int64)
        self.first, self.last = np.full((2, count), SIGN)
        """The first and the last time of each thread's events here."""
        self.is_done = np.zeros(count, np.bool_)

    def fill(self, number: int) -> None:
        """Read more of a thread, some events at least if there are any."""
        while not self.is_done[number]:
            part = self.threads.read(number, self.most)
            if part is None:
                self.is_done[number] = True
            elif part[1].size:
                if not self.left[number]:
                    self.first[number] = part[1][0]
                self.parts[number].append(part)
                self.left[number] += part[1].size
                self.last[number] = part[1][-1]
                return

    def take(self, number: int, until: int | None) -> tuple[Events, I64]:
        """Take the events of a thread that come before a time."""
        parts = self.parts[number]
        events, key = parts[0]
        if len(parts) > 1:
            key = np.concatenate([part[1] for part in parts])
            events = joined([part[0] for part in parts])
        count = key.size if until is None else int(np.searchsorted(key, until))
        self.left[number] = key.size - count
        self.parts[number] = []
        if count < key.size:
            rest = picked(events, slice(count, None))
            self.parts[number] = [(rest, key[count:])]
            self.first[number] = key[count]
        return picked(events, slice(count)), key[:count]


def in_time(threads: Threads, most: int) -> Iterator[Events]:
    """Yield the events of all threads merged by time, ``most`` of each at once or so."""
    if threads.count == 1:
        while part := threads.read(0, most):
            if part[1].size:
                yield part[0]
        return
    window = Window(threads, max(1, min(most, max(LEAST, HELD // max(threads.count, 1)))))
    while True:
        for number in np.flatnonzero(~window.is_done & (2 * window.left < window.most)).tolist():
            window.fill(number)
        # What comes before the last event of each thread that has more is known whole.
        open_threads = np.flatnonzero(~window.is_done)
        until = int(window.last[open_threads].min()) if open_threads.size else None
        has_some = window.left > 0
        ready = np.flatnonzero(has_some if until is None else has_some & (window.first < until))
        if ready.size:
            yield from merged([window.take(number, until) for number in ready.tolist()])
        elif until is None:
            return
        else:
            for number in open_threads[window.last[open_threads] == until].tolist():
                window.fill(number)


def joined(parts: list[Events]) -> Events:
    """Return events of several parts."""
    return Events(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def merged(parts: list[tuple[Events, I64]]) -> Iterator[Events]:
    """Yield events of threads, which ascend, by time."""
    # Threads often take turns for longer than a window: what does not overlap is not copied.
    first = np.array([key[0] for _, key in parts])
    last = np.array([key[-1] for _, key in parts])
    order = np.argsort(first, kind="stable")
    ends = np.maximum.accumulate(last[order])
    apart = np.flatnonzero(first[order][1:] > ends[:-1]) + 1
    for group in np.split(order, apart):
        if group.size == 1:
            yield parts[group[0]][0]
            continue
        some = [parts[number] for number in np.sort(group).tolist()]
        events = joined([part[0] for part in some])
        by_time = np.argsort(np.concatenate([part[1] for part in some]), kind="stable")
        yield picked(events, by_time)
