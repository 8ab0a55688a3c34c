"""How fast Inspect is written and read live. Never a failure on time.

Run with ``tox run -e bench`` or ``pytest -m bench -s``. The goals, on plain memory: an int set
800,000 times a second; 60,000 properties created a second, at the same cost from 1,000 to 100,000.
"""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fx_emulator.vmo import Vmo
from fx_inspect.read.snapshot import MappedFile, Snapshot
from fx_inspect.write.writer import Inspector
from fxframework.io.memory import BytesMemory
from fxframework.model.target import Memory

from .yardstick import Say

ROOM = 64 << 20


def rate(count: int, run: Callable[[int], object], rounds: int = 5) -> float:
    """Calls a second of the best round."""
    times = []
    for _ in range(rounds):
        gc.collect()
        begin = time.perf_counter()
        run(count)
        times.append(time.perf_counter() - begin)
    return count / min(times)


def calls(count: int) -> None:
    """The yardstick: a method of a class that adds to an attribute under a lock."""
    plain = Plain()
    add = plain.add
    for number in range(count):
        add(number)


class Plain:
    def __init__(self) -> None:
        import threading

        self.lock = threading.Lock()
        self.value = 0

    def add(self, value: int) -> None:
        with self.lock:
            self.value += value


MEMORIES: dict[str, Callable[[], Memory | None]] = {
    "plain memory": lambda: None,
    "BytesMemory": lambda: BytesMemory(4096),
    "a VMO of the target": lambda: Vmo.create(1 << 20),
}


@pytest.mark.bench
@pytest.mark.parametrize("name", MEMORIES)
def test_setting_an_int(name: str, say: Say) -> None:
    inspector = Inspector(MEMORIES[name]())
    value = inspector.root.create_int("value", 0)

    def run(count: int) -> None:
        put = value.set
        for number in range(count):
            put(number)

    found, yardstick = rate(200_000, run), rate(200_000, calls)
    say(f"set an int on {name}: {found:,.0f}/s, {yardstick / found:.1f} x a call with a lock")
    assert inspector.generation > 0


@pytest.mark.bench
def test_creating_properties_at_the_same_cost(say: Say) -> None:
    def run(count: int) -> None:
        inspector = Inspector(max_size=ROOM)
        create = inspector.root.create_child("node").create_int
        for number in range(count):
            create(f"property-{number}", number)
        assert not inspector.stats().failed_allocations

    yardstick = rate(200_000, calls)
    rates = {count: rate(count, run, 3) for count in (1_000, 10_000, 100_000)}
    for count, found in rates.items():
        say(f"{count:,} properties: {found:,.0f}/s, {yardstick / found:.0f} x a call with a lock")
    say(f"slowest against fastest: {max(rates.values()) / min(rates.values()):.2f}")
    assert min(rates.values()) > 0


@pytest.mark.bench
def test_making_and_deleting_in_a_large_heap(say: Say) -> None:
    inspector = Inspector(max_size=ROOM)
    held = [inspector.root.create_string(f"held {number}", "x") for number in range(50_000)]
    for value in held[::2]:
        value.delete()

    def run(count: int) -> None:
        for number in range(count):
            inspector.root.create_int(f"name {number}", 1).delete()

    say(f"made and deleted among 25,000 holes: {rate(20_000, run, 3):,.0f}/s")
    assert inspector.size > 1 << 20


WRITER = """
import sys, time
from fx_emulator.memory import Memory
from fx_inspect.write.writer import Inspector

inspector = Inspector(Memory.file(sys.argv[1], 1 << 18))
values = [inspector.root.create_int(f"value {n}", 0) for n in range(4)]
inspector.root.create_bytes("room", bytes(240_000))
print("ready", flush=True)
begin, count = time.perf_counter(), 0
while True:
    count += 1
    with inspector.transaction():
        for value in values:
            value.set(count)
    ahead = begin + count / 10_000 - time.perf_counter()
    if ahead > 0.001:
        time.sleep(ahead)
"""


@pytest.mark.bench
@pytest.mark.timeout(600)
def test_reading_while_another_process_writes(say: Say, tmp_path: Path) -> None:
    path = tmp_path / "live.inspect"
    command = [sys.executable, "-c", WRITER, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    taken: list[Snapshot] = []
    torn = 0
    try:
        assert process.stdout is not None
        process.stdout.readline()
        begin = time.perf_counter()
        with MappedFile(path) as memory:
            first = Snapshot.take(memory)
            # Where the four values stand in the VMO: they are made one behind the other.
            places = [at for at in range(16, 1024, 16) if first.data[at + 1] == 4][:4]
            for _ in range(100_000):
                one = Snapshot.take(memory)
                values = {one.data[at + 8 : at + 16] for at in places}
                torn += len(values) != 1
                taken.append(Snapshot(b"", one.generation, one.attempts, one.seconds))
        seconds = time.perf_counter() - begin
    finally:
        process.kill()
        process.communicate()
    attempts = [each.attempts for each in taken]
    written = (taken[-1].generation - taken[0].generation) // 2
    say(f"{len(taken):,} snapshots in {seconds:.1f} s, {written / seconds:,.0f} transactions/s")
    say(f"attempts per snapshot: {statistics.mean(attempts):.3f}, at most {max(attempts)}")
    say(f"longest wait: {1000 * max(each.seconds for each in taken):.1f} ms; torn: {torn}")
    assert len(places) == 4
    assert torn == 0
