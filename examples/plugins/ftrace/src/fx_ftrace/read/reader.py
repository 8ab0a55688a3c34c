"""Reader: a text of ftrace as a capture."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import attrs
import numpy as np

from fx_ftrace.read.lines import COMMENT, FRAME, LOST, Line, parsed
from fx_ftrace.read.rows import SCHEMAS, Rows
from fx_ftrace.rules import RULES
from fxframework.model.capture import Capture
from fxframework.model.table import Table

__all__ = ["FtraceCapture"]

_NAME = re.compile(rb"\b\w++(?=:)")
"""The name of an event."""


class FtraceCapture(Capture):
    """What the kernel, trace-cmd or perf printed: a record for each line."""

    format = "ftrace"
    rules = RULES
    schemas = SCHEMAS
    timed_records = True

    def records(self) -> Iterator[Line]:
        """Every line with its end."""
        findings = self.record_diagnostics
        ends = np.append(np.flatnonzero(self.source.data == ord("\n")) + 1, self.source.size)
        start = 0
        for end in np.unique(ends[ends > 0]).tolist():
            record = self._line(start, self.source.read(start, end - start))
            code, detail = _fault(record)
            if code and findings is not None:
                findings.add(code, detail, offset=start)
            yield record
            start = end

    def _line(self, offset: int, raw: bytes) -> Line:
        limits = self.request.limits
        if limits.max_record and len(raw) > limits.max_record:
            return Line("damaged", offset, raw)
        for kind, pattern in (("comment", COMMENT), ("lost", LOST), ("frame", FRAME)):
            if pattern.match(raw):
                return Line(kind, offset, raw)
        event = parsed(raw)
        return Line("unknown" if event is None else "event", offset, raw, event)

    @functools.cached_property
    def rows(self) -> Rows:
        """All rows, from one pass over the file."""
        limits = self.request.limits
        rows = Rows({found[0] for found in _NAME.finditer(self.source.data.data)}, limits)
        self.diagnostics.forget(self.rules)
        for record in self.checked_records():
            if isinstance(record, Line) and record.event is not None:
                event = record.event
                if limits.max_string and len(event.body) > limits.max_string:
                    self.diagnostics.add("FTR0104", offset=record.offset)
                    event = attrs.evolve(event, body=event.body[: limits.max_string])
                rows.add(event, record.offset)
        for code, offsets in (("FTR0201", rows.alone), ("FTR0202", rows.open_offsets)):
            for offset in offsets:
                self.diagnostics.add(code, offset=offset)
        return rows

    def scan(self) -> None:
        """Read all of it."""
        _ = self.rows

    def _table(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = self.rows.table(name, self.strings)
        return self._tables[name]


def _fault(record: Line) -> tuple[str, str]:
    """The code of what is wrong with a line, and what to say of it."""
    if record.record == "lost":
        found = LOST.match(record.raw)
        assert found is not None
        cpu, count = (each.decode() for each in found.groups())
        return "FTR0101", f"{count or 'some'} events of CPU {cpu}"
    return {"unknown": "FTR0102", "damaged": "FTR0103"}.get(record.record, ""), ""
