"""Tables whose rows are the items of a list."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.support import check, opened, shown_by_objects

from fxframework import hookimpl, wire
from fxframework.errors import PluginError
from fxframework.host import Host
from fxframework.model.selection import Selection
from fxframework.testing.checkup import contracts_of, run_contract
from fxframework.wire import strategies
from fxframework.wire.framing import ROOM

from ..cases import cases

names = wire.table("name")


class Sample(wire.Part):
    """A measurement, at a time that counts from that of its burst."""

    _delta = wire.u16()
    name: str = wire.u8(refers=names)
    level: float = wire.f32()
    label: str = wire.text(2, pad=b"\0")


class Burst(wire.Record):
    """Kind and size."""

    _kind = wire.kind(wire.u8())
    _size = wire.size(wire.u32())


class Name(Burst, kind=1):
    """A name."""

    number: int = wire.u8()
    text: str = wire.text(defines=names[number])


class Levels(Burst, kind=2):
    """Measurements of a sensor."""

    time: int = wire.i64(unit="ns")
    _count = wire.u16()
    samples: tuple[Sample, ...] = wire.listed(Sample, _count)
    sensor: str = wire.text(4, pad=b"\0")
    counts: tuple[int, ...] = wire.listed(wire.u16())


class Early(Burst, kind=3):
    """All that rows repeat comes before the lists."""

    time: int = wire.i64(unit="ns")
    number: int = wire.u8()
    name: str = wire.u8(refers=names)
    scale: float = wire.f32()
    sensor: str = wire.text(4, pad=b"\0")
    _length = wire.u8()
    unit: str = wire.text(_length)
    twice: int = wire.computed(number * 2)
    flags: int = wire.u8()
    extra: int = wire.i16(when=flags & 1 == 1)
    _count = wire.u8()
    samples: tuple[Sample, ...] = wire.listed(Sample, _count)
    counts: tuple[int, ...] = wire.listed(wire.i16())


EARLY = wire.Format(
    "early",
    "Early: for tests",
    Burst,
    codes="EAR",
    tables=[
        wire.rows(
            "counters", Early, ts=wire.field("time") + wire.field("samples._delta"),
            name="samples.name", series="unit", value="samples.level", early_label="samples.label",
            early_twice="twice", early_extra="extra", early_of="sensor", early_scale="scale",
            early_name="name", early_next=wire.field("number") + 1, id=7,
        ),
        wire.rows("early_counts", Early, ts=wire.field("counts") + 5, early_count="counts",
                  early_sensor="sensor"),
        wire.rows("early_once", Early, ts="time", early_unit="unit"),
    ],
)  # fmt: skip
BURSTS = wire.Format(
    "bursts",
    "Bursts: for tests",
    Burst,
    codes="BUR",
    tables=[
        wire.rows(
            "counters", Levels, ts=wire.field("time") + wire.field("samples._delta"),
            name="samples.name", series="sensor", value="samples.level",
            bursts_label="samples.label",
        ),
        wire.rows("bursts_counts", Levels, ts="time", bursts_count="counts", bursts_of="sensor"),
        wire.rows("bursts_named", Name, bursts_text="text"),
    ],
)  # fmt: skip


def record(kind: int, body: bytes) -> bytes:
    return struct.pack("<BI", kind, 5 + len(body)) + body


def levels(time: int, samples: list[Any], counts: list[int]) -> bytes:
    made = b"".join(struct.pack("<HBf2s", *each) for each in samples)
    numbers = struct.pack(f"<{len(counts)}H", *counts)
    return record(2, struct.pack("<qH", time, len(samples)) + made + b"tmp\0" + numbers)


DATA = b"".join((
    record(1, b"\1cpu"),
    levels(1000, [(1, 1, 0.5, b"a\0"), (3, 1, 1.5, b"bc"), (7, 9, -2.0, b"")], [5, 65535]),
    record(1, b"\1gpu"),
    levels(2000, [], [7]),
    levels(3000, [(0, 1, 4.0, b"d\0")], []),
))  # fmt: skip


def test_an_item_is_a_row() -> None:
    _, capture = check(BURSTS, DATA)
    counters, counts, named = map(capture.table, ("counters", "bursts_counts", "bursts_named"))
    assert counters.array("ts").tolist() == [1001, 1003, 1007, 3000]
    assert counters.texts("name") == ["cpu", "cpu", "<name#9>", "gpu"]
    assert counters.texts("series") == ["tmp"] * 4
    assert counters.array("value").tolist() == [0.5, 1.5, -2.0, 4.0]
    assert counters.texts("bursts_label") == ["a", "bc", "", "d"]
    assert counts.array("bursts_count").tolist() == [5, 65535, 7]
    assert counts.array("ts").tolist() == [1000, 1000, 2000]
    assert counts.texts("bursts_of") == ["tmp"] * 3
    assert named.texts("bursts_text") == ["cpu", "gpu"]
    assert (capture.summary().start_ns, capture.summary().end_ns) == (1000, 3000)


def test_more_items_than_a_batch_has_rows() -> None:
    numbers = list(range(ROOM + 100))
    data = levels(1, [], [number % 65536 for number in numbers]) * 2 + DATA
    capture = opened(BURSTS, data)
    wanted = [*(number % 65536 for number in numbers + numbers), 5, 65535, 7]
    assert capture.table("bursts_counts").array("bursts_count").tolist() == wanted
    batches = opened(BURSTS, data).batches("bursts_counts", 999)
    assert [each for batch in batches for each in batch.array("bursts_count").tolist()] == wanted


def test_a_part_by_time_has_the_records_of_its_rows() -> None:
    capture = opened(BURSTS, DATA)
    assert capture.select(Selection(start_ns=1005)).table("counters").array("value").tolist() == [
        -2.0,
        4.0,
    ]


@given(strategies.files(BURSTS), st.integers(0, 200))
def test_every_way_agrees(made: tuple[bytes, list[Any]], cut: int) -> None:
    data, _ = made
    check(BURSTS, data)
    check(BURSTS, data[: max(0, len(data) - cut)])


@given(strategies.files(EARLY), st.integers(0, 200), st.data())
def test_columns_make_the_rows_of_items(
    made: tuple[bytes, list[Any]], cut: int, data: st.DataObject
) -> None:
    whole, _ = made
    _, capture = check(EARLY, whole)
    assert not capture.first_pass().handed
    changed = bytearray(whole[: max(0, len(whole) - cut)])
    for place in data.draw(st.lists(st.integers(0, max(0, len(changed) - 1)), max_size=3)):
        changed[place : place + 1] = data.draw(st.sampled_from([b"\0", b"\1", b"\3", b"\xff"]))
    check(EARLY, bytes(changed))


def early(numbers: list[int]) -> bytes:
    samples = [Sample(name="cpu", level=1.5, label="x")] * 2
    made = Early(
        time=1, number=2, name="cpu", scale=0.5, sensor="s", unit="C", flags=1, extra=-1,
        samples=samples, counts=numbers,
    )  # fmt: skip
    state = EARLY.state()
    state.define(names, 1, "cpu", 0, 0)
    return made.pack(state)


def test_columns_make_more_rows_of_a_record_than_a_batch_has() -> None:
    numbers = [number % 30000 for number in range(3 * ROOM)]
    data = record(1, b"\1cpu") + early([1]) * 3 + early(numbers) + early([2])
    _, capture = check(EARLY, data)
    assert not capture.first_pass().handed
    counts, counters = capture.table("early_counts"), capture.table("counters")
    assert counts.array("early_count").tolist() == [1, 1, 1, *numbers, 2]
    assert counts.array("ts").tolist() == [6, 6, 6, *(number + 5 for number in numbers), 7]
    assert counters.texts("early_of") == ["s"] * 10
    assert counters.texts("series") == ["C"] * 10
    assert counters.texts("early_name") == ["cpu"] * 10
    assert counters.array("early_scale").tolist() == [0.5] * 10
    assert counters.array("early_extra").tolist() == [-1] * 10
    assert counters.array("early_next").tolist() == [3] * 10
    assert capture.table("early_once").texts("early_unit") == ["C"] * 5


class Plugin:
    @hookimpl
    def fx_readers(self):  # type: ignore[no-untyped-def]
        return [BURSTS.reader]

    @hookimpl
    def fx_writers(self):  # type: ignore[no-untyped-def]
        return [BURSTS.writer]


def test_contracts_of_parts_hold() -> None:
    host = Host(discover=False)
    host.register(Plugin(), name="bursts")
    _, writer = contracts_of(host, "bursts", examples=3)
    parts = "extract_keeps_what_a_filter_keeps", "extract_of_everything_is_everything"
    results = list(run_contract(writer, only=[f"test_{name}" for name in parts]))
    assert [each.status for each in results] == ["ok"] * 2, results


def test_columns_of_two_lists_or_of_no_field_are_refused() -> None:
    def refused(reason: str, **columns: Any) -> None:
        with pytest.raises(PluginError, match=reason):
            wire.Format("bursts", "x", Burst, codes="BUR",
                        tables=[wire.rows("instants", Levels, **columns)])  # fmt: skip

    refused("rows are of the items of one list", ts="samples._delta", bursts_count="counts")
    refused("Sample has no field 'lavel'; did you mean", ts="time", bursts_level="samples.lavel")
    refused("bursts_all is a list of parts, which no column holds", bursts_all="samples")
    refused("Levels has no field 'time.x'", ts="time.x")


class Word(wire.Part):
    """An item whose kind alone says how long it is."""

    word: int = wire.kind(wire.u32())


class Sum(Word, kind=0):
    """Two numbers."""

    count: int = wire.u64()
    level: float = wire.f32()


class Mark(Word, kind=0xFFFF_FFFF):
    """Nothing else."""


class Step(Word, kind=wire.OTHER):
    """Any other word."""


class Way(wire.Record):
    """Words of several kinds."""

    _nbytes = wire.size(wire.u16())
    number: int = wire.u8()
    words: tuple[Word, ...] = wire.listed(Word)


WAYS_OF_WORDS = wire.Format(
    "words",
    "Words: for tests",
    Way,
    codes="WORD",
    tables=[wire.rows("words_blocks", Way, words_number="number")],
)


@given(strategies.files(WAYS_OF_WORDS), st.integers(0, 200))
def test_kinds_tell_the_sizes_of_items(made: tuple[bytes, Any], cut: int) -> None:
    data, records = made
    found, _ = check(WAYS_OF_WORDS, data)
    assert found == records
    check(WAYS_OF_WORDS, data[: max(0, len(data) - cut)])


@cases("tail", [b"", b"\1", b"\0\0\0\0", bytes(15)])
def test_items_whose_kinds_tell_their_sizes_are_read_by_columns(tail: bytes) -> None:
    words = struct.pack("<IIQfI", 7, 0, 1, 0.5, 0xFFFF_FFFF) * 100 + tail
    data = struct.pack("<HB", 3 + len(words), 7) + words
    records, _ = check(WAYS_OF_WORDS, data)
    assert shown_by_objects(WAYS_OF_WORDS, data) == []
    assert records[0].record == ("damaged" if tail else "way")
