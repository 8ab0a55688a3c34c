"""Layout of the Fuchsia trace format: types, words and limits, each declared once.

Sections are the headings of the format's document (002, `Fuchsia trace format`); what it lacks
or gets wrong is in docs/formats/trace.md. Sizes are in words of 8 bytes where they do not
say bytes.
"""

from __future__ import annotations

from enum import IntEnum

from fxframework.io.words import Bits, WordLayout, to_i64
from fxframework.model.schema import TABLE_CODES

# --- Limits ------------------------------------------------------------------------------------

MAX_RECORD_WORDS = 0xFFF
"""Record header: 12 bits."""
MAX_LARGE_BYTES = 256 << 10
"""What the reference engine and reader allow a large record (notes); the field allows more."""
MAX_STRING_BYTES = 32000
"""String references: the conservative limit that writers keep."""
STRING_FIELD_BYTES = 0x7FFF
"""String references: 15 bits of length."""
MAX_STRING_INDEX = 0x7FFF
MAX_THREAD_INDEX = 0xFF
MAX_ARGS = 15
INLINE_STRING = 0x8000
"""String references: the bit that says that the string follows inline."""
MAGIC = 0x16547846
MAGIC_WORD = 0x0016547846040010
MAGIC_BYTES = MAGIC_WORD.to_bytes(8, "little")
MAGIC_BYTES_BIG_ENDIAN = MAGIC_WORD.to_bytes(8, "big")
MAGICS = (MAGIC_BYTES, MAGIC_BYTES_BIG_ENDIAN)
DEFAULT_TICKS_PER_SECOND = 1_000_000_000
DEFAULT_PROVIDER = 0
"""The provider of records before any provider record."""


def is_big_endian(head: bytes) -> bool:
    """Return whether words are big-endian in a file that begins with these bytes."""
    return head[:8] == MAGIC_BYTES_BIG_ENDIAN


# --- Types -------------------------------------------------------------------------------------


class RecordType(IntEnum):
    """Record types: bits 0–3 of the header."""

    METADATA = 0
    INITIALIZATION = 1
    STRING = 2
    THREAD = 3
    EVENT = 4
    BLOB = 5
    USERSPACE_OBJECT = 6
    KERNEL_OBJECT = 7
    SCHEDULING = 8
    LOG = 9
    PROFILER = 10
    LARGE = 15


class MetadataType(IntEnum):
    """Metadata record."""

    PROVIDER_INFO = 1
    PROVIDER_SECTION = 2
    PROVIDER_EVENT = 3
    TRACE_INFO = 4


class EventType(IntEnum):
    """Event record."""

    INSTANT = 0
    COUNTER = 1
    DURATION_BEGIN = 2
    DURATION_END = 3
    DURATION_COMPLETE = 4
    ASYNC_BEGIN = 5
    ASYNC_INSTANT = 6
    ASYNC_END = 7
    FLOW_BEGIN = 8
    FLOW_STEP = 9
    FLOW_END = 10


class ArgType(IntEnum):
    """Argument types."""

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


class SchedulingType(IntEnum):
    """Scheduling record."""

    LEGACY_CONTEXT_SWITCH = 0
    CONTEXT_SWITCH = 1
    THREAD_WAKEUP = 2


class ProfilerType(IntEnum):
    """Profiler record (the 2026 edition of the document has it)."""

    MODULE = 0
    MMAP = 1
    BACKTRACE = 2


class BlobType(IntEnum):
    """Blob record."""

    DATA = 1
    LAST_BRANCH = 2
    PERFETTO = 3


class LargeType(IntEnum):
    """Large record header, bits 36–39."""

    BLOB = 0


class LargeBlobFormat(IntEnum):
    """Large BLOB record, bits 40–43."""

    METADATA = 0
    NO_METADATA = 1


class ObjectType(IntEnum):
    """ZX_OBJ_TYPE_*: the kernel objects that the tables know by name."""

    NONE = 0
    PROCESS = 1
    THREAD = 2
    VMO = 3
    CHANNEL = 4
    FIFO = 19


def names(enum: type[IntEnum]) -> dict[int, str]:
    """Lower-case names of an enumeration's numbers: the names that record JSON has."""
    return {member.value: member.name.lower() for member in enum}


EVENT_NAMES = names(EventType)
ARG_NAMES = names(ArgType)
METADATA_NAMES = names(MetadataType)
SCHEDULING_NAMES = names(SchedulingType)
PROFILER_NAMES = names(ProfilerType)
THREAD_STATES = {0: "new", 1: "running", 2: "suspended", 3: "blocked", 4: "dying", 5: "dead"}
STATE_RUNNING = 1
SCOPES = {0: "thread", 1: "process", 2: "global"}

EVENT_HAS_WORD = frozenset(EventType) - {
    EventType.INSTANT,
    EventType.DURATION_BEGIN,
    EventType.DURATION_END,
}
"""Events that end in a word of their own: counter id, end time, or correlation id."""


# --- Words -------------------------------------------------------------------------------------

TYPE = Bits("record_type", 0, 3, "record type", values=names(RecordType))
SIZE = Bits("record_size", 4, 15, "words, this one included")
LARGE_SIZE = Bits("record_size", 4, 35, "words, this one included")


STRING_REF_BITS = 0xFFFF
"""String references: all bits, in the field's place."""
STRING_REF_INDEX = Bits("string_ref", 0, 14, "string index, or bytes of an inline string")


def string_ref(name: str, low: int) -> Bits:
    """A string reference: 0 empty, bit 15 clear an index, set the bytes of an inline string."""
    return Bits(name, low, low + 15, "string reference", values={0: "the empty string"})


def thread_ref(name: str, low: int) -> Bits:
    """Return a thread reference: 0 inline, else an index."""
    return Bits(name, low, low + 7, "thread reference", values={0: "inline"})


def arg_count(low: int) -> Bits:
    """Return a count of arguments."""
    return Bits("arg_count", low, low + 3, "number of arguments")


def _record(title: str, section: str, *fields: Bits) -> WordLayout:
    """Return the header of a kind of record: its type and size, then fields of its own."""
    return WordLayout(f"{title} header", section, (TYPE, SIZE, *fields))


HEADER = WordLayout("record header", "Record header", (TYPE, SIZE))
LARGE_HEADER = WordLayout(
    "large record header",
    "Large record header",
    (TYPE, LARGE_SIZE, Bits("large_type", 36, 39, "large type", values=names(LargeType))),
)


METADATA_TYPE = Bits("metadata_type", 16, 19, "metadata type", values=METADATA_NAMES)
PROVIDER_ID = Bits("provider_id", 20, 51, "provider id")
METADATA = _record("metadata", "Metadata record", METADATA_TYPE)
PROVIDER_INFO_WORD = _record(
    "provider info",
    "Provider info metadata",
    METADATA_TYPE,
    PROVIDER_ID,
    Bits("name_length", 52, 59, "bytes of the name"),
)
PROVIDER_SECTION_WORD = _record(
    "provider section", "Provider section metadata", METADATA_TYPE, PROVIDER_ID
)
PROVIDER_EVENT_WORD = _record(
    "provider event",
    "Provider event metadata",
    METADATA_TYPE,
    PROVIDER_ID,
    Bits("event_id", 52, 55, "event", values={0: "buffer full, records may be lost"}),
)
TRACE_INFO_WORD = _record(
    "trace info",
    "Trace info metadata",
    METADATA_TYPE,
    Bits("trace_info_type", 20, 23, "trace info type", values={0: "magic number"}),
    Bits("magic", 24, 55, "magic number", values={MAGIC: "FxT"}),
)
INITIALIZATION = _record("initialization", "Initialization record")
STRING = _record(
    "string",
    "String record",
    Bits("string_index", 16, 30, "string index"),
    Bits("string_length", 32, 46, "bytes of the string"),
)
THREAD = _record("thread", "Thread record", Bits("thread_index", 16, 23, "thread index"))
EVENT = _record(
    "event",
    "Event record",
    Bits("event_type", 16, 19, "event type", values=EVENT_NAMES),
    arg_count(20),
    thread_ref("thread", 24),
    string_ref("category", 32),
    string_ref("name", 48),
)
BLOB = _record(
    "blob",
    "BLOB record",
    string_ref("name", 16),
    Bits("blob_size", 32, 46, "bytes of the payload"),
    Bits("blob_type", 48, 55, "blob type", values=names(BlobType)),
)
USERSPACE_OBJECT = _record(
    "userspace object",
    "Userspace object record",
    thread_ref("process", 16),
    string_ref("name", 24),
    arg_count(40),
)
KERNEL_OBJECT = _record(
    "kernel object",
    "Kernel object record",
    Bits("object_type", 16, 23, "kernel object type", values=names(ObjectType)),
    string_ref("name", 24),
    arg_count(40),
)
SCHEDULING_TYPE = Bits("scheduling_type", 60, 63, "scheduling type", values=SCHEDULING_NAMES)
SCHEDULING = _record("scheduling", "Scheduling record", SCHEDULING_TYPE)
LEGACY_CONTEXT_SWITCH = _record(
    "legacy context switch",
    "Legacy context switch record",
    Bits("cpu", 16, 23, "CPU number"),
    Bits("outgoing_state", 24, 27, "outgoing thread's state", values=THREAD_STATES),
    thread_ref("outgoing", 28),
    thread_ref("incoming", 36),
    Bits("outgoing_priority", 44, 51, "outgoing thread's priority"),
    Bits("incoming_priority", 52, 59, "incoming thread's priority"),
    SCHEDULING_TYPE,
)
CONTEXT_SWITCH = _record(
    "context switch",
    "Context switch record",
    arg_count(16),
    Bits("cpu", 20, 35, "CPU number"),
    Bits("outgoing_state", 36, 39, "outgoing thread's state", values=THREAD_STATES),
    SCHEDULING_TYPE,
)
THREAD_WAKEUP = _record(
    "thread wakeup",
    "Thread wakeup record",
    arg_count(16),
    Bits("cpu", 20, 35, "CPU number"),
    SCHEDULING_TYPE,
)
LOG = _record(
    "log",
    "Log record",
    Bits("message_length", 16, 30, "bytes of the message"),
    thread_ref("thread", 32),
)
PROFILER_TYPE = Bits("profiler_type", 16, 19, "profiler record type", values=PROFILER_NAMES)
PROFILER = _record("profiler", "Profiler record", PROFILER_TYPE, thread_ref("thread", 20))
PROFILER_MODULE_WORD = _record(
    "profiler module",
    "Profiler record",
    PROFILER_TYPE,
    thread_ref("thread", 20),
    Bits("module_id", 28, 43, "module id"),
    Bits("name_length", 44, 51, "bytes of the name"),
    Bits("build_id_length", 52, 59, "bytes of the build id"),
)
PROFILER_MMAP_WORD = _record(
    "profiler mmap",
    "Profiler record",
    PROFILER_TYPE,
    thread_ref("thread", 20),
    Bits("module_id", 28, 43, "module id"),
    Bits("flags", 44, 46, "readable, writable, executable"),
)
PROFILER_BACKTRACE_WORD = _record(
    "profiler backtrace",
    "Profiler record",
    PROFILER_TYPE,
    thread_ref("thread", 20),
    Bits("frame_count", 28, 35, "frames"),
    Bits("flags", 36, 63, "flags"),
)
LARGE_BLOB = WordLayout(
    "large blob header",
    "Large BLOB record",
    (
        TYPE,
        LARGE_SIZE,
        Bits("large_type", 36, 39, "large type", values=names(LargeType)),
        Bits("blob_format", 40, 43, "blob format", values=names(LargeBlobFormat)),
    ),
)

LARGE_BLOB_METADATA_FORMAT = WordLayout(
    "large blob format header",
    "In-band large BLOB record with metadata",
    (string_ref("category", 0), string_ref("name", 16), arg_count(32), thread_ref("thread", 36)),
)

LARGE_BLOB_FORMAT = WordLayout(
    "large blob format header",
    "In-band large BLOB record without metadata",
    (string_ref("category", 0), string_ref("name", 16)),
)


ARG_TYPE = Bits("arg_type", 0, 3, "argument type", values=ARG_NAMES)
ARG_SIZE = Bits("arg_size", 4, 15, "words, this one included")
ARG_NAME = string_ref("name", 16)
ARG = WordLayout("argument header", "Argument header", (ARG_TYPE, ARG_SIZE, ARG_NAME))

ARG_32 = WordLayout(
    "32-bit argument header",
    "32-bit integer arguments",
    (ARG_TYPE, ARG_SIZE, ARG_NAME, Bits("value", 32, 63, "value")),
)

ARG_STRING_WORD = WordLayout(
    "string argument header",
    "String argument",
    (ARG_TYPE, ARG_SIZE, ARG_NAME, string_ref("value", 32)),
)

ARG_BOOL_WORD = WordLayout(
    "boolean argument header",
    "Boolean argument",
    (ARG_TYPE, ARG_SIZE, ARG_NAME, Bits("value", 32, 32, "value", values={0: "false", 1: "true"})),
)

ARG_BLOB_WORD = WordLayout(
    "blob argument header",
    "BLOB argument",
    (ARG_TYPE, ARG_SIZE, ARG_NAME, Bits("blob_size", 32, 63, "bytes of the payload")),
)

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


BUFFER_MAGIC = 0x627566EE68656164
BUFFER_MAGIC_BYTES = BUFFER_MAGIC.to_bytes(8, "little")
BUFFER_VERSION = 0
BUFFER_HEADER_BYTES = 128
BUFFER_GRAIN = 4096
"""A buffer is a whole number of these bytes, one at least."""
MAX_BUFFER_BYTES = 1 << 32
MAX_DURABLE_BYTES = 1 << 20
DURABLE_SHARE = 16
"""The durable buffer is so much of what is behind the header: one part of 16."""
MODE_NAMES = names(BufferingMode)


def _buffer_word(name: str, doc: str) -> WordLayout:
    """Return a word of the buffer's header that is one number."""
    return WordLayout(f"{name} word", "Trace buffer", (Bits(name, 0, 63, doc),))


BUFFER_HEADER = (
    WordLayout(
        "magic word",
        "Trace buffer",
        (Bits("magic", 0, 63, "magic number", values={BUFFER_MAGIC: "trace buffer"}),),
    ),
    WordLayout(
        "mode word",
        "Trace buffer",
        (
            Bits("version", 0, 15, "version"),
            Bits("buffering_mode", 16, 23, "buffering mode", values=MODE_NAMES),
            Bits("reserved", 24, 31, "should be zero", reserved=True),
            Bits("wrapped_count", 32, 63, "how often the rolling buffers were switched"),
        ),
    ),
    _buffer_word("total_size", "bytes of the whole buffer, this header included"),
    _buffer_word("durable_buffer_size", "bytes of the durable buffer; 0 in oneshot mode"),
    _buffer_word("rolling_buffer_size", "bytes of each rolling buffer"),
    _buffer_word("durable_data_end", "bytes of records in the durable buffer; 0 not recorded"),
    _buffer_word("rolling_data_end_0", "bytes of records in rolling buffer 0; 0 not recorded"),
    _buffer_word("rolling_data_end_1", "bytes of records in rolling buffer 1; 0 not recorded"),
    _buffer_word("num_records_dropped", "records for which there was no room"),
    *[WordLayout("reserved word", "Trace buffer", (Bits("reserved", 0, 63, reserved=True),))] * 7,
)
"""The 16 words of the header, in order; little-endian."""


def buffer_field_offset(name: str) -> int:
    """Return the byte of the buffer's header at which a field begins."""
    return next(
        8 * number + field.low // 8
        for number, word in enumerate(BUFFER_HEADER)
        for field in word.fields
        if field.name == name
    )


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
SOUND_RUN = 3
"""Records that must follow each other soundly before reading goes on after damage."""
# A record is sound, for that purpose, where its type is a key of MINIMUM_WORDS, its size at least
# that, and it ends within the file.


# --- What kernels take: kinds, fields and reserved bits as numbers --------------------------------


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
STATE_DEAD = max(THREAD_STATES)
BLOB_DATA, BLOB_PERFETTO = int(BlobType.DATA), int(BlobType.PERFETTO)
OBJECT_PROCESS = int(ObjectType.PROCESS)
OBJECT_THREAD = int(ObjectType.THREAD)

# --- Fields of words: "EVENT_NAME.get(word)" ------------------------------------------------------

PROVIDER_NAME_LENGTH = _field(PROVIDER_INFO_WORD, "name_length")
PROVIDER_EVENT_ID = _field(PROVIDER_EVENT_WORD, "event_id")
TRACE_INFO_KIND = _field(TRACE_INFO_WORD, "trace_info_type")
STRING_INDEX = _field(STRING, "string_index")
STRING_LENGTH = _field(STRING, "string_length")
THREAD_INDEX = _field(THREAD, "thread_index")
EVENT_KIND = _field(EVENT, "event_type")
EVENT_ARGS = _field(EVENT, "arg_count")
EVENT_THREAD = _field(EVENT, "thread")
EVENT_CATEGORY = _field(EVENT, "category")
EVENT_NAME = _field(EVENT, "name")
BLOB_NAME = _field(BLOB, "name")
BLOB_LENGTH = _field(BLOB, "blob_size")
BLOB_KIND = _field(BLOB, "blob_type")
OBJECT_OWNER = _field(USERSPACE_OBJECT, "process")
"""Of a userspace object its process, of a kernel object its type."""
OBJECT_NAME = _field(KERNEL_OBJECT, "name")
OBJECT_ARGS = _field(KERNEL_OBJECT, "arg_count")
SWITCH_ARGS = _field(CONTEXT_SWITCH, "arg_count")
SWITCH_CPU = _field(CONTEXT_SWITCH, "cpu")
SWITCH_STATE = _field(CONTEXT_SWITCH, "outgoing_state")
LEGACY_CPU = _field(LEGACY_CONTEXT_SWITCH, "cpu")
LEGACY_STATE = _field(LEGACY_CONTEXT_SWITCH, "outgoing_state")
LEGACY_OUTGOING = _field(LEGACY_CONTEXT_SWITCH, "outgoing")
LEGACY_INCOMING = _field(LEGACY_CONTEXT_SWITCH, "incoming")
LEGACY_OUTGOING_PRIORITY = _field(LEGACY_CONTEXT_SWITCH, "outgoing_priority")
LEGACY_INCOMING_PRIORITY = _field(LEGACY_CONTEXT_SWITCH, "incoming_priority")
TRACE_INFO_MAGIC = _field(TRACE_INFO_WORD, "magic")
LOG_LENGTH = _field(LOG, "message_length")
LOG_THREAD = _field(LOG, "thread")
PROFILER_THREAD = _field(PROFILER, "thread")
MODULE_ID = _field(PROFILER_MODULE_WORD, "module_id")
MODULE_NAME_LENGTH = _field(PROFILER_MODULE_WORD, "name_length")
MODULE_BUILD_ID_LENGTH = _field(PROFILER_MODULE_WORD, "build_id_length")
MMAP_FLAGS = _field(PROFILER_MMAP_WORD, "flags")
FRAME_COUNT = _field(PROFILER_BACKTRACE_WORD, "frame_count")
BACKTRACE_FLAGS = _field(PROFILER_BACKTRACE_WORD, "flags")
LARGE_KIND = _field(LARGE_BLOB, "large_type")
LARGE_FORMAT = _field(LARGE_BLOB, "blob_format")
LARGE_CATEGORY = _field(LARGE_BLOB_METADATA_FORMAT, "category")
LARGE_NAME = _field(LARGE_BLOB_METADATA_FORMAT, "name")
LARGE_ARGS = _field(LARGE_BLOB_METADATA_FORMAT, "arg_count")
LARGE_THREAD = _field(LARGE_BLOB_METADATA_FORMAT, "thread")
ARG_VALUE = _field(ARG_32, "value")
ARG_STRING_REF = _field(ARG_STRING_WORD, "value")
ARG_TRUTH = _field(ARG_BOOL_WORD, "value")

SIZE_AT, ARG_NAME_AT, ARG_VALUE_AT = SIZE.low, ARG_NAME.low, ARG_VALUE.low
STRING_REF_END, TRUTH_END = ARG_STRING_REF.high + 1, ARG_TRUTH.high + 1
OWN_FIELDS_AT = SIZE.high + 1
"""Where the fields begin that a kind of record has in its header."""
EVENT_NAME_AT, EVENT_ARGS_AT, SWITCH_ARGS_AT = EVENT_NAME.low, EVENT_ARGS.low, SWITCH_ARGS.low

# --- Bits that must be zero ----------------------------------------------------------------------

UNUSED_PROVIDER_INFO = _unused(PROVIDER_INFO_WORD)
UNUSED_PROVIDER_SECTION = _unused(PROVIDER_SECTION_WORD)
UNUSED_PROVIDER_EVENT = _unused(PROVIDER_EVENT_WORD)
UNUSED_TRACE_INFO = _unused(TRACE_INFO_WORD)
UNUSED_INITIALIZATION = _unused(INITIALIZATION)
UNUSED_STRING = _unused(STRING)
UNUSED_THREAD = _unused(THREAD)
UNUSED_BLOB = _unused(BLOB)
UNUSED_OBJECT = _unused(KERNEL_OBJECT)
UNUSED_SWITCH = _unused(CONTEXT_SWITCH)
UNUSED_WAKEUP = _unused(THREAD_WAKEUP)
UNUSED_LOG = _unused(LOG)
UNUSED_MODULE = _unused(PROFILER_MODULE_WORD)
UNUSED_MMAP = _unused(PROFILER_MMAP_WORD)
UNUSED_LARGE = _unused(LARGE_BLOB)
UNUSED_LARGE_WITH = _unused(LARGE_BLOB_METADATA_FORMAT)
UNUSED_LARGE_WITHOUT = _unused(LARGE_BLOB_FORMAT)

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
