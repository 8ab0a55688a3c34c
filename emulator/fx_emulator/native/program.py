"""Native programs on a target: load an object file, call its functions, start its threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs

from fx_emulator import kernel as k
from fx_emulator.memory import Memory
from fx_emulator.native.calls import Blocked
from fx_emulator.native.devices import MappedDevice
from fx_emulator.native.errors import Frame, NativeError
from fx_emulator.native.machine import BUDGET, Machine
from fx_emulator.native.threads import Finished, NativeThread, Stopped
from fx_emulator.socket import DatagramSocket
from fx_emulator.vmo import Mapping as VmoMapping
from fx_emulator.vmo import Vmo

Argument = int | bytes | str | Memory | Vmo | VmoMapping | DatagramSocket
"""Argument of a native function: an integer, bytes or text (copied, with a NUL), a memory (mapped;
passed as its address), or a socket (passed as a handle)."""

QUANTUM = 1000
"""Average number of instructions that a kernel thread runs at a time."""


@attrs.frozen
class Store:
    """One store of a native program into a device."""

    thread: int
    pc: int
    offset: int
    size: int
    value: int
    """Unsigned."""
    frame: Frame
    name: str
    """The thread's name."""

    def __str__(self) -> str:
        width = 2 + 2 * self.size
        return (
            f"{self.name}: {self.frame}: byte {self.offset}, "
            f"{self.size} bytes: {self.value:#0{width}x}"
        )


class StoreTrace:
    """Stores into one device, in order; frames are looked up on access."""

    def __init__(self, program: NativeProgram, device: MappedDevice) -> None:
        self.program = program
        self.device = device
        self.first = device.image()
        """The device's bytes before the first store."""
        self.raw: list[tuple[int, int, int, int, int]] = []
        """``(thread, pc, offset, size, value)`` of each store."""

    def __len__(self) -> int:
        """Number of stores."""
        return len(self.raw)

    def __getitem__(self, number: int) -> Store:
        """Return store ``number``, from 0."""
        thread, pc, offset, size, value = self.raw[number]
        machine = self.program.machine
        name = machine.threads[thread].name
        return Store(thread, pc, offset, size, value, machine.names.frame(pc), name)

    def __iter__(self) -> Iterator[Store]:
        """Yield the stores in order."""
        return (self[number] for number in range(len(self)))


class NativeEntry:
    """A function of a native program with its arguments, to be called, crash-tested or explored."""

    def __init__(
        self, program: NativeProgram, name: str, arguments: Sequence[Argument], budget: int
    ) -> None:
        self.program = program
        self.name = name
        self.arguments = tuple(arguments)
        self.budget = budget
        self.address = program.machine.address_of(name)

    def __repr__(self) -> str:
        return f"<NativeEntry: {self.name} of {self.program.path.name}>"

    @property
    def memory(self) -> Any:
        """The first memory among the arguments, or None."""
        kinds = (Memory, Vmo, VmoMapping)
        return next((value for value in self.arguments if isinstance(value, kinds)), None)

    def __call__(self, *more: Argument) -> int:
        """Run to the end, with further arguments appended. Return the result."""
        return self.program.call(self.name, *self.arguments, *more, budget=self.budget)

    def record(self, memory: Any = None) -> StoreTrace:
        """Run and record each store into a memory (default: the first among the arguments).

        Raises NativeError for an invalid operation of the program, and if there is no memory.
        """
        device = self.memory if memory is None else memory
        if device is None:
            raise NativeError(
                f"{self.name} has no memory among its arguments; "
                f"use program.entry({self.name!r}, memory)"
            )
        return self.program.record(device, self)


class NativeProgram:
    """An object file loaded on a target; created by ``Target.load``."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.target = machine.target
        self.path = machine.file.path

    def __repr__(self) -> str:
        return f"<NativeProgram: {self.path.name}, {len(self.symbols)} symbols>"

    @property
    def symbols(self) -> dict[str, int]:
        """Addresses of the functions and variables that the file defines, by name."""
        return {
            name: symbol.address
            for name, symbol in self.machine.file.symbols.items()
            if symbol.kind in {"func", "object", "ifunc", "none"}
        }

    @property
    def output(self) -> bytes:
        """Bytes that the program printed."""
        return bytes(self.machine.output)

    def close(self) -> None:
        """Free the emulated CPU."""
        self.machine.close()

    # --- memory ---

    def address(self, device: Any) -> int:
        """Return the address of a Memory or Vmo in the program, mapping it if needed."""
        return self.machine.map_device(device).region.start

    def handle(self, thing: Vmo | DatagramSocket) -> int:
        """Return a handle to a device, for the program's Zircon calls."""
        return self.machine.handles.add(thing)

    def read(self, address: int | str, size: int) -> bytes:
        """Return ``size`` bytes of the program's memory, at an address or symbol."""
        return self.machine.space.read(self._resolved(address), size)

    def write(self, address: int | str, data: bytes) -> None:
        """Write bytes into the program's memory, at an address or symbol."""
        self.machine.space.write(self._resolved(address), data)

    def _resolved(self, address: int | str) -> int:
        """Return an address, which may be given by a symbol."""
        if isinstance(address, str):
            return self.machine.address_of(address)
        return address

    def convert(self, arguments: Sequence[Argument]) -> list[int]:
        """Return the integers to pass in registers for arguments."""
        return [self._convert(argument) for argument in arguments]

    def _convert(self, argument: Argument) -> int:
        match argument:
            case int():
                return argument & (1 << 64) - 1
            case str():
                return self._copied(argument.encode())
            case bytes() | bytearray():
                return self._copied(bytes(argument))
            case DatagramSocket():
                return self.handle(argument)
            case _:
                return self.address(argument)

    def _copied(self, data: bytes) -> int:
        """Copy bytes into a new block, followed by a NUL. Return its address."""
        block_address = self.machine.heap.allocate(len(data) + 1)
        if not block_address:
            raise NativeError(f"the heap is too full for an argument of {len(data)} bytes")
        self.machine.space.write(block_address, data + b"\0")
        return block_address

    # --- running ---

    def call(
        self,
        name: str,
        *arguments: Argument,
        thread: NativeThread | None = None,
        budget: int = BUDGET,
    ) -> int:
        """Call a function and run it to its end. Return RAX as a signed number.

        ``thread`` is the result of ``thread()``; None: the program's first thread. Raises
        NativeError for an invalid operation, BudgetError after ``budget`` instructions, Crash if a
        device's fault stops the program, and the exceptions of Python functions in ``symbols``.
        """
        machine = self.machine
        result = machine.run(
            thread or machine.main, machine.address_of(name), self.convert(arguments), budget
        )
        if result >> 63:
            return result - (1 << 64)
        return result

    def entry(self, name: str, *arguments: Argument, budget: int = BUDGET) -> NativeEntry:
        """Return a function with its arguments, for ``crashtest`` and ``explore``."""
        return NativeEntry(self, name, arguments, budget)

    def thread(self, name: str, *, process: str = "", cpu: int | None = None) -> NativeThread:
        """Create a thread for ``call``, with its own stack, variables, koid and CPU."""
        owner = self.target.process(process or self.path.name)
        return self.machine.new_thread(name, owner.koid, cpu=cpu)

    def record(self, device: Any, run: Callable[[], object]) -> StoreTrace:
        """Record each store into a device while ``run`` runs."""
        machine = self.machine
        mapped = machine.map_device(device)
        trace = StoreTrace(self, mapped)
        append = trace.raw.append

        def sink(stored_into: MappedDevice, offset: int, size: int, value: int, pc: int) -> None:
            if stored_into is mapped:
                current = machine.current
                thread = current.number if current is not None else 0
                append((thread, pc, offset, size, value))

        outer_sink = machine.listeners.sink
        machine.listeners.sink = sink
        try:
            run()
        finally:
            machine.listeners.sink = outer_sink
        return trace

    # --- threads of the kernel ---

    def spawn(
        self,
        name: str,
        *arguments: Argument,
        process: str = "app",
        thread: str = "main",
        priority: int = k.DEFAULT_PRIORITY,
        cpu: int | None = None,
        background: bool = False,
        quantum: int = QUANTUM,
        budget: int = BUDGET,
        signal: NativeEntry | None = None,
    ) -> NativeThread:
        """Start a kernel thread that runs a function; ``target.run()`` runs it.

        The kernel may switch to another thread after every ``quantum`` instructions on average
        (each time 1 to twice as many, drawn from the target's seed; 1: after each instruction);
        they take once to twice their time. With ``signal``, its function interrupts the thread at
        some of these points, as a profiler's handler does. An error of the program ends its process
        and is raised by ``target.run()``.
        """
        machine = self.machine
        entry_address = machine.address_of(name)
        argument_values = self.convert(arguments)
        native_threads: list[NativeThread] = []

        def body(owner: k.Thread) -> k.Body:
            native = machine.new_thread(thread, owner.process.koid, owner.koid)
            native.kernel_thread = owner
            native_threads.append(native)
            machine.start(native, entry_address, argument_values)
            native.budget = budget
            rng = k.Random(self.target.seed * 0x9E3779B1 + owner.koid)
            return self._body(native, rng, quantum, signal)

        self.target.spawn(process, thread, body, priority=priority, cpu=cpu, background=background)
        return native_threads[0]

    def _body(
        self, thread: NativeThread, rng: k.Random, quantum: int, signal: NativeEntry | None
    ) -> k.Body:
        """Run the thread in slices, as a body of the kernel."""
        machine = self.machine
        # Other threads may run before its first instruction, or in the middle of it.
        machine.splitter.pause(thread, rng)
        yield k.Run(rng.below(2))
        while True:
            instruction_count = 1
            if quantum > 1:
                instruction_count += rng.below(2 * quantum - 1)
            if signal is not None and not thread.interrupted and not rng.below(4):
                machine.interrupt(thread, signal.address, self.convert(signal.arguments))
            outcome = machine.advance(thread, instruction_count)
            if isinstance(outcome, Stopped):
                machine.splitter.pause(thread, rng)
            elapsed_ns = machine.timer.take()
            if machine.order is not None and isinstance(outcome, Finished):
                machine.order.drain_all(thread.number)
            elif machine.order is not None:
                # So that others see some of its stores.
                machine.order.drain_some(thread.number, rng)
            match outcome:
                case Finished():
                    # A slice takes once to twice the time of its instructions, so that the order
                    # in which threads go on is not that of their numbers of instructions.
                    yield k.Run(elapsed_ns + rng.below(elapsed_ns + 1))
                    return None
                case Blocked(action="exit"):
                    thread.finished = True
                    thread.result = outcome.result
                    return None
                case Blocked(action="sleep"):
                    yield k.Sleep(outcome.ns)
                case Blocked():
                    yield k.Yield()
                case _:
                    if thread.executed >= thread.budget:
                        raise machine.endless(thread)
                    yield k.Run(elapsed_ns + rng.below(elapsed_ns + 1))
