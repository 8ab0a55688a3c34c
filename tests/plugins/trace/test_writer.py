"""The record-at-a-time writer: it writes what it is told, or refuses and writes nothing."""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
import re
import shutil
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace import layout as wire
from fx_trace import records as r
from fx_trace.archive import Archive
from fx_trace.slots import Slots
from fx_trace.values import (
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
from fx_trace.writer import TraceWriter
from fxframework.errors import Severity, UsageError, WriteRefusedError
from fxframework.model.target import Clock, SchedulerListener, TimestampCounter
from fxframework.testing.cli import run_cli

from .streams import fxt_streams
from .test_two_decoders import agree

ROOT = Path(__file__).parents[3]
PLACE = {"offset", "nbytes", "refs"}
STAGE = {"metadata", "initialization", "string", "thread"}
"""Records that say nothing by themselves."""
ME = (7, 8)
SLOW = {"deadline": None, "suppress_health_check": list(hypothesis.HealthCheck)}
MANY = hypothesis.settings(max_examples=150, **SLOW)

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


def worst(data: bytes) -> list[str]:
    """Findings of WARNING or worse."""
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


@pytest.mark.parametrize("policy", ["allocate", "reuse", "inline"])
@pytest.mark.parametrize("big_endian", [False, True], ids=["little", "big"])
@pytest.mark.parametrize("name", METHODS)
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


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("case", VALUES)
def test_an_argument_has_the_type_and_value_it_was_given(case: str, holder: str) -> None:
    value, kind, shown = VALUES[case]
    for policy in ("allocate", "inline"):
        made = tape(strings=policy)
        for _ in range(2):
            HOLDERS[holder](made.writer, {"key": value})
        assert [each["args"] for each in made.told()] == [[arg("key", kind, shown)]] * 2
        assert worst(made.data()) == []


@pytest.mark.parametrize("holder", HOLDERS)
def test_bits_of_doubles_stay(holder: str) -> None:
    made = tape()
    HOLDERS[holder](made.writer, {"key": 1.0})
    HOLDERS[holder](made.writer, {"nan": NAN, "zero": -0.0, "key": NAN})
    nan, zero, known = made.told()[-1]["args"]
    assert nan == arg("nan", "double", "NaN") | {"value_bits": "0xfff8000000000123"}
    assert known["value_bits"] == nan["value_bits"]
    assert math.copysign(1, zero["value"]) == -1


@pytest.mark.parametrize("holder", HOLDERS)
def test_bytes_that_are_not_utf8_stay(holder: str) -> None:
    made = tape()
    odd = b"caf\xe9".decode(errors="surrogateescape")
    for _ in range(2):
        HOLDERS[holder](made.writer, {odd: odd})
    for shown in made.told():
        (found,) = shown["args"]
        assert found["name"] == found["value"] == "caf�"
        assert found["name_bytes_hex"] == found["value_bytes_hex"] == b"caf\xe9".hex()


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("shape", ["list", "iterator", "items", "lists"])
def test_arguments_of_one_name_stay_in_order(holder: str, shape: str) -> None:
    pairs = [("b", 1), ("a", "x"), ("b", 2.5), ("b", None), ("a", "x")]
    make: dict[str, Callable[[], Any]] = {
        "list": lambda: pairs,
        "iterator": lambda: (pair for pair in pairs),
        "items": lambda: tuple(pairs),
        "lists": lambda: [list(pair) for pair in pairs],
    }
    made = tape()
    for _ in range(2):  # an iterator must survive that strings are new, and that they are not
        HOLDERS[holder](made.writer, make[shape]())
    for shown in made.told():
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
            payload = os.urandom(size)
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
people = st.tuples(st.sampled_from([1, 2, 1 << 63]), st.sampled_from([3, 4, 5]))
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
    name, at, who = draw(texts), draw(ticks), draw(people)
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


@MANY
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
    # JSON has 0.0 and -0.0 apart; Python's == has not.
    assert repr(found) == repr([(number, ordered(shown, like)) for (number, shown), (_, like) in
                                itertools.zip_longest(wanted, found, fillvalue=(0, {}))])  # fmt: skip
    assert worst(data) == []
    agree(data)


def ordered(shown: dict[str, Any], like: dict[str, Any]) -> dict[str, Any]:
    """The same with its keys in another's order."""
    assert shown.keys() == like.keys()
    return {key: shown[key] for key in like}


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


@pytest.mark.parametrize("policy", ["allocate", "reuse"])
def test_the_real_limits_of_slots(policy: Any) -> None:
    made = tape(strings=policy, threads=policy)
    count = wire.MAX_STRING_INDEX + 20
    for number in range(count):
        made.writer.instant(f"s{number}", "", thread=(1, number % 300), timestamp=number)
    found = made.told()
    assert [each["category"] for each in found] == [f"s{number}" for number in range(count)]
    assert [each["thread"][1] for each in found] == [number % 300 for number in range(count)]
    assert len(made.writer.strings) == wire.MAX_STRING_INDEX
    assert len(made.writer.threads) == wire.MAX_THREAD_INDEX
    inline = policy == "allocate"
    with fxf.open(made.data()) as capture:
        *_, last = (record.to_json() for record in capture.records())
    assert ("category" not in last.get("refs", {})) is inline
    # What stood there before is known by another index, or inline, not by the one it had.
    made.writer.instant("s0", "s1", timestamp=1)
    assert (made.told()[-1]["category"], made.told()[-1]["name"]) == ("s0", "s1")


SAYS_LESS = {"unknown", "padding", "damaged", "metadata", "initialization", "string", "thread"}


def resolved(shown: dict[str, Any]) -> dict[str, Any]:
    out = without_place(shown)
    out.pop("raw", None)
    return out


@MANY
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
            try:
                assert made.writer.write(given)
            except WriteRefusedError as refused:
                assert made.data() == before
                assert refusable(shown, refused.code), (shown, refused)
            else:
                if shown["record"] not in SAYS_LESS:
                    wanted.append(shown)
    assert made.told() == wanted
    agree(made.data())


def refusable(shown: dict[str, Any], code: str | None) -> bool:
    """Whether a record that was read is one that a writer must not write."""
    if shown["record"] in ("metadata", "padding", "damaged"):
        return code == "FXT0410"
    text = repr(shown)
    return (
        (code == "FXT0408" and ("unknown" in text or re.search(r"'(event|type|large_type|kind|blob_format)': \d", text) is not None))
        or (code == "FXT0403" and "<thr#" in text)
        or (code == "FXT0404" and shown.get("ticks_per_second") == 0)
        or (code == "FXT0408" and "payload_hex" not in shown)
    )  # fmt: skip
