"""The rewriter: writes records that were read, or their JSON, in their format.

Thousands of lines are packed by their declarations (``fxframework.wire.packing``); records that
columns cannot hold, and those of a ring, which are placed at the end, are encoded one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

import attrs
import numpy as np

from fx_log import format as wire
from fx_log import rules
from fx_log.format import STATE, Attribution, LegacyPacket, LogRecord, RingHeader, StreamHeader
from fx_log.plugin import FORMATS
from fx_log.read.frames import Records, framed_file
from fx_log.read.records import Damaged, LogFileRecord, Padding, RingEntry, from_json
from fx_log.write.convert import AttributionConverter
from fx_log.write.redaction import Redactor
from fxframework.errors import Rule, Severity, refusal
from fxframework.io.limits import Limits
from fxframework.io.sink import Sink
from fxframework.io.words import WORD
from fxframework.kit.lossless import RecordRewriter, padding_of
from fxframework.model.diagnostics import Diagnostics
from fxframework.wire.packing import Packer
from fxframework.wire.records import Record

RECORDS: Final[Mapping[str, frozenset[type[LogFileRecord]]]] = {
    "log": frozenset({LogRecord, Attribution}),
    "log-legacy": frozenset({LegacyPacket}),
    "log-legacy-stream": frozenset({StreamHeader, LegacyPacket}),
    "log-ring": frozenset({RingHeader, RingEntry}),
}
"""Records of each format, besides padding and damage."""


class RecordEncoder:
    """Encodes records, or their JSON, as bytes of a log format.

    ``raw`` is written if it decodes to the record's fields, so that unedited records keep their
    bytes and edits take effect. The records of a ring are held back until ``close``, which places
    them.
    """

    def __init__(self, form: str) -> None:
        self.form = form
        self._ring = RingImage() if form == "log-ring" else None

    def encode(self, record: LogFileRecord | Mapping[str, Any]) -> bytes:
        """Return the record's bytes.

        Raises WriteRefusedError without side effects.
        """
        if isinstance(record, Mapping):
            record = from_json(record)
        data = self._bytes(record)
        if self._ring is not None:
            self._ring.add(record, data)
            return b""
        return data

    def packer(self) -> Packer | None:
        """Return what packs many records at a time; None for a ring, which is placed at the end."""
        if self._ring is not None:
            return None
        kinds = RECORDS[self.form] - {StreamHeader}  # a header has no length before it
        layouts = {cls.record: cls.layout for cls in kinds if issubclass(cls, Record)}
        length_bytes = 0
        if self.form == "log-legacy-stream":
            length_bytes = wire.STREAM_LENGTH
        return Packer(
            lambda json_object: layouts.get(str(json_object.get("record"))),
            STATE,
            framed=length_bytes,
        )

    def close(self) -> bytes:
        """Return the bytes that were held back."""
        return b"" if self._ring is None else self._ring.image()

    def _bytes(self, record: LogFileRecord) -> bytes:
        if isinstance(record, Padding):
            return padding_of(record.nbytes, rules.OUT_OF_RANGE)
        if isinstance(record, Damaged):
            return bytes(record.raw or b"")
        if type(record) not in RECORDS[self.form]:
            raise refusal(rules.NO_SUCH_NAME, f"a {self.form} file has no record {record.record!r}")
        if isinstance(record, RingEntry):
            record = with_own_raw(record)
        if record.raw is not None and self.decoded(record, bytes(record.raw)) == record:
            return bytes(record.raw)
        data = record.pack()
        if self.form == "log-legacy-stream" and isinstance(record, LegacyPacket):
            return wire.PacketLength(length=len(data)).pack() + data
        return data

    def decoded(self, record: LogFileRecord, data: bytes) -> LogFileRecord | None:
        """Return the record that these bytes are; None unless exactly one."""
        # They are read as a file is, behind what such a file begins with.
        opening = b""
        if isinstance(record, Attribution):
            opening = LogRecord(timestamp=0, severity=0).pack()
        elif isinstance(record, RingEntry):
            opening = RingHeader(head=len(data), tail=0).pack()
        elif isinstance(record, LegacyPacket) and self.form == "log-legacy-stream":
            opening = StreamHeader().pack()
        options = {"suffix": isinstance(record, Attribution)}
        octets = np.frombuffer(opening + data, np.uint8)
        for found in Records(framed_file(self.form, octets, Limits(), options)):
            if found.offset == len(opening):
                return found if found.nbytes == len(data) else None
        return None


def with_own_raw(entry: RingEntry) -> RingEntry:
    """Return the entry, without raw bytes of its record that do not belong to it."""
    log = entry.log
    if log is None or log.raw is None:
        return entry
    if RecordEncoder("log").decoded(log, bytes(log.raw)) == log:
        return entry
    return attrs.evolve(entry, log=log.edited())


class RingImage:
    """The image of a ring, assembled from its records in reading order."""

    def __init__(self) -> None:
        self._header: RingHeader | None = None
        self._used: list[bytes] = []
        self._unused: list[bytes] = []
        self._page = b""
        self._invalid = False

    def add(self, record: LogFileRecord, data: bytes) -> None:
        """Add a record and its bytes."""
        self._invalid |= isinstance(record, Damaged) and record.code == rules.INVALID_RING.code
        if isinstance(record, RingHeader):
            self._header = record
            self._page = data
        elif isinstance(record, Padding) or (
            isinstance(record, Damaged) and record.code == rules.STALE_BYTES.code
        ):
            self._unused.append(data)
        else:
            self._used.append(data)

    def image(self) -> bytes:
        """Return the image. A head that does not match the entries is corrected."""
        used = b"".join(self._used)
        unused = b"".join(self._unused)
        header = self._header
        if header is None:
            return used + unused
        capacity = len(used) + len(unused)
        is_ordered = header.tail <= header.head and not header.tail % WORD
        has_other_head = header.head - header.tail != len(used)
        has_ring = bool(self._used or self._unused)
        if has_ring and is_ordered and has_other_head and not self._invalid:
            # Entries were edited: the ring begins at its tail, and has whole pages.
            header = header.edited(head=header.tail + len(used))
            self._page = header.pack()
            whole_pages = -(-capacity // wire.RING_PAGE)
            unused += bytes(max(whole_pages * wire.RING_PAGE, wire.RING_MINIMUM) - capacity)
            capacity = len(used) + len(unused)
        line = used + unused
        start = 0
        if capacity and header.sound(capacity):
            start = header.tail % capacity
        return self._page + line[capacity - start :] + line[: capacity - start]


class LogRewriter(RecordRewriter):
    """Writes records to a sink, one after another.

    ``attribution`` moves the attribution (``fx_log.write.convert``), ``redactor`` removes private
    data (``fx_log.write.redaction``). A container of packets without a header record gets one.
    """

    encoder: RecordEncoder

    def __init__(
        self,
        sink: Sink,
        form: str,
        diagnostics: Diagnostics,
        *,
        attribution: AttributionConverter | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        super().__init__(sink, RecordEncoder(form))
        self._form = form
        self._diagnostics = diagnostics
        self._headless = form == "log-legacy-stream"
        self._attribution = attribution
        self._redactor = redactor

    def write(self, record: LogFileRecord | Mapping[str, Any]) -> None:
        """Write a record, or none of it: WriteRefusedError."""
        if isinstance(record, Mapping):
            record = from_json(record)
        if self._attribution is None:
            self._put([record])
        else:
            self._put(self._attribution.feed(record))

    def packer(self) -> Packer | None:
        """Return what packs many records; None if they are changed, or placed at the end."""
        is_changing = self._attribution is not None or self._redactor is not None
        return None if is_changing or self._headless else self.encoder.packer()

    def close(self) -> None:
        """Write held-back records to the sink, which stays open, and report what was left out."""
        if self._attribution is not None:
            self._put(self._attribution.finish())
        super().close()
        if self._redactor is not None:
            for what, count in self._redactor.counts.items():
                self._report(rules.REDACTED, f"{count} {what}", count)
            for key in self._redactor.absent:
                self._report(rules.KEY_NOT_THERE, key)
        if self._attribution is not None:
            severity = Severity.WARNING if self._attribution.to == "none" else None
            for what, count in self._attribution.lost.items():
                what_is_lost = f"{count} {what}"
                self._report(rules.NO_ROOM_FOR_ATTRIBUTION, what_is_lost, count, severity)

    def _report(
        self, rule: Rule, value: str, times: int = 1, severity: Severity | None = None
    ) -> None:
        if times:
            self._diagnostics.add(rule, value=value, times=times, severity=severity)

    def _put(self, records: Iterable[LogFileRecord]) -> None:
        for record in records:
            redacted: LogFileRecord | None = record
            if self._redactor is not None:
                redacted = self._redactor.redact(record)
            if redacted is None:
                continue
            data = self.encoder.encode(redacted)
            if self._headless:
                self._headless = False
                if not isinstance(redacted, StreamHeader | Damaged):
                    self.put(StreamHeader().pack())
            self.put(data)


def open_any_writer(
    format: str, sink: Sink, options: Mapping[str, Any], diagnostics: Diagnostics
) -> LogRewriter:
    """Open the writer of a log format; that of a ring assembles its image at the end.

    ``redact_keys`` and ``redact_pattern`` select the data to remove; for structured records,
    ``attribution`` the place of attribution (keep, manifest, in_record, none). Raises UsageError
    for an invalid value.
    """
    to = options.get("attribution") or "keep"
    attribution = None
    if to != "keep":
        attribution = AttributionConverter(to)
    redactor = Redactor.of(options)
    return LogRewriter(sink, format, diagnostics, attribution=attribution, redactor=redactor)


open_writer, open_legacy_writer, open_stream_writer, open_ring_writer = (
    partial(open_any_writer, form) for form in FORMATS
)


def is_plain(options: Mapping[str, Any]) -> bool:
    """Return whether a writer's options leave records as they are."""
    return all(value in {"keep", "", True} for value in options.values())
