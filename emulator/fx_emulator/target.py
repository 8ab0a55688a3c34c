"""The target: an emulated Fuchsia on an x86-64 processor, made of its devices.

Every device has a name, and everything that happens follows from the seed and the calls.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

import attrs

from fx_emulator.clock import VirtualClock
from fx_emulator.cpu import Processor, ProcessorOptions, Tsc
from fx_emulator.errors import Crash, EmulatorError
from fx_emulator.kernel import (
    BUDGET,
    DEFAULT_PRIORITY,
    SLICE_NS,
    Body,
    Kernel,
    Process,
    Thread,
)
from fx_emulator.memory import Memory
from fx_emulator.socket import DatagramSocket, LogService
from fx_emulator.trace_buffer import Mode, TraceEngine, TraceManager
from fx_emulator.vmo import Vmo

if TYPE_CHECKING:
    from fx_emulator.native.machine import Machine
    from fx_emulator.native.process import LinuxProcess
    from fx_emulator.native.program import NativeProgram

__all__ = ["Device", "Target"]

Kind = Literal["vmo", "trace", "log"]


@attrs.frozen
class Device:
    """A device of a target, for those who list them."""

    kind: Kind
    """``vmo``; ``trace``, the buffer of a trace provider; ``log``, a socket of log records."""
    name: str
    koid: int
    device: Vmo | TraceEngine | DatagramSocket
    memory: Memory | None = None
    """What a store into the device goes to: for its store log, and for faults."""


class Target:
    """Clock, processor, kernel, trace manager, VMOs and log sockets of one emulated machine.

    Args:
        seed: what the scheduler's choices follow from.
        cpus: how many CPUs there are.
        ticks_per_second: rate of the system's clock.
        start_ns: monotonic time at the beginning.
        suspended_ns: how far boot time is ahead of it then.
        slice_ns: CPU time after which a thread makes room for another of its priority.
        save_delay_ns: virtual time after which the trace manager saves a half of a streaming
            buffer that filled up; None, only ``traces.save()`` does.
        store_log: whether all memories keep a log of their stores.
        processor: the options of the Processor: frequency, step, constant, nonstop, offsets, …

    A context manager: at its end, what still runs is ended and memories are closed.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        cpus: int = 4,
        ticks_per_second: int = 1_000_000_000,
        start_ns: int = 0,
        suspended_ns: int = 0,
        slice_ns: int = SLICE_NS,
        save_delay_ns: int | None = 0,
        store_log: bool = False,
        **processor: Unpack[ProcessorOptions],
    ) -> None:
        self.seed = seed
        self.store_log = store_log
        self.clock = VirtualClock(
            ticks_per_second=ticks_per_second, start_ns=start_ns, suspended_ns=suspended_ns
        )
        self.processor = Processor(self.clock, cpus, **processor)
        self.kernel = Kernel(self.clock, self.processor, seed=seed, slice_ns=slice_ns)
        self.kernel.discarding = self._discarding
        self.traces = TraceManager(self.clock, save_delay_ns=save_delay_ns)
        self.devices: dict[str, Device] = {}
        """All devices by their names, in the order in which they were made."""
        self.processes: dict[str, Process] = {}
        self.log_services: dict[str, LogService] = {}
        """What reads each log socket, by the socket's name."""
        self.crashed: Crash | None = None
        """Why the machine stopped."""
        self._programs: list[NativeProgram | Machine] = []

    @property
    def counter(self) -> Tsc:
        """The time-stamp counter where the current thread is: for a writer that threads share."""
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
        """Make a VMO of ``size`` zero bytes, or over a memory."""
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
        """Make a trace provider: its engine, over a buffer of ``size`` bytes or a memory.

        The engine is where a trace writer puts its records. ``memory`` may be a file, which another
        process reads meanwhile.
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
        """Make a socket of log records, and the service that reads them when ``snapshot`` asks.

        ``log_services[name].drain()`` lets the service read before that.
        """
        self._check_name(name)
        socket = DatagramSocket(capacity, datagrams=datagrams)
        self.log_services[name] = LogService(socket, invalid=invalid)
        self._enter("log", name, next(self.kernel.koids), socket)
        return socket

    def process(self, name: str) -> Process:
        """The process of a name, made where there is none."""
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

        ``symbols`` gives what the file leaves undefined and the target does not have: Python
        functions of integers, addresses, or bytes of variables. With ``memory_order="tso"`` stores
        wait in store buffers. Raises ``native.LoadError`` for a file that cannot be loaded,
        ``native.MissingPackageError`` where the extra ``native`` is not installed.
        """
        from fx_emulator.native.program import NativeProgram

        self._check_running()
        program = NativeProgram(
            self, os.fspath(path), symbols=symbols, memory_order=memory_order, stack=stack
        )
        self._programs.append(program)
        return program

    def execute(
        self,
        path: str | os.PathLike[str],
        arguments: Sequence[str] = (),
        *,
        environment: Mapping[str, str] | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> LinuxProcess:
        """Prepare a static executable that was made for Linux, with its libc; ``run()`` runs it.

        It finds ``files`` by path; what it writes is in the process's ``files``. One thread, and
        the system calls that a libc needs (``native.linux``). Raises what ``load`` raises.
        """
        from fx_emulator.native.process import LinuxProcess

        self._check_running()
        process = LinuxProcess(self, os.fspath(path), arguments, environment or {}, files or {})
        self._programs.append(process.machine)
        return process

    # --- What happens ---

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
        """Start a thread in a process, given by its name too (``Kernel.spawn``, ``process``)."""
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
        """Suspend the machine for so long (``Kernel.suspend``)."""
        self._check_running()
        self.kernel.suspend(ns)

    def stop(self) -> None:
        """End tracing: the headers of the buffers say where their records end."""
        self._check_running()
        self.traces.stop()

    def crash(self, why: str = "the machine stopped") -> None:
        """Stop everything at once. Memories can be read, and take no store any more."""
        if self.crashed is not None:
            return
        self.crashed = Crash(why)
        for memory in self._memories():
            if memory.crashed is None:
                memory.halt(self.crashed)
        self._end_all()

    # --- What is left ---

    def snapshot(self, name: str) -> bytes:
        """What a device holds: the bytes of a VMO or trace buffer, or the log records received.

        Raises EmulatorError where there is none of that name.
        """
        entry = self.devices.get(name)
        if entry is None:
            known = ", ".join(map(repr, self.devices)) or "none"
            raise EmulatorError(f"no device {name!r}; there are: {known}")
        if isinstance(entry.device, DatagramSocket):
            service = self.log_services[name]
            service.drain()
            return service.capture()
        memory = entry.device.memory if isinstance(entry.device, TraceEngine) else entry.device
        return memory.read(0, memory.size)

    def archive(self) -> bytes:
        """The archive that the trace manager makes of all providers."""
        return self.traces.archive()

    def close(self) -> None:
        """End what still runs, without a trace, and close all memories."""
        self._end_all()
        for program in self._programs:
            program.close()
        for memory in self._memories():
            memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- within ---

    def _enter(
        self, kind: Kind, name: str, koid: int, device: Any, memory: Memory | None = None
    ) -> None:
        self.devices[name] = Device(kind, name, koid, device, memory)

    def _memories(self) -> Iterator[Memory]:
        return (entry.memory for entry in self.devices.values() if entry.memory is not None)

    @contextlib.contextmanager
    def _discarding(self) -> Iterator[None]:
        """Nothing is stored by programs that are no more, whose ``finally`` Python runs."""
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
            raise EmulatorError(f"the target has crashed ({self.crashed}); make another one")

    def _check_name(self, name: str) -> None:
        self._check_running()
        if not name or name in self.devices:
            what = "another device has" if name else "is none:"
            raise EmulatorError(f"the name {name!r}: {what} it; give each its own")
