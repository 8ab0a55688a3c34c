"""Rules: what can be wrong with a trace of JSON, by code."""

from __future__ import annotations

from fxframework.errors import Catalogue, Rule, Severity

__all__ = ["RULES"]

_FORMAT = "Trace Event Format"
_LOSS, _WARNING, _INFO = Severity.DATA_LOSS, Severity.WARNING, Severity.INFO


def _rule(
    number: str,
    severity: Severity,
    title: str,
    rule: str,
    section: str,
    ours: str,
    remedy: str = "",
) -> Rule:
    return Rule(
        code=f"CHJ{number}",
        severity=severity,
        title=title,
        rule=rule,
        section=f"{_FORMAT}, {section}",
        ours=ours,
        remedy=remedy,
    )


RULES = Catalogue(
    [
        _rule(
            "0001", _LOSS, "this is not a trace of JSON",
            "A file is an array of events, or an object with traceEvents.",
            "JSON Format", "All bytes are `damaged`.", "Name the right format with -f.",
        ),
        _rule(
            "0101", _LOSS, "an event or a member does not end",
            "Brackets and quotes are closed.",
            "JSON Format", "It is `damaged`; reading goes on at the next event.",
            "The file was cut off: all events before that are sound.",
        ),
        _rule(
            "0102", _LOSS, "an event is not a JSON object",
            "Each event is an object.",
            "Event Descriptions", "It is `damaged`.",
        ),
        _rule(
            "0103", _LOSS, "unexpected bytes outside of events",
            "Events are separated by commas, and nothing follows the document.",
            "JSON Format", "They are `damaged`.",
        ),
        _rule(
            "0104", _WARNING, "a string is not UTF-8",
            "JSON is UTF-8.", "JSON Format", "Tables keep its bytes.",
        ),
        _rule(
            "0105", _WARNING, "NaN and Infinity are not JSON",
            "Numbers are finite.", "JSON Format", "Tables have the double.",
        ),
        _rule(
            "0106", _WARNING, "a key occurs twice in one object",
            "The keys of an object are distinct.", "JSON Format", "The last value counts.",
        ),
        _rule(
            "0107", _WARNING, "a member has no valid value",
            "Times and lengths are microseconds, ids numbers or strings, names strings, and "
            "counters have numbers.",
            "Event Descriptions", "Tables leave out what the member would say.",
        ),
        _rule(
            "0108", _LOSS, "the document is not closed",
            "An object ends with a brace.", "JSON Object Format",
            "All events that there are can be read.", "The file may be cut off.",
        ),
        _rule(
            "0109", _LOSS, "an event is longer than max_record",
            "Events fit the limits of the reading.", "Event Descriptions", "It is `damaged`.",
            "Raise the limit with -o max_record=BYTES.",
        ),
        _rule(
            "0110", _WARNING, "an integer does not fit 64 bits",
            "Integers have 64 bits.", "Event Descriptions",
            "An argument of such an integer is a string of its digits.",
        ),
        _rule(
            "0111", _LOSS, "a string is longer than max_string",
            "Strings fit the limits of the reading.", "Event Descriptions",
            "Tables have its first bytes.", "Raise the limit with -o max_string=BYTES.",
        ),
        _rule(
            "0112", _INFO, "the phase of an event is unknown",
            "The phase is one of those that the format lists.", "Event Descriptions",
            "Its row is in `chrome_events`.",
        ),
        _rule(
            "0113", _LOSS, "an event has no valid time",
            "Each event but metadata has a time.", "Event Descriptions",
            "The event is a record only, and in no table.",
        ),
        _rule(
            "0201", _WARNING, "an end has no begin",
            "Each end closes a slice of its thread, or of its id.", "Duration Events",
            "It is in no table.",
        ),
        _rule(
            "0202", _INFO, "a begin has no end",
            "Each begin is closed.", "Duration Events", "The length of the slice is -1.",
        ),
    ]
)  # fmt: skip
