"""Arrays of numbers as kernels take them: memoryviews, whose elements are plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from fxframework.io import arena

__all__ = ["full", "grown", "room", "view"]


def room(size: int, dtype: DTypeLike) -> memoryview:
    """Room for ``size`` numbers of a dtype, with anything in it."""
    return arena.empty(size, dtype).data


def full(size: int, dtype: DTypeLike, value: int = 0) -> memoryview:
    """``size`` numbers of a dtype that all have one value."""
    array = arena.empty(size, dtype)
    array.fill(value)
    return array.data


def view(values: ArrayLike, dtype: DTypeLike) -> memoryview:
    """The numbers of an array as a kernel takes them; copied only where dtype or strides differ."""
    return np.ascontiguousarray(values, dtype).data


def grown(old: Any, size: int, used: int) -> memoryview:
    """Room for ``size`` numbers that begins with the first ``used`` of ``old``."""
    before = np.asarray(old)
    array = arena.empty(size, before.dtype)
    array[:used] = before[:used]
    return array.data
