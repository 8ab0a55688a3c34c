"""Raw rows: the columns that the scans fill, one class a table; and the counts of a capture."""

from __future__ import annotations

from typing import final

import numpy as np

from fx_log.read import tables
from fxframework.kernels.annotations import Array, Column, i32, i64, status, u8, u32, with_gil
from fxframework.kernels.buffers import full
from fxframework.kernels.rows import Rows

__all__ = [
    "ArgColumns",
    "LogColumns",
    "PositionalColumns",
    "RareColumns",
    "TagColumns",
    "Totals",
]

HALF = 32
EARLIEST = -0x8000000000000000


@final
class LogColumns(Rows):
    """Raw columns of `logs`. The message is ``length`` bytes of the file from byte ``start``."""

    offset: Column[i64]
    ns: Column[i64]
    start: Column[i64]
    pid: Column[i64]
    tid: Column[i64]
    tag: Column[i64]
    length: Column[u32]
    line: Column[u32]
    tags: Column[i32]
    component: Column[i32]
    url: Column[i32]
    file: Column[i32]
    severity: Column[u8]
    given: Column[u8]


@final
class RareColumns(Rows):
    """Rare values of logs: a value in a column of a row (RARE_DROPPED and so on of ``tables``)."""

    row: Column[i64]
    value: Column[i64]
    column: Column[u8]


@final
class ArgColumns(Rows):
    """Raw columns of `args`; ``value`` is an integer, the bits of a double, or a string's code."""

    offset: Column[i64]
    parent: Column[i64]
    value: Column[i64]
    name: Column[i32]
    type: Column[u8]


@final
class TagColumns(Rows):
    """Raw columns of `log_tags`."""

    offset: Column[i64]
    parent: Column[i64]
    name: Column[i32]


@final
class PositionalColumns(Rows):
    """The values of structured printfs, for the formats in their messages."""

    parent: Column[i64]
    value: Column[i64]
    type: Column[u8]


@final
class Totals:
    """Counts of the logs of a capture."""

    logs: i64
    first_ns: i64
    last_ns: i64
    final_ns: i64
    types_seen: i64
    dropped_low: i64
    dropped_high: i64
    rolled_low: i64
    rolled_high: i64
    severities: Array[i64]
    by_component: Array[i64]
    by_tag: Array[i64]
    room: i64

    def __init__(self, strings: int) -> None:
        self.logs = 0
        self.first_ns = tables.LATEST
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

    def count_component(self, code: i64) -> status:
        """Count a log of a component."""
        if code >= self.room:
            self.grow(code)
        self.by_component[code] += 1
        return 0

    def count_tag(self, code: i64) -> status:
        """Count a log that has a tag."""
        if code >= self.room:
            self.grow(code)
        self.by_tag[code] += 1
        return 0

    @with_gil
    def grow(self, code: i64) -> status:
        """Grow the counts up to the code of a string."""
        strings = 2 * code + 64
        components = np.zeros(strings, np.int64)
        components[: self.room] = np.asarray(self.by_component)
        tags = np.zeros(strings, np.int64)
        tags[: self.room] = np.asarray(self.by_tag)
        self.by_component = components.data
        self.by_tag = tags.data
        self.room = strings
        return 0

    def count_lost(self, dropped: i64, rolled_out: i64) -> i64:
        """Add logs that were lost. Sums are kept in halves, as they may exceed 64 bits."""
        self.dropped_low += dropped & tables.LOW32
        self.dropped_high += (dropped >> HALF) & tables.LOW32
        self.rolled_low += rolled_out & tables.LOW32
        self.rolled_high += (rolled_out >> HALF) & tables.LOW32
        return 0

    def time(self, ns: i64) -> i64:
        """Update the range of times by that of a log."""
        self.logs += 1
        self.last_ns = ns
        self.first_ns = min(self.first_ns, ns)
        self.final_ns = max(self.final_ns, ns)
        return 0

    @property
    def dropped(self) -> int:
        """Number of dropped logs."""
        return int(self.dropped_low) + (int(self.dropped_high) << HALF)

    @property
    def rolled_out(self) -> int:
        """Number of logs rolled out of a buffer."""
        return int(self.rolled_low) + (int(self.rolled_high) << HALF)
