"""Reader: a trace of JSON as a capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from fx_chrome_json import rules
from fx_chrome_json.layout import KINDS
from fx_chrome_json.read.arguments import argument_columns
from fx_chrome_json.read.first_pass import STACKS, ChromePass, Stage
from fx_chrome_json.read.parse import Event, parse
from fx_chrome_json.read.records import TraceRecord
from fx_chrome_json.read.scan import Scanner, Stretch
from fx_chrome_json.read.tables import SCHEMAS, STREAMED
from fxframework.errors import Rule
from fxframework.io.source import Source
from fxframework.kit import Batch, Columns, ScannedCapture
from fxframework.model.capture import OpenRequest
from fxframework.model.table import Table

__all__ = ["ChromeCapture", "open_chrome"]

KEPT_WHOLE = 1 << 26
"""Files up to this many bytes are kept as columns, larger ones are read again for each table."""
BASE_TIME = "baseTimeNanoseconds"
"""Member of the document: nanoseconds from the Unix epoch to time 0."""


def open_chrome(source: Source, request: OpenRequest) -> ChromeCapture:
    """Open a trace of JSON. Nothing is read yet."""
    return ChromeCapture(source, request)


class ChromeCapture(ScannedCapture[ChromePass, Stage]):
    """A trace in the Trace Event Format: an array of events, or an object that has one."""

    format = "chrome-json"
    rules = rules.RULES
    schemas = SCHEMAS
    streamed = STREAMED

    @property
    def fits_memory(self) -> bool:
        """Whether the columns are kept where nobody asked for whole tables."""
        return self.source.size <= KEPT_WHOLE and super().fits_memory

    @property
    def utc_offset_ns(self) -> int | None:
        """What the document says of its time 0."""
        base = self.first_pass(whole=False).members.get(BASE_TIME)
        return base if type(base) is int else None

    def records(self) -> Iterator[TraceRecord]:
        """Every event with the separator behind it, and what is between and around them."""
        found = self.record_diagnostics

        def report(rule: Rule, offset: int, value: object = None) -> None:
            if found is not None:
                found.add(rule, offset, value=value)

        data = self.source.data.data
        for piece in Scanner(self.source.data, self.request.limits.max_record).pieces():
            if isinstance(piece, Stretch):
                if piece.rule is not None:
                    report(piece.rule, piece.start)
                yield TraceRecord(piece.kind, piece.start, bytes(data[piece.start : piece.stop]))
                continue
            parsed = parse(data, piece, report)
            tiles = parsed.tiles
            if tiles is None:
                begins = piece.starts.tolist()
                tiles = list(zip(begins, [*begins[1:], piece.stop], parsed.events, strict=True))
            for start, stop, event in tiles:
                yield TraceRecord(_kind(event), start, bytes(data[start:stop]))

    # --- What a scanned capture asks for ---------------------------------------------------------

    def _run_pass(self, *, whole: bool) -> ChromePass:
        limits = self.request.limits
        return ChromePass(self.source, self.strings, limits, self.check_budget, whole=whole)

    def _parts(self, passed: ChromePass) -> Iterator[Stage]:
        return passed.stages()

    def _report(self, passed: ChromePass) -> None:
        self.diagnostics.report(passed.found)
        listed = Counter(found.rule for found in passed.found)
        for rule, count in passed.counts.items():
            self.report_more(rule, count, listed[rule])
        self.report_offsets(rules.END_WITHOUT_BEGIN, passed.lone_offsets)
        self.report_offsets(rules.BEGIN_WITHOUT_END, passed.open_offsets)

    def _batch(self, name: str, passed: ChromePass, part: Stage) -> Batch:
        first = part.first[name]
        if name == "args":
            raw = passed.arguments(part)
            if not raw:
                return Batch.of(first, Table.of(self.schemas[name], self.strings))
            return Batch(first, raw["offset"].size, argument_columns(raw))
        if name not in part.tables:
            return Batch.of(first, Table.of(self.schemas[name], self.strings))
        columns: Columns = dict(part.tables[name])
        count = part.tables[name]["offset"].size
        mine = slice(first, first + count)
        if name != "chrome_events":
            columns["ticks"] = part.tables[name]["ts"].view(np.uint64)
        if name == "slices":
            columns |= {
                "dur": passed.dur[mine],
                "depth": passed.depth[mine],
                "parent": passed.parent[mine].astype(np.int64),
            }
        elif name == "flows":
            del columns["next"]
            columns["slice"] = passed.flow_slices[mine]
        elif name == "sched":
            for column in ("thread", "category", "name"):
                del columns[column]
        return Batch(first, count, columns)

    def _small(self, name: str, passed: ChromePass) -> Columns:
        tasks = passed.interpreter.tasks
        for key, table in STACKS.items():
            if name == table:
                return dict(passed.stacks[key])
        if name == "threads":
            ids = range(len(tasks.pids))
            return {
                "offset": np.array(tasks.offsets, np.int64),
                "id": np.arange(len(ids), dtype=np.int32),
                "pid": np.array(tasks.pids, np.uint64),
                "tid": np.array(tasks.tids, np.uint64),
                "name": np.array([tasks.names.get(id, -1) for id in ids], np.int32),
                "chrome_sort_index": np.array(
                    [tasks.sort_index.get(id, -1) for id in ids], np.int32
                ),
            }
        known = list(tasks.processes.values())
        return {
            "pid": np.array(list(tasks.processes), np.uint64),
            "offset": np.array([each[0] for each in known], np.int64),
            "name": np.array([each[1] for each in known], np.int32),
            "chrome_sort_index": np.array([each[2] for each in known], np.int32),
            "chrome_labels": np.array([each[3] for each in known], np.int32),
        }

    def _facts(self, passed: ChromePass) -> dict[str, Any]:
        """The members of the document beside its events."""
        return {"document": passed.members} if passed.members else {}


def _kind(event: Event | None) -> str:
    """The kind of the record of an event, None of what is damaged."""
    if event is None:
        return "damaged"
    letter = event.get("ph")
    return KINDS.get(letter, "event") if isinstance(letter, str) else "event"
