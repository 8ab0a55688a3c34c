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
_LOCK = 0xF0
_OPERAND_SIZE = 0x66
"""Prefix that makes words on the stack 2 bytes."""


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
        loads: list[AccessPart] = []
        stores: list[AccessPart] = []
        for operand in self.operands:
            address = address_of(operand)
            if operand.reads:
                loads += _parts(address, operand.size, writes=False)
            if operand.writes:
                stores += _parts(address, operand.size, writes=True)
        return (*loads, *stores)


def _parts(address: int, size: int, *, writes: bool) -> list[AccessPart]:
    """Return the atomic accesses to an operand: up to 8 bytes each, within a cache line."""
    parts = []
    end = address + size
    while address < end:
        part_size = min(_WORD, LINE - address % LINE, end - address)
        parts.append(AccessPart(address, part_size, writes))
        address += part_size
    return parts


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
        self._memory = capstone.x86.X86_OP_MEM
        self._register = capstone.x86.X86_OP_REG
        self._read = read
        self._cache: dict[int, Access | None] = {}

    def name(self, address: int) -> str:
        """Return the instruction as text, or as bytes if capstone cannot decode it."""
        access = self.access(address)
        if access is not None:
            return access.text
        return f"bytes {self._read(address, _LONGEST).hex(' ')}"

    def forget(self) -> None:
        """Clear the cache after a change of code."""
        self._cache.clear()

    def access(self, address: int) -> Access | None:
        """Return the accesses of the instruction at an address; None if it cannot be decoded."""
        if address not in self._cache:
            self._cache[address] = self._decode(address)
        return self._cache[address]

    def _decode(self, address: int) -> Access | None:
        code = self._read(address, _LONGEST)
        instruction = next(self._cs.disasm(code, address, 1), None)
        if instruction is None:
            return None
        mnemonic = instruction.mnemonic
        name = mnemonic.split()[-1]  # without prefixes
        operands: tuple[Operand, ...] = ()
        if name != "lea" and not name.startswith(_NO_ACCESS):
            operands = self._operands(instruction, name)
        exchanges_memory = name == "xchg" and bool(operands)
        return Access(
            text=f"{mnemonic} {instruction.op_str}".strip(),
            size=instruction.size,
            operands=operands,
            locked=instruction.prefix[0] == _LOCK or exchanges_memory,
            fence=name == "mfence",
            timed=name in {"rdtsc", "rdtscp"},
            repeated=mnemonic.startswith("rep") and name != "ret",
            plural=sum(_least_parts(operand) for operand in operands) > 1,
        )

    def _operands(self, instruction: Any, name: str) -> tuple[Operand, ...]:
        """Return the memory operands, implicit ones included, with what capstone gets wrong."""
        operands = []
        for number, operand in enumerate(instruction.operands):
            if operand.type == self._memory:
                operands.append(self._operand(instruction, name, number))
        stack_word = 2 if instruction.prefix[2] == _OPERAND_SIZE else 8
        implicit = _implicit(name, stack_word)
        if implicit is not None:
            operands.append(implicit)
        return tuple(operands)

    def _operand(self, instruction: Any, name: str, number: int) -> Operand:
        """Return the operand with a number, which is memory."""
        operand = instruction.operands[number]
        memory = operand.mem

        def register(code: int) -> str | None:
            return instruction.reg_name(code) if code else None

        base_register = register(memory.base)
        displacement = memory.disp
        if base_register == "rip":
            # Relative to the next instruction: an address that does not change.
            base_register = None
            displacement += instruction.address + instruction.size
        if base_register == "rsp" and name == "pop":
            displacement += operand.size  # the address is computed after the load
        is_first = number == 0
        only_stores = is_first and (name in _STORES or name.startswith(_STORE_NAMES))
        bit_register = None
        last_operand = instruction.operands[-1]
        if name in _BITS and last_operand.type == self._register:
            bit_register = register(last_operand.reg)
        return Operand(
            base=base_register,
            index=register(memory.index),
            scale=memory.scale,
            displacement=displacement,
            segment=register(memory.segment),
            size=_STATES.get(name, operand.size),
            writes=is_first and name not in _LOADS,
            reads=not only_stores,
            bit=bit_register,
        )


def _least_parts(operand: Operand) -> int:
    """Return the number of parts of an operand that crosses no cache line."""
    words = -(-operand.size // _WORD)
    return words * (int(operand.reads) + int(operand.writes))


def _implicit(name: str, stack_word: int) -> Operand | None:
    """Return the operand that an instruction does not name: the stack, a table, a mask's target.

    ``stack_word`` is the size of a word on the stack.
    """
    if name in _PUSHES:
        size = min(stack_word, _PUSHES[name])
        return _simple("rsp", size, displacement=-size, writes=True)
    if name in _POPS:
        return _simple("rsp", min(stack_word, _POPS[name]))
    if name == "leave":
        return _simple("rbp", 8)
    if name == "xlatb":
        return _simple("rbx", 1, index="al")
    if name == "maskmovq":
        return _simple("rdi", 8, writes=True)
    if name.startswith("maskmov"):
        return _simple("rdi", 16, writes=True)
    return None


def _simple(
    base: str, size: int, *, index: str | None = None, displacement: int = 0, writes: bool = False
) -> Operand:
    """Return an operand that is loaded, or stored if ``writes``."""
    return Operand(
        base=base,
        index=index,
        scale=1,
        displacement=displacement,
        segment=None,
        size=size,
        writes=writes,
        reads=not writes,
    )
