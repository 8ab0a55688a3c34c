"""Capture: times of packets, which need the resolution of their interface."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fx_pcapng.format import FORMAT, Interface, Offset, Resolution
from fxframework.wire.capture import Cells, DeclaredCapture
from fxframework.wire.expressions import wrapped

NS_PER_SECOND = 10**9
NS_DIGITS = 9
MICROSECONDS = 6
MOST_DIGITS = 19
"""10 to this power does not fit 64 bits."""
MOST_SHIFT = 33
"""Fractions of up to this many bits, times 10^9, fit 64 bits."""


class Clock(NamedTuple):
    """How an interface counts time; microseconds unless it says so."""

    exponent: int = MICROSECONDS
    binary: bool = False
    """Whether a tick is 2 to the power of -exponent seconds, not 10 to that power."""
    offset: int = 0
    """Seconds to add."""


class PcapngCapture(DeclaredCapture, of=FORMAT):
    """A packet capture: packets are instants, interfaces have a table of their own."""

    watch = (Interface,)

    def begin(self) -> list[Clock]:
        """Return the clocks of the interfaces so far."""
        return []

    def seen(self, context: Any, record: Any) -> None:
        """Take an interface."""
        clock = Clock()
        for option in record.options:
            if isinstance(option, Resolution):
                clock = clock._replace(exponent=option.exponent, binary=option.binary)
            elif isinstance(option, Offset):
                clock = clock._replace(offset=option.seconds)
        context.append(clock)

    def finish(self, context: Any, table: str, columns: Cells) -> Cells:
        """Make times in nanoseconds."""
        if table == "instants":
            ticks = columns["ticks"]
            ts = ticks.astype(np.int64) * 1000
            for interface, clock in enumerate(context):
                if clock != Clock():
                    is_own = columns["pcapng_interface"] == interface
                    ts[is_own] = nanoseconds(ticks[is_own], *clock)
            columns["ts"] = ts
        return columns


def nanoseconds(
    ticks: NDArray[np.uint64], exponent: int, binary: bool, offset: int
) -> NDArray[np.int64]:
    """Return ticks, of shape (n,), as nanoseconds, rounded down."""
    if binary and exponent > MOST_SHIFT:
        offset_ns = NS_PER_SECOND * offset
        exact_ns = [int(tick) * NS_PER_SECOND >> exponent for tick in ticks]
        return np.array([wrapped(ns + offset_ns) for ns in exact_ns], np.int64)
    if binary:
        shift = np.uint64(exponent)
        low_bits = np.uint64((1 << exponent) - 1)
        ns_of_seconds = (ticks >> shift) * np.uint64(NS_PER_SECOND)
        ns_of_fraction = (ticks & low_bits) * np.uint64(NS_PER_SECOND) >> shift
        ns = ns_of_seconds + ns_of_fraction
    elif exponent <= NS_DIGITS:
        ns = ticks * np.uint64(10 ** (NS_DIGITS - exponent))
    elif exponent - NS_DIGITS <= MOST_DIGITS:
        ns = ticks // np.uint64(10 ** (exponent - NS_DIGITS))
    else:
        ns = np.zeros(ticks.size, np.uint64)
    return ns.astype(np.int64) + np.int64(wrapped(NS_PER_SECOND * offset))
