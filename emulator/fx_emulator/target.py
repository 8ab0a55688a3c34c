"""The target: an emulated Fuchsia machine on x86-64, composed of its devices.

Every device has a name, and all that happens follows from the seed and the calls.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import attrs

from fx_emulator.clock import VirtualClock
from fx_emulator.cpu import Processor, Tsc
from fx_emulator.errors import Crash, EmulatorError
from fx_emulator.kernel import BUDGET, DEFAULT_PRIORITY, SLICE_NS, Body, Kernel, Process, Thread
from fx_emulator.memory import Memory
from fx_emulator.socket import DatagramSocket, LogService
from fx_emulator.trace_buffer import Mode, TraceEngine, TraceManager
from fx_emulator.vmo import Vmo

if TYPE_CHECKING:
    from fx_emulator.native.machine import Machine
    from fx_emulator.native.process import LinuxProcess
    from fx_emulator.native.program import NativeProgram

Kind = Literal["vmo", "trace", "log"]


@attrs.frozen
class Device:
    """A device of a target, as ``Target.devices`` lists it."""

    kind: Kind
    """``vmo``; ``trace``, the buffer of a trace provider; ``log``, a socket of log records."""
    name: str
    koid: int
    device: Vmo | TraceEngine | DatagramSocket
    memory: Memory | None = None
    """The memory of the device, with its store log and faults; None if it has none."""


class Target:
    """Clock, processor, kernel, trace manager, VMOs and log sockets of one emulated machine.

    Args:
        seed: seed of the scheduler's choices.
        cpus: number of CPUs.
        ticks_per_second: rate of the system's clock.
        start_ns: initial monotonic time.
        suspended_ns: initial lead of boot time over monotonic time.
        instructions_per_second: rate at which native programs execute, and time passes for them.
        slice_ns: CPU time after which a thread yields to another of its priority.
        save_delay_ns: virtual time after which the trace manager saves a half of a streaming
            buffer that is full; None: only ``traces.save()`` saves.
        store_log: whether all memories keep a log of their stores.
        processor: options of Processor: frequency, step, constant, nonstop, offsets, …

    A context manager, which ends all threads and closes all memories on exit.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        cpus: int = 4,
        ticks_per_second: int = 1_000_000_000,
        start_ns: int = 0,
        suspended_ns: int = 0,
        instructions_per_second: int = 1_000_000_000,
        slice_ns: int = SLICE_NS,
        save_delay_ns: int | None = 0,
        store_log: bool = False,
        **processor: Any,
    ) -> None:
        if instructions_per_second < 1:
            raise EmulatorError(
                f"invalid instructions_per_second {instructions_per_second}: must be at least 1"
            )
        self.seed = seed
        self.instructions_per_second = instructions_per_second
        self.store_log = store_log
        self.clock = VirtualClock(
            ticks_per_second=ticks_per_second, start_ns=start_ns, suspended_ns=suspended_ns
        )
        self.processor = Processor(self.clock, cpus, **processor)
        self.kernel = Kernel(self.clock, self.processor, seed=seed, slice_ns=slice_ns)
        self.kernel.discarding = self._discarding
        self.traces = TraceManager(self.clock, save_delay_ns=save_delay_ns)
        self.devices: dict[str, Device] = {}
        """All devices by name, in order of creation."""
        self.processes: dict[str, Process] = {}
        self.log_services: dict[str, LogService] = {}
        """The service that reads each log socket, by the socket's name."""
        self.crashed: Crash | None = None
        """The crash that stopped the machine, or None."""
        self._machines: list[Machine] = []

    @property
    def counter(self) -> Tsc:
        """The time-stamp counter of the current thread's CPU, for a writer that threads share."""
        return self.kernel.counter

    # --- Devices ---

    def vmo(
        self,
        name: str,
        size: int = 0,
        *,
        resizable: bool = False,
        memory: Memory | None = None,
    ) -> Vmo:
        """Create a VMO of ``size`` zero bytes, or over a memory."""
        self._check_name(name)
        koids = self.kernel.koids
        if memory is None:
            vmo = Vmo.create(size, name=name, resizable=resizable, koids=koids, log=self.store_log)
        else:
            vmo = Vmo.over(memory, name=name, resizable=resizable, koids=koids)
        self._enter("vmo", name, vmo.koid, vmo, vmo.memory)
        return vmo

    def trace_provider(
        self,
        name: str,
        *,
        size: int = 1 << 20,
        mode: Mode = "oneshot",
        durable_full: Literal["drop", "stop", "pad"] = "drop",
        memory: Memory | None = None,
    ) -> TraceEngine:
        """Create a trace provider over a memory, or over ``size`` new bytes; return its engine.

        Trace writers put their records into the engine. ``memory`` may be a file, which another
        process can read meanwhile.
        """
        self._check_name(name)
        if memory is None:
            memory = Memory.anonymous(size, log=self.store_log)
        engine = TraceEngine(memory, mode, durable_full=durable_full)
        self.traces.add(name, engine)
        self._enter("trace", name, next(self.kernel.koids), engine, memory)
        return engine

    def log_socket(
        self,
        name: str,
        *,
        capacity: int = 1 << 18,
        datagrams: int | None = None,
        invalid: Literal["disconnect", "count"] = "count",
    ) -> DatagramSocket:
        """Create a socket for log records, and the service that reads them.

        ``snapshot`` lets the service read; ``log_services[name].drain()`` does so earlier.
        """
        self._check_name(name)
        socket = DatagramSocket(capacity, datagrams=datagrams)
        self.log_services[name] = LogService(socket, invalid=invalid)
        self._enter("log", name, next(self.kernel.koids), socket)
        return socket

    def process(self, name: str) -> Process:
        """Return the process of a name, created at first use."""
        if name not in self.processes:
            self._check_running()
            self.processes[name] = self.kernel.process(name)
        return self.processes[name]

    def load(
        self,
        path: str | os.PathLike[str],
        *,
        symbols: Mapping[str, Any] | None = None,
        memory_order: Literal["program", "tso"] = "program",
        stack: int = 256 << 10,
    ) -> NativeProgram:
        """Load a native program: an ELF object, shared object or static executable for x86-64.

        ``symbols`` defines symbols that neither the file nor the target defines: Python functions
        of integers, addresses, or bytes of variables. With ``memory_order="tso"`` stores go through
        store buffers. Raises ``native.LoadError`` for a file that cannot be loaded, and
        ``native.MissingPackageError`` if the extra ``native`` is not installed.
        """
        from fx_emulator.native.program import NativeProgram

        return NativeProgram(
            self._load(path, symbols=symbols, memory_order=memory_order, stack=stack)
        )

    def execute(
        self,
        path: str | os.PathLike[str],
        arguments: Sequence[str] = (),
        *,
        environment: Mapping[str, str] | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> LinuxProcess:
        """Prepare a static Linux executable, with its libc; ``run()`` runs it.

        The executable reads ``files`` by path; files that it writes are in the process's ``files``.
        It has one thread, and the system calls that a libc needs (``native.linux``). Raises the
        errors of ``load``.
        """
        from fx_emulator.native.process import LinuxProcess

        machine = self._load(path, system="linux", stack=8 << 20)
        return LinuxProcess(machine, arguments, environment or {}, files or {})

    def _load(self, path: str | os.PathLike[str], **options: Any) -> Machine:
        """Load a file into a machine of its own, which is closed with the target."""
        from fx_emulator.native.machine import Machine

        self._check_running()
        machine = Machine(self, os.fspath(path), **options)
        self._machines.append(machine)
        return machine

    # --- Running ---

    def spawn(
        self,
        process: Process | str,
        name: str,
        body: Body | Callable[[Thread], Body],
        *,
        priority: int = DEFAULT_PRIORITY,
        cpu: int | None = None,
        background: bool = False,
    ) -> Thread:
        """Start a thread in a process, given by object or name (``Kernel.spawn``, ``process``)."""
        self._check_running()
        if isinstance(process, str):
            process = self.process(process)
        return self.kernel.spawn(
            process, name, body, priority=priority, cpu=cpu, background=background
        )

    def run(self, until_ns: int | None = None, *, budget: int = BUDGET) -> None:
        """Let virtual time pass (``Kernel.run``)."""
        self._check_running()
        self.kernel.run(until_ns, budget=budget)

    def suspend(self, ns: int) -> None:
        """Suspend the machine for ``ns`` (``Kernel.suspend``)."""
        self._check_running()
        self.kernel.suspend(ns)

    def stop(self) -> None:
        """Stop tracing; the buffers' headers then give the ends of their records."""
        self._check_running()
        self.traces.stop()

    def crash(self, why: str = "the machine stopped") -> None:
        """Stop everything at once. Memories can still be read, but accept no more stores."""
        if self.crashed is not None:
            return
        self.crashed = Crash(why)
        for memory in self._memories():
            if memory.crashed is None:
                memory.halt(self.crashed)
        self._end_all()

    # --- Outputs ---

    def snapshot(self, name: str) -> bytes:
        """Return the bytes of a VMO or trace buffer, or the log records that a service received.

        Raises EmulatorError for an unknown name.
        """
        device_entry = self.devices.get(name)
        if device_entry is None:
            known_names = ", ".join(map(repr, self.devices)) or "none"
            raise EmulatorError(f"no device {name!r}; the devices are: {known_names}")
        if isinstance(device_entry.device, DatagramSocket):
            service = self.log_services[name]
            service.drain()
            return service.capture()
        if isinstance(device_entry.device, TraceEngine):
            memory: Any = device_entry.device.memory
        else:
            memory = device_entry.device
        data: bytes = memory.read(0, memory.size)
        return data

    def archive(self) -> bytes:
        """Return the archive that the trace manager makes of all providers."""
        return self.traces.archive()

    def close(self) -> None:
        """End all threads without storing anything, and close all memories."""
        self._end_all()
        for machine in self._machines:
            machine.close()
        for memory in self._memories():
            memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- helpers ---

    def _enter(
        self, kind: Kind, name: str, koid: int, device: Any, memory: Memory | None = None
    ) -> None:
        self.devices[name] = Device(kind, name, koid, device, memory)

    def _memories(self) -> Iterator[Memory]:
        return (entry.memory for entry in self.devices.values() if entry.memory is not None)

    @contextlib.contextmanager
    def _discarding(self) -> Iterator[None]:
        """Drop all stores while the ``finally`` clauses of ended programs run."""
        ended = Crash("the program has ended")
        halted = [memory for memory in self._memories() if memory.crashed is None]
        for memory in halted:
            memory.halt(ended)
        try:
            yield
        finally:
            for memory in halted:
                memory.resume()

    def _end_all(self) -> None:
        for process in self.kernel.processes:
            with contextlib.suppress(EmulatorError):
                self.kernel.kill(process)

    def _check_running(self) -> None:
        if self.crashed is not None:
            raise EmulatorError(f"the target has crashed ({self.crashed}); create another one")

    def _check_name(self, name: str) -> None:
        self._check_running()
        reason = ""
        if not name:
            reason = "it is empty"
        elif name in self.devices:
            reason = "another device has it"
        if reason:
            raise EmulatorError(f"invalid device name {name!r}: {reason}; names must be unique")
