"""How fast Inspect VMOs are decoded: ratios to yardsticks of the same run, no failure on time.

Run with ``tox run -e bench`` or ``pytest -m bench -s``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import fxframework
from fx_inspect.sample import sample

from .measures import peak_memory
from .shapes import inspect as shapes
from .yardstick import Say, copied, decode, least

MEGABYTES = int(os.environ.get("FXF_BENCH_MEGABYTES", "64"))
TABLES = ("nodes", "properties", "inspect_slots", "inspect_links")


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "big.inspect"
    path.write_bytes(sample(MEGABYTES << 20))
    return path


def test_tables_against_a_copy(big: Path, say: Say) -> None:
    with fxframework.open(big, format="inspect") as capture:
        properties = len(capture.table("properties"))
    seconds = least(lambda: decode(big, "inspect", TABLES), 5)
    ratio = seconds / copied(big.stat().st_size)
    say(f"all tables: {ratio:.1f} x copying, {properties / seconds / 1e6:.1f} M properties/s")
    assert properties > 0
    assert ratio > 0


def test_nodes_and_properties_against_a_copy(big: Path, say: Say) -> None:
    seconds = least(lambda: decode(big, "inspect", TABLES[:2]), 5)
    ratio = seconds / copied(big.stat().st_size)
    say(f"nodes, properties: {ratio:.1f} x copying")
    assert ratio > 0


def test_memory_against_the_file(big: Path, say: Say) -> None:
    peaks = {
        way: peak_memory(str(big), "inspect", TABLES, way) / big.stat().st_size
        for way in ("whole", "batches")
    }
    say(", ".join(f"memory, {way}: {peak:.2f} x the file" for way, peak in peaks.items()))
    assert all(peak > 0 for peak in peaks.values())


@pytest.mark.parametrize("shape", shapes.SHAPES)
def test_any_shape_against_a_copy(shape: str, tmp_path: Path, say: Say) -> None:
    path = tmp_path / "shape.inspect"
    path.write_bytes(shapes.SHAPES[shape](MEGABYTES << 20))
    seconds = least(lambda: decode(path, "inspect", TABLES), 3)
    peak = peak_memory(str(path), "inspect", TABLES, "batches") / path.stat().st_size
    ratio = seconds / copied(path.stat().st_size)
    say(f"{shape}: {ratio:.1f} x copying, memory in batches {peak:.2f} x the file")
    assert ratio > 0
