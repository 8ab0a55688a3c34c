"""Numbers that kernels and their callers share: kinds of events and records, marks."""

from __future__ import annotations

from fx_xray import layout
from fx_xray.layout import BYTE_ORDERS, FunctionKind, MetadataKind

# --- Plain numbers ---

LATEST = 0x7FFFFFFFFFFFFFFF
"""The greatest int64."""
SIGN = -0x8000000000000000
"""The sign bit of an int64. A time is `biased` by it where it is compared: that makes the order of
int64 the order of uint64."""
LOW32 = 0xFFFFFFFF
LOW64 = 0xFFFFFFFFFFFFFFFF
NS_PER_SECOND = 1_000_000_000
NO_CPU = 0xFFFF
NOTHING = -1

# --- Kinds of events ---

ENTER, EXIT, TAIL_EXIT, ENTER_ARG = (int(kind) for kind in FunctionKind)
ARGUMENT, CUSTOM, TYPED = 4, 5, 6
BACK = 8
"""Added to the kind of a function's event whose time is before that of its thread's last one."""
UNWOUND = 3
"""How a call ended that ended with the call around it."""
DATA, EVENT_TYPE = -1, -2
"""Instead of the number of an argument: the payload of an event, and the type of a typed event."""

# --- Kinds of records ---

(
    NEW_BUFFER, END_OF_BUFFER, NEW_CPU, TSC_WRAP, WALL_TIME, CUSTOM_EVENT, CALL_ARGUMENT,
    BUFFER_EXTENTS, TYPED_EVENT, PID,
) = (int(kind) for kind in MetadataKind)  # fmt: skip
FUNCTION, PADDING, UNKNOWN, DAMAGED, FILE_HEADER, START = range(10, 16)
KIND_NAMES = (
    "new_buffer", "end_of_buffer", "new_cpu", "tsc_wrap", "wall_time", "custom_event",
    "call_argument", "buffer_extents", "typed_event", "pid", "function", "padding", "unknown",
    "damaged", "file_header",
)  # fmt: skip
"""Names in record JSON, by number."""
AFTER_CLOCK = sum(1 << kind for kind in layout.AFTER_CLOCK)
"""``layout.AFTER_CLOCK``, one bit each."""
LITTLE, BIG, BIG_LSB = range(len(BYTE_ORDERS))
"""Byte orders, as ``layout.BYTE_ORDERS`` lists them."""

# --- Marks of stretches and buffers ---

CUT, FIRST, ORPHAN = 1, 2, 4
"""Of a stretch: one record that was cut in half; the first of a buffer; begins with an argument of
no call."""
INHABITED, WALLED, HAS_PID, HAS_THREAD, SETTLED, TIMELESS, EARLY = 1, 2, 4, 8, 16, 32, 64
"""Of a buffer: it has more records than its extents; a wall time; a process; a thread; something of
its thread has been read; it begins without a time; an argument or an event of its own time comes
before its first time."""
FOREIGN_TYPED, CUT_SHORT = 128, 256
"""Of a buffer: a typed event of compiler-rt's is in it; a record runs past its end."""

# --- Why the pack of events stops ---

DONE, GROW, FLUSH = 0, 1, 2
"""All was taken; a thread needs more room; the output is full."""
