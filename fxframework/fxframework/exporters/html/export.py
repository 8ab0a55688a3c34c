"""The exporter `html`: one page that shows a report on captures, of limited size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.calls import dense
from fxframework.analysis.tree import call_tree
from fxframework.exporters.page import page
from fxframework.io.sink import Sink
from fxframework.kit.export import Export
from fxframework.kit.json_fields import finite
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX, NS_MIN, NS_PER_SECOND, utc_text
from fxframework.model.logs import log_levels
from fxframework.model.schema import ASYNC
from fxframework.model.table import Table
from fxframework.model.threads import Threads

__all__ = ["HtmlExport"]

I64 = NDArray[np.int64]
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
}
"""Limits of a report; the page tells how much was left out."""
BLOCK = 1 << 18
"""Number of slices that are processed at once."""
BUCKETS = 1_000
"""Number of time intervals in which slices that are not drawn one by one are summed up."""
LANES = 64
"""Number of levels of slices that are drawn."""
LONGEST_TEXT = 400
"""Largest number of characters of a name or a message."""
CONTEXT = 32
"""Number of bytes shown with a finding."""
INSTANTS = "instants"
Labels = Callable[[int], tuple[str, str, int]]
NOBODY = ("", "", 0)
"""The label of an unknown thread."""


class HtmlExport(Export):
    """The exporter `html`: collects the data of each capture and writes the page at the end."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._names: dict[str, int] = {}
        self._data: dict[str, Any] = {
            name: [] for name in ("captures", "tracks", "counters", "slowest", "byname", "flame")
        }
        self._data["logs"] = []
        self._span: list[int] = []
        self._room = MOST["slices"]
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
        self._data["captures"].append(
            {
                "name": capture.name,
                "format": capture.format,
                "size": capture.source.size,
                "records": summary.records,
                "kinds": sorted(summary.kinds.items(), key=lambda kind: -kind[1])[:20],
                "rows": [(name, rows) for name, rows in capture.row_counts().items() if rows],
                **_findings(capture),
            }
        )
        self._span += [ns for ns in (summary.start_ns, summary.end_ns) if ns is not None]
        has = capture.schemas.keys()
        if "slices" in has and len(capture.table("slices")):
            self._slices(capture)
            self._flame(capture)
        if "counters" in has:
            self._counters(capture)
        if "logs" in has:
            self._logs(capture)

    def close(self) -> Mapping[str, int]:
        """Write the page and return the counts of what it leaves out, by name."""
        start = min(self._span, default=0)
        names = [each["name"] for each in self._data["captures"]]
        self._data |= {
            "title": self._options["title"] or ", ".join(names),
            "begins": self._begins(start),
            "length": max(self._span, default=0) - start,
            "names": list(self._names),
        }
        for track in self._data["tracks"]:
            pid = track["pid"]
            track["process"] = track["process"] or self._processes.get(pid, f"process {pid}")
        for kind in ("tracks", "counters", "logs", "slowest"):
            for each in self._data[kind]:
                _move(each, start)
        self._data["slowest"].sort(key=lambda each: -each["dur"])
        self._data["slowest"] = self._data["slowest"][: MOST["slowest"]]
        self._sink.write(page("fxframework.exporters.html", "report", self._data))
        return super().close()

    def _begins(self, start: int) -> str:
        """Return the time of the start of the report, exactly; empty if it is 0 without a date."""
        texts = []
        if self._utc_offset is not None:
            texts.append(utc_text(start + self._utc_offset))
        if start:
            seconds, rest = divmod(start, NS_PER_SECOND)
            texts.append(f"{seconds:,}.{rest:09d} s on the clock of the capture")
        return ", ".join(texts)

    def _name(self, text: str) -> int:
        return self._names.setdefault(text[:LONGEST_TEXT], len(self._names))

    def _codes(self, table: Table, rows: I64) -> list[int]:
        """Return the indices of the names of rows in the names of the report."""
        codes = table.array("name")[rows]
        texts = table.pool  # after the column, which may add strings to it
        distinct, which = np.unique(codes, return_inverse=True)
        numbers = [self._name(texts.text(code)) for code in distinct.tolist()]
        taken: list[int] = np.array(numbers, np.int64)[which.reshape(-1)].tolist()
        return taken

    # --- Slices ----------------------------------------------------------------------------------

    def _slices(self, capture: Capture) -> None:
        table = capture.table("slices")
        start, dur = table.array("ts"), table.array("dur")
        end = int(start.max())
        for first in range(0, start.size, BLOCK):
            begin, took = start[first : first + BLOCK], dur[first : first + BLOCK]
            end = max(end, int((begin + np.minimum(np.maximum(took, 0), NS_MAX - begin)).max()))
        self._span += [int(start.min()), end]
        length = dur
        if dur.min() < 0:
            length = end - start
            np.copyto(length, dur, where=dur >= 0)
        depth = table.array("depth")
        drawn = _longest(length, depth < LANES, self._room)
        self._room -= drawn.size
        self._dropped["slices that are shown in sum only"] += start.size - drawn.size
        track = np.where(table.array("kind") == ASYNC, np.int32(-2), table.array("thread"))
        labels = self._thread_labels(capture)
        for each in dense(track)[1][: MOST["tracks"]].tolist():
            mine = track == each
            total = int(np.count_nonzero(mine))
            rows = drawn[track[drawn] == each]
            label, process, pid = labels(each)
            if not label:
                label, process = "no thread", " "
            levels = depth[rows].tolist()
            if each == -2:
                label, process = "asynchronous", " "
                levels = _lanes(start[rows].tolist(), length[rows].tolist())
            found = {
                "label": label,
                "process": process,
                "pid": pid,
                "capture": capture.name,
                "total": total,
                "start": start[rows].tolist(),
                "dur": dur[rows].tolist(),
                "depth": levels,
                "name": self._codes(table, rows),
            }
            if rows.size < total:
                mine &= depth == (depth.min() if total == depth.size else depth[mine].min())
                found["busy"] = _busy(start[mine], length[mine])
            self._data["tracks"].append(found)
        self._summed(table, length, labels)

    def _thread_labels(self, capture: Capture) -> Labels:
        """Return a function from a thread's id to its name, its process's name, and the pid."""
        if "processes" in capture.schemas:
            table = capture.table("processes")
            for row in np.flatnonzero(table.array("name") > 0).tolist():  # 0 is the empty string
                name = table.pool[int(table.array("name")[row])]
                self._processes[int(table.array("pid")[row])] = name[:LONGEST_TEXT]
        threads, processes = Threads(capture.schemas, capture.table), self._processes
        texts = capture.strings

        def label(thread: int) -> tuple[str, str, int]:
            row = threads.row(thread)
            if row < 0:
                return NOBODY
            pid, tid, code = (int(a[row]) for a in (threads.pids, threads.tids, threads.names))
            name = texts[code] if code > 0 else f"thread {tid}"
            return name[:LONGEST_TEXT], processes.get(pid, ""), pid

        return label

    def _summed(
        self,
        table: Table,
        length: I64,
        labels: Labels,
    ) -> None:
        """Add the slowest slices, and the times of slices by name."""
        slowest = _longest(length, np.ones(length.size, np.bool_), MOST["slowest"])
        for row, name in zip(slowest.tolist(), self._codes(table, slowest), strict=True):
            label, process, pid = labels(int(table.array("thread")[row]))
            process = process or self._processes.get(pid, "")
            self._data["slowest"].append(
                {
                    "name": name,
                    "thread": f"{process} / {label}" if process else label,
                    "start": int(table.array("ts")[row]),
                    "dur": int(length[row]),
                    "open": bool(table.array("dur")[row] < 0),
                }
            )
        which, codes = dense(table.array("name"))
        count, longest = np.zeros(codes.size, np.int64), np.zeros(codes.size, np.int64)
        total = np.zeros(codes.size)
        for first in range(0, which.size, BLOCK):
            some, lengths = which[first : first + BLOCK], length[first : first + BLOCK]
            np.add.at(count, some, 1)
            np.add.at(total, some, lengths)
            np.maximum.at(longest, some, lengths)
        texts = table.pool
        for place in np.argsort(-total, kind="stable")[: MOST["names"]].tolist():
            figures = int(count[place]), int(total[place]), int(longest[place])
            self._data["byname"].append([self._name(texts.text(int(codes[place]))), *figures])

    def _flame(self, capture: Capture) -> None:
        """Add the flame graph of a capture: name, depth, start, width (ns), calls."""
        tree = call_tree(capture, by="name", depth=LANES)
        total = tree.in_ns(tree.total)
        shown = np.argsort(-total, kind="stable")[: MOST["frames"]].copy()
        keep = np.zeros(len(tree), np.bool_)
        keep[shown] = True
        self._dropped["frames of the flame graph"] += len(tree) - shown.size
        frames: list[list[int]] = []
        place: dict[int, int] = {-1: 0}
        above = tree.parent.data
        for node, depth in tree.walk(total):
            if not keep[node]:
                continue
            place[node] = at = place.get(above[node], 0)
            place[above[node]] = at + int(total[node])
            frames.append(
                [self._name(tree.name(node)), depth, at, int(total[node]), int(tree.count[node])]
            )
        if place[-1]:  # without a call that took time there is nothing to draw
            self._data["flame"].append(
                {"capture": capture.name, "total": place[-1], "frames": frames}
            )

    # --- Counters and logs -----------------------------------------------------------------------

    def _counters(self, capture: Capture) -> None:
        table = capture.table("counters")
        if not len(table):
            return
        key = np.stack(
            [table.array(name).astype(np.int64) for name in ("name", "series", "id")], axis=1
        )
        distinct, which = np.unique(key, axis=0, return_inverse=True)
        which = which.reshape(-1)
        texts = table.pool
        times, values = table.array("ts"), table.array("value")
        self._span += [int(times.min()), int(times.max())]
        self._dropped["counters beyond the first"] += max(len(distinct) - MOST["counters"], 0)
        for place, (name, series, _) in enumerate(distinct[: MOST["counters"]].tolist()):
            rows = np.flatnonzero(which == place)
            rows = rows[np.argsort(times[rows], kind="stable")]
            if rows.size > MOST["points"]:
                rows = rows[np.linspace(0, rows.size - 1, MOST["points"]).astype(np.int64)]
                self._dropped["points of counters"] += int((which == place).sum()) - rows.size
            label = ":".join(texts[code] for code in (name, series) if code >= 0)
            self._data["counters"].append(
                {
                    "label": label[:LONGEST_TEXT],
                    "start": times[rows].tolist(),
                    "value": [finite(value) for value in values[rows].tolist()],
                }
            )

    def _logs(self, capture: Capture) -> None:
        table = capture.table("logs")
        if not len(table):
            return
        times = table.array("ts")
        level = log_levels(table)
        self._span += [int(times.min()), int(times.max())]
        rows = np.arange(len(table))
        if rows.size > MOST["logs"]:
            rows = np.sort(np.argsort(-level, kind="stable")[: MOST["logs"]])
            self._dropped["logs of the least severities"] += len(table) - rows.size
        part = table.select(rows)
        tags = [tag or component for tag, component in zip(
            part.texts("tags"), part.texts("component"), strict=True)]  # fmt: skip
        names = part.texts("severity_name")
        self._data["logs"].append(
            {
                "total": len(table),
                "start": times[rows].tolist(),
                "level": level[rows].tolist(),
                "severity": [name or "" for name in names],
                "pid": part.array("pid").tolist(),
                "tag": [(tag or "")[:LONGEST_TEXT] for tag in tags],
                "message": [str(text)[:LONGEST_TEXT] for text in part["message"]],
            }
        )


def _move(each: dict[str, Any], start: int) -> None:
    """Make times relative to the start of the report."""
    if isinstance(each["start"], list):
        each["start"] = [time - start for time in each["start"]]
        if "busy" in each:
            each["busy"]["from"] -= start
    else:
        each["start"] -= start


def _lanes(start: list[int], length: list[int]) -> list[int]:
    """Return the first free lane for each slice; the last lane if none is free."""
    free = [NS_MIN] * LANES
    lanes = [LANES - 1] * len(start)
    for place in sorted(range(len(start)), key=start.__getitem__):
        lane = next((n for n, until in enumerate(free) if until <= start[place]), LANES - 1)
        free[lane] = start[place] + length[place]
        lanes[place] = lane
    return lanes


def _longest(length: I64, among: NDArray[np.bool_], most: int) -> I64:
    """Return the indices of the ``most`` longest slices, ascending; of equal ones the first."""
    if np.count_nonzero(among) <= most:
        return np.flatnonzero(among)
    if most <= 0:
        return np.zeros(0, np.int64)
    sorted_out = length[among]
    sorted_out.partition(sorted_out.size - most)
    least = sorted_out[sorted_out.size - most]
    del sorted_out
    longer = np.flatnonzero(among & (length > least))
    alike = np.flatnonzero(among & (length == least))[: most - longer.size].copy()
    return np.sort(np.append(longer, alike))


def _busy(begin: I64, length: I64) -> dict[str, Any]:
    """Return how much of each time interval the outermost slices of a track fill, in percent."""
    end = begin + length
    first, last = int(begin.min()), int(end.max())
    width = max((last - first) / BUCKETS, 1.0)
    # Coverage is the difference of two sums: of slices begun, and of slices ended, by then.
    edges = first + width * np.arange(BUCKETS + 1, dtype=np.float64)
    filled = _sum_before(begin, edges) - _sum_before(end, edges)
    share = np.clip(np.diff(filled) / width * 100, 0, 100).astype(np.int64)
    return {"from": first, "width": width, "share": share.tolist()}


def _sum_before(times: I64, edges: NDArray[Any]) -> NDArray[Any]:
    """Return, for each edge, the sum of the times from each earlier moment to the edge."""
    order = times.astype(np.float64)
    order.sort()
    count = np.searchsorted(order, edges)
    total = np.zeros(order.size + 1)
    np.subtract(order, order[0], out=total[1:])
    np.cumsum(total, out=total)
    found: NDArray[Any] = count * (edges - order[0]) - total[count]
    return found


def _findings(capture: Capture) -> dict[str, Any]:
    found = capture.diagnostics.sorted()
    shown = [
        {
            "code": finding.code,
            "severity": finding.severity.key,
            "offset": finding.offset,
            "record": finding.record,
            "message": finding.message[:LONGEST_TEXT],
            "hex": ""
            if finding.offset is None
            else capture.source.read(finding.offset, CONTEXT).hex(" ", 8),
        }
        for finding in found[: MOST["findings"]]
    ]
    return {"findings": shown, "counts": dict(capture.diagnostics.counts)}
