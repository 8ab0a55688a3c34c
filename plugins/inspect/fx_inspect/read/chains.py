"""Chains: which extents have the bytes of texts, followed for all texts at once.

A chain may lead back to itself, into other chains, or to anywhere. So that this stays in proportion
to the file, an extent counts once in a chain, and all chains together give at most as many bytes
as the file has: what is behind that, in the order of the texts, is cut.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from fx_inspect import rules
from fxframework.io import arena
from fxframework.kernels.arrays import I32, I64
from fxframework.kernels.calls import followed


@attrs.define(eq=False)
class Extents:
    """The extents of a file, in order."""

    units: I32
    following: I32
    """The unit that each names as the next one."""
    capacities: I32
    next: I32
    """The number of the next extent; that of no extent, which is their count, behind the last."""

    @property
    def count(self) -> int:
        """The number of extents."""
        return int(self.units.size)


@attrs.define(eq=False)
class Chains:
    """What chains give, one for each text that has some."""

    given: I64
    """Bytes of each."""
    faults: I64
    """The number of the rule that each breaks, or 0."""
    goes_on: I64
    """The unit where each breaks, or goes on behind its text."""
    bounds: I64
    """Where the extents of each begin in ``visits``, and where those of the last one end."""
    visits: I32
    """The numbers of the extents of each, in order."""


def follow(
    extents: Extents, first_units: I64, first_extents: I32, wanted: I64, most_bytes: int
) -> Chains:
    """Follow chains that begin at extents (``first``, or their count), for as many bytes.

    All arrays have a row for each chain; ``most`` is how many bytes all of them may give.
    """
    counts, chain_bytes, next_extent, visits = followed(
        first_extents, extents.next, extents.capacities, wanted, most_bytes
    )
    bounds = bounds_of(counts)
    goes_on = first_units.copy()
    visited = counts > 0
    last_visits = bounds[1:][visited] - 1
    goes_on[visited] = extents.following[visits[last_visits]]
    faults = np.where(
        next_extent < extents.count, int(rules.CHAIN_CYCLE), int(rules.CHAIN_WITHOUT_EXTENT)
    )
    faults[goes_on == 0] = int(rules.CHAIN_TOO_SHORT)
    faults[chain_bytes >= wanted] = 0
    faults[next_extent < 0] = int(rules.CHAINS_OVER_THE_FILE)
    return Chains(chain_bytes, faults, goes_on, bounds, visits)


def bounds_of(sizes: Any) -> I64:
    """Return the sum of the sizes before each element, and of all."""
    out: I64 = arena.empty(sizes.size + 1, np.int64)
    out[0] = 0
    np.cumsum(sizes, out=out[1:])
    return out


def end_of_part(bounds: I64, start: int, most: int) -> int:
    """Return the end of a part of at most this size in all; it has one element at least."""
    fitting_end = int(np.searchsorted(bounds, bounds[start] + most, "right")) - 1
    return max(start + 1, fitting_end)
