"""Whatever is declared: records come back, and columns have what objects have."""

from __future__ import annotations

import types
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.wire.specimen import BLOCKS, ITEMS
from tests.wire.support import check, opened

from fxframework import wire
from fxframework.errors import PluginError, Rule, Severity
from fxframework.model.selection import Selection
from fxframework.wire import strategies
from fxframework.wire.format import Format
from fxframework.wire.records import Record

from ..cases import cases

Body = dict[str, Any]
UNITS = (1, 2, 4, 8)
TIME, STEPS = wire.register(name="time"), wire.register(name="steps")


def class_of(name: str, base: Any, options: dict[str, Any], body: Body) -> Any:
    return types.new_class(name, (base,), options, lambda space: space.update(body))


@st.composite
def words(draw: st.DrawFn, name: str) -> Body:
    """Bits of one word: some with names, some reserved."""
    nbytes = draw(st.sampled_from(UNITS))
    bounds = draw(st.lists(st.integers(0, 8 * nbytes - 1), min_size=1, max_size=5, unique=True))
    ends = sorted(bounds)
    body: Body = {}
    for number, (low, end) in enumerate(zip(ends, [*ends[1:], 8 * nbytes], strict=True)):
        high = draw(st.integers(low, end - 1))
        options: dict[str, Any] = {"of": nbytes} if number == 0 else {}
        signed = draw(st.booleans())
        if high == low and draw(st.booleans()):
            made = wire.flag(low, **options)
        else:
            made = wire.bits(low, high, signed=signed and high > low, **options)
        hidden = "_" if draw(st.integers(0, 5)) == 0 else ""
        body[f"{hidden}{name}_{number}"] = made
    return body


@st.composite
def fields(draw: st.DrawFn, name: str, table: Any) -> Body:
    """A field, with what it depends on before it."""
    kind = draw(st.sampled_from([
        "integer", "bits", "float", "enumeration", "fixed", "counted", "terminated", "numbers",
        "parts", "optional", "defining", "referring", "inline", "constant", "closed", "spare",
        "adding", "context",
    ]))  # fmt: skip
    align = draw(st.sampled_from((1, 1, 2, 4, 8)))
    number = wire.integer(draw(st.integers(1, 8)), signed=draw(st.booleans()))
    if kind == "integer":
        return {name: number}
    if kind == "bits":
        return draw(words(name))
    if kind == "float":
        return {name: draw(st.sampled_from((wire.f32, wire.f64)))()}
    if kind == "enumeration":
        names = draw(st.dictionaries(st.integers(0, 255), st.text(max_size=3), min_size=1))
        unique = {text: value for value, text in names.items()}
        return {name: wire.u8(values={value: text for text, value in unique.items()})}
    if kind == "fixed":
        pad = draw(st.sampled_from((b"", b"\0", b" ")))
        make = draw(st.sampled_from((wire.text, wire.octets)))
        return {name: make(draw(st.integers(1, 20)), pad=pad, align=align)}
    if kind == "terminated":
        return {name: wire.text(until=draw(st.sampled_from((b"\0", b"\n"))), align=align)}
    if kind == "optional":
        flag = wire.bits(0, 0, of=1)
        return {f"_{name}_there": flag, name: wire.u32(when=flag == 1)}
    if kind == "closed":
        numbers = range(draw(st.integers(0, 2)), draw(st.integers(3, 6)))
        names = {number: f"n{number}" for number in numbers}
        return {name: wire.bits(1, 3, of=1, closed=True, values=names)}
    if kind == "spare":
        first = wire.spare(draw(st.integers(1, 5)))
        more = wire.spare(draw(st.integers(1, 9)), after=first)
        return {f"_{name}": first, f"{name}_between": wire.u16(), name: more}
    if kind == "adding":
        step = wire.i32(adds=TIME)
        when = draw(st.sampled_from((None, STEPS)))
        shown = wire.computed(TIME + step, signed=draw(st.booleans()), when=when)
        return {f"{name}_step": step, f"{name}_time": shown}
    if kind == "context":
        nbits = draw(st.sampled_from((5, 16, 32, 64)))
        return {
            f"{name}_a": wire.computed(STEPS * 3, nbits=nbits, signed=draw(st.booleans())),
            f"{name}_b": wire.computed(STEPS, when=STEPS == 2),
            f"{name}_steps": wire.u8(sets=STEPS),
        }
    if kind == "constant":
        return {f"_{name}": wire.u16(equals=draw(st.integers(0, 65535)))}
    if kind == "referring":
        return {name: wire.u16(refers=table)}
    count = draw(st.sampled_from((wire.u8, wire.u16, wire.u32)))()
    length = f"_{name}_length"
    if kind == "counted":
        plus = draw(st.integers(0, 3))
        make = draw(st.sampled_from((wire.text, wire.octets)))
        return {length: count, name: make(count - plus, align=align)}
    if kind == "numbers":
        return {length: count, name: wire.listed(number, count)}
    if kind == "defining":
        index = wire.u16()
        return {
            f"{name}_index": index, length: count,
            name: wire.text(count, align=align, defines=table[index]),
        }  # fmt: skip
    if kind == "inline":
        index = wire.u16()
        return {
            f"_{name}_index": index,
            name: wire.text(refers=table[index], inline=0x8000, empty=0, align=align),
        }
    return {length: count, name: wire.listed(draw(parts()), count)}


@st.composite
def parts(draw: st.DrawFn) -> Any:
    """A part, or a family of parts with sizes of their own."""
    if draw(st.booleans()):
        return class_of("Point", wire.Part, {}, {"x": wire.u8(), "y": wire.i16()})
    size = wire.size(wire.u8(), plus=2)
    body = {"code": wire.kind(wire.u8()), "_size": size}
    family = class_of("Item", wire.Part, {"pad": draw(st.sampled_from(UNITS))}, body)
    class_of("Said", family, {"kind": 1}, {"text": wire.text()})
    class_of("Pair", family, {"kind": 2}, {"x": wire.i32(), "_zero": wire.u8()})
    class_of("Rest", family, {"kind": wire.OTHER}, {"data": wire.octets()})
    return family


@st.composite
def formats(draw: st.DrawFn) -> Format:
    table = wire.table("name")
    sized = draw(st.sampled_from(("header", "fields", "fixed")))
    body: Body = {"_kind": wire.kind(draw(st.sampled_from((wire.u8, wire.u16)))())}
    options: dict[str, Any] = {}
    if sized == "header":
        unit = draw(st.sampled_from(UNITS))
        body["_size"] = wire.size(wire.u16(), unit=unit)
        if draw(st.booleans()):
            body["_again"] = wire.u32(equals=wire.SIZE, tail=True)
        options["padding"] = draw(st.booleans())
    elif sized == "fixed":
        options["size"] = 64
    family = class_of("Base", wire.Record, options, body)
    classes = []
    for kind in range(1, draw(st.integers(2, 4))):
        body = {}
        for number in range(draw(st.integers(1, 4))):
            body |= draw(fields(f"f{number}", table))
        if sized == "header" and draw(st.booleans()):
            body["rest"] = draw(st.sampled_from((wire.octets, wire.text)))()
        try:
            classes.append(class_of(f"Kind{kind}", family, {"kind": kind}, body))
        except PluginError:  # the fields do not fit into 64 bytes
            assert sized == "fixed"
    if not classes:
        classes.append(class_of("Plain", family, {"kind": 9}, {"value": wire.u8()}))
    rows = [
        wire.rows("made_rows", classes[0], doc="made", **{
            f"made_{field.name}": field.name
            for field in classes[0].layout.public
            if type(field).__name__ not in ("Listed", "Spare")
        })
    ]  # fmt: skip
    return wire.Format(
        "made", "Made", family, codes="MADE", tables=rows,
        magic=draw(st.sampled_from((b"", b"MADE"))), order=draw(st.sampled_from(("little", "big"))),
    )  # fmt: skip


def plain(records: list[Any]) -> list[Any]:
    return [record for record in records if isinstance(record, Record)]


@given(st.data())
def test_records_of_any_declaration_come_back(data: st.DataObject) -> None:
    format = data.draw(formats())
    whole, written = data.draw(strategies.files(format))
    records, capture = check(format, whole)
    assert plain(records) == written
    assert not any(record.raw for record in records)
    assert {each.code for each in capture.diagnostics} <= {"MADE0108", "FXF0102"}
    if format.family.size is not None or format.base.layout.fixed:
        assert not capture.first_pass().handed
    end = data.draw(st.integers(0, len(whole)))
    check(format, whole[:end])
    if whole:
        changed = bytearray(whole)
        for place in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=4)):
            changed[place] = data.draw(st.sampled_from([0, 1, 2, 3, 8, 127, 128, 255]))
        check(format, bytes(changed))


@given(st.sampled_from((BLOCKS, ITEMS)), st.data())
def test_files_of_the_specimens_come_back(format: Format, data: st.DataObject) -> None:
    whole, written = data.draw(strategies.files(format))
    records, _ = check(format, whole)
    assert [each for each in plain(records) if each.record != "head"] == written
    with opened(format, whole) as capture:
        assert capture.summary().records == len(records)


FAST = Rule("CAR0201", Severity.WARNING, "too fast", "Cars", "Cars are slow.", detail="{value}")
ODD = Rule("CAR0202", Severity.INFO, "a gear that no car has", "Cars", "It has three.", detail="")


class Car(wire.Record, size=8):
    """A car."""

    _kind = wire.kind(wire.u8())
    speed: int = wire.u8(below=130, rules={106: FAST})
    gear: Any = wire.u8(values={0: "none", 1: "first", 2: "second"}, rules={106: ODD})
    wheels: int = wire.u8(equals=4, rules={106: 0})
    doors: int = wire.u8(below=6)
    seats: int = wire.bits(0, 7, of=1, below=9, rules={106: FAST})


class Moving(Car, kind=1):
    """A car that moves."""

    tons: int = wire.u8(default=0)


CARS = wire.Format(
    "cars", "Cars", Car, codes="CAR", rules=[FAST, ODD],
    tables=[wire.rows("cars_seen", Moving, ts="speed", cars_seats="seats")],
)  # fmt: skip


@given(st.lists(st.binary(min_size=7, max_size=7), max_size=9), st.integers(0, 7))
def test_columns_report_rules_of_the_formats_own(cars: list[bytes], cut: int) -> None:
    data = b"".join(b"\1" + car for car in cars)
    data = data[: len(data) - cut]
    _, capture = check(CARS, data)
    assert not capture.first_pass().handed
    found = [each.code for each in capture.diagnostics]
    assert found.count("CAR0202") == sum(car[1] > 2 for car in cars[: len(data) // 8])
    assert "CAR0108" not in found  # a limit refers to nothing


def test_a_table_of_the_formats_own_has_times() -> None:
    with opened(CARS, bytes([1, 70, 1, 4, 5, 5, 1, 0])) as capture:
        assert capture.table("cars_seen")["ts"].tolist() == [70]
        assert capture.table("cars_seen").schema.column("ts").unit == "ns"
        view = capture.select(Selection(start_ns=71))
        assert not len(view.table("cars_seen"))


def test_reserved_bits_of_a_signed_field_are_shown_as_they_are() -> None:
    class Hit(wire.Record, size=2):
        """A hit."""

        _kind = wire.kind(wire.u8())
        _spare = wire.bits(0, 2, of=1, signed=True)
        force: int = wire.bits(3, 7)

    class Loud(Hit, kind=1):
        """A loud one."""

    format = wire.Format("made", "Made", Hit, codes="MADE")
    _, capture = check(format, b"\1\4")
    assert [each.message for each in capture.diagnostics] == ["reserved bits are set: 0x4"]


@cases("high", [62, 63])
def test_hidden_bits_that_end_a_word_are_shown_without_a_sign(high: int) -> None:
    class Wide(wire.Record):
        """A hit."""

        _kind = wire.kind(wire.bits(0, 1))
        _spare = wire.bits(2, high)

    class Wider(Wide, kind=1):
        """A wider one."""

        value: int = wire.u8()

    format = wire.Format("made", "Made", Wide, codes="MADE")
    _, capture = check(format, (1 | 1 << high).to_bytes(8, "little") + b"\0")
    wanted = f"reserved bits are set: {1 << high - 2:#x}"
    assert [each.message for each in capture.diagnostics] == [wanted]


@cases(("order", "magic"), [("little", b"\x01\x02\0"), ("big", b"\x02\x01\0")])
def test_the_constants_of_a_header_are_its_magic(order: str, magic: bytes) -> None:
    class Head(wire.Record):
        _magic = wire.u16(equals=0x0201)
        _zero = wire.u8(equals=0)
        version: int = wire.u8()

    class Base(wire.Record):
        a: int = wire.u8()

    form = wire.Format("h", "H", Base, codes="HHHH", header=Head, order=order)
    assert form.reader.magic == magic
    assert form.sample(8).startswith(magic)
