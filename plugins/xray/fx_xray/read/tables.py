"""Schemas of the tables of XRay traces and profiles; their columns are made in ``batches.py``.

They are the standard ones, some extended, and two more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fx_xray.format import FunctionKind
from fxframework.model.capture import CallColumns
from fxframework.model.schema import STANDARD_TABLES, Column, TableSchema

EXITS: Final[Mapping[int, str]] = {0: "none", 1: "exit", 2: "tail_exit", 3: "unwound"}
"""How a call ended."""
ENTRIES: Final[Mapping[int, str]] = {
    int(FunctionKind.ENTER): "enter",
    int(FunctionKind.ENTER_ARG): "enter_arg",
}
"""How a call began."""
CUSTOM_EVENT: Final = "custom_event"
TYPED_EVENT: Final = "typed_event"
UNMATCHED_EXIT: Final = "unmatched_exit"
"""Categories of instants."""

_CPU = Column("xray_cpu", "u2", "CPU number; 65535 not known")
_FUNCTION = Column("xray_function", "u4", "id of the function")
SLICES: Final = STANDARD_TABLES["slices"].extended(
    _FUNCTION,
    Column("xray_ticks", "i8", "length; -1 where it was never closed", "ticks"),
    _CPU,
    Column("xray_exit", "u1", "how the call ended", values=EXITS),
    Column("xray_entry", "u1", "how the call began", values=ENTRIES),
)
INSTANTS: Final = STANDARD_TABLES["instants"].extended(
    _CPU,
    Column("xray_event_type", "u2", "type of a typed event, else 0"),
)
BUFFERS: Final = TableSchema(
    "xray_buffers",
    "a buffer of a thread, as it was written into the file",
    (
        Column("thread", "i4", "id of the thread in `threads`"),
        Column("nbytes", "i8", "bytes of its records", "bytes"),
        Column("seconds", "i8", "wall time: seconds of the monotonic clock", "s"),
        Column("micros", "i4", "microseconds beside them", "µs"),
        Column("ticks", "u8", "time of its first record", "ticks"),
        Column("records", "i8", "records in it"),
    ),
)
FUNCTIONS: Final = TableSchema(
    "xray_functions",
    "a function that the trace mentions",
    (
        Column("id", "u4", "its id: what `xray_function` holds"),
        Column("object", "u1", "number of its object, with -fxray-shared; else 0"),
        Column("name", "code", "name, demangled where asked; its number where it has none"),
        Column("linkage_name", "code", "name as in the linker"),
        Column("source", "code", "file:line:column where it is declared"),
        Column("address", "u8", "address in its object; 0 not known", "bytes"),
        Column("calls", "i8", "entries in the trace"),
    ),
)
SCHEMAS: Final[Mapping[str, TableSchema]] = {
    "processes": STANDARD_TABLES["processes"],
    "threads": STANDARD_TABLES["threads"],
    "slices": SLICES,
    "instants": INSTANTS,
    "args": STANDARD_TABLES["args"],
    "xray_buffers": BUFFERS,
    "xray_functions": FUNCTIONS,
}
CALLS: Final = CallColumns(
    function="xray_function", ticks="xray_ticks", ended="xray_exit", functions="xray_functions"
)
PROFILE_SCHEMAS: Final[Mapping[str, TableSchema]] = {
    "processes": STANDARD_TABLES["processes"],
    "threads": STANDARD_TABLES["threads"],
    "xray_functions": FUNCTIONS,
    "slices": STANDARD_TABLES["slices"].extended(
        _FUNCTION,
        Column("xray_ticks", "i8", "length of all its calls, with what they called", "ticks"),
        Column(
            "xray_calls", "i8", "calls that it stands for; 0 where only longer paths were written"
        ),
    ),
}
PROFILE_CALLS: Final = CallColumns(
    function="xray_function",
    ticks="xray_ticks",
    ended="",
    functions="xray_functions",
    count="xray_calls",
)
"""Those of profiles, whose slices are paths of calls."""
