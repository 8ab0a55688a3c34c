"""How names and values are written as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

import orjson

from fx_inspect.read.histograms import Bound
from fx_inspect.read.walk import decoded
from fxframework.model.capture import Capture

__all__ = [
    "LONG",
    "REPEATED",
    "LongTexts",
    "Shown",
    "Texts",
    "budget",
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
"""Bytes of a string from which on repeats of it may be written in part."""
FACTOR: Final = 16
SPARE: Final = 16 << 20
"""Bytes of repeated long strings, for each byte of the file and at least."""
BEGINNING: Final = 64
"""Characters of such a string that are written then."""
REPEATED: Final = "repeats of strings of 1 KiB or more (-o repeat=yes writes them in full)"


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


def budget(capture: Capture) -> int:
    """Bytes of repeated long strings that are written in full."""
    return max(SPARE, FACTOR * capture.source.size)


def string_list(codes: Sequence[int], strings: Mapping[int, str]) -> Iterator[str]:
    """An array of strings as JSON, in pieces; ``strings`` has them quoted, by code."""
    mark = "["
    for code in codes:
        yield mark
        yield strings[code]
        mark = ","
    yield "]" if codes else "[]"


class LongTexts:
    """Strings as text, where a long one that occurs again and again is given only in part.

    A small file may refer to one long string from thousands of names and values; what is written
    of it stays in proportion to the file. ``budget`` is how many bytes of repeated strings are
    given in full all the same.
    """

    def __init__(self, dropped: Counter[str], *, repeat: bool, budget: int) -> None:
        self._dropped = dropped
        self._left = 1 << 62 if repeat else budget
        self._known: dict[bytes, str] = {}
        """What is given in place of strings that were given in full before."""

    def in_part(self, data: bytes) -> str | None:
        """What is written in place of a string; None if it is written in full."""
        if len(data) < LONG:
            return None
        shown = self._known.get(data)
        if shown is None:
            beginning = data[: 4 * BEGINNING].decode("utf-8", "replace")[:BEGINNING]
            self._known[data] = f"{beginning}… ({len(data)} bytes, in full above)"
            return None
        if len(data) <= self._left:
            self._left -= len(data)
            return None
        self._dropped[REPEATED] += 1
        return shown

    def of(self, data: bytes) -> str:
        """The text of a string."""
        shown = self.in_part(data)
        return decoded(data, self._dropped) if shown is None else shown


class Texts(dict[int, str]):
    """What ``show`` gives for strings, by code; of long ones it is asked each time."""

    def __init__(self, strings: Mapping[int, bytes], show: Callable[[bytes], str]) -> None:
        super().__init__()
        self._strings = strings
        self._show = show

    def __missing__(self, code: int) -> str:
        data = self._strings[code]
        text = self._show(data)
        if len(data) < LONG:
            self[code] = text
        return text
