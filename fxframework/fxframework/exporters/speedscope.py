"""The exporter `speedscope`: a profile per thread, with the begin and end of each call.

Ends are adjusted so that calls nest; a call that never ended ends with its profile. Profiles of
several captures are written to one file.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.calls import Calls, thread_names
from fxframework.exporters.columns import first_of_runs
from fxframework.exporters.stacks import (
    ASYNCHRONOUS,
    Frames,
    left_out,
    no_calls,
    place_of,
    unfolded_calls,
)
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import I64
from fxframework.kernels.parts import NATURAL, SIGNED, TEXT
from fxframework.kernels.templates import Templates
from fxframework.kit.export import Export
from fxframework.kit.json_fields import encoded
from fxframework.model.capture import Capture

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
CHUNK = 1 << 14
"""Begins and ends, or frames, written at a time."""


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
        events = unfolded_calls(capture, calls, self._dropped)
        labels = thread_names(capture)
        bounds = [*first_of_runs(events.thread).tolist(), events.thread.size]
        for first, stop in itertools.pairwise(bounds):
            name = labels.get(int(events.thread[first]), "")
            last_time = int(events.time[stop - 1])
            self._begin_profile(name, int(events.time[first]), last_time)
            for part_start in range(first, stop, CHUNK):
                part = slice(part_start, min(part_start + CHUNK, stop))
                called = calls.function[events.call[part]]
                frames_of_part = frames[called]
                self._write_events(events.is_end[part], frames_of_part, events.time[part])
                self._sink.write(b"]}" if part.stop == stop else b",\n")
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
        unclosed_head = encoded(head)[:-1]  # without the brace
        self._sink.write(opening + unclosed_head + b',"events":[\n')

    def _write_events(
        self, is_end: NDArray[np.bool_], frames: NDArray[np.int32], times: I64
    ) -> None:
        """Write begins and ends of calls, without the separator behind the last."""
        self._lines.forget(0)
        types = np.array([self._lines.text(b"O"), self._lines.text(b"C")])  # open, close
        self._lines.write(
            times.size,
            b'{"type":"',
            (TEXT, types[is_end.astype(np.intp)]),
            b'","frame":',
            (NATURAL, frames),
            b',"at":',
            (SIGNED, times),
            b"},\n",
        )
        self._sink.write(self._lines.letters()[:-2].tobytes())

    def close(self) -> Mapping[str, int]:
        """Write the frames; return the counts of what could not be written, by name."""
        if self._profile_count:
            members = {
                "$schema": SCHEMA,
                "name": self._name,
                "activeProfileIndex": 0,
                "exporter": "fxframework",
            }
            bare_members = encoded(members)[1:-1]  # without the braces
            self._sink.write(b"],\n" + bare_members)
            self._sink.write(b',"shared":{"frames":[')
            pool = self._frames.pool
            between = b""
            codes = iter(self._frames)
            while chunk := list(itertools.islice(codes, CHUNK)):
                frames = [_frame(pool[name], pool[source]) for name, source in chunk]
                bare_frames = encoded(frames)[1:-1]
                self._sink.write(between + bare_frames)
                between = b","
            self._sink.write(b"]}}\n")
        return super().close()


def _frame(name: str, source: str) -> dict[str, Any]:
    frame: dict[str, Any] = {"name": name}
    if source:
        frame["file"], line, column = place_of(source)
        if line is not None:
            frame["line"] = line
        if column is not None:
            frame["col"] = column
    return frame
