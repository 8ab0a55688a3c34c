"""Layout of the Fuchsia trace format: what readers and writers take of the declared records.

Words, fields and reserved bits as numbers, and the trace buffer. ``kinds.py`` has the types,
``records.py`` declares the records.
"""

from __future__ import annotations

from enum import IntEnum

from fx_trace import records as r
from fx_trace.indexed import string_ref
from fx_trace.kinds import *  # noqa: F403 (they are the format's, too)
from fx_trace.kinds import (
    ArgType,
    MetadataType,
    RecordType,
    names,
)
from fxframework.io.words import Bits, WordLayout
from fxframework.model.schema import TABLE_CODES

# --- Words ---------------------------------------------------------------------------------------

TYPE = r.Unknown.layout.bits("type")
SIZE = r.Unknown.layout.bits("_record_size")
LARGE_SIZE = r.LargeBlob.layout.bits("_record_size")
STRING_REF_INDEX = Bits("string_ref", 0, 14, "string index, or bytes of an inline string")
METADATA_TYPE = r.ProviderInfo.layout.bits("kind")
PROVIDER_ID = r.ProviderInfo.layout.bits("id")
PROVIDER_INFO_WORD = r.ProviderInfo.layout.header()
PROVIDER_SECTION_WORD = r.ProviderSection.layout.header()
PROVIDER_EVENT_WORD = r.ProviderEvent.layout.header()
TRACE_INFO_WORD = r.TraceInfo.layout.header()
INITIALIZATION = r.Initialization.layout.header()
STRING = r.StringRecord.layout.header()
THREAD = r.ThreadRecord.layout.header()
EVENT = r.Event.layout.header()
BLOB = r.Blob.layout.header()
USERSPACE_OBJECT = r.UserspaceObject.layout.header()
KERNEL_OBJECT = r.KernelObject.layout.header()
LEGACY_CONTEXT_SWITCH = r.LegacyContextSwitch.layout.header()
CONTEXT_SWITCH = r.ContextSwitch.layout.header()
THREAD_WAKEUP = r.ThreadWakeup.layout.header()
LOG = r.Log.layout.header()
SCHEDULING_TYPE = r.UnknownScheduling.layout.bits("kind")
PROFILER_TYPE = r.UnknownProfiler.layout.bits("kind")
PROFILER = r.UnknownProfiler.layout.header()
PROFILER_MODULE_WORD = r.ProfilerModule.layout.header()
PROFILER_MMAP_WORD = r.ProfilerMmap.layout.header()
PROFILER_BACKTRACE_WORD = r.ProfilerBacktrace.layout.header()
LARGE_BLOB = r.LargeBlob.layout.header()
LARGE_BLOB_METADATA_FORMAT = r.LargeBlobWithMetadata.layout.header(
    "In-band large BLOB record with metadata", 1
)
LARGE_BLOB_FORMAT = r.LargeBlob.layout.header("In-band large BLOB record without metadata", 1)
FORMAT_WORDS = {
    r.LargeBlobWithMetadata: LARGE_BLOB_METADATA_FORMAT,
    r.LargeBlob: LARGE_BLOB_FORMAT,
}
"""The second words of headers."""

ARG_TYPE = r.Argument.layout.bits("type")
ARG_SIZE = r.Argument.layout.bits("_size")
ARG_NAME = r.Argument.layout.bits("_name_ref")


def _argument(section: str, *fields: Bits) -> WordLayout:
    """Return the header of a kind of argument."""
    return WordLayout("argument header", section, (ARG_TYPE, ARG_SIZE, ARG_NAME, *fields))


ARG = _argument("Argument header")
ARG_32 = _argument("32-bit integer arguments", Bits("value", 32, 63, "value"))
ARG_STRING_WORD = _argument("String argument", string_ref(32, "value").word_bits)
ARG_BOOL_WORD = _argument(
    "Boolean argument", Bits("value", 32, 32, "value", values={0: "false", 1: "true"})
)
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


# --- Fields of words: "EVENT_NAME.get(word)" ------------------------------------------------------


def _field(word: WordLayout, name: str) -> Bits:
    """Return a field of a word."""
    return next(bits for bits in word.fields if bits.name == name)


PROVIDER_EVENT_ID = _field(PROVIDER_EVENT_WORD, "event_id")
TRACE_INFO_KIND = _field(TRACE_INFO_WORD, "trace_info_type")
EVENT_KIND = _field(EVENT, "event_type")
EVENT_ARGS = _field(EVENT, "arg_count")
EVENT_THREAD = _field(EVENT, "thread")
EVENT_CATEGORY = _field(EVENT, "category")
EVENT_NAME = _field(EVENT, "name")
SWITCH_ARGS = _field(CONTEXT_SWITCH, "arg_count")
SWITCH_CPU = _field(CONTEXT_SWITCH, "cpu")
SWITCH_STATE = _field(CONTEXT_SWITCH, "outgoing_state")
LEGACY_CPU = _field(LEGACY_CONTEXT_SWITCH, "cpu")
LEGACY_OUTGOING_PRIORITY = _field(LEGACY_CONTEXT_SWITCH, "outgoing_priority")
LARGE_KIND = _field(LARGE_BLOB, "large_type")
LARGE_FORMAT = _field(LARGE_BLOB, "blob_format")
ARG_VALUE = _field(ARG_32, "value")
ARG_STRING_REF = _field(ARG_STRING_WORD, "value")
ARG_TRUTH = _field(ARG_BOOL_WORD, "value")

_KIND_FIELDS: dict[int, Bits] = {
    RecordType.METADATA: METADATA_TYPE,
    RecordType.EVENT: EVENT_KIND,
    RecordType.SCHEDULING: SCHEDULING_TYPE,
    RecordType.PROFILER: PROFILER_TYPE,
    RecordType.LARGE: LARGE_KIND,
}
_METADATA_FIELDS: dict[int, Bits] = {
    MetadataType.PROVIDER_EVENT: PROVIDER_EVENT_ID,
    MetadataType.TRACE_INFO: TRACE_INFO_KIND,
}


def undefined_kind(header: int) -> str:
    """Return the field, and its number, that makes a record one of UNKNOWN_KIND."""
    field = _KIND_FIELDS[TYPE.get(header)]
    if field is METADATA_TYPE:
        field = _METADATA_FIELDS.get(field.get(header), field)
    elif field is LARGE_KIND and not field.get(header):
        field = LARGE_FORMAT
    return f"{field.doc} {field.get(header)}"


SIZE_AT = SIZE.low
ARG_NAME_AT = ARG_NAME.low
ARG_VALUE_AT = ARG_VALUE.low
EVENT_NAME_AT = EVENT_NAME.low
EVENT_ARGS_AT = EVENT_ARGS.low

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

END_CODE_BITS = 31
"""In the value of a finding about two texts, bits of the code of the begin's, below the end's."""
OF_CATEGORIES = 1 << 62
"""Added there, if they are categories and not names."""

SIGN = INVALID_END
"""The highest bit, as int64."""

FLOW_BEGIN_PHASE, FLOW_STEP_PHASE, FLOW_END_PHASE = range(3)
"""Phases of flows, as in the table."""

# --- Tables that arguments belong to -------------------------------------------------------------

TABLE_COUNTERS = TABLE_CODES["counters"]
TABLE_SCHED = TABLE_CODES["sched"]
TABLE_BLOBS = TABLE_CODES["blobs"]
TABLE_OBJECTS = 128
"""Behind the standard tables: trace_objects."""
