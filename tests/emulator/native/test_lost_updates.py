"""Updates that threads lose are found in C as compilers translate it, and replayed."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest

from fx_emulator.faults import BitFlip
from fx_emulator.memory import Memory
from fx_emulator.native import Exploration, explore
from fx_emulator.target import Target
from fxframework.testing.crashtest import crashtest

from ...cases import cases
from .building import COMPILERS, SOURCES
from .conftest import Builder

ORDERS = pytest.mark.parametrize("order", ["program", "tso"])
LEVELS = ("-O0", "-O2", "-O3")


def counts(wanted: int) -> Callable[[bytes], None]:
    def check(image: bytes) -> None:
        assert struct.unpack_from("<Q", image) == (wanted,), "an update was lost"

    return check


@ORDERS
@pytest.mark.parametrize("cc", COMPILERS)
def test_a_check_rejects_an_image_by_its_answer(built: Builder, cc: str, order: Any) -> None:
    with Target(cpus=2) as target:
        program = target.load(built(SOURCES / "lost.c", cc=cc, level="-O2"), memory_order=order)
        memory = target.vmo("memory", 4096)
        threads = [program.entry("count", memory, thread) for thread in (0, 1)]
        report = explore(threads, lambda image: image[0] == 2, crash=False)
    assert "AssertionError: the check returned False" in str(report)


@ORDERS
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("cc", COMPILERS)
@pytest.mark.parametrize("function", ["count", "count_volatile", "set_flag", "count_in_text"])
def test_lost_updates_are_found_and_replayed(
    built: Builder, cc: str, level: str, function: str, order: Any
) -> None:
    def run(**options: Any) -> Exploration:
        with Target(cpus=2) as target:
            program = target.load(built(SOURCES / "lost.c", cc=cc, level=level), memory_order=order)
            memory = target.vmo("memory", 4096)
            threads = [program.entry(function, memory, thread) for thread in (0, 1)]
            wanted = 3 if function == "set_flag" else 2
            return explore(threads, counts(wanted), crash=False, **options)

    for options in ({"preemptions": 1}, {"random": range(400)}):
        failure = run(**options).failure
        assert failure is not None, options
        again = run(schedule=failure.schedule).failure
        assert again is not None
        assert (str(again.error), again.image) == (str(failure.error), failure.image)


@ORDERS
@pytest.mark.parametrize("cc", COMPILERS)
def test_an_atomic_update_is_not_lost(built: Builder, cc: str, order: Any) -> None:
    with Target(cpus=2) as target:
        program = target.load(built(SOURCES / "lost.c", cc=cc, level="-O2"), memory_order=order)
        memory = target.vmo("memory", 4096)
        threads = [program.entry("count_atomically", memory)] * 2
        report = explore(threads, counts(2), crash=False, preemptions=None)
        assert report.ok
        assert report.complete


@pytest.mark.parametrize(
    ("options", "bound"),
    [
        ({}, "in every schedule with at most 2 preemptions"),
        ({"preemptions": 1}, "in every schedule with at most 1 preemption"),
        ({"preemptions": 0}, "in every schedule with no preemption"),
        ({"preemptions": None}, "in every schedule with any number of preemptions"),
        ({"limit": 1}, "in the first 1 of the schedules with at most 2 preemptions"),
        ({"random": range(20)}, "in 20 random schedules"),
        ({"schedule": "0 1"}, "in this schedule"),
    ],
)
@ORDERS
def test_a_report_says_within_which_bound(
    built: Builder, order: Any, options: dict[str, Any], bound: str
) -> None:
    with Target(cpus=2) as target:
        program = target.load(built(SOURCES / "lost.c", cc="gcc", level="-O2"), memory_order=order)
        memory = target.vmo("memory", 4096)
        threads = [program.entry("count_atomically", memory)] * 2
        report = explore(threads, counts(2), crash=False, **options)
        assert report.order == order
        assert f"all sound, {bound}, in memory order {order!r}" in str(report)
        threads = [program.entry("count", memory)] * 2
        wrong = explore(threads, counts(2), crash=False)
        assert f" in memory order {order!r}: wrong " in str(wrong)


@ORDERS
def test_threads_of_the_kernel_lose_updates_within_an_instruction(
    built: Builder, order: Any
) -> None:
    found = set()
    path = built(SOURCES / "lost.c", cc="gcc", level="-O2")
    for seed in range(40):
        with Target(seed=seed, cpus=2) as target:
            program = target.load(path, memory_order=order)
            memory = target.vmo("memory", 4096)
            for thread in range(2):
                program.spawn("count", memory, thread=f"{thread}", quantum=1)
            target.run()
            found.add(memory.load_u64(0))
    assert found == {1, 2}


@ORDERS
def test_a_crash_can_cut_a_store_across_two_cache_lines(built: Builder, order: Any) -> None:
    images = []
    with Target() as target:
        program = target.load(built(SOURCES / "lost.c", cc="gcc", level="-O2"), memory_order=order)
        memory = target.vmo("memory", 4096)
        at = program.address(memory) + 56
        report = crashtest(
            program.entry("store_packed", at), lambda image: images.append(image[56:80]),
            memory=memory,
        )  # fmt: skip
    assert report.stores == 2
    assert images == [
        bytes(24),
        bytes(4) + b"\xff" * 4 + bytes(16),
        bytes(4) + b"\xff" * 8 + bytes(12),
    ]


@cases("number", [0, 1])
def test_faults_change_either_part_of_such_a_store(built: Builder, number: int) -> None:
    with Target() as target:
        program = target.load(built(SOURCES / "lost.c", cc="gcc", level="-O2"))
        memory = Memory.anonymous(4096)
        memory.faults.append(BitFlip(store=number, bit=40 if not number else 3))
        program.call("store_packed", program.address(memory) + 56)
        words = struct.unpack_from("<3Q", memory.read(56, 24))
        flips = [1 << 40, 1 << 3]
        expected = [0xFFFFFFFF << 32, 0xFFFFFFFF]
        expected[number] ^= flips[number]
        assert words == (*expected, 0)
        assert memory.stores == 2
