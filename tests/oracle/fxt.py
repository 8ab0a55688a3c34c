"""Writes traces, word by word, for the oracle tests.

It shares no code with what is tested: sizes and bit positions are written out here, from the
format's document.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

MAGIC = bytes.fromhex("1000044678541600")
MASK = (1 << 64) - 1

EVENTS = {
    "instant": 0,
    "counter": 1,
    "duration_begin": 2,
    "duration_end": 3,
    "duration_complete": 4,
    "async_begin": 5,
    "async_instant": 6,
    "async_end": 7,
    "flow_begin": 8,
    "flow_step": 9,
    "flow_end": 10,
}
WITHOUT_WORD = {"instant", "duration_begin", "duration_end"}

Text = str | int
"""A string inline, or an index."""
Who = tuple[int, int] | int
"""A thread inline (pid, tid), or an index."""
Arg = tuple[Text, str, Any]
"""Name, type, value."""


def words(*values: int) -> bytes:
    return b"".join(struct.pack("<Q", value & MASK) for value in values)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def ref(text: Text) -> tuple[int, bytes]:
    if isinstance(text, int):
        return text, b""
    data = text.encode()
    return (0x8000 | len(data) if data else 0), padded(data)


def who(thread: Who) -> tuple[int, bytes]:
    return (thread, b"") if isinstance(thread, int) else (0, words(*thread))


def record(kind: int, fields: int, body: bytes) -> bytes:
    return words(kind | (1 + len(body) // 8) << 4 | fields) + body


def argument(arg: Arg) -> bytes:
    name, kind, value = arg
    name_ref, body = ref(name)
    high = 0
    if kind == "null":
        number = 0
    elif kind == "int32":
        number, high = 1, value & 0xFFFFFFFF
    elif kind == "uint32":
        number, high = 2, value
    elif kind in {"int64", "uint64", "pointer", "koid"}:
        number = {"int64": 3, "uint64": 4, "pointer": 7, "koid": 8}[kind]
        body += words(value)
    elif kind == "double":
        number = 5
        body += struct.pack("<d", value)
    elif kind == "string":
        number = 6
        high, data = ref(value)
        body += data
    elif kind == "bool":
        number, high = 9, int(value)
    elif kind == "blob":
        number, high = 10, len(value)
        body += padded(value)
    else:
        raise ValueError(kind)
    return words(number | (1 + len(body) // 8) << 4 | name_ref << 16 | high << 32) + body


def arguments(args: Sequence[Arg]) -> bytes:
    return b"".join(map(argument, args))


def provider_info(number: int, name: str) -> bytes:
    return record(0, 1 << 16 | number << 20 | len(name.encode()) << 52, padded(name.encode()))


def provider_section(number: int) -> bytes:
    return record(0, 2 << 16 | number << 20, b"")


def provider_event(number: int, event: int = 0) -> bytes:
    return record(0, 3 << 16 | number << 20 | event << 52, b"")


def initialization(rate: int, *more: int) -> bytes:
    return record(1, 0, words(rate, *more))


def string(index: int, text: str) -> bytes:
    data = text.encode()
    return record(2, index << 16 | len(data) << 32, padded(data))


def thread(index: int, pid: int, tid: int) -> bytes:
    return record(3, index << 16, words(pid, tid))


def event(
    kind: str,
    ticks: int,
    thread: Who,
    name: Text,
    args: Sequence[Arg] = (),
    *,
    category: Text = "cat",
    word: int | None = None,
) -> bytes:
    """``word`` is the end time, counter id or correlation id; an instant's scope."""
    thread_ref, inline = who(thread)
    category_ref, category_bytes = ref(category)
    name_ref, name_bytes = ref(name)
    fields = EVENTS[kind] << 16 | len(args) << 20 | thread_ref << 24
    fields |= category_ref << 32 | name_ref << 48
    body = words(ticks) + inline + category_bytes + name_bytes + arguments(args)
    if word is not None or kind not in WITHOUT_WORD:
        body += words(word or 0)
    return record(4, fields, body)


def blob(name: Text, payload: bytes, kind: int = 1) -> bytes:
    name_ref, name_bytes = ref(name)
    return record(5, name_ref << 16 | len(payload) << 32 | kind << 48, name_bytes + padded(payload))


def userspace_object(pointer: int, process: Who, name: Text, args: Sequence[Arg] = ()) -> bytes:
    """An inline process is one word, its koid."""
    process_ref = process if isinstance(process, int) else 0
    inline = b"" if isinstance(process, int) else words(process[0])
    name_ref, name_bytes = ref(name)
    fields = process_ref << 16 | name_ref << 24 | len(args) << 40
    return record(6, fields, words(pointer) + inline + name_bytes + arguments(args))


def kernel_object(kind: int, koid: int, name: Text, args: Sequence[Arg] = ()) -> bytes:
    name_ref, name_bytes = ref(name)
    fields = kind << 16 | name_ref << 24 | len(args) << 40
    return record(7, fields, words(koid) + name_bytes + arguments(args))


def legacy_context_switch(
    ticks: int, cpu: int, outgoing: Who, incoming: Who, state: int, before: int, after: int
) -> bytes:
    outgoing_ref, outgoing_bytes = who(outgoing)
    incoming_ref, incoming_bytes = who(incoming)
    fields = cpu << 16 | state << 24 | outgoing_ref << 28 | incoming_ref << 36
    fields |= before << 44 | after << 52
    return record(8, fields, words(ticks) + outgoing_bytes + incoming_bytes)


def context_switch(
    ticks: int, cpu: int, outgoing: int, incoming: int, state: int, args: Sequence[Arg] = ()
) -> bytes:
    fields = len(args) << 16 | cpu << 20 | state << 36 | 1 << 60
    return record(8, fields, words(ticks, outgoing, incoming) + arguments(args))


def wakeup(ticks: int, cpu: int, tid: int, args: Sequence[Arg] = ()) -> bytes:
    fields = len(args) << 16 | cpu << 20 | 2 << 60
    return record(8, fields, words(ticks, tid) + arguments(args))


def log(ticks: int, thread: Who, message: str) -> bytes:
    thread_ref, inline = who(thread)
    data = message.encode()
    return record(9, len(data) << 16 | thread_ref << 32, words(ticks) + inline + padded(data))


def profiler_backtrace(ticks: int, thread: Who, frames: Sequence[int]) -> bytes:
    thread_ref, inline = who(thread)
    fields = 2 << 16 | thread_ref << 20 | len(frames) << 28
    return record(10, fields, words(ticks) + inline + words(*frames))


def profiler_mmap(ticks: int, thread: Who, module: int, start: int, size: int) -> bytes:
    thread_ref, inline = who(thread)
    fields = 1 << 16 | thread_ref << 20 | module << 28 | 5 << 44
    return record(10, fields, words(ticks) + inline + words(start, size, start))


def large_blob(category: Text, name: Text, payload: bytes) -> bytes:
    """Without metadata: format 1."""
    category_ref, category_bytes = ref(category)
    name_ref, name_bytes = ref(name)
    body = words(category_ref | name_ref << 16) + category_bytes + name_bytes
    return record(15, 1 << 40, body + words(len(payload)) + padded(payload))


def large_blob_with_metadata(
    ticks: int,
    thread: Who,
    name: Text,
    payload: bytes,
    args: Sequence[Arg] = (),
    *,
    category: Text = "fidl:blob",
) -> bytes:
    """Format 0."""
    thread_ref, inline = who(thread)
    category_ref, category_bytes = ref(category)
    name_ref, name_bytes = ref(name)
    second = category_ref | name_ref << 16 | len(args) << 32 | thread_ref << 36
    body = words(second) + category_bytes + name_bytes + words(ticks) + inline + arguments(args)
    return record(15, 0, body + words(len(payload)) + padded(payload))
