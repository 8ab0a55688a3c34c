"""Call graphs: functions and the calls between them; their DOT output and their differences."""

from __future__ import annotations

import colorsys
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.calls import Calls, Function, Functions
from fxframework.analysis.figures import FIELDS
from fxframework.analysis.spread import Spread, Spreads, spreads
from fxframework.kernels.sorting import dense
from fxframework.model.capture import Capture

K = TypeVar("K")

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
        if value is None:
            return None
        return value / (self.per_second or 1)

    def figure(self, spread: Spread | None, name: str) -> float | None:
        """Return one of FIGURES, times in seconds; None if there is no value."""
        if name == "none" or spread is None:
            return None
        value: int | None = getattr(spread, FIELDS.get(name, name))
        if name == "count":
            return value
        return self.seconds(value)


def call_graph(capture: Capture, *, by: str = "") -> CallGraph:
    """Return the call graph of a capture, with calls grouped by ``by`` (see ``Calls.of``).

    Raises UsageError if the capture has no slices.
    """
    calls = Calls.of(capture, by)
    functions = calls.functions
    count = len(functions)
    # One number for who calls whom: caller + 1 (0: nobody), times the functions, plus the callee.
    enclosed = np.flatnonzero((calls.parent >= 0) & (calls.parent < len(calls)))
    pairs = calls.function.astype(np.int64)
    callers = calls.function[calls.parent[enclosed]].astype(np.int64) + 1
    pairs[enclosed] += callers * count
    pair_of_call, distinct_pairs = dense(pairs)
    ids = functions.ids
    numbers = np.arange(1, count + 1)
    if ids is not None and bool((ids > 0).all()) and np.unique(ids).size == count:
        numbers = ids
    columns = calls.parent, calls.length
    node_spreads = spreads(calls.function, count, *columns, stands_for=calls.stands_for)
    edge_spreads = spreads(pair_of_call, distinct_pairs.size, *columns, stands_for=calls.stands_for)
    return CallGraph(
        nodes=_Nodes(numbers, functions, node_spreads),
        edges=_Edges(numbers, distinct_pairs, edge_spreads),
        per_second=calls.per_second,
        asynchronous=calls.asynchronous,
    )


class _Nodes(Mapping[int, Node]):
    """Nodes by ascending number, stored as columns."""

    def __init__(
        self, numbers: NDArray[Any], functions: Functions, spreads_of_nodes: Spreads
    ) -> None:
        self.spreads = spreads_of_nodes
        self._numbers = numbers
        self._functions = functions

    def __len__(self) -> int:
        return int(self._numbers.size)

    def __iter__(self) -> Iterator[int]:
        return map(int, self._numbers)

    def __getitem__(self, number: int) -> Node:
        index = int(np.searchsorted(self._numbers, number))
        if index == len(self) or self._numbers[index] != number:
            raise KeyError(number)
        return Node(number, self._functions[index], self.spreads[index])


class _Edges(Mapping[tuple[int, int], Spread]):
    """Spreads of the calls between two nodes, by the numbers of caller and callee.

    ``pairs`` are numbers, (index of the caller + 1) * nodes + index of the callee: 2 of 5 nodes,
    called by nobody, is 2, and called by 0 is 7.
    """

    def __init__(
        self, numbers: NDArray[Any], pairs: NDArray[Any], spreads_of_edges: Spreads
    ) -> None:
        self.spreads = spreads_of_edges
        self._numbers = numbers
        self._pairs = pairs

    def __len__(self) -> int:
        return int(self._pairs.size)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        for pair in map(int, self._pairs):
            caller, callee = divmod(pair, self._numbers.size)
            caller_number = ROOT
            if caller:
                caller_number = int(self._numbers[caller - 1])
            yield caller_number, int(self._numbers[callee])

    def __getitem__(self, ends: tuple[int, int]) -> Spread:
        caller_number, _ = ends
        caller, callee = np.searchsorted(self._numbers, ends).tolist()
        pair = callee
        if caller_number != ROOT:
            pair += (caller + 1) * self._numbers.size
        index = int(np.searchsorted(self._pairs, pair))
        if index == len(self) or self._pairs[index] != pair:
            raise KeyError(ends)
        return self.spreads[index]


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
        figure = _figure_text(graph, node.spread, vertex_label)
        label = _record(node.function.name, figure)
        attributes = _attributes(label, shade(node.spread))
        yield f"{node.key} {attributes};"
    yield "}"


def _attributes(label: str | None, colour: str | None) -> str:
    attributes = []
    if label is not None:
        attributes.append(f'label="{label}"')
    if colour is not None:
        attributes.append(f'color="{colour}"')
    return f"[{' '.join(attributes)}]"


def _record(name: str, value: str | None) -> str:
    """Return the label of a node of shape `record`: the name, and below it a value."""
    name = _escaped(name)
    if value is None:
        return f"{{{name}}}"
    return f"{{{name}|{value}}}"


def _figure_text(graph: CallGraph, spread: Spread, name: str) -> str | None:
    value = graph.figure(spread, name)
    if value is None:
        return None
    return str(value) if name == "count" else f"{value:e}"


def _escaped(name: str) -> str:
    """Escape a name for a label of a node of shape `record`."""
    letters = []
    for letter in name:
        if letter in '{}|<>"\\':
            letters.append(f"\\{letter}")
        elif ord(letter) < 0x20:
            letters.append(" ")
        else:
            letters.append(letter)
    return "".join(letters)


def _shades(graph: CallGraph, others: Spreads, name: str) -> Callable[[Spread], str | None]:
    """Return a function that maps a spread to a colour, relative to the greatest of ``others``."""
    greatest = 0.0
    if name != "none":
        greatest = max(int(others.column(FIELDS.get(name, name)).max(initial=0)), 0)
        if name != "count":
            greatest /= graph.per_second or 1

    def shade(spread: Spread) -> str | None:
        value = graph.figure(spread, name)
        if value is None:
            return None
        return _colour(SHADES, math.sqrt(value / greatest) if greatest else 0)

    return shade


@functools.lru_cache(1 << 12)
def _colour(scale: Sequence[str], share: float) -> str:
    """Return the colour at ``share`` (0 to 1) of a scale, interpolated in HSV."""
    share = min(max(share, 0.0), 1.0)
    position = share * (len(scale) - 1)
    lower = min(int(position), len(scale) - 2)
    weight = position - lower
    low = _hsv(scale[lower])
    high = _hsv(scale[lower + 1])
    hsv = [start + (end - start) * weight for start, end in zip(low, high, strict=True)]
    rgb = colorsys.hsv_to_rgb(*hsv)
    red, green, blue = (round(channel * 255) for channel in rgb)
    return f"#{red:02X}{green:02X}{blue:02X}"


def _hsv(colour: str) -> tuple[float, float, float]:
    """Return hue, saturation and value of a colour such as ``fff7ec``."""
    red, green, blue = (channel / 255 for channel in bytes.fromhex(colour))
    return colorsys.rgb_to_hsv(red, green, blue)


# --- Differences -------------------------------------------------------------------------------


@attrs.frozen(eq=False)
class GraphDifference:
    """Two graphs, with functions matched by name."""

    sides: tuple[CallGraph, CallGraph]
    nodes: Mapping[str, tuple[Spread | None, Spread | None]]
    """Spreads by name, in the order in which nodes are numbered from 1 on."""
    edges: Mapping[tuple[str | None, str], tuple[Spread | None, Spread | None]]
    """Spreads by the names of caller (None: no caller) and callee; None if a side has no call."""

    def change(self, pair: tuple[Spread | None, Spread | None], name: str) -> float | None:
        """Return the relative change of a figure from first to second; None if neither has it.

        The change is infinite for something new and -1 for something gone.
        """
        graph_before, graph_after = self.sides
        spread_before, spread_after = pair
        before = graph_before.figure(spread_before, name)
        after = graph_after.figure(spread_after, name)
        if before is None and after is None:
            return None
        if not before:
            return math.inf if after else 0.0
        return ((after or 0) - before) / before


def difference(first: CallGraph, second: CallGraph) -> GraphDifference:
    """Compare two graphs. If functions of one graph share a name, the first one counts."""
    (nodes_before, edges_before), (nodes_after, edges_after) = map(_by_name, (first, second))
    return GraphDifference(
        sides=(first, second),
        nodes=_of_both(nodes_before, nodes_after),
        edges=_of_both(edges_before, edges_after),
    )


def _of_both(
    before: Mapping[K, Spread], after: Mapping[K, Spread]
) -> dict[K, tuple[Spread | None, Spread | None]]:
    """Return what both sides have by key, those of the first side first."""
    return {key: (before.get(key), after.get(key)) for key in {**before, **after}}


def _by_name(graph: CallGraph) -> tuple[dict[str, Spread], dict[tuple[str | None, str], Spread]]:
    """Return the spreads of nodes by name, and those of edges by the names of both ends."""
    nodes: dict[str, Spread] = {}
    edges: dict[tuple[str | None, str], Spread] = {}
    for node in graph.nodes.values():
        nodes.setdefault(node.function.name, node.spread)
    for (caller, callee), spread in graph.edges.items():
        caller_name = None if caller == ROOT else graph.nodes[caller].function.name
        callee_name = graph.nodes[callee].function.name
        edges.setdefault((caller_name, callee_name), spread)
    return nodes, edges


def dot_of_difference(
    difference: GraphDifference,
    *,
    edge_label: str = "sum",
    vertex_label: str = "sum",
    edge_color: str = "sum",
    vertex_color: str = "sum",
) -> Iterator[str]:
    """Yield the lines of the difference as DOT: percentages, increases red, decreases green.

    The darkest red means at least twice as much, the darkest green means gone.
    """
    numbers = {name: number for number, name in enumerate(difference.nodes, 1)}
    yield "digraph xrayDiff {"
    yield "node [shape=record];"
    for (caller, callee), pair in difference.edges.items():
        caller_number = ROOT if caller is None else numbers[caller]
        label = _percent(difference.change(pair, edge_label))
        colour = _colour_of_change(difference.change(pair, edge_color))
        yield f"F{caller_number} -> F{numbers[callee]} {_attributes(label, colour)};"
    for name, pair in difference.nodes.items():
        label = _record(name, _percent(difference.change(pair, vertex_label)))
        colour = _colour_of_change(difference.change(pair, vertex_color))
        yield f"F{numbers[name]} {_attributes(label, colour)};"
    yield "}"


def _percent(change: float | None) -> str | None:
    if change is None:
        return None
    return "new" if math.isinf(change) else f"{change:+.2%}"


def _colour_of_change(change: float | None) -> str | None:
    if change is None:
        return None
    scale = RISES if change > 0 else FALLS
    return _colour(scale, min(abs(change), 1.0))
