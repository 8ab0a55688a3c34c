"""How names and values are written as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

import orjson

from fx_inspect.read.histograms import Bound
from fx_inspect.read.walk import decoded
from fxframework.model.strings import StringPool

__all__ = [
    "REPEATED",
    "LongTexts",
    "Shown",
    "Texts",
    "debugged",
    "escape",
    "numbers",
    "plain",
    "quoted",
    "rust_double",
    "string_list",
]

Shown = str | Sequence[int]
"""What is shown of a value: its text, or of an array of strings their codes."""

LONG: Final = 1 << 10
"""Bytes of a string from which on it is shown in full only once."""
BEGINNING: Final = 64
"""Characters of such a string that are shown after that."""
REPEATED: Final = "repeated long strings, shown in part (-o repeat=yes shows them in full)"


def plain(text: str) -> str:
    """The text with escapes in place of characters that are not printable."""
    if not text or text.isprintable():
        return text
    return "".join(each if each.isprintable() else escape(each) for each in text)


def escape(character: str) -> str:
    """A character as Rust's Debug escapes it."""
    short = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
    return short.get(character) or f"\\u{{{ord(character):x}}}"


def debugged(text: str) -> str:
    """The text in quotes, as Rust's Debug writes it."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain(inner)}"'


def quoted(text: str) -> str:
    """The text as a JSON string."""
    return orjson.dumps(text).decode()


def rust_double(value: float) -> str:
    """The double as Rust prints it: no exponent, and no fraction if it is whole."""
    shown = repr(value)
    if "e" in shown:
        return f"{Decimal(shown):f}"
    return "NaN" if shown == "nan" else shown.removesuffix(".0")


def numbers(values: Sequence[Bound]) -> str:
    """An array of numbers as JSON; the empty string if one of them is NaN or infinite."""
    shown = orjson.dumps(values).decode()
    return "" if "null" in shown else shown


def string_list(codes: Sequence[int], strings: Mapping[int, str]) -> Iterator[str]:
    """An array of strings as JSON, in pieces; ``strings`` has them quoted, by code."""
    mark = "["
    for code in codes:
        yield mark
        yield strings[code]
        mark = ","
    yield "]" if codes else "[]"


class LongTexts:
    """Strings as text, where a long one is given in full only once.

    A small file may refer to one long string from thousands of names and values; what is shown of
    it stays in proportion to the file.
    """

    def __init__(self, dropped: Counter[str], *, repeat: bool) -> None:
        self._dropped = dropped
        self._limit = LONG if not repeat else 1 << 62
        self._known: dict[bytes, str] = {}
        """What is given for strings that were given in full before."""

    def is_long(self, data: bytes) -> bool:
        """Whether the string is one that is given in full only once."""
        return len(data) >= self._limit

    def of(self, data: bytes) -> str:
        """The text of a string."""
        if len(data) < self._limit:
            return decoded(data, self._dropped)
        shown = self._known.get(data)
        if shown is not None:
            self._dropped[REPEATED] += 1
            return shown
        text = decoded(data, self._dropped)
        self._known[data] = f"{text[:BEGINNING]}… ({len(data)} bytes, shown in full before)"
        return text


class Texts(dict[int, str]):
    """What ``show`` gives for the strings of a pool, by code; null is the empty string."""

    def __init__(self, pool: StringPool, long: LongTexts, show: Callable[[str], str]) -> None:
        super().__init__()
        self._pool = pool
        self._long = long
        self._show = show

    def __missing__(self, code: int) -> str:
        data = self._pool.bytes_of(code) if code >= 0 else b""
        text = self._show(self._long.of(data))
        if not self._long.is_long(data):
            self[code] = text
        return text
