"""Records of XRay traces: lossless objects, their fields and their JSON.

Times are ticks of the time-stamp counter (``tsc``), and nanoseconds where they are called ``ns``;
sizes and offsets are bytes. Records are literal: what a recorder is known to have spoilt is shown
as it is. `RecordDecoder.mended` gives them as the tables have them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Final, Literal

import attrs
from tests.reference.xray import layout as wire
from tests.reference.xray.layout import Field, MetadataKind

from fx_xray import rules
from fxframework.kit.json_fields import unfit
from fxframework.kit.lossless import DamagedRecord, LosslessRecord

BASIC_FORM: Final = "xray-basic"
NS_PER_SECOND: Final = 1_000_000_000
_KIND_NUMBERS: Final = {name: number for number, name in wire.FUNCTION_NAMES.items()}
_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}


def _check(what: str, name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise unfit(rules.OUT_OF_RANGE, what, name, value, least, most)
    return value


# --- How records are stored as bytes --------------------------------------------------------------


@attrs.frozen
class Dialect:
    """The version of a file and its byte order: what says how a record is stored as bytes.

    ``version`` may be one that nobody has defined; ``defined`` is the one it is read as.
    """

    form: str = "xray"
    version: int = 5
    byte_order: str = "little"
    """One of ``layout.BYTE_ORDERS``."""

    @property
    def basic(self) -> bool:
        """Whether it is basic mode's."""
        return self.form == BASIC_FORM

    @property
    def versions(self) -> range:
        """The versions that are defined."""
        return wire.BASIC_VERSIONS if self.basic else wire.FDR_VERSIONS

    @property
    def defined(self) -> int:
        """The version that it is read as."""
        return min(max(self.version, self.versions[0]), self.versions[-1])

    @property
    def order(self) -> Literal["big", "little"]:
        """The order of the bytes of numbers."""
        return "little" if self.byte_order == "little" else "big"

    @property
    def metadata_bit(self) -> int:
        """The bit of the first byte that metadata records have."""
        return 0x80 if self.byte_order == "big" else 1

    def first_byte(self, kind: int) -> int:
        """Return the first byte of a metadata record of a kind."""
        return 0x80 | kind if self.byte_order == "big" else kind << 1 | 1

    def kind_of(self, first: int) -> int:
        """Return the kind of the metadata record with this first byte."""
        return first & 0x7F if self.byte_order == "big" else first >> 1


@attrs.frozen
class Codec:
    """Fields side by side, as `struct` takes them, and the bytes that no field has."""

    fields: tuple[Field, ...]
    packing: struct.Struct
    holes: tuple[tuple[int, int], ...]
    """Start and end of each stretch without a field."""
    nbytes: int

    @classmethod
    def of(cls, fields: tuple[Field, ...], start: int, nbytes: int, order: str) -> Codec:
        """Return the codec of a record of ``nbytes``, whose fields are from byte ``start`` on."""
        at, form, holes = start, "<" if order == "little" else ">", []
        form += f"{start}x"
        for field in fields:
            if field.offset > at:
                holes.append((at, field.offset))
                form += f"{field.offset - at}x"
            code = _CODES[field.nbytes]
            form += code.lower() if field.signed else code
            at = field.end
        if at < nbytes:
            holes.append((at, nbytes))
        return cls(fields, struct.Struct(form), tuple(holes), nbytes)

    def unpack(self, view: memoryview, at: int) -> dict[str, Any]:
        """Return the values of the record at ``at``, by the names of the fields."""
        values = self.packing.unpack_from(view, at)
        return {field.name: value for field, value in zip(self.fields, values, strict=True)}

    def padding(self, view: memoryview, at: int) -> bytes:
        """Return the bytes without a field of the record at ``at``; none where all are zero."""
        found = b"".join([view[at + start : at + end].tobytes() for start, end in self.holes])
        return found if any(found) else b""


@cache
def metadata_codec(kind: MetadataKind, version: int, order: str) -> Codec:
    """Return the fields of a metadata record."""
    fields = wire.metadata_fields(kind, version)
    return Codec.of(fields, 1, wire.METADATA_BYTES, order)


@cache
def basic_codec(type: int, order: str) -> Codec:
    """Return the fields of a record of basic mode."""
    return Codec.of(wire.BASIC_RECORDS[type], 0, wire.BASIC_BYTES, order)


@cache
def header_struct(order: str) -> struct.Struct:
    """Return the fields of the file header."""
    form = "".join(_CODES[field.nbytes] for field in wire.FILE_HEADER)
    return struct.Struct(("<" if order == "little" else ">") + form)


@cache
def function_struct(order: str) -> struct.Struct:
    """Return the two words of a function record."""
    return struct.Struct("<II" if order == "little" else ">II")


# --- Records --------------------------------------------------------------------------------------


@attrs.define(kw_only=True)
class XrayRecord(LosslessRecord):
    """Anything that a trace holds."""


@attrs.define(kw_only=True)
class FileHeader(XrayRecord):
    """The header of a file (XRay FDR format of LLVM, Header)."""

    record: ClassVar[str] = "file_header"

    version: int
    type: int = wire.FDR
    constant_tsc: bool = True
    nonstop_tsc: bool = True
    cycle_frequency: int = 0
    """Ticks per second; 0 where it is not known."""
    buffer_size: int = 0
    byte_order: str = "little"
    """Of all numbers of the file, as far as is known; one of ``layout.BYTE_ORDERS``."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        out["version"] = self.version
        out["type"] = self.type
        out["constant_tsc"] = self.constant_tsc
        out["nonstop_tsc"] = self.nonstop_tsc
        out["cycle_frequency"] = self.cycle_frequency
        out["buffer_size"] = self.buffer_size
        if self.byte_order != "little":
            out["byte_order"] = self.byte_order

    def pack(self, dialect: Dialect = Dialect()) -> bytes:
        """Return the 32 bytes. Raises WriteRefusedError (OUT_OF_RANGE)."""
        flags = wire.CONSTANT_TSC * self.constant_tsc | wire.NONSTOP_TSC * self.nonstop_tsc
        given = {"flags": flags, "reserved": 0}
        values = []
        for field in wire.FILE_HEADER:
            value = given.get(field.name)
            if value is None:
                value = getattr(self, field.name)
            values.append(_check(self.record, field.name, value, 0, (1 << 8 * field.nbytes) - 1))
        order = "little" if self.byte_order == "little" else "big"
        return header_struct(order).pack(*values)


@attrs.define(kw_only=True)
class PlacedRecord(XrayRecord):
    """A record whose thread is known from the records before it, and its time where it has one.

    What is known so is given back by ``from_json`` and not heeded when the record is written.
    """

    tsc: int | None = attrs.field(default=None, eq=False)
    """Ticks, reconstructed; None where there was no NewCPUId."""
    cpu: int | None = attrs.field(default=None, eq=False)
    """None where it is not known."""
    thread: int = attrs.field(default=0, eq=False)
    process: int = attrs.field(default=0, eq=False)
    frequency: int = attrs.field(default=0, eq=False, repr=False)
    """Ticks per second; 0 where ticks are taken for nanoseconds."""

    @property
    def ns(self) -> int | None:
        """Its time in nanoseconds, rounded down; None where it is not known."""
        if self.tsc is None:
            return None
        return self.tsc * NS_PER_SECOND // self.frequency if self.frequency else self.tsc

    def show_place(self, out: dict[str, Any]) -> None:
        """Put time and thread into JSON."""
        if self.tsc is not None:
            out["tsc"] = self.tsc
        if self.cpu is not None:
            out["cpu"] = self.cpu
        out["thread"] = self.thread
        out["process"] = self.process


@attrs.define(kw_only=True)
class Function(PlacedRecord):
    """A function was entered or left (XRay FDR format of LLVM, Function Records)."""

    record: ClassVar[str] = "function"

    kind: str
    """enter, exit, tail_exit or enter_arg, as written: before version 4, calls with arguments
    are plain ``enter``."""
    function_id: int
    delta: int
    """Ticks since the record before."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        out["kind"] = self.kind
        out["function_id"] = self.function_id
        out["delta"] = self.delta
        self.show_place(out)


@attrs.define(kw_only=True)
class Metadata(PlacedRecord):
    """A record of 16 bytes that begins with its kind (XRay FDR format of LLVM, Metadata Records).

    Fields are those that `layout` declares for the kind.
    """

    kind: ClassVar[MetadataKind]
    """Its number."""
    timed: ClassVar[bool] = False
    """Whether JSON shows its time and its thread."""

    padding: bytes = b""
    """The bytes behind the fields; none where all are zero."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        for field in wire.METADATA[self.kind]:
            out[field.name] = getattr(self, field.name)
        if self.padding:
            out["padding_hex"] = self.padding.hex()
        if self.timed:
            self.show_place(out)


@attrs.define(kw_only=True)
class NewBuffer(Metadata):
    """A buffer of a thread begins."""

    record: ClassVar[str] = "new_buffer"
    kind: ClassVar[MetadataKind] = MetadataKind.NEW_BUFFER

    thread: int


@attrs.define(kw_only=True)
class EndOfBuffer(Metadata):
    """A buffer ends; of version 1."""

    record: ClassVar[str] = "end_of_buffer"
    kind: ClassVar[MetadataKind] = MetadataKind.END_OF_BUFFER


@attrs.define(kw_only=True)
class NewCpu(Metadata):
    """From here on the thread ran on this CPU; says the time."""

    record: ClassVar[str] = "new_cpu"
    kind: ClassVar[MetadataKind] = MetadataKind.NEW_CPU
    timed: ClassVar[bool] = True

    cpu: int
    tsc: int


@attrs.define(kw_only=True)
class TscWrap(Metadata):
    """Says the time, where a delta could not."""

    record: ClassVar[str] = "tsc_wrap"
    kind: ClassVar[MetadataKind] = MetadataKind.TSC_WRAP
    timed: ClassVar[bool] = True

    tsc: int


@attrs.define(kw_only=True)
class WallTime(Metadata):
    """The time of the monotonic clock at which the buffer began."""

    record: ClassVar[str] = "wall_time"
    kind: ClassVar[MetadataKind] = MetadataKind.WALL_TIME

    seconds: int
    micros: int


@attrs.define(kw_only=True)
class Pid(Metadata):
    """The process of the buffer's thread."""

    record: ClassVar[str] = "pid"
    kind: ClassVar[MetadataKind] = MetadataKind.PID

    process: int


@attrs.define(kw_only=True)
class CallArgument(Metadata):
    """An argument of the call whose record comes before it.

    Has the time and the thread of the call, which JSON does not show.
    """

    record: ClassVar[str] = "call_argument"
    kind: ClassVar[MetadataKind] = MetadataKind.CALL_ARGUMENT

    value: int
    row_offset: int = attrs.field(default=0, eq=False)
    """Offset of the call's record, its own where there is none."""


@attrs.define(kw_only=True)
class BufferExtents(Metadata):
    """How many bytes of a buffer follow."""

    record: ClassVar[str] = "buffer_extents"
    kind: ClassVar[MetadataKind] = MetadataKind.BUFFER_EXTENTS

    bytes: int


@attrs.define(kw_only=True)
class _Event(Metadata):
    """An event of the program's own, with its payload."""

    timed: ClassVar[bool] = True

    delta: int | None = None
    """Ticks since the record before, signed; from version 5 on."""
    absolute: int | None = None
    """The time as written; up to version 4."""
    own_cpu: int | None = None
    """The CPU as written; of custom events of version 4."""
    data: bytes = b""

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        if self.delta is not None:
            out["delta"] = self.delta
        if self.padding:
            out["padding_hex"] = self.padding.hex()
        self.show_place(out)
        out["data_hex"] = self.data.hex()


@attrs.define(kw_only=True)
class CustomEvent(_Event):
    """An event of the program's own, with its payload (004, Custom Event)."""

    record: ClassVar[str] = "custom_event"
    kind: ClassVar[MetadataKind] = MetadataKind.CUSTOM_EVENT


@attrs.define(kw_only=True)
class TypedEvent(_Event):
    """The same with a number that says what the payload is."""

    record: ClassVar[str] = "typed_event"
    kind: ClassVar[MetadataKind] = MetadataKind.TYPED_EVENT

    event_type: int

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        out["event_type"] = self.event_type
        super().show(out)


@attrs.define(kw_only=True)
class Unknown(XrayRecord):
    """A metadata record of a kind that nobody has defined; ``raw`` is all of it."""

    record: ClassVar[str] = "unknown"

    type: int
    """The number of the kind."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the kind into JSON."""
        out["type"] = self.type


@attrs.define(kw_only=True)
class Padding(XrayRecord):
    """What lies between the end of a buffer and the next one; ``raw`` where it is not zero."""

    record: ClassVar[str] = "padding"


@attrs.define(kw_only=True)
class Damaged(DamagedRecord, XrayRecord):
    """Bytes in which no sound record was found; ``raw`` may be a view of the file."""


@attrs.define(kw_only=True)
class _Basic(PlacedRecord):
    """A record of basic mode: all of its fields are in it."""

    type: ClassVar[int]
    shown: ClassVar[tuple[str, ...]]
    """Fields of its JSON."""

    function_id: int
    thread: int
    process: int = 0
    """Up to version 2 what is in the place is not set."""
    padding: bytes = b""
    """The bytes without a field, in their order; none where all are zero."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        for name in self.shown:
            out[name] = getattr(self, name)
        if self.padding:
            out["padding_hex"] = self.padding.hex()


@attrs.define(kw_only=True)
class BasicFunction(_Basic):
    """A function was entered or left."""

    record: ClassVar[str] = "function"
    type: ClassVar[int] = wire.BASIC_FUNCTION
    shown = ("kind", "function_id", "tsc", "cpu", "thread", "process")

    kind: str
    """enter, exit, tail_exit or enter_arg."""
    tsc: int
    cpu: int


@attrs.define(kw_only=True)
class BasicArgument(_Basic):
    """An argument of the call whose record comes before it, of which it has the time."""

    record: ClassVar[str] = "call_argument"
    type: ClassVar[int] = wire.BASIC_ARGUMENT
    shown = ("function_id", "thread", "process", "value")

    value: int
    row_offset: int = attrs.field(default=0, eq=False)
    """Offset of the call's record, its own where there is none."""


METADATA: Final[Mapping[int, type[Metadata]]] = {
    int(kind.kind): kind
    for kind in (
        NewBuffer,
        EndOfBuffer,
        NewCpu,
        TscWrap,
        WallTime,
        CustomEvent,
        CallArgument,
        BufferExtents,
        TypedEvent,
        Pid,
    )
}
EVENTS: Final[Mapping[MetadataKind, type[_Event]]] = {
    kind.kind: kind for kind in (CustomEvent, TypedEvent)
}
BASIC_RECORDS: Final[Mapping[int, type[_Basic]]] = {
    kind.type: kind for kind in (BasicFunction, BasicArgument)
}
