"""The exporter `speedscope`: a profile per thread, with the begin and end of each call.

Ends are adjusted so that calls nest; a call that never ended ends with its profile. Profiles of
several captures are written to one file.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.analysis.calls import Calls, ThreadNames
from fxframework.exporters.nesting import Pairing
from fxframework.exporters.stacks import (
    ASYNCHRONOUS,
    UNFINISHED,
    Frames,
    left_out,
    no_calls,
    place_of,
)
from fxframework.io.sink import Sink
from fxframework.kernels.parts import NATURAL, SIGNED, TEXT
from fxframework.kernels.templates import Templates
from fxframework.kit.export import Export
from fxframework.kit.json_fields import encodable
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import ASYNC

__all__ = ["SCHEMA", "SpeedscopeExport"]

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
OVERLAPS = "overlaps of calls, which one of them was cut by"
CHUNK = 1 << 14
"""Calls, or frames, written at a time."""

I64 = NDArray[np.int64]


class SpeedscopeExport(Export):
    """Writes one document: the profiles, then the frames that they refer to."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._frames = Frames()
        self._lines = Templates(b"", b"", b"")
        self._profile_count = 0
        self._name = ""

    def write(self, capture: Capture) -> None:
        """Write the profiles of a capture. Raises WriteRefusedError if it has no calls."""
        self._dropped += left_out(capture)
        calls = Calls.of(capture, self._options["by"])
        if not len(calls):
            raise no_calls(capture)
        self._dropped[ASYNCHRONOUS] += calls.asynchronous
        frames = self._frames.numbers_of(calls.functions)
        start, length, depth = _columns(capture, calls)
        self._dropped[UNFINISHED] += int(np.count_nonzero(length < 0))
        thread_names = ThreadNames(capture)
        # Sort by depth, too, so that callees follow callers that begin at the same time.
        order = np.lexsort((depth, start, calls.thread)).astype(np.int32)
        # A number that no thread has, so that the last thread ends with the last call.
        thread_changes = np.diff(calls.thread[order], append=np.int32(-2))
        stops = np.flatnonzero(thread_changes) + 1
        pairing = Pairing(len(calls))
        thread_start = 0
        for stop in map(int, stops):
            places = order[thread_start:stop]
            thread_start = stop
            chunks = [places[index : index + CHUNK] for index in range(0, places.size, CHUNK)]
            begin = int(start[places[0]])
            end = max(_last_end(start[chunk], length[chunk]) for chunk in chunks)
            thread = int(calls.thread[places[0]])
            self._begin_profile(thread_names.get(thread, ""), begin, end)
            pairing.begin(begin, end)
            between = b""
            no_calls_left = places[:0]  # ends the calls that are still open
            for chunk in [*chunks, no_calls_left]:
                pairing.load(
                    chunk,
                    start[chunk],
                    length[chunk],
                    frames[calls.function[chunk]],
                    calls.parent[chunk],
                )
                pairing.run()
                events = self._events(pairing)
                if events:
                    self._sink.write(between + events)
                    between = b",\n"
            self._sink.write(b"]}")
        self._dropped[OVERLAPS] += pairing.overlaps
        self._name = self._name or capture.name

    def _begin_profile(self, name: str, start: int, end: int) -> None:
        """Write the beginning of a profile, up to its events."""
        head = {
            "type": "evented",
            "name": name,
            "unit": "nanoseconds",
            "startValue": start,
            "endValue": end,
        }
        opening = b",\n" if self._profile_count else b'{"profiles":[\n'
        self._profile_count += 1
        unclosed_head = orjson.dumps(encodable(head))[:-1]  # without the brace
        self._sink.write(opening + unclosed_head + b',"events":[\n')

    def _events(self, pairing: Pairing) -> bytes:
        """Return the events that were made, without the separator behind the last."""
        moments = pairing.moments.filled()
        self._lines.forget(0)
        types = np.array([self._lines.text(b"O"), self._lines.text(b"C")])  # open, close
        self._lines.write(
            moments["at"].size,
            b'{"type":"',
            (TEXT, types[moments["ends"]]),
            b'","frame":',
            (NATURAL, moments["frame"]),
            b',"at":',
            (SIGNED, moments["at"]),
            b"},\n",
        )
        return self._lines.letters()[:-2].tobytes()

    def close(self) -> Mapping[str, int]:
        """Write the frames; return the counts of what could not be written, by name."""
        if self._profile_count:
            members = {
                "$schema": SCHEMA,
                "name": self._name,
                "activeProfileIndex": 0,
                "exporter": "fxframework",
            }
            bare_members = orjson.dumps(encodable(members))[1:-1]  # without the braces
            self._sink.write(b"],\n" + bare_members)
            self._sink.write(b',"shared":{"frames":[')
            pool = self._frames.pool
            between = b""
            codes = iter(self._frames)
            while chunk := list(itertools.islice(codes, CHUNK)):
                frames = [_frame(pool[name], pool[source]) for name, source in chunk]
                bare_frames = orjson.dumps(encodable(frames))[1:-1]
                self._sink.write(between + bare_frames)
                between = b","
            self._sink.write(b"]}}\n")
        return super().close()


def _columns(capture: Capture, calls: Calls) -> tuple[I64, I64, I64]:
    """Return start, length and depth of the calls: of all slices but asynchronous ones."""
    table = capture.table("slices")
    start = table.array("ts")
    length = table.array("dur")
    depth = table.array("depth")
    if calls.asynchronous:
        is_call = table.array("kind") != ASYNC
        return start[is_call], length[is_call], depth[is_call]
    return start, length, depth


def _last_end(start: I64, length: I64) -> int:
    """Return when the last of some calls ends; one that never ends counts with its start."""
    bounded = np.minimum(np.maximum(length, 0), NS_MAX - np.maximum(start, 0))
    return int((start + bounded).max())


def _frame(name: str, source: str) -> dict[str, Any]:
    frame: dict[str, Any] = {"name": name}
    if source:
        frame["file"], line, column = place_of(source)
        if line is not None:
            frame["line"] = line
        if column is not None:
            frame["col"] = column
    return frame
