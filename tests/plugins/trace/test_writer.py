"""The record-at-a-time writer: it writes what it is told, or refuses and writes nothing."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import json
import math
import os
import random
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace import format as wire
from fx_trace import records as r
from fx_trace.write.archive import Archive
from fx_trace.write.slots import Slots
from fx_trace.write.writer import TraceWriter
from fxframework.errors import Severity, UsageError, WriteRefusedError
from fxframework.kit.arguments import (
    Blob,
    Double,
    Int32,
    Int64,
    Koid,
    Pointer,
    String,
    Uint32,
    Uint64,
)
from fxframework.model.target import Clock, SchedulerListener, TimestampCounter
from fxframework.testing.cli import run_cli

from ...cases import cases
from .streams import fxt_streams
from .test_two_decoders import agree

PLACE = {"offset", "nbytes", "refs"}
STAGE = {"metadata", "initialization", "string", "thread"}
"""Records that say nothing by themselves."""
ME = (7, 8)

# --- Helpers -----------------------------------------------------------------------------------


def without_place(shown: dict[str, Any]) -> dict[str, Any]:
    out = {key: value for key, value in shown.items() if key not in PLACE}
    if "args" in out:
        out["args"] = [without_place(argument) for argument in out["args"]]
    return out


def everything(data: bytes) -> list[dict[str, Any]]:
    """All records as JSON, without their places."""
    with fxf.open(data, format="trace") as capture:
        return [without_place(record.to_json()) for record in capture.records()]


def told(data: bytes) -> list[dict[str, Any]]:
    """What the records of an archive say."""
    return [shown for shown in everything(data) if shown["record"] not in STAGE]


def by_provider(data: bytes) -> list[tuple[int, dict[str, Any]]]:
    """What the records of an archive say, and who says it."""
    out, speaking = [], 0
    for shown in everything(data):
        if shown.get("kind") in ("provider_info", "provider_section"):
            speaking = shown["id"]
        elif shown["record"] not in STAGE:
            out.append((speaking, shown))
    return out


@functools.lru_cache(1_000)
def worst(data: bytes) -> list[str]:
    """Findings of WARNING or worse; many cases write the same bytes, which are read once."""
    with fxf.open(data, format="trace") as capture:
        capture.scan()
        list(capture.records())
        return [
            f"{each.code} {each.message}"
            for each in capture.diagnostics
            if each.severity >= Severity.WARNING
        ]


@attrs.define
class Tape:
    """An archive in memory, and its one provider."""

    file: io.BytesIO
    archive: Archive
    writer: TraceWriter

    def data(self) -> bytes:
        """What has been written so far."""
        self.archive.flush()
        return self.file.getvalue()

    def told(self) -> list[dict[str, Any]]:
        return told(self.data())


def tape(*, big_endian: bool = False, **options: Any) -> Tape:
    file = io.BytesIO()
    archive = Archive(file, big_endian=big_endian)
    return Tape(file, archive, archive.provider(1, "app", **options))


def event(kind: str, timestamp: int, args: Any = (), **more: Any) -> dict[str, Any]:
    shown = {"record": "event", "event": kind, "timestamp": timestamp, "thread": [*ME]}
    return shown | {"category": "cat", "name": "name", "args": list(args)} | more


def arg(name: str, kind: str, value: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "value": value}


AT: dict[str, Any] = {"thread": ME, "timestamp": 5}
A = {"a": 1}
SHOWN_A = [arg("a", "int32", 1)]
METHODS: dict[str, tuple[Callable[[TraceWriter], Any], dict[str, Any]]] = {
    "instant": (lambda w: w.instant("cat", "name", A, **AT), event("instant", 5, SHOWN_A)),
    **{
        f"instant {scope}": (
            lambda w, scope=scope: w.instant("cat", "name", scope=scope, **AT),
            event("instant", 5, scope=scope),
        )
        for scope in ("thread", "process", "global")
    },
    "counter": (
        lambda w: w.counter("cat", "name", {"a": 1, "b": 2.5}, id=9, **AT),
        event("counter", 5, [*SHOWN_A, arg("b", "double", 2.5)], counter_id=9),
    ),
    "counter without id": (
        lambda w: w.counter("cat", "name", A, **AT),
        event("counter", 5, SHOWN_A, counter_id=0),
    ),
    "duration_begin": (
        lambda w: w.duration_begin("cat", "name", A, **AT),
        event("duration_begin", 5, SHOWN_A),
    ),
    "duration_end": (
        lambda w: w.duration_end("cat", "name", A, **AT),
        event("duration_end", 5, SHOWN_A),
    ),
    "duration_complete": (
        lambda w: w.duration_complete("cat", "name", 5, 9, A, thread=ME),
        event("duration_complete", 5, SHOWN_A, end_timestamp=9),
    ),
    **{
        kind: (
            lambda w, kind=kind: getattr(w, kind)("cat", "name", 1 << 63, A, **AT),
            event(kind, 5, SHOWN_A, id=1 << 63),
        )
        for kind in (
            "async_begin", "async_instant", "async_end", "flow_begin", "flow_step", "flow_end",
        )
    },
    "process": (
        lambda w: w.process(7, "init"),
        {"record": "kernel_object", "object_type": 1, "koid": 7, "name": "init", "args": []},
    ),
    "thread": (
        lambda w: w.thread(7, 8, "main"),
        {
            "record": "kernel_object", "object_type": 2, "koid": 8, "name": "main",
            "args": [arg("process", "koid", 7)],
        },
    ),
    "kernel_object": (
        lambda w: w.kernel_object(wire.ObjectType.FIFO, 1 << 63, "é", {"s": "text", "n": None}),
        {
            "record": "kernel_object", "object_type": 19, "koid": 1 << 63, "name": "é",
            "args": [arg("s", "string", "text"), arg("n", "null", None)],
        },
    ),
    "userspace_object": (
        lambda w: w.userspace_object(7, 0xABC, "view", A),
        {
            "record": "userspace_object", "pointer": 0xABC, "process": 7, "name": "view",
            "args": SHOWN_A,
        },
    ),
    "context_switch": (
        lambda w: w.context_switch(
            cpu=65535, outgoing_tid=1, incoming_tid=2, outgoing_state="dead", ticks=5,
            incoming_priority=-1, outgoing_priority=3, args=A,
        ),
        {
            "record": "scheduling", "kind": "context_switch", "cpu": 65535, "timestamp": 5,
            "outgoing_state": 5, "outgoing_tid": 1, "incoming_tid": 2,
            "args": [
                arg("incoming_weight", "int32", -1), arg("outgoing_weight", "int32", 3), *SHOWN_A,
            ],
        },
    ),
    "context_switch without priorities": (
        lambda w: w.context_switch(cpu=0, outgoing_tid=1, incoming_tid=2, ticks=5),
        {
            "record": "scheduling", "kind": "context_switch", "cpu": 0, "timestamp": 5,
            "outgoing_state": 3, "outgoing_tid": 1, "incoming_tid": 2, "args": [],
        },
    ),
    "wakeup": (
        lambda w: w.wakeup(cpu=3, tid=8, ticks=5, priority=20, args=[("waker", Koid(9))]),
        {
            "record": "scheduling", "kind": "thread_wakeup", "cpu": 3, "timestamp": 5,
            "waking_tid": 8, "args": [arg("weight", "int32", 20), arg("waker", "koid", 9)],
        },
    ),
    "log": (
        lambda w: w.log("a line", **AT),
        {"record": "log", "timestamp": 5, "thread": [7, 8], "message": "a line"},
    ),
    "blob": (
        lambda w: w.blob("data", b"\1\2\3", blob_type=wire.BlobType.PERFETTO),
        {"record": "blob", "name": "data", "blob_type": 3, "size": 3, "payload_hex": "010203"},
    ),
    "empty blob": (
        lambda w: w.blob("data", b""),
        {"record": "blob", "name": "data", "blob_type": 1, "size": 0, "payload_hex": ""},
    ),
    "large_blob": (
        lambda w: w.large_blob("cat", "name", b"\1", A, **AT),
        {
            "record": "large", "large_type": 0, "blob_format": 0, "category": "cat",
            "name": "name", "timestamp": 5, "thread": [7, 8], "args": SHOWN_A, "size": 1,
            "payload_hex": "01",
        },
    ),
    "large_blob without metadata": (
        lambda w: w.large_blob("cat", "name", bytearray(b"\1"), metadata=False),
        {
            "record": "large", "large_type": 0, "blob_format": 1, "category": "cat",
            "name": "name", "size": 1, "payload_hex": "01",
        },
    ),
}  # fmt: skip

# --- Every method, every argument type ---------------------------------------------------------


@cases("policy", ["allocate", "reuse", "inline"])
@cases("big_endian", [False, True], ids=["little", "big"])
@cases("name", METHODS)
def test_a_method_writes_the_record_it_says(name: str, policy: Any, big_endian: bool) -> None:
    call, wanted = METHODS[name]
    made = tape(big_endian=big_endian, strings=policy, threads=policy)
    for _ in range(3):  # first with new strings, then with known ones
        call(made.writer)
    assert made.told() == [wanted] * 3
    agree(made.data())


def test_what_is_said_of_registrations() -> None:
    made = tape()
    assert made.writer.register_string(300, "far")
    assert made.writer.register_thread(200, 1, 2)
    made.writer.instant("far", "near", thread=(1, 2), timestamp=1)
    shown = [record for record in everything(made.data()) if record["record"] in STAGE]
    assert shown[2:] == [
        {"record": "initialization", "ticks_per_second": 1_000_000_000},
        {"record": "string", "index": 300, "value": "far"},
        {"record": "thread", "index": 200, "pid": 1, "tid": 2},
        {"record": "string", "index": 1, "value": "near"},
    ]
    with fxf.open(made.data()) as capture:
        *_, last = (record.to_json() for record in capture.records())
    assert last["refs"] == {"thread": 200, "category": 300, "name": 1}


NAN = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0123))[0]
VALUES: dict[str, tuple[Any, str, Any]] = {
    "null": (None, "null", None),
    "true": (True, "bool", True),
    "false": (False, "bool", False),
    "numpy true": (np.bool_(True), "bool", True),
    **{
        f"{kind} {value}": (value, kind, value)
        for kind, values in {
            "int32": (0, -1, -(1 << 31), (1 << 31) - 1),
            "uint32": (1 << 31, (1 << 32) - 1),
            "int64": (1 << 32, -(1 << 31) - 1, (1 << 63) - 1, -(1 << 63)),
            "uint64": (1 << 63, (1 << 64) - 1),
        }.items()
        for value in values
    },
    **{
        f"{wrapper.__name__} {value}": (wrapper(value), wrapper.__name__.lower(), value)
        for wrapper, values in {
            Int32: (-(1 << 31), 1),
            Uint32: (1, (1 << 32) - 1),
            Int64: (1, -(1 << 63)),
            Uint64: (1, (1 << 64) - 1),
            Pointer: (0, (1 << 64) - 1),
            Koid: (7, 1 << 63),
        }.items()
        for value in values
    },
    **{
        f"numpy {name}": (np.dtype(name).type(100), kind, 100)
        for name, kind in {
            "int8": "int32", "int16": "int32", "int32": "int32", "int64": "int64",
            "uint8": "uint32", "uint16": "uint32", "uint32": "uint32", "uint64": "uint64",
        }.items()
    },
    **{
        f"numpy {name}": (np.dtype(name).type(0.5), "double", 0.5)
        for name in ("float16", "float32", "float64")
    },
    "wrapped numpy": (Koid(np.uint64(1 << 63)), "koid", 1 << 63),  # type: ignore[arg-type]
    "double": (0.1, "double", 0.1),
    "Double of an int": (Double(3), "double", 3.0),
    "infinity": (math.inf, "double", "Infinity"),
    "-infinity": (-math.inf, "double", "-Infinity"),
    "NaN": (math.nan, "double", "NaN"),
    "least": (5e-324, "double", 5e-324),
    "string": ("text", "string", "text"),
    "empty": ("", "string", ""),
    "non-ASCII": ("héllo wörld ☃ 𝄞", "string", "héllo wörld ☃ 𝄞"),
    "NUL": ("a\0b", "string", "a\0b"),
    "String": (String("x"), "string", "x"),
    "longest string": ("x" * 32000, "string", "x" * 32000),
    "bytes": (b"\0\1\xff", "blob", "0001ff"),
    "no bytes": (b"", "blob", ""),
    "Blob": (Blob(bytearray(b"12345678")), "blob", b"12345678".hex()),
}  # fmt: skip
HOLDERS: dict[str, Callable[[TraceWriter, Any], Any]] = {
    "event": lambda w, args: w.instant("cat", "name", args, **AT),
    "scheduling": lambda w, args: w.wakeup(cpu=0, tid=1, ticks=5, args=args),
    "large": lambda w, args: w.large_blob("cat", "name", b"", args, **AT),
    "kernel_object": lambda w, args: w.kernel_object(3, 1, "vmo", args),
    "userspace_object": lambda w, args: w.userspace_object(1, 2, "name", args),
}
"""Records that have arguments, by the ways in which they are made."""


@cases("holder", HOLDERS)
@cases("case", VALUES)
def test_an_argument_has_the_type_and_value_it_was_given(case: str, holder: str) -> None:
    value, kind, shown = VALUES[case]
    for policy in ("allocate", "inline"):
        made = tape(strings=policy)
        for _ in range(2):
            HOLDERS[holder](made.writer, {"key": value})
        assert [each["args"] for each in made.told()] == [[arg("key", kind, shown)]] * 2
        assert worst(made.data()) == []


@cases("holder", HOLDERS)
def test_bits_of_doubles_stay(holder: str) -> None:
    made = tape()
    HOLDERS[holder](made.writer, {"key": 1.0})
    HOLDERS[holder](made.writer, {"nan": NAN, "zero": -0.0, "key": NAN})
    nan, zero, known = made.told()[-1]["args"]
    assert nan == arg("nan", "double", "NaN") | {"value_bits": "0xfff8000000000123"}
    assert known["value_bits"] == nan["value_bits"]
    assert math.copysign(1, zero["value"]) == -1


@cases("holder", HOLDERS)
def test_bytes_that_are_not_utf8_stay(holder: str) -> None:
    made = tape()
    odd = b"caf\xe9".decode(errors="surrogateescape")
    for _ in range(2):
        HOLDERS[holder](made.writer, {odd: odd})
    for shown in made.told():
        (found,) = shown["args"]
        assert found["name"] == found["value"] == "caf�"
        assert found["name_bytes_hex"] == found["value_bytes_hex"] == b"caf\xe9".hex()


@cases("holder", HOLDERS)
@cases("shape", ["list", "iterator", "items", "lists"])
def test_arguments_of_one_name_stay_in_order(holder: str, shape: str) -> None:
    pairs = [("b", 1), ("a", "x"), ("b", 2.5), ("b", None), ("a", "x")]
    make: dict[str, Callable[[], Any]] = {
        "list": lambda: pairs,
        "iterator": lambda: (pair for pair in pairs),
        "items": lambda: tuple(pairs),
        "lists": lambda: [list(pair) for pair in pairs],
    }
    made = tape()
    HOLDERS[holder](made.writer, {})
    for _ in range(2):  # an iterator must survive that strings are new, and that they are not
        HOLDERS[holder](made.writer, make[shape]())
    _, *found = made.told()
    assert len(found) == 2
    for shown in found:
        assert [(each["name"], each["value"]) for each in shown["args"]] == pairs


def test_fifteen_arguments_of_every_kind_and_long_ones() -> None:
    values = [None, True, 1, 1 << 31, 1 << 40, 1 << 63, 0.5, "s", Koid(1), Pointer(2), b"x" * 500]
    args = {f"a{n}": value for n, value in enumerate([*values, "t" * 900, 1.5, -1, b""])}
    made = tape(strings="inline")
    made.writer.instant("cat", "name", args, **AT)
    made.writer.instant("cat", "name", args, **AT)
    first, second = made.told()
    assert first == second
    assert len(first["args"]) == 15


def test_lists_do_for_threads_and_numbers_of_numpy_for_numbers() -> None:
    made = tape()
    for thread in ([7, 8], (np.uint64(7), np.int32(8)), (7, 8)):
        made.writer.instant("cat", "name", thread=thread, timestamp=np.int64(5))  # type: ignore[arg-type]
        made.writer.wakeup(cpu=np.uint8(1), tid=np.uint64(8), ticks=5, priority=np.int32(2))  # type: ignore[arg-type]
    made.writer.log("x", thread=(np.uint64(7), 8), timestamp=np.uint64(5))  # type: ignore[arg-type]
    assert made.told()[0] == made.told()[2] == made.told()[4] == event("instant", 5)
    assert made.told()[1]["args"] == [arg("weight", "int32", 2)]
    inline = tape(threads="inline")
    inline.writer.instant("cat", "name", thread=[7, 8], timestamp=5)  # type: ignore[arg-type]
    assert inline.told() == [event("instant", 5)]


def test_a_blob_of_any_size_comes_back_whole() -> None:
    for size in (31_999, 32_000, 32_001, 100_000):
        for name in ("data", "n" * 32_000):
            payload = random.Random(size).randbytes(size)
            made = tape(strings="inline")
            assert made.writer.blob(name, payload)
            parts = made.told()
            assert all(part["name"] == name and part["blob_type"] == 1 for part in parts)
            assert b"".join(bytes.fromhex(part["payload_hex"]) for part in parts) == payload
            if name == "data":
                assert len(parts) == -(-size // 32_000)


def test_a_writer_hears_a_scheduler() -> None:
    made = tape()
    assert isinstance(made.writer, SchedulerListener)
    made.writer.context_switch(
        cpu=1, ticks=2, outgoing_tid=3, outgoing_state=1, incoming_tid=4, incoming_priority=5,
        outgoing_priority=6,
    )  # fmt: skip
    made.writer.wakeup(cpu=1, ticks=2, tid=3, priority=4)
    assert [each["kind"] for each in made.told()] == ["context_switch", "thread_wakeup"]


# --- Any calls ---------------------------------------------------------------------------------

texts = st.one_of(
    st.sampled_from(["", "a", "b", "name", "longer than a word"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
)
numbers = st.one_of(st.integers(0, 9), st.integers(0, (1 << 64) - 1))
ticks = st.integers(0, 1 << 50)
tasks = st.tuples(st.sampled_from([1, 2, 1 << 63]), st.sampled_from([3, 4, 5]))
Typed = tuple[Any, dict[str, Any]]


def shown_double(value: float) -> dict[str, Any]:
    if math.isnan(value):
        word = struct.unpack("<Q", struct.pack("<d", value))[0]
        more = {} if word == 0x7FF8 << 48 else {"value_bits": f"0x{word:016x}"}
        return {"type": "double", "value": "NaN", **more}
    if math.isinf(value):
        return {"type": "double", "value": "Infinity" if value > 0 else "-Infinity"}
    return {"type": "double", "value": value}


def shown_int(value: int) -> dict[str, Any]:
    if value < 0:
        return {"type": "int32" if value >= -(1 << 31) else "int64", "value": value}
    bits = value.bit_length()
    kind = "int32" if bits < 32 else "uint32" if bits < 33 else "int64" if bits < 64 else "uint64"
    return {"type": kind, "value": value}


def plain(kind: str) -> Callable[[Any], Typed]:
    return lambda value: (value, {"type": kind, "value": value})


values: st.SearchStrategy[Typed] = st.one_of(
    st.integers(-(1 << 63), (1 << 64) - 1).map(lambda value: (value, shown_int(value))),
    st.integers(-(1 << 33), 1 << 33).map(lambda value: (value, shown_int(value))),
    st.floats().map(lambda value: (value, shown_double(value))),
    texts.map(plain("string")),
    st.none().map(plain("null")),
    st.booleans().map(plain("bool")),
    st.binary(max_size=20).map(lambda value: (value, {"type": "blob", "value": value.hex()})),
    numbers.map(lambda value: (Pointer(value), {"type": "pointer", "value": value})),
    numbers.map(lambda value: (Koid(value), {"type": "koid", "value": value})),
    numbers.map(lambda value: (Uint64(value), {"type": "uint64", "value": value})),
    st.integers(-(1 << 63), (1 << 63) - 1).map(
        lambda value: (np.int64(value), {"type": "int64", "value": value})
    ),
)
arguments = st.lists(st.tuples(texts, values), max_size=4)


@attrs.define
class Call:
    """A call of a method, and what it must make."""

    name: str
    args: tuple[Any, ...]
    more: dict[str, Any]
    shown: dict[str, Any]

    def on(self, writer: TraceWriter) -> bool:
        return bool(getattr(writer, self.name)(*self.args, **self.more))


def given_and_shown(drawn: list[tuple[str, Typed]]) -> tuple[Any, list[dict[str, Any]]]:
    pairs = [(name, value) for name, (value, _) in drawn]
    shown = [{"name": name, **told} for name, (_, told) in drawn]
    if len({name for name, _ in pairs}) == len(pairs):
        return dict(pairs), shown
    return pairs, shown


@st.composite
def calls(draw: Any) -> Call:
    """A call of any method, sound in all its values."""
    kind = draw(st.sampled_from([*wire.EVENT_NAMES.values(), *OTHERS]))
    given, shown = given_and_shown(draw(arguments))
    name, at, who = draw(texts), draw(ticks), draw(tasks)
    if kind in OTHERS:
        return OTHERS[kind](draw, given, shown, name, at, who)
    category = draw(texts)
    wanted = {
        "record": "event", "event": kind, "timestamp": at, "thread": [*who],
        "category": category, "name": name, "args": shown,
    }  # fmt: skip
    more: dict[str, Any] = {"thread": who, "timestamp": at}
    positional: tuple[Any, ...] = (category, name, given)
    if kind == "instant":
        scope = draw(st.sampled_from([None, "thread", "process", "global"]))
        if scope:
            wanted["scope"] = more["scope"] = scope
    elif kind == "counter":
        wanted["counter_id"] = more["id"] = draw(numbers)
    elif kind == "duration_complete":
        wanted["end_timestamp"] = at + draw(st.integers(0, 100))
        positional = (category, name, at, wanted["end_timestamp"], given)
        del more["timestamp"]
    elif kind not in ("duration_begin", "duration_end"):
        wanted["id"] = draw(numbers)
        positional = (category, name, wanted["id"], given)
    return Call(kind, positional, more, wanted)


def _kernel_object(draw: Any, given: Any, shown: Any, name: str, at: int, who: Any) -> Call:
    wanted = {"record": "kernel_object", "object_type": 3, "koid": who[1], "name": name}
    return Call("kernel_object", (3, who[1], name, given), {}, wanted | {"args": shown})


def _thread(draw: Any, given: Any, shown: Any, name: str, at: int, who: Any) -> Call:
    wanted = {"record": "kernel_object", "object_type": 2, "koid": who[1], "name": name}
    return Call("thread", (*who, name), {}, wanted | {"args": [arg("process", "koid", who[0])]})


def _userspace_object(draw: Any, given: Any, shown: Any, name: str, at: int, who: Any) -> Call:
    wanted = {"record": "userspace_object", "pointer": at, "process": who[0], "name": name}
    return Call("userspace_object", (who[0], at, name, given), {}, wanted | {"args": shown})


def _context_switch(draw: Any, given: Any, shown: Any, name: str, at: int, who: Any) -> Call:
    numbers = {"cpu": draw(st.integers(0, 65535)), "outgoing_state": draw(st.integers(0, 15))}
    numbers |= {"outgoing_tid": who[0], "incoming_tid": who[1]}
    weight = draw(st.none() | st.integers(-(1 << 31), (1 << 31) - 1))
    weights = [] if weight is None else [arg("incoming_weight", "int32", weight)]
    wanted = {"record": "scheduling", "kind": "context_switch", "timestamp": at, **numbers}
    more = {"ticks": at, "incoming_priority": weight, "args": given}
    return Call("context_switch", (), numbers | more, wanted | {"args": weights + shown})


def _wakeup(draw: Any, given: Any, shown: Any, name: str, at: int, who: Any) -> Call:
    cpu = draw(st.integers(0, 65535))
    wanted = {"record": "scheduling", "kind": "thread_wakeup", "timestamp": at, "cpu": cpu}
    more = {"cpu": cpu, "tid": who[1], "ticks": at, "args": given}
    return Call("wakeup", (), more, wanted | {"waking_tid": who[1], "args": shown})


def _log(draw: Any, given: Any, shown: Any, name: str, at: int, who: Any) -> Call:
    wanted = {"record": "log", "timestamp": at, "thread": [*who], "message": name}
    return Call("log", (name,), {"thread": who, "timestamp": at}, wanted)


def _blob(draw: Any, given: Any, shown: Any, name: str, at: int, who: Any) -> Call:
    payload = draw(st.binary(max_size=30))
    wanted = {"record": "blob", "name": name, "blob_type": 2, "size": len(payload)}
    return Call("blob", (name, payload), {"blob_type": 2}, wanted | {"payload_hex": payload.hex()})


def _large_blob(draw: Any, given: Any, shown: Any, name: str, at: int, who: Any) -> Call:
    payload = draw(st.binary(max_size=30))
    wanted: dict[str, Any] = {"record": "large", "large_type": 0, "category": "", "name": name}
    wanted |= {"size": len(payload), "payload_hex": payload.hex()}
    if draw(st.booleans()):
        return Call(
            "large_blob", ("", name, payload), {"metadata": False}, wanted | {"blob_format": 1}
        )
    wanted |= {"blob_format": 0, "timestamp": at, "thread": [*who], "args": shown}
    return Call("large_blob", ("", name, payload, given), {"thread": who, "timestamp": at}, wanted)


OTHERS: dict[str, Callable[..., Call]] = {
    "kernel_object": _kernel_object,
    "thread": _thread,
    "userspace_object": _userspace_object,
    "context_switch": _context_switch,
    "wakeup": _wakeup,
    "log": _log,
    "blob": _blob,
    "large_blob": _large_blob,
}
policies = st.fixed_dictionaries(
    {name: st.sampled_from(["allocate", "reuse", "inline"]) for name in ("strings", "threads")}
)
limits = st.tuples(st.sampled_from([1, 2, 3, 5, 1000]), st.sampled_from([1, 2, 3, 255]))


def limited(writer: TraceWriter, limit: tuple[int, int]) -> TraceWriter:
    """The writer with few slots."""
    writer.strings = Slots(limit[0], writer.strings.policy)
    writer.threads = Slots(limit[1], writer.threads.policy)
    return writer


@hypothesis.given(
    st.lists(st.tuples(policies, limits), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), calls()), max_size=25),
    st.booleans(),
)
def test_any_calls_read_back_as_they_were_made(
    providers: list[Any], made: list[tuple[int, Call]], big_endian: bool
) -> None:
    file = io.BytesIO()
    wanted = []
    with Archive(file, big_endian=big_endian) as archive:
        writers = [
            limited(archive.provider(number, f"p{number}", **policy), limit)
            for number, (policy, limit) in enumerate(providers)
        ]
        for who, call in made:
            number = who % len(writers)
            assert call.on(writers[number]) is True
            wanted.append((number, call.shown))
    data = file.getvalue()
    found = by_provider(data)
    assert [text(each) for each in found] == [text(each) for each in wanted]
    undefined = {
        "FXT0118": any(shown.get("outgoing_state", 0) > 5 for _, shown in wanted),
        "FXT0119": any(shown.get("blob_type", 1) not in (1, 2, 3) for _, shown in wanted),
    }
    assert {line.split()[0] for line in worst(data)} == {c for c, odd in undefined.items() if odd}
    agree(data)


def text(value: Any) -> str:
    """JSON, in which 0.0 and -0.0 are two."""
    return json.dumps(value, sort_keys=True)


def test_a_record_of_more_strings_than_there_are_slots_has_the_others_inline() -> None:
    made = tape(strings="reuse", threads="reuse")
    writer = limited(made.writer, (3, 1))
    args = {"k1": "v1", "k2": "v2"}
    for number in range(3):
        writer.instant(f"c{number}", "name", args, thread=(1, 2), timestamp=number)
        writer.instant("c", f"n{number}", {"k1": "v1"}, thread=(1, number), timestamp=number)
    found = made.told()
    assert [(each["category"], each["name"], each["thread"]) for each in found] == [
        ("c0", "name", [1, 2]), ("c", "n0", [1, 0]), ("c1", "name", [1, 2]),
        ("c", "n1", [1, 1]), ("c2", "name", [1, 2]), ("c", "n2", [1, 2]),
    ]  # fmt: skip
    assert [each["value"] for each in found[0]["args"]] == ["v1", "v2"]
    assert worst(made.data()) == []
    switch = r.LegacyContextSwitch(
        cpu=1, timestamp=2, outgoing_state=3, outgoing=(1, 2), incoming=(1, 3),
        outgoing_priority=4, incoming_priority=5,
    )  # fmt: skip
    assert writer.write(switch)
    assert made.told()[-1]["incoming"] == [1, 3]


@cases("slots", range(1, 7))
@cases("threads", [1, 2])
def test_calls_that_come_again_say_the_same_whatever_was_evicted(slots: int, threads: int) -> None:
    made = tape(strings="reuse", threads="reuse")
    writer = limited(made.writer, (slots, threads))
    names = ["a", "b", "c"]
    wanted = []
    for _ in range(3):
        for category, name, who in itertools.product(names, names, [(1, 2), (1, 3)]):
            for args in ({}, {}, {name: category}, {name: category}):
                writer.instant(category, name, args, thread=who, timestamp=1)
                shown = [arg(key, "string", value) for key, value in args.items()]
                wanted.append([category, name, [*who], shown])
    found = [[each[key] for key in ("category", "name", "thread", "args")] for each in made.told()]
    assert found == wanted


@cases("policy", ["allocate", "reuse"])
def test_the_real_limits_of_slots(policy: Any) -> None:
    """Takes seconds: there are 32,767 slots of strings, and twice as many records."""
    made = tape(strings=policy, threads=policy)
    count = wire.MAX_STRING_INDEX + 20
    for number in range(count):
        made.writer.instant(f"s{number}", "", thread=(1, number % 300), timestamp=number)
    assert len(made.writer.strings) == wire.MAX_STRING_INDEX
    assert len(made.writer.threads) == wire.MAX_THREAD_INDEX
    made.writer.instant("s0", "s1", timestamp=1)
    with fxf.open(made.data()) as capture:
        shown = map(json.loads, b"".join(capture.records_json()).splitlines())
        *found, after = [record for record in shown if record["record"] == "event"]
    assert [each["category"] for each in found] == [f"s{number}" for number in range(count)]
    assert [each["thread"][1] for each in found] == [number % 300 for number in range(count)]
    assert ("category" not in found[-1].get("refs", {})) is (policy == "allocate")
    # What stood there before is known by another index, or inline, not by the one it had.
    assert (after["category"], after["name"]) == ("s0", "s1")


def resolved(shown: dict[str, Any]) -> dict[str, Any]:
    out = without_place(shown)
    out.pop("raw", None)
    return out


@hypothesis.given(fxt_streams(), policies, limits, st.booleans())
def test_records_that_were_read_say_the_same_when_written(
    data: bytes, policy: Any, limit: tuple[int, int], as_json: bool
) -> None:
    made = tape(**policy)
    limited(made.writer, limit)
    wanted = []
    with fxf.open(data, format="trace") as capture:
        for record in capture.records():
            shown = resolved(record.to_json())
            given: Any = record.to_json() if as_json else record
            before = made.data()
            code = must_be_refused(record)
            if code:
                with pytest.raises(WriteRefusedError) as refused:
                    made.writer.write(given)
                assert refused.value.code == code
                assert made.data() == before
            else:
                assert made.writer.write(given)
                if shown["record"] not in STAGE:
                    wanted.append(shown)
    assert made.told() == wanted
    agree(made.data())


def must_be_refused(record: Any) -> str | None:
    """The code with which a writer refuses what may well be read."""
    if record.record in ("metadata", "padding", "damaged"):
        return "FXT0410"
    if record.opaque or isinstance(getattr(record, "event", ""), int):
        return "FXT0408"
    if getattr(record, "ticks_per_second", None) == 0:
        return "FXT0404"
    if any(isinstance(each.type, int) for each in getattr(record, "args", ())):
        return "FXT0408"
    tasks = [getattr(record, name, 0) for name in ("thread", "process", "outgoing", "incoming")]
    if any(isinstance(who, str) for who in tasks):
        return "FXT0403"
    return None


# --- What is refused ---------------------------------------------------------------------------

LONG = "x" * 32_001
SIXTEEN = {f"a{number}": f"v{number}" for number in range(16)}
NO_NUMBERS = (1.5, "1", None, b"1", [1])


def bad_argument(value: Any, code: str) -> dict[str, tuple[str, Callable[[TraceWriter], Any]]]:
    """A value that no record takes as an argument; new strings come before it."""
    return {
        f"{holder}: {value!r}"[:60]: (
            code,
            lambda w, hold=hold: hold(w, [("new1", "new2"), ("new3", value), ("new4", 1)]),
        )
        for holder, hold in HOLDERS.items()
    }


def instant(**more: Any) -> Callable[[TraceWriter], Any]:
    return lambda w: w.instant("new1", "new2", **{**AT, **more})


BAD: dict[str, tuple[str, Callable[[TraceWriter], Any]]] = {
    # Too many, too long, too large.
    **{
        f"{holder}: 16 arguments": ("FXT0406", lambda w, hold=hold: hold(w, SIXTEEN))
        for holder, hold in HOLDERS.items()
    },
    "16 arguments of one name": ("FXT0406", instant(args=[("a", 1)] * 16)),
    "two priorities and 14": (
        "FXT0406",
        lambda w: w.context_switch(
            cpu=0, outgoing_tid=1, incoming_tid=2, ticks=5, incoming_priority=1,
            outgoing_priority=2, args=[("a", 1)] * 14,
        ),
    ),
    "category": ("FXT0405", lambda w: w.instant(LONG, "new", **AT)),
    "name": ("FXT0405", lambda w: w.instant("new", LONG, **AT)),
    "name in bytes": ("FXT0405", lambda w: w.instant("new", "é" * 16_001, **AT)),
    **{
        f"{holder}: long name": ("FXT0405", lambda w, hold=hold: hold(w, {"new": 1, LONG: 1}))
        for holder, hold in HOLDERS.items()
    },
    **bad_argument(LONG, "FXT0405"),
    **bad_argument(String("é" * 16_001), "FXT0405"),
    "log": ("FXT0405", lambda w: w.log(LONG, **AT)),
    "blob name": ("FXT0405", lambda w: w.blob(LONG, b"x" * 70_000)),
    "large category": ("FXT0405", lambda w: w.large_blob(LONG, "new", b"", **AT)),
    "process name": ("FXT0405", lambda w: w.process(1, LONG)),
    "registered string": ("FXT0405", lambda w: w.register_string(1, LONG)),
    "record's string": ("FXT0405", lambda w: w.write(r.StringRecord(index=1, value=LONG))),
    "one long argument": ("FXT0407", instant(args={"new": b"x" * 32_753})),
    "very long argument": ("FXT0407", instant(args={"new": b"x" * 100_000})),
    "two long arguments": (
        "FXT0407", instant(args={"new3": b"x" * 20_000, "new4": b"x" * 20_000}),
    ),
    "switch": (
        "FXT0407",
        lambda w: w.wakeup(cpu=0, tid=1, ticks=5, args=[("new", b"x" * 20_000)] * 2),
    ),
    "kernel object": ("FXT0407", lambda w: w.kernel_object(1, 1, "n" * 32_000, {"a": b"x" * 900})),
    "large": ("FXT0407", lambda w: w.large_blob("new1", "new2", bytes(256 << 10), **AT)),
    "large without metadata": (
        "FXT0407",
        lambda w: w.large_blob("new1", "new2", bytes((256 << 10) - 16), metadata=False),
    ),
    # Numbers that do not fit.
    **bad_argument(1 << 64, "FXT0404"),
    **bad_argument(-(1 << 63) - 1, "FXT0404"),
    **bad_argument(Int32(1 << 31), "FXT0404"),
    **bad_argument(Int32(-(1 << 31) - 1), "FXT0404"),
    **bad_argument(Uint32(-1), "FXT0404"),
    **bad_argument(Uint32(1 << 32), "FXT0404"),
    **bad_argument(Int64(1 << 63), "FXT0404"),
    **bad_argument(Uint64(-1), "FXT0404"),
    **bad_argument(Pointer(1 << 64), "FXT0404"),
    **bad_argument(Koid(-1), "FXT0404"),
    **{
        f"timestamp {value}": ("FXT0404", instant(timestamp=value))
        for value in (-1, 1 << 64, -(10**40))
    },
    **{
        f"thread {who}": ("FXT0404", instant(thread=who))
        for who in ((-1, 1), (1, -1), (1 << 64, 1), (1, 1 << 64))
    },
    "counter id": ("FXT0404", lambda w: w.counter("new1", "new2", A, id=-1, **AT)),
    "flow id": ("FXT0404", lambda w: w.flow_begin("new1", "new2", 1 << 64, **AT)),
    "end": ("FXT0404", lambda w: w.duration_complete("new1", "new2", 5, -1, thread=ME)),
    **{
        f"cpu {cpu}": ("FXT0404", lambda w, cpu=cpu: w.wakeup(cpu=cpu, tid=1, ticks=5))
        for cpu in (-1, 65536)
    },
    "state": (
        "FXT0404",
        lambda w: w.context_switch(
            cpu=0, outgoing_tid=1, incoming_tid=2, outgoing_state=16, ticks=5
        ),
    ),
    "priority": ("FXT0404", lambda w: w.wakeup(cpu=0, tid=1, ticks=5, priority=1 << 31)),
    "tid": ("FXT0404", lambda w: w.wakeup(cpu=0, tid=1 << 64, ticks=5)),
    "blob type": ("FXT0404", lambda w: w.blob("new", b"x", blob_type=256)),
    "object type": ("FXT0404", lambda w: w.kernel_object(256, 1, "new")),
    "koid": ("FXT0404", lambda w: w.process(-1, "new")),
    "pointer": ("FXT0404", lambda w: w.userspace_object(1, 1 << 64, "new")),
    "string index": ("FXT0404", lambda w: w.register_string(0x8000, "new")),
    "thread index": ("FXT0404", lambda w: w.register_thread(256, 1, 2)),
    "thread koid": ("FXT0404", lambda w: w.register_thread(1, 1, -2)),
    "rate": ("FXT0404", lambda w: w.write(r.Initialization(ticks_per_second=0))),
    # Values of the wrong kind.
    **bad_argument(..., "FXT0403"),
    **bad_argument([1], "FXT0403"),
    **bad_argument(1j, "FXT0403"),
    **bad_argument(np.array([1, 2]), "FXT0403"),
    **bad_argument(Int32("1"), "FXT0403"),
    **bad_argument(Koid(1.0), "FXT0403"),
    **bad_argument(Double("1"), "FXT0403"),
    **bad_argument(Double(10**400), "FXT0403"),
    **bad_argument(String(b"bytes"), "FXT0403"),
    **bad_argument(Blob("text"), "FXT0403"),
    **bad_argument("\ud800", "FXT0403"),
    **{
        f"{holder}: {args!r}": ("FXT0403", lambda w, hold=hold, args=args: hold(w, args))
        for holder, hold in HOLDERS.items()
        for args in (5, [("a", 1, 2)], [5], "text", [(1, 2)], {None: 1}, [([], 1)], {"\ud800": 1})
    },
    **{
        f"{what} {value!r}": ("FXT0403", instant(**{what: value}))
        for what in ("timestamp", "thread")
        for value in NO_NUMBERS
        if value is not None
    },
    **{
        f"thread {who!r}": ("FXT0403", instant(thread=who))
        for who in (("a", 1), (1, None), (1, 2, 3), (1, [2]), 5)
    },
    **{
        f"{name} of {value!r}": (
            "FXT0403",
            lambda w, name=name, value=value: getattr(w, name)("new1", "new2", value, **AT),
        )
        for name in ("async_begin", "async_instant", "async_end", "flow_begin", "flow_end")
        for value in NO_NUMBERS
    },
    "no counter id": ("FXT0403", lambda w: w.counter("new1", "new2", A, id=None, **AT)),  # type: ignore[arg-type]
    "no end": ("FXT0403", lambda w: w.duration_complete("new1", "new2", 5, None, thread=ME)),  # type: ignore[arg-type]
    "scope": ("FXT0403", instant(scope="galaxy")),
    "scope's type": ("FXT0403", instant(scope=["thread"])),
    "no category": ("FXT0403", lambda w: w.instant(None, "new", **AT)),  # type: ignore[arg-type]
    "category of bytes": ("FXT0403", lambda w: w.instant(b"new", "new", **AT)),  # type: ignore[arg-type]
    "name of a list": ("FXT0403", lambda w: w.instant("new", ["new"], **AT)),  # type: ignore[arg-type]
    "lone surrogate": ("FXT0403", lambda w: w.instant("new", "\ud800", **AT)),
    **{
        f"lone surrogate in {name}": ("FXT0403", call)
        for name, call in {
            "a log": lambda w: w.log("\ud800", **AT),
            "a process": lambda w: w.process(1, "\ud800"),
            "a blob": lambda w: w.blob("\ud800", b"x" * 70_000),
            "a large blob": lambda w: w.large_blob("new", "\ud800", b"", **AT),
            "a string": lambda w: w.register_string(1, "\ud800"),
        }.items()
    },
    "state's name": (
        "FXT0403",
        lambda w: w.context_switch(
            cpu=0, outgoing_tid=1, incoming_tid=2, outgoing_state="asleep", ticks=5
        ),
    ),
    "state's type": (
        "FXT0403",
        lambda w: w.context_switch(
            cpu=0, outgoing_tid=1, incoming_tid=2, outgoing_state=[1], ticks=5  # type: ignore[arg-type]
        ),
    ),
    "cpu's type": ("FXT0403", lambda w: w.wakeup(cpu="0", tid=1, ticks=5)),  # type: ignore[arg-type]
    "priority's type": ("FXT0403", lambda w: w.wakeup(cpu=0, tid=1, ticks=5, priority=1.5)),  # type: ignore[arg-type]
    "message": ("FXT0403", lambda w: w.log(b"line", **AT)),  # type: ignore[arg-type]
    "message's thread": ("FXT0403", lambda w: w.log("line", thread=("a", 1), timestamp=5)),  # type: ignore[arg-type]
    "payload": ("FXT0403", lambda w: w.blob("new", "text")),  # type: ignore[arg-type]
    "size for a payload": ("FXT0403", lambda w: w.blob("new", 5)),  # type: ignore[arg-type]
    "large payload": ("FXT0403", lambda w: w.large_blob("new1", "new2", "text", **AT)),
    "object type's type": ("FXT0403", lambda w: w.kernel_object("process", 1, "new")),  # type: ignore[arg-type]
    "koid's type": ("FXT0403", lambda w: w.process("1", "new")),  # type: ignore[arg-type]
    "process name's type": ("FXT0403", lambda w: w.process(1, None)),  # type: ignore[arg-type]
    "index's type": ("FXT0403", lambda w: w.register_string("1", "new")),  # type: ignore[arg-type]
    "unknown thread": (
        "FXT0403", lambda w: w.write(r.Log(timestamp=1, thread="<thr#3>", message="new")),
    ),
    "unknown process": (
        "FXT0403",
        lambda w: w.write(r.UserspaceObject(pointer=1, process="<thr#3>", name="new")),
    ),
    "record's type": (
        "FXT0403", lambda w: w.write(r.Log(timestamp="1", thread=ME, message="new")),  # type: ignore[arg-type]
    ),
    # No records that a provider writes.
    "no record": ("FXT0401", lambda w: w.write(5)),  # type: ignore[arg-type]
    "unknown name": ("FXT0401", lambda w: w.write({"record": "evnt"})),
    "missing field": ("FXT0402", lambda w: w.write({"record": "string", "index": 1})),
    "unknown field": (
        "FXT0402", lambda w: w.write({"record": "string", "index": 1, "value": "v", "colour": 1}),
    ),
    **{
        f"metadata {record!r}": ("FXT0410", lambda w, record=record: w.write(record))
        for record in (
            r.ProviderInfo(id=1, name="x"), r.ProviderSection(id=1),
            r.ProviderEvent(id=1, event=0), r.TraceInfo(info_type=0, magic=wire.MAGIC),
            {"record": "metadata", "kind": "provider_section", "id": 2},
            {"record": "padding", "nbytes": 8},
            {"record": "damaged", "code": "FXT0004", "raw": "00" * 8},
        )
    },
    "unknown record": (
        "FXT0408", lambda w: w.write({"record": "unknown", "type": 14, "raw": "1e00000000000000"}),
    ),
    "unknown event": (
        "FXT0408",
        lambda w: w.write(r.Event(event=12, timestamp=1, thread=ME, category="new", name="new")),
    ),
    "unknown argument": (
        "FXT0408",
        lambda w: w.write(
            r.KernelObject(
                object_type=1, koid=1, name="new",
                args=(r.Argument(name="new", type=12, value=b""),),
            )
        ),
    ),
}  # fmt: skip


def good(writer: TraceWriter) -> None:
    """Calls with strings and threads that bad ones have had, and with others."""
    writer.instant("new2", "new1", {"new4": "new3"}, **AT)
    writer.log("new", **AT)
    writer.instant("fresh", "new1", SIXTEEN.keys() and {"a1": "v1"}, thread=(9, 9), timestamp=6)


@cases("policy", ["allocate", "reuse"])
@cases("case", BAD)
def test_a_refusal_leaves_no_trace(case: str, policy: Any) -> None:
    code, call = BAD[case]
    for known in (False, True):
        made, other = (tape(strings=policy, threads=policy) for _ in range(2))
        for each in (made, other):
            limited(each.writer, (6, 2) if policy == "reuse" else (1000, 255))
            if known:  # the way of strings that are known is another one
                each.writer.instant("new1", "new2", {"new": "new3"}, **AT)
        before = made.data()
        for _ in range(2):
            with pytest.raises(WriteRefusedError) as refused:
                call(made.writer)
            assert refused.value.code == code
            assert refused.value.remedy
            assert made.data() == before
        good(made.writer)
        good(other.writer)
        assert made.data() == other.data()
        assert worst(made.data()) == []


def test_a_refusal_with_strings_inline_says_that_the_record_is_too_large() -> None:
    made = tape(strings="inline")
    before = made.data()
    with pytest.raises(WriteRefusedError) as refused:
        made.writer.instant("c" * 32_000, "n" * 32_000, **AT)
    assert refused.value.code == "FXT0407"
    assert made.data() == before
    assert tape().writer.instant("c" * 32_000, "n" * 32_000, **AT)


def test_records_of_exactly_the_greatest_size() -> None:
    made = tape()
    header, timestamp, argument = 1, 1, 1
    room = (wire.MAX_RECORD_WORDS - header - timestamp - argument) * 8
    assert made.writer.instant("cat", "name", {"a": b"x" * room}, **AT)
    with pytest.raises(WriteRefusedError) as refused:
        made.writer.instant("cat", "name", {"a": b"x" * (room + 1)}, **AT)
    assert refused.value.code == "FXT0407"
    most = wire.MAX_LARGE_BYTES - 3 * 8
    assert made.writer.large_blob("cat", "name", bytes(most), metadata=False)
    with pytest.raises(WriteRefusedError):
        made.writer.large_blob("cat", "name", bytes(most + 1), metadata=False)
    assert [len(each.get("payload_hex", "")) // 2 for each in made.told()] == [0, most]
    assert worst(made.data()) == []


@hypothesis.given(
    policies, limits, st.lists(st.one_of(calls(), st.sampled_from(sorted(BAD))), max_size=12)
)
def test_bad_calls_among_good_ones_are_as_if_they_had_not_been(
    policy: Any, limit: tuple[int, int], steps: list[Call | str]
) -> None:
    made, other = tape(**policy), tape(**policy)
    for each in (made, other):
        limited(each.writer, limit)
    for step in steps:
        if isinstance(step, str):
            # Inline, what is too long may make a record too large first; it is refused either way.
            with contextlib.suppress(WriteRefusedError):
                BAD[step][1](made.writer)
                BAD[step][1](other.writer)
        else:
            step.on(made.writer)
            step.on(other.writer)
        assert made.data() == other.data()


# --- A destination that drops ------------------------------------------------------------------


@attrs.define
class Shelf:
    """A destination with room for so many records of either kind."""

    durable: float = math.inf
    rolling: float = math.inf
    keeps_order: bool = True
    lock: Any = attrs.field(factory=threading.RLock)
    held: list[bytes] = attrs.field(factory=list)

    def put(self, record: bytes, *, durable: bool = False) -> bool:
        name = "durable" if durable else "rolling"
        left = getattr(self, name)
        if left <= 0:
            return False
        setattr(self, name, left - 1)
        self.held.append(record)
        return True

    def has_room(self, nbytes: int) -> bool:
        return self.durable > 0

    def told(self) -> list[dict[str, Any]]:
        return told(b"".join([wire.MAGIC_BYTES, *self.held]))


@cases("room", range(8))
@cases("policy", ["allocate", "reuse"])
def test_without_room_for_strings_they_stand_inline(room: int, policy: Any) -> None:
    shelf = Shelf(durable=room)
    writer = TraceWriter(shelf, strings=policy, threads=policy, begin=False)
    limited(writer, (2, 1))
    names = ["a", "b", "c", "d"]
    for number, name in enumerate(names * 2):
        assert writer.instant(name, "name", {"key": name}, thread=(1, number), timestamp=number)
        assert writer.log("line", thread=(1, number), timestamp=number)
    found = shelf.told()
    assert [each["category"] for each in found[::2]] == names * 2
    assert [each["args"] for each in found[::2]] == [
        [arg("key", "string", name)] for name in names * 2
    ]
    assert [each["thread"] for each in found] == [[1, number // 2] for number in range(16)]
    assert worst(b"".join([wire.MAGIC_BYTES, *shelf.held])) == []


def test_without_room_for_anything_every_call_says_so() -> None:
    shelf = Shelf(durable=0, rolling=0)
    writer = TraceWriter(shelf, begin=False)
    assert writer.begin() is False
    for name, (call, _) in METHODS.items():
        if name != "thread":  # gives the thread
            assert call(writer) is False, name
    assert writer.register_string(1, "x") is False
    assert writer.register_thread(1, 1, 2) is False
    assert writer.blob("many", bytes(100_000)) is False
    assert shelf.held == []


def test_a_string_that_was_not_registered_is_not_referred_to() -> None:
    shelf = Shelf(durable=0)
    writer = TraceWriter(shelf, begin=False)
    assert not writer.register_string(5, "name")
    assert writer.instant("", "name", thread=ME, timestamp=1)
    assert shelf.told()[0]["name"] == "name"
    assert len(shelf.held) == 1


def test_a_slice_whose_begin_was_dropped_does_not_end() -> None:
    shelf = Shelf(rolling=0)
    writer = TraceWriter(shelf, begin=False)
    with writer.slice("cat", "outer"):
        shelf.rolling = math.inf
        with writer.slice("cat", "inner"):
            pass
    assert [(each["event"], each["name"]) for each in shelf.told()] == [
        ("duration_begin", "inner"),
        ("duration_end", "inner"),
    ]


@cases("which", ["strings", "threads"])
def test_slots_are_not_reused_where_order_is_not_kept(which: str) -> None:
    with pytest.raises(UsageError, match="reused") as told:
        TraceWriter(Shelf(keeps_order=False), **{which: "reuse"})  # type: ignore[arg-type]
    assert told.value.remedy
    TraceWriter(Shelf(keeps_order=False), **{which: "allocate"})  # type: ignore[arg-type]


def test_what_outlives_others_depends_on_no_slot() -> None:
    shelf = Shelf()
    writer = TraceWriter(shelf, begin=False)
    writer.instant("name", "key", thread=(7, 8), timestamp=1)
    held = len(shelf.held)
    writer.kernel_object(1, 7, "name", {"key": "name"})
    writer.userspace_object(7, 1, "name", {"key": "name"})
    alone = told(b"".join([wire.MAGIC_BYTES, *shelf.held[held:]]))
    assert [each["name"] for each in alone] == ["name", "name"]
    assert len(shelf.held) == held + 2


# --- Time --------------------------------------------------------------------------------------


class Counter24:
    """A time-stamp counter of 24 MHz."""

    frequency = 24_000_000
    constant = True
    nonstop = True

    def __init__(self) -> None:
        self.now = 0

    def read_tsc(self) -> int:
        self.now += 24
        return self.now

    def read_tscp(self) -> tuple[int, int]:
        return self.read_tsc(), 3


class Device:
    """A device's clocks."""

    ticks_per_second = 19_200_000

    def __init__(self) -> None:
        self.now = 0

    def monotonic_ns(self) -> int:
        raise AssertionError

    def boot_ns(self) -> int:
        raise AssertionError

    def ticks(self) -> int:
        self.now += 7
        return self.now


def rates(made: Tape) -> list[dict[str, Any]]:
    return [each for each in everything(made.data()) if each["record"] == "initialization"]


@cases(
    ("clock", "rate", "times"),
    [(Counter24(), 24_000_000, [24, 48]), (Device(), 19_200_000, [7, 14])],
)
def test_a_clock_gives_time_and_rate(clock: Any, rate: int, times: list[int]) -> None:
    assert isinstance(clock, TimestampCounter | Clock)
    made = tape(clock=clock)
    assert made.writer.ticks_per_second == rate
    made.writer.instant("c", "n")
    made.writer.log("line")
    assert rates(made) == [{"record": "initialization", "ticks_per_second": rate}]
    assert [each["timestamp"] for each in made.told()] == times


def test_every_method_takes_its_time_from_the_clock_and_its_thread_from_the_caller() -> None:
    made = tape(clock=Counter24())
    w = made.writer
    w.instant("c", "n")
    w.counter("c", "n", A)
    w.duration_begin("c", "n")
    w.duration_end("c", "n")
    for name in (
        "async_begin",
        "async_instant",
        "async_end",
        "flow_begin",
        "flow_step",
        "flow_end",
    ):
        getattr(w, name)("c", "n", 1)
    w.context_switch(cpu=0, outgoing_tid=1, incoming_tid=2)
    w.wakeup(cpu=0, tid=1)
    w.log("line")
    w.large_blob("c", "n", b"")
    found = made.told()
    assert [each["timestamp"] for each in found] == [24 * n for n in range(1, len(found) + 1)]
    here = [os.getpid(), threading.get_native_id()]
    assert {tuple(each["thread"]) for each in found if "thread" in each} == {tuple(here)}


def test_without_a_clock_time_is_that_of_the_host() -> None:
    made = tape()
    before = time.monotonic_ns()
    made.writer.instant("c", "n")
    after = time.monotonic_ns()
    assert rates(made)[0]["ticks_per_second"] == 1_000_000_000
    assert before <= made.told()[0]["timestamp"] <= after


def test_with_a_rate_alone_every_call_needs_its_time() -> None:
    made = tape(ticks_per_second=1000)
    before = made.data()
    calls: list[Callable[[], Any]] = [
        lambda: made.writer.instant("c", "n"),
        lambda: made.writer.log("line"),
        lambda: made.writer.wakeup(cpu=0, tid=1),
        lambda: made.writer.large_blob("c", "n", b""),
        lambda: made.writer.slice("c", "n").__enter__(),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="clock") as told:
            call()
        assert told.value.remedy
    assert made.data() == before
    assert made.writer.instant("c", "n", timestamp=5)
    with fxf.open(made.data()) as capture:
        assert capture.table("instants")["ts"].tolist() == [5_000_000]


def test_a_given_rate_stands_over_the_clocks() -> None:
    made = tape(clock=Counter24(), ticks_per_second=1000)
    assert rates(made)[0]["ticks_per_second"] == 1000


def test_a_base_begins_time_there() -> None:
    wall = 1_700_000_000_000_000_000
    made = tape(ticks_per_second=1_000_000, base_tick=500, base_wall_ns=wall)
    made.writer.instant("c", "n", thread=ME, timestamp=507)
    assert rates(made) == [
        {
            "record": "initialization", "ticks_per_second": 1_000_000, "base_tick": 500,
            "base_wall_ns": wall,
        }
    ]  # fmt: skip
    with fxf.open(made.data()) as capture:
        assert capture.table("instants")["ts"].tolist() == [7000]


@cases(
    ("options", "code"),
    [
        ({"base_tick": 5}, "FXT0402"),
        ({"base_wall_ns": 5}, "FXT0402"),
        ({"ticks_per_second": 0}, "FXT0404"),
        ({"ticks_per_second": -1}, "FXT0404"),
        ({"ticks_per_second": 1 << 64}, "FXT0404"),
        ({"ticks_per_second": 1.5}, "FXT0403"),
        ({"base_tick": -1, "base_wall_ns": 5}, "FXT0404"),
    ],
)
def test_rates_and_bases_that_cannot_be(options: Any, code: str) -> None:
    file = io.BytesIO()
    archive = Archive(file)
    with pytest.raises(WriteRefusedError) as refused:
        archive.provider(1, "app", **options)
    assert refused.value.code == code
    archive.provider(1, "app")  # its id was not taken
    archive.close()
    assert worst(file.getvalue()) == []


def test_a_rate_may_change() -> None:
    made = tape(ticks_per_second=1000)
    made.writer.instant("c", "n", timestamp=5)
    assert made.writer.write(r.Initialization(ticks_per_second=1_000_000))
    assert made.writer.ticks_per_second == 1_000_000
    made.writer.instant("c", "n", timestamp=5000)
    with fxf.open(made.data()) as capture:
        assert capture.table("instants")["ts"].tolist() == [5_000_000, 5_000_000]


# --- Slices and threads ------------------------------------------------------------------------


def test_slices_nest_and_end_behind_an_exception() -> None:
    made = tape(clock=Counter24())
    with contextlib.suppress(KeyError), made.writer.slice("c", "outer", {"n": 1}):
        with made.writer.slice("c", "inner"):
            pass
        with contextlib.suppress(ValueError), made.writer.slice("c", "failing"):
            raise ValueError
        raise KeyError
    with fxf.open(made.data()) as capture:
        slices = capture.table("slices")
        rows = zip(
            slices.texts("name"), slices["depth"].tolist(), slices["dur"].tolist(), strict=True
        )
        assert sorted(rows) == [("failing", 1, 1000), ("inner", 1, 1000), ("outer", 0, 5000)]
        assert capture.table("args").texts("name") == ["n"]
    assert worst(made.data()) == []


def test_a_slice_ends_on_the_thread_where_it_began() -> None:
    made = tape()
    piece = made.writer.slice("c", "n")
    piece.__enter__()
    other = threading.Thread(target=piece.__exit__, args=(None, None, None))
    other.start()
    other.join()
    begin, end = made.told()
    assert begin["thread"] == end["thread"] == [os.getpid(), threading.get_native_id()]


def test_a_slice_may_be_that_of_another_thread() -> None:
    made = tape()
    with made.writer.slice("c", "n", thread=ME):
        pass
    assert [each["thread"] for each in made.told()] == [[7, 8]] * 2


@cases("providers", [1, 3])
@cases("policy", ["allocate", "reuse", "inline"])
def test_threads_that_write_at_once_lose_nothing(policy: Any, providers: int) -> None:
    count, each_has = 6, 100
    file = io.BytesIO()
    archive = Archive(file)
    writers = [
        limited(archive.provider(n, f"p{n}", strings=policy, threads=policy), (5, 2))
        for n in range(providers)
    ]
    gate = threading.Barrier(count)

    def work(number: int) -> None:
        writer = writers[number % len(writers)]
        gate.wait()
        for step in range(each_has):
            name = f"{number} {step}"
            with writer.slice(
                f"c{step % 7}", name, {"step": step, "text": name}, thread=(1, number)
            ):
                writer.log(name, thread=(1, number))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    archive.close()
    assert worst(file.getvalue()) == []
    steps: dict[int, list[str]] = {number: [] for number in range(count)}
    for provider, shown in by_provider(file.getvalue()):
        number = shown["thread"][1]
        assert provider == number % len(writers)
        steps[number].append(shown.get("message") or f"{shown['event'][9:]} {shown['name']}")
        if shown.get("args"):
            text = steps[number][-1].removeprefix("begin ")
            assert shown["args"] == [
                arg("step", "int32", int(text.split()[1])), arg("text", "string", text),
            ]  # fmt: skip
    for number, found in steps.items():
        assert found == [
            line
            for step in range(each_has)
            for name in [f"{number} {step}"]
            for line in (f"begin {name}", name, f"end {name}")
        ]


# --- For Perfetto ------------------------------------------------------------------------------


def types(data: bytes) -> Counter[int]:
    """How often each type of record comes."""
    with fxf.open(data, format="trace") as capture:
        return Counter(
            int.from_bytes(data[record.offset : record.offset + 8], "little") & 15
            for record in capture.records()
        )


@cases("policy", ["allocate", "inline"])
@cases("name", ["data", "n" * 31_000], ids=["short", "long"])
@cases("size", [0, 1, 32_000, 100_000, 1_000_000])
def test_perfetto_safe_writes_no_large_record(size: int, name: str, policy: Any) -> None:
    payload = random.Random(size).randbytes(size)
    made = tape(perfetto_safe=True, strings=policy)
    assert made.writer.large_blob("cat", name, payload, A, **AT)
    assert made.writer.large_blob("cat", name, payload, metadata=False)
    assert made.writer.write(r.LargeBlob(category="", name=name, payload=payload))
    large: dict[str, Any] = {"record": "large", "large_type": 0, "blob_format": 1, "category": ""}
    assert made.writer.write(large | {"name": name, "payload_hex": payload.hex()})
    assert wire.RecordType.LARGE not in types(made.data())
    first, *blobs = made.told()
    assert first == event("instant", 5, SHOWN_A, name=name)
    assert {(each["record"], each["name"], each["blob_type"]) for each in blobs} == {
        ("blob", name, 1)
    }
    assert bytes.fromhex("".join(each["payload_hex"] for each in blobs)) == payload * 4
    assert worst(made.data()) == []


def test_perfetto_safe_refuses_before_it_writes_a_part() -> None:
    made = tape(perfetto_safe=True, strings="inline")
    before = made.data()
    for call in (
        lambda: made.writer.large_blob("c" * 20_000, "n" * 20_000, b"x", **AT),
        lambda: made.writer.large_blob("c", "n", b"x", SIXTEEN, **AT),
        lambda: made.writer.large_blob("c", "n", b"x", timestamp=-1),
    ):
        with pytest.raises(WriteRefusedError):
            call()
    assert made.data() == before


LARGE = bytes(range(256)) * 500


@pytest.fixture
def with_large(tmp_path: Path) -> Path:
    """A trace with large records of either kind."""
    path = tmp_path / "large.fxt"
    with Archive(path) as archive:
        writer = archive.provider(1, "app")
        writer.instant("cat", "name", A, **AT)
        writer.large_blob("cat", "name", LARGE, {"a": "b"}, thread=(7, 9), timestamp=6)
        writer.large_blob("cat", "name", LARGE, metadata=False)
        writer.log("line", **AT)
    return path


def test_convert_makes_a_trace_safe_for_perfetto(with_large: Path, tmp_path: Path) -> None:
    out = tmp_path / "safe.fxt"
    done = run_cli("convert", with_large, out, "-o", "perfetto_safe=yes")
    assert done.exit_code == 0, done.stderr
    assert wire.RecordType.LARGE not in types(out.read_bytes())
    found = told(out.read_bytes())
    events = [each for each in found if each["record"] == "event"]
    assert events == [
        event("instant", 5, SHOWN_A),
        event("instant", 6, [arg("a", "string", "b")], thread=[7, 9]),
    ]
    payloads = [each["payload_hex"] for each in found if each["record"] == "blob"]
    assert bytes.fromhex("".join(payloads)) == LARGE * 2
    assert found[-1]["message"] == "line"
    assert worst(out.read_bytes()) == []


def test_convert_leaves_a_trace_as_it_is(with_large: Path, tmp_path: Path) -> None:
    out = tmp_path / "same.fxt"
    for option in ((), ("-o", "perfetto_safe=no")):
        done = run_cli("convert", with_large, out, "--force", *option)
        assert done.exit_code == 0, done.stderr
        assert out.read_bytes() == with_large.read_bytes()


def test_in_a_buffer_an_index_keeps_its_value() -> None:
    writer = TraceWriter(Shelf(keeps_order=False), begin=False)
    assert writer.register_string(1, "first")
    assert writer.register_string(1, "first")
    assert writer.register_thread(1, 5, 6)
    with pytest.raises(WriteRefusedError) as refused:
        writer.register_string(1, "other")
    assert refused.value.code == "FXT0409"
    with pytest.raises(WriteRefusedError):
        writer.register_thread(1, 5, 7)
