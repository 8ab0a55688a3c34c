"""Native writers, crashed after every store and run in all schedules within a bound.

gcc -O2 -g -shared -fPIC -nostdlib -o ring.so ring.c
gcc -O2 -g -shared -fPIC -nostdlib -o inspect_writer.so inspect_writer.c
pytest test_writers.py
"""

from __future__ import annotations

from pathlib import Path

from ring_reader import check_payload, extract

from fx_emulator.native import explore
from fxframework.testing import reads_back

HERE = Path(__file__).parent


def test_ring_survives_a_crash_after_every_store(emulated_target, vmo, crashtest):
    ring = vmo(4096)
    program = emulated_target.load(HERE / "ring.so")
    program.call("ring_init", ring, 8, 1_000_000_000)
    check = reads_back("trace", keeps="some", extract=extract)
    crashtest(program.entry("ring_fill", ring, 1, 20), check)


def test_ring_stands_two_threads(emulated_target, vmo):
    ring = vmo(4096)
    program = emulated_target.load(HERE / "ring.so")
    program.call("ring_init", ring, 8, 1_000_000_000)
    threads = [program.entry("ring_fill", ring, thread, 3) for thread in (1, 2)]
    report = explore(threads, check_payload, preemptions=2)
    assert report.ok, report


def test_inspect_stands_two_threads_and_store_buffers(emulated_target, vmo):
    tree = vmo(4096)
    program = emulated_target.load(HERE / "inspect_writer.so", memory_order="tso")
    program.call("inspect_init", tree)
    threads = [program.entry("inspect_count", tree, thread, 1) for thread in (0, 1)]
    report = explore(threads, reads_back("inspect"), preemptions=2)
    assert report.ok, report
