"""The encoder: records, or their JSON, as bytes of a VMO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from fx_inspect import format as wire
from fx_inspect import rules
from fx_inspect.read.records import Block, InspectRecord, Padding, block_of, from_json
from fx_inspect.write.packing import block_packer
from fxframework.kit.lossless import Encoder, padding_of
from fxframework.wire.packing import Packer

__all__ = ["RecordEncoder"]


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
        if isinstance(record, Padding):
            return padding_of(record.nbytes, rules.OUT_OF_RANGE)
        if isinstance(record, Block):
            if record.raw is not None and _decodes_to(record, bytes(record.raw)):
                return bytes(record.raw)
            return record.pack()
        if record.raw is None:
            return record.pack()
        return bytes(record.raw)

    def packer(self) -> Packer:
        """Return what packs many records at a time."""
        return block_packer()


def _decodes_to(block: Block, data: bytes) -> bool:
    """Return whether these bytes decode to the fields of a block."""
    if not wire.UNIT <= len(data) == wire.ORDER_SIZE(data[0] & wire.ORDER.limit):
        return False
    found = block_of(memoryview(data), block.layout, raw=False)
    return isinstance(found, Block) and found == attrs.evolve(block, raw=None)
