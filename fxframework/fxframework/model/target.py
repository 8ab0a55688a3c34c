"""Target protocols: what a writer needs from a device, and what an emulated device provides.

The types are structural, so that writers and devices do not import each other. A 64-bit store
must not tear. On x86, stores become visible in program order; on a machine with weaker ordering, a
device must give release semantics to ``store_u64``, so that a reader that sees a committed offset
also sees the bytes before it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Protocol, runtime_checkable

__all__ = [
    "Clock",
    "DatagramSink",
    "KnowsWakers",
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
        """Load the word at byte ``offset`` (a multiple of 8), in one load."""

    def store_u64(self, offset: int, value: int) -> None:
        """Store the word at byte ``offset`` (a multiple of 8), in one store."""

    def read(self, offset: int, n: int) -> bytes:
        """Return ``n`` bytes from ``offset``."""

    def write(self, offset: int, buffer: bytes) -> None:
        """Write bytes by 8-byte stores at ascending offsets."""

    def grow(self, size: int) -> None:
        """Grow the region to at least ``size`` bytes; new bytes are zero."""


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
        """Whether it keeps running in every C-state."""

    def read_tsc(self) -> int:
        """Return the counter (RDTSC)."""

    def read_tscp(self) -> tuple[int, int]:
        """Return the counter and TSC_AUX (node << 12 | cpu), read at the same moment (RDTSCP)."""


@runtime_checkable
class Clock(Protocol):
    """A device's clocks."""

    @property
    def ticks_per_second(self) -> int:
        """Rate of ``ticks()``."""

    def monotonic_ns(self) -> int:
        """Return nanoseconds since boot, without suspended time."""

    def boot_ns(self) -> int:
        """Return nanoseconds since boot, suspended time included."""

    def ticks(self) -> int:
        """Return the tick counter."""


@runtime_checkable
class DatagramSink(Protocol):
    """A datagram socket."""

    def send(self, datagram: bytes, /) -> bool:
        """Send a datagram; return False if it was dropped."""


@runtime_checkable
class SchedulerListener(Protocol):
    """Observes the scheduler. Times are in ticks; threads and processes are koids."""

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
        """Called when a CPU switches from one thread to another."""

    def wakeup(self, *, cpu: int, ticks: int, tid: int, priority: int) -> object:
        """Called when a thread becomes ready to run."""


@runtime_checkable
class KnowsWakers(Protocol):
    """A target that can tell its listeners who wakes a thread."""

    @property
    def waker(self) -> tuple[int, int] | None:
        """Koids of process and thread that wake another thread at the moment; None for timers."""


# --- What scenario steps ask of a target ---------------------------------------------------------


@runtime_checkable
class Thread(Protocol):
    """A thread of a target, as seen by the program that runs on it.

    The methods ``run``, ``sleep`` and so on return an action, which happens when the program
    yields it.
    """

    @property
    def ids(self) -> tuple[int, int]:
        """Koids of the process and the thread."""

    @property
    def counter(self) -> TimestampCounter:
        """The counter of the CPU that the thread runs on."""

    @property
    def clock(self) -> Clock:
        """The device's clock."""

    def run(self, ns: int) -> object:
        """Use CPU time."""

    def sleep(self, ns: int) -> object:
        """Block for a time."""

    def wait(self, event: str, timeout_ns: int | None = None) -> object:
        """Block until an event is signalled; the yield evaluates to False after a timeout."""

    def signal(self, event: str) -> object:
        """Signal an event. Signals are counted: each ends one wait, now or later."""

    def migrate(self, cpu: int | None) -> object:
        """Move to a CPU and stay there; None allows all CPUs again."""

    def give_way(self) -> object:
        """Let other threads of the same priority run first."""


Program = Callable[[Thread], Generator[object, Any, object]]
"""The program of a thread: a generator function."""


@runtime_checkable
class Target(Protocol):
    """An emulated machine, which steps of a scenario find as ``run.target``."""

    @property
    def counter(self) -> TimestampCounter:
        """The counter of the current thread's CPU, for a writer that several threads share."""

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
        """Start a thread in the process of that name, which is created if it does not exist.

        ``cpu`` pins the thread to a CPU. A waiting ``background`` thread does not keep ``run``
        from ending.
        """

    def listen(self, listener: SchedulerListener) -> None:
        """Report scheduler events from now on, in ticks of the counter of the CPU."""

    def run(self, until_ns: int | None = None, *, budget: int = 1_000_000) -> object:
        """Run threads until a monotonic time, or until no thread has anything to do."""

    def trace_buffer(self, nbytes: int) -> Any:
        """Create a trace provider's buffer for ``nbytes`` of records, in the order of ``put``.

        It has ``put``, ``has_room``, ``keeps_order`` and ``lock``, which trace writers need, and
        ``memory``, a Memory.
        """

    def log_socket(self, nbytes: int) -> Any:
        """Create a DatagramSink that keeps ``nbytes`` of datagrams.

        Its method ``receive`` returns the next datagram, or None.
        """

    def snapshot(self, name: str) -> bytes:
        """Return the contents of the device of that name."""
