"""Growing hash maps from numbers to numbers, with seeded hashes."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.annotations import Array, Fallible, i64, public, status, u64, with_gil
from fxframework.kernels.buffers import full, room
from fxframework.kernels.hashing import FIRST, SECOND, SEED

__all__ = ["CountMap", "PairMap"]

LOW64 = 0xFFFFFFFFFFFFFFFF


@final
class PairMap:
    """A map from pairs of int64 to nonnegative int64; -1 means that a key is missing."""

    seed: u64
    multiplier: u64
    other: u64
    used: i64
    mask: i64
    first: Array[i64]
    second: Array[i64]
    value: Array[i64]

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

    def find(self, first: i64, second: i64) -> i64:
        """Return the slot of a key, or the free slot for it."""
        mixed: u64 = ((self.seed ^ (first & LOW64)) * self.multiplier) & LOW64
        mixed = ((mixed ^ (mixed >> 29)) * self.other) & LOW64
        mixed = ((mixed ^ (mixed >> 32) ^ (second & LOW64)) * self.multiplier) & LOW64
        mixed = ((mixed ^ (mixed >> 29)) * self.other) & LOW64
        slot = (mixed >> 32) & self.mask
        while self.value[slot] >= 0 and (self.first[slot] != first or self.second[slot] != second):
            slot = (slot + 1) & self.mask
        return slot

    @public
    def get(self, first: i64, second: i64) -> i64:
        """Return the value of a key; -1 if it is missing."""
        return self.value[self.find(first, second)]

    @public
    def put(self, first: i64, second: i64, value: i64) -> status:
        """Set the value of a key, 0 or more."""
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

    @public
    def number(self, first: i64, second: i64) -> Fallible[i64]:
        """Return the number of a key; new keys are numbered in order of first use."""
        slot = self.find(first, second)
        found = self.value[slot]
        if found < 0:
            found = self.used
            self.put(first, second, found)
        return found

    @with_gil
    def grow(self) -> status:
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
        self, first: Array[i64], second: Array[i64], value: Array[i64], mask: i64
    ) -> i64:
        """Insert the keys of a smaller table into the empty table."""
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
        """Remove all keys."""
        self.used = 0
        self.value = full(self.mask + 1, "i8", -1)

    def __len__(self) -> int:
        return self.used


@final
class CountMap:
    """Counts by nonnegative int64 keys; missing keys have the count 0.

    Keys whose count returns to 0 are dropped when the map grows.
    """

    seed: u64
    multiplier: u64
    used: i64
    mask: i64
    keys: Array[i64]
    counts: Array[i64]

    def __init__(self) -> None:
        self.seed = SEED
        self.multiplier = FIRST
        self.used = 0
        self.mask = 15
        self.keys = full(16, "i8", -1)
        self.counts = full(16, "i8")

    def find(self, key: i64) -> i64:
        """Return the slot of a key, or the free slot for it."""
        mixed: u64 = ((self.seed ^ key) * self.multiplier) & LOW64
        mixed = ((mixed ^ (mixed >> 29)) * self.multiplier) & LOW64
        slot = (mixed >> 32) & self.mask
        while self.keys[slot] >= 0 and self.keys[slot] != key:
            slot = (slot + 1) & self.mask
        return slot

    @public
    def get(self, key: i64) -> i64:
        """Return the count of a key."""
        return self.counts[self.find(key)]

    @public
    def add(self, key: i64, amount: i64) -> status:
        """Add to the count of a key."""
        slot = self.find(key)
        if self.keys[slot] < 0:
            if 4 * self.used > 3 * self.mask:
                self.grow()
                slot = self.find(key)
            self.used += 1
            self.keys[slot] = key
        self.counts[slot] += amount
        return 0

    @with_gil
    def grow(self) -> status:
        """Make room by dropping keys with count 0, or by doubling the table."""
        keys = np.asarray(self.keys)
        counts = np.asarray(self.counts)
        self.used = int(np.count_nonzero(counts))
        before = self.mask
        if 2 * self.used > before:
            self.mask = 2 * before + 1
        self.keys = full(self.mask + 1, "i8", -1)
        self.counts = full(self.mask + 1, "i8")
        return self.enter_again(keys.data, counts.data, before)

    def enter_again(self, keys: Array[i64], counts: Array[i64], mask: i64) -> i64:
        """Insert the keys of another table into the empty table."""
        old = 0
        while old <= mask:
            if counts[old] > 0:
                slot = self.find(keys[old])
                self.keys[slot] = keys[old]
                self.counts[slot] = counts[old]
            old += 1
        return 0

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return sorted keys and their counts, both int64 of shape (keys,)."""
        slots = np.flatnonzero(np.asarray(self.counts))
        keys = np.asarray(self.keys)[slots]
        order = np.argsort(keys)
        return keys[order], np.asarray(self.counts)[slots[order]]
