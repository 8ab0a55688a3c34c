"""What both recorders share: counters, the calls that a thread is in, and what a record can hold.

``flight_recorder`` and ``basic_recorder`` have the same interface, which is declared here.
"""

from __future__ import annotations

import operator
import reprlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final, Generic, TypeVar

from fx_xray.layout import EMULATED_FREQUENCY, MAX_FUNCTION_ID
from fx_xray.read.records import refusal
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX
from fxframework.model.target import Clock, TimestampCounter

__all__ = [
    "CPU_MASK",
    "Call",
    "ClockCounter",
    "Recorder",
    "ThreadRecorder",
    "argument_numbers",
    "function_number",
    "microseconds_of",
    "whole_number",
]

T = TypeVar("T", bound="ThreadRecorder")
CPU_MASK: Final = 0xFFF
"""Bits of TSC_AUX that number the CPU; those above number its node."""


class ClockCounter:
    """This machine's monotonic clock as a counter: nanoseconds, of CPU 0.

    What compiler-rt does where a machine has no counter to be trusted.
    """

    frequency = EMULATED_FREQUENCY
    constant = True
    nonstop = True

    def read_tsc(self) -> int:
        """Nanoseconds."""
        return time.monotonic_ns()

    def read_tscp(self) -> tuple[int, int]:
        """Nanoseconds, and CPU 0 of node 0."""
        return time.monotonic_ns(), 0


def microseconds_of(clock: Clock | Callable[[], int] | None) -> Callable[[], tuple[int, int]]:
    """A function that gives seconds and microseconds of a monotonic clock; None is this machine's.

    A ``Clock`` gives its monotonic time, a function its nanoseconds.
    """
    now: Callable[[], int]
    if clock is None:
        now = time.monotonic_ns
    elif isinstance(clock, Clock):
        now = clock.monotonic_ns
    else:
        now = clock
    return lambda: divmod(now() // 1000, 1_000_000)


def whole_number(what: str, value: Any, least: int, most: int) -> int:
    """A whole number within bounds; WriteRefusedError for others (FXX0503, FXX0504)."""
    try:
        number = operator.index(value)
    except TypeError:
        raise refusal("FXX0503", f"{what} is a whole number, not {reprlib.repr(value)}") from None
    if not least <= number <= most:
        raise refusal("FXX0504", f"{what} is {reprlib.repr(number)}, not {least} to {most}")
    return number


class Recorder(ABC, Generic[T]):
    """What both recorders are: a counter, threads by their ids, and what was dropped."""

    VERSIONS: ClassVar[range]
    IDS: ClassVar[tuple[int, int]]
    """The least and the greatest id of a process and of a thread."""

    def __init__(
        self,
        counter: TimestampCounter | None,
        *,
        version: int,
        process: int,
        threshold_us: int,
        check: bool,
    ) -> None:
        self.version = whole_number("version", version, self.VERSIONS[0], self.VERSIONS[-1])
        self.counter: TimestampCounter = ClockCounter() if counter is None else counter
        self.cycle_frequency = whole_number("frequency", self.counter.frequency, 0, U64_MAX)
        self.process = whole_number("process", process, *self.IDS)
        self.threshold_ticks = (
            self.cycle_frequency * whole_number("threshold_us", threshold_us, 0, U64_MAX)
        ) // 1_000_000
        """Calls of fewer ticks are not kept."""
        self.check = check
        self.dropped = 0
        """Entries, exits and events that were not recorded."""
        self._lock = threading.Lock()
        self._threads: dict[tuple[int, int], T] = {}

    def thread(
        self, tid: int, *, process: int | None = None, counter: TimestampCounter | None = None
    ) -> T:
        """What the thread of this id records with, the same each time.

        ``process`` and ``counter`` are its own, where they are not the writer's.
        """
        tid = whole_number("thread", tid, *self.IDS)
        pid = whole_number("process", self.process if process is None else process, *self.IDS)
        with self._lock:
            found = self._threads.get((pid, tid))
            if found is None:
                found = self._new(pid, tid, self.counter if counter is None else counter)
                self._threads[pid, tid] = found
        return found

    @abstractmethod
    def _new(self, process: int, tid: int, counter: TimestampCounter) -> T:
        """What a thread records with that has recorded nothing so far."""

    def finish(self) -> None:
        """Finish the records of all threads."""
        for thread in list(self._threads.values()):
            thread.finish()

    @abstractmethod
    def log(self) -> bytes:
        """The file of what is recorded so far."""

    def write(self, sink: Sink) -> None:
        """Put the file of what is recorded so far into a sink."""
        sink.write(self.log())

    def drop(self) -> None:
        """Count what is not recorded."""
        with self._lock:
            self.dropped += 1


class Call:
    """A call that is recorded: entered at the beginning of a ``with``, left at its end."""

    __slots__ = ("_arguments", "_function", "_thread")

    def __init__(self, thread: ThreadRecorder, function_id: int, arguments: tuple[int, ...]):
        self._thread = thread
        self._function = function_id
        self._arguments = arguments

    def __enter__(self) -> bool:
        return self._thread.enter(self._function, *self._arguments)

    def __exit__(self, *_: object) -> None:
        self._thread.exit(self._function)


class ThreadRecorder(ABC):
    """What a thread records with.

    Methods read ``counter``, or the recorder's where none is given, once; a thread that migrates
    gives that of the CPU that it is on. They return False for what was dropped, and raise
    WriteRefusedError, nothing recorded or changed, for what no record can hold (FXX0503, FXX0504),
    the version does not have (FXX0506), no buffer has room for (FXX0507), and, with ``check``, for
    the exit of a function that the thread is not in (FXX0509).

    With ``check`` it is also known which entries were dropped, and their exits are dropped too:
    they would end other calls of the function.
    """

    def __init__(self, counter: TimestampCounter, *, check: bool) -> None:
        self._counter = counter
        self._check = check
        self._open: list[int] = []
        """Functions that it is in; the complement of the number where the entry was dropped."""

    @abstractmethod
    def enter(
        self, function_id: int, *arguments: int, counter: TimestampCounter | None = None
    ) -> bool:
        """A function is entered, with arguments of 64 bits."""

    @abstractmethod
    def exit(self, function_id: int, *, counter: TimestampCounter | None = None) -> bool:
        """A function is left."""

    @abstractmethod
    def tail_exit(self, function_id: int, *, counter: TimestampCounter | None = None) -> bool:
        """A function is left for another one, which returns to whom this one would return to."""

    @abstractmethod
    def custom_event(self, data: bytes, *, counter: TimestampCounter | None = None) -> bool:
        """An event with a payload."""

    @abstractmethod
    def typed_event(
        self, event_type: int, data: bytes, *, counter: TimestampCounter | None = None
    ) -> bool:
        """An event with a type, 0 to 65535, and a payload."""

    @abstractmethod
    def finish(self) -> None:
        """What is recorded so far is all of it, until more is."""

    def call(self, function_id: int, *arguments: int) -> Call:
        """A context manager around what a function does."""
        return Call(self, function_id, arguments)

    # --- within ---

    def _leave_open(self, function_id: int) -> bool:
        """Take a function from those that the thread is in; False where its entry was dropped.

        Calls above it go too: an exception went through them.
        """
        calls = self._open
        for index in range(len(calls) - 1, -1, -1):
            found = calls[index]
            if found in (function_id, ~function_id):
                del calls[index:]
                return found >= 0
        if not self._check:
            return True
        raise refusal("FXX0509", f"function {function_id} is left, and was not entered")


def function_number(value: Any) -> int:
    """A function id; WriteRefusedError where it has over 28 bits (FXX0503, FXX0504)."""
    return whole_number("function_id", value, 0, MAX_FUNCTION_ID)


def argument_numbers(values: tuple[Any, ...]) -> list[int]:
    """Arguments of a call; WriteRefusedError for those over 64 bits (FXX0503, FXX0504)."""
    return [whole_number("an argument", value, 0, U64_MAX) for value in values]
