"""The exporter `html`: one page that shows a report on captures, of limited size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.tree import call_tree
from fxframework.exporters.columns import made_once
from fxframework.exporters.flamegraph import Picture
from fxframework.exporters.page import page
from fxframework.exporters.report_scheduling import arrows, cpu_runs, thread_states
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import dense, largest
from fxframework.kit.export import Export
from fxframework.kit.json_fields import finite
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MIN, NS_PER_SECOND, ends_of, utc_text
from fxframework.model.logs import log_levels
from fxframework.model.schema import ASYNC
from fxframework.model.table import Table
from fxframework.model.tasks import tasks

MOST = {
    "slices": 40_000,
    "tracks": 400,
    "counters": 100,
    "points": 1_500,
    "logs": 3_000,
    "findings": 200,
    "slowest": 100,
    "names": 100,
    "frames": 4_000,
    "runs": 20_000,
    "states": 40_000,
    "arrows": 2_000,
}
"""Limits of a report; the page tells how much was left out."""
BLOCK = 1 << 18
"""Number of slices that are processed at once."""
KINDS = 20
"""Number of kinds of records whose counts are shown, of each capture."""
BUCKETS = 1_000
"""Number of time intervals in which slices that are not drawn one by one are summed up."""
LANES = 64
"""Number of levels of slices that are drawn."""
LONGEST_TEXT = 400
"""Largest number of characters of a name or a message."""
CONTEXT = 32
"""Number of bytes shown with a finding."""
Labels = Callable[[int], tuple[str, str, int]]
IDLE = "idle"
"""The label of the thread that stands for an idle CPU, whose koid is 0."""
NOBODY = ("", "", 0)
"""The label of an unknown thread."""
OPERATIONS = -2
"""In place of a thread's id: the track of asynchronous slices (-1 is that of no thread)."""


@attrs.frozen(eq=False)
class _Slices:
    """The slices of a capture by columns, of shape (slices,)."""

    capture: str
    """Name of the capture."""
    table: Table
    start: I64
    dur: I64
    length: I64
    """``dur``, but up to the last end for slices that never ended."""
    depth: NDArray[np.int64]
    thread: NDArray[np.int32]
    """Ids of threads; ``OPERATIONS`` for asynchronous slices."""
    last_end: int
    """When the last slice ends."""

    @classmethod
    def of(cls, capture: Capture) -> _Slices:
        table = capture.table("slices")
        start = table.array("ts")
        dur = table.array("dur")
        last_end = int(ends_of(start, dur).max())
        length = dur
        if dur.min() < 0:
            length = last_end - start
            np.copyto(length, dur, where=dur >= 0)
        is_async = table.array("kind") == ASYNC
        thread = np.where(is_async, np.int32(OPERATIONS), table.array("thread"))
        depth = table.array("depth")
        return cls(capture.name, table, start, dur, length, depth, thread, last_end)


class HtmlExport(Export):
    """The exporter `html`: collects the data of each capture and writes the page at the end."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._names: dict[str, int] = {}
        self._data: dict[str, Any] = {
            "captures": [],
            "cpus": [],
            "tracks": [],
            "arrows": [],
            "counters": [],
            "slowest": [],
            "byname": [],
            "flame": [],
            "logs": [],
        }
        """The data of the page; its script says what it reads of them."""
        self._times: list[int] = []
        """Times (ns) among which the first and the last bound the report."""
        self._drawable_left = MOST["slices"]
        self._utc_offset: int | None = None
        """Offset of time 0 from UTC in ns, of the first capture that knows it."""
        self._processes: dict[int, str] = {}
        """Names of processes by pid, shared by all captures."""

    def write(self, capture: Capture) -> None:
        """Add a capture to the report."""
        summary = capture.summary()
        capture.scan()
        if self._utc_offset is None:
            self._utc_offset = capture.utc_offset_ns
        kinds = Counter(summary.kinds).most_common(KINDS)
        row_counts = capture.row_counts()
        rows = [(name, count) for name, count in row_counts.items() if count]
        self._data["captures"].append(
            {
                "name": capture.name,
                "format": capture.format,
                "size": capture.source.size,
                "records": summary.records,
                "kinds": kinds,
                "rows": rows,
                **_findings(capture),
            }
        )
        known_times = (summary.start_ns, summary.end_ns)
        self._times += [time for time in known_times if time is not None]
        for table, add in (
            ("sched", self._cpus),
            ("slices", self._slices),
            ("slices", self._flame),
            ("counters", self._counters),
            ("logs", self._logs),
        ):
            if table in capture.schemas and len(capture.table(table)):
                add(capture)

    def close(self) -> Mapping[str, int]:
        """Write the page and return the counts of what it leaves out, by name."""
        start = min(self._times, default=0)
        names = [capture["name"] for capture in self._data["captures"]]
        self._data |= {
            "title": self._options["title"] or ", ".join(names),
            "begins": self._begins(start),
            "length": max(self._times, default=0) - start,
            "names": list(self._names),
        }
        for track in self._data["tracks"]:
            # Only now the processes of all captures are known.
            if not track["process"]:
                pid = track["pid"]
                track["process"] = self._processes.get(pid, f"process {pid}")
        for kind in ("cpus", "tracks", "counters", "logs", "slowest"):
            for entry in self._data[kind]:
                _move(entry, start)
        for arrow in self._data["arrows"]:
            arrow[2] -= start
            arrow[5] -= start
        slowest = self._data["slowest"]
        slowest.sort(key=lambda entry: -entry["dur"])
        del slowest[MOST["slowest"] :]
        self._sink.write(page("report", "fxframework report", self._data))
        return super().close()

    def _begins(self, start: int) -> str:
        """Return the time of the start of the report, exactly; empty if it is 0 without a date."""
        texts = []
        if self._utc_offset is not None:
            texts.append(utc_text(start + self._utc_offset))
        if start:
            seconds, ns = divmod(start, NS_PER_SECOND)
            texts.append(f"{seconds:,}.{ns:09d} s on the clock of the capture")
        return ", ".join(texts)

    def _name(self, text: str) -> int:
        return self._names.setdefault(text[:LONGEST_TEXT], len(self._names))

    def _extend_range(self, times: I64) -> None:
        """Make the report begin and end so that it shows these times."""
        self._times += [int(times.min()), int(times.max())]

    def _codes(self, table: Table, rows: I64) -> list[int]:
        """Return the indices of the names of rows in the names of the report."""
        codes = table.array("name")[rows]
        pool = table.pool  # after the column, which may add strings to it
        indices: list[int] = made_once(codes, lambda code: self._name(pool.text(code))).tolist()
        return indices

    # --- Slices ----------------------------------------------------------------------------------

    def _slices(self, capture: Capture) -> None:
        """Add the tracks of a capture, its slowest slices, and the times by name."""
        slices = _Slices.of(capture)
        self._times += [int(slices.start.min()), slices.last_end]
        shallow = np.flatnonzero(slices.depth < LANES)
        drawn = shallow[largest(slices.length[shallow], self._drawable_left)]
        self._drawable_left -= drawn.size
        self._dropped["slices that are shown in sum only"] += slices.start.size - drawn.size
        labels = self._thread_labels(capture)
        _, threads = dense(slices.thread)
        tracks = self._data["tracks"]
        track_of_thread: dict[int, int] = {}
        for thread in threads[: MOST["tracks"]].tolist():
            track_of_thread[thread] = len(tracks)
            tracks.append(self._track(slices, thread, drawn, labels))
        self._states(capture, track_of_thread)
        self._arrows(capture, slices.table, track_of_thread)
        self._add_slowest(slices, labels)
        self._add_times_by_name(slices)

    def _track(self, slices: _Slices, thread: int, drawn: I64, labels: Labels) -> dict[str, Any]:
        """Return the slices of a thread that are among those drawn, and its load if others are."""
        on_track = slices.thread == thread
        total = int(np.count_nonzero(on_track))
        rows = drawn[slices.thread[drawn] == thread]
        levels = slices.depth[rows].tolist()
        label, process, pid = labels(thread)
        if thread == OPERATIONS:
            label = "asynchronous"
            process = " "
            starts = slices.start[rows].tolist()
            levels = _lanes(starts, slices.length[rows].tolist())
        elif not label:
            label = "no thread"
            process = " "
        track = {
            "label": label,
            "process": process,
            "pid": pid,
            "capture": slices.capture,
            "total": total,
            "start": slices.start[rows].tolist(),
            "dur": slices.dur[rows].tolist(),
            "depth": levels,
            "name": self._codes(slices.table, rows),
        }
        if rows.size < total:
            # The outermost slices; the depth of all needs no copy if they are all on this track.
            depths = slices.depth if total == slices.depth.size else slices.depth[on_track]
            on_track &= slices.depth == depths.min()
            starts = slices.start[on_track]
            track["busy"] = _busy(starts, slices.length[on_track])
        return track

    def _cpus(self, capture: Capture) -> None:
        """Add a row for each CPU of a capture: what it ran."""
        sched = capture.table("sched")
        labels = self._thread_labels(capture)
        threads = np.union1d(sched.array("prev"), sched.array("next"))
        idle = np.ones(int(threads.max()) + 2, np.bool_)  # index -1: no thread
        for thread in threads[threads >= 0].tolist():
            label, _, _ = labels(thread)
            idle[thread] = label == IDLE
        runs, total = cpu_runs(sched, idle, MOST["runs"])
        drawn = 0
        for cpu, (start, length, thread) in runs.items():
            names = made_once(thread, lambda id: self._name(self._full_label(labels(id))))
            drawn += start.size
            self._data["cpus"].append(
                {
                    "label": f"CPU {cpu}",
                    "capture": capture.name,
                    "start": start.tolist(),
                    "dur": length.tolist(),
                    "name": names.tolist(),
                }
            )
        self._dropped["runs of CPUs"] += total - drawn
        self._extend_range(sched.array("ts"))

    def _states(self, capture: Capture, track_of_thread: Mapping[int, int]) -> None:
        """Add the states of threads to their tracks."""
        if "sched" not in capture.schemas or not len(capture.table("sched")):
            return
        sched = capture.table("sched")
        states, total = thread_states(sched, track_of_thread, MOST["states"])
        for thread, track in track_of_thread.items():
            if states[thread]["start"]:
                self._data["tracks"][track]["states"] = states[thread]
        shown = sum(len(columns["start"]) for columns in states.values())
        self._dropped["states of threads"] += total - shown

    def _arrows(self, capture: Capture, slices: Table, track_of_thread: Mapping[int, int]) -> None:
        """Add the flows between slices."""
        if "flows" not in capture.schemas or not len(capture.table("flows")):
            return
        flows = capture.table("flows")
        ends, codes, total = arrows(flows, slices, track_of_thread, MOST["arrows"])
        names = [self._name(flows.pool.text(code)) for code in codes.tolist()]
        for end, name in zip(ends, names, strict=True):
            self._data["arrows"].append([*end, name])
        self._dropped["arrows of flows"] += total - len(ends)

    def _full_label(self, label: tuple[str, str, int]) -> str:
        """Return process and name of a thread."""
        name, process, pid = label
        process = process or self._processes.get(pid, "")
        return f"{process} / {name}" if process else name

    def _thread_labels(self, capture: Capture) -> Labels:
        """Return a function from a thread's id to its name, its process's name, and the pid."""
        if "processes" in capture.schemas:
            table = capture.table("processes")
            rows = np.flatnonzero(table.array("name") > 0)  # 0 is the empty string
            pids = table.array("pid")[rows].tolist()
            for pid, code in zip(pids, table.array("name")[rows].tolist(), strict=True):
                self._processes[pid] = table.pool[code][:LONGEST_TEXT]
        threads = tasks(capture)
        processes = self._processes

        def label(thread: int) -> tuple[str, str, int]:
            task = threads.get(thread)
            if task is None:
                return NOBODY
            if not task.tid:
                return IDLE, "", 0
            name = task.thread or f"thread {task.tid}"
            return name[:LONGEST_TEXT], processes.get(task.pid, ""), task.pid

        return label

    def _add_slowest(self, slices: _Slices, labels: Labels) -> None:
        slowest = largest(slices.length, MOST["slowest"])
        threads = slices.table.array("thread")
        for row, name in zip(slowest.tolist(), self._codes(slices.table, slowest), strict=True):
            self._data["slowest"].append(
                {
                    "name": name,
                    "thread": self._full_label(labels(int(threads[row]))),
                    "start": int(slices.start[row]),
                    "dur": int(slices.length[row]),
                    "open": bool(slices.dur[row] < 0),
                }
            )

    def _add_times_by_name(self, slices: _Slices) -> None:
        """Add number, total and longest time of the slices of each name."""
        name_index, codes = dense(slices.table.array("name"))
        count = np.zeros(codes.size, np.int64)
        total = np.zeros(codes.size)
        longest = np.zeros(codes.size, np.int64)
        for first in range(0, name_index.size, BLOCK):
            names = name_index[first : first + BLOCK]
            lengths = slices.length[first : first + BLOCK]
            np.add.at(count, names, 1)
            np.add.at(total, names, lengths)
            np.maximum.at(longest, names, lengths)
        pool = slices.table.pool
        for index in np.argsort(-total, kind="stable")[: MOST["names"]].tolist():
            name = self._name(pool.text(int(codes[index])))
            figures = [int(column[index]) for column in (count, total, longest)]
            self._data["byname"].append([name, *figures])

    def _flame(self, capture: Capture) -> None:
        """Add the flame graph of a capture: name, depth, left edge and width, time (ns)."""
        tree = call_tree(capture, by="name", depth=LANES)
        picture = Picture(tree, "ns")
        frames = [
            [self._name(frame.name), frame.level, frame.left, frame.width, frame.weight]
            for frame in picture.widest(MOST["frames"])
        ]
        self._dropped["frames of the flame graph"] += len(tree) - len(frames)
        if picture.total:  # without a call that took time there is nothing to draw
            self._data["flame"].append({"capture": capture.name, "frames": frames})

    # --- Counters and logs -----------------------------------------------------------------------

    def _counters(self, capture: Capture) -> None:
        table = capture.table("counters")
        key_columns = [table.array(name) for name in ("name", "series", "id")]
        keys = np.stack([column.astype(np.int64) for column in key_columns], axis=1)
        distinct_keys, counter_of_row = np.unique(keys, axis=0, return_inverse=True)
        counter_of_row = counter_of_row.reshape(-1)
        times = table.array("ts")
        values = table.array("value")
        self._extend_range(times)
        omitted = max(len(distinct_keys) - MOST["counters"], 0)
        self._dropped["counters beyond the first"] += omitted
        for counter, (name, series, _) in enumerate(distinct_keys[: MOST["counters"]].tolist()):
            rows = np.flatnonzero(counter_of_row == counter)
            rows = rows[np.argsort(times[rows], kind="stable")]
            if rows.size > MOST["points"]:
                # Evenly spaced, with the first and the last.
                drawn = np.linspace(0, rows.size - 1, MOST["points"]).astype(np.int64)
                self._dropped["points of counters"] += rows.size - drawn.size
                rows = rows[drawn]
            words = [table.pool[code] for code in (name, series) if code >= 0]
            label = ":".join(words)
            finite_values = [finite(value) for value in values[rows].tolist()]
            self._data["counters"].append(
                {
                    "label": label[:LONGEST_TEXT],
                    "start": times[rows].tolist(),
                    "value": finite_values,
                }
            )

    def _logs(self, capture: Capture) -> None:
        table = capture.table("logs")
        times = table.array("ts")
        level = log_levels(table)
        self._extend_range(times)
        rows = np.arange(len(table))
        if rows.size > MOST["logs"]:
            by_severity = np.argsort(-level, kind="stable")
            rows = np.sort(by_severity[: MOST["logs"]])
            self._dropped["logs of the least severities"] += len(table) - rows.size
        logs = table.select(rows)
        labels = []
        for tag, component in zip(logs.texts("tags"), logs.texts("component"), strict=True):
            label = tag or component or ""
            labels.append(label[:LONGEST_TEXT])
        messages = [str(text)[:LONGEST_TEXT] for text in logs["message"]]
        self._data["logs"].append(
            {
                "total": len(table),
                "start": times[rows].tolist(),
                "level": level[rows].tolist(),
                "severity": [name or "" for name in logs.texts("severity_name")],
                "pid": logs.array("pid").tolist(),
                "tag": labels,
                "message": messages,
            }
        )


def _move(entry: dict[str, Any], start: int) -> None:
    """Make times relative to the start of the report."""
    if isinstance(entry["start"], list):
        entry["start"] = [time - start for time in entry["start"]]
        if "busy" in entry:
            entry["busy"]["from"] -= start
        if "states" in entry:
            states = entry["states"]
            states["start"] = [time - start for time in states["start"]]
    else:
        entry["start"] -= start


def _lanes(start: list[int], length: list[int]) -> list[int]:
    """Return the first free lane for each slice; the last lane if none is free."""
    busy_until = [NS_MIN] * LANES
    lanes = [LANES - 1] * len(start)
    for row in sorted(range(len(start)), key=start.__getitem__):
        begin = start[row]
        free_lanes = (lane for lane, end in enumerate(busy_until) if end <= begin)
        lanes[row] = next(free_lanes, LANES - 1)
        busy_until[lanes[row]] = start[row] + length[row]
    return lanes


def _busy(begin: I64, length: I64) -> dict[str, Any]:
    """Return how much of each time interval the outermost slices of a track fill, in percent."""
    end = begin + length
    first = int(begin.min())
    whole_width = int(end.max()) - first
    width = max(whole_width / BUCKETS, 1.0)
    # The time filled before an edge is the sum of the time since each begin, less that since each
    # end.
    numbers = np.arange(BUCKETS + 1, dtype=np.float64)
    edges = first + width * numbers
    filled = _sum_before(begin, edges) - _sum_before(end, edges)
    percent = np.diff(filled) / width * 100
    share = np.clip(percent, 0, 100).astype(np.int64)
    return {"from": first, "width": width, "share": share.tolist()}


def _sum_before(times: I64, edges: NDArray[Any]) -> NDArray[Any]:
    """Return, for each edge, the sum of the times from each earlier moment to the edge."""
    moments = times.astype(np.float64)
    moments.sort()
    count = np.searchsorted(moments, edges)
    # Sums of the moments before each, less the first of all to keep the numbers small.
    sums = np.zeros(moments.size + 1)
    np.subtract(moments, moments[0], out=sums[1:])
    np.cumsum(sums, out=sums)
    since_first = edges - moments[0]
    sums_to_edges: NDArray[Any] = count * since_first - sums[count]
    return sums_to_edges


def _findings(capture: Capture) -> dict[str, Any]:
    """Return the first findings, and the numbers of all by code."""
    findings = []
    for finding in capture.diagnostics.sorted()[: MOST["findings"]]:
        hex_context = ""
        if finding.offset is not None:
            hex_context = capture.source.read(finding.offset, CONTEXT).hex(" ", 8)
        findings.append(
            {
                "code": finding.code,
                "severity": finding.severity.key,
                "offset": finding.offset,
                "record": finding.record,
                "message": finding.message[:LONGEST_TEXT],
                "hex": hex_context,
            }
        )
    return {"findings": findings, "counts": dict(capture.diagnostics.counts)}
