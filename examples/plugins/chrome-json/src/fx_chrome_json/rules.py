"""Rules: what can be wrong with a trace of JSON, by name."""

from __future__ import annotations

from fxframework.errors import Catalogue, Rule, Severity

LOSS, WARNING, INFO = Severity.DATA_LOSS, Severity.WARNING, Severity.INFO

NOT_A_TRACE = Rule(
    "CHJ0001",
    LOSS,
    "this is not a trace of JSON",
    "Trace Event Format, JSON Format",
    "A file is an array of events, or an object with traceEvents.",
    ours="All bytes are `damaged`.",
    remedy="Name the right format with -f.",
)
NOT_CLOSED = Rule(
    "CHJ0101",
    LOSS,
    "an event or a member does not end",
    "Trace Event Format, JSON Format",
    "Brackets and quotes are closed.",
    ours="It is `damaged`; reading goes on at the next event.",
    remedy="The file was cut off: all events before that are sound.",
)
NOT_AN_EVENT = Rule(
    "CHJ0102",
    LOSS,
    "an event is not a JSON object",
    "Trace Event Format, Event Descriptions",
    "Each event is an object.",
    detail="{value}",
    ours="It is `damaged`.",
)
UNEXPECTED_BYTES = Rule(
    "CHJ0103",
    LOSS,
    "unexpected bytes outside of events",
    "Trace Event Format, JSON Format",
    "Events are separated by commas, and nothing follows the document.",
    detail="{value}",
    ours="They are `damaged`.",
)
NOT_UTF8 = Rule(
    "CHJ0104",
    WARNING,
    "a string is not UTF-8",
    "Trace Event Format, JSON Format",
    "JSON is UTF-8.",
    ours="Tables keep its bytes.",
)
NOT_FINITE = Rule(
    "CHJ0105",
    WARNING,
    "NaN and Infinity are not JSON",
    "Trace Event Format, JSON Format",
    "Numbers are finite.",
    detail="{value}",
    ours="Tables have the double.",
)
REPEATED_KEY = Rule(
    "CHJ0106",
    WARNING,
    "a key occurs twice in one object",
    "Trace Event Format, JSON Format",
    "The keys of an object are distinct.",
    detail="{value}",
    ours="The last value counts.",
)
INVALID_MEMBER = Rule(
    "CHJ0107",
    WARNING,
    "a member has no valid value",
    "Trace Event Format, Event Descriptions",
    "Times and lengths are microseconds, ids numbers or strings, names strings, and "
    "counters have numbers.",
    detail="{value}",
    ours="Tables leave out what the member would say.",
)
DOCUMENT_OPEN = Rule(
    "CHJ0108",
    LOSS,
    "the document is not closed",
    "Trace Event Format, JSON Object Format",
    "An object ends with a brace.",
    ours="All events that there are can be read.",
    remedy="The file may be cut off.",
)
EVENT_OVER_LIMIT = Rule(
    "CHJ0109",
    LOSS,
    "an event is longer than max_record",
    "Trace Event Format, Event Descriptions",
    "Events fit the limits of the reading.",
    ours="It is `damaged`.",
    remedy="Raise the limit with -o max_record=BYTES.",
)
INTEGER_OVERFLOW = Rule(
    "CHJ0110",
    WARNING,
    "an integer does not fit 64 bits",
    "Trace Event Format, Event Descriptions",
    "Integers have 64 bits.",
    ours="An argument of such an integer is a string of its digits.",
)
STRING_OVER_LIMIT = Rule(
    "CHJ0111",
    LOSS,
    "a string is longer than max_string",
    "Trace Event Format, Event Descriptions",
    "Strings fit the limits of the reading.",
    detail="{value}",
    ours="Tables have its first bytes.",
    remedy="Raise the limit with -o max_string=BYTES.",
)
UNKNOWN_PHASE = Rule(
    "CHJ0112",
    INFO,
    "the phase of an event is unknown",
    "Trace Event Format, Event Descriptions",
    "The phase is one of those that the format lists.",
    detail="{value}",
    ours="Its row is in `chrome_events`.",
)
NO_TIME = Rule(
    "CHJ0113",
    LOSS,
    "an event has no valid time",
    "Trace Event Format, Event Descriptions",
    "Each event but metadata has a time.",
    detail="{value}",
    ours="The event is a record only, and in no table.",
)
END_WITHOUT_BEGIN = Rule(
    "CHJ0201",
    WARNING,
    "an end has no begin",
    "Trace Event Format, Duration Events",
    "Each end closes a slice of its thread, or of its id.",
    ours="It is in no table.",
)
BEGIN_WITHOUT_END = Rule(
    "CHJ0202",
    INFO,
    "a begin has no end",
    "Trace Event Format, Duration Events",
    "Each begin is closed.",
    ours="The length of the slice is -1.",
)

RULES = Catalogue.of(globals())
