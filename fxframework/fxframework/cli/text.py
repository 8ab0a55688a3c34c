"""Formatting of values, places and columns as text.

Control characters in a capture's strings are escaped, as are characters that change the text
direction or end a line, so that a capture cannot control a terminal or disguise its text.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from fxframework.kit.shown import aligned, amount, duration, escape, printable, shortened

if TYPE_CHECKING:
    from fxframework.io.source import Source

__all__ = [
    "TerminalFile",
    "aligned",
    "amount",
    "duration",
    "fields",
    "fitted",
    "hex_context",
    "json_escaped",
    "name_first",
    "place",
    "printable",
    "safe_lines",
    "sparkline",
    "wrapped",
]

BLOCKS = " ▁▂▃▄▅▆▇█"
NARROW = 12
"""Minimum width of a text column."""
GAP = 2
"""Spaces between two columns."""
WIDTH_ROWS = 100
"""Rows whose cells decide the widths of columns."""
LEAST_NAME = 36
"""Columns that a name has before others are left out."""
PADDED_NAME = 60
"""Columns that names are padded to at most; a longer one moves the numbers of its own line."""
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
    return {key: getattr(item, own or key) for key, _, own in pairs}


def safe_lines(text: str, *, colours: bool) -> str:
    """Escape control characters in lines of text; with ``colours``, sequences for colours stay.

    The last resort: names are escaped as a whole (``printable``) before they are put into lines.
    """
    control = _COLOURED_LINES if colours else _PLAIN_LINES
    return control.sub(lambda found: escape(found[0]), text)


def json_escaped(data: bytes) -> bytes:
    """Escape the control characters of JSON; its meaning is unchanged."""
    return _CONTROL_BYTES.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), data)


def hex_context(source: Source, offset: int) -> list[str]:
    """Format the two words at an offset as hex."""
    start = offset // 8 * 8
    data = source.read(start, 16)
    words = [data[at : at + 8].hex(" ") for at in range(0, len(data), 8)]
    return [f"{start:04x} | {'  '.join(words)}"] if data else []


def place(path: str, offset: int | None, record: int | None) -> str:
    """Format a place, as far as known: ``boot.fxt @ 0x00000068, record 6``."""
    where = printable(path)
    if offset is not None:
        where += f" @ 0x{offset:08x}"
    if record is not None:
        where += f", record {record}"
    return where


def sparkline(counts: Sequence[int], width: int) -> str:
    """Draw counts as blocks, in at most ``width`` columns; nonzero counts are visible."""
    if len(counts) > width:
        edges = [len(counts) * at // width for at in range(width + 1)]
        counts = [sum(counts[a:b]) for a, b in itertools.pairwise(edges)]
    most = max(counts, default=0)
    last = len(BLOCKS) - 1
    return "".join(BLOCKS[-(-count * last // most) if most else 0] for count in counts)


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
        shown = self._control.sub(lambda found: escape(found[0].decode()).encode(), bytes(data))
        self._terminal.write(shown)
        return len(data)


def wrapped(label: str, text: str, *, indent: int, columns: int) -> list[str]:
    """Wrap a text between words, with a label before the first line and the rest indented."""
    room = max(columns - indent, NARROW)
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [(label if not at else "").ljust(indent) + line for at, line in enumerate(lines)]


def name_first(
    rows: Iterable[Sequence[str]], width: int, *, spare: Sequence[str] = (), texts: int = 0
) -> Iterator[str]:
    """Yield rows as lines of at most ``width`` columns, the first row as their heading.

    The first cell is a name, which is cut in its middle if it must be; the last ``texts`` cells are
    texts, the others numbers. If a line would not fit, the columns with the headings ``spare`` are
    left out in this order.
    """
    rows = iter(rows)
    first = list(itertools.islice(rows, WIDTH_ROWS))
    widths = [max(map(len, column)) for column in zip(*first, strict=True)]
    chosen = list(range(len(widths)))
    for heading in spare:
        room = width - sum(widths[number] + GAP for number in chosen[1:])
        if room >= min(widths[0], LEAST_NAME):
            break
        chosen = [number for number in chosen if first[0][number] != heading]
    room = max(width - sum(widths[number] + GAP for number in chosen[1:]), NARROW)
    pad = min(widths[0], room, PADDED_NAME)
    for row in itertools.chain(first, rows):
        cells = [shortened(row[0], room).ljust(pad)]
        for number in chosen[1:]:
            is_text = number >= len(widths) - texts
            cell = row[number]
            cells.append(cell.ljust(widths[number]) if is_text else cell.rjust(widths[number]))
        yield (" " * GAP).join(cells).rstrip()


def fitted(rows: Sequence[Sequence[str]], columns: int) -> list[str]:
    """Format short rows in aligned columns within a width; wide cells are wrapped."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    # Shrink the widest column first, so that words are broken only if necessary.
    while sum(widths) + GAP * (len(widths) - 1) > columns and max(widths) > NARROW:
        widths[widths.index(max(widths))] -= 1
    lines = []
    for row in rows:
        cells = [textwrap.wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
        for number in range(max(map(len, cells), default=0)):
            line = (
                (cell[number] if number < len(cell) else "").ljust(width + GAP)
                for cell, width in zip(cells, widths, strict=True)
            )
            lines.append("".join(line).rstrip())
    return lines
