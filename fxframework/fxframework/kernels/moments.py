"""Times as parts of a template: the kinds that become several plainer ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels import parts

__all__ = ["PLAIN_PARTS"]

I64 = NDArray[np.int64]
Numbers = Callable[[Sequence[bytes]], I64]
Parts = list[bytes | tuple[int, Any]]
MICRO = np.uint64(1_000)
SECOND = np.uint64(1_000_000_000)
POWERS_OF_TEN = 10 ** np.arange(1, 11, dtype=np.uint64)
"""Those below the largest number of whole seconds."""
UNITS = np.array([1, 1_000, 1_000_000, 1_000_000_000])
UNIT_NAMES = (b"ns", b"us", b"ms", b"s")


def micros(ns: I64, numbers: Numbers, _width: int) -> Parts:
    """Return the parts of nanoseconds as exact microseconds."""
    whole, rest = np.divmod(_magnitude(ns), MICRO)
    plain: Parts = [(parts.NATURAL, whole), b".", (parts.ZEROS + 3, rest)]
    if np.min(ns) < 0:
        plain.insert(0, (parts.TEXT, numbers([b"", b"-"])[np.less(ns, 0).astype(np.intp)]))
    return plain


def seconds(ns: I64, numbers: Numbers, width: int) -> Parts:
    """Return the parts of nanoseconds as exact seconds, the whole ones padded with blanks."""
    whole, rest = np.divmod(_magnitude(ns), SECOND)
    is_negative = np.less(ns, 0).astype(np.intp)
    letters = np.searchsorted(POWERS_OF_TEN, whole, side="right") + 1 + is_negative
    blanks = np.maximum(width - letters, 0)
    before = [b" " * count + sign for sign in (b"", b"-") for count in range(max(width, 1))]
    lead = numbers(before)[blanks + max(width, 1) * is_negative]
    return [(parts.TEXT, lead), (parts.NATURAL, whole), b".", (parts.ZEROS + 9, rest)]


def clock(ns: I64, _numbers: Numbers, _width: int) -> Parts:
    """Return the parts of nanoseconds as seconds in at least five digits, with six decimals."""
    whole, rest = np.divmod(np.maximum(ns, 0) // 1_000, 1_000_000)
    return [(parts.ZEROS + 5, whole), b".", (parts.ZEROS + 6, rest)]


def length(ns: I64, numbers: Numbers, _width: int) -> Parts:
    """Return the parts of nanoseconds in the largest unit that fits."""
    unit = np.maximum(np.searchsorted(UNITS, ns, side="right") - 1, 0)
    whole, rest = np.divmod(ns, UNITS[unit])
    billionths = rest * UNITS[UNITS.size - 1 - unit]
    names = numbers(UNIT_NAMES)[unit]
    return [(parts.SIGNED, whole), (parts.FRACTION, billionths), (parts.TEXT, names)]


PLAIN_PARTS: dict[int, Callable[[I64, Numbers, int], Parts]] = {
    parts.MICROS: micros, parts.SECONDS: seconds, parts.CLOCK: clock, parts.LENGTH: length,
}  # fmt: skip
"""By kind, what makes its parts of nanoseconds, numbers of texts, and the width of seconds."""


def _magnitude(values: I64) -> NDArray[np.uint64]:
    """Return absolute values; that of the least number fits without a sign."""
    return np.abs(values).view(np.uint64)
