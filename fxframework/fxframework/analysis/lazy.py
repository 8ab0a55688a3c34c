"""Sequences of objects stored as columns: each object is created when it is accessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """A sequence of ``size`` objects; ``make`` creates the object at an index."""

    def __init__(self, size: int, make: Callable[[int], T]) -> None:
        self._indexes = range(size)
        self._make = make

    def __len__(self) -> int:
        return len(self._indexes)

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._indexes)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        # The range resolves negative indexes and raises IndexError.
        if isinstance(index, slice):
            return [self._make(position) for position in self._indexes[index]]
        return self._make(self._indexes[index])
