"""How fast logs are decoded: ratios against yardsticks of the same run. Never a failure on time.

Run with ``tox run -e bench`` or ``pytest -m bench -s``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import fxframework
from fx_log.sample import sample

from .measures import peak_memory
from .yardstick import MEGABYTES, Say, copied, decode, least

TABLES = ("logs", "args", "log_tags")


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "big.fxlog"
    path.write_bytes(sample(MEGABYTES * 1_000_000))
    return path


def test_tables_against_a_copy(big: Path, say: Say) -> None:
    with fxframework.open(big, format="log") as capture:
        logs = len(capture.table("logs"))
    seconds = least(lambda: decode(big, "log", TABLES), 5)
    ratio = seconds / copied(big.stat().st_size)
    say(f"logs, args, log_tags: {ratio:.1f} x copying, {logs / seconds / 1e6:.1f} M records/s")
    assert logs > 0
    assert ratio > 0


def test_memory_against_the_file(big: Path, say: Say) -> None:
    peaks = {
        way: peak_memory(str(big), "log", TABLES, way) / big.stat().st_size
        for way in ("whole", "batches")
    }
    say(", ".join(f"memory, {way}: {peak:.2f} x the file" for way, peak in peaks.items()))
    assert all(peak > 0 for peak in peaks.values())
