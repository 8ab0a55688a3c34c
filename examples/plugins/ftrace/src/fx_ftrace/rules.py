"""Rules: what can be wrong with a text of ftrace, by code."""

from __future__ import annotations

from fxframework.errors import Catalogue, Rule, Severity

__all__ = ["RULES"]

_SECTION = "Linux kernel documentation, ftrace, Output format"
_ROWS = (
    ("FTR0101", Severity.DATA_LOSS, "events were lost",
     "The buffer of a CPU holds all events.", "What was lost is in no table."),
    ("FTR0102", Severity.WARNING, "a line is neither an event nor a comment",
     "A line has a task, a CPU, a time and an event.", "The line is a record, `unknown`."),
    ("FTR0103", Severity.DATA_LOSS, "a line is longer than max_record",
     "Lines fit the limits of the reading.", "The line is `damaged`."),
    ("FTR0104", Severity.DATA_LOSS, "a string is longer than max_string",
     "Strings fit the limits of the reading.", "Tables have its first bytes."),
    ("FTR0201", Severity.INFO, "an end without a begin",
     "Each exit follows its entry.", "The exit is an instant."),
    ("FTR0202", Severity.INFO, "a begin without an end",
     "Each entry is followed by its exit.", "The length of the slice is -1."),
)  # fmt: skip
RULES = Catalogue(
    [
        Rule(code=code, severity=severity, title=title, rule=rule, section=_SECTION, ours=ours)
        for code, severity, title, rule, ours in _ROWS
    ]
)
