"""Call graphs: functions and the calls between them; their DOT output and their differences."""

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
"""Number of the root node, the caller of functions that have no caller."""
SHADES = ("fff7ec", "fee8c8", "fdd49e", "fdbb84", "fc8d59", "ef6548", "d7301f", "b30000", "7f0000")
"""ColorBrewer's sequential scheme OrRd of nine, from little (light) to much (dark)."""
FALLS = ("f7f7f7", "d9f0d3", "a6dba0", "5aae61", "1b7837")
"""The green half of a diverging ColorBrewer scheme, from no decrease to the largest (dark)."""
RISES = ("f7f7f7", "fddbc7", "f4a582", "d6604d", "b2182b")
"""The red half, from no increase to the largest (dark)."""


@attrs.frozen
class Node:
    """A function in the graph."""

    number: int
    """Number from 1 on; the id of the function if all functions have distinct positive ids."""
    function: Function
    spread: Spread

    @property
    def key(self) -> str:
        """Identifier of the node in DOT."""
        return f"F{self.number}"


@attrs.frozen(eq=False)
class CallGraph:
    """Functions, and the calls between them."""

    nodes: _Nodes
    edges: _Edges
    """Spreads of calls by the numbers of caller (ROOT: none) and callee."""
    per_second: int
    """Units of time per second; 0 if unknown."""
    asynchronous: int
    """Number of asynchronous slices, which belong to no stack and are left out."""

    def seconds(self, value: int | None) -> float | None:
        """Return a time in seconds, or in ticks if the rate is unknown."""
        return None if value is None else value / (self.per_second or 1)

    def figure(self, spread: Spread, name: str) -> float | None:
        """Return one of FIGURES, times in seconds; None if there is no value."""
        if name == "none":
            return None
        value: int | None = getattr(spread, FIELDS.get(name, name))
        return value if name == "count" else self.seconds(value)


def call_graph(capture: Capture, *, by: str = "") -> CallGraph:
    """Return the call graph of a capture, with calls grouped by ``by`` (see ``Calls.of``).

    Raises UsageError if the capture has no slices.
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
    """Nodes by ascending number, stored as columns."""

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
    """Spreads of the calls between two nodes, by the numbers of caller and callee."""

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
    """Yield the lines of the graph as DOT; each option is one of FIGURES.

    Edges come first, then vertices, as llvm-xray writes them: times are in seconds, and colours
    darken with the square root of a figure's share of the greatest.
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
    """Escape a name for a label of a node of shape `record`."""
    return "".join(
        f"\\{letter}" if letter in '{}|<>"\\' else " " if ord(letter) < 0x20 else letter
        for letter in name
    )


def _shades(graph: CallGraph, some: Spreads, name: str) -> Callable[[Spread], str | None]:
    """Return a function that maps a spread to a colour, relative to the greatest of ``some``."""
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
    """Return the colour at ``share`` (0 to 1) of a scale, interpolated in HSV."""
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
    """Two graphs, with functions matched by name."""

    sides: tuple[CallGraph, CallGraph]
    names: Sequence[str]
    """Names of the functions of both; nodes are numbered from 1 on in this order."""
    nodes: Mapping[str, tuple[Spread | None, Spread | None]]
    edges: Mapping[tuple[str | None, str], tuple[Spread | None, Spread | None]]
    """Spreads by the names of caller (None: no caller) and callee; None if a side has no call."""

    def change(self, pair: tuple[Spread | None, Spread | None], name: str) -> float | None:
        """Return the relative change of a figure from first to second; None if neither has it.

        The change is infinite for something new and -1 for something gone.
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
    """Compare two graphs. If functions of one graph share a name, the first one counts."""
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
    """Yield the lines of the difference as DOT: percentages, increases red, decreases green.

    The darkest red means at least twice as much, the darkest green means gone.
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
