"""Growing columns that move from memory to an unlinked temporary file when they get long."""

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
"""Largest size in bytes of a column that is kept in memory."""


class Spill:
    """A growing array of one type; the caller keeps track of how many values it has set.

    With ``in_memory`` it never moves to a file.
    """

    def __init__(self, dtype: DTypeLike, *, in_memory: bool = False) -> None:
        self._in_memory = in_memory
        self.array: NDArray[Any] = np.empty(0, dtype)
        self._file = -1
        self._mapping: mmap.mmap | None = None

    def grow(self, size: int) -> NDArray[Any]:
        """Make room for at least ``size`` values, keep the earlier ones, and return ``array``.

        Arrays returned before stay valid; those in the file share their values. Raises
        TemporaryFileError if the disk is full.
        """
        earlier = self.array
        if earlier.size >= size:
            return earlier
        if not earlier.size:
            self.array = arena.empty(size, earlier.dtype)
            return self.array
        # Half as much again, so that values are copied a bounded number of times.
        room = max(size, 3 * earlier.size // 2)
        nbytes = room * earlier.itemsize
        if self._in_memory or nbytes <= IN_MEMORY:
            self.array = arena.empty(room, earlier.dtype)
            self.array[: earlier.size] = earlier
            return self.array
        was_in_file = self._mapping is not None
        if not was_in_file:
            with TemporaryFile() as file:
                self._file = os.dup(file.fileno())
            weakref.finalize(self, os.close, self._file)
        reserve(self._file, nbytes)
        self._mapping = mmap.mmap(self._file, nbytes)
        self.array = np.frombuffer(self._mapping, earlier.dtype)
        if not was_in_file:
            self.array[: earlier.size] = earlier
        return self.array

    def release(self) -> None:
        """Drop the pages of the file from memory; they are read again when needed."""
        if self._mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._mapping.madvise(mmap.MADV_DONTNEED)
