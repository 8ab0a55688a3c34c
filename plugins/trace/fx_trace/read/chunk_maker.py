"""The chunk maker: where raw rows are put, run by run, until they are taken as a chunk."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace.kinds import RecordType
from fx_trace.meaning import (
    COLUMNS,
    EVENTS_OF,
    Cells,
    are_rows_of,
    counts_of,
    is_numeric,
    rows_of_events,
)
from fx_trace.read.chunks import Chunk, filled_of
from fx_trace.read.threads import TaskCollector, Tasks
from fxframework.io.source import Source
from fxframework.kernels.arrays import I64
from fxframework.model.strings import StringPool

ROWS_OF = {
    "sched": "sched", "logs": "logs", "args": "args", "blobs": "blobs", "objects": "trace_objects",
    "profiler": "trace_profiler", "counters": "counters",
}  # fmt: skip
"""By raw rows, the table that has as many."""


class ChunkMaker(abc.ABC):
    """Collects raw rows until they are taken as a chunk, and counts those of the whole file."""

    source: Source
    strings: StringPool
    records: int
    """Number of records so far."""

    def __init__(self) -> None:
        tables = (*ROWS_OF.values(), *EVENTS_OF)
        self.rows = dict.fromkeys(tables, 0)
        """Rows so far, by table, and of `ends`."""
        self.kinds_seen = np.zeros(wire.KINDS, np.int64)
        """Records of each kind: by 16 * type + subtype, and by the numbers of ``format``."""
        self.types_seen = 0
        """A bit for each type of argument so far."""
        self.has_end_args = False
        """Whether any end event has arguments."""
        self.unnamed: list[int] = []
        """Codes of ``<str#N>`` that were not given to a chunk yet."""
        self.parts: dict[str, list[Cells]] = {name: [] for name in COLUMNS}
        """The rows of a chunk, by run."""
        self.clock_parts: list[I64] = []
        self.outside: list[I64] = []

    @property
    @abc.abstractmethod
    def pids(self) -> I64:
        """The process of each thread so far, shape (threads,)."""

    @abc.abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Yield the rows of the whole file."""

    @abc.abstractmethod
    def known_tasks(self, collector: TaskCollector) -> Tasks:
        """Return the threads and processes of the whole file, with those of a collector."""

    def events_seen(self, *kinds: int) -> int:
        """Return the number of events of these types so far."""
        counts = self.kinds_seen[16 * RecordType.EVENT :]
        return sum(int(counts[kind]) for kind in kinds)

    def rows_in_chunk(self, table: str) -> int:
        """Return how many rows of the next chunk there are so far."""
        return sum(next(iter(cells.values())).size for cells in self.parts[table])

    def count_rows(self, table: str, cells: Cells) -> None:
        """Count rows that were put."""
        if table in ROWS_OF:
            self.rows[ROWS_OF[table]] += cells["offset"].size
            return
        counts = counts_of(cells["kind"])
        for name, kinds in EVENTS_OF.items():
            own_counts = counts[list(kinds)]
            self.rows[name] += int(own_counts.sum())

    def event_rows(self, kinds: NDArray[Any]) -> I64:
        """Return the row of each event in its table, or what stands for the slice that it ends."""
        rows = rows_of_events(kinds, self.rows)
        is_end = are_rows_of("ends", kinds)
        return np.where(is_end, wire.PARENT_END - rows, rows) if is_end.any() else rows

    def put_args(self, cells: Cells) -> None:
        """Put the arguments of records whose own rows were put last, in the order of the file.

        ``row`` has the place of each one's record among these rows.
        """
        present = np.flatnonzero(counts_of(cells["type"]))
        type_bits = (1 << kind for kind in present.tolist())
        self.types_seen |= sum(type_bits)
        is_of_end = cells["parent"] <= wire.PARENT_END
        self.has_end_args |= bool(is_of_end.any())
        if (cells["table"] == wire.TABLE_COUNTERS).any():
            self.put_counters(cells)
        self.parts["args"].append(cells)
        self.rows["args"] += cells["type"].size

    def put_counters(self, cells: Cells) -> None:
        """Make a row for each argument of a counter that is a number; others have no row."""
        of_counters = cells["table"] == wire.TABLE_COUNTERS
        args = np.flatnonzero(of_counters & is_numeric(cells["type"]))
        parent = np.where(of_counters, -1, cells["parent"])
        first_row = self.rows["counters"]
        parent[args] = np.arange(first_row, first_row + args.size)
        cells["parent"] = parent
        # The rows of the run's events are put already, those of its arguments are not.
        events_of_run = self.parts["events"][-1]["offset"].size
        first_event = self.rows_in_chunk("events") - events_of_run
        first_arg = self.rows_in_chunk("args")
        events = first_event + cells["row"][args]
        self.parts["counters"].append({"event": events, "arg": first_arg + args})
        self.rows["counters"] += args.size

    def take_chunk(self, first: dict[str, int], end: int) -> Chunk:
        """Return the rows since the last chunk, and forget them."""
        filled = {table: filled_of(table, parts) for table, parts in self.parts.items()}
        no_clocks = np.zeros((0, 2), np.int64)
        clocks = np.concatenate([no_clocks, *self.clock_parts])
        no_offsets = np.zeros(0, np.int64)
        outside = np.concatenate([no_offsets, *self.outside])
        chunk = Chunk(
            **filled, first=first, after=dict(self.rows), clocks=clocks, outside=outside,
            unnamed=self.unnamed, pids=self.pids, end=end,
        )  # fmt: skip
        self.unnamed = []
        self.clock_parts.clear()
        self.outside.clear()
        for parts in self.parts.values():
            parts.clear()
        return chunk
