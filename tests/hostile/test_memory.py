"""What an output holds beside what is read grows by a few bytes for each byte of the file.

Memory is that which Python and numpy allocate, at its most, less that after the file is read.
What is taken at a time is less than usual, so that small files show what grows.
`python tests/hostile/table.py` measures the memory of processes, on larger files.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from fx_trace.write import bulk
from fx_xray.read import timeline
from fxframework.exporters.perfetto import arguments, export, order, threads
from fxframework.host import default_host
from fxframework.io import arena, spill
from fxframework.io.sink import Sink
from fxframework.model.capture import Capture
from fxframework.model.table import Table
from fxframework.registry import Writer, parse_options

from .shapes import SHAPES

SIZES = (100_000, 400_000)
SMALL = 1 << 10
"""Rows, arguments and events that are taken at a time."""
CASES = [
    ("perfetto", "trace-begins-backwards", 8),
    ("perfetto", "trace-asynchronous", 16),
    ("perfetto", "trace-threads", 8),
    ("perfetto", "trace-objects", 10),
    ("perfetto", "log-null-arguments", 8),
    ("perfetto", "xray-enters", 8),
    ("perfetto", "xray-enters-of-functions", 12),
    ("perfetto", "xray-basic-basic-threads", 11),
    ("csv", "log-null-arguments", 4),
    ("trace", "xray-functions", 12),
    ("trace", "xray-enters", 9),
    ("json", "xray-enters", 28),
    ("json", "trace-threads", 22),
]
"""What a shape becomes, and how many bytes are held at most for a byte of the file."""


def held(shape: str, data: bytes, name: str) -> int:
    """The most bytes that are allocated at a time for an output, beside those of reading."""
    format, _ = SHAPES[shape]
    tracemalloc.start()
    try:
        with default_host().open(data, format=format) as capture:
            capture.scan()
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            writer = default_host().writers.get(name)
            target = writer or default_host().exporter(name, format=format, tables=capture.tables)
            begin = target.merge if isinstance(target, Writer) else target.open
            assert begin is not None
            session = begin(Sink.nowhere(), parse_options({}, target.options, whose=name))
            session.write(capture)
            session.close()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("name", "shape", "most"), CASES)
def test_an_output_holds_little(
    name: str, shape: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """May take seconds: all that is allocated is counted, in files large enough to show growth."""
    for module, constant in (
        (order, "ROWS"),
        (spill, "IN_MEMORY"),
        (export, "ROWS"),
        (export, "CHUNK"),
        (export, "ENDS"),
        (arguments, "CHUNK"),
        (threads, "CHUNK"),
        (threads, "ROWS"),
        (timeline, "TOGETHER"),
        (bulk, "BLOCK"),
    ):
        monkeypatch.setattr(module, constant, SMALL)
    batches = Capture.batches

    def few(self: Capture, table: str, rows: int = SMALL) -> Iterator[Table]:
        return batches(self, table, min(rows, SMALL))

    monkeypatch.setattr(Capture, "batches", few)
    monkeypatch.setattr(arena, "SMALL", 1 << 60)  # so that all is counted
    small, large = (held(shape, SHAPES[shape][1](nbytes), name) for nbytes in SIZES)
    assert large - small <= most * (SIZES[1] - SIZES[0]), (small, large)
