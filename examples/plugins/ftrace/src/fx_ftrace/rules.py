"""Rules: what can be wrong with a text of ftrace, by name."""

from __future__ import annotations

from fxframework.errors import Catalogue, Rule, Severity

SECTION = "Linux kernel documentation, ftrace, Output format"

EVENTS_LOST = Rule(
    "FTR0101",
    Severity.DATA_LOSS,
    "events were lost",
    SECTION,
    "The buffer of a CPU holds all events.",
    detail="{value}",
    ours="What was lost is in no table.",
)
UNKNOWN_LINE = Rule(
    "FTR0102",
    Severity.WARNING,
    "a line is neither an event nor a comment",
    SECTION,
    "A line has a task, a CPU, a time and an event.",
    ours="The line is a record, `unknown`.",
)
LINE_OVER_LIMIT = Rule(
    "FTR0103",
    Severity.DATA_LOSS,
    "a line is longer than max_record",
    SECTION,
    "Lines fit the limits of the reading.",
    ours="The line is `damaged`.",
)
STRING_OVER_LIMIT = Rule(
    "FTR0104",
    Severity.DATA_LOSS,
    "a string is longer than max_string",
    SECTION,
    "Strings fit the limits of the reading.",
    ours="Tables have its first bytes.",
)
END_WITHOUT_BEGIN = Rule(
    "FTR0201",
    Severity.INFO,
    "an end without a begin",
    SECTION,
    "Each exit follows its entry.",
    ours="The exit is an instant.",
)
BEGIN_WITHOUT_END = Rule(
    "FTR0202",
    Severity.INFO,
    "a begin without an end",
    SECTION,
    "Each entry is followed by its exit.",
    ours="The length of the slice is -1.",
)

RULES = Catalogue.of(globals())
