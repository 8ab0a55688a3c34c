"""The findings of Chrome JSON, beside those of the trace format about slices."""

from __future__ import annotations

from typing import Final

from fx_trace import rules as trace_rules
from fxframework.errors import Catalogue, Rule, Severity

LOSS = Severity.DATA_LOSS
WARNING = Severity.WARNING
INFO = Severity.INFO
FORM = "Trace Event Format, JSON Format"
EVENTS = "Trace Event Format, Event Descriptions"

NOT_A_TRACE = Rule(
    "FXT0601",
    LOSS,
    "this is not a trace of JSON",
    FORM,
    "A file is an array of events, or an object with traceEvents.",
    ours="All bytes are `damaged`.",
    remedy="Name the right format with -f.",
)
NOT_CLOSED = Rule(
    "FXT0602",
    LOSS,
    "an event or the document does not end",
    FORM,
    "Brackets and quotes are closed; only the bracket of an array of events may be missing.",
    ours="An event is `damaged`, and reading goes on at the next one.",
    remedy="The file was cut off, or a quote is missing: all events before that are sound.",
)
NOT_AN_EVENT = Rule(
    "FXT0603",
    LOSS,
    "an event is not a JSON object",
    EVENTS,
    "Each event is an object.",
    detail="{value}",
    ours="It is `damaged`.",
)
UNEXPECTED = Rule(
    "FXT0604",
    LOSS,
    "unexpected bytes outside of events",
    FORM,
    "An object has members, and nothing follows the document.",
    ours="They are `damaged`.",
)
NO_COMMA = Rule(
    "FXT0605",
    WARNING,
    "events are not separated by one comma",
    FORM,
    "One comma separates two events.",
    ours="Both are read.",
)
NOT_UTF8 = Rule(
    "FXT0606",
    WARNING,
    "a string is not UTF-8",
    FORM,
    "JSON is UTF-8.",
    ours="Tables keep its bytes.",
)
NOT_FINITE = Rule(
    "FXT0607",
    WARNING,
    "NaN and Infinity are not JSON",
    FORM,
    "Numbers are finite.",
    detail="{value}",
    ours="Tables have the double.",
)
NO_TIME = Rule(
    "FXT0608",
    LOSS,
    "an event has no valid time",
    EVENTS,
    "Each event but metadata has a time, in microseconds.",
    detail="ts is {value}",
    ours="The event is a record only, and in no table.",
)
INVALID_MEMBER = Rule(
    "FXT0609",
    WARNING,
    "a member of an event has no valid value",
    EVENTS,
    "Lengths are microseconds, names and categories strings, and counters have numbers.",
    detail="{value}",
    ours="Tables leave out what the member would say.",
)
LEFT_OUT = Rule(
    "FXT0610",
    INFO,
    "events of this phase are in no table",
    EVENTS,
    "Of the phases, B E X i I C b n e s t f and M have tables.",
    detail="phase {value}",
    ours="They are records only.",
)
TOO_LONG = Rule(
    "FXT0611",
    LOSS,
    "an event or a string is longer than the limit",
    EVENTS,
    "Events fit max_record, strings max_string.",
    detail="{value}",
    ours="The event is `damaged`; of a string tables have the first bytes.",
    remedy="Raise the limit with -o max_record=BYTES or -o max_string=BYTES.",
)

MATCHING: Final = (
    trace_rules.ASYNC_END_WITHOUT_BEGIN,
    trace_rules.END_WITHOUT_BEGIN,
    trace_rules.ENDS_AFTER_PARENT,
    trace_rules.ENDS_BEFORE_BEGIN,
    trace_rules.ENDS_BY_ANOTHER_NAME,
    trace_rules.NEVER_CLOSED,
    trace_rules.TOO_DEEP,
)
"""Rules of the trace format that matching begins and ends reports here too."""

RULES = Catalogue((*MATCHING, *Catalogue.of(globals()).values()))
