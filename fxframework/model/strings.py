"""Strings: the pool that all tables of a capture share, and text columns with bytes of their own.

A pool keeps each distinct byte string once, padded to whole words, so that kernels compare and
copy words. Its arrays are the kernel's state as well as the pool's, passed as ``PoolArrays``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from fxframework.io import arena
from fxframework.io.jit import kernel
from fxframework.kernels.buffers import view
from fxframework.kernels.columns import copy_stretches
from fxframework.kernels.native import is_compiled
from fxframework.kernels.pools import Pool

__all__ = ["PoolArrays", "StringPool", "TextColumn", "intern_words", "rehash", "utf8_valid"]

EMPTY = -1
HASH_MASK = (1 << 62) - 1


class PoolArrays(NamedTuple):
    """The arrays behind a pool, as kernels take them."""

    words: NDArray[np.int64]
    """Padded bytes of all strings, one after another."""
    starts: NDArray[np.int64]
    """Index of each string's first word."""
    lengths: NDArray[np.int64]
    """Bytes in each string, padding not counted."""
    slots: NDArray[np.int64]
    """Open-addressed hash table of codes; -1 is free; its length is a power of two."""
    used: NDArray[np.int64]
    """[strings, words] in use."""


@kernel
def hash_words(words, start, nbytes):  # type: ignore[no-untyped-def]
    """Hash of the ``nbytes`` bytes at word ``start``; the padding bits do not count."""
    value = nbytes * 1099511628211 + 1469598103934665603
    whole = nbytes >> 3
    for index in range(start, start + whole):
        value = ((value ^ (words[index] & 0x3FFFFFFFFFFFFFFF)) * 1099511628211) & HASH_MASK
        value ^= value >> 29
        value ^= (words[index] >> 62) & 3
    rest = nbytes & 7
    if rest:
        tail = words[start + whole] & ((1 << (8 * rest)) - 1)
        value = ((value ^ tail) * 1099511628211) & HASH_MASK
        value ^= value >> 29
    return value & HASH_MASK


@kernel
def intern_words(words, start, nbytes, pool):  # type: ignore[no-untyped-def]
    """Code of the ``nbytes`` bytes at word ``start`` of ``words``, entered where it is new.

    The caller makes sure that there is room for one more string and its words.
    """
    mask = len(pool.slots) - 1
    slot = hash_words(words, start, nbytes) & mask
    whole = nbytes >> 3
    rest = nbytes & 7
    tail_mask = (1 << (8 * rest)) - 1
    while True:
        code = pool.slots[slot]
        if code < 0:
            break
        if pool.lengths[code] == nbytes:
            at = pool.starts[code]
            same = True
            for index in range(whole):
                if pool.words[at + index] != words[start + index]:
                    same = False
                    break
            if same and rest:
                same = pool.words[at + whole] == words[start + whole] & tail_mask
            if same:
                return code
        slot = (slot + 1) & mask
    code = pool.used[0]
    at = pool.used[1]
    pool.slots[slot] = code
    pool.starts[code] = at
    pool.lengths[code] = nbytes
    for index in range(whole):
        pool.words[at + index] = words[start + index]
    if rest:
        pool.words[at + whole] = words[start + whole] & tail_mask
        at += 1
    pool.used[0] = code + 1
    pool.used[1] = at + whole
    return code


@kernel
def rehash(pool):  # type: ignore[no-untyped-def]
    """Enter every string of the pool into its (emptied) hash table."""
    mask = len(pool.slots) - 1
    for code in range(pool.used[0]):
        slot = hash_words(pool.words, pool.starts[code], pool.lengths[code]) & mask
        while pool.slots[slot] >= 0:
            slot = (slot + 1) & mask
        pool.slots[slot] = code


@kernel
def utf8_valid(data, start, nbytes):  # type: ignore[no-untyped-def]
    """Whether the bytes from ``start`` are UTF-8."""
    every = 0
    for at in range(start, start + nbytes):
        every |= data[at]
    if every < 0x80:
        return True
    at = start
    end = start + nbytes
    while at < end:
        byte = data[at]
        at += 1
        if byte < 0x80:
            continue
        if 0xC2 <= byte <= 0xDF:
            more = 1
        elif 0xE0 <= byte <= 0xEF:
            more = 2
        elif 0xF0 <= byte <= 0xF4:
            more = 3
        else:
            return False
        if more > end - at:
            return False
        # The first byte decides what the second may be; later ones may be any.
        low = 0x80
        high = 0xBF
        if byte == 0xE0:
            low = 0xA0
        elif byte == 0xED:
            high = 0x9F
        elif byte == 0xF0:
            low = 0x90
        elif byte == 0xF4:
            high = 0x8F
        for _ in range(more):
            if data[at] < low or data[at] > high:
                return False
            low = 0x80
            high = 0xBF
            at += 1
    return True


class StringPool(Sequence[str]):
    """The distinct strings of a capture; a ``code`` column indexes it, -1 being null.

    Strings are bytes first (``bytes_of``); as text, what is not UTF-8 becomes U+FFFD. Code 0 is
    always the empty string.
    """

    def __init__(self) -> None:
        self.arrays = PoolArrays(
            words=np.zeros(256, np.int64),
            starts=np.zeros(64, np.int64),
            lengths=np.zeros(64, np.int64),
            slots=np.full(128, EMPTY, np.int64),
            used=np.zeros(2, np.int64),
        )
        self._pool: Pool | None = None
        self._text: list[str] = []
        self._codes: dict[bytes, int] = {}
        self.intern(b"")

    @property
    def pool(self) -> Pool:
        """The pool that kernels fill; who asks for it gives up ``arrays`` and ``reserve``."""
        if self._pool is None:
            pool = Pool()
            for code in range(len(self)):
                pool.enter(self.bytes_of(code))
            self._pool = pool
        return self._pool

    def reserve(self, strings: int, words: int) -> PoolArrays:
        """Make room for that many more strings and words; gives the arrays to work on."""
        arrays = self.arrays
        count, filled = (int(value) for value in arrays.used)
        if count + strings > arrays.starts.size:
            size = max(count + strings, 2 * arrays.starts.size)
            arrays = arrays._replace(
                starts=np.resize(arrays.starts, size), lengths=np.resize(arrays.lengths, size)
            )
        if filled + words > arrays.words.size:
            size = max(filled + words, 2 * arrays.words.size)
            grown = np.zeros(size, np.int64)
            grown[:filled] = arrays.words[:filled]
            arrays = arrays._replace(words=grown)
        if 2 * (count + strings) > arrays.slots.size:
            size = 1 << (4 * (count + strings) - 1).bit_length()
            arrays = arrays._replace(slots=np.full(size, EMPTY, np.int64))
            rehash.for_size(64 * count)(arrays)
        self.arrays = arrays
        return arrays

    def intern(self, value: bytes) -> int:
        """The code of ``value``, which is entered where it is new."""
        known = self._codes.get(value)
        if known is not None:
            return known
        if self._pool is not None:
            code = self._codes[value] = self._pool.enter(value)
            return code
        words = np.frombuffer(value + bytes(-len(value) % 8 or 8), "<i8")
        arrays = self.reserve(1, words.size)
        code = int(intern_words.plain(words, 0, len(value), arrays))
        self._codes[value] = code
        return code

    def code(self, value: str | bytes) -> int:
        """The code of a string that is in the pool; -1 where it is not."""
        data = value.encode() if isinstance(value, str) else value
        if self._pool is not None:
            return self._pool.look_up(data)
        words = np.frombuffer(data + bytes(-len(data) % 8 or 8), "<i8")
        arrays = self.arrays
        mask = arrays.slots.size - 1
        slot = hash_words.plain(words, 0, len(data)) & mask
        while (code := int(arrays.slots[slot])) >= 0:
            if self.bytes_of(code) == data:
                return code
            slot = (slot + 1) & mask
        return EMPTY

    def bytes_of(self, code: int) -> bytes:
        """The bytes of a code. Raises IndexError for a code that is not in the pool."""
        if not 0 <= code < len(self):
            msg = f"string code {code} is not in the pool"
            raise IndexError(msg)
        if self._pool is not None:
            return self._pool.bytes_of(code)
        start = int(self.arrays.starts[code]) * 8
        end = start + int(self.arrays.lengths[code])
        return self.arrays.words.view(np.uint8)[start:end].tobytes()

    def texts(self) -> list[str]:
        """All strings as text, by code."""
        known = len(self._text)
        if known < len(self):
            new = self.column(np.arange(known, len(self)))
            self._text.extend(new)
        return self._text

    def column(self, codes: NDArray[np.int64]) -> TextColumn:
        """The strings of some codes, all of which are in the pool, as a text column."""
        if self._pool is None:
            words, starts, lengths = self.arrays[:3]
        else:
            pool = self._pool
            words, starts, lengths = (pool.array(part) for part in ("words", "starts", "lengths"))
        return TextColumn.gather(words.view(np.uint8), 8 * starts[codes], lengths[codes])

    def __len__(self) -> int:
        return int(self.arrays.used[0]) if self._pool is None else self._pool.count

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self.texts()[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts())


class TextColumn(Sequence[str]):
    """Strings that are not pooled: ``offsets`` int64 of shape (n + 1,) into ``data`` (uint8)."""

    def __init__(self, offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> None:
        self.offsets = offsets
        self.data = data

    @classmethod
    def of(cls, values: Iterable[str | bytes]) -> TextColumn:
        """A column of these values."""
        parts = [value.encode() if isinstance(value, str) else value for value in values]
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(parts), np.uint8))

    @classmethod
    def gather(
        cls, source: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.integer[Any]]
    ) -> TextColumn:
        """A column of stretches of ``source``, copied together in order.

        Raises IndexError where one of them lies outside of it.
        """
        offsets = arena.empty(starts.size + 1, np.int64)
        offsets[0] = 0
        np.cumsum(lengths, out=offsets[1:])
        total = int(offsets[-1])
        if not is_compiled("fxframework.kernels.columns"):  # numpy is faster than plain Python
            index = np.arange(total, dtype=np.int64)
            index += np.repeat(starts - offsets[:-1], lengths)
            return cls(offsets, source[index])
        data = arena.empty(total, np.uint8)
        if not copy_stretches(
            view(source, np.uint8), view(starts, np.int64), offsets.data, data.data
        ):
            msg = f"a stretch lies outside of {source.size} bytes"
            raise IndexError(msg)
        return cls(offsets, data)

    def bytes_of(self, row: int) -> bytes:
        """The bytes of a row."""
        return self.data[int(self.offsets[row]) : int(self.offsets[row + 1])].tobytes()

    def take(self, rows: NDArray[Any]) -> TextColumn:
        """The rows of a boolean mask or an index array."""
        index = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        starts = self.offsets[:-1][index]
        return TextColumn.gather(self.data, starts, self.offsets[1:][index] - starts)

    def __len__(self) -> int:
        return int(self.offsets.size) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> TextColumn: ...
    def __getitem__(self, index: int | slice) -> str | TextColumn:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return self.take(np.arange(start, stop, step))
            return TextColumn(self.offsets[start : max(stop, start) + 1], self.data)
        row = range(len(self))[index]
        return self.bytes_of(row).decode("utf-8", "replace")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.object_]:
        out = np.empty(len(self), object)
        out[:] = list(self)
        return out
