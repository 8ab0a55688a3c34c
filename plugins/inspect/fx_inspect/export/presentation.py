"""Renderings of names and values as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import orjson

from fx_inspect.read.histograms import Bound
from fxframework.kit.export import decoded

Shown = str | Sequence[int]
"""A rendered value: its text, or the codes of an array of strings."""

LONG: Final = 1 << 10
"""Length in bytes from which repeats of a string may be shortened."""
BEGINNING: Final = 64
"""Characters written of a shortened string."""
REPEATED: Final = "repeats of strings of 1 KiB or more (-o repeat=yes writes them in full)"


def plain(text: str) -> str:
    """Return the text with escapes for unprintable characters."""
    if not text or text.isprintable():
        return text
    return "".join(map(escape, text))


def escape(character: str) -> str:
    """Return a character, escaped as by Rust's Debug if it is not printable."""
    if character.isprintable():
        return character
    short = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"}
    return short.get(character) or f"\\u{{{ord(character):x}}}"


def debugged(text: str) -> str:
    """Return the text quoted as by Rust's Debug."""
    inner = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{plain(inner)}"'


def json_truth(value: int) -> str:
    """Return a Boolean value as JSON."""
    return "true" if value else "false"


def numbers(values: Sequence[Bound], show: Callable[[Bound], str]) -> str:
    """Return an array of numbers as JSON; ``show`` shows each if one of them is NaN or infinite."""
    array_json = orjson.dumps(values).decode()
    if "null" in array_json:
        return f"[{','.join(map(show, values))}]"
    return array_json


def string_list(codes: Sequence[int], strings: Mapping[int, str]) -> Iterator[str]:
    """Yield an array of strings as JSON, in pieces; ``strings`` has them quoted, by code."""
    yield "["
    comma = ""
    for code in codes:
        yield comma
        yield strings[code]
        comma = ","
    yield "]"


class LongTexts:
    """Decodes strings, and shortens repeats of long ones.

    A small file may refer to one long string from thousands of names and values; shortening keeps
    the output in proportion to the file. ``budget`` is the number of bytes of repeats that are
    written in full nevertheless.
    """

    def __init__(self, dropped: Counter[str], *, repeat: bool, budget: int) -> None:
        self._dropped = dropped
        self._left = 1 << 62 if repeat else budget
        self._known: dict[bytes, str] = {}
        """Short forms of the strings that have been written in full."""

    def in_part(self, data: bytes) -> str | None:
        """Return the short form to write for a string; None to write it in full."""
        if len(data) < LONG:
            return None
        short_form = self._known.get(data)
        if short_form is None:
            most_bytes = 4 * BEGINNING  # of so many characters
            beginning = data[:most_bytes].decode("utf-8", "replace")
            self._known[data] = f"{beginning[:BEGINNING]}… ({len(data)} bytes, in full above)"
            return None
        if len(data) <= self._left:
            self._left -= len(data)
            return None
        self._dropped[REPEATED] += 1
        return short_form

    def of(self, data: bytes) -> str:
        """Return the text of a string, perhaps shortened."""
        short_form = self.in_part(data)
        if short_form is not None:
            return short_form
        return decoded(data, self._dropped)


class Texts(dict[int, str]):
    """Results of ``show`` for strings, by code; those of long strings are not cached."""

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
