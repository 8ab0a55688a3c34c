"""The writer: one provider's records, one call an event.

Programs call ``TraceWriter`` to trace themselves, or to create traces of other data. It refuses
values that the format cannot hold before it writes anything, maintains the string and thread
tables, and puts whole records into an archive (``fx_trace.write.archive``) or a trace buffer
(``fx_trace.write.buffer``). ``fx_trace.write.rewriter`` writes records that were read, or their
JSON.
"""

from __future__ import annotations

import operator
import reprlib
import struct
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

import attrs

from fx_trace import format as wire
from fx_trace import records as r
from fx_trace import rules
from fx_trace.format import (
    ARG_NAME,
    ARG_NAME_AT,
    ARG_SIZE,
    ARG_STRING_REF,
    ARG_TRUTH,
    ARG_VALUE,
    ARG_VALUE_AT,
    EVENT_ARGS,
    EVENT_ARGS_AT,
    EVENT_CATEGORY,
    EVENT_KIND,
    EVENT_NAME,
    EVENT_THREAD,
    SIZE,
    SIZE_AT,
    SWITCH_ARGS,
    SWITCH_CPU,
    SWITCH_STATE,
    EventType,
)
from fx_trace.indexed import Thread as ThreadField
from fx_trace.kinds import ArgType, RecordType
from fx_trace.records import TraceRecord
from fx_trace.write.arguments import (
    _DOUBLE,
    _LOW32,
    _WORD,
    CONTEXT_SWITCH,
    LAST_WORD,
    MISTAKES,
    RANGES,
    THREAD_WAKEUP,
    Arguments,
    Thread,
    Value,
    _check_length,
    argument_pairs,
    argument_records,
    check_record,
    check_word,
    current_thread,
    double_bytes,
    encoded_text,
    fitted_bits,
    inline_record,
    mistaken,
    number_bits,
    payload_bytes,
    time_of,
    type_of,
    with_weights,
    write_all,
)
from fx_trace.write.rewriter import blob_records, perfetto_parts
from fx_trace.write.slots import Policy, Slots
from fxframework.errors import UsageError, refusal
from fxframework.io.words import pad8
from fxframework.kit.arguments import Koid
from fxframework.model.schema import SCOPES, THREAD_STATES
from fxframework.model.target import Clock, TimestampCounter
from fxframework.wire.records import references

_INT32 = int(ArgType.INT32) | ARG_SIZE.put(1)
_STRING = int(ArgType.STRING) | ARG_SIZE.put(1)
_DOUBLE_OF_2 = int(ArgType.DOUBLE) | ARG_SIZE.put(2)
"""Beginnings of the headers of arguments of one word, and of two."""

_SCOPES = {name: number for number, name in SCOPES.items()}
_STATES: dict[str, int | str] = {name: number for number, name in THREAD_STATES.items()}


class Destination(Protocol):
    """A target of whole records."""

    keeps_order: bool
    """Whether readers see records in the order of ``put``; if not, durable ones come first."""
    lock: Any
    """Held while a record is encoded and put; a reentrant lock."""

    def put(self, record: bytes, *, durable: bool = False) -> bool:
        """Put one whole record. Return False if it was dropped.

        Later records need ``durable`` ones.
        """

    def has_room(self, nbytes: int) -> bool:
        """Return whether a durable record of ``nbytes`` would fit."""


def _correlated(kind: EventType, doc: str):  # type: ignore[no-untyped-def]
    """Return the method that writes an event with a correlation id."""

    def method(
        self: TraceWriter,
        category: str,
        name: str,
        id: int,
        args: Arguments = (),
        *,
        thread: Thread | None = None,
        timestamp: int | None = None,
    ) -> bool:
        return self._event(kind, category, name, args, thread, timestamp, id)

    method.__name__ = kind.name.lower()
    method.__qualname__ = f"TraceWriter.{method.__name__}"
    method.__doc__ = f"{doc} of this ``id`` ({kind.name.capitalize().replace('_', ' ')} event)."
    return method


class TraceWriter:
    """Writes one provider's records.

    ``clock`` gives the time if a call does not: a ``TimestampCounter``, a ``Clock``, or by default
    this machine's monotonic clock, whose rate becomes ``ticks_per_second``. Without a clock and
    with ``ticks_per_second`` every call must give its own ``timestamp``, in ticks.

    ``strings`` and ``threads`` select how slots are used (``fx_trace.write.slots.Policy``). With
    ``perfetto_safe`` large records, whose size Perfetto misreads, become blob records of up to
    32,000 bytes. The trace's time begins at ``base_tick``, which was ``base_wall_ns`` nanoseconds
    after the Unix epoch. The initialization record is written at once, unless ``begin`` is False.

    Each method that writes returns True, or False if the destination dropped the record. They raise
    WriteRefusedError without side effects. Several threads may write.
    """

    def __init__(
        self,
        destination: Destination,
        *,
        clock: TimestampCounter | Clock | None = None,
        ticks_per_second: int | None = None,
        base_tick: int | None = None,
        base_wall_ns: int | None = None,
        strings: Policy = "allocate",
        threads: Policy = "allocate",
        perfetto_safe: bool = False,
        big_endian: bool = False,
        begin: bool = True,
    ) -> None:
        self.strings: Slots[str] = Slots(wire.MAX_STRING_INDEX, strings)
        self.threads: Slots[Thread] = Slots(wire.MAX_THREAD_INDEX, threads)
        self.perfetto_safe = perfetto_safe
        self.big_endian = big_endian
        self._destination = destination
        self._lock = destination.lock
        self._put = destination.put
        if "reuse" in (strings, threads) and not destination.keeps_order:
            raise UsageError(
                "slots cannot be reused in a buffer whose strings and threads are read first",
                remedy="use the policy allocate or inline",
            )
        self._now, rate = time_of(clock, ticks_per_second)
        self._initialization = r.Initialization(
            ticks_per_second=rate, base_tick=base_tick, base_wall_ns=base_wall_ns
        )
        order = ">" if big_endian else "<"
        self._packs = [struct.Struct(f"{order}{count}Q").pack for count in range(64)]
        self._refs: dict[str, int] = {"": 0}
        """References of strings that need no inline part."""
        self._heads: dict[Any, int] = {}
        """Headers without sizes, of events with all references in slots."""
        self._staged: list[tuple[bytes, Slots[Any], Any]] = []
        """Records that register slots, not put yet: the bytes, the table, the value."""
        check_record(self._initialization)
        if begin:
            self.begin()

    # --- Clock, names and slots -----------------------------------------------------------------

    def begin(self) -> bool:
        """Write the initialization record, as the constructor does unless ``begin`` is False."""
        with self._lock:
            return self._put(self._initialization.pack(big_endian=self.big_endian), durable=True)

    @property
    def ticks_per_second(self) -> int:
        """The rate of all timestamps."""
        return self._initialization.ticks_per_second

    def process(self, pid: int, name: str) -> bool:
        """Name a process."""
        return self.kernel_object(wire.ObjectType.PROCESS, pid, name)

    def thread(self, pid: int, tid: int, name: str) -> Thread:
        """Name a thread of a process. Return the value for the ``thread`` of other calls."""
        self.kernel_object(wire.ObjectType.THREAD, tid, name, {"process": Koid(pid)})
        return pid, tid

    def kernel_object(self, object_type: int, koid: int, name: str, args: Arguments = ()) -> bool:
        """Name a kernel object by its koid (Kernel object record), with inline strings only."""
        arguments = argument_records(args)
        record = r.KernelObject(object_type=object_type, koid=koid, name=name, args=arguments)
        return self.write(record)

    def userspace_object(self, process: int, pointer: int, name: str, args: Arguments = ()) -> bool:
        """Name an object of a process by its pointer (Userspace object record)."""
        arguments = argument_records(args)
        record = r.UserspaceObject(pointer=pointer, process=process, name=name, args=arguments)
        return self.write(record)

    def register_string(self, index: int, value: str) -> bool:
        """Register a string at a given index (String record)."""
        return self.write(r.StringRecord(index=index, value=value))

    def register_thread(self, index: int, pid: int, tid: int) -> bool:
        """Register a thread at a given index (Thread record)."""
        return self.write(r.ThreadRecord(index=index, pid=pid, tid=tid))

    # --- Events ---------------------------------------------------------------------------------
    #
    # `thread` is (pid, tid), by default those of the calling thread; `timestamp` is in ticks.

    def instant(
        self,
        category: str,
        name: str,
        args: Arguments = (),
        *,
        thread: Thread | None = None,
        timestamp: int | None = None,
        scope: str | None = None,
    ) -> bool:
        """Write an instant (Instant event).

        ``scope`` (thread, process or global) is an extension that newer readers support.
        """
        word: Any = ...
        if scope is not None:
            word = _SCOPES.get(scope) if isinstance(scope, str) else None
            if word is None:
                raise refusal(
                    rules.WRONG_TYPE, f"instant: scope is thread, process or global, not {scope!r}"
                )
        return self._event(0, category, name, args, thread, timestamp, word)

    def counter(
        self,
        category: str,
        name: str,
        values: Arguments,
        *,
        id: int = 0,
        thread: Thread | None = None,
        timestamp: int | None = None,
    ) -> bool:
        """Write values of a counter's series (Counter event)."""
        return self._event(1, category, name, values, thread, timestamp, id)

    def duration_begin(
        self,
        category: str,
        name: str,
        args: Arguments = (),
        *,
        thread: Thread | None = None,
        timestamp: int | None = None,
    ) -> bool:
        """Begin a slice (Duration begin event)."""
        return self._event(2, category, name, args, thread, timestamp, ...)

    def duration_end(
        self,
        category: str,
        name: str,
        args: Arguments = (),
        *,
        thread: Thread | None = None,
        timestamp: int | None = None,
    ) -> bool:
        """End the slice of the thread that began last (Duration end event)."""
        return self._event(3, category, name, args, thread, timestamp, ...)

    def duration_complete(
        self,
        category: str,
        name: str,
        timestamp: int,
        end_timestamp: int,
        args: Arguments = (),
        *,
        thread: Thread | None = None,
    ) -> bool:
        """Write a whole slice (Duration complete event)."""
        return self._event(4, category, name, args, thread, timestamp, end_timestamp)

    def slice(
        self, category: str, name: str, args: Arguments = (), *, thread: Thread | None = None
    ) -> _Slice:
        """Return a context manager that writes a slice: a begin event, and an end event on exit."""
        return _Slice(self, category, name, args, thread)

    async_begin = _correlated(EventType.ASYNC_BEGIN, "Begin the asynchronous operation")
    async_instant = _correlated(EventType.ASYNC_INSTANT, "Write an instant in the operation")
    async_end = _correlated(EventType.ASYNC_END, "End the asynchronous operation")
    flow_begin = _correlated(EventType.FLOW_BEGIN, "Begin, in the open slice, the flow")
    flow_step = _correlated(EventType.FLOW_STEP, "Continue, in the open slice, the flow")
    flow_end = _correlated(EventType.FLOW_END, "End, in the open slice, the flow")

    # --- Scheduling (fxframework.model.target.SchedulerListener) --------------------------------

    def context_switch(
        self,
        *,
        cpu: int,
        outgoing_tid: int,
        incoming_tid: int,
        outgoing_state: int | str = 3,
        ticks: int | None = None,
        incoming_priority: int | None = None,
        outgoing_priority: int | None = None,
        args: Arguments = (),
    ) -> bool:
        """Write a switch of a CPU from one thread to another (Context switch record).

        Priorities become the int32 arguments ``incoming_weight`` and ``outgoing_weight``, as the
        kernel writes them.
        """
        state = outgoing_state
        if isinstance(state, str):
            state = _STATES.get(state, state)
        what = "context_switch"
        head = CONTEXT_SWITCH | fitted_bits(what, "cpu", cpu, SWITCH_CPU.width) << SWITCH_CPU.low
        head |= SWITCH_STATE.put(fitted_bits(what, "outgoing_state", state, SWITCH_STATE.width))
        words = (
            check_word(what, "timestamp", self._now() if ticks is None else ticks),
            check_word(what, "outgoing_tid", outgoing_tid),
            check_word(what, "incoming_tid", incoming_tid),
        )
        weights = {"incoming_weight": incoming_priority, "outgoing_weight": outgoing_priority}
        return self._scheduling(what, head, words, with_weights(what, weights, args))

    def wakeup(
        self,
        *,
        cpu: int,
        tid: int,
        ticks: int | None = None,
        priority: int | None = None,
        args: Arguments = (),
    ) -> bool:
        """Write a wakeup of a thread (Thread wakeup record); its priority becomes ``weight``."""
        what = "thread_wakeup"
        head = THREAD_WAKEUP | fitted_bits(what, "cpu", cpu, SWITCH_CPU.width) << SWITCH_CPU.low
        words = (
            check_word(what, "timestamp", self._now() if ticks is None else ticks),
            check_word(what, "tid", tid),
        )
        return self._scheduling(what, head, words, with_weights(what, {"weight": priority}, args))

    # --- Other records --------------------------------------------------------------------------

    def log(
        self, message: str, *, thread: Thread | None = None, timestamp: int | None = None
    ) -> bool:
        """Write a log message (Log record), at most 32,000 bytes."""
        return self.write(
            r.Log(
                timestamp=self._now() if timestamp is None else timestamp,
                thread=current_thread() if thread is None else thread,
                message=message,
            )
        )

    def blob(self, name: str, payload: bytes, *, blob_type: int = wire.BlobType.DATA) -> bool:
        """Write bytes of any format (BLOB record); more than 32,000 take several records.

        Blobs of the same name belong together, in order.
        """
        blobs = list(blob_records(name, payload_bytes("blob", payload), blob_type))
        check_record(blobs[0])
        with self._lock:
            return write_all(self._write, blobs)

    def large_blob(
        self,
        category: str,
        name: str,
        payload: bytes,
        args: Arguments = (),
        *,
        thread: Thread | None = None,
        timestamp: int | None = None,
        metadata: bool = True,
    ) -> bool:
        """Write up to 256 KiB of bytes (Large BLOB record).

        With ``metadata`` the record has time, thread and arguments. With ``perfetto_safe`` it
        becomes an instant event with the metadata, and blob records.
        """
        payload = payload_bytes("large", payload)
        if not metadata:
            return self.write(r.LargeBlob(category=category, name=name, payload=payload))
        return self.write(
            r.LargeBlobWithMetadata(
                category=category,
                name=name,
                timestamp=self._now() if timestamp is None else timestamp,
                thread=current_thread() if thread is None else thread,
                args=argument_records(args),
                payload=payload,
            )
        )

    def write(self, record: TraceRecord | Mapping[str, Any]) -> bool:
        """Write a record, or its JSON, with this provider's references.

        The record's own ``refs`` and ``raw`` are ignored. String and thread records assign slots.
        """
        if isinstance(record, Mapping):
            record = r.from_json(record)
        check_record(record)
        with self._lock:
            if self.perfetto_safe and isinstance(record, r.LargeBlob | r.LargeBlobWithMetadata):
                return write_all(self._write, perfetto_parts(record))
            return self._write(record)

    # --- Encoding -------------------------------------------------------------------------------

    def _write(self, record: TraceRecord) -> bool:
        """Write a record that was checked. The caller holds the lock."""
        if isinstance(record, r.StringRecord | r.ThreadRecord):
            return self._write_slot(record)
        if isinstance(record, r.Initialization):
            self._initialization = record.edited(refs=None)
            return self.begin()
        durable = isinstance(record, r.KernelObject | r.UserspaceObject)

        def make() -> bytes:
            # Durable records must not depend on slots that may be reused.
            own_record = inline_record(record) if durable else self._slotted(record)
            record_bytes = own_record.pack(big_endian=self.big_endian)
            if len(record_bytes) > wire.MAX_LARGE_BYTES:
                raise refusal(
                    rules.TOO_LARGE,
                    f"{record.record}: needs {len(record_bytes)} bytes; "
                    f"readers accept at most {wire.MAX_LARGE_BYTES}",
                )
            return record_bytes

        return self._put(self._made(make), durable=durable)

    def _write_slot(self, record: r.StringRecord | r.ThreadRecord) -> bool:
        """Write a record that registers a string or a thread at an index of the caller's choice."""
        own_record = record.edited(refs=None)
        record_bytes = self._made(lambda: own_record.pack(big_endian=self.big_endian))
        slots: Slots[Any]
        value: Any
        if isinstance(record, r.ThreadRecord):
            slots = self.threads
            value = record.pid, record.tid
        else:
            slots = self.strings
            value = record.value
        if not self._destination.keeps_order and slots.at(record.index) not in (None, value):
            raise refusal(
                rules.CONTRADICTION,
                f"{record.record}: index {record.index} has another value already, and in a "
                "buffer whose strings and threads are read first it would have had this one before",
            )
        if not self._put(record_bytes, durable=True):
            return False
        if record.index:
            evictions = slots.evictions
            slots.put(record.index, value)
            slots.keep()
            if slots.evictions != evictions:
                self._clear_evicted(slots)
            if slots is self.strings and value:
                self._refs[value] = record.index
        return True

    def _slotted(self, record: TraceRecord) -> TraceRecord:
        """Return the record with references to slots, for values that have one."""
        changes: dict[str, Any] = {"refs": self._refs_of(record), "raw": None}
        arguments = getattr(record, "args", ())
        if arguments:
            changes["args"] = tuple(
                attrs.evolve(argument, refs=self._refs_of(argument)) for argument in arguments
            )
        return attrs.evolve(record, **changes)

    def _refs_of(self, holder: TraceRecord | r.Argument) -> dict[str, int] | None:
        """Return the slots of the strings and threads of a record or argument, by field."""
        refs: dict[str, int] = {}
        for field in references(holder.layout, holder.__dict__):
            value = getattr(holder, field.name)
            if not isinstance(field, ThreadField):
                ref = self._string(value, field.name)
                if 0 < ref < wire.INLINE_STRING:
                    refs[field.name] = ref
            elif isinstance(value, tuple):
                ref = self.threads.index.get(value) or self._new_thread(value)
                if ref:
                    refs[field.name] = ref
            elif isinstance(value, str):
                raise refusal(rules.WRONG_TYPE, f"{field.name} is {value!r}, an unknown thread")
        return refs or None

    def _event(
        self,
        kind: int,
        category: str,
        name: str,
        args: Arguments,
        thread: Thread | None,
        timestamp: int | None,
        word: Any,
    ) -> bool:
        """Write an event; ``word`` follows its arguments, ``...`` for none."""
        if thread is None:
            thread = current_thread()
        if timestamp is None:
            timestamp = self._now()
        with self._lock:
            try:
                head = self._heads.get((kind, category, name, thread))
                if args and type(args) is not dict:
                    args = argument_pairs(args)
                # Most events are like an earlier one but for time and arguments: its header is
                # taken as it is, and the values are checked by ``struct`` alone.
                if head is not None:
                    words = [head, timestamp]
                    if args:
                        argument_count = self._arguments(words, args)
                        words[0] = head | argument_count << EVENT_ARGS_AT
                    if word is not ...:
                        words.append(word)
                    size = len(words)
                    words[0] |= size << SIZE_AT
                    if not self._staged and size < 64:
                        return self._put(self._packs[size](*words))
            except (struct.error, TypeError):
                pass  # encoded again below, with checks that report the error
            except BaseException:
                self._unstage()
                raise
            event = (kind, category, name, args, thread, timestamp, word)
            return self._put(self._made(lambda: self._event_bytes(*event)))

    def _event_bytes(
        self,
        kind: int,
        category: str,
        name: str,
        args: Arguments,
        thread: Thread,
        timestamp: int,
        word: Any,
    ) -> bytes:
        """Return an event's record if not all references are in slots, or a value is invalid."""
        what = wire.EVENT_NAMES[kind]
        words = [0, check_word(what, "timestamp", timestamp)]
        thread_ref = self._thread(what, thread)
        if not thread_ref:
            words += map(operator.index, thread)
        category_ref = self._string(category, f"{what}: category", words)
        name_ref = self._string(name, f"{what}: name", words)
        head = RecordType.EVENT | EVENT_KIND.put(kind) | EVENT_THREAD.put(thread_ref)
        head |= EVENT_CATEGORY.put(category_ref) | EVENT_NAME.put(name_ref)
        argument_count = self._arguments(words, args) if args else 0
        if word is not ...:
            words.append(check_word(what, LAST_WORD.get(kind, "id"), word))
        record = self._packed(what, head | EVENT_ARGS.put(argument_count), words)
        if thread_ref and not (category_ref | name_ref) & wire.INLINE_STRING:
            self._heads[kind, category, name, tuple(thread)] = head
        return record

    def _scheduling(
        self, what: str, head: int, fields: tuple[int, ...], args: list[tuple[str, Value]]
    ) -> bool:
        """Write a scheduling record with arguments."""

        def make() -> bytes:
            words = [0, *fields]
            argument_count = self._arguments(words, args) if args else 0
            return self._packed(what, head | SWITCH_ARGS.put(argument_count), words)

        with self._lock:
            return self._put(self._made(make))

    def _packed(self, what: str, head: int, words: list[int]) -> bytes:
        """Return a record's bytes, with the size in the header."""
        size = len(words)
        if size > wire.MAX_RECORD_WORDS:
            raise refusal(
                rules.TOO_LARGE,
                f"{what}: needs {size} words; at most {wire.MAX_RECORD_WORDS} fit",
            )
        words[0] = head | SIZE.put(size)
        if size < len(self._packs):
            return self._packs[size](*words)
        return struct.pack(f"{'>' if self.big_endian else '<'}{size}Q", *words)

    def _arguments(self, words: list[int], args: Arguments) -> int:
        """Append arguments to a record's words. Return their number."""
        count = 0
        refs = self._refs
        append = words.append
        pairs: Any = args.items() if type(args) is dict else args
        # Types that programs use most are encoded here, without a call; ``_argument`` does others.
        for name, value in pairs:
            count += 1
            ref = refs.get(name, -1)
            kind = type(value)
            if ref < 0:
                self._argument(words, name, value)
            elif kind is int:
                if -0x80000000 <= value <= 0x7FFFFFFF:
                    append((value & _LOW32) << ARG_VALUE_AT | ref << ARG_NAME_AT | _INT32)
                else:
                    self._argument(words, name, value)
            elif kind is str:
                text_ref = refs.get(value, -1)
                if text_ref < 0:
                    self._argument(words, name, value)
                else:
                    append(text_ref << ARG_VALUE_AT | ref << ARG_NAME_AT | _STRING)
            elif kind is float:
                append(ref << ARG_NAME_AT | _DOUBLE_OF_2)
                append(_WORD(_DOUBLE(value))[0])
            else:
                self._argument(words, name, value)
        if count > wire.MAX_ARGS:
            raise refusal(rules.TOO_MANY, f"{count} arguments, at most {wire.MAX_ARGS}")
        return count

    def _argument(self, words: list[int], name: str, value: Any) -> None:
        """Append an argument of any type."""
        what = f"argument {reprlib.repr(name)}"
        header_index = len(words)
        words.append(0)  # the header, once its size is known
        header = ARG_NAME.put(self._string(name, f"{what}: name", words))
        typed_value = type_of(value)
        if typed_value is None:
            raise refusal(
                rules.WRONG_TYPE,
                f"{what}: a value of type {type(value).__name__} has no argument type",
            )
        kind, value = typed_value
        if kind in RANGES:
            header |= number_bits(what, kind, value, words)
        elif kind == ArgType.DOUBLE:
            words += _WORD(double_bytes(what, value))
        elif kind == ArgType.STRING:
            header |= ARG_STRING_REF.put(self._string(value, f"{what}: value", words))
        elif kind == ArgType.BOOL:
            header |= ARG_TRUTH.put(bool(value))
        elif kind == ArgType.BLOB:
            if len(value) > wire.MAX_RECORD_WORDS * 8:
                raise refusal(
                    rules.TOO_LARGE, f"{what}: {len(value)} bytes do not fit into a record"
                )
            header |= ARG_VALUE.put(len(value))
            words += self._stream(value)
        size = len(words) - header_index
        if size > wire.MAX_RECORD_WORDS:
            raise refusal(
                rules.TOO_LARGE, f"{what}: needs {size} words; at most {wire.MAX_RECORD_WORDS} fit"
            )
        words[header_index] = header | ARG_SIZE.put(size) | kind

    # --- Slots ----------------------------------------------------------------------------------

    def _string(self, text: str, what: str, words: list[int] | None = None) -> int:
        """Return a reference to a string; append an inline string to ``words``."""
        try:
            ref = self._refs.get(text, -1)
        except TypeError:
            ref = -1
        if ref >= 0:
            return ref
        text_bytes = encoded_text(what, text)
        _check_length(what, "", text_bytes, wire.MAX_STRING_BYTES)
        evictions = self.strings.evictions
        index = self.strings.take(text)
        if index:
            if self.strings.evictions != evictions:
                self._clear_evicted(self.strings)
            record = r.StringRecord(index=index, value=text).pack(big_endian=self.big_endian)
            self._staged.append((record, self.strings, text))
            self._refs[text] = index
            return index
        if words is not None:
            words += self._stream(text_bytes)
        return wire.INLINE_STRING | len(text_bytes)

    def _thread(self, what: str, thread: Thread) -> int:
        """Return a reference to a thread; 0 for inline."""
        try:
            pid, tid = thread
        except (TypeError, ValueError):
            raise refusal(
                rules.WRONG_TYPE,
                f"{what}: a thread is (process, thread), not {reprlib.repr(thread)}",
            ) from None
        thread = check_word(what, "the thread's process", pid), check_word(what, "thread", tid)
        return self.threads.index.get(thread) or self._new_thread(thread)

    def _new_thread(self, thread: Thread) -> int:
        """Return a new slot for a thread; 0 if there is none."""
        evictions = self.threads.evictions
        pid, tid = thread
        record = r.ThreadRecord(index=0, pid=pid, tid=tid)
        record.pack()  # raises before a slot is taken
        index = self.threads.take(thread)
        if self.threads.evictions != evictions:
            self._clear_evicted(self.threads)
        if index:
            record.index = index
            record_bytes = record.pack(big_endian=self.big_endian)
            self._staged.append((record_bytes, self.threads, thread))
        return index

    def _stream(self, data: bytes) -> tuple[int, ...]:
        """Return the words of a padded byte string."""
        order = ">" if self.big_endian else "<"
        return struct.unpack(f"{order}{-(-len(data) // 8)}Q", pad8(data))

    def _clear_evicted(self, slots: Slots[Any]) -> None:
        """Clear what depended on a slot that has a new value."""
        self._heads.clear()
        if slots is self.strings:
            self._refs.pop(slots.evicted, None)  # type: ignore[arg-type]
            self._refs[""] = 0

    def _forget(self) -> None:
        """Rebuild the caches after changes of slots."""
        self._heads.clear()
        self._refs = {"": 0, **self.strings.index}

    def _made(self, make: Callable[[], bytes]) -> bytes:
        """Return the record of ``make``, after registering all that it refers to.

        If encoding fails, nothing is registered.
        """
        tries = 0
        try:
            while True:
                evictions = self.strings.evictions + self.threads.evictions
                record = make()
                if self.strings.evictions + self.threads.evictions != evictions:
                    # It may refer to a value that lost its slot during encoding. Once more; and if
                    # that takes slots again, the third time without taking any.
                    self._heads.clear()
                    self._pause(paused=tries > 0)
                    tries += 1
                elif self._register():
                    return record
        except MISTAKES as error:
            raise mistaken(error) from error
        finally:
            self._pause(paused=False)
            self._unstage()

    def _pause(self, *, paused: bool) -> None:
        """Have no slots taken, or have them taken again."""
        self.strings.paused = paused
        self.threads.paused = paused

    def _register(self) -> bool:
        """Put the staged records. Return False if the destination has no more room."""
        staged_records = self._staged
        self._staged = []
        is_full = False
        for record, slots, value in staged_records:
            # Behind one without room, no smaller one is put that would still fit.
            is_full = is_full or not self._destination.has_room(len(record))
            if is_full or not self._put(record, durable=True):
                slots.drop(value)
                slots.close()
                is_full = True
        self.strings.keep()
        self.threads.keep()
        if is_full:
            self._forget()
        return not is_full

    def _unstage(self) -> None:
        """Give back the slots of records that were not put."""
        if self._staged:
            self._staged.clear()
            self.strings.undo()
            self.threads.undo()
            self._forget()


@attrs.define
class _Slice:
    """The context manager of ``TraceWriter.slice``."""

    _writer: TraceWriter
    _category: str
    _name: str
    _args: Arguments
    _thread: Thread | None
    _begun: bool = False

    def __enter__(self) -> Self:
        if self._thread is None:
            self._thread = current_thread()
        self._begun = self._writer.duration_begin(
            self._category, self._name, self._args, thread=self._thread
        )
        return self

    def __exit__(self, *_: object) -> None:
        if self._begun:
            self._writer.duration_end(self._category, self._name, thread=self._thread)
