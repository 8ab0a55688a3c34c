"""Columns held against a plain model, which makes events and rows of records one at a time.

Where records begin and what is wrong with that, both have from the same framing; what stored
outputs, conformance and llvm-xray say of it, other tests hold. Whatever the bytes, events and rows
hold the same values, and records of both count the same.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from fx_xray import format as fx
from fx_xray.read import capture as reader
from fx_xray.read import log, match, timeline
from fx_xray.read.decoder import RecordDecoder
from fx_xray.rules import RULES
from fx_xray.write import encoder
from fxframework.io import budget
from fxframework.io.limits import Limits
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.model.diagnostics import Diagnostics
from fxframework.model.table import Table

from ...bench.shapes.xray import shapes
from ...cases import cases
from ...truncations import sizes_of
from . import model, traces
from .streams import basic_files, damaged, fdr_files
from .traces import RARE, WHOLE

OPEN = {"xray": reader.FdrCapture, "xray-basic": reader.BasicCapture}
FILES = {"xray": fdr_files(), "xray-basic": basic_files()}
CONFORMANCE = Path(__file__).parents[2] / "conformance" / "xray"
REAL = {str(path.relative_to(CONFORMANCE)): path for path in sorted(CONFORMANCE.rglob("*.xray"))}
FORMS = pytest.mark.parametrize("form", OPEN)
ORPHAN = -1


def form_of(data: bytes) -> str:
    return "xray-basic" if data[2:3] == b"\0" else "xray"


def opened(form: str, data: bytes, **limits: int) -> reader.EventCapture:
    request = OpenRequest(options={}, limits=Limits(**limits))
    return OPEN[form](Source.open(data), request)


def events_of(capture: reader.EventCapture) -> list[model.Event]:
    pids, tids = (column.view(np.int64).tolist() for column in capture.event_threads())
    threads = list(zip(pids, tids, strict=True))
    out = []
    for events in capture.events():
        for kind, function, tsc, cpu, thread, offset, value, size in zip(
            *(column.tolist() for column in events), strict=True
        ):
            what: Any = None
            if kind == 4:
                what = value
            elif kind > 4:
                what = capture.payloads[value : value + size].tobytes()
            else:
                assert value == size == 0
            orphan = kind == 4 and size == ORPHAN
            out.append(model.Event(kind, function, tsc, cpu, threads[thread], offset, what, orphan))
    return out


def rows_of(table: Table, *names: str) -> list[tuple[Any, ...]]:
    columns = [
        table.texts(name) if table.schema.column(name).kind == "code" else table[name].tolist()
        for name in names
    ]
    return list(zip(*columns, strict=True))


def ns(tsc: int, frequency: int) -> int:
    return min(tsc * 1_000_000_000 // (frequency or 1_000_000_000), (1 << 63) - 1)


def check_tables(
    capture: reader.EventCapture, table: Any, threads: list[tuple[int, int]], want: model.Tables
) -> None:
    frequency = capture.frequency
    number = {thread: index for index, thread in enumerate(threads)}
    slices = rows_of(
        table("slices"), "row", "offset", "ticks", "ts", "dur", "thread", "name", "depth",
        "parent", "xray_function", "xray_ticks", "xray_cpu", "xray_exit", "xray_entry",
    )  # fmt: skip
    expected = []
    for row, each in enumerate(want.slices):
        offset, tsc, thread, function, depth, parent, cpu, entry, ticks, ended = each
        length = -1
        if ticks >= 0:
            length = max(ns(tsc + ticks & model.U64, frequency) - ns(tsc, frequency), 0)
        expected.append(
            (
                row,
                offset,
                tsc,
                ns(tsc, frequency),
                length,
                number[thread],
                str(function),
                depth,
                parent,
                function,
                ticks,
                cpu,
                ended,
                entry,
            )
        )
    assert slices == expected
    instants = rows_of(
        table("instants"), "row", "offset", "ticks", "ts", "thread", "category", "name",
        "xray_cpu", "xray_event_type",
    )  # fmt: skip
    categories = {5: "custom_event", 6: "typed_event"}
    assert instants == [
        (
            row,
            offset,
            tsc,
            ns(tsc, frequency),
            number[thread],
            categories.get(kind, "unmatched_exit"),
            categories.get(kind, str(what)),
            cpu,
            what if kind == 6 else 0,
        )
        for row, (offset, tsc, thread, kind, what, cpu) in enumerate(want.instants)
    ]
    args = rows_of(table("args"), "row", "offset", "table", "parent", "name", "type", "uint")
    codes = {"slices": 2, "instants": 3}
    types = {"data": 10, "event_type": 2}
    codes_of = table("args")["str"].tolist()
    payloads = [None if code < 0 else capture.strings.bytes_of(code) for code in codes_of]
    assert [(*each, payload) for each, payload in zip(args, payloads, strict=True)] == [
        (
            row,
            offset,
            codes[where],
            parent,
            name,
            types.get(name, 4),
            0 if isinstance(value, bytes) else value,
            value if isinstance(value, bytes) else None,
        )
        for row, (offset, where, parent, name, value) in enumerate(want.args)
    ]


def check(form: str, data: bytes) -> None:
    """All that is to be the same of the columns and the model."""
    threads, want = model.events_of(form, data, {})
    found = Diagnostics(RULES, limit=0)
    records = list(RecordDecoder(form, diagnostics=found).records(data))
    kinds = Counter(record.record for record in records)
    capture = opened(form, data, max_findings=0)
    assert events_of(capture) == want
    summary = capture.summary()
    assert summary.kinds == dict(kinds)
    assert summary.records == kinds.total()
    tables = model.tables_of(want)
    check_tables(capture, capture.table, threads, tables)
    reported = [each for each in capture.diagnostics if each.code[:3] == "FXX"]
    framing = [each for each in reported if each.code[4] not in "36"]
    assert Counter((each.code, each.offset, each.message) for each in framing) == Counter(
        (each.code, each.offset, each.message) for each in found
    )
    numbered = [] if any(each.code == "FXX0205" for each in reported) else reported
    for each in numbered:
        if each.record is not None and each.offset is not None and data:
            assert 0 <= each.offset - records[each.record].offset <= records[each.record].nbytes
    counts = capture.diagnostics.counts
    exits = sum(kind in (1, 2) for _, _, _, kind, _, _ in tables.instants)
    assert counts.get("FXX0301", 0) == exits == summary.facts["unmatched_exits"]
    unclosed = sum(each[8] < 0 for each in tables.slices)
    assert counts.get("FXX0302", 0) == unclosed == summary.facts["unmatched_entries"]
    assert counts.get("FXX0303", 0) == tables.unwound == summary.facts["unwound"]
    times = [event.tsc for event in want]
    if times:
        assert summary.start_ns == ns(min(times), capture.frequency)
        assert summary.end_ns == ns(max(times), capture.frequency)
    assert {name: len(capture.table(name)) for name in capture.schemas} == dict(summary.rows)


@FORMS
@hypothesis.given(data=st.data())
def test_the_model_agrees_on_traces(form: str, data: st.DataObject) -> None:
    check(form, data.draw(FILES[form]))


@FORMS
@hypothesis.given(data=st.data())
def test_the_model_agrees_on_damaged_traces(form: str, data: st.DataObject) -> None:
    check(form, data.draw(damaged(FILES[form])))


@FORMS
@hypothesis.given(data=st.binary(max_size=300))
def test_the_model_agrees_on_any_bytes(form: str, data: bytes) -> None:
    check(form, data)


@cases("name", WHOLE)
def test_the_model_agrees_on_truncation(name: str) -> None:
    """Around records of two files, and inside one of each kind; in each third of other files."""
    form, data = WHOLE[name]
    sizes = [*range(0, len(data) + 1, len(data) // 3 - 2)]
    if name in ("fdr5-little", "basic3-little"):
        sizes = sizes_of(RecordDecoder(form).records(data), inside=5)
    for size in sizes:
        check(form, data[:size])


@cases("name", shapes())
def test_the_model_agrees_on_awkward_shapes(name: str) -> None:
    data = shapes()[name](10_000)
    check("xray", data)
    with opened("xray", data) as capture:
        assert capture.summary().records > 250
        expected = {"never closed": {"FXX0302"}, "exits alone": {"FXX0301"}}
        found = set(capture.diagnostics.counts) - {"FXX0601"}
        assert found == expected.get(name, set())


@cases("name", RARE)
def test_the_model_agrees_on_rare_traces(name: str) -> None:
    check("xray", RARE[name])


@cases("name", REAL)
def test_the_model_agrees_on_real_traces(name: str) -> None:
    data = REAL[name].read_bytes()
    check(form_of(data), data)


@pytest.fixture(autouse=True)
def _room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of memory asks for parts only: sanitizers keep what is freed, and would exceed it."""
    monkeypatch.setattr(budget, "WORKING", 1 << 40)


@pytest.mark.parametrize("events", [1, 3])
@pytest.mark.parametrize(
    "name", ["fdr5-thr50us-clang16.xray", "basic3-nofreq-emulated-clang16.xray"]
)
def test_batches_are_the_whole_tables_at_every_boundary(
    name: str, events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = REAL[name].read_bytes()
    form = form_of(data)
    whole = opened(form, data)
    monkeypatch.setattr(log, "AT_ONCE", events)
    for constant, number in (("TOGETHER", events), ("PEEKED", 1), ("LEAST", 1), ("HELD", events)):
        monkeypatch.setattr(timeline, constant, number)
    monkeypatch.setattr(match, "COUNTED", 2)
    parts = opened(form, data, max_memory=1)
    assert parts.summary() == attrs.evolve(whole.summary(), timeline=())
    assert list(parts.diagnostics) == list(whole.diagnostics)
    for table in whole.schemas:
        names = list(whole.table(table).columns)
        batched = [row for batch in parts.batches(table, 5) for row in rows_of(batch, *names)]
        assert batched == rows_of(whole.table(table), *names)


@FORMS
@hypothesis.given(data=st.data())
def test_batches_of_any_trace_are_its_tables(form: str, data: st.DataObject) -> None:
    file = data.draw(damaged(FILES[form]))
    whole = opened(form, file)
    small = {
        "PEEKED": data.draw(st.integers(1, 2)),
        "LEAST": data.draw(st.integers(1, 3)),
        "TOGETHER": data.draw(st.integers(2, 9)),
        "HELD": data.draw(st.integers(1, 9)),
    }
    before = {name: getattr(timeline, name) for name in small}
    at_once, log.AT_ONCE = log.AT_ONCE, data.draw(st.integers(1, 5))
    for name, number in small.items():
        setattr(timeline, name, number)
    try:
        parts = opened(form, file, max_memory=1)
        for table in ("slices", "instants", "args"):
            names = list(whole.table(table).columns)
            batched = [row for batch in parts.batches(table, 3) for row in rows_of(batch, *names)]
            assert batched == rows_of(whole.table(table), *names)
    finally:
        log.AT_ONCE = at_once
        for name, number in before.items():
            setattr(timeline, name, number)


def test_times_wrap_between_blocks_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    latest = (1 << 63) - 1
    calls = [traces.call(delta=(1 << 32) - 1) for _ in range(3)]
    data = traces.header() + traces.buffer(*calls, fx.NewCpu(cpu=1, tsc=5), tsc=latest)
    monkeypatch.setattr(log, "SCANNED", 2)
    check("xray", data)


def test_calls_that_end_with_another_are_all_counted_and_the_first_are_listed() -> None:
    calls = [traces.call(function) for function in range(1, 7)]
    data = traces.header() + traces.buffer(*calls, traces.call(1, "exit"))
    everything = opened("xray", data, max_findings=0)
    capture = opened("xray", data, max_findings=2)
    capture.scan()
    assert capture.diagnostics.counts["FXX0303"] == 5
    everything.scan()
    unwound = [each for each in everything.diagnostics if each.code == "FXX0303"]
    assert [each for each in capture.diagnostics if each.code == "FXX0303"][:2] == unwound[:2]


def test_a_call_behind_an_argument_of_none_keeps_its_own_between_blocks_of_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    common: dict[str, Any] = {"thread": 6, "process": 2}
    records = [
        fx.BasicArgument(function_id=4, value=8, **common),
        fx.BasicFunction(kind="enter", function_id=3, cpu=1, tsc=9, **common),
        fx.BasicArgument(function_id=3, value=7, **common),
    ]
    dialect = fx.Dialect("xray-basic", 3)
    data = b"".join(encoder.packed(record, dialect) for record in records)
    monkeypatch.setattr(log, "SCANNED", 2)
    check("xray-basic", traces.header(3, basic=True) + data)
