"""OTLP/JSON values of attributes, shared by the OpenTelemetry exporters."""

from __future__ import annotations

import base64

import orjson

from fxframework.kit.json_fields import special_double
from fxframework.model.clock import NS_MAX

SCOPE = "fxframework"
"""The name of the instrumentation scope."""
NO_SERVICE = "unknown_service"
"""OpenTelemetry's name for an unknown service."""


def string(text: str) -> str:
    """Return an AnyValue of a string, as JSON."""
    return f'{{"stringValue":{orjson.dumps(text).decode()}}}'


def integer(value: int) -> str:
    """Return an AnyValue of an integer; an integer above 2^63-1 becomes a string."""
    if value <= NS_MAX:
        return f'{{"intValue":"{value}"}}'
    return f'{{"stringValue":"{value}"}}'


def double(value: float) -> str:
    """Return an AnyValue of a double; NaN and infinities are written by name."""
    name = special_double(value)
    if name:
        return f'{{"doubleValue":"{name}"}}'
    return f'{{"doubleValue":{value!r}}}'


def data(value: bytes) -> str:
    """Return an AnyValue of bytes."""
    return f'{{"bytesValue":"{base64.b64encode(value).decode()}"}}'


def member(key: str, value: str) -> str:
    """Return an attribute preceded by a comma; ``key`` must not need escaping."""
    return f',{{"key":"{key}","value":{value}}}'
