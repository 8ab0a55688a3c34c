"""The encoder: records, or their JSON, as bytes of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from fx_xray import format as wire
from fx_xray import rules
from fx_xray.format import BASIC_FORM, Damaged, Dialect, FileHeader, Padding, Unknown, XrayRecord
from fx_xray.read.header import asked_order, read_header
from fx_xray.rules import RULES
from fxframework.errors import WriteRefusedError, refusal
from fxframework.kit.json_fields import unfit
from fxframework.kit.lossless import Encoder, padding_of, record_of_json
from fxframework.wire.cursor import RefusalError
from fxframework.wire.packing import Packer
from fxframework.wire.records import Record
from fxframework.wire.rules import NO_SUCH_NAME
from fxframework.wire.state import State

ANYWHERE: tuple[type[XrayRecord], ...] = (FileHeader, Damaged)


def kinds_of(form: str, state: State) -> Mapping[str, type[XrayRecord]]:
    """Return the records of a format by name, in the version of a state."""
    family = Dialect(form).records.layout.family
    classes = list(ANYWHERE)
    classes += [member for member in family.members if member.layout.fits(state.registers)]
    if form != BASIC_FORM:
        classes += [Unknown, Padding]
    return {record_class.record: record_class for record_class in classes}


def packed(record: XrayRecord, dialect: Dialect, state: State | None = None) -> bytes:
    """Return the bytes that the fields of a record give; its ``raw`` is not used.

    ``state`` is that of the dialect, which who packs many records makes once.
    Raises WriteRefusedError where the format, or its version, cannot hold a value.
    """
    if isinstance(record, Unknown):
        return _unknown(record, dialect)
    if isinstance(record, Padding):
        return _space(record)
    if not isinstance(record, Record):
        return bytes(record.raw or b"")
    state = state or dialect.state()
    if not record.layout.fits(state.registers):
        version = f"version {dialect.version} has other fields"
        raise refusal(rules.INVALID_FIELDS, f"{record.record}: {version}")
    try:
        return record.pack(None if isinstance(record, FileHeader) else state)
    except RefusalError as problem:
        raise refused(type(record), problem) from None


def refused(record: type[Record], problem: RefusalError) -> WriteRefusedError:
    """Return the error for a record that its declaration refuses."""
    rule = RULES.numbered(problem.number - NO_SUCH_NAME + rules.NO_SUCH_NAME)
    return refusal(rule, f"{record.record}: {problem.message}")


def _unknown(record: Unknown, dialect: Dialect) -> bytes:
    data = bytes(record.raw or b"")
    if len(data) != wire.METADATA_BYTES:
        message = f"{record.record}: raw has {len(data)} bytes, not {wire.METADATA_BYTES}"
        raise refusal(rules.WRONG_SIZE, message)
    least_type = len(wire.MetadataKind)
    greatest_type = wire.NewBuffer.layout.place("_kind").mask
    if not least_type <= record.type <= greatest_type:
        raise unfit(
            rules.OUT_OF_RANGE, record.record, "type", record.type, least_type, greatest_type
        )
    return bytes([dialect.first_byte(record.type)]) + data[1:]


def _space(record: Padding) -> bytes:
    if record.raw is not None:
        if len(record.raw) != record.nbytes:
            raise refusal(
                rules.WRONG_SIZE,
                f"{record.record}: raw has {len(record.raw)} bytes, and nbytes is {record.nbytes}",
            )
        return bytes(record.raw)
    return padding_of(record.nbytes, rules.OUT_OF_RANGE)


class RecordEncoder(Encoder):
    """Encodes records, or their JSON, in one of the formats.

    The file header comes first: it gives the version and the byte order, unless ``byte_order`` is
    set. ``raw`` is written if it decodes to the record's fields, so that unedited records keep
    their bytes and edits take effect.
    """

    def __init__(self, form: str, *, byte_order: str = "") -> None:
        self.form = form
        self._byte_order = asked_order({"byte_order": byte_order})
        self._begun = False
        self._set(Dialect(form))

    def _set(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._state = dialect.state()
        self._kinds = kinds_of(self.form, self._state)

    def encode(self, record: XrayRecord | Mapping[str, Any]) -> bytes:
        """Return the record's bytes.

        Raises WriteRefusedError without side effects.
        """
        if not isinstance(record, XrayRecord):
            record = record_of_json(record, self._kinds, f"a {self.form} trace", rules.REFUSALS)
        known_kind = self._kinds.get(record.record)
        family = getattr(getattr(record, "layout", None), "family", None)
        if known_kind is None or family is not getattr(
            getattr(known_kind, "layout", None), "family", None
        ):
            raise refusal(
                rules.NO_SUCH_NAME, f"a {self.form} trace has no record {record.record!r}"
            )
        if isinstance(record, FileHeader):
            return self._header(record)
        if not self._begun and not isinstance(record, Damaged):
            raise refusal(rules.NO_SUCH_NAME, f"{record.record}: a file_header must come first")
        if isinstance(record, Record) and record.raw is not None:
            raw = bytes(record.raw)
            if record.decoded(raw, self._state) == record:
                return raw
        return packed(record, self._dialect, self._state)

    def packer(self) -> Packer | None:
        """Return what packs many records behind the header; None before it."""
        if not self._begun:
            return None
        layouts = {
            name: cls.layout for name, cls in self._kinds.items()
            if issubclass(cls, Record) and cls is not FileHeader
        }  # fmt: skip
        return Packer(lambda given: layouts.get(str(given.get("record"))), self._state)

    def _header(self, record: FileHeader) -> bytes:
        if self._begun:
            raise refusal(rules.NO_SUCH_NAME, f"{record.record}: the trace has one already")
        if self._byte_order:
            record = attrs.evolve(record, byte_order=self._byte_order)
        if self.form == BASIC_FORM and record.byte_order != "little":
            record = attrs.evolve(record, byte_order="big")
        data = packed(record, self._dialect)
        if record.raw is not None:
            raw = bytes(record.raw)
            if len(raw) == wire.HEADER_BYTES and _decodes_to(raw, record, self.form):
                data = raw
        self._begun = True
        self._set(Dialect(self.form, record.version, record.byte_order))
        return data


def _decodes_to(raw: bytes, record: FileHeader, form: str) -> bool:
    """Return whether the bytes of a header decode to the record."""
    read_back = read_header(raw, form, record.byte_order)
    if read_back is not None:
        read_back.raw = record.raw
    return read_back == record
