"""Hook implementations: devices of scenarios, and the steps of the target. Cheap to import."""

from __future__ import annotations

from collections.abc import Iterable

from fxframework import hookimpl
from fxframework.registry import DeviceKind, StepKind, lazy, lazy_type, step_kinds

DEVICES = (
    ("target", "The emulated machine.", "TargetDevice"),
    ("trace_provider", "A provider of traces, with its buffer.", "TraceProvider"),
    ("vmo", "A memory object of whole pages.", "VmoDevice"),
    ("log_socket", "A socket of log records, and the service behind it.", "LogSocket"),
)
STEPS = {
    "target.run": "Let virtual time pass, and threads run.",
    "target.suspend": "Suspend the machine: only boot time advances.",
    "target.stop": "Stop tracing: the buffers then say where their records end.",
    "target.crash": "Stop the whole machine at once.",
    "target.save": "Save the full halves of streaming buffers.",
    "target.snapshot": "Save a device's contents as an output.",
    "target.archive": "Save the trace manager's archive as an output.",
    "clock.jump": "Step the clock, either way.",
    "cpu.pstate": "Change a core's frequency.",
    "fault.crash": "Stop a program after a number of stores.",
    "fault.torn_write": "Stop a program within a store.",
    "fault.bit_flip": "Flip a bit of a store.",
    "fault.full": "Let a trace buffer drop records as if it were full.",
    "fault.drop": "Let a socket drop datagrams.",
}
NATIVE_STEPS = {
    "native.run": "Call a function of a native program.",
    "native.thread": "Start a thread of a native program.",
}


def scenario() -> str:
    """Return a scenario with every device, and every step that is not of a native program."""
    from fx_emulator.sample import SCENARIO

    return SCENARIO


@hookimpl
def fx_devices() -> Iterable[DeviceKind]:
    """The target, and the devices that a scenario adds to it."""
    return [
        DeviceKind(
            name=name,
            title=title,
            open=lazy(f"fx_emulator.steps:open_{'target' if name == 'target' else 'device'}"),
            parameters=lazy_type(f"fx_emulator.steps:{parameters}"),
            sample=scenario,
        )
        for name, title, parameters in DEVICES
    ]


@hookimpl
def fx_step_kinds() -> Iterable[StepKind]:
    """Steps for time, images, faults and native programs."""
    return [
        *step_kinds("fx_emulator.steps", STEPS, sample="fx_emulator.sample:SCENARIO"),
        *step_kinds("fx_emulator.native_steps", NATIVE_STEPS),
    ]
