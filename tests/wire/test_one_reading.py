"""Generated declarations: objects, columns and lines agree, whatever is declared and read."""

from __future__ import annotations

import random
import types
from typing import Any

import pytest
from tests.wire.support import check
from tests.wire.ways import check_ways

from fxframework import wire
from fxframework.wire.format import Format
from fxframework.wire.objects import has_columns

SEEDS, FIXED_SEEDS, STREAMS = 16, 6, 2
"""Declarations, and files of each; more were tried when this was written."""


class Point(wire.Part):
    """An item of a fixed size."""

    x: int = wire.u8()
    y: int = wire.i16()


class Note(wire.Part, pad=4):
    """An item with a size of its own."""

    kind: int = wire.kind(wire.u8())
    _size = wire.size(wire.u8(), plus=2)


class Said(Note, kind=1):
    """A text."""

    text: str = wire.text()


class OtherNote(Note, kind=wire.OTHER):
    """Anything else."""

    data: bytes = wire.octets()


class Loose(wire.Part):
    """An item that its fields end."""

    _length = wire.u8()
    text: str = wire.text(_length)
    level: int = wire.i8()


EVERY = [
    "number", "number", "word", "real", "text", "padded", "ended", "octets", "optional", "computed",
    "choice", "numbers", "points", "notes", "loose", "spare", "defined", "looked_up",
]  # fmt: skip
OF_FIXED_SIZE = ["number", "word", "real", "padded", "octets", "computed", "defined"]
FIXED_BYTES = 112


class Fields:
    """Draws the fields of a record, each of which makes a column if one can hold it."""

    def __init__(self, rng: random.Random, names: Any, registers: list[Any]) -> None:
        self.rng = rng
        self.names = names
        self.registers = registers
        self.body: dict[str, Any] = {}
        self.columns: dict[str, Any] = {}
        self.items = ""
        """The list that has a row for each item."""

    def add(self, field: Any, *, column: bool = True) -> str:
        name = f"f{len(self.body)}"
        self.body[name] = field
        if column:
            self.columns[f"x_{name}"] = name
        return name

    def integer(self, **options: Any) -> Any:
        nbytes = self.rng.choice([1, 1, 2, 3, 4, 5, 8])
        signed = bool(self.rng.randrange(2)) and not ({"refers", "values"} & options.keys())
        return wire.integer(nbytes, signed=signed, **options)

    def effect(self) -> dict[str, Any]:
        """What a number may do beside being one."""
        register = self.rng.choice(self.registers)
        return self.rng.choice([
            {}, {}, {"refers": self.names}, {"sets": register}, {"adds": register},
            {"values": {0: "zero", 1: "one", 3: "three"}}, {"most": 9}, {"below": register},
        ])  # fmt: skip

    def draw(self, count: int, *, fixed: bool) -> None:
        for _ in range(count):
            getattr(self, self.rng.choice(OF_FIXED_SIZE if fixed else EVERY))()

    def number(self) -> None:
        self.add(self.integer(**self.effect()))

    def word(self) -> None:
        """A word whose later bits have effects, too."""
        low, nbytes = 0, self.rng.choice([2, 4, 8])
        first = True
        while low + 8 <= 8 * nbytes - 3:
            high = low + self.rng.choice([1, 3, 7])
            effect = self.effect()
            self.add(wire.bits(low, high, of=nbytes if first else None, **effect))
            first, low = False, high + 1
        self.add(wire.flag(8 * nbytes - 2))

    def real(self) -> None:
        self.add(self.rng.choice([wire.f32, wire.f64])())

    def text(self) -> None:
        length = self.add(wire.u8(), column=False)
        self.body[f"_{length}"] = self.body.pop(length)
        self.add(wire.text(self.body[f"_{length}"], align=self.rng.choice([1, 1, 4])))

    def padded(self) -> None:
        self.add(wire.text(self.rng.choice([3, 8, 20]), pad=b"\0"))

    def ended(self) -> None:
        self.add(wire.text(until=b"\0"))

    def octets(self) -> None:
        self.add(wire.octets(self.rng.choice([1, 6])))

    def spare(self) -> None:
        self.add(wire.spare(self.rng.choice([1, 3])), column=False)

    def optional(self) -> None:
        number = self.add(wire.u8())
        inner = self.rng.choice([wire.u16(), wire.text(4, pad=b" "), wire.f32()])
        inner.when = self.body[number] > 3
        self.add(inner)

    def computed(self) -> None:
        register = self.rng.choice(self.registers)
        self.add(wire.computed(register * 3 - 1, signed=bool(self.rng.randrange(2))))

    def choice(self) -> None:
        tag = self.add(wire.u8())
        kinds = {0: None, 1: wire.i32(), 2: wire.text(until=b"\0")}
        self.add(wire.choice(self.body[tag], kinds, other=wire.octets(2)), column=False)

    def listed(self, item: Any, column: str = "") -> None:
        count = self.add(wire.u8(), column=False)
        self.body[f"_{count}"] = self.body.pop(count)
        name = self.add(wire.listed(item, self.body[f"_{count}"]), column=False)
        if column and not self.items and self.rng.randrange(2):
            self.items = name if column == "*" else f"{name}.{column}"

    def numbers(self) -> None:
        self.listed(self.integer(), "*")

    def points(self) -> None:
        self.listed(Point, "y")

    def notes(self) -> None:
        self.listed(Note)

    def loose(self) -> None:
        self.listed(Loose, "text")

    def defined(self) -> None:
        number = self.add(wire.u8())
        self.add(wire.text(4, pad=b"\0", defines=self.names[self.body[number]]))

    def looked_up(self) -> None:
        number = self.add(wire.u16(), column=False)
        self.body[f"_{number}"] = self.body.pop(number)
        index = self.names[self.body[f"_{number}"]]
        self.add(wire.text(refers=index, inline=0x8000, empty=0, align=2))


def generated(seed: int, *, fixed: bool = False) -> Format:
    """Return a format that nobody thought of, perhaps with records of one size."""
    rng = random.Random(seed)
    names = wire.table("name")
    registers = [wire.register(2, name="first"), wire.register(name="second")]
    sized = "none" if fixed else rng.choice(["size", "size", "none"])
    body: dict[str, Any] = {"_kind": wire.kind(rng.choice([wire.u8, wire.u64, wire.u16])())}
    if rng.randrange(2):
        body["_second"] = wire.kind(wire.bits(4, 11, of=2))
    if sized == "size":
        body["_size"] = wire.size(wire.u32(), unit=rng.choice([1, 4]))
    options = {"size": FIXED_BYTES} if fixed else {"padding": sized == "size"}
    root = types.new_class("Root", (wire.Record,), options, lambda n: n.update(body))
    rows: list[Any] = []
    for number in range(rng.randint(1, 4)):
        fields = Fields(rng, names, registers)
        fields.draw(rng.randint(1, 5 if fixed else 6), fixed=fixed)
        kind: Any = number + 1
        if "_second" in body:
            kind = (kind, rng.choice([0, 7]))
        record = types.new_class(
            f"Record{number}", (root,), {"kind": kind}, lambda n, f=fields: n.update(f.body)
        )
        columns = {**fields.columns, "x_late": registers[0] + number}
        if fields.items:
            columns["x_item"] = fields.items
        table = rng.choice(["instants", f"x_own{number}"])
        if table == "instants":
            columns["ts"] = rng.choice([registers[1], wire.field("_kind") * 1000])
        columns = (
            {f"{name}_{number}" if rng.randrange(3) else name: of for name, of in columns.items()}
            if table != "instants"
            else {name if name == "ts" else f"{name}_{number}": of for name, of in columns.items()}
        )
        rows.append(wire.rows(table, record, **columns))
    order = rng.choice(["little", "big"])
    return wire.Format("x", "Generated", root, codes="GEN", order=order, tables=rows)


def stream(format: Format, rng: random.Random) -> bytes:
    """Return records of the kinds of a format whose fields have any bytes, mostly small ones."""
    family = format.family
    parts: list[bytes] = []
    for _ in range(rng.choice([3, 30, 120])):
        small = [0, 0, 1, 1, 2, 3, 5, 9, 65, 66]
        body = bytearray(
            rng.choice(small) if rng.random() < 0.9 else rng.randrange(256)
            for _ in range(rng.choice([24, 40, 60, 100]))
        )
        cls = rng.choice(format.classes)
        if family.nbytes:
            body = (body * 5)[: cls.layout.least].ljust(family.nbytes, b"\0")
        for field, number in zip(family.kinds, cls.layout.kind, strict=False):
            put(body, family.places[field], number, format.order)
        if family.size is not None:
            least = max(family.head, cls.layout.least)
            del body[rng.randint(least, max(least, len(body))) :]
            body += bytes(max(0, least - len(body)))
            body += bytes(-len(body) % family.unit)
            put(body, family.places[family.size], len(body) // family.unit, format.order)
        parts.append(bytes(body))
    return b"".join(parts)


def put(body: bytearray, place: Any, number: int, order: str) -> None:
    """Put the number of a kind or of a size where it belongs."""
    there = slice(place.offset, place.end)
    word = int.from_bytes(body[there], order) & ~(place.mask << place.shift)  # type: ignore[arg-type]
    body[there] = (word | number << place.shift).to_bytes(place.nbytes, order)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_generated_declarations(seed: int) -> None:
    rng = random.Random(1000 + seed)
    format = generated(seed)
    for _ in range(STREAMS):
        data = stream(format, rng)
        check(format, data)
        check_ways(format, data)


@pytest.mark.parametrize("seed", range(FIXED_SEEDS))
def test_generated_declarations_of_fixed_sizes(seed: int) -> None:
    """Their objects are made from columns."""
    rng = random.Random(2000 + seed)
    format = generated(seed, fixed=True)
    assert has_columns(format) == all(cls.layout.is_exact for cls in format.classes)
    for _ in range(STREAMS):
        check(format, stream(format, rng))
