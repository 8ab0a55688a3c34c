"""Where damage ends by a format's own rule, and records that a damaged size hides."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.support import check, opened

from fxframework import wire
from fxframework.errors import PluginError
from fxframework.io.sink import Sink
from fxframework.wire.framing import BEHIND, HIDING, frames_of_records, items_of
from fxframework.wire.verbs.copies import salvage

from ..cases import cases

names = wire.table("name", closed=True)


class Packet(wire.Record, align=8, padding=True, resume=wire.resume(alone=True, level=range(8))):
    """What every packet begins with."""

    _kind = wire.kind(wire.u8())
    level: int = wire.u8()
    _size = wire.size(wire.u16(), unit=8)
    _spare = wire.u32()


class Pair(wire.Part):
    """A name and a value of some type."""

    type: int = wire.bits(0, 3)
    _words = wire.bits(4, 15, equals=wire.SIZE >> 3)
    _name = wire.bits(16, 31)
    _value = wire.bits(32, 47)
    name: str = wire.text(refers=names[_name], inline=0x8000, empty=0, align=8)
    value: object = wire.choice(
        type,
        {0: None, 1: wire.i64(rules={104: 102}), 2: wire.text(_value, align=8)},
        other=wire.octets(_words * 8 - wire.AT),
        default=None,
    )


class Pairs(Packet, kind=1):
    """Pairs, up to the end of the packet."""

    time: int = wire.i64(unit="ns")
    pairs: tuple[Pair, ...] = wire.listed(Pair)


class Tail(wire.Part):
    """What may follow a packet."""

    _length = wire.bits(0, 31)
    text: str = wire.text(_length, align=8)


class Label(wire.Part):
    """Texts, and one that a byte ends."""

    number: int = wire.u64()
    tags: tuple[str, ...] = wire.texts(
        wire.u8(), most=2, longest=3, many=(101, 404), long=(102, 404)
    )
    text: str = wire.text(until=b"\0")


class Case(wire.Record, resume=wire.resume(holds=Label, most=1, number=range(100))):
    """A label behind its length."""

    _length = wire.u32()
    label: bytes = wire.octets(_length)


ROWS = [wire.rows("instants", Pairs, ts="time")]
PACKETS = wire.Format("packets", "Packets", Packet, codes="PKT", tables=ROWS)


def pair(name: bytes, value: int | bytes | None, type: int | None = None) -> bytes:
    """A pair, as its declaration says."""
    body = name + bytes(-len(name) % 8)
    kind = 0
    length = 0
    if isinstance(value, int):
        kind = 1
        body += struct.pack("<q", value)
    elif value is not None:
        kind = 2
        length = len(value)
        body += value + bytes(-len(value) % 8)
    kind = kind if type is None else type
    name_word = 0x8000 | len(name) if name else 0
    head = kind | (1 + len(body) // 8) << 4 | name_word << 16 | length << 32
    return struct.pack("<Q", head) + body


def packet(*pairs: bytes, level: int = 3, more_words: int = 0) -> bytes:
    """A packet, whose size is too large by some words."""
    body = struct.pack("<q", 5) + b"".join(pairs)
    return struct.pack("<BBHI", 1, level, 1 + len(body) // 8 + more_words, 0) + body


def numbered(count: int) -> list[bytes]:
    return [packet(pair(b"number", number), pair(b"", b"text")) for number in range(count)]


def stretches(data: bytes) -> list[tuple[str, int]]:
    return [(each.record, each.nbytes) for each in check(PACKETS, data)[0]]


def test_a_packet_that_pairs_fill_is_enough() -> None:
    one = packet(pair(b"a", 1))
    assert stretches(b"\xff" * 24 + one + b"\xff" * 8) == [
        ("damaged", 24), ("pairs", len(one)), ("damaged", 8),
    ]  # fmt: skip


def test_unfilled_ones_are_believed_in_a_row_or_at_the_end() -> None:
    odd = packet(pair(b"a", 1, type=9) + bytes(8))
    assert stretches(b"\xff" * 8 + odd * 3 + b"\xff" * 8)[0] == ("damaged", 8)
    assert stretches(b"\xff" * 8 + odd)[0] == ("damaged", 8)
    assert stretches(b"\xff" * 8 + odd + b"\xff" * 8) == [("damaged", 24 + len(odd) - 8)]


@cases("level, size", [(7, 8), (8, 8 + len(packet(pair(b"a", 1))))])
def test_numbers_of_a_head_have_to_be_likely(level: int, size: int) -> None:
    first = packet(pair(b"a", 1), level=level)
    assert stretches(b"\xff" * 8 + first + packet(pair(b"b", 2)))[0] == ("damaged", size)


def test_other_kinds_are_damage_and_zeros_are_padding() -> None:
    one = packet(pair(b"a", 1))
    other = b"\2" + one[1:]
    assert stretches(one + other + bytes(16) + one) == [
        ("pairs", len(one)), ("damaged", len(one) + 16), ("pairs", len(one)),
    ]  # fmt: skip
    assert stretches(one + bytes(16) + one)[1] == ("padding", 16)


@given(
    st.lists(
        st.sampled_from([*numbered(2), b"\xff" * 8, bytes(8), packet(b"\1" * 8, more_words=2)])
    )
)
def test_every_way_agrees_on_where_damage_ends(parts: list[bytes]) -> None:
    stretches(b"".join(parts))


@cases("words", [3, 9, 40, 1000])
def test_a_salvage_finds_packets_that_a_damaged_size_hides(words: int) -> None:
    others = b"".join(numbered(300))
    first = packet(pair(b"first", 1), more_words=words)
    sink = Sink.memory()
    losses = list(salvage(PACKETS, opened(PACKETS, first + others), sink))
    assert sink.getvalue() == others
    assert [(each.offset, each.nbytes) for each in losses] == [(0, len(first))]


def test_what_a_sound_packet_holds_stays_in_it() -> None:
    inner = b"".join(numbered(20))
    data = packet(pair(b"a", inner)) + packet(pair(b"b", 2))
    sink = Sink.memory()
    assert not list(salvage(PACKETS, opened(PACKETS, data), sink))
    assert sink.getvalue() == data


def chains(data: bytes) -> list[tuple[int, int, int]]:
    limit = np.array([len(data)])
    found = items_of(Pair.layout).chains(
        np.frombuffer(data, np.uint8), np.zeros(1, np.int64), limit
    )
    return [tuple(each) for each in found[1:].T.tolist()]


FAULTS = {
    "sound": (pair(b"name", b"text") + pair(b"", None), [(0, 24, 0), (24, 32, 0)]),
    "of another type": (pair(b"", 1, type=9), [(0, 16, 0)]),
    "a name beyond the end": (struct.pack("<Q", 0x11 | 0x8009 << 16), [(0, 8, 104)]),
    "a reference to nothing": (struct.pack("<QQ", 0x10 | 5 << 16, 0x10), [(0, 8, 108), (8, 16, 0)]),
    "no number": (struct.pack("<Q", 0x11), [(0, 8, 102)]),
    "no size": (struct.pack("<QQ", 0x09, 0x10), [(0, 16, 104)]),
}


@cases("case", FAULTS)
def test_items_of_some_types(case: str) -> None:
    data, expected = FAULTS[case]
    assert chains(data) == expected


LABELS = {
    b"\0text\0": 0, b"\1a\3abc\0\0": 0, b"\1a\1b\1c\0\0": 101, b"\4abcd\0\0": 102, b"\0text": 104,
    b"\3ab": 104, b"": 104,
}  # fmt: skip


@cases("body", LABELS)
def test_texts_in_items(body: bytes) -> None:
    data = np.frombuffer(bytes(8) + body, np.uint8)
    items = items_of(Label.layout).chains(data, np.zeros(1, np.int64), np.array([data.size]))
    _, _, _, faults = items.tolist()
    assert faults[0] == LABELS[body]


def test_one_item_fills_a_counted_payload() -> None:
    """Where a length is damaged, cases go on that their labels fill."""
    labels = [struct.pack("<Q", number) + b"\1a\0text\0" for number in range(6)]
    whole = [struct.pack("<I", len(each)) + each for each in labels]
    size = len(whole[0])
    data = struct.pack("<I", len(labels[0]) + 30) + b"".join(whole)[4:]
    frames = frames_of_records(np.frombuffer(data, np.uint8), Case)
    frames.splitting = 1
    count, _ = frames.read(0, 100, len(data))
    assert frames.places[:count].tolist() == [size * row for row in range(6)]
    assert frames.entries[:count].tolist() == [HIDING, 0, 0, 0, 0, 0]


def test_what_follows_each_record_is_a_row() -> None:
    tail = struct.pack("<Q", 5) + b"tail\1\0\0\0"
    one = packet(pair(b"a", 1))
    data = (one + tail) * 2 + one + struct.pack("<Q", 99)
    frames = frames_of_records(np.frombuffer(data, np.uint8), Packet, behind=items_of(Tail.layout))
    count, _ = frames.read(0, 100, len(data))
    assert frames.entries[: count - 1].tolist() == [0, BEHIND, 0, BEHIND, 0]
    assert frames.sizes[: count - 1].tolist() == [40, 16, 40, 16, 40]


def test_a_rule_names_numbers_and_items_that_loops_find() -> None:
    class Nameless(wire.Record, resume=wire.resume(height=range(3))):
        """It has no height."""

        _size = wire.size(wire.u32())

    class Unbounded(wire.Record, resume=wire.resume()):
        """Its items have no size that a loop finds."""

        _size = wire.size(wire.u32())
        text: str = wire.text(until=b"\0")
        pairs: tuple[Pair, ...] = wire.listed(Pair)

    for cls, message in ((Nameless, "height is not a number"), (Unbounded, "no fixed place")):
        with pytest.raises(PluginError, match=message):
            frames_of_records(np.zeros(0, np.uint8), cls)
