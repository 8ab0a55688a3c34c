"""`fxf explain FILE@OFFSET`: the bytes of the record there, field by field.

Fields follow from their declaration in `layout.py`; a decoder finds the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fx_xray import layout as wire
from fx_xray.layout import Field
from fx_xray.read.decoder import RecordDecoder
from fx_xray.read.records import (
    BasicArgument,
    BasicFunction,
    CustomEvent,
    Damaged,
    Dialect,
    FileHeader,
    Function,
    Metadata,
    NewCpu,
    Padding,
    TscWrap,
    TypedEvent,
    Unknown,
    XrayRecord,
)
from fx_xray.rules import RULES
from fxframework.io.source import Source
from fxframework.io.words import FieldView
from fxframework.kit.explain import Explainer, check_offset

__all__ = ["explain_basic", "explain_fdr"]

HEADER = "XRay FDR format of LLVM, Header"
FUNCTIONS = "XRay FDR format of LLVM, Function Records"
METADATA = "XRay FDR format of LLVM, Metadata Records"
BUFFERS = "XRay FDR format of LLVM, Buffer"
BASIC = "compiler-rt lib/xray, basic mode"


def explain_fdr(source: Source, offset: int) -> list[FieldView]:
    """Return the record that holds byte ``offset``, field by field in the order of the file.

    Bits are numbered from the least significant one of the number that is there. Of long
    stretches (payloads, padding, damage) the words around the byte are given. Raises UsageError
    where the file has no such byte.
    """
    return _explain("xray", source, offset)


def explain_basic(source: Source, offset: int) -> list[FieldView]:
    """Return the same for a record of basic mode."""
    return _explain("xray-basic", source, offset)


def _explain(form: str, source: Source, offset: int) -> list[FieldView]:
    check_offset(source, offset)
    dialect = Dialect(form)
    for record in RecordDecoder(form).near(source.data, offset):
        if isinstance(record, FileHeader):
            dialect = Dialect(form, record.version, record.byte_order)
        if record.offset <= offset < record.offset + record.nbytes:
            break
    return list(_Explainer(source.data, offset, dialect).views(record))


class _Explainer(Explainer):
    """Explains one record of an XRay log."""

    def __init__(self, data: Any, wanted: int, dialect: Dialect) -> None:
        super().__init__(data, wanted, order=dialect.order)
        self.dialect = dialect

    def views(self, record: XrayRecord) -> Iterator[FieldView]:
        """Return all of its fields."""
        at, end = record.offset, record.offset + record.nbytes
        if isinstance(record, FileHeader):
            return self.header()
        if isinstance(record, Function):
            return self.function(record)
        if isinstance(record, Metadata):
            return self.metadata(record)
        if isinstance(record, BasicFunction | BasicArgument):
            return self.basic(record)
        if isinstance(record, Unknown):
            return self.unknown(record)
        if isinstance(record, Damaged):
            return self.damaged(at, end, RULES[record.code])
        assert isinstance(record, Padding)  # noqa: S101 (there is no other)
        return self.stretch(at, end, "padding", BUFFERS, "space behind the end of a buffer")

    def fields(
        self, at: int, fields: Iterable[Field], section: str, **meanings: str
    ) -> Iterator[FieldView]:
        """The fields of the record at ``at``, with what they mean where more is to be said."""
        for field in fields:
            value = self.number(at + field.offset, field.nbytes)
            high = 8 * field.nbytes - 1
            meaning = meanings.get(field.name, field.doc)
            if field.signed and value >> high:
                meaning = f"{value - (2 << high)}: {meaning}"
            yield FieldView(at + field.offset, 0, high, field.name, value, meaning, section)

    def bits(
        self, at: int, nbytes: int, section: str, *parts: tuple[int, int, str, str]
    ) -> Iterator[FieldView]:
        """Parts of the number at ``at``: lowest and highest bit, name, meaning."""
        word = self.number(at, nbytes)
        for low, high, name, meaning in parts:
            value = word >> low & (1 << high - low + 1) - 1
            yield FieldView(at, low, high, name, value, meaning, section)

    def header(self) -> Iterator[FieldView]:
        """Yield the header of the file."""
        for field in wire.FILE_HEADER:
            if field.name == "flags":
                yield from self.bits(
                    field.offset,
                    field.nbytes,
                    HEADER,
                    (0, 0, "constant_tsc", "1: the counter runs at one rate"),
                    (1, 1, "nonstop_tsc", "1: the counter never stops"),
                    (2, 31, "flags", "mean nothing"),
                )
            elif field.name == "reserved":
                yield from self.stretch(field.offset, field.end, field.name, HEADER)
            else:
                yield from self.fields(0, [field], HEADER)

    def function(self, record: Function) -> Iterator[FieldView]:
        """Yield a function record."""
        at = record.offset
        one = "0: a function record"
        shifted = self.dialect.byte_order == "big"
        yield from self.bits(
            at,
            4,
            FUNCTIONS,
            *(
                (31, 31, "type", one) if shifted else (0, 0, "type", one),
                (28, 30, "kind", record.kind) if shifted else (1, 3, "kind", record.kind),
                (0, 27, "function_id", "") if shifted else (4, 31, "function_id", ""),
            ),
        )
        delta = Field("delta", 4, 4, "ticks since the record before")
        yield from self.fields(at, [delta], FUNCTIONS, delta=f"{delta.doc}{_moment(record)}")

    def kind(self, record: XrayRecord, name: str) -> Iterator[FieldView]:
        """Yield the first byte of a metadata record."""
        if self.dialect.byte_order == "big":
            parts = ((7, 7, "type"), (0, 6, "kind"))
        else:
            parts = ((0, 0, "type"), (1, 7, "kind"))
        meanings = ("1: a metadata record", name)
        yield from self.bits(
            record.offset,
            1,
            METADATA,
            *((*part, meaning) for part, meaning in zip(parts, meanings, strict=True)),
        )

    def metadata(self, record: Metadata) -> Iterator[FieldView]:
        """Yield a metadata record of a known kind, with its payload."""
        at = record.offset
        end = at + wire.METADATA_BYTES
        fields = wire.metadata_fields(record.kind, self.dialect.defined)
        meanings = {}
        if isinstance(record, NewCpu | TscWrap | CustomEvent | TypedEvent):
            meanings = {
                field.name: f"{field.doc}{_moment(record)}"
                for field in fields
                if field.name in {"tsc", "delta"}
            }
        yield from self.kind(record, record.record)
        yield from self.fields(at, fields, METADATA, **meanings)
        start = at + fields[-1].end if fields else at + 1
        yield from self.stretch(start, end, "padding", METADATA)
        yield from self.stretch(end, at + record.nbytes, "payload", METADATA)

    def unknown(self, record: Unknown) -> Iterator[FieldView]:
        """Yield a metadata record of a kind that nobody has defined."""
        at = record.offset
        yield from self.kind(record, "not defined")
        yield from self.stretch(at + 1, at + record.nbytes, "data", METADATA)

    def basic(self, record: BasicFunction | BasicArgument) -> Iterator[FieldView]:
        """Yield a record of basic mode."""
        at = record.offset
        kind = getattr(record, "kind", "")
        moment = f"absolute time stamp{_moment(record)}"
        for field in wire.BASIC_RECORDS[record.type]:
            if at < record.offset + field.offset:
                yield from self.stretch(at, record.offset + field.offset, "padding", BASIC)
            yield from self.fields(record.offset, [field], BASIC, kind=kind, tsc=moment)
            at = record.offset + field.end
        yield from self.stretch(at, record.offset + wire.BASIC_BYTES, "padding", BASIC)


def _moment(
    record: Function | NewCpu | TscWrap | CustomEvent | TypedEvent | BasicFunction | BasicArgument,
) -> str:
    """Return the time of a record, to go behind what a field means."""
    if record.tsc is None:
        return "; no NewCPUId says from when"
    return f": tsc {record.tsc}, {record.ns} ns"
