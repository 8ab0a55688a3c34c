"""Fuzz the readers: any bytes give a result or a coded error, in every view of a capture.

The budget is small, so that it always runs; ``FXF_FUZZ_SECONDS=600 pytest tests/fuzz`` goes on for
that long, half of it with hypothesis and half with damaged real captures. Where atheris is
installed, ``python tests/fuzz/fuzz.py`` looks for inputs by coverage: docs/fuzzing.md.
"""

from __future__ import annotations

import gzip
import importlib.util
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ..oracle import xray_logs
from ..plugins.log import streams as logs
from ..plugins.trace.streams import any_bytes, damaged, fxt_streams
from .target import try_format
from .targets import TARGETS, found
from .targets import mutated as mutated_by_records

SECONDS = float(os.environ.get("FXF_FUZZ_SECONDS", "0"))
SMALL = 0.6
"""Seconds for each real capture where none are asked for."""
SHORT = 0.2
"""Seconds of CPU for each target of ``targets.py`` where none are asked for."""
FILES = Path(__file__).parents[1] / "conformance" / "trace" / "files"
XRAY_FILES = FILES.parents[1] / "xray"
REAL_XRAY = {
    "fdr5-single-clang19.xray": "xray",
    "fdr5-tailmigrate-corrupt-clang19.xray": "xray",
    "llvmwriter/v5-allrecords.xray": "xray",
    "basic3-nofreq-emulated-clang16.xray": "xray-basic",
}
REAL = ("magic_trace_sample.fxt", "large_blob_4099_words.fxt")
FUZZ = settings(
    max_examples=10**9 if SECONDS else 12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
)
pytestmark = pytest.mark.timeout(300 + 2 * SECONDS)


class Clock:
    """Ends a property when its time is over; without a budget it never does."""

    def __init__(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds if seconds else None

    @property
    def over(self) -> bool:
        return self.end is not None and time.monotonic() > self.end


CLOCKS: dict[str, Clock] = {}


def tried(name: str, data: bytes, format: str = "trace", **options: object) -> None:
    clock = CLOCKS.setdefault(name, Clock(SECONDS / 6))
    if clock.over:
        pytest.skip("the seconds asked for are over, and nothing was found")
    try_format(data, format, **options)


@FUZZ
@given(st.binary(max_size=600) | any_bytes())
def test_any_bytes(data: bytes) -> None:
    tried("any", data)


@FUZZ
@given(fxt_streams() | damaged(fxt_streams()))
def test_streams_and_damaged_streams(data: bytes) -> None:
    tried("streams", data)


@FUZZ
@given(damaged(fxt_streams().map(lambda data: gzip.compress(data, mtime=0))))
def test_damaged_gzip(data: bytes) -> None:
    tried("gzip", data)


LOGS = {
    "log": logs.log_files(),
    "log-ring": logs.ring_images(),
    "log-legacy": logs.packets(),
    "log-legacy-stream": logs.packet_files(),
}


@pytest.mark.parametrize("format", LOGS)
@FUZZ
@given(data=st.data(), printf=st.booleans())
def test_logs_and_damaged_logs(format: str, data: st.DataObject, printf: bool) -> None:
    files = LOGS[format]
    made = data.draw(files | logs.damaged(files) | st.binary(max_size=200))
    options = {"printf": printf, "fidl_limits": printf} if format in {"log", "log-ring"} else {}
    tried(format, made, format, **options)


@FUZZ
@given(logs.log_files(suffixed=True) | logs.damaged(logs.log_files(suffixed=True)))
def test_logs_with_suffixes(data: bytes) -> None:
    tried("suffix", data, "log", suffix=True)


XRAY = {"xray": xray_logs.fdr_logs(), "xray-basic": xray_logs.basic_logs()}


@pytest.mark.parametrize("format", XRAY)
@FUZZ
@given(data=st.data(), byte_order=st.sampled_from(["", "", "little", "big", "big-lsb"]))
def test_xray_and_damaged_xray(format: str, data: st.DataObject, byte_order: str) -> None:
    files = XRAY[format]
    made = data.draw(files | logs.damaged(files) | st.binary(max_size=200))
    tried(format, made, format, byte_order=byte_order)


@pytest.mark.parametrize("name", REAL_XRAY)
def test_damaged_real_xray(name: str) -> None:
    damage((XRAY_FILES / name).read_bytes()[:3000], name, REAL_XRAY[name])


@pytest.mark.parametrize("name", REAL)
def test_damaged_real_captures(name: str) -> None:
    damage((FILES / name).read_bytes()[:6000], name, "trace")


def damage(seed: bytes, name: str, format: str) -> None:
    """Read what is left of a real capture after bad things, as long as there is time."""
    chance = random.Random(time.time_ns() if SECONDS else name)
    end = time.monotonic() + (SECONDS / 4 or SMALL)
    rounds = 0
    while time.monotonic() < end or rounds < 10:
        data = mutated(seed, chance)
        try:
            try_format(data, format)
        except Exception as error:
            error.add_note(f"input: bytes.fromhex({data.hex()!r})")
            raise
        rounds += 1


def mutated(seed: bytes, chance: random.Random) -> bytes:
    """A piece of the seed to which some bad things happened."""
    data = bytearray(seed[: chance.randrange(16, len(seed))])
    for _ in range(chance.choice((1, 2, 5, 40))):
        place = chance.randrange(len(data))
        how = chance.randrange(4)
        if how == 0:
            data[place] ^= 1 << chance.randrange(8)
        elif how == 1:
            data[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
        elif how == 2:
            data[place : place + 8] = chance.randbytes(8)
        else:
            start = chance.randrange(len(data))
            data[place:place] = data[start : start + 8 * chance.randrange(1, 9)]
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_its_seeds_and_what_becomes_of_them(name: str) -> None:
    target = TARGETS[name]
    chance = random.Random(time.time_ns() if SECONDS else name)
    seeds = target.seeds()
    assert seeds
    end = time.process_time() + (SECONDS / 20 or SHORT)
    tries = 0
    while time.process_time() < end or tries < 10:
        seed = chance.choice(seeds)
        data = mutated_by_records(chance, seed, target) if tries else seed
        try:
            target.run(data)
        except Exception as error:
            error.add_note(f"input: bytes.fromhex({data.hex()!r})")
            raise
        tries += 1


def test_what_failed_once_is_read() -> None:
    for name, target in TARGETS.items():
        for path in found(name):
            target.run(path.read_bytes())


SPLITS = dict.fromkeys(target.split for target in TARGETS.values() if target.split is not None)


@pytest.mark.parametrize("split", SPLITS, ids=lambda split: split.__name__)
def test_records_add_up_to_the_input(split: Callable[[bytes], list[bytes]]) -> None:
    for target in TARGETS.values():
        if target.split is split:
            for seed in target.seeds():
                assert b"".join(split(seed)) == seed


def test_atheris_counts_what_it_ran(tmp_path: Path) -> None:
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed (pip install atheris)")
    script = Path(__file__).with_name("fuzz.py")
    done = subprocess.run(
        [sys.executable, str(script), "--run", "trace-bounds", str(tmp_path), "-runs=200"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Done 200 runs" in done.stderr
