"""Where logs go: packets, our container of them, and the ring of an IOBuffer."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fx_log import format as wire
from fx_log.read import records as fx
from fx_log.write.sinks import PacketStream, PacketWriter, RingWriter, boot_ns
from fx_log.write.writer import LogWriter
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.memory import BytesMemory
from fxframework.kit.arguments import String
from fxframework.model.target import DatagramSink

from ...cases import cases
from .logs import packet, stream, text_log
from .test_records import LEGACY, decode
from .test_writer import Socket

# --- Packets -------------------------------------------------------------------------------------


def packets(socket: Socket) -> list[fx.LegacyPacket]:
    records = [decode(data, "log-legacy")[0] for data in socket.sent]
    assert all(len(each) == 1 for each in records)
    return [each[0] for each in records]


def test_a_packet_has_what_is_said() -> None:
    socket = Socket()
    writer = PacketWriter(socket, pid=1, tags=["app"], clock=lambda: 5)
    assert writer.write("WARN", "hello", tags=["net"], dropped=2)
    assert packets(socket) == [
        fx.LegacyPacket(
            pid=1,
            tid=0,
            timestamp=5,
            severity=0x40,
            dropped_logs=2,
            tags=("app", "net"),
            message="hello",
        )
    ]


REFERENCES = [
    v
    for v in LEGACY
    if v["expected"].get("ok")
    and decode(bytes.fromhex(v["hex"]), "log-legacy")[0][0].raw is None
    and v["name"] != "severity_300_clamps"  # which no logger sends
]


@cases("vector", REFERENCES, ids=lambda v: v["name"])
def test_the_references_packets(vector: dict[str, Any]) -> None:
    record = vector["expected"]["record"]
    (read,) = decode(bytes.fromhex(vector["hex"]), "log-legacy")[0]
    socket = Socket()
    writer = PacketWriter(socket, pid=record["pid"], tid=record["tid"], tags=record["tags"])
    writer.write(
        read.severity,
        record["message"],
        time=record["timestamp"],
        dropped=record["dropped_logs"],
    )
    assert socket.sent[0].hex() == vector["hex"]


def test_file_and_line_stand_before_messages_of_errors() -> None:
    writer = PacketWriter(socket := Socket())
    writer.write("error", "broke", file="../../a/b.go", line=7)
    writer.write("info", "fine", file="b.go", line=7)
    PacketWriter(socket, always_file_line=True).write("info", "x", file="b.go")
    assert [p.message for p in packets(socket)] == ["a/b.go(7): broke", "fine", "b.go(0): x"]


@cases(
    ("more", "code"),
    [
        ({"tags": "abcdef"}, "FXL0403"),
        ({"tags": list("abcdef")}, "FXL0406"),
        ({"tags": ["x" * 64]}, "FXL0405"),
        ({"tags": [""]}, "FXL0403"),
        ({"message": "a\0b"}, "FXL0403"),
        ({"message": "x" * 32_735}, "FXL0407"),
        ({"message": 5}, "FXL0403"),
        ({"severity": 256}, "FXL0404"),
        ({"severity": -11}, "FXL0404"),
        ({"severity": "loud"}, "FXL0403"),
        ({"time": 2**63}, "FXL0404"),
        ({"pid": -1}, "FXL0404"),
        ({"dropped": -1}, "FXL0404"),
    ],
)
def test_what_a_packet_cannot_hold_is_refused(more: dict[str, Any], code: str) -> None:
    socket = Socket(False)
    writer = PacketWriter(socket)
    writer.write("info", "dropped")
    with pytest.raises(WriteRefusedError) as refused:
        writer.write(**{"severity": "info", "message": "m", **more})
    assert refused.value.code == code
    assert (socket.sent, writer.dropped) == ([], 1)


def test_it_has_a_call_for_each_severity_as_a_log_writer_has() -> None:
    writer = PacketWriter(socket := Socket(), minimum="debug")
    assert not writer.trace("below")
    for name in ("debug", "info", "warn", "error", "fatal"):
        assert getattr(writer, name)("m")
    writer.verbose(1, "m")
    writer.verbose(99, "m")
    severities = [each.severity for each in packets(socket)]
    assert severities == [0x20, 0x30, 0x40, 0x50, 0x60, 0x2F, 0x21]


def test_keys_stand_behind_the_message() -> None:
    writer = PacketWriter(socket := Socket())
    writer.info("slow", took=5.0, ok=True, none=None, who="me", raw=String(b"x"))
    writer.write("error", "broke", {"n": 1}, file="a.c", line=7)
    assert [each.message for each in packets(socket)] == [
        "slow took=5 ok=true none=null who=me raw=x",
        "a.c(7): broke n=1",
    ]
    with pytest.raises(WriteRefusedError) as refused:
        writer.info("m", key=[1])  # type: ignore[arg-type]
    assert refused.value.code == "FXL0410"


def test_tags_of_every_packet_are_refused_at_once() -> None:
    with pytest.raises(WriteRefusedError):
        PacketWriter(Socket(), tags=["x" * 64])


def test_what_is_too_long_is_cut_on_request() -> None:
    writer = PacketWriter(socket := Socket(), on_too_large="cut")
    writer.write("info", "é" * 20_000, tags=["ü" * 40, *"abcde"])
    writer.write("info", "a\0b")
    writer.write("info", "fits")
    long, zero, fits = packets(socket)
    assert len(socket.sent[0]) in {wire.MAX_PACKET, wire.MAX_PACKET - 1}
    assert long.message.rstrip(".") == "é" * (len(long.message) - 3)
    assert long.tags == ("ü" * 31, *"abcd")
    assert zero.message == "a\N{REPLACEMENT CHARACTER}b"
    assert fits.message == "fits"
    assert writer.cut == 2


def test_the_largest_packet() -> None:
    writer = PacketWriter(socket := Socket())
    writer.write("info", "x" * 32_734, tags=[])
    writer.write("info", "x" * (32_734 - 63), tags=["t" * 62])
    assert list(map(len, socket.sent)) == [wire.MAX_PACKET] * 2


def test_dropped_packets_are_told_of() -> None:
    socket = Socket(False, False, True, True)
    writer = PacketWriter(socket)
    for number in range(4):
        writer.write("info", str(number))
    assert [(p.message, p.dropped_logs) for p in packets(socket)] == [("2", 2), ("3", 0)]


def test_a_path_gets_the_container(tmp_path: Path) -> None:
    path = tmp_path / "a.fxllog"
    with PacketWriter(path, pid=1, tid=2, clock=lambda: 1000) as writer:
        writer.write("info", "one", tags=["t"])
        writer.write("info", "two")
        assert not path.exists()
    assert path.read_bytes() == stream([packet("one", "t"), packet("two")])
    file = io.BytesIO()
    PacketWriter(file, pid=1, tid=2, clock=lambda: 1000).write("info", "one", tags=["t"])
    assert file.getvalue() == stream([packet("one", "t")])


def test_the_container_takes_datagrams() -> None:
    file = io.BytesIO()
    sink = PacketStream(file)
    assert isinstance(sink, DatagramSink)
    assert file.getvalue() == fx.StreamHeader().pack()
    sink.send(b"anything")
    assert file.getvalue() == fx.StreamHeader().pack() + b"\x08\0\0\0anything"


def test_the_time_since_boot_moves_on() -> None:
    first = boot_ns()
    assert 0 < first <= boot_ns()
    if hasattr(os, "sysconf") and Path("/proc/uptime").exists():
        uptime = float(Path("/proc/uptime").read_text("ascii").split()[0])
        assert abs(boot_ns() / 1e9 - uptime) < 60


# --- The ring ------------------------------------------------------------------------------------

SIZE = wire.RING_PAGE + wire.RING_MINIMUM


class Watched(BytesMemory):
    """A memory that is looked at after every single store."""

    watch: Any = None

    def store_u64(self, offset: int, value: int) -> None:
        super().store_u64(offset, value)
        if self.watch is not None:
            self.watch()

    def write(self, offset: int, buffer: bytes) -> None:
        for at in range(0, len(buffer), 8):
            super().write(offset + at, buffer[at : at + 8])
            if self.watch is not None:
                self.watch()


def image(memory: BytesMemory) -> bytes:
    return memory.read(0, memory.size)


def read_ring(data: bytes) -> tuple[list[tuple[int, str]], list[str]]:
    records, found = decode(data, "log-ring")
    entries = [
        (r.tag, r.log.args[-1].value)
        for r in records
        if isinstance(r, fx.RingEntry) and r.log is not None
    ]
    return entries, [f.code for f in found if f.severity]


def test_entries_are_read_in_the_order_in_which_they_were_written() -> None:
    memory = BytesMemory(SIZE)
    ring = RingWriter(memory)
    LogWriter(ring.tagged(5), pid=1, tid=2).info("one")
    LogWriter(ring.tagged(6), pid=1, tid=2).info("two")
    assert read_ring(image(memory)) == ([(5, "one"), (6, "two")], [])


def test_the_oldest_entries_give_way() -> None:
    memory = BytesMemory(SIZE)
    ring = RingWriter(memory)
    written = [f"{n:04}" + "x" * (n * 37 % 5000) for n in range(100)]
    for number, text in enumerate(written):
        ring.put(number, text_log(text))
    entries, faults = read_ring(image(memory))
    assert faults == []
    assert entries == list(enumerate(written))[-len(entries) :]
    assert ring.overwritten == 100 - len(entries) > 50
    assert 0 < ring.used <= ring.capacity


def test_an_entry_of_the_greatest_size_fills_the_ring() -> None:
    memory = BytesMemory(SIZE)
    ring = RingWriter(memory)
    ring.put(1, text_log("before"))
    ring.put(2, bytes(wire.RING_MAX_ENTRY - wire.RING_ENTRY))
    assert (ring.used, ring.overwritten) == (ring.capacity, 1)
    with pytest.raises(WriteRefusedError) as refused:
        ring.put(3, bytes(wire.RING_MAX_ENTRY - wire.RING_ENTRY + 1))
    assert refused.value.code == "FXL0407"
    with pytest.raises(WriteRefusedError):
        ring.put(-1, b"")
    ring.put(4, text_log("after"))
    assert read_ring(image(memory))[0] == [(4, "after")]


def test_a_crash_between_any_two_stores_leaves_a_readable_ring() -> None:
    memory = Watched(SIZE)
    ring = RingWriter(memory)
    # Nearly full, a few words before the wrap.
    for number in range(16):
        ring.put(number, text_log("x" * 4000))
    seen: list[list[tuple[int, str]]] = []

    def watch() -> None:
        entries, faults = read_ring(image(memory))
        assert set(faults) <= {"FXL0808"}
        if not seen or entries != seen[-1]:
            seen.append(entries)

    memory.watch = watch
    for number in range(16, 19):
        ring.put(number, text_log(f"new {number}" + "y" * 300))
    assert seen[-1][-1][0] == 18
    assert all(before[1:] == after or before == after[:-1] for before, after in steps(seen))


def steps(states: list[Any]) -> Iterator[tuple[Any, Any]]:
    yield from itertools.pairwise(states)


def test_a_memory_that_held_a_ring_is_taken_over() -> None:
    memory = BytesMemory(SIZE)
    first = RingWriter(memory)
    for number in range(100):
        first.put(number, text_log("x" * 900))
    second = RingWriter(memory)
    assert read_ring(image(memory))[0] == []
    second.put(7, text_log("mine"))
    assert read_ring(image(memory))[0] == [(7, "mine")]


@cases("size", [4096, 65536, SIZE + 8, SIZE - 4096])
def test_no_ring_in_a_memory_of_another_size(size: int) -> None:
    with pytest.raises(UsageError):
        RingWriter(BytesMemory(size))


def test_no_ring_over_something_else() -> None:
    memory = BytesMemory(SIZE)
    memory.store_u64(0, 0x1234567)
    with pytest.raises(UsageError):
        RingWriter(memory)
