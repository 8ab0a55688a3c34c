"""The exporter `speedscope`: a profile per thread, with the begin and end of each call.

Ends are adjusted so that calls nest; a call that never ended ends with its profile. Profiles of
several captures are written to one file.
"""

from __future__ import annotations

import itertools
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.analysis.calls import Calls, ThreadNames
from fxframework.exporters.stacks import ASYNCHRONOUS, UNFINISHED, Frames, left_out, no_calls
from fxframework.io.sink import Sink
from fxframework.kit.export import Export
from fxframework.kit.json_fields import encodable
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import ASYNC

__all__ = ["SCHEMA", "SpeedscopeExport"]

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
OVERLAPS = "overlaps of calls, which one of them was cut by"
CHUNK = 4096
"""Events written at a time."""

I64 = NDArray[np.int64]
Event = tuple[str, int, int]
"""``O`` (open) or ``C`` (close), number of the frame, and nanoseconds."""


class SpeedscopeExport(Export):
    """Writes one document: the profiles, then the frames that they refer to."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._frames = Frames()
        self._profiles = 0
        self._name = ""

    def write(self, capture: Capture) -> None:
        """Write the profiles of a capture. Raises WriteRefusedError if it has no calls."""
        self._dropped += left_out(capture)
        calls = Calls.of(capture, self._options["by"])
        if not len(calls):
            raise no_calls(capture)
        frames = self._frames.numbers_of(calls.functions)
        table = capture.table("slices")
        start, length, depth = (table.array(name) for name in ("ts", "dur", "depth"))
        if calls.asynchronous:
            chosen = np.flatnonzero(table.array("kind") != ASYNC)
            start, length, depth = start[chosen], length[chosen], depth[chosen]
        self._dropped[ASYNCHRONOUS] += calls.asynchronous
        self._dropped[UNFINISHED] += int(np.count_nonzero(length < 0))
        names = ThreadNames(capture)
        # Sort by depth, too, so that callees follow callers that begin at the same time.
        order = np.lexsort((depth, start, calls.thread)).astype(np.int32)
        stops = np.flatnonzero(np.diff(calls.thread[order], append=np.int32(-2))) + 1
        columns = _Columns(calls, frames, start, length, bytearray(len(calls)))
        first = 0
        for stop in map(int, stops):
            some = order[first:stop]
            first = stop
            name = names.get(int(calls.thread[some[0]]), "")
            last = max(
                int((begin + np.minimum(took, NS_MAX - np.maximum(begin, 0))).max())
                for begin, took in columns.spans(some)
            )
            self._begin(name, int(start[some[0]]), last)
            self._events(_paired(columns, some, last, self._dropped))
        self._name = self._name or capture.name

    def _begin(self, name: str, first: int, last: int) -> None:
        head = {"type": "evented", "name": name, "unit": "nanoseconds", "startValue": first,
                "endValue": last}  # fmt: skip
        opening = b'{"profiles":[\n' if not self._profiles else b",\n"
        self._profiles += 1
        self._sink.write(opening + orjson.dumps(encodable(head))[:-1] + b',"events":[\n')

    def _events(self, events: Iterator[Event]) -> None:
        lines: list[str] = []
        between = ""
        for kind, frame, at in events:
            lines.append(f'{{"type":"{kind}","frame":{frame},"at":{at}}}')
            if len(lines) == CHUNK:
                self._sink.write((between + ",\n".join(lines)).encode())
                lines.clear()
                between = ",\n"
        if lines:
            self._sink.write((between + ",\n".join(lines)).encode())
        self._sink.write(b"]}")

    def close(self) -> Mapping[str, int]:
        """Write the frames; return the counts of what could not be written, by name."""
        if self._profiles:
            rest = {"$schema": SCHEMA, "name": self._name, "activeProfileIndex": 0,
                    "exporter": "fxframework"}  # fmt: skip
            self._sink.write(b"],\n" + orjson.dumps(encodable(rest))[1:-1])
            self._sink.write(b',"shared":{"frames":[')
            texts, between = self._frames.pool, b""
            codes = iter(self._frames)
            while some := list(itertools.islice(codes, CHUNK)):
                frames = [_frame(texts[name], texts[source]) for name, source in some]
                self._sink.write(between + orjson.dumps(encodable(frames))[1:-1])
                between = b","
            self._sink.write(b"]}}\n")
        return super().close()


def _frame(name: str, source: str) -> dict[str, Any]:
    frame: dict[str, Any] = {"name": name}
    if source:
        parts = source.rsplit(":", 2)  # the name of a file may contain a colon
        if len(parts) == 3 and not parts[1].isdecimal():
            parts = source.rsplit(":", 1)
        file, line, column = (*parts, "", "")[:3]
        frame["file"] = file
        if line.isdecimal():
            frame["line"] = int(line)
        if column.isdecimal():
            frame["col"] = int(column)
    return frame


class _Columns(NamedTuple):
    """The calls of a capture, and which of them are open."""

    calls: Calls
    frames: NDArray[np.int32]
    """By function."""
    start: I64
    length: I64
    inside: bytearray
    """1 of a call that is in the stack of its thread."""

    def spans(self, order: NDArray[np.int32]) -> Iterator[tuple[I64, I64]]:
        """Starts and lengths of calls, in this order, some at a time; -1 counts as 0."""
        for first in range(0, order.size, CHUNK):
            some = order[first : first + CHUNK]
            yield self.start[some], np.maximum(self.length[some], 0)

    def rows(self, order: NDArray[np.int32]) -> Iterator[tuple[int, int, int, int, int]]:
        """Place, start, length, frame and parent of calls, in this order."""
        for first in range(0, order.size, CHUNK):
            some = order[first : first + CHUNK]
            frames, parents = self.frames[self.calls.function[some]], self.calls.parent[some]
            columns = some, self.start[some], self.length[some], frames, parents
            yield from zip(*(column.tolist() for column in columns), strict=True)


def _paired(
    columns: _Columns, order: NDArray[np.int32], last: int, dropped: Counter[str]
) -> Iterator[Event]:
    """Yield the calls of one thread as nested begins and ends, in order of time."""
    # The stack, in columns: a thread may have as many open calls as there are.
    places, frames, ends = array("i"), array("i"), array("q")
    now = int(columns.start[order[0]])
    inside = columns.inside
    for place, begin, took, frame, parent in columns.rows(order):
        end = min(begin + took, last) if took >= 0 else last
        while (
            places
            and places[-1] != parent
            and (ends[-1] <= begin or parent < 0 or (parent < len(inside) and inside[parent]))
        ):
            inside[places.pop()] = 0
            over, at = frames.pop(), ends.pop()
            if at > begin:
                dropped[OVERLAPS] += 1
            now = max(now, min(at, begin))
            yield "C", over, now
        now = begin
        if places and end > ends[-1]:
            dropped[OVERLAPS] += 1
            end = ends[-1]
        places.append(place)
        frames.append(frame)
        ends.append(end)
        inside[place] = 1
        yield "O", frame, now
    while places:
        inside[places.pop()] = 0
        now = max(now, ends.pop())
        yield "C", frames.pop(), now
