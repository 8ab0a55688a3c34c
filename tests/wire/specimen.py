"""Two declared formats that use every kind of field: records with sizes, and without."""

from __future__ import annotations

from typing import Any

import attrs

from fxframework import wire
from fxframework.errors import Rule, Severity
from fxframework.wire.cursor import Cursor, ShortError

words = wire.table("word")
clock = wire.register(name="clock")
version = wire.register(1, name="version")


class Block(wire.Record, padding=True, most=4096):
    """A block: its kind, its size in units of 4 bytes, and the size again at its end."""

    _kind = wire.kind(wire.u16())
    _units = wire.size(wire.u16(), unit=4)
    _again = wire.u32(equals=wire.SIZE, tail=True)


class Start(Block, kind=0x0A0A, clears=[words], sets={clock: 0}):
    """A stretch begins: byte order and version."""

    order: str = wire.byte_order(0x01020304)
    version: int = wire.u8(sets=version)
    _zero = wire.integer(3)


class Word(Block, kind=2):
    """A word that others refer to."""

    number: int = wire.u16()
    _length = wire.u16()
    text: str = wire.text(_length, align=4, defines=words[number])


class Tick(Block, kind=3, when=version < 2):
    """A moment of the first version."""

    delta: int = wire.u32(adds=clock, unit="ns")
    word: str = wire.bits(0, 15, of=4, refers=words)
    color: str = wire.bits(16, 19, values={0: "red", 1: "green", 2: "blue"})
    hot: bool = wire.flag(20)
    level: int = wire.bits(24, 31, signed=True)


class LongTick(Block, kind=3, when=version >= 2):
    """A moment of later versions: the word may be inline."""

    delta: int = wire.i64(adds=clock, unit="ns")
    _word = wire.bits(0, 15, of=4)
    _more = wire.bits(16, 16)
    word: str = wire.text(refers=words[_word], inline=0x8000, empty=0, align=4)
    extra: int = wire.u32(when=_more == 1)


class Sample(Block, kind=4):
    """Numbers and bytes."""

    real: float = wire.f64()
    single: float = wire.f32()
    small: int = wire.i8()
    odd: int = wire.integer(3)
    name: str = wire.text(8, pad=b"\0")
    path: str = wire.text(until=b"\0", align=4)
    payload: bytes = wire.octets()


class Field(wire.Part, pad=4):
    """An item with a size of its own, padded behind it."""

    code: int = wire.kind(wire.u16())
    _length = wire.size(wire.u16(), plus=4)


class Comment(Field, kind=1):
    """A text."""

    text: str = wire.text()


class Pair(Field, kind=2, keys=("x", "type")):
    """Two numbers."""

    x: int = wire.i32()
    y: int = wire.i32()


class OtherField(Field, kind=wire.OTHER):
    """Anything else."""

    data: bytes = wire.octets()


class Point(wire.Part):
    """An item without kinds."""

    x: int = wire.u8()
    y: int = wire.u8()


class Fields(Block, kind=5):
    """Lists."""

    _points = wire.u8()
    _numbers = wire.u8()
    _zero = wire.u16()
    points: tuple[Point, ...] = wire.listed(Point, _points)
    numbers: tuple[int, ...] = wire.listed(wire.i16(), _numbers)
    _filler = wire.bits(0, 7, of=1)
    fields: tuple[Field, ...] = wire.listed(Field)


BLOCKS = wire.Format(
    "blocks",
    "Blocks: for tests",
    Block,
    codes="BLK",
    tables=[
        wire.rows("instants", Tick, ts=clock, name="word", scope=2, blocks_level="level"),
        wire.rows("instants", LongTick, ts=clock, name="word", scope=2),
        wire.rows(
            "blocks_samples",
            Sample,
            blocks_real="real",
            blocks_single="single",
            blocks_odd="odd",
            blocks_path="path",
            blocks_payload="payload",
        ),
    ],
)


class Item(wire.Record):
    """A record whose fields say where it ends."""

    _kind = wire.kind(wire.u8())


class Short(Item, kind=1):
    """A number."""

    value: int = wire.u16(unit="ns")


class Long(Item, kind=2, size=12):
    """A record of a fixed size."""

    value: int = wire.i64(unit="ns")


class Said(Item, kind=3):
    """A counted text."""

    _length = wire.u8()
    text: str = wire.text(_length - 1)


class Checked(Item, kind=4, size=16):
    """A record with checksums."""

    value: int = wire.u32()
    name: str = wire.text(4, pad=b"\0")
    _xor = wire.u8(equals=wire.byte_xor())
    _sum = wire.u16(equals=(wire.byte_sum() + 7) & 0xFFFF)
    _crc = wire.u32(equals=wire.crc32(), tail=True)


class Head(wire.Record):
    """The header of a file."""

    _magic = wire.u32(equals=0x4D455449)
    flags: int = wire.u32()


ITEMS = wire.Format(
    "items",
    "Items: for tests",
    Item,
    codes="ITM",
    header=Head,
    order="big",
    tables=[
        wire.rows("instants", Short, ts="value", ticks="value"),
        wire.rows("instants", Long, ts="value", ticks=7),
    ],
)


# --- Values of several kinds, findings of the author's, items that do not fit ---------------------

SMALL = Rule("NTE0201", Severity.INFO, "a small number", "Notes", "Numbers are large.")
STRAY = Rule("NTE0202", Severity.WARNING, "stray bits", "Notes", "Bits are zero.")
TOO_LONG = Rule("NTE0203", Severity.DATA_LOSS, "a text that does not fit", "Notes", "Texts fit.")
MANY = Rule("NTE0204", Severity.DATA_LOSS, "too many tags", "Notes", "At most 3.")
WIDE = Rule("NTE0411", Severity.ERROR, "a text is too long", "Notes", "Texts are short.")
inline = wire.table("inline", closed=True)


def inline_text(reference: Any, bit: int) -> Any:
    return wire.text(
        refers=inline[reference], inline=bit, empty=0, align=4,
        rules={104: TOO_LONG, 105: STRAY, 108: TOO_LONG, 404: WIDE},
    )  # fmt: skip


class Value(
    wire.Part, word=4, keys=("name", "type", "value"), rules={105: STRAY}, section="Values"
):
    """A named value; what does not fit is kept as bytes."""

    type: str = wire.bits(0, 3, values={0: "nothing", 1: "number", 2: "text", 3: "flag"},
                          rules={106: 0})  # fmt: skip
    _words = wire.bits(4, 10, equals=wire.SIZE >> 2, rules={106: SMALL})
    _name = wire.bits(11, 15)
    _text = wire.bits(16, 23)
    _flag = wire.finding(SMALL, (type == 3) & (_text == 0), value=_words + 1)
    name: str = inline_text(_name, 0x10)
    value: Any = wire.choice(
        type,
        {0: None, 1: wire.i32(), 2: inline_text(_text, 0x80), 3: wire.flag_of(_text)},
        other=wire.octets(_words * 4 - wire.AT, rules={104: TOO_LONG}),
    )
    note: str = attrs.field(default="")

    @classmethod
    def recover(cls, c: Cursor, problem: ShortError) -> Value:
        at = c.at
        c.at = min(c.limit, at + 4)
        c.notes.append((problem.number, at, 0))
        return cls(type=15, name="", value=bytes(c.data[at : c.at]), note="lost", offset=at)

    def put(self, state: Any, big: bool) -> bytes:
        return self.value if self.note else super().put(state, big)

    def to_json(self) -> dict[str, Any]:
        return {"note": self.note, "value": self.value.hex()} if self.note else super().to_json()

    @classmethod
    def parse(cls, form: Any) -> dict[str, Any]:
        if "note" not in form:
            return super().parse(form)
        note, value = form.text("note"), form.octets("value")
        return {"type": 15, "name": "", "value": value, "note": note}


class Thing(wire.Record, word=4, keys=("time", "level", "tags", "values"), section="Things"):
    """A record of things: numbers in another order in JSON, tags, and values to the end."""

    _kind = wire.bits(0, 3, equals=5)
    _size = wire.size(wire.bits(4, 15))
    level: int = wire.bits(16, 23, default=7)
    time: int = wire.i64(unit="ns")
    tags: tuple[str, ...] = wire.texts(wire.u8(), most=3, longest=9, many=(MANY, WIDE), default=())
    values: tuple[Value, ...] = wire.listed(Value, default=())


NOTES = wire.Format(
    "notes",
    "Notes: for tests",
    Thing,
    codes="NTE",
    rules=[SMALL, STRAY, TOO_LONG, MANY, WIDE],
    tables=[wire.rows("instants", Thing, ts="time")],
)
