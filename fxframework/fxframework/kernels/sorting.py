"""Stable sorting of many numbers, in time independent of their order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fxframework.io import arena
from fxframework.kernels import native
from fxframework.kernels.annotations import Array, Fallible, View, flag, i64, u64
from fxframework.kernels.behind import WORTHWHILE, Behind
from fxframework.kernels.buffers import full, view
from fxframework.kernels.kernel import Kernel

__all__ = ["Range", "StableOrder", "order_and_keys", "stable_order"]

LOW64 = 0xFFFFFFFFFFFFFFFF
DIGIT = 11
"""The most bits sorted in one pass."""
DIGITS = 1 << DIGIT
PASSES = 6
"""The most passes over numbers of 64 bits."""
SAMPLED = 1000
"""Keys of which the median divides all."""
SMALL = 4096
"""Fewer keys are sorted by numpy, because each pass also clears its table of digits."""


class Range(Kernel):
    """The least and the greatest of ``keys``, and how many are less than the one before."""

    keys: View[i64]
    count: i64
    low: i64
    high: i64
    steps_back: i64

    def __init__(self, keys: memoryview) -> None:
        self.keys = memoryview(keys)
        self.count = len(keys)
        self.low = 0
        self.high = 0
        self.steps_back = 0

    def step(self) -> Fallible[i64]:
        """Look at all of them; there must be one."""
        low = high = before = self.keys[0]
        steps_back = 0
        row = 1
        while row < self.count:
            key = self.keys[row]
            steps_back += key < before
            before = key
            low = min(key, low)
            high = max(key, high)
            row += 1
        self.low = low
        self.high = high
        self.steps_back = steps_back
        return 0


class StableOrder(Kernel):
    """Radix sort of those of int64 ``keys`` that are from ``low`` to ``high``.

    There are as many as ``order`` and ``in_order`` have places. ``run`` sets ``order`` (int64) to
    their rows in stable order, and returns the number of passes. A row and as many bits of its key
    as fit beside it move as one number. Where all do, ``whole`` is 1, and ``in_order`` (int64) has
    the keys in that order.
    """

    keys: View[i64]
    order: Array[i64]
    in_order: Array[i64]
    packed: Array[u64]
    other: Array[u64]
    places: Array[i64]
    count: i64
    low: i64
    width: u64
    row_bits: i64
    whole: flag

    def __init__(
        self, keys: memoryview, low: int, high: int, order: memoryview, in_order: memoryview
    ) -> None:
        self.keys = memoryview(keys)
        self.count = len(order)
        # The results take the place of what was sorted.
        self.order = memoryview(order)
        self.in_order = memoryview(in_order)
        self.packed = memoryview(order).cast("B").cast("Q")
        self.other = memoryview(in_order).cast("B").cast("Q")
        self.places = full(PASSES * DIGITS, "i8")
        self.low = low
        self.width = high - low
        self.row_bits = 1
        self.whole = False

    def step(self) -> Fallible[i64]:
        """Sort by one digit after another, the least significant one first."""
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
        rows: u64 = (1 << self.row_bits) - 1
        at = 0
        while at < self.count:
            packed: u64 = self.packed[at]
            key: u64 = packed >> self.row_bits
            self.order[at] = packed & rows
            self.in_order[at] = key + self.low
            at += 1
        return passes

    def pick(self, bits: i64) -> i64:
        """Put the lowest ``bits`` bits of each key that is sorted above its row."""
        mask: u64 = LOW64 >> (64 - bits)
        row: u64 = 0
        at = 0
        while at < self.count:
            key: u64 = (self.keys[row] - self.low) & LOW64
            # Without a branch, which half of the keys would take by chance.
            self.packed[at] = (key & mask) << self.row_bits | row
            at += key <= self.width
            row += 1
        return 0

    def pack(self, shift: i64, bits: i64) -> i64:
        """Put ``bits`` bits of each key, from bit ``shift`` on, above its row, in order so far."""
        mask: u64 = LOW64 >> (64 - bits)
        rows: u64 = (1 << self.row_bits) - 1
        at = 0
        while at < self.count:
            row: u64 = self.packed[at] & rows
            key: u64 = (self.keys[row] - self.low) & LOW64
            self.packed[at] = ((key >> shift) & mask) << self.row_bits | row
            at += 1
        return 0

    def sort_packed(self, digit: i64, digits: i64) -> i64:
        """Sort stably by digits of so many bits; return how many passes that took."""
        last: u64 = (1 << digit) - 1
        place = 0
        while place < digits * DIGITS:
            self.places[place] = 0
            place += 1
        row = 0
        while row < self.count:
            key: u64 = self.packed[row] >> self.row_bits
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

    def sort_by(self, shift: i64, last: u64, table: i64) -> i64:
        """Sort stably by the digit at ``shift``, counted at ``table``; 0 if all have the same."""
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
            key: u64 = self.packed[row]
            place = table + ((key >> shift) & last)
            to = self.places[place]
            self.places[place] = to + 1
            self.other[to] = key
            row += 1
        self.packed, self.other = self.other, self.packed
        return 1


def stable_order(keys: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return ``numpy.argsort(keys, kind="stable")``, faster; None if the keys are in order."""
    return order_and_keys(keys)[0]


def order_and_keys(
    keys: NDArray[np.int64],
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """Return the same, and the keys in that order, or None where sorting did not bring them."""
    if keys.size < SMALL or not native.is_compiled(__name__):
        if keys.size < 2 or bool((keys[1:] >= keys[:-1]).all()):
            return None, keys
        return np.argsort(keys, kind="stable"), None
    held = view(keys, "i8")
    found = Range(held)
    found.run()
    if not found.steps_back:
        return None, keys
    if found.steps_back == keys.size - 1:
        return np.arange(keys.size - 1, -1, -1), np.flip(keys).copy()
    order, in_order = arena.empty(keys.size, "i8"), arena.empty(keys.size, "i8")
    middle, lower = found.low, 0
    if keys.nbytes >= WORTHWHILE:
        # The lower and the upper keys side by side.
        middle = int(np.median(keys[:: keys.size // SAMPLED]))
        lower = int(np.count_nonzero(keys < middle))
    whole = []

    def sort(rows: slice, low: int, high: int) -> None:
        sorting = StableOrder(held, low, high, order[rows].data, in_order[rows].data)
        sorting.run()
        whole.append(sorting.whole)

    with Behind(keys.nbytes) as behind:
        if lower:
            behind.do(sort, slice(0, lower), found.low, middle - 1)
        sort(slice(lower, keys.size), middle, found.high)
    return order, in_order if all(whole) else None
