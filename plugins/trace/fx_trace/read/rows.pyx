# cython: boundscheck=False, wraparound=False, show_performance_hints=False
"""Raw rows: the columns that a scan fills, one class a table."""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t

from fxframework.kernels.rows cimport Rows

__all__ = [
    "ArgRows",
    "BlobRows",
    "ClockRows",
    "CounterRows",
    "EventRows",
    "LogRows",
    "NoteRows",
    "ObjectRows",
    "ProfilerRows",
    "ProviderRows",
    "SchedRows",
    "SegmentRows",
    "ThreadRows",
]


@cython.final
cdef class EventRows(Rows):
    """Event records."""

    COLUMNS = (("kind", "u1"), ("thread", "i4"), ("category", "i4"), ("name", "i4"),
               ("offset", "i8"), ("ticks", "i8"), ("word", "i8"))


@cython.final
cdef class ArgRows(Rows):
    """Arguments; below -1, ``parent`` is ``PARENT_END`` minus the number of an end event.

    ``value`` is the integer, the bits of the double, or the code of the string or blob.
    """

    COLUMNS = (("table", "u1"), ("type", "u1"), ("name", "i4"), ("parent", "i8"), ("offset",
               "i8"), ("value", "i8"))


@cython.final
cdef class SchedRows(Rows):
    """Scheduling records; ``prev`` and ``next`` are tids, in legacy switches thread ids."""

    COLUMNS = (("kind", "u1"), ("state", "u1"), ("cpu", "i4"), ("prev_priority", "i4"),
               ("next_priority", "i4"), ("offset", "i8"), ("ticks", "i8"), ("prev", "i8"),
               ("next", "i8"))


@cython.final
cdef class LogRows(Rows):
    """Log records; the message is bytes ``start`` to ``start + length`` of the file."""

    COLUMNS = (("thread", "i4"), ("offset", "i8"), ("ticks", "i8"), ("start", "i8"),
               ("length", "i8"))


@cython.final
cdef class BlobRows(Rows):
    """Blobs; type 0 is a large record's."""

    COLUMNS = (("type", "u1"), ("name", "i4"), ("offset", "i8"), ("start", "i8"), ("length",
               "i8"))


@cython.final
cdef class ObjectRows(Rows):
    """Object records: kind 0 kernel (value koid), 1 userspace (value pointer)."""

    COLUMNS = (("kind", "u1"), ("type", "u1"), ("name", "i4"), ("offset", "i8"), ("value",
               "i8"), ("pid", "i8"))


@cython.final
cdef class ProfilerRows(Rows):
    """Profiler records; ``start`` and ``length`` are bytes of the file that hold the frames."""

    COLUMNS = (("kind", "u1"), ("thread", "i4"), ("module", "i4"), ("name", "i4"),
               ("build_id", "i4"), ("flags", "i4"), ("offset", "i8"), ("ticks", "i8"),
               ("pid", "i8"), ("address", "i8"), ("size", "i8"), ("vaddr", "i8"), ("start",
               "i8"), ("length", "i8"))


@cython.final
cdef class CounterRows(Rows):
    """The event and the argument of each value of a counter."""

    COLUMNS = ("event", "i8"), ("arg", "i8")


@cython.final
cdef class NoteRows(Rows):
    """Arguments that an object record annotates, and its name."""

    COLUMNS = ("arg", "i8"), ("name", "i8")


@cython.final
cdef class ThreadRows(Rows):
    """Threads in order of first mention; ``gone`` is 1 + an index that was never registered."""

    COLUMNS = ("pid", "i8"), ("tid", "i8"), ("offset", "i8"), ("gone", "i8")


@cython.final
cdef class ProviderRows(Rows):
    """Providers; ``rate`` says where the rate ``hertz`` is from, ``clock`` -1 is not used yet."""

    COLUMNS = (("number", "i8"), ("name", "i8"), ("epoch", "i8"), ("clock", "i8"), ("hertz",
               "i8"), ("base", "i8"), ("wall", "i8"), ("introduced", "i8"), ("rate", "i8"),
               ("full", "i8"), ("offset", "i8"))


@cython.final
cdef class ClockRows(Rows):
    """Clocks: ticks per second, base tick, and the wall time at it in ns or -1."""

    COLUMNS = ("rate", "i8"), ("base", "i8"), ("wall", "i8")


@cython.final
cdef class SegmentRows(Rows):
    """Stretches of one clock: the clock, and the rows from which it holds."""

    COLUMNS = (("clock", "i8"), ("events", "i8"), ("sched", "i8"), ("logs", "i8"),
               ("profiler", "i8"))
