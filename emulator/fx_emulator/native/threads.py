"""Threads of a native program: stack, thread variables, registers, and identity."""

from __future__ import annotations

from typing import Any

import attrs

from fx_emulator.cpu import Cpu
from fx_emulator.kernel import Random
from fx_emulator.native.engine import Context
from fx_emulator.native.space import Region


@attrs.frozen
class Stopped:
    """A thread used up its instructions and can continue."""


@attrs.frozen
class Finished:
    """The function of a thread returned."""

    result: int
    """RAX, unsigned."""


@attrs.define(eq=False)
class NativeThread:
    """A thread: one of the emulated kernel if ``kernel_thread`` is set, or one for direct calls."""

    name: str
    number: int
    process_koid: int
    koid: int
    stack: Region
    tls: Region
    """Its thread-local variables and its control block."""
    thread_pointer: int
    context: Context
    home: Cpu
    """The CPU of a thread that the kernel does not schedule."""
    random: Random
    """What it draws from, so that its draws do not depend on those of other threads."""
    kernel_thread: Any = None
    """The kernel's thread (``fx_emulator.kernel.Thread``), or None."""
    cpus: Any = ()
    """All CPUs, by number."""
    frozen: bool = False
    """Whether a snapshot holds ``context``, which must not change then."""
    sp: int = 0
    """The stack pointer while the thread does not run."""
    pc: int = 0
    """Address of the next instruction while the thread does not run."""
    finished: bool = False
    result: int = 0
    executed: int = 0
    """Instructions granted so far."""
    budget: int = 0
    """Instructions after which a kernel thread counts as an endless loop."""
    split: Any = None
    """The instruction that it is within (``split.Split``), or None."""
    specific: dict[int, int] = attrs.field(factory=dict)
    """The thread's values of keys that the program has created."""
    wake_ns: int = 0
    """Time until which it sleeps in an exploration."""
    interrupted: list[tuple[Context, int]] = attrs.field(factory=list)
    """Registers and pc interrupted by signal handlers, outermost first."""

    @property
    def cpu(self) -> Cpu:
        """The current CPU."""
        if self.kernel_thread is not None:
            cpu: Cpu = self.cpus[self.kernel_thread.cpu]
            return cpu
        return self.home

    @property
    def top(self) -> int:
        """The address after the stack."""
        return self.stack.end
