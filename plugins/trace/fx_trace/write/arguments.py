"""Arguments to write: types of Python values, wrappers that select a type, and their checks.

A plain int takes the narrowest of int32, uint32, int64 and uint64 that holds it, in that order
(docs/writing.md); None, bool, float, str and bytes become null, bool, double, string and blob.
Numbers of numpy keep their width. Wrappers select a type: ``Koid(7)``, ``Int64(1)``.
"""

from __future__ import annotations

import math
import operator
import os
import reprlib
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from fx_trace import format as wire
from fx_trace import records as r
from fx_trace import rules
from fx_trace.format import ARG_VALUE, EventType
from fx_trace.kinds import RecordType
from fx_trace.records import TraceRecord
from fxframework.errors import UsageError, WriteRefusedError, refusal
from fxframework.io.words import U64_MAX
from fxframework.kit.arguments import (
    Blob,
    Double,
    Int32,
    Int64,
    Koid,
    Pointer,
    String,
    Typed,
    Uint32,
    Uint64,
    kind_of,
    pairs_of,
    text_bytes,
)
from fxframework.model.schema import ArgType
from fxframework.model.target import Clock, TimestampCounter
from fxframework.wire.floats import Nan

__all__ = [
    "Blob", "Double", "Int32", "Int64", "Koid", "Pointer", "String", "Typed", "Uint32", "Uint64",
    "Value", "type_of",
]  # fmt: skip

Value = None | bool | int | float | str | bytes | Typed
"""Types of values of arguments; numbers of numpy are accepted too."""

RANGES = {
    ArgType.INT32: (-(1 << 31), (1 << 31) - 1),
    ArgType.UINT32: (0, (1 << 32) - 1),
    ArgType.INT64: (-(1 << 63), (1 << 63) - 1),
    ArgType.UINT64: (0, (1 << 64) - 1),
    ArgType.POINTER: (0, (1 << 64) - 1),
    ArgType.KOID: (0, (1 << 64) - 1),
}
"""Range of each integer type."""

BYTES = bytes | bytearray | memoryview
_INTEGERS = (ArgType.INT32, ArgType.UINT32, ArgType.INT64, ArgType.UINT64)


def type_of(value: Any) -> tuple[ArgType, Any] | None:
    """Return the type for a value and the value as a Python object; None for other types."""
    if isinstance(value, Blob):
        value = value.value
        return (ArgType.BLOB, bytes(value)) if isinstance(value, BYTES) else None
    if isinstance(value, Typed):
        return ArgType(value.type), value.value
    kind_and_value = kind_of(value)
    if kind_and_value is None:
        return None
    kind, plain_value = kind_and_value
    if kind != "int":
        return ArgType[kind.upper()], plain_value
    for integer_type in _INTEGERS:
        least, greatest = RANGES[integer_type]
        if least <= plain_value <= greatest:
            return integer_type, plain_value
    return ArgType.UINT64, plain_value  # it is too large, and refused with that range


Arguments = Mapping[str, Value] | Iterable[tuple[str, Value]]
"""Names and values; a sequence of pairs can repeat names."""
Thread = tuple[int, int]
"""Koids, or system ids, of process and thread."""
_LOW32 = 0xFFFFFFFF
_DOUBLE = struct.Struct("<d").pack
_OF_DOUBLE = struct.Struct("<d").unpack
_WORD = struct.Struct("<Q").unpack
MISTAKES = (TypeError, AttributeError, ValueError, struct.error)
"""Exceptions of operations on unchecked values of a wrong type."""

_METADATA = (
    r.ProviderInfo, r.ProviderSection, r.ProviderEvent, r.TraceInfo, r.UnknownMetadata,
    r.Padding, r.Damaged,
)  # fmt: skip
_CONVENTIONS = (
    ("category", wire.MAX_STRING_BYTES),
    ("name", wire.MAX_STRING_BYTES),
    ("value", wire.MAX_STRING_BYTES),
    ("message", wire.MAX_STRING_BYTES),
)
"""Fields that writers keep shorter than the format's bits allow."""
CONTEXT_SWITCH, THREAD_WAKEUP = (
    RecordType.SCHEDULING | wire.SCHEDULING_TYPE.put(kind)
    for kind in (wire.SchedulingType.CONTEXT_SWITCH, wire.SchedulingType.THREAD_WAKEUP)
)
LAST_WORD: dict[int, str] = {
    EventType.COUNTER: "counter_id",
    EventType.DURATION_COMPLETE: "end_timestamp",
}


def time_of(
    clock: TimestampCounter | Clock | None, rate: int | None
) -> tuple[Callable[[], int], int]:
    """Return the function that gives the time in ticks, and its rate in ticks per second."""
    if clock is None:
        if rate is None:
            return time.monotonic_ns, wire.DEFAULT_TICKS_PER_SECOND
        return _no_time, rate
    if isinstance(clock, TimestampCounter):
        now = clock.read_tsc
        own_rate = clock.frequency
    else:
        now = clock.ticks
        own_rate = clock.ticks_per_second
    return now, own_rate if rate is None else rate


def mistaken(error: Exception) -> WriteRefusedError:
    """Return the error for a value that caused an exception."""
    return refusal(rules.WRONG_TYPE, f"a value of a wrong type: {error}")


def _no_time() -> int:
    raise UsageError(
        "no timestamp is given, and the writer has no clock",
        remedy="give each call its timestamp, or the writer a clock",
    )


def write_all(write: Callable[[TraceRecord], bool], records: Iterable[TraceRecord]) -> bool:
    """Write all records, even if some are dropped. Return True if none was dropped."""
    return min([write(record) for record in records])


def current_thread() -> Thread:
    """Return the system ids of the current process and thread."""
    return os.getpid(), threading.get_native_id()


def inline_record(record: TraceRecord) -> TraceRecord:
    """Return the record without references to slots."""
    if isinstance(record, r.UserspaceObject) and isinstance(record.process, str):
        raise refusal(rules.WRONG_TYPE, f"process is {record.process!r}, an unknown thread")
    arguments = getattr(record, "args", ())
    arguments = tuple(attrs.evolve(argument, refs=None) for argument in arguments)
    return record.edited(refs=None, args=arguments)


def argument_pairs(args: Arguments) -> list[tuple[str, Value]]:
    """Return arguments as a list, since an iterator can be read only once."""
    pairs = pairs_of("arguments", args, rules.WRONG_TYPE)
    for name, _ in pairs:
        if not isinstance(name, str):
            raise refusal(
                rules.WRONG_TYPE, f"an argument's name is a text, not {reprlib.repr(name)}"
            )
    return pairs


def argument_records(args: Arguments) -> tuple[r.Argument, ...]:
    """Return arguments as record objects (``fx_trace.records``)."""
    records = []
    for name, python_value in argument_pairs(args):
        subject = f"argument {reprlib.repr(name)}"
        type_and_value = type_of(python_value)
        if type_and_value is None:
            message = f"{subject}: {reprlib.repr(python_value)} has no argument type"
            raise refusal(rules.WRONG_TYPE, message)
        kind, value = type_and_value
        if kind in RANGES:
            number_bits(subject, kind, value, [])
            value = operator.index(value)
        elif kind == ArgType.DOUBLE:
            value = _OF_DOUBLE(double_bytes(subject, value))[0]
            if math.isnan(value):
                value = Nan(_WORD(_DOUBLE(value))[0])
        elif kind == ArgType.STRING:
            encoded_text(subject, value)
        records.append(r.Argument(name=name, type=wire.ARG_NAMES[kind], value=value))
    return tuple(records)


def with_weights(
    subject: str, weights: dict[str, int | None], args: Arguments
) -> list[tuple[str, Value]]:
    """Return the given priorities as int32 arguments, followed by the others."""
    weight_pairs: list[tuple[str, Value]] = []
    for name, weight in weights.items():
        if weight is not None:
            number_bits(f"{subject}: {name}", ArgType.INT32, weight, [])
            weight_pairs.append((name, weight))
    return weight_pairs + argument_pairs(args)


def fitted_bits(subject: str, name: str, value: Any, width: int) -> int:
    """Return a number after checking that it fits a header field of ``width`` bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise refusal(
            rules.WRONG_TYPE, f"{subject}: {name} must be a whole number, not {reprlib.repr(value)}"
        ) from None
    greatest = (1 << width) - 1
    if not 0 <= number <= greatest:
        number_text = reprlib.repr(number)
        message = f"{subject}: {name} is {number_text}, but its field holds 0 to {greatest}"
        raise refusal(rules.OUT_OF_RANGE, message)
    return number


def check_word(subject: str, name: str, value: Any) -> int:
    """Return a number after checking that it fits a word."""
    return fitted_bits(subject, name, value, 64)


def number_bits(subject: str, kind: ArgType, value: Any, words: list[int]) -> int:
    """Return the header bits of an integer argument; append its word to ``words`` if it has one."""
    try:
        number = operator.index(value)
    except TypeError:
        raise refusal(
            rules.WRONG_TYPE,
            f"{subject}: a {wire.ARG_NAMES[kind]} is a whole number, not {reprlib.repr(value)}",
        ) from None
    least, greatest = RANGES[kind]
    if not least <= number <= greatest:
        raise refusal(
            rules.OUT_OF_RANGE,
            f"{subject}: {reprlib.repr(number)} is not a valid {wire.ARG_NAMES[kind]}, "
            f"which is {least} to {greatest}",
        )
    if kind in (ArgType.INT32, ArgType.UINT32):
        return ARG_VALUE.put(number & ARG_VALUE.limit)
    words.append(number & U64_MAX)
    return 0


def double_bytes(subject: str, value: Any) -> bytes:
    """Return the bytes of a number as a double."""
    try:
        return _DOUBLE(value)
    except (struct.error, OverflowError):
        raise refusal(
            rules.WRONG_TYPE, f"{subject}: {reprlib.repr(value)} is not a double"
        ) from None


def payload_bytes(subject: str, payload: Any) -> bytes:
    """Return a payload as bytes."""
    if not isinstance(payload, bytes | bytearray | memoryview):
        raise refusal(
            rules.WRONG_TYPE, f"{subject}: payload must be bytes, not {reprlib.repr(payload)}"
        )
    return bytes(payload)


def encoded_text(subject: str, text: Any) -> bytes:
    """Return the bytes of a text."""
    return text_bytes(subject, text, rules.WRONG_TYPE)


def check_record(record: TraceRecord) -> None:
    """Refuse records that writers must not write, though readers accept them."""
    try:
        _check_fields(record)
    except MISTAKES as error:
        raise mistaken(error) from error


def _check_fields(record: TraceRecord) -> None:
    """Refuse a record; values of wrong types raise one of MISTAKES."""
    if not isinstance(record, r.TraceRecord):
        raise refusal(rules.NO_SUCH_NAME, f"a record or its JSON, not {reprlib.repr(record)}")
    if isinstance(record, _METADATA):
        raise refusal(
            rules.METADATA_INSIDE_PROVIDER,
            f"{record.record}: a provider's records are written without metadata",
        )
    if record.opaque or (isinstance(record, r.Event) and not isinstance(record.event, str)):
        raise refusal(rules.RAW_ONLY, f"{record.record}: not a record that the format defines")
    if isinstance(record, r.Initialization):
        record.pack()
        if not record.ticks_per_second:
            raise refusal(rules.OUT_OF_RANGE, "initialization: ticks_per_second must not be 0")
    # Readers accept longer texts than writers may write.
    for name, limit in _CONVENTIONS:
        value = getattr(record, name, None)
        if isinstance(value, str | bytes):
            _check_length(record.record, name, value, limit)
    for argument in getattr(record, "args", ()):
        subject = f"{record.record}, argument {reprlib.repr(argument.name)}"
        _check_length(subject, "name", argument.name, wire.MAX_STRING_BYTES)
        if not isinstance(argument.type, str):
            message = f"{subject}: not an argument type that the format defines"
            raise refusal(rules.RAW_ONLY, message)
        if isinstance(argument.value, str):
            _check_length(subject, "value", argument.value, wire.MAX_STRING_BYTES)


def _check_length(subject: str, name: str, value: str | bytes, limit: int) -> None:
    """Refuse a text, or its bytes, that is longer than writers may write."""
    octets = value
    if isinstance(octets, str):
        octets = encoded_text(subject, octets)
    if len(octets) > limit:
        where = f"{subject}: {name}" if name else subject
        message = f"{where} has {len(octets)} bytes; at most {limit} may be written"
        raise refusal(rules.STRING_TOO_LONG, message)
