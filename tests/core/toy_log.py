"""A log format for tests: one JSON object a line, in a table `logs` with `args` and tags.

A line ``{"alias": x, "component": y}`` names a component for later lines, whose component x then
is y: it has no row of its own. Blank lines are padding; everything else that is no log is damage,
and so is a last line without its end. ``{"about": offset}`` belongs to the log at that offset.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import attrs

from fxframework import hookimpl
from fxframework.errors import Catalogue, Rule, Severity, WriteRefusedError
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import Capture, OpenRequest, Summary
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.schema import (
    LOG_LEVELS,
    NAME,
    STANDARD_TABLES,
    TABLE_CODES,
    Column,
    TableSchema,
)
from fxframework.model.table import Table
from fxframework.registry import Confidence, Exporter, Option, Probe, Reader, Writer

NOT_A_LOG = Rule("TLG0001", Severity.DATA_LOSS, "a line is no log", "Toys",
                 "A line is a JSON object.", detail="{value}", ours="It is `damaged`.")  # fmt: skip
RULES = Catalogue.of(globals())
NAMES = {byte: name for name, byte in LOG_LEVELS.items()}


def log(message: str | bytes, ts: int = 0, **more: Any) -> bytes:
    """A line: ``severity``, ``pid``, ``tid``, ``tags``, ``component``, ``url``, ``args``."""
    text = message.decode("latin-1") if isinstance(message, bytes) else message
    return json.dumps({"message": text, "ts": ts, **more}).encode() + b"\n"


def alias(name: str, component: str) -> bytes:
    """A line that names a component."""
    return json.dumps({"alias": name, "component": component}).encode() + b"\n"


@attrs.frozen
class LogRecord:
    """A line."""

    offset: int
    nbytes: int
    raw: bytes
    kind: str
    shown: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def ns(self) -> int | None:
        return self.shown["ts"] if self.kind == "log" else None

    @property
    def row_offset(self) -> int:
        return self.shown.get("about", self.offset)

    def to_json(self) -> dict[str, Any]:
        place = {"record": self.kind, "offset": self.offset, "nbytes": self.nbytes}
        return {**place, "raw": self.raw.hex()}


class LogToy(Capture):
    """Toy logs."""

    format = "toylog"
    timed_records = True
    row_table = "logs"
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        "logs": STANDARD_TABLES["logs"].extended(Column("log_url", "code", "url")),
        "args": STANDARD_TABLES["args"],
        "toy_tags": TableSchema("toy_tags", "a tag", (Column("parent", "i8", "a row of `logs`"),
                                                      NAME), parent_table="logs"),
    }  # fmt: skip

    def __init__(self, source: Source, request: OpenRequest) -> None:
        diagnostics = Diagnostics(RULES, limit=request.limits.max_findings, strict=request.strict,
                                  path=source.name, observer=request.observer)  # fmt: skip
        super().__init__(source, request, diagnostics)
        self._found: list[LogRecord] | None = None

    @property
    def utc_offset_ns(self) -> int | None:
        return self.request.options.get("utc_offset_ns") or None

    def resume(self) -> tuple[int, bytes] | None:
        lines = self._lines()
        whole = [line for line in lines if line.raw.endswith(b"\n")]
        before = b"".join(line.raw for line in whole if line.kind == "alias")
        return sum(line.nbytes for line in whole), before

    def records(self) -> Iterator[LogRecord]:
        return iter(self._lines())

    def _lines(self) -> list[LogRecord]:
        if self._found is None:
            self._found = []
            at = 0
            for raw in self.source.read(0, self.source.size).splitlines(keepends=True):
                self._found.append(self._line(raw, at))
                at += len(raw)
        return self._found

    def _line(self, raw: bytes, at: int) -> LogRecord:
        if raw == b"\n":
            return LogRecord(at, len(raw), raw, "padding")
        try:
            shown = json.loads(raw) if raw.endswith(b"\n") else None
        except ValueError:
            shown = None
        if isinstance(shown, dict):
            for kind, field in (("log", "message"), ("alias", "alias"), ("about", "about")):
                if field in shown:
                    return LogRecord(at, len(raw), raw, kind, shown)
        self.diagnostics.add(NOT_A_LOG, at, len(self._found or ()), "no log")
        return LogRecord(at, len(raw), raw, "damaged")

    def scan(self) -> None:
        self._lines()

    def summary(self) -> Summary:
        times = [line.ns for line in self._lines() if line.ns is not None]
        kinds: dict[str, int] = {}
        for line in self._lines():
            kinds[line.kind] = kinds.get(line.kind, 0) + 1
        return Summary(records=len(self._lines()), kinds=kinds, start_ns=min(times, default=None),
                       end_ns=max(times, default=None), facts={})  # fmt: skip

    def _table(self, name: str) -> Table:
        names: dict[str, str] = {}
        logs: list[dict[str, Any]] = []
        for line in self._lines():
            if line.kind == "alias":
                names[line.shown["alias"]] = line.shown["component"]
            if line.kind == "log":
                component = line.shown.get("component")
                logs.append({**line.shown, "offset": line.offset,
                             "component": names.get(component, component)})  # fmt: skip

        def column(key: str, otherwise: Any = 0) -> list[Any]:
            return [one.get(key, otherwise) for one in logs]

        if name == "logs":
            severities = column("severity", 0x30)
            return Table.of(
                self.schemas[name], self.strings,
                offset=column("offset"), ts=column("ts"), severity=severities,
                severity_name=[NAMES.get(byte) for byte in severities],
                pid=column("pid"), tid=column("tid"), component=column("component", None),
                tags=[",".join(tags) or None for tags in column("tags", ())],
                message=[one["message"].encode("latin-1") for one in logs],
                log_url=column("url", None),
            )  # fmt: skip
        key, of = ("args", dict.items) if name == "args" else ("tags", list)
        found = [
            (row, one["offset"], value)
            for row, one in enumerate(logs)
            for value in of(one.get(key) or {} if name == "args" else one.get(key) or [])
        ]
        place = {
            "offset": [offset for _, offset, _ in found],
            "parent": [row for row, _, _ in found],
        }
        if name == "args":
            return Table.of(self.schemas[name], self.strings, **place,
                            table=TABLE_CODES["logs"], type=3,
                            name=[value[0] for _, _, value in found],
                            int=[value[1] for _, _, value in found])  # fmt: skip
        return Table.of(self.schemas[name], self.strings, **place,
                        name=[value for _, _, value in found])  # fmt: skip

    def _batches(self, name: str, rows: int) -> Iterator[Table]:
        whole = self._table(name)
        for at in range(0, len(whole), rows):
            yield whole.select(slice(at, at + rows))


class LogText:
    """A line a log: time, component, message, arguments. Refuses what has no logs, as many do."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        self._sink = sink
        self._ends = ("\x1b[31m", "\x1b[0m") if options.get("color") else ("", "")

    def write(self, capture: Capture) -> None:
        begin, end = self._ends
        if not any(len(batch) for batch in capture.batches("logs")):
            raise WriteRefusedError("there is nothing to write")
        args: dict[int, str] = {}
        for batch in capture.batches("args"):
            for row, name, value in zip(batch.plain("parent"), batch.plain("name"),
                                        batch.plain("int"), strict=True):  # fmt: skip
                args[row] = args.get(row, "") + f" {name}={value}"
        for batch in capture.batches("logs"):
            for row, ts, component, message in zip(
                *(batch.plain(name) for name in ("row", "ts", "component", "message")), strict=True
            ):
                line = f"{begin}{ts} {component}: {message}{args.get(row, '')}{end}\n"
                self._sink.write(line.encode())

    def close(self) -> Mapping[str, int]:
        return {}


class LogWriter:
    """Lines as they stood."""

    def __init__(self, sink: Sink, options: Mapping[str, Any], diagnostics: Diagnostics) -> None:
        self._sink = sink

    def write(self, one: Any) -> None:
        shown = one if isinstance(one, dict) else one.to_json()
        self._sink.write(bytes.fromhex(shown["raw"]))

    def close(self) -> None:
        pass


def sniff(probe: Probe) -> Confidence:
    return Confidence.LIKELY if probe.has_suffix((".toylog",)) else Confidence.NONE


READER = Reader(
    format="toylog", title="toy logs", suffixes=(".toylog",), sniff=sniff, open=LogToy,
    options=(
        Option(name="utc_offset_ns", type=int, default=0, help="the clock's offset", portable=True),
        Option(name="suffix", type=bool, default=False, help="nothing"),
    ),
    rules=lambda: RULES,
)  # fmt: skip


@hookimpl
def fx_readers() -> Iterable[Reader]:
    return [READER]


@hookimpl
def fx_writers() -> Iterable[Writer]:
    return [Writer(format="toylog", title="toy logs", suffixes=(".toylog",), open=LogWriter)]


@hookimpl
def fx_exporters() -> Iterable[Exporter]:
    return [
        Exporter(
            name="text", title="lines", accepts="toylog", suffixes=(".txt",), open=LogText,
            options=(Option(name="color", type=bool, default=False, help="in red"),),
        )
    ]  # fmt: skip
