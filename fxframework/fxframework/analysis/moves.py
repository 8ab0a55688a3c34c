"""Moves: counters, messages, entries and waits that changed from one side to the other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from fxframework.analysis import significance
from fxframework.analysis.runs import Run, Side
from fxframework.analysis.signals import Signal
from fxframework.kernels.arrays import F64
from fxframework.kit.json_fields import finite


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


# --- Counters ------------------------------------------------------------------------------------


def moved_counters(sides: tuple[Side, Side], threshold: float, rate: float) -> Sequence[Move]:
    """Compare the levels of counters: means of runs, or of parts of the runs if there is one."""
    single = _has_one_run_a_side(sides)
    moves = []
    for key in _all_keys(sides, "counters"):
        signals_before, signals_after = _values_of_runs(sides, "counters", key)
        p = _difference_p(
            _level_samples(signals_before, single=single),
            _level_samples(signals_after, single=single),
        )
        moves.append(
            Move(
                key=dict(zip(("category", "name", "series"), key, strict=True)),
                before=_counter_values(signals_before),
                after=_counter_values(signals_after),
                p=p,
                verdict="same",
            )
        )
    return _with_verdicts(moves, "level", ("higher", "lower"), threshold, rate)


def _level_samples(signals: Sequence[Signal], *, single: bool) -> F64:
    """Return the means that are compared: of the runs, or of the blocks of a ``single`` run."""
    if single and signals:
        return np.concatenate([signal.blocks for signal in signals])
    return np.array([signal.level for signal in signals])


def _counter_values(signals: Sequence[Signal]) -> Mapping[str, Any] | None:
    """Return what is shown of a counter on a side; None if no run of it has the counter."""
    if not signals:
        return None
    level = float(np.mean([signal.level for signal in signals]))
    rates = [signal.rate for signal in signals if signal.rate is not None]
    rate = None
    if rates:
        rate = finite(sum(rates) / len(rates))
    count = sum(signal.count for signal in signals)
    return {"count": count, "level": finite(level), "rate": rate}


# --- Numbers of messages and instants ------------------------------------------------------------


def moved_counts(
    sides: tuple[Side, Side], what: str, labels: tuple[str, ...], threshold: float, rate: float
) -> Sequence[Move]:
    """Compare how often things occurred: messages of each template, or instants of each name.

    ``labels`` are the kinds of names of their keys.
    """
    moves = []
    for key in _all_keys(sides, what):
        counts_before, counts_after = (
            np.array([counts.get(key, 0) for counts in _data_of_runs(side.runs, what)], "f8")
            for side in sides
        )
        if _has_one_run_a_side(sides):
            sum_before = int(counts_before.sum())
            sum_after = int(counts_after.sum())
            p: float | None = significance.count_p(sum_before, sum_after)
        else:
            p = _difference_p(counts_before, counts_after)
        moves.append(
            Move(
                key=dict(zip(labels, key, strict=True)),
                before=_count_values(counts_before),
                after=_count_values(counts_after),
                p=p,
                verdict="same",
            )
        )
    return _with_verdicts(moves, "per_run", ("more", "fewer"), threshold, rate)


def _count_values(counts: F64) -> Mapping[str, Any] | None:
    """Return what is shown of the counts of the runs of a side; None if they are all 0."""
    total = int(counts.sum())
    if not total:
        return None
    return {"count": total, "per_run": total / counts.size}


# --- Entries -------------------------------------------------------------------------------------


def moved_entries(sides: tuple[Side, Side], threshold: float, rate: float) -> Sequence[Move]:
    """Compare the entries of states by path; numbers of several runs by their means.

    Of one run a side, every difference is reported; there is no sample to test.
    """
    single = _has_one_run_a_side(sides)
    moves = []
    for path in _all_keys(sides, "entries"):
        values_before, values_after = _values_of_runs(sides, "entries", path)
        numbers_before = _as_numbers(values_before)
        numbers_after = _as_numbers(values_after)
        p = None
        verdict = "same"
        if values_before and values_after:
            if not single and numbers_before.size and numbers_after.size:
                p = _difference_p(numbers_before, numbers_after)
            elif any(value != values_before[0] for value in (*values_before, *values_after)):
                verdict = "changed"
        moves.append(
            Move(
                key={"path": path},
                before=_entry_values(values_before, numbers_before),
                after=_entry_values(values_after, numbers_after),
                p=p,
                verdict=verdict,
            )
        )
    return _with_verdicts(moves, "mean", ("higher", "lower"), threshold, rate)


def _as_numbers(values: Sequence[Any]) -> F64:
    """Return the values as numbers; none at all unless every one is a number."""
    if values and all(isinstance(value, int | float) for value in values):
        return np.array(values, np.float64)
    return np.zeros(0)


def _entry_values(values: Sequence[Any], numbers: F64) -> Mapping[str, Any] | None:
    """Return what is shown of an entry on a side; None if no run of it has the entry."""
    if not values:
        return None
    mean = None
    if numbers.size:
        mean = finite(float(numbers.mean()))
    return {"value": values[-1], "mean": mean}


# --- Waits ---------------------------------------------------------------------------------------


def moved_waits(sides: tuple[Side, Side], threshold: float) -> Sequence[Move]:
    """Compare how long threads were in each state within the slices of a name, for each run."""
    if not all(any(run.waits for run in side.runs) for side in sides):
        return ()
    keys = {key for side in sides for run in side.runs for key in run.waits or ()}
    moves: list[tuple[float, Move]] = []
    for slice_name, state in sorted(keys):
        before, after = (_mean_wait(side, (slice_name, state)) for side in sides)
        # Waits are not tested: each difference beyond the threshold is reported.
        verdict = "same"
        if abs(after - before) > threshold * max(before, after):
            verdict = "more" if after > before else "fewer"
        name = slice_name.decode("utf-8", "replace")
        move = Move(
            key={"name": name, "state": state},
            before=_wait_values(before),
            after=_wait_values(after),
            p=None,
            verdict=verdict,
        )
        moves.append((abs(after - before), move))
    moves.sort(key=lambda difference_and_move: -difference_and_move[0])
    return [move for _, move in moves]


def _wait_values(ns: float) -> Mapping[str, Any] | None:
    """Return what is shown of a wait on a side; None if there was none."""
    return {"ns": ns} if ns else None


# --- Data of the runs ----------------------------------------------------------------------------


def _has_one_run_a_side(sides: tuple[Side, Side]) -> bool:
    return all(len(side.runs) == 1 for side in sides)


def _data_of_runs(runs: Sequence[Run], what: str) -> list[Mapping[Any, Any]]:
    """Return data of one kind, such as ``counters``, of the runs whose format can have it."""
    return [data for run in runs if (data := getattr(run, what)) is not None]


def _mean_wait(side: Side, key: Any) -> float:
    """Return the time of a run in a state within the slices of a name, the mean of all runs."""
    waits = [(run.waits or {}).get(key, 0) for run in side.runs]
    return sum(waits) / len(side.runs)


def _all_keys(sides: tuple[Side, Side], what: str) -> list[Any]:
    """Return the keys of all runs, sorted; none if the format of a side has no such data."""
    if not all(side.can_have(what) for side in sides):
        return []
    return sorted(
        {key for side in sides for data in _data_of_runs(side.runs, what) for key in data}
    )


def _values_of_runs(sides: tuple[Side, Side], what: str, key: Any) -> list[list[Any]]:
    """Return the values of a key in the runs of each side that have it."""
    return [[data[key] for data in _data_of_runs(side.runs, what) if key in data] for side in sides]


# --- Tests and verdicts --------------------------------------------------------------------------


def _difference_p(before: F64, after: F64) -> float | None:
    """Return the p of Welch's t-test of a difference; None for fewer than two values a side."""
    n = before.size
    m = after.size
    if n < 2 or m < 2:
        return None
    with np.errstate(all="ignore"):
        variance_before = before.var(ddof=1) / n
        variance_after = after.var(ddof=1) / m
        variance = variance_before + variance_after
        change = after.mean() - before.mean()
        if not variance > 0:
            # All values of a side are equal: that they differ is as sure as their number allows.
            return 1.0 if change == 0 else significance.least_rank_p(n, m)
        df = significance.welch_freedom(variance_before, n - 1, variance_after, m - 1)
        t = change / math.sqrt(variance)
        p_of_tests = significance.t_p(np.array([t]), np.array([df]))
        p = float(p_of_tests[0])
    return None if math.isnan(p) else p


def _with_verdicts(
    moves: list[Move], figure: str, words: tuple[str, str], threshold: float, rate: float
) -> Sequence[Move]:
    """Return moves with their verdicts; changed ones first, the most certain first.

    ``words`` are the verdicts of a ``figure`` that increased and of one that decreased.
    """
    increased, decreased = words
    tested_p = np.full(len(moves), np.nan)
    for index, move in enumerate(moves):
        # What is new or gone was not tested: its verdict needs none.
        if move.p is not None and move.before is not None and move.after is not None:
            tested_p[index] = move.p
    is_discovery, _ = significance.held(tested_p, rate)
    results = []
    for move, discovered in zip(moves, is_discovery.tolist(), strict=True):
        verdict = move.verdict
        if move.before is None:
            verdict = "new"
        elif move.after is None:
            verdict = "gone"
        elif discovered:
            before = move.before.get(figure) or 0.0
            after = move.after.get(figure) or 0.0
            if abs(after - before) > threshold * max(abs(before), abs(after)):
                verdict = increased if after > before else decreased
        results.append(attrs.evolve(move, verdict=verdict))

    def order(move: Move) -> tuple[bool, float, str]:
        return move.verdict == "same", 1.0 if move.p is None else move.p, move.label

    return sorted(results, key=order)
