"""The encoder: records, or their JSON, as bytes of a VMO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.format import Block, BlockType
from fx_inspect.read.records import STATE, InspectRecord, block_of, class_of, from_json
from fxframework.errors import WriteRefusedError
from fxframework.kit.lossless import Encoder, PaddingRecord, padding_of, without_raw
from fxframework.wire.packing import Packer
from fxframework.wire.records import Layout

SELECTORS = ("type", "order", "layout", "entry_type")
"""Keys of a block's JSON that say which fields it has."""


class RecordEncoder(Encoder):
    """Encodes records, or their JSON, one after another.

    ``raw`` is written if it decodes to the record's fields, so that unedited records keep their
    bytes and edits take effect.
    """

    def encode(self, record: InspectRecord | Mapping[str, Any]) -> bytes:
        """Return the record's bytes.

        Raises WriteRefusedError without side effects.
        """
        if isinstance(record, Mapping):
            record = from_json(record)
        if isinstance(record, PaddingRecord):
            return padding_of(record.nbytes, rules.OUT_OF_RANGE)
        if isinstance(record, Block) and (record.raw is None or not _has_its_bytes(record)):
            return record.pack()
        if record.raw is None:
            raise without_raw(record.record, rules.RAW_ONLY)
        return bytes(record.raw)

    def packer(self) -> Packer:
        """Return what packs many records at a time."""
        return Packer(_layout_of, STATE, selectors=SELECTORS)


def _has_its_bytes(block: Block) -> bool:
    """Return whether the raw bytes of a block decode to its fields."""
    data = bytes(block.raw or b"")
    if not wire.UNIT <= len(data) == wire.ORDER_SIZE(wire.FIRST_WORDS["new"].order.get(data, 0)):
        return False
    found = block_of(memoryview(data), block.dialect)
    found.raw = block.raw  # what counts is the fields
    return found == block


def _layout_of(given: Mapping[str, Any]) -> Layout | None:
    """Return the fields of a block, given as JSON; None if only objects know its bytes."""
    order = given.get("order")
    if given.get("record") != "block" or type(order) is not int or order > wire.MAX_ORDER:
        return None
    try:
        cls = class_of(given)
    except WriteRefusedError:
        return None
    if cls.layout.kind[0] == BlockType.HEADER:
        return None
    found: Layout = cls.layout
    return found
