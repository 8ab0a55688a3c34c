"""Rows: growing columns of equal length that a scan fills, with a class per table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.annotations import Fallible, i64, status, with_gil
from fxframework.kernels.buffers import grown, room

__all__ = ["Rows"]


def _declared(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Pairs of name and dtype of the arrays among annotations, which are texts."""
    for name, declared in annotations.items():
        if declared.startswith("Column["):
            element = declared.removeprefix("Column[").removesuffix("]")
            yield name, f"{element[0]}{int(element[1:]) // 8}"


class Rows:
    """Columns of equal length with ``rows`` filled rows and room for ``room``.

    ``first`` is the number of the first row within its table. A kernel writes to the row of each
    column that ``add_row`` adds; or to row ``rows``, if it makes room with ``grow`` and counts.
    """

    first: i64
    rows: i64
    room: i64

    def __init__(self, size: int = 64) -> None:
        self.first = 0
        self.rows = 0
        self.renew(size)

    @classmethod
    def columns(cls) -> tuple[tuple[str, str], ...]:
        """Return name and dtype of each column: what a subclass declares as ``Column``."""
        found: tuple[tuple[str, str], ...] | None = vars(cls).get("COLUMNS")
        return tuple(_declared(cls.__annotations__)) if found is None else found

    def renew(self, size: int) -> None:
        """Start new columns with room for ``size`` rows."""
        self.first += self.rows
        self.rows = 0
        for name, dtype in self.columns():
            setattr(self, name, room(size, dtype))
        self.room = size

    def add_row(self) -> Fallible[i64]:
        """Add a row, whose values are still to be set; return its number."""
        row = self.rows
        if row == self.room:
            self.grow()
        self.rows = row + 1
        return row

    @with_gil
    def grow(self) -> status:
        """Increase the room by half."""
        self.resize(self.room + (self.room >> 1) + 64)
        return 0

    def resize(self, size: int) -> None:
        """Set the room to ``size`` rows, keeping the filled ones."""
        for name, _ in self.columns():
            setattr(self, name, grown(getattr(self, name), size, self.rows))
        self.room = size

    def taken(self, size: int = 64) -> dict[str, NDArray[Any]]:
        """Return the filled rows of each column, and start new columns of ``size`` rows."""
        filled = self.filled()
        self.renew(size)
        return filled

    def filled(self) -> dict[str, NDArray[Any]]:
        """Return the filled rows of each column, as views."""
        return {name: np.asarray(getattr(self, name))[: self.rows] for name, _ in self.columns()}
