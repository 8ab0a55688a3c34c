"""Runs: sorts rows by time in bounded memory."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.io.temporary import TemporaryFile
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import stable_order

Columns = dict[str, NDArray[Any]]
RUN = 1 << 20
"""Default number of rows in a run, which are sorted in memory."""
FENCE = 1 << 11
"""The time of every FENCE-th row of a run is kept in memory."""


@attrs.frozen
class _Run:
    """Sorted rows in the file."""

    rows: int
    starts: Mapping[str, int]
    """Byte offset of each column."""
    fences: I64
    """Times of the rows 0, FENCE, 2 * FENCE, …"""


class SortedRuns:
    """Sorts rows of columns by ``time`` (int64), stably.

    Up to ``run`` rows (None: ``RUN``) are sorted in memory. More are written to a temporary file in
    sorted runs, which ``windows`` merges: about half as many rows are in a window.
    """

    def __init__(self, run: int | None = None) -> None:
        self._run = RUN if run is None else run
        self._waiting: list[Columns] = []
        """The columns of the unfinished run, in parts."""
        self._rows = 0
        """Number of rows in the unfinished run."""
        self._runs: list[_Run] = []
        self._file: TemporaryFile | None = None
        self._types: dict[str, np.dtype[Any]] = {}

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add rows; all calls must have the same columns of the same types, of shape (rows,)."""
        self._types = {name: column.dtype for name, column in columns.items()}
        size = columns["time"].size
        start = 0
        while start < size:
            if self._rows == self._run:
                self._end_run()
            stop = min(size, start + self._run - self._rows)
            self._waiting.append({name: column[start:stop] for name, column in columns.items()})
            self._rows += stop - start
            start = stop

    def windows(self) -> Iterator[tuple[Columns, I64]]:
        """Yield windows of rows with their order, once, after all rows were added.

        Rows of equal time are in the same window; each window is later than those before it.
        """
        if not self._runs:
            if self._rows:
                yield _in_order(self._taken())
            return
        self._end_run()
        # Each fence stands for FENCE rows of its run. Of the fences of all runs in order, two that
        # are this far apart therefore have about half a run of rows between them.
        fences_per_window = max(self._run // 2 // FENCE, 1)
        fences = np.sort(np.concatenate([run.fences for run in self._runs]))
        window_times = np.unique(fences[fences_per_window::fences_per_window]).tolist()
        starts = [0] * len(self._runs)
        for end_time in [*window_times, None]:
            stops = [self._first_row_at(run, end_time) for run in self._runs]
            if stops != starts:
                yield _in_order(self._read(starts, stops))
            starts = stops

    def _taken(self) -> Columns:
        """Return the rows of the unfinished run, copying one column at a time to save memory."""
        parts = self._waiting
        self._waiting = []
        self._rows = 0
        if len(parts) == 1:
            return parts[0]
        # A column leaves its parts as it is copied, so that they are freed one by one.
        return {name: np.concatenate([part.pop(name) for part in parts]) for name in self._types}

    def _end_run(self) -> None:
        """Sort the rows of the unfinished run, and write them."""
        if self._file is None:
            self._file = TemporaryFile()
            weakref.finalize(self, self._file.close)
        file = self._file
        rows = self._rows
        columns = self._taken()
        order = stable_order(np.ascontiguousarray(columns["time"]))
        starts: dict[str, int] = {}
        fences = np.zeros(0, np.int64)
        for name in self._types:
            column = columns.pop(name)
            if order is not None:
                column = column[order]
            column = np.ascontiguousarray(column)
            if name == "time":
                fences = column[::FENCE].copy()
            starts[name] = file.tell()
            file.write(column.data)
        self._runs.append(_Run(rows, starts, fences))

    def _first_row_at(self, run: _Run, time: int | None) -> int:
        """Return the first row of a run at or after a time; None means the end."""
        if time is None:
            return run.rows
        later_fence = int(np.searchsorted(run.fences, time))
        if not later_fence:
            return 0
        # The row is between the fence before and this one: read the times between them.
        start = FENCE * (later_fence - 1)
        times = np.empty(min(FENCE, run.rows - start), np.int64)
        self._fill(times, run, "time", start)
        return start + int(np.searchsorted(times, time))

    def _read(self, starts: list[int], stops: list[int]) -> Columns:
        """Return the rows of each run in a range, one run after the other."""
        total_rows = sum(stops) - sum(starts)
        columns = {name: np.empty(total_rows, dtype) for name, dtype in self._types.items()}
        rows_before = 0
        for run, start, stop in zip(self._runs, starts, stops, strict=True):
            rows_after = rows_before + stop - start
            for name, column in columns.items():
                self._fill(column[rows_before:rows_after], run, name, start)
            rows_before = rows_after
        return columns

    def _fill(self, out: NDArray[Any], run: _Run, name: str, start: int) -> None:
        """Read values of a column of a run, from row ``start`` on, until ``out`` is full."""
        assert self._file is not None  # noqa: S101 (there is a run)
        self._file.seek(run.starts[name] + start * out.itemsize)
        self._file.readinto(out.data)


def _in_order(columns: Columns) -> tuple[Columns, I64]:
    """Return rows with their stable order by time."""
    order = stable_order(np.ascontiguousarray(columns["time"]))
    if order is None:  # they are in order
        order = np.arange(columns["time"].size)
    return columns, order
