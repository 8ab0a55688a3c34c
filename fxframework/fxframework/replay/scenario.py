"""Scenario: loads a TOML file as checked objects, and reports all faults together.

The whole file is checked before anything runs: keys and their types, the names of step and device
kinds, and references of steps. ``schema.json_schema`` describes the same rules to editors.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from fxframework.errors import PluginError, UnreadableError, UsageError, did_you_mean
from fxframework.kit.steps import OUTSIDE, file_fault, output_fault, parameter, referred
from fxframework.kit.workload import ActionContext, Argument, Loop
from fxframework.registry import DeviceKind, StepKind
from fxframework.replay.lines import line_of, lines_of
from fxframework.replay.values import (
    Fault,
    bounds_fault,
    class_of_parameters,
    key_of,
    named_values,
    shown,
    structure,
)

if TYPE_CHECKING:
    from fxframework.host import Host

TARGET = "target"
"""The device kind whose parameters are the table of that name."""
TABLES = ("scenario", TARGET, "device", "step")
MAX_SEED = (1 << 64) - 1
"""The greatest seed; JSON holds the seed of a report."""


class ScenarioError(UsageError):
    """A scenario is invalid; ``faults`` has all reasons."""

    def __init__(self, faults: Sequence[Fault], *, path: str | None = None) -> None:
        self.faults = tuple(faults)
        message = f"{len(self.faults)} errors in the scenario"
        if len(self.faults) == 1:
            message = str(self.faults[0])
        super().__init__(
            message,
            path=path,
            remedy="`fxf replay --schema` prints the schema of scenarios",
        )

    def __str__(self) -> str:
        text = super().__str__()
        if len(self.faults) == 1:
            return text
        return "\n  ".join([text, *map(str, self.faults)])


@attrs.frozen(kw_only=True)
class About:
    """The table ``[scenario]``."""

    name: str = parameter(help="what the scenario is called in reports")
    seed: int = parameter(
        0, help="what all that is left to chance follows from", least=0, most=MAX_SEED
    )
    description: str = parameter("", help="what it shows")


@attrs.frozen
class Device:
    """A declared device."""

    name: str
    kind: DeviceKind
    parameters: Any


@attrs.frozen
class Step:
    """A declared step."""

    index: int
    kind: StepKind
    parameters: Any

    @property
    def path(self) -> str:
        """Its path in the scenario."""
        return f"step[{self.index}]"


@attrs.frozen(kw_only=True)
class Scenario:
    """A loaded scenario. The first device is the target, if there is one."""

    name: str
    seed: int
    description: str
    devices: tuple[Device, ...]
    steps: tuple[Step, ...]
    path: Path | None = None


def load(path: str | Path, host: Host, *, allow_outside: bool = False) -> Scenario:
    """Load a scenario from a file. Raises UnreadableError, and ScenarioError with all faults.

    With ``allow_outside`` it may name files outside of its folder.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise UnreadableError(
            f"cannot open it: {error.strerror or error}", path=str(path), remedy="check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise ScenarioError([Fault("", f"not valid UTF-8: {error}")], path=str(path)) from None
    return parse(text, host, path=path, allow_outside=allow_outside)


def parse(
    text: str, host: Host, *, path: Path | None = None, allow_outside: bool = False
) -> Scenario:
    """Parse a scenario from a text; ``path`` is its file. Raises ScenarioError with all faults."""
    file_name = None if path is None else str(path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError([Fault("", f"not valid TOML: {error}")], path=file_name) from None
    try:
        return parse_document(document, host, path=path, allow_outside=allow_outside)
    except ScenarioError as error:
        lines = lines_of(text)
        faults = [attrs.evolve(fault, line=line_of(lines, fault.path)) for fault in error.faults]
        faults.sort(key=lambda fault: fault.line or 0)
        raise ScenarioError(faults, path=file_name) from None


def parse_document(
    document: dict[str, Any],
    host: Host,
    *,
    path: Path | None = None,
    allow_outside: bool = False,
) -> Scenario:
    """Convert a loaded TOML document to a scenario. Raises ScenarioError, without lines."""
    reader = _ScenarioReader(host, allow_outside=allow_outside)
    scenario = reader.scenario(document, path)
    if reader.faults or scenario is None:
        raise ScenarioError(reader.faults, path=None if path is None else str(path))
    return scenario


def parse_target(given: Mapping[str, Any], host: Host) -> Device:
    """Convert what a scenario may say under ``[target]``. Raises ScenarioError with all faults."""
    reader = _ScenarioReader(host)
    devices = list(reader.devices({TARGET: dict(given)}))
    if reader.faults:
        raise ScenarioError(reader.faults)
    return devices[0]


class _ScenarioReader:
    """Converts one document and collects its faults."""

    def __init__(self, host: Host, *, allow_outside: bool = False) -> None:
        self.host = host
        self.allow_outside = allow_outside
        self.faults: list[Fault] = []

    def fault(self, path: str, message: str) -> None:
        self.faults.append(Fault(path, message))

    def scenario(self, document: dict[str, Any], path: Path | None) -> Scenario | None:
        for key in document.keys() - set(TABLES):
            hint = did_you_mean(key, TABLES) or ": a scenario has " + ", ".join(TABLES)
            self.fault(key, f"unknown table{hint}")
        about: About | None = None
        if "scenario" in document:
            about = self.structure(document["scenario"], About, "scenario")
        else:
            self.fault("scenario", "missing; a scenario needs the table [scenario] with a name")
        devices = list(self.devices(document))
        steps = list(self.steps(document))
        folder = None if path is None else path.parent
        references = _References(devices, folder=folder, allow_outside=self.allow_outside)
        # With other faults, a name may be defined by a device or step that could not be read.
        self.faults += references.check(steps, is_complete=not self.faults)
        if about is None:
            return None
        return Scenario(
            name=about.name,
            seed=about.seed,
            description=about.description,
            devices=tuple(device for device in devices if device.parameters is not None),
            steps=tuple(step for step in steps if step.parameters is not None),
            path=path,
        )

    def devices(self, document: dict[str, Any]) -> Iterator[Device]:
        """Yield the target and the other devices; parameters with faults are None."""
        kinds = self.host.devices
        if TARGET in kinds:
            table = document.get(TARGET, {})
            yield Device(TARGET, kinds[TARGET], self.parameters(kinds[TARGET], table, TARGET))
        elif TARGET in document:
            self.fault(TARGET, "no plugin has a device kind 'target'; `fxf plugins` lists them")
        tables = document.get("device", {})
        if not isinstance(tables, dict):
            self.fault("device", f"is {shown(tables)}, not tables [device.NAME]")
            return
        for name, table in tables.items():
            path = f"device.{name}"
            kind = self.kind(table, "kind", path, kinds, "device kind")
            if name == TARGET or (kind is not None and kind.name == TARGET):
                self.fault(path, "the target is the table [target]; a scenario has one")
            elif kind is not None:
                values = {key: value for key, value in table.items() if key != "kind"}
                yield Device(name, kind, self.parameters(kind, values, path))

    def steps(self, document: dict[str, Any]) -> Iterator[Step]:
        """Yield the steps; parameters with faults are None."""
        tables = document.get("step", [])
        if not isinstance(tables, list):
            self.fault("step", f"is {shown(tables)}, not tables [[step]]")
            return
        if not tables:
            self.fault("step", "missing; a scenario needs at least one [[step]]")
        for index, table in enumerate(tables):
            path = f"step[{index}]"
            kind = self.kind(table, "do", path, self.host.step_kinds, "step")
            if kind is not None:
                values = {key: value for key, value in table.items() if key != "do"}
                yield Step(index, kind, self.parameters(kind, values, path))

    def kind(
        self, table: Any, key: str, path: str, kinds: Mapping[str, Any], noun: str
    ) -> Any | None:
        """Return the descriptor that an entry names; None, with a fault, if there is none."""
        if not isinstance(table, dict):
            self.fault(path, f"is {shown(table)}, not a table")
            return None
        if key not in table:
            self.fault(f"{path}.{key}", f"is missing: the name of a {noun}")
            return None
        name = table[key]
        if not isinstance(name, str):
            self.fault(f"{path}.{key}", f"is {shown(name)}, not a string")
            return None
        if name not in kinds:
            hint = did_you_mean(name, kinds) or f"; there are {', '.join(sorted(kinds)) or 'none'}"
            self.fault(f"{path}.{key}", f"there is no {noun} {name!r}{hint}")
            return None
        return kinds[name]

    def parameters(self, kind: StepKind | DeviceKind, values: Any, path: str) -> Any:
        try:
            return self.structure(values, class_of_parameters(kind), path)
        except PluginError as error:
            self.fault(path, error.message)
            return None

    def structure(self, value: Any, wanted: type, path: str) -> Any:
        structured, faults = structure(value, wanted, path)
        self.faults += faults
        return structured


# --- References --------------------------------------------------------------------------------


class _References:
    """Checks that names are defined before they are used, and each only once."""

    def __init__(self, devices: list[Device], *, folder: Path | None, allow_outside: bool) -> None:
        self._devices = devices
        self._folder = folder
        self._allow_outside = allow_outside
        self._kind_of_device = {device.name: device.kind.name for device in devices}
        self._defined: dict[str, set[str]] = {"device": set(), "capture": set(), "output": set()}
        """Names that devices and earlier steps define."""
        self._faults: list[Fault] = []

    def _fault(self, path: str, message: str) -> None:
        self._faults.append(Fault(path, message))

    def check(self, steps: list[Step], *, is_complete: bool) -> list[Fault]:
        """Return the faults; without ``is_complete``, those of undefined names are left out."""
        target = None
        for device in self._devices:
            path = f"device.{device.name}"
            if device.name == TARGET:
                path = TARGET
                target = device.parameters
            self._check_names(device.parameters, path, is_complete=True)
            self._defined["device"].add(device.name)
        is_complete = is_complete and not self._faults
        for step in steps:
            self._check_names(step.parameters, step.path, is_complete=is_complete)
            self._check_values(step.parameters, step.path, {}, target)
        return self._faults

    # --- Names ---

    def _check_names(self, parameters: Any, path: str, *, is_complete: bool) -> None:
        new_names = []
        for field, name in named_values(parameters):
            field_path = f"{path}.{key_of(field.name)}"
            refers = field.metadata.get("refers")
            makes = field.metadata.get("makes")
            if refers == "file":
                self._check_file(name, field_path)
            elif refers is not None and is_complete:
                self._check_reference(name, refers, field_path)
            if makes is not None:
                self._check_new_name(name, makes, field_path)
                new_names.append((makes, name))
        # Only now: a step cannot refer to what it makes.
        for makes, name in new_names:
            self._defined[makes].add(name)

    def _check_file(self, name: str, path: str) -> None:
        if not self._allow_outside:
            outside = file_fault(name, self._folder)
            if outside:
                self._fault(path, f"{outside}: {OUTSIDE}")
                return
        if not Path(self._folder or ".", name).is_file():
            self._fault(path, f"there is no file {name!r} beside the scenario")

    def _check_reference(self, name: str, refers: str, path: str) -> None:
        noun, valid_names = self._valid_names(refers)
        if name in self._defined["device"] - valid_names and refers != "output":
            kind = self._kind_of_device.get(name)
            self._fault(path, f"{name!r} is a device of kind {kind}, not a {noun}")
        elif name not in valid_names:
            hint = did_you_mean(name, valid_names)
            if not hint:
                hint = f"; there are: {', '.join(sorted(valid_names)) or 'none so far'}"
            self._fault(path, f"there is no {noun} {name!r} at this step{hint}")

    def _valid_names(self, refers: str) -> tuple[str, set[str]]:
        """Return a noun phrase for what a parameter refers to, and the valid names."""
        noun, kinds = referred(refers)
        devices = self._defined["device"]
        if noun == "input":
            return "output or device", self._defined["output"] | devices
        if kinds:
            of_these_kinds = {name for name in devices if self._kind_of_device.get(name) in kinds}
            return f"device of kind {' or '.join(kinds)}", of_these_kinds
        return noun, self._defined[noun]

    def _check_new_name(self, name: str, makes: str, path: str) -> None:
        if makes == "output":
            invalid = output_fault(name)
            if invalid:
                self._fault(path, invalid)
                return
        if name in self._defined[makes]:
            self._fault(path, f"the {makes} {name!r} already exists")
        elif makes == "output":
            for output in self._defined[makes]:
                if _is_one_a_folder(output, name):
                    self._fault(path, f"{name!r} and {output!r}: a file is not a folder")
                    return

    # --- Numbers ---

    def _check_values(
        self, value: Any, path: str, loops: Mapping[str, int], target: Any, field: Any = None
    ) -> None:
        """Check numbers that depend on the target, or on the rounds of ``loops`` around them.

        ``loops`` has the number of rounds by the name of the round; ``field`` is the parameter
        that has the value, if it has one.
        """
        # The parameter of a list or table is also that of what is in it.
        if isinstance(value, list | tuple):
            for index, item in enumerate(value):
                self._check_values(item, f"{path}[{index}]", loops, target, field)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                self._check_values(item, f"{path}.{key}", loops, target, field)
        elif isinstance(value, Argument):
            self._check_rounds(value.fault, path, loops)
        elif isinstance(value, int):
            self._check_below(value, path, target, field)
        elif isinstance(value, str):
            if field and "rounds" in field.metadata:
                self._check_rounds(
                    lambda context: bounds_fault(field, context.number(value)), path, loops
                )
        elif attrs.has(type(value)):
            if isinstance(value, Loop) and value.as_:
                loops = {**loops, value.as_: value.loop}
            for inner_field in attrs.fields(type(value)):
                inner_value = getattr(value, inner_field.name)
                inner_path = f"{path}.{key_of(inner_field.name)}"
                self._check_values(inner_value, inner_path, loops, target, inner_field)

    def _check_below(self, value: int, path: str, target: Any, field: Any) -> None:
        """Check a number that must be below one of the target's parameters."""
        if not field or "below" not in field.metadata:
            return
        name = field.metadata["below"]
        limit = getattr(target, name, None)
        if limit is not None and value >= limit:
            self._fault(path, f"is {value}, but must be below {limit}, the {name} of the target")

    def _check_rounds(
        self, fault_of: Callable[[ActionContext[Any]], str], path: str, loops: Mapping[str, int]
    ) -> None:
        """Check what is wrong in the first and in the last round of loops: the extremes."""
        first_rounds = dict.fromkeys(loops, 0)
        last_rounds = {name: max(0, count - 1) for name, count in loops.items()}
        for rounds in (first_rounds, last_rounds):
            try:
                fault = fault_of(ActionContext.of_rounds(rounds))
            except UsageError as error:
                fault = f"{error}; {error.remedy}"
            if fault:
                self._fault(path, fault)
                return


def _is_one_a_folder(output: str, other_output: str) -> bool:
    """Return whether one of two outputs would be in a folder with the name of the other."""
    return output.startswith(f"{other_output}/") or other_output.startswith(f"{output}/")
