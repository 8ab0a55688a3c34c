"""Inputs of the bulk kernel: events and arguments, one item a record or argument."""

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
"""Most bytes of an inline string when the string table is full; the rest is cut."""
D_ARGUMENTS, D_TOO_LARGE, D_UNKNOWN = 0, 1, 2
"""Reasons for dropped arguments: beyond 15, no room in the record, unknown type."""


class Items(NamedTuple):
    """Items to write, one record each. A column of one element holds for all items."""

    kind: U8
    """An event type, or SWITCH and the like."""
    time: I64
    thread: I64
    """Id of the thread; -1 for none."""
    category: I64
    name: I64
    word: I64
    """Length of a complete event; counter id; correlation id; scope of an instant (0: none); row of
    ``RecordRows`` for other kinds."""


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
    """Fields that only scheduling and log records have, by row; ``bits`` are header bits."""

    bits: I64
    prev: I64
    next: I64
    """Koids of threads; ids for a legacy switch."""
    start: I64
    """First byte of a log's message."""
    length: I64
    message: U8


class Slotted(NamedTuple):
    """References to strings and threads, and inline data."""

    strings: I64
    """String reference by code + 1."""
    words: I64
    starts: I64
    lengths: I64
    """Strings of the pool by code; ``words`` holds the bytes."""
    threads: I64
    """Thread index by thread id + 1; 0 for inline."""
    pids: I64
    tids: I64


PAIRED, ALONE, APART = 1, 2, 3
"""How a slice is written: as a begin and an end, as a begin alone (it never ended), or as one
event, because an unclosed slice within it would take its end; 0 for other slices."""


def column(values: Any, dtype: Any, rows: int) -> memoryview:
    """Return a column of ``rows`` numbers for a kernel, repeating a single number."""
    if values.size == 1 and rows != 1:
        values = np.full(rows, values[0])
    return view(values, dtype)
