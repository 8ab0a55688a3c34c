# cython: boundscheck=True, wraparound=False, show_performance_hints=False
"""Trees of calls: who encloses whom, who calls itself, and what each chain of functions took.

Calls are rows in any order. ``parent`` is the row of the enclosing call; -1, or any invalid row,
means that there is none.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from fxframework.kernels.pools cimport PairMap

import numpy as np

cdef enum:
    UNKNOWN = -1  # In place of a node: the row has none yet.
    # In place of a node: the row waits for the node of its parent. ``WAITING - row``, so any number
    # from WAITING down, says which row within it waits in turn: -2 is row 0, -5 is row 3.
    WAITING = -2


def nearest_chosen(const int64_t[::1] rows, const int64_t[::1] parent, const int64_t[::1] place):
    """Return the place of the nearest chosen row that encloses each chosen one; -1 for none.

    ``place`` has the place of each row of the whole among those chosen, -1 where it is not.
    """
    out = np.full(rows.shape[0], -1, np.int64)
    cdef int64_t[::1] found = out, shortcut = np.array(parent)
    cdef int64_t whole = parent.shape[0], index, start, row, steps, passed, following
    for index in range(rows.shape[0]):
        start = row = parent[rows[index]]
        steps = 0
        # Damaged parents may go in a circle, which more steps than there are rows show.
        while 0 <= row < whole and place[row] < 0 and steps <= whole:
            row = shortcut[row]
            steps += 1
        if row < 0 or row >= whole or steps > whole:
            row = -1
        # Once more along the same rows, so that no later search takes all these steps.
        passed = start
        while 0 <= passed < whole and passed != row and place[passed] < 0 and steps > 0:
            following = shortcut[passed]
            shortcut[passed] = row
            passed = following
            steps -= 1
        if row >= 0 and place[row] != index:
            found[index] = place[row]
    return out


def recursion(const int32_t[::1] function, const int64_t[::1] parent, int64_t functions):
    """Find calls of functions that call themselves, through whatever others.

    Return two masks, uint8 of shape (calls,): calls within another call of the same function; and
    those, and the outermost calls that have such ones within.
    """
    cdef int64_t rows = function.shape[0], root, row, caller_row, outermost
    inner_mask, recursive_mask = np.zeros((2, rows), np.uint8)
    cdef uint8_t[::1] inner = inner_mask, recursive = recursive_mask
    cdef int64_t[::1] first_child = np.full(rows, -1, np.int64)
    cdef int64_t[::1] next_sibling = np.full(rows, -1, np.int64)
    # The outermost call of each function on the way from the root to the current row.
    cdef int64_t[::1] active = np.full(functions, -1, np.int64)
    for row in range(rows - 1, -1, -1):  # backward: each child goes before those that follow it
        caller_row = parent[row]
        if 0 <= caller_row < rows:
            next_sibling[row] = first_child[caller_row]
            first_child[caller_row] = row
    for root in range(rows):
        if 0 <= parent[root] < rows:
            continue
        row = root
        while row >= 0:
            outermost = active[function[row]]
            if outermost < 0:
                active[function[row]] = row
            else:
                inner[row] = recursive[row] = recursive[outermost] = 1
            if first_child[row] >= 0:
                row = first_child[row]
                continue
            # Leave calls until one has a sibling, which is the next to enter.
            while row >= 0:
                if active[function[row]] == row:
                    active[function[row]] = -1
                if row == root:
                    row = -1
                elif next_sibling[row] >= 0:
                    row = next_sibling[row]
                    break
                else:
                    row = parent[row]
    return inner_mask, recursive_mask


cdef class TreeBuilder:
    """Adds calls up by the chain of functions that they are reached through.

    The first ``count`` nodes are roots, and there is room for ``room`` more at first; ``roots`` (int32) has the one below which the calls of
    thread id + 1 begin. Nodes are numbered in the order in which they are found. Rows that enclose
    each other are taken as enclosed by none. Nodes have at most ``deepest`` nodes above them (0:
    any number). Calls deeper than that, which ``deep`` counts, belong to the node above them, but
    for their lengths, which its own include.
    """

    cdef const int32_t[::1] function, thread, roots
    cdef const int64_t[::1] parent, length
    cdef int32_t[::1] node_of, parents, functions, levels
    cdef int64_t[::1] counts, opened, totals, loose
    cdef PairMap numbers
    cdef int64_t first_row, stop, used, deepest
    cdef readonly int64_t deep

    def __init__(self, const int32_t[::1] roots, int64_t count, int64_t room, int64_t deepest):
        self.roots = roots
        self.numbers = PairMap()
        self.used = count
        self.deepest = deepest
        self.deep = 0
        room += count
        self.parents, self.functions = np.full((2, room), -1, np.int32)
        self.levels = np.zeros(room, np.int32)
        self.counts, self.opened, self.totals, self.loose = np.zeros((4, room), np.int64)

    def nodes(self):
        """Return a dictionary of columns of shape (nodes,).

        ``parents`` and ``functions`` (int32; -1 for a root), ``counts`` of calls that ended,
        ``opened`` of those that never did, ``totals`` of the lengths of those that ended, ``loose``
        of the lengths of ended calls right within ones that never did (int64).
        """
        columns = {"parents": self.parents, "functions": self.functions, "counts": self.counts,
                   "opened": self.opened, "totals": self.totals, "loose": self.loose}
        return {name: np.asarray(column)[: self.used] for name, column in columns.items()}

    def add(self, const int32_t[::1] function, const int64_t[::1] parent,
            const int64_t[::1] length, const int32_t[::1] thread, int32_t[::1] node_of,
            int64_t first_row):
        """Add calls of consecutive rows, of which ``first_row`` is the first; set their nodes.

        A length of -1 is that of a call that never ended. ``node_of`` is for these rows and all
        before them, -1 where they are new: twice the node of a call, and one more where the call
        never ended.
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
        cdef int64_t index, caller_row, upper, node, waiting, duration
        cdef bint within, is_deep
        while True:
            index = outer - self.first_row
            caller_row = self.parent[index]
            within = 0 <= caller_row < self.stop and self.node_of[caller_row] >= 0
            if within:
                upper = self.node_of[caller_row] >> 1
            else:
                upper = self.roots[self.thread[index] + 1]
            is_deep = self.deepest > 0 and self.levels[upper] == self.deepest
            node = upper
            if is_deep:
                self.deep += 1
            else:
                node = self.node(upper, self.function[index])
            waiting = <int64_t>WAITING - self.node_of[outer]
            duration = self.length[index]
            if duration < 0:
                self.opened[node] += 1
                self.node_of[outer] = <int32_t>(2 * node + 1)
            else:
                self.counts[node] += 1
                if not is_deep:
                    self.totals[node] += duration
                self.node_of[outer] = <int32_t>(2 * node)
                # The low bit of the caller's: it never ended, and has no total to subtract from.
                if within and self.node_of[caller_row] & 1:
                    self.loose[upper] += duration
            if outer == row:
                return 0
            outer = waiting

    cdef int64_t node(self, int64_t upper, int64_t number) except -1:
        """The node of a function below another node."""
        cdef int64_t node = self.numbers.get(upper, number)
        if node >= 0:
            return node
        node = self.used
        if node == self.parents.shape[0]:
            self.grow()
        self.numbers.put(upper, number, node)
        self.used += 1
        self.parents[node], self.functions[node] = <int32_t>upper, <int32_t>number
        self.levels[node] = self.levels[upper] + 1
        return node

    cdef int grow(self) except -1:
        """Make room for half as many nodes more, all of whose sums are 0."""
        cdef int64_t more = self.used // 2 + 1
        self.parents = np.pad(self.parents, (0, more))
        self.functions = np.pad(self.functions, (0, more))
        self.levels = np.pad(self.levels, (0, more))
        self.counts = np.pad(self.counts, (0, more))
        self.opened = np.pad(self.opened, (0, more))
        self.totals = np.pad(self.totals, (0, more))
        self.loose = np.pad(self.loose, (0, more))
        return 0
