# cython: boundscheck=True, show_performance_hints=False
"""Numbering: any numbers of 64 bits, made dense."""

from libc.stdint cimport int64_t, uint64_t

import numpy as np


cdef class Numbering:
    """Gives each number that is entered the next of 0, 1, 2, …"""

    cdef readonly int64_t count
    cdef int64_t mask
    cdef int64_t[::1] numbers, slots

    def __init__(self):
        self.count = 0
        self._renew(64)

    cdef _renew(self, int64_t room):
        """Make room for so many numbers, and enter those that there are again."""
        numbers = np.empty(room, np.int64)
        if self.count:
            numbers[: self.count] = np.asarray(self.numbers)[: self.count]
        self.numbers = numbers
        self.slots = np.full(2 * room, -1, np.int64)
        self.mask = 2 * room - 1
        cdef int64_t dense
        for dense in range(self.count):
            self.slots[self.slot_of(self.numbers[dense])] = dense

    cdef int64_t slot_of(self, int64_t number) noexcept:
        """Return the slot of a number, or the free one where it belongs."""
        cdef uint64_t mixed = <uint64_t>number * <uint64_t>0x9E3779B97F4A7C15
        cdef int64_t slot = <int64_t>(mixed >> 20) & self.mask
        while self.slots[slot] >= 0 and self.numbers[self.slots[slot]] != number:
            slot = (slot + 1) & self.mask
        return slot

    def enter(self, const int64_t[::1] numbers):
        """Return the dense numbers of some numbers, int64 of the same shape; new ones get one."""
        out = np.empty(numbers.shape[0], np.int64)
        cdef int64_t[::1] dense = out
        cdef int64_t row, slot
        for row in range(numbers.shape[0]):
            slot = self.slot_of(numbers[row])
            if self.slots[slot] < 0:
                if self.count == self.numbers.shape[0]:
                    self._renew(2 * self.count)
                    slot = self.slot_of(numbers[row])
                self.slots[slot] = self.count
                self.numbers[self.count] = numbers[row]
                self.count += 1
            dense[row] = self.slots[slot]
        return out

    def find(self, const int64_t[::1] numbers):
        """Return the dense numbers of some numbers, int64 of the same shape; -1 for unknown ones."""
        out = np.empty(numbers.shape[0], np.int64)
        cdef int64_t[::1] dense = out
        cdef int64_t row
        for row in range(numbers.shape[0]):
            dense[row] = self.slots[self.slot_of(numbers[row])]
        return out
