"""The tree: the order of its nodes, of what belongs to them, and the paths of nodes.

All is done for all nodes at once, so that it matters little how deep a tree is.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_inspect.read.chains import bounds_of, end_of_part
from fxframework.kernels.arrays import I32, I64
from fxframework.kernels.buffers import gathered
from fxframework.kernels.calls import toured
from fxframework.kernels.pools import codes_of
from fxframework.kernels.sorting import order_and_keys, stable_order
from fxframework.kernels.stretches import copied
from fxframework.model.strings import StringPool

NO_NODE = -1
TOGETHER = 1 << 16
"""Rows that are sorted together to find equal names."""
PATH_BYTES = 1 << 16
"""Bytes of paths that are made together; one path may be longer."""
LONGEST_PATH = 1 << 12
"""Bytes of the longest path."""
SPARE_PATHS = 1 << 18
"""How many bytes more than the file has all paths may have."""
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
    cycles: I32
    """The first node of each cycle of parents, in the order in which nodes lead to them."""

    @property
    def count(self) -> int:
        """How many nodes are in the tree."""
        return int(self.nodes.size)

    def arranged(self, owners: I32) -> tuple[I64, I32]:
        """Return rows in the order of the nodes that own them, and these by number.

        Rows of no node are left out.
        """
        places = gathered(self.places, owners)
        places[owners < 0] = NO_NODE
        rows = np.flatnonzero(places >= 0)
        places = places[rows]
        order = stable_order(places)
        return (rows, places) if order is None else (rows[order], places[order])


def tree_order(parents: I32) -> TreeOrder:
    """Return the order of nodes with these parents (-1: none); node 0 is the root."""
    places, ends, cycles = toured(parents.astype(np.int64))
    count = int(ends[0])  # other trees than that of the root come behind it
    nodes_of_tree = np.flatnonzero((places >= 0) & (places < count))
    places[places >= count] = NO_NODE
    nodes = np.empty(count, np.int32)
    nodes[gathered(places, nodes_of_tree)] = nodes_of_tree
    parent_numbers = gathered(places, gathered(parents, nodes))
    parent_numbers[0] = NO_NODE
    return TreeOrder(places, nodes, parent_numbers, gathered(ends, nodes), cycles)


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
        order, in_order = order_and_keys(keys)
        if order is not None and in_order is None:
            in_order = keys.take(order)
        assert in_order is not None  # noqa: S101 (keys that are in order are returned)
        repeats = 1 + np.flatnonzero(in_order[1:] == in_order[:-1])
        if repeats.size and count < most:
            rows_again = repeats if order is None else np.sort(order[repeats], kind="stable")
            repeated_rows.append(start + rows_again)
        count += repeats.size
        start = stop
    return np.concatenate(repeated_rows)[:most], count


def paths_of(pool: StringPool, names: I32, order: TreeOrder, file_bytes: int) -> I32:
    """Return the codes of the paths of nodes by number, from the codes of their names.

    A path that is too long, and one with which all so far would take too much for a file of so many
    bytes, is left out: its code is -1.
    """
    lengths = _path_lengths(pool, names, order.ends)
    chosen_nodes = _within(lengths, LONGEST_PATH, file_bytes + SPARE_PATHS)
    writer = _PathWriter(pool, names, order.parents, lengths, chosen_nodes, LONGEST_PATH)
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
    lengths = gathered(pool.pool.array("lengths"), names).astype(np.int64, copy=False)
    lengths[1:] += 1  # a slash; the path of the root is its name
    # A name is in the paths from its node on, up to where the descendants end.
    ending_lengths = np.zeros(names.size + 1, np.int64)
    np.add.at(ending_lengths, ends, lengths)
    lengths -= ending_lengths[:-1]
    return np.cumsum(lengths, out=lengths)


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
