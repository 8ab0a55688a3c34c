"""Packers: events of threads as the bytes of a trace, many at once.

Time stamps are kept exactly, also where records around them in the original file are gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray import format as wire
from fx_xray.format import (
    ARGUMENT,
    BASIC_BYTES,
    BASIC_FORM,
    CUSTOM,
    CUSTOM_EVENT,
    ENTER,
    ENTER_ARG,
    EVENT_CPU_VERSION,
    EVENT_DELTA_VERSION,
    EXIT,
    EXTENTS_VERSION,
    FDR_FORM,
    FUNCTION_BYTES,
    LATEST,
    METADATA_BYTES,
    NEW_CPU,
    NO_CPU,
    PID_VERSION,
    SECOND_IN_MICROS,
    SIGN,
    TAIL_EXIT,
    TYPED,
    TYPED_EVENT,
    BufferForm,
    Dialect,
    FileHeader,
    Now,
    class_of,
)
from fx_xray.read.columns import latest, let_rise_on
from fx_xray.read.events import Events, joined, parts_of, picked
from fx_xray.write.buffers import NO_CLOCK, Buffers, Rows, buffers_of
from fx_xray.write.encoder import refused
from fxframework.io.sink import Sink
from fxframework.io.words import to_i64
from fxframework.kernels.arrays import I64, U8, U64, Bools
from fxframework.kernels.sorting import begins_of_runs, ends_of_runs, joined_ranges, stable_order
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.strings import TextColumn
from fxframework.wire.cursor import RefusalError
from fxframework.wire.json_columns import Column, scatter
from fxframework.wire.packing import put_numbers
from fxframework.wire.records import Record

LEAST_I32: Final = -(1 << 31)
IDS: Final = 1 << 32
"""As many ids there are."""
OUT: Final = 1 << 20
"""Bytes of output at a time, unless buffers are larger."""
AT_ONCE: Final = 1 << 17
"""Events that are gathered before they are packed."""

# --- What a version cannot hold -------------------------------------------------------------------

DROPPED = (
    GREAT_FUNCTION, ORPHAN_ARGUMENT, TYPED_LOST, CUSTOM_LOST, LARGE_EVENT, EVENT_CPU, UNKNOWN_CPU,
    GREAT_CPU, TAIL_EXIT_LOST, MANY_ARGUMENTS,
) = (
    "calls of functions with greater numbers than fit",
    "arguments of no call",
    "typed events",
    "custom events",
    "events larger than a buffer",
    "CPUs of events",
    "CPUs that are not known",
    "CPU numbers above 255",
    "kinds of exits",
    "arguments beyond the size of a buffer",
)  # fmt: skip
LEFT_OUT: Final = (
    GREAT_FUNCTION, ORPHAN_ARGUMENT, TYPED_LOST, CUSTOM_LOST, LARGE_EVENT, MANY_ARGUMENTS,
)  # fmt: skip
"""Losses by which an event is not written; by the others, something of it is changed."""


Lost = Events | Rows
"""Events that are not written."""


class Packer(ABC):
    """The threads of a trace, whose header is written first.

    A byte order replaces that of the header. Events that are left out go to ``left_out``, if it is
    given, with the name of the loss.
    """

    form: str
    """The format that it writes."""

    def __init__(
        self,
        sink: Sink,
        header: FileHeader,
        *,
        byte_order: str = "",
        left_out: list[tuple[Lost, str]] | None = None,
    ) -> None:
        self.sink = sink
        self.version = header.version
        dialect = Dialect(self.form, header.version, byte_order or "little")
        self.state = dialect.state()
        self.counts: Counter[str] = Counter()
        """What the version cannot hold, by name."""
        self.left_out = left_out
        self.ids = IdAllocator(self.form, header.version)
        self.processes = np.zeros(0, np.int64)
        self.numbers = np.zeros(0, np.int64)
        self.first = 0
        """The first of the threads that were added last."""
        if dialect.order == "little":
            sink.write(bytes(header.raw or header.pack()))
        else:
            sink.write(attrs.evolve(header, byte_order=byte_order).pack())

    def add_koids(self, pids: U64, tids: U64) -> None:
        """Add the threads of a capture by their koids."""
        self.add_threads(*self.ids.numbers(pids, tids))

    def add_threads(self, processes: I64, numbers: I64) -> None:
        """Add threads, int64 of shape (n,): process and thread ids that 32 bits hold."""
        self.first = self.numbers.size
        self.processes = np.append(self.processes, processes.astype(np.int64))
        self.numbers = np.append(self.numbers, numbers.astype(np.int64))

    @abstractmethod
    def write(self, events: Events, payloads: U8) -> None:
        """Write events, whose ``thread`` counts from the first of those that were added last.

        The events of each thread are in program order, with arguments after their calls.
        """

    def close(self) -> Counter[str]:
        """Write the held-back records. Return the counts of what could not be written, by name."""
        counts = Counter({name: self.counts[name] for name in DROPPED if self.counts[name]})
        return counts + self.ids.dropped

    def leave_out(self, lost: Lost, name: str) -> None:
        """Count events that are not written, and note why."""
        if not lost.kind.size:
            return
        self.counts[name] += lost.kind.size
        if self.left_out is not None:
            self.left_out.append((lost, name))

    def put(
        self, out: U8, places: I64, columns: Mapping[str, Any], masks: Mapping[type[Record], Any]
    ) -> None:
        """Write records to places of ``out``: of each class those where its mask holds.

        The columns with the names of a class's fields are used. Raises WriteRefusedError where the
        byte order cannot hold a record.
        """
        for record, mask in masks.items():
            rows = np.flatnonzero(mask)
            if not rows.size:
                continue
            names = columns.keys() & {field.name for field in record.layout.places}
            numbers = {name: columns[name][rows] for name in names}
            try:
                put_numbers(out, places[rows], record.layout, numbers, self.state)
            except RefusalError as problem:
                raise refused(record, problem) from None


# --- Processes and threads -----------------------------------------------------------------------


class IdAllocator:
    """Assigns ids of 32 bits to the processes and threads of captures.

    ``dropped`` counts the ids that could not be kept: those that are too large and, in versions
    without process ids, those that two processes share.
    """

    def __init__(self, form: str, version: int) -> None:
        is_basic = form == BASIC_FORM
        least_version = wire.BASIC_PID_VERSION if is_basic else wire.PID_VERSION
        self._with_processes = version >= least_version
        self._implied = not is_basic and version == wire.EXTENTS_VERSION
        """Whether readers use the id of the thread as that of the process."""
        self._least = 0 if is_basic else LEAST_I32
        self._end = self._least + IDS
        """Ids are from the least one to before this."""
        self._processes: dict[int, int] = {}
        self._threads: dict[tuple[int, int], int] = {}
        self._taken: set[tuple[int, int]] = set()
        """Numbers of threads, each with that of the process within which it is unique."""
        self._process_numbers: set[int] = set()
        self._next = 1
        self.dropped: Counter[str] = Counter()

    def numbers(self, pids: U64, tids: U64) -> tuple[I64, I64]:
        """Return ids of processes and threads, int64 of shape (n,), for their koids."""
        pairs = list(zip(pids.tolist(), tids.tolist(), strict=True))
        for pid, tid in pairs:
            if (pid, tid) not in self._threads:
                self._enter(pid, tid)
        processes = [self._processes[pid] for pid, _ in pairs]
        threads = [self._threads[pair] for pair in pairs]
        return np.array(processes, np.int64), np.array(threads, np.int64)

    def _enter(self, pid: int, tid: int) -> None:
        if pid not in self._processes:
            number = self._fitting(pid)
            if number is None or number in self._process_numbers:
                while self._next in self._process_numbers:
                    self._next += 1
                number = self._next
                if self._with_processes:
                    self.dropped["numbers of processes"] += 1
            self._process_numbers.add(number)
            self._processes[pid] = number
        # Numbers of threads are unique in their process, or in the trace if it has none.
        scope = 0
        if self._with_processes:
            scope = self._processes[pid]
        number = self._fitting(tid)
        if number is None or (scope, number) in self._taken:
            while (scope, self._next) in self._taken:
                self._next += 1
            number = self._next
            self.dropped["numbers of threads"] += 1
        self._taken.add((scope, number))
        self._threads[pid, tid] = number
        if self._with_processes:
            return
        process_read = 0
        if self._implied:
            process_read = tid
        if pid != process_read:
            self.dropped["processes of threads"] += 1

    def _fitting(self, koid: int) -> int | None:
        """Return the koid if it is an id; a negative one is its complement of 64 bits as a koid."""
        number = koid if self._least == 0 else to_i64(koid)
        return number if self._least <= number < self._end else None


# --- The flight data recorder ---------------------------------------------------------------------


class RecorderPacker(Packer):
    """Writes the flight data recorder's traces, versions 1 to 5.

    Events are held until they are many; then all buffers are written but the last of each thread,
    whose events are held further.
    """

    form = FDR_FORM

    def __init__(self, sink: Sink, header: FileHeader, **options: Any) -> None:
        super().__init__(sink, header, **options)
        size = header.buffer_size
        if not wire.SMALLEST_BUFFER <= size < 1 << 62:  # an implausible size
            size = wire.BUFFER_BYTES
        self.buffers = BufferForm(header.version, size)
        self.frequency = header.cycle_frequency or NS_PER_SECOND
        self.waiting: list[Rows] = []
        """Events that are not yet in buffers, behind those of the last buffer of each thread."""
        self.waiting_count = 0
        self.held_count = 0
        self.payloads: list[U8] = []
        """The payloads of these custom and typed events."""
        self.full_buffers = 0
        self.is_called = np.zeros(0, np.bool_)
        """By thread: whether arguments may follow its last event."""
        self.wall = np.zeros(0, np.int64)
        """By thread: the greatest time at which one of its buffers begins, biased."""
        self.rank = np.zeros(0, np.int64)
        """By thread: the number of its first full buffer, of all such."""
        registers = {Now.VERSION: header.version}
        self.custom = class_of(CUSTOM_EVENT, registers)
        self.typed = class_of(TYPED_EVENT, registers)

    def add_threads(self, processes: I64, numbers: I64) -> None:
        """Add threads, each without a buffer."""
        super().add_threads(processes, numbers)
        count = len(numbers)
        self.is_called = np.append(self.is_called, np.zeros(count, np.bool_))
        # A wall time is that of the first buffer at least, and not before 0.
        self.wall = np.append(self.wall, np.full(count, SIGN))
        self.rank = np.append(self.rank, np.full(count, LATEST))

    def write(self, events: Events, payloads: U8) -> None:
        """Write events, of added threads; some are held until there are more, or ``close``."""
        count = events.kind.size
        has_payload = np.flatnonzero(events.kind >= CUSTOM)
        values = events.value.view(np.int64)
        if has_payload.size:
            starts = values[has_payload]
            gathered = TextColumn.gather(payloads, starts, events.size[has_payload])
            values = values.copy()
            bytes_before = sum(map(len, self.payloads))
            values[has_payload] = gathered.offsets[:-1] + bytes_before
            self.payloads.append(gathered.data)
        rows = Rows(
            kind=events.kind,
            function=events.function,
            tsc=events.tsc.view(np.int64),
            cpu=events.cpu,
            thread=events.thread + np.int32(self.first),
            offset=events.offset,
            value=values,
            size=events.size,
            number=np.arange(self.waiting_count, self.waiting_count + count),
        )
        self.waiting.append(rows)
        self.waiting_count += count
        if self.waiting_count >= max(AT_ONCE, 3 * self.held_count):
            self._pack(is_last=False)

    def close(self) -> Counter[str]:
        """Write the buffers of all threads. Return the counts of what could not be written."""
        if self.waiting:
            self._pack(is_last=True)
        return super().close()

    # --- Events to rows -----------------------------------------------------------------------

    def _pack(self, *, is_last: bool) -> None:
        """Write all buffers that are full; at last, the others too."""
        rows = self._without_losses(self._sorted_rows())
        payloads = np.concatenate([np.zeros(0, np.uint8), *self.payloads])
        is_unknown = (rows.kind >= CUSTOM) & (rows.cpu == NO_CPU)
        buffers = buffers_of(rows, self.buffers)
        self._count_cpus(rows, is_unknown)
        if buffers.is_lost.any():
            self._leave_out(rows, MANY_ARGUMENTS, buffers.is_lost)
        walls = self._wall_times(rows, buffers)
        is_open = buffers.ended_by < 0
        full = np.flatnonzero(~is_open)
        # A full buffer is written when a row ends it.
        ending_number = rows.number[buffers.ended_by[full]]
        full = full[np.argsort(ending_number, kind="stable")]
        thread = rows.thread[buffers.first]
        numbers = self.full_buffers + np.arange(full.size)
        np.minimum.at(self.rank, thread[full], numbers)
        self.full_buffers += full.size
        output = _Output(self, rows, payloads, buffers, walls)
        output.write(full)
        if is_last:
            # Threads in the order of reading, so that extracting twice gives the same bytes.
            buffers_left = np.flatnonzero(is_open)
            rank = self.rank[thread[buffers_left]]
            output.write(buffers_left[np.argsort(rank, kind="stable")])
        else:
            self._hold(rows, payloads, buffers, is_open)

    def _sorted_rows(self) -> Rows:
        """Return the events that wait, in the order of threads."""
        rows = joined(self.waiting)
        order = stable_order(rows.thread.astype(np.int64))
        if order is not None:
            rows = picked(rows, order)
        return rows

    def _without_losses(self, rows: Rows) -> Rows:
        """Return the rows that the version can hold, and count the others."""
        kind = rows.kind
        is_new = rows.number >= 0
        is_function = kind <= ENTER_ARG
        losses = {GREAT_FUNCTION: is_function & (rows.function > wire.MAX_FUNCTION_ID)}
        if self.version < PID_VERSION:
            losses[TYPED_LOST] = kind == TYPED
        if self.version < EXTENTS_VERSION:
            room = self.buffers.room - METADATA_BYTES
            losses[LARGE_EVENT] = (kind == CUSTOM) & (rows.size > room)
        is_lost = np.logical_or.reduce(list(losses.values()))
        # Arguments belong to the event before, if that is a call which is written. Those of no call
        # have a negative size.
        is_argument = kind == ARGUMENT
        may_have_arguments = is_function & ~is_lost
        is_first = begins_of_runs(rows.thread)
        is_last = ends_of_runs(rows.thread)
        is_new_argument = is_argument & is_new
        rows_asking = np.flatnonzero(is_new_argument | is_last)
        event_before = latest(~is_argument & is_new)[rows_asking]
        is_in_rows = event_before >= latest(is_first)[rows_asking]
        # The event before the first new one of a thread is of an earlier pack.
        was_called = self.is_called[rows.thread[rows_asking]]
        is_called = np.where(is_in_rows, may_have_arguments[event_before], was_called)
        orphans = rows_asking[~is_called]
        is_orphan = is_new_argument & (rows.size < 0)
        is_orphan[orphans] = is_new_argument[orphans]
        losses[ORPHAN_ARGUMENT] = is_orphan
        self.is_called[rows.thread[is_last]] = is_called[is_last[rows_asking]]
        for name in LEFT_OUT:
            if name in losses:
                self._leave_out(rows, name, losses[name])
        is_lost |= is_orphan
        if is_lost.any():
            return picked(rows, ~is_lost)
        return rows

    def _leave_out(self, rows: Rows, name: str, is_left_out: Bools) -> None:
        """Count rows that are not written, in the order in which they came."""
        lost = np.flatnonzero(is_left_out)
        in_order = lost[np.argsort(rows.number[lost], kind="stable")]
        self.leave_out(picked(rows, in_order), name)

    def _count_cpus(self, rows: Rows, is_unknown: Bools) -> None:
        """Count CPUs of events that the version cannot hold, and unknown ones where it has to."""
        is_event = (rows.kind >= CUSTOM) & (rows.number >= 0)
        if not is_event.any():
            return
        has_cpu = is_event
        if self.version < EVENT_DELTA_VERSION:
            has_cpu = np.zeros(is_event.size, np.bool_)
            if self.version == EVENT_CPU_VERSION:
                has_cpu = is_event & (rows.kind == CUSTOM)
            is_lost = is_event & ~has_cpu & ~is_unknown
            self.counts[EVENT_CPU] += int(is_lost.sum())
        else:
            is_unknown &= rows.cpu != NO_CPU
        self.counts[UNKNOWN_CPU] += int((has_cpu & is_unknown).sum())

    def _wall_times(self, rows: Rows, buffers: Buffers) -> I64:
        """Return the ticks that the wall time of each buffer is made of.

        They are those at which it begins, or those of an earlier one of its thread if greater.
        """
        thread = rows.thread[buffers.first]
        times = rows.tsc[buffers.first] ^ SIGN
        begins = np.flatnonzero(begins_of_runs(thread))
        let_rise_on(times, begins, thread[begins], self.wall)
        return times ^ SIGN

    def _hold(self, rows: Rows, payloads: U8, buffers: Buffers, is_open: Bools) -> None:
        """Keep the events of open buffers."""
        first_rows = buffers.first[is_open]
        end_rows = buffers.end[is_open]
        index = joined_ranges(first_rows, end_rows - first_rows)
        if buffers.is_lost.any():
            index = index[~buffers.is_lost[index]]
        held = picked(rows, index)
        has_payload = np.flatnonzero(held.kind >= CUSTOM)
        gathered = TextColumn.gather(payloads, held.value[has_payload], held.size[has_payload])
        held.value[has_payload] = gathered.offsets[:-1]
        held.number[:] = -1
        self.waiting = [held]
        self.waiting_count = 0
        self.held_count = held.kind.size
        self.payloads = [gathered.data]


class _Output:
    """Writes buffers out of rows."""

    def __init__(
        self, packer: RecorderPacker, rows: Rows, payloads: U8, buffers: Buffers, walls: I64
    ) -> None:
        self.packer = packer
        self.rows = rows
        self.payloads = payloads
        self.buffers = buffers
        self.walls = walls
        form = packer.buffers
        self.head = form.extents + form.preamble
        sizes = buffers.nbytes + METADATA_BYTES * (buffers.clock != NO_CLOCK)
        self.begins = np.append(0, np.cumsum(sizes))
        """Where the clock, or the record, of each row begins behind all those before it."""
        used = self.begins[buffers.end] - self.begins[buffers.first]
        self.fill = self.head + used + METADATA_BYTES * (buffers.last_clock != NO_CLOCK)
        """Bytes of each buffer, with its extents."""

    def write(self, order: I64) -> None:
        """Write buffers in an order."""
        form = self.packer.buffers
        sizes = self.fill[order]
        if form.version < EXTENTS_VERSION:
            sizes = np.full(order.size, form.size)
        ends = np.cumsum(sizes)
        piece_ends = np.arange(OUT, int(ends[-1]) if ends.size else 0, OUT)
        piece_bounds = np.unique(np.searchsorted(ends, piece_ends))
        for numbers in np.split(np.arange(order.size), piece_bounds):
            if numbers.size:
                begins = np.cumsum(sizes[numbers]) - sizes[numbers]
                out = np.zeros(int(sizes[numbers].sum()), np.uint8)
                self._put_buffers(out, begins, order[numbers])
                self.packer.sink.write(out.data)

    def _put_buffers(self, out: U8, begins: I64, numbers: I64) -> None:
        """Put buffers, by their numbers, to places of ``out``."""
        buffers = self.buffers
        first_rows = buffers.first[numbers]
        end_rows = buffers.end[numbers]
        self._put_preambles(out, begins, numbers)
        index = joined_ranges(first_rows, end_rows - first_rows)
        shift = begins + self.head - self.begins[first_rows]
        places = self.begins[index] + np.repeat(shift, end_rows - first_rows)
        clock = buffers.clock[index]
        clocked = np.flatnonzero(clock != NO_CLOCK)
        self._put_clocks(out, places[clocked], clock[clocked], index[clocked])
        places[clocked] += METADATA_BYTES
        last_clock = buffers.last_clock[numbers]
        with_clock = np.flatnonzero(last_clock != NO_CLOCK)
        clock_places = begins[with_clock] + self.fill[numbers[with_clock]] - METADATA_BYTES
        self._put_clocks(out, clock_places, last_clock[with_clock], end_rows[with_clock])
        if buffers.is_lost.any():
            is_written = ~buffers.is_lost[index]
            index = index[is_written]
            places = places[is_written]
        self._put_rows(out, places, index)
        if self.packer.version < EXTENTS_VERSION:
            self._put_ends(out, begins + self.fill[numbers])

    def _put_preambles(self, out: U8, begins: I64, numbers: I64) -> None:
        """Put what buffers begin with."""
        packer = self.packer
        rows = self.rows
        first_rows = self.buffers.first[numbers]
        thread = rows.thread[first_rows]
        seconds, micros = wall_times(self.walls[numbers].view(np.uint64), packer.frequency)
        columns = {
            "bytes": self.fill[numbers] - METADATA_BYTES,
            "thread": packer.numbers[thread],
            "process": packer.processes[thread],
            "seconds": seconds,
            "micros": micros,
            "cpu": rows.cpu[first_rows],
            "tsc": rows.tsc[first_rows],
        }
        records: list[type[Record]] = [wire.NewBuffer, wire.WallTime, wire.NewCpu]
        if packer.version >= PID_VERSION:
            records.insert(2, wire.Pid)
        if packer.version >= EXTENTS_VERSION:
            records.insert(0, wire.BufferExtents)
        is_written = np.ones(numbers.size, np.bool_)
        for place, record in enumerate(records):
            packer.put(out, begins + METADATA_BYTES * place, columns, {record: is_written})

    def _put_clocks(self, out: U8, places: I64, kinds: NDArray[Any], index: I64) -> None:
        """Put clocks with the times and CPUs of rows."""
        columns = {"tsc": self.rows.tsc[index], "cpu": self.rows.cpu[index]}
        is_cpu = kinds == NEW_CPU
        self.packer.put(out, places, columns, {wire.NewCpu: is_cpu, wire.TscWrap: ~is_cpu})

    def _put_rows(self, out: U8, places: I64, index: I64) -> None:
        """Put the records of rows, and the payloads of events."""
        packer = self.packer
        rows = picked(self.rows, index)
        kind = rows.kind
        is_argument = kind == ARGUMENT
        if packer.version < EVENT_CPU_VERSION:
            # Up to version 3 there is no kind of entry for calls with arguments.
            is_followed = np.append(is_argument[1:], False)[: kind.size]
            kind[is_followed & (kind == ENTER_ARG)] = ENTER
        columns = {
            "kind": kind,
            "function_id": rows.function,
            "delta": rows.tsc - self.buffers.base[index],
            "value": rows.value,
            "_size": rows.size,
            "tsc": rows.tsc,
            "cpu": rows.cpu,
            "event_type": rows.function,
        }
        masks = {
            wire.Function: kind <= ENTER_ARG,
            wire.CallArgument: is_argument,
            packer.custom: kind == CUSTOM,
            packer.typed: kind == TYPED,
        }
        packer.put(out, places, columns, masks)
        event = np.flatnonzero(kind >= CUSTOM)
        if event.size:
            nbytes = rows.size[event].astype(np.int64)
            payloads = TextColumn.gather(self.payloads, rows.value[event], nbytes).data
            scatter(out, places[event] + METADATA_BYTES, Column(nbytes, payloads, nbytes))

    def _put_ends(self, out: U8, places: I64) -> None:
        """Put the end records of version 1."""
        packer = self.packer
        packer.put(out, places, {}, {wire.EndOfBuffer: np.ones(places.size)})
        # Buffers are of equal size: where one ends, the next begins, or ``out`` ends.
        odd_bytes = -places % packer.buffers.size % FUNCTION_BYTES
        # Readers since LLVM 7 take what follows for records: an event of the odd bytes leaves as
        # many whole ones as zeros make elsewhere.
        fillers: Mapping[type[Record], Any] = {wire.CustomEventAt: odd_bytes != 0}
        packer.put(out, places + METADATA_BYTES, {"_size": odd_bytes}, fillers)


def packer_of(form: str, sink: Sink, header: FileHeader, **options: Any) -> Packer:
    """Return the packer of a format (``Packer``)."""
    if form == BASIC_FORM:
        return BasicPacker(sink, header, **options)
    return RecorderPacker(sink, header, **options)


def wall_times(ticks: NDArray[np.uint64], frequency: int) -> tuple[I64, I64]:
    """Return ticks of a clock as seconds and microseconds, each of the same shape."""
    seconds, ticks_left = np.divmod(ticks, np.uint64(frequency))
    if frequency < 1 << 44:
        micros = ticks_left * np.uint64(SECOND_IN_MICROS) // np.uint64(frequency)
    else:  # an implausible rate, with which the product would overflow
        micros = np.minimum(
            ticks_left // np.uint64(frequency // SECOND_IN_MICROS), SECOND_IN_MICROS - 1
        )
    return np.minimum(seconds, np.uint64(LATEST)).view(np.int64), micros.view(np.int64)


# --- Basic mode -----------------------------------------------------------------------------------


class BasicPacker(Packer):
    """Writes traces of basic mode, versions 1 to 3, with events in the given order."""

    form = BASIC_FORM

    def __init__(self, sink: Sink, header: FileHeader, **options: Any) -> None:
        super().__init__(sink, header, **options)
        self.called_thread = -1
        """The thread of the last call, if arguments of it may follow."""

    def write(self, events: Events, payloads: U8) -> None:
        """Write events, of added threads; basic mode has no custom and typed events."""
        del payloads
        for part in parts_of(events, AT_ONCE):
            self._write(part._replace(thread=part.thread + np.int32(self.first)))

    def _write(self, events: Events) -> None:
        kind = events.kind
        thread = events.thread
        is_function = kind <= ENTER_ARG
        is_argument = kind == ARGUMENT
        is_great = is_function & (events.function > wire.MAX_BASIC_FUNCTION)
        # The call before each event, of any thread: arguments directly follow it, but for events of
        # other threads. -1 is the last one before these. Those of no call have a negative size.
        called = np.append(np.where(is_great, -1, thread), self.called_thread)
        call = latest(is_function)
        ends_call = (kind >= CUSTOM) & (called[call] == thread)
        is_near = latest(ends_call) <= call
        has_call = is_near & (called[call] == thread) & (events.size >= 0)
        if kind.size:
            self.called_thread = -1
            if is_near[-1]:
                self.called_thread = int(called[call[-1]])
        for name, is_lost in (
            (GREAT_FUNCTION, is_great),
            (ORPHAN_ARGUMENT, is_argument & ~has_call),
            (TYPED_LOST, kind == TYPED),
            (CUSTOM_LOST, kind == CUSTOM),
        ):
            self.leave_out(picked(events, is_lost), name)
        self._put_out(events, is_function & ~is_great, is_argument & has_call)

    def _put_out(self, events: Events, is_call: Bools, is_argument: Bools) -> None:
        """Write the records of calls and of their arguments."""
        counts = self.counts
        is_written = is_call | is_argument
        places = BASIC_BYTES * (np.cumsum(is_written) - 1)
        out = np.zeros(BASIC_BYTES * int(np.count_nonzero(is_written)), np.uint8)
        cpu = events.cpu
        kind = events.kind
        is_unknown = cpu == NO_CPU
        counts[UNKNOWN_CPU] += int(np.count_nonzero(is_call & is_unknown))
        is_great = (cpu > wire.BASIC_MAX_CPU) & ~is_unknown
        counts[GREAT_CPU] += int(np.count_nonzero(is_call & is_great))
        if self.version < wire.BASIC_TAIL_EXIT_VERSION:
            is_tail_exit = kind == TAIL_EXIT
            counts[TAIL_EXIT_LOST] += int(np.count_nonzero(is_call & is_tail_exit))
            kind = np.where(is_tail_exit, EXIT, kind)
        columns = {
            "kind": kind,
            "cpu": np.where(is_unknown, 0, cpu),
            "function_id": events.function,
            "tsc": events.tsc.view(np.int64),
            "value": events.value.view(np.int64),
            "thread": self.numbers[events.thread],
        }
        if self.version >= wire.BASIC_PID_VERSION:
            columns["process"] = self.processes[events.thread]
        self.put(
            out, places, columns, {wire.BasicFunction: is_call, wire.BasicArgument: is_argument}
        )
        self.sink.write(out.data)
