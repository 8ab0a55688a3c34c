"""CPUs: time-stamp counters and what belongs to them, as an x86-64 processor has them.

A counter is a function of the virtual clock: ticks so far, since when, and the rate, in exact
integers; a change of the rate begins a new piece where the last one ended. Like the hardware, all
of it is modulo 2^64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypedDict

import attrs

from fx_emulator.clock import VirtualClock
from fx_emulator.errors import CpuError

__all__ = [
    "IA32_TIME_STAMP_COUNTER",
    "IA32_TSC_ADJUST",
    "IA32_TSC_AUX",
    "Cpu",
    "Processor",
    "Tsc",
]

IA32_TIME_STAMP_COUNTER = 0x10
"""MSR: the counter. Writing it changes IA32_TSC_ADJUST by as much."""
IA32_TSC_ADJUST = 0x3B
"""MSR: what was added to the counter since reset. Writing it moves the counter as far."""
IA32_TSC_AUX = 0xC0000103
"""MSR: what RDTSCP reads with the counter; node << 12 | cpu, as Linux sets it."""

_MASK_64 = (1 << 64) - 1
_MASK_32 = (1 << 32) - 1
_NS = 1_000_000_000
_VENDOR = b"fxemulator86"
_CPUS = 1 << 12
"""CPUs that TSC_AUX can tell apart."""
_HALTING = 2
"""The C-state from which on a counter that is not nonstop stops; C1 only halts the core."""


class Cpu:
    """One CPU of a Processor, which makes it.

    Reading the counter takes no time, unless the processor has ``read_cost_ns``. Between two writes
    of its MSRs and two backward jumps of the clock, readings of one CPU never go back.
    """

    def __init__(self, processor: Processor, number: int, *, node: int, offset: int) -> None:
        self.processor = processor
        self.number = number
        self.node = node
        self.offset = offset & _MASK_64
        """What the counter began with: its distance from that of a CPU with offset 0."""
        self._clock = processor.clock
        self._nonstop = processor.nonstop
        self._step = processor.step
        self._adjust = 0
        self._aux = node << 12 | number
        self._cstate = 0
        self._ratio = Fraction(1)
        # The piece that runs: billionths of ticks at its beginning, the time then, ticks a second.
        self._base = 0
        self._since = 0
        self._rate = processor.frequency

    def __repr__(self) -> str:
        return f"<Cpu {self.number}: node {self.node}, C{self._cstate}, {self.frequency} Hz>"

    # --- instructions ---

    def rdtsc(self) -> int:
        """RDTSC: the counter."""
        if self.processor.read_cost_ns:
            self._clock.advance(self.processor.read_cost_ns)
        return self._counter()

    def rdtscp(self) -> tuple[int, int]:
        """RDTSCP: the counter and IA32_TSC_AUX, of one moment and one CPU."""
        if not self.processor.rdtscp:
            raise CpuError(f"CPU {self.number} has no RDTSCP (CPUID 80000001h EDX[27]): use RDTSC")
        return self.rdtsc(), self._aux

    def rdmsr(self, index: int) -> int:
        """RDMSR of 0x10, 0x3B or 0xC0000103. Raises CpuError for another one."""
        self._check_msr(index)
        if index == IA32_TIME_STAMP_COUNTER:
            return self._counter()
        return self._adjust if index == IA32_TSC_ADJUST else self._aux

    def wrmsr(self, index: int, value: int) -> None:
        """WRMSR of 0x10, 0x3B or 0xC0000103. Raises CpuError for what the CPU refuses."""
        self._check_msr(index)
        limit = _MASK_32 if index == IA32_TSC_AUX else _MASK_64
        if not 0 <= value <= limit:
            raise CpuError(f"WRMSR {index:#x} of {value:#x}: it holds 0 to {limit:#x}")
        if index == IA32_TIME_STAMP_COUNTER:
            self._adjust = (self._adjust + value - self._counter()) & _MASK_64
        elif index == IA32_TSC_ADJUST:
            self._adjust = value
        else:
            self._aux = value

    def cpuid(self, leaf: int, subleaf: int = 0) -> tuple[int, int, int, int]:
        """CPUID: EAX, EBX, ECX and EDX of a leaf; zeros for one that says nothing here.

        Leaves: 0 (highest leaf, maker), 1 (EBX[31:24] number, EDX[4] TSC), 15h (frequency, where
        the processor has a ``crystal``), 80000000h, 80000001h (EDX[27] RDTSCP), 80000007h (EDX[8]
        invariant TSC). No leaf here has subleaves.
        """
        processor = self.processor
        if leaf == 0:
            words = [int.from_bytes(_VENDOR[at : at + 4], "little") for at in (0, 4, 8)]
            return 0x15, words[0], words[2], words[1]
        if leaf == 1:
            return 0, (self.number & 0xFF) << 24, 0, 1 << 4
        if leaf == 0x15 and processor.crystal is not None and not subleaf:
            ratio = Fraction(processor.frequency, processor.crystal)
            return ratio.denominator, ratio.numerator, processor.crystal, 0
        if leaf == 0x80000000:
            return 0x80000007, 0, 0, 0
        if leaf == 0x80000001:
            return 0, 0, 0, processor.rdtscp << 27
        if leaf == 0x80000007:
            return 0, 0, 0, (processor.constant and processor.nonstop) << 8
        return 0, 0, 0, 0

    # --- power ---

    @property
    def frequency(self) -> int:
        """What the core runs at, in Hz: the processor's frequency times the P-state's ratio."""
        return int(self.processor.frequency * self._ratio)

    @property
    def cstate(self) -> int:
        """The C-state it is in; 0 runs."""
        return self._cstate

    def set_pstate(self, ratio: Fraction | int) -> None:
        """Run the core at ``ratio`` times the processor's frequency, to the whole Hz below.

        A counter that is not constant counts at that rate from now on.
        """
        if ratio <= 0:
            raise CpuError(f"CPU {self.number} cannot run at {ratio} times its frequency")
        self._ratio = Fraction(ratio)
        self._change_rate()

    def enter_cstate(self, state: int = 3) -> None:
        """Sleep. From C2 on a counter that is not nonstop stops."""
        if state < 1:
            raise CpuError(f"C{state} is not a sleep state; leave_cstate() wakes CPU {self.number}")
        self._cstate = state
        self._change_rate()

    def leave_cstate(self) -> None:
        """Wake up; harmless while awake."""
        self._cstate = 0
        self._change_rate()

    # --- the counter ---

    def _running(self) -> int:
        """Billionths of ticks since reset, unlimited."""
        # In suspend only a nonstop counter runs on.
        now = self._clock.boot_ns() if self._nonstop else self._clock.monotonic_ns()
        return self._base + (now - self._since) * self._rate

    def _counter(self) -> int:
        ticks = self._running() // _NS
        return (ticks - ticks % self._step + self.offset + self._adjust) & _MASK_64

    def _change_rate(self) -> None:
        self._base = self._running()
        self._since = self._clock.boot_ns() if self._nonstop else self._clock.monotonic_ns()
        if self._cstate >= _HALTING and not self._nonstop:
            self._rate = 0
        else:
            self._rate = self.processor.frequency if self.processor.constant else self.frequency

    def _check_msr(self, index: int) -> None:
        known = {IA32_TIME_STAMP_COUNTER, IA32_TSC_ADJUST}
        if self.processor.rdtscp:
            known.add(IA32_TSC_AUX)
        if index not in known:
            names = ", ".join(f"{msr:#x}" for msr in sorted(known))
            raise CpuError(f"CPU {self.number} has no MSR {index:#x}; it has {names}")


class ProcessorOptions(TypedDict, total=False):
    """The keyword arguments of a Processor, which documents them."""

    frequency: int
    step: int
    constant: bool
    nonstop: bool
    offsets: Sequence[int]
    nodes: Sequence[int]
    crystal: int | None
    rdtscp: bool
    read_cost_ns: int


@attrs.define(eq=False, repr=False)
class Processor:
    """The CPUs of a target, and what they have in common. Raises CpuError for invalid values."""

    clock: VirtualClock
    """The time that drives the counters."""
    number: int = attrs.field(default=4, alias="cpus")
    """How many CPUs there are, numbered from 0; given as ``cpus``."""
    frequency: int = attrs.field(default=2_596_120_000, kw_only=True)
    """Ticks a second of each counter, and the base frequency of the cores, in Hz."""
    step: int = attrs.field(default=26, kw_only=True)
    """Counters move by multiples of so many ticks."""
    constant: bool = attrs.field(default=True, kw_only=True)
    """Whether counters keep their rate in every P-state."""
    nonstop: bool = attrs.field(default=True, kw_only=True)
    """Whether counters run on in every C-state and in suspend."""
    offsets: Sequence[int] = attrs.field(default=(), kw_only=True)
    """For each CPU the ticks that its counter begins with; none, all 0."""
    nodes: Sequence[int] = attrs.field(default=(), kw_only=True)
    """For each CPU its NUMA node; none, all 0."""
    crystal: int | None = attrs.field(default=None, kw_only=True)
    """Hz of the clock that CPUID 15h gives the frequency from; None, it gives zeros."""
    rdtscp: bool = attrs.field(default=True, kw_only=True)
    """Whether the CPUs have RDTSCP."""
    read_cost_ns: int = attrs.field(default=0, kw_only=True)
    """Virtual time that a read of a counter takes."""
    cpus: tuple[Cpu, ...] = attrs.field(init=False)
    """The CPUs by number."""

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.number <= _CPUS:
            raise CpuError(f"a processor of {self.number} CPUs: it has 1 to {_CPUS}")
        if self.frequency < 1 or self.step < 1 or self.read_cost_ns < 0:
            raise CpuError(
                f"a counter of {self.frequency} Hz in steps of {self.step} ticks that takes "
                f"{self.read_cost_ns} ns to read: frequency and step are at least 1, the time is "
                "not negative"
            )
        if any(not 0 <= node <= _MASK_32 >> 12 for node in self.nodes):
            raise CpuError(f"nodes {list(self.nodes)}: TSC_AUX holds 0 to {_MASK_32 >> 12:#x}")
        if self.crystal is not None:
            _check_crystal(self.frequency, self.crystal)
        zeros = (0,) * self.number
        for name, values in (("offsets", self.offsets), ("nodes", self.nodes)):
            if values and len(values) != self.number:
                raise CpuError(
                    f"{len(values)} {name} for {self.number} CPUs: give one for each, or none"
                )
        starts = zip(self.nodes or zeros, self.offsets or zeros, strict=True)
        self.cpus = tuple(
            Cpu(self, number, node=node, offset=offset)
            for number, (node, offset) in enumerate(starts)
        )

    def __len__(self) -> int:
        """How many CPUs it has."""
        return len(self.cpus)


class Tsc:
    """The counter as a program reads it (``fxframework.model.target.TimestampCounter``).

    ``cpu`` is a Cpu, or what says which one the program is on at the time of each reading.
    """

    def __init__(self, cpu: Cpu | Callable[[], Cpu]) -> None:
        self._where: Callable[[], Cpu] = (lambda: cpu) if isinstance(cpu, Cpu) else cpu

    @property
    def cpu(self) -> Cpu:
        """The CPU that is read."""
        return self._where()

    @property
    def frequency(self) -> int:
        """Ticks per second, as the system has found out."""
        return self.cpu.processor.frequency

    @property
    def constant(self) -> bool:
        """Whether the rate is the same in every P-state."""
        return self.cpu.processor.constant

    @property
    def nonstop(self) -> bool:
        """Whether it runs on in every C-state."""
        return self.cpu.processor.nonstop

    def read_tsc(self) -> int:
        """RDTSC."""
        return self._where().rdtsc()

    def read_tscp(self) -> tuple[int, int]:
        """RDTSCP: the counter and TSC_AUX of one CPU at one moment."""
        return self._where().rdtscp()


def _check_crystal(frequency: int, crystal: int) -> None:
    """CPUID 15h gives the frequency as crystal * EBX / EAX, in registers of 32 bits."""
    if not 0 < crystal <= _MASK_32:
        raise CpuError(f"a crystal of {crystal} Hz: CPUID 15h holds 1 to {_MASK_32}")
    ratio = Fraction(frequency, crystal)
    if max(ratio.numerator, ratio.denominator) > _MASK_32:
        raise CpuError(
            f"{frequency} Hz from a crystal of {crystal} Hz: the ratio does not fit CPUID 15h"
        )
