"""CPUs of the emulated target: time-stamp counters and their registers, as on x86-64.

A counter is a function of the virtual clock: the ticks counted so far, the time of the last change
of rate, and the rate, in exact integers. Like the hardware, all of it is modulo 2^64.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from fractions import Fraction

import attrs

from fx_emulator.clock import VirtualClock
from fx_emulator.errors import CpuError

IA32_TIME_STAMP_COUNTER = 0x10
"""MSR: the counter. A write changes IA32_TSC_ADJUST by the same amount."""
IA32_TSC_ADJUST = 0x3B
"""MSR: the sum added to the counter since reset. A write moves the counter by the change."""
IA32_TSC_AUX = 0xC0000103
"""MSR: the value that RDTSCP returns with the counter: node << 12 | cpu, as Linux sets it."""

_MASK_64 = (1 << 64) - 1
_MASK_32 = (1 << 32) - 1
_NS = 1_000_000_000
_VENDOR = b"fxemulator86"
MOST_CPUS = 1 << 12
"""Most CPUs of a processor: those that TSC_AUX can tell apart."""
MOST_NODE = _MASK_32 >> 12
"""Greatest number of a node in TSC_AUX."""
_HALTING = 2
"""First C-state in which a counter that is not nonstop stops; C1 only halts the core."""


class Cpu:
    """One CPU of a Processor, which creates it.

    Reading the counter takes no time, unless the processor has a ``read_cost_ns``. Readings of one
    CPU never decrease, except after a write to its MSRs or a backward jump of the clock.
    """

    def __init__(self, processor: Processor, number: int, *, node: int, offset: int) -> None:
        self.processor = processor
        self.number = number
        self.node = node
        self.offset = offset & _MASK_64
        """Initial value of the counter, in ticks: its distance from a CPU with offset 0."""
        self._clock = processor.clock
        self._nonstop = processor.nonstop
        self._step = processor.step
        self._adjust = 0
        self._aux = node << 12 | number
        self._cstate = 0
        self._ratio = Fraction(1)
        self._base = 0
        """Billionths of ticks at the last change of rate."""
        self._since_ns = 0
        """Time of the last change of rate."""
        self._rate = processor.frequency
        """Ticks a second since then; 0 while the counter is stopped."""

    def __repr__(self) -> str:
        return f"<Cpu {self.number}: node {self.node}, C{self._cstate}, {self.frequency} Hz>"

    # --- instructions ---

    def rdtsc(self) -> int:
        """RDTSC: the counter."""
        if self.processor.read_cost_ns:
            self._clock.advance(self.processor.read_cost_ns)
        return self._counter()

    def rdtscp(self) -> tuple[int, int]:
        """RDTSCP: the counter and IA32_TSC_AUX, read together.

        Raises CpuError where the CPU has no RDTSCP.
        """
        aux = self.rdtscp_aux()
        return self.rdtsc(), aux

    def rdtscp_aux(self) -> int:
        """IA32_TSC_AUX as RDTSCP reads it. Raises CpuError where the CPU has no RDTSCP."""
        if not self.processor.rdtscp:
            raise CpuError(f"CPU {self.number} has no RDTSCP (CPUID 80000001h EDX[27]): use RDTSC")
        return self._aux

    def rdmsr(self, index: int) -> int:
        """RDMSR of 0x10, 0x3B or 0xC0000103. Raises CpuError for any other index."""
        self._check_msr(index)
        if index == IA32_TIME_STAMP_COUNTER:
            return self._counter()
        if index == IA32_TSC_ADJUST:
            return self._adjust
        return self._aux

    def wrmsr(self, index: int, value: int) -> None:
        """WRMSR of 0x10, 0x3B or 0xC0000103.

        Raises CpuError for another index or a value out of range.
        """
        self._check_msr(index)
        limit = _MASK_32 if index == IA32_TSC_AUX else _MASK_64
        if not 0 <= value <= limit:
            raise CpuError(f"WRMSR {index:#x} of {value:#x}: must be 0 to {limit:#x}")
        if index == IA32_TIME_STAMP_COUNTER:
            self._adjust = (self._adjust + value - self._counter()) & _MASK_64
        elif index == IA32_TSC_ADJUST:
            self._adjust = value
        else:
            self._aux = value

    def cpuid(self, leaf: int, subleaf: int = 0) -> tuple[int, int, int, int]:
        """CPUID: EAX, EBX, ECX and EDX of a leaf; zeros for a leaf that is not emulated.

        Leaves: 0 (highest leaf, vendor), 1 (EBX[31:24] APIC id, EDX[4] TSC), 15h (frequency, if the
        processor has a ``crystal``), 80000000h, 80000001h (EDX[27] RDTSCP), 80000007h (EDX[8]
        invariant TSC). No emulated leaf has subleaves.
        """
        processor = self.processor
        if leaf == 0:
            # The name is in EBX, EDX and ECX, in this order.
            ebx, edx, ecx = struct.unpack("<3I", _VENDOR)
            return 0x15, ebx, ecx, edx
        if leaf == 1:
            return 0, (self.number & 0xFF) << 24, 0, 1 << 4
        if leaf == 0x15 and processor.crystal is not None and not subleaf:
            ratio = Fraction(processor.frequency, processor.crystal)
            return ratio.denominator, ratio.numerator, processor.crystal, 0
        if leaf == 0x80000000:
            return 0x80000007, 0, 0, 0
        if leaf == 0x80000001 and processor.rdtscp:
            return 0, 0, 0, 1 << 27
        if leaf == 0x80000007 and processor.constant and processor.nonstop:
            return 0, 0, 0, 1 << 8
        return 0, 0, 0, 0

    # --- power ---

    @property
    def frequency(self) -> int:
        """Frequency of the core in Hz: the processor's frequency times the P-state's ratio."""
        return int(self.processor.frequency * self._ratio)

    @property
    def cstate(self) -> int:
        """The current C-state; 0 is running."""
        return self._cstate

    def set_pstate(self, ratio: Fraction | int) -> None:
        """Run the core at ``ratio`` times the processor's frequency, rounded down to whole Hz.

        A counter that is not constant counts at the new rate from now on. Raises CpuError for a
        ratio that is not positive.
        """
        if ratio <= 0:
            raise CpuError(f"CPU {self.number}: invalid frequency ratio {ratio}: must be positive")
        self._ratio = Fraction(ratio)
        self._change_rate()

    def enter_cstate(self, state: int = 3) -> None:
        """Enter a sleep state. From C2 on, a counter that is not nonstop stops."""
        if state < 1:
            raise CpuError(f"C{state} is not a sleep state; leave_cstate() wakes CPU {self.number}")
        self._cstate = state
        self._change_rate()

    def leave_cstate(self) -> None:
        """Wake up. Does nothing on a running CPU."""
        self._cstate = 0
        self._change_rate()

    # --- the counter ---

    @property
    def tick_ns(self) -> int:
        """Time, besides the cost, in which readings surely differ, in ns; 0 if it is stopped."""
        if not self._rate:
            return 0
        step_ns = -(-self.processor.step * _NS // self._rate)  # rounded up
        return max(0, step_ns - self.processor.read_cost_ns)

    def _now_ns(self) -> int:
        """Return the time by which the counter counts: in suspend only a nonstop one runs on."""
        if self._nonstop:
            return self._clock.boot_ns()
        return self._clock.monotonic_ns()

    def _count(self) -> int:
        """Return the billionths of ticks counted since reset, not reduced modulo 2^64."""
        return self._base + (self._now_ns() - self._since_ns) * self._rate

    def _counter(self) -> int:
        ticks = self._count() // _NS
        return (ticks - ticks % self._step + self.offset + self._adjust) & _MASK_64

    def _change_rate(self) -> None:
        """Start to count at the rate that follows from P-state and C-state."""
        self._base = self._count()
        self._since_ns = self._now_ns()
        if self._cstate >= _HALTING and not self._nonstop:
            self._rate = 0
        elif self.processor.constant:
            self._rate = self.processor.frequency
        else:
            self._rate = self.frequency

    def _check_msr(self, index: int) -> None:
        known_registers = {IA32_TIME_STAMP_COUNTER, IA32_TSC_ADJUST}
        if self.processor.rdtscp:
            known_registers.add(IA32_TSC_AUX)
        if index not in known_registers:
            known_names = ", ".join(f"{msr:#x}" for msr in sorted(known_registers))
            raise CpuError(f"CPU {self.number} has no MSR {index:#x}; it has {known_names}")


@attrs.define(eq=False, repr=False)
class Processor:
    """The CPUs of a target and their common properties. Raises CpuError for invalid values."""

    clock: VirtualClock
    """Clock that drives the counters."""
    number: int = attrs.field(default=4, alias="cpus")
    """Number of CPUs, which are numbered from 0; passed as ``cpus``."""
    frequency: int = attrs.field(default=2_596_120_000, kw_only=True)
    """Rate of each counter, and base frequency of the cores, in Hz."""
    step: int = attrs.field(default=26, kw_only=True)
    """Granularity of the counters, in ticks."""
    constant: bool = attrs.field(default=True, kw_only=True)
    """Whether counters keep their rate in every P-state."""
    nonstop: bool = attrs.field(default=True, kw_only=True)
    """Whether counters run on in every C-state and in suspend."""
    offsets: Sequence[int] = attrs.field(default=(), kw_only=True)
    """Initial ticks of each CPU's counter; empty: all 0."""
    nodes: Sequence[int] = attrs.field(default=(), kw_only=True)
    """NUMA node of each CPU; empty: all 0."""
    crystal: int | None = attrs.field(default=None, kw_only=True)
    """Frequency in Hz of the crystal that CPUID 15h reports; None: the leaf is zero."""
    rdtscp: bool = attrs.field(default=True, kw_only=True)
    """Whether the CPUs have RDTSCP."""
    read_cost_ns: int = attrs.field(default=0, kw_only=True)
    """Virtual time that reading a counter takes, in ns."""
    cpus: tuple[Cpu, ...] = attrs.field(init=False)
    """The CPUs by number."""

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.number <= MOST_CPUS:
            raise CpuError(f"invalid number of CPUs {self.number}: must be 1 to {MOST_CPUS}")
        if self.frequency < 1 or self.step < 1 or self.read_cost_ns < 0:
            raise CpuError(
                f"invalid counter: frequency {self.frequency} Hz, step {self.step} ticks, read "
                f"cost {self.read_cost_ns} ns: frequency and step must be at least 1, the cost "
                "not negative"
            )
        if any(not 0 <= node <= MOST_NODE for node in self.nodes):
            raise CpuError(f"invalid nodes {list(self.nodes)}: each must be 0 to {MOST_NODE:#x}")
        if self.crystal is not None:  # CPUID 15h gives the frequency as a ratio to it
            _check_crystal(self.frequency, self.crystal)
        for name, values in (("offsets", self.offsets), ("nodes", self.nodes)):
            if values and len(values) != self.number:
                raise CpuError(
                    f"{len(values)} {name} for {self.number} CPUs: give one for each, or none"
                )
        nodes = self.nodes or [0] * self.number
        offsets = self.offsets or [0] * self.number
        self.cpus = tuple(
            Cpu(self, number, node=nodes[number], offset=offsets[number])
            for number in range(self.number)
        )

    def __len__(self) -> int:
        """Number of CPUs."""
        return len(self.cpus)


class Tsc:
    """The counter as a program reads it (``fxframework.model.target.TimestampCounter``).

    ``cpu`` is a Cpu, or a function that returns the CPU that the program is on at each reading.
    """

    def __init__(self, cpu: Cpu | Callable[[], Cpu]) -> None:
        self._current_cpu: Callable[[], Cpu]
        if isinstance(cpu, Cpu):
            self._current_cpu = lambda: cpu
        else:
            self._current_cpu = cpu

    @property
    def cpu(self) -> Cpu:
        """The CPU whose counter is read."""
        return self._current_cpu()

    @property
    def frequency(self) -> int:
        """Ticks per second, as determined by the system."""
        return self.cpu.processor.frequency

    @property
    def constant(self) -> bool:
        """Whether the rate is the same in every P-state."""
        return self.cpu.processor.constant

    @property
    def nonstop(self) -> bool:
        """Whether the counter keeps counting in every C-state."""
        return self.cpu.processor.nonstop

    def read_tsc(self) -> int:
        """RDTSC: the counter."""
        return self._current_cpu().rdtsc()

    def read_tscp(self) -> tuple[int, int]:
        """RDTSCP: the counter and TSC_AUX of one CPU, read together."""
        return self._current_cpu().rdtscp()


def _check_crystal(frequency: int, crystal: int) -> None:
    """Check that CPUID 15h can report the frequency: crystal * EBX / EAX, in 32-bit registers."""
    if not 0 < crystal <= _MASK_32:
        raise CpuError(f"invalid crystal {crystal} Hz: must be 1 to {_MASK_32}")
    ratio = Fraction(frequency, crystal)
    if max(ratio.numerator, ratio.denominator) > _MASK_32:
        raise CpuError(
            f"{frequency} Hz from a crystal of {crystal} Hz: the ratio does not fit CPUID 15h"
        )
