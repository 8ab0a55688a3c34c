"""The decoder: records of a file as objects, one at a time.

Fields are those of `format.py`. What begins where, the frames say (`frames.py`), and what is wrong,
the pass that makes the tables (`blocks.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from fx_log import format as wire
from fx_log import rules
from fx_log.format import Attribution, LegacyPacket, LogRecord, RingHeader, StreamHeader
from fx_log.read.blocks import BlockReader, enter_known, reader_of
from fx_log.read.frames import FramedFile, Row
from fx_log.read.records import Damaged, LogFileRecord, Padding, RingEntry
from fx_log.rules import RULES
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.words import view_of
from fxframework.model.diagnostics import Diagnostics, Found
from fxframework.model.strings import StringPool
from fxframework.wire.state import State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview

__all__ = ["STATE", "RecordDecoder", "Records"]

STATE = State()
"""That of all log formats: no record says anything about the fields of others."""

# --- Decoder --------------------------------------------------------------------------------------


class RecordDecoder:
    """Reads the records of a log file one by one.

    ``form`` is a log format: log, log-legacy, log-legacy-stream or log-ring. Findings go to
    ``diagnostics``; of ``limits`` only ``max_record`` applies. ``options`` are the reader's:
    ``suffix``, ``fidl_limits``, ``severity_era`` and ``printf``. No bytes raise an exception,
    except StrictError with strict diagnostics.
    """

    def __init__(
        self,
        form: str,
        *,
        diagnostics: Diagnostics | None = None,
        limits: Limits | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.form = form
        self.diagnostics = diagnostics
        self.limits = limits or Limits()
        self.options = options or {}

    def records(self, data: Data) -> Iterator[LogFileRecord]:
        """Yield every record, padding and damage too; their ``nbytes`` add up to ``len(data)``.

        In file order; a ring is read from its header and oldest entry, with the unused space last.
        """
        view = view_of(data)
        findings = None if self.diagnostics is None else self._findings(view)
        for index, record in enumerate(self.read(view)):
            if findings is not None and self.diagnostics is not None:
                self.diagnostics.report(findings.of(index), index)
            yield record

    def _findings(self, view: memoryview) -> Findings:
        every = attrs.evolve(self.limits, max_findings=0)
        data = np.frombuffer(view, np.uint8)
        strings = StringPool()
        enter_known(strings)
        return Findings(reader_of(self.form, data, strings, every, self.options))

    def read(self, view: memoryview) -> Records:
        """Return the records of a file, without findings."""
        return Records(self.form, view, self.limits, self.options)


class Findings:
    """The findings about a file, record by record."""

    def __init__(self, reader: BlockReader) -> None:
        self.reader = reader
        self._blocks = reader.blocks()
        self._waiting: deque[list[int]] = deque()
        self._records = 0
        """Records whose findings were read."""

    def of(self, index: int) -> list[Found]:
        """Return the findings about a record; those about the ones before are gone."""
        reader = self.reader
        while self._records <= index and (block := next(self._blocks, None)) is not None:
            self._waiting += block[1].tolist()
            self._records = reader.records
        found = []
        while self._waiting and self._waiting[0][2] <= index:
            number, offset, _, value = self._waiting.popleft()
            rule = RULES.numbered(number)
            found.append(Found(rule, offset, reader.shown(rule, value)))
        return found


# --- Objects --------------------------------------------------------------------------------------


class Records:
    """The records of a file, which its frames tell, as objects."""

    def __init__(
        self, form: str, view: memoryview, limits: Limits, options: Mapping[str, Any]
    ) -> None:
        self.form = form
        self.view = view
        self.file = FramedFile(form, np.frombuffer(view, np.uint8), limits, options)
        self.data = view_of(self.file.data)
        """The bytes that frames are in."""

    def __iter__(self) -> Iterator[LogFileRecord]:
        """Yield every record, in reading order."""
        return self.from_byte(0)

    def from_byte(self, byte: int) -> Iterator[LogFileRecord]:
        """Yield every record, but those whose frames end up to a byte of ``data``."""
        yield from self.opening()
        for frames in self.file.blocks():
            if frames.end.size and frames.end[-1] > byte:
                for row in frames.take(frames.end > byte).rows():
                    yield from self.of_row(row)
        yield from self.rest()

    def of_row(self, row: Row) -> Iterator[LogFileRecord]:
        """Return the records of a frame."""
        if not row.fault or row.fault == rules.ENTRY_WITHOUT_RECORD:
            read = {"log": self.log, "log-ring": self.entry}.get(self.form, self.packet)
            return read(row)
        if row.fault == rules.ZERO_WORDS:
            return iter([Padding(offset=row.offset, nbytes=row.end - row.begin)])
        rule = RULES.numbered(row.fault)
        return iter([self.damaged(rule, row.offset, self.data[row.begin : row.end])])

    def damaged(self, rule: Rule, offset: int, data: memoryview) -> Damaged:
        """Return a damaged stretch."""
        return Damaged(offset=offset, nbytes=len(data), code=rule.code, raw=data)

    def log(self, row: Row) -> Iterator[LogFileRecord]:
        """Yield a structured record, and its suffix."""
        record, _ = LogRecord.unpack(self.data, row.start, row.start + row.size, STATE)
        if row.suffix >= 0:
            record.suffix, _ = Attribution.unpack(self.data, row.suffix, row.end, STATE)
            record.suffix.row_offset = record.offset
        yield record
        if record.suffix is not None:
            yield record.suffix

    def packet(self, row: Row) -> Iterator[LogFileRecord]:
        """Yield a packet, with its length if it has one."""
        packet, c = LegacyPacket.unpack(self.data, row.start, row.end, STATE)
        is_whole = c.at == row.end and row.size <= wire.MAX_PACKET
        packet.offset, packet.nbytes = row.offset, row.end - row.begin
        packet.raw = None if is_whole else self.data[row.begin : row.end].tobytes()
        yield packet

    def entry(self, row: Row) -> Iterator[LogFileRecord]:
        """Yield an entry of a ring, which may have no record."""
        nbytes = row.end - row.begin
        frame, _ = wire.RingFrame.unpack(self.data, row.begin, row.end, STATE)
        entry = RingEntry(offset=row.offset, nbytes=nbytes, tag=frame.tag, payload=frame.payload)
        padding = self.data[row.start + len(frame.payload) : row.end]
        if row.size:
            log, _ = LogRecord.unpack(self.data, row.start, row.start + row.size, STATE)
            parts: list[Any] = [log, *log.args]
            places = self.file.place(np.array([part.offset for part in parts])).tolist()
            for part, place in zip(parts, places, strict=True):
                part.offset = place  # where in the file it is, which may be before the entry
            entry.log, entry.payload = log, frame.payload[row.size :]
        if any(padding):
            entry.raw = self.data[row.begin : row.end].tobytes()
        yield entry

    # --- Before and behind the frames

    def opening(self) -> Iterator[LogFileRecord]:
        """Yield what is before the first frame: a header, or damage in its place."""
        view, ring = self.view, self.file.ring
        size = min(len(view), wire.RING_PAGE if ring else wire.STREAM_HEADER)
        if self.form not in ("log-ring", "log-legacy-stream") or not size:
            return
        header = view[:size]
        if ring is None and not StreamHeader.begins(header.tobytes()):
            yield self.damaged(rules.CONTAINER_HEADER, 0, header)
        elif ring is not None and size < wire.RING_PAGE:
            yield self.damaged(rules.INVALID_RING, 0, header)
        else:
            cls = StreamHeader if ring is None else RingHeader
            yield cls.unpack(header, 0, size, STATE)[0]
            if ring is not None and ring.used < 0 and ring.capacity:
                yield self.damaged(rules.INVALID_RING, size, view[size:])

    def rest(self) -> Iterator[LogFileRecord]:
        """Yield the space of a ring between head and tail, if there is any."""
        ring = self.file.ring
        if ring is not None and 0 <= ring.used < ring.capacity:
            data = ring.line(ring.used, ring.capacity)
            offset = ring.place(ring.used)
            if data.any():
                yield self.damaged(rules.STALE_BYTES, offset, data.data)
            else:
                yield Padding(offset=offset, nbytes=data.size)
