# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Loops over columns, shared by readers of several formats; they run without the GIL."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from fxframework.kernels.buffers import room

__all__ = ["CopiedStretches", "SplitCodes", "SplitNumbers", "Taken"]


@cython.final
cdef class SplitNumbers:
    """Selects ``values`` of rows whose type is a bit of ``wanted``; other rows get ``otherwise``.

    ``types`` is uint8, ``values`` int64; ``rows`` (int32), if given, selects rows of both. The
    result is ``out`` (int64).
    """

    cdef public const uint8_t[::1] types
    cdef public const int64_t[::1] values
    cdef public const int32_t[::1] rows
    cdef int64_t wanted, otherwise
    cdef public int64_t count
    cdef bint chosen
    cdef public int64_t[::1] out

    def __init__(self, types, values, wanted, otherwise, rows=None):
        self.types = types
        self.values = values
        self.wanted = wanted
        self.otherwise = otherwise
        self.chosen = rows is not None
        self.rows = room(0, "i4") if rows is None else rows
        self.count = len(types) if rows is None else len(rows)
        self.out = room(self.count, "i8")

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Fill the column."""
        cdef int64_t row, at, kind
        row = 0
        while row < self.count:
            at = self.rows[row] if self.chosen else row
            kind = self.types[at]
            self.out[row] = self.values[at] if (self.wanted >> kind) & 1 else self.otherwise
            row += 1
        return 0


@cython.final
cdef class SplitCodes:
    """Like ``SplitNumbers`` for codes, of all rows; ``out`` is int32."""

    cdef public const uint8_t[::1] types
    cdef public const int64_t[::1] values
    cdef int64_t wanted, otherwise
    cdef public int64_t count
    cdef public int32_t[::1] out

    def __init__(self, types, values, wanted, otherwise):
        self.types = types
        self.values = values
        self.wanted = wanted
        self.otherwise = otherwise
        self.count = len(types)
        self.out = room(self.count, "i4")

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Fill the column."""
        cdef int64_t row, kind
        row = 0
        while row < self.count:
            kind = self.types[row]
            self.out[row] = self.values[row] if (self.wanted >> kind) & 1 else self.otherwise
            row += 1
        return 0


@cython.final
cdef class Taken:
    """Looks up ``values[through[row]]``, or ``values[row]`` without ``through``; -1 stays -1.

    ``rows``, ``through`` and ``values`` are int32; nonnegative elements must be valid indexes. The
    result is ``out`` (int32).
    """

    cdef public const int32_t[::1] rows, values
    cdef const int32_t[::1] through
    cdef public int64_t count
    cdef bint indirect
    cdef public int32_t[::1] out

    def __init__(self, rows, values, through=None):
        self.rows = rows
        self.values = values
        self.indirect = through is not None
        self.through = room(0, "i4") if through is None else through
        self.count = len(rows)
        self.out = room(self.count, "i4")

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Fill the column."""
        cdef int64_t row, at
        row = 0
        while row < self.count:
            at = self.rows[row]
            if self.indirect and at >= 0:
                at = self.through[at]
            self.out[row] = self.values[at] if at >= 0 else -1
            row += 1
        return 0


@cython.final
cdef class CopiedStretches:
    """Copies stretches of bytes to ``offsets``; ``run`` returns 0 if one is outside, else 1.

    ``source`` and ``out`` are uint8; ``starts`` (int64) has the shape (n,), ``offsets`` (n + 1,).
    """

    cdef readonly const uint8_t[::1] source
    cdef readonly const int64_t[::1] starts
    cdef public const int64_t[::1] offsets
    cdef public uint8_t[::1] out
    cdef public int64_t size, count

    def __init__(self, source, starts, offsets, out):
        self.source = source
        self.starts = starts
        self.offsets = offsets
        self.out = out
        self.size = len(source)
        self.count = len(starts)

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Copy stretches up to the first one outside of the source."""
        cdef int64_t row, to, size, start, index
        row = 0
        while row < self.count:
            to = self.offsets[row]
            size = self.offsets[row + 1] - to
            start = self.starts[row]
            if size > 0 and (start < 0 or size > self.size - start):
                return 0
            index = 0
            while index < size:
                self.out[to + index] = self.source[start + index]
                index += 1
            row += 1
        return 1
