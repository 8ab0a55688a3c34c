"""The order of the tree: nodes, the rows that belong to them, and paths of nodes."""

from __future__ import annotations

from collections.abc import Sequence

from fx_inspect import rules
from fx_inspect.format import UNIT
from fx_inspect.read.scan import Scan
from fxframework.io.words import WORD
from fxframework.kernels.annotations import Array, Fallible, View, flag, i32, i64, status, u8
from fxframework.kernels.buffers import full, room
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.notes import Notes
from fxframework.kernels.pools import Pool

__all__ = ["Arrangement", "Duplicates", "Paths", "TreeOrder"]

BYTE = 0xFF
SLASH = 0x2F


class TreeOrder(Kernel):
    """Numbers the nodes below the root: each before its children, siblings as they were given.

    ``parents`` (int32) has each node's parent, -1 for none; node 0 is the root. ``place`` (int32)
    has the number of each node, or -1; ``nodes`` (int32) the nodes by number, ``count`` of them;
    ``first`` and ``following`` (int32) the first child of each node, and the child of the same
    parent after each node, or -1.
    """

    parents: View[i32]
    all: i64
    first: Array[i32]
    following: Array[i32]
    place: Array[i32]
    nodes: Array[i32]
    count: i64

    def __init__(self, parents: memoryview) -> None:
        self.parents = memoryview(parents)
        self.all = len(parents)
        self.first = full(self.all, "i4", -1)
        self.place = full(self.all, "i4", -1)
        self.following = room(self.all, "i4")
        self.nodes = room(self.all, "i4")
        self.count = 0

    def step(self) -> Fallible[i64]:
        """Number all nodes."""
        node = self.all - 1
        while node > 0:
            parent = self.parents[node]
            if parent >= 0:
                self.following[node] = self.first[parent]
                self.first[parent] = node
            node -= 1
        node = 0
        while True:
            self.place[node] = self.count
            self.nodes[self.count] = node
            self.count += 1
            below = self.first[node]
            while below < 0 and node != 0:
                below = self.following[node]
                node = self.parents[node]
            if below < 0:
                return self.count
            node = below


class Arrangement(Kernel):
    """Orders rows by the number of their node, stably; rows of no node are left out.

    ``owners`` (int32) has the node of each row, -1 for none; ``rows`` (int32) gets the rows, as
    many as ``count``.
    """

    owners: View[i32]
    place: View[i32]
    given: i64
    numbers: i64
    starts: Array[i32]
    rows: Array[i32]
    count: i64

    def __init__(self, owners: memoryview, order: TreeOrder) -> None:
        self.owners = memoryview(owners)
        self.place = order.place
        self.given = len(owners)
        self.numbers = order.count
        self.starts = full(self.numbers + 1, "i4")
        self.rows = room(self.given, "i4")
        self.count = 0

    def step(self) -> Fallible[i64]:
        """Order all rows."""
        row = 0
        while row < self.given:
            node = self.owners[row]
            if node >= 0 and self.place[node] >= 0:
                self.starts[self.place[node] + 1] += 1
                self.count += 1
            row += 1
        number = 1
        while number <= self.numbers:
            self.starts[number] += self.starts[number - 1]
            number += 1
        row = 0
        while row < self.given:
            node = self.owners[row]
            if node >= 0 and self.place[node] >= 0:
                number = self.place[node]
                self.rows[self.starts[number]] = row
                self.starts[number] += 1
            row += 1
        return self.count


class Duplicates(Kernel):
    """Reports children of one name, and properties of one name, of the nodes of a tree.

    Both have (int32) the codes of their names and their records; properties besides their nodes,
    and their rows in the order of the tree. ``strings`` is more than any code.
    """

    scan: Scan
    order: TreeOrder
    notes: Notes
    seen: Array[i32]
    node_code: View[i32]
    node_block: View[i32]
    code: View[i32]
    block: View[i32]
    owner: View[i32]
    rows: View[i32]
    count: i64

    def __init__(
        self,
        scan: Scan,
        order: TreeOrder,
        notes: Notes,
        strings: int,
        nodes: Sequence[memoryview],
        properties: Sequence[memoryview],
    ) -> None:
        self.scan = scan
        self.order = order
        self.notes = notes
        self.seen = full(strings, "i4")
        code, block = nodes
        self.node_code = memoryview(code)
        self.node_block = memoryview(block)
        code, block, owner, rows = properties
        self.code = memoryview(code)
        self.block = memoryview(block)
        self.owner = memoryview(owner)
        self.rows = memoryview(rows)
        self.count = len(rows)

    def step(self) -> Fallible[i64]:
        """Report duplicates among the children of each node, then among the properties."""
        number = 0
        while number < self.order.count:
            child = self.order.first[self.order.nodes[number]]
            while child >= 0:
                self.look(self.node_code[child], number + 1, self.node_block[child], 0)
                child = self.order.following[child]
            number += 1
        index = 0
        while index < self.count:
            row = self.rows[index]
            mark = self.order.count + 1 + self.order.place[self.owner[row]]
            self.look(self.code[row], mark, self.block[row], 1)
            index += 1
        return 0

    def look(self, code: i64, mark: i64, record: i64, is_property: flag) -> status:
        """Report a name that has the same mark already, and mark it."""
        if self.seen[code] == mark:
            finding = rules.SAME_PROPERTIES if is_property else rules.SAME_CHILDREN
            self.notes.add(finding, UNIT * self.scan.unit[record], record, 0)
        self.seen[code] = mark
        return 0


class Paths(Kernel):
    """Enters the paths of nodes, parents first, into a pool.

    ``names`` (int32) are codes, ``parents`` (int32) nodes before them, -1 for the root. ``code``
    (int32) has the code of each path; -1 where it would have more than ``longest`` bytes, or all so
    far more than ``budget``, and for all that is below such a node.
    """

    names: View[i32]
    parents: View[i32]
    count: i64
    longest: i64
    left: i64
    pool: Pool
    code: Array[i32]
    words: Array[i64]
    out: Array[u8]

    def __init__(
        self, names: memoryview, parents: memoryview, pool: Pool, longest: int, budget: int
    ) -> None:
        self.names = memoryview(names)
        self.parents = memoryview(parents)
        self.count = len(names)
        self.pool = pool
        self.longest = longest
        self.left = budget
        self.code = room(self.count, "i4")
        scratch = full(longest // 8 + 2, "i8")
        pool.read_from(scratch)
        self.words = memoryview(scratch)
        self.out = memoryview(scratch).cast("B")

    def step(self) -> Fallible[i64]:
        """Enter all paths."""
        node = 0
        while node < self.count:
            self.code[node] = self.path(self.names[node], self.parents[node])
            node += 1
        return 0

    def path(self, name: i64, parent: i64) -> Fallible[i64]:
        """Return the code of the path of a node; -1 over the budget."""
        nbytes = self.pool.lengths[name]
        above = 0
        if parent >= 0:
            if self.code[parent] < 0:
                return -1
            above = self.pool.lengths[self.code[parent]] + 1
            nbytes += above
        if nbytes > self.longest or nbytes > self.left:
            return -1
        self.left -= nbytes
        if above > 0:
            begin = self.pool.starts[self.code[parent]]
            word = 0
            while 8 * word < above - 1:
                self.words[word] = self.pool.words[begin + word]
                word += 1
            self.out[above - 1] = SLASH
        self.put(name, nbytes - above, above)
        return self.pool.intern(0, nbytes)

    def put(self, code: i64, nbytes: i64, at: i64) -> i64:
        """Copy a string of the pool to byte ``at``."""
        begin = self.pool.starts[code]
        index = 0
        while index < nbytes:
            word = self.pool.words[begin + index // WORD]
            self.out[at + index] = (word >> 8 * (index % WORD)) & BYTE
            index += 1
        return 0
