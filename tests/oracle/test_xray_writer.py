"""What our recorders write is accepted by llvm-xray, with the same records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from fx_xray.write.basic_recorder import BasicWriter
from fx_xray.write.flight_recorder import FdrWriter

from ..cases import cases
from .xray_tool import Event, account, convert, fdr_dump

KINDS = {
    "enter": "function-enter",
    "enter_arg": "function-enter-arg",
    "exit": "function-exit",
    "tail_exit": "function-tail-exit",
}
FREQUENCY = 1_000_000_000


@attrs.define
class Counter:
    """A counter that a test turns (``TimestampCounter``)."""

    tsc: int = 1 << 40
    cpu: int = 0
    frequency: int = FREQUENCY
    constant: bool = True
    nonstop: bool = True

    def read_tsc(self) -> int:
        return self.tsc

    def read_tscp(self) -> tuple[int, int]:
        return self.tsc, self.cpu


class Told:
    """A recorder's thread, and the events that llvm-xray should have of it."""

    def __init__(self, thread: Any, counter: Counter, process: int) -> None:
        self.thread = thread
        self.counter = counter
        self.process = process
        self.events: list[Event] = []

    def enter(self, function: int, *arguments: int) -> None:
        assert self.thread.enter(function, *arguments)
        self.tell("enter_arg" if arguments else "enter", function, arguments)

    def leave(self, kind: str, function: int) -> None:
        assert getattr(self.thread, kind)(function)
        self.tell(kind, function)

    def tell(self, kind: str, function: int, arguments: tuple[int, ...] = ()) -> None:
        self.events.append(
            Event(
                tsc=self.counter.tsc,
                kind=KINDS[kind],
                function=function,
                cpu=self.counter.cpu,
                thread=self.thread.tid,
                process=self.process,
                args=arguments,
            )
        )


def calls(told: Told, *, tail: bool = True) -> Iterator[None]:
    """Calls of every kind, between migrations, wraps and buffers that run full."""
    counter = told.counter
    told.enter(1)
    for number in range(2, 60):
        counter.tsc += 1000 + number
        if number % 10 == 0:
            counter.cpu = (counter.cpu + 1) % 4
        if number % 25 == 0:
            counter.tsc += 1 << 33
        told.enter(number, *range(number % 4))
        yield
        counter.tsc += 26
        told.leave("tail_exit" if tail and number % 3 == 0 else "exit", number)
    counter.tsc += 1
    told.leave("exit", 1)


def functions(path: Path) -> list[Event]:
    """Calls, in llvm-xray's order of time, without the type of an event before them."""
    found = convert(path).events
    names = set(KINDS.values())
    return [attrs.evolve(each, type=0, data="", name="") for each in found if each.kind in names]


@cases("version", range(1, 6))
@cases("buffer_size", [256, 16384])
def test_calls_are_read_as_they_were_recorded(
    version: int, buffer_size: int, tmp_path: Path
) -> None:
    counter = Counter()
    writer = FdrWriter(
        counter,
        version=version,
        buffer_size=buffer_size,
        threshold_us=0,
        process=3,
        clock=ticking(),
    )
    told = [
        Told(writer.thread(tid), counter, {1: 0, 2: tid}.get(version, 3)) for tid in (100_001, 7)
    ]
    for _ in zip(*(calls(each) for each in told), strict=True):
        counter.tsc += 5
    path = tmp_path / "calls.xray"
    path.write_bytes(writer.log())
    fdr_dump(path, verify=True)
    expected = [event for each in told for event in each.events]
    assert sorted(functions(path), key=place) == sorted(expected, key=place)
    assert writer.dropped == 0


def ticking() -> Any:
    """A clock that goes on by a microsecond each time; llvm-xray orders buffers by it."""
    now = [0]

    def read() -> int:
        now[0] += 1000
        return now[0]

    return read


def place(event: Event) -> tuple[int, ...]:
    return event.thread, event.tsc, event.function


@cases("version", range(1, 6))
def test_events_are_read_with_their_payloads(version: int, tmp_path: Path) -> None:
    counter = Counter()
    writer = FdrWriter(counter, version=version, threshold_us=0)
    thread = writer.thread(7)
    thread.enter(1)
    expected = []
    for number in range(8):
        payload = "payload " + "x" * number
        counter.tsc += 100
        thread.custom_event(payload.encode())
        expected.append(("custom-event", counter.tsc, 0, payload))
        if version >= 5:  # llvm-xray reads earlier ones as if they were of version 5
            counter.tsc += 100
            thread.typed_event(number, payload.encode())
            expected.append(("typed-event", counter.tsc, number, payload))
    counter.tsc += 100
    thread.exit(1)
    path = tmp_path / "events.xray"
    path.write_bytes(writer.log())
    fdr_dump(path, verify=True)
    found = [each for each in convert(path).events if each.kind.endswith("event")]
    assert [
        (each.kind, each.tsc, each.type * (each.kind == "typed-event"), each.data.strip("'"))
        for each in found
    ] == expected


@cases("version", [3, 4])
def test_typed_events_of_old_versions_are_taken(version: int, tmp_path: Path) -> None:
    writer = FdrWriter(Counter(), version=version, threshold_us=0)
    thread = writer.thread(7)
    with thread.call(1):
        thread.typed_event(3, b"data")
    path = tmp_path / "typed.xray"
    path.write_bytes(writer.log())
    fdr_dump(path, verify=True)
    assert [each.data for each in convert(path).events if each.kind == "typed-event"] == ["data"]


@cases("version", range(1, 4))
def test_calls_of_basic_mode_are_read_as_they_were_recorded(version: int, tmp_path: Path) -> None:
    counter = Counter()
    writer = BasicWriter(counter, version=version, threshold_us=0, process=3)
    told = [Told(writer.thread(tid), counter, 3 if version == 3 else 0) for tid in (100_001, 7)]
    for _ in zip(*(calls(each, tail=version > 1) for each in told), strict=True):
        counter.tsc += 5
    path = tmp_path / "basic.xray"
    path.write_bytes(writer.log())
    expected = [event for each in told for event in each.events]
    assert sorted(functions(path), key=place) == sorted(expected, key=place)


@pytest.mark.parametrize("version", range(1, 6))
def test_account_counts_the_calls(version: int, tmp_path: Path) -> None:
    counter = Counter()
    writer = FdrWriter(counter, version=version, threshold_us=5)
    thread = writer.thread(7)
    for _ in range(300):
        with thread.call(1):
            for ticks in (4999, 5000):  # the first is too short to be kept
                with thread.call(2):
                    counter.tsc += ticks
    path = tmp_path / "account.xray"
    path.write_bytes(writer.log())
    rows = account(path)
    assert {int(row[0]): int(row[1]) for row in rows} == {1: 300, 2: 300}
    totals = {int(row[0]): float(row[7]) for row in rows}
    assert totals == {1: pytest.approx(300 * 9999e-9), 2: pytest.approx(300 * 5000e-9)}
