"""Scheduling: how long threads ran, and how long they waited, by state."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC, THREAD_STATES, WAKEUP

__all__ = ["RUNNABLE", "RUNNING", "Waits", "waits_of"]

I64 = NDArray[np.int64]
RUNNING, RUNNABLE = "running", "runnable"
"""A thread has a CPU; it could run and has none."""
Waits = Mapping[tuple[bytes, str], int]
"""Nanoseconds in slices, by name of the slice and state of its thread."""
READY = next(number for number, name in THREAD_STATES.items() if name == "running")


def waits_of(capture: Capture) -> Waits:
    """Return the time that threads spent in each state, within the slices of each name.

    A thread runs from the switch to it until the switch away from it, which says its new state;
    a thread that was switched away while it could run is runnable, as is one after a wakeup.
    Slices within slices count at each of them.
    """
    sched, slices = capture.table("sched"), capture.table("slices")
    thread, since, state = _changes(
        sched.array("ts"), sched.array("kind"), sched.array("prev"), sched.array("next"),
        sched.array("prev_state"),
    )  # fmt: skip
    chosen = np.flatnonzero((slices.array("dur") > 0) & (slices.array("kind") != ASYNC))
    codes = slices.array("name")[chosen]
    starts, threads = slices.array("ts")[chosen], slices.array("thread")[chosen]
    ends = starts + slices.array("dur")[chosen]
    names, which = np.unique(codes, return_inverse=True)
    found: dict[tuple[bytes, str], int] = {}
    pool = slices.pool
    texts = [pool.bytes_of(code) if code >= 0 else b"(no name)" for code in names.tolist()]
    sums = {number: np.zeros(names.size) for number in np.unique(state).tolist()}
    order = np.argsort(threads, kind="stable")
    for number in np.unique(thread).tolist():
        first, last = np.searchsorted(thread, [number, number + 1]).tolist()
        low, high = np.searchsorted(threads[order], [number, number + 1]).tolist()
        mine = order[low:high]
        if not mine.size:
            continue
        times, states = since[first:last], state[first:last]
        for kind, total in sums.items():
            spent = np.zeros(times.size)
            np.cumsum(np.diff(times) * (states[:-1] == kind), out=spent[1:])
            within = _spent(times, states, spent, kind, ends[mine]) - _spent(
                times, states, spent, kind, starts[mine]
            )
            np.add.at(total, which.reshape(-1)[mine], within)
    labels = {**THREAD_STATES, -1: RUNNING, -2: RUNNABLE}
    for kind, total in sums.items():
        for at in np.flatnonzero(total).tolist():
            key = texts[at], labels.get(kind, f"state {kind}")
            found[key] = found.get(key, 0) + int(total[at])
    return found


def _changes(
    ts: I64,
    kind: NDArray[np.uint8],
    previous: NDArray[np.int32],
    following: NDArray[np.int32],
    left: NDArray[np.uint8],
) -> tuple[NDArray[np.int32], I64, NDArray[np.int16]]:
    """Return the changes of state of threads, sorted by thread and time."""
    switch = kind != WAKEUP
    out = np.flatnonzero(switch & (previous >= 0))
    into = np.flatnonzero(switch & (following >= 0))
    woken = np.flatnonzero(~switch & (following >= 0))
    state = np.where(left[out] == READY, -2, left[out]).astype(np.int16)
    thread = np.concatenate((previous[out], following[woken], following[into]))
    times = np.concatenate((ts[out], ts[woken], ts[into]))
    states = np.concatenate((
        state, np.full(woken.size, -2, np.int16), np.full(into.size, -1, np.int16)
    ))  # fmt: skip
    order = np.lexsort((times, thread))
    return thread[order].astype(np.int32), times[order], states[order]


def _spent(
    times: I64, states: NDArray[np.int16], spent: NDArray[np.float64], kind: int, at: I64
) -> NDArray[np.float64]:
    """Return the time that a thread has spent in a state until each moment."""
    place = np.searchsorted(times, at, "right") - 1
    known = np.maximum(place, 0)
    since = np.where(states[known] == kind, at - times[known], 0)
    return np.where(place >= 0, spent[known] + since, 0.0)
