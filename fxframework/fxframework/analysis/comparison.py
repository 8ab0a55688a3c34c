"""Comparisons: what changed from the runs of one side to those of another, and what is noise.

docs/compare.md says what is computed, and when not to believe it.
"""

from __future__ import annotations

import functools
import math
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import attrs
import numpy as np

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
from fxframework.kernels.arrays import F64
from fxframework.model.table import Table

SIDE_NAMES = ("BEFORE", "AFTER")
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
MACHINE_CHANGE = math.log(1.25)
"""Logarithm of the change of pace of a single run that the machine alone may cause."""
SURE = 0.001
"""p below which the paces of the runs of two sides differ."""
NAMED_P = 0.05
"""Greatest p of a figure that is named, of a name that changed."""
FEW_RUNS = 4
"""Runs of a side from which their variance is trusted without that of their calls."""
UNCLEAR = "unclear"
ANY = (*(verdict for verdict in VERDICTS if verdict != "same"), "higher", "lower", "changed")
"""The verdicts of calls, counters, messages and properties but ``same``; ``unclear`` is that of
the whole comparison."""
ROUNDING_VARIANCE = 1 / 12
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
        moves = (*self.counters, *self.logs, *self.instants, *self.entries)
        verdicts = [change.verdict for change in self.changes]
        verdicts += [move.verdict for move in moves]
        return dict(Counter(verdict for verdict in verdicts if verdict not in UNCHANGED))

    @property
    def times(self) -> tuple[float, float]:
        """The time in calls of a run of each side, in nanoseconds, summed over threads."""
        return _time_in_calls(self.before), _time_in_calls(self.after)

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
        present = set(self.verdicts)
        if self.unclear:
            present.add(UNCLEAR)
        return not present.isdisjoint(verdicts)

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
        result = ", ".join(f"{count} {name}" for name, count in self.verdicts.items())
        if not result:
            result = UNCLEAR if self.unclear else "same"
        return f"<Comparison of {self.runs[0]} and {self.runs[1]} runs: {result}>"

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
    sides = (before, after)
    notes = join_runs(sides)
    _check_comparable(sides)
    notes += _uncompared_kinds(sides)
    changes: Sequence[Change] = ()
    pace = None
    explained: Sequence[Cause] = ()
    formats_have_calls = all(side.can_have("figures") for side in sides)
    if formats_have_calls and any(side.has("figures") for side in sides):
        figures = _NameFigures(reader.names, sides)
        tests = _Tests(figures, threshold)
        pace = tests.pace
        changes = tests.changes(paths=reader.by == "path")
        explained = causes(reader.paths, sides)
        notes += _doubts(sides, tests, changes)
    return Comparison(
        before=before,
        after=after,
        by=reader.by,
        threshold=threshold,
        names=reader.names,
        paths=reader.paths,
        changes=changes,
        explained=explained,
        counters=moved_counters(sides, threshold, RATE),
        logs=moved_counts(sides, "logs", ("severity", "template"), threshold, RATE),
        instants=moved_counts(sides, "instants", ("category", "name"), threshold, RATE),
        entries=moved_entries(sides, threshold, RATE),
        waits=moved_waits(sides, threshold),
        pace=pace,
        notes=notes,
    )


def _time_in_calls(side: Side) -> float:
    """Return the mean over the runs of a side of their self times, in nanoseconds."""
    total = sum(int(run.tree.own.sum()) for run in side.runs if run.tree is not None)
    return total / len(side.runs)


def check_verdicts(words: Iterable[str]) -> set[str]:
    """Return verdicts on which to fail; ``none`` names none. Raises UsageError for another word."""
    words = set(words)
    for word in sorted(words - {*ANY, "none"}):
        raise UsageError(
            f"there is no verdict {word!r}{did_you_mean(word, ANY)}",
            remedy=f"there are {', '.join(ANY)}, and none",
        )
    return words


def _check_comparable(sides: tuple[Side, Side]) -> None:
    """Raise UsageError if the sides cannot be compared."""
    for side, side_name in zip(sides, SIDE_NAMES, strict=True):
        if not side.runs:
            raise UsageError(
                f"{side_name} has no captures", remedy="name at least one on each side"
            )
    runs_with_slices = [run for side in sides for run in side.runs if run.figures is not None]
    # A run without calls has no lengths, in whatever unit: it may be beside any other.
    is_timed = [
        run.timed for run in runs_with_slices if run.figures is not None and run.figures.keys.size
    ]
    if any(is_timed) and not all(is_timed):
        untimed_run = next(run for run in runs_with_slices if not run.timed)
        raise UsageError(
            "the rate of its clock is unknown, that of others is known: lengths cannot be compared",
            path=untimed_run.name,
            remedy="give its rate, such as -o cycle_frequency=2400000000",
        )
    words_before, words_after = (_words_of_data(side) for side in sides)
    if not set(words_before) & set(words_after):
        has_before = " and ".join(words_before) or "nothing"
        has_after = " and ".join(words_after) or "nothing"
        raise UsageError(
            f"BEFORE has {has_before} to compare, and AFTER has {has_after}",
            remedy="compare captures that have the same kinds of data; `fxf info` lists them",
        )


def _words_of_data(side: Side) -> list[str]:
    """Return the words for the kinds of data that a side has."""
    return [word for kind, word in Side.DATA.items() if side.has(kind)]


def _uncompared_kinds(sides: tuple[Side, Side]) -> list[str]:
    """Return notes about data that the format of one side alone can have."""
    before, after = zip(SIDE_NAMES, sides, strict=True)
    notes = []
    for kind, word in Side.DATA.items():
        for (name, side), (opposite_name, opposite) in ((before, after), (after, before)):
            if side.has(kind) and not opposite.can_have(kind):
                notes.append(
                    f"{name} alone has {word}: not compared, as the format of {opposite_name} has "
                    "none"
                )
    return notes


# --- Figures -------------------------------------------------------------------------------------


class _NameFigures:
    """The figures of all names on both sides; lists have a member for each side."""

    def __init__(self, names: Names, sides: tuple[Side, Side]) -> None:
        self.names = names
        self.sides = sides
        size = len(names)
        self.size = size
        self.single = all(len(side.runs) == 1 for side in sides)
        """Whether there is one run a side: then calls are tested, otherwise runs."""
        self.counts = [side.sums("count", size) for side in sides]
        self.totals = [side.sums("total", size) for side in sides]
        self.owns = [side.sums("own", size) for side in sides]
        self.of_runs = {
            figure: [side.matrix(figure, size) for side in sides]
            for figure in ("mean", "median", "p90", "p99", "noise")
        }
        """By figure, for each side: its values in each run, shape (runs, names)."""
        count_before, count_after = self.counts
        self.on_both_sides = np.flatnonzero((count_before > 0) & (count_after > 0))

    def self_time_rates(self) -> list[F64]:
        """Return the logarithms of the mean self times of each side, shape (runs, names).

        NaN for a name without self time in a run, or with too few calls for the pace.
        """
        rates = []
        for side, counts in zip(self.sides, self.counts, strict=True):
            own = side.matrix("own", self.size)
            calls = side.matrix("count", self.size)
            with np.errstate(divide="ignore", invalid="ignore"):
                side_rates = np.where(own > 0, np.log(own / calls), np.nan)
            has_few_calls = counts < LEAST_CALLS * len(side.runs)
            side_rates[:, has_few_calls] = np.nan
            rates.append(side_rates)
        return rates

    def ratios(self, figure: str, paces: Sequence[F64] | None = None) -> Estimate:
        """Return the ratios of the means over runs of a figure, for every name.

        ``paces`` are logarithms of the paces of the runs of each side, which values are divided
        by; only for several runs a side.
        """
        before, after = self.of_runs[figure]
        floors = (self._least_variance(figure, 0), self._least_variance(figure, 1))
        if paces is not None:
            pace_before, pace_after = (np.exp(pace_of_runs) for pace_of_runs in paces)
            before = before / pace_before[:, None]
            after = after / pace_after[:, None]
        if not self.single:
            return significance.welch(before, after, floors)
        # The variance of one run's mean is that of its calls, if they are independent.
        runs_noise_before, runs_noise_after = self.of_runs["noise"]
        noise_before = _zero_for_nan(runs_noise_before[0])
        noise_after = _zero_for_nan(runs_noise_after[0])
        count_before, count_after = self.counts
        free_before = np.maximum(count_before - 1, 0)
        free_after = np.maximum(count_after - 1, 0)
        variance = noise_before + noise_after
        with np.errstate(divide="ignore", invalid="ignore"):
            df = significance.welch_freedom(noise_before, free_before, noise_after, free_after)
        has_variance = (count_before > 1) & (count_after > 1)
        df = np.where(variance > 0, df, 1.0)
        variance = np.where(has_variance, variance, np.nan)
        return significance.estimated(before[0], after[0], variance, df)

    def _least_variance(self, figure: str, side: int) -> F64:
        """Return the least relative variance of a figure of a run on a side, shape (names,)."""
        values = self.of_runs[figure][side]
        known_values = np.where(np.isnan(values), np.inf, values)
        smallest = known_values.min(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            rounding = np.where(smallest > 0, ROUNDING_VARIANCE / smallest**2, 0.0)
        if figure != "mean" or len(values) >= FEW_RUNS:
            # Noise is known of means alone; enough runs show it by how much they differ.
            return rounding
        noise = self.of_runs["noise"][side]
        has_noise = ~np.isnan(noise)
        runs_with_noise = np.maximum(has_noise.sum(axis=0), 1)
        mean_noise = np.where(has_noise, noise, 0.0).sum(axis=0) / runs_with_noise
        least: F64 = np.maximum(mean_noise, rounding)
        return least

    def median_ratios(self) -> Estimate:
        """Return the ratios of the medians of two runs; intervals from their order statistics."""
        variances = []
        for side in self.sides:
            variance = np.full(self.size, np.nan)
            for name, lengths in side.lengths().items():
                # The rank of the true median is binomial: n/2, with a deviation of √n/2.
                reach = 1.96 * math.sqrt(lengths.size) / 2
                middle = lengths.size / 2
                low_rank = max(int(middle - reach), 0)
                high_rank = min(int(middle + reach), lengths.size - 1)
                low = lengths[low_rank]
                high = lengths[high_rank]
                if low > 0 and lengths.size > 1:
                    deviation = math.log(high / low) / (2 * 1.96)
                    variance[name] = deviation**2
            variances.append(variance)
        before, after = (values[0] for values in self.of_runs["median"])
        many = np.full(self.size, 1e6)  # degrees of freedom: the normal distribution
        variance_before, variance_after = variances
        return significance.estimated(before, after, variance_before + variance_after, many)

    def log_ratio(self, figure: str, name: int) -> float:
        """Return the logarithm of the change of a figure of a name, of the first run a side."""
        values_before, values_after = self.of_runs[figure]
        before = float(values_before[0, name])
        after = float(values_after[0, name])
        if before <= 0 or after <= 0:
            # A length of 0 is one that the clock did not resolve.
            before += 1
            after += 1
        return math.log(after / before)

    def measures(self, side: int, name: int) -> Measures | None:
        """Return the calls of a name on a side; None if there are none."""
        count = int(self.counts[side][name])
        if not count:
            return None
        medians_of_runs = {}
        for figure in ("median", "p90", "p99"):
            values = self.of_runs[figure][side][:, name]
            median = np.median(values[~np.isnan(values)])
            medians_of_runs[f"{figure}_ns"] = float(median)
        total = int(self.totals[side][name])
        return Measures(
            count=count,
            total_ns=total,
            self_ns=int(self.owns[side][name]),
            mean_ns=total / count,
            **medians_of_runs,
        )


# --- Tests ---------------------------------------------------------------------------------------


class _TestResult(NamedTuple):
    """The test of one figure of a name."""

    p: float
    change: float
    """Logarithm of AFTER/BEFORE."""


class _Tests:
    """The tests of each name, and the verdicts that follow from them.

    A name must differ from the pace of all names, too, if the machine may have caused that: each
    test is made of the lengths as they are and relative to the pace, and the weaker result counts.
    """

    def __init__(self, figures: _NameFigures, threshold: float) -> None:
        self.figures = figures
        self.single = figures.single
        self.threshold = math.log1p(threshold)
        self._paces: Sequence[F64] = ()
        self.pace = self._overall_pace()
        """None if there are too few names."""
        self._log_pace = 0.0
        if self.pace is not None and self.pace.removed:
            self._log_pace = math.log(self.pace.ratio)
        self._means = figures.ratios("mean")
        self._medians = figures.median_ratios() if self.single else figures.ratios("median")
        self._p = np.full(figures.size, np.nan)
        """The p of each name, NaN if it has too few calls."""
        self._results: list[dict[str, _TestResult]] = [{} for _ in range(figures.size)]
        """The test of each figure, by name."""
        if self.single:
            self._test_calls()
        else:
            self._test_runs()
        self._combine()

    # --- Pace ---

    def _overall_pace(self) -> Pace | None:
        """Return the change of pace; None if there are too few names."""
        rates_before, rates_after = self.figures.self_time_rates()
        every_run = np.concatenate((rates_before, rates_after))
        used = np.flatnonzero(~np.isnan(every_run).any(axis=0))
        if used.size < LEAST_NAMES:
            return None
        rates_before = rates_before[:, used]
        rates_after = rates_after[:, used]
        if self.single:
            change = float(np.median(rates_after[0] - rates_before[0]))
            is_of_machine = abs(change) <= MACHINE_CHANGE
            return Pace(math.exp(change), used.size, None, removed=is_of_machine)
        # Each side has the same weight in the middle, however many runs it has.
        middle = (rates_before.mean(axis=0) + rates_after.mean(axis=0)) / 2
        pace_before = np.median(rates_before - middle, axis=1)
        pace_after = np.median(rates_after - middle, axis=1)
        self._paces = (pace_before, pace_after)
        no_floor = np.zeros(1)
        factors_before = np.exp(pace_before)[:, None]
        factors_after = np.exp(pace_after)[:, None]
        estimate = significance.welch(factors_before, factors_after, (no_floor, no_floor))
        p = float(estimate.p[0])
        # `not p < SURE`, for p may be NaN: then the paces are not known to differ.
        ratio = float(estimate.ratio[0])
        return Pace(ratio, used.size, p, removed=not p < SURE)

    def _weaker(self, change: float) -> float:
        """Return the weaker change: as it is, or relative to the pace; 0 if their signs differ."""
        relative = change - self._log_pace
        if math.isnan(change) or change * relative <= 0:
            return 0.0
        return min(change, relative, key=abs)

    # --- One run a side ---

    def _test_calls(self) -> None:
        """Test names by their calls."""
        lengths_before, lengths_after = (side.lengths() for side in self.figures.sides)
        drift = self._count_drift()
        counts_before, counts_after = self.figures.counts
        for name in self.figures.on_both_sides.tolist():
            n = int(counts_before[name])
            m = int(counts_after[name])
            # So few calls can be no discovery, neither by their ranks nor by their number.
            if significance.least_rank_p(n, m) > RATE and 2.0 ** (1 - n - m) > RATE:
                continue
            before = significance.thinned(lengths_before[name])
            after = significance.thinned(lengths_after[name])
            results = self._results[name]
            results["median"] = self._test_ranks(name, before, after)
            if min(n, m) >= LEAST_FOR_MEAN:
                results["mean"] = self._test_mean(name)
            for figure, share in TAILS.items():
                results[figure] = self._test_tail(name, figure, share, before, after)
            results["count"] = _test_count(n, m, drift)

    def _combine(self) -> None:
        """Combine the tests of each name."""
        for name in self.figures.on_both_sides.tolist():
            results = self._results[name]
            if results:
                weighted = {}
                for figure, test in results.items():
                    weighted[figure] = (test.p, WEIGHTS[figure])
                self._p[name] = significance.combined_p(weighted)

    def _test_mean(self, name: int) -> _TestResult:
        ratio = self._means.ratio[name]
        change = self._weaker(float(np.log(ratio)))
        p = float(self._means.p[name])
        if change and p <= RATE and self._log_pace:
            # The interval is symmetric in the logarithm, 1.96 standard errors on each side.
            with np.errstate(all="ignore"):
                error = np.log(self._means.high[name] / ratio) / 1.96
            if error > 0:
                p = max(p, significance.normal_p(abs(change) / error))
        if math.isnan(p) or not change:
            p = 1.0
        return _TestResult(p, change)

    def _count_drift(self) -> float:
        """Return the ratio of counts that the lengths of the captures may explain."""
        counts_before, counts_after = self.figures.counts
        names = self.figures.on_both_sides
        least_counts = np.minimum(counts_before, counts_after)
        names = names[least_counts[names] >= LEAST_CALLS]
        if names.size < LEAST_NAMES:
            return 1.0
        count_ratios = counts_after[names] / counts_before[names]
        change = float(np.median(np.log(count_ratios)))
        if abs(change) > MACHINE_CHANGE:
            return 1.0
        return math.exp(change)

    def _test_ranks(self, name: int, before: F64, after: F64) -> _TestResult:
        """Test the typical length."""
        p = significance.rank_p(before, after)
        if self._log_pace and p <= RATE:
            paced_before = before * math.exp(self._log_pace)
            p = max(p, significance.rank_p(paced_before, after))
        change = self.figures.log_ratio("median", name)
        if not self._weaker(change):
            # Ranks may differ although the medians do not: then the means say by how much.
            change = self.figures.log_ratio("mean", name)
        return _TestResult(p, self._weaker(change))

    def _test_tail(
        self, name: int, figure: str, share: float, before: F64, after: F64
    ) -> _TestResult:
        change = self._weaker(self.figures.log_ratio(figure, name))
        p = 0.0
        for shift in {0.0, self._log_pace}:
            shifted = before * math.exp(shift)
            if change > 0:
                tail_p = significance.tail_p(shifted, after, share)
            else:
                tail_p = significance.tail_p(after, shifted, share)
            p = max(p, tail_p)
        # Twice, for the direction is that of the data.
        return _TestResult(min(2 * p, 1.0), change)

    # --- Several runs a side ---

    def _test_runs(self) -> None:
        """Test names by the figures of their runs."""
        names = self.figures.on_both_sides
        for figure in ("mean", "median", "p99"):
            estimate = self.figures.ratios(figure)
            p = estimate.p
            change = np.log(estimate.ratio)
            if self.pace is not None and self.pace.removed:
                relative = self.figures.ratios(figure, self._paces)
                relative_change = np.log(relative.ratio)
                with np.errstate(invalid="ignore"):
                    signs_differ = change * relative_change <= 0
                p = np.where(signs_differ, 1.0, np.maximum(p, relative.p))
                is_weaker = np.abs(relative_change) < np.abs(change)
                weaker = np.where(is_weaker, relative_change, change)
                change = np.where(signs_differ, 0.0, weaker)
            for name in names[~np.isnan(p[names])].tolist():
                result = _TestResult(float(p[name]), float(change[name]))
                self._results[name][figure] = result
        counts = self._test_run_counts()
        for name in names[~np.isnan(counts.p[names])].tolist():
            count_change = math.log(counts.ratio[name])
            result = _TestResult(float(counts.p[name]), count_change)
            self._results[name]["count"] = result

    def _test_run_counts(self) -> Estimate:
        """Compare the numbers of calls of the runs; a run without a name has 0 of it."""
        side_before, side_after = self.figures.sides
        before = side_before.matrix("count", self.figures.size, 0.0)
        after = side_after.matrix("count", self.figures.size, 0.0)
        least_mean = 1e-9
        mean_before = np.maximum(before.mean(axis=0), least_mean)
        mean_after = np.maximum(after.mean(axis=0), least_mean)
        floor_before = ROUNDING_VARIANCE / mean_before**2
        floor_after = ROUNDING_VARIANCE / mean_after**2
        return significance.welch(before, after, (floor_before, floor_after))

    # --- Verdicts ---

    def changes(self, *, paths: bool) -> list[Change]:
        """Return every name with its verdict, the greatest change first."""
        discovered, _ = significance.held(self._p, RATE)
        largest_p = float(self._p[discovered].max(initial=-1.0))
        counts_before, counts_after = self.figures.counts
        with_calls = np.flatnonzero((counts_before > 0) | (counts_after > 0))
        changes = [self._change(name, largest_p, paths=paths) for name in with_calls.tolist()]
        before, after = self.figures.sides
        runs = (len(before.runs), len(after.runs))
        return sorted(
            changes,
            key=lambda change: (not change.changed, -abs(change.change_ns(runs)), change.label),
        )

    def _change(self, name: int, largest_p: float, *, paths: bool) -> Change:
        """Return a name with its verdict; ``largest_p`` is that of all discoveries."""
        before = self.figures.measures(0, name)
        after = self.figures.measures(1, name)
        verdict = "same"
        p = None
        where: tuple[str, ...] = ()
        ratio = median_ratio = None
        if before is None or after is None:
            verdict = "new" if before is None else "gone"
            if self.single:
                counts_before, counts_after = self.figures.counts
                p = significance.count_p(int(counts_before[name]), int(counts_after[name]))
        else:
            ratio = _ratio_of(self._means, name)
            median_ratio = _ratio_of(self._medians, name)
            if not np.isnan(self._p[name]):
                p = float(self._p[name])
                verdict, where = self._verdict(name, largest_p, ratio)
            if verdict == "same" and before != after and self._is_unclear(name, ratio):
                verdict = UNCLEAR
        names = self.figures.names
        return Change(
            name=names.name(name),
            path=tuple(names.path(name)) if paths else None,
            before=before,
            after=after,
            ratio=ratio,
            median_ratio=median_ratio,
            p=p,
            verdict=verdict,
            where=where,
            asynchronous=names.is_asynchronous(name),
            number=name,
        )

    def _verdict(
        self, name: int, largest_p: float, ratio: Ratio | None
    ) -> tuple[str, tuple[str, ...]]:
        """Return the verdict of a name and the figures that changed."""
        results = self._results[name]
        changed = {
            figure: test.change
            for figure, test in results.items()
            if test.p <= largest_p and abs(test.change) >= self.threshold
        }
        count_change = changed.pop("count", 0.0)
        if not changed:
            if count_change:
                return ("more" if count_change > 0 else "fewer"), ("count",)
            return "same", ()
        surest_figure = min(changed, key=lambda figure: results[figure].p)
        change = changed[surest_figure]
        if ratio is not None and (ratio.low > 1 or ratio.high < 1):
            # The mean decides the direction if it is sure, and any figure goes along with it.
            mean_change = math.log(ratio.estimate)
            if any(figure_change * mean_change > 0 for figure_change in changed.values()):
                change = mean_change
        where = []
        for figure, test in results.items():
            is_named = test.p <= NAMED_P and abs(test.change) >= self.threshold
            if is_named and test.change * change > 0 and figure != "count":
                where.append(figure)
        return ("slower" if change > 0 else "faster"), tuple(where)

    def _is_unclear(self, name: int, ratio: Ratio | None) -> bool:
        """Return whether calls or runs are too few to tell that the mean did not change.

        With enough of them, a change that the tests do not see is small.
        """
        if self.single:
            fewest_calls = min(int(count[name]) for count in self.figures.counts)
            is_few = fewest_calls < LEAST_FOR_MEAN
        else:
            fewest_runs = min(len(side.runs) for side in self.figures.sides)
            is_few = fewest_runs < FEW_RUNS
        if ratio is None:
            return is_few
        most = math.exp(self.threshold)
        is_within = ratio.low >= 1 / most and ratio.high <= most
        return is_few and not is_within


def _test_count(before: int, after: int, drift: float) -> _TestResult:
    """Test a number of calls: as it is, and relative to that of all names."""
    change = math.log(after / before)
    relative = math.log(after / before / drift)
    if change * relative <= 0:
        return _TestResult(1.0, 0.0)
    p = max(significance.count_p(before, after, factor) for factor in {1.0, drift})
    return _TestResult(p, min(change, relative, key=abs))


def _ratio_of(estimate: Estimate, name: int) -> Ratio | None:
    ratio = float(estimate.ratio[name])
    if math.isnan(ratio):
        return None
    low = float(estimate.low[name])
    high = float(estimate.high[name])
    return Ratio(ratio, low, high)


def _zero_for_nan(values: F64) -> F64:
    """Return values with 0 in place of those that are not known."""
    return np.where(np.isnan(values), 0.0, values)


def _doubts(sides: tuple[Side, Side], tests: _Tests, changes: Sequence[Change]) -> list[str]:
    """Return why the result may not be trusted."""
    notes = []
    pace = tests.pace
    # A smaller change of pace gives no reason for doubt; names are compared with it all the same.
    if pace is not None and abs(math.log(pace.ratio)) >= tests.threshold:
        word = "longer" if pace.ratio > 1 else "shorter"
        text = f"all {pace.names} names together took {pace.ratio:.2f} times as long ({word})"
        if not pace.removed:
            notes.append(f"{text}: more than the machine explains")
        else:
            why = "the runs of a side differ about as much"
            if tests.single:
                why = "one run a side cannot distinguish the program from the machine"
            notes.append(f"{text}: {why}; a name is reported if it differs from that, too")
    runs_before, runs_after = (len(side.runs) for side in sides)
    if tests.single and changes:
        notes.append(
            "one run a side: calls of one run share its circumstances; five runs a side or more "
            "distinguish a change of the program from one of the machine"
        )
    elif min(runs_before, runs_after) < FEW_RUNS:
        notes.append(
            f"{runs_before} and {runs_after} runs: with fewer than four a side, only great changes "
            "are found"
        )
    formats_before, formats_after = (
        ", ".join(sorted({run.format for run in side.runs})) for side in sides
    )
    if formats_before != formats_after:
        notes.append(
            f"the sides have different formats, {formats_before} and {formats_after}, whose clocks "
            "and overheads may differ"
        )
    runs_with_slices = [run for side in sides for run in side.runs if run.figures is not None]
    if not any(run.timed for run in runs_with_slices):
        notes.append("the rate of the clocks is unknown: times are ticks")
    return notes
