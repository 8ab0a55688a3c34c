"""Guest addresses of memory operands, from the registers of the running thread."""

from __future__ import annotations

from collections.abc import Callable

from fx_emulator.native.decode import Access, AccessPart, Operand
from fx_emulator.native.engine import GENERAL, Engine

_OLD = ("rax", "rcx", "rdx", "rbx", "rsi", "rdi", "rbp", "rsp")
_WIDTHS: dict[str, tuple[str, int]] = {
    **{name: (name, 64) for name in GENERAL},
    **{f"e{name[1:]}": (name, 32) for name in _OLD},
    **{name[1:]: (name, 16) for name in _OLD},
    **{f"r{number}d": (f"r{number}", 32) for number in range(8, 16)},
    **{f"r{number}w": (f"r{number}", 16) for number in range(8, 16)},
    "al": ("rax", 8),
    "fs_base": ("fs_base", 64),
    "gs_base": ("gs_base", 64),
}
"""The whole register and the number of bits of each register that an operand can name."""


class Addresses:
    """Computes the addresses that the next instruction of the running thread uses."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers: dict[str, Callable[[], int]] = {}

    def register(self, name: str) -> int:
        """Return a register, or the part of one."""
        full_name, bits = _WIDTHS[name]
        read = self._readers.get(name)
        if read is None:
            read = self._engine.reader(full_name)
            self._readers[name] = read
        return read() & (1 << bits) - 1

    def of(self, operand: Operand) -> int:
        """Return the address of an operand."""
        address = operand.displacement
        if operand.base is not None:
            address += self.register(operand.base)
        if operand.index is not None:
            address += self.register(operand.index) * operand.scale
        if operand.segment in {"fs", "gs"}:
            address += self.register(f"{operand.segment}_base")
        if operand.bit is not None:
            # A signed number of a bit: with 64-bit operands, -1 is the last bit of the word before.
            bits = 8 * operand.size
            bit = self.register(operand.bit)
            if bit >> bits - 1:
                bit -= 1 << bits
            address += (bit // bits) * operand.size
        return address & (1 << 64) - 1

    def idle(self, access: Access) -> bool:
        """Return whether the instruction uses no memory: a REP prefix with RCX = 0."""
        return access.repeated and not self.register("rcx")

    def parts(self, access: Access) -> tuple[AccessPart, ...]:
        """Return the parts of an instruction that is not locked."""
        if self.idle(access):
            return ()
        return access.parts(self.of)
