"""Severities of logs: names of their bytes in both eras, and equivalents of other log systems.

The severity of a finding is in ``rules.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from fxframework.errors import UsageError, did_you_mean


class Level(IntEnum):
    """The six severities."""

    TRACE = 0x10
    DEBUG = 0x20
    INFO = 0x30
    WARN = 0x40
    ERROR = 0x50
    FATAL = 0x60


SYSLOG: Final[Mapping[Level, int]] = {
    Level.TRACE: 7,
    Level.DEBUG: 7,
    Level.INFO: 6,
    Level.WARN: 4,
    Level.ERROR: 3,
    Level.FATAL: 2,
}
"""Priorities of syslog and journald."""
PYTHON: Final[Mapping[Level, int]] = {
    Level.TRACE: 5,
    Level.DEBUG: 10,
    Level.INFO: 20,
    Level.WARN: 30,
    Level.ERROR: 40,
    Level.FATAL: 50,
}
"""Level numbers of Python's logging."""
_ALIASES = {"WARNING": Level.WARN}


def level_of(severity: int) -> Level:
    """Return the level whose band contains a severity byte; the upper bound belongs to the band."""
    for level in Level:
        if severity <= level:
            return level
    return Level.FATAL


LEVELS: Final = tuple(level_of(severity) for severity in range(256))
"""``level_of`` of every byte."""


def legacy_level(severity: int) -> tuple[int, int]:
    """Return severity byte and verbosity (0: none) of a packet's severity, as readers of 2022 did.

    -10 to -3 were verbosities, -2 to 3 the levels from TRACE on, 0x21 to 0x2f verbosities below
    INFO. Other values are clamped to a byte, as current readers do.
    """
    if -10 <= severity <= -3:
        return Level.DEBUG, -severity - 2
    if -2 <= severity <= 3:
        return Level.TRACE + 0x10 * (severity + 2), 0
    if Level.DEBUG < severity < Level.INFO:
        return Level.DEBUG, Level.INFO - severity
    return min(max(severity, 0), 255), 0


def otel_number(severity: int) -> int:
    """Return OpenTelemetry's severity number: exact at the levels, monotonic between them."""
    return min(max(1 + (severity - Level.TRACE) // 4, 1), 24)


def parse_level(text: str) -> int:
    """Return the severity byte of a name, in any case, or of a number from 0 to 255.

    Raises UsageError for any other text.
    """
    name = text.strip().upper()
    level = _ALIASES.get(name) or Level.__members__.get(name)
    if level is not None:
        return int(level)
    try:
        number = int(name, 0)
    except ValueError:
        number = -1
    if 0 <= number <= 255:
        return number
    raise UsageError(
        f"invalid severity {text!r}{did_you_mean(name, Level.__members__)}",
        remedy=f"use {', '.join(Level.__members__)}, or a byte from 0 to 255",
    )
