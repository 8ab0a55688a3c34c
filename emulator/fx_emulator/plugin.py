"""Hook implementations: devices of scenarios, and the steps of the target. Cheap to import."""

from __future__ import annotations

from collections.abc import Iterable

from fxframework import hookimpl
from fxframework.registry import DeviceKind, StepKind, lazy, lazy_type

DEVICES = (
    ("target", "The emulated machine.", "TargetDevice", "open_target"),
    ("trace_provider", "A provider of traces, with its buffer.", "TraceProvider", "open_provider"),
    ("vmo", "A memory object of whole pages.", "VmoDevice", "open_vmo"),
    ("log_socket", "A socket of log records, and the service behind it.", "LogSocket", "open_log"),
)
STEPS = (
    ("target.run", "Let virtual time pass, and threads run.", "RunFor", "run"),
    ("target.suspend", "Suspend the machine: boot time alone goes on.", "Suspend", "suspend"),
    ("target.stop", "Stop tracing, so that buffers say where they end.", "Stop", "stop"),
    ("target.crash", "Stop the whole machine at once.", "CrashTarget", "crash_target"),
    ("target.save", "Save the halves of streaming buffers that wait.", "Save", "save"),
    ("target.snapshot", "Keep what a device holds, as an output.", "Snapshot", "snapshot"),
    ("target.archive", "Keep the trace manager's archive, as an output.", "Archive", "archive"),
    ("clock.jump", "Step the clock, either way.", "ClockJump", "clock_jump"),
    ("cpu.pstate", "Change a core's frequency.", "PState", "pstate"),
    ("fault.crash", "Stop the program that makes a store too many.", "CrashFault", "crash"),
    ("fault.torn_write", "Stop a program within a store.", "TornFault", "torn_write"),
    ("fault.bit_flip", "Let a bit of a store arrive wrong.", "FlipFault", "bit_flip"),
    ("fault.full", "Let a trace buffer drop records as if it were full.", "FullFault", "full"),
    ("fault.drop", "Let a socket drop datagrams.", "DropFault", "drop"),
)
NATIVE_STEPS = (
    ("native.run", "Call a function of a native program.", "NativeRun", "native_run"),
    ("native.thread", "Start a thread of a native program.", "NativeThread", "native_thread"),
)


@hookimpl
def fx_devices() -> Iterable[DeviceKind]:
    """The target, and the devices that a scenario adds to it."""
    return [
        DeviceKind(
            name=name,
            title=title,
            open=lazy(f"fx_emulator.steps:{function}"),
            parameters=lazy_type(f"fx_emulator.steps:{parameters}"),
            sample=lazy("fx_emulator.sample:scenario"),
        )
        for name, title, parameters, function in DEVICES
    ]


@hookimpl
def fx_step_kinds() -> Iterable[StepKind]:
    """Steps for time, images, faults and native programs."""
    modules = (("fx_emulator.steps", STEPS), ("fx_emulator.native_steps", NATIVE_STEPS))
    return [
        StepKind(
            name=name,
            title=title,
            parameters=lazy_type(f"{module}:{parameters}"),
            run=lazy(f"{module}:{function}"),
            sample=None if steps is NATIVE_STEPS else lazy("fx_emulator.sample:scenario"),
        )
        for module, steps in modules
        for name, title, parameters, function in steps
    ]
