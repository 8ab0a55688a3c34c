"""Capture: times of packets, which need the resolution of their interface."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_pcapng.format import FORMAT, Interface, Offset, Resolution
from fxframework.wire.capture import Cells, DeclaredCapture
from fxframework.wire.expressions import wrapped

NS = 10**9
NS_DIGITS = 9
MICROSECONDS = 6
MOST_DIGITS = 19
"""10 to this power does not fit 64 bits."""
MOST_SHIFT = 33
"""Fractions of up to this many bits, times 10^9, fit 64 bits."""


class PcapngCapture(DeclaredCapture, of=FORMAT):
    """A packet capture: packets are instants, interfaces have a table of their own."""

    watch = (Interface,)

    def begin(self) -> list[tuple[int, bool, int]]:
        """Return the interfaces so far: exponent, whether it is of 2, and seconds to add."""
        return []

    def seen(self, context: Any, record: Any) -> None:
        """Take an interface."""
        exponent, binary, offset = MICROSECONDS, False, 0
        for option in record.options:
            if isinstance(option, Resolution):
                exponent, binary = option.exponent, option.binary
            elif isinstance(option, Offset):
                offset = option.seconds
        context.append((exponent, binary, offset))

    def finish(self, context: Any, table: str, columns: Cells) -> Cells:
        """Make times in nanoseconds."""
        if table == "instants":
            ticks, which = columns["ticks"], columns["pcapng_interface"]
            ts = ticks.astype(np.int64) * 1000
            for number, units in enumerate(context):
                if units != (MICROSECONDS, False, 0):
                    mine = which == number
                    ts[mine] = nanoseconds(ticks[mine], *units)
            columns["ts"] = ts
        return columns


def nanoseconds(
    ticks: NDArray[np.uint64], exponent: int, binary: bool, offset: int
) -> NDArray[np.int64]:
    """Return ticks, of shape (n,), as nanoseconds, rounded down."""
    if binary and exponent > MOST_SHIFT:
        whole = np.array([(int(tick) * NS >> exponent) for tick in ticks], object)
        return np.array([wrapped(int(each) + NS * offset) for each in whole], np.int64)
    if binary:
        shift = np.uint64(exponent)
        fraction = ticks & np.uint64((1 << exponent) - 1)
        ns = (ticks >> shift) * np.uint64(NS) + (fraction * np.uint64(NS) >> shift)
    elif exponent <= NS_DIGITS:
        ns = ticks * np.uint64(10 ** (NS_DIGITS - exponent))
    elif exponent - NS_DIGITS <= MOST_DIGITS:
        ns = ticks // np.uint64(10 ** (exponent - NS_DIGITS))
    else:
        ns = np.zeros(ticks.size, np.uint64)
    return ns.astype(np.int64) + np.int64(wrapped(NS * offset))
