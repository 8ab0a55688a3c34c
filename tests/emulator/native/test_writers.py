"""Writers in C with seeded bugs: all are found, at every level, by every compiler, by line."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fx_emulator.native import Exploration, NativeProgram, explore
from fx_emulator.target import Target
from fxframework.testing.crashtest import crashtest
from fxframework.testing.readback import reads_back

from .building import BUILDS, EXAMPLES
from .conftest import Builder

sys.path.insert(0, str(EXAMPLES))
from ring_reader import check_payload, extract, records

BUILT = pytest.mark.parametrize(("cc", "level"), BUILDS, ids=["-".join(each) for each in BUILDS])
RING = EXAMPLES / "ring.c"
INSPECT = EXAMPLES / "inspect_writer.c"


def line_of(source: Path, text: str) -> int:
    """The number of the first line that has a text."""
    lines = source.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def ring(path: Path, *, order: Any = "program", slots: int = 8) -> tuple[NativeProgram, Any]:
    target = Target(seed=1, cpus=2)
    program = target.load(path, memory_order=order)
    memory = target.vmo("ring", 4096)
    program.call("ring_init", memory, slots, 1_000_000_000)
    return program, memory


CHECK = reads_back("trace", keeps="some", extract=extract)


# --- The ring -----------------------------------------------------------------------------------


@BUILT
def test_a_sound_ring_survives_a_crash_after_every_store(
    built: Builder, cc: str, level: str
) -> None:
    program, memory = ring(built(RING, cc=cc, level=level))
    report = crashtest(program.entry("ring_fill", memory, 1, 20), CHECK)
    assert report.ok, report
    # A number, a claim, six words, a commit.
    assert report.stores == 20 * 9
    numbers = records(memory.read(0, 4096))
    assert sorted(numbers) == list(range(12, 20))


@BUILT
def test_a_commit_before_the_payload_is_found(built: Builder, cc: str, level: str) -> None:
    path = built(RING, "-DRING_BUG_COMMIT_FIRST", cc=cc, level=level)
    program, memory = ring(path)
    report = crashtest(program.entry("ring_fill", memory, 1, 20), CHECK)
    assert report.failure is not None
    line = line_of(RING, "#ifdef RING_BUG_COMMIT_FIRST") + 1
    assert f"(ring.c:{line})" in report.failure.trail[-1]
    assert len(report.failure.trail) == report.failure.store == 3
    assert "ring_" in str(report)


@BUILT
def test_a_wrong_wrap_is_found_and_its_schedule_runs_again(
    built: Builder, cc: str, level: str
) -> None:
    def run(**options: Any) -> Exploration:
        program, memory = ring(built(RING, "-DRING_BUG_WRAP", cc=cc, level=level))
        threads = [program.entry("ring_fill", memory, thread, 9) for thread in (1, 2)]
        return explore(threads, check_payload, **options)

    found = run(preemptions=1).failure
    assert found is not None
    assert found.frame is not None
    assert found.frame.file == "ring.c"
    assert "ring.c:" in str(found)
    assert len(found.trail) == 10
    again = run(schedule=found.schedule).failure
    assert again is not None
    assert (str(again.error), again.image, again.trail) == (
        str(found.error),
        found.image,
        found.trail,
    )


@BUILT
def test_a_sound_ring_stands_two_threads(built: Builder, cc: str, level: str) -> None:
    program, memory = ring(built(RING, cc=cc, level=level), slots=2)
    before = memory.read(0, 4096)
    threads = [program.entry("ring_fill", memory, thread, 3) for thread in (1, 2)]
    report = explore(threads, check_payload, preemptions=2)
    assert report.ok, report
    assert report.complete
    assert report.schedules > 10
    assert memory.read(0, 4096) == before


def test_random_schedules_find_a_wrong_wrap_too(built: Builder) -> None:
    path = built(RING, "-DRING_BUG_WRAP", cc="gcc", level="-O3")

    def run(**options: Any) -> Exploration:
        program, memory = ring(path, slots=2)
        threads = [program.entry("ring_fill", memory, thread, 9) for thread in (1, 2)]
        return explore(threads, check_payload, **options)

    found = run(random=range(3, 503)).failure
    assert found is not None
    assert found.schedule.startswith("random:")
    again = run(schedule=found.schedule).failure
    assert again is not None
    assert again.image == found.image


# --- Inspect ------------------------------------------------------------------------------------

READS = reads_back("inspect")


def inspect(path: Path, order: Any) -> tuple[NativeProgram, Any]:
    target = Target(seed=1, cpus=2)
    program = target.load(path, memory_order=order)
    vmo = target.vmo("tree", 4096)
    program.call("inspect_init", vmo)
    return program, vmo


def hits(count: int) -> Callable[[bytes], None]:
    def check(image: bytes) -> None:
        assert struct.unpack_from("<Q", image, 40) == (count,), "a count was lost"

    return check


@BUILT
def test_the_first_image_is_that_of_our_own_writer(built: Builder, cc: str, level: str) -> None:
    from fx_inspect import Inspector

    _, vmo = inspect(built(INSPECT, cc=cc, level=level), "program")
    ours = Inspector()
    ours.root.create_int("hits", 0)
    assert vmo.read(0, 4096) == ours.copy()


@BUILT
@pytest.mark.parametrize("order", ["program", "tso"])
def test_a_sound_inspect_writer_stands_two_threads(
    built: Builder, cc: str, level: str, order: str
) -> None:
    program, vmo = inspect(built(INSPECT, cc=cc, level=level), order)
    report = crashtest(program.entry("inspect_count", vmo, 0, 3), READS)
    assert report.ok, report
    times = 2 if order == "program" else 1
    program, vmo = inspect(built(INSPECT, cc=cc, level=level), order)
    threads = [program.entry("inspect_count", vmo, each, times) for each in (0, 1)]
    report_of_all = explore(threads, READS, preemptions=2, final=hits(2 * times))
    assert report_of_all.ok, report_of_all
    assert report_of_all.complete


@BUILT
def test_a_forgotten_fence_is_found_with_store_buffers_only(
    built: Builder, cc: str, level: str
) -> None:
    path = built(INSPECT, "-DINSPECT_BUG_NO_FENCE", cc=cc, level=level)

    def run(order: str, **options: Any) -> Exploration:
        program, vmo = inspect(path, order)
        threads = [program.entry("inspect_count", vmo, each, 1) for each in (0, 1)]
        return explore(threads, READS, final=hits(2), **options)

    # In program order the lock is sound: a model without store buffers finds nothing.
    assert run("program").ok
    found = run("tso").failure
    assert found is not None
    assert found.frame is not None
    assert found.frame.file == "inspect_writer.c"
    again = run("tso", schedule=found.schedule).failure
    assert again is not None
    assert (str(again.error), again.image) == (str(found.error), found.image)


@BUILT
def test_a_store_outside_of_the_generation_is_found(built: Builder, cc: str, level: str) -> None:
    program, vmo = inspect(built(INSPECT, "-DINSPECT_BUG_NO_ODD", cc=cc, level=level), "program")
    report = crashtest(program.entry("inspect_count", vmo, 0, 3), READS)
    assert report.failure is not None
    assert "the tree changed while the generation count was 2" in str(report)
    assert "inspect_writer.c:" in report.failure.trail[-1]


@BUILT
def test_an_increment_forgotten_at_the_end_is_found(built: Builder, cc: str, level: str) -> None:
    program, vmo = inspect(built(INSPECT, "-DINSPECT_BUG_NO_EVEN", cc=cc, level=level), "program")
    report = crashtest(program.entry("inspect_count", vmo, 0, 1), READS)
    assert report.failure is not None
    assert report.failure.final
    assert "the generation count is 3 when the writer has ended" in str(report)
    assert "inspect_writer.c:" in report.failure.trail[-1]
    program, vmo = inspect(program.path, "program")
    found = explore([program.entry("inspect_count", vmo, 0, 1)], READS).failure
    assert found is not None
    assert found.final
