"""Decodes and encodes records one at a time, against the tables so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tests.reference.trace import layout as wire
from tests.reference.trace.cursor import Cursor, OverrunError, Tables
from tests.reference.trace.framing import Framer, frame_value, frames
from tests.reference.trace.records import (
    Damaged,
    Padding,
    TraceRecord,
    class_of,
    from_json,
)

from fx_trace import rules
from fxframework.errors import Rule, WriteRefusedError, refusal
from fxframework.io.limits import Limits
from fxframework.io.words import WORD
from fxframework.model.diagnostics import Diagnostics, Found

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview


class _Core:
    """Decodes one record at a time against the tables so far."""

    def __init__(self, *, big_endian: bool, tables: Tables | None = None) -> None:
        self.big_endian = big_endian
        self.tables = tables or Tables()
        self.cursor = Cursor(self.tables, big_endian=big_endian)

    def read(self, view: memoryview, at: int, end: int, header: int) -> TraceRecord:
        """Return the sound record at bytes ``at`` to ``end``.

        Damaged where its contents overrun it.

        What was noticed is in ``cursor.findings``; the tables stay as they are.
        """
        c = self.cursor
        c.begin(view, at, end, header)
        cls = class_of(header)
        values: dict[str, Any] = {}
        if header & cls._reserved:
            c.find_once(reserved=True)
        try:
            for read in cls._readers:
                read(c, values)
        except OverrunError as error:
            rule = rules.CONTENTS_OVERRUN
            detail = rules.overrun_detail((error.end - at) // WORD, (end - at) // WORD)
            c.findings = [Found(rule, at, detail)]
            return Damaged(offset=at, nbytes=end - at, code=rule.code, raw=view[at:end])
        if c.reserved is not None:
            c.findings.append(Found(rules.RESERVED_BITS, c.reserved))
        if c.unpadded is not None:
            c.findings.append(Found(rules.PADDING_NOT_ZERO, c.unpadded))
        if c.at < end:
            c.find(rules.WORDS_LEFT_OVER, (end - c.at) // WORD)
        record = cls(offset=at, nbytes=end - at, refs=c.refs, **values)
        data = view[at:end].tobytes()
        if not self._gives(record, data):
            record.raw = data
        return record

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
        self.index = 0
        self.big_endian = decoder.big_endian
        self.diagnostics = decoder.diagnostics
        self._core = _Core(big_endian=decoder.big_endian, tables=tables)
        self.tables = self._core.tables
        self.clean = True
        """Whether nothing was found about the record read last."""

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
        view = self.framer.view
        cursor = self._core.cursor
        record: TraceRecord
        _, end, header, rule = self.framer.frame(at)
        self.clean = True
        if not index and header != wire.MAGIC_WORD:
            self._report([Found(rules.NO_MAGIC, at)], index)
        if rule is None or rule == rules.UNKNOWN_RECORD:
            record = self._core.read(view, at, end, header)
            cursor.spot = at
            record.apply(self.tables, cursor.find)
            ticks = getattr(record, "timestamp", None)
            if ticks is not None:
                record.ns = self.tables.current.clock.ns(ticks)
            if cursor.findings:
                self._report(cursor.findings, index)
        elif rule == rules.ZERO_WORDS:
            record = Padding(offset=at, nbytes=end - at)
        else:
            record = Damaged(offset=at, nbytes=end - at, code=rule.code, raw=view[at:end])
        if rule is not None:
            self._report([Found(rule, at, frame_value(rule, header, at, end))], index)
        return record

    def _report(self, found: list[Found], index: int) -> None:
        self.clean = False
        if self.diagnostics is not None:
            self.diagnostics.report(found, index)


class RecordEncoder:
    """Writes records, or their JSON, as the bytes of a trace.

    It keeps tables of strings and threads per provider as a reader of those bytes would. An
    index in ``refs`` counts where it now gives the value that the record shows; else the value
    goes inline. ``raw`` counts where it now decodes to the fields that the record has. So what was
    not edited comes out as it was, and an edit takes effect.
    """

    def __init__(self, *, big_endian: bool = False, tables: Tables | None = None) -> None:
        self._core = _Core(big_endian=big_endian, tables=tables)

    def encode(self, record: TraceRecord | Mapping[str, Any]) -> bytes:
        """Return the record's bytes. Raises WriteRefusedError, nothing changed."""
        if isinstance(record, Mapping):
            record = from_json(record)
        tables = self._core.tables
        if isinstance(record, Padding):
            return _zeros(record.nbytes)
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

    def close(self) -> bytes:
        """Nothing: every record's bytes are given at once."""
        return b""

    def _decoded(self, data: bytes) -> TraceRecord | None:
        """Return the record that these bytes are.

        None where they are not exactly one sound record.
        """
        view = memoryview(data)
        stretches = list(frames(view, big_endian=self._core.big_endian))
        if len(stretches) != 1 or stretches[0][3] not in (None, rules.UNKNOWN_RECORD):
            return None
        return self._core.read(view, 0, len(data), stretches[0][2])


def _unheard(rule: Rule, value: object = None) -> None:
    """Where findings go that the reader of the written bytes will make again."""


def _zeros(nbytes: int) -> bytes:
    if nbytes < 0 or nbytes % WORD:
        raise refusal(
            rules.OUT_OF_RANGE, f"padding: nbytes is {nbytes}, not a number of 8-byte words"
        )
    try:
        return bytes(nbytes)
    except (MemoryError, OverflowError):
        raise refusal(
            rules.OUT_OF_RANGE, f"padding: {nbytes} bytes are more than memory holds"
        ) from None
