"""What llvm-xray makes of a log: calls that follow one another are taken at once, or one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest

import fxframework as fxf
from fx_xray.references import llvm_xray

from .traces import ORDERS, buffer, call, event, header, preamble


def log(version: int, order: str) -> bytes:
    """A log of two buffers with many calls, and an event between them."""
    calls = [call(number % 9 + 1, ("enter", "exit")[number % 2]) for number in range(60)]
    body = [*calls, event(b"between", version), *calls, *calls]
    made = header(version, byte_order=order, buffer_size=2048)
    for thread in (7, 8):
        made += buffer(*body, version=version, byte_order=order, page=2048, thread=thread)
    return made


def predicted(data: bytes) -> tuple[int, Any]:
    found = fxf.predict(data, "llvm-xray", format="xray")
    return found.records, [loss.to_json() for loss in found.losses]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("version", [1, 2, 3, 5])
def test_calls_at_once_are_those_one_by_one(
    version: int, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = log(version, order)
    rng = random.Random(version)
    for damages in (0, 1, 1, 1, 2, 3, 5, 8):
        data = bytearray(whole)
        for _ in range(damages):
            data[rng.randrange(32, len(data))] ^= 1 << rng.randrange(8)
        at_once = predicted(bytes(data))
        with monkeypatch.context() as patch:
            patch.setattr(llvm_xray, "FEW", len(data))
            assert predicted(bytes(data)) == at_once


def test_every_record_counts() -> None:
    records, losses = predicted(log(5, "little"))
    assert records == 2 * (len(["extents"]) + len(preamble()) + 3 * 60 + 1)
    assert {loss["key"] for loss in losses} == {"event", "order"}
