"""Decoded instructions: their text, their memory operands, and whether they order stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from fx_emulator.native.errors import MissingPackageError

__all__ = ["Access", "Decoder", "Operand"]

_PLAIN, _STACK = 0, 1


@attrs.frozen
class Operand:
    """A memory operand of an instruction."""

    base: str | None
    index: str | None
    scale: int
    displacement: int
    segment: str | None
    size: int
    writes: bool
    reads: bool


@attrs.frozen
class Access:
    """The memory accesses of an instruction."""

    text: str
    size: int
    """Bytes of the instruction."""
    operands: tuple[Operand, ...]
    locked: bool
    """Whether it is atomic: a LOCK prefix, or XCHG with memory."""
    fence: str
    """``mfence``, ``sfence``, ``lfence`` or empty."""

    @property
    def orders(self) -> bool:
        """Whether it drains the store buffer."""
        return self.locked or self.fence in {"mfence", "sfence"}


class Decoder:
    """Decodes single instructions with capstone, and caches them by address."""

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        try:
            import capstone
        except ImportError:
            raise MissingPackageError("capstone") from None
        self._cs: Any = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._cs.detail = True
        self._memory = capstone.x86.X86_OP_MEM
        self._writes, self._reads = capstone.CS_AC_WRITE, capstone.CS_AC_READ
        self._read = read
        self._known: dict[int, Access | None] = {}

    def name(self, address: int) -> str:
        """Return the instruction as text, or as bytes if capstone cannot decode it."""
        access = self.access(address)
        if access is not None:
            return access.text
        return f"bytes {self._bytes(address).hex(' ')}"

    def _bytes(self, address: int) -> bytes:
        for count in range(15, 0, -1):
            try:
                return self._read(address, count)
            except Exception:  # noqa: BLE001, S112 (fewer may be mapped)
                continue
        return b""

    def forget(self) -> None:
        """Clear the cache after a change of code."""
        self._known.clear()

    def access(self, address: int) -> Access | None:
        """Return the accesses of the instruction at an address; None if it cannot be decoded."""
        if address not in self._known:
            self._known[address] = self._decode(address)
        return self._known[address]

    def _decode(self, address: int) -> Access | None:
        found = next(self._cs.disasm(self._bytes(address), address, 1), None)
        if found is None:
            return None
        operands = tuple(self._operands(found))
        mnemonic = found.mnemonic
        locked = found.prefix[0] == 0xF0
        exchange = mnemonic.endswith("xchg") and bool(operands)
        return Access(
            text=f"{mnemonic} {found.op_str}".strip(),
            size=found.size,
            operands=operands,
            locked=locked or exchange,
            fence=mnemonic if mnemonic in {"mfence", "sfence", "lfence"} else "",
        )

    def _operands(self, found: Any) -> list[Operand]:
        operands = []
        name = found.reg_name
        if found.mnemonic.startswith(("lea", "nop", "prefetch")):
            return []
        for each in found.operands:
            if each.type != self._memory:
                continue
            memory = each.mem
            base = name(memory.base) if memory.base else None
            displacement = memory.disp
            if base == "rip":
                base, displacement = None, displacement + found.address + found.size
            operands.append(
                Operand(
                    base=base,
                    index=name(memory.index) if memory.index else None,
                    scale=memory.scale,
                    displacement=displacement,
                    segment=name(memory.segment) if memory.segment else None,
                    size=each.size,
                    writes=bool(each.access & self._writes),
                    reads=bool(each.access & self._reads),
                )
            )
        return operands
