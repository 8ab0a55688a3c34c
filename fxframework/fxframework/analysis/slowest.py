"""Slowest: the names whose slices took the most time by themselves."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis import kernels
from fxframework.analysis.calls import Calls, functions_of, measured
from fxframework.analysis.spread import ALL
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import ASYNC

__all__ = ["Slow", "Slowest", "slowest"]

I64 = NDArray[np.int64]
WHOLE_ROWS = 1 << 21
"""Slices up to which self times and recursion are computed, from columns of all slices: 40 bytes
each. The figures of more slices are added up batch by batch."""


@attrs.frozen
class Slow:
    """The ended slices of one name, in the units of ``Calls.length``."""

    name: str
    count: int
    """Outermost calls: those that are not within another call of the same name."""
    sum: int
    """The time of these calls."""
    max: int
    """The longest of them."""
    own: int | None
    """Time of all calls of the name outside of the calls within them (self time). None for more
    than WHOLE_ROWS slices; the other figures are then those of all calls, recursive ones too."""
    asynchronous: bool = False


@attrs.frozen
class Slowest:
    """The slowest names of a capture."""

    names: tuple[Slow, ...]
    """Most self time first, so that what merely encloses everything comes last; most time in all
    first if self times are unknown."""
    count: int
    """Number of names with ended slices, asynchronous slices apart."""
    per_second: int
    """Units of time per second; 0 if unknown."""


class _Totals:
    """Figures of groups by number, each int64 of shape (n,)."""

    def __init__(self, groups: int = 0) -> None:
        self.count, self.sum, self.max, self.own = (np.zeros(groups, np.int64) for _ in range(4))

    def add(self, numbers: NDArray[np.int32], lengths: I64) -> None:
        """Count ended slices, with as many more groups as their numbers need."""
        more = int(numbers.max(initial=-1)) + 1 - self.count.size
        if more > 0:
            more = max(more, self.count.size // 2)
            for name in ("count", "sum", "max", "own"):
                setattr(self, name, np.pad(getattr(self, name), (0, more)))
        np.add.at(self.count, numbers, 1)
        np.add.at(self.sum, numbers, lengths)
        np.maximum.at(self.max, numbers, lengths)


def slowest(capture: Capture, top: int = 5) -> Slowest:
    """Return the slowest functions or names of a capture.

    The figures are those of ``analysis.account.account`` with ``recursion="outermost"``. Raises
    UsageError if the capture has no slices.
    """
    _, _, per_second = measured(capture, "")
    if capture.row_counts()["slices"] <= WHOLE_ROWS:
        return _of_all_slices(capture, top, per_second)
    return _of_batches(capture, top, per_second)


def _of_all_slices(capture: Capture, top: int, per_second: int) -> Slowest:
    calls = Calls.of(capture, "", with_asynchronous=True)
    inner, _ = calls.recursion()
    groups = 2 * len(calls.functions)
    group = 2 * calls.function
    if calls.marked is not None:
        group += calls.marked
    outermost = 1 - inner
    totals = _Totals(groups)
    everything, nested, opened = (np.zeros(groups, np.int64) for _ in range(3))
    columns = group.data, calls.parent.data, calls.length.data
    kernels.account(
        *columns, outermost.data, outermost.data,
        totals.count.data, opened.data, totals.sum.data, nested.data,
    )  # fmt: skip
    spare = [np.zeros(groups, np.int64).data for _ in range(3)]
    kernels.account(*columns, ALL.data, ALL.data, *spare[:2], everything.data, spare[2])
    totals.own = np.maximum(everything - nested, 0)
    ended = np.flatnonzero((inner == 0) & (calls.length >= 0))
    np.maximum.at(totals.max, group[ended], calls.length[ended])
    known = np.flatnonzero(totals.count)
    # Of equal self times, the one that also took longer in all comes first.
    order = np.lexsort((known, -totals.sum[known], -totals.own[known]))[:top]
    names = tuple(
        Slow(
            calls.functions.name(number >> 1), int(totals.count[number]), int(totals.sum[number]),
            int(totals.max[number]), int(totals.own[number]), asynchronous=bool(number & 1),
        )
        for number in known[order].tolist()
    )  # fmt: skip
    return Slowest(names, int(known.size), per_second)


def _of_batches(capture: Capture, top: int, per_second: int) -> Slowest:
    """Add up all slices batch by batch, in memory for the names alone."""
    column, length, _ = measured(capture, "")
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
        Slow(
            functions.name(at), int(totals[mark].count[number]), int(totals[mark].sum[number]),
            int(totals[mark].max[number]), None, asynchronous=mark,
        )
        for at, number, mark in zip(
            place.reshape(-1).tolist(), chosen.tolist(), marked[order].tolist(), strict=True
        )
    )  # fmt: skip
    return Slowest(names, int(numbers.size), per_second)
