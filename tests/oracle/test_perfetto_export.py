"""FXT made into a Perfetto trace loads in Perfetto as the FXT itself does."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections import Counter
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, settings

import fxframework as fxf
from fx_log import LogWriter
from fx_trace.write.archive import Archive
from fxframework.exporters.perfetto.export import PerfettoExport
from fxframework.io.sink import Sink
from fxframework.model.schema import ARG_TYPES
from fxframework.testing.cli import run_cli

from ..cases import cases
from ..properties import share
from . import compare, fxt
from .captures import captures
from .perfetto import Perfetto, assert_verdict

CONFORMANCE = Path(__file__).parents[1] / "conformance"
FILES = CONFORMANCE / "trace" / "files"
XRAY = sorted((CONFORMANCE / "xray").rglob("*.xray"))
BAD = "select name, value from stats where value != 0 and severity in ('error', 'data_loss')"
ADDED = "legacy_event.passthrough_utid"
"""An argument that Perfetto itself adds to slices on tracks of a process."""
APART = {
    "wakeups",  # from FXT they are of the state W, from others of the state R
    "flows",  # of three points out of the order of their slices, Perfetto joins others
}
"""What generated captures show differently; the magic trace and the scenario compare flows."""


def exported(*inputs: bytes | Path, format: str | None = None) -> bytes:
    sink = Sink.memory()
    session = PerfettoExport(sink, {})
    for each in inputs:
        with fxf.open(each, format=format) as capture:
            session.write(capture)
    session.close()
    return sink.getvalue()


def seen(perfetto: Perfetto, trace: bytes, blobs: AbstractSet[str]) -> compare.View:
    """What Perfetto shows, with the differences that are meant taken out.

    Arguments of track events are called ``debug.NAME``, with underscores for dots; a blob has its
    bytes and not the text ``unknown``; unsigned numbers are shown as such; a thread switched
    out in a state that Fuchsia does not define is runnable, and one that runs after its death was
    blocked; CPUs that idle may run a thread 0.
    """
    view = compare.theirs(perfetto(trace))
    for name in ("slices", "async"):
        view[name] = Counter(
            {(*key[:-1], _args(key[-1], blobs)): count for key, count in view[name].items()}
        )
    sched = Counter[Any]()
    last = {tid: ts for _, ts, _, tid, *_ in sorted(view["sched"], key=lambda run: run[1])}
    for (*key, state), count in view["sched"].items():
        if key[3]:
            went_on = state in {"Z", "X"} and key[1] < last[key[3]]
            sched[*key, "S" if went_on else state or "R"] += count
    view["sched"] = sched
    view["threads"].pop((0, "swapper"), None)
    return view


def _args(args: Any, blobs: AbstractSet[str]) -> Any:
    names = (
        (key.removeprefix("debug.").replace(".", "_"), {"uint": "int"}.get(kind, kind), value)
        for key, kind, value in args
        if key.removeprefix("debug.") not in blobs and key != ADDED
    )
    return tuple(sorted(names, key=repr))


def blobs_of(trace: bytes) -> set[str]:
    """Names of arguments that are blobs somewhere."""
    with fxf.open(trace, format="trace") as capture:
        args = capture.table("args")
        kinds = args.array("type").tolist()
        return {
            form
            for name, kind in zip(args.texts("name"), kinds, strict=True)
            if ARG_TYPES.get(kind) == "blob"
            for form in (str(name), str(name).replace(".", "_"))
        }


def same(perfetto: Perfetto, trace: bytes) -> None:
    blobs = blobs_of(trace)
    direct, ours = (
        seen(perfetto, each, blobs) for each in (trace, exported(trace, format="trace"))
    )
    for name, rows in direct.items():
        if name not in APART:
            assert ours[name] == rows, name


def test_the_magic_trace_is_the_same(perfetto: Perfetto) -> None:
    same(perfetto, (FILES / "magic_trace_sample.fxt").read_bytes())


@settings(share(1 / 2), phases=[Phase.explicit, Phase.generate])
@given(captures())
def test_generated_captures_are_the_same(perfetto: Perfetto, trace: bytes) -> None:
    same(perfetto, trace)


DAMAGED = json.loads(Path(__file__).with_name("damaged_captures.json").read_text(encoding="utf-8"))
"""Traces of ``captures``, damaged: zlib in base64. ``says`` has Perfetto's counters, or its error;
``differs`` what it shows otherwise of the converted trace."""
TIDS = "mismatched_sched_switch_tids"
"""Perfetto's counter of switches of which one is missing, as they are in the trace."""


@cases("number", range(len(DAMAGED)))
def test_damaged_captures_differ_by_what_perfetto_loses(perfetto: Perfetto, number: int) -> None:
    """Converted, a damaged trace loads without a complaint, and shows the same but for its damage.

    Perfetto reads other things of damage than we do: `differs` says where the two show it.
    """
    expected = DAMAGED[number]
    trace = zlib.decompress(base64.b64decode(expected["trace"]))
    converted = exported(trace, format="trace")
    assert {row["name"] for row in perfetto(converted).query(BAD)} <= {TIDS}
    assert_verdict(perfetto(trace), expected["says"])
    if isinstance(expected["says"], str):
        return
    blobs = blobs_of(trace)
    direct, ours = (seen(perfetto, each, blobs) for each in (trace, converted))
    differs = {name for name in direct if direct[name] != ours[name]} - APART
    assert differs <= set(expected["differs"])


def test_switches_on_far_cpus_do_not_cost_the_file(perfetto: Perfetto) -> None:
    """Perfetto refuses all of a trace with one of them, as a damaged record may be."""
    switches = [fxt.context_switch(7 + n, cpu, 99, 12, 1) for n, cpu in enumerate((1023, 1024, 9))]
    wakeup = fxt.wakeup(20, 65535, 12)
    trace = perfetto(exported(fxt.MAGIC + b"".join(switches) + wakeup, format="trace"))
    assert trace.query(BAD) == []
    cpus = trace.query("select distinct cpu from sched where utid != 0 order by cpu")
    assert [row["cpu"] for row in cpus] == [9, 1023]


# --- One system in four captures -----------------------------------------------------------------

CHECKOUT = Path(__file__).parents[2] / "examples" / "scenarios" / "checkout.toml"
WHERE = """
    select s.name, t.name as thread, p.name as process from slice s
    join thread_track on s.track_id = thread_track.id
    join thread t using (utid) left join process p using (upid)"""


def test_the_checkout_is_one_timeline(perfetto: Perfetto, tmp_path: Path) -> None:
    done = run_cli("replay", CHECKOUT, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.text
    trace = perfetto(tmp_path / "out" / "checkout.pftrace")
    assert trace.query(BAD) == []
    found = {(row["name"], row["thread"], row["process"]) for row in trace.query(WHERE)}
    assert {
        ("order", "orders", "frontend"),
        ("charge", "worker", "payment"),
        ("wait for a connection", "worker", "payment"),
        ("query", "connection", "database"),
        ("backup", "backup", "database"),
    } <= found
    # Calls of XRay are on a thread of the same process, with arguments and places in the source.
    assert ("price_cart", "frontend") in {(name, process) for name, _, process in found}
    args = {row["key"] for row in trace.query("select distinct key from args")}
    assert {"source.file_name", "source.line_number", "debug.order"} <= args
    logs = trace.query("select tag, prio, msg from android_logs order by ts")
    assert [(row["tag"], row["prio"]) for row in logs] == [
        ("frontend", 4), ("database", 5), ("frontend", 6), ("database", 4),
    ]  # fmt: skip
    # The log of the failure is within the order that failed.
    within = trace.query(
        "select s.dur from android_logs l join slice s on l.ts between s.ts and s.ts + s.dur "
        "where l.prio = 6 and s.name = 'order'"
    )
    assert [row["dur"] > 2_500_000 for row in within] == [True]
    steps = trace.query(
        "select a.name as out, b.name as into_ from flow f join slice a on a.id = f.slice_out "
        "join slice b on b.id = f.slice_in"
    )
    assert Counter((row["out"], row["into_"]) for row in steps) == {
        ("order", "charge"): 6,
        ("charge", "query"): 5,
    }
    counters = {row["name"] for row in trace.query("select distinct name from counter_track")}
    assert {"orders:done:0", "connections:free:0", "root/orders:paid"} <= counters
    assert trace.query("select count(distinct cpu) as n from sched where utid != 0")[0]["n"] == 3


def test_a_thread_that_only_runs_is_that_of_the_process_that_another_capture_names(
    perfetto: Perfetto, tmp_path: Path
) -> None:
    trace, log = tmp_path / "a.fxt", tmp_path / "a.fxlog"
    with Archive(trace) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        app.context_switch(cpu=0, outgoing_tid=0, incoming_tid=101, ticks=1000)
        app.context_switch(cpu=0, outgoing_tid=101, incoming_tid=102, ticks=2000)
        app.context_switch(cpu=0, outgoing_tid=102, incoming_tid=103, ticks=3000)
    with LogWriter(log) as logs:
        logs.write("info", "here", time=1500, pid=100, tid=101)
        logs.write("info", "there", time=2500, pid=200, tid=102)
    for inputs in ([trace, log], [log, trace]):
        loaded = perfetto(exported(*inputs))
        ran = loaded.query(
            "select tid, pid from sched join thread using (utid) left join process using (upid) "
            "where tid order by ts"
        )
        assert [tuple(row.values()) for row in ran] == [(101, 100), (102, 200), (103, None)]
        wrote = loaded.query(
            "select tid, msg from android_logs join thread using (utid) order by 1"
        )
        assert [tuple(row.values()) for row in wrote] == [(101, "here"), (102, "there")]
        assert loaded.query(BAD) == []


def test_unknown_threads_are_not_one(perfetto: Perfetto, tmp_path: Path) -> None:
    """Threads of references that nobody registered, as rings leave them, all have the tid 0."""
    words = [0x0016547846040010]
    for kind, index, time in ((2, 5, 10), (2, 6, 20), (3, 5, 30), (3, 6, 40)):  # begins, ends
        words += [4 | 2 << 4 | kind << 16 | index << 24, time]
    data = struct.pack(f"<{len(words)}Q", *words)
    fxf.convert(data, tmp_path / "trace.json")
    fxf.convert([data, data], tmp_path / "trace.pftrace")
    for name, count in (("trace.json", 2), ("trace.pftrace", 4)):
        found = perfetto(tmp_path / name).query("select dur from slice")
        assert [row["dur"] for row in found] == [20] * count


def test_severities_have_the_priorities_of_their_levels(perfetto: Perfetto, tmp_path: Path) -> None:
    severities = (0, 0x10, 0x11, 0x2F, 0x30, 0x31, 0x50, 0x60, 0xFF)
    data = b"".join(
        struct.pack("<QQ", 0x29 | severity << 56, number)
        for number, severity in enumerate(severities)
    )
    out = tmp_path / "a.pftrace"
    fxf.convert(data, out, format="log")
    found = perfetto(out).query("select prio from android_logs order by ts")
    assert [row["prio"] for row in found] == [2, 2, 3, 4, 4, 5, 6, 7, 7]


def test_ids_that_do_not_fit_are_in_the_report_and_on_their_tracks(
    perfetto: Perfetto, tmp_path: Path
) -> None:
    pid, tid = (1 << 63) + 5, (1 << 40) + 7
    trace, out = tmp_path / "a.fxt", tmp_path / "a.pftrace"
    with Archive(trace) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        app.process(pid, "app")
        thread = app.thread(pid, tid, "main")
        app.duration_complete("a", "b", 10, 20, thread=thread)
    done = run_cli("convert", trace, out, "--json")
    renumbered = {int(id): own for id, own in done.json()["renumbered"].items()}
    assert sorted(renumbered.values()) == [tid, pid]
    found = perfetto(out).query(
        "select pid, tid from slice join thread_track t on t.id = track_id "
        "join thread using (utid) join process using (upid)"
    )
    assert [(renumbered[row["pid"]], renumbered[row["tid"]]) for row in found] == [(pid, tid)]
    described = perfetto(out).query(
        "select extract_arg(source_arg_set_id, 'description') as text from track order by text"
    )
    assert f"id {pid}" in {row["text"] for row in described}
