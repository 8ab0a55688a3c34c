"""Columns: what several modules ask of arrays of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I64, Bools
from fxframework.kernels.sorting import begins_of_runs, stable_order


def latest(mask: Bools) -> I64:
    """Return the last row up to each where a mask holds, -1 for none."""
    rows = np.where(mask, np.arange(mask.size), -1)
    return np.maximum.accumulate(rows)


def following(mask: Bools) -> I64:
    """Return the first row behind each where a mask holds, the number of rows for none."""
    rows = np.where(mask, np.arange(mask.size), mask.size)
    least = np.minimum.accumulate(rows[::-1])[::-1]
    return np.append(least[1:], mask.size)[: mask.size]


def shifted(rows: I64) -> I64:
    """Return what the row before each has, -1 for the first."""
    return np.append(-1, rows)[: rows.size]


def let_rise(numbers: NDArray[Any], begins: I64) -> None:
    """Let the numbers of each part ascend, in place: each is the greatest of its part so far.

    ``begins`` are the rows with which the parts begin.
    """
    ends = np.append(begins[1:], numbers.size)
    falls = np.flatnonzero(numbers[1:] < numbers[:-1]) + 1
    parts_that_fall = np.searchsorted(begins, falls, side="right") - 1
    falling_parts = np.unique(parts_that_fall[begins[parts_that_fall] != falls])
    bounds = zip(begins[falling_parts].tolist(), ends[falling_parts].tolist(), strict=True)
    for begin, end in bounds:
        np.maximum.accumulate(numbers[begin:end], out=numbers[begin:end])


def let_rise_on(
    numbers: NDArray[Any], begins: I64, threads: NDArray[Any], latest: NDArray[Any]
) -> None:
    """Let the numbers of each thread ascend, in place, from its latest one so far on.

    A thread's numbers are in one part: ``begins`` are the rows with which the parts begin,
    ``threads`` their threads. ``latest`` has the greatest number of each thread, and goes on.
    """
    if not numbers.size:
        return
    numbers[begins] = np.maximum(numbers[begins], latest[threads])
    let_rise(numbers, begins)
    ends = np.append(begins[1:], numbers.size)
    latest[threads] = numbers[ends - 1]


def order_of(keys: I64) -> I64:
    """Return the places of keys in ascending order; those of equal keys ascend."""
    order = stable_order(keys)
    if order is None:
        return np.arange(keys.size)
    return order


def is_below(ticks: I64, others: I64) -> Bools:
    """Return which ticks are below others, as numbers without a sign."""
    return ticks.view(np.uint64) < others.view(np.uint64)


def are_back(begin: I64, end: I64, thread: NDArray[Any], last_end: I64) -> Bools:
    """Return which calls begin before the one before them in their thread ended.

    ``begin`` and ``end`` are of calls that follow one another, those of each ``thread`` together;
    ``last_end`` has by thread the end of the last call before these.
    """
    end_before = shifted(end)
    is_first = begins_of_runs(thread)
    end_before[is_first] = last_end[thread[is_first]]
    return is_below(begin, end_before)
