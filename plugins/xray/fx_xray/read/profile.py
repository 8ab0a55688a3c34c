"""Profile: opens the files of XRay's profiling mode; paths of calls become slices.

A profile has no times, only how long the calls of each path took together. So each path of a thread
is one slice, as long as all its calls, and the paths of a thread lie one behind the other, each
within its caller's, from time 0 on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_xray.profile import CUT_PATH, FORMAT, HEADER_BYTES, Header, Total
from fx_xray.read.batches import function_columns
from fx_xray.read.events import to_spans
from fx_xray.read.symbols import FunctionNames
from fx_xray.read.tables import CALLS, SCHEMAS
from fxframework.io.source import Source
from fxframework.kernels.calls import TreeBuilder
from fxframework.kit.scanned import Columns
from fxframework.model.capture import OpenRequest
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import CALL, STANDARD_TABLES, Column, TableSchema
from fxframework.wire.capture import BlockPass, DeclaredCapture, Tasks
from fxframework.wire.many import FileNumbers

__all__ = ["FORMAT", "ProfileCapture", "paths_in"]

I64 = NDArray[np.int64]
WORD_BYTES: Final = 4
TOTAL_WORDS: Final = Total.layout.place("ticks").end // WORD_BYTES
NO_BLOCKS: Final = dict.fromkeys(("offset", "xray_bytes", "xray_tid"), np.zeros(0, np.int64))
SLICES: Final = STANDARD_TABLES["slices"].extended(
    Column("xray_function", "u4", "id of the function"),
    Column("xray_ticks", "i8", "length of all its calls, with what they called", "ticks"),
    Column("xray_calls", "i8", "calls that it stands for; 0 where only longer paths were written"),
)


def paths_in(
    file: FileNumbers, offset: int, nbytes: int
) -> tuple[list[tuple[NDArray[np.uint32], int]], int]:
    """Return the paths of the block at an offset, and the bytes at its end that are of none.

    A path is its functions, and the byte where its total begins. Words of one of two functions:
    7 3, and the total: 0, then calls and ticks, two words each: 1 0 900 0.
    """
    paths = []
    begin = offset + HEADER_BYTES
    counts = np.array([(nbytes - HEADER_BYTES) // WORD_BYTES])
    words = file.listed(np.array([begin]), counts, WORD_BYTES, big=False)
    end = 0
    for zero in np.flatnonzero(words[: 1 - TOTAL_WORDS] == 0).tolist():
        if zero >= end:  # others are in the figures of a path
            paths.append((words[end:zero], begin + WORD_BYTES * zero))
            end = zero + TOTAL_WORDS
    return paths, WORD_BYTES * (words.size - end)


def summed(numbers: I64, groups: I64 | list[int], count: int) -> I64:
    """Return the sum of each group's numbers of 64 bits, limited so that all together fit."""
    unsigned = numbers.view(np.uint64)
    if unsigned.sum(dtype=np.float64) > NS_MAX / 2:
        numbers = np.minimum(unsigned, NS_MAX // unsigned.size).astype(np.int64)
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, numbers)
    return sums


def spread(parents: memoryview[int], calls: I64, ticks: I64, first: int) -> I64:
    """Return calls and ticks of paths, and the ticks at which they begin, of shape (3, paths).

    Nodes before ``first`` are threads. Paths that were not written are as long as what they called.
    """
    lengths = ticks.tolist()
    of_callees, next_starts, starts = ([0] * len(parents) for _ in range(3))
    # A walk backwards meets a path when the ticks of all of its callees are summed, a walk forwards
    # when the start of its caller is known.
    for path in range(len(parents) - 1, first - 1, -1):
        lengths[path] = max(lengths[path], of_callees[path])
        of_callees[parents[path]] += lengths[path]
    for path in range(first, len(parents)):
        caller = parents[path]
        starts[path] = next_starts[path] = next_starts[caller]
        next_starts[caller] += lengths[path]
    rows: I64 = np.array((calls, lengths, starts), np.int64)[:, first:]
    # So that sums over all paths fit, too.
    np.minimum(rows, NS_MAX // max(1, rows.shape[1]), out=rows)
    return rows


class ProfilePass(BlockPass):
    """A whole profile, read once, with its paths: each once, callers before callees."""

    def __init__(self, capture: ProfileCapture, names: FunctionNames) -> None:
        super().__init__(capture, whole=True)
        file = FileNumbers(capture.source.data)
        _, blocks = (self.whole or {}).get("xray_blocks", (0, NO_BLOCKS))
        offsets = blocks["offset"]
        self.process = 0
        if "header" in self.kinds:
            self.process = Header.layout.place("process").get(file.data.data, 0)
        self.tasks = Tasks()
        pids = np.full(offsets.size, self.process, np.uint64)
        threads = self.tasks.of(pids, blocks["xray_tid"], offsets)
        # The first nodes of the tree are the threads, all others paths.
        first = len(self.tasks.tids)
        tree = TreeBuilder(np.zeros(0, np.int32), first, first, 0)
        nodes_used = [first]
        nodes: list[int] = []
        totals: list[int] = []
        self.cut: list[tuple[int, int]] = []
        """Offsets of blocks that end within a path, and the bytes of what is left of it."""
        columns = (offsets.tolist(), blocks["xray_bytes"].tolist(), threads.tolist())
        for offset, nbytes, thread in zip(*columns, strict=True):
            paths, cut_bytes = paths_in(file, offset, nbytes)
            for functions, total in paths:
                node = thread
                for function in functions[::-1].tolist():
                    node = tree.node(node, function)
                nodes.append(node)
                totals.append(total)
            nodes_used.append(tree.used)
            if cut_bytes:
                self.cut.append((offset, cut_bytes))
            capture.check_budget()
        parents, codes = tree.nodes()
        places = np.array(totals, np.int64)
        figures = file.of_records(Total.layout, ("calls", "ticks"), places, big=False)
        calls, ticks = (summed(numbers, nodes, tree.used) for numbers in figures)
        calls, ticks, starts = spread(parents.data, calls, ticks, first)
        ts, dur = to_spans(starts, ticks, capture.ticks_per_second)
        new_paths = np.diff(nodes_used)
        path_offsets = np.repeat(offsets, new_paths)
        functions = codes[first:].view(np.uint32)
        ids, first_rows, places = np.unique(functions, return_index=True, return_inverse=True)
        calls_by_id = summed(calls, places, ids.size)
        names.functions = ids.astype(np.int64)
        self.tables: dict[str, Any] = {
            "processes": self.tasks.columns("processes"),
            "threads": self.tasks.columns("threads"),
            "xray_functions": function_columns(names, calls_by_id, path_offsets[first_rows]),
            "slices": {
                "offset": path_offsets,
                "ts": ts,
                "ticks": starts.view(np.uint64),
                "dur": dur,
                "thread": np.repeat(threads, new_paths),
                "category": np.full(ts.size, -1, np.int32),
                "name": lambda: names.of(functions),
                "depth": np.asarray(tree.levels)[first : tree.used] - 1,
                "parent": np.maximum(parents[first:] - first, -1).astype(np.int64),
                "kind": np.full(ts.size, CALL, np.uint8),
                "id": np.zeros(ts.size, np.uint64),
                "xray_function": functions,
                "xray_ticks": ticks,
                "xray_calls": calls,
            },
        }
        self._rows |= {name: len(columns["offset"]) for name, columns in self.tables.items()}
        if ts.size:
            self._range = 0, int((ts + dur).max())


class ProfileCapture(DeclaredCapture, of=FORMAT):
    """A profile: a slice for each path of a thread."""

    streamed = frozenset({"xray_blocks"})
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        name: SCHEMAS[name] for name in ("processes", "threads", "xray_functions")
    } | {"slices": SLICES}
    calls = attrs.evolve(CALLS, ended="", count="xray_calls")
    fits_memory = True  # paths are summed over the whole file
    ticks_per_second = 0  # lengths are ticks alone, unless an option gives it

    def __init__(self, source: Source, request: OpenRequest) -> None:
        super().__init__(source, request)
        self.ticks_per_second = max(0, int(request.options.get("cycle_frequency") or 0))
        self._names = FunctionNames(request.options, self.strings, whole_ids=True)

    def resume(self) -> None:
        """A file that grows is not followed: its paths are sums."""

    def _run_pass(self, *, whole: bool) -> ProfilePass:  # noqa: ARG002 (all is in memory)
        return ProfilePass(self, self._names)

    def _report(self, passed: Any) -> None:
        super()._report(passed)
        for offset, nbytes in passed.cut:
            self.diagnostics.add(CUT_PATH, offset, None, nbytes)
        for rule, value in self._names.findings():
            self.diagnostics.add(rule, value=value)

    def _small(self, name: str, passed: Any) -> Columns:
        return dict(passed.tables[name])

    def _facts(self, passed: Any) -> dict[str, Any]:
        return {
            "mode": "profiling",
            "frequency_hz": self.ticks_per_second or "not known: ticks are taken for nanoseconds",
            "process": passed.process,
            "threads": passed.rows["threads"],
            "functions": passed.rows["xray_functions"],
            "calls": int(passed.tables["slices"]["xray_calls"].sum()),
        }
