"""Awkward traces of any size."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from fx_xray import format as wire
from fx_xray.format import FunctionKind, MetadataKind
from fx_xray.sample import FREQUENCY, HEADER, metadata
from fxframework.kernels.arrays import U64

__all__ = ["shapes"]

PROCESS = 4711
DELTA = 100
"""Ticks from a record to the next."""
THREADS = 4
PAYLOAD = bytes(8)
HEAD = 5 * wire.METADATA_BYTES
"""Extents, thread, wall clock, process, CPU."""
PER_BUFFER = (wire.BUFFER_BYTES - HEAD + wire.METADATA_BYTES) // wire.FUNCTION_BYTES
"""Function records of a buffer. Its extents do not count to its size."""


def shapes() -> Mapping[str, Callable[[int], bytes]]:
    """What makes traces of about so many bytes, by the name of the shape."""
    return {
        "flat": lambda nbytes: _trace(nbytes, lambda row: _calls(row, row * 0 + 1)),
        "functions all different": lambda nbytes: _trace(
            nbytes, lambda row: _calls(row, row // 2 % ((1 << 28) - 1) + 1)
        ),
        "never closed": lambda nbytes: _trace(
            nbytes, lambda row: _records(row * 0 + FunctionKind.ENTER, row % 50 + 1)
        ),
        "exits alone": lambda nbytes: _trace(
            nbytes, lambda row: _records(row * 0 + FunctionKind.EXIT, row % 50 + 1)
        ),
        "deeply nested": lambda nbytes: _trace(nbytes, _nested),
        "a thread for each buffer": lambda nbytes: _trace(
            nbytes, lambda row: _calls(row, row % 50 + 1), threads=1 << 30
        ),
        "buffers out of order": lambda nbytes: _trace(
            nbytes, lambda row: _calls(row, row % 50 + 1), reverse=True
        ),
        "custom events": _events,
    }


def _records(kind: NDArray[np.int64], function: NDArray[np.int64]) -> U64:
    """Function records: kind, number of the function, ticks since the last one."""
    return (kind << 1 | function << 4 | DELTA << 32).astype("<u8")


def _calls(row: NDArray[np.int64], function: NDArray[np.int64]) -> U64:
    """Enter and exit in turn; a function has two rows."""
    function = np.where(row % 2 == 0, function, np.roll(function, 1, axis=1))
    return _records(np.where(row % 2 == 0, FunctionKind.ENTER, FunctionKind.EXIT), function)


def _nested(row: NDArray[np.int64]) -> U64:
    """Half a buffer enters, the other half leaves."""
    place = row % PER_BUFFER
    half = PER_BUFFER // 2
    depth = np.minimum(place, 2 * half - 1 - place)
    return _records(
        np.where(place < half, FunctionKind.ENTER, FunctionKind.EXIT), np.maximum(depth, 0) + 1
    )


def _trace(
    nbytes: int,
    words: Callable[[NDArray[np.int64]], U64],
    *,
    threads: int = THREADS,
    reverse: bool = False,
) -> bytes:
    """Buffers full of the function records that ``words`` makes of their row numbers."""
    count = max(1, round(nbytes / (wire.BUFFER_BYTES + wire.METADATA_BYTES)))
    number = np.arange(count)
    buffers = np.zeros((count, wire.BUFFER_BYTES + wire.METADATA_BYTES), np.uint8)
    when = number[::-1] if reverse else number
    heads = b"".join(
        _head(wire.BUFFER_BYTES, int(each) % threads, int(then))
        for each, then in zip(number, when, strict=True)
    )
    buffers[:, :HEAD] = np.frombuffer(heads, np.uint8).reshape(count, HEAD)
    rows = number[:, None] * PER_BUFFER + np.arange(PER_BUFFER)
    buffers[:, HEAD : HEAD + 8 * PER_BUFFER] = words(rows).view(np.uint8).reshape(count, -1)
    return HEADER + buffers.tobytes()


def _events(nbytes: int) -> bytes:
    """Nothing but custom events."""
    event = metadata(MetadataKind.CUSTOM_EVENT, struct.pack("<ii", len(PAYLOAD), DELTA)) + PAYLOAD
    per = (wire.BUFFER_BYTES - HEAD + wire.METADATA_BYTES) // len(event)
    size = HEAD - wire.METADATA_BYTES + per * len(event)
    count = max(1, nbytes // (size + wire.METADATA_BYTES))
    return HEADER + b"".join(
        _head(size, number % THREADS, number) + event * per for number in range(count)
    )


def _head(size: int, thread: int, number: int) -> bytes:
    """The metadata records that a buffer begins with; buffers follow one another in time."""
    tsc = FREQUENCY + number * PER_BUFFER * DELTA
    micros = tsc * 1_000_000 // FREQUENCY
    return b"".join(
        (
            metadata(MetadataKind.BUFFER_EXTENTS, struct.pack("<Q", size)),
            metadata(MetadataKind.NEW_BUFFER, struct.pack("<i", 5000 + thread)),
            metadata(
                MetadataKind.WALL_TIME, struct.pack("<qi", micros // 1_000_000, micros % 1_000_000)
            ),
            metadata(MetadataKind.PID, struct.pack("<i", PROCESS)),
            metadata(MetadataKind.NEW_CPU, struct.pack("<HQ", thread % THREADS, tsc)),
        )
    )
