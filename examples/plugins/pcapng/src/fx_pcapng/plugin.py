"""Registers the plugin. Imported whenever `fxf` starts, so it does not import the format."""

from __future__ import annotations

from collections.abc import Iterable

from fxframework import hookimpl, wire
from fxframework.registry import Confidence, Probe, Reader, Writer

FXFRAMEWORK_API = 2
TITLE = "Packet capture (pcapng)"
FORMAT = "fx_pcapng.capture:FORMAT"
SUFFIXES = (".pcapng", ".ntar")
MAGIC = b"\n\r\r\n"
ORDERS = (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a")


def sniff(probe: Probe) -> Confidence:
    """Return CERTAIN for a section header in either byte order."""
    begins_with_section = probe.head.startswith(MAGIC) and probe.head[8:12] in ORDERS
    return Confidence.CERTAIN if begins_with_section else Confidence.NONE


@hookimpl
def fx_readers() -> Iterable[Reader]:
    """Return the reader of the format."""
    return [wire.reader("pcapng", FORMAT, title=TITLE, suffixes=SUFFIXES, sniff=sniff)]


@hookimpl
def fx_writers() -> Iterable[Writer]:
    """Return the writer of the format."""
    return [wire.writer("pcapng", FORMAT, title=TITLE, suffixes=SUFFIXES)]
