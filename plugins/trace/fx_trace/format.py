"""Layout of the Fuchsia trace format: what readers and writers take of the declared records.

Words, fields and reserved bits as numbers, and the trace buffer. ``kinds.py`` has the types,
``records.py`` declares the records.
"""

from __future__ import annotations

from enum import IntEnum

from fx_trace import records as r
from fx_trace.indexed import string_ref
from fx_trace.kinds import *  # noqa: F403 (they are the format's, too)
from fx_trace.kinds import ArgType, RecordType, names
from fxframework.io.words import Bits, WordLayout
from fxframework.model.schema import TABLE_CODES

# --- Words ---------------------------------------------------------------------------------------

SIZE = r.Unknown.layout.bits("_record_size")
EVENT_KIND = r.Event.layout.bits("event")
EVENT_ARGS = r.Event.layout.bits("_arg_count")
EVENT_THREAD = r.Event.layout.bits("_thread_ref")
EVENT_CATEGORY = r.Event.layout.bits("_category_ref")
EVENT_NAME = r.Event.layout.bits("_name_ref")
SWITCH_ARGS = r.ContextSwitch.layout.bits("_arg_count")
SWITCH_CPU = r.ContextSwitch.layout.bits("cpu")
SWITCH_STATE = r.ContextSwitch.layout.bits("outgoing_state")
SCHEDULING_TYPE = r.UnknownScheduling.layout.bits("kind")
ARG_TYPE = r.Argument.layout.bits("type")
ARG_SIZE = r.Argument.layout.bits("_size")
ARG_NAME = r.Argument.layout.bits("_name_ref")
ARG_VALUE = r.Argument.layout.bits("_value")
ARG_STRING_REF = string_ref(32, "value").word_bits
ARG_TRUTH = Bits("value", 32, 32, "value", values={0: "false", 1: "true"})
SIZE_AT = SIZE.low
ARG_NAME_AT = ARG_NAME.low
ARG_VALUE_AT = ARG_VALUE.low
EVENT_ARGS_AT = EVENT_ARGS.low


def _argument(section: str, *fields: Bits) -> WordLayout:
    """Return the header of a kind of argument."""
    return WordLayout("argument header", section, (ARG_TYPE, ARG_SIZE, ARG_NAME, *fields))


ARG = _argument("Argument header")
ARG_32 = _argument("32-bit integer arguments", Bits("value", 32, 63, "value"))
ARG_STRING_WORD = _argument("String argument", ARG_STRING_REF)
ARG_BOOL_WORD = _argument("Boolean argument", ARG_TRUTH)
ARG_BLOB_WORD = _argument("BLOB argument", Bits("blob_size", 32, 63, "bytes of the payload"))
ARG_LAYOUTS = {
    ArgType.INT32: ARG_32,
    ArgType.UINT32: ARG_32,
    ArgType.STRING: ARG_STRING_WORD,
    ArgType.BOOL: ARG_BOOL_WORD,
    ArgType.BLOB: ARG_BLOB_WORD,
}
"""The header words of arguments that put something into bits 32–63; the others use ``ARG``."""

# --- Trace buffer ------------------------------------------------------------------------------


class BufferingMode(IntEnum):
    """What happens when a trace buffer is full."""

    ONESHOT = 0
    CIRCULAR = 1
    STREAMING = 2


BUFFER_VERSION = 0
BUFFER_GRAIN = 4096
"""A buffer is a whole number of these bytes, one at least."""
MAX_BUFFER_BYTES = 1 << 32
MAX_DURABLE_BYTES = 1 << 20
DURABLE_SHARE = 16
"""The durable buffer is so much of what is behind the header: one part of 16."""
MODE_NAMES = names(BufferingMode)


# --- Framing -----------------------------------------------------------------------------------

MINIMUM_WORDS = {
    RecordType.METADATA: 1,
    RecordType.INITIALIZATION: 2,
    RecordType.STRING: 1,
    RecordType.THREAD: 3,
    RecordType.EVENT: 2,
    RecordType.BLOB: 1,
    RecordType.USERSPACE_OBJECT: 2,
    RecordType.KERNEL_OBJECT: 2,
    RecordType.SCHEDULING: 2,
    RecordType.LOG: 2,
    RecordType.PROFILER: 2,
    RecordType.LARGE: 1,
}
"""Words that every record of a type has: a shorter one has an impossible size.

What its kind, inline strings, threads and arguments need beyond that is checked when it is read:
a record that they overrun is damaged too, but its size is still believed.
"""


# --- What is counted beside 16 * record type + subtype ----------------------------------------

KIND_PADDING = 256
KIND_UNKNOWN = 257
KIND_DAMAGED = 258
KINDS = 260
KIND_NAMES = {KIND_PADDING: "padding", KIND_UNKNOWN: "unknown", KIND_DAMAGED: "damaged"}

# --- Ends of slices ------------------------------------------------------------------------------

PARENT_END = -2
"""Arguments of an end event have the parent ``PARENT_END`` minus its number among the ends."""
OPEN_END = 0x7FFFFFFFFFFFFFFF
"""Nothing has closed the slice yet."""
INVALID_END = -0x7FFFFFFFFFFFFFFF - 1
"""The complete event ends before it begins; also a time before any other."""

END_CODE = 1 << 31
"""In the value of a finding about two texts, the factor of the code of the end's."""
OF_CATEGORIES = 1 << 62
"""Added there, if they are categories and not names."""

SIGN = INVALID_END
"""The highest bit, as int64."""

# --- Tables that arguments belong to -------------------------------------------------------------

TABLE_COUNTERS = TABLE_CODES["counters"]
TABLE_SCHED = TABLE_CODES["sched"]
TABLE_BLOBS = TABLE_CODES["blobs"]
TABLE_OBJECTS = 128
"""Behind the standard tables: trace_objects."""
