"""Compiled kernels do what their plain bodies do, on sound traces of every kind and on damaged."""

from __future__ import annotations

import random
from typing import Any

import pytest

from fx_xray import format as fx
from fx_xray.sample import sample
from fxframework.testing.kernels import plain_kernels

from .traces import TSC, WHOLE, buffer, call, header, packed


def damaged(data: bytes, *, faults: int = 40, seed: int = 5) -> bytes:
    chance = random.Random(seed)
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


def decoded(form: str, data: bytes) -> dict[str, Any]:
    """All that comes of a trace, as arrays, bytes and numbers."""
    from fx_xray.read import capture as reader
    from fx_xray.read import first_pass, log
    from fxframework.io.source import Source
    from fxframework.model.capture import OpenRequest

    before = log.AT_ONCE, first_pass.COUNTED
    log.AT_ONCE, first_pass.COUNTED = 7 if len(data) < 10_000 else 1000, 50  # room is made often
    try:
        return everything(
            {"xray": reader.FdrCapture, "xray-basic": reader.BasicCapture}[form](
                Source.open(data), OpenRequest()
            )
        )
    finally:
        log.AT_ONCE, first_pass.COUNTED = before


def everything(opened: Any) -> dict[str, Any]:
    with opened as capture:
        capture.scan()
        found: dict[str, Any] = {
            "summary": repr(capture.summary()),
            "diagnostics": [repr(each) for each in capture.diagnostics],
            "events": [[column.tolist() for column in events] for events in capture.log.events(7)],
        }
        for name in capture.schemas:
            table = capture.table(name)
            for column in table.columns:
                code = table.schema.column(column).kind == "code"
                found[f"{name}.{column}"] = (
                    table.texts(column) if code else table.array(column).tolist()
                )
    return found


@pytest.mark.parametrize("name", INPUTS)
def test_compiled_and_plain_agree(name: str) -> None:
    compiled = decoded(*INPUTS[name])
    with plain_kernels():
        plain = decoded(*INPUTS[name])
    for what, expected in plain.items():
        assert compiled[what] == expected, what


@pytest.mark.parametrize("seed", range(6))
def test_compiled_and_plain_agree_on_damaged_traces(seed: int) -> None:
    data = damaged(sample(20_000), faults=5 * seed, seed=seed)
    compiled = decoded("xray", data)
    with plain_kernels():
        assert decoded("xray", data) == compiled
