"""VMOs of unusual shapes, of any size.

A shape repeats one block, or a few, as a matrix of words in which only the indexes differ.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from fx_inspect.sample import sample

__all__ = ["SHAPES", "shapes"]

NODE, INT, TOMBSTONE, LINK, STRING = 3, 4, 10, 12, 14
MOST_UNITS = 1 << 24
"""Units within reach of an index."""


def _header(size: int) -> bytes:
    return struct.pack("<HH4sQQQ", 0x0201, 2, b"INSP", 0, size, 0)


def _string(text: bytes, order: int, following: int = 0) -> bytes:
    head = order | STRING << 8 | following << 16
    return (struct.pack("<QI", head, len(text)) + text).ljust(16 << order, b"\0")


def _tiled(nbytes: int, head: bytes, head_word: int, payload: int = 0) -> NDArray[np.uint64]:
    """Return equal blocks of 16 bytes to follow a head; uint64 of shape (n, 2)."""
    count = min(max(1, (nbytes - len(head)) // 16), MOST_UNITS - len(head) // 16 - 1)
    words = np.zeros((count, 2), np.uint64)
    words[:, 0] = head_word
    words[:, 1] = payload
    return words


def deep(nbytes: int) -> bytes:
    """Each node below the one before it."""
    head = _header(nbytes) + _string(b"n", 0)
    words = _tiled(nbytes, head, NODE << 8 | 2 << 40, 1)
    first = len(head) // 16
    words[1:, 0] |= (np.arange(words.shape[0] - 1, dtype=np.uint64) + np.uint64(first)) << 16
    return head + words.tobytes()


def wide(nbytes: int) -> bytes:
    """All nodes below the root, with the same name."""
    head = _header(nbytes) + _string(b"n", 0)
    return head + _tiled(nbytes, head, NODE << 8 | 2 << 40).tobytes()


def numbers(nbytes: int) -> bytes:
    """All properties at the root: integers with the same name."""
    head = _header(nbytes) + _string(b"n", 0)
    return head + _tiled(nbytes, head, INT << 8 | 2 << 40, 7).tobytes()


def orphans(nbytes: int) -> bytes:
    """Properties of a missing node."""
    head = _header(nbytes) + _string(b"n", 0)
    return head + _tiled(nbytes, head, INT << 8 | 2 << 40 | 1 << 16).tobytes()


def nameless(nbytes: int) -> bytes:
    """Properties without a name."""
    return _header(nbytes) + _tiled(nbytes, _header(0), INT << 8 | 0xFFFFFF << 40).tobytes()


def cycles(nbytes: int) -> bytes:
    """Nodes in pairs, each below the other."""
    head = _header(nbytes) + _string(b"n", 0)
    words = _tiled(nbytes, head, NODE << 8 | 2 << 40)
    mate = np.arange(words.shape[0], dtype=np.uint64) ^ np.uint64(1)
    words[:, 0] |= (mate + np.uint64(len(head) // 16)) << 16
    return head + words.tobytes()


def ring(nbytes: int) -> bytes:
    """Nodes that are all in one cycle."""
    data = bytearray(deep(nbytes))
    last = len(data) // 16 - 1
    word = int.from_bytes(data[48:56], "little") | last << 16
    data[48:56] = word.to_bytes(8, "little")
    return bytes(data)


def tombstones(nbytes: int) -> bytes:
    """Deleted nodes."""
    return _header(nbytes) + _tiled(nbytes, _header(0), TOMBSTONE << 8).tobytes()


def links(nbytes: int) -> bytes:
    """Links at the root."""
    head = _header(nbytes) + _string(b"n", 0)
    return head + _tiled(nbytes, head, LINK << 8 | 2 << 40, 2).tobytes()


def all_strings(nbytes: int) -> bytes:
    """Properties with a name of their own each."""
    count = min(nbytes // 48, MOST_UNITS // 3 - 2)
    words = np.zeros((count, 6), np.uint64)
    number = np.arange(count, dtype=np.uint64)
    unit = np.uint64(2) + 3 * number
    words[:, 0] = 1 | STRING << 8 | 1 << 40
    # Eleven letters: four in the word of the length, and seven more.
    words[:, 1] = 12 | 0x6E616D65 << 32
    digits = np.zeros(count, np.uint64)
    for place in range(8):
        digits |= (48 + number // 10 ** (7 - place) % 10).astype(np.uint64) << np.uint64(8 * place)
    words[:, 2] = digits
    words[:, 4] = INT << 8 | unit << np.uint64(40)
    words[:, 5] = number
    return _header(nbytes) + words.tobytes()


def unused(nbytes: int) -> bytes:
    """Strings that nothing refers to."""
    return _header(nbytes) + _tiled(nbytes, _header(0), STRING << 8, 1 | 0x61 << 32).tobytes()


def _damaged(every: int) -> Callable[[int], bytes]:
    def make(nbytes: int) -> bytes:
        """Typical, with a bit of every n-th block changed."""
        words = np.frombuffer(bytearray(sample(nbytes)), "<u8").copy()
        chosen = np.arange(2 * every, words.size, 2 * every)
        words[chosen] ^= np.uint64(1) << (chosen * 7 % 64).astype(np.uint64)
        return words.tobytes()

    return make


def no_blocks(nbytes: int) -> bytes:
    """Words in none of which a block can begin."""
    return _header(nbytes) + b"\xff" * (nbytes - 32)


def holes(nbytes: int) -> bytes:
    """A block and bytes without a block, in turn."""
    pair = struct.pack("<QQQQ", RESERVED_WORD, 0, 0xFFFF_FFFF_FFFF_FFFF, 0)
    return _header(nbytes) + pair * (nbytes // 32)


RESERVED_WORD = 1 << 8


def zeros(nbytes: int) -> bytes:
    """Only zeros after the header."""
    return _header(nbytes) + bytes(nbytes)


SHAPES: dict[str, Callable[[int], bytes]] = {
    "typical": sample,
    "deep": deep,
    "wide": wide,
    "numbers": numbers,
    "orphans": orphans,
    "nameless": nameless,
    "cycles": cycles,
    "ring": ring,
    "tombstones": tombstones,
    "links": links,
    "all strings": all_strings,
    "unused strings": unused,
    "every 100th block damaged": _damaged(100),
    "every block damaged": _damaged(1),
    "no blocks": no_blocks,
    "holes": holes,
    "zeros": zeros,
}
"""Generators of about ``nbytes`` of a shape, by name."""
_MEASURED_ELSEWHERE = ("typical", "every 100th block damaged", "zeros")


def shapes() -> Mapping[str, Callable[[int], bytes]]:
    """Return the generators of about ``nbytes`` of each shape, by name."""
    return {name: make for name, make in SHAPES.items() if name not in _MEASURED_ELSEWHERE}
