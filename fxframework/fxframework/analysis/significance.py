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

from fxframework.kernels.arrays import F64
from fxframework.kernels.sorting import begins_of_runs

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
    t = np.asarray(t, np.float64)
    df = np.asarray(df, np.float64)
    t, df = np.broadcast_arrays(t, df)
    # The square of a greater one would be infinite.
    finite_t = np.minimum(np.abs(t), 1e150)
    with np.errstate(over="ignore", invalid="ignore"):
        share = df / (df + finite_t**2)
    return _beta(df / 2, np.full(df.shape, 0.5), share)


def t_quantile(df: F64) -> F64:
    """Return the t that |t| exceeds with probability 1 - ``LEVEL``."""
    df = np.asarray(df, np.float64)
    # The normal quantile z and the next terms in powers of 1 / df are near, and below.
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    first_term = (z**3 + z) / (4 * df)
    second_numerator = 5 * z**5 + 16 * z**3 + 3 * z
    second_term = second_numerator / (96 * df**2)
    quantile = z + first_term + second_term
    if not df.size:
        return quantile
    # The density of t is this factor times a power of 1 + t² / df.
    log_gamma_ratio = log_gamma((df + 1) / 2) - log_gamma(df / 2)
    density_factor = np.exp(log_gamma_ratio) / np.sqrt(df * math.pi)
    exponent = -(df + 1) / 2
    for _ in range(STEPS):  # of Newton's method; from below it cannot overshoot
        base = 1 + quantile**2 / df
        slope = 2 * density_factor * base**exponent
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
    largest_fast_x = (a + 1) / (a + b + 2)
    is_swapped = x > largest_fast_x
    swapped_a = np.where(is_swapped, b, a)
    b = np.where(is_swapped, a, b)
    a = swapped_a
    x = np.where(is_swapped, 1 - x, x)
    if not x.size:
        return x
    with np.errstate(divide="ignore", invalid="ignore"):
        log_of_both = log_gamma(a + b)
        log_inverse_beta = log_of_both - log_gamma(a) - log_gamma(b)
        log_front = log_inverse_beta + a * np.log(x) + b * np.log1p(-x)
        front = np.exp(log_front) / a
    numerators = np.ones(x.shape)
    first_coefficient = (a + b) * x / (a + 1)
    denominators = 1 / _away_from_zero(1 - first_coefficient)
    total = denominators.copy()
    for m in range(1, ROUNDS):
        even_divisor = (a + 2 * m - 1) * (a + 2 * m)
        even = m * (b - m) * x / even_divisor
        denominators = 1 / _away_from_zero(1 + even * denominators)
        numerators = _away_from_zero(1 + even / numerators)
        total *= denominators * numerators
        odd_divisor = (a + 2 * m) * (a + 2 * m + 1)
        odd_dividend = -(a + m) * (a + b + m) * x
        odd = odd_dividend / odd_divisor
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
        df = welch_freedom(part_before, runs_before - 1, part_after, runs_after - 1)
    freedom_without_variance = runs_before + runs_after - 2.0
    freedom_of_one_side = np.maximum(runs_before, runs_after) - 1.0
    df = np.where(variance > 0, df, freedom_without_variance)
    df = np.where(is_alone, freedom_of_one_side, df)
    variance = np.where(df > 0, variance, np.nan)  # no freedom: a single run on both sides
    return estimated(mean_before, mean_after, variance, df)


def welch_freedom(before: Any, free_before: Any, after: Any, free_after: Any) -> Any:
    """Return Welch's degrees of freedom of the sum of two variances, numbers or arrays.

    ``free_before`` and ``free_after`` are those of each variance.
    """
    uncertainty = before**2 / free_before + after**2 / free_after
    return (before + after) ** 2 / uncertainty


def _moments(runs: F64, least: F64) -> tuple[F64, F64, F64]:
    """Return the number of runs, the mean, and the relative variance, NaN for a single run."""
    has_figure = ~np.isnan(runs)
    count = has_figure.sum(axis=0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(has_figure, runs, 0.0).sum(axis=0) / count
        distances = np.where(has_figure, runs - mean, 0.0)
        variance = (distances**2).sum(axis=0) / (count - 1)
        relative = np.maximum(variance / mean**2, least)
        relative = np.where(count > 1, relative, np.nan)
    return count, mean, relative


def estimated(before: F64, after: F64, variance: F64, df: F64) -> Estimate:
    """Return the ratio of means whose logarithm has this variance, shape (n,).

    Without any variance, equal means have p = 1 and others p = 0.
    """
    with np.errstate(all="ignore"):
        is_positive = (before > 0) & (after > 0)
        ratio = np.where(is_positive, after / before, np.nan)
        error = np.sqrt(variance)
        change = np.log(ratio)
        t_without_error = np.where(change == 0, 0.0, np.inf)
        t = np.where(error > 0, change / error, t_without_error)
        df = np.where(df > 1, df, 1.0)
        is_unknown = np.isnan(change) | np.isnan(error)
        p = np.where(is_unknown, np.nan, t_p(np.nan_to_num(t), df))
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
    tie_starts = np.flatnonzero(begins_of_runs(lengths))
    tie_sizes = np.diff(tie_starts, append=total).astype(np.float64)
    tie_sum = float((tie_sizes**3 - tie_sizes).sum())
    tie_correction = tie_sum / (total * (total - 1))
    variance = n * m / 12 * (total + 1 - tie_correction)
    if variance <= 0:
        return 1.0
    expected_u = n * m / 2
    distance = max(abs(u - expected_u) - 0.5, 0.0)
    p = normal_p(distance / math.sqrt(variance))
    return min(max(p, least_rank_p(n, m)), 1.0)


def least_rank_p(n: int, m: int) -> float:
    """Return the least p that the Mann-Whitney test of n and m values can have."""
    if not n or not m:
        return 1.0
    return min(2 * math.exp(-_log_ways(n + m, n)), 1.0)


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
    log_ways_of_top = _log_ways(marked, top) + _log_ways(unmarked, drawn - top)
    log_first = log_ways_of_top - _log_ways(marked + unmarked, drawn)
    # From `top` downward: each term is the one before it times a ratio of four factors.
    last = max(fewest_possible, top - TERMS)
    i = np.arange(top, last, -1, dtype=np.float64)
    ways_fewer = (marked - i + 1) * (drawn - i + 1)
    with np.errstate(divide="ignore"):
        log_ratios = np.log(i * (unmarked - drawn + i) / ways_fewer)
    log_terms = np.full(i.size + 1, log_first)
    log_terms[1:] += np.cumsum(log_ratios)
    terms = np.exp(np.minimum(log_terms, 0.0))
    return float(min(terms.sum(), 1.0))


def _log_ways(n: int, k: int) -> float:
    """Return the logarithm of the number of ways to choose k of n."""
    log_orders = math.lgamma(n + 1)
    return log_orders - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def count_p(before: int, after: int, factor: float = 1.0) -> float:
    """Return the two-sided p that two counts are of one rate, if occurrences are independent.

    ``factor`` is the expected ratio of the counts. Given their sum, the count is binomial: the
    normal approximation with correction for continuity is used, but p is never less than the exact
    one for a count of 0.
    """
    total = before + after
    if not total:
        return 1.0
    share = factor / (1 + factor)
    expected = total * share
    variance = total * share * (1 - share)
    distance = max(abs(after - expected) - 0.5, 0.0)
    p = normal_p(distance / math.sqrt(variance))
    least = 2 * max(share, 1 - share) ** total
    return min(max(p, least), 1.0)


def normal_p(z: float) -> float:
    """Return the probability that a normal variable is at least so many deviations away."""
    return math.erfc(z / math.sqrt(2))


def combined_p(tests: Mapping[str, tuple[float, float]]) -> float:
    """Return the p of several tests of one name, each with its weight (Cauchy's combination).

    It is near the smallest p over its share of the weights, and holds for dependent tests.
    """
    weights = sum(weight for _, weight in tests.values())
    shares = [weight / weights * _cauchy_quantile(p) for p, weight in tests.values()]
    total = sum(shares)
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
    ranks = np.arange(1, order.size + 1)
    scaled = values[order] * order.size / ranks
    # A test is not adjusted beyond one with a greater p: the least of it and all after it.
    least_from_the_end = np.minimum.accumulate(scaled[::-1])
    adjusted[order] = np.minimum(least_from_the_end[::-1], 1.0)
    with np.errstate(invalid="ignore"):
        return adjusted <= rate, adjusted
