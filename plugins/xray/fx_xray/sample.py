"""Typical traces of any size, for benchmarks."""

from __future__ import annotations

import random
import struct
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_xray import format as wire
from fx_xray.format import FileHeader, FunctionKind, MetadataKind
from fxframework.wire.packing import put_numbers
from fxframework.wire.records import Record

FREQUENCY = 2_596_120_000
THREADS = 4
FUNCTIONS = 60
PROCESS = 4711
FIRST_THREAD = 5000
DEEPEST = 12
MEAN_TICKS = 260
"""Ticks from a record to the next, about."""
START_SECONDS = 1000
_SHAPES = 16
"""Buffers of different calls, after which they begin again."""
_PAYLOAD = b"a custom event!\n"
_BUFFER = wire.BUFFER_BYTES
_PREAMBLE: tuple[type[Record], ...] = (
    wire.BufferExtents, wire.NewBuffer, wire.WallTime, wire.Pid, wire.NewCpu,
)  # fmt: skip
"""What a buffer begins with: its extents and its own numbers."""
HEADER = FileHeader(version=5, cycle_frequency=FREQUENCY, buffer_size=_BUFFER).pack()


def sample(nbytes: int) -> bytes:
    """Return about ``nbytes`` of a version-5 trace: full buffers of four threads.

    The threads run at the same time. Calls are nested up to 12 deep, of 60 functions; some have an
    argument, and there is a custom event in each buffer.
    """
    shapes, ticks = _shapes()
    count = max(1, round(nbytes / shapes.shape[1]))
    number = np.arange(count)
    data = shapes[number % _SHAPES].reshape(-1)
    thread = number % THREADS
    # A thread begins a buffer when its last one is over; threads begin shortly after one another.
    longest = int(ticks.max()) + MEAN_TICKS
    ticks_from_start = number // THREADS * longest + thread * 97
    tsc = START_SECONDS * FREQUENCY + ticks_from_start
    seconds, micros = np.divmod(tsc * 1_000_000 // FREQUENCY, 1_000_000)
    numbers: tuple[dict[str, Any], ...] = (
        {"bytes": _BUFFER},
        {"thread": FIRST_THREAD + thread},
        {"seconds": seconds, "micros": micros},
        {"process": PROCESS},
        {"cpu": thread, "tsc": tsc},
    )
    places = number * shapes.shape[1]
    state = wire.Dialect().state()
    for record, fields in zip(_PREAMBLE, numbers, strict=True):
        put_numbers(data, places, record.layout, fields, state)
        places = places + wire.METADATA_BYTES
    return b"".join((HEADER, data.data))


@cache
def _shapes() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return buffers with their extents, of shape (shapes, bytes), and the ticks of each."""
    chance = random.Random(5)  # noqa: S311 (no secret)
    contents, ticks = zip(*(_shape(chance) for _ in range(_SHAPES)), strict=True)
    shapes = np.frombuffer(b"".join(contents), np.uint8)
    return shapes.reshape(_SHAPES, -1), np.array(ticks)


def _shape(chance: random.Random) -> tuple[bytes, int]:
    """Return a buffer with its extents, and the ticks from its begin to its end.

    The records of its preamble are zero.
    """
    custom = metadata(MetadataKind.CUSTOM_EVENT, struct.pack("<ii", len(_PAYLOAD), 40))
    records = [bytes(len(_PREAMBLE) * wire.METADATA_BYTES), custom + _PAYLOAD]
    used = sum(map(len, records)) - wire.METADATA_BYTES
    ticks = 40
    opened: list[int] = []
    while used < _BUFFER:
        records_left = (_BUFFER - used) // wire.FUNCTION_BYTES
        delta = chance.randrange(40, 2 * MEAN_TICKS)
        ticks += delta
        # There remains room to leave all functions that were entered. An entry with an argument
        # takes as much as three.
        depth = len(opened)
        may_enter = depth < DEEPEST and records_left >= depth + 4
        if may_enter and (not opened or chance.random() < 0.5):
            id = chance.randrange(1, FUNCTIONS + 1)
            opened.append(id)
            kind = FunctionKind.ENTER_ARG if not chance.randrange(50) else FunctionKind.ENTER
        elif opened:
            id = opened.pop()
            kind = FunctionKind.EXIT
        else:
            id = 1
            kind = FunctionKind.ENTER
            opened.append(id)
        word = wire.FUNCTION_KIND.put(kind) | wire.FUNCTION_ID.put(id)
        record = struct.pack("<II", word, delta)
        if kind == FunctionKind.ENTER_ARG:
            record += metadata(MetadataKind.CALL_ARGUMENT, struct.pack("<Q", ticks))
        records.append(record)
        used += len(record)
    return b"".join(records), ticks


def metadata(kind: MetadataKind, fields: bytes) -> bytes:
    """Return a metadata record with these fields."""
    first_byte = wire.Dialect().first_byte(kind).to_bytes()
    return (first_byte + fields).ljust(wire.METADATA_BYTES, b"\0")


SCENARIO = """
[scenario]
name = "xray"

[target]
cpus = 2

[device.recorder]
kind = "vmo"
size = 65_536

[[step]]
do = "xray.start"
recorder = "recorder"
buffer_size = 4096
threshold_us = 0

[[step]]
do = "xray.thread"
recorder = "recorder"
process = "loader"
thread = "main"
script = [{ call = 1, body = [{ call = 2, args = [7], body = [{ run = "5us" }] }] }]

[[step]]
do = "target.run"

[[step]]
do = "xray.log"
recorder = "recorder"
as = "calls.xray"
"""
"""A scenario with the steps of XRay, which `fxf plugins --check` runs."""
