"""Raw rows: the columns that a scan fills, one class a table."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.buffers import grown, room

__all__ = [
    "ArgRows",
    "BlobRows",
    "ClockRows",
    "CounterRows",
    "EventRows",
    "LargeRows",
    "LinkRows",
    "LogRows",
    "NoteRows",
    "ObjectRows",
    "ProfilerRows",
    "ProviderRows",
    "Rows",
    "SchedRows",
    "SegmentRows",
    "ThreadRows",
]


class Rows:
    """Columns of equal length: ``rows`` of them are filled, there is room for ``room``.

    A kernel writes to row ``rows`` of each column, having called ``grow`` where there is no room.
    """

    COLUMNS: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Names and dtypes, pair by pair."""

    def __init__(self, size: int = 64) -> None:
        self.rows = 0
        self.room = 0
        for name, dtype in self.COLUMNS:
            setattr(self, name, room(size, dtype))
        self.room = size

    def grow(self) -> int:
        """Make room for half as many rows again."""
        self.resize(self.room + (self.room >> 1) + 64)
        return 0

    def resize(self, size: int) -> None:
        """Make room for ``size`` rows, of which the filled ones stay."""
        for name, _ in self.COLUMNS:
            setattr(self, name, grown(getattr(self, name), size, self.rows))
        self.room = size

    def taken(self, size: int = 64) -> dict[str, NDArray[Any]]:
        """The filled rows of each column; new ones with room for ``size`` rows take their place."""
        columns = {name: np.asarray(getattr(self, name))[: self.rows] for name, _ in self.COLUMNS}
        self.rows = 0
        for name, dtype in self.COLUMNS:
            setattr(self, name, room(size, dtype))
        self.room = size
        return columns

    def filled(self) -> dict[str, NDArray[Any]]:
        """The filled rows of each column, as views."""
        return {name: np.asarray(getattr(self, name))[: self.rows] for name, _ in self.COLUMNS}


class EventRows(Rows):
    """Event records."""

    COLUMNS = (
        ("kind", "u1"),
        ("thread", "i4"),
        ("category", "i4"),
        ("name", "i4"),
        ("offset", "i8"),
        ("ticks", "i8"),
        ("word", "i8"),  # end ticks, counter id or correlation id; an instant's scope
    )


class ArgRows(Rows):
    """Arguments; below -1, ``parent`` is -2 - the ordinal of an end event.

    ``value`` is the integer, the bits of the double, or the code of the string or blob.
    """

    COLUMNS = (
        ("table", "u1"),
        ("type", "u1"),
        ("name", "i4"),
        ("parent", "i8"),
        ("offset", "i8"),
        ("value", "i8"),
    )


class SchedRows(Rows):
    """Scheduling records; ``prev`` and ``next`` are tids, in legacy switches thread ids."""

    COLUMNS = (
        ("kind", "u1"),
        ("state", "u1"),
        ("cpu", "i4"),
        ("prev_priority", "i4"),
        ("next_priority", "i4"),
        ("offset", "i8"),
        ("ticks", "i8"),
        ("prev", "i8"),
        ("next", "i8"),
    )


class LogRows(Rows):
    """Log records; the message is bytes ``start`` to ``start + length`` of the file."""

    COLUMNS = (
        ("thread", "i4"),
        ("offset", "i8"),
        ("ticks", "i8"),
        ("start", "i8"),
        ("length", "i8"),
    )


class BlobRows(Rows):
    """Blobs; type 0 is a large record's."""

    COLUMNS = (
        ("type", "u1"),
        ("name", "i4"),
        ("offset", "i8"),
        ("start", "i8"),
        ("length", "i8"),
    )


class ObjectRows(Rows):
    """Object records: kind 0 kernel (value koid), 1 userspace (value pointer)."""

    COLUMNS = (
        ("kind", "u1"),
        ("type", "u1"),
        ("name", "i4"),
        ("offset", "i8"),
        ("value", "i8"),
        ("pid", "i8"),
    )


class ProfilerRows(Rows):
    """Profiler records; ``start`` and ``length`` are bytes of the file that hold the frames."""

    COLUMNS = (
        ("kind", "u1"),
        ("thread", "i4"),
        ("module", "i4"),
        ("name", "i4"),
        ("build_id", "i4"),
        ("flags", "i4"),
        ("offset", "i8"),
        ("ticks", "i8"),
        ("pid", "i8"),
        ("address", "i8"),
        ("size", "i8"),
        ("vaddr", "i8"),
        ("start", "i8"),
        ("length", "i8"),
    )


class CounterRows(Rows):
    """The event and the argument of each value of a counter."""

    COLUMNS = (("event", "i8"), ("arg", "i8"))


class NoteRows(Rows):
    """Arguments that an object record annotates, and its name."""

    COLUMNS = (("arg", "i8"), ("name", "i8"))


class ThreadRows(Rows):
    """Threads in order of first mention; ``gone`` is 1 + an index that was never registered."""

    COLUMNS = (("pid", "i8"), ("tid", "i8"), ("offset", "i8"), ("gone", "i8"))


class ProviderRows(Rows):
    """Providers; ``rate`` says where the rate ``hertz`` is from, ``clock`` -1 is not used yet."""

    COLUMNS = (
        ("number", "i8"),
        ("name", "i8"),
        ("epoch", "i8"),
        ("clock", "i8"),
        ("hertz", "i8"),
        ("base", "i8"),
        ("wall", "i8"),
        ("introduced", "i8"),
        ("rate", "i8"),
        ("full", "i8"),
        ("offset", "i8"),
    )


class ClockRows(Rows):
    """Clocks: ticks per second, base tick, and the wall time at it in ns or -1."""

    COLUMNS = (("rate", "i8"), ("base", "i8"), ("wall", "i8"))


class SegmentRows(Rows):
    """Stretches of one clock: the clock, and the rows from which it holds."""

    COLUMNS = (
        ("clock", "i8"),
        ("events", "i8"),
        ("sched", "i8"),
        ("logs", "i8"),
        ("profiler", "i8"),
    )


class LinkRows(Rows):
    """An object that may be kept, and a record that it needs: words of the file."""

    COLUMNS = (("owner", "i8"), ("needed", "i8"))


class LargeRows(Rows):
    """Large records that are kept: their word, and the word and length of their category."""

    COLUMNS = (("word", "i8"), ("start", "i8"), ("nbytes", "i8"))
