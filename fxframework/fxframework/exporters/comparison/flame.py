"""Differential flame graphs: frames of one side, coloured by how they differ from the other.

Red frames took longer in AFTER, blue ones shorter; the darkest changed by half or more, or are new
or gone. The change is that of the time of a run.
"""

from __future__ import annotations

import math

import numpy as np

from fxframework.analysis.calls import Functions
from fxframework.analysis.comparison import Comparison
from fxframework.analysis.tree import CallTree
from fxframework.exporters.flamegraph import Picture
from fxframework.kernels.arrays import F64
from fxframework.kit.shown import brief
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.strings import StringPool

FULL = math.log(1.5)
"""Logarithm of the change from which a colour is the darkest."""
# Colours as red, green and blue.
RED = (201, 32, 32)
BLUE = (30, 96, 200)
PALE = (236, 236, 236)


def colour(before: float, after: float) -> str:
    """Return the colour of a frame."""
    if before == after:
        share = 0.0
    elif not before:
        share = 1.0  # it is new
    elif not after:
        share = -1.0  # it is gone
    else:
        share = math.log(after / before) / FULL
        share = max(-1.0, min(share, 1.0))
    darkest = BLUE
    if share > 0:
        darkest = RED
    text = "#"
    for pale, dark in zip(PALE, darkest, strict=True):
        channel = round(pale + (dark - pale) * abs(share))
        text += f"{channel:02x}"
    return text


def times_of_nodes(comparison: Comparison) -> tuple[F64, F64]:
    """Return the times of the nodes of the picture before and after, in ns.

    Node 0 is the root, and node 1 + path that of a path.
    """
    size = len(comparison.paths)
    times_before, times_after = (
        np.append(side.path_means("own", size).sum(), side.path_means("total", size))
        for side in (comparison.before, comparison.after)
    )
    return times_before, times_after


def picture(comparison: Comparison, widths: str) -> Picture:
    """Return the flame graph; ``widths`` is the side whose times are the widths."""
    paths = comparison.paths
    size = len(paths)
    side = {"before": comparison.before, "after": comparison.after}[widths]
    times_before, times_after = times_of_nodes(comparison)
    pool = StringPool()
    texts = (paths.name(path) for path in range(size))
    names = [pool.intern(text.encode("utf-8", "replace")) for text in texts]
    # The parent of a path is -1 or less at the top, that of its node then the root.
    parents = np.maximum(np.array(paths.parents, np.int32), -1)
    parent_nodes = np.append(-1, parents + 1)
    functions = np.append(-1, np.arange(size))
    own_times = np.append(0, side.path_means("own", size))
    no_calls = np.zeros(size + 1, np.int64)
    tree = CallTree(
        roots=["all threads"],
        functions=Functions(pool, np.array(names, np.int32)),
        parent=parent_nodes.astype(np.int32),
        function=functions.astype(np.int32),
        count=no_calls,
        unfinished=no_calls,
        total=no_calls,
        own=own_times.astype(np.int64),
        per_second=NS_PER_SECOND,
    )

    def title(node: int) -> str:
        before = times_before[node]
        after = times_after[node]
        text = f"{brief(before)} before, {brief(after)} after"
        if before and after:
            change = (after - before) / before
            text += f", {change:+.1%}"
        return text

    def colour_of(node: int, _name: str) -> str:
        node = max(node, 0)  # several nodes in one frame have the colour of the root
        return colour(float(times_before[node]), float(times_after[node]))

    return Picture(tree, "ns", colour=colour_of, title=title)
