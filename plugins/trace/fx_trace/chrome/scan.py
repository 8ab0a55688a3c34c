"""Scan: the stretches of a file of Chrome JSON; its events are found by a loop, block by block."""

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
from fxframework.errors import Rule
from fxframework.kernels.elements import CLOSED, ENDED, FULL, elements

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
BOM: Final = b"\xef\xbb\xbf"
SPACE: Final = re.compile(rb"[ \t\r\n]*+")
SEPARATOR: Final = re.compile(rb"[ \t\r\n,]*+")
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
    """Where what follows the last one, and the separator behind it, begins."""

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
        self._starts, self._stops = np.empty((2, MOST_EVENTS), np.int64)
        self._budget = RESCANS * self._size
        self.open_at: int | None = None
        """Where the last member of a document begins that is not closed."""

    def pieces(self) -> Iterator[Stretch | Block]:
        """Yield all stretches and blocks in order."""
        if not self._size:
            return
        begin = len(BOM) if bytes(self._bytes[: len(BOM)]) == BOM else 0
        opening = self._behind(SPACE, begin)
        first = bytes(self._bytes[opening : opening + 1])
        if first not in {b"[", b"{"}:
            yield Stretch("damaged", 0, self._size, rules.NOT_A_TRACE)
            return
        at = self._behind(SPACE, opening + 1)
        yield Stretch("header", 0, at)
        if first == b"{":
            yield from self._members(at)
            return
        at = yield from self._events(at)
        if at < self._size:
            yield from self._close(at)

    def _behind(self, pattern: re.Pattern[bytes], at: int) -> int:
        found = pattern.match(self._bytes, at)
        return at if found is None else found.end()

    def _close(self, at: int) -> Iterator[Stretch]:
        """Yield the bracket that closes the document, and what follows though nothing may."""
        behind = self._behind(SPACE, at + 1)
        yield Stretch("close", at, behind)
        if behind < self._size:
            yield Stretch("damaged", behind, self._size, rules.UNEXPECTED)

    def _members(self, at: int) -> Iterator[Stretch | Block]:
        """Yield the members of the document, from ``at`` on."""
        while at < self._size:
            self.open_at = at
            if self._bytes[at] == ord("}"):
                self.open_at = None
                yield from self._close(at)
                return
            key_stop = self._value_stop(at)
            colon = COLON.match(self._bytes, key_stop) if self._bytes[at] == ord('"') else None
            if colon is None:
                rule = rules.NOT_CLOSED if key_stop > self._size else rules.UNEXPECTED
                yield Stretch("damaged", at, self._size, rule)
                return
            value = colon.end()
            is_array = bytes(self._bytes[value : value + 1]) == b"["
            if is_array and key_of(self._bytes[at:key_stop]) == EVENTS:
                behind = self._behind(SPACE, value + 1)
                yield Stretch("member", at, behind)
                at = yield from self._events(behind)
                if at < self._size:
                    behind = self._behind(SEPARATOR, at + 1)
                    yield Stretch("close", at, behind)
                    at = behind
                continue
            stop = self._value_stop(value)
            if stop > self._size:
                yield Stretch("damaged", at, self._size, rules.NOT_CLOSED)
                return
            behind = self._behind(SEPARATOR, stop)
            yield Stretch("member", at, behind)
            at = behind

    def _value_stop(self, at: int) -> int:
        """Return where the value at a byte ends; beyond the file if it does not, or is missing."""
        count, _, _ = elements(self._data, at, self._starts[:1], self._stops[:1])
        is_there = count == 1 and self._starts[0] == at
        return int(self._stops[0]) if is_there else self._size + 1

    def _events(self, at: int) -> Generator[Stretch | Block, None, int]:
        """Yield the events of an array from ``at`` on; return where its closing bracket is."""
        while True:
            count, end, why = elements(self._data, at, self._starts, self._stops)
            starts, stops = self._starts[:count].copy(), self._stops[:count].copy()
            first = 0
            while first < count:
                # So many that their bytes are few, but one at least.
                most = int(starts[first]) + BLOCK_BYTES
                behind = max(first + 1, int(np.searchsorted(stops, most)))
                stop = int(starts[behind]) if behind < count else end
                yield Block(starts[first:behind], stops[first:behind], stop)
                first = behind
            if not count and end > at:
                yield Stretch("space", at, end)
            at = end
            if why in (CLOSED, ENDED):
                return at
            if why == FULL:
                continue
            self._budget -= self._size - at
            found = NEXT_EVENT.search(self._bytes, at) if self._budget > 0 else None
            stop = self._size if found is None else found.start(1)
            yield Stretch("damaged", at, stop, rules.NOT_CLOSED)
            at = stop


def key_of(quoted: memoryview) -> str | None:
    """Return the key that a string of JSON is; None if it is invalid."""
    try:
        key = json.loads(bytes(quoted))
    except ValueError:
        return None
    return key if isinstance(key, str) else None


# --- Events --------------------------------------------------------------------------------------


def parse(data: memoryview, block: Block, longest: int, report: Report) -> list[Event | None]:
    """Return the events of a block; None for a value that is not one, which is reported."""
    sizes = block.ends - block.starts
    if not longest or int(sizes.max()) <= longest:
        raw = bytes(data[int(block.starts[0]) : int(block.stops[-1])])
        try:
            events: list[Event | None] = orjson.loads(b"[%b]" % raw)
        except ValueError:
            events = []
        if len(events) == sizes.size and set(map(type, events)) == {dict}:
            return events
    # One of them is odd: each by itself.
    events = []
    last_stop = int(block.starts[0])
    for start, stop, size in zip(
        block.starts.tolist(), block.stops.tolist(), sizes.tolist(), strict=True
    ):
        if events and bytes(data[last_stop:start]).count(b",") != 1:
            report(rules.NO_COMMA, start)
        last_stop = stop
        if longest and size > longest:
            report(rules.TOO_LONG, start, f"{size} bytes")
            events.append(None)
            continue
        events.append(event_of(bytes(data[start:stop]), start, report))
    return events


def event_of(raw: bytes, offset: int, report: Report) -> Event | None:
    """Return an event, which may have what orjson refuses; None, with a finding, if invalid."""
    event: Any
    try:
        event = orjson.loads(raw)
    except ValueError:
        constants: list[str] = []

        def constant(token: str) -> float:
            constants.append(token)
            return float(token)

        try:
            event = json.loads(raw.decode("utf-8", "surrogateescape"), parse_constant=constant)
        except (ValueError, RecursionError) as error:
            is_deep = isinstance(error, RecursionError)
            report(rules.NOT_AN_EVENT, offset, "nested too deeply" if is_deep else str(error))
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
