"""Blocks, limits and numbers of Inspect VMOs, each with the section that declares it.

Sections are those of Fuchsia's documents "Inspect VMO format" and "Inspect VMO heap", and of
docs/formats/inspect.md, which corrects both. There are two layouts: ``v0`` is that of the library
of 2019, with the type in 4 bits and indexes of 28 bits; ``new`` is that of versions 1 and 2, with 8
and 24. All integers are little-endian. An index counts units of 16 bytes from the beginning of the
file.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import attrs

from fxframework.io.words import Bits, WordLayout

__all__ = [
    "ARRAY_FORMATS",
    "BUFFER_FORMATS",
    "DISPOSITIONS",
    "FROZEN_GENERATION",
    "LAYOUTS",
    "MAGIC",
    "MAX_ORDER",
    "ORDER_SIZE",
    "TYPE_NAMES",
    "UNIT",
    "BlockLayout",
    "BlockType",
    "is_legacy",
    "layout_of",
    "version_of",
]

UNIT: Final = 16
"""Bytes per unit of an index, and bytes of the smallest block."""


def ORDER_SIZE(order: int) -> int:  # noqa: N802 (the public name)
    """Return the bytes of a block of this order."""
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


def capacity(type: int, order: int) -> int:
    """Return the bytes of payload in a block of this type and order; 0 for types without one."""
    return ORDER_SIZE(order) - PAYLOAD_AT[type] if type in PAYLOAD_AT else 0


# --- The words of a block ------------------------------------------------------------------------

ORDER = Bits("order", 0, 3, "16 << order bytes")


@attrs.frozen
class BlockLayout:
    """The words of a block of one type: the header, and the next word if it has fields."""

    header: WordLayout
    payload: WordLayout | None = None

    @property
    def reserved_masks(self) -> tuple[int, int]:
        """Bits of both words that are zero in a sound block."""
        return self.header.reserved_mask, self.payload.reserved_mask if self.payload else 0


_Fields = tuple[Bits, ...]
TOTAL_LENGTH = Bits("total_length", 0, 31, "bytes of the value")
BUFFER_EXTENT = Bits("extent", 32, 59, "index of the first extent, or of the string reference")
BUFFER_FORMAT = Bits("format", 60, 63, values=BUFFER_FORMATS)
ENTRY_TYPE = Bits("entry_type", 0, 3, values=ENTRY_TYPES)
ARRAY_FORMAT = Bits("format", 4, 7, values=ARRAY_FORMATS)
SLOT_COUNT = Bits("count", 8, 15, "slots")
LINK_CONTENT = Bits("content", 0, 19, "index of the name of what is linked")
LINK_DISPOSITION = Bits("disposition", 60, 63, values=DISPOSITIONS)
HEADER_MAGIC = Bits("magic", 32, 63, 'the bytes "INSP"')
BEFORE_MAGIC = Bits("head", 0, 31, "of a header, up to its version")
VMO_SIZE = Bits("vmo_size", 0, 31, "bytes")
STRING_LENGTH = Bits("total_length", 0, 31, "bytes of the string")
SLOT_STRING = Bits("string", 0, 31, "index of the string of a slot, of two in a word")
_PAYLOADS: Mapping[BlockType, _Fields] = {
    BlockType.HEADER: (Bits("generation", 0, 63, "odd while the VMO is being changed"),),
    BlockType.NODE_VALUE: (Bits("reference_count", 0, 63, "values that have it as parent"),),
    BlockType.TOMBSTONE: (Bits("reference_count", 0, 63, "values that have it as parent"),),
    BlockType.INT_VALUE: (Bits("value", 0, 63, "signed"),),
    BlockType.UINT_VALUE: (Bits("value", 0, 63),),
    BlockType.DOUBLE_VALUE: (Bits("value", 0, 63, "bits of a double"),),
    BlockType.BOOL_VALUE: (Bits("value", 0, 63, "zero is false, anything else true"),),
    BlockType.BUFFER_VALUE: (TOTAL_LENGTH, BUFFER_EXTENT, BUFFER_FORMAT),
    BlockType.ARRAY_VALUE: (
        ENTRY_TYPE,
        ARRAY_FORMAT,
        SLOT_COUNT,
        Bits("reserved", 16, 63, reserved=True),
    ),
    BlockType.LINK_VALUE: (
        LINK_CONTENT,
        Bits("reserved", 20, 59, reserved=True),
        LINK_DISPOSITION,
    ),
    BlockType.STRING_REFERENCE: (STRING_LENGTH, Bits("inline", 32, 63, "its first bytes")),
}


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
RESERVED_BITS = Bits("reserved", 4, 7, reserved=True)
"""Reserved bits in the first word of blocks of the new layout."""
HEADS: Final[Mapping[str, Head]] = {"v0": _head(TYPE_V0, 28), "new": _head(TYPE, 24)}
"""The fields of first words, by layout."""
NAME_LENGTH: Final = HEADS["new"].name_length.limit


def _headers(type: BlockType, head: Head) -> _Fields:
    """Return the fields after the type in a block's first word."""
    start, middle = head.first.low, head.second.low
    if type == BlockType.HEADER:
        return (head.version, HEADER_MAGIC)
    if type == BlockType.FREE:
        return (
            Bits("next_free", start, middle - 1, "index of the next free block of this order"),
            Bits("unused", middle, 63),
        )
    if type == BlockType.RESERVED:
        return (Bits("unused", start, 63),)
    if type == BlockType.EXTENT:
        return (
            Bits("next_extent", start, middle - 1, "index of the next extent; 0 is none"),
            Bits("reserved", middle, 63, reserved=True),
        )
    if type == BlockType.NAME:
        return (
            head.name_length,
            Bits("reserved", head.name_length.high + 1, 63, reserved=True),
        )
    if type == BlockType.STRING_REFERENCE:
        return (
            Bits("next_extent", start, middle - 1, "index of the next extent; 0 is none"),
            Bits("reference_count", middle, 63, "uses of the string"),
        )
    return (
        Bits("parent", start, middle - 1, "index of the parent; 0 is the root"),
        Bits("name", middle, head.second.high, "index of the name"),
    )


SECTIONS: Final[Mapping[str, str]] = {
    "v0": "Inspect VMO heap; docs, Inspect: Two layouts",
    "new": "Inspect VMO format; docs, Inspect: What is read",
}


def _word(layout: str, name: str, *rest: Bits) -> WordLayout:
    """Return the first word of a block: its order and its type, and the rest of the fields."""
    between = (RESERVED_BITS,) if layout == "new" else ()
    return WordLayout(name, SECTIONS[layout], (ORDER, *between, HEADS[layout].type, *rest))


def _layouts(layout: str) -> dict[int, BlockLayout]:
    """Return the words of each block type of a layout."""
    section, head = SECTIONS[layout], HEADS[layout]
    layouts = {}
    for type in map(BlockType, head.type.values):
        header = _word(layout, type.name, *_headers(type, head))
        rest = _PAYLOADS.get(type)
        payload = None if rest is None else WordLayout(type.name, section, rest)
        layouts[int(type)] = BlockLayout(header, payload)
    return layouts


LAYOUTS: Final[Mapping[str, Mapping[int, BlockLayout]]] = {name: _layouts(name) for name in HEADS}
"""The words of each block type, by layout."""
UNKNOWN: Final[Mapping[str, WordLayout]] = {
    name: _word(name, "block", Bits("unknown", head.first.low, 63)) for name, head in HEADS.items()
}
"""The first word of a block of an unknown type, by layout."""


def is_legacy(head: bytes) -> bool:
    """Return whether a file's first bytes are of version 0 (docs, Inspect: Two layouts).

    The first two bytes decide, not the version: a header of the new layout has its type in byte 1,
    one of version 0 in the upper half of byte 0. Anything else is read as new.
    """
    return len(head) >= 2 and TYPE_V0.get(head[0]) == BlockType.HEADER and head[1] == 0


def layout_of(head: bytes) -> str:
    """Return the layout, ``v0`` or ``new``, of a file with this beginning."""
    return "v0" if is_legacy(head) else "new"


def version_of(head: bytes) -> int:
    """Return the version in a header, of which there are 4 bytes or more."""
    return HEADS[layout_of(head)].version.get(int.from_bytes(head[:4], "little"))


# --- Numbers that kernels share ------------------------------------------------------------------

# Types of blocks, and what other records have in their place.
(
    FREE, RESERVED, HEADER, NODE, INT, UINT, DOUBLE, BUFFER, EXTENT, NAME, TOMBSTONE, ARRAY, LINK,
    BOOL, STRING,
) = (int(type) for type in BlockType)  # fmt: skip
UNKNOWN_BLOCK = 253
PADDING = 254
DAMAGED = 255
