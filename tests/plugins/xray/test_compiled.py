"""Compiled kernels do what their plain bodies do, on sound traces of every kind and on damaged."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fx_xray.read import columns, reader
from fx_xray.read import records as fx
from fx_xray.sample import sample
from fxframework.io import jit
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest

from .traces import TSC, WHOLE, buffer, call, header, packed


def damaged(data: bytes, *, faults: int = 40) -> bytes:
    chance = random.Random(5)
    out = bytearray(data)
    for _ in range(faults):
        out[chance.randrange(32, len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


def cut() -> bytes:
    """A NewCPUId of which the recorder overwrote the second half."""
    moved = packed(fx.NewCpu(cpu=3, tsc=TSC + 5000))[:8]
    return header() + buffer(call(1), moved, call(1, "exit"), call(2), call(2, "exit"))


def deep(depth: int = 200) -> bytes:
    """Calls deeper than are looked through one by one, some of which nobody leaves."""
    down = [call(id) for id in range(1, depth)]
    up = [call(id, "exit") for id in range(depth, 0, -3)]
    return header() + buffer(*down, *up, call(70_000), call(1 << 27, "tail_exit"))


def threads(count: int = 12) -> bytes:
    """More threads than are looked through one by one."""
    return header() + b"".join(
        buffer(*([call(2), call(2, "exit")] * (thread + 1)), thread=thread, tsc=TSC + 31 * thread)
        for thread in range(count)
    )


INPUTS: dict[str, tuple[str, bytes]] = {
    **WHOLE,
    "typical": ("xray", sample(60_000)),
    "damaged": ("xray", damaged(sample(60_000))),
    "damaged basic": ("xray-basic", damaged(WHOLE["basic3-little"][1], faults=8)),
    "cut": ("xray", cut()),
    "deep": ("xray", deep()),
    "threads": ("xray", threads()),
    "late": ("xray", header(cycle_frequency=3) + buffer(call(1), call(1, "exit"), tsc=1 << 63)),
}
OPEN = {"xray": reader.open_fdr, "xray-basic": reader.open_basic}


@pytest.fixture(params=INPUTS)
def make(request: pytest.FixtureRequest) -> Callable[[], reader.EventCapture]:
    form, data = INPUTS[request.param]
    return lambda: OPEN[form](Source.open(data), OpenRequest())


def listed(events: Any) -> list[Any]:
    return [[column.tolist() for column in chunk] for chunk in events]


def test_compiled_and_plain_agree(
    make: Callable[[], reader.EventCapture], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not jit.numba_available():
        pytest.skip("numba is not installed for this interpreter")
    monkeypatch.setattr(columns, "FED", 7)  # room is made often
    monkeypatch.setattr(columns, "STEP", 16)
    monkeypatch.setattr(columns, "COUNTED", 50)
    plain = make()
    plain.scan()
    monkeypatch.setattr(jit, "SMALL", 0)
    monkeypatch.setattr(jit, "SMALL_COLD", 0)
    compiled = make()
    compiled.scan()
    assert compiled.summary() == plain.summary()
    assert list(compiled.diagnostics) == list(plain.diagnostics)
    assert listed(compiled.events()) == listed(plain.events())
    for name in plain.schemas:
        left, right = plain.table(name), compiled.table(name)
        for column in left:
            if left.schema.column(column).kind == "code":
                assert left.texts(column) == right.texts(column), (name, column)
            else:
                assert np.array_equal(left.array(column), right.array(column)), (name, column)
