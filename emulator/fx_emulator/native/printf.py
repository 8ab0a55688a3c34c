"""The printf conversions of programs without floating point."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import attrs

from fx_emulator.native.errors import NativeError

__all__ = ["format_text"]

_FORMAT = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    rb"(?P<length>hh|h|ll|l|z|j|t)?(?P<kind>.)",
    re.DOTALL,
)
_BITS = {b"hh": 8, b"h": 16, None: 32, b"l": 64, b"ll": 64, b"z": 64, b"j": 64, b"t": 64}
"""Bits of an integer, by its length modifier."""
_MAX_WIDTH = 1 << 20
"""Largest width or precision, in bytes."""


@attrs.frozen
class _Conversion:
    """One conversion of a format, such as ``%-8.3x``, with its width and precision resolved."""

    text: str
    kind: str
    bits: int
    flags: str
    width: int
    precision: int | None

    @classmethod
    def of(cls, match: re.Match[bytes], arguments: Iterator[int]) -> _Conversion:
        """Take the width and precision that are ``*`` from the arguments, in this order."""
        flags = match["flags"].decode()
        width = _number(match["width"], arguments)
        if width < 0:
            flags += "-"
            width = -width
        precision = None
        if match["precision"] is not None:
            precision = _number(match["precision"], arguments)
            if precision < 0:
                precision = None
        text = match[0].decode(errors="replace")
        if max(width, precision or 0) > _MAX_WIDTH:
            raise NativeError(f"printf: {text!r} width or precision too large")
        kind = match["kind"].decode(errors="replace")
        return cls(text, kind, _BITS[match["length"]], flags, width, precision)

    def pad(self, body: bytes) -> bytes:
        """Pad with spaces."""
        if "-" in self.flags:
            return body.ljust(self.width)
        return body.rjust(self.width)

    def integer(self, value: int) -> bytes:
        """Format an integer, of which the low bits count."""
        value &= (1 << self.bits) - 1
        prefix = ""
        if self.kind in "di":
            prefix, digits = self._signed(value)
        else:
            digits = format(value, "d" if self.kind == "u" else self.kind)
            if "#" in self.flags and value:
                if self.kind == "o":
                    digits = "0" + digits
                else:
                    prefix = {"x": "0x", "X": "0X"}.get(self.kind, "")
        if self.precision is not None:
            # With a precision the flag 0 is ignored; 0 with precision 0 has no digits.
            digits = digits.rjust(self.precision, "0") if self.precision or value else ""
        elif "0" in self.flags and "-" not in self.flags:
            digits = digits.rjust(self.width - len(prefix), "0")
        return self.pad((prefix + digits).encode())

    def _signed(self, value: int) -> tuple[str, str]:
        """Return sign and digits."""
        if value >> self.bits - 1:
            return "-", str((1 << self.bits) - value)
        if "+" in self.flags:
            return "+", str(value)
        if " " in self.flags:
            return " ", str(value)
        return "", str(value)


def format_text(
    text: bytes, arguments: Iterator[int], string: Callable[[int, int | None], bytes]
) -> bytes:
    """Format as printf does: ``% d i u x X o c s p`` with flags, width and precision.

    ``arguments`` yields integers; ``string(address, most)`` reads a string. Raises
    NativeError for other conversions.
    """

    def convert(specifier: re.Match[bytes]) -> bytes:
        if specifier["kind"] == b"%":
            return b"%"
        conversion = _Conversion.of(specifier, arguments)
        match conversion.kind:
            case "s":
                address = next(arguments)
                body = string(address, conversion.precision) if address else b"(null)"
                return conversion.pad(body[: conversion.precision])
            case "c":
                return conversion.pad(bytes([next(arguments) & 0xFF]))
            case "p":
                return conversion.pad(f"{next(arguments):#x}".encode())
            case "d" | "i" | "u" | "x" | "X" | "o":
                return conversion.integer(next(arguments))
            case _:
                raise NativeError(
                    f"printf: {conversion.text!r} is not supported; use one of "
                    "%d %i %u %x %X %o %c %s %p, or define the function with symbols="
                )

    return _FORMAT.sub(convert, text)


def _number(text: bytes | None, arguments: Iterator[int]) -> int:
    """Return a width or precision: a number, 0 if it is missing, or the next argument for ``*``."""
    if text != b"*":
        return int(text or b"0")
    value = next(arguments) & 0xFFFFFFFF
    if value >> 31:
        value -= 1 << 32
    return value
