"""Objects and columns read the same, whatever the bytes are, and write them again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.specimen import BLOCKS, ITEMS
from tests.wire.support import check, opened, shown_by_objects

from fxframework.wire.format import Format
from fxframework.wire.sample import sample

from ..cases import cases
from ..truncations import sizes_of

FORMATS = {each.name: each for each in (BLOCKS, ITEMS)}
BIG = {"order": "big", "version": 1}
BLOCK_RECORDS = [
    {"record": "start", **BIG},
    {"record": "word", "number": 1, "text": "one"},
    {"record": "tick", "delta": 7, "word": "one", "color": "blue", "hot": True, "level": -3},
    {"record": "start", "order": "little", "version": 2},
    {"record": "word", "number": 1, "text": "uno"},
    {"record": "long_tick", "delta": -1, "word": "uno"},
    {"record": "long_tick", "delta": 5, "word": "here", "extra": 9},
    {"record": "long_tick", "delta": 5, "word": ""},
    {
        "record": "sample", "real": 0.1, "single": 0.5, "small": -1, "odd": 70000, "name": "n",
        "path": "a/b", "payload_hex": "00ff0102",
    },
    {
        "record": "fields", "points": [{"x": 1, "y": 2}], "numbers": [-1, 2],
        "fields": [
            {"type": "comment", "text": 'é"\\\n'}, {"type": "pair", "x": -1, "y": 1},
            {"type": "other_field", "code": 9, "data_hex": "abcd"},
        ],
    },
]  # fmt: skip


def written(format: Format, records: list[dict[str, object]]) -> bytes:
    from fxframework.wire.encoder import Encoder

    encoder = Encoder(format)
    return b"".join(encoder.encode(record) for record in records)


ODD_BYTES = (
    b"\xff", b"a\xc3", b"\xe2\x82", b"\xe2\x28\xa1", b"\xf0\x90\x80z", b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80", b'"\xc0\xaf\\', b"\x80\x80", b"\xc3\xa9\xf8ok",
)  # fmt: skip
"""Ways not to be UTF-8."""
NANS = (0x7FF8000000000001, 0xFFF8000000000000, 0x7FF0000000000001, 0x7FF8000000000000)
ODD_SINGLES = (0x7FC00001, 0xFFC00000, 0x7F800001, 0x7F800000, 0xFF800000, 0x00000001)
ODD = [
    {"record": "start", "order": "big", "version": 2},
    *(
        {"record": "word", "number": number, "text": data.decode(errors="replace"),
         "text_bytes_hex": data.hex()}
        for number, data in enumerate(ODD_BYTES)
    ),
    *(
        {"record": "long_tick", "delta": 1, "word": data.decode(errors="replace"),
         "word_bytes_hex": data.hex()}
        for data in ODD_BYTES
    ),
    *(
        {"record": "sample", "real": "NaN", "real_bits": f"{bits:#x}", "single": "-Infinity",
         "small": 0, "odd": 0, "name": "", "path": "", "payload_hex": ""}
        for bits in NANS
    ),
]  # fmt: skip
SAMPLES = {
    "blocks": written(BLOCKS, BLOCK_RECORDS),
    "blocks-odd": written(BLOCKS, ODD),
    "blocks-sample": sample(BLOCKS, 600),
    "items": sample(ITEMS, 200),
}


def format_of(name: str) -> Format:
    return FORMATS[name.partition("-")[0]]


@cases("name", SAMPLES)
def test_samples_are_sound(name: str) -> None:
    records, capture = check(format_of(name), SAMPLES[name])
    assert {each.code for each in capture.diagnostics} <= {"BLK0107"}
    assert not capture.first_pass().handed
    assert not any(record.raw for record in records)


def test_no_line_needs_the_object_decoder() -> None:
    for name, data in SAMPLES.items():
        assert not shown_by_objects(format_of(name), data)


@cases("bits", ODD_SINGLES)
def test_odd_floats_of_4_bytes(bits: int) -> None:
    data = bytearray(written(BLOCKS, [BLOCK_RECORDS[0], BLOCK_RECORDS[8]]))
    data[16 + 4 + 8 : 16 + 4 + 12] = bits.to_bytes(4, "big")
    check(BLOCKS, bytes(data))


@cases("units", [1, 2, 3])
def test_a_damaged_mark_says_nothing_of_the_order(units: int) -> None:
    """A record of a few units that begins a file, and is too short for what it has to say."""
    data = bytearray(SAMPLES["blocks-odd"][:56])
    data[3] = units
    records, _ = check(BLOCKS, bytes(data))
    assert {record.record for record in records} == {"damaged"}


def test_json_has_what_was_written() -> None:
    records, _ = check(BLOCKS, SAMPLES["blocks"])
    shown = [record.to_json() for record in records]
    for found, wanted in zip(shown, BLOCK_RECORDS, strict=True):
        assert found.items() >= wanted.items()


@cases("name", SAMPLES)
def test_truncations(name: str) -> None:
    data = SAMPLES[name]
    with opened(format_of(name), data) as capture:
        ends = sizes_of(capture.records(), inside=3)
    for end in ends:
        check(format_of(name), data[:end])


@given(st.data())
@pytest.mark.parametrize("name", SAMPLES)
def test_changed_bytes(name: str, data: st.DataObject) -> None:
    whole = SAMPLES[name]
    start = data.draw(st.integers(0, len(whole) - 1))
    part = bytearray(whole[:8] + whole[start : start + data.draw(st.integers(1, 300))])
    for place in data.draw(st.lists(st.integers(0, len(part) - 1), max_size=6)):
        part[place] = data.draw(st.sampled_from([0, 1, 2, 3, 4, 5, 10, 127, 128, 255]))
    check(format_of(name), bytes(part))


@given(st.binary(max_size=200))
@pytest.mark.parametrize("name", FORMATS)
def test_any_bytes(name: str, data: bytes) -> None:
    check(FORMATS[name], data)


def test_batches_are_the_table() -> None:
    data = sample(ITEMS, 3_000_000)
    whole = opened(ITEMS, data).table("instants")
    capture = opened(ITEMS, data)
    ts = [value for batch in capture.batches("instants", 999) for value in batch.array("ts")]
    assert ts == whole.array("ts").tolist()
    assert capture.summary().rows == {"instants": len(whole)}
