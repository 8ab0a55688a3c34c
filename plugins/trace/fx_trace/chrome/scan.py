"""Scan: the records of a file of Chrome JSON, block by block."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs
import numpy as np
import orjson
from numpy.typing import NDArray

from fx_trace.chrome import rules
from fx_trace.chrome.sniff import BEGIN, SEPARATORS, SPACES
from fx_trace.kinds import EVENT_NAMES
from fx_trace.kinds import EventType as E
from fx_trace.rules import RECORD_OVER_LIMIT
from fxframework.errors import Rule
from fxframework.kernels.arrays import I64

Event = dict[str, Any]
Report = Callable[..., None]
"""Takes the rule of a finding, the byte offset, and ``value`` where the rule shows one."""
KINDS: Final = (
    *(name.removeprefix("duration_") for name in EVENT_NAMES.values()),
    "metadata", "event", "header", "member", "close", "damaged",
)  # fmt: skip
"""Names of the kinds of records: those of ``EventType``, then others."""
METADATA, OTHER_EVENT, HEADER, MEMBER, CLOSE, DAMAGED = range(len(EVENT_NAMES), len(KINDS))
KIND_OF_PHASE: Final[dict[object, int]] = {
    "B": E.DURATION_BEGIN, "E": E.DURATION_END, "X": E.DURATION_COMPLETE, "i": E.INSTANT,
    "I": E.INSTANT, "C": E.COUNTER, "b": E.ASYNC_BEGIN, "n": E.ASYNC_INSTANT, "e": E.ASYNC_END,
    "s": E.FLOW_BEGIN, "t": E.FLOW_STEP, "f": E.FLOW_END, "M": METADATA,
}  # fmt: skip
"""Events of other phases are of the kind ``event``."""
BLOCK_BYTES: Final = 1 << 17
"""Events are parsed together once they are so many bytes."""
RESCANS: Final = 4
"""Bytes that may be scanned again after damage, for each byte of the file."""

# --- Patterns ------------------------------------------------------------------------------------

NESTED: Final = 64
"""The most brackets within brackets of a value."""
PLAIN: Final = rb'[^][{}"]++'
STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def balanced() -> bytes:
    """Return the pattern of a value in brackets. They are counted, not paired: a parser does so."""
    inside = b"|".join([PLAIN, STRING])
    for _ in range(NESTED):
        inside = b"|".join([PLAIN, STRING, rb"[\[{](?:%b)*+[\]}]" % inside])
    return rb"[\[{](?:%b)*+[\]}]" % inside


VALUE: Final = re.compile(
    rb'(%b|%b|[^"\[{][^][{}", \t\r\n]*+)%b' % (balanced(), STRING, SEPARATORS), re.DOTALL
)
"""A value in brackets, a string, or a word of one byte at least, and the separators behind it."""
MEMBER_BEGIN: Final = re.compile(
    rb'(?P<close>\}%b)|(?P<events>"traceEvents"%b:%b\[%b)|%b%b:%b'
    % (SEPARATORS, SPACES, SPACES, SEPARATORS, STRING, SPACES, SPACES),
    re.DOTALL,
)
"""The bracket that closes, the key of the events with the bracket behind it, or another key."""
EVENTS_END: Final = re.compile(rb"\]%b" % SEPARATORS)
NEXT_EVENT: Final = re.compile(rb'\}%b,%b(\{)%b"' % (SPACES, SPACES, SPACES))
"""Between two events: where reading goes on in one that does not end."""


@attrs.frozen(eq=False)
class Block:
    """Records that follow one another."""

    data: memoryview
    """The file."""
    kinds: NDArray[np.uint8]
    """Numbers of kinds: of an event that of its phase, or ``event``; else ``header`` (what opens
    the document), ``member`` (a key beside the events), ``close`` (a bracket that closes), or
    ``damaged``. All columns have the shape (n,)."""
    events: list[Event]
    """Empty for a record that is not an event."""
    starts: I64
    stops: I64
    """Where each begins and ends."""
    stop: int
    """Where the separators behind the last one end."""

    def column(self, key: str, places: I64) -> list[Any]:
        """Return what the events at some places have as ``key``; None if nothing."""
        return [self.events[place].get(key) for place in places.tolist()]


class Scanner:
    """Finds the records of a file, which tile it, whatever its bytes are.

    Events of more than ``longest`` bytes are damaged, unless that is 0.
    """

    def __init__(self, data: memoryview, longest: int, report: Report) -> None:
        self._data = data
        self._size = len(data)
        self._longest = longest
        self._report = report
        self._bytes_to_rescan = RESCANS * self._size

    def blocks(self) -> Iterator[Block]:
        """Yield all records in order."""
        opening = BEGIN.match(self._data)
        if opening is None:
            if self._size:
                yield self._damaged(0, self._size, rules.UNEXPECTED)
            return
        last = self._record(HEADER, 0, opening.end())
        yield last
        is_object = opening[1] == b"{"
        read = self._member if is_object else self._events
        closing = ord("}" if is_object else "]")
        is_closed = False
        while last.stop < self._size and not is_closed:
            offset = last.stop
            for last in read(offset):
                yield last
            is_closed = last.kinds[-1] == CLOSE and self._data[last.starts[-1]] == closing
        if is_closed and last.stop < self._size:
            yield self._damaged(last.stop, self._size, rules.UNEXPECTED)
        elif is_object and not is_closed and last.kinds[-1] != DAMAGED:
            # Of an event that does not end, one finding is enough.
            self._report(rules.NOT_CLOSED, int(last.starts[-1]))

    def _record(self, kind: int, start: int, stop: int) -> Block:
        """Return a record that is not an event."""
        kinds = np.array([kind], np.uint8)
        return Block(self._data, kinds, [{}], np.array([start]), np.array([stop]), stop)

    def _damaged(self, start: int, stop: int, rule: Rule) -> Block:
        self._report(rule, start)
        return self._record(DAMAGED, start, stop)

    def _member(self, start: int) -> Iterator[Block]:
        """Yield a member of the document, with the events if it has them, or the closing bracket.

        Without a key or an end, nothing says where the next member begins: the rest is damaged.
        """
        begin = MEMBER_BEGIN.match(self._data, start)
        if begin is None:
            yield self._damaged(start, self._size, rules.UNEXPECTED)
        elif begin["close"] is not None:
            yield self._record(CLOSE, start, begin.end())
        elif begin["events"] is not None:
            yield self._record(MEMBER, start, begin.end())
            yield from self._events(begin.end())
        elif value := VALUE.match(self._data, begin.end()):
            yield self._record(MEMBER, start, value.end())
        else:
            yield self._damaged(start, self._size, rules.NOT_CLOSED)

    def _events(self, offset: int) -> Iterator[Block]:
        """Yield the events of an array from an offset on, and the bracket that closes it."""
        starts: list[int] = []
        stops: list[int] = []
        while True:
            closing = EVENTS_END.match(self._data, offset)
            is_end = closing is not None or offset >= self._size
            value = None if is_end else VALUE.match(self._data, offset)
            if starts and (value is None or offset - starts[0] > BLOCK_BYTES):
                yield self._parsed(starts, stops, offset)
                starts, stops = [], []
            if value is not None:
                starts.append(offset)
                stops.append(value.end(1))
                offset = value.end()
            elif is_end:
                if closing is not None:
                    yield self._record(CLOSE, offset, closing.end())
                return
            else:
                open_event = offset
                offset = self._behind_open(open_event)
                yield self._damaged(open_event, offset, rules.NOT_CLOSED)

    def _behind_open(self, offset: int) -> int:
        """Return where reading goes on behind an event that does not end."""
        # Its end was looked for up to the last byte, as will be that of the next such event: a file
        # of them would take quadratic time. So only RESCANS times the file's size is scanned in
        # vain; after that, the rest is one damaged record.
        self._bytes_to_rescan -= self._size - offset
        if self._bytes_to_rescan <= 0:
            return self._size
        next_event = NEXT_EVENT.search(self._data, offset)
        return self._size if next_event is None else next_event.start(1)

    # --- Events -----------------------------------------------------------------------------------

    def _parsed(self, starts: list[int], stops: list[int], stop: int) -> Block:
        """Return a block of values of the array of events."""
        raw = bytes(self._data[starts[0] : stops[-1]])
        events: list[Event | None] = []
        # A missing comma is invalid JSON, an extra one as well.
        with contextlib.suppress(ValueError):
            events = orjson.loads(b"[%b]" % raw)
        is_long = 0 < self._longest < len(raw)
        if is_long or len(events) != len(starts) or set(map(type, events)) != {dict}:
            extents = zip(starts, stops, [*starts[1:], stop], strict=True)
            events = [self._event(*extent) for extent in extents]
        kinds = np.array([kind_of(event) for event in events], np.uint8)
        found = [event or {} for event in events]
        return Block(self._data, kinds, found, np.array(starts), np.array(stops), stop)

    def _event(self, start: int, stop: int, next_start: int) -> Event | None:
        """Return an event, which may have what is not JSON; None, with a finding, if invalid."""
        if self._longest and next_start - start > self._longest:
            self._report(RECORD_OVER_LIMIT, start, value=next_start - start)
            return None
        raw = bytes(self._data[start:stop])
        try:
            event = orjson.loads(raw)
        except ValueError as refusal:
            # Python's own parser takes NaN, Infinity, lone surrogates and what is not UTF-8.
            try:
                event = json.loads(raw.decode("utf-8", "surrogateescape"))
            except ValueError as error:
                event = str(error)
            else:
                self._report(rules.NOT_STRICT, start, value=str(refusal))
        if not isinstance(event, dict):
            self._report(rules.NOT_AN_EVENT, start, value=f"{event!a:.60}")
            return None
        between = bytes(self._data[stop : next_start + 1])
        if between.count(b",") != 1 and between.endswith(b"{"):
            self._report(rules.NOT_STRICT, start, value="it is not followed by one comma")
        return event


def kind_of(event: Event | None) -> int:
    """Return the number of the kind of an event; None is a value that is not an event."""
    if event is None:
        return DAMAGED
    return KIND_OF_PHASE.get(str(event.get("ph")), OTHER_EVENT)
