"""Threads: who is mentioned by records, in the order in which they do so."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.pools import Numbering
from fxframework.model.strings import StringPool

__all__ = ["GONE", "FirstUses", "Threads"]

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
GONE = 1 << 30
"""Numbers of threads from here on are those of indexes that nobody registered."""


class FirstUses(NamedTuple):
    """Records that mention threads; one shape."""

    ordinals: I64
    turns: I64
    """Which of the fields with threads it is."""
    numbers: I32
    """Codes of koids, or GONE and numbers of those that nobody registered."""
    starts: I64
    """Places of koids."""
    indexes: I64
    """Indexes of those that nobody registered."""


class Threads:
    """The threads that records mention, in the order in which they do."""

    def __init__(self) -> None:
        self.pool = StringPool()
        """Koids of both, 16 bytes each, as the file has them."""
        self.gone = Numbering()
        """Scopes and indexes of threads that nobody registered."""
        self.of_koids, self.of_gone = np.full((2, 64), -1, np.int32)
        """The thread by code of ``pool``, and by number of ``gone``; -1: not mentioned yet."""
        self.pids, self.tids, self.offsets, self.indexes = np.zeros((4, 0), np.int64)
        """By thread: koids, offset of the first record, and one more than the index of one that
        nobody registered, else 0."""

    @property
    def count(self) -> int:
        """Threads so far."""
        return int(self.pids.size)

    def make_room(self) -> None:
        """Have a place for each that may be looked up."""
        self.of_koids = longer(self.of_koids, len(self.pool))
        self.of_gone = longer(self.of_gone, self.gone.count)

    def find(self, numbers: I32) -> I32:
        """Return the threads of codes, or of GONE and numbers of ``gone``; -1 for -1."""
        if not numbers.size:
            return numbers
        if int(numbers.max()) < GONE:
            found = self.of_koids.take(numbers, mode="clip")
        else:
            is_gone = numbers >= GONE
            found = np.where(
                is_gone,
                self.of_gone.take(numbers - GONE, mode="clip"),
                self.of_koids.take(numbers, mode="clip"),
            )
        if int(numbers.min()) < 0:
            found[numbers < 0] = -1
        return found

    def add(self, numbers: I32, koids: I64, offsets: I64, indexes: I64) -> None:
        """Add threads that were not mentioned before."""
        threads = np.arange(self.count, self.count + numbers.size, dtype=np.int32)
        is_gone = numbers >= GONE
        self.of_gone[numbers[is_gone] - GONE] = threads[is_gone]
        self.of_koids[numbers[~is_gone]] = threads[~is_gone]
        self.pids = np.append(self.pids, koids[0])
        self.tids = np.append(self.tids, koids[1])
        self.offsets = np.append(self.offsets, offsets)
        self.indexes = np.append(self.indexes, indexes)

    def known(self) -> dict[str, I64]:
        """Return the columns."""
        return {
            "pid": self.pids, "tid": self.tids, "offset": self.offsets, "gone": self.indexes,
        }  # fmt: skip


def longer(column: I32, count: int) -> I32:
    """Return a column with room for so many numbers; new ones are -1."""
    if count <= column.size:
        return column
    more = np.full(max(count, 2 * column.size), -1, np.int32)
    more[: column.size] = column
    return more
