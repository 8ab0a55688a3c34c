"""LLVM's own flight recorder on the emulated CPU: compiler-rt's log against that of our FdrWriter.

A program that clang instruments is linked with compiler-rt's XRay runtime and libc, statically. The
runtime patches the sleds in emulated memory, reads the emulated counter, and records. What it was
asked to record is seen at its trampolines; the same goes into our writer, with the same readings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

import fxframework as fxf
from fx_emulator.native.process import LinuxProcess
from fx_emulator.target import Target
from fx_xray.write.flight_recorder import FdrWriter
from fxframework.errors import Severity

from ...cases import cases
from .building import SOURCES, compiler, missing
from .building import run as run_tool

TRAMPOLINES = {
    "__xray_FunctionEntry": "enter",
    "__xray_FunctionExit": "exit",
    "__xray_FunctionTailExit": "tail_exit",
    "__xray_ArgLoggerEntry": "enter_arg",
    "__xray_CustomEvent": "custom",
    "__xray_TypedEvent": "typed",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded program. Without clang and its XRay runtime the tests skip."""
    out = tmp_path_factory.mktemp("compiler-rt") / "recorder"
    command = [
        *(compiler("clang++"), "-O1", "-g", "-fxray-instrument", "-static"),
        *(str(SOURCES / "recorder.cpp"), "-o", str(out)),
    ]
    done = run_tool(command)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        missing(f"{command[0]} cannot build it (LLVM 19 with libclang-rt-19-dev can): {said[:1]}")
    return out


@attrs.define
class Call:
    """What the recorder was asked for, and what it read."""

    kind: str
    function: int = 0
    argument: int = 0
    payload: bytes = b""
    readings: list[tuple[int, int]] = attrs.field(factory=list)


class Readings:
    """A counter that gives what compiler-rt read."""

    constant = nonstop = True

    def __init__(self, frequency: int) -> None:
        self.frequency = frequency
        self.next = (0, 0)

    def read_tsc(self) -> int:
        return self.next[0]

    def read_tscp(self) -> tuple[int, int]:
        return self.next


@attrs.define
class Recorded:
    """A run of the program."""

    process: LinuxProcess
    log: bytes
    calls: list[Call]
    functions: dict[int, str]


def record(program: Path, what: str, options: str, *, cost: int = 10) -> Recorded:
    target = Target(cpus=2, read_cost_ns=cost, step=1, start_ns=1_000_000_000)
    process = target.execute(program, [what, options])
    machine = process.machine
    calls: list[Call] = []
    symbols = machine.file.symbols

    def trampoline(kind: str) -> Any:
        def asked(_address: int) -> None:
            get, read = machine.engine.get, machine.space.read
            call = Call(kind, get("r10") & 0xFFFFFFFF)
            if kind == "enter_arg":
                call.argument = get("rdi")
            elif kind == "custom":
                call.payload = read(get("rdi"), get("rsi"))
            elif kind == "typed":
                call.function, call.payload = get("rdi"), read(get("rsi"), get("rdx"))
            calls.append(call)

        return asked

    def tsc(cpu: Any) -> int:
        value: int = read_tsc(cpu)
        if calls:
            calls[-1].readings.append((value, cpu.rdmsr(0xC0000103)))
        return value

    for name, kind in TRAMPOLINES.items():
        machine.engine.on_code(trampoline(kind), symbols[name].address, symbols[name].address)
    machine.engine.forget_code()
    read_tsc, machine.timer.tsc = machine.timer.tsc, tsc
    assert process.run() == 0, process.output
    assert not process.system.unknown
    return Recorded(process, process.files["log"], calls, {})


def ours(run: Recorded, *, buffer_size: int, buffers: int, threshold_us: int) -> bytes:
    """The log of our writer for the same calls and readings."""
    clock = run.process.machine.target.clock
    counter = Readings(run.process.machine.target.processor.frequency)
    writer = FdrWriter(
        counter,
        buffer_size=buffer_size,
        buffers=buffers,
        process=1024,
        threshold_us=threshold_us,
        clock=lambda: walls.pop(0),
        circular=False,
    )
    walls = [micros * 1000 for micros in wall_times(run.log)] + [clock.monotonic_ns()] * 8
    thread = writer.thread(1024)
    for call in run.calls:
        (counter.next,) = call.readings
        match call.kind:
            case "enter":
                thread.enter(call.function)
            case "enter_arg":
                thread.enter(call.function, call.argument)
            case "exit":
                thread.exit(call.function)
            case "tail_exit":
                thread.tail_exit(call.function)
            case "custom":
                thread.custom_event(call.payload)
            case "typed":
                thread.typed_event(call.function, call.payload)
    writer.finish()
    return writer.log()


def wall_times(log: bytes) -> Iterator[int]:
    with fxf.open(log, format="xray") as capture:
        for each in capture.records():
            if type(each).__name__ == "WallTime":
                yield each.seconds * 1_000_000 + each.micros


def records(log: bytes) -> list[Any]:
    """All records, without the bytes that the format leaves open."""
    with fxf.open(log, format="xray") as capture:
        found = []
        for each in capture.records():
            names = {field.name for field in attrs.fields(type(each))}
            open_ones = {name: b"" for name in ("padding",) if name in names}
            found.append(attrs.evolve(each, **open_ones))
        return found


@cases(
    ("threshold_us", "buffer_size", "buffers", "cost"),
    [(0, 4096, 8, 10), (0, 512, 40, 10), (1, 4096, 8, 300), (2, 1024, 8, 300), (5, 4096, 4, 10)],
)
def test_the_log_is_that_of_our_writer_record_by_record(
    program: Path, threshold_us: int, buffer_size: int, buffers: int, cost: int
) -> None:
    options = (
        f"func_duration_threshold_us={threshold_us}:buffer_size={buffer_size}:buffer_max={buffers}"
    )
    run = record(program, "calls", options, cost=cost)
    assert len(run.calls) > 300
    own = ours(run, buffer_size=buffer_size, buffers=buffers, threshold_us=threshold_us)
    theirs = records(run.log)
    assert theirs == records(own)
    kinds = {type(each).__name__ for each in theirs}
    assert kinds >= {"FileHeader", "BufferExtents", "NewCpu", "CustomEvent", "CallArgument"}


def test_typed_events_lose_the_end_of_their_buffer(program: Path) -> None:
    """compiler-rt counts a typed event's payload only: 16 bytes each are missing at the end."""
    options = "func_duration_threshold_us=0:buffer_size=4096:buffer_max=4"
    run = record(program, "typed", options)
    own = ours(run, buffer_size=4096, buffers=4, threshold_us=0)
    events = sum(call.kind == "typed" for call in run.calls)
    assert events == 2
    lost = 16 * events
    assert len(run.log) == len(own) - lost
    extents = [
        next(each.bytes for each in records(log) if type(each).__name__ == "BufferExtents")
        for log in (run.log, own)
    ]
    assert extents[0] == extents[1] - lost
    # What is left is the same, up to where the cut falls.
    own_records = {each.offset: each for each in records(own)}
    for each in records(run.log):
        if type(each).__name__ not in {"BufferExtents", "DamagedRecord", "PaddingRecord"}:
            assert own_records[each.offset] == each


def test_a_migration_before_a_tail_exit_cuts_into_metadata(program: Path) -> None:
    """The rewind of a short callee forgets that a NewCPUId stands between: half of it goes."""
    options = "func_duration_threshold_us=50:buffer_size=4096:buffer_max=4"
    run = record(program, "migrations", options)
    own = ours(run, buffer_size=4096, buffers=4, threshold_us=50)
    assert records(run.log) != records(own)
    latest = max(tsc for call in run.calls for tsc, _ in call.readings)
    times = {
        log: [each.tsc for each in records(log) if type(each).__name__ == "NewCpu"]
        for log in (run.log, own)
    }
    assert max(times[own]) <= latest
    # Half of one record and half of the next: a time that no counter has shown.
    assert max(times[run.log]) > 1000 * latest
    with fxf.open(run.log, format="xray") as capture:
        list(capture.records())
        assert "FXX0205" in {each.code for each in capture.diagnostics}
    with fxf.open(own, format="xray") as capture:
        list(capture.records())
        assert not [each for each in capture.diagnostics if each.severity > Severity.INFO]
