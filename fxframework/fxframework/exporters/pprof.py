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

# Fields of the message Profile.
SAMPLE_TYPE = 1
SAMPLE = 2
LOCATION = 4
FUNCTION = 5
STRING_TABLE = 6
DURATION_NANOS = 10
DEFAULT_SAMPLE_TYPE = 14
CHUNK = 1 << 12
"""Fields written at a time."""


class PprofExport(Export):
    """Writes one profile of any number of captures; a thread is a label of its samples."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._strings = StringPool()
        self._functions = Frames(self._strings)
        self._waiting: list[bytes] = []
        """Fields of the profile to be written together."""
        self._duration_ns = 0
        """Of the longest capture."""
        self._begun = False

    def write(self, capture: Capture) -> None:
        """Add the stacks of a capture. Raises WriteRefusedError if it has no calls."""
        tree = stacks_of(capture, {**self._options, "thread": True}, self._dropped)
        summary = capture.summary()
        capture.trim()  # the tree has all that is written
        if not self._begun:
            self._begun = True
            calls = self._value_type("calls", "count")
            time = self._value_type("time", "nanoseconds")
            self._sink.write(message(SAMPLE_TYPE, calls))
            self._sink.write(message(SAMPLE_TYPE, time))
        numbers = self._functions.numbers_of(tree.functions).data
        counts = view(tree.count, np.int64)
        times = view(tree.in_ns(tree.own), np.int64)
        functions = view(tree.function, np.int32)
        path: list[int] = []
        thread = self._text("thread")
        label = b""
        for node, depth in tree.walk():
            if not depth:
                # The first nodes are the roots, which are threads.
                thread_name = self._text(tree.roots[node])
                label = integer(1, thread) + integer(2, thread_name)
                continue
            del path[depth - 1 :]
            path.append(numbers[functions[node]] + 1)  # ids of locations begin at 1
            if counts[node] or times[node]:
                locations = _packed(reversed(path))
                values = _packed((counts[node], times[node]))
                sample = message(1, locations) + message(2, values) + message(3, label)
                self._put(SAMPLE, sample)
        if summary.start_ns is not None and summary.end_ns is not None:
            self._duration_ns = max(self._duration_ns, summary.end_ns - summary.start_ns)

    def close(self) -> Mapping[str, int]:
        """Write the tables that samples refer to; return the counts of what was omitted."""
        if self._begun:
            unit = self._text("time")
            for id, (name, source) in enumerate(self._functions, 1):
                line = integer(1, id)  # of the function with the location's id
                self._put(LOCATION, integer(1, id) + message(4, line))
                self._put(FUNCTION, self._function(id, name, source))
            for code in range(len(self._strings)):
                text = decoded(self._strings.bytes_of(code), self._dropped)
                self._put(STRING_TABLE, text.encode())
            self._put(DURATION_NANOS, self._duration_ns)
            self._put(DEFAULT_SAMPLE_TYPE, unit)
            self._sink.write(b"".join(self._waiting))
        return super().close()

    def _put(self, field: int, value: bytes | int) -> None:
        """Write a field of the profile, buffered."""
        if isinstance(value, int):
            self._waiting.append(integer(field, value))
        else:
            self._waiting.append(message(field, value))
        if len(self._waiting) == CHUNK:
            self._sink.write(b"".join(self._waiting))
            self._waiting.clear()

    def _text(self, text: str) -> int:
        return self._strings.intern(text.encode("utf-8", "replace"))

    def _value_type(self, name: str, unit: str) -> bytes:
        return integer(1, self._text(name)) + integer(2, self._text(unit))

    def _function(self, id: int, name: int, source: int) -> bytes:
        file, line, _ = place_of(self._strings[source])
        names = integer(2, name) + integer(3, name)  # for people, and of the system
        source_place = integer(4, self._text(file)) + integer(5, line or 0)
        return integer(1, id) + names + source_place


def _packed(values: Iterable[int]) -> bytes:
    return b"".join(map(varint, values))
