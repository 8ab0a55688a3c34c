"""Times: microseconds of JSON, as numbers or texts, to exact nanoseconds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.model.clock import NS_MAX, NS_MIN

__all__ = ["Spelled", "long_fractions", "nanoseconds", "to_ns"]

I64 = NDArray[np.int64]
EXACT = 2.0**53
"""Nanoseconds up to which a double has every whole number."""
ROUNDING = 2.0**-52 * 1.5
"""How far a product may be from the exact value, as a part of it."""
DIGITS = 3
"""Decimal places of a microsecond that are nanoseconds."""
_CONTEXT = Context(prec=60, rounding=ROUND_HALF_UP)
_LARGEST = 25
"""Decimal digits before the point, beyond which no time is within range."""
_SPELLED = {
    key: re.compile(rb'"%b"\s*+:\s*+"?(-?[0-9][0-9.eE+-]*)' % key.encode()) for key in ("ts", "dur")
}


class Spelled:
    """How the numbers of events are spelled in a file."""

    def __init__(self, data: memoryview, starts: I64, stops: I64) -> None:
        self._data = data
        self._starts = starts
        self._stops = stops

    def __call__(self, key: str, row: int, value: float) -> str:
        """The text of the number that event ``row`` has as ``key``, whose value is ``value``."""
        raw = bytes(self._data[int(self._starts[row]) : int(self._stops[row])])
        for found in _SPELLED[key].finditer(raw):
            text = found[1].decode()
            try:
                if float(text) == value:
                    return text
            except ValueError:
                continue
        return repr(value)


def long_fractions(window: NDArray[np.uint8], starts: I64, first: int) -> NDArray[np.bool_]:
    """Which events have a number with more than three decimal places.

    ``window`` has the bytes from offset ``first`` on, ``starts`` the offsets of the events.
    """
    marks = np.zeros(starts.size, np.bool_)
    dots = np.flatnonzero(window == 0x2E)
    dots = dots[dots + DIGITS + 1 < window.size]
    for place in range(1, DIGITS + 2):
        dots = dots[window[dots + place] - np.uint8(0x30) < 10]
    marks[np.searchsorted(starts, dots + first, side="right") - 1] = True
    return marks


def to_ns(
    key: str, values: Sequence[Any], long: Callable[[], NDArray[np.bool_]], spelled: Spelled
) -> tuple[I64, list[int]]:
    """Nanoseconds of the values of a key, int64 of shape (n,), and rows that have no valid time.

    ``long`` says which events have a number of many decimal places, ``spelled`` how it is written.
    The exact value is rounded to the nearest nanosecond, as Perfetto does it.
    """
    kinds = set(map(type, values))
    if not kinds:
        return np.zeros(0, np.int64), []
    if kinds == {int}:
        try:
            whole = np.array(values, np.int64)
        except OverflowError:
            return _each(key, values, spelled)
        if int(whole.min()) * 1000 < NS_MIN or int(whole.max()) * 1000 > NS_MAX:
            return _each(key, values, spelled)
        return whole * 1000, []
    if not kinds <= {int, float}:
        return _each(key, values, spelled)
    product = np.array(values, np.float64) * 1000.0
    size = np.abs(product)
    if not float(size.max(initial=0.0)) < EXACT:
        return _each(key, values, spelled)
    below = np.floor(product)
    halves = product - below
    halves -= 0.5
    ns = below.astype(np.int64) + (halves >= 0.0)
    doubtful = np.abs(halves) <= size * ROUNDING
    for row in np.flatnonzero(doubtful & long()).tolist() if doubtful.any() else ():
        value = values[row]
        if isinstance(value, float):
            exact = nanoseconds(spelled(key, row, value))
            ns[row] = ns[row] if exact is None else exact
    return ns, []


def _each(key: str, values: Sequence[Any], spelled: Spelled) -> tuple[I64, list[int]]:
    ns = np.zeros(len(values), np.int64)
    bad: list[int] = []
    for row, value in enumerate(values):
        exact: int | None = None
        if type(value) is int:
            exact = value * 1000
        elif isinstance(value, float):
            exact = nanoseconds(spelled(key, row, value))
        elif isinstance(value, str):
            exact = nanoseconds(value)
        if exact is None or not NS_MIN <= exact <= NS_MAX:
            bad.append(row)
        else:
            ns[row] = exact
    return ns, bad


def nanoseconds(text: str) -> int | None:
    """The exact microseconds of a text as nanoseconds, rounded; None: it is not a time."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return None
    if not value.is_finite() or (value and value.adjusted() > _LARGEST):
        return None
    if value.adjusted() < -_LARGEST:
        return 0
    return int(_CONTEXT.scaleb(value, DIGITS).to_integral_value(ROUND_HALF_UP))
