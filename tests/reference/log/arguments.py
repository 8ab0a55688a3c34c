"""Arguments of structured records: the named values, their JSON, and how to decode and encode them.

Strings are Python strings; bytes that are not valid UTF-8 become surrogate escapes, as in
`os.fsdecode`, so that nothing is lost. Sizes and offsets are in bytes.
"""

from __future__ import annotations

import math
import reprlib
import struct
from collections.abc import Callable
from typing import Any

import attrs
from tests.reference.log import layout as wire
from tests.reference.log.layout import ArgType

from fx_log import rules
from fxframework.errors import Rule, refusal
from fxframework.io.words import U64_MAX, WORD, pad8, padding, to_i64
from fxframework.kit.json_fields import (
    CANONICAL_NAN,
    bits_of,
    double_of,
    exactly,
    show_double,
    show_text,
    unfit,
)
from fxframework.model.diagnostics import Found

__all__ = ["DAMAGED", "Argument", "ArgumentReader", "Damage", "Value"]

Value = None | bool | int | float | str | bytes

I64_MIN, I64_MAX = -(1 << 63), (1 << 63) - 1
DAMAGED = "damaged"
"""The type of an argument that could not be decoded."""
_U64 = struct.Struct("<Q")
_ARGUMENT_RESERVED = tuple(
    wire.ARGUMENT_LAYOUTS.get(number, wire.ARGUMENT).reserved_mask for number in range(16)
)


def checked(what: str, name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise unfit(rules.OUT_OF_RANGE, what, name, value, least, most)
    return value


def encoded(what: str, name: str, text: str, limit: int) -> bytes:
    """Return the bytes of a text.

    Raises WriteRefusedError over ``limit`` bytes, and for a lone surrogate.
    """
    try:
        data = text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise refusal(rules.WRONG_TYPE, f"{what}: {name} holds a lone surrogate: {error}") from None
    if len(data) > limit:
        raise refusal(
            rules.STRING_TOO_LONG, f"{what}: {name} has {len(data)} bytes; at most {limit} fit"
        )
    return data


def _reference(data: bytes) -> int:
    """Return the string reference of an inline string."""
    return wire.INLINE | len(data) if data else 0


def text_of(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


_NUMBERS = {name: number for number, name in wire.ARG_NAMES.items()}


@attrs.define(kw_only=True)
class Argument:
    """A named value of a record (logs-encoding, Argument header).

    ``type`` is one of null int64 uint64 double string bool; or the number of a type that logs do
    not have, with the words after the name as bytes in ``value``; or ``damaged``, with all words of
    the argument in ``value`` and the finding in ``code``.
    """

    name: str
    type: str | int
    value: Value = attrs.field(default=None, eq=exactly)
    bits: int | None = None
    """The 64 bits of a NaN that is not the canonical one."""
    code: str | None = None
    offset: int = attrs.field(default=0, eq=False)
    """Byte offset of the header in the (decompressed) file."""

    def to_json(self) -> dict[str, Any]:
        """Return the argument's object in record JSON."""
        out: dict[str, Any] = {}
        show_text(out, "name", self.name)
        out["type"] = self.type
        if self.code is not None:
            out["code"] = self.code
        value = self.value
        if isinstance(value, float):
            show_double(out, "value", value, self.bits)
        elif isinstance(value, str):
            show_text(out, "value", value)
        else:
            out["value"] = value.hex() if isinstance(value, bytes) else value
        return out

    def pack(self, what: str = "argument") -> bytes:
        """Return the argument's bytes.

        Raises WriteRefusedError for a value that the format cannot hold.
        """
        value = self.value
        if self.type == DAMAGED:
            assert isinstance(value, bytes)
            return self._words(what, value)
        what = f"{what}, argument {reprlib.repr(self.name)}"
        name = encoded(what, "its name", self.name, wire.MAX_STRING)
        number = _NUMBERS[self.type] if isinstance(self.type, str) else self.type
        header = number | _reference(name) << wire.NAME_REF.low
        rest = b""
        if self.type == "string":
            assert isinstance(value, str)
            data = encoded(what, "its value", value, wire.MAX_STRING)
            header |= _reference(data) << wire.VALUE_REF.low
            rest = pad8(data)
        elif self.type == "bool":
            header |= bool(value) << wire.BOOL_VALUE.low
        elif isinstance(value, bytes):
            rest = self._words(what, value)
        elif isinstance(value, float):
            rest = _U64.pack(self._bits(value))
        elif isinstance(value, int):
            signed = self.type == "int64"
            least, most = (I64_MIN, I64_MAX) if signed else (0, U64_MAX)
            rest = _U64.pack(checked(what, "value", value, least, most) & U64_MAX)
        words = 1 + (len(name) + padding(len(name)) + len(rest)) // WORD
        if words > wire.ARG_SIZE.limit:
            message = f"{what}: needs {words} words; at most {wire.ARG_SIZE.limit} fit"
            raise refusal(rules.TOO_LARGE, message)
        return _U64.pack(header | words << wire.ARG_SIZE.low) + pad8(name) + rest

    def _bits(self, value: float) -> int:
        if math.isnan(value):
            return CANONICAL_NAN if self.bits is None else self.bits
        return bits_of(value)

    @staticmethod
    def _words(what: str, data: bytes) -> bytes:
        if len(data) % WORD:
            raise refusal(
                rules.OUT_OF_RANGE, f"{what}: its value must be a whole number of 8-byte words"
            )
        return data


class Damage(Exception):  # noqa: N818 (internal: raised and caught within an argument)
    """The bytes cannot be decoded, by a rule; ``value`` is that of the finding."""

    def __init__(self, rule: Rule, value: object = None) -> None:
        super().__init__(rule, value)
        self.rule = rule
        self.value = value


class ArgumentReader:
    """Decodes the arguments of a record in order (logs-encoding, Argument header)."""

    def __init__(self, data: memoryview, at: int, end: int, place: Callable[[int], int]) -> None:
        self.data = data
        self.at = at
        self.end = end
        self.place = place
        """Maps a position in ``data`` to the byte offset in the file."""
        self.findings: list[Found] = []
        self.reserved: int | None = None
        self.unpadded: int | None = None
        self.messages = 0
        self.start = at

    def find(self, rule: Rule, value: object = None) -> None:
        """Add a finding about the current argument."""
        self.findings.append(Found(rule, self.place(self.start), value))

    def read(self) -> tuple[Argument, ...]:
        """Return all arguments."""
        arguments = []
        while self.at < self.end:
            arguments.append(self.argument())
        return tuple(arguments)

    def argument(self) -> Argument:
        """Return the next argument.

        After an argument that cannot be decoded, reading continues behind its stated size, or
        stops.
        """
        start = self.start = self.at
        header = self.word()
        number = header & wire.ARG_TYPE.limit
        if header & _ARGUMENT_RESERVED[number] and self.reserved is None:
            self.reserved = self.place(start)
        try:
            argument = self.decode(header, number)
        except Damage as damage:
            self.find(damage.rule)
            size = WORD * wire.ARG_SIZE.get(header)
            self.at = start + size if 0 < size <= self.end - start else self.end
            return Argument(
                name="",
                type=DAMAGED,
                value=self.data[start : self.at].tobytes(),
                code=damage.rule.code,
                offset=self.place(start),
            )
        argument.offset = self.place(start)
        return argument

    def decode(self, header: int, number: int) -> Argument:
        """Return the argument with this header, which has been read."""
        start = self.start
        size = WORD * wire.ARG_SIZE.get(header)
        if number > ArgType.BOOL:
            self.find(rules.UNKNOWN_TYPE, number)
        name = self.string(wire.NAME_REF.get(header))
        if not is_utf8(name):
            self.find(rules.NOT_UTF8, name)
        if not name and number != ArgType.NULL:
            self.find(rules.EMPTY_NAME)
        lossy = False
        if name == b"message":
            self.messages += 1
            lossy = self.messages == 1
        argument = Argument(name=text_of(name), type=wire.ARG_NAMES.get(number, number))
        if number == ArgType.NULL:
            self.find(rules.NULL_ARGUMENT)
        elif number == ArgType.BOOL:
            argument.value = bool(wire.BOOL_VALUE.get(header))
        elif number == ArgType.STRING:
            data = self.string(wire.VALUE_REF.get(header))
            if not is_utf8(data):
                rule = rules.MESSAGE_NOT_UTF8 if lossy else rules.NOT_UTF8
                self.find(rule, None if name == b"message" else data)
            argument.value = text_of(data)
        elif number in wire.ARG_NAMES:
            if self.at == self.end:
                raise Damage(rules.NUMBER_MISSING)
            self.number(argument, number, self.word())
        else:
            if not self.at <= start + size <= self.end:
                raise Damage(rules.UNKNOWN_SIZE)
            if number in wire.TRACE_TYPES:
                self.find(rules.TRACE_TYPE, number)
            argument.value = self.data[self.at : start + size].tobytes()
            self.at = start + size
        if header and size != self.at - start:
            self.find(rules.SIZE_DIFFERS, size // WORD)
        return argument

    def number(self, argument: Argument, number: int, word: int) -> None:
        """Set the value of a number."""
        if number == ArgType.DOUBLE:
            value = double_of(word)
            argument.value = value
            if math.isnan(value):
                argument.value = math.nan
                argument.bits = None if word == CANONICAL_NAN else word
        else:
            argument.value = to_i64(word) if number == ArgType.INT64 else word

    def word(self) -> int:
        """Return the next word, which must exist."""
        at = self.at
        self.at = at + WORD
        value: int = _U64.unpack_from(self.data, at)[0]
        return value

    def string(self, reference: int) -> bytes:
        """Return the bytes of a string reference (logs-encoding, Primitives); skip the padding."""
        if not reference:
            return b""
        if not reference & wire.INLINE:
            raise Damage(rules.RESERVED_REFERENCE)
        nbytes = reference & wire.MAX_STRING
        if not nbytes:
            self.find(rules.EMPTY_INLINE_STRING)
        at, stop = self.at, self.at + nbytes
        if stop > self.end:
            raise Damage(rules.STRING_TRUNCATED)
        self.at = stop + padding(nbytes)
        if self.unpadded is None and any(self.data[stop : self.at]):
            self.unpadded = self.place(self.start)
        return self.data[at:stop].tobytes()
