"""One record as an object: it is the same whether its fields are shown or not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.specimen import BLOCKS, ITEMS, NOTES
from tests.wire.support import check
from tests.wire.test_agreement import SAMPLES as OTHERS

from fxframework import wire
from fxframework.errors import WriteRefusedError
from fxframework.io.source import Source
from fxframework.wire.cursor import AT, ShortError
from fxframework.wire.encoder import Encoder
from fxframework.wire.format import Format
from fxframework.wire.records import Record
from fxframework.wire.sample import sample
from fxframework.wire.walk import Walk

from ..cases import cases

THINGS = [
    {"record": "thing", "time": -1, "level": 3, "tags": ["a", "bc"], "values": [
        {"name": "n", "type": "number", "value": -5}, {"name": "", "type": "nothing"},
        {"name": "t", "type": "text", "value": "four"}, {"name": "e", "type": "text", "value": ""},
        {"name": "yes", "type": "flag", "value": True},
        {"name": "x", "type": 9, "value": "01020304"},
        {"note": "lost", "value": "ffffffff"},
    ]},
    {"record": "thing", "time": 1 << 62},
]  # fmt: skip


def things() -> bytes:
    encoder = Encoder(NOTES)
    return b"".join(encoder.encode(each) for each in THINGS)


FORMATS = {"notes": NOTES, "blocks": BLOCKS, "items": ITEMS}
SAMPLES = {
    "notes": things(),
    "notes-sample": sample(NOTES, 300),
    **{name: data for name, data in OTHERS.items() if name != "blocks-odd"},
}


def read_twice(format: Format, data: bytes) -> list[Record]:
    """Read every record with and without views of its fields; return the sound ones.

    A record keeps its bytes where its fields would be written as others, and only there.
    """
    found = []
    walk = Walk(format, Source.open(data))
    head = iter(walk) if format.begin and data else None
    while walk.at < len(data):
        record, _ = next(head) if head is not None and not walk.at else walk.next()
        if not isinstance(record, Record):
            continue
        end = record.offset + record.nbytes
        outcomes: list[Any] = []
        for views in (None, []):
            state = format.state()
            try:
                made, c = type(record).unpack(memoryview(data), record.offset, end, state, views)
                beside = list(c.notes), dict(c.sets), list(c.effects)
                known = {id(key): n for key, n in c.known.items() if key is not AT}
                outcomes.append((made, made.raw, beside, c.at, known))
                own = data[record.offset : record.offset + made.nbytes]
                assert (made.raw is None) == made.packs_to(memoryview(own), state)
            except ShortError as problem:
                outcomes.append((problem.number, problem.needed))
        assert outcomes[0] == outcomes[1]
        found.append(record)
    return found


@cases("name", SAMPLES)
def test_samples(name: str) -> None:
    format = FORMATS[name.partition("-")[0]]
    records = read_twice(format, SAMPLES[name])
    assert records
    assert all(record.raw is None for record in records)


@given(st.data())
@pytest.mark.parametrize("name", SAMPLES)
def test_changed_bytes(name: str, data: st.DataObject) -> None:
    part = bytearray(SAMPLES[name])
    for place in data.draw(st.lists(st.integers(0, len(part) - 1), min_size=1, max_size=6)):
        part[place] = data.draw(st.sampled_from([0, 1, 2, 3, 4, 5, 10, 16, 127, 128, 255]))
    format = FORMATS[name.partition("-")[0]]
    read_twice(format, bytes(part))


@given(st.data())
def test_changed_notes_agree_every_way(data: st.DataObject) -> None:
    part = bytearray(SAMPLES["notes"])
    for place in data.draw(st.lists(st.integers(0, len(part) - 1), max_size=6)):
        part[place] = data.draw(st.integers(0, 255))
    check(NOTES, bytes(part[: data.draw(st.integers(0, len(part)))]))


def test_own_rules_own_values() -> None:
    records, capture = check(NOTES, SAMPLES["notes"])
    assert (
        records[0].to_json().items()
        >= {**THINGS[0], "values": records[0].to_json()["values"]}.items()
    )
    shown = records[0].to_json()["values"]
    assert shown == [{**each, **({"value": None} if each.get("type") == "nothing" else {})}
                     for each in THINGS[0]["values"]]  # fmt: skip
    assert [(each.code, each.offset) for each in capture.diagnostics] == [
        ("NTE0202", 74),
        ("NTE0203", 74),
    ]
    assert list(shown[0]) == ["name", "type", "value"]


@cases(
    ("values", "code"),
    [
        ({"level": 300}, "NTE0404"),
        ({"tags": ["a"] * 4}, "NTE0411"),
        ({"tags": [""]}, "NTE0403"),
        ({"values": [{"name": "x" * 16, "type": "nothing"}]}, "NTE0411"),
        ({"values": [{"name": "", "type": "nothing", "value": 1}]}, "NTE0403"),
        ({"values": [{"name": "", "type": "number"}]}, "NTE0402"),
        ({"values": [{"name": "", "type": "number", "value": 1 << 31}]}, "NTE0404"),
        ({"values": [{"name": "", "type": "colour", "value": 1}]}, "NTE0401"),
        ({"values": [{"name": "", "type": 9, "value": "00" * 4 * 127}]}, "NTE0404"),
    ],
)
def test_what_is_refused(values: dict[str, Any], code: str) -> None:
    with pytest.raises(WriteRefusedError) as refused:
        Encoder(NOTES).encode({"record": "thing", "time": 0, **values})
    assert refused.value.code == code


def test_a_lone_surrogate_is_refused() -> None:
    thing = NOTES.base(time=0, tags=("\ud800",))
    with pytest.raises(WriteRefusedError):
        Encoder(NOTES).encode(thing)


def test_bits_and_places_of_fields_for_code_that_takes_words_apart() -> None:
    layout = NOTES.base.layout
    level = layout.bits("level")
    assert (level.low, level.limit) == (16, 255)
    assert level.get(int.from_bytes(SAMPLES["notes"][:4], "little")) == 3
    assert layout.place("time").end == 12


def test_explain_has_sections_and_shows_what_is_around_a_byte() -> None:
    record, _ = NOTES.base.unpack(memoryview(SAMPLES["notes"]), 0, 78, NOTES.state(), views := [])
    named = {view.name: view for view in views}
    assert named["level"].value == 3
    assert named["tags[1]"].meaning == "bc"
    assert {view.section for view in views} == {"Things", "Values"}
    assert record.nbytes == 78


class Mixed(wire.Record):
    """A word whose bits go on behind integers, and behind a field that may be absent."""

    early: int = wire.bits(0, 3, of=2)
    between: int = wire.u8()
    later: str = wire.bits(4, 5, values={0: "none", 1: "one", 2: "two", 3: "three"})
    sets: int = wire.bits(6, 9, most=7)
    maybe: int | None = wire.u8(when=early == 1)
    last: int = wire.bits(10, 15)


MIXED = Format("mixed", "Mixed: for tests", Mixed, codes="MIX")


@cases("mirrored", [False, True])
@cases("big", [False, True])
def test_bits_of_a_word_that_lies_before_other_fields(big: bool, mirrored: bool) -> None:
    state = MIXED.state()
    state.big, state.mirrored = big, mirrored
    given = Mixed(early=1, between=200, later="two", sets=5, maybe=9, last=33)
    data = given.pack(state)
    for views in (None, []):
        made, c = Mixed.unpack(memoryview(data), 0, len(data), state, views)
        assert made == given
        assert made.raw is None
        assert not c.notes
        assert c.at == 4
