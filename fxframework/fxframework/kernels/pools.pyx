# cython: boundscheck=True, wraparound=False, show_performance_hints=False
"""What is found by its hash: the pool of distinct byte strings, and maps from numbers to numbers.

Bounds are not checked in what searches or fills a table of slots: these are as many as a mask says,
which each index is cut to; and a code in a slot is one that was given, for which there is room.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t
from libc.string cimport memcmp, memcpy

from secrets import randbits
import numpy as np

from fxframework.kernels.buffers import full, grown, room

# Of hash functions, random so that no input provokes collisions; and every byte's highest bit.
cdef uint64_t SEED = randbits(64), FIRST = randbits(64) | 1, SECOND = randbits(64) | 1
cdef int64_t NOT_ASCII = -0x7F7F7F7F7F7F7F80LL

cdef enum:
    # Columns of ``PairMap.entry``.
    KEY, SECOND_KEY, VALUE, ENTRY
    SHORT = 16      # bytes of the longest text that ``codes_of`` remembers: two words
    PLACES = 256    # texts that it remembers
    TOGETHER = 64   # texts that it looks for together


@cython.final
cdef class Pool:
    """Distinct byte strings, numbered in order of first use and padded to whole words with zeros.

    ``words`` (int64) has the strings one after another, ``starts`` (int64, in words) and
    ``lengths`` (int64, in bytes) locate them, and ``valid`` (uint8) is 1 for strings that are
    UTF-8; the first ``count`` elements are valid.

    An element of ``slots`` is -1, or the code of a string with the hash's bits above ``mask``.
    """

    cdef readonly int64_t count, filled
    cdef int64_t mask
    cdef readonly int64_t[::1] words, starts, lengths
    cdef readonly uint8_t[::1] valid
    cdef int32_t[::1] hashes, slots
    cdef int32_t touched    # slots, which ``codes_of`` has asked memory for

    def __init__(self):
        self.count = 0
        self.filled = 0
        self.mask = 127
        self.words = room(256, "i8")
        self.starts = room(64, "i8")
        self.lengths = room(64, "i8")
        self.valid = room(64, "u1")
        self.hashes = room(64, "i4")
        self.slots = full(128, "i4", -1)

    cdef int64_t hash_of(self, const uint8_t* text, int64_t nbytes) noexcept nogil:
        """Return a 31-bit hash of some bytes."""
        cdef uint64_t mixed = (SEED ^ nbytes) * FIRST, word
        cdef int64_t left = nbytes
        while left > 0:
            word = 0
            memcpy(&word, text, 8 if left >= 8 else left)
            mixed = (mixed ^ word) * FIRST
            mixed = (mixed ^ (mixed >> 29)) * SECOND
            mixed ^= mixed >> 32
            text += 8
            left -= 8
        return mixed >> 33

    @cython.boundscheck(False)
    cdef int64_t find(self, int64_t tag, const uint8_t* text, int64_t nbytes) noexcept nogil:
        """Return the code of the bytes with this hash; -1 if they are not in the pool."""
        cdef int64_t step = 0, entry, code
        # The slots of one line of the cache before any other.
        while True:
            entry = self.slots[(tag ^ step) & self.mask]
            if entry < 0:
                return -1
            code = entry & self.mask
            if (entry ^ tag) <= self.mask and self.lengths[code] == nbytes and (
                    memcmp(&self.words[self.starts[code]], text, nbytes) == 0):
                return code
            step += 1

    @cython.boundscheck(False)  # there is room for what is added
    cdef int64_t intern(self, int64_t tag, const uint8_t* text, int64_t nbytes) except -1 nogil:
        """Return the code of the bytes with this hash, adding them if new."""
        cdef int64_t code = self.find(tag, text, nbytes), at = self.filled, every = 0
        cdef int64_t whole = (nbytes + 7) >> 3, index
        if code >= 0:
            return code
        # One word at least, so that an empty string has a place too.
        if self.count == self.starts.shape[0] or at + whole + 1 > self.words.shape[0]:
            self.reserve(at + whole + 1)
        code = self.count
        self.hashes[code] = tag
        self.slots[self.free_slot(tag)] = (tag & ~self.mask) | code
        self.starts[code] = at
        self.lengths[code] = nbytes
        if whole:
            self.words[at + whole - 1] = 0
            memcpy(&self.words[at], text, nbytes)
        for index in range(whole):
            every |= self.words[at + index]
        self.valid[code] = every & NOT_ASCII == 0 or is_utf8(<const uint8_t*>&self.words[at], nbytes)
        self.filled = at + whole
        self.count = code + 1
        return code

    cdef int reserve(self, int64_t words) except -1 with gil:
        """Make room for a string more, and for so many words."""
        cdef int64_t size = self.starts.shape[0], code
        if words > self.words.shape[0]:
            self.words = grown(self.words, max(words, 3 * self.words.shape[0] // 2), self.filled)
        if self.count < size:
            return 0
        size += size >> 1
        if size > 1 << 29:
            raise MemoryError("a string pool is limited to 536,870,912 strings")
        self.starts = grown(self.starts, size, self.count)
        self.lengths = grown(self.lengths, size, self.count)
        self.valid = grown(self.valid, size, self.count)
        self.hashes = grown(self.hashes, size, self.count)
        while 4 * size > 3 * (self.mask + 1):
            self.mask = 2 * self.mask + 1
        self.slots = full(self.mask + 1, "i4", -1)
        for code in range(self.count):
            self.slots[self.free_slot(self.hashes[code])] = (self.hashes[code] & ~self.mask) | code
        return 0

    @cython.boundscheck(False)
    cdef int64_t free_slot(self, int64_t tag) noexcept nogil:
        """Return the first free slot for strings of this hash."""
        cdef int64_t step = 0
        while self.slots[(tag ^ step) & self.mask] >= 0:
            step += 1
        return (tag ^ step) & self.mask

    def enter(self, value):
        """Return the code of some bytes, adding them if new."""
        cdef const char* text = value
        cdef int64_t tag = self.hash_of(<const uint8_t*>text, len(value))
        return self.intern(tag, <const uint8_t*>text, len(value))

    def look_up(self, value):
        """Return the code of some bytes; -1 if they are not in the pool."""
        cdef const char* text = value
        cdef const uint8_t* octets = <const uint8_t*>text
        return self.find(self.hash_of(octets, len(value)), octets, len(value))

    def bytes_of(self, int64_t code):
        """Return the bytes of a code. Raises IndexError for a code that is not in the pool."""
        if not 0 <= code < self.count:
            raise IndexError(f"string code {code} is not in the pool, which has {self.count}")
        return (<const char*>&self.words[self.starts[code]])[: self.lengths[code]]

    def array(self, name):
        """Return the filled part of ``words``, ``starts``, ``lengths`` or ``valid`` as an array."""
        used = self.filled if name == "words" else self.count
        return np.asarray(getattr(self, name))[:used]


@cython.final
cdef class PairMap:
    """A map from pairs of int64 to nonnegative int64; -1 means that a key is missing.

    Single numbers are pairs with 0: ``enter`` gives each new one the next of 0, 1, 2, …
    """

    def __init__(self, size=16):
        self.make(1 << max(4, (2 * size - 1).bit_length()))

    cdef int make(self, int64_t slots) except -1:
        """Have an empty table of so many slots, a power of two."""
        self.entry = full(ENTRY * slots, "i8", -1).cast("b").cast("q", (slots, ENTRY))
        self.mask = slots - 1
        self.count = 0
        return 0

    @cython.boundscheck(False)
    cdef int64_t slot_of(self, int64_t first, int64_t second) noexcept nogil:
        """Return the slot of a key, or the free slot for it."""
        cdef uint64_t mixed = (SEED ^ (<uint64_t>first)) * FIRST
        cdef int64_t slot
        mixed = (mixed ^ (mixed >> 29)) * SECOND
        mixed = (mixed ^ (mixed >> 32) ^ (<uint64_t>second)) * FIRST
        mixed = (mixed ^ (mixed >> 29)) * SECOND
        slot = (mixed >> 32) & self.mask
        while self.entry[slot, VALUE] >= 0 and (
                self.entry[slot, KEY] != first or self.entry[slot, SECOND_KEY] != second):
            slot = (slot + 1) & self.mask
        return slot

    @cython.boundscheck(False)
    cpdef int64_t get(self, int64_t first, int64_t second) noexcept nogil:
        """Return the value of a key; -1 if it is missing."""
        return self.entry[self.slot_of(first, second), VALUE]

    @cython.boundscheck(False)
    cpdef int put(self, int64_t first, int64_t second, int64_t value) except -1 nogil:
        """Set the value of a key, 0 or more."""
        cdef int64_t slot = self.slot_of(first, second)
        if self.entry[slot, VALUE] < 0:
            if 2 * self.count > self.mask:
                self.grow()
                slot = self.slot_of(first, second)
            self.count += 1
            self.entry[slot, KEY], self.entry[slot, SECOND_KEY] = first, second
        self.entry[slot, VALUE] = value
        return 0

    cpdef int64_t number(self, int64_t first, int64_t second) except? -9 nogil:
        """Return the number of a key; new keys are numbered in order of first use."""
        cdef int64_t found = self.get(first, second)
        if found < 0:
            found = self.count
            self.put(first, second, found)
        return found

    cdef int grow(self) except -1 with gil:
        """Make room for twice as many keys."""
        cdef int64_t[:, ::1] before = self.entry
        cdef int64_t slot
        self.make(2 * before.shape[0])
        for slot in range(before.shape[0]):
            if before[slot, VALUE] >= 0:
                self.put(before[slot, KEY], before[slot, SECOND_KEY], before[slot, VALUE])
        return 0

    def __len__(self):
        return self.count

    def enter(self, const int64_t[::1] numbers):
        """Return the dense numbers of some numbers, int64 of the same shape; new ones get one."""
        return self.numbers_of(numbers, True)

    def find(self, const int64_t[::1] numbers):
        """Return the dense numbers of some numbers, int64 of the same shape; -1 for unknown ones."""
        return self.numbers_of(numbers, False)

    cdef object numbers_of(self, const int64_t[::1] numbers, bint enters):
        """Return the dense numbers of some numbers; unknown ones get one if it ``enters`` them."""
        out = np.empty(numbers.shape[0], np.int64)
        cdef int64_t[::1] dense = out
        cdef int64_t row
        for row in range(numbers.shape[0]):
            dense[row] = self.number(numbers[row], 0) if enters else self.get(numbers[row], 0)
        return out


# --- Many at a time ----------------------------------------------------------------------------

cdef const uint8_t* EMPTY = <const uint8_t*>b""

cdef struct Remembered:
    # A text of up to two words, and the last row that has it; a length of -1 is none.
    uint64_t low, high
    int64_t length, row


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
    out = np.full(starts.shape[0], -1, np.int32)
    cdef int32_t[::1] codes = out
    cdef int64_t row, first, behind, start, length
    cdef uint64_t low, high
    cdef int64_t[TOGETHER] tags
    cdef Remembered[PLACES] memory
    cdef Remembered* place
    for row in range(PLACES):
        memory[row].length = -1
    for first in range(0, starts.shape[0], TOGETHER):
        behind = min(first + TOGETHER, starts.shape[0])
        for row in range(first, behind):
            start, length = starts[row], lengths[row]
            if start < 0 or length < 0 or length > data.shape[0] - start:
                raise IndexError(f"bytes {start} to {start + length} of {data.shape[0]}")
            # Names and short values are few and come again and again: most need not ask the pool.
            if length <= SHORT and start + SHORT <= data.shape[0]:
                low, high = word_at(data, start, length), word_at(data, start + 8, length - 8)
                place = &memory[((low ^ high * SECOND) * FIRST ^ length * SECOND) >> 56]
                if place.length == length and place.low == low and place.high == high:
                    codes[row] = codes[place.row]
                place.low, place.high, place.length, place.row = low, high, length, row
            if codes[row] < 0:
                tags[row - first] = pool.hash_of(&data[start] if length else EMPTY, length)
        # Slots that are asked for at once come at once: else each text would wait for its own.
        for row in range(first, behind):
            if codes[row] < 0:
                pool.touched ^= pool.slots[tags[row - first] & pool.mask]
        for row in range(first, behind):
            start, length = starts[row], lengths[row]
            if codes[row] < 0:
                codes[row] = pool.intern(tags[row - first], &data[start] if length else EMPTY, length)
    return out
