"""Typical structured logs of any size, for benchmarks."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from fx_log.format import ArgType
from fx_log.severity import Level
from fx_log.write.writer import LogWriter
from fxframework.wire.sample import decimal_text

TAGS = tuple(("net", "wlan", "sysmem", "driver_manager", "bt")[n % 5] + str(n) for n in range(20))
SHAPES = 140
"""Number of distinct record shapes, which repeat with other numbers."""
KEYS = ("count", "elapsed", "channel", "retries", "bytes")
VERBS = ("opened", "closed", "took over", "gave up on", "is waiting for", "answered", "dropped")
LEVELS = (*[Level.INFO] * 12, *[Level.DEBUG] * 5, Level.WARN, Level.WARN, Level.ERROR)
STEP_NS = 1_250
"""Nanoseconds between records."""
NUMBER = "0" * 8
"""Stands for the number of a message, of which it takes a word."""


def sample(nbytes: int) -> bytes:
    """Return about ``nbytes`` of logs: pid, tid, tag, message, int64 key; about 160 bytes each.

    There are 20 tags; times are in order; every message contains its own number.
    """
    shapes, starts, numbers, keys = _shapes()
    rounds = max(1, round(nbytes / (8 * shapes.size)))
    words = np.tile(shapes, rounds)
    round_begin = np.repeat(np.arange(rounds) * shapes.size, SHAPES)
    record_number = np.arange(rounds * SHAPES, dtype=np.int64)
    words[round_begin + np.tile(starts, rounds) + 1] = 1_000_000_000 + STEP_NS * record_number
    words[round_begin + np.tile(numbers, rounds)] = decimal_text(record_number, len(NUMBER))
    words[round_begin + np.tile(keys, rounds)] = record_number * 7919 % 100_003
    if 8 * shapes.size <= nbytes:
        return words.tobytes()
    # Fewer records than shapes, but at least one.
    shape_ends = [*starts[1:].tolist(), shapes.size]
    return words[: next((end for end in shape_ends if 8 * end >= nbytes), shapes.size)].tobytes()


@cache
def _shapes() -> tuple[NDArray[np.int64], ...]:
    """Return the words of all shapes; start, message number and key's value of each shape."""
    records_written: list[bytes] = []
    writer = LogWriter(SimpleNamespace(put=records_written.append))
    places: list[tuple[int, int, int]] = []
    words_so_far = 0
    for shape in range(SHAPES):
        text = f"request {NUMBER} {VERBS[shape % len(VERBS)]} {'a peer ' * (shape % 2)}"
        arguments = [
            ("pid", ArgType.UINT64, 1000 + shape % 12),
            ("tid", ArgType.UINT64, 2000 + shape % 40),
            ("tag", ArgType.STRING, TAGS[shape % len(TAGS)]),
            ("message", ArgType.STRING, text.strip()),
            (KEYS[shape % len(KEYS)], ArgType.INT64, 0),
        ]
        writer.put(LEVELS[shape % len(LEVELS)], arguments, time=0)
        record_words = len(records_written[-1]) // 8
        number_word = records_written[-1].index(NUMBER.encode()) // 8
        key_word = record_words - 1
        places.append((words_so_far, words_so_far + number_word, words_so_far + key_word))
        words_so_far += record_words
    starts, numbers, keys = np.array(places, np.int64).T
    return np.frombuffer(b"".join(records_written), "<i8"), starts, numbers, keys


SCENARIO = """
[scenario]
name = "log"

[target]
cpus = 1

[device.syslog]
kind = "log_socket"
capacity = 4096

[[step]]
do = "log.manifest"
socket = "syslog"
tag = 1
moniker = "core/network/netstack"
url = "fuchsia-pkg://fuchsia.com/network#meta/netstack.cm"

[[step]]
do = "log.thread"
socket = "syslog"
process = "netstack"
thread = "main"
tag = 1
script = [{ log = "starting", severity = "DEBUG" }, { sleep = "1ms" }, { log = "started" }]

[[step]]
do = "target.run"

[[step]]
do = "target.snapshot"
device = "syslog"
as = "logs.fxlog"
"""
"""A scenario with the steps of logs, which `fxf plugins --check` runs."""
