"""Instructions that the machine emulates itself: counters, CPUID, and random numbers, refused."""

from __future__ import annotations

import re
from typing import Any

from fx_emulator.cpu import IA32_TSC_AUX
from fx_emulator.native.space import RUN

# CPUID: features of the engine, besides those of the emulated processor's counter.
_FEATURES_EDX = 1 << 0 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 15 | 1 << 19 | 7 << 23 | 1 << 26
"""x87, TSC, MSR, CX8, CMOV, CLFLUSH, MMX, FXSR, SSE, SSE2."""
_FEATURES_ECX = 1 << 0 | 1 << 9 | 1 << 13 | 1 << 23
"""SSE3, SSSE3, CMPXCHG16B, POPCNT."""
_EXTENDED_EDX = 1 << 11 | 1 << 20 | 1 << 29
"""SYSCALL, NX, long mode."""
_EXTENDED_ECX = 1 << 0
"""LAHF and SAHF in long mode."""

_DRAWS = re.compile(rb"\x0f\xc7[\xf0-\xff]")
"""Bytes of RDRAND and RDSEED, behind their prefixes; RDPID has them, too."""


class Instructions:
    """The emulated instructions of a machine."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine
        self._engine = machine.engine

    def hook(self) -> None:
        """Hook the instructions, once the code of the program is mapped."""
        engine = self._engine
        engine.on_invalid(self._rdpid)
        engine.on_instruction("rdtsc", self._rdtsc)
        engine.on_instruction("rdtscp", self._rdtscp)
        engine.on_instruction("cpuid", self._cpuid)
        for chunk in self._machine.file.chunks:
            if not chunk.permissions & RUN:
                continue
            for match in _DRAWS.finditer(chunk.data):
                opcode = chunk.start + match.start()
                # Up to two prefixes come first, and hooks are called for the first byte.
                engine.on_code(self._refuse_draw, opcode - 2, opcode)

    def _rdtsc(self) -> None:
        ticks = self._machine.timer.tsc(self._machine.cpu)
        self._engine.set("rax", ticks & 0xFFFFFFFF)
        self._engine.set("rdx", ticks >> 32)

    def _rdtscp(self) -> None:
        aux = self._machine.cpu.rdtscp_aux()
        self._rdtsc()
        self._engine.set("rcx", aux)

    def _cpuid(self) -> None:
        leaf = self._engine.get("rax") & 0xFFFFFFFF
        subleaf = self._engine.get("rcx") & 0xFFFFFFFF
        eax, ebx, ecx, edx = self._machine.cpu.cpuid(leaf, subleaf)
        if leaf == 1:
            ecx |= _FEATURES_ECX
            edx |= _FEATURES_EDX
        elif leaf == 0x80000001:
            ecx |= _EXTENDED_ECX
            edx |= _EXTENDED_EDX
        self._engine.set("rax", eax)
        self._engine.set("rbx", ebx)
        self._engine.set("rcx", ecx)
        self._engine.set("rdx", edx)

    def _rdpid(self) -> bool:
        """Emulate RDPID, which the engine lacks; return False for any other instruction."""
        machine = self._machine
        pc = machine.pc()
        access = machine.decoder.access(pc)
        if access is None or not access.text.startswith("rdpid "):
            return False
        register = access.text.removeprefix("rdpid ")
        self._engine.set(register, machine.cpu.rdmsr(IA32_TSC_AUX))
        self._engine.set("rip", pc + access.size)
        return True

    def _refuse_draw(self, address: int) -> None:
        """Refuse RDRAND and RDSEED, for which the engine takes random numbers of the host."""
        text = self._machine.decoder.name(address)
        if text.startswith(("rdrand", "rdseed")):
            raise self._machine.error(
                f"invalid instruction {text!r}: the emulated CPU has no RDRAND and RDSEED, as "
                "CPUID says; build with -march=x86-64"
            )
