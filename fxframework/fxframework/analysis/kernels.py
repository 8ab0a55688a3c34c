"""Kernels of the analysis of calls: loops over columns that have one row a call.

Calls are in any order. ``parent`` is the place of the enclosing call in the same columns, and
-1, or any invalid place, means that there is none. ``length`` is -1 for a call that never ended. A
mask of no elements chooses every call.
"""

from __future__ import annotations

from fxframework.kernels.annotations import (
    Array,
    Bytes,
    Fallible,
    View,
    i32,
    i64,
    public,
    status,
    u8,
    u64,
    void,
    with_gil,
)
from fxframework.kernels.buffers import full, grown
from fxframework.kernels.hashing import FIRST, SECOND
from fxframework.kernels.kernel import Kernel

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

LOW64 = 0xFFFFFFFFFFFFFFFF
UNKNOWN = -1
"""A row whose node is not known yet. Less than that: it waits for the node of its parent, and the
number says which row below waits for it."""
BELOW = -2
STRETCH = 1 << 20
"""Calls that are added up at once."""

# --- Numbers -----------------------------------------------------------------------------------


@public
def mark_numbers(values: View[i64], low: i64, seen: Array[u8]) -> void:
    """Mark in ``seen`` which of the numbers from ``low`` on there are."""
    for row in range(len(values)):
        seen[values[row] - low] = 1


@public
def look_up(values: View[i64], low: i64, table: View[i32], out: Array[i32]) -> void:
    """Put what the table has for each number, of which ``low`` is the first, into ``out``."""
    for row in range(len(values)):
        out[row] = table[values[row] - low]


@public
def pair_up(function: View[i32], parent: View[i64], functions: i64, out: Array[i64]) -> void:
    """One number for who calls whom: caller + 1 (0: nobody), times ``functions``, plus callee."""
    rows = len(function)
    for row in range(rows):
        above = parent[row]
        caller = 0
        if 0 <= above < rows:
            caller = function[above] + 1
        out[row] = caller * functions + function[row]


@public
def nearest_chosen(
    rows: View[i64], parent: View[i64], place: View[i64], up: Array[i64], out: Array[i64]
) -> void:
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


@public
def account(
    group: View[i32],
    parent: View[i64],
    length: View[i64],
    chosen: Bytes,
    summed: Bytes,
    counts: Array[i64],
    opened: Array[i64],
    totals: Array[i64],
    nested: Array[i64],
) -> void:
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


@public
def sort_out(
    group: View[i32],
    length: View[i64],
    chosen: Bytes,
    following: Array[i64],
    out: Array[i64],
) -> void:
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


@public
def link_children(parent: View[i64], first: Array[i64], beside: Array[i64]) -> void:
    """Link each row's children as a list: the ``first`` of each, and the one ``beside`` it."""
    rows = len(parent)
    for back in range(rows):
        row = rows - 1 - back
        above = parent[row]
        if 0 <= above < rows:
            beside[row] = first[above]
            first[above] = row


@public
def find_recursion(
    function: View[i32],
    parent: View[i64],
    first: View[i64],
    beside: View[i64],
    active: Array[i64],
    inner: Array[u8],
    recursive: Array[u8],
) -> void:
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


class TreeBuilder(Kernel):
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

    function: View[i32]
    parent: View[i64]
    length: View[i64]
    thread: View[i32]
    roots: View[i32]
    first_row: i64
    row: i64
    stop: i64
    node_of: Array[i32]
    first: u64
    second: u64
    used: i64
    room: i64
    mask: i64
    slots: Array[i32]
    parents: Array[i32]
    functions: Array[i32]
    counts: Array[i64]
    opened: Array[i64]
    totals: Array[i64]
    loose: Array[i64]
    deepest: i64
    deep: i64
    levels: Array[i32]

    def __init__(self, roots: memoryview, count: int, room: int, deepest: int) -> None:
        self.roots = memoryview(roots)
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

    def load(
        self,
        function: memoryview,
        parent: memoryview,
        length: memoryview,
        thread: memoryview,
        node_of: memoryview,
        first_row: int,
    ) -> None:
        """Take the calls of consecutive rows, of which ``first_row`` is the first.

        ``node_of`` (int32) is for these rows and all before them, -1 where they are new: twice the
        node of a call, and one more where the call never ended.
        """
        self.function = memoryview(function)
        self.parent = memoryview(parent)
        self.length = memoryview(length)
        self.thread = memoryview(thread)
        self.node_of = memoryview(node_of)
        self.first_row = self.row = first_row
        self.stop = first_row + len(function)

    def step(self) -> Fallible[i64]:
        """Give the next ``STRETCH`` calls, from ``row`` on, and those around them, their nodes.

        Each is added up there. Gives the number of nodes.
        """
        end = min(self.row + STRETCH, self.stop)
        while self.row < end:
            if self.node_of[self.row] < 0:
                self.enter(self.outermost(self.row), self.row)
            self.row += 1
        return self.used

    def outermost(self, row: i64) -> i64:
        """The outermost call around a row that has no node yet; each of them waits for it."""
        at = row
        above = self.parent[at - self.first_row]
        while 0 <= above < self.stop and self.node_of[above] == UNKNOWN and above != row:
            self.node_of[above] = BELOW - at
            at = above
            above = self.parent[at - self.first_row]
        return at

    def enter(self, at: i64, row: i64) -> status:
        """Give a row its node, and those that wait for it, down to ``row``."""
        while True:
            above = self.parent[at - self.first_row]
            within = 0 <= above < self.stop and self.node_of[above] >= 0
            if within:
                upper = self.node_of[above] >> 1
            else:
                upper = self.roots[self.thread[at - self.first_row] + 1]
            deep = self.deepest > 0 and self.levels[upper] == self.deepest
            node = upper
            if deep:
                self.deep += 1
            else:
                node = self.node(upper, self.function[at - self.first_row])
            waiting = BELOW - self.node_of[at]
            value = self.length[at - self.first_row]
            if value < 0:
                self.opened[node] += 1
                self.node_of[at] = 2 * node + 1
            else:
                self.counts[node] += 1
                if not deep:
                    self.totals[node] += value
                self.node_of[at] = 2 * node
                if within and self.node_of[above] & 1:
                    self.loose[upper] += value
            if at == row:
                return 0
            at = waiting

    def slot(self, upper: i64, number: i64) -> i64:
        """The slot of the node of a function below another node, or of the place for it."""
        mixed: u64 = ((upper & LOW64) * self.first + (number & LOW64) * self.second) & LOW64
        place = (mixed >> 32) & self.mask
        node = self.slots[place]
        while node >= 0 and (self.parents[node] != upper or self.functions[node] != number):
            place = (place + 1) & self.mask
            node = self.slots[place]
        return place

    def node(self, upper: i64, number: i64) -> status:
        """The node of a function below another node."""
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

    @with_gil
    def grow(self) -> status:
        """Make room for half as many nodes more."""
        more = self.room + (self.room >> 1)
        self.parents = grown(self.parents, more, self.used)
        self.functions = grown(self.functions, more, self.used)
        self.counts = grown(self.counts, more, self.used)
        self.opened = grown(self.opened, more, self.used)
        self.totals = grown(self.totals, more, self.used)
        self.loose = grown(self.loose, more, self.used)
        if self.deepest:
            self.levels = grown(self.levels, more, self.used)
        self.room = more
        if 4 * more <= 3 * self.mask:
            return 0
        self.mask = 2 * self.mask + 1
        self.slots = full(self.mask + 1, "i4", -1)
        for node in range(self.used):
            if self.parents[node] >= 0:
                self.slots[self.slot(self.parents[node], self.functions[node])] = node
        return 0


@public
def measure_depths(parents: View[i32], depth: Array[i32]) -> void:
    """How many nodes are above each, of nodes that follow their parents."""
    for node in range(len(parents)):
        if parents[node] >= 0:
            depth[node] = depth[parents[node]] + 1


@public
def add_to_roots(parents: View[i32], values: View[i64], root: Array[i32], sums: Array[i64]) -> void:
    """Add up values by root, of nodes that follow their parents; ``root`` gets each one's."""
    for node in range(len(parents)):
        above = parents[node]
        root[node] = node
        if above >= 0:
            root[node] = root[above]
            sums[root[node]] += values[node]
