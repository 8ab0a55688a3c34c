"""Kernels of the analysis of calls: loops over columns that have one row a call.

Calls stand in any order. ``parent`` is the place of the enclosing call in the same columns, and
one that is no place says that there is none. ``length`` is -1 for a call that never ended. A mask
of no elements chooses every call.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fxframework.io.jit import kernel

__all__ = [
    "Nodes",
    "account",
    "add_to_roots",
    "enter_nodes",
    "find_recursion",
    "grow_tree",
    "link_children",
    "look_up",
    "mark_numbers",
    "measure_depths",
    "nearest_chosen",
    "pair_up",
    "sort_out",
]

_UNKNOWN = -1
"""A row whose node is not known yet. Less than that: it waits for the node of its parent, and the
number says which row below waits for it."""
_BELOW = -2
_A = 0x2545F491
_B = 0x1B873593


class Nodes(NamedTuple):
    """The nodes of a call tree under construction, in the order in which they are found."""

    parents: NDArray[np.int32]
    """Of a root -1."""
    functions: NDArray[np.int32]
    counts: NDArray[np.int64]
    """Calls that ended."""
    opened: NDArray[np.int64]
    """Calls that never did."""
    totals: NDArray[np.int64]
    """Lengths of those that ended."""
    loose: NDArray[np.int64]
    """Lengths of ended calls right within ones that never ended."""
    slots: NDArray[np.int32]
    """Open-addressed hash table of nodes by parent and function; its length is a power of two."""
    used: NDArray[np.int64]
    """[nodes in use]"""


# --- Numbers -----------------------------------------------------------------------------------


@kernel
def mark_numbers(values, low, seen):  # type: ignore[no-untyped-def]
    """Mark in ``seen`` which of the numbers from ``low`` on there are."""
    for row in range(len(values)):
        seen[values[row] - low] = 1


@kernel
def look_up(values, low, table, out):  # type: ignore[no-untyped-def]
    """Put what the table has for each number, of which ``low`` is the first, into ``out``."""
    for row in range(len(values)):
        out[row] = table[values[row] - low]


@kernel
def pair_up(function, parent, functions, out):  # type: ignore[no-untyped-def]
    """One number for who calls whom: caller + 1 (0: nobody), times ``functions``, plus callee."""
    rows = len(function)
    for row in range(rows):
        above = parent[row]
        caller = 0
        if 0 <= above < rows:
            caller = function[above] + 1
        out[row] = caller * functions + function[row]


@kernel
def nearest_chosen(rows, parent, place, up, out):  # type: ignore[no-untyped-def]
    """Of chosen rows, the place of the nearest chosen row that encloses each; -1 none.

    ``place`` has the place of each row of the whole among those chosen, -1 where it is not.
    ``up`` is a copy of ``parent``, which gets shortcuts.
    """
    whole = len(parent)
    for index in range(len(rows)):
        start = parent[rows[index]]
        at = start
        steps = 0
        while 0 <= at < whole and place[at] < 0 and steps <= whole:
            at = up[at]
            steps += 1
        if at < 0 or at >= whole or steps > whole:
            at = -1
        hop = start
        while 0 <= hop < whole and hop != at and place[hop] < 0 and steps > 0:
            following = up[hop]
            up[hop] = at
            hop = following
            steps -= 1
        out[index] = -1
        if at >= 0 and place[at] != index:
            out[index] = place[at]


# --- Accounts ----------------------------------------------------------------------------------


@kernel
def account(group, parent, length, chosen, summed, counts, opened, totals, nested):  # type: ignore[no-untyped-def]
    """Count calls and add up lengths by group.

    Of those chosen: ``counts`` of those that ended, ``opened`` of those that did not. Of those in
    ``summed``: ``totals``. Of all: ``nested``, the time that a group's ended calls spent in
    calls right within them.
    """
    rows = len(group)
    every = len(chosen) == 0
    whole = len(summed) == 0
    for row in range(rows):
        number = group[row]
        value = length[row]
        if value < 0:
            if every or chosen[row]:
                opened[number] += 1
            continue
        if every or chosen[row]:
            counts[number] += 1
            if whole or summed[row]:
                totals[number] += value
        above = parent[row]
        if 0 <= above < rows and length[above] >= 0:
            nested[group[above]] += value


@kernel
def sort_out(group, length, chosen, following, out):  # type: ignore[no-untyped-def]
    """Put the lengths of each group together; ``following`` is where each group's next one goes."""
    every = len(chosen) == 0
    for row in range(len(group)):
        value = length[row]
        if value >= 0 and (every or chosen[row]):
            number = group[row]
            at = following[number]
            out[at] = value
            following[number] = at + 1


# --- Recursion ---------------------------------------------------------------------------------


@kernel
def link_children(parent, first, beside):  # type: ignore[no-untyped-def]
    """Link each row's children as a list: the ``first`` of each, and what stands ``beside`` it."""
    rows = len(parent)
    for back in range(rows):
        row = rows - 1 - back
        above = parent[row]
        if 0 <= above < rows:
            beside[row] = first[above]
            first[above] = row


@kernel
def find_recursion(function, parent, first, beside, active, inner, recursive):  # type: ignore[no-untyped-def]
    """Find calls of functions that call themselves, through whatever others.

    ``inner`` marks calls within another call of the same function; ``recursive`` those, and the
    outermost calls that have such ones within. ``active`` is -1 for every function.
    """
    rows = len(function)
    for root in range(rows):
        above = parent[root]
        if 0 <= above < rows:
            continue
        at = root
        left = False
        while not left:
            outermost = active[function[at]]
            if outermost < 0:
                active[function[at]] = at
            else:
                inner[at] = 1
                recursive[at] = 1
                recursive[outermost] = 1
            if first[at] >= 0:
                at = first[at]
                continue
            while True:
                if active[function[at]] == at:
                    active[function[at]] = -1
                if at == root:
                    left = True
                    break
                if beside[at] >= 0:
                    at = beside[at]
                    break
                at = parent[at]


# --- Trees -------------------------------------------------------------------------------------


@kernel
def grow_tree(function, parent, length, thread, roots, start, nodes, node_of):  # type: ignore[no-untyped-def]
    """Give each call from ``start`` on its node, and add it up there.

    ``roots`` has the node below which the calls of thread id + 1 begin. Stops where there is no
    room for another node, and gives the row to go on from once there is; the number of rows where
    all is done. Rows that enclose each other are taken as enclosed by none.
    """
    rows = len(function)
    parents = nodes.parents
    functions = nodes.functions
    counts = nodes.counts
    totals = nodes.totals
    slots = nodes.slots
    mask = len(slots) - 1
    for row in range(start, rows):
        if node_of[row] >= 0:
            continue
        at = row
        above = parent[at]
        while 0 <= above < rows and node_of[above] == _UNKNOWN and above != row:
            node_of[above] = _BELOW - at
            at = above
            above = parent[at]
        while True:
            above = parent[at]
            number = function[at]
            within = 0 <= above < rows and node_of[above] >= 0
            upper = node_of[above] if within else roots[thread[at] + 1]
            mixed = upper * _A + number * _B
            slot = (mixed ^ (mixed >> 15)) & mask
            node = slots[slot]
            while node >= 0 and (parents[node] != upper or functions[node] != number):
                slot = (slot + 1) & mask
                node = slots[slot]
            if node < 0:
                node = nodes.used[0]
                if node >= len(parents):
                    while at != row:
                        waiting = _BELOW - node_of[at]
                        node_of[at] = _UNKNOWN
                        at = waiting
                    return row
                nodes.used[0] = node + 1
                parents[node] = upper
                functions[node] = number
                slots[slot] = node
            waiting = _BELOW - node_of[at]
            node_of[at] = node
            value = length[at]
            if value < 0:
                nodes.opened[node] += 1
            else:
                counts[node] += 1
                totals[node] += value
                if within and length[above] < 0:
                    nodes.loose[upper] += value
            if at == row:
                break
            at = waiting
    return rows


@kernel
def enter_nodes(nodes):  # type: ignore[no-untyped-def]
    """Enter every node into the (emptied) hash table; roots, which have no parent, stay out."""
    mask = len(nodes.slots) - 1
    for node in range(nodes.used[0]):
        above = nodes.parents[node]
        if above < 0:
            continue
        mixed = above * _A + nodes.functions[node] * _B
        slot = (mixed ^ (mixed >> 15)) & mask
        while nodes.slots[slot] >= 0:
            slot = (slot + 1) & mask
        nodes.slots[slot] = node


@kernel
def measure_depths(parents, depth):  # type: ignore[no-untyped-def]
    """How many nodes are above each, of nodes that stand behind their parents."""
    for node in range(len(parents)):
        if parents[node] >= 0:
            depth[node] = depth[parents[node]] + 1


@kernel
def add_to_roots(parents, values, root, sums):  # type: ignore[no-untyped-def]
    """Add up values by root, of nodes that stand behind their parents; ``root`` gets each one's."""
    for node in range(len(parents)):
        above = parents[node]
        root[node] = node
        if above >= 0:
            root[node] = root[above]
            sums[root[node]] += values[node]
