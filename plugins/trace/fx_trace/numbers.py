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
from fxframework.io.words import Bits, WordLayout, to_i64
from fxframework.model.schema import TABLE_CODES


def _field(word: WordLayout, name: str) -> Bits:
    """Return a field of a word."""
    return next(bits for bits in word.fields if bits.name == name)


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

# --- Fields of words: "EVENT_NAME.get(word)" ------------------------------------------------------

SIZE = wire.SIZE
METADATA_KIND = wire.METADATA_TYPE
PROVIDER_ID = wire.PROVIDER_ID
PROVIDER_NAME_LENGTH = _field(wire.PROVIDER_INFO, "name_length")
PROVIDER_EVENT_ID = _field(wire.PROVIDER_EVENT, "event_id")
TRACE_INFO_KIND = _field(wire.TRACE_INFO, "trace_info_type")
STRING_INDEX = _field(wire.STRING, "string_index")
STRING_LENGTH = _field(wire.STRING, "string_length")
THREAD_INDEX = _field(wire.THREAD, "thread_index")
EVENT_KIND = _field(wire.EVENT, "event_type")
EVENT_ARGS = _field(wire.EVENT, "arg_count")
EVENT_THREAD = _field(wire.EVENT, "thread")
EVENT_CATEGORY = _field(wire.EVENT, "category")
EVENT_NAME = _field(wire.EVENT, "name")
BLOB_NAME = _field(wire.BLOB, "name")
BLOB_LENGTH = _field(wire.BLOB, "blob_size")
BLOB_KIND = _field(wire.BLOB, "blob_type")
OBJECT_OWNER = _field(wire.USERSPACE_OBJECT, "process")
"""Of a userspace object its process, of a kernel object its type."""
OBJECT_NAME = _field(wire.KERNEL_OBJECT, "name")
OBJECT_ARGS = _field(wire.KERNEL_OBJECT, "arg_count")
SCHED_KIND = wire.SCHEDULING_TYPE
SWITCH_ARGS = _field(wire.CONTEXT_SWITCH, "arg_count")
SWITCH_CPU = _field(wire.CONTEXT_SWITCH, "cpu")
SWITCH_STATE = _field(wire.CONTEXT_SWITCH, "outgoing_state")
LEGACY_CPU = _field(wire.LEGACY_CONTEXT_SWITCH, "cpu")
LEGACY_STATE = _field(wire.LEGACY_CONTEXT_SWITCH, "outgoing_state")
LEGACY_OUTGOING = _field(wire.LEGACY_CONTEXT_SWITCH, "outgoing")
LEGACY_INCOMING = _field(wire.LEGACY_CONTEXT_SWITCH, "incoming")
LEGACY_OUTGOING_PRIORITY = _field(wire.LEGACY_CONTEXT_SWITCH, "outgoing_priority")
LEGACY_INCOMING_PRIORITY = _field(wire.LEGACY_CONTEXT_SWITCH, "incoming_priority")
TRACE_INFO_MAGIC = _field(wire.TRACE_INFO, "magic")
LOG_LENGTH = _field(wire.LOG, "message_length")
LOG_THREAD = _field(wire.LOG, "thread")
PROFILER_KIND = wire.PROFILER_TYPE
PROFILER_THREAD = _field(wire.PROFILER, "thread")
MODULE_ID = _field(wire.PROFILER_MODULE, "module_id")
MODULE_NAME_LENGTH = _field(wire.PROFILER_MODULE, "name_length")
MODULE_BUILD_ID_LENGTH = _field(wire.PROFILER_MODULE, "build_id_length")
MMAP_FLAGS = _field(wire.PROFILER_MMAP, "flags")
FRAME_COUNT = _field(wire.PROFILER_BACKTRACE, "frame_count")
BACKTRACE_FLAGS = _field(wire.PROFILER_BACKTRACE, "flags")
LARGE_KIND = _field(wire.LARGE_BLOB, "large_type")
LARGE_FORMAT = _field(wire.LARGE_BLOB, "blob_format")
LARGE_CATEGORY = _field(wire.LARGE_BLOB_METADATA_FORMAT, "category")
LARGE_NAME = _field(wire.LARGE_BLOB_METADATA_FORMAT, "name")
LARGE_ARGS = _field(wire.LARGE_BLOB_METADATA_FORMAT, "arg_count")
LARGE_THREAD = _field(wire.LARGE_BLOB_METADATA_FORMAT, "thread")
ARG_NAME = wire.ARG_NAME
ARG_VALUE = _field(wire.ARG_32, "value")
ARG_STRING_REF = _field(wire.ARG_STRING, "value")
ARG_TRUTH = _field(wire.ARG_BOOL, "value")
ARG_KIND, ARG_WORDS = wire.ARG_TYPE, wire.ARG_SIZE
RECORD_KIND, LARGE_SIZE = wire.TYPE, wire.LARGE_SIZE
STRING_REF_INDEX = wire.STRING_REF_INDEX
"""Of a reference: the index, or the bytes of the inline string."""

SIZE_AT, ARG_NAME_AT, ARG_VALUE_AT = SIZE.low, ARG_NAME.low, ARG_VALUE.low
STRING_REF_END, TRUTH_END = ARG_STRING_REF.high + 1, ARG_TRUTH.high + 1
OWN_FIELDS_AT = SIZE.high + 1
"""Where the fields begin that a kind of record has in its header."""
MAX_ARGS = wire.MAX_ARGS
EVENT_NAME_AT, EVENT_ARGS_AT, SWITCH_ARGS_AT = EVENT_NAME.low, EVENT_ARGS.low, SWITCH_ARGS.low

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

PARENT_END = -2
"""Arguments of an end event have the parent ``PARENT_END`` minus its number among the ends."""
OPEN_END = 0x7FFFFFFFFFFFFFFF
"""Nothing has closed the slice yet."""
INVALID_END = -0x7FFFFFFFFFFFFFFF - 1
"""The complete event ends before it begins; also a time before any other."""

SIGN = INVALID_END
"""The highest bit, as int64."""

OVERRUN_NEED, OVERRUN_WORDS = Bits("need", 32, 63), Bits("words", 0, 31)
"""In the value of a finding about contents that overrun their record: words needed, words there."""

LINK_BEGUN, LINK_ENDED = 1, 4
"""Bits of what matching keeps of an id: an event began it, one ended it."""
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
