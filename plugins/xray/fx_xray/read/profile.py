"""Profile: opens the files of XRay's profiling mode, and copies what is sound of them.

A profile has no times, only how long the calls of each path took together. So each path of a thread
is one slice, as long as all its calls, and the paths of a thread lie one behind the other, each
within its caller's, from time 0 on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from fx_xray.profile import CUT_PATH, FORMAT, Block, Function, Header, Total
from fx_xray.read.batches import call_columns, function_columns
from fx_xray.read.events import summed_by_function, to_ns
from fx_xray.read.symbols import FunctionNames
from fx_xray.read.tables import PROFILE_CALLS, PROFILE_SCHEMAS
from fxframework.kernels.arrays import I32, I64, Bools
from fxframework.kernels.calls import TreeBuilder
from fxframework.kernels.stacks import nodes_of
from fxframework.model.clock import NS_MAX
from fxframework.wire.capture import BlockPass, DeclaredCapture, Tasks
from fxframework.wire.findings import findings_of
from fxframework.wire.many import FileNumbers
from fxframework.wire.verbs.copies import Copies, CopyReader

NO_BLOCKS: Final = dict.fromkeys(("offset", "xray_bytes", "xray_tid"), np.zeros(0, np.int64))


def whole_paths(file: FileNumbers, offsets: I64, stops: I64) -> tuple[I64, I64, Bools, I64]:
    """Return the items of the paths of some blocks: places, blocks, and which are totals.

    The items of a path are its functions from the innermost to the outermost, and its total. Also
    return, by block, the byte where the last whole path ends.
    """
    ends = offsets + Block.layout.least  # of what is before the paths
    walker = Block.layout.by_name["items"].walker(big=False)
    items, *_ = walker.walk(file.data, offsets, ends, stops, np.full(stops.size, -1))
    places, nbytes, blocks, _ = items
    is_total = nbytes == Total.layout.least
    np.maximum.at(ends, blocks[is_total], (places + nbytes)[is_total])
    is_whole = places < ends[blocks]
    return places[is_whole], blocks[is_whole], is_total[is_whole], ends


def spread(parents: I32, threads: int, paths: I64, figures: list[I64]) -> I64:
    """Return calls and ticks of paths, and the ticks at which they begin, of shape (3, paths).

    The first nodes are the threads, all others paths. ``figures`` are the calls and the ticks of
    some ``paths``; those that were not written are as long as what they called. Sums of all fit.
    """
    unsigned = np.array(figures).view(np.uint64)
    if unsigned.sum(dtype=np.float64) > NS_MAX / 2:  # so that all together fit
        unsigned = np.minimum(unsigned, NS_MAX // paths.size)
    columns = np.zeros((5, parents.size), np.int64)
    np.add.at(columns[:2].T, paths, unsigned.T.view(np.int64))
    callers = parents.data
    _, ticks, starts, of_callees, next_starts = (column.data for column in columns)
    # A walk backwards meets a path when the ticks of all of its callees are summed, a walk forwards
    # when the start of its caller is known.
    for path in range(parents.size - 1, threads - 1, -1):
        ticks[path] = max(ticks[path], of_callees[path])
        of_callees[callers[path]] += ticks[path]
    for path, caller in enumerate(callers[threads:], threads):
        starts[path] = next_starts[path] = next_starts[caller]
        next_starts[caller] += ticks[path]
    return columns[:3, threads:].clip(max=NS_MAX // max(1, parents.size - threads))


class ProfilePass(BlockPass):
    """A whole profile, read once, with its paths: each once, callers before callees."""

    def __init__(self, capture: ProfileCapture, *, whole: bool) -> None:  # noqa: ARG002 (always)
        super().__init__(capture, whole=True)
        file = FileNumbers(capture.source.data)
        _, of_blocks = (self.whole or {}).get("xray_blocks", (0, NO_BLOCKS))
        offsets = of_blocks["offset"]
        stops = offsets + of_blocks["xray_bytes"]
        places, blocks, is_total, ends = whole_paths(file, offsets, stops)
        cut = np.flatnonzero(ends < stops)
        cut_bytes = (stops - ends)[cut]
        self.notes[0].add(findings_of(int(CUT_PATH), offsets[cut], -1, cut_bytes, cut.size))
        self.process = 0
        if "header" in self.kinds:
            self.process = Header.layout.place("process").get(file.data.data, 0)
        self.tasks = Tasks()
        threads = self.tasks.of(np.uint64(self.process), of_blocks["xray_tid"], offsets)
        # The first nodes of the tree are the threads, all others paths.
        first = len(self.tasks.tids)
        tree = TreeBuilder(np.arange(-1, first, dtype=np.int32), first, first, 0)
        is_function = ~is_total
        # A function is called by the next one; the outermost, which the total follows, by none.
        callers = np.where(np.append(is_total[1:], True), -1, np.cumsum(is_function))[is_function]
        ids = file.integers(places[is_function], Function.layout.least, big=False).astype(np.int32)
        node_of_item = threads[blocks]
        nodes = np.full(ids.size, -1, np.int32)
        tree.add(ids, callers, np.zeros_like(callers), node_of_item[is_function], nodes, 0)
        node_of_item[is_function] = nodes_of(nodes)
        # The node of a path is that of its innermost function, which is behind the total before.
        paths = node_of_item[np.append(True, is_total)[:-1]]
        figures = file.of_records(Total.layout, ["calls", "ticks"], places[is_total], big=False)
        known_nodes, first_items = np.unique(node_of_item, return_index=True)
        block_of_path = blocks[first_items[known_nodes >= first]]
        parents, functions = tree.nodes()
        depths = np.asarray(tree.levels)[first : tree.used] - 1
        del tree, places, blocks, is_total, is_function, callers, ids, nodes, node_of_item
        calls, ticks, starts = spread(parents, first, paths, figures)
        rows = {
            "offset": offsets[block_of_path],
            "ticks": starts,
            "thread": threads[block_of_path],
            "function": functions[first:].view(np.uint32),
            "depth": depths,
            "parent": np.maximum(parents[first:] - first, -1).astype(np.int64),
        }
        self.names = FunctionNames(capture.request.options, capture.strings, whole_ids=True)
        slices = call_columns(rows, ticks, self.names, capture.ticks_per_second)
        self.small["slices"] = slices | {"xray_calls": calls}
        self.names.functions, *sums = summed_by_function(rows["function"], calls, rows["offset"])
        self.small["xray_functions"] = function_columns(self.names, *sums)
        ends_in_ns = to_ns(starts + ticks, capture.ticks_per_second)
        if ends_in_ns.size:
            self.range = 0, int(ends_in_ns.max())


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


class WholePaths(CopyReader):
    """Copies blocks without a path that their end cuts off."""

    def copies(self) -> Iterator[Copies]:
        """Yield the records of each part of the file."""
        for records in super().copies():
            ends = records.offsets + records.sizes
            blocks = np.flatnonzero(records.offsets)  # the header is at 0
            *_, ends[blocks] = whole_paths(self.numbers, records.offsets[blocks], ends[blocks])
            yield self.shortened(records, ends, CUT_PATH, "a path without its figures")
