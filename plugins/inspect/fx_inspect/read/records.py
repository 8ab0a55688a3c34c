"""Records of an Inspect VMO as lossless objects, and their JSON.

``format.py`` declares blocks; here is all else that a file has. Names are Python strings;
bytes that are not UTF-8 become surrogate escapes, as in `os.fsdecode`, so that nothing is lost.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import Block, BlockType
from fxframework.errors import did_you_mean, refusal
from fxframework.kit.json_fields import JsonFields
from fxframework.kit.lossless import (
    DamagedRecord,
    LosslessRecord,
    PaddingRecord,
    UnknownRecord,
    record_of_json,
)
from fxframework.wire.state import State

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview

InspectRecord = LosslessRecord
"""A record of a VMO; ``raw`` adds remains of earlier blocks, and reserved bits."""
STATE = State()
"""That of all VMOs: no block says anything about the fields of others."""


@attrs.define(kw_only=True)
class Unknown(UnknownRecord):
    """A block of an unknown type, skipped by its size."""

    order: int

    @property
    def index(self) -> int:
        """Index of the block, in units of 16 bytes."""
        return self.offset // wire.UNIT

    def show(self, out: dict[str, Any]) -> None:
        """Add the fields to a JSON object."""
        out["index"] = self.index
        super().show(out)
        out["order"] = self.order

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields; ``raw`` is required."""
        form.need("raw")
        form.used.add("index")
        return {
            "type": form.within("type", 0, 255),
            "order": form.within("order", 0, wire.LARGEST_ORDER),
        }


_KINDS: dict[str, type[LosslessRecord]] = {
    kind.record: kind for kind in (Unknown, PaddingRecord, DamagedRecord)
}


def from_json(given: Any) -> InspectRecord:
    """Return the record of a JSON object (docs, Records).

    ``offset`` and ``nbytes`` are kept if they are numbers, but the place of a record follows from
    those before it. ``nbytes`` is the length of padding. Raises WriteRefusedError: NO_SUCH_NAME for
    an unknown record or type, INVALID_FIELDS for a missing or unknown field, WRONG_TYPE and
    OUT_OF_RANGE for a value of the wrong kind or size.
    """
    kinds = _KINDS | {"block": Block}
    if isinstance(given, Mapping) and given.get("record") == "block":
        kinds["block"] = class_of(given)
    return record_of_json(given, kinds, "a VMO", rules.REFUSALS)


def class_of(given: Mapping[str, Any]) -> type[Block]:
    """Return the class of a block, given as JSON."""
    form = JsonFields("block", given, rules.REFUSALS)
    layout = given.get("layout", "new")
    name = form.need("type")
    if layout not in ("new", "v0"):
        raise form.wrong("layout", "new or v0")
    classes = wire.BLOCKS[layout]
    number = BlockType.__members__.get(name, -1) if isinstance(name, str) else -1
    if number not in classes:
        known = [wire.TYPE_NAMES[number] for number in classes]
        hint = did_you_mean(name, known) if isinstance(name, str) else ""
        raise refusal(rules.NO_SUCH_NAME, f"block: no type {reprlib.repr(name)}{hint}")
    cls: type[Block] = classes[number]
    return cls


def block_of(data: memoryview, layout: str, *, index: int = 0) -> Block | Unknown:
    """Return the block of these bytes, whose order must match their number.

    It keeps the bytes if its fields do not encode to them, or if it is larger than the reference
    writes.
    """
    first_word = wire.FIRST_WORDS[layout]
    order = first_word.order.get(data, 0)
    type = first_word.type.get(data, 0)
    offset = index * wire.UNIT
    cls = wire.BLOCKS[layout].get(type)
    if cls is None:
        raw = data.tobytes()
        return Unknown(offset=offset, nbytes=len(data), type=type, order=order, raw=raw)
    block: Block
    block, _ = cls.unpack(data, 0, len(data), STATE)
    block.offset = offset
    # A header of version 0 may say a version that no such header can be written with.
    is_sound = type != BlockType.HEADER or block.packs_to(data, STATE)
    if order > wire.MAX_ORDER or not is_sound:
        block.raw = data.tobytes()
    return block
