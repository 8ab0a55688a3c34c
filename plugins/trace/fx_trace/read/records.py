"""Records of the trace format, one at a time: lossless objects, their JSON, decoder and encoder.

Each class below declares its record once, field by field in the order of the file; reading,
writing, JSON both ways and `fxf explain FILE@OFFSET` all follow from that declaration. This is
the decoder for clarity; `kernels.py` is the one for speed, and shares nothing with it but the bit
fields of `layout.py`.

Strings are Python strings; where the file's bytes are no UTF-8 they hold surrogate escapes, as
`os.fsdecode` makes them, so that nothing is lost. Times are raw ticks, sizes and offsets bytes.
"""

# ruff: noqa: ARG002 (parts share one signature, whatever each of them needs of it)
# ruff: noqa: RUF009 (an attribute is made by `_field`, which attrs takes in)

from __future__ import annotations

import math
import re
import reprlib
import struct
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

import attrs

from fx_trace import layout as wire
from fx_trace.layout import RecordType
from fx_trace.rules import RULES
from fxframework.errors import WriteRefusedError, did_you_mean
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX, WORD, Bits, WordLayout, pad8, padding, to_i64, view_of
from fxframework.kit.json_fields import (
    CANONICAL_NAN,
    JsonFields,
    bits_of,
    double_of,
    exactly,
    show_double,
    show_text,
    shown_text,
    unfit,
)
from fxframework.model.clock import Clock
from fxframework.model.diagnostics import Diagnostics

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Data = NDArray[np.uint8] | bytes | bytearray | memoryview

__all__ = [
    "Argument",
    "Blob",
    "ContextSwitch",
    "Damaged",
    "Event",
    "Initialization",
    "KernelObject",
    "LargeBlob",
    "LargeBlobWithMetadata",
    "LegacyContextSwitch",
    "Log",
    "Padding",
    "ProfilerBacktrace",
    "ProfilerMmap",
    "ProfilerModule",
    "ProviderEvent",
    "ProviderInfo",
    "ProviderSection",
    "RecordDecoder",
    "RecordEncoder",
    "StringRecord",
    "ThreadRecord",
    "ThreadWakeup",
    "TraceInfo",
    "TraceRecord",
    "Unknown",
    "UnknownLarge",
    "UnknownMetadata",
    "UnknownProfiler",
    "UnknownScheduling",
    "UserspaceObject",
    "from_json",
    "refusal",
]

Koids = tuple[int, int] | str
"""A thread: (process koid, thread koid), or ``<thr#N>`` where index N was never registered."""
Value = None | bool | int | float | str | bytes
Finding = tuple[str, str, int]
"""Code, message and byte offset."""

UNREGISTERED_THREAD = re.compile(r"<thr#(\d{1,3})>")
_U64 = struct.Struct("<Q")


class OverrunError(Exception):
    """The contents need more words than the record has."""


def refusal(code: str, message: str) -> WriteRefusedError:
    """The refusal of something that cannot be written, with the catalogue's remedy."""
    return WriteRefusedError(message, code=code, remedy=RULES[code].remedy)


def _refuse(number: str, message: str) -> WriteRefusedError:
    return refusal(f"FXT{number}", message)


def string_marker(index: int) -> str:
    """What stands for a string that was never registered."""
    return f"<str#{index}>"


def thread_marker(index: int) -> str:
    """What stands for a thread that was never registered."""
    return f"<thr#{index}>"


# --- State: what earlier records say about later ones ------------------------------------------


# What a provider has that registered nothing: a file may name a great many of those.
_NO_STRINGS: dict[int, str] = {}
_NO_THREADS: dict[int, tuple[int, int]] = {}
_NANOSECONDS = Clock()


@attrs.define
class _Provider:
    """One provider's tables (Provider section metadata)."""

    strings: dict[int, str] = attrs.field(default=_NO_STRINGS)
    threads: dict[int, tuple[int, int]] = attrs.field(default=_NO_THREADS)
    ticks_per_second: int | None = None
    clock: Clock = _NANOSECONDS
    introduced: bool = False
    """Whether provider info named it, not only a section."""


class Tables:
    """The providers of a file up to some record, and which of them is speaking."""

    def __init__(self) -> None:
        self.default = _Provider()
        self.current = self.default
        self.providers = {wire.DEFAULT_PROVIDER: self.default}

    def string(self, index: int) -> str | None:
        """The string registered at an index: the speaker's own, else the default provider's."""
        found = self.current.strings.get(index)
        return self.default.strings.get(index) if found is None else found

    def thread(self, index: int) -> tuple[int, int] | None:
        """The thread registered at an index: the speaker's own, else the default provider's."""
        found = self.current.threads.get(index)
        return self.default.threads.get(index) if found is None else found


# --- Reading and writing words -----------------------------------------------------------------


class Cursor:
    """A record being read: what is left of it, and what was noticed on the way."""

    __slots__ = (
        "at",
        "data",
        "end",
        "findings",
        "header",
        "outside",
        "refs",
        "reserved",
        "spot",
        "tables",
        "unpadded",
        "word",
    )

    def __init__(self, tables: Tables, *, big_endian: bool) -> None:
        self.tables = tables
        self.word = struct.Struct(">Q" if big_endian else "<Q").unpack_from
        self.begin(memoryview(b""), 0, 0, 0)

    def begin(self, data: memoryview, at: int, end: int, header: int) -> None:
        """Stand after the header of the record that fills bytes ``at`` to ``end``."""
        self.data = data
        self.at = at + WORD
        self.end = end
        self.header = header
        self.spot = at
        self.refs: dict[str, int] | None = None
        self.findings: list[Finding] = []
        self.reserved: int | None = None
        self.unpadded: int | None = None

    def find(self, code: str, message: str = "") -> None:
        """Note a finding at the record, or at the argument being read."""
        self.findings.append((code, message, self.spot))

    def find_once(self, *, reserved: bool = False, unpadded: bool = False) -> None:
        """Note a finding that a record has once, where it shows first."""
        if reserved and self.reserved is None:
            self.reserved = self.spot
        if unpadded and self.unpadded is None:
            self.unpadded = self.spot

    def refer(self, name: str, index: int) -> None:
        """Note that a field was an index."""
        if self.refs is None:
            self.refs = {name: index}
        else:
            self.refs[name] = index

    def u64(self) -> int:
        """The next word."""
        at = self.at
        self.at = at + WORD
        if self.at > self.end:
            raise OverrunError
        value: int = self.word(self.data, at)[0]
        return value

    def enter_argument(self) -> ArgumentKind:
        """Stand after the header of the next argument, at the end of which the record now ends.

        ``leave_argument`` undoes that.
        """
        self.outside = self.header, self.end, self.refs, self.spot
        spot = self.at
        header = self.u64()
        end = spot + (header >> _ARG_SIZE.low & _ARG_SIZE.limit) * WORD
        if not self.at <= end <= self.end:
            raise OverrunError
        self.header, self.end, self.refs, self.spot = header, end, None, spot
        return ARGUMENT_KINDS[header & 15]

    def leave_argument(self) -> None:
        """Stand after the argument, in the record again."""
        self.at = self.end
        self.header, self.end, self.refs, self.spot = self.outside

    def stream(self, nbytes: int) -> bytes:
        """The next stream of ``nbytes`` bytes; its padding is stepped over."""
        at = self.at
        stop = at + nbytes
        self.at = stop + (-nbytes % WORD)
        if self.at > self.end:
            raise OverrunError
        if stop != self.at and any(self.data[stop : self.at]):
            self.find_once(unpadded=True)
        return self.data[at:stop].tobytes()

    def text(self, name: str, nbytes: int, code: str) -> str:
        """The next stream as text; ``code`` is the finding where it is not UTF-8."""
        data = self.stream(nbytes)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            self.find(code, f"{name} is not UTF-8 from its byte {error.start} on")
            return data.decode(errors="surrogateescape")


class _Builder:
    """A record, or an argument, being written: its header so far, and the words after it."""

    __slots__ = ("chunks", "first", "header", "holder", "outer", "pack", "refs", "second")

    def __init__(
        self,
        pack: Callable[[int], bytes],
        header: int,
        holder: TraceRecord | Argument,
        outer: _Builder | None = None,
    ) -> None:
        self.pack = pack
        self.header = header
        self.holder = holder
        self.outer = outer
        self.refs = holder.refs or {}
        self.chunks: list[bytes] = []
        self.first: int | None = None
        self.second = 0

    @property
    def what(self) -> str:
        """What is being written, for a refusal."""
        if isinstance(self.holder, Argument):
            outer = self.outer.what if self.outer else ""
            return f"{outer}, argument {reprlib.repr(self.holder.name)}"
        return self.holder.record

    def put(self, part: _Field, value: int) -> None:
        """Set a field of the header."""
        if not 0 <= value <= part.limit:
            raise self.unfit(part.name, value, 0, part.limit)
        self.header |= value << part.low

    def unfit(self, name: str, value: int, least: int, most: int) -> WriteRefusedError:
        """The refusal of a number that does not fit."""
        return unfit(_refuse, self.what, name, value, least, most)

    def u64(self, name: str, value: int) -> None:
        """Append a word."""
        if not 0 <= value <= U64_MAX:
            raise self.unfit(name, value, 0, U64_MAX)
        self.chunks.append(self.pack(value))

    def stream(self, name: str, data: bytes, limit: int) -> None:
        """Append a stream of at most ``limit`` bytes."""
        if len(data) > limit:
            raise refusal(
                "FXT0405", f"{self.what}: {name} has {len(data)} bytes, its field holds {limit}"
            )
        self.chunks.append(pad8(data))

    def next_header(self) -> None:
        """From here on, fields are those of a second header word, which stands here."""
        self.first = self.header
        self.header = 0
        self.second = len(self.chunks)
        self.chunks.append(b"")

    def finish(self, size: _Field) -> bytes:
        """The bytes, with the number of words in the ``size`` field of the first header."""
        if self.first is not None:
            self.chunks[self.second] = self.pack(self.header)
            self.header = self.first
        words = 1 + sum(map(len, self.chunks)) // WORD
        if words > size.limit:
            raise refusal(
                "FXT0407", f"{self.what}: it needs {words} words, a size field holds {size.limit}"
            )
        return b"".join((self.pack(self.header | words << size.low), *self.chunks))


def _encoded(what: str, name: str, text: str) -> bytes:
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise refusal("FXT0403", f"{what}: {name} holds a lone surrogate: {error}") from None


# --- JSON on its way in ------------------------------------------------------------------------


class _Form(JsonFields):
    """A JSON object of a trace being taken apart."""

    def __init__(self, what: str, given: Mapping[str, Any]) -> None:
        super().__init__(what, given, _refuse)

    def koids(self, key: str) -> Koids:
        """A thread: two koids, or the marker of an index that was never registered."""
        value = self.need(key)
        if isinstance(value, str):
            found = UNREGISTERED_THREAD.fullmatch(value)
            if found and 1 <= int(found[1]) <= wire.MAX_THREAD_INDEX:
                return thread_marker(int(found[1]))
        elif isinstance(value, list | tuple) and [type(koid) for koid in value] == [int, int]:
            return (value[0], value[1])
        raise self.wrong(key, "[process koid, thread koid] or '<thr#N>'")

    def indexes(self, parts: tuple[Part, ...]) -> dict[str, int] | None:
        """The ``refs`` of an object whose parts these are."""
        if "refs" not in self.given:
            return None
        refs = self.need("refs")
        names = {part.name for part in parts if isinstance(part, Reference)}
        if not isinstance(refs, dict) or any(type(index) is not int for index in refs.values()):
            raise self.wrong("refs", "an object of whole numbers")
        for name in refs:
            if name not in names:
                raise refusal(
                    "FXT0402", f"{self.what}: refs has {name!r}, which is no reference here"
                )
        return dict(refs) or None


# --- Parts: the kinds of field that records are made of ----------------------------------------
#
# A part knows how its field is read, written, shown as JSON and taken from JSON. `name` is that of
# the attribute and the JSON key.


class Part:
    """Something in a record. This one takes no bytes, has no value and is not shown."""

    is_stream = False
    """Whether what it takes beyond its labelled words is a stream of the field's name."""

    def __init__(self) -> None:
        self.name = ""

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of the words that it took for ``values``, up to where its stream begins."""
        return ()

    def bind(self, name: str, layout: WordLayout) -> WordLayout:
        """Learn the attribute and the header word; gives the header word of the next part."""
        self.name = name
        return layout

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        """Take the field from the record into ``values``, by attribute."""

    def skip(self, c: Cursor) -> None:
        """Move to where the field ends, without reading it; it may be past the record's end."""

    def write(self, record: Any, b: _Builder) -> None:
        """Append the field."""

    def show(self, record: Any, out: dict[str, Any]) -> None:
        """Put the field into JSON."""

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        """Take the field from JSON into ``values``."""


class _Value(Part):
    """A number that JSON shows as it is."""

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out[self.name] = getattr(record, self.name)

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        values[self.name] = form.number(self.name)


class _Field(_Value):
    """A part that has bits of the header. ``source`` is their name where it is not the field's."""

    def __init__(self, source: str | Bits | None = None) -> None:
        super().__init__()
        self.source = source
        if isinstance(source, Bits):
            self.take(source)

    def bind(self, name: str, layout: WordLayout) -> WordLayout:
        if not isinstance(self.source, Bits):
            wanted = self.source or name
            self.take(next(bits for bits in layout.fields if bits.name == wanted))
        return super().bind(name, layout)

    def take(self, bits: Bits) -> None:
        """Unpack the declaration, which is consulted for every record."""
        self.bits = bits
        self.low = bits.low
        self.limit = bits.limit


class _Number(_Field):
    """An unsigned number in the header."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.header >> self.low & self.limit

    def write(self, record: Any, b: _Builder) -> None:
        b.put(self, getattr(record, self.name))


class _Signed(_Number):
    """A two's-complement number in the header."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        value = c.header >> self.low & self.limit
        values[self.name] = value - (self.limit + 1) if value > self.limit >> 1 else value

    def write(self, record: Any, b: _Builder) -> None:
        value = getattr(record, self.name)
        most = self.limit >> 1
        if not -most - 1 <= value <= most:
            raise b.unfit(self.name, value, -most - 1, most)
        b.header |= (value & self.limit) << self.low


class _Flag(_Number):
    """One bit of the header, true or false."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = bool(c.header >> self.low & 1)

    def write(self, record: Any, b: _Builder) -> None:
        b.put(self, int(getattr(record, self.name)))

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        values[self.name] = form.flag(self.name)


class _Named(_Field):
    """A number in the header that goes by a name; a number without one is a finding."""

    def take(self, bits: Bits) -> None:
        super().take(bits)
        self.names = dict(bits.values)
        self.numbers = {name: number for number, name in bits.values.items()}

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        number = c.header >> self.low & self.limit
        name = values[self.name] = self.names.get(number, number)
        if name is number:
            c.find("FXT0111", f"{self.bits.doc} {number}")

    def write(self, record: Any, b: _Builder) -> None:
        value = getattr(record, self.name)
        b.put(self, self.numbers[value] if isinstance(value, str) else value)

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        values[self.name] = form.one_of(self.name, self.numbers, self.limit)


class _Magic(_Number):
    """The magic number, shown in hex; trace info of another type has none, and is not ours."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        if values["info_type"] == 0:
            super().read(c, values)
        else:
            values[self.name] = None
            c.find("FXT0111", f"trace info type {values['info_type']}")
            c.reserved = None  # what the bits of that type mean, only it knows
            c.at = c.end

    def show(self, record: Any, out: dict[str, Any]) -> None:
        if record.magic is not None:
            out[self.name] = f"0x{record.magic:08x}"

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        values[self.name] = None
        if values["info_type"] == 0:
            values[self.name] = form.hex_number(self.name)


class _Word(_Value):
    """A word of its own."""

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return (self.name,)

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.u64()

    def skip(self, c: Cursor) -> None:
        c.at += WORD

    def write(self, record: Any, b: _Builder) -> None:
        b.u64(self.name, getattr(record, self.name))


class _SignedWord(_Word):
    """A word of its own in two's complement."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = to_i64(c.u64())

    def write(self, record: Any, b: _Builder) -> None:
        value = getattr(record, self.name)
        if not -1 << 63 <= value < 1 << 63:
            raise b.unfit(self.name, value, -1 << 63, (1 << 63) - 1)
        b.u64(self.name, value & U64_MAX)


class _Double(_Word):
    """A word that is a double. ``bits`` holds the payload of a NaN that is not the usual one."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        word = c.u64()
        value = values[self.name] = double_of(word)
        if math.isnan(value):
            values[self.name] = math.nan
            values["bits"] = None if word == CANONICAL_NAN else word

    def write(self, record: Any, b: _Builder) -> None:
        value = getattr(record, self.name)
        if math.isnan(value):
            b.u64(self.name, CANONICAL_NAN if record.bits is None else record.bits)
        else:
            b.u64(self.name, bits_of(value))

    def show(self, record: Any, out: dict[str, Any]) -> None:
        show_double(out, self.name, getattr(record, self.name), record.bits)

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        values[self.name], bits = form.double(self.name)
        if bits is not None:
            values["bits"] = bits


class _Words(_Field):
    """As many words as the header says."""

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(f"{self.name}[{number}]" for number in range(len(values[self.name])))

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = tuple(c.u64() for _ in range(c.header >> self.low & self.limit))

    def write(self, record: Any, b: _Builder) -> None:
        values = getattr(record, self.name)
        if len(values) > self.limit:
            raise refusal("FXT0406", f"{b.what}: {len(values)} {self.name}, at most {self.limit}")
        b.put(self, len(values))
        for value in values:
            b.u64(self.name, value)

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out[self.name] = list(getattr(record, self.name))

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        given = form.need(self.name)
        if not isinstance(given, list | tuple) or any(type(value) is not int for value in given):
            raise form.wrong(self.name, "a list of whole numbers")
        values[self.name] = tuple(given)


class _Stream(_Field):
    """Bytes whose number the header has. Shown in hex under ``key``."""

    is_stream = True

    def __init__(self, source: str | Bits | None = None, *, key: str = "") -> None:
        super().__init__(source)
        self.key = key

    def bind(self, name: str, layout: WordLayout) -> WordLayout:
        self.key = self.key or name
        return super().bind(name, layout)

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.stream(c.header >> self.low & self.limit)

    def skip(self, c: Cursor) -> None:
        nbytes = c.header >> self.low & self.limit
        c.at += nbytes + padding(nbytes)

    def write(self, record: Any, b: _Builder) -> None:
        data = getattr(record, self.name)
        b.stream(self.name, data, self.limit)
        b.put(self, len(data))

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out[self.key] = getattr(record, self.name).hex()

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        values[self.name] = form.octets(self.key)


class _Payload(_Stream):
    """The payload of a blob, with its size beside it; on its way in, the payload alone counts."""

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out["size"] = len(getattr(record, self.name))
        super().show(record, out)

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        form.used.add("size")
        super().parse(form, values)


class _LargePayload(_Payload):
    """The payload of a large blob: its size is a word of its own."""

    def __init__(self, *, key: str) -> None:
        super().__init__(Bits("blob_size", 0, 63, "bytes of the payload"), key=key)

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return ("blob_size",)

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.stream(c.u64())

    def write(self, record: Any, b: _Builder) -> None:
        data = getattr(record, self.name)
        b.u64("blob_size", len(data))
        b.stream(self.name, data, self.limit)


class _Rest(_Value):
    """All words that are left of an argument whose type is not ours. Shown in hex."""

    is_stream = True

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.stream(c.end - c.at)

    def write(self, record: Any, b: _Builder) -> None:
        data = getattr(record, self.name)
        if len(data) % WORD:
            raise refusal("FXT0404", f"{b.what}: {self.name} is no whole number of 8-byte words")
        b.chunks.append(data)

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out[self.name] = getattr(record, self.name).hex()

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        values[self.name] = form.octets(self.name)


class _Nothing(_Value):
    """The value of an argument that has none."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = None

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        values[self.name] = form.given.get(self.name)
        form.used.add(self.name)
        if values[self.name] is not None:
            raise form.wrong(self.name, "null")


class _Text(_Stream):
    """A text whose number of bytes the header has."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        values[self.name] = c.text(self.name, c.header >> self.low & self.limit, "FXT0107")

    def write(self, record: Any, b: _Builder) -> None:
        data = _encoded(b.what, self.name, getattr(record, self.name))
        b.stream(self.name, data, self.limit)
        b.put(self, len(data))

    def show(self, record: Any, out: dict[str, Any]) -> None:
        show_text(out, self.name, getattr(record, self.name))

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        values[self.name] = form.text(self.name)


class Reference(_Field):
    """A field that is an index into a table, or stands inline."""

    def holds(self, record: Any, index: int, tables: Tables) -> bool:
        """Whether the index, looked up now, gives what the record shows."""
        raise NotImplementedError


class StringReference(Reference):
    """A string reference. ``code`` is the finding where it stands inline and is not UTF-8."""

    is_stream = True

    def __init__(self, source: str | Bits | None = None, *, code: str = "FXT0107") -> None:
        super().__init__(source)
        self.code = code

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        ref = c.header >> self.low & 0xFFFF
        if not ref:
            values[self.name] = ""
        elif ref & wire.INLINE_STRING:
            values[self.name] = c.text(self.name, ref & wire.STRING_FIELD_BYTES, self.code)
        else:
            text = c.tables.current.strings.get(ref)
            values[self.name] = self.elsewhere(c, ref) if text is None else text
            c.refer(self.name, ref)

    def elsewhere(self, c: Cursor, index: int) -> str:
        """What an index stands for that the provider never registered."""
        text = c.tables.string(index)
        if text is None:
            c.find("FXT0104", f"{self.name}: string {index} was never registered")
            return string_marker(index)
        c.find("FXT0106", f"{self.name}: string {index} is registered by provider 0 only")
        return text

    def skip(self, c: Cursor) -> None:
        ref = c.header >> self.low & 0xFFFF
        if ref & wire.INLINE_STRING:
            nbytes = ref & wire.STRING_FIELD_BYTES
            c.at += nbytes + padding(nbytes)

    def write(self, record: Any, b: _Builder) -> None:
        index = b.refs.get(self.name)
        if index is not None:
            b.header |= index << self.low
            return
        data = _encoded(b.what, self.name, getattr(record, self.name))
        if data:
            b.stream(self.name, data, wire.STRING_FIELD_BYTES)
            b.header |= (wire.INLINE_STRING | len(data)) << self.low

    def show(self, record: Any, out: dict[str, Any]) -> None:
        show_text(out, self.name, getattr(record, self.name))

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        values[self.name] = form.text(self.name)

    def holds(self, record: Any, index: int, tables: Tables) -> bool:
        text = getattr(record, self.name)
        if not 0 < index <= wire.MAX_STRING_INDEX:
            return False
        if text == string_marker(index):
            # It names the index, whatever an edit before it may have registered there.
            return True
        found = tables.string(index)
        return found is not None and text in (found, shown_text(found))


class _Thread(Reference):
    """A thread reference; inline it is two words, process and thread."""

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return ("process koid", "thread koid")

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        ref = c.header >> self.low & 0xFF
        values[self.name] = self.registered(c, ref) if ref else (c.u64(), c.u64())

    def registered(self, c: Cursor, index: int) -> Koids:
        """The thread at an index, or what stands for one that is not there."""
        c.refer(self.name, index)
        thread = c.tables.current.threads.get(index)
        if thread is not None:
            return thread
        thread = c.tables.thread(index)
        if thread is None:
            c.find("FXT0105", f"{self.name}: thread {index} was never registered")
            return thread_marker(index)
        c.find("FXT0106", f"{self.name}: thread {index} is registered by provider 0 only")
        return thread

    def write(self, record: Any, b: _Builder) -> None:
        value = getattr(record, self.name)
        index = self.index(value, b)
        if index:
            b.header |= index << self.low
        else:
            b.u64(self.name, value[0])
            b.u64(self.name, value[1])

    def index(self, value: Koids | int, b: _Builder) -> int:
        """The index to write, 0 for inline. A marker has nothing inline, only its index."""
        index = b.refs.get(self.name)
        if index is not None:
            return index
        return int(value[len("<thr#") : -1]) if isinstance(value, str) else 0

    def show(self, record: Any, out: dict[str, Any]) -> None:
        value = getattr(record, self.name)
        out[self.name] = value if isinstance(value, str) else list(value)

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        values[self.name] = form.koids(self.name)

    def holds(self, record: Any, index: int, tables: Tables) -> bool:
        value = getattr(record, self.name)
        if value is None or not 0 < index <= wire.MAX_THREAD_INDEX:
            return False
        return bool(value == thread_marker(index) or value == tables.thread(index))


class _ThreadOrProcess(_Thread):
    """A thread reference whose inline form some write as one word, the process.

    Which it is, the record's size says: what fills the record exactly; where neither does, the
    usual number of words, if so many fit.
    """

    usual_words = 2
    following: tuple[Part, ...] = ()
    """The parts up to the end of the record."""

    def is_one_word(self, c: Cursor) -> bool:
        """Whether the inline form has one word."""
        here = c.at
        ends = []
        for words in (1, 2):
            c.at = here + words * WORD
            for part in self.following:
                part.skip(c)
            ends.append(c.at)
        c.at = here
        one, two = ends
        if c.end in ends:
            return one == c.end
        return one < c.end and (self.usual_words == 1 or two > c.end)

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        ref = c.header >> self.low & 0xFF
        values["process"] = None
        if ref:
            values[self.name] = self.registered(c, ref)
        elif self.is_one_word(c):
            c.find("FXT0113")
            values[self.name] = None
            values["process"] = c.u64()
        else:
            values[self.name] = (c.u64(), c.u64())

    def write(self, record: Any, b: _Builder) -> None:
        if record.process is None:
            super().write(record, b)
        else:
            b.u64("process", record.process)

    def show(self, record: Any, out: dict[str, Any]) -> None:
        if record.process is None:
            super().show(record, out)
        else:
            out["process"] = record.process

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        values[self.name] = None
        if self.name in form and "process" in form:
            raise refusal("FXT0409", f"{form.what}: it has {self.name} or process, not both")
        if "process" in form:
            values["process"] = form.number("process")
        else:
            super().parse(form, values)


class _Process(_ThreadOrProcess):
    """The process of a userspace object; some write process and thread where it is inline."""

    usual_words = 1

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        ref = c.header >> self.low & 0xFF
        values["thread"] = None
        if ref:
            thread = self.registered(c, ref)
            values[self.name] = thread if isinstance(thread, str) else thread[0]
        elif self.is_one_word(c):
            values[self.name] = c.u64()
        else:
            c.find("FXT0112")
            values["thread"] = (c.u64(), c.u64())
            values[self.name] = values["thread"][0]

    def write(self, record: Any, b: _Builder) -> None:
        index = self.index(record.process, b)
        if index:
            b.header |= index << self.low
            return
        if record.thread is not None and record.thread[0] != record.process:
            raise refusal(
                "FXT0409",
                f"{b.what}: process is {record.process}, but that of thread is {record.thread[0]}",
            )
        b.u64("process", record.process)
        if record.thread is not None:
            b.u64("thread", record.thread[1])

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out[self.name] = record.process
        if record.thread is not None:
            out["thread"] = list(record.thread)

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        if isinstance(form.need(self.name), str):
            values[self.name] = form.koids(self.name)
        else:
            values[self.name] = form.number(self.name)
        if "thread" in form:
            values["thread"] = form.koids("thread")
            if isinstance(values["thread"], str):
                raise form.wrong("thread", "[process koid, thread koid]")

    def holds(self, record: Any, index: int, tables: Tables) -> bool:
        if record.thread is not None or not 0 < index <= wire.MAX_THREAD_INDEX:
            return False
        found = tables.thread(index)
        return bool(
            record.process == thread_marker(index)
            or (found is not None and record.process == found[0])
        )


class Arguments(_Field):
    """The arguments, as many as the header says."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        count = c.header >> self.low & self.limit
        values[self.name] = tuple([_read_argument(c) for _ in range(count)]) if count else ()

    def skip(self, c: Cursor) -> None:
        for _ in range(c.header >> self.low & self.limit):
            size = c.word(c.data, c.at)[0] >> _ARG_SIZE.low & _ARG_SIZE.limit if c.at < c.end else 0
            # An argument that cannot be stepped over is no way to the end.
            c.at = c.at + size * WORD if size else c.end + WORD

    def write(self, record: Any, b: _Builder) -> None:
        arguments = getattr(record, self.name)
        if len(arguments) > self.limit:
            raise refusal("FXT0406", f"{b.what}: {len(arguments)} arguments, at most {self.limit}")
        b.put(self, len(arguments))
        b.chunks.extend(argument.pack(b) for argument in arguments)

    def show(self, record: Any, out: dict[str, Any]) -> None:
        out[self.name] = [argument.to_json() for argument in getattr(record, self.name)]

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        form.used.add(self.name)
        given = form.given.get(self.name, ())
        if not isinstance(given, list | tuple):
            raise form.wrong(self.name, "a list of arguments")
        values[self.name] = tuple(
            Argument.from_json(each, f"{form.what}, argument {number}")
            for number, each in enumerate(given)
        )


class NextHeader(Part):
    """A second header word, which the fields after it are of."""

    def __init__(self, layout: WordLayout) -> None:
        super().__init__()
        self.layout = layout
        self.reserved = layout.reserved_mask

    def bind(self, name: str, layout: WordLayout) -> WordLayout:
        return self.layout

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        c.header = c.u64()
        if c.header & self.reserved:
            c.find_once(reserved=True)

    def write(self, record: Any, b: _Builder) -> None:
        b.next_header()


class _Opaque(Part):
    """The rest of a record whose kind is not ours: only its raw bytes say what is in it."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self.what = what

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        c.find("FXT0111", f"{self.what} {values[self.name]}")
        c.at = c.end


class _BaseTime(Part):
    """The base tick, and the wall time at it, of a long initialization record (notes §1.4)."""

    NAMES = ("base_tick", "base_wall_ns")

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        return self.NAMES

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        if c.end - c.at >= 2 * WORD:
            for name in self.NAMES:
                values[name] = c.u64()

    def write(self, record: Any, b: _Builder) -> None:
        given = [getattr(record, name) for name in self.NAMES]
        if given == [None, None]:
            return
        for name, value in zip(self.NAMES, given, strict=True):
            if value is None:
                raise refusal("FXT0402", f"{b.what}: {name} is missing beside the other")
            b.u64(name, value)

    def show(self, record: Any, out: dict[str, Any]) -> None:
        for name in self.NAMES:
            if getattr(record, name) is not None:
                out[name] = getattr(record, name)

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        for name in self.NAMES:
            if name in form:
                values[name] = form.number(name)


class _Tail(Part):
    """What stands after an event's arguments: by its type, a word of its own, a scope, nothing."""

    NAMES: ClassVar = {
        wire.EVENT_NAMES[number]: {
            wire.EventType.COUNTER: "counter_id",
            wire.EventType.DURATION_COMPLETE: "end_timestamp",
        }.get(number, "id")
        for number in wire.EVENT_HAS_WORD
    }
    SCOPES: ClassVar = {name: number for number, name in wire.SCOPES.items()}

    def labels(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        event = values["event"]
        return (self.NAMES.get(event, "scope"),) if isinstance(event, str) else ()

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        event = values["event"]
        if event in self.NAMES:
            values[self.NAMES[event]] = c.u64()
        elif event == "instant" and c.at < c.end:
            number = c.u64()
            scope = values["scope"] = wire.SCOPES.get(number, number)
            if scope is number:
                c.find("FXT0115", f"scope {number}")
        elif not isinstance(event, str):
            c.at = c.end  # what follows is the business of a type that is not ours

    def write(self, record: Any, b: _Builder) -> None:
        name = self.NAMES.get(record.event)
        if name:
            value = getattr(record, name)
            if value is None:
                raise refusal("FXT0402", f"{b.what}: {name} is missing")
            b.u64(name, value)
        elif record.event == "instant" and record.scope is not None:
            scope = record.scope
            b.u64("scope", self.SCOPES[scope] if isinstance(scope, str) else scope)

    def show(self, record: Any, out: dict[str, Any]) -> None:
        name = self.NAMES.get(record.event)
        if name:
            out[name] = getattr(record, name)
        elif record.scope is not None:
            out["scope"] = record.scope

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        name = self.NAMES.get(values["event"])
        if name:
            values[name] = form.number(name)
        elif values["event"] == "instant" and "scope" in form:
            values["scope"] = form.one_of("scope", self.SCOPES, U64_MAX)


# --- Arguments ---------------------------------------------------------------------------------


@attrs.frozen
class ArgumentKind:
    """One argument type: its header word, and the parts of name and value."""

    shown: str | int
    number: int
    layout: WordLayout
    parts: tuple[Part, ...]
    reserved: int


def _argument_kind(number: int, value: Part) -> ArgumentKind:
    known = number in wire.ARG_NAMES
    layout = wire.ARG_LAYOUTS.get(wire.ArgType(number), wire.ARG) if known else wire.ARG
    name = StringReference()
    name.bind("name", layout)
    value.bind("value", layout)
    reserved = layout.reserved_mask if known else 0
    return ArgumentKind(wire.ARG_NAMES.get(number, number), number, layout, (name, value), reserved)


_ARGUMENT_VALUES: dict[wire.ArgType, Part] = {
    wire.ArgType.NULL: _Nothing(),
    wire.ArgType.INT32: _Signed(),
    wire.ArgType.UINT32: _Number(),
    wire.ArgType.INT64: _SignedWord(),
    wire.ArgType.UINT64: _Word(),
    wire.ArgType.DOUBLE: _Double(),
    wire.ArgType.STRING: StringReference(),
    wire.ArgType.POINTER: _Word(),
    wire.ArgType.KOID: _Word(),
    wire.ArgType.BOOL: _Flag(),
    wire.ArgType.BLOB: _Stream("blob_size"),
}
ARGUMENT_KINDS = tuple(
    _argument_kind(
        number, _ARGUMENT_VALUES[wire.ArgType(number)] if number in wire.ARG_NAMES else _Rest()
    )
    for number in range(wire.ARG_TYPE.limit + 1)
)
_ARGUMENT_BY_NAME = {kind.shown: kind for kind in ARGUMENT_KINDS}
_ARGUMENT_NUMBERS = {kind.shown: kind.number for kind in ARGUMENT_KINDS if type(kind.shown) is str}
_ARG_SIZE = _Number(wire.ARG_SIZE)


@attrs.define(kw_only=True)
class Argument:
    """A named value of a record (Argument header).

    ``type`` is one of null int32 uint32 int64 uint64 double string pointer koid bool blob, or the
    number of a type that the format does not define; ``value`` is None, an int, float, bool, str,
    or bytes (a blob's, or the payload words of an unknown type).
    """

    name: str
    type: str | int
    value: Value = attrs.field(eq=exactly)
    refs: dict[str, int] | None = None
    """Indexes of ``name`` and, of a string, ``value``, where they are indexed."""
    bits: int | None = None
    """The 64 bits of a double that is a NaN, where they are not the usual ones."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """What name and value are made of."""
        return _ARGUMENT_BY_NAME[self.type].parts

    def to_json(self) -> dict[str, Any]:
        """The argument as CONTRACTS §3 shows it."""
        out: dict[str, Any] = {}
        name, value = _ARGUMENT_BY_NAME[self.type].parts
        name.show(self, out)
        out["type"] = self.type
        value.show(self, out)
        if self.refs:
            out["refs"] = dict(self.refs)
        return out

    @classmethod
    def from_json(cls, given: Any, what: str = "argument") -> Argument:
        """An argument from its JSON. Raises WriteRefusedError (FXT0401 to FXT0403)."""
        if not isinstance(given, Mapping):
            raise refusal("FXT0401", f"{what}: an argument is an object, not {given!r}")
        form = _Form(what, given)
        shown = form.one_of("type", _ARGUMENT_NUMBERS, wire.ARG_TYPE.limit)
        kind = _ARGUMENT_BY_NAME[shown]
        values: dict[str, Any] = {}
        for part in kind.parts:
            part.parse(form, values)
        refs = form.indexes(kind.parts)
        form.finish()
        return cls(type=shown, refs=refs, **values)

    def pack(self, outer: _Builder) -> bytes:
        """The argument's bytes; its refs are taken at their word."""
        kind = _ARGUMENT_BY_NAME[self.type]
        b = _Builder(outer.pack, kind.number, self, outer)
        for part in kind.parts:
            part.write(self, b)
        return b.finish(_ARG_SIZE)

    def live(self, tables: Tables) -> Argument:
        """The argument with only those refs that still give what it shows."""
        if not self.refs:
            return self
        refs = _live_refs(self, _ARGUMENT_BY_NAME[self.type].parts, tables)
        return self if refs == self.refs else attrs.evolve(self, refs=refs)


def _read_argument(c: Cursor) -> Argument:
    """The next argument."""
    kind = c.enter_argument()
    if kind.shown is kind.number:
        c.find("FXT0110", f"argument type {kind.number}")
    if c.header & kind.reserved:
        c.find_once(reserved=True)
    values: dict[str, Any] = {}
    for part in kind.parts:
        part.read(c, values)
    if c.at < c.end:
        c.find("FXT0114", f"{(c.end - c.at) // WORD} words beyond the value")
    argument = Argument(type=kind.shown, refs=c.refs, **values)
    c.leave_argument()
    return argument


def _live_refs(holder: Any, parts: tuple[Part, ...], tables: Tables) -> dict[str, int] | None:
    refs = holder.refs
    return {
        part.name: refs[part.name]
        for part in parts
        if isinstance(part, Reference)
        and part.name in refs
        and part.holds(holder, refs[part.name], tables)
    } or None


# --- Records -----------------------------------------------------------------------------------

_PARTS = "fx_trace.parts"


def _field(*parts: Part, default: Any = attrs.NOTHING) -> Any:
    """An attribute, and the parts of the record that it is made of; the last one gives it."""
    return attrs.field(default=default, metadata={_PARTS: parts})


@attrs.define(kw_only=True)
class TraceRecord:
    """One record of a trace, lossless. Two records are equal where they say the same, wherever.

    ``refs`` has the indexes of fields that are references, by field. ``raw`` is the whole record
    as it stands in the file, where fields and refs alone would not give the same bytes.
    """

    record: ClassVar[str] = ""
    """The kind of record, as JSON has it."""
    constants: ClassVar[Mapping[str, str | int]] = {}
    """What tells this kind from others of the record, as JSON has it."""
    layout: ClassVar[WordLayout] = wire.HEADER
    """Its header word."""
    parts: ClassVar[tuple[Part, ...]] = ()
    """What its fields are made of, in the order of the file."""
    known: ClassVar[bool] = True
    """Whether the format defines the kind."""
    _header: ClassVar[int] = 0
    """The header's type and kind; size and fields are zero."""
    _reserved: ClassVar[int] = 0
    _readers: ClassVar[tuple[Callable[[Cursor, dict[str, Any]], None], ...]] = ()

    offset: int = attrs.field(default=0, eq=False)
    """Byte offset in the (unpacked) file."""
    nbytes: int = attrs.field(default=0, eq=False)
    """Bytes that it takes in the file."""
    refs: dict[str, int] | None = None
    raw: bytes | memoryview | None = None
    ns: int | None = attrs.field(default=None, eq=False)
    """Its time in nanoseconds, by the clock in force there; None where it has none."""

    def to_json(self) -> dict[str, Any]:
        """The record as CONTRACTS §3 shows it, ready for ``json.dumps``."""
        out: dict[str, Any] = {
            "record": self.record,
            "offset": self.offset,
            "nbytes": self.nbytes,
        }
        out |= self.constants
        for part in self.parts:
            part.show(self, out)
        if self.refs:
            out["refs"] = dict(self.refs)
        if self.raw is not None:
            out["raw"] = self.raw.hex()
        return out

    @property
    def opaque(self) -> bool:
        """Whether the format does not define the kind, so that only ``raw`` says what is in it."""
        return not self.known

    def pack(self, *, big_endian: bool = False) -> bytes:
        """The bytes that fields and refs give; refs are taken at their word, ``raw`` is not used.

        Raises WriteRefusedError where the format cannot hold a value (FXT0402 to FXT0409).
        """
        if self.opaque:
            raise refusal(
                "FXT0408", f"{self.record}: a kind that is not ours has no bytes but its raw ones"
            )
        b = _Builder(_PACK[big_endian], self._header, self)
        for part in self.parts:
            part.write(self, b)
        return b.finish(_LARGE_SIZE if self._header & 15 == RecordType.LARGE else _SIZE)

    def live(self, tables: Tables) -> Self:
        """The record with only those refs that still give what it shows."""
        changes: dict[str, Any] = {}
        if self.refs:
            refs = _live_refs(self, self.parts, tables)
            if refs != self.refs:
                changes["refs"] = refs
        arguments = getattr(self, "args", ())
        live = tuple(argument.live(tables) for argument in arguments)
        if any(new is not old for new, old in zip(live, arguments, strict=True)):
            changes["args"] = live
        return attrs.evolve(self, **changes) if changes else self

    def apply(self, tables: Tables, find: Callable[[str, str], None]) -> None:
        """Tell the tables what this record says about later ones."""


_PACK = (_U64.pack, struct.Struct(">Q").pack)
_SIZE = _Number(wire.SIZE)
_LARGE_SIZE = _Number(wire.LARGE_SIZE)

_KIND_BITS: dict[int, tuple[Bits, ...]] = {
    RecordType.METADATA: (wire.METADATA_TYPE,),
    RecordType.SCHEDULING: (wire.SCHEDULING_TYPE,),
    RecordType.PROFILER: (wire.PROFILER_TYPE,),
    RecordType.LARGE: tuple(
        bits for bits in wire.LARGE_BLOB.fields if bits.name in {"large_type", "blob_format"}
    ),
}
"""Where the header says which kind of a record it is, for the types that have several."""
_KIND_MASKS = tuple(
    15 | sum(bits.mask for bits in _KIND_BITS.get(number, ())) for number in range(16)
)
_BY_HEADER: dict[int, type[TraceRecord]] = {}
"""The class for a header of which only record type and kind are left."""
_BY_TYPE: dict[int, type[TraceRecord]] = {}
"""What stands for the kinds that the format does not define."""
_BY_NAME: dict[str, list[type[TraceRecord]]] = {}


def _declare(
    record: str,
    record_type: RecordType | None,
    layout: WordLayout,
    *,
    known: bool = True,
    **kind: IntEnum,
) -> Callable[[type[TraceRecord]], Any]:
    """Make a class the one for a record type, and, where that has several kinds, for one ``kind``.

    A kind is named by its JSON keys: ``kind``, which shows its name, or the two of a large blob.
    ``known`` is whether the format defines the kind, so that its reserved bits are known.
    """

    def register(cls: type[TraceRecord]) -> type[TraceRecord]:
        word = layout
        parts: list[Part] = []
        for attribute in attrs.fields(cls):
            for part in attribute.metadata.get(_PARTS, ()):
                word = part.bind(attribute.name, word)
                parts.append(part)
        for number, part in enumerate(parts):
            if isinstance(part, _ThreadOrProcess):
                part.following = tuple(parts[number + 1 :])
        cls.record = record
        cls.layout = layout
        cls.parts = tuple(parts)
        cls.constants = {
            key: member.name.lower() if key == "kind" else int(member)
            for key, member in kind.items()
        }
        cls.known = known
        cls._readers = tuple(part.read for part in parts)
        cls._reserved = layout.reserved_mask if known else 0
        _BY_NAME.setdefault(record, []).append(cls)
        if record_type is None:
            return cls
        if not known:
            _BY_TYPE[record_type] = cls
            return cls
        cls._header = int(record_type)
        for bits, member in zip(_KIND_BITS.get(record_type, ()), kind.values(), strict=True):
            cls._header |= bits.put(member)
        _BY_HEADER[cls._header] = cls
        return cls

    return register


def class_of(header: int) -> type[TraceRecord]:
    """The class for the record with this header word."""
    cls = _BY_HEADER.get(header & _KIND_MASKS[header & 15])
    return _BY_TYPE.get(header & 15, Unknown) if cls is None else cls


# Metadata record


@_declare("metadata", RecordType.METADATA, wire.PROVIDER_INFO, kind=wire.MetadataType.PROVIDER_INFO)
@attrs.define(kw_only=True)
class ProviderInfo(TraceRecord):
    """A provider is introduced; what follows is its (Provider info metadata)."""

    id: int = _field(_Number("provider_id"))
    name: str = _field(_Text("name_length"))

    def apply(self, tables: Tables, find: Callable[[str, str], None]) -> None:
        """Begin with empty tables; earlier ones of an introduced provider are forgotten."""
        provider = tables.providers.setdefault(self.id, _Provider())
        if provider.introduced:
            find("FXT0205", f"provider {self.id} again; its strings and threads are forgotten")
            provider.strings = _NO_STRINGS
            provider.threads = _NO_THREADS
        provider.introduced = True
        tables.current = provider


@_declare(
    "metadata", RecordType.METADATA, wire.PROVIDER_SECTION, kind=wire.MetadataType.PROVIDER_SECTION
)
@attrs.define(kw_only=True)
class ProviderSection(TraceRecord):
    """What follows is this provider's (Provider section metadata)."""

    id: int = _field(_Number("provider_id"))

    def apply(self, tables: Tables, find: Callable[[str, str], None]) -> None:
        """Go on with the tables of that provider."""
        if self.id not in tables.providers:
            find("FXT0206", f"provider {self.id} was never introduced")
            tables.providers[self.id] = _Provider()
        tables.current = tables.providers[self.id]


@_declare(
    "metadata", RecordType.METADATA, wire.PROVIDER_EVENT, kind=wire.MetadataType.PROVIDER_EVENT
)
@attrs.define(kw_only=True)
class ProviderEvent(TraceRecord):
    """Something that a provider reports about itself (Provider event metadata)."""

    id: int = _field(_Number("provider_id"))
    event: int = _field(_Number("event_id"))
    """0: its buffer was full."""

    def apply(self, tables: Tables, find: Callable[[str, str], None]) -> None:
        """Say what happened to the provider; it changes nothing."""
        if self.event == 0:
            find("FXT0207", f"the buffer of provider {self.id} was full")
        else:
            find("FXT0111", f"event {self.event} of provider {self.id}")


@_declare("metadata", RecordType.METADATA, wire.TRACE_INFO, kind=wire.MetadataType.TRACE_INFO)
@attrs.define(kw_only=True)
class TraceInfo(TraceRecord):
    """The magic number (Magic number record), or trace info of a type that is not ours."""

    info_type: int = _field(_Number("trace_info_type"))
    magic: int | None = _field(_Magic(), default=None)
    """None where ``info_type`` is not 0."""

    @property
    def opaque(self) -> bool:
        """Whether the format does not define the type of trace info."""
        return self.info_type != 0


@_declare("metadata", RecordType.METADATA, wire.METADATA, known=False)
@attrs.define(kw_only=True)
class UnknownMetadata(TraceRecord):
    """Metadata of a type that the format does not define: its number and its bytes."""

    kind: int = _field(_Number("metadata_type"), _Opaque("metadata type"))


# Records that set the stage


@_declare("initialization", RecordType.INITIALIZATION, wire.INITIALIZATION)
@attrs.define(kw_only=True)
class Initialization(TraceRecord):
    """The rate of the provider's clock (Initialization record; notes §1.4 for the base)."""

    ticks_per_second: int = _field(_Word())
    base_tick: int | None = _field(_BaseTime(), default=None)
    base_wall_ns: int | None = None
    """Nanoseconds since the Unix epoch at ``base_tick``."""

    def apply(self, tables: Tables, find: Callable[[str, str], None]) -> None:
        """Set the provider's rate, where it is one."""
        provider = tables.current
        rate = self.ticks_per_second
        if self.base_tick is not None:
            find("FXT0204", f"base tick {self.base_tick}, wall time {self.base_wall_ns} ns")
        if not rate:
            find("FXT0203", "")
            return
        if provider.ticks_per_second not in (None, rate):
            find("FXT0209", f"{provider.ticks_per_second} ticks per second become {rate}")
        provider.ticks_per_second = rate
        provider.clock = Clock(rate, self.base_tick or 0, self.base_wall_ns)


@_declare("string", RecordType.STRING, wire.STRING)
@attrs.define(kw_only=True)
class StringRecord(TraceRecord):
    """A string is registered at an index (String record)."""

    index: int = _field(_Number("string_index"))
    value: str = _field(_Text("string_length"))

    def apply(self, tables: Tables, find: Callable[[str, str], None]) -> None:
        """Register the string."""
        if self.index:
            provider = tables.current
            if provider.strings is _NO_STRINGS:
                provider.strings = {}
            provider.strings[self.index] = self.value
        else:
            find("FXT0109", "a string with index 0")


@_declare("thread", RecordType.THREAD, wire.THREAD)
@attrs.define(kw_only=True)
class ThreadRecord(TraceRecord):
    """A thread is registered at an index (Thread record)."""

    index: int = _field(_Number("thread_index"))
    pid: int = _field(_Word())
    tid: int = _field(_Word())

    def apply(self, tables: Tables, find: Callable[[str, str], None]) -> None:
        """Register the thread."""
        if self.index:
            provider = tables.current
            if provider.threads is _NO_THREADS:
                provider.threads = {}
            provider.threads[self.index] = (self.pid, self.tid)
        else:
            find("FXT0109", "a thread with index 0")


# Records of what happened


@_declare("event", RecordType.EVENT, wire.EVENT)
@attrs.define(kw_only=True)
class Event(TraceRecord):
    """Something that happened on a thread (Event record).

    ``event`` is one of instant counter duration_begin duration_end duration_complete async_begin
    async_instant async_end flow_begin flow_step flow_end, or a number that has no name.
    """

    event: str | int = _field(_Named("event_type"))
    timestamp: int = _field(_Word())
    thread: Koids = _field(_Thread())
    category: str = _field(StringReference())
    name: str = _field(StringReference())
    args: tuple[Argument, ...] = _field(Arguments("arg_count"), _Tail(), default=())
    scope: str | int | None = None
    """Of an instant, where it has one: thread, process, global, or a number."""
    counter_id: int | None = None
    end_timestamp: int | None = None
    """Of a duration_complete, ticks."""
    id: int | None = None
    """Of asynchronous and flow events, what tells operations apart."""


@_declare("blob", RecordType.BLOB, wire.BLOB)
@attrs.define(kw_only=True)
class Blob(TraceRecord):
    """Bytes of some other format (BLOB record)."""

    name: str = _field(StringReference())
    blob_type: int = _field(_Number())
    """1 data, 2 last branch records, 3 Perfetto."""
    payload: bytes = _field(_Payload("blob_size", key="payload_hex"))


@_declare("userspace_object", RecordType.USERSPACE_OBJECT, wire.USERSPACE_OBJECT)
@attrs.define(kw_only=True)
class UserspaceObject(TraceRecord):
    """What a pointer of a process points to (Userspace object record)."""

    pointer: int = _field(_Word())
    process: int | str = _field(_Process())
    """The process koid, or ``<thr#N>`` where index N was never registered."""
    name: str = _field(StringReference())
    args: tuple[Argument, ...] = _field(Arguments("arg_count"), default=())
    thread: tuple[int, int] | None = None
    """Process and thread koid, where the reference has both inline."""


@_declare("kernel_object", RecordType.KERNEL_OBJECT, wire.KERNEL_OBJECT)
@attrs.define(kw_only=True)
class KernelObject(TraceRecord):
    """What a koid stands for (Kernel object record)."""

    object_type: int = _field(_Number())
    """ZX_OBJ_TYPE_*: 1 a process, 2 a thread."""
    koid: int = _field(_Word())
    name: str = _field(StringReference(code="FXT0108"))
    args: tuple[Argument, ...] = _field(Arguments("arg_count"), default=())


# Scheduling record


@_declare(
    "scheduling",
    RecordType.SCHEDULING,
    wire.CONTEXT_SWITCH,
    kind=wire.SchedulingType.CONTEXT_SWITCH,
)
@attrs.define(kw_only=True)
class ContextSwitch(TraceRecord):
    """A CPU goes from one thread to another (Context switch record)."""

    cpu: int = _field(_Number())
    timestamp: int = _field(_Word())
    outgoing_state: int = _field(_Number())
    """0 new, 1 running, 2 suspended, 3 blocked, 4 dying, 5 dead."""
    outgoing_tid: int = _field(_Word())
    incoming_tid: int = _field(_Word())
    args: tuple[Argument, ...] = _field(Arguments("arg_count"), default=())


@_declare(
    "scheduling", RecordType.SCHEDULING, wire.THREAD_WAKEUP, kind=wire.SchedulingType.THREAD_WAKEUP
)
@attrs.define(kw_only=True)
class ThreadWakeup(TraceRecord):
    """A thread can run again (Thread wakeup record)."""

    cpu: int = _field(_Number())
    timestamp: int = _field(_Word())
    waking_tid: int = _field(_Word())
    args: tuple[Argument, ...] = _field(Arguments("arg_count"), default=())


@_declare(
    "scheduling",
    RecordType.SCHEDULING,
    wire.LEGACY_CONTEXT_SWITCH,
    kind=wire.SchedulingType.LEGACY_CONTEXT_SWITCH,
)
@attrs.define(kw_only=True)
class LegacyContextSwitch(TraceRecord):
    """A CPU goes from one thread to another, as was written once (Legacy context switch record)."""

    cpu: int = _field(_Number())
    timestamp: int = _field(_Word())
    outgoing_state: int = _field(_Number())
    outgoing: Koids = _field(_Thread())
    incoming: Koids = _field(_Thread())
    outgoing_priority: int = _field(_Number())
    incoming_priority: int = _field(_Number())


@_declare("scheduling", RecordType.SCHEDULING, wire.SCHEDULING, known=False)
@attrs.define(kw_only=True)
class UnknownScheduling(TraceRecord):
    """Scheduling of a type that the format does not define: its number and its bytes."""

    kind: int = _field(_Number("scheduling_type"), _Opaque("scheduling type"))


@_declare("log", RecordType.LOG, wire.LOG)
@attrs.define(kw_only=True)
class Log(TraceRecord):
    """A line that was logged (Log record)."""

    timestamp: int = _field(_Word())
    thread: Koids = _field(_Thread())
    message: str = _field(_Text("message_length"))


# Profiler record (notes §1.3)


@_declare("profiler", RecordType.PROFILER, wire.PROFILER_MODULE, kind=wire.ProfilerType.MODULE)
@attrs.define(kw_only=True)
class ProfilerModule(TraceRecord):
    """A module that a process has loaded (notes §1.3)."""

    timestamp: int = _field(_Word())
    thread: Koids | None = _field(_ThreadOrProcess(), default=None)
    """None where ``process`` stands instead of it."""
    module_id: int = _field(_Number())
    name: str = _field(_Text("name_length"))
    build_id: bytes = _field(_Stream("build_id_length"))
    process: int | None = None
    """The process koid, where the reference has one word inline."""


@_declare("profiler", RecordType.PROFILER, wire.PROFILER_MMAP, kind=wire.ProfilerType.MMAP)
@attrs.define(kw_only=True)
class ProfilerMmap(TraceRecord):
    """Where a module is mapped (notes §1.3); addresses and ``range`` in bytes."""

    timestamp: int = _field(_Word())
    thread: Koids | None = _field(_ThreadOrProcess(), default=None)
    """None where ``process`` stands instead of it."""
    module_id: int = _field(_Number())
    flags: int = _field(_Number())
    """1 readable, 2 writable, 4 executable."""
    start_address: int = _field(_Word())
    range: int = _field(_Word())
    vaddr: int = _field(_Word())
    process: int | None = None
    """The process koid, where the reference has one word inline."""


@_declare(
    "profiler", RecordType.PROFILER, wire.PROFILER_BACKTRACE, kind=wire.ProfilerType.BACKTRACE
)
@attrs.define(kw_only=True)
class ProfilerBacktrace(TraceRecord):
    """The call stack of a thread, as code addresses (notes §1.3)."""

    timestamp: int = _field(_Word())
    thread: Koids = _field(_Thread())
    frames: tuple[int, ...] = _field(_Words("frame_count"))


@_declare("profiler", RecordType.PROFILER, wire.PROFILER, known=False)
@attrs.define(kw_only=True)
class UnknownProfiler(TraceRecord):
    """A profiler record of a type that is not ours: its number and its bytes."""

    kind: int = _field(_Number("profiler_type"), _Opaque("profiler record type"))


# Large record


@_declare(
    "large",
    RecordType.LARGE,
    wire.LARGE_BLOB,
    large_type=wire.LargeType.BLOB,
    blob_format=wire.LargeBlobFormat.METADATA,
)
@attrs.define(kw_only=True)
class LargeBlobWithMetadata(TraceRecord):
    """Many bytes, and when and where they came about (In-band large BLOB record with metadata)."""

    category: str = _field(NextHeader(wire.LARGE_BLOB_METADATA_FORMAT), StringReference())
    name: str = _field(StringReference())
    timestamp: int = _field(_Word())
    thread: Koids = _field(_Thread())
    args: tuple[Argument, ...] = _field(Arguments("arg_count"), default=())
    payload: bytes = _field(_LargePayload(key="payload_hex"))


@_declare(
    "large",
    RecordType.LARGE,
    wire.LARGE_BLOB,
    large_type=wire.LargeType.BLOB,
    blob_format=wire.LargeBlobFormat.NO_METADATA,
)
@attrs.define(kw_only=True)
class LargeBlob(TraceRecord):
    """Many bytes (In-band large BLOB record without metadata)."""

    category: str = _field(NextHeader(wire.LARGE_BLOB_FORMAT), StringReference())
    name: str = _field(StringReference())
    payload: bytes = _field(_LargePayload(key="payload_hex"))


class _BlobFormat(_Number):
    """The format of a large blob, where it is one."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        large_type = values["large_type"]
        values[self.name] = None
        c.at = c.end
        if large_type != wire.LargeType.BLOB:
            c.find("FXT0111", f"large type {large_type}")
            return
        super().read(c, values)
        c.find("FXT0111", f"large blob format {values[self.name]}")

    def show(self, record: Any, out: dict[str, Any]) -> None:
        if record.blob_format is not None:
            super().show(record, out)

    def parse(self, form: _Form, values: dict[str, Any]) -> None:
        if self.name in form:
            super().parse(form, values)


@_declare("large", RecordType.LARGE, wire.LARGE_BLOB, known=False)
@attrs.define(kw_only=True)
class UnknownLarge(TraceRecord):
    """A large record of a type, or a blob of a format, that is not ours: its numbers and bytes."""

    large_type: int = _field(_Number())
    blob_format: int | None = _field(_BlobFormat(), default=None)
    """None where ``large_type`` is not that of a blob."""


# Stretches that are no record of ours


class _Skipped(Part):
    """Everything after the header, skipped by the record's size."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        c.at = c.end


@_declare("unknown", None, wire.HEADER, known=False)
@attrs.define(kw_only=True)
class Unknown(TraceRecord):
    """A record of a type that the format does not define: its number and its bytes."""

    type: int = _field(_Number("record_type"), _Skipped())


@_declare("padding", None, wire.HEADER, known=False)
@attrs.define(kw_only=True)
class Padding(TraceRecord):
    """Zero words where a record should begin, ``nbytes`` of them in bytes."""


@_declare("damaged", None, wire.HEADER, known=False)
@attrs.define(kw_only=True)
class Damaged(TraceRecord):
    """Bytes in which no sound record was found; ``raw`` may be a view of the file."""

    code: str
    """The finding that says why."""

    def to_json(self) -> dict[str, Any]:
        """The record as CONTRACTS §3 shows it."""
        out = super().to_json()
        raw = out.pop("raw")
        return {**out, "code": self.code, "raw": raw}


def from_json(given: Mapping[str, Any]) -> TraceRecord:
    """The record that a JSON object of CONTRACTS §3 says.

    ``offset``, ``nbytes`` and the size of a payload are not looked at (they follow from the rest;
    padding has its length from ``nbytes``), and ``args`` may be missing where there are none.
    Raises WriteRefusedError: FXT0401 for no such record, FXT0402 for a field that is missing or
    unknown, FXT0403 and FXT0404 for a value of the wrong kind or size.
    """
    if not isinstance(given, Mapping):
        raise refusal("FXT0401", f"a record is an object, not {reprlib.repr(given)}")
    name = given.get("record")
    if not isinstance(name, str) or name not in _BY_NAME:
        hint = did_you_mean(name, _BY_NAME) if isinstance(name, str) else ""
        raise refusal("FXT0401", f"no record {reprlib.repr(name)}{hint}")
    form = _Form(name, given)
    form.used |= {"record", "offset", "nbytes"}
    cls = _class_for(form, _BY_NAME[name])
    form.used |= set(cls.constants)
    values: dict[str, Any] = {}
    if cls is Padding:
        values["nbytes"] = form.number("nbytes")
    elif cls is Damaged:
        values["code"] = form.text("code")
        form.need("raw")
    for part in cls.parts:
        part.parse(form, values)
    refs = form.indexes(cls.parts)
    raw = form.octets("raw") if "raw" in form else None
    form.finish()
    return cls(refs=refs, raw=raw, **values)


def _class_for(form: _Form, classes: list[type[TraceRecord]]) -> type[TraceRecord]:
    """The class among those of one record that the object's kind asks for; unknown kinds last."""
    cls = next(cls for cls in classes if _asks_for(form, cls))
    kind = form.given.get("kind")
    if isinstance(kind, str) and "kind" in {part.name for part in cls.parts}:
        kinds = [str(each.constants["kind"]) for each in classes if each.constants]
        raise refusal("FXT0401", f"{form.what}: no kind {kind!r}{did_you_mean(kind, kinds)}")
    return cls


def _asks_for(form: _Form, cls: type[TraceRecord]) -> bool:
    """Whether the object has the constants of a class, by name or by number."""
    for key, shown in cls.constants.items():
        given = form.given.get(key)
        bits = _KIND_BITS[cls._header & 15][0]
        number = bits.get(cls._header) if key == "kind" else shown
        if type(given) not in (str, int) or given not in (shown, number):
            return False
    return True


# --- Framing: where records begin and end ------------------------------------------------------

_MINIMUM = {int(type): words for type, words in wire.MINIMUM_WORDS.items()}
_TYPE_NAMES = wire.names(RecordType)
Frame = tuple[int, int, int, str | None]
"""First byte, byte after the last, header word, and the finding about it, if any."""


def _words(header: int) -> int:
    """The size in words that a header claims."""
    size = _LARGE_SIZE if header & 15 == RecordType.LARGE else _SIZE
    return header >> size.low & size.limit


def frames(data: Data, *, big_endian: bool = False, max_record: int = 0) -> Iterator[Frame]:
    """The stretches that a file falls into, without gaps, from the header words alone.

    The finding is None for a sound record, FXT0007 for one of an unknown type, FXT0006 for zero
    words (the run is one stretch); all others are damage. ``max_record`` is in bytes, 0 no limit.
    """
    framer = _Framer(data, big_endian=big_endian, max_record=max_record)
    at = 0
    while at < len(framer.view):
        frame = framer.frame(at)
        yield frame
        at = frame[1]


class _Framer:
    """Tells from the header word at a place what stretch of the file begins there."""

    def __init__(self, data: Data, *, big_endian: bool, max_record: int) -> None:
        self.view = view_of(data)
        self._order = ">" if big_endian else "<"
        self._word = struct.Struct(f"{self._order}Q").unpack_from
        self._whole = len(self.view) // WORD * WORD
        self._max_record = max_record

    def frame(self, at: int) -> Frame:
        """The stretch that begins at byte ``at``."""
        view, word, whole = self.view, self._word, self._whole
        if at >= whole:
            return at, len(view), 0, "FXT0005"
        header = word(view, at)[0]
        nbytes = _words(header) * WORD
        minimum = _MINIMUM.get(header & 15)
        end = at + nbytes
        code = None
        if not header:
            code = "FXT0006"
            end = _zeros_end(view, at, whole)
        elif not nbytes:
            code = "FXT0001"
            end = _resume(view, self._order, at, whole)
        elif end > whole:
            code = "FXT0002"
            end = _resume(view, self._order, at, whole)
        elif minimum is None:
            code = "FXT0007"
        elif nbytes < minimum * WORD:
            code = "FXT0003"
            end = _resume(view, self._order, at, whole)
        if self._max_record and nbytes > self._max_record and code in (None, "FXT0007"):
            code = "FXT0008"
        return at, end, header, code


def _zeros_end(view: memoryview, at: int, whole: int) -> int:
    """The end of the run of zero words that begins at byte ``at``."""
    piece = 1 << 12
    while at < whole:
        chunk = view[at : min(at + piece, whole)].tobytes()
        left = len(chunk.lstrip(b"\0"))
        at += (len(chunk) - left) // WORD * WORD
        if left:
            return at
    return at


def _resume(view: memoryview, order: str, at: int, whole: int) -> int:
    """Where to go on after damage at byte ``at``: the next run of sound records, or the end."""
    word = struct.Struct(f"{order}Q").unpack_from
    start = at + WORD
    nbytes = 64 * WORD
    while start < whole:
        stop = min(start + nbytes, whole)
        for number in _sound_headers(view[start:stop], order, (whole - start) // WORD):
            end = start + number * WORD
            for _ in range(wire.SOUND_RUN):
                end = _sound_end(view, word, end, whole)
            if end:
                return start + number * WORD
        start = stop
        nbytes = min(2 * nbytes, 1 << 19)  # little to look at where damage is short
    return len(view)


def _sound_headers(view: memoryview, order: str, left: int) -> list[int]:
    """Which words could be headers of records that end within ``left`` words, all at once."""
    import numpy as np

    headers = np.frombuffer(view, f"{order}u8").astype(np.uint64)
    types = (headers & np.uint64(15)).astype(np.intp)
    masks = np.full(16, _SIZE.limit, np.uint64)
    masks[RecordType.LARGE] = _LARGE_SIZE.limit
    least = np.array([_MINIMUM.get(number, U64_MAX) for number in range(16)], np.uint64)
    sizes = headers >> np.uint64(_SIZE.low) & masks[types]
    room = np.uint64(left) - np.arange(len(headers), dtype=np.uint64)
    return [int(number) for number in np.flatnonzero((sizes >= least[types]) & (sizes <= room))]


def _sound_end(view: memoryview, word: Callable[..., tuple[int]], at: int, whole: int) -> int:
    """The end of the sound record at byte ``at``; 0 where there is none, or ``at`` is 0."""
    if not 0 < at < whole:
        return 0
    (header,) = word(view, at)
    words = _words(header)
    end = at + words * WORD
    return end if words >= _MINIMUM.get(header & 15, U64_MAX) and end <= whole else 0


def _frame_message(code: str, header: int, nbytes: int) -> str:
    """The finding about a stretch, in words."""
    type = _TYPE_NAMES.get(header & 15, f"type {header & 15}")
    size = _words(header)
    return {
        "FXT0001": f"a record of size zero (header {header:#018x}); {nbytes} bytes are damaged",
        "FXT0002": f"a record ({type}) of {size} words passes the end; {nbytes} bytes are damaged",
        "FXT0003": f"a record ({type}) of {size} words, too few; {nbytes} bytes are damaged",
        "FXT0005": f"{nbytes} odd bytes at the end",
        "FXT0006": f"{nbytes // WORD} zero words",
        "FXT0007": f"record type {header & 15}",
        "FXT0008": f"a record ({type}) of {nbytes} bytes",
    }[code]


# --- Decoder and encoder -----------------------------------------------------------------------


class _Core:
    """Decodes one record at a time against the tables so far."""

    def __init__(self, *, big_endian: bool) -> None:
        self.big_endian = big_endian
        self.tables = Tables()
        self.cursor = Cursor(self.tables, big_endian=big_endian)

    def read(self, view: memoryview, at: int, end: int, header: int) -> TraceRecord:
        """The sound record at bytes ``at`` to ``end``; Damaged where its contents overrun it.

        What was noticed stands in ``cursor.findings``; the tables are not told.
        """
        c = self.cursor
        c.begin(view, at, end, header)
        cls = class_of(header)
        values: dict[str, Any] = {}
        if header & cls._reserved:
            c.find_once(reserved=True)
        try:
            for read in cls._readers:
                read(c, values)
        except OverrunError:
            type = _TYPE_NAMES.get(header & 15)
            message = f"the contents of a record ({type}) need more than its {end - at} bytes"
            c.findings = [("FXT0004", message, at)]
            return Damaged(offset=at, nbytes=end - at, code="FXT0004", raw=view[at:end])
        if c.reserved is not None:
            c.findings.append(("FXT0101", "", c.reserved))
        if c.unpadded is not None:
            c.findings.append(("FXT0102", "", c.unpadded))
        if c.at < end:
            c.find("FXT0103", f"{(end - c.at) // WORD} words beyond what the record needs")
        record = cls(offset=at, nbytes=end - at, refs=c.refs, **values)
        data = view[at:end].tobytes()
        if not self._gives(record, data):
            record.raw = data
        return record

    def _gives(self, record: TraceRecord, data: bytes) -> bool:
        """Whether fields and refs alone encode to these bytes."""
        try:
            return record.pack(big_endian=self.big_endian) == data
        except WriteRefusedError:
            return False


class RecordDecoder:
    """Reads a trace record by record, in file order.

    ``big_endian`` says how words stand (``layout.is_big_endian`` tells from the first bytes);
    findings go to ``diagnostics``; of ``limits``, ``max_record`` is heeded. Nothing that the bytes
    say raises an exception, but for the StrictError of strict diagnostics.
    """

    def __init__(
        self,
        *,
        big_endian: bool = False,
        diagnostics: Diagnostics | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.big_endian = big_endian
        self.diagnostics = diagnostics
        self.limits = limits or Limits()

    def records(self, data: Data) -> Iterator[TraceRecord]:
        """Every record, padding and damage included; their ``nbytes`` add up to ``len(data)``.

        Each is made when it is asked for; the tables of strings and threads are what is kept.
        """
        reading = self.begin(data)
        at = 0
        while at < len(reading.framer.view):
            record = reading.record(at)
            yield record
            at += record.nbytes

    def begin(self, data: Data) -> Reading:
        """A reading from the beginning of ``data``, for whoever takes some records themselves."""
        return Reading(self, data)


class Reading:
    """A walk through a trace: the tables so far, and the number of the record that comes next."""

    def __init__(self, decoder: RecordDecoder, data: Data) -> None:
        self.framer = _Framer(
            data, big_endian=decoder.big_endian, max_record=decoder.limits.max_record
        )
        self.index = 0
        self.diagnostics = decoder.diagnostics
        self._core = _Core(big_endian=decoder.big_endian)
        self.tables = self._core.tables
        self.clean = True
        """Whether nothing was found about the record read last."""

    def record(self, at: int) -> TraceRecord:
        """The record at byte ``at``, where the one before it ended."""
        index = self.index
        self.index = index + 1
        view = self.framer.view
        cursor = self._core.cursor
        record: TraceRecord
        _, end, header, code = self.framer.frame(at)
        self.clean = True
        if not index and header != wire.MAGIC_WORD:
            self._report([("FXT0201", "", at)], index)
        if code is None or code == "FXT0007":
            record = self._core.read(view, at, end, header)
            cursor.spot = at
            record.apply(self.tables, cursor.find)
            ticks = getattr(record, "timestamp", None)
            if ticks is not None:
                record.ns = self.tables.current.clock.ns(ticks)
            if cursor.findings:
                self._report(cursor.findings, index)
        elif code == "FXT0006":
            record = Padding(offset=at, nbytes=end - at)
        else:
            record = Damaged(offset=at, nbytes=end - at, code=code, raw=view[at:end])
        if code is not None:
            self._report([(code, _frame_message(code, header, end - at), at)], index)
        return record

    def _report(self, findings: list[Finding], index: int) -> None:
        self.clean = False
        if self.diagnostics is not None:
            for code, message, offset in findings:
                self.diagnostics.add(code, message, offset=offset, record=index)


class RecordEncoder:
    """Writes records, or their JSON, as the bytes of a trace.

    It keeps tables of strings and threads per provider as a reader of those bytes would. An
    index in ``refs`` counts where it now gives the value that the record shows; else the value
    goes inline. ``raw`` counts where it now decodes to the fields that the record has. So what was
    not edited comes out as it was, and an edit takes effect.
    """

    def __init__(self, *, big_endian: bool = False) -> None:
        self._core = _Core(big_endian=big_endian)

    def encode(self, record: TraceRecord | Mapping[str, Any]) -> bytes:
        """The record's bytes. Raises WriteRefusedError (FXT0401 to FXT0409), nothing changed."""
        if isinstance(record, Mapping):
            record = from_json(record)
        tables = self._core.tables
        if isinstance(record, Padding):
            return _zeros(record.nbytes)
        if record.raw is not None:
            data = bytes(record.raw)
            if isinstance(record, Damaged):
                return data
            if self._decoded(data) == record:
                record.apply(tables, _unheard)
                return data
        record = record.live(tables)
        data = record.pack(big_endian=self._core.big_endian)
        record.apply(tables, _unheard)
        return data

    def _decoded(self, data: bytes) -> TraceRecord | None:
        """The record that these bytes are; None where they are not exactly one sound record."""
        view = memoryview(data)
        stretches = list(frames(view, big_endian=self._core.big_endian))
        if len(stretches) != 1 or stretches[0][3] not in (None, "FXT0007"):
            return None
        return self._core.read(view, 0, len(data), stretches[0][2])


def _unheard(code: str, message: str = "") -> None:
    """Where findings go that the reader of the written bytes will make again."""


def _zeros(nbytes: int) -> bytes:
    if nbytes < 0 or nbytes % WORD:
        raise refusal("FXT0404", f"padding: nbytes is {nbytes}, not a number of 8-byte words")
    try:
        return bytes(nbytes)
    except (MemoryError, OverflowError):
        raise refusal("FXT0404", f"padding: {nbytes} bytes are more than memory holds") from None
