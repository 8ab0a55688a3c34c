# cython: boundscheck=True, wraparound=False, show_performance_hints=False
"""Rows that lead to others: trees in order, chains, and the chains of functions of calls.

Calls are rows in any order. ``parent`` is the row of the enclosing call; -1, or any invalid row,
means that there is none.
"""

from libc.stdint cimport int32_t, int64_t

from fxframework.kernels.pools cimport PairMap

import numpy as np

cdef enum:
    UNKNOWN = -1  # In place of a node: the row has none yet.
    # In place of a node: the row waits for the node of its parent. ``WAITING - row``, so any number
    # from WAITING down, says which row within it waits in turn: -2 is row 0, -5 is row 3.
    WAITING = -2

cpdef enum:
    # A node, and in the bits below it what its call is.
    IS_OPEN = 1
    IS_DEEP = 2
    NODE_SHIFT = 2


def toured(const int64_t[::1] parent):
    """Put rows in an order in which each is before those below it, and siblings are as they were.

    Return three columns, int32. Of each row, its place in this order, -1 for one that no root leads
    to: it is in a circle of parents, or below one. Of each row, the place behind those below it.
    And the first row of each circle, in the order in which rows lead to them.
    """
    if parent.shape[0] >> 31:
        raise OverflowError(f"{parent.shape[0]} rows have no numbers of 32 bits")
    cdef int64_t rows = parent.shape[0], above
    cdef int32_t used = 0, found = 0, root, row
    # Each is an array of its own: to keep one does not keep the others.
    places, ends, children, siblings = (np.full(rows, -1, np.int32) for _ in range(4))
    circles = np.empty(rows, np.int32)
    cdef int32_t[::1] place = places, end = ends, circle = circles
    cdef int32_t[::1] first_child = children, next_sibling = siblings
    for row in range(rows - 1, -1, -1):  # backward: each child goes before those that follow it
        above = parent[row]
        if 0 <= above < rows:
            next_sibling[row] = first_child[above]
            first_child[above] = row
    for root in range(rows):
        row = -1 if 0 <= parent[root] < rows else root
        while row >= 0:
            place[row] = used
            used += 1
            if first_child[row] >= 0:
                row = first_child[row]
                continue
            # Leave rows until one has a sibling, which is the next. Roots have none.
            while row >= 0:
                end[row] = used
                if next_sibling[row] >= 0:
                    row = next_sibling[row]
                    break
                row = -1 if row == root else <int32_t>parent[row]
    for root in range(rows):
        row = root
        while end[row] == -1:
            end[row] = -2 - root  # the row from which it was met
            row = <int32_t>parent[row]
        if end[row] == -2 - root:
            circle[found] = row
            above = parent[row]
            while above != row:
                circle[found] = <int32_t>min(<int64_t>circle[found], above)
                above = parent[above]
            found += 1
    return places, ends, circles[:found].copy()


def followed(const int32_t[::1] first, const int32_t[::1] following, const int32_t[::1] sizes,
             const int64_t[::1] wanted, int64_t most):
    """Follow chains of rows until each has as many bytes as wanted, and all of them ``most``.

    ``following`` has the row behind each, or the number of rows, which ends a chain, as ``first``
    may do. A row counts once in a chain, with at least 8 bytes. Return, of shape (chains,), how
    many rows each has, its bytes, and the row that it stopped before: -1 if that was for ``most``.
    And the rows of all chains.
    """
    cdef int64_t rows = sizes.shape[0], chains = first.shape[0], used = 0, chain, row, given
    room = min(most // 8 + chains, chains * rows)
    visits, met = np.empty(room, np.int32), np.full(rows, -1, np.int64)
    counts, bytes_given, stops = np.zeros((3, chains), np.int64)
    cdef int32_t[::1] visit = visits
    cdef int64_t[::1] last_met = met, count = counts, nbytes = bytes_given, stop = stops
    for chain in range(chains):
        row = first[chain]
        given = 0
        while 0 <= row < rows and given < wanted[chain] and last_met[row] != chain:
            last_met[row] = chain
            visit[used] = <int32_t>row
            used += 1
            count[chain] += 1
            given = min(given + sizes[row], wanted[chain])
            row = -1 if given > most else following[row]
        nbytes[chain] = min(given, most)
        most -= nbytes[chain]
        stop[chain] = row
    return counts, bytes_given, stops, visits[:used]


cdef class TreeBuilder:
    """Gives calls their nodes of a tree: the chains of functions that they are reached through.

    The first ``count`` nodes are roots, and there is room for ``room`` more at first; ``roots``
    (int32) has the one below which the calls of thread id + 1 begin. Nodes are numbered in the order
    in which they are found. Rows that enclose each other are taken as enclosed by none. Nodes have at
    most ``deepest`` nodes above them (0: any number). Calls deeper than that, which ``deep`` counts,
    belong to the node above them. ``levels`` counts those above each of the ``used`` nodes.
    """

    cdef const int32_t[::1] function, thread, roots
    cdef const int64_t[::1] parent, length
    cdef readonly int32_t[::1] node_of, parent_of, function_of, levels
    cdef PairMap numbers
    cdef int64_t first_row, stop, deepest
    cdef readonly int64_t used, deep

    def __init__(self, const int32_t[::1] roots, int64_t count, int64_t room, int64_t deepest):
        self.roots = roots
        self.numbers = PairMap()
        self.used = count
        self.deepest = deepest
        self.deep = 0
        self.parent_of, self.function_of = np.full((2, room + count), -1, np.int32)
        self.levels = np.zeros(room + count, np.int32)

    def nodes(self):
        """Return the parents and the functions of nodes, -1 for a root, int32 of shape (nodes,)."""
        return np.asarray(self.parent_of)[: self.used], np.asarray(self.function_of)[: self.used]

    def add(self, const int32_t[::1] function, const int64_t[::1] parent,
            const int64_t[::1] length, const int32_t[::1] thread, int32_t[::1] node_of,
            int64_t first_row):
        """Add calls of consecutive rows, of which ``first_row`` is the first; set their nodes.

        A length of -1 is that of a call that never ended. ``node_of`` is for these rows and all
        before them, -1 where they are new: four times the node of a call, 2 more where the call is
        too deep for a node of its own, and 1 more where it never ended.
        """
        self.function, self.parent, self.length = function, parent, length
        self.thread, self.node_of = thread, node_of
        self.first_row = first_row
        self.stop = first_row + function.shape[0]
        cdef int64_t row
        for row in range(first_row, self.stop):
            if node_of[row] < 0:
                self.enter(self.outermost(row), row)

    cdef int64_t outermost(self, int64_t row) except -1:
        """The outermost call around a row that has no node yet; each of them waits for it."""
        cdef int64_t outer = row, caller_row = self.parent[row - self.first_row]
        while (
            0 <= caller_row < self.stop
            and self.node_of[caller_row] == UNKNOWN
            and caller_row != row
        ):
            self.node_of[caller_row] = <int32_t>(WAITING - outer)
            outer = caller_row
            caller_row = self.parent[outer - self.first_row]
        return outer

    cdef int enter(self, int64_t outer, int64_t row) except -1:
        """Give a row its node, and those that wait for it, down to ``row``."""
        cdef int64_t index, caller_row, upper, node, waiting
        cdef bint is_deep
        while True:
            index = outer - self.first_row
            caller_row = self.parent[index]
            if 0 <= caller_row < self.stop and self.node_of[caller_row] >= 0:
                upper = self.node_of[caller_row] >> NODE_SHIFT
            else:
                upper = self.roots[self.thread[index] + 1]
            is_deep = self.deepest > 0 and self.levels[upper] == self.deepest
            self.deep += is_deep
            node = upper if is_deep else self.node(upper, self.function[index])
            waiting = <int64_t>WAITING - self.node_of[outer]
            node = node << NODE_SHIFT | is_deep * IS_DEEP | (self.length[index] < 0) * IS_OPEN
            self.node_of[outer] = <int32_t>node
            if outer == row:
                return 0
            outer = waiting

    cpdef int64_t node(self, int64_t upper, int64_t number) except -1:
        """Return the node of a function below another node; it may be new."""
        cdef int64_t node = self.numbers.get(upper, number)
        if node >= 0:
            return node
        node = self.used
        if node == self.parent_of.shape[0]:
            self.parent_of = np.pad(self.parent_of, (0, node // 2 + 1))
            self.function_of = np.pad(self.function_of, (0, node // 2 + 1))
            self.levels = np.pad(self.levels, (0, node // 2 + 1))
        self.numbers.put(upper, number, node)
        self.used += 1
        self.parent_of[node], self.function_of[node] = <int32_t>upper, <int32_t>number
        self.levels[node] = self.levels[upper] + 1
        return node
