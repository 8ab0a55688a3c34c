"""What bulk writing hands to its kernel: events and arguments, one item a record or argument."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.buffers import view

__all__ = ["ArgumentItems", "Items", "RecordRows", "Slotted", "column"]

I64 = NDArray[Any]
U8 = NDArray[Any]

SWITCH, WAKEUP, LEGACY_SWITCH, LOG = 16, 17, 18, 19
"""Kinds of items beyond the event types."""
RECORD_WORDS = 0xFFF
ARGUMENTS = 15
INLINE_BYTES = 8000
"""Bytes of an inline string, because the string table is full; the rest is cut."""
D_ARGUMENTS, D_TOO_LARGE, D_UNKNOWN = 0, 1, 2
"""Arguments that are dropped: beyond 15, without room in a record, of types that are not ours."""


class Items(NamedTuple):
    """What is to be written, one record an item. A column of one element holds for all."""

    kind: U8
    """An event type, or SWITCH and its like."""
    time: I64
    thread: I64
    """Id of the thread; -1 none."""
    category: I64
    name: I64
    word: I64
    """Of a complete event its length; counter id, correlation id; an instant's scope, 0 none; of
    other kinds the row of ``RecordRows``."""


class ArgumentItems(NamedTuple):
    """Arguments by item, in ascending order of ``item``. A column of one element holds for all."""

    item: I64
    name: I64
    type: U8
    whole: I64
    real: I64
    """Bits of the double."""
    text: I64


class RecordRows(NamedTuple):
    """What only scheduling and log records have, by row; ``bits`` are those of the header."""

    bits: I64
    prev: I64
    next: I64
    """Koids of threads; of a legacy switch their ids."""
    start: I64
    """First byte of a log's message."""
    length: I64
    message: U8


class Slotted(NamedTuple):
    """How strings and threads are referred to, and what is inline."""

    strings: I64
    """By code + 1: the reference."""
    words: I64
    starts: I64
    lengths: I64
    """Of the pool, by code; ``words`` holds the bytes."""
    threads: I64
    """By thread id + 1: the index, 0 inline."""
    pids: I64
    tids: I64


PAIRED, ALONE, APART = 1, 2, 3
"""How a slice is written: as a begin and an end, as a begin alone (it never ended), or as one
event, because what never ended within it would take its end; 0 for any other slice."""


def column(values: Any, dtype: Any, rows: int) -> memoryview:
    """A column as kernels take it: of ``rows`` numbers, also where one number is for all."""
    if values.size == 1 and rows != 1:
        values = np.full(rows, values[0])
    return view(values, dtype)
