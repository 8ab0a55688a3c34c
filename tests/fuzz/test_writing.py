"""Fuzz what writes parts of traces and traces of tables: any bytes give a trace or a coded error.

``tox run -e explore -- tests/fuzz`` goes on for an hour. The kernels run as plain Python, which an
index out of bounds stops.
"""

from __future__ import annotations

import contextlib
import functools
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_trace.read.capture import TraceCapture
from fx_trace.read.image import BufferCapture
from fx_trace.write.bulk import NAMES, TABLES, Bulk
from fx_trace.write.extract import extract
from fx_trace.write.merge import open_merge
from fx_trace.write.selected import CLOSE, DROP, KEEP
from fxframework.errors import FxError
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import Capture, OpenRequest
from fxframework.model.selection import Selection

from ..plugins.trace.streams import any_bytes, damaged, fxt_streams
from ..properties import share
from .target import LIMITS
from .test_fuzz import input_told, mutated, seeds

FILES = Path(__file__).parents[1] / "conformance" / "trace" / "files"
REAL = ("magic_trace_sample.fxt", "large_blob_4099_words.fxt")
HUGE = 1 << 62


def try_writing(data: bytes, chance: random.Random) -> None:
    """Write parts and tables of a trace. Anything but a result or an FxError is a bug."""
    for make in (TraceCapture, BufferCapture):
        source = Source.open(data, limits=LIMITS)
        opened = functools.partial(make, source, OpenRequest(limits=LIMITS))
        if make is TraceCapture:
            some = selections(opened(), chance)
            for selection in some:
                for how in (KEEP, CLOSE, DROP):
                    try_cut(opened(), selection, how)
            try_tables(opened(), logs_as_instants=chance.random() < 0.5)
            captures: list[Capture] = [opened(), opened()]
            with contextlib.suppress(FxError):  # names that nothing has
                captures.insert(1, opened().select(chance.choice(some)))
            try_merge(captures, chance)
        else:
            try_merge([opened(), opened().select(Selection(stop_ns=HUGE))], chance)


def selections(capture: TraceCapture, chance: random.Random) -> list[Selection]:
    """Everything, a stretch of time, threads, processes, categories, and some of them at once."""
    times = [-HUGE, 0, HUGE]
    categories = ["*", "?*"]
    for name in ("slices", "instants", "counters", "flows"):
        table = capture.table(name)
        times += table.array("ts").tolist()[:50]
        categories += [text for text in table.texts("category")[:20] if text]
    for name in ("sched", "logs"):
        times += capture.table(name).array("ts").tolist()[:20]
    table = capture.table("threads")
    tasks = [f"{p}/{t}" for p, t in zip(table["pid"].tolist(), table["tid"].tolist(), strict=True)]
    start, stop = sorted(chance.choice(times) + chance.choice((-1, 0, 0, 1)) for _ in range(2))
    stretch = Selection(start_ns=start, stop_ns=stop)
    out = [Selection(), stretch, Selection(start_ns=stop), Selection(stop_ns=start)]
    out.append(Selection(categories=(chance.choice(categories),)))
    if tasks:
        person = chance.choice(tasks)
        out += [
            Selection(threads=(person,)),
            Selection(processes=(person.partition("/")[0],)),
            Selection(start_ns=start, threads=(person,), categories=(chance.choice(categories),)),
        ]
    return out


def part(capture: TraceCapture, selection: Selection, how: str) -> bytes:
    sink = Sink.memory()
    extract(capture, selection, sink, {"open_slices": how})
    return sink.getvalue()


def try_cut(capture: TraceCapture, selection: Selection, how: str) -> None:
    """Cut a part; all of it is itself, and so is the same stretch of it."""
    try:
        once = part(capture, selection, how)
    except FxError:
        return
    size = capture.source.size
    assert len(once) <= size + 8
    again = TraceCapture(Source.open(once), OpenRequest(limits=LIMITS))
    whole = part(again, Selection(), "keep")
    # Strings of large records of other categories are kept, and are not needed any more.
    assert whole == once or (selection.categories and len(whole) < len(once))
    # Bounds fall between ticks; and a thread that is wanted has its name kept, but may have
    # nothing else that would make it known the second time.
    if how != "close" and selection.by_time_alone:
        assert part(again, selection, how) == once, (selection, how)


def try_tables(capture: Capture, *, logs_as_instants: bool) -> None:
    """Write the tables; what is written is sound."""
    tables = {name: capture.table(name) for name in (*TABLES, *NAMES, "args", "blobs")}
    sink = Sink.memory()
    session = open_merge(sink, {"logs_as_instants": logs_as_instants})
    try:
        session._write_tables(capture)
    except FxError:
        return
    session.close()
    sound(sink.getvalue())
    bulk = Bulk(tables, capture.strings, logs_as_instants=logs_as_instants)
    assert sum(len(block) for block in bulk.blocks()) > 0


def try_merge(captures: list[Capture], chance: random.Random) -> None:
    """Write several captures into one archive."""
    sink = Sink.memory()
    session = open_merge(sink, {"logs_as_instants": chance.random() < 0.5})
    for capture in captures:
        try:
            session.write(capture)
        except FxError:
            continue
    session.close()
    sound(sink.getvalue(), damaged=False)


def sound(data: bytes, *, damaged: bool = True) -> None:
    """Read it: no padding, no damage."""
    capture = TraceCapture(Source.open(data), OpenRequest())
    kinds = {record.record for record in capture.records()}
    assert not damaged or not kinds & {"damaged", "padding"}


@share(1 / 2)
@given(st.binary(max_size=400) | any_bytes(), st.integers(0, 9))
def test_any_bytes(data: bytes, seed: int) -> None:
    try_writing(data, random.Random(seed))


@share(1 / 2)
@given(fxt_streams() | damaged(fxt_streams()), st.integers(0, 99))
def test_streams_and_damaged_streams(data: bytes, seed: int) -> None:
    try_writing(data, random.Random(seed))


@pytest.mark.parametrize("name", REAL)
@share(1 / 4)
@given(seed=seeds)
def test_damaged_real_captures(name: str, seed: int) -> None:
    chance = random.Random(seed)
    data = mutated((FILES / name).read_bytes()[:4000], chance)
    with input_told(data):
        try_writing(data, chance)
