"""Compiled kernels do what their plain bodies do, on a real capture and on a damaged one."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from fx_trace.read.reader import TraceCapture, open_trace
from fx_trace.sample import sample
from fxframework.io import jit
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest

FILES = Path(__file__).parents[2] / "conformance" / "trace" / "files"


def damaged() -> bytes:
    data = bytearray((FILES / "magic_trace_sample.fxt").read_bytes()[:120_000])
    chance = random.Random(5)
    for _ in range(60):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


INPUTS = {
    "real": (FILES / "magic_trace_sample.fxt").read_bytes(),
    "large": (FILES / "large_blob_4099_words.fxt").read_bytes(),
    "damaged": damaged(),
    "typical": sample(100_000),
}


def opened(data: bytes) -> TraceCapture:
    return open_trace(Source.open(data), OpenRequest())


@pytest.fixture(params=INPUTS)
def data(request: pytest.FixtureRequest) -> bytes:
    return INPUTS[request.param]


def test_compiled_and_plain_agree(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    if not jit.numba_available():
        pytest.skip("numba is not installed for this interpreter")
    plain = opened(data)
    plain.scan()
    monkeypatch.setattr(jit, "SMALL", 0)
    monkeypatch.setattr(jit, "SMALL_COLD", 0)
    compiled = opened(data)
    compiled.scan()
    assert compiled.summary() == plain.summary()
    assert list(compiled.diagnostics) == list(plain.diagnostics)
    for name in plain.schemas:
        left, right = plain.table(name), compiled.table(name)
        for column in left:
            if left.schema.column(column).kind in ("code", "text"):
                assert left.texts(column) == right.texts(column), (name, column)
            else:
                assert np.array_equal(left.array(column), right.array(column)), (name, column)
