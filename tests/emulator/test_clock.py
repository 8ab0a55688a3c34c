"""The virtual clock: exact, and only moved by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_emulator.clock import VirtualClock
from fx_emulator.errors import ClockError
from fx_emulator.faults import ClockJump
from fxframework.model import target

from ..cases import cases

NS = st.integers(0, 10**18)


def test_is_a_clock_of_the_protocol():
    assert isinstance(VirtualClock(), target.Clock)


def test_time_stands_still_by_itself():
    clock = VirtualClock(start_ns=5, suspended_ns=7)
    assert (clock.monotonic_ns(), clock.boot_ns()) == (5, 12)
    assert (clock.monotonic_ns(), clock.boot_ns()) == (5, 12)


@given(st.lists(st.tuples(st.sampled_from(["advance", "suspend"]), NS)), st.integers(1, 10**11))
def test_boot_time_has_the_suspended_time_too(steps, rate):
    clock = VirtualClock(ticks_per_second=rate)
    for how, ns in steps:
        getattr(clock, how)(ns)
    running = sum(ns for how, ns in steps if how == "advance")
    assert clock.monotonic_ns() == running
    assert clock.boot_ns() == sum(ns for _, ns in steps)
    assert clock.ticks() == int(Fraction(running * rate, 10**9))
    assert clock.boot_ticks() == int(Fraction(clock.boot_ns() * rate, 10**9))


def test_a_jump_goes_both_ways():
    clock = VirtualClock(start_ns=100, suspended_ns=10)
    clock.jump(-60)
    assert (clock.monotonic_ns(), clock.boot_ns()) == (40, 50)
    clock.jump(5)
    assert (clock.monotonic_ns(), clock.boot_ns()) == (45, 55)
    with pytest.raises(ClockError, match="before boot"):
        clock.jump(-46)
    assert clock.monotonic_ns() == 45


@cases(
    "misuse",
    [
        lambda: VirtualClock().advance(-1),
        lambda: VirtualClock().suspend(-1),
        lambda: VirtualClock(ticks_per_second=0),
        lambda: VirtualClock(start_ns=-1),
        lambda: VirtualClock(suspended_ns=-1),
    ],
)
def test_misuse(misuse):
    with pytest.raises(ClockError):
        misuse()


def test_listeners_hear_of_each_change_when_it_is_made():
    clock = VirtualClock()
    heard = []
    clock.listeners.append(lambda: heard.append((clock.monotonic_ns(), clock.boot_ns())))
    clock.advance(3)
    clock.suspend(4)
    clock.jump(-1)
    assert heard == [(3, 3), (3, 7), (2, 6)]


class TestJumpsAtATime:
    def test_happens_at_its_time_and_once(self):
        clock = VirtualClock()
        clock.faults.append(ClockJump(at_ns=100, by_ns=-30))
        clock.advance(99)
        assert clock.monotonic_ns() == 99
        clock.advance(2)
        assert (clock.monotonic_ns(), clock.boot_ns()) == (71, 71)
        clock.advance(100)
        assert clock.monotonic_ns() == 171
        assert clock.faults == []

    @given(st.lists(st.integers(0, 50), min_size=1), st.integers(0, 400), st.integers(-10, 500))
    def test_steps_make_no_difference(self, steps, at_ns, by_ns):
        fault = ClockJump(at_ns, max(by_ns, -at_ns))
        one, other = VirtualClock(), VirtualClock()
        one.faults.append(fault)
        other.faults.append(fault)
        for ns in steps:
            one.advance(ns)
        other.advance(sum(steps))
        assert one.monotonic_ns() == other.monotonic_ns()
        assert one.faults == other.faults

    def test_one_that_is_past_never_comes(self):
        clock = VirtualClock(start_ns=101)
        clock.faults.append(ClockJump(at_ns=100, by_ns=50))
        clock.advance(1000)
        assert clock.monotonic_ns() == 1101

    def test_several_in_the_order_of_time(self):
        clock = VirtualClock()
        clock.faults += [ClockJump(20, 5), ClockJump(10, 100), ClockJump(115, 1000)]
        clock.advance(30)
        # The one at 10 jumps past 20, which never comes; the one at 115 does.
        assert clock.monotonic_ns() == 1130
        assert clock.faults == [ClockJump(20, 5)]
