"""Maps from numbers to numbers that grow as they are filled, with seeded hashes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fxframework.kernels.buffers import full, room
from fxframework.kernels.hashing import FIRST, SECOND, SEED

__all__ = ["PairMap"]

LOW64 = 0xFFFFFFFFFFFFFFFF


class PairMap:
    """A map of two int64 to one that is not negative; -1 is what a key has that is not there."""

    def __init__(self, size: int = 16) -> None:
        slots = 16
        while slots < 2 * size:
            slots *= 2
        self.seed = SEED
        self.multiplier = FIRST
        self.other = SECOND
        self.used = 0
        self.mask = slots - 1
        self.first = room(slots, "i8")
        self.second = room(slots, "i8")
        self.value = full(slots, "i8", -1)

    def find(self, first: int, second: int) -> int:
        """The slot of a key, or the free one where it belongs."""
        mixed = ((self.seed ^ (first & LOW64)) * self.multiplier) & LOW64
        mixed = ((mixed ^ (mixed >> 29)) * self.other) & LOW64
        mixed = ((mixed ^ (mixed >> 32) ^ (second & LOW64)) * self.multiplier) & LOW64
        mixed = ((mixed ^ (mixed >> 29)) * self.other) & LOW64
        slot = (mixed >> 32) & self.mask
        while self.value[slot] >= 0 and (self.first[slot] != first or self.second[slot] != second):
            slot = (slot + 1) & self.mask
        return slot

    def get(self, first: int, second: int) -> int:
        """The value of a key; -1 where it has none."""
        return self.value[self.find(first, second)]

    def put(self, first: int, second: int, value: int) -> int:
        """Set the value of a key, which is 0 or more."""
        slot = self.find(first, second)
        if self.value[slot] < 0:
            if 2 * self.used > self.mask:
                self.grow()
                slot = self.find(first, second)
            self.used += 1
            self.first[slot] = first
            self.second[slot] = second
        self.value[slot] = value
        return 0

    def number(self, first: int, second: int) -> int:
        """The number of a key among those of this map, in the order of their first mention."""
        slot = self.find(first, second)
        found = self.value[slot]
        if found < 0:
            found = self.used
            self.put(first, second, found)
        return found

    def grow(self) -> int:
        """Make room for twice as many keys."""
        first = self.first
        second = self.second
        value = self.value
        before = self.mask
        slots = 2 * (before + 1)
        self.mask = slots - 1
        self.first = room(slots, "i8")
        self.second = room(slots, "i8")
        self.value = full(slots, "i8", -1)
        return self.enter_again(first, second, value, before)

    def enter_again(
        self, first: memoryview, second: memoryview, value: memoryview, mask: int
    ) -> int:
        """Enter the keys of a smaller table into the (empty) table."""
        old = 0
        while old <= mask:
            if value[old] >= 0:
                slot = self.find(first[old], second[old])
                self.first[slot] = first[old]
                self.second[slot] = second[old]
                self.value[slot] = value[old]
            old += 1
        return 0

    def clear(self) -> None:
        """Forget all keys."""
        self.used = 0
        self.value = full(self.mask + 1, "i8", -1)

    def __len__(self) -> int:
        return self.used

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Each key's two numbers and its value, in no order."""
        value = np.asarray(self.value)
        slots = np.flatnonzero(value >= 0)
        columns = (np.asarray(self.first), np.asarray(self.second), value)
        return iter(zip(*(column[slots].tolist() for column in columns), strict=True))
