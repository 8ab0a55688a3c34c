"""The trace format's records: decoder, JSON both ways, encoder; `explain` and the writer on top."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import math
import random
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import hypothesis
import numpy as np
import orjson
import pytest
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace import format as wire
from fx_trace import records as fx
from fx_trace.read.decoder import RecordDecoder, RecordEncoder
from fx_trace.read.explain import explain
from fx_trace.rules import RULES
from fx_trace.write.rewriter import open_writer
from fxframework.errors import Severity, StrictError, UsageError, WriteRefusedError
from fxframework.io.limits import Limits
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.io.words import SHOWN_WORDS, U64_MAX
from fxframework.model.capture import Record
from fxframework.model.diagnostics import Diagnostics

from ...cases import cases
from ...truncations import sizes_of
from . import header_words
from .streams import any_bytes, damaged, fxt_records, fxt_streams, render

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "trace"
VECTORS = json.loads((CONFORMANCE / "records.json").read_text("utf-8"))
FILES = sorted((CONFORMANCE / "files").glob("*.fxt"))
EVENT, STRING, THREAD = wire.RecordType.EVENT, wire.RecordType.STRING, wire.RecordType.THREAD

# --- Helpers -----------------------------------------------------------------------------------


def decode(data: bytes, *, big_endian: bool = False) -> list[Any]:
    return list(RecordDecoder(big_endian=big_endian).records(data))


def shown(data: bytes, *, big_endian: bool = False) -> list[dict[str, Any]]:
    """The records as JSON, and through its text."""
    records = decode(data, big_endian=big_endian)
    text = json.dumps([record.to_json() for record in records], allow_nan=False)
    objects: list[dict[str, Any]] = json.loads(text)
    assert objects == [orjson.loads(orjson.dumps(record.to_json())) for record in records]
    return objects


def encode(objects: list[Any], *, big_endian: bool = False) -> bytes:
    encoder = RecordEncoder(big_endian=big_endian)
    return b"".join(encoder.encode(each) for each in objects)


def findings(data: bytes, **limits: int) -> list[tuple[str, int | None, int | None]]:
    """Code, byte offset and record of each finding but that the magic number is missing."""
    found = Diagnostics(RULES)
    decoder = RecordDecoder(diagnostics=found, limits=Limits(**limits))
    assert sum(record.nbytes for record in decoder.records(data)) == len(data)
    return [(each.code, each.offset, each.record) for each in found if each.code != "FXT0201"]


def codes(data: bytes, **limits: int) -> list[str]:
    return [code for code, _, _ in findings(data, **limits)]


def pack(*atoms: int | bytes) -> bytes:
    """Words as they are, streams padded."""
    return b"".join(
        struct.pack("<Q", atom) if isinstance(atom, int) else atom + bytes(-len(atom) % 8)
        for atom in atoms
    )


def record(type: int, layout: Any, *atoms: int | bytes, **fields: int) -> bytes:
    body = pack(*atoms)
    size = 1 + len(body) // 8
    return pack(layout.pack(record_type=type, record_size=size, **fields)) + body


def string(index: int, text: bytes) -> bytes:
    return record(STRING, header_words.STRING, text, string_index=index, string_length=len(text))


def thread(index: int, pid: int, tid: int) -> bytes:
    return record(THREAD, header_words.THREAD, pid, tid, thread_index=index)


def instant(*atoms: int | bytes, **fields: int) -> bytes:
    """An instant at tick 5 of process 1, thread 2; ``atoms`` follow the thread."""
    return record(EVENT, header_words.EVENT, 5, 1, 2, *atoms, **fields)


def info(id: int, name: bytes = b"p") -> bytes:
    kind = wire.MetadataType.PROVIDER_INFO
    fields = {"metadata_type": kind, "provider_id": id, "name_length": len(name)}
    return record(wire.RecordType.METADATA, header_words.PROVIDER_INFO_WORD, name, **fields)


def section(id: int) -> bytes:
    kind = wire.MetadataType.PROVIDER_SECTION
    fields = {"metadata_type": kind, "provider_id": id}
    return record(wire.RecordType.METADATA, header_words.PROVIDER_SECTION_WORD, **fields)


def init(rate: int, *more: int) -> bytes:
    return record(wire.RecordType.INITIALIZATION, header_words.INITIALIZATION, rate, *more)


def argument(type: int, *atoms: int | bytes, **fields: int) -> bytes:
    layout = wire.ARG_LAYOUTS.get(type, wire.ARG)  # type: ignore[call-overload]
    body = pack(*atoms)
    return pack(layout.pack(arg_type=type, arg_size=1 + len(body) // 8, **fields)) + body


def holds(expected: Any, found: Any) -> bool:
    """Whether an object has the expected fields, and perhaps others."""
    if isinstance(expected, dict):
        return all(key in found and holds(value, found[key]) for key, value in expected.items())
    if isinstance(expected, list):
        return len(expected) == len(found) and all(map(holds, expected, found))
    return bool(expected == found)


SAMPLE = b"".join(bytes.fromhex(vector["hex"]) for vector in VECTORS)
"""All vectors behind each other: every kind of record, oddities and damage."""

# --- Conformance -------------------------------------------------------------------------------


@cases("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vector(vector: dict[str, Any]) -> None:
    data = bytes.fromhex(vector["hex"])
    found = shown(data)
    expected = vector["expected"]
    told = [each for each in found if each["record"] != "padding"]
    for wanted, each in itertools.zip_longest(expected.get("records", told), told, fillvalue={}):
        assert holds(wanted, each), each
    if "rust_reader" in expected:
        assert holds(expected["rust_reader"], found[0])
    if "name_bytes_hex" in expected:
        assert found[-1]["name_bytes_hex"] == expected["name_bytes_hex"]
    for wanted, each in itertools.zip_longest(
        expected.get("events", []),
        [e for e in found if e["record"] == "event"] * ("events" in expected),
    ):
        *names, timestamp = wanted
        assert each["timestamp"] == timestamp
        assert [each["category"], each["name"]][-len(names) :] == names
    if "base_tick" in expected:
        (start,) = [each for each in found if each["record"] == "initialization"]
        assert start["base_tick"] == expected["base_tick"]
        assert start["base_wall_ns"] == expected["base_time_ns_since_epoch"]
    if expected.get("warnings") == ["unknown record type 14"]:
        assert codes(data) == ["FXT0007"]
    assert encode(found) == data


ENCODED = 5_000
"""Records of a file that are encoded one by one; later ones are of the same kinds."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file(path: Path) -> None:
    data = path.read_bytes()
    expected = json.loads(path.with_suffix(".expected.json").read_text("utf-8"))
    found = shown(data)
    assert sum(each["nbytes"] for each in found) == len(data)
    first = found[:ENCODED]
    assert encode(first) == data[: sum(each["nbytes"] for each in first)]
    if isinstance(expected["records"], list):
        for wanted, each in zip(expected["records"], found, strict=True):
            wanted = dict(wanted)
            payload = wanted.pop("payload_hex", "").removesuffix("...")
            assert each.get("payload_hex", "").startswith(payload)
            assert holds(wanted, each)
        return
    assert hashlib.sha256(data).hexdigest() == expected["sha256"]
    assert len(found) == expected["records"]
    kinds = Counter(f"{each['record']} {each.get('kind', each.get('event'))}" for each in found)
    assert kinds == expected["by_kind"]
    events = [each for each in found if each["record"] == "event"]
    assert all(map(holds, expected["first_events"], events))
    assert all(map(holds, expected["last_events"], events[-len(expected["last_events"]) :]))
    arguments = [each for event in events for each in event["args"]]
    assert Counter((each["name"], each["type"]) for each in arguments) == {
        (name, kind.split()[0]): int(kind.split(" x")[1]) for name, kind in expected["args"].items()
    }
    assert codes(data) == ["FXT0204"]


# --- What holds for any bytes ------------------------------------------------------------------


def check(data: bytes, *, big_endian: bool = False) -> list[Any]:
    """Records lie end to end, and both they and their JSON encode to the same bytes."""
    records = decode(data, big_endian=big_endian)
    at = 0
    for each in records:
        assert (each.offset, each.nbytes > 0) == (at, True)
        at += each.nbytes
    assert at == len(data)
    assert encode(records, big_endian=big_endian) == data
    objects = shown(data, big_endian=big_endian)
    assert encode(objects, big_endian=big_endian) == data
    assert [fx.from_json(each) for each in objects] == records
    return records


@hypothesis.given(fxt_streams())
def test_streams_round_trip(data: bytes) -> None:
    records = check(data)
    assert not any(isinstance(each, fx.Damaged) for each in records)


@hypothesis.given(fxt_records())
def test_byte_orders_read_alike(stream: list[Any]) -> None:
    little = check(render(stream))
    big = check(render(stream, big_endian=True), big_endian=True)

    def told(records: list[Any]) -> list[Any]:
        # Raw bytes, and the words of what is not ours, are those of the file.
        objects = [each.to_json() for each in records]
        for each in objects:
            each.pop("raw", None)
            for one in each.get("args", ()):
                if isinstance(one["type"], int):
                    del one["value"]
        return objects

    assert told(little) == told(big)


@hypothesis.given(damaged(fxt_streams()))
def test_damage_round_trips(data: bytes) -> None:
    check(data)


@hypothesis.given(any_bytes(), st.booleans())
def test_any_bytes_round_trip(data: bytes, big_endian: bool) -> None:
    check(data, big_endian=big_endian)


@hypothesis.given(damaged(fxt_streams()))
def test_raw_stands_only_where_it_is_needed(data: bytes) -> None:
    for each in decode(data):
        own = data[each.offset : each.offset + each.nbytes]
        if isinstance(each, fx.Padding | fx.Damaged):
            continue
        if each.raw is None:
            assert each.pack() == own
        else:
            assert each.raw == own
            assert each.opaque or each.pack() != own


def test_truncations_keep_the_records_before_it() -> None:
    whole = decode(SAMPLE)
    for length in sizes_of(whole, inside=5):
        data = SAMPLE[:length]
        records = decode(data)
        kept = sum(each.offset + each.nbytes <= length for each in whole)
        # Damage may end elsewhere where less is there to go on with.
        sound = itertools.takewhile(lambda each: not isinstance(each, fx.Damaged), whole[:kept])
        for before, after in zip(sound, records, strict=False):
            assert before == after
        assert encode([each.to_json() for each in records]) == data


def test_bit_flips_round_trip() -> None:
    dice = random.Random(5)
    for _ in range(40):
        data = bytearray(SAMPLE)
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        objects = [each.to_json() for each in decode(bytes(data))]
        assert encode(objects) == data


def test_input_may_be_any_buffer() -> None:
    array = np.frombuffer(SAMPLE, np.uint8)
    wanted = [each.to_json() for each in decode(SAMPLE)]
    for data in (array, bytearray(SAMPLE), memoryview(SAMPLE), array.view("<u8")):
        found = [each.to_json() for each in RecordDecoder().records(data)]  # type: ignore[arg-type]
        assert found == wanted
    assert list(RecordDecoder().records(np.zeros(0, np.uint8))) == []


def test_records_come_one_at_a_time_and_damage_is_not_copied() -> None:
    records = RecordDecoder().records(instant() + pack(5 << 20) + b"\xff" * (1 << 22))
    assert isinstance(next(records), fx.Event)
    rest = next(records)
    assert isinstance(rest.raw, memoryview)
    assert rest.nbytes == rest.raw.nbytes == (1 << 22) + 8


def test_records_satisfy_the_protocol() -> None:
    for each in decode(SAMPLE):
        assert isinstance(each, Record)


# --- JSON --------------------------------------------------------------------------------------


def test_references_show_values_and_indexes() -> None:
    value = argument(wire.ArgType.STRING, name=2, value=3)
    event = instant(value, category=1, name=3, arg_count=1)
    *_, found = shown(string(1, b"cat") + string(2, b"key") + string(3, b"name") + event)
    assert found["refs"] == {"category": 1, "name": 3}
    assert found["args"] == [
        {"name": "key", "type": "string", "value": "name", "refs": {"name": 2, "value": 3}}
    ]
    assert (found["category"], found["name"], found["thread"]) == ("cat", "name", [1, 2])
    assert "raw" not in found


def test_unregistered_references_show_markers() -> None:
    (found,) = shown(record(EVENT, header_words.EVENT, 5, thread=9, category=1, name=2))
    assert (found["category"], found["name"], found["thread"]) == ("<str#1>", "<str#2>", "<thr#9>")
    assert found["refs"] == {"thread": 9, "category": 1, "name": 2}


def test_an_empty_string_has_no_reference() -> None:
    (found,) = shown(instant())
    assert (found["category"], found["name"]) == ("", "")
    assert "refs" not in found
    (inline,) = shown(instant(name=wire.INLINE_STRING))
    assert inline["name"] == ""
    assert "raw" in inline


def test_bytes_that_are_no_text_stand_beside_it() -> None:
    *_, found = shown(string(1, b"caf\xe9") + instant(b"\xff!", category=1, name=0x8002))
    assert (found["category"], found["category_bytes_hex"]) == ("caf\ufffd", "636166e9")
    assert (found["name"], found["name_bytes_hex"]) == ("\ufffd!", "ff21")
    assert decode(instant(b"\xff!", name=0x8002))[0].name == "\udcff!"


@cases(
    ("bits", "value", "beside"),
    [
        (0x7FF8000000000000, "NaN", None),
        (0x7FF0000000000001, "NaN", "0x7ff0000000000001"),
        (0xFFF8000000000000, "NaN", "0xfff8000000000000"),
        (0x7FF0000000000000, "Infinity", None),
        (0xFFF0000000000000, "-Infinity", None),
        (0x8000000000000000, -0.0, None),
        (0x0000000000000001, 5e-324, None),
    ],
)
def test_doubles_that_json_cannot_hold(bits: int, value: Any, beside: str | None) -> None:
    data = instant(argument(wire.ArgType.DOUBLE, bits), arg_count=1)
    (found,) = shown(data)
    (one,) = found["args"]
    assert repr(one["value"]) == repr(value)
    assert one.get("value_bits") == beside
    assert "raw" not in found
    one["value"] = 1.5
    (again,) = shown(encode([found]))
    assert again["args"][0]["value"] == 1.5


def test_json_numbers_that_are_no_numbers_may_come_in() -> None:
    data = instant(argument(wire.ArgType.DOUBLE, 0), arg_count=1)
    for given, bits in ((math.nan, 0x7FF8 << 48), (math.inf, 0x7FF0 << 48), (3, 0x4008 << 48)):
        (found,) = shown(data)
        found["args"][0]["value"] = given
        assert encode([found])[-8:] == pack(bits)


def test_a_scope_is_shown_where_there_is_a_word_for_it() -> None:
    assert "scope" not in shown(instant())[0]
    for number, name in ((0, "thread"), (1, "process"), (2, "global"), (3, 3)):
        (found,) = shown(instant(number))
        assert found["scope"] == name
        assert "raw" not in found


def test_unknown_types_show_their_number_and_bytes() -> None:
    (found,) = shown(instant(argument(13, 7, name=0), 5, event_type=12, arg_count=1))
    assert found["event"] == 12
    assert found["args"] == [{"name": "", "type": 13, "value": "0700000000000000"}]
    assert "raw" in found
    for type, low, kind, key in (
        (wire.RecordType.METADATA, 16, 9, "kind"),
        (wire.RecordType.SCHEDULING, 60, 9, "kind"),
        (wire.RecordType.PROFILER, 16, 9, "kind"),
        (wire.RecordType.LARGE, 36, 9, "large_type"),
    ):
        data = pack(type | 2 << 4 | kind << low, 5)
        (found,) = shown(data)
        assert (found["record"], found[key], found["raw"]) == (type.name.lower(), 9, data.hex())
    (found,) = shown(pack(15 | 2 << 4 | 5 << 40, 5))
    assert (found["large_type"], found["blob_format"]) == (0, 5)
    (found,) = shown(pack(0 | 1 << 4 | 4 << 16 | 3 << 20))
    assert (found["kind"], found["info_type"], "magic" in found) == ("trace_info", 3, False)
    (found,) = shown(pack(14 | 2 << 4 | 77 << 20, 5))
    assert (found["record"], found["type"]) == ("unknown", 14)


def test_a_process_may_be_inline_as_one_word_or_two() -> None:
    name = {"name": 0x8003}
    type = wire.RecordType.USERSPACE_OBJECT
    one = record(type, header_words.USERSPACE_OBJECT, 64, 77, b"obj", **name)
    two = record(type, header_words.USERSPACE_OBJECT, 64, 77, 78, b"obj", **name)
    more = argument(wire.ArgType.INT64, 5, name=0)
    assert shown(one)[0]["process"] == 77
    assert "thread" not in shown(one)[0]
    assert holds({"process": 77, "thread": [77, 78], "name": "obj"}, shown(two)[0])
    for words in ((77,), (77, 78)):
        data = record(
            type, header_words.USERSPACE_OBJECT, 64, *words, b"obj", more, arg_count=1, **name
        )
        (found,) = shown(data)
        assert "raw" not in found
        assert ("thread" in found) == (len(words) == 2)
        assert found["args"][0]["value"] == 5
    # Where neither fills the record, it is one word, as the document says.
    assert "thread" not in shown(record(type, header_words.USERSPACE_OBJECT, 64, 77, 78, 79))[0]
    module = record(10, header_words.PROFILER_MMAP_WORD, 1, 77, 78, 3, 4, 5, 6, profiler_type=1)
    assert shown(module)[0]["thread"] == [77, 78]
    indexed = record(type, header_words.USERSPACE_OBJECT, 64, process=3)
    assert holds({"process": 7, "refs": {"process": 3}}, shown(thread(3, 7, 8) + indexed)[1])


def test_payload_sizes_follow_from_the_payload() -> None:
    blob = {"record": "blob", "name": "b", "blob_type": 1, "size": 99, "payload_hex": "0102"}
    (found,) = shown(encode([blob]))
    assert (found["size"], found["payload_hex"]) == (2, "0102")


def test_records_can_be_made_in_python() -> None:
    event = fx.Event(
        event="counter",
        timestamp=5,
        thread=(1, 2),
        category="c",
        name="n",
        args=(fx.Argument(name="x", type="uint64", value=3),),
        counter_id=9,
    )
    (found,) = decode(encode([event]))
    assert found == event
    with pytest.raises(WriteRefusedError):
        attrs.evolve(event, counter_id=None).pack()


# --- Edits -------------------------------------------------------------------------------------

NOT_EDITED = {"record", "offset", "nbytes", "refs", "raw", "size", "code"}
# What tells kinds apart cannot change alone: other fields would have to come or go.
NOT_EDITED |= {"kind", "type", "info_type", "large_type", "blob_format"}


def edited(key: str, value: Any) -> Any:
    """Another value for a field of JSON, or None where it cannot change alone."""
    if isinstance(value, bool):
        return not value
    if key == "scope":
        return "process" if value != "process" else "global"
    if key == "magic":
        return "0x00000001"
    if isinstance(value, int):
        return value ^ 1
    if isinstance(value, list):
        return [value[0] ^ 1, *value[1:]] if key in ("thread", "outgoing", "incoming") else [5, 6]
    if isinstance(value, str) and value.startswith("<thr#"):
        return 7 if key == "process" else [7, 8]
    if isinstance(value, str):
        return value + ("ab" if key.endswith("_hex") or key == "build_id" else "x")
    return None


def edits(given: dict[str, Any]) -> Iterator[tuple[list[Any], Any]]:
    """Paths into an object, and another value for each."""
    for key, value in given.items():
        if key in NOT_EDITED or (key == "event" and "timestamp" in given):
            continue
        if given["record"] == "userspace_object" and "thread" in given and key != "pointer":
            continue  # process and thread go together
        if key == "args":
            for number, one in enumerate(value):
                yield ["args", number, "name"], one["name"] + "x"
                new = edited("value", one["value"])
                if one["type"] == "double":  # of which some are texts, such as NaN
                    new = 2.5
                if one["type"] == "blob" or isinstance(one["type"], int):
                    new = one["value"] + "0123456789abcdef"
                if new is not None:
                    yield ["args", number, "value"], new
            yield ["args"], [{"name": "only", "type": "koid", "value": 3}]
        elif not key.endswith(("_bytes_hex", "_bits")):
            new = edited(key, value)
            if new is not None:
                yield [key], new


def check_edits(data: bytes) -> int:
    objects = shown(data)
    count = 0
    for number, given in enumerate(objects):
        for path, value in edits(given):
            changed = copy.deepcopy(given)
            place = changed
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
            again = shown(encode([*objects[:number], changed, *objects[number + 1 :]]))
            found: Any = again[number]
            for step in path:
                found = found[step]
            assert found == value, (path, given)
            count += 1
    return count


def test_every_edit_of_a_vector_takes_effect() -> None:
    assert sum(check_edits(bytes.fromhex(each["hex"])) for each in VECTORS) > 200


@hypothesis.given(fxt_streams(max_records=4))
@hypothesis.example(string(1, b"Infinity"))
def test_every_edit_takes_effect(data: bytes) -> None:
    check_edits(data)


def test_an_edit_makes_raw_void() -> None:
    data = instant(0, 7, 8)
    (found,) = shown(data)
    assert "raw" in found
    found["timestamp"] = 6
    assert encode([found]) == record(EVENT, header_words.EVENT, 6, 1, 2, 0)


def test_an_index_counts_while_it_gives_what_is_shown() -> None:
    data = string(1, b"one") + instant(name=1) + string(1, b"two") + instant(name=1)
    objects = shown(data)
    objects[0]["value"] = "uno"
    assert encode(objects) == (
        string(1, b"uno") + instant(b"one", name=0x8003) + string(1, b"two") + instant(name=1)
    )
    assert encode(shown(data)[1:]) == (
        instant(b"one", name=0x8003) + string(1, b"two") + instant(name=1)
    )


def test_a_thread_goes_inline_when_its_index_is_gone() -> None:
    event = record(EVENT, header_words.EVENT, 5, thread=1)
    objects = shown(thread(1, 1, 2) + event)
    assert encode(objects[1:]) == instant()
    objects[0]["tid"] = 3
    assert encode(objects) == thread(1, 1, 3) + instant()


def test_a_marker_keeps_its_index_when_a_missing_record_is_put_in() -> None:
    event = record(EVENT, header_words.EVENT, 5, thread=1, name=1)
    objects = [*shown(string(1, b"found") + thread(1, 1, 2)), *shown(event)]
    assert encode(objects) == string(1, b"found") + thread(1, 1, 2) + event


def test_raw_of_another_state_is_void() -> None:
    odd = string(1, b"one") + instant(0, 7, name=1)
    objects = shown(odd)
    assert "raw" in objects[1]
    objects[0]["value"] = "uno"
    assert encode(objects) == string(1, b"uno") + instant(b"one", 0, name=0x8003)


def test_bytes_beside_a_text_count_only_for_that_text() -> None:
    (found,) = shown(instant(b"\xff!", name=0x8002))
    found["name_bytes_hex"] = "fe21"
    assert encode([found]) == instant(b"\xfe!", name=0x8002)
    found["name"] = "new"
    assert encode([found]) == instant(b"new", name=0x8003)


def test_offsets_and_sizes_are_not_looked_at() -> None:
    (found,) = shown(instant())
    assert encode([{**found, "offset": 99, "nbytes": "?"}]) == instant()
    assert encode([{"record": "padding", "nbytes": 16}]) == bytes(16)


# --- Refusals ----------------------------------------------------------------------------------

BASE = {"record": "event", "event": "instant", "timestamp": 5, "thread": [1, 2]}
BASE |= {"category": "c", "name": "n", "args": []}


def with_arg(**fields: Any) -> dict[str, Any]:
    return {**BASE, "args": [{"name": "a", "type": "int64", "value": 1, **fields}]}


MODULE = {"record": "profiler", "kind": "module", "timestamp": 1, "thread": [1, 2], "module_id": 1}
MODULE |= {"name": "m", "build_id": ""}
BACKTRACE = {"record": "profiler", "kind": "backtrace", "timestamp": 1, "thread": [1, 2]}
OBJECT = {"record": "userspace_object", "pointer": 1, "process": 1, "name": ""}
BLOB = {"record": "blob", "name": "", "blob_type": 1, "payload_hex": ""}


@cases(
    ("code", "given"),
    [
        ("FXT0401", 5),
        ("FXT0401", {}),
        ("FXT0401", {"record": "evnt"}),
        ("FXT0401", {"record": ["event"]}),
        ("FXT0401", {"record": "metadata", "kind": "provider_inf"}),
        ("FXT0401", {**BASE, "event": "instnt"}),
        ("FXT0401", with_arg(type="int65")),
        ("FXT0401", {**BASE, "args": [7]}),
        ("FXT0402", {"record": "metadata"}),
        ("FXT0402", {"record": "damaged", "code": "FXT0001"}),
        ("FXT0402", {"record": "padding"}),
        ("FXT0402", {key: value for key, value in BASE.items() if key != "timestamp"}),
        ("FXT0402", {**BASE, "event": "counter"}),
        ("FXT0402", {**BASE, "timestmp": 5}),
        ("FXT0402", {**BASE, "counter_id": 5}),
        ("FXT0402", {**BASE, "refs": {"nam": 5}}),
        ("FXT0402", with_arg(colour=5)),
        ("FXT0402", with_arg(refs={"value": 5})),
        ("FXT0402", {"record": "initialization", "ticks_per_second": 1, "base_tick": 1}),
        ("FXT0403", {**BASE, "timestamp": "5"}),
        ("FXT0403", {**BASE, "timestamp": True}),
        ("FXT0403", {**BASE, "timestamp": 5.0}),
        ("FXT0403", {**BASE, "name": None}),
        ("FXT0403", {**BASE, "name": "\ud800"}),
        ("FXT0403", {**BASE, "name": "n", "name_bytes_hex": "zz"}),
        ("FXT0403", {**BASE, "raw": 5}),
        ("FXT0403", {**BASE, "refs": [1]}),
        ("FXT0403", {**BASE, "refs": {"name": "1"}}),
        ("FXT0403", {**BASE, "thread": [1]}),
        ("FXT0403", {**BASE, "thread": [1, "2"]}),
        ("FXT0403", {**BASE, "thread": "<thr#0>"}),
        ("FXT0403", {**BASE, "thread": "<thr#256>"}),
        ("FXT0403", {**BASE, "args": {}}),
        ("FXT0404", {**BASE, "event": 16}),
        ("FXT0403", with_arg(value=1.5)),
        ("FXT0403", with_arg(type="bool")),
        ("FXT0403", with_arg(type="null")),
        ("FXT0403", with_arg(type="double", value="much")),
        ("FXT0403", with_arg(type="double", value=10**400)),
        ("FXT0403", with_arg(type="double", value="NaN", value_bits="x")),
        ("FXT0403", with_arg(type="blob", value="abc")),
        ("FXT0403", {**BACKTRACE, "frames": 5}),
        ("FXT0403", {**OBJECT, "thread": "<thr#1>"}),
        ("FXT0403", {"record": "metadata", "kind": "trace_info", "info_type": 0, "magic": "FxT"}),
        ("FXT0404", {**BASE, "timestamp": -1}),
        ("FXT0404", {**BASE, "timestamp": 1 << 64}),
        ("FXT0404", {**BASE, "thread": [1, 1 << 64]}),
        ("FXT0404", {**BASE, "scope": -1}),
        ("FXT0404", with_arg(value=1 << 63)),
        ("FXT0404", with_arg(type="int32", value=1 << 31)),
        ("FXT0404", with_arg(type="uint32", value=-1)),
        ("FXT0404", with_arg(type=12, value="ab")),
        ("FXT0404", {**BLOB, "blob_type": 256}),
        ("FXT0404", {"record": "metadata", "kind": "provider_section", "id": 1 << 32}),
        ("FXT0404", {"record": "string", "index": 1 << 15, "value": ""}),
        ("FXT0404", {"record": "padding", "nbytes": 7}),
        ("FXT0404", {"record": "padding", "nbytes": -8}),
        ("FXT0404", {"record": "padding", "nbytes": 1 << 80}),
        ("FXT0405", {**BASE, "name": "x" * 0x8000}),
        ("FXT0405", {"record": "string", "index": 1, "value": "x" * 0x8000}),
        ("FXT0405", {"record": "metadata", "kind": "provider_info", "id": 1, "name": "x" * 256}),
        ("FXT0405", {**MODULE, "build_id": "00" * 256}),
        ("FXT0405", {**BLOB, "payload_hex": "00" * 0x8000}),
        ("FXT0406", {**BASE, "args": with_arg()["args"] * 16}),
        ("FXT0406", {**BACKTRACE, "frames": [0] * 256}),
        ("FXT0407", {**BASE, "name": "x" * 32700, "category": "y" * 100}),
        ("FXT0407", with_arg(type="blob", value="00" * 32768)),
        ("FXT0408", {"record": "metadata", "kind": 9}),
        ("FXT0408", {"record": "metadata", "kind": "trace_info", "info_type": 1}),
        ("FXT0408", {"record": "scheduling", "kind": 9, "raw": pack(8 | 1 << 4 | 9 << 60).hex()}),
        ("FXT0408", {"record": "profiler", "kind": 9, "raw": pack(10 | 2 << 4, 5).hex()}),
        ("FXT0408", {"record": "large", "large_type": 0, "blob_format": 9}),
        ("FXT0408", {"record": "unknown", "type": 14, "raw": pack(13 | 1 << 4).hex()}),
        ("FXT0409", {**OBJECT, "process": 2, "thread": [1, 2]}),
        ("FXT0409", {**MODULE, "process": 2}),
    ],
)
def test_refusal(code: str, given: Any) -> None:
    encoder = RecordEncoder()
    encoder.encode({"record": "string", "index": 1, "value": "n"})
    with pytest.raises(WriteRefusedError) as refused:
        encoder.encode(given) if isinstance(given, dict) else fx.from_json(given)
    assert refused.value.code == code
    assert refused.value.remedy
    assert len(refused.value.message) < 300
    assert encoder.encode({**BASE, "refs": {"name": 1}})[:8] != encoder.encode(BASE)[:8]


def test_every_refusal_is_catalogued() -> None:
    for code in (f"FXT04{number:02}" for number in range(1, 10)):
        assert RULES[code].severity is Severity.ERROR
        assert RULES[code].remedy


def test_a_refusal_hints_at_the_right_word() -> None:
    with pytest.raises(WriteRefusedError, match="did you mean 'timestamp'"):
        fx.from_json({**BASE, "timestmp": 5})
    with pytest.raises(WriteRefusedError, match="did you mean 'provider_info'"):
        fx.from_json({"record": "metadata", "kind": "provider_inf"})


# --- Framing -----------------------------------------------------------------------------------


def kinds(data: bytes) -> list[tuple[str, int]]:
    return [(each.record, each.nbytes) for each in decode(data)]


THREE = instant() + string(1, b"K") + thread(1, 1, 2)  # "K" looks like no record


@cases(
    ("code", "header"),
    [
        ("FXT0001", 5 << 20),
        ("FXT0001", 15 | 1 << 40),
        ("FXT0002", 4 | 4095 << 4),
        ("FXT0002", 15 | 0xFFFFFFFF << 4),
        ("FXT0002", 14 | 4095 << 4),
        ("FXT0003", 4 | 1 << 4),
        ("FXT0003", 3 | 2 << 4),
    ],
)
def test_damage_lasts_until_sound_records_follow(code: str, header: int) -> None:
    bad = pack(header)
    found = [("event", 32), ("damaged", 8), ("event", 32), ("string", 16), ("thread", 24)]
    assert kinds(instant() + bad + THREE) == found
    assert findings(instant() + bad + THREE) == [(code, 32, 1)]
    # Three are not enough of which the last is cut off; odd bytes are damage of their own.
    rest = instant() + string(0, b"K") + thread(1, 1, 2)[:-8]
    assert kinds(instant() + bad + rest) == [("event", 32), ("damaged", 8 + len(rest))]
    assert findings(instant() + bad + rest) == [(code, 32, 1)]
    assert kinds(instant() + bad + rest + b"odd")[1:] == [("damaged", 72), ("damaged", 3)]
    assert findings(instant() + bad + rest + b"odd") == [(code, 32, 1), ("FXT0005", 104, 2)]
    # One is enough that fills its size exactly, whatever follows.
    rest = instant() + string(1, b"K")
    assert kinds(instant() + bad + rest) == [("event", 32), ("damaged", 40), ("string", 16)]
    # Zero words and unknown types are no sound records.
    for word in (0, 14 | 1 << 4):
        rest = instant() + string(0, b"K") + pack(word) + THREE
        assert kinds(instant() + bad + rest)[:2] == [("event", 32), ("damaged", 8 + 32 + 16 + 8)]


NOT_EXACT = {"FXT0004", "FXT0103", "FXT0109", "FXT0110", "FXT0111", "FXT0114"}
EXACT = [
    string(3, b"name"),
    thread(2, 7, 8),
    instant(name=3),
    instant(1, name=3),
    record(EVENT, header_words.EVENT, 5, 1, 2, 9, event_type=wire.EventType.FLOW_END, name=3),
    record(
        EVENT,
        header_words.EVENT,
        5,
        6,
        event_type=wire.EventType.DURATION_COMPLETE,
        name=1,
        thread=1,
    ),
    record(EVENT, header_words.EVENT, 5, 3 | 2 << 4 | 1 << 16, 77, name=1, thread=1, arg_count=1),
    info(3),
    record(0, header_words.PROVIDER_SECTION_WORD, metadata_type=2, provider_id=9),
    record(0, header_words.PROVIDER_EVENT_WORD, metadata_type=3, provider_id=9),
    pack(wire.MAGIC_WORD),
    record(1, header_words.INITIALIZATION, 1000),
    record(1, header_words.INITIALIZATION, 1000, 5, 77),
    record(5, header_words.BLOB, b"12345", blob_size=5, blob_type=4),
    record(6, header_words.USERSPACE_OBJECT, 5, 6, 3 | 2 << 4, 77, arg_count=1),
    record(6, header_words.USERSPACE_OBJECT, 5, b"ab", process=1, name=0x8002),
    record(
        7, header_words.KERNEL_OBJECT, 5, b"ab", 0 | 1 << 4, object_type=1, name=0x8002, arg_count=1
    ),
    record(8, header_words.LEGACY_CONTEXT_SWITCH, 5, 6, 7, incoming=1),
    record(8, header_words.CONTEXT_SWITCH, 5, 6, 7, scheduling_type=1, cpu=1),
    record(8, header_words.THREAD_WAKEUP, 5, 6, 0 | 1 << 4, scheduling_type=2, arg_count=1),
    record(9, header_words.LOG, 5, 6, 7, b"text", message_length=4),
    record(
        10,
        header_words.PROFILER_MODULE_WORD,
        5,
        b"a",
        b"b",
        thread=1,
        name_length=1,
        build_id_length=1,
    ),
    record(10, header_words.PROFILER_MMAP_WORD, 5, 6, 7, 8, 9, profiler_type=1),
    record(10, header_words.PROFILER_BACKTRACE_WORD, 5, 1, 2, 3, 4, profiler_type=2, frame_count=2),
]


def test_two_bugs_are_both_found() -> None:
    """A writer that gives every second record a size that is too small has another bug, too."""
    broken = bytearray(instant(name=3))
    broken[0] = 4 | 1 << 4  # one word
    odd = record(
        EVENT, header_words.EVENT, 5, 1, 2, 9, 9, event_type=wire.EventType.FLOW_END, name=3
    )
    pair = bytes(broken) + instant(name=3)
    data = pair * 4 + odd + pair * 2
    found = [code for code, *_ in findings(data)]
    assert found.count("FXT0003") == 6
    assert "FXT0103" in found


def test_damage_ends_where_the_rule_says() -> None:
    """Against the rule as it is stated, on words of which few, or many, could be headers."""

    def sound_end(words: list[int], at: int) -> int | None:
        if at >= len(words):
            return None
        type = words[at] & 15
        size = words[at] >> 4 & (0xFFFFFFFF if type == 15 else 0xFFF)
        least = {int(known): words for known, words in wire.MINIMUM_WORDS.items()}.get(type)
        return at + size if least and least <= size <= len(words) - at else None

    def exact(words: list[int], at: int, end: int) -> bool:
        """Whether decoding the record says that it is one, and that nothing is left over."""
        diagnostics = Diagnostics(RULES)
        data = render([words[at:end]])  # type: ignore[list-item]
        (decoded,) = RecordDecoder(diagnostics=diagnostics).records(data)
        if {found.code for found in diagnostics} & NOT_EXACT:
            return False
        if words[at] & type(decoded).layout.header().reserved_mask:
            return False
        if isinstance(decoded, fx.StringRecord):
            return bool(decoded.index and decoded.value)
        if isinstance(decoded, fx.ThreadRecord):
            return bool(decoded.index)
        if isinstance(decoded, fx.Log):
            return bool(decoded.message)
        if isinstance(decoded, fx.Event):
            return words[at] >> 48 != 0
        if isinstance(decoded, fx.TraceInfo):
            return words[at] == wire.MAGIC_WORD
        return not type(decoded).__name__.startswith(("Unknown", "LargeBlob", "Damaged"))

    def sound_exact(words: list[int], at: int) -> int | None:
        after = sound_end(words, at)
        return after if after is not None and exact(words, at, after) else None

    def resumes(words: list[int]) -> int:
        # Of any size that the header could have had, the one that its contents fill.
        for size in range(1, min(len(words), 60) + 1):
            header = words[0] & ~0xFFF0 | size << 4
            whole = [header, *words[1:]]
            if sound_exact(whole, 0) == size and (size == len(words) or sound_exact(words, size)):
                return size
        for start in range(1, len(words)):
            after = sound_exact(words, start)
            if after is not None and (
                words[start] >> 16 or after == len(words) or sound_exact(words, after)
            ):
                return start
            end: int | None = start
            for _ in range(3):  # sound records in a row
                end = None if end is None else sound_end(words, end)
            if end is not None:
                return start
        return len(words)

    dice = random.Random(7)
    for _ in range(100):
        some = [0, 5 << 20, 14 | 1 << 4, U64_MAX, 1 << 4]
        few = dice.choice([1, 2, 30])
        words = [dice.choice(some[: -1 if dice.randrange(few) else 5]) for _ in range(200)]
        if few == 1:
            words = [dice.randrange(16) | dice.randrange(6) << 4 for _ in range(200)]
        for _ in range(dice.randrange(3)):
            record = dice.choice(EXACT)
            at = dice.randrange(150)
            words[at : at + len(record) // 8] = struct.unpack(f"<{len(record) // 8}Q", record)
        words[0] = 5 << 20
        if dice.randrange(2):
            # A record whose size is lost, and what follows it.
            record = dice.choice(EXACT) + dice.choice([*EXACT, bytes(8), pack(5 << 20)])
            words[: len(record) // 8] = struct.unpack(f"<{len(record) // 8}Q", record)
            words[0] &= ~0xFFF0
        for big_endian in (False, True):
            data = render([words], big_endian=big_endian)  # type: ignore[list-item]
            (first, *_) = RecordDecoder(big_endian=big_endian).records(data)
            assert first.nbytes == 8 * resumes(words)


def test_zero_words_are_one_padding() -> None:
    data = instant() + bytes(24) + instant() + bytes(8192 + 8)
    assert kinds(data) == [("event", 32), ("padding", 24), ("event", 32), ("padding", 8200)]
    assert findings(data) == [("FXT0006", 32, 1), ("FXT0006", 88, 3)]


def test_odd_bytes_at_the_end() -> None:
    assert findings(instant() + b"odd") == [("FXT0005", 32, 1)]
    assert findings(bytes(11)) == [("FXT0006", 0, 0), ("FXT0005", 8, 1)]
    assert kinds(b"\0\0") == [("damaged", 2)]


def test_unknown_types_are_skipped_by_their_size() -> None:
    data = pack(11 | 1 << 4, 14 | 2 << 4, 0xFFFF) + instant()
    assert kinds(data) == [("unknown", 8), ("unknown", 16), ("event", 32)]
    assert findings(data) == [("FXT0007", 0, 0), ("FXT0007", 8, 1)]


def test_records_over_the_limit() -> None:
    data = instant() + string(1, b"x" * 100) + pack(14 | 20 << 4, *range(19)) + instant(name=1)
    assert findings(data, max_record=64) == [
        ("FXT0008", 32, 1),
        ("FXT0008", 144, 2),
        ("FXT0104", 304, 3),
    ]
    assert findings(data, max_record=0) == [("FXT0007", 144, 2)]
    assert "FXT0008" not in codes(string(1, b"x" * 56), max_record=64)


@cases(
    "data",
    [
        string(1, b"a" * 9)[:8] + pack(0),
        instant(b"short", name=0x8009),
        pack(4 | 3 << 4, 5, 1),
        pack(4 | 4 << 4 | 4 << 16, 5, 1, 2),
        instant(arg_count=1),
        instant(7 | 1 << 4, arg_count=1),
        instant(3 | 1 << 4, arg_count=1),
        instant(0 | 0 << 4, arg_count=1),
        instant(0 | 2 << 4, arg_count=1),
        instant(0 | 1 << 4 | 0x8001 << 16, b"a", arg_count=1),
        instant(10 | 1 << 4 | 1 << 32, b"a", arg_count=1),
        instant(10 | 2 << 4 | 0xFFFFFFFF << 32, b"a", arg_count=1),
        record(wire.RecordType.BLOB, header_words.BLOB, b"four", blob_size=9),
        record(wire.RecordType.LOG, header_words.LOG, 1, 2, 3, message_length=1),
        record(wire.RecordType.USERSPACE_OBJECT, header_words.USERSPACE_OBJECT, 1),
        record(wire.RecordType.KERNEL_OBJECT, header_words.KERNEL_OBJECT, 1, name=0x8001),
        record(wire.RecordType.SCHEDULING, header_words.CONTEXT_SWITCH, 1, 2, scheduling_type=1),
        record(wire.RecordType.SCHEDULING, header_words.LEGACY_CONTEXT_SWITCH, 1, 2, 3, 4),
        record(
            wire.RecordType.PROFILER, header_words.PROFILER_MMAP_WORD, 1, 2, 3, 4, profiler_type=1
        ),
        record(
            wire.RecordType.PROFILER,
            header_words.PROFILER_BACKTRACE_WORD,
            1,
            frame_count=9,
            profiler_type=2,
        ),
        record(15, header_words.LARGE_BLOB),
        record(15, header_words.LARGE_BLOB, 0, (1 << 64) - 1, 5),
        record(15, header_words.LARGE_BLOB, 0, 9, b"eight...", blob_format=1),
        info(1, b"ninebytes")[:8] + pack(0),
    ],
)
def test_contents_that_overrun_damage_one_record(data: bytes) -> None:
    data = pack((struct.unpack("<Q", data[:8])[0] & ~0xFFF0) | len(data) // 8 << 4) + data[8:]
    before, after = string(1, b"kept"), instant(name=1)
    found = findings(before + data + after)
    assert found == [("FXT0004", len(before), 1)]
    records = decode(before + data + after)
    assert records[1].raw == data
    assert records[2].name == "kept"


def test_a_damaged_record_leaves_no_state_behind() -> None:
    bad = info(7, b"ninebytes")[:8]
    bad = pack(struct.unpack("<Q", bad)[0] & ~0xFFF0 | 1 << 4)
    *_, event = decode(string(1, b"kept") + bad + instant(name=1))
    assert event.name == "kept"


# --- Findings ----------------------------------------------------------------------------------

LONG = 0x8000 | 5


@cases(
    ("expected", "data"),
    [
        (["FXT0101"], pack(3 | 3 << 4 | 1 << 16 | 1 << 24, 1, 2)),
        (["FXT0101"], instant(1 << 63 | 1 << 4, 1 << 62 | 1 << 4, arg_count=2)),
        (["FXT0101"], instant(9 | 1 << 4 | 6 << 32, arg_count=1)),
        (["FXT0101"], record(15, header_words.LARGE_BLOB, 1 << 40, 0, blob_format=1)),
        (["FXT0102"], instant(b"a------!", b"b------!", category=0x8001, name=0x8001)),
        (["FXT0102"], instant(10 | 2 << 4 | 1 << 32, b"a------!", arg_count=1)),
        (["FXT0103"], instant(0, 7, 8)),
        (["FXT0103"], init(5, 6)),
        (["FXT0204", "FXT0103"][::-1], init(5, 6, 7, 8)),
        (
            ["FXT0101", "FXT0102", "FXT0103"],
            pack(2 | 3 << 4 | 1 << 16 | 1 << 48 | 1 << 32, b"a------!", 5),
        ),
        (["FXT0104"] * 3, instant(argument(6, value=4, name=5), arg_count=1, name=6)),
        (
            ["FXT0105", "FXT0105"],
            record(8, header_words.LEGACY_CONTEXT_SWITCH, 1, outgoing=1, incoming=2),
        ),
        (
            ["FXT0106"] * 2,
            string(1, b"a")
            + thread(1, 1, 2)
            + info(4)
            + record(4, header_words.EVENT, 1, thread=1, name=1),
        ),
        (["FXT0107"], string(1, b"\xff") + instant(name=1) + instant(name=1)),
        (["FXT0107"] * 2, instant(b"\xff", b"\xfe", category=0x8001, name=0x8001)),
        (["FXT0107"], record(9, header_words.LOG, 1, 2, 3, b"\xff", message_length=1)),
        (["FXT0107"], info(4, b"\xff")),
        (["FXT0108"], record(7, header_words.KERNEL_OBJECT, 1, b"\xff", name=0x8001)),
        (["FXT0109"], string(0, b"a")),
        (["FXT0109"], thread(0, 1, 2)),
        (["FXT0110"], instant(11 | 1 << 4, arg_count=1)),
        (["FXT0111"], instant(5, event_type=11)),
        (["FXT0111"], pack(0 | 1 << 4 | 9 << 16)),
        (["FXT0111"], pack(0 | 2 << 4 | 4 << 16 | 1 << 20 | 1 << 63, 5)),
        (["FXT0111"], pack(8 | 2 << 4 | 9 << 60, 5)),
        (["FXT0111"], pack(10 | 2 << 4 | 9 << 16, 5)),
        (["FXT0111"], pack(15 | 2 << 4 | 9 << 36, 5)),
        (["FXT0111"], pack(15 | 2 << 4 | 9 << 40, 5)),
        (["FXT0112"], record(6, header_words.USERSPACE_OBJECT, 1, 2, 3)),
        (["FXT0103"], record(6, header_words.USERSPACE_OBJECT, 1, 2, 3, 4)),
        (["FXT0113"], record(10, header_words.PROFILER_MMAP_WORD, 1, 2, 3, 4, 5, profiler_type=1)),
        ([], record(10, header_words.PROFILER_MMAP_WORD, 1, 2, 3, 4, 5, 6, profiler_type=1)),
        (["FXT0113"], record(10, header_words.PROFILER_MODULE_WORD, 1, 2, b"a", name_length=1)),
        (["FXT0114"], instant(1 | 3 << 4, 5, 6, arg_count=1)),
        (["FXT0115"], instant(3)),
        (["FXT0117"], pack(wire.MAGIC_WORD ^ 1 << 30)),
        ([], record(8, header_words.CONTEXT_SWITCH, 1, 2, 3, scheduling_type=1, outgoing_state=1)),
        (
            ["FXT0118"],
            record(8, header_words.CONTEXT_SWITCH, 1, 2, 3, scheduling_type=1, outgoing_state=6),
        ),
        (
            ["FXT0118"],
            record(8, header_words.LEGACY_CONTEXT_SWITCH, 1, 2, 3, 4, 5, outgoing_state=1),
        ),
        ([], record(8, header_words.LEGACY_CONTEXT_SWITCH, 1, 2, 3, 4, 5, outgoing_state=5)),
        ([], record(5, header_words.BLOB, blob_type=1)),
        (["FXT0119"], record(5, header_words.BLOB, blob_type=0)),
        (["FXT0119"], record(5, header_words.BLOB, blob_type=4)),
        (["FXT0203"], init(0)),
        (["FXT0204"], init(5, 6, 7)),
        (["FXT0205"], info(4) + info(4)),
        ([], info(0) + section(0)),
        (["FXT0205"], info(0) + info(0)),
        (["FXT0206"], section(4) + info(4)),
        ([], section(0)),
        (["FXT0207"], info(5) + pack(0 | 1 << 4 | 3 << 16 | 5 << 20)),
        (["FXT0207", "FXT0206"], pack(0 | 1 << 4 | 3 << 16 | 5 << 20)),
        (["FXT0111", "FXT0206"], pack(0 | 1 << 4 | 3 << 16 | 5 << 20 | 1 << 52)),
        (["FXT0209"], init(5) + init(5) + init(6)),
        (["FXT0203"], init(0) + init(6)),
        ([], init(5) + info(4) + init(6)),
    ],
)
def test_findings(expected: list[str], data: bytes) -> None:
    assert codes(data) == expected


@cases(
    ("said", "data"),
    [
        ("event type 11", instant(5, event_type=11)),
        ("metadata type 9", pack(0 | 1 << 4 | 9 << 16)),
        ("trace info type 1", pack(0 | 2 << 4 | 4 << 16 | 1 << 20 | 1 << 63, 5)),
        ("event 3", pack(0 | 1 << 4 | 3 << 16 | 5 << 20 | 3 << 52)),
        ("scheduling type 9", pack(8 | 2 << 4 | 9 << 60, 5)),
        ("profiler record type 9", pack(10 | 2 << 4 | 9 << 16, 5)),
        ("large type 9", pack(15 | 2 << 4 | 9 << 36, 5)),
        ("blob format 9", pack(15 | 2 << 4 | 9 << 40, 5)),
        *(
            (
                f"the contents need at least {words} words, the record has 4",
                pack(15 | 4 << 4 | 1 << 40, 0, nbytes, 0),
            )
            for nbytes, words in ((9, 5), (15, 5), (16, 5), (17, 6), (24, 6))
        ),
        (
            "an argument does not fit its size; the record has 6 words",
            instant(3 | 1 << 4, 7, arg_count=1),
        ),
    ],
)
@cases("big_endian", [False, True])
def test_findings_say_which_field_is_wrong(said: str, data: bytes, big_endian: bool) -> None:
    data = wire.MAGIC_BYTES + data
    if big_endian:
        data = np.frombuffer(data, ">u8").astype("<u8").tobytes()
    with fxf.open(data, format="trace") as tables, fxf.open(data, format="trace") as records:
        tables.scan()
        list(records.records())
        for capture in tables, records:
            messages = [each.message for each in capture.diagnostics]
            assert [each for each in messages if said in each], messages


def test_the_magic_number_comes_first() -> None:
    def first(data: bytes) -> list[str]:
        found = Diagnostics(RULES)
        list(RecordDecoder(diagnostics=found).records(data))
        return [each.code for each in found]

    assert first(wire.MAGIC_BYTES) == []
    assert first(b"") == []
    assert first(instant()) == ["FXT0201"]
    assert first(bytes(8)) == ["FXT0201", "FXT0006"]
    assert first(b"odd") == ["FXT0201", "FXT0005"]


def test_findings_say_where_they_are() -> None:
    odd = argument(11) + argument(1, 7, name=9)
    data = string(1, b"a") + instant(odd, name=1, category=8, arg_count=2)
    data += instant(1 << 4, 1 << 4 | 1 << 63, 1 << 4 | 1 << 63, 0, 0, arg_count=3)
    found = Diagnostics(RULES)
    list(RecordDecoder(diagnostics=found).records(data))
    at = len(string(1, b"a"))
    assert [(each.code, each.offset, each.record) for each in found][1:] == [
        ("FXT0104", at, 1),
        ("FXT0110", at + 32, 1),
        ("FXT0104", at + 40, 1),
        ("FXT0114", at + 40, 1),
        ("FXT0101", at + 56 + 40, 2),
        ("FXT0103", at + 56, 2),
    ]
    assert "8" in found[1].message
    assert "9" in found[3].message


def test_strict_stops_at_the_first_loss() -> None:
    decoder = RecordDecoder(diagnostics=Diagnostics(RULES, strict=True))
    records = decoder.records(instant(3) + init(0) + instant(name=7) + instant())
    assert [next(records).record, next(records).record] == ["event", "initialization"]
    with pytest.raises(StrictError) as stopped:
        next(records)
    assert (stopped.value.code, stopped.value.offset, stopped.value.record) == ("FXT0104", 56, 2)


@hypothesis.given(damaged(fxt_streams()))
def test_findings_of_any_bytes_lie_in_their_records(data: bytes) -> None:
    found = Diagnostics(RULES)
    records = list(RecordDecoder(diagnostics=found).records(data))
    for each in found:
        assert each.record is not None
        place = records[each.record]
        assert each.offset is not None
        assert place.offset <= each.offset < place.offset + place.nbytes
    lost = Counter(each.record for each in found if each.code in {"FXT0101", "FXT0102", "FXT0103"})
    assert max(lost.values(), default=0) <= 3
    for number, place in enumerate(records):
        if isinstance(place, fx.Damaged):
            assert place.code in {each.code for each in found if each.record == number}


# --- Providers ---------------------------------------------------------------------------------


def names(data: bytes) -> list[str]:
    return [each.name for each in decode(data) if isinstance(each, fx.Event)]


def test_each_provider_has_tables_of_its_own() -> None:
    a, b = info(1) + string(1, b"a"), info(2) + string(1, b"b")
    data = a + b + instant(name=1) + section(1) + instant(name=1)
    assert names(data) == ["b", "a"]


def test_tables_that_lack_an_index_look_in_those_of_provider_0() -> None:
    data = string(1, b"zero") + info(1) + instant(name=1) + string(1, b"one") + instant(name=1)
    assert names(data) == ["zero", "one"]


def test_info_again_empties_the_tables() -> None:
    one = info(1) + string(1, b"a")
    assert names(one + instant(name=1) + info(1) + instant(name=1)) == ["a", "<str#1>"]
    assert names(string(1, b"a") + info(0) + instant(name=1)) == ["a"]
    assert names(section(1) + string(1, b"a") + info(1) + instant(name=1)) == ["a"]


def test_registering_again_replaces_and_index_0_is_ignored() -> None:
    data = string(1, b"a") + string(1, b"b") + string(0, b"c") + instant(name=1) + instant()
    assert names(data) == ["b", ""]


def test_a_decoder_begins_anew_with_each_file() -> None:
    decoder = RecordDecoder()
    list(decoder.records(string(1, b"a")))
    (event,) = decoder.records(instant(name=1))
    assert event.to_json()["name"] == "<str#1>"


def test_the_magic_number_tells_the_byte_order() -> None:
    assert wire.is_big_endian(wire.MAGIC_BYTES_BIG_ENDIAN + b"more")
    assert not wire.is_big_endian(wire.MAGIC_BYTES)
    assert not wire.is_big_endian(b"")


# --- explain -----------------------------------------------------------------------------------


def fields(data: bytes, offset: int) -> list[tuple[int, str, int, str]]:
    views = explain(Source.open(data), offset)
    return [(view.offset, view.name, view.value, view.meaning) for view in views]


def test_explain_names_every_field() -> None:
    event = instant(
        b"inline",
        argument(5, struct.unpack("<Q", struct.pack("<d", 1.5))[0], name=7),
        9,
        event_type=1,
        category=0x8006,
        name=3,
        arg_count=1,
    )
    for offset in range(16, 16 + len(event)):
        assert fields(string(1, b"a") + event, offset)[3:] == [
            (16, "arg_count", 1, "number of arguments"),
            (16, "thread", 0, "inline"),
            (16, "category", 0x8006, "inline, 6 bytes"),
            (16, "name", 3, "index 3"),
            (24, "timestamp", 5, ""),
            (32, "process koid", 1, ""),
            (40, "thread koid", 2, ""),
            (48, "category", int.from_bytes(b"inline", "little"), "'inline\\x00\\x00'"),
            (56, "arg_type", 5, "double"),
            (56, "arg_size", 2, "words, this one included"),
            (56, "name", 7, "index 7"),
            (64, "value", 0x3FF8 << 48, "1.5"),
            (72, "counter_id", 9, ""),
        ]


def test_explain_shows_damage_and_what_is_not_ours() -> None:
    assert fields(instant(5, 6), 0)[-2:] == [
        (32, "scope", 5, ""),
        (40, "trailing", 6, "beyond what the record needs: 06 00 00 00 00 00 00 00  |........|"),
    ]
    assert fields(instant(0), 0)[-1] == (32, "scope", 0, "thread")
    overrun = fields(instant(b"a", name=0x8009), 0)[-1]
    contents = "do not fit the record: 61 00 00 00 00 00 00 00  |a.......|"
    assert overrun == (32, "contents", ord("a"), contents)
    damage = f"{RULES['FXT0001'].title}: 00 00 50 00 00 00 00 00  |..P.....|"
    assert fields(pack(5 << 20), 7) == [(0, "damaged", 5 << 20, damage)]
    zeros = "00 00 00 00 00 00 00 00  |........|"
    assert fields(bytes(16), 15) == [
        (0, "padding", 0, f"zero word: {zeros}"),
        (8, "padding", 0, zeros),
    ]
    rest = f"{RULES['FXT0005'].title}: 61 62 63  |abc|"
    assert fields(instant() + b"abc", 34) == [(32, "damaged", 0x636261, rest)]
    assert fields(pack(14 | 2 << 4 | 1 << 16, 5), 0)[2:] == [
        (0, "contents", 1, ""),
        (8, "contents", 5, "'\\x05\\x00\\x00\\x00\\x00\\x00\\x00\\x00'"),
    ]


def test_explain_reads_big_endian() -> None:
    stream = [[wire.MAGIC_WORD], [3 | 3 << 4 | 1 << 16, 5, 6]]
    views = fields(render(stream, big_endian=True), 8)
    assert views[2:] == [
        (8, "thread_index", 1, "thread index"),
        (16, "pid", 5, ""),
        (24, "tid", 6, ""),
    ]


def test_explain_lists_the_words_around_the_byte() -> None:
    payload = bytes(range(256)) * 8
    data = record(wire.RecordType.BLOB, header_words.BLOB, payload, blob_size=len(payload))
    for offset in (0, 8, 1000, len(data) - 1):
        views = explain(Source.open(data), offset)
        assert len(views) <= SHOWN_WORDS + 10
        assert any(view.offset <= offset < view.offset + 8 for view in views)
        words = sum(v.value if "not listed" in v.meaning else 1 for v in views if v.offset)
        assert words == len(payload) // 8


def test_explain_refuses_a_byte_that_is_not_there() -> None:
    for offset in (-1, 32):
        with pytest.raises(UsageError):
            explain(Source.open(instant()), offset)


@hypothesis.given(st.one_of(damaged(fxt_streams()), any_bytes()), st.data())
def test_explain_covers_any_bytes(data: bytes, draw: st.DataObject) -> None:
    if not data or data[:3] == b"\x1f\x8b\x08":
        return
    offset = draw.draw(st.integers(0, len(data) - 1))
    views = explain(Source.open(data), offset)
    (place,) = [
        r
        for r in decode(data, big_endian=wire.is_big_endian(data))
        if r.offset <= offset < r.offset + r.nbytes
    ]
    assert views[0].offset == place.offset
    assert all(view.name and view.section for view in views)
    assert all(place.offset <= view.offset < place.offset + place.nbytes for view in views)


# --- The writer --------------------------------------------------------------------------------


@cases("big_endian", [False, True])
def test_the_writer_gives_the_bytes_back(big_endian: bool) -> None:
    stream = [[wire.MAGIC_WORD], [2 | 2 << 4 | 1 << 16 | 1 << 32, b"a\0\0\0\0\0\0\0"]]
    data = render(stream, big_endian=big_endian)
    sink = Sink.memory()
    writer = open_writer(sink, {"big_endian": big_endian}, Diagnostics(RULES))
    objects = shown(data, big_endian=big_endian)
    writer.write(objects[0])
    writer.write(decode(data, big_endian=big_endian)[1])
    with pytest.raises(WriteRefusedError):
        writer.write({"record": "event"})
    writer.close()
    assert sink.getvalue() == data


def test_the_writer_does_not_hold_everything_back() -> None:
    sink = Sink.memory()
    writer = open_writer(sink, {}, Diagnostics(RULES))
    blob = {"record": "blob", "name": "", "blob_type": 1, "payload_hex": "00" * 32000}
    for _ in range(100):
        writer.write(blob)
    assert sink.written > 1 << 20
    writer.close()
    assert sink.written == 100 * 32008
