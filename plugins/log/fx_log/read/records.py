"""Records of the log formats, one at a time: lossless objects, their JSON, decoder and encoder.

This is the decoder for clarity; `kernels.py` is the one for speed, and shares nothing with it but
the constants of `layout.py`. What records mean (well-known arguments, who logged) is in
`entries.py`.

Strings are Python strings; where the file's bytes are no UTF-8 they hold surrogate escapes, as
`os.fsdecode` makes them, so that nothing is lost. Times are nanoseconds, sizes and offsets bytes.
"""

from __future__ import annotations

import math
import reprlib
import struct
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from fx_log import layout as wire
from fx_log.layout import ArgType
from fx_log.rules import RULES
from fxframework.errors import WriteRefusedError
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX, WORD, pad8, padding, to_i64, view_of
from fxframework.kit.json_fields import (
    CANONICAL_NAN,
    JsonFields,
    bits_of,
    double_of,
    exactly,
    show_double,
    show_text,
    unfit,
)
from fxframework.kit.lossless import DamagedRecord, LosslessRecord, record_of_json
from fxframework.model.diagnostics import Diagnostics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview

__all__ = [
    "FORMS",
    "Argument",
    "Attribution",
    "Damaged",
    "LegacyPacket",
    "LogFileRecord",
    "LogRecord",
    "Padding",
    "RecordDecoder",
    "RecordEncoder",
    "RingEntry",
    "RingHeader",
    "StreamHeader",
    "from_json",
    "refusal",
]

FORMS = ("log", "log-legacy", "log-legacy-stream", "log-ring")
"""The formats, which differ in how their records are framed."""
Value = None | bool | int | float | str | bytes
Find = Callable[[str, str, int], None]
"""Takes a finding: code, message, byte offset."""

I64_MIN, I64_MAX = -(1 << 63), (1 << 63) - 1
U32_MAX = (1 << 32) - 1
DAMAGED = "damaged"
"""The type of an argument that could not be decoded."""
_U64 = struct.Struct("<Q")
_TWO = struct.Struct("<QQ")
_PACKET = struct.Struct("<QQqiI")
_SUFFIX = struct.Struct("<IIQ")
_LENGTH = struct.Struct("<I")
_RESERVED = wire.HEADER.reserved_mask
_ARGUMENT_RESERVED = tuple(
    wire.ARGUMENT_LAYOUTS.get(number, wire.ARGUMENT).reserved_mask for number in range(16)
)


def refusal(code: str, message: str) -> WriteRefusedError:
    """The refusal of something that cannot be written, with the catalogue's remedy."""
    return WriteRefusedError(message, code=code, remedy=RULES[code].remedy)


def _refuse(number: str, message: str) -> WriteRefusedError:
    return refusal(f"FXL{number}", message)


def _check(what: str, name: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise unfit(_refuse, what, name, value, least, most)
    return value


def encoded(what: str, name: str, text: str, limit: int) -> bytes:
    """The bytes of a text; WriteRefusedError over ``limit`` bytes, or for a lone surrogate."""
    try:
        data = text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise refusal("FXL0403", f"{what}: {name} holds a lone surrogate: {error}") from None
    if len(data) > limit:
        raise refusal(
            "FXL0405", f"{what}: {name} has {len(data)} bytes, and the format holds {limit}"
        )
    return data


def _reference(data: bytes) -> int:
    """The string reference of these bytes."""
    return wire.INLINE | len(data) if data else 0


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- Arguments -----------------------------------------------------------------------------------

_NUMBERS = {name: number for number, name in wire.ARG_NAMES.items()}


@attrs.define(kw_only=True)
class Argument:
    """A named value of a record (003, Argument header).

    ``type`` is one of null int64 uint64 double string bool; the number of a type that logs do not
    have, ``value`` then being the words behind the name as bytes; or ``damaged``, ``value`` then
    being all words that the argument seems to have, with ``code``, the finding that says why.
    """

    name: str
    type: str | int
    value: Value = attrs.field(default=None, eq=exactly)
    bits: int | None = None
    """The 64 bits of a double that is a NaN, where they are not the usual ones."""
    code: str | None = None
    offset: int = attrs.field(default=0, eq=False)
    """Byte offset of its header in the (unpacked) file."""

    def to_json(self) -> dict[str, Any]:
        """The argument as CONTRACTS §3 shows it."""
        out: dict[str, Any] = {}
        show_text(out, "name", self.name)
        out["type"] = self.type
        if self.code is not None:
            out["code"] = self.code
        value = self.value
        if isinstance(value, float):
            show_double(out, "value", value, self.bits)
        elif isinstance(value, str):
            show_text(out, "value", value)
        else:
            out["value"] = value.hex() if isinstance(value, bytes) else value
        return out

    @classmethod
    def from_json(cls, given: Any, what: str = "argument") -> Argument:
        """An argument from its JSON. Raises WriteRefusedError (FXL0401 to FXL0404)."""
        if not isinstance(given, Mapping):
            raise refusal("FXL0401", f"{what}: an argument is an object, not {given!r}")
        form = JsonFields(what, given, _refuse)
        if given.get("type") == DAMAGED:
            form.used.add("type")
            argument = cls(
                name=form.text("name"),
                type=DAMAGED,
                value=form.octets("value"),
                code=form.text("code"),
            )
        else:
            argument = cls._typed(form)
        form.finish()
        return argument

    @classmethod
    def _typed(cls, form: JsonFields) -> Argument:
        type = form.one_of("type", _NUMBERS, wire.ARG_TYPE.limit)
        value: Value = None
        bits = None
        if type == "null":
            if form.given.get("value") is not None:
                raise form.wrong("value", "null")
            form.used.add("value")
        elif type == "int64":
            value = form.within("value", I64_MIN, I64_MAX)
        elif type == "uint64":
            value = form.within("value", 0, U64_MAX)
        elif type == "double":
            value, bits = form.double("value")
        elif type == "string":
            value = form.text("value")
        elif type == "bool":
            value = form.flag("value")
        else:
            value = form.octets("value")
        return cls(name=form.text("name"), type=type, value=value, bits=bits)

    def pack(self, what: str = "argument") -> bytes:
        """The argument's bytes.

        Raises WriteRefusedError where the format cannot hold it (FXL0403 to FXL0405, FXL0407).
        """
        value = self.value
        if self.type == DAMAGED:
            assert isinstance(value, bytes)  # noqa: S101 (of this type it is)
            return self._words(what, value)
        what = f"{what}, argument {reprlib.repr(self.name)}"
        name = encoded(what, "its name", self.name, wire.MAX_STRING)
        number = _NUMBERS[self.type] if isinstance(self.type, str) else self.type
        header = number | _reference(name) << wire.NAME_REF.low
        rest = b""
        if self.type == "string":
            assert isinstance(value, str)  # noqa: S101
            data = encoded(what, "its value", value, wire.MAX_STRING)
            header |= _reference(data) << wire.VALUE_REF.low
            rest = pad8(data)
        elif self.type == "bool":
            header |= bool(value) << wire.BOOL_VALUE.low
        elif isinstance(value, bytes):
            rest = self._words(what, value)
        elif isinstance(value, float):
            rest = _U64.pack(self._bits(value))
        elif isinstance(value, int):
            signed = self.type == "int64"
            least, most = (I64_MIN, I64_MAX) if signed else (0, U64_MAX)
            rest = _U64.pack(_check(what, "value", value, least, most) & U64_MAX)
        words = 1 + (len(name) + padding(len(name)) + len(rest)) // WORD
        if words > wire.ARG_SIZE.limit:
            raise refusal(
                "FXL0407", f"{what}: it needs {words} words, a size field holds "
                f"{wire.ARG_SIZE.limit}"
            )  # fmt: skip
        return _U64.pack(header | words << wire.ARG_SIZE.low) + pad8(name) + rest

    def _bits(self, value: float) -> int:
        if math.isnan(value):
            return CANONICAL_NAN if self.bits is None else self.bits
        return bits_of(value)

    @staticmethod
    def _words(what: str, data: bytes) -> bytes:
        if len(data) % WORD:
            raise refusal("FXL0404", f"{what}: its value is no whole number of 8-byte words")
        return data


class _Damage(Exception):  # noqa: N818 (raised and caught within an argument, no error of ours)
    """The argument cannot be decoded; the code says why."""


class _Arguments:
    """The arguments of a record, read one after another (003, Argument header; notes §4.1)."""

    def __init__(self, data: memoryview, at: int, end: int, place: Callable[[int], int]) -> None:
        self.data = data
        self.at = at
        self.end = end
        self.place = place
        """Of a position in ``data``, the byte offset in the file."""
        self.findings: list[tuple[str, str, int]] = []
        self.reserved: int | None = None
        self.unpadded: int | None = None
        self.messages = 0
        self.start = at

    def find(self, code: str, message: str = "") -> None:
        """Note a finding at the argument being read."""
        self.findings.append((code, message, self.place(self.start)))

    def read(self) -> tuple[Argument, ...]:
        """All of them."""
        arguments = []
        while self.at < self.end:
            arguments.append(self.argument())
        return tuple(arguments)

    def argument(self) -> Argument:
        """The next one; behind one that cannot be decoded its size leads on, or nothing does."""
        start = self.start = self.at
        header = self.word()
        number = header & wire.ARG_TYPE.limit
        if header & _ARGUMENT_RESERVED[number] and self.reserved is None:
            self.reserved = self.place(start)
        try:
            argument = self.decode(header, number)
        except _Damage as damage:
            code = damage.args[0]
            self.find(code)
            size = WORD * wire.ARG_SIZE.get(header)
            self.at = start + size if 0 < size <= self.end - start else self.end
            return Argument(
                name="",
                type=DAMAGED,
                value=self.data[start : self.at].tobytes(),
                code=code,
                offset=self.place(start),
            )
        argument.offset = self.place(start)
        return argument

    def decode(self, header: int, number: int) -> Argument:
        """The argument with this header, which stands before the position."""
        start = self.start
        size = WORD * wire.ARG_SIZE.get(header)
        if number > ArgType.BOOL:
            self.find("FXL0113", f"type {number}")
        name = self.string(wire.NAME_REF.get(header))
        if not _is_utf8(name):
            self.find("FXL0107", "a name is not UTF-8")
        if not name and number != ArgType.NULL:
            self.find("FXL0118")
        lossy = False
        if name == b"message":
            self.messages += 1
            lossy = self.messages == 1
        argument = Argument(name=_text(name), type=wire.ARG_NAMES.get(number, number))
        if number == ArgType.NULL:
            self.find("FXL0110")
        elif number == ArgType.BOOL:
            argument.value = bool(wire.BOOL_VALUE.get(header))
        elif number == ArgType.STRING:
            data = self.string(wire.VALUE_REF.get(header))
            if not _is_utf8(data):
                self.find("FXL0108" if lossy else "FXL0107")
            argument.value = _text(data)
        elif number in wire.ARG_NAMES:
            if self.at == self.end:
                raise _Damage("FXL0115")
            self.number(argument, number, self.word())
        else:
            if not self.at <= start + size <= self.end:
                raise _Damage("FXL0116")
            if number in wire.TRACE_TYPES:
                self.find("FXL0112", f"type {number}")
            argument.value = self.data[self.at : start + size].tobytes()
            self.at = start + size
        if header and size != self.at - start:
            self.find("FXL0104", f"{size // WORD} words, and it has {(self.at - start) // WORD}")
        return argument

    def number(self, argument: Argument, number: int, word: int) -> None:
        """Take the value of a number."""
        if number == ArgType.DOUBLE:
            value = double_of(word)
            argument.value = value
            if math.isnan(value):
                argument.value = math.nan
                argument.bits = None if word == CANONICAL_NAN else word
        else:
            argument.value = to_i64(word) if number == ArgType.INT64 else word

    def word(self) -> int:
        """The next word; there is one."""
        at = self.at
        self.at = at + WORD
        value: int = _U64.unpack_from(self.data, at)[0]
        return value

    def string(self, reference: int) -> bytes:
        """The bytes of a string reference (003, Primitives); their padding is stepped over."""
        if not reference:
            return b""
        if not reference & wire.INLINE:
            raise _Damage("FXL0109")
        nbytes = reference & wire.MAX_STRING
        if not nbytes:
            self.find("FXL0117")
        at, stop = self.at, self.at + nbytes
        if stop > self.end:
            raise _Damage("FXL0114")
        self.at = stop + padding(nbytes)
        if self.unpadded is None and any(self.data[stop : self.at]):
            self.unpadded = self.place(self.start)
        return self.data[at:stop].tobytes()


# --- Records -------------------------------------------------------------------------------------


@attrs.define(kw_only=True)
class LogFileRecord(LosslessRecord):
    """Anything that one of the formats of logs holds."""

    def pack(self) -> bytes:
        """The bytes that the fields give; ``raw`` is not used.

        Raises WriteRefusedError where the format cannot hold a value.
        """
        raise refusal("FXL0408", f"{self.record}: it has no bytes but its raw ones")


@attrs.define(kw_only=True)
class LogRecord(LogFileRecord):
    """A structured log record (003, Records)."""

    record: ClassVar[str] = "log"

    timestamp: int
    """Nanoseconds, signed; of which clock, the bytes do not say (notes §1.1)."""
    severity: int
    """The byte as it stands."""
    tag_bits: int = 0
    """The 32 bits of tag and control bit (notes §1.1)."""
    args: tuple[Argument, ...] = ()
    suffix: Attribution | None = attrs.field(default=None, eq=False)
    """The attribution that follows it in the file, where suffixes are read."""

    @property
    def ns(self) -> int:
        """Its time."""
        return self.timestamp

    @property
    def control(self) -> bool:
        """Whether it is a manifest, or says how many logs were lost (notes §1.5)."""
        return bool(self.tag_bits & wire.CONTROL)

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        out["timestamp"] = self.timestamp
        out["severity"] = self.severity
        out["tag_bits"] = self.tag_bits
        out["args"] = [argument.to_json() for argument in self.args]

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """The fields, from JSON."""
        form.used |= {"tag_bits", "args"}
        given = form.given.get("args", ())
        if not isinstance(given, list | tuple):
            raise form.wrong("args", "a list of arguments")
        return {
            "timestamp": form.number("timestamp"),
            "severity": form.number("severity"),
            "tag_bits": form.number("tag_bits") if "tag_bits" in form else 0,
            "args": tuple(
                Argument.from_json(each, f"{form.what}, argument {number}")
                for number, each in enumerate(given)
            ),
        }

    def pack(self) -> bytes:
        """The bytes that the fields give.

        Raises WriteRefusedError: FXL0404 for a number that does not fit, FXL0405 for a string
        and FXL0407 for a record that is too long.
        """
        header = wire.RECORD_TYPE
        header |= _check("log", "tag_bits", self.tag_bits, 0, U32_MAX) << wire.TAG_BITS.low
        header |= _check("log", "severity", self.severity, 0, 255) << wire.SEVERITY.low
        time = _check("log", "timestamp", self.timestamp, I64_MIN, I64_MAX) & U64_MAX
        rest = b"".join([argument.pack("log") for argument in self.args])
        words = wire.MIN_RECORD_WORDS + len(rest) // WORD
        if words > wire.MAX_RECORD_WORDS:
            raise refusal(
                "FXL0407",
                f"log: it needs {words} words, and a record has at most {wire.MAX_RECORD_WORDS}",
            )
        return _TWO.pack(header | words << wire.SIZE.low, time) + rest


@attrs.define(kw_only=True)
class Attribution(LogFileRecord):
    """Who logged the record before it: the suffix of 2025 (notes §1.5)."""

    record: ClassVar[str] = "attribution"

    moniker: str
    url: str
    rolled_out: int = 0
    """Logs that rolled out of the buffer before that record."""
    row_offset: int | None = attrs.field(default=None, eq=False)
    """Offset of that record, with which this one stays or goes (``Window.records``)."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        show_text(out, "moniker", self.moniker)
        show_text(out, "url", self.url)
        out["rolled_out"] = self.rolled_out

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """The fields, from JSON."""
        return {
            "moniker": form.text("moniker"),
            "url": form.text("url"),
            "rolled_out": form.number("rolled_out"),
        }

    def pack(self) -> bytes:
        """The bytes that the fields give; WriteRefusedError for what does not fit."""
        moniker = encoded("attribution", "moniker", self.moniker, U32_MAX)
        url = encoded("attribution", "url", self.url, U32_MAX)
        rolled_out = _check("attribution", "rolled_out", self.rolled_out, 0, U64_MAX)
        return _SUFFIX.pack(len(moniker), len(url), rolled_out) + pad8(moniker) + pad8(url)


@attrs.define(kw_only=True)
class LegacyPacket(LogFileRecord):
    """A packet as loggers sent them before there were structured records (notes §3)."""

    record: ClassVar[str] = "legacy_packet"

    pid: int
    tid: int
    timestamp: int
    """Nanoseconds of the monotonic clock."""
    severity: int
    """Signed, as on the wire."""
    dropped_logs: int = 0
    tags: tuple[str, ...] = ()
    message: str = ""

    @property
    def ns(self) -> int:
        """Its time."""
        return self.timestamp

    @property
    def raw_severity(self) -> int:
        """The severity as readers of today clamp it to a byte."""
        return min(max(self.severity, 0), 255)

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        out["pid"] = self.pid
        out["tid"] = self.tid
        out["timestamp"] = self.timestamp
        out["severity"] = self.severity
        out["raw_severity"] = self.raw_severity
        out["dropped_logs"] = self.dropped_logs
        tags: list[dict[str, Any]] = []
        for tag in self.tags:
            shown: dict[str, Any] = {}
            show_text(shown, "tag", tag)
            tags.append(shown)
        out["tags"] = [shown["tag"] for shown in tags]
        if any(len(shown) > 1 for shown in tags):
            out["tags_bytes_hex"] = [shown.get("tag_bytes_hex") for shown in tags]
        show_text(out, "message", self.message)

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """The fields, from JSON; ``raw_severity`` follows from ``severity``."""
        form.used |= {"raw_severity", "dropped_logs", "tags", "tags_bytes_hex"}
        given = form.given.get("tags", [])
        beside = form.given.get("tags_bytes_hex", [])
        if not isinstance(given, list | tuple) or not isinstance(beside, list | tuple):
            raise form.wrong("tags", "a list of texts")
        tags = []
        for number, tag in enumerate(given):
            one = {"tag": tag}
            if number < len(beside) and beside[number] is not None:
                one["tag_bytes_hex"] = beside[number]
            tags.append(JsonFields(f"{form.what}, tag {number}", one, _refuse).text("tag"))
        return {
            "pid": form.number("pid"),
            "tid": form.number("tid"),
            "timestamp": form.number("timestamp"),
            "severity": form.number("severity"),
            "dropped_logs": form.number("dropped_logs") if "dropped_logs" in form else 0,
            "tags": tuple(tags),
            "message": form.text("message"),
        }

    def pack(self) -> bytes:
        """The packet that the fields give.

        Raises WriteRefusedError: FXL0403 for a zero byte in the message and an empty tag, FXL0404
        for a number that does not fit, FXL0405 for a tag over 63 bytes, FXL0406 for a sixth one,
        FXL0407 for a packet over 32,768 bytes.
        """
        what = self.record
        if len(self.tags) > wire.MAX_TAGS:
            raise refusal("FXL0406", f"{what}: {len(self.tags)} tags, at most {wire.MAX_TAGS}")
        header = _PACKET.pack(
            _check(what, "pid", self.pid, 0, U64_MAX),
            _check(what, "tid", self.tid, 0, U64_MAX),
            _check(what, "timestamp", self.timestamp, I64_MIN, I64_MAX),
            _check(what, "severity", self.severity, -(1 << 31), (1 << 31) - 1),
            _check(what, "dropped_logs", self.dropped_logs, 0, U32_MAX),
        )
        tags = b""
        for tag in self.tags:
            data = encoded(what, "a tag", tag, wire.MAX_TAG_BYTES)
            if not data:
                raise refusal("FXL0403", f"{what}: a tag is empty, which ends the tags")
            tags += bytes([len(data)]) + data
        message = encoded(what, "message", self.message, U32_MAX)
        if b"\0" in message:
            raise refusal("FXL0403", f"{what}: the message holds a zero byte, which ends it")
        packet = header + tags + b"\0" + message + b"\0"
        if len(packet) > wire.MAX_PACKET:
            raise refusal(
                "FXL0407", f"{what}: {len(packet)} bytes, and a packet has {wire.MAX_PACKET}"
            )
        return packet


@attrs.define(kw_only=True)
class StreamHeader(LogFileRecord):
    """The header of our container of legacy packets (`layout`)."""

    record: ClassVar[str] = "stream_header"

    version: int = wire.STREAM_VERSION

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        out["version"] = self.version

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """The fields, from JSON."""
        return {"version": form.within("version", wire.STREAM_VERSION, wire.STREAM_VERSION)}

    def pack(self) -> bytes:
        """The header's bytes."""
        return wire.STREAM_MAGIC + _LENGTH.pack(self.version) + bytes(4)


@attrs.define(kw_only=True)
class RingHeader(LogFileRecord):
    """The first page of a ring (notes §1.5)."""

    record: ClassVar[str] = "ring_header"

    head: int
    """Bytes ever written."""
    tail: int
    """Bytes ever given up."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        out["head"] = self.head
        out["tail"] = self.tail

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """The fields, from JSON."""
        return {"head": form.number("head"), "tail": form.number("tail")}

    def pack(self) -> bytes:
        """The page's bytes."""
        what = self.record
        words = (
            _check(what, "head", self.head, 0, U64_MAX),
            _check(what, "tail", self.tail, 0, U64_MAX),
        )
        return _TWO.pack(*words).ljust(wire.RING_PAGE, b"\0")

    def sound(self, capacity: int) -> bool:
        """Whether head and tail make sense in a ring of so many bytes."""
        return (
            not (self.head % WORD or self.tail % WORD or capacity % WORD)
            and 0 <= self.head - self.tail <= capacity
        )


@attrs.define(kw_only=True)
class RingEntry(LogFileRecord):
    """An entry of a ring: what the kernel says of it, and what a component wrote (notes §1.5)."""

    record: ClassVar[str] = "ring_entry"

    tag: int
    log: LogRecord | None = None
    """The record of the payload; None where it holds none."""
    payload: bytes = b""
    """The payload where it holds no record, else what stands behind the record."""

    @property
    def ns(self) -> int | None:
        """The time of the record."""
        return None if self.log is None else self.log.timestamp

    @property
    def length(self) -> int:
        """Bytes of the payload."""
        return len(self._payload())

    def _payload(self) -> bytes:
        if self.log is None:
            return self.payload
        raw = self.log.raw
        return (self.log.pack() if raw is None else bytes(raw)) + self.payload

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        out["tag"] = self.tag
        out["length"] = self.length
        if self.log is None:
            out["payload_hex"] = self.payload.hex()
            return
        inner: dict[str, Any] = {}
        self.log.show(inner)
        if self.log.raw is not None:
            inner["raw"] = self.log.raw.hex()
        out["log"] = inner
        if self.payload:
            out["trailing_hex"] = self.payload.hex()

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """The fields, from JSON; ``length`` follows from the rest."""
        form.used.add("length")
        values: dict[str, Any] = {"tag": form.number("tag")}
        if "log" not in form:
            return values | {"payload": form.octets("payload_hex")}
        given = form.need("log")
        if not isinstance(given, Mapping):
            raise form.wrong("log", "an object")
        inner = JsonFields(f"{form.what}, log", given, _refuse)
        values["log"] = LogRecord(
            raw=inner.octets("raw") if "raw" in inner else None, **LogRecord.parse(inner)
        )
        inner.finish()
        if "trailing_hex" in form:
            values["payload"] = form.octets("trailing_hex")
        return values

    def pack(self) -> bytes:
        """The entry's bytes, padding included; WriteRefusedError for what does not fit."""
        payload = self._payload()
        tag = _check(self.record, "tag", self.tag, 0, U64_MAX)
        entry = pad8(_TWO.pack(tag, len(payload)) + payload)
        if len(entry) > wire.RING_MAX_ENTRY:
            raise refusal(
                "FXL0407", f"{self.record}: {len(entry)} bytes, at most {wire.RING_MAX_ENTRY}"
            )
        return entry


@attrs.define(kw_only=True)
class Padding(LogFileRecord):
    """Zero bytes where a record should begin, or that a ring does not use; ``nbytes`` of them."""

    record: ClassVar[str] = "padding"


@attrs.define(kw_only=True)
class Damaged(DamagedRecord, LogFileRecord):
    """Bytes in which no sound record was found; ``raw`` may be a view of the file."""


_KINDS: dict[str, type[LogFileRecord]] = {
    kind.record: kind
    for kind in (
        LogRecord,
        Attribution,
        LegacyPacket,
        StreamHeader,
        RingHeader,
        RingEntry,
        Padding,
        Damaged,
    )
}


def from_json(given: Any) -> LogFileRecord:
    """The record that a JSON object of CONTRACTS §3 says.

    ``offset`` and ``nbytes`` are kept as places, where they are numbers; padding has its length
    from ``nbytes``. Raises WriteRefusedError: FXL0401 for no such record, FXL0402 for a field that
    is missing or unknown, FXL0403 and FXL0404 for a value of the wrong kind or size.
    """
    return record_of_json(given, _KINDS, "a log", _refuse)


# --- Framing: where records begin and end ---------------------------------------------------------


def plausible(header: int, room: int) -> bool:
    """Whether a word could be the header of a record that has ``room`` bytes (notes §1.6)."""
    size = WORD * wire.SIZE.get(header)
    return (
        header & wire.TYPE.limit == wire.RECORD_TYPE
        and 2 * WORD <= size <= room
        and not header & _RESERVED
        and 1 <= wire.SEVERITY.get(header) <= 0x7F
    )


def _resume(view: memoryview, at: int) -> int:
    """Where to go on after damage at byte ``at``: at the next run of plausible records, or not.

    The run is of SOUND_RUN records, or of fewer that end where the file does.
    """
    whole = len(view) // WORD * WORD
    for start in _candidates(view, at + WORD, whole):
        end = start
        for _ in range(wire.SOUND_RUN):
            (header,) = _U64.unpack_from(view, end)
            if not plausible(header, whole - end):
                break
            end += WORD * wire.SIZE.get(header)
            if end == whole:
                return start
        else:
            return start
    return len(view)


def _candidates(view: memoryview, start: int, whole: int) -> Iterator[int]:
    """Places from ``start`` on whose word is a plausible header, a piece of the file at a time."""
    import numpy as np

    nbytes = 64 * WORD
    while start < whole:
        stop = min(start + nbytes, whole)
        words = np.frombuffer(view[start:stop], "<u8").astype(np.uint64)
        severity = wire.SEVERITY.get(words)
        size = wire.SIZE.get(words)
        room = np.uint64((whole - start) // WORD) - np.arange(len(words), dtype=np.uint64)
        fits = (
            (wire.TYPE.get(words) == wire.RECORD_TYPE)
            & (size >= wire.MIN_RECORD_WORDS)
            & (size <= room)
            & (words & np.uint64(_RESERVED) == 0)
            & (severity >= 1)
            & (severity <= 0x7F)
        )
        for number in np.flatnonzero(fits).tolist():
            yield start + number * WORD
        start = stop
        nbytes = min(2 * nbytes, 1 << 19)  # little to look at where damage is short


def _zeros_end(view: memoryview, at: int) -> int:
    """The end of the run of zero words that begins at byte ``at``."""
    whole = len(view) // WORD * WORD
    piece = 1 << 12
    while at < whole:
        chunk = view[at : min(at + piece, whole)].tobytes()
        left = len(chunk.lstrip(b"\0"))
        at += (len(chunk) - left) // WORD * WORD
        if left:
            return at
    return at


# --- Decoder --------------------------------------------------------------------------------------


def _unheard(code: str, message: str = "", offset: int = 0) -> None:
    """Where findings go that somebody else makes again."""


def _stays(offset: int) -> int:
    return offset


class RecordDecoder:
    """Reads a file of logs record by record.

    ``form`` is one of ``FORMS``. Findings go to ``diagnostics``; of ``limits``, ``max_record`` is
    heeded. ``options`` are the reader's: ``suffix``, ``fidl_limits``, and those of ``entries``.
    Nothing that the bytes say raises an exception, but for the StrictError of strict diagnostics.
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
        self.options = options or {}

    def records(self, data: Data) -> Iterator[LogFileRecord]:
        """Every record, padding and damage included; their ``nbytes`` add up to ``len(data)``.

        In file order; of a ring in reading order, its header first and unused space last.
        """
        from fx_log.read.entries import Meaning

        meaning = Meaning(self.form, self.options)
        found: list[tuple[str, str, int]] = []
        for index, record in enumerate(self._framed(view_of(data), found)):
            meaning.entry(record, lambda *finding: found.append(finding))
            if self.diagnostics is not None:
                for code, message, offset in found:
                    self.diagnostics.add(code, message, offset=offset, record=index)
            found.clear()
            yield record

    def _framed(
        self, view: memoryview, found: list[tuple[str, str, int]]
    ) -> Iterator[LogFileRecord]:
        walk = {
            "log": _LogWalk,
            "log-legacy": _PacketWalk,
            "log-legacy-stream": _StreamWalk,
            "log-ring": _RingWalk,
        }[self.form]
        return walk(view, found, self).records()


class _Walk:
    """A walk through a file. Findings about a record stand in ``found`` when it is given."""

    def __init__(
        self, view: memoryview, found: list[tuple[str, str, int]], decoder: RecordDecoder
    ) -> None:
        self.view = view
        self.found = found
        self.max_record = decoder.limits.max_record
        self.suffix = bool(decoder.options.get("suffix"))
        self.fidl_limits = bool(decoder.options.get("fidl_limits"))
        self.tagged = False

    def find(self, code: str, message: str, offset: int) -> None:
        """Note a finding about the record that comes."""
        self.found.append((code, message, offset))

    def damaged(self, code: str, at: int, end: int, message: str = "") -> Damaged:
        """The stretch from ``at`` to ``end``, in which there is no sound record."""
        self.find(code, message, at)
        return Damaged(offset=at, nbytes=end - at, code=code, raw=self.view[at:end])

    def log(
        self, view: memoryview, at: int, end: int, place: Callable[[int], int] = _stays
    ) -> LogRecord:
        """The structured record at bytes ``at`` to ``end`` of ``view``, which frame one."""
        header, time = _TWO.unpack_from(view, at)
        reading = _Arguments(view, at + 2 * WORD, end, place)
        spot = place(at)
        if header & _RESERVED:
            reading.reserved = spot
        args = reading.read()
        record = LogRecord(
            offset=spot,
            nbytes=end - at,
            timestamp=to_i64(time),
            severity=wire.SEVERITY.get(header),
            tag_bits=wire.TAG_BITS.get(header),
            args=args,
        )
        if record.tag_bits and not self.tagged:
            self.tagged = True
            self.find("FXL0105", "", spot)
        if record.severity % 0x10 or not 0x10 <= record.severity <= 0x60:
            self.find("FXL0106", f"severity {record.severity:#04x}", spot)
        self.found.extend(reading.findings)
        if reading.reserved is not None:
            self.find("FXL0101", "", reading.reserved)
        if reading.unpadded is not None:
            self.find("FXL0102", "", reading.unpadded)
        if self.fidl_limits:
            self.lint(record)
        data = view[at:end].tobytes()
        if not _gives(record, data):
            record.raw = data
        return record

    def lint(self, record: LogRecord) -> None:
        """Hold a record to the limits of the FIDL reference API (notes §1.4)."""
        if len(record.args) > wire.FIDL_ARGUMENTS:
            self.find("FXL0301", f"{len(record.args)} arguments", record.offset)
        for argument in record.args:
            nbytes = len(argument.name.encode(errors="surrogateescape"))
            if nbytes > wire.FIDL_NAME_BYTES:
                self.find("FXL0302", f"a name of {nbytes} bytes", argument.offset)

    def packet(self, at: int, start: int, end: int) -> LegacyPacket | Damaged:
        """The packet of bytes ``start`` to ``end``; its record begins at ``at`` (notes §3)."""
        data = self.view[start:end]
        try:
            packet = _packet(data, lambda code, message: self.find(code, message, at))
        except _Damage as damage:
            code, message = damage.args
            return self.damaged(code, at, end, message)
        packet.offset, packet.nbytes = at, end - at
        if not _gives(packet, data.tobytes()):
            packet.raw = self.view[at:end].tobytes()
        return packet

    def records(self) -> Iterator[LogFileRecord]:
        """Every record."""
        raise NotImplementedError


def _gives(record: LogFileRecord, data: bytes) -> bool:
    """Whether the fields alone encode to these bytes."""
    try:
        return record.pack() == data
    except WriteRefusedError:
        return False


def _packet(data: memoryview, find: Callable[[str, str], None]) -> LegacyPacket:
    """The legacy packet of these bytes, by the checks of the reference in their order (notes §3).

    Raises _Damage with the code and a message.
    """
    size = len(data)
    if size < wire.MIN_PACKET:
        raise _Damage("FXL0601", f"{size} bytes")
    if data[-1]:
        raise _Damage("FXL0602", f"the last byte is {data[-1]:#04x}")
    pid, tid, time, severity, dropped = _PACKET.unpack_from(data)
    tags: list[bytes] = []
    at = wire.PACKET_HEADER
    while True:
        if at >= size:
            raise _Damage("FXL0605", "a tag ends where the packet does")
        nbytes = data[at]
        at += 1
        if not nbytes:
            break
        if len(tags) == wire.MAX_TAGS:
            raise _Damage("FXL0603", "")
        if nbytes > wire.MAX_TAG_BYTES:
            raise _Damage("FXL0604", f"tag {len(tags)} has {nbytes} bytes")
        if at + nbytes > size:
            raise _Damage("FXL0605", f"tag {len(tags)} runs past the end")
        tags.append(data[at : at + nbytes].tobytes())
        at += nbytes
    message, end, rest = data[at:].tobytes().partition(b"\0")
    if not end:
        raise _Damage("FXL0605", "there is no message")
    if size > wire.MAX_PACKET:
        find("FXL0609", f"{size} bytes")
    if severity % 0x10 or not 0x10 <= severity <= 0x60:
        find("FXL0606", f"severity {severity}")
    if rest:
        find("FXL0607", f"{len(rest)} bytes")
    if not all(map(_is_utf8, (*tags, message))):
        find("FXL0608", "")
    return LegacyPacket(
        pid=pid,
        tid=tid,
        timestamp=time,
        severity=severity,
        dropped_logs=dropped,
        tags=tuple(map(_text, tags)),
        message=_text(message),
    )


class _LogWalk(_Walk):
    """Structured records, one after another."""

    def records(self) -> Iterator[LogFileRecord]:
        at = 0
        while at < len(self.view):
            record = self.record(at)
            suffix = None
            if self.suffix and isinstance(record, LogRecord):
                suffix = record.suffix = self.attribution(at + record.nbytes)
                if suffix is not None:
                    suffix.row_offset = at
            yield record
            at += record.nbytes
            if suffix is not None:
                yield suffix
                at += suffix.nbytes

    def record(self, at: int) -> LogFileRecord:
        """The record at byte ``at``."""
        view = self.view
        left = len(view) - at
        if left < WORD:
            return self.damaged("FXL0004", at, len(view), f"{left} bytes")
        (header,) = _U64.unpack_from(view, at)
        size = WORD * wire.SIZE.get(header)
        if not header:
            end = _zeros_end(view, at)
            self.find("FXL0006", f"{(end - at) // WORD} zero words", at)
            return Padding(offset=at, nbytes=end - at)
        code = None
        if header & wire.TYPE.limit != wire.RECORD_TYPE:
            code, message = "FXL0001", f"a word of type {header & wire.TYPE.limit}"
        elif left < 2 * WORD:
            code, message = "FXL0005", f"{left} bytes"
        elif size < WORD * wire.MIN_RECORD_WORDS:
            code, message = "FXL0002", f"a record of {size // WORD} words"
        elif size > left:
            code, message = "FXL0003", f"a record of {size} bytes, and {left} are left"
        if code is not None:
            return self.damaged(code, at, _resume(view, at), message)
        if self.max_record and size > self.max_record:
            return self.damaged("FXL0008", at, at + size, f"a record of {size} bytes")
        return self.log(view, at, at + size)

    def attribution(self, at: int) -> Attribution | None:
        """The suffix at byte ``at``, where there is room for one (notes §1.5)."""
        view = self.view
        left = len(view) - at
        if left < wire.SUFFIX_BYTES:
            return None
        moniker, url, rolled_out = _SUFFIX.unpack_from(view, at)
        start = at + wire.SUFFIX_BYTES
        middle = start + moniker + padding(moniker)
        end = middle + url + padding(url)
        if end > len(view):
            self.find("FXL0210", f"{moniker} and {url} bytes, and {left} are left", at)
            return None
        record = Attribution(
            offset=at,
            nbytes=end - at,
            moniker=_text(view[start : start + moniker].tobytes()),
            url=_text(view[middle : middle + url].tobytes()),
            rolled_out=rolled_out,
        )
        data = view[at:end].tobytes()
        if not _gives(record, data):
            record.raw = data
        return record


class _PacketWalk(_Walk):
    """One packet, and nothing else."""

    def records(self) -> Iterator[LogFileRecord]:
        if len(self.view):
            yield self.packet(0, 0, len(self.view))


class _StreamWalk(_Walk):
    """Our container: a header, and packets with their lengths."""

    def records(self) -> Iterator[LogFileRecord]:
        view = self.view
        if not len(view):
            return
        yield self.header()
        at = min(wire.STREAM_HEADER, len(view))
        while at < len(view):
            start = at + wire.STREAM_LENGTH
            left = len(view) - start
            if left < 0:
                yield self.damaged("FXL0701", at, len(view), f"{len(view) - at} bytes")
                return
            (nbytes,) = _LENGTH.unpack_from(view, at)
            if nbytes > left:
                message = f"a packet of {nbytes} bytes, and {left} are left"
                yield self.damaged("FXL0701", at, len(view), message)
                return
            yield self.packet(at, start, start + nbytes)
            at = start + nbytes

    def header(self) -> LogFileRecord:
        """The header, or what stands there instead."""
        data = self.view[: wire.STREAM_HEADER].tobytes()
        if not data.startswith(StreamHeader().pack()[:12]) or len(data) < wire.STREAM_HEADER:
            return self.damaged("FXL0702", 0, len(data))
        header = StreamHeader(nbytes=len(data))
        if data[12:] != bytes(4):
            self.find("FXL0101", "", 0)
            header.raw = data
        return header


class _RingWalk(_Walk):
    """A ring: its header, the entries from tail to head, and what is unused."""

    def records(self) -> Iterator[LogFileRecord]:
        view = self.view
        if not len(view):
            return
        if len(view) < wire.RING_PAGE:
            yield self.damaged("FXL0801", 0, len(view), f"{len(view)} bytes are no page")
            return
        capacity = len(view) - wire.RING_PAGE
        head, tail = _TWO.unpack_from(view)
        header = RingHeader(nbytes=wire.RING_PAGE, head=head, tail=tail)
        page = view[: wire.RING_PAGE].tobytes()
        if not _gives(header, page):
            header.raw = page
            self.find("FXL0101", "", 0)
        if capacity % wire.RING_PAGE or capacity < wire.RING_MINIMUM:
            self.find("FXL0804", f"{capacity} bytes", 0)
        if not header.sound(capacity):
            self.find("FXL0801", f"head {head}, tail {tail}, a ring of {capacity} bytes", 0)
            yield header
            if capacity:
                yield Damaged(
                    offset=wire.RING_PAGE,
                    nbytes=capacity,
                    code="FXL0801",
                    raw=view[wire.RING_PAGE :],
                )
            return
        yield header
        yield from self.ring(head, tail, capacity)

    def ring(self, head: int, tail: int, capacity: int) -> Iterator[LogFileRecord]:
        """What the ring holds, from the tail on, once around."""
        if not capacity:
            return
        start = tail % capacity
        ring = self.view[wire.RING_PAGE :]
        # Once around from the tail on, so that nothing wraps.
        line = memoryview(ring[start:].tobytes() + ring[:start].tobytes()) if start else ring

        def place(at: int) -> int:
            return wire.RING_PAGE + (start + at) % capacity

        used = head - tail
        at = 0
        while at < used:
            record = self.entry(line, at, used, place)
            yield record
            at += record.nbytes
        if used < capacity:
            yield self.unused(line[used:], place(used))

    def entry(
        self, line: memoryview, at: int, used: int, place: Callable[[int], int]
    ) -> RingEntry | Damaged:
        """The entry at ``at``; what is left up to the head where there is none."""
        left = used - at
        if left < wire.RING_ENTRY:
            return self.lost("FXL0802", line[at:used], place(at), f"{left} bytes")
        tag, length = _TWO.unpack_from(line, at)
        start = at + wire.RING_ENTRY
        size = wire.RING_ENTRY + length + padding(length)
        if size > left or size > wire.RING_MAX_ENTRY:
            message = f"a payload of {length} bytes, and {left - wire.RING_ENTRY} are left"
            return self.lost("FXL0803", line[at:used], place(at), message)
        entry = RingEntry(offset=place(at), nbytes=size, tag=tag)
        end = start + length
        record_end = end
        if length >= 2 * WORD:
            (header,) = _U64.unpack_from(line, start)
            nbytes = WORD * wire.SIZE.get(header)
            if header & wire.TYPE.limit == wire.RECORD_TYPE and 2 * WORD <= nbytes <= length:
                record_end = start + nbytes
                entry.log = self.log(line, start, record_end, place)
        if entry.log is None:
            self.find("FXL0805", f"{length} bytes", place(at))
            record_end = start
        elif record_end < end:
            self.find("FXL0806", f"{end - record_end} bytes", place(at))
        entry.payload = line[record_end:end].tobytes()
        data = line[at : at + size].tobytes()
        if any(line[end : at + size]):
            self.find("FXL0807", "", place(at))
        if not _gives(entry, data):
            entry.raw = data
        return entry

    def lost(self, code: str, data: memoryview, offset: int, message: str) -> Damaged:
        """A stretch of the ring's line that holds no entry."""
        self.find(code, message, offset)
        return Damaged(offset=offset, nbytes=len(data), code=code, raw=data)

    def unused(self, data: memoryview, offset: int) -> LogFileRecord:
        """The space between head and tail."""
        if any(data):
            return self.lost("FXL0808", data, offset, f"{len(data)} bytes")
        return Padding(offset=offset, nbytes=len(data))


# --- Encoder --------------------------------------------------------------------------------------


class RecordEncoder:
    """Writes records, or their JSON, as the bytes of one of the formats.

    ``raw`` counts where it decodes to the fields that the record has, so that what was not edited
    comes out as it was, and an edit takes effect. ``encode`` gives the bytes of a record; those of
    a ring are held back until ``close`` places them.
    """

    def __init__(self, form: str) -> None:
        self.form = form
        self._decoder = RecordDecoder(form)
        self._ring = _RingImage() if form == "log-ring" else None

    def encode(self, record: LogFileRecord | Mapping[str, Any]) -> bytes:
        """The record's bytes. Raises WriteRefusedError (FXL0401 to FXL0409), nothing changed."""
        if isinstance(record, Mapping):
            record = from_json(record)
        data = self._bytes(record)
        if self._ring is not None:
            self._ring.add(record, data)
            return b""
        return data

    def close(self) -> bytes:
        """What was held back."""
        return b"" if self._ring is None else self._ring.image()

    def _bytes(self, record: LogFileRecord) -> bytes:
        if isinstance(record, Padding):
            return _zeros(record.nbytes)
        if isinstance(record, Damaged):
            return bytes(record.raw or b"")
        if type(record) not in _HELD[self.form]:
            raise refusal("FXL0401", f"a {self.form} file has no record {record.record!r}")
        if isinstance(record, RingEntry):
            record = _checked_payload(record)
        if record.raw is not None and self._decoded(record, bytes(record.raw)) == record:
            return bytes(record.raw)
        data = record.pack()
        if self.form == "log-legacy-stream" and isinstance(record, LegacyPacket):
            return _LENGTH.pack(len(data)) + data
        return data

    def _decoded(self, record: LogFileRecord, data: bytes) -> LogFileRecord | None:
        """The record that these bytes are; None where they are not exactly one like it."""
        walk = _Walk(memoryview(data), [], self._decoder)
        found: LogFileRecord | None = None
        if isinstance(record, LogRecord):
            found = _lone_log(data, self._decoder)
        elif isinstance(record, LegacyPacket):
            start = wire.STREAM_LENGTH if self.form == "log-legacy-stream" else 0
            whole = len(data) - start
            if not start or (whole >= 0 and _LENGTH.unpack_from(data)[0] == whole):
                found = walk.packet(0, start, len(data))
        elif isinstance(record, Attribution):
            log = _LogWalk(memoryview(data), [], self._decoder)
            found = log.attribution(0)
        elif isinstance(record, StreamHeader):
            if len(data) == wire.STREAM_HEADER:
                found = _StreamWalk(memoryview(data), [], self._decoder).header()
        elif isinstance(record, RingHeader):
            if len(data) == wire.RING_PAGE:
                ring = _RingWalk(memoryview(data), [], self._decoder)
                found = next(ring.records())
        elif isinstance(record, RingEntry) and len(data) % WORD == 0:
            ring = _RingWalk(memoryview(data), [], self._decoder)
            found = ring.entry(memoryview(data), 0, len(data), _stays)
        return found if found is not None and found.nbytes == len(data) else None


_HELD: Mapping[str, frozenset[type[LogFileRecord]]] = {
    "log": frozenset({LogRecord, Attribution}),
    "log-legacy": frozenset({LegacyPacket}),
    "log-legacy-stream": frozenset({StreamHeader, LegacyPacket}),
    "log-ring": frozenset({RingHeader, RingEntry}),
}
"""What each format holds beside padding and damage."""


def _lone_log(data: bytes, decoder: RecordDecoder) -> LogRecord | None:
    """The structured record that these bytes are, all of them."""
    if len(data) < 2 * WORD or len(data) % WORD:
        return None
    (header,) = _U64.unpack_from(data)
    if header & wire.TYPE.limit != wire.RECORD_TYPE or WORD * wire.SIZE.get(header) != len(data):
        return None
    return _Walk(memoryview(data), [], decoder).log(memoryview(data), 0, len(data))


def _checked_payload(entry: RingEntry) -> RingEntry:
    """The entry, its record without raw bytes that are none of it."""
    log = entry.log
    if log is None or log.raw is None:
        return entry
    if _lone_log(bytes(log.raw), RecordDecoder("log")) == log:
        return entry
    return attrs.evolve(entry, log=attrs.evolve(log, raw=None))


class _RingImage:
    """The image of a ring, put together from its records in reading order (notes §1.5)."""

    def __init__(self) -> None:
        self._header: RingHeader | None = None
        self._used: list[bytes] = []
        self._unused: list[bytes] = []
        self._page = b""
        self._senseless = False

    def add(self, record: LogFileRecord, data: bytes) -> None:
        """Take a record and its bytes."""
        self._senseless |= isinstance(record, Damaged) and record.code == "FXL0801"
        if isinstance(record, RingHeader):
            self._header, self._page = record, data
        elif isinstance(record, Padding) or (
            isinstance(record, Damaged) and record.code == "FXL0808"
        ):
            self._unused.append(data)
        else:
            self._used.append(data)

    def image(self) -> bytes:
        """All of it. A head that is not where the entries end is moved there."""
        used, unused = b"".join(self._used), b"".join(self._unused)
        header = self._header
        if header is None:
            return used + unused
        capacity = len(used) + len(unused)
        ordered = header.tail <= header.head and not header.tail % WORD
        edited = self._used or self._unused
        if edited and ordered and not self._senseless and header.head - header.tail != len(used):
            header = attrs.evolve(header, head=header.tail + len(used), raw=None)
            self._page = header.pack()
            pages = max(-(-capacity // wire.RING_PAGE) * wire.RING_PAGE, wire.RING_MINIMUM)
            unused += bytes(pages - capacity)
            capacity = pages
        line = used + unused
        start = header.tail % capacity if capacity and header.sound(capacity) else 0
        return self._page + line[capacity - start :] + line[: capacity - start]


def _zeros(nbytes: int) -> bytes:
    if nbytes < 0:
        raise refusal("FXL0404", f"padding: nbytes is {nbytes}")
    try:
        return bytes(nbytes)
    except (MemoryError, OverflowError):
        raise refusal("FXL0404", f"padding: {nbytes} bytes are more than memory holds") from None
