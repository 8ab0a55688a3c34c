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
from fxframework.exporters.pairing import Pairing
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
        pairing = Pairing(len(calls))
        first = 0
        for stop in map(int, stops):
            some = order[first:stop]
            first = stop
            name = names.get(int(calls.thread[some[0]]), "")
            parts = [some[at : at + CHUNK] for at in range(0, some.size, CHUNK)]
            last = max(_last_end(start[part], length[part]) for part in parts)
            self._begin(name, int(start[some[0]]), last)
            pairing.begin(int(start[some[0]]), last)
            between = b""
            for part in [*parts, some[:0]]:
                pairing.load(
                    part, start[part], length[part], frames[calls.function[part]],
                    calls.parent[part],
                )  # fmt: skip
                pairing.run()
                if written := self._moments(pairing):
                    self._sink.write(between + written)
                    between = b",\n"
            self._sink.write(b"]}")
        self._dropped[OVERLAPS] += pairing.overlaps
        self._name = self._name or capture.name

    def _begin(self, name: str, first: int, last: int) -> None:
        head = {"type": "evented", "name": name, "unit": "nanoseconds", "startValue": first,
                "endValue": last}  # fmt: skip
        opening = b'{"profiles":[\n' if not self._profiles else b",\n"
        self._profiles += 1
        self._sink.write(opening + orjson.dumps(encodable(head))[:-1] + b',"events":[\n')

    def _moments(self, pairing: Pairing) -> bytes:
        """Return the events that were made, without the separator behind the last."""
        moments = pairing.moments.filled()
        rows = moments["at"].size
        self._lines.forget(0)
        kinds = np.array([self._lines.text(b"O"), self._lines.text(b"C")])
        self._lines.write(
            rows, b'{"type":"', (TEXT, kinds[moments["ends"]]), b'","frame":',
            (NATURAL, moments["frame"]), b',"at":', (SIGNED, moments["at"]), b"},\n",
        )  # fmt: skip
        return self._lines.letters()[:-2].tobytes()

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


def _last_end(start: I64, length: I64) -> int:
    """Return when the last of some calls ends; one that never ends counts with its start."""
    took = np.minimum(np.maximum(length, 0), NS_MAX - np.maximum(start, 0))
    return int((start + took).max())


def _frame(name: str, source: str) -> dict[str, Any]:
    frame: dict[str, Any] = {"name": name}
    if source:
        frame["file"], line, column = place_of(source)
        numbers = (("line", line), ("col", column))
        frame |= {key: number for key, number in numbers if number is not None}
    return frame
