"""CPUs: what a time-stamp counter promises, and what it does not."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_emulator.clock import VirtualClock
from fx_emulator.cpu import IA32_TIME_STAMP_COUNTER, IA32_TSC_ADJUST, IA32_TSC_AUX, Processor, Tsc
from fx_emulator.errors import CpuError, EmulatorError
from fxframework.model import target

from ..cases import cases

FREQUENCY = 2_596_120_000
NS = st.integers(0, 10**12)
RATIOS = st.fractions(Fraction(1, 8), 3)


def processor(cpus=2, **options):
    return Processor(VirtualClock(), cpus, **options)


# --- The counter ---------------------------------------------------------------------------------


@given(NS, st.integers(1, 10**10), st.integers(1, 100))
def test_counts_exactly_in_steps(ns, frequency, step):
    machine = processor(frequency=frequency, step=step)
    machine.clock.advance(ns)
    exact = Fraction(ns * frequency, 10**9)
    read = machine.cpus[0].rdtsc()
    assert read % step == 0
    assert 0 <= exact - read < step + 1


def test_an_hour_is_not_off_by_one_step():
    machine = processor(step=1)
    for _ in range(3600):
        machine.clock.advance(10**9)
    assert machine.cpus[0].rdtsc() == 3600 * FREQUENCY


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("advance"), NS),
        st.tuples(st.just("suspend"), NS),
        st.tuples(st.just("pstate"), RATIOS),
        st.tuples(st.just("sleep"), st.integers(1, 6)),
        st.tuples(st.just("wake"), st.none()),
    ),
    max_size=30,
)


def play(machine, events):
    """What happens, as (what happened, counter of CPU 0 before, and behind)."""
    cpu = machine.cpus[0]
    for what, value in events:
        before = cpu.rdtsc()
        if what in {"advance", "suspend"}:
            getattr(machine.clock, what)(value)
        elif what == "pstate":
            cpu.set_pstate(value)
        elif what == "sleep":
            cpu.enter_cstate(value)
        else:
            cpu.leave_cstate()
        yield what, value, before, cpu.rdtsc()


@given(EVENTS, st.booleans(), st.booleans(), st.sampled_from([1, 26]))
def test_never_goes_back_and_changes_of_state_take_no_time(events, constant, nonstop, step):
    machine = processor(constant=constant, nonstop=nonstop, step=step)
    for what, _, before, after in play(machine, events):
        assert after >= before
        if what in {"pstate", "sleep", "wake"}:
            assert after == before


@given(EVENTS)
def test_an_invariant_one_is_the_clock(events):
    machine = processor()
    for _ in play(machine, events):
        ticks = machine.clock.boot_ns() * FREQUENCY // 10**9
        assert machine.cpus[0].rdtsc() == machine.cpus[1].rdtsc() == ticks - ticks % 26


@given(EVENTS)
def test_one_that_halts_stands_still_in_deep_sleep_and_suspend(events):
    machine = processor(nonstop=False, step=1)
    cpu = machine.cpus[0]
    for what, value, before, after in play(machine, events):
        if what == "suspend" or (what == "advance" and cpu.cstate >= 2):
            assert after == before
        elif what == "advance":
            assert 0 <= (after - before) - value * FREQUENCY // 10**9 <= 1


@given(st.lists(st.tuples(RATIOS, NS), max_size=10))
def test_one_that_is_not_constant_follows_the_frequency(changes):
    machine = processor(constant=False, step=1)
    total = 0
    for ratio, ns in changes:
        machine.cpus[0].set_pstate(ratio)
        assert machine.cpus[0].frequency == int(FREQUENCY * ratio)
        machine.clock.advance(ns)
        total += ns * int(FREQUENCY * ratio)
        # No part of a tick is lost where the rate changes.
        assert machine.cpus[0].rdtsc() == total // 10**9
    assert machine.cpus[1].frequency == FREQUENCY


def test_wakes_at_the_rate_of_its_pstate():
    machine = processor(constant=False, nonstop=False, step=1, frequency=10**9)
    cpu = machine.cpus[0]
    cpu.enter_cstate(3)
    machine.clock.advance(100)
    cpu.set_pstate(Fraction(1, 2))
    machine.clock.advance(100)
    assert cpu.rdtsc() == 0
    cpu.leave_cstate()
    machine.clock.advance(100)
    assert cpu.rdtsc() == 50


def test_c1_halts_the_core_and_not_the_counter():
    machine = processor(nonstop=False, step=1, frequency=10**9)
    machine.cpus[0].enter_cstate(1)
    machine.clock.advance(100)
    assert machine.cpus[0].rdtsc() == 100


def test_a_jump_of_the_clock_is_one_of_the_counters():
    machine = processor(step=1, frequency=10**9)
    machine.clock.advance(1000)
    machine.clock.jump(-400)
    assert [cpu.rdtsc() for cpu in machine.cpus] == [600, 600]


def test_a_read_takes_time_where_that_is_asked_for():
    machine = processor(read_cost_ns=21, step=26)
    cpu = machine.cpus[0]
    reads = [cpu.rdtsc() for _ in range(50)]
    assert {after - before for before, after in itertools.pairwise(reads)} == {52, 78}
    assert machine.clock.monotonic_ns() == 50 * 21


class TestWrapping:
    def test_of_64_bits(self):
        machine = processor(step=1, frequency=10**9, offsets=(2**64 - 100, 0))
        cpu = machine.cpus[0]
        assert cpu.rdtsc() == 2**64 - 100
        machine.clock.advance(99)
        assert cpu.rdtsc() == 2**64 - 1
        machine.clock.advance(1)
        assert cpu.rdtsc() == 0
        assert machine.cpus[1].rdtsc() == 100

    @given(st.integers(-(2**70), 2**70), NS)
    def test_an_offset_of_any_size_is_a_distance(self, offset, ns):
        machine = processor(offsets=(offset, 0))
        machine.clock.advance(ns)
        one, other = (cpu.rdtsc() for cpu in machine.cpus)
        assert (one - other) % 2**64 == offset % 2**64

    def test_of_32_bit_differences(self):
        machine = processor(step=1)
        before = machine.cpus[0].rdtsc()
        machine.clock.advance(1_654_378_000)
        assert machine.cpus[0].rdtsc() - before < 2**32
        machine.clock.advance(10_000)
        assert machine.cpus[0].rdtsc() - before > 2**32

    @given(st.lists(NS, min_size=1, max_size=8), st.integers(0, 2**64 - 1))
    def test_differences_modulo_64_bits_are_right_over_it(self, waits, start):
        machine = processor(step=1, frequency=10**9, offsets=(start, 0))
        before = machine.cpus[0].rdtsc()
        for ns in waits:
            machine.clock.advance(ns)
        assert (machine.cpus[0].rdtsc() - before) % 2**64 == sum(waits)


# --- Registers -----------------------------------------------------------------------------------


class TestRegisters:
    @given(st.integers(0, 2**64 - 1), NS, NS)
    def test_writing_the_counter_sets_it_and_says_how_far(self, value, before, after):
        machine = processor(step=1, frequency=10**9)
        cpu = machine.cpus[0]
        machine.clock.advance(before)
        cpu.wrmsr(IA32_TIME_STAMP_COUNTER, value)
        assert cpu.rdmsr(IA32_TIME_STAMP_COUNTER) == value
        assert cpu.rdmsr(IA32_TSC_ADJUST) == (value - before) % 2**64
        machine.clock.advance(after)
        assert cpu.rdtsc() == (value + after) % 2**64
        assert machine.cpus[1].rdtsc() == before + after
        adjust, counter = cpu.rdmsr(IA32_TSC_ADJUST), cpu.rdtsc()
        cpu.wrmsr(IA32_TIME_STAMP_COUNTER, 7)
        assert cpu.rdtsc() == 7
        assert (cpu.rdmsr(IA32_TSC_ADJUST) - adjust) % 2**64 == (7 - counter) % 2**64

    @given(st.lists(st.integers(0, 2**64 - 1), max_size=5))
    def test_writing_the_adjustment_moves_the_counter_by_the_difference(self, values):
        cpu = processor(offsets=(26, 0)).cpus[0]
        for value in values:
            before, adjust = cpu.rdtsc(), cpu.rdmsr(IA32_TSC_ADJUST)
            cpu.wrmsr(IA32_TSC_ADJUST, value)
            assert cpu.rdmsr(IA32_TSC_ADJUST) == value
            assert (cpu.rdtsc() - before) % 2**64 == (value - adjust) % 2**64

    def test_differences_stay_multiples_of_the_step(self):
        machine = processor(step=26)
        machine.cpus[0].wrmsr(IA32_TIME_STAMP_COUNTER, 5)
        machine.clock.advance(12345)
        assert (machine.cpus[0].rdtsc() - 5) % 26 == 0

    def test_aux_is_what_is_written(self):
        cpu = processor(nodes=(0, 3)).cpus[1]
        assert cpu.rdmsr(IA32_TSC_AUX) == 3 << 12 | 1
        cpu.wrmsr(IA32_TSC_AUX, 0xFFFFFFFF)
        assert cpu.rdtscp() == (0, 0xFFFFFFFF)

    @cases(
        "misuse",
        [
            lambda cpu: cpu.rdmsr(0x11),
            lambda cpu: cpu.wrmsr(0x11, 0),
            lambda cpu: cpu.wrmsr(IA32_TSC_AUX, 1 << 32),
            lambda cpu: cpu.wrmsr(IA32_TIME_STAMP_COUNTER, 1 << 64),
            lambda cpu: cpu.wrmsr(IA32_TSC_ADJUST, -1),
            lambda cpu: cpu.set_pstate(0),
            lambda cpu: cpu.enter_cstate(0),
        ],
    )
    def test_what_the_cpu_refuses(self, misuse):
        with pytest.raises(CpuError):
            misuse(processor().cpus[0])


class TestCpuid:
    @cases("constant", [False, True])
    @cases("nonstop", [False, True])
    def test_an_invariant_counter_is_constant_and_nonstop(self, constant, nonstop):
        cpu = processor(constant=constant, nonstop=nonstop).cpus[0]
        assert cpu.cpuid(0x80000007)[3] == (constant and nonstop) << 8

    def test_tsc_and_number(self):
        _, ebx, _, edx = processor().cpus[1].cpuid(1)
        assert edx >> 4 & 1
        assert ebx >> 24 == 1

    @cases("rdtscp", [False, True])
    def test_rdtscp(self, rdtscp):
        cpu = processor(rdtscp=rdtscp).cpus[0]
        assert cpu.cpuid(0x80000001)[3] >> 27 & 1 == rdtscp
        if not rdtscp:
            with pytest.raises(CpuError, match="RDTSCP"):
                cpu.rdtscp()
            with pytest.raises(CpuError, match="no MSR 0xc0000103"):
                cpu.rdmsr(IA32_TSC_AUX)

    def test_the_frequency_leaf(self):
        assert processor().cpus[0].cpuid(0x15) == (0, 0, 0, 0)
        denominator, numerator, crystal, _ = processor(crystal=24_000_000).cpus[0].cpuid(0x15)
        assert crystal * numerator == FREQUENCY * denominator
        assert processor(crystal=24_000_000).cpus[0].cpuid(0x15, 1) == (0, 0, 0, 0)

    def test_the_highest_leaves_are_there(self):
        cpu = processor().cpus[0]
        assert cpu.cpuid(0)[0] == 0x15
        assert cpu.cpuid(0x80000000)[0] == 0x80000007
        assert cpu.cpuid(0x40000000) == (0, 0, 0, 0)


@cases(
    "options",
    [
        {"cpus": 0},
        {"cpus": 4097},
        {"frequency": 0},
        {"step": 0},
        {"read_cost_ns": -1},
        {"offsets": (1,)},
        {"nodes": (1, 2, 3)},
        {"nodes": (0, -1)},
        {"nodes": (0, 1 << 20)},
        {"crystal": 0},
        {"crystal": 2**32},
        {"frequency": 10**12 + 39, "crystal": 7},
    ],
)
def test_what_no_processor_is(options):
    with pytest.raises(EmulatorError):
        processor(**options)


# --- What a program reads ------------------------------------------------------------------------


class TestTsc:
    def test_is_a_counter_of_the_protocol(self):
        machine = processor(constant=False)
        tsc = Tsc(machine.cpus[0])
        assert isinstance(tsc, target.TimestampCounter)
        assert (tsc.frequency, tsc.constant, tsc.nonstop) == (FREQUENCY, False, True)

    @given(
        st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4),
        st.lists(st.tuples(NS, st.integers(0, 3)), max_size=20),
    )
    def test_the_pair_is_of_one_cpu_wherever_the_thread_is(self, offsets, moves):
        machine = processor(4, offsets=offsets, nodes=(0, 0, 1, 1), step=1, frequency=10**9)
        where = 0
        tsc = Tsc(lambda: machine.cpus[where])
        for ns, where in moves:
            machine.clock.advance(ns)
            counter, aux = tsc.read_tscp()
            assert aux == (where // 2) << 12 | where
            elapsed = machine.clock.boot_ns()
            assert counter == tsc.read_tsc() == (offsets[aux & 0xFFF] + elapsed) % 2**64

    def test_a_thread_that_moves_within_a_read_gets_one_cpus_pair(self):
        machine = processor(2, offsets=(0, 10**9), read_cost_ns=1, frequency=10**9, step=1)
        tsc = Tsc(lambda: machine.cpus[machine.clock.boot_ns() % 2])
        # The clock advances within the read, so that the thread is somewhere else behind it.
        for _ in range(10):
            counter, aux = tsc.read_tscp()
            assert (counter >= 10**9) == (aux == 1)
