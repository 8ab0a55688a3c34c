"""Compiled kernels of writing do what their plain bodies do: parts, and traces made of tables."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fx_trace import format as wire
from fx_trace.read.capture import TraceCapture
from fx_trace.sample import sample
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.model.clock import NS_MIN
from fxframework.testing.kernels import plain_kernels

from .streams import damaged as damaged_streams
from .streams import fxt_streams

FILES = Path(__file__).parents[2] / "conformance" / "trace" / "files"
SAMPLE = sample(40_000)
agreeing = settings(
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


def damaged() -> bytes:
    data = bytearray((FILES / "magic_trace_sample.fxt").read_bytes()[:60_000])
    chance = random.Random(7)
    for _ in range(40):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def outcomes(data: bytes) -> list[Any]:
    """What parts, and the tables written, give; imported anew, for one kind of kernels."""
    from fx_trace.read.capture import TraceCapture
    from fx_trace.write.bulk import NAMES, TABLES, Bulk
    from fx_trace.write.extract import OPEN_SLICES, extract
    from fxframework.errors import FxError
    from fxframework.io.sink import Sink
    from fxframework.io.source import Source
    from fxframework.model.capture import OpenRequest
    from fxframework.model.clock import NS_MAX
    from fxframework.model.selection import Selection

    def opened() -> TraceCapture:
        return TraceCapture(Source.open(data), OpenRequest())

    # All, the middle half of the time, and a thread and a category of it.
    capture = opened()
    summary = capture.summary()
    start, stop = summary.start_ns or 0, min(summary.end_ns or 0, NS_MAX)
    quarter = (stop - start) // 4
    middle = {"start_ns": start + quarter, "stop_ns": stop - quarter}
    selections = [Selection(), Selection(**middle)]
    table = capture.table("threads")
    if len(table):
        person = f"{int(table['pid'][0])}/{int(table['tid'][0])}"
        selections += [Selection(threads=(person,)), Selection(**middle, categories=("*a*",))]
    out: list[Any] = []
    for selection in selections:
        for how in OPEN_SLICES:
            sink = Sink.memory()
            try:
                left_out = extract(opened(), selection, sink, {"open_slices": how})
            except FxError as error:
                out.append(error.code)
            else:
                out += [dict(left_out), sink.getvalue()]
    for as_instants in (False, True):
        with opened() as capture:
            tables = {name: capture.table(name) for name in (*TABLES, *NAMES, "args", "blobs")}
            try:
                bulk = Bulk(
                    tables,
                    capture.strings,
                    source=capture.source.data,
                    logs_as_instants=as_instants,
                )
                out += [b"".join(bytes(block) for block in bulk.blocks()), dict(bulk.dropped)]
            except FxError as error:
                out.append(error.code)
    return out


def check(data: bytes) -> None:
    compiled = outcomes(data)
    with plain_kernels():
        assert outcomes(data) == compiled


@pytest.mark.parametrize(
    "data",
    [
        (FILES / "magic_trace_sample.fxt").read_bytes()[:100_000],
        (FILES / "large_blob_4099_words.fxt").read_bytes(),
        damaged(),
        SAMPLE,
    ],
    ids=["real", "large", "damaged", "typical"],
)
def test_compiled_and_plain_agree(data: bytes) -> None:
    check(data)


@agreeing
@given(fxt_streams() | damaged_streams(fxt_streams()), st.sampled_from([1, 1, 30]))
def test_they_agree_on_generated_streams(data: bytes, times: int) -> None:
    """Repeated, a stream gives slots anew, opens slices again, and has blocks of many records."""
    check(data * times)


@agreeing
@given(st.lists(fxt_streams(max_records=30), min_size=2, max_size=6))
def test_they_agree_on_several_streams_in_one(streams: list[bytes]) -> None:
    check(b"".join(streams) * 2)


def test_times_at_the_very_beginning() -> None:
    """They are written 2^63 ns later, which is no int64; nor is a bound before all times."""
    rate, base = 1000, (1 << 64) - 1
    words = [
        wire.MAGIC_WORD, 1 | 4 << 4, rate, base, 0,
        3 | 3 << 4 | 1 << 16, 1, 2,
        4 | 2 << 4 | 1 << 24, 0, 4 | 2 << 4 | 1 << 24, 5,
    ]  # fmt: skip
    data = b"".join(word.to_bytes(8, "little") for word in words)
    with TraceCapture(Source.open(data), OpenRequest()) as capture:
        assert capture.table("instants")["ts"].tolist() == [NS_MIN, NS_MIN]
    check(data)
