"""Raw rows: the columns that a scan fills, one class a table."""

from __future__ import annotations

from fxframework.kernels.rows import Rows, columns

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
    "SchedRows",
    "SegmentRows",
    "ThreadRows",
]


class EventRows(Rows):
    """Event records."""

    COLUMNS = columns(u1="kind", i4="thread category name", i8="offset ticks word")
    """``word``: end ticks, counter id or correlation id; an instant's scope."""


class ArgRows(Rows):
    """Arguments; below -1, ``parent`` is -2 - the ordinal of an end event.

    ``value`` is the integer, the bits of the double, or the code of the string or blob.
    """

    COLUMNS = columns(u1="table type", i4="name", i8="parent offset value")


class SchedRows(Rows):
    """Scheduling records; ``prev`` and ``next`` are tids, in legacy switches thread ids."""

    COLUMNS = columns(
        u1="kind state", i4="cpu prev_priority next_priority", i8="offset ticks prev next"
    )


class LogRows(Rows):
    """Log records; the message is bytes ``start`` to ``start + length`` of the file."""

    COLUMNS = columns(i4="thread", i8="offset ticks start length")


class BlobRows(Rows):
    """Blobs; type 0 is a large record's."""

    COLUMNS = columns(u1="type", i4="name", i8="offset start length")


class ObjectRows(Rows):
    """Object records: kind 0 kernel (value koid), 1 userspace (value pointer)."""

    COLUMNS = columns(u1="kind type", i4="name", i8="offset value pid")


class ProfilerRows(Rows):
    """Profiler records; ``start`` and ``length`` are bytes of the file that hold the frames."""

    COLUMNS = columns(
        u1="kind",
        i4="thread module name build_id flags",
        i8="offset ticks pid address size vaddr start length",
    )


class CounterRows(Rows):
    """The event and the argument of each value of a counter."""

    COLUMNS = columns(i8="event arg")


class NoteRows(Rows):
    """Arguments that an object record annotates, and its name."""

    COLUMNS = columns(i8="arg name")


class ThreadRows(Rows):
    """Threads in order of first mention; ``gone`` is 1 + an index that was never registered."""

    COLUMNS = columns(i8="pid tid offset gone")


class ProviderRows(Rows):
    """Providers; ``rate`` says where the rate ``hertz`` is from, ``clock`` -1 is not used yet."""

    COLUMNS = columns(i8="number name epoch clock hertz base wall introduced rate full offset")


class ClockRows(Rows):
    """Clocks: ticks per second, base tick, and the wall time at it in ns or -1."""

    COLUMNS = columns(i8="rate base wall")


class SegmentRows(Rows):
    """Stretches of one clock: the clock, and the rows from which it holds."""

    COLUMNS = columns(i8="clock events sched logs profiler")


class LinkRows(Rows):
    """An object that may be kept, and a record that it needs: words of the file."""

    COLUMNS = columns(i8="owner needed")


class LargeRows(Rows):
    """Large records that are kept: their word, and the word and length of their category."""

    COLUMNS = columns(i8="word start nbytes")
