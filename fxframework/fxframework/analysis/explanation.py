"""Explanations: which call paths explain the change of the time of a run.

The change of the time of a call path is the sum of four parts: its own time became longer, it is
called more often by its caller, it is new, or it is gone; and of the parts of its callees. The
parts of all paths add up exactly to the change of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.runs import Names, Side

__all__ = ["REASONS", "Cause", "causes"]

F64 = NDArray[np.float64]
REASONS = ("self", "calls", "new", "gone")
ENOUGH = 0.95
"""Share of the change that the shown causes explain, if MOST of them do."""
MOST = 12


@attrs.frozen
class Cause:
    """A part of the change of the time of a run."""

    path: tuple[str, ...]
    reason: str
    """One of REASONS: longer or shorter by itself; more or fewer calls by its caller; a new or a
    gone callee."""
    change_ns: float
    """Change of the time of a run, summed over threads."""
    share: float
    """Its share of the change of the whole; NaN if the whole did not change."""
    before: float
    """Self time of a call for ``self``; else calls by each call of the caller, or by each run."""
    after: float


def causes(paths: Names, sides: tuple[Side, Side]) -> Sequence[Cause]:
    """Return the greatest causes of the change of the mean time of a run."""
    size = len(paths)
    (n, time, own), (m, later, late_own) = (
        [side.path_means(column, size) for column in ("count", "total", "own")] for side in sides
    )
    parents = np.array(paths.parents, np.int64)
    top = parents < 0
    callers = [
        np.where(top, 1.0, each[np.maximum(parents, 0)]) if size else each for each in (n, m)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        often = [
            np.where(caller > 0, count / caller, 0.0)
            for count, caller in zip((n, m), callers, strict=True)
        ]
        each_own = [
            np.where(count > 0, total / count, 0.0)
            for count, total in zip((n, m), (own, late_own), strict=True)
        ]
        mean = np.where(n > 0, time / n, 0.0)
    both = (n > 0) & (m > 0)
    known = _below_both(parents, both)
    parts = np.zeros((len(REASONS), size))
    parts[0] = np.where(known & both, m * (each_own[1] - each_own[0]), 0.0)
    parts[1] = np.where(known & both, callers[1] * (often[1] - often[0]) * mean, 0.0)
    parts[2] = np.where(known & (n == 0) & (m > 0), later, 0.0)
    parts[3] = np.where(known & (n > 0) & (m == 0), -callers[1] * often[0] * mean, 0.0)
    whole = float(parts.sum())
    order = np.argsort(-np.abs(parts).ravel(), kind="stable")[:MOST]
    found = []
    left = float(np.abs(parts).sum())
    enough = left * (1 - ENOUGH)
    for place in order.tolist():
        reason, path = divmod(place, size)
        change = float(parts[reason, path])
        if not change or left <= enough:
            break
        left -= abs(change)
        pair = each_own if not reason else often
        found.append(
            Cause(
                tuple(paths.path(path)), REASONS[reason], change,
                change / whole if whole else np.nan, float(pair[0][path]), float(pair[1][path]),
            )
        )  # fmt: skip
    return found


def _below_both(parents: NDArray[np.int64], both: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether all callers of each path are on both sides; callers come first."""
    known = np.ones(parents.size + 1, np.bool_)  # the last element is for the root
    for path, parent in enumerate(parents.tolist()):
        known[path] = known[parent] and (parent < 0 or both[parent]) if parent >= 0 else True
    return known[:-1]
