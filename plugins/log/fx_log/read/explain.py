"""`fxf explain FILE@OFFSET`: the record at a byte, as annotated fields.

Fields are explained by their declarations in `format.py`; `decoder.py` finds the records.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import attrs

from fx_log import format as wire
from fx_log.format import LegacyPacket
from fx_log.plugin import FORMATS
from fx_log.read.decoder import STATE, RecordDecoder
from fx_log.read.records import Damaged, LogFileRecord, Padding, RingEntry
from fx_log.rules import RULES
from fxframework.io.source import Source
from fxframework.io.words import FieldView, view_of
from fxframework.kit.explain import Explainer, check_offset

__all__ = ["explain", "explain_legacy", "explain_log", "explain_ring", "explain_stream"]


def explain(form: str, source: Source, offset: int) -> list[FieldView]:
    """Return the fields of the record that contains byte ``offset``, in file order.

    For long stretches (padding, damage) only the words around the byte are returned. Raises
    UsageError if the file has no such byte.
    """
    check_offset(source, offset)
    distances = _Distances(source.size, ring=form == "log-ring")
    records = RecordDecoder(form).read(view_of(source.data))
    record = next(
        record
        for record in records.from_byte(0 if form == "log-ring" else offset)
        if distances.between(record.offset, offset) < record.nbytes
    )
    data = distances.bytes_of(view_of(source.data), record)
    wanted = distances.between(record.offset, offset)
    explainer = _Explainer(data, wanted, container=form == "log-legacy-stream")
    return [
        attrs.evolve(view, offset=distances.after(record.offset, view.offset))
        for view in explainer.views(record)
    ]


explain_log, explain_legacy, explain_stream, explain_ring = (
    partial(explain, form) for form in FORMATS
)


class _Distances:
    """Distances between bytes of a file; those of a ring wrap around."""

    def __init__(self, size: int, *, ring: bool) -> None:
        self._page = wire.RING_PAGE if ring and size > wire.RING_PAGE else 0
        self._capacity = size - self._page

    def between(self, start: int, offset: int) -> int:
        """Return the bytes from ``start`` to ``offset``."""
        if self._page and start >= self._page and offset >= self._page:
            return (offset - start) % self._capacity
        return offset - start if offset >= start else 1 << 63

    def after(self, start: int, nbytes: int) -> int:
        """Return the offset ``nbytes`` after ``start``."""
        if self._page and start >= self._page:
            return self._page + (start - self._page + nbytes) % self._capacity
        return start + nbytes

    def bytes_of(self, data: memoryview, record: LogFileRecord) -> memoryview:
        """Return the bytes of a record in order."""
        end = record.offset + record.nbytes
        if end <= len(data):
            return data[record.offset : end]
        rest = data[self._page : self._page + end - len(data)]
        return memoryview(data[record.offset :].tobytes() + rest.tobytes())


class _Explainer(Explainer):
    """Explains the bytes of one record, with offsets from its start."""

    def __init__(self, data: memoryview, wanted: int, *, container: bool) -> None:
        super().__init__(data, wanted)
        self.container = container

    def views(self, record: LogFileRecord) -> Iterator[FieldView]:
        """Yield all fields of a record."""
        if isinstance(record, RingEntry):
            yield from self.entry(record)
        elif isinstance(record, Padding):
            yield from self.rest(0, "padding", wire.RECORDS, "zero bytes")
        elif isinstance(record, Damaged):
            yield from self.damaged(0, len(self.data), RULES[record.code])
        else:
            at = 0
            if self.container and isinstance(record, LegacyPacket):
                at = wire.STREAM_LENGTH
                yield from self.fields(wire.PacketLength, 0, at)
            yield from self.fields(type(record), at, len(self.data))

    def fields(self, cls: Any, at: int, end: int) -> Iterator[FieldView]:
        """Yield the fields of the record in bytes ``at`` to ``end``, and what is behind them."""
        views: list[FieldView] = []
        _, c = cls.unpack(self.data, at, end, STATE, views, self.wanted)
        yield from views
        yield from self.stretch(c.at, end, "trailing", cls.layout.family.section)

    def rest(self, at: int, name: str, section: str, meaning: str) -> Iterator[FieldView]:
        """Yield the rest of the record as one stretch."""
        return self.stretch(at, len(self.data), name, section, meaning)

    def entry(self, entry: RingEntry) -> Iterator[FieldView]:
        """Yield the fields of a ring's entry and of the record in it."""
        at = wire.RING_ENTRY
        end = at + entry.length
        views: list[FieldView] = []
        wire.RingFrame.unpack(self.data, 0, len(self.data), STATE, views)
        yield from (view for view in views if view.offset < at)
        if entry.log is not None:
            yield from self.fields(wire.LogRecord, at, at + entry.log.nbytes)
            at += entry.log.nbytes
        yield from self.stretch(at, end, "payload", wire.RINGS)
        yield from self.rest(end, "padding", wire.RINGS, "should be zero")
