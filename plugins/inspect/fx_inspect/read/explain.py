"""`fxf explain FILE@OFFSET`: the block at a byte, as annotated fields.

Blocks are explained by their declarations in `format.py`; `decoder.py` finds them.
"""

from __future__ import annotations

from collections.abc import Iterator

from fx_inspect import format as wire
from fx_inspect.format import Block
from fx_inspect.read.blocks import Blocks
from fx_inspect.read.decoder import objects_at
from fx_inspect.read.records import STATE, InspectRecord, Unknown
from fx_inspect.rules import RULES
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import WORD, FieldView
from fxframework.kit.explain import Explainer, check_offset
from fxframework.kit.lossless import DamagedRecord

DOCS = "docs, Inspect: What is read"


def explain(source: Source, offset: int) -> list[FieldView]:
    """Return the fields of the block that contains byte ``offset``, in file order.

    For long stretches (payload, padding, damage) only the words around the byte are returned.
    Raises UsageError if the file has no such byte.
    """
    check_offset(source, offset)
    blocks = Blocks(source.data, Limits(max_record=0))
    objects, row = objects_at(blocks, offset)
    return list(_Explainer(source.data, offset).views(objects.record(row), blocks.layout))


class _Explainer(Explainer):
    """Explains one record of a VMO."""

    def views(self, record: InspectRecord, layout: str) -> Iterator[FieldView]:
        """Yield all fields."""
        start = record.offset
        end = record.offset + record.nbytes
        if isinstance(record, Block):
            views: list[FieldView] = []
            type(record).unpack(self.data, start, end, STATE, views, self.wanted)
            yield from views
        elif isinstance(record, Unknown):
            section = wire.SECTIONS[layout]
            yield from wire.unknown_word(layout).explain(self.number(start), start)
            yield from self.stretch(start + WORD, end, "unknown", section)
        elif isinstance(record, DamagedRecord):
            yield from self.damaged(start, end, RULES[record.code])
        else:
            yield from self.stretch(start, end, "padding", DOCS, "zero bytes")
