"""The tree: the order of its nodes, of what belongs to them, and the paths of nodes.

All is done for all nodes at once. What lies between a node and the root is met by jumps to its
parent, then over 2 nodes, over 4, over 8 and so on, so that it matters little how deep a tree is.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_inspect.read.chains import bounds_of
from fxframework.kernels.pools import codes_of
from fxframework.kernels.sorting import begins_of_runs, stable_order
from fxframework.kernels.stretches import copied
from fxframework.model.strings import StringPool

__all__ = ["TreeOrder", "cycles_of", "paths_of", "repeated", "tree_order"]

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]
TOGETHER = 1 << 16
"""Rows that are sorted together to find equal names."""
PATH_BYTES = 1 << 16
"""Bytes of paths that are made together; one path may be longer."""


@attrs.define(eq=False)
class TreeOrder:
    """The nodes below the root by number: each before its children, siblings as they were given."""

    places: I32
    """The number of each node; -1 for one that is not below the root. Node 0 is the root."""
    nodes: I32
    """The nodes by number."""
    parents: I32
    """The number of the parent of each, by number; -1 for the root."""
    has_cycles: bool
    """Whether the parents of some nodes lead back to them."""

    @property
    def count(self) -> int:
        """How many nodes are in the tree."""
        return int(self.nodes.size)

    def arranged(self, owners: NDArray[Any]) -> NDArray[Any]:
        """Return rows in the order of the nodes that own them, without those of no node."""
        places = self.places[owners]
        places[owners < 0] = -1
        rows = np.flatnonzero(places >= 0)
        if rows.size < places.size:
            places = places[rows]
        order = stable_order(places.astype(np.int64))
        return rows if order is None else rows[order]


def _jumps(parents: I32) -> I32:
    """Return the parent of each node, where the root is its own; their count stands for none."""
    jumps = np.append(parents, np.int32(parents.size))
    jumps[jumps < 0] = parents.size
    jumps[0] = 0
    return jumps


def tree_order(parents: I32) -> TreeOrder:
    """Return the order of nodes with these parents (-1: none); node 0 is the root."""
    none = parents.size
    jump_target = _jumps(parents)
    sizes = np.ones(none + 1, np.int32)
    """Nodes below each, with itself, up to as many steps away as a jump has."""
    steps = 1
    while ((jump_target > 0) & (jump_target < none)).any() and steps <= none:
        np.add.at(sizes, jump_target, sizes.copy())
        jump_target = jump_target.take(jump_target)
        steps *= 2
    has_cycles = bool(((jump_target > 0) & (jump_target < none)).any())
    is_below = jump_target[:-1] == 0
    nodes_below_root = np.flatnonzero(is_below)[1:]
    order = stable_order(parents[nodes_below_root].astype(np.int64))
    siblings = nodes_below_root if order is None else nodes_below_root[order]
    """All children, by parent."""
    owners = parents[siblings]
    subtree_sizes = sizes[siblings]
    nodes_before = np.cumsum(subtree_sizes, dtype=np.int32) - subtree_sizes
    first_siblings = np.flatnonzero(begins_of_runs(owners))
    counts = np.diff(np.append(first_siblings, owners.size))
    places = np.zeros(none + 1, np.int32)
    """The number of each node, counted from the node that its jump leads to."""
    places[siblings] = 1 + nodes_before - np.repeat(nodes_before[first_siblings], counts)
    jump_target = _jumps(parents)
    while steps > 1:
        places += places.take(jump_target)
        jump_target = jump_target.take(jump_target)
        steps //= 2
    places = places[:-1]
    places[~is_below] = -1
    nodes = np.zeros(nodes_below_root.size + 1, np.int32)
    nodes[places[nodes_below_root]] = nodes_below_root
    parent_numbers = np.full(nodes.size, -1, np.int32)
    parent_numbers[1:] = places[parents[nodes[1:]]]
    return TreeOrder(places, nodes, parent_numbers, has_cycles)


def cycles_of(parents: I32) -> I64:
    """Return the first node of each cycle of parents, in the order in which nodes lead to them."""
    none = parents.size
    jump = _jumps(parents)
    least_node = np.arange(none + 1, dtype=np.int32)
    """The least node that is met on the way of a jump."""
    for _ in range(none.bit_length()):
        least_node = np.minimum(least_node, least_node.take(jump))
        jump = jump.take(jump)
    leading = np.flatnonzero((jump > 0) & (jump < none))
    # So many steps from a node lead into its cycle, and around it.
    cycle_nodes = least_node[jump[leading]]
    _, first_rows = np.unique(cycle_nodes, return_index=True)
    return cycle_nodes[np.sort(first_rows)].astype(np.int64)


def repeated(owners: I64, codes: I32, different: int, most: int) -> tuple[I64, int]:
    """Return the rows whose owner has a row with the same code before, and how many there are.

    Rows of one owner follow one another; codes are less than ``different``. Of the rows, which are
    in order, those behind the first ``most`` may be left out.
    """
    repeated_rows: list[I64] = [np.zeros(0, np.int64)]
    count = 0
    start = 0
    while start < owners.size:
        stop = min(start + TOGETHER, owners.size)
        if stop < owners.size:
            # To where another owner begins, before or behind.
            ends = np.flatnonzero(owners[start + 1 : stop + 1] != owners[start:stop])
            if ends.size:
                stop = start + 1 + int(ends[-1])
            else:
                stop = start + int(np.searchsorted(owners[start:], owners[start], "right"))
        keys = owners[start:stop] * different + codes[start:stop]
        in_order = np.sort(keys)
        repeat_count = int(np.count_nonzero(in_order[1:] == in_order[:-1]))
        if repeat_count and count < most:
            order = np.argsort(keys, kind="stable")
            is_again = keys[order[1:]] == keys[order[:-1]]
            repeated_rows.append(start + np.sort(order[1:][is_again]))
        count += repeat_count
        start = stop
    return np.concatenate(repeated_rows)[:most], count


def paths_of(pool: StringPool, names: I32, parents: I32, longest: int, most: int) -> I32:
    """Return the codes of the paths of nodes, given in the order of the tree.

    ``names`` are codes and ``parents`` numbers of nodes. A path of more than ``longest`` bytes, and
    one with which all so far would take more than ``most``, is left out: its code is -1.
    """
    own = np.minimum(pool.pool.array("lengths"), longest + 1).astype(np.int32)
    lengths = np.append(1 + own[names], np.int32(0))
    jump = np.append(parents, np.int32(names.size))
    jump[jump < 0] = names.size
    while (jump < names.size).any():
        lengths += lengths[jump]
        np.minimum(lengths, longest + 2, out=lengths)
        jump = jump[jump]
    del jump
    lengths = lengths[:-1] - 1
    chosen_nodes = _within(lengths, longest, most)
    codes = np.full(names.size, -1, np.int32)
    ranks = np.full(names.size, -1, np.int32)
    ranks[chosen_nodes] = np.arange(chosen_nodes.size)
    path_bounds = bounds_of(lengths[chosen_nodes])
    start = 0
    while start < chosen_nodes.size:
        fitting_stop = np.searchsorted(path_bounds[1:], path_bounds[start] + PATH_BYTES, "right")
        stop = max(start + 1, int(fitting_stop))
        nodes = chosen_nodes[start:stop]
        parents_of_nodes = parents[nodes]
        has_parent = parents_of_nodes >= 0
        # The path of a parent is shorter, so it was chosen before: here, or in an earlier part.
        places = ranks[parents_of_nodes] - start
        is_here = has_parent & (places >= 0)
        is_earlier = has_parent & ~is_here
        column = pool.column(np.concatenate((names[nodes], codes[parents_of_nodes[is_earlier]])))
        texts = np.concatenate((np.frombuffer(b"/", np.uint8), column.data))
        bounds = texts.size + bounds_of(lengths[nodes])
        # The path of the parent, a slash, and the name: copied one path after the other, so that
        # each finds that of its parent.
        starts, sizes = np.zeros((2, nodes.size, 3), np.int64)
        starts[is_here, 0] = bounds[places[is_here]]
        starts[is_earlier, 0] = 1 + column.offsets[nodes.size : -1]
        sizes[:, 0] = np.where(has_parent, lengths[parents_of_nodes], 0)
        sizes[:, 1] = has_parent
        starts[:, 2] = 1 + column.offsets[: nodes.size]
        sizes[:, 2] = np.diff(column.offsets[: nodes.size + 1])
        path_bytes = np.empty(int(bounds[-1]), np.uint8)
        path_bytes[: texts.size] = texts
        offsets = texts.size + bounds_of(sizes.reshape(-1))
        copied(path_bytes, starts.reshape(-1), offsets, path_bytes)
        with pool.lock:
            codes[nodes] = codes_of(pool.pool, path_bytes, bounds[:-1], np.diff(bounds))
        start = stop
    return codes


def _within(lengths: I32, longest: int, bytes_left: int) -> I64:
    """Return the rows whose lengths fit what is left, one after the other."""
    rows = np.flatnonzero(lengths <= longest)
    fitting_rows: list[I64] = [np.zeros(0, np.int64)]
    while rows.size:
        bytes_so_far = np.cumsum(lengths[rows], dtype=np.int64)
        stop = int(np.searchsorted(bytes_so_far, bytes_left, "right"))
        fitting_rows.append(rows[:stop])
        bytes_left -= int(bytes_so_far[stop - 1]) if stop else 0
        # Those that are longer than what is left do not fit any more.
        rows = rows[stop:][lengths[rows[stop:]] <= bytes_left]
    return np.concatenate(fitting_rows)
