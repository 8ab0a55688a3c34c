"""Pulse: bytes to a capture."""

import struct
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from fxframework.io.source import Source
from fxframework.io.words import FieldView
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.schema import STANDARD_TABLES, TABLE_CODES, Column, TableSchema
from fxframework.model.table import Table
from pulse.plugin import MAGIC, RULES

FIELDS = {
    1: ("string", "id", "<H"),
    2: ("thread", "id pid tid name", "<HIIH"),
    3: ("begin", "thread name time", "<HHq"),
    4: ("end", "thread time", "<Hq"),
    5: ("mark", "thread name time value", "<HHqq"),
    6: ("count", "thread name time value", "<HHqq"),
}
LAYOUTS = {
    kind: (name, fields.split(), struct.Struct(layout))
    for kind, (name, fields, layout) in FIELDS.items()
}
MICROSECOND = 1000


@attrs.frozen
class PulseRecord:
    """A stretch of the file."""

    record: str
    offset: int
    raw: bytes
    fields: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return len(self.raw)

    @property
    def ns(self) -> int | None:
        """Its time in nanoseconds, which 64 bits hold."""
        if "time" not in self.fields:
            return None
        return min(max(self.fields["time"] * MICROSECOND, NS_MIN), NS_MAX)

    def to_json(self) -> dict[str, Any]:
        """As record JSON."""
        shown = {"record": self.record, "offset": self.offset, "nbytes": self.nbytes}
        shown.update(self.fields)
        if self.record in {"damaged", "unknown"}:
            shown["raw"] = self.raw.hex()
        return shown


def _record(kind: int, at: int, raw: bytes) -> PulseRecord:
    name, names, layout = LAYOUTS.get(kind, ("unknown", [], struct.Struct("<")))
    rest = raw[2 + layout.size :]
    if name == "unknown" or len(raw) < 2 + layout.size or (rest and kind != 1):
        return PulseRecord("unknown", at, raw)
    fields = dict(zip(names, layout.unpack_from(raw, 2), strict=True))
    if kind == 1:
        fields["text"] = rest.hex()
    return PulseRecord(name, at, raw, fields)


class PulseCapture(Capture):
    """A file of pulses: slices, instants and counters of threads."""

    format = "pulse"
    rules = RULES
    timed_records = True
    support_records = frozenset({"string", "thread"})
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        "threads": STANDARD_TABLES["threads"],
        "slices": STANDARD_TABLES["slices"].extended(
            Column("pulse_end", "i8", "offset of the record that ends it; -1 none", "bytes")
        ),
        "instants": STANDARD_TABLES["instants"],
        "counters": STANDARD_TABLES["counters"],
        "args": STANDARD_TABLES["args"],
    }

    def records(self) -> Iterator[PulseRecord]:
        """The header, the records, and what is left."""
        findings = self.record_diagnostics
        for index, (record, code) in enumerate(self._records()):
            if code and findings is not None:
                findings.add(RULES[code], record.offset, index)
            yield record

    def _records(self) -> Iterator[tuple[PulseRecord, str]]:
        size, limit = self.source.size, self.request.limits.max_record
        head = self.source.read(0, 8)
        at = len(head)
        if head:
            sound = head == MAGIC
            yield PulseRecord("header" if sound else "damaged", 0, head), "" if sound else "PUL0006"
        while at < size:
            kind, length = [*self.source.read(at, 2), 0][:2]
            if length < 2 or at + length > size:
                yield PulseRecord("damaged", at, self.source.read(at, size - at)), "PUL0001"
                return
            raw = self.source.read(at, length)
            if limit and length > limit:
                yield PulseRecord("damaged", at, raw), "PUL0005"
            else:
                record = _record(kind, at, raw)
                yield record, "PUL0002" if record.record == "unknown" else ""
            at += length

    def _table(self, name: str) -> Table:
        return _Rows(self).table(name)

    def resume(self) -> tuple[int, bytes]:
        """Behind the last whole record; the header, strings and threads must precede."""
        end, before = 0, b""
        for record, _ in self._records():
            if record.record == "damaged":
                break
            end = record.offset + record.nbytes
            if record.record in {"header", "string", "thread"}:
                before += record.raw
        return end, before


class _Rows:
    """The rows of all tables."""

    def __init__(self, capture: PulseCapture) -> None:
        self.capture = capture
        self.strings: dict[int, bytes] = {}
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in capture.schemas}
        self.ids: dict[int, int] = {}
        self.open: dict[int, list[int]] = {}
        for record in capture.records():
            step = getattr(self, f"on_{record.record}", None)
            if step is not None:
                step(record, record.fields)

    def event(self, record: PulseRecord, fields: Mapping[str, Any]) -> dict[str, Any]:
        """What all events have."""
        return {
            "offset": record.offset,
            "ts": record.ns,
            "ticks": fields["time"] % (1 << 64),
            "thread": self.ids.get(fields["thread"], -1),
            "name": self.strings.get(fields["name"], b"?"),
        }

    def on_string(self, record: PulseRecord, fields: Mapping[str, Any]) -> None:
        """A string gets a number."""
        self.strings[fields["id"]] = bytes.fromhex(fields["text"])

    def on_thread(self, record: PulseRecord, fields: Mapping[str, Any]) -> None:
        """A thread gets a number."""
        rows = self.rows["threads"]
        tasks = fields["pid"], fields["tid"]
        known = [row["id"] for row in rows if (row["pid"], row["tid"]) == tasks]
        self.ids[fields["id"]] = known[0] if known else len(rows)
        if not known:
            rows.append({"offset": record.offset, "id": len(rows), "pid": tasks[0],
                         "tid": tasks[1], "name": self.strings.get(fields["name"])})  # fmt: skip

    def on_begin(self, record: PulseRecord, fields: Mapping[str, Any]) -> None:
        """A slice begins."""
        rows, stack = self.rows["slices"], self.open.setdefault(fields["thread"], [])
        parent = stack[-1] if stack else -1
        rows.append({**self.event(record, fields), "dur": -1, "depth": len(stack),
                     "parent": parent, "pulse_end": -1})  # fmt: skip
        stack.append(len(rows) - 1)

    def on_end(self, record: PulseRecord, fields: Mapping[str, Any]) -> None:
        """A slice ends."""
        stack = self.open.setdefault(fields["thread"], [])
        if stack:
            row = self.rows["slices"][stack.pop()]
            row["dur"] = min(max(record.ns - row["ts"], 0), NS_MAX)
            row["pulse_end"] = record.offset

    def on_mark(self, record: PulseRecord, fields: Mapping[str, Any]) -> None:
        """A moment with a value."""
        rows, value = self.rows["instants"], fields["value"]
        rows.append(self.event(record, fields))
        self.rows["args"].append(
            {"offset": record.offset, "table": TABLE_CODES["instants"], "parent": len(rows) - 1,
             "name": b"value", "type": 3, "int": value, "uint": value % (1 << 64), "str": None}
        )  # fmt: skip

    def on_count(self, record: PulseRecord, fields: Mapping[str, Any]) -> None:
        """A sample of a counter."""
        value = fields["value"]
        self.rows["counters"].append(
            {**self.event(record, fields), "series": b"value", "value": float(value),
             "value_int": value, "is_int": True}
        )  # fmt: skip

    def table(self, name: str) -> Table:
        """A table of its rows."""
        rows, schema = self.rows[name], self.capture.schemas[name]
        given = {key: [row[key] for row in rows] for key in (rows[0] if rows else ())}
        for column in schema.all_columns:
            if column.kind == "u8" and column.name in given:
                given[column.name] = np.array(given[column.name], np.uint64)
        if rows:
            given["row"] = np.arange(len(rows))
        return Table.of(schema, self.capture.strings, **given)


def explain(source: Source, offset: int) -> list[FieldView]:
    """The record at an offset."""
    at, length = 0, 8
    while at + length <= offset:
        at += length
        length = max([*source.read(at, 2), 0][1], 2)
    view = FieldView(at, 0, 7, "kind", source.read(at, 1)[0], "the kind", "Pulse, Records")
    return [view]


def sample(nbytes: int) -> bytes:
    """A file of about so many bytes: nested slices, marks and counters of two threads."""
    out = [MAGIC, packed(1, 1, tail=b"work"), packed(1, 2, tail=b"tick")]
    out += [packed(2, 1, 7, 9, 1), packed(2, 2, 7, 10, 2)]
    size, time = sum(map(len, out)), 1000
    while size < nbytes:
        thread = 1 + time // 50 % 2
        part = [
            packed(3, thread, 1, time), packed(3, thread, 2, time + 5),
            packed(5, thread, 2, time + 6, -3), packed(6, thread, 1, time + 7, time),
            packed(4, thread, time + 20), packed(4, thread, time + 40),
        ]  # fmt: skip
        out += part
        size += sum(map(len, part))
        time += 50
    return b"".join(out)


def packed(kind: int, *values: int, tail: bytes = b"") -> bytes:
    """A record."""
    body = LAYOUTS[kind][2].pack(*values) + tail
    return bytes((kind, 2 + len(body))) + body
