"""What our writer makes loads in Perfetto as what was written, and without a complaint."""

from __future__ import annotations

import io
import math
import random
from collections.abc import Callable
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace.write.archive import Archive, FlightRecorder
from fx_trace.write.slots import Slots
from fx_trace.write.writer import TraceWriter
from fxframework.kit.arguments import Double, Int32, Int64, Koid, Pointer, String, Uint32, Uint64

from ..cases import cases
from ..properties import share
from . import compare, fxt
from .captures import captures
from .perfetto import LoadedTrace, Perfetto, PerfettoError

BATCH = 3
"""Generated captures per example: most of the time goes into the exchange."""
POLICIES = st.sampled_from(["allocate", "reuse", "inline"])
FEW = st.sampled_from([1, 2, 3, 255])
"""Slots, so few that they are used again and again."""
MAIN, OTHER = (100, 101), (100, 102)


def errors(trace: LoadedTrace) -> dict[str, int]:
    """Perfetto's counters of errors and lost data that are above zero."""
    rows = trace.query(
        "select name, sum(value) as n from stats "
        "where value > 0 and severity in ('error', 'data_loss') group by name"
    )
    return {row["name"]: row["n"] for row in rows}


def ours(trace: bytes) -> compare.View:
    with fxf.open(trace, format="trace") as capture:
        return compare.ours(capture)


def agreed(perfetto: Perfetto, trace: bytes) -> compare.View:
    """What Perfetto sees, once it is what we see and it has nothing to complain of."""
    loaded = perfetto(trace)
    theirs = compare.theirs(loaded)
    assert compare.differences(theirs, ours(trace)) == {}
    assert errors(loaded) == {}
    return theirs


def written(story: Callable[[TraceWriter], Any], **options: Any) -> bytes:
    file = io.BytesIO()
    with Archive(file) as archive:
        story(archive.provider(1, "app", **options))
    return file.getvalue()


# --- Everything once ---------------------------------------------------------------------------

VALUES: dict[str, tuple[Any, tuple[str, Any]]] = {
    "null": (None, ("string", "null")),
    "true": (True, ("bool", 1)),
    "false": (False, ("bool", 0)),
    **{
        f"int {number}": (number, ("int", number))
        for number in (
            0, -1, -(1 << 31), (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, -(1 << 31) - 1,
            (1 << 63) - 1, -(1 << 63),
        )
    },
    "uint64": ((1 << 64) - 1, ("int", -1)),
    "Int32": (Int32(-7), ("int", -7)),
    "Uint32": (Uint32(7), ("int", 7)),
    "Int64": (Int64(-7), ("int", -7)),
    "Uint64": (Uint64(1 << 63), ("int", -(1 << 63))),
    "double": (3.1415, ("real", 3.1415)),
    "Double": (Double(3), ("real", 3.0)),
    "huge": (1e308, ("real", 1e308)),
    "infinity": (math.inf, ("real", math.inf)),
    "string": ("pong", ("string", "pong")),
    "non-ASCII": ("héllo ☃ 𝄞", ("string", "héllo ☃ 𝄞")),
    "empty": (String(""), ("string", "")),
    "long": ("x" * 15_000, ("string", "x" * 15_000)),
    "pointer": (Pointer(0x2FD10EA19F4), ("pointer", 0x2FD10EA19F4)),
    "koid": (Koid(18), ("int", 18)),
    "blob": (b"bytes", ("string", "unknown")),
}  # fmt: skip


@cases("policy", ["allocate", "reuse", "inline"])
def test_every_argument_type(perfetto: Perfetto, policy: Any) -> None:
    def story(writer: TraceWriter) -> None:
        for at, (name, (value, _)) in enumerate(VALUES.items()):
            args = {"key": value, f"arg {name}": value}
            writer.duration_complete("cat", name, at, at + 1, args, thread=MAIN)

    trace = written(story, strings=policy, threads=policy)
    found: dict[str, list[Any]] = {name: [] for name in VALUES}
    view = agreed(perfetto, trace)
    for (_, _, _, length, name, category, args), count in view["slices"].items():
        assert (length, category, count) == (1, "cat", 1)
        for key, kind, value in args:
            found[name].append((key, kind, float(value) if kind == "real" else value))
    assert found == {
        name: sorted([(f"arg {name}", *shown), ("key", *shown)], key=repr)
        for name, (_, shown) in VALUES.items()
    }


def everything(writer: TraceWriter) -> None:
    """Every method once or more, in an order in which all of it nests."""
    writer.process(100, "process")
    writer.thread(*MAIN, "main")
    writer.thread(*OTHER, "other")
    writer.kernel_object(19, 55, "fifo")
    writer.userspace_object(100, 0xABC, "view", {"a": 1})
    writer.register_string(77, "registered")
    writer.register_thread(9, *MAIN)
    at = {"thread": MAIN}
    writer.duration_begin("cat", "outer", {"a": 1}, timestamp=10, **at)
    writer.flow_begin("flow", "flow", 1, timestamp=10, **at)
    writer.duration_begin("cat", "registered", timestamp=20, **at)
    writer.duration_end("cat", "registered", {"b": "end"}, timestamp=30, **at)
    writer.counter("cat", "counter", {"x": 1, "y": 2.5}, id=7, timestamp=31, **at)
    writer.counter("cat", "counter", {"x": -(1 << 40)}, id=7, timestamp=32, **at)
    for scope in (None, "thread", "process", "global"):
        writer.instant("cat", f"instant {scope}", {"k": "v"}, scope=scope, timestamp=33, **at)
    writer.log("a line", timestamp=34, **at)
    writer.blob("data", b"x" * 70_000)
    writer.large_blob("cat", "instant large", b"y" * 100, {"k": 1}, timestamp=35, **at)
    writer.large_blob("cat", "large", b"y" * 100, metadata=False)
    writer.duration_end("cat", "outer", timestamp=40, **at)
    writer.async_begin("io", "load", 5, {"n": 1}, timestamp=41, **at)
    writer.async_instant("io", "load", 5, timestamp=42, **at)
    writer.async_end("io", "load", 5, timestamp=43, **at)
    writer.duration_begin("cat", "step", timestamp=50, thread=OTHER)
    writer.flow_step("flow", "flow", 1, timestamp=50, thread=OTHER)
    writer.duration_end("cat", "step", timestamp=55, thread=OTHER)
    writer.duration_begin("cat", "arrival", timestamp=60, **at)
    writer.flow_end("flow", "flow", 1, timestamp=60, **at)
    writer.duration_end("cat", "arrival", timestamp=65, **at)
    writer.duration_complete("cat", "complete", 70, 80, {"k": None}, thread=OTHER)
    writer.wakeup(cpu=1, tid=901, ticks=1, priority=5, args={"waker": Koid(902)})
    writer.context_switch(
        cpu=1, outgoing_tid=0, incoming_tid=901, outgoing_state="running", ticks=2,
        incoming_priority=10, outgoing_priority=3,
    )  # fmt: skip
    writer.context_switch(
        cpu=1, outgoing_tid=901, incoming_tid=902, outgoing_state="blocked", ticks=8,
    )  # fmt: skip


@cases("policy", ["allocate", "reuse", "inline"])
def test_every_method(perfetto: Perfetto, policy: Any) -> None:
    trace = written(
        everything, strings=policy, threads=policy, perfetto_safe=True, ticks_per_second=1_000_000
    )
    view = agreed(perfetto, trace)
    micro = 1000
    slices = {(row[2] // micro, row[3], row[4]) for row in view["slices"]}
    assert slices == {
        (10, 30 * micro, "outer"),
        (20, 10 * micro, "registered"),
        *((33, 0, f"instant {scope}") for scope in (None, "thread", "process", "global")),
        (35, 0, "instant large"),
        (50, 5 * micro, "step"),
        (60, 5 * micro, "arrival"),
        (70, 10 * micro, "complete"),
    }
    assert view["counters"] == {
        (100, "counter:x:7", 31 * micro, 1.0): 1,
        (100, "counter:y:7", 31 * micro, 2.5): 1,
        (100, "counter:x:7", 32 * micro, float(-(1 << 40))): 1,
    }
    assert view["flows"] == {
        ((10 * micro, "outer"), (50 * micro, "step")): 1,
        ((50 * micro, "step"), (60 * micro, "arrival")): 1,
    }
    assert view["sched"] == {
        (1, 2 * micro, 6 * micro, 901, 10, "S"): 1,
        (1, 8 * micro, -1, 902, 0, None): 1,
    }
    assert view["wakeups"] == {(micro, 1, 901): 1}
    assert view["processes"] == {(100, "process"): 1}
    assert view["threads"] == {(101, "main"): 1, (102, "other"): 1}
    assert sum(view["async"].values()) == 2


# --- Large data --------------------------------------------------------------------------------


def much(writer: TraceWriter) -> None:
    """Several MB of large data, with events between."""
    for step in range(40):
        with_metadata = step % 2 == 0
        writer.duration_begin("cat", f"step {step}", thread=MAIN, timestamp=10 * step)
        writer.large_blob(
            "cat", f"instant {step % 3}", random.Random(step).randbytes(200_000), thread=MAIN,
            timestamp=10 * step + 1, metadata=with_metadata,
        )  # fmt: skip
        writer.duration_end("cat", f"step {step}", thread=MAIN, timestamp=10 * step + 5)


@cases("policy", ["allocate", "inline"])
def test_large_data_is_safe_where_it_is_asked_for(perfetto: Perfetto, policy: Any) -> None:
    trace = written(much, perfetto_safe=True, strings=policy)
    assert len(trace) > 8_000_000
    view = agreed(perfetto, trace)
    assert sum(view["slices"].values()) == 40 + 20
    assert {row[3] for row in view["slices"] if row[4].startswith("step")} == {5}


def test_large_data_is_not_safe_by_itself(perfetto: Perfetto) -> None:
    """Else ``perfetto_safe`` would have outlived its reason."""
    loaded = perfetto(written(much))
    try:
        seen = compare.theirs(loaded)
    except PerfettoError:
        return
    assert sum(seen["slices"].values()) < 40 or errors(loaded)


def test_a_flight_recorder(perfetto: Perfetto, tmp_path: Any) -> None:
    recorder = FlightRecorder(20_000)
    writers = [
        recorder.provider(n, f"p{n}", strings="reuse", threads="reuse", ticks_per_second=rate)
        for n, rate in ((1, 1_000_000), (2, 1_000_000_000))
    ]
    for n, writer in enumerate(writers, 1):
        writer.process(100 * n, f"process {n}")
        writer.thread(100 * n, 100 * n + 1, f"thread {n}")
        writer.strings = Slots(4, "reuse")
    for step in range(2000):
        for n, writer in enumerate(writers, 1):
            scale = 1 if n == 1 else 1000
            writer.duration_complete(
                f"cat {step % 3}", f"name {step % 7}", 10 * step * scale, (10 * step + 5) * scale,
                {"step": step}, thread=(100 * n, 100 * n + 1),
            )  # fmt: skip
    recorder.save(tmp_path / "last.fxt")
    view = agreed(perfetto, (tmp_path / "last.fxt").read_bytes())
    assert view["processes"] == {(100, "process 1"): 1, (200, "process 2"): 1}
    assert view["threads"] == {(101, "thread 1"): 1, (201, "thread 2"): 1}
    steps = {n: [] for n in (100, 200)}  # type: ignore[var-annotated]
    for pid, _, _, length, name, category, args in view["slices"]:
        step = {key: value for key, _, value in args}["step"]
        assert (name, category, length) == (f"name {step % 7}", f"cat {step % 3}", 5000)
        steps[pid].append(step)
    for found in steps.values():
        assert len(found) > 50
        assert sorted(found) == list(range(2000 - len(found), 2000))


# --- Generated ---------------------------------------------------------------------------------

SKIPPED = ("unknown", "string", "thread")


def value_of(argument: Any) -> Any:
    """What a program passes to have such an argument."""
    wrap = {
        "int32": Int32, "uint32": Uint32, "int64": Int64, "uint64": Uint64, "double": Double,
        "string": String, "pointer": Pointer, "koid": Koid,
    }.get(argument.type)  # fmt: skip
    return argument.value if wrap is None else wrap(argument.value)


def call(writer: TraceWriter, record: Any) -> None:
    """The call that says what a record says."""
    args = [(each.name, value_of(each)) for each in getattr(record, "args", ())]
    kind = record.record
    if kind == "event":
        method = getattr(writer, record.event)
        more: dict[str, Any] = {"thread": record.thread}
        if record.event == "duration_complete":
            times = record.timestamp, record.end_timestamp
            method(record.category, record.name, *times, args, **more)
            return
        more["timestamp"] = record.timestamp
        if record.event == "counter":
            method(record.category, record.name, args, id=record.counter_id, **more)
        elif record.id is not None:
            method(record.category, record.name, record.id, args, **more)
        elif record.event == "instant":
            method(record.category, record.name, args, scope=record.scope, **more)
        else:
            method(record.category, record.name, args, **more)
    elif kind == "kernel_object":
        writer.kernel_object(record.object_type, record.koid, record.name, args)
    elif kind == "log":
        writer.log(record.message, thread=record.thread, timestamp=record.timestamp)
    elif kind == "blob":
        writer.blob(record.name, record.payload, blob_type=record.blob_type)
    elif kind == "large" and not hasattr(record, "timestamp"):
        writer.large_blob(record.category, record.name, record.payload, metadata=False)
    elif hasattr(record, "waking_tid"):
        writer.wakeup(cpu=record.cpu, tid=record.waking_tid, ticks=record.timestamp, args=args)
    elif hasattr(record, "incoming_tid"):
        writer.context_switch(
            cpu=record.cpu, outgoing_tid=record.outgoing_tid, incoming_tid=record.incoming_tid,
            outgoing_state=record.outgoing_state, ticks=record.timestamp, args=args,
        )  # fmt: skip
    else:
        writer.write(record)


def again(trace: bytes, policy: Any, few: tuple[int, int]) -> bytes:
    """A capture written once more, call by call, provider by provider."""
    file = io.BytesIO()
    writers: dict[int, TraceWriter] = {}
    with fxf.open(trace, format="trace") as capture, Archive(file) as archive:
        speaking = 0
        for record in capture.records():
            shown = getattr(record, "constants", {}).get("kind")
            if shown in ("provider_info", "provider_section"):
                speaking = record.id  # type: ignore[attr-defined]
            elif shown == "provider_event":
                archive.buffer_full(record.id)  # type: ignore[attr-defined]
            elif record.record == "initialization" and speaking not in writers:
                rate = record.ticks_per_second  # type: ignore[attr-defined]
                writer = archive.provider(
                    speaking, f"provider {speaking}", ticks_per_second=rate, strings=policy,
                    threads=policy, perfetto_safe=True,
                )  # fmt: skip
                writer.strings = Slots(few[0], policy)
                writer.threads = Slots(few[1], policy)
                writers[speaking] = writer
            elif record.record != "metadata" and record.record not in SKIPPED:
                call(writers[speaking], record)
    return file.getvalue()


END_FIRST = fxt.MAGIC + fxt.initialization(1_000_000_000)
END_FIRST += fxt.event("async_end", 20, MAIN, "load", [("a", "bool", True)], word=1)
END_FIRST += fxt.event("async_begin", 10, OTHER, "load", [("a", "blob", b"xy")], word=1)
"""An end that stands before its begin, with an argument of the same name."""


@share(1 / 2)
@example([(END_FIRST, "inline", (255, 255))])
@given(st.lists(st.tuples(captures(), POLICIES, st.tuples(FEW, FEW)), min_size=1, max_size=BATCH))
def test_generated_captures_written_again(
    perfetto: Perfetto, made: list[tuple[bytes, Any, tuple[int, int]]]
) -> None:
    """Takes seconds: Perfetto starts afresh for each capture, twice."""
    for trace, policy, few in made:
        loaded = perfetto(again(trace, policy, few))
        seen, complaints = compare.theirs(loaded), errors(loaded)
        assert compare.differences(seen, ours(loaded.path.read_bytes())) == {}
        # Flows are generated that begin twice: a complaint about what is told, not how.
        assert all(name.startswith("flow_") for name in complaints)
        original = perfetto(trace)
        assert compare.differences(seen, compare.theirs(original)) == {}
        assert complaints == errors(original)
