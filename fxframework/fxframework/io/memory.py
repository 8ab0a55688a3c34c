"""Memory: bytes in this process that a writer can use like the memory of a device."""

from __future__ import annotations

import struct
import sys

from fxframework.io.words import WORD, padding

__all__ = ["BytesMemory"]

_U64 = struct.Struct("<Q")
_NATIVE = sys.byteorder == "little"


class BytesMemory:
    """A region of bytes in this process, little-endian (``fxframework.model.target.Memory``).

    ``contents`` is a number of zero bytes, or initial bytes, which are copied. Methods raise
    ValueError for an offset that is not word-aligned or outside of the region.
    """

    def __init__(self, contents: int | bytes | bytearray | memoryview) -> None:
        size = contents if isinstance(contents, int) else len(contents)
        if size < 0 or size % WORD:
            msg = f"invalid memory size {size}: must be a multiple of {WORD}"
            raise ValueError(msg)
        self._room = bytearray(contents)
        """The region, followed by spare bytes for growth."""
        self.size = len(self._room)
        """Bytes in the region."""
        self.words: memoryview | None = None
        """The region as words (format "Q"), for fast stores; replaced on each growth. None on a
        big-endian machine."""
        self._view()

    def load_u64(self, offset: int) -> int:
        """Return the word at byte ``offset``."""
        self._check(offset, WORD)
        value: int = _U64.unpack_from(self._data, offset)[0]
        return value

    def store_u64(self, offset: int, value: int) -> None:
        """Store the word at byte ``offset``."""
        if offset & 7 or not 0 <= offset < self.size:
            raise self._outside(offset, WORD)
        if self.words is None:
            _U64.pack_into(self._data, offset, value)
        else:
            self.words[offset >> 3] = value

    def read(self, offset: int, n: int) -> bytes:
        """Return ``n`` bytes from ``offset``, which need not be word-aligned."""
        if n < 0 or not 0 <= offset <= self.size - n:
            raise self._outside(offset, n)
        return self._data[offset : offset + n].tobytes()

    def write(self, offset: int, buffer: bytes) -> None:
        """Store whole words."""
        self._check(offset, len(buffer))
        self._data[offset : offset + len(buffer)] = buffer

    def grow(self, size: int) -> None:
        """Grow the region to at least ``size`` bytes, rounded up to a word; new bytes are zero."""
        size += padding(size)
        if size <= self.size:
            return
        if size > len(self._room):
            # A new array: the old one cannot be resized while views of it exist.
            larger_room = bytearray(max(size, 2 * len(self._room)))
            larger_room[: self.size] = self._data
            self._room = larger_room
        self.size = size
        self._view()

    def _view(self) -> None:
        """Renew the views after ``size`` or ``_room`` changed."""
        self._data = memoryview(self._room)[: self.size]
        if _NATIVE:
            self.words = self._data.cast("Q")

    def _check(self, offset: int, nbytes: int) -> None:
        if offset % WORD or nbytes % WORD or not 0 <= offset <= self.size - nbytes:
            raise self._outside(offset, nbytes)

    def _outside(self, offset: int, nbytes: int) -> ValueError:
        if 0 <= offset <= self.size - nbytes:
            what = f"offset and length must be multiples of {WORD}"
        else:
            what = f"the memory has {self.size} bytes"
        return ValueError(f"cannot access {nbytes} bytes at offset {offset}: {what}")
