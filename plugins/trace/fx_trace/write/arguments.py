"""Arguments to write: types of Python values, and wrappers that select a type.

A plain int takes the narrowest of int32, uint32, int64 and uint64 that holds it, in that order
(docs/writing.md); None, bool, float, str and bytes become null, bool, double, string and blob.
Numbers of numpy keep their width. Wrappers select a type: ``Koid(7)``, ``Int64(1)``.
"""

from __future__ import annotations

from typing import Any

from fx_trace.format import ArgType
from fxframework.kit.arguments import (
    Blob,
    Double,
    Int32,
    Int64,
    Koid,
    Pointer,
    String,
    Typed,
    Uint32,
    Uint64,
    kind_of,
)

__all__ = [
    "Blob",
    "Double",
    "Int32",
    "Int64",
    "Koid",
    "Pointer",
    "String",
    "Typed",
    "Uint32",
    "Uint64",
    "Value",
    "type_of",
]


Value = None | bool | int | float | str | bytes | Typed
"""Types of values of arguments; numbers of numpy are accepted too."""

RANGES = {
    ArgType.INT32: (-(1 << 31), (1 << 31) - 1),
    ArgType.UINT32: (0, (1 << 32) - 1),
    ArgType.INT64: (-(1 << 63), (1 << 63) - 1),
    ArgType.UINT64: (0, (1 << 64) - 1),
    ArgType.POINTER: (0, (1 << 64) - 1),
    ArgType.KOID: (0, (1 << 64) - 1),
}
"""Range of each integer type."""

BYTES = bytes | bytearray | memoryview
_INTEGERS = (ArgType.INT32, ArgType.UINT32, ArgType.INT64, ArgType.UINT64)


def type_of(value: Any) -> tuple[ArgType, Any] | None:
    """Return the type for a value and the value as a Python object; None for other types."""
    if isinstance(value, Blob):
        value = value.value
        return (ArgType.BLOB, bytes(value)) if isinstance(value, BYTES) else None
    if isinstance(value, Typed):
        return ArgType(value.type), value.value
    found = kind_of(value)
    if found is None:
        return None
    kind, plain = found
    if kind != "int":
        return ArgType[kind.upper()], plain
    fitting = (each for each in _INTEGERS if RANGES[each][0] <= plain <= RANGES[each][1])
    return next(fitting, ArgType.UINT64), plain  # one that is too large is refused with that range
