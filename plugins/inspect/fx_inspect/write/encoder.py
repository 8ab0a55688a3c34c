"""The encoder: records, or their JSON, to the bytes of a VMO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from fx_inspect import layout as wire
from fx_inspect.read.records import Block, InspectRecord, Padding, block_of, from_json, refusal

__all__ = ["RecordEncoder"]


class RecordEncoder:
    """Writes records, or their JSON, as bytes, one after another.

    ``raw`` counts where it decodes to the fields that the record has, so that what was not edited
    comes out as it was, and an edit takes effect.
    """

    def encode(self, record: InspectRecord | Mapping[str, Any]) -> bytes:
        """The record's bytes. Raises WriteRefusedError (FXI0401 to FXI0411), nothing changed."""
        if isinstance(record, Mapping):
            record = from_json(record)
        if isinstance(record, Padding):
            return _zeros(record.nbytes)
        if isinstance(record, Block):
            if record.raw is not None and _is(record, bytes(record.raw)):
                return bytes(record.raw)
            return record.pack()
        if record.raw is None:
            return record.pack()
        return bytes(record.raw)

    def close(self) -> bytes:
        """What was held back: nothing."""
        return b""


def _is(block: Block, data: bytes) -> bool:
    """Whether these bytes decode to the fields of a block."""
    if not wire.UNIT <= len(data) == wire.ORDER_SIZE(data[0] & wire.ORDER.limit):
        return False
    found = block_of(memoryview(data), block.layout, raw=False)
    return isinstance(found, Block) and found == attrs.evolve(block, raw=None)


def _zeros(nbytes: int) -> bytes:
    if nbytes < 0:
        raise refusal("FXI0404", f"padding: nbytes is {nbytes}")
    try:
        return bytes(nbytes)
    except (MemoryError, OverflowError):
        raise refusal("FXI0404", f"padding: {nbytes} bytes are more than memory holds") from None
