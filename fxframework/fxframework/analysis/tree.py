"""Call trees: the calls of a capture grouped by the chain of their callers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis import kernels
from fxframework.analysis.calls import NO_THREAD, CallBatches, Calls, Functions, ThreadNames, in_ns
from fxframework.analysis.lazy import LazySequence
from fxframework.io.spill import Spill
from fxframework.kernels.buffers import view
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.strings import StringPool

__all__ = ["CallTree", "call_tree", "merged"]

I64 = NDArray[np.int64]
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
        return self.functions.name(number) if number >= 0 else self.roots[node]

    def depths(self) -> NDArray[np.int32]:
        """Return the depth of each node, int32 of shape (m,): 0 for a root."""
        depth = np.zeros(len(self), np.int32)
        kernels.measure_depths(view(self.parent, np.int32), depth.data)
        return depth

    def walk(self, weight: I64 | None = None) -> Iterator[tuple[int, int]]:
        """Yield each node with its depth, parents before their children.

        Siblings come in order of appearance, or, with ``weight`` (shape (m,)), the heaviest first.
        """
        if weight is None and not (self.parent[1:] < self.parent[:-1]).any():
            order = np.arange(len(self), dtype=np.int32)
        else:
            keys = (self.parent,) if weight is None else (-weight, self.parent)
            order = np.lexsort(keys).astype(np.int32)
        above = self.parent[order]
        alike = above[1:] == above[:-1]
        beside = np.full(len(self), -1, np.int32)
        beside[order[:-1][alike]] = order[1:][alike]
        first = np.full(len(self), -1, np.int32)
        heads = np.flatnonzero(np.concatenate(([True], ~alike)) & (above >= 0))
        first[above[heads]] = order[heads]
        del order, above, alike, heads
        down, across, up = first.data, beside.data, view(self.parent, np.int32)
        for root in range(len(self.roots)):
            node, depth = root, 0
            while True:
                yield node, depth
                if down[node] >= 0:
                    node = down[node]
                    depth += 1
                    continue
                while depth and across[node] < 0:
                    node = up[node]
                    depth -= 1
                if not depth:
                    break
                node = across[node]

    def path(self, node: int) -> list[int]:
        """Return the nodes from below the root to ``node``."""
        found = []
        while node >= len(self.roots):
            found.append(node)
            node = int(self.parent[node])
        return found[::-1]

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
    parts = CallBatches(capture, by, calls)
    ids = parts.threads
    numbers = np.zeros(int(ids[-1]) + 2 if ids.size else 1, np.int32)
    roots: Sequence[str] = ["all threads"]
    if per_thread:
        names = ThreadNames(capture)
        roots = LazySequence(ids.size, lambda at: names.get(int(ids[at]), NO_THREAD))
        numbers[ids + 1] = np.arange(ids.size, dtype=np.int32)
    builder = kernels.TreeBuilder(numbers.data, len(roots), ROOM, depth)
    nodes = Spill(np.int32)
    used, timeless, part = len(roots), 0, None
    for part in parts.parts():
        first, stop = part.first, part.first + part.function.size
        nodes.grow(stop)[first:stop] = -1
        timeless += int(np.count_nonzero(part.length == 0))
        builder.load(
            part.function.data,
            part.parent.data,
            part.length.data,
            part.thread.data,
            nodes.array.data,
            first,
        )
        while builder.row < stop:
            used = builder.run()
            nodes.release()
            parts.release()
    parent, function, count, opened, total, loose = (
        np.asarray(column)[:used]
        for column in (
            builder.parents,
            builder.functions,
            builder.counts,
            builder.opened,
            builder.totals,
            builder.loose,
        )
    )
    functions, per_second, asynchronous = parts.functions, parts.per_second, parts.asynchronous
    deep = builder.deep
    own_nodes = (nodes.array[: len(calls or ())] >> 1) if with_nodes else None
    del builder, parts, part, nodes
    top = len(roots)
    own = np.add(total, loose, out=loose)
    for first in range(top, used, BLOCK):
        some = slice(first, first + BLOCK)
        np.subtract.at(own, parent[some], total[some])
    np.maximum(own, 0, out=own)
    own[:top] = 0
    total[:top] = 0
    kernels.add_to_roots(parent.data, own.data, np.zeros(used, np.int32).data, total.data)
    return CallTree(
        roots=roots,
        functions=functions,
        parent=parent,
        function=function,
        count=count,
        unfinished=opened,
        total=total,
        own=own,
        per_second=per_second,
        asynchronous=asynchronous,
        deep=deep,
        timeless=timeless,
        nodes=own_nodes,
    )


def merged(trees: Sequence[CallTree]) -> CallTree:
    """Merge trees of several captures into one, in nanoseconds, with functions matched by name."""
    if len(trees) == 1:
        return trees[0]
    roots: dict[str, int] = {}
    for tree in trees:
        for name in tree.roots:
            roots.setdefault(name, len(roots))
    pool = StringPool()
    nodes: dict[tuple[int, int], int] = {}
    parents, numbers = [-1] * len(roots), [-1] * len(roots)
    sums = [[0, 0, 0, 0] for _ in roots]
    for tree in trees:
        columns = tree.count, tree.unfinished, tree.in_ns(tree.total), tree.in_ns(tree.own)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        place: list[int] = []
        for node, (above, number, figures) in enumerate(
            zip(tree.parent.tolist(), tree.function.tolist(), rows, strict=True)
        ):
            if above < 0:
                here = roots[tree.roots[node]]
            else:
                own = pool.intern(tree.functions.name(number).encode())
                key = place[above], own
                here = nodes.setdefault(key, len(parents))
                if here == len(parents):
                    parents.append(key[0])
                    numbers.append(own)
                    sums.append([0, 0, 0, 0])
            place.append(here)
            sums[here] = [a + b for a, b in zip(sums[here], figures, strict=True)]
    count, unfinished, total, own_time = np.array(sums, np.int64).reshape(-1, 4).T
    return CallTree(
        roots=list(roots),
        functions=Functions(pool, np.arange(len(pool), dtype=np.int32)),
        parent=np.array(parents, np.int32),
        function=np.array(numbers, np.int32),
        count=count,
        unfinished=unfinished,
        total=total,
        own=own_time,
        # If no rate is known, times are still ticks.
        per_second=NS_PER_SECOND if any(tree.per_second for tree in trees) else 0,
        asynchronous=sum(tree.asynchronous for tree in trees),
    )
