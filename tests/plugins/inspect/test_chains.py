"""Chains of extents, followed for all texts at once, against a loop of single steps."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_inspect import rules
from fx_inspect.read.chains import Extents, follow

from ...cases import cases

BEGIN = 100
"""The unit of the first extent; others follow it."""


def made(next_units: list[int], capacities: list[int]) -> Extents:
    units = np.arange(BEGIN, BEGIN + len(next_units), dtype=np.int32)
    following = np.array(next_units, np.int32)
    return Extents(units, following, np.array(capacities, np.int32), numbers(following, units.size))


def numbers(units: NDArray[Any], count: int) -> NDArray[Any]:
    """The numbers of extents at units; their count where there is none."""
    found = units - BEGIN
    return np.where((found >= 0) & (found < count), found, count).astype(np.int32)


def by_steps(extents: Extents, firsts: list[int], wanted: list[int], most: int) -> list[object]:
    """What each chain gives, its fault, where it goes on, and the extents it visits."""
    found: list[object] = []
    for first, bytes_wanted in zip(firsts, wanted, strict=True):
        unit, given, fault = first, 0, 0
        visits: list[int] = []
        while given < bytes_wanted and not fault:
            number = unit - BEGIN
            if unit == 0:
                fault = int(rules.CHAIN_TOO_SHORT)
            elif not 0 <= number < extents.count:
                fault = int(rules.CHAIN_WITHOUT_EXTENT)
            elif number in visits:
                fault = int(rules.CHAIN_CYCLE)
            else:
                visits.append(number)
                part = min(int(extents.capacities[number]), bytes_wanted - given)
                if part > most:
                    fault, part = int(rules.CHAINS_OVER_THE_FILE), most
                given += part
                most -= part
                if not fault:
                    unit = int(extents.following[number])
        goes_on = None if fault == int(rules.CHAINS_OVER_THE_FILE) else unit
        found.append((given, fault, goes_on, visits))
    return found


def at_once(extents: Extents, firsts: list[int], wanted: list[int], most: int) -> list[object]:
    units = np.array(firsts, np.int64)
    first = numbers(units, extents.count)
    chains = follow(extents, units, first, np.array(wanted, np.int64), most)
    found: list[object] = []
    for row in range(len(firsts)):
        fault = int(chains.faults[row])
        goes_on = int(chains.goes_on[row])
        visits = chains.visits[chains.bounds[row] : chains.bounds[row + 1]].tolist()
        is_over = fault == int(rules.CHAINS_OVER_THE_FILE)
        found.append((int(chains.given[row]), fault, None if is_over else goes_on, visits))
    return found


@cases("seed", range(60))
def test_chains_are_those_of_single_steps(seed: int) -> None:
    chance = random.Random(seed)
    count = chance.choice([0, 1, 2, 5, 30, 200])
    behind = [0, 1, 99, BEGIN + count]

    def unit() -> int:
        inside = count and chance.random() < 0.9
        return BEGIN + chance.randrange(count) if inside else chance.choice(behind)

    straight = chance.random() < 0.5
    next_units = [
        BEGIN + number + 1 if straight and chance.random() < 0.95 else unit()
        for number in range(count)
    ]
    extents = made(next_units, [8 * chance.randrange(1, 5) for _ in range(count)])
    firsts = [unit() for _ in range(chance.randrange(40))]
    wanted = [chance.choice([0, 1, 8, 30, 300, 1 << 32]) for _ in firsts]
    for most in (0, 50, 1000, 1 << 40):
        assert at_once(extents, firsts, wanted, most) == by_steps(extents, firsts, wanted, most)


@cases("shape", ["one", "ring", "shared"])
def test_long_chains_take_memory_in_proportion(shape: str) -> None:
    count = 1 << 16
    texts = 1 if shape == "one" else count
    order = np.random.default_rng(1).permutation(count)
    next_units = np.zeros(count, np.int64)
    next_units[order[:-1]] = BEGIN + order[1:]
    if shape == "ring":
        next_units[order[-1]] = BEGIN + order[0]
    extents = made(next_units.tolist(), [8] * count)
    firsts = BEGIN + np.resize(order, texts)
    nbytes = 16 * (count + texts)
    wanted = np.full(texts, 1 << 32)
    tracemalloc.start()
    try:
        chains = follow(extents, firsts, numbers(firsts, count), wanted, nbytes)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert int(chains.given.sum()) == min(nbytes, 8 * count * texts)
    assert peak < 16 * nbytes
