"""Trace buffers: images read and written, and the engine's side that makes them."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fx_trace import format as wire
from fx_trace import rules
from fx_trace.export import windows
from fx_trace.export.chrome_json import JsonExport
from fx_trace.export.text import TextExport
from fx_trace.format import BUFFER_HEADER_BYTES, BufferingMode
from fx_trace.read.buffer import DATA_ENDS, BufferHeader, Image, header_offset
from fx_trace.read.decoder import RecordEncoder
from fx_trace.read.image import BufferCapture
from fx_trace.sample import buffer_sample
from fx_trace.write.buffer import TraceBuffer
from fx_trace.write.rewriter import BufferWriter
from fx_trace.write.salvage import salvage_image
from fxframework.errors import Severity, WriteRefusedError
from fxframework.io.memory import BytesMemory
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.io.words import U64_MAX
from fxframework.model.capture import OpenRequest
from fxframework.model.target import Memory
from fxframework.registry import Confidence
from fxframework.testing import ReaderContract, Sample, WriterContract
from fxframework.testing.strategies import bit_flips, truncations

from ...cases import cases
from . import header_words
from .framed import frames, held

VMO = Path(__file__).parents[2] / "conformance" / "trace" / "vmo"
VECTORS: list[dict[str, Any]] = json.loads((VMO / "expected.json").read_text("utf-8"))
SOUND = [vector for vector in VECTORS if "event_ts" in vector]
MODES = tuple(wire.MODE_NAMES.values())
SIZES = (4096, 8192, 12288)
Json = dict[str, Any]


def vector(name: str) -> bytes:
    return (VMO / name).read_bytes()


def opened(data: bytes, **request: Any) -> BufferCapture:
    return BufferCapture(Source.open(data), OpenRequest(**request))


def shown(data: bytes) -> list[Json]:
    with opened(data) as capture:
        return [json.loads(json.dumps(record.to_json())) for record in capture.records()]


def written(records: Iterable[Mapping[str, Any]], **options: Any) -> bytes:
    sink = Sink.memory()
    writer = BufferWriter(sink, **options)
    for record in records:
        writer.write(record)
    writer.close()
    return sink.getvalue()


def rewritten(data: bytes) -> bytes:
    with opened(data) as capture:
        options = dict(capture.writer_options)
    return written(shown(data), **options)


def codes(data: bytes) -> set[str]:
    with opened(data) as capture:
        capture.scan()
        return set(capture.diagnostics.counts)


# --- Records that can be told apart -------------------------------------------------------------


def blob(number: int, words: int) -> bytes:
    """A record of so many words; every word of its payload looks like a record itself."""
    header = header_words.BLOB.pack(
        record_type=5, record_size=words, blob_size=8 * (words - 1), blob_type=1
    )
    return struct.pack(f"<{words}Q", header, *[0x25 | number << 32] * (words - 1))


def event(ts: int, name: str = "tick") -> bytes:
    instant = {
        "record": "event",
        "event": "instant",
        "timestamp": ts,
        "thread": [10, 11],
        "category": "cat",
        "name": name,
    }
    return RecordEncoder().encode(instant)


def large(nbytes: int) -> bytes:
    """A large record of so many bytes."""
    words = nbytes // 8
    header = header_words.LARGE_BLOB.pack(
        record_type=15, record_size=words, large_type=0, blob_format=1
    )
    return struct.pack("<3Q", header, 0, nbytes - 24) + bytes(nbytes - 24)


# --- A plain model of what the engine keeps  -----------------------------------------


@attrs.define
class Model:
    mode: str
    total: int
    durable: list[bytes] = attrs.field(factory=list)
    halves: list[list[bytes]] = attrs.field(factory=lambda: [[]])
    """Every rolling half ever begun, in order."""
    dropped: int = 0
    full: bool = False
    unsaved: bool = False
    """Whether the half that is not current waits to be saved."""

    @property
    def sizes(self) -> tuple[int, int]:
        header = BufferHeader.for_size(self.total, self.mode)
        return header.durable_buffer_size, header.rolling_buffer_size

    def put(self, record: bytes, *, durable: bool) -> bool:
        done = self._put(record, durable=durable and self.mode != "oneshot")
        self.dropped += not done
        return done

    def _put(self, record: bytes, *, durable: bool) -> bool:
        apart, half = self.sizes
        if len(record) > 256 << 10 or len(record) > (apart if durable else half):
            return False
        if durable:
            if len(b"".join(self.durable)) + len(record) > apart:
                return False
            self.durable.append(record)
            return True
        if self.full or len(b"".join(self.halves[-1])) + len(record) > half:
            if self.mode == "oneshot":
                self.full = True
                return False
            if self.unsaved:
                return False
            self.halves.append([])
            self.unsaved = self.mode == "streaming"
        self.halves[-1].append(record)
        return True

    def reads(self) -> list[bytes]:
        return [*self.durable, *[record for half in self.halves[-2:] for record in half]]

    def without_older(self) -> list[bytes]:
        return [*self.durable, *self.halves[-1]]


@st.composite
def runs(draw: st.DrawFn) -> tuple[str, int, list[tuple[int, bool, bool]]]:
    """Mode, size, and per record: words, whether durable, whether the manager saves after it."""
    mode = draw(st.sampled_from(MODES))
    total = draw(st.sampled_from(SIZES))
    words = st.one_of(st.integers(2, 12), st.integers(2, 300), st.just(232), st.integers(400, 600))
    step = st.tuples(words, st.booleans(), st.booleans())
    return mode, total, draw(st.lists(step, max_size=80))


@given(runs(), st.binary(min_size=8, max_size=64))
def test_what_was_committed_is_what_is_read(run: Any, litter: bytes) -> None:
    mode, total, steps = run
    memory = BytesMemory((litter * (total // len(litter) + 1))[:total])
    buffer = TraceBuffer(memory, mode)
    model = Model(mode, total)
    full: list[tuple[int, int]] = []
    buffer.on_full = lambda wrapped, durable: full.append((wrapped, durable))
    for number, (words, durable, save) in enumerate(steps):
        record = blob(number, words)
        assert buffer.put(record, durable=durable) == model.put(record, durable=durable)
        assert buffer.dropped == model.dropped
        assert held(memory.read(0, total)) == model.reads()
        if save and full:
            buffer.saved(*full.pop())
            model.unsaved = False
    buffer.stop()
    image = memory.read(0, total)
    assert held(image) == model.reads()
    header = buffer.header
    assert header.check(total) == []
    assert header.num_records_dropped == model.dropped
    assert header.wrapped_count == len(model.halves) - 1
    assert header.durable_data_end == len(b"".join(model.durable))
    ends = header.rolling_data_end_0, header.rolling_data_end_1
    assert ends[header.wrapped_count % 2] == len(b"".join(model.halves[-1]))
    assert not buffer.put(blob(0, 2))
    assert memory.read(0, total) == image
    assert rewritten(image) == image


class Logging(BytesMemory):
    """A memory that remembers its stores."""

    def __init__(self, contents: bytes) -> None:
        super().__init__(contents)
        self.stores: list[tuple[int, int]] = []

    def store_u64(self, offset: int, value: int) -> None:
        self.stores.append((offset, value))
        super().store_u64(offset, value)

    def write(self, offset: int, buffer: bytes) -> None:
        for at in range(0, len(buffer), 8):
            self.store_u64(offset + at, int.from_bytes(buffer[at : at + 8], "little"))


@cases("mode", MODES)
@cases("seed", range(3))
def test_a_crash_after_any_store_leaves_whole_records(mode: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    memory = Logging(struct.pack("<Q", 0x25) * 512)  # all of it looks like records
    start = memory.read(0, memory.size)
    buffer = TraceBuffer(memory, mode)
    model = Model(mode, memory.size)
    buffer.on_full = buffer.saved
    formatted = len(memory.stores)
    allowed: list[list[list[bytes]]] = []  # by store: what an image may read as
    for number in range(72):
        record = blob(number, int(rng.integers(2, 40)))
        durable = bool(rng.random() < 0.1)
        before, halves, without = model.reads(), len(model.halves), model.without_older()
        model.put(record, durable=durable)
        model.unsaved = False
        buffer.put(record, durable=durable)
        states = [before, model.reads()]
        if len(model.halves) > halves:
            states.insert(1, without)
        allowed += [states] * (len(memory.stores) - formatted - len(allowed))
    buffer.stop()
    allowed += [[model.reads()]] * (len(memory.stores) - formatted - len(allowed))
    assert mode == "oneshot" or buffer.wrapped_count > 3

    image = BytesMemory(start)
    for offset, value in memory.stores[: formatted - 1]:
        image.store_u64(offset, value)
        assert Image(np.frombuffer(image.read(0, image.size), np.uint8)).header is None
    image.store_u64(*memory.stores[formatted - 1])
    assert held(image.read(0, image.size)) == []
    reached = 0
    for (offset, value), states in zip(memory.stores[formatted:], allowed, strict=True):
        image.store_u64(offset, value)
        found = held(image.read(0, image.size))
        assert found in states
        reached += 1
    assert reached == len(allowed)
    assert image.read(0, image.size) == memory.read(0, memory.size)


@cases("mode", MODES)
def test_a_crashed_buffer_is_gone_on_with(mode: str) -> None:
    memory = BytesMemory(4096)
    first = TraceBuffer(memory, mode)
    records = [blob(number, 20) for number in range(15)]
    assert all(first.put(record) for record in records[:7])
    assert first.put(b"".join([blob(99, 4)]), durable=True)
    before = held(memory.read(0, 4096))
    if mode != "circular":
        first.stop()
    again = TraceBuffer(memory, mode, format=False)
    assert held(memory.read(0, 4096)) == before
    assert all(again.put(record) for record in records[7:])
    if mode == "oneshot":
        assert held(memory.read(0, 4096)) == [*before, *records[7:]]
    else:
        assert held(memory.read(0, 4096)) == [blob(99, 4), *records]
    with pytest.raises(WriteRefusedError, match="not hold such a trace buffer"):
        TraceBuffer(BytesMemory(4096), mode, format=False)


def test_a_record_that_exactly_fills_is_read() -> None:
    memory = BytesMemory(struct.pack("<Q", 0x25) * 512)
    buffer = TraceBuffer(memory, BufferingMode.CIRCULAR)
    records = [blob(number, 116) for number in range(4)]  # two of them fill a half
    assert all(buffer.put(record) for record in records[:2])
    assert buffer.put(blob(9, 32), durable=True)
    assert not buffer.put(blob(9, 2), durable=True)
    image = memory.read(0, 4096)
    assert held(image) == [blob(9, 32), *records[:2]]
    assert buffer.header.to_json()["rolling_data_end"] == [0, 0]
    assert codes(image) == {"FXT0504", "FXT0505"}
    for record in records[2:]:
        assert buffer.put(record)
    assert held(memory.read(0, 4096)) == [blob(9, 32), *records]
    assert buffer.wrapped_count == 1
    buffer.stop()
    assert codes(memory.read(0, 4096)) == {"FXT0508"}


def test_streaming_waits_to_be_saved() -> None:
    memory = BytesMemory(4096)
    told: list[tuple[int, int]] = []
    buffer = TraceBuffer(memory, "streaming", on_full=lambda *what: told.append(what))
    assert buffer.put(blob(0, 3), durable=True)
    assert all(buffer.put(blob(number, 116)) for number in range(4))
    assert told == [(0, 24)]
    assert not buffer.put(blob(5, 116))
    buffer.saved(7, 0)  # of no half that waits
    assert not buffer.put(blob(5, 116))
    buffer.saved(0, 24)
    assert buffer.put(blob(6, 116))
    assert told == [(0, 24), (1, 24)]
    assert buffer.dropped == 2
    assert held(memory.read(0, 4096)) == [blob(0, 3), blob(2, 116), blob(3, 116), blob(6, 116)]


def test_too_large_records_are_dropped_and_others_are_refused() -> None:
    buffer = TraceBuffer(BytesMemory(1 << 20), "oneshot")
    assert not buffer.put(large((256 << 10) + 8))
    assert buffer.put(large(256 << 10))
    assert buffer.dropped == 1
    small = TraceBuffer(BytesMemory(4096), "circular")
    assert not small.put(blob(1, 233))
    assert small.put(blob(1, 232))
    provider = RecordEncoder().encode({"record": "metadata", "kind": "provider_section", "id": 1})
    for code, record in (
        ("FXT0410", provider),
        ("FXT0411", b""),
        ("FXT0411", b"1234"),
        ("FXT0411", bytes(8)),
        ("FXT0411", blob(1, 3)[:-8]),
        ("FXT0411", blob(1, 3) + bytes(8)),
    ):
        with pytest.raises(WriteRefusedError) as refused:
            small.put(record)
        assert refused.value.code == code
    assert small.dropped == 1


# --- The header ---------------------------------------------------------------------------------


def test_sizes_are_the_engines() -> None:
    header = BufferHeader.for_size(4096, "circular")
    assert (header.durable_buffer_size, header.rolling_buffer_size) == (256, 1856)
    assert BufferHeader.for_size(4096, 0).rolling_buffer_size == 3968
    most = BufferHeader.for_size(1 << 32, BufferingMode.STREAMING)
    assert most.durable_buffer_size == 1 << 20
    for size in (0, 4095, 4096 + 8, 2048, -4096, (1 << 32) + 4096):
        with pytest.raises(WriteRefusedError, match=str(size)):
            BufferHeader.for_size(size, "oneshot")
    with pytest.raises(WriteRefusedError, match="sideways"):
        BufferHeader.for_size(4096, "sideways")


@given(st.integers(1, 1 << 20), st.sampled_from(MODES))
def test_sizes_that_the_engine_takes_are_consistent(pages: int, mode: str) -> None:
    header = BufferHeader.for_size(4096 * pages, mode)
    assert header.check(4096 * pages) == []
    assert BufferHeader.of(header.pack()) == header
    assert BufferHeader.from_json(json.loads(json.dumps(header.to_json()))) == header


@given(st.binary(min_size=128, max_size=128))
def test_any_header_comes_out_as_it_was(data: bytes) -> None:
    header = BufferHeader.of(data)
    assert header.encode() == data
    assert header.check(128)
    again = BufferHeader.from_json(json.loads(json.dumps(header.to_json())))
    assert again.encode() == data


@cases(
    ("change", "message"),
    [
        ({"magic": 1}, "bad magic 0x0000000000000001"),
        ({"version": 1}, "unsupported version 1"),
        ({"mode": 3}, "unknown buffering mode 3"),
        ({"total_size": 8192}, "total size 8192 is not the file's, 4096"),
        ({"durable_buffer_size": 252}, "durable_buffer_size is not a multiple of 8"),
        ({"mode": "oneshot"}, "a oneshot buffer has no durable part"),
        ({"rolling_buffer_size": 2048}, "rolling buffer too large"),
        ({"durable_buffer_size": 1856}, "durable buffer too large"),
        ({"durable_buffer_size": 264}, "buffer sizes don't add up"),
        ({"durable_data_end": 264}, "durable_data_end is beyond its buffer"),
        ({"rolling_data_end_1": 4}, "rolling_data_end_1 is not a multiple of 8"),
    ],
)
def test_every_fault_of_a_header_is_named(change: Mapping[str, Any], message: str) -> None:
    sound = BufferHeader.for_size(4096, "circular")
    faults = attrs.evolve(sound, **change).check(4096)
    assert message in [str(fault) for fault in faults]
    assert all(0 <= fault.offset < BUFFER_HEADER_BYTES for fault in faults)


@cases(
    ("change", "code"),
    [
        ({"mode": "sideways"}, "FXT0403"),
        ({"mode": 256}, "FXT0404"),
        ({"total_size": "big"}, "FXT0403"),
        ({"total_size": -1}, "FXT0404"),
        ({"total_size": U64_MAX + 1}, "FXT0404"),
        ({"magic": "xyz"}, "FXT0403"),
        ({"magic": None}, "FXT0403"),
        ({"rolling_data_end": [1]}, "FXT0403"),
        ({"rolling_data_end": True}, "FXT0403"),
        ({"raw": "no"}, "FXT0403"),
        ({"raw": 5}, "FXT0403"),
        ({"colour": "red"}, "FXT0402"),
        ({"total_size": 1 << 40}, "FXT0412"),
        ({"durable_buffer_size": 8}, "FXT0412"),
    ],
)
def test_an_edited_header_is_refused_by_name(change: Json, code: str) -> None:
    header = BufferHeader.for_size(4096, "circular").to_json()
    with pytest.raises(WriteRefusedError) as refused:
        written([{**header, **change}])
    assert refused.value.code == code
    assert refused.value.remedy
    del header["version"]
    with pytest.raises(WriteRefusedError, match="version is missing"):
        written([header])


def test_reserved_bits_are_kept_and_found() -> None:
    data = bytearray(vector("circular_wrapped1.vmo"))
    data[11] = 7
    data[100] = 1
    header = shown(bytes(data))[0]
    assert header["raw"] == data[:128].hex()
    assert codes(bytes(data)) == {"FXT0509"}
    assert rewritten(bytes(data)) == bytes(data)
    header["num_records_dropped"] = 3  # an edit voids them
    edited = written([header, *shown(bytes(data))[1:]])
    assert edited[11] == edited[100] == 0
    assert edited[64] == 3


# --- Images -------------------------------------------------------------------------------------


@cases("case", SOUND, ids=lambda case: case["file"])
def test_vectors_read_in_order(case: Json) -> None:
    data = vector(Path(case["file"]).name)
    records = shown(data)
    assert records[0]["record"] == "buffer_header"
    assert records[0]["mode"] == case["mode"]
    assert records[0]["wrapped_count"] == case.get("wrapped_count", 0)
    assert [r["timestamp"] for r in records if r["record"] == "event"] == case["event_ts"]
    assert sum(record["nbytes"] for record in records) == len(data)
    with opened(data) as capture:
        assert capture.table("instants").array("ticks").tolist() == case["event_ts"]
        at = [r["offset"] for r in records if r["record"] == "event"]
        assert capture.table("instants").array("offset").tolist() == at
        assert capture.summary().facts["mode"] == case["mode"]
        assert not capture.diagnostics.counts
    assert rewritten(data) == data


def test_sizes_that_do_not_add_up_are_an_error() -> None:
    case = next(case for case in VECTORS if "error" in case)
    data = vector(Path(case["file"]).name)
    with opened(data) as capture:
        assert [r.to_json()["record"] for r in capture.records()] == ["damaged"]
        assert capture.summary().kinds == {"damaged": 1}
        assert all(len(capture.table(name)) == 0 for name in capture.schemas)
        (found,) = capture.diagnostics
    assert found.code == "FXT0501"
    assert found.severity is Severity.ERROR
    assert case["error"] in found.message
    assert found.offset == 24
    assert rewritten(data) == data


def circular(
    count: int, *, stop: bool = True, mode: str = "circular", ts: int | None = None
) -> bytes:
    """An image of so many events, each at a time of its own or all at one."""
    memory = BytesMemory(4096)
    buffer = TraceBuffer(memory, mode)
    buffer.on_full = buffer.saved
    rate = RecordEncoder().encode({"record": "initialization", "ticks_per_second": 1_000_000_000})
    assert buffer.put(rate, durable=True)
    for number in range(count):
        buffer.put(event(number if ts is None else ts, f"tick {number}"))
    if stop:
        buffer.stop()
    return memory.read(0, 4096)


@cases("stop", [True, False])
@cases("count", [0, 10, 60, 90, 150, 200])
def test_wrapped_images_are_in_order_in_every_view(count: int, stop: bool) -> None:
    data = circular(count, stop=stop)
    with opened(data) as capture:
        instants = capture.table("instants")
        ticks = instants.array("ticks").tolist()
        assert ticks == list(range(count))[-len(ticks) :] if count else ticks == []
        records = [r for r in capture.records() if r.record == "event"]  # type: ignore[attr-defined]
        assert [r.timestamp for r in records] == ticks  # type: ignore[attr-defined]
        assert instants.array("offset").tolist() == [r.offset for r in records]
        places = capture.read_order(instants.array("offset"))
        assert (np.diff(places) > 0).all()
        for parts in (1, 7):
            batches = list(capture.batches("instants", parts))
            assert [t for b in batches for t in b.array("ticks").tolist()] == ticks
        for open_export in (TextExport, JsonExport):
            if not ticks:
                continue
            sink = Sink.memory()
            session = open_export(sink, {})
            session.write(capture)
            assert session.close() == {}
            numbers = re.findall(r"tick (\d+)", sink.getvalue().decode())
            assert list(map(int, numbers)) == ticks
    assert rewritten(data) == data


@cases("rows", [3, 1 << 16])
def test_events_of_one_time_are_exported_in_the_order_they_were_made(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "ROWS", rows)
    data = circular(90, ts=7)
    names = [r["name"] for r in shown(data) if r["record"] == "event"]
    at = [r["offset"] for r in shown(data) if r["record"] == "event"]
    assert at != sorted(at), "reading begins in the middle"
    for open_export in (TextExport, JsonExport):
        sink = Sink.memory()
        with opened(data) as capture, capture.between(0, 8) as window:
            session = open_export(sink, {})
            session.write(window)
            session.close()
        assert re.findall(r"tick \d+", sink.getvalue().decode()) == names


def test_small_memory_gives_the_same_rows() -> None:
    data = circular(150)
    limits = attrs.evolve(OpenRequest().limits, max_memory=1)
    with opened(data) as whole, opened(data, limits=limits) as small:
        assert not small.fits_memory
        parts = list(small.batches("instants", 5))
        expected = whole.table("instants").array("offset").tolist()
        assert [at for part in parts for at in part.array("offset").tolist()] == expected
        assert small.summary().records == whole.summary().records


def test_findings_of_an_image() -> None:
    running = circular(60, stop=False)
    assert codes(running) == {"FXT0504"}
    twice = circular(200)
    assert "FXT0505" in codes(twice)
    assert codes(twice + b"more") == {"FXT0503", "FXT0505"}
    assert codes(vector("oneshot_stopped.vmo")[:2000]) == {"FXT0502"}
    assert codes(vector("oneshot_stopped.vmo")[:2003]) == {"FXT0502", "FXT0005"}
    hole = bytearray(vector("oneshot_stopped.vmo"))
    hole[0xF8:0x100] = bytes(8)
    assert codes(bytes(hole)) == {"FXT0506"}
    early = bytearray(vector("oneshot_stopped.vmo"))
    early[0x30] -= 8
    assert codes(bytes(early)) == {"FXT0510"}
    assert codes(b"daeh") == {"FXT0501"}
    for data in (running, twice, twice + b"more", bytes(hole), b"daeh"):
        assert rewritten(data) == data


def test_damage_stays_within_its_buffer() -> None:
    data = bytearray(circular(60))
    with opened(bytes(data)) as capture:
        older = capture.image.regions[-2]
        whole = len(capture.table("instants"))
    assert older.name == "rolling 0"
    ends = [end for _, end, _, _ in frames(bytes(data[older.offset :][: older.used]))]
    last = older.offset + ends[-2]
    header = int.from_bytes(data[last : last + 8], "little")
    # The last record of the older half claims to reach into the other one, behind it.
    data[last : last + 8] = (header + (8 << wire.SIZE.low)).to_bytes(8, "little")
    for view in ("records", "tables"):
        with opened(bytes(data)) as capture:
            if view == "records":
                kinds = [record.to_json()["record"] for record in capture.records()]
                assert kinds.count("event") == whole - 1
            else:
                assert len(capture.table("instants")) == whole - 1
            assert capture.diagnostics.counts["FXT0002"] == 1
    assert rewritten(bytes(data)) == bytes(data)


# --- Metadata where none belongs -----------------------------------------------------------------


def oneshot(*records: bytes) -> bytes:
    """A stopped image of these records."""
    body = b"".join(records)
    header = attrs.evolve(BufferHeader.for_size(4096, "oneshot"), rolling_data_end_0=len(body))
    return (header.pack() + body).ljust(4096, b"\0")


def stopped(*records: bytes) -> bytes:
    """A circular image of which rolling buffer 0 holds these records, whatever they are."""
    header = BufferHeader.for_size(4096, "circular")
    body = b"".join(records)
    header = attrs.evolve(header, rolling_data_end_0=len(body))
    return (header.pack() + bytes(header.durable_buffer_size) + body).ljust(4096, b"\0")


INFO = RecordEncoder().encode({"record": "metadata", "kind": "provider_info", "id": 5, "name": "x"})
SECTION = RecordEncoder().encode({"record": "metadata", "kind": "provider_section", "id": 5})


def with_metadata() -> bytes:
    """An image whose records switch providers in their middle, which must have no effect."""
    encoder = RecordEncoder()
    named = encoder.encode({"record": "string", "index": 1, "value": "one"})
    instant = {
        "record": "event",
        "event": "instant",
        "timestamp": 2,
        "thread": [10, 11],
        "category": "one",
        "name": "one",
        "refs": {"category": 1, "name": 1},
    }
    return oneshot(named, event(1), INFO, SECTION, encoder.encode(instant))


def test_metadata_in_an_image_has_no_effect() -> None:
    data = with_metadata()
    records = shown(data)
    kinds = [r["kind"] for r in records if r["record"] == "metadata"]
    assert kinds == ["provider_info", "provider_section"]
    assert [r["name"] for r in records if r["record"] == "event"] == ["tick", "one"]
    with opened(data) as capture:
        assert capture.table("instants").texts("name") == ["tick", "one"]
        assert capture.diagnostics.counts == {"FXT0202": 1, "FXT0507": 2}
        assert capture.summary().records == len(records)
        assert capture.summary().kinds["metadata provider_info"] == 1
    with opened(data) as capture:
        list(capture.records())
        assert capture.diagnostics.counts["FXT0507"] == 2
    assert rewritten(data) == data


def test_metadata_that_overruns_its_record_has_no_effect_either() -> None:
    word = int.from_bytes(INFO[:8], "little") | header_words.PROVIDER_INFO_WORD.pack(
        name_length=200
    )
    data = oneshot(event(1), word.to_bytes(8, "little") + INFO[8:], event(2))
    assert [r["record"] for r in shown(data)][2] == "damaged"
    assert codes(data) == {"FXT0202", "FXT0507"}
    assert rewritten(data) == data


def test_metadata_is_found_behind_damage() -> None:
    damage = struct.pack("<Q", 0xFFFF_0000_0000_0004)  # a size of zero
    parts = [event(1), damage, event(2), SECTION, event(3), damage, event(4), event(5), SECTION]
    data = stopped(*parts, event(6), event(7))
    with opened(data) as capture:
        ticks = [r["timestamp"] for r in shown(data) if r["record"] == "event"]
        assert capture.table("instants").array("ticks").tolist() == ticks == [1, 2, 3, 4, 5, 6, 7]
        assert capture.diagnostics.counts == {"FXT0001": 2, "FXT0202": 1, "FXT0507": 2}
        assert len(capture.summary().facts["providers"]) <= 1
    assert rewritten(data) == data


def test_a_great_many_metadata_records_are_skipped() -> None:
    total = 1 << 18
    header = BufferHeader.for_size(total, "oneshot")
    count = (total - 128) // 8 - 6
    data = header.pack() + struct.pack("<Q", 0x10) * count + event(1)
    with opened(data) as capture:
        assert len(capture.table("instants")) == 1
        assert capture.diagnostics.counts["FXT0507"] == count
        assert capture.summary().records == count + 2


def test_metadata_is_not_written_into_an_image() -> None:
    records = shown(with_metadata())
    place = next(at for at, r in enumerate(records) if r.get("kind") == "provider_section")
    for change in ({"id": 6}, {"raw": None}):
        edited = {**records[place], **change}
        if edited["raw"] is None:
            del edited["raw"]
        with pytest.raises(WriteRefusedError) as refused:
            written([*records[:place], edited, *records[place + 1 :]])
        assert refused.value.code == "FXT0410"


# --- Edited records ------------------------------------------------------------------------------


def renamed(data: bytes, name: str, *, at: int = 0) -> list[Json]:
    """The records with another name for one event."""
    records = shown(data)
    events = [record for record in records if record["record"] == "event"]
    events[at]["name"] = name
    return records


@cases("stop", [True, False])
def test_records_behind_a_changed_one_move(stop: bool) -> None:
    data = circular(10, stop=stop)
    for name in ("t", "a name of many more bytes than before", "x" * 900):
        edited = written(renamed(data, name, at=3))
        assert len(edited) == len(data)
        before, after = shown(data), shown(edited)
        names = [r["name"] for r in after if r["record"] == "event"]
        assert names == [
            *(f"tick {ts}" for ts in range(3)),
            name,
            *(f"tick {ts}" for ts in range(4, 10)),
        ]
        end = after[0]["rolling_data_end"][0]
        used = sum(r["nbytes"] for r in after if r["record"] == "event")
        assert end == (used if stop else 0)
        assert [r for r in after if r["record"] == "initialization"] == [
            r for r in before if r["record"] == "initialization"
        ]
        assert codes(edited) == codes(data)


def test_what_does_not_fit_is_refused_and_nothing_is_written() -> None:
    data = circular(10)
    sink = Sink.memory()
    writer = BufferWriter(sink)
    for record in renamed(data, "x" * 2000):
        if record["record"] == "event" and record["name"].startswith("x"):
            with pytest.raises(WriteRefusedError) as refused:
                writer.write(record)
            assert refused.value.code == "FXT0411"
            continue
        writer.write(record)
    many = renamed(data, "x" * 1600)
    with pytest.raises(WriteRefusedError, match="rolling 0") as refused:
        written(many)
    assert refused.value.code == "FXT0411"
    assert sink.getvalue() == b""


def test_stale_bytes_do_not_come_back_as_records() -> None:
    data = circular(200, stop=False)  # ends by scanning, stale records behind them
    names = [r["name"] for r in shown(data) if r["record"] == "event"]
    for name in ("t", "a much longer name, which reaches into what is stale"):
        edited = shown(written(renamed(data, name, at=len(names) - 1)))
        assert [r["name"] for r in edited if r["record"] == "event"] == [*names[:-1], name]


def test_records_left_out_leave_room() -> None:
    data = circular(60)
    records = [r for r in shown(data) if r.get("timestamp", 0) % 2 == 0]
    edited = written(records)
    assert len(edited) == len(data)
    with opened(edited) as capture:
        ticks = capture.table("instants").array("ticks")
        assert (ticks % 2 == 0).all()
        assert ticks.size
        assert not capture.diagnostics.counts


@cases(
    ("change", "code"),
    [
        (lambda records: records[1:], "FXT0411"),
        (lambda records: [*records, records[0]], "FXT0411"),
        (lambda records: [records[0], {**records[1], "offset": 5000}], "FXT0411"),
        (lambda records: [records[0], {**records[1], "offset": 3}], "FXT0411"),
        (lambda records: [records[0], {**records[1], "offset": -8}], "FXT0411"),
        (lambda records: [records[0], {**records[1], "offset": "here"}], "FXT0402"),
        (lambda records: [records[0], {**records[1], "record": "recrod"}], "FXT0401"),
        (lambda records: [records[0], {**records[-1], "nbytes": 1 << 62}], "FXT0404"),
    ],
)
def test_records_without_a_place_are_refused(
    change: Callable[[list[Json]], list[Json]], code: str
) -> None:
    with pytest.raises(WriteRefusedError) as refused:
        written(change(shown(circular(10))))
    assert refused.value.code == code


# --- Salvage -------------------------------------------------------------------------------------


@cases(
    ("data", "losses"),
    [
        (circular(10), []),
        (circular(200), []),
        (with_metadata(), ["FXT0507", "FXT0507"]),
        (stopped(event(1), bytes(8), event(2)), ["FXT0006"]),
        (circular(60)[:3000], ["FXT0502", "FXT0002"]),
        (circular(60) + b"more", ["FXT0503"]),
    ],
)
def test_what_is_salvaged_is_sound(data: bytes, losses: list[str]) -> None:
    sink = Sink.memory()
    with opened(data) as capture:
        assert [loss.code for loss in salvage_image(capture, sink, {})] == losses
        ticks = capture.table("instants").array("ticks").tolist()
    with opened(sink.getvalue()) as capture:
        capture.scan()
        assert capture.diagnostics.worst in (None, Severity.INFO)
        assert capture.table("instants").array("ticks").tolist() == ticks
        assert len(sink.getvalue()) == 4096


@cases("made", [oneshot, stopped])
@cases("size", [0, 1, 2, 24, 300, 4095])
@cases("kind", [wire.RecordType.EVENT, wire.RecordType.METADATA, 13])
def test_records_behind_a_damaged_one_are_found(
    made: Callable[..., bytes], size: int, kind: int
) -> None:
    """To the data end that the header says, whatever the damaged record claims to be."""
    records = [event(number) for number in range(30)]
    (word,) = struct.unpack_from("<Q", records[5])
    records[5] = struct.pack("<Q", word & ~0xFFFF | kind | size << 4) + records[5][8:]
    sink = Sink.memory()
    with opened(made(*records)) as capture:
        assert list(salvage_image(capture, sink, {}))
    with opened(sink.getvalue()) as capture:
        capture.scan()
        assert (capture.diagnostics.worst or 0) < Severity.DATA_LOSS
        ticks = capture.table("instants").array("ticks").tolist()
        assert [each for each in ticks if each != 5] == [*range(5), *range(6, 30)]
        again = Sink.memory()
        assert list(salvage_image(capture, again, {})) == []
        assert again.getvalue() == sink.getvalue()


@cases(("free", "kept"), [(0, 0), (8, 1), (56, 4)])
def test_an_index_that_nothing_registered_is_registered_where_there_is_room(
    free: int, kept: int
) -> None:
    """Otherwise the record is left out; the report says either."""
    dangling = struct.pack("<2Q", 4 | 2 << 4 | 3 << 24 | 1 << 32 | 2 << 48, 5)
    size = BufferHeader.for_size(4096, "circular").rolling_buffer_size
    filler = {"record": "blob", "name": "b", "blob_type": 1, "size": 0, "payload_hex": ""}
    used = len(RecordEncoder().encode(filler)) + 4 * len(dangling) + free
    filler |= {"size": size - used, "payload_hex": "00" * (size - used)}
    data = stopped(RecordEncoder().encode(filler), *[dangling] * 4)
    sink = Sink.memory()
    with opened(data) as capture:
        losses = list(salvage_image(capture, sink, {}))
    assert {loss.code for loss in losses} <= {"FXT0104", "FXT0105"}
    assert sum(loss.nbytes for loss in losses) == (4 - kept) * len(dangling)
    with opened(sink.getvalue()) as capture:
        capture.scan()
        assert capture.diagnostics.worst in (None, Severity.INFO)
        assert len(capture.table("instants")) == kept
        assert len(capture.table("blobs")) == 1


# --- Images that nobody meant --------------------------------------------------------------------

IMAGES = (
    vector("circular_wrapped1.vmo"),
    circular(200),
    circular(90, stop=False),
    circular(10, mode="streaming"),
    with_metadata(),
)


def mixed(record: bytes) -> Iterator[tuple[str, int | None, int]]:
    """What the two decoders should agree on: findings of damage, by code and place."""
    for records_first in (True, False):
        with opened(record) as capture:
            if records_first:
                list(capture.records())
            else:
                capture.scan()
            yield from ((f.code, f.offset, records_first) for f in capture.diagnostics)


IMAGE_CODES = tuple(f"FXT05{number:02}" for number in range(1, 10))
FRAMING = ("FXT0001", "FXT0002", "FXT0003", "FXT0004", "FXT0005", "FXT0006", *IMAGE_CODES)


@given(st.one_of(bit_flips(*IMAGES), truncations(*IMAGES)))
def test_damaged_images_are_covered_and_both_decoders_agree(data: bytes) -> None:
    found: dict[bool, list[tuple[str, int | None]]] = {True: [], False: []}
    for code, offset, first in mixed(data):
        if code in FRAMING:
            found[bool(first)].append((code, offset))
    assert sorted(found[True], key=str) == sorted(found[False], key=str)
    with opened(data) as capture:
        records = list(capture.records())
        spans = sorted((r.offset, r.offset + r.nbytes) for r in records)
        ends = [0, *[end for _, end in spans]]
        assert [start for start, _ in spans] == ends[:-1]
        assert ends[-1] == len(data)
        events = [r for r in records if r.to_json().get("event") == "instant"]
        assert capture.table("instants").array("offset").tolist() == [r.offset for r in events]
        assert capture.summary().records == len(records)
    assert rewritten(data) == data


def test_hostile_sizes_take_no_memory() -> None:
    sound = BufferHeader.for_size(1 << 32, "circular")
    assert rewritten(sound.pack()) == sound.pack()
    assert codes(sound.pack()) == {"FXT0502"}
    beyond = attrs.evolve(
        BufferHeader.for_size(4096, "oneshot"),
        total_size=(1 << 60) + 128,
        rolling_buffer_size=1 << 60,
    )
    assert codes(beyond.pack()) == {"FXT0501"}


class TestBufferReader(ReaderContract):
    plugin = "fx_trace.plugin"
    format = "trace-buffer"

    def samples(self) -> Iterable[Sample]:
        yield Sample("running.tbuf", circular(90, stop=False))
        yield Sample("wrapped_often.tbuf", circular(200))
        yield Sample("oneshot.tbuf", vector("oneshot_stopped.vmo"))
        yield Sample("typical.tbuf", buffer_sample(9000))
        yield Sample("metadata.tbuf", with_metadata(), sound=False)
        yield Sample(
            "no_sum.tbuf",
            vector("sizes_dont_add_up.vmo"),
            confidence=Confidence.LIKELY,
            sound=False,
        )
        yield Sample("empty.tbuf", b"", confidence=Confidence.POSSIBLE, sound=False)
        yield Sample("circular.tbuf", vector("circular_wrapped1.vmo"))


class TestBufferWriter(WriterContract):
    plugin = "fx_trace.plugin"
    format = "trace-buffer"

    def samples(self) -> Iterable[Sample]:
        yield Sample("running.tbuf", circular(90, stop=False))
        yield Sample("oneshot.tbuf", vector("oneshot_stopped.vmo"))
        yield Sample("circular.tbuf", vector("circular_wrapped1.vmo"))
        yield Sample("no_sum.tbuf", vector("sizes_dont_add_up.vmo"), sound=False)

    # An image has an end, and is put together before it is written: only then it shows what has no
    # room, or a value that is wrong.
    test_many_records_come_back = None
    test_wrong_values_are_refused_or_take_effect = None
    test_memory_does_not_grow_with_what_was_written = None


# --- Plain memory --------------------------------------------------------------------------------


def test_bytes_are_a_memory() -> None:
    memory = BytesMemory(16)
    assert isinstance(memory, Memory)
    memory.store_u64(8, 0x0102030405060708)
    assert memory.load_u64(8) == 0x0102030405060708
    assert memory.read(7, 3) == b"\0\x08\x07"
    memory.write(0, b"12345678")
    memory.grow(20)
    assert memory.size == 24
    assert memory.read(16, 8) == bytes(8)
    memory.grow(8)
    assert memory.size == 24
    for misuse in (
        lambda: memory.load_u64(24),
        lambda: memory.load_u64(-8),
        lambda: memory.store_u64(4, 1),
        lambda: memory.read(20, 8),
        lambda: memory.write(16, bytes(16)),
        lambda: memory.write(0, b"abc"),
        lambda: BytesMemory(b"abc"),
    ):
        with pytest.raises(ValueError, match=r"cannot access|invalid memory size 3"):
            misuse()


# --- A damaged header ---------------------------------------------------------------------------

HEADER_FIELDS = ("magic", "version", "mode", "total_size", "durable_buffer_size",
                 "rolling_buffer_size", *DATA_ENDS)  # fmt: skip


@cases("mode", MODES)
@cases("field", HEADER_FIELDS)
def test_salvage_mends_a_field_of_the_header(mode: str, field: str) -> None:
    memory = BytesMemory(8192)
    buffer = TraceBuffer(memory, mode)
    for number in range(3):
        buffer.put(blob(number, 4), durable=number == 0)
    buffer.stop()
    whole = bytes(memory.read(0, memory.size))
    damaged = bytearray(whole)
    damaged[header_offset(field)] ^= 0xA5
    with opened(bytes(damaged)) as capture:
        header = capture.header
        assert header is None or field in DATA_ENDS
        sink = Sink.memory()
        losses = [loss.code for loss in salvage_image(capture, sink, {})]
    out = sink.getvalue()
    assert held(out) == held(whole)
    found = {rules.END_BY_SCANNING.code} if field in DATA_ENDS else set()
    assert codes(whole) <= codes(out) <= codes(whole) | found
    assert header is not None or set(losses) == {rules.BUFFER_HEADER.code}
