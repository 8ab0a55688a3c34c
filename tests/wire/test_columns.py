"""Records of several classes in one table: each fills the columns in its own way."""

from __future__ import annotations

import struct

import pytest
from tests.wire.support import check, opened

from fxframework import wire
from fxframework.errors import PluginError
from fxframework.testing import Expected, Sample, check_capture

from ..cases import cases

drums, rooms = wire.table("drum"), wire.table("room")


class Line(wire.Record, size=16):
    """Kind, number and value."""

    _kind = wire.kind(wire.u8())


class Drum(Line, kind=1):
    number: int = wire.u8()
    text: str = wire.text(8, pad=b"\0", defines=drums[number])


class Single(Line, kind=2):
    drum: str = wire.u8(refers=drums)
    value: float = wire.f32()


class Double(Line, kind=3):
    room: str = wire.u8(refers=rooms)
    value: float = wire.f64()


class Whole(Line, kind=4):
    _zero = wire.u8()
    value: int = wire.i32()


class Half(Line, kind=5):
    name: str = wire.text(4, pad=b"\0")


LINES = wire.Format(
    "lines",
    "Lines: for tests",
    Line,
    codes="LIN",
    tables=[
        wire.rows("counters", Single, name="drum", value="value", series=wire.always("f32")),
        wire.rows("counters", Double, name="room", value="value", id=7),
        wire.rows("counters", Whole, name=wire.always("whole"), value="value", id=9),
        wire.rows("counters", Half, name="name", value=0.5),
    ],
)
DATA = b"".join(
    part.ljust(16, b"\0")
    for part in (
        struct.pack("<BB8s", 1, 1, b"snare"),
        struct.pack("<BBf", 2, 1, 1.5),
        struct.pack("<BBd", 3, 1, 2.5),
        struct.pack("<BBi", 4, 0, -3),
        struct.pack("<BBf", 2, 9, -0.0),
        struct.pack("<B4s", 5, b"here"),
        struct.pack("<BBd", 3, 2, float("inf")),
    )
)


def test_columns_of_several_records() -> None:
    table = opened(LINES, DATA).table("counters")
    names = ["snare", "<room#1>", "whole", "<drum#9>", "here", "<room#2>"]
    assert table.texts("name") == names
    assert table.array("value").tolist() == [1.5, 2.5, -3.0, -0.0, 0.5, float("inf")]
    assert table.array("id").tolist() == [0, 7, 9, 0, 0, 7]
    assert table.texts("series") == ["f32", None, None, "f32", None, None]


def test_expected_values_of_doubles_are_doubles() -> None:
    values = [{"value": value} for value in (1.5, 2.5, -3, -0.0, 0.5, float("inf"))]
    sample = Sample("x.lines", DATA, expected=Expected(values={"counters": values}))
    check_capture(opened(LINES, DATA), sample)
    values[1] = {"value": 2.25}
    with pytest.raises(AssertionError, match=r"value is 2\.5, not 2\.25"):
        check_capture(opened(LINES, DATA), sample)


def test_batches_have_them_too() -> None:
    capture = opened(LINES, DATA)
    batches = list(capture.batches("counters", 2))
    assert [each for batch in batches for each in batch.array("id").tolist()] == [0, 7, 9, 0, 0, 7]


def test_a_text_of_one_record_alone_is_refused() -> None:
    class Said(wire.Record, size=16):
        text: str = wire.text(16)

    class Other(Line, kind=9):
        text: str = wire.text(4)

    rows = [
        wire.rows("logs", Other, message="text"),
        wire.rows("logs", Whole, message=wire.always("whole")),
    ]
    with pytest.raises(PluginError, match="message of Whole is a constant, but not that of other"):
        wire.Format("lines", "Lines", Line, codes="LIN", tables=rows)


class Mood(wire.Record, size=16):
    """A record that makes a row of two tables."""

    time: int = wire.i64(unit="ns")
    level: int = wire.u16()
    text: str = wire.text(6, pad=b"\0")


MOODS = wire.Format(
    "moods",
    "Moods: for tests",
    Mood,
    codes="MOO",
    tables=[
        wire.rows("instants", Mood, ts="time", name="text", scope=2),
        wire.rows("counters", Mood, ts="time", name="text", series="text", value="level"),
        wire.rows("moods", Mood, moods_text="text", moods_next=wire.field("level") + 1),
    ],
)


def test_a_record_may_make_rows_of_several_tables() -> None:
    rows = [(5 * number, number, f"m{number % 7}") for number in range(40_000)]
    data = b"".join(struct.pack("<qH6s", time, level, text.encode()) for time, level, text in rows)
    times, levels, texts = map(list, zip(*rows, strict=True))
    check(MOODS, data[:160])
    capture = opened(MOODS, data)
    instants, counters, moods = map(capture.table, ("instants", "counters", "moods"))
    assert instants.array("ts").tolist() == counters.array("ts").tolist() == times
    assert instants.texts("name") == counters.texts("series") == moods.texts("moods_text") == texts
    assert counters.array("value").tolist() == levels
    assert moods.array("moods_next").tolist() == [level + 1 for level in levels]


def test_a_table_without_times_does_not_keep_records_from_being_chosen_by_time() -> None:
    data = b"".join(struct.pack("<qH6s", 5 * number, number, b"m") for number in range(10))
    part = opened(MOODS, data).between(10, 22)
    assert [record.offset for record in part.records()] == [32, 48, 64]


def test_two_rows_of_one_table_are_refused() -> None:
    rows = [wire.rows("instants", Whole, ts="value"), wire.rows("instants", Whole, scope=2)]
    with pytest.raises(PluginError, match="a record Whole makes two rows of instants"):
        wire.Format("lines", "Lines", Line, codes="LIN", tables=rows)


class Narrow(Line, kind=10):
    level: int = wire.i8()


class Wide(Line, kind=11):
    level: int = wire.i16()


class Count(Line, kind=12):
    level: int = wire.u16()


class Exact(Line, kind=13):
    level: float = wire.f64()


class Huge(Line, kind=14):
    level: int = wire.u64()


class Named(Line, kind=15):
    level: str = wire.text(4)


LEVELS = {Narrow: -1, Wide: -300, Count: 65_535, Exact: 0.5}


def levels_of(*records: type[Line]) -> wire.Format:
    rows = [wire.rows("counters", record, lines_level="level", id=1) for record in records]
    return wire.Format("lines", "Lines: for tests", Line, codes="LIN", tables=rows)


@cases(("records", "kind"), [
    ([Narrow, Wide], "i2"), ([Wide, Narrow], "i2"), ([Narrow, Count, Wide], "i4"),
    ([Narrow, Exact], "f8"), ([Huge, Count], "u8"),
])  # fmt: skip
def test_a_column_of_the_formats_own_holds_the_numbers_of_every_record(
    records: list[type[Line]], kind: str
) -> None:
    format = levels_of(*records)
    made = [record(level=LEVELS.get(record, (1 << 64) - 1)) for record in records]
    table = opened(format, b"".join(each.pack() for each in made)).table("counters")
    assert table.schema.column("lines_level").kind == kind
    assert table.array("lines_level").tolist() == [each.level for each in made]


@cases("records", [[Huge], [Huge, Exact]])
def test_a_large_number_in_a_column_of_floats_is_positive(records: list[type[Line]]) -> None:
    rows = [wire.rows("counters", record, value="level") for record in records]
    format = wire.Format("lines", "Lines: for tests", Line, codes="LIN", tables=rows)
    made = [record(level=LEVELS.get(record, 1 << 63)) for record in records]
    table = opened(format, b"".join(each.pack() for each in made)).table("counters")
    assert table.array("value").tolist() == [each.level for each in made]


@cases("records", [[Narrow, Huge], [Huge, Narrow], [Narrow, Named]])
def test_what_no_column_holds_is_refused(records: list[type[Line]]) -> None:
    with pytest.raises(PluginError, match="no column holds lines_level of every record"):
        levels_of(*records)


class Item(wire.Part):
    """A part that says its size, which counts the header."""

    _kind = wire.kind(wire.u8())
    _size = wire.size(wire.u8())


class Note(Item, kind=1):
    text: str = wire.text()


class Batch(wire.Record, size=8):
    """Parts."""

    items: tuple[Item, ...] = wire.listed(Item)


@cases("size", range(10))
def test_sizes_of_parts_are_claims(size: int) -> None:
    format = wire.Format("batches", "Batches: for tests", Batch, codes="BAT")
    data = bytes([1, 2, 1, 6]) + b"text" + bytes([1, size]) + b"abcdef"
    records, _ = check(format, data)
    assert [each.record for each in records] == ["batch", "batch" if size == 8 else "damaged"]
