"""Windows: the rows of several tables of a capture, in file order.

All rows of one record are in the same window, so that rows of several tables can be put in file
order, and arguments joined to their records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np

from fxframework.kernels.arrays import I64
from fxframework.kit.row_texts import string_bytes
from fxframework.model.capture import Capture, under_views
from fxframework.model.strings import TextColumn
from fxframework.model.table import ColumnData, Table

ROWS = 1 << 16
"""Rows of a batch."""
TEXT_BYTES = 8 << 20
"""Most bytes of strings of a window's rows, except those of its last record."""


@attrs.define
class LoadedRows:
    """Rows of a table that were read from the capture."""

    table: Table
    offsets: I64
    start: int = 0
    """The first row that is not in a window yet."""


def windows(capture: Capture, names: Iterable[str]) -> Iterator[dict[str, Table]]:
    """Yield the rows of several tables in file order, as windows with all rows of their records.

    Requires tables in the order of their offsets, which are adjusted to the order of reading.
    """
    present_tables = [name for name in names if name in capture.schemas]
    streams = {name: _in_order(capture, capture.batches(name, ROWS)) for name in present_tables}
    loaded: dict[str, LoadedRows] = {}
    while True:
        for name in list(streams):
            _load(name, streams, loaded)
        if not loaded:
            return
        # The next batch of a table may have more rows of the last record that is loaded.
        last_offsets = [int(loaded[name].offsets[-1]) for name in streams]
        limit = min(last_offsets, default=None)
        window: dict[str, Table] = {}
        for name, rows in list(loaded.items()):
            stop = len(rows.table)
            if limit is not None:
                stop = int(np.searchsorted(rows.offsets, limit))
            if stop > rows.start:
                window[name] = rows.table.select(slice(rows.start, stop))
            rows.start = max(rows.start, stop)
            if stop == len(rows.table):
                del loaded[name]
        yield from _pieces(window)


def _pieces(window: dict[str, Table]) -> Iterator[dict[str, Table]]:
    """Yield the window, in pieces if its rows refer to many bytes of strings."""
    offsets = {name: table.array("offset") for name, table in window.items()}
    costs = {name: string_bytes(table) for name, table in window.items()}
    if sum(int(cost.sum()) for cost in costs.values()) <= TEXT_BYTES:
        yield window
        return
    # All rows by offset, and how many bytes those up to each have. A piece ends before the record
    # at which the bytes reach the next multiple of TEXT_BYTES.
    every_offset = np.concatenate(list(offsets.values()))
    order = np.argsort(every_offset, kind="stable")
    every_offset = every_offset[order]
    costs_in_order = np.concatenate(list(costs.values()))[order]
    bytes_so_far = np.cumsum(costs_in_order)
    _, first_rows = np.unique(bytes_so_far // TEXT_BYTES, return_index=True)
    limits = np.unique(every_offset[first_rows[1:]]).tolist()
    starts = dict.fromkeys(window, 0)
    for limit in [*limits, int(every_offset[-1]) + 1]:
        tables: dict[str, Table] = {}
        for name, table in window.items():
            start = starts[name]
            stop = int(np.searchsorted(offsets[name], limit))
            starts[name] = stop
            if stop > start:
                tables[name] = table.select(slice(start, stop))
        if tables:
            yield tables


def _in_order(capture: Capture, batches: Iterator[Table]) -> Iterator[Table]:
    """Yield the batches with ascending offsets, even if a trace buffer is read from its middle."""
    whole_capture = under_views(capture)
    read_order: Callable[[I64], I64] | None = getattr(whole_capture, "read_order", None)
    for batch in batches:
        offsets = batch.array("offset")
        reading_offsets = offsets if read_order is None else read_order(offsets)
        if reading_offsets is offsets:
            yield batch
        else:
            yield batch.replaced(offset=reading_offsets)


def _load(name: str, streams: dict[str, Iterator[Table]], loaded: dict[str, LoadedRows]) -> None:
    """Load rows of at least two records of a table that continues."""
    while name not in loaded or has_one_record(loaded[name]):
        batch = next(streams[name], None)
        if batch is None:
            del streams[name]
            return
        if name in loaded:
            rows = loaded[name]
            rows_left = rows.table.select(slice(rows.start, None))
            batch = joined([rows_left, batch])
        if len(batch):
            loaded[name] = LoadedRows(batch, batch.array("offset"))


def has_one_record(rows: LoadedRows) -> bool:
    """Return whether all rows that are in no window yet are of one record."""
    return bool(rows.offsets[rows.start] == rows.offsets[-1])


def last_offset(window: Mapping[str, Table]) -> int:
    """Return the greatest offset of a window."""
    last_offsets = [table.array("offset")[-1] for table in window.values()]
    return int(max(last_offsets))


def joined(tables: list[Table]) -> Table:
    """Return the rows of several tables of one schema as one table."""

    def column(name: str) -> ColumnData:
        columns: list[Any] = [table[name] for table in tables]
        if isinstance(columns[0], TextColumn):
            return TextColumn.joined(columns)
        return np.concatenate(columns)

    schema = tables[0].schema
    columns = {name: column(name) for name in tables[0].columns}
    return Table(schema, sum(map(len, tables)), columns, tables[0].pool)
