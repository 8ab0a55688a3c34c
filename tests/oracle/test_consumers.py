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
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fxframework as fxf
from fxframework.errors import WriteRefusedError
from fxframework.host import default_host
from fxframework.io.sink import Sink
from fxframework.kit.export import BEFORE_ZERO, LARGE_IDS
from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC, WAKEUP
from fxframework.model.timeline import Line
from fxframework.registry import parse_options

from ..cases import cases
from ..pprof import profile_class
from ..samples import CONFORMANCE, samples
from . import fxt, xray_logs
from .perfetto import LoadedTrace, Perfetto

RUNNING, SUSPENDED, BLOCKED, DYING = 1, 2, 3, 4
ENTER, EXIT = 0, 1
SCOPE_THREAD, SCOPE_GLOBAL = 0, 2
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
    """Threads that are woken, switched to, left and moved to another CPU in one nanosecond."""
    waker = [("waker", "koid", 904)]
    return fxt.MAGIC + b"".join((
        named(90, 901, "a"), named(90, 902, "b"), named(90, 903, "c"), named(90, 904, "d"),
        fxt.context_switch(100, 1, 0, 901, BLOCKED), fxt.context_switch(100, 0, 0, 904, BLOCKED),
        fxt.wakeup(2000, 1, 902), fxt.context_switch(2000, 1, 901, 902, RUNNING),
        fxt.wakeup(2000, 1, 905), fxt.context_switch(2000, 1, 902, 905, BLOCKED),
        fxt.context_switch(2000, 1, 905, 903, BLOCKED),
        fxt.context_switch(2000, 0, 904, 901, SUSPENDED),
        fxt.wakeup(2000, 1, 902), fxt.context_switch(3000, 1, 903, 0, BLOCKED),
        fxt.wakeup(3100, 1, 903, waker), fxt.context_switch(3200, 1, 0, 903, RUNNING),
    ))  # fmt: skip


def odd_switches() -> bytes:
    """A thread runs on after its death, one is woken while it runs, one runs on two CPUs."""
    return in_one_tick() + b"".join((
        fxt.wakeup(3250, 1, 903), fxt.context_switch(3300, 1, 903, 902, DYING),
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
    more = fxt.context_switch(35, 0, 0, 1, 0) + fxt.log(36, (0, 1), "early")
    return fxt.MAGIC + fxt.initialization(10**9, 50, 0, 0) + without_process()[8:] + more


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
    without_process, in_one_tick, odd_switches, backwards, before_zero, of_large_koids,
    xray_fdr_1, xray_basic_2,
)  # fmt: skip


@functools.cache
def all_samples() -> dict[str, tuple[str | None, bytes]]:
    made = {maker.__name__: (None, maker()) for maker in MADE}
    return {**samples(), **made}


def outputs_of(name: str, **options: Any) -> Iterator[tuple[str, Capture, bytes, Counter[str]]]:
    """Of each sample that an exporter takes: its name, itself, the output, and what is dropped."""
    host = default_host()
    done: set[bytes] = set()
    for sample, (format, data) in all_samples().items():
        if data in done:
            continue
        done.add(data)
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
                dropped = Counter(session.close())
            except WriteRefusedError:  # it has tables of these names, and no rows
                continue
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
    "runs": "select count(*) as n from sched_slice join thread using (utid) where tid != 0",
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


def threads_of(capture: Capture, last_scope: int = SCOPE_GLOBAL) -> Counter[str]:
    """Slices, and instants of scopes up to one, by name of their thread."""
    found = Counter[str]()
    for table in ("slices", "instants"):
        if "threads" in capture.schemas and table in capture.schemas:
            threads, rows = capture.table("threads"), capture.table(table)
            names = dict(zip(threads.array("id").tolist(), threads.texts("name"), strict=True))
            scope = rows.array("kind") == ASYNC if table == "slices" else rows.array("scope")
            on_thread = rows.array("thread")[scope <= (last_scope if table == "instants" else 0)]
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


def runs_and_waits(capture: Capture, cpus: int = 1024) -> tuple[int, int]:
    """How often threads run, and wait to run, on CPUs below a number; thread 0 is an idle CPU.

    They wait when they are woken, when they are left and could run on, and where they run on two
    CPUs, because that is not known of one of them.
    """
    sched, threads = capture.table("sched"), capture.table("threads")
    tids = dict(zip(threads.array("id").tolist(), threads.array("tid").tolist(), strict=True))
    columns = ("kind", "cpu", "prev", "next", "prev_state")
    runs = waits = 0
    running: set[int] = set()
    for kind, cpu, left, following, state in sched.tuples(*columns):
        if cpu >= cpus:
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


STATES = """
    select tid, replace(state, 'W', 'R') as state, sum(dur) as n from thread_state
    join thread using (utid) where tid != 0 group by 1, 2"""
"""Perfetto shows that a thread was woken as W in its own importer of this format."""


@cases("sample", ["boot.fxt", "in_one_tick"])
def test_threads_run_and_wait_as_in_the_trace_itself(perfetto: Perfetto, sample: str) -> None:
    _, data = all_samples()[sample]
    states = [perfetto(one).query(STATES) for one in (data, exported(data))]
    assert states[0] == states[1]


def test_wakers_are_those_that_were_recorded(perfetto: Perfetto) -> None:
    data = in_one_tick()
    assert counted(perfetto(exported(data)))["wakers"] == [904]
    wakers = counted(perfetto(exported(data, "json")))["wakers"]
    assert set(wakers) == {904, (1 << 32) - 1}  # ftrace has no line without a thread


def test_a_slice_that_ends_before_it_begins_encloses_nothing(perfetto: Perfetto) -> None:
    rows = perfetto(exported(backwards())).query("select name, dur, depth from slice order by ts")
    assert [tuple(row.values()) for row in rows[:2]] == [("f", 0, 0), ("g", 90, 0)]


def test_a_trace_that_begins_before_0_is_moved(perfetto: Perfetto) -> None:
    data = before_zero()
    trace = perfetto(exported(data))
    assert trace.query("select min(ts) as first from slice") == [{"first": 0}]
    ((_, _, _, dropped),) = (out for out in outputs_of("perfetto") if out[0] == "before_zero")
    assert dropped["the beginning of time: all times are later by 50 ns"] == 1


def test_captures_of_one_timeline_are_moved_together(perfetto: Perfetto, tmp_path: Path) -> None:
    """The second begins before the clock of the first one does."""
    paths = [tmp_path / "a.fxt", tmp_path / "b.fxt"]
    for path, start in zip(paths, (10, 20), strict=True):
        event = fxt.event("duration_complete", start, (7, 8), path.stem, word=start + 10)
        path.write_bytes(fxt.MAGIC + event)
    fxf.convert(paths, tmp_path / "out.pftrace", align={"b.fxt": Line(-50)})
    rows = perfetto(tmp_path / "out.pftrace").query("select name, ts from slice order by ts")
    assert [tuple(row.values()) for row in rows] == [("b", 0), ("a", 40)]


def exported(data: bytes, name: str = "perfetto") -> bytes:
    with default_host().open(data) as capture:
        return output(capture, name)


# --- Chrome JSON ---------------------------------------------------------------------------------


def test_perfetto_counts_the_rows_of_chrome_json(perfetto: Perfetto) -> None:
    for sample, whole, data, dropped in outputs_of("json"):
        if not whole.schemas.keys() & {"slices", "instants", "counters"}:
            continue  # logs and Inspect have a JSON of their own
        found = counted(perfetto(data))
        capture = whole.between(0, None) if dropped[BEFORE_ZERO] else whole
        # Perfetto takes ends before other events of their time: points of flows there have others.
        stats = {"json_display_time_unit", "flow_no_enclosing_slice", "flow_end_without_start"}
        if dropped[BEFORE_ZERO]:
            stats |= {"trace_sorter_negative_timestamp_dropped", "flow_step_without_start"}
        assert found["stats"].keys() <= UNIMPORTANT | stats, sample
        slices = slices_of(capture).total() - dropped["exits without entries"]
        if "sched" in capture.schemas:  # its JSON is that of traces, with logs as instants
            slices += rows_of(capture, "logs")
            assert found["runs"] == runs_and_waits(capture, 1 << 16)[0], sample
        assert sum(found["slices"].values()) == slices, sample
        assert found["counters"] == rows_of(capture, "counters"), sample
        if not dropped[LARGE_IDS]:
            assert found["threads"] == threads_of(capture, SCOPE_THREAD), sample


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
                    arrow = pa.ipc.open_file(pa.py_buffer(output(capture, "arrow", table=table)))
                    assert arrow.read_all().num_rows == count, (sample, table)
                    lines = csv.reader(io.StringIO(output(capture, "csv", table=table).decode()))
                    assert sum(1 for _ in lines) - 1 == count, (sample, table)


def output(capture: Capture, name: str, **options: Any) -> bytes:
    exporter = default_host().exporter(name, format=capture.format, tables=capture.tables)
    sink = Sink.memory()
    session = exporter.open(sink, parse_options(options, exporter.options, whose=name))
    session.write(capture)
    session.close()
    return sink.getvalue()
