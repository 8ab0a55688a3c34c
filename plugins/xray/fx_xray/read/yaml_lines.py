"""Record JSON of plain lines of YAML: of records whose beginning was seen, and with no payload.

What is before the time of a record is the same in very many lines; what JSON has of it is made
once. Tests compare the lines with those of the records.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

__all__ = ["PlainLines"]

KNOWN: Final = 1 << 14
"""Beginnings of lines that are remembered."""
DIGITS: Final = 19
"""Of times that fit 64 bits whatever they are."""
Parts = tuple[bytes, bytes, bytes]
"""JSON before the offset, between the bytes of the record and its time, and behind the time."""


class PlainLines:
    """Makes JSON of plain lines.

    ``shown_of`` gives the fields of a record that begins so; None where it is not plain.
    """

    def __init__(self, shown_of: Callable[[bytes], Mapping[str, Any] | None]) -> None:
        self._shown_of = shown_of
        self._known: dict[bytes, Parts | None] = {}

    def line(self, at: int, text: bytes) -> bytes | None:
        """Return the JSON of the line at byte ``at``, without its end.

        None where it is not plain.
        """
        begins, _, rest = text.partition(b", tsc: ")
        if not rest.endswith(b" }"):
            return None
        digits = rest[:-2].removesuffix(b", data: ''")
        if not digits.isdigit() or len(digits) > DIGITS:
            return None
        parts = self._known[begins] if begins in self._known else self._learn(begins)
        if parts is None:
            return None
        start, middle, end = parts
        return b'%b%d,"nbytes":%d%b%d%b' % (start, at, len(text) + 1, middle, int(digits), end)

    def _learn(self, begins: bytes) -> Parts | None:
        if len(self._known) >= KNOWN:
            self._known.clear()
        shown = self._shown_of(begins)
        parts = None
        if shown is not None:
            kind, *fields = shown.items()
            place = [name for name, _ in fields].index("tsc")
            start = orjson.dumps(dict([kind]))[:-1] + b',"offset":'
            parts = (
                start,
                _members(fields[:place]) + b',"tsc":',
                _members(fields[place + 1 :]) + b"}",
            )
        self._known[begins] = parts
        return parts


def _members(fields: list[tuple[str, Any]]) -> bytes:
    """Members of an object, with a comma before each."""
    return b"," + orjson.dumps(dict(fields))[1:-1] if fields else b""
