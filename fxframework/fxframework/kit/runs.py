"""Runs: sorts rows by time in bounded memory."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.io.temporary import TemporaryFile
from fxframework.kernels.sorting import stable_order

__all__ = ["SortedRuns"]

I64 = NDArray[np.int64]
RUN = 1 << 20
"""Default number of rows in a run, which are sorted in memory."""
WINDOW = 1 << 19
"""Approximate number of rows in a window."""
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

    Up to ``run`` rows (0: ``RUN``) are sorted in memory. More are written to a temporary file in
    sorted runs, which ``windows`` merges.
    """

    def __init__(self, run: int = 0) -> None:
        self._run = run or RUN
        self._waiting: list[dict[str, NDArray[Any]]] = []
        self._rows = 0
        """Number of rows in the unfinished run."""
        self._runs: list[_Run] = []
        self._file: TemporaryFile | None = None
        self._types: dict[str, np.dtype[Any]] = {}

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Add rows; all calls must have the same columns of the same types, of shape (rows,)."""
        self._types = {name: column.dtype for name, column in columns.items()}
        at, size = 0, columns["time"].size
        while at < size:
            if self._rows == self._run:
                self._end_run()
            stop = min(size, at + self._run - self._rows)
            self._waiting.append({name: column[at:stop] for name, column in columns.items()})
            self._rows += stop - at
            at = stop

    def windows(self) -> Iterator[tuple[dict[str, NDArray[Any]], I64]]:
        """Yield windows of rows with their order, once, after all rows were added.

        Rows of equal time are in the same window; each window is later than those before it.
        """
        if not self._runs:
            if self._rows:
                yield _in_order(self._taken())
            return
        self._end_run()
        every = max(WINDOW // FENCE, 1)
        fences = np.sort(np.concatenate([run.fences for run in self._runs]))
        done = [0] * len(self._runs)
        for bound in [*np.unique(fences[every::every]).tolist(), None]:
            stops = [self._place(run, bound) for run in self._runs]
            if stops != done:
                yield _in_order(self._read(done, stops))
            done = stops

    def _taken(self) -> dict[str, NDArray[Any]]:
        """Return the rows of the unfinished run, copying one column at a time to save memory."""
        waiting, self._waiting, self._rows = self._waiting, [], 0
        if len(waiting) == 1:
            return waiting[0]
        return {name: np.concatenate([some.pop(name) for some in waiting]) for name in self._types}

    def _end_run(self) -> None:
        """Sort the rows of the unfinished run, and write them."""
        if self._file is None:
            self._file = TemporaryFile()
            weakref.finalize(self, self._file.close)
        rows, file = self._rows, self._file
        columns = self._taken()
        order = stable_order(np.ascontiguousarray(columns["time"]))
        starts: dict[str, int] = {}
        fences = np.zeros(0, np.int64)
        for name in self._types:
            column = columns.pop(name)
            column = np.ascontiguousarray(column if order is None else column[order])
            if name == "time":
                fences = column[::FENCE].copy()
            starts[name] = file.tell()
            file.write(column.data)
        self._runs.append(_Run(rows, starts, fences))

    def _place(self, run: _Run, bound: int | None) -> int:
        """Return the first row of a run at or after a time; None means the end."""
        if bound is None:
            return run.rows
        fence = int(np.searchsorted(run.fences, bound))
        if not fence:
            return 0
        first = FENCE * (fence - 1)
        times = np.empty(min(FENCE, run.rows - first), np.int64)
        self._fill(times, run, "time", first)
        return first + int(np.searchsorted(times, bound))

    def _read(self, starts: list[int], stops: list[int]) -> dict[str, NDArray[Any]]:
        """Return the rows of each run in a range, one run after the other."""
        total = sum(stops) - sum(starts)
        columns = {name: np.empty(total, kind) for name, kind in self._types.items()}
        at = 0
        for run, start, stop in zip(self._runs, starts, stops, strict=True):
            for name, column in columns.items():
                self._fill(column[at : at + stop - start], run, name, start)
            at += stop - start
        return columns

    def _fill(self, out: NDArray[Any], run: _Run, name: str, first: int) -> None:
        """Read values of a column from row ``first`` on."""
        assert self._file is not None  # noqa: S101 (there is a run)
        self._file.seek(run.starts[name] + first * out.itemsize)
        self._file.readinto(out.data)


def _in_order(columns: dict[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], I64]:
    """Return rows with their stable order by time."""
    order = stable_order(np.ascontiguousarray(columns["time"]))
    return columns, np.arange(columns["time"].size) if order is None else order
