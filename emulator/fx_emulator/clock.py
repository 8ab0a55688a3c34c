"""Clocks: virtual time, which passes only when somebody lets it."""

from __future__ import annotations

from collections.abc import Callable

from fx_emulator.errors import ClockError
from fx_emulator.faults import ClockJump

__all__ = ["VirtualClock"]

_NS = 1_000_000_000


class VirtualClock:
    """The clocks of an emulated device (``fxframework.model.target.Clock``), in exact integers.

    Monotonic time stops while the system is suspended, boot time does not. ``ticks()`` is
    monotonic time at ``ticks_per_second``, rounded down. ``listeners`` are called, without
    arguments, after each change; ``faults`` is what happens to the clock at a time, taken off the
    list when it has happened.
    """

    def __init__(
        self,
        *,
        ticks_per_second: int = _NS,
        start_ns: int = 0,
        suspended_ns: int = 0,
    ) -> None:
        if ticks_per_second <= 0:
            raise ClockError(f"a clock of {ticks_per_second} ticks per second: it has at least 1")
        if start_ns < 0 or suspended_ns < 0:
            raise ClockError(
                f"a clock that begins at {start_ns} ns, {suspended_ns} ns suspended: "
                "time counts up from 0"
            )
        self._ticks_per_second = ticks_per_second
        self._monotonic = start_ns
        self._boot = start_ns + suspended_ns
        self.listeners: list[Callable[[], object]] = []
        self.faults: list[ClockJump] = []

    def __repr__(self) -> str:
        return f"<VirtualClock: monotonic {self._monotonic} ns, boot {self._boot} ns>"

    @property
    def ticks_per_second(self) -> int:
        """Rate of ``ticks()``."""
        return self._ticks_per_second

    def monotonic_ns(self) -> int:
        """Nanoseconds since boot, without suspended time."""
        return self._monotonic

    def boot_ns(self) -> int:
        """Nanoseconds since boot, suspended time included."""
        return self._boot

    def ticks(self) -> int:
        """Monotonic time in ticks."""
        return self._monotonic * self._ticks_per_second // _NS

    def boot_ticks(self) -> int:
        """Boot time in ticks."""
        return self._boot * self._ticks_per_second // _NS

    def advance(self, ns: int) -> None:
        """Let ``ns`` pass, running. A jump that falls within happens at its time."""
        if ns < 0:
            raise ClockError(f"time cannot pass by {ns} ns; a fault steps back: jump()")
        while self.faults:
            due = [f for f in self.faults if 0 <= f.at_ns - self._monotonic <= ns]
            if not due:
                break
            fault = min(due, key=lambda f: f.at_ns)
            passed = fault.at_ns - self._monotonic
            ns -= passed
            self._monotonic += passed
            self._boot += passed
            self.faults.remove(fault)
            self._step(fault.by_ns)
        self._monotonic += ns
        self._boot += ns
        self._tell()

    def suspend(self, ns: int) -> None:
        """Let ``ns`` pass in suspend: boot time goes on, monotonic time does not."""
        if ns < 0:
            raise ClockError(f"the system cannot be suspended for {ns} ns")
        self._boot += ns
        self._tell()

    def jump(self, ns: int) -> None:
        """Step both times by ``ns``, forwards or backwards: a fault, no time passes.

        Raises ClockError for a step to before boot.
        """
        self._step(ns)
        self._tell()

    def restore(self, monotonic_ns: int, boot_ns: int) -> None:
        """Go back to times that the clock showed: for who explores several futures."""
        self._monotonic, self._boot = monotonic_ns, boot_ns
        self._tell()

    def _step(self, ns: int) -> None:
        if self._monotonic + ns < 0:
            raise ClockError(
                f"a jump of {ns} ns at {self._monotonic} ns: no clock shows a time before boot"
            )
        self._monotonic += ns
        self._boot += ns

    def _tell(self) -> None:
        for listener in self.listeners:
            listener()
