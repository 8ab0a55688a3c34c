"""Two declared formats that use every kind of field: records with sizes, and without."""

from __future__ import annotations

from fxframework import wire

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


class Pair(Field, kind=2, order=("x", "type")):
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
