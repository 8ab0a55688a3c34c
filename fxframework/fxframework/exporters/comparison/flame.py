"""Differential flame graphs: frames of one side, coloured by how they differ from the other.

Red frames took longer in AFTER, blue ones shorter; the darkest changed by half or more, or are new
or gone. The change is that of the time of a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxframework.analysis.calls import Functions
from fxframework.analysis.comparison import Comparison
from fxframework.analysis.tree import CallTree
from fxframework.exporters.flamegraph.export import Picture
from fxframework.kit.shown import brief
from fxframework.model.clock import NS_PER_SECOND
from fxframework.model.strings import StringPool

__all__ = ["colour", "picture"]

FULL = math.log(1.5)
"""Change from which a colour is the darkest."""
RED, BLUE, PALE = (201, 32, 32), (30, 96, 200), (236, 236, 236)


def colour(before: float, after: float) -> str:
    """Return the colour of a frame."""
    if before == after:
        share = 0.0
    elif not before or not after:
        share = 1.0 if after else -1.0
    else:
        share = max(min(math.log(after / before) / FULL, 1.0), -1.0)
    full = RED if share > 0 else BLUE
    mixed = (round(low + (high - low) * abs(share)) for low, high in zip(PALE, full, strict=True))
    red, green, blue = mixed
    return f"#{red:02x}{green:02x}{blue:02x}"


def picture(found: Comparison, widths: str) -> Picture:
    """Return the flame graph; ``widths`` is the side whose times are the widths."""
    size = len(found.paths)
    (before, own_before), (after, own_after) = (
        [side.path_means(column, size) for column in ("total", "own")]
        for side in (found.before, found.after)
    )
    own = own_before if widths == "before" else own_after
    pool = StringPool()
    texts = [pool.intern(found.paths.name(at).encode("utf-8", "replace")) for at in range(size)]
    parents = np.array(found.paths.parents, np.int32)
    tree = CallTree(
        roots=["all threads"],
        functions=Functions(pool, np.array(texts, np.int32)),
        parent=np.concatenate(([-1], np.maximum(parents, -1) + 1)).astype(np.int32),
        function=np.concatenate(([-1], np.arange(size))).astype(np.int32),
        count=np.zeros(size + 1, np.int64),
        unfinished=np.zeros(size + 1, np.int64),
        total=np.zeros(size + 1, np.int64),
        own=np.concatenate(([0], own)).astype(np.int64),
        per_second=NS_PER_SECOND,
    )
    whole = (float(own_before.sum()), float(own_after.sum()))

    def pair(node: int) -> tuple[float, float]:
        return (float(before[node - 1]), float(after[node - 1])) if node > 0 else whole

    return Picture(tree, "ns", colour=lambda node, _name: colour(*pair(node)), title=_titles(pair))


def _titles(pair: Callable[[int], tuple[float, float]]) -> Any:
    def title(node: int) -> str:
        old, new = pair(node)
        change = f", {(new - old) / old:+.1%}" if old and new else ""
        return f"{brief(old)} before, {brief(new)} after{change}"

    return title
