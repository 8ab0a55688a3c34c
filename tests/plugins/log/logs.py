"""Log files made by hand: structured records, packets, containers and rings, as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from fx_log import format as wire
from fx_log.format import Argument
from fx_log.read import records as fx
from fx_log.read.capture import LegacyCapture, LogCapture, RingCapture, StreamCapture
from fx_log.read.frames import Records
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.model.diagnostics import Diagnostics

REQUEST = OpenRequest(
    options={"utc_offset_ns": 0, "clock": "", "severity_era": "current", "printf": False}
    | {"fidl_limits": False, "suffix": False}
)
CAPTURES = {kind.format: kind for kind in (LogCapture, RingCapture, LegacyCapture, StreamCapture)}


def records_of(
    form: str,
    data: bytes,
    options: dict[str, Any],
    diagnostics: Diagnostics | None = None,
    limits: Limits | None = None,
) -> Iterator[Any]:
    """The records of a file as objects; what is found about them goes to ``diagnostics``."""
    request = OpenRequest(options=options, limits=limits or Limits())
    capture = CAPTURES[form](Source.open(data), request)
    if diagnostics is None:
        return iter(Records(capture.framed()))
    return capture.reporting(diagnostics)


def opened(data: bytes, form: str = "log") -> LogCapture:
    """The capture of a file."""
    return CAPTURES[form](Source.open(data), REQUEST)


def argument(name: str, type: str, value: Any = None) -> Argument:
    return Argument(name=name, type=type, value=value)


def log(
    *args: tuple[str, str, Any],
    time: int = 1000,
    severity: int = 0x30,
    tag_bits: int = 0,
) -> bytes:
    """A structured record with (name, type, value) arguments."""
    arguments = tuple(argument(*each) for each in args)
    return fx.LogRecord(timestamp=time, severity=severity, tag_bits=tag_bits, args=arguments).pack()


def text_log(message: str, **more: Any) -> bytes:
    """A structured record with a message."""
    return log(("message", "string", message), **more)


def manifest(tag: int, moniker: str, url: str) -> bytes:
    """The record that names a tag."""
    return log(
        ("moniker", "string", moniker),
        ("url", "string", url),
        time=0,
        tag_bits=wire.CONTROL | tag,
    )


def packet(message: str, *tags: str, time: int = 1000, severity: int = 0x30, **more: Any) -> bytes:
    """A legacy packet."""
    return fx.LegacyPacket(
        **{"pid": 1, "tid": 2, **more},
        timestamp=time,
        severity=severity,
        tags=tags,
        message=message,
    ).pack()


def stream(packets: Iterable[bytes]) -> bytes:
    """Our container of packets."""
    framed = (struct.pack("<I", len(each)) + each for each in packets)
    return fx.StreamHeader().pack() + b"".join(framed)


def entry(payload: bytes, tag: int = 7) -> bytes:
    """An entry of a ring."""
    data = struct.pack("<QQ", tag, len(payload)) + payload
    return data + bytes(-len(data) % 8)


def ring(
    entries: Iterable[bytes],
    *,
    tail: int = 0,
    capacity: int = wire.RING_MINIMUM,
    rest: bytes = b"\0",
) -> bytes:
    """The image of a ring whose entries begin at ``tail``; ``rest`` fills what is not used."""
    used = b"".join(entries)
    line = used + (rest * capacity)[: capacity - len(used)]
    start = tail % capacity
    page = struct.pack("<QQ", tail + len(used), tail).ljust(wire.RING_PAGE, b"\0")
    return page + line[capacity - start :] + line[: capacity - start]
