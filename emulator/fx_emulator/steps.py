"""Devices and steps of scenarios: the target as TOML declares it, and the steps that act on it.

Only this module, ``native_steps`` and ``plugin`` import fxframework; the emulator itself does not.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from fractions import Fraction
from typing import Any

import attrs

from fx_emulator import faults
from fx_emulator import kernel as k
from fx_emulator.clock import VirtualClock
from fx_emulator.cpu import MOST_CPUS, MOST_NODE, Tsc
from fx_emulator.errors import Crash, EmulatorError
from fx_emulator.memory import WORD, Memory, StoreFault
from fx_emulator.socket import DatagramSocket
from fx_emulator.target import Target
from fx_emulator.trace_buffer import HEADER_BYTES, MODES, PAGE, TraceEngine
from fx_emulator.vmo import MOST_BYTES
from fxframework.kit.steps import Duration, Outcome, Run, parameter
from fxframework.model.target import Program, SchedulerListener

INVALID = ("disconnect", "count")
DURABLE_FULL = ("drop", "stop", "pad")


# --- The target ----------------------------------------------------------------------------------


@attrs.frozen
class _Wait:
    event: str
    timeout_ns: int | None = None


@attrs.frozen
class _Signal:
    event: str


@attrs.frozen
class MachineThread:
    """A thread as programs see it (``fxframework.model.target.Thread``), of a thread of the kernel.

    Each signal of an event ends one wait.
    """

    ids: tuple[int, int]
    """Koids of process and thread."""
    counter: Tsc
    """The counter of the CPU that it is on."""
    clock: VirtualClock
    """The machine's clock."""

    run = staticmethod(k.Run)
    sleep = staticmethod(k.Sleep)
    wait = staticmethod(_Wait)
    signal = staticmethod(_Signal)
    migrate = staticmethod(k.Migrate)
    give_way = staticmethod(k.Yield)


class _Guarded:
    """A scheduler listener that is dropped when a fault crashes it."""

    def __init__(self, machine: Machine, listener: SchedulerListener) -> None:
        self._machine = machine
        self._listener: SchedulerListener | None = listener

    def context_switch(self, **event: int) -> None:
        """Forward to the listener."""
        self._forward("context_switch", event)

    def wakeup(self, **event: int) -> None:
        """Forward to the listener."""
        self._forward("wakeup", event)

    def _forward(self, method: str, event: dict[str, int]) -> None:
        if self._listener is None:
            return
        try:
            getattr(self._listener, method)(**event)
        except Crash as crash:
            self._listener = None
            self._machine.crashed(f"{crash}; in the kernel, which stops tracing")


class _Count:
    """An event with a count of its signals."""

    def __init__(self, name: str) -> None:
        self.event = k.Event(name, auto_reset=True)
        self.signals = 0


class _Events(dict[str, _Count]):
    """Events by name, created at first use."""

    def __missing__(self, name: str) -> _Count:
        count = _Count(name)
        self[name] = count
        return count


class Machine:
    """A target as steps see it (``fxframework.model.target.Target``); wraps ``target``."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._events = _Events()
        self._crashes: list[str] = []
        """Messages of the crashes of the current run."""

    @property
    def counter(self) -> Tsc:
        """The counter of the current thread's CPU."""
        return self.target.counter

    @property
    def clock(self) -> VirtualClock:
        """The machine's clock."""
        return self.target.clock

    def spawn(
        self,
        process: str,
        name: str,
        program: Program,
        *,
        priority: int = k.DEFAULT_PRIORITY,
        cpu: int | None = None,
        background: bool = False,
    ) -> MachineThread:
        """Start a thread in the process of a name, which is created at first use."""
        threads: list[MachineThread] = []

        def body(kernel_thread: k.Thread) -> k.Body:
            thread = MachineThread(kernel_thread.ids, kernel_thread.counter, kernel_thread.clock)
            threads.append(thread)
            return self._body(program(thread))

        # The kernel calls ``body`` at once.
        self.target.spawn(process, name, body, priority=priority, cpu=cpu, background=background)
        return threads[0]

    def _body(self, program: Generator[Any, Any, object]) -> k.Body:
        """Return a program as a body of the kernel, with signals and waits that count."""
        value: Any = None
        try:
            while True:
                action = program.send(value)
                match action:
                    case _Signal(name):
                        event = self._events[name]
                        event.signals += 1
                        value = yield k.Signal(event.event)
                    case _Wait(name, timeout_ns):
                        event = self._events[name]
                        value = True
                        # Woken threads compete for a signal; one that comes too late waits again.
                        while value and not event.signals:
                            value = yield k.Wait(event.event, timeout_ns)
                        if value:
                            event.signals -= 1
                    case _:
                        value = yield action
        except StopIteration:
            return None
        finally:
            program.close()

    def crashed(self, message: str) -> None:
        """Record a crash that did not end the run."""
        self._crashes.append(message)

    @property
    def waker(self) -> tuple[int, int] | None:
        """Koids of process and thread that wake another thread at the moment; None for timers."""
        waker = self.target.kernel.waker
        return None if waker is None else waker.ids

    def listen(self, listener: SchedulerListener) -> None:
        """Call a listener for scheduler events, with ticks of the CPUs' counters.

        A listener that crashes is not called again; the kernel goes on.
        """
        self.target.kernel.listen(_Guarded(self, listener), "tsc")

    def run(self, until_ns: int | None = None, *, budget: int = k.BUDGET) -> list[str]:
        """Let time pass. Return a message for each program that a fault stopped."""
        while True:
            try:
                self.target.run(until_ns, budget=budget)
            except Crash as crash:
                notes = getattr(crash, "__notes__", ())
                self._crashes.append("; ".join([str(crash), *notes]))
            else:
                crashes = self._crashes
                self._crashes = []
                return crashes

    def trace_buffer(self, nbytes: int) -> TraceEngine:
        """Return a oneshot buffer with room for ``nbytes`` of records."""
        size = -(-(HEADER_BYTES + nbytes) // PAGE) * PAGE
        return TraceEngine(Memory.anonymous(size, log=self.target.store_log), "oneshot")

    def log_socket(self, nbytes: int) -> DatagramSocket:
        """Return a socket with room for ``nbytes`` of datagrams that nothing else reads."""
        return DatagramSocket(max(nbytes, 1))

    def snapshot(self, name: str) -> bytes:
        """Return the contents of a device."""
        return self.target.snapshot(name)

    def close(self) -> None:
        """End all programs and free their memories."""
        self.target.close()

    def memory_of(self, name: str) -> Memory:
        """Return the memory of a device. Raises EmulatorError if it has none."""
        memory = self.target.devices[name].memory
        if memory is None:
            raise EmulatorError(f"device {name!r} has no memory for a fault of stores")
        return memory


# --- Devices -------------------------------------------------------------------------------------


@attrs.frozen
class TargetDevice:
    """The machine. Its scheduler follows the scenario's seed."""

    cpus: int = parameter(4, help="number of CPUs", least=1, most=MOST_CPUS)
    frequency: int = parameter(
        2_596_120_000, help="rate of their time-stamp counters, in Hz", least=1
    )
    step: int = parameter(26, help="granularity of the counters, in ticks", least=1)
    constant: bool = parameter(True, help="whether counters keep their rate in every P-state")
    nonstop: bool = parameter(True, help="whether counters run on in every C-state and in suspend")
    offsets: list[int] = parameter(factory=list, help="initial ticks of each CPU's counter")
    nodes: list[int] = parameter(
        factory=list, help="NUMA node of each CPU", least=0, most=MOST_NODE
    )
    read_cost: Duration = parameter(
        Duration(0), help="virtual time that reading a counter takes", least=0
    )
    ticks_per_second: int = parameter(1_000_000_000, help="rate of the system's clock", least=1)
    start: Duration = parameter(Duration(0), help="initial monotonic time", least=0)
    suspended: Duration = parameter(
        Duration(0), help="initial lead of boot time over monotonic time", least=0
    )
    slice: Duration = parameter(
        Duration(k.SLICE_NS),
        help="CPU time after which a thread yields to another of its priority",
        least=1,
    )
    save_delay: Duration = parameter(
        Duration(0),
        help="time after which the trace manager saves a full half of a buffer",
        least=0,
    )
    save: str = parameter(
        "delayed",
        help="whether the trace manager saves by itself, or only in a step target.save",
        choices=("delayed", "manual"),
    )
    store_log: bool = parameter(False, help="whether memories keep a log of their stores")

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for lists whose length is not the number of CPUs."""
        for name in ("offsets", "nodes"):
            values = getattr(self, name)
            if values and len(values) != self.cpus:
                raise ValueError(
                    f"{len(values)} {name} for {self.cpus} CPUs; give one for each CPU"
                )


def open_target(
    parameters: TargetDevice,
    run: Run,
    name: str,  # noqa: ARG001 (the same for all kinds)
) -> Machine:
    """Create the machine."""
    target_options = attrs.asdict(parameters, recurse=False)
    for duration in ("read_cost", "start", "suspended", "slice", "save_delay"):
        target_options[f"{duration}_ns"] = target_options.pop(duration)
    if target_options.pop("save") == "manual":
        target_options["save_delay_ns"] = None
    return Machine(Target(seed=run.seed, **target_options))


@attrs.frozen
class TraceProvider:
    """A trace provider, named after the device."""

    size: int = parameter(1 << 20, help="bytes of its buffer, whole pages of 4096", least=PAGE)
    mode: str = parameter("oneshot", help="what a full buffer does", choices=MODES)
    durable_full: str = parameter(
        "drop", help="what a full durable buffer does", choices=DURABLE_FULL
    )

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for a size that is not whole pages."""
        if self.size % PAGE:
            raise ValueError(f"invalid size {self.size}: must be a multiple of {PAGE} bytes")


@attrs.frozen
class VmoDevice:
    """A memory object."""

    size: int = parameter(4096, help="bytes, rounded up to pages of 4096", least=0, most=MOST_BYTES)
    resizable: bool = parameter(False, help="whether its size may change")


@attrs.frozen
class LogSocket:
    """A socket of log records."""

    capacity: int = parameter(1 << 18, help="most bytes in its queue", least=1)
    datagrams: int | None = parameter(None, help="most datagrams in its queue", least=1)
    invalid: str = parameter(
        "count", help="what the service does about an invalid record", choices=INVALID
    )


def open_device(parameters: TraceProvider | VmoDevice | LogSocket, run: Run, name: str) -> Any:
    """Add a device to the target."""
    add = {TraceProvider: "trace_provider", VmoDevice: "vmo", LogSocket: "log_socket"}
    add_device = getattr(run.target.target, add[type(parameters)])
    return add_device(name, **attrs.asdict(parameters, recurse=False))


# --- Time ----------------------------------------------------------------------------------------


@attrs.frozen
class TargetRun:
    """Let time pass; without ``for`` and ``until``, until no thread has anything to do."""

    for_: Duration | None = parameter(None, help="for how long", least=0)
    until: Duration | None = parameter(None, help="until this monotonic time", least=0)
    crashes: int = parameter(0, help="expected number of programs that a fault stops", least=0)
    budget: int = parameter(
        k.BUDGET, help="steps of threads after which the run counts as an endless loop", least=1
    )

    def __attrs_post_init__(self) -> None:
        """Raise ValueError where both ends are given."""
        if self.for_ is not None and self.until is not None:
            raise ValueError("`for` and `until` exclude each other")

    def do(self, run: Run) -> Outcome:
        """Run the target."""
        machine: Machine = run.target
        kernel = machine.target.kernel
        kernel.catch_up()  # with the clock, which may have jumped since the last run
        started_ns = kernel.now_ns
        switches_before = kernel.switches
        until_ns: int | None = self.until
        if self.for_ is not None:
            until_ns = started_ns + self.for_
        crashes = machine.run(until_ns, budget=self.budget)
        passed_ns = kernel.now_ns - started_ns
        switches = kernel.switches - switches_before
        facts = {"ns": passed_ns, "context_switches": switches, "crashes": crashes}
        if len(crashes) != self.crashes:
            reasons = "; ".join(crashes) or "none did"
            return Outcome.failed(
                f"{len(crashes)} programs crashed, not {self.crashes}: {reasons}", **facts
            )
        message = f"{passed_ns / 1e6:,.3f} ms, {switches:,} context switches"
        return Outcome.ok("; ".join([message, *crashes]), **facts)


@attrs.frozen
class TargetSuspend:
    """Suspend the machine."""

    for_: Duration = parameter(help="for how long", least=0)

    def do(self, run: Run) -> Outcome:
        """Advance boot time alone."""
        run.target.target.suspend(self.for_)
        return Outcome.ok()


@attrs.frozen
class ClockJump:
    """Step the clock: a fault."""

    by: Duration = parameter(help="how far; backwards if it is negative")
    at: Duration | None = parameter(
        None, help="monotonic time of the step; by default now", least=0
    )

    def do(self, run: Run) -> Outcome:
        """Step the clock now, or add a fault that steps it later."""
        clock: VirtualClock = run.target.clock
        if self.at is None:
            clock.jump(self.by)
        else:
            clock.faults.append(faults.ClockJump(self.at, self.by))
        return Outcome.ok()


@attrs.frozen
class CpuPstate:
    """Change the frequency of a core."""

    cpu: int = parameter(help="the CPU", least=0, below="cpus")
    ratio: float = parameter(help="ratio to the base frequency, 0.001 or more")

    def __attrs_post_init__(self) -> None:
        """Raise ValueError for a ratio that rounds to 0, or is not finite."""
        if not 0.001 <= self.ratio < math.inf:
            raise ValueError(f"invalid ratio {self.ratio}: must be 0.001 or more")

    def do(self, run: Run) -> Outcome:
        """Set the ratio of a core, rounded to thousandths."""
        run.target.target.processor.cpus[self.cpu].set_pstate(
            Fraction(round(self.ratio * 1000), 1000)
        )
        return Outcome.ok()


# --- Tracing and outputs -------------------------------------------------------------------------


@attrs.frozen
class TargetStop:
    """Stop tracing in all providers."""

    def do(self, run: Run) -> Outcome:
        """Stop the engines, which write the ends of their records."""
        target: Target = run.target.target
        target.stop()
        engines = {provider.name: provider.engine for provider in target.traces.providers}
        counts_by_name = {
            name: {"records": engine.records, "dropped": engine.dropped}
            for name, engine in engines.items()
        }
        records = sum(engine.records for engine in engines.values())
        dropped = sum(engine.dropped for engine in engines.values())
        return Outcome("ok", f"{records:,} records, {dropped:,} dropped", counts_by_name)


@attrs.frozen
class TargetSave:
    """Save the filled halves of streaming buffers."""

    def do(self, run: Run) -> Outcome:
        """Let the trace manager save the filled halves."""
        halves = run.target.target.traces.save()
        return Outcome.ok(f"{halves} halves", halves=halves)


@attrs.frozen
class TargetCrash:
    """Stop the machine."""

    def do(self, run: Run) -> Outcome:
        """Stop everything; devices can still be read."""
        run.target.target.crash()
        return Outcome.ok()


@attrs.frozen
class TargetSnapshot:
    """Save a device's contents as an output."""

    device: str = parameter(help="the device", refers="device")
    as_: str = parameter(help="the output", makes="output")

    def do(self, run: Run) -> Outcome:
        """Write the contents to the output."""
        device_bytes = run.bytes_of(self.device)
        run.put(self.as_, device_bytes)
        message = f"{len(device_bytes):,} bytes"
        device = run.device(self.device)
        if not isinstance(device, DatagramSocket):
            return Outcome.ok(message, bytes=len(device_bytes))
        log_service = run.target.target.log_services[self.device]
        service_counts = {
            "records": len(log_service.records),
            "dropped": device.dropped,
            "invalid": log_service.invalid,
            "lost": log_service.lost,
        }
        for noun, count in service_counts.items():
            if count:
                message += f", {count:,} {noun}"
        return Outcome.ok(message, bytes=len(device_bytes), **service_counts)


@attrs.frozen
class TargetArchive:
    """Save the trace manager's archive as an output."""

    as_: str = parameter(help="the output", makes="output")

    def do(self, run: Run) -> Outcome:
        """Write the archive to the output."""
        data: bytes = run.target.target.archive()
        run.put(self.as_, data)
        return Outcome.ok(f"{len(data):,} bytes", bytes=len(data))


# --- Faults --------------------------------------------------------------------------------------


@attrs.frozen
class FaultCrash:
    """Stop the program that stores into a device, between two stores."""

    device: str = parameter(help="the device", refers="device:trace_provider,vmo")
    stores: int = parameter(help="number of further stores that succeed", least=0)

    def do(self, run: Run) -> Outcome:
        """Arm the fault."""
        memory = _memory_of(run, self.device)
        return _arm(memory, faults.CrashAfter(memory.stores + self.stores))


@attrs.frozen
class FaultTornWrite:
    """Stop the program that stores into a device, within a store."""

    device: str = parameter(help="the device", refers="device:trace_provider,vmo")
    store: int = parameter(help="which of the following stores, from 0", least=0)
    nbytes: int = parameter(4, help="number of its low bytes that land, 1 to 7", least=1, most=7)

    def do(self, run: Run) -> Outcome:
        """Arm the fault."""
        memory = _memory_of(run, self.device)
        return _arm(memory, faults.TornWrite(memory.stores + self.store, self.nbytes))


@attrs.frozen
class FaultBitFlip:
    """Flip a bit of a store."""

    device: str = parameter(help="the device", refers="device:trace_provider,vmo")
    bit: int = parameter(help="number of the bit, 0 to 63", least=0, most=63)
    store: int | None = parameter(None, help="which of the following stores, from 0", least=0)
    offset: int | None = parameter(None, help="only stores to this byte, a multiple of 8", least=0)

    def __attrs_post_init__(self) -> None:
        """Raise ValueError without store and offset, and for an offset within a word."""
        if self.store is None and self.offset is None:
            raise ValueError("give `store`, `offset`, or both")
        if self.offset is not None and self.offset % WORD:
            raise ValueError(f"invalid offset {self.offset}: must be a multiple of {WORD}")

    def do(self, run: Run) -> Outcome:
        """Arm the fault."""
        memory = _memory_of(run, self.device)
        store = None
        if self.store is not None:
            store = memory.stores + self.store
        return _arm(memory, faults.BitFlip(bit=self.bit, store=store, offset=self.offset))


def _memory_of(run: Run, name: str) -> Memory:
    memory: Memory = run.target.memory_of(name)
    return memory


def _arm(memory: Memory, fault: StoreFault) -> Outcome:
    memory.faults.append(fault)
    return Outcome.ok(stores=memory.stores)


@attrs.frozen
class FaultFull:
    """Let a trace buffer drop records as if it were full."""

    device: str = parameter(help="the trace provider", refers="device:trace_provider")
    record: int = parameter(help="the first of the following records to drop, from 0", least=0)
    count: int = parameter(1, help="how many", least=0)

    def do(self, run: Run) -> Outcome:
        """Arm the fault."""
        engine: TraceEngine = run.device(self.device)
        first_record = engine.records + engine.dropped + self.record
        engine.faults.append(faults.FullBuffer(first_record, self.count))
        return Outcome.ok()


@attrs.frozen
class FaultDrop:
    """Let a socket drop datagrams."""

    device: str = parameter(help="the socket", refers="device:log_socket")
    datagram: int = parameter(help="the first of the following datagrams to drop, from 0", least=0)
    count: int = parameter(1, help="how many", least=0)

    def do(self, run: Run) -> Outcome:
        """Arm the fault."""
        socket: DatagramSocket = run.device(self.device)
        socket.faults.append(faults.DropDatagram(socket.attempts + self.datagram, self.count))
        return Outcome.ok()
