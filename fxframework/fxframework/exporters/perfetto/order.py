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

from fxframework.exporters.perfetto.nest import OPEN
from fxframework.io.temporary import TemporaryFile
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
                columns[START] = np.cumsum(columns[TAIL]) - columns[TAIL]
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
    own = np.arange(rows.size)
    if not rows.size:
        return own
    place = np.minimum(np.searchsorted(rows, parents), rows.size - 1)
    return np.where((parents >= 0) & (rows[place] == parents), place, own)


class _Shape:
    """The order and distribution of the times of a capture's slices, from one pass."""

    def __init__(self, capture: Capture) -> None:
        self.ordered = True
        """Whether the slices of each thread are in order, outer ones first."""
        self._earliest: list[int] = []
        self._samples: list[I64] = []
        self._last = np.full(1, -OPEN, np.int64)
        """Latest time so far of asynchronous slices, of slices without a thread, and by thread."""
        names = ("row", "ts", "thread", "kind", "parent")
        for each in columns_of(capture, "slices", names, ROWS):
            times = each["ts"]
            self._earliest.append(int(times.min(initial=OPEN)))
            self._samples.append(times[:: max(1, times.size // SAMPLES)].copy())
            if self.ordered:
                self.ordered = self._continues_order(each)

    def _continues_order(self, columns: Columns) -> bool:
        times = columns["ts"]
        if bool((columns["parent"] > columns["row"]).any()):
            return False
        key = np.where(columns["kind"] == ASYNC, 0, columns["thread"].astype(np.int64) + 2)
        if key.size and (high := int(key.max()) + 1) > self._last.size:
            more = np.full(high + high // 2 - self._last.size, -OPEN, np.int64)
            self._last = np.append(self._last, more)
        order = stable_order(key)
        if order is not None:
            key, times = key[order], times[order]
        change = np.append(True, key[1:] != key[:-1])
        before = np.append(0, times[:-1])
        before[change] = self._last[key[change]]
        self._last[key] = times  # the last of equal keys wins
        return bool((before <= times).all())

    def following(self) -> list[int]:
        """Return for each batch the earliest begin of any later row."""
        later = [OPEN, *self._earliest[:0:-1]][: len(self._earliest)]
        return list(itertools.accumulate(later, min))[::-1]

    def bounds(self) -> I64:
        """Return the bounds of the stretches of time into which slices are divided."""
        samples = np.sort(np.concatenate(self._samples))
        some = max(1, -(-samples.size // len(self._samples)))
        found = samples[some::some]
        # A time with many slices becomes a separate stretch.
        many = found[1:][found[1:] == found[:-1]]
        return np.unique(np.concatenate((found, many + 1)))


class _Waiting:
    """Collects slices by stretches of time until a stretch is complete."""

    def __init__(self, bounds: I64) -> None:
        self._bounds = bounds
        self._blocks: list[_Block] = []
        self._late = np.zeros(bounds.size + 1, np.bool_)
        """Whether each stretch has slices whose parents are later rows."""
        self._next = 0
        self._file: TemporaryFile | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, columns: Columns, tails: U8) -> None:
        """Add rows, given by their columns and the bytes of their tails."""
        which = np.searchsorted(self._bounds, columns["ts"], "right")
        self._late[which[columns["parent"] > columns["row"]]] = True
        rows = np.empty(which.size, [(name, column.dtype) for name, column in columns.items()])
        order = stable_order(which)
        for name, column in columns.items():
            rows[name] = column if order is None else column[order]
        if order is not None and tails.size:
            starts = np.cumsum(columns[TAIL]) - columns[TAIL]
            tails = TextColumn.gather(tails, starts[order], rows[TAIL].copy()).data
        counts = np.bincount(which, minlength=self._late.size)
        self._blocks.append(_Block(rows, tails, np.append(0, np.cumsum(counts))))
        held = 0
        for block in reversed(self._blocks):
            held += block.nbytes
            if held > IN_MEMORY:
                if self._file is None:
                    self._file = TemporaryFile()
                block.move(self._file)

    def until(self, following: int) -> Iterator[SortedSlices]:
        """Yield the stretches that end before the earliest unknown slice."""
        while self._next < self._late.size and (
            following == OPEN
            or (self._next < self._bounds.size and self._bounds[self._next] <= following)
        ):
            which = self._next
            self._next += 1
            limit = following
            if which < self._bounds.size:
                limit = min(limit, int(self._bounds[which]))
            yield from self._stretch(which, limit)
            self._blocks = [block for block in self._blocks if not block.done(self._next)]

    def _stretch(self, which: int, following: int) -> Iterator[SortedSlices]:
        found = [block for block in self._blocks if block.size(which)]
        inside = 0 < which < self._bounds.size
        if inside and self._bounds[which] == self._bounds[which - 1] + 1 and not self._late[which]:
            # Slices of a single time that are in order can be passed on block by block.
            for block in found:
                yield _sorted([block.take(which)], int(self._bounds[which - 1]))
        elif found:
            yield _sorted([block.take(which) for block in found], following)


class _Block:
    """The rows of a batch, grouped by stretches; in memory or in a file."""

    def __init__(self, rows: NDArray[Any], tails: U8, ends: I64) -> None:
        self._rows = rows
        self._tails = tails
        self._ends = ends
        self._tail_ends = np.append(0, np.cumsum(rows[TAIL]))[ends]
        self._dtype = rows.dtype
        self._file: TemporaryFile | None = None
        self._at = 0

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._rows.nbytes + self._tails.nbytes

    def size(self, which: int) -> int:
        """Return the number of rows of a stretch."""
        return int(self._ends[which + 1] - self._ends[which])

    def done(self, which: int) -> bool:
        """Return whether there are no rows of this or later stretches."""
        return bool(self._ends[which] == self._ends[-1])

    def move(self, file: TemporaryFile) -> None:
        """Move the rows to a file, unless they are in one."""
        if self._file is None:
            self._file = file
            self._at = file.seek(0, 2)
            file.write(self._rows.data)
            file.write(self._tails.data)
            self._rows, self._tails = self._rows[:0].copy(), self._tails[:0].copy()

    def take(self, which: int) -> tuple[NDArray[Any], U8]:
        """Return the rows of a stretch, and the bytes of their tails."""
        (first, stop), (start, end) = (
            ends[which : which + 2].tolist() for ends in (self._ends, self._tail_ends)
        )
        if self._file is None:
            return self._rows[first:stop], self._tails[start:end]
        rows, tails = np.empty(stop - first, self._dtype), np.empty(end - start, np.uint8)
        behind = self._at + int(self._ends[-1]) * self._dtype.itemsize
        for at, array in ((self._at + first * self._dtype.itemsize, rows), (behind + start, tails)):
            self._file.seek(at)
            self._file.readinto(array.view(np.uint8).data)
        return rows, tails


def _sorted(found: Sequence[tuple[NDArray[Any], U8]], following: int) -> SortedSlices:
    """Sort rows, given in order of the table, by time."""
    rows = np.concatenate([rows for rows, _ in found])
    columns = {name: np.ascontiguousarray(rows[name]) for name in rows.dtype.names or ()}
    del rows
    columns[START] = np.cumsum(columns[TAIL]) - columns[TAIL]
    order = _order(columns)
    if order is not None:
        columns = {name: column[order] for name, column in columns.items()}
    return SortedSlices(columns, np.concatenate([tails for _, tails in found]), following)


def _order(columns: Columns) -> I64 | None:
    """Return the order of slices; None if they are in order."""
    if not (columns["parent"] > columns["row"]).any():
        return stable_order(columns["ts"])
    return np.lexsort((columns["depth"], _first_rows(columns), columns["ts"]))


def _first_rows(columns: Columns) -> I64:
    """Return for each slice the least row among it and its descendants with the same begin.

    In a file, complete events may precede the event that encloses them.
    """
    first: I64 = columns["row"].astype(np.int64)
    parents, start = parents_of(first, columns["parent"]), columns["ts"]
    late = np.flatnonzero((start[parents] == start) & (parents > np.arange(first.size)))
    for _ in range(MOST_LATE):
        found = first.copy()
        np.minimum.at(found, parents[late], first[late])
        if np.array_equal(found, first):
            break
        first = found
    return first
