"""How fast Inspect VMOs are decoded: ratios to yardsticks of the same run, no failure on time.

Run with ``tox run -e bench`` or ``pytest -m bench -s``.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxframework
from fx_inspect.sample import sample
from fxframework.cli import bench
from fxframework.host import Host

MEGABYTES = int(os.environ.get("FXF_BENCH_MEGABYTES", "64"))
TABLES = ("nodes", "properties", "inspect_slots", "inspect_links")

Say = Callable[[str], None]


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "big.inspect"
    path.write_bytes(sample(MEGABYTES << 20))
    return path


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Print a line past pytest's capture."""

    def say(line: str) -> None:
        with capsys.disabled():
            print(f"\n  {line}", end="")

    return say


def decode(path: Path, tables: tuple[str, ...] = TABLES) -> int:
    """Make every column of the tables; gives the properties."""
    with fxframework.open(path, format="inspect") as capture:
        for name in tables:
            table = capture.table(name)
            for column in table:
                table[column]
        return len(capture.table("properties"))


def copied(path: Path, rounds: int) -> float:
    """The least seconds of copying the bytes into memory that is there already."""
    data = np.fromfile(path, np.uint8)
    room = np.empty_like(data)
    np.copyto(room, data)
    return least(lambda: np.copyto(room, data), rounds)


def least(run: Callable[[], Any], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        gc.collect()
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def test_tables_against_a_copy(big: Path, say: Say) -> None:
    properties = decode(big)
    seconds = least(lambda: decode(big), 5)
    ratio = seconds / copied(big, 5)
    say(f"all tables: {ratio:.1f} x copying, {properties / seconds / 1e6:.1f} M properties/s")
    assert properties > 0
    assert ratio > 0


def test_nodes_and_properties_against_a_copy(big: Path, say: Say) -> None:
    seconds = least(lambda: decode(big, TABLES[:2]), 5)
    ratio = seconds / copied(big, 5)
    say(f"nodes, properties: {ratio:.1f} x copying")
    assert ratio > 0


def test_memory_against_the_file(big: Path, say: Say) -> None:
    peaks = {
        way: bench.peak_memory(str(big), "inspect", TABLES, way) / big.stat().st_size
        for way in ("whole", "batches")
    }
    say(", ".join(f"memory, {way}: {peak:.2f} x the file" for way, peak in peaks.items()))
    assert all(peak > 0 for peak in peaks.values())


def test_the_command_measures_vmos_too(big: Path) -> None:
    measures = bench.measure(Host(), str(big), format="inspect", runs=1)
    assert all(each.ratio is not None and each.ratio > 0 for each in measures)
