"""Typical traces of any size, for benchmarks."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from fx_trace import format as wire
from fx_trace.format import EventType
from fx_trace.kinds import ArgType, RecordType
from fx_trace.read.buffer import BufferHeader
from fx_trace.records import (
    TYPE,
    Initialization,
    ProviderInfo,
    StringRecord,
    ThreadRecord,
    TraceInfo,
    TraceRecord,
    claimed_bytes,
)
from fx_trace.write.bulk import BLOCK
from fx_trace.write.pack import ArgumentItems, Items, Packer, References

THREADS = 8
CATEGORIES = 9
NAMES = 140
ARGUMENTS = 10
BYTES_PER_EVENT = 40


def sample(nbytes: int) -> bytes:
    """Return about ``nbytes`` of trace: complete events, four deep, with 0, 1 or 2 int64 arguments.

    Strings and threads are indexed; times are in order; a tick is a nanosecond.
    """
    events = _events(max(1, nbytes // BYTES_PER_EVENT))
    return prologue() + b"".join(events)


def prologue() -> bytes:
    """Return magic, provider, rate, the strings and the threads."""
    groups = (("category", CATEGORIES), ("name", NAMES), ("arg", ARGUMENTS))
    texts = [f"{group}{number:02}" for group, count in groups for number in range(count)]
    records: list[TraceRecord] = [
        TraceInfo(info_type=0, magic=wire.MAGIC),
        ProviderInfo(id=1, name="sample"),
        Initialization(ticks_per_second=wire.DEFAULT_TICKS_PER_SECOND),
    ]
    records += [StringRecord(index=index, value=text) for index, text in enumerate(texts, 1)]
    records += [
        ThreadRecord(index=index, pid=1000 + index % 3, tid=2000 + index)
        for index in range(1, THREADS + 1)
    ]
    return b"".join(record.pack() for record in records)


def _events(count: int) -> Iterator[bytes]:
    """Yield complete slices of 0, 1 and 2 arguments."""
    number = np.arange(count, dtype=np.int64)
    items = Items(
        kind=np.full(count, EventType.DURATION_COMPLETE, np.uint8),
        time=100 * number,
        thread=number // 4 % THREADS,
        category=number % CATEGORIES,
        name=CATEGORIES + number % NAMES,
        # Of four slices of a thread, each is within the one before.
        word=np.array([390, 250, 50, 20])[number % 4],
    )
    argument_counts = number % 3
    first_arguments = np.append(0, np.cumsum(argument_counts))
    item = np.repeat(number, argument_counts)
    place = np.arange(item.size) - first_arguments[item]
    types = np.full(item.size, ArgType.INT64, np.uint8)
    arguments = ArgumentItems(item, CATEGORIES + NAMES + place, types, item, item, item)
    nothing = np.zeros(0, np.int64)
    references = References(
        strings=np.arange(CATEGORIES + NAMES + ARGUMENTS + 1),
        text_data=np.zeros(0, np.uint8),
        text_starts=nothing,
        text_lengths=nothing,
        threads=np.arange(THREADS + 1),
        koids=nothing,
    )
    packer = Packer(items, arguments, first_arguments, None, None, references)
    for begin in range(0, count, BLOCK):
        yield packer.pack(np.arange(begin, min(begin + BLOCK, count))).tobytes()


def buffer_sample(nbytes: int) -> bytes:
    """Return about ``nbytes`` of a stopped oneshot buffer, with the records of a typical trace."""
    records = sample(nbytes)
    while TYPE.get(records, 0) == RecordType.METADATA:
        records = records[claimed_bytes(records) :]
    grain = wire.BUFFER_GRAIN
    used = wire.BUFFER_HEADER_BYTES + len(records)
    total = (used + grain - 1) // grain * grain
    header = BufferHeader.for_size(total, wire.BufferingMode.ONESHOT)
    header = attrs.evolve(header, rolling_data_end_0=len(records))
    return (header.pack() + records).ljust(total, b"\0")


SCENARIO = """
[scenario]
name = "trace"

[target]
cpus = 2

[device.ring]
kind = "trace_provider"
size = 8192

[[step]]
do = "trace.scheduling"
provider = "ring"

[[step]]
do = "trace.thread"
provider = "ring"
process = "app"
thread = "main"
script = [
    { slice = "work", category = "app", args = { item = 1 }, body = [{ run = "5us" }] },
    { counter = "queue", category = "app", series = { items = 3 } },
    { instant = "done", category = "app" },
]

[[step]]
do = "target.run"

[[step]]
do = "target.stop"

[[step]]
do = "target.snapshot"
device = "ring"
as = "ring.tbuf"
"""
"""A scenario with the steps of traces, which `fxf plugins --check` runs."""
