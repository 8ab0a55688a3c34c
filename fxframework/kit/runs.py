"""Runs: rows in order of time, of which only a few are in memory at a time."""

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
"""Rows that are sorted at once, where nothing else is said."""
WINDOW = 1 << 19
"""Rows of a window, about."""
FENCE = 1 << 11
"""Every so many rows of a run, its time is noted."""


@attrs.frozen
class _Run:
    """Sorted rows in the file."""

    rows: int
    starts: Mapping[str, int]
    """Byte at which each column begins."""
    fences: I64
    """Times of the rows 0, FENCE, 2 * FENCE, …"""


class SortedRuns:
    """Rows of columns that are sorted by ``time`` (int64), the order of their coming within ties.

    Up to ``run`` of them (0: ``RUN``) are sorted in memory. More go to a temporary file in runs of
    so many, each sorted by itself, which ``windows`` merges.
    """

    def __init__(self, run: int = 0) -> None:
        self._run = run or RUN
        self._waiting: list[dict[str, NDArray[Any]]] = []
        self._rows = 0
        """Rows that wait to become a run."""
        self._runs: list[_Run] = []
        self._file: TemporaryFile | None = None
        self._types: dict[str, np.dtype[Any]] = {}

    def add(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Take in rows, of shape (rows,): in each call the same columns, of the same types."""
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
        """Rows, all of one time in the same window, and their order; once, after all were added.

        Each window is later than those before it.
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
        """The rows that wait; column by column, so that no two copies of all are there at once."""
        waiting, self._waiting, self._rows = self._waiting, [], 0
        if len(waiting) == 1:
            return waiting[0]
        return {name: np.concatenate([some.pop(name) for some in waiting]) for name in self._types}

    def _end_run(self) -> None:
        """Sort the rows that wait, and write them."""
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
        """The first row of a run that is not before a time; None: the end."""
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
        """The rows of each run from one place to another, one run after the other."""
        total = sum(stops) - sum(starts)
        columns = {name: np.empty(total, kind) for name, kind in self._types.items()}
        at = 0
        for run, start, stop in zip(self._runs, starts, stops, strict=True):
            for name, column in columns.items():
                self._fill(column[at : at + stop - start], run, name, start)
            at += stop - start
        return columns

    def _fill(self, out: NDArray[Any], run: _Run, name: str, first: int) -> None:
        """Read values of a column, from the first row on."""
        assert self._file is not None  # noqa: S101 (there is a run)
        self._file.seek(run.starts[name] + first * out.itemsize)
        self._file.readinto(out.data)


def _in_order(columns: dict[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], I64]:
    """The rows, and their stable order by time."""
    order = stable_order(np.ascontiguousarray(columns["time"]))
    return columns, np.arange(columns["time"].size) if order is None else order
