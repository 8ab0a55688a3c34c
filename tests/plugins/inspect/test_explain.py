"""`fxf explain FILE@OFFSET` of Inspect: every byte is told, and what it means."""

from __future__ import annotations

import pytest

from fx_inspect.read.decoder import RecordDecoder
from fx_inspect.read.explain import explain
from fxframework.errors import UsageError
from fxframework.io.source import Source
from fxframework.io.words import FieldView

from ...cases import cases
from .trees import HEADER, Vmo, every_type, image, vectors

LEGACY = image(vectors("legacy_v0")[1])
BROKEN = HEADER + b"\x0c" + b"\xff" * 31 + b"\x01\xb0" + bytes(30) + b"odd"
FILES = {"every type": every_type(), "legacy": LEGACY, "broken": BROKEN}


def views(data: bytes, offset: int) -> list[FieldView]:
    return explain(Source.open(data), offset)


def covered(data: bytes, offset: int) -> set[int]:
    """The bytes that the explanation of the record at an offset tells of."""
    found: set[int] = set()
    for view in views(data, offset):
        if "not listed" not in view.meaning:
            found.update(range(view.offset + view.low // 8, view.offset + view.high // 8 + 1))
    return found


@cases("name", FILES)
def test_every_byte_is_told(name: str) -> None:
    data = FILES[name]
    for record in RecordDecoder().records(data):
        for step in sorted({0, 1, record.nbytes // 2, record.nbytes - 1}):
            offset = record.offset + step
            assert offset in covered(data, offset)


def test_every_bit_of_the_words_is_told_once() -> None:
    data = every_type()
    for record in RecordDecoder().records(data):
        told: set[tuple[int, int]] = set()
        for view in views(data, record.offset):
            bits = {(view.offset, bit) for bit in range(view.low, view.high + 1)}
            assert not told & bits
            told |= bits


def test_fields_have_names_values_and_meanings() -> None:
    vmo = Vmo()
    name = vmo.name("number")
    value = vmo.add("INT_VALUE", 1, parent=0, name=name, value=-7)
    told = {view.name: (view.value, view.meaning) for view in views(vmo.data, value * 16 + 3)}
    assert told["type"] == (4, "INT_VALUE")
    assert told["order"] == (1, "16 << order bytes")
    assert told["name"] == (name, "index of the name")
    assert told["value"] == ((1 << 64) - 7, "-7")
    assert told["padding"][1].startswith("'\\x00")
    told = {view.name: (view.value, view.meaning) for view in views(vmo.data, 0)}
    assert told["magic"][1] == "INSP"
    assert told["generation"] == (
        0,
        "0: odd while the VMO is being changed, 2^64 - 2 if frozen",
    )
    assert {view.section for view in views(vmo.data, 0)} == {
        "Inspect VMO format; docs, Inspect: What is read"
    }
    assert {view.section for view in views(LEGACY, 0)} == {
        "Inspect VMO heap; docs, Inspect: Two layouts"
    }


def test_slots_and_texts_are_told() -> None:
    data = every_type()
    names = [
        (view.name, view.meaning)
        for record in RecordDecoder().records(data)
        for view in views(data, record.offset)
    ]
    assert "slots[4]" in dict(names)
    assert ("slots[1]", "nan") in names
    assert ("slots[2]", "-inf") in names
    assert ("name", "child") in names
    assert any(name == "inline" and shown.startswith("'shar") for name, shown in names)
    assert ("format", "string_reference(2)") in names
    assert ("entry_type", "STRING_REFERENCE") in names
    assert ("disposition", "inline") in names


def test_reserved_bits_and_damage_are_told() -> None:
    vmo = Vmo()
    extent = vmo.add("EXTENT", next_extent=0, payload=b"01234567")
    vmo.put(extent, 0, vmo.word(extent, 0) | 1 << 63)
    assert any(view.name == "reserved" and view.value for view in views(vmo.data, extent * 16))
    told = views(BROKEN, 17)
    assert told[0].name == "damaged"
    assert told[0].meaning.startswith("no block can begin here: ")
    rest = views(BROKEN, len(BROKEN) - 1)[0]
    assert rest.meaning.startswith("bytes after the last block: ")


@cases("wanted", [32, 100, 32 + 152, 32 + 160, 32 + 200])
def test_damage_is_hex_and_ascii_and_runs_are_one_field(wanted: int) -> None:
    filler = b"\xfe" * 160
    data = HEADER[:32] + filler + b"hello, a text!!!" + filler
    told = [view for view in views(data, wanted) if view.name == "damaged"]
    assert len(told) < 12
    assert told[0].meaning == "no block can begin here: fe fe fe fe fe fe fe fe  |........|"
    meanings = [view.meaning for view in told]
    assert "68 65 6c 6c 6f 2c 20 61  |hello, a|" in meanings
    assert sum(meaning.endswith("words, the same") for meaning in meanings) in (2, 3)
    # The word that was asked for is shown by itself, and every byte belongs to one field.
    (mine,) = [view for view in told if view.offset <= wanted < view.offset + view.high // 8 + 1]
    assert mine.high == 63
    ends = [view.offset + (view.high + 1) // 8 for view in told]
    assert [view.offset for view in told[1:]] == ends[:-1]


def test_a_byte_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no byte 16"):
        views(HEADER, 16)
