"""Arguments: JSON values as rows of `args`, those within objects and arrays by their paths."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_chrome_json.read.tasks import Codes
from fxframework.kit import Columns, value_columns
from fxframework.model.schema import ARG_TYPES

__all__ = ["ArgumentRows", "leaves"]

DEEPEST, LONGEST = 16, 256
"""Levels, and characters of a path, within which objects and arrays are taken apart."""
_TYPES = {name: number for number, name in ARG_TYPES.items()}
NULL, INT64, UINT64, DOUBLE, STRING, BOOL = (
    _TYPES[name] for name in ("null", "int64", "uint64", "double", "string", "bool")
)
_BITS = struct.Struct("<d")
_AS_INT = struct.Struct("<q")


def leaves(args: Any) -> Iterator[tuple[str, Any]]:
    """Path and value of each argument: ``a.b`` within an object, ``a[0]`` within an array.

    An object or array without anything in it, too deep or of too long a path is one argument: its
    JSON. What is given as arguments but is not an object has the path ``args``.
    """
    if not isinstance(args, dict):
        args = {"args": args}
    todo: list[tuple[str, Any, int]] = [(name, args[name], 1) for name in reversed(args)]
    while todo:
        path, value, depth = todo.pop()
        if not isinstance(value, dict | list):
            yield path, value
        elif not value or depth > DEEPEST or len(path) > LONGEST:
            yield path, json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        elif isinstance(value, dict):
            todo += [(f"{path}.{name}", value[name], depth + 1) for name in reversed(value)]
        else:
            numbered = reversed(list(enumerate(value)))
            todo += [(f"{path}[{place}]", each, depth + 1) for place, each in numbered]


class ArgumentRows:
    """The arguments of a stretch of events, gathered one by one."""

    def __init__(self, names: Codes) -> None:
        self._names = names
        self._of: tuple[list[int], list[int], list[int]] = ([], [], [])
        self._values: tuple[list[int], list[int], list[int]] = ([], [], [])
        self.too_large: list[int] = []
        """Offsets of events with an integer that does not fit 64 bits."""

    def add(self, offset: int, table: int, parent: int, members: Any) -> None:
        """Add arguments: pairs of path and value."""
        offsets, tables, parents = self._of
        names, types, values = self._values
        for name, value in members:
            kind = type(value)
            if kind is str:
                number, bits = STRING, self._names[value]
            elif kind is int:
                number, bits = INT64, value
                if not -(1 << 63) <= value < 1 << 63:
                    number, bits = UINT64, value - (1 << 64)
                    if not 0 <= value < 1 << 64:
                        number, bits = STRING, self._names[_digits(value)]
                        self.too_large.append(offset)
            elif kind is float:
                number, bits = DOUBLE, _AS_INT.unpack(_BITS.pack(value))[0]
            elif kind is bool:
                number, bits = BOOL, int(value)
            else:
                number, bits = NULL, 0
            offsets.append(offset)
            tables.append(table)
            parents.append(parent)
            names.append(self._names[name])
            types.append(number)
            values.append(bits)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The raw columns, each of shape (rows,)."""
        offsets, tables, parents = self._of
        names, types, values = self._values
        return {
            "offset": np.array(offsets, np.int64),
            "table": np.array(tables, np.uint8),
            "parent": np.array(parents, np.int64),
            "name": np.array(names, np.int32),
            "type": np.array(types, np.uint8),
            "bits": np.array(values, np.int64),
        }


def argument_columns(raw: dict[str, NDArray[Any]]) -> Columns:
    """The columns of `args`, but ``row``, of raw ones."""
    types, bits = raw["type"], raw["bits"]
    seen = int(np.bitwise_or.reduce(np.left_shift(1, types.astype(np.int64)), initial=0))
    named = {name: raw[name] for name in ("offset", "table", "parent", "name", "type")}
    return {**named, **value_columns(types, bits, seen)}


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # thousands of digits
        return hex(value)
