"""Memory: plain bytes that a writer can store into as it would into a device's memory."""

from __future__ import annotations

import struct

from fxframework.io.words import WORD, padding

__all__ = ["BytesMemory"]

_U64 = struct.Struct("<Q")


class BytesMemory:
    """A region of bytes in this process, little-endian (``fxframework.model.target.Memory``).

    ``contents`` is a number of zero bytes, or the bytes to begin with, which are copied. Raises
    ValueError for a place that is no word of the region: devices do not forgive that either.
    """

    def __init__(self, contents: int | bytes | bytearray | memoryview) -> None:
        self._data = bytearray(contents)
        if len(self._data) % WORD:
            msg = f"a memory of {len(self._data)} bytes is no whole number of words"
            raise ValueError(msg)

    @property
    def size(self) -> int:
        """Bytes in the region."""
        return len(self._data)

    def load_u64(self, offset: int) -> int:
        """The word at byte ``offset``."""
        self._check(offset, WORD)
        value: int = _U64.unpack_from(self._data, offset)[0]
        return value

    def store_u64(self, offset: int, value: int) -> None:
        """Store the word at byte ``offset``."""
        self._check(offset, WORD)
        _U64.pack_into(self._data, offset, value)

    def read(self, offset: int, n: int) -> bytes:
        """``n`` bytes from ``offset``, which need not be that of a word."""
        if n < 0 or not 0 <= offset <= self.size - n:
            raise self._outside(offset, n)
        return bytes(self._data[offset : offset + n])

    def write(self, offset: int, buffer: bytes) -> None:
        """Store whole words."""
        self._check(offset, len(buffer))
        self._data[offset : offset + len(buffer)] = buffer

    def grow(self, size: int) -> None:
        """Make the region at least ``size`` bytes, to the next word; new bytes are zero."""
        self._data.extend(bytes(max(0, size + padding(size) - self.size)))

    def _check(self, offset: int, nbytes: int) -> None:
        if offset % WORD or nbytes % WORD or not 0 <= offset <= self.size - nbytes:
            raise self._outside(offset, nbytes)

    def _outside(self, offset: int, nbytes: int) -> ValueError:
        return ValueError(
            f"{nbytes} bytes at byte {offset} are no words of a memory of {self.size} bytes"
        )
