"""Scenario: loads a TOML file as checked objects, and reports all faults together.

The whole file is checked before anything runs: keys and their types, the names of step and device
kinds, and references of steps. ``json_schema`` describes the same rules to editors.
"""

from __future__ import annotations

import functools
import tomllib
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Union

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, override

from fxframework.errors import (
    FxError,
    PluginError,
    UnreadableError,
    UsageError,
    did_you_mean,
    one_line,
)
from fxframework.kit.steps import (
    OUTSIDE,
    Duration,
    file_fault,
    nanoseconds,
    output_fault,
    parameter,
    referred,
)
from fxframework.kit.workload import ActionContext, Argument, Loop
from fxframework.registry import DeviceKind, StepKind
from fxframework.replay.lines import line_of, lines_of

if TYPE_CHECKING:
    from fxframework.host import Host

__all__ = [
    "Device",
    "Fault",
    "Scenario",
    "ScenarioError",
    "Step",
    "class_of_parameters",
    "json_schema",
    "key_of",
    "load",
    "named_values",
    "parse",
    "parse_document",
    "parse_target",
]

SCHEMA = "https://json-schema.org/draft/2020-12/schema"
TARGET = "target"
"""The device kind whose parameters are the table of that name."""
TYPE_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
"""The simple types, as named in messages."""
MAX_SEED = (1 << 64) - 1
"""The greatest seed; JSON holds the seed of a report."""
SHOWN = 60
"""The most characters of an invalid value to show in a message."""


@attrs.frozen(order=True)
class Fault:
    """A fault of a scenario."""

    path: str
    """Its place, such as ``step[3].args.count``; steps are counted from 0."""
    message: str
    line: int | None = None
    """The line of the TOML text, from 1; None if unknown."""

    def __str__(self) -> str:
        where = "" if self.line is None else f"line {self.line}: "
        return f"{where}{self.path}: {self.message}" if self.path else f"{where}{self.message}"


class ScenarioError(UsageError):
    """A scenario is invalid; ``faults`` has all reasons."""

    def __init__(self, faults: Sequence[Fault], *, path: str | None = None) -> None:
        self.faults = tuple(faults)
        several = f"{len(self.faults)} errors in the scenario"
        super().__init__(
            str(self.faults[0]) if len(self.faults) == 1 else several,
            path=path,
            remedy="`fxf replay --schema` prints the schema of scenarios",
        )

    def __str__(self) -> str:
        first = super().__str__()
        if len(self.faults) == 1:
            return first
        return "\n  ".join([first, *map(str, self.faults)])


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
    where = None if path is None else str(path)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError([Fault("", f"not valid TOML: {error}")], path=where) from None
    try:
        return parse_document(document, host, path=path, allow_outside=allow_outside)
    except ScenarioError as error:
        lines = lines_of(text)
        faults = [attrs.evolve(one, line=line_of(lines, one.path)) for one in error.faults]
        raise ScenarioError(sorted(faults, key=lambda one: one.line or 0), path=where) from None


def parse_document(
    document: dict[str, Any],
    host: Host,
    *,
    path: Path | None = None,
    allow_outside: bool = False,
) -> Scenario:
    """Convert a loaded TOML document to a scenario. Raises ScenarioError, without lines."""
    reading = _ScenarioReader(host, allow_outside=allow_outside)
    scenario = reading.scenario(document, path)
    if reading.faults or scenario is None:
        raise ScenarioError(reading.faults, path=None if path is None else str(path))
    return scenario


def parse_target(given: Mapping[str, Any], host: Host) -> Device:
    """Convert what a scenario may say under ``[target]``. Raises ScenarioError with all faults."""
    reading = _ScenarioReader(host)
    found = list(reading.devices({TARGET: dict(given)}))
    if reading.faults:
        raise ScenarioError(reading.faults)
    return found[0]


class _ScenarioReader:
    """Converts one document and collects its faults."""

    def __init__(self, host: Host, *, allow_outside: bool = False) -> None:
        self.host = host
        self.allow_outside = allow_outside
        self.faults: list[Fault] = []
        self.kinds: dict[str, str] = {}
        """The kind of each declared device, by name."""

    def fault(self, path: str, message: str) -> None:
        self.faults.append(Fault(path, message))

    def scenario(self, document: dict[str, Any], path: Path | None) -> Scenario | None:
        known = ("scenario", "target", "device", "step")
        for key in document.keys() - set(known):
            hint = did_you_mean(key, known) or ": a scenario has " + ", ".join(known)
            self.fault(key, f"unknown table{hint}")
        about: About | None = None
        if "scenario" in document:
            about = self.structured(document["scenario"], About, "scenario")
        else:
            self.fault("scenario", "missing; a scenario needs the table [scenario] with a name")
        devices = list(self.devices(document))
        steps = list(self.steps(document))
        folder = None if path is None else path.parent
        self.references(devices, steps, folder)
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
        kinds = self.host.devices
        if TARGET in kinds:
            given = document.get(TARGET, {})
            yield Device(TARGET, kinds[TARGET], self.parameters(kinds[TARGET], given, TARGET))
        elif TARGET in document:
            self.fault(TARGET, "no plugin has a device kind 'target'; `fxf plugins` lists them")
        declared = document.get("device", {})
        if not isinstance(declared, dict):
            self.fault("device", f"is {_shown(declared)}, not tables [device.NAME]")
            return
        for name, given in declared.items():
            path = f"device.{name}"
            kind = self.kind(given, "kind", path, kinds, "device kind")
            if name == TARGET or (kind is not None and kind.name == TARGET):
                self.fault(path, "the target is the table [target]; a scenario has one")
            elif kind is not None:
                rest = {key: value for key, value in given.items() if key != "kind"}
                yield Device(name, kind, self.parameters(kind, rest, path))

    def steps(self, document: dict[str, Any]) -> Iterator[Step]:
        declared = document.get("step", [])
        if not isinstance(declared, list):
            self.fault("step", f"is {_shown(declared)}, not tables [[step]]")
            return
        if not declared:
            self.fault("step", "missing; a scenario needs at least one [[step]]")
        for index, given in enumerate(declared):
            path = f"step[{index}]"
            kind = self.kind(given, "do", path, self.host.step_kinds, "step")
            if kind is not None:
                rest = {key: value for key, value in given.items() if key != "do"}
                yield Step(index, kind, self.parameters(kind, rest, path))

    def kind(
        self, given: Any, key: str, path: str, known: Mapping[str, Any], noun: str
    ) -> Any | None:
        """Return the descriptor that an entry names; None, with a fault, if there is none."""
        if not isinstance(given, dict):
            self.fault(path, f"is {_shown(given)}, not a table")
        elif key not in given:
            self.fault(f"{path}.{key}", f"is missing: the name of a {noun}")
        elif not isinstance(given[key], str):
            self.fault(f"{path}.{key}", f"is {_shown(given[key])}, not a string")
        elif given[key] not in known:
            name = given[key]
            hint = did_you_mean(name, known) or f"; there are {', '.join(sorted(known)) or 'none'}"
            self.fault(f"{path}.{key}", f"there is no {noun} {name!r}{hint}")
        else:
            return known[given[key]]
        return None

    def parameters(self, kind: StepKind | DeviceKind, given: Any, path: str) -> Any:
        try:
            return self.structured(given, class_of_parameters(kind), path)
        except PluginError as error:
            self.fault(path, error.message)
            return None

    def structured(self, given: Any, wanted: type, path: str) -> Any:
        try:
            return _converter().structure(given, wanted)
        except Exception as error:  # noqa: BLE001 (cattrs groups all exceptions)
            self.faults.extend(_faults(error, path))
            return None

    # --- References ---

    def references(self, devices: list[Device], steps: list[Step], folder: Path | None) -> None:
        """Check that names are defined before they are used, and each only once."""
        known: dict[str, set[str]] = {"device": set(), "capture": set(), "output": set()}
        self.kinds = {device.name: device.kind.name for device in devices}
        for device in devices:
            path = device.name if device.name == TARGET else f"device.{device.name}"
            self.check_names(device.parameters, path, known, folder)
            known["device"].add(device.name)
        # With other faults, a name may be defined by a device or step that could not be read.
        complete = len(self.faults) == 0
        target = next((each.parameters for each in devices if each.name == TARGET), None)
        for step in steps:
            self.check_names(step.parameters, step.path, known, folder, complete=complete)
            self.check_rounds(step.parameters, step.path, {}, target)

    def check_rounds(
        self, given: Any, path: str, loops: Mapping[str, int], target: Any, field: Any = None
    ) -> None:
        """Check numbers that depend on the target, or on the rounds of ``loops`` around them."""
        name = field.metadata.get("below", "") if field else ""
        limit = getattr(target, name, None)
        if isinstance(given, list | tuple):
            for number, each in enumerate(given):
                self.check_rounds(each, f"{path}[{number}]", loops, target, field)
        elif isinstance(given, Mapping):
            for key, each in given.items():
                self.check_rounds(each, f"{path}.{key}", loops, target, field)
        elif isinstance(given, Argument):
            self.check_ends(given.fault, path, loops)
        elif isinstance(given, int) and limit is not None and given >= limit:
            self.fault(path, f"is {given}, but must be below {limit}, the {name} of the target")
        elif isinstance(given, str) and field and "rounds" in field.metadata:
            self.check_ends(lambda stage: _bounds(field, stage.number(given)), path, loops)
        elif attrs.has(type(given)):
            if isinstance(given, Loop) and given.as_:
                loops = {**loops, given.as_: given.loop}
            for each in attrs.fields(type(given)):
                place = f"{path}.{key_of(each.name)}"
                self.check_rounds(getattr(given, each.name), place, loops, target, each)

    def check_ends(
        self, fault_of: Callable[[ActionContext[Any]], str], path: str, loops: Mapping[str, int]
    ) -> None:
        """Check what is wrong in the first and in the last round of loops."""
        for ends in (dict.fromkeys(loops, 0), {n: max(0, c - 1) for n, c in loops.items()}):
            try:
                fault = fault_of(ActionContext.of_rounds(ends))
            except UsageError as error:
                fault = f"{error}; {error.remedy}"
            if fault:
                self.fault(path, fault)
                return

    def named(self, refers: str, known: dict[str, set[str]]) -> tuple[str, set[str]]:
        """Return a noun phrase for what a parameter refers to, and the valid names."""
        noun, kinds = referred(refers)
        if noun == "input":
            return "output or device", known["output"] | known["device"]
        if kinds:
            fitting = {name for name in known["device"] if self.kinds.get(name) in kinds}
            return f"device of kind {' or '.join(kinds)}", fitting
        return noun, known[noun]

    def check_names(
        self,
        parameters: Any,
        path: str,
        known: dict[str, set[str]],
        folder: Path | None,
        *,
        complete: bool = True,
    ) -> None:
        made = []
        for field, value in named_values(parameters):
            place = f"{path}.{key_of(field.name)}"
            refers, makes = field.metadata.get("refers"), field.metadata.get("makes")
            if refers == "file":
                outside = "" if self.allow_outside else file_fault(value, folder)
                file = Path(value) if folder is None else folder / value
                if outside:
                    self.fault(place, f"{outside}: {OUTSIDE}")
                elif not file.is_file():
                    self.fault(place, f"there is no file {value!r} beside the scenario")
            elif refers is not None and complete:
                noun, there = self.named(refers, known)
                if value in known["device"] - there and refers != "output":
                    own = self.kinds.get(value)
                    self.fault(place, f"{value!r} is a device of kind {own}, not a {noun}")
                elif value not in there:
                    hint = did_you_mean(value, there)
                    hint = hint or f"; there are: {', '.join(sorted(there)) or 'none so far'}"
                    self.fault(place, f"there is no {noun} {value!r} at this step{hint}")
            if makes is not None:
                fault = output_fault(value) if makes == "output" else ""
                if fault:
                    self.fault(place, fault)
                elif value in known[makes]:
                    self.fault(place, f"the {makes} {value!r} already exists")
                elif makes == "output":
                    within = [each for each in known[makes] if _is_within(each, value)]
                    if within:
                        self.fault(place, f"{value!r} and {within[0]!r}: a file is not a folder")
                made.append((makes, value))
        for makes, value in made:
            known[makes].add(value)


@attrs.frozen
class NoParameters:
    """The parameters of a kind without parameters."""


def class_of_parameters(kind: StepKind | DeviceKind) -> type:
    """Return the attrs class of the parameters of a kind. Raises PluginError without one."""
    try:
        wanted: Any = NoParameters if kind.parameters is None else kind.parameters()
        trouble = "" if attrs.has(wanted) else f"are {wanted!r}, not an attrs class"
    except Exception as error:  # noqa: BLE001 (code of plugins)
        trouble = f"cannot be loaded: {type(error).__name__}: {error}"
    if trouble:
        raise PluginError(
            f"the parameters of {kind.name} {trouble}",
            remedy="`parameters` returns a class decorated with @attrs.frozen(kw_only=True)",
        )
    return wanted  # type: ignore[no-any-return]


def named_values(parameters: Any) -> Iterator[tuple[attrs.Attribute[Any], str]]:
    """Yield the fields that name something, with each name."""
    if parameters is None or not attrs.has(type(parameters)):
        return
    for field in attrs.fields(type(parameters)):
        if not {"refers", "makes"} & field.metadata.keys():
            continue
        value = getattr(parameters, field.name)
        for each in value if isinstance(value, list | tuple) else [value]:
            if isinstance(each, str) and (each or field.default is attrs.NOTHING):
                yield field, each


def _is_within(a: str, b: str) -> bool:
    """Return whether one of two outputs would be in a folder with the name of the other."""
    return a.startswith(f"{b}/") or b.startswith(f"{a}/")


# --- Conversion of TOML values to objects ------------------------------------------------------


class _InvalidValueError(ValueError):
    """An invalid value; the message follows its path."""


@functools.cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    for wanted in TYPE_NAMES:
        converter.register_structure_hook(wanted, _simple)
    converter.register_structure_hook(Duration, _duration)
    converter.register_structure_hook_factory(
        attrs.has, lambda wanted: _table_hook(wanted, converter)
    )
    converter.register_structure_hook_factory(_is_list, lambda t: _list_hook(t, converter))
    converter.register_structure_hook_factory(_is_table, lambda t: _mapping_hook(t, converter))
    converter.register_structure_hook_factory(_is_union, lambda t: _union_hook(t, converter))
    converter.register_structure_hook_factory(
        lambda wanted: hasattr(wanted, "from_toml"),
        lambda wanted: lambda value, _: wanted.from_toml(value),
    )
    return converter


def _simple(value: Any, wanted: type) -> Any:
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise _InvalidValueError(f"is {_shown(value)}, not {TYPE_NAMES[wanted]}")
    return value


def _duration(value: Any, _: type) -> Duration:
    try:
        found = nanoseconds(value)
    except ValueError as error:
        raise _InvalidValueError(str(error)) from None
    return found


def key_of(name: str) -> str:
    """Return the name of a field in a scenario."""
    return name.rstrip("_")


def _table_hook(wanted: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    attrs.resolve_types(wanted)
    renames = {
        field.name: override(rename=key_of(field.name))
        for field in attrs.fields(wanted)
        if field.name.endswith("_")
    }
    make = make_dict_structure_fn(
        wanted, converter, _cattrs_forbid_extra_keys=True, **renames  # type: ignore[arg-type]
    )  # fmt: skip

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise _InvalidValueError(f"is {_shown(value)}, not a table")
        made = make(value, wanted)
        wrong = [
            _Placed(key_of(field.name), error)
            for field in attrs.fields(wanted)
            for error in _unbounded(field, getattr(made, field.name))
        ]
        if wrong:
            raise ExceptionGroup("", wrong)
        return made

    return structure


def _unbounded(field: attrs.Attribute[Any], value: Any) -> Iterator[Exception]:
    """Yield the errors of a value, or of each of a list, that violates its ``parameter``."""
    for number, each in enumerate(value) if isinstance(value, list | tuple) else [(None, value)]:
        fault = _bounds(field, each)
        if fault:
            error = _InvalidValueError(fault)
            yield error if number is None else _Placed(number, error)


def _bounds(field: attrs.Attribute[Any], value: Any) -> str:
    """Return how a value violates the bounds or choices of its ``parameter``, or an empty text."""
    least, choices = field.metadata.get("least"), field.metadata.get("choices")
    if least is not None and isinstance(value, int | float) and value < least:
        return f"is {value}, but must be {least} or more"
    most = field.metadata.get("most")
    if most is not None and isinstance(value, int | float) and value > most:
        return f"is {value}, but must be {most} or less"
    if choices and isinstance(value, str) and value not in choices:
        hint = did_you_mean(value, choices)
        return f"is {value!r}, not one of {', '.join(choices)}{hint}"
    return ""


def _is_list(wanted: Any) -> bool:
    return typing.get_origin(wanted) in {list, tuple, Sequence}


def _is_table(wanted: Any) -> bool:
    return typing.get_origin(wanted) in {dict, Mapping}


def _is_union(wanted: Any) -> bool:
    return typing.get_origin(wanted) in {Union, types.UnionType}


def _list_hook(wanted: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    origin, inner = typing.get_origin(wanted), typing.get_args(wanted)[0]

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, list):
            raise _InvalidValueError(f"is {_shown(value)}, not a list")
        found = _each(enumerate(value), lambda each: converter.structure(each, inner))
        made = [each for _, each in found]
        return tuple(made) if origin is tuple else made

    return structure


def _mapping_hook(wanted: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    inner = typing.get_args(wanted)[1]

    def structure(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise _InvalidValueError(f"is {_shown(value)}, not a table")
        if inner is Any:
            return dict(value)
        return dict(_each(value.items(), lambda each: converter.structure(each, inner)))

    return structure


def _each(pairs: Any, make: Callable[[Any], Any]) -> list[tuple[Any, Any]]:
    """Convert each value; raise all errors together, with their keys."""
    made, wrong = [], []
    for key, value in pairs:
        try:
            made.append((key, make(value)))
        except Exception as error:  # noqa: BLE001 (raised together)
            wrong.append(_Placed(key, error))
    if wrong:
        raise ExceptionGroup("", wrong)
    return made


class _Placed(Exception):  # noqa: N818 (a wrapper)
    """The error of one item of a list or table, with its key."""

    def __init__(self, key: int | str, error: Exception) -> None:
        super().__init__(key, error)
        self.key = key
        self.error = error


def _tag(member: Any) -> str:
    """Return the key that identifies a member of a union: the name of its first field."""
    return key_of(attrs.fields(member)[0].name)


def _union_hook(wanted: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    members = [member for member in typing.get_args(wanted) if member is not type(None)]
    if len(members) == 1:
        return lambda value, _: converter.structure(value, members[0])
    if all(attrs.has(member) for member in members):
        tags = {_tag(member): member for member in members}

        def structure(value: Any, _: Any) -> Any:
            if not isinstance(value, dict):
                raise _InvalidValueError(f"is {_shown(value)}, not a table")
            found = [key for key in value if key in tags]
            if len(found) != 1:
                if found:
                    raise _InvalidValueError(
                        f"is both {' and '.join(map(repr, found))}; make it two"
                    )
                hint = next(filter(None, (did_you_mean(key, tags) for key in value)), "")
                raise _InvalidValueError(
                    f"is {_shown(value)}, not one of {', '.join(sorted(tags))}{hint}"
                )
            return converter.structure(value, tags[found[0]])

        return structure

    def choose(value: Any, _: Any) -> Any:
        # A value of a simple type matches directly.
        if type(value) in members:
            return value
        wrong: list[str] = []
        for member in members:
            try:
                return converter.structure(value, member)
            except Exception as error:  # noqa: BLE001 (another member may match)
                wrong.extend(fault.message for fault in _faults(error, ""))
        if all(member in TYPE_NAMES for member in members):
            *some, last = (TYPE_NAMES[member] for member in members)
            wrong = [f"is {_shown(value)}, not {', '.join(some)} or {last}"]
        raise _InvalidValueError("; ".join(dict.fromkeys(wrong)))

    return choose


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _faults(error: BaseException, path: str) -> Iterator[Fault]:
    """Yield all faults in an exception, each with its path."""
    if isinstance(error, _Placed):
        at = f"[{error.key}]" if isinstance(error.key, int) else f".{error.key}"
        yield from _faults(error.error, path + at)
    elif isinstance(error, cattrs.ClassValidationError):
        placed, others = error.group_exceptions()
        for inner, note in placed:
            if isinstance(inner, KeyError):
                text = attrs.fields_dict(error.cl)[note.name].metadata.get("help", "")
                yield Fault(f"{path}.{key_of(note.name)}", f"is missing: {text}".rstrip(": "))
            else:
                yield from _faults(inner, f"{path}.{key_of(note.name)}")
        for inner in others:
            yield from _faults(inner, path)
    elif isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _faults(each, path)
    elif isinstance(error, cattrs.ForbiddenExtraKeysError):
        known = [key_of(field.name) for field in attrs.fields(error.cl)]
        for key in sorted(error.extra_fields):
            hint = did_you_mean(key, known) or f"; it has {', '.join(known) or 'none'}"
            yield Fault(f"{path}.{key}", f"there is no such parameter{hint}")
    elif isinstance(error, ValueError | FxError):
        yield Fault(path, str(error))
    else:
        yield Fault(path, f"{type(error).__name__}: {error}")


# --- JSON Schema -------------------------------------------------------------------------------


def json_schema(host: Host) -> dict[str, Any]:
    """Return the JSON Schema of scenarios, with the installed steps and devices.

    Steps and devices of which there is no schema are left out, and are failures of their plugins.
    """
    definitions: dict[str, Any] = {}
    properties = {"scenario": _schema(About, definitions)}
    kind_schema = functools.partial(_kind_schema, host, definitions)
    devices = {name: kind for name, kind in sorted(host.devices.items()) if name != TARGET}
    target = kind_schema(host.devices[TARGET]) if TARGET in host.devices else None
    others = [schema for kind in devices.values() if (schema := kind_schema(kind, "kind"))]
    kinds = [kind for _, kind in sorted(host.step_kinds.items())]
    steps = [schema for kind in kinds if (schema := kind_schema(kind, "do"))]
    if target is not None:
        properties[TARGET] = target
    if others:
        properties["device"] = {"type": "object", "additionalProperties": {"oneOf": others}}
    properties["step"] = {"type": "array", "minItems": 1, "items": {"oneOf": steps}}
    return {
        "$schema": SCHEMA,
        "title": "A scenario of fxframework",
        "type": "object",
        "properties": properties,
        "required": ["scenario", "step"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _kind_schema(
    host: Host, definitions: dict[str, Any], kind: StepKind | DeviceKind, key: str = ""
) -> dict[str, Any] | None:
    """Return the schema of a step or device, with its name at ``key``; None if there is none."""
    import orjson

    extended = dict(definitions)
    try:
        made = _table_schema(class_of_parameters(kind), extended)
        added = {name: table for name, table in extended.items() if name not in definitions}
        orjson.dumps([made, added])
    except Exception as error:  # noqa: BLE001 (types and notes of plugins; listed)
        reason = error.message if isinstance(error, FxError) else one_line(error)
        host.left_out(kind, f"no JSON Schema of {kind.name}: {reason}")
        return None
    definitions |= added
    made["title"] = kind.title
    if key:
        made["properties"] = {key: {"const": kind.name}, **made["properties"]}
        made["required"] = [key, *made["required"]]
    return made


def _schema(wanted: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a type."""
    simple: dict[Any, dict[str, Any]] = {
        bool: {"type": "boolean"},
        int: {"type": "integer"},
        float: {"type": "number"},
        str: {"type": "string"},
        Duration: {
            "type": ["integer", "string"],
            "pattern": r"^\s*[+-]?[0-9.]+\s*(ns|us|µs|ms|s)\s*$",
        },
        Any: {},
    }
    if wanted in simple:
        return dict(simple[wanted])
    if hasattr(wanted, "from_toml"):
        own = getattr(wanted, "json_schema", None)
        return {} if own is None else dict(own())
    if attrs.has(wanted):
        name = f"{wanted.__module__}.{wanted.__qualname__}"  # unique across plugins
        if name not in definitions:
            definitions[name] = {}  # a class may contain itself
            definitions[name] = _table_schema(wanted, definitions)
        return {"$ref": f"#/$defs/{name}"}
    arguments = typing.get_args(wanted)
    if _is_list(wanted):
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if _is_table(wanted):
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    if _is_union(wanted):
        members = [_schema(each, definitions) for each in arguments if each is not type(None)]
        return members[0] if len(members) == 1 else {"anyOf": members}
    if typing.get_origin(wanted) is Literal:
        return {"enum": list(arguments)}
    return {}


def described(field: attrs.Attribute[Any]) -> str:
    """Return the help of a parameter, with the kinds of device that it accepts."""
    text: str = field.metadata.get("help", "")
    _, kinds = referred(field.metadata.get("refers", "device"))
    return f"{text} (a device of kind {' or '.join(kinds)})" if kinds else text


def _table_schema(wanted: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    attrs.resolve_types(wanted)
    properties, required = {}, []
    for field in attrs.fields(wanted):
        made = _schema(field.type, definitions)
        notes: Collection[str] = field.metadata
        if "help" in notes:
            made["description"] = described(field)
        if "least" in notes:
            made.get("items", made)["minimum"] = field.metadata["least"]
        if "most" in notes:
            made.get("items", made)["maximum"] = field.metadata["most"]
        if "choices" in notes:
            made["enum"] = list(field.metadata["choices"])
        if field.default is attrs.NOTHING:
            required.append(key_of(field.name))
        elif isinstance(field.default, bool | int | float | str):
            made["default"] = field.default
        properties[key_of(field.name)] = made
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
