# cython: boundscheck=False, wraparound=False, show_performance_hints=False
# Bounds are not checked: room is made before a row is written, and codes are those of a catalogue.
"""What a scan is: a loop without the interpreter's lock, which fills rows and finds things.

Rows are growing columns, with a class per table; findings are numbers.
"""

cimport cython
from libc.stdint cimport int64_t

import numpy as np

from fxframework.kernels.buffers import full, grown, room

cdef class Loop:
    """A loop that takes long; a subclass has it in ``step``."""

    cdef int64_t step(self) except? -9 nogil:
        """Run the loop; the subclass says what the result means."""
        return 0

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result


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


@cython.final
cdef class Notes:
    """The findings of a scan: the first of each code as rows, and counts of all.

    Codes are small numbers from 0 on, which a plugin maps to the codes of its catalogue.
    """

    def __init__(self, codes, limit):
        self.limit = limit if limit > 0 else 1 << 62
        self.totals = full(codes, "i8")
        self.rows = room(4 * 16, "i8")
        self.room = 16
        self.used = 0

    cpdef int64_t add(self, int64_t code, int64_t offset, int64_t record,
                      int64_t value) except? -9 nogil:
        """Count a finding, and keep it if its code is below the limit; return the count."""
        cdef int64_t count, row
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

    cdef int grow(self) except -1 with gil:
        """Make room for twice as many rows."""
        self.rows = grown(self.rows, 8 * self.room, 4 * self.used)
        self.room *= 2
        return 0

    cpdef int64_t count(self, int64_t code) noexcept nogil:
        """Return the number of findings of a code, kept or not."""
        return self.totals[code]

    @property
    def findings(self):
        """The kept findings, four numbers each: code, offset, record and value."""
        return np.asarray(self.rows)[: 4 * self.used]

    @property
    def counts(self):
        """Number of kept findings, limit per code, then the counts by code."""
        return np.append(np.array([self.used, self.limit], np.int64), np.asarray(self.totals))
