"""Steps of scenarios that run native programs, and the arguments that these get."""

from __future__ import annotations

from typing import Any, Self

import attrs

from fx_emulator import kernel as k
from fx_emulator.errors import EmulatorError
from fx_emulator.socket import DatagramSocket
from fx_emulator.trace_buffer import TraceEngine
from fxframework.errors import MissingExtraError
from fxframework.kit.steps import Outcome, Run, parameter, table_schema

BUDGET = 10_000_000
"""Equals ``fx_emulator.native.machine.BUDGET``; a copy, so that the module is not loaded."""
ORDERS = ("program", "tso")


@attrs.frozen
class NativeArgument:
    """An argument of a native function: a number, a device's name, or ``{ text = "…" }``."""

    value: int | str
    text: bool = False

    @classmethod
    def from_toml(cls, value: Any) -> Self:
        """Return the argument of a TOML value. Raises ValueError for an unsupported value."""
        if isinstance(value, dict) and set(value) == {"text"} and isinstance(value["text"], str):
            return cls(value["text"], text=True)
        if isinstance(value, int | str) and not isinstance(value, bool):
            return cls(value)
        raise ValueError(f"is {value!r}: must be a number, a device's name, or {{ text = … }}")

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """Return the JSON schema, for `fxf replay --schema`."""
        table = table_schema({"text": {"type": "string"}}, "text")
        return {"anyOf": [{"type": ["integer", "string"]}, table]}

    def resolve(self, run: Run) -> Any:
        """Return what the program gets: the number or text, a device's memory, or a socket."""
        if self.text or isinstance(self.value, int):
            return self.value
        device = run.device(self.value)
        if isinstance(device, TraceEngine):
            return device.memory
        if isinstance(device, DatagramSocket) or hasattr(device, "load_u64"):
            return device
        raise EmulatorError(f"device {self.value!r} has no memory and is not a socket")


@attrs.frozen
class NativeRun:
    """Call a function of an object file and run it to its end at once."""

    object: str = parameter(help="the ELF file, beside the scenario", refers="file")
    entry: str = parameter(help="the function")
    arguments: list[NativeArgument] = parameter(
        factory=list, help='numbers, names of devices, `{ text = "…" }`'
    )
    budget: int = parameter(
        BUDGET, help="instructions after which the program counts as an endless loop", least=1
    )
    memory_order: str = parameter(
        "program", help="when other threads see its stores", choices=ORDERS
    )
    returns: int | None = parameter(None, help="expected result, signed")

    def do(self, run: Run) -> Outcome:
        """Call the function. Fails where it returns something other than ``returns``."""
        program = _program(self, run)
        arguments = [argument.resolve(run) for argument in self.arguments]
        result = program.call(self.entry, *arguments, budget=self.budget)
        if self.returns is not None and result != self.returns:
            return Outcome.failed(f"it returned {result}, not {self.returns}", returned=result)
        return Outcome.ok(f"returned {result}", returned=result)


@attrs.frozen
class NativeThread:
    """Start a thread that runs a function of an object file; a step ``target.run`` runs it."""

    object: str = parameter(help="the ELF file, beside the scenario", refers="file")
    entry: str = parameter(help="the function")
    process: str = parameter(help="name of the process, created if it does not exist")
    thread: str = parameter("main", help="the thread's name")
    arguments: list[NativeArgument] = parameter(
        factory=list, help='numbers, names of devices, `{ text = "…" }`'
    )
    priority: int = parameter(
        k.DEFAULT_PRIORITY, help="its priority for the scheduler", least=0, most=k.PRIORITIES - 1
    )
    cpu: int | None = parameter(None, help="the only CPU that it runs on", least=0)
    quantum: int = parameter(
        1000, help="average number of instructions after which another thread may run", least=1
    )
    budget: int = parameter(
        BUDGET, help="instructions after which the program counts as an endless loop", least=1
    )
    memory_order: str = parameter(
        "program", help="when other threads see its stores", choices=ORDERS
    )

    def do(self, run: Run) -> Outcome:
        """Start the thread."""
        program = _program(self, run)
        program.spawn(
            self.entry,
            *[argument.resolve(run) for argument in self.arguments],
            process=self.process,
            thread=self.thread,
            priority=self.priority,
            cpu=self.cpu,
            quantum=self.quantum,
            budget=self.budget,
        )
        return Outcome.ok()


def _program(step: NativeRun | NativeThread, run: Run) -> Any:
    """Return the loaded program of an object file, which all steps of that file share."""
    from fx_emulator.native import MissingPackageError

    path = run.file(step.object)

    def load() -> Any:
        try:
            return run.target.target.load(path, memory_order=step.memory_order)
        except MissingPackageError as error:
            raise MissingExtraError(
                error.package, "native", purpose="a step of a native program"
            ) from None

    return run.shared(("native", path, step.memory_order), load)
