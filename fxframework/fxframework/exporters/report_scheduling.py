"""What a report shows of scheduling and flows: runs of CPUs, states of threads, and arrows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.scheduling import IS_RUNNABLE, IS_RUNNING, CpuRuns, ThreadStates
from fxframework.analysis.spans import flow_steps
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import ends_of_runs, largest, places_among
from fxframework.model.table import Table

RAN = 0
COULD_RUN = 1
WAITED = 2
"""States as the page draws them."""


class Runs(NamedTuple):
    """Start, length and thread of each run of a CPU."""

    start: I64
    length: I64
    thread: NDArray[np.int32]


def cpu_runs(sched: Table, idle: NDArray[np.bool_], most: int) -> tuple[dict[int, Runs], int]:
    """Return start, length and thread of what each CPU ran, by CPU, and how many runs there are.

    ``idle`` marks the ids of threads that stand for an idle CPU, and in the end no thread. Only the
    ``most`` longest runs are returned; the last one of a CPU lasts until the last switch or wakeup.
    """
    last_time = int(sched.array("ts").max())
    runs = CpuRuns(sched)
    all_runs: dict[int, Runs] = {}
    for cpu in runs.cpus:
        start, thread = runs.entered(cpu)
        length = np.diff(start, append=last_time)
        is_run = (length > 0) & ~idle[thread]
        all_runs[cpu] = Runs(start[is_run], length[is_run], thread[is_run])
    no_runs = np.zeros(0, np.int64)
    lengths = np.concatenate([no_runs, *(own.length for own in all_runs.values())])
    longest = largest(lengths, most)
    shown_runs = {}
    first = 0
    for cpu, own in all_runs.items():
        end = first + own.length.size
        shown = longest[slice(*np.searchsorted(longest, (first, end)))] - first
        shown_runs[cpu] = Runs(own.start[shown], own.length[shown], own.thread[shown])
        first = end
    return shown_runs, int(lengths.size)


def thread_states(
    sched: Table, threads: Collection[int], most: int
) -> tuple[dict[int, dict[str, Any]], int]:
    """Return the states of threads as columns of their tracks, and how many states they have.

    Only the ``most`` longest ones are returned; the last one of a thread lasts until the last
    switch or wakeup.
    """
    states = ThreadStates.of(sched)
    last_time = int(sched.array("ts").max())
    is_last = ends_of_runs(states.thread)
    ends = np.roll(states.ts, -1)
    ends[is_last] = last_time
    length = ends - states.ts
    drawn = np.full(states.state.size, WAITED)
    drawn[states.state == IS_RUNNING] = RAN
    drawn[states.state == IS_RUNNABLE] = COULD_RUN
    drawable = np.flatnonzero((length > 0) & np.isin(states.thread, list(threads)))
    shown = drawable[largest(length[drawable], most)]
    tracks = {}
    for thread in threads:
        own = states.of_thread(thread)
        rows = shown[slice(*np.searchsorted(shown, (own.start, own.stop)))]
        tracks[thread] = {
            "start": states.ts[rows].tolist(),
            "dur": length[rows].tolist(),
            "state": drawn[rows].tolist(),
        }
    return tracks, drawable.size


def arrows(
    flows: Table, slices: Table, track_of_thread: Mapping[int, int], most: int
) -> tuple[list[list[int]], I64, int]:
    """Return the ends of the arrows of flows, the codes of their names, and how many there are.

    An arrow goes from a point of a flow to the next one: track, depth and time of both. It is left
    out where a thread has no track. Only the first ``most`` are returned, in order of time.
    """
    sent, arrived = flow_steps(flows)
    thread = slices.array("thread")
    depth = slices.array("depth")
    # Flows name slices by row, of which a part of a capture has some.
    slice_place = places_among(flows.array("slice"), slices.array("row"))
    has_both_slices = (slice_place[sent] >= 0) & (slice_place[arrived] >= 0)
    sent = sent[has_both_slices]
    arrived = arrived[has_both_slices]
    tracks = np.full(int(thread.max(initial=-1)) + 2, -1, np.int64)  # index -1: no thread
    for id, track in track_of_thread.items():
        if id >= 0:
            tracks[id] = track
    ts = flows.array("ts")
    columns = []
    for points in (sent, arrived):
        of_points = slice_place[points]
        columns += [tracks[thread[of_points]], depth[of_points], ts[points]]
    sent_track, _, sent_time, arrived_track, _, _ = columns
    is_drawn = (sent_track >= 0) & (arrived_track >= 0)
    order = np.flatnonzero(is_drawn)
    by_time = np.argsort(sent_time[order], kind="stable")
    first_flows = order[by_time[:most]]
    ends = np.column_stack([column[first_flows] for column in columns])
    codes = flows.array("name")[sent[first_flows]]
    return ends.tolist(), codes, int(order.size)
