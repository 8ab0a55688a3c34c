"""A typical trace of any size, made at once: what benchmarks decode."""

from __future__ import annotations

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
    ArgType,
    EventType,
    RecordType,
)

__all__ = ["SCENARIO", "prologue", "sample"]

THREADS = 8
CATEGORIES = 9
NAMES = 140
ARGUMENTS = 10
BYTES_PER_EVENT = 40


def sample(nbytes: int) -> bytes:
    """About ``nbytes`` of trace: complete events, four deep, with 0, 1 or 2 int64 arguments.

    Strings and threads are indexed; times are in order; a tick is a nanosecond.
    """
    return prologue() + _events(max(1, nbytes // BYTES_PER_EVENT)).tobytes()


def prologue() -> bytes:
    """Magic, provider, rate, the strings and the threads."""
    words = [wire.MAGIC_WORD]
    words.append(
        wire.PROVIDER_INFO_WORD.pack(
            record_type=RecordType.METADATA,
            record_size=2,
            metadata_type=wire.MetadataType.PROVIDER_INFO,
            provider_id=1,
            name_length=6,
        )
    )
    words.append(int.from_bytes(b"sample", "little"))
    words.append(wire.INITIALIZATION.pack(record_type=RecordType.INITIALIZATION, record_size=2))
    words.append(wire.DEFAULT_TICKS_PER_SECOND)
    groups = (("category", CATEGORIES), ("name", NAMES), ("arg", ARGUMENTS))
    texts = [f"{group}{number:02}" for group, count in groups for number in range(count)]
    for index, text in enumerate(texts, start=1):
        data = text.encode()
        size = -(-len(data) // 8)
        words.append(
            wire.STRING.pack(
                record_type=RecordType.STRING,
                record_size=1 + size,
                string_index=index,
                string_length=len(data),
            )
        )
        padded = data.ljust(8 * size, b"\0")
        words += [int.from_bytes(padded[at : at + 8], "little") for at in range(0, 8 * size, 8)]
    for index in range(1, THREADS + 1):
        words.append(
            wire.THREAD.pack(record_type=RecordType.THREAD, record_size=3, thread_index=index)
        )
        words += [1000 + index % 3, 2000 + index]
    return b"".join(word.to_bytes(8, "little") for word in words)


def _events(count: int) -> np.ndarray:
    number = np.arange(count, dtype=np.int64)
    arguments = number % 3
    size = 3 + 2 * arguments
    start = np.concatenate(([0], np.cumsum(size)))
    words = np.zeros(int(start[-1]), np.int64)
    at = start[:-1]
    header = size << SIZE_AT | arguments << EVENT_ARGS_AT | int(RecordType.EVENT)
    header |= EVENT_KIND.put(EventType.DURATION_COMPLETE)
    header |= (1 + number // 4 % THREADS) << EVENT_THREAD.low
    header |= (1 + number % CATEGORIES) << EVENT_CATEGORY.low
    words[at] = header | (1 + CATEGORIES + number % NAMES) << EVENT_NAME_AT
    ticks = 100 * number
    words[at + 1] = ticks
    words[start[1:] - 1] = ticks + np.array([390, 250, 50, 20])[number % 4]
    for place in range(2):
        some = arguments > place
        argument = at[some] + 2 + 2 * place
        name = 1 + CATEGORIES + NAMES + place
        words[argument] = ArgType.INT64 | ARG_SIZE.put(2) | ARG_NAME.put(name)
        words[argument + 1] = number[some]
    return words


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
