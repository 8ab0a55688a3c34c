"""Record JSON in bulk is, line by line, the JSON of the records."""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import orjson
import pytest
from hypothesis import strategies as st

from fx_trace import format as wire
from fx_trace.read.blocks import Objects
from fx_trace.read.capture import TraceCapture
from fx_trace.read.decoder import RecordEncoder
from fx_trace.read.image import BufferCapture
from fx_trace.read.lines import TraceLines
from fx_trace.write.buffer import TraceBuffer
from fxframework.io.limits import Limits
from fxframework.io.memory import BytesMemory
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.wire import lines

from ...cases import cases
from .framed import frames
from .streams import damaged, fxt_streams

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "trace"
SAMPLE = CONFORMANCE / "files" / "magic_trace_sample.fxt"
VECTORS = sorted((CONFORMANCE / "vmo").glob("*.vmo"))
IMAGE = 12288
Opener = Callable[[bytes], TraceCapture]


def opened(data: bytes) -> TraceCapture:
    return TraceCapture(Source.open(data), OpenRequest())


def opened_image(data: bytes) -> BufferCapture:
    return BufferCapture(Source.open(data), OpenRequest())


def image(stream: bytes, mode: wire.BufferingMode) -> bytes:
    """A trace buffer with the records of a stream; what others refer to is durable."""
    memory = BytesMemory(bytes(IMAGE))
    buffer = TraceBuffer(memory, mode)
    buffer.on_full = buffer.saved
    durable = mode != wire.BufferingMode.ONESHOT
    for start, end, header, code in frames(stream):
        if code is None and header & 15 != wire.RecordType.METADATA:
            shared = header & 15 in (wire.RecordType.STRING, wire.RecordType.THREAD)
            buffer.put(stream[start:end], durable=durable and shared)
    buffer.stop()
    return memory.read(0, IMAGE)


def one_by_one(data: bytes, opened: Opener = opened) -> tuple[list[bytes], dict[str, int]]:
    capture = opened(data)
    lines = [orjson.dumps(record.to_json()) for record in capture.records()]
    return lines, dict(capture.diagnostics.counts)


def in_bulk(data: bytes, opened: Opener = opened) -> tuple[list[bytes], dict[str, int]]:
    capture = opened(data)
    lines = b"".join(capture.records_json()).splitlines()
    return lines, dict(capture.diagnostics.counts)


@hypothesis.given(fxt_streams() | damaged(fxt_streams()))
def test_lines_are_the_records(data: bytes) -> None:
    # Twice the same, so that what the first half taught meets the second.
    for stream in (data, data + data[: len(data) // 8 * 8]):
        assert in_bulk(stream) == one_by_one(stream)


@hypothesis.given(fxt_streams() | damaged(fxt_streams()), st.integers(0, 3), st.booleans())
def test_findings_are_those_of_the_records(data: bytes, most: int, records_first: bool) -> None:
    """However few are listed, and whichever of both is read first."""
    request = OpenRequest(limits=Limits(max_findings=most))
    found = []
    for in_turns in (False, True):
        capture = TraceCapture(Source.open(2 * data), request)
        readings = [capture.records_json, capture.records]
        readings = readings[::-1] if records_first else readings
        for reading in readings if in_turns else [capture.records]:
            deque(reading(), maxlen=0)
        found.append((list(capture.diagnostics), dict(capture.diagnostics.counts)))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("nbytes", "size"), [(1, 20_000), (1000, 200_000), (lines.BLOCK_BYTES, 200_000)]
)
def test_lines_of_a_real_capture(nbytes: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", nbytes)
    data = SAMPLE.read_bytes()[:size]
    assert in_bulk(data) == one_by_one(data)


EVENT = wire.RecordType.EVENT | 1 << 24 | 1 << 32 | 2 << 48
"""The header of an instant on thread 1 with two registered strings, but for its size."""
ODD_RECORDS = {
    "arguments that do not fit": [EVENT | 3 << 4 | 15 << 20, 7, 8],
    "an argument without a size": [EVENT | 3 << 4 | 1 << 20, 7, 2 << 16],
    "an argument past the record": [EVENT | 3 << 4 | 1 << 20, 7, 9 << 4 | 2 << 16],
    "reserved bits of an argument": [EVENT | 3 << 4 | 1 << 20, 7, 1 << 4 | 2 << 16 | 5 << 32],
    "an argument of no type": [EVENT | 4 << 4 | 1 << 20, 7, 12 | 2 << 4 | 2 << 16, 9],
    "words behind an argument": [EVENT | 4 << 4 | 1 << 20, 7, 2 << 4 | 2 << 16, 77],
    "a name that is not UTF-8": [EVENT & ~(2 << 48) | 0x8008 << 48 | 3 << 4, 7, 0xFEFDFCFFFEFDFC],
    "padding that is not zero": [EVENT & ~(2 << 48) | 0x8003 << 48 | 3 << 4, 7, 0xFF00000000414243],
    "words behind the fields": [EVENT | 4 << 4, 7, 8, 9],
    "an event of no type": [EVENT | 2 << 4 | 13 << 16, 7],
    "metadata of no type": [1 << 4 | 9 << 16],
    "a record of no type": [12 | 2 << 4, 7],
    "trace info of no type": [1 << 4 | 4 << 16 | 3 << 20],
    "a process where a thread may be": [10 | 3 << 4 | 1 << 16, 9, 4],
    "a state that is none": [8 | 4 << 4 | 9 << 36 | 1 << 60, 7, 8, 9],
    "a string of index 0": [2 | 2 << 4 | 3 << 32, 0x414243],
    "reserved bits of a string": [2 | 1 << 4 | 5 << 16 | 1 << 60],
    "no room for a thread": [EVENT & ~(1 << 24) | 3 << 4, 7, 8],
    "a payload of 2^63 bytes": [15 | 4 << 4 | 1 << 40, 0, 1 << 63, 1],
    "zero words": [EVENT | 2 << 4, 7, 0],
    "a record without a size": [EVENT, 0],
}


@cases("record", ODD_RECORDS.values(), ids=ODD_RECORDS)
def test_odd_records_are_columns_as_well(record: list[int]) -> None:
    """A file of nothing else would take a hundred times as long by objects."""
    start = [wire.MAGIC_WORD, 2 | 2 << 4 | 1 << 16 | 3 << 32, 0x746163, 3 | 3 << 4 | 1 << 16, 5, 6]
    words = [*start, *(50 * record)]
    data = b"".join(word.to_bytes(8, "little") for word in words)
    assert in_bulk(data) == one_by_one(data)
    capture = opened(data)
    reader = TraceLines(capture.file(), Limits())
    assert sum(1 for _ in reader.lines_reported(None)) == 1
    assert not reader.handed


def test_lines_of_a_big_endian_trace_are_not_taken_for_others() -> None:
    # With these indexes, headers read the other way round have the same parts.
    encoder = RecordEncoder(big_endian=True)
    refs = {"thread": 1, "category": 0x0201, "name": 0x2400}
    shown = {"thread": [10, 11], "category": "first", "name": "second"}
    lines: list[dict[str, Any]] = [
        {"record": "thread", "index": 1, "pid": 10, "tid": 11},
        {"record": "string", "index": 0x0201, "value": "first"},
        {"record": "string", "index": 0x2400, "value": "second"},
    ]
    event = {"record": "event", "event": "duration_begin", **shown, "args": [], "refs": refs}
    lines += [{**event, "timestamp": 1000 + at} for at in range(3)]
    data = wire.MAGIC_BYTES_BIG_ENDIAN + b"".join(encoder.encode(line) for line in lines)
    assert in_bulk(data) == one_by_one(data)


@hypothesis.given(
    fxt_streams(), st.sampled_from(wire.BufferingMode), st.lists(st.integers(0, 8 * IMAGE - 1))
)
def test_lines_of_a_trace_buffer_are_the_records(
    stream: bytes, mode: wire.BufferingMode, flips: list[int]
) -> None:
    data = bytearray(image(4 * stream, mode))
    for bit in flips[:4]:
        data[bit >> 3] ^= 1 << (bit & 7)
    for cut in (IMAGE, IMAGE // 2 + 3):
        assert in_bulk(bytes(data[:cut]), opened_image) == one_by_one(
            bytes(data[:cut]), opened_image
        )


def test_lines_of_the_images_of_the_vectors_are_the_records() -> None:
    for path in VECTORS:
        data = path.read_bytes()
        assert in_bulk(data, opened_image) == one_by_one(data, opened_image), path.name
    assert VECTORS


@cases("index", [1, 2, 3, 4])
def test_a_string_that_is_registered_again_changes_what_names_it(index: int) -> None:
    encoder = RecordEncoder()
    names = {1: "category", 2: "name", 3: "argument", 4: "value"}
    lines: list[dict[str, Any]] = [
        {"record": "thread", "index": 1, "pid": 10, "tid": 11},
        *({"record": "string", "index": at, "value": name} for at, name in names.items()),
    ]
    for time in range(4):
        if time == 2:
            names = {**names, index: "another"}
            lines.append({"record": "string", "index": index, "value": "another"})
        arg = {"name": names[3], "type": "string", "value": names[4]}
        refs = {"thread": 1, "category": 1, "name": 2}
        event = {"record": "event", "event": "instant", "timestamp": time, "thread": [10, 11]}
        event |= {"category": names[1], "name": names[2], "refs": refs}
        lines.append({**event, "args": [{**arg, "refs": {"name": 3, "value": 4}}]})
    data = wire.MAGIC_BYTES + b"".join(encoder.encode(line) for line in lines)
    assert in_bulk(data) == one_by_one(data)
    assert b"another" in in_bulk(data)[0][-1]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The places of the records that became objects so far."""
    places: list[int] = []
    read = Objects.read

    def noted(self: Objects) -> Any:
        places.append(self.at)
        return read(self)

    monkeypatch.setattr(Objects, "read", noted)
    return places


@cases(
    "name",
    [
        "a million strings",
        "inline strings",
        "thousands of threads",
        "many providers",
        "dangling references",
    ],
)
def test_what_events_refer_to_may_be_new_for_each(name: str, decoded: list[int]) -> None:
    make = importlib.import_module("tests.bench.shapes.trace").shapes()[name]
    data = make(20_000)
    assert in_bulk(data) == one_by_one(data)
    counts = []
    for nbytes in (300_000, 600_000):
        decoded.clear()
        lines, _ = in_bulk(make(nbytes))
        counts.append((len(lines), len(decoded)))
    (few, before), (many, after) = counts
    # Of many providers, the sections are decoded one by one.
    share = 0.55 if name == "many providers" else 0.05
    assert after - before < share * (many - few)


def test_sections_of_providers_refer_to_what_was_registered_long_before(
    decoded: list[int],
) -> None:
    encoder = RecordEncoder()
    turns: list[list[dict[str, Any]]] = [
        [{"record": "string", "index": 1 + at, "value": f"name {number} {at}"} for at in range(50)]
        for number in (1, 2)
    ]
    lines: list[dict[str, Any]] = []
    for turn in range(20):
        number = turn % 2
        lines.append({"record": "metadata", "kind": "provider_section", "id": 1 + number})
        lines += turns[number] if turn < 2 else []
        for at in range(60):  # ten names, and every thread, were registered by nobody
            name = f"name {1 + number} {at}" if at < 50 else f"<str#{1 + at}>"
            arg = {"name": "<str#90>", "type": "int32", "value": at, "refs": {"name": 90}}
            lines.append(
                {"record": "event", "event": "instant", "timestamp": at, "args": [arg],
                 "thread": f"<thr#{1 + at % 9}>", "category": "", "name": name,
                 "refs": {"thread": 1 + at % 9, "name": 1 + at}}
            )  # fmt: skip
    data = wire.MAGIC_BYTES + b"".join(encoder.encode(line) for line in lines)
    expected = one_by_one(data)
    decoded.clear()
    assert in_bulk(data) == expected
    assert expected[1]["FXT0104"] > 1200
    assert len(decoded) < 30


@cases("most", [1, 3])
def test_registrations_of_the_kernel_hold_for_records_that_are_decoded(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each event that has a finding is decoded against the strings and threads so far.
    encoder = RecordEncoder()
    lines: list[dict[str, Any]] = []
    for time in range(40):
        name, thread = f"name{time}", [time, time + 1]
        refs = {"thread": 1 + time % most, "name": 1 + time % most}
        lines += [
            {"record": "string", "index": refs["name"], "value": name},
            {"record": "thread", "index": refs["thread"], "pid": time, "tid": time + 1},
            {"record": "event", "event": "instant", "timestamp": time, "thread": thread,
             "category": "<str#99>" if time % 5 == 4 else "", "name": name, "args": [],
             "refs": {**refs, **({"category": 99} if time % 5 == 4 else {})}},
        ]  # fmt: skip
    data = wire.MAGIC_BYTES + b"".join(encoder.encode(line) for line in lines)
    assert in_bulk(data) == one_by_one(data)


def test_a_number_may_look_like_the_length_of_a_string() -> None:
    # The bits of an integer are those of a reference in arguments that are strings.
    encoder = RecordEncoder()
    string = {"name": "", "type": "string", "value": "one", "refs": {"value": 1}}
    number = {"name": "", "type": "uint32", "value": 0xFFFFFFFF}
    lines: list[dict[str, Any]] = [
        {"record": "string", "index": 1, "value": "one"},
        {
            "record": "kernel_object",
            "object_type": 1,
            "koid": 2,
            "name": "",
            "args": [string, number],
        },
    ]
    data = wire.MAGIC_BYTES + b"".join(encoder.encode(line) for line in lines)
    assert in_bulk(data) == one_by_one(data)


def test_blobs_are_written_from_their_bytes(decoded: list[int]) -> None:
    encoder = RecordEncoder()
    lines: list[dict[str, Any]] = [{"record": "string", "index": 7, "value": "seven"}]
    for at in range(300):
        kind = 9 if at == 100 else 1 + at % 3  # nobody has defined 9
        blob = {"record": "blob", "blob_type": kind, "payload_hex": bytes(range(at % 20)).hex()}
        blob |= {"size": at % 20}
        lines.append({**blob, **[{"name": "seven", "refs": {"name": 7}}, {"name": "inline"},
                                 {"name": ""}][at % 3]})  # fmt: skip
    data = wire.MAGIC_BYTES + b"".join(encoder.encode(line) for line in lines)
    expected = one_by_one(data)
    decoded.clear()
    assert in_bulk(data) == expected
    assert len(decoded) < 4
