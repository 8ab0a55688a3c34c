"""Schemas of the tables of a trace; their columns are made in ``batches.py``."""

from __future__ import annotations

from collections.abc import Mapping

from fx_trace import format as wire
from fxframework.model.schema import NAME, STANDARD_TABLES, THREAD, TICKS, TS, Column, TableSchema

OBJECTS = TableSchema(
    "trace_objects",
    "an annotation of a kernel object or of a userspace object",
    (
        Column("kind", "u1", "which kind of object", values={0: "kernel", 1: "userspace"}),
        Column("type", "u1", "ZX_OBJ_TYPE of a kernel object, else 0"),
        Column("id", "u8", "koid of a kernel object, pointer of a userspace one"),
        Column("pid", "u8", "koid of the process it belongs to; 0 not given"),
        NAME,
    ),
)
PROFILER = TableSchema(
    "trace_profiler",
    "a record of the CPU profiler: a module, a mapping of one, or a backtrace",
    (
        TS,
        TICKS,
        Column("kind", "u1", "what it is", values=wire.PROFILER_NAMES),
        THREAD,
        Column("pid", "u8", "koid of the process"),
        Column("module", "i4", "number of the module; -1 in a backtrace"),
        NAME,
        Column("build_id", "code", "build id of a module, in hex"),
        Column("flags", "u4", "of a mapping 1 readable, 2 writable, 4 executable; of a backtrace"),
        Column("address", "u8", "first address of a mapping"),
        Column("size", "u8", "bytes of a mapping"),
        Column("vaddr", "u8", "address within the module of the mapping's first byte"),
        Column("frames", "bytes", "a backtrace's code addresses, 8 bytes each"),
    ),
)
ANNOTATION = Column("trace_annotation", "code", "name of the object that a pointer or koid means")
SCHEMAS: Mapping[str, TableSchema] = {
    **{
        name: STANDARD_TABLES[name]
        for name in (
            "processes",
            "threads",
            "slices",
            "instants",
            "counters",
            "flows",
            "sched",
            "logs",
        )
    },
    "args": STANDARD_TABLES["args"].extended(ANNOTATION),
    "blobs": STANDARD_TABLES["blobs"],
    "trace_objects": OBJECTS,
    "trace_profiler": PROFILER,
}
STREAMED = frozenset(SCHEMAS) - {"processes", "threads"}
"""Tables with a row for each record of a kind."""
