"""Unusual logs of any size."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from fx_log.format import ArgType
from fx_log.severity import Level
from fx_log.write.arguments import argument_bytes, record_bytes

__all__ = ["shapes"]

HOUR_NS = 3_600_000_000_000
_MESSAGE = argument_bytes("message", ArgType.STRING, "it is open")
_PID = argument_bytes("pid", ArgType.UINT64, 1001)


def shapes() -> Mapping[str, Callable[[int], bytes]]:
    """Return the generators of logs of about ``nbytes`` bytes, by name of the shape."""
    return {
        "times out of order": lambda nbytes: _repeated(_shuffled, nbytes),
        "monikers all different": lambda nbytes: _repeated(_moniker, nbytes),
        "tags all different": lambda nbytes: _repeated(_tags, nbytes),
        "strings all different": lambda nbytes: _repeated(_strings, nbytes),
        "a manifest for every record": lambda nbytes: _repeated(_named, nbytes),
        "a finding in every record": lambda nbytes: _repeated(_odd, nbytes),
    }


def _repeated(make: Callable[[int], bytes], nbytes: int) -> bytes:
    count = max(1, nbytes // len(make(0)))
    return b"".join(map(make, range(count)))


def _text(name: str, value: str) -> bytes:
    return argument_bytes(name, ArgType.STRING, value)


def _shuffled(number: int) -> bytes:
    time = random.Random(number).randrange(HOUR_NS)
    return record_bytes(Level.INFO, time, _PID + _MESSAGE)


def _moniker(number: int) -> bytes:
    who = _text("$__moniker", f"core/shard-{number:09}") + _text("$__url", f"pkg://{number:09}")
    return record_bytes(Level.INFO, number, _MESSAGE + who)


def _tags(number: int) -> bytes:
    tags = _text("tag", f"one-{number:09}") + _text("tag", f"two-{number:09}")
    return record_bytes(Level.INFO, number, tags + _MESSAGE)


def _strings(number: int) -> bytes:
    return record_bytes(Level.INFO, number, _MESSAGE + _text(f"k{number:09}", f"v{number:09}"))


def _named(number: int) -> bytes:
    tag = number & 0x7FFFFFFF
    who = _text("moniker", f"core/shard-{number:09}") + _text("url", "pkg://shard")
    manifest = record_bytes(Level.INFO, 0, who, tag_bits=0x80000000 | tag)
    return manifest + record_bytes(Level.INFO, number, _MESSAGE, tag_bits=tag)


def _odd(number: int) -> bytes:
    null = argument_bytes("nothing", ArgType.NULL, None)
    return record_bytes(Level.INFO + 1, HOUR_NS - number, _MESSAGE + null, tag_bits=1)
