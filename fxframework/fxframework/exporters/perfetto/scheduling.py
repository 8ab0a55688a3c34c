"""Context switches and wakeups as the states that threads enter.

The events are those of a kernel that is not Linux (``GenericKernelTaskStateEvent``, which Perfetto
reads since v50). Perfetto keeps the order of such events of one time on all CPUs, and they need no
waker; the events of ftrace have an order only within a CPU, and each wakeup names a waker. Where an
argument does name one, the wakeup is an event of ftrace, unless its thread is switched at its time.

Perfetto ignores that a thread runs that it has running already or dead, and does not check that a
thread that is woken was blocked. Both are done here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.columns import joined, picked, sizes_of
from fxframework.exporters.perfetto.order import Columns, columns_of
from fxframework.exporters.perfetto.wire import Messages
from fxframework.kernels.arrays import I64, U8, Bools
from fxframework.model.capture import Capture
from fxframework.model.schema import THREAD_STATES, WAKEUP
from fxframework.model.table import Table

Comms = Callable[[NDArray[Any]], tuple[U8, I64]]
"""Returns the names of threads by id: rows of a matrix of bytes, and the lengths in use."""

# --- Fields and numbers of perfetto_trace.proto ------------------------------------------------
FTRACE_EVENTS = 1
TIMESTAMP = 8
SCHED_WAKING = 20
TASK_STATE_EVENT = 117
# Task states.
RUNNABLE = 2
RUNNING = 3
BLOCKED = 4
STOPPED = 6
DEAD = 7
DESTROYED = 8
TASK_STATES = {"blocked": BLOCKED, "suspended": STOPPED, "dying": DEAD, "dead": DESTROYED}
"""Numbers of the states of switched-out threads; other states are runnable."""
UNKNOWN = 0
"""Before the first event of a thread."""

ENDED_BY_WAKEUP = (UNKNOWN, BLOCKED, STOPPED)
LEFT = 0
NEXT = 1
"""Places of the changes of a row: of the thread that is left, and of the next one."""
EVENTS = 1 << 15
"""Events encoded at a time."""
LONGEST_COMM = 32
"""The most bytes of a thread's name in an event; its track has the whole name."""
MAX_CPUS = 1024
"""Perfetto refuses a trace with a switch or wakeup on a CPU from this number on."""
FAR_CPUS = f"switches and wakeups on CPUs from {MAX_CPUS} on"
NOT_BLOCKED = "wakeups of threads that were not blocked"
NOT_LAST = "deaths of threads that ran again (shown as blocked)"
_TASK_STATES = np.full(256, RUNNABLE, np.int64)
for _code, _name in THREAD_STATES.items():
    _TASK_STATES[_code] = TASK_STATES.get(_name, RUNNABLE)


class Scheduling:
    """Writes the rows of `sched` of one capture, batch by batch.

    ``tids`` are Perfetto's by thread id, ``names_of`` yields the names of thread ids,
    ``perfetto_tids`` returns Perfetto's for the capture's own, and ``packets`` writes packets.
    """

    def __init__(
        self,
        capture: Capture,
        tids: NDArray[Any],
        names_of: Callable[[NDArray[Any]], Iterator[bytes]],
        perfetto_tids: Callable[[I64], I64],
        packets: Callable[[Messages], None],
    ) -> None:
        self._tids = tids
        self._names_of = names_of
        self._packets = packets
        self._states = _States(capture, tids)
        self._waker_tids = perfetto_tids
        self._rows_done = 0
        self.dropped = self._states.dropped
        """Counts of what is not written, by name."""
        self.named_wakers = 0
        """Number of arguments that are written: those that name a waker."""

    def write(self, table: Table) -> None:
        """Write the rows of the next batch, in their order."""
        batch = slice(self._rows_done, self._rows_done + len(table))
        self._rows_done += len(table)
        states = self._states.states[batch]
        ran_on = self._states.ran_on[batch]
        ts = table.array("ts")
        cpu = table.array("cpu").astype(np.int64)
        left = table.array("prev")
        following = table.array("next")
        left_priority = table.array("prev_priority")
        next_priority = table.array("next_priority")
        wakers = table.array("waker")
        # Events of ftrace have no order among CPUs, so none is written at the time of a switch.
        is_wakeup = states[:, NEXT] == RUNNABLE
        has_waker = is_wakeup & (wakers != 0)
        has_waker &= ~self._states.at_switch[batch]
        # Of each row three events: that the next thread no longer runs elsewhere, that a thread is
        # left, and that the next one runs or is woken. An event of state 0 is not written.
        ends_elsewhere = np.where(ran_on >= 0, RUNNABLE, 0)
        next_states = np.where(has_waker, 0, states[:, NEXT])
        priorities = np.column_stack((next_priority, left_priority, next_priority))
        events = {
            "ts": np.column_stack((ts, ts, ts)),
            "cpu": np.column_stack((ran_on, cpu, cpu)),
            "thread": np.column_stack((following, left, following)),
            "priority": np.maximum(priorities, 0),
            "state": np.column_stack((ends_elsewhere, states[:, LEFT], next_states)),
        }
        events = {name: column.reshape(-1) for name, column in events.items()}
        self._task_states(picked(events, events["state"] != 0))
        self.named_wakers += int(np.count_nonzero(has_waker))
        waker_tids = self._waker_tids(wakers[has_waker].view(np.int64))
        self._wakings(ts[has_waker], cpu[has_waker], waker_tids, following[has_waker])

    def _task_states(self, events: Columns) -> None:
        """Write the states that threads enter."""
        comms = self._comms(events["thread"])
        for at in range(0, events["ts"].size, EVENTS):
            chunk = picked(events, slice(at, at + EVENTS))
            body = Messages(chunk["ts"].size).varints(1, chunk["cpu"])
            threads = chunk["thread"]
            body.padded(2, *comms(threads)).varints(3, self._tids[threads])
            priorities = chunk["priority"].astype(np.int64)
            body.varints(4, chunk["state"]).varints(5, priorities)
            packet = Messages(body.rows).varints(TIMESTAMP, chunk["ts"])
            self._packets(packet.embed(TASK_STATE_EVENT, body))

    def _wakings(self, ts: I64, cpu: I64, wakers: I64, woken: NDArray[Any]) -> None:
        """Write wakeups by known threads; ``wakers`` are Perfetto's tids."""
        comms = self._comms(woken)
        for at in range(0, ts.size, EVENTS):
            chunk = slice(at, at + EVENTS)
            woken_threads = woken[chunk]
            waking = Messages(ts[chunk].size).padded(1, *comms(woken_threads))
            waking.varints(2, self._tids[woken_threads]).varints(5, cpu[chunk])
            event = Messages(waking.rows).varints(1, ts[chunk])
            event.varints(2, wakers[chunk])
            event.embed(SCHED_WAKING, waking)
            bundle = Messages(waking.rows).varints(1, cpu[chunk]).embed(2, event)
            packet = Messages(waking.rows).varints(TIMESTAMP, ts[chunk])
            self._packets(packet.embed(FTRACE_EVENTS, bundle))

    def _comms(self, threads: NDArray[Any]) -> Comms:
        ids = np.unique(threads)
        return _padded([name[:LONGEST_COMM] for name in self._names_of(ids)], ids)


def _padded(values: list[bytes], ids: NDArray[Any]) -> Comms:
    """Return a lookup of byte strings by sorted ids, as rows of a matrix with lengths."""
    sizes = sizes_of(values)
    width = max(int(sizes.max(initial=0)), 1)
    data = b"".join(value.ljust(width, b"\0") for value in values)
    matrix = np.frombuffer(data, np.uint8).reshape(len(values), width)

    def find(wanted: NDArray[Any]) -> tuple[U8, I64]:
        index = np.searchsorted(ids, wanted)
        return matrix[index], sizes[index]

    return find


class _States:
    """The states that threads enter, by place of the row in `sched`."""

    def __init__(self, capture: Capture, tids: NDArray[Any]) -> None:
        names = ("ts", "cpu", "kind", "prev", "next", "prev_state")
        parts = list(columns_of(capture, "sched", names))
        self.dropped: Counter[str] = Counter()
        count = sum(part["ts"].size for part in parts)
        self.states = np.zeros((count, 2), np.uint8)
        """States of the thread that is left and of the next one, shape (rows, 2); 0 for none."""
        self.ran_on = np.full(count, -1, np.int64)
        """The CPU on which the next thread runs, because it was not left there; else -1."""
        self.at_switch = np.zeros(count, np.bool_)
        """Wakeups at the time of a switch of their thread."""
        if count:
            columns = joined(parts, names)
            del parts
            self._look(columns, tids)

    def _look(self, columns: Columns, tids: NDArray[Any]) -> None:
        """Go through the changes of each thread in order of time, in the order of equal times."""
        is_far = columns["cpu"] >= MAX_CPUS
        self.dropped[FAR_CPUS] = int(np.count_nonzero(is_far))
        wakes = columns["kind"] == WAKEUP
        leaves_none = wakes | is_far
        tids_left = np.where(leaves_none, 0, tids[columns["prev"]])
        tids_next = np.where(is_far, 0, tids[columns["next"]])
        # Number 2 * row of the changes is of the thread that is left, 2 * row + 1 of the next one.
        threads = np.column_stack((tids_left, tids_next)).reshape(-1)
        changes = np.flatnonzero(threads)  # without thread 0, which is idle
        times = columns["ts"][changes // 2]
        order = np.lexsort((times, threads[changes]))
        changes = changes[order]
        thread = threads[changes]
        rows = changes // 2
        is_left = changes % 2 == LEFT
        is_woken = wakes[rows]
        state = np.where(is_woken, RUNNABLE, RUNNING)
        states_left = columns["prev_state"][rows[is_left]]
        state[is_left] = _TASK_STATES[states_left]
        self._end_what_goes_on(state, thread, is_left, np.flatnonzero(~is_woken), rows, columns)
        is_first = np.diff(thread, prepend=0) != 0
        state_before = np.append(UNKNOWN, state)[:-1]
        state_before[is_first] = UNKNOWN
        is_spurious = is_woken & ~np.isin(state_before, ENDED_BY_WAKEUP)
        self.dropped[NOT_BLOCKED] = int(np.count_nonzero(is_spurious))
        states = self.states.reshape(-1)
        states[changes] = np.where(is_spurious, 0, state)
        # Number the times of each thread, to find the wakeups at the time of one of its switches.
        is_other_time = np.diff(columns["ts"][rows], prepend=0) != 0
        moment = np.cumsum(is_first | is_other_time)
        has_switch = np.zeros(moment.size + 1, np.bool_)
        has_switch[moment[~is_woken]] = True
        self.at_switch[rows[is_woken]] = has_switch[moment[is_woken]]

    def _end_what_goes_on(
        self,
        state: I64,
        thread: NDArray[Any],
        is_left: Bools,
        switches: I64,
        rows: I64,
        columns: Columns,
    ) -> None:
        """Change what Perfetto would not go on from: deaths, and threads that run already.

        ``switches`` are the places of the changes other than wakeups.
        """
        switched = thread[switches]
        goes_on = np.append(switched[1:] == switched[:-1], False)
        is_death = np.isin(state[switches], (DEAD, DESTROYED))
        deaths = switches[goes_on & is_death]
        state[deaths] = BLOCKED
        self.dropped[NOT_LAST] = deaths.size
        # Two begins of running without an end between them: the second ends the first.
        is_running = ~is_left[switches]
        both_run = is_running[:-1] & is_running[1:]
        first_begins = np.flatnonzero(goes_on[:-1] & both_run)
        first_rows = rows[switches[first_begins]]
        second_rows = rows[switches[first_begins + 1]]
        self.ran_on[second_rows] = columns["cpu"][first_rows]
