"""Errors of the emulated target. Each message says what is wrong, where, and what to do."""

from __future__ import annotations


class EmulatorError(Exception):
    """Base class of all errors that the emulator raises on purpose."""


class MemoryAccessError(EmulatorError):
    """A load, store or resize that the memory does not allow."""


class VmoError(EmulatorError):
    """An invalid operation on a VMO, such as one through a closed handle."""


class RightsError(VmoError):
    """A handle lacks a right that an operation requires."""


class CpuError(EmulatorError):
    """An instruction, register or value that the CPU does not support."""


class ClockError(EmulatorError):
    """A time that a clock cannot show."""


class Crash(EmulatorError):  # noqa: N818 - an event that happens to the program, not a mistake of its
    """The simulated program stopped, between two stores or within one.

    Only a fault raises it. It is an ordinary exception, so that callers catch it by name; a program
    that swallows it gains nothing, because the memory accepts no store afterwards.

    ``landed`` is the number of low bytes of the current word that reached the memory: 0 between two
    stores, 1 to 7 for a torn store.
    """

    def __init__(self, message: str, *, landed: int = 0) -> None:
        super().__init__(message)
        self.landed = landed
