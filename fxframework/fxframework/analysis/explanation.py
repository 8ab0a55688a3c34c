"""Explanations: which call paths explain the change of the time of a run.

The change of the time of a call path is the sum of four parts: its own time became longer, it is
called more often by its caller, it is new, or it is gone; and of the parts of its callees. The
parts of all paths add up exactly to the change of the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis.runs import Names, Side
from fxframework.kernels.arrays import F64, I64

REASONS = ("self", "calls", "new", "gone")
ENOUGH = 0.95
"""Share of the change that the shown causes explain, if MOST of them do."""
MOST = 12
"""Largest number of causes."""


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
    before = _PathMeans.of(paths, sides[0])
    after = _PathMeans.of(paths, sides[1])
    parts = _parts_of_change(np.array(paths.parents, np.int64), before, after)
    whole_change = float(parts.sum())
    unexplained = float(np.abs(parts).sum())
    enough = unexplained * (1 - ENOUGH)
    largest = np.argsort(-np.abs(parts).ravel(), kind="stable")[:MOST]
    greatest_causes = []
    for index in largest.tolist():
        reason, path = divmod(index, len(paths))
        change = float(parts[reason, path])
        if not change or unexplained <= enough:
            break
        unexplained -= abs(change)
        share = math.nan
        if whole_change:
            share = change / whole_change
        if REASONS[reason] == "self":
            value_before = before.own_per_call[path]
            value_after = after.own_per_call[path]
        else:
            value_before = before.calls_per_caller[path]
            value_after = after.calls_per_caller[path]
        greatest_causes.append(
            Cause(
                path=tuple(paths.path(path)),
                reason=REASONS[reason],
                change_ns=change,
                share=share,
                before=float(value_before),
                after=float(value_after),
            )
        )
    return greatest_causes


@attrs.frozen(eq=False)
class _PathMeans:
    """Means over the runs of a side, as columns by number of the path."""

    calls: F64
    total: F64
    """Time of the calls of a run."""
    caller_calls: F64
    """Calls of the caller; 1 where there is none, for that is the run."""
    calls_per_caller: F64
    """Calls by each call of the caller; 0 without any."""
    own_per_call: F64
    """Self time of a call; 0 without calls."""
    total_per_call: F64

    @classmethod
    def of(cls, paths: Names, side: Side) -> _PathMeans:
        """Return the means of a side."""
        size = len(paths)
        calls = side.path_means("count", size)
        total = side.path_means("total", size)
        own = side.path_means("own", size)
        parents = np.array(paths.parents, np.int64)
        caller_calls = calls
        if size:
            caller_calls = np.where(parents < 0, 1.0, calls[np.maximum(parents, 0)])
        with np.errstate(divide="ignore", invalid="ignore"):
            return cls(
                calls=calls,
                total=total,
                caller_calls=caller_calls,
                calls_per_caller=np.where(caller_calls > 0, calls / caller_calls, 0.0),
                own_per_call=np.where(calls > 0, own / calls, 0.0),
                total_per_call=np.where(calls > 0, total / calls, 0.0),
            )


def _parts_of_change(parents: I64, before: _PathMeans, after: _PathMeans) -> F64:
    """Return the parts of the change of the time of a run, shape (reasons, paths).

    Only paths whose callers are all on both sides have parts: what a new or gone caller calls is
    in the part of that caller.
    """
    was_called = before.calls > 0
    is_called = after.calls > 0
    is_on_both = was_called & is_called
    is_counted = _has_callers_on_both(parents, is_on_both)
    stays = is_counted & is_on_both
    is_new = is_counted & ~was_called & is_called
    is_gone = is_counted & was_called & ~is_called
    longer_by_itself = after.calls * (after.own_per_call - before.own_per_call)
    # Calls that are more, or gone, count at the time that they took before.
    more_calls = after.calls_per_caller - before.calls_per_caller
    called_more_often = after.caller_calls * more_calls * before.total_per_call
    gone = -after.caller_calls * before.calls_per_caller * before.total_per_call
    parts_by_reason = {
        "self": np.where(stays, longer_by_itself, 0.0),
        "calls": np.where(stays, called_more_often, 0.0),
        "new": np.where(is_new, after.total, 0.0),
        "gone": np.where(is_gone, gone, 0.0),
    }
    return np.stack([parts_by_reason[reason] for reason in REASONS])


def _has_callers_on_both(parents: I64, is_on_both: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return whether all callers of each path are on both sides; callers come first."""
    result = np.ones(parents.size, np.bool_)
    for path, parent in enumerate(parents.tolist()):
        if parent >= 0:
            result[path] = result[parent] and is_on_both[parent]
    return result
