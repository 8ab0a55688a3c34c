"""Kernels of ``extract.py``, which writes a part: they choose its events, and copy kept records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fx_trace.format import (
    EVENT_ASYNC_BEGIN,
    EVENT_ASYNC_END,
    EVENT_DURATION_BEGIN,
    EVENT_DURATION_COMPLETE,
    EVENT_DURATION_END,
    EVENT_FLOW_BEGIN,
    EVENT_FLOW_END,
    FLOW_BEGIN_PHASE,
    FLOW_END_PHASE,
    INVALID_END,
    OPEN_END,
)
from fxframework.kernels.annotations import Array, Bytes, Fallible, View, flag, i32, i64, u8
from fxframework.kernels.buffers import full, room
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap

__all__ = ["CopyRecords", "EventChoice", "FollowFlows"]


class EventChoice(Kernel):
    """Says which slices, and which other events, of a trace belong to a part of it.

    ``threads`` and ``categories`` have 1 for each thread id and string code that is wanted. A
    slice is kept where any of it lies in ``start`` to ``last`` (ns, both included); with
    ``whole``, where all of it does. ``slices`` and ``flows`` have 1 for each row that is kept,
    ``mark`` 1 for each word of the file at which a record begins that is kept.
    """

    threads: Bytes
    categories: Bytes
    kind: Bytes
    slices: Array[u8]
    flows: Array[u8]
    mark: Array[u8]
    start: i64
    last: i64
    count: i64
    slice_row: i64
    end_row: i64
    flow_row: i64
    whole: flag
    marking: flag
    thread: View[i32]
    category: View[i32]
    offset: View[i64]
    time: View[i64]
    slice_ends: View[i64]
    closed: View[i64]

    def __init__(
        self,
        threads: Any,
        categories: Any,
        rows: tuple[int, int],
        mark: Any,
        span: tuple[int, int],
        whole: bool,
    ) -> None:
        self.threads = memoryview(threads)
        self.categories = memoryview(categories)
        self.slices = full(max(1, rows[0]), "u1")
        self.flows = full(max(1, rows[1]), "u1", 1)
        self.mark = memoryview(mark)
        self.start, self.last = span
        self.whole = whole
        self.marking = False
        self.count = 0
        self.kind = room(0, "u1")
        self.thread = room(0, "i4")
        self.category = room(0, "i4")
        self.offset = room(0, "i8")
        self.time = room(0, "i8")
        self.slice_ends = room(0, "i8")
        self.closed = room(0, "i8")
        self.slice_row = 0
        self.end_row = 0
        self.flow_row = 0

    def take(
        self,
        columns: Mapping[str, Any],
        time: Any,
        spans: Mapping[str, Any],
        first: dict[str, int],
        marking: bool,
    ) -> None:
        """Set the events that ``run`` looks at; with ``marking`` it marks, else chooses slices.

        ``spans`` has `end` by slice row and `ends` by end event; ``first`` the first row of
        `slices`, `ends` and `flows` of these events.
        """
        self.kind = memoryview(columns["kind"])
        self.thread = memoryview(columns["thread"])
        self.category = memoryview(columns["category"])
        self.offset = memoryview(columns["offset"])
        self.time = memoryview(time)
        self.count = len(self.kind)
        self.slice_ends = memoryview(spans["end"])
        self.closed = memoryview(spans["ends"])
        self.slice_row = first["slices"]
        self.end_row = first["ends"]
        self.flow_row = first["flows"]
        self.marking = marking

    def step(self) -> Fallible[i64]:
        """Choose or mark the events."""
        event = 0
        while event < self.count:
            if self.marking:
                if self.is_kept(event):
                    self.mark[self.offset[event] // 8] = 1
            elif self.is_slice(self.kind[event]):
                self.slices[self.slice_row] = self.reaches(event) and self.is_wanted(event)
                self.slice_row += 1
            event += 1
        return 0

    def is_slice(self, kind: i64) -> flag:
        """Return whether an event begins a slice."""
        return (
            kind == EVENT_DURATION_COMPLETE
            or kind == EVENT_DURATION_BEGIN
            or kind == EVENT_ASYNC_BEGIN
        )

    def is_wanted(self, event: i64) -> flag:
        """Return whether thread and category of an event are selected."""
        return self.threads[self.thread[event]] != 0 and self.categories[self.category[event]] != 0

    def reaches(self, event: i64) -> flag:
        """Return whether a slice overlaps the stretch of time, or, if ``whole``, lies inside it."""
        now = self.time[event]
        end = self.slice_ends[self.slice_row]
        is_open = end == OPEN_END
        if end == INVALID_END:
            end = now  # it ends before it begins: a moment
        inside = self.start <= now <= self.last
        if self.whole:
            return inside and not is_open and (end == now or end - 1 <= self.last)
        return inside or (now < self.start and (is_open or end > self.start))

    def is_kept(self, event: i64) -> flag:
        """Return whether an event is kept, once the kept slices and flows are known."""
        kind = self.kind[event]
        if self.is_slice(kind):
            row = self.slice_row
            self.slice_row += 1
            return self.slices[row] != 0
        keep = self.start <= self.time[event] <= self.last and self.is_wanted(event)
        if kind == EVENT_DURATION_END or kind == EVENT_ASYNC_END:
            row = self.closed[self.end_row]
            self.end_row += 1
            if row >= 0:
                keep = self.slices[row] != 0
        elif EVENT_FLOW_BEGIN <= kind <= EVENT_FLOW_END:
            keep = keep and self.flows[self.flow_row] != 0
            self.flow_row += 1
        return keep


class FollowFlows(Kernel):
    """Numbers the flows that points belong to: ``flow`` is by point, -1 where none began.

    ``order`` are points by time, ``phases`` as in `flows`. A flow goes on, in whatever process,
    until it ends; a begin of its id is a point of it till then. ``first`` takes the point that
    began each flow. ``run`` gives how many there are.
    """

    order: View[i64]
    ids: View[i64]
    phases: Bytes
    flow: Array[i64]
    first: Array[i64]
    count: i64
    open_flows: PairMap

    def __init__(self, order: Any, ids: Any, phases: Any, flow: Any, first: Any) -> None:
        self.order = memoryview(order)
        self.ids = memoryview(ids)
        self.phases = memoryview(phases)
        self.flow = memoryview(flow)
        self.first = memoryview(first)
        self.count = len(self.order)
        self.open_flows = PairMap(16)

    def step(self) -> Fallible[i64]:
        """Follow the points in order of time."""
        flows = 0
        place = 0
        while place < self.count:
            point = self.order[place]
            found = self.open_flows.get(0, self.ids[point])
            if found < 0:
                found = 0
            if self.phases[point] == FLOW_BEGIN_PHASE and found == 0:
                self.first[flows] = point
                flows += 1
                found = flows
            self.flow[point] = found - 1
            if self.phases[point] == FLOW_END_PHASE:
                found = 0
            self.open_flows.put(0, self.ids[point], found)
            place += 1
        return flows


class CopyRecords(Kernel):
    """Copies the records at words ``positions``, of ``sizes`` words, one behind the other.

    ``run`` copies those from ``first`` to ``stop`` to ``out``, and gives the words copied.
    """

    streams: View[i64]
    positions: View[i64]
    sizes: View[i64]
    out: Array[i64]
    first: i64
    stop: i64

    def __init__(self, streams: Any, positions: Any, sizes: Any) -> None:
        self.streams = memoryview(streams)
        self.positions = memoryview(positions)
        self.sizes = memoryview(sizes)
        self.out = room(0, "i8")
        self.first = 0
        self.stop = 0

    def copy(self, first: int, stop: int, out: Any) -> int:
        """Copy the records from number ``first`` to ``stop`` to ``out`` (int64)."""
        self.first = first
        self.stop = stop
        self.out = memoryview(out)
        return self.run()

    def step(self) -> Fallible[i64]:
        """Copy."""
        at = 0
        record = self.first
        while record < self.stop:
            source = self.positions[record]
            end = source + self.sizes[record]
            while source < end:
                self.out[at] = self.streams[source]
                at += 1
                source += 1
            record += 1
        return at
