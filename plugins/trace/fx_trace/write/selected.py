"""The records that a selection asks for, chosen by the rows that they have in tables."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace.format import EventType, ProfilerType
from fx_trace.meaning import IS_ROW_OF
from fx_trace.read.capture import TraceCapture
from fx_trace.read.chunks import Chunk
from fx_trace.records import SIZE
from fxframework.io.words import U64_MAX, WORD
from fxframework.kernels.arrays import I64, U8, Bools
from fxframework.kernels.sorting import begins_of_runs, stable_order
from fxframework.model.clock import NS_MAX, NS_MIN, Clock
from fxframework.model.rows import category_mask, thread_mask
from fxframework.model.schema import FLOW_BEGIN, FLOW_STEP, SWITCH, WAKEUP
from fxframework.model.selection import Selection
from fxframework.model.skipped import SkippedSlices

MAYBE = 2
"""Mark of an object, which is kept where it is needed."""
KEEP = "keep"
CLOSE = "close"
DROP = "drop"
"""Ways to handle slices that begin before the stretch of time or end after it."""
IS_SLICE, IS_END, IS_FLOW = (IS_ROW_OF[table] for table in ("slices", "ends", "flows"))
"""By type: whether events begin a slice, end one, or are points of a flow."""


class NewWords(NamedTuple):
    """Words of the file that the copy has other values of."""

    words: I64
    values: NDArray[np.uint64]


class NewTimes(NamedTuple):
    """Times of begins of slices, or of ends, in the copy: columns of shape (times,)."""

    record: I64
    """The words of the file where the records begin."""
    words: I64
    """The words that have the times."""
    ticks: NDArray[np.uint64]
    clock: NDArray[Any]
    """The number of the clock in ``RowReader.clocks``."""
    thread: I64
    """That of the slices; of asynchronous ones, which do not nest, less than 0."""
    depth: I64

    @classmethod
    def of(cls, parts: list[NewTimes]) -> NewTimes:
        """Return the times of several parts, of which there is one at least."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


class MovedSlices(NamedTuple):
    """Slices that begin with the stretch of time now: columns of shape (slices,)."""

    word: I64
    thread: I64
    time: I64
    """When they began, in ns."""
    depth: I64


class FlowPoints(NamedTuple):
    """Points of flows: columns of shape (points,)."""

    id: I64
    phase: U8
    time: I64
    is_wanted: Bools


class SelectedRecords:
    """The records of the rows in a part of a trace.

    ``mark`` (uint8, of shape (words,)) has 1 for each word of the file at which such a record
    begins, and MAYBE for those that others may need. ``start`` and ``last`` are ns, both within
    the stretch of time.
    """

    def __init__(self, capture: TraceCapture, selection: Selection, open_slices: str) -> None:
        self.capture = capture
        self.selection = selection
        self.passed = capture.first_pass()
        self.start = NS_MIN if selection.start_ns is None else clamped(selection.start_ns)
        self.last = NS_MAX
        if selection.stop_ns is not None:
            self.last = clamped(selection.stop_ns - 1)
        self.open_slices = open_slices
        self.mark: U8 = np.zeros(capture.words.size, np.uint8)
        self.new_begins: list[NewTimes] = []
        self.new_ends: list[NewTimes] = []
        self.moved: list[MovedSlices] = []
        self.running = np.zeros(0, np.int64)
        """Thread koids of the scheduling records that are kept."""
        self.is_wanted_thread: Bools = np.ones(self.passed.tasks.pids.size, bool)
        threads = thread_mask(selection, capture)
        if threads is not None:
            self.is_wanted_thread = threads.astype(bool)
        self._is_wanted_category: Bools = np.ones(len(capture.strings), bool)
        categories = category_mask(selection, capture)
        if categories is not None:
            self._is_wanted_category = categories.astype(bool)
        self._is_wanted_blob: dict[int, bool] = {}
        """Whether the category of large records is selected, by code; no table has it."""
        self._is_chosen_slice = np.zeros(self.passed.rows["slices"], bool)
        self._is_chosen_flow = np.ones(self.passed.rows["flows"], bool)
        self._skipped = SkippedSlices(selection, capture) if selection.skips else None

    def choose(self) -> None:
        """Mark the records of the rows in the part."""
        flow_points: list[FlowPoints] = []
        for chunk in self.capture.chunks():
            self._choose_slices(chunk)
            flow_points.append(self._flow_points(chunk))
            self._mark_sched(chunk)
        self._choose_flows(flow_points)
        for chunk in self.capture.chunks():
            self._mark_events(chunk)
            self._mark_logs(chunk)
            self._mark_blobs(chunk)
            self._mark_profiler(chunk)
            self._mark_objects(chunk)
            if self.open_slices == CLOSE:
                self._close(chunk)

    # --- Slices and flows -----------------------------------------------------------------------

    def _choose_slices(self, chunk: Chunk) -> None:
        """Choose the slices of a chunk: selected ones that reach into the stretch of time."""
        rows = np.flatnonzero(IS_SLICE[chunk.events.kind])
        first_slice = chunk.first["slices"]
        own_rows = slice(first_slice, first_slice + rows.size)
        begin = chunk.events.time[rows]
        end = np.asarray(self.passed.spans.end)[own_rows]
        is_open = end == wire.OPEN_END
        end = np.where(end == wire.INVALID_END, begin, end)  # it ends before it begins: a moment
        is_inside = self._is_within(begin)
        if self.open_slices == DROP:
            ends_in_time = (end == begin) | (end - 1 <= self.last)
            reaches = is_inside & ~is_open & ends_in_time
        else:
            reaches_start = is_open | (end > self.start)
            reaches = is_inside | ((begin < self.start) & reaches_start)
        reaches &= self._is_wanted(chunk)[rows]
        if self._skipped is not None:
            slice_rows = np.arange(first_slice, first_slice + rows.size)
            reaches &= ~self._skipped.among(slice_rows)
        self._is_chosen_slice[own_rows] = reaches

    def _flow_points(self, chunk: Chunk) -> FlowPoints:
        """Return the points of flows of a chunk."""
        events = chunk.events
        rows = np.flatnonzero(IS_FLOW[events.kind])
        phases = events.kind[rows] - EventType.FLOW_BEGIN
        is_wanted = self._is_wanted(chunk)[rows]
        return FlowPoints(events.word[rows], phases, events.time[rows], is_wanted)

    def _choose_flows(self, parts: list[FlowPoints]) -> None:
        """Choose the points of a flow within the time if its begin is one of them, or none.

        Points without their begin, or without those of other threads, would join another flow of
        the same id.
        """
        if not parts:
            return
        points = FlowPoints(*map(np.concatenate, zip(*parts, strict=True)))
        order = stable_order(points.time)
        if order is None:
            order = np.arange(points.id.size)
        flow, first_point = followed(order, points.id, points.phase)
        is_within = self._is_within(points.time)
        # The last one stands for points without a begin, whose flow is -1.
        is_chosen = np.ones(first_point.size + 1, np.bool_)
        is_chosen[:-1] = is_within[first_point]
        is_unwanted = ~points.is_wanted & is_within & (flow >= 0)
        is_chosen[flow[is_unwanted]] = False
        self._is_chosen_flow[: flow.size] = is_chosen[flow]

    def _mark_events(self, chunk: Chunk) -> None:
        """Mark the events of a chunk that are kept, now that slices and flows are chosen."""
        kind = chunk.events.kind
        is_marked = self._is_within(chunk.events.time) & self._is_wanted(chunk)
        slices = np.flatnonzero(IS_SLICE[kind])
        first_slice = chunk.first["slices"]
        is_marked[slices] = self._is_chosen_slice[first_slice:][: slices.size]
        flows = np.flatnonzero(IS_FLOW[kind])
        first_flow = chunk.first["flows"]
        is_marked[flows] &= self._is_chosen_flow[first_flow:][: flows.size]
        # An end goes with its slice, wherever it is; one that closes nothing is a moment.
        ends = np.flatnonzero(IS_END[kind])
        first_end = chunk.first["ends"]
        closed_slice = np.asarray(self.passed.spans.ends)[first_end:][: ends.size]
        closes = closed_slice >= 0
        is_marked[ends[closes]] = self._is_chosen_slice[closed_slice[closes]]
        self._mark(chunk.events.offset[is_marked])

    def _is_wanted(self, chunk: Chunk) -> Bools:
        """Return of which events of a chunk thread and category are selected."""
        events = chunk.events
        is_wanted: Bools = self.is_wanted_thread[events.thread]
        is_wanted &= self._is_wanted_category[events.category]
        return is_wanted

    def _is_within(self, times: I64) -> Bools:
        """Return which times are in the stretch of time."""
        return np.asarray((times >= self.start) & (times <= self.last))

    # --- Other records --------------------------------------------------------------------------

    def _mark_sched(self, chunk: Chunk) -> None:
        """Mark context switches of all threads, and wakeups of selected ones."""
        sched = chunk.sched
        if self.selection.categories or not sched.kind.size:
            return
        is_marked = self._is_within(sched.time)
        is_wakeup = sched.kind == WAKEUP
        if not self.selection.by_time_and_skips:
            woken = self.passed.tasks.threads_of(sched.next, is_wakeup)
            is_marked &= ~is_wakeup | self.is_wanted_thread[woken]
        self._mark(sched.offset[is_marked])
        outgoing = sched.prev[is_marked & (sched.kind == SWITCH)]
        has_incoming = (sched.kind == SWITCH) | is_wakeup
        incoming = sched.next[is_marked & has_incoming]
        running = np.concatenate([self.running, outgoing, incoming])
        self.running = np.unique(running)

    def _mark_logs(self, chunk: Chunk) -> None:
        """Mark logs, which have no category."""
        logs = chunk.logs
        if not self.selection.categories:
            is_marked = self._is_within(logs.time) & self.is_wanted_thread[logs.thread]
            self._mark(logs.offset[is_marked])

    def _mark_blobs(self, chunk: Chunk) -> None:
        """Mark large records with metadata; other blobs have neither a time nor a thread."""
        blobs = chunk.blobs
        with_metadata = np.flatnonzero(blobs.thread >= 0)
        is_marked = np.full(blobs.type.size, self.selection.by_time_and_skips)
        is_marked[with_metadata] = self._is_within(blobs.time[with_metadata])
        is_marked[with_metadata] &= self.is_wanted_thread[blobs.thread[with_metadata]]
        if self.selection.categories:
            for row in np.flatnonzero(is_marked).tolist():
                is_marked[row] = self._is_category(int(blobs.category[row]))
        self._mark(blobs.offset[is_marked])

    def _is_category(self, code: int) -> bool:
        """Return whether the category of a large record is selected."""
        if code not in self._is_wanted_blob:
            category = "" if code < 0 else self.capture.strings[code]
            is_wanted = Selection.matches(category, self.selection.categories)
            self._is_wanted_blob[code] = is_wanted
        return self._is_wanted_blob[code]

    def _mark_profiler(self, chunk: Chunk) -> None:
        """Mark backtraces, and all modules and their mappings."""
        profiler = chunk.profiler
        if self.selection.categories:
            return
        backtraces = np.flatnonzero(profiler.kind == ProfilerType.BACKTRACE)
        is_marked = np.ones(profiler.kind.size, np.bool_)
        is_marked[backtraces] = self._is_within(profiler.time[backtraces])
        is_marked[backtraces] &= self.is_wanted_thread[profiler.thread[backtraces]]
        self._mark(profiler.offset[is_marked])

    def _mark_objects(self, chunk: Chunk) -> None:
        """Mark kernel objects of those who run or are selected; others may be needed."""
        objects = chunk.objects
        marks = np.full(objects.kind.size, MAYBE, np.uint8)
        is_kernel = objects.kind == 0
        marks[is_kernel & np.isin(objects.value, self.named)] = 1
        if self.selection.by_time_and_skips:
            marks[:] = 1
        self.mark[objects.offset // WORD] = marks

    @functools.cached_property
    def named(self) -> I64:
        """The koids of who runs or is selected, once all context switches are marked."""
        tasks = self.passed.tasks
        pids = tasks.pids.view(np.int64)
        tids = tasks.tids.view(np.int64)
        runs = tasks.threads_of(self.running, np.ones(self.running.size, np.bool_))
        is_wanted = self.is_wanted_thread
        return np.concatenate((pids[is_wanted], tids[is_wanted], self.running, pids[runs]))

    def _mark(self, offsets: I64) -> None:
        """Mark the records at some offsets."""
        self.mark[offsets // WORD] = 1

    # --- Slices that reach beyond the stretch ---------------------------------------------------

    def _close(self, chunk: Chunk) -> None:
        """Let the marked slices of a chunk begin and end within the stretch of time."""
        events = chunk.events
        rows = np.flatnonzero(self.mark[events.offset // WORD])
        kind = events.kind[rows]
        time = events.time[rows]
        word = events.offset[rows] // WORD
        clocks = self.passed.reader.clocks
        clock = chunk.by_clock(list(range(len(clocks))))[rows]
        # A slice that is open at the start must begin before the first tick of the stretch.
        ticks_before = [max(number - 1, 0) for number in self._ticks(self.start + 1)]
        first_tick = np.array(ticks_before, np.uint64)[clock]
        last_tick = np.array(self._ticks(self.last + 1), np.uint64)[clock]
        is_complete = kind == EventType.DURATION_COMPLETE
        depth = self._depths(chunk)[rows]
        begins = np.flatnonzero(IS_SLICE[kind] & (time < self.start))
        ends = np.flatnonzero(IS_END[kind] & (time > self.last))
        too_long = np.flatnonzero(is_complete & (events.finish[rows] - 1 > self.last))
        # The end of a complete event is the last word of its record.
        sizes = SIZE.of(self.capture.words[word[too_long]])
        nesting_thread = np.where(kind >= EventType.ASYNC_BEGIN, -1, events.thread[rows])
        for new_times, places, time_at, tick_of_event in (
            (self.new_begins, begins, 1, first_tick),
            (self.new_ends, ends, 1, last_tick),
            (self.new_ends, too_long, sizes - 1, last_tick),
        ):
            records = word[places]
            times = (records, records + time_at, tick_of_event[places], clock[places])
            new_times.append(NewTimes(*times, nesting_thread[places], depth[places]))
        if not begins.size:
            return
        is_on_thread = is_complete | (kind == EventType.DURATION_BEGIN)
        is_moved = is_on_thread & (events.ticks[rows].view(np.uint64) <= first_tick)
        thread = events.thread[rows[is_moved]]
        self.moved.append(MovedSlices(word[is_moved], thread, time[is_moved], depth[is_moved]))

    def _depths(self, chunk: Chunk) -> NDArray[Any]:
        """Return by event the depth of the slice that it begins or ends; of others, some number."""
        kind = chunk.events.kind
        slice_of_event = np.full(kind.size, -1)
        begins = np.flatnonzero(IS_SLICE[kind])
        slice_of_event[begins] = chunk.first["slices"] + np.arange(begins.size)
        ends = np.flatnonzero(IS_END[kind])
        first_end = chunk.first["ends"]
        slice_of_event[ends] = np.asarray(self.passed.spans.ends)[first_end:][: ends.size]
        depths = np.asarray(self.passed.spans.depth)
        return depths.take(slice_of_event, mode="clip") if depths.size else slice_of_event

    def _ticks(self, ns: int) -> list[int]:
        """Return the first tick not before ``ns``, for each clock."""
        return [tick(clock, ns) for clock in self.passed.reader.clocks]


def nested_ticks(
    times: NewTimes, places: I64, clocks: Sequence[Clock], *, are_begins: bool
) -> NDArray[np.uint64]:
    """Return new ticks of begins, or of ends, so that slices stay within those around them.

    ``places`` are those of events in the copy, which readers take in this order at one time; -1 of
    ends of complete events. A slice whose event has the wrong place, as in the section of another
    provider, begins before those in it, or ends behind them; so does one whose clock has no tick at
    their time.
    """
    ticks = times.ticks.copy()
    inner_first = np.lexsort((-times.depth, times.thread))
    inner_first = inner_first[times.thread[inner_first] >= 0]
    threads = times.thread[inner_first]
    place = places[inner_first]
    inner_place = np.append(-1, place)[:-1]
    is_wrong = (np.minimum(place, inner_place) >= 0) & ((place > inner_place) == are_begins)
    is_wrong |= begins_of_runs(times.clock[inner_first])
    for thread in np.unique(threads[is_wrong & ~begins_of_runs(threads)]).tolist():
        bound = NS_MAX if are_begins else NS_MIN
        last_place = -1
        for row in inner_first[slice(*np.searchsorted(threads, (thread, thread + 1)))].tolist():
            clock = clocks[times.clock[row]]
            ns = clock.ns(int(ticks[row])) or 0
            is_beyond = ns > bound if are_begins else ns < bound
            if ns == bound and min(places[row], last_place) >= 0:
                is_beyond = (places[row] > last_place) == are_begins
            if is_beyond:
                bound_tick = clock.ticks(bound) - 1 if are_begins else clock.ticks(bound + 1)
                ticks[row] = min(max(bound_tick, 0), U64_MAX)
                ns = clock.ns(int(ticks[row])) or 0
            bound = ns
            last_place = int(places[row])
    return ticks


def tick(clock: Clock, ns: int) -> int:
    """Return the first tick not before a time."""
    return min(max(clock.ticks(ns), 0), U64_MAX)


def clamped(ns: int) -> int:
    """Return a time that 64 bits hold, as times of records are."""
    return min(max(ns, NS_MIN), NS_MAX)


def followed(order: I64, ids: I64, phases: NDArray[Any]) -> tuple[I64, I64]:
    """Return the flow of each point, -1 for none, and the point that began each flow.

    ``order`` are points by time, ``phases`` as in `flows`. A flow goes on, in whatever process,
    until it ends; a begin of its id is a point of it till then.
    """
    points = order[np.argsort(ids[order], kind="stable")]
    id = ids[points]
    phase = phases[points]
    place = np.arange(points.size)
    # Whether a flow of the id is open says the begin or the end before the point.
    is_step = phase == FLOW_STEP
    last_bound = np.maximum.accumulate(np.where(is_step, -1, place))
    bound_before = np.append(-1, last_bound)[: place.size]
    first_of_id = np.maximum.accumulate(np.where(begins_of_runs(id), place, 0))
    is_of_id = bound_before >= first_of_id
    is_open = is_of_id & (phase[bound_before] == FLOW_BEGIN)
    begins_flow = (phase == FLOW_BEGIN) & ~is_open
    flow = np.empty(points.size, np.int64)
    flow_number = np.cumsum(begins_flow) - 1
    flow[points] = np.where(is_open | begins_flow, flow_number, -1)
    return flow, points[begins_flow]
