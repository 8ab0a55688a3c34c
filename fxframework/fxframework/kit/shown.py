"""Shown: texts, counts and times as people read them.

Control characters in a capture's strings are escaped, as are characters that change the text
direction or end a line, so that a capture cannot control a terminal or disguise its text.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

_TURNS = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters that change the text direction, or end a line or paragraph."""
_CONTROL = re.compile(f"[\x00-\x1f\x7f-\x9f{_TURNS}]")
GAP = 2
"""Spaces between two columns."""
NARROW = 12
"""Minimum width of a column of text."""
LEAST_NAME = 36
"""Columns that a name has before others are left out."""
PADDED_NAME = 60
"""Columns that names are padded to at most; a longer one moves the numbers of its own line."""
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def printable(text: str) -> str:
    """Escape the control characters of a text."""
    return _CONTROL.sub(lambda match: _SHORT.get(match[0]) or escape(match[0]), text)


def escape(character: str) -> str:
    """Return a character as an escape sequence."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def amount(count: int, noun: str = "", plural: str = "") -> str:
    """Format a count with thousands separators and a noun: ``1 record``, ``35,463 records``."""
    if not noun:
        return f"{count:,}"
    if count != 1:
        noun = plural or f"{noun}s"
    return f"{count:,} {noun}"


def duration(ns: int) -> str:
    """Format nanoseconds, exactly, in the largest unit that fits."""
    for unit, size, decimals in (("s", 10**9, 9), ("ms", 10**6, 6), ("us", 10**3, 3)):
        if abs(ns) >= size:
            whole, fraction = divmod(abs(ns), size)
            text = f"{whole:,}.{fraction:0{decimals}d}".rstrip("0").rstrip(".")
            if ns < 0:
                text = f"-{text}"
            return f"{text} {unit}"
    return f"{ns} ns"


def rust_double(value: float) -> str:
    """Return a double as Rust prints it: no exponent, and no fraction if it is whole."""
    digits = repr(value)
    if digits == "nan":
        return "NaN"
    if "e" in digits:
        from decimal import Decimal  # here, because few programs show such numbers

        return f"{Decimal(digits):f}"
    return digits.removesuffix(".0")


def brief(ns: float, *, sign: bool = False) -> str:
    """Format nanoseconds with four digits, in a unit that fits."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)):
        # 999,950 ns would become 1000.0 us with four digits: they are 1.000 ms.
        if abs(ns) >= size * 0.99995 or unit == "ns":
            break
    value = ns / size
    if abs(value) < 10:
        decimals = 3
    elif abs(value) < 100:
        decimals = 2
    else:
        decimals = 1
    if unit == "ns" and value % 1 == 0:
        decimals = 0
    sign_option = "+" if sign else ""
    return f"{value:{sign_option},.{decimals}f} {unit}"


def cut(text: str, width: int) -> str:
    """Cut a text to a width, at its end."""
    return text if len(text) <= width else text[: width - 1] + "…"


def shortened(text: str, width: int) -> str:
    """Cut a text to a width, in its middle."""
    if len(text) <= width:
        return text
    if width < 2:
        return text[: max(width, 0)]
    tail_size = (width - 1) // 2
    head_size = width - 1 - tail_size
    return f"{text[:head_size]}…{text[len(text) - tail_size :]}"


def in_quotes(text: str) -> str:
    """Return a text in double quotes, its own doubled: a field of CSV, or a name in SQL."""
    return '"' + text.replace('"', '""') + '"'


def widths_of(rows: Iterable[Sequence[str]]) -> list[int]:
    """Return the width of the widest cell of each column."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def padded(cells: Iterable[str], widths: Iterable[int], numeric: Iterable[bool]) -> Iterator[str]:
    """Yield the cells of a row as wide as their columns: numbers right, texts left."""
    for cell, width, is_numeric in zip(cells, widths, numeric, strict=True):
        if is_numeric:
            yield cell.rjust(width)
        else:
            yield cell.ljust(width)


def columns(
    rows: Iterable[Sequence[str]],
    numeric: Sequence[bool],
    width: int = 0,
    *,
    name: int | None = None,
    spare: Sequence[str] = (),
) -> Iterator[str]:
    """Yield rows in aligned columns, the first row as their heading.

    Columns are as wide as the first hundred rows need. If a column is the ``name``, by its index,
    lines have at most ``width`` characters: names are cut in their middle if they must be. Before
    that, the columns with the headings ``spare`` are left out in this order.
    """
    rows = iter(rows)
    first_rows = list(itertools.islice(rows, 100))
    widths = widths_of(first_rows)
    shown_columns = list(range(len(widths)))
    longest_name = 0
    if name is not None:

        def name_room() -> int:
            return width - sum(widths[column] + GAP for column in shown_columns if column != name)

        for heading in spare:
            if name_room() >= min(widths[name], LEAST_NAME):
                break
            shown_columns = [column for column in shown_columns if first_rows[0][column] != heading]
        # Where even this is too much, lines are wider than they should be, and names can be read.
        longest_name = max(name_room(), NARROW)
        widths[name] = min(widths[name], longest_name, PADDED_NAME)
    shown_widths = [widths[column] for column in shown_columns]
    shown_numeric = [numeric[column] for column in shown_columns]
    for row in itertools.chain(first_rows, rows):
        cells = [
            shortened(row[column], longest_name) if column == name else row[column]
            for column in shown_columns
        ]
        yield (" " * GAP).join(padded(cells, shown_widths, shown_numeric)).rstrip()
