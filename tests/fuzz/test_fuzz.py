"""Fuzz targets: any bytes give a result or a coded error, in every view of a capture.

``FXF_FUZZ_SECONDS=600 pytest tests/fuzz`` goes on for longer; ``python tests/fuzz/fuzz_trace.py``
lets atheris, where it is installed, look for inputs by coverage.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .target import try_trace

SECONDS = float(os.environ.get("FXF_FUZZ_SECONDS", "3"))
REAL = Path(__file__).parents[1] / "conformance" / "trace" / "files"


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=600))
def test_any_bytes(data: bytes) -> None:
    try_trace(data)


@pytest.mark.parametrize("name", ["magic_trace_sample.fxt", "large_blob_4099_words.fxt"])
def test_mutations_of_real_captures(name: str) -> None:
    seed = (REAL / name).read_bytes()[:6000]
    chance = random.Random(name)
    end = time.monotonic() + SECONDS
    rounds = 0
    while time.monotonic() < end or rounds < 10:
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
        try_trace(bytes(data))
        rounds += 1
    assert rounds
