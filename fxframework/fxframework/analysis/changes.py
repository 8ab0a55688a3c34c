"""Changes: a name, or a call path, on both sides of a comparison, and their table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import attrs

from fxframework.model.schema import Column, TableSchema
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

VERDICTS = ("slower", "faster", "more", "fewer", "new", "gone", "same", "unclear")
UNCHANGED = frozenset({"same", "unclear"})
"""Verdicts without a change: there is none beyond the threshold, or too little to tell."""


@attrs.frozen(kw_only=True)
class Measures:
    """The calls of a name on one side; times in nanoseconds."""

    count: int
    total_ns: int
    self_ns: int
    mean_ns: float
    median_ns: float
    p90_ns: float
    p99_ns: float


class Ratio(NamedTuple):
    """A ratio AFTER/BEFORE, with a 95% interval; NaN ends if it has none."""

    estimate: float
    low: float
    high: float


@attrs.frozen(kw_only=True)
class Change:
    """A name, or a call path, on both sides."""

    name: str
    path: tuple[str, ...] | None
    """The names from the outermost caller on, if calls are compared by path."""
    before: Measures | None
    """None if it has no calls."""
    after: Measures | None
    ratio: Ratio | None
    """Of the mean times of a call; None if a side has no calls, or a mean of 0."""
    median_ratio: Ratio | None
    p: float | None
    """Probability of such a difference without a change; None if there are too few calls."""
    verdict: str
    """One of VERDICTS."""
    where: tuple[str, ...] = ()
    """The figures that changed: mean, median, p90, p99 or count."""
    asynchronous: bool = False
    number: int = -1
    """Its number in the names of the comparison."""

    @property
    def changed(self) -> bool:
        """Whether it changed, beyond the threshold and noise."""
        return self.verdict not in UNCHANGED

    def is_apart(self, threshold: float) -> bool:
        """Whether its mean changed by the threshold or more, beyond noise or not."""
        if self.ratio is None:
            return self.changed
        return abs(math.log(self.ratio.estimate)) >= math.log1p(threshold)

    @property
    def label(self) -> str:
        """The name, or the path with its names separated by `` > ``."""
        return self.name if self.path is None else " > ".join(self.path)

    def change_ns(self, runs: tuple[int, int]) -> float:
        """Return the change of the total time of a run."""
        runs_before, runs_after = runs
        return _time_of_run(self.after, runs_after) - _time_of_run(self.before, runs_before)


@attrs.frozen
class Pace:
    """How much longer everything took: the median over the names of the ratio of self times."""

    ratio: float
    names: int
    p: float | None
    """None with one run a side."""
    removed: bool
    """Whether the change is within what the machine may cause, so that a name must differ from
    it, too."""


def _time_of_run(measures: Measures | None, runs: int) -> float:
    if measures is None:
        return 0.0
    return measures.total_ns / runs


# --- The table -----------------------------------------------------------------------------------

_MEASURES = (
    ("count", "i8", "calls that ended", ""),
    ("total_ns", "i8", "time of all calls", "ns"),
    ("self_ns", "i8", "time outside of the calls within them", "ns"),
    ("mean_ns", "f8", "mean time of a call", "ns"),
    ("median_ns", "f8", "median time of a call", "ns"),
    ("p90_ns", "f8", "time that 90 calls of 100 stay below", "ns"),
    ("p99_ns", "f8", "time that 99 calls of 100 stay below", "ns"),
)
SCHEMA = TableSchema(
    "calls",
    "a name on both sides of a comparison",
    (
        Column("name", "code", "name"),
        Column("path", "code", "names from the outermost caller on, separated by ` > `"),
        Column("verdict", "code", "what changed"),
        Column("where", "code", "the figures that changed"),
        *(
            Column(f"{side}_{figure}", dtype, f"{doc}, {side.upper()}; 0 or NaN: none", unit)
            for side in ("before", "after")
            for figure, dtype, doc, unit in _MEASURES
        ),
        Column("ratio", "f8", "ratio of the mean times"),
        Column("ratio_low", "f8", "lower end of its 95% interval"),
        Column("ratio_high", "f8", "upper end"),
        Column("p", "f8", "probability of such a difference without a change; NaN: not tested"),
    ),
    plain=True,
)


def table_of(changes: Sequence[Change]) -> Table:
    """Return changes as a table."""
    columns: dict[str, Any] = {
        "name": [change.name for change in changes],
        "path": [None if change.path is None else change.label for change in changes],
        "verdict": [change.verdict for change in changes],
        "where": [",".join(change.where) for change in changes],
        "p": [math.nan if change.p is None else change.p for change in changes],
    }
    before = [change.before for change in changes]
    after = [change.after for change in changes]
    for side, measures_of_side in (("before", before), ("after", after)):
        # Numbers of calls and times have no NaN: 0 is none.
        for figure, dtype, _, _ in _MEASURES:
            no_calls = 0 if dtype == "i8" else math.nan
            columns[f"{side}_{figure}"] = [
                no_calls if measures is None else getattr(measures, figure)
                for measures in measures_of_side
            ]
    no_ratio = Ratio(math.nan, math.nan, math.nan)
    ratios = [change.ratio or no_ratio for change in changes]
    columns["ratio"] = [ratio.estimate for ratio in ratios]
    columns["ratio_low"] = [ratio.low for ratio in ratios]
    columns["ratio_high"] = [ratio.high for ratio in ratios]
    return Table.of(SCHEMA, StringPool(), **columns)
