"""A trace that has been scanned: its threads, its buffers, and its events as often as wanted."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_xray import format as wire
from fx_xray.format import (
    CUT,
    EARLY,
    ENTER,
    ENTER_ARG,
    FIRST,
    HAS_PID,
    INHABITED,
    KIND_NAMES,
    LOW32,
    SIGN,
    TIMELESS,
    WALLED,
)
from fx_xray.read.events import Events, array, backward, events_of, fill, merged_order
from fx_xray.read.framing import Losses
from fx_xray.read.normalise import Normalise
from fx_xray.read.scan import BasicScan, FdrScan
from fx_xray.read.timeline import BasicTimeline, EventBuffer, FdrTimeline, Stretches
from fx_xray.rules import RULES
from fxframework.io.limits import Limits
from fxframework.kernels.buffers import view
from fxframework.kernels.notes import Notes
from fxframework.kernels.sorting import stable_order

__all__ = ["AT_ONCE", "BasicLog", "FdrLog", "GivenLog", "Log"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
WINDOW = 64 << 20
"""Bytes of a file that are scanned before they are released."""
AT_ONCE = 1 << 15
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
    entries: int
    """Calls that are entered."""
    buffers: dict[str, NDArray[Any]] | None = None
    """Columns of `xray_buffers`; the thread is -1 of a buffer without records."""
    notes: Notes | None = None
    """What the scan found."""
    nbytes: int
    """Bytes of the trace."""
    losses: Losses
    """What the scan took for no sound record."""

    @abc.abstractmethod
    def chunks(self, room: int = 0) -> Iterator[EventBuffer]:
        """Return all events, up to ``room`` (0: some thousands) at once.

        They are in one buffer, which is filled again each time.
        """

    def events(self, room: int = 1 << 15) -> Iterator[Events]:
        """Return all events, up to ``room`` at once, to be kept."""
        return map(events_of, self.chunks(room))


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
        self.pids, self.tids, self.payloads = pids, tids, payloads
        self.records, self.kinds = sum(kinds.values()), kinds
        self.thread_offsets = np.zeros(pids.size, np.int64)
        threads, first = np.unique(events.thread, return_index=True)
        self.thread_offsets[threads] = events.offset[first]
        self.entries = int(np.count_nonzero((events.kind == ENTER) | (events.kind == ENTER_ARG)))
        self.nbytes = 32 * int(events.kind.size)
        self.losses = Losses()
        order = merged_order(events)
        columns: dict[str, Any] = {name: column[order] for name, column in events._asdict().items()}
        self._events = Events(**columns)
        self._back = backward(self._events)

    def chunks(self, room: int = 0) -> Iterator[EventBuffer]:
        """Yield all events, up to ``room`` (0: some thousands) at once."""
        room = room or AT_ONCE
        buffer = EventBuffer(room)
        for at in range(0, self._events.kind.size, room):
            fill(buffer, self._events, self._back, at)
            yield buffer


class _FileLog(Log):
    """A trace of which the bytes are given: what both modes share."""

    def __init__(self, data: U8, release: Callable[..., None]) -> None:
        self.payloads = self._data = data
        self.nbytes = int(data.size)
        self._release = release

    def _scan(self, scan: FdrScan | BasicScan) -> None:
        """Scan up to the end."""
        released = 0
        while scan.at < self.nbytes:
            scan.until = min(scan.at + WINDOW, self.nbytes)
            scan.run()
            if self.nbytes > WINDOW and scan.at - released >= WINDOW:
                self._release(released, scan.at)
                released = scan.at

    def _count(self, scan: FdrScan | BasicScan) -> None:
        """Take the numbers of records, and what was lost."""
        self.losses = scan.losses
        self.records = scan.record
        counted = dict(zip(KIND_NAMES, array(scan.kinds).tolist(), strict=True))
        counted["file_header"] = 1
        self.kinds = {name: count for name, count in counted.items() if count}

    def _set_threads(self, pids: I64, tids: I64, offsets: I64) -> NDArray[np.int32]:
        """Number the threads in the order of ``offsets``; return the number of each row."""
        # Offsets ascend, so that a stable order has the first row of each thread first.
        order = _ordered(pids << np.int64(32) | tids & np.int64(LOW32))
        new = np.ones(order.size, np.bool_)
        new[1:] = (np.diff(pids[order]) != 0) | (np.diff(tids[order]) != 0)
        firsts = order[new]  # the first row of each thread, by its offset
        place = np.argsort(offsets[firsts], kind="stable")
        number = np.empty(firsts.size, np.int32)
        number[place] = np.arange(firsts.size, dtype=np.int32)
        out = np.empty(order.size, np.int32)
        out[order] = number[np.cumsum(new) - 1]
        self.pids = pids[firsts[place]].view(np.uint64)
        self.tids = tids[firsts[place]].view(np.uint64)
        self.thread_offsets = offsets[firsts[place]]
        return out

    def _set_stretches(
        self, start: I64, stop: I64, flags: U8, base: I64, thread: NDArray[np.int32]
    ) -> None:
        """Take the stretches, which are in the order of their threads."""
        ids = np.arange(self.pids.size)
        self._stretches = Stretches(
            view(start, np.int64),
            view(stop, np.int64),
            view(flags, np.uint8),
            view(base, np.int64),
            view(np.searchsorted(thread, ids), np.int64),
            view(np.searchsorted(thread, ids, side="right"), np.int64),
        )

    @abc.abstractmethod
    def _timeline(self, events: EventBuffer) -> FdrTimeline | BasicTimeline:
        """Return what fills a buffer with events, from the first one on."""

    def chunks(self, room: int = 0) -> Iterator[EventBuffer]:
        """Yield all events, up to ``room`` (0: some thousands) at once.

        They are in one buffer, which is filled again each time.
        """
        events = EventBuffer(max(1, min(room or AT_ONCE, self.nbytes // 8)))
        timeline = self._timeline(events)
        done = let_go = 0
        while timeline.run():
            yield events
            done = min(done + 8 * events.rows, self.nbytes)
            # Threads are here and there in the file; what is still needed comes back.
            end = self.nbytes if done - let_go >= WINDOW else 0
            self._release(0, end, done)
            let_go = done if end else let_go
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
        super().__init__(data, release)
        self._version = version
        self._order = wire.BYTE_ORDERS.index(byte_order)
        self._most = limits.max_record
        options = {
            "version": version,
            "order": self._order,
            "buffer_size": buffer_size,
            "most": self._most,
        }
        raw = view(data, np.uint8)
        self.notes = Notes(RULES.numbers, limits.max_findings)
        scan = FdrScan(raw, self.notes, **options)
        self._scan(scan)
        scan.finish()
        self.entries = scan.entries
        self._count(scan)
        self._settle(scan, frequency)
        if scan.cuts:
            # Records that are cut in half count as they are in the file.
            again = FdrScan(raw, Notes(RULES.numbers, 1), **options)
            again.literally()
            self._scan(again)
            self._count(again)
            self.losses = scan.losses

    def _settle(self, scan: FdrScan, frequency: int) -> None:
        """Number the threads, and put their stretches in order."""
        filled = scan.blocks.filled()
        start, stop, seconds, micros, tsc, records, pid, tid, flags = filled.values()
        count = start.size
        # A buffer that is nothing but its extents is nobody's.
        inhabited = np.flatnonzero(flags & INHABITED)
        thread = np.full(count, -1, np.int32)
        if self._version == wire.EXTENTS_VERSION:
            # It does not say the process, and llvm-xray takes the thread.
            pid = np.where(flags & HAS_PID, pid, tid)
        thread[inhabited] = self._set_threads(
            pid[inhabited].astype(np.int64), tid[inhabited].astype(np.int64), start[inhabited]
        )
        walled = np.flatnonzero(flags & (TIMELESS | EARLY))
        bases = tsc.copy() if walled.size else tsc
        for block in walled.tolist():
            wall = (int(seconds[block]) * 1_000_000 + int(micros[block])) * frequency // 1_000_000
            bases[block] = np.uint64(max(wall, 0) & (1 << 64) - 1).view(np.int64)
        ticks: I64 = np.where(flags & TIMELESS, bases, tsc) if walled.size else tsc
        self.buffers = {
            "offset": start,
            "thread": thread,
            "nbytes": stop - start,
            "seconds": seconds,
            "micros": micros.astype(np.int32),
            "ticks": ticks.view(np.uint64),
            "records": records,
        }
        place = _places(thread, (flags & WALLED) != 0, seconds, micros)
        stretches = scan.stretches.filled()
        of_block = stretches["block"]
        chosen = np.flatnonzero(thread[of_block] >= 0)
        order = chosen[np.argsort(place[of_block[chosen]], kind="stable")]
        of_block = of_block[order]
        marks = stretches["flags"][order] & np.uint8(CUT)
        marks[np.diff(of_block, prepend=-1) != 0] |= np.uint8(FIRST)
        cut = (marks & CUT) != 0
        base = np.where(cut, stretches["tsc"][order], bases[of_block] ^ np.int64(SIGN))
        self._set_stretches(
            stretches["start"][order],
            stretches["stop"][order],
            marks,
            base,
            thread[of_block],
        )

    def _timeline(self, events: EventBuffer) -> FdrTimeline:
        data = self._normalised() if self._order else self._data
        return FdrTimeline(
            view(data, np.uint8), self._stretches, events, version=self._version, most=self._most
        )

    def _normalised(self) -> U8:
        """Return the sound records as a little-endian machine writes them."""
        out = self._data.copy()
        Normalise(
            view(self._data, np.uint8),
            out.data,
            self._stretches,
            version=self._version,
            order=self._order,
        ).run()
        return out


def _ordered(keys: I64) -> I64:
    """Return the places of keys in ascending order; those of equal keys ascend."""
    order = stable_order(keys)
    return np.arange(keys.size) if order is None else order


def _places(thread: NDArray[np.int32], walled: Any, seconds: I64, micros: I64) -> I64:
    """By buffer, its place in the order of decoding: by thread, wall time, place in the file."""
    order = np.argsort(thread, kind="stable")
    # A buffer without a wall time stays behind the one before it of its thread.
    latest = np.where(walled[order], np.arange(order.size), -1)
    latest = np.maximum.accumulate(latest) if latest.size else latest
    starts = np.searchsorted(thread[order], thread[order])
    known = latest >= starts
    taken = order[np.where(known, latest, 0)] if order.size else order
    lead = np.where(known, seconds[taken], np.iinfo(np.int64).min) if order.size else latest
    rest = np.where(known, micros[taken], 0) if order.size else latest
    final = order[np.lexsort((rest, lead, thread[order]))]
    place = np.empty(order.size, np.int64)
    place[final] = np.arange(order.size)
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
        super().__init__(data, release)
        self._big = byte_order != "little"
        self.notes = Notes(RULES.numbers, limits.max_findings)
        scan = BasicScan(view(data, np.uint8), self.notes, version=version, big=self._big)
        self._scan(scan)
        scan.finish()
        self.entries = scan.entries
        self._count(scan)
        start, stop, who, tsc, flags = scan.stretches.filled().values()
        thread = self._set_threads(
            (who.view(np.uint64) >> np.uint64(32)).view(np.int64), who & np.int64(LOW32), start
        )
        order = _ordered(thread.astype(np.int64))
        self._set_stretches(start[order], stop[order], flags[order], tsc[order], thread[order])

    def _timeline(self, events: EventBuffer) -> BasicTimeline:
        return BasicTimeline(view(self._data, np.uint8), self._stretches, events, big=self._big)
