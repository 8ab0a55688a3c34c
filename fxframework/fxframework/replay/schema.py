"""Schema: the JSON Schema of scenarios, with the installed steps and devices, for editors."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import attrs

from fxframework.errors import FxError, one_line
from fxframework.kit.steps import Duration, referred
from fxframework.registry import DeviceKind, StepKind
from fxframework.replay.scenario import TARGET, About
from fxframework.replay.values import class_of_parameters, is_list, is_table, is_union, key_of

if TYPE_CHECKING:
    from fxframework.host import Host

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SIMPLE: dict[Any, dict[str, Any]] = {
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
"""Schemas of types without parts."""
Definitions = dict[str, Any]
"""Schemas of classes by name, to which other schemas refer."""


def json_schema(host: Host) -> dict[str, Any]:
    """Return the JSON Schema of scenarios, with the installed steps and devices.

    Steps and devices of which there is no schema are left out, and are failures of their plugins.
    """
    definitions: Definitions = {}
    properties = {"scenario": _schema(About, definitions)}
    if TARGET in host.devices:
        target = _kind_schema(host, definitions, host.devices[TARGET])
        if target is not None:
            properties[TARGET] = target
    device_kinds = [kind for name, kind in sorted(host.devices.items()) if name != TARGET]
    devices = _kind_schemas(host, definitions, device_kinds, "kind")
    if devices:
        properties["device"] = {"type": "object", "additionalProperties": {"oneOf": devices}}
    step_kinds = [kind for _, kind in sorted(host.step_kinds.items())]
    steps = _kind_schemas(host, definitions, step_kinds, "do")
    properties["step"] = {"type": "array", "minItems": 1, "items": {"oneOf": steps}}
    return {
        "$schema": DIALECT,
        "title": "A scenario of fxframework",
        "type": "object",
        "properties": properties,
        "required": ["scenario", "step"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _kind_schemas(
    host: Host, definitions: Definitions, kinds: Iterable[StepKind | DeviceKind], key: str
) -> list[dict[str, Any]]:
    """Return the schemas of steps or devices, with their names at ``key``."""
    schemas = []
    for kind in kinds:
        schema = _kind_schema(host, definitions, kind)
        if schema is not None:
            schema["properties"] = {key: {"const": kind.name}, **schema["properties"]}
            schema["required"] = [key, *schema["required"]]
            schemas.append(schema)
    return schemas


def _kind_schema(
    host: Host, definitions: Definitions, kind: StepKind | DeviceKind
) -> dict[str, Any] | None:
    """Return the schema of a step or device, without its name; None if there is none."""
    import orjson

    # A copy, so that a kind that fails leaves no definitions behind.
    extended_definitions = dict(definitions)
    try:
        schema = table_schema(class_of_parameters(kind), extended_definitions)
        new_definitions = {
            name: extended_definitions[name]
            for name in extended_definitions
            if name not in definitions
        }
        orjson.dumps([schema, new_definitions])
    except Exception as error:  # noqa: BLE001 (types and notes of plugins; listed)
        reason = error.message if isinstance(error, FxError) else one_line(error)
        host.left_out(kind, f"no JSON Schema of {kind.name}: {reason}")
        return None
    definitions |= new_definitions
    schema["title"] = kind.title
    return schema


def table_schema(wanted_type: Any, definitions: Definitions) -> dict[str, Any]:
    """Return the schema of a class of parameters; ``definitions`` gets those of its parts."""
    attrs.resolve_types(wanted_type)
    properties = {}
    required = []
    for field in attrs.fields(wanted_type):
        schema = _schema(field.type, definitions)
        metadata = field.metadata
        # The bounds of a list are those of its items.
        bounded = schema.get("items", schema)
        if "help" in metadata:
            schema["description"] = _description(field)
        if "least" in metadata:
            bounded["minimum"] = metadata["least"]
        if "most" in metadata:
            bounded["maximum"] = metadata["most"]
        if "choices" in metadata:
            schema["enum"] = list(metadata["choices"])
        if field.default is attrs.NOTHING:
            required.append(key_of(field.name))
        elif isinstance(field.default, bool | int | float | str):
            schema["default"] = field.default
        properties[key_of(field.name)] = schema
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _description(field: attrs.Attribute[Any]) -> str:
    """Return the help of a parameter, with the kinds of device that it accepts."""
    help_text: str = field.metadata.get("help", "")
    _, kinds = referred(field.metadata.get("refers", "device"))
    if not kinds:
        return help_text
    return f"{help_text} (a device of kind {' or '.join(kinds)})"


def _schema(wanted_type: Any, definitions: Definitions) -> dict[str, Any]:
    """Return the schema of a type."""
    if wanted_type in SIMPLE:
        return dict(SIMPLE[wanted_type])
    if hasattr(wanted_type, "from_toml"):
        own_schema = getattr(wanted_type, "json_schema", None)
        return {} if own_schema is None else dict(own_schema())
    if attrs.has(wanted_type):
        name = f"{wanted_type.__module__}.{wanted_type.__qualname__}"  # unique across plugins
        if name not in definitions:
            definitions[name] = {}  # before its parts: a class may contain itself
            definitions[name] = table_schema(wanted_type, definitions)
        return {"$ref": f"#/$defs/{name}"}
    arguments = typing.get_args(wanted_type)
    if is_list(wanted_type):
        return {"type": "array", "items": _schema(arguments[0], definitions)}
    if is_table(wanted_type):
        return {"type": "object", "additionalProperties": _schema(arguments[1], definitions)}
    if is_union(wanted_type):
        members = [_schema(member, definitions) for member in arguments if member is not type(None)]
        return members[0] if len(members) == 1 else {"anyOf": members}
    if typing.get_origin(wanted_type) is Literal:
        return {"enum": list(arguments)}
    return {}
