"""Capture: opens Chrome JSON. Records are stretches of the file, tables are made at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, ClassVar, Final

import attrs
import numpy as np

from fx_trace.chrome import rules
from fx_trace.chrome.rows import Rows, kind_of
from fx_trace.chrome.scan import Scanner, Stretch, parse
from fx_trace.format import END_CODE_BITS, OF_CATEGORIES
from fx_trace.rules import another_name_detail
from fxframework.errors import Rule
from fxframework.kit.scanned import Columns, FirstPass, Note, Notes, ScannedCapture
from fxframework.model.diagnostics import Found
from fxframework.model.schema import STANDARD_TABLES, TableSchema
from fxframework.model.table import Table

__all__ = ["ChromeCapture", "ChromeRecord"]

RELEASED: Final = 1 << 24
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
        shown: dict[str, Any] = {
            "record": self.record,
            "offset": self.offset,
            "nbytes": self.nbytes,
        }
        try:
            shown["text"] = self.raw.decode()
        except UnicodeDecodeError:
            shown["raw"] = self.raw.hex()
        return shown


class ChromePass(FirstPass[None]):
    """A whole file, read once into rows."""

    def __init__(self, capture: ChromeCapture) -> None:
        limits = capture.request.limits
        self.found: list[Found] = []
        self.counts: Counter[Rule] = Counter()
        self._limit = limits.max_findings
        self.made = Rows(capture.strings, limits, self._note)
        self._kinds: Counter[str] = Counter()
        source = capture.source
        scanner = Scanner(source.data)
        released = 0
        for piece in scanner.pieces():
            if isinstance(piece, Stretch):
                self._kinds[piece.kind] += 1
                if piece.rule is not None:
                    self._note(piece.rule, piece.start)
                continue
            events = parse(source.data.data, piece, limits.max_record, self._note)
            self.made.add(source.data.data, events, piece.starts, piece.stops)
            capture.check_budget()
            if piece.stop - released > RELEASED:
                source.release(released, piece.stop)
                released = piece.stop
        if scanner.open_at is not None and not self.counts[rules.NOT_CLOSED]:
            self._note(rules.NOT_CLOSED, scanner.open_at)
        self.made.finish()
        self._kinds += self.made.kinds

    def _note(self, rule: Rule, offset: int, value: object = None) -> None:
        self.counts[rule] += 1
        if not self._limit or self.counts[rule] <= self._limit:
            self.found.append(Found(rule, offset, value))

    @property
    def notes(self) -> tuple[Notes, ...]:
        """The findings of matching."""
        return (self.made.notes,)

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
        counts = {name: size_of(columns) for name, columns in self.made.tables.items()}
        tasks = self.made.tasks
        own = {"processes": len(tasks.processes), "threads": len(tasks.offsets)}
        return dict.fromkeys(ChromeCapture.schemas, 0) | counts | own

    @cached_property
    def _range(self) -> tuple[int | None, int | None]:
        times = [columns["ts"] for columns in self.made.tables.values() if "ts" in columns]
        slices = self.made.tables.get("slices")
        if slices:
            times.append(slices["ts"] + np.maximum(slices["dur"], 0))
        known = [each for each in times if each.size]
        if not known:
            return None, None
        return min(int(each.min()) for each in known), max(int(each.max()) for each in known)

    @property
    def range(self) -> tuple[int | None, int | None]:
        """The first and the last time."""
        return self._range


def size_of(columns: dict[str, Any]) -> int:
    """Return how many rows columns have."""
    return len(columns["offset"]) if columns else 0


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
            places = zip(piece.starts.tolist(), piece.ends.tolist(), events, strict=True)
            for start, end, event in places:
                yield ChromeRecord(kind_of(event), start, bytes(data[start:end]))

    # --- What a scanned capture asks for ---------------------------------------------------------

    def _run_pass(self, *, whole: bool) -> ChromePass:  # noqa: ARG002 (there is no other)
        return ChromePass(self)

    def _parts(self, passed: ChromePass) -> Iterator[None]:  # noqa: ARG002 (no table is streamed)
        return iter(())

    def _batch(self, name: str, passed: ChromePass, part: None) -> Any:
        """Return nothing: no table is streamed."""

    def _report(self, passed: ChromePass) -> None:
        self.diagnostics.report(passed.found)
        listed = Counter(found.rule for found in passed.found)
        for rule, count in passed.counts.items():
            self.report_more(rule, count, listed[rule])
        super()._report(passed)
        self.report_offsets(rules.NEVER_CLOSED, passed.made.open_offsets)

    def _value(self, note: Note) -> object:
        if note.rule is not rules.ENDS_BY_ANOTHER_NAME:
            return None
        ended, begun = divmod(note.value % OF_CATEGORIES, 1 << END_CODE_BITS)
        is_category = note.value >= OF_CATEGORIES
        return another_name_detail(self.strings[ended], self.strings[begun], is_category)

    def _small(self, name: str, passed: ChromePass) -> Columns:
        tasks = passed.made.tasks
        if name == "processes":
            pids = dict(sorted(tasks.processes.items(), key=lambda process: process[1]))
            return {
                "offset": np.array(list(pids.values()), np.int64),
                "pid": np.array(list(pids), np.uint64),
                "name": np.array([tasks.process_names.get(pid, -1) for pid in pids], np.int32),
            }
        if name == "threads":
            ids = np.array(tasks.ids, np.uint64).reshape(-1, 2)
            numbers = range(len(ids))
            return {
                "offset": np.array(tasks.offsets, np.int64),
                "id": np.arange(len(ids), dtype=np.int32),
                "pid": ids[:, 0].copy(),
                "tid": ids[:, 1].copy(),
                "name": np.array([tasks.names.get(number, -1) for number in numbers], np.int32),
            }
        columns: Columns = dict(passed.made.tables.get(name, {}))
        if not columns:
            empty = Table.of(self.schemas[name], self.strings)
            return {column: empty[column] for column in empty.columns if column != "row"}
        if "ts" in columns:
            columns["ticks"] = passed.made.tables[name]["ts"].view(np.uint64)
        return columns
