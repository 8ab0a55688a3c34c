"""A small plugin that keeps all contracts, unless ``FAULTS`` names one for it to break."""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import attrs
import numpy as np

from fxframework import hookimpl
from fxframework.errors import Catalogue, Rule, Severity, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.io.words import FieldView
from fxframework.kit import Export
from fxframework.kit.omitted import omitted_columns
from fxframework.kit.salvage import Loss, salvage_records
from fxframework.model.capture import Capture, OpenRequest, Summary
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import STANDARD_TABLES, Column, TableSchema
from fxframework.model.selection import Selection
from fxframework.model.table import Table
from fxframework.registry import Confidence, Exporter, Option, Probe, Reader, Writer, lazy

MAGIC = b"SPECIMEN"
RECORD = struct.Struct("<qq")
BUFFER = 4096
LIMIT = 1 << 63
SAMPLE = MAGIC + b"".join(RECORD.pack(10 * n, n) for n in range(1, 6))

FAULTS: set[str] = set()
"""What is broken just now."""
_ticks = itertools.count()


def _rule(code: str, severity: Severity, title: str) -> Rule:
    return Rule(code=code, severity=severity, title=title, rule="It shall not be.", section="1",
                remedy="Mend it.",
                ours="" if "rule says nothing" in FAULTS else "Kept.")  # fmt: skip


def rules() -> Catalogue:
    return Catalogue([_rule("SPC0001", Severity.DATA_LOSS, "a part of a record"),
                      _rule("SPC0002", Severity.WARNING, "a value below zero"),
                      _rule("SPC0003", Severity.ERROR, "not to be written")])  # fmt: skip


@attrs.frozen
class Beat:
    offset: int
    nbytes: int
    raw: bytes
    kind: str = "beat"

    def __reduce__(self) -> tuple[Any, ...]:
        offset = 0 if "pickles without its place" in FAULTS else self.offset
        return Beat, (offset, self.nbytes, self.raw, self.kind)

    def to_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "record": self.kind, "offset": self.offset, "nbytes": self.nbytes,
        }  # fmt: skip
        if self.kind == "beat":
            shown["ts"], shown["value"] = RECORD.unpack(self.raw)
            if "JSON forgets" in FAULTS:
                shown["value"] &= 0xFFFF  # no sample has more; damaged ones do
        else:
            shown["raw"] = self.raw if "JSON has bytes" in FAULTS else self.raw.hex()
        if self.kind == "damaged":
            shown["code"] = "SPC0098" if "damage of no catalogue" in FAULTS else "SPC0001"
        return shown


class SpecimenCapture(Capture):
    """Beats: moments with a value."""

    format = "specimen"
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        "instants": STANDARD_TABLES["instants"],
        "threads": STANDARD_TABLES["threads"],
        "specimen_values": TableSchema(
            "specimen_values", "the value of a beat", (Column("value", "i8", "the value"),)
        ),
    }

    def __init__(self, source: Source, request: OpenRequest) -> None:
        diagnostics = Diagnostics(
            rules(), limit=request.limits.max_findings,
            strict=request.strict and "strict is lenient" not in FAULTS, path=source.name,
            observer=request.observer,
        )  # fmt: skip
        super().__init__(source, request, diagnostics)
        self._scanned = False

    @property
    def writer_options(self) -> Mapping[str, Any]:
        return {"volume" if "writer option that is not" in FAULTS else "quiet": True}

    def _pieces(self) -> Iterator[Beat]:
        data = self.source.read(0, self.source.size)
        at = len(MAGIC) if data.startswith(MAGIC) else 0
        if at:
            yield Beat(0, at, MAGIC, "magic")
        if "crash on odd ends" in FAULTS and (len(data) - at) % RECORD.size:
            raise IndexError
        while at < len(data):
            raw = data[at : at + RECORD.size]
            size = len(raw) - ("gap between records" in FAULTS)
            yield Beat(at, size, raw, "beat" if len(raw) == RECORD.size else "damaged")
            at += len(raw)

    def records(self) -> Iterator[Beat]:
        pieces = list(self._pieces())
        if "forgets the last whole record" in FAULTS and pieces[-1:] and \
                pieces[-1].kind == "damaged":  # fmt: skip
            pieces = [attrs.evolve(p, kind="damaged") if p.kind == "beat" else p for p in pieces]
        return iter(pieces)

    def scan(self) -> None:
        if self._scanned and "finds again" not in FAULTS:
            return
        self._scanned = True
        for index, piece in enumerate(self._pieces()):
            offset = piece.offset + ("offset beyond the file" in FAULTS) * (1 << 20)
            if piece.kind == "damaged":
                self.diagnostics.add(rules()["SPC0001"], offset, index)
            elif piece.kind == "beat" and RECORD.unpack(piece.raw)[1] < 0:
                self.diagnostics.add(rules()["SPC0002"], offset, index)

    def summary(self) -> Summary:
        kinds: dict[str, int] = {}
        for piece in self._pieces():
            kinds[piece.kind] = kinds.get(piece.kind, 0) + 1
        miscount = int("summary miscounts" in FAULTS)
        times = [RECORD.unpack(p.raw)[0] for p in self._pieces() if p.kind == "beat"]
        return Summary(records=sum(kinds.values()) + miscount, kinds=kinds,
                       start_ns=min(times, default=None), end_ns=max(times, default=None),
                       facts={})  # fmt: skip

    def _table(self, name: str) -> Table:
        if "tables report nothing" not in FAULTS:
            self.scan()
        beats = [piece for piece in self._pieces() if piece.kind == "beat"]
        pairs = np.array([RECORD.unpack(beat.raw) for beat in beats], np.int64).reshape(-1, 2)
        if "allocates what is declared" in FAULTS and pairs[:, 1].max(initial=0) > 1000:
            np.zeros(1 << 24, np.int64)
        count = len(beats) if name != "threads" else min(len(beats), 1)
        columns: dict[str, Any] = {}
        for column in self.schemas[name].all_columns:
            kind = "i4" if column.kind == "code" else column.kind
            columns[column.name] = np.zeros(count, kind)
        columns["row"] = np.arange(count, dtype=np.int64)
        if name != "threads":
            columns["offset"] = np.array([beat.offset for beat in beats], np.int64)
        if name == "instants":
            columns["ts"] = pairs[:, 0].copy()
            if "wrong dtype" in FAULTS:
                columns["ts"] = columns["ts"].astype(np.float64)
            if "code beyond the pool" in FAULTS:
                columns["name"] = np.full(count, 99, np.int32)
            if "thread that is not there" in FAULTS:
                columns["thread"] = np.full(count, 7, np.int32)
        elif name == "specimen_values":
            columns["value"] = pairs[:, 1].copy()
        return Table(self.schemas[name], count, columns, self.strings)

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        whole = self._table(name)
        if "batches too large" in FAULTS:
            rows += 1
        last = len(whole) - ("batches lose a row" in FAULTS)
        for at in range(0, last, rows):
            yield whole.select(slice(at, min(at + rows, last)))

    def close(self) -> None:
        if self.closed and "close once" in FAULTS:
            raise ValueError("closed already")
        super().close()


def _refusal(message: str) -> WriteRefusedError:
    if "refuses without a code" in FAULTS:
        return WriteRefusedError(message, remedy="Mend it.")
    if "refuses with a mere warning" in FAULTS:
        return WriteRefusedError(message, rule=rules()["SPC0002"], remedy="Mend it.")
    return WriteRefusedError(message, rule=rules()["SPC0003"])


class SpecimenWriter:
    """Records to bytes."""

    _shared = bytearray()

    def __init__(self, sink: Sink, options: Mapping[str, Any], diagnostics: Diagnostics) -> None:
        del options, diagnostics
        self._sink = sink
        self._held = self._shared if "writers share" in FAULTS else bytearray()
        self._kept: list[Any] = []

    def write(self, record: Any) -> None:
        if not isinstance(record, dict):
            record = record.to_json()
            if "objects overtake JSON" in FAULTS:
                self._sink.write(self._encoded(record))
                return
        data = self._encoded(record)
        if "changes what it is given" in FAULTS:
            record.pop("offset", None)
        if "keeps all" in FAULTS:
            self._kept.append(record)
        at = 0 if "sorts what it holds" in FAULTS else len(self._held)
        self._held[at:at] = data
        if len(self._held) >= BUFFER or "takes bytes back" in FAULTS:
            self._flush()

    def _flush(self) -> None:
        if "takes bytes back" in FAULTS:
            self._sink._file.seek(0)
        if "a full buffer is dropped" not in FAULTS or len(self._held) < BUFFER:
            self._sink.write(self._held)
        if "close writes again" not in FAULTS:
            self._held.clear()

    def _encoded(self, shown: dict[str, Any]) -> bytearray:
        kind = shown["record"] if "crash on no kind" in FAULTS else shown.get("record")
        known = {
            "record",
            "offset",
            "nbytes",
            *{"beat": ("ts", "value")}.get(str(kind), ("raw", "code")),
        }
        if "takes unknown fields" not in FAULTS and shown.keys() - known:
            raise _refusal(f"there are no fields {shown.keys() - known}")
        if kind == "magic":
            return bytearray(b"" if "forgets the magic" in FAULTS else MAGIC)
        if kind == "beat":
            return bytearray(self._number(shown, "ts") + self._number(shown, "value"))
        if kind == "damaged":
            try:
                return bytearray.fromhex(shown["raw"])
            except (KeyError, TypeError, ValueError):
                raise _refusal("raw is no hex") from None
        if "takes any record" in FAULTS:
            return bytearray()
        raise _refusal(f"there are no {kind!r}")

    def _number(self, shown: dict[str, Any], name: str) -> bytes:
        value = shown[name] if "crash on no field" in FAULTS else shown.get(name)
        if "crash on wrong values" in FAULTS:
            return struct.pack("<q", value)
        if "edits are lost" in FAULTS and not isinstance(value, int):
            value = 0
        if isinstance(value, bool) or not isinstance(value, int) or not -LIMIT <= value < LIMIT:
            if "half of what it refuses" in FAULTS:
                self._held += bytes(8)
            raise _refusal(f"{name} is no number of 64 bits")
        if "time is late" in FAULTS and name == "ts":
            value += 1
        return struct.pack("<q", value)

    def close(self) -> None:
        self._flush()
        if "closes the sink" in FAULTS:
            self._sink.commit()

    def __del__(self) -> None:
        if "writes when it is gone" in FAULTS and not self._sink._file.closed:
            self._sink.write(MAGIC)


def salvage(capture: Capture, sink: Sink, options: Mapping[str, Any]) -> Iterator[Loss]:
    """What is sound."""
    writer = SpecimenWriter(sink, options, capture.diagnostics)
    given: Iterator[Loss]
    if "salvage keeps damage" in FAULTS:
        for record in capture.records():
            writer.write(record)
        given = iter(())
    else:
        given = salvage_records(capture, writer.write)
    for loss in given:
        if "loss beyond the file" in FAULTS:
            loss = attrs.evolve(loss, offset=1 << 20)
        if "loss without a catalogued code" in FAULTS:
            loss = attrs.evolve(loss, code="SPC0099")
        if "losses in silence" not in FAULTS:
            yield loss
    if "salvage adds" in FAULTS:
        writer.write({"record": "beat", "ts": 0, "value": 0})
    writer.close()


def extract(
    capture: Capture, selection: Selection, sink: Sink, options: Mapping[str, Any]
) -> Mapping[str, int]:
    """Some of the beats."""
    writer = SpecimenWriter(sink, options, capture.diagnostics)
    chosen = capture.between(selection.start_ns, selection.stop_ns)
    kept = (
        capture if "extract takes all" in FAULTS and len(chosen.table("instants")) else chosen
    ).table("instants")
    offsets = set(kept.array("offset").tolist()[int("extract forgets a row" in FAULTS) :])
    if kept or "extract of nothing is nothing" not in FAULTS:
        writer.write({"record": "magic"})
    lost = 0
    for record in capture.records():
        if record.offset in offsets:
            shown = record.to_json()
            shown["ts"] += "extract is late" in FAULTS
            writer.write(shown)
        else:
            lost += record.to_json()["record"] == "beat"
    writer.close()
    return {"beats": lost} if lost or "extract counts nothing" in FAULTS else {}


class SpecimenMerger:
    """Instants to beats."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        self._sink = sink
        self._writer = SpecimenWriter(sink, options, Diagnostics({}))
        self._captures = 0
        self._dropped: Counter[str] = Counter()

    def write(self, capture: Capture) -> None:
        if not self._captures:
            self._writer.write({"record": "magic"})
        elif "merge crashes on a second" in FAULTS:
            raise IndexError(self._captures)
        self._captures += 1
        if "merge forgets the rows" in FAULTS:
            return
        if "merge keeps columns back" not in FAULTS:
            self._dropped += omitted_columns(capture, ["instants"])
        for ts in capture.table("instants").array("ts").tolist():
            if "merge forgets a row" in FAULTS and ts % 3 == 0:
                continue
            self._writer.write({"record": "beat", "ts": ts, "value": 0})

    def close(self) -> Mapping[str, int]:
        if "composes damage" in FAULTS:
            self._writer.write({"record": "damaged", "raw": "00"})
        self._writer.close()
        return {**self._dropped, "values": 1}


class SpecimenExport:
    """Times, one per line."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        del options
        self._sink = sink

    def write(self, capture: Capture) -> None:
        try:
            self._write(capture)
        except Exception:
            if "swallows failures" not in FAULTS:
                raise

    def _write(self, capture: Capture) -> None:
        if "crash on no rows" in FAULTS and not len(capture.table("instants")):
            raise ZeroDivisionError
        if "writes at once" in FAULTS:
            self._sink.commit()
            return
        for batch in capture.batches("instants"):
            for ts in batch["ts"]:
                self._sink.write(b"%d\n" % ts)
            if "batches show" in FAULTS:
                self._sink.write(b"--\n")
        if "never the same" in FAULTS:
            self._sink.write(b"%d\n" % next(_ticks))

    def close(self) -> Mapping[str, int]:
        if "reports nothing lost" in FAULTS:
            return {"colours": 0}
        if "silent about columns" in FAULTS:
            return {}
        return {"every column but ts, such as zz_added": 1}


class LatestExport(Export):
    """The two latest times."""

    def write(self, capture: Capture) -> None:
        table = capture.table("instants")
        latest = np.sort(table["ts"])[-2:]
        self._sink.write(b"".join(b"%d\n" % ts for ts in latest))
        self._dropped["instants"] += len(table)
        if "counts all rows" not in FAULTS:
            self._dropped["instants"] -= len(latest)
        for column in set(table.columns) - {"ts"}:
            self._dropped[f"instants.{column}"] += len(latest)


def sniff(probe: Probe) -> Confidence:
    """CERTAIN for the magic."""
    if "sniff raises" in FAULTS:
        return Confidence(probe.head[0] * 0)
    if "sniff takes all" in FAULTS:
        return Confidence.CERTAIN
    if probe.head.startswith(MAGIC):
        return Confidence.LIKELY if "sniff is unsure" in FAULTS else Confidence.CERTAIN
    return Confidence.NONE


def explain(source: Source, offset: int) -> list[FieldView]:
    at = 0 if offset < len(MAGIC) else len(MAGIC) + (offset - len(MAGIC)) // 16 * 16
    if "explains nothing" in FAULTS and at:
        return []
    return [FieldView(at, 0, 63, "first word", int.from_bytes(source.read(at, 8)), "word", "1")]


@hookimpl
def fx_readers() -> Iterable[Reader]:
    default: Any = "yes" if "default of another type" in FAULTS else True
    option = Option(name="loud", type=bool, default=default, help="say more")
    return [
        Reader(format="specimen", title="beats" + "." * ("title is a sentence" in FAULTS),
               suffixes=(".specimen",), sniff=sniff, open=SpecimenCapture, options=(option,),
               rules=rules, explain=explain)
    ]  # fmt: skip


@hookimpl
def fx_writers() -> Iterable[Writer]:
    option = Option(name="quiet", type=bool, default=True,
                    help="" if "option without help" in FAULTS else "say less")  # fmt: skip
    return [
        Writer(format="specimen", title="beats" + "." * ("writer's title is a sentence" in FAULTS),
               suffixes=(".other",) if "a suffix of its own" in FAULTS else (".specimen",),
               open=SpecimenWriter, options=(option,), merge=SpecimenMerger, extract=extract,
               accepts=frozenset({"beats" if "accepts what is not" in FAULTS else "instants"}),
               salvage=lazy("specimen:" + "salvag" + "e" * ("misspelt" not in FAULTS)))
    ]  # fmt: skip


@hookimpl
def fx_exporters() -> Iterable[Exporter]:
    return [Exporter(name="times", title="times, one per line", accepts=frozenset({"instants"}),
                     suffixes=(".times",), open=SpecimenExport),
            Exporter(name="latest", accepts=frozenset({"instants"}), open=LatestExport,
                     title="the two latest times", streams=False)]  # fmt: skip
