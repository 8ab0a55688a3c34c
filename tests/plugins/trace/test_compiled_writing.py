"""Compiled kernels of writing do what their plain bodies do: parts, and traces made of tables."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fx_trace import layout
from fx_trace.read.columns import new_map
from fx_trace.read.reader import TraceCapture, open_trace
from fx_trace.sample import sample
from fx_trace.write import selection as marking
from fx_trace.write.bulk import NAMES, TABLES, Bulk
from fx_trace.write.extract import OPEN_SLICES, cut
from fxframework.errors import FxError
from fxframework.io import jit
from fxframework.io.jit import Kernel
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.model.clock import NS_MAX, NS_MIN
from fxframework.model.selection import Selection

from .streams import damaged as damaged_streams
from .streams import fxt_streams

FILES = Path(__file__).parents[2] / "conformance" / "trace" / "files"
SAMPLE = sample(100_000)
DIRECT = {
    "choose_slices", "choose_events", "follow_flows", "needed", "copy_records", "count_uses",
    "in_order", "unfold", "pack",
}  # fmt: skip
"""Those that Python calls; the others are helpers of theirs."""
agreeing = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


def damaged() -> bytes:
    data = bytearray((FILES / "magic_trace_sample.fxt").read_bytes()[:60_000])
    chance = random.Random(7)
    for _ in range(40):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


@pytest.fixture(scope="module", autouse=True)
def needs_numba() -> None:
    if not jit.numba_available():
        pytest.skip("numba is not installed for this interpreter")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The kernels of writing that ran compiled."""
    names: set[str] = set()
    whole = Kernel.compiled

    def compiled(self: Kernel) -> Any:
        names.add(self.body.__name__)
        return whole(self)

    monkeypatch.setattr(Kernel, "compiled", compiled)
    return names


def opened(data: bytes) -> TraceCapture:
    return open_trace(Source.open(data), OpenRequest())


def selections(data: bytes) -> list[Selection]:
    """All, the middle half of the time, and a thread and a category of it."""
    capture = opened(data)
    summary = capture.summary()
    start, stop = summary.start_ns or 0, min(summary.end_ns or 0, NS_MAX)
    quarter = (stop - start) // 4
    middle = {"start_ns": start + quarter, "stop_ns": stop - quarter}
    out = [Selection(), Selection(**middle)]
    table = capture.table("threads")
    if len(table):
        person = f"{int(table['pid'][0])}/{int(table['tid'][0])}"
        out += [Selection(threads=(person,)), Selection(**middle, categories=("*a*",))]
    return out


def outcomes(data: bytes) -> list[Any]:
    """What cuts, and the tables written, give."""
    out: list[Any] = []
    for selection in selections(data):
        for how in OPEN_SLICES:
            sink = Sink.memory()
            try:
                left_out = cut(opened(data), selection, sink, {"open_slices": how})
            except FxError as error:
                out.append(error.code)
            else:
                out += [left_out, sink.getvalue()]
    for as_instants in (False, True):
        with opened(data) as capture:
            tables = {name: capture.table(name) for name in (*TABLES, *NAMES, "args", "blobs")}
            try:
                bulk = Bulk(
                    tables,
                    capture.strings,
                    source=capture.source.data,
                    logs_as_instants=as_instants,
                )
                out += [b"".join(bytes(block) for block in bulk.blocks()), bulk.dropped]
            except FxError as error:
                out.append(error.code)
    return out


def check(data: bytes) -> None:
    plain = outcomes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit, "SMALL", 0)
        patch.setattr(jit, "SMALL_COLD", 0)
        assert outcomes(data) == plain


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


def test_every_kernel_runs_compiled(ran: set[str]) -> None:
    # Slices by begins and ends, a flow, arguments: each kernel has something to do.
    check((FILES / "magic_trace_sample.fxt").read_bytes()[:8000])
    check(SAMPLE[:8000])
    assert ran >= DIRECT


@agreeing
@given(fxt_streams() | damaged_streams(fxt_streams()), st.sampled_from([1, 1, 30]))
def test_they_agree_on_generated_streams(data: bytes, times: int) -> None:
    """Repeated, a stream gives slots anew, opens slices again, and has blocks of many records."""
    check(data * times)


@agreeing
@given(st.lists(fxt_streams(max_records=30), min_size=2, max_size=6))
def test_they_agree_on_several_streams_in_one(streams: list[bytes]) -> None:
    check(b"".join(streams) * 4)


@agreeing
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=40))
def test_they_agree_on_flows(points: list[tuple[int, int, int]]) -> None:
    """``follow_flows`` by itself: ids come back after they ended."""
    times, ids, phases = (np.array([point[at] for point in points], np.int64) for at in range(3))
    order = np.argsort(times, kind="stable")
    found = []
    for run in (marking.follow_flows.plain, marking.follow_flows.compiled()):
        flow, first = np.full(ids.size, -5), np.full(ids.size, -5)
        count = run(order, ids, phases, new_map(int(ids.size)), flow, first)
        found.append((count, flow.tolist(), first[:count].tolist()))
    assert found[0] == found[1]


def test_times_at_the_very_beginning() -> None:
    """They are written 2^63 ns later, which is no int64; nor is a bound before all times."""
    rate, base = 1000, (1 << 64) - 1
    words = [
        layout.MAGIC_WORD, 1 | 4 << 4, rate, base, 0,
        3 | 3 << 4 | 1 << 16, 1, 2,
        4 | 2 << 4 | 1 << 24, 0, 4 | 2 << 4 | 1 << 24, 5,
    ]  # fmt: skip
    data = b"".join(word.to_bytes(8, "little") for word in words)
    with opened(data) as capture:
        assert capture.table("instants")["ts"].tolist() == [NS_MIN, NS_MIN]
    check(data)
