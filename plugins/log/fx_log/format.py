"""Format: the records of Fuchsia's log formats, declared; the one place that knows their bits.

"logs-encoding" is Fuchsia's document "Log records encoding"; docs/formats describes the parts that
it omits: tags, attribution, legacy packets, rings. All integers are little-endian.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar, Final, Self

import attrs

from fx_log import rules
from fx_log.rules import RULES
from fxframework import wire
from fxframework.errors import refusal
from fxframework.io.words import WORD
from fxframework.kit.json_fields import CANONICAL_NAN, JsonFields, show_text
from fxframework.wire.cursor import Cursor, RefusalError, ShortError
from fxframework.wire.floats import Nan
from fxframework.wire.records import Layout, Part, Record
from fxframework.wire.state import State

RECORDS = "logs-encoding, Records"
ARGUMENTS = "logs-encoding, Argument header"
PACKETS = "docs, Legacy log packets"
CONTAINERS = "docs, Logs"
RINGS = "docs, Log rings"
STATE: Final = State()
"""That of all log formats: no record says anything about the fields of others."""


class Packed:
    """Base of the records and arguments of all log formats, which are written without a state."""

    record: ClassVar[str]
    layout: ClassVar[Layout]

    def pack(self, state: Any = None) -> bytes:
        """Return the bytes of the fields; ``raw`` is not used.

        Raises WriteRefusedError for a value that the format cannot hold.
        """
        try:
            data: bytes = super().pack(state)  # type: ignore[misc]
        except RefusalError as problem:
            message = f"{self.record}: {problem.message}"
            raise refusal(RULES.numbered(problem.number), message) from None
        if 0 < self.layout.most < len(data):
            message = f"{self.record}: {len(data)} bytes, at most {self.layout.most}"
            raise refusal(rules.TOO_LARGE, message)
        return data


# --- Arguments (logs-encoding, "Argument header") -------------------------------------------------


class ArgType(IntEnum):
    """Argument types of logs; other numbers are types of traces, or undefined."""

    NULL = 0
    INT64 = 3
    UINT64 = 4
    DOUBLE = 5
    STRING = 6
    BOOL = 9


ARG_NAMES: Final[Mapping[int, str]] = {int(type): type.name.lower() for type in ArgType}
ARG_TYPES: Final[Mapping[str, int]] = {name: number for number, name in ARG_NAMES.items()}
DAMAGED: Final = "damaged"
"""The type of an argument that could not be decoded."""
INLINE: Final = 0x8000
"""Bit of a string reference: the bytes follow. References without it, except 0, are reserved."""
MAX_STRING: Final = INLINE - 1
"""Bytes in a string."""
strings = wire.table("string", closed=True)


def _string(reference: Any) -> Any:
    """Return the text of a string reference (logs-encoding, Primitives)."""
    return wire.text(
        refers=strings[reference],
        inline=INLINE,
        empty=0,
        align=WORD,
        rules={
            104: rules.STRING_TRUNCATED,
            105: rules.PADDING_NOT_ZERO,
            107: rules.NOT_UTF8,
            108: rules.RESERVED_REFERENCE,
            404: rules.STRING_TOO_LONG,
        },
    )


def _number(field: Any) -> Any:
    return field(rules={104: rules.NUMBER_MISSING})


class Argument(
    Packed,
    Part,
    keys=("name", "type", "value"),
    section=ARGUMENTS,
):
    """A named value of a record (logs-encoding, Argument header).

    ``type`` is one of null int64 uint64 double string bool; or the number of a type that logs do
    not have, with the words after the name as bytes in ``value``; or ``damaged``, with all words of
    the argument in ``value`` and the finding in ``code``.
    """

    type: Any = wire.bits(0, 3, values=ARG_NAMES, doc="argument type")
    _size_words = wire.bits(
        4, 15, equals=wire.SIZE >> 3, rules={106: rules.SIZE_DIFFERS, 404: rules.TOO_LARGE}
    )
    _name_ref = wire.bits(16, 31)
    _value_ref = wire.bits(32, 47)
    name: str = _string(_name_ref)
    value: Any = wire.choice(
        type,
        {
            ArgType.NULL: None,
            ArgType.INT64: _number(wire.i64),
            ArgType.UINT64: _number(wire.u64),
            ArgType.DOUBLE: _number(wire.f64),
            ArgType.STRING: _string(_value_ref),
            ArgType.BOOL: wire.flag_of(_value_ref),
        },
        other=wire.octets(_size_words * WORD - wire.AT, rules={104: rules.UNKNOWN_SIZE}),
        default=None,
    )
    code: str | None = attrs.field(default=None)
    """The code of the finding about a damaged argument."""

    @property
    def bits(self) -> int | None:
        """The 64 bits of a NaN that is not the canonical one."""
        if isinstance(self.value, Nan) and self.value.bits != CANONICAL_NAN:
            return self.value.bits
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the argument's object in record JSON."""
        if self.type != DAMAGED:
            return super().to_json()
        out: dict[str, Any] = {}
        show_text(out, "name", self.name)
        return {**out, "type": DAMAGED, "code": self.code, "value": self.value.hex()}

    @classmethod
    def recovered(cls, form: JsonFields) -> dict[str, Any] | None:
        """Return the fields of a damaged argument, from JSON."""
        if form.given.get("type") != DAMAGED:
            return None
        form.used.add("type")
        return {
            "name": form.text("name"),
            "type": DAMAGED,
            "value": form.octets("value"),
            "code": form.text("code"),
        }

    @classmethod
    def recover(cls, c: Cursor, problem: ShortError) -> Self:
        """Return the words of an argument that cannot be decoded: its stated size, or the rest."""
        start = c.at
        rule = RULES.numbered(problem.number)
        size = WORD * cls.layout.place("_size_words").get(c.data, start, big=False)
        c.at = c.limit
        if 0 < size <= c.limit - start:
            c.at = start + size
        data = c.data[start : c.at].tobytes()
        c.stretch(DAMAGED, start, rule.title)
        damaged = cls(name="", type=DAMAGED, value=data, code=rule.code)
        damaged.offset = start
        return damaged

    def put(self, state: State | None, big: bool) -> bytes:
        """Return the bytes. Raises RefusalError for a value that does not fit."""
        if self.type != DAMAGED:
            return super().put(state, big)
        if len(self.value) % WORD:
            raise RefusalError(404, "its value must be a whole number of 8-byte words")
        return bytes(self.value)


# --- Structured records (logs-encoding, "Records") ------------------------------------------------


RECORD_TYPE: Final = 9
MIN_RECORD_WORDS: Final = 2
"""Header and time."""
MAX_RECORD_WORDS: Final = 4095
LEGACY_SEVERITIES: Final = range(-10, 0x80)
"""Severities of both eras."""
CONTROL: Final = 1 << 31
"""Bit of ``tag_bits`` in a control record (LOG_CONTROL_BIT)."""
COMPONENT: Final = CONTROL - 1
"""The other bits: the tag of a component."""


class Structured(
    Record,
    align=WORD,
    padding=True,
    section=RECORDS,
    resume=wire.resume(alone=True, severity=range(1, LEGACY_SEVERITIES.stop), _reserved=range(1)),
):
    """What a structured record begins with; damage ends where arguments fill one."""

    _type = wire.kind(wire.bits(0, 3))
    _size_words = wire.size(wire.bits(4, 15, rules={404: rules.TOO_LARGE}), unit=WORD)


class LogRecord(
    Packed,
    Structured,
    kind=RECORD_TYPE,
    name="log",
    keys=("timestamp", "severity", "tag_bits", "args"),
    section=RECORDS,
):
    """A structured log record (logs-encoding, Records)."""

    tag_bits: int = wire.bits(16, 47, default=0, doc="tag (16-46) and control bit (47)")
    _reserved = wire.bits(48, 55)
    severity: int = wire.bits(56, 63, doc="severity")
    timestamp: int = wire.i64(unit="ns", doc="the bytes do not name the clock")
    args: tuple[Argument, ...] = wire.listed(Argument, default=())
    suffix: Attribution | None = attrs.field(default=None, eq=False)
    """The attribution that follows the record, if suffixes are read."""

    def __attrs_post_init__(self) -> None:
        self.ns = self.timestamp

    @property
    def control(self) -> bool:
        """Whether this is a control record: a manifest, or a count of lost logs."""
        return bool(self.tag_bits & CONTROL)


class Attribution(
    Packed,
    Record,
    keys=("moniker", "url", "rolled_out"),
    section=RINGS,
):
    """The attribution of the preceding record: the suffix of 2025."""

    _moniker_bytes = wire.bits(0, 31)
    _url_bytes = wire.bits(32, 63)
    rolled_out: int = wire.u64(default=0, doc="logs that rolled out before that record")
    moniker: str = wire.text(_moniker_bytes, align=WORD)
    url: str = wire.text(_url_bytes, align=WORD)
    row_offset: int | None = attrs.field(default=None, eq=False)
    """Offset of that record; both are selected together (``Window.records``)."""


SUFFIX_BYTES: Final = Attribution.layout.least


# --- Legacy packets -------------------------------------------------------------------------------

MIN_PACKET: Final = 33
MAX_PACKET: Final = 32768
MAX_TAGS: Final = 5
MAX_TAG_BYTES: Final = 63
MOST_SEVERE: Final = 255
"""The greatest severity of today, a byte."""


def clamped(number: Any, most: int) -> Any:
    """Return the number from 0 to ``most`` that is nearest to one of a record."""
    is_beyond = number > most
    return number * (number >= 0) * (is_beyond == 0) + is_beyond * most


class LegacyPacket(Packed, Record, most=MAX_PACKET, section=PACKETS):
    """A legacy packet, the datagram of loggers before structured records."""

    pid: int = wire.u64()
    tid: int = wire.u64()
    timestamp: int = wire.i64(unit="ns", doc="of the monotonic clock")
    severity: int = wire.i32(doc="signed, as on the wire")
    raw_severity: int = wire.computed(clamped(severity, MOST_SEVERE), doc="as readers take it")
    dropped_logs: int = wire.u32(default=0)
    tags: tuple[str, ...] = wire.texts(
        wire.u8(),
        most=MAX_TAGS,
        longest=MAX_TAG_BYTES,
        many=(rules.MANY_TAGS, rules.TOO_MANY),
        long=(rules.LONG_TAG, rules.STRING_TOO_LONG),
        rules={104: rules.PAST_THE_END},
        default=(),
    )
    message: str = wire.text(
        until=b"\0",
        rules={104: rules.PAST_THE_END, 404: rules.WRONG_TYPE},
        default="",
    )  # fmt: skip

    def __attrs_post_init__(self) -> None:
        self.ns = self.timestamp
        self.raw_severity = min(max(self.severity, 0), MOST_SEVERE)


PACKET_HEADER: Final = LegacyPacket.layout.place("dropped_logs").end

# --- The container of legacy packets --------------------------------------------------------------

STREAM_MAGIC: Final = b"\x89FXLLOG\n"
"""Not valid at the start of a text file; the last byte changes in a copy in text mode."""
STREAM_VERSION: Final = 1


class StreamHeader(Packed, Record, size=16, section=CONTAINERS):
    """The header of a container of legacy packets; each is behind its length in bytes, a u32."""

    _magic = wire.u64(equals=int.from_bytes(STREAM_MAGIC, "little"))
    version: int = wire.u32(default=STREAM_VERSION)

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields of a JSON object."""
        return {"version": form.within("version", STREAM_VERSION, STREAM_VERSION)}

    @classmethod
    def begins(cls, data: bytes) -> bool:
        """Return whether these bytes begin with a header, whatever its reserved bits are."""
        named = cls.layout.place("version").end
        return len(data) >= STREAM_HEADER and data.startswith(cls().pack()[:named])


STREAM_HEADER: Final = StreamHeader.layout.fixed


class PacketLength(Record, section=CONTAINERS):
    """What is before each packet of a container."""

    length: int = wire.u32(unit="bytes")


class StreamPacket(
    Record,
    section=CONTAINERS,
    resume=wire.resume(
        holds=LegacyPacket,
        most=1,
        _length=range(MIN_PACKET, MAX_PACKET + 1),
        severity=LEGACY_SEVERITIES,
    ),
):
    """A packet of a container: damage ends where packets are that their fields fill."""

    _length = wire.u32()
    packet: bytes = wire.octets(_length)


STREAM_LENGTH: Final = PacketLength.layout.least

# --- The IOBuffer ring ----------------------------------------------------------------------------

RING_PAGE: Final = 4096
"""Bytes before a ring."""
RING_MINIMUM: Final = 65536
"""Bytes of the smallest ring; a capacity is a whole number of pages."""
RING_MAX_ENTRY: Final = 65536
"""Bytes of the largest entry, its header included."""


class RingHeader(Packed, Record, size=RING_PAGE, section=RINGS):
    """The first page of a ring; the ring begins behind it."""

    head: int = wire.u64(doc="bytes ever written")
    tail: int = wire.u64(doc="bytes ever discarded")

    def sound(self, capacity: int) -> bool:
        """Return whether head and tail are valid in a ring of ``capacity`` bytes."""
        is_aligned = not (self.head % WORD or self.tail % WORD or capacity % WORD)
        return is_aligned and 0 <= self.head - self.tail <= capacity


class RingFrame(
    Packed,
    Record,
    name="ring_entry",
    align=WORD,
    most=RING_MAX_ENTRY,
    section=RINGS,
    resume=wire.resume(holds=Structured, most=1),
):
    """An entry of a ring: the kernel's header, and the payload of a component.

    Damage ends where entries are that a record fills.
    """

    tag: int = wire.u64()
    _length = wire.u64()
    payload: bytes = wire.octets(_length, align=WORD, rules={404: rules.TOO_LARGE})


RING_ENTRY: Final = RingFrame.layout.least

# --- Bits of words, for writers of programs -------------------------------------------------------

TYPE = LogRecord.layout.bits("_type")
SIZE = LogRecord.layout.bits("_size_words")
HEADER_TAG = LogRecord.layout.bits("tag_bits")
HEADER_SEVERITY = LogRecord.layout.bits("severity")
ARG_SIZE = Argument.layout.bits("_size_words")
NAME_REF = Argument.layout.bits("_name_ref")
VALUE_REF = Argument.layout.bits("_value_ref")

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
ATTRIBUTION: Final[Mapping[str, ArgType]] = {
    MONIKER: ArgType.STRING,
    URL: ArgType.STRING,
    ROLLED_OUT: ArgType.UINT64,
}
"""What the archivist appends to the arguments of a log."""
LOSSES: Final = ("num_dropped", "dropped_logs")
"""Names of counts of dropped logs."""
PRINTF: Final = "printf"
"""Name of the first argument of a structured printf of 2022."""

# --- Limits of the FIDL reference API, not of the wire -----------------------------

FIDL_ARGUMENTS: Final = 15
FIDL_NAME_BYTES: Final = 256

# --- Kinds of records, in the order of a summary --------------------------------------------------

KINDS: Final = (
    "log", "attribution", "padding", "damaged", "ring_header", "ring_entry", "legacy_packet",
    "stream_header",
)  # fmt: skip
