"""What we read of a trace is what Perfetto reads of it, save for the known differences."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace.export.chrome_json import JsonExport
from fxframework.io.sink import Sink

from ..properties import share
from . import compare, fxt
from .captures import captures
from .perfetto import Perfetto

FILES = Path(__file__).parents[1] / "conformance" / "trace" / "files"
MAGIC_TRACE = FILES / "magic_trace_sample.fxt"
BATCH = 4
"""Generated captures per example: most of the time goes into the exchange."""

JSON_QUERIES = {
    "slices": compare.QUERIES["slices"],
    "counters": """
        select c.ts, c.value, p.pid
        from counter c join process_counter_track ct on ct.id = c.track_id
        join process p using (upid)""",
    "processes": compare.QUERIES["processes"],
    "threads": compare.QUERIES["threads"],
    "sched": compare.QUERIES["sched"],
}

generated = settings(
    share(1 / 2),
    phases=[Phase.explicit, Phase.generate],
)


def ours(trace: bytes) -> compare.View:
    with fxf.open(trace, format="trace") as capture:
        return compare.ours(capture)


def chrome_json(trace: bytes) -> bytes:
    sink = Sink.memory()
    with fxf.open(trace, format="trace") as capture:
        session = JsonExport(sink, {})
        session.write(capture)
        session.close()
    return sink.getvalue()


def seen(perfetto: Perfetto, trace: bytes) -> dict[str, Counter[Any]]:
    """What a file and the Chrome JSON made of it have in common, as Perfetto shows it.

    Of several names of a process the JSON has the longest, Perfetto the last; so only who has a
    name is compared. Flows are left out: in Chrome JSON their end does not free their id.
    """
    rows = perfetto(trace).queries(JSON_QUERIES)
    by_id = {row["id"]: row for row in rows["slices"]}
    view: dict[str, Counter[Any]] = {
        "slices": Counter(),
        "paths": Counter(),
        "instants": Counter(),
        "async": Counter(),
        "sched": Counter(),
    }
    for row in rows["slices"]:
        what = (row["ts"], row["dur"], row["name"], row["category"] or "")
        if row["category"] == "log":  # a message, which Perfetto does not read from FXT
            continue
        if row["name"].startswith("instant"):  # of a process, or of all, where its scope says so
            view["instants"][what] += 1
        elif row["type"] == "thread_execution":
            view["slices"][row["pid"], row["tid"], *what] += 1
            view["paths"][compare.path(row, by_id)] += 1
        else:
            view["async"][what] += 1
    # Its parser of JSON numbers rounds now and then in the last place.
    view["counters"] = Counter(
        (row["pid"], row["ts"], f"{float(row['value']):.12g}") for row in rows["counters"]
    )
    view["processes"] = Counter(row["pid"] for row in rows["processes"])
    view["threads"] = Counter(
        row["tid"]
        for row in rows["threads"]
        if row["name"] not in {"swapper", f"Thread\N{NO-BREAK SPACE}{row['tid']}"}
    )
    for row in rows["sched"]:
        if row["tid"]:  # a CPU that idles runs a thread 0 in ftrace alone
            ended = row["end_state"] or "R"
            view["sched"][
                row["cpu"], row["ts"], row["dur"], row["tid"], row["priority"], ended
            ] += 1
    return view


def test_magic_trace(perfetto: Perfetto) -> None:
    """A real capture: all its slices, their nesting, names and arguments."""
    trace = MAGIC_TRACE.read_bytes()
    theirs, mine = compare.theirs(perfetto(trace)), ours(trace)
    assert sum(theirs["slices"].values()) == 17296
    assert compare.differences(theirs, mine) == {}


@generated
@given(st.lists(captures(), min_size=1, max_size=BATCH))
def test_generated_captures(perfetto: Perfetto, traces: list[bytes]) -> None:
    """Takes seconds: Perfetto starts afresh for each, and nobody else says what FXT means."""
    for trace in traces:
        assert compare.differences(compare.theirs(perfetto(trace)), ours(trace)) == {}


def test_magic_trace_as_chrome_json(perfetto: Perfetto) -> None:
    """Exported, it loads without a complaint and shows the same slices."""
    trace = MAGIC_TRACE.read_bytes()
    exported = chrome_json(trace)
    assert compare.differences(seen(perfetto, trace), seen(perfetto, exported)) == {}
    assert perfetto(exported).stats() == {}
    assert perfetto(exported).query(compare.QUERIES["threads"]) == [{"tid": 2, "name": "main"}]
    rows = perfetto(exported).query(
        "select key, count(*) as n from slice join args using (arg_set_id) "
        "where key like 'args.%' group by key order by key"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("args.address", 17296),
        ("args.inferred_start_time", 18),
        ("args.symbol", 17296),
    ]


@generated
@given(st.lists(captures(), min_size=1, max_size=BATCH))
def test_generated_captures_as_chrome_json(perfetto: Perfetto, traces: list[bytes]) -> None:
    """Takes seconds: Perfetto starts afresh for each capture, twice."""
    for trace in traces:
        theirs = seen(perfetto, trace)
        if any(theirs.values()):
            assert compare.differences(theirs, seen(perfetto, chrome_json(trace))) == {}


def test_flows_as_chrome_json(perfetto: Perfetto) -> None:
    """Through three slices on two threads; a zero-length one and a shared edge among them."""
    first, second = (1, 2), (1, 3)

    def flow(kind: str, ticks: int, thread: tuple[int, int]) -> bytes:
        return fxt.event(f"flow_{kind}", ticks, thread, "flow", word=7)

    def complete(name: str, ticks: int, until: int, thread: tuple[int, int]) -> bytes:
        return fxt.event("duration_complete", ticks, thread, name, word=until)

    trace = fxt.MAGIC + b"".join(
        [
            fxt.event("duration_begin", 10, first, "a"),
            flow("begin", 10, first),
            fxt.event("duration_end", 20, first, "a"),
            fxt.event("duration_begin", 20, first, "b"),
            flow("step", 20, first),
            fxt.event("duration_end", 20, first, "b"),
            complete("c", 30, 40, second),
            flow("end", 40, second),
        ]
    )
    arrows = """select a.name as source, b.name as target from flow
        join slice a on a.id = slice_out join slice b on b.id = slice_in order by a.ts"""
    expected = [{"source": "a", "target": "b"}, {"source": "b", "target": "c"}]
    assert perfetto(trace).query(arrows) == expected
    assert perfetto(chrome_json(trace)).query(arrows) == expected
