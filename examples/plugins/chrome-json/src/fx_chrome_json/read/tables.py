"""Tables: the schemas of a trace of JSON."""

from __future__ import annotations

from collections.abc import Mapping

from fxframework.model.schema import (
    CATEGORY,
    NAME,
    STANDARD_TABLES,
    THREAD,
    TS,
    Column,
    TableSchema,
)

__all__ = ["SCHEMAS", "STREAMED"]

EVENTS = TableSchema(
    "chrome_events",
    "an event whose phase has no standard table, such as a snapshot of an object",
    (
        TS,
        THREAD,
        CATEGORY,
        NAME,
        Column("phase", "code", "the phase, a letter"),
        Column("id", "u8", "id of the object; 0 not given"),
        Column("text", "bytes", "place of the event's JSON in the source"),
    ),
)
FRAMES = TableSchema(
    "chrome_frames",
    "a frame of a stack",
    (
        Column("id", "code", "what `parent` and `frame` columns have"),
        Column("parent", "code", "the frame that called it"),
        NAME,
        CATEGORY,
    ),
)
SAMPLES = TableSchema(
    "chrome_samples",
    "a sample of a profiler",
    (
        TS,
        Column("cpu", "u2", "logical CPU number"),
        THREAD,
        NAME,
        Column("weight", "f8", "how much it counts; 1 where it is not given"),
        Column("frame", "code", "the innermost frame, as in `chrome_frames`"),
    ),
)
SORT = Column("chrome_sort_index", "code", "where a viewer shows it, a number")
LABELS = Column("chrome_labels", "code", "labels")
SCHEMAS: Mapping[str, TableSchema] = {
    "processes": STANDARD_TABLES["processes"].extended(SORT, LABELS),
    "threads": STANDARD_TABLES["threads"].extended(SORT),
    **{
        name: STANDARD_TABLES[name]
        for name in ("slices", "instants", "counters", "flows", "sched", "args")
    },
    "chrome_events": EVENTS,
    "chrome_frames": FRAMES,
    "chrome_samples": SAMPLES,
}
STREAMED = frozenset(SCHEMAS) - {"processes", "threads", "chrome_frames", "chrome_samples"}
"""Tables with a row for each event of a kind."""
