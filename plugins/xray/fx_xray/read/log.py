"""A trace that has been scanned: its threads, its buffers, and its events as often as wanted."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import Any

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
    HAS_PID,
    INHABITED,
    KIND_NAMES,
    LOW32,
    TIMELESS,
    WALLED,
    Dialect,
)
from fx_xray.read.basic import THREADS, BasicFrames
from fx_xray.read.buffers import FdrFrames
from fx_xray.read.columns import latest, order_of
from fx_xray.read.events import Events, backward, merged_order, picked
from fx_xray.read.frames import Records
from fx_xray.read.timeline import BasicThreads, FdrThreads, ThreadRows, Threads, in_time
from fx_xray.rules import RULES
from fxframework.io.limits import Limits
from fxframework.kernels.sorting import begins_of_runs
from fxframework.wire.expressions import wrapped
from fxframework.wire.findings import Findings

__all__ = ["AT_ONCE", "BasicLog", "FdrLog", "GivenLog", "Log"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
WINDOW = 64 << 20
"""Bytes of a file that are read before they are released."""
SCANNED = 1 << 17
"""Records that are looked at at once."""
AT_ONCE = 1 << 14
"""Events that are made at once."""


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
    losses: I64 = np.zeros((3, 0), np.int64)
    """What is not a sound record: begin, end and number of the rule, of each."""

    @abc.abstractmethod
    def chunks(self) -> Iterator[Events]:
        """Return all events, some thousands at once; the kinds of those back in time have BACK."""

    def events(self) -> Iterator[Events]:
        """Return all events, some thousands at once."""
        for events in self.chunks():
            yield events._replace(kind=events.kind & np.uint8(BACK - 1))


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
        return parts_of(self._events, AT_ONCE)


class _FileLog(Log):
    """A trace of which the bytes are given: what both modes share."""

    def __init__(
        self, data: U8, dialect: Dialect, limits: Limits, release: Callable[..., None]
    ) -> None:
        self.payloads = data
        self._data = self.payloads
        self.nbytes = int(data.size)
        self._file = Records(data, dialect)
        self._most = limits.max_record
        self._release = release
        self.notes = Findings(limits.max_findings, RULES.numbers)

    def _scan(self, frames: FdrFrames | BasicFrames, notes: Findings | None) -> None:
        """Read all records."""
        released = 0
        for block in frames.blocks(SCANNED):
            if notes is not None:
                notes.add(block.notes)
            if self.nbytes > WINDOW and frames.at - released >= WINDOW:
                self._release(released, frames.at)
                released = frames.at

    def _count(self, frames: FdrFrames | BasicFrames) -> None:
        """Take the numbers of records."""
        self.records = frames.ordinal
        self.calls = int(frames.kinds[FUNCTION])
        counted = dict(zip(KIND_NAMES, frames.kinds.tolist(), strict=False))
        counted["file_header"] = 1
        self.kinds = {name: count for name, count in counted.items() if count}

    def _take_losses(self, frames: FdrFrames | BasicFrames) -> None:
        self.losses = np.concatenate([self.losses, *frames.losses], axis=1)

    def _set_threads(self, pids: I64, tids: I64, offsets: I64) -> NDArray[np.int32]:
        """Number the threads in the order of ``offsets``; return the number of each row."""
        # Offsets ascend, so that a stable order has the first row of each thread first.
        order = order_of(pids * THREADS + (tids & LOW32))
        begins_thread = begins_of_runs(pids[order]) | begins_of_runs(tids[order])
        first_rows = order[begins_thread]  # the first row of each thread, by its offset
        place = np.argsort(offsets[first_rows], kind="stable")
        number = np.empty(first_rows.size, np.int32)
        number[place] = np.arange(first_rows.size, dtype=np.int32)
        thread_numbers = np.empty(order.size, np.int32)
        thread_numbers[order] = number[np.cumsum(begins_thread) - 1]
        self.pids = pids[first_rows[place]].view(np.uint64)
        self.tids = tids[first_rows[place]].view(np.uint64)
        self.thread_offsets = offsets[first_rows[place]]
        return thread_numbers

    @abc.abstractmethod
    def _threads(self) -> Threads:
        """Return what reads the events of threads, from the first ones on."""

    def chunks(self) -> Iterator[Events]:
        """Yield all events, some thousands at once."""
        events_at_once = AT_ONCE
        bytes_done = 0
        bytes_released = 0
        for events in in_time(self._threads()):
            for part in parts_of(events, events_at_once):
                yield part
                bytes_done = min(bytes_done + 8 * part.kind.size, self.nbytes)
                # Threads are here and there in the file; what is still needed comes back.
                end = self.nbytes if bytes_done - bytes_released >= WINDOW else 0
                self._release(0, end, bytes_done)
                bytes_released = bytes_done if end else bytes_released
        self._release(0, self.nbytes)


class FdrLog(_FileLog):
    """A trace of the flight data recorder.

    ``release`` is given which bytes are done with for now. ``frequency`` places buffers whose time
    is only known by the wall clock.
    """

    def __init__(
        self,
        data: U8,
        *,
        version: int,
        byte_order: str,
        buffer_size: int,
        frequency: int,
        limits: Limits,
        release: Callable[..., None] = lambda *_places: None,
    ) -> None:
        super().__init__(data, Dialect(FDR_FORM, version, byte_order), limits, release)
        frames = FdrFrames(self._file, buffer_size, self._most)
        self._scan(frames, self.notes)
        self._count(frames)
        self._take_losses(frames)
        calls = self.calls
        self._settle(frames, frequency)
        if frames.cuts:
            # Records that are cut in half count as they are in the file.
            again = FdrFrames(self._file, buffer_size, self._most, mends=False)
            self._scan(again, None)
            self._count(again)
            self.calls = calls

    def _settle(self, frames: FdrFrames, frequency: int) -> None:
        """Number the threads, and put their stretches in order."""
        columns = frames.buffers()
        start, stop, tsc, flags = (columns[name] for name in ("start", "stop", "tsc", "flags"))
        seconds, micros, pid, tid = (columns[name] for name in ("seconds", "micros", "pid", "tid"))
        # A buffer that is nothing but its extents is nobody's.
        inhabited = np.flatnonzero(flags & INHABITED)
        thread = np.full(start.size, -1, np.int32)
        if self._file.version == EXTENTS_VERSION:
            # It does not say the process, and llvm-xray takes the thread.
            pid = np.where(flags & HAS_PID, pid, tid)
        thread[inhabited] = self._set_threads(pid[inhabited], tid[inhabited], start[inhabited])
        is_timeless = flags & TIMELESS != 0
        base = tsc.copy()
        for block in np.flatnonzero(flags & (TIMELESS | EARLY)).tolist():
            wall_micros = int(seconds[block]) * 1_000_000 + int(micros[block])
            wall_ticks = max(wall_micros * frequency // 1_000_000, 0)
            base[block] = wrapped(wall_ticks)
        self.buffers = {
            "offset": start,
            "thread": thread,
            "nbytes": stop - start,
            "seconds": seconds,
            "micros": micros.astype(np.int32),
            "ticks": np.where(is_timeless, base, tsc).view(np.uint64),
            "records": columns["records"],
        }
        place = _places(thread, (flags & WALLED) != 0, seconds, micros)
        begin, count, of_block, code, marks = frames.sound.table()
        is_cut = marks & CUT != 0
        cut_tsc = np.zeros(begin.size, np.int64)
        cut_tsc[is_cut] = frames.sound.cut_times
        chosen = np.flatnonzero(thread[of_block] >= 0)
        order = chosen[np.argsort(place[of_block[chosen]], kind="stable")]
        code = code[order]
        marks = marks[order]
        follows = (code[1:] == CALL_ARGUMENT) & (marks[1:] & FOLLOWS != 0)
        marks[:-1][follows & (code[:-1] == FUNCTION)] |= ARGUED
        based = np.flatnonzero(marks & (FIRST | CUT))
        rows_based = order[based]
        self._rows = ThreadRows(
            begin=begin[order],
            record=np.append(0, np.cumsum(count[order])),
            code=code,
            flags=marks,
            first=np.searchsorted(thread[of_block[order]], np.arange(self.pids.size + 1)),
            based=based,
            base=np.where(is_cut[rows_based], cut_tsc[rows_based], base[of_block[rows_based]]),
        )

    def _threads(self) -> Threads:
        return FdrThreads(self._file, self._rows, most=self._most)


def parts_of(events: Events, most: int) -> Iterator[Events]:
    """Yield events, ``most`` at once."""
    count = events.kind.size
    if count <= most:
        if count:
            yield events
        return
    for start in range(0, count, most):
        yield picked(events, slice(start, start + most))


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
    wall_seconds = np.where(has_wall_time, seconds[wall_source], np.iinfo(np.int64).min)
    wall_micros = np.where(has_wall_time, micros[wall_source], 0)
    reading_order = order[np.lexsort((wall_micros, wall_seconds, thread[order]))]
    place = np.empty(order.size, np.int64)
    place[reading_order] = np.arange(order.size)
    return place


class BasicLog(_FileLog):
    """A trace of basic mode."""

    def __init__(
        self,
        data: U8,
        *,
        version: int,
        byte_order: str,
        limits: Limits,
        release: Callable[..., None] = lambda *_places: None,
    ) -> None:
        super().__init__(data, Dialect(BASIC_FORM, version, byte_order), limits, release)
        frames = BasicFrames(self._file)
        self._scan(frames, self.notes)
        self._count(frames)
        self._take_losses(frames)
        begin, count, thread_keys, code, flags = frames.sound.table()
        process = (thread_keys.view(np.uint64) // np.uint64(THREADS)).view(np.int64)
        thread = self._set_threads(process, thread_keys & LOW32, begin)
        order = order_of(thread.astype(np.int64))
        nothing = np.zeros(0, np.int64)
        self._rows = ThreadRows(
            begin=begin[order],
            record=np.append(0, np.cumsum(count[order])),
            code=code[order],
            flags=flags[order],
            first=np.searchsorted(thread[order], np.arange(self.pids.size + 1)),
            based=nothing,
            base=nothing,
        )

    def _threads(self) -> Threads:
        return BasicThreads(self._file, self._rows)
