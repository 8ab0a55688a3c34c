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
from fx_log.read.framing import FrameList, LogFramer
from fx_log.read.records import Damaged, LogFileRecord, Padding, RingEntry
from fx_log.rules import RULES
from fxframework.errors import Rule
from fxframework.io.limits import Limits
from fxframework.io.words import WORD, padding, view_of
from fxframework.kernels.notes import Notes
from fxframework.model.diagnostics import Diagnostics, Found
from fxframework.wire.cursor import ShortError
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

# --- Framing: where records begin and end ---------------------------------------------------------


def word_at(view: memoryview, at: int) -> int:
    """Return the word at byte ``at``."""
    return int.from_bytes(view[at : at + WORD], "little")


def _zeros_end(view: memoryview, at: int) -> int:
    """Return the end of the run of zero words at byte ``at``."""
    whole = len(view) // WORD * WORD
    piece = 1 << 12
    while at < whole:
        chunk = view[at : min(at + piece, whole)].tobytes()
        left = len(chunk.lstrip(b"\0"))
        at += (len(chunk) - left) // WORD * WORD
        if left:
            return at
    return at


# --- Decoder --------------------------------------------------------------------------------------


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
    """Base of the walks through a file. ``found`` receives the findings of the next record."""

    def __init__(self, view: memoryview, found: list[Found], decoder: RecordDecoder) -> None:
        self.view = view
        self.found = found
        self.at = 0
        """Where the records begin that are read."""
        self.max_record = decoder.limits.max_record
        self.suffix = bool(decoder.options.get("suffix"))
        self.fidl_limits = bool(decoder.options.get("fidl_limits"))
        self.tagged = False

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

    def packet(self, at: int, start: int, end: int) -> LegacyPacket | Damaged:
        """Return the packet in bytes ``start`` to ``end``; its record begins at ``at``."""
        size = end - start
        if size < wire.MIN_PACKET:
            return self.damaged(rules.PACKET_TOO_SHORT, at, end, size)
        if self.view[end - 1]:
            return self.damaged(rules.PACKET_NOT_TERMINATED, at, end)
        try:
            packet, c = LegacyPacket.unpack(self.view, start, end, STATE)
        except ShortError as problem:
            return self.damaged(RULES.numbered(problem.number), at, end)
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

    _frames: FrameList | None = None

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
        view = self.view
        left = len(view) - at
        if left < WORD:
            return self.damaged(rules.ODD_BYTES, at, len(view), left)
        header = word_at(view, at)
        size = WORD * wire.SIZE.get(header)
        if not header:
            end = _zeros_end(view, at)
            self.find(rules.ZERO_WORDS, at, (end - at) // WORD)
            return Padding(offset=at, nbytes=end - at)
        rule, value = None, size // WORD
        if wire.TYPE.get(header) != wire.RECORD_TYPE:
            rule, value = rules.NOT_A_RECORD, wire.TYPE.get(header)
        elif left < 2 * WORD:
            rule = rules.TIME_TRUNCATED
        elif size < WORD * wire.MIN_RECORD_WORDS:
            rule = rules.RECORD_TOO_SMALL
        elif size > left:
            rule = rules.RECORD_TRUNCATED
        if rule is not None:
            return self.damaged(rule, at, self._resume(at), value)
        if self.max_record and size > self.max_record:
            return self.damaged(rules.OVER_MAX_RECORD, at, at + size, size)
        return self.log(view, at, at + size)

    def _resume(self, at: int) -> int:
        """Return where to continue after damage at byte ``at``: at the next frame, or the end."""
        if self._frames is None:
            words = np.frombuffer(self.view[: len(self.view) // WORD * WORD], "<i8")
            framer = LogFramer(words.data, len(self.view), Notes(RULES.numbers, 1), 0, 0)
            self._frames = FrameList(framer, 1)
        self._frames.framer.pos = at // WORD
        return int(self._frames.begins[0]) if self._frames.run() else len(self.view)

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
    """A file that is one packet."""

    def records(self) -> Iterator[LogFileRecord]:
        """Yield every record, in reading order."""
        if len(self.view):
            yield self.packet(0, 0, len(self.view))


class StreamWalk(Walk):
    """A container of packets: a header, and packets with their lengths."""

    def records(self) -> Iterator[LogFileRecord]:
        """Yield every record, in reading order."""
        view = self.view
        if not len(view):
            return
        at = self.at
        if not at:
            yield self.header()
            at = min(wire.STREAM_HEADER, len(view))
        while at < len(view):
            record = self.framed(at)
            yield record
            at += record.nbytes

    def framed(self, at: int) -> LegacyPacket | Damaged:
        """Return the packet whose length is at byte ``at``."""
        start, size = at + wire.STREAM_LENGTH, len(self.view)
        if start > size:
            return self.damaged(rules.PACKET_TRUNCATED, at, size)
        nbytes = wire.PacketLength.unpack(self.view, at, start, STATE)[0].length
        if nbytes > size - start:
            return self.damaged(rules.PACKET_TRUNCATED, at, size)
        return self.packet(at, start, start + nbytes)

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
            record = self.entry(self.line, at, used, self.place)
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
        self.line = memoryview(ring[start:].tobytes() + ring[:start].tobytes()) if start else ring
        return [header], head - tail

    def place(self, at: int) -> int:
        """Return the offset in the file of a byte of ``line``."""
        return wire.RING_PAGE + (self.start + at) % len(self.line)

    def rest(self, used: int) -> list[LogFileRecord]:
        """Return the space behind ``used`` bytes of entries, if there is any."""
        if used >= len(self.line):
            return []
        return [self.unused(self.line[used:], self.place(used))]

    def entry(
        self, line: memoryview, at: int, used: int, place: Callable[[int], int]
    ) -> RingEntry | Damaged:
        """Return the entry at ``at``; damage up to the head if there is none."""
        left = used - at
        if left < wire.RING_ENTRY:
            return self.lost(rules.ENTRY_TOO_SMALL, line[at:used], place(at))
        start = at + wire.RING_ENTRY
        length = word_at(line, start - WORD)
        size = wire.RING_ENTRY + length + padding(length)
        if size > left or size > wire.RING_MAX_ENTRY:
            return self.lost(rules.ENTRY_TOO_LONG, line[at:used], place(at), length)
        frame, c = wire.RingFrame.unpack(line, at, at + size, STATE)
        entry = RingEntry(offset=place(at), nbytes=size, tag=frame.tag)
        end = start + length
        record_end = start
        if length >= 2 * WORD:
            header = word_at(line, start)
            nbytes = WORD * wire.SIZE.get(header)
            if wire.TYPE.get(header) == wire.RECORD_TYPE and 2 * WORD <= nbytes <= length:
                record_end = start + nbytes
                entry.log = self.log(line, start, record_end, place)
        if entry.log is None:
            self.find(rules.ENTRY_WITHOUT_RECORD, place(at), length)
        elif record_end < end:
            self.find(rules.ENTRY_TRAILING_BYTES, place(at), end - record_end)
        entry.payload = line[record_end:end].tobytes()
        if c.notes:
            self.find(rules.ENTRY_PADDING_NOT_ZERO, place(at))
            entry.raw = line[at : at + size].tobytes()
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
