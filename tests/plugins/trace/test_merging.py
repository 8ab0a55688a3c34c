"""Several captures become one archive, each a provider of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fxframework as fxf
from fx_trace.write.archive import Archive
from fx_trace.write.buffer import TraceBuffer
from fx_trace.write.merge import open_merge
from fx_trace.write.writer import TraceWriter
from fxframework.errors import UsageError, WriteRefusedError
from fxframework.io.memory import BytesMemory
from fxframework.io.sink import Sink
from fxframework.model.selection import Selection
from fxframework.testing.cli import run_cli

from .test_extracting import rows


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


def merged(*inputs: bytes, selection: Selection | None = None, **options: Any) -> bytes:
    sink = Sink.memory()
    session = open_merge(sink, options)
    for data in inputs:
        with fxf.open(data) as capture:
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
    # Provider 0 is listed first.
    assert providers(merged(trace("x"), bare, bare)) == [(0, "<bytes>"), (1, "x"), (2, "<bytes>")]


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


def test_both_byte_orders_do_not_mix() -> None:
    both = merged(trace("a", big_endian=True), trace("b", big_endian=True))
    assert providers(both) == [(1, "a"), (2, "b")]
    with pytest.raises(WriteRefusedError) as refused:
        merged(trace("a"), trace("b", big_endian=True))
    assert refused.value.code == "FXT0413"


@pytest.mark.parametrize("option", ["perfetto_safe", "big_endian"])
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
    result = run_cli("convert", tmp_path / "b.tbuf", tmp_path / "b.fxt")
    assert result.exit_code == 0
    assert providers((tmp_path / "b.fxt").read_bytes()) == [(1, "b.tbuf")]
