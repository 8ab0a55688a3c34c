"""Stable sorting of many numbers, in time independent of their order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels import native
from fxframework.kernels.annotations import Array, Fallible, View, flag, i64, u64
from fxframework.kernels.buffers import full, room, view
from fxframework.kernels.kernel import Kernel

__all__ = ["StableOrder", "stable_order"]

LOW64 = 0xFFFFFFFFFFFFFFFF
DIGIT = 8
"""Bits sorted in one pass."""
DIGITS = 256
SMALL = 4096
"""Fewer keys are sorted by numpy, because each pass also clears its table of digits."""


class StableOrder(Kernel):
    """Radix sort of int64 ``keys``: after ``run``, ``order`` is their stable argsort.

    ``run`` returns the number of passes; 0 means that the keys were in order.
    """

    keys: View[i64]
    order: Array[i64]
    above: Array[u64]
    other_order: Array[i64]
    other_above: Array[u64]
    places: Array[i64]
    count: i64

    def __init__(self, keys: memoryview) -> None:
        self.keys = memoryview(keys)
        self.count = len(keys)
        self.order = room(self.count, "i8")
        self.above = room(self.count, "u8")
        self.other_order = room(self.count, "i8")
        self.other_above = room(self.count, "u8")
        self.places = full(DIGITS, "i8")

    def step(self) -> Fallible[i64]:
        """Sort by one digit after another, the least significant one first."""
        if self.in_order():
            return 0
        width: u64 = self.measure()
        passes = 0
        shift = 0
        while shift < 64 and width >> shift:
            self.sort_by(shift)
            shift += DIGIT
            passes += 1
        return passes

    def in_order(self) -> flag:
        """Return whether the keys are in order."""
        row = 1
        while row < self.count:
            if self.keys[row] < self.keys[row - 1]:
                return False
            row += 1
        return True

    def measure(self) -> u64:
        """Number the keys, subtract the least from each, and return the width of their range."""
        low = high = self.keys[0]
        row = 0
        while row < self.count:
            key = self.keys[row]
            if key < low:
                low = key
            if key > high:
                high = key
            row += 1
        row = 0
        while row < self.count:
            self.order[row] = row
            self.above[row] = (self.keys[row] - low) & LOW64
            row += 1
        return (high - low) & LOW64

    def sort_by(self, shift: i64) -> i64:
        """Sort stably by the digit at ``shift``."""
        last: u64 = DIGITS - 1
        place = 0
        while place < DIGITS:
            self.places[place] = 0
            place += 1
        row = 0
        while row < self.count:
            self.places[(self.above[row] >> shift) & last] += 1
            row += 1
        total = 0
        place = 0
        while place < DIGITS:
            many = self.places[place]
            self.places[place] = total
            total += many
            place += 1
        row = 0
        while row < self.count:
            key: u64 = self.above[row]
            place = (key >> shift) & last
            to = self.places[place]
            self.places[place] = to + 1
            self.other_order[to] = self.order[row]
            self.other_above[to] = key
            row += 1
        self.order, self.other_order = self.other_order, self.order
        self.above, self.other_above = self.other_above, self.above
        return 0


def stable_order(keys: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """Return ``numpy.argsort(keys, kind="stable")``, faster; None if the keys are in order."""
    if keys.size < SMALL or not native.is_compiled(__name__):
        if keys.size < 2 or bool((keys[1:] >= keys[:-1]).all()):
            return None
        return np.argsort(keys, kind="stable")
    sorting = StableOrder(view(keys, "i8"))
    return np.asarray(sorting.order) if sorting.run() else None
