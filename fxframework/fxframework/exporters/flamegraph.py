"""The exporter `flamegraph`: a self-contained SVG that zooms and searches in a browser.

A frame is a function on a path of calls; its width is its time, including its callees. Threads are
at the top, and callees below their callers.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np

from fxframework.analysis.tree import CallTree, merged
from fxframework.exporters.columns import first_of_runs, starts_of
from fxframework.exporters.page import template
from fxframework.exporters.stacks import stacks_of
from fxframework.io.sink import Sink
from fxframework.kernels.arrays import F64, I32, Bools
from fxframework.kit.export import Export
from fxframework.kit.row_texts import in_pieces
from fxframework.model.capture import Capture

# Pixels.
WIDTH = 1200
"""Width of the picture."""
ROW = 17
"""Height of a level."""
TOP = 44
"""Space above the first level."""
BOTTOM = 24
"""Space below the last level."""
NARROWEST = 0.1
"""Pixels; narrower siblings are drawn as one frame."""
LETTER = 7
"""Approximate width of a character in pixels."""
UNITS = {"ns": "ns", "count": "calls", "ticks": "ticks"}
INVALID = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Characters that XML cannot contain, or that change the text direction."""
SEVERAL = -1
"""In place of a node: a frame of several nodes."""
NARROW = "frames narrower than 0.1 px, which are drawn together"


class Frame(NamedTuple):
    """A frame of the picture; ``left`` and ``width`` are in pixels."""

    level: int
    left: float
    width: float
    name: str
    weight: float
    node: int
    """The node of the tree, or ``SEVERAL``."""


class FlameExport(Export):
    """Draws the calls of all captures as one picture."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        self._trees: list[CallTree] = []
        self._names: list[str] = []

    def write(self, capture: Capture) -> None:
        """Add the calls of a capture. Raises WriteRefusedError if it has none."""
        self._trees.append(stacks_of(capture, self._options, self._dropped))
        capture.trim()  # the tree has all that the picture needs
        self._names.append(capture.name)

    def close(self) -> Mapping[str, int]:
        """Write the picture; return the counts of what is omitted, by name."""
        if self._trees:
            picture = Picture(merged(self._trees), self._options["weight"])
            self._dropped[NARROW] = picture.narrow
            for piece in in_pieces(picture.svg(", ".join(self._names))):
                self._sink.write(piece)
        return super().close()


class Picture:
    """The frames of a tree and their positions.

    ``colour`` returns the colour of a frame by node (-1 for several) and name; ``title`` what its
    tip says in place of its weight.
    """

    def __init__(
        self,
        tree: CallTree,
        weight: str,
        *,
        colour: Callable[[int, str], str] | None = None,
        title: Callable[[int], str] | None = None,
    ) -> None:
        self._colour = colour or (lambda _node, name: _colour(name))
        self._title = title
        self._unit = UNITS[weight]
        self._tree = tree
        own = tree.count if weight == "count" else tree.own
        if weight == "ns":
            own = tree.in_ns(own)
        depth = tree.depths()
        order = np.argsort(depth, kind="stable").astype(np.int32)
        bounds = np.cumsum(np.bincount(depth))
        self._levels = np.split(order, bounds[:-1])
        del depth, order
        # A node weighs as much as itself and its callees: sum up from the lowest level.
        self._weights = own.astype(np.float64)
        for level in reversed(self._levels[1:]):
            np.add.at(self._weights, tree.parent[level], self._weights[level])
        root_weights = self._weights[self._levels[0]]
        self.total = float(root_weights.sum())
        self.narrow = 0
        """Number of frames that are not drawn separately."""
        self._frames = list(self._placed(tree.parent))

    def _placed(self, parent_of: I32) -> Iterator[Frame]:
        """Yield the frames from the top level down."""
        scale = WIDTH / self.total if self.total else 0.0
        widths = self._weights * scale
        if not self.total:  # no call took any time: show the threads
            widths[self._levels[0]] = WIDTH / self._levels[0].size
        left = np.zeros(widths.size)
        is_wide = np.zeros(widths.size, np.bool_)
        for number, level in enumerate(self._levels):
            nodes = level
            if number:  # nothing is drawn above a frame that is too narrow
                nodes = level[is_wide[parent_of[level]]]
            self.narrow += level.size - nodes.size
            if not nodes.size:
                return
            is_wide[nodes] = widths[nodes] >= NARROWEST
            nodes = self._siblings_in_order(nodes, parent_of, is_wide)
            parents = parent_of[nodes]
            left_of_parents = np.zeros(nodes.size)
            if number:
                left_of_parents = left[parents]
            left[nodes] = _left_edges(widths[nodes], parents, left_of_parents)
            for node in nodes[is_wide[nodes]].tolist():
                name = self._name(node)
                edges = (float(left[node]), float(widths[node]))
                yield Frame(number, *edges, name, float(self._weights[node]), node)
            thin = nodes[~is_wide[nodes]]
            self.narrow += thin.size
            yield from self._merged_narrow(number, thin, parent_of[thin], left, widths)

    def _siblings_in_order(self, nodes: I32, parent_of: I32, is_wide: Bools) -> I32:
        """Return the nodes of a level by parent: first wide ones by name, then thin ones."""
        wide = np.flatnonzero(is_wide[nodes])
        names = [self._name(node) for node in nodes[wide].tolist()]
        by_name = np.argsort(np.array(names, object), kind="stable")
        ranks = np.zeros(nodes.size, np.int32)
        ranks[wide[by_name]] = np.arange(by_name.size)
        is_narrow = ~is_wide[nodes]
        order = np.lexsort((ranks, is_narrow, parent_of[nodes]))
        order = order.astype(np.int32)
        in_order: I32 = nodes[order]
        return in_order

    def _name(self, node: int) -> str:
        return _valid(self._tree.name(node)) or "(no name)"

    def _merged_narrow(
        self, level: int, thin: I32, parents: I32, left: F64, widths: F64
    ) -> Iterator[Frame]:
        """Yield one frame for the thin children of each parent, if it is wide enough."""
        if not thin.size:
            return
        firsts = first_of_runs(parents)
        counts = np.diff(firsts, append=thin.size)
        total_widths = np.add.reduceat(widths[thin], firsts)
        total_weights = np.add.reduceat(self._weights[thin], firsts)
        for group in np.flatnonzero(total_widths >= NARROWEST).tolist():
            yield Frame(
                level,
                float(left[thin[firsts[group]]]),
                float(total_widths[group]),
                f"({counts[group]:,} narrow frames)",
                float(total_weights[group]),
                SEVERAL,
            )

    def widest(self, most: int) -> list[Frame]:
        """Return the ``most`` widest frames, each after those that enclose it."""
        # The sort is stable, and the frames are in order of their levels.
        return sorted(self._frames, key=lambda frame: -frame.width)[:most]

    def svg(self, title: str) -> Iterator[str]:
        """Yield the picture, piece by piece."""
        levels = max((frame.level for frame in self._frames), default=0) + 1
        height = TOP + levels * ROW + BOTTOM
        yield (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}">\n'
            f"<style>{template('graph.css')}</style>\n"
            f'<text id="title" x="{WIDTH / 2}" y="20" text-anchor="middle" font-size="16">'
            f"{escape(_valid(title))}</text>\n"
            f'<text id="back" x="8" y="20"></text><text id="find" x="{WIDTH - 60}" y="20">Search'
            f'</text><text id="matched" x="{WIDTH - 8}" y="{height - 8}" text-anchor="end"></text>'
            f'<text x="8" y="{height - 8}">{self._note()}</text>\n'
        )
        for frame in self._frames:
            yield self._frame(frame)
        yield f"<script><![CDATA[{template('graph.js')}]]></script>\n</svg>\n"

    def _frame(self, frame: Frame) -> str:
        """Return the elements of a frame: tip, rectangle, and as much of its name as fits."""
        if self._title is None or frame.node == SEVERAL:
            percent = 100 * frame.weight / (self.total or 1)
            tip = f"{frame.weight:,.0f} {self._unit}, {percent:.2f}%"
        else:
            tip = self._title(frame.node)
        y = TOP + frame.level * ROW
        letters = int((frame.width - 4) / LETTER)
        label = frame.name
        if letters <= 2:
            label = ""
        elif len(label) > letters:
            label = f"{label[: letters - 2]}.."
        return (
            f'<g class="f"><title>{escape(frame.name)} ({tip})</title>'
            f'<rect x="{frame.left:.2f}" y="{y}" '
            f'width="{frame.width:.2f}" height="{ROW - 1}" '
            f'fill="{self._colour(frame.node, frame.name)}"/>'
            f'<text x="{frame.left + 3:.2f}" y="{y + 12}">{escape(label)}</text>'
            "</g>\n"
        )

    def _note(self) -> str:
        if not self.narrow:
            return f"{len(self._frames):,} frames"
        return (
            f"{len(self._frames):,} frames; {self.narrow:,} more, narrower than {NARROWEST} px or "
            "within such ones, are drawn together"
        )


def _left_edges(widths: F64, parents: I32, left_of_parents: F64) -> F64:
    """Return the left edges of nodes: siblings are beside one another within their parent."""
    firsts = first_of_runs(parents)
    before: F64 = starts_of(widths)
    sibling_counts = np.diff(firsts, append=widths.size)
    before_siblings = np.repeat(before[firsts], sibling_counts)
    return left_of_parents + before - before_siblings


def _valid(name: str) -> str:
    """Replace the invalid characters of a name."""
    return INVALID.sub("\N{REPLACEMENT CHARACTER}", name)


def _colour(name: str) -> str:
    """Return a warm colour determined by the name."""
    number = zlib.crc32(name.encode("utf-8", "replace"))
    hue = number % 50  # red to yellow
    saturation = 60 + (number >> 8) % 30
    lightness = 58 + (number >> 16) % 14
    return f"hsl({hue},{saturation}%,{lightness}%)"
