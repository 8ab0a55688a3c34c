"""Raw columns: the arrays that the scans fill, and their counts."""

from __future__ import annotations

import numpy as np

from fxframework.kernels.buffers import full
from fxframework.kernels.rows import Rows, columns

__all__ = [
    "ArgColumns",
    "LogColumns",
    "PositionalColumns",
    "RareColumns",
    "TagColumns",
    "Totals",
]

DROPPED = 0
ROLLED_OUT = 1
VERBOSITY = 2
LOW32 = 0xFFFFFFFF
LATEST = 0x7FFFFFFFFFFFFFFF
EARLIEST = -0x8000000000000000


class LogColumns(Rows):
    """Raw columns of `logs`. The message is ``length`` bytes of the file from byte ``start``."""

    COLUMNS = columns(
        i8="offset ns start pid tid tag",
        u4="length line",
        i4="tags component url file",
        u1="severity given",
    )


class RareColumns(Rows):
    """Rare values of logs: a value in the column DROPPED, ROLLED_OUT or VERBOSITY of a row."""

    COLUMNS = columns(i8="row value", u1="column")


class ArgColumns(Rows):
    """Raw columns of `args`; ``value`` is an integer, the bits of a double, or a string's code."""

    COLUMNS = columns(i8="offset parent value", i4="name", u1="type")


class TagColumns(Rows):
    """Raw columns of `log_tags`."""

    COLUMNS = columns(i8="offset parent", i4="name")


class PositionalColumns(Rows):
    """The values of structured printfs, for the formats in their messages."""

    COLUMNS = columns(i8="parent value", u1="type")


class Totals:
    """Counts of the logs of a capture."""

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

    def count_lost(self, dropped: int, rolled_out: int) -> int:
        """Add logs that were lost. Sums are kept in halves, as they may exceed 64 bits."""
        self.dropped_low += dropped & LOW32
        self.dropped_high += (dropped >> 32) & LOW32
        self.rolled_low += rolled_out & LOW32
        self.rolled_high += (rolled_out >> 32) & LOW32
        return 0

    def time(self, ns: int) -> int:
        """Update the range of times by that of a log."""
        self.logs += 1
        self.last_ns = ns
        self.first_ns = min(self.first_ns, ns)
        self.final_ns = max(self.final_ns, ns)
        return 0

    @property
    def dropped(self) -> int:
        """Number of dropped logs."""
        return int(self.dropped_low) + (int(self.dropped_high) << 32)

    @property
    def rolled_out(self) -> int:
        """Number of logs rolled out of a buffer."""
        return int(self.rolled_low) + (int(self.rolled_high) << 32)
