"""The tree that the blocks of a VMO make, built for clarity: what the tables are held against.

Blocks are looked at one after another, in the order of the file:

1. Texts. The chains of extents of BUFFER_VALUEs and STRING_REFERENCEs are followed, in the order of
   those blocks. An extent may be in two chains, but all chains together give at most as many bytes
   as the file has, which bounds what a hostile file can ask for. A chain that breaks is cut.
2. Values. Each has its name and its own contents looked up; where that fails it is dropped, with
   one finding.
3. The tree. A value whose parent is the root, index 0, or a node that was not dropped hangs there.
   A value below nothing is an orphan; nodes below themselves are a cycle; both are findings. What
   is below a tombstone, or below anything that is not in the tree itself, is not in it either,
   and nothing more is said of it.
4. What the inspect validator looks at: double use, reference counts, what nothing refers to.

A finding has the offset of the block that it is about. No step recurses, however deep the tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import attrs

from fx_inspect import format as wire
from fx_inspect.format import Block, BlockType
from fx_inspect.read.decoder import RecordDecoder
from fx_inspect.read.records import InspectRecord
from fx_inspect.rules import RULES
from fxframework.kit.lossless import PaddingRecord
from fxframework.model.diagnostics import Diagnostics

if TYPE_CHECKING:
    from fx_inspect.read.records import Data

__all__ = ["Finding", "Link", "Node", "Property", "Tree", "build", "read"]

LEAST_SLOTS = {wire.ARRAY_LINEAR: wire.LINEAR_SLOTS, wire.ARRAY_EXPONENTIAL: wire.EXPONENTIAL_SLOTS}
Array = tuple[int, ...] | tuple[float, ...] | tuple[str, ...]


def capacity(type: int, order: int) -> int:
    """Return the bytes of payload in a block of this type and order; 0 for types without one."""
    return wire.ORDER_SIZE(order) - wire.PAYLOAD_AT[type] if type in wire.PAYLOAD_AT else 0


@attrs.frozen
class Property:
    """A value of a node."""

    name: str
    type: str
    """int uint double bool string bytes, or int_array uint_array double_array string_array."""
    value: int | float | bool | str | bytes | Array
    block: int
    """Index of its block."""
    format: str | None = None
    """Of an array flat, linear or exponential; of strings and bytes utf8, bytes or
    string_reference; of others None."""


@attrs.frozen
class Link:
    """A reference to a tree in another VMO."""

    name: str
    content: str
    """What the other tree is called by."""
    disposition: str
    """``child``, ``inline``, or ``?`` for a number that stands for neither."""
    block: int


@attrs.define
class Node:
    """A node: its properties, children and links, each in the order of their blocks."""

    name: str
    block: int
    properties: list[Property] = attrs.field(factory=list)
    children: list[Node] = attrs.field(factory=list, repr=False, eq=False)
    links: list[Link] = attrs.field(factory=list)


@attrs.frozen
class Finding:
    """A finding about a block."""

    code: str
    message: str
    offset: int
    """Byte offset of the block."""
    record: int
    """Number of its record."""

    @property
    def block(self) -> int:
        """Index of the block."""
        return self.offset // wire.UNIT


@attrs.define
class Tree:
    """What the blocks make: the sound part, and what is to be said of the rest."""

    root: Node
    findings: list[Finding]
    """Those of the tree; what is wrong with single blocks, the RecordDecoder finds."""

    def walk(self) -> Iterator[tuple[Node, int]]:
        """Every node with its depth, the root at 0: each before its children, in their order."""
        stack = [(self.root, 0)]
        while stack:
            node, depth = stack.pop()
            yield node, depth
            stack.extend((child, depth + 1) for child in reversed(node.children))


def read(data: Data, diagnostics: Diagnostics | None = None) -> Tree:
    """The tree of a file's bytes; findings of blocks and tree go to ``diagnostics``."""
    return build(RecordDecoder(diagnostics=diagnostics).records(data), diagnostics)


def build(records: Iterable[InspectRecord], diagnostics: Diagnostics | None = None) -> Tree:
    """The tree of all records of a file; its findings go to ``diagnostics`` too."""
    tree = _Builder(records).tree()
    if diagnostics is not None:
        for finding in tree.findings:
            diagnostics.add(RULES[finding.code], finding.offset, finding.record)
    return tree


def fields_of(block: Block) -> dict[str, Any]:
    """The fields of a block by name; what is shown by name is a number."""
    fields = {field.name: getattr(block, field.name) for field in block.layout.public}
    for name, names in (("format", wire.BUFFER_FORMATS), ("disposition", wire.DISPOSITIONS)):
        if isinstance(fields.get(name), str):
            fields[name] = next(number for number, each in names.items() if each == fields[name])
    return {name: value for name, value in fields.items() if value is not None}


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Dropped(Exception):  # noqa: N818 (raised and caught within a value, no error of ours)
    """The value is not in the tree; the code says why."""


_SCALARS = {
    BlockType.INT_VALUE: "int",
    BlockType.UINT_VALUE: "uint",
    BlockType.DOUBLE_VALUE: "double",
    BlockType.BOOL_VALUE: "bool",
}
_ARRAYS = {
    BlockType.INT_VALUE: "int_array",
    BlockType.UINT_VALUE: "uint_array",
    BlockType.DOUBLE_VALUE: "double_array",
    BlockType.STRING_REFERENCE: "string_array",
}
VALUES = frozenset(
    {
        BlockType.NODE_VALUE,
        BlockType.INT_VALUE,
        BlockType.UINT_VALUE,
        BlockType.DOUBLE_VALUE,
        BlockType.BUFFER_VALUE,
        BlockType.ARRAY_VALUE,
        BlockType.LINK_VALUE,
        BlockType.BOOL_VALUE,
    }
)
"""Types of values in the tree, with a parent and a name (those of a tombstone are ignored)."""
_PARENTED = frozenset({*VALUES, BlockType.TOMBSTONE})


class _Builder:
    """Makes the tree, a step after another."""

    def __init__(self, records: Iterable[InspectRecord]) -> None:
        self.blocks: dict[int, Block] = {}
        self.numbers: dict[int, int] = {}
        """Of each block's index, the number of its record."""
        self.size = 0
        self.padding: set[int] = set()
        """Units of zeros, which are free blocks of the smallest order."""
        for number, record in enumerate(records):
            if isinstance(record, Block):
                index = self.size // wire.UNIT
                self.blocks[index] = record
                self.numbers[index] = number
            elif isinstance(record, PaddingRecord):
                first = self.size // wire.UNIT
                self.padding.update(range(first, first + record.nbytes // wire.UNIT))
            self.size += record.nbytes
        self.findings: list[Finding] = []
        self.texts: dict[int, str] = {}
        """Of NAMEs that fit their blocks, STRING_REFERENCEs, and strings in extents: each once."""
        self.payloads: dict[int, bytes] = {}
        """Of BUFFER_VALUEs that are bytes."""
        self.extents: dict[int, int] = {}
        """Of each extent that is in a chain, what the last such chain began at."""
        self.nodes = {0: Node("root", 0)}

    def find(self, code: str, index: int, message: str = "") -> None:
        """Note a finding about the block of this index."""
        offset = index * wire.UNIT
        self.findings.append(Finding(code, message, offset, self.numbers[index]))

    def type(self, index: int) -> int:
        """The type of the block that begins at this index; -1 where none does."""
        block = self.blocks.get(index)
        return -1 if block is None else block.number

    def of(self, types: Iterable[int]) -> Iterator[tuple[int, Block]]:
        """The blocks of some types, in order. Index 0 is the root's, whatever its block is."""
        wanted = frozenset(types)
        return ((i, block) for i, block in self.blocks.items() if i and block.number in wanted)

    def tree(self) -> Tree:
        """All of it."""
        self.read_texts()
        values = self.read_values()
        self.attach(values)
        self.find_cycles(values)
        self.find_duplicates()
        self.validate()
        return Tree(self.nodes[0], self.findings)

    # --- texts ---

    def read_texts(self) -> None:
        """Follow the chains of extents."""
        room = self.size
        doubles: set[int] = set()
        for index, block in self.of((BlockType.BUFFER_VALUE, BlockType.STRING_REFERENCE)):
            fields = fields_of(block)
            inline = b""
            if block.number == BlockType.STRING_REFERENCE:
                inline, first, utf8 = fields["inline"], fields["next_extent"], True
            else:
                if fields["format"] not in (wire.BUFFER_UTF8, wire.BUFFER_BYTES):
                    continue
                first, utf8 = fields["extent"], fields["format"] == wire.BUFFER_UTF8
            data, code = self.chain(
                index, first, fields["total_length"] - len(inline), room, doubles
            )
            room -= len(data)
            data = inline + data
            if utf8:
                self.texts[index] = _text(data)
            else:
                self.payloads[index] = data
            if code is not None:
                self.find(code, index, f"{len(data)} bytes of {fields['total_length']}")
            if code in (None, "FXI0227") and utf8 and not _is_utf8(data):
                self.find("FXI0204", index)
        for index, block in self.of((BlockType.NAME,)):
            fields = fields_of(block)
            if fields["length"] <= capacity(BlockType.NAME, block.order):
                self.texts[index] = fields["name"]
                if not _is_utf8(fields["name"].encode(errors="surrogateescape")):
                    self.find("FXI0204", index)
        for index in sorted(doubles):
            self.find("FXI0303", index)

    def chain(
        self, owner: int, index: int, nbytes: int, room: int, doubles: set[int]
    ) -> tuple[bytes, str | None]:
        """The bytes of a chain, and the code of what ended it early or too late."""
        parts: list[bytes] = []
        while nbytes > 0:
            if not index:
                return b"".join(parts), "FXI0207"
            if self.type(index) != BlockType.EXTENT:
                return b"".join(parts), "FXI0205"
            before = self.extents.get(index)
            if before == owner:
                return b"".join(parts), "FXI0206"
            if before is not None:
                doubles.add(index)
            self.extents[index] = owner
            fields = fields_of(self.blocks[index])
            part = fields["payload"][:nbytes]
            if len(part) > room:
                parts.append(part[:room])
                return b"".join(parts), "FXI0208"
            parts.append(part)
            nbytes -= len(part)
            room -= len(part)
            index = fields["next_extent"]
        return b"".join(parts), "FXI0227" if index else None

    def name(self, index: int) -> str:
        """The text of a name. Raises _Dropped with the code where there is none."""
        type = self.type(index)
        if index and type in (BlockType.NAME, BlockType.STRING_REFERENCE):
            if index in self.texts:
                return self.texts[index]
            length = fields_of(self.blocks[index])["length"]
            raise _Dropped("FXI0203", f"name {index} has {length} bytes")
        if type < 0:
            raise _Dropped("FXI0201", f"no block begins at {index}")
        raise _Dropped("FXI0202", f"block {index} is of type {self.blocks[index].type}")

    # --- values ---

    def read_values(self) -> dict[int, Node | Property | Link]:
        """What each value is; of a dropped one a finding."""
        values: dict[int, Node | Property | Link] = {}
        for index, block in self.of(VALUES):
            try:
                values[index] = self.value(index, block, self.name(fields_of(block)["name"]))
            except _Dropped as dropped:
                code, message = dropped.args
                self.find(code, index, message)
        return values

    def value(self, index: int, block: Block, name: str) -> Node | Property | Link:
        """What a value of this name is."""
        type = BlockType(block.number)
        fields = fields_of(block)
        if type == BlockType.NODE_VALUE:
            return Node(name, index)
        if type in _SCALARS:
            return Property(name, _SCALARS[type], fields["value"], index)
        if type == BlockType.BUFFER_VALUE:
            return self.buffer(index, name, fields)
        if type == BlockType.ARRAY_VALUE:
            return self.array(index, block, name)
        try:
            content = self.name(fields["content"])
        except _Dropped as dropped:
            raise _Dropped("FXI0218", dropped.args[1]) from None
        disposition = wire.DISPOSITIONS.get(fields["disposition"], "?")
        if disposition == "?":
            self.find("FXI0217", index, f"disposition {fields['disposition']}")
        return Link(name, content, disposition, index)

    def buffer(self, index: int, name: str, fields: dict[str, Any]) -> Property:
        """A string or bytes."""
        format = fields["format"]
        if format == wire.BUFFER_BYTES:
            return Property(name, "bytes", self.payloads[index], index, "bytes")
        if format == wire.BUFFER_UTF8:
            return Property(name, "string", self.texts[index], index, "utf8")
        if format != wire.BUFFER_STRING_REFERENCE:
            raise _Dropped("FXI0209", f"format {format}")
        target = fields["extent"]
        if self.type(target) != BlockType.STRING_REFERENCE or not target:
            raise _Dropped("FXI0210", f"index {target}")
        return Property(name, "string", self.texts[target], index, "string_reference")

    def array(self, index: int, block: Block, name: str) -> Property:
        """An array."""
        fields = fields_of(block)
        entry, format, count = fields["entry_type"], fields["format"], fields["count"]
        if entry not in wire.SLOT_BYTES:
            raise _Dropped("FXI0211", f"entries of type {entry}")
        strings = entry == BlockType.STRING_REFERENCE
        room = _room(block)
        if count > room:
            raise _Dropped("FXI0212", f"{count} slots, and there is room for {room}")
        if format and not count:
            raise _Dropped("FXI0213", f"format {format}")
        if format not in wire.ARRAY_FORMATS or (strings and format):
            self.find("FXI0215", index, f"format {format}")
            format = wire.ARRAY_FLAT
        if count < LEAST_SLOTS.get(format, 0):
            self.find("FXI0214", index, f"{count} slots")
        slots: Array = self.strings(index, fields) if strings else fields["slots"]
        return Property(name, _ARRAYS[BlockType(entry)], slots, index, wire.ARRAY_FORMATS[format])

    def strings(self, index: int, fields: dict[str, Any]) -> tuple[str, ...]:
        """The slots of an array of strings."""
        slots = []
        wrong = None
        for number, target in enumerate(fields["slot_indexes"]):
            text = ""
            if target:
                if self.type(target) == BlockType.STRING_REFERENCE:
                    text = self.texts[target]
                elif wrong is None:
                    wrong = number
            slots.append(text)
        if wrong is not None:
            self.find("FXI0216", index, f"slot {wrong}")
        return tuple(slots)

    # --- the tree ---

    def attach(self, values: dict[int, Node | Property | Link]) -> None:
        """Give every value to its parent, in the order of the file."""
        self.nodes |= {index: value for index, value in values.items() if isinstance(value, Node)}
        for index, value in values.items():
            at = fields_of(self.blocks[index])["parent"]
            parent = self.nodes.get(at)
            if parent is None:
                # A node that is not among the nodes was dropped, and a finding says so.
                if self.type(at) not in (BlockType.NODE_VALUE, BlockType.TOMBSTONE):
                    self.find("FXI0221", index, f"its parent is {at}")
            elif isinstance(value, Node):
                parent.children.append(value)
            elif isinstance(value, Property):
                parent.properties.append(value)
            else:
                parent.links.append(value)

    def find_cycles(self, values: dict[int, Node | Property | Link]) -> None:
        """Report the nodes that are below themselves, each cycle once."""
        walk: dict[int, int] = {}
        for start, value in values.items():
            index = start
            path: list[int] = []
            while isinstance(value, Node) and index in self.nodes and index and index not in walk:
                walk[index] = start
                path.append(index)
                index = fields_of(self.blocks[index])["parent"]
            if path and index and walk.get(index) == start:
                cycle = path[path.index(index) :]
                self.find("FXI0222", min(cycle), f"{len(cycle)} nodes")

    def find_duplicates(self) -> None:
        """Report tombstones, and names that siblings share."""
        for index, block in self.of((BlockType.TOMBSTONE,)):
            self.find("FXI0223", index, f"{fields_of(block)['reference_count']} values")
        stack = [self.nodes[0]]
        while stack:
            node = stack.pop()
            stack.extend(node.children)
            siblings: tuple[tuple[str, list[Node] | list[Property]], ...] = (
                ("FXI0224", node.children),
                ("FXI0225", node.properties),
            )
            for code, each in siblings:
                seen: set[str] = set()
                for one in each:
                    if one.name in seen:
                        self.find(code, one.block, repr(one.name))
                    seen.add(one.name)

    # --- what the inspect validator looks at ---

    def validate(self) -> None:
        """Count the uses of texts, and the values of nodes."""
        children: Counter[int] = Counter()
        uses: Counter[int] = Counter()
        for _, block in self.of(_PARENTED):
            fields = fields_of(block)
            children[fields["parent"]] += 1
            uses[fields["name"]] += 1
            if block.number == BlockType.LINK_VALUE:
                uses[fields["content"]] += 1
            elif block.number == BlockType.BUFFER_VALUE:
                if fields["format"] == wire.BUFFER_STRING_REFERENCE:
                    uses[fields["extent"]] += 1
            elif block.number == BlockType.ARRAY_VALUE and fields["count"] <= _room(block):
                uses.update(fields.get("slot_indexes", ()))
        for index, block in self.of((BlockType.NODE_VALUE, BlockType.TOMBSTONE)):
            count = fields_of(block)["reference_count"]
            if count != children[index]:
                self.find("FXI0304", index, f"it is {count}, and there are {children[index]}")
        for index, block in self.of((BlockType.NAME, BlockType.STRING_REFERENCE)):
            if not uses[index]:
                self.find("FXI0306", index, f"of type {block.type}")
            elif block.number == BlockType.NAME:
                if uses[index] > 1:
                    self.find("FXI0302", index, f"{uses[index]} times")
            elif fields_of(block)["reference_count"] != uses[index]:
                count = fields_of(block)["reference_count"]
                self.find("FXI0305", index, f"it is {count}, and there are {uses[index]}")
        for index, block in self.of((BlockType.FREE,)):
            after = fields_of(block)["next_free"]
            fine = after in self.padding and not block.order
            if self.type(after) == BlockType.FREE:
                fine = self.blocks[after].order == block.order
            if after and not fine:
                self.find("FXI0307", index, f"index {after}")
        for index, block in self.of((BlockType.EXTENT,)):
            if index not in self.extents:
                self.find("FXI0306", index, f"of type {block.type}")


def _room(block: Block) -> int:
    """Slots that the block of an array has room for; 0 for entries that arrays do not hold."""
    slot = wire.SLOT_BYTES.get(fields_of(block)["entry_type"])
    return capacity(BlockType.ARRAY_VALUE, block.order) // slot if slot else 0
