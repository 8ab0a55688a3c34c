"""Steps of scenarios that run native programs, and what these are given."""

from __future__ import annotations

from typing import Any, Self

import attrs

from fx_emulator import kernel as k
from fx_emulator.errors import EmulatorError
from fx_emulator.socket import DatagramSocket
from fx_emulator.trace_buffer import TraceEngine
from fxframework.errors import MissingExtraError
from fxframework.kit.steps import Outcome, Run, parameter

__all__ = ["NativeArgument", "NativeRun", "NativeThread"]

BUDGET = 10_000_000
"""As ``fx_emulator.native.machine.BUDGET``, which is not loaded for it."""
ORDERS = ("program", "tso")


@attrs.frozen
class NativeArgument:
    """An argument of a native function: a number, a device's name, or ``{ text = "…" }``."""

    value: int | str
    text: bool = False

    @classmethod
    def from_toml(cls, value: Any) -> Self:
        """Make it; ValueError for what no argument can be."""
        if isinstance(value, dict) and set(value) == {"text"} and isinstance(value["text"], str):
            return cls(value["text"], text=True)
        if isinstance(value, int | str) and not isinstance(value, bool):
            return cls(value)
        raise ValueError(f"is {value!r}: not a number, a device's name, or {{ text = … }}")

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """What `fxf replay --schema` says of it."""
        table = {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        }
        return {"anyOf": [{"type": ["integer", "string"]}, table]}

    def given(self, run: Run) -> Any:
        """What the program is given: a device's memory, mapped; a socket, as a handle."""
        if self.text or isinstance(self.value, int):
            return self.value
        device = run.device(self.value)
        if isinstance(device, TraceEngine):
            return device.memory
        if isinstance(device, DatagramSocket) or hasattr(device, "load_u64"):
            return device
        raise EmulatorError(f"device {self.value!r} has no memory, and is not a socket")


@attrs.frozen
class NativeRun:
    """Call a function of an object file, and run it to its end, now."""

    object: str = parameter(help="the ELF file, beside the scenario", refers="file")
    entry: str = parameter(help="the function")
    arguments: list[NativeArgument] = parameter(
        factory=list, help='numbers, names of devices, `{ text = "…" }`'
    )
    budget: int = parameter(BUDGET, help="instructions after which it is ended", least=1)
    memory_order: str = parameter(
        "program", help="when other threads see its stores", choices=ORDERS
    )
    returns: int | None = parameter(None, help="what it must return, signed")


def native_run(given: NativeRun, run: Run) -> Outcome:
    """Call it."""
    program = _program(given, run)
    arguments = [each.given(run) for each in given.arguments]
    result = program.call(given.entry, *arguments, budget=given.budget)
    if given.returns is not None and result != given.returns:
        return Outcome.failed(f"it returned {result}, not {given.returns}", returned=result)
    return Outcome.ok(f"returned {result}", returned=result)


@attrs.frozen
class NativeThread:
    """Start a thread that runs a function of an object file; ``target.run`` lets it run."""

    object: str = parameter(help="the ELF file, beside the scenario", refers="file")
    entry: str = parameter(help="the function")
    process: str = parameter(help="the process, made where there is none of the name")
    thread: str = parameter("main", help="the thread's name")
    arguments: list[NativeArgument] = parameter(
        factory=list, help='numbers, names of devices, `{ text = "…" }`'
    )
    priority: int = parameter(
        k.DEFAULT_PRIORITY, help="of the scheduler", least=0, most=k.PRIORITIES - 1
    )
    cpu: int | None = parameter(None, help="the only CPU that it runs on", least=0)
    quantum: int = parameter(
        1000, help="instructions, on average, behind which another thread may run", least=1
    )
    budget: int = parameter(BUDGET, help="instructions after which it is ended", least=1)
    memory_order: str = parameter(
        "program", help="when other threads see its stores", choices=ORDERS
    )


def native_thread(given: NativeThread, run: Run) -> Outcome:
    """Start it."""
    program = _program(given, run)
    program.spawn(
        given.entry,
        *[each.given(run) for each in given.arguments],
        process=given.process,
        thread=given.thread,
        priority=given.priority,
        cpu=given.cpu,
        quantum=given.quantum,
        budget=given.budget,
    )
    return Outcome.ok()


def _program(given: NativeRun | NativeThread, run: Run) -> Any:
    """The program of an object file; steps that name it alike share it."""
    from fx_emulator.native import MissingPackageError

    path = run.file(given.object)

    def load() -> Any:
        try:
            return run.target.target.load(path, memory_order=given.memory_order)
        except MissingPackageError as error:
            raise MissingExtraError(
                error.package, "native", purpose="a step of a native program"
            ) from None

    return run.shared(("native", path, given.memory_order), load)
