"""Scan: the stretches of a file of Chrome JSON, and its events, block by block."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

import attrs
import numpy as np
import orjson
from numpy.typing import NDArray

from fx_trace.chrome import rules
from fx_trace.chrome.sniff import BEGIN
from fx_trace.chrome.values import SEPARATOR, Reason, values
from fxframework.errors import Rule

__all__ = ["Block", "Event", "Report", "Scanner", "Stretch", "parse"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Event = dict[str, Any]
Report = Callable[..., None]
"""Takes the rule of a finding, the byte offset, and a value where the rule shows one."""
MOST_EVENTS: Final = 1 << 13
BLOCK_BYTES: Final = 1 << 17
"""Bytes of events that are parsed together, unless one is longer."""
RESCANS: Final = 4
"""Bytes that may be scanned again after damage, for each byte of the file."""
EVENTS: Final = "traceEvents"
SPACE: Final = re.compile(rb"[ \t\r\n]*+")
COLON: Final = re.compile(rb"[ \t\r\n]*+:[ \t\r\n]*+")
NEXT_EVENT: Final = re.compile(rb"\}[ \t\r\n]*+,[ \t\r\n]*+(\{)[ \t\r\n]*+\"")
"""Between two events: where reading goes on in one that does not end."""


@attrs.frozen
class Stretch:
    """A stretch of a file without events: ``header``, ``member``, ``space``, ``close``, or damage.

    A member is a key of the document with its value, or up to the bracket that opens the events; a
    space has nothing but separators.
    """

    kind: str
    start: int
    stop: int
    rule: Rule | None = None
    """The finding, of a damaged one."""


@attrs.frozen(eq=False)
class Block:
    """Values of the array of events that follow one another."""

    starts: I64
    """Where each begins, shape (n,)."""
    stops: I64
    """Where each ends, shape (n,)."""
    stop: int
    """Where the separator behind the last one ends."""

    @property
    def ends(self) -> I64:
        """Where each one and the separator behind it end, shape (n,)."""
        return np.append(self.starts[1:], self.stop)


class Scanner:
    """Finds the stretches and blocks of a file, which tile it, whatever its bytes are."""

    def __init__(self, data: U8) -> None:
        self._data = data
        self._bytes = data.data
        self._size = int(data.size)
        self._bytes_to_rescan = RESCANS * self._size
        self.open_member: int | None = None
        """Where the last member of a document begins that is not closed."""

    def pieces(self) -> Iterator[Stretch | Block]:
        """Yield all stretches and blocks in order."""
        if not self._size:
            return
        opening = BEGIN.match(self._bytes)
        if opening is None:
            yield Stretch("damaged", 0, self._size, rules.NOT_A_TRACE)
            return
        header_stop = opening.end()
        yield Stretch("header", 0, header_stop)
        if opening[1] == b"{":
            yield from self._members(header_stop)
            return
        closing = yield from self._events(header_stop)
        if closing < self._size:
            yield from self._close(closing)

    def _skip(self, pattern: re.Pattern[bytes], offset: int) -> int:
        """Return the offset behind what matches a pattern at an offset, if anything does."""
        match = pattern.match(self._bytes, offset)
        return offset if match is None else match.end()

    def _close(self, offset: int) -> Iterator[Stretch]:
        """Yield the bracket that closes the document, and as damage what follows it."""
        close_stop = self._skip(SPACE, offset + 1)
        yield Stretch("close", offset, close_stop)
        if close_stop < self._size:
            yield Stretch("damaged", close_stop, self._size, rules.UNEXPECTED)

    def _members(self, offset: int) -> Iterator[Stretch | Block]:
        """Yield the members of the document, from an offset on."""
        while offset < self._size:
            self.open_member = offset
            if self._bytes[offset] == ord("}"):
                self.open_member = None
                yield from self._close(offset)
                return
            key_stop = self._value_stop(offset)
            colon = None
            if self._bytes[offset] == ord('"'):
                colon = COLON.match(self._bytes, key_stop)
            if colon is None:
                # Without a key, nothing says where the next member begins: the rest is damaged.
                rule = rules.NOT_CLOSED if key_stop > self._size else rules.UNEXPECTED
                yield Stretch("damaged", offset, self._size, rule)
                return
            value_start = colon.end()
            is_array = bytes(self._bytes[value_start : value_start + 1]) == b"["
            if is_array and is_events_key(bytes(self._bytes[offset:key_stop])):
                # The member ends at the bracket that opens the events; they are pieces themselves.
                events_start = self._skip(SPACE, value_start + 1)
                yield Stretch("member", offset, events_start)
                offset = yield from self._events(events_start)
                if offset < self._size:
                    close_stop = self._skip(SEPARATOR, offset + 1)
                    yield Stretch("close", offset, close_stop)
                    offset = close_stop
                continue
            value_stop = self._value_stop(value_start)
            if value_stop > self._size:
                yield Stretch("damaged", offset, self._size, rules.NOT_CLOSED)
                return
            member_stop = self._skip(SEPARATOR, value_stop)
            yield Stretch("member", offset, member_stop)
            offset = member_stop

    def _value_stop(self, offset: int) -> int:
        """Return where the value at a byte ends; beyond the file if it does not, or is missing."""
        starts, stops, _, _ = values(self._bytes, offset, 1)
        # ``values`` skips separators: a value that begins later is not the one at the byte.
        return stops[0] if starts == [offset] else self._size + 1

    def _events(self, offset: int) -> Generator[Stretch | Block, None, int]:
        """Yield the events of an array from an offset on; return where its closing bracket is."""
        while True:
            starts, stops, end, reason = values(self._bytes, offset, MOST_EVENTS)
            yield from blocks(np.array(starts, np.int64), np.array(stops, np.int64), end)
            if not starts and end > offset:
                yield Stretch("space", offset, end)
            if reason in (Reason.CLOSED, Reason.ENDED):
                return end
            offset = end
            if reason is Reason.FULL:
                continue
            # The event at ``offset`` does not end. ``values`` looked for its end up to the last
            # byte, and does so again for the next such event: a file of unclosed events would take
            # quadratic time. So only RESCANS times the file's size is scanned in vain; after that,
            # the rest is one damaged stretch.
            self._bytes_to_rescan -= self._size - offset
            next_event = None
            if self._bytes_to_rescan > 0:
                next_event = NEXT_EVENT.search(self._bytes, offset)
            damage_stop = self._size if next_event is None else next_event.start(1)
            yield Stretch("damaged", offset, damage_stop, rules.NOT_CLOSED)
            offset = damage_stop


def blocks(starts: I64, stops: I64, end: int) -> Iterator[Block]:
    """Yield events as blocks; what follows them begins at ``end``."""
    boundaries = [*starts.tolist(), end]
    block_first = 0
    while block_first < starts.size:
        # As many events as end within BLOCK_BYTES, but one at least, however long it is.
        byte_limit = boundaries[block_first] + BLOCK_BYTES
        next_first = max(block_first + 1, int(np.searchsorted(stops, byte_limit)))
        events = slice(block_first, next_first)
        yield Block(starts[events], stops[events], boundaries[next_first])
        block_first = next_first


def is_events_key(quoted: bytes) -> bool:
    """Return whether a string of JSON is the key of the events; it may have escapes."""
    try:
        return bool(json.loads(quoted) == EVENTS)
    except ValueError:
        return False


# --- Events --------------------------------------------------------------------------------------


def parse(data: memoryview, block: Block, longest: int, report: Report) -> list[Event | None]:
    """Return the events of a block; None for a value that is not one, which is reported."""
    starts = block.starts.tolist()
    stops = block.stops.tolist()
    sizes = block.ends - block.starts
    if not longest or int(sizes.max()) <= longest:
        raw = bytes(data[starts[0] : stops[-1]])
        try:
            events: list[Event | None] = orjson.loads(b"[%b]" % raw)
        except ValueError:
            events = []
        # A missing comma is invalid JSON, and an extra one as well: both are found below.
        if len(events) == sizes.size and set(map(type, events)) == {dict}:
            return events
    # An event or a separator is invalid: parse the events one by one to say which.
    events = []
    previous_stop = starts[0]
    for start, stop, size in zip(starts, stops, sizes.tolist(), strict=True):
        if events and bytes(data[previous_stop:start]).count(b",") != 1:
            report(rules.NO_COMMA, start)
        previous_stop = stop
        if longest and size > longest:
            report(rules.TOO_LONG, start, f"{size} bytes")
            events.append(None)
        else:
            raw = bytes(data[start:stop])
            events.append(event_of(raw, start, report))
    return events


def event_of(raw: bytes, offset: int, report: Report) -> Event | None:
    """Return an event, which may have what orjson refuses; None, with a finding, if invalid."""
    event: Any
    try:
        event = orjson.loads(raw)
    except ValueError:
        # Python's own parser takes NaN, Infinity, lone surrogates and bytes that are not UTF-8.
        constants: list[str] = []

        def note_constant(token: str) -> float:
            constants.append(token)
            return float(token)

        text = raw.decode("utf-8", "surrogateescape")
        try:
            event = json.loads(text, parse_constant=note_constant)
        except RecursionError:
            report(rules.NOT_AN_EVENT, offset, "nested too deeply")
            return None
        except ValueError as error:
            report(rules.NOT_AN_EVENT, offset, str(error))
            return None
        if constants:
            report(rules.NOT_FINITE, offset, constants[0])
        try:
            raw.decode()
        except UnicodeDecodeError:
            report(rules.NOT_UTF8, offset)
    if not isinstance(event, dict):
        report(rules.NOT_AN_EVENT, offset, f"it is of type {type(event).__name__}")
        return None
    return event
