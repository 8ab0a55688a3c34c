"""Compiled kernels do what their plain bodies do, on a real capture and on damaged ones."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from fx_trace.sample import sample
from fxframework.testing.kernels import plain_kernels

from ...bench.shapes.trace import shapes
from ...cases import cases

FILES = Path(__file__).parents[2] / "conformance" / "trace" / "files"


def damaged(seed: int, bits: int) -> bytes:
    data = bytearray((FILES / "magic_trace_sample.fxt").read_bytes()[:60_000])
    chance = random.Random(seed)
    for _ in range(bits):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


INPUTS = {
    "real": (FILES / "magic_trace_sample.fxt").read_bytes()[:120_000],
    "large": (FILES / "large_blob_4099_words.fxt").read_bytes(),
    "damaged": damaged(5, 60),
    "damaged everywhere": damaged(6, 4000),
    "shuffled": b"".join(
        word.to_bytes(8, "little")
        for at in random.Random(1).sample(range(500), 500)
        for word in (4 | 3 << 4 | 4 << 16 | 1 << 24, at // 2 * 10, at // 2 * 10 + at % 7 * 5)
    ),
    "never closed": b"".join(
        word.to_bytes(8, "little")
        for at in range(2000)
        for word in (4 | 2 << 4 | (2 if at % 5 else 3) << 16 | (1 + at % 3) << 24, at)
    ),
    "typical": sample(40_000),
}


def decoded(data: bytes, *, whole: bool) -> dict[str, Any]:
    """Everything that a capture says, as plain values; imported anew, for one kind of kernels."""
    from fx_trace.read.capture import TraceCapture
    from fxframework.io.source import Source
    from fxframework.model.capture import OpenRequest

    with TraceCapture(Source.open(data), OpenRequest()) as capture:
        out: dict[str, Any] = {}
        for name in capture.schemas:
            tables = [capture.table(name)] if whole else list(capture.batches(name, 1000))
            for table in tables:
                for column in table.columns:
                    kind = table.schema.column(column).kind
                    values = (
                        table.texts(column)
                        if kind in {"code", "text"}
                        else table[column].view("u8").tolist()
                        if kind == "f8"
                        else table[column].tolist()
                    )
                    out.setdefault(f"{name}.{column}", []).extend(values)
        summary = capture.summary()
        out["summary"] = [summary.records, summary.kinds, summary.rows, summary.facts]
        out["range"] = [summary.start_ns, summary.end_ns]
        out["findings"] = [
            (found.code, found.offset, found.record, found.message) for found in capture.diagnostics
        ]
        return out


@cases("name", shapes())
def test_they_agree_on_awkward_shapes(name: str) -> None:
    data = shapes()[name](8000)
    compiled = decoded(data, whole=True)
    assert compiled["summary"][0] > 100 or name == "all zero"
    with plain_kernels():
        assert decoded(data, whole=True) == compiled


@cases("whole", [True, False], ids=["whole", "batches"])
@cases("name", INPUTS)
def test_compiled_and_plain_agree(name: str, whole: bool) -> None:
    compiled = decoded(INPUTS[name], whole=whole)
    with plain_kernels():
        plain = decoded(INPUTS[name], whole=whole)
    assert compiled == plain
