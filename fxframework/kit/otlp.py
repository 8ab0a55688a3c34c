"""Values of OTLP/JSON: what every OpenTelemetry exporter writes of attributes."""

from __future__ import annotations

import base64

import orjson

from fxframework.kit.json_fields import special_double
from fxframework.model.clock import NS_MAX

__all__ = ["NO_SERVICE", "SCOPE", "data", "double", "integer", "member", "string"]

SCOPE = "fxframework"
"""The name of the instrumentation scope."""
NO_SERVICE = "unknown_service"
"""OpenTelemetry's name of an unknown service."""


def string(text: str) -> str:
    """An AnyValue of a string, as JSON."""
    return f'{{"stringValue":{orjson.dumps(text).decode()}}}'


def integer(value: int) -> str:
    """An AnyValue of an integer; one above 2^63-1 is written as a string."""
    return f'{{"intValue":"{value}"}}' if value <= NS_MAX else f'{{"stringValue":"{value}"}}'


def double(value: float) -> str:
    """An AnyValue of a double; NaN and infinities by their names."""
    special = special_double(value)
    return f'{{"doubleValue":"{special}"}}' if special else f'{{"doubleValue":{value!r}}}'


def data(value: bytes) -> str:
    """An AnyValue of bytes."""
    return f'{{"bytesValue":"{base64.b64encode(value).decode()}"}}'


def member(key: str, value: str) -> str:
    """An attribute, with the comma before it; ``key`` needs no escape."""
    return f',{{"key":"{key}","value":{value}}}'
