"""The common base of both recorders: counters, the calls of a thread, and limits of records.

``flight_recorder`` and ``basic_recorder`` have the same interface, which is declared here.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Final, Generic, TypeVar

from fx_xray import rules
from fx_xray.format import EMULATED_FREQUENCY, EXIT, MAX_FUNCTION_ID, TAIL_EXIT
from fxframework.errors import refusal
from fxframework.io.sink import Sink
from fxframework.io.words import U64_MAX
from fxframework.kit import arguments
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.target import Clock, TimestampCounter

T = TypeVar("T", bound="ThreadRecorder")
CPU_MASK: Final = 0xFFF
"""Bits of TSC_AUX with the number of the CPU; the bits above have the number of its node."""


class ClockCounter:
    """This machine's monotonic clock as a counter: nanoseconds, on CPU 0.

    compiler-rt does the same on a machine without a reliable counter.
    """

    frequency = EMULATED_FREQUENCY
    constant = True
    nonstop = True

    def read_tsc(self) -> int:
        """Return nanoseconds."""
        return time.monotonic_ns()

    def read_tscp(self) -> tuple[int, int]:
        """Return nanoseconds, and CPU 0 of node 0."""
        return time.monotonic_ns(), 0


def microseconds_of(clock: Clock | Callable[[], int] | None) -> Callable[[], tuple[int, int]]:
    """Return a function that gives seconds and microseconds of a clock; None: this machine's.

    A ``Clock`` gives its monotonic time, a function nanoseconds.
    """
    now: Callable[[], int]
    if clock is None:
        now = time.monotonic_ns
    elif isinstance(clock, Clock):
        now = clock.monotonic_ns
    else:
        now = clock
    return lambda: divmod(now() // 1000, 1_000_000)


whole_number = partial(arguments.whole_number, rules=rules.REFUSALS)


class Recorder(ABC, Generic[T]):
    """Base of both recorders: a counter, threads by id, and counts of dropped records."""

    VERSIONS: ClassVar[range]
    IDS: ClassVar[tuple[int, int]]
    """Range of ids of processes and threads."""
    losses: str
    """What was dropped and why, as in ``entries were dropped``."""

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
        """Shorter calls are not kept."""
        self.check = check
        self.dropped = 0
        """Number of entries, exits and events that were not recorded."""
        self._lock = threading.Lock()
        self._threads: dict[tuple[int, int], T] = {}

    def thread(
        self, tid: int, *, process: int | None = None, counter: TimestampCounter | None = None
    ) -> T:
        """Return the recorder of the thread with this id, always the same one.

        ``process`` and ``counter`` default to those of the writer.
        """
        tid = whole_number("thread", tid, *self.IDS)
        pid = whole_number("process", self.process if process is None else process, *self.IDS)
        with self._lock:
            thread_recorder = self._threads.get((pid, tid))
            if thread_recorder is None:
                thread_recorder = self._new(pid, tid, self.counter if counter is None else counter)
                self._threads[pid, tid] = thread_recorder
        return thread_recorder

    @abstractmethod
    def _new(self, process: int, tid: int, counter: TimestampCounter) -> T:
        """Return a new recorder for a thread."""

    def finish(self) -> None:
        """Finish the records of all threads."""
        for thread in list(self._threads.values()):
            thread.finish()

    @abstractmethod
    def log(self) -> bytes:
        """Return the file recorded so far."""

    def write(self, sink: Sink) -> None:
        """Write the file recorded so far to a sink."""
        sink.write(self.log())

    def report(self, diagnostics: Diagnostics) -> None:
        """Report dropped records (CALLS_DROPPED)."""
        if self.dropped:
            message = f"{self.dropped:,} {self.losses}"
            diagnostics.add(rules.CALLS_DROPPED, value=message, times=self.dropped)

    def drop(self) -> None:
        """Count a dropped record."""
        with self._lock:
            self.dropped += 1


class ThreadRecorder(ABC):
    """Records for one thread.

    Methods read ``counter`` once, by default the recorder's; a thread that migrates passes that of
    its current CPU. They return False for a dropped record, and raise WriteRefusedError without
    side effects for values out of range (WRONG_TYPE, OUT_OF_RANGE), records that the version lacks
    (UNSUPPORTED_VERSION) or that fit no buffer (EVENT_TOO_LARGE) and, with ``check``, for the exit
    of a function that the thread is not in (EXIT_WITHOUT_ENTRY).

    With ``check`` the exits of dropped entries are dropped too, because they would end other calls
    of the function.
    """

    def __init__(
        self, writer: Recorder[Any], process: int, tid: int, counter: TimestampCounter
    ) -> None:
        self.process = process
        self.tid = tid
        self._counter = counter
        self._check = writer.check
        self._threshold = writer.threshold_ticks
        self._open: list[int] = []
        """Open functions; the complement of the number if the entry was dropped."""
        self._undoable: list[tuple[int, int, int]] = []
        """Entries at the end of the buffer, which an exit can undo: function, time, and the CPU
        (basic mode) or the delta."""

    @abstractmethod
    def enter(
        self, function_id: int, *arguments: int, counter: TimestampCounter | None = None
    ) -> bool:
        """Record the entry of a function, with arguments of 64 bits."""

    def exit(self, function_id: int, *, counter: TimestampCounter | None = None) -> bool:
        """Record the exit of a function."""
        return self._leave(EXIT, function_id, counter)

    def tail_exit(self, function_id: int, *, counter: TimestampCounter | None = None) -> bool:
        """Record a tail exit: another function is entered that returns to the same caller."""
        return self._leave(TAIL_EXIT, function_id, counter)

    @abstractmethod
    def _leave(self, kind: int, function_id: int, counter: TimestampCounter | None) -> bool:
        """Record an exit of a kind."""

    def custom_event(self, data: bytes, *, counter: TimestampCounter | None = None) -> bool:
        """Record an event with a payload; basic mode has none (UNSUPPORTED_VERSION)."""
        del data, counter
        raise refusal(rules.UNSUPPORTED_VERSION, "basic mode has no custom events")

    def typed_event(
        self, event_type: int, data: bytes, *, counter: TimestampCounter | None = None
    ) -> bool:
        """Record an event with a type, 0 to 65535, and a payload; basic mode has none."""
        del event_type, data, counter
        raise refusal(rules.UNSUPPORTED_VERSION, "basic mode has no typed events")

    @abstractmethod
    def finish(self) -> None:
        """Complete the records so far; more may follow."""

    @contextmanager
    def call(self, function_id: int, *arguments: int) -> Iterator[bool]:
        """Record a call: the entry at the beginning of a context, the exit at its end."""
        is_recorded = self.enter(function_id, *arguments)
        try:
            yield is_recorded
        finally:
            self.exit(function_id)

    # --- helpers ---

    def _leave_open(self, function_id: int) -> bool:
        """Remove a function from the open ones. Return False if its entry was dropped.

        Calls above it are removed too: an exception unwound them.
        """
        calls = self._open
        for index in range(len(calls) - 1, -1, -1):
            open_function = calls[index]
            if open_function in (function_id, ~function_id):
                del calls[index:]
                return open_function >= 0
        if not self._check:
            return True
        raise refusal(
            rules.EXIT_WITHOUT_ENTRY, f"exit of function {function_id}, which was not entered"
        )


def function_number(value: Any) -> int:
    """Return a function id; WriteRefusedError for over 28 bits (WRONG_TYPE, OUT_OF_RANGE)."""
    return whole_number("function_id", value, 0, MAX_FUNCTION_ID)


def argument_numbers(values: tuple[Any, ...]) -> list[int]:
    """Return the arguments of a call. Raises WriteRefusedError for one over 64 bits."""
    return [whole_number("an argument", value, 0, U64_MAX) for value in values]
