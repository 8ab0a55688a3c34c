"""Fuzz the readers: any bytes give a result or a coded error, in every view of a capture.

``tox run -e explore -- tests/fuzz`` tries random bytes for an hour. Where atheris is installed,
``python tests/fuzz/fuzz.py`` looks for inputs by coverage: docs/fuzzing.md.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import importlib.util
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ..oracle import xray_logs
from ..plugins.log import streams as logs
from ..plugins.trace.streams import any_bytes, damaged, fxt_streams
from ..properties import share
from .target import try_format
from .targets import TARGETS, found
from .targets import mutated as mutated_by_records

FILES = Path(__file__).parents[1] / "conformance" / "trace" / "files"
XRAY_FILES = FILES.parents[1] / "xray"
REAL_XRAY = {
    "fdr5-single-clang19.xray": "xray",
    "fdr5-tailmigrate-corrupt-clang19.xray": "xray",
    "llvmwriter/v5-allrecords.xray": "xray",
    "basic3-nofreq-emulated-clang16.xray": "xray-basic",
}
REAL = ("magic_trace_sample.fxt", "large_blob_4099_words.fxt")
seeds = st.integers(0, (1 << 64) - 1)


@contextlib.contextmanager
def input_told(data: bytes) -> Iterator[None]:
    """Add the input to an error, because the seed that made it says little."""
    try:
        yield
    except Exception as error:
        error.add_note(f"input: bytes.fromhex({data.hex()!r})")
        raise


@share(1 / 4)
@given(st.binary(max_size=600) | any_bytes())
def test_any_bytes(data: bytes) -> None:
    try_format(data, "trace")


@share(1 / 4)
@given(fxt_streams() | damaged(fxt_streams()))
def test_streams_and_damaged_streams(data: bytes) -> None:
    try_format(data, "trace")


@share(1 / 4)
@given(damaged(fxt_streams().map(lambda data: gzip.compress(data, mtime=0))))
def test_damaged_gzip(data: bytes) -> None:
    try_format(data, "trace")


LOGS = {
    "log": logs.log_files(),
    "log-ring": logs.ring_images(),
    "log-legacy": logs.packets(),
    "log-legacy-stream": logs.packet_files(),
}


@pytest.mark.parametrize("format", LOGS)
@share(1 / 4)
@given(data=st.data(), printf=st.booleans())
def test_logs_and_damaged_logs(format: str, data: st.DataObject, printf: bool) -> None:
    files = LOGS[format]
    made = data.draw(files | logs.damaged(files) | st.binary(max_size=200))
    options = {"printf": printf, "fidl_limits": printf} if format in {"log", "log-ring"} else {}
    try_format(made, format, **options)


@share(1 / 4)
@given(logs.log_files(suffixed=True) | logs.damaged(logs.log_files(suffixed=True)))
def test_logs_with_suffixes(data: bytes) -> None:
    try_format(data, "log", suffix=True)


XRAY = {"xray": xray_logs.fdr_logs(), "xray-basic": xray_logs.basic_logs()}


@pytest.mark.parametrize("format", XRAY)
@share(1 / 4)
@given(data=st.data(), byte_order=st.sampled_from(["", "", "little", "big", "big-lsb"]))
def test_xray_and_damaged_xray(format: str, data: st.DataObject, byte_order: str) -> None:
    files = XRAY[format]
    made = data.draw(files | logs.damaged(files) | st.binary(max_size=200))
    try_format(made, format, byte_order=byte_order)


@pytest.mark.parametrize("name", REAL_XRAY)
@share(1 / 4)
@given(seed=seeds)
def test_damaged_real_xray(name: str, seed: int) -> None:
    damaged_capture = mutated((XRAY_FILES / name).read_bytes()[:3000], random.Random(seed))
    with input_told(damaged_capture):
        try_format(damaged_capture, REAL_XRAY[name])


@pytest.mark.parametrize("name", REAL)
@share(1 / 4)
@given(seed=seeds)
@example(seed=66207)  # the clock of one of them begins beyond 63 bits of nanoseconds since 1970
def test_damaged_real_captures(name: str, seed: int) -> None:
    damaged_capture = mutated((FILES / name).read_bytes()[:4000], random.Random(seed))
    with input_told(damaged_capture):
        try_format(damaged_capture, "trace")


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


@functools.cache
def seeds_of(name: str) -> list[bytes]:
    return list(TARGETS[name].seeds())


@pytest.mark.parametrize("name", TARGETS)
@share(1 / 4)
@given(seed=seeds, as_it_is=st.sampled_from([True, *[False] * 9]))
def test_a_target_takes_its_seeds_and_what_becomes_of_them(
    name: str, seed: int, *, as_it_is: bool
) -> None:
    target = TARGETS[name]
    chance = random.Random(seed)
    data = chance.choice(seeds_of(name))
    if not as_it_is:
        data = mutated_by_records(chance, data, target)
    with input_told(data):
        target.run(data)


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
