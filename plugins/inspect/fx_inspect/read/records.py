"""Records of an Inspect VMO as lossless objects, and their JSON.

Names are Python strings; bytes that are not UTF-8 become surrogate escapes, as in `os.fsdecode`, so
that nothing is lost. Sizes and offsets are in bytes; indexes count units of 16 bytes.
"""

from __future__ import annotations

import math
import reprlib
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import BlockType
from fxframework.errors import WriteRefusedError, did_you_mean, refusal
from fxframework.io.words import U64_MAX, to_i64
from fxframework.kit.arguments import text_bytes
from fxframework.kit.json_fields import (
    CANONICAL_NAN,
    JsonFields,
    bits_of,
    double_of,
    exactly,
    show_double,
    show_text,
    special_double,
    unfit,
)
from fxframework.kit.lossless import DamagedRecord, LosslessRecord, record_of_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview

__all__ = [
    "Block",
    "Damaged",
    "InspectRecord",
    "Padding",
    "Unknown",
    "block_of",
    "from_json",
]

I64_MIN, I64_MAX = -(1 << 63), (1 << 63) - 1
U32_MAX = (1 << 32) - 1
TWO_WORDS = struct.Struct("<QQ")
_U64 = struct.Struct("<Q")
_U32 = struct.Struct("<I")
_NOT_FIELDS = frozenset({"order", "type", "reserved", "unused", "unknown", "inline", "magic"})
"""Fields of the words that are not numbers in the record."""
_TYPES = {type.name: int(type) for type in BlockType}
_FORMATS = {name: number for number, name in wire.BUFFER_FORMATS.items()}
_DISPOSITIONS = {name: number for number, name in wire.DISPOSITIONS.items()}
_INDEXES = frozenset({"parent", "name", "content", "extent", "next_extent", "next_free"})


def _check(what: str, name: str, value: Any, least: int, most: int) -> int:
    if type(value) is not int:
        raise refusal(rules.WRONG_TYPE, f"{what}: {name} must be a whole number, not {value!r}")
    if not least <= value <= most:
        if name in _INDEXES and value > most:
            raise refusal(
                rules.INDEX_OUT_OF_RANGE,
                f"{what}: {name} is {value}, but its field holds up to {most}",
            )
        raise unfit(rules.OUT_OF_RANGE, what, name, value, least, most)
    return value


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


# --- Records -------------------------------------------------------------------------------------


@attrs.define(kw_only=True)
class InspectRecord(LosslessRecord):
    """Base class of records of a VMO; ``raw`` adds remains of earlier blocks, and reserved bits."""

    def pack(self) -> bytes:
        """Return the bytes of the fields; ``raw`` is not used.

        Raises WriteRefusedError for a value that the format cannot hold.
        """
        raise refusal(rules.RAW_ONLY, f"{self.record}: can only be written from its raw bytes")


def _same_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(map(exactly, value)) if isinstance(value, tuple) else exactly(value)
        for name, value in fields.items()
    }


@attrs.define(kw_only=True)
class Block(InspectRecord):
    """A block of a known type.

    ``fields`` contains, by type (the ``name`` of a value is an index; so are parent, extent and so
    on):

    - FREE: next_free; RESERVED: nothing
    - HEADER: magic (text), version, generation, vmo_size (None if the order is 0)
    - NODE_VALUE, TOMBSTONE: parent, name, reference_count
    - INT_VALUE, UINT_VALUE, DOUBLE_VALUE, BOOL_VALUE: parent, name, value; for a NaN that is not
      canonical, value_bits too
    - BUFFER_VALUE: parent, name, total_length, extent, format (a number)
    - EXTENT: next_extent, payload (bytes, the whole rest of the block)
    - NAME: length, name (text, as much as the block holds)
    - ARRAY_VALUE: parent, name, entry_type, format, count, and slots (a tuple of numbers) or
      slot_indexes (a tuple of indexes), as many as the block holds; neither for an invalid
      entry_type
    - LINK_VALUE: parent, name, content, disposition (a number)
    - STRING_REFERENCE: next_extent, reference_count, total_length, inline (bytes)
    """

    record: ClassVar[str] = "block"

    index: int = attrs.field(default=0, eq=False)
    """Index of the block, in units of 16 bytes."""
    type: str
    """A name of ``BlockType``."""
    order: int
    fields: dict[str, Any] = attrs.field(factory=dict, eq=_same_fields)
    layout: str = "new"
    """``new`` or ``v0``."""

    @property
    def number(self) -> int:
        """The number of its type."""
        return _TYPES[self.type]

    def show(self, out: dict[str, Any]) -> None:
        """Add the fields to a JSON object."""
        out["index"] = self.index
        out["type"] = self.type
        out["order"] = self.order
        if self.layout != "new":
            out["layout"] = self.layout
        for name, value in self.fields.items():
            if name == "value_bits":
                continue
            if isinstance(value, bytes):
                out[f"{name}_hex"] = value.hex()
            elif isinstance(value, str):
                show_text(out, name, value)
            elif isinstance(value, float):
                show_double(out, name, value, self.fields.get("value_bits"))
            elif isinstance(value, tuple):
                out[name] = [_shown_slot(slot) for slot in value]
            else:
                out[name] = value
        if self.type == "HEADER":
            generation = self.fields["generation"]
            out["locked"] = bool(generation % 2)
            out["frozen"] = generation == wire.FROZEN_GENERATION
        elif self.type == "EXTENT":
            out["capacity"] = len(self.fields["payload"])
        elif self.type == "BUFFER_VALUE":
            out["format"] = wire.BUFFER_FORMATS.get(out["format"], out["format"])
        elif self.type == "LINK_VALUE":
            out["disposition"] = wire.DISPOSITIONS.get(out["disposition"], out["disposition"])

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields of a JSON object; redundant keys may be missing."""
        form.used |= {"index", "layout"}
        layout = form.given.get("layout", "new")
        if layout not in ("new", "v0"):
            raise form.wrong("layout", "new or v0")
        name = form.need("type")
        numbers = wire.LAYOUTS[layout]
        if not isinstance(name, str) or _TYPES.get(name) not in numbers:
            known = [BlockType(number).name for number in numbers]
            hint = did_you_mean(name, known) if isinstance(name, str) else ""
            raise refusal(rules.NO_SUCH_NAME, f"{form.what}: no type {reprlib.repr(name)}{hint}")
        form.what = name
        place = form.given.get("index")
        order = form.within("order", 0, wire.ORDER.limit)
        if order > wire.MAX_ORDER and "raw" not in form:
            raise refusal(
                rules.TOO_LARGE,
                f"{name}: a block of order {order} ({wire.ORDER_SIZE(order)} bytes) can only be "
                "written from `raw`",
            )
        return {
            "index": place if type(place) is int else 0,
            "type": name,
            "order": order,
            "layout": layout,
            "fields": _parsed(form, layout, BlockType(_TYPES[name])),
        }

    def pack(self) -> bytes:
        """Return the block's bytes, with zeros outside the fields.

        Raises WriteRefusedError: INVALID_FIELDS and WRONG_TYPE for a missing or invalid field,
        OUT_OF_RANGE and INDEX_OUT_OF_RANGE for a number that does not fit, STRING_TOO_LONG for a
        name and TOO_LARGE for data larger than the block, CONTRADICTION for lengths that contradict
        their contents.
        """
        return _packed(self)


def _shown_slot(value: float) -> int | float | str:
    return (special_double(value) if isinstance(value, float) else None) or value


@attrs.define(kw_only=True)
class Unknown(InspectRecord):
    """A block of an unknown type, skipped by its size."""

    record: ClassVar[str] = "unknown"

    index: int = attrs.field(default=0, eq=False)
    type: int
    order: int

    def show(self, out: dict[str, Any]) -> None:
        """Add the fields to a JSON object."""
        out["index"] = self.index
        out["type"] = self.type
        out["order"] = self.order

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields; ``raw`` is required."""
        form.need("raw")
        form.used.add("index")
        place = form.given.get("index")
        return {
            "index": place if type(place) is int else 0,
            "type": form.within("type", 0, 255),
            "order": form.within("order", 0, wire.ORDER.limit),
        }


@attrs.define(kw_only=True)
class Padding(InspectRecord):
    """``nbytes`` zero bytes: two units or more.

    One unit of zeros is a FREE block of order 0. No heap contains two of them in a row, because one
    would have to be the next of the other.
    """

    record: ClassVar[str] = "padding"


@attrs.define(kw_only=True)
class Damaged(DamagedRecord, InspectRecord):
    """Bytes in which no block can begin; ``raw`` may be a view of the file."""


_KINDS: dict[str, type[InspectRecord]] = {
    kind.record: kind for kind in (Block, Unknown, Padding, Damaged)
}


def from_json(given: Any) -> InspectRecord:
    """Return the record of a JSON object (docs, Records).

    ``offset``, ``nbytes`` and ``index`` are kept if they are numbers, but the place of a record
    follows from those before it. ``nbytes`` is the length of padding. Raises WriteRefusedError:
    NO_SUCH_NAME for an unknown record or type, INVALID_FIELDS for a missing or unknown field,
    WRONG_TYPE and OUT_OF_RANGE for a value of the wrong kind or size.
    """
    return record_of_json(given, _KINDS, "a VMO", rules.REFUSALS)


# --- Fields: from bytes --------------------------------------------------------------------------


def _numbers(layout: str, type: int) -> tuple[tuple[int, int, int, str], ...]:
    """Return the fields of a type that are numbers: word, lowest bit, limit, name."""
    words = wire.LAYOUTS[layout][type]
    return tuple(
        (number, field.low, field.limit, field.name)
        for number, word in enumerate((words.header, words.payload))
        if word is not None
        for field in word.fields
        if field.name not in _NOT_FIELDS
    )


NUMBERS = {
    (layout, type): _numbers(layout, type)
    for layout, types in wire.LAYOUTS.items()
    for type in types
}
RESERVED_MASKS = {
    (layout, type): words.reserved_masks
    for layout, types in wire.LAYOUTS.items()
    for type, words in types.items()
}


def _decoded(data: memoryview, layout: str, type: int, order: int) -> dict[str, Any]:
    """Return the fields of the block in ``data``."""
    words = TWO_WORDS.unpack_from(data)
    fields: dict[str, Any] = {}
    if type == BlockType.HEADER:
        fields["magic"] = _text(data[4:8].tobytes())
    for number, low, limit, name in NUMBERS[layout, type]:
        fields[name] = words[number] >> low & limit
    if type == BlockType.HEADER:
        size = _U32.unpack_from(data, wire.SIZE_AT)[0] if order else None
        fields["vmo_size"] = size
    elif type == BlockType.INT_VALUE:
        fields["value"] = to_i64(words[1])
    elif type == BlockType.DOUBLE_VALUE:
        value = double_of(words[1])
        fields["value"] = math.nan if math.isnan(value) else value
        if math.isnan(value) and words[1] != CANONICAL_NAN:
            fields["value_bits"] = words[1]
    elif type == BlockType.BOOL_VALUE:
        fields["value"] = bool(words[1])
    elif type == BlockType.EXTENT:
        fields["payload"] = data[wire.PAYLOAD_AT[type] :].tobytes()
    elif type == BlockType.NAME:
        start = wire.PAYLOAD_AT[type]
        fields["name"] = _text(data[start : start + fields["length"]].tobytes())
    elif type == BlockType.STRING_REFERENCE:
        start = wire.PAYLOAD_AT[type]
        fields["inline"] = data[start : start + fields["total_length"]].tobytes()
    elif type == BlockType.ARRAY_VALUE:
        _slots(data, fields)
    return fields


_SLOTS = {
    int(BlockType.INT_VALUE): "q",
    int(BlockType.UINT_VALUE): "Q",
    int(BlockType.DOUBLE_VALUE): "d",
    int(BlockType.STRING_REFERENCE): "I",
}


def _slots(data: memoryview, fields: dict[str, Any]) -> None:
    """Add the slots of an array to its fields."""
    entry = fields["entry_type"]
    if entry not in _SLOTS:
        return
    count = min(fields["count"], (len(data) - wire.SLOTS_AT) // wire.SLOT_BYTES[entry])
    slots = struct.unpack_from(f"<{count}{_SLOTS[entry]}", data, wire.SLOTS_AT)
    if entry == BlockType.DOUBLE_VALUE:
        slots = tuple(math.nan if math.isnan(slot) else slot for slot in slots)
    fields["slot_indexes" if entry == BlockType.STRING_REFERENCE else "slots"] = slots


def block_of(data: memoryview, layout: str, *, index: int = 0, raw: bool = True) -> Block | Unknown:
    """Return the block of these bytes, whose order must match their number.

    With ``raw`` it keeps the bytes if its fields do not encode to them, or if it is larger than the
    reference writes.
    """
    (word,) = _U64.unpack_from(data)
    order = word & wire.ORDER.limit
    type = wire.HEADS[layout].type.get(word)
    places = {"offset": index * wire.UNIT, "nbytes": len(data), "index": index, "order": order}
    if type not in wire.LAYOUTS[layout]:
        return Unknown(type=type, raw=data.tobytes(), **places)
    block = Block(
        type=wire.TYPE_NAMES[type],
        layout=layout,
        fields=_decoded(data, layout, type, order),
        **places,
    )
    if raw and (order > wire.MAX_ORDER or not _packs_to(block, data)):
        block.raw = data.tobytes()
    return block


def _packs_to(block: Block, data: memoryview) -> bool:
    """Return whether the fields alone encode to these bytes."""
    try:
        return block.pack() == data
    except WriteRefusedError:
        return False


# --- Fields: to bytes, and from JSON -------------------------------------------------------------


def _packed(block: Block) -> bytes:
    """Return the bytes of a block."""
    what, fields, type = block.type, block.fields, _TYPES.get(block.type, -1)
    if type not in wire.LAYOUTS.get(block.layout, ()):
        raise refusal(rules.NO_SUCH_NAME, f"no block {what!r} in layout {block.layout!r}")
    order = _check(what, "order", block.order, 0, wire.ORDER.limit)
    words = [order | wire.HEADS[block.layout].type.put(type), 0]
    used = {"value_bits"}
    for word, low, limit, name in NUMBERS[block.layout, type]:
        used.add(name)
        if (type, name) != (BlockType.NAME, "name"):
            words[word] |= _word(what, type, name, fields, limit) << low
    data = bytearray(wire.ORDER_SIZE(order))
    payload = b""
    if type == BlockType.HEADER:
        used |= {"magic", "vmo_size"}
        if block.layout == "v0" and fields["version"] % 256:
            raise refusal(
                rules.CONTRADICTION,
                f"HEADER: with version {fields['version']} "
                "the bytes are not those of a version 0 header",
            )
        words[0] |= wire.HEADER_MAGIC.put(int.from_bytes(_magic(fields), "little"))
        size = fields.get("vmo_size")
        if size is not None:
            if not order:
                raise refusal(rules.CONTRADICTION, "HEADER: a header of order 0 has no vmo_size")
            _U32.pack_into(data, wire.SIZE_AT, _check(what, "vmo_size", size, 0, U32_MAX))
    elif type == BlockType.EXTENT:
        payload = _octets(what, "payload", fields, used)
        room = len(data) - wire.PAYLOAD_AT[type]
        if len(payload) < room:
            raise refusal(
                rules.CONTRADICTION, f"EXTENT: the payload has {len(payload)} bytes of {room}"
            )
    elif type == BlockType.NAME:
        used.add("name")
        payload = _name(fields, wire.capacity(type, order))
    elif type == BlockType.STRING_REFERENCE:
        payload = _octets(what, "inline", fields, used)
        _counted(what, "total_length", fields, len(payload), wire.capacity(type, order))
    elif type == BlockType.ARRAY_VALUE:
        payload = _packed_slots(fields, wire.capacity(type, order), used)
    odd = fields.keys() - used
    if odd:
        raise refusal(rules.INVALID_FIELDS, f"{what} has no field {min(odd)!r}")
    TWO_WORDS.pack_into(data, 0, *words)
    if payload:
        start = wire.PAYLOAD_AT[type]
        if len(payload) > len(data) - start:
            room = len(data) - start
            message = f"{what}: {len(payload)} bytes, and a block of order {order} holds {room}"
            raise refusal(rules.TOO_LARGE, message)
        data[start : start + len(payload)] = payload
    return bytes(data)


def _word(what: str, type: int, name: str, fields: Mapping[str, Any], limit: int) -> int:
    """Return the bits of a field that is a number."""
    try:
        value = fields[name]
    except KeyError:
        raise refusal(rules.INVALID_FIELDS, f"{what}: {name} is missing") from None
    if name == "value":
        if type == BlockType.INT_VALUE:
            return _check(what, name, value, I64_MIN, I64_MAX) & U64_MAX
        if type == BlockType.BOOL_VALUE:
            return int(bool(value))
        if type == BlockType.DOUBLE_VALUE:
            bits = fields.get("value_bits")
            if math.isnan(value):
                return CANONICAL_NAN if bits is None else _check(what, name, bits, 0, U64_MAX)
            return bits_of(float(value))
    return _check(what, name, value, 0, limit)


def _magic(fields: Mapping[str, Any]) -> bytes:
    magic: bytes = fields.get("magic", "INSP").encode(errors="surrogateescape")
    if len(magic) != len(wire.MAGIC):
        raise refusal(rules.OUT_OF_RANGE, f"HEADER: magic has {len(magic)} bytes, and its field 4")
    return magic


def _octets(what: str, name: str, fields: Mapping[str, Any], used: set[str]) -> bytes:
    used.add(name)
    data = fields.get(name, b"")
    if not isinstance(data, bytes):
        raise refusal(rules.WRONG_TYPE, f"{what}: {name} must be bytes, not {data!r}")
    return data


def _counted(what: str, name: str, fields: Mapping[str, Any], given: int, room: int) -> None:
    """Check that a length or count matches the contents of the block."""
    if given != min(fields[name], room) and given <= room:
        raise refusal(
            rules.CONTRADICTION,
            f"{what}: {name} is {fields[name]}, but {given} are given of {room} that fit",
        )


def _name(fields: Mapping[str, Any], room: int) -> bytes:
    text = fields.get("name")
    if not isinstance(text, str):
        raise refusal(rules.INVALID_FIELDS, "NAME: name is missing")
    data = text_bytes("NAME: name", text, rules.WRONG_TYPE)
    if len(data) > room:
        raise refusal(rules.STRING_TOO_LONG, f"NAME: {len(data)} bytes, and the block holds {room}")
    _counted("NAME", "length", fields, len(data), room)
    return data


def _packed_slots(fields: Mapping[str, Any], room: int, used: set[str]) -> bytes:
    entry = fields["entry_type"]
    if entry not in _SLOTS:
        return b""
    name = "slot_indexes" if entry == BlockType.STRING_REFERENCE else "slots"
    used.add(name)
    slots = fields.get(name, ())
    code = _SLOTS[entry]
    least, most = {"q": (I64_MIN, I64_MAX), "I": (0, U32_MAX)}.get(code, (0, U64_MAX))
    if code != "d":
        for slot in slots:
            _check("ARRAY_VALUE", "a slot", slot, least, most)
    _counted("ARRAY_VALUE", "count", fields, len(slots), room // wire.SLOT_BYTES[entry])
    return struct.pack(f"<{len(slots)}{code}", *slots)


def _parsed(form: JsonFields, layout: str, type: BlockType) -> dict[str, Any]:
    """Return the fields of a block's JSON."""
    fields: dict[str, Any] = {}
    if type == BlockType.HEADER:
        form.used |= {"locked", "frozen", "magic", "magic_bytes_hex", "vmo_size"}
        fields["magic"] = form.text("magic") if "magic" in form else "INSP"
    for _, _, limit, name in NUMBERS[layout, type]:
        if name == "value":
            _parsed_value(form, type, fields)
        elif name == "format" and type == BlockType.BUFFER_VALUE:
            fields[name] = _named(form, name, _FORMATS, limit)
        elif name == "disposition":
            fields[name] = _named(form, name, _DISPOSITIONS, limit)
        else:
            fields[name] = form.within(name, 0, limit)
    if type == BlockType.HEADER:
        given = form.given.get("vmo_size")
        fields["vmo_size"] = None if given is None else form.within("vmo_size", 0, U32_MAX)
    elif type == BlockType.EXTENT:
        form.used.add("capacity")
        fields["payload"] = form.octets("payload_hex")
    elif type == BlockType.NAME:
        form.used.add("name_bytes_hex")
        fields["name"] = form.text("name")
    elif type == BlockType.STRING_REFERENCE:
        fields["inline"] = form.octets("inline_hex")
    elif type == BlockType.ARRAY_VALUE and fields["entry_type"] in _SLOTS:
        _parsed_slots(form, fields)
    return fields


def _parsed_value(form: JsonFields, type: BlockType, fields: dict[str, Any]) -> None:
    if type == BlockType.BOOL_VALUE:
        fields["value"] = form.flag("value")
    elif type == BlockType.DOUBLE_VALUE:
        form.used.add("value_bits")
        fields["value"], bits = form.double("value")
        if bits is not None:
            fields["value_bits"] = bits
    else:
        signed = type == BlockType.INT_VALUE
        fields["value"] = form.within("value", *((I64_MIN, I64_MAX) if signed else (0, U64_MAX)))


def _named(form: JsonFields, key: str, numbers: Mapping[str, int], limit: int) -> int:
    value = form.one_of(key, numbers, limit)
    return numbers[value] if isinstance(value, str) else value


def _parsed_slots(form: JsonFields, fields: dict[str, Any]) -> None:
    entry = fields["entry_type"]
    name = "slot_indexes" if entry == BlockType.STRING_REFERENCE else "slots"
    given = form.need(name)
    if not isinstance(given, list | tuple):
        raise form.wrong(name, "a list of numbers")
    least, most = {"q": (I64_MIN, I64_MAX), "I": (0, U32_MAX)}.get(_SLOTS[entry], (0, U64_MAX))
    slots: list[int | float] = []
    for number, slot in enumerate(given):
        one = JsonFields(f"{form.what}, slot {number}", {"value": slot}, rules.REFUSALS)
        if entry == BlockType.DOUBLE_VALUE:
            slots.append(one.double("value")[0])
        else:
            slots.append(one.within("value", least, most))
    fields[name] = tuple(slots)
