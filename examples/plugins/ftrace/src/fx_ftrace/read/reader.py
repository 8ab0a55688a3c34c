"""Reader: a text of ftrace as a capture."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import attrs
import numpy as np

from fx_ftrace import rules
from fx_ftrace.read.lines import COMMENT, FRAME, LOST, Line, parsed
from fx_ftrace.read.rows import SCHEMAS, Rows
from fxframework.errors import Rule
from fxframework.model.capture import Capture
from fxframework.model.table import Table

__all__ = ["FtraceCapture"]

_NAME = re.compile(rb"\b\w++(?=:)")
"""The name of an event."""


_FAULTS = {"unknown": rules.UNKNOWN_LINE, "damaged": rules.LINE_OVER_LIMIT}
"""What is wrong with a line of a kind."""


class FtraceCapture(Capture):
    """What the kernel, trace-cmd or perf printed: a record for each line."""

    format = "ftrace"
    rules = rules.RULES
    schemas = SCHEMAS
    timed_records = True

    def records(self) -> Iterator[Line]:
        """Every line with its end."""
        findings = self.record_diagnostics
        ends = np.append(np.flatnonzero(self.source.data == ord("\n")) + 1, self.source.size)
        start = 0
        for end in np.unique(ends[ends > 0]).tolist():
            record = self._line(start, self.source.read(start, end - start))
            rule, value = _fault(record)
            if rule is not None and findings is not None:
                findings.add(rule, start, value=value)
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
                    self.diagnostics.add(rules.STRING_OVER_LIMIT, record.offset)
                    event = attrs.evolve(event, body=event.body[: limits.max_string])
                rows.add(event, record.offset)
        for offset in rows.alone:
            self.diagnostics.add(rules.END_WITHOUT_BEGIN, offset)
        for offset in rows.open_offsets:
            self.diagnostics.add(rules.BEGIN_WITHOUT_END, offset)
        return rows

    def scan(self) -> None:
        """Read all of it."""
        _ = self.rows

    def _table(self, name: str) -> Table:
        if name not in self._tables:
            self._tables[name] = self.rows.table(name, self.strings)
        return self._tables[name]


def _fault(record: Line) -> tuple[Rule | None, str | None]:
    """Return the rule that a line violates, and the value of the finding."""
    if record.record == "lost":
        found = LOST.match(record.raw)
        assert found is not None
        cpu, count = (each.decode() for each in found.groups())
        return rules.EVENTS_LOST, f"{count or 'some'} events of CPU {cpu}"
    return _FAULTS.get(record.record), None
