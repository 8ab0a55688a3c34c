"""Why the engine stopped, and what is said about it."""

from __future__ import annotations

from typing import Any

import attrs

from fx_emulator.native.calls import Blocked
from fx_emulator.native.engine import FAULTS

_INTERRUPTS = {
    0: "division by zero, or a quotient that is too large",
    1: "single-step trap",
    3: "breakpoint",
    4: "overflow trap",
    5: "bound exceeded",
    12: "stack fault",
    13: "general protection fault: a misaligned SSE access or a privileged instruction",
    14: "page fault",
    16: "x87 exception",
    17: "alignment check",
    19: "SSE exception",
}
_BREAKPOINT = 3
_JUMP_FAULTS = frozenset({21, 24})
"""Kinds of ``FAULTS`` that have no size."""
_INVALID_INSTRUCTION = 10
"""Status of the engine."""
_EVEX_PREFIX = b"\x62"


@attrs.define
class Causes:
    """What callbacks report of the stop of a run."""

    fault: tuple[int, int, int] | None = None
    """Kind, address and size of an access that no mapping permits."""
    interrupt: int | None = None
    """Number of an interrupt or exception."""
    blocked: Blocked | None = None
    """A call that sleeps, yields, or ends its thread."""


def interrupt_message(number: int) -> str:
    """Return the message for an interrupt or exception."""
    if number == _BREAKPOINT:
        return "breakpoint instruction (INT3), or a jump between two functions"
    return f"exception {number}: {_INTERRUPTS.get(number, 'software interrupt')}"


def fault_message(machine: Any, fault: tuple[int, int, int]) -> str:
    """Return the message for an access that no mapping permits."""
    fault_kind, address, size = fault
    message = FAULTS.get(fault_kind, "memory fault")
    if fault_kind not in _JUMP_FAULTS:
        message += f" of {size} bytes"
    message += f" at {address:#x}"
    region = machine.space.find(address)
    if region is not None:
        message += f" ({region.name})"
    return message


def instruction_message(machine: Any, status: int) -> str:
    """Return the message for an instruction at which the engine stopped with a status."""
    pc = machine.pc()
    instruction_text = machine.decoder.name(pc)
    if instruction_text.startswith("ud2"):
        return "invalid instruction UD2: the compiler's trap (unreachable code, __builtin_trap)"
    if status != _INVALID_INSTRUCTION:
        return f"the CPU emulator stopped with status {status} at {instruction_text!r}"
    message = f"invalid instruction {instruction_text!r}"
    if instruction_text.startswith("v") or any(
        register in instruction_text for register in ("zmm", "ymm", "k1")
    ):
        is_evex = machine.space.read_some(pc, 1) == _EVEX_PREFIX
        extension = "AVX-512" if "zmm" in instruction_text or is_evex else "AVX"
        message += f": the emulated CPU has no {extension}; build with -march=x86-64"
    return message
