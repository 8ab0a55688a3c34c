"""The decoder: records of a file as objects, one at a time, written for clarity.

Fields are those of `format.py`; what begins where, and what is said about it, is here. `scan.py`
decodes the same bytes for speed; tests compare their results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fx_log import format as wire
from fx_log import rules
from fx_log.format import Argument, Attribution, LegacyPacket, LogRecord, RingHeader, StreamHeader
from fx_log.read.entries import Meaning
from fx_log.read.framing import FRAME, NextFrame, PacketFramer, RingFramer
from fx_log.read.records import Damaged, LogFileRecord, Padding, RingEntry
from fx_log.read.scan_pass import log_framer
from fx_log.rules import RULES
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.words import WORD, view_of
from fxframework.kernels.notes import Notes
from fxframework.kit.scanned import FINDING_FIELDS
from fxframework.model.diagnostics import Diagnostics, Found
from fxframework.wire.state import State

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview

__all__ = [
    "LogWalk",
    "PacketWalk",
    "RecordDecoder",
    "RingWalk",
    "StreamWalk",
    "Walk",
    "in_place",
]

STATE = State()
"""That of all log formats: no record says anything about the fields of others."""
_ONCE = rules.RESERVED_BITS, rules.PADDING_NOT_ZERO
"""Rules that are reported once per record, behind all others."""
_MESSAGE = b"message"
Noted = tuple[Rule, int, int]
"""A finding of a framer: rule, offset, and a value."""

# --- Decoder --------------------------------------------------------------------------------------


def word_at(view: memoryview, at: int) -> int:
    """Return the word at byte ``at``."""
    return int.from_bytes(view[at : at + WORD], "little")


def in_place(offset: int) -> int:
    """Return ``offset`` unchanged, for files whose records do not wrap."""
    return offset


class RecordDecoder:
    """Reads the records of a log file one by one.

    ``form`` is a log format: log, log-legacy, log-legacy-stream or log-ring. Findings go to
    ``diagnostics``; of ``limits`` only ``max_record`` applies. ``options`` are the reader's:
    ``suffix``, ``fidl_limits``, and those of ``entries``. No bytes raise an exception, except
    StrictError with strict diagnostics.
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
        meaning = Meaning(self.form, self.options)
        found: list[Found] = []
        for index, record in enumerate(self.walk(view_of(data), found).records()):
            meaning.entry(record, lambda *finding: found.append(Found(*finding)))
            if self.diagnostics is not None:
                self.diagnostics.report(found, index)
            found.clear()
            yield record

    def walk(self, view: memoryview, found: list[Found]) -> Walk:
        """Return a walk through the file, from its beginning."""
        made: Walk = {
            "log": LogWalk,
            "log-legacy": PacketWalk,
            "log-legacy-stream": StreamWalk,
            "log-ring": RingWalk,
        }[self.form](view, found, self)
        return made


class Walk:
    """Base of the walks through a file. ``found`` receives the findings of the next record.

    ``framer`` finds where records begin and end.
    """

    framer: Any

    def __init__(self, view: memoryview, found: list[Found], decoder: RecordDecoder) -> None:
        self.view = view
        self.found = found
        self.at = 0
        """Where the records begin that are read."""
        self.limits = decoder.limits
        self.suffix = bool(decoder.options.get("suffix"))
        self.fidl_limits = bool(decoder.options.get("fidl_limits"))
        self.tagged = False

    def follow(self, framer: Any) -> None:
        """Set the framer."""
        self.framer = framer
        self._next = NextFrame(framer)

    def frame(self, pos: int) -> tuple[bool, list[Noted]]:
        """Move the framer over the stretch at ``pos``, in its unit.

        Return whether it is a record, and the findings about it.
        """
        notes = self.framer.notes
        self.framer.pos, notes.used = pos, 0
        is_record = self._next.run() == FRAME
        if not notes.used:
            return is_record, []
        noted = notes.findings.reshape(-1, FINDING_FIELDS).tolist()
        return is_record, [(RULES.numbered(rule), at, value) for rule, at, _, value in noted]

    def find(self, rule: Rule, offset: int, value: object = None) -> None:
        """Add a finding about the next record."""
        self.found.append(Found(rule, offset, value))

    def damaged(self, rule: Rule, at: int, end: int, value: object = None) -> Damaged:
        """Return bytes ``at`` to ``end`` as a damaged stretch, with a finding."""
        self.find(rule, at, value)
        return Damaged(offset=at, nbytes=end - at, code=rule.code, raw=self.view[at:end])

    def log(
        self, view: memoryview, at: int, end: int, place: Callable[[int], int] = in_place
    ) -> LogRecord:
        """Return the structured record in bytes ``at`` to ``end`` of ``view``."""
        record, c = LogRecord.unpack(view, at, end, STATE)
        record.offset = place(at)
        self.note(record, c.notes, view, place)
        for argument in record.args:
            argument.offset = place(argument.offset)
        if self.fidl_limits:
            self.lint(record)
        return record

    def note(
        self,
        record: LogRecord,
        notes: list[tuple[int, int, int]],
        view: memoryview,
        place: Callable[[int], int],
    ) -> None:
        """Add the findings about a record that was read."""
        once: dict[Rule, int] = {}
        for number, at, value in notes:
            rule: Rule = RULES.numbered(number)
            shown: object = value
            if rule in _ONCE:
                once.setdefault(rule, place(at))
                continue
            if rule == rules.TAG_BITS:
                if self.tagged:
                    continue
                self.tagged = True
            elif rule == rules.NOT_UTF8:
                rule, shown = _about_text(view, record.args, at, value)
            elif rule == rules.SIZE_DIFFERS and not word_at(view, at):
                continue  # zero words inside of a record
            self.find(rule, place(at), shown)
        for rule, spot in once.items():
            self.find(rule, spot)

    def lint(self, record: LogRecord) -> None:
        """Check a record against the limits of the FIDL reference API."""
        if len(record.args) > wire.FIDL_ARGUMENTS:
            self.find(rules.MANY_ARGUMENTS, record.offset, len(record.args))
        for argument in record.args:
            nbytes = len(argument.name.encode(errors="surrogateescape"))
            if nbytes > wire.FIDL_NAME_BYTES:
                self.find(rules.LONG_NAME, argument.offset, nbytes)

    def records(self) -> Iterator[LogFileRecord]:
        """Yield every record, in reading order."""
        raise NotImplementedError


def _about_text(
    view: memoryview, args: tuple[Argument, ...], at: int, place: int
) -> tuple[Rule, object]:
    """Return the rule for a text at ``place`` that is not UTF-8, in the argument at ``at``.

    The second result is what a finding shows of it.
    """
    name = _name(view, at)
    if name and place == at + WORD:
        return rules.NOT_UTF8, name
    if name != _MESSAGE:
        size = wire.VALUE_REF.get(word_at(view, at)) & wire.MAX_STRING
        return rules.NOT_UTF8, view[place : place + size].tobytes()
    earlier = (_name(view, each.offset) for each in args if each.offset < at)
    return (rules.NOT_UTF8 if _MESSAGE in earlier else rules.MESSAGE_NOT_UTF8), None


def _name(view: memoryview, at: int) -> bytes:
    """Return the name of the argument at byte ``at``, as far as it is there."""
    reference = wire.NAME_REF.get(word_at(view, at))
    size = reference & wire.MAX_STRING if reference & wire.INLINE else 0
    return view[at + WORD : at + WORD + size].tobytes()


class LogWalk(Walk):
    """A file of structured records."""

    def __init__(self, view: memoryview, found: list[Found], decoder: RecordDecoder) -> None:
        super().__init__(view, found, decoder)
        octets = np.frombuffer(view, np.uint8)
        self.follow(log_framer(octets, decoder.limits, {}, Notes(RULES.numbers, 0)))

    def records(self) -> Iterator[LogFileRecord]:
        """Yield every record, in reading order."""
        at = self.at
        while at < len(self.view):
            record = self.record(at)
            suffix = None
            if self.suffix and isinstance(record, LogRecord):
                suffix = record.suffix = self.attribution(at + record.nbytes)
                if suffix is not None:
                    suffix.row_offset = at
            yield record
            at += record.nbytes
            if suffix is not None:
                yield suffix
                at += suffix.nbytes

    def record(self, at: int) -> LogFileRecord:
        """Return the record at byte ``at``."""
        is_record, noted = self.frame(at // WORD)
        end = min(WORD * int(self.framer.pos), len(self.view))
        if is_record:
            return self.log(self.view, at, end)
        rule, _, value = noted[0]
        if rule != rules.ZERO_WORDS:
            return self.damaged(rule, at, end, value)
        self.find(rule, at, value)
        return Padding(offset=at, nbytes=end - at)

    def attribution(self, at: int) -> Attribution | None:
        """Return the suffix at byte ``at``; None if there is no room for one."""
        view = self.view
        left = len(view) - at
        if left < wire.SUFFIX_BYTES:
            return None
        size = wire.suffix_size(word_at(view, at))
        if size > left:
            self.find(rules.SUFFIX_TRUNCATED, at, size)
            return None
        return Attribution.unpack(view, at, len(view), STATE)[0]


class PacketWalk(Walk):
    """A file that is one packet; ``START`` of others is the byte at which packets begin."""

    START = -1

    def __init__(self, view: memoryview, found: list[Found], decoder: RecordDecoder) -> None:
        super().__init__(view, found, decoder)
        self.follow(PacketFramer(view, Notes(RULES.numbers, 0), self.START))

    def records(self) -> Iterator[LogFileRecord]:
        """Yield every record, in reading order."""
        at = self.at
        while at < len(self.view):
            record = self.packet(at)
            yield record
            at += record.nbytes

    def packet(self, at: int) -> LogFileRecord:
        """Return the packet, with its length if it has one, at byte ``at``."""
        is_record, noted = self.frame(at)
        end = int(self.framer.pos)
        if not is_record:
            rule, _, value = noted[0]
            return self.damaged(rule, at, end, value)
        packet, c = LegacyPacket.unpack(self.view, int(self.framer.start), end, STATE)
        size = int(self.framer.size)
        if size > wire.MAX_PACKET:
            self.find(rules.OVER_A_DATAGRAM, at, size)
        if c.at < end:
            self.find(rules.TRAILING_BYTES, at, end - c.at)
        for number, value in {number: value for number, _, value in c.notes}.items():
            self.find(RULES.numbered(number), at, value)
        packet.offset, packet.nbytes, packet.raw = at, end - at, None
        if c.at < end or size > wire.MAX_PACKET:
            packet.raw = self.view[at:end].tobytes()
        return packet


class StreamWalk(PacketWalk):
    """A container of packets: a header, and packets with their lengths."""

    START = wire.STREAM_HEADER

    def packet(self, at: int) -> LogFileRecord:
        """Return the packet whose length is at byte ``at``; the header at byte 0."""
        return super().packet(at) if at else self.header()

    def header(self) -> LogFileRecord:
        """Return the header, or damage in its place."""
        data = self.view[: wire.STREAM_HEADER].tobytes()
        if not StreamHeader.begins(data):
            return self.damaged(rules.CONTAINER_HEADER, 0, len(data))
        header, c = StreamHeader.unpack(memoryview(data), 0, len(data), STATE)
        if c.notes:
            self.find(rules.RESERVED_BITS, 0)
        return header


class RingWalk(Walk):
    """A ring: its header, the entries from tail to head, and the unused space."""

    line: memoryview = memoryview(b"")
    """The ring from its tail on, once around; empty if the header is unsound."""
    start: int = 0
    """The byte of the ring at which ``line`` begins."""

    def records(self) -> Iterator[LogFileRecord]:
        """Yield every record, in reading order."""
        opening, used = self.opening()
        yield from opening
        at = 0
        while at < used:
            record = self.entry(at)
            yield record
            at += record.nbytes
        yield from self.rest(used)

    def opening(self) -> tuple[list[LogFileRecord], int]:
        """Return the records before the first entry, and the bytes of entries in ``line``."""
        view = self.view
        if not len(view):
            return [], 0
        if len(view) < wire.RING_PAGE:
            return [self.damaged(rules.INVALID_RING, 0, len(view), rules.ring_detail(len(view)))], 0
        ring = view[wire.RING_PAGE :]
        capacity = len(ring)
        header, c = RingHeader.unpack(view, 0, wire.RING_PAGE, STATE)
        head, tail = header.head, header.tail
        if c.notes:
            self.find(rules.RESERVED_BITS, 0)
        if capacity % wire.RING_PAGE or capacity < wire.RING_MINIMUM:
            self.find(rules.RING_SIZE, 0, capacity)
        if not header.sound(capacity):
            self.find(rules.INVALID_RING, 0, rules.ring_detail(len(view), head, tail))
            code = rules.INVALID_RING.code
            lost = Damaged(offset=wire.RING_PAGE, nbytes=capacity, code=code, raw=ring)
            return [header, lost][: 1 + bool(capacity)], 0
        self.start = start = tail % capacity if capacity else 0
        # A copy that starts at the tail, so that nothing wraps.
        line = memoryview(ring[start:].tobytes() + ring[:start].tobytes()) if start else ring
        self.read(line, head - tail)
        return [header], head - tail

    def read(self, line: memoryview, used: int) -> None:
        """Read entries in the first ``used`` bytes of ``line``, which is once around the ring."""
        self.line = line
        words = np.frombuffer(line[:used], "<i8")
        base, wrap = wire.RING_PAGE + self.start, (len(line) - self.start) // WORD
        self.follow(RingFramer(words.data, Notes(RULES.numbers, 0), base, wrap, len(line)))

    def place(self, at: int) -> int:
        """Return the offset in the file of a byte of ``line``."""
        return wire.RING_PAGE + (self.start + at) % len(self.line)

    def rest(self, used: int) -> list[LogFileRecord]:
        """Return the space behind ``used`` bytes of entries, if there is any."""
        if used >= len(self.line):
            return []
        return [self.unused(self.line[used:], self.place(used))]

    def entry(self, at: int) -> RingEntry | Damaged:
        """Return the entry at byte ``at`` of ``line``; damage up to the head if there is none."""
        line = self.line
        is_record, noted = self.frame(at // WORD)
        end = WORD * int(self.framer.pos)
        for rule, offset, value in noted:
            if rule in (rules.ENTRY_TOO_SMALL, rules.ENTRY_TOO_LONG):
                return self.lost(rule, line[at:end], offset, value)
        frame, _ = wire.RingFrame.unpack(line, at, end, STATE)
        entry = RingEntry(offset=self.place(at), nbytes=end - at, tag=frame.tag)
        start = at + wire.RING_ENTRY
        entry.payload = frame.payload
        if is_record:
            nbytes = WORD * int(self.framer.size)
            entry.log = self.log(line, start, start + nbytes, self.place)
            entry.payload = frame.payload[nbytes:]
        for rule, offset, value in noted:
            self.find(rule, offset, value)
            if rule == rules.ENTRY_PADDING_NOT_ZERO:
                entry.raw = line[at:end].tobytes()
        return entry

    def lost(self, rule: Rule, data: memoryview, offset: int, value: object = None) -> Damaged:
        """Return a damaged stretch of the ring."""
        self.find(rule, offset, value)
        return Damaged(offset=offset, nbytes=len(data), code=rule.code, raw=data)

    def unused(self, data: memoryview, offset: int) -> LogFileRecord:
        """Return the space between head and tail."""
        if any(data):
            return self.lost(rules.STALE_BYTES, data, offset, len(data))
        return Padding(offset=offset, nbytes=len(data))
