"""Typical structured logs of any size, for benchmarks."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from fx_log import format as wire
from fx_log.format import ArgType
from fx_log.severity import Level
from fxframework.io.words import pad8

__all__ = ["SCENARIO", "SHAPES", "TAGS", "sample"]

TAGS = tuple(("net", "wlan", "sysmem", "driver_manager", "bt")[n % 5] + str(n) for n in range(20))
SHAPES = 140
"""Number of distinct record shapes, which repeat with other numbers."""
KEYS = ("count", "elapsed", "channel", "retries", "bytes")
VERBS = ("opened", "closed", "took over", "gave up on", "is waiting for", "answered", "dropped")
LEVELS = (*[Level.INFO] * 12, *[Level.DEBUG] * 5, Level.WARN, Level.WARN, Level.ERROR)
STEP_NS = 1_250
"""Nanoseconds between records."""
DIGITS = 8


def sample(nbytes: int) -> bytes:
    """Return about ``nbytes`` of logs: pid, tid, tag, message, int64 key; about 160 bytes each.

    There are 20 tags; times are in order; every message contains its own number.
    """
    shapes, starts, numbers, keys = _shapes()
    rounds = max(1, round(nbytes / (8 * shapes.size)))
    words = np.tile(shapes, rounds)
    begin = np.repeat(np.arange(rounds) * shapes.size, SHAPES)
    number = np.arange(rounds * SHAPES, dtype=np.int64)
    words[begin + np.tile(starts, rounds) + 1] = 1_000_000_000 + STEP_NS * number
    words[begin + np.tile(numbers, rounds)] = _digits(number)
    words[begin + np.tile(keys, rounds)] = number * 7919 % 100_003
    if 8 * shapes.size <= nbytes:
        return words.tobytes()
    # Fewer records than shapes, but at least one.
    ends = [*starts[1:].tolist(), shapes.size]
    return words[: next((end for end in ends if 8 * end >= nbytes), shapes.size)].tobytes()


@cache
def _shapes() -> tuple[NDArray[np.int64], ...]:
    """Return the words of all shapes; start, message number and key's value of each shape."""
    pieces: list[bytes] = []
    places: list[tuple[int, int, int]] = []
    at = 0
    for shape in range(SHAPES):
        tag = TAGS[shape % len(TAGS)]
        text = f"request {'0' * DIGITS} {VERBS[shape % len(VERBS)]} {'a peer ' * (shape % 2)}"
        head = _number("pid", 1000 + shape % 12) + _number("tid", 2000 + shape % 40)
        head += _string("tag", tag)
        message = _string("message", text.strip())
        key = _number(KEYS[shape % len(KEYS)], 0, ArgType.INT64)
        words = 2 + (len(head) + len(message) + len(key)) // 8
        header = wire.RECORD_TYPE | wire.SIZE.put(words)
        header |= wire.HEADER_SEVERITY.put(LEVELS[shape % len(LEVELS)])
        pieces += [header.to_bytes(8, "little"), bytes(8), head, message, key]
        # The number is the second word of the message, after its header, its name and "request ".
        places.append((at, at + 2 + len(head) // 8 + 3, at + words - 1))
        at += words
    starts, numbers, keys = np.array(places, np.int64).T
    return np.frombuffer(b"".join(pieces), "<i8"), starts, numbers, keys


def _digits(number: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the last eight decimal digits of each number, as a word of text."""
    word = np.zeros_like(number)
    for place in range(DIGITS):
        word |= (48 + number // 10 ** (DIGITS - 1 - place) % 10) << (8 * place)
    return word


def _argument(name: str, value: bytes, kind: int, value_ref: int = 0) -> bytes:
    body = pad8(name.encode()) + value
    words = 1 + len(body) // 8
    header = kind | wire.ARG_SIZE.put(words) | wire.VALUE_REF.put(value_ref)
    header |= wire.NAME_REF.put(wire.INLINE | len(name))
    return header.to_bytes(8, "little") + body


def _number(name: str, value: int, kind: ArgType = ArgType.UINT64) -> bytes:
    return _argument(name, value.to_bytes(8, "little"), kind)


def _string(name: str, value: str) -> bytes:
    return _argument(name, pad8(value.encode()), ArgType.STRING, wire.INLINE | len(value))


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
