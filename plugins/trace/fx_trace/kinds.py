"""Kinds: the types of records, arguments and events, their names, and the limits of the format.

Sections are the headings of the format's document (002, `Fuchsia trace format`); what it lacks
or gets wrong is in docs/formats/trace.md. Sizes are in words of 8 bytes where they do not
say bytes.
"""

from __future__ import annotations

from enum import IntEnum

from fxframework.model import schema

# --- Limits ------------------------------------------------------------------------------------

MAX_RECORD_WORDS = 0xFFF
"""Record header: 12 bits."""
MAX_LARGE_BYTES = 256 << 10
"""What the reference engine and reader allow a large record (notes); the field allows more."""
MAX_STRING_BYTES = 32000
"""String references: the conservative limit that writers keep."""
INLINE_STRING = 0x8000
"""String references: the bit that says that the string follows inline."""
STRING_FIELD_BYTES = INLINE_STRING - 1
"""String references: 15 bits of length."""
STRING_REF_BITS = INLINE_STRING | STRING_FIELD_BYTES
"""String references: all bits, in the field's place."""
MAX_STRING_INDEX = STRING_FIELD_BYTES
MAX_THREAD_INDEX = 0xFF
MAX_ARGS = 15
MAGIC = 0x16547846
MAGIC_WORD = 0x0016547846040010
MAGIC_BYTES = MAGIC_WORD.to_bytes(8, "little")
MAGIC_BYTES_BIG_ENDIAN = MAGIC_WORD.to_bytes(8, "big")
BUFFER_MAGIC = 0x627566EE68656164
BUFFER_MAGIC_BYTES = BUFFER_MAGIC.to_bytes(8, "little")
BUFFER_HEADER_BYTES = 128
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


ArgType = schema.ArgType
"""Argument types, which are those of the tables."""


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
ARG_NAMES = schema.ARG_TYPES
METADATA_NAMES = names(MetadataType)
SCHEDULING_NAMES = names(SchedulingType)
PROFILER_NAMES = names(ProfilerType)
STATE_RUNNING = 1
