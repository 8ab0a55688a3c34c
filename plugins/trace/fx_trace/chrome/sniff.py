"""Sniff: whether the first bytes of a file are those of a trace of JSON; and a sample of one."""

from __future__ import annotations

import re
from typing import Final

from fxframework.registry import Confidence, Probe

SPACES: Final = rb"[ \t\r\n]*+"
SEPARATORS: Final = rb"[ \t\r\n,]*+"
BEGIN: Final = re.compile(rb"(?:\xef\xbb\xbf)?%b([\[{])%b" % (SPACES, SEPARATORS))
EVENTS: Final = re.compile(rb'"traceEvents"%b:%b\[' % (SPACES, SPACES))
PHASE: Final = re.compile(rb'"ph"%b:%b"[^"\\]"' % (SPACES, SPACES))
MARK: Final = re.compile(rb'"(?:ts|pid|tid|name)"%b:' % SPACES)
HEAD: Final = (
    b'{"displayTimeUnit":"ns","traceEvents":[\n'
    b'{"ph":"M","pid":1,"name":"process_name","args":{"name":"shop"}}'
)
EVENTS_OF_ORDER: Final = (
    b',\n{"ph":"B","ts":%d.125,"pid":1,"tid":2,"cat":"shop","name":"order","args":{"lines":3}}'
    b',\n{"ph":"X","ts":%d.5,"dur":3.001,"pid":1,"tid":2,"cat":"pay","name":"charge"}'
    b',\n{"ph":"C","ts":%d,"pid":1,"tid":2,"name":"queue","args":{"long":%d}}'
    b',\n{"ph":"E","ts":%d.75,"pid":1,"tid":2}'
)


def sniff(probe: Probe) -> Confidence:
    """Return CERTAIN for an object with ``traceEvents``, or an array that begins with an event.

    An event is an object that has a phase and one more member that is usual in events.
    """
    begin = BEGIN.match(probe.head)
    if begin is None:
        return Confidence.NONE
    if begin[1] == b"{":
        is_trace = EVENTS.search(probe.head) is not None
    else:
        # Up to the first closing bracket, which may be that of the arguments.
        event = probe.head[begin.end() :].partition(b"}")[0]
        is_trace = event.startswith(b"{") and bool(PHASE.search(event) and MARK.search(event))
    return Confidence.CERTAIN if is_trace else Confidence.NONE


def sample(nbytes: int) -> bytes:
    """Make a typical file of about that many bytes."""
    data = bytearray(HEAD)
    ts = 0
    while len(data) < nbytes:
        data += EVENTS_OF_ORDER % (ts, ts + 2, ts + 3, ts // 10 % 7, ts + 6)
        ts += 10
    return bytes(data) + b"\n]}\n"
