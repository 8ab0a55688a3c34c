"""Raw rows: the columns that a scan fills, one class a table."""

from __future__ import annotations

from typing import final

from fxframework.kernels.annotations import Column, i32, i64, u8
from fxframework.kernels.rows import Rows

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


@final
class EventRows(Rows):
    """Event records."""

    kind: Column[u8]
    thread: Column[i32]
    category: Column[i32]
    name: Column[i32]
    offset: Column[i64]
    ticks: Column[i64]
    word: Column[i64]

    """``word``: end ticks, counter id or correlation id; an instant's scope."""


@final
class ArgRows(Rows):
    """Arguments; below -1, ``parent`` is ``PARENT_END`` minus the number of an end event.

    ``value`` is the integer, the bits of the double, or the code of the string or blob.
    """

    table: Column[u8]
    type: Column[u8]
    name: Column[i32]
    parent: Column[i64]
    offset: Column[i64]
    value: Column[i64]


@final
class SchedRows(Rows):
    """Scheduling records; ``prev`` and ``next`` are tids, in legacy switches thread ids."""

    kind: Column[u8]
    state: Column[u8]
    cpu: Column[i32]
    prev_priority: Column[i32]
    next_priority: Column[i32]
    offset: Column[i64]
    ticks: Column[i64]
    prev: Column[i64]
    next: Column[i64]


@final
class LogRows(Rows):
    """Log records; the message is bytes ``start`` to ``start + length`` of the file."""

    thread: Column[i32]
    offset: Column[i64]
    ticks: Column[i64]
    start: Column[i64]
    length: Column[i64]


@final
class BlobRows(Rows):
    """Blobs; type 0 is a large record's."""

    type: Column[u8]
    name: Column[i32]
    offset: Column[i64]
    start: Column[i64]
    length: Column[i64]


@final
class ObjectRows(Rows):
    """Object records: kind 0 kernel (value koid), 1 userspace (value pointer)."""

    kind: Column[u8]
    type: Column[u8]
    name: Column[i32]
    offset: Column[i64]
    value: Column[i64]
    pid: Column[i64]


@final
class ProfilerRows(Rows):
    """Profiler records; ``start`` and ``length`` are bytes of the file that hold the frames."""

    kind: Column[u8]
    thread: Column[i32]
    module: Column[i32]
    name: Column[i32]
    build_id: Column[i32]
    flags: Column[i32]
    offset: Column[i64]
    ticks: Column[i64]
    pid: Column[i64]
    address: Column[i64]
    size: Column[i64]
    vaddr: Column[i64]
    start: Column[i64]
    length: Column[i64]


@final
class CounterRows(Rows):
    """The event and the argument of each value of a counter."""

    event: Column[i64]
    arg: Column[i64]


@final
class NoteRows(Rows):
    """Arguments that an object record annotates, and its name."""

    arg: Column[i64]
    name: Column[i64]


@final
class ThreadRows(Rows):
    """Threads in order of first mention; ``gone`` is 1 + an index that was never registered."""

    pid: Column[i64]
    tid: Column[i64]
    offset: Column[i64]
    gone: Column[i64]


@final
class ProviderRows(Rows):
    """Providers; ``rate`` says where the rate ``hertz`` is from, ``clock`` -1 is not used yet."""

    number: Column[i64]
    name: Column[i64]
    epoch: Column[i64]
    clock: Column[i64]
    hertz: Column[i64]
    base: Column[i64]
    wall: Column[i64]
    introduced: Column[i64]
    rate: Column[i64]
    full: Column[i64]
    offset: Column[i64]


@final
class ClockRows(Rows):
    """Clocks: ticks per second, base tick, and the wall time at it in ns or -1."""

    rate: Column[i64]
    base: Column[i64]
    wall: Column[i64]


@final
class SegmentRows(Rows):
    """Stretches of one clock: the clock, and the rows from which it holds."""

    clock: Column[i64]
    events: Column[i64]
    sched: Column[i64]
    logs: Column[i64]
    profiler: Column[i64]
