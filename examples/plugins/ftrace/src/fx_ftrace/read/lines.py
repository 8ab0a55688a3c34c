"""Lines: the columns of an event, and its fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs

__all__ = ["COMMENT", "LOST", "Event", "Line", "fields", "parsed"]

COMMENT = re.compile(rb"[ \t\r]*+(?:#|$|cpus=\d|version = |CPU \d++ is empty|-{5})")
LOST = re.compile(rb"[ \t]*+CPU:(\d++) \[(?:LOST )?(\d*+) ?EVENTS(?: DROPPED)?\]")
FRAME = re.compile(rb"[ \t]++(?:[0-9a-f]{6,16}|=>) ")
"""A line of the stack below an event."""
_WHEN = rb"(?P<s>\d{1,11}+)\.(?P<fraction>\d{6}(?:\d{3})?+):[ ]*+"
_WHAT = (
    rb"(?:(?P<event>[\w.\-]++(?::[\w.\-]++)*+):(?:[ ](?P<body>.*+)|$)"
    rb"|(?P<function>\S++) <- ?(?P<caller>.*+))"
)
_TASK = rb"[ ]*+(?P<comm>.{1,48}?)-(?P<tid>\d{1,9}+)[ ]*+"
_FORMS = [
    re.compile(form, re.DOTALL)
    for form in (
        # ftrace and trace-cmd: task-tid (tgid) [cpu] flags time: event: fields
        _TASK + rb"(?:\([ ]*+(?P<tgid>\d++|-++)\)[ ]*+)?\[(?P<cpu>\d{1,5}+)\][ ]++"
        rb"(?:[^\s:]{4,6}+[ ]++)?" + _WHEN + _WHAT,
        # with latency-format: the CPU before the flags, seconds or microseconds
        _TASK + rb"(?:\([ ]*+(?P<tgid>\d++|-++)\)[ ]*+)?(?P<cpu>\d{1,4}+)[^\s\d:]\S{2,6}+[ ]++"
        rb"(?:" + _WHEN + rb"|(?P<us>\d{1,15}+)us[ +!#*@$]?:[ ]*+)" + _WHAT,
        # perf script: task pid/tid [cpu] time: period event: fields
        rb"[ ]*+(?P<comm>.{1,48}?)[ ]++(?:(?P<tgid>-?\d{1,9}+)/)?(?P<tid>-?\d{1,9}+)[ ]++"
        rb"(?:\[(?P<cpu>\d{1,5}+)\][ ]++)?" + _WHEN + rb"(?:(?P<period>\d++)[ ]++)?" + _WHAT,
    )
]
_KEY = re.compile(rb"(?:^|(?<=[\s\[({,]))([A-Za-z_]\w*+)=")
_HEX = re.compile(rb"0x[0-9a-fA-F]{1,16}")
_DECIMAL = re.compile(rb"-?\d{1,18}")
NONE = b"-"


@attrs.frozen
class Event:
    """The columns of an event. Texts are bytes, as the kernel has them."""

    name: bytes
    """Without the system before it (``sched:``)."""
    system: bytes | None
    ns: int
    cpu: int
    comm: bytes
    tid: int
    tgid: int | None
    """None where it is not known."""
    body: bytes


@attrs.frozen
class Line:
    """A line: ``event``, ``lost``, ``comment``, ``frame``, ``unknown`` or ``damaged``."""

    record: str
    offset: int
    raw: bytes
    event: Event | None = None

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return len(self.raw)

    @property
    def ns(self) -> int | None:
        """Its time in nanoseconds."""
        return None if self.event is None else self.event.ns

    def to_json(self) -> dict[str, Any]:
        """As record JSON: ``text``, where bytes that are not UTF-8 are escaped."""
        text = self.raw.decode("utf-8", "backslashreplace")
        return {"record": self.record, "offset": self.offset, "nbytes": len(self.raw), "text": text}


def parsed(line: bytes) -> Event | None:
    """The columns of a line; None where it is not an event. Takes time in proportion to it."""
    for form in _FORMS:
        found = form.match(line)
        if found is not None:
            break
    else:
        return None
    given = found.groupdict()
    ns = int(given["us"]) * 1000 if given.get("us") else _ns(given["s"], given["fraction"])
    name, body = given["event"], given["body"] or b""
    if name is None:
        name, body = given["function"], b"caller=" + given["caller"]
    system, _, short = name.rpartition(b":")
    tgid = given["tgid"]
    return Event(
        name=short,
        system=system or None,
        ns=ns,
        cpu=int(given["cpu"] or 0),
        comm=given["comm"].strip(),
        tid=int(given["tid"]),
        tgid=None if tgid is None or tgid[:1] == NONE else int(tgid),
        body=body.strip(),
    )


def _ns(seconds: bytes, fraction: bytes) -> int:
    return int(seconds) * 1_000_000_000 + int(fraction.ljust(9, b"0"))


def fields(body: bytes) -> Iterator[tuple[bytes, int | bytes]]:
    """The fields ``key=value`` of an event, numbers as such; of any other text, all as ``text``."""
    keys = list(_KEY.finditer(body))
    if not keys:
        if body:
            yield b"text", body
        return
    for key, until in zip(keys, [*(each.start() for each in keys[1:]), len(body)], strict=True):
        value = body[key.end() : until].strip(b" \t[](){},")
        if _DECIMAL.fullmatch(value):
            yield key[1], int(value)
        elif _HEX.fullmatch(value):
            yield key[1], int(value, 16)
        else:
            yield key[1], value
