"""Slowest: the names whose slices took the most time in all, in one pass and bounded memory."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis import kernels
from fxframework.analysis.calls import functions_of, measured
from fxframework.analysis.spread import ALL
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import ASYNC

__all__ = ["Slow", "Slowest", "slowest"]

NONE = np.zeros(0, np.int64).data


@attrs.frozen
class Slow:
    """The ended slices of one name, in the units of ``Calls.length``."""

    name: str
    count: int
    sum: int
    max: int
    asynchronous: bool = False


@attrs.frozen
class Slowest:
    """The slowest names of a capture."""

    names: tuple[Slow, ...]
    """Most time in all first."""
    count: int
    """Number of names with ended slices, asynchronous slices apart."""
    per_second: int
    """Units of time per second; 0 if unknown."""


class _Totals:
    """Counts, sums and greatest lengths by number, each int64 of shape (n,)."""

    def __init__(self) -> None:
        self.count, self.sum, self.max = (np.zeros(0, np.int64) for _ in range(3))

    def add(self, numbers: NDArray[np.int32], lengths: NDArray[np.int64]) -> None:
        more = int(numbers.max(initial=-1)) + 1 - self.count.size
        if more > 0:
            more = max(more, self.count.size // 2)
            for name in ("count", "sum", "max"):
                setattr(self, name, np.pad(getattr(self, name), (0, more)))
        outermost = np.full(numbers.size, -1, np.int64)
        kernels.account(
            numbers.data, outermost.data, lengths.data, ALL.data, ALL.data,
            self.count.data, NONE, self.sum.data, NONE,
        )  # fmt: skip
        np.maximum.at(self.max, numbers, lengths)

    def of(self, number: int) -> tuple[int, int, int]:
        return int(self.count[number]), int(self.sum[number]), int(self.max[number])


def slowest(capture: Capture, top: int = 5) -> Slowest:
    """Return the slowest functions or names of a capture.

    The order and the figures are those of ``analysis.account.account``, sorted by sum. Raises
    UsageError if the capture has no slices.
    """
    column, length, per_second = measured(capture, "")
    longest = NS_MAX // max(capture.row_counts()["slices"], 1)
    known = None  # numbers of functions, ascending
    if capture.calls is not None and column.kind != "code":
        known = np.unique(capture.table(capture.calls.functions).array("id").astype(np.int64))
    totals = (_Totals(), _Totals())
    for batch in capture.batches("slices"):
        values, lengths = batch.array(column.name), batch.array(length).astype(np.int64)
        numbers = values + 1 if known is None else np.searchsorted(known, values)
        marked = batch.array("kind") == ASYNC
        for mask, total in zip((~marked, marked), totals, strict=True):
            chosen = np.flatnonzero(mask & (lengths >= 0))
            if chosen.size:
                total.add(
                    np.ascontiguousarray(numbers[chosen], np.int32),
                    np.minimum(lengths[chosen], longest),
                )
    found = [np.flatnonzero(total.count) for total in totals]
    numbers = np.concatenate(found)
    marked = np.repeat([False, True], [each.size for each in found])
    sums = np.concatenate([total.sum[each] for total, each in zip(totals, found, strict=True)])
    order = np.lexsort((marked, numbers, -sums))[:top]
    chosen = numbers[order]
    distinct, place = np.unique(chosen - 1 if known is None else known[chosen], return_inverse=True)
    functions = functions_of(capture, column, distinct)
    names = tuple(
        Slow(functions.name(at), *totals[mark].of(number), asynchronous=mark)
        for at, number, mark in zip(
            place.reshape(-1).tolist(), chosen.tolist(), marked[order].tolist(), strict=True
        )
    )
    return Slowest(names, int(numbers.size), per_second)
