"""Time passes by instructions: readings rise, repeat with the seed, and a wait for a time ends."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import Any

import pytest

from fx_emulator.errors import EmulatorError
from fx_emulator.native import NativeProgram, explore
from fx_emulator.target import Target
from fxframework.testing.crashtest import crashtest

from .building import SOURCES
from .conftest import Builder

READINGS = [
    "rdtsc",
    "rdtscp",
    "zx_clock_get_monotonic",
    "zx_clock_get_boot",
    "zx_ticks_get",
    "clock_gettime",
]
EVERY = pytest.mark.parametrize("what", range(len(READINGS)), ids=READINGS)
COUNT = 20


@pytest.fixture(params=[("gcc", "-O0"), ("clang", "-O3")], ids=["gcc-O0", "clang-O3"])
def path(request: pytest.FixtureRequest, built: Builder) -> Path:
    cc, level = request.param
    return built(SOURCES / "time.c", cc=cc, level=level)


def stamps(image: bytes) -> tuple[int, ...]:
    count, *times = struct.unpack_from("<33Q", image)
    return tuple(times[:count])


def rising(image: bytes) -> None:
    times = stamps(image)
    assert all(one < other for one, other in itertools.pairwise(times)), times


def loaded(path: Path, **options: Any) -> tuple[NativeProgram, Any]:
    target = Target(**{"seed": 1, "cpus": 2, **options})
    program = target.load(path)
    return program, target.vmo("log", 4096)


@EVERY
def test_readings_rise_in_a_call_and_repeat(path: Path, what: int) -> None:
    def run(seed: int) -> bytes:
        program, log = loaded(path, seed=seed)
        program.call("stamp", log, what, COUNT)
        rising(log.read(0, 4096))
        assert len(stamps(log.read(0, 4096))) == COUNT
        return log.read(0, 4096)

    assert run(1) == run(1)


@EVERY
def test_readings_rise_in_a_crash_test(path: Path, what: int) -> None:
    program, log = loaded(path)
    report = crashtest(program.entry("stamp", log, what, COUNT), rising)
    assert report.ok, report
    assert report.stores == 2 * COUNT


@EVERY
def test_readings_rise_on_a_thread_of_the_kernel(path: Path, what: int) -> None:
    def run() -> list[bytes]:
        program, _ = loaded(path, slice_ns=500)
        logs = [program.target.vmo(f"log {n}", 4096) for n in range(3)]
        for log in logs:
            program.spawn("stamp", log, what, COUNT, thread=log.name, quantum=7)
        program.target.run()
        for log in logs:
            rising(log.read(0, 4096))
        return [log.read(0, 4096) for log in logs]

    assert run() == run()


@EVERY
@pytest.mark.parametrize("order", ["program", "tso"])
def test_readings_rise_in_every_schedule(path: Path, what: int, order: Any) -> None:
    def run(function: str, **options: Any) -> Any:
        with Target(cpus=2) as target:
            program = target.load(path, memory_order=order)
            log = target.vmo("log", 4096)
            threads = [program.entry(function, log, what)] * 2
            return explore(threads, rising, crash=False, **options)

    report = run("stamp_locked")
    assert report.ok, report
    assert report.complete
    # Without a lock a thread can take the first place and stamp it last.
    failure = run("stamp_next").failure
    assert failure is not None
    again = run("stamp_next", schedule=failure.schedule).failure
    assert again.image == failure.image
    assert len(stamps(failure.image)) == 2


@EVERY
def test_a_wait_for_10_microseconds_ends(path: Path, what: int) -> None:
    length = 10_000 * (2_596_120_000 if what < 2 else 10**9) // 10**9
    program, out = loaded(path)
    clock = program.target.clock
    begin = clock.monotonic_ns()
    assert length <= program.call("wait", out, what, length) < 1.1 * length
    assert 10_000 <= clock.monotonic_ns() - begin < 11_000
    report = crashtest(program.entry("wait", out, what, length), lambda _: None)
    assert report.stores == 1
    program.spawn("wait", out, what, length)
    program.target.run()
    assert length <= out.load_u64(0) < 1.5 * length

    def check(image: bytes) -> None:
        assert struct.unpack_from("<Q", image)[0] >= length

    threads = [program.entry("wait", out, what, length)] * 2
    explored = explore(threads, check, crash=False, limit=1000)
    assert explored.ok, explored
    assert explored.complete


def test_a_sleep_takes_its_time_in_an_exploration(path: Path) -> None:
    program, out = loaded(path)
    threads = [program.entry("sleep_until", out, ns) for ns in (5_000_000, 1_000_000)]

    def check(image: bytes) -> None:
        assert 1_000_000 <= struct.unpack_from("<Q", image)[0] < 7_000_000

    for options in ({}, {"random": range(20)}):
        report = explore(threads, check, crash=False, **options)
        assert report.ok, report
    assert program.target.clock.monotonic_ns() < 1_000_000


@pytest.mark.parametrize("rate", [10**6, 10**9, 3 * 10**9])
def test_time_passes_by_instructions(path: Path, rate: int) -> None:
    program, _ = loaded(path, instructions_per_second=rate)
    ns = program.call("spin", 2, 100_000)
    assert ns == pytest.approx(400_000 * 10**9 / rate, rel=0.01)
    ticks = program.call("spin", 0, 100_000)
    assert ticks == pytest.approx(400_000 * 2_596_120_000 / rate, rel=0.01)


@pytest.mark.parametrize(
    "options",
    [{"nonstop": False}, {"constant": False}, {"step": 1}, {"step": 5000}, {"read_cost_ns": 40}],
)
def test_readings_rise_on_every_processor(path: Path, options: dict[str, Any]) -> None:
    program, log = loaded(path, **options)
    program.call("stamp", log, 0, COUNT)
    rising(log.read(0, 4096))
    assert program.target.processor.cpus[0].cstate


def test_a_rate_must_be_positive() -> None:
    with pytest.raises(EmulatorError, match="invalid instructions_per_second 0: must be at least"):
        Target(instructions_per_second=0)
