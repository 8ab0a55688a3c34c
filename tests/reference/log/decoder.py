"""The decoder: records of a file as objects, one at a time, written for clarity.

`scan.py` decodes the same bytes for speed. The two share only the constants of `layout.py`, and
tests compare their results.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from tests.reference.log import layout as wire
from tests.reference.log.arguments import ArgumentReader, Damage, is_utf8, text_of
from tests.reference.log.records import (
    Attribution,
    Damaged,
    Find,
    LegacyPacket,
    LogFileRecord,
    LogRecord,
    Padding,
    RingEntry,
    RingHeader,
    StreamHeader,
)

from fx_log import rules
from fxframework.errors import Rule, WriteRefusedError
from fxframework.io.limits import Limits
from fxframework.io.words import WORD, padding, to_i64, view_of
from fxframework.model.diagnostics import Diagnostics, Found

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

_U64 = struct.Struct("<Q")
_TWO = struct.Struct("<QQ")
_PACKET = struct.Struct("<QQqiI")
_SUFFIX = struct.Struct("<IIQ")
_LENGTH = struct.Struct("<I")
_RESERVED = wire.HEADER.reserved_mask


# --- Framing: where records begin and end ---------------------------------------------------------


def plausible(header: int, room: int) -> bool:
    """Return whether a word could be the header of a record in ``room`` bytes."""
    size = WORD * wire.SIZE.get(header)
    return (
        header & wire.TYPE.limit == wire.RECORD_TYPE
        and 2 * WORD <= size <= room
        and not header & _RESERVED
        and 1 <= wire.SEVERITY.get(header) <= 0x7F
    )


def _resume(view: memoryview, at: int) -> int:
    """Return where to continue after damage at byte ``at``: at plausible records, or the end.

    A run has SOUND_RUN records, or fewer that end at the end of the file.
    """
    whole = len(view) // WORD * WORD
    for start in _candidates(view, at + WORD, whole):
        if _chained(view, start):
            return start
        end = start
        for _ in range(wire.SOUND_RUN):
            (header,) = _U64.unpack_from(view, end)
            if not plausible(header, whole - end):
                break
            end += WORD * wire.SIZE.get(header)
            if end == whole:
                return start
        else:
            return start
    return len(view)


def _chained(view: memoryview, at: int) -> bool:
    """Return whether arguments fill the record at byte ``at``, with a plausible header, exactly."""
    (header,) = _U64.unpack_from(view, at)
    end = at + WORD * wire.SIZE.get(header)
    argument = at + WORD * wire.MIN_RECORD_WORDS
    for _ in range(wire.CHAIN):
        (header,) = _U64.unpack_from(view, argument) if argument < end else (0,)
        size = wire.argument_size(header)
        if not size or size != WORD * wire.ARG_SIZE.get(header):
            return False
        argument += size
        if argument >= end:
            break
    return bool(argument == end)


def _candidates(view: memoryview, start: int, whole: int) -> Iterator[int]:
    """Yield the offsets of plausible headers from ``start`` on, block by block."""
    nbytes = 64 * WORD
    while start < whole:
        stop = min(start + nbytes, whole)
        words = np.frombuffer(view[start:stop], "<u8").astype(np.uint64)
        severity = wire.SEVERITY.get(words)
        size = wire.SIZE.get(words)
        room = np.uint64((whole - start) // WORD) - np.arange(len(words), dtype=np.uint64)
        fits = (
            (wire.TYPE.get(words) == wire.RECORD_TYPE)
            & (size >= wire.MIN_RECORD_WORDS)
            & (size <= room)
            & (words & np.uint64(_RESERVED) == 0)
            & (severity >= 1)
            & (severity <= 0x7F)
        )
        for number in np.flatnonzero(fits).tolist():
            yield start + number * WORD
        start = stop
        nbytes = min(2 * nbytes, 1 << 19)  # short damage should cost little


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


def ring_detail(size: int, head: int = 0, tail: int = 0) -> str:
    """What a finding says about the ring in a file of ``size`` bytes."""
    if size < wire.RING_PAGE:
        return f"{size} bytes"
    return f"head {head}, tail {tail}, a ring of {size - wire.RING_PAGE} bytes"


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
        found: list[Found] = []
        for index, record in enumerate(self._framed(view_of(data), found)):
            if self.diagnostics is not None:
                self.diagnostics.report(found, index)
            found.clear()
            yield record

    def _framed(self, view: memoryview, found: list[Found]) -> Iterator[LogFileRecord]:
        walk = {
            "log": LogWalk,
            "log-legacy": PacketWalk,
            "log-legacy-stream": StreamWalk,
            "log-ring": RingWalk,
        }[self.form]
        return walk(view, found, self).records()


class Walk:
    """Base of the walks through a file. ``found`` receives the findings of the next record."""

    def __init__(self, view: memoryview, found: list[Found], decoder: RecordDecoder) -> None:
        self.view = view
        self.found = found
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
        header, time = _TWO.unpack_from(view, at)
        reading = ArgumentReader(view, at + 2 * WORD, end, place)
        spot = place(at)
        if header & _RESERVED:
            reading.reserved = spot
        args = reading.read()
        record = LogRecord(
            offset=spot,
            nbytes=end - at,
            timestamp=to_i64(time),
            severity=wire.SEVERITY.get(header),
            tag_bits=wire.TAG_BITS.get(header),
            args=args,
        )
        if record.tag_bits and not self.tagged:
            self.tagged = True
            self.find(rules.TAG_BITS, spot, record.tag_bits)
        if record.severity % 0x10 or not 0x10 <= record.severity <= 0x60:
            self.find(rules.SEVERITY_NOT_A_LEVEL, spot, record.severity)
        self.found.extend(reading.findings)
        if reading.reserved is not None:
            self.find(rules.RESERVED_BITS, reading.reserved)
        if reading.unpadded is not None:
            self.find(rules.PADDING_NOT_ZERO, reading.unpadded)
        data = view[at:end].tobytes()
        if not _packs_to(record, data):
            record.raw = data
        return record

    def packet(self, at: int, start: int, end: int) -> LegacyPacket | Damaged:
        """Return the packet in bytes ``start`` to ``end``; its record begins at ``at``."""
        data = self.view[start:end]
        try:
            packet = _packet(data, at, self.find)
        except Damage as damage:
            return self.damaged(damage.rule, at, end, damage.value)
        packet.offset, packet.nbytes = at, end - at
        if not _packs_to(packet, data.tobytes()):
            packet.raw = self.view[at:end].tobytes()
        return packet

    def records(self) -> Iterator[LogFileRecord]:
        """Yield every record, in reading order."""
        raise NotImplementedError


def _packs_to(record: LogFileRecord, data: bytes) -> bool:
    """Return whether the fields alone encode to these bytes."""
    try:
        return record.pack() == data
    except WriteRefusedError:
        return False


def _packet(data: memoryview, offset: int, find: Find) -> LegacyPacket:
    """Return the legacy packet of these bytes, checked in the order of the reference.

    Findings are about the record at byte ``offset``. Raises Damage.
    """
    size = len(data)
    if size < wire.MIN_PACKET:
        raise Damage(rules.PACKET_TOO_SHORT, size)
    if data[-1]:
        raise Damage(rules.PACKET_NOT_TERMINATED)
    pid, tid, time, severity, dropped = _PACKET.unpack_from(data)
    tags: list[bytes] = []
    at = wire.PACKET_HEADER
    while True:
        if at >= size:
            raise Damage(rules.PAST_THE_END)
        nbytes = data[at]
        at += 1
        if not nbytes:
            break
        if len(tags) == wire.MAX_TAGS:
            raise Damage(rules.MANY_TAGS)
        if nbytes > wire.MAX_TAG_BYTES:
            raise Damage(rules.LONG_TAG)
        if at + nbytes > size:
            raise Damage(rules.PAST_THE_END)
        tags.append(data[at : at + nbytes].tobytes())
        at += nbytes
    message, end, rest = data[at:].tobytes().partition(b"\0")
    if not end:
        raise Damage(rules.PAST_THE_END)
    if size > wire.MAX_PACKET:
        find(rules.OVER_A_DATAGRAM, offset, size)
    if severity % 0x10 or not 0x10 <= severity <= 0x60:
        find(rules.SEVERITY_OF_ERAS, offset, severity)
    if rest:
        find(rules.TRAILING_BYTES, offset, len(rest))
    if not all(map(is_utf8, (*tags, message))):
        find(rules.PACKET_NOT_UTF8, offset)
    return LegacyPacket(
        pid=pid,
        tid=tid,
        timestamp=time,
        severity=severity,
        dropped_logs=dropped,
        tags=tuple(map(text_of, tags)),
        message=text_of(message),
    )


class LogWalk(Walk):
    """A file of structured records."""

    def records(self) -> Iterator[LogFileRecord]:
        """Yield every record, in reading order."""
        at = 0
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
        (header,) = _U64.unpack_from(view, at)
        size = WORD * wire.SIZE.get(header)
        if not header:
            end = _zeros_end(view, at)
            self.find(rules.ZERO_WORDS, at, (end - at) // WORD)
            return Padding(offset=at, nbytes=end - at)
        rule, value = None, size // WORD
        if header & wire.TYPE.limit != wire.RECORD_TYPE:
            rule, value = rules.NOT_A_RECORD, header & wire.TYPE.limit
        elif left < 2 * WORD:
            rule = rules.TIME_TRUNCATED
        elif size < WORD * wire.MIN_RECORD_WORDS:
            rule = rules.RECORD_TOO_SMALL
        elif size > left:
            rule = rules.RECORD_TRUNCATED
        if rule is not None:
            return self.damaged(rule, at, _resume(view, at), value)
        if self.max_record and size > self.max_record:
            return self.damaged(rules.OVER_MAX_RECORD, at, at + size, size)
        return self.log(view, at, at + size)

    def attribution(self, at: int) -> Attribution | None:
        """Return the suffix at byte ``at``; None if there is no room for one."""
        view = self.view
        left = len(view) - at
        if left < wire.SUFFIX_BYTES:
            return None
        moniker, url, rolled_out = _SUFFIX.unpack_from(view, at)
        start = at + wire.SUFFIX_BYTES
        middle = start + moniker + padding(moniker)
        end = middle + url + padding(url)
        if end > len(view):
            self.find(rules.SUFFIX_TRUNCATED, at, end - at)
            return None
        record = Attribution(
            offset=at,
            nbytes=end - at,
            moniker=text_of(view[start : start + moniker].tobytes()),
            url=text_of(view[middle : middle + url].tobytes()),
            rolled_out=rolled_out,
        )
        data = view[at:end].tobytes()
        if not _packs_to(record, data):
            record.raw = data
        return record


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
        (nbytes,) = _LENGTH.unpack_from(self.view, at)
        if nbytes > size - start:
            return self.damaged(rules.PACKET_TRUNCATED, at, size)
        return self.packet(at, start, start + nbytes)

    def header(self) -> LogFileRecord:
        """Return the header, or damage in its place."""
        data = self.view[: wire.STREAM_HEADER].tobytes()
        if not data.startswith(StreamHeader().pack()[:12]) or len(data) < wire.STREAM_HEADER:
            return self.damaged(rules.CONTAINER_HEADER, 0, len(data))
        header = StreamHeader(nbytes=len(data))
        if data[12:] != bytes(4):
            self.find(rules.RESERVED_BITS, 0)
            header.raw = data
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
            return [self.damaged(rules.INVALID_RING, 0, len(view), ring_detail(len(view)))], 0
        ring = view[wire.RING_PAGE :]
        capacity = len(ring)
        head, tail = _TWO.unpack_from(view)
        header = RingHeader(nbytes=wire.RING_PAGE, head=head, tail=tail)
        page = view[: wire.RING_PAGE].tobytes()
        if not _packs_to(header, page):
            header.raw = page
            self.find(rules.RESERVED_BITS, 0)
        if capacity % wire.RING_PAGE or capacity < wire.RING_MINIMUM:
            self.find(rules.RING_SIZE, 0, capacity)
        if not header.sound(capacity):
            self.find(rules.INVALID_RING, 0, ring_detail(len(view), head, tail))
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
        tag, length = _TWO.unpack_from(line, at)
        start = at + wire.RING_ENTRY
        size = wire.RING_ENTRY + length + padding(length)
        if size > left or size > wire.RING_MAX_ENTRY:
            return self.lost(rules.ENTRY_TOO_LONG, line[at:used], place(at), length)
        entry = RingEntry(offset=place(at), nbytes=size, tag=tag)
        end = start + length
        record_end = end
        if length >= 2 * WORD:
            (header,) = _U64.unpack_from(line, start)
            nbytes = WORD * wire.SIZE.get(header)
            if header & wire.TYPE.limit == wire.RECORD_TYPE and 2 * WORD <= nbytes <= length:
                record_end = start + nbytes
                entry.log = self.log(line, start, record_end, place)
        if entry.log is None:
            self.find(rules.ENTRY_WITHOUT_RECORD, place(at), length)
            record_end = start
        elif record_end < end:
            self.find(rules.ENTRY_TRAILING_BYTES, place(at), end - record_end)
        entry.payload = line[record_end:end].tobytes()
        data = line[at : at + size].tobytes()
        if any(line[end : at + size]):
            self.find(rules.ENTRY_PADDING_NOT_ZERO, place(at))
        if not _packs_to(entry, data):
            entry.raw = data
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
