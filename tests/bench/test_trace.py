"""How fast traces are decoded: ratios against yardsticks of the same run. Never a failure on time.

Run with ``tox run -e bench`` or ``pytest -m bench -s``; ``fxf bench`` prints the ratios to copying.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fx_trace.sample import BYTES_PER_EVENT, sample
from fxframework.cli import measures as bench
from fxframework.host import Host

from ..oracle.perfetto import TOOL, web_dist, why_not
from .yardstick import MEGABYTES, Say, decode, least

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
    measures = bench.measure(Host(), str(big), format="trace", runs=5)
    for each in measures:
        say(f"{each.name}: {each.ratio:.2f} x {each.against} ({each.rate})")
    names = [each.name for each in measures]
    assert names == [
        "copy", "tables slices, args", "record JSON", "memory, whole", "memory, batches",
    ]  # fmt: skip
    assert all(each.ratio is not None and each.ratio > 0 for each in measures)


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
