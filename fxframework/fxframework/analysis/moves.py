"""Moves: counters, messages, entries and waits that changed from one side to the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from fxframework.analysis import significance
from fxframework.analysis.runs import Side
from fxframework.kit.json_fields import finite

__all__ = ["Move", "moved_counters", "moved_counts", "moved_entries", "moved_waits"]


@attrs.frozen(kw_only=True)
class Move:
    """A figure on both sides."""

    key: Mapping[str, str]
    """What it is a figure of, by kind of name."""
    before: Mapping[str, Any] | None
    """Its values; None if it has none."""
    after: Mapping[str, Any] | None
    p: float | None
    verdict: str
    """``higher``, ``lower``, ``more``, ``fewer``, ``changed``, ``new``, ``gone`` or ``same``."""

    @property
    def label(self) -> str:
        """The names of the key, without empty ones."""
        return " ".join(filter(None, self.key.values()))


def moved_counters(sides: tuple[Side, Side], threshold: float, rate: float) -> Sequence[Move]:
    """Compare the levels of counters: means of runs, or of parts of the runs if there is one."""
    single = all(len(side.runs) == 1 for side in sides)
    made = []
    for key in _keys(sides, "counters"):
        signals = _values(sides, "counters", key)
        values = [
            np.concatenate([each.blocks for each in side]) if single and side
            else np.array([each.level for each in side])
            for side in signals
        ]  # fmt: skip
        shown = [
            {
                "count": sum(each.count for each in side),
                "level": finite(float(np.mean([each.level for each in side]))),
                "rate": _mean([each.rate for each in side if each.rate is not None]),
            }
            if side
            else None
            for side in signals
        ]
        p = _difference_p(*values)
        names = dict(zip(("category", "name", "series"), key, strict=True))
        made.append(Move(key=names, before=shown[0], after=shown[1], p=p, verdict="same"))
    return _judged(made, "level", ("higher", "lower"), threshold, rate)


def moved_counts(
    sides: tuple[Side, Side], what: str, labels: tuple[str, ...], threshold: float, rate: float
) -> Sequence[Move]:
    """Compare how often things occurred: messages of each template, or instants of each name.

    ``labels`` are the kinds of names of their keys.
    """
    single = all(len(side.runs) == 1 for side in sides)
    made = []
    for key in _keys(sides, what):
        counts = [
            np.array(
                [each.get(key, 0) for run in side.runs if (each := getattr(run, what)) is not None],
                "f8",
            )
            for side in sides
        ]
        totals = [int(each.sum()) for each in counts]
        p = significance.count_p(*totals) if single else _difference_p(*counts)
        shown = [
            {"count": total, "per_run": total / each.size} if total else None
            for total, each in zip(totals, counts, strict=True)
        ]
        names = dict(zip(labels, key, strict=True))
        made.append(Move(key=names, before=shown[0], after=shown[1], p=p, verdict="same"))
    return _judged(made, "per_run", ("more", "fewer"), threshold, rate)


def moved_entries(sides: tuple[Side, Side], threshold: float, rate: float) -> Sequence[Move]:
    """Compare the entries of states by path; numbers of several runs by their means.

    Of one run a side, every difference is reported; there is no sample to test.
    """
    single = all(len(side.runs) == 1 for side in sides)
    made = []
    for key in _keys(sides, "entries"):
        values = _values(sides, "entries", key)
        numbers = [
            np.array(side, np.float64)
            if side and all(isinstance(one, int | float) for one in side)
            else np.zeros(0)
            for side in values
        ]
        shown = [
            {"value": side[-1], "mean": finite(float(each.mean())) if each.size else None}
            if side
            else None
            for side, each in zip(values, numbers, strict=True)
        ]
        p, verdict = None, "same"
        if all(values) and not single and all(each.size for each in numbers):
            p = _difference_p(*numbers)
        elif all(values):
            verdict = "same" if _same(values) else "changed"
        made.append(Move(key={"path": key}, before=shown[0], after=shown[1], p=p, verdict=verdict))
    return _judged(made, "mean", ("higher", "lower"), threshold, rate)


def moved_waits(sides: tuple[Side, Side], threshold: float) -> Sequence[Move]:
    """Compare how long threads were in each state within the slices of a name, for each run."""
    if not all(any(run.waits for run in side.runs) for side in sides):
        return ()
    keys = {key for side in sides for run in side.runs for key in run.waits or ()}
    made = []
    for name, state in sorted(keys):
        ns = [
            sum((run.waits or {}).get((name, state), 0) for run in side.runs) / len(side.runs)
            for side in sides
        ]
        shown = [{"ns": each} if each else None for each in ns]
        names = {"name": name.decode("utf-8", "replace"), "state": state}
        far = abs(ns[1] - ns[0]) > threshold * max(ns)
        verdict = ("more" if ns[1] > ns[0] else "fewer") if far else "same"
        made.append(Move(key=names, before=shown[0], after=shown[1], p=None, verdict=verdict))
    return sorted(made, key=lambda one: -abs(_ns(one.after) - _ns(one.before)))


def _ns(shown: Mapping[str, Any] | None) -> float:
    return 0.0 if shown is None else float(shown["ns"])


def _keys(sides: tuple[Side, Side], what: str) -> list[Any]:
    """Return the keys of all runs, sorted; none if the format of a side has no such data."""
    if not all(side.can_have(what) for side in sides):
        return []
    return sorted({key for side in sides for run in side.runs for key in getattr(run, what) or ()})


def _values(sides: tuple[Side, Side], what: str, key: Any) -> list[list[Any]]:
    """Return the values of a key in the runs of each side that have it."""
    runs = ([getattr(run, what) or {} for run in side.runs] for side in sides)
    return [[run[key] for run in side if key in run] for side in runs]


def _same(values: list[list[Any]]) -> bool:
    first = values[0][0]
    return all(one == first for side in values for one in side)


def _mean(values: list[float]) -> float | None:
    return finite(sum(values) / len(values)) if values else None


def _difference_p(before: Any, after: Any) -> float | None:
    """Return the p of Welch's t-test of a difference; None for fewer than two values a side."""
    n, m = before.size, after.size
    if n < 2 or m < 2:
        return None
    with np.errstate(all="ignore"):
        parts = before.var(ddof=1) / n, after.var(ddof=1) / m
        whole = parts[0] + parts[1]
        change = after.mean() - before.mean()
        if not whole > 0:
            same = change == 0
            return 1.0 if same else significance.least_rank_p(n, m)
        df = whole**2 / (parts[0] ** 2 / (n - 1) + parts[1] ** 2 / (m - 1))
        p = float(significance.t_p(np.array([change / math.sqrt(whole)]), np.array([df]))[0])
    return None if math.isnan(p) else p


def _judged(
    made: list[Move], figure: str, words: tuple[str, str], threshold: float, rate: float
) -> Sequence[Move]:
    """Give each its verdict; changed ones first, the most certain first."""
    tested = [
        math.nan if one.p is None or one.before is None or one.after is None else one.p
        for one in made
    ]
    found, _ = significance.held(tested, rate)
    judged = []
    for one, sure in zip(made, found.tolist(), strict=True):
        verdict = one.verdict
        if one.before is None or one.after is None:
            verdict = "new" if one.before is None else "gone"
        elif sure:
            a, b = (each.get(figure) or 0.0 for each in (one.before, one.after))
            if abs(b - a) > threshold * max(abs(a), abs(b)):
                verdict = words[0] if b > a else words[1]
        judged.append(attrs.evolve(one, verdict=verdict))
    return sorted(
        judged,
        key=lambda one: (one.verdict == "same", 1.0 if one.p is None else one.p, one.label),
    )
