"""Values: where those of an array of JSON begin and end. Brackets are counted, not paired.

What lies between the first and the last bracket of a value is for a parser to judge.
"""

from __future__ import annotations

import enum
import re
from typing import Final

__all__ = ["SEPARATOR", "Reason", "values"]

SEPARATOR: Final = re.compile(rb"[ \t\r\n,]*+")
NESTED: Final = 6
"""Brackets within brackets that one pattern knows; events have fewer."""
PLAIN: Final = rb'[^][{}"]++'
STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'


def _balanced(levels: int) -> bytes:
    """Return the pattern of a value in brackets, with so many levels of others in it."""
    inside = b"|".join([PLAIN, STRING])
    for _ in range(levels):
        inside = b"|".join([PLAIN, STRING, rb"[\[{](?:%b)*+[\]}]" % inside])
    return rb"[\[{](?:%b)*+[\]}]" % inside


VALUE: Final = re.compile(
    rb'%b|%b|[^"\[{][^][{}", \t\r\n]*+' % (_balanced(NESTED), STRING), re.DOTALL
)
"""A value in brackets, a string, or a word, which has one byte at least, whatever that is."""
PIECE: Final = re.compile(
    rb'(?:%b|%b|%b)++|([\[{]++)|([\]}]++)|(")' % (PLAIN, STRING, _balanced(NESTED)), re.DOTALL
)
"""In a value in brackets: what is whole, brackets that open or close, and an open string."""


class Reason(enum.Enum):
    """Why there are no more values."""

    FULL = enum.auto()
    """As many were found as were asked for."""
    CLOSED = enum.auto()
    """The bracket that closes the array follows."""
    ENDED = enum.auto()
    """The data ends."""
    OPEN = enum.auto()
    """A value does not end."""


def values(
    data: memoryview[int], offset: int, most: int
) -> tuple[list[int], list[int], int, Reason]:
    """Find at most ``most`` values of an array, from an offset on.

    Return where they begin, where they end, where the search ended, and why. Commas and spaces
    between values are passed over.
    """
    starts: list[int] = []
    stops: list[int] = []
    size = len(data)
    while True:
        separator = SEPARATOR.match(data, offset)
        offset = offset if separator is None else separator.end()
        if offset >= size:
            return starts, stops, size, Reason.ENDED
        if data[offset] == ord("]"):
            return starts, stops, offset, Reason.CLOSED
        if len(starts) == most:
            return starts, stops, offset, Reason.FULL
        value = VALUE.match(data, offset)
        stop = value.end() if value is not None else _behind_brackets(data, offset)
        if stop > size:
            return starts, stops, offset, Reason.OPEN
        starts.append(offset)
        stops.append(stop)
        offset = stop


def _behind_brackets(data: memoryview[int], offset: int) -> int:
    """Return where a value ends that has deep brackets or does not end; then beyond the data."""
    beyond = len(data) + 1
    if data[offset] == ord('"'):
        return beyond
    depth = 1
    for piece in PIECE.finditer(data, offset + 1):
        opening, closing, quote = piece.groups()
        if opening is not None:
            depth += len(opening)
        elif closing is not None:
            if len(closing) >= depth:
                return piece.start() + depth
            depth -= len(closing)
        elif quote is not None:
            break
    return beyond
