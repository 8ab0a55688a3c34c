"""Columns: small steps over numpy columns that several exporters take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import begins_of_runs, dense

Columns = dict[str, NDArray[Any]]


def picked(columns: Columns, rows: Any) -> Columns:
    """Return rows of columns; ``rows`` is what numpy takes as an index."""
    return {name: column[rows] for name, column in columns.items()}


def joined(parts: Sequence[Columns], names: Iterable[str]) -> Columns:
    """Return the columns ``names`` of several parts, one part after another."""
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def made_once(values: NDArray[Any], make: Callable[[int], int]) -> I64:
    """Return the number that ``make`` gives for each value; it is called once for equal ones."""
    index_of_value, distinct = dense(values)
    return np.array([make(value) for value in distinct.tolist()], np.int64)[index_of_value]


def sizes_of(texts: Sequence[bytes]) -> I64:
    """Return the bytes of each text, int64 of shape (texts,)."""
    return np.fromiter(map(len, texts), np.int64, len(texts))


def starts_of(lengths: NDArray[Any]) -> NDArray[Any]:
    """Return where each of consecutive stretches of these lengths begins, counted from 0."""
    starts: NDArray[Any] = np.cumsum(lengths) - lengths
    return starts


def first_of_runs(values: NDArray[Any]) -> I64:
    """Return the index of the first element of each run of equal values: 0 2 3 for 7 7 5 7."""
    return np.flatnonzero(begins_of_runs(values))
