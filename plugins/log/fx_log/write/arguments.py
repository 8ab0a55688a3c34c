"""Arguments to write: types of Python values, and the bytes of arguments and records.

An int becomes int64 if that can hold it, otherwise uint64; bool, float and str become bool, double
and string; numbers of numpy keep their dtype. ``Uint64(7)`` and the like select a type. None
becomes the string "null", as in the reference writer, whose reader takes a null argument for the
number 1; ``Null()`` writes a null argument.
"""

from __future__ import annotations

import reprlib
import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

from fx_log import format as wire
from fx_log import rules
from fx_log.format import ArgType
from fxframework.errors import refusal
from fxframework.kit import arguments as kit
from fxframework.kit.arguments import (
    Double,
    Int64,
    Null,
    String,
    Typed,
    Uint64,
    kind_of,
    text_bytes,
)
from fxframework.kit.shown import rust_double

__all__ = [
    "Arguments", "Double", "Int64", "Null", "String", "Typed", "Uint64", "Value", "argument_bytes",
    "folded", "pairs", "record_bytes", "shortened", "shown_value", "type_of", "typed",
]  # fmt: skip

Value = None | bool | int | float | str | Typed
"""Types of values of arguments; numbers of numpy are accepted too."""
Arguments = Mapping[str, Value] | Iterable[tuple[str, Value]]
"""Names and values; a sequence of pairs can repeat names."""

NULL_TEXT = b"null"
"""The text written for None."""
CUT = b"..."
"""The end of a truncated text."""
MAX_VALUE_WORDS = wire.MAX_RECORD_WORDS - wire.MIN_RECORD_WORDS
"""Most words of a record's arguments."""
MAX_TIME = (1 << 63) - 1
NAMES = 1024
"""Number of names whose bytes are kept."""

_RANGES = {
    ArgType.INT64: (-(1 << 63), (1 << 63) - 1),
    ArgType.UINT64: (0, (1 << 64) - 1),
}
_TYPES = {
    "bool": ArgType.BOOL,
    "int32": ArgType.INT64,
    "int64": ArgType.INT64,
    "uint32": ArgType.UINT64,
    "uint64": ArgType.UINT64,
    "double": ArgType.DOUBLE,
    "string": ArgType.STRING,
}
_WORD = struct.Struct("<Q").pack
_HEADER = struct.Struct("<Qq").pack
_PACKS = {
    ArgType.INT64: struct.Struct("<q").pack,
    ArgType.UINT64: struct.Struct("<Q").pack,
    ArgType.DOUBLE: struct.Struct("<d").pack,
}
NAME_AT = wire.NAME_REF.low
SIZE_AT = wire.ARG_SIZE.low
"""The size of a record lies as that of an argument."""
VALUE_AT = wire.VALUE_REF.low
TAG_AT = wire.HEADER_TAG.low
SEVERITY_AT = wire.HEADER_SEVERITY.low
"""Where fields of headers begin."""
PADDING = tuple(bytes(-n % 8) for n in range(8))
"""Padding of a text, by its length modulo 8."""


def type_of(value: Any) -> tuple[ArgType, Any] | None:
    """Return a value's type, and the value as a Python number or text; None for other types."""
    if isinstance(value, Typed):
        if value.type not in wire.ARG_NAMES:
            return None
        return ArgType(value.type), value.value
    if value is None:
        return ArgType.STRING, NULL_TEXT
    kind, plain = kind_of(value) or ("blob", value)
    if kind == "int":
        return _type_of_int(plain), plain
    if kind not in _TYPES:
        return None
    return _TYPES[kind], plain


def _type_of_int(number: int) -> ArgType:
    """Return the type of an int, of those that can hold it; uint64 is refused later if none can."""
    _, greatest_signed = _RANGES[ArgType.INT64]
    return ArgType.UINT64 if number > greatest_signed else ArgType.INT64


def typed(name: Any, value: Any) -> tuple[ArgType, Any]:
    """Return what ``type_of`` does. Raises WriteRefusedError for a value of another type."""
    type_and_value = type_of(value)
    if type_and_value is None:
        raise refusal(
            rules.UNSUPPORTED_VALUE,
            f"the value of {reprlib.repr(name)} is a {type(value).__name__}",
        )
    return type_and_value


def octets(what: str, text: Any) -> bytes:
    """Return a text as UTF-8; bytes are returned unchanged. Raises WriteRefusedError."""
    if isinstance(text, bytes):
        return text
    return text_bytes(what, text, rules.WRONG_TYPE)


pairs = partial(kit.pairs_of, "keys", rule=rules.WRONG_TYPE)
whole_number = partial(kit.whole_number, rules=rules.REFUSALS)


def shortened(data: bytes, limit: int, mark: bytes = CUT) -> bytes:
    """Return UTF-8 of at most ``limit`` bytes, cut between characters and ended with ``mark``."""
    if len(data) <= limit:
        return data
    end = max(0, limit - len(mark))
    for _ in range(3):  # the continuation bytes of a character
        if end and 0x80 <= data[end] < 0xC0:
            end -= 1
    return data[:end] + mark[: max(0, limit)]


def folded(
    message: str, file: str | None, line: int | None, keys: Iterable[tuple[str, Any]]
) -> str:
    """Return a message with place and keys, in the form of the FIDL listener."""
    words = []
    if file is not None:
        words.append(f"[{file}]" if line is None else f"[{file}({line})]")
    if message:
        words.append(message)
    words += [f"{name}={shown_value(value)}" for name, value in keys]
    return " ".join(words)


def shown_value(value: Any) -> str:
    """Return a value as text in a message: unquoted, as ``ffx log`` prints it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, float):
        return rust_double(value)
    if isinstance(value, bytes | memoryview):
        return value.hex()
    return str(value)


def name_head(name: str | bytes) -> tuple[int, bytes]:
    """Return the header word with the fields of a name, and the name's padded bytes.

    Raises WriteRefusedError for a name over 32,767 bytes (STRING_TOO_LONG), or one that fills a
    record (TOO_LARGE).
    """
    data = octets("a key", name)
    length = len(data)
    if length > wire.MAX_STRING:
        raise refusal(
            rules.STRING_TOO_LONG,
            f"a key has {length} bytes, at most {wire.MAX_STRING}: {reprlib.repr(name)}",
        )
    size = 1 + (length + 7) // 8
    if size > MAX_VALUE_WORDS:
        raise refusal(
            rules.TOO_LARGE, f"a key has {length} bytes, which leaves it no room in a record"
        )
    return reference(length) << NAME_AT | size << SIZE_AT, data + PADDING[length % 8]


_known_head = lru_cache(NAMES)(name_head)


def reference(length: int) -> int:
    """Return what a header has for an inline string of some bytes."""
    return wire.INLINE | length if length else 0


def argument_bytes(name: str | bytes, kind: int, value: Any) -> bytes:
    """Return an argument's bytes. ``kind`` is one of ``ArgType``; a string may be given as bytes.

    Raises WriteRefusedError.
    """
    head, data = _known_head(name) if type(name) is str else name_head(name)
    if kind == ArgType.STRING:
        if not isinstance(value, bytes):
            value = octets(_value_of(name), value)
        return text_argument(head, data, value)
    if kind == ArgType.BOOL:
        return _WORD(head | ArgType.BOOL | bool(value) << VALUE_AT) + data
    if kind == ArgType.NULL:
        return _WORD(head) + data
    if wire.ARG_SIZE.get(head) >= MAX_VALUE_WORDS:
        raise refusal(
            rules.TOO_LARGE, f"the name of {reprlib.repr(name)} leaves no room for a value"
        )
    pack = _PACKS.get(kind)  # type: ignore[call-overload]
    if pack is None:
        raise refusal(
            rules.UNSUPPORTED_VALUE, f"logs have no arguments of type {reprlib.repr(kind)}"
        )
    try:
        packed = pack(value)
    except (struct.error, OverflowError, TypeError):
        if kind == ArgType.DOUBLE:
            raise refusal(
                rules.WRONG_TYPE, f"{_value_of(name)} is not a double: {reprlib.repr(value)}"
            ) from None
        what = f"{_value_of(name)}, {wire.ARG_NAMES[kind]},"
        packed = pack(whole_number(what, value, *_RANGES[ArgType(kind)]))
    return b"".join((_WORD((head | kind) + (1 << SIZE_AT)), data, packed))


def text_argument(head: int, name: bytes, value: bytes) -> bytes:
    """Return the bytes of a string argument; ``head`` and ``name`` come from ``name_head``.

    Raises WriteRefusedError over 32,767 bytes (STRING_TOO_LONG), or over the words of a record
    (TOO_LARGE).
    """
    length = len(value)
    size = wire.ARG_SIZE.get(head) + (length + 7) // 8
    if length > wire.MAX_STRING or size > MAX_VALUE_WORDS:
        what = _value_of(name.rstrip(b"\0"))
        if length > wire.MAX_STRING:
            raise refusal(
                rules.STRING_TOO_LONG, f"{what} has {length} bytes, at most {wire.MAX_STRING}"
            )
        raise refusal(
            rules.TOO_LARGE, f"{what}: with its name it needs {size} words of {MAX_VALUE_WORDS}"
        )
    # The head has the size of an argument without a value.
    header = (head & ~wire.ARG_SIZE.mask) | size << SIZE_AT | ArgType.STRING
    header |= reference(length) << VALUE_AT
    return b"".join((_WORD(header), name, value, PADDING[length % 8]))


def _value_of(name: str | bytes) -> str:
    if isinstance(name, bytes):
        name = name.decode(errors="backslashreplace")
    return f"the value of {reprlib.repr(name)}"


def record_bytes(severity: int, time: int, arguments: bytes, *, tag_bits: int = 0) -> bytes:
    """Return the structured record with these arguments, given as bytes in whole words.

    Raises WriteRefusedError over 4,095 words (TOO_LARGE).
    """
    size = wire.MIN_RECORD_WORDS + len(arguments) // 8
    if size > wire.MAX_RECORD_WORDS:
        raise refusal(
            rules.TOO_LARGE,
            f"the record needs {size} words, one has {wire.MAX_RECORD_WORDS} at most",
        )
    header = wire.RECORD_TYPE | size << SIZE_AT | tag_bits << TAG_AT | severity << SEVERITY_AT
    return _HEADER(header, time) + arguments
