"""Ticks to nanoseconds, exactly: with integers alone, rounded down."""

from __future__ import annotations

from fx_xray.format import LATEST, NS_PER_SECOND, SIGN
from fx_xray.read.scan import wrapped
from fxframework.kernels.annotations import Array, Fallible, View, flag, i32, i64, inline, u32, void
from fxframework.kernels.kernel import Kernel

try:
    import cython
except ImportError:  # only who compiles needs Cython
    from fxframework.io import plain as cython

__all__ = ["Nanoseconds", "Pick"]

ONE = 1
NS_BITS = 29
"""The highest bit of NS_PER_SECOND."""
LARGEST_RATE = LATEST // NS_PER_SECOND
"""Ticks per second whose product with NS_PER_SECOND int64 holds."""
FAST_RATE = 1 << 60
FRACTION = 32
"""Bits of the nanoseconds of a tick behind the point."""
REACH = 1 << FRACTION
"""Ticks, at most, that are counted on from a division."""
REST = 1 << 62


class Nanoseconds(Kernel):
    """Nanoseconds of ``ticks``, the bits of uint64, into ``starts``; LATEST is beyond int64.

    ``rate`` (the bits of a uint64) is ticks per second. Where there are ``lengths`` in ticks,
    ``spans`` gets theirs: the difference of both ends, each rounded down; -1 of a negative length.
    Times follow each other closely: few are divided, others are counted on from the last division.
    """

    rate: i64
    count: i64
    ns: i64
    left: i64
    base: i64
    near: i64
    reach: i64
    factor: i64
    with_spans: flag
    ticks: View[i64]
    lengths: View[i64]
    starts: Array[i64]
    spans: Array[i64]

    def __init__(
        self,
        rate: int,
        ticks: memoryview,
        starts: memoryview,
        lengths: memoryview,
        spans: memoryview,
    ) -> None:
        self.rate = rate
        self.ticks = memoryview(ticks)
        self.starts = memoryview(starts)
        self.lengths = memoryview(lengths)
        self.spans = memoryview(spans)
        self.count = len(self.starts)
        self.with_spans = len(self.spans) > 0
        self.ns = 0
        self.left = 0
        self.base = 0
        self.near = 0
        self.reach = 0
        self.factor = 0
        if 0 < rate < FAST_RATE:
            self.factor = (NS_PER_SECOND << FRACTION) // rate
            self.reach = min(REACH, REST // max(self.factor, 1))

    def step(self) -> Fallible[i64]:
        """Convert all."""
        row = 0
        while row < self.count:
            tick = self.ticks[row]
            ahead = self.ahead_of(tick)
            ns = (ahead * self.factor) >> FRACTION
            over = self.left + ahead * NS_PER_SECOND - ns * self.rate
            if ahead:
                while over >= self.rate:
                    over -= self.rate
                    ns += 1
            start = self.ns + ns
            self.starts[row] = start
            if self.with_spans:
                length = self.lengths[row]
                if length < 0:
                    self.spans[row] = -1
                elif length < self.near - ahead and over >= 0:
                    ns = (length * self.factor) >> FRACTION
                    over += length * NS_PER_SECOND - ns * self.rate
                    while over >= self.rate:
                        over -= self.rate
                        ns += 1
                    self.spans[row] = ns
                else:
                    self.spans[row] = self.distant(tick, length, start)
            row += 1
        return 0

    @inline
    def ahead_of(self, tick: i64) -> i64:
        """Ticks by which a time is ahead of the last division, which may be that of this time."""
        ahead = tick - self.base
        if 0 <= ahead < self.near:
            return ahead
        self.divide(tick)
        self.base = tick
        self.near = self.reach
        if self.ns >= LATEST - REACH // 2 or -REACH <= tick < 0:
            self.near = 0  # beyond it is what int64, or uint64, does not hold
        return 0

    def distant(self, tick: i64, length: i64, start: i64) -> i64:
        """Return the nanoseconds of a length that ends far away."""
        ns = self.ns
        left = self.left
        end = tick + length
        if not cython.compiled:
            end = wrapped(end)
        self.divide(end)
        span = max(self.ns - start, 0)
        self.ns = ns
        self.left = left
        return span

    def divide(self, ticks: i64) -> void:
        """Set ``ns`` to the nanoseconds of ticks, and ``left`` to what is left over."""
        rate = self.rate
        whole = 0
        if rate > 0 and ticks >= 0:
            whole = self.quotient(ticks, rate)
            left = ticks - whole * rate
        else:
            # As uint64: bit by bit, where the sign would be in the way.
            left = 0
            bit = 63
            while bit >= 0:
                carry = left < 0
                left = 2 * left + ((ticks >> bit) & ONE)
                if not cython.compiled:
                    left = wrapped(left)
                whole *= 2
                if carry or left ^ SIGN >= rate ^ SIGN:
                    left -= rate
                    if not cython.compiled:
                        left = wrapped(left)
                    whole += 1
                bit -= 1
        fraction = 0
        if 0 < rate <= LARGEST_RATE:
            fraction = self.quotient(left * NS_PER_SECOND, rate)
            left = left * NS_PER_SECOND - fraction * rate
        else:
            rest = left
            left = 0
            bit = NS_BITS
            while bit >= 0:
                carry = left < 0
                left *= 2
                fraction *= 2
                if not cython.compiled:
                    left = wrapped(left)
                if carry or left ^ SIGN >= rate ^ SIGN:
                    left -= rate
                    if not cython.compiled:
                        left = wrapped(left)
                    fraction += 1
                if (NS_PER_SECOND >> bit) & ONE:
                    # Both are less than the rate.
                    space = rate - rest
                    if not cython.compiled:
                        space = wrapped(space)
                    if left ^ SIGN >= space ^ SIGN:
                        left -= space
                        fraction += 1
                    else:
                        left += rest
                    if not cython.compiled:
                        left = wrapped(left)
                bit -= 1
        if whole < 0 or whole > LARGEST_RATE or whole * NS_PER_SECOND > LATEST - fraction:
            self.ns = LATEST
            self.left = -1
        else:
            self.ns = whole * NS_PER_SECOND + fraction
            self.left = left

    def quotient(self, number: i64, rate: i64) -> i64:
        """Return a number divided by a rate that is not 0; neither is negative."""
        return number // rate


class Pick(Kernel):
    """What a table has for each key: ``out[n] = table[keys[n]]``."""

    count: i64
    table: View[i32]
    keys: View[u32]
    out: Array[i32]

    def __init__(self, table: memoryview, keys: memoryview, out: memoryview) -> None:
        self.table = memoryview(table)
        self.keys = memoryview(keys)
        self.out = memoryview(out)
        self.count = len(self.out)

    def step(self) -> Fallible[i64]:
        """Pick all."""
        row = 0
        while row < self.count:
            self.out[row] = self.table[self.keys[row]]
            row += 1
        return 0
