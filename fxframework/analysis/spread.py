"""Spread: how the lengths of the calls of a group lie, by exact order statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis import kernels
from fxframework.io import arena

__all__ = ["ALL", "SHARES", "Spread", "spreads"]

ALL = np.zeros(0, np.uint8)
"""A mask that chooses every call."""
SHARES = {"median": 0.5, "p90": 0.9, "p99": 0.99}
"""Of n lengths in order, each is element floor(n * share): the nearest rank, as in llvm-xray."""


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


def spreads(
    group: NDArray[np.int32],
    groups: int,
    parent: NDArray[np.int64],
    length: NDArray[np.int64],
    *,
    chosen: NDArray[np.uint8] = ALL,
    summed: NDArray[np.uint8] = ALL,
) -> list[Spread]:
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
    selfs = np.maximum(everything - nested, 0)
    ends = np.cumsum(counts)
    out = arena.empty(int(ends[-1]) if groups else 0, np.int64)
    kernels.sort_out(group.data, length.data, chosen.data, (ends - counts).data, out.data)
    figures: Sequence[Any] = (counts, opened, totals, selfs, ends)
    return [
        Spread(count=count, unfinished=still, sum=total, own=mine, **_order(out[end - count : end]))
        for count, still, total, mine, end in zip(*(f.tolist() for f in figures), strict=True)
    ]


def _order(lengths: NDArray[np.int64]) -> dict[str, int]:
    """The order statistics of lengths, which come into another order."""
    count = lengths.size
    if not count:
        return {}
    ranks = {name: int(count * share) for name, share in SHARES.items()}
    lengths.partition(sorted({*ranks.values()}))
    found = {name: int(lengths[rank]) for name, rank in ranks.items()}
    # What comes before the first rank is no longer than it, what is behind the last no shorter.
    found["min"] = int(lengths[: ranks["median"] + 1].min())
    found["max"] = int(lengths[ranks["p99"] :].max())
    return found
