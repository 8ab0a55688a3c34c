"""Lines of record JSON: what columns say, and what they leave to objects."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import pytest
from tests.wire.support import Found, check, findings, opened, shown_by_objects
from tests.wire.ways import check_ways

from fxframework import wire
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.wire import lines
from fxframework.wire.capture import open_capture
from fxframework.wire.format import Format

from ..cases import cases

NAMES = wire.table("name")


class Empty(wire.Part):
    """An item that shows nothing."""

    _zero = wire.u8()


class Inner(wire.Part):
    """An item of an item."""

    _length = wire.u8()
    text: str = wire.text(_length)
    real: float = wire.f32()


class Outer(wire.Part):
    """An item of one of two kinds, with a size of its own."""

    kind: int = wire.kind(wire.u8())
    _size = wire.size(wire.u8())


class Listing(Outer, kind=1):
    """It has items, too."""

    _count = wire.u8()
    inner: tuple[Inner, ...] = wire.listed(Inner, _count)


class Referring(Outer, kind=2, keys=("name", "type")):
    """It refers to a text by number, or has it."""

    _index = wire.u16()
    name: str = wire.text(refers=NAMES[_index], inline=0x8000, empty=0)


class Optional(Outer, kind=3, keys=("number", "type")):
    """Its first key may be missing."""

    _flag = wire.bits(0, 0, of=1)
    number: int = wire.u8(when=_flag == 1)


class Thing(wire.Record):
    """What every record begins with."""

    _kind = wire.kind(wire.u8())
    _size = wire.size(wire.u16())


class Name(Thing, kind=1):
    """It declares a text."""

    number: int = wire.u16()
    text: str = wire.text(defines=NAMES[number])


class Nested(Thing, kind=2):
    """Lists within lists, of several kinds."""

    _count = wire.u8()
    empty: tuple[Empty, ...] = wire.listed(Empty, _count)
    outer: tuple[Outer, ...] = wire.listed(Outer)


class Ambiguous(Thing, kind=3):
    """Two numbers have one name, and a number is not what follows from its field."""

    color: str = wire.u8(values={1: "red", 2: "red", 3: "blue"})
    _there = wire.u8()
    there: int = wire.u8(when=_there != 0)
    tag: int = wire.u8()
    _length = wire.u8()
    value: Any = wire.choice(tag, {1: wire.text(_length), 2: wire.u8()}, other=None)


class Own(Thing, kind=4):
    """It has a key of its own."""

    number: int = wire.u8()

    def show(self, out: dict[str, Any]) -> None:
        """Show the number twice."""
        super().show(out)
        out["twice"] = 2 * self.number

    beside = frozenset({"twice"})

    @classmethod
    def parse(cls, form: Any) -> dict[str, Any]:
        """Take the number."""
        form.used.add("twice")
        return super().parse(form)


class Padded(Thing, kind=5):
    """Texts with padding, one in a field of its own size."""

    first: str = wire.text(4, pad=b" ")
    _length = wire.u8()
    second: str = wire.text(_length, pad=b"\0", align=4)


class Unless(Thing, kind=6):
    """A field is missing if a hidden number is 3; it is written as 0 or 1."""

    _number = wire.u8()
    there: int = wire.u8(when=_number != 3)


class Chosen(Thing, kind=7, keys=("type", "value")):
    """A text that may be inline, as one kind of value."""

    type: int = wire.u8()
    _index = wire.u16()
    value: Any = wire.choice(
        type, {1: wire.text(refers=NAMES[_index], inline=0x8000, empty=0), 2: wire.u8()}
    )


THINGS = Format("things", "Things", Thing, codes="THI")
TEXTS = (b"", b'a"b', b"\xff", "é".encode(), b"\xe2\x28")
REALS = (0x3F800000, 0x7FC00000, 0x7F800001, 0xFFC12345, 0x7F800000, 0xFF800000)


def sized(kind: int, body: bytes, head: str = "<BH") -> bytes:
    return struct.pack(head, kind, struct.calcsize(head) + len(body)) + body


def inner(text: bytes, bits: int) -> bytes:
    return bytes([len(text)]) + text + struct.pack("<I", bits)


def listing(*items: bytes) -> bytes:
    return sized(1, bytes([len(items)]) + b"".join(items), "<BB")


def referring(index: int, text: bytes = b"") -> bytes:
    return sized(2, struct.pack("<H", index) + text, "<BB")


def nested(*outer: bytes, empty: int = 0) -> bytes:
    return sized(2, bytes([empty]) + bytes(empty) + b"".join(outer))


def test_lists_within_lists() -> None:
    items = [inner(text, bits) for text, bits in itertools.product(TEXTS, REALS)]
    names = sized(1, struct.pack("<H", 7) + b"seven") + sized(1, struct.pack("<H", 8) + b"\xff8")
    data = names + b"".join(
        nested(
            *(listing(*items[start : start + count]) for start in range(0, len(items), 7)),
            referring(7), referring(8), referring(9), referring(0), referring(0x8002, b"hi"),
            empty=count,
        )
        for count in range(5)
    )  # fmt: skip
    records, _ = check(THINGS, data)
    assert not shown_by_objects(THINGS, data)
    assert records[3].to_json()["empty"] == [{}]
    for end in range(len(data) - 60, len(data), 3):
        check(THINGS, data[:end])


def test_a_first_key_that_may_be_missing_is_shown_by_objects() -> None:
    data = nested(sized(3, b"\1\7", "<BB"), sized(3, b"\0", "<BB"))
    records, _ = check(THINGS, data)
    assert records[0].to_json()["outer"] == [
        {"number": 7, "type": "optional"},
        {"type": "optional"},
    ]
    assert shown_by_objects(THINGS, data + nested()) == ["nested"]


VALUES = {
    (1, 2): b"ab", (2, 0): b"x", (2, 1): b"x", (3, 0): b"", (3, 9): b"",
}  # fmt: skip
"""Bytes of values by tag and length; where the value is not a text, no length is written."""


def test_what_numbers_do_not_say_is_kept_raw() -> None:
    data, wanted = b"", []
    for color, there, (tag, length) in itertools.product(range(5), range(3), VALUES):
        body = bytes([color, there, *([5] if there else []), tag, length])
        data += sized(3, body + VALUES[tag, length])
        wanted.append(color == 2 or there == 2 or (tag != 1 and length > 0))
    records, _ = check(THINGS, data)
    assert [record.raw is not None for record in records] == wanted


def test_an_empty_text_that_is_inline_is_kept_raw() -> None:
    """As one kind of a value, too; where the value is another, its number counts."""
    bodies = (b"\x01\x00\x80", b"\x01\x00\x00", b"\x02\x00\x80\x05", b"\x02\x00\x00\x05")
    records, _ = check(THINGS, b"".join(sized(7, body) for body in bodies))
    assert [record.raw is not None for record in records] == [True, False, True, False]


def test_a_hidden_number_that_is_not_what_presence_implies_is_kept_raw() -> None:
    data = b"".join(sized(6, bytes([number, *([9] if number != 3 else [])])) for number in range(5))
    records, _ = check(THINGS, data)
    assert [record.raw is None for record in records] == [number == 1 for number in range(5)]


def test_a_class_that_shows_keys_of_its_own_is_shown_by_objects() -> None:
    data = sized(4, b"\3") + nested() + sized(4, b"\4")
    records, _ = check(THINGS, data)
    assert [record.to_json().get("twice") for record in records] == [6, None, 8]
    assert shown_by_objects(THINGS, data) == ["own", "own"]


@cases("length", range(6))
def test_padding_that_writing_does_not_add_is_kept_raw(length: int) -> None:
    for text, behind in itertools.product((b"ab\0\0\0\0", b"abcdef", bytes(6)), range(4)):
        body = b"ab  " + bytes([length]) + text[:length] + bytes(behind)
        check(THINGS, sized(5, body))


def test_lines_do_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    thing = sized(1, struct.pack("<H", 7) + b"seven") + nested(referring(7), listing(inner(b"", 1)))
    data = 9 * (thing + b"\0\0" + sized(4, b"\3") + sized(99, b"unknown"))
    wanted = b"".join(opened(THINGS, data).records_json())
    for nbytes in (1, 20, 100):
        monkeypatch.setattr(lines, "BLOCK_BYTES", nbytes)
        pieces = list(opened(THINGS, data).records_json())
        assert b"".join(pieces) == wanted
        assert len(pieces) > 1
        assert all(piece.endswith(b"\n") for piece in pieces)


def test_findings_beyond_the_limit_are_counted() -> None:
    data = 5 * (sized(99, b"") + nested(referring(6)))
    found: list[list[Any]] = []
    for read in ("records_json", "scan"):
        request = OpenRequest(limits=Limits(max_findings=2))
        capture = open_capture(THINGS, Source.open(data), request)
        list(getattr(capture, read)() or ())
        of_capture: Found = findings(capture)
        found.append([of_capture, capture.diagnostics.counts])
    assert found[0] == found[1]
    assert len(found[0][0]) == 4


# --- Registers ------------------------------------------------------------------------------------

LEVEL, CHANGES = wire.register(5, name="level"), wire.register(name="changes")


class Step(wire.Record, size=4):
    """A record of four bytes."""

    _kind = wire.kind(wire.u8())


class Keep(
    Step, kind=1, sets={LEVEL: LEVEL * wire.field("keep") + wire.field("value") * CHANGES}
):  # fmt: skip
    """It keeps the level, or not, and adds to it; a factor of 2 is for objects."""

    keep: int = wire.u8()
    value: int = wire.u8()
    _zero = wire.u8()
    level: int = wire.computed(LEVEL)


class Change(Step, kind=2, sets={CHANGES: wire.field("on")}):
    """It says whether values count."""

    on: int = wire.u8()
    _rest = wire.u16()


STEPS = Format(
    "steps", "Steps", Step, codes="STE",
    tables=[wire.rows("steps_seen", Keep, steps_level=LEVEL, steps_value="value")],
)  # fmt: skip


def test_a_register_is_kept_or_set_by_a_factor() -> None:
    numbers = [0, 1, 1, 0, 1, 1, 1, 2, 1, 0, 1]
    data = b"".join(
        bytes([1, keep, value + 3, 0]) + (bytes([2, value % 2, 0, 0]) if value % 3 == 0 else b"")
        for value, keep in enumerate(numbers)
    )
    check(STEPS, data)
    check_ways(STEPS, data)
    without_factors = data.replace(bytes([1, 2, 10, 0]), b"")
    _, capture = check(STEPS, without_factors)
    assert not capture.first_pass().handed
