"""Declarations that contradict themselves are refused, with class, field and reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fxframework import wire
from fxframework.errors import PluginError

from ..cases import cases


def overlapping() -> None:
    class Base(wire.Record):
        a: int = wire.bits(0, 7)
        b: int = wire.bits(7, 9)


def outside_of_the_word() -> None:
    class Base(wire.Record, word=4):
        a: int = wire.bits(30, 32)


def too_large() -> None:
    class Base(wire.Record, size=8):
        _kind = wire.kind(wire.u8())

    class One(Base, kind=1):
        a: int = wire.u32()
        b: int = wire.u32()


def a_name_of_no_number() -> None:
    class Base(wire.Record):
        state: str = wire.u8(values={256: "late"})


def a_constant_that_does_not_fit() -> None:
    class Base(wire.Record):
        version: int = wire.i8(equals=200)


def limits_that_cross() -> None:
    class Base(wire.Record):
        level: float = wire.f64(least=2, most=1)


def later_length() -> None:
    later = wire.u8()

    class Base(wire.Record):
        text: str = wire.text(later)
        length: int = later


def same_kind() -> None:
    class Base(wire.Record, size=8):
        _kind = wire.kind(wire.u8())

    class One(Base, kind=1):
        pass

    class Two(Base, kind=1):
        pass


def kind_too_large() -> None:
    class Base(wire.Record, size=8):
        _kind = wire.kind(wire.u8())

    class One(Base, kind=256):
        pass


def no_kind() -> None:
    class Base(wire.Record, size=8):
        _kind = wire.kind(wire.u8())

    class One(Base):
        pass


def taken_name() -> None:
    class Base(wire.Record):
        offset: int = wire.u8()


def two_sizes() -> None:
    class Base(wire.Record, size=8):
        _size = wire.size(wire.u8())


def unknown_option() -> None:
    class Base(wire.Record, siez=8):  # type: ignore[call-arg]
        pass


def empty_items() -> None:
    class Item(wire.Part):
        pass

    class Base(wire.Record):
        items: tuple[Item, ...] = wire.listed(Item)


def hidden_text() -> None:
    class Base(wire.Record):
        _text = wire.text(4)


def tangled_length() -> None:
    class Base(wire.Record):
        _a = wire.u8()
        text: str = wire.text(_a * _a)


def kind_without_place() -> None:
    class Base(wire.Record):
        text: str = wire.text(until=b"\0")
        _kind = wire.kind(wire.u8())


def no_such_field() -> None:
    class Base(wire.Record, size=8):
        a: int = wire.u64()

    wire.Format("x", "x", Base, codes="XXX", tables=[wire.rows("instants", Base, ts="b")])


def no_such_column() -> None:
    class Base(wire.Record, size=8):
        a: int = wire.u64()

    wire.Format("x", "x", Base, codes="XXX", tables=[wire.rows("instants", Base, t="a")])


def truth() -> None:
    class Base(wire.Record):
        a: int = wire.u8()
        b: int = wire.u8(when=a == 1 and a == 2)


def float_in_an_expression() -> None:
    class Base(wire.Record):
        load: float = wire.f32()
        _high = wire.finding(9, load > 1)


def unknown_option_of_a_field() -> None:
    class Base(wire.Record):
        load: float = wire.f32(below=2)


def limit_without_a_size() -> None:
    class Base(wire.Record):
        _kind = wire.kind(wire.u8())

    class One(Base, kind=1, most=8):
        text: str = wire.text(until=b"\0")


def hidden_kind_of_others() -> None:
    class Base(wire.Record, size=8):
        _kind = wire.kind(wire.u8())

    class One(Base, kind=1):
        pass

    class Other(Base, kind=wire.OTHER):
        pass

    wire.Format("x", "x", Base, codes="XXX")


def two_limits_of_a_kind() -> None:
    version = wire.register()

    class Base(wire.Record):
        _kind = wire.kind(wire.u8())
        _size = wire.size(wire.u8())

    class Old(Base, kind=1, most=8, when=version < 2):
        pass

    class New(Base, kind=1, when=version >= 2):
        pass


def named(name: str) -> Callable[[], Any]:
    """A record with a field of a name that it has already, for something else."""

    def declared() -> Any:
        return type("Base", (wire.Record,), {name: wire.u32(), "__annotations__": {name: int}})

    declared.__name__ = name
    return declared


def same_name_as_damage() -> Any:
    class Base(wire.Record, size=4):
        _kind = wire.kind(wire.u32())

    class Damaged(Base, kind=1):
        pass

    return wire.Format("f", "F", Base, codes="FFFF")


def hidden_kind_of_other_parts() -> Any:
    class Item(wire.Part):
        _kind = wire.kind(wire.u8())
        _size = wire.size(wire.u8())

    class Other(Item, kind=wire.OTHER):
        data: bytes = wire.octets()

    class Base(wire.Record):
        _size = wire.size(wire.u8())
        items: tuple[Item, ...] = wire.listed(Item)

    return wire.Format("f", "F", Base, codes="FFFF")


def parts_in_themselves() -> Any:
    class Item(wire.Part):
        _kind = wire.kind(wire.u8())
        _size = wire.size(wire.u8())

    class Nested(Item, kind=1):
        items: tuple[Item, ...] = wire.listed(Item)

    class Base(wire.Record):
        _size = wire.size(wire.u8())
        items: tuple[Item, ...] = wire.listed(Item)

    return wire.Format("f", "F", Base, codes="FFFF")


def fields_of_a_shared_class() -> Any:
    class Shared(wire.Record, shared=True):
        _kind = wire.kind(wire.u8())

    return Shared


def order_of_a_header() -> Any:
    class Head(wire.Record):
        order: str = wire.byte_order(0x4D4B)

    class Base(wire.Record):
        a: int = wire.u8()

    return wire.Format("f", "F", Base, codes="FFFF", header=Head)


def a_field_by_its_name() -> Any:
    class Base(wire.Record):
        _kind = wire.kind(wire.u8())
        length: int = wire.u8()

    class One(Base, kind=1):
        text: str = wire.text(wire.field("length"))

    return One


def time_that_is_a_float() -> Any:
    class Base(wire.Record):
        time: float = wire.f64()

    return wire.Format(
        "f", "F", Base, codes="FFFF", tables=[wire.rows("instants", Base, ts="time")]
    )


def rows_of_a_list_of_floats() -> Any:
    class Base(wire.Record):
        _count = wire.u8()
        levels: tuple[float, ...] = wire.listed(wire.f32(), _count)

    rows = wire.rows("counters", Base, name=wire.always("level"), value="levels")
    return wire.Format("f", "F", Base, codes="FFFF", tables=[rows])


CASES: dict[Callable[[], Any], str] = {
    named("record"): "Base.record: the name is taken",
    named("pack"): "Base.pack: the name is taken",
    named("self"): "Base.self: the name is taken",
    same_name_as_damage: "Damaged: every format has records called damaged",
    hidden_kind_of_other_parts: "Other._kind: tells which other kind it is",
    parts_in_themselves: "Nested.items: holds parts of its own family",
    fields_of_a_shared_class: "Shared: is shared, so _kind belongs into the families",
    order_of_a_header: "Head.order: a header has no byte order",
    time_that_is_a_float: "ts is of kind 'i8', which",
    rows_of_a_list_of_floats: "value is a list of floats, which no column holds",
    overlapping: "Base.b: overlaps an earlier field",
    outside_of_the_word: "Base.a: bit 32 is not in its word of 4 bytes",
    too_large: "One.b: ends at byte 9 of a record of 8 bytes",
    a_name_of_no_number: "256 is not a number of the field, which holds 0 to 255",
    a_constant_that_does_not_fit: "200 is not a number of the field, which holds -128 to 127",
    limits_that_cross: "least is 2, and most only 1",
    later_length: r"Base.text: depends on .*length, which does not come before it",
    a_field_by_its_name: r"One.text: depends on wire.field\('length'\), which",
    same_kind: r"Two: has the kind \(1,\) of .*One",
    kind_too_large: "One._kind: kind 256 does not fit its field",
    no_kind: "One: says no kind",
    taken_name: "Base.offset: the name is taken",
    two_sizes: "Base._size: is a second size",
    unknown_option: "Base: no option 'siez'",
    empty_items: "may have no bytes",
    hidden_text: "Base._text: has a value, so its name must be public",
    tangled_length: "Base.text: its length is .*, not one field times a number plus one",
    kind_without_place: "Base._kind: has no fixed place",
    no_such_field: "Base has no field 'b'",
    no_such_column: "there is no column 't'",
    truth: "no truth value",
    float_in_an_expression: r"Base._high: depends on .*load: expressions are of integers",
    limit_without_a_size: "One: says most=…, but no field says a size",
    hidden_kind_of_others: "Other._kind: tells which other kind it is, so its name must be public",
    two_limits_of_a_kind: "New: says not the most=8 of its kind",
    unknown_option_of_a_field: "a field of kind float has no option 'below'",
}


@cases("case", CASES, ids=lambda case: case.__name__)
def test_refused(case: Callable[[], Any]) -> None:
    with pytest.raises(PluginError, match=CASES[case]) as refused:
        case()
    assert refused.value.remedy or case in (empty_items, no_such_field)
