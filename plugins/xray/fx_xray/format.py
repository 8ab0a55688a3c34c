"""Format: the headers and records of XRay traces, declared; of its profiles ``fx_xray.profile``.

LLVM's document of the FDR format covers version 1 of the flight data recorder alone; later
versions, basic mode and what differs follow LLVM's lib/XRay and compiler-rt's lib/xray. Offsets and
sizes are bytes, times ticks of the time-stamp counter. Records are literal: what a recorder is
known to have spoilt is shown as it is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final, Literal

import attrs

from fxframework import wire
from fxframework.io.words import Bits
from fxframework.kit.json_fields import JsonFields
from fxframework.kit.lossless import DamagedRecord, LosslessRecord, PaddingRecord, UnknownRecord
from fxframework.wire.families import Place
from fxframework.wire.fields import Integer
from fxframework.wire.state import State

FORMS: Final = ("xray", "xray-basic")
"""The formats: the flight data recorder's and basic mode's."""
FDR_FORM, BASIC_FORM = FORMS
BYTE_ORDERS: Final = ("little", "big", "big-lsb")
"""How numbers and bit fields are in a file: all little-endian; as a big-endian machine writes
them, bit fields from the most significant bit on; or big-endian numbers with bit fields from the
least significant bit on, as llvm-xray takes them. In basic mode only the header has bit fields."""

# --- Versions and limits --------------------------------------------------------------------------

BASIC = 0
FDR = 1
"""Of ``type`` in the header."""
FDR_VERSIONS: Final = range(1, 6)
BASIC_VERSIONS: Final = range(1, 4)
EXTENTS_VERSION: Final = 2
"""From this version on buffers have extents, and no end record."""
PID_VERSION: Final = 3
"""From this version on buffers have a process id, and there are typed events."""
EVENT_CPU_VERSION: Final = 4
"""The version in which a custom event has a CPU."""
EVENT_DELTA_VERSION: Final = 5
"""From this version on events have deltas."""
BASIC_TAIL_EXIT_VERSION: Final = 2
BASIC_PID_VERSION: Final = 3
BASIC_MAX_CPU: Final = 255
NO_CPU: Final = 0xFFFF
"""In tables: the record does not say on which CPU."""
EMULATED_FREQUENCY: Final = 1_000_000_000
"""Ticks per second where the counter is a clock of nanoseconds."""
FREQUENCIES: Final = range(10**6, 10**12)
"""Ticks per second that a counter may have, where nothing else tells a header."""
OBJECT_IDS: Final = 1 << 24
"""Ids of the functions of one object; from here on they number the object, with -fxray-shared (LLVM
20). Of the eight bits of that number the flight data recorder keeps four."""
MAX_OBJECT: Final = 0xFF
CUT_RECORD_JUMP: Final = 1 << 40
"""Ticks. A NewCPUId or TSCWrap that leads farther away may be one of which compiler-rt's rewinding
overwrote the second half: the low bits of its time are then still sound."""
CUT_REACH_BITS: Final = 36
"""Bits of the ticks after the time before, within which the time of a record that was cut is."""
GARBAGE_RUN: Final = 8
"""Records in a row that are invalid, after which they are taken for no records at all."""
LEAST_BUFFER: Final = 64
"""Bytes under which a header's size of buffers is not believed."""
SECOND_IN_MICROS: Final = 1_000_000

# --- The recorder of compiler-rt ------------------------------------------------------------------

BUFFER_BYTES: Final = 16384
"""Of one buffer, where nothing else is said."""
SMALLEST_BUFFER: Final = 128
"""It holds a preamble and a record in every version."""
BUFFERS: Final = 100
THRESHOLD_US: Final = 5
"""Calls that take less are not kept."""
WRAP_TICKS: Final[Mapping[int, int]] = {
    version: (1 << 32) - 1 if version < EVENT_DELTA_VERSION else (1 << 31) - 1
    for version in FDR_VERSIONS
}
"""By version, the greatest delta; beyond it, and from version 5 on where the counter went back, a
TSCWrap comes first."""
END_BYTES: Final = 40
"""Bytes that version 1 needs at the end of a buffer: its end record, and 24 bytes of padding."""


@attrs.frozen
class BufferForm:
    """What buffers look like: the version of the trace, and their size in bytes."""

    version: int
    size: int

    @property
    def preamble(self) -> int:
        """Bytes of the records before the first event, without extents."""
        records = 3
        if self.version >= PID_VERSION:
            records += 1
        return records * METADATA_BYTES

    @property
    def extents(self) -> int:
        """Bytes of the extents before the preamble, which the size does not count."""
        return METADATA_BYTES if self.version >= EXTENTS_VERSION else 0

    @property
    def room(self) -> int:
        """Bytes for events."""
        room = self.size - self.preamble
        if self.version < EXTENTS_VERSION:
            room -= END_BYTES
        return room


class FunctionKind(IntEnum):
    """Kinds of function records."""

    ENTER = 0
    EXIT = 1
    TAIL_EXIT = 2
    ENTER_ARG = 3


class MetadataKind(IntEnum):
    """Kinds of metadata records."""

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


FUNCTION_NAMES: Final[Mapping[int, str]] = {int(kind): kind.name.lower() for kind in FunctionKind}

# --- What records say of those behind them --------------------------------------------------------


class Now:
    """Registers: what the records so far say of the file and of the buffer."""

    VERSION = wire.register(name="version")
    THREAD = wire.register(name="thread")
    PROCESS = wire.register(name="process")
    CPU = wire.register(name="cpu")
    BASE = wire.register(name="base")
    """The time from which deltas count."""
    HAS_THREAD = wire.register(name="has_thread")
    HAS_PROCESS = wire.register(name="has_process")
    HAS_CPU = wire.register(name="has_cpu")
    HAS_BASE = wire.register(name="has_base")
    SETTLED = wire.register(name="settled")
    """Whether a call, an argument or an event has been read: what its thread is, is decided."""


OF_BUFFER: Final = (
    Now.THREAD, Now.PROCESS, Now.CPU, Now.BASE, Now.HAS_THREAD, Now.HAS_PROCESS, Now.HAS_CPU,
    Now.HAS_BASE, Now.SETTLED,
)  # fmt: skip
"""Registers that each buffer begins with again."""
KEPT = (Now.SETTLED | Now.HAS_THREAD) == 0
"""Whether a NewBuffer goes on with the buffer that is there, of which only extents are known."""


def cpu() -> Any:
    """Return the field for the CPU that a record before said."""
    return wire.computed(Now.CPU, nbits=16, when=Now.HAS_CPU)


def thread() -> Any:
    """Return the field for the thread of the buffer."""
    return wire.computed(Now.THREAD, nbits=32, signed=True)


def process() -> Any:
    """Return the field for the process of the buffer."""
    return wire.computed(Now.PROCESS, nbits=32, signed=True)


# --- File header ----------------------------------------------------------------------------------


class FileHeader(wire.Record, size=32, section="XRay FDR format of LLVM, Header"):
    """The header of a file. Bits of flags without a name often hold garbage in basic mode."""

    version: int = wire.u16(doc="version: 1 to 5, of basic mode 1 to 3")
    type: int = wire.u16(default=FDR, doc="0 basic mode, 1 flight data recorder")
    constant_tsc: bool = wire.flag(0, of=4, default=True, doc="1: the counter runs at one rate")
    nonstop_tsc: bool = wire.flag(1, default=True, doc="1: the counter never stops")
    _flags = wire.bits(2, 31, doc="mean nothing")
    cycle_frequency: int = wire.u64(default=0, doc="ticks per second; 0 not known")
    buffer_size: int = wire.u64(
        default=0, doc="bytes of one buffer of a thread; basic mode: free form"
    )
    _reserved = wire.u64()
    byte_order: str = attrs.field(default="little")
    """Of all numbers of the file, as far as is known; one of ``BYTE_ORDERS``."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        super().show(out)
        if self.byte_order != "little":
            out["byte_order"] = self.byte_order

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields, from JSON; all but the version and the type may be left out."""
        form.need("version"), form.need("type")
        values = super().parse(form)
        if "byte_order" in form:
            values["byte_order"] = form.text("byte_order")
            if values["byte_order"] not in BYTE_ORDERS:
                raise form.wrong("byte_order", f"one of {', '.join(BYTE_ORDERS)}")
        return values

    def pack(self, state: State | None = None) -> bytes:
        """Return the 32 bytes, in the byte order that it has unless a state says another."""
        return super().pack(state or header_state(self.byte_order))


def header_state(byte_order: str) -> State:
    """Return the state in which a header is read and written: its flags are bit fields, too."""
    return State(big=byte_order != "little", mirrored=byte_order == "big")


# --- The flight data recorder ---------------------------------------------------------------------


class Fdr(wire.Record):
    """A record of a buffer: of a function, or metadata."""

    _type = wire.kind(wire.bits(0, 0, of=1, doc="0: a function record, 1: a metadata record"))
    _kind = wire.kind(wire.bits(1, 7))


CALLS = 0
META = 1
FUNCTION_SECTION = "XRay FDR format of LLVM, Function Records"
METADATA_SECTION = "XRay FDR format of LLVM, Metadata Records"
METADATA_BYTES: Final = 16
"""Of each metadata record, without the payload of an event."""


class Function(Fdr, kind=CALLS, size=8, word=4, sets={Now.SETTLED: 1}, section=FUNCTION_SECTION):
    """A function was entered or left.

    The kind is as written: before version 4, calls with arguments are plain ``enter``.
    """

    kind: str = wire.bits(1, 3, values=FUNCTION_NAMES, closed=True)
    function_id: int = wire.bits(4, 31)
    delta: int = wire.u32(adds=Now.BASE, doc="ticks since the record before")
    tsc: int | None = wire.computed(Now.BASE + delta, when=Now.HAS_BASE)
    cpu: int | None = cpu()
    thread: int = thread()
    process: int = process()


class NewBuffer(
    Fdr, kind=(META, MetadataKind.NEW_BUFFER), size=METADATA_BYTES, section=METADATA_SECTION,
    sets={
        Now.HAS_THREAD: 1, Now.SETTLED: 0,
        Now.HAS_BASE: Now.HAS_BASE * KEPT, Now.HAS_CPU: Now.HAS_CPU * KEPT,
        Now.HAS_PROCESS: Now.HAS_PROCESS * KEPT,
        Now.PROCESS: Now.PROCESS * (Now.HAS_PROCESS * KEPT)
        + wire.field("thread") * (Now.VERSION == EXTENTS_VERSION) * (1 - Now.HAS_PROCESS * KEPT),
    },
):  # fmt: skip
    """A buffer of a thread begins."""

    thread: int = wire.i32(sets=Now.THREAD, doc="thread id")
    padding: bytes = wire.spare(11)


class EndOfBuffer(
    Fdr, kind=(META, MetadataKind.END_OF_BUFFER), size=METADATA_BYTES, section=METADATA_SECTION
):
    """A buffer ends; of version 1."""

    padding: bytes = wire.spare(15)


class NewCpu(
    Fdr, kind=(META, MetadataKind.NEW_CPU), size=METADATA_BYTES, section=METADATA_SECTION,
    sets={Now.HAS_CPU: 1, Now.HAS_BASE: 1},
):  # fmt: skip
    """From here on the thread ran on this CPU; says the time."""

    cpu: int = wire.u16(sets=Now.CPU, doc="CPU number")
    tsc: int = wire.u64(sets=Now.BASE, doc="absolute time stamp")
    padding: bytes = wire.spare(5)
    thread: int = thread()
    process: int = process()


class TscWrap(
    Fdr, kind=(META, MetadataKind.TSC_WRAP), size=METADATA_BYTES, section=METADATA_SECTION,
    sets={Now.HAS_BASE: 1},
):  # fmt: skip
    """Says the time, where a delta could not."""

    tsc: int = wire.u64(sets=Now.BASE, doc="absolute time stamp")
    padding: bytes = wire.spare(7)
    cpu: int | None = cpu()
    thread: int = thread()
    process: int = process()


class WallTime(
    Fdr, kind=(META, MetadataKind.WALL_TIME), size=METADATA_BYTES, section=METADATA_SECTION
):
    """The time of the monotonic clock at which the buffer began."""

    seconds: int = wire.i64(doc="seconds of the monotonic clock")
    micros: int = wire.i32(doc="microseconds beside them")
    padding: bytes = wire.spare(3)


class Pid(
    Fdr, kind=(META, MetadataKind.PID), size=METADATA_BYTES, section=METADATA_SECTION,
    sets={
        Now.HAS_PROCESS: Now.HAS_PROCESS * Now.SETTLED + (Now.SETTLED == 0),
        Now.PROCESS: Now.PROCESS * Now.SETTLED + wire.field("process") * (Now.SETTLED == 0),
    },
):  # fmt: skip
    """The process of the buffer's thread."""

    process: int = wire.i32(doc="process id")
    padding: bytes = wire.spare(11)


class CallArgument(
    Fdr, kind=(META, MetadataKind.CALL_ARGUMENT), size=METADATA_BYTES, section=METADATA_SECTION,
    sets={Now.SETTLED: 1},
):  # fmt: skip
    """An argument of the call whose record comes before it."""

    value: int = wire.u64(doc="argument of the call before")
    padding: bytes = wire.spare(7)
    thread: int = attrs.field(default=0, eq=False)
    process: int = attrs.field(default=0, eq=False)
    tsc: int | None = attrs.field(default=None, eq=False)
    cpu: int | None = attrs.field(default=None, eq=False)
    """Those of the call, as is ``ns``; not shown."""
    row_offset: int = attrs.field(default=0, eq=False)
    """Offset of the call's record, its own where there is none."""


class BufferExtents(
    Fdr, kind=(META, MetadataKind.BUFFER_EXTENTS), size=METADATA_BYTES, section=METADATA_SECTION
):
    """How many bytes of a buffer follow."""

    bytes: int = wire.u64(doc="bytes of the buffer that follows")
    padding = wire.spare(7)


class CustomEvent(
    Fdr, kind=(META, MetadataKind.CUSTOM_EVENT), when=Now.VERSION >= EVENT_DELTA_VERSION,
    section=METADATA_SECTION, sets={Now.SETTLED: 1},
):  # fmt: skip
    """An event of the program's own, with its payload."""

    _size = wire.i32(doc="bytes of the payload that follows")
    delta: int = wire.i32(adds=Now.BASE, doc="ticks since the record before")
    padding: bytes = wire.spare(7)
    tsc: int | None = wire.computed(Now.BASE + delta, when=Now.HAS_BASE)
    cpu: int | None = cpu()
    thread: int = thread()
    process: int = process()
    data: bytes = wire.octets(_size)


class CustomEventOn(
    Fdr, kind=(META, MetadataKind.CUSTOM_EVENT), when=Now.VERSION == EVENT_CPU_VERSION,
    section=METADATA_SECTION, sets={Now.SETTLED: 1}, name="custom_event",
    keys=("padding", "tsc"),
):  # fmt: skip
    """The same in version 4, with time and CPU of its own."""

    _size = wire.i32(doc="bytes of the payload that follows")
    tsc: int = wire.u64(doc="absolute time stamp")
    cpu: int = wire.u16(doc="CPU number")
    padding: bytes = wire.spare(1)
    thread: int = thread()
    process: int = process()
    data: bytes = wire.octets(_size)


class CustomEventAt(
    Fdr, kind=(META, MetadataKind.CUSTOM_EVENT), when=Now.VERSION < EVENT_CPU_VERSION,
    section=METADATA_SECTION, sets={Now.SETTLED: 1}, name="custom_event",
    keys=("padding", "tsc"),
):  # fmt: skip
    """The same up to version 3, with a time of its own."""

    _size = wire.i32(doc="bytes of the payload that follows")
    tsc: int = wire.u64(doc="absolute time stamp")
    padding: bytes = wire.spare(3)
    thread: int = thread()
    process: int = process()
    data: bytes = wire.octets(_size)


class TypedEvent(
    Fdr, kind=(META, MetadataKind.TYPED_EVENT), when=Now.VERSION >= EVENT_DELTA_VERSION,
    section=METADATA_SECTION, sets={Now.SETTLED: 1},
    keys=("event_type", "delta"),
):  # fmt: skip
    """An event with a number that says what the payload is."""

    _size = wire.i32(doc="bytes of the payload that follows")
    delta: int = wire.i32(adds=Now.BASE, doc="ticks since the record before")
    event_type: int = wire.u16(doc="type of event")
    padding: bytes = wire.spare(5)
    tsc: int | None = wire.computed(Now.BASE + delta, when=Now.HAS_BASE)
    cpu: int | None = cpu()
    thread: int = thread()
    process: int = process()
    data: bytes = wire.octets(_size)


class TypedEventAt(
    Fdr, kind=(META, MetadataKind.TYPED_EVENT), when=Now.VERSION < EVENT_DELTA_VERSION,
    section=METADATA_SECTION, sets={Now.SETTLED: 1}, name="typed_event",
    keys=("event_type", "padding", "tsc"),
):  # fmt: skip
    """The same up to version 4, with a time of its own."""

    _size = wire.i32(doc="bytes of the payload that follows")
    tsc: int = wire.u64(doc="absolute time stamp")
    event_type: int = wire.u16(doc="type of event")
    padding: bytes = wire.spare(1)
    thread: int = thread()
    process: int = process()
    data: bytes = wire.octets(_size)


# --- Basic mode -----------------------------------------------------------------------------------


class Basic(wire.Record, size=32):
    """A record of basic mode: all of its fields are in it."""

    _type = wire.kind(wire.u16(doc="0: a function is entered or left, 1: an argument"))


BASIC_FUNCTION = 0
BASIC_ARGUMENT = 1
"""Kinds of records of basic mode."""
BASIC_SECTION = "compiler-rt lib/xray, basic mode"


class BasicFunction(
    Basic, kind=BASIC_FUNCTION, name="function", section=BASIC_SECTION,
    keys=("kind", "function_id", "tsc", "cpu"),
):  # fmt: skip
    """A function was entered or left."""

    cpu: int = wire.u8(doc="CPU number")
    kind: str = wire.u8(values=FUNCTION_NAMES, closed=True)
    function_id: int = wire.i32(doc="function id")
    tsc: int = wire.u64(doc="absolute time stamp")
    thread: int = wire.u32(doc="thread id")
    process: int = wire.u32(default=0, doc="process id; up to version 2 not set")
    padding: bytes = wire.spare(8)


class BasicArgument(Basic, kind=BASIC_ARGUMENT, name="call_argument", section=BASIC_SECTION):
    """An argument of the call whose record comes before it."""

    _odd = wire.spare(2)
    function_id: int = wire.i32(doc="function id")
    thread: int = wire.u32(doc="thread id")
    process: int = wire.u32(default=0, doc="process id; up to version 2 not set")
    value: int = wire.u64(doc="the argument")
    padding: bytes = wire.spare(8, after=_odd)
    tsc: int | None = attrs.field(default=None, eq=False)
    cpu: int | None = attrs.field(default=None, eq=False)
    """Those of the call, as is ``ns``; not shown."""
    row_offset: int = attrs.field(default=0, eq=False)
    """Offset of the call's record, its own where there is none."""


XrayRecord = LosslessRecord
Unknown = UnknownRecord
Padding = PaddingRecord
"""What lies between the end of a buffer and the next one."""
Damaged = DamagedRecord

# --- Where things lie -----------------------------------------------------------------------------

HEADER_BYTES: Final = FileHeader.layout.fixed
FUNCTION_BYTES: Final = Function.layout.fixed
BASIC_BYTES: Final = Basic.layout.fixed


def class_of(kind: int, known: Mapping[Any, int]) -> type[wire.Record]:
    """Return the class of a kind of metadata records, in the version that a register has."""
    record_class: type[wire.Record] = Fdr.layout.family.choose([META, kind], known)
    return record_class


FUNCTION_KIND = Function.layout.bits("kind")
FUNCTION_ID = Function.layout.bits("function_id")
DELTA_BIT: Final = 8 * Function.layout.place("delta").offset
"""Where the delta lies in a number of all eight bytes of a function record, little-endian."""


def _letter(field: Any, field_place: Place) -> str:
    """Return the letter of ``struct`` for the word of a field."""
    letter = "BHIQ"[field_place.nbytes.bit_length() - 1]
    return letter.lower() if field.signed else letter


def packer(record: type[wire.Record]) -> Callable[..., bytes]:
    """Return a function that packs a metadata record, little-endian, from its numbers.

    They are those behind the kind, in the order of the file. The payload of an event is not packed.
    """
    struct_format = "<B"
    packed_end = 1
    for field, field_place in record.layout.places.items():
        if field_place.offset and isinstance(field, Integer):
            gap = field_place.offset - packed_end
            struct_format += f"{gap}x{_letter(field, field_place)}"
            packed_end = field_place.end
    first_byte_value = Dialect().first_byte(record.layout.kind[-1])
    pack = struct.Struct(f"{struct_format}{METADATA_BYTES - packed_end}x").pack
    return lambda *values: pack(first_byte_value, *values)


CPU_TSC_AT: Final = NewCpu.layout.place("tsc").offset
WRAP_TSC_AT: Final = TscWrap.layout.place("tsc").offset
"""Where fields of records lie."""
MAX_FUNCTION_ID: Final = Function.layout.place("function_id").mask
MAX_BASIC_FUNCTION: Final = BasicFunction.layout.place("function_id").mask // 2
"""Ids of basic mode are signed."""


@attrs.frozen
class Dialect:
    """The version of a file and its byte order: what says how a record is stored as bytes.

    ``version`` may be one that nobody has defined; ``defined`` is the one it is read as.
    """

    form: str = FDR_FORM
    version: int = FDR_VERSIONS[-1]
    byte_order: str = "little"
    """One of ``BYTE_ORDERS``."""

    @property
    def basic(self) -> bool:
        """Whether it is basic mode's."""
        return self.form == BASIC_FORM

    @property
    def versions(self) -> range:
        """The versions that are defined."""
        return BASIC_VERSIONS if self.basic else FDR_VERSIONS

    @property
    def records(self) -> type[wire.Record]:
        """What the records behind the header have in common."""
        return Basic if self.basic else Fdr

    @property
    def type(self) -> int:
        """The ``type`` that the header has."""
        return BASIC if self.basic else FDR

    @property
    def defined(self) -> int:
        """The version that it is read as."""
        oldest = self.versions[0]
        newest = self.versions[-1]
        return min(max(self.version, oldest), newest)

    @property
    def order(self) -> Literal["big", "little"]:
        """The order of the bytes of numbers."""
        return "little" if self.byte_order == "little" else "big"

    @property
    def mirrored(self) -> bool:
        """Whether bits count from the most significant one."""
        return self.byte_order == "big" and not self.basic

    @property
    def has_kind_first(self) -> bool:
        """Whether the first byte of a function's record has the kind of the function."""
        return self.order == "little" or self.mirrored

    def state(self) -> State:
        """Return the state at the beginning of a file."""
        registers = (Now.VERSION, *OF_BUFFER)
        file_state = State(registers, big=self.order == "big", mirrored=self.mirrored)
        file_state.set(Now.VERSION, self.defined)
        return file_state

    def first_byte(self, kind: int) -> int:
        """Return the first byte of a metadata record of a kind."""
        type_place, kind_place = Fdr.layout.family.places.values()
        type_bits = META << type_place.shift_in(self.mirrored)
        kind_bits = kind << kind_place.shift_in(self.mirrored)
        return type_bits | kind_bits


# --- Numbers that modules share -------------------------------------------------------------------

LATEST = 0x7FFFFFFFFFFFFFFF
"""The greatest int64."""
SIGN = -0x8000000000000000
"""The sign bit of an int64. A time is `biased` by it where it is compared: that makes the order of
int64 the order of uint64."""
LOW32 = 0xFFFFFFFF
OF_LAST, OF_THIS = Bits("last kind", 8, 15), Bits("kind", 0, 7)
"""In the value of a finding: the kind of the record before, and of this one."""

# --- Kinds of events ---

ENTER, EXIT, TAIL_EXIT, ENTER_ARG = (int(kind) for kind in FunctionKind)
ARGUMENT, CUSTOM, TYPED = range(4, 7)
BACK = 8
"""Added to the kind of a function's event whose time is before that of its thread's last one."""
UNWOUND = 3
"""How a call ended that ended with the call around it."""
DATA = -1
EVENT_TYPE = -2
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

# --- Marks of rows and buffers ---

# Of a row of sound records:
CUT = 1  # one record that was cut in half
FIRST = 2  # the first of a buffer
FOLLOWS = 8  # follows a call directly, or its arguments
ARGUED = 16  # an argument follows it
# Of a buffer:
INHABITED = 1  # has more records than its extents
WALLED = 2  # has a wall time
HAS_PID = 4
HAS_THREAD = 8
SETTLED = 16  # something of its thread has been read
TIMELESS = 32  # begins without a time
EARLY = 64  # an argument or an event of its own time comes before its first time
FOREIGN_TYPED = 128
CUT_SHORT = 256
"""Of a buffer: a typed event of compiler-rt's is in it; a record runs past its end."""
