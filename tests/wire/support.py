"""What the tests of declared formats share: a file read in every way there is."""

from __future__ import annotations

from typing import Any

import attrs
import orjson

from fxframework.io.source import Source
from fxframework.kit.lossless import LosslessRecord
from fxframework.model.capture import Capture, OpenRequest
from fxframework.wire.capture import DeclaredCapture, open_capture
from fxframework.wire.encoder import Encoder
from fxframework.wire.format import Format
from fxframework.wire.lines import LineReader
from fxframework.wire.walk import Walk

Found = list[tuple[str, int | None, int | None, str]]


def opened(format: Format, data: bytes) -> DeclaredCapture:
    return open_capture(format, Source.open(data), OpenRequest())


def shown_by_objects(format: Format, data: bytes) -> list[str]:
    """The kinds of records, but what a file begins with, whose lines are made from objects."""
    shown: list[str] = []

    class Noting(LineReader):
        def show(self, record: LosslessRecord) -> None:
            shown.append(record.record)
            super().show(record)

    for _ in Noting(format, Source.open(data), OpenRequest().limits).lines():
        pass
    return shown[1:] if format.begin else shown


def findings(capture: Capture) -> Found:
    return [(each.code, each.offset, each.record, each.message) for each in capture.diagnostics]


def check(format: Format, data: bytes) -> tuple[list[LosslessRecord], DeclaredCapture]:
    """Objects, lines, rows, findings and both ways back agree; return the objects and a capture."""
    by_objects = opened(format, data)
    records = list(by_objects.records())
    check_one_by_one(format, data, records)
    lines = [orjson.dumps(record.to_json()) for record in records]
    by_columns = opened(format, data)
    assert b"".join(by_columns.records_json()).splitlines() == lines
    assert findings(by_columns) == findings(by_objects)
    by_rows = opened(format, data)
    by_rows.scan()
    of_rows = [each for each in findings(by_rows) if not each[0].endswith("0109")]
    assert of_rows == findings(by_objects)
    check_rows(format, records, by_rows)
    encoder = Encoder(format)
    assert b"".join(encoder.encode(record) for record in records) == data
    encoder = Encoder(format)
    assert b"".join(encoder.encode(orjson.loads(line)) for line in lines) == data
    return records, by_rows


def check_one_by_one(format: Format, data: bytes, records: list[LosslessRecord]) -> None:
    """Objects that a capture makes, perhaps from columns, are as those read one by one."""
    walked = [record for record, _ in Walk(format, Source.open(data))]
    assert [all_of(record) for record in records] == [all_of(record) for record in walked]


def all_of(record: Any) -> list[Any]:
    """The attributes of a record, also those that comparing it leaves out."""
    names = [each.name for each in attrs.fields(type(record)) if each.name != "raw"]
    raw = record.raw if record.raw is None else bytes(record.raw)
    return [type(record), raw, *(repr(getattr(record, name)) for name in names)]


def value_of(record: LosslessRecord, item: Any, name: str) -> Any:
    """The value of a column by the name of a field, which may be one of an item."""
    name, _, of_item = name.partition(".")
    value = getattr(record, name)
    return getattr(item, of_item) if of_item else item if isinstance(value, tuple) else value


def check_rows(format: Format, records: list[LosslessRecord], capture: DeclaredCapture) -> None:
    """Columns that are fields have the values of the objects."""
    for name in {rows.table for rows in format.tables}:
        made: list[tuple[int, dict[str, Any]]] = []
        for record in records:
            for rows in format.tables:
                if rows.table == name and type(record) is rows.record:
                    given = {c: f for c, f in rows.columns.items() if isinstance(f, str)}
                    items = [None] if rows.items is None else getattr(record, rows.items.name)
                    for item in items or ():
                        values = {c: value_of(record, item, f) for c, f in given.items()}
                        made.append((record.offset, values))
        table = capture.table(name)
        assert table.array("offset").tolist() == [offset for offset, _ in made]
        columns = {c for _, values in made for c in values}
        for column in columns:
            kind = table.schema.column(column).kind
            if kind == "bytes":
                pairs = table.array(column).tolist()
                found: list[Any] = [capture.source.read(at, size) for at, size in pairs]
            else:
                found = table.plain(column)
            for (_, values), value in zip(made, found, strict=True):
                if values.get(column) is not None:
                    wanted = values[column]
                    if column == "ts":
                        wanted = min(wanted, (1 << 63) - 1)
                    if isinstance(wanted, str):
                        wanted = wanted.encode(errors="surrogateescape").decode(errors="replace")
                    assert repr(value) == repr(wanted) or value == wanted
