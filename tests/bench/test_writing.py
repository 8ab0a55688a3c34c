"""How fast traces are written and cut: ratios against yardsticks of the same run. Never a failure.

Run with ``tox run -e bench`` or ``pytest -m bench -s``. The goals are those of the writing side:
bulk at most 8 x copying the result, a tenth cut out at most 12 x copying the file, 0.3 M records
a second one at a time, 0.2 M slices a second as ``with`` blocks.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_trace.sample import BYTES_PER_EVENT, sample
from fx_trace.write.archive import Archive
from fx_trace.write.bulk import NAMES, TABLES, Bulk
from fx_trace.write.extract import extract
from fx_trace.write.merge import open_merge
from fxframework.io.sink import Sink
from fxframework.model.selection import Selection

from .yardstick import MEGABYTES, Say, copied, least

EVENTS = MEGABYTES * 1_000_000 // BYTES_PER_EVENT
ONE_BY_ONE = 200_000
"""Records that are written one at a time."""


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "big.fxt"
    path.write_bytes(sample(MEGABYTES * 1_000_000))
    return path


# --- Bulk ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["slices", "slices and args"])
def test_bulk_against_copying_the_result(what: str, big: Path, say: Say) -> None:
    with fxf.open(big) as capture:
        names = [*TABLES, *NAMES, *(["args"] if "args" in what else [])]
        tables = {name: capture.table(name) for name in names}
        pool = capture.strings
        for table in tables.values():
            for column in table.columns:
                table[column]  # made before the time is taken

        def write() -> int:
            return sum(memoryview(block).nbytes for block in Bulk(tables, pool).blocks())

        size = write()
        seconds = least(write, 5)
    ratio = seconds / copied(size)
    say(
        f"bulk, {EVENTS / 1e6:.0f} M {what}: {ratio:.1f} x copying the result "
        f"({EVENTS / seconds / 1e6:.0f} M events/s, {size / seconds / 1e9:.2f} GB/s; goal 8)"
    )
    assert ratio > 0


# --- One record at a time ------------------------------------------------------------------------


def packing_alone() -> None:
    """The yardstick: as many records of three words, packed by struct and gathered."""
    pack = struct.Struct("<3Q").pack
    out = bytearray()
    for number in range(ONE_BY_ONE):
        out += pack(0x0001_0002_0100_0034, number, number)


@contextlib.contextmanager
def writer() -> Iterator[Any]:
    with Archive(Sink.nowhere()) as archive:
        yield archive.provider(1, "bench", ticks_per_second=1_000_000_000)


def instants() -> None:
    with writer() as out:
        for number in range(ONE_BY_ONE):
            out.instant("category", "name", thread=(1, 2), timestamp=number)


def instants_with_arguments() -> None:
    with writer() as out:
        for number in range(ONE_BY_ONE):
            out.instant(
                "category", "name", {"number": number, "text": "value"}, thread=(1, 2),
                timestamp=number,
            )  # fmt: skip


def slices() -> None:
    with Archive(Sink.nowhere()) as archive:
        out = archive.provider(1, "bench")
        for _ in range(ONE_BY_ONE):
            with out.slice("category", "name"):
                pass


@pytest.mark.parametrize(
    ("run", "what", "goal"),
    [
        (instants, "instants without arguments", 0.3),
        (instants_with_arguments, "instants with 2 arguments", 0.3),
        (slices, "`with slice`", 0.2),
    ],
    ids=["0-arguments", "2-arguments", "with-slice"],
)
def test_one_at_a_time_against_struct(
    run: Callable[[], None], what: str, goal: float, say: Say
) -> None:
    bare, seconds = least(packing_alone), least(run)
    rate = ONE_BY_ONE / seconds / 1e6
    say(
        f"{what}: {rate:.2f} M/s (goal {goal}), "
        f"{seconds / bare:.1f} x packing 3 words with struct ({ONE_BY_ONE / bare / 1e6:.1f} M/s)"
    )
    assert rate > 0


# --- Parts and several ---------------------------------------------------------------------------


def tenth(path: Path) -> Selection:
    """The sixth tenth of the time."""
    with fxf.open(path) as capture:
        summary = capture.summary()
        start, stop = summary.start_ns or 0, summary.end_ns or 0
    width = (stop - start) // 10
    return Selection(start_ns=start + 5 * width, stop_ns=start + 6 * width)


@pytest.mark.parametrize("how", ["keep", "close", "drop"])
def test_cutting_a_tenth_against_copying_the_file(how: str, big: Path, say: Say) -> None:
    selection = tenth(big)

    def run() -> None:
        with fxf.open(big) as capture:
            extract(capture, selection, Sink.nowhere(), {"open_slices": how})

    size = big.stat().st_size
    seconds = least(run, 5)
    ratio = seconds / copied(size)
    say(
        f"cutting a tenth out of {size / 1e6:.0f} MB ({how}): {ratio:.1f} x copying the file "
        f"({seconds:.2f} s; goal 12)"
    )
    assert ratio > 0


def test_cutting_a_thread_against_copying_the_file(big: Path, say: Say) -> None:
    selection = Selection(threads=("2003",))

    def run() -> None:
        with fxf.open(big) as capture:
            extract(capture, selection, Sink.nowhere(), {})

    size = big.stat().st_size
    ratio = least(run, 5) / copied(size)
    say(f"cutting a thread out of {size / 1e6:.0f} MB: {ratio:.1f} x copying the file")
    assert ratio > 0


def test_merging_two_files_against_copying_them(big: Path, say: Say) -> None:
    def run() -> None:
        session = open_merge(Sink.nowhere(), {})
        for _ in range(2):
            with fxf.open(big) as capture:
                session.write(capture)
        session.close()

    size = 2 * big.stat().st_size
    seconds = least(run)
    ratio = seconds / copied(size)
    say(
        f"merging two files of {size / 2e6:.0f} MB: {ratio:.1f} x copying both "
        f"({size / seconds / 1e9:.2f} GB/s)"
    )
    assert ratio > 0
