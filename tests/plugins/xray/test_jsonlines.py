"""Record JSON in bulk: the lines of the kernels are those of the records, compiled and plain."""

from __future__ import annotations

import importlib
import random
from typing import Any

import hypothesis
import orjson
import pytest
from hypothesis import strategies as st

from fx_xray import format as fx
from fx_xray.read.decoder import RecordDecoder
from fx_xray.sample import sample
from fxframework.io.limits import Limits
from fxframework.testing.kernels import plain_kernels

from ...cases import cases
from .streams import basic_files, damaged, fdr_files
from .test_compiled import INPUTS
from .traces import TSC, buffer, call, event, header, packed

NAMES = ("capture", "record_lines", "decoder")


class Tools:
    """The modules under test, of one set: with compiled kernels where there are any, or plain."""

    def __init__(self) -> None:
        self.reader, self.lines, self.decoder = (
            importlib.import_module(f"fx_xray.read.{name}") for name in NAMES
        )
        self.limits = importlib.import_module("fxframework.io.limits").Limits
        self.source = importlib.import_module("fxframework.io.source").Source
        self.request = importlib.import_module("fxframework.model.capture").OpenRequest

    def opened(self, form: str, data: bytes, **limits: int) -> Any:
        open = self.reader.BasicCapture if form == "xray-basic" else self.reader.FdrCapture
        request = self.request(options={}, limits=self.limits(**limits))
        return open(self.source.open(data), request)


TOOLS = {"compiled": Tools()}
with plain_kernels():
    TOOLS["plain"] = Tools()


@pytest.fixture(params=TOOLS)
def tools(request: pytest.FixtureRequest) -> Tools:
    return TOOLS[request.param]


def findings(capture: Any) -> list[tuple[str, int | None, str]]:
    return [(each.code, each.offset, each.message) for each in capture.diagnostics]


def agree(tools: Tools, form: str, data: bytes, **limits: int) -> None:
    by_records = RecordDecoder(form, limits=Limits(**limits)).records(data)
    lines = [orjson.dumps(record.to_json()) + b"\n" for record in by_records]
    capture = tools.opened(form, data, **limits)
    pieces = list(capture.records_json())
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert b"".join(pieces) == b"".join(lines)
    other = tools.opened(form, data, **limits)
    other.scan()
    assert findings(capture) == findings(other)


@cases("name", INPUTS)
def test_every_kind_of_trace(tools: Tools, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools.lines, "PIECE", 1000)
    agree(tools, *INPUTS[name])


def events(version: int) -> list[bytes]:
    """Events as the version has them: sound, with padding, and of sizes that cannot be."""
    custom = packed(event(version=version), version=version)
    out = [
        custom,
        custom[:1] + b"\xff" * 4 + custom[5:],
        custom[:1] + b"\0\0\0\x7f" + custom[5:],
        custom[:15] + b"\1" + custom[16:],
    ]
    if version >= 3:
        typed = packed(event(b"", version=version, event_type=300, delta=-9), version=version)
        out += [typed, typed[:15] + b"\2"]
    return out


@cases("version", range(1, 6))
def test_records_out_of_place(tools: Tools, version: int) -> None:
    odd = [
        packed(fx.NewCpu(cpu=3, tsc=TSC + (1 << 41))),
        packed(fx.NewCpu(cpu=3, tsc=TSC + (1 << 40))),
        packed(fx.TscWrap(tsc=0, padding=b"\0" * 6 + b"\1")),
        packed(fx.Pid(process=-7)),
        packed(fx.NewBuffer(thread=-2)),
        packed(fx.EndOfBuffer()),
        packed(fx.BufferExtents(bytes=24)),
        packed(fx.BufferExtents(bytes=(1 << 64) - 1)),
        packed(fx.CallArgument(value=(1 << 64) - 1, padding=b"abcdefg")),
        packed(fx.WallTime(seconds=-1, micros=-1)),
        b"\x0f" * 8,
        b"\x1f" * 16,
        b"\0\0\0\0" * 20 + b"\x0e" * 80,
        *events(version),
    ]
    chance = random.Random(version)
    for _ in range(25):
        some = [call(1), call(2, "exit"), *chance.sample(odd, 3), call(5, "tail_exit")]
        chance.shuffle(some)
        whole = buffer(*some, version=version)
        data = header(version) + whole + packed(*some) + buffer(call(3), version=version)
        agree(tools, "xray", data)
        agree(tools, "xray", data[:-3], max_record=20)


def test_an_event_that_reaches_behind_the_next_buffer_where_nothing_bounds_its_own(
    tools: Tools,
) -> None:
    inner = packed(fx.BufferExtents(bytes=32)) + packed(fx.NewBuffer(thread=2))
    long = packed(event(inner + bytes(40)))
    agree(tools, "xray", header() + packed(call(1), long, call(3)))
    agree(tools, "xray", header() + packed(fx.BufferExtents(bytes=1 << 40), call(1), long, call(3)))


@hypothesis.given(data=fdr_files() | damaged(fdr_files()) | st.binary(max_size=200))
def test_agree_on_any_log(tools: Tools, data: bytes) -> None:
    agree(tools, "xray", data)


@hypothesis.given(data=basic_files() | damaged(basic_files()) | st.binary(max_size=200))
def test_agree_on_any_basic_trace(tools: Tools, data: bytes) -> None:
    agree(tools, "xray-basic", data)


def test_only_extents_are_decoded_one_by_one(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    capture = tools.opened("xray", sample(200_000))
    record, seen = tools.decoder.FdrWalk.record, []

    def noted(walk: Any, *place: int) -> Any:
        one = record(walk, *place)
        seen.append(one.record)
        return one

    monkeypatch.setattr(tools.decoder.FdrWalk, "record", noted)
    assert b"".join(capture.records_json()).count(b"\n") == capture.summary().records
    assert set(seen) == {"buffer_extents"}
    assert len(seen) == len(capture.table("xray_buffers"))
