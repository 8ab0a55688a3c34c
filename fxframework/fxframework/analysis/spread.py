"""Spreads: counts, sums and exact order statistics of the lengths of groups of calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.lazy import LazySequence
from fxframework.kernels.arrays import I64
from fxframework.kernels.buffers import gathered
from fxframework.kernels.sorting import stable_order

ALL = np.zeros(0, np.uint8)
"""A mask that selects every call."""
SHARES = {"min": 0.0, "median": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
"""Share of each order statistic: of n sorted lengths it is element min(floor(n * share), n - 1),
the nearest rank, as in llvm-xray."""
FEW = 16
"""Largest size of groups that are sorted together with all groups of the same size."""
ROWS = 1 << 15
"""Calls that are added up at once."""
BLOCK = 1 << 14
"""Number of groups that are sorted at once."""


@attrs.frozen(kw_only=True)
class Spread:
    """Statistics of the lengths of calls that ended, in the units of ``Calls.length``.

    If no call ended, counts and sums are 0 and the other figures are None. They are None also if
    only the sums of several calls are known.
    """

    count: int
    """Number of calls that ended."""
    unfinished: int
    """Number of calls that never ended, and so have no length."""
    sum: int
    own: int
    """Time in ended calls outside of the ended calls directly within them (self time)."""
    min: int | None = None
    median: int | None = None
    p90: int | None = None
    p99: int | None = None
    max: int | None = None
    deviation: float | None = None
    """Standard deviation: the root of the mean squared distance from the mean length."""

    def to_json(self) -> dict[str, int | float | None]:
        """Return the figures by name; ``own`` is called ``self``."""
        return {
            {"own": "self"}.get(name, name): value for name, value in attrs.asdict(self).items()
        }


class Spreads(LazySequence[Spread]):
    """Spreads of n groups, stored as columns of their fields: int64 of shape (n,).

    Counts, sums and deviations (float64) are stored. Order statistics are read from the lengths,
    which are stored group by group with each order statistic at its rank; they are -1 for a group
    without ended calls, and if there are no lengths, because each is the sum of several calls.
    """

    def __init__(self, sums: Mapping[str, NDArray[Any]], lengths: I64, starts: I64) -> None:
        self._sums = sums
        self.lengths = lengths
        self.starts = starts
        views = {name: column.data for name, column in sums.items()}
        # A bound method would create a reference cycle.
        super().__init__(starts.size, partial(_spread, views, lengths.data, starts.data))

    def column(self, name: str) -> NDArray[Any]:
        """Return the column of a field. Raises KeyError for an unknown name."""
        if name in self._sums:
            return self._sums[name]
        counts = self._sums["count"]
        column: I64 = np.full(counts.size, -1, np.int64)
        groups = np.flatnonzero(counts if self.lengths.size else 0)
        counts = counts[groups]
        ranks = (counts * SHARES[name]).astype(np.int64)
        ranks = np.minimum(ranks, counts - 1)
        column[groups] = self.lengths[self.starts[groups] + ranks]
        return column

    def extended(self, more: int) -> Spreads:
        """Return these spreads followed by ``more`` groups without calls."""
        sums = {}
        for name, column in self._sums.items():
            sums[name] = np.pad(column, (0, more))
        starts = np.pad(self.starts, (0, more))
        return Spreads(sums, self.lengths, starts)


def _spread(
    sums: Mapping[str, memoryview], lengths: memoryview, starts: memoryview, group: int
) -> Spread:
    figures: dict[str, Any] = {name: column[group] for name, column in sums.items()}
    count = figures["count"]
    if not count or not len(lengths):
        figures["deviation"] = None
    else:
        for name, rank in _ranks(count).items():
            figures[name] = lengths[starts[group] + rank]
    return Spread(**figures)


def _ranks(count: int) -> dict[str, int]:
    """Return the index of each order statistic among ``count`` sorted lengths, by name."""
    return {name: min(int(count * share), count - 1) for name, share in SHARES.items()}


def spreads(
    group: NDArray[np.int32],
    groups: int,
    parent: I64,
    length: I64,
    *,
    chosen: NDArray[np.uint8] = ALL,
    summed: NDArray[np.uint8] = ALL,
    ordered: bool = False,
    stands_for: I64 | None = None,
) -> Spreads:
    """Return the spreads of ``groups`` groups of calls; with ``ordered``, all lengths are sorted.

    ``group`` is the group of each call; ``parent`` and ``length`` are as in ``Calls``. ``chosen``
    marks the calls that count, ``summed`` those whose lengths are added up. Self times cover all
    calls. ``stands_for`` is as in ``Calls``: then the lengths of single calls are not known.
    """
    is_ended = length >= 0
    is_chosen = chosen.view(np.bool_) if chosen.size else np.ones(group.size, np.bool_)
    is_counted = is_ended & is_chosen
    every_call = bool(is_counted.all())
    counts = np.bincount(group if every_call else group[is_counted], minlength=groups)
    is_unfinished = ~is_ended & is_chosen
    unfinished = np.bincount(group[is_unfinished], minlength=groups)
    is_summed = is_counted & (summed != 0) if summed.size else is_counted
    totals = _sums_of_groups(group, groups, length, is_summed)
    totals_of_all = totals
    if chosen.size or summed.size:
        # Self times cover all calls, and so need the totals of all.
        totals_of_all = _sums_of_groups(group, groups, length, is_ended)
    nested = _nested_of_groups(group, groups, parent, length)
    own = np.subtract(totals_of_all, nested, out=nested)
    np.maximum(own, 0, out=own)
    sums: dict[str, NDArray[Any]] = {
        "count": counts,
        "unfinished": unfinished,
        "sum": totals,
        "own": own,
    }
    if stands_for is not None:
        counted = np.arange(group.size)
        if chosen.size:
            counted = np.flatnonzero(chosen)
        counts[:] = 0
        np.add.at(counts, group[counted], stands_for[counted])
        sums["deviation"] = np.full(groups, -1.0)
        return Spreads(sums, np.zeros(0, np.int64), np.zeros(groups, np.int64))
    starts = np.cumsum(counts) - counts
    ended_group = group if every_call else group[is_counted]
    lengths = length if every_call else length[is_counted]
    order = stable_order(ended_group.astype(np.int64, copy=False))
    lengths = lengths.copy() if order is None else gathered(lengths, order)
    _place_ranks(lengths, starts, counts, ordered=ordered)
    sums["deviation"] = _deviations(lengths, starts, counts)
    return Spreads(sums, lengths, starts)


def _sums_of_groups(
    group: NDArray[np.int32], groups: int, length: I64, is_summed: NDArray[np.bool_]
) -> I64:
    """Return the sum of the lengths of some calls by group, int64 of shape (groups,)."""
    sums = np.zeros(groups, np.int64)
    for first in range(0, group.size, ROWS):
        rows = slice(first, first + ROWS)
        summed_lengths = np.where(is_summed[rows], length[rows], 0)
        np.add.at(sums, group[rows].astype(np.int64), summed_lengths)
    return sums


def _nested_of_groups(group: NDArray[np.int32], groups: int, parent: I64, length: I64) -> I64:
    """Return the time that ended calls spent in calls right within them, by group."""
    sums = np.zeros(groups, np.int64)
    for first in range(0, group.size, ROWS):
        callers = parent[first : first + ROWS]
        lengths = length[first : first + ROWS]
        has_caller = (callers >= 0) & (callers < group.size)
        is_enclosed = has_caller & (lengths >= 0)
        callers = np.where(is_enclosed, callers, 0)
        # What is in a call that never ended is in no total, and so is not taken from one.
        is_in_total = is_enclosed & (length[callers] >= 0)
        spent = np.where(is_in_total, lengths, 0)
        groups_of_callers = group[callers].astype(np.int64)
        np.add.at(sums, groups_of_callers, spent)
    return sums


def _deviations(lengths: I64, starts: I64, counts: I64) -> NDArray[np.float64]:
    """Return the standard deviation of each group of lengths; -1 for a group without any."""
    deviations = np.full(counts.size, -1.0)
    groups = np.flatnonzero(counts)
    counts = counts[groups]
    if not groups.size:
        return deviations
    # Distances from an integer near the mean are exact, and so small that their squares lose
    # nothing that shows, however large the lengths are. The sum of all lengths fits.
    means = np.add.reduceat(lengths, starts[groups]) // counts
    distances = np.zeros(groups.size)
    squares = np.zeros(groups.size)
    of_length = np.repeat(np.arange(groups.size, dtype=np.int32), counts)
    for first in range(0, lengths.size, BLOCK):
        group = of_length[first : first + BLOCK]
        lowest = int(group[0])  # groups follow one another
        group_in_block = group - lowest
        distance = lengths[first : first + BLOCK] - means[group]
        distance = distance.astype(np.float64)
        groups_of_block = slice(lowest, int(group[-1]) + 1)
        distances[groups_of_block] += np.bincount(group_in_block, distance)
        squares[groups_of_block] += np.bincount(group_in_block, distance * distance)
    variances = (squares - distances * distances / counts) / counts
    deviations[groups] = np.sqrt(np.maximum(variances, 0))
    return deviations


def _place_ranks(lengths: I64, starts: I64, counts: I64, *, ordered: bool) -> None:
    """Sort each group of lengths, or so far that its order statistics are at their ranks."""
    # Most groups of a large capture are small: those of one size are the rows of one array.
    for size in range(2, min(FEW, int(counts.max(initial=0))) + 1):
        groups = np.flatnonzero(counts == size)
        for first in range(0, groups.size, BLOCK):
            block = groups[first : first + BLOCK]
            places = starts[block][:, None] + np.arange(size)
            lengths[places] = np.sort(lengths[places], axis=1)
    for group in np.flatnonzero(counts > FEW).tolist():
        start = int(starts[group])
        count = int(counts[group])
        lengths_of_group = lengths[start : start + count]
        if ordered:
            lengths_of_group.sort()
        else:
            lengths_of_group.partition(sorted({*_ranks(count).values()}))
