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
from fxframework.exporters.stacks import (
    ASYNCHRONOUS,
    UNFINISHED,
    Frames,
    left_out,
    no_calls,
    place_of,
)
from fxframework.io.sink import Sink
from fxframework.kernels.nesting import unfolded
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
"""Events, or frames, written at a time."""

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
        frame_of_call = frames[calls.function]
        overlaps = 0
        thread_start = 0
        for stop in map(int, stops):
            places = order[thread_start:stop]
            thread_start = stop
            starts = start[places]
            begin, end = int(starts[0]), _last_end(starts, length[places])
            # A call that never ends lasts as long as its thread.
            never_ends = length[places] < 0
            lengths = np.where(never_ends, end - starts, length[places])
            only_thread = np.zeros(places.size, np.int64)
            in_order = np.arange(places.size)
            rows, times, cut = unfolded(in_order, only_thread, starts, lengths, depth[places], 1)
            overlaps += cut
            self._begin_profile(thread_names.get(int(calls.thread[places[0]]), ""), begin, end)
            for first in range(0, rows.size, CHUNK):
                rows_of_chunk = rows[first : first + CHUNK]
                frames_of_chunk = frame_of_call[places[rows_of_chunk ^ (rows_of_chunk >> 63)]]
                between = b",\n" if first else b""
                events = self._events(
                    rows_of_chunk < 0, frames_of_chunk, times[first : first + CHUNK]
                )
                self._sink.write(between + events)
            self._sink.write(b"]}")
        self._dropped[OVERLAPS] += overlaps
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

    def _events(self, is_end: NDArray[np.bool_], frames: I64, times: I64) -> bytes:
        """Return the events, without the separator behind the last."""
        self._lines.forget(0)
        types = np.array([self._lines.text(b"O"), self._lines.text(b"C")])  # open, close
        self._lines.write(
            times.size,
            b'{"type":"',
            (TEXT, types[is_end.view(np.uint8)]),
            b'","frame":',
            (NATURAL, frames),
            b',"at":',
            (SIGNED, times),
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
    depth = table.array("depth").astype(np.int64)
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
