"""reads_back: sound writers of all four formats pass; one that breaks its rules is named."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from fx_inspect import Inspector
from fx_log import RingWriter
from fx_trace.write.buffer import TraceBuffer
from fx_trace.write.writer import TraceWriter
from fx_xray.write.flight_recorder import FdrWriter, log_of, slot_bytes
from fxframework.errors import UsageError
from fxframework.testing import reads_back
from fxframework.testing.crashtest import RecordedMemory, crashtest


def trace(buffer: TraceBuffer) -> None:
    writer = TraceWriter(buffer)
    for number in range(6):
        writer.instant("app", f"event {number}", thread=(1, 2), args={"n": number})


def inspect(memory: RecordedMemory) -> None:
    inspector = Inspector(memory)
    numbers = [inspector.root.create_int(f"number {each}", each) for each in range(4)]
    for each in numbers:
        each.set(7)


def fdr(memory: RecordedMemory) -> None:
    writer = FdrWriter(memory=memory, buffer_size=512, threshold_us=0, circular=False)
    thread = writer.thread(7)
    for number in range(1, 20):
        thread.enter(number)
        thread.exit(number)
    thread.custom_event(b"an event")


def fdr_log(image: bytes) -> bytes:
    return log_of(image, buffer_size=512, cycle_frequency=10**9)


def test_a_format_that_nothing_reads_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="there is no reader 'nope'"):
        reads_back("nope")  # type: ignore[arg-type]


def test_a_sound_trace() -> None:
    def setup(memory: RecordedMemory) -> TraceBuffer:
        return TraceBuffer(memory, "oneshot")

    report = crashtest(trace, reads_back("trace"), size=4096, setup=setup)
    assert report.ok, report


def test_a_sound_inspect_vmo() -> None:
    check = reads_back("inspect")
    report = crashtest(inspect, check, size=0)
    assert report.ok, report


def test_a_sound_flight_recorder() -> None:
    check = reads_back("xray", extract=fdr_log)
    report = crashtest(fdr, check, size=4 * slot_bytes(512))
    assert report.ok, report


def test_a_sound_ring_of_logs() -> None:
    from fx_log import LogWriter

    def write(memory: RecordedMemory) -> None:
        ring = RingWriter(memory)
        writer = LogWriter(ring.tagged(1), pid=1, tid=2)
        for number in range(5):
            writer.info(f"message {number}")

    # A ring is known by its head, which is 0 before the first entry is committed.
    check = reads_back("log", extract=lambda image: image if any(image[:8]) else None)
    report = crashtest(write, check, size=4096 + (64 << 10), every=3)
    assert report.ok, report


# --- What it finds ------------------------------------------------------------------------------

MAGIC = 0x0016547846040010
EVENT = 4 | 2 << 4 | 1 << 24 | 1 << 32 | 1 << 48


def stream(*records: int) -> bytes:
    words = [MAGIC, 1 | 2 << 4, 10**9, 2 | 2 << 4 | 1 << 16 | 1 << 32, 0x61]
    words += [3 | 3 << 4 | 1 << 16, 1, 2]
    for number in records:
        words += [EVENT, number]
    return struct.pack(f"<{len(words)}Q", *words)


def test_what_was_committed_must_stay() -> None:
    check = reads_back("trace")
    check(stream(1, 2, 3), before=stream(1, 2))
    with pytest.raises(AssertionError, match="a committed record disappeared"):
        check(stream(1), before=stream(1, 2))
    with pytest.raises(AssertionError, match="a committed record changed"):
        check(stream(1, 3), before=stream(1, 2))


def test_a_ring_may_lose_records_but_not_change_them() -> None:
    check = reads_back("trace", keeps="some")
    check(stream(2), before=stream(1, 2))
    check(stream(2, 3), before=stream(2))
    with pytest.raises(AssertionError, match="changed"):
        check(stream(3), before=stream(2))


def test_findings_fail_unless_they_are_named() -> None:
    damaged = stream(1) + struct.pack("<Q", 0xFFF7)
    with pytest.raises(AssertionError, match=r"FXT\d{4} at byte \d+: .*name the code in findings="):
        reads_back("trace")(damaged)
    with pytest.raises(AssertionError) as caught:
        reads_back("trace")(damaged)
    code = str(caught.value)[:7]
    reads_back("trace", findings={code})(damaged)


def test_a_tree_that_changes_in_secret() -> None:
    inspector = Inspector()
    number = inspector.root.create_int("n", 1)
    before = inspector.copy()
    secret = bytearray(before)
    at = secret.index(struct.pack("<Q", 1), 40)
    secret[at] = 2
    number.set(2)
    check = reads_back("inspect")
    check(inspector.copy(), before=before)
    with pytest.raises(AssertionError, match="the tree changed while the generation count was"):
        check(bytes(secret), before=before)


def test_nothing_there_yet_is_no_finding() -> None:
    for format in ("trace", "log", "inspect", "xray"):
        check: Any = reads_back(format)
        check(bytes(4096))
        check(bytes(4096), before=bytes(4096))


def test_a_generation_count_that_stays_odd() -> None:
    def write(memory: RecordedMemory) -> None:
        inspect(memory)
        memory.store_u64(8, memory.load_u64(8) + 1)

    check = reads_back("inspect")
    for options in ({}, {"final": check}):
        failure = crashtest(write, check, size=4096, **options).failure
        assert failure is not None
        assert failure.final
        assert "an odd count means that a write is in progress" in str(failure)


def test_a_vmo_that_is_not_there_in_the_end() -> None:
    """The writer took memory of its own, or wrote over the header."""
    for write in (
        lambda _memory: Inspector().root.create_uint("packets", 1),
        lambda memory: [memory.store_u64(8 * word, 0xDEADBEEF) for word in range(4)],
    ):
        report = crashtest(write, reads_back("inspect"), size=4096)
        assert report.failure is not None
        assert "its header is missing" in str(report.failure)


def test_a_header_that_is_overwritten() -> None:
    inspector = Inspector()
    before = inspector.copy()
    without = before[:1] + b"\0" + before[2:]  # a block of another type
    check = reads_back("inspect")
    with pytest.raises(AssertionError, match="the header of the VMO was overwritten"):
        check(without, before=before)
    check(without, before=bytes(4096))
