"""Arrays of numbers for kernels: memoryviews, whose elements are plain Python numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from fxframework.io import arena

TOGETHER = 1 << 16
"""Places that are gathered together: numpy makes numbers of 64 bits of them first."""


def room(size: int, dtype: DTypeLike) -> memoryview[Any]:
    """Return an uninitialized array of ``size`` numbers of a dtype."""
    return arena.empty(size, dtype).data


def full(size: int, dtype: DTypeLike, value: int = 0) -> memoryview[Any]:
    """Return an array of ``size`` equal numbers of a dtype."""
    array = arena.empty(size, dtype)
    array.fill(value)
    return array.data


def view(values: ArrayLike, dtype: DTypeLike) -> memoryview[Any]:
    """Return the numbers of an array for a kernel; copy only if dtype or strides differ."""
    return np.ascontiguousarray(values, dtype).data


def grown(old: Any, size: int, used: int) -> memoryview[Any]:
    """Return an array of ``size`` numbers that begins with the first ``used`` of ``old``."""
    old_array = np.asarray(old)
    array = arena.empty(size, old_array.dtype)
    array[:used] = old_array[:used]
    return array.data


def gathered(values: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """Return the values at some places, of shape (places,), all of which must be valid."""
    out = arena.empty(places.size, values.dtype)
    for start in range(0, places.size, TOGETHER):
        part = slice(start, start + TOGETHER)
        # Where places are to be checked, numpy copies the result once more.
        np.take(values, places[part], out=out[part], mode="clip")
    return out
