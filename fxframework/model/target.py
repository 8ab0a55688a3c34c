"""Target protocols: what a writer needs of a device, and what an emulated one gives.

Structural, so that writers and devices meet here and neither imports the other. A 64-bit store
must not tear. On x86 stores become visible in program order; on a machine with weaker ordering a
device must give release semantics to ``store_u64``, so that a reader who sees a committed offset
sees the bytes before it too.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

__all__ = ["Clock", "DatagramSink", "Memory", "SchedulerListener", "TimestampCounter"]


@runtime_checkable
class Memory(Protocol):
    """A region of bytes, addressed from 0."""

    @property
    def size(self) -> int:
        """Bytes in the region."""
        ...

    def load_u64(self, offset: int) -> int:
        """The word at byte ``offset`` (a multiple of 8), in one load."""
        ...

    def store_u64(self, offset: int, value: int) -> None:
        """Store the word at byte ``offset`` (a multiple of 8), in one store."""
        ...

    def read(self, offset: int, n: int) -> bytes:
        """``n`` bytes from ``offset``."""
        ...

    def write(self, offset: int, buffer: bytes) -> None:
        """Store bytes as ascending 8-byte stores."""
        ...

    def grow(self, size: int) -> None:
        """Make the region at least ``size`` bytes; new bytes are zero."""
        ...


@runtime_checkable
class TimestampCounter(Protocol):
    """A CPU's time-stamp counter."""

    @property
    def frequency(self) -> int:
        """Ticks per second."""
        ...

    @property
    def constant(self) -> bool:
        """Whether the rate is the same in every P-state."""
        ...

    @property
    def nonstop(self) -> bool:
        """Whether it runs on in every C-state."""
        ...

    def read_tsc(self) -> int:
        """RDTSC."""
        ...

    def read_tscp(self) -> tuple[int, int]:
        """RDTSCP: the counter and TSC_AUX (node << 12 | cpu) of one moment."""
        ...


@runtime_checkable
class Clock(Protocol):
    """A device's clocks."""

    @property
    def ticks_per_second(self) -> int:
        """Rate of ``ticks()``."""
        ...

    def monotonic_ns(self) -> int:
        """Nanoseconds since boot, without suspended time."""
        ...

    def boot_ns(self) -> int:
        """Nanoseconds since boot, suspended time included."""
        ...

    def ticks(self) -> int:
        """The tick counter."""
        ...


@runtime_checkable
class DatagramSink(Protocol):
    """A socket of datagrams."""

    def send(self, datagram: bytes, /) -> bool:
        """Send one; False where it was dropped."""
        ...


@runtime_checkable
class SchedulerListener(Protocol):
    """Hears what the scheduler does. Times are in ticks, threads and processes are koids."""

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
        ...

    def wakeup(self, *, cpu: int, ticks: int, tid: int, priority: int) -> object:
        """A thread became ready to run."""
        ...
