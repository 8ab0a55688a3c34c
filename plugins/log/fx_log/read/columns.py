"""Raw columns: the arrays that the scans fill, and what they count.

``rows`` is the number of rows filled, ``first`` the number of the first one within its table. A
scan makes room for rows as it goes; the reader takes the arrays and begins new ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.buffers import full, grown, room

__all__ = [
    "ArgColumns",
    "LogColumns",
    "PositionalColumns",
    "RareColumns",
    "TagColumns",
    "Totals",
]

BEGIN = 64
"""Rows for which there is room at first."""
DROPPED = 0
ROLLED_OUT = 1
VERBOSITY = 2
LOW32 = 0xFFFFFFFF
LATEST = 0x7FFFFFFFFFFFFFFF
EARLIEST = -0x8000000000000000


class LogColumns:
    """Raw columns of `logs`. The message is ``length`` bytes of the file from byte ``start``."""

    def __init__(self) -> None:
        self.rows = 0
        self.first = 0
        self.room = BEGIN
        self.offset = room(BEGIN, "i8")
        self.ns = room(BEGIN, "i8")
        self.start = room(BEGIN, "i8")
        self.pid = room(BEGIN, "i8")
        self.tid = room(BEGIN, "i8")
        self.tag = room(BEGIN, "i8")
        self.length = room(BEGIN, "u4")
        self.line = room(BEGIN, "u4")
        self.tags = room(BEGIN, "i4")
        self.component = room(BEGIN, "i4")
        self.url = room(BEGIN, "i4")
        self.file = room(BEGIN, "i4")
        self.severity = room(BEGIN, "u1")
        self.given = room(BEGIN, "u1")

    def grow(self) -> int:
        """Make room for twice as many rows."""
        self.resize(2 * self.room)
        return 0

    def resize(self, rows: int) -> int:
        """Make room for ``rows`` rows, of which those that are filled stay."""
        self.offset = grown(self.offset, rows, self.rows)
        self.ns = grown(self.ns, rows, self.rows)
        self.start = grown(self.start, rows, self.rows)
        self.pid = grown(self.pid, rows, self.rows)
        self.tid = grown(self.tid, rows, self.rows)
        self.tag = grown(self.tag, rows, self.rows)
        self.length = grown(self.length, rows, self.rows)
        self.line = grown(self.line, rows, self.rows)
        self.tags = grown(self.tags, rows, self.rows)
        self.component = grown(self.component, rows, self.rows)
        self.url = grown(self.url, rows, self.rows)
        self.file = grown(self.file, rows, self.rows)
        self.severity = grown(self.severity, rows, self.rows)
        self.given = grown(self.given, rows, self.rows)
        self.room = rows
        return 0

    def take(self, rows: int) -> dict[str, NDArray[Any]]:
        """The columns as they are filled; begins new ones, with room for ``rows`` rows."""
        taken = {
            "offset": np.asarray(self.offset)[: self.rows],
            "ns": np.asarray(self.ns)[: self.rows],
            "start": np.asarray(self.start)[: self.rows],
            "pid": np.asarray(self.pid)[: self.rows],
            "tid": np.asarray(self.tid)[: self.rows],
            "tag": np.asarray(self.tag)[: self.rows],
            "length": np.asarray(self.length)[: self.rows],
            "line": np.asarray(self.line)[: self.rows],
            "tags": np.asarray(self.tags)[: self.rows],
            "component": np.asarray(self.component)[: self.rows],
            "url": np.asarray(self.url)[: self.rows],
            "file": np.asarray(self.file)[: self.rows],
            "severity": np.asarray(self.severity)[: self.rows],
            "given": np.asarray(self.given)[: self.rows],
        }
        self.first += self.rows
        self.rows = 0
        self.resize(rows)
        return taken


class RareColumns:
    """What few logs have: a value in the column DROPPED, ROLLED_OUT or VERBOSITY of a row."""

    def __init__(self) -> None:
        self.rows = 0
        self.first = 0
        self.room = BEGIN
        self.row = room(BEGIN, "i8")
        self.value = room(BEGIN, "i8")
        self.column = room(BEGIN, "u1")

    def grow(self) -> int:
        """Make room for twice as many rows."""
        self.resize(2 * self.room)
        return 0

    def resize(self, rows: int) -> int:
        """Make room for ``rows`` rows, of which those that are filled stay."""
        self.row = grown(self.row, rows, self.rows)
        self.value = grown(self.value, rows, self.rows)
        self.column = grown(self.column, rows, self.rows)
        self.room = rows
        return 0

    def take(self, rows: int) -> dict[str, NDArray[Any]]:
        """The columns as they are filled; begins new ones, with room for ``rows`` rows."""
        taken = {
            "row": np.asarray(self.row)[: self.rows],
            "value": np.asarray(self.value)[: self.rows],
            "column": np.asarray(self.column)[: self.rows],
        }
        self.first += self.rows
        self.rows = 0
        self.resize(rows)
        return taken


class ArgColumns:
    """Raw columns of `args`; ``value`` is an integer, the bits of a double, or a string's code."""

    def __init__(self) -> None:
        self.rows = 0
        self.first = 0
        self.room = BEGIN
        self.offset = room(BEGIN, "i8")
        self.parent = room(BEGIN, "i8")
        self.value = room(BEGIN, "i8")
        self.name = room(BEGIN, "i4")
        self.type = room(BEGIN, "u1")

    def grow(self) -> int:
        """Make room for twice as many rows."""
        self.resize(2 * self.room)
        return 0

    def resize(self, rows: int) -> int:
        """Make room for ``rows`` rows, of which those that are filled stay."""
        self.offset = grown(self.offset, rows, self.rows)
        self.parent = grown(self.parent, rows, self.rows)
        self.value = grown(self.value, rows, self.rows)
        self.name = grown(self.name, rows, self.rows)
        self.type = grown(self.type, rows, self.rows)
        self.room = rows
        return 0

    def take(self, rows: int) -> dict[str, NDArray[Any]]:
        """The columns as they are filled; begins new ones, with room for ``rows`` rows."""
        taken = {
            "offset": np.asarray(self.offset)[: self.rows],
            "parent": np.asarray(self.parent)[: self.rows],
            "value": np.asarray(self.value)[: self.rows],
            "name": np.asarray(self.name)[: self.rows],
            "type": np.asarray(self.type)[: self.rows],
        }
        self.first += self.rows
        self.rows = 0
        self.resize(rows)
        return taken


class TagColumns:
    """Raw columns of `log_tags`."""

    def __init__(self) -> None:
        self.rows = 0
        self.first = 0
        self.room = BEGIN
        self.offset = room(BEGIN, "i8")
        self.parent = room(BEGIN, "i8")
        self.name = room(BEGIN, "i4")

    def grow(self) -> int:
        """Make room for twice as many rows."""
        self.resize(2 * self.room)
        return 0

    def resize(self, rows: int) -> int:
        """Make room for ``rows`` rows, of which those that are filled stay."""
        self.offset = grown(self.offset, rows, self.rows)
        self.parent = grown(self.parent, rows, self.rows)
        self.name = grown(self.name, rows, self.rows)
        self.room = rows
        return 0

    def take(self, rows: int) -> dict[str, NDArray[Any]]:
        """The columns as they are filled; begins new ones, with room for ``rows`` rows."""
        taken = {
            "offset": np.asarray(self.offset)[: self.rows],
            "parent": np.asarray(self.parent)[: self.rows],
            "name": np.asarray(self.name)[: self.rows],
        }
        self.first += self.rows
        self.rows = 0
        self.resize(rows)
        return taken


class PositionalColumns:
    """The values of structured printfs, for the formats in their messages."""

    def __init__(self) -> None:
        self.rows = 0
        self.first = 0
        self.room = BEGIN
        self.parent = room(BEGIN, "i8")
        self.value = room(BEGIN, "i8")
        self.type = room(BEGIN, "u1")

    def grow(self) -> int:
        """Make room for twice as many rows."""
        self.resize(2 * self.room)
        return 0

    def resize(self, rows: int) -> int:
        """Make room for ``rows`` rows, of which those that are filled stay."""
        self.parent = grown(self.parent, rows, self.rows)
        self.value = grown(self.value, rows, self.rows)
        self.type = grown(self.type, rows, self.rows)
        self.room = rows
        return 0

    def take(self, rows: int) -> dict[str, NDArray[Any]]:
        """The columns as they are filled; begins new ones, with room for ``rows`` rows."""
        taken = {
            "parent": np.asarray(self.parent)[: self.rows],
            "value": np.asarray(self.value)[: self.rows],
            "type": np.asarray(self.type)[: self.rows],
        }
        self.first += self.rows
        self.rows = 0
        self.resize(rows)
        return taken


class Totals:
    """What is counted of the logs of a capture."""

    def __init__(self, strings: int) -> None:
        self.logs = 0
        self.first_ns = LATEST
        self.last_ns = EARLIEST
        self.final_ns = EARLIEST
        self.types_seen = 0
        self.dropped_low = 0
        self.dropped_high = 0
        self.rolled_low = 0
        self.rolled_high = 0
        self.severities = full(256, "i8")
        self.room = strings
        self.by_component = full(strings, "i8")
        self.by_tag = full(strings, "i8")

    def count_component(self, code: int) -> int:
        """Count a log of a component."""
        if code >= self.room:
            self.grow(code)
        self.by_component[code] += 1
        return 0

    def count_tag(self, code: int) -> int:
        """Count a log that has a tag."""
        if code >= self.room:
            self.grow(code)
        self.by_tag[code] += 1
        return 0

    def grow(self, code: int) -> int:
        """Make room for the counts of a string."""
        strings = 2 * code + 64
        components = np.zeros(strings, np.int64)
        components[: self.room] = np.asarray(self.by_component)
        tags = np.zeros(strings, np.int64)
        tags[: self.room] = np.asarray(self.by_tag)
        self.by_component = components.data
        self.by_tag = tags.data
        self.room = strings
        return 0

    def count_lost(self, dropped: int, rolled_out: int) -> int:
        """Add logs that were lost. Sums are kept in halves, as they may exceed 64 bits."""
        self.dropped_low += dropped & LOW32
        self.dropped_high += (dropped >> 32) & LOW32
        self.rolled_low += rolled_out & LOW32
        self.rolled_high += (rolled_out >> 32) & LOW32
        return 0

    def time(self, ns: int) -> int:
        """Take the time of a log."""
        self.logs += 1
        self.last_ns = ns
        self.first_ns = min(self.first_ns, ns)
        self.final_ns = max(self.final_ns, ns)
        return 0

    @property
    def dropped(self) -> int:
        """Logs that were dropped."""
        return int(self.dropped_low) + (int(self.dropped_high) << 32)

    @property
    def rolled_out(self) -> int:
        """Logs that were rolled out of a buffer."""
        return int(self.rolled_low) + (int(self.rolled_high) << 32)
