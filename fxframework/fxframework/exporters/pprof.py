"""The exporter `pprof`: a sample per stack, with the number of calls and their own time.

The message is `perftools.profiles.Profile` of pprof's profile.proto, encoded here. pprof also reads
outputs compressed with gzip.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fxframework.exporters.perfetto.wire import integer, message, varint
from fxframework.exporters.stacks import Frames, place_of, stacks_of
from fxframework.io.sink import Sink
from fxframework.kernels.buffers import view
from fxframework.kit.export import Export, decoded
from fxframework.model.capture import Capture
from fxframework.model.strings import StringPool

__all__ = ["PprofExport"]

# Fields of the message Profile.
SAMPLE_TYPE, SAMPLE, LOCATION, FUNCTION, STRING_TABLE = 1, 2, 4, 5, 6
CHUNK = 1 << 12
"""Fields written at a time."""
TIME_NANOS, DURATION_NANOS, DEFAULT_SAMPLE_TYPE = 9, 10, 14


class PprofExport(Export):
    """Writes one profile of any number of captures; a thread is a label of its samples."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._strings = StringPool()
        self._functions = Frames(self._strings)
        self._waiting: list[bytes] = []
        self._duration = 0
        self._begun = False

    def write(self, capture: Capture) -> None:
        """Add the stacks of a capture. Raises WriteRefusedError if it has no calls."""
        tree = stacks_of(capture, {**self._options, "thread": True}, self._dropped)
        summary = capture.summary()
        capture.trim()  # the tree has all that is written
        if not self._begun:
            self._begun = True
            types = [
                self._value_type(name, unit) for name, unit in (("calls", "count"), ("time", "ns"))
            ]
            self._sink.write(b"".join(message(SAMPLE_TYPE, each) for each in types))
        locations = self._functions.numbers_of(tree.functions).data
        counts, times = (view(column, np.int64) for column in (tree.count, tree.in_ns(tree.own)))
        numbers = view(tree.function, np.int32)
        path: list[int] = []
        thread = self._text("thread")
        label = b""
        for node, depth in tree.walk():
            if not depth:
                label = integer(1, thread) + integer(2, self._text(tree.roots[node]))
                continue
            del path[depth - 1 :]
            path.append(locations[numbers[node]] + 1)
            if counts[node] or times[node]:
                sample = (
                    message(1, _packed(reversed(path)))
                    + message(2, _packed((counts[node], times[node])))
                    + message(3, label)
                )
                self._put(SAMPLE, sample)
        if summary.start_ns is not None and summary.end_ns is not None:
            self._duration = max(self._duration, summary.end_ns - summary.start_ns)

    def close(self) -> Mapping[str, int]:
        """Write the tables that samples refer to; return the counts of what was omitted."""
        if self._begun:
            unit = self._text("time")
            for number, (called, source) in enumerate(self._functions, 1):
                self._put(LOCATION, integer(1, number) + message(4, integer(1, number)))
                self._put(FUNCTION, self._function(number, called, source))
            for code in range(len(self._strings)):
                text = decoded(self._strings.bytes_of(code), self._dropped)
                self._put(STRING_TABLE, text.encode())
            self._put(DURATION_NANOS, self._duration)
            self._put(DEFAULT_SAMPLE_TYPE, unit)
            self._sink.write(b"".join(self._waiting))
        return super().close()

    def _put(self, field: int, value: bytes | int) -> None:
        """Write a field of the profile, buffered."""
        self._waiting.append(
            integer(field, value) if isinstance(value, int) else message(field, value)
        )
        if len(self._waiting) == CHUNK:
            self._sink.write(b"".join(self._waiting))
            self._waiting.clear()

    def _text(self, text: str) -> int:
        return self._strings.intern(text.encode("utf-8", "replace"))

    def _value_type(self, name: str, unit: str) -> bytes:
        unit = "nanoseconds" if unit == "ns" else unit
        return integer(1, self._text(name)) + integer(2, self._text(unit))

    def _function(self, number: int, called: int, source: int) -> bytes:
        file, line, _ = place_of(self._strings[source])
        return (
            integer(1, number) + integer(2, called) + integer(3, called)
            + integer(4, self._text(file)) + integer(5, line or 0)
        )  # fmt: skip


def _packed(values: Iterable[int]) -> bytes:
    return b"".join(map(varint, values))
