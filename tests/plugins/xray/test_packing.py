"""Columns of events packed in bulk: read back they are the same, or what is not is counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_xray import format as fx
from fx_xray.read.events import Events
from fx_xray.write.packer import RecorderPacker
from fxframework.errors import Severity, WriteRefusedError
from fxframework.io.sink import Sink

from ...cases import cases
from .packed import THREADS, by_thread, chance_events, opened, packed_events

TIDS = np.arange(THREADS) + 100
UNKNOWN = 0xFFFF


def _as_held(rows: list[tuple[Any, ...]], version: int) -> list[tuple[Any, ...]]:
    """What a version can hold of the events of a thread."""
    held = []
    for kind, function, tsc, cpu, data in rows:
        if kind == 6 and version < 3:
            continue
        if kind >= 5 and version < 5 and not (kind == 5 and version == 4):
            cpu = UNKNOWN
        held.append((kind, function, tsc, cpu, data))
    return held


@given(
    seed=st.integers(0, 1 << 32), version=st.sampled_from(range(1, 6)),
    size=st.sampled_from((128, 200, 1000, 1 << 15)), step=st.sampled_from((0, 1, 7)),
)  # fmt: skip
def test_what_is_packed_is_read_back(seed: int, version: int, size: int, step: int) -> None:
    events, payloads = chance_events(seed, 60)
    data, dropped = packed_events(events, payloads, version, size=size, step=step)
    capture = opened(data)
    found = by_thread(capture.events(), capture.payloads, capture.event_threads()[1])
    wanted = {
        tid: _as_held(rows, version) for tid, rows in by_thread([events], payloads, TIDS).items()
    }
    too_large = {"events larger than a buffer", "arguments beyond the size of a buffer"}
    if not too_large & dropped.keys():
        assert found == {tid: rows for tid, rows in wanted.items() if rows}
    capture.scan()
    worse = [f for f in capture.diagnostics if f.severity >= Severity.WARNING]
    assert not worse
    typed = int((events.kind == 6).sum())
    assert dropped.get("typed events", 0) == (typed if version < 3 else 0)


@cases("version", range(1, 4))
def test_basic_mode_holds_calls_alone(version: int) -> None:
    events, payloads = chance_events(3)
    data, dropped = packed_events(events, payloads, version, basic=True)
    capture = opened(data, "xray-basic")
    found = by_thread(capture.events(), capture.payloads, capture.event_threads()[1])
    wanted = {}
    for tid, rows in by_thread([events], payloads, TIDS).items():
        wanted[tid] = [
            (1 if version < 2 and kind == 2 else kind, function, tsc, cpu & 0xFF, data)
            for kind, function, tsc, cpu, data in rows
            if kind < 5
        ]
    assert found == wanted
    assert dropped["custom events"] == int((events.kind == 5).sum())
    assert dropped["typed events"] == int((events.kind == 6).sum())
    assert ("kinds of exits" in dropped) == (version < 2)


def test_a_call_takes_its_arguments_into_the_next_buffer() -> None:
    # A preamble of 64, five calls, and the sixth with its first argument fill the buffer.
    events = _calls(kind=[0] * 5 + [3, 4, 4], tsc=[5] * 5 + [6] * 3, value=[0] * 6 + [11, 12])
    data, dropped = packed_events(events, np.zeros(0, np.uint8), 5, size=128)
    assert not dropped
    shown = [record.to_json() for record in opened(data).records()]
    assert [one["record"] for one in shown].count("buffer_extents") == 2
    tail = [one for one in shown if one["record"] in {"function", "call_argument"}]
    assert [one.get("value") for one in tail[-2:]] == [11, 12]
    assert tail[-3]["tsc"] == 6
    assert tail[-3]["delta"] == 0


HALF_MOVED = [number << 40 for number in (0x10, 0x1F7, 0x101, 0x113, 0x90)]
"""Times whose NewCPUId could be one cut in half: its second half could be a record."""
HALF_WRAPPED = [number << 56 for number in (0x10, 0x77, 0x01, 0x13, 0x90)]
"""The same of a TSCWrap."""


@cases("version", range(1, 6))
@cases("typed", [False, True])
@cases(
    ("cpu", "far"),
    [(1, far) for far in HALF_MOVED] + [(0, far) for far in HALF_WRAPPED],
)
def test_no_record_looks_cut_in_half(version: int, cpu: int, far: int, *, typed: bool) -> None:
    middle = 6 if typed and version >= 3 else 0
    times = [100, 200, far + 300, far + 301, 400, far + 500]
    events = _calls(
        kind=[0, middle, 0, 1, 0, 1], tsc=times, cpu=[0, 0, cpu, cpu, 0, cpu],
        size=[0, 3 if middle else 0, 0, 0, 0, 0],
    )  # fmt: skip
    payloads = np.frombuffer(b"abc", np.uint8)
    data, _ = packed_events(events, payloads, version)
    capture = opened(data)
    found = by_thread(capture.events(), capture.payloads, capture.event_threads()[1])
    wanted = by_thread([events], payloads, TIDS)
    assert found == {tid: _as_held(rows, version) for tid, rows in wanted.items()}
    capture.scan()
    # A time beyond the nanoseconds of int64 is that of the events themselves.
    worse = [f for f in capture.diagnostics if f.severity >= Severity.WARNING]
    assert {f.code for f in worse} <= {"FXX0305"}


def test_what_does_not_fit_is_counted() -> None:
    events = _calls(kind=[4, 0, 4], tsc=[5, 6, 6], function=[1, 1 << 28, 1 << 28])
    data, dropped = packed_events(events, np.zeros(0, np.uint8), 5)
    assert dropped == {
        "calls of functions with greater numbers than fit": 1,
        "arguments of no call": 2,
    }
    assert not list(opened(data).events())


def test_an_event_larger_than_a_buffer_is_whole() -> None:
    payload = np.frombuffer(b"x" * 5000, np.uint8)
    events = _calls(kind=[0, 5, 1], tsc=[1, 2, 3], size=[0, 5000, 0])
    data, dropped = packed_events(events, payload, 5, size=256)
    assert not dropped
    assert [chunk.size.tolist() for chunk in opened(data).events()] == [[0, 5000, 0]]
    data, dropped = packed_events(events, payload, 1, size=256)
    assert dropped == {"events larger than a buffer": 1}


def _calls(**given: list[int]) -> Events:
    count = len(given["kind"])
    types = {"kind": "u1", "function": "u4", "tsc": "u8", "cpu": "u2", "thread": "i4"}
    types |= {"offset": "i8", "value": "u8", "size": "i4"}
    filler = {"function": [1] * count}
    return Events(
        **{
            name: np.array(given.get(name, filler.get(name, [0] * count)), kind)
            for name, kind in types.items()
        }
    )


@cases("byte_order", ["little", "big-lsb", "big"])
def test_an_event_fills_the_odd_bytes_of_version_1(byte_order: str) -> None:
    # Readers that take the space behind the end record for records need them whole.
    events = _calls(kind=[0, 5, 1], tsc=[1, 2, 3], size=[0, 3, 0])
    sink = Sink.memory()
    header = fx.FileHeader(version=1, cycle_frequency=1_000_000_000, buffer_size=512)
    packer = RecorderPacker(sink, header, byte_order=byte_order)
    packer.add_threads(np.full(1, 7), np.arange(1) + 100)
    packer.write(events, np.frombuffer(b"abc", np.uint8))
    packer.close()
    data = memoryview(sink.getvalue())
    assert len(data) == fx.HEADER_BYTES + 512
    shown = [record.to_json() for record in opened(bytes(data), byte_order=byte_order).records()]
    names = [record["record"] for record in shown]
    end = shown[names.index("end_of_buffer")]
    behind = end["offset"] + fx.METADATA_BYTES
    state = fx.Dialect(version=1, byte_order=byte_order).state()
    event, _ = fx.CustomEventAt.unpack(data, behind, len(data), state)
    assert (len(data) - behind - event.nbytes) % fx.FUNCTION_BYTES == 0
    assert 0 < len(event.data) < fx.FUNCTION_BYTES


def test_a_byte_order_that_cannot_hold_a_call_refuses_it() -> None:
    # With bits from the least significant one, the first byte has bits of the function, too.
    events = _calls(kind=[0], tsc=[1], function=[1 << 20])
    packer = RecorderPacker(Sink.memory(), fx.FileHeader(version=5), byte_order="big-lsb")
    packer.add_threads(np.full(1, 7), np.arange(1) + 100)
    packer.write(events, np.zeros(0, np.uint8))
    with pytest.raises(WriteRefusedError, match="record of another kind"):
        packer.close()
