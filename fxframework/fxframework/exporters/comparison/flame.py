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


def picture(comparison: Comparison, widths: str) -> Picture:
    """Return the flame graph; ``widths`` is the side whose times are the widths."""
    paths = comparison.paths
    size = len(paths)
    total_before = comparison.before.path_means("total", size)
    total_after = comparison.after.path_means("total", size)
    own_before = comparison.before.path_means("own", size)
    own_after = comparison.after.path_means("own", size)
    own = {"before": own_before, "after": own_after}[widths]
    pool = StringPool()
    texts = (paths.name(path) for path in range(size))
    names = [pool.intern(text.encode("utf-8", "replace")) for text in texts]
    parents = np.maximum(np.array(paths.parents, np.int32), -1)
    # Node 0 is the root, and node 1 + path that of a path, whose parent is -1 at the top.
    parent_nodes = np.append(-1, parents + 1)
    functions = np.append(-1, np.arange(size))
    own_times = np.append(0, own)
    tree = CallTree(
        roots=["all threads"],
        functions=Functions(pool, np.array(names, np.int32)),
        parent=parent_nodes.astype(np.int32),
        function=functions.astype(np.int32),
        count=np.zeros(size + 1, np.int64),
        unfinished=np.zeros(size + 1, np.int64),
        total=np.zeros(size + 1, np.int64),
        own=own_times.astype(np.int64),
        per_second=NS_PER_SECOND,
    )
    root_times = (float(own_before.sum()), float(own_after.sum()))

    def times(node: int) -> tuple[float, float]:
        """Return the times of a node before and after, in ns."""
        if node <= 0:
            return root_times
        return float(total_before[node - 1]), float(total_after[node - 1])

    def title(node: int) -> str:
        before, after = times(node)
        text = f"{brief(before)} before, {brief(after)} after"
        if before and after:
            change = (after - before) / before
            text += f", {change:+.1%}"
        return text

    def colour_of(node: int, _name: str) -> str:
        return colour(*times(node))

    return Picture(tree, "ns", colour=colour_of, title=title)
