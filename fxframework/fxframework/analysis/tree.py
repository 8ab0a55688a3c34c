"""Call trees: the calls of a capture grouped by the chain of their callers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.calls import (
    NO_THREAD,
    CallBatch,
    CallBatches,
    Calls,
    Functions,
    in_ns,
    thread_names,
)
from fxframework.analysis.lazy import LazySequence
from fxframework.io.spill import Spill
from fxframework.kernels.arrays import I64
from fxframework.kernels.buffers import view
from fxframework.kernels.calls import IS_DEEP, IS_OPEN, NODE_SHIFT, TreeBuilder
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.strings import StringPool

ROOM = 1 << 12
"""Initial capacity in nodes."""
BLOCK = 1 << 14
"""Number of nodes that are processed at once."""


@attrs.frozen(eq=False)
class CallTree:
    """The nodes of a call tree, as columns of one length m; a parent precedes its children.

    The first nodes are the roots: one for each thread that has calls, or one for all of them.
    """

    roots: Sequence[str]
    """Names of the roots."""
    functions: Functions
    parent: NDArray[np.int32]
    """-1 for a root."""
    function: NDArray[np.int32]
    """Index of the function in ``functions``; -1 for a root."""
    count: I64
    """Number of calls that ended; 0 for a root."""
    unfinished: I64
    """Number of calls that never ended."""
    total: I64
    """Time of the calls that ended; for a root, the time of all calls below it."""
    own: I64
    """The same without the time of ended calls directly within them; 0 for a root."""
    per_second: int
    """Units of time per second; 0 if unknown."""
    asynchronous: int = 0
    """Number of asynchronous slices, which belong to no stack and are left out."""
    deep: int = 0
    """Number of calls below the depth limit, which are counted at the node above them."""
    timeless: int = 0
    """Number of calls that took no time."""
    nodes: NDArray[np.int32] | None = None
    """The node of each call, in the order of ``Calls``, if that was asked for."""

    def __len__(self) -> int:
        return int(self.parent.size)

    def name(self, node: int) -> str:
        """Return the name of a node."""
        number = int(self.function[node])
        if number < 0:
            return self.roots[node]
        return self.functions.name(number)

    def depths(self) -> NDArray[np.int32]:
        """Return the depth of each node, int32 of shape (m,): 0 for a root."""
        _, depths = _roots_and_depths(self.parent)
        return depths

    def walk(self, weight: I64 | None = None) -> Iterator[tuple[int, int]]:
        """Yield each node with its depth, parents before their children.

        Siblings come in order of appearance, or, with ``weight`` (shape (m,)), the heaviest first.
        """
        first_child, next_sibling = self._children(weight)
        parent = view(self.parent, np.int32)
        for root in range(len(self.roots)):
            node = root
            depth = 0
            while True:
                yield node, depth
                if first_child[node] >= 0:
                    node = first_child[node]
                    depth += 1
                    continue
                # Up to the nearest node with a sibling that was not visited; roots have none.
                while depth and next_sibling[node] < 0:
                    node = parent[node]
                    depth -= 1
                if not depth:
                    break
                node = next_sibling[node]

    def _children(self, weight: I64 | None) -> tuple[memoryview, memoryview]:
        """Return the first child and the next sibling of each node, -1 for none."""
        goes_back = self.parent[1:] < self.parent[:-1]
        is_sorted = not goes_back.any()
        if weight is None and is_sorted:
            by_parent = np.arange(len(self), dtype=np.int32)
        elif weight is None:
            by_parent = np.lexsort((self.parent,)).astype(np.int32)
        else:
            by_parent = np.lexsort((-weight, self.parent)).astype(np.int32)
        parents = self.parent[by_parent]
        next_is_sibling = parents[1:] == parents[:-1]
        next_sibling = np.full(len(self), -1, np.int32)
        with_sibling = by_parent[:-1][next_is_sibling]
        next_sibling[with_sibling] = by_parent[1:][next_is_sibling]
        begins_siblings = np.concatenate(([True], ~next_is_sibling))
        first_places = np.flatnonzero(begins_siblings & (parents >= 0))
        first_child = np.full(len(self), -1, np.int32)
        first_child[parents[first_places]] = by_parent[first_places]
        return first_child.data, next_sibling.data

    def path(self, node: int) -> list[int]:
        """Return the nodes from below the root to ``node``."""
        innermost_first = []
        while node >= len(self.roots):
            innermost_first.append(node)
            node = int(self.parent[node])
        return innermost_first[::-1]

    def in_ns(self, times: I64) -> I64:
        """Convert times to nanoseconds; see ``calls.in_ns``."""
        return in_ns(times, self.per_second)


def call_tree(
    capture: Capture,
    *,
    by: str = "",
    per_thread: bool = False,
    depth: int = 0,
    calls: Calls | None = None,
    with_nodes: bool = False,
) -> CallTree:
    """Return the call tree of a capture, with calls grouped by ``by`` (see ``Calls.of``).

    It has no nodes deeper than ``depth`` (0: no limit): deeper calls are counted at the node above
    them, and their own time is part of its own time. ``calls`` are those of the capture, if they
    are in memory already, without asynchronous slices; ``with_nodes`` keeps the node of each call.

    Raises UsageError if the capture has no slices.
    """
    batches = CallBatches(capture, by, calls)
    thread_ids = batches.threads
    # The root of each thread, by id + 1: -1 is the id of calls of no thread.
    last_id = int(thread_ids.max(initial=-1))
    root_of_thread = np.zeros(last_id + 2, np.int32)
    roots: Sequence[str] = ["all threads"]
    if per_thread:
        names = thread_names(capture)
        roots = LazySequence(
            thread_ids.size, lambda root: names.get(int(thread_ids[root]), NO_THREAD)
        )
        root_of_thread[thread_ids + 1] = np.arange(thread_ids.size, dtype=np.int32)
    builder = TreeBuilder(root_of_thread, len(roots), ROOM, depth)
    node_of_call = Spill(np.int32)
    sums = _Sums()
    timeless = 0
    batch = None
    for batch in batches.parts():
        first_row = batch.first
        stop = first_row + batch.function.size
        node_of_call.grow(stop)[first_row:stop] = -1
        timeless += int(np.count_nonzero(batch.length == 0))
        columns = (batch.function, batch.parent, batch.length, batch.thread)
        builder.add(*columns, node_of_call.array, first_row)
        sums.add(builder, batch, node_of_call.array)
        # Of calls that were added up, only those that enclose later ones are read again.
        node_of_call.release()
        batches.release()
    parent, function = builder.nodes()
    count, unfinished, total, time_in_unfinished = sums.of(parent.size)
    deep = builder.deep
    if batches.stands_for is not None:
        count[:] = 0
        nodes_of_all = node_of_call.array[: batches.stands_for.size] >> NODE_SHIFT
        np.add.at(count, nodes_of_all, batches.stands_for)
    functions = batches.functions
    per_second = batches.per_second
    asynchronous = batches.asynchronous
    nodes = None
    if with_nodes:
        nodes = node_of_call.array[: len(calls or ())] >> NODE_SHIFT
    del builder, batches, batch, sums, node_of_call  # all that is as large as the capture

    # Own time: a node's total without those of its children, but what these spent in calls of
    # the node that never ended is in no total.
    own = np.add(total, time_in_unfinished, out=time_in_unfinished)
    for first_node in range(len(roots), parent.size, BLOCK):
        block = slice(first_node, first_node + BLOCK)
        np.subtract.at(own, parent[block], total[block])
    np.maximum(own, 0, out=own)
    own[: len(roots)] = 0
    total[: len(roots)] = 0
    root_of_node, _ = _roots_and_depths(parent)
    np.add.at(total, root_of_node[len(roots) :], own[len(roots) :])
    return CallTree(
        roots=roots,
        functions=functions,
        parent=parent,
        function=function,
        count=count,
        unfinished=unfinished,
        total=total,
        own=own,
        per_second=per_second,
        asynchronous=asynchronous,
        deep=deep,
        timeless=timeless,
        nodes=nodes,
    )


class _Sums:
    """Sums of calls by node: how many ended and never did, and their lengths."""

    def __init__(self) -> None:
        self._sums = np.zeros((4, 0), np.int64)

    def of(self, nodes: int) -> tuple[I64, I64, I64, I64]:
        """Return the sums of nodes, each of shape (nodes,).

        How many calls ended and how many never did; the lengths of those that ended, but not of
        deep ones; and the lengths of ended calls right within ones that never did.
        """
        missing = nodes - self._sums.shape[1]
        if missing > 0:
            self._sums = np.pad(self._sums, ((0, 0), (0, missing + nodes // 2)))
        count, unfinished, total, in_unfinished = self._sums[:, :nodes]
        return count, unfinished, total, in_unfinished

    def add(self, builder: TreeBuilder, batch: CallBatch, node_of: NDArray[np.int32]) -> None:
        """Add the calls of a batch, whose nodes were just set."""
        parents, _ = builder.nodes()
        count, unfinished, total, in_unfinished = self.of(parents.size)
        stop = batch.first + batch.function.size
        for first in range(0, batch.function.size, BLOCK):
            length = batch.length[first : first + BLOCK]
            row = batch.first + first
            marks = node_of[row : row + length.size]
            node = marks >> NODE_SHIFT
            is_deep = (marks & IS_DEEP) != 0
            is_ended = length >= 0
            np.add.at(count, node[is_ended], 1)
            np.add.at(unfinished, node[~is_ended], 1)
            is_whole = is_ended & ~is_deep
            np.add.at(total, node[is_whole], length[is_whole])
            caller = batch.parent[first : first + BLOCK]
            caller_marks = node_of[np.clip(caller, 0, node_of.size - 1)]
            upper = np.where(is_deep, node, parents[node])
            # Of calls that enclose each other, the outermost one has none around it.
            is_within = (caller >= 0) & (caller < stop) & (caller_marks >> NODE_SHIFT == upper)
            is_loose = is_ended & is_within & ((caller_marks & IS_OPEN) != 0)
            np.add.at(in_unfinished, upper[is_loose], length[is_loose])


def _roots_and_depths(parent: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the root of each node, and how many nodes are above it."""
    depth = (parent >= 0).astype(np.int32)
    ancestor = np.where(parent >= 0, parent, np.arange(parent.size, dtype=np.int32))
    # From parent to grandparent to the fourth ancestor and so on, until all are roots.
    while depth[ancestor].any():
        depth += depth[ancestor]
        ancestor = ancestor[ancestor]
    return ancestor, depth


def merged(trees: Sequence[CallTree]) -> CallTree:
    """Merge trees of several captures into one, in nanoseconds, with functions matched by name."""
    if len(trees) == 1:
        return trees[0]
    roots: dict[str, int] = {}
    for tree in trees:
        for name in tree.roots:
            roots.setdefault(name, len(roots))
    pool = StringPool()
    builder = TreeBuilder(np.zeros(0, np.int32), len(roots), ROOM, 0)
    sums = [[0, 0, 0, 0] for _ in roots]
    for tree in trees:
        columns = (tree.count, tree.unfinished, tree.in_ns(tree.total), tree.in_ns(tree.own))
        figures_of_nodes = np.stack(columns, axis=1)
        merged_nodes: list[int] = []
        for node, (parent, function, figures) in enumerate(
            zip(
                tree.parent.tolist(),
                tree.function.tolist(),
                figures_of_nodes.tolist(),
                strict=True,
            )
        ):
            if parent < 0:
                merged_node = roots[tree.roots[node]]
            else:
                merged_function = pool.intern(tree.functions.name(function).encode())
                merged_node = builder.node(merged_nodes[parent], merged_function)
                if merged_node == len(sums):
                    sums.append([0, 0, 0, 0])
            merged_nodes.append(merged_node)
            for figure, value in enumerate(figures):
                sums[merged_node][figure] += value
    merged_parents, merged_functions = builder.nodes()
    count, unfinished, total, own = np.array(sums, np.int64).reshape(-1, 4).T
    return CallTree(
        roots=list(roots),
        functions=Functions(pool, np.arange(len(pool), dtype=np.int32)),
        parent=merged_parents,
        function=merged_functions,
        count=count,
        unfinished=unfinished,
        total=total,
        own=own,
        # If no rate is known, times are still ticks.
        per_second=NS_PER_SECOND if any(tree.per_second for tree in trees) else 0,
        asynchronous=sum(tree.asynchronous for tree in trees),
    )
