"""Records, or their JSON, encoded as the bytes of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from fx_xray import layout as wire
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
    refusal,
)


class RecordEncoder:
    """Writes records, or their JSON, as the bytes of one of the formats.

    The header of the file comes first: it says the version and the byte order, which
    ``byte_order`` says instead where it is not empty. ``raw`` of a header counts where it decodes
    to the fields that the record has, so that what was not edited comes out as it was, and an edit
    takes effect.
    """

    def __init__(self, form: str, *, byte_order: str = "") -> None:
        self.form = form
        self._byte_order = asked_order({"byte_order": byte_order})
        self._dialect: Dialect | None = None

    def encode(self, record: XrayRecord | Mapping[str, Any]) -> bytes:
        """The record's bytes. Raises WriteRefusedError (FXX0501 to FXX0505), nothing changed."""
        if not isinstance(record, XrayRecord):
            record = from_json(record, self.form)
        if type(record) is not KINDS[self.form].get(record.record):
            raise refusal("FXX0501", f"a {self.form} trace has no record {record.record!r}")
        if isinstance(record, FileHeader):
            return self._header(record)
        if isinstance(record, Damaged):
            return record.pack()
        if self._dialect is None:
            raise refusal("FXX0501", f"{record.record}: a file_header must come first")
        if isinstance(record, Function) and record.raw is not None:
            return self._unaligned(record, self._dialect)
        return record.pack(self._dialect)

    def close(self) -> bytes:
        """What was held back: nothing."""
        return b""

    def _header(self, record: FileHeader) -> bytes:
        if self._dialect is not None:
            raise refusal("FXX0501", f"{record.record}: there is one already")
        if self._byte_order:
            record = attrs.evolve(record, byte_order=self._byte_order)
        if self.form == BASIC_FORM and record.byte_order != "little":
            record = attrs.evolve(record, byte_order="big")
        data = record.pack()
        if record.raw is not None:
            raw = bytes(record.raw)
            if len(raw) == wire.HEADER_BYTES and _says(raw, record, self.form):
                data = raw
        self._dialect = Dialect(self.form, record.version, record.byte_order)
        return data

    @staticmethod
    def _unaligned(record: Function, dialect: Dialect) -> bytes:
        """A function record whose word has a bit that no field has."""
        data = record.pack(dialect)
        raw = bytes(record.raw or b"")
        if len(raw) == len(data) and raw[:3] + bytes([raw[3] & ~1]) + raw[4:] == data:
            return raw
        return data


def _says(raw: bytes, record: FileHeader, form: str) -> bool:
    """Whether the bytes of a header decode to what the record says."""
    found = read_header(raw, form, record.byte_order)
    return found is not None and attrs.evolve(found, raw=None) == attrs.evolve(record, raw=None)
