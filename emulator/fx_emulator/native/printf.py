"""The printf conversions of programs without floating point."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from fx_emulator.native.errors import NativeError

_FORMAT = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    rb"(?P<length>hh|h|ll|l|z|j|t)?(?P<kind>.)",
    re.DOTALL,
)
_BITS = {b"hh": 8, b"h": 16, None: 32, b"l": 64, b"ll": 64, b"z": 64, b"j": 64, b"t": 64}
"""Bits of an integer, by its length modifier."""
_MAX_WIDTH = 1 << 20
"""Largest width or precision, in bytes."""


def format_text(
    text: bytes, arguments: Iterator[int], string: Callable[[int, int | None], bytes]
) -> bytes:
    """Format as printf does: ``% d i u x X o c s p`` with flags, width and precision.

    ``arguments`` yields integers; ``string(address, most)`` reads a string. Raises
    NativeError for other conversions.
    """

    def convert(specifier: re.Match[bytes]) -> bytes:
        kind = specifier["kind"]
        if kind == b"%":
            return b"%"
        flags = specifier["flags"]
        width = _number(specifier["width"], arguments)
        precision = None
        if specifier["precision"] is not None:
            precision = _number(specifier["precision"], arguments)
            if precision < 0:
                precision = None
        specifier_text = specifier[0].decode(errors="replace")
        if max(abs(width), precision or 0) > _MAX_WIDTH:
            raise NativeError(f"printf: {specifier_text!r} width or precision too large")
        match kind:
            case b"s":
                address = next(arguments)
                body = string(address, precision) if address else b"(null)"
                body = body[:precision]
            case b"c":
                body = bytes([next(arguments) & 0xFF])
            case b"p":
                body = b"%#x" % next(arguments)
            case b"d" | b"i" | b"u" | b"x" | b"X" | b"o":
                value = _cut(next(arguments), _BITS[specifier["length"]], signed=kind in b"di")
                return _integer(kind, flags, width, precision, value)
            case _:
                raise NativeError(
                    f"printf: {specifier_text!r} is not supported; use one of "
                    "%d %i %u %x %X %o %c %s %p, or define the function with symbols="
                )
        return _padded(flags, width, body)

    return _FORMAT.sub(convert, text)


def _number(text: bytes | None, arguments: Iterator[int]) -> int:
    """Return a width or precision: a number, 0 if it is missing, or the next argument for ``*``."""
    if text != b"*":
        return int(text or b"0")
    return _cut(next(arguments), 32, signed=True)


def _cut(value: int, bits: int, *, signed: bool) -> int:
    """Return the integer of the low bits of a value."""
    value &= (1 << bits) - 1
    if signed and value >> bits - 1:
        value -= 1 << bits
    return value


def _padded(flags: bytes, width: int, body: bytes) -> bytes:
    """Pad with spaces; a negative width is that of the flag ``-``."""
    return (b"%" + flags + b"*s") % (width, body)


def _integer(kind: bytes, flags: bytes, width: int, precision: int | None, value: int) -> bytes:
    """Format an integer as Python does where C does the same."""
    if kind not in b"di":
        flags = flags.translate(None, b"+ ")  # only numbers with a sign show one
    if precision is not None:
        flags = flags.replace(b"0", b"")
    if kind == b"o" and b"#" in flags:
        # A 0 comes first; Python would write 0o.
        flags = flags.replace(b"#", b"")
        precision = max(precision or 0, len(b"%o" % value) + bool(value))
    if not value:
        flags = flags.replace(b"#", b"")
        if precision == 0:
            sign = (b"%" + flags + kind) % 0
            return _padded(flags, width, sign[:-1])  # without the digit
    return (b"%" + flags + b"*.*" + kind) % (width, precision or 0, value)
