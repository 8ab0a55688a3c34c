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
    """Figures of ended slices by number, as columns of shape (n,), numbers ascending."""

    def __init__(self) -> None:
        self.numbers, self.count, self.sum, self.max = (np.zeros(0, np.int64) for _ in range(4))

    def add(self, numbers: I64, lengths: I64) -> None:
        """Add ended slices. Memory is needed for their distinct numbers alone."""
        both = np.concatenate((self.numbers, numbers))
        self.numbers, place = np.unique(both, return_inverse=True)
        known, fresh = np.split(place.reshape(-1), [self.count.size])
        sums = []
        for earlier, added in ((self.count, np.int64(1)), (self.sum, lengths)):
            total = np.zeros(self.numbers.size, np.int64)
            total[known] = earlier
            np.add.at(total, fresh, added)
            sums.append(total)
        self.count, self.sum = sums
        longest = np.zeros(self.numbers.size, np.int64)
        longest[known] = self.max
        np.maximum.at(longest, fresh, lengths)
        self.max = longest


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
    count, sums, longest, everything, nested, unused, unneeded = (
        np.zeros(groups, np.int64) for _ in range(7)
    )
    columns = group.data, calls.parent.data, calls.length.data
    kernels.account(
        *columns, outermost.data, outermost.data,
        count.data, unused.data, sums.data, nested.data,
    )  # fmt: skip
    # Self time is that of all calls, the inner ones too.
    kernels.account(
        *columns, ALL.data, ALL.data,
        unused.data, unused.data, everything.data, unneeded.data,
    )  # fmt: skip
    own = np.maximum(everything - nested, 0)
    ended = np.flatnonzero((inner == 0) & (calls.length >= 0))
    np.maximum.at(longest, group[ended], calls.length[ended])
    known = np.flatnonzero(count)
    # Of equal self times, the one that also took longer in all comes first.
    order = np.lexsort((known, -sums[known], -own[known]))[:top]
    names = tuple(
        Slow(
            calls.functions.name(number >> 1), int(count[number]), int(sums[number]),
            int(longest[number]), int(own[number]), asynchronous=bool(number & 1),
        )
        for number in known[order].tolist()
    )  # fmt: skip
    return Slowest(names, int(known.size), per_second)


def _of_batches(capture: Capture, top: int, per_second: int) -> Slowest:
    """Add up all slices batch by batch, in memory for the names of ended ones alone."""
    column, length, _ = measured(capture, "")
    longest = NS_MAX // max(capture.row_counts()["slices"], 1)
    totals = _Totals()
    for batch in capture.batches("slices"):
        lengths = batch.array(length).astype(np.int64)
        ended = np.flatnonzero(lengths >= 0)
        if ended.size:
            marked = batch.array("kind")[ended] == ASYNC
            numbers = 2 * batch.array(column.name)[ended].astype(np.int64) + marked
            totals.add(numbers, np.minimum(lengths[ended], longest))
    order = np.lexsort((totals.numbers, -totals.sum))[:top]
    chosen = totals.numbers[order]
    distinct, place = np.unique(chosen >> 1, return_inverse=True)
    functions = functions_of(capture, column, distinct)
    names = tuple(
        Slow(
            functions.name(name), int(totals.count[row]), int(totals.sum[row]),
            int(totals.max[row]), None, asynchronous=bool(totals.numbers[row] & 1),
        )
        for name, row in zip(place.reshape(-1).tolist(), order.tolist(), strict=True)
    )  # fmt: skip
    return Slowest(names, int(totals.numbers.size), per_second)
