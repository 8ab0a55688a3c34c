"""Target protocols: what a writer needs from a device, and what an emulated one provides.

Structural, so that writers and devices meet here and neither imports the other. A 64-bit store
must not tear. On x86 stores become visible in program order; on a machine with weaker ordering a
device must give release semantics to ``store_u64``, so that a reader who sees a committed offset
sees the bytes before it too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Protocol, runtime_checkable

__all__ = [
    "Clock",
    "DatagramSink",
    "Memory",
    "Program",
    "SchedulerListener",
    "Target",
    "Thread",
    "TimestampCounter",
]


@runtime_checkable
class Memory(Protocol):
    """A region of bytes, addressed from 0."""

    @property
    def size(self) -> int:
        """Bytes in the region."""

    def load_u64(self, offset: int) -> int:
        """The word at byte ``offset`` (a multiple of 8), in one load."""

    def store_u64(self, offset: int, value: int) -> None:
        """Store the word at byte ``offset`` (a multiple of 8), in one store."""

    def read(self, offset: int, n: int) -> bytes:
        """``n`` bytes from ``offset``."""

    def write(self, offset: int, buffer: bytes) -> None:
        """Store bytes as ascending 8-byte stores."""

    def grow(self, size: int) -> None:
        """Make the region at least ``size`` bytes; new bytes are zero."""


@runtime_checkable
class TimestampCounter(Protocol):
    """A CPU's time-stamp counter."""

    @property
    def frequency(self) -> int:
        """Ticks per second."""

    @property
    def constant(self) -> bool:
        """Whether the rate is the same in every P-state."""

    @property
    def nonstop(self) -> bool:
        """Whether it runs on in every C-state."""

    def read_tsc(self) -> int:
        """RDTSC."""

    def read_tscp(self) -> tuple[int, int]:
        """RDTSCP: the counter and TSC_AUX (node << 12 | cpu) of one moment."""


@runtime_checkable
class Clock(Protocol):
    """A device's clocks."""

    @property
    def ticks_per_second(self) -> int:
        """Rate of ``ticks()``."""

    def monotonic_ns(self) -> int:
        """Nanoseconds since boot, without suspended time."""

    def boot_ns(self) -> int:
        """Nanoseconds since boot, suspended time included."""

    def ticks(self) -> int:
        """The tick counter."""


@runtime_checkable
class DatagramSink(Protocol):
    """A socket of datagrams."""

    def send(self, datagram: bytes, /) -> bool:
        """Send one; False where it was dropped."""


@runtime_checkable
class SchedulerListener(Protocol):
    """Observes the scheduler. Times are in ticks, threads and processes are koids."""

    def context_switch(
        self,
        *,
        cpu: int,
        ticks: int,
        outgoing_tid: int,
        outgoing_state: int,
        incoming_tid: int,
        incoming_priority: int,
        outgoing_priority: int,
    ) -> object:
        """A CPU went from one thread to another."""

    def wakeup(self, *, cpu: int, ticks: int, tid: int, priority: int) -> object:
        """A thread became ready to run."""


# --- What scenario steps ask of a target ---------------------------------------------------------


@runtime_checkable
class Thread(Protocol):
    """A thread of a target, as the program sees it that runs on it.

    The program yields what ``run``, ``sleep`` and the others return: then it happens.
    """

    @property
    def ids(self) -> tuple[int, int]:
        """Koids of process and thread."""

    @property
    def counter(self) -> TimestampCounter:
        """The counter of the CPU that it is on."""

    @property
    def clock(self) -> Clock:
        """The device's clock."""

    def run(self, ns: int) -> object:
        """Use so much CPU time."""

    def sleep(self, ns: int) -> object:
        """Block for so long."""

    def wait(self, event: str, timeout_ns: int | None = None) -> object:
        """Block until an event is signalled; the program is sent False where time was up first."""

    def signal(self, event: str) -> object:
        """Signal an event. Signals count: each lets one wait end, now or later."""

    def migrate(self, cpu: int | None) -> object:
        """Go to a CPU and stay there; None allows all of them again."""

    def give_way(self) -> object:
        """Let others of the same priority go first."""


Program = Callable[[Thread], Generator[object, Any, object]]
"""What a thread runs."""


@runtime_checkable
class Target(Protocol):
    """An emulated machine: what steps of a scenario ask of it, and find as ``run.target``."""

    @property
    def counter(self) -> TimestampCounter:
        """The counter of the CPU that the current thread is on: for a writer that several share."""

    @property
    def clock(self) -> Clock:
        """The device's clock."""

    def spawn(
        self,
        process: str,
        name: str,
        program: Program,
        *,
        priority: int = 16,
        cpu: int | None = None,
        background: bool = False,
    ) -> Thread:
        """Start a thread in a process, which the name makes where there is none.

        ``cpu`` keeps it on one; the target may be idle while a ``background`` thread waits.
        """

    def listen(self, listener: SchedulerListener) -> None:
        """Report what the scheduler does from now on, in ticks of the counter of the CPU."""

    def run(self, until_ns: int | None = None, *, budget: int = 1_000_000) -> object:
        """Let time pass, up to a monotonic time, or until no thread has anything to do."""

    def trace_buffer(self, nbytes: int) -> Any:
        """A buffer of a trace provider that keeps ``nbytes`` of records in the order of ``put``.

        It has ``put``, ``has_room``, ``keeps_order`` and ``lock`` as trace writers ask for, and
        ``memory``, a Memory.
        """

    def log_socket(self, nbytes: int) -> Any:
        """A DatagramSink that keeps ``nbytes`` of datagrams.

        It has ``receive``, which gives the next one, or None.
        """

    def snapshot(self, name: str) -> bytes:
        """What a device of that name holds."""
