"""Damaged XRay logs: buffers of sound and odd records, and what happens to files, from a number."""

from __future__ import annotations

import random
import struct

from .damaged import damage
from .xray_logs import function, header, metadata

BASIC_STYLES = 4
"""One log in so many is of basic mode."""


def record(choose: random.Random, version: int) -> bytes:
    """A record of a buffer behind its preamble."""
    choice = choose.randrange(12)
    payload = choose.choice((b"event", b"x", b"\xff\xfe", b"four", b""))
    if choice < 6:
        return function(choose.randrange(4), choose.randrange(1, 5), choose.randrange(100))
    if choice == 6:
        return metadata(2, "HQ", choose.randrange(3), choose.randrange(1 << 40))
    if choice == 7:
        return metadata(3, "Q", choose.randrange(1 << 40))
    if choice == 8:
        return function(choose.choice((3, 1)), 1, 5) + metadata(6, "Q", 7)
    if choice == 9:
        return metadata(8, "iiH", len(payload), 3, 9) + payload
    if choice == 10:
        fields = ("ii", len(payload), 3) if version >= 5 else ("iQH", len(payload), 3, 1)
        return metadata(5, *fields) + payload
    return b""


def recorder_log(choose: random.Random) -> bytes:
    """A log of the flight data recorder."""
    version = choose.choice((1, 2, 3, 4, 5, 5, 5, 5))
    parts = []
    for _ in range(choose.choice((0, 1, 2, 4))):
        body = metadata(0, "i", choose.randrange(1, 3)) + metadata(4, "qi", 10, 5)
        if version >= 3:
            body += metadata(9, "i", 7)
        body += metadata(2, "HQ", 1, 1000)
        body += b"".join(record(choose, version) for _ in range(choose.randrange(12)))
        if version >= 2:
            body = metadata(7, "Q", len(body)) + body
        else:
            body += metadata(1) + bytes(choose.choice((0, 8, 16)))
        parts.append(body)
    return header(version, 1, 1_000_000_000, 4096) + b"".join(parts)


def basic_log(choose: random.Random) -> bytes:
    """A log of basic mode."""
    parts = [header(choose.randrange(1, 4), 0, 1_000_000_000)]
    for _ in range(choose.randrange(6)):
        id = choose.randrange(1, 4)
        parts.append(struct.pack("<HBBiQIIQ", 0, 1, choose.randrange(4), id, 5, 7, 9, 0))
        if choose.random() < 0.3:
            parts.append(struct.pack("<HHiIIQQ", 1, 0, id, 7, choose.choice((9, 9, 8)), 3, 0))
    return b"".join(parts)


def damaged_log(seed: int) -> bytes:
    """The damaged log of this number."""
    choose = random.Random(seed)
    make = basic_log if seed % BASIC_STYLES == 0 else recorder_log
    data = make(choose)
    return data[:32] + damage(choose, data[32:]) if choose.random() < 0.9 else damage(choose, data)
