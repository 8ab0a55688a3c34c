"""Sniff: whether the first bytes of a file are those of a trace of JSON."""

from __future__ import annotations

import re

from fxframework.registry import Confidence, Probe

__all__ = ["sniff"]

_SPACE = rb"[ \t\r\n]*+"
_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?" + _SPACE + rb"([\[{])" + _SPACE)
_EVENTS = re.compile(rb'"traceEvents"' + _SPACE + rb":" + _SPACE + rb"\[")
_PHASE = re.compile(rb'"ph"' + _SPACE + rb":" + _SPACE + rb'"[^"\\]"')
_MARK = re.compile(rb'"(?:ts|pid|tid|name)"' + _SPACE + rb":")


def sniff(probe: Probe) -> Confidence:
    """How sure it is that an input is a trace of JSON.

    CERTAIN where an object has ``traceEvents``, or where the first element of an array has a phase
    and another member of an event; MAYBE for an object whose name says so and whose events are not
    within the probe.
    """
    begin = _BEGIN.match(probe.head)
    if begin is None:
        return Confidence.NONE
    if begin[1] == b"{":
        return Confidence.CERTAIN if _EVENTS.search(probe.head) else Confidence.NONE
    first = probe.head[begin.end() :].partition(b"}")[0]
    if first[:1] == b"{" and _PHASE.search(first) and _MARK.search(first):
        return Confidence.CERTAIN
    return Confidence.NONE
