"""Schemas of the tables of a VMO; their columns are made in ``batches.py``.

They are the standard `nodes` and `properties`, slots, and links.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fx_inspect.format import DISPOSITIONS
from fxframework.model.schema import NAME, PROPERTY_TYPES, STANDARD_TABLES, Column, TableSchema

INT: Final = 1
UINT: Final = 2
DOUBLE: Final = 3
BOOL: Final = 4
STRING: Final = 5
BYTES: Final = 6
INT_ARRAY: Final = 7
UINT_ARRAY: Final = 8
DOUBLE_ARRAY: Final = 9
STRING_ARRAY: Final = 10
TYPES: Final[Mapping[int, str]] = PROPERTY_TYPES
"""Types of properties."""
_BLOCK = Column("inspect_block", "u4", "index of the block, in units of 16 bytes")

NODES = STANDARD_TABLES["nodes"].extended(_BLOCK)
PROPERTIES = STANDARD_TABLES["properties"].extended(
    _BLOCK,
    Column(
        "inspect_format",
        "u1",
        "of an array: 0 flat, 1 linear, 2 exponential histogram; of a string or bytes: 0 UTF-8"
        " in extents, 1 bytes, 2 string reference",
    ),
)
"""A bool is 0 or 1 in `int`; `array` is the first row in `inspect_slots`, and their number."""
INSPECT_SLOTS = TableSchema(
    "inspect_slots",
    "a slot of an array; those of one array follow each other in order",
    (
        Column("parent", "i8", "row of `properties`"),
        Column("slot", "i4", "which slot, from 0"),
        Column("int", "i8", "value in an int array; else 0"),
        Column("uint", "u8", "value in a uint array; else 0"),
        Column("float", "f8", "value in a double array; else 0"),
        Column("str", "code", "value in a string array; else null"),
    ),
    parent_table="properties",
)
INSPECT_LINKS = TableSchema(
    "inspect_links",
    "a link: a lazy node, or lazy values of a node",
    (
        Column("node", "i4", "id of the node that it leaves"),
        NAME,
        Column("content", "code", "name of the tree that it leads to"),
        Column("disposition", "u1", "how that is shown", values=DISPOSITIONS),
        _BLOCK,
        Column("state", "code", "what became of it"),
    ),
)

SCHEMAS: Final[Mapping[str, TableSchema]] = {
    schema.name: schema for schema in (NODES, PROPERTIES, INSPECT_SLOTS, INSPECT_LINKS)
}
"""The tables of a capture by name."""
