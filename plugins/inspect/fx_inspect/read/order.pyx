# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""The order of the tree: nodes, the rows that belong to them, and paths of nodes."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from fx_inspect.read.scan cimport Scan
from fxframework.kernels.rows cimport Notes
from fxframework.kernels.pools cimport Pool

from fx_inspect import format as wire
from fx_inspect import rules
from fxframework.io import words
from fxframework.kernels.buffers import full, room

cdef int64_t UNIT = wire.UNIT
cdef int64_t SAME_CHILDREN = rules.SAME_CHILDREN, SAME_PROPERTIES = rules.SAME_PROPERTIES
cdef int64_t WORD = words.WORD

__all__ = ["Arrangement", "Duplicates", "Paths", "TreeOrder"]

cdef enum:
    BYTE = 0xFF
    SLASH = 0x2F


@cython.final
cdef class TreeOrder:
    """Numbers the nodes below the root: each before its children, siblings as they were given.

    ``parents`` (int32) has each node's parent, -1 for none; node 0 is the root. ``place`` (int32)
    has the number of each node, or -1; ``nodes`` (int32) the nodes by number, ``count`` of them;
    ``first`` and ``following`` (int32) the first child of each node, and the child of the same
    parent after each node, or -1.
    """

    cdef public const int32_t[::1] parents
    cdef public int64_t all
    cdef public int32_t[::1] first, following, place, nodes
    cdef public int64_t count

    def __init__(self, parents):
        self.parents = parents
        self.all = len(parents)
        self.first = full(self.all, "i4", -1)
        self.place = full(self.all, "i4", -1)
        self.following = room(self.all, "i4")
        self.nodes = room(self.all, "i4")
        self.count = 0

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Number all nodes."""
        cdef int64_t node, parent, below
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


@cython.final
cdef class Arrangement:
    """Orders rows by the number of their node, stably; rows of no node are left out.

    ``owners`` (int32) has the node of each row, -1 for none; ``rows`` (int32) gets the rows, as
    many as ``count``.
    """

    cdef const int32_t[::1] owners
    cdef public const int32_t[::1] place
    cdef public int64_t given, numbers
    cdef readonly int32_t[::1] starts
    cdef public int32_t[::1] rows
    cdef public int64_t count

    def __init__(self, owners, order):
        self.owners = owners
        self.place = order.place
        self.given = len(owners)
        self.numbers = order.count
        self.starts = full(self.numbers + 1, "i4")
        self.rows = room(self.given, "i4")
        self.count = 0

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Order all rows."""
        cdef int64_t row, node, number
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


@cython.final
cdef class Duplicates:
    """Reports children of one name, and properties of one name, of the nodes of a tree.

    Both have (int32) the codes of their names and their records; properties besides their nodes,
    and their rows in the order of the tree. ``strings`` is more than any code.
    """

    cdef public Scan scan
    cdef public TreeOrder order
    cdef public Notes notes
    cdef public int32_t[::1] seen
    cdef const int32_t[::1] node_code
    cdef readonly const int32_t[::1] node_block, code
    cdef public const int32_t[::1] block
    cdef readonly const int32_t[::1] owner
    cdef public const int32_t[::1] rows
    cdef public int64_t count

    def __init__(self, scan, order, notes, strings, nodes, properties):
        self.scan = scan
        self.order = order
        self.notes = notes
        self.seen = full(strings, "i4")
        code, block = nodes
        self.node_code = code
        self.node_block = block
        code, block, owner, rows = properties
        self.code = code
        self.block = block
        self.owner = owner
        self.rows = rows
        self.count = len(rows)

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Report duplicates among the children of each node, then among the properties."""
        cdef int64_t number, child, index, row, mark
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

    cdef int look(self, int64_t code, int64_t mark, int64_t record,
                  bint is_property) except -1 nogil:
        """Report a name that has the same mark already, and mark it."""
        cdef int64_t finding
        if self.seen[code] == mark:
            finding = SAME_PROPERTIES if is_property else SAME_CHILDREN
            self.notes.add(finding, UNIT * self.scan.unit[record], record, 0)
        self.seen[code] = mark
        return 0


@cython.final
cdef class Paths:
    """Enters the paths of nodes, parents first, into a pool.

    ``names`` (int32) are codes, ``parents`` (int32) nodes before them, -1 for the root. ``code``
    (int32) has the code of each path; -1 where it would have more than ``longest`` bytes, or all so
    far more than ``budget``, and for all that is below such a node.
    """

    cdef public const int32_t[::1] names, parents
    cdef public int64_t count
    cdef int64_t longest
    cdef public int64_t left
    cdef public Pool pool
    cdef readonly int32_t[::1] code
    cdef public int64_t[::1] words
    cdef public uint8_t[::1] out

    def __init__(self, names, parents, pool, longest, budget):
        self.names = names
        self.parents = parents
        self.count = len(names)
        self.pool = pool
        self.longest = longest
        self.left = budget
        self.code = room(self.count, "i4")
        scratch = full(longest // 8 + 2, "i8")
        pool.read_from(scratch)
        self.words = scratch
        self.out = memoryview(scratch).cast("B")

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Enter all paths."""
        cdef int64_t node
        node = 0
        while node < self.count:
            self.code[node] = self.path(self.names[node], self.parents[node])
            node += 1
        return 0

    cdef int64_t path(self, int64_t name, int64_t parent) except? -9 nogil:
        """Return the code of the path of a node; -1 over the budget."""
        cdef int64_t nbytes, above, begin, word
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

    cdef int64_t put(self, int64_t code, int64_t nbytes, int64_t at) noexcept nogil:
        """Copy a string of the pool to byte ``at``."""
        cdef int64_t begin, index, word
        begin = self.pool.starts[code]
        index = 0
        while index < nbytes:
            word = self.pool.words[begin + index // WORD]
            self.out[at + index] = (word >> 8 * (index % WORD)) & BYTE
            index += 1
        return 0
