# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Slots: the elements of arrays as columns, those of one array after those of another."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from fx_inspect.read.scan cimport Scan
from fxframework.kernels.fields cimport Field, field, get

from fx_inspect import format as wire
from fx_inspect.read import tables
from fxframework.kernels.buffers import room

cdef int64_t STRING = wire.STRING, UNIT = wire.UNIT
cdef Field SLOT_STRING = field(wire.SLOT_STRING)
cdef int64_t STRING_ARRAY = tables.STRING_ARRAY

__all__ = ["PLACES", "SlotColumns"]

PLACES = 0
"""Instead of a type: where slots are."""

cdef enum:
    IS_PLACES


@cython.final
cdef class SlotColumns:
    """Columns of the slots ``bounds`` (first and stop) of arrays.

    Row ``i`` of ``rows`` begins at a unit (int32), is of a type (uint8), and has the slots from one
    start (int64) to the next. For a ``wanted`` type of numbers, ``values`` (int64) has the 64 bits
    of its slots, for STRING_ARRAY ``numbers`` (int32) their codes, of the strings in ``code``
    (int32); slots of other arrays have 0, or -1. For PLACES, ``values`` is the row of the array,
    counted from ``row``, ``numbers`` the place in it, and ``offsets`` (int64) the byte at which its
    block begins.
    """

    cdef public Scan scan
    cdef public const int64_t[::1] words
    cdef public const int32_t[::1] units
    cdef public const uint8_t[::1] types
    cdef readonly const int64_t[::1] starts
    cdef readonly const int32_t[::1] code
    cdef readonly int64_t row, wanted
    cdef public int64_t first
    cdef readonly int64_t stop
    cdef public int64_t[::1] values
    cdef public int32_t[::1] numbers
    cdef public int64_t[::1] offsets

    def __init__(self, scan, words, rows, code, row, wanted, bounds):
        units, types, starts = rows
        self.scan = scan
        self.words = words
        self.units = units
        self.types = types
        self.starts = starts
        self.code = code
        self.row = row
        self.wanted = wanted
        self.first = bounds[0]
        self.stop = bounds[1]
        count = bounds[1] - bounds[0]
        self.values = room(0 if wanted == tables.STRING_ARRAY else count, "i8")
        self.numbers = room(count if wanted in (PLACES, tables.STRING_ARRAY) else 0, "i4")
        self.offsets = room(count if wanted == PLACES else 0, "i8")

    def run(self):
        """Call ``step`` without the interpreter's lock; return its result."""
        cdef int64_t result
        with nogil:
            result = self.step()
        return result

    cdef int64_t step(self) except? -9 nogil:
        """Fill the columns, array by array."""
        cdef int64_t row, start, at, size
        row = 0
        while row < len(self.units):
            start = self.starts[row]
            at = max(start, self.first)
            size = min(self.starts[row + 1], self.stop) - at
            if self.wanted == IS_PLACES:
                self.places(row, at - start, at - self.first, size)
            elif self.wanted == STRING_ARRAY:
                self.strings(row, at - start, at - self.first, size)
            else:
                self.bits(row, at - start, at - self.first, size)
            row += 1
        return 0

    cdef int64_t bits(self, int64_t row, int64_t slot, int64_t to, int64_t size) noexcept nogil:
        """Fill in the words of an array."""
        cdef int64_t index, begin
        index = 0
        if self.types[row] == self.wanted:
            begin = 2 * self.units[row] + 2 + slot
            while index < size:
                self.values[to + index] = self.words[begin + index]
                index += 1
        else:
            while index < size:
                self.values[to + index] = 0
                index += 1
        return 0

    cdef int64_t strings(self, int64_t row, int64_t slot, int64_t to, int64_t size) noexcept nogil:
        """Fill in the codes of an array."""
        cdef int64_t index, found
        index = 0
        while index < size:
            found = -1
            if self.types[row] == STRING_ARRAY:
                found = self.string(2 * self.units[row] + 2, slot + index)
            self.numbers[to + index] = found
            index += 1
        return 0

    cdef int64_t string(self, int64_t begin, int64_t slot) noexcept nogil:
        """Return the code of a slot; 0, the empty string, for one that refers to no string."""
        cdef int64_t unit
        unit = get(SLOT_STRING, self.words[begin + slot // 2] >> 32 * (slot % 2))
        if unit > 0 and unit < self.scan.units and self.scan.starts[unit] == STRING + 1:
            return self.code[self.scan.numbers[unit]]
        return 0

    cdef int64_t places(self, int64_t row, int64_t slot, int64_t to, int64_t size) noexcept nogil:
        """Fill in where the slots of an array are."""
        cdef int64_t number, index
        number = self.row + row
        index = 0
        while index < size:
            self.values[to + index] = number
            index += 1
        number = UNIT * self.units[row]
        index = 0
        while index < size:
            self.offsets[to + index] = number
            index += 1
        index = 0
        while index < size:
            self.numbers[to + index] = slot + index
            index += 1
        return 0
