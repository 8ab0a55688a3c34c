"""Parts by time: which records of a declared format are written."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from fxframework import wire
from fxframework.errors import UsageError
from fxframework.io.sink import Sink
from fxframework.io.source import Source
from fxframework.model.capture import OpenRequest
from fxframework.model.selection import Selection


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
