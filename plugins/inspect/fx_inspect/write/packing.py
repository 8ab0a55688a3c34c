"""Blocks of one type and order as a declaration, by which many of them are packed at a time."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any, Final

from fx_inspect import format as wire
from fx_inspect.format import BlockType
from fxframework.io.words import Bits
from fxframework.wire import declarations
from fxframework.wire.packing import Packer
from fxframework.wire.records import Layout, Record
from fxframework.wire.state import State

__all__ = ["block_packer"]

SELECTORS: Final = ("type", "order", "layout", "entry_type")
"""Keys of a block's JSON that say which fields it has."""
WITHOUT_MEANING: Final = frozenset({"reserved", "unused", "unknown"})
_VALUES: Final[Mapping[BlockType, Any]] = {
    BlockType.INT_VALUE: declarations.i64,
    BlockType.UINT_VALUE: declarations.u64,
    BlockType.DOUBLE_VALUE: declarations.f64,
    BlockType.BOOL_VALUE: functools.partial(declarations.flag, 0, of=8),
}
_SLOTS: Final[Mapping[int, tuple[str, Any]]] = {
    BlockType.INT_VALUE: ("slots", declarations.i64),
    BlockType.UINT_VALUE: ("slots", declarations.u64),
    BlockType.STRING_REFERENCE: ("slot_indexes", declarations.u32),
}
"""By type of their entries: the key of an array's slots in JSON, and what declares one."""


def block_packer() -> Packer:
    """Return what packs many blocks at a time."""
    return Packer(_layout_of, State(), selectors=SELECTORS)


def _layout_of(given: Mapping[str, Any]) -> Layout | None:
    """Return the fields of a block, given as JSON; None if only objects know its bytes."""
    if given.get("record") != "block":
        return None
    name, order, layout, entry = (given.get(key) for key in SELECTORS)
    layout = "new" if "layout" not in given else layout
    if type(name) is not str or type(order) is not int or layout not in ("new", "v0"):
        return None
    number = BlockType.__members__.get(name)
    odd_entry = number == BlockType.ARRAY_VALUE and (type(entry) is not int or entry not in _SLOTS)
    whole = 0 <= order <= wire.MAX_ORDER and number in wire.LAYOUTS[layout]
    if odd_entry or not whole or number == BlockType.HEADER:
        return None
    return _layout(layout, number, order, entry if number == BlockType.ARRAY_VALUE else 0)


@functools.cache
def _layout(layout: str, number: BlockType, order: int, entry: int) -> Layout:
    """Return the fields of blocks of a type and an order; of arrays, with a type of entries."""
    words = wire.LAYOUTS[layout][number]
    fields: dict[str, Any] = {}
    for word in (words.header, words.payload):
        for bits in () if word is None else word.fields:
            if bits.name not in WITHOUT_MEANING:
                key = "_type" if bits.name == "type" else bits.name
                fields[key] = _declared(bits, number, first=bits.low == 0)
    room = wire.capacity(number, order)
    if number == BlockType.EXTENT:
        fields["payload"] = declarations.octets(room)
    elif number == BlockType.NAME:
        fields["name"] = declarations.text(fields["length"])
    elif number == BlockType.STRING_REFERENCE:
        fields["total_length"] = declarations.u32()
        fields["inline"] = declarations.octets(fields["total_length"])
    elif number == BlockType.ARRAY_VALUE:
        key, slot = _SLOTS[entry]
        fields[key] = declarations.listed(slot(), fields["count"])
    body = {
        "beside": frozenset({"index", "layout", "type", "capacity"}),
        "agreeing": frozenset({"length", "total_length", "count"} & fields.keys()),
        **fields,
    }
    if number == BlockType.BUFFER_VALUE:
        body["agreeing"] = frozenset()  # its bytes lie elsewhere
    size = {"size": wire.ORDER_SIZE(order)}
    made: Any = types.new_class(number.name, (Record,), size, lambda space: space.update(body))
    return made.layout  # type: ignore[no-any-return]


def _declared(bits: Bits, number: BlockType, *, first: bool) -> Any:
    """Return the declaration of some bits; ``first`` of those of a word."""
    if bits.name == "value":
        return _VALUES[number]()
    if bits.name == "type":
        return declarations.bits(bits.low, bits.high, equals=int(number))
    names = bits.values if bits.name in ("format", "disposition") else None
    if number == BlockType.ARRAY_VALUE:
        names = None  # arrays show the number of their format
    return declarations.bits(bits.low, bits.high, of=8 if first else None, values=names)
