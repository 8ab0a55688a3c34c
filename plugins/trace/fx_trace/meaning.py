"""Meaning: which rows of which tables the records of a trace make.

A record has at most one row, but for a counter, which has one for each argument that is a number;
arguments are rows of their own. Rows are columns (``COLUMNS``) of the records of a run, which
``read.rows`` reads. What the whole file has to be known for, ``read.first_pass`` finds: ends,
parents and depths of slices, and the slice around a point of a flow.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace import records as r
from fx_trace.kinds import ArgType, EventType, ProfilerType, SchedulingType
from fxframework.io.words import plain_numbers
from fxframework.kernels.arrays import I64
from fxframework.model.schema import TABLE_CODES
from fxframework.wire.known import LENGTH, START

Cells = dict[str, NDArray[Any]]
"""Columns of rows by name, each of shape (rows,)."""

E = plain_numbers(EventType)
A = plain_numbers(ArgType)
EVENTS_OF = {
    "slices": (E.DURATION_BEGIN, E.DURATION_COMPLETE, E.ASYNC_BEGIN),
    "instants": (E.INSTANT, E.ASYNC_INSTANT),
    "flows": (E.FLOW_BEGIN, E.FLOW_STEP, E.FLOW_END),
    "ends": (E.DURATION_END, E.ASYNC_END),
}
"""By table, and of `ends`: the types of its events."""
IS_ROW_OF = {
    table: np.isin(np.arange(256), np.array(types, np.int64)) for table, types in EVENTS_OF.items()
}
"""By table, and of `ends`: by type of event, whether it has a row there."""
TABLE_OF_EVENT = np.full(256, TABLE_CODES["slices"], np.uint8)
"""By type of event, the table that its arguments belong to."""
for _table in ("instants", "flows"):
    TABLE_OF_EVENT[IS_ROW_OF[_table]] = TABLE_CODES[_table]
TABLE_OF_EVENT[E.COUNTER] = TABLE_CODES["counters"]
KIND_OF_SLICE = np.zeros(256, np.uint8)
"""By type of event, the `kind` of its slice: begin_end, complete, async."""
KIND_OF_SLICE[list(EVENTS_OF["slices"])] = range(len(EVENTS_OF["slices"]))
ASYNC_SCOPE = 255
"""The scope of an asynchronous instant."""
NUMERIC = A.INT32, A.DOUBLE
"""The first and the last type of arguments that are numbers: those of counters."""
NO_SCOPE = 254
"""The scope of an instant whose number does not fit the table."""
NO_STATE = 255
"""The state of a thread in a wakeup, which leaves none."""
PRIORITIES = {
    (SchedulingType.CONTEXT_SWITCH, b"outgoing_weight"): "prev_priority",
    (SchedulingType.CONTEXT_SWITCH, b"incoming_weight"): "next_priority",
    (SchedulingType.THREAD_WAKEUP, b"weight"): "next_priority",
}
"""Arguments of scheduling records that are priorities, and their columns."""
PROCESS_NAME = b"process"
"""The name of the argument of a kernel object that says to which process it belongs."""

COLUMNS: Mapping[str, Mapping[str, str]] = {
    "events": {
        "kind": "u1", "thread": "i4", "category": "i4", "name": "i4", "offset": "i8",
        "ticks": "i8", "word": "i8", "time": "i8", "finish": "i8",
    },
    "args": {
        "table": "u1", "type": "u1", "name": "i4", "parent": "i8", "offset": "i8", "value": "i8",
    },
    "sched": {
        "kind": "u1", "state": "u1", "cpu": "i4", "prev_priority": "i4", "next_priority": "i4",
        "offset": "i8", "ticks": "i8", "time": "i8", "prev": "i8", "next": "i8",
    },
    "logs": {
        "thread": "i4", "offset": "i8", "ticks": "i8", "time": "i8", "start": "i8", "length": "i8",
    },
    "blobs": {
        "type": "u1", "thread": "i4", "category": "i4", "name": "i4", "offset": "i8",
        "ticks": "i8", "time": "i8", "start": "i8", "length": "i8",
    },
    "objects": {
        "kind": "u1", "type": "u1", "name": "i4", "offset": "i8", "value": "i8", "pid": "i8",
    },
    "profiler": {
        "kind": "u1", "thread": "i4", "module": "i4", "name": "i4", "build_id": "i4",
        "flags": "i4", "offset": "i8", "ticks": "i8", "time": "i8", "pid": "i8", "address": "i8",
        "size": "i8", "vaddr": "i8", "start": "i8", "length": "i8",
    },
    "counters": {"event": "i8", "arg": "i8"},
    "annotations": {"arg": "i8", "name": "i8"},
}  # fmt: skip
"""The columns of raw rows.

``ticks`` are those of the file, ``time`` is in ns. The ``word`` of an event is its scope, id or
end, ``finish`` the end of a complete event in ns. ``prev`` and ``next`` are tids, in legacy
switches threads. The ``value`` of an argument is the integer, the bits of the double, or the code
of the string or blob; below -1, its ``parent`` is ``PARENT_END`` minus the number of an end event.
``start`` and ``length`` are bytes of the file. A counter has the event and the argument of each of
its values, ``annotations`` the arguments that an object record annotates, and its name.
"""


class Records(Protocol):
    """Records of a class, by names of fields (``read.rows.RowRecords``)."""

    cls: Any

    def has(self, name: str) -> bool:
        """Return whether any record has a field with a condition."""

    def number(self, name: str) -> I64:
        """Return the values of a number."""

    def aspect(self, name: str, key: str) -> I64:
        """Return places or lengths of the bytes of a field."""

    def codes(self, name: str) -> NDArray[np.int32]:
        """Return the codes of the texts of a field."""

    def every(self, value: int) -> I64:
        """Return a column of one value."""

    def offsets(self, places: I64) -> I64:
        """Return the offsets in the file of places in the bytes that are read."""

    def threads(self, name: str) -> NDArray[np.int32]:
        """Return the threads of a field; -1 for those of which only the process is there."""

    def processes(self, name: str) -> I64:
        """Return the process koids of a field; 0 for threads that nobody registered."""


def events(rows: Records) -> Cells:
    """Return rows of events; the record's own word is its scope, id or end."""
    kind = rows.number("event").astype(np.uint8)
    word_fields = ("counter_id", "end_timestamp", "id")
    words = [rows.number(name) for name in word_fields if rows.has(name)]
    if rows.has("scope"):
        scope = rows.number("scope")
        # Without a sign, negative numbers are large.
        is_large = scope.view(np.uint64) > NO_SCOPE
        if is_large.any():
            scope = np.where((kind == E.INSTANT) & is_large, NO_SCOPE, scope)
        words.append(scope)
    return {
        "kind": kind,
        "thread": rows.threads("thread"),
        "category": rows.codes("category"),
        "name": rows.codes("name"),
        "ticks": rows.number("timestamp"),
        "word": sum_of(words, kind.size),
    }


def sum_of(columns: list[I64], count: int) -> I64:
    """Return the sum of columns of which at most one is not 0 in a row."""
    if not columns:
        return np.zeros(count, np.int64)
    total = columns[0]
    for column in columns[1:]:
        total = total | column
    return total


Source = Callable[[Records], NDArray[Any]] | int
"""What gives a column of rows: a number is that of all of them."""


def number(name: str) -> Source:
    """Return what gives the values of a number."""
    return lambda rows: rows.number(name)


def codes(name: str) -> Source:
    """Return what gives the codes of the texts of a field."""
    return lambda rows: rows.codes(name)


def threads(name: str) -> Source:
    """Return what gives the threads of a field."""
    return lambda rows: rows.threads(name)


def processes(name: str) -> Source:
    """Return what gives the processes of a field."""
    return lambda rows: rows.processes(name)


def stretch(name: str) -> dict[str, Source]:
    """Return the columns of the places and lengths of the bytes of a field."""
    return {
        "start": lambda rows: rows.offsets(rows.aspect(name, START)),
        "length": lambda rows: rows.aspect(name, LENGTH),
    }


SCHEDULED: Mapping[str, Source] = {
    "state": NO_STATE, "cpu": number("cpu"), "ticks": number("timestamp"),
    "prev_priority": -1, "next_priority": -1, "prev": -1,
}  # fmt: skip
"""Columns of scheduling that only some kinds of records fill, and common ones."""
PROFILED: Mapping[str, Source] = {
    "thread": threads("thread"), "ticks": number("timestamp"), "pid": processes("thread"),
    "module": -1, "name": -1, "build_id": -1, "flags": 0, "address": 0, "size": 0, "vaddr": 0,
    "start": 0, "length": 0,
}  # fmt: skip
"""The same of the profiler."""
BLOB: Mapping[str, Source] = {
    "type": 0, "thread": -1, "category": -1, "ticks": 0, "name": codes("name"),
    **stretch("payload"),
}  # fmt: skip
"""The same of blobs; type 0 is a large record's. Only its metadata say thread and time."""
SOURCES: Mapping[Any, tuple[str, Mapping[str, Source]]] = {
    r.ContextSwitch: ("sched", {
        **SCHEDULED, "kind": SchedulingType.CONTEXT_SWITCH, "state": number("outgoing_state"),
        "prev": number("outgoing_tid"), "next": number("incoming_tid"),
    }),
    r.ThreadWakeup: ("sched", {
        **SCHEDULED, "kind": SchedulingType.THREAD_WAKEUP, "next": number("waking_tid"),
    }),
    r.LegacyContextSwitch: ("sched", {
        **SCHEDULED, "kind": SchedulingType.LEGACY_CONTEXT_SWITCH,
        "state": number("outgoing_state"), "prev_priority": number("outgoing_priority"),
        "next_priority": number("incoming_priority"),
        "prev": threads("outgoing"), "next": threads("incoming"),
    }),
    r.Log: ("logs", {
        "thread": threads("thread"), "ticks": number("timestamp"), **stretch("message"),
    }),
    r.Blob: ("blobs", {**BLOB, "type": number("blob_type")}),
    r.LargeBlob: ("blobs", BLOB),
    r.LargeBlobWithMetadata: ("blobs", {
        **BLOB, "thread": threads("thread"), "category": codes("category"),
        "ticks": number("timestamp"),
    }),
    r.KernelObject: ("objects", {
        # Arguments say their processes.
        "kind": 0, "type": number("object_type"), "name": codes("name"), "value": number("koid"),
        "pid": 0,
    }),
    r.UserspaceObject: ("objects", {
        "kind": 1, "type": 0, "name": codes("name"), "value": number("pointer"),
        "pid": processes("process"),
    }),
    r.ProfilerModule: ("profiler", {
        **PROFILED, "kind": ProfilerType.MODULE, "module": number("module_id"),
        "name": codes("name"), "build_id": codes("build_id"),
    }),
    r.ProfilerMmap: ("profiler", {
        **PROFILED, "kind": ProfilerType.MMAP, "module": number("module_id"),
        "flags": number("flags"), "address": number("start_address"), "size": number("range"),
        "vaddr": number("vaddr"),
    }),
    r.ProfilerBacktrace: ("profiler", {
        **PROFILED, "kind": ProfilerType.BACKTRACE, "flags": number("flags"), **stretch("frames"),
    }),
}  # fmt: skip
"""By class of records, whose rows they are, and what gives the columns."""


def cells_of(sources: Mapping[str, Source], rows: Records) -> Cells:
    """Return the columns of rows."""
    return {
        name: rows.every(source) if isinstance(source, int) else source(rows)
        for name, source in sources.items()
    }


MAKERS: Mapping[Any, tuple[str, Callable[[Records], Cells]]] = {
    r.Event: ("events", events),
    **{
        cls: (table, functools.partial(cells_of, sources))
        for cls, (table, sources) in SOURCES.items()
    },
}
"""By class of records, whose rows they are, and what makes the columns."""
TABLE_CODE = {
    "sched": wire.TABLE_SCHED, "blobs": wire.TABLE_BLOBS, "objects": wire.TABLE_OBJECTS,
}  # fmt: skip
"""The tables that arguments of records other than events belong to."""


def is_numeric(types: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which types of arguments are numbers."""
    first_type, last_type = NUMERIC
    return np.asarray((types >= first_type) & (types <= last_type))


def are_rows_of(table: str, kinds: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Return which events have a row in a table, or of `ends`, are ends."""
    # Comparisons are many times as fast as a table by kind.
    masks = (kinds == kind for kind in EVENTS_OF[table])
    return functools.reduce(operator.or_, masks)


def counts_of(kinds: NDArray[np.uint8]) -> I64:
    """Return how many events there are of each type, of shape (256,)."""
    counts = np.zeros(256, np.int64)
    # Comparing bytes takes a tenth of what ``bincount`` does, and events are of few types.
    for kind in range(kinds.min(initial=255), int(kinds.max(initial=0)) + 1):
        counts[kind] = np.count_nonzero(kinds == kind)
    return counts


def rows_of_events(kinds: NDArray[Any], first: Mapping[str, int]) -> I64:
    """Return the row of each event in its table, and of an end its number; 0 for others.

    ``first`` are the rows of the first event of each table, and the number of the first end.
    """
    counts = counts_of(kinds)
    rows = np.zeros(kinds.size, np.int64)
    for table, is_row in IS_ROW_OF.items():
        count = int(counts[is_row].sum())
        numbers = np.arange(first[table], first[table] + count)
        if count == kinds.size:
            return numbers
        if count:
            rows[np.flatnonzero(are_rows_of(table, kinds))] = numbers
    return rows
