"""Words, limits and names of Fuchsia's log formats, each with the section that declares it.

"logs-encoding" is Fuchsia's document "Log records encoding"; docs/formats describes the parts that
it omits: tags, attribution, legacy packets, rings. All integers are little-endian.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from fxframework.io.words import Bits, WordLayout

__all__ = [
    "ARGUMENT",
    "ARG_NAMES",
    "CONTROL",
    "HEADER",
    "INLINE",
    "LEGACY_SEVERITIES",
    "MAX_PACKET",
    "MAX_RECORD_WORDS",
    "MAX_STRING",
    "RECORD_TYPE",
    "ArgType",
]

# --- Structured records (logs-encoding, "Records") --------------------------------------------

RECORD_TYPE: Final = 9
MIN_RECORD_WORDS: Final = 2
"""Header and time."""
MAX_RECORD_WORDS: Final = 4095
CHAIN: Final = 64
"""Most arguments checked to find out whether they fill a record exactly."""
SOUND_RUN: Final = 3
"""Number of plausible records in a row at which reading resumes after damage."""

TYPE = Bits("type", 0, 3, "record type", values={9: "log record"})
SIZE = Bits("size_words", 4, 15, "words in the record, this one included")
TAG = Bits("tag", 16, 46, "id of the component, which a manifest names")
CONTROL_BIT = Bits("control", 47, 47, "a control record: a manifest, or logs rolled out")
TAG_BITS = Bits("tag_bits", 16, 47, "tag and control bit")
SEVERITY = Bits("severity", 56, 63, "severity")
HEADER = WordLayout(
    "record header",
    "logs-encoding, Records",
    (TYPE, SIZE, TAG, CONTROL_BIT, Bits("reserved", 48, 55, reserved=True), SEVERITY),
)
CONTROL: Final = 1 << 31
"""Bit of ``tag_bits`` in a control record (LOG_CONTROL_BIT)."""

# --- Arguments (logs-encoding, "Argument header") ---------------------------------------------


class ArgType(IntEnum):
    """Argument types of logs; other numbers are types of traces, or undefined."""

    NULL = 0
    INT64 = 3
    UINT64 = 4
    DOUBLE = 5
    STRING = 6
    BOOL = 9


ARG_NAMES: Final[Mapping[int, str]] = {int(type): type.name.lower() for type in ArgType}
TRACE_TYPES: Final = frozenset({1, 2, 7, 8})
"""Types of the trace format only, for which the reference parser returns Unsupported."""

ARG_TYPE = Bits("type", 0, 3, "argument type", values=ARG_NAMES)
ARG_SIZE = Bits("size_words", 4, 15, "words in the argument, this one included")
NAME_REF = Bits("name_ref", 16, 31, "string reference of the name")
VALUE_REF = Bits("value_ref", 32, 47, "string reference of the value")
BOOL_VALUE = Bits("value", 32, 32, "the value")
ARGUMENT = WordLayout(
    "argument header", "logs-encoding, Argument header", (ARG_TYPE, ARG_SIZE, NAME_REF)
)
ARGUMENT_LAYOUTS: Final[Mapping[int, WordLayout]] = {
    ArgType.STRING: WordLayout(
        "string argument",
        "logs-encoding, String argument",
        (ARG_TYPE, ARG_SIZE, NAME_REF, VALUE_REF),
    ),
    ArgType.BOOL: WordLayout(
        "bool argument",
        "logs-encoding, Boolean argument",
        (ARG_TYPE, ARG_SIZE, NAME_REF, BOOL_VALUE),
    ),
}
"""Headers of the types with additional fields."""

INLINE: Final = 0x8000
"""Bit of a string reference: the bytes follow. References without it, except 0, are reserved."""
MAX_STRING: Final = 0x7FFF
"""Bytes in a string."""
NUMBERS: Final = frozenset({ArgType.INT64, ArgType.UINT64, ArgType.DOUBLE})
"""Types whose value takes one word."""


def argument_size(header: int) -> int:
    """Return the bytes of the argument with this header, by its type and strings.

    0 for a type that logs do not have, and for a reserved string reference.
    """
    kind = ARG_TYPE.get(header)
    if kind not in ARG_NAMES:
        return 0
    size = 16 if kind in NUMBERS else 8
    for reference in (NAME_REF, VALUE_REF) if kind == ArgType.STRING else (NAME_REF,):
        value = reference.get(header)
        if value and not value & INLINE:
            return 0
        size += -(-(value & MAX_STRING) // 8) * 8
    return size


# --- Well-known arguments ------------------------------------------------------

MONIKER: Final = "$__moniker"
URL: Final = "$__url"
ROLLED_OUT: Final = "$__rolled_out"
MANIFEST_MONIKER: Final = "moniker"
MANIFEST_URL: Final = "url"
CONTROL_ROLLED_OUT: Final = "rolled_out"
UNKNOWN_COMPONENT: Final = "UNKNOWN"
"""Moniker for a tag without a manifest."""
WELL_KNOWN: Final[Mapping[str, ArgType]] = {
    "pid": ArgType.UINT64,
    "tid": ArgType.UINT64,
    "tag": ArgType.STRING,
    "num_dropped": ArgType.UINT64,
    "dropped_logs": ArgType.UINT64,
    "message": ArgType.STRING,
    "file": ArgType.STRING,
    "line": ArgType.UINT64,
    "verbosity": ArgType.INT64,
}
"""Arguments with their own columns, and the type that each must have."""
PRINTF: Final = "printf"
"""Name of the first argument of a structured printf of 2022."""

# --- Limits of the FIDL reference API, not of the wire -----------------------------

FIDL_ARGUMENTS: Final = 15
FIDL_NAME_BYTES: Final = 256

# --- The suffix of 2025 -------------------------------------------------------------

SUFFIX_BYTES: Final = 16
"""u32 bytes of the moniker, u32 bytes of the url, u64 logs rolled out; both texts follow."""

# --- Legacy packets -------------------------------------------------------------------

PACKET_HEADER: Final = 32
"""pid, tid u64; time i64 ns; severity i32; dropped_logs u32."""
MIN_PACKET: Final = 33
MAX_PACKET: Final = 32768
MAX_TAGS: Final = 5
MAX_TAG_BYTES: Final = 63
LEGACY_SEVERITIES: Final = range(-10, 0x80)
"""Severities of both eras."""

# --- The container of legacy packets -------------------------------------------------------------

STREAM_MAGIC: Final = b"\x89FXLLOG\n"
"""Not valid at the start of a text file; the last byte changes in a copy in text mode."""
STREAM_VERSION: Final = 1
STREAM_HEADER: Final = 16
"""Magic, u32 version, u32 zero. Then entries: u32 bytes of the packet, the packet."""
STREAM_LENGTH: Final = 4

# --- The IOBuffer ring ---------------------------------------------------------------

RING_PAGE: Final = 4096
"""Page 0: u64 head, u64 tail, which never wrap; the ring begins at page 1."""
RING_MINIMUM: Final = 65536
"""Bytes of the smallest ring; a capacity is a whole number of pages."""
RING_ENTRY: Final = 16
"""u64 tag, u64 bytes of the payload; the payload follows, up to a multiple of 8 bytes."""
RING_MAX_ENTRY: Final = 65536
"""Bytes of the largest entry, its 16 included."""

# --- Kinds of records, as the scans count them ----------------------------------------------------

KINDS: Final = (
    "log", "attribution", "padding", "damaged", "ring_header", "ring_entry", "legacy_packet",
    "stream_header",
)  # fmt: skip
