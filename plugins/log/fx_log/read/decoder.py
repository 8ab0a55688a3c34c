"""The decoder: records of a file as objects, one at a time.

Fields are those of `format.py`. What begins where, the framers say (`framing.py`), and what is
wrong, the scan that makes the tables (`scan.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs
import numpy as np

from fx_log import format as wire
from fx_log import rules
from fx_log.format import Attribution, LegacyPacket, LogRecord, RingHeader, StreamHeader
from fx_log.read.first_pass import LogPass, enter_known, framed, pass_over, words_of
from fx_log.read.framing import FRAME, NextFrame, RingFramer
from fx_log.read.records import Damaged, LogFileRecord, Padding, RingEntry
from fx_log.read.ring import Ring
from fx_log.rules import RULES
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.words import WORD, view_of
from fxframework.kernels.notes import Notes
from fxframework.kit.scanned import FINDING_FIELDS
from fxframework.model.diagnostics import Diagnostics, Found
from fxframework.model.strings import StringPool
from fxframework.wire.state import State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview

__all__ = ["LogWalk", "PacketWalk", "RecordDecoder", "RingWalk", "StreamWalk", "Walk"]

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
        for index, record in enumerate(self.walk(view).records()):
            if findings is not None and self.diagnostics is not None:
                self.diagnostics.report(findings.of(index), index)
            yield record

    def _findings(self, view: memoryview) -> Findings:
        every = attrs.evolve(self.limits, max_findings=0)
        data = np.frombuffer(view, np.uint8)
        strings = StringPool()
        enter_known(strings)
        return Findings(pass_over(self.form, data, strings, every, self.options))

    def walk(self, view: memoryview) -> Walk:
        """Return a walk through the file, from its beginning."""
        return WALKS[self.form](view, self)


class Findings:
    """The findings of a pass over a file, record by record."""

    def __init__(self, passed: LogPass) -> None:
        self.passed = passed
        self._blocks = passed.blocks()
        self._waiting: deque[list[int]] = deque()
        self._records = 0
        """Records whose findings were read."""

    def of(self, index: int) -> list[Found]:
        """Return the findings about a record; those about the ones before are gone."""
        passed = self.passed
        while self._records <= index and (block := next(self._blocks, None)) is not None:
            self._waiting += block[1].tolist()
            self._records = passed.records
        found = []
        while self._waiting and self._waiting[0][2] <= index:
            number, offset, _, value = self._waiting.popleft()
            rule = RULES.numbered(number)
            found.append(Found(rule, offset, passed.shown(rule, value)))
        return found


# --- Walks ----------------------------------------------------------------------------------------


class Walk:
    """Base of the walks through a file, whose records ``framer`` finds."""

    form: ClassVar[str]
    framer: Any
    ring: Ring | None

    def __init__(self, view: memoryview, decoder: RecordDecoder) -> None:
        self.view = view
        self.at = 0
        """Where the records begin that are read."""
        self.suffix = bool(decoder.options.get("suffix"))
        data, notes = np.frombuffer(view, np.uint8), Notes(RULES.numbers, 0)
        framer, self.framed, self.ring = framed(self.form, data, decoder.limits, {}, notes)
        self.follow(framer)

    def follow(self, framer: Any) -> None:
        """Set the framer."""
        self.framer = framer
        self._next = NextFrame(framer)

    def frame(self, pos: int) -> tuple[bool, list[Rule]]:
        """Move the framer over the stretch at ``pos``, in its unit.

        Return whether it is a record, and the rules by which the framer finds something wrong.
        """
        notes = self.framer.notes
        self.framer.pos, notes.used = pos, 0
        is_record = self._next.run() == FRAME
        return is_record, [
            RULES.numbered(notes.rows[FINDING_FIELDS * row]) for row in range(notes.used)
        ]

    def damaged(self, rule: Rule, at: int, end: int) -> Damaged:
        """Return bytes ``at`` to ``end`` as a damaged stretch."""
        return Damaged(offset=at, nbytes=end - at, code=rule.code, raw=self.view[at:end])

    def records(self) -> Iterator[LogFileRecord]:
        """Yield every record, in reading order."""
        at = self.at
        while at < len(self.view):
            record = self.record(at)
            yield record
            at += record.nbytes

    def record(self, at: int) -> LogFileRecord:
        """Return the record at byte ``at``."""
        raise NotImplementedError


class LogWalk(Walk):
    """A file of structured records."""

    form = "log"

    def records(self) -> Iterator[LogFileRecord]:
        """Yield every record, in reading order."""
        at = self.at
        while at < len(self.view):
            record = self.record(at)
            suffix = None
            if self.suffix and isinstance(record, LogRecord):
                suffix = record.suffix = self.attribution(at + record.nbytes)
            yield record
            at += record.nbytes
            if suffix is not None:
                suffix.row_offset = record.offset
                yield suffix
                at += suffix.nbytes

    def record(self, at: int) -> LogFileRecord:
        """Return the record at byte ``at``."""
        is_record, noted = self.frame(at // WORD)
        end = min(WORD * int(self.framer.pos), len(self.view))
        if is_record:
            return LogRecord.unpack(self.view, at, end, STATE)[0]
        if noted[0] == rules.ZERO_WORDS:
            return Padding(offset=at, nbytes=end - at)
        return self.damaged(noted[0], at, end)

    def attribution(self, at: int) -> Attribution | None:
        """Return the suffix at byte ``at``; None if there is no room for one."""
        view = self.view
        left = len(view) - at
        if left < wire.SUFFIX_BYTES:
            return None
        size = wire.suffix_size(int.from_bytes(view[at : at + WORD], "little"))
        return None if size > left else Attribution.unpack(view, at, len(view), STATE)[0]


class PacketWalk(Walk):
    """A file that is one packet."""

    form = "log-legacy"

    def record(self, at: int) -> LogFileRecord:
        """Return the packet, with its length if it has one, at byte ``at``."""
        is_record, noted = self.frame(at)
        end = int(self.framer.pos)
        if not is_record:
            return self.damaged(noted[0], at, end)
        packet, c = LegacyPacket.unpack(self.view, int(self.framer.start), end, STATE)
        whole = c.at == end and self.framer.size <= wire.MAX_PACKET
        packet.offset, packet.nbytes = at, end - at
        packet.raw = None if whole else self.view[at:end].tobytes()
        return packet


class StreamWalk(PacketWalk):
    """A container of packets: a header, and packets with their lengths."""

    form = "log-legacy-stream"

    def record(self, at: int) -> LogFileRecord:
        """Return the packet whose length is at byte ``at``; the header at byte 0."""
        return super().record(at) if at else self.header()

    def header(self) -> LogFileRecord:
        """Return the header, or damage in its place."""
        data = self.view[: wire.STREAM_HEADER].tobytes()
        if not StreamHeader.begins(data):
            return self.damaged(rules.CONTAINER_HEADER, 0, len(data))
        return StreamHeader.unpack(memoryview(data), 0, len(data), STATE)[0]


class RingWalk(Walk):
    """A ring: its header, the entries from tail to head, and the unused space."""

    form = "log-ring"
    ring: Ring

    def __init__(self, view: memoryview, decoder: RecordDecoder) -> None:
        super().__init__(view, decoder)
        self.line = self.framed.data
        """The bytes of entries, in their order."""

    @classmethod
    def of_entry(cls, data: memoryview, decoder: RecordDecoder) -> LogFileRecord:
        """Return the entry that some bytes are, whole words."""
        walk = cls(memoryview(bytes(wire.RING_PAGE) + data), decoder)
        walk.line = data
        words = words_of(np.frombuffer(data, np.uint8))
        notes = Notes(RULES.numbers, 0)
        walk.follow(RingFramer(words, notes, wire.RING_PAGE, len(words), len(data)))
        return walk.record(0)

    def records(self) -> Iterator[LogFileRecord]:
        """Yield every record, in reading order."""
        yield from self.opening()
        at = 0
        while at < len(self.line):
            record = self.record(at)
            yield record
            at += record.nbytes
        yield from self.rest()

    def opening(self) -> Iterator[LogFileRecord]:
        """Yield the records before the first entry."""
        view, page = self.view, wire.RING_PAGE
        if len(view) < page:
            if len(view):
                yield self.damaged(rules.INVALID_RING, 0, len(view))
            return
        yield RingHeader.unpack(view, 0, page, STATE)[0]
        if self.ring.used < 0 and self.ring.capacity:
            yield self.damaged(rules.INVALID_RING, page, len(view))

    def rest(self) -> Iterator[LogFileRecord]:
        """Yield the space between head and tail, if there is any."""
        ring = self.ring
        if 0 <= ring.used < ring.capacity:
            data = ring.line(ring.used, ring.capacity)
            offset = ring.place(ring.used)
            if data.any():
                yield self.lost(rules.STALE_BYTES, data.data, offset)
            else:
                yield Padding(offset=offset, nbytes=data.size)

    def record(self, at: int) -> LogFileRecord:
        """Return the entry at byte ``at`` of ``line``; damage up to the head if there is none."""
        line, place = self.line, self.ring.place
        is_record, noted = self.frame(at // WORD)
        end = WORD * int(self.framer.pos)
        for rule in (rules.ENTRY_TOO_SMALL, rules.ENTRY_TOO_LONG):
            if rule in noted:
                return self.lost(rule, line[at:end], place(at))
        frame, _ = wire.RingFrame.unpack(line, at, end, STATE)
        entry = RingEntry(offset=place(at), nbytes=end - at, tag=frame.tag, payload=frame.payload)
        if is_record:
            start, nbytes = at + wire.RING_ENTRY, WORD * int(self.framer.size)
            log, _ = LogRecord.unpack(line, start, start + nbytes, STATE)
            log.offset = place(log.offset)
            for argument in log.args:
                argument.offset = place(argument.offset)
            entry.log, entry.payload = log, frame.payload[nbytes:]
        if rules.ENTRY_PADDING_NOT_ZERO in noted:
            entry.raw = line[at:end].tobytes()
        return entry

    def lost(self, rule: Rule, data: memoryview, offset: int) -> Damaged:
        """Return a damaged stretch of the ring."""
        return Damaged(offset=offset, nbytes=len(data), code=rule.code, raw=data)


WALKS: Mapping[str, type[Walk]] = {
    walk.form: walk for walk in (LogWalk, PacketWalk, StreamWalk, RingWalk)
}
