"""Salvage of traces and of trace buffers: the sound records, complete without the damaged ones.

``SalvageReader`` reads a file by blocks, and makes of each the copies of its sound records
(``fxframework.wire.verbs.copies``). Damage is left out, and so are records with times that do not
fit 63 bits of nanoseconds. A record that hides others, because its size is damaged, is damage
itself. Where a record refers to a string or a thread that was never registered, the registration is
put in before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace import rules
from fx_trace.format import MAGIC, MAGIC_BYTES, MAGIC_BYTES_BIG_ENDIAN, EventType
from fx_trace.indexed import STRINGS, THREADS, Thread, string_marker
from fx_trace.read.blocks import TraceBlocks, koids_of
from fx_trace.read.buffer import BufferHeader
from fx_trace.read.capture import TraceCapture
from fx_trace.read.decoder import RecordReader
from fx_trace.read.frames import FAMILIES, LEAST, resumption
from fx_trace.read.image import BufferCapture
from fx_trace.read.rows import TIMED
from fx_trace.records import (
    Argument,
    Damaged,
    Event,
    KernelObject,
    LargeBlob,
    LargeBlobWithMetadata,
    LargeRecord,
    Padding,
    ProviderEvent,
    StringRecord,
    ThreadRecord,
    TraceInfo,
    TraceRecord,
    UserspaceObject,
    class_of,
)
from fx_trace.write.rewriter import BufferWriter, TraceRewriter
from fxframework.errors import WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.io.source import Source, spool_file
from fxframework.io.words import U64_MAX, WORD
from fxframework.kernels.arrays import I64, U8, Bools
from fxframework.kernels.frames import Alignment
from fxframework.kernels.sorting import begins_of_runs
from fxframework.kit.realign import realigned
from fxframework.kit.salvage import Loss
from fxframework.model.capture import Capture, OpenRequest
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.strings import TextColumn
from fxframework.wire.blocks import BlockReader
from fxframework.wire.expressions import wrapped
from fxframework.wire.framing import frames_of_families
from fxframework.wire.many import Many, Reference
from fxframework.wire.records import references
from fxframework.wire.runs import Block, Run
from fxframework.wire.verbs.copies import SOUND, Copies, CopyReader, copy

NOBODY = (0, 0)
"""The thread written for one that was never registered, as in libtrace."""
WITH_TIME = {Event, *TIMED} - {LargeBlobWithMetadata}
"""Classes of records whose times tables have in nanoseconds."""
APART = -2
"""What is neither copied as it is nor lost as damage, in place of SOUND or a rule."""
NEVER = -1
"""The code of what was never registered."""
SOON = 1 << 32
"""Ticks between two events that follow one another in a file, at most."""
INDEXES = 1 << 16
"""More than an index has."""

# --- The verbs ------------------------------------------------------------------------------------


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write the sound records of a trace. Yield each loss (``registry.Writer``).

    An index that was never registered is registered before its first use, which is a loss of 0
    bytes. The output begins with the magic number.
    """
    assert isinstance(capture, TraceCapture)  # noqa: S101 (the host asks for no other)

    def write(aligned: Any) -> Iterator[Loss]:
        return _salvage(aligned, sink, options)

    alignment = trace_alignment(capture.source.data, big=capture.big_endian)
    yield from realigned(capture, alignment, rules.OFF_ALIGNMENT, write)


def trace_alignment(data: NDArray[np.uint8], *, big: bool) -> Alignment:
    """Return what finds records of a trace that are off the alignment."""

    def first_words(*classes: Any, some: int = -1) -> I64:
        """Return masks and values that tell records of some classes."""
        words = []
        for cls in classes:
            numbers = dict(zip(cls.layout.family.kinds, cls.layout.kind, strict=True))
            mask = sum(field.word_bits.mask for field in numbers)
            value = sum(field.word_bits.put(number) for field, number in numbers.items())
            if issubclass(cls, LargeRecord):
                mask |= cls.layout.header().reserved_mask
            words.append((wrapped(mask), wrapped(value), wrapped(some)))
        return np.array(words, np.int64)

    return Alignment(
        frames_of_families(data, FAMILIES, LEAST, resumption(big=big), big=big, room=1),
        opaque=first_words(LargeBlob, LargeBlobWithMetadata),
        # Provider events look like the ends of headers, objects like arguments.
        weak=first_words(ProviderEvent, UserspaceObject, KernelObject),
        timed=first_words(Event, some=Event.layout.by_name["_name_ref"].word_bits.mask),
        soon=SOON,
    )


def _salvage(capture: TraceCapture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """Write the sound records of an aligned trace. Yield each loss."""
    big_endian = bool(options.get("big_endian", False))
    perfetto_safe = bool(options.get("perfetto_safe", False))
    reader = SalvageReader(capture)
    if big_endian == capture.big_endian and not perfetto_safe:
        yield from copy(reader.copies(), sink.write)
        return
    # What is sound becomes a trace of its own first, whose records are then encoded one by one.
    places = [np.zeros(0, np.int64)]
    offsets = [np.zeros(0, np.int64)]
    with spool_file() as spool:
        spooled_bytes = 0
        for copies in reader.copies():
            yield from copy([copies], Sink(spool, name=sink.name).write)
            ends = spooled_bytes + np.cumsum(copies.sizes)
            places.append(ends - copies.sizes)
            offsets.append(copies.offsets)
            spooled_bytes += int(copies.sizes.sum())
        copied = Source.spooled(spool, name=capture.name)
    writer = TraceRewriter(sink, big_endian=big_endian, perfetto_safe=perfetto_safe)
    every_place = np.concatenate(places)
    every_offset = np.concatenate(offsets)
    with TraceCapture(copied, OpenRequest()) as sound:
        for record in cast("Iterator[TraceRecord]", sound.records()):
            try:
                writer.write(record)
            except WriteRefusedError as error:
                offset = int(every_offset[np.searchsorted(every_place, record.offset)])
                message = f"it cannot be written: {error.message}"
                yield Loss(offset, record.nbytes, record.record, message, error.code)
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
    image = _ImageSalvage(capture.to_recorded_ends(), sink)
    yield from image.run()


# --- Copies of sound records ----------------------------------------------------------------------


@attrs.frozen
class Missing:
    """An index that a record refers to, and that has to be registered before it."""

    table: Any
    index: int
    scope: int
    """Whose index it is."""
    lender: int
    """Of whose indexes it counts if that one has none: the scope of provider 0."""
    code: int
    """The code of what provider 0 registered at the index, or NEVER."""

    @property
    def key(self) -> tuple[Any, int, int]:
        """What is registered once."""
        return self.table, self.scope, self.index

    def described(self, field: str, outcome: str) -> tuple[str, str, str]:
        """Return what was lost, the message and the code of a ``Loss``."""
        what = "string"
        rule = rules.STRING_NOT_REGISTERED
        if self.table is THREADS:
            what = "thread"
            rule = rules.THREAD_NOT_REGISTERED
        return what, f"{field}: {what} {self.index} was never registered; {outcome}", rule.code

    @property
    def replacement(self) -> str:
        """What is done about it."""
        shown = "0, 0" if self.table is THREADS else string_marker(self.index)
        return f"registered as {shown}"


class SalvageReader(TraceBlocks, CopyReader):
    """Reads a trace into copies of its sound records, and of the registrations that they lack."""

    reports_begin: ClassVar[bool] = False  # type: ignore[misc]

    def __init__(self, capture: TraceCapture, *, completes: bool = True) -> None:
        file = capture.file()
        file.splits = True
        super().__init__(file, capture.request.limits, with_unknown=True)
        self.completes = completes
        """Whether what records lack is put in."""
        self.is_image = isinstance(capture, BufferCapture)
        self.lent: list[tuple[Any, I64, I64, I64]] = []
        """References of a run to what the speakers did not register: the table, rows, indexes, and
        the codes of what provider 0 registered."""
        self.put_in: dict[tuple[Any, int, int], int] = {}
        """The code of the last registration that was put in, by table, scope and index."""
        self.put_before: list[tuple[int, bytes]] = []
        """Places of records, and the registrations that are put in before each."""
        self.unused: list[int] = []
        """Offsets of stale bytes behind the records of an image, which are copied, too."""
        self.has_begun = self.is_image
        self.without_tables = RecordReader(big_endian=file.big_endian)
        """Reads records for the indexes that they refer to."""

    def copies(self) -> Iterator[Copies]:
        """Yield the records of each block."""
        for copies in super().copies():
            yield copies
            self.report(None)

    def completed(self, places: I64, sizes: I64) -> tuple[U8, I64, I64, I64]:
        """Return records with what is put in before some: data, starts, sizes and offsets."""
        if places.size and not self.has_begun:
            self.begin_with_magic(int(places[0]), int(sizes[0]))
        if not self.put_before:
            return self.source.data, places, sizes, self.file.offset_of(places)
        first = int(places[0])
        end = int(places[-1] + sizes[-1])
        records = self.source.data[first:end]
        new_records = [octets for _, octets in self.put_before]
        new_bytes = np.frombuffer(b"".join(new_records), np.uint8)
        data = np.concatenate([records, new_bytes])
        new_sizes = np.array([len(octets) for octets in new_records], np.int64)
        new_starts = records.size + np.cumsum(new_sizes) - new_sizes
        new_places = np.array([place for place, _ in self.put_before], np.int64)
        every_place = np.concatenate([new_places, places])
        # What is put in comes before the record at the same place.
        order = np.argsort(every_place, kind="stable")
        starts = np.concatenate([new_starts, places - first])[order]
        every_size = np.concatenate([new_sizes, sizes])[order]
        self.put_before = []
        return data, starts, every_size, self.file.offset_of(every_place[order])

    def begin_with_magic(self, place: int, nbytes: int) -> None:
        """Put the magic number before the first record, unless it is that."""
        self.has_begun = True
        magic = MAGIC_BYTES_BIG_ENDIAN if self.file.big_endian else MAGIC_BYTES
        if nbytes == WORD and self.source.read(place, nbytes) == magic:
            return
        magic_record = TraceInfo(info_type=0, magic=MAGIC)
        self.put_before.insert(0, (place, self.packed(magic_record)))
        message = "the magic number was missing; added"
        loss = Loss(place, 0, "metadata", message, rules.NO_MAGIC.code)
        self.losses.insert(0, (place, loss))

    def packed(self, record: TraceRecord) -> bytes:
        """Return the bytes of a record in the byte order of the file."""
        return record.pack(big_endian=self.file.big_endian)

    # --- Records

    def end_fields(self, many: Many) -> None:
        """Go over what records have behind their fields."""
        many.go_to(many.limit)

    def judge(self, many: Many) -> None:
        """Take all records as columns have them: what is odd in them is copied, too."""
        self.take_notes(many)

    def look_up(self, reference: Reference) -> None:
        """Find which references are to what the speakers did not register."""
        is_lent = self.find_codes(reference)
        if not (self.completes and is_lent.any()):
            return
        sound = reference.own.sound
        is_lent &= sound[reference.rows]
        ordinals = reference.ordinals[is_lent]
        indexes = reference.numbers[is_lent]
        codes = reference.codes[is_lent].astype(np.int64)
        self.lent.append((reference.table, ordinals, indexes, codes))

    def take_run(self, block: Block, run: Run) -> None:
        """Take the records of a run; what is not sound is lost."""
        del block
        numbers = np.full(run.rows, SOUND)
        """By row, the rule by which it is lost."""
        ticks_that_fit = self.ticks_that_fit(run)
        for plan, many in run.read_classes:
            own = many.own
            if not own.all_sound:
                numbers[own.ordinals[own.short & ~own.odd]] = rules.CONTENTS_OVERRUN
            if plan.cls in WITH_TIME:
                numbers[self.timeless(many, *ticks_that_fit)] = rules.TIME_OVERFLOW
        for _, every_row in run.stretches:
            rows = every_row[every_row < run.count]
            faults = self.frames.faults[rows]
            numbers[rows] = faults
            for row in rows[faults <= 0].tolist():
                place = int(run.places[row])
                record = self.file.special(place, place + int(run.sizes[row]))
                numbers[row] = rules.ODD_BYTES if record is None else self.special(place, record)
        for row, _ in run.objects:
            numbers[row] = APART  # ``add_object`` has taken it
        self.complete(run, numbers)
        rows = np.flatnonzero(numbers[: run.count] != APART)
        self.stretches.append((run.places[rows], run.sizes[rows], numbers[rows]))

    def add_object(self, ordinal: int, record: Any) -> bool:
        """Take a record that was read as an object."""
        place = self.walk.place
        number = SOUND
        if self.walk.is_special:
            number = self.special(place, record)
        elif isinstance(record, Damaged):
            number = int(rules.RULES[record.code])
        elif isinstance(record, Padding):
            number = int(rules.ZERO_WORDS)
        elif not self.complete_object(place, record):
            number = APART
        if number != APART:
            self.as_objects.append((place, self.walk.at - place, number))
        return BlockReader.add_object(self, ordinal, record)

    # --- What is left out

    def loss(self, offset: int, nbytes: int, number: int) -> Loss:
        """Return what is said of damage, of zero words, or of a record at an impossible time."""
        what = "damaged"
        message = f"{nbytes} bytes are not a record; left out"
        if number == rules.ZERO_WORDS:
            what = "padding"
            message = f"{nbytes} bytes are zero words between records; left out"
        elif number == rules.TIME_OVERFLOW:
            what = class_of(int(self.file.words[offset // WORD]) & U64_MAX).record
            message = f"{nbytes} bytes at a time that nanoseconds cannot hold; left out"
        code = rules.RULES.numbered(number).code
        return Loss(self.offset_at(offset), nbytes, what, message, code)

    def offset_at(self, place: int) -> int:
        """Return the offset in the file of a place in its bytes, which may be in another order."""
        if not self.file.is_moved:
            return place
        (offset,) = self.file.offset_of(np.array([place]))
        return int(offset)

    def special(self, place: int, record: Any) -> int:
        """Leave out metadata of an image, or damage; keep what an image has between records.

        Return the rule by which it is lost, SOUND, or APART if it is not copied.
        """
        offset = self.offset_at(place)
        if record.record == "metadata":
            message = "metadata has no place in a trace buffer; left out"
            code = rules.METADATA_IN_BUFFER.code
            loss = Loss(offset, record.nbytes, "metadata", message, code)
            self.losses.append((place, loss))
            return APART
        if not isinstance(record, Damaged):
            return APART  # the header and zero words are written again
        if record.code != rules.STALE_BYTES.code:
            return int(rules.RULES[record.code])
        self.unused.append(offset)
        return SOUND

    def timeless(self, many: Many, first_ticks: Any, last_ticks: Any) -> I64:
        """Return the rows of records with times that do not fit 63 bits of nanoseconds."""
        fields = many.layout.by_name
        ordinals = many.own.ordinals
        ticks = many.full(many.known[fields["timestamp"]]).view(np.uint64)
        is_outside = (ticks < first_ticks[ordinals]) | (ticks > last_ticks[ordinals])
        if not is_outside.any():
            return ordinals[:0]
        is_outside &= many.own.sound
        if many.layout.cls is Event:
            is_outside &= many.known[fields["event"]] <= max(EventType)
        rows: I64 = ordinals[is_outside]
        return rows

    def ticks_that_fit(self, run: Run) -> tuple[Any, Any]:
        """Return by row of a run the first and the last tick that nanoseconds can hold."""
        bounds = []
        for turn in self.turns:
            first = max(turn.clock.ticks(NS_MIN), 0)
            last = turn.clock.ticks(NS_MAX + 1) - 1
            bounds.append((first, min(last, U64_MAX)))
        by_row = self.by_row(run, np.array(bounds, np.uint64))
        first_ticks, last_ticks = np.broadcast_to(by_row, (run.rows, 2)).T
        return first_ticks, last_ticks

    # --- What is put in

    def complete(self, run: Run, numbers: I64) -> None:
        """Put in the registrations that sound records lack; those without room become APART."""
        if not self.lent:
            return
        for row, missing in self.missing_by_row(run, numbers == SOUND).items():
            lacking = [reference for reference in missing if self.is_lacking(reference)]
            if lacking:
                place = int(run.places[row])
                header = int(self.file.words[place // WORD]) & U64_MAX
                end = place + int(run.sizes[row])
                record, _ = self.without_tables.read(self.file.view, place, end, header)
                if not self.register(place, record, lacking):
                    numbers[row] = APART

    def missing_by_row(self, run: Run, is_copied: Bools) -> dict[int, list[Missing]]:
        """Return what may have to be registered before records, in the order of rows.

        That is what each speaker refers to first, and what changes for it since.
        """
        tables = [table for table, *_ in self.lent]
        counts = [rows.size for _, rows, _, _ in self.lent]
        _, *columns = zip(*self.lent, strict=True)
        rows, indexes, codes = map(np.concatenate, columns)
        is_thread = np.repeat([table is THREADS for table in tables], counts)
        self.lent = []
        in_copies = np.flatnonzero((rows < run.count) & is_copied[rows])
        if not (self.put_in or (codes[in_copies] < 0).any()):
            return {}
        scope, lender = self.speakers_at(rows)
        keys = 2 * (scope * INDEXES + indexes) + is_thread
        by_key = np.lexsort((rows[in_copies], keys[in_copies]))
        order = in_copies[by_key]
        is_new = begins_of_runs(keys[order]) | begins_of_runs(codes[order])
        is_new |= begins_of_runs(lender[order])
        if self.is_image:  # a record for which there is no room registers nothing
            is_new[:] = True
        changes = order[is_new]
        changes = changes[np.argsort(rows[changes], kind="stable")]
        missing: dict[int, list[Missing]] = {}
        for change in changes.tolist():
            table = THREADS if is_thread[change] else STRINGS
            numbers = (column[change] for column in (indexes, scope, lender, codes))
            reference = Missing(table, *map(int, numbers))
            missing.setdefault(int(rows[change]), []).append(reference)
        return missing

    def speakers_at(self, rows: I64) -> tuple[I64, I64]:
        """Return the scopes of who speaks in some rows, and of provider 0."""
        registrations = self.registrations[STRINGS]
        columns = (registrations.scopes, registrations.lenders)
        scope, lender = (
            column[rows] if isinstance(column, np.ndarray) else np.full(rows.size, column)
            for column in columns
        )
        return scope, lender

    def complete_object(self, place: int, record: Any) -> bool:
        """Put in what a record lacks that is read as an object; return whether it is copied."""
        row = self.speakers.row
        lacking: dict[tuple[Any, int, int], Missing] = {}
        for _, index, table in _references(record):
            registrations = self.registrations[table]
            number = np.array([index])
            if registrations.find_own(number, row)[0] < 0:
                code = registrations.find_lent(number, row)
                numbers = (column[0] for column in (*self.speakers_at(row), code))
                reference = Missing(table, index, *map(int, numbers))
                if self.is_lacking(reference):
                    lacking[reference.key] = reference
        if not (self.completes and lacking):
            return True
        return self.register(place, record, list(lacking.values()))

    def is_lacking(self, missing: Missing) -> bool:
        """Return whether an index has to be registered.

        What provider 0 registers, or has put in, counts for all others, until one of them has it
        put in: then what provider 0 registers later is hidden from it, and has to be put in again.
        """
        code = self.put_in.get(missing.key)
        if code is not None:
            return missing.code != code
        is_lent = (missing.table, missing.lender, missing.index) in self.put_in
        return missing.code == NEVER and not is_lent

    def register(self, place: int, record: Any, lacking: list[Missing]) -> bool:
        """Put in registrations before a record at a place; return whether the record is copied."""
        field_of: dict[tuple[Any, int], str] = {}
        for field, index, table in _references(record):
            field_of.setdefault((table, index), field)
        fields = list(field_of)
        lacking.sort(key=lambda missing: fields.index((missing.table, missing.index)))
        new_records = [self.packed(self.registration(missing)) for missing in lacking]
        offset = self.offset_at(place)
        if not self.has_room(offset, sum(map(len, new_records)), record.nbytes):
            first = lacking[0]
            field = field_of[first.table, first.index]
            _, message, code = first.described(field, "its buffer has no room; left out")
            loss = Loss(offset, record.nbytes, record.record, message, code)
            self.losses.append((place, loss))
            return False
        self.put_before += [(place, octets) for octets in new_records]
        for missing in lacking:
            self.put_in[missing.key] = missing.code
            if missing.code == NEVER:
                field = field_of[missing.table, missing.index]
                loss = Loss(offset, 0, *missing.described(field, missing.replacement))
                self.losses.append((place, loss))
        return True

    def registration(self, missing: Missing) -> StringRecord | ThreadRecord:
        """Return the record to put in: what provider 0 registered, a marker, or thread 0, 0."""
        index = missing.index
        octets = None if missing.code == NEVER else self.strings.bytes_of(missing.code)
        if missing.table is THREADS:
            pid, tid = NOBODY if octets is None else koids_of(octets, big=self.file.big_endian)
            return ThreadRecord(index=index, pid=pid, tid=tid)
        if octets is None:
            return StringRecord(index=index, value=string_marker(index))
        return StringRecord(index=index, value=octets.decode(errors="surrogateescape"))

    def has_room(self, offset: int, need: int, nbytes: int) -> bool:  # noqa: ARG002 (for images)
        """Return whether there is room for what is put in before a record."""
        return True


def _references(record: TraceRecord) -> Iterator[tuple[str, int, Any]]:
    """Yield the references of a record: field, index, and the table that it is of."""
    refs = record.refs or {}
    for field in references(record.layout):
        if field.name in refs:
            table = THREADS if isinstance(field, Thread) else STRINGS
            yield field.name, refs[field.name], table
    arguments: tuple[Argument, ...] = getattr(record, "args", ())
    for number, argument in enumerate(arguments):
        for name, index in (argument.refs or {}).items():
            yield f"{name} of argument {number}", index, STRINGS


# --- Images ---------------------------------------------------------------------------------------


class _ImageReader(SalvageReader):
    """Reads an image; its buffers have room for some registrations."""

    def __init__(self, capture: BufferCapture, writer: BufferWriter) -> None:
        super().__init__(capture)
        self.capture = capture
        self.writer = writer
        self.room: dict[str, int] = {}
        """Bytes of each buffer that the sound records leave, once they were counted."""

    def has_room(self, offset: int, need: int, nbytes: int) -> bool:
        """Return whether the buffer of a record has room; if not, the record leaves some."""
        if not self.room:
            self.room = self.room_left()
        buffer = self.writer.buffer_at(offset)
        if need > self.room[buffer.name]:
            self.room[buffer.name] += nbytes
            return False
        self.room[buffer.name] -= need
        buffer.changed = True
        return True

    def room_left(self) -> dict[str, int]:
        """Return the bytes of each buffer that its sound records leave."""
        room = {buffer.name: buffer.size for buffer in self.writer.buffers}
        reader = SalvageReader(self.capture, completes=False)
        for copies in reader.copies():
            for buffer in self.writer.buffers:
                end = buffer.start + buffer.size
                is_inside = (copies.offsets >= buffer.start) & (copies.offsets < end)
                is_inside &= ~np.isin(copies.offsets, reader.unused)
                used = copies.sizes[is_inside].sum()
                room[buffer.name] -= int(used)
        return room


class _ImageSalvage:
    """Writes the sound records of an image, each into the buffer that it was in."""

    def __init__(self, capture: BufferCapture, sink: Sink) -> None:
        self.capture = capture
        self.writer = BufferWriter(sink)
        self.reader = _ImageReader(capture, self.writer)

    def run(self) -> Iterator[Loss]:
        """Write the image. Yield what is lost."""
        if self.capture.header is not None:
            yield from self.write_header(self.capture.header)
        for copies in self.reader.copies():
            yield from copies.losses
            self.write(copies)
        self.writer.close()

    def write(self, copies: Copies) -> None:
        """Write records, and what was between them, in the order of reading."""
        records = TextColumn.gather(copies.data, copies.starts, copies.sizes)
        is_unused = np.isin(copies.offsets, self.reader.unused)
        self.reader.unused = []
        self.writer.put_at(copies.offsets, records.data.data, records.offsets[1:], is_unused)

    def write_header(self, header: BufferHeader) -> Iterator[Loss]:
        """Write the header as it should be. Yield what was wrong with it."""
        image = self.capture.image
        size = self.capture.source.size
        missing = header.total_size - size
        if missing > 0:
            message = f"{missing} bytes of the image are missing; written as unused space"
            yield Loss(size, 0, header.record, message, rules.IMAGE_TRUNCATED.code)
        for fault in image.faults:
            message = f"{fault.message}; mended by what else is known of the image"
            yield Loss(fault.offset, 0, header.record, message, rules.BUFFER_HEADER.code)
        if header.raw is not None:
            message = "reserved bits were set; cleared"
            yield Loss(0, 0, header.record, message, rules.RESERVED_HEADER_BITS.code)
        found = Diagnostics(rules.RULES)
        self.capture.report_regions(found)
        for finding in found:
            if finding.code == rules.RECORDS_BEHIND_DATA_END.code:
                yield Loss(0, 0, header.record, f"{finding.message}; corrected", finding.code)
        self.writer.write(header.edited())
