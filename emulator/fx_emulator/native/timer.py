"""Virtual time of native programs: it passes by instructions, and readings of it always rise."""

from __future__ import annotations

from collections.abc import Callable

from fx_emulator.clock import VirtualClock
from fx_emulator.cpu import Cpu
from fx_emulator.native.engine import Engine

_NS = 1_000_000_000


class Timer:
    """Lets a clock advance as the engine executes instructions, ``rate`` of them a second.

    Time passes on the clock at each reading; ``spend`` or ``take`` accounts for what is left.
    """

    def __init__(self, engine: Engine, clock: VirtualClock, rate: int) -> None:
        self._engine = engine
        self._clock = clock
        self._rate = rate
        self._counted = 0
        """Instructions of the current run that are in ``_due``."""
        self._due = 0
        """Time that has not passed on the clock, in ns times the rate."""
        self.on_read: Callable[[], None] | None = None
        """Called at each reading."""

    def count(self) -> None:
        """Account for the instructions executed so far."""
        executed = self._engine.executed
        self._due += (executed - self._counted) * _NS
        self._counted = executed

    def end_run(self) -> None:
        """Account for a run of the engine, which has ended."""
        self.count()
        self._counted = 0

    def take(self) -> int:
        """Return the ns that are due, which the caller lets pass."""
        ns, self._due = divmod(self._due, self._rate)
        return ns

    def spend(self) -> None:
        """Let the time that is due pass."""
        if self._due >= self._rate:
            self._clock.advance(self.take())

    def read(self, source: Callable[[], int], step_ns: int) -> int:
        """Return the present value of a clock that rises within ``step_ns``, which pass next."""
        self.count()
        self.spend()
        self._due += step_ns * self._rate
        value = source()
        if self.on_read is not None:
            self.on_read()
        return value

    def monotonic_ns(self) -> int:
        """Read monotonic time."""
        return self.read(self._clock.monotonic_ns, 1)

    def boot_ns(self) -> int:
        """Read boot time."""
        return self.read(self._clock.boot_ns, 1)

    def ticks(self) -> int:
        """Read monotonic time in ticks of the system's clock."""
        return self.read(self._clock.ticks, -(-_NS // self._clock.ticks_per_second))

    def boot_ticks(self) -> int:
        """Read boot time in ticks of the system's clock."""
        return self.read(self._clock.boot_ticks, -(-_NS // self._clock.ticks_per_second))

    def tsc(self, cpu: Cpu) -> int:
        """Read the time-stamp counter of a CPU."""
        return self.read(cpu.rdtsc, cpu.tick_ns)

    # --- exploration ---

    def snapshot(self) -> tuple[int, int, int]:
        """Return the time for ``restore``, between two runs."""
        return self._due, self._clock.monotonic_ns(), self._clock.boot_ns()

    def restore(self, snapshot: tuple[int, int, int]) -> None:
        """Restore a snapshot."""
        self._due, monotonic_ns, boot_ns = snapshot
        self._clock.restore(monotonic_ns, boot_ns)
