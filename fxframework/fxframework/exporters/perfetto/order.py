"""Sorts slices by their begin on each track, in bounded memory.

Rows that are already in order are passed through; others are sorted in runs, in temporary files if
there are many.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.columns import first_of_runs, picked, starts_of
from fxframework.io.spill import Spill
from fxframework.kernels.arrays import I64, U8
from fxframework.kernels.nesting import NEVER_ENDS
from fxframework.kernels.sorting import places_among, stable_order
from fxframework.kit.runs import SortedRuns
from fxframework.model.capture import Capture
from fxframework.model.schema import ASYNC

Columns = dict[str, NDArray]  # type: ignore[type-arg]
COLUMNS = ("row", "ts", "dur", "thread", "kind", "depth", "parent", "category", "name", "id")
ROWS = 1 << 17
"""Rows in a batch. Twice as many are sorted in memory."""
MOST_LATE = 64
"""The most levels of nested slices with equal begins that are reordered."""
TAIL = "tail length"
START = "tail start"
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
    parts = columns_of(capture, "slices", (*COLUMNS, *names), ROWS)
    following = _following(capture)
    if following is None:
        yield from _sorted(parts, tails_of)
        return
    for columns, next_begin in zip(parts, following, strict=True):
        columns[TAIL], tails = tails_of(columns["row"])
        columns[START] = starts_of(columns[TAIL])
        yield SortedSlices(columns, tails, next_begin)


def columns_of(
    capture: Capture, table: str, names: Sequence[str], rows: int = ROWS
) -> Iterator[Columns]:
    """Yield columns of a table in batches."""
    for batch in capture.batches(table, rows):
        yield {name: batch.array(name) for name in names}


def parents_of(rows: I64, parents: I64) -> I64:
    """Return for each of sorted rows the index of its parent; its own index if there is none."""
    places = places_among(parents, rows)
    return np.where(places >= 0, places, np.arange(rows.size))


def _following(capture: Capture) -> list[int] | None:
    """Return for each batch the earliest begin of any row of a later one.

    None if the slices of a thread are not in order, outer ones first.
    """
    earliest: list[int] = []
    latest_of_thread = _Latest()
    for columns in columns_of(capture, "slices", ("row", "ts", "thread", "kind", "parent"), ROWS):
        if not latest_of_thread.precede(columns):
            return None
        earliest.append(int(columns["ts"].min(initial=NEVER_ENDS)))
    # From the last batch on: nothing follows it, then its own earliest begin, and so on.
    backwards = [NEVER_ENDS, *earliest[:0:-1]]
    minima = list(itertools.accumulate(backwards[: len(earliest)], min))
    return minima[::-1]


class _Latest:
    """The latest begins so far, to tell whether those of the next batch are in order."""

    def __init__(self) -> None:
        self._times = np.full(1, -NEVER_ENDS, np.int64)
        """Of asynchronous slices, of slices without a thread, and by thread."""

    def precede(self, columns: Columns) -> bool:
        """Return whether the rows of the next batch are in order after those before."""
        times = columns["ts"]
        if bool((columns["parent"] > columns["row"]).any()):
            return False
        # Indexes in ``_times``: 0 of asynchronous slices, 1 of no thread (id -1), then by thread.
        thread_ids = columns["thread"].astype(np.int64)
        threads = np.where(columns["kind"] == ASYNC, 0, thread_ids + 2)
        thread_count = int(threads.max(initial=-1)) + 1
        if thread_count > self._times.size:
            room = thread_count + thread_count // 2
            unseen = np.full(room - self._times.size, -NEVER_ENDS, np.int64)
            self._times = np.append(self._times, unseen)
        order = stable_order(threads)
        if order is not None:
            threads = threads[order]
            times = times[order]
        first_of_threads = first_of_runs(threads)
        times_before = np.append(0, times[:-1])
        times_before[first_of_threads] = self._times[threads[first_of_threads]]
        self._times[threads] = times  # of several times of a thread, numpy keeps the last
        return bool((times_before <= times).all())


def _sorted(
    parts: Iterator[Columns], tails_of: Callable[[I64], tuple[I64, U8]]
) -> Iterator[SortedSlices]:
    """Yield slices in order of time; ``tails_of`` as for ``in_order``."""
    runs = SortedRuns(2 * ROWS)
    all_tails = Spill(np.uint8)
    tail_bytes = 0
    for columns in parts:
        columns[TAIL], tails = tails_of(columns["row"])
        columns[START] = starts_of(columns[TAIL]) + tail_bytes
        bytes_before = tail_bytes
        tail_bytes += tails.size
        all_tails.grow(tail_bytes)[bytes_before:tail_bytes] = tails
        all_tails.release()
        runs.add({"time": columns.pop("ts"), **columns})
    for columns, order in runs.windows():
        columns["ts"] = columns.pop("time")
        if (columns["parent"] > columns["row"]).any():
            columns = picked(columns, np.argsort(columns["row"]))
            order = np.lexsort((columns["depth"], _first_rows(columns), columns["ts"]))
        columns = picked(columns, order)
        # All rows of one time are in one window, so those of later windows begin later.
        last_time = int(columns["ts"][-1])
        following = min(last_time, NEVER_ENDS - 1) + 1
        yield SortedSlices(columns, all_tails.array, following)
        all_tails.release()


def _first_rows(columns: Columns) -> I64:
    """Return for each slice the least row among it and its descendants with the same begin.

    Rows are ascending. In a file, complete events may precede the event that encloses them.
    """
    first_rows: I64 = columns["row"].astype(np.int64)
    parents = parents_of(first_rows, columns["parent"])
    begins = columns["ts"]
    begins_with_parent = begins[parents] == begins
    has_late_parent = begins_with_parent & (parents > np.arange(first_rows.size))
    early = np.flatnonzero(has_late_parent)
    # Each round passes the least row on to the next level of parents.
    for _ in range(MOST_LATE):
        updated = first_rows.copy()
        np.minimum.at(updated, parents[early], first_rows[early])
        if np.array_equal(updated, first_rows):
            break
        first_rows = updated
    return first_rows
