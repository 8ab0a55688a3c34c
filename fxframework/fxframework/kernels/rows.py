"""Rows: growing columns of equal length that a scan fills, with a class per table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.buffers import grown, room

__all__ = ["Rows", "columns"]


def columns(**names: str) -> tuple[tuple[str, str], ...]:
    """Return name and dtype of each column, from names by dtype: ``i4="thread name"``."""
    return tuple((name, dtype) for dtype, given in names.items() for name in given.split())


class Rows:
    """Columns of equal length with ``rows`` filled rows and room for ``room``.

    ``first`` is the number of the first row within its table. A kernel writes to row ``rows`` of
    each column, after calling ``grow`` if there is no room.
    """

    COLUMNS: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs of name and dtype; the header declares each as a public memoryview."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> memoryview: ...

    def __init__(self, size: int = 64) -> None:
        self.first = 0
        self.rows = 0
        self.renew(size)

    def renew(self, size: int) -> None:
        """Start new columns with room for ``size`` rows."""
        self.first += self.rows
        self.rows = 0
        for name, dtype in self.COLUMNS:
            setattr(self, name, room(size, dtype))
        self.room = size

    def grow(self) -> int:
        """Increase the room by half."""
        self.resize(self.room + (self.room >> 1) + 64)
        return 0

    def resize(self, size: int) -> None:
        """Set the room to ``size`` rows, keeping the filled ones."""
        for name, _ in self.COLUMNS:
            setattr(self, name, grown(getattr(self, name), size, self.rows))
        self.room = size

    def taken(self, size: int = 64) -> dict[str, NDArray[Any]]:
        """Return the filled rows of each column, and start new columns of ``size`` rows."""
        filled = self.filled()
        self.renew(size)
        return filled

    def filled(self) -> dict[str, NDArray[Any]]:
        """Return the filled rows of each column, as views."""
        return {name: np.asarray(getattr(self, name))[: self.rows] for name, _ in self.COLUMNS}
