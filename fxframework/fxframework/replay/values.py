"""Values: converts TOML values to the parameter classes of steps and devices.

Every fault of a value is collected, with its path in the scenario.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Union

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn, override

from fxframework.errors import FxError, PluginError, did_you_mean
from fxframework.kit.shown import cut
from fxframework.kit.steps import Duration, nanoseconds
from fxframework.registry import DeviceKind, StepKind

TYPE_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
"""The simple types, as named in messages."""
SHOWN = 60
"""The most characters of an invalid value to show in a message."""
TOO_LONG = 1 << 63
"""Nanoseconds that a time of Zircon, and of most formats, cannot hold."""
Structure = Callable[[Any, Any], Any]
"""Converts a value to a type; the second argument, the type, is that of cattrs' hooks."""


@attrs.frozen(order=True)
class Fault:
    """A fault of a scenario."""

    path: str
    """Its place, such as ``step[3].args.count``; steps are counted from 0."""
    message: str
    line: int | None = None
    """The line of the TOML text, from 1; None if unknown."""

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return text if self.line is None else f"line {self.line}: {text}"


# --- Parameter classes -------------------------------------------------------------------------


@attrs.frozen
class NoParameters:
    """The parameters of a kind without parameters."""


def class_of_parameters(kind: StepKind | DeviceKind) -> type:
    """Return the attrs class of the parameters of a kind. Raises PluginError without one."""
    if kind.parameters is None:
        return NoParameters
    reason = ""
    parameter_class: Any = None
    try:
        parameter_class = kind.parameters()
        if not attrs.has(parameter_class):
            reason = f"are {parameter_class!r}, not an attrs class"
    except Exception as error:  # noqa: BLE001 (code of plugins)
        reason = f"cannot be loaded: {type(error).__name__}: {error}"
    if reason:
        raise PluginError(
            f"the parameters of {kind.name} {reason}",
            remedy="`parameters` returns a class decorated with @attrs.frozen(kw_only=True)",
        )
    return parameter_class  # type: ignore[no-any-return]


def key_of(name: str) -> str:
    """Return the name of a field in a scenario."""
    return name.rstrip("_")


def named_values(parameters: Any) -> Iterator[tuple[attrs.Attribute[Any], str]]:
    """Yield the fields that name something, with each name."""
    if parameters is None or not attrs.has(type(parameters)):
        return
    for field in attrs.fields(type(parameters)):
        if not {"refers", "makes"} & field.metadata.keys():
            continue
        value = getattr(parameters, field.name)
        is_required = field.default is attrs.NOTHING
        for name in value if isinstance(value, list | tuple) else [value]:
            # An empty text is the default of a parameter that need not name anything.
            if isinstance(name, str) and (name or is_required):
                yield field, name


def bounds_fault(field: attrs.Attribute[Any], value: Any) -> str:
    """Return how a value violates the bounds or choices of its ``parameter``, or an empty text."""
    least = field.metadata.get("least")
    most = field.metadata.get("most")
    choices = field.metadata.get("choices")
    if isinstance(value, int | float):
        if least is not None and value < least:
            return f"is {value}, but must be {least} or more"
        if most is not None and value > most:
            return f"is {value}, but must be {most} or less"
    if choices and isinstance(value, str) and value not in choices:
        hint = did_you_mean(value, choices)
        return f"is {value!r}, not one of {', '.join(choices)}{hint}"
    return ""


def is_list(wanted_type: Any) -> bool:
    """Return whether a type is a list, tuple or sequence of another type."""
    return typing.get_origin(wanted_type) in {list, tuple, Sequence}


def is_table(wanted_type: Any) -> bool:
    """Return whether a type is a mapping of strings to another type."""
    return typing.get_origin(wanted_type) in {dict, Mapping}


def is_union(wanted_type: Any) -> bool:
    """Return whether a type is a union of types, perhaps with None."""
    return typing.get_origin(wanted_type) in {Union, types.UnionType}


def shown(value: Any) -> str:
    """Return a value for a message, cut if it is long."""
    return cut(repr(value), SHOWN)


# --- Conversion --------------------------------------------------------------------------------


def structure(value: Any, wanted_type: type, path: str) -> tuple[Any, list[Fault]]:
    """Convert a value at a path to a class; return it, or None and all faults."""
    try:
        return _converter().structure(value, wanted_type), []
    except Exception as error:  # noqa: BLE001 (cattrs groups all exceptions)
        return None, list(_faults(error, path))


class _InvalidValueError(ValueError):
    """An invalid value; the message follows its path."""


class _PlacedError(Exception):
    """The error of one item of a list or table, with its key."""

    def __init__(self, key: int | str, error: Exception) -> None:
        super().__init__(key, error)
        self.key = key
        self.error = error


@functools.cache
def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    for simple in TYPE_NAMES:
        converter.register_structure_hook(simple, _structure_simple)
    converter.register_structure_hook(Duration, _structure_duration)
    hooks_of_types: list[tuple[Callable[[Any], bool], Callable[..., Structure]]] = [
        (attrs.has, _hook_of_class),
        (is_list, _hook_of_list),
        (is_table, _hook_of_table),
        (is_union, _hook_of_union),
    ]
    # Of several that match, cattrs takes the last one.
    for matches, hook_of in hooks_of_types:
        converter.register_structure_hook_factory(
            matches, functools.partial(hook_of, converter=converter)
        )
    converter.register_structure_hook_func(
        lambda wanted_type: hasattr(wanted_type, "from_toml"),
        lambda value, wanted_type: wanted_type.from_toml(value),
    )
    return converter


def _structure_simple(value: Any, wanted_type: type) -> Any:
    if wanted_type is float and type(value) is int:
        return float(value)
    # Not isinstance: true and false are not integers here.
    if type(value) is not wanted_type:
        raise _InvalidValueError(f"is {shown(value)}, not {TYPE_NAMES[wanted_type]}")
    return value


def _structure_duration(value: Any, _: type) -> Duration:
    try:
        duration = nanoseconds(value)
    except ValueError as error:
        raise _InvalidValueError(str(error)) from None
    if abs(duration) >= TOO_LONG:
        raise _InvalidValueError(f"is {shown(value)}, which 63 bits of nanoseconds cannot hold")
    return duration


def _hook_of_class(wanted_type: Any, converter: cattrs.Converter) -> Structure:
    attrs.resolve_types(wanted_type)
    renames = {
        field.name: override(rename=key_of(field.name))
        for field in attrs.fields(wanted_type)
        if field.name.endswith("_")
    }
    structure_fields = make_dict_structure_fn(
        wanted_type, converter, _cattrs_forbid_extra_keys=True, **renames  # type: ignore[arg-type]
    )  # fmt: skip

    def structure_class(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise _InvalidValueError(f"is {shown(value)}, not a table")
        parameters = structure_fields(value, wanted_type)
        errors = [
            _PlacedError(key_of(field.name), error)
            for field in attrs.fields(wanted_type)
            for error in _bounds_errors(field, getattr(parameters, field.name))
        ]
        if errors:
            raise ExceptionGroup("", errors)
        return parameters

    return structure_class


def _bounds_errors(field: attrs.Attribute[Any], value: Any) -> Iterator[Exception]:
    """Yield the errors of a value, or of each of a list, that violates its ``parameter``."""
    if not isinstance(value, list | tuple):
        fault = bounds_fault(field, value)
        if fault:
            yield _InvalidValueError(fault)
        return
    for index, item in enumerate(value):
        fault = bounds_fault(field, item)
        if fault:
            yield _PlacedError(index, _InvalidValueError(fault))


def _hook_of_list(wanted_type: Any, converter: cattrs.Converter) -> Structure:
    is_tuple = typing.get_origin(wanted_type) is tuple
    item_type = typing.get_args(wanted_type)[0]

    def structure_list(value: Any, _: Any) -> Any:
        if not isinstance(value, list):
            raise _InvalidValueError(f"is {shown(value)}, not a list")
        items = _structure_items(enumerate(value), item_type, converter)
        values = [item for _, item in items]
        return tuple(values) if is_tuple else values

    return structure_list


def _hook_of_table(wanted_type: Any, converter: cattrs.Converter) -> Structure:
    value_type = typing.get_args(wanted_type)[1]

    def structure_table(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise _InvalidValueError(f"is {shown(value)}, not a table")
        if value_type is Any:
            return dict(value)
        return dict(_structure_items(value.items(), value_type, converter))

    return structure_table


def _structure_items(
    items: Iterable[tuple[Any, Any]], wanted_type: Any, converter: cattrs.Converter
) -> list[tuple[Any, Any]]:
    """Convert the values of items; raise all errors together, with their keys."""
    structured = []
    errors = []
    for key, value in items:
        try:
            structured.append((key, converter.structure(value, wanted_type)))
        except Exception as error:  # noqa: BLE001 (raised together)
            errors.append(_PlacedError(key, error))
    if errors:
        raise ExceptionGroup("", errors)
    return structured


def _hook_of_union(wanted_type: Any, converter: cattrs.Converter) -> Structure:
    members = [member for member in typing.get_args(wanted_type) if member is not type(None)]
    if len(members) == 1:
        return lambda value, _: converter.structure(value, members[0])
    if all(attrs.has(member) for member in members):
        return _hook_of_tagged_union(members, converter)

    def structure_member(value: Any, _: Any) -> Any:
        # A value of a simple type matches directly: 1 stays 1, though a float would take it.
        if type(value) in members:
            return value
        messages: list[str] = []
        for member in members:
            try:
                return converter.structure(value, member)
            except Exception as error:  # noqa: BLE001 (another member may match)
                messages.extend(fault.message for fault in _faults(error, ""))
        if all(member in TYPE_NAMES for member in members):
            *first_names, last_name = (TYPE_NAMES[member] for member in members)
            messages = [f"is {shown(value)}, not {', '.join(first_names)} or {last_name}"]
        raise _InvalidValueError("; ".join(dict.fromkeys(messages)))

    return structure_member


def _hook_of_tagged_union(members: Sequence[Any], converter: cattrs.Converter) -> Structure:
    """Return the hook of a union of classes that differ in their first field, the tag."""
    member_of_tag = {key_of(attrs.fields(member)[0].name): member for member in members}

    def structure_tagged(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise _InvalidValueError(f"is {shown(value)}, not a table")
        tags = [key for key in value if key in member_of_tag]
        if len(tags) > 1:
            raise _InvalidValueError(f"is both {' and '.join(map(repr, tags))}; make it two")
        if not tags:
            hints = (did_you_mean(key, member_of_tag) for key in value)
            hint = next(filter(None, hints), "")
            raise _InvalidValueError(
                f"is {shown(value)}, not one of {', '.join(sorted(member_of_tag))}{hint}"
            )
        return converter.structure(value, member_of_tag[tags[0]])

    return structure_tagged


# --- Faults ------------------------------------------------------------------------------------


def _faults(error: BaseException, path: str) -> Iterator[Fault]:
    """Yield all faults in an exception, each with its path."""
    if isinstance(error, _PlacedError):
        key = f"[{error.key}]" if isinstance(error.key, int) else f".{error.key}"
        yield from _faults(error.error, path + key)
    # Before other groups: this one also knows the fields.
    elif isinstance(error, cattrs.ClassValidationError):
        yield from _faults_of_class(error, path)
    elif isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _faults(inner, path)
    elif isinstance(error, cattrs.ForbiddenExtraKeysError):
        parameters = [key_of(field.name) for field in attrs.fields(error.cl)]
        for key in sorted(error.extra_fields):
            hint = did_you_mean(key, parameters) or f"; it has {', '.join(parameters) or 'none'}"
            yield Fault(f"{path}.{key}", f"there is no such parameter{hint}")
    elif isinstance(error, ValueError | FxError):
        yield Fault(path, str(error))
    else:
        yield Fault(path, f"{type(error).__name__}: {error}")


def _faults_of_class(error: cattrs.ClassValidationError, path: str) -> Iterator[Fault]:
    """Yield the faults of the fields of a class, and those of the class itself."""
    errors_of_fields, errors_of_class = error.group_exceptions()
    for inner, note in errors_of_fields:
        field_path = f"{path}.{key_of(note.name)}"
        if isinstance(inner, KeyError):
            help_text = attrs.fields_dict(error.cl)[note.name].metadata.get("help", "")
            yield Fault(field_path, f"is missing: {help_text}".rstrip(": "))
        else:
            yield from _faults(inner, field_path)
    for inner in errors_of_class:
        yield from _faults(inner, path)
