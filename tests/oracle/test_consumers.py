"""What the tools that read our outputs count is what we say was written.

Every sample, of each kind of rows that it has, through the exporters: a test for each tool. What a
session counts as dropped is what may be missing.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fxframework.errors import WriteRefusedError
from fxframework.host import default_host
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC, WAKEUP
from fxframework.registry import parse_options

from ..pprof import profile_class
from ..samples import CONFORMANCE, samples
from . import fxt, xray_logs
from .perfetto import LoadedTrace, Perfetto

BLOCKED, DYING = 3, 4
ENTER, EXIT = 0, 1
LARGE = 1 << 63
"""Added to the koids of virtual threads."""


def named(pid: int, tid: int, name: str) -> bytes:
    return fxt.kernel_object(2, tid, name, [("process", "koid", pid)])


def without_process() -> bytes:
    """Threads whose process nobody recorded, one of them with the tid 0, and their events."""
    data = fxt.MAGIC + fxt.kernel_object(1, 0, "kernel") + named(0, 1, "one") + named(0, 0, "zero")
    data += named(7, 9, "nine")
    for number, who in enumerate(((0, 1), (0, 0), (7, 9))):
        at = 100 * number
        value = [("v", "int32", number)]
        data += fxt.event("duration_begin", at, who, "outer", [("a", "string", "b")])
        data += fxt.event("flow_begin" if not number else "flow_step", at + 1, who, "f", word=3)
        data += fxt.event("duration_complete", at + 2, who, "inner", word=at + 9)
        data += fxt.event("instant", at + 5, who, "i")
        data += fxt.event("counter", at + 6, who, "c", value, word=1)
        data += fxt.event("async_begin", at, who, "op", word=5 + number)
        data += fxt.event("async_end", at + 4, who, "op", word=5 + number)
        data += fxt.event("duration_end", at + 20, who, "outer")
    return data


def in_one_tick() -> bytes:
    """Threads that are woken, switched to, left and moved to another CPU in one nanosecond.

    Later a thread runs after its death, one runs on two CPUs, and a CPU is too far for Perfetto.
    """
    waker = [("waker", "koid", 904)]
    return fxt.MAGIC + b"".join((
        named(90, 901, "a"), named(90, 902, "b"), named(90, 903, "c"), named(90, 904, "d"),
        fxt.context_switch(100, 1, 0, 901, BLOCKED), fxt.context_switch(100, 0, 0, 904, BLOCKED),
        fxt.wakeup(2000, 1, 902), fxt.context_switch(2000, 1, 901, 902, 0),
        fxt.context_switch(2000, 1, 902, 903, BLOCKED), fxt.context_switch(2000, 0, 904, 901, 0),
        fxt.wakeup(2000, 1, 902), fxt.wakeup(2500, 0, 903),
        fxt.context_switch(3000, 1, 903, 0, BLOCKED), fxt.wakeup(3100, 1, 903, waker),
        fxt.context_switch(3200, 1, 0, 903, 0), fxt.context_switch(3300, 1, 903, 902, DYING),
        fxt.context_switch(3400, 1, 902, 903, BLOCKED), fxt.context_switch(4000, 0, 901, 902, 0),
        fxt.context_switch(4100, 1024, 0, 901, 0), fxt.context_switch(4200, 1, 903, 902, 0),
    ))  # fmt: skip


def backwards() -> bytes:
    me = (10, 11)
    return (
        fxt.MAGIC
        + fxt.event("duration_complete", 300, me, "f", word=291)
        + fxt.event("duration_complete", 310, me, "g", word=400)
        + fxt.event("duration_begin", 320, me, "never closed")
    )


def before_zero() -> bytes:
    """A base tick after the first events, and all kinds of rows."""
    wakeups = fxt.context_switch(3500, 0, 0, 1, 0) + fxt.log(3600, (0, 1), "early")
    return fxt.MAGIC + fxt.initialization(10**9, 5000, 0, 0) + without_process()[8:] + wakeups


def of_large_koids() -> bytes:
    data = fxt.MAGIC
    for number in range(3):
        who = (LARGE + 1, LARGE + 2 + number)
        data += named(*who, f"virtual {number}")
        data += fxt.event("duration_complete", 10, who, "s", word=20)
    return data


def xray_fdr_1() -> bytes:
    """Version 1 of the flight data recorder, which knows no processes."""
    head = xray_logs.metadata(0, "i", 7) + xray_logs.metadata(4, "qi", 1, 2)
    calls = ((1, ENTER, 0), (2, ENTER, 9), (2, EXIT, 9), (1, EXIT, 5))
    body = b"".join(xray_logs.function(kind, id, delta) for id, kind, delta in calls)
    buffer = head + xray_logs.metadata(2, "HQ", 1, 1000) + body
    return xray_logs.laid_out(1, 10**9, [buffer])


def xray_basic_2() -> bytes:
    """Version 2 of basic mode, which knows no processes."""
    records = ((1, ENTER, 1000), (2, ENTER, 1010), (2, EXIT, 1020), (1, EXIT, 1030))
    return xray_logs.header(2, 0, 10**9) + b"".join(
        struct.pack("<HBBiQIIQ", 0, 1, kind, id, tsc, 7, 0, 0) for id, kind, tsc in records
    )


MADE = (
    without_process, in_one_tick, backwards, before_zero, of_large_koids, xray_fdr_1, xray_basic_2,
)  # fmt: skip


@functools.cache
def all_samples() -> dict[str, tuple[str | None, bytes]]:
    made = {maker.__name__: (None, maker()) for maker in MADE}
    return {**samples(), **made}


def outputs_of(name: str, **options: Any) -> Iterator[tuple[str, Capture, bytes, Counter[str]]]:
    """Of each sample that an exporter takes: its name, itself, the output, and what is dropped."""
    host = default_host()
    for sample, (format, data) in all_samples().items():
        with host.open(data, format=format) as capture:
            known = {
                exporter.name for exporter in host.exporters_for(capture.format, capture.tables)
            }
            if name not in known:
                continue
            exporter = host.exporter(name, format=capture.format, tables=capture.tables)
            sink = Sink.memory()
            session = exporter.open(sink, parse_options(options, exporter.options, whose=name))
            try:
                session.write(capture)
            except WriteRefusedError:  # it has tables of these names, and no rows
                continue
            dropped = Counter(session.close())
            yield sample, capture, sink.getvalue(), dropped


def rows_of(capture: Capture, name: str) -> int:
    return capture.row_counts().get(name, 0)


def texts_of(capture: Capture, name: str, column: str) -> list[str]:
    if name not in capture.schemas:
        return []
    return [str(text or "") for text in capture.table(name).texts(column)]


# --- Perfetto ------------------------------------------------------------------------------------

UNIMPORTANT = {"guess_trace_type_duration_ns", "parse_trace_duration_ns", "clock_sync_cache_miss"}
"""Perfetto's figures about itself."""
STATS = "select name, sum(value) as n from stats where value != 0 group by name"
PERFETTO = {
    "stats": STATS,
    "slices": "select name, dur, count(*) as n from slice group by 1, 2",
    "counters": "select count(*) as n from counter",
    "flows": "select count(*) as n from flow",
    "logs": "select count(*) as n from android_logs",
    "runs": "select count(*) as n from sched_slice where utid != 0",
    "waits": "select count(*) as n from thread_state where state = 'R' and utid != 0",
    "wakers": "select tid from thread_state s join thread t on t.utid = s.waker_utid",
    "threads": """
        select t.name, count(*) as n from slice s join thread_track tt on tt.id = s.track_id
        join thread t using (utid) where t.name is not null group by t.name""",
}


def counted(trace: LoadedTrace) -> dict[str, Any]:
    """What Perfetto counts in a trace."""
    rows = trace.queries(PERFETTO)
    found: dict[str, Any] = {
        name: rows[name][0]["n"] for name in ("counters", "flows", "logs", "runs", "waits")
    }
    found["slices"] = {(row["name"] or "", row["dur"]): row["n"] for row in rows["slices"]}
    found["threads"] = {row["name"]: row["n"] for row in rows["threads"]}
    found["wakers"] = sorted(row["tid"] for row in rows["wakers"])
    found["stats"] = {row["name"]: row["n"] for row in rows["stats"]}
    return found


def slices_of(capture: Capture) -> Counter[tuple[str, int]]:
    """Names and lengths of slices and instants, which are slices to Perfetto."""
    instants = texts_of(capture, "instants", "name")
    found = Counter((name, 0) for name in instants)
    if "slices" in capture.schemas:
        lengths = capture.table("slices").array("dur").tolist()
        found.update(zip(texts_of(capture, "slices", "name"), lengths, strict=True))
    return found


def threads_of(capture: Capture) -> Counter[str]:
    """Slices and instants by name of their thread."""
    found = Counter[str]()
    for table, kind, asynchronous in (("slices", "kind", ASYNC), ("instants", "scope", 255)):
        if "threads" in capture.schemas and table in capture.schemas:
            threads, rows = capture.table("threads"), capture.table(table)
            names = dict(zip(threads.array("id").tolist(), threads.texts("name"), strict=True))
            on_thread = rows.array("thread")[rows.array(kind) != asynchronous]
            found.update(str(names[id]) for id in on_thread.tolist() if names.get(id))
    return found


def arrows_of(capture: Capture) -> int:
    """Arrows between the slices of each flow: one less than it has points on slices."""
    if "flows" not in capture.schemas:
        return 0
    flows = capture.table("flows")
    on_slice = flows.array("slice") >= 0
    ids = flows.array("id")[on_slice]
    return int(ids.size - np.unique(ids).size)


def numbers_of(capture: Capture) -> int:
    """Values of counters, and numeric properties, which become counters."""
    properties = 0
    if "properties" in capture.schemas:
        properties = int(np.count_nonzero(capture.table("properties").array("type") <= 3))
    return rows_of(capture, "counters") + properties


def test_perfetto_counts_the_rows_of_a_perfetto_trace(perfetto: Perfetto) -> None:
    seen = set()
    for sample, capture, data, dropped in outputs_of("perfetto"):
        found = counted(perfetto(data))
        seen |= {name for name, value in found.items() if value}
        assert found["stats"].keys() <= UNIMPORTANT, sample
        assert found["slices"] == slices_of(capture), sample
        assert found["threads"] == threads_of(capture), sample
        assert found["counters"] == numbers_of(capture), sample
        assert found["flows"] == arrows_of(capture), sample
        assert found["logs"] == rows_of(capture, "logs"), sample
        if "sched" in capture.schemas:
            runs, waits = runs_and_waits(capture)
            assert found["runs"] == runs, sample
            waits -= sum(count for what, count in dropped.items() if what.startswith("wakeups"))
            assert found["waits"] == waits, sample
    assert seen >= {"slices", "counters", "flows", "logs", "runs", "waits", "threads", "wakers"}


def runs_and_waits(capture: Capture) -> tuple[int, int]:
    """How often threads run, and wait to run, on CPUs below 1024; thread 0 is an idle CPU.

    They wait when they are woken, when they are left and could run on, and where they run on two
    CPUs, because that is not known of one of them.
    """
    sched, threads = capture.table("sched"), capture.table("threads")
    tids = dict(zip(threads.array("id").tolist(), threads.array("tid").tolist(), strict=True))
    columns = ("kind", "cpu", "prev", "next", "prev_state")
    runs = waits = 0
    running: set[int] = set()
    for kind, cpu, left, following, state in sched.tuples(*columns):
        if cpu >= 1024:
            continue
        if kind == WAKEUP:
            waits += 1
            continue
        waits += bool(tids.get(left)) and state not in {2, 3, 4, 5}
        running.discard(left)
        if tids.get(following):
            runs += 1
            waits += following in running
            running.add(following)
    return runs, waits


# --- Chrome JSON ---------------------------------------------------------------------------------


def test_perfetto_counts_the_rows_of_chrome_json(perfetto: Perfetto) -> None:
    for sample, capture, data, dropped in outputs_of("json"):
        if not capture.schemas.keys() & {"slices", "instants", "counters"}:
            continue  # logs and Inspect, as JSON of their own
        found = counted(perfetto(data))
        print(sample, dropped, {k: v for k, v in found["stats"].items() if k not in UNIMPORTANT})
        print(
            "  ",
            sum(found["slices"].values()),
            slices_of(capture).total(),
            found["counters"],
            found["flows"],
            arrows_of(capture),
            found["runs"],
        )
        print("  ", found["threads"], threads_of(capture))


# --- Profiles and spans --------------------------------------------------------------------------


def calls_of(capture: Capture) -> int:
    """Slices of threads."""
    return int(np.count_nonzero(capture.table("slices").array("kind") != ASYNC))


def test_speedscope_has_every_call() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    path = CONFORMANCE / "speedscope" / "file-format-schema.json"
    schema = json.loads(path.read_bytes())
    for sample, capture, data, _ in outputs_of("speedscope"):
        document = json.loads(data)
        jsonschema.validate(document, schema)
        events = Counter(event["type"] for one in document["profiles"] for event in one["events"])
        assert events == {"O": calls_of(capture), "C": calls_of(capture)}, sample


def test_pprof_has_every_call() -> None:
    for sample, capture, data, dropped in outputs_of("pprof"):
        profile = profile_class()()
        profile.ParseFromString(data)
        calls = sum(one.value[0] for one in profile.sample)
        left_out = dropped["lengths of calls that never ended"]
        assert calls == calls_of(capture) - left_out, sample


def test_opentelemetry_has_every_slice_and_log() -> None:
    from .test_otlp_traces import json_format, logs_pb2, proto, trace_pb2  # skips without packages

    for name, kind, table in (
        ("otlp-traces", trace_pb2.TracesData, "slices"),
        ("otlp", logs_pb2.LogsData, "logs"),
    ):
        for sample, capture, data, _ in outputs_of(name):
            message = json_format.ParseDict(proto(json.loads(data)), kind())
            owners = message.resource_spans if table == "slices" else message.resource_logs
            rows = 0
            for owner in owners:
                for scope in owner.scope_spans if table == "slices" else owner.scope_logs:
                    rows += len(scope.spans if table == "slices" else scope.log_records)
            assert rows == rows_of(capture, table), sample


# --- Tables --------------------------------------------------------------------------------------


def test_arrow_and_csv_have_every_row_of_every_table() -> None:
    host = default_host()
    for sample, (format, data) in all_samples().items():
        with host.open(data, format=format) as capture:
            for table, count in capture.row_counts().items():
                if count:
                    arrow = pa.ipc.open_file(pa.py_buffer(output(capture, "arrow", table)))
                    assert arrow.read_all().num_rows == count, (sample, table)
                    lines = csv.reader(io.StringIO(output(capture, "csv", table).decode()))
                    assert sum(1 for _ in lines) - 1 == count, (sample, table)


def output(capture: Capture, name: str, table: str) -> bytes:
    exporter = default_host().exporter(name, format=capture.format, tables=capture.tables)
    sink = Sink.memory()
    session = exporter.open(sink, parse_options({"table": table}, exporter.options, whose=name))
    session.write(capture)
    session.close()
    return sink.getvalue()
