# cython: boundscheck=False, wraparound=False, show_performance_hints=False
# Bounds are not checked: room is made before a finding is written, and codes are a catalogue's.
"""What a scan is: a loop without the interpreter's lock, which finds things; these are numbers."""

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
