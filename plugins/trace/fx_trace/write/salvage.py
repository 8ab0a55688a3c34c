"""Salvage of traces and of trace buffers: the sound records, complete without the damaged ones.

Stretches of sound records are copied (``SoundRecords``). Damage is left out, and so are records
with times that do not fit 63 bits of nanoseconds. References to strings or threads that were never
registered are repaired. A record that hides others, because its size is damaged, is damage itself.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, cast

import attrs
import numpy as np

from fx_trace import rules
from fx_trace.format import MAGIC, MAGIC_BYTES
from fx_trace.indexed import Thread, string_marker
from fx_trace.read.buffer import RECORDS, BufferHeader
from fx_trace.read.capture import TraceCapture
from fx_trace.read.cursor import NO_STRINGS, NO_THREADS, Tables
from fx_trace.read.decoder import RecordDecoder
from fx_trace.read.framing import RecordBounds
from fx_trace.read.image import BufferCapture
from fx_trace.records import (
    Argument,
    Damaged,
    LargeRecord,
    Padding,
    StringRecord,
    ThreadRecord,
    TraceInfo,
    TraceRecord,
)
from fx_trace.write.rewriter import BufferWriter, TraceRewriter
from fx_trace.write.sound import SoundRecords, TraceJudge
from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.io.words import WORD
from fxframework.kit.memo import Memo
from fxframework.kit.realign import realigned
from fxframework.kit.salvage import Loss, lost
from fxframework.model.capture import Capture
from fxframework.wire.records import references

__all__ = ["salvage", "salvage_image"]

NOBODY = (0, 0)
"""The thread written for one that was never registered, as in libtrace."""
PIECE = 1 << 22
"""Bytes copied at a time."""


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write the sound records of a trace. Yield each loss (``registry.Writer``).

    An index that was never registered is registered before its first use, which is a loss of 0
    bytes. The output begins with the magic number.
    """
    assert isinstance(capture, TraceCapture)  # noqa: S101 (the host asks for no other)
    yield from realigned(
        capture,
        TraceJudge(),
        rules.OFF_ALIGNMENT,
        lambda aligned: _salvage(aligned, sink, options),
        big_endian=capture.big_endian,
    )


def _salvage(capture: TraceCapture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write the sound records of an aligned trace. Yield each loss."""
    big_endian = bool(options.get("big_endian", False))
    perfetto_safe = bool(options.get("perfetto_safe", False))
    _find_hidden(capture)
    walk = _Walk(capture, copies=big_endian == capture.big_endian and not perfetto_safe)
    writer = TraceRewriter(
        sink, big_endian=big_endian, perfetto_safe=perfetto_safe, tables=walk.tables
    )
    begun = False
    for one in walk.run():
        if isinstance(one, Loss):
            yield one
            continue
        if isinstance(one, Padding | Damaged):
            yield _left_out(one)
            continue
        if not begun:
            begun = True
            if isinstance(one, range) or not _is_magic(one):
                writer.write(TraceInfo(info_type=0, magic=MAGIC))
                yield Loss(
                    walk.at,
                    0,
                    "metadata",
                    "the magic number was missing; added",
                    rules.NO_MAGIC.code,
                )
        if isinstance(one, range):
            writer.put(capture.source.read(one.start, len(one)))
        else:
            yield from _write(one, walk, writer)
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
    capture = capture.to_recorded_ends()
    _find_hidden(capture)
    walk = _Walk(capture, copies=True)
    writer = BufferWriter(sink, tables=walk.tables)
    image = _ImageSalvage(capture, walk, writer)
    for one in walk.run():
        yield from image.write(one)
    writer.close()


def _find_hidden(capture: TraceCapture) -> None:
    """Have each record whose damaged size hides others taken for damage that ends before them.

    Large records that are sound may hold anything.
    """
    bounds = RecordBounds(capture.words, capture.request.limits.max_record or 0)
    walk = capture.walk(Tables())
    found: list[tuple[int, int]] = []
    for start, end, has_records in walk.spans():
        at, bounds.total = start // WORD, end // WORD
        while has_records and at < bounds.total:
            begin, at = at, bounds.hiding(at, min(at + PIECE // WORD, bounds.total))
            capture.source.passed(begin * WORD, at * WORD)
            if at < bounds.total and (first := bounds.hidden_in(at)):
                record = walk.record(at * WORD)
                if record.opaque or not isinstance(record, LargeRecord):
                    found.append((at, first))
                    at = first
                else:
                    at += record.nbytes // WORD
    if found:
        capture.take_for_damage(np.array(sorted(found), np.int64).ravel())


# --- The walk over the file --------------------------------------------------------------------


class _FileTables(Tables):
    """The strings and threads in force at a place of the file, read where they were registered."""

    def __init__(self, capture: TraceCapture, sound: SoundRecords) -> None:
        super().__init__()
        self._registrations = sound.registrations
        self._made = capture.words.size
        walk = RecordDecoder(big_endian=capture.big_endian).begin(capture.source.data)
        self._strings: Memo[int, str] = Memo(
            lambda at: cast("StringRecord", walk.record(at * WORD)).value
        )
        self._threads: Memo[int, tuple[int, int]] = Memo(lambda at: _koids(walk.record(at * WORD)))

    def string(self, index: int) -> str | None:
        """Return the string registered at an index, or None."""
        at = self._registrations.string(index)
        if not 0 <= at < self._made:
            return None if at < 0 else string_marker(index)
        return self._strings[at]

    def thread(self, index: int) -> tuple[int, int] | None:
        """Return the thread registered at an index, or None."""
        at = self._registrations.thread(index)
        if not 0 <= at < self._made:
            return None if at < 0 else NOBODY
        return self._threads[at]

    def forget(self) -> None:
        """Forget what the last record read or written registered: the file has it."""
        self.current.strings = NO_STRINGS
        self.current.threads = NO_THREADS


def _koids(record: Any) -> tuple[int, int]:
    return record.pid, record.tid


class _Walk:
    """A walk over a capture: stretches to copy, and the records that need a look.

    ``tables`` are in force at the place of the walk, for the writer of the records.
    """

    def __init__(self, capture: TraceCapture, *, copies: bool) -> None:
        self.capture = capture
        self.at = 0
        """First byte of what ``run`` gave last."""
        self._sound = SoundRecords(capture.words)
        self._sound.max_record = capture.request.limits.max_record or 0
        self._registrations = self._sound.registrations
        self._made = capture.words.size
        self._copies = copies
        self._image = isinstance(capture, BufferCapture)
        self._sound.switches = not self._image
        self._again = False
        self._outside = capture.counting_pass().outside_offsets
        self.tables = _FileTables(capture, self._sound)

    def run(self) -> Iterator[Any]:
        """Yield byte ranges of sound records, losses, and every other record.

        A loss is a record with a time that does not fit 63 bits of nanoseconds.
        """
        sound, walk = self._sound, self.capture.walk(_FileTables(self.capture, self._sound))
        passed = 0
        for start, end, has_records in walk.spans():
            at = start
            while at < end:
                timeless = self._timeless(at, end)
                sound.limit(timeless // WORD)
                if has_records and self._copies:
                    sound.pos = at // WORD
                    sound.until = sound.pos + PIECE // WORD
                    stop = sound.run() * WORD
                    for self.at in range(at, stop, PIECE):  # one record may be large
                        yield range(self.at, min(self.at + PIECE, stop))
                    at = stop
                if at - passed >= PIECE:
                    self.capture.source.passed(passed, at)
                    passed = at
                if at < end and sound.stopped:
                    self.at = at
                    walk.index = sound.count
                    record = walk.record(at)
                    if at == timeless:
                        sound.count += 1
                        at += record.nbytes
                        yield _timeless_loss(record)
                        continue
                    yield record
                    at = self._behind(record)
                    cast("_FileTables", walk.tables).forget()
                    self.tables.forget()
            self.capture.source.position = end

    def _timeless(self, at: int, end: int) -> int:
        """Return the first record from byte ``at`` whose time does not fit; ``end`` if none."""
        place = int(np.searchsorted(self._outside, at))
        return min(end, int(self._outside[place])) if place < self._outside.size else end

    def _behind(self, record: Any) -> int:
        """Return where to go on after a record, once what it registers is entered."""
        if self._again:
            self._again = False
            return self.at
        self._sound.count += 1
        metadata = self._image and record.record == "metadata"  # it has no effect there
        if not isinstance(record, Padding | Damaged | BufferHeader) and not metadata:
            self._sound.register(self.at // WORD)
        return self.at + int(record.nbytes)

    def missing(self, record: TraceRecord) -> list[_Missing]:
        """Return what a record refers to and what is written does not register."""
        found: dict[tuple[bool, int], _Missing] = {}
        for name, index, is_thread in _references(record):
            has = self._registrations.has_thread if is_thread else self._registrations.has_string
            if not has(index):
                found.setdefault((is_thread, index), _Missing(name, index, is_thread))
        return list(found.values())

    def registration(self, one: _Missing) -> StringRecord | ThreadRecord:
        """Return the record to put in: what provider 0 registered, a marker, or thread 0, 0."""
        if one.is_thread:
            pid, tid = self.tables.thread(one.index) or NOBODY
            made: StringRecord | ThreadRecord = ThreadRecord(index=one.index, pid=pid, tid=tid)
        else:
            value = self.tables.string(one.index)
            text = string_marker(one.index) if value is None else value
            made = StringRecord(index=one.index, value=text)
        made.offset = self.at
        return made

    def register(self, missing: list[_Missing]) -> Iterator[Loss]:
        """Enter what was put in, and read the record again. Yield the losses."""
        self._again = True
        for one in missing:
            found = self._registrations
            at = found.thread(one.index) if one.is_thread else found.string(one.index)
            register = found.register_thread if one.is_thread else found.register_string
            register(one.index, self._made if at < 0 else at)
            if at < 0:
                yield Loss(self.at, 0, *one.described(one.replacement))


@attrs.frozen
class _Missing:
    """An index that a record refers to, and that nothing has registered."""

    name: str
    """The field with the first reference."""
    index: int
    is_thread: bool

    @property
    def replacement(self) -> str:
        """What happened to it."""
        return "registered as " + ("0, 0" if self.is_thread else string_marker(self.index))

    def described(self, outcome: str) -> tuple[str, str, str]:
        """Return what was lost, the message and the code of a ``Loss``."""
        what, rule = "string", rules.STRING_NOT_REGISTERED
        if self.is_thread:
            what, rule = "thread", rules.THREAD_NOT_REGISTERED
        message = f"{self.name}: {what} {self.index} was never registered; {outcome}"
        return what, message, rule.code


def _timeless_loss(record: TraceRecord) -> Loss:
    message = f"{record.nbytes} bytes at a time that nanoseconds cannot hold; left out"
    return Loss(record.offset, record.nbytes, record.record, message, rules.TIME_OVERFLOW.code)


def _references(record: TraceRecord) -> Iterator[tuple[str, int, bool]]:
    """Yield the references of a record: field, index, and whether it is to a thread."""
    refs = record.refs or {}
    for field in references(record.layout):
        if field.name in refs:
            yield field.name, refs[field.name], isinstance(field, Thread)
    arguments: tuple[Argument, ...] = getattr(record, "args", ())
    for number, argument in enumerate(arguments):
        for name, index in (argument.refs or {}).items():
            yield f"{name} of argument {number}", index, False


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
    return attrs.evolve(loss, message=message, code=rules.ZERO_WORDS.code)


def _write(record: TraceRecord, walk: _Walk, writer: TraceRewriter) -> Iterator[Loss]:
    """Write a record of an archive, or the registrations that it lacks. Yield the losses."""
    missing = walk.missing(record)
    try:
        for one in missing:
            writer.write(walk.registration(one))
        if missing:
            yield from walk.register(missing)
        else:
            writer.write(record)
    except WriteRefusedError as error:
        message = f"it cannot be written: {error.message}"
        yield Loss(record.offset, record.nbytes, record.record, message, error.code)


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
            self._writer.put_at(one.start, self._capture.source.read(one.start, len(one)))
        elif isinstance(one, Loss):
            yield one
        elif isinstance(one, BufferHeader):
            yield from self._write_header(one)
        elif isinstance(one, Padding):
            if any(part.start <= one.offset < part.end for part in self._inside):
                yield lost(one)
        elif isinstance(one, Damaged):
            if one.code == rules.STALE_BYTES.code:
                self._writer.write(one)
            else:
                yield lost(one)
        elif one.record == "metadata":
            message = "metadata has no place in a trace buffer; left out"
            yield Loss(one.offset, one.nbytes, one.record, message, rules.METADATA_IN_BUFFER.code)
        else:
            yield from self._write_record(one)

    def _write_header(self, header: BufferHeader) -> Iterator[Loss]:
        size = self._capture.source.size
        missing = header.total_size - size
        if missing > 0:
            message = f"{missing} bytes of the image are missing; written as unused space"
            yield Loss(size, 0, header.record, message, rules.IMAGE_TRUNCATED.code)
        for fault in self._capture.image.faults:
            message = f"{fault.message}; mended by what else is known of the image"
            yield Loss(fault.offset, 0, header.record, message, rules.BUFFER_HEADER.code)
        if header.raw is not None:
            yield Loss(
                0,
                0,
                header.record,
                "reserved bits were set; cleared",
                rules.RESERVED_HEADER_BITS.code,
            )
        for finding in self._capture.diagnostics:
            if finding.code == rules.RECORDS_BEHIND_DATA_END.code:
                yield Loss(0, 0, header.record, f"{finding.message}; corrected", finding.code)
        self._writer.write(header.edited())

    def _write_record(self, record: TraceRecord) -> Iterator[Loss]:
        """Write a record, or the registrations that it lacks, if its buffer has the room."""
        missing = self._walk.missing(record)
        if not missing:
            self._writer.write(record)
            return
        new = [self._walk.registration(one) for one in missing]
        buffer = self._writer.buffer_at(record.offset)
        need = sum(len(one.pack()) for one in new)
        if need > self._room[buffer.name]:
            self._room[buffer.name] += record.nbytes
            _, message, code = missing[0].described("its buffer has no room; left out")
            yield Loss(record.offset, record.nbytes, record.record, message, code)
            return
        self._room[buffer.name] -= need
        buffer.changed = True
        for one in new:
            self._writer.write(one)
        yield from self._walk.register(missing)

    @functools.cached_property
    def _room(self) -> dict[str, int]:
        """Bytes of each buffer that the sound records leave, by its name."""
        room = {buffer.name: buffer.size for buffer in self._writer.buffers}
        for one in _Walk(self._capture, copies=True).run():
            if isinstance(one, range):
                room[self._writer.buffer_at(one.start).name] -= len(one)
            elif isinstance(one, TraceRecord) and not isinstance(
                one, Padding | Damaged | BufferHeader
            ):
                room[self._writer.buffer_at(one.offset).name] -= one.nbytes
        return room
