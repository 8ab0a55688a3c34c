"""Histograms: bounds of buckets, where a value is counted, and the condensed form."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from pathlib import Path
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from fx_inspect.read.histograms import EXPONENTIAL, LINEAR, RANGES, Histogram

from ...cases import cases

VECTORS = json.loads(
    (Path(__file__).parents[2] / "conformance" / "inspect" / "histograms.json").read_text("utf-8")
)
TYPES = {"i64": "int", "u64": "uint", "f64": "double"}
EDGES = {"min": -(2**63), "-inf": -math.inf, "inf": math.inf}


def named_bound(value: Any, type: str) -> Any:
    return RANGES[type][1] if value == "max" else EDGES.get(value, value)


def inserted(one: Histogram, value: float, times: float = 1) -> Histogram:
    """The histogram with a value counted so many times more."""
    counts = list(one.counts)
    counts[bisect_right(one.edges(), value)] += times
    return attrs.evolve(one, counts=counts)


@cases("case", VECTORS["linear_bounds"] + VECTORS["exponential_bounds"], ids=str)
def test_bounds_are_those_of_the_reference(case: dict[str, Any]) -> None:
    type = TYPES[case["type"]]
    step = case["step"] if "step" in case else case["initial_step"]
    one = Histogram(type, case["floor"], step, case.get("step_multiplier"), [0] * case["size"])
    expected = [tuple(named_bound(value, type) for value in pair) for pair in case["bounds"]]
    assert one.bounds() == expected


@cases("case", VECTORS["inserts"], ids=lambda case: case["kind"])
def test_values_are_counted_where_writers_count_them(case: dict[str, Any]) -> None:
    type, kind = case["kind"].split()
    linear = kind == "linear"
    counts = [0] * (case["buckets"] + 2)
    step = case["step"] if linear else case["initial_step"]
    one = Histogram(type, case["floor"], step, None if linear else case["step_multiplier"], counts)
    for value, times in case["inserts"]:
        one = inserted(one, value, times)
    if "slots" in case:
        assert one.slots() == case["slots"]
    if "counts" in case:
        assert one.counts == case["counts"]
    if "condensed" in case:
        assert {key: one.condensed()[key] for key in case["condensed"]} == case["condensed"]


@cases("case", VECTORS["json_shape"], ids=lambda case: case["format"])
def test_json_is_that_of_ffx(case: dict[str, Any]) -> None:
    shape, type = case["format"].split()
    one = Histogram.of(type, LINEAR if shape == "linear" else EXPONENTIAL, case["slots"])
    assert one is not None
    assert one.condensed() == case["json"]
    assert list(one.condensed()) == list(case["json"])


@cases(("format", "slots"), [(0, 9), (LINEAR, 4), (LINEAR, 0), (EXPONENTIAL, 5), (3, 9)])
def test_an_array_of_too_few_slots_is_no_histogram(format: int, slots: int) -> None:
    assert Histogram.of("int", format, [0] * slots) is None


@cases(("format", "slots"), [(LINEAR, 5), (EXPONENTIAL, 6)])
def test_the_least_histogram_has_one_bucket_of_its_own(format: int, slots: int) -> None:
    one = Histogram.of("int", format, [1] * slots)
    assert one is not None
    assert one.size == 3


def test_all_zero_is_condensed_to_nothing() -> None:
    one = Histogram("int", 0, 1, None, [0, 0, 0])
    assert one.condensed() == {"size": 3, "floor": 0, "step": 1, "counts": [], "indexes": []}


def test_bounds_stay_within_the_type() -> None:
    most = (1 << 64) - 1
    one = Histogram("uint", 0, most, most, [1] * 255)
    assert one.bounds()[-1] == (most, most)
    assert one.bounds()[2] == (most, most)
    big = Histogram("double", 0.0, 1e300, 1e300, [1.0] * 250)
    assert big.bounds()[-1] == (math.inf, math.inf)


numbers = st.integers(-1000, 1000)


@given(
    floor=numbers,
    step=st.integers(1, 50),
    multiplier=st.none() | st.integers(1, 5),
    buckets=st.integers(1, 20),
    value=st.integers(-5000, 5000),
)
def test_a_value_is_counted_in_the_bucket_that_holds_it(
    floor: int, step: int, multiplier: int | None, buckets: int, value: int
) -> None:
    one = Histogram("int", floor, step, multiplier, [0] * (buckets + 2))
    (index,) = (at for at, count in enumerate(inserted(one, value).counts) if count)
    least, most = one.bounds()[index]
    assert least <= value < most
    assert Histogram.of("int", EXPONENTIAL if multiplier else LINEAR, one.slots()) == one
