"""Parse: the events of a chunk as dictionaries, and what is wrong with their JSON."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import orjson
from numpy.typing import NDArray

from fx_chrome_json import rules
from fx_chrome_json.read.scan import SEPARATOR, Chunk

__all__ = ["Parsed", "Report", "encoded", "parse"]

Event = dict[str, Any]
DEEPEST = 200
"""Brackets within brackets that every parser takes."""
Report = Callable[..., None]
"""Takes the rule of a finding, the byte offset, and a value where the rule shows one."""
KEY = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"([ \t\r\n]*+:)?', re.DOTALL)
BETWEEN = re.compile(rb"[ \t\r\n]*+,[ \t\r\n]*+")


@attrs.frozen
class Parsed:
    """The events of a chunk that are JSON objects, and what lies between."""

    events: list[Event]
    starts: NDArray[np.int64]
    """Byte offset of each of these events."""
    stops: NDArray[np.int64]
    """Where each ends, behind its brace."""
    tiles: list[tuple[int, int, Event | None]] | None
    """Where events are damaged: each stretch of the chunk, with its event or None; else None."""
    nested: bool
    """Whether an event may have objects or arrays within its arguments."""


def parse(data: memoryview, chunk: Chunk, report: Report) -> Parsed:
    """Parse the events of a chunk; those that are not JSON objects are reported."""
    first, count = int(chunk.starts[0]), chunk.starts.size
    raw = bytes(data[first : int(chunk.stops[-1])])
    if chunk.deepest > DEEPEST:
        return _parse_each(data, chunk, report)
    try:
        events = orjson.loads(b"[%b]" % raw)
    except ValueError:
        return _parse_each(data, chunk, report)
    if len(events) != count or set(map(type, events)) != {dict}:
        return _parse_each(data, chunk, report)
    within = _within(events)
    nested = within < 0 or chunk.brackets != count + within
    keys = sum(map(_keys, events)) if nested else _flat_keys(events)
    if keys != chunk.keys:
        _report_repeated(data, events, chunk.starts, chunk.stops, report)
    return Parsed(events, chunk.starts, chunk.stops, None, nested)


def _within(events: list[Event]) -> int:
    """How many events have an object as arguments; -1 where some have anything else."""
    args = [event["args"] for event in events if "args" in event]
    return len(args) if set(map(type, args)) <= {dict} else -1


def _flat_keys(events: list[Event]) -> int:
    return sum(map(len, events)) + sum(len(event["args"]) for event in events if "args" in event)


def _keys(value: Any) -> int:
    """The keys in a value, those of nested objects too."""
    if isinstance(value, dict):
        return len(value) + sum(map(_keys, value.values()))
    return sum(map(_keys, value)) if isinstance(value, list) else 0


def _parse_each(data: memoryview, chunk: Chunk, report: Report) -> Parsed:
    """Parse event by event: some are damaged, or are not what the fast parser takes."""
    tiles: list[tuple[int, int, Event | None]] = []
    ends = [*chunk.starts[1:].tolist(), chunk.stop]
    events, kept = [], []
    rows = zip(chunk.starts.tolist(), chunk.stops.tolist(), ends, strict=True)
    for number, (start, stop, end) in enumerate(rows):
        event = _event(bytes(data[start:stop]), start, report)
        between = SEPARATOR.match(data, stop)
        after = min(end, between.end() if between is not None else stop)
        tiles.append((start, after, event))
        if event is not None:
            events.append(event)
            kept.append(number)
        if after < end:
            report(rules.UNEXPECTED_BYTES, after)
            tiles.append((after, end, None))
        elif number + 1 < len(ends) and not BETWEEN.fullmatch(data, stop, end):
            report(rules.UNEXPECTED_BYTES, start, "one comma must separate two events")
    starts, stops = chunk.starts[kept], chunk.stops[kept]
    _report_repeated(data, events, starts, stops, report)
    return Parsed(events, starts, stops, tiles, nested=True)


def _event(raw: bytes, offset: int, report: Report) -> Event | None:
    """One event, or None with a finding. It may have what the fast parser refuses."""
    event: Any
    try:
        event = orjson.loads(raw)
    except ValueError:
        odd: list[str] = []

        def constant(token: str) -> float:
            odd.append(token)
            return float(token)

        text = raw.decode("utf-8", "surrogateescape")
        try:
            event = json.loads(text, parse_constant=constant)
        except (ValueError, RecursionError) as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            report(rules.NOT_AN_EVENT, offset, why)
            return None
        if odd:
            report(rules.NOT_FINITE, offset, odd[0])
        if not raw.isascii() and not _is_utf8(raw):
            report(rules.NOT_UTF8, offset)
    if raw.count(b"[") + raw.count(b"{") > DEEPEST and _depth(event) > DEEPEST:
        report(rules.NOT_AN_EVENT, offset, f"more than {DEEPEST} levels of nesting")
        return None
    if not isinstance(event, dict):
        report(rules.NOT_AN_EVENT, offset, f"an event is an object, not {type(event).__name__}")
        return None
    return event


def _depth(value: Any) -> int:
    """How many levels of objects and arrays a value has."""
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = list(itertools.chain.from_iterable(inner))
    return depth


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _report_repeated(
    data: memoryview,
    events: list[Event],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    report: Report,
) -> None:
    """Report the events in which a key occurs twice."""
    for event, start, stop in zip(events, starts.tolist(), stops.tolist(), strict=True):
        raw = bytes(data[start:stop])
        if _keys(event) == sum(1 for found in KEY.finditer(raw) if found[1]):
            continue
        repeated: list[str] = []

        def pairs(members: list[tuple[str, Any]], found: list[str] = repeated) -> Event:
            made = dict(members)
            if len(made) < len(members):
                names = [name for name, _ in members]
                found.append(next(name for name in names if names.count(name) > 1))
            return made

        json.loads(raw.decode("utf-8", "surrogateescape"), object_pairs_hook=pairs)
        if repeated:
            report(rules.REPEATED_KEY, start, ascii(repeated[0][:64]))


def encoded(text: str) -> bytes:
    """The bytes of a string, with bytes that were not UTF-8 and lone surrogates as they were."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        pass
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
