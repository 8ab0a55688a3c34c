"""Errors: what the emulated target raises. Each message says what, where and what can be done."""

from __future__ import annotations

__all__ = [
    "ClockError",
    "CpuError",
    "Crash",
    "EmulatorError",
    "MemoryAccessError",
    "RightsError",
    "VmoError",
]


class EmulatorError(Exception):
    """Everything that the emulator raises on purpose."""


class MemoryAccessError(EmulatorError):
    """A load, store or change of size that a memory does not have: where it is, or what it says."""


class VmoError(EmulatorError):
    """A VMO was asked for what it does not do: a closed handle, a size, a child."""


class RightsError(VmoError):
    """A handle does not have the right that an operation takes."""


class CpuError(EmulatorError):
    """An instruction that the CPU does not have, or a register or value that it refuses."""


class ClockError(EmulatorError):
    """A time that no clock shows."""


class Crash(EmulatorError):  # noqa: N818 - it is what happens to the program, not what it did wrong
    """The simulated program stopped, between two stores or within one.

    Only a fault raises it. It is an ordinary exception, so that its caller catches it
    by name; a program that swallows it gains nothing, because the memory takes no store after it.

    ``landed`` is how many of the low bytes of the word it was storing still reached the memory:
    0 between two stores, 1 to 7 for a torn one.
    """

    def __init__(self, message: str, *, landed: int = 0) -> None:
        super().__init__(message)
        self.landed = landed
