"""Parts of traces: the calls that were chosen, as they were; and what is sound of a damaged one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import fxframework as fxf
from fx_xray import format as fx
from fx_xray.read.capture import EventCapture
from fx_xray.write.extract import extract
from fx_xray.write.salvage import salvage
from fxframework.errors import Severity
from fxframework.io.sink import Sink
from fxframework.kit.salvage import Loss
from fxframework.model.selection import Selection
from fxframework.testing.cli import run_cli

from ...cases import cases
from ...properties import share
from .packed import chance_events, opened, packed_events
from .traces import basic, buffer, call, event, header, packed, trace

CONFORMANCE = Path(__file__).parents[2] / "conformance" / "xray"
KEPT = {
    "slices": ("ticks", "xray_ticks", "xray_function", "xray_cpu", "xray_exit", "xray_entry"),
    "instants": ("ticks", "xray_cpu", "xray_event_type"),
    "args": ("uint", "type"),
}


def _cut(capture: EventCapture, selection: Selection, **options: Any) -> tuple[bytes, Any]:
    sink = Sink.memory()
    left_out = extract(capture, selection, sink, {**capture.writer_options, **options})
    return sink.getvalue(), left_out


def _shown(capture: Any) -> dict[tuple[str, str], list[Any]]:
    return {
        (name, column): capture.table(name).array(column).tolist()
        for name, columns in KEPT.items()
        for column in columns
    }


def _real(name: str) -> EventCapture:
    data = (CONFORMANCE / f"{name}.xray").read_bytes()
    return opened(data, "xray-basic" if name.startswith("basic") else "xray")


REAL = ("fdr5-all-clang16", "fdr5-mt-clang16", "basic3-mt-clang16", "llvmwriter/v3-allrecords")


def _halves(capture: EventCapture) -> Iterator[Selection]:
    summary = capture.summary()
    assert summary.start_ns is not None
    assert summary.end_ns is not None
    middle = (summary.start_ns + summary.end_ns) // 2
    yield Selection(stop_ns=middle)
    yield Selection(start_ns=middle)
    tids = capture.event_threads()[1].tolist()
    yield Selection(threads=(str(tids[-1]),))


@cases("name", REAL)
def test_a_part_has_the_rows_of_the_window(name: str) -> None:
    whole = _real(name)
    for selection in _halves(whole):
        data, left_out = _cut(whole, selection)
        part = opened(data, whole.format)
        window = whole.select(selection)
        assert _shown(part) == _shown(window)
        assert left_out.get("slices", 0) == len(whole.table("slices")) - len(part.table("slices"))
        assert (part.version, part.frequency, part.buffer_size) == (
            whole.version, whole.frequency, whole.buffer_size,
        )  # fmt: skip
        assert not [f for f in part.diagnostics if f.severity >= Severity.WARNING]


@share(2 / 3)
@given(seed=st.integers(0, 1 << 32), start=st.integers(0, 1 << 41), length=st.integers(0, 1 << 41))
def test_any_part_has_the_rows_of_the_window(seed: int, start: int, length: int) -> None:
    events, payloads = chance_events(seed, 60)
    whole = opened(packed_events(events, payloads, 5)[0])
    selection = Selection(start_ns=start, stop_ns=start + length)
    data, _ = _cut(whole, selection)
    part = opened(data)
    # A call that is left may leave one alone that it closed, whose exit is then its own.
    wanted = _shown(whole.select(selection))
    for column in ("ticks", "xray_function", "xray_cpu", "xray_entry"):
        assert _shown(part)["slices", column] == wanted["slices", column]


def test_all_of_it_is_the_file_itself() -> None:
    for data, form in ((trace(), "xray"), (trace(5, "big"), "xray"), (basic(), "xray-basic")):
        capture = opened(data, form)
        assert _cut(capture, Selection()) == (data, {})


def test_a_part_of_a_part_is_the_same_file() -> None:
    for name in REAL:
        whole = _real(name)
        for selection in _halves(whole):
            data, _ = _cut(whole, selection)
            assert _cut(opened(data, whole.format), selection)[0] == data


def test_unmatched_exits_and_open_calls_stay() -> None:
    records = (call(3, "exit"), call(1), call(2), call(2, "exit"), call(9, "tail_exit"))
    whole = opened(header() + buffer(*records, cpu=1) + buffer(call(), thread=8))
    data, left_out = _cut(whole, Selection(threads=("7",)))
    kinds = [chunk.kind.tolist() for chunk in opened(data).events()]
    assert kinds == [[1, 0, 0, 1, 2]]
    assert left_out == {"slices": 1}


def test_a_version_may_be_asked_for() -> None:
    whole = opened(trace(5))
    data, left_out = _cut(whole, Selection(), version=2, buffer_size=4096)
    part = opened(data)
    assert (part.version, part.buffer_size) == (2, 4096)
    assert left_out.dropped["typed events"] == 1
    assert _shown(part)["slices", "ticks"] == _shown(whole)["slices", "ticks"]


def test_big_endian_traces_stay_so() -> None:
    whole = opened(trace(5, "big"))
    data, _ = _cut(whole, Selection(stop_ns=whole.summary().end_ns))
    assert opened(data).byte_order == "big"


# --- Salvage --------------------------------------------------------------------------------------


def _salvaged(capture: EventCapture) -> tuple[bytes, list[Loss]]:
    sink = Sink.memory()
    losses = list(salvage(capture, sink, capture.writer_options))
    return sink.getvalue(), losses


@cases(
    "name",
    [
        "damaged/extent-huge", "damaged/extent-minus8", "damaged/extent-zero",
        "damaged/no-newcpuid", "damaged/trailing-garbage", "damaged/truncated-mid-metadata",
        "damaged/unknown-metadata-kind10-at-newbuffer", "damaged/version6",
        "fdr5-tailmigrate-corrupt-clang19", "fdr5-typed-shortextents-clang16",
    ],
)  # fmt: skip
def test_what_is_sound_is_a_sound_trace(name: str) -> None:
    damaged = _real(name)
    data, losses = _salvaged(damaged)
    assert losses
    sound = opened(data)
    sound.scan()
    assert not [f for f in sound.diagnostics if f.severity >= Severity.WARNING]
    assert _shown(sound) == _shown(damaged)


@cases("size", [-1, 40, 300, 1 << 30])
def test_where_nothing_bounds_a_buffer_the_next_one_does(size: int) -> None:
    """Extents that noise has put there, and an event of any size behind them."""
    empty = packed(event(b""))
    size_of = size.to_bytes(4, "little", signed=True)
    noise = packed(fx.BufferExtents(bytes=1 << 40)) + empty[:1] + size_of + empty[5:]
    sound = buffer(call(), call(kind="exit"))
    data, losses = _salvaged(opened(header() + sound + noise + 3 * sound))
    assert _shown(opened(data)) == _shown(opened(header() + 4 * sound))
    assert sum(loss.nbytes for loss in losses) == 16


def test_sound_traces_keep_their_bytes() -> None:
    for data, form in ((trace(), "xray"), (trace(1), "xray"), (basic(), "xray-basic")):
        assert _salvaged(opened(data, form)) == (data, [])


def test_what_nanoseconds_cannot_hold_is_left_out() -> None:
    late = (1 << 63) + 8
    records = call(), fx.TscWrap(tsc=late), call(2), event(b"hello")
    data = header(cycle_frequency=1_000_000_000) + buffer(*records)
    for each in (data, data + b"odd"):
        out, losses = _salvaged(opened(each))
        assert [(loss.what, loss.nbytes) for loss in losses if loss.code == "FXX0305"] == [
            ("function", 8), ("event", 21),
        ]  # fmt: skip
        sound = opened(out)
        sound.scan()
        assert not [f for f in sound.diagnostics if f.severity >= Severity.WARNING]
        assert sound.row_counts()["slices"] == 1
        assert _salvaged(opened(out)) == (out, [])


def test_records_of_unknown_kind_that_are_left_out_are_lost(tmp_path: Path) -> None:
    """Although the finding about them is a warning only."""
    before, after = tmp_path / "a.xray", tmp_path / "b.xray"
    unknown = bytes([77 << 1 | 1]).ljust(16, b"\0")
    before.write_bytes(header() + buffer(call(), unknown, call(kind="exit")))
    result = run_cli("salvage", before, after)
    assert result.exit_code == 3
    assert "lost: 1 record, 16 bytes" in result.stderr


def test_arguments_of_no_call_are_lost_records(tmp_path: Path) -> None:
    before, after = tmp_path / "a.xray", tmp_path / "b.xray"
    argument = fx.CallArgument(value=5)
    before.write_bytes(header() + buffer(argument, argument, call(), call(kind="exit"), short=3))
    result = run_cli("salvage", before, after)
    assert result.exit_code == 3
    assert "lost: 2 records, 32 bytes" in result.stderr
    with fxf.open(before) as capture:
        places = [record.offset for record in capture.records() if record.nbytes == 16][-2:]
    data, losses = _salvaged(opened(before.read_bytes()))
    lost = [(loss.offset, loss.what) for loss in losses if loss.nbytes]
    assert lost == [(place, "call_argument") for place in places]
    assert data == after.read_bytes()


ANOTHER_CALL = {"function": {"function_id": 77}, "thread": {"thread": 5}, "process": {"process": 6}}


def _with_argument(**other: int) -> bytes:
    """A log of basic mode that ends with an argument of another call."""
    own = {"function_id": 4, "thread": 7, "process": 9}
    return basic() + fx.BasicArgument(value=8, **{**own, **other}).pack()


@cases("name", list(ANOTHER_CALL))
def test_arguments_of_another_call_are_lost_records(name: str) -> None:
    """They do not become those of the call before them."""
    for damage in (b"", b"\1" * 32):
        data = _with_argument(**ANOTHER_CALL[name]) + damage
        sound, losses = _salvaged(opened(data, "xray-basic"))
        of_records = [(loss.offset, loss.what) for loss in losses if loss.nbytes]
        assert (len(basic()), "call_argument") in of_records
        assert len(of_records) == 1 + bool(damage)
        assert opened(sound, "xray-basic").table("args").array("parent").tolist() == [1]
        assert _salvaged(opened(sound, "xray-basic")) == (sound, [])


@cases("name", list(ANOTHER_CALL))
def test_arguments_of_another_call_are_left_out_of_the_other_form(
    name: str, tmp_path: Path
) -> None:
    before, after = tmp_path / "a.xray", tmp_path / "b.xray"
    before.write_bytes(_with_argument(**ANOTHER_CALL[name]))
    result = run_cli("convert", before, after, "-t", "xray")
    assert "arguments of no call (1)" in result.stderr
    with fxf.open(after) as capture:
        assert capture.table("args").array("parent").tolist() == [1]


@cases(
    ("version", "records", "lost"),
    [
        (2, [event(b"hello", event_type=7)], [("event", 21)]),
        (1, [event(b"x" * 5000), call()], [("event", 5016)]),
    ],
)
def test_events_that_a_version_cannot_hold_are_lost_records(
    version: int, records: list[fx.XrayRecord], lost: list[tuple[str, int]]
) -> None:
    capture = opened(header(buffer_size=4096) + buffer(*records, call(kind="exit"), short=3))
    losses = salvage(capture, Sink.memory(), {"version": version})
    assert [(loss.what, loss.nbytes) for loss in losses if loss.nbytes] == lost


def test_losses_say_where_they_are() -> None:
    data = header() + buffer(call(), event(b"hello"), call(kind="exit"), short=3)
    _, losses = _salvaged(opened(data))
    assert [(loss.offset, loss.nbytes, loss.code) for loss in losses]
    odd = basic() + b"\1" * 40
    sound, losses = _salvaged(opened(odd, "xray-basic"))
    assert _shown(opened(sound, "xray-basic")) == _shown(opened(basic(), "xray-basic"))
    assert sum(loss.nbytes for loss in losses) == 40
