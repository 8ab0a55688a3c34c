"""`fxf explain FILE@OFFSET`: the record at a byte, as annotated fields.

Header words are explained by their declarations in `layout.py`; `decoder.py` finds the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np

from fx_log import layout as wire
from fx_log import rules
from fx_log.read.arguments import DAMAGED, Argument
from fx_log.read.decoder import RecordDecoder
from fx_log.read.framing import FrameList, Framer, LogFramer, PacketFramer
from fx_log.read.records import Damaged, LegacyPacket, LogFileRecord, LogRecord, Padding, RingEntry
from fx_log.rules import RULES
from fxframework.io.source import Source
from fxframework.io.words import WORD, FieldView, padding, view_of
from fxframework.kernels.notes import Notes
from fxframework.kit.explain import Explainer, check_offset

__all__ = ["explain_legacy", "explain_log", "explain_ring", "explain_stream"]

FRAMES = 1 << 16
"""Frames that are looked at in one go."""
RECORDS = "logs-encoding, Records"
PACKETS = "docs, Legacy log packets"
RINGS = "docs, Log rings"


def explain_log(source: Source, offset: int) -> list[FieldView]:
    """Return the fields of the structured record that contains byte ``offset``, in file order.

    For long stretches (padding, damage) only the words around the byte are returned. Raises
    UsageError if the file has no such byte.
    """
    return _explain("log", source, offset)


def explain_legacy(source: Source, offset: int) -> list[FieldView]:
    """Return the fields of a bare packet around byte ``offset``, as ``explain_log`` does."""
    return _explain("log-legacy", source, offset)


def explain_stream(source: Source, offset: int) -> list[FieldView]:
    """Return the fields of a packet of a container, or of its header, as ``explain_log`` does."""
    return _explain("log-legacy-stream", source, offset)


def explain_ring(source: Source, offset: int) -> list[FieldView]:
    """Return the fields of a ring's entry, first page or unused space, as ``explain_log`` does."""
    return _explain("log-ring", source, offset)


def _explain(form: str, source: Source, offset: int) -> list[FieldView]:
    check_offset(source, offset)
    distances = _Distances(source.size, ring=form == "log-ring")
    walk = RecordDecoder(form).walk(view_of(source.data), [])
    walk.at = _frame_before(form, source, offset)
    record = next(
        record
        for record in walk.records()
        if distances.between(record.offset, offset) < record.nbytes
    )
    data = distances.bytes_of(view_of(source.data), record)
    wanted = distances.between(record.offset, offset)
    explainer = _Explainer(data, wanted, container=form == "log-legacy-stream")
    return [
        attrs.evolve(view, offset=distances.after(record.offset, view.offset))
        for view in explainer.views(record)
    ]


def _frame_before(form: str, source: Source, offset: int) -> int:
    """Return where the last sound record begins that does so up to a byte; 0 if none does."""
    notes = Notes(RULES.numbers, 1)
    framer: Framer
    if form == "log":
        framer = LogFramer(source.words().view("i8").data, source.size, notes, 0, 0)
    elif form == "log-legacy-stream":
        framer = PacketFramer(source.data.data, notes, wire.STREAM_HEADER)
    else:
        return 0
    frames = FrameList(framer, FRAMES)
    start = 0
    while frames.run():
        begins = np.asarray(frames.begins)[: frames.rows]
        count = int(np.searchsorted(begins, offset, "right"))
        start = int(begins[count - 1]) if count else start
        if count < begins.size:
            break
    return start


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
        """Return all fields of a record."""
        if isinstance(record, LogRecord):
            return self.log(record, 0)
        if isinstance(record, LegacyPacket):
            return self.packet(record)
        if isinstance(record, RingEntry):
            return self.entry(record)
        if isinstance(record, Padding):
            return self.rest(0, "padding", RECORDS, "zero bytes")
        if isinstance(record, Damaged):
            return self.damaged(0, len(self.data), RULES[record.code])
        return self.header(record)

    def field(self, at: int, nbytes: int, name: str, section: str, shown: Any = None) -> FieldView:
        """Return the field of a number without bit fields."""
        value = self.number(at, nbytes)
        meaning = "" if shown is None or shown == value else str(shown)
        return FieldView(at, 0, 8 * nbytes - 1, name, value, meaning, section)

    def rest(self, at: int, name: str, section: str, meaning: str) -> Iterator[FieldView]:
        """Yield the rest of the record as one stretch."""
        return self.stretch(at, len(self.data), name, section, meaning)

    def header(self, record: LogFileRecord) -> Iterator[FieldView]:
        """Yield the fields of a header of numbers, or of a suffix."""
        at = 0
        kinds: dict[str, tuple[tuple[str, int], ...]] = {
            "stream_header": (("magic", 8), ("version", 4)),
            "ring_header": (("head", 8), ("tail", 8)),
            "attribution": (("moniker_bytes", 4), ("url_bytes", 4), ("rolled_out", 8)),
        }
        section = "docs, Logs" if record.record == "stream_header" else RINGS
        for name, nbytes in kinds[record.record]:
            yield self.field(at, nbytes, name, section)
            at += nbytes
        if record.record == "attribution":
            yield from self.stretch(at, len(self.data), "moniker and url", section)
        else:
            yield from self.rest(at, "reserved", section, "should be zero")

    def entry(self, entry: RingEntry) -> Iterator[FieldView]:
        """Yield the fields of a ring's entry and of the record in it."""
        yield self.field(0, WORD, "tag", RINGS)
        yield self.field(WORD, WORD, "length", RINGS)
        at = wire.RING_ENTRY
        end = at + entry.length
        if entry.log is not None:
            yield from self.log(entry.log, at)
            at += entry.log.nbytes
        yield from self.stretch(at, end, "payload", RINGS)
        yield from self.rest(end, "padding", RINGS, "should be zero")

    def packet(self, packet: LegacyPacket) -> Iterator[FieldView]:
        """Yield the fields of a legacy packet, with its length in a container."""
        at = 0
        if self.container:
            yield self.field(0, wire.STREAM_LENGTH, "length", "docs, Logs")
            at = wire.STREAM_LENGTH
        for name, nbytes in (
            ("pid", 8),
            ("tid", 8),
            ("timestamp", 8),
            ("severity", 4),
            ("dropped_logs", 4),
        ):
            yield self.field(at, nbytes, name, PACKETS, getattr(packet, name))
            at += nbytes
        for tag in packet.tags:
            yield self.field(at, 1, "tag_bytes", PACKETS)
            end = at + 1 + self.data[at]
            yield from self.stretch(at + 1, end, f"tag {tag!r}", PACKETS)
            at = end
        yield self.field(at, 1, "end_of_tags", PACKETS)
        yield from self.stretch(at + 1, len(self.data), "message", PACKETS)

    def log(self, record: LogRecord, at: int) -> Iterator[FieldView]:
        """Yield the fields of the structured record at ``at``."""
        yield from wire.HEADER.explain(self.number(at), at)
        yield self.field(at + WORD, WORD, "timestamp", RECORDS, record.timestamp)
        end = at + record.nbytes
        at += wire.MIN_RECORD_WORDS * WORD
        for argument in record.args:
            stop = at + _nbytes(argument)
            yield from self.argument(argument, at, min(stop, end))
            at = stop

    def argument(self, argument: Argument, at: int, end: int) -> Iterator[FieldView]:
        """Yield the fields of the argument in bytes ``at`` to ``end``."""
        if argument.type == DAMAGED:
            yield from self.damaged(at, end, RULES[argument.code or rules.RESERVED_REFERENCE.code])
            return
        word = self.number(at)
        layout = wire.ARGUMENT_LAYOUTS.get(wire.ARG_TYPE.get(word), wire.ARGUMENT)
        for view in layout.explain(word, at):
            if view.name.endswith("_ref") and view.value & wire.INLINE:
                nbytes = view.value & wire.MAX_STRING
                yield attrs.evolve(view, meaning=f"inline, {nbytes} bytes")
            else:
                yield view
        at += WORD
        name = wire.NAME_REF.get(word) & wire.MAX_STRING
        middle = at + name + padding(name)
        yield from self.stretch(at, middle, "name", layout.section)
        if isinstance(argument.value, str | bytes):
            yield from self.stretch(middle, end, "value", layout.section)
        elif middle < end:
            yield self.field(middle, WORD, "value", layout.section, argument.value)


def _nbytes(argument: Argument) -> int:
    """Return the bytes that an argument takes, from its contents."""
    value = argument.value
    if argument.type == DAMAGED and isinstance(value, bytes):
        return len(value)
    size: Callable[[str], int] = lambda text: len(text.encode(errors="surrogateescape"))  # noqa: E731
    name = size(argument.name)
    total = WORD + name + padding(name)
    if isinstance(value, str):
        return total + size(value) + padding(size(value))
    if isinstance(value, bytes):
        return total + len(value)
    return total if value is None or isinstance(value, bool) else total + WORD
