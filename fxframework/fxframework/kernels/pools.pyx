# cython: boundscheck=True, wraparound=False, show_performance_hints=False
"""What is found by its hash: the pool of distinct byte strings, and maps from numbers to numbers.

Bounds are not checked in what searches or fills a table of slots: these are as many as a mask says,
which each index is cut to; and a code in a slot is one that was given, for which there is room.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t
from libc.string cimport memcpy

from fxframework.kernels.utf8 cimport is_utf8

import numpy as np

from fxframework.kernels.buffers import full, grown, room
from fxframework.kernels.hashing import FIRST, SECOND, SEED

cdef uint64_t LOW64 = 0xFFFFFFFFFFFFFFFFULL
# The highest bit of every byte of a word.
cdef int64_t NOT_ASCII = -0x7F7F7F7F7F7F7F80LL
NOWHERE = memoryview(bytes(8)).cast("q")


@cython.final
cdef class Pool:
    """Distinct byte strings, numbered in order of first use and padded to whole words.

    A kernel sets the source of strings once (``read_from``) and then interns them by position.
    Padding bytes in the source are ignored. ``words`` (int64) has the strings one after another,
    ``starts`` (int64, in words) and ``lengths`` (int64, in bytes) locate them, and ``valid``
    (uint8) is 1 for strings that are UTF-8; the first ``count`` elements are valid.

    An element of ``slots`` is -1, or the code of a string with the hash's bits above ``mask``.
    """

    def __init__(self):
        self.seed = SEED
        self.multiplier = FIRST
        self.other = SECOND
        self.count = 0
        self.filled = 0
        self.room = 64
        self.word_room = 256
        self.mask = 127
        self.words = room(256, "i8")
        self.starts = room(64, "i8")
        self.lengths = room(64, "i8")
        self.valid = room(64, "u1")
        self.hashes = room(64, "i4")
        self.slots = full(128, "i4", -1)
        self.source = NOWHERE

    def read_from(self, words):
        """Read strings from these words (int64, contiguous) from now on."""
        self.source = words

    cdef int check(self, int64_t start, int64_t nbytes) except -1 nogil:
        """Raise IndexError for a string that is not within the source."""
        if start < 0 or nbytes < 0 or start > self.source.shape[0] or (
                nbytes > 8 * (self.source.shape[0] - start)):
            with gil:
                raise IndexError(f"{nbytes} bytes at word {start} of {self.source.shape[0]}")
        return 0

    @cython.boundscheck(False)  # who asks has compared the string with the source
    cdef int64_t hash_of(self, int64_t start, int64_t nbytes) noexcept nogil:
        """Return a 31-bit hash of the ``nbytes`` bytes at word ``start`` of the source."""
        cdef uint64_t mixed, tail
        cdef int64_t whole, at, end, rest
        mixed = (self.seed ^ nbytes) * self.multiplier
        whole = nbytes >> 3
        at = start
        end = start + whole
        while at < end:
            mixed = (mixed ^ (<uint64_t>self.source[at])) * self.multiplier
            mixed = (mixed ^ (mixed >> 29)) * self.other
            mixed ^= mixed >> 32
            at += 1
        rest = nbytes & 7
        if rest:
            tail = (<uint64_t>self.source[at]) & (LOW64 >> (64 - 8 * rest))
            mixed = (mixed ^ tail) * self.multiplier
            mixed = (mixed ^ (mixed >> 29)) * self.other
        return mixed >> 33

    @cython.boundscheck(False)  # who asks has compared the string with the source
    cdef bint same(self, int64_t code, int64_t start, int64_t nbytes) noexcept nogil:
        """Return whether a string equals the ``nbytes`` bytes at word ``start`` of the source."""
        cdef int64_t at, whole, index, rest
        cdef uint64_t odd
        if self.lengths[code] != nbytes:
            return False
        at = self.starts[code]
        whole = nbytes >> 3
        index = 0
        while index < whole:
            if self.words[at + index] != self.source[start + index]:
                return False
            index += 1
        rest = nbytes & 7
        if rest:
            odd = <uint64_t>(self.words[at + whole] ^ self.source[start + whole])
            return odd & (LOW64 >> (64 - 8 * rest)) == 0
        return True

    @cython.boundscheck(False)
    cpdef int64_t find(self, int64_t start, int64_t nbytes) except? -9 nogil:
        """Return the code of the ``nbytes`` bytes at word ``start`` of the source; -1 if new."""
        cdef int64_t tag, step, entry, code
        self.check(start, nbytes)
        tag = self.hash_of(start, nbytes)
        step = 0
        while True:
            entry = self.slots[(tag ^ step) & self.mask]
            if entry < 0:
                return -1
            code = entry & self.mask
            if (entry ^ tag) <= self.mask and self.same(code, start, nbytes):
                return code
            step += 1

    @cython.boundscheck(False)  # the string was checked, and there is room for what is added
    cpdef int64_t intern(self, int64_t start, int64_t nbytes) except? -9 nogil:
        """Return the code of the ``nbytes`` bytes at word ``start``, adding them if new."""
        cdef int64_t tag, step, slot, entry, code, whole, rest, at, every, index, word
        cdef uint64_t tail
        self.check(start, nbytes)
        tag = self.hash_of(start, nbytes)
        # The slots of one line of the cache before any other.
        step = 0
        while True:
            slot = (tag ^ step) & self.mask
            entry = self.slots[slot]
            if entry < 0:
                break
            code = entry & self.mask
            if (entry ^ tag) <= self.mask and self.same(code, start, nbytes):
                return code
            step += 1
        whole = nbytes >> 3
        rest = nbytes & 7
        if self.count == self.room or self.filled + whole + 1 > self.word_room:
            self.reserve(1, whole + 1)
            slot = self.free_slot(tag)
        code = self.count
        at = self.filled
        self.hashes[code] = tag
        self.slots[slot] = (tag & ~self.mask) | code
        self.starts[code] = at
        self.lengths[code] = nbytes
        every = 0
        index = 0
        while index < whole:
            word = self.source[start + index]
            self.words[at + index] = word
            every |= word
            index += 1
        if rest:
            tail = (<uint64_t>self.source[start + whole]) & (LOW64 >> (64 - 8 * rest))
            # Nonnegative as int64, because the bits after the string are zero.
            self.words[at + whole] = tail
            every |= self.words[at + whole]
            whole += 1
        self.valid[code] = every & NOT_ASCII == 0 or is_utf8(<const uint8_t*>&self.words[at], nbytes)
        self.filled = at + whole
        self.count = code + 1
        return code

    cpdef int reserve(self, int64_t strings, int64_t words) except -1 with gil:
        """Make room for more strings with a total of ``words`` words."""
        cdef int64_t slots
        if self.count + strings > self.room:
            self.room = max(self.room + (self.room >> 1), self.count + strings)
            if self.room > 1 << 29:
                raise MemoryError("a string pool is limited to 536,870,912 strings")
            self.starts = grown(self.starts, self.room, self.count)
            self.lengths = grown(self.lengths, self.room, self.count)
            self.valid = grown(self.valid, self.room, self.count)
            self.hashes = grown(self.hashes, self.room, self.count)
        if self.filled + words > self.word_room:
            self.word_room = max(self.word_room + (self.word_room >> 1), self.filled + words)
            self.words = grown(self.words, self.word_room, self.filled)
        if 4 * self.room > 3 * (self.mask + 1):
            slots = self.mask + 1
            while 3 * slots < 4 * self.room:
                slots *= 2
            self.mask = slots - 1
            self.slots = full(slots, "i4", -1)
            self.enter_again()
        return 0

    @cython.boundscheck(False)
    cdef int64_t enter_again(self) noexcept nogil:
        """Enter all strings into the empty table of slots."""
        cdef int64_t code, tag
        code = 0
        while code < self.count:
            tag = self.hashes[code]
            self.slots[self.free_slot(tag)] = (tag & ~self.mask) | code
            code += 1
        return 0

    @cython.boundscheck(False)
    cdef int64_t free_slot(self, int64_t tag) noexcept nogil:
        """Return the first free slot for strings of this hash."""
        cdef int64_t step
        step = 0
        while self.slots[(tag ^ step) & self.mask] >= 0:
            step += 1
        return (tag ^ step) & self.mask

    def enter(self, value):
        """Return the code of some bytes, adding them if new."""
        before = self.source
        self.source = memoryview(value + bytes(-len(value) % 8 or 8)).cast("q")
        code = self.intern(0, len(value))
        self.source = before
        return code

    def look_up(self, value):
        """Return the code of some bytes; -1 if they are not in the pool."""
        before = self.source
        self.source = memoryview(value + bytes(-len(value) % 8 or 8)).cast("q")
        code = self.find(0, len(value))
        self.source = before
        return code

    def bytes_of(self, code):
        """Return the bytes of a code. Raises IndexError for a code that is not in the pool."""
        if not 0 <= code < self.count:
            raise IndexError(f"string code {code} is not in the pool, which has {self.count}")
        start = self.starts[code]
        length = self.lengths[code]
        words = self.words[start : start + ((length + 7) >> 3)]
        return bytes(np.asarray(words).tobytes()[:length])

    def array(self, name):
        """Return the filled part of ``words``, ``starts``, ``lengths`` or ``valid`` as an array."""
        used = self.filled if name == "words" else self.count
        return np.asarray(getattr(self, name))[:used]


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

    @cython.boundscheck(False)
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

    @cython.boundscheck(False)
    cpdef int64_t get(self, int64_t first, int64_t second) noexcept nogil:
        """Return the value of a key; -1 if it is missing."""
        return self.value[self.find(first, second)]

    @cython.boundscheck(False)
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

    @cython.boundscheck(False)
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

    @cython.boundscheck(False)  # the columns of a map have equal lengths
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

    @cython.boundscheck(False)
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

    @cython.boundscheck(False)
    cpdef int64_t get(self, int64_t key) noexcept nogil:
        """Return the count of a key."""
        return self.counts[self.find(key)]

    @cython.boundscheck(False)
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

    @cython.boundscheck(False)  # the columns of a map have equal lengths
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


# --- Many at a time ----------------------------------------------------------------------------

cdef enum:
    SHORT = 16  # bytes of the longest text that is remembered: two words
    PLACES = 256

cdef uint64_t FIRST_FACTOR = FIRST, SECOND_FACTOR = SECOND


cdef struct Remembered:
    # A text of up to two words, and its code; a length of -1 is none.
    uint64_t low
    uint64_t high
    int64_t length
    int32_t code


@cython.boundscheck(False)  # ``codes_of`` asks where eight bytes are in the data
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
            place = &memory[((low ^ high * SECOND_FACTOR) * FIRST_FACTOR ^ length * SECOND_FACTOR) >> 56]
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
