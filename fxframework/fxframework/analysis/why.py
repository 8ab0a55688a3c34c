"""Why: where the time of the slowest calls of a name went, beside a typical call of the name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.scheduling import (
    IS_RUNNABLE,
    IS_RUNNING,
    CpuRuns,
    ThreadStates,
    state_name,
)
from fxframework.analysis.spans import flow_steps
from fxframework.errors import UsageError, checked_type, did_you_mean
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import outermost, run_of
from fxframework.kit.shown import printable
from fxframework.model.capture import Capture, under_views
from fxframework.model.rows import check_slices
from fxframework.model.schema import ASYNC, RUNNABLE, RUNNING
from fxframework.model.table import Table
from fxframework.model.tasks import tasks

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
NO_THREAD = -1
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
    """``running`` or ``runnable`` until it sent the wakeup, or the state in which it waited."""
    ns: int
    waker: str | None = None
    """Of a wait: the thread that ended it; None if that is not known."""
    is_inferred: bool = False
    """Whether the waker is inferred from what ran on the CPU of the wakeup."""
    cpu: int | None = None
    """Of a runnable thread: the CPU on which it ran next."""
    holder: str | None = None
    """Of a runnable thread: the one that held this CPU; None if that is not known."""


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
    severity: str | None
    """Its name; None of a line without one, as in logs of a trace."""
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
        document: dict[str, Any] = attrs.asdict(self)
        return document


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
    check_slices(capture)
    if capture.has_summed_calls:
        raise UsageError(
            f"a slice of {capture.format} captures is the sum of several calls, not one of them",
            path=capture.name,
            remedy="`fxf account` and `fxf stack` show the sums",
        )
    slices = capture.table("slices")
    calls = np.flatnonzero(_are_called(slices, name))
    if not calls.size:
        raise _unknown_name(capture, slices, name)
    ended = calls[slices.array("dur")[calls] >= 0]
    if not ended.size:
        raise UsageError(
            f"none of the {calls.size:,} calls of {name!r} ended",
            path=capture.name,
            remedy="`fxf account` shows which names have calls that ended",
        )
    slowest_first = ended[np.argsort(-slices.array("dur")[ended], kind="stable")]
    rows = slices.array("row")[slowest_first].tolist()
    meanwhile = _Meanwhile(under_views(capture))
    typical = None
    if len(rows) > 1:
        typical = meanwhile.call(rows[len(rows) // 2])
    return Why(
        name=name,
        count=len(rows),
        unfinished=int(calls.size - ended.size),
        has_scheduling=meanwhile.has_scheduling,
        slowest=tuple(map(meanwhile.call, rows[:top])),
        typical=typical,
    )


def _are_called(slices: Table, name: str) -> NDArray[np.bool_]:
    """Return which slices have a name, of shape (n,); if none has, those whose name prints so.

    A name with a line break, or with bytes that are not UTF-8, can only be given as it is printed.
    """
    names = slices.array("name")  # texts may be known only once a column is made
    code = slices.pool.code(name)
    are_called: NDArray[np.bool_] = names == code
    if code >= 0 and are_called.any():
        return are_called
    codes = [code for code in np.unique(names).tolist() if code >= 0]
    printed_so = [code for code in codes if printable(slices.pool[code]) == name]
    return np.isin(names, printed_so)


def _unknown_name(capture: Capture, slices: Table, name: str) -> UsageError:
    """Return the error for a name that no slice has."""
    codes, counts = np.unique(slices.array("name"), return_counts=True)
    most_first = codes[np.argsort(-counts, kind="stable")][:MOST_KNOWN]
    names = [text for text in slices.pool.take(most_first) if text]
    remedy = "there are no slices at all, or none in the selected part"
    if names:
        remedy = f"`fxf account` lists the names; the most frequent: {', '.join(names[:3])}"
    where = ""
    if under_views(capture) is not capture:
        where = " in the selected part"
    message = f"no slice{where} is called {name!r}{did_you_mean(name, names)}"
    return UsageError(message, path=capture.name, remedy=remedy)


# --- Slices of threads ----------------------------------------------------------------------------


@attrs.frozen(eq=False)
class _Nesting:
    """When the innermost of some slices that nest changes, as columns of shape (n,)."""

    ts: I64
    """The times of changes, ascending."""
    row: I64
    """The innermost slice from then on; -1 for none."""

    def at(self, moment: int) -> int:
        """Return the innermost slice at a moment; -1 for none."""
        index = int(np.searchsorted(self.ts, moment, "right")) - 1
        if index < 0:
            return -1
        return int(self.row[index])


class _Slices:
    """The slices of a whole capture, found by thread and time."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._ts = table.array("ts")
        self._dur = table.array("dur")
        self._depth = table.array("depth")
        self._parent = table.array("parent")
        self._is_async = table.array("kind") == ASYNC
        self._thread = np.where(self._is_async, NO_THREAD, table.array("thread"))
        self._by_thread = np.argsort(self._thread, kind="stable")
        self._sorted_threads = self._thread[self._by_thread]
        self._nestings: dict[int, _Nesting] = {}

    def thread(self, row: int) -> int:
        """Return the thread that a slice nests on; NO_THREAD for an asynchronous one."""
        return int(self._thread[row])

    def times(self, row: int) -> tuple[int, int]:
        """Return when a slice that ended starts and ends."""
        start = int(self._ts[row])
        return start, start + int(self._dur[row])

    def name(self, row: int) -> str | None:
        """Return the name of a slice; None for row -1, and for one without a name."""
        if row < 0:
            return None
        code = int(self._table.array("name")[row])
        if code < 0:
            return None
        return self._table.pool[code]

    def are_within(self, rows: I64, row: int) -> NDArray[np.bool_]:
        """Return which slices are within a slice of a thread, or are that slice."""
        start, end = self.times(row)
        same_thread = self._thread[rows] == self._thread[row]
        is_deeper = self._depth[rows] > self._depth[row]
        starts = self._ts[rows]
        is_meanwhile = (starts >= start) & (starts < end)
        is_inside = same_thread & is_deeper & is_meanwhile
        within: NDArray[np.bool_] = is_inside | (rows == row)
        return within

    def nesting(self, row: int) -> _Nesting:
        """Return how slices nest within a slice, from its start to its end."""
        start, end = self.times(row)
        thread = self.thread(row)
        if thread == NO_THREAD:
            whole = self._nesting_of(self._operation(row))
        else:
            whole = self._nesting_of_thread(thread)
        first = int(np.searchsorted(whole.ts, start, "right"))
        stop = int(np.searchsorted(whole.ts, end, "left"))
        changes = np.append(start, whole.ts[first:stop])
        innermost = np.append(whole.at(start), whole.row[first:stop])
        # Slices that overlap without nesting may leave none: the time is that of the slice itself.
        innermost[innermost < 0] = row
        return _Nesting(changes, innermost)

    def around(self, thread: int, moment: int) -> int:
        """Return the innermost slice that a thread was in just before a moment; -1 for none.

        Of a thread that was in none, it is the one that begins at the moment.
        """
        nesting = self._nesting_of_thread(thread)
        row = nesting.at(moment - 1)
        if row < 0:
            row = nesting.at(moment)
        return row

    def _nesting_of_thread(self, thread: int) -> _Nesting:
        if thread not in self._nestings:
            own_rows = self._by_thread[run_of(self._sorted_threads, thread)]
            self._nestings[thread] = self._nesting_of(own_rows)
        return self._nestings[thread]

    def _nesting_of(self, rows: I64) -> _Nesting:
        """Return how slices nest: one that begins is the innermost, at its end that around it is.

        One that never ended goes on until the end of the slice that encloses it.
        """
        begun = rows[self._dur[rows] != 0]
        ended = rows[self._dur[rows] > 0]
        ends = self._ts[ended] + self._dur[ended]
        times = np.concatenate((ends, self._ts[begun]))
        innermost = np.concatenate((self._parent[ended], begun))
        # At one time ends come before begins, inner ends before outer ones, outer begins first.
        is_begin = np.repeat([False, True], [ended.size, begun.size])
        levels = np.concatenate((-self._depth[ended], self._depth[begun]))
        order = np.lexsort((levels, is_begin, times))
        return _Nesting(times[order], innermost[order])

    def _operation(self, row: int) -> I64:
        """Return the rows of an asynchronous slice and of those within it."""
        rows = np.flatnonzero(self._is_async)
        above = np.searchsorted(rows, self._parent[rows])
        has_parent = self._parent[rows] >= 0
        own = int(np.searchsorted(rows, row))
        places = np.arange(rows.size)
        above = np.where(has_parent & (places != own), above, places)
        within: I64 = rows[outermost(above) == own]
        return within


# --- Threads and CPUs -----------------------------------------------------------------------------


class _Labels(dict[int, str]):
    """What threads are called, by id: process and thread, by name or else by koid."""

    def __init__(self, capture: Capture) -> None:
        super().__init__()
        self.tasks = tasks(capture)

    def __missing__(self, thread: int) -> str:
        if thread < 0:
            return "no thread"
        task = self.tasks.get(thread)
        if task is None:
            return f"thread {thread}"
        self[thread] = task.label if task.tid else IDLE
        return self[thread]

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
        self._wakers = sched.array("waker")
        indexes = np.arange(self.states.state.size)
        self._latest_wait = np.maximum.accumulate(np.where(self.states.state >= 0, indexes, -1))
        """For each state the index of the last wait up to it, on whatever thread."""
        threads = capture.table("threads")
        ids_by_tid = zip(threads.array("tid").tolist(), threads.array("id").tolist(), strict=True)
        # Of several threads with one koid, the first one counts.
        self._thread_of_tid = dict(reversed(list(ids_by_tid)))

    def knows(self, thread: int) -> bool:
        """Return whether any switch or wakeup names a thread."""
        own = self.states.of_thread(thread)
        return bool(own.stop > own.start)

    def state_after(self, index: int) -> int:
        """Return the index of the state that follows one of a thread; -1 for its last one."""
        thread = self.states.thread
        following = index + 1
        if following == thread.size or thread[following] != thread[index]:
            return -1
        return following

    def wakeup_after(self, index: int) -> _Wakeup | None:
        """Return the wakeup that ended a wait; None if no wakeup did."""
        following = self.state_after(index)
        if following < 0 or self.states.state[following] != IS_RUNNABLE:
            return None
        row = int(self.states.row[following])
        ns = int(self.states.ts[following])
        waker = int(self._wakers[row])
        if waker:
            thread = self._thread_of_tid.get(waker, -1)
            return _Wakeup(ns, thread, is_inferred=False)
        return _Wakeup(ns, self.cpus.thread_before(row), is_inferred=True)

    def last_wait(self, thread: int, moment: int) -> int:
        """Return the index of the last wait of a thread that ended by a moment; -1 for none."""
        own = self.states.of_thread(thread)
        latest = own.start + int(np.searchsorted(self.states.ts[own], moment, "right")) - 1
        # A wait in which the thread still is has not ended; it may have begun at the moment.
        ended = latest - 1
        if ended < own.start or self._latest_wait[ended] < own.start:
            return -1
        return int(self._latest_wait[ended])


# --- Calls ----------------------------------------------------------------------------------------


class _Meanwhile:
    """The tables of a capture, arranged to say what happened during calls."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._slices = _Slices(capture.table("slices"))
        self._labels = _Labels(capture)
        self._scheduling: _Scheduling | None = None
        if "sched" in capture.schemas and len(capture.table("sched")):
            self._scheduling = _Scheduling(capture, capture.table("sched"))

    @property
    def has_scheduling(self) -> bool:
        """Whether the capture has context switches or wakeups."""
        return self._scheduling is not None

    def call(self, row: int) -> Call:
        """Return where the time of the call in a row of `slices` went."""
        thread = self._slices.thread(row)
        start, end = self._slices.times(row)
        scheduling = self._scheduling
        if scheduling is None or not scheduling.knows(thread):
            scheduling = None
            parts = self._elapsed(row)
        else:
            parts = _Parts(row, self._slices, self._labels, scheduling).all()
        lines, line_count = self._lines(thread, start, end)
        return Call(
            row=row,
            thread=self._labels[thread],
            start_ns=start,
            dur_ns=end - start,
            has_states=scheduling is not None,
            parts=tuple(sorted(parts, key=lambda part: -part.ns)),
            flows=tuple(self._flows(row, thread)),
            lines=lines,
            line_count=line_count,
        )

    def _elapsed(self, row: int) -> list[Part]:
        """Return the time of a call by the innermost slice alone."""
        nesting = self._slices.nesting(row)
        _, end = self._slices.times(row)
        spent = np.diff(nesting.ts, append=end)
        ns_of_name: dict[str | None, int] = {}
        for slice_row, ns in zip(nesting.row.tolist(), spent.tolist(), strict=True):
            name = _name_within(self._slices, slice_row, row)
            ns_of_name[name] = ns_of_name.get(name, 0) + ns
        return [Part(state=ELAPSED, slice=name, ns=ns) for name, ns in ns_of_name.items()]

    def _flows(self, row: int, thread: int) -> Iterator[Flow]:
        """Yield the flows that come into a call, or into a slice within it, from other threads."""
        if "flows" not in self._capture.schemas:
            return
        flows = self._capture.table("flows")
        slices = flows.array("slice")
        ts = flows.array("ts")
        sent, arrived = flow_steps(flows)
        comes_in = self._slices.are_within(slices[arrived], row)
        comes_in &= flows.array("thread")[sent] != thread
        sent = sent[comes_in]
        arrived = arrived[comes_in]
        for index in np.argsort(ts[arrived], kind="stable").tolist():
            sent_row = sent[index]
            sender = int(flows.array("thread")[sent_row])
            yield Flow(
                thread=self._labels[sender],
                slice=self._slices.name(int(slices[sent_row])),
                sent_ns=int(ts[sent_row]),
                arrived_ns=int(ts[arrived[index]]),
            )

    def _lines(self, thread: int, start: int, end: int) -> tuple[tuple[Line, ...], int]:
        """Return the first log lines that a thread wrote during a call, and their number."""
        task = self._labels.tasks.get(thread)
        if task is None or "logs" not in self._capture.schemas:
            return (), 0
        logs = self._capture.table("logs")
        ts = logs.array("ts")
        is_own = (logs.array("pid") == task.pid) & (logs.array("tid") == task.tid)
        is_meanwhile = (ts >= start) & (ts < end)
        rows = np.flatnonzero(is_own & is_meanwhile)
        messages = logs.texts("message")
        severities = logs.texts("severity_name")
        first_rows = rows[:MOST_LINES].tolist()
        lines = [Line(int(ts[row]), severities[row], messages[row] or "") for row in first_rows]
        return tuple(lines), int(rows.size)


def _name_within(slices: _Slices, slice_row: int, call_row: int) -> str | None:
    """Return the name of a slice within a call; None if it is the call itself."""
    if slice_row == call_row:
        return None
    return slices.name(slice_row) or "(no name)"


class _Parts:
    """Splits the time of a call by state of its thread, innermost slice, and reason."""

    def __init__(self, row: int, slices: _Slices, labels: _Labels, scheduling: _Scheduling) -> None:
        self._row = row
        self._slices = slices
        self._labels = labels
        self._scheduling = scheduling
        self._states = scheduling.states

    def all(self) -> list[Part]:
        """Return the parts; what led to the longest of several equal waits stands for all."""
        thread = self._slices.thread(self._row)
        start, end = self._slices.times(self._row)
        nesting = self._slices.nesting(self._row)
        changes = self._states.changes(thread, start, end)
        begins = np.unique(np.concatenate((nesting.ts, changes)))
        place_in_nesting = np.searchsorted(nesting.ts, begins, "right") - 1
        innermost = nesting.row[place_in_nesting]
        ends = np.append(begins[1:], end)
        states = self._states.at(thread, begins)
        columns = (begins, ends, states, innermost)
        pieces = zip(*(column.tolist() for column in columns), strict=True)
        equal_parts: dict[Part, list[Part]] = {}
        for begin, until, state_index, slice_row in pieces:
            name = _name_within(self._slices, slice_row, self._row)
            for part in self._reasons(state_index, name, begin, until):
                equal_parts.setdefault(part, []).append(part)
        parts = []
        for same in equal_parts.values():
            longest = max(same, key=lambda part: part.ns)
            ns_together = sum(part.ns for part in same)
            parts.append(attrs.evolve(longest, ns=ns_together))
        return parts

    def _reasons(self, index: int, name: str | None, start: int, end: int) -> Iterator[Part]:
        """Yield the parts of a piece of a call, in which its thread has one state in one slice."""
        if index < 0:
            yield Part(state=UNACCOUNTED, slice=name, ns=end - start)
            return
        state = int(self._states.state[index])
        if state == IS_RUNNING:
            yield Part(state=RUNNING, slice=name, ns=end - start)
        elif state == IS_RUNNABLE:
            yield from self._holders(index, name, start, end)
        else:
            yield self._wait(index, name, start, end)

    def _holders(self, index: int, name: str | None, start: int, end: int) -> Iterator[Part]:
        """Yield the time that a thread could run, by what held the CPU on which it ran next."""
        following = self._scheduling.state_after(index)
        if following < 0 or self._states.state[following] != IS_RUNNING:
            yield Part(state=RUNNABLE, slice=name, ns=end - start)
            return
        cpus = self._scheduling.cpus
        cpu = cpus.cpu(int(self._states.row[following]))
        for holder, ns in cpus.between(cpu, start, end):
            label = None
            if holder >= 0:
                label = self._labels[holder]
            yield Part(state=RUNNABLE, slice=name, thread=label, cpu=cpu, ns=ns)

    def _wait(self, index: int, name: str | None, start: int, end: int) -> Part:
        """Return the time that a thread waited, with the wakeup that ended it."""
        state = state_name(int(self._states.state[index]))
        wakeup = self._scheduling.wakeup_after(index)
        if wakeup is None or wakeup.thread < 0:
            return Part(state=state, slice=name, ns=end - start)
        return Part(
            state=state,
            slice=name,
            thread=self._labels[wakeup.thread],
            thread_slice=self._slices.name(self._slices.around(wakeup.thread, wakeup.ns)),
            is_inferred=wakeup.is_inferred,
            ns=end - start,
            steps=tuple(itertools.islice(self._steps(wakeup, start), MOST_STEPS)),
        )

    def _steps(self, wakeup: _Wakeup, since: int) -> Iterator[Step]:
        """Yield what led to a wakeup, backwards in time, as far as the wait began before it.

        The thread that sent it ran since its own last wait, which another one ended, and so on. It
        ends at a thread that did not wait meanwhile, and at one that came before.
        """
        followed: set[int] = set()
        cause: _Wakeup | None = wakeup
        while cause is not None and cause.thread >= 0:
            thread = cause.thread
            if thread in followed or self._labels.is_idle(thread):
                return
            followed.add(thread)
            wait = self._scheduling.last_wait(thread, cause.ns)
            ran_since = since
            if wait >= 0:
                ran_since = max(int(self._states.ts[wait + 1]), since)
            yield from self._until_wakeup(thread, ran_since, cause.ns)
            if ran_since == since:
                return
            cause = self._scheduling.wakeup_after(wait)
            state = state_name(int(self._states.state[wait]))
            waited_since = max(int(self._states.ts[wait]), since)
            step = self._step(thread, state, waited_since, ran_since)
            if cause is not None and cause.thread >= 0:
                waker = self._labels[cause.thread]
                step = attrs.evolve(step, waker=waker, is_inferred=cause.is_inferred)
            yield step

    def _until_wakeup(self, thread: int, start: int, end: int) -> Iterator[Step]:
        """Yield how long a thread ran before it sent a wakeup, and how long others held its CPU."""
        changes = self._states.changes(thread, start, end)
        begins = np.append(start, changes)
        ends = np.append(changes, end)
        states = self._states.at(thread, begins)
        pieces = zip(begins.tolist(), ends.tolist(), states.tolist(), strict=True)
        ran = end - start
        held: dict[Part, int] = {}
        for begin, until, index in pieces:
            if index < 0 or self._states.state[index] != IS_RUNNABLE:
                continue
            ran -= until - begin
            name = self._slices.name(self._slices.around(thread, begin))
            for part in self._holders(index, name, begin, until):
                held[part] = held.get(part, 0) + part.ns
        if ran:
            yield self._step(thread, RUNNING, end - ran, end)
        for part, ns in held.items():
            label = self._labels[thread]
            yield Step(label, part.slice, RUNNABLE, ns, cpu=part.cpu, holder=part.thread)

    def _step(self, thread: int, state: str, start: int, end: int) -> Step:
        slice_name = self._slices.name(self._slices.around(thread, end))
        return Step(self._labels[thread], slice_name, state, end - start)
