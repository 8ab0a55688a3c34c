"""Faults: the same thing goes wrong each time, where it was said."""

from __future__ import annotations

import pytest

from fx_emulator.errors import Crash, EmulatorError
from fx_emulator.faults import (
    BitFlip,
    ClockJump,
    CrashAfter,
    DropDatagram,
    FullBuffer,
    TornWrite,
)
from fx_emulator.memory import Memory

from ..cases import cases


def run(*faults, stores=8):
    """A program of so many stores, with these faults: what it leaves."""
    memory = Memory.anonymous(8 * stores)
    memory.faults.extend(faults)
    try:
        for number in range(stores):
            memory.store_u64(8 * number, 0x1111111111111111 * (number + 1))
    except Crash:
        pass
    return memory.read(0, memory.size)


def test_a_bit_flips_at_a_store_or_at_a_place():
    clean = run()
    for fault in (BitFlip(bit=12, store=3), BitFlip(bit=12, offset=24)):
        assert run(fault) == clean[:25] + bytes([clean[25] ^ 0x10]) + clean[26:]
    assert run(BitFlip(bit=12, store=3, offset=16)) == clean
    assert run(*[BitFlip(bit=12, store=3)] * 2) == clean


def test_faults_compose():
    clean = run()
    faults = (BitFlip(bit=0, store=0), TornWrite(2, nbytes=3))
    left = run(*faults)
    assert left == bytes([clean[0] ^ 1]) + clean[1:19] + bytes(64 - 19)
    assert run(*faults) == left


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
    ],
)
def test_what_no_fault_is(make):
    with pytest.raises(EmulatorError):
        make()
