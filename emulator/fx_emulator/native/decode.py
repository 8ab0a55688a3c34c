"""Decoded instructions: their text, their memory operands, and which of them x86 makes atomic.

Atomic are: one load or one store of up to 8 bytes within a cache line, and all accesses of an
instruction with a LOCK prefix and of XCHG with memory. Any other instruction is a sequence of
*parts*, first its loads and then its stores, and other CPUs can access the memory between two of
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from fx_emulator.native.errors import MissingPackageError

__all__ = ["LINE", "Access", "AccessPart", "Decoder", "Operand"]

LINE = 64
"""Bytes of a cache line."""
_WORD = 8
_LONGEST = 15
"""Most bytes of an instruction."""

_NO_ACCESS = ("nop", "prefetch", "clflush", "endbr")
# How an instruction uses a memory operand that comes first; any other loads and stores it.
_LOADS = frozenset(
    """
    bt call cmp cmpsb cmpsd cmpsq cmpsw div fadd fbld fcom fcomp fdiv fdivr fiadd ficom ficomp
    fidiv fidivr fild fimul fisub fisubr fld fldcw fldenv fmul frstor fsub fsubr fxrstor idiv
    imul jmp ldmxcsr lidt lgdt mul push scasb scasd scasq scasw test
    """.split()  # noqa: SIM905 (a table of names)
)
_STORES = frozenset(
    """
    extractps fbstp fnsave fnstcw fnstenv fnstsw fxsave pop sgdt sidt stmxcsr stosb stosd stosq
    stosw str sldt smsw
    """.split()  # noqa: SIM905 (a table of names)
)
_STORE_NAMES = ("mov", "set", "fist", "fst", "pextr")
"""Beginnings of the names of further instructions that only store."""
_PUSHES = {"push": 8, "pushfq": 8, "pushf": 2, "call": 8, "enter": 8}
_POPS = {"pop": 8, "popfq": 8, "popf": 2, "ret": 8}
_STATES = {"fxsave": 512, "fxrstor": 512}
_BITS = frozenset({"bt", "bts", "btr", "btc"})


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
    bit: str | None = None
    """Register whose value counts bits from the operand on: BT, BTS, BTR, BTC."""


@attrs.frozen
class AccessPart:
    """One atomic access: up to 8 bytes within a cache line."""

    address: int
    size: int
    writes: bool

    @property
    def words(self) -> range:
        """Guest addresses of the words that it touches."""
        return range(self.address & -_WORD, self.address + self.size, _WORD)


@attrs.frozen
class Access:
    """The memory accesses of an instruction."""

    text: str
    size: int
    """Bytes of the instruction."""
    operands: tuple[Operand, ...]
    locked: bool
    """Whether it is atomic: a LOCK prefix, or XCHG with memory."""
    fence: bool
    """Whether it is MFENCE."""
    repeated: bool = False
    """Whether a REP prefix repeats it, RCX times."""
    timed: bool = False
    """Whether it reads the time: RDTSC, RDTSCP."""
    plural: bool = False
    """Whether it has several parts even if no operand crosses a cache line."""

    @property
    def orders(self) -> bool:
        """Whether it drains the store buffer. SFENCE does not: later loads may pass it."""
        return self.locked or self.fence

    def parts(self, address_of: Callable[[Operand], int]) -> tuple[AccessPart, ...]:
        """Return the parts in order, given the address of each operand."""
        places = [(address_of(each), each) for each in self.operands]
        loads = [part for at, each in places if each.reads for part in _pieces(at, each.size)]
        stores = [part for at, each in places if each.writes for part in _pieces(at, each.size)]
        return (
            *(AccessPart(at, size, writes=False) for at, size in loads),
            *(AccessPart(at, size, writes=True) for at, size in stores),
        )


def _pieces(address: int, size: int) -> list[tuple[int, int]]:
    """Return address and size of the atomic pieces of an operand."""
    found = []
    end = address + size
    while address < end:
        piece = min(_WORD, LINE - address % LINE, end - address)
        found.append((address, piece))
        address += piece
    return found


class Decoder:
    """Decodes single instructions with capstone, and caches them by address.

    ``read(address, most)`` returns the bytes there, or as many as are mapped.
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        try:
            import capstone
        except ImportError:
            raise MissingPackageError("capstone") from None
        self._cs: Any = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._cs.detail = True
        self._memory, self._register = capstone.x86.X86_OP_MEM, capstone.x86.X86_OP_REG
        self._read = read
        self._known: dict[int, Access | None] = {}

    def name(self, address: int) -> str:
        """Return the instruction as text, or as bytes if capstone cannot decode it."""
        access = self.access(address)
        if access is not None:
            return access.text
        return f"bytes {self._read(address, _LONGEST).hex(' ')}"

    def forget(self) -> None:
        """Clear the cache after a change of code."""
        self._known.clear()

    def access(self, address: int) -> Access | None:
        """Return the accesses of the instruction at an address; None if it cannot be decoded."""
        if address not in self._known:
            self._known[address] = self._decode(address)
        return self._known[address]

    def _decode(self, address: int) -> Access | None:
        found = next(self._cs.disasm(self._read(address, _LONGEST), address, 1), None)
        if found is None:
            return None
        name = found.mnemonic.split()[-1]
        bare = name == "lea" or name.startswith(_NO_ACCESS)
        operands = () if bare else self._operands(found, name)
        exchange = name == "xchg" and bool(operands)
        return Access(
            text=f"{found.mnemonic} {found.op_str}".strip(),
            size=found.size,
            operands=operands,
            locked=found.prefix[0] == 0xF0 or exchange,
            fence=name == "mfence",
            timed=name in {"rdtsc", "rdtscp"},
            repeated=found.mnemonic.startswith("rep") and name != "ret",
            plural=sum(-(-each.size // _WORD) * (each.reads + each.writes) for each in operands)
            > 1,
        )

    def _operands(self, found: Any, name: str) -> tuple[Operand, ...]:
        """Return the memory operands, implicit ones included, with what capstone gets wrong."""
        operands = []
        register = found.reg_name
        for number, each in enumerate(found.operands):
            if each.type != self._memory:
                continue
            memory = each.mem
            base = register(memory.base) if memory.base else None
            displacement = memory.disp
            if base == "rip":
                base, displacement = None, displacement + found.address + found.size
            if base == "rsp" and name == "pop":
                displacement += each.size  # the address is computed after the load
            source = found.operands[-1]
            indexed = name in _BITS and source.type == self._register
            operands.append(
                Operand(
                    base=base,
                    index=register(memory.index) if memory.index else None,
                    scale=memory.scale,
                    displacement=displacement,
                    segment=register(memory.segment) if memory.segment else None,
                    size=_STATES.get(name, each.size),
                    writes=number == 0 and name not in _LOADS,
                    reads=number > 0 or (name not in _STORES and not name.startswith(_STORE_NAMES)),
                    bit=register(source.reg) if indexed else None,
                )
            )
        return (*operands, *_implicit(name, 2 if found.prefix[2] == 0x66 else 8))


def _implicit(name: str, size: int) -> tuple[Operand, ...]:
    """Return the operands that an instruction does not name: the stack, a table, a mask's target.

    ``size`` is that of a word on the stack.
    """

    def at(base: str, size: int, displacement: int = 0, **more: Any) -> tuple[Operand, ...]:
        given = {"index": None, "writes": False, "reads": False, **more}
        return (
            Operand(
                base=base, scale=1, displacement=displacement, segment=None, size=size, **given
            ),
        )

    if name in _PUSHES:
        size = min(size, _PUSHES[name])
        return at("rsp", size, -size, writes=True)
    if name in _POPS:
        return at("rsp", min(size, _POPS[name]), reads=True)
    if name == "leave":
        return at("rbp", 8, reads=True)
    if name == "xlatb":
        return at("rbx", 1, index="al", reads=True)
    if name.startswith("maskmov"):
        return at("rdi", 8 if name == "maskmovq" else 16, writes=True)
    return ()
