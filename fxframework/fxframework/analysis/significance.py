"""Significance: the tests that tell a change of two runs from noise, with numpy alone.

Calls of one run a side are compared by ranks and by their tails, which assumes no distribution;
figures of several runs a side by Welch's t-test. docs/compare.md explains each test and its limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "TAILS",
    "Estimate",
    "combined_p",
    "count_p",
    "estimated",
    "held",
    "least_rank_p",
    "rank_p",
    "t_p",
    "t_quantile",
    "tail_p",
    "thinned",
    "welch",
]

F64 = NDArray[np.float64]
LEVEL = 0.95
"""Probability that an interval contains the true ratio."""
MOST = 1 << 15
"""Largest number of lengths of a side that a test compares; more are replaced by this many evenly
spaced quantiles, which makes the test a little more cautious."""
TAILS = {"p90": 0.9, "p99": 0.99}
"""Shares of calls below which the tails begin."""
TERMS = 512
"""Terms of a tail probability that are summed; the others are smaller by orders."""
CAUTIOUS = 0.95
"""Greatest p that is combined: that of a cautious test may be 1, which would outweigh others."""
ROUNDS, STEPS = 200, 50
TINY = 1e-300


class Estimate(NamedTuple):
    """A ratio with its interval, and the probability of such a one without a change."""

    ratio: F64
    low: F64
    high: F64
    p: F64


# --- Student's t -------------------------------------------------------------------------------


def t_p(t: F64, df: F64) -> F64:
    """Return the probability of a |t| at least this great, with ``df`` degrees of freedom."""
    t, df = np.broadcast_arrays(np.asarray(t, np.float64), np.asarray(df, np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        share = df / (df + np.minimum(np.abs(t), 1e150) ** 2)
    return _beta(df / 2, np.full(df.shape, 0.5), share)


def t_quantile(df: F64) -> F64:
    """Return the t that |t| exceeds with probability 1 - ``LEVEL``."""
    df = np.asarray(df, np.float64)
    # Near it is the normal quantile, and what follows it by powers of 1 / df.
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    found = z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    lgamma = np.vectorize(math.lgamma, otypes=[np.float64])
    norm = (
        np.exp(lgamma((df + 1) / 2) - lgamma(df / 2)) / np.sqrt(df * math.pi) if df.size else found
    )
    for _ in range(STEPS):  # of Newton's method; from below it cannot overshoot
        slope = 2 * norm * (1 + found**2 / df) ** (-(df + 1) / 2)
        step = (t_p(found, df) - (1 - LEVEL)) / slope
        found = np.maximum(found + step, found / 2)
        if np.all(np.abs(step) <= 1e-7 * found):  # the next would be its square
            break
    return found


def _beta(a: F64, b: F64, x: F64) -> F64:
    """Return the regularised incomplete beta function, by its continued fraction."""
    x = np.clip(x, 0.0, 1.0)
    swapped = x > (a + 1) / (a + b + 2)
    a, b = np.where(swapped, b, a), np.where(swapped, a, b)
    x = np.where(swapped, 1 - x, x)
    lgamma = np.vectorize(math.lgamma, otypes=[np.float64])
    if not x.size:
        return x
    with np.errstate(divide="ignore", invalid="ignore"):
        front = np.exp(
            lgamma(a + b) - lgamma(a) - lgamma(b) + a * np.log(x) + b * np.log1p(-x)
        ) / a  # fmt: skip
    c, d = np.ones(x.shape), _away(1 - (a + b) * x / (a + 1))
    d = 1 / d
    total = d.copy()
    for m in range(1, ROUNDS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / _away(1 + even * d), _away(1 + even / c)
        total *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / _away(1 + odd * d), _away(1 + odd / c)
        total *= d * c
        if np.all(np.abs(d * c - 1) < 1e-14):
            break
    value = np.where(x > 0, front * total, 0.0)
    return np.clip(np.where(swapped, 1 - value, value), 0.0, 1.0)


def _away(values: F64) -> F64:
    """Keep values away from zero."""
    return np.where(np.abs(values) < TINY, TINY, values)


# --- Ratios of means -----------------------------------------------------------------------------


def welch(before: F64, after: F64, floor: tuple[F64, F64]) -> Estimate:
    """Compare the means of runs: figures of shape (runs, names), NaN where a run has none.

    ``floor`` is the least variance of a run's figure relative to the mean squared, on each side.
    Ratios have intervals of Student's t with Welch's degrees of freedom; if a side has one run,
    its variance is taken from the other side. NaN if a mean is not positive, or if both have one.
    """
    sides = [_moments(runs, least) for runs, least in zip((before, after), floor, strict=True)]
    (n, b, spread_b), (m, a, spread_a) = sides
    alone = (n < 2) | (m < 2)
    spread_b, spread_a = (
        np.where(np.isnan(spread_b), spread_a, spread_b),
        np.where(np.isnan(spread_a), spread_b, spread_a),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        part_b, part_a = spread_b / n, spread_a / m
        whole = part_b + part_a
        df = whole**2 / (part_b**2 / (n - 1) + part_a**2 / (m - 1))
    df = np.where(alone, np.maximum(n, m) - 1.0, np.where(whole > 0, df, n + m - 2.0))
    whole = np.where(df > 0, whole, np.nan)
    return estimated(b, a, whole, df)


def _moments(runs: F64, least: F64) -> tuple[F64, F64, F64]:
    """Return the number of runs, the mean, and the relative variance, NaN for a single run."""
    known = ~np.isnan(runs)
    count = known.sum(axis=0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(known, runs, 0.0).sum(axis=0) / count
        square = (np.where(known, runs - mean, 0.0) ** 2).sum(axis=0) / (count - 1)
        spread = np.where(count > 1, np.maximum(square / mean**2, least), np.nan)
    return count, mean, spread


def estimated(before: F64, after: F64, variance: F64, df: F64) -> Estimate:
    """Return the ratio of means whose logarithm has this variance, shape (n,).

    Without any variance, equal means have p = 1 and others p = 0.
    """
    with np.errstate(all="ignore"):
        ratio = np.where((before > 0) & (after > 0), after / before, np.nan)
        error = np.sqrt(variance)
        change = np.log(ratio)
        t = np.where(error > 0, change / error, np.where(change == 0, 0.0, np.inf))
        df = np.where(df > 1, df, 1.0)
        p = np.where(np.isnan(change) | np.isnan(error), np.nan, t_p(np.nan_to_num(t), df))
        reach = np.exp(t_quantile(df) * error)
        return Estimate(ratio, ratio / reach, ratio * reach, p)


# --- Calls of two runs ---------------------------------------------------------------------------


def thinned(lengths: F64) -> F64:
    """Return sorted lengths, or MOST evenly spaced ones of them."""
    if lengths.size <= MOST:
        return lengths
    return lengths[((np.arange(MOST) + 0.5) * (lengths.size / MOST)).astype(np.int64)]


def rank_p(before: F64, after: F64) -> float:
    """Return the two-sided p of the Mann-Whitney test of two sorted samples.

    It is the normal approximation with corrections for ties and continuity, but never less than
    the exact p of two samples that do not overlap.
    """
    n, m = before.size, after.size
    total = n + m
    if not n or not m:
        return 1.0
    below = np.searchsorted(before, after, "left")
    upto = np.searchsorted(before, after, "right")
    u = float(below.sum() + upto.sum()) / 2
    both = np.concatenate((before, after))
    both.sort(kind="stable")
    edges = np.flatnonzero(both[1:] != both[:-1]) + 1
    ties = np.diff(edges, prepend=0, append=total).astype(np.float64)
    spread = n * m / 12 * (total + 1 - float((ties**3 - ties).sum()) / (total * (total - 1)))
    if spread <= 0:
        return 1.0
    z = max(abs(u - n * m / 2) - 0.5, 0.0) / math.sqrt(spread)
    return min(max(math.erfc(z / math.sqrt(2)), least_rank_p(n, m)), 1.0)


def least_rank_p(n: int, m: int) -> float:
    """Return the least p that the Mann-Whitney test of n and m values can have."""
    if not n or not m:
        return 1.0
    ways = math.lgamma(n + m + 1) - math.lgamma(n + 1) - math.lgamma(m + 1)
    return min(2 * math.exp(-ways), 1.0)


def tail_p(lower: F64, upper: F64, share: float) -> float:
    """Return the one-sided p that as many of ``upper`` exceed a high value of ``lower``.

    Both are sorted. The value is the one that ``share`` of ``lower`` lies below. If both come from
    one distribution, the number that exceed it has a negative hypergeometric distribution, which
    is exact for any distribution without ties, and too cautious for one with ties.
    """
    n, m = lower.size, upper.size
    if not n or not m:
        return 1.0
    k = max(round(n * (1 - share)), 1)
    over = m - int(np.searchsorted(upper, lower[n - k], "right"))
    return _few(n, m, over + k - 1, k - 1) if over else 1.0


def _few(marked: int, others: int, drawn: int, most: int) -> float:
    """Return the probability that at most ``most`` of ``drawn`` are marked."""
    least = max(drawn - others, 0)
    if most < least:
        return 0.0
    top = min(most, marked, drawn)

    def ways(n: int, k: int) -> float:
        return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    first = ways(marked, top) + ways(others, drawn - top) - ways(marked + others, drawn)
    i = np.arange(top, max(least, top - TERMS), -1, dtype=np.float64)
    with np.errstate(divide="ignore"):
        steps = np.log(i * (others - drawn + i) / ((marked - i + 1) * (drawn - i + 1)))
    terms = first + np.concatenate(([0.0], np.cumsum(steps)))
    return float(min(np.exp(np.minimum(terms, 0.0)).sum(), 1.0))


def count_p(before: int, after: int, factor: float = 1.0) -> float:
    """Return the two-sided p that two counts are of one rate, if occurrences are independent.

    ``factor`` is the expected ratio of the counts. Given their sum, the count is binomial: the
    normal approximation with correction for continuity, but never less than the exact p of none.
    """
    total = before + after
    if not total:
        return 1.0
    share = factor / (1 + factor)
    z = max(abs(after - total * share) - 0.5, 0.0) / math.sqrt(total * share * (1 - share))
    least = 2 * max(share, 1 - share) ** total
    return min(max(math.erfc(z / math.sqrt(2)), least), 1.0)


def combined_p(tests: Mapping[str, tuple[float, float]]) -> float:
    """Return the p of several tests of one name, each with its weight (Cauchy's combination).

    It is near the smallest p over its share of the weights, and holds for dependent tests.
    """
    whole = sum(weight for _, weight in tests.values())
    total = sum(weight / whole * _cotangent(p) for p, weight in tests.values())
    return 1 / (math.pi * total) if total > 1e8 else math.atan2(1.0, total) / math.pi


def _cotangent(p: float) -> float:
    """Return the quantile of Cauchy's distribution that is exceeded with probability p."""
    p = min(max(p, TINY), CAUTIOUS)
    return 1 / (math.pi * p) if p < 1e-8 else 1 / math.tan(math.pi * p)


# --- Many names ----------------------------------------------------------------------------------


def held(p: Sequence[float] | F64, rate: float) -> tuple[NDArray[np.bool_], F64]:
    """Return which tests are discoveries at a false discovery rate, and their adjusted p.

    Benjamini and Hochberg's procedure. NaN is a test that was not made.
    """
    values = np.asarray(p, np.float64)
    adjusted: Any = np.full(values.size, np.nan)
    made = np.flatnonzero(~np.isnan(values))
    order = made[np.argsort(values[made], kind="stable")]
    scaled = values[order] * order.size / np.arange(1, order.size + 1)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    with np.errstate(invalid="ignore"):
        return adjusted <= rate, adjusted
