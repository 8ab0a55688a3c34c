"""Scheduling: which state each thread was in, and which thread each CPU ran."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I32, I64
from fxframework.kernels.sorting import dense, run_of
from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC, RUNNABLE, RUNNING, THREAD_STATES, WAKEUP
from fxframework.model.table import Table

IS_RUNNING = -1
IS_RUNNABLE = -2
"""Numbers of these states, beside those of THREAD_STATES that threads have when they are left."""
LEFT_READY = next(number for number, name in THREAD_STATES.items() if name == RUNNING)
"""The recorded state of a thread that was left although it could have run on."""
Waits = Mapping[tuple[bytes, str], int]
"""Nanoseconds in slices, by name of the slice and state of its thread."""


def state_name(state: int) -> str:
    """Return the name of the number of a state."""
    names = {**THREAD_STATES, IS_RUNNING: RUNNING, IS_RUNNABLE: RUNNABLE}
    return names.get(state, f"state {state}")


@attrs.frozen(eq=False)
class ThreadStates:
    """The states that threads enter, as columns of shape (n,), sorted by thread and time.

    A thread runs from the switch to it until the switch away from it, which says its new state. One
    that is left while it could run is runnable, as is one after a wakeup; wakeups of threads that
    run or could run change nothing. States of one time are in the order of the rows.
    """

    thread: I32
    """Id in `threads`."""
    ts: I64
    """When it enters the state, in nanoseconds."""
    state: NDArray[np.int16]
    """Number of the state (``state_name``)."""
    row: I64
    """Index of the switch or wakeup in `sched`."""

    @classmethod
    def of(cls, sched: Table) -> ThreadStates:
        """Return the states of threads by a table `sched`."""
        is_wakeup = sched.array("kind") == WAKEUP
        recorded = sched.array("prev_state")
        recorded_states = recorded.astype(np.int16)
        state_left = np.where(recorded == LEFT_READY, IS_RUNNABLE, recorded_states)
        state_next = np.where(is_wakeup, IS_RUNNABLE, IS_RUNNING)
        # Each row may change two threads: the one that is left, then the next one.
        threads = np.column_stack((sched.array("prev"), sched.array("next")))
        threads[is_wakeup, 0] = -1
        states = np.column_stack((state_left, state_next)).astype(np.int16).reshape(-1)
        times = np.repeat(sched.array("ts"), 2)
        changes = np.flatnonzero(threads.reshape(-1) >= 0)
        thread = threads.reshape(-1)[changes]
        order = np.lexsort((changes, times[changes], thread))
        changes = changes[order]
        thread = thread[order]
        state = states[changes]
        row = changes // 2
        # The states below 0 are running and runnable: a wakeup changes neither.
        could_run = np.zeros(thread.size, np.bool_)
        is_same_thread = thread[1:] == thread[:-1]
        could_run[1:] = is_same_thread & (state[:-1] < 0)
        counts = ~(is_wakeup[row] & could_run)
        ts = times[changes][counts]
        return cls(thread[counts], ts, state[counts], row[counts])

    def of_thread(self, thread: int) -> slice:
        """Return the indices of the states of one thread."""
        return run_of(self.thread, thread)

    def changes(self, thread: int, start: int, end: int) -> I64:
        """Return the times (ns) at which a thread's states begin, strictly between two times."""
        ts = self.ts[self.of_thread(thread)]
        return ts[(ts > start) & (ts < end)]

    def at(self, thread: int, ts: I64) -> I64:
        """Return the index of a thread's state at each time; -1 before its first one."""
        own = self.of_thread(thread)
        place = np.searchsorted(self.ts[own], ts, "right") - 1
        return np.where(place >= 0, own.start + place, -1)

    def ns_in_state(self, state: int, of_thread: slice, moments: I64) -> NDArray[np.float64]:
        """Return the time that a thread was in a state until each moment.

        ``of_thread`` are the indices of the thread's states.
        """
        ts = self.ts[of_thread]
        entered = self.state[of_thread]
        until_change = np.zeros(ts.size)
        was_in_state = entered[:-1] == state
        np.cumsum(np.diff(ts) * was_in_state, out=until_change[1:])
        latest = np.searchsorted(ts, moments, "right") - 1
        has_change = latest >= 0
        latest = np.maximum(latest, 0)
        is_in_state = entered[latest] == state
        since_change = np.where(is_in_state, moments - ts[latest], 0)
        return np.where(has_change, until_change[latest] + since_change, 0.0)


@attrs.frozen(eq=False)
class _Switches:
    """The context switches of one CPU, as columns of shape (n,) in the order of time."""

    ts: I64
    rank: I64
    """The place of each in the order of time of all rows of `sched`."""
    left: NDArray[np.int32]
    """The thread that it ends."""
    entered: NDArray[np.int32]

    def thread_before(self, index: int) -> int:
        """Return the thread that ran before a switch, given its index; -1 if unknown."""
        if index:
            return int(self.entered[index - 1])
        if not self.left.size:
            return -1
        return int(self.left[0])  # the first switch says which thread it ended


class CpuRuns:
    """Which thread each CPU runs, from one context switch to the next."""

    def __init__(self, sched: Table) -> None:
        ts = sched.array("ts")
        order = np.argsort(ts, kind="stable")
        self._cpu = sched.array("cpu")
        self._rank = np.empty(order.size, np.int64)
        """The place of each row in the order of time."""
        self._rank[order] = np.arange(order.size)
        rows = order[sched.array("kind")[order] != WAKEUP]
        rows = rows[np.argsort(self._cpu[rows], kind="stable")]
        cpus, first = np.unique(self._cpu[rows], return_index=True)
        limits = [*first.tolist(), rows.size]
        self._switches: dict[int, _Switches] = {}
        for number, cpu in enumerate(cpus.tolist()):
            start, stop = limits[number : number + 2]
            own = rows[start:stop]
            left = sched.array("prev")[own]
            entered = sched.array("next")[own]
            self._switches[cpu] = _Switches(ts[own], self._rank[own], left, entered)

    @property
    def cpus(self) -> list[int]:
        """The CPUs that switch, ascending."""
        return list(self._switches)

    def entered(self, cpu: int) -> tuple[I64, I32]:
        """Return the times of the switches of a CPU that switches, and the threads that it ran."""
        switches = self._switches[cpu]
        return switches.ts, switches.entered

    def thread_before(self, row: int) -> int:
        """Return the thread that ran on the CPU of a row when that happened; -1 if unknown."""
        switches = self._switches.get(self.cpu(row))
        if switches is None:
            return -1
        place = int(np.searchsorted(switches.rank, self._rank[row]))
        return switches.thread_before(place)

    def cpu(self, row: int) -> int:
        """Return the CPU of a row of `sched`."""
        return int(self._cpu[row])

    def between(self, cpu: int, start: int, end: int) -> list[tuple[int, int]]:
        """Return the threads that ran on a CPU between two times, with their nanoseconds.

        The thread is -1 where it is unknown; the CPU is one that switches.
        """
        switches = self._switches[cpu]
        first = int(np.searchsorted(switches.ts, start, "right"))
        last = int(np.searchsorted(switches.ts, end, "left"))
        edges = [start, *switches.ts[first:last].tolist(), end]
        threads = [switches.thread_before(first), *switches.entered[first:last].tolist()]
        spent: dict[int, int] = {}
        for thread, begin, until in zip(threads, edges, edges[1:], strict=False):
            if until > begin:
                spent[thread] = spent.get(thread, 0) + until - begin
        return list(spent.items())


def waits_of(capture: Capture) -> Waits:
    """Return the time that threads spent in each state, within the slices of each name.

    Slices within slices count at each of them.
    """
    slices = capture.table("slices")
    states = ThreadStates.of(capture.table("sched"))
    has_length = slices.array("dur") > 0
    rows = np.flatnonzero(has_length & (slices.array("kind") != ASYNC))
    starts = slices.array("ts")[rows]
    ends = starts + slices.array("dur")[rows]
    codes_of_slices = slices.array("name")[rows]
    name_of_slice, codes = dense(codes_of_slices)
    different_states = np.unique(states.state).tolist()
    ns_of_state = {state: np.zeros(codes.size) for state in different_states}
    threads = slices.array("thread")[rows]
    by_thread = np.argsort(threads, kind="stable")
    sorted_threads = threads[by_thread]
    for thread in np.unique(states.thread).tolist():
        slices_of_thread = by_thread[run_of(sorted_threads, thread)]
        if not slices_of_thread.size:
            continue
        states_of_thread = states.of_thread(thread)
        names = name_of_slice[slices_of_thread]
        for state, ns_of_names in ns_of_state.items():
            until_end = states.ns_in_state(state, states_of_thread, ends[slices_of_thread])
            until_start = states.ns_in_state(state, states_of_thread, starts[slices_of_thread])
            np.add.at(ns_of_names, names, until_end - until_start)

    pool = slices.pool
    slice_names = [pool.bytes_of(code) if code >= 0 else b"(no name)" for code in codes.tolist()]
    waits: dict[tuple[bytes, str], int] = {}
    for state, ns_of_names in ns_of_state.items():
        for index in np.flatnonzero(ns_of_names).tolist():
            key = (slice_names[index], state_name(state))
            ns = int(ns_of_names[index])
            waits[key] = waits.get(key, 0) + ns
    return waits
