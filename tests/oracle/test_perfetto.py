"""What we read of a trace is what Perfetto reads of it, save for the known differences."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace.exporters import open_json
from fxframework.io.sink import Sink

from . import compare
from .captures import captures
from .perfetto import Perfetto

FILES = Path(__file__).parents[1] / "conformance" / "trace" / "files"
MAGIC_TRACE = FILES / "magic_trace_sample.fxt"
BATCH = 8
"""Generated captures per example: most of the time goes into the exchange."""

JSON_QUERIES = {
    "slices": compare.QUERIES["slices"],
    "counters": """
        select c.ts, c.value, p.pid
        from counter c join process_counter_track ct on ct.id = c.track_id
        join process p using (upid)""",
    "flows": compare.QUERIES["flows"],
    "processes": compare.QUERIES["processes"],
    "threads": compare.QUERIES["threads"],
}

generated = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def ours(trace: bytes) -> compare.View:
    with fxf.open(trace, format="trace") as capture:
        return compare.ours(capture)


def chrome_json(trace: bytes) -> bytes:
    sink = Sink.memory()
    with fxf.open(trace, format="trace") as capture:
        session = open_json(sink, {})
        session.write(capture)
        session.close()
    return sink.getvalue()


def seen(perfetto: Perfetto, trace: bytes) -> dict[str, Counter[Any]]:
    """What a file and the Chrome JSON made of it have in common, as Perfetto shows it.

    Of several names of a process the JSON has the longest, Perfetto the last; so only who has a
    name is compared.
    """
    rows = perfetto(trace).queries(JSON_QUERIES)
    by_id = {row["id"]: row for row in rows["slices"]}
    view: dict[str, Counter[Any]] = {
        "slices": Counter(),
        "paths": Counter(),
        "instants": Counter(),
        "async": Counter(),
        "flows": Counter(),
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
    for row in rows["flows"]:
        ends = (by_id[row["slice_out"]], by_id[row["slice_in"]])
        view["flows"][tuple((end["ts"], end["name"]) for end in ends)] += 1
    view["counters"] = Counter((r["pid"], r["ts"], float(r["value"])) for r in rows["counters"])
    view["processes"] = Counter(row["pid"] for row in rows["processes"])
    view["threads"] = Counter(row["tid"] for row in rows["threads"])
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
    for trace in traces:
        theirs = seen(perfetto, trace)
        if any(theirs.values()):
            assert compare.differences(theirs, seen(perfetto, chrome_json(trace))) == {}
