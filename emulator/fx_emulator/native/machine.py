"""The machine of a native program: CPU, address space, object file, threads, and provided calls.

One thread runs at a time. ``advance`` runs it for a number of instructions; the caller
(``program``, ``execution``, the kernel) schedules the threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from fx_emulator.cpu import Cpu
from fx_emulator.errors import Crash
from fx_emulator.kernel import Random
from fx_emulator.native.calls import Blocked
from fx_emulator.native.decode import Decoder
from fx_emulator.native.devices import MappedDevice
from fx_emulator.native.elf import Symbol, open_object
from fx_emulator.native.engine import GENERAL, Engine
from fx_emulator.native.errors import BudgetError, Frame, NativeError
from fx_emulator.native.heap import Heap
from fx_emulator.native.instructions import Instructions
from fx_emulator.native.lines import Names
from fx_emulator.native.loading import (
    GUARD_WORD,
    TRAP_BYTES,
    TRAPS_AT,
    map_chunk,
    map_offset_table,
    provide,
    similar_names,
)
from fx_emulator.native.operands import Addresses
from fx_emulator.native.order import PRIVATE, StoreBuffers
from fx_emulator.native.relocate import Linker
from fx_emulator.native.space import READ, RUN, WRITE, Region, Space, round_up
from fx_emulator.native.split import Splitter
from fx_emulator.native.stops import Causes, fault_message, instruction_message, interrupt_message
from fx_emulator.native.stores import Stores
from fx_emulator.native.threads import Finished, NativeThread, Stopped
from fx_emulator.native.timer import Timer
from fx_emulator.native.zircon import Handles

MemoryOrder = Literal["program", "tso"]
System = Literal["fuchsia", "linux"]

BUDGET = 10_000_000
"""Default number of instructions after which a call counts as an endless loop."""

IMAGE_AT = 0x1000_0000
STACKS_AT = 0x7000_0000_0000
_EXIT = TRAPS_AT
"""Return address of a thread's first function."""
_STACK_BYTES = 256 << 10
_RED_ZONE = 128
"""Bytes below the stack pointer that a function may use, so that a handler must not."""
_TCB_BYTES = 256
"""Bytes from the thread pointer on, such as the word of the stack protector."""
_TLS_GUARD = 0x28
"""Offset of the stack protector's word from the thread pointer."""
_ARGUMENTS = ("rdi", "rsi", "rdx", "rcx", "r8", "r9")
_NO_INITIALISERS = frozenset({0, (1 << 64) - 1})
"""Words of an array of initialisers that are not addresses."""
_HLT = b"\xf4"

_CLEARED = tuple(name for name in GENERAL if name not in {"rsp", "rip"})
"""Registers that are 0 when a thread starts."""


@attrs.define
class Listeners:
    """Functions that a recording or an exploration has the machine call."""

    sink: Callable[[MappedDevice, int, int, int, int], None] | None = None
    """Called with ``(device, offset, size, value, pc)`` for each store, before its bytes change."""
    on_result: Callable[[int], None] | None = None
    """Called for each result of a function of the target."""
    on_store: Callable[[int, int], None] | None = None
    """Called with address and size for each store of a function of the target."""
    before_call: Callable[[int], bool] | None = None
    """Called with the trap of each function of the target; returns whether it stopped the run."""


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
        self.pc = self.engine.reader("rip")
        """Returns the address of the current instruction."""
        self.space = Space(self.engine)
        self.decoder = Decoder(self.space.read_some)
        self.operands = Addresses(self.engine)
        self.splitter = Splitter(self, self.operands)
        self.stores = Stores(self)
        self.timer = Timer(self.engine, target.clock, target.instructions_per_second)
        self.listeners = Listeners()
        self.stack_bytes = round_up(stack)
        self.threads: list[NativeThread] = []
        self.explored: list[NativeThread] = []
        """The threads that all explorations of the program share."""
        self.current: NativeThread | None = None
        self.running = False
        self.devices: dict[int, MappedDevice] = {}
        """Mapped devices by identity."""
        self.output = bytearray()
        """What the program printed."""
        self.handles = Handles()
        self.last_key = 0
        """Number of the last key of thread-local values that the program created."""
        self.order = StoreBuffers(self) if memory_order == "tso" else None
        self.ordering: set[int] = set()
        """Addresses of locked instructions and fences; empty without store buffers."""
        self.linux: Any = None
        self._causes = Causes()
        self._is_after_hlt: dict[int, bool] = {}
        """For each address behind a byte like HLT, whether that byte is an instruction."""
        self.file = open_object(path, IMAGE_AT)
        try:
            self._load(system, symbols or {})
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

    def _load(self, system: System, symbols: Mapping[str, Any]) -> None:
        file = self.file
        space = self.space
        for chunk in file.chunks:
            map_chunk(space, chunk)
        self.tls_size = round_up(file.tls_size, max(16, file.tls_align))
        self.provided = provide(space, file, symbols, needs_all=system != "linux")
        linker = Linker(
            file=file,
            space=space,
            resolve=self.resolve,
            tls_offset=-self.tls_size,
            got_start=map_offset_table(space, file, self.provided),
            descriptor=self.provided.descriptor,
        )
        self.names = Names(file, self.provided.names)
        self._install_hooks()
        if system == "linux":
            from fx_emulator.native.linux import Linux

            # The startup of a static executable relocates itself.
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
            if function not in _NO_INITIALISERS:
                self.run(self.main, function)

    def resolve(self, symbol: Symbol) -> int:
        """Return the address of a symbol; 0 for a weak one without a definition."""
        if symbol.kind == "section" or (symbol.defined and symbol.local):
            return symbol.address
        definition = self.file.symbols.get(symbol.name)
        if definition is not None:
            return definition.address
        return self.provided.addresses.get(symbol.name, 0)

    def address_of(self, name: str) -> int:
        """Return the address of a function or variable of the file.

        Raises NativeError, which suggests similar names, for an unknown name.
        """
        symbol = self.file.symbols.get(name)
        if symbol is None:
            hint = similar_names(name, self.file.symbols)
            raise NativeError(f"{self.file.path.name} defines no symbol {name!r}{hint}")
        return symbol.address

    # --- devices ---

    def find_device(self, device: Any) -> MappedDevice | None:
        """Return the mapping of a Memory or Vmo, or None; handles of one VMO share a mapping."""
        return self.devices.get(_identity(device))

    def map_device(self, device: Any) -> MappedDevice:
        """Map a Memory or Vmo, unless it is mapped already."""
        mapped_device = self.find_device(device)
        old_start = None
        if mapped_device is not None:
            if not mapped_device.stale:
                return mapped_device
            old_start = mapped_device.region.start
            mapped_device.unmap()
        mapped_device = MappedDevice(self, device, old_start)
        self.devices[_identity(device)] = mapped_device
        if self.order is not None:
            self._buffer_stores(mapped_device.region)
        return mapped_device

    def map_private(self, name: str, start: int, size: int, permissions: int) -> Region:
        """Map zeros that the program's threads share."""
        region = self.space.map(name, start, size, permissions)
        if self.order is not None and permissions & WRITE:
            self._buffer_stores(region)
        return region

    # --- memory access by the target ---

    def draw(self, address: int, size: int) -> None:
        """Store random bytes for the current thread, which follow from the target's seed."""
        assert self.current is not None  # noqa: S101 (it calls)
        self.store(address, self.current.random.draw(size))

    def store(self, address: int, data: bytes) -> None:
        """Store for the program, as a function of the target (``Stores.store``)."""
        self.stores.store(address, data)

    # --- store order ---

    def _order_stores(self) -> None:
        """Hook stores into shared memory, and the instructions that drain store buffers."""
        for region in self.space.regions:
            if region.permissions & WRITE and region.name not in PRIVATE:
                self._buffer_stores(region)
        for function in self.file.functions:
            self._hook_ordering(function)
        self.engine.forget_code()

    def _hook_ordering(self, function: Symbol) -> None:
        """Hook the locked instructions and fences of a function."""
        assert self.order is not None  # noqa: S101
        address = function.address
        while address < function.address + function.size:
            access = self.decoder.access(address)
            if access is None:
                break
            if access.orders:
                self.ordering.add(address)
                drain = functools.partial(self.order.locked, fence=access.fence)
                self.engine.on_code(drain, address, address)
            address += access.size

    def _buffer_stores(self, region: Region) -> None:
        assert self.order is not None  # noqa: S101
        store = functools.partial(self.order.on_store, region)
        self.engine.on_access(store, region.start, region.end - 1)
        self.engine.forget_code()

    # --- hooks ---

    def _install_hooks(self) -> None:
        engine = self.engine
        first_call = TRAPS_AT + TRAP_BYTES
        if self.provided.traps_end > first_call:
            engine.on_code(self._trap, first_call, self.provided.traps_end - 1)
        engine.on_fault(self._on_fault)
        engine.on_interrupt(self._on_interrupt)
        engine.on_instruction("syscall", self._syscall)
        Instructions(self).hook()

    @property
    def cpu(self) -> Cpu:
        """The emulated CPU that runs the program."""
        if self.current is not None:
            return self.current.cpu
        cpu: Cpu = self.target.kernel.counter.cpu
        return cpu

    def _syscall(self) -> None:
        if self.linux is None:
            call_number = self.engine.get("rax")
            raise self.error(
                f"SYSCALL {call_number}: the target has no Linux; call its functions by name, or "
                "run the executable with target.execute()"
            )
        if self.order is not None:
            self.order.drain_all(self.order.owner)
        try:
            self.engine.set("rax", self.linux.call())
        except Blocked as blocked:
            self._block(blocked)

    def _block(self, blocked: Blocked) -> None:
        """Stop the run at a call that returns later."""
        self._causes.blocked = blocked
        self.engine.stop()

    def _on_fault(self, kind: int, address: int, size: int) -> None:
        self._causes.fault = (kind, address, size)

    def _on_interrupt(self, number: int) -> None:
        self._causes.interrupt = number
        self.engine.stop()

    def _trap(self, address: int) -> None:
        """Call the function of the target at a trap."""
        listeners = self.listeners
        if listeners.before_call is not None and listeners.before_call(address):
            return
        call = self.provided.calls[address]
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
            self._block(blocked)
            return
        finally:
            if self.order is not None:
                self.order.kernel = False
        self.engine.set("rax", result)
        if listeners.on_result is not None:
            listeners.on_result(result)

    def arguments(self, count: int) -> list[int]:
        """Return the first integer arguments of the called function, unsigned."""
        argument_values = [self.engine.get(name) for name in _ARGUMENTS[:count]]
        if count > len(_ARGUMENTS):
            first_on_stack = self.engine.get("rsp") + 8  # above the return address
            argument_values += [
                self.space.read_word(first_on_stack + 8 * word_number)
                for word_number in range(count - len(_ARGUMENTS))
            ]
        return argument_values

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
        thread_number = len(self.threads)
        space = self.space
        stack_start = space.place(STACKS_AT, self.stack_bytes)
        stack = space.map("stack", stack_start, self.stack_bytes, READ | WRITE)
        tls_bytes = self.tls_size + _TCB_BYTES
        tls = space.map(
            "thread variables", space.place(STACKS_AT, tls_bytes), tls_bytes, READ | WRITE
        )
        cpus = self.target.processor.cpus
        if koid is None:
            koid = next(self.target.kernel.koids)
        if cpu is None:
            cpu = thread_number % len(cpus)
        thread = NativeThread(
            name=name,
            number=thread_number,
            process_koid=process_koid,
            koid=koid,
            stack=stack,
            tls=tls,
            # Thread-local variables lie below the thread pointer, the control block above.
            thread_pointer=tls.start + self.tls_size,
            context=self.engine.context(),
            home=cpus[cpu],
            random=Random(self.target.seed ^ thread_number << 32),
            cpus=cpus,
        )
        self.threads.append(thread)
        return thread

    def start(self, thread: NativeThread, address: int, arguments: Sequence[int] = ()) -> None:
        """Start a thread at a function, with fresh thread-local variables.

        The first thread keeps the values of its variables from call to call.
        """
        space = self.space
        engine = self.engine
        is_new = not space.read_word(thread.thread_pointer)
        if thread.number or is_new:
            self._reset_tls(thread)
        self.select(None)
        for name in _CLEARED:
            engine.set(name, 0)
        engine.set("eflags", 2)
        engine.set("fs_base", thread.thread_pointer)
        for name, value in zip(_ARGUMENTS, arguments, strict=False):
            engine.set(name, value)
        # As after a call: RSP + 8 is a multiple of 16, with the return address on top.
        stack_words = [_EXIT, *arguments[len(_ARGUMENTS) :]]
        sp = ((thread.top - 64 - 8 * len(stack_words)) & -16) - 8
        for word_number, stack_word in enumerate(stack_words):
            space.write_word(sp + 8 * word_number, stack_word)
        engine.set("rsp", sp)
        thread.context = engine.context()
        thread.frozen = False
        engine.save(thread.context)
        thread.pc = address
        thread.sp = sp
        thread.finished = False
        thread.split = None
        thread.interrupted.clear()

    def _reset_tls(self, thread: NativeThread) -> None:
        """Store the initial thread-local variables, and a new control block."""
        file = self.file
        pointer = thread.thread_pointer
        thread.specific.clear()
        self.space.write(pointer - self.tls_size, file.tls.ljust(file.tls_size, b"\0"))
        # The control block refers to itself: %fs:0 is the thread pointer, %fs:16 pthread_self().
        self.space.write_word(pointer, pointer)
        self.space.write_word(pointer + 16, pointer)
        self.space.write_word(pointer + _TLS_GUARD, GUARD_WORD)

    def interrupt(self, thread: NativeThread, address: int, arguments: Sequence[int]) -> None:
        """Run a signal handler on a thread, which then continues where it was."""
        self.splitter.finish(thread)
        self.select(thread)
        context = self.engine.context()
        self.engine.save(context)
        thread.interrupted.append((context, thread.pc))
        handler_sp = ((self.engine.get("rsp") - _RED_ZONE) & -16) - 8
        self.store(handler_sp, _EXIT.to_bytes(8, "little"))
        for name, value in zip(_ARGUMENTS, arguments, strict=False):
            self.engine.set(name, value)
        self.engine.set("rsp", handler_sp)
        thread.pc = address

    def select(self, thread: NativeThread | None) -> None:
        """Put a thread on the CPU."""
        if thread is self.current:
            return
        if self.current is not None:
            leaving = self.current
            if leaving.frozen:
                # A snapshot holds the old context.
                leaving.context = self.engine.context()
                leaving.frozen = False
            self.engine.save(leaving.context)
            leaving.sp = self.engine.get("rsp")
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
        self._refuse_nesting()
        self.select(thread)
        self.running = True
        # The kernel wakes the CPUs of its own threads.
        idle_state = thread.home.cstate if thread.kernel_thread is None else 0
        if idle_state:
            thread.home.leave_cstate()
        try:
            if thread.split is not None:
                self.splitter.finish(thread)
            return self._advance(thread, count)
        finally:
            self.running = False
            if idle_state:
                thread.home.enter_cstate(idle_state)

    def _refuse_nesting(self) -> None:
        if self.running:
            raise NativeError("a function of the target must not run the program that called it")

    def execute(self, thread: NativeThread) -> None:
        """Run one instruction of the thread that is on the CPU, which does not end with it."""
        self._advance(thread, 1)

    def _advance(self, thread: NativeThread, count: int) -> Stopped | Finished | Blocked:
        """Run up to ``count`` instructions, and return why the thread does not go on."""
        self._causes = Causes()
        thread.executed += count
        try:
            status = self._run(thread.pc, count)
            while self.stores.rewrites:
                self._redo()
                status = self._run(self.pc(), count)
        except Crash:
            self.stores.apply_rewrites()
            self.stores.counted.clear()
            raise
        except NativeError as error:
            raise self._placed(error) from None
        thread.pc = self.pc()
        # What a callback has reported is more exact than the engine's status, so it comes first.
        causes = self._causes
        if causes.blocked is not None:
            if self.linux is None:
                self.leave_call(causes.blocked.result)
            return causes.blocked
        if causes.interrupt is not None:
            raise self.error(interrupt_message(causes.interrupt))
        if status and causes.fault is not None:
            raise self.error(fault_message(self, causes.fault))
        if status:
            raise self.error(instruction_message(self, status))
        if thread.pc == _EXIT:
            return self._return(thread)
        if self._halted(thread.pc):
            raise self.error("HLT, a privileged instruction: the code after it must not run")
        return Stopped()

    def _return(self, thread: NativeThread) -> Stopped | Finished:
        """Handle the return of a thread's first function, or of its signal handler."""
        if thread.interrupted:
            context, thread.pc = thread.interrupted.pop()
            self.engine.restore(context)
            return Stopped()
        thread.finished = True
        thread.result = self.engine.get("rax")
        return Finished(thread.result)

    def _run(self, pc: int, count: int) -> int:
        """Run the engine. Return its status."""
        try:
            return self.engine.run(pc, _EXIT, count)
        finally:
            self.timer.end_run()

    def _halted(self, pc: int) -> bool:
        """Return whether the engine stopped after HLT, which it does not report."""
        if self.space.read_some(pc - 1, 1) != _HLT:
            return False
        if pc not in self._is_after_hlt:
            # The byte may be the end of another instruction: decode from the function's start.
            address = self.names.start_of(pc - 1)
            while address < pc - 1:
                access = self.decoder.access(address)
                if access is None:
                    break
                address += access.size
            self._is_after_hlt[pc] = address == pc - 1
        return self._is_after_hlt[pc]

    def _redo(self) -> None:
        """Repeat a store that a fault changes, then overwrite its words."""
        stores = self.stores
        while stores.rewrites:
            rewrite_count = len(stores.rewrites)
            self._run(self.pc(), 1)
            # The repeated instruction may make further stores that a fault changes.
            if len(stores.rewrites) == rewrite_count:
                stores.apply_rewrites()
        stores.counted.clear()

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
        self._refuse_nesting()
        self.start(thread, address, arguments)
        while budget > 0:
            executed_before = thread.executed
            outcome = self.advance(thread, budget)
            self.timer.spend()
            match outcome:
                case Finished(result):
                    if self.order is not None:
                        self.order.drain_all(thread.number)
                    return result
                case Blocked(action="exit") as blocked:
                    thread.finished = True
                    return blocked.result
                case Blocked() as blocked:
                    if blocked.ns:
                        self.target.clock.advance(blocked.ns)
                    # A wait costs one instruction, so that a loop of waits ends as well.
                    thread.executed = executed_before + 1
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
        """Return an error with its position, if it has none."""
        return error if error.frames else self.error(error.message)

    def backtrace(self) -> tuple[tuple[Frame, ...], dict[str, int]]:
        """Return the frames, innermost first, and the registers."""
        registers = self.engine.registers()

        def load(address: int) -> int | None:
            word_bytes = self.space.read_some(address, 8)
            return int.from_bytes(word_bytes, "little") if len(word_bytes) == 8 else None

        in_provided_code = TRAPS_AT < registers["rip"] < self.provided.code_end
        frames = self.names.backtrace(registers, load, self._is_code, leaf=in_provided_code)
        return frames, registers

    def _is_code(self, address: int) -> bool:
        """Return whether code of the program, or for it, is at an address."""
        region = self.space.find(address)
        return region is not None and bool(region.permissions & RUN) and address != _EXIT


def _identity(device: Any) -> int:
    return id(getattr(device, "_vmo", device))
