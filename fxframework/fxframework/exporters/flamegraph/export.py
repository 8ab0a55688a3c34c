"""The exporter `flamegraph`: a self-contained SVG that zooms and searches in a browser.

A frame is a function on a path of calls; its width is its time, including its callees. Threads are
at the top, and callees below their callers.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.tree import CallTree, merged
from fxframework.exporters.stacks import stacks_of
from fxframework.io.sink import Sink
from fxframework.kit.export import Export
from fxframework.kit.row_texts import in_pieces
from fxframework.model.capture import Capture

__all__ = ["FlameExport", "Picture"]

I32 = NDArray[np.int32]
F64 = NDArray[np.float64]
WIDTH, ROW, TOP = 1200, 17, 44
"""Pixels: width of the picture, height of a level, space above the first level."""
NARROWEST = 0.1
"""Pixels; narrower siblings are drawn as one frame."""
LETTER = 7
"""Approximate width of a character in pixels."""
UNITS = {"ns": "ns", "count": "calls", "ticks": "ticks"}
INVALID = re.compile(
    "[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
"""Characters that XML cannot contain, or that change the text direction."""
Frame = tuple[int, float, float, str, float, int]
"""Level, left edge and width in pixels, name, weight, and node, -1 for several."""
NARROW = "frames narrower than 0.1 px, which are drawn together"


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
        own = tree.count if weight == "count" else tree.own
        own = tree.in_ns(own) if weight == "ns" else own
        self._unit = UNITS[weight]
        self._tree = tree
        depth = tree.depths()
        order = np.argsort(depth, kind="stable").astype(np.int32)
        bounds = np.cumsum(np.bincount(depth)) if depth.size else depth
        self._levels = np.split(order, bounds[:-1])
        parent = tree.parent
        del depth, order
        self._weights = own.astype(np.float64)
        for level in reversed(self._levels[1:]):
            np.add.at(self._weights, parent[level], self._weights[level])
        self.total = float(self._weights[self._levels[0]].sum())
        self.narrow = 0
        """Number of frames that are not drawn separately."""
        self._frames = list(self._placed(parent))

    def _placed(self, parent: I32) -> Iterator[Frame]:
        """Yield the frames from the top level down."""
        scale = WIDTH / self.total if self.total else 0.0
        widths = self._weights * scale
        if not self.total:  # no call took any time: show the threads
            widths[self._levels[0]] = WIDTH / self._levels[0].size
        left = np.zeros(widths.size)
        wide = np.zeros(widths.size, np.bool_)
        for number, level in enumerate(self._levels):
            whose = parent[level]
            drawn = wide[whose] if number else np.ones(level.size, np.bool_)
            self.narrow += int(np.count_nonzero(~drawn))
            level, whose = level[drawn], whose[drawn]
            wide[level] = widths[level] >= NARROWEST
            names = [self._name(node) for node in level[wide[level]].tolist()]
            ranks = np.zeros(level.size, np.int32)
            by_name = np.argsort(np.array(names, object), kind="stable")
            ranks[np.flatnonzero(wide[level])[by_name]] = np.arange(by_name.size)
            order = np.lexsort((ranks, ~wide[level], whose)).astype(np.int32)
            level, whose = level[order], whose[order]
            del order, ranks, drawn
            if not level.size:
                return
            first = np.flatnonzero(np.diff(whose, prepend=whose[0] - 1))
            mine = widths[level]
            before = np.cumsum(mine)
            before -= mine
            start = left[whose] if number else np.zeros(level.size)
            start += before
            start -= np.repeat(before[first], np.diff(first, append=level.size))
            left[level] = start
            del mine, before, start
            for node in level[wide[level]].tolist():
                yield (
                    number, left[node], widths[node], self._name(node), self._weights[node], node
                )  # fmt: skip
            thin = ~wide[level]
            self.narrow += int(np.count_nonzero(thin))
            yield from self._merged_narrow(number, level[thin], whose[thin], left, widths)

    def _name(self, node: int) -> str:
        return _valid(self._tree.name(node)) or "(no name)"

    def _merged_narrow(
        self, number: int, thin: I32, whose: I32, left: F64, widths: F64
    ) -> Iterator[Frame]:
        """Yield one frame for the narrow children of each frame, if it is wide enough."""
        if not thin.size:
            return
        first = np.flatnonzero(np.diff(whose, prepend=whose[0] - 1))
        counts = np.diff(first, append=thin.size)
        sums = np.add.reduceat(widths[thin], first)
        weights = np.add.reduceat(self._weights[thin], first)
        for at in np.flatnonzero(sums >= NARROWEST).tolist():
            name = f"({counts[at]:,} narrow frames)"
            yield number, left[thin[first[at]]], float(sums[at]), name, float(weights[at]), -1

    def svg(self, title: str) -> Iterator[str]:
        """Yield the picture, piece by piece."""
        folder = resources.files("fxframework.exporters.flamegraph")
        levels = max((frame[0] for frame in self._frames), default=0) + 1
        height = TOP + levels * ROW + 24
        yield (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}">\n'
            f"<style>{folder.joinpath('graph.css').read_text('utf-8')}</style>\n"
            f'<text id="title" x="{WIDTH / 2}" y="20" text-anchor="middle" font-size="16">'
            f"{escape(_valid(title))}</text>\n"
            f'<text id="back" x="8" y="20"></text><text id="find" x="{WIDTH - 60}" y="20">Search'
            f'</text><text id="matched" x="{WIDTH - 8}" y="{height - 8}" text-anchor="end"></text>'
            f'<text x="8" y="{height - 8}">{self._note()}</text>\n'
        )
        for level, left, width, name, weight, node in self._frames:
            share = 100 * weight / self.total if self.total else 0
            if self._title is None or node < 0:
                about = f"{weight:,.0f} {self._unit}, {share:.2f}%"
            else:
                about = self._title(node)
            y = TOP + level * ROW
            letters = int((width - 4) / LETTER)
            short = name if len(name) <= letters else f"{name[: letters - 2]}.."
            shown = escape(short) if letters > 2 else ""
            yield (
                f'<g class="f"><title>{escape(name)} ({about})</title><rect x="{left:.2f}" y="{y}" '
                f'width="{width:.2f}" height="{ROW - 1}" '
                f'fill="{self._colour(node, name)}"/>'
                f'<text x="{left + 3:.2f}" y="{y + 12}">{shown}</text>'
                "</g>\n"
            )
        script = folder.joinpath("graph.js").read_text("utf-8")
        yield f"<script><![CDATA[{script}]]></script>\n</svg>\n"

    def _note(self) -> str:
        if not self.narrow:
            return f"{len(self._frames):,} frames"
        return (
            f"{len(self._frames):,} frames; {self.narrow:,} more, narrower than {NARROWEST} px or "
            "within such ones, are drawn together"
        )


def _valid(name: str) -> str:
    """Replace the invalid characters of a name."""
    return INVALID.sub("\N{REPLACEMENT CHARACTER}", name)


def _colour(name: str) -> str:
    """Return a warm colour determined by the name."""
    number = zlib.crc32(name.encode("utf-8", "replace"))
    return f"hsl({number % 50},{60 + (number >> 8) % 30}%,{58 + (number >> 16) % 14}%)"
