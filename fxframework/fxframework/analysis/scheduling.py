"""Scheduling: how long threads ran, and how long they waited, by state."""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC, THREAD_STATES, WAKEUP
from fxframework.model.table import Table

__all__ = ["RUNNABLE", "RUNNING", "Waits", "waits_of"]

I64 = NDArray[np.int64]
RUNNING = "running"
"""The state of a thread that has a CPU."""
RUNNABLE = "runnable"
"""The state of a thread that could run and has no CPU."""
Waits = Mapping[tuple[bytes, str], int]
"""Nanoseconds in slices, by name of the slice and state of its thread."""
READY = next(number for number, name in THREAD_STATES.items() if name == "running")
"""State of a thread that is switched away while it could run on."""
IS_RUNNING = -1
IS_RUNNABLE = -2
"""Numbers of the two states above, beside those of THREAD_STATES."""


def waits_of(capture: Capture) -> Waits:
    """Return the time that threads spent in each state, within the slices of each name.

    A thread runs from the switch to it until the switch away from it, which says its new state;
    a thread that was switched away while it could run is runnable, as is one after a wakeup.
    Slices within slices count at each of them.
    """
    slices = capture.table("slices")
    changes = _Changes.of(capture.table("sched"))
    rows = np.flatnonzero((slices.array("dur") > 0) & (slices.array("kind") != ASYNC))
    starts = slices.array("ts")[rows]
    ends = starts + slices.array("dur")[rows]
    codes, name_of_slice = np.unique(slices.array("name")[rows], return_inverse=True)
    name_of_slice = name_of_slice.reshape(-1)
    ns_of_state = {state: np.zeros(codes.size) for state in np.unique(changes.state).tolist()}
    threads = slices.array("thread")[rows]
    by_thread = np.argsort(threads, kind="stable")
    sorted_threads = threads[by_thread]
    for thread in np.unique(changes.thread).tolist():
        first, stop = np.searchsorted(sorted_threads, [thread, thread + 1]).tolist()
        slices_of_thread = by_thread[first:stop]
        if not slices_of_thread.size:
            continue
        changes_of_thread = changes.of_thread(thread)
        names = name_of_slice[slices_of_thread]
        for state, ns_of_names in ns_of_state.items():
            until_end = changes_of_thread.ns_in_state(state, ends[slices_of_thread])
            until_start = changes_of_thread.ns_in_state(state, starts[slices_of_thread])
            np.add.at(ns_of_names, names, until_end - until_start)

    pool = slices.pool
    slice_names = [pool.bytes_of(code) if code >= 0 else b"(no name)" for code in codes.tolist()]
    state_names = {**THREAD_STATES, IS_RUNNING: RUNNING, IS_RUNNABLE: RUNNABLE}
    waits: dict[tuple[bytes, str], int] = {}
    for state, ns_of_names in ns_of_state.items():
        state_name = state_names.get(state, f"state {state}")
        for index in np.flatnonzero(ns_of_names).tolist():
            key = (slice_names[index], state_name)
            waits[key] = waits.get(key, 0) + int(ns_of_names[index])
    return waits


@attrs.frozen(eq=False)
class _Changes:
    """Changes of state of threads, as columns sorted by thread and time."""

    thread: NDArray[np.int32]
    ts: I64
    state: NDArray[np.int16]
    """The state from then on: one of THREAD_STATES, IS_RUNNING or IS_RUNNABLE."""

    @classmethod
    def of(cls, sched: Table) -> _Changes:
        """Return the changes that the table `sched` records."""
        ts = sched.array("ts")
        previous = sched.array("prev")
        following = sched.array("next")
        state_left_in = sched.array("prev_state")
        is_switch = sched.array("kind") != WAKEUP
        away = np.flatnonzero(is_switch & (previous >= 0))
        to = np.flatnonzero(is_switch & (following >= 0))
        woken = np.flatnonzero(~is_switch & (following >= 0))
        state_away = np.where(state_left_in[away] == READY, IS_RUNNABLE, state_left_in[away])
        state_woken = np.full(woken.size, IS_RUNNABLE, np.int16)
        state_to = np.full(to.size, IS_RUNNING, np.int16)
        # At one time, a thread is switched away or woken before it is switched to.
        thread = np.concatenate((previous[away], following[woken], following[to]))
        times = np.concatenate((ts[away], ts[woken], ts[to]))
        states = np.concatenate((state_away.astype(np.int16), state_woken, state_to))
        order = np.lexsort((times, thread))
        return cls(thread[order].astype(np.int32), times[order], states[order])

    def of_thread(self, thread: int) -> _Changes:
        """Return the changes of one thread."""
        first, stop = np.searchsorted(self.thread, [thread, thread + 1]).tolist()
        return _Changes(self.thread[first:stop], self.ts[first:stop], self.state[first:stop])

    def ns_in_state(self, state: int, moments: I64) -> NDArray[np.float64]:
        """Return the time that a thread was in a state until each moment; for one thread."""
        until_change = np.zeros(self.ts.size)
        np.cumsum(np.diff(self.ts) * (self.state[:-1] == state), out=until_change[1:])
        latest = np.searchsorted(self.ts, moments, "right") - 1
        has_change = latest >= 0
        latest = np.maximum(latest, 0)
        since_change = np.where(self.state[latest] == state, moments - self.ts[latest], 0)
        return np.where(has_change, until_change[latest] + since_change, 0.0)
