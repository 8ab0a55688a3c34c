"""Clocks: conversion between ticks and nanoseconds in exact integer arithmetic."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
import numpy as np
from numpy.typing import NDArray

__all__ = ["NS_MAX", "NS_MIN", "NS_PER_SECOND", "Clock", "ends_of", "utc_text"]

NS_PER_SECOND = 1_000_000_000
"""Nanoseconds in a second."""
NS_MAX = (1 << 63) - 1
"""The latest time that an int64 column of times can hold."""
NS_MIN = -(1 << 63)
"""The earliest time that such a column can hold."""
_SPLIT_RATE = (1 << 63) // NS_PER_SECOND
"""Up to this rate, a remainder times 1e9 fits in 63 bits, so arrays can be divided exactly."""

NEAR_NS = 1 << 50
"""Nanoseconds up to which floating point is off by less than one."""
AT_ONCE = 1 << 14
"""Ticks that are converted at once, so that they stay in the cache."""


def ends_of(start: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return when slices end, at ``NS_MAX`` if later; those never closed end where they begin."""
    longest = NS_MAX - np.maximum(start, 0)
    ends: NDArray[np.int64] = start + np.minimum(np.maximum(length, 0), longest)
    return ends


@attrs.frozen
class Clock:
    """A tick counter's rate and origin: ``ns = floor((ticks - base_ticks) * 1e9 / rate)``."""

    ticks_per_second: int = NS_PER_SECOND
    """The rate of the counter."""
    base_ticks: int = 0
    """The reading of the counter at time 0."""
    base_wall_ns: int | None = None
    """Nanoseconds since the Unix epoch at ``base_ticks``; None if unknown."""

    @property
    def is_identity(self) -> bool:
        """Whether ticks are nanoseconds counted from zero."""
        return self.ticks_per_second == NS_PER_SECOND and self.base_ticks == 0

    def ns(self, ticks: int) -> int | None:
        """Convert one tick count (uint64) to nanoseconds; None if the result does not fit int64."""
        ns = (ticks - self.base_ticks) * NS_PER_SECOND // self.ticks_per_second
        return ns if NS_MIN <= ns <= NS_MAX else None

    def to_ns(self, ticks: NDArray[np.uint64]) -> tuple[NDArray[np.int64], int]:
        """Convert an array of tick counts; return nanoseconds and how many did not fit int64.

        ``ticks`` is uint64 of shape (n,), the result int64 of shape (n,). Values that do not fit
        become ``NS_MAX`` or ``NS_MIN``. If the clock is the identity and all values fit, the
        result is a view of the input.
        """
        ticks = np.asarray(ticks, np.uint64)
        if self.is_identity:
            ns = ticks.view(np.int64)
            is_lost = ns < 0  # from 2**63 on
            lost = int(np.count_nonzero(is_lost))
            if lost:
                ns = np.where(is_lost, NS_MAX, ns)
            return ns, lost
        rate = self.ticks_per_second
        if rate > _SPLIT_RATE:
            return self._to_ns_slowly(ticks)
        if (
            self.base_ticks == 0
            and ticks.size
            and int(ticks.max()) < NEAR_NS * rate // NS_PER_SECOND
        ):
            return self._near_to_ns(ticks), 0
        base = np.uint64(self.base_ticks)
        is_after = ticks >= base
        distance = np.where(is_after, ticks - base, base - ticks)
        seconds, rest = np.divmod(distance, np.uint64(rate))
        scaled_rest = rest * np.uint64(NS_PER_SECOND)
        # Before the base the floor goes the other way: 1.5 ns before it is -1.5, and so -2.
        fraction = np.where(
            is_after,
            scaled_rest // np.uint64(rate),
            (scaled_rest + np.uint64(rate - 1)) // np.uint64(rate),
        )
        most_seconds = np.uint64(NS_MAX // NS_PER_SECOND)
        magnitude = np.minimum(seconds, most_seconds) * np.uint64(NS_PER_SECOND) + fraction
        is_lost = (seconds > most_seconds) | (magnitude > np.uint64(NS_MAX))
        lost = int(np.count_nonzero(is_lost))
        clamped = np.where(is_lost, np.uint64(NS_MAX), magnitude).view(np.int64)
        ns = np.where(is_after, clamped, -clamped)
        if lost:
            ns[is_lost & ~is_after] = NS_MIN
        return ns, lost

    def _near_to_ns(self, ticks: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Convert ticks of less than ``NEAR_NS`` from tick 0: without a division, which is slow."""
        out = np.empty(ticks.size, np.int64)
        rate = np.int64(self.ticks_per_second)
        for start in range(0, ticks.size, AT_ONCE):
            some = ticks[start : start + AT_ONCE].view(np.int64)
            ns = (some * (NS_PER_SECOND / self.ticks_per_second)).astype(np.int64)
            # Off by one at most. The products wrap, and their difference, which is small, does not.
            left = some * np.int64(NS_PER_SECOND) - ns * rate
            ns -= left < 0
            ns += left >= rate
            out[start : start + AT_ONCE] = ns
        return out

    def _to_ns_slowly(self, ticks: NDArray[np.uint64]) -> tuple[NDArray[np.int64], int]:
        """Convert one Python integer at a time, for rates above 9.2 GHz."""
        times = np.empty(ticks.size, np.int64)
        lost = 0
        for index, tick in enumerate(ticks.tolist()):
            ns = self.ns(tick)
            if ns is None:
                lost += 1
                ns = NS_MAX if tick >= self.base_ticks else NS_MIN
            times[index] = ns
        return times, lost

    def ticks(self, ns: int) -> int:
        """Return the first tick count at or after ``ns`` (the inverse of ``ns()``, rounded up)."""
        return -(-ns * self.ticks_per_second // NS_PER_SECOND) + self.base_ticks


def utc_text(ns: int) -> str:
    """Format nanoseconds since the Unix epoch as date and time, exactly."""
    seconds, rest = divmod(ns, NS_PER_SECOND)
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}.{rest:09d} UTC"
    except (OverflowError, ValueError, OSError):
        return str(ns)
