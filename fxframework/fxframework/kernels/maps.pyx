# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Growing hash maps from numbers to numbers, with seeded hashes."""

cimport cython
from libc.stdint cimport int64_t, uint64_t

import numpy as np

from fxframework.kernels.buffers import full, room
from fxframework.kernels.hashing import FIRST, SECOND, SEED

__all__ = ["CountMap", "PairMap"]

LOW64 = 0xFFFFFFFFFFFFFFFF


@cython.final
cdef class PairMap:
    """A map from pairs of int64 to nonnegative int64; -1 means that a key is missing."""

    def __init__(self, size=16):
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

    cdef int64_t find(self, int64_t first, int64_t second) noexcept nogil:
        """Return the slot of a key, or the free slot for it."""
        cdef uint64_t mixed
        cdef int64_t slot
        mixed = (self.seed ^ (<uint64_t>first)) * self.multiplier
        mixed = (mixed ^ (mixed >> 29)) * self.other
        mixed = (mixed ^ (mixed >> 32) ^ (<uint64_t>second)) * self.multiplier
        mixed = (mixed ^ (mixed >> 29)) * self.other
        slot = (mixed >> 32) & self.mask
        while self.value[slot] >= 0 and (self.first[slot] != first or self.second[slot] != second):
            slot = (slot + 1) & self.mask
        return slot

    cpdef int64_t get(self, int64_t first, int64_t second) noexcept nogil:
        """Return the value of a key; -1 if it is missing."""
        return self.value[self.find(first, second)]

    cpdef int put(self, int64_t first, int64_t second, int64_t value) except -1 nogil:
        """Set the value of a key, 0 or more."""
        cdef int64_t slot
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

    cpdef int64_t number(self, int64_t first, int64_t second) except? -9 nogil:
        """Return the number of a key; new keys are numbered in order of first use."""
        cdef int64_t slot, found
        slot = self.find(first, second)
        found = self.value[slot]
        if found < 0:
            found = self.used
            self.put(first, second, found)
        return found

    cdef int grow(self) except -1 with gil:
        """Make room for twice as many keys."""
        cdef int64_t[::1] first, second, value
        cdef int64_t before, slots
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

    cdef int64_t enter_again(self, int64_t[::1] first, int64_t[::1] second, int64_t[::1] value,
                             int64_t mask) noexcept nogil:
        """Insert the keys of a smaller table into the empty table."""
        cdef int64_t old, slot
        old = 0
        while old <= mask:
            if value[old] >= 0:
                slot = self.find(first[old], second[old])
                self.first[slot] = first[old]
                self.second[slot] = second[old]
                self.value[slot] = value[old]
            old += 1
        return 0

    def clear(self):
        """Remove all keys."""
        self.used = 0
        self.value = full(self.mask + 1, "i8", -1)

    def __len__(self):
        return self.used


@cython.final
cdef class CountMap:
    """Counts by nonnegative int64 keys; missing keys have the count 0.

    Keys whose count returns to 0 are dropped when the map grows.
    """

    def __init__(self):
        self.seed = SEED
        self.multiplier = FIRST
        self.used = 0
        self.mask = 15
        self.keys = full(16, "i8", -1)
        self.counts = full(16, "i8")

    cdef int64_t find(self, int64_t key) noexcept nogil:
        """Return the slot of a key, or the free slot for it."""
        cdef uint64_t mixed
        cdef int64_t slot
        mixed = (self.seed ^ key) * self.multiplier
        mixed = (mixed ^ (mixed >> 29)) * self.multiplier
        slot = (mixed >> 32) & self.mask
        while self.keys[slot] >= 0 and self.keys[slot] != key:
            slot = (slot + 1) & self.mask
        return slot

    cpdef int64_t get(self, int64_t key) noexcept nogil:
        """Return the count of a key."""
        return self.counts[self.find(key)]

    cpdef int add(self, int64_t key, int64_t amount) except -1 nogil:
        """Add to the count of a key."""
        cdef int64_t slot
        slot = self.find(key)
        if self.keys[slot] < 0:
            if 4 * self.used > 3 * self.mask:
                self.grow()
                slot = self.find(key)
            self.used += 1
            self.keys[slot] = key
        self.counts[slot] += amount
        return 0

    cdef int grow(self) except -1 with gil:
        """Make room by dropping keys with count 0, or by doubling the table."""
        cdef int64_t before
        keys = np.asarray(self.keys)
        counts = np.asarray(self.counts)
        self.used = int(np.count_nonzero(counts))
        before = self.mask
        if 2 * self.used > before:
            self.mask = 2 * before + 1
        self.keys = full(self.mask + 1, "i8", -1)
        self.counts = full(self.mask + 1, "i8")
        return self.enter_again(keys.data, counts.data, before)

    cdef int64_t enter_again(self, int64_t[::1] keys, int64_t[::1] counts,
                             int64_t mask) noexcept nogil:
        """Insert the keys of another table into the empty table."""
        cdef int64_t old, slot
        old = 0
        while old <= mask:
            if counts[old] > 0:
                slot = self.find(keys[old])
                self.keys[slot] = keys[old]
                self.counts[slot] = counts[old]
            old += 1
        return 0

    def items(self):
        """Return sorted keys and their counts, both int64 of shape (keys,)."""
        slots = np.flatnonzero(np.asarray(self.counts))
        keys = np.asarray(self.keys)[slots]
        order = np.argsort(keys)
        return keys[order], np.asarray(self.counts)[slots[order]]
