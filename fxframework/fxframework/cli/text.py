"""Formatting of values, places and columns as text.

Control characters in a capture's strings are escaped, as are characters that change the text
direction or end a line, so that a capture cannot control a terminal or disguise its text.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from fxframework.kit.shown import GAP, NARROW, escape, padded, printable, widths_of

if TYPE_CHECKING:
    from fxframework.io.source import Source

BLOCKS = " ▁▂▃▄▅▆▇█"
_CONTROL_BYTES = re.compile(
    rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]"
    rb"|\xd8\x9c|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]"
)
_PLAIN_LINES = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_COLOURED_LINES = re.compile(rf"(?!\x1b\[[0-9;]*m){_PLAIN_LINES.pattern}")
_BUT_COLOURS = re.compile(rb"(?!\x1b\[[0-9;]*m)(?:" + _CONTROL_BYTES.pattern + rb")")


def fields(item: object, names: str) -> dict[str, Any]:
    """Return attributes of an object as a JSON object; ``bytes=nbytes`` gives one another name."""
    pairs = (name.partition("=") for name in names.split())
    return {key: getattr(item, attribute or key) for key, _, attribute in pairs}


def optional_fields(item: object | None, names: str) -> dict[str, Any] | None:
    """Return attributes of an object as ``fields`` does; None for None."""
    if item is None:
        return None
    return fields(item, names)


def safe_lines(text: str, *, colours: bool) -> str:
    """Escape control characters in lines of text; with ``colours``, sequences for colours stay.

    The last resort: names are escaped as a whole (``printable``) before they are put into lines.
    """
    control = _COLOURED_LINES if colours else _PLAIN_LINES
    return control.sub(lambda match: escape(match[0]), text)


def json_escaped(data: bytes) -> bytes:
    """Escape the control characters of JSON; its meaning is unchanged."""
    return _CONTROL_BYTES.sub(lambda match: b"\\u%04x" % ord(match[0].decode()), data)


def hex_context(source: Source, offset: int) -> list[str]:
    """Format the two words at an offset as hex."""
    start = offset // 8 * 8
    data = source.read(start, 16)
    words = [data[at : at + 8].hex(" ") for at in range(0, len(data), 8)]
    return [f"{start:04x} | {'  '.join(words)}"] if data else []


def place(path: str, offset: int | None, record: int | None) -> str:
    """Format a place, as far as known: ``boot.fxt @ 0x00000068, record 6``."""
    text = printable(path)
    if offset is not None:
        text += f" @ 0x{offset:08x}"
    if record is not None:
        text += f", record {record}"
    return text


def sparkline(counts: Sequence[int], width: int) -> str:
    """Draw counts as blocks, in at most ``width`` columns; nonzero counts are visible."""
    if len(counts) > width:
        edges = [len(counts) * edge // width for edge in range(width + 1)]
        counts = [sum(counts[start:stop]) for start, stop in itertools.pairwise(edges)]
    highest = max(counts, default=0) or 1
    fullest = len(BLOCKS) - 1
    # Rounded up, so that a small count is not drawn as none.
    return "".join(BLOCKS[-(-count * fullest // highest)] for count in counts)


class TerminalFile:
    """A binary file that escapes control characters before a terminal.

    With ``colours``, escape sequences for colours pass; the caller must escape strings itself.
    """

    def __init__(self, terminal: BinaryIO, *, colours: bool = False) -> None:
        self._terminal = terminal
        self._control = _BUT_COLOURS if colours else _CONTROL_BYTES
        self.flush = terminal.flush

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Write escaped bytes."""
        escaped = self._control.sub(lambda match: escape(match[0].decode()).encode(), bytes(data))
        self._terminal.write(escaped)
        return len(data)


def wrapped(label: str, text: str, *, indent: int, columns: int) -> list[str]:
    """Wrap a text between words, with a label before the first line and the rest indented."""
    room = max(columns - indent, NARROW)
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    first_line, *further_lines = lines
    return [label.ljust(indent) + first_line, *(" " * indent + line for line in further_lines)]


def fitted(rows: Sequence[Sequence[str]], columns: int) -> list[str]:
    """Format short rows in aligned columns within a width; wide cells are wrapped."""
    widths = widths_of(rows)
    # Shrink the widest column first, so that words are broken only if necessary.
    while sum(widths) + GAP * (len(widths) - 1) > columns and max(widths) > NARROW:
        widths[widths.index(max(widths))] -= 1
    lines = []
    for row in rows:
        cells = [textwrap.wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
        # A row has as many lines as its cell with the most.
        for line_cells in itertools.zip_longest(*cells, fillvalue=""):
            texts = padded(line_cells, widths, itertools.repeat(False, len(widths)))
            lines.append((" " * GAP).join(texts).rstrip())
    return lines
