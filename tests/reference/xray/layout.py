"""Headers, records and limits of XRay traces, each with the section that declares it.

LLVM's document of the FDR format covers version 1 of the flight data recorder alone; later
versions, basic mode and what differs follow LLVM's lib/XRay and compiler-rt's lib/xray. Offsets and
sizes are bytes. A record's fields are declared once and serve the decoder, the encoder and
`fxf explain`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

import attrs

FORMS: Final = ("xray", "xray-basic")
"""The formats: the flight data recorder's and basic mode's."""


@attrs.frozen
class Field:
    """An integer of a record: ``nbytes`` bytes at byte ``offset`` of it."""

    name: str
    offset: int
    nbytes: int
    doc: str
    signed: bool = False

    @property
    def end(self) -> int:
        """The byte behind it."""
        return self.offset + self.nbytes


# --- File header (XRay FDR format, Header) --------------------------------------------------------

HEADER_BYTES: Final = 32
BASIC: Final = 0
FDR: Final = 1
"""Of ``type``."""
FDR_VERSIONS: Final = range(1, 6)
BASIC_VERSIONS: Final = range(1, 4)
FILE_HEADER: Final = (
    Field("version", 0, 2, "version: 1 to 5, of basic mode 1 to 3"),
    Field("type", 2, 2, "0 basic mode, 1 flight data recorder"),
    Field("flags", 4, 4, "bit 0 constant TSC, bit 1 nonstop TSC"),
    Field("cycle_frequency", 8, 8, "ticks per second; 0 not known"),
    Field("buffer_size", 16, 8, "bytes of one buffer of a thread; basic mode: free form"),
    Field("reserved", 24, 8, "reserved"),
)
CONSTANT_TSC: Final = 1
NONSTOP_TSC: Final = 2
"""Of ``flags``. The other 30 bits mean nothing, and often hold garbage in basic mode."""
EMULATED_FREQUENCY: Final = 1_000_000_000
"""Ticks per second where the counter is a clock of nanoseconds."""

FREQUENCIES: Final = range(10**6, 10**12)
"""Ticks per second that a counter may have, where nothing else tells a header."""

# --- Function records (XRay FDR format, Function Records) -----------------------------------------

FUNCTION_BYTES: Final = 8
MAX_FUNCTION_ID: Final = (1 << 28) - 1
MAX_DELTA: Final = (1 << 32) - 1
OBJECT_SHIFT: Final = 24
"""From here on the bits of an id number the object, with -fxray-shared (LLVM 20). Of
its eight bits the flight data recorder keeps four."""


class FunctionKind(IntEnum):
    """Bits 1 to 3 of a function record, the whole byte in basic mode; bits 4 to 31 are the id."""

    ENTER = 0
    EXIT = 1
    TAIL_EXIT = 2
    ENTER_ARG = 3


AFTER_CLOCK: Final = (2, 3, 5, 8)
FUNCTION_NAMES: Final[Mapping[int, str]] = {int(kind): kind.name.lower() for kind in FunctionKind}

# --- Metadata records (XRay FDR format, Metadata Records) -----------------------------------------

METADATA_BYTES: Final = 16
"""A byte ``kind << 1 | 1``, and 15 bytes of fields and padding."""


class MetadataKind(IntEnum):
    """Bits 1 to 7 of a metadata record's first byte."""

    NEW_BUFFER = 0
    END_OF_BUFFER = 1
    NEW_CPU = 2
    TSC_WRAP = 3
    WALL_TIME = 4
    CUSTOM_EVENT = 5
    CALL_ARGUMENT = 6
    BUFFER_EXTENTS = 7
    TYPED_EVENT = 8
    PID = 9


AFTER_CLOCK: Final = frozenset(
    {
        MetadataKind.NEW_CPU,
        MetadataKind.TSC_WRAP,
        MetadataKind.CUSTOM_EVENT,
        MetadataKind.TYPED_EVENT,
    }
)
"""Metadata records that may follow a NewCPUId or TSCWrap; besides, EndOfBuffer of version 1."""


_TSC = Field("tsc", 1, 8, "absolute time stamp", False)
METADATA: Final[Mapping[MetadataKind, tuple[Field, ...]]] = {
    MetadataKind.NEW_BUFFER: (Field("thread", 1, 4, "thread id", signed=True),),
    MetadataKind.END_OF_BUFFER: (),
    MetadataKind.NEW_CPU: (
        Field("cpu", 1, 2, "CPU number"),
        Field("tsc", 3, 8, "absolute time stamp"),
    ),
    MetadataKind.TSC_WRAP: (_TSC,),
    MetadataKind.WALL_TIME: (
        Field("seconds", 1, 8, "seconds of the monotonic clock", signed=True),
        Field("micros", 9, 4, "microseconds beside them", signed=True),
    ),
    MetadataKind.CALL_ARGUMENT: (Field("value", 1, 8, "argument of the call before"),),
    MetadataKind.BUFFER_EXTENTS: (Field("bytes", 1, 8, "bytes of the buffer that follows"),),
    MetadataKind.PID: (Field("process", 1, 4, "process id", signed=True),),
}
"""Fields of the kinds that are the same in every version."""

_SIZE = Field("size", 1, 4, "bytes of the payload that follows", signed=True)
_ABSOLUTE = Field("tsc", 5, 8, "absolute time stamp")
_DELTA = Field("delta", 5, 4, "ticks since the record before", signed=True)
EVENT_DELTA_VERSION: Final = 5
"""From this version on events have deltas."""
EVENT_CPU_VERSION: Final = 4
"""The version in which a custom event has a CPU."""
_EVENTS: Final[Mapping[tuple[MetadataKind, int], tuple[Field, ...]]] = {
    (MetadataKind.CUSTOM_EVENT, 3): (_SIZE, _ABSOLUTE),
    (MetadataKind.CUSTOM_EVENT, 4): (_SIZE, _ABSOLUTE, Field("cpu", 13, 2, "CPU number")),
    (MetadataKind.CUSTOM_EVENT, 5): (_SIZE, _DELTA),
    (MetadataKind.TYPED_EVENT, 3): (_SIZE, _ABSOLUTE, Field("event_type", 13, 2, "type of event")),
    (MetadataKind.TYPED_EVENT, 4): (_SIZE, _ABSOLUTE, Field("event_type", 13, 2, "type of event")),
    (MetadataKind.TYPED_EVENT, 5): (_SIZE, _DELTA, Field("event_type", 9, 2, "type of event")),
}
EXTENTS_VERSION: Final = 2
"""From this version on buffers have extents, and no end record."""
PID_VERSION: Final = 3
"""From this version on buffers have a process id, and there are typed events."""


def metadata_fields(kind: MetadataKind, version: int) -> tuple[Field, ...]:
    """Return the fields of a kind of metadata record in a version of the flight data recorder."""
    if kind in METADATA:
        return METADATA[kind]
    return _EVENTS[kind, max(version, 3)]


# --- Plausibility  ----------------------------------------------------------------

CUT_RECORD_JUMP: Final = 1 << 40
"""Ticks. A NewCPUId or TSCWrap that leads farther away may be one of which compiler-rt's rewinding
overwrote the second half: the low bits of its time are then still sound."""

# --- Basic mode  ----------------------------------------------------------------------

BASIC_BYTES: Final = 32
BASIC_FUNCTION: Final = 0
BASIC_ARGUMENT: Final = 1
"""Of the first two bytes of a record."""
BASIC_RECORDS: Final[Mapping[int, tuple[Field, ...]]] = {
    BASIC_FUNCTION: (
        Field("type", 0, 2, "0: a function is entered or left"),
        Field("cpu", 2, 1, "CPU number"),
        Field("kind", 3, 1, "0 enter, 1 exit, 2 tail exit, 3 enter with argument"),
        Field("function_id", 4, 4, "function id", signed=True),
        Field("tsc", 8, 8, "absolute time stamp"),
        Field("thread", 16, 4, "thread id"),
        Field("process", 20, 4, "process id; up to version 2 not set"),
    ),
    BASIC_ARGUMENT: (
        Field("type", 0, 2, "1: argument of the call before"),
        Field("function_id", 4, 4, "function id", signed=True),
        Field("thread", 8, 4, "thread id"),
        Field("process", 12, 4, "process id; up to version 2 not set"),
        Field("value", 16, 8, "the argument"),
    ),
}
BASIC_TAIL_EXIT_VERSION: Final = 2
BASIC_PID_VERSION: Final = 3
BASIC_MAX_CPU: Final = 255
NO_CPU: Final = 0xFFFF
"""In tables: the record does not say on which CPU."""

# --- Reading on behind damage ---------------------------------------------------------------------

GARBAGE_RUN: Final = 8
"""Records in a row that are invalid, after which they are taken for no records at all."""
LEAST_BUFFER: Final = 64
"""Bytes under which a header's size of buffers is not believed."""
BYTE_ORDERS: Final = ("little", "big", "big-lsb")
"""How numbers and bit fields are in a file: all little-endian; as a big-endian machine writes
them, bit fields from the most significant bit on; or big-endian numbers with bit fields from the
least significant bit on, as llvm-xray takes them. Basic mode has no bit fields."""
