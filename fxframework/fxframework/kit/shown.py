"""Shown: texts, counts and times as people read them.

Control characters in a capture's strings are escaped, as are characters that change the text
direction or end a line, so that a capture cannot control a terminal or disguise its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["aligned", "amount", "brief", "duration", "escape", "printable", "shortened"]

_TURNS = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters that change the text direction, or end a line or paragraph."""
_CONTROL = re.compile(f"[\x00-\x1f\x7f-\x9f{_TURNS}]")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def printable(text: str) -> str:
    """Escape the control characters of a text."""
    return _CONTROL.sub(lambda found: _SHORT.get(found[0]) or escape(found[0]), text)


def escape(character: str) -> str:
    """Return a character as an escape sequence."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def amount(count: int, noun: str = "", plural: str = "") -> str:
    """Format a count with thousands separators and a noun: ``1 record``, ``35,463 records``."""
    if not noun:
        return f"{count:,}"
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration(ns: int) -> str:
    """Format nanoseconds, exactly, in the largest unit that fits."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(ns) >= size:
            sign = "-" if ns < 0 else ""
            whole, part = divmod(abs(ns), size)
            digits = f"{part:0{len(str(size)) - 1}d}".rstrip("0")
            return f"{sign}{whole:,}{'.' if digits else ''}{digits} {unit}"
    return f"{ns} ns"


def brief(ns: float, *, sign: bool = False) -> str:
    """Format nanoseconds with four digits, in a unit that fits."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)):
        if abs(ns) >= size * 0.99995 or unit == "ns":
            break
    value = ns / size
    digits = 3 if abs(value) < 10 else 2 if abs(value) < 100 else 1
    return f"{value:{'+' if sign else ''},.{digits if unit != 'ns' or value % 1 else 0}f} {unit}"


def shortened(text: str, width: int) -> str:
    """Cut a text to a width, in its middle."""
    if len(text) <= width:
        return text
    if width < 2:
        return text[:width]
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"


def aligned(rows: Iterable[Sequence[str]], numeric: Sequence[bool]) -> Iterator[str]:
    """Yield rows in aligned columns, as wide as the first hundred rows need."""
    first: list[Sequence[str]] = []
    rows = iter(rows)
    for row in rows:
        first.append(row)
        if len(first) == 100:
            break
    widths = [max(map(len, column)) for column in zip(*first, strict=True)] if first else []

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        return "  ".join(cells).rstrip()

    for row in first:
        yield line(row)
    for row in rows:
        yield line(row)
