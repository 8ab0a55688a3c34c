"""Records of the log formats as lossless objects, and their JSON.

``format.py`` declares them; here are entries of rings, which may hold a record, and what holds
none. ``frames.py`` reads records from bytes, ``entries.py`` gives their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from fx_log import rules
from fx_log.format import Attribution, LegacyPacket, LogRecord, RingFrame, RingHeader, StreamHeader
from fxframework.kit.json_fields import JsonFields
from fxframework.kit.lossless import DamagedRecord, LosslessRecord, record_of_json, without_raw

LogFileRecord = LosslessRecord
"""A record of any log format."""


class RawOnly:
    """Base of records without fields."""

    record: ClassVar[str]

    def pack(self) -> bytes:
        """Raise WriteRefusedError."""
        raise without_raw(self.record, rules.RAW_ONLY)


@attrs.define(kw_only=True)
class RingEntry(LosslessRecord):
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
        log_json: dict[str, Any] = {}
        self.log.show(log_json)
        if self.log.raw is not None:
            log_json["raw"] = self.log.raw.hex()
        out["log"] = log_json
        if self.payload:
            out["trailing_hex"] = self.payload.hex()

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields of a JSON object; ``length`` follows from the rest."""
        form.used.add("length")
        values: dict[str, Any] = {"tag": form.number("tag")}
        if "log" not in form:
            return values | {"payload": form.octets("payload_hex")}
        log_json = form.need("log")
        if not isinstance(log_json, Mapping):
            raise form.wrong("log", "an object")
        log_form = JsonFields(f"{form.what}, log", log_json, rules.REFUSALS)
        log = LogRecord(**LogRecord.parse(log_form))
        if "raw" in log_form:
            log.raw = log_form.octets("raw")
        log_form.finish()
        values["log"] = log
        if "trailing_hex" in form:
            values["payload"] = form.octets("trailing_hex")
        return values

    def pack(self) -> bytes:
        """Return the entry's bytes with padding.

        Raises WriteRefusedError for a value that does not fit.
        """
        return RingFrame(tag=self.tag, payload=self._payload()).pack()


@attrs.define(kw_only=True)
class Padding(RawOnly, LosslessRecord):
    """``nbytes`` zero bytes, in place of a record or in the unused space of a ring."""

    record: ClassVar[str] = "padding"


@attrs.define(kw_only=True)
class Damaged(RawOnly, DamagedRecord):
    """Bytes that contain no sound record; ``raw`` may be a view of the file."""


_KINDS: dict[str, type[LosslessRecord]] = {
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


def from_json(given: Any) -> LogFileRecord:
    """Return the record of an object of record JSON.

    ``offset`` and ``nbytes`` are kept if they are numbers; ``nbytes`` is the length of padding.
    Raises WriteRefusedError: NO_SUCH_NAME for an unknown record, INVALID_FIELDS for a missing or
    unknown field, WRONG_TYPE and OUT_OF_RANGE for a value of the wrong kind or size.
    """
    return record_of_json(given, _KINDS, "a log", rules.REFUSALS)
