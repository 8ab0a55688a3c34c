"""Records of XRay traces, one at a time: lossless objects, their JSON, decoder and encoder.

This is the decoder for clarity; `kernels.py` is the one for speed, and shares nothing with it but
the constants of `layout.py`.

Times are ticks of the time-stamp counter (``tsc``), and nanoseconds where they are called ``ns``;
sizes and offsets are bytes. Records are literal: what a recorder is known to have spoilt (notes
§0.7) is shown as it stands. `RecordDecoder.mended` gives them as the tables have them.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import attrs

from fx_xray import layout as wire
from fx_xray.layout import Field, MetadataKind
from fx_xray.rules import RULES, told
from fxframework.errors import UsageError, WriteRefusedError, did_you_mean
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX, view_of
from fxframework.kit.json_fields import JsonFields, unfit
from fxframework.kit.lossless import DamagedRecord, LosslessRecord, record_of_json
from fxframework.model.diagnostics import Diagnostics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview

__all__ = [
    "BasicArgument",
    "BasicFunction",
    "BufferExtents",
    "CallArgument",
    "CustomEvent",
    "Damaged",
    "Dialect",
    "EndOfBuffer",
    "FileHeader",
    "Function",
    "Metadata",
    "NewBuffer",
    "NewCpu",
    "Padding",
    "Pid",
    "RecordDecoder",
    "RecordEncoder",
    "TscWrap",
    "TypedEvent",
    "Unknown",
    "WallTime",
    "XrayRecord",
    "from_json",
    "header_findings",
    "read_header",
    "refusal",
]

BASIC_FORM: Final = "xray-basic"
NS_PER_SECOND: Final = 1_000_000_000
_KIND_NUMBERS: Final = {name: number for number, name in wire.FUNCTION_NAMES.items()}
_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}


def refusal(code: str, message: str) -> WriteRefusedError:
    """The refusal of something that cannot be written, with the catalogue's remedy."""
    return WriteRefusedError(message, code=code, remedy=RULES[code].remedy)


def _refuse(number: str, message: str) -> WriteRefusedError:
    """The refusal by the number that `JsonFields` has for it: 0401 is our FXX0501, and so on."""
    return refusal(f"FXX05{number[2:]}", message)


def _check(what: str, name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise unfit(_refuse, what, name, value, least, most)
    return value


# --- How records stand as bytes -------------------------------------------------------------------


@attrs.frozen
class Dialect:
    """The version of a file and its byte order: what tells how a record stands as bytes.

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
        """The first byte of a metadata record of a kind."""
        return 0x80 | kind if self.byte_order == "big" else kind << 1 | 1

    def kind_of(self, first: int) -> int:
        """The kind of the metadata record with this first byte."""
        return first & 0x7F if self.byte_order == "big" else first >> 1


@attrs.frozen
class _Codec:
    """Fields side by side, as `struct` takes them, and the bytes that no field has."""

    fields: tuple[Field, ...]
    packing: struct.Struct
    holes: tuple[tuple[int, int], ...]
    """Start and end of each stretch without a field."""
    nbytes: int

    @classmethod
    def of(cls, fields: tuple[Field, ...], start: int, nbytes: int, order: str) -> _Codec:
        """The codec of a record of ``nbytes``, whose fields stand from byte ``start`` on."""
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

    def padding(self, view: memoryview, at: int) -> bytes:
        """The bytes without a field of the record at ``at``; none where all are zero."""
        found = b"".join([view[at + start : at + end].tobytes() for start, end in self.holes])
        return found if any(found) else b""

    def pack(self, what: str, values: list[int], padding: bytes, first: int | None) -> bytes:
        """The record with these values and this padding (zero where there is none).

        Raises WriteRefusedError: FXX0504 for a value that does not fit, FXX0505 for padding of
        another size.
        """
        for field, value in zip(self.fields, values, strict=True):
            half = 1 << (8 * field.nbytes - 1)
            least, most = (-half, half - 1) if field.signed else (0, 2 * half - 1)
            if not least <= value <= most:
                raise unfit(_refuse, what, field.name, value, least, most)
        data = bytearray(self.packing.pack(*values).ljust(self.nbytes, b"\0"))
        if first is not None:
            data[0] = first
        if padding:
            room = sum(end - start for start, end in self.holes)
            if len(padding) != room:
                raise refusal(
                    "FXX0505", f"{what}: padding has {len(padding)} bytes, and there are {room}"
                )
            taken = 0
            for start, end in self.holes:
                data[start:end] = padding[taken : taken + end - start]
                taken += end - start
        return bytes(data)


@cache
def _metadata_codec(kind: MetadataKind, version: int, order: str) -> _Codec:
    fields = wire.metadata_fields(kind, version)
    return _Codec.of(fields, 1, wire.METADATA_BYTES, order)


@cache
def _basic_codec(type: int, order: str) -> _Codec:
    return _Codec.of(wire.BASIC_RECORDS[type], 0, wire.BASIC_BYTES, order)


@cache
def _header_struct(order: str) -> struct.Struct:
    form = "".join(_CODES[field.nbytes] for field in wire.FILE_HEADER)
    return struct.Struct(("<" if order == "little" else ">") + form)


@cache
def _function_struct(order: str) -> struct.Struct:
    return struct.Struct("<II" if order == "little" else ">II")


# --- Records --------------------------------------------------------------------------------------


@attrs.define(kw_only=True)
class XrayRecord(LosslessRecord):
    """Anything that a trace holds."""

    def pack(self, dialect: Dialect = Dialect()) -> bytes:
        """The bytes that the fields give; ``raw`` is not used.

        Raises WriteRefusedError where the format cannot hold a value (FXX0502 to FXX0505).
        """
        raise NotImplementedError


@attrs.define(kw_only=True)
class FileHeader(XrayRecord):
    """The header of a file (004, Header; notes §1.1)."""

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
        """The fields, from JSON; all but the version and the type may be left out."""
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
        """The 32 bytes. Raises WriteRefusedError (FXX0504)."""
        flags = wire.CONSTANT_TSC * self.constant_tsc | wire.NONSTOP_TSC * self.nonstop_tsc
        given = {"flags": flags, "reserved": 0}
        values = []
        for field in wire.FILE_HEADER:
            value = given.get(field.name)
            if value is None:
                value = getattr(self, field.name)
            values.append(_check(self.record, field.name, value, 0, (1 << 8 * field.nbytes) - 1))
        order = "little" if self.byte_order == "little" else "big"
        return _header_struct(order).pack(*values)


@attrs.define(kw_only=True)
class _Placed(XrayRecord):
    """A record whose thread is known from the records before it, and its time where it has one.

    What is known so is given back by ``from_json`` and not heeded when the record is written.
    """

    tsc: int | None = attrs.field(default=None, eq=False)
    """Ticks, reconstructed (notes §2.2); None where there was no NewCPUId."""
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
class Function(_Placed):
    """A function was entered or left (004, Function Records; notes §1.2)."""

    record: ClassVar[str] = "function"

    kind: str
    """enter, exit, tail_exit or enter_arg, as written: before version 4, calls with arguments
    are plain ``enter`` (notes §1.4)."""
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
        """The fields, from JSON."""
        return {
            "kind": _kind_name(form),
            "function_id": form.number("function_id"),
            "delta": form.number("delta"),
            **cls.parse_place(form),
        }

    def pack(self, dialect: Dialect = Dialect()) -> bytes:
        """The eight bytes. Raises WriteRefusedError (FXX0504)."""
        number = _check(self.record, "function_id", self.function_id, 0, wire.MAX_FUNCTION_ID)
        delta = _check(self.record, "delta", self.delta, 0, wire.MAX_DELTA)
        kind = _KIND_NUMBERS[self.kind]
        word = kind << 28 | number if dialect.byte_order == "big" else number << 4 | kind << 1
        data = _function_struct(dialect.order).pack(word, delta)
        if data[0] & dialect.metadata_bit:
            raise refusal(
                "FXX0504",
                f"{self.record}: function_id {number} would be read as a metadata record in "
                f"byte order {dialect.byte_order}",
            )
        return data


def _kind_name(form: JsonFields) -> str:
    """The kind of a function record."""
    name = form.need("kind")
    if not isinstance(name, str) or name not in _KIND_NUMBERS:
        raise form.wrong("kind", f"one of {', '.join(_KIND_NUMBERS)}")
    return name


@attrs.define(kw_only=True)
class Metadata(_Placed):
    """A record of 16 bytes that begins with its kind (004, Metadata Records; notes §1.3).

    Fields are those that `layout` declares for the kind.
    """

    kind: ClassVar[MetadataKind]
    """Its number."""
    timed: ClassVar[bool] = False
    """Whether JSON shows its time and its thread."""

    padding: bytes = b""
    """The bytes behind the fields; none where all are zero."""

    def field(self, name: str) -> int:
        """The value of a field, as written."""
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
        """The fields, from JSON."""
        values = {field.name: form.number(field.name) for field in wire.METADATA[cls.kind]}
        values |= cls.parse_padding(form)
        return values | cls.parse_place(form) if cls.timed else values

    @staticmethod
    def parse_padding(form: JsonFields) -> dict[str, Any]:
        """The padding, from JSON."""
        return {"padding": form.octets("padding_hex")} if "padding_hex" in form else {}

    def pack(self, dialect: Dialect = Dialect()) -> bytes:
        """The record's bytes. Raises WriteRefusedError (FXX0502, FXX0504, FXX0505)."""
        codec = _metadata_codec(self.kind, dialect.defined, dialect.order)
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
    """An argument of the call whose record stands before it.

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
        """The value of a field, as written."""
        if name == "size":
            return len(self.data)
        value: int | None
        value = getattr(self, {"tsc": "absolute", "cpu": "own_cpu"}.get(name, name))
        if value is None:
            raise refusal("FXX0502", f"{self.record}: {name} is missing, which this version has")
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
        """The record's bytes and its payload. Raises WriteRefusedError."""
        if self.delta is not None and dialect.defined < wire.EVENT_DELTA_VERSION:
            raise refusal("FXX0502", f"{self.record}: version {dialect.version} has no field delta")
        return super().pack(dialect) + self.data


@attrs.define(kw_only=True)
class CustomEvent(_Event):
    """An event of the program's own, with its payload (004, Custom Event)."""

    record: ClassVar[str] = "custom_event"
    kind: ClassVar[MetadataKind] = MetadataKind.CUSTOM_EVENT


@attrs.define(kw_only=True)
class TypedEvent(_Event):
    """The same with a number that says what the payload is (notes §1.3)."""

    record: ClassVar[str] = "typed_event"
    kind: ClassVar[MetadataKind] = MetadataKind.TYPED_EVENT

    event_type: int

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        out["event_type"] = self.event_type
        super().show(out)

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """The fields, from JSON."""
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
        """The kind; ``raw`` must be there."""
        form.need("raw")
        return {"type": form.number("type")}

    def pack(self, dialect: Dialect = Dialect()) -> bytes:
        """The record's bytes, of this kind. Raises WriteRefusedError (FXX0504, FXX0505)."""
        data = bytes(self.raw or b"")
        if len(data) != wire.METADATA_BYTES:
            raise refusal(
                "FXX0505", f"{self.record}: raw has {len(data)} bytes, not {wire.METADATA_BYTES}"
            )
        kind = _check(self.record, "type", self.type, len(MetadataKind), 0x7F)
        return bytes([dialect.first_byte(kind)]) + data[1:]


@attrs.define(kw_only=True)
class Padding(XrayRecord):
    """What lies between the end of a buffer and the next one; ``raw`` where it is not zero."""

    record: ClassVar[str] = "padding"

    def pack(self, dialect: Dialect = Dialect()) -> bytes:  # noqa: ARG002 (all are alike)
        """Its bytes. Raises WriteRefusedError (FXX0505)."""
        if self.raw is not None:
            if len(self.raw) != self.nbytes:
                raise refusal(
                    "FXX0505",
                    f"{self.record}: raw has {len(self.raw)} bytes, and nbytes is {self.nbytes}",
                )
            return bytes(self.raw)
        if self.nbytes < 0:
            raise refusal("FXX0504", f"{self.record}: nbytes is {self.nbytes}")
        try:
            return bytes(self.nbytes)
        except (MemoryError, OverflowError):
            raise refusal(
                "FXX0504", f"{self.record}: {self.nbytes} bytes are more than memory holds"
            ) from None


@attrs.define(kw_only=True)
class Damaged(DamagedRecord, XrayRecord):
    """Bytes in which no sound record was found; ``raw`` may be a view of the file."""

    def pack(self, dialect: Dialect = Dialect()) -> bytes:  # noqa: ARG002 (raw is all)
        """Its bytes."""
        return bytes(self.raw or b"")


@attrs.define(kw_only=True)
class _Basic(_Placed):
    """A record of basic mode (notes §1.5): all of its fields stand in it."""

    type: ClassVar[int]

    function_id: int
    thread: int
    process: int = 0
    """Up to version 2 what stands in the place is not set."""
    padding: bytes = b""
    """The bytes without a field, in their order; none where all are zero."""

    def show_padding(self, out: dict[str, Any]) -> None:
        """Put the padding into JSON."""
        if self.padding:
            out["padding_hex"] = self.padding.hex()

    @staticmethod
    def parse_numbers(form: JsonFields, *names: str) -> dict[str, Any]:
        """These fields and the padding, from JSON."""
        values: dict[str, Any] = {name: form.number(name) for name in names}
        if "padding_hex" in form:
            values["padding"] = form.octets("padding_hex")
        return values

    def field(self, name: str) -> int:
        """The value of a field, as written."""
        value: int = getattr(self, name)
        return value

    def pack(self, dialect: Dialect = Dialect()) -> bytes:
        """The 32 bytes. Raises WriteRefusedError (FXX0504, FXX0505)."""
        codec = _basic_codec(self.type, dialect.order)
        values = [self.field(field.name) for field in codec.fields]
        return codec.pack(self.record, values, self.padding, None)


@attrs.define(kw_only=True)
class BasicFunction(_Basic):
    """A function was entered or left."""

    record: ClassVar[str] = "function"
    type: ClassVar[int] = wire.BASIC_FUNCTION

    kind: str
    """enter, exit, tail_exit or enter_arg."""
    tsc: int
    cpu: int

    def field(self, name: str) -> int:
        """The value of a field, as written."""
        return _KIND_NUMBERS[self.kind] if name == "kind" else super().field(name)

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        out["kind"] = self.kind
        out["function_id"] = self.function_id
        self.show_place(out)
        self.show_padding(out)

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """The fields, from JSON."""
        names = ("function_id", "tsc", "cpu", "thread", "process")
        return {"kind": _kind_name(form), **cls.parse_numbers(form, *names)}


@attrs.define(kw_only=True)
class BasicArgument(_Basic):
    """An argument of the call whose record stands before it, of which it has the time."""

    record: ClassVar[str] = "call_argument"
    type: ClassVar[int] = wire.BASIC_ARGUMENT

    value: int
    row_offset: int = attrs.field(default=0, eq=False)
    """Offset of the call's record, its own where there is none."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        for name in ("function_id", "thread", "process", "value"):
            out[name] = getattr(self, name)
        self.show_padding(out)

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """The fields, from JSON."""
        return cls.parse_numbers(form, "function_id", "thread", "process", "value")


_METADATA: Final[Mapping[int, type[Metadata]]] = {
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
_EVENTS: Final[Mapping[MetadataKind, type[_Event]]] = {
    kind.kind: kind for kind in (CustomEvent, TypedEvent)
}
_BASIC: Final[Mapping[int, type[_Basic]]] = {
    kind.type: kind for kind in (BasicFunction, BasicArgument)
}
_ANYWHERE: Final[tuple[type[XrayRecord], ...]] = (FileHeader, Damaged)


def _named(*kinds: type[XrayRecord]) -> Mapping[str, type[XrayRecord]]:
    return {kind.record: kind for kind in kinds}


_KINDS: Final[Mapping[str, Mapping[str, type[XrayRecord]]]] = {
    "xray": _named(*_ANYWHERE, Function, *_METADATA.values(), Unknown, Padding),
    BASIC_FORM: _named(*_ANYWHERE, *_BASIC.values()),
}


def from_json(given: Any, form: str = "xray") -> XrayRecord:
    """The record of a format that a JSON object of CONTRACTS §3 says.

    ``offset`` and ``nbytes`` are kept as places, where they are numbers; padding has its length
    from ``nbytes``. Raises WriteRefusedError: FXX0501 for no such record, FXX0502 for a field that
    is missing or unknown, FXX0503 and FXX0504 for a value of the wrong kind or size.
    """
    return record_of_json(given, _KINDS[form], f"a {form} trace", _refuse)


# --- The header of a file -------------------------------------------------------------------------


def asked_order(options: Mapping[str, Any] | None, name: str = "byte_order") -> str:
    """The byte order that options ask for by a name, empty where it is to be found out.

    A writer's option has another name than a reader's: both may be given at once. Raises UsageError
    for an order that there is not.
    """
    order = str((options or {}).get(name) or "")
    if order and order not in wire.BYTE_ORDERS:
        raise UsageError(
            f"no byte order {order!r}{did_you_mean(order, wire.BYTE_ORDERS)}",
            remedy=f"give one of {', '.join(wire.BYTE_ORDERS)}",
        )
    return order


def asked_frequency(options: Mapping[str, Any] | None) -> int:
    """The ticks per second that options ask for, 0 where the header says it.

    Raises UsageError for a number that no header could have.
    """
    frequency = int((options or {}).get("cycle_frequency") or 0)
    if not 0 <= frequency < 1 << 64:
        raise UsageError(
            f"cycle_frequency is {frequency}",
            remedy="give ticks per second: a number of 64 bits, 0 for what the header says",
        )
    return frequency


def _found_order(view: memoryview, form: str) -> str:
    """The byte order of a file with a header, from what stands in it."""
    versions = Dialect(form).versions

    def plausible(order: Literal["big", "little"]) -> bool:
        return int.from_bytes(view[:2], order) in versions

    if plausible("little") or not plausible("big"):
        return "little"
    if int.from_bytes(view[2:4], "big") not in (wire.BASIC, wire.FDR):
        return "little"
    if form == BASIC_FORM:
        return "big"
    big = Dialect(byte_order="big")
    begins = {big.first_byte(MetadataKind.NEW_BUFFER), big.first_byte(MetadataKind.BUFFER_EXTENTS)}
    first = view[wire.HEADER_BYTES : wire.HEADER_BYTES + 1].tobytes()
    return "big" if first and first[0] in begins else "big-lsb"


def read_header(data: Data, form: str, byte_order: str = "") -> FileHeader | None:
    """The header of a trace; None where the file is too short for one.

    ``byte_order`` is found out where it is empty. ``raw`` is there where the fields would not give
    the same bytes.
    """
    view = view_of(data)[: wire.HEADER_BYTES + 1]
    if len(view) < wire.HEADER_BYTES:
        return None
    chosen = byte_order or _found_order(view, form)
    if form == BASIC_FORM and chosen != "little":
        chosen = "big"
    head = view[: wire.HEADER_BYTES].tobytes()
    order = "little" if chosen == "little" else "big"
    values = dict(
        zip(
            (field.name for field in wire.FILE_HEADER),
            _header_struct(order).unpack(head),
            strict=True,
        )
    )
    header = FileHeader(
        nbytes=wire.HEADER_BYTES,
        version=values["version"],
        type=values["type"],
        constant_tsc=bool(values["flags"] & wire.CONSTANT_TSC),
        nonstop_tsc=bool(values["flags"] & wire.NONSTOP_TSC),
        cycle_frequency=values["cycle_frequency"],
        buffer_size=values["buffer_size"],
        byte_order=chosen,
    )
    if header.pack() != head:
        header.raw = head
    return header


def header_findings(
    header: FileHeader, form: str, size: int, cycle_frequency: int = 0
) -> list[tuple[str, str, int]]:
    """What there is to say of a header, as code, message and byte offset.

    ``size`` is that of the file, ``cycle_frequency`` what counts instead of the header's.
    """
    places = {field.name: field.offset for field in wire.FILE_HEADER}
    found = []
    if header.version not in Dialect(form).versions:
        found.append(("FXX0002", f"version {header.version}", places["version"]))
    if header.type != (wire.BASIC if form == BASIC_FORM else wire.FDR):
        found.append(("FXX0003", f"type {header.type}", places["type"]))
    if not header.constant_tsc:
        found.append(("FXX0005", "", places["flags"]))
    if not header.nonstop_tsc:
        found.append(("FXX0006", "", places["flags"]))
    if not (header.cycle_frequency or cycle_frequency):
        found.append(("FXX0007", "", places["cycle_frequency"]))
    if size == wire.HEADER_BYTES:
        found.append(("FXX0004", "", 0))
    return found


# --- Decoder --------------------------------------------------------------------------------------

Found = list[tuple[str, str, int]]
"""Findings: code, message, byte offset."""


class RecordDecoder:
    """Reads a trace record by record.

    ``form`` is xray or xray-basic. Findings go to ``diagnostics``; of ``limits``, ``max_record`` is
    heeded. ``options`` are the reader's: ``byte_order`` and ``cycle_frequency``. Nothing that the
    bytes say raises an exception, but for the StrictError of strict diagnostics; an option that
    makes no sense does (UsageError).
    """

    def __init__(
        self,
        form: str,
        *,
        diagnostics: Diagnostics | None = None,
        limits: Limits | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.form = form
        self.diagnostics = diagnostics
        self.limits = limits or Limits()
        self.byte_order = asked_order(options)
        self.cycle_frequency = asked_frequency(options)

    def records(self, data: Data) -> Iterator[XrayRecord]:
        """Every record in file order, as it stands; their ``nbytes`` add up to ``len(data)``."""
        return self._noted(data, mend=False)

    def mended(self, data: Data) -> Iterator[XrayRecord]:
        """The same with records that a recorder cut in half made good, as tables have them.

        Such a record has 8 bytes and the time that it had, and the one that stands in its second
        half is there too (notes §0.7).
        """
        return self._noted(data, mend=True)

    def near(self, data: Data, offset: int) -> Iterator[XrayRecord]:
        """The header, and the records from the buffer on that holds byte ``offset``.

        Without reading what is before it, where sound extents lead there. Nothing is reported.
        """
        view, found = view_of(data), Found()
        records = self._walked(view, found, mend=False, skip=offset)
        for record in records:
            found.clear()
            yield record

    def _noted(self, data: Data, *, mend: bool) -> Iterator[XrayRecord]:
        found: Found = []
        index = -1
        for index, record in enumerate(self._walked(view_of(data), found, mend=mend)):
            self._note(found, index)
            yield record
        self._note(found, index)

    def _note(self, found: Found, index: int) -> None:
        """Report what was found when record ``index`` was read."""
        if self.diagnostics is not None:
            for code, message, offset in found:
                self.diagnostics.add(
                    code,
                    told(code, message),
                    offset=offset,
                    record=None if index < 0 else index,
                )
        found.clear()

    def _walked(
        self, view: memoryview, found: Found, *, mend: bool, skip: int = 0
    ) -> Iterator[XrayRecord]:
        header = read_header(view, self.form, self.byte_order)
        if header is None:
            found.append(("FXX0001", f"{len(view)} bytes", 0))
            if len(view):
                yield Damaged(nbytes=len(view), code="FXX0001", raw=view)
            return
        found.extend(header_findings(header, self.form, len(view), self.cycle_frequency))
        yield header
        walk: _Walk
        if self.form == BASIC_FORM:
            walk = _BasicWalk(view, header, found, self)
        else:
            walk = _FdrWalk(view, header, found, self, mend=mend)
        walk.skip(skip)
        yield from walk.records()


class _Walk:
    """A walk through a file behind its header."""

    def __init__(
        self, view: memoryview, header: FileHeader, found: Found, decoder: RecordDecoder
    ) -> None:
        self.view = view
        self.size = len(view)
        self.at = wire.HEADER_BYTES
        self.found = found
        self.dialect = Dialect(decoder.form, header.version, header.byte_order)
        self.version = self.dialect.defined
        self.order = self.dialect.order
        self.frequency = decoder.cycle_frequency or header.cycle_frequency
        self.max_record = decoder.limits.max_record

    def find(self, code: str, message: str, offset: int) -> None:
        """Note a finding about the record that comes."""
        self.found.append((code, message, offset))

    def damaged(self, code: str, at: int, end: int, message: str = "") -> Damaged:
        """The stretch from ``at`` to ``end``, in which there is no sound record."""
        self.find(code, message, at)
        return Damaged(offset=at, nbytes=end - at, code=code, raw=self.view[at:end])

    def skip(self, offset: int) -> None:
        """Step over what byte ``offset`` does not need, where that is known without reading it."""
        raise NotImplementedError

    def records(self) -> Iterator[XrayRecord]:
        """Every record."""
        raise NotImplementedError


# --- Basic mode -----------------------------------------------------------------------------------


class _BasicWalk(_Walk):
    """Records of 32 bytes, one after another (notes §1.5)."""

    call: BasicFunction | None = None
    """The function record before, as far as arguments may follow."""

    def skip(self, offset: int) -> None:
        first = wire.HEADER_BYTES
        self.at = max(first, offset - (offset - first) % wire.BASIC_BYTES)

    def records(self) -> Iterator[XrayRecord]:
        while self.at < self.size:
            at = self.at
            record: XrayRecord
            if self.size - at < wire.BASIC_BYTES:
                record = self.damaged("FXX0401", at, self.size, f"{self.size - at} bytes")
            else:
                record = self.record(at)
            self.at = at + record.nbytes
            yield record

    def record(self, at: int) -> XrayRecord:
        """The record at byte ``at``."""
        view, end = self.view, at + wire.BASIC_BYTES
        type = int.from_bytes(view[at : at + 2], self.order)
        if type not in _BASIC:
            self.call = None
            return self.damaged("FXX0402", at, end, f"type {type}")
        codec = _basic_codec(type, self.order)
        values = {
            field.name: value
            for field, value in zip(codec.fields, codec.packing.unpack_from(view, at), strict=True)
        }
        del values["type"]
        if "kind" in values:
            kind = wire.FUNCTION_NAMES.get(values["kind"])
            if kind is None:
                self.call = None
                return self.damaged("FXX0403", at, end, f"kind {values['kind']}")
            values["kind"] = kind
        record = _BASIC[type](
            offset=at,
            nbytes=wire.BASIC_BYTES,
            frequency=self.frequency,
            padding=codec.padding(view, at),
            **values,
        )
        if isinstance(record, BasicFunction):
            self.call = record
            if record.kind == "tail_exit" and self.version < wire.BASIC_TAIL_EXIT_VERSION:
                self.find("FXX0405", "", at)
        elif isinstance(record, BasicArgument):
            self.belong(record)
        return record

    def belong(self, record: BasicArgument) -> None:
        """Find the call of an argument."""
        call, record.row_offset = self.call, record.offset
        if call is None:
            self.find("FXX0404", "no call stands before it", record.offset)
        elif (
            (call.function_id, call.thread) != (record.function_id, record.thread)
            or (self.version >= wire.BASIC_PID_VERSION and call.process != record.process)
        ):  # fmt: skip
            self.find("FXX0404", f"of function {record.function_id}", record.offset)
            self.call = None
        else:
            record.row_offset = call.offset
            record.tsc, record.cpu = call.tsc, call.cpu


# --- The flight data recorder ---------------------------------------------------------------------

_BODY: Final = frozenset(
    {"new_cpu", "tsc_wrap", "custom_event", "typed_event", "function", "end_of_buffer"}
)
_CALL: Final = _BODY | {"call_argument"}
_FOLLOWERS: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"buffer_extents", "new_buffer"}),
    "buffer_extents": frozenset({"new_buffer"}),
    "new_buffer": frozenset({"wall_time"}),
    "wall_time": frozenset({"pid", "new_cpu"}),
    "pid": frozenset({"new_cpu"}),
    "new_cpu": _BODY,
    "tsc_wrap": _BODY,
    "custom_event": _BODY,
    "typed_event": _BODY,
    "function": _CALL,
    "call_argument": _CALL,
}
"""What may follow what in a block (notes §2.1)."""
_PREAMBLE: Final = frozenset({"new_buffer", "wall_time", "pid"})
"""What no block ends with."""
_NEWER_KINDS: Final[Mapping[int, int]] = {
    MetadataKind.BUFFER_EXTENTS: wire.EXTENTS_VERSION,
    MetadataKind.TYPED_EVENT: wire.PID_VERSION,
    MetadataKind.PID: wire.PID_VERSION,
}
"""Kinds that early versions do not have, with the first that has them."""
_CUT_TSC: Final[Mapping[int, tuple[int, int]]] = {
    MetadataKind.NEW_CPU: (3, 8),
    MetadataKind.TSC_WRAP: (1, 8),
}
"""Of the kinds that the recorder may cut in half, the bytes of the time that are left."""
_CUT_BYTES: Final = wire.METADATA_BYTES // 2
_CUT_REACH: Final = 1 << 36
"""Ticks after the time before, within which the time of a record that was cut is looked for."""


@attrs.define
class _Block:
    """What is known of the buffer that is being read."""

    thread: int | None = None
    process: int | None = None
    base: int | None = None
    """The time from which deltas count; None where no record said it."""
    cpu: int | None = None
    state: str = ""
    """The kind of the record before, as far as order goes."""
    last: int = 0
    """Its offset."""
    settled: bool = False
    """Whether a call, an argument or an event has been read: what its thread is, is decided."""
    timeless: bool = False
    """Whether it has been reported that times are not known."""
    call: Function | None = None
    """The function record before, as far as arguments may follow."""


class _FdrWalk(_Walk):
    """Buffers of records of 8 and 16 bytes (notes §1.4).

    ``limit`` is where the buffer ends: by its extents, or in version 1 by the size of buffers; the
    end of the file where nothing says it.
    """

    def __init__(
        self,
        view: memoryview,
        header: FileHeader,
        found: Found,
        decoder: RecordDecoder,
        *,
        mend: bool,
    ) -> None:
        super().__init__(view, header, found, decoder)
        self.mend = mend
        self.twin: _FdrWalk | None = None
        """The walk that finds what there is to find, once records are read as they were spoilt."""
        self.block: _Block | None = None
        self.garbage = 0
        """Records in a row that make no sense."""
        self.metadata_bit = self.dialect.metadata_bit
        self.function = _function_struct(self.order)
        self.new_buffer = self.dialect.first_byte(MetadataKind.NEW_BUFFER)
        self.extents = self.dialect.first_byte(MetadataKind.BUFFER_EXTENTS)
        self.by_extents = self.version >= wire.EXTENTS_VERSION
        self.page = 0
        """Bytes of a buffer of version 1, where they are believed."""
        self.padded = self.at
        """The end of the padding that comes."""
        self.limit = self.at
        self.bounded = True
        """Whether something that is believed says the limit."""
        if not self.by_extents:
            self.page = header.buffer_size if header.buffer_size >= wire.LEAST_BUFFER else 0
            self.turn_page(self.at)

    def skip(self, offset: int) -> None:
        while self.by_extents and self.sound_extents(self.at):
            end = self.extent(self.at)
            # With sound extents behind it, whatever is in a buffer ends there.
            if end > offset or not self.sound_extents(end):
                return
            self.at = self.limit = self.padded = end

    def records(self) -> Iterator[XrayRecord]:
        findings: Iterator[XrayRecord] | None = None
        while self.at < self.size:
            record = self.record(self.at)
            self.at = record.offset + record.nbytes
            if self.twin is not None:
                findings = findings or self.twin.records()
                while self.twin.at < self.at and next(findings, None) is not None:
                    pass
            yield record
        self.close_block()
        for _ in findings or ():
            pass

    def find(self, code: str, message: str, offset: int) -> None:
        """Note a finding about the record that comes, where no other walk does."""
        if self.twin is None:
            super().find(code, message, offset)

    def record(self, at: int) -> XrayRecord:
        """The record at byte ``at``, where there is one."""
        if at < self.padded:
            return self.space(at)
        if self.garbage >= wire.GARBAGE_RUN:
            self.garbage = 0
            end = self.limit if self.bounded else self.next_extents(at)
            if end > at:
                return self.lost("FXX0109", at, end, f"{end - at} bytes")
        if at == self.limit:
            self.pass_limit(at)
        first = self.view[at]
        metadata = first & self.metadata_bit
        end = at + (wire.METADATA_BYTES if metadata else wire.FUNCTION_BYTES)
        while end > self.limit:
            cut = self.crossing(at, end)
            if cut is not None:
                return cut
        if not metadata:
            return self.called(at)
        kind = self.dialect.kind_of(first)
        if kind not in _METADATA:
            self.garbage += 1
            self.unlink()
            self.find("FXX0105", f"kind {kind}", at)
            raw = self.view[at:end].tobytes()
            return Unknown(offset=at, nbytes=end - at, type=kind, raw=raw)
        return self.metadata(at, MetadataKind(kind))

    # --- Where buffers end ---

    def begins(self, at: int, *firsts: int) -> bool:
        """Whether a record with one of these first bytes may stand at ``at``."""
        return at < self.size and self.view[at] in firsts

    def unbound(self) -> None:
        """Believe no limit but the end of the file."""
        self.page = 0
        self.limit, self.bounded = self.size, False

    def turn_page(self, at: int) -> None:
        """Put the limit of version 1 where the buffer that begins at ``at`` ends by its size."""
        self.limit = at + self.page
        self.bounded = bool(self.page) and self.limit <= self.size
        if not self.bounded:
            self.limit = self.size

    def pass_limit(self, at: int) -> None:
        """Go on at a limit, behind which the file goes on."""
        if self.by_extents:
            if not self.begins(at, self.extents):
                self.find("FXX0108", "", at)
            self.unbound()  # extents bound what follows them
        elif self.block is None or self.begins(at, self.new_buffer):
            self.close_block()
            self.turn_page(at)
        else:
            self.unbound()

    def crossing(self, at: int, end: int) -> Damaged | None:
        """What is lost of a record that runs past the limit to ``end``; None to read it anyway."""
        limit = self.limit
        message = f"a record of {end - at} bytes, and {limit - at} are left"
        if limit == self.size:
            return self.lost("FXX0102", at, limit, message)
        if not self.by_extents:
            if self.begins(limit, self.new_buffer):
                return self.lost("FXX0101", at, limit, message)
        elif self.sound_extents(limit):
            return self.lost("FXX0101", at, limit, message)
        else:
            self.find("FXX0108", message, at)
        self.unbound()
        return None

    def sound_extents(self, at: int) -> bool:
        """Whether extents stand at ``at`` that do not run past the end of the file."""
        end = at + wire.METADATA_BYTES
        return self.begins(at, self.extents) and end <= self.size and self.extent(at) <= self.size

    def extent(self, at: int) -> int:
        """The end of the buffer by the extents at ``at``."""
        codec = _metadata_codec(MetadataKind.BUFFER_EXTENTS, self.version, self.order)
        (nbytes,) = codec.packing.unpack_from(self.view, at)
        return at + wire.METADATA_BYTES + int(nbytes)

    def next_extents(self, at: int) -> int:
        """Where the next buffer begins that makes sense; the end of the file where none does."""
        for start in _places(self.view, self.extents, at):
            behind = start + wire.METADATA_BYTES
            if self.sound_extents(start) and (
                behind == self.size or self.begins(behind, self.new_buffer)
            ):
                return start
        return self.size

    def lost(self, code: str, at: int, end: int, message: str) -> Damaged:
        """A stretch that is no record, behind which something new begins."""
        self.garbage = 0
        self.unlink()
        return self.damaged(code, at, end, message)

    def space(self, at: int) -> Padding:
        """The space behind the end of a buffer of version 1."""
        self.garbage = 0
        data = self.view[at : self.padded]
        padding = Padding(offset=at, nbytes=len(data))
        if not _is_zero(data):
            padding.raw = data
            self.find("FXX0113", f"{len(data)} bytes", at)
        return padding

    # --- Blocks, and the order of their records ---

    def open_block(self) -> _Block:
        """The block, a new one where there is none."""
        if self.block is None:
            self.block = _Block()
        return self.block

    def close_block(self) -> None:
        """End the block, as something else begins or the file ends."""
        block, self.block = self.block, None
        if block is None:
            return
        if block.state in _PREAMBLE:
            self.find("FXX0202", block.state, block.last)
        if block.state and not self.by_extents:
            self.find("FXX0112", "", block.last)

    def follow(self, block: _Block, name: str, at: int) -> None:
        """Hold a record against the one before."""
        if name not in _FOLLOWERS[block.state]:
            self.find("FXX0201", f"{block.state or 'nothing'} to {name}", at)
        block.state, block.last = name, at

    def settle(self, block: _Block, at: int) -> None:
        """Decide what the thread of a block is, where something of it is read."""
        if not block.settled:
            block.settled = True
            if block.thread is None:
                self.find("FXX0204", "", at)

    def unlink(self) -> None:
        """Let no argument belong to a call before."""
        if self.block is not None:
            self.block.call = None

    def process_of(self, block: _Block) -> int:
        """The process of a block's thread (notes §1.4)."""
        if block.process is not None:
            return block.process
        return block.thread or 0 if self.version == wire.EXTENTS_VERSION else 0

    def place(self, record: _Placed, block: _Block) -> None:
        """Say on a record what is known of its thread."""
        record.thread = block.thread or 0
        record.process = self.process_of(block)
        record.frequency = self.frequency

    # --- Records ---

    def called(self, at: int) -> XrayRecord:
        """The function record at ``at`` (notes §1.2)."""
        word, delta = self.function.unpack_from(self.view, at)
        if self.dialect.byte_order == "big":
            kind, number = word >> 28 & 7, word & wire.MAX_FUNCTION_ID
        else:
            kind, number = word >> 1 & 7, word >> 4
        end = at + wire.FUNCTION_BYTES
        name = wire.FUNCTION_NAMES.get(kind)
        if name is None:
            self.garbage += 1
            self.unlink()
            return self.damaged("FXX0104", at, end, f"kind {kind}")
        self.garbage = 0
        block = self.block or self.open_block()
        self.follow(block, "function", at)
        self.settle(block, at)
        block.base = self.later(block, delta, at)
        record = Function(
            offset=at,
            nbytes=wire.FUNCTION_BYTES,
            kind=name,
            function_id=number,
            delta=delta,
            tsc=block.base,
            cpu=block.cpu,
        )
        self.place(record, block)
        if self.dialect.byte_order == "big-lsb" and word & 1:
            record.raw = self.view[at:end].tobytes()
        block.call = record
        return record

    def later(self, block: _Block, delta: int, at: int) -> int | None:
        """The time ``delta`` ticks after the record before (notes §2.2)."""
        if block.base is None:
            if not block.timeless:
                block.timeless = True
                self.find("FXX0203", "", at)
            return None
        return block.base + delta & U64_MAX

    def metadata(self, at: int, kind: MetadataKind) -> XrayRecord:
        """The metadata record of a known kind at ``at`` (notes §1.3)."""
        if kind in _EVENTS:
            return self.event(at, kind)
        self.garbage = 0
        codec = _metadata_codec(kind, self.version, self.order)
        values = {
            field.name: value
            for field, value in zip(
                codec.fields, codec.packing.unpack_from(self.view, at), strict=True
            )
        }
        record = _METADATA[kind](
            offset=at,
            nbytes=wire.METADATA_BYTES,
            padding=codec.padding(self.view, at),
            frequency=self.frequency,
            **values,
        )
        if self.version < _NEWER_KINDS.get(kind, 0):
            self.find("FXX0111", record.record, at)
        if isinstance(record, NewBuffer):
            block = self.block
            if block is None or block.settled or block.thread is not None:
                self.close_block()
                block = self.open_block()
            block.thread = record.thread
        elif isinstance(record, BufferExtents):
            self.bound(record)
        elif isinstance(record, EndOfBuffer) and self.version >= wire.EXTENTS_VERSION:
            self.find("FXX0110", "", at)
            self.unlink()
            return record
        block = self.open_block()
        self.follow(block, record.record, at)
        if isinstance(record, CallArgument):
            self.argument(block, record)
            return record
        block.call = None
        if isinstance(record, NewCpu | TscWrap):
            self.clock(block, record)
        elif isinstance(record, Pid):
            if not block.settled:
                block.process = record.process
        elif isinstance(record, EndOfBuffer):
            self.block = None
            self.padded = self.buffer_end(at + wire.METADATA_BYTES)
        return record

    def bound(self, record: BufferExtents) -> None:
        """Begin the buffer of these extents."""
        self.close_block()
        self.by_extents = True
        self.page = 0
        self.limit = record.offset + wire.METADATA_BYTES + record.bytes
        self.bounded = self.limit <= self.size
        if not self.bounded:
            over = self.limit - self.size
            self.find("FXX0103", f"by {over} bytes", record.offset)
            self.limit = self.size

    def buffer_end(self, end: int) -> int:
        """Where the space of a version-1 buffer ends whose records end at ``end``."""
        follows = self.begins(end, self.new_buffer)
        if self.by_extents:
            return end if follows or self.begins(end, self.extents) else self.limit
        if self.page:
            used = end - wire.HEADER_BYTES
            boundary = wire.HEADER_BYTES + -(-used // self.page) * self.page
            if boundary == self.size or self.begins(boundary, self.new_buffer):
                return boundary
            if boundary < self.size and not follows:
                return boundary
            self.unbound()
        return end if follows else self.size

    def argument(self, block: _Block, record: CallArgument) -> None:
        """Find the call of an argument."""
        self.settle(block, record.offset)
        self.place(record, block)
        call, record.row_offset = block.call, record.offset
        if call is None:
            self.find("FXX0207", "", record.offset)
        else:
            record.row_offset = call.offset
            record.tsc, record.cpu = call.tsc, call.cpu

    def clock(self, block: _Block, record: NewCpu | TscWrap) -> None:
        """Take the time, and the CPU, that a record says."""
        base, tsc = block.base, record.tsc
        if base is not None and abs(tsc - base) > wire.CUT_RECORD_JUMP:
            mended = self.cut_time(record, base)
            if mended is None:
                self.find("FXX0206", f"{tsc - base:+} ticks", record.offset)
            else:
                self.find("FXX0205", f"its time is {mended} ticks", record.offset)
                if self.mend:
                    record.tsc = mended
                    record.nbytes = _CUT_BYTES
                elif self.twin is None:
                    self.split(record, mended)
        if isinstance(record, NewCpu):
            block.cpu = record.cpu
        else:
            record.cpu = block.cpu
        block.base = record.tsc
        self.place(record, block)

    def split(self, record: NewCpu | TscWrap, mended: int) -> None:
        """Let another walk go on with the findings, as this one goes on with what is spoilt."""
        twin = copy.copy(self)
        twin.mend = True
        twin.block = copy.copy(self.open_block())
        twin.block.base = mended
        if isinstance(record, NewCpu):
            twin.block.cpu = record.cpu
        twin.at = record.offset + _CUT_BYTES
        self.twin = twin

    def cut_time(self, record: NewCpu | TscWrap, base: int) -> int | None:
        """The time of a record whose second half was overwritten (notes §0.7).

        None where it was not: where the bits that are left lead to no time soon after ``base``,
        or no record stands in the second half. Seen on little-endian machines alone.
        """
        if self.order != "little":
            return None
        start, stop = (record.offset + each for each in _CUT_TSC[record.kind])
        period = 1 << 8 * (stop - start)
        low = int.from_bytes(self.view[start:stop], "little")
        mended = base - base % period + low
        if mended < base:
            mended += period
        if not base <= mended < min(base + _CUT_REACH, U64_MAX + 1):
            return None
        word, _ = self.function.unpack_from(self.view, record.offset + _CUT_BYTES)
        if word & 1:
            sound = word >> 1 & 0x7F in _METADATA
        else:
            sound = word >> 1 & 7 in wire.FUNCTION_NAMES and bool(word >> 4)
        return mended if sound else None

    def event(self, at: int, kind: MetadataKind) -> XrayRecord:
        """The event at ``at``, whose first 16 bytes are there, and its payload (notes §1.3)."""
        start = at + wire.METADATA_BYTES
        codec = _metadata_codec(kind, self.version, self.order)
        values = {
            field.name: value
            for field, value in zip(
                codec.fields, codec.packing.unpack_from(self.view, at), strict=True
            )
        }
        size = values.pop("size")
        if size < 0:
            return self.lost("FXX0106", at, self.limit, f"size {size}")
        end = start + size
        while end > self.limit:
            cut = self.crossing(at, end)
            if cut is not None:
                return cut
        self.garbage = 0
        name = _EVENTS[kind].record
        if self.version < _NEWER_KINDS.get(kind, 0):
            self.find("FXX0111", name, at)
        if not size:
            self.find("FXX0107", "", at)
        block = self.open_block()
        self.follow(block, name, at)
        self.settle(block, at)
        block.call = None
        if "tsc" in values:
            tsc = values["absolute"] = values.pop("tsc")
            cpu = values["own_cpu"] = values.pop("cpu", None)
        else:
            tsc = block.base = self.later(block, values["delta"], at)
            cpu = block.cpu
        if self.max_record and end - at > self.max_record:
            return self.damaged("FXX0114", at, end, f"a record of {end - at} bytes")
        record = _EVENTS[kind](
            offset=at,
            nbytes=end - at,
            data=self.view[start:end].tobytes(),
            padding=codec.padding(self.view, at),
            tsc=tsc,
            cpu=cpu,
            **values,
        )
        self.place(record, block)
        return record


def _places(view: memoryview, value: int, at: int) -> Iterator[int]:
    """Where bytes of this value stand from ``at`` on, a piece of the file at a time."""
    piece = 1 << 12
    while at < len(view):
        chunk = view[at : at + piece].tobytes()
        found = chunk.find(value)
        while found >= 0:
            yield at + found
            found = chunk.find(value, found + 1)
        at += len(chunk)
        piece = min(2 * piece, 1 << 20)


def _is_zero(data: memoryview) -> bool:
    """Whether all bytes are zero."""
    piece = 1 << 16
    return not any(
        data[at : at + piece].tobytes().strip(b"\0") for at in range(0, len(data), piece)
    )


# --- Encoder --------------------------------------------------------------------------------------


class RecordEncoder:
    """Writes records, or their JSON, as the bytes of one of the formats.

    The header of the file comes first: it says the version and the byte order, which
    ``byte_order`` says instead where it is not empty. ``raw`` of a header counts where it decodes
    to the fields that the record has, so that what was not edited comes out as it was, and an edit
    takes effect.
    """

    def __init__(self, form: str, *, byte_order: str = "") -> None:
        self.form = form
        self._byte_order = asked_order({"byte_order": byte_order})
        self._dialect: Dialect | None = None

    def encode(self, record: XrayRecord | Mapping[str, Any]) -> bytes:
        """The record's bytes. Raises WriteRefusedError (FXX0501 to FXX0505), nothing changed."""
        if not isinstance(record, XrayRecord):
            record = from_json(record, self.form)
        if type(record) is not _KINDS[self.form].get(record.record):
            raise refusal("FXX0501", f"a {self.form} trace has no record {record.record!r}")
        if isinstance(record, FileHeader):
            return self._header(record)
        if isinstance(record, Damaged):
            return record.pack()
        if self._dialect is None:
            raise refusal("FXX0501", f"{record.record}: a file_header must come first")
        if isinstance(record, Function) and record.raw is not None:
            return self._unaligned(record, self._dialect)
        return record.pack(self._dialect)

    def close(self) -> bytes:
        """What was held back: nothing."""
        return b""

    def _header(self, record: FileHeader) -> bytes:
        if self._dialect is not None:
            raise refusal("FXX0501", f"{record.record}: there is one already")
        if self._byte_order:
            record = attrs.evolve(record, byte_order=self._byte_order)
        if self.form == BASIC_FORM and record.byte_order != "little":
            record = attrs.evolve(record, byte_order="big")
        data = record.pack()
        if record.raw is not None:
            raw = bytes(record.raw)
            if len(raw) == wire.HEADER_BYTES and _says(raw, record, self.form):
                data = raw
        self._dialect = Dialect(self.form, record.version, record.byte_order)
        return data

    @staticmethod
    def _unaligned(record: Function, dialect: Dialect) -> bytes:
        """A function record whose word has a bit that no field has."""
        data = record.pack(dialect)
        raw = bytes(record.raw or b"")
        if len(raw) == len(data) and raw[:3] + bytes([raw[3] & ~1]) + raw[4:] == data:
            return raw
        return data


def _says(raw: bytes, record: FileHeader, form: str) -> bool:
    """Whether the bytes of a header decode to what the record says."""
    found = read_header(raw, form, record.byte_order)
    return found is not None and attrs.evolve(found, raw=None) == attrs.evolve(record, raw=None)
