"""ELF stream: the bytes of a program as pyelftools reads them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Stream"]

U1 = NDArray[np.uint8]


class Stream:
    """The bytes of a source as pyelftools reads them; reading past the end gives fewer."""

    def __init__(self, data: U1) -> None:
        self._data = data
        self._at = 0

    def read(self, nbytes: int = -1) -> bytes:
        """Return the next bytes."""
        stop = self._data.size if nbytes < 0 else self._at + nbytes
        data = self._data[self._at : stop].tobytes()
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a place, counted from the start (0), from here (1) or from the end (2)."""
        self._at = max(0, offset + (0, self._at, self._data.size)[whence])
        return self._at

    def tell(self) -> int:
        """Return the place."""
        return self._at
