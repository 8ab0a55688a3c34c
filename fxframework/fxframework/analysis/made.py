"""Sequences of objects stored as columns: each object is created when it is accessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

__all__ = ["Made"]

T = TypeVar("T")


class Made(Sequence[T]):
    """A sequence of ``size`` objects; ``make`` creates the object at an index."""

    def __init__(self, size: int, make: Callable[[int], T]) -> None:
        self._places = range(size)
        self._make = make

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._places)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self._make(place) for place in self._places[index]]
        return self._make(self._places[index])
