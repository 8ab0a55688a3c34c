"""Fuzz what cuts, mends and composes XRay logs: any bytes give a sound log or a coded error.

``tox run -e explore -- tests/fuzz`` goes on for an hour. The kernels run as plain Python, which an
index out of bounds stops.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxframework.errors import FxError, Severity
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import Capture, OpenRequest
from fxframework.model.selection import Selection
from fxframework.registry import Writer, parse_options

from ..oracle import xray_logs
from ..plugins.log import streams as logs
from ..properties import share
from .target import LIMITS, host
from .test_fuzz import REAL_XRAY, XRAY_FILES, input_told, mutated, seeds

HUGE_TIMES = "FXX0305"
LOGS = {"xray": xray_logs.fdr_logs(), "xray-basic": xray_logs.basic_logs()}


def opened(data: bytes, format: str) -> Capture:
    source = Source.open(data, limits=LIMITS)
    reader = host().reader(format)
    options = parse_options({}, reader.options, whose=format)
    return reader.open(source, OpenRequest(limits=LIMITS, options=options))


def options_of(writer: Writer) -> dict[str, object]:
    return dict(parse_options({}, writer.options, whose=writer.format))


def selections(capture: Capture, chance: random.Random) -> list[Selection]:
    """Everything, a stretch of time, a thread, a function, and some of them at once."""
    slices = capture.table("slices")
    times = [0, 1 << 62, *slices.array("ts").tolist()[:50]]
    start, stop = sorted(chance.choice(times) + chance.choice((-1, 0, 0, 1)) for _ in range(2))
    names = ["*", *(name for name in slices.texts("name")[:20] if name)]
    threads = capture.table("threads")
    columns = (threads.array(name).tolist() for name in ("pid", "tid"))
    tasks = ["*", *(f"{pid}/{tid}" for pid, tid in zip(*columns, strict=True))]
    return [
        Selection(),
        Selection(start_ns=start, stop_ns=stop),
        Selection(functions=(chance.choice(names),)),
        Selection(start_ns=start, threads=(chance.choice(tasks),)),
    ]


def try_writing(data: bytes, format: str, chance: random.Random) -> None:
    """Cut, mend and compose. Anything but a sound log or an FxError is a bug."""
    writer = host().writer(format)
    assert writer.extract is not None
    assert writer.salvage is not None
    assert writer.merge is not None
    for selection in selections(opened(data, format), chance):
        sink = Sink.memory()
        try:
            writer.extract(opened(data, format), selection, sink, options_of(writer))
        except FxError:
            continue
        once = sink.getvalue()
        # A part that is the whole keeps its bytes, damage and all.
        if once != data:
            sound(once, format)
    sink = Sink.memory()
    try:
        list(writer.salvage(opened(data, format), sink, options_of(writer)))
    except FxError:
        return
    sound(sink.getvalue(), format)
    sink = Sink.memory()
    session = writer.merge(sink, options_of(writer))
    for _ in range(2):
        session.write(opened(data, format))
    session.close()
    sound(sink.getvalue(), format)


def sound(data: bytes, format: str) -> None:
    """Nothing of it is lost, but times that nobody can hold; or there was nothing to write."""
    if not data:
        return
    capture = opened(data, format)
    capture.scan()
    for code in capture.diagnostics.counts:
        severity = capture.diagnostics.rule(code).severity
        assert severity < Severity.DATA_LOSS or code == HUGE_TIMES, list(capture.diagnostics)


@pytest.mark.parametrize("format", LOGS)
@given(data=st.data(), seed=st.integers(0, 99))
def test_logs_and_damaged_logs(format: str, data: st.DataObject, seed: int) -> None:
    files = LOGS[format]
    made = data.draw(files | logs.damaged(files) | st.binary(max_size=200))
    try_writing(made, format, random.Random(seed))


@pytest.mark.parametrize("name", REAL_XRAY)
@share(1 / 4)
@given(seed=seeds)
def test_damaged_real_logs(name: str, seed: int) -> None:
    chance = random.Random(seed)
    data = mutated((XRAY_FILES / name).read_bytes()[:2000], chance)
    with input_told(data):
        try_writing(data, REAL_XRAY[name], chance)
