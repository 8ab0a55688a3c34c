"""Salvage of traces and of trace buffers: the sound records, complete without the damaged ones.

Stretches of sound records are copied (``SoundRecords``). Damage is left out. References to strings
or threads that were never registered are repaired.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from fx_trace.layout import BUFFER_HEADER, MAGIC, MAGIC_BYTES
from fx_trace.read.arguments import Argument
from fx_trace.read.buffer import RECORDS, BufferHeader
from fx_trace.read.cursor import NO_STRINGS, NO_THREADS, Tables, string_marker
from fx_trace.read.decoder import RecordDecoder
from fx_trace.read.image import BufferCapture, BufferWriter
from fx_trace.read.parts import Reference, StringReference
from fx_trace.read.reader import TraceCapture
from fx_trace.read.records import (
    Damaged,
    Padding,
    StringRecord,
    ThreadRecord,
    TraceInfo,
    TraceRecord,
    UserspaceObject,
)
from fx_trace.write.rewriter import TraceRewriter
from fx_trace.write.sound import SoundRecords
from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.io.words import WORD
from fxframework.kit.salvage import Loss, lost
from fxframework.model.capture import Capture

__all__ = ["salvage", "salvage_image"]

NOBODY = (0, 0)
"""The thread written for one that was never registered, as in libtrace."""
PIECE = 1 << 22
"""Bytes copied at a time."""


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write the sound records of a trace. Yield each loss (``registry.Writer``).

    A record that was kept but changed is a loss of 0 bytes. The output begins with the magic
    number, and all its references can be resolved.
    """
    assert isinstance(capture, TraceCapture)  # noqa: S101 (the host asks for no other)
    big_endian = bool(options.get("big_endian", False))
    perfetto_safe = bool(options.get("perfetto_safe", False))
    walk = _Walk(capture, copies=big_endian == capture.big_endian and not perfetto_safe)
    writer = TraceRewriter(
        sink, big_endian=big_endian, perfetto_safe=perfetto_safe, tables=walk.output
    )
    begun = False
    for one in walk.run():
        if isinstance(one, Padding | Damaged):
            yield _left_out(one)
            continue
        if not begun:
            begun = True
            if isinstance(one, range) or not _is_magic(one):
                writer.write(TraceInfo(info_type=0, magic=MAGIC))
                yield Loss(walk.at, 0, "metadata", "the magic number was missing; added", "FXT0201")
        if isinstance(one, range):
            writer.put(capture.source.read(one.start, len(one)))
        else:
            yield from _write_archived(one, walk, writer)
    writer.close()


def salvage_image(
    capture: Capture,
    sink: Sink,
    options: Mapping[str, Any],  # noqa: ARG001 (what was cut off becomes unused space)
) -> Iterator[Loss]:
    """Write the sound records of an image, as one of full size. Yield each loss.

    Unused space, and stale bytes in it, are kept and not lost. Metadata, which has no effect, is
    left out. An index that was never registered is registered before its first use; where the
    buffer has no room for that, the record is left out.
    """
    assert isinstance(capture, BufferCapture)  # noqa: S101 (the host asks for no other)
    walk = _Walk(capture, copies=True)
    writer = BufferWriter(sink, tables=walk.output)
    image = _ImageSalvage(capture, walk, writer)
    for one in walk.run():
        yield from image.write(one)
    writer.close()


# --- The walk over the file --------------------------------------------------------------------


class _FileTables(Tables):
    """The strings and threads in force at a place of the file, read where they were registered."""

    def __init__(self, capture: TraceCapture, sound: SoundRecords) -> None:
        super().__init__()
        self._registrations = sound.registrations
        self._reading = RecordDecoder(big_endian=capture.big_endian).begin(capture.source.data)
        self._strings: dict[int, str] = {}
        self._threads: dict[int, tuple[int, int]] = {}

    def string(self, index: int) -> str | None:
        """The string registered at an index, or None."""
        record = self._record(self._registrations.string(index))
        if isinstance(record, StringRecord):
            return record.value
        found = super().string(index)
        return self._strings.get(index) if found is None else found

    def thread(self, index: int) -> tuple[int, int] | None:
        """The thread registered at an index, or None."""
        record = self._record(self._registrations.thread(index))
        if isinstance(record, ThreadRecord):
            return record.pid, record.tid
        found = super().thread(index)
        return self._threads.get(index) if found is None else found

    def keep(self) -> None:
        """Keep what the last record written registered, for indices that the file does not."""
        self._strings.update(self.current.strings)
        self._threads.update(self.current.threads)
        self.forget()

    def forget(self) -> None:
        """Forget what the last record read or written registered: the file has it, or nothing."""
        self.current.strings = NO_STRINGS
        self.current.threads = NO_THREADS

    def _record(self, word: int) -> TraceRecord | None:
        return None if word < 0 else self._reading.record(word * WORD)


class _Walk:
    """A walk over a capture: stretches to copy, and the records that need a look.

    ``tables`` are those of the input, ``output`` those of what is written.
    """

    def __init__(self, capture: TraceCapture, *, copies: bool) -> None:
        self.capture = capture
        self.sound = SoundRecords(capture.words)
        self.sound.max_record = capture.request.limits.max_record or 0
        self.tables = _FileTables(capture, self.sound)
        self.output = _FileTables(capture, self.sound)
        self.at = 0
        """First byte of what ``run`` gave last."""
        self._copies = copies
        self._image = isinstance(capture, BufferCapture)

    def run(self) -> Iterator[Any]:
        """Yield byte ranges of sound records, and every other record."""
        sound, reading = self.sound, self.capture.reading(self.tables)
        passed = 0
        for start, end, has_records in reading.spans():
            sound.limit(end // WORD)
            at = start
            while at < end:
                if has_records and self._copies:
                    sound.pos = at // WORD
                    stop = sound.run() * WORD
                    for self.at in range(at, stop, PIECE):
                        yield range(self.at, min(self.at + PIECE, stop))
                    at = stop
                if at - passed >= PIECE:
                    self.capture.source.passed(passed, at)
                    passed = at
                if at < end:
                    self.at = at
                    reading.index = sound.count
                    record = reading.record(at)
                    sound.count += 1
                    yield record
                    self._register(record)
                    at += record.nbytes

    def _register(self, record: Any) -> None:
        """Enter what a record registers; metadata in an image has no effect."""
        metadata = self._image and record.record == "metadata"
        if not isinstance(record, Padding | Damaged | BufferHeader) and not metadata:
            self.sound.register(record.offset // WORD)
        self.tables.forget()


# --- Archives ----------------------------------------------------------------------------------


def _is_magic(record: TraceRecord) -> bool:
    """Return whether a record is the magic number, in the exact form of the start of files."""
    if not isinstance(record, TraceInfo) or record.raw is not None or record.opaque:
        return False
    return record.pack() == MAGIC_BYTES


def _left_out(record: Padding | Damaged) -> Loss:
    loss = lost(record)
    if isinstance(record, Damaged):
        return loss
    message = f"{record.nbytes} bytes are zero words between records; left out"
    return attrs.evolve(loss, message=message, code="FXT0006")


@attrs.define
class _Missing:
    """Unresolved references of one record."""

    strings: dict[int, str] = attrs.field(factory=dict)
    """Field that uses each string, by index."""
    threads: dict[int, str] = attrs.field(factory=dict)

    def registrations(self, record: TraceRecord) -> Iterator[StringRecord | ThreadRecord]:
        """Yield the records that register what is missing."""
        offset = record.offset
        for index in self.strings:
            yield StringRecord(offset=offset, index=index, value=string_marker(index))
        for index in self.threads:
            yield ThreadRecord(offset=offset, index=index, pid=NOBODY[0], tid=NOBODY[1])

    def losses(self, record: TraceRecord) -> Iterator[Loss]:
        """Yield the losses: the text or the thread, not the record."""
        for index, where in self.strings.items():
            shown = string_marker(index)
            message = f"{where}: string {index} was never registered; written as {shown}"
            yield Loss(record.offset, 0, record.record, message, "FXT0104")
        for index, where in self.threads.items():
            message = f"{where}: thread {index} was never registered; written as 0, 0"
            yield Loss(record.offset, 0, record.record, message, "FXT0105")


def _missing(record: TraceRecord, tables: Tables) -> _Missing | None:
    """Return the unresolved references of a record, or None."""
    missing = _Missing()
    for part in record.parts if record.refs else ():
        if isinstance(part, Reference) and part.name in (record.refs or {}):
            index = (record.refs or {})[part.name]
            if isinstance(part, StringReference):
                if tables.string(index) is None:
                    missing.strings.setdefault(index, part.name)
            elif tables.thread(index) is None:
                missing.threads.setdefault(index, part.name)
    arguments: tuple[Argument, ...] = getattr(record, "args", ())
    for number, argument in enumerate(arguments):
        for name, index in (argument.refs or {}).items():
            if tables.string(index) is None:
                missing.strings.setdefault(index, f"{name} of argument {number}")
    return missing if missing.strings or missing.threads else None


def _write_archived(record: TraceRecord, walk: _Walk, writer: TraceRewriter) -> Iterator[Loss]:
    """Write a record of an archive. Yield the losses if it cannot be written unchanged."""
    missing = _missing(record, walk.tables)
    try:
        if missing is None:
            writer.write(record)
        elif record.raw is not None:
            _register(record, missing, writer)
        else:
            try:
                writer.write(_inlined(record, missing))
            except WriteRefusedError:  # a full record has no room for inline words
                _register(record, missing, writer)
    except WriteRefusedError as error:
        message = f"it cannot be written: {error.message}"
        yield Loss(record.offset, record.nbytes, record.record, message, error.code)
    else:
        if missing is not None:
            yield from missing.losses(record)
    walk.output.forget()


def _inlined(record: TraceRecord, missing: _Missing) -> TraceRecord:
    """Return the record with inline values for what is missing: marker, or thread 0, 0."""
    changes = _without_threads(record, missing)
    changes["refs"] = _without(record.refs, record.parts, missing)
    if hasattr(record, "args"):
        changes["args"] = tuple(
            attrs.evolve(argument, refs=_kept(argument.refs, missing.strings))
            for argument in record.args
        )
    return attrs.evolve(record, **changes)


def _register(record: TraceRecord, missing: _Missing, writer: TraceRewriter) -> None:
    """Write what is missing before the record, which then keeps its bytes."""
    for one in missing.registrations(record):
        writer.write(one)
    writer.write(attrs.evolve(record, **_without_threads(record, missing)))


def _without_threads(record: TraceRecord, missing: _Missing) -> dict[str, Any]:
    """Return the fields with missing threads, replaced by thread 0, 0."""
    refs = record.refs or {}
    return {
        part.name: NOBODY[0] if isinstance(record, UserspaceObject) else NOBODY
        for part in record.parts
        if isinstance(part, Reference)
        and not isinstance(part, StringReference)
        and refs.get(part.name) in missing.threads
    }


def _without(
    refs: Mapping[str, int] | None, parts: tuple[Any, ...], missing: _Missing
) -> dict[str, int] | None:
    """Return the resolvable references of a record."""
    strings = {part.name for part in parts if isinstance(part, StringReference)}
    return {
        name: index
        for name, index in (refs or {}).items()
        if index not in (missing.strings if name in strings else missing.threads)
    } or None


def _kept(refs: Mapping[str, int] | None, missing: Mapping[int, str]) -> dict[str, int] | None:
    """Return the resolvable references of an argument."""
    return {name: index for name, index in (refs or {}).items() if index not in missing} or None


# --- Images ------------------------------------------------------------------------------------


class _ImageSalvage:
    """Writes what a walk over an image gives."""

    def __init__(self, capture: BufferCapture, walk: _Walk, writer: BufferWriter) -> None:
        self._capture = capture
        self._walk = walk
        self._writer = writer
        self._inside = [part for part in capture.image.stretches if part.kind == RECORDS]

    def write(self, one: Any) -> Iterator[Loss]:
        """Write a stretch or a record. Yield what is lost."""
        if isinstance(one, range):
            self._writer.put(one.start, self._capture.source.read(one.start, len(one)))
        elif isinstance(one, BufferHeader):
            yield from self._write_header(one)
        elif isinstance(one, Padding):
            if any(part.start <= one.offset < part.end for part in self._inside):
                yield lost(one)
        elif isinstance(one, Damaged):
            if one.code == "FXT0505":
                self._writer.write(one)
            else:
                yield lost(one)
        elif one.record == "metadata":
            message = "metadata has no place in a trace buffer; left out"
            yield Loss(one.offset, one.nbytes, one.record, message, "FXT0507")
        else:
            yield from self._write_record(one)

    def _write_header(self, header: BufferHeader) -> Iterator[Loss]:
        size = self._capture.source.size
        missing = header.total_size - size
        if missing > 0:
            message = f"{missing} bytes of the image are missing; written as unused space"
            yield Loss(size, 0, header.record, message, "FXT0502")
        if any(header.reserved):
            yield Loss(0, 0, header.record, "reserved bits were set; cleared", "FXT0509")
        self._writer.write(attrs.evolve(header, reserved=(0,) * len(BUFFER_HEADER)))

    def _write_record(self, record: TraceRecord) -> Iterator[Loss]:
        missing = _missing(record, self._walk.tables)
        if missing is None:
            self._writer.write(record)
            return
        new = [
            one
            for one in missing.registrations(record)
            if (
                self._walk.output.thread(one.index)
                if isinstance(one, ThreadRecord)
                else self._walk.output.string(one.index)
            )
            is None
        ]
        buffer = self._writer.buffer_at(record.offset).name
        need = sum(len(one.pack()) for one in new)
        if need > self._room[buffer]:
            self._room[buffer] += record.nbytes
            first = next(missing.losses(record))
            message = f"{first.message.partition(';')[0]}, and its buffer has no room; left out"
            yield Loss(record.offset, record.nbytes, record.record, message, first.code)
            return
        self._room[buffer] -= need
        for one in new:
            self._writer.write(one)
        self._writer.write(attrs.evolve(record, **_without_threads(record, missing)))
        self._walk.output.keep()
        yield from missing.losses(record)

    @functools.cached_property
    def _room(self) -> dict[str, int]:
        """Bytes of each buffer that the sound records leave, by its name."""
        room = {buffer.name: buffer.size for buffer in self._writer.buffers}
        for one in _Walk(self._capture, copies=True).run():
            if isinstance(one, range):
                room[self._writer.buffer_at(one.start).name] -= len(one)
            elif isinstance(one, TraceRecord) and not isinstance(one, Padding | Damaged):
                room[self._writer.buffer_at(one.offset).name] -= one.nbytes
        return room
