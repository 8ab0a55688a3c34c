"""The encoder: records, or their JSON, as bytes of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from fx_xray import layout as wire
from fx_xray import rules
from fx_xray.read.header import asked_order, read_header
from fx_xray.read.records import (
    BASIC_FORM,
    KINDS,
    Damaged,
    Dialect,
    FileHeader,
    Function,
    XrayRecord,
    from_json,
)
from fxframework.errors import refusal
from fxframework.kit.lossless import Alone


class RecordEncoder:
    """Encodes records, or their JSON, in one of the formats.

    The file header comes first: it gives the version and the byte order, unless ``byte_order`` is
    set. ``raw`` of a header is written if it decodes to the record's fields, so that an unedited
    header keeps its bytes and edits take effect.
    """

    def __init__(self, form: str, *, byte_order: str = "") -> None:
        self.form = form
        self._byte_order = asked_order({"byte_order": byte_order})
        self._dialect: Dialect | None = None

    def encode(self, record: XrayRecord | Mapping[str, Any]) -> bytes:
        """Return the record's bytes.

        Raises WriteRefusedError without side effects.
        """
        if not isinstance(record, XrayRecord):
            record = from_json(record, self.form)
        if type(record) is not KINDS[self.form].get(record.record):
            raise refusal(
                rules.NO_SUCH_NAME, f"a {self.form} trace has no record {record.record!r}"
            )
        if isinstance(record, FileHeader):
            return self._header(record)
        if isinstance(record, Damaged):
            return record.pack()
        if self._dialect is None:
            raise refusal(rules.NO_SUCH_NAME, f"{record.record}: a file_header must come first")
        if isinstance(record, Function) and record.raw is not None:
            return self._unaligned(record, self._dialect)
        return record.pack(self._dialect)

    def alone(self) -> Alone | None:
        """Return how records are encoded after the header; None before it."""
        return None if self._dialect is None else Alone(self.encode)

    def close(self) -> bytes:
        """Return no bytes: nothing is held back."""
        return b""

    def _header(self, record: FileHeader) -> bytes:
        if self._dialect is not None:
            raise refusal(rules.NO_SUCH_NAME, f"{record.record}: the trace has one already")
        if self._byte_order:
            record = attrs.evolve(record, byte_order=self._byte_order)
        if self.form == BASIC_FORM and record.byte_order != "little":
            record = attrs.evolve(record, byte_order="big")
        data = record.pack()
        if record.raw is not None:
            raw = bytes(record.raw)
            if len(raw) == wire.HEADER_BYTES and _decodes_to(raw, record, self.form):
                data = raw
        self._dialect = Dialect(self.form, record.version, record.byte_order)
        return data

    @staticmethod
    def _unaligned(record: Function, dialect: Dialect) -> bytes:
        """Return the bytes of a function record whose word has an undefined bit set."""
        data = record.pack(dialect)
        raw = bytes(record.raw or b"")
        if len(raw) == len(data) and raw[:3] + bytes([raw[3] & ~1]) + raw[4:] == data:
            return raw
        return data


def _decodes_to(raw: bytes, record: FileHeader, form: str) -> bool:
    """Return whether the bytes of a header decode to the record."""
    found = read_header(raw, form, record.byte_order)
    return found is not None and attrs.evolve(found, raw=None) == attrs.evolve(record, raw=None)
