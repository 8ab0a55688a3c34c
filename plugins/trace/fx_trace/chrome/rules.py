"""The findings of Chrome JSON, beside those of the trace format about slices."""

from __future__ import annotations

from typing import Final

from fx_trace import rules as trace_rules
from fxframework.errors import Catalogue, Rule, Severity

LOSS = Severity.DATA_LOSS
FORM = "Trace Event Format, JSON Format"
EVENTS = "Trace Event Format, Event Descriptions"

NOT_CLOSED = Rule(
    "FXT0602",
    LOSS,
    "an event or the document does not end, or is nested too deeply",
    FORM,
    "Brackets and quotes are closed, but for the bracket of an array of events; 64 may be nested.",
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
    "A file is an array of events, or an object with members, and nothing more.",
    ours="They are `damaged`.",
    remedy="Of a file of another format, give the name with -f.",
)
NOT_STRICT = Rule(
    "FXT0605",
    Severity.WARNING,
    "an event is not strict JSON",
    FORM,
    "JSON is UTF-8 without lone surrogates, NaN and Infinity; one comma separates two events.",
    detail="{value}",
    ours="It is read: strings keep their bytes, and numbers are doubles.",
)
NO_TIME = Rule(
    "FXT0608",
    LOSS,
    "an event has no valid time, or length",
    EVENTS,
    "Each event but metadata has a time, and a complete one a length, in microseconds.",
    detail="{value}",
    ours="Without a time it is a record only, and in no table; without a length its slice has 0.",
)
LEFT_OUT = Rule(
    "FXT0610",
    Severity.INFO,
    "events of this phase are in no table",
    EVENTS,
    "Of the phases, B E X i I C b n e s t f and M have tables.",
    detail="phase {value}",
    ours="They are records only.",
)

SHARED: Final = (
    trace_rules.ASYNC_END_WITHOUT_BEGIN,
    trace_rules.END_WITHOUT_BEGIN,
    trace_rules.ENDS_AFTER_PARENT,
    trace_rules.ENDS_BEFORE_BEGIN,
    trace_rules.ENDS_BY_ANOTHER_NAME,
    trace_rules.NEVER_CLOSED,
    trace_rules.RECORD_OVER_LIMIT,
    trace_rules.STRING_OVER_LIMIT,
    trace_rules.TOO_DEEP,
)
"""Rules of the trace format: of matching begins and ends, and of limits."""

RULES = Catalogue((*SHARED, *Catalogue.of(globals()).values()))
