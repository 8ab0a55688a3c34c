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

``DRUMS.reader`` and ``DRUMS.writer`` are ordinary descriptors. Modules, by what they are for:

* Declarations: ``fields`` and others (kinds of fields), ``records``, ``families`` and ``shape``
  (classes of records), ``expressions`` (lengths and conditions), ``format``, ``plugins``.
* One record: ``one`` and ``cursor`` read and write it, ``in_json`` shows it, ``walk`` reads one
  after another. ``state`` has what earlier records say about later ones.
* Bytes to columns, thousands of records at a time (docs/blocks.md): ``framing`` finds where records
  are (``contents``: by what fills them), ``plans`` says in which order to read their classes,
  ``many`` reads the fields of a class, ``runs`` puts this together, ``findings`` and ``cells`` put
  findings and rows in order, ``blocks`` reads a file in this way, and ``capture`` has its tables.
* Columns to something else: ``lines`` (record JSON), ``objects``, ``verbs`` (salvage, parts,
  merging).
* Record JSON to bytes: ``packing``, ``json_shapes`` and ``groups`` by columns, ``encoder`` one
  record at a time.

Records that cannot be declared are read by a ``PieceCapture`` of ``fxframework.kit``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fxframework.kit.lazy import lazy_names

if TYPE_CHECKING:
    from fxframework.wire.columns import Rows
    from fxframework.wire.cursor import AT, SIZE
    from fxframework.wire.declarations import *
    from fxframework.wire.families import OTHER
    from fxframework.wire.format import Format
    from fxframework.wire.plugins import reader, writer
    from fxframework.wire.records import Part, Record

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
        "fxframework.wire.declarations": " ".join(__all__),  # but for these:
        "fxframework.wire.columns": "Rows",
        "fxframework.wire.cursor": "AT SIZE",
        "fxframework.wire.families": "OTHER",
        "fxframework.wire.format": "Format",
        "fxframework.wire.plugins": "reader writer",
        "fxframework.wire.records": "Part Record",
    },
)
