"""Arguments: typed values for writers, and the types of plain Python and numpy values.

The numbers of the types are those of the column ``type`` (``schema.ArgType``). A format uses the
wrappers of the types that it supports.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from fxframework.errors import Refusals, Rule, refusal


@attrs.frozen
class Typed:
    """A value with an explicit argument type."""

    value: Any
    type: ClassVar[int]


@attrs.frozen
class Null(Typed):
    """A null."""

    value: Any = None
    type = 0


class Int32(Typed):
    """An integer from -2^31 to 2^31-1."""

    type = 1


class Uint32(Typed):
    """An integer from 0 to 2^32-1."""

    type = 2


class Int64(Typed):
    """An integer from -2^63 to 2^63-1."""

    type = 3


class Uint64(Typed):
    """An integer from 0 to 2^64-1."""

    type = 4


class Double(Typed):
    """A double."""

    type = 5


class String(Typed):
    """A string of at most 32,000 bytes of UTF-8 in traces, about 32,767 in logs."""

    type = 6


class Pointer(Typed):
    """An address in the process, 0 to 2^64-1."""

    type = 7


class Koid(Typed):
    """The id of a kernel object, 0 to 2^64-1."""

    type = 8


class Blob(Typed):
    """Bytes stored within the argument."""

    type = 10


_NUMPY_TYPES = {
    "b1": "bool",
    **dict.fromkeys(("i1", "i2", "i4"), "int32"),
    **dict.fromkeys(("u1", "u2", "u4"), "uint32"),
    "i8": "int64",
    "u8": "uint64",
    **dict.fromkeys(("f2", "f4", "f8"), "double"),
}
"""Types of numpy scalars, by their array-protocol code without the byte order."""


def kind_of(value: Any) -> tuple[str, Any] | None:
    """Return the type of a value and the value as a Python object; None if it is not supported.

    The type is null, bool, int, double, string or blob; for a numpy number it is int32, uint32,
    int64, uint64 or double, by its width.
    """
    if value is None:
        return "null", None
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, int):
        return "int", int(value)
    if isinstance(value, float):
        return "double", float(value)
    if isinstance(value, str):
        return "string", str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return "blob", bytes(value)
    # Without importing numpy, which writers of plain values need not load.
    type_code = getattr(getattr(value, "dtype", None), "str", "")[1:]
    if type_code in _NUMPY_TYPES and getattr(value, "shape", None) == ():
        return _NUMPY_TYPES[type_code], value.item()
    return None


def pairs_of(what: str, args: Any, rule: Rule) -> list[tuple[Any, Any]]:
    """Return names and values as a list, since an iterator can be read only once.

    Raises WriteRefusedError for anything else than a mapping or pairs.
    """
    if isinstance(args, Mapping):
        args = args.items()
    try:
        return [(name, value) for name, value in args]
    except (TypeError, ValueError) as error:
        message = f"{what} are names and values, not {reprlib.repr(args)}"
        raise refusal(rule, message) from error


def whole_number(what: str, value: Any, least: int, most: int, rules: Refusals) -> int:
    """Return a whole number within bounds. Raises WriteRefusedError for any other value."""
    try:
        number = operator.index(value)
    except TypeError:
        message = f"{what} is a whole number, not {reprlib.repr(value)}"
        raise refusal(rules.type, message) from None
    if not least <= number <= most:
        message = f"{what} is {reprlib.repr(number)}, not {least} to {most}"
        raise refusal(rules.range, message)
    return number


def text_bytes(what: str, text: Any, rule: Rule) -> bytes:
    """Return a text as UTF-8, with surrogate escapes as the bytes that they stand for.

    Raises WriteRefusedError for what is not a text.
    """
    if not isinstance(text, str):
        raise refusal(rule, f"{what} must be a text, not {reprlib.repr(text)}")
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise refusal(rule, f"{what} holds a lone surrogate: {error}") from None
