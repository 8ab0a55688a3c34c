"""A part of a trace is a trace: what was asked for, as it was, with all that it needs."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace import plugin
from fx_trace.format import MAGIC_BYTES
from fx_trace.read import capture as opening
from fx_trace.records import (
    Event,
    ProfilerBacktrace,
    ProviderInfo,
    ProviderSection,
    StringRecord,
    ThreadRecord,
)
from fx_trace.write.archive import Archive
from fx_trace.write.extract import extract
from fx_trace.write.selected import followed
from fxframework.errors import Severity, UsageError
from fxframework.io.sink import Sink
from fxframework.kit.arguments import Koid, Pointer
from fxframework.model.capture import Capture
from fxframework.model.selection import Selection
from fxframework.wire import blocks

from ...cases import cases
from .streams import damaged, fxt_streams

TABLES = ("slices", "instants", "counters", "flows", "sched", "logs")
SUPPORT = {"string", "thread", "metadata", "initialization"}


def part(data: bytes, selection: Selection, **options: Any) -> bytes:
    sink = Sink.memory()
    with fxf.open(data, format="trace") as capture:
        extract(capture, selection, sink, options)
    return sink.getvalue()


def rows(capture: Capture) -> dict[str, list[Any]]:
    """Every row as what it means, without numbers of rows and codes; its arguments beside it."""
    threads = getattr(capture, "whole", capture).table("threads")
    tasks = [*zip(threads["pid"].tolist(), threads["tid"].tolist(), strict=True), None]
    pool = capture.strings
    args: dict[tuple[str, int], list[Any]] = {}
    table = capture.table("args")
    columns = {name: table[name].tolist() for name in table.columns}
    for at in range(len(table)):
        table_name = {2: "slices", 3: "instants", 4: "counters", 5: "flows", 6: "sched"}.get(
            columns["table"][at], ""
        )
        text = columns["str"][at]
        args.setdefault((table_name, columns["parent"][at]), []).append(
            (
                pool.bytes_of(columns["name"][at]),
                columns["type"][at],
                columns["int"][at],
                str(columns["float"][at]),
                None if text < 0 else pool.bytes_of(text),
            )
        )
    out: dict[str, list[Any]] = {}
    for name in TABLES:
        table = capture.table(name)
        wanted = [
            column
            for column in table.schema.all_columns
            if column.name not in {"row", "offset", "depth", "parent", "slice"}
        ]
        values = []
        for column in wanted:
            data = list(table[column.name])
            if column.kind == "code":
                data = [None if code < 0 else pool.bytes_of(code) for code in data]
            elif column.name in {"thread", "prev", "next"}:
                data = [tasks[thread] for thread in data]
            if column.name in {"prev", "next"}:
                # Of which process, `running` says.
                data = [None if who is None else who[1] for who in data]
            values.append([str(x) if isinstance(x, float) else x for x in data])
        numbers = table["row"].tolist()
        out[name] = [
            (*row, tuple(args.get((name, number), ())))
            for number, row in zip(numbers, zip(*values, strict=True), strict=True)
        ]
    return out


def names_of(capture: Capture) -> tuple[dict[int, str | None], dict[int, str | None]]:
    processes, threads = capture.table("processes"), capture.table("threads")
    return (
        dict(zip(processes["pid"].tolist(), processes.texts("name"), strict=True)),
        dict(zip(threads["tid"].tolist(), threads.texts("name"), strict=True)),
    )


def running(capture: Capture, whole: Capture) -> set[tuple[int, int, str, str]]:
    """Who runs: tid, pid, and both names; of tids that ``whole`` knows in one process alone."""
    pids = Counter(tid for (tid,) in whole.table("threads").tuples("tid"))
    everybody = getattr(capture, "whole", capture)
    processes, names = names_of(everybody)
    at = {thread for row in capture.table("sched").tuples("prev", "next") for thread in row}
    return {
        (tid, pid, names[tid] or "", processes.get(pid) or "")
        for number, pid, tid in everybody.table("threads").tuples("id", "pid", "tid")
        if number in at and pids[tid] == 1
    }


def losses(capture: Capture) -> Counter[str]:
    capture.scan()
    found = capture.diagnostics
    return Counter(
        {code: n for code, n in found.counts.items() if found.rule(code).severity > Severity.INFO}
    )


times = st.one_of(st.none(), st.integers(-1, 8), st.sampled_from([1 << 31, 1 << 62, (1 << 63) - 1]))


@st.composite
def stretches(draw: Any) -> Selection:
    start, stop = draw(times), draw(times)
    if start is not None and stop is not None and stop < start:
        start, stop = stop, start
    return Selection(start_ns=start, stop_ns=stop)


def check_times(data: bytes, selection: Selection) -> None:
    small = part(data, selection)
    with (
        fxf.open(data, format="trace") as whole,
        fxf.open(small, format="trace") as mine,
    ):
        expected, found = rows(whole.select(selection)), rows(mine)
        # Flows whose beginning lies outside have no meaning inside.
        assert not Counter(found.pop("flows")) - Counter(expected.pop("flows"))
        assert found == expected
        assert running(mine, whole) == running(whole.select(selection), whole)
        shown = [record.to_json() for record in mine.records()]
        assert all(record["record"] not in {"padding", "damaged"} for record in shown)
        assert losses(mine) <= losses(whole)
        # Nothing that is kept was changed: each record's bytes are in the whole, in this order.
        pieces = iter(bytes(data[r.offset : r.offset + r.nbytes]) for r in whole.records())
        kept = list(mine.records())[1:]
        while kept and isinstance(kept[-1], ThreadRecord):
            kept.pop()  # some may say of which process a thread is that runs
        for record in kept:
            assert small[record.offset : record.offset + record.nbytes] in pieces


@given(fxt_streams(), stretches())
def test_a_stretch_of_time_has_the_rows_of_the_whole(data: bytes, selection: Selection) -> None:
    check_times(data, selection)


@given(damaged(fxt_streams()), stretches())
def test_of_damaged_traces_too(data: bytes, selection: Selection) -> None:
    check_times(data, selection)


@given(fxt_streams(), stretches(), st.integers(1, 9))
def test_in_bounded_memory_it_is_the_same(data: bytes, selection: Selection, events: int) -> None:
    at_once = part(data, selection)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK_BYTES", 24 * events)
        patch.setattr(opening.TraceCapture, "fits_memory", False)
        assert part(data, selection) == at_once


@given(fxt_streams(), st.data())
def test_threads_and_categories(data: bytes, hand: st.DataObject) -> None:
    with fxf.open(data, format="trace") as whole:
        threads = whole.table("threads")
        tasks = [f"{p}/{t}" for p, t in zip(threads["pid"], threads["tid"], strict=True)]
        categories = {text for table in ("slices", "instants") for text in
                      whole.table(table).texts("category") if text and "*" not in text
                      and "?" not in text and "[" not in text}  # fmt: skip
        if not tasks:
            return
        chosen = hand.draw(st.lists(st.sampled_from(tasks), max_size=2, unique=True))
        wanted = hand.draw(st.lists(st.sampled_from(sorted(categories)), max_size=1))\
            if categories else []  # fmt: skip
        selection = Selection(threads=tuple(chosen), categories=tuple(wanted))
        small = part(data, selection)
        expected = rows(whole.select(selection))
        everything = rows(whole)
        with fxf.open(small, format="trace") as mine:
            found = rows(mine)
            flows, some = found.pop("flows"), expected.pop("flows")
            assert not Counter(flows) - Counter(some)
            sched = found.pop("sched")
            expected.pop("sched")
            assert not Counter(sched) - Counter(everything["sched"])
            if not wanted:
                switches = [row for row in everything["sched"] if row[3] != 2]
                assert [row for row in sched if row[3] != 2] == switches
            assert found == expected
            assert losses(mine) <= losses(whole)


@given(fxt_streams(), stretches(), st.integers(0, 40), st.data())
def test_without_short_slices_and_functions(
    data: bytes, stretch: Selection, least: int, hand: st.DataObject
) -> None:
    with fxf.open(data, format="trace") as whole:
        names = {name for name in whole.table("slices").texts("name") if name}
        named = hand.draw(st.lists(st.sampled_from(sorted(names)), max_size=1)) if names else []
        patterns = tuple(name.replace("*", "?") for name in named)
        selection = attrs.evolve(stretch, min_duration_ns=least, exclude_functions=patterns)
        expected = rows(whole.select(selection))
        with fxf.open(part(data, selection), format="trace") as mine:
            found = rows(mine)
            assert not Counter(found.pop("flows")) - Counter(expected.pop("flows"))
            assert found == expected
            assert running(mine, whole) == running(whole.select(selection), whole)


@given(fxt_streams(), stretches())
def test_open_slices_can_be_dropped(data: bytes, selection: Selection) -> None:
    with (
        fxf.open(data, format="trace") as whole,
        fxf.open(part(data, selection, open_slices="drop"), format="trace") as mine,
    ):
        start = -(1 << 63) if selection.start_ns is None else selection.start_ns
        stop = 1 << 63 if selection.stop_ns is None else selection.stop_ns
        expected = [
            row
            for row in rows(whole.select(selection))["slices"]
            if row[0] >= start and row[0] + max(row[2], 0) <= stop and (row[2] >= 0 or row[6] == 1)
        ]
        assert rows(mine)["slices"] == expected


# --- Cases with names ----------------------------------------------------------------------------


def story() -> bytes:
    """Two processes; slices across 100 to 200, objects, flows, all sorts of records."""
    sink = Sink.memory()
    with Archive(sink) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        idle = archive.provider(2, "idle", ticks_per_second=1_000_000_000)
        app.process(10, "player")
        main = app.thread(10, 11, "main")
        other = app.thread(20, 21, "other")
        idle.instant("noise", "never", thread=other, timestamp=5)
        app.userspace_object(10, 0xAB, "decoder")
        app.userspace_object(10, 0xCD, "unused")
        app.kernel_object(4, 77, "pipe")
        app.kernel_object(4, 78, "unused pipe")
        app.duration_begin("ui", "outer", {"why": "start"}, thread=main, timestamp=50)
        app.duration_begin("ui", "before", thread=main, timestamp=60)
        app.duration_end("ui", "before", thread=main, timestamp=70)
        app.duration_complete("io", "read", 90, 130, {"at": Pointer(0xAB)}, thread=main)
        app.flow_begin("f", "flow", 1, thread=main, timestamp=120)
        app.flow_end("f", "flow", 1, thread=other, timestamp=150)
        app.flow_begin("f", "flow", 2, thread=main, timestamp=125)
        app.flow_end("f", "flow", 2, thread=main, timestamp=140)
        app.instant("ui", "tick", {"on": Koid(77)}, thread=main, timestamp=150)
        app.async_begin("net", "load", 9, thread=other, timestamp=40)
        app.async_end("net", "load", 9, thread=other, timestamp=180)
        app.counter("ui", "frames", {"n": 3}, thread=main, timestamp=160)
        app.context_switch(cpu=0, outgoing_tid=11, incoming_tid=21, ticks=155)
        app.log("hello", thread=other, timestamp=165)
        app.blob("data", b"payload")
        app.large_blob("big", "lot", b"x" * 40_000, thread=other, timestamp=170)
        app.duration_end("ui", "outer", {"how": "late"}, thread=main, timestamp=250)
        app.duration_complete("io", "later", 300, 310, thread=main)
    return sink.getvalue()


def kinds(data: bytes) -> Counter[str]:
    with fxf.open(data, format="trace") as capture:
        return Counter(str(record.to_json()["record"]) for record in capture.records())


def texts(data: bytes) -> set[str]:
    with fxf.open(data, format="trace") as capture:
        shown = [record.to_json() for record in capture.records()]
    return {record["value"] for record in shown if record["record"] == "string"}


STRETCH = Selection(start_ns=100, stop_ns=200)


def test_what_is_needed_comes_along_and_nothing_else() -> None:
    small = part(story(), STRETCH)
    assert {"outer", "why", "start", "how", "late", "read", "flow", "tick", "frames"} <= texts(
        small
    )
    assert not {"before", "later", "never", "noise"} & texts(small)
    with fxf.open(small) as capture:
        assert names_of(capture)[0][10] == "player"
        assert names_of(capture)[1] == {11: "main", 21: "other"}
        slices = capture.table("slices")
        assert dict(zip(slices.texts("name"), slices["dur"].tolist(), strict=True)) == {
            "outer": 200,
            "read": 40,
            "load": 140,
        }
        assert [p["name"] for p in capture.summary().facts["providers"]] == ["app", "idle"]
        assert losses(capture) == {}


def test_open_slices_can_be_closed_at_the_bounds() -> None:
    with fxf.open(part(story(), STRETCH, open_slices="close")) as capture:
        slices = capture.table("slices")
        found = {
            name: (ts, dur)
            for name, ts, dur in zip(
                slices.texts("name"), slices["ts"].tolist(), slices["dur"].tolist(), strict=True
            )
        }
    assert found == {"outer": (100, 100), "read": (100, 30), "load": (100, 80)}


@cases("section", [ProviderSection(id=1), ProviderSection(id=0)])
def test_closed_slices_keep_names_whose_index_is_registered_again(section: ProviderSection) -> None:
    """The index is of an earlier section of the provider, or of provider 0."""

    def begin(timestamp: int, name: str) -> Event:
        return Event(
            event="duration_begin", timestamp=timestamp, thread=(1, 2), category="", name=name,
            refs={"name": 5},
        )  # fmt: skip

    records = [
        ProviderInfo(id=1, name="app"),
        section,
        StringRecord(index=5, value="first"),
        ProviderInfo(id=2, name="other"),
        ProviderSection(id=1),
        begin(10, "first"),
        StringRecord(index=5, value="second"),
        begin(20, "second"),
    ]
    whole = MAGIC_BYTES + b"".join(record.pack() for record in records)
    with fxf.open(part(whole, Selection(start_ns=100), open_slices="close")) as capture:
        assert capture.table("slices").texts("name") == ["first", "second"]


@cases("rate", [1_000_000_000, 250_000_000])
def test_a_slice_that_ends_on_the_last_tick_is_whole(rate: int) -> None:
    """Of each kind, before, on and after the first and the last tick of the stretch."""
    step = 1_000_000_000 // rate
    edges = [at + step * off for at in (400, 800) for off in (-2, -1, 0, 1, 2)]
    spans = [(a, b) for a, b in itertools.combinations(edges, 2) if b > 400 and a < 800]
    sink = Sink.memory()
    with Archive(sink) as archive:
        app = archive.provider(1, "app", ticks_per_second=rate)
        for number, (begin, end) in enumerate(spans):
            begin, end, thread = begin // step, end // step, app.thread(1, number + 1, f"t{number}")
            app.duration_complete("c", "complete", begin, end, thread=thread)
            app.async_begin("c", "async", number, thread=thread, timestamp=begin)
            app.duration_begin("c", "pair", thread=thread, timestamp=begin)
            app.duration_end("c", "pair", thread=thread, timestamp=end)
            app.async_end("c", "async", number, thread=thread, timestamp=end)
    small = part(sink.getvalue(), Selection(start_ns=400, stop_ns=800), open_slices="close")
    with fxf.open(small) as capture:
        found = Counter((row.name, row.ts, row.ts + row.dur) for row in capture.table("slices"))
    assert found == Counter(
        (name, max(begin, 400), min(end, 800))
        for begin, end in spans for name in ("complete", "async", "pair")
    )  # fmt: skip


@cases("known_by", ["event", "log", "object", "record"])
@cases("selection", [Selection(start_ns=100), Selection(threads=("other",))])
def test_who_runs_is_known_in_a_part(known_by: str, selection: Selection) -> None:
    sink = Sink.memory()
    with Archive(sink) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        inline = app if known_by == "record" else archive.provider(2, "inline", threads="inline")
        app.process(10, "player")
        app.kernel_object(2, 11, "main", {"process": Koid(10)} if known_by == "object" else {})
        for tid in (11, 12) if known_by in {"event", "record"} else ():
            inline.instant("c", "before", thread=(10, tid), timestamp=5)
        for tid in (11, 12) if known_by == "log" else ():
            inline.log("before", thread=(10, tid), timestamp=5)
        app.instant("c", "there", thread=app.thread(20, 21, "other"), timestamp=150)
        app.context_switch(cpu=0, outgoing_tid=11, incoming_tid=12, ticks=155)
    with (
        fxf.open(sink.getvalue()) as whole,
        fxf.open(part(sink.getvalue(), selection)) as mine,
    ):
        assert running(mine, whole) == running(whole, whole)


def test_of_a_thread_every_switch_and_its_own_wakeups() -> None:
    sink = Sink.memory()
    with Archive(sink) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        for tid in (11, 21, 31):
            app.instant("c", "there", thread=app.thread(10, tid, f"t{tid}"), timestamp=tid)
        for at, tid in enumerate((11, 21, 31, 11, 21)):
            app.wakeup(cpu=0, tid=tid, ticks=100 + at)
            app.context_switch(cpu=0, outgoing_tid=31, incoming_tid=tid, ticks=200 + at)
    for names in (("t11",), ("t21",), ("t11", "t31"), ("t11", "t21", "t31")):
        wanted = {int(name[1:]) for name in names}
        with fxf.open(part(sink.getvalue(), Selection(threads=names))) as capture:
            tids = dict(capture.table("threads").tuples("id", "tid"))
            sched = capture.table("sched")
            woken = [(ts, tids[thread]) for ts, kind, thread in sched.tuples("ts", "kind", "next")
                     if kind == 2]  # fmt: skip
            switched = sched.array("ts")[sched.array("kind") == 1].tolist()
        assert woken == [
            (100 + at, tid) for at, tid in enumerate((11, 21, 31, 11, 21)) if tid in wanted
        ]
        assert switched == [200, 201, 202, 203, 204]


def test_of_a_thread_its_objects_and_whole_flows() -> None:
    small = part(story(), Selection(threads=("main",)))
    with fxf.open(small) as capture:
        assert set(capture.table("flows")["id"].tolist()) == {2}
        assert names_of(capture)[1].get(11) == "main"
        objects = capture.table("trace_objects").texts("name")
        # "other" is who main is switched with.
        assert set(objects) == {"player", "main", "other", "decoder", "pipe"}
        assert capture.table("args").texts("trace_annotation").count("decoder") == 1
        assert len(capture.table("logs")) == 0
    assert kinds(small)["blob"] == kinds(small)["large"] == 0


def test_of_a_process_and_a_pattern() -> None:
    by_name = part(story(), Selection(processes=("play*",)))
    assert by_name == part(story(), Selection(processes=("10",)))
    with fxf.open(by_name) as capture:
        assert set(capture.table("slices").texts("name")) == {"outer", "before", "read", "later"}


def test_of_a_category_only_what_has_it() -> None:
    small = part(story(), Selection(categories=("u?",)))
    with fxf.open(small) as capture:
        assert set(capture.table("slices").texts("name")) == {"outer", "before"}
        assert capture.table("instants").texts("name") == ["tick"]
    assert kinds(small)["scheduling"] == kinds(small)["log"] == kinds(small)["large"] == 0
    assert kinds(part(story(), Selection(categories=("big",))))["large"] == 1


def test_large_records_by_time_and_thread() -> None:
    assert kinds(part(story(), STRETCH))["large"] == 1
    assert kinds(part(story(), Selection(start_ns=171)))["large"] == 0
    assert kinds(part(story(), Selection(threads=("other",))))["large"] == 1


def test_everything_is_what_was_there() -> None:
    assert part(story(), Selection()) == story()


def test_what_was_left_out_is_counted() -> None:
    sink = Sink.memory()
    with fxf.open(story()) as capture:
        left_out = extract(capture, STRETCH, sink, {})
    assert left_out["events"] == kinds(story())["event"] - kinds(sink.getvalue())["event"]
    assert "blobs" not in left_out


@cases("selection", [Selection(threads=("mainn",)), Selection(processes=("nobody",))])
def test_a_name_that_nothing_has(selection: Selection) -> None:
    with pytest.raises(UsageError, match="there is no"):
        part(story(), selection)


def test_an_unknown_way_with_open_slices() -> None:
    (how,) = {o for w in plugin.fx_writers() for o in w.options if o.name == "open_slices"}
    with pytest.raises(UsageError, match="did you mean 'close'"):
        how.accept("clos")


def test_both_byte_orders() -> None:
    def told(big_endian: bool) -> bytes:
        sink = Sink.memory()
        with Archive(sink, big_endian=big_endian) as archive:
            app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
            for at in range(10):
                app.duration_complete("c", f"n{at}", 10 * at, 10 * at + 15, thread=(1, 2))
        return part(sink.getvalue(), Selection(start_ns=32, stop_ns=51), open_slices="close")

    with fxf.open(told(False)) as little, fxf.open(told(True)) as big:
        assert rows(little) == rows(big)
        assert little.table("slices")["ts"].tolist() == [32, 32, 40, 50]


def test_two_providers_with_the_same_slots() -> None:
    sink = Sink.memory()
    with Archive(sink) as archive:
        writers = [archive.provider(n, f"p{n}", ticks_per_second=1000 * n) for n in (1, 2)]
        for at in range(20):
            writer = writers[at % 2]
            writer.instant(f"c{at % 2}", f"name {at}", thread=(at % 2, 1), timestamp=at)
    whole = sink.getvalue()
    selection = Selection(start_ns=5_000_000, stop_ns=9_000_000)
    with fxf.open(whole) as capture, fxf.open(part(whole, selection)) as mine:
        assert rows(mine) == rows(capture.select(selection))
        assert len(mine.table("instants")) > 3
        assert attrs.asdict(mine.summary())["facts"]["providers"][1]["ticks_per_second"] == 2000


def test_only_stars_and_question_marks_are_special() -> None:
    sink = Sink.memory()
    with Archive(sink) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        for tid, name in enumerate(("worker[0]", "worker[1]", "worker0"), start=1):
            app.instant(name, name, thread=app.thread(1, tid, name), timestamp=tid)
    for selection in (Selection(threads=("worker[0]",)), Selection(categories=("worker[0]",))):
        with fxf.open(part(sink.getvalue(), selection)) as capture:
            assert capture.table("instants").texts("name") == ["worker[0]"]


@cases("rates", [(1_000_000_000, 1_000_000), (3_000_000, 1_000_000_000), (10**9, 10**9)])
@cases("outer_first", [True, False])
@cases("inner_complete", [True, False])
@cases("outer_complete", [True, False])
def test_closed_slices_of_two_providers_keep_their_order(
    rates: tuple[int, int], outer_first: bool, inner_complete: bool, outer_complete: bool
) -> None:
    sink = Sink.memory()
    with Archive(sink) as archive:
        outer, inner = (
            (archive.provider(number, name, ticks_per_second=rate), name, *times)
            for number, rate, name, *times in ((1, rates[0], "outer", 0, 9000, outer_complete),
                                               (2, rates[1], "inner", 1000, 8000, inner_complete))
        )  # fmt: skip
        for is_end in (False, True):
            for app, name, start, stop, complete in (outer, inner)[:: 1 if outer_first else -1]:
                begin, end = (ns * app.ticks_per_second // 1_000_000_000 for ns in (start, stop))
                if complete and not is_end:
                    app.duration_complete("c", name, begin, end, thread=(1, 2))
                elif not complete:
                    write = app.duration_end if is_end else app.duration_begin
                    write("c", name, thread=(1, 2), timestamp=end if is_end else begin)
    small = part(sink.getvalue(), Selection(start_ns=2500, stop_ns=5300), open_slices="close")
    with fxf.open(small) as capture:
        capture.scan()
        slices = {row.name: row for row in capture.table("slices")}
        assert slices["inner"].parent == slices["outer"].row
        ends = {name: row.ts + row.dur for name, row in slices.items()}
        assert slices["outer"].ts <= slices["inner"].ts <= 2500
        assert 5300 <= ends["inner"] <= ends["outer"]
        assert capture.diagnostics.counts.keys() <= {"FXT0304"}  # out of order


def test_of_a_large_record_that_goes_nothing_stays() -> None:
    sink = Sink.memory()
    with Archive(sink) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        app.large_blob("big", "lot", b"x", {"why": 1}, thread=(1, 2), timestamp=1)
        app.instant("ui", "tick", thread=(1, 2), timestamp=2)
    assert texts(part(sink.getvalue(), Selection(categories=("ui",)))) == {"ui", "tick"}


def test_a_thread_that_nobody_registered_has_its_backtraces() -> None:
    backtrace = ProfilerBacktrace(timestamp=1, thread="<thr#1>", frames=(5,))
    whole = MAGIC_BYTES + backtrace.pack()
    assert part(whole, Selection(threads=("0/0",))) == whole


def test_backtraces_of_other_threads_go() -> None:
    sink = Sink.memory()
    with Archive(sink) as archive:
        app = archive.provider(1, "app", ticks_per_second=1_000_000_000)
        for tid in (1, 2):
            thread = app.thread(1, tid, f"t{tid}")
            app.instant("c", "n", thread=thread, timestamp=tid)
            for frames in ((), (5,), (5, 6)):
                app.write(ProfilerBacktrace(timestamp=tid, thread=thread, frames=frames))
    assert kinds(part(sink.getvalue(), Selection(threads=("t1",))))["profiler"] == 3


@cases("options", [{"perfetto_safe": True}, {"big_endian": True}])
def test_options_that_do_not_act_on_a_part(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="copies records unchanged"):
        part(story(), STRETCH, **options)


def test_a_part_of_a_part_is_one_selection() -> None:
    with fxf.open(story()) as capture, pytest.raises(UsageError, match="whole trace"):
        extract(capture.select(STRETCH), STRETCH, Sink.memory(), {})


def test_a_category_that_nothing_has() -> None:
    with Archive(sink := Sink.memory()) as archive:
        archive.provider(1, "app").instant("ui", "tick")
    with pytest.raises(UsageError, match="no category 'tick'") as refused:
        part(sink.getvalue(), Selection(categories=("tick",)))
    assert refused.value.remedy == "there are ui"


def test_the_part_of_a_part_is_the_same() -> None:
    once = part(story(), STRETCH)
    assert part(once, STRETCH) == once


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=40))
def test_a_flow_goes_on_until_it_ends(points: list[tuple[int, int, int]]) -> None:
    """Ids come back after they ended; a begin of an id that is open is a point of its flow."""
    times, ids, phases = np.array(points, np.int64).reshape(-1, 3).T
    order = np.argsort(times, kind="stable")
    open_flows: dict[int, int] = {}
    expected = [-1] * len(points)
    began = []
    for point in order.tolist():
        begins_new = phases[point] == 0 and ids[point] not in open_flows
        if begins_new:
            open_flows[ids[point]] = point
            began.append(point)
        expected[point] = open_flows.get(ids[point], -1)
        if phases[point] == 2:
            open_flows.pop(ids[point], None)
    flow, first = followed(order, ids, phases)
    assert sorted(first.tolist()) == sorted(began)
    assert [first[each] if each >= 0 else -1 for each in flow.tolist()] == expected
