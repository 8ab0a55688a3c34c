"""Packets: whether a stream of Perfetto's own packets, in blobs, is well-formed for Perfetto.

The stream is a protobuf message whose field 1 repeats (Perfetto's `trace.proto`, `Trace`).
"""

from __future__ import annotations

from typing import Final

__all__ = ["PacketStream"]

PACKET: Final = 0x0A
"""The tag of a packet: field 1, with a length."""
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
FIXED: Final = {FIXED64: 8, FIXED32: 4}
HEADER: Final = 20
"""Bytes that a tag and a length have at most."""
VARINT_BYTES: Final = 10
UNKNOWN: Final = "Unknown field type"


def varint(data: bytes | bytearray, at: int, end: int) -> tuple[int, int]:
    """Return a number and the byte behind it; the same byte where none ends there."""
    value = 0
    for index in range(at, min(at + VARINT_BYTES, end)):
        byte = data[index]
        value |= (byte & 0x7F) << 7 * (index - at)
        if byte < 0x80:
            return value, index + 1
    return 0, at


def field(data: bytes | bytearray, at: int, end: int) -> tuple[int, int, int, str]:
    """Return the tag of a field, and where its contents begin and end; or why there is none."""
    tag, start = varint(data, at, end)
    kind = tag & 7
    if start == at:
        return 0, at, at, "Failed to parse tag"
    if kind in FIXED:
        return tag, start, start + FIXED[kind], ""
    if kind not in {VARINT, LENGTH}:
        return 0, at, at, UNKNOWN
    value, behind = varint(data, start, end)
    if behind == start:
        what = "skip varint" if kind == VARINT else "parse TracePacket size"
        return 0, at, at, f"Failed to {what}"
    return tag, behind, behind + value * (kind == LENGTH), ""


def well_formed(data: bytes | bytearray, at: int, end: int) -> bool:
    """Return whether the bytes of a packet are fields up to their end."""
    while at < end:
        tag, _, at, why = field(data, at, end)
        if why or not tag >> 3 & 0xFFFFFFFF:
            return False
    return at == end


class PacketStream:
    """The packets of all blobs, one after the other; it holds the one that is not complete."""

    def __init__(self) -> None:
        self._held = bytearray()

    def add(self, data: bytes) -> str:
        """Take the packets of a blob; what Perfetto says of the first one that it refuses."""
        held = self._held
        held += data
        at = 0
        while len(held) - at >= 2:
            behind, why = self._field(at)
            if why or behind == at:
                del held[:at]
                return why
            at = behind
        del held[:at]
        return ""

    def _field(self, at: int) -> tuple[int, str]:
        """Return the byte behind a field, or the same byte where the field is not complete."""
        held = self._held
        available = len(held)
        end = min(at + HEADER, available)
        tag, start, behind, why = field(held, at, end)
        if why:
            return at, why if why == UNKNOWN or end - at == HEADER else ""
        if behind > available:
            return at, ""
        if tag == PACKET and not well_formed(held, start, behind):
            return at, "Failed to parse proto packet fully; the trace is probably corrupt."
        return behind, ""
