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
ROUNDS = 200
"""Most steps of the continued fraction of the beta function."""
STEPS = 50
"""Most steps of Newton's method for a quantile."""
TINY = 1e-300
log_gamma = np.vectorize(math.lgamma, otypes=[np.float64])


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
    # The normal quantile z and the next terms in powers of 1 / df are near, and below.
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    first_term = (z**3 + z) / (4 * df)
    second_term = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    quantile = z + first_term + second_term
    if not df.size:
        return quantile
    density_factor = np.exp(log_gamma((df + 1) / 2) - log_gamma(df / 2)) / np.sqrt(df * math.pi)
    for _ in range(STEPS):  # of Newton's method; from below it cannot overshoot
        slope = 2 * density_factor * (1 + quantile**2 / df) ** (-(df + 1) / 2)
        step = (t_p(quantile, df) - (1 - LEVEL)) / slope
        quantile = np.maximum(quantile + step, quantile / 2)
        # The error after a step is about its square: the next step would change nothing.
        if np.all(np.abs(step) <= 1e-7 * quantile):
            break
    return quantile


def _beta(a: F64, b: F64, x: F64) -> F64:
    """Return the regularised incomplete beta function, by its continued fraction.

    Lentz's method: the fraction is the product of the ratios of successive numerators
    (``numerators``) and successive denominators (``denominators``, as their reciprocals).
    """
    x = np.clip(x, 0.0, 1.0)
    # The fraction converges fast for small x; I_x(a, b) = 1 - I_(1-x)(b, a) covers the rest.
    is_swapped = x > (a + 1) / (a + b + 2)
    swapped_a = np.where(is_swapped, b, a)
    b = np.where(is_swapped, a, b)
    a = swapped_a
    x = np.where(is_swapped, 1 - x, x)
    if not x.size:
        return x
    with np.errstate(divide="ignore", invalid="ignore"):
        log_inverse_beta = log_gamma(a + b) - log_gamma(a) - log_gamma(b)
        front = np.exp(log_inverse_beta + a * np.log(x) + b * np.log1p(-x)) / a
    numerators = np.ones(x.shape)
    denominators = 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    total = denominators.copy()
    for m in range(1, ROUNDS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        denominators = 1 / _away_from_zero(1 + even * denominators)
        numerators = _away_from_zero(1 + even / numerators)
        total *= denominators * numerators
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        denominators = 1 / _away_from_zero(1 + odd * denominators)
        numerators = _away_from_zero(1 + odd / numerators)
        total *= denominators * numerators
        if np.all(np.abs(denominators * numerators - 1) < 1e-14):
            break
    value = np.where(x > 0, front * total, 0.0)
    return np.clip(np.where(is_swapped, 1 - value, value), 0.0, 1.0)


def _away_from_zero(values: F64) -> F64:
    """Return values that can be divided by: tiny ones become TINY."""
    return np.where(np.abs(values) < TINY, TINY, values)


# --- Ratios of means -----------------------------------------------------------------------------


def welch(before: F64, after: F64, floor: tuple[F64, F64]) -> Estimate:
    """Compare the means of runs: figures of shape (runs, names), NaN where a run has none.

    ``floor`` is the least variance of a run's figure relative to the mean squared, on each side.
    Ratios have intervals of Student's t with Welch's degrees of freedom; if a side has one run,
    its variance is taken from the other side. NaN if a mean is not positive, or if both have one.
    """
    runs_before, mean_before, variance_before = _moments(before, floor[0])
    runs_after, mean_after, variance_after = _moments(after, floor[1])
    is_alone = (runs_before < 2) | (runs_after < 2)
    shared_before = np.where(np.isnan(variance_before), variance_after, variance_before)
    shared_after = np.where(np.isnan(variance_after), variance_before, variance_after)
    with np.errstate(divide="ignore", invalid="ignore"):
        part_before = shared_before / runs_before
        part_after = shared_after / runs_after
        variance = part_before + part_after
        df = variance**2 / (part_before**2 / (runs_before - 1) + part_after**2 / (runs_after - 1))
    df = np.where(variance > 0, df, runs_before + runs_after - 2.0)
    df = np.where(is_alone, np.maximum(runs_before, runs_after) - 1.0, df)
    variance = np.where(df > 0, variance, np.nan)  # no freedom: a single run on both sides
    return estimated(mean_before, mean_after, variance, df)


def _moments(runs: F64, least: F64) -> tuple[F64, F64, F64]:
    """Return the number of runs, the mean, and the relative variance, NaN for a single run."""
    has_figure = ~np.isnan(runs)
    count = has_figure.sum(axis=0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(has_figure, runs, 0.0).sum(axis=0) / count
        variance = (np.where(has_figure, runs - mean, 0.0) ** 2).sum(axis=0) / (count - 1)
        relative = np.where(count > 1, np.maximum(variance / mean**2, least), np.nan)
    return count, mean, relative


def estimated(before: F64, after: F64, variance: F64, df: F64) -> Estimate:
    """Return the ratio of means whose logarithm has this variance, shape (n,).

    Without any variance, equal means have p = 1 and others p = 0.
    """
    with np.errstate(all="ignore"):
        ratio = np.where((before > 0) & (after > 0), after / before, np.nan)
        error = np.sqrt(variance)
        change = np.log(ratio)
        t_without_error = np.where(change == 0, 0.0, np.inf)
        t = np.where(error > 0, change / error, t_without_error)
        df = np.where(df > 1, df, 1.0)
        p = np.where(np.isnan(change) | np.isnan(error), np.nan, t_p(np.nan_to_num(t), df))
        reach = np.exp(t_quantile(df) * error)
        return Estimate(ratio, ratio / reach, ratio * reach, p)


# --- Calls of two runs ---------------------------------------------------------------------------


def thinned(lengths: F64) -> F64:
    """Return sorted lengths, or MOST evenly spaced ones of them."""
    if lengths.size <= MOST:
        return lengths
    step = lengths.size / MOST
    middles_of_steps = (np.arange(MOST) + 0.5) * step
    return lengths[middles_of_steps.astype(np.int64)]


def rank_p(before: F64, after: F64) -> float:
    """Return the two-sided p of the Mann-Whitney test of two sorted samples.

    It is the normal approximation with corrections for ties and continuity, but never less than
    the exact p of two samples that do not overlap.
    """
    n = before.size
    m = after.size
    total = n + m
    if not n or not m:
        return 1.0
    # U: the pairs in which the length before is less; equal ones count half.
    less = np.searchsorted(before, after, "left")
    less_or_equal = np.searchsorted(before, after, "right")
    u = float(less.sum() + less_or_equal.sum()) / 2
    lengths = np.concatenate((before, after))
    lengths.sort(kind="stable")
    tie_starts = np.flatnonzero(lengths[1:] != lengths[:-1]) + 1
    tie_sizes = np.diff(tie_starts, prepend=0, append=total).astype(np.float64)
    tie_correction = float((tie_sizes**3 - tie_sizes).sum()) / (total * (total - 1))
    variance = n * m / 12 * (total + 1 - tie_correction)
    if variance <= 0:
        return 1.0
    distance = max(abs(u - n * m / 2) - 0.5, 0.0)
    z = distance / math.sqrt(variance)
    return min(max(math.erfc(z / math.sqrt(2)), least_rank_p(n, m)), 1.0)


def least_rank_p(n: int, m: int) -> float:
    """Return the least p that the Mann-Whitney test of n and m values can have."""
    if not n or not m:
        return 1.0
    log_orders = math.lgamma(n + m + 1) - math.lgamma(n + 1) - math.lgamma(m + 1)
    return min(2 * math.exp(-log_orders), 1.0)


def tail_p(lower: F64, upper: F64, share: float) -> float:
    """Return the one-sided p that as many of ``upper`` exceed a high value of ``lower``.

    Both are sorted. The value is the one that ``share`` of ``lower`` lies below. If both come from
    one distribution, the number that exceed it has a negative hypergeometric distribution, which
    is exact for any distribution without ties, and too cautious for one with ties.
    """
    n = lower.size
    m = upper.size
    if not n or not m:
        return 1.0
    lower_in_tail = max(round(n * (1 - share)), 1)
    value = lower[n - lower_in_tail]
    upper_in_tail = m - int(np.searchsorted(upper, value, "right"))
    if not upper_in_tail:
        return 1.0
    # In order from the top, so many of `upper` come before `value` exactly if, of the first
    # upper_in_tail + lower_in_tail - 1 of both, at most lower_in_tail - 1 are of `lower`.
    return _few_p(n, m, upper_in_tail + lower_in_tail - 1, lower_in_tail - 1)


def _few_p(marked: int, unmarked: int, drawn: int, most: int) -> float:
    """Return the probability that at most ``most`` of ``drawn`` are marked."""
    fewest_possible = max(drawn - unmarked, 0)
    if most < fewest_possible:
        return 0.0
    top = min(most, marked, drawn)
    log_first = (
        _log_ways(marked, top)
        + _log_ways(unmarked, drawn - top)
        - _log_ways(marked + unmarked, drawn)
    )
    # From `top` downward: each term is the one before it times a ratio of four factors.
    i = np.arange(top, max(fewest_possible, top - TERMS), -1, dtype=np.float64)
    with np.errstate(divide="ignore"):
        log_ratios = np.log(i * (unmarked - drawn + i) / ((marked - i + 1) * (drawn - i + 1)))
    log_terms = log_first + np.concatenate(([0.0], np.cumsum(log_ratios)))
    return float(min(np.exp(np.minimum(log_terms, 0.0)).sum(), 1.0))


def _log_ways(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose k of n."""
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def count_p(before: int, after: int, factor: float = 1.0) -> float:
    """Return the two-sided p that two counts are of one rate, if occurrences are independent.

    ``factor`` is the expected ratio of the counts. Given their sum, the count is binomial: the
    normal approximation with correction for continuity, but never less than the exact p of none.
    """
    total = before + after
    if not total:
        return 1.0
    share = factor / (1 + factor)
    distance = max(abs(after - total * share) - 0.5, 0.0)
    z = distance / math.sqrt(total * share * (1 - share))
    least = 2 * max(share, 1 - share) ** total
    return min(max(math.erfc(z / math.sqrt(2)), least), 1.0)


def combined_p(tests: Mapping[str, tuple[float, float]]) -> float:
    """Return the p of several tests of one name, each with its weight (Cauchy's combination).

    It is near the smallest p over its share of the weights, and holds for dependent tests.
    """
    weights = sum(weight for _, weight in tests.values())
    total = sum(weight / weights * _cauchy_quantile(p) for p, weight in tests.values())
    if total > 1e8:  # arccot(x) is 1 / x there, as exactly as numbers can say
        return 1 / (math.pi * total)
    return math.atan2(1.0, total) / math.pi


def _cauchy_quantile(p: float) -> float:
    """Return the quantile of Cauchy's distribution that is exceeded with probability p."""
    p = min(max(p, TINY), CAUTIOUS)
    if p < 1e-8:  # tan(x) is x there, as exactly as numbers can say
        return 1 / (math.pi * p)
    return 1 / math.tan(math.pi * p)


# --- Many names ----------------------------------------------------------------------------------


def held(p: Sequence[float] | F64, rate: float) -> tuple[NDArray[np.bool_], F64]:
    """Return which tests are discoveries at a false discovery rate, and their adjusted p.

    Benjamini and Hochberg's procedure. NaN is a test that was not made.
    """
    values = np.asarray(p, np.float64)
    adjusted: Any = np.full(values.size, np.nan)
    tested = np.flatnonzero(~np.isnan(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    scaled = values[order] * order.size / np.arange(1, order.size + 1)
    # A test is not adjusted beyond one with a greater p: the least of it and all after it.
    least_from_here_on = np.minimum.accumulate(scaled[::-1])[::-1]
    adjusted[order] = np.minimum(least_from_here_on, 1.0)
    with np.errstate(invalid="ignore"):
        return adjusted <= rate, adjusted
