"""Records of the trace format, one at a time: lossless objects, their JSON, decoder and encoder.

Each class below declares its record once, field by field in the order of the file; reading,
writing, JSON both ways and `fxf explain FILE@OFFSET` all follow from that declaration. This is
the decoder for clarity; `scan.py` is the one for speed, and shares nothing with it but the bit
fields of `format.py`.

Strings are Python strings; where the file's bytes are not UTF-8 they hold surrogate escapes, as
`os.fsdecode` makes them, so that nothing is lost. Times are raw ticks, sizes and offsets bytes.
"""

# ruff: noqa: RUF009 (an attribute is made by `_field`, which attrs takes in)

from __future__ import annotations

import reprlib
import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, ClassVar, Self

import attrs
from tests.reference.trace import layout as wire
from tests.reference.trace.arguments import Argument, Arguments, live_refs
from tests.reference.trace.cursor import (
    _U64,
    NO_STRINGS,
    NO_THREADS,
    Cursor,
    Koids,
    RecordBuilder,
    Tables,
    TraceFields,
)
from tests.reference.trace.layout import RecordType
from tests.reference.trace.parts import (
    BaseTime,
    LargePayload,
    Listed,
    Magic,
    Named,
    NextHeader,
    Number,
    Opaque,
    OptionalNumber,
    Part,
    Payload,
    Process,
    Stream,
    StringReference,
    Tail,
    Text,
    Thread,
    ThreadOrProcess,
    Word,
    Words,
    parse_refs,
)

from fx_trace import rules
from fxframework.errors import did_you_mean, refusal
from fxframework.io.words import Bits, WordLayout
from fxframework.kit.json_fields import JsonFields
from fxframework.kit.lossless import DamagedRecord, LosslessRecord
from fxframework.model.clock import Clock

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
]

_PARTS = "fx_trace.parts"


def _field(*parts: Part, default: Any = attrs.NOTHING) -> Any:
    """Return an attribute, and the parts of the record that it is made of.

    The last one gives it.
    """
    return attrs.field(default=default, metadata={_PARTS: parts})


@attrs.define(kw_only=True)
class TraceRecord(LosslessRecord):
    """One record of a trace, lossless. Two records are equal where they say the same, wherever.

    ``refs`` has the indexes of fields that are references, by field. ``raw`` is the whole record
    as it is in the file, where fields and refs alone would not give the same bytes.
    """

    constants: ClassVar[Mapping[str, str | int]] = {}
    """What tells this kind from others of the record, as in JSON."""
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

    refs: dict[str, int] | None = None
    ns: int | None = attrs.field(default=None, eq=False)
    """Its time in nanoseconds, by the clock in force there; None where it has none."""

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        out |= self.constants
        for part in self.parts:
            part.show(self, out)
        if self.refs:
            out["refs"] = dict(self.refs)

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields, from JSON."""
        assert isinstance(form, TraceFields)
        form.used |= set(cls.constants)
        values: dict[str, Any] = {}
        for part in cls.parts:
            part.parse(form, values)
        return {**values, "refs": parse_refs(form, cls.parts)}

    @property
    def title(self) -> str:
        """What a message calls it."""
        return self.record

    @property
    def opaque(self) -> bool:
        """Whether the format does not define the kind, so that only ``raw`` says what is in it."""
        return not self.known

    def pack(self, *, big_endian: bool = False) -> bytes:
        """Return the bytes that fields and refs give.

        Refs are taken at their word, ``raw`` is not used.

        Raises WriteRefusedError where the format cannot hold a value.
        """
        if self.opaque:
            raise refusal(
                rules.RAW_ONLY,
                f"{self.record}: an undefined kind has no bytes but its raw ones",
            )
        b = RecordBuilder(PACK[big_endian], self._header, self)
        for part in self.parts:
            part.write(self, b)
        return b.finish(LARGE_SIZE if wire.TYPE.get(self._header) == RecordType.LARGE else SIZE)

    def with_valid_refs(self, tables: Tables) -> Self:
        """Return the record with only those refs that still give what it shows."""
        changes: dict[str, Any] = {}
        if self.refs:
            refs = live_refs(self, self.parts, tables)
            if refs != self.refs:
                changes["refs"] = refs
        arguments = getattr(self, "args", ())
        live = tuple(argument.with_valid_refs(tables) for argument in arguments)
        if any(new is not old for new, old in zip(live, arguments, strict=True)):
            changes["args"] = live
        return attrs.evolve(self, **changes) if changes else self

    def apply(self, tables: Tables, find: Callable[..., None]) -> None:
        """Tell the tables what this record says about later ones."""


PACK = (_U64.pack, struct.Struct(">Q").pack)
SIZE = Number(wire.SIZE)
LARGE_SIZE = Number(wire.LARGE_SIZE)

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


_TYPE_OF: dict[type[IntEnum], RecordType] = {
    wire.MetadataType: RecordType.METADATA,
    wire.SchedulingType: RecordType.SCHEDULING,
    wire.ProfilerType: RecordType.PROFILER,
    wire.LargeType: RecordType.LARGE,
}
"""The record type of each enumeration of kinds."""
_KEYS: dict[type[IntEnum], str] = {
    wire.LargeType: "large_type",
    wire.LargeBlobFormat: "blob_format",
}
"""Keys by which JSON shows the number of a kind; the name of others is its ``kind``."""


def _declare(
    layout: WordLayout, *kinds: IntEnum | str, known: bool = True
) -> Callable[[type[TraceRecord]], Any]:
    """Make a class the one for a record type, or for one of the kinds that a type has.

    ``known`` is whether the format defines the kind, so that its reserved bits are known. A name
    in place of a type is that of stretches of other words.
    """

    def register(cls: type[TraceRecord]) -> type[TraceRecord]:
        word = layout
        parts: list[Part] = []
        for attribute in attrs.fields(cls):
            for part in attribute.metadata.get(_PARTS, ()):
                word = part.bind(attribute.name, word)
                parts.append(part)
        for number, part in enumerate(parts):
            part.precede(tuple(parts[number + 1 :]))
        cls.layout = layout
        cls.parts = tuple(parts)
        cls.known = known
        cls._readers = tuple(part.read for part in parts)
        cls._reserved = layout.reserved_mask if known else 0
        first, *_ = kinds
        if isinstance(first, str):
            cls.record = first
            _BY_NAME[first] = [cls]
            return cls
        record_type = first if isinstance(first, RecordType) else _TYPE_OF[type(first)]
        cls.record = record_type.name.lower()
        _BY_NAME.setdefault(cls.record, []).append(cls)
        if not known:
            _BY_TYPE[record_type] = cls
            return cls
        members = [kind for kind in kinds if isinstance(kind, IntEnum) and kind is not record_type]
        cls.constants = {
            _KEYS.get(type(member), "kind"): int(member)
            if type(member) in _KEYS
            else member.name.lower()
            for member in members
        }
        cls._header = int(record_type)
        for bits, member in zip(_KIND_BITS.get(record_type, ()), members, strict=True):
            cls._header |= bits.put(member)
        _BY_HEADER[cls._header] = cls
        return cls

    return register


def class_of(header: int) -> type[TraceRecord]:
    """Return the class for the record with this header word."""
    cls = _BY_HEADER.get(header & _KIND_MASKS[wire.TYPE.get(header)])
    return _BY_TYPE.get(wire.TYPE.get(header), Unknown) if cls is None else cls


# Metadata record


@_declare(wire.PROVIDER_INFO_WORD, wire.MetadataType.PROVIDER_INFO)
@attrs.define(kw_only=True)
class ProviderInfo(TraceRecord):
    """A provider is introduced; what follows is its (Provider info metadata)."""

    id: int = _field(Number("provider_id"))
    name: str = _field(Text("name_length"))

    def apply(self, tables: Tables, find: Callable[..., None]) -> None:
        """Begin with empty tables; earlier ones of an introduced provider are forgotten."""
        provider = tables.provider(self.id)
        if provider.introduced:
            find(rules.PROVIDER_AGAIN, self.id)
            provider.strings = NO_STRINGS
            provider.threads = NO_THREADS
        provider.introduced = True
        tables.current = provider


@_declare(wire.PROVIDER_SECTION_WORD, wire.MetadataType.PROVIDER_SECTION)
@attrs.define(kw_only=True)
class ProviderSection(TraceRecord):
    """What follows is this provider's (Provider section metadata)."""

    id: int = _field(Number("provider_id"))

    def apply(self, tables: Tables, find: Callable[..., None]) -> None:
        """Go on with the tables of that provider."""
        if self.id not in tables.providers:
            find(rules.PROVIDER_NOT_INTRODUCED, self.id)
        tables.current = tables.provider(self.id)


@_declare(wire.PROVIDER_EVENT_WORD, wire.MetadataType.PROVIDER_EVENT)
@attrs.define(kw_only=True)
class ProviderEvent(TraceRecord):
    """Something that a provider reports about itself (Provider event metadata)."""

    id: int = _field(Number("provider_id"))
    event: int = _field(Number("event_id"))
    """0: its buffer was full."""

    def apply(self, tables: Tables, find: Callable[..., None]) -> None:
        """Say what happened to the provider; it changes nothing."""
        if self.event == 0:
            find(rules.BUFFER_FULL, self.id)
        else:
            find(rules.UNKNOWN_KIND, self.event)
        if self.id not in tables.providers:
            find(rules.PROVIDER_NOT_INTRODUCED, self.id)


@_declare(wire.TRACE_INFO_WORD, wire.MetadataType.TRACE_INFO)
@attrs.define(kw_only=True)
class TraceInfo(TraceRecord):
    """The magic number (Magic number record), or trace info of an undefined type."""

    info_type: int = _field(Number("trace_info_type"))
    magic: int | None = _field(Magic(), default=None)
    """None where ``info_type`` is not 0."""

    @property
    def opaque(self) -> bool:
        """Whether the format does not define the type of trace info."""
        return self.info_type != 0


@_declare(wire.METADATA, RecordType.METADATA, known=False)
@attrs.define(kw_only=True)
class UnknownMetadata(TraceRecord):
    """Metadata of a type that the format does not define: its number and its bytes."""

    kind: int = _field(Number("metadata_type"), Opaque())


# Records that set the stage


@_declare(wire.INITIALIZATION, RecordType.INITIALIZATION)
@attrs.define(kw_only=True)
class Initialization(TraceRecord):
    """The rate of the provider's clock (Initialization record)."""

    ticks_per_second: int = _field(Word())
    base_tick: int | None = _field(BaseTime(), default=None)
    base_wall_ns: int | None = None
    """Nanoseconds since the Unix epoch at ``base_tick``."""

    def apply(self, tables: Tables, find: Callable[..., None]) -> None:
        """Set the provider's rate, where it is one."""
        provider = tables.current
        rate = self.ticks_per_second
        if self.base_tick is not None:
            find(rules.BASE_TIME)
        if not rate:
            find(rules.RATE_ZERO)
            return
        if provider.ticks_per_second not in (None, rate):
            find(rules.RATE_CHANGES, rate)
        provider.ticks_per_second = rate
        provider.clock = Clock(rate, self.base_tick or 0, self.base_wall_ns)


@_declare(wire.STRING, RecordType.STRING)
@attrs.define(kw_only=True)
class StringRecord(TraceRecord):
    """A string is registered at an index (String record)."""

    index: int = _field(Number("string_index"))
    value: str = _field(Text("string_length"))

    def apply(self, tables: Tables, find: Callable[..., None]) -> None:
        """Register the string."""
        if self.index:
            provider = tables.current
            if provider.strings is NO_STRINGS:
                provider.strings = {}
            provider.strings[self.index] = self.value
        else:
            find(rules.INDEX_ZERO)


@_declare(wire.THREAD, RecordType.THREAD)
@attrs.define(kw_only=True)
class ThreadRecord(TraceRecord):
    """A thread is registered at an index (Thread record)."""

    index: int = _field(Number("thread_index"))
    pid: int = _field(Word())
    tid: int = _field(Word())

    def apply(self, tables: Tables, find: Callable[..., None]) -> None:
        """Register the thread."""
        if self.index:
            provider = tables.current
            if provider.threads is NO_THREADS:
                provider.threads = {}
            provider.threads[self.index] = (self.pid, self.tid)
        else:
            find(rules.INDEX_ZERO)


# Records of what happened


@_declare(wire.EVENT, RecordType.EVENT)
@attrs.define(kw_only=True)
class Event(TraceRecord):
    """Something that happened on a thread (Event record).

    ``event`` is one of instant counter duration_begin duration_end duration_complete async_begin
    async_instant async_end flow_begin flow_step flow_end, or a number that has no name.
    """

    event: str | int = _field(Named("event_type"))
    timestamp: int = _field(Word())
    thread: Koids = _field(Thread())
    category: str = _field(StringReference())
    name: str = _field(StringReference())
    args: tuple[Argument, ...] = _field(Arguments("arg_count"), Tail(), default=())
    scope: str | int | None = None
    """Of an instant, where it has one: thread, process, global, or a number."""
    counter_id: int | None = None
    end_timestamp: int | None = None
    """Of a duration_complete, ticks."""
    id: int | None = None
    """Of asynchronous and flow events, what tells operations apart."""


@_declare(wire.BLOB, RecordType.BLOB)
@attrs.define(kw_only=True)
class Blob(TraceRecord):
    """Bytes of some other format (BLOB record)."""

    name: str = _field(StringReference())
    blob_type: int = _field(Listed(rules.UNKNOWN_BLOB_TYPE, frozenset(wire.BlobType)))
    """1 data, 2 last branch records, 3 Perfetto."""
    payload: bytes = _field(Payload("blob_size", key="payload_hex"))


@_declare(wire.USERSPACE_OBJECT, RecordType.USERSPACE_OBJECT)
@attrs.define(kw_only=True)
class UserspaceObject(TraceRecord):
    """What a pointer of a process points to (Userspace object record)."""

    pointer: int = _field(Word())
    process: int | str = _field(Process())
    """The process koid, or ``<thr#N>`` where index N was never registered."""
    name: str = _field(StringReference())
    args: tuple[Argument, ...] = _field(Arguments("arg_count"), default=())
    thread: tuple[int, int] | None = None
    """Process and thread koid, where the reference has both inline."""


@_declare(wire.KERNEL_OBJECT, RecordType.KERNEL_OBJECT)
@attrs.define(kw_only=True)
class KernelObject(TraceRecord):
    """What a koid stands for (Kernel object record)."""

    object_type: int = _field(Number())
    """ZX_OBJ_TYPE_*: 1 a process, 2 a thread."""
    koid: int = _field(Word())
    name: str = _field(StringReference(rule=rules.OBJECT_NOT_UTF8))
    args: tuple[Argument, ...] = _field(Arguments("arg_count"), default=())


# Scheduling record


@_declare(wire.CONTEXT_SWITCH, wire.SchedulingType.CONTEXT_SWITCH)
@attrs.define(kw_only=True)
class ContextSwitch(TraceRecord):
    """A CPU goes from one thread to another (Context switch record)."""

    cpu: int = _field(Number())
    timestamp: int = _field(Word())
    outgoing_state: int = _field(Listed(rules.INVALID_STATE, wire.THREAD_STATES))
    """0 new, 1 running, 2 suspended, 3 blocked, 4 dying, 5 dead."""
    outgoing_tid: int = _field(Word())
    incoming_tid: int = _field(Word())
    args: tuple[Argument, ...] = _field(Arguments("arg_count"), default=())


@_declare(wire.THREAD_WAKEUP, wire.SchedulingType.THREAD_WAKEUP)
@attrs.define(kw_only=True)
class ThreadWakeup(TraceRecord):
    """A thread can run again (Thread wakeup record)."""

    cpu: int = _field(Number())
    timestamp: int = _field(Word())
    waking_tid: int = _field(Word())
    args: tuple[Argument, ...] = _field(Arguments("arg_count"), default=())


@_declare(wire.LEGACY_CONTEXT_SWITCH, wire.SchedulingType.LEGACY_CONTEXT_SWITCH)
@attrs.define(kw_only=True)
class LegacyContextSwitch(TraceRecord):
    """A CPU goes from one thread to another, as was written once (Legacy context switch record)."""

    cpu: int = _field(Number())
    timestamp: int = _field(Word())
    outgoing_state: int = _field(
        Listed(rules.INVALID_STATE, wire.THREAD_STATES.keys() - {wire.STATE_RUNNING})
    )
    outgoing: Koids = _field(Thread())
    incoming: Koids = _field(Thread())
    outgoing_priority: int = _field(Number())
    incoming_priority: int = _field(Number())


@_declare(wire.SCHEDULING, RecordType.SCHEDULING, known=False)
@attrs.define(kw_only=True)
class UnknownScheduling(TraceRecord):
    """Scheduling of a type that the format does not define: its number and its bytes."""

    kind: int = _field(Number("scheduling_type"), Opaque())


@_declare(wire.LOG, RecordType.LOG)
@attrs.define(kw_only=True)
class Log(TraceRecord):
    """A line that was logged (Log record)."""

    timestamp: int = _field(Word())
    thread: Koids = _field(Thread())
    message: str = _field(Text("message_length"))


# Profiler record


@_declare(wire.PROFILER_MODULE_WORD, wire.ProfilerType.MODULE)
@attrs.define(kw_only=True)
class ProfilerModule(TraceRecord):
    """A module that a process has loaded (Profiler record)."""

    timestamp: int = _field(Word())
    thread: Koids | None = _field(ThreadOrProcess(), default=None)
    """None where ``process`` is given instead."""
    module_id: int = _field(Number())
    name: str = _field(Text("name_length"))
    build_id: bytes = _field(Stream("build_id_length"))
    process: int | None = None
    """The process koid, where the reference has one word inline."""


@_declare(wire.PROFILER_MMAP_WORD, wire.ProfilerType.MMAP)
@attrs.define(kw_only=True)
class ProfilerMmap(TraceRecord):
    """Where a module is mapped (Profiler record); addresses and ``range`` in bytes."""

    timestamp: int = _field(Word())
    thread: Koids | None = _field(ThreadOrProcess(), default=None)
    """None where ``process`` is given instead."""
    module_id: int = _field(Number())
    flags: int = _field(Number())
    """1 readable, 2 writable, 4 executable."""
    start_address: int = _field(Word())
    range: int = _field(Word())
    vaddr: int = _field(Word())
    process: int | None = None
    """The process koid, where the reference has one word inline."""


@_declare(wire.PROFILER_BACKTRACE_WORD, wire.ProfilerType.BACKTRACE)
@attrs.define(kw_only=True)
class ProfilerBacktrace(TraceRecord):
    """The call stack of a thread, as code addresses (Profiler record)."""

    timestamp: int = _field(Word())
    thread: Koids = _field(Thread())
    flags: int = _field(OptionalNumber(), default=0)
    frames: tuple[int, ...] = _field(Words("frame_count"))


@_declare(wire.PROFILER, RecordType.PROFILER, known=False)
@attrs.define(kw_only=True)
class UnknownProfiler(TraceRecord):
    """A profiler record of an undefined type: its number and its bytes."""

    kind: int = _field(Number("profiler_type"), Opaque())


# Large record


@_declare(wire.LARGE_BLOB, wire.LargeType.BLOB, wire.LargeBlobFormat.METADATA)
@attrs.define(kw_only=True)
class LargeBlobWithMetadata(TraceRecord):
    """Many bytes, and when and where they came about (In-band large BLOB record with metadata)."""

    category: str = _field(NextHeader(wire.LARGE_BLOB_METADATA_FORMAT), StringReference())
    name: str = _field(StringReference())
    timestamp: int = _field(Word())
    thread: Koids = _field(Thread())
    args: tuple[Argument, ...] = _field(Arguments("arg_count"), default=())
    payload: bytes = _field(LargePayload(key="payload_hex"))


@_declare(wire.LARGE_BLOB, wire.LargeType.BLOB, wire.LargeBlobFormat.NO_METADATA)
@attrs.define(kw_only=True)
class LargeBlob(TraceRecord):
    """Many bytes (In-band large BLOB record without metadata)."""

    category: str = _field(NextHeader(wire.LARGE_BLOB_FORMAT), StringReference())
    name: str = _field(StringReference())
    payload: bytes = _field(LargePayload(key="payload_hex"))


class BlobFormat(Number):
    """The format of a large blob, where it is one."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        large_type = values["large_type"]
        values[self.name] = None
        c.at = c.end
        if large_type != wire.LargeType.BLOB:
            c.find(rules.UNKNOWN_KIND, large_type)
            return
        super().read(c, values)
        c.find(rules.UNKNOWN_KIND, values[self.name])

    def show(self, record: Any, out: dict[str, Any]) -> None:
        if record.blob_format is not None:
            super().show(record, out)

    def parse(self, form: TraceFields, values: dict[str, Any]) -> None:
        if self.name in form:
            super().parse(form, values)


@_declare(wire.LARGE_BLOB, RecordType.LARGE, known=False)
@attrs.define(kw_only=True)
class UnknownLarge(TraceRecord):
    """A large record of an undefined type or blob format: its numbers and bytes."""

    large_type: int = _field(Number())
    blob_format: int | None = _field(BlobFormat(), default=None)
    """None where ``large_type`` is not that of a blob."""


# Stretches that are not records of the format


class Skipped(Part):
    """Everything after the header, skipped by the record's size."""

    def read(self, c: Cursor, values: dict[str, Any]) -> None:
        c.at = c.end


@_declare(wire.HEADER, "unknown", known=False)
@attrs.define(kw_only=True)
class Unknown(TraceRecord):
    """A record of a type that the format does not define: its number and its bytes."""

    type: int = _field(Number("record_type"), Skipped())


@_declare(wire.HEADER, "padding", known=False)
@attrs.define(kw_only=True)
class Padding(TraceRecord):
    """Zero words where a record should begin, ``nbytes`` of them in bytes."""


@_declare(wire.HEADER, "damaged", known=False)
@attrs.define(kw_only=True)
class Damaged(DamagedRecord, TraceRecord):
    """Bytes in which no sound record was found; ``raw`` may be a view of the file."""


def from_json(given: Mapping[str, Any]) -> TraceRecord:
    """Return the record that a JSON object of the record JSON says.

    ``offset``, ``nbytes`` and the size of a payload are not looked at (they follow from the rest;
    padding has its length from ``nbytes``), and ``args`` may be missing where there are none.
    Raises WriteRefusedError: NO_SUCH_NAME for no such record, INVALID_FIELDS for a field that is
    missing or unknown, WRONG_TYPE and OUT_OF_RANGE for a value of the wrong kind or size.
    """
    if not isinstance(given, Mapping):
        raise refusal(rules.NO_SUCH_NAME, f"a record is an object, not {reprlib.repr(given)}")
    name = given.get("record")
    if not isinstance(name, str) or name not in _BY_NAME:
        hint = did_you_mean(name, _BY_NAME) if isinstance(name, str) else ""
        raise refusal(rules.NO_SUCH_NAME, f"no record {reprlib.repr(name)}{hint}")
    form = TraceFields(name, given)
    form.used |= {"record", "offset", "nbytes"}
    cls = _class_for(form, _BY_NAME[name])
    values = cls.parse(form)
    if cls is Padding:
        values["nbytes"] = form.number("nbytes")
    raw = form.octets("raw") if "raw" in form else None
    form.finish()
    return cls(raw=raw, **values)


def _class_for(form: TraceFields, classes: list[type[TraceRecord]]) -> type[TraceRecord]:
    """Return the class among those of one record that the object's kind asks for.

    Unknown kinds last.
    """
    cls = next(cls for cls in classes if _asks_for(form, cls))
    kind = form.given.get("kind")
    if isinstance(kind, str) and "kind" in {part.name for part in cls.parts}:
        kinds = [str(each.constants["kind"]) for each in classes if each.constants]
        raise refusal(
            rules.NO_SUCH_NAME, f"{form.what}: no kind {kind!r}{did_you_mean(kind, kinds)}"
        )
    return cls


def _asks_for(form: TraceFields, cls: type[TraceRecord]) -> bool:
    """Return whether the object has the constants of a class, by name or by number."""
    for key, shown in cls.constants.items():
        given = form.given.get(key)
        bits = _KIND_BITS[wire.TYPE.get(cls._header)][0]
        number = bits.get(cls._header) if key == "kind" else shown
        if type(given) not in (str, int) or given not in (shown, number):
            return False
    return True
