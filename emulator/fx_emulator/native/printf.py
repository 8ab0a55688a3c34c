"""The printf conversions of programs without floating point."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from fx_emulator.native.errors import NativeError

__all__ = ["format_text"]

_FORMAT = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    rb"(?P<length>hh|h|ll|l|z|j|t)?(?P<kind>.)",
    re.DOTALL,
)
_BITS = {b"hh": 8, b"h": 16, None: 32, b"l": 64, b"ll": 64, b"z": 64, b"j": 64, b"t": 64}
_MAX_WIDTH = 1 << 20
"""Largest width or precision, in bytes."""


def format_text(
    text: bytes, arguments: Iterator[int], string: Callable[[int, int | None], bytes]
) -> bytes:
    """Format as printf does: ``% d i u x X o c s p`` with flags, width and precision.

    ``arguments`` yields integers; ``string(address, most)`` reads a string. Raises
    NativeError for other conversions.
    """

    def one(found: re.Match[bytes]) -> bytes:
        kind = found["kind"]
        if kind == b"%":
            return b"%"
        flags = found["flags"].decode()
        width = _number(found["width"], arguments)
        if width < 0:
            flags, width = flags + "-", -width
        precision = None
        if found["precision"] is not None:
            precision = _number(found["precision"], arguments)
            precision = None if precision < 0 else precision
        if max(width, precision or 0) > _MAX_WIDTH:
            raise NativeError(
                f"printf: {found[0].decode(errors='replace')!r} width or precision too large"
            )
        if kind == b"s":
            address = next(arguments)
            body = b"(null)" if not address else string(address, precision)
            return _pad(body[:precision], flags.replace("0", ""), width)
        if kind == b"c":
            return _pad(bytes([next(arguments) & 0xFF]), flags.replace("0", ""), width)
        if kind == b"p":
            return _pad(f"{next(arguments):#x}".encode(), flags.replace("0", ""), width)
        if kind not in b"diuxXo":
            raise NativeError(
                f"printf: {found[0].decode(errors='replace')!r} is not supported; use one of "
                "%d %i %u %x %X %o %c %s %p, or define the function with symbols="
            )
        return _integer(kind, next(arguments), _BITS[found["length"]], flags, width, precision)

    return _FORMAT.sub(one, text)


def _number(given: bytes | None, arguments: Iterator[int]) -> int:
    if given == b"*":
        value = next(arguments) & 0xFFFFFFFF
        return value - (1 << 32) if value >> 31 else value
    return int(given or b"0")


def _integer(
    kind: bytes, value: int, bits: int, flags: str, width: int, precision: int | None
) -> bytes:
    value &= (1 << bits) - 1
    sign = prefix = ""
    if kind in b"di":
        if value >> bits - 1:
            value, sign = (1 << bits) - value, "-"
        else:
            sign = "+" if "+" in flags else " " if " " in flags else ""
        digits = str(value)
    else:
        code = {b"u": "d"}.get(kind, kind.decode())
        digits = format(value, code)
        if "#" in flags and value:
            prefix = {b"x": "0x", b"X": "0X"}.get(kind, "")
            digits = "0" + digits if kind == b"o" else digits
    if precision is not None:
        digits = digits.rjust(precision, "0") if precision or value else ""
        flags = flags.replace("0", "")
    if "0" in flags and "-" not in flags:
        digits = digits.rjust(width - len(sign) - len(prefix), "0")
    return _pad((sign + prefix + digits).encode(), flags, width)


def _pad(body: bytes, flags: str, width: int) -> bytes:
    return body.ljust(width) if "-" in flags else body.rjust(width)
