"""Profile: opens the files of XRay's profiling mode; paths of calls become slices.

A profile has no times, only how long the calls of each path took together. So each path of a thread
is one slice, as long as all its calls, and the paths of a thread lie one behind the other, each
within its caller's, from time 0 on.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fx_xray.profile import CUT_PATH, FORMAT, Block, Header, Total
from fx_xray.read.batches import call_columns, function_columns
from fx_xray.read.events import to_ns
from fx_xray.read.symbols import FunctionNames
from fx_xray.read.tables import PROFILE_CALLS, PROFILE_SCHEMAS
from fxframework.kernels.arrays import I64
from fxframework.kernels.calls import TreeBuilder
from fxframework.model.clock import NS_MAX
from fxframework.wire.capture import BlockPass, DeclaredCapture, Tasks
from fxframework.wire.findings import findings_of
from fxframework.wire.many import FileNumbers

NO_BLOCKS: Final = dict.fromkeys(("offset", "xray_bytes", "xray_tid"), np.zeros(0, np.int64))
WORD_BYTES: Final = 4


def paths_in(file: FileNumbers, offset: int, nbytes: int) -> Iterator[tuple[NDArray[Any], int]]:
    """Yield the paths of the block at an offset: functions, and the byte where the total begins.

    Words of one of two functions: 7 3, and the total: 0, then calls and ticks, two words each:
    1 0 900 0. Of what is left at the end of the block, the byte is 0.
    """
    begin = offset + Block.layout.least
    counts = np.array([(offset + nbytes - begin) // WORD_BYTES])
    words = file.listed(np.array([begin]), counts, WORD_BYTES, big=False)
    end = 0
    for zero in np.flatnonzero(words == 0).tolist():
        if zero >= end:  # others are in the figures of a path
            yield words[end:zero], begin + WORD_BYTES * zero
            end = zero + Total.layout.least // WORD_BYTES
    if end < words.size:
        yield words[end:], 0


def spread(parents: list[int], threads: int, paths: I64, figures: list[I64]) -> I64:
    """Return calls and ticks of paths, and the ticks at which they begin, of shape (3, paths).

    The first nodes are the threads, all others paths. ``figures`` are the calls and the ticks of
    some ``paths``; those that were not written are as long as what they called.
    """
    unsigned = np.array(figures).view(np.uint64)
    if unsigned.sum(dtype=np.float64) > NS_MAX / 2:  # so that all together fit
        unsigned = np.minimum(unsigned, NS_MAX // paths.size)
    sums = np.zeros((len(parents), 2), np.int64)
    np.add.at(sums, paths, unsigned.T.astype(np.int64))
    ticks = sums[:, 1].tolist()
    of_callees, starts, next_starts = ([0] * len(parents) for _ in range(3))
    # A walk backwards meets a path when the ticks of all of its callees are summed, a walk forwards
    # when the start of its caller is known.
    for path in range(len(parents) - 1, threads - 1, -1):
        ticks[path] = max(ticks[path], of_callees[path])
        of_callees[parents[path]] += ticks[path]
    for path in range(threads, len(parents)):
        caller = parents[path]
        starts[path] = next_starts[path] = next_starts[caller]
        next_starts[caller] += ticks[path]
    del of_callees, next_starts  # they have numbers of Python, one for each path
    rows: I64 = np.array((sums[:, 0], ticks, starts), np.int64)[:, threads:]
    np.minimum(rows, NS_MAX // max(1, rows.shape[1]), out=rows)  # so that sums over all paths fit
    return rows


class ProfilePass(BlockPass):
    """A whole profile, read once, with its paths: each once, callers before callees."""

    def __init__(self, capture: ProfileCapture, *, whole: bool) -> None:  # noqa: ARG002 (always)
        super().__init__(capture, whole=True)
        file = FileNumbers(capture.source.data)
        _, of_blocks = (self.whole or {}).get("xray_blocks", (0, NO_BLOCKS))
        offsets = of_blocks["offset"]
        self.process = 0
        if "header" in self.kinds:
            self.process = Header.layout.place("process").get(file.data.data, 0)
        self.tasks = Tasks()
        threads = self.tasks.of(np.uint64(self.process), of_blocks["xray_tid"], offsets)
        # The first nodes of the tree are the threads, all others paths.
        first = len(self.tasks.tids)
        tree = TreeBuilder(np.zeros(0, np.int32), first, first, 0)
        nodes_used = [first]
        totals = array("q")
        blocks = np.stack([offsets, of_blocks["xray_bytes"], threads], axis=1)
        for offset, nbytes, thread in blocks.tolist():
            for functions, total in paths_in(file, offset, nbytes):
                if not total:
                    cut = findings_of(int(CUT_PATH), offset, -1, functions.nbytes, 1)
                    self._findings.add(cut)
                    break
                node = thread
                for function in functions[::-1].tolist():
                    node = tree.node(node, function)
                totals.extend((node, total))
            nodes_used.append(tree.used)
            capture.check_budget()
        paths, places = np.array(totals).reshape(-1, 2).T
        figures = file.of_records(Total.layout, ["calls", "ticks"], places, big=False)
        parents, functions = tree.nodes()
        calls, ticks, starts = spread(parents.tolist(), first, paths, figures)
        functions = functions[first:].view(np.uint32)
        new_paths = np.diff(nodes_used)
        rows = {
            "offset": np.repeat(offsets, new_paths),
            "ticks": starts,
            "thread": np.repeat(threads, new_paths),
            "function": functions,
            "depth": np.asarray(tree.levels)[first : tree.used] - 1,
            "parent": np.maximum(parents[first:] - first, -1).astype(np.int64),
        }
        self.names = FunctionNames(capture.request.options, capture.strings, whole_ids=True)
        slices = call_columns(rows, ticks, self.names, capture.ticks_per_second)
        self.small["slices"] = slices | {"xray_calls": calls}
        ids, first_paths, id_of_path = np.unique(functions, return_index=True, return_inverse=True)
        self.names.functions = ids.astype(np.int64)
        calls_of_ids = np.zeros(ids.size, np.int64)
        np.add.at(calls_of_ids, id_of_path, calls)
        first_offsets = rows["offset"][first_paths]
        self.small["xray_functions"] = function_columns(self.names, calls_of_ids, first_offsets)
        ends = to_ns(starts + ticks, capture.ticks_per_second)
        if ends.size:
            self._range = 0, int(ends.max())


class ProfileCapture(DeclaredCapture, of=FORMAT):
    """A profile: a slice for each path of a thread."""

    pass_class = ProfilePass
    streamed = frozenset({"xray_blocks"})
    schemas = PROFILE_SCHEMAS
    calls = PROFILE_CALLS
    fits_memory = True  # paths are summed over the whole file

    @property
    def ticks_per_second(self) -> int:
        """As an option gives it; 0 where lengths are ticks alone."""
        return max(0, int(self.request.options.get("cycle_frequency") or 0))

    def _report(self, passed: Any) -> None:
        super()._report(passed)
        passed.names.report(self.diagnostics)

    def _facts(self, passed: Any) -> dict[str, Any]:
        return {
            "mode": "profiling",
            "frequency_hz": self.ticks_per_second or "not known: ticks are taken for nanoseconds",
            "process": passed.process,
            "threads": passed.rows["threads"],
            "functions": passed.rows["xray_functions"],
            "calls": int(passed.small["slices"]["xray_calls"].sum()),
        }
