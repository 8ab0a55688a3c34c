"""Profile: opens the files of XRay's profiling mode; paths of calls become slices.

A profile has no times, only how long the calls of each path took together. So each path of a thread
is one slice, as long as all its calls, and the paths of a thread lie one behind the other, each
within its caller's, from time 0 on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from fx_xray.profile import CUT_PATH, FORMAT, HEADER_BYTES, Header, Total
from fx_xray.read.batches import small_columns
from fx_xray.read.events import to_ns, to_spans
from fx_xray.read.symbols import FunctionNames
from fx_xray.read.tables import SCHEMAS
from fxframework.io.source import Source
from fxframework.kernels.calls import NODE_SHIFT, TreeBuilder
from fxframework.kernels.sorting import begins_of_runs
from fxframework.kit.scanned import Columns
from fxframework.model.capture import CallColumns, OpenRequest
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import CALL, STANDARD_TABLES, Column, TableSchema
from fxframework.wire.capture import BlockPass, DeclaredCapture, Tasks
from fxframework.wire.many import FileNumbers

__all__ = ["FORMAT", "ProfileCapture", "whole_paths"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Arrays = dict[str, NDArray[Any]]
WORD_BYTES: Final = 4
CALLS, TICKS = (Total.layout.place(name) for name in ("calls", "ticks"))
"""Of a path, behind the zero that ends its ids."""
NO_BLOCKS: Final = dict.fromkeys(("offset", "xray_bytes", "xray_tid"), np.zeros(0, np.int64))
SLICES: Final = STANDARD_TABLES["slices"].extended(
    Column("xray_function", "u4", "id of the function"),
    Column("xray_ticks", "i8", "length of all its calls, with what they called", "ticks"),
    Column("xray_calls", "i8", "calls that it stands for; 0 where only longer paths were written"),
)


def whole_paths(data: U8, offset: int, nbytes: int) -> tuple[I64, int]:
    """Return the paths of the block at an offset, and the byte behind the last of them.

    They are int64 of shape (paths, 2): where a path begins, and the zero that ends its ids. Words
    of a path of two functions: 7 3 0, then calls and ticks, two words each: 1 0 900 0.
    """
    paths = []
    path_end = offset + HEADER_BYTES
    places = np.arange(path_end, offset + nbytes - WORD_BYTES + 1, WORD_BYTES)
    words = FileNumbers(data).integers(places, WORD_BYTES, big=False)
    for zero in places[words == 0].tolist():
        # Zeros before the end of a path are in its figures.
        if path_end <= zero and zero + TICKS.end <= offset + nbytes:
            paths.append((path_end, zero))
            path_end = zero + TICKS.end
    return np.array(paths, np.int64).reshape(-1, 2), path_end


def summed(data: U8, places: I64, nodes: NDArray[np.int32], count: int) -> I64:
    """Return the sum of each node's numbers of 64 bits, limited so that all together fit."""
    numbers = FileNumbers(data).integers(places, 8, big=False).view(np.uint64)
    largest = NS_MAX
    if numbers.sum(dtype=np.float64) > NS_MAX / 2:
        largest //= numbers.size
    sums = np.zeros(count, np.int64)
    np.add.at(sums, nodes, np.minimum(numbers, largest).astype(np.int64))
    return sums


def spread(parents: NDArray[np.int32], ticks: I64, first: int) -> tuple[I64, I64]:
    """Return where paths begin, in ticks, and their depths; nodes before ``first`` are threads.

    Paths that were not written get the ticks of what they called.
    """
    of_callees, next_starts, starts, depths = np.zeros((4, parents.size), np.int64)
    depths[:first] = -1
    # A walk backwards meets a path when the ticks of all of its callees are summed, a walk forwards
    # when the start of its caller is known.
    for path in range(parents.size - 1, first - 1, -1):
        ticks[path] = max(ticks[path], of_callees[path])
        of_callees[parents[path]] += ticks[path]
    for path in range(first, parents.size):
        caller = parents[path]
        starts[path] = next_starts[path] = next_starts[caller]
        next_starts[caller] += ticks[path]
        depths[path] = depths[caller] + 1
    return starts, depths


def paths_of(data: U8, written: I64, offsets: I64, threads: NDArray[np.int32]) -> Arrays:
    """Return columns of the paths, each summed over all that are written, and of their callers.

    Of each that is ``written`` there are its bounds, and the offset and the thread of its block.
    The columns have shape (paths,), times are in ticks, and callers come before callees.
    """
    zeros = written[:, 1]
    lengths = (zeros - written[:, 0]) // WORD_BYTES
    path_of_row = np.repeat(np.arange(zeros.size), lengths)
    # Each id is a row, a call within that of the next one; there is none around the outermost.
    words_left = np.repeat(np.cumsum(lengths), lengths) - np.arange(path_of_row.size)
    functions = FileNumbers(data).integers(
        zeros[path_of_row] - WORD_BYTES * words_left, 4, big=False
    )
    callers = np.where(words_left > 1, np.arange(1, words_left.size + 1), -1)
    # The first nodes of the tree are the threads, all others paths, below the paths of callers.
    first = int(threads.max(initial=-1)) + 1
    roots = np.arange(-1, first, dtype=np.int32)  # and one for calls of no thread
    tree = TreeBuilder(roots, first, first, 0)
    nodes = np.full(words_left.size, -1, np.int32)
    no_lengths = np.zeros(nodes.size, np.int64)
    codes = functions.astype(np.uint32).view(np.int32)
    tree.add(codes, callers, no_lengths, threads[path_of_row], nodes, 0)
    nodes >>= NODE_SHIFT
    parents, codes = tree.nodes()
    innermost = nodes[np.flatnonzero(begins_of_runs(path_of_row))]
    zeros = zeros[lengths > 0]  # figures of no function are of no path
    calls = summed(data, zeros + CALLS.offset, innermost, parents.size)
    ticks = summed(data, zeros + TICKS.offset, innermost, parents.size)
    starts, depths = spread(parents, ticks, first)
    for numbers in (calls, ticks, starts):  # whose sums over all paths must fit, too
        np.minimum(numbers, NS_MAX // max(1, parents.size - first), out=numbers)
    _, first_rows = np.unique(nodes, return_index=True)
    first_paths = path_of_row[first_rows]
    return {
        "offset": offsets[first_paths],
        "ticks": starts[first:].view(np.uint64),
        "thread": threads[first_paths],
        "depth": depths[first:].astype(np.int32),
        "parent": np.maximum(parents[first:] - first, -1).astype(np.int64),
        "xray_function": codes[first:].view(np.uint32),
        "xray_ticks": ticks[first:],
        "xray_calls": calls[first:],
    }


class ProfilePass(BlockPass):
    """A whole profile, read once, with its paths."""

    def __init__(self, capture: ProfileCapture) -> None:
        super().__init__(capture, whole=True)
        _, blocks = (self.whole or {}).get("xray_blocks", (0, NO_BLOCKS))
        offsets = blocks["offset"]
        self.tasks = Tasks()
        pids = np.full(offsets.size, capture.process, np.uint64)
        threads = self.tasks.of(pids, blocks["xray_tid"], offsets)
        data = capture.source.data
        written = [np.zeros((0, 2), np.int64)]
        self.cut: list[tuple[int, int]] = []
        """Offsets of blocks that end within a path, and the bytes of what is left of it."""
        for offset, nbytes in zip(offsets.tolist(), blocks["xray_bytes"].tolist(), strict=True):
            paths, end = whole_paths(data, offset, nbytes)
            written.append(paths)
            if end < offset + nbytes:
                self.cut.append((offset, offset + nbytes - end))
            capture.check_budget()
        counts = [len(paths) for paths in written[1:]]
        self.paths = paths_of(
            data, np.concatenate(written), np.repeat(offsets, counts), np.repeat(threads, counts)
        )
        ids, first_paths, numbers = np.unique(
            self.paths["xray_function"], return_index=True, return_inverse=True
        )
        calls = np.zeros(ids.size, np.int64)
        np.add.at(calls, numbers, self.paths["xray_calls"])
        self.functions = ids.astype(np.int64), calls
        self.function_offsets = self.paths["offset"][first_paths]
        if numbers.size:
            ends = self.paths["ticks"].view(np.int64) + self.paths["xray_ticks"]
            self._range = 0, int(to_ns(ends, capture.ticks_per_second).max())
        self._rows |= {
            "processes": min(offsets.size, 1),
            "threads": len(self.tasks.tids),
            "slices": numbers.size,
            "xray_functions": ids.size,
        }


class ProfileCapture(DeclaredCapture, of=FORMAT):
    """A profile: a slice for each path of a thread."""

    streamed = frozenset({"xray_blocks"})
    watch = (Header,)
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        name: SCHEMAS[name] for name in ("processes", "threads", "xray_functions")
    } | {"slices": SLICES}
    calls = CallColumns(
        function="xray_function",
        ticks="xray_ticks",
        ended="",
        functions="xray_functions",
        count="xray_calls",
    )
    fits_memory = True  # paths are summed over the whole file
    ticks_per_second = 0  # lengths are ticks alone, unless an option gives it

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        self.ticks_per_second = max(0, int(request.options.get("cycle_frequency") or 0))
        self.process = 0
        self._names = FunctionNames(request.options, self.strings)
        self._names.whole_ids = True

    def resume(self) -> None:
        """A file that grows is not followed: its paths are sums."""

    def seen(self, context: Any, header: Any) -> None:
        """Take the header."""
        del context
        self.process = header.process

    def _run_pass(self, *, whole: bool) -> ProfilePass:  # noqa: ARG002 (all is in memory)
        passed = ProfilePass(self)
        self._names.functions = passed.functions[0]
        return passed

    def _report(self, passed: Any) -> None:
        super()._report(passed)
        for offset, nbytes in passed.cut:
            self.diagnostics.add(CUT_PATH, offset, None, nbytes)
        for rule, value in self._names.findings():
            self.diagnostics.add(rule, value=value)

    def _small(self, name: str, passed: Any) -> Columns:
        if name == "xray_functions":
            columns = small_columns(name, passed, self._names)
            columns["offset"] = passed.function_offsets
            return columns
        if name != "slices":
            return super()._small(name, passed)
        paths: dict[str, Any] = passed.paths
        starts, lengths = to_spans(paths["ticks"], paths["xray_ticks"], self.ticks_per_second)
        return paths | {
            "ts": starts,
            "dur": lengths,
            "category": np.full(starts.size, -1, np.int32),
            "name": self._names.of(paths["xray_function"]),
            "kind": np.full(starts.size, CALL, np.uint8),
            "id": np.zeros(starts.size, np.uint64),
        }

    def _facts(self, passed: Any) -> dict[str, Any]:
        return {
            "mode": "profiling",
            "frequency_hz": self.ticks_per_second or "not known: ticks are taken for nanoseconds",
            "process": self.process,
            "threads": passed.rows["threads"],
            "functions": passed.rows["xray_functions"],
            "calls": int(passed.functions[1].sum()),
        }
