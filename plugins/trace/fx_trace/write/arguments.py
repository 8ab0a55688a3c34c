"""Values: what type an argument gets from a Python value, and the wrappers that say it outright.

A plain int takes the narrowest of int32, uint32, int64 and uint64 that holds it, in that order
(docs/writing.md); None, bool, float, str and bytes become null, bool, double, string and blob.
Numbers
of numpy keep their width. What must be of a certain type is wrapped: ``Koid(7)``, ``Int64(1)``.
"""

from __future__ import annotations

from typing import Any

from fx_trace.layout import ArgType
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
"""What an argument may be; numpy's numbers too."""

RANGES = {
    ArgType.INT32: (-(1 << 31), (1 << 31) - 1),
    ArgType.UINT32: (0, (1 << 32) - 1),
    ArgType.INT64: (-(1 << 63), (1 << 63) - 1),
    ArgType.UINT64: (0, (1 << 64) - 1),
    ArgType.POINTER: (0, (1 << 64) - 1),
    ArgType.KOID: (0, (1 << 64) - 1),
}
"""Of the types that are whole numbers, the least and the greatest."""

_OF_NUMPY = {
    "b1": ArgType.BOOL,
    "i1": ArgType.INT32,
    "i2": ArgType.INT32,
    "i4": ArgType.INT32,
    "u1": ArgType.UINT32,
    "u2": ArgType.UINT32,
    "u4": ArgType.UINT32,
    "i8": ArgType.INT64,
    "u8": ArgType.UINT64,
    "f2": ArgType.DOUBLE,
    "f4": ArgType.DOUBLE,
    "f8": ArgType.DOUBLE,
}
_BYTES = (bytes, bytearray, memoryview)
_INTEGERS = (ArgType.INT32, ArgType.UINT32, ArgType.INT64, ArgType.UINT64)


def type_of(value: Any) -> tuple[ArgType, Any] | None:
    """The type that a value gets, and the value as a Python object; None where it gets none."""
    if isinstance(value, Blob):
        value = value.value
        return (ArgType.BLOB, bytes(value)) if isinstance(value, _BYTES) else None
    if isinstance(value, Typed):
        return ArgType(value.type), value.value
    if value is None:
        return ArgType.NULL, None
    if isinstance(value, bool):
        return ArgType.BOOL, value
    if isinstance(value, int):
        number = int(value)
        for kind in _INTEGERS:
            least, most = RANGES[kind]
            if least <= number <= most:
                return kind, number
        return ArgType.UINT64, number  # refused with that range
    if isinstance(value, float):
        return ArgType.DOUBLE, float(value)
    if isinstance(value, str):
        return ArgType.STRING, str(value)
    if isinstance(value, _BYTES):
        return ArgType.BLOB, bytes(value)
    kind_of_numpy = getattr(getattr(value, "dtype", None), "str", "")[1:]
    if kind_of_numpy in _OF_NUMPY and getattr(value, "shape", None) == ():
        return _OF_NUMPY[kind_of_numpy], value.item()
    return None
