"""How fast an emulated target traces, with every store logged. Never a failure.

The goal is 0.1 M records a second; the ratio is to the same calls without an emulator.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fx_emulator.steps import Machine
from fx_emulator.target import Target
from fx_trace.write.archive import Archive
from fx_trace.write.buffer import TraceBuffer
from fx_trace.write.writer import TraceWriter
from fxframework.io.memory import BytesMemory

from .yardstick import Say

RECORDS = 100_000
SIZE = 16 << 20
PER_TURN = 10
"""Records that a thread writes before time passes."""


def best(run: Callable[[], float], rounds: int = 3) -> float:
    """The least seconds of some rounds, after one that is not counted."""
    run()
    return min(run() for _ in range(rounds))


def event(writer: TraceWriter, number: int, thread: tuple[int, int]) -> None:
    """What is written: an instant event with an argument, four words of it."""
    writer.instant("bench", "event", {"number": number}, thread=thread)


def emulated(*, store_log: bool, mode: str, faults: bool = False) -> float:
    """Seconds that four threads on four CPUs take to write the records."""
    with Target(seed=1, store_log=store_log) as target:
        machine = Machine(target)
        engine = target.trace_provider("app", size=SIZE, mode=mode)  # type: ignore[arg-type]
        writer = TraceWriter(engine, clock=machine.counter)
        if faults:
            target.devices["app"].memory.faults.append(lambda _at, value, _number: value)  # type: ignore[union-attr]

        def program(thread: Any) -> Iterator[object]:
            ids = thread.ids
            for number in range(RECORDS // 4 // PER_TURN):
                for _ in range(PER_TURN):
                    event(writer, number, ids)
                yield thread.run(10_000)

        for number in range(4):
            machine.spawn("bench", f"t{number}", program)  # type: ignore[arg-type]
        begin = time.process_time()
        machine.run()
        seconds = time.process_time() - begin
        assert engine.records + engine.dropped >= RECORDS
        return seconds


def buffered() -> float:
    """Seconds that the same calls take into our own trace buffer, over plain bytes."""
    buffer = TraceBuffer(BytesMemory(SIZE), "oneshot")
    return plain(TraceWriter(buffer))


def archived() -> float:
    """Seconds that the same calls take into an archive in memory."""
    with Archive(io.BytesIO()) as archive:
        return plain(archive.provider(1, "app"))


def plain(writer: TraceWriter) -> float:
    """Seconds that the same calls take, one behind the other."""
    begin = time.process_time()
    for number in range(RECORDS):
        event(writer, number, (1, 2))
    return time.process_time() - begin


@pytest.mark.parametrize("mode", ["oneshot", "circular", "streaming"])
@pytest.mark.parametrize("what", ["store log", "no store log", "store log and an armed fault"])
def test_an_emulated_run_against_plain_writing(mode: str, what: str, say: Say) -> None:
    options = {"store_log": what.startswith("store log"), "faults": "fault" in what}
    seconds = best(lambda: emulated(mode=mode, **options))
    buffer, archive = best(buffered), best(archived)
    say(
        f"{mode}, {what}: {RECORDS / seconds / 1e6:.3f} M records/s of CPU time (goal 0.1 with the "
        f"log); {seconds / archive:.1f} x the time into an archive, {seconds / buffer:.1f} x that "
        "into a trace buffer of plain bytes"
    )
