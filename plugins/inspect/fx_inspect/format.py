"""Format: the blocks of Inspect VMOs, declared, with their limits and numbers.

Sections are those of Fuchsia's documents "Inspect VMO format" and "Inspect VMO heap", and of
docs/formats/inspect.md, which corrects both. There are two layouts: ``v0`` is that of the library
of 2019, with the type in 4 bits and indexes of 28 bits; ``new`` is that of versions 1 and 2, with 8
and 24. All integers are little-endian. An index counts units of 16 bytes from the beginning of the
file.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar, Final

import attrs

from fx_inspect import rules
from fx_inspect.rules import RULES
from fxframework import wire
from fxframework.errors import refusal
from fxframework.io.words import HIGH_HALF, LOW_HALF, WORD, Bits, WordLayout, plain_numbers
from fxframework.kit.json_fields import JsonFields
from fxframework.wire.cursor import RefusalError
from fxframework.wire.families import Place
from fxframework.wire.records import Record

UNIT: Final = 16
"""Bytes per unit of an index, and bytes of the smallest block."""


def ORDER_SIZE(order: Any) -> Any:  # noqa: N802 (the public name)
    """Return the bytes of a block of this order, or of blocks of a column of orders."""
    return UNIT << order


class BlockType(IntEnum):
    """Types of blocks. Version 0 has the types up to LINK_VALUE."""

    FREE = 0
    RESERVED = 1
    HEADER = 2
    NODE_VALUE = 3
    INT_VALUE = 4
    UINT_VALUE = 5
    DOUBLE_VALUE = 6
    BUFFER_VALUE = 7
    EXTENT = 8
    NAME = 9
    TOMBSTONE = 10
    ARRAY_VALUE = 11
    LINK_VALUE = 12
    BOOL_VALUE = 13
    STRING_REFERENCE = 14


TYPES: Final = plain_numbers(BlockType)
TYPE_NAMES: Final[Mapping[int, str]] = {int(type): type.name for type in BlockType}
V0_TYPES: Final = 13
"""First type that version 0 does not have."""
NEW_TYPES: Final = 15
"""First type that versions 1 and 2 do not have."""

# --- Limits --------------------------------------------------------------------------------------

MAX_ORDER: Final = 7
"""Highest order of the reference. The field holds up to 15, and readers accept what fits."""
MAX_BLOCK: Final = ORDER_SIZE(MAX_ORDER)
PAGE: Final = 4096
DEFAULT_VMO: Final = 262144
MIN_VMO: Final = PAGE
MAX_VMO: Final = 128 << 20
MAX_LINK_INDEX: Final = (1 << 20) - 1
"""Highest index of a link's content, which limits it to the first 16 MiB."""
MAX_SLOTS: Final = 255
"""Highest count of an array; a block of order 7 has room for 254 numbers."""
MAX_NAME: Final = MAX_BLOCK - 8
"""Longest name in a NAME block, in bytes; the length field would hold 4095."""
MAX_REFERENCES: Final = (1 << 24) - 1
"""Most references to one string."""
MAX_STRING: Final = (1 << 32) - 1
MAX_VERSION: Final = 2

# --- The header ----------------------------------------------------------------------------------

MAGIC: Final = b"INSP"
SWAPPED_MAGIC: Final = b"PSNI"
"""Magic that early writers of version 0 in Rust may have written."""
FROZEN_GENERATION: Final = 0xFFFFFFFFFFFFFFFE
HEADER_BYTES: Final = 16
HEADER_BYTES_SIZE: Final = 32
"""Bytes of a header of order 1, which has the VMO's size."""
SIZE_AT: Final = 16
"""Offset of the VMO's size in the header, a u32."""
GENERATION_AT: Final = 8

# --- Values --------------------------------------------------------------------------------------

ARRAY_FLAT: Final = 0
ARRAY_LINEAR: Final = 1
ARRAY_EXPONENTIAL: Final = 2
ARRAY_FORMATS: Final[Mapping[int, str]] = {
    ARRAY_FLAT: "flat", ARRAY_LINEAR: "linear", ARRAY_EXPONENTIAL: "exponential",
}  # fmt: skip
LINEAR_SLOTS: Final = 5
EXPONENTIAL_SLOTS: Final = 6
"""Fewest slots of a histogram of each format: one bucket between underflow and overflow."""
SLOT_BYTES: Final[Mapping[int, int]] = {
    BlockType.INT_VALUE: 8,
    BlockType.UINT_VALUE: 8,
    BlockType.DOUBLE_VALUE: 8,
    BlockType.STRING_REFERENCE: 4,
}
"""Bytes per slot, by the entry type of an array."""
ENTRY_TYPES: Final[Mapping[int, str]] = {
    int(type): type.name for type in map(BlockType, SLOT_BYTES)
}
SLOTS_AT: Final = 16

BUFFER_UTF8: Final = 0
BUFFER_BYTES: Final = 1
BUFFER_STRING_REFERENCE: Final = 2
BUFFER_FORMATS: Final[Mapping[int, str]] = {
    BUFFER_UTF8: "utf8(0)",
    BUFFER_BYTES: "bytes(1)",
    BUFFER_STRING_REFERENCE: "string_reference(2)",
}
CHILD: Final = 0
INLINE: Final = 1
DISPOSITIONS: Final[Mapping[int, str]] = {CHILD: "child", INLINE: "inline"}

PAYLOAD_AT: Final[Mapping[int, int]] = {
    BlockType.FREE: 8,
    BlockType.RESERVED: 8,
    BlockType.EXTENT: 8,
    BlockType.NAME: 8,
    BlockType.STRING_REFERENCE: 12,
    BlockType.ARRAY_VALUE: SLOTS_AT,
}
"""Offset of the payload in a block, by type."""


# --- The first word of a block -------------------------------------------------------------------

ORDER = Bits("order", 0, 3, "16 << order bytes")
HEADER_MAGIC = HIGH_HALF
"""In the first word of a header."""
SLOT_STRING = LOW_HALF
"""Of two slots in a word."""


@attrs.frozen
class Head:
    """Fields of the first word that lie elsewhere in the other layout."""

    type: Bits
    first: Bits
    """The index after the type: of a parent, or of the next extent or free block."""
    second: Bits
    """The index of a name; of a string that values share, how many do."""
    version: Bits
    """In a header."""
    name_length: Bits
    """In a NAME."""


def _head(type: Bits, width: int) -> Head:
    """Return the fields where indexes have ``width`` bits."""
    start = type.high + 1
    middle = start + width
    return Head(
        type,
        Bits("first", start, middle - 1),
        Bits("second", middle, middle + width - 1),
        Bits("version", start, 31, "of the format"),
        Bits("length", start, start + 11, "bytes of the name"),
    )


_TYPES_V0 = {number: name for number, name in TYPE_NAMES.items() if number < V0_TYPES}
TYPE_V0 = Bits("type", 4, 7, "type of the block", values=_TYPES_V0)
TYPE = Bits("type", 8, 15, "type of the block", values=TYPE_NAMES)
HEADS: Final[Mapping[str, Head]] = {"v0": _head(TYPE_V0, 28), "new": _head(TYPE, 24)}
"""The fields of first words, by layout."""
SECTIONS: Final[Mapping[str, str]] = {
    "v0": "Inspect VMO heap; docs, Inspect: Two layouts",
    "new": "Inspect VMO format; docs, Inspect: What is read",
}

# --- Blocks --------------------------------------------------------------------------------------


class Block(Record, shared=True):
    """A block of a known type; the base of the blocks of both layouts.

    Its attributes are the fields of record JSON: the ``name`` of a value is an index, and so are
    parent, extent and so on.
    """

    order: int
    dialect: ClassVar[str]
    """Its layout: ``new`` or ``v0``."""
    beside: ClassVar[frozenset[str]] = frozenset({"index", "type", "layout"})

    @property
    def number(self) -> int:
        """The number of its type."""
        number: int = self.layout.kind[0]
        return number

    @property
    def type(self) -> str:
        """The name of its type."""
        return TYPE_NAMES[self.number]

    @property
    def index(self) -> int:
        """Index of the block, in units of 16 bytes."""
        return self.offset // UNIT

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """Return the block as ``pickle`` and ``copy`` take it: type and layout say its class."""
        reduced: Any = super().__reduce_ex__(protocol)
        _, _, *state = reduced
        return _empty_block, (self.dialect, self.number), *state

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into a JSON object."""
        out["index"] = self.index
        out["type"] = self.type
        out["order"] = self.order
        if self.dialect != "new":
            out["layout"] = self.dialect
        super().show(out)

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields of a JSON object; redundant keys may be missing."""
        form.used |= cls.beside
        form.what = TYPE_NAMES[cls.layout.kind[0]]
        order = form.within("order", 0, ORDER.limit)
        if order > MAX_ORDER and "raw" not in form:
            raise refusal(
                rules.TOO_LARGE,
                f"{form.what}: a block of order {order} ({ORDER_SIZE(order)} bytes) can only be "
                "written from `raw`",
            )
        return super().parse(form)

    def pack(self, state: Any = None) -> bytes:
        """Return the block's bytes, with zeros behind the fields; ``raw`` is not used.

        Raises WriteRefusedError: WRONG_TYPE and OUT_OF_RANGE for an invalid field,
        INDEX_OUT_OF_RANGE for an index that does not fit, STRING_TOO_LONG for a name and TOO_LARGE
        for data larger than the block, CONTRADICTION for lengths that contradict their contents.
        """
        try:
            return super().pack(state)
        except RefusalError as problem:
            message = f"{self.type}: {problem.message}"
            raise refusal(RULES.numbered(problem.number), message) from None


def _empty_block(dialect: str, number: int) -> Block:
    """Return a block of a layout and a type without fields."""
    cls = BLOCKS[dialect][number]
    block: Block = object.__new__(cls)
    return block


CONTENTS: Final = {404: rules.TOO_LARGE, 405: rules.CONTRADICTION}
"""The rules for bytes or slots that are not as many as their block says."""


def _at_most(count: Any, room: Any) -> Any:
    """Return how much of something a block has: as much as it says, or as it has room for."""
    fits = count <= room
    exceeds = count > room
    return count * fits + room * exceeds


def _slots(slot: Any, count: Any) -> Any:
    """Return the slots of an array of numbers, of 8 bytes each."""
    return wire.listed(slot, _at_most(count, wire.SIZE - SLOTS_AT >> 3), rules=CONTENTS)


def _index(place: Bits, doc: str, **options: Any) -> Any:
    """Return an index at some bits of a word."""
    index_rules = {404: rules.INDEX_OUT_OF_RANGE}
    return wire.bits(place.low, place.high, doc=doc, rules=index_rules, **options)


def _parent(head: Head) -> Any:
    return _index(head.first, "index of the parent; 0 is the root")


def _name(head: Head) -> Any:
    return _index(head.second, "index of the name")


def _next_extent(head: Head) -> Any:
    return _index(head.first, "index of the next extent; 0 is none")


def _truth() -> Any:
    """Return a word that is false if it is zero, else true."""
    word = wire.bits(0, 63, of=8, doc="zero is false, anything else true")
    word.flag = True
    return word


def _family(layout: str, head: Head) -> type[Any]:
    """Declare all blocks of a layout. Return the class that they derive from.

    ``_reserved`` bits are zero in a sound block; ``_unused`` ones are free for any use.
    """
    order_bits = wire.bits(0, 3, doc=ORDER.doc)
    size = wire.size(order_bits, unit=UNIT, power=True)

    class Base(Block, name="block", word=4, section=SECTIONS[layout]):
        dialect = layout
        order: int = size
        _type = wire.kind(wire.bits(head.type.low, head.type.high, meanings=TYPE_NAMES))

    # The heap's own blocks, names and strings.

    class Free(Base, kind=BlockType.FREE, word=8):
        next_free: int = _index(head.first, "index of the next free block of this order")
        _unused = wire.bits(head.second.low, 63)

    class Reserved(Base, kind=BlockType.RESERVED, word=8):
        _unused = wire.bits(head.first.low, 63)

    class Header(
        Base, kind=BlockType.HEADER, keys=("order", "magic", "version", "generation", "vmo_size")
    ):
        version: int = wire.bits(head.version.low, head.version.high, doc=head.version.doc)
        magic: str = wire.text(4, default="INSP", doc='"INSP"')
        generation: int = wire.u64(doc="odd while the VMO is being changed, 2^64 - 2 if frozen")
        vmo_size: int | None = wire.u32(when=size > 0, doc="bytes of the VMO")

        beside = Block.beside | {"locked", "frozen", "vmo_size"}

        def show(self, out: dict[str, Any]) -> None:
            """Put the fields into a JSON object, with what the generation means."""
            super().show(out)
            out["vmo_size"] = self.vmo_size
            out["locked"] = self.generation % 2 == 1
            out["frozen"] = self.generation == FROZEN_GENERATION

        @classmethod
        def parse(cls, form: JsonFields) -> dict[str, Any]:
            """Return the fields of a JSON object, which may leave out the size of the VMO."""
            has_size = form.given.get("vmo_size") is not None
            if not has_size and form.given.get("order") != 0:
                form.given = {**form.given, "vmo_size": 0}
            values = super().parse(form)
            if has_size:
                values["vmo_size"] = form.within("vmo_size", 0, VMO_SIZE.mask)
            return values

        def pack(self, state: Any = None) -> bytes:
            """Return the block's bytes. Raises WriteRefusedError."""
            if self.vmo_size is not None and not self.order:
                message = "HEADER: a header of order 0 has no vmo_size"
                raise refusal(rules.CONTRADICTION, message)
            if layout == "v0" and self.version % 256:
                raise refusal(
                    rules.CONTRADICTION,
                    f"HEADER: with version {self.version} "
                    "the bytes are not those of a version 0 header",
                )
            return super().pack(state)

    class Extent(Base, kind=BlockType.EXTENT, word=8):
        next_extent: int = _next_extent(head)
        _reserved = wire.bits(head.second.low, 63)
        payload: bytes = wire.octets(rules=CONTENTS)
        capacity: int | None = wire.computed(wire.SIZE - PAYLOAD_AT[BlockType.EXTENT])

    length_bits = head.name_length
    name_room = wire.SIZE - PAYLOAD_AT[BlockType.NAME]

    class Name(Base, kind=BlockType.NAME, word=8):
        length: int = wire.bits(length_bits.low, length_bits.high, doc=length_bits.doc)
        _reserved = wire.bits(length_bits.high + 1, 63)
        name: str = wire.text(
            _at_most(length, name_room),
            rules={404: rules.STRING_TOO_LONG, 405: rules.CONTRADICTION},
        )

    if layout == "new":
        inline_room = wire.SIZE - PAYLOAD_AT[BlockType.STRING_REFERENCE]

        class StringReference(Base, kind=BlockType.STRING_REFERENCE, word=8):
            next_extent: int = _next_extent(head)
            reference_count: int = wire.bits(head.second.low, 63, doc="uses of the string")
            total_length: int = wire.u32(doc="bytes of the string")
            inline: bytes = wire.octets(_at_most(total_length, inline_room), rules=CONTENTS)

    _value_blocks(Base, head)
    return Base


def _value_blocks(Base: Any, head: Head) -> None:  # noqa: N803 (a class)
    """Declare the values of a layout, which have a parent and a name."""

    class NodeValue(Base, kind=BlockType.NODE_VALUE, word=8):  # type: ignore[call-arg, misc]
        parent: int = _parent(head)
        name: int = _name(head)
        reference_count: int = wire.u64(doc="values that have it as parent")

    class Tombstone(Base, kind=BlockType.TOMBSTONE, word=8):  # type: ignore[call-arg, misc]
        parent: int = _parent(head)
        name: int = _name(head)
        reference_count: int = wire.u64(doc="values that have it as parent")

    class IntValue(Base, kind=BlockType.INT_VALUE, word=8):  # type: ignore[call-arg, misc]
        parent: int = _parent(head)
        name: int = _name(head)
        value: int = wire.i64()

    class UintValue(Base, kind=BlockType.UINT_VALUE, word=8):  # type: ignore[call-arg, misc]
        parent: int = _parent(head)
        name: int = _name(head)
        value: int = wire.u64()

    class DoubleValue(Base, kind=BlockType.DOUBLE_VALUE, word=8):  # type: ignore[call-arg, misc]
        parent: int = _parent(head)
        name: int = _name(head)
        value: float = wire.f64()

    class BufferValue(Base, kind=BlockType.BUFFER_VALUE, word=8):  # type: ignore[call-arg, misc]
        parent: int = _parent(head)
        name: int = _name(head)
        total_length: int = wire.bits(0, 31, of=8, doc="bytes of the value")
        extent: int = _index(
            Bits("extent", 32, 59), "index of the first extent, or of the string reference"
        )
        format: str | int = wire.bits(60, 63, values=BUFFER_FORMATS)

    class ArrayValue(Base, kind=BlockType.ARRAY_VALUE, word=8):  # type: ignore[call-arg, misc]
        parent: int = _parent(head)
        name: int = _name(head)
        entry_type: int = wire.bits(0, 3, of=8, meanings=ENTRY_TYPES)
        format: int = wire.bits(4, 7, meanings=ARRAY_FORMATS)
        count: int = wire.bits(8, 15, doc="slots")
        _reserved = wire.bits(16, 63)
        slots: tuple[int | float, ...] | None = wire.choice(
            entry_type,
            {
                BlockType.INT_VALUE: _slots(wire.i64(), count),
                BlockType.UINT_VALUE: _slots(wire.u64(), count),
                BlockType.DOUBLE_VALUE: _slots(wire.f64(), count),
            },
            when=(entry_type >= BlockType.INT_VALUE) & (entry_type <= BlockType.DOUBLE_VALUE),
        )
        slot_indexes: tuple[int, ...] | None = wire.listed(
            wire.u32(),
            _at_most(count, wire.SIZE - SLOTS_AT >> 2),
            when=entry_type == BlockType.STRING_REFERENCE,
            rules=CONTENTS,
        )

    class LinkValue(Base, kind=BlockType.LINK_VALUE, word=8):  # type: ignore[call-arg, misc]
        parent: int = _parent(head)
        name: int = _name(head)
        content: int = _index(Bits("content", 0, 19), "index of the name of what is linked", of=8)
        _reserved = wire.bits(20, 59)
        disposition: str | int = wire.bits(60, 63, values=DISPOSITIONS)

    if Base.dialect == "new":

        class BoolValue(Base, kind=BlockType.BOOL_VALUE, word=8):  # type: ignore[call-arg, misc]
            parent: int = _parent(head)
            name: int = _name(head)
            value: bool = _truth()


FAMILIES: Final[Mapping[str, type[Any]]] = {
    layout: _family(layout, head) for layout, head in HEADS.items()
}
"""The classes that all blocks of a layout derive from."""
BLOCKS: Final[Mapping[str, Mapping[int, type[Any]]]] = {
    layout: {cls.layout.kind[0]: cls for cls in base.layout.family.members}
    for layout, base in FAMILIES.items()
}
"""The classes of blocks by type, by layout."""


def reserved_masks(cls: type[Any]) -> tuple[int, int]:
    """Return the bits of the first two words that are zero in a sound block of a class."""
    masks = {0: 0, WORD: 0}
    for field, place in cls.layout.places.items():
        if place.offset in masks:
            unnamed = cls.layout.words.get(field, (0, 0))[1]
            named = place.mask << place.shift if field.name == "_reserved" else 0
            masks[place.offset] |= unnamed | named
    return masks[0], masks[WORD]


@attrs.frozen
class FirstWord:
    """Where fields are that blocks of all types have, in a layout."""

    order: Place
    type: Place

    @property
    def reserved(self) -> int:
        """The bits between order and type, which are zero in a sound block."""
        return (1 << self.type.shift) - 1 & ~self.order.mask


FIRST_WORDS: Final[Mapping[str, FirstWord]] = {
    layout: FirstWord(base.layout.place("order"), base.layout.place("_type"))
    for layout, base in FAMILIES.items()
}
"""By layout, the fields of the first word."""
LARGEST_ORDER: Final = FIRST_WORDS["new"].order.mask
"""Of what readers accept."""
GENERATION: Final = BLOCKS["new"][BlockType.HEADER].layout.place("generation")
VMO_SIZE: Final = Place(SIZE_AT, 4, 0, (1 << 32) - 1)
"""In a header of order 1 or more."""


def unknown_word(layout: str) -> WordLayout:
    """Return the first word of a block of an unknown type."""
    head = HEADS[layout]
    between = Bits("reserved", ORDER.high + 1, head.type.low - 1, reserved=True)
    reserved = (between,) if layout == "new" else ()
    rest = Bits("unknown", head.first.low, 63)
    return WordLayout("block", SECTIONS[layout], (ORDER, *reserved, head.type, rest))


def _bits(type: BlockType, name: str) -> Bits:
    """Return bits of blocks of a type that are the same in both layouts."""
    bits: Bits = BLOCKS["new"][type].layout.bits(name)
    return bits


BUFFER_EXTENT = _bits(BlockType.BUFFER_VALUE, "extent")
BUFFER_FORMAT = _bits(BlockType.BUFFER_VALUE, "format")
ARRAY_FORMAT = _bits(BlockType.ARRAY_VALUE, "format")
SLOT_COUNT = _bits(BlockType.ARRAY_VALUE, "count")
LINK_DISPOSITION = _bits(BlockType.LINK_VALUE, "disposition")


def is_legacy(head: bytes) -> bool:
    """Return whether a file's first bytes are of version 0 (docs, Inspect: Two layouts).

    The first two bytes decide, not the version: a header of the new layout has its type in byte 1,
    one of version 0 in the upper half of byte 0. Anything else is read as new.
    """
    if len(head) < 2 or head[1]:
        return False
    return FIRST_WORDS["v0"].type.get(head, 0) == BlockType.HEADER


def layout_of(head: bytes) -> str:
    """Return the layout, ``v0`` or ``new``, of a file with this beginning."""
    return "v0" if is_legacy(head) else "new"


def version_of(head: bytes) -> int:
    """Return the version in a header, of which there are 4 bytes or more."""
    header = BLOCKS[layout_of(head)][BlockType.HEADER]
    version: int = header.layout.place("version").get(head, 0)
    return version


# --- What is not a block of a known type ----------------------------------------------------------

UNKNOWN_BLOCK: Final = 253
PADDING: Final = 254
DAMAGED: Final = 255
"""Numbers in the place of types, for columns."""
