"""Several captures become one archive, each a provider of its own."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxframework as fxf
from fx_trace import records as r
from fx_trace.format import MAGIC_BYTES, EventType
from fx_trace.kinds import RecordType
from fx_trace.write.archive import Archive
from fx_trace.write.buffer import TraceBuffer
from fx_trace.write.merge import open_merge
from fx_trace.write.writer import TraceWriter
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.memory import BytesMemory
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.selection import Selection
from fxframework.testing.cli import run_cli

from ...cases import cases
from .streams import Record, fxt_records, render
from .test_extracting import losses, rows


def trace(name: str, provider: int = 1, *, big_endian: bool = False) -> bytes:
    sink = Sink.memory()
    with Archive(sink, big_endian=big_endian) as archive:
        app = archive.provider(provider, name, ticks_per_second=1_000_000)
        app.duration_complete("c", name, 10, 30, {"k": name}, thread=(provider, 1))
        app.instant("c", f"{name} tick", thread=(provider, 1), timestamp=20)
    return sink.getvalue()


def image(count: int) -> bytes:
    memory = BytesMemory(4096)
    buffer = TraceBuffer(memory, "oneshot")
    writer = TraceWriter(buffer, ticks_per_second=1_000_000_000)
    for number in range(count):
        writer.instant("c", "kept", thread=(7, 8), timestamp=number)
    buffer.stop()
    return memory.read(0, memory.size)


def merged(
    *inputs: bytes, selection: Selection | None = None, format: str | None = None, **options: Any
) -> bytes:
    sink = Sink.memory()
    session = open_merge(sink, options)
    for data in inputs:
        with fxf.open(data, format=format) as capture:
            session.write(capture if selection is None else capture.select(selection))
    session.close()
    return sink.getvalue()


def providers(data: bytes) -> list[tuple[int, str]]:
    with fxf.open(data) as capture:
        capture.scan()
        assert all(
            capture.diagnostics.rule(code).severity < 2 for code in capture.diagnostics.counts
        )
        return [(p["id"], p["name"]) for p in capture.summary().facts["providers"]]


def test_rows_of_both_stand_behind_each_other() -> None:
    one, two = trace("one"), trace("two", 2)
    with fxf.open(one) as first, fxf.open(two) as second, fxf.open(merged(one, two)) as both:
        expected = {name: rows(first)[name] + rows(second)[name] for name in rows(first)}
        assert rows(both) == expected


def test_ids_that_are_taken_are_given_anew() -> None:
    assert providers(merged(trace("a"), trace("b"), trace("c", 5), trace("d"))) == [
        (1, "a"), (2, "b"), (5, "c"), (3, "d"),
    ]  # fmt: skip


def test_records_of_no_provider_get_one() -> None:
    bare = trace("a")[:8] + trace("a")[24:]
    # Provider 0 stays free: other captures' providers would find its names and rate.
    assert providers(merged(trace("x"), bare, bare)) == [(1, "x"), (2, "<bytes>"), (3, "<bytes>")]


def test_an_image_says_that_it_was_full() -> None:
    data = merged(image(5), trace("a"), image(500))
    assert [number for number, _ in providers(data)] == [1, 2, 3]
    with fxf.open(data) as capture:
        full = [p["buffer_full"] for p in capture.summary().facts["providers"]]
        assert full == [0, 0, 1]
        kept = capture.table("instants").texts("name").count("kept")
    with fxf.open(image(500)) as capture:
        assert kept == 5 + len(capture.table("instants"))


def test_a_part_of_each() -> None:
    data = merged(trace("a"), trace("b"), selection=Selection(start_ns=25_000), open_slices="close")
    with fxf.open(data) as capture:
        slices = capture.table("slices")
        assert slices.texts("name") == ["a", "b"]
        assert slices["ts"].tolist() == [25_000, 25_000]
        assert len(capture.table("instants")) == 0


def without_ends(records: list[Record]) -> bytes:
    """A capture whose slices no record of another one can end."""
    ends = (EventType.DURATION_END, EventType.ASYNC_END)
    kinds = {RecordType.EVENT | kind << 16 for kind in ends}
    return render([each for each in records if int(each[0]) & 0xF000F not in kinds])


def tasks(capture: Capture) -> set[tuple[int, ...]]:
    """The koids of processes and of threads."""
    processes, threads = capture.table("processes"), capture.table("threads")
    return {*processes.tuples("pid"), *threads.tuples("pid", "tid")}


def task_names(capture: Capture) -> set[tuple[str, int, str | None]]:
    """Names by koid; threads that were never registered have none."""
    columns = (("processes", "pid"), ("threads", "tid"))
    return {
        (name, koid, text)
        for name, column in columns
        for koid, text in zip(
            capture.table(name)[column].tolist(), capture.table(name).texts("name"), strict=True
        )
        if text is None or not text.startswith("<thr#")
    }


def check_merge(inputs: list[bytes]) -> None:
    expected: dict[str, list[Any]] = defaultdict(list)
    lost: Counter[str] = Counter()
    koids: set[tuple[int, ...]] = set()
    names: set[tuple[str, int, str | None]] = set()
    for data in inputs:
        with fxf.open(data, format="trace") as capture:
            for table, some in rows(capture).items():
                expected[table] += some
            lost += losses(capture)
            koids |= tasks(capture)
            names |= task_names(capture)
    with fxf.open(merged(*inputs, format="trace"), format="trace") as capture:
        assert rows(capture) == expected
        found = losses(capture)
        assert all(found[code] == lost[code] for code in ("FXT0104", "FXT0105"))
        assert not found.keys() - lost.keys()
        # Of a thread that only context switches name, another capture may tell the process.
        assert tasks(capture) <= koids
        assert {who[0] for who in koids - tasks(capture)} <= {0}
        # Of several names, the last one holds.
        assert task_names(capture) <= names
        assert {who[:2] for who in task_names(capture) if who[2]} == {
            who[:2] for who in names if who[2]
        }


@given(st.lists(fxt_records().map(without_ends), min_size=2, max_size=3))
def test_a_merge_has_the_rows_of_all(inputs: list[bytes]) -> None:
    check_merge(inputs)


def borrowing(koid: int, rate: int | None, layout: str) -> bytes:
    """Provider 1 with the names, thread and rate of provider 0, before or behind it."""
    own = [r.StringRecord(index=1, value=f"c{koid}"), r.StringRecord(index=2, value=f"n{koid}")]
    own += [r.ThreadRecord(index=1, pid=koid, tid=koid + 1)]
    own += [] if rate is None else [r.Initialization(ticks_per_second=rate)]
    event = r.Event(event="instant", timestamp=5, thread=(0, 0), category="", name="")
    event = attrs.evolve(event, refs={"thread": 1, "category": 1, "name": 2})
    info = r.ProviderInfo(id=1, name="app")
    zero = [r.ProviderInfo(id=0, name="zero"), r.ProviderSection(id=0)]
    again = [r.StringRecord(index=2, value=f"again{koid}"), r.ProviderSection(id=1)]
    made = {
        "before": [*own, info, event, event],
        "behind": [info, r.ProviderSection(id=0), *own, r.ProviderSection(id=1), event],
        "named": [*own, event, zero[0], info, event],
        "replaced": [*own, info, event, zero[1], *again, event],
    }[layout]
    return MAGIC_BYTES + b"".join(record.pack() for record in made)


@cases("layout", ["before", "behind", "named", "replaced"])
@cases("rates", [(1_000, 1_000_000), (None, 1_000), (1_000, None)])
def test_what_provider_0_lends_comes_along(layout: str, rates: tuple[int | None, ...]) -> None:
    lending = [borrowing(100 * n, rate, layout) for n, rate in enumerate(rates, start=1)]
    for inputs in (lending, [trace("a"), *lending], [*lending, trace("a")]):
        check_merge(inputs)
    assert {name for _, name in providers(merged(*lending))} == {
        "app", "zero" if layout == "named" else "<bytes>"
    }  # fmt: skip


def test_odd_bytes_behind_what_provider_0_lends_are_left_out() -> None:
    lending = borrowing(100, 1_000, "before")
    assert merged(lending + b"cut off", trace("a")) == merged(lending, trace("a"))


def test_both_byte_orders_do_not_mix() -> None:
    both = merged(trace("a", big_endian=True), trace("b", big_endian=True))
    assert providers(both) == [(1, "a"), (2, "b")]
    with pytest.raises(WriteRefusedError) as refused:
        merged(trace("a"), trace("b", big_endian=True))
    assert refused.value.code == "FXT0413"


@cases("option", ["perfetto_safe", "big_endian"])
def test_options_that_do_not_act(option: str) -> None:
    with pytest.raises(UsageError, match=option):
        merged(trace("a"), **{option: True})


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "a.fxt").write_bytes(trace("a"))
    (tmp_path / "b.tbuf").write_bytes(image(3))
    out = tmp_path / "both.fxt"
    result = run_cli("convert", tmp_path / "a.fxt", tmp_path / "b.tbuf", out)
    assert result.exit_code == 0
    assert result.stderr.startswith("note: wrote")
    assert providers(out.read_bytes()) == [(1, "a"), (2, "b.tbuf")]
    for name in ("c.fxt", "d.fxt"):
        (tmp_path / name).write_bytes(trace(name, big_endian=True))
    result = run_cli("convert", tmp_path / "c.fxt", tmp_path / "d.fxt", out, "--force")
    assert result.exit_code == 0, result.text
    assert providers(out.read_bytes()) == [(1, "c.fxt"), (2, "d.fxt")]
    result = run_cli("convert", tmp_path / "c.fxt", tmp_path / "a.fxt", out, "--force")
    assert "FXT0413" in result.stderr
    result = run_cli("convert", tmp_path / "b.tbuf", tmp_path / "b.fxt")
    assert result.exit_code == 0
    assert providers((tmp_path / "b.fxt").read_bytes()) == [(1, "b.tbuf")]
