"""JSON fields: conversion of record values to JSON, and checked reading of JSON objects.

Shared by the records of all formats: strings that are not UTF-8, doubles that JSON cannot hold, and
errors that name the field. See docs/records.md.
"""

from __future__ import annotations

import math
import reprlib
import struct
from collections.abc import Mapping
from typing import Any

import orjson

from fxframework.errors import Refusals, Rule, WriteRefusedError, did_you_mean, refusal
from fxframework.io.words import U64_MAX

CANONICAL_NAN = 0x7FF8000000000000
"""The bits of the NaN that stands for any other where its bits are not given."""
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_F64 = struct.Struct("<d")
_U64 = struct.Struct("<Q")


def double_of(bits: int) -> float:
    """Return the double with these 64 bits."""
    value: float = _F64.unpack(_U64.pack(bits))[0]
    return value


def bits_of(value: float) -> int:
    """Return the 64 bits of a double."""
    bits: int = _U64.unpack(_F64.pack(value))[0]
    return bits


def exactly(value: Any) -> Any:
    """Return a key for exact equality: the bytes of a double, so that -0.0 differs from 0.0."""
    return _F64.pack(value) if isinstance(value, float) else value


def unfit(rule: Rule, what: str, name: str, value: int, least: int, most: int) -> WriteRefusedError:
    """Return the error for a number that its field cannot hold."""
    message = f"{what}: {name} is {reprlib.repr(value)}, but its field holds {least} to {most}"
    return refusal(rule, message)


# --- Values to JSON ------------------------------------------------------------------------------


def shown_text(text: str) -> str:
    """Return a text with U+FFFD in place of invalid UTF-8 (given as surrogate escapes)."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def show_text(out: dict[str, Any], key: str, text: str) -> None:
    """Put a text into a JSON object, with its bytes in a second field if they are not UTF-8."""
    out[key] = text
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        out[key] = shown_text(text)
        out[f"{key}_bytes_hex"] = text.encode(errors="surrogateescape").hex()


def finite(value: float) -> float | None:
    """Return a finite number unchanged, None for any other."""
    return value if math.isfinite(value) else None


def special_double(value: float) -> str:
    """Return the name of a double that JSON cannot hold; the empty string for other doubles."""
    if math.isfinite(value):
        return ""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def show_double(out: dict[str, Any], key: str, value: float, bits: int | None) -> None:
    """Put a double into a JSON object; ``bits`` are those of a noncanonical NaN, or None."""
    name = special_double(value)
    out[key] = name or value
    if name and bits is not None:
        out[f"{key}_bits"] = f"0x{bits:016x}"


# --- JSON to values ------------------------------------------------------------------------------


class JsonFields:
    """Checked access to the fields of a JSON object; errors name the field.

    ``rules`` are the format's rules for what is wrong with a field.
    """

    def __init__(self, what: str, given: Mapping[str, Any], rules: Refusals) -> None:
        self.what = what
        self.given = given
        self.rules = rules
        self.used: set[str] = set()
        """Keys that were read; ``finish`` refuses others."""

    def __contains__(self, key: str) -> bool:
        return key in self.given

    def wrong(self, key: str, wanted: str) -> WriteRefusedError:
        """Return the error for a value of the wrong type."""
        value = reprlib.repr(self.given[key])
        return refusal(self.rules.type, f"{self.what}: {key} must be {wanted}, not {value}")

    def need(self, key: str) -> Any:
        """Return the value of a required key."""
        self.used.add(key)
        try:
            return self.given[key]
        except KeyError:
            raise refusal(self.rules.fields, f"{self.what}: {key} is missing") from None

    def number(self, key: str) -> int:
        """Return an integer."""
        value = self.need(key)
        if type(value) is not int:
            raise self.wrong(key, "an integer")
        return value

    def within(self, key: str, least: int, most: int) -> int:
        """Return an integer in a range."""
        value = self.number(key)
        if not least <= value <= most:
            raise unfit(self.rules.range, self.what, key, value, least, most)
        return value

    def flag(self, key: str) -> bool:
        """Return a bool."""
        value = self.need(key)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def text(self, key: str) -> str:
        """Return a string, from its ``_bytes_hex`` field if that decodes to the shown string."""
        text = self.need(key)
        if not isinstance(text, str):
            raise self.wrong(key, "a string")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self.wrong(key, "a string without lone surrogates") from None
        bytes_key = f"{key}_bytes_hex"
        if bytes_key in self.given:
            data = self.octets(bytes_key)
            # Other bytes are those of the text before somebody edited it.
            if data.decode(errors="replace") == text:
                return data.decode(errors="surrogateescape")
        return text

    def octets(self, key: str) -> bytes:
        """Return bytes given in hex."""
        value = self.need(key)
        try:
            return bytes.fromhex(value)
        except (TypeError, ValueError):
            raise self.wrong(key, "bytes in hex") from None

    def hex_number(self, key: str) -> int:
        """Return a number given in hex."""
        value = self.need(key)
        try:
            if type(value) is int:
                return value
            return int(value, 16)
        except (TypeError, ValueError):
            raise self.wrong(key, "a number in hex") from None

    def double(self, key: str) -> tuple[float, int | None]:
        """Return a double, and the bits of a noncanonical NaN, or None."""
        value = self.need(key)
        if isinstance(value, str):
            value = NOT_FINITE.get(value)
        if type(value) not in (int, float):
            raise self.wrong(key, "a number, 'NaN', 'Infinity' or '-Infinity'")
        try:
            value = float(value)
        except OverflowError:
            raise self.wrong(key, "a number that a double holds") from None
        bits = None
        if f"{key}_bits" in self:
            bits = self.hex_number(f"{key}_bits")
        if not math.isnan(value):
            return value, None
        # Bits of a number are those of the double before somebody edited it.
        if bits is None or not 0 <= bits <= U64_MAX or not math.isnan(double_of(bits)):
            return math.nan, None
        return math.nan, None if bits == CANONICAL_NAN else bits

    def one_of(self, key: str, numbers: Mapping[str, int], limit: int) -> str | int:
        """Return a name of ``numbers``, or a number without a name."""
        value = self.need(key)
        if isinstance(value, str):
            if value in numbers:
                return value
            suggestion = did_you_mean(value, numbers)
            raise refusal(self.rules.name, f"{self.what}: no {key} {value!r}{suggestion}")
        if type(value) is not int:
            raise self.wrong(key, "a name or an integer")
        if not 0 <= value <= limit:
            raise unfit(self.rules.range, self.what, key, value, 0, limit)
        for name, number in numbers.items():
            if number == value:
                return name
        return value

    def finish(self) -> None:
        """Raise an error for a key that was not read."""
        for key in self.given:
            if key not in self.used:
                hint = did_you_mean(key, self.used)
                raise refusal(self.rules.fields, f"{self.what} has no field {key!r}{hint}")


def encoded(value: Any, option: int = 0) -> bytes:
    """Return the JSON of a value, of which orjson takes nearly all as they are (``encodable``)."""
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        return orjson.dumps(encodable(value), option=option)


def encodable(value: Any) -> Any:
    """Return a JSON value that orjson takes: texts are shown, integers may have over 64 bits."""
    if isinstance(value, str):
        return shown_text(value)
    if isinstance(value, int) and value.bit_length() > 63:
        return orjson.Fragment(str(value))
    if isinstance(value, Mapping):
        return {shown_text(str(key)): encodable(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [encodable(entry) for entry in value]
    return value
