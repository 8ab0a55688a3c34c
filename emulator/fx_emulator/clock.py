"""The virtual clock of the emulated target: time passes only when a caller advances it."""

from __future__ import annotations

from collections.abc import Callable

from fx_emulator.errors import ClockError
from fx_emulator.faults import ClockJump

_NS = 1_000_000_000


class VirtualClock:
    """The clocks of an emulated device (``fxframework.model.target.Clock``), in exact integers.

    Monotonic time stops while the system is suspended; boot time does not. ``ticks()`` is monotonic
    time at ``ticks_per_second``, rounded down. ``listeners`` are called without arguments after
    each change. ``faults`` holds the jumps to come; a jump is removed when it has happened.
    """

    def __init__(
        self,
        *,
        ticks_per_second: int = _NS,
        start_ns: int = 0,
        suspended_ns: int = 0,
    ) -> None:
        if ticks_per_second <= 0:
            raise ClockError(f"invalid ticks_per_second {ticks_per_second}: must be at least 1")
        if start_ns < 0 or suspended_ns < 0:
            raise ClockError(
                f"invalid start: {start_ns} ns, {suspended_ns} ns suspended: "
                "neither may be negative"
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
        """Advance both times by ``ns``. A jump of ``faults`` within that time happens at its time.

        Raises ClockError for a negative ``ns``.
        """
        if ns < 0:
            raise ClockError(f"cannot advance by {ns} ns; use jump() to step back")
        while self.faults:
            # Looked for again after each jump, which may bring another one into reach.
            due_jumps = [
                next_jump
                for next_jump in self.faults
                if 0 <= next_jump.at_ns - self._monotonic <= ns
            ]
            if not due_jumps:
                break
            next_jump = min(due_jumps, key=lambda fault: fault.at_ns)
            passed_ns = next_jump.at_ns - self._monotonic
            ns -= passed_ns
            self._monotonic += passed_ns
            self._boot += passed_ns
            self.faults.remove(next_jump)
            self._step(next_jump.by_ns)
        self._monotonic += ns
        self._boot += ns
        self._notify()

    def suspend(self, ns: int) -> None:
        """Advance boot time alone by ``ns``, as a suspended system does."""
        if ns < 0:
            raise ClockError(f"cannot suspend for {ns} ns: must not be negative")
        self._boot += ns
        self._notify()

    def jump(self, ns: int) -> None:
        """Step both times by ``ns``, forwards or backwards, as a fault does: no time passes.

        Raises ClockError for a step to before boot.
        """
        self._step(ns)
        self._notify()

    def restore(self, monotonic_ns: int, boot_ns: int) -> None:
        """Set both times to values that the clock showed earlier, to explore another future."""
        self._monotonic = monotonic_ns
        self._boot = boot_ns
        self._notify()

    def _step(self, ns: int) -> None:
        if self._monotonic + ns < 0:
            raise ClockError(
                f"cannot jump by {ns} ns at {self._monotonic} ns: the time would be before boot"
            )
        self._monotonic += ns
        self._boot += ns

    def _notify(self) -> None:
        for listener in self.listeners:
            listener()
