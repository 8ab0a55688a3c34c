"""`fxf explain FILE@OFFSET`: the bytes of the record there, field by field, as it is declared."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import attrs

from fx_xray.format import (
    FORMS,
    METADATA_SECTION,
    Damaged,
    Dialect,
    Fdr,
    FileHeader,
    Unknown,
    XrayRecord,
    header_state,
)
from fx_xray.read.decoder import RecordDecoder
from fx_xray.rules import RULES
from fxframework.io.source import Source
from fxframework.io.words import FieldView
from fxframework.kit.explain import Explainer, check_offset
from fxframework.wire.cursor import Cursor
from fxframework.wire.records import Record

BUFFERS = "XRay FDR format of LLVM, Buffer"


def explain(form: str, source: Source, offset: int) -> list[FieldView]:
    """Return the record that holds byte ``offset``, field by field in the order of the file.

    Bits are numbered from the least significant one of the number that is there. Of long
    stretches (payloads, padding, damage) the words around the byte are given. Raises UsageError
    where the file has no such byte.
    """
    check_offset(source, offset)
    dialect = Dialect(form)
    for record in RecordDecoder(form).near(source.data, offset):
        if isinstance(record, FileHeader):
            dialect = Dialect(form, record.version, record.byte_order)
        if record.offset <= offset < record.offset + record.nbytes:
            break
    return list(_views(source, offset, record, dialect))


explain_fdr, explain_basic = (partial(explain, form) for form in FORMS)


def _views(
    source: Source, wanted: int, record: XrayRecord, dialect: Dialect
) -> Iterator[FieldView]:
    at = record.offset
    end = record.offset + record.nbytes
    explainer = Explainer(source.data, wanted, order=dialect.order)
    if isinstance(record, Record):
        yield from _fields(explainer, record, dialect)
    elif isinstance(record, Unknown):
        views: list[FieldView] = []
        cursor = Cursor(explainer.data, at, end, dialect.state(), views)
        cursor.section = METADATA_SECTION
        Fdr.layout.read(cursor)
        yield from views
        yield from explainer.stretch(at + 1, end, "data", METADATA_SECTION)
    elif isinstance(record, Damaged):
        yield from explainer.damaged(at, end, RULES[record.code])
    else:
        meaning = "space behind the end of a buffer"
        yield from explainer.stretch(at, end, "padding", BUFFERS, meaning)


def _fields(explainer: Explainer, record: Record, dialect: Dialect) -> Iterator[FieldView]:
    views: list[FieldView] = []
    state = dialect.state()
    if isinstance(record, FileHeader):
        state = header_state(record.byte_order)
    end = record.offset + record.nbytes
    type(record).unpack(explainer.data, record.offset, end, state, views, explainer.wanted)
    tsc = getattr(record, "tsc", None)
    when = "; no NewCPUId says from when" if tsc is None else f": tsc {tsc}, {record.ns} ns"
    for view in views:
        if view.name == "kind" and not view.meaning:
            view = attrs.evolve(view, meaning=record.record)
        elif view.name == "data":
            view = attrs.evolve(view, name="payload")
        elif view.name in ("tsc", "delta"):
            view = attrs.evolve(view, meaning=f"{view.meaning}{when}")
        yield view
