"""Columns have values of several kinds, flags of numbers, and findings of the author's."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.wire.support import check, shown_by_objects

from fxframework import wire
from fxframework.errors import Rule, Severity
from fxframework.wire import strategies

from ..cases import cases

EMPTY = Rule("CHO0201", Severity.INFO, "no name", "Choices", "Values have names.", detail="{value}")
LONG = Rule("CHO0411", Severity.ERROR, "too long", "Choices", "Texts are short.")


class Value(wire.Part):
    """A named value."""

    kind: str = wire.u8(values={0: "nothing", 1: "number", 2: "text", 3: "flag", 4: "real"})
    _size = wire.u8()
    value: Any = wire.choice(
        kind,
        {
            0: None, 1: wire.i16(), 2: wire.text(_size, rules={404: LONG}),
            3: wire.flag_of(_size), 4: wire.f64(),
        },
        other=wire.octets(_size),
    )  # fmt: skip


class Choices(wire.Record):
    """Values; the first is a choice of the record itself."""

    _size = wire.size(wire.u16())
    _bits = wire.bits(0, 5, of=1)
    _loud = wire.bits(6, 6)
    _spare = wire.bits(7, 7)
    number: int = wire.number_of(_bits, signed=True)
    loud: bool = wire.flag_of(_loud)
    _alone = wire.finding(EMPTY, (_bits & 1) == 1, value=_bits + 1)
    time: int = wire.u32(unit="ns")
    tag: int = wire.u8()
    main: Any = wire.choice(tag, {7: wire.u32(), 9: wire.octets(3)}, other=None)
    values: tuple[Value, ...] = wire.listed(Value)


FORMAT = wire.Format(
    "choices", "Choices", Choices, codes="CHO", rules=[EMPTY, LONG],
    tables=[wire.rows("instants", Choices, ts="time", scope=2)],
)  # fmt: skip


@given(strategies.files(FORMAT))
def test_only_lists_of_parts_whose_kinds_have_texts_are_left_to_objects(
    made: tuple[bytes, list[Any]],
) -> None:
    data, records = made
    _, capture = check(FORMAT, data)
    with_values = [record for record in records if record.values]
    assert capture.first_pass().handed == len(with_values)
    assert bool(shown_by_objects(FORMAT, data)) == bool(with_values)


@given(strategies.files(FORMAT), st.data())
def test_changed_bytes(made: tuple[bytes, list[Any]], data: st.DataObject) -> None:
    changed = bytearray(made[0])
    for place in data.draw(st.lists(st.integers(0, max(0, len(changed) - 1)), max_size=6)):
        changed[place : place + 1] = bytes([data.draw(st.sampled_from([0, 1, 2, 3, 4, 7, 9, 255]))])
    check(FORMAT, bytes(changed[: data.draw(st.integers(0, len(changed)))]))


@given(st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 64, 128, 255]), max_size=60))
def test_any_bytes(data: list[int]) -> None:
    check(FORMAT, bytes(data))


@cases("bits", range(256))
def test_every_word(bits: int) -> None:
    records, capture = check(FORMAT, bytes([8, 0, bits, 1, 0, 0, 0, 5]))
    assert records[0].to_json()["number"] == (bits & 31) - (bits & 32)
    found = [(each.code, each.message) for each in capture.diagnostics]
    wanted = [("CHO0201", f"no name: {(bits & 63) + 1}")] if bits & 1 else []
    assert sorted(found, reverse=True)[: len(wanted)] == wanted
    assert len(found) == len(wanted) + (bits > 127)
