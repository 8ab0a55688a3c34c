"""Slowest: the names whose slices took the most time by themselves."""

from __future__ import annotations

import attrs
import numpy as np

from fxframework.analysis.calls import Calls, functions_of, measured
from fxframework.analysis.spread import spreads
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import dense
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX
from fxframework.model.schema import ASYNC

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
        self.numbers = np.zeros(0, np.int64)
        self.count = np.zeros(0, np.int64)
        self.sum = np.zeros(0, np.int64)
        self.max = np.zeros(0, np.int64)

    def add(self, numbers: I64, lengths: I64) -> None:
        """Add ended slices. Memory is needed for their distinct numbers alone."""
        all_numbers = np.concatenate((self.numbers, numbers))
        indexes, self.numbers = dense(all_numbers)
        old_indexes, new_indexes = np.split(indexes, [self.count.size])

        def moved(column: I64) -> I64:
            column_of_all = np.zeros(self.numbers.size, np.int64)
            column_of_all[old_indexes] = column
            return column_of_all

        self.count = moved(self.count)
        self.sum = moved(self.sum)
        self.max = moved(self.max)
        np.add.at(self.count, new_indexes, 1)
        np.add.at(self.sum, new_indexes, lengths)
        np.maximum.at(self.max, new_indexes, lengths)


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
    # Asynchronous slices of a name are a group of their own, if there are any: function 3 has 6 and
    # 7. There may be as many functions as slices, and much is counted of each group.
    groups_each = 1 if calls.marked is None else 2
    group = groups_each * calls.function
    if calls.marked is not None:
        group += calls.marked
    group_count = groups_each * len(calls.functions)
    # Self time is that of all calls, the inner ones too.
    figures = spreads(group, group_count, calls.parent, calls.length, chosen=1 - inner)
    own = figures.column("own")
    sums = figures.column("sum")
    with_calls = np.flatnonzero(figures.column("count"))
    # Of equal self times, the one that also took longer in all comes first.
    order = np.lexsort((with_calls, -sums[with_calls], -own[with_calls]))
    slowest_names = with_calls[order[:top]]
    names = tuple(
        Slow(
            name=calls.functions.name(number // groups_each),
            count=figures[number].count,
            sum=figures[number].sum,
            max=figures[number].max or 0,
            own=figures[number].own,
            asynchronous=number % groups_each == 1,
        )
        for number in slowest_names.tolist()
    )
    return Slowest(names, int(with_calls.size), per_second)


def _of_batches(capture: Capture, top: int, per_second: int) -> Slowest:
    """Add up all slices batch by batch, in memory for the names of ended ones alone."""
    column, length_name, _ = measured(capture, "")
    longest = NS_MAX // max(capture.row_counts()["slices"], 1)  # so that the sum of all fits
    totals = _Totals()
    for batch in capture.batches("slices"):
        lengths = batch.array(length_name).astype(np.int64)
        ended = np.flatnonzero(lengths >= 0)
        if ended.size:
            keys = batch.array(column.name)[ended].astype(np.int64)
            is_asynchronous = batch.array("kind")[ended] == ASYNC
            summed_lengths = np.minimum(lengths[ended], longest)
            totals.add(2 * keys + is_asynchronous, summed_lengths)
    order = np.lexsort((totals.numbers, -totals.sum))
    order = order[:top]
    keys_of_top = totals.numbers[order] >> 1
    function_of_top, distinct_keys = dense(keys_of_top)
    functions = functions_of(capture, column, distinct_keys)
    names = tuple(
        Slow(
            name=functions.name(function),
            count=int(totals.count[index]),
            sum=int(totals.sum[index]),
            max=int(totals.max[index]),
            own=None,
            asynchronous=bool(totals.numbers[index] & 1),
        )
        for function, index in zip(function_of_top.tolist(), order.tolist(), strict=True)
    )
    return Slowest(names, int(totals.numbers.size), per_second)
