"""Records of the log formats as lossless objects, and their JSON.

`arguments.py` has the arguments of structured records, `decoder.py` reads records from bytes,
`entries.py` gives their meaning. Times are in nanoseconds, sizes and offsets in bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
from tests.reference.log import layout as wire
from tests.reference.log.arguments import (
    I64_MAX,
    I64_MIN,
    Argument,
    checked,
    encoded,
)

from fx_log import rules
from fxframework.errors import refusal
from fxframework.io.words import U64_MAX, WORD, pad8
from fxframework.kit.json_fields import show_text
from fxframework.kit.lossless import DamagedRecord, LosslessRecord

__all__ = [
    "Attribution",
    "Damaged",
    "Find",
    "LegacyPacket",
    "LogFileRecord",
    "LogRecord",
    "Padding",
    "RingEntry",
    "RingHeader",
    "StreamHeader",
]

Find = Callable[..., None]
"""Receives a finding, as ``Found``: rule, byte offset, and a value where the rule shows one."""

U32_MAX = (1 << 32) - 1
_TWO = struct.Struct("<QQ")
_PACKET = struct.Struct("<QQqiI")
_SUFFIX = struct.Struct("<IIQ")
_LENGTH = struct.Struct("<I")


@attrs.define(kw_only=True)
class LogFileRecord(LosslessRecord):
    """Base class of the records of all log formats."""

    def pack(self) -> bytes:
        """Return the bytes of the fields; ``raw`` is not used.

        Raises WriteRefusedError for a value that the format cannot hold.
        """
        raise refusal(rules.RAW_ONLY, f"{self.record}: can only be written from its raw bytes")


@attrs.define(kw_only=True)
class LogRecord(LogFileRecord):
    """A structured log record (logs-encoding, Records)."""

    record: ClassVar[str] = "log"

    timestamp: int
    """Nanoseconds, signed; the bytes do not name the clock."""
    severity: int
    """The severity byte."""
    tag_bits: int = 0
    """Tag and control bit, 32 bits."""
    args: tuple[Argument, ...] = ()
    suffix: Attribution | None = attrs.field(default=None, eq=False)
    """The attribution that follows the record, if suffixes are read."""

    @property
    def ns(self) -> int:
        """Time of the record, in ns."""
        return self.timestamp

    @property
    def control(self) -> bool:
        """Whether this is a control record: a manifest, or a count of lost logs."""
        return bool(self.tag_bits & wire.CONTROL)

    def show(self, out: dict[str, Any]) -> None:
        """Add the fields to a JSON object."""
        out["timestamp"] = self.timestamp
        out["severity"] = self.severity
        out["tag_bits"] = self.tag_bits
        out["args"] = [argument.to_json() for argument in self.args]

    def pack(self) -> bytes:
        """Return the bytes of the fields.

        Raises WriteRefusedError: OUT_OF_RANGE for a number that does not fit, STRING_TOO_LONG for a
        string that is too long, TOO_LARGE for a record that is too long.
        """
        header = wire.RECORD_TYPE
        header |= checked("log", "tag_bits", self.tag_bits, 0, U32_MAX) << wire.TAG_BITS.low
        header |= checked("log", "severity", self.severity, 0, 255) << wire.SEVERITY.low
        time = checked("log", "timestamp", self.timestamp, I64_MIN, I64_MAX) & U64_MAX
        rest = b"".join([argument.pack("log") for argument in self.args])
        words = wire.MIN_RECORD_WORDS + len(rest) // WORD
        if words > wire.MAX_RECORD_WORDS:
            raise refusal(
                rules.TOO_LARGE,
                f"log: needs {words} words; a record has at most {wire.MAX_RECORD_WORDS}",
            )
        return _TWO.pack(header | words << wire.SIZE.low, time) + rest


@attrs.define(kw_only=True)
class Attribution(LogFileRecord):
    """The attribution of the preceding record: the suffix of 2025."""

    record: ClassVar[str] = "attribution"

    moniker: str
    url: str
    rolled_out: int = 0
    """Number of logs that rolled out of the buffer before that record."""
    row_offset: int | None = attrs.field(default=None, eq=False)
    """Offset of that record; both are selected together (``Window.records``)."""

    def show(self, out: dict[str, Any]) -> None:
        """Add the fields to a JSON object."""
        show_text(out, "moniker", self.moniker)
        show_text(out, "url", self.url)
        out["rolled_out"] = self.rolled_out

    def pack(self) -> bytes:
        """Return the bytes of the fields; WriteRefusedError for a value that does not fit."""
        moniker = encoded("attribution", "moniker", self.moniker, U32_MAX)
        url = encoded("attribution", "url", self.url, U32_MAX)
        rolled_out = checked("attribution", "rolled_out", self.rolled_out, 0, U64_MAX)
        return _SUFFIX.pack(len(moniker), len(url), rolled_out) + pad8(moniker) + pad8(url)


@attrs.define(kw_only=True)
class LegacyPacket(LogFileRecord):
    """A legacy packet, the datagram of loggers before structured records."""

    record: ClassVar[str] = "legacy_packet"

    pid: int
    tid: int
    timestamp: int
    """Nanoseconds of the monotonic clock."""
    severity: int
    """Signed, as on the wire."""
    dropped_logs: int = 0
    tags: tuple[str, ...] = ()
    message: str = ""

    @property
    def ns(self) -> int:
        """Time of the packet, in ns."""
        return self.timestamp

    @property
    def raw_severity(self) -> int:
        """The severity clamped to a byte, as current readers do."""
        return min(max(self.severity, 0), 255)

    def show(self, out: dict[str, Any]) -> None:
        """Add the fields to a JSON object."""
        out["pid"] = self.pid
        out["tid"] = self.tid
        out["timestamp"] = self.timestamp
        out["severity"] = self.severity
        out["raw_severity"] = self.raw_severity
        out["dropped_logs"] = self.dropped_logs
        tags: list[dict[str, Any]] = []
        for tag in self.tags:
            shown: dict[str, Any] = {}
            show_text(shown, "tag", tag)
            tags.append(shown)
        out["tags"] = [shown["tag"] for shown in tags]
        if any(len(shown) > 1 for shown in tags):
            out["tags_bytes_hex"] = [shown.get("tag_bytes_hex") for shown in tags]
        show_text(out, "message", self.message)

    def pack(self) -> bytes:
        """Return the packet of the fields.

        Raises WriteRefusedError: WRONG_TYPE for a zero byte in the message or an empty tag,
        OUT_OF_RANGE for a number that does not fit, STRING_TOO_LONG for a tag over 63 bytes,
        TOO_MANY for more than five tags, TOO_LARGE for a packet over 32,768 bytes.
        """
        what = self.record
        if len(self.tags) > wire.MAX_TAGS:
            raise refusal(
                rules.TOO_MANY, f"{what}: {len(self.tags)} tags; at most {wire.MAX_TAGS} fit"
            )
        header = _PACKET.pack(
            checked(what, "pid", self.pid, 0, U64_MAX),
            checked(what, "tid", self.tid, 0, U64_MAX),
            checked(what, "timestamp", self.timestamp, I64_MIN, I64_MAX),
            checked(what, "severity", self.severity, -(1 << 31), (1 << 31) - 1),
            checked(what, "dropped_logs", self.dropped_logs, 0, U32_MAX),
        )
        tags = b""
        for tag in self.tags:
            data = encoded(what, "a tag", tag, wire.MAX_TAG_BYTES)
            if not data:
                raise refusal(rules.WRONG_TYPE, f"{what}: a tag is empty, which ends the tags")
            tags += bytes([len(data)]) + data
        message = encoded(what, "message", self.message, U32_MAX)
        if b"\0" in message:
            raise refusal(rules.WRONG_TYPE, f"{what}: the message holds a zero byte, which ends it")
        packet = header + tags + b"\0" + message + b"\0"
        if len(packet) > wire.MAX_PACKET:
            raise refusal(
                rules.TOO_LARGE,
                f"{what}: {len(packet)} bytes; a packet has at most {wire.MAX_PACKET}",
            )
        return packet


@attrs.define(kw_only=True)
class StreamHeader(LogFileRecord):
    """The header of a container of legacy packets (`layout`)."""

    record: ClassVar[str] = "stream_header"

    version: int = wire.STREAM_VERSION

    def show(self, out: dict[str, Any]) -> None:
        """Add the fields to a JSON object."""
        out["version"] = self.version

    def pack(self) -> bytes:
        """Return the header's bytes."""
        return wire.STREAM_MAGIC + _LENGTH.pack(self.version) + bytes(4)


@attrs.define(kw_only=True)
class RingHeader(LogFileRecord):
    """The first page of a ring."""

    record: ClassVar[str] = "ring_header"

    head: int
    """Bytes ever written."""
    tail: int
    """Bytes ever discarded."""

    def show(self, out: dict[str, Any]) -> None:
        """Add the fields to a JSON object."""
        out["head"] = self.head
        out["tail"] = self.tail

    def pack(self) -> bytes:
        """Return the page's bytes."""
        what = self.record
        words = (
            checked(what, "head", self.head, 0, U64_MAX),
            checked(what, "tail", self.tail, 0, U64_MAX),
        )
        return _TWO.pack(*words).ljust(wire.RING_PAGE, b"\0")

    def sound(self, capacity: int) -> bool:
        """Return whether head and tail are valid in a ring of ``capacity`` bytes."""
        return (
            not (self.head % WORD or self.tail % WORD or capacity % WORD)
            and 0 <= self.head - self.tail <= capacity
        )


@attrs.define(kw_only=True)
class RingEntry(LogFileRecord):
    """An entry of a ring: the kernel's header, and the payload of a component."""

    record: ClassVar[str] = "ring_entry"

    tag: int
    log: LogRecord | None = None
    """The record in the payload, or None."""
    payload: bytes = b""
    """The payload without a record, or the bytes after the record."""

    @property
    def ns(self) -> int | None:
        """Time of the record in ns, or None."""
        return None if self.log is None else self.log.timestamp

    @property
    def length(self) -> int:
        """Length of the payload in bytes."""
        return len(self._payload())

    def _payload(self) -> bytes:
        if self.log is None:
            return self.payload
        raw = self.log.raw
        return (self.log.pack() if raw is None else bytes(raw)) + self.payload

    def show(self, out: dict[str, Any]) -> None:
        """Add the fields to a JSON object."""
        out["tag"] = self.tag
        out["length"] = self.length
        if self.log is None:
            out["payload_hex"] = self.payload.hex()
            return
        inner: dict[str, Any] = {}
        self.log.show(inner)
        if self.log.raw is not None:
            inner["raw"] = self.log.raw.hex()
        out["log"] = inner
        if self.payload:
            out["trailing_hex"] = self.payload.hex()

    def pack(self) -> bytes:
        """Return the entry's bytes with padding.

        Raises WriteRefusedError for a value that does not fit.
        """
        payload = self._payload()
        tag = checked(self.record, "tag", self.tag, 0, U64_MAX)
        entry = pad8(_TWO.pack(tag, len(payload)) + payload)
        if len(entry) > wire.RING_MAX_ENTRY:
            raise refusal(
                rules.TOO_LARGE, f"{self.record}: {len(entry)} bytes, at most {wire.RING_MAX_ENTRY}"
            )
        return entry


@attrs.define(kw_only=True)
class Padding(LogFileRecord):
    """``nbytes`` zero bytes, in place of a record or in the unused space of a ring."""

    record: ClassVar[str] = "padding"


@attrs.define(kw_only=True)
class Damaged(DamagedRecord, LogFileRecord):
    """Bytes that contain no sound record; ``raw`` may be a view of the file."""


_KINDS: dict[str, type[LogFileRecord]] = {
    kind.record: kind
    for kind in (
        LogRecord,
        Attribution,
        LegacyPacket,
        StreamHeader,
        RingHeader,
        RingEntry,
        Padding,
        Damaged,
    )
}
