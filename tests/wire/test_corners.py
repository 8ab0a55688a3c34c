"""Sizes of parts, and fields that are absent though later records depend on them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.support import check

from fxframework import wire
from fxframework.wire.format import Format

last, total = wire.register(5, name="last"), wire.register(5, name="total")
names = wire.table("name")


class Item(wire.Part):
    """A part that says its size twice."""

    _kind = wire.kind(wire.u8())
    _size = wire.size(wire.u8())
    _again = wire.u8(equals=wire.SIZE)


class Bytes(Item, kind=1):
    data: bytes = wire.octets()


class Items(wire.Record):
    _size = wire.size(wire.u8())
    items: tuple[Item, ...] = wire.listed(Item)
    _whole = wire.u8(equals=wire.SIZE, tail=True)


class Mixed(wire.Part):
    """Parts of which one kind has a size."""

    _kind = wire.kind(wire.u8())


class Four(Mixed, kind=1, size=4):
    number: int = wire.u8()


class Three(Mixed, kind=2):
    number: int = wire.u16()


class Kinds(wire.Record):
    _size = wire.size(wire.u8())
    items: tuple[Mixed, ...] = wire.listed(Mixed)


class Changing(wire.Record):
    """What later records depend on may be absent."""

    flags: int = wire.u8()
    value: int = wire.u8(when=flags & 1 == 1, sets=last)
    step: int = wire.u8(when=flags & 2 == 2, adds=total)
    text: str = wire.text(2, when=flags & 4 == 4, defines=names[flags])
    name: str = wire.u8(refers=names)
    sums: int = wire.computed(total * 256 + last)


FORMATS = {
    name: wire.Format(name, name, base, codes="COR")
    for name, base in (("items", Items), ("kinds", Kinds), ("changing", Changing))
}


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.lists(st.integers(0, 13), max_size=40))
def test_every_way_agrees(name: str, data: list[int]) -> None:
    check(FORMATS[name], bytes(data))


def shown(format: Format, data: bytes) -> list[dict[str, Any]]:
    return [record.to_json() for record in check(format, data)[0]]


def test_the_size_of_a_part_is_its_own() -> None:
    sound, wrong = b"\6\1\4\4\xaa\6", b"\6\1\4\6\xaa\6"
    assert ["raw" in each for each in shown(FORMATS["items"], sound + wrong)] == [False, True]


def test_absent_fields_change_nothing() -> None:
    data = b"\0\0\1\7\0\2\3\0\4ab\4\0\4"
    found = shown(FORMATS["changing"], data)
    assert [each["sums"] for each in found] == [0x505, 0x505, 0x507, 0x807, 0x807]
    assert [each["name"] for each in found] == [*["<name#0>"] * 3, "<name#4>", "ab"]


class Packed(wire.Record):
    """A list that only later versions have, behind its count."""

    _size = wire.size(wire.u8())
    _count = wire.u8(when=last == 6)
    numbers: tuple[int, ...] | None = wire.listed(wire.u8(), _count, when=last == 6)
    value: int = wire.u8()


PACKED = Format("packed", "Packed", Packed, codes="PACK", magic=b"PACKED\0\1")


def test_a_count_that_no_record_has_is_no_reason_to_doubt_columns() -> None:
    records, _ = check(PACKED, b"PACKED\0\1" + b"\2\7" * 3)
    assert [record.to_json().get("value") for record in records[1:]] == [7, 7, 7]
