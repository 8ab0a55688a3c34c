"""Spill: a column that grows, in memory while it is short, in an unlinked file once it is long."""

from __future__ import annotations

import mmap
import os
import weakref
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fxframework.io import arena
from fxframework.io.temporary import TemporaryFile, reserve

__all__ = ["Spill"]

IN_MEMORY = 64 << 20
"""Bytes of a column that stay in memory."""


class Spill:
    """Values of one type, in ``array`` of shape (room,); the caller knows how many it has set."""

    def __init__(self, dtype: DTypeLike) -> None:
        self.array: NDArray[Any] = np.empty(0, dtype)
        self._file = -1
        self._mapping: mmap.mmap | None = None

    def grow(self, size: int) -> NDArray[Any]:
        """Make room for ``size`` values, of which the earlier ones stay; gives ``array``.

        Arrays that it gave before stay valid; those over the file share their values. Raises
        TemporaryFileError where the disk has no room.
        """
        earlier = self.array
        if earlier.size >= size:
            return earlier
        if not earlier.size:
            self.array = arena.empty(size, earlier.dtype)
            return self.array
        room = max(size, 3 * earlier.size // 2)
        nbytes = room * earlier.itemsize
        if nbytes <= IN_MEMORY:
            self.array = np.empty(room, earlier.dtype)
        else:
            spilled = self._mapping is not None
            if not spilled:
                with TemporaryFile() as file:
                    self._file = os.dup(file.fileno())
                weakref.finalize(self, os.close, self._file)
            reserve(self._file, nbytes)
            self._mapping = mmap.mmap(self._file, nbytes)
            self.array = np.frombuffer(self._mapping, earlier.dtype)
            if spilled:
                return self.array
        self.array[: earlier.size] = earlier
        return self.array

    def release(self) -> None:
        """Release the pages of the file from memory; they are read again where they are needed."""
        if self._mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._mapping.madvise(mmap.MADV_DONTNEED)
