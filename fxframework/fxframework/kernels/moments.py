"""Times as parts of a template: the kinds that become several plainer ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels import parts
from fxframework.kernels.arrays import I64

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
    whole_micros, nanoseconds = np.divmod(_magnitude(ns), MICRO)
    plain: Parts = [(parts.NATURAL, whole_micros), b".", (parts.ZEROS + 3, nanoseconds)]
    if np.min(ns) < 0:
        is_negative = np.less(ns, 0).astype(np.intp)
        signs = numbers([b"", b"-"])[is_negative]
        plain.insert(0, (parts.TEXT, signs))
    return plain


def seconds(ns: I64, numbers: Numbers, width: int) -> Parts:
    """Return the parts of nanoseconds as exact seconds, the whole ones padded with blanks."""
    whole_seconds, nanoseconds = np.divmod(_magnitude(ns), SECOND)
    is_negative = np.less(ns, 0).astype(np.intp)
    letters = np.searchsorted(POWERS_OF_TEN, whole_seconds, side="right") + 1 + is_negative
    blanks = np.maximum(width - letters, 0)
    width = max(width, 1)
    # First all numbers of blanks without a sign, then all with one.
    blanks_and_signs = [b" " * count + sign for sign in (b"", b"-") for count in range(width)]
    lead_texts = numbers(blanks_and_signs)[blanks + width * is_negative]
    return [
        (parts.TEXT, lead_texts),
        (parts.NATURAL, whole_seconds),
        b".",
        (parts.ZEROS + 9, nanoseconds),
    ]


def length(ns: I64, numbers: Numbers, _width: int) -> Parts:
    """Return the parts of nanoseconds in the largest unit that fits."""
    unit = np.maximum(np.searchsorted(UNITS, ns, side="right") - 1, 0)
    whole_units, remainder = np.divmod(ns, UNITS[unit])
    billionths = remainder * UNITS[UNITS.size - 1 - unit]
    names = numbers(UNIT_NAMES)[unit]
    return [(parts.SIGNED, whole_units), (parts.FRACTION, billionths), (parts.TEXT, names)]


PLAIN_PARTS: dict[int, Callable[[I64, Numbers, int], Parts]] = {
    parts.MICROS: micros,
    parts.SECONDS: seconds,
    parts.LENGTH: length,
}
"""By kind, what makes its parts of nanoseconds, numbers of texts, and the width of seconds."""


def _magnitude(values: I64) -> NDArray[np.uint64]:
    """Return absolute values; that of the least number fits without a sign."""
    return np.abs(values).view(np.uint64)
