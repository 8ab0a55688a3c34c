"""The tree: the order of its nodes, of what belongs to them, and the paths of nodes.

All is done for all nodes at once. What lies between a node and the root is met by jumps to its
parent, then over 2 nodes, over 4, over 8 and so on, so that it matters little how deep a tree is.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_inspect.read.chains import bounds_of, end_of_part
from fxframework.kernels.pools import codes_of
from fxframework.kernels.sorting import begins_of_runs, stable_order
from fxframework.kernels.stretches import copied
from fxframework.model.strings import StringPool

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]
TOGETHER = 1 << 16
"""Rows that are sorted together to find equal names."""
PATH_BYTES = 1 << 16
"""Bytes of paths that are made together; one path may be longer."""
SLASH = ord("/")


@attrs.define(eq=False)
class TreeOrder:
    """The nodes below the root by number: each before its children, siblings as they were given."""

    places: I32
    """The number of each node; -1 for one that is not below the root. Node 0 is the root."""
    nodes: I32
    """The nodes by number."""
    parents: I32
    """The number of the parent of each, by number; -1 for the root."""
    ends: I32
    """The number behind those of its descendants, by number."""
    cycles: I64
    """The first node of each cycle of parents, in the order in which nodes lead to them."""

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
        order = stable_order(places)
        return rows if order is None else rows[order]


@attrs.define(eq=False)
class _Runs:
    """Runs of nodes, each of which is the only child of the node before it. The root is alone.

    A run is one node to what follows parents, so that many nodes in a row take no steps. The
    parent of a run is the last node of another run: only there can there be several children.
    """

    first_nodes: I64
    run_of: I32
    """The run of each node."""
    sizes: I32
    parents: I32
    """The run of the parent of each; that of the root is itself, and their count is none."""

    @classmethod
    def of(cls, parents: I32) -> _Runs:
        """Return the runs of nodes with these parents (-1: none)."""
        count = parents.size
        begins_run = np.ones(count, np.bool_)
        begins_run[2:] = parents[2:] != np.arange(1, count - 1, dtype=np.int32)
        has_children_elsewhere = np.zeros(count + 1, np.bool_)
        has_children_elsewhere[parents[begins_run]] = True
        begins_run[1:] |= has_children_elsewhere[: count - 1]
        run_of = np.cumsum(begins_run, dtype=np.int32) - np.int32(1)
        first_nodes = np.flatnonzero(begins_run)
        node_above = parents[first_nodes]
        run_above = run_of[node_above]
        run_above[node_above < 0] = first_nodes.size
        run_above[0] = 0
        sizes = np.diff(first_nodes, append=count).astype(np.int32)
        return cls(first_nodes, run_of, sizes, run_above)

    def is_on_the_way(self, runs: I32) -> Mask:
        """Return which are neither the root nor none."""
        is_on_the_way: Mask = (runs > 0) & (runs < self.parents.size)
        return is_on_the_way


def tree_order(parents: I32) -> TreeOrder:
    """Return the order of nodes with these parents (-1: none); node 0 is the root."""
    runs = _Runs.of(parents)
    subtree_sizes, roots = _sizes_and_roots(runs)
    run_places = _places(runs, subtree_sizes, roots == 0)
    # The nodes of a run end together, where the last one of the subtree does.
    run_ends = run_places + subtree_sizes
    places = run_places
    node_ends = run_ends
    if runs.first_nodes.size < parents.size:
        places = run_places.take(runs.run_of)
        node_ends = run_ends.take(runs.run_of)
        is_below = places >= 0
        places += np.arange(parents.size, dtype=np.int32) - runs.first_nodes[runs.run_of]
        places[~is_below] = -1
    nodes_of_tree = np.flatnonzero(places >= 0)
    nodes = np.empty(nodes_of_tree.size, np.int32)
    nodes[places.take(nodes_of_tree)] = nodes_of_tree
    parent_numbers = np.full(nodes.size, -1, np.int32)
    parent_numbers[1:] = places.take(parents.take(nodes[1:]))
    ends = node_ends.take(nodes)
    ends[0] = nodes.size
    cycles = _first_of_cycles(runs, np.flatnonzero(runs.is_on_the_way(roots)))
    return TreeOrder(places, nodes, parent_numbers, ends, cycles)


def _sizes_and_roots(runs: _Runs) -> tuple[I32, I32]:
    """Return the nodes at and below each run, and the run that parents lead to in the end.

    That is the root, none, or one in a cycle. Only sizes below the root mean something.
    """
    jump_target = runs.parents.copy()
    sizes = runs.sizes.copy()
    """Nodes of each run, and of those below it that are fewer steps away than a jump has."""
    jumping_runs = np.flatnonzero(runs.is_on_the_way(jump_target))
    steps = 1
    while jumping_runs.size and steps <= runs.parents.size:
        targets = jump_target[jumping_runs]
        np.add.at(sizes, targets, sizes[jumping_runs])
        targets_of_targets = jump_target[targets]
        jump_target[jumping_runs] = targets_of_targets
        if (targets_of_targets == targets).all():
            break  # All are in cycles, and a jump leads around.
        jumping_runs = jumping_runs[runs.is_on_the_way(targets_of_targets)]
        steps *= 2
    return sizes, jump_target


def _places(runs: _Runs, subtree_sizes: I32, is_below: Mask) -> I32:
    """Return the number of the first node of each run in the order of the tree, -1 outside of it.

    ``is_below`` says which runs are below the root, or are the root.
    """
    runs_below = np.flatnonzero(is_below)[1:]
    order = stable_order(runs.parents[runs_below])
    siblings = runs_below if order is None else runs_below[order]
    """All runs with a parent, by parent."""
    owners = runs.parents.take(siblings)
    sizes = subtree_sizes.take(siblings)
    nodes_before = np.cumsum(sizes, dtype=np.int32) - sizes
    first_siblings = np.flatnonzero(begins_of_runs(owners))
    counts = np.diff(first_siblings, append=owners.size)
    nodes_before -= np.repeat(nodes_before[first_siblings], counts)
    places = np.where(is_below, np.int32(0), np.int32(-1))
    """The number of each run, counted from that of the run that a jump leads to."""
    places[siblings] = runs.sizes.take(owners) + nodes_before
    jump_target = runs.parents.copy()
    jumping_runs = siblings[owners > 0]
    while jumping_runs.size:
        targets = jump_target[jumping_runs]
        places[jumping_runs] += places[targets]
        targets = jump_target[targets]
        jump_target[jumping_runs] = targets
        jumping_runs = jumping_runs[targets > 0]
    return places


def _first_of_cycles(runs: _Runs, leading_runs: I64) -> I64:
    """Return the first node of each cycle of parents, in the order in which nodes lead to them.

    ``leading_runs`` are those in cycles, and below them.
    """
    count = leading_runs.size
    number_of_run = np.zeros(runs.parents.size, np.int64)
    number_of_run[leading_runs] = np.arange(count)
    jump_target = number_of_run[runs.parents[leading_runs]]
    least_run = np.arange(count)
    """The least run that is met on the way of a jump."""
    for _ in range(count.bit_length()):
        least_run = np.minimum(least_run, least_run[jump_target])
        targets_of_targets = jump_target[jump_target]
        if (targets_of_targets == jump_target).all():
            break  # A jump leads into a cycle, and from there around it.
        jump_target = targets_of_targets
    # So many steps from a run lead into its cycle, and around it.
    cycles = least_run[jump_target]
    numbers = np.arange(count)
    first_number = np.full(count, count)
    np.minimum.at(first_number, cycles, numbers)
    cycles_by_first = cycles[first_number[cycles] == numbers]
    first_nodes: I64 = runs.first_nodes[leading_runs[cycles_by_first]]
    return first_nodes


def repeated(owners: I32, codes: I32, different: int, most: int) -> tuple[I64, int]:
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
                owners_left = owners[start:]
                stop = start + int(np.searchsorted(owners_left, owners_left[0], "right"))
        keys = owners[start:stop].astype(np.int64) * different + codes[start:stop]
        # Keys are mostly in order, which a stable sort makes use of.
        in_order = np.sort(keys, kind="stable")
        is_repeat = in_order[1:] == in_order[:-1]
        repeat_count = int(np.count_nonzero(is_repeat))
        if repeat_count and count < most:
            order = np.argsort(keys, kind="stable")
            rows_again = np.sort(order[1:][is_repeat], kind="stable")
            repeated_rows.append(start + rows_again)
        count += repeat_count
        start = stop
    return np.concatenate(repeated_rows)[:most], count


def paths_of(pool: StringPool, names: I32, order: TreeOrder, longest: int, most: int) -> I32:
    """Return the codes of the paths of nodes by number, from the codes of their names.

    A path of more than ``longest`` bytes, and one with which all so far would take more than
    ``most``, is left out: its code is -1.
    """
    lengths = _path_lengths(pool, names, order.ends)
    chosen_nodes = _within(lengths, longest, most)
    writer = _PathWriter(pool, names, order.parents, lengths, chosen_nodes, longest)
    codes = np.full(names.size, -1, np.int32)
    lengths_before = bounds_of(lengths[chosen_nodes])
    start = 0
    while start < chosen_nodes.size:
        stop = end_of_part(lengths_before, start, PATH_BYTES)
        nodes = chosen_nodes[start:stop]
        codes[nodes] = writer.codes_of(nodes)
        start = stop
    return codes


class _PathWriter:
    """Writes the paths of some nodes after those of others, and enters them into the pool.

    A path is that of the parent, and a slash with the name. A parent is among the nodes before. If
    it is not among those that are written together with the node, it has all nodes from itself to
    the node below it, so the first one of them too: its path begins the path of their parent.
    """

    def __init__(
        self,
        pool: StringPool,
        names: I32,
        parents: I32,
        lengths: I64,
        chosen_nodes: I64,
        longest: int,
    ) -> None:
        self._pool = pool
        self._names = names
        self._parents = parents
        self._lengths = lengths
        slashed_names, self._name_starts = _slashed_names(pool, names[chosen_nodes])
        self._parent_start = slashed_names.size
        self._paths_start = self._parent_start + longest
        room = self._paths_start + max(longest, PATH_BYTES)
        self._texts = np.empty(room, np.uint8)
        """The names; the path of the parent of the first node; the paths of the nodes."""
        self._texts[: self._parent_start] = slashed_names
        self._first_node = 0
        self._place_of_node = np.zeros(1, np.int64)
        """Where the path of each node begins, from the first node on; 0 where none was written."""

    def codes_of(self, nodes: I64) -> I32:
        """Return the codes of the paths of some nodes, which follow those of the last call."""
        first_node = int(nodes[0])
        if first_node:
            self._keep_path_of(int(self._parents[first_node]))
        texts = self._texts
        bounds = self._paths_start + bounds_of(self._lengths[nodes])
        stop_node = int(nodes[-1]) + 1
        place_of_node = np.zeros(stop_node - first_node, np.int64)
        place_of_node[nodes - first_node] = bounds[:-1]
        parents = self._parents[nodes]
        stretch_starts = np.empty((nodes.size, 2), np.int64)
        parent_places = place_of_node[np.maximum(parents - first_node, 0)]
        parent_places[parents < first_node] = self._parent_start
        names = self._names[nodes]
        stretch_starts[:, 0] = parent_places
        stretch_starts[:, 1] = self._name_starts[names]
        copied_to = np.empty(2 * nodes.size + 1, np.int64)
        copied_to[::2] = bounds
        copied_to[1::2] = bounds[:-1] + self._lengths[parents]
        if not first_node:  # the root, whose path is its name without a slash
            stretch_starts[0, 1] += 1
            copied_to[1] = copied_to[0]
        # One path after the other, so that each finds that of its parent.
        copied(texts, stretch_starts.reshape(-1), copied_to, texts)
        self._first_node = first_node
        self._place_of_node = place_of_node
        with self._pool.lock:
            return codes_of(self._pool.pool, texts, bounds[:-1], np.diff(bounds))

    def _keep_path_of(self, parent: int) -> None:
        """Keep the path of the parent of the next nodes: it may begin the one that is kept now."""
        if parent < self._first_node:
            return
        start = int(self._place_of_node[parent - self._first_node])
        nbytes = int(self._lengths[parent])
        path = self._texts[start : start + nbytes].copy()
        self._texts[self._parent_start : self._parent_start + nbytes] = path


def _path_lengths(pool: StringPool, names: I32, ends: I32) -> I64:
    """Return the bytes of the path of each node, by number."""
    name_lengths = pool.pool.array("lengths")[names].astype(np.int64)
    name_lengths[1:] += 1  # a slash; the path of the root is its name
    # A name is in the paths from its node on, up to where the descendants end.
    ending_lengths = np.zeros(names.size + 1, np.int64)
    np.add.at(ending_lengths, ends, name_lengths)
    return np.cumsum(name_lengths - ending_lengths[:-1])


def _slashed_names(pool: StringPool, names: I32) -> tuple[NDArray[np.uint8], I64]:
    """Return the names that occur, each behind a slash, and where each begins, by code."""
    occurs = np.zeros(len(pool), np.bool_)
    occurs[names] = True
    codes = np.flatnonzero(occurs)
    column = pool.column(codes)
    nbytes = column.data.size + codes.size
    slashed_names = np.full(nbytes, SLASH, np.uint8)
    begins = column.offsets[:-1] + np.arange(codes.size)
    is_of_name = np.ones(slashed_names.size, np.bool_)
    is_of_name[begins] = False
    slashed_names[is_of_name] = column.data
    starts = np.zeros(len(pool), np.int64)
    starts[codes] = begins
    return slashed_names, starts


def _within(lengths: I64, longest: int, bytes_left: int) -> I64:
    """Return the rows whose lengths fit what is left, one after the other."""
    rows = np.flatnonzero(lengths <= longest)
    fitting_rows: list[I64] = [np.zeros(0, np.int64)]
    while rows.size:
        bytes_so_far = np.cumsum(lengths[rows], dtype=np.int64)
        stop = int(np.searchsorted(bytes_so_far, bytes_left, "right"))
        fitting_rows.append(rows[:stop])
        bytes_left -= int(bytes_so_far[stop - 1]) if stop else 0
        # Those that are longer than what is left do not fit any more.
        rows = rows[stop:]
        rows = rows[lengths[rows] <= bytes_left]
    return np.concatenate(fitting_rows)
