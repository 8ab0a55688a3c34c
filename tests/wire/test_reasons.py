"""Why records are not read: each reason has a finding of its own; samples that an author gives."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from tests.wire.support import check

from fxframework import hookimpl, wire
from fxframework.errors import PluginError
from fxframework.host import Host
from fxframework.testing.checkup import advice_of

from ..cases import cases

version = wire.register(1)


class Sized(wire.Record):
    _kind = wire.kind(wire.u8())
    _size = wire.size(wire.u8())


class Old(Sized, kind=1):
    x: int = wire.u32()


class New(Sized, kind=2, when=version >= 2):
    x: int = wire.u32()


class Unsized(wire.Record):
    _kind = wire.kind(wire.u8())


class Named(Unsized, kind=1):
    _length = wire.u8()
    text: str = wire.text(_length - 4)


class Later(Unsized, kind=2, when=version >= 2):
    x: int = wire.u16()


class Numbers(wire.Record):
    _count = wire.u8()
    numbers: tuple[int, ...] = wire.listed(wire.u16(), _count - 2)


SIZED = wire.Format("sized", "Sized", Sized, codes="SIZE")
UNSIZED = wire.Format("unsized", "Unsized", Unsized, codes="UNSI")
NUMBERS = wire.Format("numbers", "Numbers", Numbers, codes="NUMB")


@cases(
    ("form", "data", "expected"),
    [
        (SIZED, b"\2\6abcd\1\6abcd", ("SIZE0111", 0, "not of this version: kind 0x2")),
        (SIZED, b"\3\6abcd\1\6abcd", ("SIZE0103", 0, "unknown kind: kind 0x3")),
        (UNSIZED, b"\1\6ab\2ab", ("UNSI0112", 4, "not of this version, and nothing says how")),
        (UNSIZED, b"\1\6ab\1\3ab\1\6ab", ("UNSI0110", 4, "a length below its least: 4 bytes")),
        (UNSIZED, b"\1\6ab\1\7ab", ("UNSI0102", 4, "cut off: 4 bytes")),
        (NUMBERS, b"\3ab\1\3ab", ("NUMB0110", 3, "a length below its least: 1 byte")),
    ],
)
def test_each_reason_has_its_finding(
    form: wire.Format, data: bytes, expected: tuple[str, int, str]
) -> None:
    _, capture = check(form, data)
    (finding,) = capture.diagnostics
    code, offset, words = expected
    assert (finding.code, finding.offset) == (code, offset)
    assert words in finding.message


# --- Samples -------------------------------------------------------------------------------------


class Header(wire.Record):
    _magic = wire.u32(equals=0x4B4D)
    start: int = wire.i64(unit="ns")


class Beat(wire.Record, size=9):
    number: int = wire.u8(most=3)
    time: int = wire.i64(unit="ns")


def beats(turn: int) -> list[Any]:
    first = [Header(start=5)] if not turn else []
    return [*first, Beat(number=turn % 2, time=turn), {"record": "beat", "number": 3, "time": 0}]


BEATS = wire.Format("beats", "Beats", Beat, codes="BEAT", header=Header)
BEATS.sample_records = beats


@cases("nbytes", [0, 30, 100, 1000])
def test_a_sample_is_what_its_author_says(nbytes: int) -> None:
    data = BEATS.sample(nbytes)
    records, _ = check(BEATS, data)
    count = max(1, (nbytes - 12) // 18)
    expected = [record for turn in range(count) for record in beats(turn)]
    shown = [{**each, "record": "beat"} if isinstance(each, dict) else each for each in expected]
    assert len(records) == len(shown)
    assert records[:2] == expected[:2]
    assert data == BEATS.sample(nbytes)
    assert max(30, nbytes) - 18 <= len(data) <= max(30, nbytes)


def test_samples_of_turns_without_records_end() -> None:
    form = wire.Format("beats", "Beats", Beat, codes="BEAT")
    form.sample_records = lambda turn: [] if turn else [Beat(number=1, time=1)]
    assert form.sample(1000) == struct.pack("<Bq", 1, 1)


def test_a_sample_that_cannot_be_made_says_what_to_do() -> None:
    class Base(wire.Record):
        number: int = wire.kind(wire.u8())
        size: int = wire.size(wire.u8())

    class One(Base, kind=0):
        pass

    class Rest(Base, kind=wire.OTHER):
        numbers: tuple[int, ...] = wire.listed(wire.u8(), wire.register(5, name="five"))

    form = wire.Format("rest", "Rest", Base, codes="REST")
    with pytest.raises(PluginError, match="of the fields of rest") as refused:
        form.sample(100)
    assert "FORMAT.sample_records" in str(refused.value.remedy)


# --- Detection -----------------------------------------------------------------------------------


def test_what_every_record_begins_with_is_a_magic() -> None:
    class Marked(wire.Record):
        _mark = wire.u32(equals=0x65617407)
        _kind = wire.kind(wire.u8())

    class One(Marked, kind=1):
        pass

    assert wire.Format("marked", "M", Marked, codes="MRKD").constant == b"\x07\x74\x61\x65"
    assert wire.Format("marked", "M", Marked, codes="MRKD", magic=b"LOG").constant == b"LOG"
    assert wire.Format("fitting", "F", Fitting, codes="FITT").constant == b""  # one byte


# --- Advice --------------------------------------------------------------------------------------


class Fitting(wire.Record):
    _mark = wire.u8(equals=7)
    _count = wire.u8()
    numbers: tuple[int, ...] = wire.listed(wire.u16(), _count)

    @classmethod
    def fits(cls, data: memoryview, at: int) -> bool:
        return data[at] == 7


@cases(
    ("form", "is_advised"),
    [
        (NUMBERS, True), (SIZED, False), (UNSIZED, False), (BEATS, False),
        (wire.Format("fitting", "Fitting", Fitting, codes="FITT"), False),
    ],
)  # fmt: skip
def test_a_family_without_kind_size_and_fits_is_pointed_out(
    form: wire.Format, is_advised: bool
) -> None:
    class Plugin:
        @hookimpl
        def fx_readers(self) -> Any:
            return form.reader

    host = Host(discover=False)
    host.register(Plugin(), name="mine")
    advice = advice_of(host, "mine")
    assert bool(advice) == is_advised
    if advice:
        assert advice[0].endswith("give Numbers a `fits`")


def test_a_sample_of_records_that_all_have_a_mark_is_as_long_as_any() -> None:
    class Packet(wire.Record):
        order: str = wire.byte_order(0xC1FC1FC1)
        time: int = wire.u64(unit="ns")

    form = wire.Format("packets", "Packets", Packet, codes="PCK")
    assert len(form.sample(1000)) in range(980, 1001)
