"""Blocks of a heap: sizes that are powers of two, lengths that say more than a block holds."""

from __future__ import annotations

import math
import struct
from typing import Any

import hypothesis
import orjson
import pytest
from hypothesis import strategies as st
from tests.wire.support import check, opened, shown_by_objects
from tests.wire.ways import check_ways

from fxframework import wire
from fxframework.errors import PluginError, WriteRefusedError
from fxframework.wire.encoder import Encoder
from fxframework.wire.strategies import files

from ..cases import cases


def held(said: Any, room: Any) -> Any:
    """What a block holds of something, in the room that it has."""
    return said * (said <= room) + room * (said > room)


class Heap(wire.Record):
    """A block of ``8 << order`` bytes."""

    order: int = wire.size(wire.bits(0, 3), unit=8, power=True)
    _kind = wire.kind(wire.bits(4, 7))


class Text(Heap, kind=1):
    length: int = wire.bits(8, 31)
    text: str = wire.text(held(length, wire.SIZE - 8))


class Slots(Heap, kind=2):
    count: int = wire.bits(8, 15)
    form: int = wire.bits(16, 16)
    levels: tuple[float, ...] | None = wire.choice(
        form, {1: wire.listed(wire.f64(), held(count, wire.SIZE - 8 >> 3))}, when=form == 1
    )


class Rest(Heap, kind=3):
    number: int = wire.bits(8, 63)
    rest: bytes = wire.octets()
    room: int | None = wire.computed(wire.SIZE - 8)


class Long(Heap, kind=4):
    long: bytes = wire.octets(rules={404: 405})
    room: int | None = wire.computed(wire.SIZE - 8)


HEAP = wire.Format(
    "heap",
    "Heap",
    Heap,
    codes="HEP",
    tables=[
        wire.rows("heap_texts", Text, heap_text="text", heap_length="length"),
        wire.rows("heap_rests", Rest, heap_number="number", heap_rest="rest"),
    ],
)


def written(*records: Any) -> bytes:
    encoder = Encoder(HEAP)
    return b"".join(map(encoder.encode, records))


def test_a_block_is_as_large_as_its_power_says_and_zeros_fill_it() -> None:
    data = written(
        Text(order=2, length=3, text="abc"),
        Text(length=9, text="nine char"),
        Slots(count=2, form=1, levels=(0.5, -0.0), order=3),
        Rest(number=7, rest=b"12345678", order=1),
    )
    assert [len(data)] == [32 + 32 + 64 + 16]
    records, capture = check(HEAP, data)
    assert [(each.offset, each.nbytes) for each in records] == [
        (0, 32),
        (32, 32),
        (64, 64),
        (128, 16),
    ]
    assert [each.order for each in records] == [2, 2, 3, 1]
    assert all(each.raw is None for each in records)
    assert capture.table("heap_texts").texts("heap_text") == ["abc", "nine char"]
    assert shown_by_objects(HEAP, data) == []
    check_ways(HEAP, data)


def test_a_length_may_say_more_than_a_block_holds() -> None:
    block = struct.pack("<Q", 1 | 1 << 4 | 500 << 8) + b"12345678"
    (record,), _ = check(HEAP, block)
    assert (record.length, record.text, record.raw) == (500, "12345678", None)
    check_ways(HEAP, block)


def test_a_nan_of_a_list_keeps_its_bits_in_raw() -> None:
    numbers = struct.pack("<3Q", 0x7FF8000000000000, 0x7FF8000000000001, 0x7FF0000000000000)
    for first in (0, 8):
        data = struct.pack("<Q", 2 | 2 << 4 | 2 << 8 | 1 << 16) + numbers[first : first + 16]
        (record,), _ = check(HEAP, data.ljust(32, b"\0"))
        assert math.isnan(record.levels[0])
        assert orjson.loads(orjson.dumps(record.to_json()))["levels"][0] == "NaN"
        assert record.raw is not None
        check_ways(HEAP, data.ljust(32, b"\0"))


@cases(
    ("given", "code"),
    [
        (Text(order=1, length=9, text="nine char"), "HEP0404"),
        (Text(order=2, length=3, text="ab"), "HEP0405"),
        (Text(order=1, length=8, text="ab"), "HEP0405"),
        (Text(order=16, length=0, text=""), "HEP0404"),
        (Slots(order=1, count=1, form=1, levels=(1.0, 2.0)), "HEP0404"),
        (Slots(order=3, count=1, form=1, levels=(1.0, 2.0)), "HEP0405"),
        (Slots(order=3, count=1, form=1, levels=("x",)), "HEP0403"),
        (Slots(order=3, count=0, form=0, levels=()), "HEP0404"),
        (Rest(order=1, number=0, rest=b"1234567"), "HEP0405"),
        (Rest(order=1, number=0, rest=b"123456789"), "HEP0404"),
        (Long(order=1, long=b"123456789"), "HEP0405"),
    ],
)
def test_what_a_block_cannot_hold_is_refused(given: Any, code: str) -> None:
    with pytest.raises(WriteRefusedError) as refused:
        written(given)
    assert refused.value.code == code


@cases(("levels", "code"), [([1, 2.5], ""), (["x"], "HEP0403"), (7, "HEP0403"), (["Infinity"], "")])
def test_lists_of_floats_come_from_json(levels: Any, code: str) -> None:
    count = len(levels) if isinstance(levels, list) else 0
    line = {"record": "slots", "order": 3, "count": count, "form": 1, "levels": levels}
    if not code:
        assert len(written(line)) == 64
        return
    with pytest.raises(WriteRefusedError) as refused:
        written(line)
    assert refused.value.code == code


@hypothesis.given(files(HEAP), st.data())
def test_objects_and_columns_agree(made: tuple[bytes, list[Any]], data: st.DataObject) -> None:
    whole, _ = made
    check(HEAP, whole)
    broken = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for place in data.draw(st.lists(st.integers(0, max(0, 8 * len(broken) - 1)), max_size=4)):
        if broken:
            broken[place // 8] ^= 1 << place % 8
    check(HEAP, bytes(broken))
    check_ways(HEAP, bytes(broken))


def test_packing_by_columns_takes_powers_and_lists_of_floats() -> None:
    records = [Text(order=n % 3 + 1, length=n % 9, text="x" * min(n % 9, 8)) for n in range(64)]
    records += [
        Slots(order=4, count=n % 5, form=1, levels=tuple(0.25 * k for k in range(n % 5)))
        for n in range(64)
    ]
    records += [Slots(order=n % 4, count=n, form=0) for n in range(32)]
    data = written(*records)
    lines = [
        orjson.loads(line) for line in b"".join(opened(HEAP, data).records_json()).splitlines()
    ]
    alone: list[int] = []

    def single(row: int) -> bytes:
        alone.append(row)
        return Encoder(HEAP).encode(lines[row])

    packer = Encoder(HEAP).packer()
    assert packer is not None
    packed, ends = packer.pack(lines, single)
    assert packed.tobytes() == data
    assert ends[-1] == len(data)
    assert alone == []


def test_a_power_is_public_and_has_no_summand() -> None:
    with pytest.raises(PluginError, match="must be public"):

        class Hidden(wire.Record):
            _order = wire.size(wire.bits(0, 3), power=True)

    with pytest.raises(PluginError, match="no plus"):
        wire.size(wire.bits(0, 3), power=True, plus=1)
