"""Times of rows: units, and numbers that 64 bits of nanoseconds cannot hold."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from fxframework.errors import PluginError

from ..cases import cases

LEAST, MOST = -(1 << 63), (1 << 63) - 1
EDGES = [LEAST, LEAST + 1, -1000, -1, 0, 1, 999, MOST // 1000, MOST // 1000 + 1, MOST - 1, MOST]


def near(number: int) -> int:
    return max(LEAST, min(number, MOST))


SHAPES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[int, int], Iterable[int]]]] = {
    "a field": (lambda a, _: a, lambda a, _: [a]),
    "a sum": (lambda a, b: a + b, lambda a, b: [a, b, near(a) + near(b)]),
    "a difference": (lambda a, b: a - b, lambda a, b: [a, b, near(a) - near(b)]),
    "a product": (lambda a, b: a * b, lambda a, b: [a, b, near(a) * near(b)]),
    "minus": (lambda a, _: a * -1, lambda a, _: [a, -near(a)]),
    "a shift": (lambda a, _: a << 20, lambda a, _: [a, near(a) << 20]),
    "thousands": (
        lambda a, b: a * 1000 + b,
        lambda a, b: [a, b, near(a) * 1000, near(near(a) * 1000) + near(b)],
    ),
}
"""What a time is computed from, and the numbers on the way."""


def read(shape: str, way: str, unit: str = "") -> tuple[list[int], list[int | None], list[Any]]:
    """Times of rows, times of records, and codes and places of findings."""
    from tests.wire.support import findings, opened

    from fxframework import wire
    from fxframework.wire.capture import DeclaredCapture

    class Tick(wire.Record):
        """A kind."""

        _kind = wire.kind(wire.u8())

    class Near(Tick, kind=1, size=24):
        """Numbers with a sign, of a fixed size."""

        a: int = wire.i64(unit=unit)
        b: int = wire.i64()

    class Far(Tick, kind=2):
        """Numbers without a sign, behind a text."""

        text: str = wire.text(until=b"\0")
        a: int = wire.u64(unit=unit)
        b: int = wire.u64()

    fields = wire.field("a"), wire.field("b")
    given = SHAPES[shape][0](*fields)
    rows = [
        wire.rows("instants", each, ts="a" if given is fields[0] else given, scope=2)
        for each in (Near, Far)
    ]
    format = wire.Format("ticks", "Ticks", Tick, codes="TIC", tables=rows)
    if way == "objects":
        format.capture = type("Watching", (DeclaredCapture,), {"watch": (Near, Far)})
    capture = opened(format, b"".join(data for data, _, _ in RECORDS))
    times = capture.table("instants").array("ts").tolist()
    return times, [record.ns for record in capture.records()], findings(capture)


PAIRS = list(itertools.product(EDGES, EDGES))
RECORDS = [
    *((struct.pack("<Bqq7x", 1, a, b), a, b) for a, b in PAIRS),
    *((struct.pack("<B2sQQ", 2, b"x", a % 2**64, b % 2**64), a % 2**64, b % 2**64)
      for a, b in PAIRS),
]  # fmt: skip
OFFSETS = [0, *itertools.accumulate(len(data) for data, _, _ in RECORDS)]


@cases("way", ["columns", "objects"])
@cases("shape", SHAPES)
def test_times_saturate_with_a_finding(shape: str, way: str) -> None:
    times, of_records, found = read(shape, way)
    steps = [list(SHAPES[shape][1](a, b)) for _, a, b in RECORDS]
    assert times == of_records == [near(each[-1]) for each in steps]
    beyond = [n for n, each in enumerate(steps) if any(near(step) != step for step in each)]
    assert [each[:3] for each in found] == [("TIC0109", OFFSETS[n], n) for n in beyond]


@cases(("unit", "factor"), [("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9)])
def test_a_field_counts_its_own_unit(unit: str, factor: int) -> None:
    times, of_records, _ = read("a field", "columns", unit)
    assert times == of_records == [near(near(a) * factor) for _, a, _ in RECORDS]


def test_a_unit_that_is_not_of_time_is_refused() -> None:
    with pytest.raises(PluginError, match=r"ts is in nanoseconds, and .*Near.a in ticks"):
        read("a field", "columns", "ticks")
