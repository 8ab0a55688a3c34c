"""Typical traces of any size, for benchmarks."""

from __future__ import annotations

import attrs
import numpy as np

from fx_trace import format as wire
from fx_trace.format import (
    ARG_NAME,
    ARG_SIZE,
    EVENT_ARGS_AT,
    EVENT_CATEGORY,
    EVENT_KIND,
    EVENT_NAME_AT,
    EVENT_THREAD,
    SIZE_AT,
    EventType,
)
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

THREADS = 8
CATEGORIES = 9
NAMES = 140
ARGUMENTS = 10
BYTES_PER_EVENT = 40


def sample(nbytes: int) -> bytes:
    """Return about ``nbytes`` of trace: complete events, four deep, with 0, 1 or 2 int64 arguments.

    Strings and threads are indexed; times are in order; a tick is a nanosecond.
    """
    return prologue() + _events(max(1, nbytes // BYTES_PER_EVENT)).tobytes()


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


def _events(count: int) -> np.ndarray:
    """Return complete slices of 0, 1 and 2 arguments, as int64 of shape (words,)."""
    number = np.arange(count, dtype=np.int64)
    argument_count = number % 3
    # Header, begin and end, and two words for each argument.
    word_count = 3 + 2 * argument_count
    end = np.cumsum(word_count)
    start = end - word_count
    words = np.zeros(int(word_count.sum()), np.int64)
    thread_index = 1 + number // 4 % THREADS
    category_index = 1 + number % CATEGORIES
    name_index = 1 + CATEGORIES + number % NAMES
    header = word_count << SIZE_AT | argument_count << EVENT_ARGS_AT | int(RecordType.EVENT)
    header |= EVENT_KIND.put(EventType.DURATION_COMPLETE)
    header |= thread_index << EVENT_THREAD.low
    header |= category_index << EVENT_CATEGORY.low
    words[start] = header | name_index << EVENT_NAME_AT
    begin_ticks = 100 * number
    # Of four slices of a thread, each is within the one before.
    length = np.array([390, 250, 50, 20])[number % 4]
    words[start + 1] = begin_ticks
    words[end - 1] = begin_ticks + length
    for place in range(2):
        has_argument = argument_count > place
        argument_start = start[has_argument] + 2 + 2 * place
        argument_name = 1 + CATEGORIES + NAMES + place
        words[argument_start] = ArgType.INT64 | ARG_SIZE.put(2) | ARG_NAME.put(argument_name)
        words[argument_start + 1] = number[has_argument]
    return words


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
