"""Windows: the rows of several tables of a capture, in file order.

All rows of one record are in the same window, so that rows of several tables can be put in file
order, and arguments joined to their records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from fxframework.kit.row_texts import string_bytes
from fxframework.model.capture import Capture, under_views
from fxframework.model.strings import TextColumn
from fxframework.model.table import ColumnData, Table

I64 = NDArray[np.int64]
ROWS = 1 << 16
"""Rows of a batch."""
TEXT_BYTES = 8 << 20
"""Most bytes of strings of a window's rows, except those of its last record."""


def windows(capture: Capture, names: Iterable[str]) -> Iterator[dict[str, Table]]:
    """Yield the rows of several tables in file order, as windows with all rows of their records.

    Requires tables in the order of their offsets, which are adjusted to the order of reading.
    """
    streams = {
        name: _in_order(capture, capture.batches(name, ROWS))
        for name in names
        if name in capture.schemas
    }
    held: dict[str, tuple[Table, I64, int]] = {}
    while True:
        for name in list(streams):
            _fill(name, streams, held)
        if not held:
            return
        # The next batch may have more rows of the last record.
        limit = min((int(held[name][1][-1]) for name in streams), default=None)
        window = {}
        for name, (table, offsets, start) in list(held.items()):
            stop = len(table) if limit is None else int(np.searchsorted(offsets, limit))
            if stop > start:
                window[name] = table.select(slice(start, stop))
            if stop == len(table):
                del held[name]
            else:
                held[name] = (table, offsets, max(start, stop))
        yield from _pieces(window)


def _pieces(window: dict[str, Table]) -> Iterator[dict[str, Table]]:
    """Yield the window, in pieces if its rows refer to many bytes of strings."""
    offsets = {name: table.array("offset") for name, table in window.items()}
    costs = {name: string_bytes(table) for name, table in window.items()}
    if sum(int(cost.sum()) for cost in costs.values()) <= TEXT_BYTES:
        yield window
        return
    where = np.concatenate(list(offsets.values()))
    order = np.argsort(where, kind="stable")
    total = np.cumsum(np.concatenate(list(costs.values()))[order])
    where = where[order]
    _, last = np.unique(total // TEXT_BYTES, return_index=True)
    bounds = [*np.unique(where[last[1:]]).tolist(), int(where[-1]) + 1]
    starts = dict.fromkeys(window, 0)
    for bound in bounds:
        piece = {}
        for name, table in window.items():
            start, stop = starts[name], int(np.searchsorted(offsets[name], bound))
            starts[name] = stop
            if stop > start:
                piece[name] = table.select(slice(start, stop))
        if piece:
            yield piece


def _in_order(capture: Capture, batches: Iterator[Table]) -> Iterator[Table]:
    """Yield the batches with ascending offsets, even if a trace buffer is read from its middle."""
    whole = under_views(capture)
    read_order: Callable[[I64], I64] | None = getattr(whole, "read_order", None)
    for batch in batches:
        offsets = batch.array("offset")
        ordered = offsets if read_order is None else read_order(offsets)
        yield batch if ordered is offsets else batch.replaced(offset=ordered)


def _fill(
    name: str, streams: dict[str, Iterator[Table]], held: dict[str, tuple[Table, I64, int]]
) -> None:
    """Load rows of at least two records of a table that continues."""
    while name not in held or held[name][1][held[name][2]] == held[name][1][-1]:
        batch = next(streams[name], None)
        if batch is None:
            del streams[name]
            return
        if name in held:
            table, _, start = held[name]
            batch = joined([table.select(slice(start, None)), batch])
        if len(batch):
            held[name] = (batch, batch.array("offset"), 0)


def last_offset(window: Mapping[str, Table]) -> int:
    """Return the greatest offset of a window."""
    return max(int(table.array("offset")[-1]) for table in window.values())


def joined(tables: list[Table]) -> Table:
    """Return the rows of several tables of one schema as one table."""

    def column(name: str) -> ColumnData:
        parts = [table[name] for table in tables]
        if isinstance(parts[0], TextColumn):
            return TextColumn.of(
                part.bytes_of(row)
                for part in parts
                if isinstance(part, TextColumn)
                for row in range(len(part))
            )
        return np.concatenate(parts)

    first = tables[0]
    return Table(
        first.schema,
        sum(map(len, tables)),
        {name: column(name) for name in first.columns},
        first.pool,
    )
