"""Limits of numbers and of floats: every way of reading reports what is beyond them."""

from __future__ import annotations

import math
import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.wire.support import check

from fxframework import wire
from fxframework.errors import Rule, Severity

from ..cases import cases

HOT = Rule("LIM0201", Severity.WARNING, "too hot", "Limits", "At most 40 degrees.")


class Inner(wire.Part):
    """An item with a limit."""

    ratio: float = wire.f32(least=0.1, most=0.9)


class Limited(wire.Record, size=40):
    """A value of each kind, with limits."""

    tiny: int = wire.i8(least=-5, most=5)
    small: int = wire.u16(most=300)
    odd: int = wire.integer(3, least=7)
    word: int = wire.bits(0, 7, of=2, least=2, most=3)
    large: int = wire.u64(least=10)
    huge: int = wire.u64(most=1 << 40)
    heat: float = wire.f64(most=40.0, rules={106: HOT})
    level: float = wire.f32(least=-0.1, most=0.1)
    inner: tuple[Inner, ...] = wire.listed(Inner, 1)


ROWS = [wire.rows("limits_all", Limited, limits_heat="heat", limits_huge="huge")]
LIMITS = wire.Format("limits", "Limits", Limited, codes="LIM", rules=[HOT], tables=ROWS)
SOUND = (0, 300, b"\7\0\0", 3, 10, 1 << 40, 40.0, 0.0, 0.5)
BEYOND: list[tuple[int, Any, bool]] = [
    (0, -5, False), (0, -6, True), (0, 5, False), (0, 6, True), (1, 301, True),
    (2, b"\6\0\0", True), (2, b"\0\0\xff", False), (3, 1, True), (3, 4, True), (4, 9, True),
    (4, 1 << 63, False), (4, (1 << 64) - 1, False), (5, (1 << 40) + 1, True), (5, 1 << 63, True),
    (6, math.nextafter(40.0, 41), True), (6, -math.inf, False), (6, math.inf, True),
    (6, math.nan, True), (6, -math.nan, True), (6, -0.0, False), (6, 5e-324, False),
    (7, math.nan, True), (7, -0.0, False), (7, 0.1, True), (7, -0.1, True), (7, 0.0999999, False),
    (7, -1e-45, False), (7, -math.inf, True), (8, 0.1, False), (8, 0.9, False),
    (8, 0.09999999, True), (8, 0.90000004, True), (8, math.nan, True),
]  # fmt: skip


def packed(values: Any) -> bytes:
    return struct.pack("<bH3sHQQdff", *values)


def test_sound_values_have_no_findings() -> None:
    records, capture = check(LIMITS, packed(SOUND) + LIMITS.sample(400))
    assert not capture.diagnostics.counts
    assert len(records) == 11


@cases(("place", "value", "beyond"), BEYOND)
def test_what_is_beyond_a_limit_is_a_finding(place: int, value: Any, beyond: bool) -> None:
    given = [*SOUND]
    given[place] = value
    records, capture = check(LIMITS, packed(given))
    codes = ["LIM0201" if place == 6 else "LIM0106"] if beyond else []
    assert list(capture.diagnostics.counts) == codes
    assert records[0].raw is None


@given(st.binary(min_size=40, max_size=120))
def test_every_way_agrees(data: bytes) -> None:
    check(LIMITS, data)


doubles = st.floats(allow_nan=False)
singles = st.floats(width=32, allow_nan=False)


@given(st.tuples(doubles, doubles), st.floats())
def test_limits_of_doubles_are_those_of_python(bounds: tuple[float, float], value: float) -> None:
    check_float(wire.f64, "d", bounds, value)


@given(st.tuples(doubles, doubles), st.floats(width=32))
def test_limits_of_floats_are_those_of_python(bounds: tuple[float, float], value: float) -> None:
    check_float(wire.f32, "f", bounds, value)


def check_float(make: Any, letter: str, bounds: tuple[float, float], value: float) -> None:
    least, most = sorted(bounds)

    class One(wire.Record):
        value: float = make(least=least, most=most)

    format = wire.Format("one", "One", One, codes="ONE")
    _, capture = check(format, struct.pack(f"<{letter}", value))
    assert bool(capture.diagnostics.counts) == (not least <= value <= most)
