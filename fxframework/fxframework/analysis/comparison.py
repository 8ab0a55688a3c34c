"""Comparisons: what changed from the runs of one side to those of another, and what is noise.

docs/compare.md says what is computed, and when not to believe it.
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.analysis import significance
from fxframework.analysis.changes import (
    UNCHANGED,
    VERDICTS,
    Change,
    Measures,
    Pace,
    Ratio,
    table_of,
)
from fxframework.analysis.explanation import Cause, causes
from fxframework.analysis.moves import (
    Move,
    moved_counters,
    moved_counts,
    moved_entries,
    moved_waits,
)
from fxframework.analysis.runs import Names, Reader, Side, join_runs
from fxframework.analysis.significance import TAILS, Estimate
from fxframework.errors import UsageError, did_you_mean
from fxframework.model.table import Table

__all__ = ["ANY", "RATE", "THRESHOLD", "Comparison", "check_verdicts", "compared"]

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
THRESHOLD = 0.05
"""Relative change below which a name is the same."""
RATE = 0.025
"""False discovery rate that the verdicts are held to. The promise is 0.05: the rest is room for
approximations."""
WEIGHTS = {"mean": 0.3, "median": 0.3, "p90": 0.15, "p99": 0.15, "count": 0.1}
"""Weights of the tests of a name; with one run a side, that of the median is one of ranks."""
LEAST_NAMES = 10
"""Names from which the pace of a run is computed."""
LEAST_CALLS = 8
"""Calls on each side from which a name counts for the pace."""
LEAST_FOR_MEAN = 20
"""Calls on each side from which the means of two single runs are tested."""
MOOD = math.log(1.25)
"""Change of pace of a single run that the machine alone may cause."""
SURE = 0.001
"""p below which the paces of the runs of two sides differ."""
PLAIN = 0.05
"""Greatest p of a figure that is named, of a name that changed."""
FEW_RUNS = 4
"""Runs of a side from which their variance is trusted without that of their calls."""
UNCLEAR = "unclear"
ANY = (*(verdict for verdict in VERDICTS if verdict != "same"), "higher", "lower", "changed")
"""The verdicts of calls, counters, messages and properties but ``same``; ``unclear`` is that of
the whole comparison."""
WHOLE = 1 / 12
"""Variance of rounding to a whole number: the least variance of a count or a time."""


@attrs.frozen(eq=False)
class Comparison:
    """The result of ``fxframework.compare``."""

    before: Side
    after: Side
    by: str
    threshold: float
    names: Names
    """Numbers of names, or of paths."""
    paths: Names
    """Numbers of call paths."""
    changes: Sequence[Change]
    """All names, those that changed first, the greatest change of total time first."""
    explained: Sequence[Cause]
    """What explains the change of the total time, the greatest part first."""
    counters: Sequence[Move]
    logs: Sequence[Move]
    instants: Sequence[Move]
    entries: Sequence[Move]
    waits: Sequence[Move]
    pace: Pace | None
    """None if there are fewer than LEAST_NAMES names."""
    notes: Sequence[str] = ()
    """Why a result may not be trusted."""

    @property
    def runs(self) -> tuple[int, int]:
        """The number of runs of each side."""
        return len(self.before.runs), len(self.after.runs)

    @property
    def verdicts(self) -> Mapping[str, int]:
        """The number of calls, counters, messages and entries of each verdict that changed."""
        found: dict[str, int] = {}
        verdicts = [one.verdict for one in self.changes]
        verdicts += [
            one.verdict for one in (*self.counters, *self.logs, *self.instants, *self.entries)
        ]
        for verdict in verdicts:
            if verdict not in UNCHANGED:
                found[verdict] = found.get(verdict, 0) + 1
        return found

    @property
    def times(self) -> tuple[float, float]:
        """The time in calls of a run of each side, in nanoseconds, summed over threads."""
        before, after = (
            sum(int(run.tree.own.sum()) for run in side.runs if run.tree is not None)
            / len(side.runs)
            for side in (self.before, self.after)
        )
        return before, after

    @property
    def change(self) -> float:
        """The relative change of the time in calls of a run; NaN if there was none before."""
        before, after = self.times
        return (after - before) / before if before else math.nan

    @property
    def counts_waits_twice(self) -> bool:
        """Whether the time in calls has that of threads which may wait for one another."""
        return any(run.several_threads for side in (self.before, self.after) for run in side.runs)

    @property
    def calls_changed(self) -> bool:
        """Whether the time in calls changed by the threshold or more, as noise or not."""
        before, after = self.times
        return abs(after - before) >= self.threshold * before > 0

    @property
    def unclear(self) -> bool:
        """Whether the time in calls changed, and there are too few runs to say whether by noise."""
        return not self.verdicts and self.calls_changed and min(self.runs) < FEW_RUNS

    @property
    def same(self) -> bool:
        """Whether nothing changed beyond the threshold and noise."""
        return not self.verdicts and not self.unclear

    def fails(self, verdicts: Collection[str] = ANY) -> bool:
        """Return whether anything has one of some verdicts."""
        found = {*self.verdicts, *([UNCLEAR] if self.unclear else [])}
        return not found.isdisjoint(verdicts)

    @functools.cached_property
    def calls(self) -> Table:
        """The changes as a table: columns for numpy, Arrow, polars and pandas."""
        return table_of(self.changes)

    def to_text(self, top: int = 20) -> str:
        """Return the report of ``fxf compare``."""
        from fxframework.analysis.comparison_text import lines

        return "\n".join([*lines(self, top=top), ""])

    def show(self, top: int = 20) -> None:
        """Print the report of ``fxf compare``."""
        sys.stdout.write(self.to_text(top))

    def __repr__(self) -> str:
        found = ", ".join(f"{count} {name}" for name, count in self.verdicts.items())
        found = found or (UNCLEAR if self.unclear else "same")
        return f"<Comparison of {self.runs[0]} and {self.runs[1]} runs: {found}>"

    def _repr_html_(self) -> str:
        """Return the calls that changed as HTML, for a notebook."""
        return self.calls._repr_html_()


def compared(
    reader: Reader, before: Side, after: Side, *, threshold: float = THRESHOLD
) -> Comparison:
    """Compare two sides that a reader has read.

    Raises UsageError if a side has no run, if the sides have nothing in common to compare, or for
    a negative threshold.
    """
    if not threshold >= 0:
        raise UsageError(
            f"the threshold is {threshold}, and must be 0 or more",
            remedy="0.05 is a change of 5%",
        )
    sides = before, after
    left_out = join_runs(sides)
    _check(sides)
    names = reader.names
    calls = all(side.can_have("figures") for side in sides) and any(
        side.has("figures") for side in sides
    )
    changes: Sequence[Change] = ()
    pace = None
    explained: Sequence[Cause] = ()
    notes = left_out + _left_out(sides)
    if calls:
        single = len(before.runs) == len(after.runs) == 1
        tests = _Tests(names, sides, threshold, single=single)
        pace = tests.pace
        changes = tests.changes(paths=reader.by == "path")
        explained = causes(reader.paths, sides)
        notes += _notes(sides, tests, changes)
    return Comparison(
        before=before, after=after, by=reader.by, threshold=threshold, names=names,
        paths=reader.paths,
        changes=changes, explained=explained,
        counters=moved_counters(sides, threshold, RATE),
        logs=moved_counts(sides, "logs", ("severity", "template"), threshold, RATE),
        instants=moved_counts(sides, "instants", ("category", "name"), threshold, RATE),
        entries=moved_entries(sides, threshold, RATE), waits=moved_waits(sides, threshold),
        pace=pace, notes=notes,
    )  # fmt: skip


def check_verdicts(words: Iterable[str]) -> set[str]:
    """Return verdicts on which to fail; ``none`` names none. Raises UsageError for another word."""
    words = set(words)
    for word in sorted(words - {*ANY, "none"}):
        raise UsageError(
            f"there is no verdict {word!r}{did_you_mean(word, ANY)}",
            remedy=f"there are {', '.join(ANY)}, and none",
        )
    return words


def _check(sides: tuple[Side, Side]) -> None:
    """Raise UsageError if the sides cannot be compared."""
    for side, what in zip(sides, ("BEFORE", "AFTER"), strict=True):
        if not side.runs:
            raise UsageError(f"{what} has no captures", remedy="name at least one on each side")
    runs = [run for side in sides for run in side.runs if run.figures is not None]
    known = [run.timed for run in runs if run.figures is not None and run.figures.keys.size]
    if any(known) and not all(known):
        odd = next(run for run in runs if not run.timed)
        raise UsageError(
            "the rate of its clock is unknown, that of others is known: lengths cannot be compared",
            path=odd.name,
            remedy="give its rate, such as -o cycle_frequency=2400000000",
        )
    kinds = [[word for what, word in Side.DATA.items() if side.has(what)] for side in sides]
    if not set(kinds[0]) & set(kinds[1]):
        texts = [" and ".join(each) or "nothing" for each in kinds]
        raise UsageError(
            f"BEFORE has {texts[0]} to compare, and AFTER has {texts[1]}",
            remedy="compare captures that have the same kinds of data; `fxf info` lists them",
        )


def _left_out(sides: tuple[Side, Side]) -> list[str]:
    """Return what the format of one side alone has, which is not compared."""
    return [
        f"{one} alone has {word}: not compared, as the format of {other} has none"
        for what, word in Side.DATA.items()
        for (one, side), (other, lacks) in itertools.permutations(
            zip(("BEFORE", "AFTER"), sides, strict=True)
        )
        if side.has(what) and not lacks.can_have(what)
    ]


# --- Tests ---------------------------------------------------------------------------------------


class _Tests:
    """The figures of all names on both sides, and the tests of each name."""

    def __init__(
        self, names: Names, sides: tuple[Side, Side], threshold: float, *, single: bool
    ) -> None:
        self.names, self.sides, self.threshold = names, sides, math.log1p(threshold)
        self.single = single
        size = self.size = len(names)
        self.counts = [side.sums("count", size) for side in sides]
        self.totals = [side.sums("total", size) for side in sides]
        self.owns = [side.sums("own", size) for side in sides]
        self.figures = {
            name: [side.matrix(name, size) for side in sides]
            for name in ("mean", "median", "p90", "p99", "noise")
        }
        self.both = np.flatnonzero((self.counts[0] > 0) & (self.counts[1] > 0))
        self.pace = self._pace()
        shift = self.pace.ratio if self.pace is not None and self.pace.removed else 1.0
        self.shift = math.log(shift)
        self.means = self._ratios("mean")
        self.medians = self._median_ratios() if single else self._ratios("median")
        with np.errstate(all="ignore"):
            self.error = np.log(self.means.high / self.means.ratio) / 1.96
        self.p = np.full(size, np.nan)
        """The p of each name, NaN if it has too few calls."""
        self.found: list[dict[str, tuple[float, float]]] = [{} for _ in range(size)]
        """For each name and figure: the p of its test, and the logarithm of its change."""
        if single:
            self._test_calls()
        else:
            self._test_runs()

    # --- Pace ---

    def _pace(self) -> Pace | None:
        """Return the change of pace; None if there are too few names."""
        rates = []
        for side, total in zip(self.sides, self.counts, strict=True):
            own, count = (side.matrix(name, self.size) for name in ("own", "count"))
            with np.errstate(divide="ignore", invalid="ignore"):
                rates.append(np.where(own > 0, np.log(own / count), np.nan))
            rates[-1][:, total < LEAST_CALLS * len(side.runs)] = np.nan
        used = np.flatnonzero(~np.isnan(np.concatenate(rates)).any(axis=0))
        if used.size < LEAST_NAMES:
            return None
        rates = [rate[:, used] for rate in rates]
        middle = (rates[0].mean(axis=0) + rates[1].mean(axis=0)) / 2
        paces = [np.median(rate - middle, axis=1) for rate in rates]
        if self.single:
            change = float(np.median(rates[1][0] - rates[0][0]))
            return Pace(math.exp(change), used.size, None, removed=abs(change) <= MOOD)
        floor = np.zeros(1)
        found = significance.welch(
            np.exp(paces[0])[:, None], np.exp(paces[1])[:, None], (floor, floor)
        )
        p = float(found.p[0])
        self.paces = paces
        return Pace(float(found.ratio[0]), used.size, p, removed=not p < SURE)

    # --- Ratios ---

    def _ratios(self, figure: str, *, adjusted: bool = False) -> Estimate:
        """Return the ratios of the means over runs of a figure, for every name."""
        sides = self.figures[figure]
        if adjusted:
            sides = [
                values / np.exp(pace)[:, None]
                for values, pace in zip(sides, self.paces, strict=True)
            ]
        floors = []
        for values, noise in zip(self.figures[figure], self.figures["noise"], strict=True):
            known = ~np.isnan(noise)
            share = np.where(known, noise, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
            if len(values) >= FEW_RUNS:
                share = 0.0  # the runs themselves show how much they vary
            least = np.nanmin(np.where(np.isnan(values), np.inf, values), axis=0)
            with np.errstate(divide="ignore", invalid="ignore"):
                rounding = np.where(least > 0, WHOLE / least**2, 0.0)
            floors.append(np.maximum(share if figure == "mean" else 0.0, rounding))
        if not self.single:
            return significance.welch(sides[0], sides[1], (floors[0], floors[1]))
        means = [values[0] for values in sides]
        parts = [np.where(np.isnan(each[0]), 0.0, each[0]) for each in self.figures["noise"]]
        free = [np.maximum(count - 1, 0) for count in self.counts]
        whole = parts[0] + parts[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            df = whole**2 / (parts[0] ** 2 / free[0] + parts[1] ** 2 / free[1])
        enough = (self.counts[0] > 1) & (self.counts[1] > 1)
        return significance.estimated(
            means[0], means[1], np.where(enough, whole, np.nan), np.where(whole > 0, df, 1.0)
        )

    def _median_ratios(self) -> Estimate:
        """Return the ratios of the medians of two runs; intervals from their order statistics."""
        medians, variances = [], []
        for side in self.sides:
            variance = np.full(self.size, np.nan)
            for key, lengths in side.lengths().items():
                reach = 1.96 * math.sqrt(lengths.size) / 2
                low = lengths[max(int(lengths.size / 2 - reach), 0)]
                high = lengths[min(int(lengths.size / 2 + reach), lengths.size - 1)]
                if low > 0 and lengths.size > 1:
                    variance[key] = (math.log(high / low) / (2 * 1.96)) ** 2
            variances.append(variance)
        medians = [values[0] for values in self.figures["median"]]
        df = np.full(self.size, 1e6)
        return significance.estimated(medians[0], medians[1], variances[0] + variances[1], df)

    # --- One run a side ---

    def _test_calls(self) -> None:
        """Test names by their calls."""
        lengths = [side.lengths() for side in self.sides]
        drift = self._count_drift()
        for name in self.both.tolist():
            before, after = (each[name] for each in lengths)
            n, m = int(self.counts[0][name]), int(self.counts[1][name])
            if significance.least_rank_p(n, m) > RATE and 2.0 ** (1 - n - m) > RATE:
                continue
            found = self.found[name]
            found["median"] = self._ranked(name, before, after)
            if min(n, m) >= LEAST_FOR_MEAN:
                found["mean"] = self._averaged(name)
            for figure, share in TAILS.items():
                found[figure] = self._tailed(name, figure, share, before, after)
            found["count"] = _counted(n, m, drift)
        self._combine()

    def _combine(self) -> None:
        """Combine the tests of each name."""
        for name in self.both.tolist():
            if self.found[name]:
                self.p[name] = significance.combined_p(
                    {figure: (p, WEIGHTS[figure]) for figure, (p, _) in self.found[name].items()}
                )

    def _averaged(self, name: int) -> tuple[float, float]:
        """Return p and change of the mean: as it is, and relative to the pace."""
        change = self._least(float(np.log(self.means.ratio[name])))
        p = float(self.means.p[name])
        if change and p <= RATE and self.shift:
            error = self.error[name]
            p = max(p, math.erfc(abs(change) / error / math.sqrt(2))) if error > 0 else p
        return (1.0 if math.isnan(p) or not change else p), change

    def _count_drift(self) -> float:
        """Return the ratio of counts that the lengths of the captures may explain."""
        enough = self.both[np.minimum(self.counts[0], self.counts[1])[self.both] >= LEAST_CALLS]
        if enough.size < LEAST_NAMES:
            return 1.0
        change = float(np.median(np.log(self.counts[1][enough] / self.counts[0][enough])))
        return math.exp(change) if abs(change) <= MOOD else 1.0

    def _ranked(self, name: int, before: F64, after: F64) -> tuple[float, float]:
        """Return p and change of the typical length: as it is, and relative to the pace."""
        few = [significance.thinned(each) for each in (before, after)]
        p = significance.rank_p(*few)
        if self.shift and p <= RATE:
            p = max(p, significance.rank_p(few[0] * math.exp(self.shift), few[1]))
        change = _log_ratio(self.figures["median"], name)
        if not self._least(change):
            # Ranks may differ although the medians do not: then the means say by how much.
            change = _log_ratio(self.figures["mean"], name)
        return p, self._least(change)

    def _tailed(
        self, name: int, figure: str, share: float, before: F64, after: F64
    ) -> tuple[float, float]:
        """Return p and change of a tail: as it is, and relative to the pace."""
        change = self._least(_log_ratio(self.figures[figure], name))
        few = [significance.thinned(each) for each in (before, after)]
        p = 0.0
        for shift in {0.0, self.shift}:
            sides = few[0] * math.exp(shift), few[1]
            lower, upper = sides if change > 0 else sides[::-1]
            p = max(p, significance.tail_p(lower, upper, share))
        return min(2 * p, 1.0), change  # twice, for the direction is that of the data

    def _least(self, change: float) -> float:
        """Return the least change: as it is, or relative to the pace; 0 if their signs differ."""
        other = change - self.shift
        if math.isnan(change) or change * other <= 0:
            return 0.0
        return min(change, other, key=abs)

    # --- Several runs a side ---

    def _test_runs(self) -> None:
        """Test names by the figures of their runs."""
        removed = self.pace is not None and self.pace.removed
        for figure in ("mean", "median", "p99"):
            plain = self._ratios(figure)
            p, change = plain.p, np.log(plain.ratio)
            if removed:
                other = self._ratios(figure, adjusted=True)
                with np.errstate(invalid="ignore"):
                    apart = change * np.log(other.ratio) <= 0
                p = np.where(apart, 1.0, np.maximum(p, other.p))
                change = np.where(
                    apart, 0.0,
                    np.where(np.abs(np.log(other.ratio)) < np.abs(change), np.log(other.ratio),
                             change),
                )  # fmt: skip
            for name in self.both[~np.isnan(p[self.both])].tolist():
                self.found[name][figure] = float(p[name]), float(change[name])
        counts = [side.matrix("count", self.size, 0.0) for side in self.sides]
        with np.errstate(divide="ignore", invalid="ignore"):
            floors = [WHOLE / np.maximum(count.mean(axis=0), 1e-9) ** 2 for count in counts]
        found = significance.welch(counts[0], counts[1], (floors[0], floors[1]))
        for name in self.both[~np.isnan(found.p[self.both])].tolist():
            self.found[name]["count"] = float(found.p[name]), math.log(found.ratio[name])
        self._combine()

    # --- Verdicts ---

    def changes(self, *, paths: bool) -> list[Change]:
        """Return every name with its verdict, the greatest change first."""
        discovered, _ = significance.held(self.p, RATE)
        cut = float(self.p[discovered].max(initial=-1.0))
        made = [
            self._change(name, cut, paths=paths)
            for name in np.flatnonzero((self.counts[0] > 0) | (self.counts[1] > 0)).tolist()
        ]
        runs = len(self.sides[0].runs), len(self.sides[1].runs)
        return sorted(
            made,
            key=lambda one: (not one.changed, -abs(one.change_ns(runs)), one.label),
        )

    def _change(self, name: int, cut: float, *, paths: bool) -> Change:
        before, after = (self._measures(side, name) for side in (0, 1))
        verdict, p = "same", None
        where: tuple[str, ...] = ()
        ratio = median_ratio = None
        if before is None or after is None:
            verdict = "new" if before is None else "gone"
            if self.single:
                p = significance.count_p(*(int(counts[name]) for counts in self.counts))
        else:
            ratio, median_ratio = _ratio(self.means, name), _ratio(self.medians, name)
            if not np.isnan(self.p[name]):
                p = float(self.p[name])
                verdict, where = self._verdict(name, cut, ratio)
            if verdict == "same" and self._is_unclear(name, ratio) and before != after:
                verdict = UNCLEAR
        path = self.names.path(name) if paths else None
        return Change(
            name=self.names.name(name),
            path=None if path is None else tuple(path),
            before=before, after=after, ratio=ratio, median_ratio=median_ratio, p=p,
            verdict=verdict, where=where, asynchronous=self.names.is_asynchronous(name),
            number=name,
        )  # fmt: skip

    def _verdict(self, name: int, cut: float, ratio: Ratio | None) -> tuple[str, tuple[str, ...]]:
        """Return the verdict of a name and the figures that changed."""
        changed = {
            figure: change
            for figure, (p, change) in self.found[name].items()
            if p <= cut and abs(change) >= self.threshold
        }
        count = changed.pop("count", 0.0)
        if changed:
            change = min(changed.items(), key=lambda one: self.found[name][one[0]][0])[1]
            if ratio is not None and (ratio.low > 1 or ratio.high < 1):
                sure = math.log(ratio.estimate)
                change = sure if any(each * sure > 0 for each in changed.values()) else change
            where = tuple(
                figure
                for figure, (p, each) in self.found[name].items()
                if p <= PLAIN
                and each * change > 0
                and abs(each) >= self.threshold
                and figure != "count"
            )
            return "slower" if change > 0 else "faster", where
        if count:
            return "more" if count > 0 else "fewer", ("count",)
        return "same", ()

    def _is_unclear(self, name: int, ratio: Ratio | None) -> bool:
        """Return whether calls or runs are too few to tell that the mean did not change.

        With enough of them, a change that the tests do not see is small.
        """
        if self.single:
            is_few = min(int(count[name]) for count in self.counts) < LEAST_FOR_MEAN
        else:
            is_few = min(len(side.runs) for side in self.sides) < FEW_RUNS
        most = math.exp(self.threshold)
        is_within = ratio is not None and ratio.low >= 1 / most and ratio.high <= most
        return is_few and not is_within

    def _measures(self, side: int, name: int) -> Measures | None:
        count = int(self.counts[side][name])
        if not count:
            return None
        figures = {
            figure: self.figures[figure][side][:, name] for figure in ("median", "p90", "p99")
        }
        middle = {
            f"{figure}_ns": float(np.median(values[~np.isnan(values)]))
            for figure, values in figures.items()
        }
        total = int(self.totals[side][name])
        return Measures(
            count=count, total_ns=total, self_ns=int(self.owns[side][name]),
            mean_ns=total / count, **middle,
        )  # fmt: skip


def _log_ratio(sides: Sequence[F64], name: int) -> float:
    before, after = (float(values[0, name]) for values in sides)
    if before <= 0 or after <= 0:
        # A length of 0 is one that the clock did not resolve.
        before, after = before + 1, after + 1
    return math.log(after / before)


def _counted(before: int, after: int, drift: float) -> tuple[float, float]:
    """Return p and change of a count: as it is, and relative to that of all names."""
    change, other = math.log(after / before), math.log(after / before / drift)
    if change * other <= 0:
        return 1.0, 0.0
    p = max(significance.count_p(before, after, factor) for factor in {1.0, drift})
    return p, min(change, other, key=abs)


def _ratio(found: Estimate, name: int) -> Ratio | None:
    estimate = float(found.ratio[name])
    if math.isnan(estimate):
        return None
    return Ratio(estimate, float(found.low[name]), float(found.high[name]))


def _notes(sides: tuple[Side, Side], tests: _Tests, changes: Sequence[Change]) -> list[str]:
    """Return why the result may not be trusted."""
    notes = []
    runs = [len(side.runs) for side in sides]
    pace = tests.pace
    if pace is not None and abs(math.log(pace.ratio)) >= tests.threshold:
        word = "longer" if pace.ratio > 1 else "shorter"
        why = (
            "one run a side cannot distinguish the program from the machine"
            if tests.single
            else "the runs of a side differ about as much"
        )
        text = f"all {pace.names} names together took {pace.ratio:.2f} times as long ({word})"
        notes.append(
            f"{text}: {why}; a name is reported if it differs from that, too"
            if pace.removed
            else f"{text}: more than the machine explains"
        )
    if tests.single and changes:
        notes.append(
            "one run a side: calls of one run share its circumstances; five runs a side or more "
            "distinguish a change of the program from one of the machine"
        )
    elif min(runs) < FEW_RUNS:
        notes.append(
            f"{runs[0]} and {runs[1]} runs: with fewer than four a side, only great changes are "
            "found"
        )
    formats = [{run.format for run in side.runs} for side in sides]
    if formats[0] != formats[1]:
        texts = [", ".join(sorted(each)) for each in formats]
        notes.append(
            f"the sides have different formats, {texts[0]} and {texts[1]}, whose clocks and "
            "overheads may differ"
        )
    runs_with = [run for side in sides for run in side.runs if run.figures is not None]
    if not any(run.timed for run in runs_with):
        notes.append("the rate of the clocks is unknown: times are ticks")
    return notes
