"""Parts by time: which records of a declared format are written."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest

from fxframework import Host, hookimpl, wire
from fxframework.errors import UsageError
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.model.selection import Selection
from fxframework.testing.cli import run_cli


def part(capture: Any, writer: Any, start: int) -> bytes:
    sink = Sink.memory()
    writer.extract(capture, Selection(start_ns=start), sink, {})
    return bytes(sink.getvalue())


def test_a_record_is_in_a_part_if_one_of_its_rows_is() -> None:
    class Span(wire.Record, size=16):
        start: int = wire.i64(unit="ns")
        end: int = wire.i64(unit="ns")

    tables = [
        wire.rows("instants", Span, ts="start", name=wire.always("e")),
        wire.rows("counters", Span, ts="end", name=wire.always("c"), series=wire.always("s")),
    ]
    form = wire.Format("spans", "Spans", Span, codes="SPAN", tables=tables)
    data = struct.pack("<8q", 1, 2, 3, 6, 4, 5, 7, 8)
    capture = form.reader.open(Source.open(data), OpenRequest())
    assert part(capture, form.writer, 5) == data[16:]


def test_no_part_is_written_where_records_with_times_count_from_those_before() -> None:
    clock = wire.register(0)

    class Tick(wire.Record, size=4):
        delta: int = wire.u32(adds=clock)

    tables = [wire.rows("instants", Tick, ts=clock, name=wire.always("e"))]
    form = wire.Format("ticks", "Ticks", Tick, codes="TICK", tables=tables)
    assert form.writer.extract is None
    lazy = wire.writer("ticks", form)
    capture = form.reader.open(Source.open(bytes(8)), OpenRequest())
    with pytest.raises(UsageError, match="no part of ticks files can be extracted"):
        part(capture, lazy, 5)


def test_a_host_writes_no_part_where_times_count_from_those_before(tmp_path: Path) -> None:
    clock = wire.register(0)

    class Tock(wire.Record, size=4):
        delta: int = wire.u32(adds=clock)

    tables = [wire.rows("instants", Tock, ts=clock, name=wire.always("e"))]
    form = wire.Format("tocks", "Tocks", Tock, codes="TOCK", tables=tables)

    class Plugin:
        @hookimpl
        def fx_readers(self) -> Any:
            return form.reader

        @hookimpl
        def fx_writers(self) -> Any:
            return form.writer

    host = Host(discover=False)
    host.register(Plugin(), name="tocks")
    whole = tmp_path / "whole.tocks"
    whole.write_bytes(struct.pack("<4I", 1, 2, 3, 4))
    for options in (["--since", "5ns"], ["--split", "2"], ["--function", "e"]):
        done = run_cli(
            "convert", "-f", "tocks", whole, tmp_path / "part.tocks", *options, host=host
        )
        assert done.exit_code == 2
        assert "no part of tocks files can be extracted" in done.stderr
    assert list(tmp_path.iterdir()) == [whole]
