"""Traces of awkward shapes, of any size, beside the typical one.

A shape repeats one record, or a few, so that it is a matrix of words; only the numbers differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fx_trace import format as wire
from fx_trace.format import EventType
from fx_trace.kinds import ArgType, RecordType
from fx_trace.sample import CATEGORIES, NAMES, THREADS, prologue
from fxframework.kernels.arrays import I64

__all__ = ["shapes"]

INLINE = 0x8000
"""A reference to a string of the record's own has this bit, and the length below."""
MIXER = 0x9E3779B1
PROVIDERS = 1000
MANY_THREADS = 5000
INLINE_NAMES = 10_000
FIRST_NAME = 1 + CATEGORIES
TICKS = 100
"""Ticks from an event to the next."""

Row = list[Any]
"""Words of one record: numbers, or an int64 of shape (records,) each."""


def shapes() -> Mapping[str, Callable[[int], bytes]]:
    """What makes about so many bytes of each shape, by name."""
    return {
        "nested": lambda nbytes: _made(nbytes, 4, _nested),
        "flat": lambda nbytes: _made(nbytes, 3, _flat),
        "partly overlapping": lambda nbytes: _made(nbytes, 4, _overlapping),
        "begin and end": lambda nbytes: _made(nbytes, 2, _pairs),
        "never closed": lambda nbytes: _made(nbytes, 2, _event(EventType.DURATION_BEGIN)),
        "instants": lambda nbytes: _made(nbytes, 2, _event(EventType.INSTANT)),
        "out of order": lambda nbytes: _made(nbytes, 3, _shuffled),
        "thousands of threads": lambda nbytes: _made(nbytes, 5, _inline_threads),
        "a million strings": lambda nbytes: _made(nbytes, 6, _new_names),
        "inline strings": lambda nbytes: _made(nbytes, 4, _inline_names),
        "15 arguments": lambda nbytes: _made(nbytes, 33, _arguments),
        "many providers": lambda nbytes: _providers() + _made(nbytes, 6, _sections)[8:],
        "dangling references": lambda nbytes: _made(nbytes, 2, _dangling),
        "equal starts": lambda nbytes: _made(nbytes, 3, _equal),
        "every 100th record damaged": lambda nbytes: _made(nbytes, 3, _damaged),
        "every record damaged": lambda nbytes: _made(nbytes, 3, _overrun),
        "rates only": lambda nbytes: _made(nbytes, 2, _rates),
        "all zero": lambda nbytes: prologue() + bytes(nbytes // 8 * 8),
    }


def _made(nbytes: int, words: int, rows: Callable[[I64], Row]) -> bytes:
    """A trace of records that take ``words`` words together."""
    number = np.arange(max(1, nbytes // (8 * words)), dtype=np.int64)
    columns = [np.broadcast_to(column, number.shape) for column in rows(number)]
    return prologue() + np.stack(columns, axis=1).astype("<i8").tobytes()


def _header(
    kind: EventType,
    size: int,
    number: I64,
    *,
    arguments: int = 0,
    thread: Any = None,
    category: Any = None,
    name: Any = None,
) -> I64:
    """Headers of events, which take the threads and strings of the prologue in turn."""
    thread = 1 + number // 4 % THREADS if thread is None else thread
    category = 1 + number % CATEGORIES if category is None else category
    name = FIRST_NAME + number % NAMES if name is None else name
    low = RecordType.EVENT | size << 4 | kind << 16 | arguments << 20
    return np.asarray(low | thread << 24 | category << 32 | name << 48, np.int64)


def _event(kind: EventType) -> Callable[[I64], Row]:
    return lambda number: [_header(kind, 2, number), TICKS * number]


def _nested(number: I64) -> Row:
    """Complete events with an argument, four deep."""
    return [
        _header(EventType.DURATION_COMPLETE, 4, number, arguments=1),
        TICKS * number,
        ArgType.INT32 | 1 << 4 | 1 << 16 | number % 1000 << 32,
        TICKS * number + np.array([390, 250, 50, 20])[number % 4],
    ]


def _flat(number: I64) -> Row:
    header = _header(EventType.DURATION_COMPLETE, 3, number)
    return [header, TICKS * number, TICKS * number + 20]


def _overlapping(number: I64) -> Row:
    """Each ends within the next one of its thread."""
    return [
        _header(EventType.DURATION_COMPLETE, 4, number, arguments=1, thread=1 + number % THREADS),
        TICKS * number,
        ArgType.INT32 | 1 << 4 | 1 << 16 | number % 1000 << 32,
        TICKS * number + TICKS * THREADS * 3 // 2,
    ]


def _pairs(number: I64) -> Row:
    kind = np.where(number & 1, int(EventType.DURATION_END), int(EventType.DURATION_BEGIN))
    header = RecordType.EVENT | 2 << 4 | kind << 16 | (1 + number // 2 % THREADS) << 24
    names = (1 + number // 2 % CATEGORIES) << 32 | (FIRST_NAME + number // 2 % NAMES) << 48
    return [header | names, TICKS * number]


def _shuffled(number: I64) -> Row:
    ticks = TICKS * (number * MIXER % number.size)
    return [_header(EventType.DURATION_COMPLETE, 3, number), ticks, ticks + 20]


def _inline_threads(number: I64) -> Row:
    header = _header(EventType.DURATION_COMPLETE, 5, number, thread=0)
    thread = number * MIXER % MANY_THREADS
    return [header, TICKS * number, 1000 + thread % 7, 2000 + thread, TICKS * number + 20]


def _digits(number: I64) -> I64:
    """Eight digits of each number as the bytes of a word."""
    word = np.zeros_like(number)
    rest = number.copy()
    for place in range(8):
        word |= (48 + rest % 10) << (56 - 8 * place)
        rest //= 10
    return word


def _new_names(number: I64) -> Row:
    """A string record with a name of its own before each event, under an index in turn."""
    index = 200 + number % 30_000
    string = RecordType.STRING | 3 << 4 | index << 16 | 9 << 32
    header = _header(EventType.DURATION_COMPLETE, 3, number, name=index)
    return [string, _digits(number), 120, header, TICKS * number, TICKS * number + 20]


def _inline_names(number: I64) -> Row:
    header = _header(EventType.DURATION_COMPLETE, 4, number, name=np.int64(INLINE | 8))
    name = _digits(number * MIXER % INLINE_NAMES)
    return [header, TICKS * number, name, TICKS * number + 20]


def _arguments(number: I64) -> Row:
    header = _header(EventType.DURATION_COMPLETE, 33, number, arguments=15)
    argument = ArgType.INT64 | 2 << 4
    pairs: Row = [
        part for place in range(15) for part in (argument | (1 + place % 10) << 16, number + place)
    ]
    return [header, TICKS * number, *pairs, TICKS * number + 20]


def _providers() -> bytes:
    """The magic number, and what introduces each provider and its clock."""
    number = np.arange(PROVIDERS)
    info = RecordType.METADATA | 2 << 4 | wire.MetadataType.PROVIDER_INFO << 16
    rows = (
        info | number << 20 | 8 << 52,
        _digits(number),
        np.full_like(number, RecordType.INITIALIZATION | 2 << 4),
        np.full_like(number, wire.DEFAULT_TICKS_PER_SECOND),
    )
    return wire.MAGIC_BYTES + np.stack(rows, axis=1).astype("<i8").tobytes()


def _sections(number: I64) -> Row:
    """A provider section, and the records that it needs, before each event."""
    provider = number * MIXER % PROVIDERS
    section = RecordType.METADATA | 1 << 4 | wire.MetadataType.PROVIDER_SECTION << 16
    header = _header(
        EventType.INSTANT, 5, number, thread=0, category=np.int64(0), name=np.int64(INLINE | 8)
    )
    return [
        section | provider << 20,
        header,
        TICKS * number,
        1000 + provider,
        2000,
        _digits(provider),
    ]


def _dangling(number: I64) -> Row:
    """Threads and strings that no record has introduced."""
    header = _header(
        EventType.INSTANT, 2, number, thread=100 + number % 100, category=200 + number % 99,
        name=300 + number % 999,
    )  # fmt: skip
    return [header, TICKS * number]


def _equal(number: I64) -> Row:
    """All begin at one time, each longer than the one before."""
    header = _header(EventType.DURATION_COMPLETE, 3, number, thread=1)
    return [header, np.int64(TICKS), TICKS + number]


def _damaged(number: I64) -> Row:
    """A record of size zero now and then."""
    header, *rest = _flat(number)
    return [np.where(number % 100 == 99, int(RecordType.EVENT), header), *rest]


def _overrun(number: I64) -> Row:
    """Each record claims an argument that it has no room for."""
    header = _header(EventType.DURATION_COMPLETE, 3, number, arguments=1)
    return [header, TICKS * number, TICKS * number + 20]


def _rates(number: I64) -> Row:
    """Initialization records, each of another rate."""
    return [np.int64(RecordType.INITIALIZATION | 2 << 4), 1000 + number]
