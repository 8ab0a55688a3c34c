"""How fast traces are decoded: ratios against yardsticks of the same run. Never a failure on time.

Run with ``tox run -e bench`` or ``pytest -m bench -s``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import fxframework
from fx_trace.sample import BYTES_PER_EVENT, sample

from ..oracle.perfetto import TOOL, web_dist, why_not
from .measures import peak_memory
from .yardstick import MEGABYTES, Say, copied, decode, least

EVENTS = MEGABYTES * 1_000_000 // BYTES_PER_EVENT
TABLES = ("slices", "args")
WASM_OF_NATIVE = 0.5
"""How fast Perfetto's WebAssembly build loads, as a part of how fast its native build does."""


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "big.fxt"
    path.write_bytes(sample(MEGABYTES * 1_000_000))
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "small.fxt"
    path.write_bytes(sample(1_000_000))
    return path


def test_tables_json_and_memory_against_a_copy(big: Path, say: Say) -> None:
    size = big.stat().st_size
    copy = copied(size)
    tables = least(lambda: decode(big, "trace", TABLES), 5)
    with fxframework.open(big) as capture:
        begin = time.perf_counter()
        lines = sum(chunk.count(b"\n") for chunk in capture.records_json())
        spent = time.perf_counter() - begin
    say(f"tables: {tables / copy:.1f} x copy; record JSON: {spent / copy:.0f} x, "
        f"{lines / spent / 1e6:.1f} M records/s")  # fmt: skip
    peaks = {way: peak_memory(str(big), "trace", TABLES, way) for way in ("whole", "batches")}
    for way, peak in peaks.items():
        say(f"memory, {way}: {peak / size:.2f} x the file, {peak / 2**20:.0f} MiB")
    assert all(peaks.values())


def test_tables_against_perfetto(big: Path, say: Say) -> None:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    done = subprocess.run(
        ["node", str(TOOL), "--load-only", str(big)],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "TP_WEB_DIST": str(web_dist())},
    )
    theirs = EVENTS / json.loads(done.stdout)["load_s"]
    ours = EVENTS / least(lambda: decode(big, "trace", TABLES), 5)
    say(
        f"tables: {ours / 1e6:.1f} M events/s, Perfetto (wasm): {theirs / 1e6:.2f} M events/s: "
        f"{ours / theirs:.0f} x, about {ours / theirs * WASM_OF_NATIVE:.0f} x its native build"
    )
    assert ours > 0
    assert theirs > 0


def test_decode(big: Path, benchmark: Any) -> None:
    rows = benchmark.pedantic(decode, args=(big, "trace", TABLES), rounds=5, warmup_rounds=1)
    assert rows == EVENTS + sum(number % 3 for number in range(EVENTS))  # slices and arguments


@pytest.mark.parametrize(
    "command", ["--help", "info SMALL", "info BIG"], ids=["help", "info-1MB", "info-big"]
)
def test_whole_processes(command: str, big: Path, small: Path, benchmark: Any, say: Say) -> None:
    places = {"SMALL": str(small), "BIG": str(big)}
    words = [places.get(word, word) for word in command.split()]
    outputs = []

    def run() -> None:
        done = subprocess.run(
            [sys.executable, "-m", "fxframework.cli", *words], check=True, capture_output=True
        )
        outputs.append(done.stdout)

    bare = least(lambda: subprocess.run([sys.executable, "-c", ""], check=True), 3)
    benchmark.pedantic(run, rounds=5, warmup_rounds=1)
    assert all(outputs)
    if benchmark.stats is not None:  # None with --benchmark-disable
        quickest = benchmark.stats.stats.min
        say(f"fxf {command}: {quickest:.3f} s, {quickest / bare:.1f} x starting Python")
