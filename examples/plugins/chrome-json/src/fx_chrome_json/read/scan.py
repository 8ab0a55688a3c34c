"""Scan: where the events and the other parts of a file are. It parses no event."""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_chrome_json import rules
from fxframework.errors import Rule

__all__ = ["SYSTEM", "Chunk", "Piece", "Scanner", "Stretch"]

I64 = NDArray[np.int64]
Brackets = tuple[I64, I64, int, int, int, int]
CHUNK = 1 << 17
"""Bytes that are scanned together: they and what is made of them fit the caches."""
RESCANS = 4
"""Bytes that may be scanned again after damage, for each byte of the file."""
SYSTEM = "systemTraceEvents"
EVENTS = "traceEvents"

SPACE = re.compile(rb"[ \t\r\n]*+")
SEPARATOR = re.compile(rb"[ \t\r\n,]*+")
STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
COLON = re.compile(rb"[ \t\r\n]*+:[ \t\r\n]*+")
SCALAR = re.compile(rb"[-+.0-9A-Za-z]++")
NEXT_EVENT = re.compile(rb"\}[ \t\r\n]*+,[ \t\r\n]*+\{[ \t\r\n]*+\"")
FUCHSIA = re.compile(rb'\{\s*+"type"\s*+:\s*+"fuchsia"\s*+,\s*+"events"\s*+:\s*+\[')
"""``systemTraceEvents`` of Fuchsia's tools: an array of context switches and wakeups."""


@attrs.frozen
class Stretch:
    """A stretch that is not an event: ``header``, ``member``, ``close`` or ``damaged``."""

    kind: str
    start: int
    stop: int
    key: str = ""
    """Of a member, its key."""
    value: tuple[int, int] = (0, 0)
    """Of a member, where its value begins and ends."""
    rule: Rule | None = None
    """Of a damaged stretch, the finding."""


@attrs.frozen
class Chunk:
    """Events that follow each other, from the start of the first to the separator's end."""

    starts: I64
    """Byte offset of each event, shape (n,)."""
    stops: I64
    """Where each event ends, behind its last brace, shape (n,)."""
    stop: int
    """Where the separator behind the last event ends."""
    brackets: int
    """Brackets and braces that open in these events."""
    keys: int
    """Strings with a colon directly behind them."""
    deepest: int
    """The most brackets that are open at one place."""
    system: bool
    """Whether these are events of ``systemTraceEvents``."""


Piece = Stretch | Chunk


class Scanner:
    """Finds the pieces of a file; they tile it. Any bytes at all have pieces."""

    def __init__(self, data: NDArray[np.uint8], max_record: int) -> None:
        self._data = data
        self._bytes = data.data
        self._size = int(data.size)
        self._longest = max_record or self._size
        self._budget = RESCANS * self._size + CHUNK
        self.unclosed = False
        """Whether an object was not closed."""
        self.last = 0
        """Where the last member of an object begins, or what follows the events in it."""

    def pieces(self) -> Iterator[Piece]:
        """All pieces in order; those that are longer than ``max_record`` are damaged."""
        for piece in self._pieces():
            if isinstance(piece, Chunk):
                yield from self._bounded(piece)
            elif piece.rule is None and piece.stop - piece.start > self._longest:
                yield Stretch("damaged", piece.start, piece.stop, rule=rules.EVENT_OVER_LIMIT)
            else:
                yield piece

    def _bounded(self, chunk: Chunk) -> Iterator[Piece]:
        """A chunk, in parts where an event of it is too long."""
        ends = np.append(chunk.starts[1:], chunk.stop)
        long = ends - chunk.starts > self._longest
        if not long.any():
            yield chunk
            return
        for rows in np.split(np.arange(long.size), np.flatnonzero(np.diff(long)) + 1):
            first, stop = int(rows[0]), int(ends[rows[-1]])
            if not long[first]:
                starts, stops = chunk.starts[rows], chunk.stops[rows]
                # Brackets and keys are those of the whole chunk: they are counted again.
                yield attrs.evolve(chunk, starts=starts, stops=stops, stop=stop, brackets=-1)
                continue
            for row in rows.tolist():
                start = int(chunk.starts[row])
                yield Stretch("damaged", start, int(ends[row]), rule=rules.EVENT_OVER_LIMIT)

    def _pieces(self) -> Iterator[Piece]:
        if not self._size:
            return
        at = 3 if bytes(self._bytes[:3]) == b"\xef\xbb\xbf" else 0
        at = self._end(SPACE, at)
        first = bytes(self._bytes[at : at + 1])
        if first not in {b"[", b"{"}:
            yield Stretch("damaged", 0, self._size, rule=rules.NOT_A_TRACE)
            return
        at = self._end(SPACE, at + 1)
        yield Stretch("header", 0, at)
        if first == b"{":
            yield from self._members(at)
            return
        at = yield from self._events(at, system=False)
        if at < self._size:
            yield from self._rest(at, self._end(SPACE, at + 1))

    def _end(self, pattern: re.Pattern[bytes], at: int) -> int:
        found = pattern.match(self._bytes, at)
        return at if found is None else found.end()

    def _rest(self, at: int, after: int) -> Iterator[Piece]:
        """The closing bracket of the document, and what follows though nothing may."""
        yield Stretch("close", at, after)
        if after < self._size:
            yield Stretch("damaged", after, self._size, rule=rules.UNEXPECTED_BYTES)

    # --- The members of the document ------------------------------------------------------------

    def _members(self, at: int) -> Iterator[Piece]:
        """The members of the outermost object, from ``at`` on."""
        while at < self._size:
            self.last = at
            if self._bytes[at] == 0x7D:  # the brace that closes the document
                yield from self._rest(at, self._end(SPACE, at + 1))
                return
            key = STRING.match(self._bytes, at)
            colon = COLON.match(self._bytes, key.end()) if key else None
            if key is None or colon is None:
                yield Stretch("damaged", at, self._size, rule=rules.UNEXPECTED_BYTES)
                return
            name = _text(key[0])
            value = colon.end()
            opened = value + 1 if bytes(self._bytes[value : value + 1]) == b"[" else 0
            if name == SYSTEM and (fuchsia := FUCHSIA.match(self._bytes, value)):
                opened = fuchsia.end()
            if opened and name in {EVENTS, SYSTEM}:
                after = self._end(SPACE, opened)
                yield Stretch("member", at, after, name, (value, value))
                at = yield from self._events(after, system=name == SYSTEM)
                if at == self._size:
                    break
                after = self._end(SPACE, at + 1)
                if name == SYSTEM and bytes(self._bytes[after : after + 1]) == b"}":
                    after += 1
            else:
                stop = self._value_end(value)
                if stop < 0:
                    yield Stretch("damaged", at, self._size, rule=rules.NOT_CLOSED)
                    return
                after = self._end(SEPARATOR, stop)
                yield Stretch("member", at, after, name, (value, stop))
                at = after
                continue
            after = self._end(SEPARATOR, after)
            yield Stretch("close", at, after)
            at = after
        self.unclosed = True

    def _value_end(self, at: int) -> int:
        """Where a JSON value ends; -1 where it does not end, or there is none."""
        first = bytes(self._bytes[at : at + 1])
        if first == b'"':
            found = STRING.match(self._bytes, at)
            return -1 if found is None else found.end()
        if first not in {b"{", b"["}:
            found = SCALAR.match(self._bytes, at)
            return -1 if found is None else found.end()
        size = CHUNK
        while True:
            _, stops, *_ = self._brackets(at, size, single=True)
            if stops.size:
                return int(stops[0])
            if at + size >= self._size or size >= self._longest:
                return -1
            size *= 2

    # --- Events -----------------------------------------------------------------------------------

    def _events(self, at: int, *, system: bool) -> Generator[Piece, None, int]:
        """The events of an array from ``at`` on; gives the offset of its closing bracket."""
        size = CHUNK
        while at < self._size:
            starts, stops, closed, *counts = self._brackets(at, size)
            whole = stops.size
            limit = closed if closed >= 0 else min(at + size, self._size)
            if whole:
                begin = int(starts[0])
                if begin > at:
                    yield Stretch("damaged", at, begin, rule=rules.UNEXPECTED_BYTES)
                last = int(stops[-1])
                at = min(self._end(SEPARATOR, last), self._size)
                yield Chunk(starts[:whole], stops, at, counts[0], counts[1], counts[2], system)
                size = CHUNK
                continue
            if closed >= 0:
                if closed > at:
                    yield Stretch("damaged", at, closed, rule=rules.UNEXPECTED_BYTES)
                return closed
            begin = int(starts[0]) if starts.size else limit
            if begin > at:  # what is neither an event nor a separator
                yield Stretch("damaged", at, begin, rule=rules.UNEXPECTED_BYTES)
                at = begin
                continue
            if limit < self._size and size < self._longest:
                size *= 2
                continue
            rule = rules.NOT_CLOSED if limit == self._size else rules.EVENT_OVER_LIMIT
            stop = self._resume(at, limit)
            yield Stretch("damaged", at, stop, rule=rule)
            at, size = stop, CHUNK
        return self._size

    def _resume(self, at: int, scanned: int) -> int:
        """Where an event may begin again behind one that does not end."""
        self._budget -= scanned - at
        found = NEXT_EVENT.search(self._bytes, at) if self._budget > 0 else None
        return self._size if found is None else found.end() - 1

    def _brackets(self, at: int, size: int, *, single: bool = False) -> Brackets:
        """Where values with brackets begin and end, from ``at`` on, not within any.

        Gives the offsets where they begin (the last may not end), those behind their ends, the
        offset of the bracket that closes what they are in (-1: not there), and, up to the last
        end, how many brackets open, how many strings have a colon directly behind them, and how
        many brackets are open at most. ``single`` asks for the first value only.
        """
        window = self._data[at : at + size]
        quotes = np.flatnonzero(window == 0x22)
        escapes = np.flatnonzero(window == 0x5C)
        if escapes.size:
            quotes = quotes[~_escaped(escapes, window.size)[quotes]]
        folded = window | 0x20
        opening = folded == 0x7B
        places = np.flatnonzero(opening | (folded == 0x7D))
        inside = np.searchsorted(quotes, places) & 1
        places = places[inside == 0]
        steps = opening[places].astype(np.int8)
        steps += steps
        steps -= 1
        depth = np.cumsum(steps, dtype=np.int64)
        under = np.flatnonzero(depth < 0)
        closed = -1
        if under.size:
            closed = int(places[under[0]]) + at
            places, steps, depth = (each[: under[0]] for each in (places, steps, depth))
        starts = places[(steps > 0) & (depth == 1)] + at
        ends = np.flatnonzero(depth == 0)
        if single:
            ends = ends[:1]
        stops = places[ends]
        brackets = keys = deepest = 0
        if stops.size and not single:
            brackets = (int(ends[-1]) + 1) // 2
            deepest = int(depth[: int(ends[-1])].max())
            closing = quotes[1 : np.searchsorted(quotes, stops[-1]) : 2]
            keys = int(np.count_nonzero(window[closing + 1] == 0x3A))
        return starts, stops + (at + 1), closed, brackets, keys, deepest


def _escaped(escapes: I64, size: int) -> NDArray[np.bool_]:
    """Which bytes are behind an odd number of backslashes."""
    new = np.ones(escapes.size, np.bool_)
    new[1:] = np.diff(escapes) > 1
    first = np.flatnonzero(new)
    lengths = np.diff(np.append(first, escapes.size))
    marks = np.zeros(size + 1, np.bool_)
    odd = lengths & 1 == 1
    marks[escapes[first[odd]] + lengths[odd]] = True
    return marks[:size]


def _text(quoted: bytes) -> str:
    try:
        text = json.loads(quoted)
    except ValueError:
        return ""
    return text if isinstance(text, str) else ""
