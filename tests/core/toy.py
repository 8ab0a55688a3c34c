"""A format for tests: eight bytes of magic, then records of 24 bytes. Small, but with everything.

A record is its kind, the length of its name, six bytes of name, a time (i64) and a value (i64).
Kind 1 is a mark, whose value is its argument `n`; kind 2 a span, whose value is its length; zeros
are padding; 9 is damage; other kinds are unknown.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from fxframework import hookimpl
from fxframework.errors import Catalogue, Rule, Severity, UnreadableError, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.io.words import FieldView
from fxframework.model.capture import Capture, OpenRequest, Summary
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import STANDARD_TABLES, TABLE_CODES, TableSchema
from fxframework.model.table import Table
from fxframework.registry import Confidence, Exporter, Option, Probe, Reader, Writer

MAGIC = b"TOYFMT1\n"
LAYOUT = struct.Struct("<BB6sqq")
MARK, SPAN, DAMAGE = 1, 2, 9
DAMAGED = Rule("TOY0001", Severity.DATA_LOSS, "a record is damaged", "Toys", "Kind 9 is damage.",
               detail="{value}", ours="It is kept as `damaged`.",
               remedy="Buy another toy.")  # fmt: skip
UNDEFINED_KIND = Rule("TOY0002", Severity.WARNING, "a kind that is not defined", "Toys",
                      "Kinds are 1 and 2.", ours="It is kept as `unknown`.")  # fmt: skip
ZEROS = Rule("TOY0003", Severity.INFO, "zeros between records", "Toys", "Nobody minds.",
             ours="They are `padding`.")  # fmt: skip
RULES = Catalogue.of(globals())


def mark(name: str | bytes, ts: int, value: int = 0) -> bytes:
    """A mark."""
    return record(MARK, name, ts, value)


def span(name: str | bytes, ts: int, dur: int) -> bytes:
    """A span."""
    return record(SPAN, name, ts, dur)


def record(kind: int, name: str | bytes = "", ts: int = 0, value: int = 0) -> bytes:
    """Any record."""
    data = name.encode() if isinstance(name, str) else name
    return LAYOUT.pack(kind, len(data), data, ts, value)


def toy(*records: bytes) -> bytes:
    """A file."""
    return MAGIC + b"".join(records)


SAMPLE = toy(mark("one", 1_000, 7), span("two", 2_000, 500), mark("three", 5_000, -1))


@attrs.frozen
class ToyRecord:
    """A record."""

    offset: int
    nbytes: int
    raw: bytes
    kind: str
    name: bytes = b""
    ns: int | None = None
    value: int = 0

    def to_json(self) -> dict[str, Any]:
        """As JSON; damage and what is unknown with their bytes."""
        place = {"record": self.kind, "offset": self.offset, "nbytes": self.nbytes}
        if self.kind in {"mark", "span"}:
            name = self.name.decode("utf-8", "replace")
            return {**place, "name": name, "ts": self.ns, "value": self.value,
                    **({} if name.encode() == self.name else {"raw": self.raw.hex()})}  # fmt: skip
        return place if self.kind in {"magic", "padding"} else {**place, "raw": self.raw.hex()}


class ToyCapture(Capture):
    """A toy."""

    format = "toy"
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        name: STANDARD_TABLES[name]
        for name in ("processes", "threads", "slices", "instants", "args", "blobs")
    }
    timed_records = True
    passes = 0

    def __init__(self, source: Source, request: OpenRequest) -> None:
        diagnostics = Diagnostics(
            RULES, limit=request.limits.max_findings, strict=request.strict, path=source.name,
            observer=request.observer,
        )  # fmt: skip
        super().__init__(source, request, diagnostics)
        self._scanned = False

    @property
    def writer_options(self) -> Mapping[str, Any]:
        return {} if self.source.read(0, 8) == MAGIC else {"magic": False}

    def records(self) -> Iterator[ToyRecord]:
        self.passes += 1
        at = 0
        if self.source.read(0, 8) == MAGIC:
            yield ToyRecord(0, 8, MAGIC, "magic")
            at = 8
        index = 1
        while at < self.source.size:
            raw = self.source.read(at, LAYOUT.size)
            yield self._record(raw, at, index)
            at += len(raw)
            index += 1
        self._scanned = True

    def _record(self, raw: bytes, at: int, index: int) -> ToyRecord:
        place = at, len(raw), raw
        kind = raw[0]
        if not any(raw):
            self._find(ZEROS, at, index)
            return ToyRecord(*place, "padding")
        if len(raw) < LAYOUT.size or kind == DAMAGE or raw[1] > 6 or any(raw[2 + raw[1] : 8]):
            self._find(DAMAGED, at, index)
            return ToyRecord(*place, "damaged")
        _, length, name, ts, value = LAYOUT.unpack(raw)
        if kind not in {MARK, SPAN}:
            self._find(UNDEFINED_KIND, at, index)
            return ToyRecord(*place, "unknown")
        return ToyRecord(*place, "mark" if kind == MARK else "span", name[:length], ts, value)

    def _find(self, rule: Rule, at: int, index: int) -> None:
        if not self._scanned:
            self.diagnostics.add(rule, at, index)

    def scan(self) -> None:
        if not self._scanned:
            for _ in self.records():
                pass

    def summary(self) -> Summary:
        records = list(self.records())
        kinds: dict[str, int] = {}
        for one in records:
            kinds[one.kind] = kinds.get(one.kind, 0) + 1
        times = [one.ns for one in records if one.ns is not None]
        low = min(times, default=0)
        span = max(times, default=0) - low + 1
        counts = [0] * 16
        for ns in times:
            counts[(ns - low) * 16 // span] += 1
        return Summary(
            records=len(records),
            kinds=kinds,
            start_ns=min(times, default=None),
            end_ns=max(times, default=None),
            facts={"maker": "ACME", "parts": [{"id": 1, "loud": True}]},
            timeline=(("main", tuple(counts)),) if times else (),
        )

    def _table(self, name: str) -> Table:
        found = [one for one in self.records() if one.kind in {"mark", "span"}]
        spans = [one for one in found if one.kind == "span"]
        marks = [one for one in found if one.kind == "mark"]
        intern = self.strings.intern
        rows = {"slices": spans, "instants": marks, "args": marks}.get(name, [])
        count = len(rows) if name not in {"threads", "processes"} else int(bool(found))
        columns: dict[str, Any] = {}
        for column in self.schemas[name].all_columns:
            kind = {"code": "i4"}.get(column.kind, column.kind)
            shape = (count, 2) if kind == "bytes" else (count,)
            columns[column.name] = np.zeros(shape, "i8" if kind == "bytes" else kind)
        columns["row"] = np.arange(count)
        if name == "threads":
            columns |= {"pid": np.array([10] * count, "u8"), "tid": np.array([11] * count, "u8"),
                        "name": np.array([intern(b"main")] * count, "i4")}  # fmt: skip
        elif name == "processes":
            columns["pid"] = np.array([10] * count, "u8")
            columns["name"] = np.full(count, -1, np.int32)
        elif rows:
            columns["offset"] = np.array([one.offset for one in rows])
            columns["name"] = np.array([intern(one.name) for one in rows], "i4")
        if name in {"slices", "instants"} and rows:
            columns["ts"] = np.array([one.ns for one in rows])
            columns["category"] = np.full(count, -1, np.int32)
        if name == "slices" and rows:
            columns["dur"] = np.array([one.value for one in rows])
            columns["parent"] = np.full(count, -1)
        if name == "args" and rows:
            columns |= {
                "table": np.full(count, TABLE_CODES["instants"], np.uint8),
                "parent": np.arange(count),
                "name": np.full(count, intern(b"n"), np.int32),
                "type": np.full(count, 3, np.uint8),
                "int": np.array([one.value for one in rows]),
                "uint": np.array([one.value for one in rows]).view(np.uint64),
                "str": np.full(count, -1, np.int32),
            }
        return Table(self.schemas[name], count, columns, self.strings)

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        whole = self._table(name)
        for at in range(0, len(whole), rows):
            yield whole.select(slice(at, at + rows))


class ToyWriter:
    """Records to bytes."""

    def __init__(self, sink: Sink, options: Mapping[str, Any], diagnostics: Diagnostics) -> None:
        self._sink = sink
        if options["magic"]:
            sink.write(MAGIC)

    def write(self, one: Any) -> None:
        shown = one if isinstance(one, dict) else one.to_json()
        try:
            self._sink.write(self._packed(shown))
        except (KeyError, TypeError, ValueError, AttributeError, struct.error) as error:
            raise WriteRefusedError(f"not a toy: {error}") from error

    def _packed(self, shown: Mapping[str, Any]) -> bytes:
        kind = shown["record"]
        if "raw" in shown:
            return bytes.fromhex(shown["raw"])
        if kind == "padding":
            return bytes(shown["nbytes"])
        if kind in ("mark", "span"):
            if len(shown["name"].encode()) > 6:
                raise WriteRefusedError("a name has six bytes at most")
            number = MARK if kind == "mark" else SPAN
            return record(number, shown["name"], shown["ts"], shown["value"])
        if kind != "magic":
            raise WriteRefusedError(f"toys have no {kind}")
        return b""

    def close(self) -> None:
        pass


class ToyText:
    """One line per record."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        self._sink = sink
        self._loud = options.get("loud", False)
        self._lines = 0

    def write(self, capture: Capture) -> None:
        for one in capture.records():
            line = f"{one.kind} {one.name.decode('utf-8', 'replace')}"
            self._sink.write((line.upper() if self._loud else line).encode() + b"\n")
            self._lines += 1

    def close(self) -> Mapping[str, int]:
        return {"colours": 3}


def sniff(probe: Probe) -> Confidence:
    """CERTAIN for the magic, POSSIBLE by name."""
    if probe.head.startswith(MAGIC):
        return Confidence.CERTAIN
    return Confidence.POSSIBLE if probe.has_suffix((".toy",)) else Confidence.NONE


def open_toy(source: Source, request: OpenRequest) -> ToyCapture:
    """The reader."""
    if request.options["refuse"]:
        raise UnreadableError("it refuses to be read", path=source.name)
    return ToyCapture(source, request)


def explain(source: Source, offset: int) -> list[FieldView]:
    """The kind of the record there."""
    at = 8 + (offset - 8) // LAYOUT.size * LAYOUT.size
    return [FieldView(at, 0, 7, "kind", source.read(at, 1)[0], "kind of record", "Toys")]


READER = Reader(
    format="toy",
    title="toys",
    suffixes=(".toy",),
    sniff=sniff,
    open=open_toy,
    options=(Option(name="refuse", type=bool, default=False, help="refuse to be read"),),
    rules=lambda: RULES,
    explain=explain,
)
WRITER = Writer(
    format="toy",
    title="toys",
    suffixes=(".toy",),
    open=ToyWriter,
    options=(Option(name="magic", type=bool, default=True, help="begin with the magic"),),
)
TEXT = Exporter(
    name="text",
    title="one line per record",
    accepts="toy",
    suffixes=(".txt",),
    open=ToyText,
    options=(Option(name="loud", type=bool, default=False, help="in capitals"),),
)
BINARY = Exporter(
    name="picture",
    title="a picture of it",
    accepts=frozenset({"instants", "slices"}),
    suffixes=(".bin",),
    open=ToyText,
    binary=True,
)


@hookimpl
def fx_readers() -> Iterable[Reader]:
    return [READER]


@hookimpl
def fx_writers() -> Iterable[Writer]:
    return [WRITER]


@hookimpl
def fx_exporters() -> Iterable[Exporter]:
    return [TEXT, BINARY]
