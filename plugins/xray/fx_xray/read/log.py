"""A trace that has been scanned: its threads, its buffers, and its events as often as wanted."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fx_xray.format import (
    ARGUED,
    BACK,
    BASIC_FORM,
    CALL_ARGUMENT,
    CUT,
    EARLY,
    EXTENTS_VERSION,
    FDR_FORM,
    FIRST,
    FOLLOWS,
    FUNCTION,
    FUNCTION_BYTES,
    HAS_PID,
    INHABITED,
    KIND_NAMES,
    LOW32,
    SIGN,
    TIMELESS,
    WALLED,
    Dialect,
    FileHeader,
)
from fx_xray.read.basic import THREADS, BasicFrames
from fx_xray.read.buffers import FdrFrames
from fx_xray.read.columns import latest, order_of
from fx_xray.read.events import Events, backward, merged_order, parts_of, picked, with_arguments
from fx_xray.read.frames import Records
from fx_xray.read.timeline import BasicThreads, FdrThreads, ThreadRows, Threads, in_time
from fx_xray.rules import RULES
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.kernels.arrays import I64, U8
from fxframework.kernels.pools import Pool, codes_of
from fxframework.kernels.sorting import begins_of_runs
from fxframework.model.clock import NS_PER_SECOND
from fxframework.wire.expressions import wrapped
from fxframework.wire.findings import Findings

WINDOW = 64 << 20
"""Bytes of a file that are read before they are released."""
SCANNED = 1 << 17
"""Records that are looked at at once."""
AT_ONCE = 1 << 16
"""Events that are made at once."""
PAYLOADS_AT_ONCE = 1 << 11
"""Payloads that are read at once: each may be in a page of its own."""


class Log(abc.ABC):
    """A trace that has been scanned: who is in it, and its events.

    A subclass sets what is declared here when it is made.
    """

    pids: NDArray[np.uint64]
    tids: NDArray[np.uint64]
    """By thread id."""
    thread_offsets: I64
    """By thread id: where it is first mentioned."""
    payloads: U8
    """What ``value`` and ``size`` of custom and typed events are places in."""
    records: int
    """Records of the file."""
    kinds: dict[str, int]
    """Records of each kind, by the names of record JSON."""
    calls: int
    """Records of functions: at most so many calls are entered."""
    buffers: dict[str, NDArray[Any]] | None = None
    """Columns of `xray_buffers`; the thread is -1 of a buffer without records."""
    notes: Findings | None = None
    """What framing found."""
    nbytes: int
    """Bytes of the trace."""
    source: Source | None = None
    """The file that the payloads are in, if they are in one."""
    losses: I64 = np.zeros((3, 0), np.int64)
    """What is not a sound record: begin, end and number of the rule, of each."""

    @abc.abstractmethod
    def chunks(self) -> Iterator[Events]:
        """Return all events, some thousands at once; the kinds of those back in time have BACK.

        Arguments come with the event that they follow.
        """

    def events(self) -> Iterator[Events]:
        """Return all events, some thousands at once."""
        for events in self.chunks():
            yield events._replace(kind=events.kind & np.uint8(BACK - 1))

    def codes_of_payloads(self, pool: Pool, places: I64, sizes: I64) -> NDArray[np.int32]:
        """Return the codes of payloads, which are entered in a pool of texts, shape (payloads,)."""
        codes = np.empty(places.size, np.int32)
        for start in range(0, places.size, PAYLOADS_AT_ONCE):
            some = slice(start, start + PAYLOADS_AT_ONCE)
            codes[some] = codes_of(pool, self.payloads, places[some], sizes[some])
            if self.source is not None:
                self.source.release(0, self.nbytes)
        return codes


class GivenLog(Log):
    """Events that are given, whole, each thread's in the order of its records."""

    def __init__(
        self,
        events: Events,
        pids: NDArray[np.uint64],
        tids: NDArray[np.uint64],
        payloads: U8,
        kinds: dict[str, int],
    ) -> None:
        self.pids = pids
        self.tids = tids
        self.payloads = payloads
        self.records = sum(kinds.values())
        self.kinds = kinds
        self.thread_offsets = np.zeros(pids.size, np.int64)
        threads, first_events = np.unique(events.thread, return_index=True)
        self.thread_offsets[threads] = events.offset[first_events]
        self.calls = int(events.kind.size)
        self.nbytes = 32 * self.calls
        order = merged_order(events)
        in_order = picked(events, order)
        in_order.kind[backward(in_order)] |= BACK
        self._events = in_order

    def chunks(self) -> Iterator[Events]:
        """Yield all events, some thousands at once."""
        return with_arguments(parts_of(self._events, AT_ONCE))


class FileLog(Log):
    """A trace as the runtime writes it: what both modes share.

    ``frequency`` places buffers whose time is only known by the wall clock.
    """

    form: ClassVar[str]
    """The format."""

    def __init__(
        self, source: Source, header: FileHeader, limits: Limits, frequency: int = NS_PER_SECOND
    ) -> None:
        self.payloads = source.data
        self.nbytes = source.size
        self._file = Records(source.data, Dialect(self.form, header.version, header.byte_order))
        self._buffer_size = header.buffer_size
        self._most = limits.max_record
        self.source = source
        self._release = source.passed
        self.notes = Findings(limits.max_findings, RULES.numbers)
        frames = self._frames(mends=True)
        self._scan(frames, self.notes)
        self.losses = np.concatenate([self.losses, *frames.losses], axis=1)
        calls = self.calls
        self._rows = self._rows_of(frames, frequency)
        if frames.cuts:
            # Records that are cut in half count as they are in the file.
            self._scan(self._frames(mends=False), None)
            self.calls = calls

    @abc.abstractmethod
    def _frames(self, *, mends: bool) -> FdrFrames | BasicFrames:
        """Return what finds the records."""

    @abc.abstractmethod
    def _rows_of(self, frames: Any, frequency: int) -> ThreadRows:
        """Number the threads; return their rows, from frames that were read."""

    def _scan(self, frames: FdrFrames | BasicFrames, notes: Findings | None) -> None:
        """Read all records, and count them."""
        released = 0
        for block in frames.blocks(SCANNED):
            if notes is not None:
                notes.add(block.notes)
            if self.nbytes > WINDOW and frames.at - released >= WINDOW:
                self._release(released, frames.at)
                released = frames.at
        self.records = frames.ordinal
        self.calls = int(frames.kinds[FUNCTION])
        counted = dict(zip(KIND_NAMES, frames.kinds.tolist(), strict=False))
        counted["file_header"] = 1
        self.kinds = {name: count for name, count in counted.items() if count}

    def _set_threads(self, pids: I64, tids: I64, offsets: I64) -> NDArray[np.int32]:
        """Number the threads in the order of ``offsets``; return the number of each row."""
        # Offsets ascend, so that a stable order has the first row of each thread first.
        order = order_of(pids * THREADS + (tids & LOW32))
        begins_thread = begins_of_runs(pids[order]) | begins_of_runs(tids[order])
        first_rows = order[begins_thread]
        by_offset = np.argsort(offsets[first_rows], kind="stable")
        number = np.empty(first_rows.size, np.int32)
        number[by_offset] = np.arange(first_rows.size, dtype=np.int32)
        thread_numbers = np.empty(order.size, np.int32)
        thread_numbers[order] = number[np.cumsum(begins_thread) - 1]
        first_rows = first_rows[by_offset]
        self.pids = pids[first_rows].view(np.uint64)
        self.tids = tids[first_rows].view(np.uint64)
        self.thread_offsets = offsets[first_rows]
        return thread_numbers

    def _in_order(
        self, order: I64, thread: NDArray[np.int32], begin: I64, count: I64, code: U8, marks: U8,
        base: I64,
    ) -> ThreadRows:  # fmt: skip
        """Return rows in an order, in which their threads ascend; ``base`` is that of each row."""
        code = code[order]
        marks = marks[order]
        is_argument = (code == CALL_ARGUMENT) & (marks & FOLLOWS != 0)
        is_argued = (code[:-1] == FUNCTION) & is_argument[1:]
        marks[:-1][is_argued] |= ARGUED
        based = np.flatnonzero(marks & (FIRST | CUT))
        return ThreadRows(
            begin=begin[order],
            record=np.append(0, np.cumsum(count[order])),
            code=code,
            flags=marks,
            first=np.searchsorted(thread[order], np.arange(self.pids.size + 1)),
            based=based,
            base=base[order[based]],
        )

    @abc.abstractmethod
    def _threads(self) -> Threads:
        """Return what reads the events of threads, from the first ones on."""

    def chunks(self) -> Iterator[Events]:
        """Yield all events, some thousands at once."""
        bytes_done = 0
        bytes_released = 0
        parts = (part for events in in_time(self._threads()) for part in parts_of(events, AT_ONCE))
        for part in with_arguments(parts):
            yield part
            bytes_done += FUNCTION_BYTES * part.kind.size
            bytes_done = min(bytes_done, self.nbytes)
            # Threads are here and there in the file; what is still needed comes back.
            if bytes_done - bytes_released >= WINDOW:
                self._release(0, self.nbytes, bytes_done)
                bytes_released = bytes_done
            else:
                self._release(0, 0, bytes_done)
        self._release(0, self.nbytes)


class FdrLog(FileLog):
    """A trace of the flight data recorder."""

    form = FDR_FORM

    def _frames(self, *, mends: bool) -> FdrFrames:
        return FdrFrames(self._file, self._buffer_size, self._most, mends=mends)

    def _rows_of(self, frames: FdrFrames, frequency: int) -> ThreadRows:
        columns = frames.buffers()
        thread = self._threads_of_buffers(columns)
        base = _begin_times(columns, frequency)
        is_timeless = columns["flags"] & TIMELESS != 0
        ticks = np.where(is_timeless, base, columns["tsc"])
        self.buffers = {
            "offset": columns["start"],
            "thread": thread,
            "nbytes": columns["stop"] - columns["start"],
            "seconds": columns["seconds"],
            "micros": columns["micros"].astype(np.int32),
            "ticks": ticks.view(np.uint64),
            "records": columns["records"],
        }
        has_wall_time = columns["flags"] & WALLED != 0
        place = _places(thread, has_wall_time, columns["seconds"], columns["micros"])
        begin, count, buffer, code, marks = frames.sound.table()
        base_of_row = base[buffer]
        base_of_row[marks & CUT != 0] = frames.sound.cut_times
        # Rows in the order in which their threads wrote them; rows of no thread are left out.
        order = np.flatnonzero(thread[buffer] >= 0)
        order = order[np.argsort(place[buffer[order]], kind="stable")]
        return self._in_order(order, thread[buffer], begin, count, code, marks, base_of_row)

    def _threads_of_buffers(self, columns: Mapping[str, I64]) -> NDArray[np.int32]:
        """Number the threads; return the number of each buffer, -1 for nobody's."""
        pid = columns["pid"]
        tid = columns["tid"]
        if self._file.version == EXTENTS_VERSION:
            # It does not say the process, and llvm-xray takes the thread.
            pid = np.where(columns["flags"] & HAS_PID, pid, tid)
        # A buffer that is nothing but its extents is nobody's.
        owned = np.flatnonzero(columns["flags"] & INHABITED)
        thread = np.full(tid.size, -1, np.int32)
        thread[owned] = self._set_threads(pid[owned], tid[owned], columns["start"][owned])
        return thread

    def _threads(self) -> Threads:
        return FdrThreads(self._file, self._rows, most=self._most)


def _begin_times(columns: Mapping[str, I64], frequency: int) -> I64:
    """Return the ticks at which buffers begin; by the wall clock where nothing else says them."""
    ticks = columns["tsc"].copy()
    for buffer in np.flatnonzero(columns["flags"] & (TIMELESS | EARLY)).tolist():
        seconds = int(columns["seconds"][buffer])
        wall_micros = seconds * 1_000_000 + int(columns["micros"][buffer])
        wall_ticks = wall_micros * frequency // 1_000_000
        ticks[buffer] = wrapped(max(wall_ticks, 0))
    return ticks


def _places(thread: NDArray[np.int32], walled: Any, seconds: I64, micros: I64) -> I64:
    """By buffer, its place in the order of decoding: by thread, wall time, place in the file."""
    if not thread.size:
        return np.zeros(0, np.int64)
    order = np.argsort(thread, kind="stable")
    # A buffer without a wall time stays behind the one before it of its thread.
    last_walled = latest(walled[order])
    starts = np.searchsorted(thread[order], thread[order])
    has_wall_time = last_walled >= starts
    wall_source = order[np.where(has_wall_time, last_walled, 0)]
    wall_seconds = np.where(has_wall_time, seconds[wall_source], SIGN)
    wall_micros = np.where(has_wall_time, micros[wall_source], 0)
    by_time = np.lexsort((wall_micros, wall_seconds, thread[order]))
    reading_order = order[by_time]
    place = np.empty(order.size, np.int64)
    place[reading_order] = np.arange(order.size)
    return place


class BasicLog(FileLog):
    """A trace of basic mode."""

    form = BASIC_FORM

    def _frames(self, *, mends: bool) -> BasicFrames:
        del mends  # none is ever cut in half
        return BasicFrames(self._file)

    def _rows_of(self, frames: BasicFrames, frequency: int) -> ThreadRows:
        del frequency  # each record has its time
        begin, count, thread_keys, code, flags = frames.sound.table()
        process = thread_keys.view(np.uint64) // np.uint64(THREADS)
        thread = self._set_threads(process.view(np.int64), thread_keys & LOW32, begin)
        order = order_of(thread.astype(np.int64))
        no_bases = np.zeros(begin.size, np.int64)
        return self._in_order(order, thread, begin, count, code, flags, no_bases)

    def _threads(self) -> Threads:
        return BasicThreads(self._file, self._rows)
