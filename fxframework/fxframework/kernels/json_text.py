"""JSON text for kernels: where strings and values of a line end, and hashes of its bytes."""

from __future__ import annotations

from typing import final

from fxframework.kernels.annotations import Bytes, flag, i64, u64
from fxframework.kernels.hashing import FIRST, SECOND, SEED

__all__ = ["JsonText"]

LOW64 = 0xFFFFFFFFFFFFFFFF
NEWLINE = 0x0A
QUOTE = 0x22
COMMA = 0x2C
POINT = 0x2E
COLON = 0x3A
UPPER_E = 0x45
OPEN_LIST = 0x5B
BACKSLASH = 0x5C
CLOSE_LIST = 0x5D
LOWER_E = 0x65
LOWER_F = 0x66
LOWER_N = 0x6E
LOWER_T = 0x74
OPEN_OBJECT = 0x7B
CLOSE_OBJECT = 0x7D


@final
class JsonText:
    """Lines of JSON in ``data``, which must end with a newline; no method reads past a newline.

    ``mixed`` is the hash so far of what ``take`` was called for.
    """

    seed: u64
    multiplier: u64
    other: u64
    data: Bytes
    mixed: u64

    def __init__(self) -> None:
        self.seed = SEED
        self.multiplier = FIRST
        self.other = SECOND
        self.data = memoryview(b"\n")
        self.mixed = 0

    def read_from(self, data: bytes) -> None:
        """Set the lines."""
        self.data = memoryview(data)

    def begin(self) -> i64:
        """Begin a new hash."""
        self.mixed = self.seed
        return 0

    def number(self, value: u64) -> i64:
        """Mix a number into the hash."""
        mixed: u64 = ((self.mixed ^ value) * self.multiplier) & LOW64
        mixed = ((mixed ^ (mixed >> 29)) * self.other) & LOW64
        self.mixed = mixed ^ (mixed >> 32)
        return 0

    def key(self, start: i64, end: i64) -> i64:
        """Return the bytes of a short key between its quotes as a number; 0 for a long one."""
        if end - start > 8 + 1:
            return 0
        name = 0
        at = start + 1
        while at < end - 1 and self.data[at] != NEWLINE:
            name = (name << 8) | self.data[at]
            at += 1
        return name

    def string_end(self, at: i64) -> i64:
        """Return the byte after a string that begins at ``at``; -1 if it does not end."""
        at += 1
        while True:
            byte = self.data[at]
            if byte == QUOTE:
                return at + 1
            if byte == NEWLINE:
                return -1
            at += 1
            if byte == BACKSLASH:
                if self.data[at] == NEWLINE:
                    return -1
                at += 1

    def literal_end(self, at: i64) -> i64:
        """Return the byte after a number, true, false or null."""
        while True:
            byte = self.data[at]
            if byte in (COMMA, CLOSE_OBJECT, CLOSE_LIST, NEWLINE):
                return at
            at += 1

    def is_whole(self, at: i64, end: i64) -> flag:
        """Return whether a literal is an integer or a bool."""
        if self.data[at] in (LOWER_T, LOWER_F):
            return True
        if self.data[at] == LOWER_N:
            return False
        while at < end:
            if self.data[at] in (POINT, LOWER_E, UPPER_E):
                return False
            at += 1
        return True

    def value_end(self, at: i64) -> i64:
        """Return the byte after a value of any kind; -1 if it does not end in its line."""
        depth = 0
        while True:
            byte = self.data[at]
            if byte == QUOTE:
                at = self.string_end(at)
                if at < 0:
                    return -1
            elif byte in (OPEN_OBJECT, OPEN_LIST):
                depth += 1
                at += 1
            elif byte in (CLOSE_OBJECT, CLOSE_LIST):
                depth -= 1
                at += 1
            elif byte == NEWLINE:
                return -1
            elif byte in (COMMA, COLON):
                at += 1
            else:
                at = self.literal_end(at + 1)
            if depth <= 0:
                return at

    def take(self, at: i64, end: i64) -> i64:
        """Mix the bytes of a token into the hash."""
        mixed: u64 = self.mixed
        size = end - at
        word: u64 = 0
        while at + 8 <= end:
            word = (
                self.data[at]
                | self.data[at + 1] << 8
                | self.data[at + 2] << 16
                | self.data[at + 3] << 24
            )
            high: u64 = (
                self.data[at + 4]
                | self.data[at + 5] << 8
                | self.data[at + 6] << 16
                | self.data[at + 7] << 24
            )
            word |= high << 32
            mixed = ((mixed ^ word) * self.multiplier) & LOW64
            mixed = ((mixed ^ (mixed >> 29)) * self.other) & LOW64
            mixed ^= mixed >> 32
            at += 8
        word = 0
        while at < end:
            word = (word << 8) | self.data[at]
            at += 1
        mixed = ((mixed ^ word ^ (size << 56)) * self.multiplier) & LOW64
        mixed = ((mixed ^ (mixed >> 29)) * self.other) & LOW64
        self.mixed = mixed ^ (mixed >> 32)
        return 0
