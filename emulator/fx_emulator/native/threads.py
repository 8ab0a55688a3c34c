"""Threads of a native program: stack, thread variables, registers, and identity."""

from __future__ import annotations

from typing import Any

import attrs

from fx_emulator.cpu import Cpu
from fx_emulator.native.engine import Context
from fx_emulator.native.space import Region

__all__ = ["Finished", "NativeThread", "Stopped"]


@attrs.frozen
class Stopped:
    """A thread used up its instructions, and can go on."""


@attrs.frozen
class Finished:
    """The function of a thread returned."""

    result: int
    """RAX, unsigned."""


@attrs.define(eq=False)
class NativeThread:
    """A thread: of the emulated kernel where ``thread`` is set, else one for direct calls."""

    name: str
    number: int
    process_koid: int
    koid: int
    stack: Region
    tls: Region | None
    thread_pointer: int
    context: Context
    home: Cpu
    """The CPU that it is on where the kernel does not say."""
    thread: Any = None
    """The kernel's thread (``fx_emulator.kernel.Thread``), or None."""
    cpus: Any = ()
    frozen: bool = False
    """Whether a snapshot holds ``context``, which is not to be changed then."""
    sp: int = 0
    """Its stack pointer, while it does not run."""
    pc: int = 0
    """Where it goes on."""
    finished: bool = False
    result: int = 0
    executed: int = 0
    """Instructions that it was given so far."""
    budget: int = 0
    depth: list[tuple[Context, int]] = attrs.field(factory=list)
    """What signal handlers interrupted, outermost first."""

    @property
    def cpu(self) -> Cpu:
        """The CPU that it runs on now."""
        if self.thread is not None:
            found: Cpu = self.cpus[self.thread.cpu]
            return found
        return self.home

    @property
    def top(self) -> int:
        """The address behind its stack."""
        return self.stack.end
