"""Record JSON in bulk: the lines of columns are those of the records."""

from __future__ import annotations

import random
from typing import Any

import hypothesis
import orjson
import pytest
from hypothesis import strategies as st

from fx_xray import format as fx
from fx_xray.read.capture import BasicCapture, FdrCapture
from fx_xray.read.decoder import RecordDecoder, Walk
from fx_xray.sample import sample
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.wire import lines

from ...cases import cases
from .streams import basic_files, damaged, fdr_files
from .traces import RARE, TSC, WHOLE, buffer, call, event, header, packed


def opened(form: str, data: bytes, **limits: int) -> Any:
    open = BasicCapture if form == "xray-basic" else FdrCapture
    return open(Source.open(data), OpenRequest(options={}, limits=Limits(**limits)))


def findings(capture: Any) -> list[tuple[str, int | None, str]]:
    return [(each.code, each.offset, each.message) for each in capture.diagnostics]


def agree(form: str, data: bytes, **limits: int) -> None:
    by_records = RecordDecoder(form, limits=Limits(**limits)).records(data)
    wanted = [orjson.dumps(record.to_json()) + b"\n" for record in by_records]
    capture = opened(form, data, **limits)
    pieces = list(capture.records_json())
    assert all(piece.endswith(b"\n") for piece in pieces)
    assert b"".join(pieces) == b"".join(wanted)
    other = opened(form, data, **limits)
    other.scan()
    assert findings(capture) == findings(other)


def spoilt(data: bytes, faults: int) -> bytes:
    chance = random.Random(5)
    out = bytearray(data)
    for _ in range(faults):
        out[chance.randrange(32, len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


INPUTS: dict[str, tuple[str, bytes]] = {
    **WHOLE,
    **{name: ("xray", data) for name, data in RARE.items()},
    "typical": ("xray", sample(60_000)),
    "damaged": ("xray", spoilt(sample(60_000), 40)),
    "damaged basic": ("xray-basic", spoilt(WHOLE["basic3-little"][1], 8)),
}


@cases("name", INPUTS)
def test_every_kind_of_trace(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 1000)
    agree(*INPUTS[name])


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
def test_records_out_of_place(version: int) -> None:
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
    for _ in range(4):
        some = [call(1), call(2, "exit"), *chance.sample(odd, 3), call(5, "tail_exit")]
        chance.shuffle(some)
        whole = buffer(*some, version=version)
        data = header(version) + whole + packed(*some) + buffer(call(3), version=version)
        agree("xray", data)
        agree("xray", data[:-3], max_record=20)


def test_an_event_that_reaches_behind_the_next_buffer_where_nothing_bounds_its_own() -> None:
    inner = packed(fx.BufferExtents(bytes=32)) + packed(fx.NewBuffer(thread=2))
    long = packed(event(inner + bytes(40)))
    agree("xray", header() + packed(call(1), long, call(3)))
    agree("xray", header() + packed(fx.BufferExtents(bytes=1 << 40), call(1), long, call(3)))


@cases("order", fx.BYTE_ORDERS)
def test_a_last_record_that_is_cut_off(order: str) -> None:
    for form, record in (
        ("xray", fx.Function(kind="enter", function_id=1, delta=5)),
        (
            "xray-basic",
            fx.BasicFunction(kind="enter", function_id=1, tsc=5, cpu=0, thread=1, process=1),
        ),
    ):
        head = fx.FileHeader(version=3, type=int(form == "xray"), byte_order=order)
        state = fx.Dialect(form, 3, order).state()
        data = record.pack(state)
        for left in range(1, len(data) + 2, 1 if order == "little" else 6):
            agree(form, head.pack() + 3 * data + (2 * data)[:left])


@hypothesis.given(data=fdr_files() | damaged(fdr_files()) | st.binary(max_size=200))
def test_agree_on_any_log(data: bytes) -> None:
    agree("xray", data)


@hypothesis.given(data=basic_files() | damaged(basic_files()) | st.binary(max_size=200))
def test_agree_on_any_basic_trace(data: bytes) -> None:
    agree("xray-basic", data)


def test_no_sound_record_is_decoded_on_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = opened("xray", sample(200_000))
    record, seen = Walk.record, []

    def noted(walk: Any, *place: int) -> Any:
        one = record(walk, *place)
        seen.append(one.record)
        return one

    monkeypatch.setattr(Walk, "record", noted)
    assert b"".join(capture.records_json()).count(b"\n") == capture.summary().records
    assert not seen
