"""Decodes and encodes records one at a time, against the tables so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fx_trace import rules
from fx_trace.indexed import holds
from fx_trace.read.cursor import Tables, TraceCursor
from fx_trace.read.frames import LEAST, SPECIAL, TraceFile, TraceFrames
from fx_trace.records import (
    FIRST_WORD,
    TYPE,
    Argument,
    Damaged,
    Padding,
    StringRecord,
    ThreadRecord,
    TraceRecord,
    Unknown,
    claimed_bytes,
    class_of,
    from_json,
    layout_of,
    undefined_kind,
)
from fxframework.errors import Rule, WriteRefusedError
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.io.words import U64_MAX, WORD, view_of
from fxframework.kit.lossless import Encoder, padding_of
from fxframework.model.diagnostics import Diagnostics, Found
from fxframework.wire.cursor import ShortError
from fxframework.wire.framing import BAD_SIZE
from fxframework.wire.packing import Packer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview


class RecordReader:
    """Decodes one record at a time against the tables so far."""

    def __init__(self, *, big_endian: bool) -> None:
        self.big_endian = big_endian
        self.tables = Tables()
        self.tables.big = big_endian

    def read(
        self, view: memoryview, begin: int, end: int, header: int
    ) -> tuple[TraceRecord, list[Found]]:
        """Return the sound record at bytes ``begin`` to ``end``, and what was found.

        Damaged where its contents overrun it. The tables stay as they are.
        """
        cls: Any = class_of(header)
        cursor = TraceCursor(view, begin, end, self.tables)
        try:
            values = cls.layout.read(cursor)
        except ShortError as problem:
            needed_words = (problem.needed - begin + WORD - 1) // WORD
            detail = rules.overrun_detail(needed_words, (end - begin) // WORD)
            rule = rules.CONTENTS_OVERRUN
            damage = Damaged.at(begin, view[begin:end], rule.code)
            return damage, [Found(rule, begin, detail)]
        values["refs"] = cursor.refs or None
        record: TraceRecord = cls.layout.made(values, begin, end - begin)
        findings = cursor.found()
        if cls is Unknown:
            findings = []
        elif record.opaque:
            findings = [Found(rules.UNKNOWN_KIND, begin)]
        elif cursor.at < end and not record.open_ended:
            words_left = (end - cursor.at) // WORD
            findings.append(Found(rules.WORDS_LEFT_OVER, begin, words_left))
        # Where fields may not say all bytes, the record is written, to see whether they do.
        if cursor.differs or cursor.at < end or record.opaque or not cls.layout.is_exact:
            data = view[begin:end].tobytes()
            if not self._gives(record, data):
                record.raw = data
        return record, findings

    def _gives(self, record: TraceRecord, data: bytes) -> bool:
        """Return whether fields and refs alone encode to these bytes."""
        try:
            return record.pack(big_endian=self.big_endian) == data
        except WriteRefusedError:
            return False


class Records:
    """Reads the records of a file one after another, as objects.

    ``at`` is the place of the next record, ``place`` that of the last one, in the bytes of the file
    in reading order. ``applies`` says whether what a record says about later ones is taken in.
    """

    def __init__(self, file: TraceFile, frames: TraceFrames | None = None) -> None:
        self.file = file
        self.frames = frames or TraceFrames(file)
        self.reader = RecordReader(big_endian=file.big_endian)
        self.at = 0
        self.place = 0
        self.is_special = False
        """Whether the last one is what an image has between records, or metadata in it."""
        self.applies = True

    def read(self) -> tuple[TraceRecord, list[Found]]:
        """Return the next record, and what was found; go behind it."""
        frames = self.frames
        row = frames.row_of(self.at)
        begin = int(frames.begin[row])
        end = begin + int(frames.size[row])
        fault = int(frames.fault[row])
        self.place = begin
        self.at = end
        self.is_special = False
        is_sound = fault == 0 and frames.entry[row] != BAD_SIZE
        if is_sound:
            return self.sound(begin, end)
        if fault in (SPECIAL, 0):
            special = self.file.special(begin, end)
            if special is not None:
                self.is_special = True
                return special, []
        if fault == SPECIAL:
            odd_bytes = Damaged.at(begin, self.file.view[begin:end], rules.ODD_BYTES.code)
            return odd_bytes, [Found(rules.ODD_BYTES, begin, rules.odd_bytes_detail(end))]
        value = int(frames.value[row])
        if fault == rules.UNKNOWN_RECORD:
            return self.sound(begin, end)
        if fault == rules.ZERO_WORDS:
            finding = Found(rules.ZERO_WORDS, begin, value)
            return Padding.at(begin, end - begin), [finding]
        rule = rules.RULES.numbered(fault)
        damage = Damaged.at(begin, self.file.view[begin:end], rule.code)
        return damage, [Found(rule, begin, value)]

    def sound(self, begin: int, end: int) -> tuple[TraceRecord, list[Found]]:
        """Return the record of a sound size in some bytes, and what was found."""
        header = int(self.file.words[begin // WORD]) & U64_MAX
        record, found = self.reader.read(self.file.view, begin, end, header)
        if self.applies:
            record.apply(
                self.reader.tables,
                lambda rule, value=None: found.append(Found(rule, begin, value)),
            )
        if found:
            found = [_with_kind(finding, header) for finding in found]
        if isinstance(record, Unknown):
            found.append(Found(rules.UNKNOWN_RECORD, begin, record.type))
        return record, found

    def reported(self, diagnostics: Diagnostics | None) -> Iterator[TraceRecord]:
        """Yield every record, with its time; report what was found.

        Offsets are those of the file.
        """
        number = 0
        while self.at < self.file.source.size:
            record, found = self.read()
            ticks = getattr(record, "timestamp", None)
            if ticks is not None:
                record.ns = self.reader.tables.current.clock.ns(ticks)
            if number == 0 and self.file.begins_wrong:
                found = [Found(rules.NO_MAGIC, 0), *found]
            if self.file.is_moved:
                found = self.moved(record, found)
            if found and diagnostics is not None:
                diagnostics.report(found, number)
            number += 1
            yield record

    def moved(self, record: TraceRecord, found: list[Found]) -> list[Found]:
        """Give a record, its arguments and its findings their offsets in the file."""
        offset = int(self.file.offset_of(np.array([self.place]))[0])
        distance = offset - self.place
        record.offset = offset
        arguments: tuple[Argument, ...] = getattr(record, "args", ())
        for argument in arguments:
            argument.offset += distance
        return [finding._replace(offset=finding.offset + distance) for finding in found]


class RecordDecoder:
    """Reads a trace record by record, in file order.

    ``big_endian`` is the byte order (``format.is_big_endian`` tells from the first bytes);
    findings go to ``diagnostics``; of ``limits``, ``max_record`` is heeded. Nothing that the bytes
    say raises an exception, but for the StrictError of strict diagnostics.
    """

    def __init__(
        self,
        *,
        big_endian: bool = False,
        diagnostics: Diagnostics | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.big_endian = big_endian
        self.diagnostics = diagnostics
        self.limits = limits or Limits()

    def records(self, data: Data) -> Iterator[TraceRecord]:
        """Return every record, padding and damage included.

        Their ``nbytes`` add up to ``len(data)``.

        Each is made when it is asked for; the tables of strings and threads are what is kept.
        """
        source = Source(np.asarray(view_of(data)), name="bytes")
        file = TraceFile.archive(source, big_endian=self.big_endian, limits=self.limits)
        return Records(file).reported(self.diagnostics)


def _with_kind(found: Found, header: int) -> Found:
    """Return a finding, if it is about an undefined kind with the field that has it."""
    if found.rule is not rules.UNKNOWN_KIND:
        return found
    return found._replace(value=undefined_kind(header))


class RecordEncoder(Encoder):
    """Writes records, or their JSON, as the bytes of a trace.

    It keeps tables of strings and threads per provider as a reader of those bytes would. An
    index in ``refs`` counts where it now gives the value that the record shows; else the value
    goes inline. ``raw`` counts where it now decodes to the fields that the record has. So what was
    not edited comes out as it was, and an edit takes effect.
    """

    def __init__(self, *, big_endian: bool = False) -> None:
        self._core = RecordReader(big_endian=big_endian)

    def encode(self, record: TraceRecord | Mapping[str, Any]) -> bytes:
        """Return the record's bytes. Raises WriteRefusedError, nothing changed."""
        if isinstance(record, Mapping):
            record = self.parsed(record)
        tables = self._core.tables
        if isinstance(record, Padding):
            return padding_of(record.nbytes, rules.OUT_OF_RANGE, WORD)
        if record.raw is not None:
            data = bytes(record.raw)
            if isinstance(record, Damaged):
                return data
            if self._decoded(data) == record:
                record.apply(tables, _unheard)
                return data
        record = record.with_valid_refs(tables)
        data = record.pack(big_endian=self._core.big_endian)
        record.apply(tables, _unheard)
        return data

    def parsed(self, given: Mapping[str, Any]) -> TraceRecord:
        """Return the record of a JSON object. Raises WriteRefusedError."""
        return from_json(given)

    def packer(self) -> Packer:
        """Return what packs many records at a time."""
        tables = self._core.tables
        declaring = {StringRecord.record, ThreadRecord.record, "metadata"}

        def resolve(field: Any, shown: Any, index: int | None) -> int:
            if index is None or not holds(field, {field.name: shown}, index, tables):
                raise LookupError
            return index

        return Packer(layout_of, tables, selectors=("kind",), in_turn=declaring, resolve=resolve)

    def _decoded(self, data: bytes) -> TraceRecord | None:
        """Return the record that these bytes are.

        None where they are not exactly one sound record.
        """
        if not is_one_record(data, big_endian=self._core.big_endian):
            return None
        header = FIRST_WORD.get(data, 0, self._core.big_endian)
        return self._core.read(memoryview(data), 0, len(data), header)[0]


def is_one_record(data: bytes, *, big_endian: bool) -> bool:
    """Return whether bytes are one record by its header, of a sound size."""
    least = LEAST.get(TYPE.get(data, 0, big_endian), WORD)
    if not any(data[:WORD]):
        return False
    return claimed_bytes(data, big_endian=big_endian) == len(data) >= least


def _unheard(rule: Rule, value: object = None) -> None:
    """Where findings go that the reader of the written bytes will make again."""
