"""Native programs: instructions and stores a second, and how long bounded exploration takes."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fx_emulator.native import explore
from fx_emulator.target import Target

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "examples" / "native"))
from ring_reader import check_payload  # noqa: E402

from ..emulator.native.building import build  # noqa: E402

SOURCE = """
#include <stdint.h>
#include <x86intrin.h>
void records(volatile uint64_t *out, long n) {
  for (long i = 0; i < n; i++) { out[1] = i; out[2] = __rdtsc(); out[3] = 7; out[0] = 5; }
}
void stores(volatile uint64_t *out, long n) {
  for (long i = 0; i < n; i++) { out[0] = i; out[1] = i; out[2] = i; out[3] = i; }
}
long spin(long n) {
  long sum = 0;
  for (long i = 0; i < n; i++) { sum += i ^ n; __asm__ volatile("" : "+r"(sum)); }
  return sum;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("native")
    (folder / "speed.c").write_text(SOURCE)
    return Target().load(build(folder / "speed.c", folder / "speed.so"))


def took(run: Any) -> float:
    best = 1e9
    for _ in range(3):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best


def test_instructions(program: Any) -> None:
    rounds = 5_000_000
    # Four instructions a round: xor, add, inc, compare and jump make five with gcc -O2.
    seconds = took(lambda: program.call("spin", rounds, budget=100 * rounds))
    rate = 4 * rounds / seconds
    print(f"\nnothing hooked: at least {rate / 1e6:,.0f} million instructions/s")
    assert rate > 20e6


def test_stores(program: Any) -> None:
    target = program.target
    rounds = 50_000
    memory = target.vmo("stores", 4096)
    entry = program.entry("stores", memory, rounds, budget=100 * rounds)
    logged = took(entry.record)
    assert len(entry.record()) == 4 * rounds
    # The same without a memory that is watched: what is left is the engine.
    other = program.thread("other")
    at = other.stack.start
    plain = took(lambda: program.call("stores", at, rounds, thread=other, budget=100 * rounds))
    unlogged = took(lambda: program.call("stores", memory, rounds, budget=100 * rounds))
    rate = 4 * rounds / logged
    print(
        f"\nevery store logged: {rate:,.0f} stores/s; the hook takes "
        f"{(logged - plain) / logged:.0%} of the time (counted, not logged: "
        f"{4 * rounds / unlogged:,.0f}; no hook: {4 * rounds / plain:,.0f})"
    )
    assert rate > 100_000


def test_records(program: Any) -> None:
    memory = program.target.vmo("records", 4096)
    rounds = 20_000
    entry = program.entry("records", memory, rounds, budget=100 * rounds)
    seconds = took(entry.record)
    print(f"\nrecords of four stores and RDTSC, logged: {rounds / seconds:,.0f}/s")


@pytest.mark.timeout(600)
def test_exploration_of_the_ring(tmp_path: Path) -> None:
    path = build(ROOT / "examples" / "native" / "ring.c", tmp_path / "ring.so")
    with Target(cpus=2) as target:
        program = target.load(path)
        memory = target.vmo("ring", 4096)
        program.call("ring_init", memory, 8, 1_000_000_000)
        threads = [program.entry("ring_fill", memory, thread, 20) for thread in (1, 2)]
        begin = time.process_time()
        report = explore(threads, check_payload, preemptions=2)
        seconds = time.process_time() - begin
    assert report.ok, report
    assert report.complete
    print(
        f"\ntwo threads of 20 records, at most 2 preemptions: {seconds:.1f} s of CPU time; {report}"
    )
    assert seconds < 60


@pytest.mark.timeout(600)
def test_exploration_with_store_buffers(tmp_path: Path) -> None:
    source = ROOT / "tests" / "emulator" / "native" / "sources" / "litmus.c"
    path = build(source, tmp_path / "litmus.so")
    with Target(cpus=2) as target:
        program = target.load(path, memory_order="tso")
        memory = target.vmo("memory", 4096)
        threads = [program.entry(each, memory, 8) for each in ("produce", "consume")]
        begin = time.process_time()
        report = explore(threads, lambda _: None)
        seconds = time.process_time() - begin
    assert report.complete
    print(f"\na ring with store buffers, 8 records a side: {seconds:.1f} s of CPU time; {report}")
    assert seconds < 30
