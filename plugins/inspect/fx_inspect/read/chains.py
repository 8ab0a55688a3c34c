"""Chains: which extents have the bytes of texts, followed for all texts at once.

A chain may lead back to itself, into other chains, or to anywhere. So that this stays in proportion
to the file, an extent counts once in a chain, and all chains together give at most as many bytes
as the file has: what is behind that, in the order of the texts, is cut.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_inspect import rules
from fxframework.kernels.sorting import joined_ranges

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
Mask = NDArray[np.bool_]


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
    walk = _Walk(extents, first_extents, wanted, most_bytes)
    walk.go()
    counts = walk.counts
    visits = walk.joined()
    bounds = bounds_of(counts)
    chain_bytes = walk.given
    bytes_before = np.cumsum(chain_bytes) - chain_bytes
    has_extent = first_extents < extents.count
    # From the one that goes over, only its first bytes count, and of later ones none.
    bytes_so_far = bytes_before + chain_bytes
    is_over = has_extent & (wanted > 0) & (bytes_so_far > most_bytes)
    cut_chains = np.flatnonzero(is_over & (bytes_before < most_bytes))
    bytes_left = np.maximum(most_bytes - bytes_before, 0)
    chain_bytes[is_over] = bytes_left[is_over]
    extents_counted = np.where(is_over, np.minimum(counts, 1), counts)
    for chain in cut_chains.tolist():  # there is one at most
        extents_of_chain = visits[bounds[chain] : bounds[chain + 1]]
        sums = np.cumsum(extents.capacities[extents_of_chain], dtype=np.int64)
        extents_counted[chain] = min(
            extents_of_chain.size, int(np.searchsorted(sums, chain_bytes[chain], "right")) + 1
        )
    if (extents_counted < counts).any():
        first_visits = np.repeat(bounds[:-1], counts)
        index = np.arange(visits.size) - first_visits
        visits = visits[index < np.repeat(extents_counted, counts)]
        bounds = bounds_of(extents_counted)
    goes_on = first_units.copy()
    visited = extents_counted > 0
    goes_on[visited] = extents.following[visits[bounds[1:][visited] - 1]]
    following_extents = np.append(extents.next, extents.count)
    last_extents = np.where(visited, visits[np.maximum(bounds[1:] - 1, 0)] if visits.size else 0, 0)
    next_extent = np.where(visited, following_extents[last_extents], first_extents)
    faults = np.where(
        next_extent < extents.count, int(rules.CHAIN_CYCLE), int(rules.CHAIN_WITHOUT_EXTENT)
    )
    faults[goes_on == 0] = int(rules.CHAIN_TOO_SHORT)
    faults[chain_bytes >= wanted] = 0
    faults[is_over] = int(rules.CHAINS_OVER_THE_FILE)
    return Chains(chain_bytes, faults, goes_on, bounds, visits)


class _Walk:
    """Chains that are followed for 1 extent, then for 2, 4, 8 and so on."""

    def __init__(self, extents: Extents, first: I32, wanted: I64, most_bytes: int) -> None:
        self.none = extents.count
        self.next = np.append(extents.next, np.int32(self.none)).astype(np.int32)
        self.capacities = np.append(extents.capacities, np.int32(0))
        self.reach = _reach(self.next)
        self.wanted = wanted
        self.most = most_bytes
        self.first = first
        self.counts = np.zeros(first.size, np.int64)
        self.given = np.zeros(first.size, np.int64)
        self._pieces: list[tuple[I64, I64, I32]] = []

    def go(self) -> None:
        """Follow all chains to their ends."""
        has_extent = self.first < self.none
        chains = np.flatnonzero(has_extent & (self.wanted > 0))
        first_extents = self.first[chains]
        total = self.capacities[first_extents].astype(np.int64)
        wanted = self.wanted[chains]
        self.given[chains] = np.minimum(total, wanted)
        goes_on = total < wanted
        extents = first_extents.reshape(-1, 1)
        self._end(chains, extents, np.ones(chains.size, np.int64), ~goes_on)
        chains = chains[goes_on]
        extents = extents[goes_on]
        total = total[goes_on]
        jump = self.next
        while chains.size:
            width = extents.shape[1]
            next_extents = jump[extents]
            running_bytes = (
                np.cumsum(self.capacities[next_extents], axis=1, dtype=np.int64) + total[:, None]
            )
            wanted = self.wanted[chains]
            extents_there = np.count_nonzero(next_extents < self.none, axis=1)
            steps = np.minimum(extents_there, np.clip(self.reach[extents[:, 0]] - width, 0, width))
            is_too_little = running_bytes < wanted[:, None]
            steps_needed = np.count_nonzero(is_too_little, axis=1) + 1
            steps = np.minimum(steps, steps_needed)
            bytes_so_far = np.take_along_axis(running_bytes, np.maximum(steps - 1, 0)[:, None], 1)[
                :, 0
            ]
            total = np.where(steps > 0, bytes_so_far, total)
            self.given[chains] = np.minimum(total, wanted)
            ends = (steps < width) | (total >= wanted)
            # A chain that begins behind as many bytes as all may give is cut, whatever follows.
            bytes_before = np.cumsum(self.given) - self.given
            is_cut = bytes_before[chains] >= self.most
            ends |= is_cut
            extents = np.concatenate((extents, next_extents), axis=1)
            extent_counts = np.where(is_cut, 1, width + steps)
            self._end(chains, extents, extent_counts, ends)
            chains = chains[~ends]
            extents = extents[~ends]
            total = total[~ends]
            jump = jump[jump]

    def _end(self, chains: I64, extents: I32, extent_counts: I64, ends: Mask) -> None:
        """Keep the first ``counts`` extents of the chains that end."""
        extent_counts = extent_counts[ends]
        self.counts[chains[ends]] = extent_counts
        places = np.arange(extents.shape[1])
        is_mine = places < extent_counts[:, None]
        extents_of_chains = extents[ends][is_mine]
        self._pieces.append((chains[ends], extent_counts, extents_of_chains))

    def joined(self) -> I32:
        """Return the extents of all chains, in the order of the chains."""
        starts = bounds_of(self.counts)
        visits = np.empty(int(starts[-1]), np.int32)
        for chains, counts, extents in self._pieces:
            visits[joined_ranges(starts[chains], counts)] = extents
        return visits


def _reach(next_of: I32) -> I64:
    """Return how many extents can be met from each, and from none, before one comes again.

    Where no extent comes again, that is more than there are.
    """
    none = next_of.size - 1
    endless = np.full(next_of.size, next_of.size, np.int64)
    jump = next_of
    steps = 1
    while (jump != none).any():
        if steps > none:
            break
        jump = jump[jump]
        steps *= 2
    else:
        return endless
    # An extent that so many steps lead to is in a cycle.
    in_cycle = np.zeros(next_of.size, bool)
    in_cycle[jump] = True
    in_cycle[none] = False
    entry = np.where(in_cycle, np.arange(next_of.size), next_of)
    to_entry = np.where(in_cycle, 0, 1)
    least = np.arange(next_of.size)
    around = next_of
    for _ in range(steps.bit_length()):
        to_entry = to_entry + to_entry[entry]
        entry = entry[entry]
        least = np.minimum(least, least[around])
        around = around[around]
    sizes = np.bincount(least[in_cycle], minlength=next_of.size)
    until_again = to_entry + sizes[least[entry]]
    return np.where(in_cycle[entry], until_again, endless)


def bounds_of(sizes: Any) -> I64:
    """Return the sum of the sizes before each element, and of all."""
    out = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def end_of_part(bounds: I64, start: int, most: int) -> int:
    """Return the end of a part of at most this size in all; it has one element at least."""
    fitting_end = int(np.searchsorted(bounds, bounds[start] + most, "right")) - 1
    return max(start + 1, fitting_end)
