"""Sorts slices by their begin on each track, in bounded memory.

Rows that are already in order are passed through. Others are collected by stretches of time, in a
temporary file if there are many, until no more rows can belong to a stretch.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.columns import first_of_runs, index_in, picked, starts_of
from fxframework.io.temporary import TemporaryFile
from fxframework.kernels.nesting import NEVER_ENDS
from fxframework.kernels.sorting import stable_order
from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC
from fxframework.model.strings import TextColumn

__all__ = [
    "COLUMNS",
    "START",
    "TAIL",
    "Columns",
    "SortedSlices",
    "columns_of",
    "in_order",
    "parents_of",
]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
Columns = dict[str, NDArray]  # type: ignore[type-arg]
COLUMNS = ("row", "ts", "dur", "thread", "kind", "depth", "parent", "category", "name", "id")
ROWS = 1 << 17
"""Rows in a batch, and the approximate number of rows in a stretch of time."""
SAMPLES = 512
"""Times sampled per batch to divide all rows into stretches."""
IN_MEMORY = 32 << 20
"""The most bytes of stretches kept in memory."""
MOST_LATE = 64
"""The most levels of nested slices with equal begins that are reordered."""
TAIL, START = "tail length", "tail start"
"""Added columns: length and start of a slice's bytes in ``SortedSlices.tails``."""


@attrs.frozen(eq=False)
class SortedSlices:
    """Slices in order on each track, after those of earlier parts."""

    columns: Columns
    tails: U8
    """The bytes to append to the events of slices."""
    following: int
    """No slice of a later part begins before this (ns)."""


def in_order(
    capture: Capture,
    names: Sequence[str],
    tails_of: Callable[[I64], tuple[I64, U8]],
) -> Iterator[SortedSlices]:
    """Yield the slices of a capture in order, outer slices before inner ones.

    ``names`` are columns in addition to ``COLUMNS``; ``tails_of`` returns the lengths and bytes of
    the tails of rows, and is called for all rows in order.
    """
    shape = _Shape(capture)
    parts = columns_of(capture, "slices", (*COLUMNS, *names), ROWS)
    with contextlib.ExitStack() as stack:
        waiting = None if shape.ordered else stack.enter_context(_Waiting(shape.bounds()))
        for columns, following in zip(parts, shape.following(), strict=True):
            columns[TAIL], tails = tails_of(columns["row"])
            if waiting is None:
                columns[START] = starts_of(columns[TAIL])
                yield SortedSlices(columns, tails, following)
            else:
                waiting.add(columns, tails)
                yield from waiting.until(following)


def columns_of(
    capture: Capture, table: str, names: Sequence[str], rows: int = ROWS
) -> Iterator[Columns]:
    """Yield columns of a table in batches."""
    for batch in capture.batches(table, rows):
        yield {name: batch.array(name) for name in names}


def parents_of(rows: I64, parents: I64) -> I64:
    """Return for each of sorted rows the index of its parent; its own index if there is none."""
    own_index = np.arange(rows.size)
    if not rows.size:
        return own_index
    index = index_in(rows, parents)
    has_parent = (parents >= 0) & (rows[index] == parents)
    return np.where(has_parent, index, own_index)


class _Shape:
    """The order and distribution of the times of a capture's slices, from one pass."""

    def __init__(self, capture: Capture) -> None:
        self.ordered = True
        """Whether the slices of each thread are in order, outer ones first."""
        self._earliest: list[int] = []
        self._samples: list[I64] = []
        self._latest = np.full(1, -NEVER_ENDS, np.int64)
        """Latest time so far of asynchronous slices, of slices without a thread, and by thread."""
        names = ("row", "ts", "thread", "kind", "parent")
        for columns in columns_of(capture, "slices", names, ROWS):
            times = columns["ts"]
            self._earliest.append(int(times.min(initial=NEVER_ENDS)))
            self._samples.append(times[:: max(1, times.size // SAMPLES)].copy())
            if self.ordered:
                self.ordered = self._continues_order(columns)

    def _continues_order(self, columns: Columns) -> bool:
        """Return whether the rows of the next batch are in order after those before."""
        times = columns["ts"]
        if bool((columns["parent"] > columns["row"]).any()):
            return False
        # Indexes in ``_latest``: 0 of asynchronous slices, 1 of no thread (id -1), then by thread.
        thread_ids = columns["thread"].astype(np.int64)
        threads = np.where(columns["kind"] == ASYNC, 0, thread_ids + 2)
        thread_count = int(threads.max(initial=-1)) + 1
        if thread_count > self._latest.size:
            room = thread_count + thread_count // 2
            unseen = np.full(room - self._latest.size, -NEVER_ENDS, np.int64)
            self._latest = np.append(self._latest, unseen)
        order = stable_order(threads)
        if order is not None:
            threads = threads[order]
            times = times[order]
        first_of_threads = first_of_runs(threads)
        times_before = np.append(0, times[:-1])
        times_before[first_of_threads] = self._latest[threads[first_of_threads]]
        self._latest[threads] = times  # of several times of a thread, numpy keeps the last
        return bool((times_before <= times).all())

    def following(self) -> list[int]:
        """Return for each batch the earliest begin of any row of a later batch."""
        # From the last batch on: nothing follows it, then its own earliest begin, and so on.
        backwards = [NEVER_ENDS, *self._earliest[:0:-1]]
        backwards = backwards[: len(self._earliest)]
        return list(itertools.accumulate(backwards, min))[::-1]

    def bounds(self) -> I64:
        """Return the bounds of the stretches of time into which slices are divided."""
        samples = np.sort(np.concatenate(self._samples))
        # As many stretches as batches, so that a stretch has about the rows of a batch.
        samples_per_stretch = max(1, -(-samples.size // len(self._samples)))
        bounds = samples[samples_per_stretch::samples_per_stretch]
        # A time with many slices becomes a separate stretch.
        is_repeated = bounds[1:] == bounds[:-1]
        crowded_times = bounds[1:][is_repeated]
        return np.unique(np.concatenate((bounds, crowded_times + 1)))


class _Waiting:
    """Collects slices by stretches of time until a stretch is complete."""

    def __init__(self, bounds: I64) -> None:
        self._bounds = bounds
        self._blocks: list[_Block] = []
        self._has_late = np.zeros(bounds.size + 1, np.bool_)
        """Whether each stretch has slices whose parents are later rows."""
        self._next_stretch = 0
        self._file: TemporaryFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, columns: Columns, tails: U8) -> None:
        """Add rows, given by their columns and the bytes of their tails."""
        stretches = np.searchsorted(self._bounds, columns["ts"], "right")
        is_before_parent = columns["parent"] > columns["row"]
        self._has_late[stretches[is_before_parent]] = True
        row_type = [(name, column.dtype) for name, column in columns.items()]
        rows = np.empty(stretches.size, row_type)
        order = stable_order(stretches)
        for name, column in columns.items():
            rows[name] = column if order is None else column[order]
        if order is not None and tails.size:
            starts = starts_of(columns[TAIL])
            tails = TextColumn.gather(tails, starts[order], rows[TAIL].copy()).data
        counts = np.bincount(stretches, minlength=self._has_late.size)
        self._blocks.append(_Block(rows, tails, np.append(0, np.cumsum(counts))))
        bytes_in_memory = 0
        for block in reversed(self._blocks):
            bytes_in_memory += block.nbytes
            if bytes_in_memory > IN_MEMORY:
                if self._file is None:
                    self._file = TemporaryFile()
                block.move(self._file)

    def until(self, following: int) -> Iterator[SortedSlices]:
        """Yield the stretches that end before the earliest unknown slice."""
        while self._is_complete(self._next_stretch, following):
            stretch = self._next_stretch
            self._next_stretch += 1
            limit = following
            if stretch < self._bounds.size:
                limit = min(limit, int(self._bounds[stretch]))
            yield from self._sorted_stretch(stretch, limit)
            self._blocks = [block for block in self._blocks if not block.done(self._next_stretch)]

    def _is_complete(self, stretch: int, following: int) -> bool:
        """Return whether a stretch exists, and no slice from ``following`` on is in it."""
        if stretch >= self._has_late.size:
            return False
        if following == NEVER_ENDS:
            return True
        return stretch < self._bounds.size and bool(self._bounds[stretch] <= following)

    def _sorted_stretch(self, stretch: int, following: int) -> Iterator[SortedSlices]:
        blocks = [block for block in self._blocks if block.size(stretch)]
        if self._is_single_time(stretch) and not self._has_late[stretch]:
            # These slices are in order as they are, and may be too many to join.
            for block in blocks:
                yield _sorted([block.take(stretch)], int(self._bounds[stretch - 1]))
        elif blocks:
            yield _sorted([block.take(stretch) for block in blocks], following)

    def _is_single_time(self, stretch: int) -> bool:
        """Return whether all slices of a stretch begin at the same time."""
        if not 0 < stretch < self._bounds.size:
            return False
        return bool(self._bounds[stretch] == self._bounds[stretch - 1] + 1)


class _Block:
    """The rows of a batch, grouped by stretches; in memory or in a file."""

    def __init__(self, rows: NDArray[Any], tails: U8, row_bounds: I64) -> None:
        self._rows = rows
        self._tails = tails
        self._row_bounds = row_bounds
        """The rows of stretch 2 begin at element 2 of these bounds, and end before element 3."""
        self._tail_bounds = np.append(0, np.cumsum(rows[TAIL]))[row_bounds]
        """The same for the bytes of their tails."""
        self._dtype = rows.dtype
        self._file: TemporaryFile | None = None
        self._file_offset = 0

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._rows.nbytes + self._tails.nbytes

    def size(self, stretch: int) -> int:
        """Return the number of rows of a stretch."""
        return int(self._row_bounds[stretch + 1] - self._row_bounds[stretch])

    def done(self, stretch: int) -> bool:
        """Return whether there are no rows of this or later stretches."""
        return bool(self._row_bounds[stretch] == self._row_bounds[-1])

    def move(self, file: TemporaryFile) -> None:
        """Move the rows to a file, unless they are in one."""
        if self._file is None:
            self._file = file
            self._file_offset = file.seek(0, 2)
            file.write(self._rows.data)
            file.write(self._tails.data)
            self._rows = self._rows[:0].copy()
            self._tails = self._tails[:0].copy()

    def take(self, stretch: int) -> tuple[NDArray[Any], U8]:
        """Return the rows of a stretch, and the bytes of their tails."""
        first_row, stop_row = self._row_bounds[stretch : stretch + 2].tolist()
        first_byte, stop_byte = self._tail_bounds[stretch : stretch + 2].tolist()
        if self._file is None:
            return self._rows[first_row:stop_row], self._tails[first_byte:stop_byte]
        # In the file, the bytes of all tails are behind all rows of the block.
        row_bytes = self._dtype.itemsize
        tails_offset = self._file_offset + int(self._row_bounds[-1]) * row_bytes
        rows = np.empty(stop_row - first_row, self._dtype)
        self._file.seek(self._file_offset + first_row * row_bytes)
        self._file.readinto(rows.view(np.uint8).data)
        tails = np.empty(stop_byte - first_byte, np.uint8)
        self._file.seek(tails_offset + first_byte)
        self._file.readinto(tails.data)
        return rows, tails


def _sorted(parts: Sequence[tuple[NDArray[Any], U8]], following: int) -> SortedSlices:
    """Sort rows, given in order of the table, by time."""
    rows = np.concatenate([rows for rows, _ in parts])
    columns = {name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ()}
    del rows
    columns[START] = starts_of(columns[TAIL])
    order = _order(columns)
    if order is not None:
        columns = picked(columns, order)
    all_tails = np.concatenate([tails for _, tails in parts])
    return SortedSlices(columns, all_tails, following)


def _order(columns: Columns) -> I64 | None:
    """Return the order of slices; None if they are in order."""
    if not (columns["parent"] > columns["row"]).any():
        return stable_order(columns["ts"])
    return np.lexsort((columns["depth"], _first_rows(columns), columns["ts"]))


def _first_rows(columns: Columns) -> I64:
    """Return for each slice the least row among it and its descendants with the same begin.

    In a file, complete events may precede the event that encloses them.
    """
    first_rows: I64 = columns["row"].astype(np.int64)
    parents = parents_of(first_rows, columns["parent"])
    begins = columns["ts"]
    has_late_parent = (begins[parents] == begins) & (parents > np.arange(first_rows.size))
    early = np.flatnonzero(has_late_parent)
    # Each round passes the least row on to the next level of parents.
    for _ in range(MOST_LATE):
        updated = first_rows.copy()
        np.minimum.at(updated, parents[early], first_rows[early])
        if np.array_equal(updated, first_rows):
            break
        first_rows = updated
    return first_rows
