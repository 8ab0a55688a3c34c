"""The numbers of the format as kernels take them: kinds and bit positions.

Kinds and positions come from ``format``, where they are defined once.
"""

from __future__ import annotations

from fx_trace import format as wire
from fx_trace.format import (
    ArgType,
    BlobType,
    EventType,
    LargeBlobFormat,
    MetadataType,
    ObjectType,
    ProfilerType,
    RecordType,
    SchedulingType,
)
from fxframework.io.words import WordLayout, to_i64
from fxframework.model.schema import TABLE_CODES


def _low(word: WordLayout, name: str) -> int:
    """Return the lowest bit of a field."""
    return next(bits.low for bits in word.fields if bits.name == name)


def _unused(word: WordLayout) -> int:
    """Return the reserved bits of a word, as int64."""
    return to_i64(word.reserved_mask)


# --- Kinds -------------------------------------------------------------------------------------

(
    RECORD_METADATA, RECORD_INITIALIZATION, RECORD_STRING, RECORD_THREAD, RECORD_EVENT,
    RECORD_BLOB, RECORD_USERSPACE_OBJECT, RECORD_KERNEL_OBJECT, RECORD_SCHEDULING, RECORD_LOG,
    RECORD_PROFILER, RECORD_LARGE,
) = map(int, RecordType)  # fmt: skip
PROVIDER_INFO, PROVIDER_SECTION, PROVIDER_EVENT, TRACE_INFO = map(int, MetadataType)
(
    EVENT_INSTANT, EVENT_COUNTER, EVENT_DURATION_BEGIN, EVENT_DURATION_END, EVENT_DURATION_COMPLETE,
    EVENT_ASYNC_BEGIN, EVENT_ASYNC_INSTANT, EVENT_ASYNC_END, EVENT_FLOW_BEGIN, EVENT_FLOW_STEP,
    EVENT_FLOW_END,
) = map(int, EventType)  # fmt: skip
(
    ARG_NULL, ARG_INT32, ARG_UINT32, ARG_INT64, ARG_UINT64, ARG_DOUBLE, ARG_STRING, ARG_POINTER,
    ARG_KOID, ARG_BOOL, ARG_BLOB,
) = map(int, ArgType)  # fmt: skip
SCHED_LEGACY_SWITCH, SCHED_SWITCH, SCHED_WAKEUP = map(int, SchedulingType)
PROFILER_MODULE, PROFILER_MMAP, PROFILER_BACKTRACE = map(int, ProfilerType)
LARGE_WITH_METADATA, LARGE_WITHOUT_METADATA = map(int, LargeBlobFormat)
MAGIC = wire.MAGIC
STATE_RUNNING, STATE_DEAD = wire.STATE_RUNNING, max(wire.THREAD_STATES)
BLOB_DATA, BLOB_PERFETTO = int(BlobType.DATA), int(BlobType.PERFETTO)
OBJECT_PROCESS = int(ObjectType.PROCESS)
OBJECT_THREAD = int(ObjectType.THREAD)

# --- Where fields begin: "word >> EVENT_NAME_AT" -------------------------------------------------

SIZE_AT = wire.SIZE.low
METADATA_KIND_AT = wire.METADATA_TYPE.low
PROVIDER_ID_AT = wire.PROVIDER_ID.low
PROVIDER_NAME_LENGTH_AT = _low(wire.PROVIDER_INFO, "name_length")
PROVIDER_EVENT_AT = _low(wire.PROVIDER_EVENT, "event_id")
TRACE_INFO_KIND_AT = _low(wire.TRACE_INFO, "trace_info_type")
STRING_INDEX_AT = _low(wire.STRING, "string_index")
STRING_LENGTH_AT = _low(wire.STRING, "string_length")
THREAD_INDEX_AT = _low(wire.THREAD, "thread_index")
EVENT_KIND_AT = _low(wire.EVENT, "event_type")
EVENT_ARGS_AT = _low(wire.EVENT, "arg_count")
EVENT_THREAD_AT = _low(wire.EVENT, "thread")
EVENT_CATEGORY_AT = _low(wire.EVENT, "category")
EVENT_NAME_AT = _low(wire.EVENT, "name")
BLOB_NAME_AT = _low(wire.BLOB, "name")
BLOB_LENGTH_AT = _low(wire.BLOB, "blob_size")
BLOB_KIND_AT = _low(wire.BLOB, "blob_type")
OBJECT_OWNER_AT = _low(wire.USERSPACE_OBJECT, "process")
"""Of a userspace object its process, of a kernel object its type."""
OBJECT_NAME_AT = _low(wire.KERNEL_OBJECT, "name")
OBJECT_ARGS_AT = _low(wire.KERNEL_OBJECT, "arg_count")
SCHED_KIND_AT = wire.SCHEDULING_TYPE.low
SWITCH_ARGS_AT = _low(wire.CONTEXT_SWITCH, "arg_count")
SWITCH_CPU_AT = _low(wire.CONTEXT_SWITCH, "cpu")
SWITCH_STATE_AT = _low(wire.CONTEXT_SWITCH, "outgoing_state")
LEGACY_CPU_AT = _low(wire.LEGACY_CONTEXT_SWITCH, "cpu")
LEGACY_STATE_AT = _low(wire.LEGACY_CONTEXT_SWITCH, "outgoing_state")
LEGACY_OUTGOING_AT = _low(wire.LEGACY_CONTEXT_SWITCH, "outgoing")
LEGACY_INCOMING_AT = _low(wire.LEGACY_CONTEXT_SWITCH, "incoming")
LEGACY_OUTGOING_PRIORITY_AT = _low(wire.LEGACY_CONTEXT_SWITCH, "outgoing_priority")
LEGACY_INCOMING_PRIORITY_AT = _low(wire.LEGACY_CONTEXT_SWITCH, "incoming_priority")
MAGIC_AT = _low(wire.TRACE_INFO, "magic")
LOG_LENGTH_AT = _low(wire.LOG, "message_length")
LOG_THREAD_AT = _low(wire.LOG, "thread")
PROFILER_KIND_AT = wire.PROFILER_TYPE.low
PROFILER_THREAD_AT = _low(wire.PROFILER, "thread")
MODULE_ID_AT = _low(wire.PROFILER_MODULE, "module_id")
MODULE_NAME_LENGTH_AT = _low(wire.PROFILER_MODULE, "name_length")
MODULE_BUILD_ID_LENGTH_AT = _low(wire.PROFILER_MODULE, "build_id_length")
MMAP_FLAGS_AT = _low(wire.PROFILER_MMAP, "flags")
FRAME_COUNT_AT = _low(wire.PROFILER_BACKTRACE, "frame_count")
BACKTRACE_FLAGS_AT = _low(wire.PROFILER_BACKTRACE, "flags")
LARGE_KIND_AT = _low(wire.LARGE_BLOB, "large_type")
LARGE_FORMAT_AT = _low(wire.LARGE_BLOB, "blob_format")
LARGE_CATEGORY_AT = _low(wire.LARGE_BLOB_METADATA_FORMAT, "category")
LARGE_NAME_AT = _low(wire.LARGE_BLOB_METADATA_FORMAT, "name")
LARGE_ARGS_AT = _low(wire.LARGE_BLOB_METADATA_FORMAT, "arg_count")
LARGE_THREAD_AT = _low(wire.LARGE_BLOB_METADATA_FORMAT, "thread")
ARG_NAME_AT = wire.ARG_NAME.low
ARG_VALUE_AT = _low(wire.ARG_32, "value")

# --- Bits that must be zero ----------------------------------------------------------------------

UNUSED_PROVIDER_INFO = _unused(wire.PROVIDER_INFO)
UNUSED_PROVIDER_SECTION = _unused(wire.PROVIDER_SECTION)
UNUSED_PROVIDER_EVENT = _unused(wire.PROVIDER_EVENT)
UNUSED_TRACE_INFO = _unused(wire.TRACE_INFO)
UNUSED_INITIALIZATION = _unused(wire.INITIALIZATION)
UNUSED_STRING = _unused(wire.STRING)
UNUSED_THREAD = _unused(wire.THREAD)
UNUSED_BLOB = _unused(wire.BLOB)
UNUSED_OBJECT = _unused(wire.KERNEL_OBJECT)
UNUSED_SWITCH = _unused(wire.CONTEXT_SWITCH)
UNUSED_WAKEUP = _unused(wire.THREAD_WAKEUP)
UNUSED_LOG = _unused(wire.LOG)
UNUSED_MODULE = _unused(wire.PROFILER_MODULE)
UNUSED_MMAP = _unused(wire.PROFILER_MMAP)
UNUSED_LARGE = _unused(wire.LARGE_BLOB)
UNUSED_LARGE_WITH = _unused(wire.LARGE_BLOB_METADATA_FORMAT)
UNUSED_LARGE_WITHOUT = _unused(wire.LARGE_BLOB_FORMAT)

# --- What a scan counts beside 16 * record type + subtype ----------------------------------------

KIND_PADDING = 256
KIND_UNKNOWN = 257
KIND_DAMAGED = 258
KINDS = 260
KIND_NAMES = {KIND_PADDING: "padding", KIND_UNKNOWN: "unknown", KIND_DAMAGED: "damaged"}

# --- Ends of slices ------------------------------------------------------------------------------

OPEN_END = 0x7FFFFFFFFFFFFFFF
"""Nothing has closed the slice yet."""
INVALID_END = -0x7FFFFFFFFFFFFFFF - 1
"""The complete event ends before it begins; also a time before any other."""

SIGN = INVALID_END
"""The highest bit, as int64."""

LINK_BITS = 3
"""Low bits of what matching keeps of an id: which kinds of events have it. The others are the
offset of the first one."""

FLOW_BEGIN_PHASE, FLOW_END_PHASE = 0, 2
"""Phases of flows, as in the table."""

# --- Tables that arguments belong to -------------------------------------------------------------

TABLE_SLICES = TABLE_CODES["slices"]
TABLE_INSTANTS = TABLE_CODES["instants"]
TABLE_COUNTERS = TABLE_CODES["counters"]
TABLE_FLOWS = TABLE_CODES["flows"]
TABLE_SCHED = TABLE_CODES["sched"]
TABLE_BLOBS = TABLE_CODES["blobs"]
TABLE_OBJECTS = 128
"""Behind the standard tables: trace_objects."""
