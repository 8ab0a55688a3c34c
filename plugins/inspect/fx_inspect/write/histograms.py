"""Histograms: arrays of numbers that count values in buckets."""

# ruff: noqa: SLF001 (values access their parents and arrays)

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Sequence
from typing import Generic, TypeVar

from fx_inspect.write.arrays import NumberArray
from fx_inspect.write.state import uint64
from fx_inspect.write.values import Container, Value

__all__ = ["ExponentialHistogram", "Histogram", "LinearHistogram"]

Number = TypeVar("Number", int, float)


class Histogram(Value, Generic[Number]):
    """Counts of values in buckets, with an underflow and an overflow bucket.

    Bucket ``k`` of a linear histogram begins at ``floor + k * step``. The first bucket of an
    exponential one begins at ``floor``, bucket ``k`` at ``floor + initial_step * step_multiplier **
    (k - 1)``.
    """

    __slots__ = ("_array", "_bounds", "_rising", "_under")

    def __init__(
        self, array: NumberArray[Number], parameters: Sequence[Number], bounds: list[Number]
    ) -> None:
        super().__init__(array._state, array._parent)
        self._array: NumberArray[Number] = array
        self._under = len(parameters)
        """Slot of the underflow bucket."""
        self._bounds: list[Number] = bounds
        """Lower bound of each bucket, and of the overflow bucket."""
        self._rising = all(low <= high for low, high in itertools.pairwise(bounds))

    @property
    def name(self) -> str:
        """The name; the empty string once it is deleted."""
        return self._array.name

    @property
    def block(self) -> int | None:
        """Index of the block, or None."""
        return self._array.block

    @property
    def exists(self) -> bool:
        """Whether it is in the VMO: there was room for it, and it was not deleted."""
        return self._array.exists

    def delete(self) -> None:
        """Delete it from the tree."""
        self._array.delete()

    def reparent(self, parent: Container) -> None:
        """Move it to another node of the same VMO."""
        self._array.reparent(parent)

    def insert(self, value: Number) -> None:
        """Count a value."""
        self.insert_multiple(value, 1)

    def insert_multiple(self, value: Number, count: int) -> None:
        """Count a value several times."""
        kind = self._array._kind
        number = kind.check(value)
        times = kind.check(uint64(count, "a count"))
        self._array._change(self._slot(number), times)

    def clear(self) -> None:
        """Set all counts to zero."""
        self._array._clear(self._under)

    def _slot(self, value: Number) -> int:
        bounds = self._bounds
        if self._rising and value == value:  # noqa: PLR0124 (a NaN goes to the underflow bucket)
            return self._under + bisect_right(bounds, value)
        passed = 0
        while passed < len(bounds) and value >= bounds[passed]:
            passed += 1
        return self._under + passed


class LinearHistogram(Histogram[Number]):
    """A histogram whose buckets have the same width."""

    __slots__ = ()


class ExponentialHistogram(Histogram[Number]):
    """A histogram whose bucket widths grow by a factor."""

    __slots__ = ()
