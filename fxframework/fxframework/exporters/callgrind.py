"""The exporter `callgrind`: what each function took by itself, and with what it called.

The format is that of valgrind's tool, version 1, with nanoseconds as its events and the lines of
declarations as its positions: callgrind_annotate and KCachegrind read it. A name is written once,
after its number, so that no name is taken for another one or for a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fxframework.exporters.stacks import ON_ONE_LINE, Frames, place_of, stacks_of
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import begins_of_runs
from fxframework.kit.export import Export
from fxframework.model.capture import Capture
from fxframework.model.strings import StringPool

UNKNOWN_FILE = "???"
CHUNK = 1 << 12
"""Lines written at a time."""


class CallgrindExport(Export):
    """Writes one profile of any number of captures, which are added up."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._functions = Frames(StringPool())
        self._parts: list[tuple[I64, I64, I64, I64, I64]] = []
        """Of each capture and pair of functions: caller (-1: none), callee, calls, time, and time
        of the callee by itself."""
        self._name = ""

    def write(self, capture: Capture) -> None:
        """Add the calls of a capture. Raises WriteRefusedError if it has none."""
        options = {**self._options, "thread": False, "weight": "ns"}
        tree = stacks_of(capture, options, self._dropped)
        capture.trim()  # the tree has all that is written
        self._name = self._name or capture.name
        numbers = self._functions.numbers_of(tree.functions).astype(np.int64)
        is_call = tree.function >= 0
        function = np.where(is_call, numbers[tree.function], -1)
        caller = function[tree.parent[is_call]]
        own = np.maximum(tree.in_ns(tree.own), 0)  # below 0 where calls overlap
        columns = function, tree.count, tree.in_ns(tree.total), own
        self._parts.append(_summed(caller, *(column[is_call] for column in columns)))

    def close(self) -> Mapping[str, int]:
        """Write the profile; return the counts of what could not be written, by name."""
        if self._parts:
            columns = map(np.concatenate, zip(*self._parts, strict=True))
            caller, callee, calls, time, own = _summed(*columns)
            functions = int(callee.max(initial=-1)) + 1
            own_times = np.zeros(functions, np.int64)
            np.add.at(own_times, callee, own)
            lines = _Lines(self._functions)
            chunk = [
                "# callgrind format",
                "version: 1",
                "creator: fxframework",
                f"cmd: {_plain(self._name)}",
                "positions: line",
                "events: ns",
                f"summary: {int(own_times.sum())}",
            ]
            # Pairs are in the order of their callers.
            starts = np.searchsorted(caller, np.arange(own_times.size + 1))
            for function, own_time in enumerate(own_times.tolist()):
                chunk.extend(lines.function(function, own_time))
                edges = slice(starts[function], starts[function + 1])
                for edge in zip(callee[edges], calls[edges], time[edges], strict=True):
                    chunk.extend(lines.call(function, *map(int, edge)))
                if len(chunk) > CHUNK:
                    self._write(chunk)
            self._write(chunk)
        return super().close()

    def _write(self, lines: list[str]) -> None:
        text = "".join(line + "\n" for line in lines)
        self._sink.write(text.encode("utf-8", "replace"))
        lines.clear()


class _Lines:
    """The lines of functions and their calls."""

    def __init__(self, functions: Frames) -> None:
        pool = functions.pool
        self._names = [_plain(pool[name]) or "(no name)" for name, _ in functions]
        places = [place_of(pool[source]) for _, source in functions]
        self._positions = [line or 0 for _, line, _ in places]
        files = [_plain(file) or UNKNOWN_FILE for file, _, _ in places]
        distinct_files = dict.fromkeys(files)
        self._file_numbers = {file: number for number, file in enumerate(distinct_files, 1)}
        self._files = files
        self._written: set[str] = set()
        """What was written with its name, so that its number is enough from then on."""

    def function(self, function: int, own_time: int) -> Iterator[str]:
        """Yield the lines of a function: its file, its name, and its own time."""
        yield ""
        yield self._file("fl", function)
        yield f"fn={self._named(function + 1, self._names[function], 'fn')}"
        yield f"{self._positions[function]} {own_time}"

    def call(self, caller: int, callee: int, calls: int, time: int) -> Iterator[str]:
        """Yield the lines of the calls of one function by another: their number and time."""
        yield self._file("cfi", callee)
        yield f"cfn={self._named(callee + 1, self._names[callee], 'fn')}"
        yield f"calls={calls} {self._positions[callee]}"
        yield f"{self._positions[caller]} {time}"

    def _file(self, key: str, function: int) -> str:
        file = self._files[function]
        return f"{key}={self._named(self._file_numbers[file], file, 'fl')}"

    def _named(self, number: int, name: str, kind: str) -> str:
        """Return a number, with the name that it stands for when it comes first."""
        short = f"({number})"
        if kind + short in self._written:
            return short
        self._written.add(kind + short)
        return f"{short} {name}"


def _summed(
    caller: I64, callee: I64, calls: I64, time: I64, own: I64
) -> tuple[I64, I64, I64, I64, I64]:
    """Add up what equal pairs of functions have; return these in the order of callers."""
    order = np.lexsort((callee, caller))
    caller = caller[order]
    callee = callee[order]
    starts = np.flatnonzero(begins_of_runs(caller) | begins_of_runs(callee))
    calls, time, own = (np.add.reduceat(column[order], starts) for column in (calls, time, own))
    return caller[starts], callee[starts], calls, time, own


def _plain(text: str) -> str:
    """Return a name on one line."""
    return text.translate(ON_ONE_LINE).strip()
