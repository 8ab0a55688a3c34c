"""`fxf explain FILE@OFFSET`: the block at a byte, as annotated fields.

The words of a block are explained by their declarations in `format.py`; `decoder.py` finds the
blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from fx_inspect import format as wire
from fx_inspect.format import BlockType
from fx_inspect.read.decoder import RecordDecoder
from fx_inspect.read.records import (
    Block,
    Damaged,
    InspectRecord,
    Padding,
    Unknown,
)
from fx_inspect.rules import RULES
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import WORD, Bits, FieldView, WordLayout, to_i64
from fxframework.kit.explain import Explainer, check_offset
from fxframework.kit.json_fields import double_of

__all__ = ["explain"]

DOCS = "docs, Inspect: What is read"
_SIZE = WordLayout(
    "HEADER", DOCS, (Bits("vmo_size", 0, 31, "bytes of the VMO"), Bits("unused", 32, 63))
)
_PAYLOADS = {
    BlockType.EXTENT: "payload",
    BlockType.NAME: "name",
    BlockType.STRING_REFERENCE: "inline",
}


def explain(source: Source, offset: int) -> list[FieldView]:
    """Return the fields of the block that contains byte ``offset``, in file order.

    For long stretches (payload, padding, damage) only the words around the byte are returned.
    Raises UsageError if the file has no such byte.
    """
    check_offset(source, offset)
    walk = RecordDecoder(limits=Limits(max_record=0)).begin(source.data)
    record = walk.record(walk.at(offset))
    return list(_Explainer(source.data, record, offset).views())


class _Explainer(Explainer):
    """Explains one record of a VMO."""

    def __init__(self, data: Any, record: InspectRecord, wanted: int) -> None:
        super().__init__(data, wanted)
        self.record = record
        self.end = record.offset + record.nbytes

    def views(self) -> Iterator[FieldView]:
        """Yield all fields."""
        record = self.record
        at = record.offset
        if isinstance(record, Block):
            yield from self.block(record)
        elif isinstance(record, Unknown):
            words = wire.UNKNOWN[wire.layout_of(self.data[:2].tobytes())]
            yield from words.explain(self.number(at), at)
            yield from self.rest(at + WORD, "unknown", words.section, None)
        elif isinstance(record, Damaged):
            yield from self.damaged(at, self.end, RULES[record.code])
        elif isinstance(record, Padding):
            yield from self.rest(at, "padding", DOCS, "zero bytes")

    def rest(self, at: int, name: str, section: str, meaning: str | None) -> Iterator[FieldView]:
        """Yield the rest of the record; without ``meaning`` the bytes themselves are shown."""
        return self.stretch(at, self.end, name, section, meaning)

    def block(self, block: Block) -> Iterator[FieldView]:
        """Yield the fields of a block: its words, its payload, and the unused rest."""
        at = block.offset
        words = wire.LAYOUTS[block.layout][block.number]
        section = words.header.section
        for view in words.header.explain(self.number(at), at):
            yield attrs.evolve(view, meaning=self.meaning(block, view))
        at += WORD
        if words.payload is not None:
            for view in words.payload.explain(self.number(at), at):
                yield attrs.evolve(view, meaning=self.meaning(block, view))
            at += WORD
        if block.number == BlockType.HEADER and block.order:
            yield from _SIZE.explain(self.number(at), at)
            at += WORD
        elif block.number == BlockType.ARRAY_VALUE:
            slots = block.fields.get("slots", block.fields.get("slot_indexes", ()))
            size = wire.SLOT_BYTES.get(block.fields["entry_type"], 0)
            for number, slot in enumerate(slots):
                bits = self.number(at, size)
                meaning = "" if slot == bits else str(slot)
                yield FieldView(at, 0, 8 * size - 1, f"slot {number}", bits, meaning, section)
                at += size
        elif block.number in _PAYLOADS:
            name = _PAYLOADS[BlockType(block.number)]
            # The word of a string's length also holds its first bytes.
            start = block.offset + wire.PAYLOAD_AT[block.number]
            length = block.fields.get("length", block.fields.get("total_length", block.nbytes))
            stop = min(self.end, start + length)
            yield from self.stretch(at, max(at, stop), name, section)
            at = max(at, stop)
        yield from self.rest(at, "unused", section, None)

    def meaning(self, block: Block, view: FieldView) -> str:
        """Return the meaning of a field: the value that a number stands for, or its description."""
        if view.name == "order":
            return f"{wire.ORDER_SIZE(view.value)} bytes"
        if view.name == "value" and block.number == BlockType.INT_VALUE:
            return str(to_i64(view.value))
        if view.name == "value" and block.number == BlockType.DOUBLE_VALUE:
            return repr(double_of(view.value))
        if view.name == "magic":
            return repr(view.value.to_bytes(4, "little"))[1:]
        if view.name == "generation":
            return self.generation(view.value)
        if view.name == "inline":
            return repr(view.value.to_bytes(4, "little"))[1:]
        return view.meaning

    @staticmethod
    def generation(value: int) -> str:
        """Return the meaning of a generation."""
        if value == wire.FROZEN_GENERATION:
            return "frozen"
        return "odd: being changed" if value % 2 else "even: at rest"
