r"""Declared formats: a class per record, a line per field; everything else follows from it.

A *family* derives from ``Record`` and declares what every record begins with; the classes derived
from it are the records, one per kind::

    names = wire.table("name")

    class Drum(wire.Record, size=24):
        _kind = wire.kind(wire.bits(0, 7))

    class Name(Drum, kind=1):
        number: int = wire.bits(8, 23)
        text: str = wire.text(16, pad=b"\0", defines=names[number])

    class Event(Drum, kind=2):
        name: str = wire.bits(8, 23, refers=names)
        time: int = wire.i64(unit="ns")

    DRUMS = wire.Format("drums", "Drums", Drum, codes="DRUM", magic=b"DRUMS\0\1\0",
                        tables=[wire.rows("instants", Event, ts="time", name="name")])

``DRUMS.reader`` and ``DRUMS.writer`` are ordinary descriptors. Modules: ``fields`` (kinds of
fields), ``records`` (families, records, parts), ``one``, ``drafts`` and ``in_json`` (a record that
is read, written and shown), ``expressions`` (lengths and conditions), ``state`` (tables and
registers), ``format`` and ``walk`` (one record after another), ``blocks`` (many records as columns
of tables, docs/blocks.md), ``objects`` and ``lines`` (objects and record JSON from columns),
``capture``, ``encoder``, ``plugins``.
Records that cannot be declared are read by a ``PieceCapture`` of ``fxframework.kit``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxframework.kit.lazy import lazy_names

if TYPE_CHECKING:
    from fxframework.wire.columns import Rows
    from fxframework.wire.declarations import (
        AT,
        SIZE,
        always,
        bits,
        byte_order,
        byte_sum,
        byte_xor,
        checksum,
        choice,
        computed,
        crc32,
        f32,
        f64,
        field,
        finding,
        flag,
        flag_of,
        i8,
        i16,
        i32,
        i64,
        integer,
        kind,
        listed,
        number_of,
        octets,
        register,
        resume,
        rows,
        size,
        spare,
        surplus,
        table,
        text,
        texts,
        threads,
        u8,
        u16,
        u32,
        u64,
    )  # fmt: skip
    from fxframework.wire.format import Format
    from fxframework.wire.plugins import reader, writer
    from fxframework.wire.records import OTHER, Part, Record

__all__ = [
    "AT",
    "OTHER",
    "SIZE",
    "Format",
    "Part",
    "Record",
    "Rows",
    "always",
    "bits",
    "byte_order",
    "byte_sum",
    "byte_xor",
    "checksum",
    "choice",
    "computed",
    "crc32",
    "f32",
    "f64",
    "field",
    "finding",
    "flag",
    "flag_of",
    "i8",
    "i16",
    "i32",
    "i64",
    "integer",
    "kind",
    "listed",
    "number_of",
    "octets",
    "reader",
    "register",
    "resume",
    "rows",
    "size",
    "spare",
    "surplus",
    "table",
    "text",
    "texts",
    "threads",
    "u8",
    "u16",
    "u32",
    "u64",
    "writer",
]  # fmt: skip

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "fxframework.wire.declarations": "AT SIZE always bits byte_order byte_sum byte_xor "
        "checksum choice computed crc32 f32 f64 field finding flag flag_of i8 i16 i32 i64 integer "
        "kind listed number_of octets register resume rows size spare surplus table text texts "
        "threads u8 "
        "u16 u32 u64",
        "fxframework.wire.columns": "Rows",
        "fxframework.wire.format": "Format",
        "fxframework.wire.plugins": "reader writer",
        "fxframework.wire.records": "OTHER Part Record",
    },
)
