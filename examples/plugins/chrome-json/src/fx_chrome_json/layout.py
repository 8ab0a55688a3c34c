"""Layout: the phases of trace events, the kinds of stretches of a file, and what they become."""

from __future__ import annotations

__all__ = ["ASYNC_INSTANT", "KINDS", "NUMBERS", "Phase"]

import enum


class Phase(enum.IntEnum):
    """What an event is. Several letters of the format mean the same."""

    OTHER = 0
    """A phase that has no standard table; its row is in `chrome_events`."""
    BEGIN = 1
    END = 2
    COMPLETE = 3
    ASYNC_BEGIN = 4
    ASYNC_END = 5
    ASYNC_INSTANT = 6
    INSTANT = 7
    COUNTER = 8
    FLOW_BEGIN = 9
    FLOW_STEP = 10
    FLOW_END = 11
    METADATA = 12
    SWITCH = 13
    WAKEUP = 14


ASYNC_INSTANT = 255
"""Scope of an asynchronous instant."""
_LETTERS = {
    "B": (Phase.BEGIN, "begin"),
    "E": (Phase.END, "end"),
    "X": (Phase.COMPLETE, "complete"),
    "b": (Phase.ASYNC_BEGIN, "async_begin"),
    "e": (Phase.ASYNC_END, "async_end"),
    "n": (Phase.ASYNC_INSTANT, "async_instant"),
    "S": (Phase.ASYNC_BEGIN, "async_start"),
    "F": (Phase.ASYNC_END, "async_finish"),
    "T": (Phase.ASYNC_INSTANT, "async_step_into"),
    "p": (Phase.ASYNC_INSTANT, "async_step_past"),
    "i": (Phase.INSTANT, "instant"),
    "I": (Phase.INSTANT, "instant"),
    "R": (Phase.INSTANT, "mark"),
    "C": (Phase.COUNTER, "counter"),
    "s": (Phase.FLOW_BEGIN, "flow_begin"),
    "t": (Phase.FLOW_STEP, "flow_step"),
    "f": (Phase.FLOW_END, "flow_end"),
    "M": (Phase.METADATA, "metadata"),
    "N": (Phase.OTHER, "object_created"),
    "O": (Phase.OTHER, "object_snapshot"),
    "D": (Phase.OTHER, "object_destroyed"),
    "P": (Phase.OTHER, "sample"),
    "V": (Phase.OTHER, "memory_dump_global"),
    "v": (Phase.OTHER, "memory_dump"),
    "c": (Phase.OTHER, "clock_sync"),
    "(": (Phase.OTHER, "context_begin"),
    ")": (Phase.OTHER, "context_end"),
    "k": (Phase.SWITCH, "context_switch"),
    "w": (Phase.WAKEUP, "wakeup"),
}
NUMBERS: dict[str, int] = {letter: int(phase) for letter, (phase, _) in _LETTERS.items()}
"""Phases by their letter. `k` and `w` are only known within ``systemTraceEvents``."""
KINDS: dict[str, str] = {letter: kind for letter, (_, kind) in _LETTERS.items()}
"""Kinds of records by the letter of the phase."""
