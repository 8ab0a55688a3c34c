"""The machine of a native program: CPU, address space, object file, threads, and provided calls.

One thread runs at a time. ``advance`` runs it for a number of instructions; the caller
(``program``, ``explore``, the kernel) schedules the threads.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from fx_emulator.cpu import IA32_TSC_AUX, Cpu
from fx_emulator.errors import Crash
from fx_emulator.kernel import Random
from fx_emulator.native.calls import Blocked, Call
from fx_emulator.native.decode import Decoder
from fx_emulator.native.devices import MappedDevice
from fx_emulator.native.elf import Symbol, open_object
from fx_emulator.native.engine import FAULTS, GENERAL, Engine
from fx_emulator.native.errors import BudgetError, Frame, LoadError, NativeError
from fx_emulator.native.heap import Heap
from fx_emulator.native.known_calls import known_calls
from fx_emulator.native.lines import Names
from fx_emulator.native.operands import Addresses
from fx_emulator.native.order import PRIVATE, StoreBuffers
from fx_emulator.native.relocate import Linker
from fx_emulator.native.routines import ROUTINES, TLS_DESCRIPTOR
from fx_emulator.native.space import PAGE, READ, RUN, WRITE, Region, Space, round_up
from fx_emulator.native.split import Splitter
from fx_emulator.native.threads import Finished, NativeThread, Stopped
from fx_emulator.native.timer import Timer
from fx_emulator.native.zircon import Handles

__all__ = ["BUDGET", "Machine", "MemoryOrder"]

MemoryOrder = Literal["program", "tso"]
System = Literal["fuchsia", "linux"]
Sink = Callable[[MappedDevice, int, int, int, int], None]
"""``(device, offset, size, value, pc)``: called for each store before its bytes change."""

BUDGET = 10_000_000
"""Default number of instructions after which a call counts as an endless loop."""

TRAPS_AT = 0x0F00_0000
IMAGE_AT = 0x1000_0000
STACKS_AT = 0x7000_0000_0000
_SLOT = 16
_EXIT = TRAPS_AT
"""Return address of a thread's first function."""
_STACK_BYTES = 256 << 10
_RED_ZONE = 128
_TCB_BYTES = 256
_TLS_GUARD = 0x28
"""Offset of the stack protector's word from the thread pointer."""
_GUARD_WORD = 0x5BD1E995_2F0B4A00
_ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")

_CLEARED = tuple(name for name in GENERAL if name not in {"rsp", "rip"})
"""Registers that are 0 when a thread starts."""

# CPUID: features of the engine, besides those of the emulated processor's counter.
_FEATURES_EDX = 1 << 0 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 15 | 1 << 19 | 7 << 23 | 1 << 26
"""x87, TSC, MSR, CX8, CMOV, CLFLUSH, MMX, FXSR, SSE, SSE2."""
_FEATURES_ECX = 1 << 0 | 1 << 9 | 1 << 13 | 1 << 23
"""SSE3, SSSE3, CMPXCHG16B, POPCNT."""
_EXTENDED_EDX = 1 << 11 | 1 << 20 | 1 << 29
"""SYSCALL, NX, long mode."""

_DRAWS = re.compile(rb"\x0f\xc7[\xf0-\xff]")
"""Bytes of RDRAND and RDSEED, behind their prefixes; RDPID has them, too."""

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
_CELLS = {
    "stdout": bytes(8),
    "stderr": bytes(8),
    "environ": bytes(8),
    "__dso_handle": bytes(8),
    "__stack_chk_guard": _GUARD_WORD.to_bytes(8, "little"),
    # Referenced by type_info, but unread without dynamic_cast and exceptions.
    "_ZTVN10__cxxabiv117__class_type_infoE": bytes(64),
    "_ZTVN10__cxxabiv120__si_class_type_infoE": bytes(64),
    "_ZTVN10__cxxabiv121__vmi_class_type_infoE": bytes(64),
}
"""Variables that the target provides, with their initial bytes."""


class Machine:
    """The machine that runs one loaded object file on a target.

    Raises LoadError for a file that cannot be loaded, MissingPackageError without the extra.
    """

    def __init__(
        self,
        target: Any,
        path: str | Path,
        *,
        symbols: Mapping[str, Any] | None = None,
        memory_order: MemoryOrder = "program",
        system: System = "fuchsia",
        stack: int = _STACK_BYTES,
    ) -> None:
        if memory_order not in {"program", "tso"}:
            raise NativeError(f"invalid memory_order {memory_order!r}: must be 'program' or 'tso'")
        self.target = target
        self.engine = Engine()
        self.space = Space(self.engine)
        self.decoder = Decoder(self.space.read_some)
        self.operands = Addresses(self.engine)
        self.splitter = Splitter(self, self.operands)
        self.timer = Timer(self.engine, target.clock, target.instructions_per_second)
        self.stack_bytes = round_up(stack)
        self.threads: list[NativeThread] = []
        self.current: NativeThread | None = None
        self.running = False
        self.devices: dict[int, MappedDevice] = {}
        """Mapped devices by identity."""
        self.sink: Sink | None = None
        """Called for each store into a device."""
        self.journal: list[tuple[Region, int, bytes]] | None = None
        """Overwritten bytes, for undo; None while no exploration runs."""
        self.rewrites: list[tuple[MappedDevice, int, int]] = []
        """Words of devices to overwrite after the current store: device, offset, word."""
        self.asked: set[int] = set()
        """Addresses of the current instruction's stores that are counted already, or later."""
        self.calls: dict[int, Call] = {}
        """Functions that the target provides, by the address of their trap."""
        self.output = bytearray()
        """What the program printed."""
        self.handles = Handles()
        self.keys = 0
        """Number of the last key of thread-local values that the program created."""
        self.explored: list[NativeThread] = []
        """The threads that all explorations of the program share."""
        self.observer: Callable[[int], None] | None = None
        """Called for each result of a function of the target."""
        self.on_store: Callable[[int, int], None] | None = None
        """Called with address and size for each store of a function of the target."""
        self.gate: Callable[[int], bool] | None = None
        """Called before each function of the target; returns whether it has stopped the run."""
        self.pc = self.engine.reader("rip")
        """Returns the address of the current instruction."""
        self.order = StoreBuffers(self) if memory_order == "tso" else None
        self._halts: dict[int, bool] = {}
        self.ordering: set[int] = set()
        """Addresses of locked instructions and fences; empty without store buffers."""
        self.linux: Any = None
        self.file = open_object(path, IMAGE_AT)
        self._given = dict(symbols or {})
        try:
            self._load(system)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the CPU and the devices. May be called twice."""
        self.engine.close()

    @functools.cached_property
    def heap(self) -> Heap:
        """The heap of malloc, mapped at first use."""
        return Heap(self)

    # --- loading ---

    def _load(self, system: System) -> None:
        file, space = self.file, self.space
        for chunk in file.chunks:
            self._map_chunk(chunk.start, chunk.size, chunk.data, chunk.permissions, chunk.name)
        self.tls_size = round_up(file.tls_size, max(16, file.tls_align))
        names = self._traps(system)
        linker = Linker(
            file=file,
            space=space,
            resolve=self.resolve,
            tls_offset=-self.tls_size,
            got_start=self._got(),
            descriptor=self.routines["tls descriptor"],
        )
        self.names = Names(file, names)
        self._install_hooks()
        if system == "linux":
            from fx_emulator.native.linux import Linux

            self.linux = Linux(self)
            return
        linker.apply()
        self.engine.forget_code()
        if self.order is not None:
            self._order_stores()
        for place, resolver in linker.deferred:
            space.write_word(place, self.run(self.main, resolver))
        for place in file.initialisers:
            function = space.read_word(place)
            if function not in {0, (1 << 64) - 1}:
                self.run(self.main, function)

    def _map_chunk(self, start: int, size: int, data: bytes, permissions: int, name: str) -> None:
        """Map a segment; a page that two segments share gets the permissions of both."""
        first, last = start & -PAGE, round_up(start + size)
        while first < last and self.space.find(first) is not None:
            self.space.protect(first, PAGE, READ | WRITE | RUN)
            first += PAGE
        if first < last:
            self.space.map(name, first, last - first, permissions)
        at = 0
        while at < len(data):
            region = self.space.find(start + at)
            assert region is not None  # noqa: S101 (it was mapped above)
            part = data[at : at + region.end - start - at]
            self.space.write(start + at, part)
            at += len(part)

    def _traps(self, system: System) -> dict[int, str]:
        """Assign addresses to undefined symbols. Raises LoadError that lists unresolved ones."""
        provided: dict[str, Any] = {**_CELLS, **known_calls()}
        for name, given in self._given.items():
            provided[name] = Call.of(name, given) if callable(given) else given
        self.addresses: dict[str, int] = {}
        self.routines: dict[str, int] = {}
        code = bytearray(b"\xc3".ljust(_SLOT, b"\xcc"))
        cells: dict[str, bytes] = {}
        missing: list[str] = []
        for name, symbol in self.file.undefined.items():
            match provided.get(name):
                case int(address):
                    self.addresses[name] = address
                case bytes() | bytearray() as body:
                    cells[name] = bytes(body)
                case Call() as call:
                    self.addresses[name] = TRAPS_AT + len(code)
                    self.calls[TRAPS_AT + len(code)] = call
                    code += b"\xc3".ljust(_SLOT, b"\xcc")
                case _ if symbol.weak:
                    self.addresses[name] = 0
                case _ if name not in ROUTINES and name != "_GLOBAL_OFFSET_TABLE_":
                    missing.append(name)
        if missing and system != "linux":
            rust = any("rust_eh_personality" in name for name in self.file.symbols)
            raise LoadError(
                _unresolved(self.file.path, missing, [*known_calls(), *ROUTINES], rust=rust)
            )
        unused = sorted(self._given.keys() - self.file.undefined.keys())
        if unused:
            raise LoadError(
                f"{self.file.path}: has no undefined symbol {unused[0]!r}; declare it extern "
                "and use it, or remove it from symbols="
            )
        self.trap_end = TRAPS_AT + len(code)
        for name, body in {**ROUTINES, "tls descriptor": TLS_DESCRIPTOR}.items():
            self.routines[name] = TRAPS_AT + len(code)
            if name in self.file.undefined:
                self.addresses.setdefault(name, self.routines[name])
            code += body.ljust(round_up(len(body), _SLOT), b"\xcc")
        self.calls_end = TRAPS_AT + len(code)
        self.space.map("calls", TRAPS_AT, len(code), READ | RUN)
        self.space.write(TRAPS_AT, code)
        self._place_cells(TRAPS_AT + round_up(len(code)), cells)
        named = {**self.routines, **self.addresses}
        return {address: name for name, address in named.items() if address}

    def _place_cells(self, at: int, cells: Mapping[str, bytes]) -> None:
        if not cells:
            return
        size = sum(round_up(len(body), 16) for body in cells.values())
        self.space.map("variables of the target", at, size, READ | WRITE)
        for name, body in cells.items():
            self.addresses[name] = at
            self.space.write(at, body)
            at += round_up(len(body), 16)

    def _got(self) -> int:
        """Allocate the words that relocations of the object file need."""
        size = 32 * len(self.file.relocations) + 8
        if self.file.kind != "relocatable":
            # A linked file has its own; this one is for stubs of its ifuncs only.
            size = PAGE + 16 * sum(each.kind == "ifunc" for each in self.file.functions)
        last = max(round_up(chunk.start + chunk.size) for chunk in self.file.chunks)
        region = self.space.map("offset table", last + PAGE, size, READ | WRITE | RUN)
        self.addresses["_GLOBAL_OFFSET_TABLE_"] = region.start
        return region.start

    def resolve(self, symbol: Symbol) -> int:
        """Return the address of a symbol; 0 for a weak one without a definition."""
        if symbol.kind == "section" or (symbol.defined and symbol.local):
            return symbol.address
        found = self.file.symbols.get(symbol.name)
        if found is not None:
            return found.address
        return self.addresses.get(symbol.name, 0)

    def address_of(self, name: str) -> int:
        """Return the address of a function or variable of the file.

        Raises NativeError, which suggests similar names, for an unknown name.
        """
        symbol = self.file.symbols.get(name)
        if symbol is None:
            near = difflib.get_close_matches(name, self.file.symbols, n=3)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise NativeError(f"{self.file.path.name} defines no symbol {name!r}{hint}")
        return symbol.address

    # --- devices ---

    def find_device(self, device: Any) -> MappedDevice | None:
        """Return the mapping of a Memory or Vmo, or None; handles of one VMO share a mapping."""
        return self.devices.get(_identity(device))

    def map_device(self, device: Any) -> MappedDevice:
        """Map a Memory or Vmo, unless it is mapped already."""
        mapped = self.find_device(device)
        start = None
        if mapped is not None:
            if not mapped.stale:
                return mapped
            start = mapped.region.start
            mapped.unmap()
        made = self.devices[_identity(device)] = MappedDevice(self, device, start)
        if self.order is not None:
            self._buffer_stores(made.region)
        return made

    def map_private(self, name: str, start: int, size: int, permissions: int) -> Region:
        """Map zeros that the program's threads share."""
        region = self.space.map(name, start, size, permissions)
        if self.order is not None and permissions & WRITE:
            self._buffer_stores(region)
        return region

    def apply_rewrites(self) -> None:
        """Overwrite the words that faults changed in the current store."""
        while self.rewrites:
            device, offset, word = self.rewrites.pop()
            device.rewrite(offset, word)

    # --- memory access by the target ---

    def draw(self, at: int, size: int) -> None:
        """Store random bytes for the current thread, which follow from the target's seed."""
        assert self.current is not None  # noqa: S101 (it calls)
        self.store(at, self.current.random.draw(size))

    def remember(self, address: int, size: int) -> None:
        """Journal bytes that are about to be overwritten."""
        if self.journal is not None:
            region = self.space.find(address)
            assert region is not None  # noqa: S101 (they are in one)
            self.journal.append((region, address - region.start, self.space.read(address, size)))

    def store(self, address: int, data: bytes) -> None:
        """Store for the program, in stores of up to 8 bytes that hooks see as its own."""
        at = 0
        while at < len(data):
            place = address + at
            size = min(8 - place % 8, len(data) - at)
            self.put(place, data[at : at + size], self.pc())
            if self.on_store is not None:
                self.on_store(place, size)
            at += size

    def put(self, address: int, data: bytes, pc: int) -> None:
        """Make one store of up to 8 bytes for the instruction or function at ``pc``."""
        size = len(data)
        region = self.space.find(address)
        if region is None or address - region.start + size > region.limit:
            raise NativeError(f"store of {size} bytes at {address:#x}: nothing is mapped there")
        self.remember(address, size)
        try:
            if region.shared is not None:
                value = int.from_bytes(data, "little")
                region.shared.land(address - region.start, size, value, pc)
            self.space.write(address, data)
        finally:
            self.apply_rewrites()

    # --- store order ---

    def _order_stores(self) -> None:
        """Hook stores into shared memory, and the instructions that drain store buffers."""
        assert self.order is not None  # noqa: S101
        for region in self.space.regions:
            if region.permissions & WRITE and region.name not in PRIVATE:
                self._buffer_stores(region)
        for symbol in self.file.functions:
            at = symbol.address
            while at < symbol.address + symbol.size:
                access = self.decoder.access(at)
                if access is None:
                    break
                if access.orders:
                    self.ordering.add(at)
                    drain = functools.partial(self.order.locked, fence=access.fence)
                    self.engine.on_code(drain, at, at)
                at += access.size
        self.engine.forget_code()

    def _buffer_stores(self, region: Region) -> None:
        assert self.order is not None  # noqa: S101
        store = functools.partial(self.order.on_store, region)
        self.engine.on_access(store, region.start, region.end - 1)
        self.engine.forget_code()

    # --- hooks ---

    def _install_hooks(self) -> None:
        engine = self.engine
        self._fault: tuple[int, int, int] | None = None
        self._interrupt: int | None = None
        self._blocked: Blocked | None = None
        if self.trap_end > TRAPS_AT + _SLOT:
            engine.on_code(self._trap, TRAPS_AT + _SLOT, self.trap_end - 1)
        engine.on_fault(self._on_fault)
        engine.on_interrupt(self._on_interrupt)
        engine.on_invalid(self._on_invalid)
        engine.on_instruction("rdtsc", self._rdtsc)
        engine.on_instruction("rdtscp", self._rdtscp)
        engine.on_instruction("cpuid", self._cpuid)
        engine.on_instruction("syscall", self._syscall)
        for chunk in self.file.chunks:
            for found in _DRAWS.finditer(chunk.data) if chunk.permissions & RUN else ():
                last = chunk.start + found.start()
                engine.on_code(self._refuse_draw, last - 2, last)  # prefixes may come first

    @property
    def cpu(self) -> Cpu:
        """The emulated CPU that runs the program."""
        if self.current is not None:
            return self.current.cpu
        found: Cpu = self.target.kernel.counter.cpu
        return found

    def _rdtsc(self) -> None:
        ticks = self.timer.tsc(self.cpu)
        self.engine.set("rax", ticks & 0xFFFFFFFF)
        self.engine.set("rdx", ticks >> 32)

    def _rdtscp(self) -> None:
        aux = self.cpu.rdtscp_aux()
        self._rdtsc()
        self.engine.set("rcx", aux)

    def _cpuid(self) -> None:
        leaf, subleaf = (self.engine.get(name) & 0xFFFFFFFF for name in ("rax", "rcx"))
        words = list(self.cpu.cpuid(leaf, subleaf))
        if leaf == 1:
            words[2] |= _FEATURES_ECX
            words[3] |= _FEATURES_EDX
        elif leaf == 0x80000001:
            words[2] |= 1
            words[3] |= _EXTENDED_EDX
        for name, word in zip(("rax", "rbx", "rcx", "rdx"), words, strict=True):
            self.engine.set(name, word)

    def _syscall(self) -> None:
        if self.linux is None:
            number = self.engine.get("rax")
            raise self.error(
                f"SYSCALL {number}: the target has no Linux; call its functions by name, or run "
                "the executable with target.execute()"
            )
        if self.order is not None:
            self.order.drain_all(self.order.owner)
        try:
            self.engine.set("rax", self.linux.call())
        except Blocked as blocked:
            self._blocked = blocked
            self.engine.stop()

    def _on_fault(self, kind: int, address: int, size: int) -> None:
        self._fault = kind, address, size

    def _on_interrupt(self, number: int) -> None:
        self._interrupt = number
        self.engine.stop()

    def _on_invalid(self) -> bool:
        """Emulate RDPID, which the engine lacks; return False for any other instruction."""
        pc = self.pc()
        access = self.decoder.access(pc)
        if access is None or not access.text.startswith("rdpid "):
            return False
        self.engine.set(access.text.removeprefix("rdpid "), self.cpu.rdmsr(IA32_TSC_AUX))
        self.engine.set("rip", pc + access.size)
        return True

    def _refuse_draw(self, address: int) -> None:
        """Refuse RDRAND and RDSEED, for which the engine takes random numbers of the host."""
        text = self.decoder.name(address)
        if text.startswith(("rdrand", "rdseed")):
            raise self.error(
                f"invalid instruction {text!r}: the emulated CPU has no RDRAND and RDSEED, as "
                "CPUID says; build with -march=x86-64"
            )

    def _trap(self, address: int) -> None:
        """Call the function of the target at a trap."""
        if self.gate is not None and self.gate(address):
            return
        call = self.calls[address]
        self.timer.count()
        self.timer.spend()
        if self.order is not None:
            # SYSCALL itself does not drain the store buffer, but the functions of the target
            # store directly, so that older stores must drain first.
            self.order.drain_all(self.order.owner)
            self.order.kernel = True
        try:
            result = call(self, self.arguments(call.count))
        except Blocked as blocked:
            self._blocked = blocked
            self.engine.stop()
            return
        finally:
            if self.order is not None:
                self.order.kernel = False
        self.engine.set("rax", result)
        if self.observer is not None:
            self.observer(result)

    def arguments(self, count: int) -> list[int]:
        """Return the first integer arguments of the called function, unsigned."""
        values = [self.engine.get(name) for name in _ARGUMENTS[:count]]
        if count > len(_ARGUMENTS):
            stack = self.engine.get("rsp") + 8
            more = range(count - len(_ARGUMENTS))
            values += [self.space.read_word(stack + 8 * number) for number in more]
        return values

    # --- threads ---

    @property
    def main(self) -> NativeThread:
        """The thread for direct calls, created at first use."""
        if not self.threads:
            self.new_thread("main", self.target.process(self.file.path.name).koid)
        return self.threads[0]

    def new_thread(
        self, name: str, process_koid: int, koid: int | None = None, cpu: int | None = None
    ) -> NativeThread:
        """Create a thread with a stack, thread-local variables and registers."""
        number = len(self.threads)
        space = self.space
        at = space.place(STACKS_AT, self.stack_bytes)
        stack = space.map("stack", at, self.stack_bytes, READ | WRITE)
        size = self.tls_size + _TCB_BYTES
        tls = space.map("thread variables", space.place(STACKS_AT, size), size, READ | WRITE)
        pointer = tls.start + self.tls_size
        cpus = self.target.processor.cpus
        thread = NativeThread(
            name=name,
            number=number,
            process_koid=process_koid,
            koid=next(self.target.kernel.koids) if koid is None else koid,
            stack=stack,
            tls=tls,
            thread_pointer=pointer,
            context=self.engine.context(),
            home=cpus[number % len(cpus) if cpu is None else cpu],
            random=Random(self.target.seed ^ number << 32),
            cpus=cpus,
        )
        self.threads.append(thread)
        return thread

    def start(self, thread: NativeThread, address: int, arguments: Sequence[int] = ()) -> None:
        """Start a thread at a function, with fresh thread-local variables."""
        space, tls = self.space, thread.tls
        if tls is not None and (thread.number or not space.read_word(thread.thread_pointer)):
            self._reset_tls(thread)
        self.select(None)
        engine = self.engine
        for name in _CLEARED:
            engine.set(name, 0)
        engine.set("eflags", 2)
        engine.set("fs_base", thread.thread_pointer)
        on_stack = list(arguments[len(_ARGUMENTS) :])
        for name, value in zip(_ARGUMENTS, arguments, strict=False):
            engine.set(name, value)
        top = thread.top - 64
        words = [_EXIT, *on_stack]
        sp = ((top - 8 * len(words)) & -16) - 8
        for number, word in enumerate(words):
            space.write_word(sp + 8 * number, word)
        engine.set("rsp", sp)
        thread.context, thread.frozen = engine.context(), False
        engine.save(thread.context)
        thread.pc, thread.sp = address, sp
        thread.finished, thread.split = False, None
        thread.depth.clear()

    def _reset_tls(self, thread: NativeThread) -> None:
        file, pointer = self.file, thread.thread_pointer
        begin = pointer - self.tls_size
        thread.specific.clear()
        self.space.write(begin, file.tls.ljust(file.tls_size, b"\0"))
        self.space.write_word(pointer, pointer)
        self.space.write_word(pointer + 16, pointer)
        self.space.write_word(pointer + _TLS_GUARD, _GUARD_WORD)

    def interrupt(self, thread: NativeThread, address: int, arguments: Sequence[int]) -> None:
        """Run a signal handler on a thread, which then continues where it was."""
        self.splitter.finish(thread)
        self.select(thread)
        kept = self.engine.context()
        self.engine.save(kept)
        thread.depth.append((kept, thread.pc))
        sp = ((self.engine.get("rsp") - _RED_ZONE) & -16) - 8
        self.store(sp, _EXIT.to_bytes(8, "little"))
        for name, value in zip(_ARGUMENTS, arguments, strict=False):
            self.engine.set(name, value)
        self.engine.set("rsp", sp)
        thread.pc = address

    def select(self, thread: NativeThread | None) -> None:
        """Put a thread on the CPU."""
        if thread is self.current:
            return
        if self.current is not None:
            before = self.current
            if before.frozen:
                before.context, before.frozen = self.engine.context(), False
            self.engine.save(before.context)
            before.sp = self.engine.get("rsp")
        if thread is not None:
            self.engine.restore(thread.context)
            if self.order is not None:
                self.order.switch(thread.number)
        self.current = thread

    # --- running ---

    def advance(self, thread: NativeThread, count: int) -> Stopped | Finished | Blocked:
        """Run a thread for at most ``count`` instructions.

        Raises NativeError for an invalid operation, and the exceptions of the target's functions.
        """
        if self.running:
            raise NativeError("a function of the target must not run the program that called it")
        self.select(thread)
        self.running = True
        # The kernel wakes the CPUs of its own threads.
        asleep = thread.thread is None and thread.home.cstate
        if asleep:
            thread.home.leave_cstate()
        try:
            if thread.split is not None:
                self.splitter.finish(thread)
            return self._advance(thread, count)
        finally:
            self.running = False
            if asleep:
                thread.home.enter_cstate(asleep)

    def execute(self, thread: NativeThread) -> None:
        """Run one instruction of the thread that is on the CPU, which does not end with it."""
        self._advance(thread, 1)

    def _advance(self, thread: NativeThread, count: int) -> Stopped | Finished | Blocked:
        self._forget_causes()
        thread.executed += count
        try:
            status = self._run(thread.pc, count)
            while self.rewrites:
                self._redo()
                status = self._run(self.pc(), count)
        except Crash:
            self.apply_rewrites()
            self.asked.clear()
            raise
        except NativeError as error:
            raise self._placed(error) from None
        thread.pc = self.pc()
        if self._blocked is not None:
            if self.linux is None:
                self.leave_call(self._blocked.result)
            return self._blocked
        if self._interrupt is not None:
            raise self._interrupted(self._interrupt)
        if status:
            raise self._faulted(status)
        if thread.pc != _EXIT:
            if self._halted(thread.pc):
                raise self.error("HLT, a privileged instruction: the code after it must not run")
            return Stopped()
        result = self.engine.get("rax")
        if thread.depth:
            kept, thread.pc = thread.depth.pop()
            self.engine.restore(kept)
            return Stopped()
        thread.finished, thread.result = True, result
        return Finished(result)

    def _run(self, pc: int, count: int) -> int:
        """Run the engine. Return its status."""
        try:
            return self.engine.run(pc, _EXIT, count)
        finally:
            self.timer.end_run()

    def _halted(self, pc: int) -> bool:
        """Return whether the engine stopped after HLT, which it does not report."""
        if self.space.read_some(pc - 1, 1) != b"\xf4":
            return False
        if pc not in self._halts:
            at = self.names.start_of(pc - 1)
            while at < pc - 1:
                access = self.decoder.access(at)
                at += access.size if access is not None else pc
            # If not, the byte is the end of another instruction.
            self._halts[pc] = at == pc - 1
        return self._halts[pc]

    def _forget_causes(self) -> None:
        """Clear the causes of a stop, which callbacks set."""
        self._fault = self._interrupt = self._blocked = None

    def _redo(self) -> None:
        """Repeat a store that a fault changes, then overwrite its words."""
        while self.rewrites:
            changed = len(self.rewrites)
            self._run(self.pc(), 1)
            if len(self.rewrites) == changed:
                self.apply_rewrites()
        self.asked.clear()

    def leave_call(self, result: int) -> None:
        """Return from the current call of the target's function."""
        assert self.current is not None  # noqa: S101
        sp = self.engine.get("rsp")
        self.current.pc = self.space.read_word(sp)
        self.engine.set("rsp", sp + 8)
        self.engine.set("rip", self.current.pc)
        self.engine.set("rax", result)

    def run(
        self,
        thread: NativeThread,
        address: int,
        arguments: Sequence[int] = (),
        budget: int = BUDGET,
    ) -> int:
        """Run a function to its end. Return RAX. Sleeping lets virtual time pass.

        Raises BudgetError for an endless loop.
        """
        if self.running:
            raise NativeError("a function of the target must not run the program that called it")
        self.start(thread, address, arguments)
        while budget > 0:
            before = thread.executed
            outcome = self.advance(thread, budget)
            self.timer.spend()
            match outcome:
                case Finished(result):
                    if self.order is not None:
                        self.order.drain_all(thread.number)
                    return result
                case Blocked() as blocked:
                    if blocked.action == "exit":
                        thread.finished = True
                        return blocked.result
                    if blocked.ns:
                        self.target.clock.advance(blocked.ns)
                    thread.executed = before + 1
                    budget -= 1
                case _:
                    budget = 0
        raise self.endless(thread)

    # --- errors ---

    def endless(self, thread: NativeThread) -> BudgetError:
        """Return the error of a thread that exceeded its budget."""
        self.select(thread)
        error = self.error("no end within the budget of instructions; set a larger budget=, or "
                           "fix the loop")  # fmt: skip
        return BudgetError(
            error.message, frames=error.frames, registers=error.registers, thread=thread.name
        )

    def error(self, message: str) -> NativeError:
        """Return an error at the current position of the program."""
        frames, registers = self.backtrace()
        name = self.current.name if self.current is not None else ""
        return NativeError(message, frames=frames, registers=registers, thread=name)

    def _placed(self, error: NativeError) -> NativeError:
        if error.frames:
            return error
        return self.error(error.message)

    def backtrace(self) -> tuple[tuple[Frame, ...], dict[str, int]]:
        """Return the frames, innermost first, and the registers."""
        registers = self.engine.registers()

        def load(address: int) -> int | None:
            word = self.space.read_some(address, 8)
            return int.from_bytes(word, "little") if len(word) == 8 else None

        leaf = TRAPS_AT < registers["rip"] < self.calls_end
        return self.names.backtrace(registers, load, self._runs, leaf), registers

    def _runs(self, address: int) -> bool:
        region = self.space.find(address)
        return region is not None and bool(region.permissions & RUN) and address != _EXIT

    def _interrupted(self, number: int) -> NativeError:
        if number == 3:
            return self.error("breakpoint instruction (INT3), or a jump between two functions")
        what = _INTERRUPTS.get(number, "software interrupt")
        return self.error(f"exception {number}: {what}")

    def _faulted(self, status: int) -> NativeError:
        if self._fault is not None:
            kind, address, size = self._fault
            what = FAULTS.get(kind, "memory fault")
            sized = "" if kind in {21, 24} else f" of {size} bytes"
            region = self.space.find(address)
            where = f" ({region.name})" if region is not None else ""
            return self.error(f"{what}{sized} at {address:#x}{where}")
        pc = self.pc()
        text = self.decoder.name(pc)
        if text.startswith("ud2"):
            return self.error(
                "invalid instruction UD2: the compiler's trap (unreachable code, __builtin_trap)"
            )
        if status != 10:
            return self.error(f"the CPU emulator stopped with status {status} at {text!r}")
        why = ""
        if text.startswith("v") or any(name in text for name in ("zmm", "ymm", "k1")):
            level = "AVX-512" if "zmm" in text or self.space.read_some(pc, 1) == b"\x62" else "AVX"
            why = f": the emulated CPU has no {level}; build with -march=x86-64"
        return self.error(f"invalid instruction {text!r}{why}")


def _identity(device: Any) -> int:
    return id(getattr(device, "_vmo", device))


_RUST_ADVICE = (
    "\nThe target provides what Rust's standard library needs for allocation, panics and output; "
    "threads, files and sockets are not there. Avoid them, or build the library without std: "
    "#![no_std], -C panic=abort, -C link-arg=-nostdlib"
)


def _unresolved(path: Path, missing: Sequence[str], known: Sequence[str], *, rust: bool) -> str:
    """Return one message that lists all unresolved symbols, each with advice."""
    lines = []
    for name in sorted(missing):
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
        if near:
            advice = f"did you mean {near[0]}? Or define it: symbols={{{name!r}: function}}"
        elif name.startswith(("zx_", "_zx_")):
            advice = f"the target lacks this call; define it: symbols={{{name!r}: function}}"
        elif name.startswith(("_ZN", "_ZSt", "_ZTV", "__gxx")):
            advice = "part of the C++ library: link with -static-libstdc++, or avoid it"
        else:
            advice = f"link its object, or define it: symbols={{{name!r}: function}}"
        lines.append(f"\n  {name}: {advice}")
    advice = _RUST_ADVICE if rust else ""
    return f"{path}: {len(missing)} unresolved symbols:{''.join(lines)}{advice}"
