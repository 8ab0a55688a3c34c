"""Blocks one at a time: their fields, their JSON and their bytes, also of files that are broken."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_inspect import format as wire
from fx_inspect.format import BlockType
from fx_inspect.read import records as fx
from fx_inspect.read.decoder import RecordDecoder
from fx_inspect.rules import RULES
from fx_inspect.write.encoder import RecordEncoder
from fxframework.errors import WriteRefusedError
from fxframework.io.limits import Limits
from fxframework.kit.json_fields import CANONICAL_NAN
from fxframework.kit.lossless import DamagedRecord
from fxframework.model.diagnostics import Diagnostics
from fxframework.wire.fields import Number
from fxframework.wire.floats import Nan

from ...cases import cases
from .tree import capacity
from .trees import FILES, HEADER, Vmo, block, every_type, image, records_of, vectors

BLOCKS = {vector["name"]: vector for vector in vectors("blocks")}
LEGACY = {vector["name"]: vector for vector in vectors("legacy_v0")}
EVERYTHING = BLOCKS | FILES | LEGACY


def found_in(data: bytes, limits: Limits | None = None) -> list[tuple[str, int]]:
    """Code and offset of what the blocks of a file show by themselves."""
    diagnostics = Diagnostics(RULES, limit=0)
    list(RecordDecoder(diagnostics=diagnostics, limits=limits).records(data))
    return [(found.code, found.offset or 0) for found in diagnostics]


def round_trip(data: bytes) -> bytes:
    """A file made of the JSON of its records."""
    encoder = RecordEncoder()
    parts = [
        encoder.encode(json.loads(json.dumps(record.to_json())))
        for record in RecordDecoder().records(data)
    ]
    return b"".join([*parts, encoder.close()])


def lone(data: bytes, layout: str = "new") -> Any:
    """The block that these bytes begin with."""
    size = wire.ORDER_SIZE(data[0] & 15)
    return fx.block_of(memoryview(data)[:size], layout)


def edited(block: dict[str, Any], **changes: Any) -> bytes:
    """The bytes of a block's JSON after an edit."""
    return RecordEncoder().encode({**block, **changes})


# --- Vectors -------------------------------------------------------------------------------------


@cases("name", BLOCKS)
def test_a_block_has_the_fields_of_its_vector(name: str) -> None:
    vector = BLOCKS[name]
    shown = lone(image(vector)).to_json()
    if vector["negative"]:
        assert shown["type"] in {"ARRAY_VALUE", "NAME"}
        assert "slots" not in shown
        assert ("name_bytes_hex" in shown) == ("utf8" in name)
        return
    assert {key: shown.get(key) for key in vector["expected"]} == vector["expected"]


@cases("name", EVERYTHING)
def test_every_vector_comes_back_byte_for_byte(name: str) -> None:
    data = image(EVERYTHING[name])
    assert round_trip(data) == data
    records = records_of(data)
    assert sum(record.nbytes for record in records) == len(data)
    assert [record.offset for record in records] == [
        sum(record.nbytes for record in records[:number]) for number in range(len(records))
    ]


def test_version_0_has_the_same_names_and_says_so() -> None:
    header, name, node, *_ = records_of(image(LEGACY["legacy_small_tree"]))
    assert header.to_json() == {
        "record": "block",
        "offset": 0,
        "nbytes": 16,
        "index": 0,
        "type": "HEADER",
        "order": 0,
        "layout": "v0",
        "magic": "INSP",
        "version": 0,
        "generation": 0,
        "vmo_size": None,
        "locked": False,
        "frozen": False,
    }
    assert {header.version, name.order} <= {0, 1, 2}
    assert "layout" in node.to_json()


def test_the_layout_goes_by_the_bytes() -> None:
    assert wire.layout_of(HEADER) == "new"
    assert wire.layout_of(b"\x00\x02\x00\x00INSP") == "new"
    assert wire.layout_of(b"\x20\x00\x00\x00INSP") == "v0"
    assert wire.layout_of(b"\x20\x02\x00\x00INSP") == "new"
    assert wire.layout_of(b"") == "new"


@cases(("layout", "width"), [("new", 24), ("v0", 28)])
def test_indexes_are_as_wide_as_the_layout_says(layout: str, width: int) -> None:
    greatest = (1 << width) - 1
    fields = {"parent": greatest, "name": greatest, "value": -1}
    made = block("INT_VALUE", layout=layout, **fields)
    again = lone(made.pack(), layout)
    assert {name: getattr(again, name) for name in fields} == fields
    with pytest.raises(WriteRefusedError) as refused:
        block("INT_VALUE", layout=layout, **(fields | {"name": 1 << width})).pack()
    assert refused.value.code == "FXI0411"


# --- Framing -------------------------------------------------------------------------------------


def test_zero_units_are_padding_and_one_alone_is_free() -> None:
    data = HEADER + bytes(16) + Vmo(b"").data + bytes.fromhex("0001") + bytes(14) + bytes(64)
    kinds = [getattr(record, "type", record.record) for record in records_of(data)]
    assert kinds == ["HEADER", "FREE", "RESERVED", "padding"]
    assert found_in(data) == [("FXI0102", 32)]


def test_a_block_past_the_end_takes_the_rest() -> None:
    # What is left of earlier blocks behind a header that is cut off is no block.
    vmo = Vmo()
    vmo.data += bytes.fromhex("0700") + bytes(14)
    vmo.node("stale")
    data = bytes(vmo.data)
    *_, last = records_of(data)
    assert (last.record, last.nbytes, last.code) == ("damaged", 48, "FXI0011")
    assert found_in(data) == [("FXI0011", 16)]


def test_reading_goes_on_where_blocks_lead_to_the_end() -> None:
    vmo = Vmo()
    vmo.data += b"\x0c" + b"\xff" * 15 + b"\x1f" * 32
    node = vmo.node("sound")
    data = bytes(vmo.data)
    _, damaged, name, block = records_of(data)
    assert (damaged.nbytes, name.type, block.index) == (48, "NAME", node)
    assert found_in(data) == [("FXI0012", 16)]
    # The last block is cut off, so nothing leads to the end: the next that fits will do.
    assert [record.record for record in records_of(data[:-1])][:3] == ["block", "damaged", "block"]
    # Odd bytes at the end are told apart, so that what stands before them is the same without.
    assert [record.nbytes for record in records_of(HEADER + b"\xff" * 53)] == [16, 48, 5]


def test_odd_bytes_and_large_blocks_are_told() -> None:
    assert found_in(HEADER + b"abc") == [("FXI0013", 16)]
    large = b"\x08\x00" + bytes(4094)
    assert found_in(HEADER + large) == [("FXI0010", 16)]
    limits = Limits(max_record=2048)
    assert found_in(HEADER + large, limits) == [("FXI0014", 16)]


def test_unknown_types_are_skipped_by_their_size() -> None:
    data = HEADER + b"\x01\xb0" + b"\x55" * 30 + b"\x00\x0f" + bytes(14)
    _, first, second = records_of(data)
    assert first.to_json() | {"raw": ""} == {
        "record": "unknown",
        "offset": 16,
        "nbytes": 32,
        "index": 1,
        "type": 0xB0,
        "order": 1,
        "raw": "",
    }
    assert second.type == 15
    assert found_in(data) == [("FXI0101", 16), ("FXI0101", 48)]


@cases(
    ("header", "codes"),
    [
        ("01020200494e5350 0000000000000000 2000000000000000 0000000000000000", []),
        ("01020200494e5350 0000000000000000 4000000000000000 0000000000000000", ["FXI0008"]),
        ("01020200494e5350 0000000000000000 1000000000000000 0000000000000000", ["FXI0007"]),
        ("01020200494e5350 0000000000000000 2100000000000000 0000000000000000", ["FXI0007"]),
        ("01020200494e5350 0000000000000000 1000008000000000 0000000000000000", ["FXI0007"]),
        ("00020300494e5350 0000000000000000", ["FXI0003"]),
        ("00020000494e5350 0100000000000000", ["FXI0004", "FXI0005"]),
        ("00020200494e5350 feffffffffffffff", ["FXI0006"]),
        ("0002020050534e49 0000000000000000", ["FXI0002"]),
        ("20000000494e5350 0000000000000000", []),
        ("2000000050534e49 0000000000000000", ["FXI0002"]),
        ("20000100494e5350 0000000000000000", ["FXI0003"]),
        ("00020200494e5350 0000000000000000 00020200494e5350 0000000000000000", ["FXI0015"]),
        ("10020200494e5350 0000000000000000", ["FXI0301"]),
        ("00030200494e5350 0000000000000000", ["FXI0001"]),
    ],
)
def test_what_a_header_shows(header: str, codes: list[str]) -> None:
    assert [code for code, _ in found_in(bytes.fromhex(header))] == codes


def test_a_file_longer_than_its_header_says_is_told() -> None:
    data = bytes.fromhex("01020200494e5350 0000000000000000 2000000000000000") + bytes(4072)
    assert found_in(data) == [("FXI0009", 0)]


def test_a_bool_is_what_is_not_zero() -> None:
    vmo = Vmo()
    value = vmo.add("BOOL_VALUE", parent=0, name=0, value=True)
    vmo.put(value, 1, 2)
    shown = records_of(vmo.data)[1].to_json()
    assert shown["value"] is True
    assert shown["raw"] == vmo.data[16:].hex()
    assert found_in(vmo.data) == [("FXI0103", 16)]


# --- JSON and its edits --------------------------------------------------------------------------


def test_what_blocks_hold_behind_their_fields_is_kept() -> None:
    stale = b"\x01\x00\x05" + bytes(13) + b"left from earlier".ljust(16)[:16]
    (block,) = records_of(stale)
    assert block.raw == stale
    shown = block.to_json()
    assert shown["next_free"] == 5
    assert edited(shown) == stale
    # An edit takes effect, and what was not understood goes with it.
    assert edited(shown, next_free=6) == b"\x01\x00\x06" + bytes(29)


def test_an_edit_of_any_field_takes_effect() -> None:
    changes: dict[str, dict[str, Any]] = {
        "INT_VALUE": {"value": -8},
        "UINT_VALUE": {"value": 9},
        "DOUBLE_VALUE": {"value": "NaN"},
        "BOOL_VALUE": {"value": False},
        "NAME": {"name": "x", "length": 1},
        "EXTENT": {"payload_hex": "00" * 24},
        "STRING_REFERENCE": {"total_length": 2, "inline_hex": "4142"},
        "NODE_VALUE": {"parent": 77},
        "TOMBSTONE": {"reference_count": 3},
        "BUFFER_VALUE": {"format": "bytes(1)"},
        "ARRAY_VALUE": {"format": 2},
        "LINK_VALUE": {"disposition": "child"},
        "HEADER": {"generation": 3},
        "FREE": {"next_free": 1},
        "RESERVED": {"order": 2},
    }
    seen = set()
    for record in records_of(every_type()):
        shown = record.to_json()
        if record.record != "block" or shown["type"] in seen:
            continue
        seen.add(shown["type"])
        change = changes[shown["type"]]
        again = lone(edited(shown, **change)).to_json()
        assert {key: again[key] for key in change} == change
        assert edited(shown) == every_type()[record.offset : record.offset + record.nbytes]
    assert seen == set(changes) == set(wire.TYPE_NAMES.values())


def test_doubles_and_texts_that_json_has_not() -> None:
    vmo = Vmo()
    vmo.add("DOUBLE_VALUE", parent=0, name=0, value=Nan(0x7FF8000000000001))
    vmo.name("a\udcff")
    _, double, name = records_of(vmo.data)
    assert double.to_json()["value"] == "NaN"
    assert double.to_json()["value_bits"] == "0x7ff8000000000001"
    assert double.raw is None
    assert name.to_json()["name"] == "a\ufffd"
    assert name.to_json()["name_bytes_hex"] == "61ff"
    assert round_trip(bytes(vmo.data)) == vmo.data
    slots = struct.pack("<2Q", 0x7FF8000000000001, 1 << 63)
    data = bytes.fromhex("010b000000000000 0602000000000000") + slots
    assert lone(data).to_json()["slots"] == ["NaN", -0.0]
    assert round_trip(data) == data


BLOCK = {"record": "block", "order": 0}
VALUE = BLOCK | {"parent": 0, "name": 0}
SLOTS = VALUE | {"type": "ARRAY_VALUE", "order": 1, "format": 0}


@cases(
    ("given", "code"),
    [
        (7, "FXI0401"),
        ({"record": "blok"}, "FXI0401"),
        ({"record": "block", "type": "NODE", "order": 0}, "FXI0401"),
        (BLOCK | {"type": "BOOL_VALUE", "layout": "v0"}, "FXI0401"),
        (BLOCK | {"type": "RESERVED", "layout": "v7"}, "FXI0403"),
        (BLOCK | {"type": "FREE"}, "FXI0402"),
        (BLOCK | {"type": "RESERVED", "next": 1}, "FXI0402"),
        (BLOCK | {"type": "RESERVED", "order": 16}, "FXI0404"),
        (VALUE | {"type": "INT_VALUE", "value": "1"}, "FXI0403"),
        (VALUE | {"type": "INT_VALUE", "value": 1 << 63}, "FXI0404"),
        (VALUE | {"type": "UINT_VALUE", "value": -1}, "FXI0404"),
        (VALUE | {"type": "BOOL_VALUE", "value": 1}, "FXI0403"),
        (VALUE | {"type": "LINK_VALUE", "content": 1 << 20, "disposition": 0}, "FXI0404"),
        (VALUE | {"type": "LINK_VALUE", "content": 1, "disposition": "inlin"}, "FXI0401"),
        (BLOCK | {"type": "NAME", "length": 9, "name": "a" * 9}, "FXI0405"),
        (BLOCK | {"type": "NAME", "length": 3, "name": "ab"}, "FXI0409"),
        (BLOCK | {"type": "EXTENT", "next_extent": 0, "payload_hex": "00" * 9}, "FXI0407"),
        (BLOCK | {"type": "EXTENT", "next_extent": 0, "payload_hex": "00" * 7}, "FXI0409"),
        (BLOCK | {"type": "EXTENT", "next_extent": 0, "payload_hex": ""}, "FXI0409"),
        (BLOCK | {"type": "EXTENT", "next_extent": 0, "payload_hex": "0"}, "FXI0403"),
        (SLOTS | {"entry_type": 4, "count": 3, "slots": [1, 2, 3]}, "FXI0407"),
        (SLOTS | {"entry_type": 4, "count": 1, "slots": [1, 2]}, "FXI0409"),
        (SLOTS | {"entry_type": 5, "count": 1, "slots": [-1]}, "FXI0404"),
        (SLOTS | {"entry_type": 6, "count": 1, "slots": ["x"]}, "FXI0403"),
        (SLOTS | {"entry_type": 14, "count": 1, "slots": [1]}, "FXI0402"),
        (SLOTS | {"entry_type": 4, "count": 1, "slots": 1}, "FXI0403"),
        ({"record": "padding"}, "FXI0402"),
        ({"record": "padding", "nbytes": -1}, "FXI0404"),
        ({"record": "damaged", "code": "FXI0012"}, "FXI0402"),
        ({"record": "unknown", "type": 15, "order": 0}, "FXI0402"),
    ],
)
def test_what_cannot_be_written_is_refused_with_its_code(given: Any, code: str) -> None:
    encoder = RecordEncoder()
    with pytest.raises(WriteRefusedError) as refused:
        encoder.encode(fx.from_json(given))
    assert refused.value.code == code
    assert refused.value.remedy


def test_fields_given_from_python_are_checked_too() -> None:
    with pytest.raises(TypeError, match="value"):
        block("INT_VALUE", parent=0, name=0)
    with pytest.raises(TypeError, match="colour"):
        block("RESERVED", colour=1)
    with pytest.raises(WriteRefusedError, match="can only be written from its raw bytes"):
        RecordEncoder().encode(DamagedRecord(code="FXI0012"))
    with pytest.raises(WriteRefusedError, match="not those of a version 0 header"):
        block("HEADER", layout="v0", version=1, generation=0).pack()
    with pytest.raises(WriteRefusedError, match="has no vmo_size"):
        block("HEADER", version=1, generation=0, vmo_size=64).pack()


# --- Whatever the bytes are ----------------------------------------------------------------------


@st.composite
def blocks(draw: st.DrawFn) -> Any:
    """Any block that the fields can say."""
    layout = draw(st.sampled_from(["new", "v0"]))
    type = draw(st.sampled_from(sorted(wire.BLOCKS[layout])))
    order = draw(st.integers(0, 8))
    fields: dict[str, Any] = {}
    for field in wire.BLOCKS[layout][type].layout.public:
        if isinstance(field, Number) and field.name != "order":
            number = draw(st.integers(*field.range))
            fields[field.name] = field.values.get(number, number)
    room = capacity(type, order)
    if type == BlockType.HEADER:
        fields["magic"] = draw(st.sampled_from(["INSP", "PSNI", "\udcff\udcffab"]))
        fields["vmo_size"] = draw(st.integers(0, (1 << 32) - 1)) if order else None
        if layout == "v0":
            fields["version"] &= ~0xFF  # else it is none: the layout goes by that byte
    elif type == BlockType.DOUBLE_VALUE:
        fields["value"] = draw(st.floats(allow_nan=False) | st.just(Nan(CANONICAL_NAN)))
    elif type == BlockType.BOOL_VALUE:
        fields["value"] = draw(st.booleans())
    elif type == BlockType.EXTENT:
        fields["payload"] = draw(st.binary(max_size=64))[:room].ljust(room, b"\0")
    elif type == BlockType.NAME:
        text = draw(st.binary(max_size=min(room, 64)))
        fields |= {"name": text.decode(errors="surrogateescape"), "length": len(text)}
    elif type == BlockType.STRING_REFERENCE:
        text = draw(st.binary(max_size=min(room, 64)))
        fields |= {"inline": text, "total_length": len(text)}
    elif type == BlockType.ARRAY_VALUE:
        _draw_slots(draw, fields, room)
    return block(BlockType(type).name, order, layout, **fields)


def _draw_slots(draw: st.DrawFn, fields: dict[str, Any], room: int) -> None:
    kinds: dict[int, tuple[str, st.SearchStrategy[Any]]] = {
        4: ("slots", st.integers(-(1 << 63), (1 << 63) - 1)),
        5: ("slots", st.integers(0, (1 << 64) - 1)),
        6: ("slots", st.floats(allow_nan=False)),
        14: ("slot_indexes", st.integers(0, (1 << 32) - 1)),
    }
    entry = fields["entry_type"]
    if entry in kinds:
        name, values = kinds[entry]
        most = min(room // wire.SLOT_BYTES[entry], 20)
        fields["count"] = draw(st.integers(0, most))
        fields[name] = tuple(draw(values) for _ in range(fields["count"]))


@given(made=blocks())
def test_any_block_comes_back_from_its_bytes_and_its_json(made: fx.Block) -> None:
    data = made.pack()
    again = lone(data, made.dialect)
    # Larger blocks than the reference writes have their bytes beside their fields.
    assert again.raw == (data if made.order > wire.MAX_ORDER else None)
    assert attrs.evolve(again, raw=None) == made
    shown = json.loads(json.dumps(again.to_json()))
    assert fx.from_json(shown) == again
    assert RecordEncoder().encode(shown) == data


@cases("order", range(wire.ORDER.limit + 1))
@cases("type", ["FREE", "RESERVED", "NODE_VALUE", "INT_VALUE"])
def test_json_does_not_claim_bytes_that_it_does_not_have(type: str, order: int) -> None:
    fields = {"next_free": 0} if type == "FREE" else {}
    if type.endswith("VALUE"):
        fields = {"parent": 0, "name": 0}
        fields |= {"value": 0} if type == "INT_VALUE" else {"reference_count": 0}
    shown = {"record": "block", "type": type, "order": order, **fields}
    if order <= wire.MAX_ORDER:
        assert len(RecordEncoder().encode(shown)) == wire.ORDER_SIZE(order)
        return
    with pytest.raises(WriteRefusedError, match="can only be written from `raw`") as caught:
        RecordEncoder().encode(shown)
    assert caught.value.code == "FXI0407"
    data = block(type, order, **fields).pack()
    assert RecordEncoder().encode({**shown, "raw": data.hex()}) == data


@given(data=st.binary(max_size=600), legacy=st.booleans())
def test_any_bytes_come_back(data: bytes, *, legacy: bool) -> None:
    head = b"\x20\0\0\0INSP" if legacy else b""
    assert round_trip(head + data) == head + data


@cases("name", ["img_all_scalars", "legacy_small_tree"])
def test_truncations_come_back(name: str) -> None:
    whole = image(EVERYTHING[name])
    for length in (*range(0, min(len(whole), 500), 5), *range(500, len(whole), 397)):
        data = whole[:length]
        assert round_trip(data) == data


def test_flipped_bits_come_back() -> None:
    randomly = random.Random(3)
    whole = every_type().rstrip(b"\0").ljust(1200, b"\0")
    for _ in range(50):
        data = bytearray(whole)
        for _ in range(randomly.randint(1, 5)):
            place = randomly.randrange(8 * len(data))
            data[place // 8] ^= 1 << place % 8
        assert round_trip(bytes(data)) == data
