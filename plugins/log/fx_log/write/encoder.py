"""The encoder: records, or their JSON, as bytes of a log format."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import attrs
import numpy as np

from fx_log import format as wire
from fx_log import rules
from fx_log.read.frames import FramedFile, Records
from fx_log.read.records import (
    Attribution,
    Damaged,
    LegacyPacket,
    LogFileRecord,
    LogRecord,
    Padding,
    RingEntry,
    RingHeader,
    StreamHeader,
    from_json,
)
from fxframework.errors import refusal
from fxframework.io.limits import Limits
from fxframework.io.words import WORD
from fxframework.kit.lossless import padding_of
from fxframework.wire.packing import Packer
from fxframework.wire.records import Record
from fxframework.wire.state import State

__all__ = ["RecordEncoder"]


class RecordEncoder:
    """Encodes records, or their JSON, as bytes of a log format.

    ``raw`` is written if it decodes to the record's fields, so that unedited records keep their
    bytes and edits take effect. The records of a ring are held back until ``close``, which places
    them.
    """

    def __init__(self, form: str) -> None:
        self.form = form
        self._ring = _RingImage() if form == "log-ring" else None

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
        layouts = {cls.record: cls.layout for cls in _RECORDS[self.form] if issubclass(cls, Record)}
        if self._ring is not None:
            return None
        framed = self.form == "log-legacy-stream"
        if framed:
            del layouts[StreamHeader.record]
        return Packer(
            lambda given: layouts.get(str(given.get("record"))),
            State(),
            framed=wire.STREAM_LENGTH if framed else 0,
        )

    def close(self) -> bytes:
        """Return the bytes that were held back."""
        return b"" if self._ring is None else self._ring.image()

    def _bytes(self, record: LogFileRecord) -> bytes:
        if isinstance(record, Padding):
            return padding_of(record.nbytes, rules.OUT_OF_RANGE)
        if isinstance(record, Damaged):
            return bytes(record.raw or b"")
        if type(record) not in _RECORDS[self.form]:
            raise refusal(rules.NO_SUCH_NAME, f"a {self.form} file has no record {record.record!r}")
        if isinstance(record, RingEntry):
            record = _checked_payload(record)
        if record.raw is not None and self.decoded(record, bytes(record.raw)) == record:
            return bytes(record.raw)
        data = record.pack()
        if self.form == "log-legacy-stream" and isinstance(record, LegacyPacket):
            return wire.PacketLength(length=len(data)).pack() + data
        return data

    def decoded(self, record: LogFileRecord, data: bytes) -> LogFileRecord | None:
        """Return the record that these bytes are; None unless exactly one."""
        before: list[LogFileRecord] = []
        if isinstance(record, Attribution):
            before = [LogRecord(timestamp=0, severity=0)]
        elif isinstance(record, RingEntry):
            before = [RingHeader(head=len(data), tail=0)]
        elif isinstance(record, LegacyPacket) and self.form == "log-legacy-stream":
            before = [StreamHeader()]
        with_suffix = {"suffix": isinstance(record, Attribution)}
        whole = b"".join(one.pack() for one in before) + data
        file = FramedFile(self.form, np.frombuffer(whole, np.uint8), Limits(), with_suffix)
        found = list(islice(Records(file), 3))
        is_one = len(found) == len(before) + 1 and found[-1].nbytes == len(data)
        return found[-1] if is_one else None


_RECORDS: Mapping[str, frozenset[type[LogFileRecord]]] = {
    "log": frozenset({LogRecord, Attribution}),
    "log-legacy": frozenset({LegacyPacket}),
    "log-legacy-stream": frozenset({StreamHeader, LegacyPacket}),
    "log-ring": frozenset({RingHeader, RingEntry}),
}
"""Records of each format, besides padding and damage."""


def _checked_payload(entry: RingEntry) -> RingEntry:
    """Return the entry, without raw bytes of its record that do not belong to it."""
    log = entry.log
    if log is None or log.raw is None:
        return entry
    if RecordEncoder("log").decoded(log, bytes(log.raw)) == log:
        return entry
    return attrs.evolve(entry, log=log.edited())


class _RingImage:
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
            self._header, self._page = record, data
        elif isinstance(record, Padding) or (
            isinstance(record, Damaged) and record.code == rules.STALE_BYTES.code
        ):
            self._unused.append(data)
        else:
            self._used.append(data)

    def image(self) -> bytes:
        """Return the image. A head that does not match the entries is corrected."""
        used, unused = b"".join(self._used), b"".join(self._unused)
        header = self._header
        if header is None:
            return used + unused
        capacity = len(used) + len(unused)
        ordered = header.tail <= header.head and not header.tail % WORD
        edited = self._used or self._unused
        if edited and ordered and not self._invalid and header.head - header.tail != len(used):
            header = header.edited(head=header.tail + len(used))
            self._page = header.pack()
            pages = max(-(-capacity // wire.RING_PAGE) * wire.RING_PAGE, wire.RING_MINIMUM)
            unused += bytes(pages - capacity)
            capacity = pages
        line = used + unused
        start = header.tail % capacity if capacity and header.sound(capacity) else 0
        return self._page + line[capacity - start :] + line[: capacity - start]
