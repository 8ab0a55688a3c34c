"""Findings of kernels, stored as numbers."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.annotations import Array, Fallible, i64, public, status, with_gil
from fxframework.kernels.buffers import full, grown, room

__all__ = ["Notes"]


@final
class Notes:
    """The findings of a scan: the first of each code as rows, and counts of all.

    Codes are small numbers from 0 on, which a plugin maps to the codes of its catalogue.
    """

    limit: i64
    totals: Array[i64]
    rows: Array[i64]
    room: i64
    used: i64

    def __init__(self, codes: int, limit: int) -> None:
        self.limit = limit if limit > 0 else 1 << 62
        self.totals = full(codes, "i8")
        self.rows = room(4 * 16, "i8")
        self.room = 16
        self.used = 0

    @public
    def add(self, code: i64, offset: i64, record: i64, value: i64) -> Fallible[i64]:
        """Count a finding, and keep it if its code is below the limit; return the count."""
        count = self.totals[code] + 1
        self.totals[code] = count
        if count <= self.limit:
            if self.used == self.room:
                self.grow()
            row = 4 * self.used
            self.rows[row] = code
            self.rows[row + 1] = offset
            self.rows[row + 2] = record
            self.rows[row + 3] = value
            self.used += 1
        return count

    @with_gil
    def grow(self) -> status:
        """Make room for twice as many rows."""
        self.rows = grown(self.rows, 8 * self.room, 4 * self.used)
        self.room *= 2
        return 0

    @public
    def count(self, code: i64) -> i64:
        """Return the number of findings of a code, kept or not."""
        return self.totals[code]

    @property
    def findings(self) -> NDArray[np.int64]:
        """The kept findings, four numbers each: code, offset, record and value."""
        return np.asarray(self.rows)[: 4 * self.used]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of kept findings, limit per code, then the counts by code."""
        return np.append(np.array([self.used, self.limit], np.int64), np.asarray(self.totals))
