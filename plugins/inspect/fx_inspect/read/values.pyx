# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Values: the nodes, properties and links of a VMO, and the nodes that they belong to."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t

from fx_inspect.read.scan cimport Scan
from fx_inspect.read.texts cimport Texts
from fxframework.kernels.fields cimport Field, field, get
from fxframework.kernels.rows cimport Notes

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.read import tables
from fxframework.kernels.buffers import full, room

cdef int64_t ARRAY = wire.ARRAY, ARRAY_EXPONENTIAL = wire.ARRAY_EXPONENTIAL
cdef int64_t ARRAY_FLAT = wire.ARRAY_FLAT, ARRAY_LINEAR = wire.ARRAY_LINEAR, BOOL = wire.BOOL
cdef int64_t BUFFER = wire.BUFFER, BUFFER_BYTES = wire.BUFFER_BYTES
cdef int64_t BUFFER_STRING_REFERENCE = wire.BUFFER_STRING_REFERENCE, DOUBLE = wire.DOUBLE
cdef int64_t EXPONENTIAL_SLOTS = wire.EXPONENTIAL_SLOTS, EXTENT = wire.EXTENT, INLINE = wire.INLINE
cdef int64_t INT = wire.INT, LINEAR_SLOTS = wire.LINEAR_SLOTS, LINK = wire.LINK
cdef int64_t MAX_REFERENCES = wire.MAX_REFERENCES, NAME = wire.NAME, NAME_LENGTH = wire.NAME_LENGTH
cdef int64_t NODE = wire.NODE, SLOTS_AT = wire.SLOTS_AT, TOMBSTONE = wire.TOMBSTONE
cdef int64_t UNIT = wire.UNIT, WIRE_STRING = wire.STRING
cdef Field ARRAY_FORMAT = field(wire.ARRAY_FORMAT), BUFFER_EXTENT = field(wire.BUFFER_EXTENT)
cdef Field BUFFER_FORMAT = field(wire.BUFFER_FORMAT), ENTRY_TYPE = field(wire.ENTRY_TYPE)
cdef Field LINK_CONTENT = field(wire.LINK_CONTENT), LINK_DISPOSITION = field(wire.LINK_DISPOSITION)
cdef Field SLOT_COUNT = field(wire.SLOT_COUNT), SLOT_STRING = field(wire.SLOT_STRING)
cdef int64_t BYTES = tables.BYTES, INT_ARRAY = tables.INT_ARRAY, STRING = tables.STRING
cdef int64_t STRING_ARRAY = tables.STRING_ARRAY, TABLES_BOOL = tables.BOOL, TABLES_INT = tables.INT
cdef int64_t CYCLE = rules.CYCLE, DELETED_WITH_VALUES = rules.DELETED_WITH_VALUES
cdef int64_t EMPTY_HISTOGRAM = rules.EMPTY_HISTOGRAM, EXTENT_USED_TWICE = rules.EXTENT_USED_TWICE
cdef int64_t FEW_SLOTS = rules.FEW_SLOTS, NAME_OF_ANOTHER_TYPE = rules.NAME_OF_ANOTHER_TYPE
cdef int64_t NAME_PAST_ITS_BLOCK = rules.NAME_PAST_ITS_BLOCK
cdef int64_t NAME_USED_TWICE = rules.NAME_USED_TWICE, NAME_WITHOUT_BLOCK = rules.NAME_WITHOUT_BLOCK
cdef int64_t NODE_COUNT = rules.NODE_COUNT, NOT_USED = rules.NOT_USED
cdef int64_t NO_CONTENT = rules.NO_CONTENT, NO_STRING = rules.NO_STRING, ORPHAN = rules.ORPHAN
cdef int64_t SLOT_WITHOUT_STRING = rules.SLOT_WITHOUT_STRING, STRING_COUNT = rules.STRING_COUNT
cdef int64_t TOO_MANY_SLOTS = rules.TOO_MANY_SLOTS
cdef int64_t UNKNOWN_ARRAY_FORMAT = rules.UNKNOWN_ARRAY_FORMAT
cdef int64_t UNKNOWN_DISPOSITION = rules.UNKNOWN_DISPOSITION
cdef int64_t UNKNOWN_ENTRIES = rules.UNKNOWN_ENTRIES, UNKNOWN_FORMAT = rules.UNKNOWN_FORMAT

__all__ = ["Validator", "Values"]

cdef enum:
    NO_NODE = -1
    ONE = 1


@cython.final
cdef class Values:
    """Reads nodes, properties and links in the order of the file, and finds their nodes.

    Nodes, the root first (int32): ``node_parent`` is a node, -1 for none; ``node_name`` a string,
    -1 for a node that was dropped; ``node_block`` a record. Properties, ``rows`` of them:
    ``name``, ``node`` and ``block`` (int32) likewise, ``type`` and ``format`` (uint8), ``bits``
    (int64) of a number, ``source`` (int32) the unit of the block that has the text, ``length``
    (uint32) the bytes of the text or the slots of an array. Links, ``links`` of them, likewise.

    ``uses`` (int32) counts what refers to each string in the tree, ``refs`` whatever does;
    ``children`` (int32) the values that name each unit as their parent.
    """

    cdef public const int64_t[::1] words
    cdef public Scan scan
    cdef public Notes notes
    cdef readonly const int64_t[::1] string_length
    cdef const int64_t[::1] buffer_length
    cdef public int32_t[::1] uses, refs, children, seen
    cdef public int64_t nodes, rows, links
    cdef readonly int32_t[::1] node_parent, node_name, node_block
    cdef public int32_t[::1] name, node, block, source
    cdef public uint8_t[::1] type, format
    cdef public int64_t[::1] bits
    cdef readonly uint32_t[::1] length
    cdef readonly int32_t[::1] link_name, link_node, link_block, link_content
    cdef readonly uint8_t[::1] link_disposition
    cdef readonly int64_t seen_types
    cdef public int64_t parent, named
    cdef readonly int64_t about, fault

    def __init__(self, scan, texts, words, notes):
        self.words = words
        self.scan = scan
        self.notes = notes
        self.string_length = texts.length
        self.buffer_length = texts.buffer
        self.uses = full(scan.strings, "i4")
        self.refs = full(scan.strings, "i4")
        self.children = full(scan.units, "i4")
        self.nodes = scan.nodes + 1
        self.node_parent = room(self.nodes, "i4")
        self.node_name = room(self.nodes, "i4")
        self.node_block = room(self.nodes, "i4")
        self.node_parent[0] = NO_NODE
        self.node_name[0] = -1
        self.node_block[0] = 0
        self.name = room(scan.values, "i4")
        self.node = room(scan.values, "i4")
        self.block = room(scan.values, "i4")
        self.type = room(scan.values, "u1")
        self.format = room(scan.values, "u1")
        self.bits = room(scan.values, "i8")
        self.source = room(scan.values, "i4")
        self.length = room(scan.values, "u4")
        self.rows = 0
        self.link_name = room(scan.links, "i4")
        self.link_node = room(scan.links, "i4")
        self.link_block = room(scan.links, "i4")
        self.link_content = room(scan.links, "i4")
        self.link_disposition = room(scan.links, "u1")
        self.links = 0
        self.seen_types = 0
        self.seen = full(self.nodes, "i4")
        self.parent = 0
        self.named = 0
        self.fault = 0
        self.about = 0

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Read all values, then find their nodes, and report cycles of nodes."""
        cdef int64_t record, type, row
        record = 0
        while record < self.scan.count:
            type = self.scan.type[record]
            if type >= NODE and type <= BOOL:
                if (type < EXTENT or type > NAME) and self.scan.unit[record] > 0:
                    self.value(record, self.scan.unit[record], type)
            record += 1
        self.attach_nodes()
        row = 0
        while row < self.rows:
            self.node[row] = self.attached(self.block[row], self.node[row])
            row += 1
        row = 0
        while row < self.links:
            self.link_node[row] = self.attached(self.link_block[row], self.link_node[row])
            row += 1
        self.find_cycles()
        return 0

    # --- Reading ----------------------------------------------------------------------------------

    cdef int value(self, int64_t record, int64_t unit, int64_t type) except -1 nogil:
        """Read a value, or a tombstone."""
        cdef int64_t word, target, children, payload, kind
        word = self.words[2 * unit]
        self.parent = (word >> self.scan.index_at) & self.scan.index_mask
        if self.parent < self.scan.units:
            self.children[self.parent] += 1
        target = (word >> self.scan.name_at) & self.scan.index_mask
        if type == TOMBSTONE:
            self.find_string(target)
            children = self.words[2 * unit + 1]
            self.notes.add(DELETED_WITH_VALUES, UNIT * unit, record, children)
            return 0
        self.fault = 0
        self.about = target
        self.named = self.find_name(target)
        if type == NODE:
            self.read_node(record, unit)
        elif type == LINK:
            self.read_link(record, unit)
        elif type == BUFFER:
            self.read_buffer(record, unit)
        elif type == ARRAY:
            self.read_array(record, unit)
        elif type == BOOL:
            payload = self.words[2 * unit + 1]
            self.property(record, unit, TABLES_BOOL, 0, 1 if payload != 0 else 0, unit, 0)
        else:
            kind = TABLES_INT + type - INT
            self.property(record, unit, kind, 0, self.words[2 * unit + 1], unit, 0)
        return 0

    cdef int read_node(self, int64_t record, int64_t unit) except -1 nogil:
        """Read a node; one without a name is dropped."""
        cdef int64_t node
        node = self.scan.numbers[unit]
        self.node_parent[node] = self.parent
        self.node_name[node] = self.named
        self.node_block[node] = record
        if self.fault != 0:
            return self.drop(record, unit)
        self.uses[self.named] += 1
        return 0

    cdef int read_link(self, int64_t record, int64_t unit) except -1 nogil:
        """Read a link."""
        cdef int64_t payload, target, disposition, fault, about, content
        payload = self.words[2 * unit + 1]
        target = get(LINK_CONTENT, payload)
        disposition = get(LINK_DISPOSITION, payload)
        fault = self.fault
        about = self.about
        content = self.find_name(target)
        if fault != 0:
            self.fault = fault
            self.about = about
        elif content < 0:
            self.fault = NO_CONTENT
            self.about = target
        if self.fault != 0:
            return self.drop(record, unit)
        if disposition > INLINE:
            self.notes.add(UNKNOWN_DISPOSITION, UNIT * unit, record, disposition)
        self.uses[self.named] += 1
        self.uses[content] += 1
        self.link_name[self.links] = self.named
        self.link_node[self.links] = self.parent
        self.link_block[self.links] = record
        self.link_content[self.links] = content
        self.link_disposition[self.links] = disposition
        self.links += 1
        return 0

    cdef int read_buffer(self, int64_t record, int64_t unit) except -1 nogil:
        """Read a string or bytes."""
        cdef int64_t payload, format, kind, nbytes, target, string
        payload = self.words[2 * unit + 1]
        format = get(BUFFER_FORMAT, payload)
        kind = BYTES if format == BUFFER_BYTES else STRING
        if format < BUFFER_STRING_REFERENCE:
            nbytes = self.buffer_length[self.scan.numbers[unit]]
            return self.property(record, unit, kind, format, 0, unit, nbytes)
        if format > BUFFER_STRING_REFERENCE:
            if self.fault == 0:
                self.fault = UNKNOWN_FORMAT
                self.about = format
            return self.drop(record, unit)
        target = get(BUFFER_EXTENT, payload)
        string = self.find_string(target)
        if string < 0:
            if self.fault == 0:
                self.fault = NO_STRING
                self.about = target
            return self.drop(record, unit)
        return self.property(record, unit, kind, format, 0, target, self.string_length[string])

    cdef int read_array(self, int64_t record, int64_t unit) except -1 nogil:
        """Read an array, which may be a histogram."""
        cdef int64_t payload, entry, format, count, of_strings, wrong, slot, kind
        payload = self.words[2 * unit + 1]
        entry = get(ENTRY_TYPE, payload)
        format = get(ARRAY_FORMAT, payload)
        count = get(SLOT_COUNT, payload)
        of_strings = entry == WIRE_STRING
        wrong = self.array_fault(entry, format, count, self.scan.order[record])
        if self.fault == 0 and wrong != 0:
            self.fault = wrong
            self.about = entry if wrong == UNKNOWN_ENTRIES else count
        if of_strings and wrong != TOO_MANY_SLOTS:
            slot = self.read_slots(unit, count)
            if self.fault == 0 and slot >= 0:
                self.notes.add(SLOT_WITHOUT_STRING, UNIT * unit, record, slot)
        if self.fault != 0:
            return self.drop(record, unit)
        if format > ARRAY_EXPONENTIAL or (of_strings and format != ARRAY_FLAT):
            self.notes.add(UNKNOWN_ARRAY_FORMAT, UNIT * unit, record, format)
            format = ARRAY_FLAT
        elif format == ARRAY_LINEAR and count < LINEAR_SLOTS:
            self.notes.add(FEW_SLOTS, UNIT * unit, record, count)
        elif format == ARRAY_EXPONENTIAL and count < EXPONENTIAL_SLOTS:
            self.notes.add(FEW_SLOTS, UNIT * unit, record, count)
        kind = STRING_ARRAY if of_strings else INT_ARRAY + entry - INT
        return self.property(record, unit, kind, format, 0, unit, count)

    cdef int64_t array_fault(self, int64_t entry, int64_t format, int64_t count,
                             int64_t order) noexcept nogil:
        """Return the finding about an invalid array; 0 for a sound one."""
        cdef int64_t room
        if entry != WIRE_STRING and (entry < INT or entry > DOUBLE):
            return UNKNOWN_ENTRIES
        room = (UNIT << order) - SLOTS_AT
        if count > room // (4 if entry == WIRE_STRING else 8):
            return TOO_MANY_SLOTS
        return EMPTY_HISTOGRAM if count == 0 and format != ARRAY_FLAT else 0

    cdef int64_t read_slots(self, int64_t unit, int64_t count) noexcept nogil:
        """Count what the slots of an array of strings refer to; the first slot of nothing, or -1.

        Only those of an array in the tree count as uses.
        """
        cdef int64_t wrong, slot, target, string
        wrong = -1
        slot = 0
        while slot < count:
            target = get(SLOT_STRING, self.words[2 * unit + 2 + slot // 2] >> 32 * (slot % 2))
            string = self.find_string(target)
            if target != 0:
                if string < 0:
                    if wrong < 0:
                        wrong = slot
                elif self.fault == 0:
                    self.uses[string] += 1
            slot += 1
        return wrong

    cdef int property(self, int64_t record, int64_t unit, int64_t kind, int64_t format,
                      int64_t bits, int64_t source, int64_t nbytes) except -1 nogil:
        """Add a property; one without a name is dropped."""
        cdef int64_t row
        if self.fault != 0:
            return self.drop(record, unit)
        row = self.rows
        self.uses[self.named] += 1
        self.name[row] = self.named
        self.node[row] = self.parent
        self.block[row] = record
        self.type[row] = kind
        self.format[row] = format
        self.bits[row] = bits
        self.source[row] = source
        self.length[row] = nbytes
        self.seen_types |= <int64_t>ONE << kind
        self.rows = row + 1
        return 0

    cdef int drop(self, int64_t record, int64_t unit) except -1 nogil:
        """Report a value that is not in the tree."""
        self.notes.add(self.fault, UNIT * unit, record, self.about)
        return 0

    # --- Strings ----------------------------------------------------------------------------------

    cdef int64_t find_name(self, int64_t unit) noexcept nogil:
        """Return the string that is the name at a unit, counted as a reference to it.

        -1 if there is none; ``fault`` says why.
        """
        cdef int64_t start, string
        start = self.scan.starts[unit] if unit < self.scan.units else 0
        if start == WIRE_STRING + 1 or start == NAME + 1:
            string = self.scan.numbers[unit]
            self.refs[string] += 1
            if start == NAME + 1:
                if self.string_length[string] >= 0:
                    return string
                self.fault = NAME_PAST_ITS_BLOCK
                self.about = (self.words[2 * unit] >> self.scan.index_at) & NAME_LENGTH
            elif unit > 0:
                return string
            else:
                self.fault = NAME_OF_ANOTHER_TYPE
        else:
            self.fault = NAME_WITHOUT_BLOCK if start == 0 else NAME_OF_ANOTHER_TYPE
        return -1

    cdef int64_t find_string(self, int64_t unit) noexcept nogil:
        """Return the STRING_REFERENCE at a unit; -1 if there is none. Unit 0 has none.

        The string there, a NAME too, is counted as referred to.
        """
        cdef int64_t start, string
        start = self.scan.starts[unit] if unit < self.scan.units else 0
        if start == WIRE_STRING + 1 or start == NAME + 1:
            string = self.scan.numbers[unit]
            self.refs[string] += 1
            if unit > 0 and start == WIRE_STRING + 1:
                return string
        return -1

    # --- Nodes ------------------------------------------------------------------------------------

    cdef int attach_nodes(self) except -1 nogil:
        """Find the parents of nodes; a node that was dropped has none."""
        cdef int64_t node
        node = 1
        while node < self.nodes:
            if self.node_name[node] >= 0:
                self.node_parent[node] = self.attached(
                    self.node_block[node], self.node_parent[node]
                )
            else:
                self.node_parent[node] = NO_NODE
            node += 1
        return 0

    cdef int64_t attached(self, int64_t record, int64_t parent) except? -9 nogil:
        """Return the node that a parent's unit is; NO_NODE for one that was dropped or deleted.

        A record whose parent is not a node is reported as an orphan.
        """
        cdef int64_t start, node
        if parent == 0:
            return 0
        start = self.scan.starts[parent] if parent < self.scan.units else 0
        if start == NODE + 1:
            node = self.scan.numbers[parent]
            return node if self.node_name[node] >= 0 else NO_NODE
        if start != TOMBSTONE + 1:
            self.notes.add(ORPHAN, UNIT * self.scan.unit[record], record, parent)
        return NO_NODE

    cdef int find_cycles(self) except -1 nogil:
        """Report cycles of nodes, each at its first node.

        ``seen`` has, for each node, the node from which it was met first.
        """
        cdef int64_t start, node, first, around, record
        start = 1
        while start < self.nodes:
            node = start
            while node > 0 and self.seen[node] == 0:
                self.seen[node] = start
                node = self.node_parent[node]
            if node > 0 and self.seen[node] == start:
                first = node
                around = self.node_parent[node]
                while around != node:
                    first = min(first, around)
                    around = self.node_parent[around]
                # Mark the whole cycle, so that later walks stop here.
                record = self.node_block[first]
                self.notes.add(CYCLE, UNIT * self.scan.unit[record], record, 0)
            start += 1
        return 0


@cython.final
cdef class Validator:
    """Reports the findings of the inspect validator only: counts, double use, unused blocks."""

    cdef public const int64_t[::1] words
    cdef public Scan scan
    cdef public Notes notes
    cdef readonly const int32_t[::1] owner
    cdef readonly const uint8_t[::1] twice
    cdef public const int32_t[::1] refs, children

    def __init__(self, scan, texts, values, words, notes):
        self.words = words
        self.scan = scan
        self.notes = notes
        self.owner = texts.owner
        self.twice = texts.twice
        self.refs = values.refs
        self.children = values.children

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Check every block."""
        cdef int64_t record, type, unit, count, extent
        record = 0
        while record < self.scan.count:
            type = self.scan.type[record]
            unit = self.scan.unit[record]
            if unit > 0:
                if type == NODE or type == TOMBSTONE:
                    if self.words[2 * unit + 1] != self.children[unit]:
                        count = self.words[2 * unit + 1]
                        self.notes.add(NODE_COUNT, UNIT * unit, record, count)
                elif type == NAME or type == WIRE_STRING:
                    self.string(record, unit, type)
                elif type == EXTENT:
                    extent = self.scan.numbers[unit]
                    if self.owner[extent] == 0:
                        self.notes.add(NOT_USED, UNIT * unit, record, 0)
                    elif self.twice[extent] != 0:
                        self.notes.add(EXTENT_USED_TWICE, UNIT * unit, record, 0)
            record += 1
        return 0

    cdef int string(self, int64_t record, int64_t unit, int64_t type) except -1 nogil:
        """Compare the references to a string with its own count."""
        cdef int64_t refs
        refs = self.refs[self.scan.numbers[unit]]
        if refs == 0:
            self.notes.add(NOT_USED, UNIT * unit, record, 0)
        elif type == NAME:
            if refs > 1:
                self.notes.add(NAME_USED_TWICE, UNIT * unit, record, refs)
        elif (self.words[2 * unit] >> self.scan.name_at) & MAX_REFERENCES != refs:
            self.notes.add(STRING_COUNT, UNIT * unit, record, refs)
        return 0
