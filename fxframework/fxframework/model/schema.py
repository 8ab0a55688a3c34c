"""Schemas of the standard tables: what an exporter may rely on for every format.

Imports nothing heavy, so that help and docs can be generated from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

import attrs

__all__ = ["STANDARD_TABLES", "TABLE_CODES", "Column", "TableSchema"]


@attrs.frozen
class Column:
    """A column of a table: its name, kind, meaning and unit.

    ``kind`` is a numpy dtype string (``i8``, ``u1``, ``f8``, …), ``code`` (int32 into the string
    pool, -1 for null), ``text`` (a string column of its own), ``bytes`` (offset and length into
    the source, two int64) or ``array`` (offset and length into a column of values).
    """

    name: str
    """Its name within the table."""
    kind: str
    """The kind of its values: see above."""
    doc: str
    """The meaning of its values."""
    unit: str = ""
    """The unit of its values, such as ``ns``; may be empty."""
    values: Mapping[int, str] = attrs.field(factory=dict, kw_only=True)
    """Names of the values of an enumeration."""
    optional: bool = attrs.field(default=False, kw_only=True)
    """Whether a table may be made without it, and then has zeros: for columns that standard tables
    got after plugins were written."""


@attrs.frozen
class TableSchema:
    """The name, columns and meaning of a table."""

    name: str
    """The name of the table."""
    doc: str
    """What a row represents: a phrase such as ``a moment on a thread``."""
    columns: tuple[Column, ...]
    """Its columns, except ``row`` and ``offset``."""
    plain: bool = False
    """Whether the table has no columns ``row`` and ``offset`` (`diagnostics`)."""
    parent_table: str | None = None
    """For a detail table, the table that its column ``parent`` refers to; a selection keeps a row
    of details with its parent. (Rows of `args` name their table themselves.)"""

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """``row`` and ``offset`` first, then the others."""
        return self.columns if self.plain else (*COMMON, *self.columns)

    def column(self, name: str) -> Column:
        """Return the column of that name. Raises KeyError if there is none."""
        for column in self.all_columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def extended(self, *columns: Column) -> TableSchema:
        """Return this schema with a plugin's columns, which have its prefix, after its own."""
        return attrs.evolve(self, columns=(*self.columns, *columns))


COMMON = (
    Column("row", "i8", "stable id of the row within the table"),
    Column("offset", "i8", "file offset of the record that the row comes from", "bytes"),
)
SLICE_KINDS = {0: "begin_end", 1: "complete", 2: "async", 3: "call"}
BEGIN_END, COMPLETE, ASYNC, CALL = SLICE_KINDS
SCOPES = {0: "thread", 1: "process", 2: "global"}
FLOW_PHASES = {0: "begin", 1: "step", 2: "end"}
FLOW_BEGIN, FLOW_STEP, FLOW_END = FLOW_PHASES
SCHED_KINDS = {0: "legacy_context_switch", 1: "context_switch", 2: "wakeup"}
LEGACY_SWITCH, SWITCH, WAKEUP = SCHED_KINDS
RUNNING, RUNNABLE = "running", "runnable"
"""A thread has a CPU; it could run and has none, which no switch records."""
THREAD_STATES = {0: "new", 1: RUNNING, 2: "suspended", 3: "blocked", 4: "dying", 5: "dead"}


class ArgType(IntEnum):
    """The types of arguments, by number as in the column ``type`` of `args`."""

    NULL = 0
    INT32 = 1
    UINT32 = 2
    INT64 = 3
    UINT64 = 4
    DOUBLE = 5
    STRING = 6
    POINTER = 7
    KOID = 8
    BOOL = 9
    BLOB = 10


ARG_TYPES = {kind.value: kind.name.lower() for kind in ArgType}
LOG_LEVELS = {
    "TRACE": 0x10,
    "DEBUG": 0x20,
    "INFO": 0x30,
    "WARN": 0x40,
    "ERROR": 0x50,
    "FATAL": 0x60,
}
"""Values of ``severity`` in `logs` by level; a more severe level has a greater value."""
PROPERTY_TYPES = {
    1: "int",
    2: "uint",
    3: "double",
    4: "bool",
    5: "string",
    6: "bytes",
    7: "int_array",
    8: "uint_array",
    9: "double_array",
    10: "string_array",
}
SEVERITIES = {0: "info", 1: "warning", 2: "data_loss", 3: "error"}
_NAMES = (
    "processes",
    "threads",
    "slices",
    "instants",
    "counters",
    "flows",
    "sched",
    "logs",
    "args",
    "blobs",
    "nodes",
    "properties",
    "diagnostics",
)
"""The tables in the order of their codes, the same order as in ``_TABLES``."""

TS = Column("ts", "i8", "time, floor of the exact value, from the clock's base", "ns")
TICKS = Column("ticks", "u8", "raw time as recorded", "ticks")
THREAD = Column("thread", "i4", "id of the thread in `threads`; -1 none")
CATEGORY = Column("category", "code", "category")
NAME = Column("name", "code", "name")
EVENT = (TS, TICKS, THREAD, CATEGORY, NAME)
"""The columns that tables of events on threads begin with."""

_TABLES = (
    TableSchema(
        "processes",
        "a process that the capture mentions",
        (Column("pid", "u8", "process koid or id"), Column("name", "code", "its last known name")),
    ),
    TableSchema(
        "threads",
        "a thread that the capture mentions",
        (
            Column("id", "i4", "what the `thread` columns of other tables hold"),
            Column("pid", "u8", "process koid or id"),
            Column("tid", "u8", "thread koid or id"),
            Column("name", "code", "its last known name"),
        ),
    ),
    TableSchema(
        "slices",
        "a span of time on a thread, or an asynchronous one",
        (
            TS,
            TICKS,
            Column("dur", "i8", "length; -1 where it was never closed", "ns"),
            THREAD,
            CATEGORY,
            NAME,
            Column("depth", "i4", "how many slices enclose it"),
            Column("parent", "i8", "row of the slice that encloses it; -1 none"),
            Column("kind", "u1", "how it was recorded", values=SLICE_KINDS),
            Column("id", "u8", "correlation id of an asynchronous slice, else 0"),
        ),
    ),
    TableSchema(
        "instants",
        "a moment on a thread, or of an asynchronous operation",
        (
            *EVENT,
            Column("scope", "u1", "how far it reaches; 255 asynchronous", values=SCOPES),
            Column("id", "u8", "correlation id of an asynchronous instant, else 0"),
        ),
    ),
    TableSchema(
        "counters",
        "one sampled value of one series",
        (
            *EVENT,
            Column("id", "u8", "counter id"),
            Column("series", "code", "the series within the counter"),
            Column("value", "f8", "the value, rounded to a double"),
            Column("value_int", "i8", "the exact value where is_int (uint64 wraps), else 0"),
            Column("is_int", "?", "whether the value is an integer"),
        ),
    ),
    TableSchema(
        "flows",
        "one point of a flow",
        (
            *EVENT,
            Column("id", "u8", "correlation id"),
            Column("phase", "u1", "which point of the flow", values=FLOW_PHASES),
            Column("slice", "i8", "row of the enclosing slice; -1 none"),
        ),
    ),
    TableSchema(
        "sched",
        "a context switch or a wakeup",
        (
            TS,
            TICKS,
            Column("cpu", "u2", "logical CPU number"),
            Column("kind", "u1", "what happened", values=SCHED_KINDS),
            Column("prev", "i4", "id of the outgoing thread in `threads`; -1 none"),
            Column("next", "i4", "id of the incoming or waking thread; -1 none"),
            Column("prev_state", "u1", "state of the outgoing thread", values=THREAD_STATES),
            Column("prev_priority", "i4", "priority or weight; -1 not given"),
            Column("next_priority", "i4", "priority or weight; -1 not given"),
            Column(
                "waker",
                "u8",
                "tid of the thread that caused a wakeup; 0 not recorded",
                optional=True,
            ),
        ),
    ),
    TableSchema(
        "logs",
        "a log message",
        (
            TS,
            TICKS,
            Column("severity", "u1", "the severity byte as recorded"),
            Column("severity_name", "code", "its name"),
            Column("pid", "u8", "process koid or id"),
            Column("tid", "u8", "thread koid or id"),
            Column("tags", "code", "tags, joined by commas"),
            Column("component", "code", "moniker or name of the component"),
            Column("message", "text", "the message"),
            Column("file", "code", "source file"),
            Column("line", "u4", "source line; 0 not given"),
            Column("dropped", "u8", "messages dropped before this one"),
        ),
    ),
    TableSchema(
        "args",
        "one argument of a row of another table; the column that `type` names holds the value",
        (
            Column(
                "table",
                "u1",
                "the table that `parent` is a row of",
                values=dict(enumerate(_NAMES)),
            ),
            Column("parent", "i8", "row there; -1 where the event made none"),
            Column("name", "code", "name"),
            Column("type", "u1", "type as recorded", values=ARG_TYPES),
            Column("int", "i8", "value of an integer, pointer, koid or bool; else 0"),
            Column("uint", "u8", "the same 64 bits, unsigned"),
            Column("float", "f8", "value of double; else 0"),
            Column("str", "code", "value of string and blob (bytes); else -1"),
        ),
    ),
    TableSchema(
        "blobs",
        "a stretch of uninterpreted bytes; those of one name follow each other in order",
        (
            Column("name", "code", "name"),
            Column("type", "u1", "type as recorded"),
            Column("size", "u8", "payload", "bytes"),
            Column("data", "bytes", "place of the payload in the source"),
        ),
    ),
    TableSchema(
        "nodes",
        "a node of a tree",
        (
            Column("id", "i4", "id of the node"),
            Column("parent", "i4", "id of its parent; -1 none"),
            Column("name", "code", "name"),
            Column("path", "code", "names from the root, joined by slashes"),
            Column("links", "i4", "links that leave it"),
        ),
    ),
    TableSchema(
        "properties",
        "a property of a node",
        (
            Column("node", "i4", "id of the node"),
            Column("name", "code", "name"),
            Column("type", "u1", "type of the value", values=PROPERTY_TYPES),
            Column("int", "i8", "value of an int, 0 or 1 of a bool; else 0"),
            Column("uint", "u8", "value of a uint; else 0"),
            Column("float", "f8", "value of a double; else 0"),
            Column("text", "text", "value of a string or of bytes"),
            Column("array", "array", "place of an array's values"),
        ),
    ),
    TableSchema(
        "diagnostics",
        "a finding",
        (
            Column("code", "code", "stable code: see `fxf explain CODE`"),
            Column("severity", "u1", "how much it matters", values=SEVERITIES),
            Column("offset", "i8", "file offset; -1 the whole file", "bytes"),
            Column("record", "i8", "index of the record; -1 none"),
            Column("message", "text", "what was found"),
        ),
        plain=True,
    ),
)
STANDARD_TABLES: Mapping[str, TableSchema] = {table.name: table for table in _TABLES}
"""The schemas of the standard tables, by name (docs/tables.md)."""
TABLE_CODES: Mapping[str, int] = {name: code for code, name in enumerate(_NAMES)}
"""Codes of the tables in the column `table` of `args`, by name."""
THREAD_COLUMNS = {"thread": "", "prev": "prev_", "next": "next_"}
"""Columns that hold an id of `threads`, with the prefix of the columns joined for them."""
ARGUMENT = "arg_"
"""Prefix of the columns joined for arguments, one for each name."""
CELLS = 1 << 28
"""The most argument values, nulls included, that a frame or a joined view may have."""
