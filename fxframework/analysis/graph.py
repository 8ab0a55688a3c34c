"""Call graph: who calls whom, how often and for how long; as DOT, and how two of them differ."""

from __future__ import annotations

import colorsys
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis import kernels
from fxframework.analysis.calls import Calls, Function, Functions, dense
from fxframework.analysis.figures import FIELDS
from fxframework.analysis.spread import Spread, Spreads, spreads
from fxframework.io import arena
from fxframework.model.capture import Capture

__all__ = [
    "ROOT",
    "CallGraph",
    "GraphDifference",
    "Node",
    "call_graph",
    "difference",
    "dot",
    "dot_of_difference",
]

ROOT = 0
"""Number of the node that calls what nothing calls."""
SHADES = ("fff7ec", "fee8c8", "fdd49e", "fdbb84", "fc8d59", "ef6548", "d7301f", "b30000", "7f0000")
"""ColorBrewer's sequential scheme OrRd of nine: light is little."""
FALLS = ("f7f7f7", "d9f0d3", "a6dba0", "5aae61", "1b7837")
"""The green half of ColorBrewer's diverging schemes: dark is much less than before."""
RISES = ("f7f7f7", "fddbc7", "f4a582", "d6604d", "b2182b")
"""The red half: dark is much more than before."""


@attrs.frozen
class Node:
    """A function in the graph."""

    number: int
    """From 1 on: its id, where every function has one."""
    function: Function
    spread: Spread

    @property
    def key(self) -> str:
        """Its name in DOT."""
        return f"F{self.number}"


@attrs.frozen(eq=False)
class CallGraph:
    """Functions, and the calls between them."""

    nodes: _Nodes
    edges: _Edges
    """By the numbers of caller and callee; ROOT calls what nothing calls."""
    per_second: int
    """Units of time in a second; 0: not known."""
    asynchronous: int
    """Slices that nest in no stack, which are left out."""

    def seconds(self, value: int | None) -> float | None:
        """A time in seconds, or in ticks where a rate is missing."""
        return None if value is None else value / (self.per_second or 1)

    def figure(self, spread: Spread, name: str) -> float | None:
        """One of FIGURES, times in seconds; None where there is none."""
        if name == "none":
            return None
        value: int | None = getattr(spread, FIELDS.get(name, name))
        return value if name == "count" else self.seconds(value)


def call_graph(capture: Capture, *, by: str = "") -> CallGraph:
    """The call graph of a capture, of functions identified by ``by`` (see ``Calls.of``).

    Raises UsageError where there are no slices.
    """
    calls = Calls.of(capture, by)
    functions = calls.functions
    count = len(functions)
    pairs = arena.empty(len(calls), np.int64)
    kernels.pair_up(calls.function.data, calls.parent.data, max(count, 1), pairs.data)
    group, distinct = dense(pairs)
    ids = functions.ids
    numbers = np.arange(1, count + 1)
    if ids is not None and bool((ids > 0).all()) and np.unique(ids).size == count:
        numbers = ids
    nodes = _Nodes(numbers, functions, spreads(calls.function, count, calls.parent, calls.length))
    edges = spreads(group, distinct.size, calls.parent, calls.length)
    return CallGraph(nodes, _Edges(numbers, distinct, edges), calls.per_second, calls.asynchronous)


class _Nodes(Mapping[int, Node]):
    """Nodes in columns, by their numbers, which ascend."""

    def __init__(self, numbers: NDArray[Any], functions: Functions, found: Spreads) -> None:
        self.spreads = found
        self._numbers, self._functions = numbers, functions

    def __len__(self) -> int:
        return int(self._numbers.size)

    def __iter__(self) -> Iterator[int]:
        return map(int, self._numbers)

    def __getitem__(self, number: int) -> Node:
        place = int(np.searchsorted(self._numbers, number))
        if place == len(self) or self._numbers[place] != number:
            raise KeyError(number)
        return Node(number, self._functions[place], self.spreads[place])


class _Edges(Mapping[tuple[int, int], Spread]):
    """Spreads of calls between two nodes, by the numbers of these."""

    def __init__(self, numbers: NDArray[Any], pairs: NDArray[Any], found: Spreads) -> None:
        self.spreads = found
        self._numbers, self._pairs = numbers, pairs

    def __len__(self) -> int:
        return int(self._pairs.size)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        count = self._numbers.size
        for pair in map(int, self._pairs):
            caller, callee = divmod(pair, count)
            yield int(self._numbers[caller - 1]) if caller else ROOT, int(self._numbers[callee])

    def __getitem__(self, ends: tuple[int, int]) -> Spread:
        caller, callee = np.searchsorted(self._numbers, ends).tolist()
        pair = (caller + 1 if ends[0] != ROOT else 0) * self._numbers.size + callee
        place = int(np.searchsorted(self._pairs, pair))
        if place == len(self) or self._pairs[place] != pair:
            raise KeyError(ends)
        return self.spreads[place]


# --- DOT ---------------------------------------------------------------------------------------


def dot(
    graph: CallGraph,
    *,
    edge_label: str = "sum",
    vertex_label: str = "count",
    edge_color: str = "sum",
    vertex_color: str = "sum",
) -> Iterator[str]:
    """The graph in the language of Graphviz, line by line, with one of FIGURES for each of these.

    Edges first, then vertices, in the form of llvm-xray: times in seconds, and the darker the more,
    by the square root of the share of the greatest.
    """
    yield "digraph xray {"
    yield "node [shape=record];"
    shade = _shades(graph, graph.edges.spreads, edge_color)
    for (caller, callee), spread in graph.edges.items():
        label = _figure_text(graph, spread, edge_label)
        yield f"F{caller} -> F{callee} {_attributes(label, shade(spread))};"
    shade = _shades(graph, graph.nodes.spreads, vertex_color)
    for node in graph.nodes.values():
        value = _figure_text(graph, node.spread, vertex_label)
        label = _escaped(node.function.name) + ("" if value is None else f"|{value}")
        yield f"{node.key} {_attributes(f'{{{label}}}', shade(node.spread))};"
    yield "}"


def _attributes(label: str | None, colour: str | None) -> str:
    given = [("label", label), ("color", colour)]
    return "[" + " ".join(f'{name}="{text}"' for name, text in given if text is not None) + "]"


def _figure_text(graph: CallGraph, spread: Spread, name: str) -> str | None:
    value = graph.figure(spread, name)
    if value is None:
        return None
    return str(value) if name == "count" else f"{value:e}"


def _escaped(name: str) -> str:
    """A name within a label of the shape `record`, in quotes."""
    return "".join(
        f"\\{letter}" if letter in '{}|<>"\\' else " " if ord(letter) < 0x20 else letter
        for letter in name
    )


def _shades(graph: CallGraph, some: Spreads, name: str) -> Callable[[Spread], str | None]:
    """What gives the colour of a figure, beside the greatest of its kind."""
    most = 0.0
    if name != "none":
        greatest = max(int(some.column(FIELDS.get(name, name)).max(initial=0)), 0)
        most = greatest / (1 if name == "count" else graph.per_second or 1)

    def shade(spread: Spread) -> str | None:
        value = graph.figure(spread, name)
        if value is None:
            return None
        return _between(SHADES, math.sqrt(value / most) if most else 0)

    return shade


@functools.lru_cache(1 << 12)
def _between(scale: Sequence[str], share: float) -> str:
    """The colour at a share of the way along a scale, between two by hue, saturation and value."""
    place = min(max(share, 0.0), 1.0) * (len(scale) - 1)
    lower = min(int(place), len(scale) - 2)
    part = place - lower
    ends = (
        colorsys.rgb_to_hsv(*(int(text[at : at + 2], 16) / 255 for at in (0, 2, 4)))
        for text in scale[lower : lower + 2]
    )
    mixed = (low + (high - low) * part for low, high in zip(*ends, strict=True))
    red, green, blue = (round(value * 255) for value in colorsys.hsv_to_rgb(*mixed))
    return f"#{red:02X}{green:02X}{blue:02X}"


# --- Differences -------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class GraphDifference:
    """Two graphs, whose functions are the same where their names are."""

    sides: tuple[CallGraph, CallGraph]
    names: Sequence[str]
    """Of all functions of both; nodes are numbered from 1 on in this order."""
    nodes: Mapping[str, tuple[Spread | None, Spread | None]]
    edges: Mapping[tuple[str | None, str], tuple[Spread | None, Spread | None]]
    """By the names of caller (None: nobody) and callee; None where a side has no such call."""

    def change(self, pair: tuple[Spread | None, Spread | None], name: str) -> float | None:
        """By what share of the first a figure of the second is greater; None where there is none.

        Something new is infinitely greater; something gone is smaller by all of it, -1.
        """
        before, after = (
            None if spread is None else graph.figure(spread, name)
            for graph, spread in zip(self.sides, pair, strict=True)
        )
        if name == "none" or (before is None and after is None):
            return None
        if not before:
            return math.inf if after else 0.0
        return ((after or 0) - before) / before


def difference(first: CallGraph, second: CallGraph) -> GraphDifference:
    """What differs between two graphs. Of functions of one name in one graph the first counts."""
    names: dict[str, None] = {}
    nodes: dict[str, list[Spread | None]] = {}
    edges: dict[tuple[str | None, str], list[Spread | None]] = {}
    for side, graph in enumerate((first, second)):
        for node in graph.nodes.values():
            name = node.function.name
            names.setdefault(name)
            both = nodes.setdefault(name, [None, None])
            both[side] = both[side] or node.spread
        for (caller, callee), spread in graph.edges.items():
            above = None if caller == ROOT else graph.nodes[caller].function.name
            both = edges.setdefault((above, graph.nodes[callee].function.name), [None, None])
            both[side] = both[side] or spread
    return GraphDifference(
        (first, second),
        list(names),
        {name: (both[0], both[1]) for name, both in nodes.items()},
        {ends: (both[0], both[1]) for ends, both in edges.items()},
    )


def dot_of_difference(
    found: GraphDifference,
    *,
    edge_label: str = "sum",
    vertex_label: str = "sum",
    edge_color: str = "sum",
    vertex_color: str = "sum",
) -> Iterator[str]:
    """The difference in the language of Graphviz: percents, red where it grew, green where it fell.

    What is twice as much or more is the darkest red, what is gone the darkest green.
    """
    numbers = {name: number for number, name in enumerate(found.names, 1)}
    yield "digraph xrayDiff {"
    yield "node [shape=record];"
    for (caller, callee), pair in found.edges.items():
        above = 0 if caller is None else numbers[caller]
        label = _percent(found.change(pair, edge_label))
        colour = _swing(found.change(pair, edge_color))
        yield f"F{above} -> F{numbers[callee]} {_attributes(label, colour)};"
    for name, pair in found.nodes.items():
        value = _percent(found.change(pair, vertex_label))
        label = _escaped(name) + ("" if value is None else f"|{value}")
        colour = _swing(found.change(pair, vertex_color))
        yield f"F{numbers[name]} {_attributes(f'{{{label}}}', colour)};"
    yield "}"


def _percent(change: float | None) -> str | None:
    if change is None:
        return None
    return "new" if math.isinf(change) else f"{change:+.2%}"


def _swing(change: float | None) -> str | None:
    if change is None:
        return None
    return _between(RISES if change > 0 else FALLS, min(abs(change), 1.0))
