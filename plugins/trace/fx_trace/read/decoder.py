"""Decodes and encodes records one at a time, against the tables so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.indexed import holds
from fx_trace.read.cursor import Tables, TraceCursor
from fx_trace.read.framing import RecordBounds
from fx_trace.records import (
    Damaged,
    Padding,
    StringRecord,
    ThreadRecord,
    TraceRecord,
    Unknown,
    class_of,
    from_json,
    layout_of,
)
from fxframework.errors import Rule, WriteRefusedError
from fxframework.io.limits import Limits
from fxframework.io.words import WORD, view_of
from fxframework.kit.lossless import Encoder, padding_of
from fxframework.model.diagnostics import Diagnostics, Found
from fxframework.wire.cursor import ShortError
from fxframework.wire.packing import Packer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview
    I64 = NDArray[np.int64]


Frame = tuple[int, int, int, Rule | None]
"""First byte, byte after the last, header word, and the rule of the finding about it, if any."""


class Framer:
    """Tells what stretch of a file begins at a place: a record, zero words, or damage."""

    def __init__(self, data: Data, *, big_endian: bool, max_record: int) -> None:
        import numpy as np

        self.view = view_of(data)
        whole = np.asarray(self.view)[: len(self.view) // WORD * WORD]
        words = whole.view(">i8" if big_endian else "<i8").astype(np.int64, copy=False)
        words = np.require(words, requirements="A")
        self._words, self._count = words.view(np.uint64).data, words.size
        self.bounds = RecordBounds(words.data, max_record)
        self.max_record = max_record
        self.value: object = None
        """What a finding about the last stretch shows."""

    def frame(self, at: int) -> Frame:
        """Return the stretch that begins at byte ``at``.

        The rule is None for a sound record, UNKNOWN_RECORD for one of an unknown type, ZERO_WORDS
        for a run of zero words; all others are damage.
        """
        word = at // WORD
        if word >= self._count:
            end = len(self.view)
            self.value = rules.odd_bytes_detail(end)
            return at, end, 0, rules.ODD_BYTES
        bounds, header = self.bounds, self._words[word]
        fault = bounds.fault(word)
        if not fault:
            return at, WORD * bounds.end, header, None
        self.value = bounds.value
        return at, WORD * bounds.end, header, rules.RULES.numbered(fault)


def frames(data: Data, *, big_endian: bool = False, max_record: int = 0) -> Iterator[Frame]:
    """Yield the stretches that a file falls into, without gaps. ``max_record`` is in bytes."""
    framer = Framer(data, big_endian=big_endian, max_record=max_record)
    at = 0
    while at < len(framer.view):
        frame = framer.frame(at)
        yield frame
        at = frame[1]


class RecordReader:
    """Decodes one record at a time against the tables so far."""

    def __init__(self, *, big_endian: bool, tables: Tables | None = None) -> None:
        self.big_endian = big_endian
        self.tables = tables or Tables()
        self.tables.big = big_endian

    def read(
        self, view: memoryview, at: int, end: int, header: int
    ) -> tuple[TraceRecord, list[Found]]:
        """Return the sound record at bytes ``at`` to ``end``, and what was found.

        Damaged where its contents overrun it. The tables stay as they are.
        """
        cls: Any = class_of(header)
        c = TraceCursor(view, at, end, self.tables)
        try:
            values = cls.layout.read(c)
        except ShortError as problem:
            words = (problem.needed - at + WORD - 1) // WORD, (end - at) // WORD
            rule = rules.CONTENTS_OVERRUN
            lost = Damaged.at(at, view[at:end], rule.code)
            return lost, [Found(rule, at, rules.overrun_detail(*words))]
        values["refs"] = c.refs or None
        record: TraceRecord = cls.layout.made(values, at, end - at)
        noted = c.found()
        if record.opaque:
            noted = [] if cls is Unknown else [Found(rules.UNKNOWN_KIND, at)]
        elif c.at < end and not record.open_ended:
            noted.append(Found(rules.WORDS_LEFT_OVER, at, (end - c.at) // WORD))
        if c.differs or c.at < end or record.opaque or not cls.layout.is_exact:
            data = view[at:end].tobytes()
            if not self._gives(record, data):
                record.raw = data
        return record, noted

    def stretch(
        self, view: memoryview, frame: Frame, value: object, *, applies: bool = True
    ) -> tuple[TraceRecord, list[Found]]:
        """Return what a stretch is as a record, and what was found, ``value`` about the stretch.

        What the record says about later ones, the tables take in, if it ``applies``.
        """
        at, end, header, rule = frame
        found: list[Found] = []
        record: TraceRecord
        if rule is None or rule == rules.UNKNOWN_RECORD:
            record, found = self.read(view, at, end, header)
            if applies:
                record.apply(
                    self.tables, lambda rule, value=None: found.append(Found(rule, at, value))
                )
            found = [_with_kind(one, header) for one in found]
        elif rule == rules.ZERO_WORDS:
            record = Padding.at(at, end - at)
        else:
            record = Damaged.at(at, view[at:end], rule.code)
        if rule is not None:
            found.append(Found(rule, at, value))
        return record, found

    def _gives(self, record: TraceRecord, data: bytes) -> bool:
        """Return whether fields and refs alone encode to these bytes."""
        try:
            return record.pack(big_endian=self.big_endian) == data
        except WriteRefusedError:
            return False


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
        self.damage: I64 | None = None
        """Records that are taken for damage, as in ``RecordBounds``; None for none."""

    def records(self, data: Data) -> Iterator[TraceRecord]:
        """Return every record, padding and damage included.

        Their ``nbytes`` add up to ``len(data)``.

        Each is made when it is asked for; the tables of strings and threads are what is kept.
        """
        return self.begin(data).records()

    def begin(self, data: Data, tables: Tables | None = None) -> Walk:
        """Return a walk from the beginning of ``data``, for callers that read some records.

        ``tables`` resolve references if the caller knows what the records left out registered.
        """
        return Walk(self, data, tables)


class Walk:
    """A walk through a trace: the tables so far, and the number of the record that comes next."""

    def __init__(self, decoder: RecordDecoder, data: Data, tables: Tables | None = None) -> None:
        self.framer = Framer(
            data, big_endian=decoder.big_endian, max_record=decoder.limits.max_record
        )
        if decoder.damage is not None:
            self.framer.bounds.damage = decoder.damage.data
        self.index = 0
        self.big_endian = decoder.big_endian
        self.diagnostics = decoder.diagnostics
        self._core = RecordReader(big_endian=decoder.big_endian, tables=tables)
        self.tables = self._core.tables

    def spans(self) -> Iterator[tuple[int, int, bool]]:
        """What is read, in this order: first byte, byte after the last, whether all is records."""
        yield 0, len(self.framer.view), True

    def records(self) -> Iterator[TraceRecord]:
        """Yield the records of all spans."""
        for at, end, _ in self.spans():
            while at < end:
                record = self.record(at)
                yield record
                at += record.nbytes

    def record(self, at: int) -> TraceRecord:
        """Return the record at byte ``at``, where the one before it ended."""
        index = self.index
        self.index = index + 1
        frame = self.framer.frame(at)
        record, found = self._core.stretch(self.framer.view, frame, self.framer.value)
        ticks = getattr(record, "timestamp", None)
        if ticks is not None:
            record.ns = self.tables.current.clock.ns(ticks)
        if not index and frame[2] != wire.MAGIC_WORD:
            found = [Found(rules.NO_MAGIC, at), *found]
        if found and self.diagnostics is not None:
            self.diagnostics.report(found, index)
        return record


def _with_kind(found: Found, header: int) -> Found:
    """Return a finding, if it is about an undefined kind with the field that has it."""
    if found.rule is not rules.UNKNOWN_KIND:
        return found
    return found._replace(value=wire.undefined_kind(header))


class RecordEncoder(Encoder):
    """Writes records, or their JSON, as the bytes of a trace.

    It keeps tables of strings and threads per provider as a reader of those bytes would. An
    index in ``refs`` counts where it now gives the value that the record shows; else the value
    goes inline. ``raw`` counts where it now decodes to the fields that the record has. So what was
    not edited comes out as it was, and an edit takes effect.
    """

    def __init__(self, *, big_endian: bool = False, tables: Tables | None = None) -> None:
        self._core = RecordReader(big_endian=big_endian, tables=tables)

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
        view = memoryview(data)
        stretches = list(frames(view, big_endian=self._core.big_endian))
        if len(stretches) != 1 or stretches[0][3] not in (None, rules.UNKNOWN_RECORD):
            return None
        return self._core.read(view, 0, len(data), stretches[0][2])[0]


def _unheard(rule: Rule, value: object = None) -> None:
    """Where findings go that the reader of the written bytes will make again."""
