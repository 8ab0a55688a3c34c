"""VMOs whose text is far larger than the file: thousands of blocks refer to one long string."""

from __future__ import annotations

import struct
from collections.abc import Callable

from ...bench.shapes import inspect as shapes

INT, BUFFER, EXTENT, ARRAY, STRING = 4, 7, 8, 11, 14


def long_string(nbytes: int) -> bytes:
    """A header, a short string at unit 2, and one of about so many bytes at unit 3."""
    extents = nbytes // 2048
    total = 4 + 2040 * extents
    parts = [shapes._header(2 * nbytes), shapes._string(b"n", 0)]
    parts.append(struct.pack("<QI", STRING << 8 | 4 << 16, total) + b"x" * 4)
    for number in range(extents):
        at = 4 + 128 * number
        following = at + 128 if number + 1 < extents else 0
        parts.append(struct.pack("<Q", 7 | EXTENT << 8 | following << 16).ljust(2048, b"x"))
    return b"".join(parts)


def shared_string(nbytes: int) -> bytes:
    """One long string, which half of the file is; the values of the other half refer to it."""
    head = long_string(nbytes // 2)
    return head + shapes._tiled(nbytes, head, BUFFER << 8 | 2 << 40, 2 << 60 | 3 << 32).tobytes()


def shared_name(nbytes: int) -> bytes:
    """The same, but it is the name of the values."""
    head = long_string(nbytes // 2)
    return head + shapes._tiled(nbytes, head, INT << 8 | 3 << 40, 7).tobytes()


def shared_slots(nbytes: int) -> bytes:
    """The same, but the values are arrays of strings all of whose slots refer to it."""
    head = long_string(nbytes // 2)
    array = struct.pack("<QQ", 6 | ARRAY << 8 | 2 << 40, 14 | 252 << 8) + struct.pack("<I", 3) * 252
    return head + array * max(1, (nbytes - len(head)) // 1024)


SHARED: dict[str, Callable[[int], bytes]] = {
    "shared string": shared_string,
    "shared name": shared_name,
    "shared slots": shared_slots,
}
