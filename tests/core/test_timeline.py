"""Captures on one clock: exact lines, the reasons for them, and what is reported without any."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
import pytest
import toy
from hypothesis import given
from hypothesis import strategies as st

from fxframework.errors import UsageError
from fxframework.host import Host
from fxframework.model.capture import Capture
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.timeline import AlignedCapture, Line, align, aligned, parse_alignments

from ..cases import cases

I64 = st.integers(NS_MIN, NS_MAX)
RATES = st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=10**9)


@given(st.lists(I64, max_size=20), I64, I64, st.one_of(st.just(Fraction(1)), RATES))
def test_times_are_exact_and_cut_where_int64_ends(
    times: list[int], start: int, origin: int, rate: Fraction
) -> None:
    line = Line(start, origin, rate)
    moved, lost = line.times(np.array(times, np.int64))
    exact = [start + (each - origin) * rate.numerator // rate.denominator for each in times]
    assert moved.tolist() == [min(max(each, NS_MIN), NS_MAX) for each in exact]
    assert lost == sum(not NS_MIN <= each <= NS_MAX for each in exact)


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**12), st.integers(1, 10**12), I64)
def test_a_line_through_two_pairs_meets_both(a: int, run: int, rise: int, b: int) -> None:
    line = Line.through((a, b), (a + run, b + rise))
    assert (line.at(a), line.at(a + run)) == (b, b + rise)


@cases("pairs", [((1, 5), (1, 6)), ((1, 5), (2, 5)), ((1, 5), (2, 4))])
def test_no_line_goes_backwards(pairs: tuple[tuple[int, int], tuple[int, int]]) -> None:
    with pytest.raises(UsageError, match="no clock goes"):
        Line.through(*pairs)


def test_what_align_says_is_parsed() -> None:
    said = parse_alignments(["a.toy:offset=-5", "b:10=20", "c:d:0=1,100=301", "e:tsc"])
    assert said == {
        "a.toy": Line(-5),
        "b": Line(20, 10),
        "c:d": Line(1, 0, Fraction(3)),
        "e": "tsc",
    }


@cases("text", ["offset=5", "a:", "a:offset=x", "a:1=2=3", "a:1=2,3=4,5=6", "a:now"])
def test_what_is_no_alignment_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_alignments([text])
    assert caught.value.remedy


class _Clocked(AlignedCapture):
    """A capture that states its clocks."""

    def __init__(self, whole: Capture, clocks: Mapping[str, int], name: str) -> None:
        super().__init__(whole, align([whole])[0])
        self._clocks = clocks
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @property
    def clocks(self) -> Mapping[str, int]:
        return self._clocks

    @property
    def tick_rate(self) -> tuple[int, int] | None:
        return (self._clocks["base"], self._clocks["rate"]) if "rate" in self._clocks else None


@pytest.fixture
def capture() -> Capture:
    host = Host(discover=False)
    host.register(toy, name="toy", distribution="toys", version="1.0")
    return host.open(toy.toy(toy.mark("one", 1, 7), toy.span("two", 2, 5)), format="toy")


def test_a_shared_clock_aligns_and_the_most_certain_first(capture: Capture) -> None:
    one = _Clocked(capture, {"utc": 100, "boot": 0}, "x/one")
    other = _Clocked(capture, {"boot": 7, "utc": 130}, "x/other")
    first, second = align([one, other])
    assert (first.line, first.assumed) == (Line(), False)
    assert second.line == Line(30)
    assert "utc" in second.reason
    moved = aligned(other, second)
    assert moved.clocks == {"boot": -23, "utc": 100}
    assert moved.table("instants")["ts"].tolist() == [31]
    assert moved.summary().start_ns == 31
    assert list(moved.records()) == list(capture.records())


def test_without_a_shared_clock_times_stay_and_that_is_said(capture: Capture) -> None:
    one = _Clocked(capture, {"utc": 100}, "one")
    other = _Clocked(capture, {"boot": 7}, "other")
    second = align([one, other])[1]
    assert second.assumed
    assert "boot" in second.reason
    assert aligned(other, second) is other


def test_one_counter_relates_ticks(capture: Capture) -> None:
    one = _Clocked(capture, {"base": 1000, "rate": 500_000_000}, "one")
    other = _Clocked(capture, {"base": 2000, "rate": 1_000_000_000}, "other")
    second = align([one, other], {"other": "tsc"})[1]
    # Its time 0 is tick 2000, which is 1000 ticks of 2 ns after time 0 of the first.
    assert second.line.at(0) == 2000
    assert second.line.at(10) == 2020
    with pytest.raises(UsageError, match="no known rate"):
        align([one, _Clocked(capture, {}, "other")], {"other": "tsc"})


def test_names_that_fit_none_or_several_are_refused(capture: Capture) -> None:
    one, other = (_Clocked(capture, {}, f"{folder}/same") for folder in "ab")
    with pytest.raises(UsageError, match="several"):
        align([one, other], {"same": Line(1)})
    with pytest.raises(UsageError, match="no capture"):
        align([one, other], {"nobody": Line(1)})
    assert align([one, other], {"b/same": Line(1)})[1].line == Line(1)
