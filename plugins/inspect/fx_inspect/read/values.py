"""Values: the nodes, properties and links of a VMO, and the nodes that they belong to."""

from __future__ import annotations

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.read import tables
from fx_inspect.read.scan import Scan
from fx_inspect.read.texts import Texts
from fxframework.kernels.annotations import Array, Bytes, Fallible, View, i32, i64, status, u8, u32
from fxframework.kernels.buffers import full, room
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.notes import Notes

__all__ = ["Validator", "Values"]

NO_NODE = -1
ONE = 1


class Values(Kernel):
    """Reads nodes, properties and links in the order of the file, and finds their nodes.

    Nodes, the root first (int32): ``node_parent`` is a node, -1 for none; ``node_name`` a string,
    -1 for a node that was dropped; ``node_block`` a record. Properties, ``rows`` of them:
    ``name``, ``node`` and ``block`` (int32) likewise, ``type`` and ``format`` (uint8), ``bits``
    (int64) of a number, ``source`` (int32) the unit of the block that has the text, ``length``
    (uint32) the bytes of the text or the slots of an array. Links, ``links`` of them, likewise.

    ``uses`` (int32) counts what refers to each string in the tree, ``refs`` whatever does;
    ``children`` (int32) the values that name each unit as their parent.
    """

    words: View[i64]
    scan: Scan
    notes: Notes
    string_length: View[i64]
    buffer_length: View[i64]
    uses: Array[i32]
    refs: Array[i32]
    children: Array[i32]
    seen: Array[i32]
    nodes: i64
    rows: i64
    links: i64
    node_parent: Array[i32]
    node_name: Array[i32]
    node_block: Array[i32]
    name: Array[i32]
    node: Array[i32]
    block: Array[i32]
    source: Array[i32]
    type: Array[u8]
    format: Array[u8]
    bits: Array[i64]
    length: Array[u32]
    link_name: Array[i32]
    link_node: Array[i32]
    link_block: Array[i32]
    link_content: Array[i32]
    link_disposition: Array[u8]
    seen_types: i64
    parent: i64
    named: i64
    about: i64
    fault: i64

    def __init__(self, scan: Scan, texts: Texts, words: memoryview, notes: Notes) -> None:
        self.words = memoryview(words)
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

    def step(self) -> Fallible[i64]:
        """Read all values, then find their nodes, and report cycles of nodes."""
        record = 0
        while record < self.scan.count:
            type = self.scan.type[record]
            if type >= wire.NODE and type <= wire.BOOL:
                if (type < wire.EXTENT or type > wire.NAME) and self.scan.unit[record] > 0:
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

    def value(self, record: i64, unit: i64, type: i64) -> status:
        """Read a value, or a tombstone."""
        word = self.words[2 * unit]
        self.parent = (word >> self.scan.index_at) & self.scan.index_mask
        if self.parent < self.scan.units:
            self.children[self.parent] += 1
        target = (word >> self.scan.name_at) & self.scan.index_mask
        if type == wire.TOMBSTONE:
            self.find_string(target)
            children = self.words[2 * unit + 1]
            self.notes.add(rules.DELETED_WITH_VALUES, wire.UNIT * unit, record, children)
            return 0
        self.fault = 0
        self.about = target
        self.named = self.find_name(target)
        if type == wire.NODE:
            self.read_node(record, unit)
        elif type == wire.LINK:
            self.read_link(record, unit)
        elif type == wire.BUFFER:
            self.read_buffer(record, unit)
        elif type == wire.ARRAY:
            self.read_array(record, unit)
        elif type == wire.BOOL:
            payload = self.words[2 * unit + 1]
            self.property(record, unit, tables.BOOL, 0, 1 if payload != 0 else 0, unit, 0)
        else:
            kind = tables.INT + type - wire.INT
            self.property(record, unit, kind, 0, self.words[2 * unit + 1], unit, 0)
        return 0

    def read_node(self, record: i64, unit: i64) -> status:
        """Read a node; one without a name is dropped."""
        node = self.scan.numbers[unit]
        self.node_parent[node] = self.parent
        self.node_name[node] = self.named
        self.node_block[node] = record
        if self.fault != 0:
            return self.drop(record, unit)
        self.uses[self.named] += 1
        return 0

    def read_link(self, record: i64, unit: i64) -> status:
        """Read a link."""
        payload = self.words[2 * unit + 1]
        target = wire.LINK_CONTENT.get(payload)
        disposition = wire.LINK_DISPOSITION.get(payload)
        fault = self.fault
        about = self.about
        content = self.find_name(target)
        if fault != 0:
            self.fault = fault
            self.about = about
        elif content < 0:
            self.fault = rules.NO_CONTENT
            self.about = target
        if self.fault != 0:
            return self.drop(record, unit)
        if disposition > wire.INLINE:
            self.notes.add(rules.UNKNOWN_DISPOSITION, wire.UNIT * unit, record, disposition)
        self.uses[self.named] += 1
        self.uses[content] += 1
        self.link_name[self.links] = self.named
        self.link_node[self.links] = self.parent
        self.link_block[self.links] = record
        self.link_content[self.links] = content
        self.link_disposition[self.links] = disposition
        self.links += 1
        return 0

    def read_buffer(self, record: i64, unit: i64) -> status:
        """Read a string or bytes."""
        payload = self.words[2 * unit + 1]
        format = wire.BUFFER_FORMAT.get(payload)
        kind = tables.BYTES if format == wire.BUFFER_BYTES else tables.STRING
        if format < wire.BUFFER_STRING_REFERENCE:
            nbytes = self.buffer_length[self.scan.numbers[unit]]
            return self.property(record, unit, kind, format, 0, unit, nbytes)
        if format > wire.BUFFER_STRING_REFERENCE:
            if self.fault == 0:
                self.fault = rules.UNKNOWN_FORMAT
                self.about = format
            return self.drop(record, unit)
        target = wire.BUFFER_EXTENT.get(payload)
        string = self.find_string(target)
        if string < 0:
            if self.fault == 0:
                self.fault = rules.NO_STRING
                self.about = target
            return self.drop(record, unit)
        return self.property(record, unit, kind, format, 0, target, self.string_length[string])

    def read_array(self, record: i64, unit: i64) -> status:
        """Read an array, which may be a histogram."""
        payload = self.words[2 * unit + 1]
        entry = wire.ENTRY_TYPE.get(payload)
        format = wire.ARRAY_FORMAT.get(payload)
        count = wire.SLOT_COUNT.get(payload)
        of_strings = entry == wire.STRING
        wrong = self.array_fault(entry, format, count, self.scan.order[record])
        if self.fault == 0 and wrong != 0:
            self.fault = wrong
            self.about = entry if wrong == rules.UNKNOWN_ENTRIES else count
        if of_strings and wrong != rules.TOO_MANY_SLOTS:
            slot = self.read_slots(unit, count)
            if self.fault == 0 and slot >= 0:
                self.notes.add(rules.SLOT_WITHOUT_STRING, wire.UNIT * unit, record, slot)
        if self.fault != 0:
            return self.drop(record, unit)
        if format > wire.ARRAY_EXPONENTIAL or (of_strings and format != wire.ARRAY_FLAT):
            self.notes.add(rules.UNKNOWN_ARRAY_FORMAT, wire.UNIT * unit, record, format)
            format = wire.ARRAY_FLAT
        elif format == wire.ARRAY_LINEAR and count < wire.LINEAR_SLOTS:
            self.notes.add(rules.FEW_SLOTS, wire.UNIT * unit, record, count)
        elif format == wire.ARRAY_EXPONENTIAL and count < wire.EXPONENTIAL_SLOTS:
            self.notes.add(rules.FEW_SLOTS, wire.UNIT * unit, record, count)
        kind = tables.STRING_ARRAY if of_strings else tables.INT_ARRAY + entry - wire.INT
        return self.property(record, unit, kind, format, 0, unit, count)

    def array_fault(self, entry: i64, format: i64, count: i64, order: i64) -> i64:
        """Return the finding about an invalid array; 0 for a sound one."""
        if entry != wire.STRING and (entry < wire.INT or entry > wire.DOUBLE):
            return rules.UNKNOWN_ENTRIES
        room = (wire.UNIT << order) - wire.SLOTS_AT
        if count > room // (4 if entry == wire.STRING else 8):
            return rules.TOO_MANY_SLOTS
        return rules.EMPTY_HISTOGRAM if count == 0 and format != wire.ARRAY_FLAT else 0

    def read_slots(self, unit: i64, count: i64) -> i64:
        """Count what the slots of an array of strings refer to; the first slot of nothing, or -1.

        Only those of an array in the tree count as uses.
        """
        wrong = -1
        slot = 0
        while slot < count:
            target = wire.SLOT_STRING.get(self.words[2 * unit + 2 + slot // 2] >> 32 * (slot % 2))
            string = self.find_string(target)
            if target != 0:
                if string < 0:
                    if wrong < 0:
                        wrong = slot
                elif self.fault == 0:
                    self.uses[string] += 1
            slot += 1
        return wrong

    def property(
        self, record: i64, unit: i64, kind: i64, format: i64, bits: i64, source: i64, nbytes: i64
    ) -> status:
        """Add a property; one without a name is dropped."""
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
        self.seen_types |= ONE << kind
        self.rows = row + 1
        return 0

    def drop(self, record: i64, unit: i64) -> status:
        """Report a value that is not in the tree."""
        self.notes.add(self.fault, wire.UNIT * unit, record, self.about)
        return 0

    # --- Strings ----------------------------------------------------------------------------------

    def find_name(self, unit: i64) -> i64:
        """Return the string that is the name at a unit, counted as a reference to it.

        -1 if there is none; ``fault`` says why.
        """
        start = self.scan.starts[unit] if unit < self.scan.units else 0
        if start == wire.STRING + 1 or start == wire.NAME + 1:
            string = self.scan.numbers[unit]
            self.refs[string] += 1
            if start == wire.NAME + 1:
                if self.string_length[string] >= 0:
                    return string
                self.fault = rules.NAME_PAST_ITS_BLOCK
                self.about = (self.words[2 * unit] >> self.scan.index_at) & wire.NAME_LENGTH
            elif unit > 0:
                return string
            else:
                self.fault = rules.NAME_OF_ANOTHER_TYPE
        else:
            self.fault = rules.NAME_WITHOUT_BLOCK if start == 0 else rules.NAME_OF_ANOTHER_TYPE
        return -1

    def find_string(self, unit: i64) -> i64:
        """Return the STRING_REFERENCE at a unit; -1 if there is none. Unit 0 has none.

        The string there, a NAME too, is counted as referred to.
        """
        start = self.scan.starts[unit] if unit < self.scan.units else 0
        if start == wire.STRING + 1 or start == wire.NAME + 1:
            string = self.scan.numbers[unit]
            self.refs[string] += 1
            if unit > 0 and start == wire.STRING + 1:
                return string
        return -1

    # --- Nodes ------------------------------------------------------------------------------------

    def attach_nodes(self) -> status:
        """Find the parents of nodes; a node that was dropped has none."""
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

    def attached(self, record: i64, parent: i64) -> Fallible[i64]:
        """Return the node that a parent's unit is; NO_NODE for one that was dropped or deleted.

        A record whose parent is not a node is reported as an orphan.
        """
        if parent == 0:
            return 0
        start = self.scan.starts[parent] if parent < self.scan.units else 0
        if start == wire.NODE + 1:
            node = self.scan.numbers[parent]
            return node if self.node_name[node] >= 0 else NO_NODE
        if start != wire.TOMBSTONE + 1:
            self.notes.add(rules.ORPHAN, wire.UNIT * self.scan.unit[record], record, parent)
        return NO_NODE

    def find_cycles(self) -> status:
        """Report cycles of nodes, each at its first node.

        ``seen`` has, for each node, the node from which it was met first.
        """
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
                self.notes.add(rules.CYCLE, wire.UNIT * self.scan.unit[record], record, 0)
            start += 1
        return 0


class Validator(Kernel):
    """Reports the findings of the inspect validator only: counts, double use, unused blocks."""

    words: View[i64]
    scan: Scan
    notes: Notes
    owner: View[i32]
    twice: Bytes
    refs: View[i32]
    children: View[i32]

    def __init__(
        self, scan: Scan, texts: Texts, values: Values, words: memoryview, notes: Notes
    ) -> None:
        self.words = memoryview(words)
        self.scan = scan
        self.notes = notes
        self.owner = texts.owner
        self.twice = texts.twice
        self.refs = values.refs
        self.children = values.children

    def step(self) -> Fallible[i64]:
        """Check every block."""
        record = 0
        while record < self.scan.count:
            type = self.scan.type[record]
            unit = self.scan.unit[record]
            if unit > 0:
                if type == wire.NODE or type == wire.TOMBSTONE:
                    if self.words[2 * unit + 1] != self.children[unit]:
                        count = self.words[2 * unit + 1]
                        self.notes.add(rules.NODE_COUNT, wire.UNIT * unit, record, count)
                elif type == wire.NAME or type == wire.STRING:
                    self.string(record, unit, type)
                elif type == wire.EXTENT:
                    extent = self.scan.numbers[unit]
                    if self.owner[extent] == 0:
                        self.notes.add(rules.NOT_USED, wire.UNIT * unit, record, 0)
                    elif self.twice[extent] != 0:
                        self.notes.add(rules.EXTENT_USED_TWICE, wire.UNIT * unit, record, 0)
            record += 1
        return 0

    def string(self, record: i64, unit: i64, type: i64) -> status:
        """Compare the references to a string with its own count."""
        refs = self.refs[self.scan.numbers[unit]]
        if refs == 0:
            self.notes.add(rules.NOT_USED, wire.UNIT * unit, record, 0)
        elif type == wire.NAME:
            if refs > 1:
                self.notes.add(rules.NAME_USED_TWICE, wire.UNIT * unit, record, refs)
        elif (self.words[2 * unit] >> self.scan.name_at) & wire.MAX_REFERENCES != refs:
            self.notes.add(rules.STRING_COUNT, wire.UNIT * unit, record, refs)
        return 0
