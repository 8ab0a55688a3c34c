"""Records without a field that is the same in all of them: their contents tell where they are."""

from __future__ import annotations

import numpy as np
import pytest

from fxframework import wire
from fxframework.errors import PluginError
from fxframework.kernels.frames import Frames
from fxframework.wire.contents import contents_of, resumption_by_contents, ways_of
from fxframework.wire.framing import BAD_SIZE, CUT, HIDING, PADDING, UNKNOWN, frames_of_families

from ..cases import cases

NAMES = wire.table("name")


class Note(wire.Part):
    """An item: its size in words, and bytes that the first word counts."""

    _size = wire.size(wire.bits(4, 15), unit=8)
    _bytes = wire.bits(16, 31)
    _key = wire.bits(32, 47)
    key: str = wire.text(refers=NAMES[_key], inline=0x8000, empty=0, align=8)
    data: bytes = wire.octets(_bytes, align=8)


class Short(wire.Record, padding=True):
    """The records of most kinds, whose size has 12 bits."""

    _kind = wire.kind(wire.bits(0, 3))
    _size = wire.size(wire.bits(4, 15), unit=8)


class Named(Short, kind=1):
    """A number, a text, and notes."""

    _count = wire.bits(16, 19)
    way: str = wire.bits(20, 23, values={0: "plain", 1: "timed"})
    _length = wire.bits(32, 47)
    number: int = wire.u64()
    text: str = wire.text(_length, align=8)
    time: int | None = wire.u64(when=way == 1)
    notes: tuple[Note, ...] = wire.listed(Note, _count)


class Listing(Short, kind=2):
    """Numbers, and one more in long records."""

    _count = wire.bits(16, 23)
    numbers: tuple[int, ...] = wire.listed(wire.u64(), _count)
    more: int | None = wire.u64(when=wire.SIZE >= 64)


class Long(wire.Record):
    """A record whose size has 32 bits."""

    _kind = wire.kind(wire.bits(0, 3))
    _size = wire.size(wire.bits(4, 35), unit=8)


class Payload(Long, kind=15):
    """Bytes that no number of the first word counts."""

    length: int = wire.u64()
    data: bytes = wire.octets(length, align=8)


LIKELY = {Named: {"_length": range(1, 1 << 16)}, Listing: {}}
LEAST = {1: 16, 2: 8, 15: 16}


def framing(data: bytes, *, big: bool = False) -> Frames:
    rule = resumption_by_contents(contents_of(LIKELY, big=big))
    octets = np.frombuffer(data, np.uint8)
    return frames_of_families(octets, (Short, Long), LEAST, rule, big=big)


def framed(data: bytes, *, big: bool = False, splits: bool = False) -> list[tuple[int, int, int]]:
    """Begin, end and entry of all stretches."""
    frames = framing(data, big=big)
    frames.splitting = int(splits)
    count, _ = frames.read(0, 1 << 10, len(data))
    begins = frames.places[:count].tolist()
    sizes = frames.sizes[:count].tolist()
    ends = [begin + size for begin, size in zip(begins, sizes, strict=True)]
    return list(zip(begins, ends, frames.entries[:count].tolist(), strict=True))


def words(*numbers: int, big: bool = False) -> bytes:
    return b"".join(number.to_bytes(8, "big" if big else "little") for number in numbers)


def named(nbytes: int = 3, *, size: int | None = None, way: int = 0) -> list[int]:
    """The words of a record of kind 1 with a text of so many bytes and a note of two words."""
    text = [0] * -(-nbytes // 8)
    own = 2 + len(text) + way + 2
    head = 1 | (own if size is None else size) << 4 | 1 << 16 | way << 20 | nbytes << 32
    return [head, 7, *text, *[9] * way, 2 << 4 | 5 << 16, 0x6162]


def test_ways_follow_from_the_declaration() -> None:
    plain, timed = ways_of(Named, LIKELY[Named])
    assert [len(way.parts) for way in (plain, timed)] == [2, 2]
    assert timed.parts[1].plus == 8  # the time, before the notes
    short, long = ways_of(Listing, {})
    assert len(short.parts) + 1 == len(long.parts)
    with pytest.raises(PluginError, match="not measured by the first word"):
        list(ways_of(Payload, {}))


@cases("big", [False, True])
def test_reading_goes_on_where_contents_fill_a_record(big: bool) -> None:
    good = named()
    odd = [1 | 0 << 4, 5, 6]  # a size of zero
    data = words(*good, *odd, *named(20, way=1), 0, 0, 9 | 2 << 4, 1, *good, big=big)
    ends = np.cumsum([5, 3, 8, 2, 2, 5]) * 8
    expected = [0, BAD_SIZE, 0, PADDING, UNKNOWN, 0]
    stretches = framed(data, big=big)
    assert [end for _, end, _ in stretches] == ends.tolist()
    assert [entry for _, _, entry in stretches] == expected


def test_contents_say_where_a_record_of_a_damaged_size_ends() -> None:
    data = words(*named(size=4000), *named())
    assert framed(data) == [(0, 40, CUT), (40, 80, 0)]


def test_a_head_without_fields_of_its_own_needs_another_record_behind_it() -> None:
    # A word that says kind 2, one word, and nothing else, may be any small number.
    data = words(1, 2 | 1 << 4, 0xFFF, *named())
    assert framed(data) == [(0, 24, BAD_SIZE), (24, 64, 0)]


def test_records_that_a_size_hides_are_found_where_asked_for() -> None:
    hiding = words(2 | 21 << 4 | 1 << 16, *named(), *named(), *named(), *named())
    assert framed(hiding + words(*named())) == [(0, 168, 1), (168, 208, 0)]
    found = framed(hiding + words(*named()), splits=True)
    assert found[0] == (0, 8, HIDING)
    assert len(found) == 6


def test_who_knows_better_keeps_a_record_that_seems_to_hide_others() -> None:
    payload = words(15 | 17 << 4, 120, *named(), *named(), *named())
    frames = framing(payload)
    frames.splitting = 1
    asked: list[tuple[int, int]] = []
    frames.confirm = lambda place, nbytes: bool(asked.append((place, nbytes)))
    count, _ = frames.read(0, 10, len(payload))
    assert frames.sizes[:count].tolist() == [136]
    assert asked == [(0, 136)]
