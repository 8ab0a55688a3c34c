# cython: boundscheck=False, wraparound=False, show_performance_hints=False
# Bounds are not checked: a parent is compared with the number of rows before it is followed, and
# groups and functions are numbers that the caller counted.
"""Kernels of the analysis of calls: loops over columns that have one row a call.

Calls are in any order. ``parent`` is the place of the enclosing call in the same columns, and
-1, or any invalid place, means that there is none. ``length`` is -1 for a call that never ended. A
mask of no elements chooses every call.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t

from fxframework.kernels.rows cimport Loop

from fxframework.kernels.buffers import full, grown
from fxframework.kernels.hashing import FIRST, SECOND

__all__ = [
    "TreeBuilder",
    "account",
    "add_to_roots",
    "find_recursion",
    "link_children",
    "look_up",
    "mark_numbers",
    "measure_depths",
    "nearest_chosen",
    "pair_up",
    "sort_out",
]


cdef enum:
    UNKNOWN = -1  # In place of a node: the row has none yet.
    # In place of a node: the row waits for the node of its parent. ``WAITING - row``, so any number
    # from WAITING down, says which row within it waits in turn: -2 is row 0, -5 is row 3.
    WAITING = -2
    STRETCH = 1 << 20  # Calls that are added up at once.

# --- Numbers -----------------------------------------------------------------------------------


cpdef void mark_numbers(const int64_t[::1] values, int64_t low,
                        uint8_t[::1] is_present) noexcept nogil:
    """Mark in ``is_present`` which of the numbers from ``low`` on there are."""
    cdef int64_t row
    for row in range(len(values)):
        is_present[values[row] - low] = 1


cpdef void look_up(const int64_t[::1] values, int64_t low, const int32_t[::1] table,
                   int32_t[::1] out) noexcept nogil:
    """Put what the table has for each number, of which ``low`` is the first, into ``out``."""
    cdef int64_t row
    for row in range(len(values)):
        out[row] = table[values[row] - low]


cpdef void pair_up(const int32_t[::1] function, const int64_t[::1] parent, int64_t functions,
                   int64_t[::1] out) noexcept nogil:
    """One number for who calls whom: caller + 1 (0: nobody), times ``functions``, plus callee."""
    cdef int64_t rows, row, caller_row, caller
    rows = len(function)
    for row in range(rows):
        caller_row = parent[row]
        caller = 0
        if 0 <= caller_row < rows:
            caller = function[caller_row] + 1
        out[row] = caller * functions + function[row]


cpdef void nearest_chosen(const int64_t[::1] rows, const int64_t[::1] parent,
                          const int64_t[::1] place, int64_t[::1] shortcut,
                          int64_t[::1] out) noexcept nogil:
    """Of chosen rows, the place of the nearest chosen row that encloses each; -1 none.

    ``place`` has the place of each row of the whole among those chosen, -1 where it is not.
    ``shortcut`` is a copy of ``parent``; rows that were passed lead to where they ended.
    """
    cdef int64_t whole, index, start, row, steps, passed, following
    whole = len(parent)
    for index in range(len(rows)):
        start = parent[rows[index]]
        row = start
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
        out[index] = -1
        if row >= 0 and place[row] != index:
            out[index] = place[row]


# --- Accounts ----------------------------------------------------------------------------------


cpdef void account(const int32_t[::1] group, const int64_t[::1] parent, const int64_t[::1] length,
                   const uint8_t[::1] chosen, const uint8_t[::1] summed, int64_t[::1] counts,
                   int64_t[::1] opened, int64_t[::1] totals, int64_t[::1] nested) noexcept nogil:
    """Count calls and add up lengths by group.

    Of those chosen: ``counts`` of those that ended, ``opened`` of those that did not. Of those in
    ``summed``: ``totals``. Of all: ``nested``, the time that a group's ended calls spent in
    calls right within them.
    """
    cdef int64_t rows, all_chosen, all_summed, row, number, duration, caller_row
    rows = len(group)
    all_chosen = len(chosen) == 0
    all_summed = len(summed) == 0
    for row in range(rows):
        number = group[row]
        duration = length[row]
        if duration < 0:
            if all_chosen or chosen[row]:
                opened[number] += 1
            continue
        if all_chosen or chosen[row]:
            counts[number] += 1
            if all_summed or summed[row]:
                totals[number] += duration
        # Of all calls, chosen or not: self time is that of the whole group.
        caller_row = parent[row]
        if 0 <= caller_row < rows and length[caller_row] >= 0:
            nested[group[caller_row]] += duration


cpdef void sort_out(const int32_t[::1] group, const int64_t[::1] length, const uint8_t[::1] chosen,
                    int64_t[::1] following, int64_t[::1] out) noexcept nogil:
    """Put the lengths of each group together; ``following`` is where each group's next one goes."""
    cdef int64_t all_chosen, row, duration, number, place
    all_chosen = len(chosen) == 0
    for row in range(len(group)):
        duration = length[row]
        if duration >= 0 and (all_chosen or chosen[row]):
            number = group[row]
            place = following[number]
            out[place] = duration
            following[number] = place + 1


# --- Recursion ---------------------------------------------------------------------------------


cpdef void link_children(const int64_t[::1] parent, int64_t[::1] first_child,
                         int64_t[::1] next_sibling) noexcept nogil:
    """Link each row's children as a list, in order of rows."""
    cdef int64_t rows, index, row, caller_row
    rows = len(parent)
    for index in range(rows):
        row = rows - 1 - index  # backward: each child goes before those that follow it
        caller_row = parent[row]
        if 0 <= caller_row < rows:
            next_sibling[row] = first_child[caller_row]
            first_child[caller_row] = row


cpdef void find_recursion(const int32_t[::1] function, const int64_t[::1] parent,
                          const int64_t[::1] first_child, const int64_t[::1] next_sibling,
                          int64_t[::1] active, uint8_t[::1] inner,
                          uint8_t[::1] recursive) noexcept nogil:
    """Find calls of functions that call themselves, through whatever others.

    ``inner`` marks calls within another call of the same function; ``recursive`` those, and the
    outermost calls that have such ones within. ``active`` is -1 for every function; in between it
    has the outermost call of each function on the way from the root to the current row.
    """
    cdef int64_t rows, root, row, is_done, outermost
    rows = len(function)
    for root in range(rows):
        if 0 <= parent[root] < rows:
            continue
        row = root
        is_done = False
        while not is_done:
            outermost = active[function[row]]
            if outermost < 0:
                active[function[row]] = row
            else:
                inner[row] = 1
                recursive[row] = 1
                recursive[outermost] = 1
            if first_child[row] >= 0:
                row = first_child[row]
                continue
            # Leave calls until one has a sibling, which is the next to enter.
            while True:
                if active[function[row]] == row:
                    active[function[row]] = -1
                if row == root:
                    is_done = True
                    break
                if next_sibling[row] >= 0:
                    row = next_sibling[row]
                    break
                row = parent[row]


# --- Trees -------------------------------------------------------------------------------------


@cython.final
cdef class TreeBuilder(Loop):
    """Adds calls up by the chain of functions that they are reached through.

    The first ``count`` nodes are roots; ``roots`` (int32) has the one below which the calls of
    thread id + 1 begin. Nodes are numbered in the order in which they are found. After all calls
    were loaded and run, of the first ``used`` of each column: ``parents`` and ``functions`` (int32;
    -1 for a root), ``counts`` of calls that ended, ``opened`` of those that never did, ``totals``
    of the lengths of those that ended, ``loose`` of the lengths of ended calls right within ones
    that never did (int64). Rows that enclose each other are taken as enclosed by none.

    Nodes have at most ``deepest`` nodes above them (0: any number). Calls deeper than that, which
    ``deep`` counts, belong to the node above them, but for their lengths, which its own include.
    """

    cdef readonly const int32_t[::1] function
    cdef readonly const int64_t[::1] parent, length
    cdef readonly const int32_t[::1] thread, roots
    cdef int64_t first_row
    cdef readonly int64_t row
    cdef int64_t stop
    cdef int32_t[::1] node_of
    cdef readonly uint64_t first
    cdef uint64_t second
    cdef int64_t used, room, mask
    cdef int32_t[::1] slots
    cdef readonly int32_t[::1] parents
    cdef public int32_t[::1] functions
    cdef readonly int64_t[::1] counts, opened, totals, loose
    cdef int64_t deepest
    cdef readonly int64_t deep
    cdef int32_t[::1] levels

    def __init__(self, roots, count, room, deepest):
        self.roots = roots
        self.function = full(0, "i4")
        self.parent = full(0, "i8")
        self.length = full(0, "i8")
        self.thread = full(0, "i4")
        self.node_of = full(0, "i4")
        self.first_row = 0
        self.row = 0
        self.stop = 0
        self.first = FIRST
        self.second = SECOND
        self.used = count
        self.room = max(room, 2 * count)
        slots = 16
        while slots < 2 * self.room:
            slots *= 2
        self.mask = slots - 1
        self.slots = full(slots, "i4", -1)
        self.parents = full(self.room, "i4", -1)
        self.functions = full(self.room, "i4", -1)
        self.counts = full(self.room, "i8")
        self.opened = full(self.room, "i8")
        self.totals = full(self.room, "i8")
        self.loose = full(self.room, "i8")
        self.deepest = deepest
        self.deep = 0
        self.levels = full(self.room if deepest else 0, "i4")

    def load(self, function, parent, length, thread, node_of, first_row):
        """Take the calls of consecutive rows, of which ``first_row`` is the first.

        ``node_of`` (int32) is for these rows and all before them, -1 where they are new: twice the
        node of a call, and one more where the call never ended.
        """
        self.function = function
        self.parent = parent
        self.length = length
        self.thread = thread
        self.node_of = node_of
        self.first_row = self.row = first_row
        self.stop = first_row + len(function)

    cdef int64_t step(self) except? -9 nogil:
        """Give the next ``STRETCH`` calls, from ``row`` on, and those around them, their nodes.

        Each is added up there. Gives the number of nodes.
        """
        cdef int64_t end
        end = min(self.row + STRETCH, self.stop)
        while self.row < end:
            if self.node_of[self.row] < 0:
                self.enter(self.outermost(self.row), self.row)
            self.row += 1
        return self.used

    cdef int64_t outermost(self, int64_t row) noexcept nogil:
        """The outermost call around a row that has no node yet; each of them waits for it."""
        cdef int64_t outer, caller_row
        outer = row
        caller_row = self.parent[outer - self.first_row]
        while (
            0 <= caller_row < self.stop
            and self.node_of[caller_row] == UNKNOWN
            and caller_row != row
        ):
            self.node_of[caller_row] = WAITING - outer
            outer = caller_row
            caller_row = self.parent[outer - self.first_row]
        return outer

    cdef int enter(self, int64_t outer, int64_t row) except -1 nogil:
        """Give a row its node, and those that wait for it, down to ``row``."""
        cdef int64_t index, caller_row, within, upper, is_deep, node, waiting, duration
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
                self.node_of[outer] = 2 * node + 1
            else:
                self.counts[node] += 1
                if not is_deep:
                    self.totals[node] += duration
                self.node_of[outer] = 2 * node
                # The low bit of the caller's: it never ended, and has no total to subtract from.
                if within and self.node_of[caller_row] & 1:
                    self.loose[upper] += duration
            if outer == row:
                return 0
            outer = waiting

    cdef int64_t slot(self, int64_t upper, int64_t number) noexcept nogil:
        """The slot of the node of a function below another node, or of the place for it."""
        cdef uint64_t mixed
        cdef int64_t place, node
        mixed = (<uint64_t>upper) * self.first + (<uint64_t>number) * self.second
        place = (mixed >> 32) & self.mask
        node = self.slots[place]
        while node >= 0 and (self.parents[node] != upper or self.functions[node] != number):
            place = (place + 1) & self.mask
            node = self.slots[place]
        return place

    cdef int node(self, int64_t upper, int64_t number) except -1 nogil:
        """The node of a function below another node."""
        cdef int64_t place, node
        place = self.slot(upper, number)
        node = self.slots[place]
        if node >= 0:
            return node
        if self.used == self.room:
            self.grow()
            place = self.slot(upper, number)
        node = self.used
        self.used += 1
        self.parents[node] = upper
        self.functions[node] = number
        self.counts[node] = 0
        self.opened[node] = 0
        self.totals[node] = 0
        self.loose[node] = 0
        if self.deepest:
            self.levels[node] = self.levels[upper] + 1
        self.slots[place] = node
        return node

    cdef int grow(self) except -1 with gil:
        """Make room for half as many nodes more."""
        cdef int64_t new_room, node
        new_room = self.room + (self.room >> 1)
        self.parents = grown(self.parents, new_room, self.used)
        self.functions = grown(self.functions, new_room, self.used)
        self.counts = grown(self.counts, new_room, self.used)
        self.opened = grown(self.opened, new_room, self.used)
        self.totals = grown(self.totals, new_room, self.used)
        self.loose = grown(self.loose, new_room, self.used)
        if self.deepest:
            self.levels = grown(self.levels, new_room, self.used)
        self.room = new_room
        if 4 * new_room <= 3 * self.mask:
            return 0
        # Slots stay at most three quarters full, so that a search passes few of them.
        self.mask = 2 * self.mask + 1
        self.slots = full(self.mask + 1, "i4", -1)
        for node in range(self.used):
            if self.parents[node] >= 0:
                self.slots[self.slot(self.parents[node], self.functions[node])] = node
        return 0


cpdef void measure_depths(const int32_t[::1] parents, int32_t[::1] depth) noexcept nogil:
    """How many nodes are above each, of nodes that follow their parents."""
    cdef int64_t node
    for node in range(len(parents)):
        if parents[node] >= 0:
            depth[node] = depth[parents[node]] + 1


cpdef void add_to_roots(const int32_t[::1] parents, const int64_t[::1] values, int32_t[::1] root,
                        int64_t[::1] sums) noexcept nogil:
    """Add up values by root, of nodes that follow their parents; ``root`` gets each one's."""
    cdef int64_t node
    for node in range(len(parents)):
        root[node] = node
        if parents[node] >= 0:
            root[node] = root[parents[node]]
            sums[root[node]] += values[node]
