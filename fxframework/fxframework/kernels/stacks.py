"""Stacks: numbers of the chains of names in which slices nest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fxframework.io.spill import Spill
from fxframework.kernels.arrays import I32, I64
from fxframework.kernels.calls import NODE_SHIFT, TreeBuilder
from fxframework.kernels.nesting import BEGIN, Nesting

ROOM = 64
"""Stacks that there is room for at first."""


class Stacks:
    """Numbers stacks in order of first use, from one batch of nested events to the next.

    Inside of ``deepest`` slices (0: no limit) a slice has the stack around it. Events are those of
    one nesting, whose rows it numbers itself.
    """

    def __init__(self, deepest: int) -> None:
        no_thread = np.zeros(1, np.int32)
        # Node 0 is the root, and a slice within ``deepest`` others is one deeper than these.
        self._tree = TreeBuilder(no_thread, 1, ROOM, deepest + 1 if deepest else 0)
        self._nodes = Spill(np.int32, in_memory=True)
        """By row, the node of each slice, as ``TreeBuilder`` sets it."""
        self._rows = 0

    def add(self, nesting: Nesting, what: NDArray[np.uint8], names: NDArray[np.uint32]) -> I64:
        """Return the stack of the slice that each event begins or closes, else -1.

        The events were just nested.
        """
        begins = np.flatnonzero(what == BEGIN)
        first_row = self._rows
        self._rows += begins.size
        nodes = self._nodes.grow(self._rows)
        nodes[first_row : self._rows] = -1
        no_threads = np.full(begins.size, -1, np.int32)
        self._tree.add(
            np.ascontiguousarray(names[begins]).view(np.int32),
            nesting.parents[begins],
            np.zeros(begins.size, np.int64),
            no_threads,
            nodes,
            first_row,
        )
        stacks = self.of(nesting.closes)
        stacks[begins] = self.of(np.arange(first_row, self._rows))
        return stacks

    def of(self, rows: I64) -> I64:
        """Return the stacks of slices by row, -1 for none; int64 of the shape of the rows."""
        stacks = np.full(rows.size, -1)
        is_slice = rows >= 0
        stacks[is_slice] = nodes_of(self._nodes.array[rows[is_slice]]) - 1
        return stacks

    @property
    def names(self) -> NDArray[np.uint32]:
        """The name on top of each stack, uint32 of shape (stacks,)."""
        return self._tree.nodes()[1][1:].view(np.uint32)

    @property
    def below(self) -> I64:
        """The stack below each stack, -1 for none, int64 of shape (stacks,)."""
        return self._tree.nodes()[0][1:].astype(np.int64) - 1


def nodes_of(marks: I32) -> I32:
    """Return the nodes of calls that a tree has marked (``TreeBuilder.add``)."""
    return marks >> NODE_SHIFT
