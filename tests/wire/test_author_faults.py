"""What an author of a format ran into: each was a fault of one of three readings."""

from __future__ import annotations

import struct
import threading
from typing import Any

import pytest
from hypothesis import given
from tests.wire.specimen import BLOCKS
from tests.wire.support import check, opened

from fxframework import wire
from fxframework.errors import WriteRefusedError
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.wire import strategies
from fxframework.wire.capture import DeclaredCapture, open_capture
from fxframework.wire.cursor import RefusalError
from fxframework.wire.encoder import Encoder

from ..cases import cases


@pytest.mark.timeout(60)
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("tail", [b"\xff" * 8, b"\xff" * 40, b"\xff" * 8 + b"\1" * 24])
def test_a_kind_of_all_ones_ends(second: bool, tail: bytes) -> None:
    class Root(wire.Record):
        """A kind of 8 bytes, and perhaps a second one."""

        _type = wire.kind(wire.u64())
        if second:
            _high = wire.kind(wire.u32())

    class Event(Root, kind=(1, 0) if second else 1):
        """A moment."""

        time: int = wire.u64(unit="ns")
        _length = wire.u32()
        args: bytes = wire.octets(_length)

    rows = wire.rows("instants", Event, ts="time", name=wire.always("e"))
    format = wire.Format("x", "x", Root, codes="ONE", magic=b"XXXXXXXX", tables=[rows])
    event = struct.pack("<Q", 1) + bytes(4 * second) + struct.pack("<QI2s", 5, 2, b"ab")
    _, capture = check(format, b"XXXXXXXX" + event * 2 + tail)
    assert len(capture.table("instants")) == 2


@cases("watched", [False, True])
@cases("constant", [False, True])
@cases("own", [False, True])
def test_rows_of_two_records_keep_their_cells_where_one_is_watched(
    watched: bool, constant: bool, own: bool
) -> None:
    class Root(wire.Record):
        """A kind."""

        _kind = wire.kind(wire.u64())

    class Event(Root, kind=1):
        """A moment."""

        time: int = wire.u64(unit="ns")
        data: bytes = wire.octets(8)

    class Lost(Root, kind=2):
        """What was lost, with fields that columns and objects read differently."""

        time: int = wire.u64(unit="ns")
        lost: int = wire.u64()
        _count = wire.u8()
        numbers: tuple[int, ...] = wire.listed(wire.u8(), _count)
        again: int = wire.u8(least=wire.AT)

    names = [{"name": wire.always(text)} if constant else {} for text in ("event", "lost")]
    columns: list[dict[str, Any]] = [{"x_data": "data"}, {"x_lost": "lost"}] if own else [{}, {}]
    format = wire.Format(
        "x", "x", Root, codes="WAT", magic=b"XXXXXXXX",
        tables=[
            wire.rows("instants", Event, ts="time", scope=2, **names[0], **columns[0]),
            wire.rows("instants", Lost, ts="time", scope=2, **names[1], **columns[1]),
        ],
    )  # fmt: skip
    seen: list[Any] = []
    if watched:
        members = {"watch": (Lost,), "seen": lambda _, __, record: seen.append(record.time)}
        format.capture = type("Watching", (DeclaredCapture,), members)
    lost = struct.pack("<QQQBBBB", 2, 20, 3, 2, 1, 2, 99)
    data = b"XXXXXXXX" + struct.pack("<QQQ", 1, 10, 7) + lost + struct.pack("<QQQ", 1, 30, 8)
    with open_capture(format, Source.open(data), OpenRequest()) as capture:
        table = capture.table("instants")
        assert table.plain("ts") == [10, 20, 30]
        assert table.plain("name") == (["event", "lost", "event"] if constant else [None] * 3)
        assert table.plain("scope") == ["global"] * 3
        if own:
            assert table.plain("x_data") == [(24, 8), (0, 0), (76, 8)]
            assert table.plain("x_lost") == [0, 3, 0]
    assert seen == ([20] if watched else [])


BEHIND: dict[str, Any] = {
    "sets": [(5, None), (None, 5), (6, None), (None, 6)],
    "adds": [(5, None), (None, 5), (6, None), (None, 11)],
    "refers": [("five", None), (None, 0), ("<event#6>", None), (None, 0)],
    "equals": [(5, None), (None, 0), (6, None), (None, 0)],
    "most": [(5, None), (None, 0), (6, None), (None, 0)],
}


@cases("effect", BEHIND)
def test_bits_behind_the_first_of_their_word_keep_their_effects(effect: str) -> None:
    names, register = wire.table("event"), wire.register(0)
    options: dict[str, Any] = {
        "sets": register, "adds": register, "refers": names, "equals": 5, "most": 5,
    }  # fmt: skip

    class Root(wire.Record):
        """A kind in a word."""

        _kind = wire.kind(wire.bits(0, 7))

    class Name(Root, kind=2):
        """A text."""

        id: int = wire.bits(8, 15)
        text: str = wire.text(8, pad=b"\0", defines=names[id])

    class Event(Root, kind=1):
        """Bits behind those of the kind; its text is not UTF-8, so that it is read slowly."""

        number: Any = wire.bits(8, 15, **{effect: options[effect]})
        _n = wire.u32()
        data: str = wire.text(_n)

    class Show(Root, kind=3):
        """The register."""

        value: int = wire.computed(register)

    tables = [wire.rows("x_shown", Show, x_value="value", x_late=register + 0)]
    format = wire.Format("x", "x", Root, codes="BEH", magic=b"XXXXXXXX", tables=tables)
    show = struct.pack("<Q", 3)
    events = [struct.pack("<QI2s", 1 | number << 8, 2, b"\xffb") for number in (5, 6)]
    name = struct.pack("<Q8s", 2 | 5 << 8, b"five")
    records, capture = check(
        format, b"XXXXXXXX" + name + events[0] + show + events[1] + show + b"\xff"
    )
    shown = [each.to_json() for each in records[2:6]]
    assert [(each.get("number"), each.get("value")) for each in shown] == BEHIND[effect]
    values = [value for _, value in BEHIND[effect] if value is not None]
    assert capture.table("x_shown").plain("x_late") == values


class Counted(wire.Record, most=64):
    """A record that its fields end, of up to 64 bytes."""

    _kind = wire.kind(wire.u8())
    _length = wire.u16()
    text: str = wire.text(_length)


class Line(Counted, kind=0x4C):
    """A line."""


COUNTED = wire.Format(
    "counted", "Counted", Counted, codes="CNT", tables=[wire.rows("x_lines", Line, x_text="text")]
)


def test_a_wrong_length_takes_no_more_along_than_a_record_may_have() -> None:
    line = struct.pack("<BH4s", 0x4C, 4, b"abcd")
    wrong = struct.pack("<BH4s", 0x4C, 4000, b"abcd")
    records, capture = check(COUNTED, line * 3 + wrong + line * 1000)
    assert [each.record for each in records[:5]] == ["line"] * 3 + ["damaged", "line"]
    assert records[3].nbytes == len(wrong)
    assert len(capture.table("x_lines")) == 1003
    Encoder(COUNTED).encode(Line(text="x" * 61))
    with pytest.raises(WriteRefusedError, match="would have 65 bytes, not up to 64"):
        Encoder(COUNTED).encode(Line(text="x" * 62))


@cases("sized", [False, True])
def test_a_family_without_kinds_says_itself_where_records_are(sized: bool) -> None:
    class Beat(wire.Record, **({"size": 12} if sized else {})):
        """A mark, a time."""

        _mark = wire.u32(equals=0xBEA7BEA7)
        time: int = wire.u64(unit="ns")

        @classmethod
        def fits(cls, data: memoryview, at: int) -> bool:
            return bytes(data[at : at + 4]) == b"\xa7\xbe\xa7\xbe"

    rows = [wire.rows("instants", Beat, ts="time")]
    format = wire.Format("beats", "Beats", Beat, codes="BEA", tables=rows)
    beats = [struct.pack("<IQ", 0xBEA7BEA7, time) for time in range(200)]
    records, capture = check(format, b"".join(beats[:100]) + b"stray" + b"".join(beats[100:]))
    assert [each.record for each in records] == ["beat"] * 100 + ["damaged"] + ["beat"] * 100
    assert capture.table("instants").plain("ts") == list(range(200))


def test_a_record_with_many_findings_changes_the_state_once() -> None:
    total = wire.register(name="total")

    class Root(wire.Record):
        """A kind and a size."""

        _kind = wire.kind(wire.u8())
        _size = wire.size(wire.u16())

    class Item(wire.Part):
        """A number that has a name."""

        number: int = wire.u8(values={1: "one"})

    class Many(Root, kind=1):
        """More findings than a program keeps."""

        step: int = wire.u8(adds=total)
        items: tuple[Item, ...] = wire.listed(Item)

    class Show(Root, kind=2):
        """The register."""

        value: int = wire.computed(total)

    format = wire.Format("x", "x", Root, codes="MNY")
    many = struct.pack("<BHB", 1, 104, 3) + b"\2" * 100
    records, _ = check(format, (many + struct.pack("<BH", 2, 3)) * 2)
    assert [each.value for each in records if isinstance(each, Show)] == [3, 6]


def test_a_number_that_nothing_declared_is_shown_whole() -> None:
    names = wire.table("name")

    class Root(wire.Record):
        """A kind."""

        _kind = wire.kind(wire.u8())

    class Event(Root, kind=1):
        """A reference of 8 bytes."""

        name: str = wire.u64(refers=names)

    rows = [wire.rows("instants", Event, name="name", ts=7)]
    format = wire.Format("x", "x", Root, codes="WHO", tables=rows)
    numbers = [5, 1 << 40, (1 << 64) - 1]
    _, capture = check(format, b"".join(struct.pack("<BQ", 1, number) for number in numbers))
    assert capture.table("instants").texts("name") == [f"<name#{number}>" for number in numbers]


def test_threads_may_share_a_capture() -> None:
    data = BLOCKS.sample(300_000)
    wanted = opened(BLOCKS, data).table("instants").texts("name")
    for _ in range(3):
        capture = opened(BLOCKS, data)
        found: list[Any] = []

        def read(capture: Any = capture, found: list[Any] = found) -> None:
            found.append(capture.table("instants").texts("name"))
            batches = capture.batches("instants", 999)
            found.append([text for batch in batches for text in batch.texts("name")])

        threads = [threading.Thread(target=read) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [wanted] * 12


size_said_before = wire.register(3, name="size said before")


class Sized(wire.Record):
    """A family with a class for numbers that no other class has."""

    number: int = wire.kind(wire.u8())


class Four(Sized, kind=1):
    """A list whose count is a constant, and a text without padding."""

    numbers: tuple[int, ...] = wire.listed(wire.u8(), 4)
    text: str = wire.text(9)


class AsSaid(Sized, kind=2):
    """Bytes and a list whose sizes a register says."""

    data: bytes = wire.octets(size_said_before)
    numbers: tuple[int, ...] = wire.listed(wire.u8(), size_said_before - 1)


class Rest(Sized, kind=wire.OTHER):
    """What is not known."""

    numbers: tuple[int, ...] = wire.listed(wire.u8(), 2)


SIZED = wire.Format("sized", "Sized", Sized, codes="SIZ", magic=b"SIZED\0\1\0")
SHORT_OF_WHAT_IS_SAID: dict[str, tuple[wire.Record, str]] = {
    "a constant": (
        Four(numbers=(1, 2), text="nine char"), "numbers has 2 items, but its field has 4"
    ),
    "a register": (
        AsSaid(data=b"ab", numbers=(1, 2)), "data has 2 bytes or items, and size said before is 3"
    ),
    "a sum with a register": (
        AsSaid(data=b"abc", numbers=(1,)),
        r"numbers has 1 bytes or items, and \(size said before - 1\) is 2",
    ),
}  # fmt: skip


@cases("name", SHORT_OF_WHAT_IS_SAID)
def test_what_has_not_as_many_items_as_was_said_before_is_refused(name: str) -> None:
    record, message = SHORT_OF_WHAT_IS_SAID[name]
    with pytest.raises(RefusalError, match=message):
        record.pack()
    with pytest.raises(WriteRefusedError, match=message) as refused:
        Encoder(SIZED).encode(record.to_json())
    assert refused.value.code == "SIZ0405"


def test_samples_have_as_many_items_as_a_constant_says_and_numbers_of_other_kinds() -> None:
    class Known(wire.Record):
        type: int = wire.kind(wire.u8())

    class Pair(Known, kind=1):
        numbers: tuple[int, ...] = wire.listed(wire.u8(), 2)
        text: str = wire.text(9)

    class Other(Known, kind=wire.OTHER):
        numbers: tuple[int, ...] = wire.listed(wire.u8(), 3)

    format = wire.Format("known", "Known", Known, codes="KNO", magic=b"KNOWN\0\1\0")
    records, capture = check(format, format.sample(500))
    assert capture.diagnostics.counts == {}
    kinds = {record.to_json()["record"] for record in records}
    assert kinds == {"header", "pair", "other"}


class Again(wire.Record):
    """Its fields lie in others."""

    _size = wire.size(wire.u16())
    _bits = wire.bits(0, 4, of=1)
    _spare = wire.bits(5, 7)
    _unused = wire.spare(2)
    number: int = wire.number_of(_bits, signed=True)
    unused: bytes = wire.spare(3, after=_unused)


AGAIN = wire.Format("again", "Again", Again, codes="AGA", magic=b"AGAIN\0\1\0")


def test_samples_have_numbers_of_bits_and_all_bytes_without_a_meaning() -> None:
    records, _ = check(AGAIN, AGAIN.sample(500))
    assert {record.number for record in records[1:]} == set(range(16))
    assert {len(record.unused) for record in records[1:]} == {5}


@given(strategies.files(AGAIN))
def test_strategies_make_records_of_all_fields(made: tuple[bytes, list[wire.Record]]) -> None:
    data, records = made
    assert records
    check(AGAIN, data)


@given(strategies.files(SIZED))
def test_strategies_make_as_many_items_as_a_constant_says(
    made: tuple[bytes, list[wire.Record]],
) -> None:
    data, records = made
    assert [record for record in opened(SIZED, data).records() if record.offset] == records
