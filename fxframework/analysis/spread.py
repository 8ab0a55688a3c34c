"""Spread: how the lengths of the calls of a group lie, by exact order statistics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis import kernels
from fxframework.analysis.made import Made
from fxframework.io import arena

__all__ = ["ALL", "SHARES", "Spread", "Spreads", "spreads"]

ALL = np.zeros(0, np.uint8)
"""A mask that chooses every call."""
SHARES = {"median": 0.5, "p90": 0.9, "p99": 0.99}
"""Of n lengths in order, each is element floor(n * share): the nearest rank, as in llvm-xray."""
ALWAYS = frozenset({"count", "unfinished", "sum", "own"})
"""Figures that a group without ended calls has too."""
FEW = 16
"""Groups of up to so many calls are put in order together, those of one size at once."""
BLOCK = 1 << 14
"""Groups that are taken at once."""


@attrs.frozen(kw_only=True)
class Spread:
    """The lengths of calls that ended, in the units of ``Calls.length``.

    Without such a call there are no figures but the counts and sums, which are 0.
    """

    count: int
    """Calls that ended."""
    unfinished: int
    """Calls that never did, and have no length."""
    sum: int
    own: int
    """The time of ended calls that no ended call right within them took."""
    min: int | None = None
    median: int | None = None
    p90: int | None = None
    p99: int | None = None
    max: int | None = None

    def to_json(self) -> dict[str, int | None]:
        """The figures by name; ``self`` is ``own``."""
        return {
            {"own": "self"}.get(name, name): value for name, value in attrs.asdict(self).items()
        }


class Spreads(Made[Spread]):
    """Spreads in columns, int64 of shape (n,) by the names of their fields.

    Order statistics of a group without ended calls are -1.
    """

    def __init__(self, columns: Mapping[str, NDArray[np.int64]]) -> None:
        self.columns = columns
        views = {name: column.data for name, column in columns.items()}
        super().__init__(columns["count"].size, partial(_spread, views))

    def extended(self, more: int) -> Spreads:
        """The same, and ``more`` groups without calls behind them."""
        return Spreads({
            name: np.pad(column, (0, more), constant_values=0 if name in ALWAYS else -1)
            for name, column in self.columns.items()
        })  # fmt: skip


def _spread(columns: Mapping[str, memoryview], place: int) -> Spread:
    names = columns if columns["count"][place] else ALWAYS
    return Spread(**{name: columns[name][place] for name in names})


def spreads(
    group: NDArray[np.int32],
    groups: int,
    parent: NDArray[np.int64],
    length: NDArray[np.int64],
    *,
    chosen: NDArray[np.uint8] = ALL,
    summed: NDArray[np.uint8] = ALL,
) -> Spreads:
    """The spread of each group of calls, by its number.

    ``group``, ``parent`` and ``length`` are as in ``Calls``; ``chosen`` marks the calls that count,
    ``summed`` those whose lengths are added up. Self times are of all calls.
    """
    counts, opened, totals, nested, everything = (np.zeros(groups, np.int64) for _ in range(5))
    calls = (group.data, parent.data, length.data)
    kernels.account(
        *calls, chosen.data, summed.data, counts.data, opened.data, totals.data, nested.data
    )
    if chosen.size or summed.size:
        every = ALL.data
        no_counts, not_opened, not_nested = (np.zeros(groups, np.int64).data for _ in range(3))
        kernels.account(*calls, every, every, no_counts, not_opened, everything.data, not_nested)
    else:
        everything = totals
    starts = np.cumsum(counts) - counts
    out = arena.empty(int(counts.sum()), np.int64)
    kernels.sort_out(group.data, length.data, chosen.data, starts.copy().data, out.data)
    return Spreads({
        "count": counts, "unfinished": opened, "sum": totals,
        "own": np.maximum(everything - nested, 0), **_order(out, starts, counts),
    })  # fmt: skip


def _order(
    lengths: NDArray[np.int64], starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> dict[str, NDArray[np.int64]]:
    """The order statistics of groups of lengths, which come into another order."""
    found = {name: np.full(counts.size, -1, np.int64) for name in ("min", *SHARES, "max")}
    for size in range(1, min(FEW, int(counts.max(initial=0))) + 1):
        every = np.flatnonzero(counts == size)
        ranks = {"min": 0, **{name: int(size * share) for name, share in SHARES.items()}, "max": -1}
        for first in range(0, every.size, BLOCK):
            some = every[first : first + BLOCK]
            rows = np.sort(lengths[starts[some][:, None] + np.arange(size)], axis=1)
            for name, rank in ranks.items():
                found[name][some] = rows[:, rank]
    for group in np.flatnonzero(counts > FEW).tolist():
        start, count = int(starts[group]), int(counts[group])
        mine = lengths[start : start + count]
        ranks = {name: int(count * share) for name, share in SHARES.items()}
        mine.partition(sorted({*ranks.values()}))
        for name, rank in ranks.items():
            found[name][group] = mine[rank]
        # What comes before the first rank is no longer than it, what is behind the last no shorter.
        found["min"][group] = mine[: ranks["median"] + 1].min()
        found["max"][group] = mine[ranks["p99"] :].max()
    return found
