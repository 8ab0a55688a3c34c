"""Mapping: a file in memory, which another program may shorten meanwhile."""

from __future__ import annotations

import mmap
import os
from typing import Self

import numpy as np

from fxframework.errors import UnreadableError
from fxframework.io.faults import forget, was_hit, watch

__all__ = ["Mapping"]


class Mapping(mmap.mmap):
    """A file mapped for reading, with a descriptor of its own.

    If the file is shortened later, the missing bytes are read as zeros, and ``fault`` returns an
    error.
    """

    name: str
    """The name of the file, for messages."""
    _slot = -1
    """Its place among the ranges that ``fxframework.io.faults`` watches; -1 if it has none."""

    def __new__(cls, fileno: int, name: str, size: int = 0) -> Self:
        """Map a file that is not empty; ``size`` bytes of it, or all."""
        self = super().__new__(cls, fileno, size, access=mmap.ACCESS_READ)
        self.name = name
        start = np.frombuffer(self, np.uint8).__array_interface__["data"][0]
        self._slot = watch(start, len(self))
        return self

    @property
    def safe(self) -> bool:
        """Whether the process survives if the file becomes shorter."""
        return self._slot >= 0 or os.name == "nt"

    def fault(self) -> UnreadableError | None:
        """Return the error for a file that has lost bytes since it was mapped; None if not."""
        bytes_left = len(self) if self.closed else self.size()
        if bytes_left < len(self):
            remainder = f"{bytes_left:,} of {len(self):,} bytes are left"
            what = f"it was shortened while it was read: {remainder}"
        elif was_hit(self._slot):
            what = "a part could not be read: it was rewritten meanwhile, or its disk failed"
        else:
            return None
        return UnreadableError(
            what, path=self.name, remedy="read it again once it is complete, or read a copy"
        )

    def close(self) -> None:
        """Unmap the file."""
        super().close()
        forget(self._slot)
        self._slot = -1

    def __del__(self) -> None:
        forget(self._slot)
