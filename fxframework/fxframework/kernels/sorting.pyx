# cython: boundscheck=False, wraparound=False, show_performance_hints=False
# Bounds are not checked: a digit is less than DIGITS, and places count up to the number of keys.
"""Stable sorting of many numbers, in time independent of their order."""

cimport cython
from libc.stdint cimport int64_t, uint64_t

from fxframework.kernels.rows cimport Loop

import numpy as np

from fxframework.io import arena
from fxframework.kernels.behind import WORTHWHILE, Behind
from fxframework.kernels.buffers import full, view

cdef uint64_t LOW64 = 0xFFFFFFFFFFFFFFFFULL

cdef enum:
    DIGIT = 11  # The most bits sorted in one pass.
    DIGITS = 1 << DIGIT
PASSES = 6
"""The most passes over numbers of 64 bits."""
SAMPLED = 1000
"""Keys of which the median divides all."""
SMALL = 4096
"""Fewer keys are sorted by numpy, because each pass also clears its table of digits."""


def range_of(const int64_t[::1] keys):
    """Return the least and the greatest of at least one key, and how many are less than before."""
    cdef int64_t low = keys[0], high = keys[0], before = keys[0], steps_back = 0, row, key
    with nogil:
        for row in range(1, keys.shape[0]):
            key = keys[row]
            steps_back += key < before
            before = key
            low = min(key, low)
            high = max(key, high)
    return low, high, steps_back


@cython.final
cdef class StableOrder(Loop):
    """Radix sort of those of int64 ``keys`` that are from ``low`` to ``high``.

    There are as many as ``order`` and ``in_order`` have places. ``run`` sets ``order`` (int64) to
    their rows in stable order, and returns the number of passes. A row and as many bits of its key
    as fit beside it move as one number. Where all do, ``whole`` is 1, and ``in_order`` (int64) has
    the keys in that order.
    """

    cdef readonly const int64_t[::1] keys
    cdef readonly int64_t[::1] order, in_order
    cdef uint64_t[::1] packed, other
    cdef readonly int64_t[::1] places
    cdef int64_t count, low
    cdef uint64_t width
    cdef int64_t row_bits
    cdef public bint whole

    def __init__(self, keys, low, high, order, in_order):
        self.keys = keys
        self.count = len(order)
        # The results take the place of what was sorted.
        self.order = order
        self.in_order = in_order
        self.packed = memoryview(order).cast("B").cast("Q")
        self.other = memoryview(in_order).cast("B").cast("Q")
        self.places = full(PASSES * DIGITS, "i8")
        self.low = low
        self.width = high - low
        self.row_bits = 1
        self.whole = False

    cdef int64_t step(self) except? -9 nogil:
        """Sort by one digit after another, the least significant one first."""
        cdef int64_t passes, key_bits, sorted_bits, bits, digits, at
        cdef uint64_t rows, packed, key
        passes = 0
        key_bits = 0
        while key_bits < 64 and self.width >> key_bits:
            key_bits += 1
        while len(self.keys) >> self.row_bits:
            self.row_bits += 1
        sorted_bits = 0
        while sorted_bits < key_bits or sorted_bits == 0:
            bits = max(1, min(64 - self.row_bits, key_bits - sorted_bits))
            if sorted_bits == 0:
                self.pick(bits)
            else:
                self.pack(sorted_bits, bits)
            digits = (bits + DIGIT - 1) // DIGIT
            passes += self.sort_packed((bits + digits - 1) // digits, digits)
            sorted_bits += bits
        self.whole = key_bits <= 64 - self.row_bits
        rows = (1LL << self.row_bits) - 1
        at = 0
        while at < self.count:
            packed = self.packed[at]
            key = packed >> self.row_bits
            self.order[at] = packed & rows
            self.in_order[at] = key + self.low
            at += 1
        return passes

    cdef int64_t pick(self, int64_t bits) noexcept nogil:
        """Put the lowest ``bits`` bits of each key that is sorted above its row."""
        cdef uint64_t mask, row, key
        cdef int64_t at
        mask = LOW64 >> (64 - bits)
        row = 0
        at = 0
        while at < self.count:
            key = self.keys[row] - self.low
            # Without a branch, which half of the keys would take by chance.
            self.packed[at] = (key & mask) << self.row_bits | row
            at += key <= self.width
            row += 1
        return 0

    cdef int64_t pack(self, int64_t shift, int64_t bits) noexcept nogil:
        """Put ``bits`` bits of each key, from bit ``shift`` on, above its row, in order so far."""
        cdef uint64_t mask, rows, row, key
        cdef int64_t at
        mask = LOW64 >> (64 - bits)
        rows = (1LL << self.row_bits) - 1
        at = 0
        while at < self.count:
            row = self.packed[at] & rows
            key = self.keys[row] - self.low
            self.packed[at] = ((key >> shift) & mask) << self.row_bits | row
            at += 1
        return 0

    cdef int64_t sort_packed(self, int64_t digit, int64_t digits) noexcept nogil:
        """Sort stably by digits of so many bits; return how many passes that took."""
        cdef uint64_t last, key
        cdef int64_t place, row, passes, number
        last = (1LL << digit) - 1
        place = 0
        while place < digits * DIGITS:
            self.places[place] = 0
            place += 1
        row = 0
        while row < self.count:
            key = self.packed[row] >> self.row_bits
            place = 0
            while place < digits:
                self.places[place * DIGITS + (key & last)] += 1
                key = key >> digit
                place += 1
            row += 1
        passes = 0
        number = 0
        while number < digits:
            passes += self.sort_by(self.row_bits + number * digit, last, number * DIGITS)
            number += 1
        return passes

    cdef int64_t sort_by(self, int64_t shift, uint64_t last, int64_t table) noexcept nogil:
        """Sort stably by the digit at ``shift``, counted at ``table``; 0 if all have the same."""
        cdef int64_t total, place, many, row, to
        cdef uint64_t key
        total = 0
        place = table
        while place <= table + last:
            many = self.places[place]
            if many == self.count:
                return 0
            self.places[place] = total
            total += many
            place += 1
        row = 0
        while row < self.count:
            key = self.packed[row]
            place = table + ((key >> shift) & last)
            to = self.places[place]
            self.places[place] = to + 1
            self.other[to] = key
            row += 1
        self.packed, self.other = self.other, self.packed
        return 1


def stable_order(keys):
    """Return ``numpy.argsort(keys, kind="stable")``, faster; None if the keys are in order."""
    return order_and_keys(keys)[0]


def order_and_keys(keys):
    """Return the same, and the keys in that order, or None where sorting did not bring them."""
    if keys.size < SMALL:
        if keys.size < 2 or bool((keys[1:] >= keys[:-1]).all()):
            return None, keys
        return np.argsort(keys, kind="stable"), None
    held = view(keys, "i8")
    lowest, highest, steps_back = range_of(held)
    if not steps_back:
        return None, keys
    if steps_back == keys.size - 1:
        return np.arange(keys.size - 1, -1, -1), np.flip(keys).copy()
    order, in_order = arena.empty(keys.size, "i8"), arena.empty(keys.size, "i8")
    middle, lower = lowest, 0
    if keys.nbytes >= WORTHWHILE:
        # The lower and the upper keys side by side.
        middle = int(np.median(keys[:: keys.size // SAMPLED]))
        lower = int(np.count_nonzero(keys < middle))
    whole = []

    def sort(rows, low, high):
        sorting = StableOrder(held, low, high, order[rows].data, in_order[rows].data)
        sorting.run()
        whole.append(sorting.whole)

    with Behind(keys.nbytes) as behind:
        if lower:
            behind.do(sort, slice(0, lower), lowest, middle - 1)
        sort(slice(lower, keys.size), middle, highest)
    return order, in_order if all(whole) else None
