"""Memo: a cache of computed values with bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from fxframework.model.strings import StringPool

K = TypeVar("K")
V = TypeVar("V")

CACHED_VALUES: Final = 1 << 16
"""The most values that are cached."""
CACHED_BYTES: Final = 1 << 25
"""The most characters or bytes in these values."""


class Memo(dict[K, V]):
    """A dict that computes missing values, and is cleared when it grows too large.

    It holds at most ``limit`` values, of CACHED_BYTES in all. A ``limit`` of 0 means no bound, for
    keys that a capture's string pool keeps in memory anyway.
    """

    def __init__(self, make: Callable[[K], V], limit: int = CACHED_VALUES) -> None:
        super().__init__()
        self._make = make
        self._limit = limit
        self._size = 0

    def __missing__(self, key: K) -> V:
        value = self._make(key)
        if self._limit:
            self._size += _size(value)
            if len(self) >= self._limit or self._size > CACHED_BYTES:
                self.clear()
                self._size = _size(value)
        self[key] = value
        return value


def _size(value: Any) -> int:
    """Return the length of a text, or of all texts of a tuple."""
    if isinstance(value, str | bytes):
        return len(value)
    return sum(map(_size, value)) if isinstance(value, tuple) else 0


def strings_of(pool: StringPool) -> Memo[int, bytes]:
    """Return the strings of a pool by code, each made once; null is the empty string."""
    return Memo(lambda code: pool.bytes_of(code) if code >= 0 else b"", 0)
