"""Capture: opens Chrome JSON. Records are stretches of the file, tables are made at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Final

import attrs
import numpy as np

from fx_trace.chrome import rules
from fx_trace.chrome.rows import NO_VALUE, RowBuilder, kind_of
from fx_trace.chrome.scan import Scanner, Stretch, parse
from fx_trace.read.match import other_text_detail
from fx_trace.rules import ENDS_BY_ANOTHER_NAME, NEVER_CLOSED
from fxframework.errors import Rule
from fxframework.kit.scanned import Columns, FirstPass, Note, Notes, ScannedCapture
from fxframework.model.diagnostics import Found
from fxframework.model.schema import STANDARD_TABLES, TableSchema
from fxframework.model.table import Table

__all__ = ["ChromeCapture", "ChromeRecord"]

RELEASE_BYTES: Final = 1 << 24
"""Bytes of the file after which those that were read are released."""


@attrs.frozen
class ChromeRecord:
    """An event with the separator behind it, or another stretch of the file, lossless.

    ``record`` is its kind: of an event that of its phase (``complete``, ``counter``, …) or
    ``event``; else ``header`` (what opens the document), ``member`` (a key beside the events),
    ``space`` (separators alone), ``close`` (a bracket that closes) or ``damaged``.
    """

    record: str
    offset: int
    raw: bytes

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return len(self.raw)

    def to_json(self) -> dict[str, Any]:
        """Return it as record JSON: its ``text``, or ``raw`` in hexadecimal if not UTF-8."""
        fields = {"record": self.record, "offset": self.offset, "nbytes": self.nbytes}
        try:
            return fields | {"text": self.raw.decode()}
        except UnicodeDecodeError:
            return fields | {"raw": self.raw.hex()}


class FoundInFile:
    """The findings of a file: those that are listed, and how many there are in all."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.listed: list[Found] = []
        """At most ``most`` of each rule, all if that is 0."""
        self.counts: Counter[Rule] = Counter()
        """How many findings there are of each rule, listed or not."""

    def add(self, rule: Rule, offset: int, value: object = None) -> None:
        """Take a finding."""
        self.counts[rule] += 1
        if not self.most or self.counts[rule] <= self.most:
            self.listed.append(Found(rule, offset, value))


class ChromePass(FirstPass[None]):
    """A whole file, read once into rows."""

    def __init__(self, capture: ChromeCapture) -> None:
        limits = capture.request.limits
        self.found = FoundInFile(limits.max_findings)
        # What reports findings does not refer to the pass, which has the builder.
        self.builder = RowBuilder(capture.strings, limits, self.found.add)
        self._kinds: Counter[str] = Counter()
        source = capture.source
        scanner = Scanner(source.data)
        released = 0
        for piece in scanner.pieces():
            if isinstance(piece, Stretch):
                self._kinds[piece.kind] += 1
                if piece.rule is not None:
                    self.found.add(piece.rule, piece.start)
                continue
            events = parse(source.data.data, piece, limits.max_record, self.found.add)
            self.builder.add(source.data.data, events, piece.starts, piece.stops)
            capture.check_budget()
            if piece.stop - released > RELEASE_BYTES:
                source.release(released, piece.stop)
                released = piece.stop
        # An event that does not end leaves its array and the document open: one finding is enough.
        if scanner.open_member is not None and not self.found.counts[rules.NOT_CLOSED]:
            self.found.add(rules.NOT_CLOSED, scanner.open_member)
        self.builder.finish()
        self._kinds += self.builder.kinds

    @property
    def notes(self) -> tuple[Notes, ...]:
        """The findings of matching."""
        return (self.builder.notes,)

    @property
    def records(self) -> int:
        """Number of records in the file."""
        return self._kinds.total()

    @property
    def kinds(self) -> dict[str, int]:
        """Number of records by kind."""
        return dict(self._kinds)

    @property
    def rows(self) -> dict[str, int]:
        """Number of rows by table."""
        counts = dict.fromkeys(ChromeCapture.schemas, 0)
        for name, columns in self.builder.tables.items():
            if columns:
                counts[name] = len(columns["offset"])
        counts["processes"] = len(self.builder.process_offsets)
        counts["threads"] = len(self.builder.tasks.offsets)
        return counts

    @cached_property
    def range(self) -> tuple[int | None, int | None]:
        """The first and the last time."""
        tables = self.builder.tables
        times = [columns["ts"] for columns in tables.values() if "ts" in columns]
        if slices := tables.get("slices"):
            # An open slice has a length below 0, and ends nowhere.
            times.append(slices["ts"] + np.maximum(slices["dur"], 0))
        times = [column for column in times if column.size]
        if not times:
            return None, None
        first = min(int(column.min()) for column in times)
        last = max(int(column.max()) for column in times)
        return first, last


class ChromeCapture(ScannedCapture[ChromePass, None]):
    """A trace in the Trace Event Format: an array of events, or an object that has one."""

    format = "chrome-json"
    rules = rules.RULES
    memory_factor = 10
    streamed = frozenset()
    schemas: ClassVar[Mapping[str, TableSchema]] = {
        name: STANDARD_TABLES[name]
        for name in ("processes", "threads", "slices", "instants", "counters", "flows", "args")
    }

    def records(self) -> Iterator[ChromeRecord]:
        """Yield every event with the separator behind it, and what is around and between them."""
        diagnostics = self.record_diagnostics

        def report(rule: Rule, offset: int, value: object = None) -> None:
            if diagnostics is not None:
                diagnostics.add(rule, offset, value=value)

        data = self.source.data.data
        for piece in Scanner(self.source.data).pieces():
            if isinstance(piece, Stretch):
                if piece.rule is not None:
                    report(piece.rule, piece.start)
                yield ChromeRecord(piece.kind, piece.start, bytes(data[piece.start : piece.stop]))
                continue
            events = parse(data, piece, self.request.limits.max_record, report)
            extents = zip(piece.starts.tolist(), piece.ends.tolist(), strict=True)
            for event, (start, end) in zip(events, extents, strict=True):
                yield ChromeRecord(kind_of(event), start, bytes(data[start:end]))

    # --- What a scanned capture asks for ---------------------------------------------------------

    def _run_pass(self, *, whole: bool) -> ChromePass:  # noqa: ARG002 (there is no other)
        return ChromePass(self)

    def _parts(self, passed: ChromePass) -> Iterator[None]:  # noqa: ARG002 (no table is streamed)
        return iter(())

    def _batch(self, name: str, passed: ChromePass, part: None) -> Any:
        """Return nothing: no table is streamed."""

    def _report(self, passed: ChromePass) -> None:
        self.diagnostics.report(passed.found.listed)
        listed = Counter(finding.rule for finding in passed.found.listed)
        for rule, count in passed.found.counts.items():
            self.report_more(rule, count, listed[rule])
        super()._report(passed)
        self.report_offsets(NEVER_CLOSED, passed.builder.open_offsets)

    def _value(self, note: Note) -> object:
        if note.rule is not ENDS_BY_ANOTHER_NAME:
            return None
        return other_text_detail(note.value, self.strings)

    def _small(self, name: str, passed: ChromePass) -> Columns:
        builder = passed.builder
        if name == "processes":
            # In the order of their first events.
            processes = sorted(builder.process_offsets.items(), key=lambda process: process[1])
            given_names = builder.pids.names | builder.process_names
            names = [given_names.get(pid, NO_VALUE) for pid, _ in processes]
            return {
                "offset": np.array([offset for _, offset in processes], np.int64),
                "pid": np.array([pid for pid, _ in processes], np.uint64),
                "name": np.array(names, np.int32),
            }
        if name == "threads":
            texts = [builder.tids.names.get(tid, NO_VALUE) for tid in builder.tasks.tids]
            names = [builder.thread_names.get(*named) for named in enumerate(texts)]
            return {**builder.tasks.columns(name), "name": np.array(names, np.int32)}
        table = builder.tables.get(name)
        if not table:
            empty = Table.of(self.schemas[name], self.strings)
            return {column: empty[column] for column in empty.columns if column != "row"}
        columns: Columns = dict(table)
        if "ts" in table:
            columns["ticks"] = table["ts"].view(np.uint64)
        return columns
