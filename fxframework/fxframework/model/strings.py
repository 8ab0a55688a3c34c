"""Strings: the pool that all tables of a capture share, and text columns that are not pooled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from threading import RLock
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from fxframework.io import arena
from fxframework.kernels.pools import Pool, codes_of
from fxframework.kernels.stretches import copied

__all__ = ["StringPool", "TextColumn", "read_only"]


CACHED = 1 << 14
"""Decoded texts that are cached; the cache is cleared when it is full."""


class _Texts(dict[int, str]):
    """A cache of the strings of a pool as text, by code; decoded on first use."""

    def __init__(self, pool: Pool, lock: RLock) -> None:
        super().__init__()
        self._pool = pool
        self._lock = lock

    def __missing__(self, code: int) -> str:
        if len(self) >= CACHED:
            self.clear()
        with self._lock:
            data = self._pool.bytes_of(code)
        text = data.decode("utf-8", "replace")
        self[code] = text
        return text

    def make(self, codes: NDArray[np.intp]) -> None:
        """Decode all missing codes at once, without clearing the cache in between."""
        if len(self) >= CACHED:
            self.clear()
        pool = self._pool
        data = np.asarray(pool.words).data.cast("B")
        starts = (8 * pool.array("starts")[codes]).tolist()
        lengths = pool.array("lengths")[codes].tolist()
        for code, start, length in zip(codes.tolist(), starts, lengths, strict=True):
            if code not in self:
                self[code] = str(data[start : start + length], "utf-8", "replace")


class StringPool(Sequence[str]):
    """The distinct strings of a capture; a ``code`` column indexes it, -1 being null.

    Strings are bytes first (``bytes_of``); as text, what is not UTF-8 becomes U+FFFD. Code 0 is
    always the empty string. ``pool`` is what kernels fill. They and all methods hold ``lock``,
    since a pool that grows moves.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.pool = Pool()
        self._texts = _Texts(self.pool, self.lock)
        self.intern(b"")

    def intern(self, value: bytes) -> int:
        """Return the code of ``value``, adding it to the pool if it is new."""
        with self.lock:
            return self.pool.enter(value)

    def intern_numbers(self, numbers: NDArray[Any]) -> NDArray[np.int32]:
        """Intern nonnegative numbers as decimal digits; return their codes. Both of shape (n,)."""
        digits = numbers.astype("S20")
        lengths = np.char.str_len(digits).astype(np.int64)
        starts = np.arange(0, digits.nbytes, digits.itemsize, dtype=np.int64)
        with self.lock:
            return codes_of(self.pool, digits.view(np.uint8), starts, lengths)

    def code(self, value: str | bytes) -> int:
        """Return the code of a string; -1 if it is not in the pool.

        In a ``str``, lone surrogates are bytes that are not UTF-8, as in arguments of a command.
        """
        if isinstance(value, str):
            value = value.encode(errors="surrogateescape")
        with self.lock:
            return self.pool.look_up(value)

    def bytes_of(self, code: int) -> bytes:
        """Return the bytes of a code. Raises IndexError for a code that is not in the pool."""
        with self.lock:
            return self.pool.bytes_of(code)

    def text(self, code: int) -> str:
        """Return the text of a code; the empty string for -1."""
        return self._texts[code] if code >= 0 else ""

    def check(self, codes: NDArray[Any], least: int = -1) -> None:
        """Raise IndexError if a code is not in the pool, TypeError if codes are not integers.

        ``least`` is -1 where null is a code.
        """
        if codes.dtype.kind not in "iu":
            raise TypeError(f"string codes are integers, not {codes.dtype}")
        if not codes.size:
            return
        for code in (int(codes.min()), int(codes.max())):
            if not least <= code < len(self):
                raise IndexError(f"string code {code} is not in the pool, which has {len(self)}")

    def column(self, codes: NDArray[Any]) -> TextColumn:
        """Return the strings of these codes, an integer array of shape (n,), as a text column.

        Raises IndexError for a code that is not in the pool.
        """
        self.check(codes, least=0)
        pool = self.pool
        with self.lock:
            starts = 8 * pool.array("starts")[codes]  # in words of 8 bytes
            lengths = pool.array("lengths")[codes]
            return TextColumn.gather(pool.array("words").view(np.uint8), starts, lengths)

    def take(self, codes: NDArray[Any]) -> list[str | None]:
        """Return the texts of these codes, an integer array of shape (n,); None for -1.

        Raises IndexError for a code that is not in the pool.
        """
        self.check(codes)
        texts = self._texts
        if codes.size > 64:
            occurs = np.zeros(len(self) + 1, np.bool_)
            occurs[codes] = True  # code -1 (null) sets the last element
            with self.lock:
                texts.make(np.flatnonzero(occurs[:-1]))
        return [None if code < 0 else texts[code] for code in codes.tolist()]

    def texts(self) -> list[str]:
        """Return all strings as text, by code. ``take`` and indexing decode only what is needed."""
        return [self._texts[code] for code in range(len(self))]

    def __len__(self) -> int:
        return int(self.pool.count)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if type(index) is int and index >= 0:
            return self._texts[index]  # without asking the kernel how many there are
        places = range(len(self))[index]
        if isinstance(places, int):
            return self._texts[places]
        return [self._texts[code] for code in places]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts())


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of an array that cannot be written to; the array itself if it cannot be."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


class TextColumn(Sequence[str]):
    """Strings that are not pooled: ``offsets`` int64 of shape (n + 1,) into ``data`` (uint8)."""

    def __init__(self, offsets: NDArray[np.int64], data: NDArray[np.uint8]) -> None:
        self.offsets = offsets
        self.data = data

    @classmethod
    def of(cls, values: Iterable[str | bytes]) -> TextColumn:
        """Make a column of these values."""
        parts = [value.encode() if isinstance(value, str) else value for value in values]
        offsets = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(parts), np.uint8))

    @classmethod
    def gather(
        cls, source: NDArray[np.uint8], starts: NDArray[np.int64], lengths: NDArray[np.integer[Any]]
    ) -> TextColumn:
        """Make a column by copying stretches of ``source`` one after another.

        Raises IndexError if a stretch lies outside of ``source``.
        """
        offsets = arena.empty(starts.size + 1, np.int64)
        offsets[0] = 0
        np.cumsum(lengths, out=offsets[1:])
        total = int(offsets[-1])
        data = arena.empty(total, np.uint8)
        source = np.ascontiguousarray(source, np.uint8)
        if not copied(source, np.ascontiguousarray(starts, np.int64), offsets, data):
            msg = f"a stretch lies outside of {source.size} bytes"
            raise IndexError(msg)
        return cls(offsets, data)

    @classmethod
    def joined(cls, columns: Sequence[TextColumn]) -> TextColumn:
        """Make a column of the rows of several columns, one column after another."""
        nothing = TextColumn.of(())
        lengths = [np.diff(column.offsets) for column in (nothing, *columns)]
        offsets = np.append(0, np.cumsum(np.concatenate(lengths)))
        # A slice of a column has the data of all rows.
        data = [column.data[column.offsets[0] : column.offsets[-1]] for column in columns]
        return cls(offsets, np.concatenate([nothing.data, *data]))

    def read_only(self) -> TextColumn:
        """Return the same column, whose arrays cannot be written to."""
        return TextColumn(read_only(self.offsets), read_only(self.data))

    def bytes_of(self, row: int) -> bytes:
        """Return the bytes of a row."""
        return self.data[int(self.offsets[row]) : int(self.offsets[row + 1])].tobytes()

    def take(self, rows: NDArray[Any]) -> TextColumn:
        """Return the rows of a boolean mask or an index array."""
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
