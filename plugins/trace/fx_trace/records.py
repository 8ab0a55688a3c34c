"""Records of the trace format, declared: objects, JSON, bytes and explanations follow from it.

They are read one at a time (``read.decoder``), or many as columns (``read.blocks``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import attrs

from fx_trace import rules
from fx_trace.indexed import (
    STRINGS,
    THREADS,
    Koids,
    arg_count,
    bits,
    hex_bits,
    holds,
    length,
    optional_bits,
    payload,
    process,
    registered,
    stream,
    string,
    string_ref,
    text,
    thread,
    thread_or_process,
    thread_ref,
)
from fx_trace.kinds import (
    ARG_NAMES,
    EVENT_NAMES,
    MAGIC,
    METADATA_NAMES,
    PROFILER_NAMES,
    SCHEDULING_NAMES,
    STATE_RUNNING,
    STRING_REF_BITS,
    ArgType,
    BlobType,
    EventType,
    LargeBlobFormat,
    LargeType,
    MetadataType,
    ObjectType,
    ProfilerType,
    RecordType,
    SchedulingType,
    names,
)
from fxframework import wire
from fxframework.errors import did_you_mean, refusal
from fxframework.io.words import U64_MAX, WORD, Bits
from fxframework.kit.json_fields import CANONICAL_NAN, JsonFields
from fxframework.kit.lossless import DamagedRecord, record_of_json
from fxframework.model.clock import Clock
from fxframework.model.schema import SCOPES, THREAD_STATES
from fxframework.wire.cursor import RefusalError
from fxframework.wire.families import Place
from fxframework.wire.fields import Bits as BitsField
from fxframework.wire.floats import Nan
from fxframework.wire.records import references
from fxframework.wire.state import State

METADATA = RecordType.METADATA
SCHEDULING = RecordType.SCHEDULING
PROFILER = RecordType.PROFILER
LARGE = RecordType.LARGE
ONLY_ZERO = {105: rules.RESERVED_BITS}
"""What is said of bits that have no meaning."""


def record_size(high: int, label: str = "record_size") -> Any:
    """Return the size of a record or an argument."""
    doc = "words, this one included"
    return wire.size(bits(4, high, label, doc, rules={404: rules.TOO_LARGE}), unit=WORD)


# --- Arguments -----------------------------------------------------------------------------------


class Argument(
    wire.Part, keys=("name", "type", "value"), rules=ONLY_ZERO, section="Argument header"
):
    """A named value of a record (Argument header).

    ``type`` is one of null int32 uint32 int64 uint64 double string pointer koid bool blob, or the
    number of a type that the format does not define; ``value`` is None, an int, float, bool, str,
    or bytes (a blob's, or the payload words of an unknown type).
    """

    type: Any = bits(
        0, 3, "arg_type", "argument type", values=ARG_NAMES, rules={106: rules.UNKNOWN_ARGUMENT}
    )
    _size = record_size(15, "arg_size")
    _name_ref = string_ref(16, "name")
    _value = bits(32, 63, rules={404: rules.STRING_TOO_LONG})
    _stray = wire.finding(
        rules.RESERVED_BITS,
        (_value > 0)  # first, as it decides alone where no type has its value there
        & (type != ArgType.INT32)
        & (type != ArgType.UINT32)
        & (type < ArgType.BLOB)
        & (_value > (type == ArgType.BOOL) + (type == ArgType.STRING) * STRING_REF_BITS),
    )
    name: str = string(_name_ref)
    value: Any = wire.choice(
        type,
        {
            ArgType.NULL: None,
            ArgType.INT32: wire.number_of(_value, signed=True),
            ArgType.UINT32: wire.number_of(_value),
            ArgType.INT64: wire.i64(),
            ArgType.UINT64: wire.u64(),
            ArgType.DOUBLE: wire.f64(),
            ArgType.STRING: string(_value & STRING_REF_BITS),
            ArgType.POINTER: wire.u64(),
            ArgType.KOID: wire.u64(),
            ArgType.BOOL: wire.flag_of(_value),
            ArgType.BLOB: stream(_value),
        },
        other=wire.octets(),
    )
    _left_over = wire.surplus(rules.ARGUMENT_LEFT_OVER, unit=WORD)
    refs: dict[str, int] | None = attrs.field(default=None)
    """Indexes of ``name`` and, of a string, ``value``, where they are indexed."""

    @property
    def bits(self) -> int | None:
        """The 64 bits of a double that is a NaN, where they are not the usual ones."""
        has_bits = isinstance(self.value, Nan) and self.value.bits != CANONICAL_NAN
        return self.value.bits if has_bits else None

    def put(self, state: State | None, big: bool) -> bytes:
        """Return the bytes. Raises RefusalError for a value that does not fit."""
        if type(self.type) is int and len(self.value) % WORD:
            raise RefusalError(404, "value is not a whole number of 8-byte words")
        return super().put(state, big)


# --- Records -------------------------------------------------------------------------------------


class TraceRecord(wire.Record, shared=True):
    """One record of a trace, lossless. Two records are equal where they say the same, wherever.

    ``refs`` has the indexes of fields that are references, by field. ``raw`` is the whole record
    as it is in the file, where fields and refs alone would not give the same bytes. Strings hold
    surrogate escapes for bytes that are not UTF-8. Times are raw ticks, sizes and offsets bytes.
    """

    constants: ClassVar[Mapping[str, str | int]] = {}
    """What tells this kind from others of the record, as in JSON."""

    refs: dict[str, int] | None = attrs.field(default=None)

    def __init_subclass__(cls, **options: Any) -> None:
        cls.refs = attrs.field(default=None)  # it counts in comparisons
        super().__init_subclass__(**options)
        cls.constants = _constants(cls.layout)
        cls.beside = frozenset(cls.constants)

    undefined_kinds: ClassVar[bool] = False
    """Whether the class stands for kinds that the format does not define."""

    @property
    def opaque(self) -> bool:
        """Whether the format does not define the kind, so that only ``raw`` says what is in it."""
        return self.undefined_kinds

    @property
    def open_ended(self) -> bool:
        """Whether what follows its fields has a meaning that is not known."""
        return self.opaque

    def show(self, out: dict[str, Any]) -> None:
        """Put the fields into JSON."""
        out |= self.constants
        super().show(out)

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the fields, from JSON."""
        form.used |= cls.beside
        return super().parse(form)

    def pack(self, state: Any = None, *, big_endian: bool = False) -> bytes:
        """Return the bytes of the fields and refs; ``raw`` is not used.

        Refs are not checked. Raises WriteRefusedError where the format cannot hold a value.
        """
        if self.opaque:
            raise refusal(
                rules.RAW_ONLY,
                f"{self.record}: an undefined kind has no bytes but its raw ones",
            )
        try:
            return self.layout.packed(self, state, big_endian)
        except RefusalError as problem:
            message = f"{self.record}: {problem.message}"
            raise refusal(rules.RULES.numbered(problem.number), message) from None

    def with_valid_refs(self, tables: Any) -> Self:
        """Return the record with only those refs that still give what it shows."""
        changes: dict[str, Any] = {}
        refs = valid_refs(self, tables)
        if refs != self.refs:
            changes["refs"] = refs
        arguments = getattr(self, "args", ())
        new_refs = [valid_refs(argument, tables) for argument in arguments]
        if any(refs != argument.refs for refs, argument in zip(new_refs, arguments, strict=True)):
            changes["args"] = tuple(map(attrs.evolve, arguments))
            for refs, argument in zip(new_refs, changes["args"], strict=True):
                argument.refs = refs
        return attrs.evolve(self, **changes) if changes else self

    def apply(self, tables: Any, find: Callable[..., None]) -> None:
        """Tell the tables what this record says about later ones."""


def _constants(layout: Any) -> dict[str, str | int]:
    """Return the kind of a record of several kinds, as in JSON: of most of them the name."""
    kinds = zip(layout.family.kinds[1:], layout.kind[1:], strict=False)
    return {
        field.name: field.meanings[number] if field.name == "kind" else int(number)
        for field, number in kinds
    }


def valid_refs(holder: Any, tables: Any) -> dict[str, int] | None:
    """Return the refs that still give what the record or argument shows; None for none."""
    refs = holder.refs
    if not refs:
        return None
    values = holder.__dict__
    return {
        field.name: refs[field.name]
        for field in references(holder.layout, values)
        if field.name in refs and holds(field, values, refs[field.name], tables)
    } or None


def record_type() -> Any:
    """Return the type of a record."""
    return wire.kind(bits(0, 3, "record_type", "record type", meanings=names(RecordType)))


class UndefinedKind:
    """A record of a kind that the format does not define."""

    undefined_kinds: ClassVar[bool] = True


class PlainRecord(TraceRecord, padding=True, rules=ONLY_ZERO, section="Record header"):
    """A record of a type that has one kind."""

    _record_type = record_type()
    _record_size = record_size(15)


class MetadataRecord(TraceRecord, name="metadata", rules=ONLY_ZERO, section="Metadata record"):
    """Metadata record."""

    _record_type = record_type()
    _record_size = record_size(15)
    kind: int = wire.kind(bits(16, 19, "metadata_type", "metadata type", meanings=METADATA_NAMES))


def provider_id() -> Any:
    """Return the id of a provider."""
    return bits(20, 51, "provider_id", "provider id")


class ProviderInfo(
    MetadataRecord, kind=(METADATA, MetadataType.PROVIDER_INFO), section="Provider info metadata"
):
    """A provider is introduced; what follows is its (Provider info metadata)."""

    id: int = provider_id()
    _name_length = length(52, 59, "name_length", "bytes of the name")
    name: str = text(_name_length)

    def apply(self, tables: Any, find: Callable[..., None]) -> None:
        """Begin with empty tables; earlier ones of an introduced provider are forgotten."""
        if tables.introduce(self.id):
            find(rules.PROVIDER_AGAIN, self.id)
        tables.current.name = self.name


class ProviderSection(
    MetadataRecord,
    kind=(METADATA, MetadataType.PROVIDER_SECTION),
    section="Provider section metadata",
):
    """What follows is this provider's (Provider section metadata)."""

    id: int = provider_id()

    def apply(self, tables: Any, find: Callable[..., None]) -> None:
        """Go on with the tables of that provider."""
        if self.id not in tables.providers:
            find(rules.PROVIDER_NOT_INTRODUCED, self.id)
        tables.current = tables.provider(self.id)


class ProviderEvent(
    MetadataRecord, kind=(METADATA, MetadataType.PROVIDER_EVENT), section="Provider event metadata"
):
    """Something that a provider reports about itself (Provider event metadata)."""

    id: int = provider_id()
    event: int = bits(52, 55, "event_id", "event", meanings={0: "buffer full, records may be lost"})
    """0: its buffer was full."""

    def apply(self, tables: Any, find: Callable[..., None]) -> None:
        """Say what happened to the provider; it changes nothing."""
        if self.event == 0:
            find(rules.BUFFER_FULL, self.id)
        else:
            find(rules.UNKNOWN_KIND, self.event)
        provider = tables.providers.get(self.id)
        if provider is None:
            find(rules.PROVIDER_NOT_INTRODUCED, self.id)
        else:
            provider.times_full += self.event == 0


class TraceInfo(
    MetadataRecord, kind=(METADATA, MetadataType.TRACE_INFO), section="Trace info metadata"
):
    """The magic number (Magic number record), or trace info of an undefined type."""

    info_type: int = bits(
        20, 23, "trace_info_type", "trace info type", meanings={0: "magic number"}
    )
    magic: int | None = hex_bits(24, 55, "magic number", {MAGIC: "FxT"}, info_type == 0)
    """None where ``info_type`` is not 0."""
    _other = wire.finding(rules.OTHER_MAGIC, (info_type == 0) & (magic != MAGIC), magic)

    @property
    def opaque(self) -> bool:
        """Whether the format does not define the type of trace info."""
        return self.info_type != 0


class UnknownMetadata(UndefinedKind, MetadataRecord, kind=wire.OTHER):
    """Metadata of a type that the format does not define: its number and its bytes."""


# Records that set the stage


class Initialization(PlainRecord, kind=RecordType.INITIALIZATION, section="Initialization record"):
    """The rate of the provider's clock (Initialization record)."""

    ticks_per_second: int = wire.u64()
    base_tick: int | None = wire.u64(when=wire.SIZE >= 4 * WORD)
    base_wall_ns: int | None = wire.u64(when=wire.SIZE >= 4 * WORD)
    """Nanoseconds since the Unix epoch at ``base_tick``."""

    def pack(self, state: Any = None, *, big_endian: bool = False) -> bytes:
        """Return the bytes. Raises WriteRefusedError where the format cannot hold a value."""
        for name in ("base_tick", "base_wall_ns"):
            if getattr(self, name) is None and (self.base_tick, self.base_wall_ns) != (None, None):
                message = f"{self.record}: {name} is missing beside the other"
                raise refusal(rules.INVALID_FIELDS, message)
        return super().pack(state, big_endian=big_endian)

    def apply(self, tables: Any, find: Callable[..., None]) -> None:
        """Set the rate of the provider's clock, unless it is 0."""
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
        provider.rate_at = self.offset
        provider.clock = Clock(rate, self.base_tick or 0, self.base_wall_ns)
        if tables.base_wall_ns in (None, U64_MAX):
            tables.base_wall_ns = self.base_wall_ns


class StringRecord(PlainRecord, kind=RecordType.STRING, name="string", section="String record"):
    """A string is registered at an index (String record)."""

    index: int = bits(16, 30, "string_index", "string index")
    _length = length(32, 46, "string_length", "bytes of the string")
    value: str = text(_length)
    _registered = registered(STRINGS, index, value)

    def apply(self, tables: Any, find: Callable[..., None]) -> None:
        """Register the string."""
        if self.index:
            tables.register(STRINGS, self.index, self.value)
        else:
            find(rules.INDEX_ZERO)


class ThreadRecord(PlainRecord, kind=RecordType.THREAD, name="thread", section="Thread record"):
    """A thread is registered at an index (Thread record)."""

    index: int = bits(16, 23, "thread_index", "thread index")
    pid: int = wire.u64()
    tid: int = wire.u64()
    _registered = registered(THREADS, index, 2 * WORD)

    def apply(self, tables: Any, find: Callable[..., None]) -> None:
        """Register the thread."""
        if self.index:
            tables.register(THREADS, self.index, (self.pid, self.tid))
        else:
            find(rules.INDEX_ZERO)


# Records of what happened


class Event(PlainRecord, kind=RecordType.EVENT, section="Event record"):
    """Something that happened on a thread (Event record).

    ``event`` is one of instant counter duration_begin duration_end duration_complete async_begin
    async_instant async_end flow_begin flow_step flow_end, or a number that has no name.
    """

    event: Any = bits(
        16, 19, "event_type", "event type", values=EVENT_NAMES, rules={106: rules.UNKNOWN_KIND}
    )
    _arg_count = arg_count(20)
    _thread_ref = thread_ref(24, "thread")
    _category_ref = string_ref(32, "category")
    _name_ref = string_ref(48, "name")
    timestamp: int = wire.u64()
    thread: Koids = thread(_thread_ref)
    category: str = string(_category_ref)
    name: str = string(_name_ref)
    args: tuple[Argument, ...] = wire.listed(Argument, _arg_count, default=())
    scope: str | int | None = wire.u64(
        values=SCOPES,
        rules={106: rules.UNKNOWN_SCOPE},
        when=(event == EventType.INSTANT) & (wire.AT < wire.SIZE),
    )
    """Of an instant, where it has one: thread, process, global, or a number."""
    counter_id: int | None = wire.u64(when=event == EventType.COUNTER)
    end_timestamp: int | None = wire.u64(when=event == EventType.DURATION_COMPLETE)
    """Of a duration_complete, ticks."""
    id: int | None = wire.u64(when=(event >= EventType.ASYNC_BEGIN) & (event <= EventType.FLOW_END))
    """Of asynchronous and flow events, what tells operations apart."""

    @property
    def open_ended(self) -> bool:
        """Whether its type is undefined, so that its last word may be anything."""
        return not isinstance(self.event, str)


class Blob(PlainRecord, kind=RecordType.BLOB, keys=("name",), section="BLOB record"):
    """Bytes of some other format (BLOB record)."""

    _name_ref = string_ref(16, "name")
    _size = length(32, 46, "blob_size", "bytes of the payload")
    blob_type: int = bits(48, 55, "", "blob type", meanings=names(BlobType))
    """1 data, 2 last branch records, 3 Perfetto."""
    name: str = string(_name_ref)
    _unknown_type = wire.finding(
        rules.UNKNOWN_BLOB_TYPE, (blob_type < 1) | (blob_type > max(BlobType)), blob_type
    )
    payload: bytes = payload(_size)


class Branch(wire.Part):
    """A branch that a CPU took: from an address, to an address, with flags of the CPU."""

    origin: int = wire.u64()
    target: int = wire.u64()
    info: int = wire.u64()


class LastBranches(wire.Record):
    """What a blob of the type LAST_BRANCH holds (LastBranchRecordBlob of cpuperf)."""

    cpu: int = wire.u16()
    _count = wire.u16()
    _reserved = wire.u32()
    event_time: int = wire.u64()
    aspace: int = wire.u64()
    branches: tuple[Branch, ...] = wire.listed(Branch, _count)


class UserspaceObject(
    PlainRecord, kind=RecordType.USERSPACE_OBJECT, section="Userspace object record"
):
    """What a pointer of a process points to (Userspace object record)."""

    _process_ref = thread_ref(16, "process")
    _name_ref = string_ref(24, "name")
    _arg_count = arg_count(40)
    pointer: int = wire.u64()
    process: int | str = process(_process_ref, _name_ref, _arg_count)
    """The process koid, or ``<thr#N>`` where index N was never registered."""
    name: str = string(_name_ref)
    args: tuple[Argument, ...] = wire.listed(Argument, _arg_count, default=())
    thread: tuple[int, int] | None = attrs.field(default=None)
    """Process and thread koid, where the reference has both inline."""


class KernelObject(PlainRecord, kind=RecordType.KERNEL_OBJECT, section="Kernel object record"):
    """What a koid stands for (Kernel object record)."""

    object_type: int = bits(16, 23, "", "kernel object type", meanings=names(ObjectType))
    """ZX_OBJ_TYPE_*: 1 a process, 2 a thread."""
    _name_ref = string_ref(24, "name")
    _arg_count = arg_count(40)
    koid: int = wire.u64()
    name: str = string(_name_ref, rules.OBJECT_NOT_UTF8)
    args: tuple[Argument, ...] = wire.listed(Argument, _arg_count, default=())


# Scheduling record


class SchedulingRecord(
    TraceRecord, name="scheduling", rules=ONLY_ZERO, section="Scheduling record"
):
    """Scheduling record."""

    _record_type = record_type()
    _record_size = record_size(15)
    kind: int = wire.kind(
        bits(60, 63, "scheduling_type", "scheduling type", meanings=SCHEDULING_NAMES)
    )


def outgoing_state(low: int) -> Any:
    """Return the state of the thread that a CPU leaves."""
    return bits(low, low + 3, "", "outgoing thread's state", meanings=THREAD_STATES)


class ContextSwitch(
    SchedulingRecord,
    kind=(SCHEDULING, SchedulingType.CONTEXT_SWITCH),
    keys=("cpu", "timestamp"),
    section="Context switch record",
):
    """A CPU goes from one thread to another (Context switch record)."""

    _arg_count = arg_count(16)
    cpu: int = bits(20, 35, "", "CPU number")
    outgoing_state: int = outgoing_state(36)
    """0 new, 1 running, 2 suspended, 3 blocked, 4 dying, 5 dead."""
    _invalid = wire.finding(
        rules.INVALID_STATE, outgoing_state > max(THREAD_STATES), outgoing_state
    )
    timestamp: int = wire.u64()
    outgoing_tid: int = wire.u64()
    incoming_tid: int = wire.u64()
    args: tuple[Argument, ...] = wire.listed(Argument, _arg_count, default=())


class ThreadWakeup(
    SchedulingRecord,
    kind=(SCHEDULING, SchedulingType.THREAD_WAKEUP),
    section="Thread wakeup record",
):
    """A thread can run again (Thread wakeup record)."""

    _arg_count = arg_count(16)
    cpu: int = bits(20, 35, "", "CPU number")
    timestamp: int = wire.u64()
    waking_tid: int = wire.u64()
    args: tuple[Argument, ...] = wire.listed(Argument, _arg_count, default=())


class LegacyContextSwitch(
    SchedulingRecord,
    kind=(SCHEDULING, SchedulingType.LEGACY_CONTEXT_SWITCH),
    keys=("cpu", "timestamp", "outgoing_state", "outgoing", "incoming"),
    section="Legacy context switch record",
):
    """A CPU goes from one thread to another, as was written once (Legacy context switch record)."""

    cpu: int = bits(16, 23, "", "CPU number")
    outgoing_state: int = outgoing_state(24)
    _outgoing_ref = thread_ref(28, "outgoing")
    _incoming_ref = thread_ref(36, "incoming")
    outgoing_priority: int = bits(44, 51, "", "outgoing thread's priority")
    incoming_priority: int = bits(52, 59, "", "incoming thread's priority")
    _invalid = wire.finding(
        rules.INVALID_STATE,
        (outgoing_state == STATE_RUNNING) | (outgoing_state > max(THREAD_STATES)),
        outgoing_state,
    )
    timestamp: int = wire.u64()
    outgoing: Koids = thread(_outgoing_ref)
    incoming: Koids = thread(_incoming_ref)


class UnknownScheduling(UndefinedKind, SchedulingRecord, kind=wire.OTHER):
    """Scheduling of a type that the format does not define: its number and its bytes."""


class Log(PlainRecord, kind=RecordType.LOG, section="Log record"):
    """A line that was logged (Log record)."""

    _message_length = length(16, 30, "message_length", "bytes of the message")
    _thread_ref = thread_ref(32, "thread")
    timestamp: int = wire.u64()
    thread: Koids = thread(_thread_ref)
    message: str = text(_message_length)


# Profiler record


class ProfilerRecord(TraceRecord, name="profiler", rules=ONLY_ZERO, section="Profiler record"):
    """Profiler record."""

    _record_type = record_type()
    _record_size = record_size(15)
    kind: int = wire.kind(
        bits(16, 19, "profiler_type", "profiler record type", meanings=PROFILER_NAMES)
    )


class ProfilerModule(
    ProfilerRecord, kind=(PROFILER, ProfilerType.MODULE), keys=("timestamp", "thread")
):
    """A module that a process has loaded (Profiler record)."""

    _thread_ref = thread_ref(20, "thread")
    module_id: int = bits(28, 43, "", "module id")
    _name_length = length(44, 51, "name_length", "bytes of the name")
    _build_id_length = length(52, 59, "build_id_length", "bytes of the build id")
    timestamp: int = wire.u64()
    thread: Koids | None = thread_or_process(_thread_ref, _name_length, _build_id_length)
    """None where ``process`` is given instead."""
    name: str = text(_name_length)
    build_id: bytes = stream(_build_id_length)
    process: int | None = attrs.field(default=None)
    """The process koid, where the reference has one word inline."""


class ProfilerMmap(
    ProfilerRecord, kind=(PROFILER, ProfilerType.MMAP), keys=("timestamp", "thread")
):
    """Where a module is mapped (Profiler record); addresses and ``range`` in bytes."""

    _thread_ref = thread_ref(20, "thread")
    module_id: int = bits(28, 43, "", "module id")
    flags: int = bits(44, 46, "", "readable, writable, executable")
    """1 readable, 2 writable, 4 executable."""
    timestamp: int = wire.u64()
    thread: Koids | None = thread_or_process(_thread_ref, words=3)
    """None where ``process`` is given instead."""
    start_address: int = wire.u64()
    range: int = wire.u64()
    vaddr: int = wire.u64()
    process: int | None = attrs.field(default=None)
    """The process koid, where the reference has one word inline."""


class ProfilerBacktrace(
    ProfilerRecord, kind=(PROFILER, ProfilerType.BACKTRACE), keys=("timestamp", "thread", "flags")
):
    """The call stack of a thread, as code addresses (Profiler record)."""

    _thread_ref = thread_ref(20, "thread")
    _frame_count = bits(28, 35, "frame_count", "frames", rules={404: rules.TOO_MANY})
    flags: int = optional_bits(36, 63, "flags")
    timestamp: int = wire.u64()
    thread: Koids = thread(_thread_ref)
    frames: tuple[int, ...] = wire.listed(wire.u64(), _frame_count)


class UnknownProfiler(UndefinedKind, ProfilerRecord, kind=wire.OTHER):
    """A profiler record of an undefined type: its number and its bytes."""

    _thread_ref = thread_ref(20, "thread")


# Large record


class LargeRecord(TraceRecord, name="large", rules=ONLY_ZERO, section="Large BLOB record"):
    """Large record."""

    _record_type = record_type()
    _record_size = record_size(35)
    large_type: int = wire.kind(bits(36, 39, "", "large type", meanings=names(LargeType)))
    blob_format: int | None = wire.kind(
        bits(40, 43, "", "blob format", meanings=names(LargeBlobFormat))
    )


class LargeBlobWithMetadata(LargeRecord, kind=(LARGE, LargeType.BLOB, LargeBlobFormat.METADATA)):
    """Many bytes, and when and where they came about (In-band large BLOB record with metadata)."""

    _category_ref = string_ref(0, "category", of=WORD)
    _name_ref = string_ref(16, "name")
    _arg_count = arg_count(32)
    _thread_ref = thread_ref(36, "thread")
    category: str = string(_category_ref)
    name: str = string(_name_ref)
    timestamp: int = wire.u64()
    thread: Koids = thread(_thread_ref)
    args: tuple[Argument, ...] = wire.listed(Argument, _arg_count, default=())
    _blob_size = wire.u64()
    payload: bytes = payload(_blob_size)


class LargeBlob(LargeRecord, kind=(LARGE, LargeType.BLOB, LargeBlobFormat.NO_METADATA)):
    """Many bytes (In-band large BLOB record without metadata)."""

    _category_ref = string_ref(0, "category", of=WORD)
    _name_ref = string_ref(16, "name")
    category: str = string(_category_ref)
    name: str = string(_name_ref)
    _blob_size = wire.u64()
    payload: bytes = payload(_blob_size)


class UnknownLarge(LargeRecord, kind=wire.OTHER):
    """A large record of an undefined type or blob format: its numbers and bytes."""

    undefined_kinds = True

    def __attrs_post_init__(self) -> None:
        if self.large_type != LargeType.BLOB:
            self.blob_format = None  # only a blob has one

    def show(self, out: dict[str, Any]) -> None:
        """Put the numbers into JSON."""
        super().show(out)
        if self.blob_format is None:
            del out["blob_format"]

    @classmethod
    def parse(cls, form: JsonFields) -> dict[str, Any]:
        """Return the numbers, from JSON."""
        if "blob_format" in form:
            return super().parse(form)
        return {"large_type": form.number("large_type"), "blob_format": None}


# Stretches that are not records of the format


class Unknown(TraceRecord, section="Record header"):
    """A record of a type that the format does not define: its number and its bytes."""

    undefined_kinds = True
    type: int = bits(0, 3, "record_type", "record type", meanings=names(RecordType))
    _record_size = record_size(15)


class Padding(TraceRecord):
    """Zero words where a record should begin, ``nbytes`` of them in bytes."""

    @classmethod
    def at(cls: Any, offset: int, nbytes: int) -> Padding:
        """Return the padding at a place."""
        return cls(offset=offset, nbytes=nbytes)  # type: ignore[no-any-return]


class Damaged(DamagedRecord, TraceRecord):
    """Bytes in which no sound record was found; ``raw`` may be a view of the file."""

    @classmethod
    def at(cls: Any, offset: int, raw: memoryview, code: str) -> Damaged:
        """Return the damage at a place."""
        return cls(offset=offset, nbytes=len(raw), code=code, raw=raw)  # type: ignore[no-any-return]


# --- The class of a header, and of JSON ----------------------------------------------------------

FIRST_WORD = Place(0, WORD, 0, U64_MAX)
"""The first word of a record."""
TYPE = Unknown.layout.place("type")
SIZE = Unknown.layout.place("_record_size")
LARGE_SIZE = LargeBlob.layout.place("_record_size")
"""The size of large records, in words; ``SIZE`` is that of all others."""
_FAMILIES = (
    PlainRecord, MetadataRecord, SchedulingRecord, ProfilerRecord, LargeRecord,
)  # fmt: skip
MASKS = [TYPE.mask] * (TYPE.mask + 1)
"""By type, the bits of a header that say of which kind a record is."""
BY_HEADER: dict[int, type[TraceRecord]] = {}
"""The class for a header of which only record type and kind are left."""
BY_TYPE: dict[int, type[TraceRecord]] = {}
"""What stands for the kinds that the format does not define."""
_BY_NAME: dict[str, list[type[TraceRecord]]] = {
    each.record: [each] for each in (Unknown, Padding, Damaged)
}
for _family in (each.layout.family for each in _FAMILIES):
    _kinds = [field.word_bits for field in _family.kinds if isinstance(field, BitsField)]
    for _cls in [*_family.members, *([_family.other] if _family.other else [])]:
        _BY_NAME.setdefault(_cls.record, []).append(_cls)
        _type = _family.members[0].layout.kind[0]
        MASKS[_type] = sum(bits.mask for bits in _kinds)
        if _cls is _family.other:
            BY_TYPE[_type] = _cls
        else:
            header = sum(map(Bits.put, _kinds, _cls.layout.kind))
            BY_HEADER[header] = _cls


METADATA_KIND = ProviderInfo.layout.place("kind")
PROVIDER_ID = ProviderInfo.layout.place("id")


def class_of(header: int) -> type[TraceRecord]:
    """Return the class for the record with this header word."""
    number = TYPE.of(header)
    cls = BY_HEADER.get(header & MASKS[number])
    return BY_TYPE.get(number, Unknown) if cls is None else cls


def claimed_bytes(data: bytes | memoryview, *, big_endian: bool = False) -> int:
    """Return the size of the record at the beginning of some bytes, as its header says."""
    is_large = TYPE.get(data, 0, big_endian) == RecordType.LARGE
    size = LARGE_SIZE if is_large else SIZE
    return WORD * size.get(data, 0, big_endian)


def undefined_kind(header: int) -> str:
    """Return the field, and its number, that makes a record one of UNKNOWN_KIND."""
    cls: Any = class_of(header)
    name = _UNDEFINED.get(cls, "kind")
    if issubclass(cls, LargeRecord):
        is_blob = cls.layout.place("large_type").of(header) == LargeType.BLOB
        name = "blob_format" if is_blob else "large_type"
    field, place = next(found for found in cls.layout.places.items() if found[0].name == name)
    return f"{field.doc} {place.of(header)}"


_UNDEFINED: Mapping[Any, str] = {Event: "event", ProviderEvent: "event", TraceInfo: "info_type"}
"""Fields, which are not of the kind, whose numbers may be undefined."""


def layout_of(given: Mapping[str, Any]) -> Any:
    """Return the fields of an object of record JSON; None if these alone do not say its bytes."""
    name = given.get("record")
    kind = given.get("kind")
    for cls in _BY_NAME.get(name, ()) if isinstance(name, str) else ():
        own: Any = cls.parse
        declared = own.__func__ is TraceRecord.parse.__func__ and cls.pack is TraceRecord.pack  # type: ignore[attr-defined]
        if (
            declared
            and not cls.undefined_kinds
            and cls.constants == ({"kind": kind} if kind else {})
        ):
            return cls.layout
    return None


def from_json(given: Mapping[str, Any]) -> TraceRecord:
    """Return the record that a JSON object of the record JSON says.

    ``offset``, ``nbytes`` and the size of a payload are not checked (they follow from the rest;
    padding has its length from ``nbytes``), and ``args`` may be missing where there are none.
    Raises WriteRefusedError: NO_SUCH_NAME for no such record, INVALID_FIELDS for a field that is
    missing or unknown, WRONG_TYPE and OUT_OF_RANGE for a value of the wrong kind or size.
    """
    return record_of_json(given, _BY_NAME, "a trace", rules.REFUSALS, _class_for)


def _class_for(form: JsonFields, classes: list[type[TraceRecord]]) -> type[TraceRecord]:
    """Return the class among those of one record that the object's kind asks for.

    Unknown kinds last.
    """
    record_class = next(cls for cls in classes if _asks_for(form, cls))
    kind = form.given.get("kind")
    if isinstance(kind, str) and not record_class.constants and len(classes) > 1:
        kinds = [str(cls.constants["kind"]) for cls in classes if cls.constants]
        message = f"{form.what}: no kind {kind!r}{did_you_mean(kind, kinds)}"
        raise refusal(rules.NO_SUCH_NAME, message)
    return record_class


def _asks_for(form: JsonFields, cls: type[TraceRecord]) -> bool:
    """Return whether the object has the constants of a class, by name or by number."""
    for (key, name), number in zip(cls.constants.items(), cls.layout.kind[1:], strict=False):
        json_value = form.given.get(key)
        if type(json_value) not in (str, int) or json_value not in (name, number):
            return False
    return True
