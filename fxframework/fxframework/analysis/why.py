"""Why: where the time of the slowest calls of a name went, beside a typical call of the name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.scheduling import (
    IS_RUNNABLE,
    IS_RUNNING,
    RUNNABLE,
    RUNNING,
    CpuRuns,
    ThreadStates,
    state_name,
)
from fxframework.analysis.spans import flow_points
from fxframework.errors import UsageError, checked_type, did_you_mean
from fxframework.kit.wakers import Wakers
from fxframework.model.capture import Capture, View
from fxframework.model.schema import ASYNC
from fxframework.model.table import Table
from fxframework.model.threads import Threads

__all__ = ["BLOCKED", "ELAPSED", "MOST_STEPS", "UNACCOUNTED", "Call", "Flow", "Line", "Part",
           "Step", "Why", "why"]  # fmt: skip

I64 = NDArray[np.int64]
BLOCKED = "blocked"
UNACCOUNTED = "unaccounted"
"""The state of a thread before the first switch or wakeup that names it."""
ELAPSED = "elapsed"
"""The state of all time where a capture has no scheduling of the thread."""
MOST_STEPS = 16
"""Wakeups that are followed back from one wait."""
MOST_LINES = 100
"""Log lines of a call that are kept; all of them are counted."""
IDLE = "idle"
MOST_KNOWN = 20_000
"""Names among which one that is near to a misspelt name is looked for."""


# --- What was found ------------------------------------------------------------------------------


@attrs.frozen
class Step:
    """What a thread did while others waited for it, one step back from a wakeup that it sent."""

    thread: str
    slice: str | None
    """The innermost slice that it was in; None outside of all slices."""
    state: str
    """``running`` (or runnable) until it sent the wakeup, or the state in which it waited."""
    ns: int
    waker: str | None = None
    """Of a wait: the thread that ended it; None if that is not known."""
    is_inferred: bool = False
    """Whether the waker is inferred from what ran on the CPU of the wakeup."""


@attrs.frozen
class Part:
    """A part of a call's time: one state, in one slice, for one reason."""

    state: str
    """``running``, ``runnable``, ``blocked`` or another state of a thread, ``unaccounted``, or
    ``elapsed`` without scheduling."""
    slice: str | None
    """The innermost slice within the call; None if that is the call itself."""
    thread: str | None = None
    """Of a runnable thread the one that held the CPU on which it ran next; of a waiting one the
    thread that woke it; None if that is not known."""
    thread_slice: str | None = None
    """The innermost slice that this thread was in; None outside of all slices."""
    cpu: int | None = None
    """The CPU on which a runnable thread ran next."""
    is_inferred: bool = False
    """Whether the thread that woke it is inferred from what ran on the CPU of the wakeup."""
    ns: int = attrs.field(default=0, eq=False)
    steps: tuple[Step, ...] = attrs.field(default=(), eq=False)
    """What led to the wakeup that ended its longest wait, the last thing first."""


@attrs.frozen
class Flow:
    """A flow that came into a call from another thread."""

    thread: str
    slice: str | None
    sent_ns: int
    """When the other thread sent it, in nanoseconds of the capture's clock."""
    arrived_ns: int


@attrs.frozen
class Line:
    """A log line of the call's thread."""

    ns: int
    severity: str
    message: str


@attrs.frozen
class Call:
    """One call, and where its time went."""

    row: int
    """Its row in `slices`."""
    thread: str
    start_ns: int
    dur_ns: int
    has_states: bool
    """Whether the states of its thread are known."""
    parts: tuple[Part, ...]
    """Longest first; their times add up to ``dur_ns``."""
    flows: tuple[Flow, ...]
    """In order of arrival."""
    lines: tuple[Line, ...]
    """The first MOST_LINES log lines that its thread wrote meanwhile."""
    line_count: int


@attrs.frozen
class Why:
    """Why the slowest calls of a name took long."""

    name: str
    count: int
    """Calls that ended."""
    unfinished: int
    """Calls that never ended, whose time is not known."""
    has_scheduling: bool
    """Whether the capture has context switches; without them, waiting looks like running."""
    slowest: tuple[Call, ...]
    """The slowest first."""
    typical: Call | None
    """The median of all calls, of an even number the lower one; None if there is only one."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON: the fields by name, those that are calls and parts likewise."""
        found: dict[str, Any] = attrs.asdict(self)
        return found


def why(capture: Capture, name: str, *, top: int = 1) -> Why:
    """Return where the time of the ``top`` slowest calls of a name went, and of the typical one.

    A call's time is split at the edges of the slices within it, and at those of the states of its
    thread. Of equally long calls, earlier ones come first. Of a ``View``, its slices are the calls,
    and all of the capture says what happened meanwhile.

    Raises UsageError if the capture has no slices, or none of the name that ended.
    """
    checked_type(name, str, "name", "a str")
    checked_type(top, int, "top", "an int")
    if top < 1:
        raise UsageError(f"top is {top}, and must be at least 1", remedy="give 1 or more")
    if "slices" not in capture.schemas:
        raise UsageError(
            f"{capture.format} captures have no slices",
            path=capture.name,
            remedy=f"it has {', '.join(capture.tables)}",
        )
    chosen = capture.table("slices")
    names = chosen.array("name")  # texts may be known only once a column is made
    code = chosen.pool.code(name)
    of_name = np.flatnonzero(names == code) if code >= 0 else np.zeros(0, np.int64)
    if not of_name.size:
        raise _unknown_name(capture, chosen, name)
    lengths = chosen.array("dur")[of_name]
    ended = of_name[lengths >= 0]
    if not ended.size:
        raise UsageError(
            f"none of the {of_name.size:,} calls of {name!r} ended", path=capture.name,
            remedy="`fxf account` shows which names have calls that ended",
        )  # fmt: skip
    order = ended[np.argsort(-chosen.array("dur")[ended], kind="stable")]
    meanwhile = _Meanwhile(_whole(capture))
    rows = chosen.array("row")[order].tolist()
    typical = None
    if len(rows) > 1:
        # The slowest come first: of an even number, the lower one of the two in the middle.
        median = rows[len(rows) // 2]
        typical = meanwhile.call(median)
    return Why(
        name=name,
        count=len(rows),
        unfinished=int(of_name.size - ended.size),
        has_scheduling=meanwhile.has_scheduling,
        slowest=tuple(map(meanwhile.call, rows[:top])),
        typical=typical,
    )


def _whole(capture: Capture) -> Capture:
    """Return the capture that a view shows a part of."""
    while isinstance(capture, View):
        capture = capture.whole
    return capture


def _unknown_name(capture: Capture, slices: Table, name: str) -> UsageError:
    """Return the error for a name that no slice has."""
    codes, counts = np.unique(slices.array("name"), return_counts=True)
    most_first = codes[np.argsort(-counts, kind="stable")][:MOST_KNOWN]
    names = [slices.pool[code] for code in most_first.tolist() if code >= 0]
    remedy = "`fxf account` lists the names"
    if names:
        remedy += f"; the most frequent: {', '.join(names[:3])}"
    hint = did_you_mean(name, names)
    return UsageError(f"no slice is called {name!r}{hint}", path=capture.name, remedy=remedy)


# --- How it is found -----------------------------------------------------------------------------


class _Slices:
    """The slices of a whole capture, found by thread and time."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._ts = table.array("ts")
        self._dur = table.array("dur")
        self._thread = table.array("thread")
        self._parent = table.array("parent")
        self._is_async = table.array("kind") == ASYNC
        rows = np.flatnonzero(~self._is_async & (self._thread >= 0))
        by_thread = np.lexsort((table.array("depth")[rows], self._ts[rows], self._thread[rows]))
        self._by_thread = rows[by_thread]
        """Rows of slices that nest on threads, by thread, then by start, outer ones first."""
        self._threads = self._thread[self._by_thread]

    def thread(self, row: int) -> int:
        """Return the thread that a slice nests on; -1 for an asynchronous one."""
        return -1 if self._is_async[row] else int(self._thread[row])

    def times(self, row: int) -> tuple[int, int]:
        """Return when a slice that ended starts and ends."""
        start = int(self._ts[row])
        return start, start + int(self._dur[row])

    def name(self, row: int) -> str | None:
        """Return the name of a slice; None for row -1, and for one without a name."""
        if row < 0:
            return None
        code = int(self._table.array("name")[row])
        return self._table.pool[code] if code >= 0 else None

    def within(self, row: int) -> I64:
        """Return the rows of the slices within a slice, by start, outer ones first."""
        start, end = self.times(row)
        thread = self.thread(row)
        candidates = self._on(thread)
        if thread < 0:
            candidates = np.flatnonzero(self._is_async)
        starts = self._ts[candidates]
        candidates = candidates[(starts >= start) & (starts < end)]
        is_within = np.zeros(candidates.size, np.bool_)
        ancestors = self._parent[candidates]
        while (ancestors >= 0).any():  # one more level of nesting each time
            is_within |= ancestors == row
            ancestors = np.where(ancestors >= 0, self._parent[ancestors], -1)
        rows = candidates[is_within]
        return rows[np.lexsort((self._table.array("depth")[rows], self._ts[rows]))]

    def edges(self, within: I64) -> I64:
        """Return the times at which slices begin or end."""
        starts = self._ts[within]
        return np.concatenate((starts, starts + self._dur[within]))

    def innermost(self, row: int, within: I64, moments: I64) -> I64:
        """Return the innermost slice at each moment of a slice, among those within it.

        One that never ended goes on until the end of the slice that encloses it.
        """
        _, call_end = self.times(row)
        rows = np.full(moments.size, row)
        if within.size:
            latest = np.searchsorted(self._ts[within], moments, "right") - 1
            rows = np.where(latest >= 0, within[latest], row)
        # The slice that began last may be over: then the one around it is looked at.
        while True:
            dur = self._dur[rows]
            ends = np.where(dur < 0, call_end, self._ts[rows] + dur)
            is_over = (ends <= moments) & (rows != row)
            if not is_over.any():
                return rows
            rows = np.where(is_over, self._parent[rows], rows)

    def around(self, thread: int, moment: int) -> int:
        """Return the innermost slice that a thread was in just before a moment; -1 for none.

        Of a thread that was in none, it is the one that begins at the moment.
        """
        own = self._on(thread)
        for ns in (moment - 1, moment):
            latest = int(np.searchsorted(self._ts[own], ns, "right")) - 1
            if latest < 0:
                continue
            row = int(own[latest])
            while row >= 0 and 0 <= self._dur[row] <= ns - self._ts[row]:  # it is over
                row = int(self._parent[row])
            if row >= 0:
                return row
        return -1

    def _on(self, thread: int) -> I64:
        first, last = np.searchsorted(self._threads, [thread, thread + 1]).tolist()
        return self._by_thread[first:last]


class _Labels(dict[int, str]):
    """What threads are called, by id: process and thread, by name or else by koid."""

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self._threads = Threads(capture.schemas, capture.table)
        self._pool = capture.strings

    def __missing__(self, thread: int) -> str:
        row = self._threads.row(thread)
        if row < 0:
            return "no thread" if thread < 0 else f"thread {thread}"
        pid = int(self._threads.pids[row])
        tid = int(self._threads.tids[row])
        if not tid:
            return IDLE
        process = self._pool.text(int(self._threads.process_names[row])) or str(pid)
        name = self._pool.text(int(self._threads.names[row])) or str(tid)
        self[thread] = f"{process}/{name}"
        return self[thread]

    def koids(self, thread: int) -> tuple[int, int] | None:
        """Return the ids of the process and of the thread; None for an unknown thread."""
        row = self._threads.row(thread)
        if row < 0:
            return None
        return int(self._threads.pids[row]), int(self._threads.tids[row])

    def is_idle(self, thread: int) -> bool:
        """Return whether it stands for a CPU that has nothing to run."""
        return self[thread] == IDLE


@attrs.frozen
class _Wakeup:
    """What ended a wait."""

    ns: int
    thread: int
    """The thread that sent it; -1 if unknown."""
    is_inferred: bool


class _Scheduling:
    """The states of all threads, and what ended each."""

    def __init__(self, capture: Capture, sched: Table) -> None:
        self.states = ThreadStates.of(sched)
        self.cpus = CpuRuns(sched)
        self._wakers = Wakers(capture)
        self._thread_of_tid: dict[int, int] = {}
        for thread, tid in capture.table("threads").tuples("id", "tid"):
            self._thread_of_tid.setdefault(tid, thread)

    def knows(self, thread: int) -> bool:
        """Return whether any switch or wakeup names a thread."""
        own = self.states.of_thread(thread)
        return own.stop > own.start

    def next_change(self, place: int) -> int:
        """Return the index of the state that follows a state of a thread; -1 for its last one."""
        thread = self.states.thread
        follows = place + 1 < thread.size and thread[place + 1] == thread[place]
        return place + 1 if follows else -1

    def wakeup_after(self, place: int) -> _Wakeup | None:
        """Return the wakeup that ended a wait; None if no wakeup did."""
        following = self.next_change(place)
        if following < 0 or self.states.state[following] != IS_RUNNABLE:
            return None
        row = int(self.states.row[following])
        ns = int(self.states.ts[following])
        named = int(self._wakers.of(np.array([row]))[0])
        if named >= 0:
            waker = self._thread_of_tid.get(int(self._wakers.tids[named]), -1)
            return _Wakeup(ns, waker, is_inferred=False)
        return _Wakeup(ns, self.cpus.thread_before(row), is_inferred=True)


class _Meanwhile:
    """The tables of a capture, arranged to say what happened during calls."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._slices = _Slices(capture.table("slices"))
        self._labels = _Labels(capture)
        self._scheduling: _Scheduling | None = None
        if "sched" in capture.schemas:
            sched = capture.table("sched")
            if len(sched):
                self._scheduling = _Scheduling(capture, sched)

    @property
    def has_scheduling(self) -> bool:
        """Whether the capture has context switches or wakeups."""
        return self._scheduling is not None

    def call(self, row: int) -> Call:
        """Return where the time of the call in a row of `slices` went."""
        thread = self._slices.thread(row)
        start, end = self._slices.times(row)
        within = self._slices.within(row)
        scheduling = self._scheduling
        if scheduling is not None and not scheduling.knows(thread):
            scheduling = None
        if scheduling is None:
            parts = self._elapsed(row, within)
        else:
            parts = self._by_state(row, within, thread, scheduling)
        lines, line_count = self._lines(thread, start, end)
        return Call(
            row=row,
            thread=self._labels[thread],
            start_ns=start,
            dur_ns=end - start,
            has_states=scheduling is not None,
            parts=tuple(sorted(parts, key=lambda part: -part.ns)),
            flows=tuple(self._flows(row, within, thread)),
            lines=lines,
            line_count=line_count,
        )

    # --- Time ------------------------------------------------------------------------------------

    def _elapsed(self, row: int, within: I64) -> list[Part]:
        """Return the time of a call by the innermost slice alone."""
        moments, spent = self._pieces(row, self._slices.edges(within))
        sums: dict[str | None, int] = {}
        innermost = self._slices.innermost(row, within, moments).tolist()
        for slice_row, ns in zip(innermost, spent.tolist(), strict=True):
            name = self._name_within(slice_row, row)
            sums[name] = sums.get(name, 0) + ns
        return [Part(state=ELAPSED, slice=name, ns=ns) for name, ns in sums.items()]

    def _by_state(self, row: int, within: I64, thread: int, scheduling: _Scheduling) -> list[Part]:
        """Return the time of a call by state of its thread, innermost slice and reason."""
        own = scheduling.states.of_thread(thread)
        edges = np.concatenate((self._slices.edges(within), scheduling.states.ts[own]))
        moments, spent = self._pieces(row, edges)
        places = scheduling.states.at(thread, moments)
        innermost = self._slices.innermost(row, within, moments)
        parts: dict[Part, list[Part]] = {}
        pieces = zip(
            moments.tolist(), spent.tolist(), places.tolist(), innermost.tolist(), strict=True
        )
        for moment, ns, place, slice_row in pieces:
            name = self._name_within(slice_row, row)
            for part in self._reasons(scheduling, place, name, moment, moment + ns):
                parts.setdefault(part, []).append(part)
        return [
            # What led to the longest of several waits stands for all of them.
            attrs.evolve(max(same, key=lambda part: part.ns), ns=sum(part.ns for part in same))
            for same in parts.values()
        ]

    def _pieces(self, row: int, edges: I64) -> tuple[I64, I64]:
        """Cut the time of a call at edges; return when the pieces begin, and their nanoseconds."""
        start, end = self._slices.times(row)
        inside = edges[(edges > start) & (edges < end)]
        begins = np.unique(np.append(inside, start))
        return begins, np.diff(begins, append=end)

    def _name_within(self, slice_row: int, call_row: int) -> str | None:
        if slice_row == call_row:
            return None
        return self._slices.name(slice_row) or "(no name)"

    def _reasons(
        self, scheduling: _Scheduling, place: int, name: str | None, start: int, end: int
    ) -> Iterator[Part]:
        """Yield the parts of a piece of a call, in which its thread has one state in one slice."""
        if place < 0:
            yield Part(state=UNACCOUNTED, slice=name, ns=end - start)
            return
        state = int(scheduling.states.state[place])
        if state == IS_RUNNING:
            yield Part(state=RUNNING, slice=name, ns=end - start)
        elif state == IS_RUNNABLE:
            yield from self._holders(scheduling, place, name, start, end)
        else:
            yield self._wait(scheduling, place, name, start, end)

    def _holders(
        self, scheduling: _Scheduling, place: int, name: str | None, start: int, end: int
    ) -> Iterator[Part]:
        """Yield the time that a thread could run, by who held the CPU on which it ran next."""
        following = scheduling.next_change(place)
        if following < 0 or scheduling.states.state[following] != IS_RUNNING:
            yield Part(state=RUNNABLE, slice=name, ns=end - start)
            return
        cpu = scheduling.cpus.cpu(int(scheduling.states.row[following]))
        for holder, ns in scheduling.cpus.between(cpu, start, end):
            label = self._labels[holder] if holder >= 0 else None
            yield Part(state=RUNNABLE, slice=name, thread=label, cpu=cpu, ns=ns)

    def _wait(
        self, scheduling: _Scheduling, place: int, name: str | None, start: int, end: int
    ) -> Part:
        """Return the time that a thread waited, with the wakeup that ended it."""
        state = state_name(int(scheduling.states.state[place]))
        wakeup = scheduling.wakeup_after(place)
        if wakeup is None or wakeup.thread < 0:
            return Part(state=state, slice=name, ns=end - start)
        waker_row = self._slices.around(wakeup.thread, wakeup.ns)
        return Part(
            state=state,
            slice=name,
            thread=self._labels[wakeup.thread],
            thread_slice=self._slices.name(waker_row),
            is_inferred=wakeup.is_inferred,
            ns=end - start,
            steps=tuple(self._steps(scheduling, wakeup, start)),
        )

    def _steps(self, scheduling: _Scheduling, wakeup: _Wakeup, since: int) -> Iterator[Step]:
        """Yield what led to a wakeup, backwards in time, as far as the wait began before it.

        The thread that sent it ran since its own last wait, which another one ended, and so on. It
        ends at a thread that did not wait meanwhile, at one that came before, and after MOST_STEPS.
        """
        states = scheduling.states
        followed: set[int] = set()
        count = 0
        until: _Wakeup | None = wakeup
        while until is not None and until.thread >= 0 and count < MOST_STEPS:
            thread = until.thread
            if thread in followed or self._labels.is_idle(thread):
                return
            followed.add(thread)
            # It runs or could run from the end of its last wait on, as far as that is meanwhile.
            wait = self._last_wait(states, thread, until.ns)
            ran_since = since
            if wait >= 0:
                ran_since = max(int(states.ts[wait + 1]), since)
            if until.ns > ran_since:
                slice_row = self._slices.around(thread, until.ns)
                yield Step(
                    thread=self._labels[thread],
                    slice=self._slices.name(slice_row),
                    state=RUNNING,
                    ns=until.ns - ran_since,
                )
                count += 1
            if ran_since <= since:
                return
            until = scheduling.wakeup_after(wait)
            waker = None
            is_inferred = False
            if until is not None and until.thread >= 0:
                waker = self._labels[until.thread]
                is_inferred = until.is_inferred
            yield Step(
                thread=self._labels[thread],
                slice=self._slices.name(self._slices.around(thread, ran_since)),
                state=state_name(int(states.state[wait])),
                ns=ran_since - max(int(states.ts[wait]), since),
                waker=waker,
                is_inferred=is_inferred,
            )
            count += 1

    @staticmethod
    def _last_wait(states: ThreadStates, thread: int, moment: int) -> int:
        """Return the index of the last wait of a thread that ended by a moment; -1 for none."""
        own = states.of_thread(thread)
        place = own.start + int(np.searchsorted(states.ts[own], moment, "right")) - 1
        # A wait in which the thread still is has not ended; it may have begun at the moment.
        place -= 1
        while place >= own.start and states.state[place] < 0:
            place -= 1
        return place if place >= own.start else -1

    # --- What came from elsewhere, and what it said ----------------------------------------------

    def _flows(self, row: int, within: I64, thread: int) -> Iterator[Flow]:
        """Yield the flows that come into a call, or into a slice within it, from other threads."""
        if "flows" not in self._capture.schemas:
            return
        flows = self._capture.table("flows")
        slices = flows.array("slice")
        ts = flows.array("ts")
        # Points as their own numbers, where they lie in a slice.
        numbers = np.where(slices >= 0, np.arange(slices.size), -1)
        columns = {
            "ts": ts,
            "slice": numbers,
            "id": flows.array("id"),
            "phase": flows.array("phase"),
        }
        points, flow, _ = flow_points(columns)
        by_flow = np.argsort(flow, kind="stable")  # each in order of time
        points = points[by_flow]
        flow = flow[by_flow]
        sent = points[:-1]
        arrived = points[1:]
        comes_in = (flow[1:] == flow[:-1]) & np.isin(slices[arrived], np.append(within, row))
        comes_in &= flows.array("thread")[sent] != thread
        sent = sent[comes_in]
        arrived = arrived[comes_in]
        by_arrival = np.argsort(ts[arrived], kind="stable")
        for sent_point, arrived_point in zip(
            sent[by_arrival].tolist(), arrived[by_arrival].tolist(), strict=True
        ):
            sender = int(flows.array("thread")[sent_point])
            yield Flow(
                thread=self._labels[sender],
                slice=self._slices.name(int(slices[sent_point])),
                sent_ns=int(ts[sent_point]),
                arrived_ns=int(ts[arrived_point]),
            )

    def _lines(self, thread: int, start: int, end: int) -> tuple[tuple[Line, ...], int]:
        """Return the first log lines that a thread wrote during a call, and their number."""
        koids = self._labels.koids(thread)
        if koids is None or "logs" not in self._capture.schemas:
            return (), 0
        logs = self._capture.table("logs")
        pid, tid = koids
        ts = logs.array("ts")
        is_own = (logs.array("pid") == pid) & (logs.array("tid") == tid)
        rows = np.flatnonzero(is_own & (ts >= start) & (ts < end))
        messages = logs.texts("message")
        severities = logs.texts("severity_name")
        lines = [
            Line(int(ts[row]), severities[row], messages[row]) for row in rows[:MOST_LINES].tolist()
        ]
        return tuple(lines), int(rows.size)
