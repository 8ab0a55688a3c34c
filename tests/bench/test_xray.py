"""How fast XRay traces are decoded: ratios to yardsticks of the same run, never a failure on time.

Where there is an llvm-xray, its ``fdr-dump`` is the yardstick, else copying. Run with
``tox run -e bench`` or ``pytest -m bench -s``.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import fxframework
from fx_xray.sample import sample

from .measures import peak_memory
from .yardstick import MEGABYTES, Say, copied, decode, least

TABLES = ("slices", "instants", "args")
TOOLS = ("llvm-xray", *(f"llvm-xray-{version}" for version in range(22, 13, -1)))


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "big.xray"
    path.write_bytes(sample(MEGABYTES * 1_000_000))
    return path


def test_tables_against_llvm_xray(big: Path, say: Say) -> None:
    with fxframework.open(big, format="xray") as capture:
        records = capture.summary().records
    seconds = least(lambda: decode(big, "xray", TABLES), 5)
    ratio = seconds / copied(big.stat().st_size)
    rate = records / seconds / 1e6
    say(f"slices, instants, args: {ratio:.1f} x copying, {rate:.1f} M records/s")
    tool = next(filter(None, map(shutil.which, TOOLS)), None)
    if tool is not None:
        dump = least(lambda: dumped(tool, big), 2)
        say(f"{Path(tool).name} fdr-dump takes {dump / seconds:.1f} times as long")
        assert dump > 0
    assert ratio > 0


def dumped(tool: str, path: Path) -> None:
    with path.with_suffix(".txt").open("wb") as out:
        subprocess.run([tool, "fdr-dump", str(path)], stdout=out, check=True)


def test_memory_against_the_file(big: Path, say: Say) -> None:
    peaks = {
        way: peak_memory(str(big), "xray", TABLES, way) / big.stat().st_size
        for way in ("whole", "batches")
    }
    say(", ".join(f"memory, {way}: {peak:.2f} x the file" for way, peak in peaks.items()))
    assert all(peak > 0 for peak in peaks.values())
