"""Faults: the same thing goes wrong each time, where it was said."""

from __future__ import annotations

import os
import subprocess
import sys

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_emulator.clock import VirtualClock
from fx_emulator.errors import Crash, EmulatorError
from fx_emulator.faults import (
    BitFlip,
    ClockJump,
    CrashAfter,
    DropDatagram,
    FaultPlan,
    FullBuffer,
    TornWrite,
)
from fx_emulator.memory import Memory
from fx_emulator.socket import DatagramSocket

from ..cases import cases


def run(plan, stores=8):
    """A program of so many stores, with the plan's memory faults: what it leaves."""
    memory = Memory.anonymous(8 * stores)
    plan.arm(memory=memory)
    try:
        for number in range(stores):
            memory.store_u64(8 * number, 0x1111111111111111 * (number + 1))
    except Crash:
        pass
    return memory.read(0, memory.size)


def test_a_bit_flips_at_a_store_or_at_a_place():
    clean = run(FaultPlan())
    for fault in (BitFlip(bit=12, store=3), BitFlip(bit=12, offset=24)):
        assert run(FaultPlan([fault])) == clean[:25] + bytes([clean[25] ^ 0x10]) + clean[26:]
    assert run(FaultPlan([BitFlip(bit=12, store=3, offset=16)])) == clean
    assert run(FaultPlan([BitFlip(bit=12, store=3)] * 2)) == clean


def test_faults_compose():
    clean = run(FaultPlan())
    plan = FaultPlan([BitFlip(bit=0, store=0)]) + FaultPlan([TornWrite(2, nbytes=3)])
    left = run(plan)
    assert left == bytes([clean[0] ^ 1]) + clean[1:19] + bytes(64 - 19)
    assert run(plan) == left


@given(st.integers(0, 2**32), st.integers(0, 5))
def test_a_plan_from_a_seed(seed, count):
    sizes = {"stores": 8, "datagrams": 5, "records": 4, "ns": 1000}
    plan = FaultPlan.random(seed, count=count, **sizes)
    assert plan == FaultPlan.random(seed, count=count, **sizes)
    assert len(plan.faults) <= count
    ends = [f for f in plan.faults if isinstance(f, CrashAfter | TornWrite)]
    assert len(ends) <= 1
    assert plan.faults[len(plan.faults) - len(ends) :] == tuple(ends)
    assert run(FaultPlan(plan.of("memory"))) == run(FaultPlan(plan.of("memory")))
    clock = VirtualClock()
    FaultPlan(plan.of("clock")).arm(clock=clock)
    clock.advance(10_000)
    assert clock.monotonic_ns() >= 0


def test_seeds_differ_and_every_kind_comes():
    plans = [
        FaultPlan.random(seed, stores=9, datagrams=9, records=9, ns=9).faults[0]
        for seed in range(100)
    ]
    kinds = {type(fault) for fault in plans}
    assert kinds == {CrashAfter, TornWrite, BitFlip, DropDatagram, FullBuffer, ClockJump}
    assert len(set(plans)) > 50


def test_a_plan_does_not_depend_on_the_process():
    code = (
        "from fx_emulator.faults import FaultPlan;"
        "print(FaultPlan.random(7, count=9, stores=99, datagrams=9, records=9, ns=999))"
    )
    here = FaultPlan.random(7, count=9, stores=99, datagrams=9, records=9, ns=999)
    path = os.pathsep.join(filter(None, sys.path))
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
        said = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        assert said.stdout.strip() == repr(here)


def test_each_device_gets_its_own():
    plan = FaultPlan([CrashAfter(1), DropDatagram(0), ClockJump(1, 1), FullBuffer(0)])
    memory, socket, clock = Memory.anonymous(8), DatagramSocket(), VirtualClock()
    buffer = attrs.make_class("Buffer", {"faults": attrs.field(factory=list)})()
    plan.arm(memory=memory, socket=socket, clock=clock, buffer=buffer)
    assert memory.faults == [CrashAfter(1)]
    assert socket.faults == [DropDatagram(0)]
    assert clock.faults == [ClockJump(1, 1)]
    assert buffer.faults == [FullBuffer(0)]


def test_a_fault_that_nobody_takes_is_an_error():
    memory = Memory.anonymous(8)
    with pytest.raises(EmulatorError, match="no clock is given"):
        FaultPlan([CrashAfter(1), ClockJump(1, 1)]).arm(memory=memory)
    assert memory.faults == []
    with pytest.raises(EmulatorError, match="no faults for 'disk'"):
        FaultPlan().arm(disk=memory)


def test_a_buffer_is_full_for_so_many_records():
    assert [FullBuffer(2, count=2)(number) for number in range(5)] == [0, 0, 1, 1, 0]


@cases(
    "make",
    [
        lambda: CrashAfter(-1),
        lambda: TornWrite(-1, 1),
        lambda: TornWrite(0, 0),
        lambda: TornWrite(0, 8),
        lambda: BitFlip(bit=1),
        lambda: BitFlip(bit=64, store=0),
        lambda: BitFlip(bit=0, offset=12),
        lambda: BitFlip(bit=0, store=-1),
        lambda: DropDatagram(-1),
        lambda: FullBuffer(-1),
        lambda: ClockJump(-1, 0),
        lambda: FaultPlan.random(0),
    ],
)
def test_what_no_fault_is(make):
    with pytest.raises(EmulatorError):
        make()
