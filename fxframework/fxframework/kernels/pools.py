"""The pool of distinct byte strings, which kernels fill."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.annotations import (
    Array,
    Fallible,
    View,
    c_source,
    external,
    flag,
    i32,
    i64,
    public,
    status,
    u8,
    u64,
    void,
    with_gil,
)
from fxframework.kernels.buffers import full, grown, room
from fxframework.kernels.hashing import FIRST, SECOND, SEED

__all__ = ["Pool"]

LOW64 = 0xFFFFFFFFFFFFFFFF
NOT_ASCII = -0x7F7F7F7F7F7F7F80
"""The highest bit of every byte of a word."""
NOWHERE = memoryview(bytes(8)).cast("q")
PREFETCH: c_source = """
#if defined(__GNUC__)
#define fxf_prefetch(element) __builtin_prefetch(&(element))
#else
#define fxf_prefetch(element) ((void)(element))
#endif
"""


@external
def fxf_prefetch(element: i64) -> void:
    """Have an element of an array loaded into the cache, without waiting for it."""


@final
class Pool:
    """Distinct byte strings, numbered in order of first use and padded to whole words.

    A kernel sets the source of strings once (``read_from``) and then interns them by position.
    Padding bytes in the source are ignored. ``words`` (int64) has the strings one after another,
    ``starts`` (int64, in words) and ``lengths`` (int64, in bytes) locate them, and ``valid``
    (uint8) is 1 for strings that are UTF-8; the first ``count`` elements are valid.

    An element of ``slots`` is -1, or the code of a string with the hash's bits above ``mask``.
    """

    seed: u64
    multiplier: u64
    other: u64
    count: i64
    filled: i64
    room: i64
    word_room: i64
    mask: i64
    words: Array[i64]
    starts: Array[i64]
    lengths: Array[i64]
    valid: Array[u8]
    hashes: Array[i32]
    slots: Array[i32]
    source: View[i64]

    def __init__(self) -> None:
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

    def read_from(self, words: memoryview) -> None:
        """Read strings from these words (int64, contiguous) from now on."""
        self.source = memoryview(words)

    @public
    def hash_of(self, start: i64, nbytes: i64) -> i64:
        """Return a 31-bit hash of the ``nbytes`` bytes at word ``start`` of the source."""
        mixed: u64 = ((self.seed ^ nbytes) * self.multiplier) & LOW64
        whole = nbytes >> 3
        at = start
        end = start + whole
        while at < end:
            mixed = ((mixed ^ (self.source[at] & LOW64)) * self.multiplier) & LOW64
            mixed = ((mixed ^ (mixed >> 29)) * self.other) & LOW64
            mixed ^= mixed >> 32
            at += 1
        rest = nbytes & 7
        if rest:
            tail: u64 = (self.source[at] & LOW64) & (LOW64 >> (64 - 8 * rest))
            mixed = ((mixed ^ tail) * self.multiplier) & LOW64
            mixed = ((mixed ^ (mixed >> 29)) * self.other) & LOW64
        return mixed >> 33

    def same(self, code: i64, start: i64, nbytes: i64) -> flag:
        """Return whether a string equals the ``nbytes`` bytes at word ``start`` of the source."""
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
            odd: u64 = (self.words[at + whole] ^ self.source[start + whole]) & LOW64
            return odd & (LOW64 >> (64 - 8 * rest)) == 0
        return True

    @public
    def find(self, start: i64, nbytes: i64) -> i64:
        """Return the code of the ``nbytes`` bytes at word ``start`` of the source; -1 if new."""
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

    @public
    def intern(self, start: i64, nbytes: i64) -> Fallible[i64]:
        """Return the code of the ``nbytes`` bytes at word ``start``, adding them if new."""
        return self.intern_hashed(start, nbytes, self.hash_of(start, nbytes))

    @public
    def announce(self, start: i64, nbytes: i64) -> i64:
        """Return the hash of a string that is soon looked for, and have its place loaded."""
        tag = self.hash_of(start, nbytes)
        fxf_prefetch(self.slots[tag & self.mask])
        return tag

    @public
    def intern_hashed(self, start: i64, nbytes: i64, tag: i64) -> Fallible[i64]:
        """Do the same with the hash of the bytes."""
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
            tail: u64 = (self.source[start + whole] & LOW64) & (LOW64 >> (64 - 8 * rest))
            # Nonnegative as int64, because the bits after the string are zero.
            self.words[at + whole] = tail
            every |= self.words[at + whole]
            whole += 1
        self.valid[code] = every & NOT_ASCII == 0 or self.is_utf8(at, nbytes)
        self.filled = at + whole
        self.count = code + 1
        return code

    @public
    @with_gil
    def reserve(self, strings: i64, words: i64) -> status:
        """Make room for more strings with a total of ``words`` words."""
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

    def enter_again(self) -> i64:
        """Enter all strings into the empty table of slots."""
        code = 0
        while code < self.count:
            tag: i64 = self.hashes[code]
            self.slots[self.free_slot(tag)] = (tag & ~self.mask) | code
            code += 1
        return 0

    def free_slot(self, tag: i64) -> i64:
        """Return the first free slot for strings of this hash."""
        step = 0
        while self.slots[(tag ^ step) & self.mask] >= 0:
            step += 1
        return (tag ^ step) & self.mask

    def byte(self, start: i64, index: i64) -> i64:
        """Return byte ``index`` of the string at word ``start`` of the pool."""
        return (self.words[start + (index >> 3)] >> (8 * (index & 7))) & 0xFF

    def is_utf8(self, start: i64, nbytes: i64) -> i64:
        """Return 1 if the ``nbytes`` bytes at word ``start`` of the pool are UTF-8, else 0."""
        at = 0
        while at < nbytes:
            lead = self.byte(start, at)
            at += 1
            if lead < 0x80:
                continue
            if lead < 0xC2 or lead > 0xF4:
                return 0
            more = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
            if more > nbytes - at:
                return 0
            # The first byte restricts the second; later ones may be any continuation byte.
            low = 0xA0 if lead == 0xE0 else 0x90 if lead == 0xF0 else 0x80
            high = 0x9F if lead == 0xED else 0x8F if lead == 0xF4 else 0xBF
            while more > 0:
                follow = self.byte(start, at)
                if follow < low or follow > high:
                    return 0
                low = 0x80
                high = 0xBF
                at += 1
                more -= 1
        return 1

    def enter(self, value: bytes) -> int:
        """Return the code of some bytes, adding them if new."""
        before = self.source
        self.source = memoryview(value + bytes(-len(value) % 8 or 8)).cast("q")
        code = self.intern(0, len(value))
        self.source = before
        return code

    @public
    @with_gil
    def enter_numbers(self, numbers: View[i64], codes: Array[i32]) -> status:
        """Add nonnegative int64 numbers as decimal digits, and store their codes in ``codes``."""
        before = self.source
        digits: Array[i64] = full(4, "i8")
        self.source = digits
        for row in range(len(numbers)):
            size = 1
            rest = numbers[row] // 10
            while rest:
                size += 1
                rest = rest // 10
            for place in range(3):
                digits[place] = 0
            rest = numbers[row]
            at = size
            while at > 0:
                at -= 1
                digits[at >> 3] |= (48 + rest % 10) << (8 * (at & 7))
                rest = rest // 10
            codes[row] = self.intern(0, size)
        self.source = before
        return 0

    def look_up(self, value: bytes) -> int:
        """Return the code of some bytes; -1 if they are not in the pool."""
        before = self.source
        self.source = memoryview(value + bytes(-len(value) % 8 or 8)).cast("q")
        code = self.find(0, len(value))
        self.source = before
        return code

    def bytes_of(self, code: int) -> bytes:
        """Return the bytes of a code. Raises IndexError for a code that is not in the pool."""
        if not 0 <= code < self.count:
            raise IndexError(f"string code {code} is not in the pool, which has {self.count}")
        start = self.starts[code]
        length = self.lengths[code]
        words = self.words[start : start + ((length + 7) >> 3)]
        return bytes(np.asarray(words).tobytes()[:length])

    def array(self, name: str) -> NDArray[np.int64]:
        """Return the filled part of ``words``, ``starts``, ``lengths`` or ``valid`` as an array."""
        used = self.filled if name == "words" else self.count
        return np.asarray(getattr(self, name))[:used]
