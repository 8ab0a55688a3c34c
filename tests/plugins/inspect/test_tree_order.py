"""The order of nodes, their cycles and their paths, against walks node by node."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fx_inspect.read import tree
from fxframework.model.strings import StringPool

from ...cases import cases

NAMES = (b"root", b"", b"a", b"bcdefgh", b"n" * 20)


def parents_of(shape: str, chance: random.Random) -> list[int]:
    """Return parents of up to 40 nodes; -1 for none, as the root's."""
    count = chance.randrange(1, 41)
    if shape == "any":
        parents = [chance.randrange(-1, count) for _ in range(count)]
    elif shape == "tree":
        parents = [chance.randrange(max(node, 1)) for node in range(count)]
    elif shape == "chains":  # most nodes are below the one before them
        parents = [
            node - 1 if chance.random() < 0.7 else chance.randrange(-1, count)
            for node in range(count)
        ]
    else:  # one chain, whose nodes lie in any order, and which may end in a ring
        order = [0, *chance.sample(range(1, count), count - 1)]
        parents = [0] * count
        for node, parent in zip(order[1:], order[:-1], strict=True):
            parents[node] = parent
        if count > 1 and chance.random() < 0.5:
            parents[order[1]] = order[-1]
    return [-1, *parents[1:]]


def walked(parents: list[int]) -> list[int]:
    """Return the nodes below the root, each before its children."""
    order = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += [child for child in reversed(range(1, len(parents))) if parents[child] == node]
    return order


def first_of_cycles(parents: list[int]) -> list[int]:
    """Return the least node of each cycle, in the order in which nodes lead to it."""
    cycles: dict[int, None] = {}
    for start in range(len(parents)):
        way = []
        node = start
        while node > 0 and node not in way:
            way.append(node)
            node = parents[node]
        if node > 0:
            cycles[min(way[way.index(node) :])] = None
    return list(cycles)


@cases("shape", ["any", "tree", "chains", "one chain"])
def test_nodes_are_in_the_order_of_a_walk(shape: str) -> None:
    chance = random.Random(shape)
    for _ in range(300):
        parents = parents_of(shape, chance)
        order = tree.tree_order(np.array(parents, np.int32))
        nodes = walked(parents)
        assert order.nodes.tolist() == nodes, parents
        assert order.cycles.tolist() == first_of_cycles(parents), parents
        numbers = {node: number for number, node in enumerate(nodes)}
        assert order.places.tolist() == [numbers.get(node, -1) for node in range(len(parents))]
        assert order.parents.tolist() == [numbers.get(parents[node], -1) for node in nodes]
        for number, end in enumerate(order.ends.tolist()):
            below = [
                later
                for later in range(number + 1, len(nodes))
                if any(above == number for above in ways_up(order.parents.tolist(), later))
            ]
            assert end == number + 1 + len(below), parents


def ways_up(parents: list[int], number: int) -> list[int]:
    """Return the numbers above a node."""
    above = []
    while number > 0:
        number = parents[number]
        above.append(number)
    return above


@cases("shape", ["tree", "chains", "one chain"])
def test_paths_are_those_of_parents_and_names(shape: str) -> None:
    chance = random.Random(shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree, "PATH_BYTES", 60)
        for _ in range(150):
            order = tree.tree_order(np.array(parents_of(shape, chance), np.int32))
            pool = StringPool()
            codes = [pool.intern(name) for name in NAMES]
            names = [0, *(chance.randrange(len(NAMES)) for _ in range(order.count - 1))]
            longest = chance.randrange(4, 100)
            own_codes = np.array([codes[name] for name in names], np.int32)
            patch.setattr(tree, "LONGEST_PATH", longest)
            path_codes = tree.paths_of(pool, own_codes, order, 1 << 20)
            paths: list[bytes] = []
            for name, parent, code in zip(
                names, order.parents.tolist(), path_codes.tolist(), strict=True
            ):
                paths.append(NAMES[name] if parent < 0 else paths[parent] + b"/" + NAMES[name])
                if len(paths[-1]) > longest:
                    assert code == -1
                else:
                    assert pool.bytes_of(code) == paths[-1]
