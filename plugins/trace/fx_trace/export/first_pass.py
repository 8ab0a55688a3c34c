"""The first pass of the exporters: facts about a whole capture needed before the first event."""

from __future__ import annotations

import bisect
from array import array
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_trace import rules
from fx_trace.export.windows import joined, last_offset, windows
from fx_trace.format import ObjectType
from fxframework.kernels.sorting import places_among
from fxframework.kit.row_texts import json_string
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import TABLE_CODES
from fxframework.model.table import Table
from fxframework.model.threads import Threads

TIMED = ("slices", "instants", "counters", "flows", "sched", "logs")
"""Tables with times."""
SLICES = TABLE_CODES["slices"]
ENDLESS = NS_MAX + 1
"""A time later than any other."""
NOTHING = "there is nothing to write: no event, no message, no name"
IDLE = 0
"""Koid of the idle process, which trace2json sorts first."""


class FirstPass:
    """The facts found in a first pass over a capture."""

    def __init__(self, capture: Capture) -> None:
        self._seen_to: list[int] = []
        """Last offset of each window."""
        self._earliest: list[int] = []
        """Earliest time from each window on, and one more entry later than any time."""
        self.annotated = 0
        self.unowned = 0
        """Number of arguments of ends without a slice."""
        self.untimed = 0
        """Number of arguments of objects and blobs."""
        self.rows = 0
        self.switches = 0
        """Number of context switches and wakeups."""
        self.before_zero = 0
        """Number of events, except switches and wakeups, with a time below 0."""
        self._ends: list[Table] = []
        for window in windows(capture, (*TIMED, "args")):
            self._take(window)
        self._earliest.append(ENDLESS)
        # From the last window to the first, each takes in what is behind it.
        for place in range(len(self._earliest) - 2, -1, -1):
            later = self._earliest[place + 1]
            self._earliest[place] = min(self._earliest[place], later)

    def _take(self, window: Mapping[str, Table]) -> None:
        """Take in the rows of a window."""
        self._seen_to.append(last_offset(window))
        earliest = NS_MAX
        for name in TIMED:
            if name not in window:
                continue
            times = window[name].array("ts")
            earliest = min(earliest, int(times.min()))
            self.rows += times.size
            if name == "sched":
                self.switches += times.size
            else:
                self.before_zero += int(np.count_nonzero(times < 0))
        self._earliest.append(earliest)
        if "args" in window:
            self._take_args(window["args"], window.get("slices"))

    def _take_args(self, args: Table, slices: Table | None) -> None:
        """Take in arguments, and the slices of the same records."""
        owners = args.array("table")
        has_time = np.isin(owners, [TABLE_CODES[name] for name in TIMED])
        if "trace_annotation" in args.columns:
            is_annotated = args.array("trace_annotation") >= 0
            self.annotated += int(np.count_nonzero(is_annotated & has_time))
        # The `process` of a thread object is written as the thread's process.
        is_written = has_time | (args.array("name") == args.pool.code("process"))
        self.untimed += int(np.count_nonzero(~is_written))
        of_slices = owners == SLICES
        parents = args.array("parent")
        self.unowned += int(np.count_nonzero(of_slices & (parents < 0)))
        # Arguments are of an end event if their slice is another record.
        of_ends = of_slices & (parents >= 0)
        if slices is not None and of_ends.any():
            places = places_among(parents, slices.array("row"))
            is_same_record = slices.array("offset")[places] == args.array("offset")
            of_ends &= ~((places >= 0) & is_same_record)
        if of_ends.any():
            self._ends.append(args.select(of_ends))

    def earliest_after(self, offset: int) -> int:
        """Return a lower bound of the times of events after ``offset``."""
        return self._earliest[bisect.bisect_right(self._seen_to, offset)]

    def end_args(self) -> Table | None:
        """Return the arguments of end events of known slices, grouped by slice, or None."""
        if not self._ends:
            return None
        ends = joined(self._ends)
        by_parent = np.argsort(ends.array("parent"), kind="stable")
        self._ends = [ends.select(by_parent)]
        return self._ends[0]


def ends_of(ends: Table | None, slices: Table) -> Table | None:
    """Return the arguments of the end events of these slices, from ``FirstPass.end_args``."""
    if ends is None or not len(slices):
        return None
    rows = slices.array("row")
    bounds = (rows[0], rows[-1] + 1)
    start, stop = np.searchsorted(ends.array("parent"), bounds).tolist()
    return ends.select(slice(start, stop)) if start < stop else None


class ThreadNames:
    """Threads and processes by the ids used in other tables."""

    def __init__(self, capture: Capture) -> None:
        threads = capture.table("threads")
        processes = capture.table("processes")
        names = zip(processes.array("pid").tolist(), processes.texts("name"), strict=True)
        self.names = {pid: name for pid, name in names if name is not None}
        ids = threads.array("id")
        self.ids = array("q", np.append(ids, -1).astype(np.int64).tobytes())
        """All ids, and -1 for events without a thread."""
        size = int(ids.max(initial=-1)) + 2

        def by_id(koids: NDArray[np.uint64]) -> array[int]:
            column = np.zeros(size, np.uint64)
            column[ids] = koids
            return array("Q", column.tobytes())

        self.pids = by_id(threads.array("pid"))
        """Koids of processes by id; that of -1, at the end, is 0."""
        self.tids = by_id(threads.array("tid"))
        """Koids of threads, likewise."""
        self.own_tids = by_id(Threads(capture.schemas, capture.table).distinct_tids())
        """Tids by id of which no two of a process are the same."""
        named_threads = threads.select(threads.array("name") >= 0)
        ids_and_names = zip(
            named_threads.array("id").tolist(), named_threads.texts("name"), strict=True
        )
        self.thread_names: dict[int, str | None] = dict(ids_and_names)


class KernelNames:
    """Names of processes and threads from kernel objects; of several the longest.

    As in trace2json: a provider may truncate names, so the longest is the best.
    """

    def __init__(self, capture: Capture) -> None:
        self.processes: dict[int, str] = {}
        self.threads: dict[tuple[int, int], str] = {}
        self.others = 0
        """Number of kernel objects of other types."""
        lengths: dict[Any, int] = {}
        for batch in capture.batches("trace_objects"):
            kernel = batch.select(batch.array("kind") == 0)
            for (kind, koid, pid), name, code in zip(
                kernel.tuples("type", "id", "pid"),
                kernel.texts("name"),
                kernel.array("name").tolist(),
                strict=True,
            ):
                key: Any = koid
                names: dict[Any, str] = self.processes
                if kind == ObjectType.THREAD:
                    key = pid, koid
                    names = self.threads
                elif kind != ObjectType.PROCESS:
                    self.others += 1
                    continue
                length = len(kernel.pool.bytes_of(code))
                if length > lengths.get((kind, key), -1):
                    lengths[kind, key] = length
                    names[key] = name or ""

    def __bool__(self) -> bool:
        return bool(self.processes or self.threads)

    def system(self) -> list[str]:
        """Return the names as members of ``systemTraceEvents``, in order of koids."""
        events: list[str] = []
        for pid, name in sorted(self.processes.items()):
            sort_index = ',"sort_index":-1' if pid == IDLE else ""
            events.append(f'{{"ph":"p","pid":{pid},"name":{json_string(name)}{sort_index}}}')
        for (pid, tid), name in sorted(self.threads.items()):
            events.append(f'{{"ph":"t","pid":{pid},"tid":{tid},"name":{json_string(name)}}}')
        return events

    def metadata(self, tasks: ThreadNames) -> list[str]:
        """Return the names for the viewers of Chrome and Perfetto; trace2json writes none."""
        events: list[str] = []
        for pid, name in {**tasks.names, **self.processes}.items():
            events.append(
                f'{{"ph":"M","name":"process_name","pid":{pid},"tid":0,'
                f'"args":{{"name":{json_string(name)}}}}}'
            )
        for thread in tasks.ids:
            pid = tasks.pids[thread]
            tid = tasks.own_tids[thread]
            kernel_name = self.threads.get((pid, tid))
            thread_name = kernel_name or tasks.thread_names.get(thread)
            if thread_name is not None:
                events.append(
                    f'{{"ph":"M","name":"thread_name","pid":{pid},"tid":{tid},'
                    f'"args":{{"name":{json_string(thread_name)}}}}}'
                )
        return events


LEFT_OUT = {
    "blob": "blobs",
    "damaged": "damaged stretches",
    "large": "large blobs",
    "metadata provider_event": "provider events",
    "unknown": "records of unknown types",
    "userspace_object": "userspace objects",
}
"""Kinds of records that an output cannot hold, by readable name."""


def dropped_records(capture: Capture, survey: FirstPass) -> Counter[str]:
    """Count what an output cannot hold, by name."""
    dropped: Counter[str] = Counter()
    for kind, count in capture.summary().kinds.items():
        family, _, subtype = kind.partition(" ")
        if kind in LEFT_OUT:
            dropped[LEFT_OUT[kind]] += count
        elif family == "profiler":
            dropped["profiler records"] += count
        elif subtype.isdecimal():
            dropped[f"{family} records of unknown kinds"] += count
    counts = capture.diagnostics.counts
    dropped["damaged stretches"] -= counts.get(rules.STALE_BYTES.code, 0)  # they are not a loss
    for rule in (rules.END_WITHOUT_BEGIN, rules.ASYNC_END_WITHOUT_BEGIN):
        dropped["ends that close nothing"] += counts.get(rule.code, 0)
    dropped["arguments of ends that close nothing"] = survey.unowned
    dropped["arguments of objects and blobs"] = survey.untimed
    return dropped
