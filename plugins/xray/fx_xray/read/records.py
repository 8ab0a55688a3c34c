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

from fx_xray import layout as wire
from fx_xray import rules
from fx_xray.layout import Field, MetadataKind
from fxframework.errors import refusal
from fxframework.kit.json_fields import JsonFields, unfit
from fxframework.kit.lossless import DamagedRecord, LosslessRecord, record_of_json

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

    def pack(self, what: str, values: list[int], padding: bytes, first: int | None) -> bytes:
        """Return the record with these values and this padding (zero where there is none).

        Raises WriteRefusedError: OUT_OF_RANGE for a value that does not fit, WRONG_SIZE for padding
        of another size.
        """
        for field, value in zip(self.fields, values, strict=True):
            half = 1 << (8 * field.nbytes - 1)
            least, most = (-half, half - 1) if field.signed else (0, 2 * half - 1)
            if not least <= value <= most:
                raise unfit(rules.OUT_OF_RANGE, what, field.name, value, least, most)
        data = bytearray(self.packing.pack(*values).ljust(self.nbytes, b"\0"))
        if first is not None:
            data[0] = first
        if padding:
            room = sum(end - start for start, end in self.holes)
            if len(padding) != room:
                raise refusal(
                    rules.WRONG_SIZE,
                    f"{what}: padding has {len(padding)} bytes, and there are {room}",
                )
            taken = 0
            for start, end in self.holes:
                data[start:end] = padding[taken : taken + end - start]
                taken += end - start
        return bytes(data)


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

    def pack(self, dialect: Dialect = Dialect()) -> bytes:
        """Return the bytes that the fields give; ``raw`` is not used.

        Raises WriteRefusedError where the format cannot hold a value.
        """
        raise NotImplementedError


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

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields, from JSON; all but the version and the type may be left out."""
        values: dict[str, Any] = {"version": form.number("version"), "type": form.number("type")}
        for name in ("constant_tsc", "nonstop_tsc"):
            if name in form:
                values[name] = form.flag(name)
        for name in ("cycle_frequency", "buffer_size"):
            if name in form:
                values[name] = form.number(name)
        if "byte_order" in form:
            values["byte_order"] = form.text("byte_order")
            if values["byte_order"] not in wire.BYTE_ORDERS:
                raise form.wrong("byte_order", f"one of {', '.join(wire.BYTE_ORDERS)}")
        return values

    def pack(self, dialect: Dialect = Dialect()) -> bytes:  # noqa: ARG002 (its own counts)
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

    @staticmethod
    def parse_place(form: JsonFields) -> dict[str, Any]:
        """Time and thread, from JSON; any may be missing."""
        return {
            name: form.number(name) for name in ("tsc", "cpu", "thread", "process") if name in form
        }


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

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields, from JSON."""
        return {
            "kind": _kind_name(form),
            "function_id": form.number("function_id"),
            "delta": form.number("delta"),
            **cls.parse_place(form),
        }

    def pack(self, dialect: Dialect = Dialect()) -> bytes:
        """Return the eight bytes. Raises WriteRefusedError (OUT_OF_RANGE)."""
        number = _check(self.record, "function_id", self.function_id, 0, wire.MAX_FUNCTION_ID)
        delta = _check(self.record, "delta", self.delta, 0, wire.MAX_DELTA)
        kind = _KIND_NUMBERS[self.kind]
        word = kind << 28 | number if dialect.byte_order == "big" else number << 4 | kind << 1
        data = function_struct(dialect.order).pack(word, delta)
        if data[0] & dialect.metadata_bit:
            raise refusal(
                rules.OUT_OF_RANGE,
                f"{self.record}: function_id {number} would be read as a metadata record in "
                f"byte order {dialect.byte_order}",
            )
        return data


def _kind_name(form: JsonFields) -> str:
    """Return the kind of a function record."""
    name = form.need("kind")
    if not isinstance(name, str) or name not in _KIND_NUMBERS:
        raise form.wrong("kind", f"one of {', '.join(_KIND_NUMBERS)}")
    return name


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

    def field(self, name: str) -> int:
        """Return the value of a field, as written."""
        value: int = getattr(self, name)
        return value

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        for field in wire.METADATA[self.kind]:
            out[field.name] = getattr(self, field.name)
        if self.padding:
            out["padding_hex"] = self.padding.hex()
        if self.timed:
            self.show_place(out)

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields, from JSON."""
        values = {field.name: form.number(field.name) for field in wire.METADATA[cls.kind]}
        values |= cls.parse_padding(form)
        return values | cls.parse_place(form) if cls.timed else values

    @staticmethod
    def parse_padding(form: JsonFields) -> dict[str, Any]:
        """Return the padding, from JSON."""
        return {"padding": form.octets("padding_hex")} if "padding_hex" in form else {}

    def pack(self, dialect: Dialect = Dialect()) -> bytes:
        """Return the record's bytes.

        Raises WriteRefusedError (INVALID_FIELDS, OUT_OF_RANGE, WRONG_SIZE).
        """
        codec = metadata_codec(self.kind, dialect.defined, dialect.order)
        values = [self.field(field.name) for field in codec.fields]
        return codec.pack(self.record, values, self.padding, dialect.first_byte(self.kind))


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

    def field(self, name: str) -> int:
        """Return the value of a field, as written."""
        if name == "size":
            return len(self.data)
        value: int | None
        value = getattr(self, {"tsc": "absolute", "cpu": "own_cpu"}.get(name, name))
        if value is None:
            raise refusal(
                rules.INVALID_FIELDS, f"{self.record}: {name} is missing, which this version has"
            )
        return value

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        if self.delta is not None:
            out["delta"] = self.delta
        if self.padding:
            out["padding_hex"] = self.padding.hex()
        self.show_place(out)
        out["data_hex"] = self.data.hex()

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """The fields, from JSON; ``tsc`` and ``cpu`` are as written where there is no delta."""
        values = {"data": form.octets("data_hex"), **cls.parse_padding(form)}
        values |= cls.parse_place(form)
        if "delta" in form:
            values["delta"] = form.number("delta")
        else:
            form.need("tsc")
            values["absolute"] = values["tsc"]
            values["own_cpu"] = values.get("cpu")
        return values

    def pack(self, dialect: Dialect = Dialect()) -> bytes:
        """Return the record's bytes and its payload. Raises WriteRefusedError."""
        if self.delta is not None and dialect.defined < wire.EVENT_DELTA_VERSION:
            raise refusal(
                rules.INVALID_FIELDS, f"{self.record}: version {dialect.version} has no field delta"
            )
        return super().pack(dialect) + self.data


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

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields, from JSON."""
        return {"event_type": form.number("event_type"), **super().parse(form)}


@attrs.define(kw_only=True)
class Unknown(XrayRecord):
    """A metadata record of a kind that nobody has defined; ``raw`` is all of it."""

    record: ClassVar[str] = "unknown"

    type: int
    """The number of the kind."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the kind into JSON."""
        out["type"] = self.type

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the kind; ``raw`` must be there."""
        form.need("raw")
        return {"type": form.number("type")}

    def pack(self, dialect: Dialect = Dialect()) -> bytes:
        """Return the record's bytes, of this kind.

        Raises WriteRefusedError (OUT_OF_RANGE, WRONG_SIZE).
        """
        data = bytes(self.raw or b"")
        if len(data) != wire.METADATA_BYTES:
            raise refusal(
                rules.WRONG_SIZE,
                f"{self.record}: raw has {len(data)} bytes, not {wire.METADATA_BYTES}",
            )
        kind = _check(self.record, "type", self.type, len(MetadataKind), 0x7F)
        return bytes([dialect.first_byte(kind)]) + data[1:]


@attrs.define(kw_only=True)
class Padding(XrayRecord):
    """What lies between the end of a buffer and the next one; ``raw`` where it is not zero."""

    record: ClassVar[str] = "padding"

    def pack(self, dialect: Dialect = Dialect()) -> bytes:  # noqa: ARG002 (all are alike)
        """Its bytes. Raises WriteRefusedError (WRONG_SIZE)."""
        if self.raw is not None:
            if len(self.raw) != self.nbytes:
                raise refusal(
                    rules.WRONG_SIZE,
                    f"{self.record}: raw has {len(self.raw)} bytes, and nbytes is {self.nbytes}",
                )
            return bytes(self.raw)
        if self.nbytes < 0:
            raise refusal(rules.OUT_OF_RANGE, f"{self.record}: nbytes is {self.nbytes}")
        try:
            return bytes(self.nbytes)
        except (MemoryError, OverflowError):
            raise refusal(
                rules.OUT_OF_RANGE, f"{self.record}: {self.nbytes} bytes are more than memory holds"
            ) from None


@attrs.define(kw_only=True)
class Damaged(DamagedRecord, XrayRecord):
    """Bytes in which no sound record was found; ``raw`` may be a view of the file."""

    def pack(self, dialect: Dialect = Dialect()) -> bytes:  # noqa: ARG002 (raw is all)
        """Its bytes."""
        return bytes(self.raw or b"")


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

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields, from JSON."""
        values: dict[str, Any] = {
            name: _kind_name(form) if name == "kind" else form.number(name) for name in cls.shown
        }
        if "padding_hex" in form:
            values["padding"] = form.octets("padding_hex")
        return values

    def field(self, name: str) -> int:
        """Return the value of a field, as written."""
        value: int = getattr(self, name)
        return value

    def pack(self, dialect: Dialect = Dialect()) -> bytes:
        """Return the 32 bytes. Raises WriteRefusedError (OUT_OF_RANGE, WRONG_SIZE)."""
        codec = basic_codec(self.type, dialect.order)
        values = [self.field(field.name) for field in codec.fields]
        return codec.pack(self.record, values, self.padding, None)


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

    def field(self, name: str) -> int:
        """Return the value of a field, as written."""
        return _KIND_NUMBERS[self.kind] if name == "kind" else super().field(name)


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
_ANYWHERE: Final[tuple[type[XrayRecord], ...]] = (FileHeader, Damaged)


def _named(*kinds: type[XrayRecord]) -> Mapping[str, type[XrayRecord]]:
    return {kind.record: kind for kind in kinds}


KINDS: Final[Mapping[str, Mapping[str, type[XrayRecord]]]] = {
    "xray": _named(*_ANYWHERE, Function, *METADATA.values(), Unknown, Padding),
    BASIC_FORM: _named(*_ANYWHERE, *BASIC_RECORDS.values()),
}


def from_json(given: Any, form: str = "xray") -> XrayRecord:
    """Return the record of a format that a JSON object of the record JSON (docs, Records) says.

    ``offset`` and ``nbytes`` are kept as places, where they are numbers; padding has its length
    from ``nbytes``. Raises WriteRefusedError: NO_SUCH_NAME for no such record, INVALID_FIELDS for a
    field that is missing or unknown, WRONG_TYPE and OUT_OF_RANGE for a value of the wrong kind or
    size.
    """
    return record_of_json(given, KINDS[form], f"a {form} trace", rules.REFUSALS)
