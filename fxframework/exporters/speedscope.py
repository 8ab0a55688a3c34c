"""Profiles for speedscope: for each thread its calls as they began and ended.

A call ends no earlier than those within it, and no later than the one around it; one that never
ended ends with its profile. Captures of one file become profiles beside each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import orjson

from fxframework.analysis.calls import ASYNC, Calls, thread_names
from fxframework.exporters.stacks import ASYNCHRONOUS, UNFINISHED, left_out, no_calls
from fxframework.io.sink import Sink
from fxframework.kit.export import Export
from fxframework.kit.json_fields import encodable
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX

__all__ = ["SCHEMA", "SpeedscopeExport"]

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
OVERLAPS = "overlaps of calls, which one of them was cut by"
CHUNK = 4096
"""Events that are written at a time."""

Event = tuple[str, int, int]
"""``O`` or ``C``, number of the frame, and nanoseconds."""


class SpeedscopeExport(Export):
    """Writes one document: the profiles as they come, then the frames that they refer to."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._frames: dict[tuple[str, str | None], int] = {}
        self._profiles = 0
        self._name = ""

    def write(self, capture: Capture) -> None:
        """Write the profiles of a capture. Raises WriteRefusedError where it has no calls."""
        self._dropped += left_out(capture)
        calls = Calls.of(capture, self._options["by"])
        if not len(calls):
            raise no_calls(capture)
        frames = [
            self._frames.setdefault((function.name, function.source), len(self._frames))
            for function in calls.functions
        ]
        table = capture.table("slices")
        chosen = np.flatnonzero(table.array("kind") != ASYNC)
        start, length = table.array("ts")[chosen], table.array("dur")[chosen]
        self._dropped[ASYNCHRONOUS] += calls.asynchronous
        self._dropped[UNFINISHED] += int((length < 0).sum())
        names = thread_names(capture)
        # Of calls that begin at one time, one follows its caller.
        order = np.lexsort((chosen, table.array("depth")[chosen], start, calls.thread))
        threads = calls.thread[order]
        for some in np.split(order, np.flatnonzero(np.diff(threads)) + 1):
            name = names.get(int(calls.thread[some[0]]), "")
            room = NS_MAX - np.maximum(start[some], 0)
            ends = start[some] + np.minimum(np.maximum(length[some], 0), room)
            first, last = int(start[some].min()), int(ends.max())
            self._begin(name, first, last)
            self._events(_paired(calls, frames, start, length, some, last, self._dropped))
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
        """Write the frames; gives what has no place in profiles, by name, with counts."""
        if self._profiles:
            frames = [_frame(name, source) for name, source in self._frames]
            rest = {"$schema": SCHEMA, "name": self._name, "activeProfileIndex": 0,
                    "exporter": "fxframework", "shared": {"frames": frames}}  # fmt: skip
            self._sink.write(b"],\n" + orjson.dumps(encodable(rest))[1:] + b"\n")
        return super().close()


def _frame(name: str, source: str | None) -> dict[str, Any]:
    frame: dict[str, Any] = {"name": name}
    if source:
        parts = source.rsplit(":", 2)  # the name of a file may have a colon itself
        if len(parts) == 3 and not parts[1].isdecimal():
            parts = source.rsplit(":", 1)
        file, line, column = (*parts, "", "")[:3]
        frame["file"] = file
        if line.isdecimal():
            frame["line"] = int(line)
        if column.isdecimal():
            frame["col"] = int(column)
    return frame


def _paired(
    calls: Calls,
    frames: list[int],
    start: Any,
    length: Any,
    order: Any,
    last: int,
    dropped: Counter[str],
) -> Iterator[Event]:
    """The calls of one thread as beginnings and ends that nest, in order of time."""
    stack: list[tuple[int, int, int]] = []  # place, frame, end
    now = int(start[order[0]])
    columns = order, start[order], length[order], calls.function[order], calls.parent[order]
    for place, begin, took, function, parent in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        end = min(begin + took, last) if took >= 0 else last
        while stack and stack[-1][0] != parent and (stack[-1][2] <= begin or _above(stack, parent)):
            _, frame, at = stack.pop()
            if at > begin:
                dropped[OVERLAPS] += 1
            now = max(now, min(at, begin))
            yield "C", frame, now
        now = begin
        if stack and end > stack[-1][2]:
            dropped[OVERLAPS] += 1
            end = stack[-1][2]
        stack.append((place, frames[function], end))
        yield "O", frames[function], now
    while stack:
        _, frame, at = stack.pop()
        now = max(now, at)
        yield "C", frame, now


def _above(stack: list[tuple[int, int, int]], parent: int) -> bool:
    """Whether the call that a new one is made by is in the stack, or is none."""
    return parent < 0 or any(place == parent for place, _, _ in stack)
