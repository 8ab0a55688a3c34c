# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Rows: growing columns of equal length that a scan fills, with a class per table."""

from libc.stdint cimport int64_t

import numpy as np

from fxframework.kernels.buffers import grown, room

__all__ = ["Rows"]


cdef class Rows:
    """Columns of equal length with ``rows`` filled rows and room for ``room``.

    ``first`` is the number of the first row within its table. A kernel writes to the row of each
    column that ``add_row`` adds; or to row ``rows``, if it makes room with ``grow`` and counts.
    A subclass has a public memoryview for each of its ``COLUMNS``, pairs of name and dtype.
    """

    COLUMNS = ()

    def __init__(self, size=64):
        self.first = 0
        self.rows = 0
        self.renew(size)

    def renew(self, size):
        """Start new columns with room for ``size`` rows."""
        self.first += self.rows
        self.rows = 0
        for name, dtype in self.COLUMNS:
            setattr(self, name, room(size, dtype))
        self.room = size

    cdef int64_t add_row(self) except? -9 nogil:
        """Add a row, whose values are still to be set; return its number."""
        cdef int64_t row
        row = self.rows
        if row == self.room:
            self.grow()
        self.rows = row + 1
        return row

    cdef int grow(self) except -1 with gil:
        """Increase the room by half."""
        self.resize(self.room + (self.room >> 1) + 64)
        return 0

    def resize(self, size):
        """Set the room to ``size`` rows, keeping the filled ones."""
        for name, _ in self.COLUMNS:
            setattr(self, name, grown(getattr(self, name), size, self.rows))
        self.room = size

    def taken(self, size=64):
        """Return the filled rows of each column, and start new columns of ``size`` rows."""
        filled = self.filled()
        self.renew(size)
        return filled

    def filled(self):
        """Return the filled rows of each column, as views."""
        return {name: np.asarray(getattr(self, name))[: self.rows] for name, _ in self.COLUMNS}
