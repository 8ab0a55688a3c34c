"""Native programs as part of a target: Zircon's calls, threads of the kernel, signals, steps."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from fx_emulator.memory import Memory
from fx_emulator.native import BudgetError, NativeProgram, explore
from fx_emulator.target import Target
from fxframework.host import default_host
from fxframework.replay import parse, replay

from ...cases import cases
from .building import BUILDS, SOURCES
from .conftest import Builder

ZIRCON = SOURCES / "zircon.c"


@pytest.fixture(params=BUILDS, ids=["-".join(each) for each in BUILDS])
def program(request: pytest.FixtureRequest, built: Builder) -> NativeProgram:
    cc, level = request.param
    target = Target(seed=3, cpus=2, start_ns=5_000, suspended_ns=700, ticks_per_second=10**6)
    return target.load(built(ZIRCON, cc=cc, level=level))


# --- Zircon -------------------------------------------------------------------------------------


def test_clocks(program: NativeProgram) -> None:
    out = Memory.anonymous(32)
    program.call("clocks", out)
    monotonic, boot, *ticks = struct.unpack("<4q", out.read(0, 32))
    assert 5_000 <= monotonic < boot - 700 < 5_100
    assert ticks == [5, 10**6]


def test_vmos_and_their_errors(program: NativeProgram) -> None:
    out = Memory.anonymous(8)
    assert program.call("make", out) == 0
    (device,) = program.target.devices.values()
    assert device.device.name == "mine"
    assert device.device.load_u64(8) == 0x1122334455667788
    assert device.device.size == 3 * 4096
    fixed = program.target.vmo("fixed", 4096)
    assert program.call("fixed_size", program.handle(fixed)) & 0xFFFFFFFF == (1 << 32) - 28


def test_koids(program: NativeProgram) -> None:
    vmo = program.target.vmo("a", 4096)
    out = Memory.anonymous(48)
    assert program.call("koids", out, program.handle(vmo)) == 0
    words = struct.unpack("<6Q", out.read(0, 48))
    main = program.machine.main
    assert words == (vmo.koid, 3, main.koid, 2, main.process_koid, 1)


def test_datagrams(program: NativeProgram) -> None:
    socket = program.target.log_socket("log", capacity=10)
    assert program.call("send", socket, b"hello", 5) == 5
    assert program.call("send", socket, b"world!", 6) & 0xFFFFFFFF == (1 << 32) - 22
    assert program.call("send", socket, b"", 11) & 0xFFFFFFFF == (1 << 32) - 14
    assert socket.receive() == b"hello"


# --- Threads of the kernel ----------------------------------------------------------------------


def test_a_thread_sleeps_and_ends(program: NativeProgram) -> None:
    out = Memory.anonymous(32)
    thread = program.spawn("sleeper", out, 250_000, process="app", thread="sleeper")
    program.target.run()
    before, after, ended, _ = struct.unpack("<4q", out.read(0, 32))
    assert after - before >= 250_000
    assert not ended
    assert thread.finished
    assert [each.name for each in program.target.kernel.threads] == ["sleeper"]


@cases("quantum", [1, 3, 40])
def test_threads_race_as_the_seed_says(built: Builder, quantum: int) -> None:
    def race(seed: int) -> tuple[int, ...]:
        with Target(seed=seed, cpus=2, slice_ns=50) as target:
            program = target.load(built(ZIRCON, cc="gcc", level="-O2"))
            out = Memory.anonymous(16)
            for me in (0, 1):
                program.spawn("racer", out, me, 40, thread=f"racer {me}", quantum=quantum)
            target.run()
            assert target.kernel.switches >= 2
            return struct.unpack("<2Q", out.read(0, 16))

    results = [race(seed) for seed in range(12)]
    assert results == [race(seed) for seed in range(12)]
    assert len(set(results)) > 1
    # Stores were lost, as they are without a lock.
    assert any(max(each) < 80 for each in results)


def test_an_endless_thread_ends_the_run(built: Builder, target: Target) -> None:
    program = target.load(built(SOURCES / "faults.c", cc="gcc", level="-O2"))
    program.spawn("endless", budget=50_000)
    with pytest.raises(BudgetError, match="thread main: no end"):
        target.run()


def test_a_signal_may_come_at_any_instruction(built: Builder) -> None:
    def seen(name: str) -> set[tuple[int, ...]]:
        found = set()
        for seed in range(30):
            with Target(seed=seed) as target:
                program = target.load(built(ZIRCON, cc="gcc", level="-O2"))
                out = Memory.anonymous(32)
                handler = program.entry(name, out)
                program.spawn(name, out, quantum=2, signal=handler)
                target.run()
                found.add(struct.unpack("<4Q", out.read(0, 32)))
        return found

    assert any(first != second for first, second, *_ in seen("careless"))
    assert all(first == second for first, second, *_ in seen("careful"))


def test_explore_tries_the_signal_everywhere(program: NativeProgram) -> None:
    memory = program.target.vmo("counts", 4096)

    def final(image: bytes) -> None:
        first, second, _, refused = struct.unpack_from("<4Q", image)
        assert first == second, "the handler was overtaken"
        assert first + refused in {1, 2}

    def run(name: str, **options: Any) -> Any:
        entry = program.entry(name, memory)
        handler = program.entry(name, memory)
        return explore([entry], final, crash=False, signal=handler, **options)

    assert run("careful").ok
    found = run("careless").failure
    assert found is not None
    assert "s0" in found.schedule.split()
    assert run("careless", schedule=found.schedule).failure.image == found.image


def test_a_thread_draws_the_same_in_every_schedule(program: NativeProgram) -> None:
    memory = program.target.vmo("out", 4096)
    threads = [program.entry("draws", memory, me) for me in (0, 1)]
    found = set()
    for options in ({}, {"random": range(5)}, {"schedule": "1 0"}):
        report = explore(
            threads,
            lambda image: found.add(struct.unpack_from("<2Q", image)),
            crash=False,
            **options,
        )
        assert report.ok, report
    assert len(found) == 1
    assert len(set(*found)) == 2


def test_values_of_keys_are_of_one_schedule(program: NativeProgram) -> None:
    memory = program.target.vmo("out", 4096)
    found = set()
    for _ in range(2):
        threads = [program.entry("claims", memory, me) for me in (0, 1)]
        report = explore(
            threads, lambda image: found.add(struct.unpack_from("<2Q", image)), crash=False
        )
        assert report.ok, report
    assert found <= {(1101, 1102), (1102, 1101)}


def test_explorations_leave_no_trace(program: NativeProgram) -> None:
    memory = program.target.vmo("out", 4096)
    found: list[set[tuple[int, ...]]] = []

    for _ in range(3):
        images: set[tuple[int, ...]] = set()
        threads = [program.entry("allocates", memory, me) for me in (0, 1)]
        report = explore(
            threads,
            lambda image, images=images: images.add(struct.unpack_from("<3Q", image)),
            crash=False,
        )
        assert report.ok, report
        found.append(images)
    # One of them may have lost the other's count; thread koids are the same every time.
    assert {each[0] for each in found[0]} == {1, 2}
    assert found[0] == found[1] == found[2]
    assert memory.read(0, 24) == bytes(24)
    assert program.machine.heap.live == 0


# --- Scenarios ----------------------------------------------------------------------------------

SCENARIO = """
[scenario]
name = "native"
seed = 5

[target]
cpus = 2

[device.out]
kind = "vmo"

[device.log]
kind = "log_socket"

[[step]]
do = "native.run"
object = "{path}"
entry = "send"
arguments = ["log", {{ text = "a message" }}, 9]
returns = 9

[[step]]
do = "native.thread"
object = "{path}"
entry = "racer"
process = "app"
thread = "first"
arguments = ["out", 0, 30]
quantum = 3

[[step]]
do = "native.thread"
object = "{path}"
entry = "racer"
process = "app"
thread = "second"
arguments = ["out", 1, 30]
quantum = 3

[[step]]
do = "target.run"

[[step]]
do = "target.snapshot"
device = "out"
as = "out.bin"
"""


def test_steps(built: Builder) -> None:
    path = built(ZIRCON, cc="clang", level="-O2")
    text = SCENARIO.format(path=path)
    scenario = parse(text, default_host(), allow_outside=True)
    report = replay(scenario, allow_outside=True)
    assert report.ok, report.to_text()
    first, second = struct.unpack_from("<2Q", report.outputs["out.bin"])
    assert 0 < max(first, second) <= 60
    assert replay(scenario, allow_outside=True).outputs == report.outputs


@cases(
    ("change", "what"),
    [
        (("returns = 9", "returns = 8"), "it returned 9, not 8"),
        (('entry = "send"', 'entry = "sent"'), "did you mean 'send'"),
        (('["log", {{ text', '["lug", {{ text'), "there is no device 'lug'"),
        (("cpus = 2", "cpus = 2\nseed_of = 1"), None),
    ],
)
def test_steps_that_fail_say_why(built: Builder, change: tuple[str, str], what: str | None) -> None:
    text = SCENARIO.replace(*change).format(path=built(ZIRCON, cc="clang", level="-O2"))
    if what is None:
        with pytest.raises(Exception, match="seed_of"):
            parse(text, default_host(), allow_outside=True)
        return
    report = replay(parse(text, default_host(), allow_outside=True), allow_outside=True)
    assert not report.ok
    assert what in report.to_text()


def test_the_command_ends_with_status_5_without_the_extra(
    built: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from fxframework.testing.cli import run_cli

    scenario = tmp_path / "native.toml"
    scenario.write_text(SCENARIO.format(path=built(ZIRCON, cc="clang", level="-O2")))
    monkeypatch.setitem(sys.modules, "unicorn", None)
    done = run_cli("replay", scenario, "--allow-outside", "--out", tmp_path / "out")
    assert done.exit_code == 5
    assert "pip install" in done.stderr
    assert "unicorn" in done.stderr
