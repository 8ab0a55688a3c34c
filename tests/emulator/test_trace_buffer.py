"""Trace buffers of the emulator: the engine, read by the trace plugin, and the manager."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import fxframework as fxf
from fx_emulator.clock import VirtualClock
from fx_emulator.errors import EmulatorError
from fx_emulator.faults import CrashAfter, FullBuffer
from fx_emulator.memory import Memory, StoreLog
from fx_emulator.trace_buffer import MODES, Contents, Mode, TraceEngine, TraceManager
from fx_trace.read.buffer import BufferHeader, Image
from fx_trace.read.image import BufferCapture
from fx_trace.write.buffer import TraceBuffer
from fx_trace.write.writer import TraceWriter
from fxframework.io.memory import BytesMemory
from fxframework.model.target import Memory as MemoryProtocol

from ..cases import cases
from ..plugins.trace.framed import frames, held
from ..properties import share

SIZES = (4096, 8192)


def blob(number: int, words: int) -> bytes:
    """A record of so many words; every word of its payload looks like a record itself."""
    header = 5 | words << 4 | (words - 1) * 8 << 32 | 1 << 48
    return struct.pack(f"<{words}Q", header, *[0x25 | number << 32] * (words - 1))


def large(nbytes: int) -> bytes:
    header = 15 | nbytes // 8 << 4 | 1 << 40
    return struct.pack("<3Q", header, 0, nbytes - 24) + bytes(nbytes - 24)


def opened(image: bytes) -> list[bytes]:
    """The same, by opening it as a user does."""
    with fxf.open(image, format="trace-buffer") as capture:
        return [
            image[record.offset : record.offset + record.nbytes]
            for record in capture.records()
            if record.to_json()["record"] == "blob"
        ]


def dropped(image: bytes) -> int:
    return BufferHeader.of(image[:128]).num_records_dropped


def split(data: bytes) -> list[bytes]:
    return [data[at:end] for at, end, _, _ in frames(data)]


def findings(data: bytes, **request: Any) -> set[str]:
    with fxf.open(data, **request) as capture:
        capture.scan()
        return set(capture.diagnostics.counts)


def littered(size: int) -> Memory:
    """A memory with a store log, every word of which looks like a record."""
    memory = Memory.anonymous(size)
    memory.write(0, struct.pack("<Q", 0x25) * (size // 8))
    memory.log = StoreLog()
    return memory


# --- A plain model of what the engine keeps -----------------------------------------------------


@attrs.define
class Model:
    mode: Mode
    total: int
    durable: list[bytes] = attrs.field(factory=list)
    halves: list[list[bytes]] = attrs.field(factory=lambda: [[]])
    """Every half ever begun, in order."""
    dropped: int = 0
    full: bool = False
    unsaved: bool = False

    def put(self, record: bytes, *, durable: bool) -> bool:
        done = self._put(record, durable=durable and self.mode != "oneshot")
        self.dropped += not done
        return done

    def _put(self, record: bytes, *, durable: bool) -> bool:
        header = BufferHeader.for_size(self.total, self.mode)
        apart, half = header.durable_buffer_size, header.rolling_buffer_size
        if self.full or len(record) > 256 << 10 or len(record) > (apart if durable else half):
            return False
        if durable:
            if len(b"".join(self.durable)) + len(record) > apart:
                return False
            self.durable.append(record)
            return True
        if len(b"".join(self.halves[-1])) + len(record) > half:
            if self.mode == "oneshot":
                self.full = True
                return False
            if self.unsaved:
                return False
            self.halves.append([])
            self.unsaved = self.mode == "streaming"
        self.halves[-1].append(record)
        return True

    def reads(self, halves: int = 2) -> list[bytes]:
        return [*self.durable, *[record for half in self.halves[-halves:] for record in half]]


class Buffer(RuleBasedStateMachine):
    """Random records; whatever store is the last one, what was committed is what is read."""

    @initialize(mode=st.sampled_from(MODES), size=st.sampled_from(SIZES), delayed=st.booleans())
    def begin(self, mode: Mode, size: int, delayed: bool) -> None:
        self.memory = littered(size)
        self.image = bytearray(self.memory.read(0, size))
        self.engine = TraceEngine(self.memory, mode)
        self.twin = TraceBuffer(BytesMemory(struct.pack("<Q", 0x25) * (size // 8)), mode)
        self.model = Model(mode, size)
        self.full: list[tuple[int, int]] = []
        self.engine.on_full = lambda wrapped, durable: self.full.append((wrapped, durable))
        self.number = 0
        self.seen = 0
        last = len(self.log) - 1
        for image in self.images():
            sound = Image(np.frombuffer(image, np.uint8)).header is not None
            assert sound == (self.seen - 1 == last)
        assert held(bytes(self.image)) == []

    @property
    def log(self) -> StoreLog:
        assert self.memory.log is not None
        return self.memory.log

    def images(self) -> Iterator[bytes]:
        """The memory after each store that was not looked at yet."""
        offsets, values = self.log.offsets[self.seen :], self.log.values[self.seen :]
        for offset, value in zip(offsets.tolist(), values.tolist(), strict=True):
            self.image[offset : offset + 8] = value.to_bytes(8, "little")
            self.seen += 1
            yield bytes(self.image)

    @rule(
        words=st.one_of(st.integers(2, 12), st.integers(2, 300), st.sampled_from([116, 232])),
        durable=st.booleans(),
        times=st.integers(1, 3),
    )
    def put(self, words: int, durable: bool, times: int) -> None:
        for _ in range(times):
            record = blob(self.number, words)
            self.number += 1
            allowed = [self.model.reads()]
            halves = len(self.model.halves)
            done = self.model.put(record, durable=durable)
            if len(self.model.halves) > halves:
                # The half that is about to be written over goes first.
                allowed.append([*self.model.durable, *self.model.halves[halves - 1]])
            allowed.append(self.model.reads())
            assert self.engine.put(record, durable=durable) == done
            assert self.twin.put(record, durable=durable) == done
            at = 0
            for image in self.images():
                found = held(image)
                contents = Contents.of(image)
                assert contents is not None
                assert b"".join(found) == contents.durable + b"".join(contents.rolling)
                while found != allowed[at]:
                    at += 1  # never back
            assert not done or at == len(allowed) - 1 or allowed[at] == allowed[-1]

    @precondition(lambda self: self.full)
    @rule()
    def save(self) -> None:
        wrapped, durable = self.full.pop()
        self.engine.saved(wrapped, durable)
        self.twin.saved(wrapped, durable)
        self.model.unsaved = False

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "engine"):
            return
        assert self.engine.dropped == self.model.dropped
        assert self.engine.records + self.engine.dropped == self.number
        image = self.memory.read(0, self.memory.size)
        assert image == bytes(self.image) == self.twin.memory.read(0, self.memory.size)
        assert held(image) == self.model.reads()

    def teardown(self) -> None:
        if not hasattr(self, "engine"):
            return
        self.engine.stop()
        self.twin.stop()
        for image in self.images():
            assert held(image) == self.model.reads()
        image = bytes(self.image)
        assert image == self.twin.memory.read(0, len(image))
        assert opened(image) == self.model.reads()
        assert dropped(image) == self.model.dropped
        assert not self.engine.put(blob(0, 2))
        assert self.memory.read(0, len(image)) == image
        # The manager makes the same archive of it as the trace plugin.
        manager = TraceManager(VirtualClock())
        expected, name = as_archive(image)
        manager.add(name, self.engine)
        assert manager.archive() == expected


def as_archive(image: bytes) -> tuple[bytes, str]:
    """The trace plugin's archive of an image, and the name that it gives the provider."""
    with fxf.open(image, format="trace-buffer") as capture:
        assert isinstance(capture, BufferCapture)
        return bytes(capture.as_archive().source.data), capture.name


TestBuffer = Buffer.TestCase
TestBuffer.settings = settings(share(1 / 2), stateful_step_count=25)


@given(
    st.sampled_from(MODES),
    st.lists(st.tuples(st.integers(2, 40), st.booleans()), min_size=1, max_size=60),
    st.data(),
)
def test_a_crash_leaves_what_was_committed(
    mode: Mode, steps: list[tuple[int, bool]], data: st.DataObject
) -> None:
    memory = littered(4096)
    engine = TraceEngine(memory, mode)
    model = Model(mode, 4096)
    engine.on_full = engine.saved
    crash = CrashAfter(memory.stores + data.draw(st.integers(0, 400)))
    memory.faults.append(crash)
    before = model.reads()
    committed = before
    try:
        for number, (words, durable) in enumerate(steps):
            record = blob(number, words)
            before = model.reads()
            halves = len(model.halves)
            model.put(record, durable=durable)
            model.unsaved = False
            committed = model.reads()
            if len(model.halves) > halves:
                committed = [*model.durable, *model.halves[halves - 1]]
            engine.put(record, durable=durable)
            before = committed = model.reads()
    except EmulatorError:
        image = memory.read(0, 4096)
        assert held(image) in [before, committed]
        manager = TraceManager(VirtualClock())
        expected, name = as_archive(image)
        manager.add(name, engine)
        manager.stop()
        assert manager.providers[0].crashed is memory.crashed
        assert memory.read(0, 4096) == image
        assert manager.archive() == expected
    else:
        assert held(memory.read(0, 4096)) == model.reads()


# --- The engine ---------------------------------------------------------------------------------


@cases("mode", MODES)
@cases("size", [4096, 8192, 1 << 20, 33 << 20])
def test_the_header_is_that_of_the_notes(mode: Mode, size: int) -> None:
    memory = Memory.anonymous(size)
    TraceEngine(memory, mode)
    header = BufferHeader.of(memory.read(0, 128))
    assert header == BufferHeader.for_size(size, mode)
    assert header.check(size) == []
    assert isinstance(memory, MemoryProtocol)


@cases("size", [0, 4088, 4104, 6000])
def test_other_sizes_are_refused(size: int) -> None:
    with pytest.raises(EmulatorError, match="multiple of 4096"):
        TraceEngine(BytesMemory(size), "oneshot")


def test_unknown_modes_are_refused() -> None:
    with pytest.raises(EmulatorError, match="oneshot, circular, streaming"):
        TraceEngine(BytesMemory(4096), "rolling")  # type: ignore[arg-type]
    with pytest.raises(EmulatorError, match="'drop', 'stop' or 'pad'"):
        TraceEngine(BytesMemory(4096), durable_full="wrap")  # type: ignore[arg-type]


@cases(
    "record",
    [b"", bytes(8), blob(1, 3)[:-8], blob(1, 3) + bytes(8), b"\x25", struct.pack("<Q", 0x10)],
)
def test_what_is_no_record_is_refused(record: bytes) -> None:
    engine = TraceEngine(Memory.anonymous(4096))
    with pytest.raises(EmulatorError, match="one whole record"):
        engine.put(record)
    assert engine.records == engine.dropped == 0


def test_records_above_256_kib_are_dropped() -> None:
    engine = TraceEngine(Memory.anonymous(1 << 20), "oneshot")
    assert not engine.put(large((256 << 10) + 8))
    assert engine.put(large(256 << 10))
    assert engine.put(blob(1, 2))
    assert engine.dropped == 1


def test_the_state_word() -> None:
    engine = TraceEngine(Memory.anonymous(4096), "streaming")
    assert engine.state == 0
    engine.put(blob(0, 116))
    assert engine.state == engine.offset == 928
    engine.put(blob(1, 116))
    engine.put(blob(2, 2))
    assert engine.state == 16 | 1 << 32 | 1 << 62
    assert engine.filled(0)
    assert not engine.filled(1)
    engine.saved(1, 0)  # the other half
    engine.saved(0, 8)  # more durable bytes than there are
    assert engine.filled(0)
    engine.saved(0, 0)
    assert engine.state == 16 | 1 << 32
    circular = TraceEngine(Memory.anonymous(4096), "circular")
    for number in range(9):
        circular.put(blob(number, 116))
    assert circular.state == 928 | 4 << 32


def test_the_wrapped_count_has_30_bits() -> None:
    memory = Memory.anonymous(4096)
    engine = TraceEngine(memory, "circular")
    engine.state = ((1 << 30) - 1) << 32
    for number in range(3):
        engine.put(blob(number, 116))
    assert engine.wrapped_count == 0
    assert BufferHeader.of(memory.read(0, 128)).wrapped_count == 0


@cases("policy", ["stop", "pad"])
def test_a_full_durable_buffer_ends_tracing(policy: Any) -> None:
    memory = littered(1 << 20)
    engine = TraceEngine(memory, "circular", durable_full=policy)
    room = BufferHeader.of(memory.read(0, 128)).durable_buffer_size
    assert engine.put(blob(0, 3))
    fills = [blob(number, room // 32) for number in range(1, 5)]
    assert all(engine.put(record, durable=True) for record in fills[:3])
    assert engine.has_room(room // 4)
    assert not engine.put(blob(9, room // 32 + 1000), durable=True)
    assert not engine.put(fills[3], durable=True)
    assert not engine.put(blob(5, 2))
    assert not engine.has_room(16)
    assert engine.dropped == 3
    before = memory.read(0, 1 << 20)
    engine.stop()
    image = memory.read(0, 1 << 20)
    assert dropped(image) == 3
    records = held(image)
    assert records[:4] == [*fills[:3], blob(0, 3)]
    assert held(before) == records
    assert bool(records[4:]) == (policy == "pad")
    assert findings(image, format="trace-buffer") <= {"FXT0505", "FXT0508"}
    if policy == "pad":
        assert engine.offset == BufferHeader.for_size(1 << 20, "circular").rolling_buffer_size
        with fxf.open(image, format="trace-buffer") as capture:
            padding = [r.to_json() for r in capture.records() if r.to_json()["record"] == "blob"]
        assert {record["name"] for record in padding[4:]} == {""}


def test_a_full_durable_buffer_leaves_the_rest_alone_by_default() -> None:
    engine = TraceEngine(Memory.anonymous(4096), "circular")
    assert engine.put(blob(0, 30), durable=True)
    assert not engine.has_room(24)
    assert not engine.put(blob(1, 3), durable=True)
    assert engine.has_room(16)
    assert engine.put(blob(2, 100))


def test_a_fault_fills_the_buffer() -> None:
    engine = TraceEngine(Memory.anonymous(4096), "circular")
    engine.faults.append(FullBuffer(2, 2))
    assert [engine.put(blob(number, 2)) for number in range(6)] == [
        True, True, False, False, True, True,
    ]  # fmt: skip
    assert engine.dropped == 2


# --- The manager --------------------------------------------------------------------------------


def records_by_provider(archive: bytes) -> dict[str, list[bytes]]:
    """The records of an archive without metadata, by the provider's name."""
    names: dict[int, str] = {}
    found: dict[str, list[bytes]] = {}
    current = ""
    pieces = split(archive)
    assert pieces[0] == struct.pack("<Q", 0x0016547846040010)
    for piece in pieces[1:]:
        word = int.from_bytes(piece[:8], "little")
        if word & 15:
            found[current].append(piece)
            continue
        kind, number = word >> 16 & 15, word >> 20 & 0xFFFFFFFF
        if kind == 1:
            assert number not in names
            names[number] = piece[8 : 8 + (word >> 52 & 0xFF)].decode()
            found[names[number]] = []
        current = names[number]
    return found


@cases("delay", [0, 1000, None])
def test_streaming_loses_nothing_that_is_saved_in_time(delay: int | None) -> None:
    clock = VirtualClock()
    manager = TraceManager(clock, save_delay_ns=delay)
    engines = [TraceEngine(Memory.anonymous(4096), "streaming") for _ in range(2)]
    for name, engine in zip(["first", "second"], engines, strict=True):
        manager.add(name, engine)
    put: dict[str, list[bytes]] = {"first": [], "second": []}
    durable: dict[str, list[bytes]] = {"first": [], "second": []}
    for number in range(60):
        for name, engine in zip(put, engines, strict=True):
            record = blob(number, 50 if name == "first" else 30)
            assert engine.put(record)
            put[name].append(record)
            if number % 20 == 10:
                assert engine.put(blob(number, 3), durable=True)
                durable[name].append(blob(number, 3))
        clock.advance(1000)
        if delay is None:
            manager.save()
    assert manager.save() == 0
    live = manager.archive()
    assert manager.archive() == live
    manager.stop()
    archive = manager.archive()
    assert archive == live
    found = records_by_provider(archive)
    for name, records in put.items():
        assert [r for r in found[name] if len(r) > 24] == records
        assert [r for r in found[name] if len(r) == 24] == durable[name]
    assert findings(archive, format="trace") == set()


def test_streaming_drops_while_both_halves_are_full() -> None:
    clock = VirtualClock()
    manager = TraceManager(clock, save_delay_ns=500)
    memory = Memory.anonymous(4096)
    engine = TraceEngine(memory, "streaming")
    provider = manager.add("p", engine)
    assert [engine.put(blob(number, 116)) for number in range(5)] == [True] * 4 + [False]
    clock.advance(499)
    assert provider.waiting == (500, 0, 0)
    assert not engine.put(blob(5, 116))
    clock.advance(1)
    assert provider.waiting is None
    assert engine.put(blob(6, 116))
    manager.stop()
    assert dropped(memory.read(0, 4096)) == 2
    archive = manager.archive()
    assert records_by_provider(archive)["p"] == [blob(n, 116) for n in (0, 1, 2, 3, 6)]
    events = [r for r in split(archive) if r[0] & 15 == 0 and r[2] & 15 == 3]
    assert events == [struct.pack("<Q", 0x10 | 3 << 16 | 1 << 20)]


def test_an_archive_has_what_a_crashed_provider_left() -> None:
    manager = TraceManager(VirtualClock())
    engines = {}
    for name, mode in zip(["a", "b", "c"], MODES, strict=True):
        memory = Memory.anonymous(4096)
        engines[name] = TraceEngine(memory, mode)
        manager.add(name, engines[name])
        if name != "c":
            memory.faults.append(CrashAfter(memory.stores + 300))
    put: dict[str, list[bytes]] = {name: [] for name in engines}
    for number in range(40):
        for name, engine in engines.items():
            try:
                if engine.put(blob(number, 29)):
                    put[name].append(blob(number, 29))
            except EmulatorError:
                pass
    manager.stop()
    assert records_by_provider(manager.archive()) == put
    assert [len(records) for records in put.values()] == [10, 9, 40]
    assert [provider.crashed is not None for provider in manager.providers] == [True, True, False]


@given(
    st.lists(st.tuples(st.integers(2, 116), st.booleans()), min_size=1, max_size=80),
    st.integers(0, 1500),
    st.sampled_from([0, 5, None]),
)
def test_streaming_keeps_what_was_committed_before_a_crash(
    steps: list[tuple[int, bool]], stores: int, delay: int | None
) -> None:
    clock = VirtualClock()
    manager = TraceManager(clock, save_delay_ns=delay)
    memory = Memory.anonymous(4096)
    engine = TraceEngine(memory, "streaming")
    manager.add("p", engine)
    memory.faults.append(CrashAfter(memory.stores + stores))
    put: dict[bool, list[bytes]] = {False: [], True: []}
    lost = 0
    underway: tuple[bool, list[bytes]] = (False, [])
    for number, (words, durable) in enumerate(steps):
        record = blob(number << 1 | durable, words)
        underway = (durable, [record])
        try:
            if engine.put(record, durable=durable):
                put[durable].append(record)
            else:
                lost += 1
        except EmulatorError:
            break
        underway = (durable, [])
        clock.advance(1)
        if delay is None and number % 7 == 0:
            manager.save()
    clock.advance(3)
    manager.stop()
    archive = manager.archive()
    found: dict[bool, list[bytes]] = {False: [], True: []}
    for record in records_by_provider(archive)["p"]:
        found[bool(record[12] & 1)].append(record)
    assert found in (put, {**put, underway[0]: put[underway[0]] + underway[1]})
    assert memory.crashed is not None or dropped(memory.read(0, 4096)) == lost == engine.dropped


WRITER = """
import itertools, struct, sys
from fx_emulator.memory import Memory
from fx_emulator.trace_buffer import TraceEngine
engine = TraceEngine(Memory.file(sys.argv[1]), sys.argv[2])
for number in itertools.count():
    words = 2 + number % 7
    header = 5 | words << 4 | (words - 1) * 8 << 32 | 1 << 48
    if not engine.put(struct.pack(f"<{words}Q", header, *[number] * (words - 1))):
        break
    if number % 100 == 0:
        print(number, flush=True)
    if number == 20_000:
        input()
input()
"""
WAITING = 20_000
"""The number at which the writer waits; up to there nothing is written over."""


@cases("mode", ["oneshot", "circular"])
def test_another_process_reads_live_and_after_the_writer_was_killed(
    mode: Mode, tmp_path: Path
) -> None:
    path = tmp_path / "buffer.fxtbuf"
    size = 4 << 20
    memory = Memory.file(path, size)
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), mode],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        said = -1
        for _ in range(6):
            said = max(said, int(writer.stdout.readline()))
            # All that was put by now is there, from the first on.
            numbers = live(memory.read(0, size))
            assert numbers == list(range(len(numbers)))
            assert len(numbers) > said
        assert writer.stdin is not None
        print(file=writer.stdin, flush=True)
        while said <= WAITING:
            said = int(writer.stdout.readline())
        writer.kill()
    numbers = live(path.read_bytes())
    assert len(numbers) > said
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def live(image: bytes) -> list[int]:
    """The numbers of the writer's records; those of one record must agree."""
    numbers = []
    for record in held(image):
        words = struct.unpack(f"<{len(record) // 8}Q", record)[1:]
        assert len(set(words)) == 1
        numbers.append(words[0])
    return numbers


def test_a_record_that_exactly_fills_is_in_the_archive() -> None:
    manager = TraceManager(VirtualClock())
    engine = TraceEngine(littered(4096), "circular")
    manager.add("p", engine)
    records = [blob(number, 116) for number in range(2)]
    assert all(engine.put(record) for record in records)
    assert records_by_provider(manager.archive())["p"] == records


def test_an_archive_of_writers_is_clean() -> None:
    clock = VirtualClock()
    manager = TraceManager(clock)
    writers = []
    for name, mode in zip(["bootloader", "kernel", "драйвер"], MODES, strict=True):
        engine = TraceEngine(Memory.anonymous(1 << 16), mode)
        manager.add(name, engine)
        writers.append(TraceWriter(engine, clock=clock))
    for number in range(500):
        for at, writer in enumerate(writers):
            clock.advance(100)
            writer.instant("cat", f"event {number % 5}", thread=(at + 1, at + 2))
    manager.stop()
    archive = manager.archive()
    assert findings(archive) == set()
    with fxf.open(archive) as capture:
        assert capture.format == "trace"
        records = [record.to_json() for record in capture.records()]
    assert list(records_by_provider(archive)) == ["bootloader", "kernel", "драйвер"]
    assert sum(record["record"] == "event" for record in records) == 1500


def test_what_was_never_a_buffer_gives_no_records() -> None:
    memory = Memory.anonymous(4096)
    engine = TraceEngine(memory)
    engine.put(blob(1, 4))
    manager = TraceManager(VirtualClock())
    manager.add("p", engine)
    for at, value in [(0, 1), (8, 3 << 16), (16, 8192), (32, 8), (48, 12)]:
        kept = memory.load_u64(at)
        memory.store_u64(at, value)
        assert Contents.of(memory.read(0, 4096)) is None
        assert records_by_provider(manager.archive()) == {"p": []}
        memory.store_u64(at, kept)
    assert records_by_provider(manager.archive()) == {"p": [blob(1, 4)]}
    assert Contents.of(b"") is None


def test_names_and_delays_are_checked() -> None:
    with pytest.raises(EmulatorError, match="must be 0 or more"):
        TraceManager(VirtualClock(), save_delay_ns=-1)
    with pytest.raises(EmulatorError, match="255 bytes"):
        TraceManager(VirtualClock()).add("ж" * 128, TraceEngine(Memory.anonymous(4096)))
