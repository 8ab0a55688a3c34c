"""Records of logs: decoder, JSON both ways, encoder, in all four forms."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import attrs
import hypothesis
import orjson
import pytest
from hypothesis import strategies as st

from fx_log import format as wire
from fx_log.format import Argument
from fx_log.read import records as fx
from fx_log.rules import RULES
from fx_log.write.rewriter import RecordEncoder
from fxframework.errors import StrictError, WriteRefusedError
from fxframework.io.limits import Limits
from fxframework.model.diagnostics import Diagnostics
from fxframework.wire.floats import Nan

from ...cases import cases
from .logs import argument, entry, log, manifest, packet, records_of, ring, stream, text_log

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "log"
VECTORS = json.loads((CONFORMANCE / "records.json").read_text("utf-8"))
LEGACY = json.loads((CONFORMANCE / "legacy.json").read_text("utf-8"))
FORMS = {
    "log": text_log("one") + manifest(3, "core/a", "url") + text_log("two", tag_bits=3),
    "log-legacy": packet("hello", "tag"),
    "log-legacy-stream": stream([packet("hello", "tag"), packet("again")]),
    "log-ring": ring([entry(text_log("one")), entry(text_log("two"))], tail=65536 - 48),
}


def decode(data: bytes, form: str = "log", **options: Any) -> tuple[list[Any], Diagnostics]:
    found = Diagnostics(RULES)
    return list(records_of(form, data, options, found)), found


def codes(data: bytes, form: str = "log", **options: Any) -> list[tuple[str, int | None]]:
    """The findings about the bytes: code and offset."""
    _, found = decode(data, form, **options)
    return [(each.code, each.offset) for each in found]


def again(data: bytes, form: str = "log", **options: Any) -> bytes:
    """The bytes that the records' JSON text gives."""
    records, _ = decode(data, form, **options)
    assert sum(record.nbytes for record in records) == len(data)
    encoder = RecordEncoder(form)
    lines = [orjson.dumps(record.to_json()) for record in records]
    assert [json.loads(line) for line in lines] == [record.to_json() for record in records]
    return b"".join(encoder.encode(orjson.loads(line)) for line in lines) + encoder.close()


# --- Vectors -------------------------------------------------------------------------------------


def assert_shows(record: Any, expected: dict[str, Any]) -> None:
    shown = record.to_json()
    for key, value in expected.items():
        if key == "args":
            plain = [{k: each[k] for k in ("name", "type", "value")} for each in shown["args"]]
            assert plain == value
        else:
            assert shown[key] == value, key


@cases("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vectors_of_structured_records(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    records, found = decode(data)
    expected = vector["expected"]
    if expected["ok"]:
        assert_shows(records[0], expected["record"])
        assert len(data) - records[0].nbytes == expected["remaining"]
    elif data:
        told = [RULES[code].readers for code in found.counts]
        assert any(expected["error"] in readers for readers in told)
    assert again(data) == data


@cases("vector", LEGACY, ids=lambda vector: vector["name"])
def test_vectors_of_packets(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    (record,), found = decode(data, "log-legacy")
    expected = vector["expected"]
    if expected["ok"]:
        assert_shows(record, expected["record"])
    else:
        assert record.record == "damaged"
        assert expected["error"] in RULES[record.code].readers
        assert record.code in found.counts
    assert again(data, "log-legacy") == data
    whole = stream([data, packet("behind it")])
    assert again(whole, "log-legacy-stream") == whole
    assert decode(whole, "log-legacy-stream")[0][-1].message == "behind it"


# --- Structured records: departures from the layout ----------------------------------------------


def word(value: int) -> bytes:
    return struct.pack("<Q", value)


def record_of(*words: int | bytes) -> bytes:
    """A record with these words behind its time."""
    rest = b"".join(each if isinstance(each, bytes) else word(each) for each in words)
    size = 2 + len(rest) // 8
    return word(9 | size << 4 | 0x30 << 56) + word(5) + rest


def header(type: int, size: int, name: int = 0, value: int = 0) -> int:
    return type | size << 4 | name << 16 | value << 32


NAMED = 0x8001
CASES = {
    "reserved bits of the record": (
        word(9 | 2 << 4 | 1 << 50 | 0x30 << 56) + word(0),
        [("FXL0101", 0)],
    ),
    "reserved bits of an argument": (
        record_of(header(4, 3, NAMED) | 1 << 40, b"a\0\0\0\0\0\0\0", 1),
        [("FXL0101", 16)],
    ),
    "padding of a name": (record_of(header(4, 3, NAMED), b"a\0\0\0\0\0\0x", 1),
                          [("FXL0102", 16)]),
    "size of an argument": (record_of(header(4, 9, NAMED), b"a\0\0\0\0\0\0\0", 1),
                            [("FXL0104", 16)]),
    "tag bits": (text_log("x", tag_bits=0) + text_log("x", tag_bits=5) * 2,
                 [("FXL0105", 40), ("FXL0204", 40)]),
    "a severity between": (log(severity=0x2F), [("FXL0106", 0)]),
    "name not UTF-8": (record_of(header(4, 3, NAMED), b"\xff\0\0\0\0\0\0\0", 1), [("FXL0107", 16)]),
    "empty string that follows": (record_of(header(6, 2, NAMED, 0x8000), b"a\0\0\0\0\0\0\0"),
                                  [("FXL0117", 16)]),
    "no name": (record_of(header(4, 2), 1), [("FXL0118", 16)]),
    "null": (record_of(header(0, 2, NAMED), b"a\0\0\0\0\0\0\0"), [("FXL0110", 16)]),
    "trace type": (record_of(header(7, 3, NAMED), b"a\0\0\0\0\0\0\0", 1), [("FXL0112", 16)]),
    "unknown type": (record_of(header(12, 3, NAMED), b"a\0\0\0\0\0\0\0", 1), [("FXL0113", 16)]),
    "unknown type without a size": (record_of(header(12, 0, NAMED), b"a\0\0\0\0\0\0\0", 1),
                                    [("FXL0113", 16), ("FXL0116", 16)]),
    "unknown type with a reserved name": (record_of(header(12, 3, 5), b"a\0\0\0\0\0\0\0", 1),
                                          [("FXL0113", 16), ("FXL0109", 16)]),
    "a header without a size or a time": (word(9 | 1 << 4 | 0x30 << 56), [("FXL0005", 0)]),
    "reserved reference": (record_of(header(4, 3, 5), b"a\0\0\0\0\0\0\0", 1), [("FXL0109", 16)]),
    "name too long": (record_of(header(4, 3, 0x8020), b"a\0\0\0\0\0\0\0", 1), [("FXL0114", 16)]),
    "number missing": (record_of(header(3, 2, NAMED), b"a\0\0\0\0\0\0\0"), [("FXL0115", 16)]),
}  # fmt: skip


@cases("case", CASES)
def test_departures_are_found_where_they_are(case: str) -> None:
    data, expected = CASES[case]
    assert codes(data) == expected
    assert again(data) == data


def test_behind_a_damaged_argument_the_others_are_read() -> None:
    good = argument("good", "uint64", 7).pack()
    data = record_of(header(4, 3, 5), b"a\0\0\0\0\0\0\0", 1, good)
    (record,), _ = decode(data)
    damaged, after = record.args
    assert (damaged.type, damaged.code, len(damaged.value)) == ("damaged", "FXL0109", 24)
    assert (after.name, after.value, after.offset) == ("good", 7, 40)
    assert again(data) == data


def test_without_a_size_the_rest_of_the_record_is_damaged() -> None:
    good = argument("good", "uint64", 7).pack()
    data = record_of(header(4, 0, 5), b"a\0\0\0\0\0\0\0", 1, good) + text_log("next")
    first, second = decode(data)[0]
    assert [each.type for each in first.args] == ["damaged"]
    assert second.args[0].value == "next"


def test_nan_payloads_and_bytes_that_are_no_text_survive() -> None:
    args = (
        Argument(name="nan", type="double", value=Nan(0x7FF8000000000123)),
        argument("infinity", "double", -math.inf),
        argument("zero", "double", -0.0),
        argument("bytes\udcff", "string", "\udcfe\udc80"),
        argument("least", "int64", -(1 << 63)),
        argument("most", "uint64", (1 << 64) - 1),
    )
    data = fx.LogRecord(timestamp=-1, severity=255, args=args).pack()
    (record,), _ = decode(data)
    assert record.raw is None
    shown = record.to_json()["args"]
    assert shown[0]["value_bits"] == "0x7ff8000000000123"
    assert shown[3]["value_bytes_hex"] == "fe80"
    assert again(data) == data


# --- Framing -------------------------------------------------------------------------------------

RUN = text_log("a") + text_log("b") + text_log("c")


@cases(
    ("damage", "code"),
    [
        (word(0x0102030405060704), "FXL0001"),
        (word(9 | 1 << 4 | 0x30 << 56), "FXL0002"),
        (word(9 | 4000 << 4 | 0x30 << 56), "FXL0003"),
    ],
)
@cases("more", [b"", b"\1" * 16, bytes(24)])
def test_reading_goes_on_behind_damage(damage: bytes, code: str, more: bytes) -> None:
    data = RUN + damage + more + RUN
    records, found = decode(data)
    kinds = [record.record for record in records]
    assert kinds.count("log") == 6
    assert found[0].code == code
    assert found[0].offset == len(RUN)
    assert again(data) == data


def test_damage_before_the_last_record_is_left_behind() -> None:
    data = RUN + b"\1" * 24 + text_log("last")
    records, _ = decode(data)
    assert [record.record for record in records] == ["log"] * 3 + ["damaged", "log"]


@cases("form", FORMS)
def test_truncations_come_back(form: str) -> None:
    whole = FORMS[form]
    sizes = (
        range(0, len(whole), 3)
        if len(whole) < 5000
        else [0, 7, 4095, 4096, 4100, 5000, 69000, 69631]
    )
    for size in sizes:
        data = whole[:size]
        assert again(data, form) == data


def test_a_cut_stream_keeps_all_whole_records() -> None:
    for size in range(len(RUN)):
        records, found = decode(RUN[:size])
        whole = size // (len(RUN) // 3)
        assert [record.record for record in records][:whole] == ["log"] * whole
        assert bool(found) == bool(size % (len(RUN) // 3))


@hypothesis.given(st.binary(max_size=200), st.sampled_from(sorted(FORMS)), st.booleans())
def test_any_bytes_come_back(data: bytes, form: str, suffix: bool) -> None:
    assert again(data, form, suffix=suffix) == data


@hypothesis.given(st.data(), st.sampled_from(sorted(FORMS)), st.booleans())
def test_flipped_bits_come_back(data: st.DataObject, form: str, suffix: bool) -> None:
    whole = bytearray(FORMS[form])
    interesting = len(whole) if len(whole) < 5000 else 16
    for _ in range(3):
        place = data.draw(st.integers(0, 8 * interesting - 1))
        whole[place // 8] ^= 1 << place % 8
    assert again(bytes(whole), form, suffix=suffix) == bytes(whole)


def test_limits_and_strictness() -> None:
    data = text_log("x" * 100) + text_log("y")
    found = Diagnostics(RULES)
    records = records_of("log", data, {}, found, Limits(max_record=64))
    kinds = [record.record for record in records]
    assert kinds == ["damaged", "log"]
    assert found.counts == {"FXL0008": 1}
    with pytest.raises(StrictError):
        list(records_of("log", data + b"odd", {}, Diagnostics(RULES, strict=True)))


def test_limits_of_the_fidl_type_are_reported_on_request() -> None:
    data = log(*((f"k{n}", "uint64", n) for n in range(16))) + log(("n" * 257, "bool", True))
    assert codes(data) == []
    assert codes(data, fidl_limits=True) == [("FXL0301", 0), ("FXL0302", 416)]


# --- Suffixes, containers, rings -----------------------------------------------------------------


def test_suffixes_are_read_on_request() -> None:
    suffix = fx.Attribution(moniker="core/a", url="fuchsia-pkg://a", rolled_out=3).pack()
    data = text_log("one") + suffix + text_log("two") + suffix
    records, found = decode(data, suffix=True)
    assert [record.record for record in records] == ["log", "attribution"] * 2
    assert records[0].suffix == records[1]
    assert set(found.counts) == {"FXL0206"}
    assert again(data, suffix=True) == data


def test_a_suffix_out_of_bounds_is_damage() -> None:
    vectors = json.loads((CONFORMANCE / "streams.json").read_text("utf-8"))
    vector = next(v for v in vectors if v["name"] == "extended_suffix_out_of_bounds")
    data = bytes.fromhex(vector["hex"])
    records, found = decode(data, suffix=True)
    assert records[0].record == "log"
    assert vector["expected_error"] in RULES[found[0].code].readers
    assert again(data, suffix=True) == data


def test_the_header_of_the_container() -> None:
    whole = FORMS["log-legacy-stream"]
    for damage in (b"\0" + whole[1:], whole[:8] + b"\2" + whole[9:]):
        records, found = decode(damage, "log-legacy-stream")
        assert [r.record for r in records] == ["damaged", "legacy_packet", "legacy_packet"]
        assert found[0].code == "FXL0702"
        assert again(damage, "log-legacy-stream") == damage
    odd = whole[:12] + b"\1\0\0\0" + whole[16:]
    assert codes(odd, "log-legacy-stream") == [("FXL0101", 0)]
    assert again(odd, "log-legacy-stream") == odd


def test_entries_of_a_ring_wrap() -> None:
    whole = FORMS["log-ring"]
    records, found = decode(whole, "log-ring")
    assert [r.record for r in records] == ["ring_header", "ring_entry", "ring_entry", "padding"]
    first, second = records[1:3]
    assert first.offset == len(whole) - 48
    assert second.offset == wire.RING_PAGE + first.nbytes - 48
    assert [each.log.args[0].value for each in (first, second)] == ["one", "two"]
    assert not found.counts
    assert again(whole, "log-ring") == whole


RINGS = {
    "payload too short": (ring([entry(b"12345")]), "FXL0805"),
    "payload no record": (ring([entry(b"\1" * 40)]), "FXL0805"),
    "payload longer": (ring([entry(text_log("x") + bytes(8))]), "FXL0806"),
    "old bytes": (ring([entry(text_log("x"))], rest=b"\1"), "FXL0808"),
    "length beyond the head": (ring([struct.pack("<QQ", 1, 100)]), "FXL0803"),
    "no room": (ring([entry(text_log("x")), bytes(8)]), "FXL0802"),
    "odd head": (ring([b"1234"]), "FXL0801"),
    "small ring": (ring([entry(text_log("x"))], capacity=4096), "FXL0804"),
    "padding": (ring([struct.pack("<QQ", 1, 4) + b"\1" * 8]), "FXL0807"),
}


@cases("case", RINGS)
def test_departures_of_rings(case: str) -> None:
    data, code = RINGS[case]
    assert code in dict(codes(data, "log-ring"))
    assert again(data, "log-ring") == data


def test_an_edited_ring_moves_its_head() -> None:
    records, _ = decode(FORMS["log-ring"], "log-ring")
    encoder = RecordEncoder("log-ring")
    for record in (records[0], records[2], records[3]):
        encoder.encode(record)
    image = encoder.close()
    kept, found = decode(image, "log-ring")
    assert kept[0].head == kept[0].tail + kept[1].nbytes
    assert kept[1].log.args[0].value == "two"
    assert len(image) == len(FORMS["log-ring"])
    assert not found.counts


# --- Edits and refusals --------------------------------------------------------------------------


def test_an_edit_takes_effect_and_voids_raw() -> None:
    data = record_of(header(4, 9, NAMED), b"a\0\0\0\0\0\0\0", 1)
    (record,), _ = decode(data)
    shown = record.to_json()
    assert "raw" in shown
    shown["timestamp"] = 77
    written = RecordEncoder("log").encode(shown)
    (changed,), found = decode(written)
    assert changed.timestamp == 77
    assert not found.counts


REFUSED = {
    "FXL0401": [
        {"record": "lgo"},
        {"record": "log", "timestamp": 1, "severity": 1, "args": [5]},
        {"record": "log", "timestamp": 1, "severity": 1,
         "args": [{"name": "a", "type": "uint46", "value": 1}]},
        {"record": "stream_header", "version": 1},
    ],
    "FXL0402": [{"record": "log", "severity": 1}, {"record": "log", "timestamp": 1, "severity": 1,
                                                  "pid": 1}],
    "FXL0403": [
        {"record": "log", "timestamp": "1", "severity": 1},
        {"record": "log", "timestamp": 1, "severity": 1, "args": {}},
        {"record": "log", "timestamp": 1, "severity": 1,
         "args": [{"name": "a", "type": "bool", "value": 1}]},
    ],
    "FXL0404": [
        {"record": "log", "timestamp": 1 << 63, "severity": 1},
        {"record": "log", "timestamp": 1, "severity": 256},
        {"record": "log", "timestamp": 1, "severity": 1, "tag_bits": 1 << 32},
        {"record": "log", "timestamp": 1, "severity": 1,
         "args": [{"name": "a", "type": "uint64", "value": -1}]},
    ],
    "FXL0405": [{"record": "log", "timestamp": 1, "severity": 1,
                 "args": [{"name": "a", "type": "string", "value": "x" * 32768}]}],
    "FXL0407": [{"record": "log", "timestamp": 1, "severity": 1,
                 "args": [{"name": "a", "type": "string", "value": "x" * 32729}]}],
}  # fmt: skip


@cases(("code", "given"), [(code, given) for code, some in REFUSED.items() for given in some])
def test_refusals_name_their_reason(code: str, given: dict[str, Any]) -> None:
    with pytest.raises(WriteRefusedError) as refused:
        RecordEncoder("log").encode(given)
    assert refused.value.code == code


def test_the_largest_string_and_record_are_written() -> None:
    data = log(("a", "string", "x" * 32728))
    assert len(data) == 8 * wire.MAX_RECORD_WORDS
    assert decode(data)[0][0].args[0].value == "x" * 32728


PACKETS = [
    ("FXL0405", {"tags": ("t" * 64,)}),
    ("FXL0406", {"tags": tuple("abcdef")}),
    ("FXL0403", {"tags": ("",)}),
    ("FXL0403", {"message": "a\0b"}),
    ("FXL0404", {"severity": 1 << 31}),
    ("FXL0407", {"message": "x" * 32735}),
]


@cases(("code", "change"), PACKETS)
def test_packets_that_cannot_be(code: str, change: dict[str, Any]) -> None:
    sound = fx.LegacyPacket(pid=1, tid=2, timestamp=3, severity=0x30)
    assert len(attrs.evolve(sound, message="x" * 32734).pack()) == wire.MAX_PACKET
    with pytest.raises(WriteRefusedError) as refused:
        attrs.evolve(sound, **change).pack()
    assert refused.value.code == code
