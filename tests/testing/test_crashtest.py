"""crashtest: it finds the first store after which a crash leaves what cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxframework as fxf
from fx_emulator.memory import Memory
from fx_trace.write.buffer import TraceBuffer
from fx_trace.write.writer import TraceWriter
from fxframework.testing.crashtest import CrashReport, RecordedMemory, crashtest

from ..cases import cases

COUNT = 0
"""Where the tiny format below has its count of records; each is a length and a payload word."""


def append(memory: Any, number: int, *, count_first: bool = False) -> None:
    """Append record ``number``, counting it before or behind its payload."""
    at = 8 + 16 * number
    if count_first:
        memory.store_u64(COUNT, number + 1)
    memory.store_u64(at, 8)
    memory.store_u64(at + 8, 0xABCD_0000 + number)
    if not count_first:
        memory.store_u64(COUNT, number + 1)


def check(image: bytes) -> None:
    words = memoryview(image).cast("Q")
    for number in range(words[0]):
        assert words[1 + 2 * number] == 8, f"record {number} has no length"
        assert words[2 + 2 * number] == 0xABCD_0000 + number, f"record {number} has no payload"


def writer(count: int, *, bug_from: int | None = None) -> Callable[[Any], None]:
    def write(memory: Any) -> None:
        for number in range(count):
            append(memory, number, count_first=bug_from is not None and number >= bug_from)

    return write


# --- What it finds -------------------------------------------------------------------------------


def test_a_sound_writer_passes_after_every_store() -> None:
    report = crashtest(writer(5), check, size=128)
    assert report.ok
    assert (report.stores, report.images) == (15, 16)
    assert str(report) == "16 images of 15 stores: all can be read"
    one = crashtest(lambda memory: None, lambda image: None, size=16)
    assert str(one) == "1 image of 0 stores: it can be read"


@cases("every", [1, 2, 4, 7, 8])
@cases("torn", [False, True])
def test_a_count_bumped_before_the_payload_is_found(every: int, torn: bool) -> None:
    report = crashtest(writer(6, bug_from=4), check, size=128, every=every, torn=torn)
    failure = report.failure
    assert failure is not None
    assert not report.ok
    assert (failure.store, failure.offset, failure.old, failure.new) == (13, COUNT, 4, 5)
    assert failure.landed == 8
    assert isinstance(failure.error, AssertionError)
    assert failure.image[:8] == (5).to_bytes(8, "little")
    assert "after store 13, to byte 0: 0x0000000000000004 became 0x0000000000000005" in str(report)
    assert "record 4 has no length" in str(report)


@given(st.integers(1, 12), st.integers(0, 11), st.integers(1, 5))
def test_the_smallest_store_is_named_wherever_the_bug_begins(
    count: int, bug: int, every: int
) -> None:
    report = crashtest(writer(count, bug_from=bug), check, size=256, every=every)
    if every == 1:
        assert report.ok == (bug >= count)
    if report.failure is not None:
        # Images of the last store are sound, so one between may be the first that is looked at.
        assert (report.failure.store - 3 * bug) % 3 in {1, 2}
        if every == 1:
            assert report.failure.store == 3 * bug + 1


def test_a_torn_store_is_found_where_the_whole_ones_are_sound() -> None:
    def write(memory: Any) -> None:
        memory.store_u64(8, 0x1_0000_0001)
        memory.store_u64(8, 0x2_0000_0002)

    def halves(image: bytes) -> None:
        low, high = image[8:12], image[12:16]
        assert low == high

    assert crashtest(write, halves, size=16).ok
    report = crashtest(write, halves, size=16, torn=True)
    assert report.failure is not None
    assert (report.failure.store, report.failure.landed) == (1, 1)
    assert "of which 1 byte landed" in str(report)


@cases("answer", [False, np.False_])
def test_a_check_rejects_an_image_by_its_answer(answer: object) -> None:
    report = crashtest(lambda memory: None, lambda image: answer, size=8)
    assert report.failure is not None
    assert "AssertionError: the check returned False" in str(report)
    assert crashtest(lambda memory: None, lambda image: not answer, size=8).ok
    assert not crashtest(lambda memory: None, len, size=8, final=lambda image: answer).ok


def test_the_memory_before_the_first_store_is_checked() -> None:
    def refuse(image: bytes) -> None:
        raise ValueError("never")

    report = crashtest(lambda memory: None, refuse, size=8)
    assert report.failure is not None
    assert (report.failure.store, report.images) == (0, 1)
    assert "before the first store" in str(report)
    assert "ValueError: never" in str(report)


# --- How it runs ---------------------------------------------------------------------------------


def test_setup_is_not_tested_and_its_result_is_written_to() -> None:
    def setup(memory: RecordedMemory) -> TraceBuffer:
        memory.store_u64(8, 1)
        return TraceBuffer(memory, "oneshot")

    def write(buffer: TraceBuffer) -> None:
        assert isinstance(buffer, TraceBuffer)
        TraceWriter(buffer, ticks_per_second=1000)

    def readable(image: bytes) -> None:
        with fxf.open(image, format="trace-buffer") as capture:
            assert capture.header is not None  # type: ignore[attr-defined]

    report = crashtest(write, readable, size=4096, setup=setup)
    assert report.ok
    assert report.stores > 0


def test_notes_show_that_nothing_committed_is_lost() -> None:
    def write(memory: RecordedMemory) -> None:
        for number in range(3):
            append(memory, number)
            memory.note(number)

    seen = []

    def complete(image: bytes, notes: list[int]) -> None:
        seen.append(list(notes))
        assert memoryview(image).cast("Q")[0] >= len(notes)

    assert crashtest(write, complete, size=128).ok
    assert seen[0] == []
    assert seen[-1] == [0, 1, 2]
    assert [len(notes) for notes in seen] == sorted(len(notes) for notes in seen)


def test_a_memory_of_the_emulator_and_one_that_grows() -> None:
    def write(memory: Any) -> None:
        append(memory, 0)
        memory.grow(4096)
        memory.write(4088, b"whatever")
        append(memory, 1)

    sizes = []

    def sized(image: bytes) -> None:
        sizes.append(len(image))
        check(image)

    memory = Memory.anonymous(64)
    report = crashtest(write, sized, memory=memory)
    assert report.ok
    assert (sizes[0], sizes[2], sizes[3], sizes[-1]) == (64, 64, 4096, 4096)
    assert memory.load_u64(COUNT) == 2


def test_every_image_is_what_the_memory_was() -> None:
    states: list[bytes] = []

    class Spy(Memory):
        def store_u64(self, offset: int, value: int) -> None:
            super().store_u64(offset, value)
            states.append(self.read(0, self.size))

    memory = Spy.anonymous(128)
    states.append(memory.read(0, 128))
    images: list[bytes] = []
    assert crashtest(writer(4), images.append, memory=memory).ok
    assert images == states


def test_what_the_writer_raises_is_raised() -> None:
    def write(memory: Any) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        crashtest(write, check, size=64)
    with pytest.raises(ValueError, match="1 or more"):
        crashtest(writer(1), check, size=64, every=0)


def test_a_report_is_a_value() -> None:
    assert crashtest(writer(1), check, size=64) == CrashReport(stores=3, images=4)


@cases("mode", ["oneshot", "circular", "streaming"])
def test_our_own_writer_stands_it(mode: str) -> None:
    def write(buffer: TraceBuffer) -> None:
        trace = TraceWriter(buffer, ticks_per_second=1000)
        for number in range(60):
            trace.instant("app", "event", {"n": number}, thread=(1, 2), timestamp=number)

    def sound(image: bytes) -> None:
        with fxf.open(image, format="trace-buffer") as capture:
            capture.scan()
            assert "FXT0506" not in capture.diagnostics.counts
            numbers = capture.table("args")["int"].tolist()  # type: ignore[union-attr]
            first = numbers[0] if numbers else 0
            assert numbers == list(range(first, first + len(numbers)))

    report = crashtest(
        write, sound, size=4096, every=11, setup=lambda memory: TraceBuffer(memory, mode)
    )
    assert report.ok, report


def test_what_must_hold_at_the_end_is_checked_there_alone() -> None:
    def write(memory: RecordedMemory) -> None:
        memory.store_u64(0, 1)
        memory.note("begun")
        memory.store_u64(0, 3)

    def even(image: bytes) -> None:
        assert image[0] % 2 == 0, "a write is in progress"

    def noted(image: bytes, notes: list[str]) -> None:
        assert notes == ["begun"]

    for final in (even, noted):
        report = crashtest(write, lambda _: None, size=64, final=final)
        assert report.ok is (final is noted)
        assert report.images == 3
    report = crashtest(write, lambda _: None, size=64, final=even)
    assert report.failure is not None
    assert (report.failure.store, report.failure.final) == (2, True)
    assert "the last image is wrong when the writer had ended, after 2 stores" in str(report)
    assert not crashtest(write, even, size=64, final=even).failure.final
