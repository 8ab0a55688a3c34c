"""Memo: what is made of keys once, as long as it does not take too much memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["Memo"]

K = TypeVar("K")
V = TypeVar("V")

REMEMBERED: Final = 1 << 16
"""Values that are kept."""
REMEMBERED_BYTES: Final = 1 << 25
"""Characters of texts in them that are kept."""


class Memo(dict[K, V]):
    """What is made of keys, made when first asked for; all is forgotten once it takes too much.

    It holds at most REMEMBERED values, of REMEMBERED_BYTES in all: for ``limit`` 0 any number, for
    keys that a capture's string pool holds in any case.
    """

    def __init__(self, make: Callable[[K], V], limit: int = REMEMBERED) -> None:
        super().__init__()
        self._make = make
        self._limit = limit
        self._size = 0

    def __missing__(self, key: K) -> V:
        value = self._make(key)
        if self._limit:
            self._size += _size(value)
            if len(self) >= self._limit or self._size > REMEMBERED_BYTES:
                self.clear()
                self._size = _size(value)
        self[key] = value
        return value


def _size(value: Any) -> int:
    """Characters or bytes of a text, or of the texts of a tuple."""
    if isinstance(value, str | bytes):
        return len(value)
    return sum(map(_size, value)) if isinstance(value, tuple) else 0
