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


def context_switches(rows: Records) -> Cells:
    """Return rows of context switches, which name threads by their tid."""
    return {
        **scheduled(rows, SchedulingType.CONTEXT_SWITCH),
        "state": rows.number("outgoing_state"),
        "prev": rows.number("outgoing_tid"),
        "next": rows.number("incoming_tid"),
    }


def wakeups(rows: Records) -> Cells:
    """Return rows of wakeups."""
    return {
        **scheduled(rows, SchedulingType.THREAD_WAKEUP),
        "next": rows.number("waking_tid"),
    }


def legacy_switches(rows: Records) -> Cells:
    """Return rows of legacy context switches."""
    return {
        **scheduled(rows, SchedulingType.LEGACY_CONTEXT_SWITCH),
        "state": rows.number("outgoing_state"),
        "prev_priority": rows.number("outgoing_priority"),
        "next_priority": rows.number("incoming_priority"),
        "prev": rows.threads("outgoing"),
        "next": rows.threads("incoming"),
    }


def scheduled(rows: Records, kind: int) -> Cells:
    """Return the columns of scheduling that only some kinds of records fill, and common ones."""
    return {
        "kind": rows.every(kind),
        "state": rows.every(NO_STATE),
        "cpu": rows.number("cpu"),
        "ticks": rows.number("timestamp"),
        **{name: rows.every(-1) for name in ("prev_priority", "next_priority", "prev")},
    }


def logs(rows: Records) -> Cells:
    """Return rows of log records."""
    return {
        "thread": rows.threads("thread"),
        "ticks": rows.number("timestamp"),
        "start": rows.offsets(rows.aspect("message", START)),
        "length": rows.aspect("message", LENGTH),
    }


def blobs(rows: Records) -> Cells:
    """Return rows of blobs; type 0 is a large record's. Only its metadata say thread and time."""
    is_plain = rows.cls is r.Blob
    has_metadata = rows.cls is r.LargeBlobWithMetadata
    return {
        "type": rows.number("blob_type") if is_plain else rows.every(0),
        "thread": rows.threads("thread") if has_metadata else rows.every(-1),
        "category": rows.codes("category") if has_metadata else rows.every(-1),
        "ticks": rows.number("timestamp") if has_metadata else rows.every(0),
        "name": rows.codes("name"),
        "start": rows.offsets(rows.aspect("payload", START)),
        "length": rows.aspect("payload", LENGTH),
    }


def kernel_objects(rows: Records) -> Cells:
    """Return rows of kernel objects; arguments say their processes."""
    return {
        "kind": rows.every(0),
        "type": rows.number("object_type"),
        "name": rows.codes("name"),
        "value": rows.number("koid"),
        "pid": rows.every(0),
    }


def userspace_objects(rows: Records) -> Cells:
    """Return rows of userspace objects."""
    return {
        "kind": rows.every(1),
        "type": rows.every(0),
        "name": rows.codes("name"),
        "value": rows.number("pointer"),
        "pid": rows.processes("process"),
    }


def modules(rows: Records) -> Cells:
    """Return rows of modules that processes have loaded."""
    return {
        **profiled(rows, ProfilerType.MODULE),
        "module": rows.number("module_id"),
        "name": rows.codes("name"),
        "build_id": rows.codes("build_id"),
    }


def mappings(rows: Records) -> Cells:
    """Return rows of mappings of modules."""
    return {
        **profiled(rows, ProfilerType.MMAP),
        "module": rows.number("module_id"),
        "flags": rows.number("flags"),
        "address": rows.number("start_address"),
        "size": rows.number("range"),
        "vaddr": rows.number("vaddr"),
    }


def backtraces(rows: Records) -> Cells:
    """Return rows of backtraces."""
    return {
        **profiled(rows, ProfilerType.BACKTRACE),
        "flags": rows.number("flags"),
        "start": rows.offsets(rows.aspect("frames", START)),
        "length": rows.aspect("frames", LENGTH),
    }


def profiled(rows: Records, kind: int) -> Cells:
    """Return the columns of the profiler that only some kinds of records fill, and common ones."""
    return {
        "kind": rows.every(kind),
        "thread": rows.threads("thread"),
        "ticks": rows.number("timestamp"),
        "pid": rows.processes("thread"),
        **{name: rows.every(-1) for name in ("module", "name", "build_id")},
        **{name: rows.every(0) for name in ("flags", "address", "size", "vaddr")},
        **{name: rows.every(0) for name in ("start", "length")},
    }


MAKERS: Mapping[Any, tuple[str, Callable[[Records], Cells]]] = {
    r.Event: ("events", events),
    r.ContextSwitch: ("sched", context_switches),
    r.ThreadWakeup: ("sched", wakeups),
    r.LegacyContextSwitch: ("sched", legacy_switches),
    r.Log: ("logs", logs),
    r.Blob: ("blobs", blobs),
    r.LargeBlob: ("blobs", blobs),
    r.LargeBlobWithMetadata: ("blobs", blobs),
    r.KernelObject: ("objects", kernel_objects),
    r.UserspaceObject: ("objects", userspace_objects),
    r.ProfilerModule: ("profiler", modules),
    r.ProfilerMmap: ("profiler", mappings),
    r.ProfilerBacktrace: ("profiler", backtraces),
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
