# distutils: extra_compile_args = -O2
# cython: boundscheck=True, wraparound=False, show_performance_hints=False
"""Dense numbers: the texts of a file, entered into the pool of strings, and any numbers of 64 bits."""

from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t
from libc.string cimport memcpy

from fxframework.kernels.pools cimport Pool

import numpy as np

from fxframework.kernels import hashing

cdef enum:
    SHORT = 16  # bytes of the longest text that is remembered: two words
    PLACES = 256

cdef uint64_t FIRST = hashing.FIRST, SECOND = hashing.SECOND


cdef struct Remembered:
    # A text of up to two words, and its code; a length of -1 is none.
    uint64_t low
    uint64_t high
    int64_t length
    int32_t code


cdef inline uint64_t word_at(const uint8_t[::1] data, int64_t start, int64_t length) noexcept:
    """Return the first ``length`` bytes (at most 8) of the 8 bytes at ``start``."""
    cdef uint64_t word
    if length <= 0:
        return 0
    memcpy(&word, &data[start], 8)
    return word if length >= 8 else word & ((<uint64_t>1 << 8 * length) - 1)


def codes_of(Pool pool, const uint8_t[::1] data, const int64_t[::1] starts,
             const int64_t[::1] lengths):
    """Return the codes of stretches of ``data``, int32 of their shape, in the order of entering.

    Places and lengths are int64. A stretch that is not within the data raises IndexError.
    """
    out = np.empty(starts.shape[0], np.int32)
    cdef int32_t[::1] codes = out
    cdef int64_t row, start, length
    cdef uint64_t low, high
    cdef Remembered[PLACES] memory
    cdef Remembered* place
    for row in range(PLACES):
        memory[row].length = -1
    longest = np.max(lengths, initial=0)
    words = np.zeros((longest + 7) // 8 + 1, np.int64)
    cdef int64_t[::1] scratch = words
    pool.read_from(words.data)
    for row in range(starts.shape[0]):
        start, length = starts[row], lengths[row]
        if start < 0 or length < 0 or length > data.shape[0] - start:
            raise IndexError(f"bytes {start} to {start + length} of {data.shape[0]}")
        # Names and short values are few and come again and again: most need not ask the pool.
        place = NULL
        if length <= SHORT and start + SHORT <= data.shape[0]:
            low, high = word_at(data, start, length), word_at(data, start + 8, length - 8)
            place = &memory[((low ^ high * SECOND) * FIRST ^ length * SECOND) >> 56]
            if place.length == length and place.low == low and place.high == high:
                codes[row] = place.code
                continue
        if length:
            memcpy(&scratch[0], &data[start], length)  # safe: checked, and the longest fits
        codes[row] = <int32_t>pool.intern(0, length)
        if place != NULL:
            place.low, place.high, place.length, place.code = low, high, length, codes[row]
    return out


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
