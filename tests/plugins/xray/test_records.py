"""Records of XRay traces: decoder, JSON both ways, encoder, in all versions and byte orders."""

from __future__ import annotations

import json
import struct
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from fx_xray import format as fx
from fx_xray import format as wire
from fx_xray.read.decoder import RecordDecoder
from fx_xray.read.header import read_header
from fx_xray.rules import RULES
from fx_xray.write.encoder import RecordEncoder
from fxframework.errors import StrictError, UsageError, WriteRefusedError
from fxframework.io.limits import Limits
from fxframework.model.diagnostics import Diagnostics

from ...cases import cases
from ...truncations import sizes_of
from .traces import ORDERS, TSC, WHOLE, basic, buffer, call, event, header, packed, preamble, trace


def decode(data: bytes, form: str = "xray", *, max_record: int = 0, mended: bool = False,
           **options: Any) -> tuple[list[Any], Diagnostics]:  # fmt: skip
    found = Diagnostics(RULES)
    limits = Limits(max_record=max_record) if max_record else None
    decoder = RecordDecoder(form, diagnostics=found, options=options, limits=limits)
    return list(decoder.records(data, mend=mended)), found


def codes(data: bytes, form: str = "xray", **options: Any) -> list[tuple[str, int | None]]:
    """The findings about the bytes: code and offset, in the order of the file."""
    _, found = decode(data, form, **options)
    return [(each.code, each.offset) for each in found]


def kinds(data: bytes, form: str = "xray", **options: Any) -> list[str]:
    return [record.record for record in decode(data, form, **options)[0]]


def again(data: bytes, form: str = "xray", **options: Any) -> bytes:
    """The bytes that the records' JSON text gives."""
    records, _ = decode(data, form, **options)
    assert sum(record.nbytes for record in records) == len(data)
    assert [record.offset for record in records] == [
        sum(record.nbytes for record in records[:number]) for number in range(len(records))
    ]
    encoder = RecordEncoder(form)
    lines = [json.dumps(record.to_json()) for record in records]
    return b"".join(encoder.encode(json.loads(line)) for line in lines) + encoder.close()


# --- Whole traces --------------------------------------------------------------------------------


@cases("name", WHOLE)
def test_traces_come_back_in_every_version_and_byte_order(name: str) -> None:
    form, data = WHOLE[name]
    records, found = decode(data, form)
    assert not found.counts
    assert records[0].byte_order == ("big" if name.startswith("basic") and "big" in name
                                     else name.split("-", 1)[1])  # fmt: skip
    assert "damaged" not in kinds(data, form)
    assert again(data, form) == data


@cases("order", ORDERS)
def test_byte_orders_say_the_same(order: str) -> None:
    def shown(data: bytes) -> list[dict[str, Any]]:
        return [record.to_json() for record in decode(data)[0][1:]]

    assert shown(trace(5, order)) == shown(trace(5))


@cases("order", ORDERS)
def test_the_byte_order_can_be_given(order: str) -> None:
    data = trace(5, order)
    assert decode(data, byte_order=order)[0] == decode(data)[0]
    with pytest.raises(UsageError, match="middle"):
        RecordDecoder("xray", options={"byte_order": "middle"})


def test_bits_of_a_big_endian_machine() -> None:
    assert packed(fx.Pid(process=1), byte_order="big").hex() == "8900000001" + "00" * 11
    assert packed(fx.Pid(process=1), byte_order="big-lsb").hex() == "1300000001" + "00" * 11
    assert packed(call(5, "exit", 3), byte_order="big").hex() == "1000000500000003"
    assert packed(call(5, "exit", 3), byte_order="big-lsb").hex() == "0000005200000003"
    assert packed(call(5, "exit", 3)).hex() == "5200000003000000"


@cases(
    ("byte_order", "flags"), [("little", "03000000"), ("big", "c0000000"), ("big-lsb", "00000003")]
)
def test_flags_of_a_header_lie_where_other_bit_fields_do(byte_order: str, flags: str) -> None:
    """That is where compiler-rt's are on a machine of the order, or where llvm-xray looks."""
    assert header(byte_order=byte_order)[4:8].hex() == flags
    only_constant = read_header(
        header(byte_order=byte_order, nonstop_tsc=False), "xray", byte_order
    )
    assert only_constant is not None
    assert (only_constant.constant_tsc, only_constant.nonstop_tsc) == (True, False)


def test_flags_of_a_big_endian_header_are_read_where_llvm_looks_too() -> None:
    data = bytearray(trace(5, byte_order="big"))
    data[4:8] = bytes.fromhex("00000003")
    assert not {"FXX0005", "FXX0006"} & {code for code, _ in codes(bytes(data))}
    assert again(bytes(data)) == data


def test_an_encoder_writes_the_byte_order_that_it_is_asked_for() -> None:
    records = [record.to_json() for record in decode(trace(5))[0]]
    for order in ORDERS:
        encoder = RecordEncoder("xray", byte_order=order)
        assert b"".join(map(encoder.encode, records)) == trace(5, order)


def test_a_bit_that_no_field_has_comes_back() -> None:
    odd = struct.pack(">II", 5 << 4 | 1, 9)
    data = header(byte_order="big-lsb") + buffer(odd, byte_order="big-lsb")
    assert decode(data)[0][-1].function_id == 5
    assert again(data) == data
    edited = decode(data)[0][-1].to_json() | {"function_id": 6}
    encoder = RecordEncoder("xray")
    encoder.encode(decode(data)[0][0])
    assert encoder.encode(edited) == struct.pack(">II", 6 << 4, 9)


# --- Times ---------------------------------------------------------------------------------------


def times(data: bytes, **options: Any) -> list[tuple[str, int | None, int | None]]:
    return [
        (record.record, record.tsc, getattr(record, "cpu", None))
        for record in decode(data, **options)[0]
        if record.record in {"function", "custom_event", "typed_event"}
    ]


def test_times_of_the_newest_version() -> None:
    assert times(trace(5))[:8] == [
        ("function", TSC + 100, 2),
        ("function", TSC + 105, 2),
        ("custom_event", TSC + 103, 2),
        ("typed_event", TSC + 112, 2),
        ("function", TSC + 113, 2),
        ("function", TSC + (1 << 33), 2),
        ("function", TSC + (1 << 34) + (1 << 32) - 1, 65535),
        ("function", 105, 1),
    ]


@cases(("version", "cpu"), [(3, None), (4, 3)])
def test_events_of_older_versions_have_times_of_their_own(version: int, cpu: int | None) -> None:
    assert times(trace(version))[2:5] == [
        ("custom_event", TSC + 120, cpu),
        ("typed_event", TSC + 130, None),
        ("function", TSC + 106, 2),
    ]


def test_nanoseconds_are_rounded_down() -> None:
    data = header(cycle_frequency=3) + buffer(call(delta=1), tsc=10)
    assert decode(data)[0][-1].ns == 11 * 10**9 // 3
    assert decode(data, cycle_frequency=7)[0][-1].ns == 11 * 10**9 // 7
    data = header(cycle_frequency=0) + buffer(call(delta=1), tsc=10)
    assert decode(data)[0][-1].ns == 11
    assert codes(data) == [("FXX0007", 8)]
    assert codes(data, cycle_frequency=7) == []


def test_the_counter_goes_around() -> None:
    data = header() + buffer(call(delta=10), tsc=(1 << 64) - 4)
    assert decode(data)[0][-1].tsc == 6


def test_who_ran() -> None:
    def who(version: int) -> tuple[int, int]:
        last = decode(header(version) + buffer(call(), version=version))[0]
        record = next(each for each in last if each.record == "function")
        return record.thread, record.process

    assert [who(version) for version in wire.FDR_VERSIONS] == [
        (7, 0), (7, 7), (7, 9), (7, 9), (7, 9)
    ]  # fmt: skip


def test_arguments_go_with_their_call() -> None:
    records, found = decode(
        header() + buffer(call(), fx.CallArgument(value=1), fx.CallArgument(value=2))
    )
    one, first, second = records[-3:]
    assert (first.row_offset, second.row_offset) == (one.offset, one.offset)
    assert first.ns == second.ns == one.ns
    assert "tsc" not in first.to_json()
    assert not found.counts


@cases("between", [fx.TscWrap(tsc=TSC), event(), b"\x15" + bytes(15)])
def test_an_argument_behind_anything_else_is_of_no_call(between: Any) -> None:
    records, found = decode(header() + buffer(call(), between, fx.CallArgument(value=1)))
    assert records[-1].row_offset == records[-1].offset
    assert ("FXX0207", records[-1].offset) in [(each.code, each.offset) for each in found]


# --- Findings ------------------------------------------------------------------------------------

BEHIND = 32 + 16 + 16 * 4
"""The offset behind the preamble of the first buffer, from version 3 on."""
BAD_KIND = struct.pack("<II", 5 << 1, 0)
BAD_METADATA = b"\x15" + bytes(range(15))
EVENT = struct.pack("<Bii", 0x0B, -1, 0).ljust(16, b"\0")
FOUR = preamble()


def bounded(*records: Any, nbytes: int | None = None, version: int = 5) -> bytes:
    """A file with extents and these records."""
    data = packed(*records, version=version)
    size = len(data) if nbytes is None else nbytes
    return header(version) + packed(fx.BufferExtents(bytes=size), version=version) + data


def foreign() -> fx.TypedEvent:
    """A typed event as compiler-rt writes it, with what was in its memory for padding."""
    typed = event(event_type=1)
    typed.padding = b"\0\x1a\0\0\0"
    return typed


CASES: dict[str, tuple[bytes, list[tuple[str, int]]]] = {
    "no bytes": (b"", [("FXX0001", 0)]),
    "few bytes": (header()[:31], [("FXX0001", 0)]),
    "version": (header(6) + buffer(call()), [("FXX0002", 0)]),
    "no version": (header(0) + buffer(call(), version=1), [("FXX0002", 0)]),
    "type": (header(type=0) + buffer(call()), [("FXX0003", 2)]),
    "nothing recorded": (header(), [("FXX0004", 0)]),
    "no constant counter": (header(constant_tsc=False) + buffer(call()), [("FXX0005", 4)]),
    "counter that stops": (header(nonstop_tsc=False) + buffer(call()), [("FXX0006", 4)]),
    "no frequency": (header(cycle_frequency=0) + buffer(call()), [("FXX0007", 8)]),
    "short extents": (header() + buffer(call(), event(event_type=1), short=16)[:-16] + buffer(),
                      [("FXX0101", BEHIND + 8)]),
    "lost tail": (header() + buffer(call(), foreign(), call(1, "exit")) + buffer(call(), foreign()),
                  [("FXX0115", BEHIND + 8 + 21), ("FXX0115", BEHIND + 8 + 21 + 8 + 80 + 8)]),
    "end of the file": (bounded(*FOUR, call(), fx.TscWrap(tsc=TSC))[:-1],
                        [("FXX0103", 32), ("FXX0102", BEHIND + 8)]),
    "end of the file between records": (bounded(*FOUR, call(), call())[:-8], [("FXX0103", 32)]),
    "function kind": (header() + buffer(BAD_KIND, call()), [("FXX0104", BEHIND)]),
    "metadata kind": (header() + buffer(BAD_METADATA, call()), [("FXX0105", BEHIND)]),
    "negative size": (header() + buffer(EVENT, call()) + buffer(), [("FXX0106", BEHIND)]),
    "no payload": (header() + buffer(event(b"")), [("FXX0107", BEHIND)]),
    "no extents": (header() + packed(*FOUR, call()), [("FXX0108", 32)]),
    "extents that are too small": (bounded(*FOUR, call(), call(), call(), nbytes=72),
                                   [("FXX0108", BEHIND + 8)]),
    "extents that end in a record": (bounded(*FOUR, call(), call(), nbytes=68),
                                     [("FXX0108", BEHIND)]),
    "extents that are too large": (
        bounded(*FOUR, call(), call(1, "exit"), nbytes=96) + buffer(call()),
        [("FXX0116", BEHIND + 16)],
    ),
    "extents that end in the next extents": (
        bounded(*FOUR, call(), call(1, "exit"), nbytes=88) + buffer(call()),
        [("FXX0116", BEHIND + 16)],
    ),
    "extents beyond two buffers": (
        bounded(*FOUR, call(), nbytes=168) + buffer(call()) + buffer(call()),
        [("FXX0116", BEHIND + 8)],
    ),
    "microseconds": (
        bounded(FOUR[0], fx.WallTime(seconds=1, micros=1_000_000), *FOUR[2:], call()),
        [("FXX0117", 64)],
    ),
    "negative microseconds": (
        bounded(FOUR[0], fx.WallTime(seconds=1, micros=-1), *FOUR[2:], call()),
        [("FXX0117", 64)],
    ),
    "the last microsecond": (
        bounded(FOUR[0], fx.WallTime(seconds=1, micros=999_999), *FOUR[2:], call()), []
    ),
    "no extents at all": (bounded(*FOUR, call(), nbytes=0), [("FXX0108", 48)]),
    "no records": (header() + buffer(*[BAD_KIND] * 9, call()) + buffer(call()),
                   [*[("FXX0104", BEHIND + 8 * number) for number in range(8)],
                    ("FXX0109", BEHIND + 64)]),
    "an end that there is not": (header() + buffer(call(), fx.EndOfBuffer(), call()),
                                 [("FXX0110", BEHIND + 8)]),
    "pid in version 2": (bounded(*FOUR, call(), version=2), [("FXX0111", 48 + 32)]),
    "typed event in version 2": (
        header(2) + buffer(event(event_type=3, version=2), version=2), [("FXX0111", BEHIND - 16)]
    ),
    "two buffers without ends": (header(1) + packed(*preamble(1), *preamble(1), call()),
                                 [("FXX0112", 64), ("FXX0112", 128)]),
    "order": (bounded(*FOUR[:2], FOUR[3], FOUR[2], call()),
              [("FXX0201", 48 + 48), ("FXX0201", 48 + 64)]),
    "argument of an event": (header() + buffer(event(), fx.CallArgument(value=1)),
                             [("FXX0201", BEHIND + 21), ("FXX0207", BEHIND + 21)]),
    "nothing but a beginning": (bounded(*FOUR[:2]) + buffer(call()), [("FXX0202", 64)]),
    "nothing but a beginning at the end": (bounded(*FOUR[:3]), [("FXX0202", 80)]),
    "no time": (bounded(*FOUR[:3], call(), call()),
                [("FXX0201", 48 + 48), ("FXX0203", 48 + 48)]),
    "no thread": (bounded(FOUR[3], call()),
                  [("FXX0201", 48), ("FXX0204", 64)]),
    "empty extents": (bounded() + buffer(call()), []),
    "a jump": (header() + buffer(fx.TscWrap(tsc=TSC + (1 << 41)), call()), [("FXX0206", BEHIND)]),
    "a jump back": (header() + buffer(fx.NewCpu(cpu=1, tsc=7), call()), [("FXX0206", BEHIND)]),
    "no jump": (header() + buffer(fx.TscWrap(tsc=TSC + (1 << 40)), call()), []),
}  # fmt: skip


@cases("case", CASES)
def test_departures_are_found_where_they_are(case: str) -> None:
    data, expected = CASES[case]
    assert codes(data) == expected
    assert codes(data, mended=True) == expected
    assert again(data) == data


def test_findings_have_the_number_of_their_record() -> None:
    _, found = decode(CASES["function kind"][0])
    assert [each.record for each in found] == [6]


def test_over_the_limit_is_damage_and_counts_for_time() -> None:
    data = header() + buffer(event(b"x" * 50, delta=7), call(delta=1))
    assert codes(data, max_record=65) == [("FXX0114", BEHIND)]
    assert codes(data, max_record=66) == []
    assert decode(data, max_record=65)[0][-1].tsc == TSC + 8
    assert again(data, max_record=65) == data


def test_strict_readers_stop_at_damage() -> None:
    data = CASES["function kind"][0]
    decoder = RecordDecoder("xray", diagnostics=Diagnostics(RULES, strict=True))
    with pytest.raises(StrictError) as stopped:
        list(decoder.records(data))
    assert stopped.value.code == "FXX0104"


# --- Reading on behind damage --------------------------------------------------------------------


def test_reading_goes_on_with_the_next_buffer() -> None:
    data = header() + buffer(call(), *[BAD_KIND] * 20, call()) + buffer(call(5))
    records, _ = decode(data)
    assert [each.nbytes for each in records if each.record == "damaged"] == [8] * 8 + [104]
    assert records[-1].function_id == 5
    assert again(data) == data


@cases("garbage", [b"\x15" * 300, b"\x0f" * 200, b"\x0a\0" * 99])
def test_outside_of_buffers_the_next_extents_are_looked_for(garbage: bytes) -> None:
    data = header() + buffer(call()) + garbage + buffer(call(5))
    records, _ = decode(data)
    if garbage[0] != 0x0F:
        assert records[-1].function_id == 5
    assert again(data) == data


FAR = 2 << 40
"""A time of which the bytes behind the fifth could be those of a function's record."""


# --- A record that was cut in half (notes §0.7) ---------------------------------------------------


def cut(second: bytes, tsc: int = TSC + 5000) -> bytes:
    """A buffer with a NewCPUId of which the second half was written over."""
    broken = fx.NewCpu(cpu=4, tsc=tsc).pack()[:8]
    return header() + buffer(call(1), broken + second)


def test_a_cut_record_is_literal_and_mended_in_tables() -> None:
    data = cut(packed(call(9, "enter_arg", 30), fx.CallArgument(value=3), call(9, "exit", 5)))
    literal, found = decode(data)
    assert [(each.code, each.offset) for each in found] == [("FXX0205", BEHIND + 8)]
    assert [record.record for record in literal[-3:]] == ["new_cpu", "call_argument", "function"]
    assert literal[-3].tsc > TSC + (1 << 40)
    mended, _ = decode(data, mended=True)
    assert [(record.record, record.nbytes) for record in mended[-4:]] == [
        ("new_cpu", 8), ("function", 8), ("call_argument", 16), ("function", 8)
    ]  # fmt: skip
    new_cpu, enter, argument, leave = mended[-4:]
    assert (new_cpu.tsc, enter.tsc, leave.tsc) == (TSC + 5000, TSC + 5030, TSC + 5035)
    assert (enter.cpu, argument.row_offset) == (4, enter.offset)
    assert again(data) == data


def test_what_was_cut_may_hold_a_metadata_record() -> None:
    data = cut(packed(fx.TscWrap(tsc=TSC + 9000), call(9)))
    mended, found = decode(data, mended=True)
    assert [record.record for record in mended[-3:]] == ["new_cpu", "tsc_wrap", "function"]
    assert mended[-1].tsc == TSC + 9100
    assert set(found.counts) == {"FXX0205"}
    assert codes(data) == codes(data, mended=True)
    assert again(data) == data


@cases("kind", [0, 1, 4, 6, 7, 9])
def test_a_record_that_may_not_follow_is_no_evidence_of_a_cut(kind: int) -> None:
    """What lies in the second half may be the padding that a recorder did not clear."""
    garbage = bytes([kind << 1 | 1, 0, 0, *[0xAA] * 5])
    data = cut(garbage + packed(call(9)))
    mended, found = decode(data, mended=True)
    assert "FXX0205" not in found.counts
    assert [record.record for record in mended[-2:]] == ["new_cpu", "function"]
    assert codes(data) == codes(data, mended=True)


@cases(
    "clock", [fx.NewCpu(cpu=3, tsc=(1 << 62) + FAR + 500), fx.TscWrap(tsc=(1 << 62) + FAR + 500)]
)
def test_a_clock_of_another_cpu_is_no_evidence_of_a_cut(clock: fx.XrayRecord) -> None:
    """Counters may differ by a power of two: the low bits of a time are then near the one before.

    What is behind the time is padding that was cleared, and no record.
    """
    data = header() + buffer(call(1), clock, call(2), call(2, "exit"), tsc=FAR)
    assert codes(data) == codes(data, mended=True) == [("FXX0206", BEHIND + 8)]


def test_a_cut_wrap_is_mended_too() -> None:
    broken = fx.TscWrap(tsc=TSC + 5000).pack()[:8]
    data = header() + buffer(call(1), broken + packed(call(9, "exit", 30)))
    assert codes(data) == [("FXX0205", BEHIND + 8)]
    assert decode(data, mended=True)[0][-1].tsc == TSC + 5030
    high = 1 << 60
    data = header() + buffer(
        call(1), fx.TscWrap(tsc=high + 900).pack()[:8] + packed(call(9, "exit", 30)), tsc=high
    )
    assert codes(data) == [("FXX0205", BEHIND + 8)]
    assert decode(data, mended=True)[0][-1].tsc == high + 930


def test_nothing_is_mended_where_nothing_leads_to_a_time() -> None:
    data = cut(packed(call(0, "tail_exit", 30)))  # no function has this number
    assert codes(data) == [("FXX0206", BEHIND + 8)]
    data = cut(packed(call(9)), tsc=TSC + (1 << 37))
    assert codes(data) == [("FXX0206", BEHIND + 8)]


# --- Version 1 -----------------------------------------------------------------------------------


def pages(*records: Any, size: int = 256) -> bytes:
    return header(1, buffer_size=size) + b"".join(
        buffer(call(number + 1), *records, version=1, page=256, thread=number)
        for number in range(3)
    )


def test_the_space_behind_a_buffer_is_padding() -> None:
    records, found = decode(pages())
    assert kinds(pages()).count("padding") == 3
    assert [each.thread for each in records if each.record == "function"] == [0, 1, 2]
    assert not found.counts
    assert again(pages()) == pages()


def test_old_bytes_behind_a_buffer_are_kept() -> None:
    data = bytearray(pages())
    data[32 + 200] = 1
    records, found = decode(bytes(data))
    assert [each.code for each in found] == ["FXX0113"]
    assert len([each for each in records if each.raw is not None]) == 1
    assert again(bytes(data)) == bytes(data)


@cases("size", [0, 63, 100, 1 << 40, 300])
def test_a_size_of_buffers_that_makes_no_sense_is_not_believed(size: int) -> None:
    data = header(1, buffer_size=size) + b"".join(
        buffer(call(number + 1), version=1, thread=number) for number in range(9)
    )
    records, found = decode(data)
    assert [each.thread for each in records if each.record == "function"] == list(range(9))
    assert not found.counts


def test_a_buffer_may_fill_its_space() -> None:
    full = packed(*preamble(1), *[call()] * 10, version=1)
    data = header(1, buffer_size=128) + full + full
    _, found = decode(data)
    assert [(each.code, each.offset) for each in found] == [("FXX0112", 152), ("FXX0112", 280)]


def test_a_record_that_a_buffer_cannot_hold() -> None:
    full = packed(*preamble(1), *[call()] * 9, fx.TscWrap(tsc=TSC), version=1)[:128]
    data = header(1, buffer_size=128) + full + full
    _, found = decode(data)
    assert found.counts["FXX0101"] == 1
    assert again(data) == data


def test_extents_in_version_1_bound_as_ever() -> None:
    body = packed(*preamble(1), call(), fx.EndOfBuffer(), version=1)
    data = header(1) + packed(fx.BufferExtents(bytes=len(body) + 24)) + body + bytes(24)
    data += packed(fx.BufferExtents(bytes=len(body))) + body
    assert codes(data) == [("FXX0111", 32), ("FXX0111", 48 + len(body) + 24)]
    assert kinds(data).count("padding") == 1
    assert again(data) == data


# --- Basic mode ----------------------------------------------------------------------------------


def basic_record(type: int = 0, kind: int = 0, function_id: int = 4, thread: int = 7,
                 process: int = 9) -> bytes:  # fmt: skip
    if type == 1:
        return struct.pack("<HHiIIQQ", 1, 0, function_id, thread, process, 5, 0)
    return struct.pack("<HBBiQIIQ", type, 3, kind, function_id, TSC, thread, process, 0)


BASIC: dict[str, tuple[bytes, list[tuple[str, int]]]] = {
    "odd bytes": (basic_record() + b"\0" * 31, [("FXX0401", 64)]),
    "type": (basic_record(2) + basic_record(), [("FXX0402", 32)]),
    "kind": (basic_record(kind=4) + basic_record(), [("FXX0403", 32)]),
    "argument of another function": (basic_record() + basic_record(1, function_id=5),
                                     [("FXX0404", 64)]),
    "argument of another thread": (basic_record() + basic_record(1, thread=5), [("FXX0404", 64)]),
    "argument of another process": (basic_record() + basic_record(1, process=5),
                                    [("FXX0404", 64)]),
    "argument of nothing": (basic_record(1), [("FXX0404", 32)]),
    "two arguments": (basic_record() + basic_record(1) * 2, []),
}  # fmt: skip


@cases("case", BASIC)
def test_departures_in_basic_mode(case: str) -> None:
    body, expected = BASIC[case]
    data = header(3, basic=True) + body
    assert codes(data, "xray-basic") == expected
    assert again(data, "xray-basic") == data


def test_early_versions_of_basic_mode() -> None:
    body = basic_record(kind=2) + basic_record(1, process=5)
    assert codes(header(1, basic=True) + body, "xray-basic") == [("FXX0405", 32)]
    assert codes(header(2, basic=True) + body, "xray-basic") == []
    assert codes(header(4, basic=True) + body, "xray-basic") == [("FXX0002", 0), ("FXX0404", 64)]


def test_an_argument_of_basic_mode_has_the_time_of_its_call() -> None:
    records, _ = decode(basic(), "xray-basic")
    function, argument = records[2:4]
    assert (argument.ns, argument.row_offset) == (function.ns, function.offset)
    assert argument.to_json()["padding_hex"] == bytes(range(10)).hex()


# --- The encoder ---------------------------------------------------------------------------------


def refusal(given: Any, form: str = "xray", version: int = 5) -> str:
    encoder = RecordEncoder(form)
    encoder.encode({"record": "file_header", "version": version, "type": 1})
    with pytest.raises(WriteRefusedError) as refused:
        encoder.encode(given)
    return refused.value.code or ""


FUNCTION = {"record": "function", "kind": "enter", "function_id": 1, "delta": 0}
REFUSED = [
    (5, "FXX0501"),
    ({"record": "fonction"}, "FXX0501"),
    ({"record": "file_header", "version": 5, "type": 1}, "FXX0501"),
    ({"record": "function", "kind": "enter", "delta": 0}, "FXX0502"),
    (FUNCTION | {"id": 1}, "FXX0502"),
    (FUNCTION | {"delta": "1"}, "FXX0503"),
    (FUNCTION | {"kind": "entre"}, "FXX0503"),
    (FUNCTION | {"kind": 7}, "FXX0503"),
    (FUNCTION | {"function_id": 1 << 28}, "FXX0504"),
    (FUNCTION | {"function_id": -1}, "FXX0504"),
    (FUNCTION | {"delta": 1 << 32}, "FXX0504"),
    ({"record": "new_cpu", "cpu": 65536, "tsc": 0}, "FXX0504"),
    ({"record": "new_cpu", "cpu": 0, "tsc": 1 << 64}, "FXX0504"),
    ({"record": "new_buffer", "thread": 1 << 31}, "FXX0504"),
    ({"record": "pid", "process": 1, "padding_hex": "00"}, "FXX0505"),
    ({"record": "custom_event", "delta": 1 << 31, "data_hex": ""}, "FXX0504"),
    ({"record": "custom_event", "tsc": 5, "data_hex": ""}, "FXX0502"),
    ({"record": "custom_event", "delta": 5, "data_hex": "0"}, "FXX0503"),
    ({"record": "unknown", "type": 12, "raw": "00"}, "FXX0505"),
    ({"record": "unknown", "type": 9, "raw": "00" * 16}, "FXX0504"),
    ({"record": "unknown", "type": 12}, "FXX0502"),
    ({"record": "damaged", "code": "FXX0102"}, "FXX0502"),
    ({"record": "padding"}, "FXX0502"),
    ({"record": "padding", "nbytes": -1}, "FXX0504"),
    ({"record": "padding", "nbytes": 1 << 62}, "FXX0504"),
    ({"record": "padding", "nbytes": 3, "raw": "00"}, "FXX0505"),
]


@cases(("given", "code"), REFUSED)
def test_what_no_trace_can_hold_is_refused(given: Any, code: str) -> None:
    assert refusal(given) == code


def test_versions_have_fields_of_their_own() -> None:
    assert refusal({"record": "custom_event", "delta": 5, "data_hex": ""}, version=4) == "FXX0502"
    assert refusal({"record": "custom_event", "tsc": 5, "data_hex": ""}, version=4) == "FXX0502"
    encoder = RecordEncoder("xray")
    encoder.encode({"record": "file_header", "version": 4, "type": 1})
    given = {"record": "custom_event", "tsc": 5, "cpu": 3, "data_hex": "ab"}
    assert encoder.encode(given).hex() == "0b010000000500000000000000030000ab"


def test_the_header_comes_first() -> None:
    with pytest.raises(WriteRefusedError, match="file_header") as refused:
        RecordEncoder("xray").encode(FUNCTION)
    assert refused.value.code == "FXX0501"


def test_a_form_holds_its_own_records_alone() -> None:
    assert refusal({"record": "pid", "process": 1}, "xray-basic") == "FXX0501"
    encoder = RecordEncoder("xray-basic")
    with pytest.raises(WriteRefusedError):
        encoder.encode(fx.Pid(process=1))


def test_a_header_that_was_edited_is_written_as_edited() -> None:
    data = bytearray(header())
    data[7], data[31] = 0x80, 0x55
    (record,), _ = decode(bytes(data))
    assert RecordEncoder("xray").encode(record.to_json()) == data
    edited = record.to_json() | {"cycle_frequency": 1}
    assert RecordEncoder("xray").encode(edited) == header(cycle_frequency=1)


def test_times_that_were_reconstructed_are_not_heeded() -> None:
    records = [record.to_json() for record in decode(trace())[0]]
    for record in records:
        if record["record"] in {"function", "custom_event", "typed_event"}:
            record |= {"tsc": 1, "cpu": 2, "thread": 3, "process": 4}
    encoder = RecordEncoder("xray")
    assert b"".join(map(encoder.encode, records)) == trace()


# --- Any bytes -----------------------------------------------------------------------------------


def holds(data: bytes, form: str) -> None:
    """What is true of every file."""
    assert again(data, form) == data
    assert codes(data, form) == codes(data, form, mended=True)
    for record in RecordDecoder(form).records(data, mend=True):
        record.to_json()


@cases("name", ["fdr5-little", "fdr1-little", "basic3-little"])
def test_every_truncation_comes_back(name: str) -> None:
    form, whole = WHOLE[name]
    sound, _ = decode(whole, form)
    for size in sizes_of(sound):
        data = whole[:size]
        holds(data, form)
        if size >= 33:
            kept = [each for each in sound if each.offset + each.nbytes <= size]
            records, _ = decode(data, form, byte_order=sound[0].byte_order)
            count = len(kept)
            assert [each.record for each in records[:count]] == [each.record for each in kept]


@hypothesis.given(st.binary(max_size=200), st.sampled_from(["xray", "xray-basic"]))
def test_any_bytes_come_back(data: bytes, form: str) -> None:
    holds(data, form)


FIRSTS = st.sampled_from([kind << 1 | 1 for kind in range(12)] + [0, 2, 4, 6, 8, 16, 18])
PIECES = st.one_of(
    st.tuples(FIRSTS, st.binary(min_size=15, max_size=15)).map(
        lambda two: bytes([two[0]]) + two[1]
    ),
    st.tuples(FIRSTS, st.integers(0, 40)).map(lambda two: bytes([two[0], two[1]]).ljust(16, b"\0")),
    st.integers(0, (1 << 64) - 1).map(lambda word: struct.pack("<Q", word)),
    st.integers(0, 80).map(lambda nbytes: packed(fx.BufferExtents(bytes=nbytes))),
    st.just(packed(*preamble())),
    st.just(BAD_KIND * 9),
    st.binary(max_size=9),
)


@hypothesis.given(
    st.integers(0, 6),
    st.sampled_from(ORDERS),
    st.sampled_from([0, 64, 96, 128]),
    st.lists(PIECES, max_size=12),
)
def test_any_records_come_back(version: int, order: str, size: int, pieces: list[bytes]) -> None:
    data = header(version, buffer_size=size, byte_order=order) + b"".join(pieces)
    holds(data, "xray")
    holds(data, "xray-basic")


@hypothesis.given(st.sampled_from(sorted(WHOLE)), st.data())
def test_flipped_bits_come_back(name: str, data: st.DataObject) -> None:
    form, whole = WHOLE[name]
    flipped = bytearray(whole)
    for bit in data.draw(st.lists(st.integers(0, 8 * len(whole) - 1), max_size=4)):
        flipped[bit // 8] ^= 1 << bit % 8
    holds(bytes(flipped), form)


@hypothesis.given(st.integers(0, 1 << 41), st.lists(PIECES, max_size=6))
def test_whatever_a_cut_record_holds_the_findings_are_those_of_the_tables(
    later: int, pieces: list[bytes]
) -> None:
    broken = fx.NewCpu(cpu=1, tsc=TSC + later).pack()[:8]
    body = b"".join(pieces)
    holds(header() + buffer(call(), broken, call(3), body) + buffer(call()), "xray")
    holds(header() + buffer(call(), broken, body) + buffer(call()), "xray")


@cases("field", ["version", "type", "cycle_frequency"])
@cases("order", ["little", "big"])
def test_one_odd_field_does_not_change_the_byte_order(order: str, field: str) -> None:
    fields: dict[str, Any] = {"version": 5, "type": 1, "cycle_frequency": 2_600_000_000, field: 255}
    fields["byte_order"] = order
    header = read_header(fx.FileHeader(**fields).pack() + b"\x80", "xray")
    assert header is not None
    assert (header.byte_order, getattr(header, field)) == (order, 255)
