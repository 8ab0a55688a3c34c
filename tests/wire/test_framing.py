"""Where damage ends: the alignment, records off it, the format's own word, and limits of sizes."""

from __future__ import annotations

import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.support import check, opened

from fxframework import wire
from fxframework.errors import WriteRefusedError
from fxframework.io.source import Source
from fxframework.wire.encoder import Encoder
from fxframework.wire.framing import frames_of

from ..cases import cases


class Chunk(wire.Record, padding=True):
    """Kind and size in words of 4 bytes."""

    _kind = wire.kind(wire.u16())
    _words = wire.size(wire.u16(), unit=4)


class Beat(Chunk, kind=1, most=16):
    """A beat."""

    time: int = wire.u32(unit="ns")
    force: bytes = wire.octets()


class Text(Chunk, kind=2):
    """A text."""

    text: str = wire.text(pad=b"\0")


class Head(wire.Record):
    """A header of any size."""

    _magic = wire.u16(equals=0x4343)
    title: str = wire.text(until=b"\0")


ROWS = [wire.rows("instants", Beat, ts="time", scope=2)]
CHUNKS = wire.Format("chunks", "Chunks", Chunk, codes="CHU", header=Head, tables=ROWS)
ODD_HEAD = b"CCab\0"
BEATS = b"".join(struct.pack("<HHI", 1, 2, 0x5A5A5A5A + time) for time in range(5))


def kinds(data: bytes, format: wire.Format = CHUNKS) -> list[tuple[str, int]]:
    return [(each.record, each.nbytes) for each in check(format, data)[0]]


def test_records_behind_a_header_of_an_odd_size_are_found_again() -> None:
    damage = bytes([9, 9, 0, 0, 7, 7, 7, 7])
    found = kinds(ODD_HEAD + BEATS + damage + BEATS)
    assert found == [("head", 5), *5 * [("beat", 8)], ("damaged", 8), *5 * [("beat", 8)]]


@cases("lost", [1, 2, 3, 5])
def test_reading_goes_on_off_the_alignment_where_three_records_follow(lost: int) -> None:
    found = kinds(ODD_HEAD + BEATS[:16] + BEATS[16 + lost :])
    assert found[:3] == [("head", 5), ("beat", 8), ("beat", 8)]
    assert found[-2:] == [("beat", 8), ("beat", 8)]
    assert sum(size for name, size in found if name == "damaged") <= 16 - lost


def test_two_records_off_the_alignment_at_the_end_are_believed_and_one_is_not() -> None:
    for count, last in ((2, "beat"), (1, "damaged")):
        assert kinds(ODD_HEAD + b"\xff" * 7 + BEATS[: 8 * count])[-1][0] == last


@given(st.lists(st.sampled_from([BEATS, b"\xff", bytes(3), b"\1\0\2", b"\2\0\1\0", bytes(40)])))
def test_every_way_agrees_on_where_damage_ends(parts: list[bytes]) -> None:
    kinds(ODD_HEAD + b"".join(parts))


def test_zeros_behind_damage_take_time_in_proportion() -> None:
    start = time.process_time()
    capture = opened(CHUNKS, ODD_HEAD + b"\xff" * 4 + bytes(1 << 20) + BEATS)
    assert capture.summary().records
    assert time.process_time() - start < 30  # quadratic, it would take hours


class Marked(wire.Record):
    """A record that begins with a mark, which its own words may contain."""

    _mark = wire.u16()
    _kind = wire.kind(wire.u8())
    _size = wire.size(wire.u8())

    @classmethod
    def fits(cls, data: memoryview, at: int) -> bool:
        return bytes(data[at : at + 2]) == b"MK"


class Datum(Marked, kind=1):
    """Bytes."""

    value: bytes = wire.octets()


MARKED = wire.Format("marked", "Marked", Marked, codes="MRK")


def test_a_format_says_where_damage_ends() -> None:
    datum = struct.pack("<2sBB4s", b"MK", 1, 8, b"good")
    false = b"\0\0\1\4" * 2
    found = kinds(datum + b"\xff\xff\xff\xff" + false + datum + datum, MARKED)
    assert found == [("datum", 8), ("damaged", 12), ("datum", 8), ("datum", 8)]
    assert kinds(datum + b"\xff\xff\xff\xff" + false, MARKED) == [("datum", 8), ("damaged", 12)]


def test_a_kind_has_a_limit_of_its_size() -> None:
    longest = struct.pack("<HHI8s", 1, 4, 7, b"12345678")
    longer = struct.pack("<HHI12s", 1, 5, 7, b"123456789012")
    text = struct.pack("<HH16s", 2, 5, b"as long as that")
    records, capture = check(CHUNKS, ODD_HEAD + longest + longer + text + BEATS)
    assert [each.record for each in records[:4]] == ["head", "beat", "damaged", "text"]
    assert [(each.code, each.offset) for each in capture.diagnostics] == [("CHU0104", 21)]
    with pytest.raises(WriteRefusedError, match="would have 20 bytes, too many"):
        Encoder(CHUNKS).encode(Beat(time=0, force=bytes(12)))


@cases("nbytes", range(9))
def test_zeros_behind_a_text_are_kept(nbytes: int) -> None:
    text = b"ab" + bytes(nbytes + (-nbytes - 2) % 4)
    check(CHUNKS, ODD_HEAD + struct.pack("<HH", 2, 1 + len(text) // 4) + text + BEATS)


@cases("place", [-1, len(BEATS) + 1])
def test_the_loop_refuses_places_outside_of_the_file(place: int) -> None:
    frames = frames_of(CHUNKS, Source.open(BEATS))
    assert frames.entry_at(0) == 0
    assert frames.found_size == 8
    assert frames.entry_at(len(BEATS)) < 0
    with pytest.raises(IndexError, match=f"byte {place} lies outside of 40 bytes"):
        frames.entry_at(place)
    with pytest.raises(IndexError, match=f"byte {place} lies outside of 40 bytes"):
        frames.next_fitting(place, 0)
