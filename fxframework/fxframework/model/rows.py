"""Masks that select rows of a capture's tables by thread, category or function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fxframework.errors import UsageError, did_you_mean
from fxframework.kernels.arrays import Bools
from fxframework.model.schema import TableSchema
from fxframework.model.selection import Selection, name_fits
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

__all__ = [
    "HasTables",
    "RowMarks",
    "category_mask",
    "check_slices",
    "function_mask",
    "thread_mask",
]


class HasTables(Protocol):
    """The part of the Capture interface that gives access to tables."""

    strings: StringPool
    """The pool of the strings that code columns refer to."""

    @property
    def name(self) -> str:
        """The name of the input."""

    @property
    def format(self) -> str:
        """The name of the format."""

    @property
    def schemas(self) -> Mapping[str, TableSchema]:
        """The tables that the format fills."""

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of all tables."""

    def table(self, name: str) -> Table:
        """Return a whole table."""

    def batches(self, name: str, rows: int = 65536) -> Iterator[Table]:
        """Yield a table, at most ``rows`` rows at a time."""


class RowMarks:
    """A set of row numbers of a table, stored as one byte per row."""

    def __init__(self) -> None:
        self._marks = np.zeros(0, np.bool_)

    def add(self, rows: NDArray[np.int64]) -> None:
        """Mark these rows; negative numbers are ignored."""
        rows = rows[rows >= 0]
        if not rows.size:
            return
        least_size = int(rows.max()) + 1
        if least_size > self._marks.size:
            larger = np.zeros(max(least_size, 2 * self._marks.size), np.bool_)
            larger[: self._marks.size] = self._marks
            self._marks = larger
        self._marks[rows] = True

    def of(self, rows: NDArray[np.int64]) -> Bools:
        """Return which of these rows are marked, in the same shape."""
        is_marked = np.zeros(rows.shape, np.bool_)
        is_within = (rows >= 0) & (rows < self._marks.size)
        is_marked[is_within] = self._marks[rows[is_within]]
        return is_marked

    def among(self, first: int, count: int) -> Bools:
        """Return which of ``count`` rows from ``first`` on are marked."""
        is_marked = np.zeros(count, np.bool_)
        marks = self._marks[first : first + count]  # fewer at the end
        is_marked[: marks.size] = marks
        return is_marked


def thread_mask(selection: Selection, capture: HasTables) -> Bools | None:
    """Return a mask of the selected threads, indexed by thread id; None if all are selected.

    Raises UsageError for a pattern that matches no thread or process, and for a capture without
    a table of them.
    """
    if not (selection.threads or selection.processes):
        return None
    if selection.threads:
        _check_table(capture, "threads")
    if selection.processes:
        _check_table(capture, "processes")
    threads = capture.table("threads")
    ids = threads.array("id").tolist()
    pids = threads.array("pid").tolist()
    tids = threads.array("tid").tolist()
    mask = np.zeros(max(ids, default=-1) + 1, np.bool_)
    mask[ids] = True
    if selection.threads:
        names_of_threads = [
            (str(name), str(tid), f"{pid}/{tid}")
            for name, pid, tid in zip(threads.texts("name"), pids, tids, strict=True)
        ]
        mask[ids] &= _matching("thread", selection.threads, names_of_threads)
    if selection.processes:
        processes = capture.table("processes")
        name_of_pid = dict(
            zip(processes.array("pid").tolist(), processes.texts("name"), strict=True)
        )
        names_of_processes = [(str(name_of_pid.get(pid)), str(pid)) for pid in pids]
        mask[ids] &= _matching("process", selection.processes, names_of_processes)
    return mask


def _check_table(capture: HasTables, name: str) -> None:
    """Raise UsageError if there is no such table of threads or processes."""
    if {name, "threads"} <= capture.schemas.keys():
        return
    remedy = f"its tables are {', '.join(capture.tables)}"
    if "logs" in capture.schemas:
        remedy = "choose its logs by number, with --pid and --tid"
    raise UsageError(
        f"{capture.format} captures have no table of {name}", path=capture.name, remedy=remedy
    )


def category_mask(selection: Selection, capture: HasTables) -> Bools | None:
    """Return a mask of the selected categories, indexed by string code; None if all are selected.

    Raises UsageError for a pattern that matches no category, unless the capture has blobs, whose
    categories no table shows.
    """
    if not selection.categories:
        return None
    has_blobs = "blobs" in capture.schemas and any(len(batch) for batch in capture.batches("blobs"))
    codes: set[int] = set()
    for name, schema in capture.schemas.items():
        if any(column.name == "category" for column in schema.columns):
            for batch in capture.batches(name):
                codes.update(np.unique(batch.array("category")).tolist())
    codes.discard(-1)  # null
    pool = capture.strings
    categories = sorted({pool[code] for code in codes})
    for pattern in selection.categories:
        if not has_blobs and not any(name_fits(category, pattern) for category in categories):
            raise _no_match("category", pattern, categories)
    mask = np.zeros(len(pool), np.bool_)
    for code in codes:
        mask[code] = Selection.matches(pool[code], selection.categories)
    return mask


def check_slices(capture: HasTables, consequence: str = "") -> None:
    """Raise UsageError, which says the consequence, for a capture without slices."""
    if "slices" not in capture.schemas:
        therefore = f", so {consequence}" if consequence else ""
        raise UsageError(
            f"{capture.format} captures have no slices{therefore}",
            path=capture.name,
            remedy=f"its tables are {', '.join(capture.tables)}",
        )


def function_mask(patterns: Sequence[str], capture: HasTables) -> Bools | None:
    """Return a mask of the functions that match, indexed by string code; None without patterns.

    Raises UsageError for a capture without slices, and for a pattern that matches no slice.
    """
    if not patterns:
        return None
    check_slices(capture, "functions cannot be selected")
    # Instants of a function are selected with its slices, but only slices make it a function.
    slice_codes = _codes_of_names(capture, "slices")
    codes = slice_codes
    if "instants" in capture.schemas:
        codes = np.union1d(slice_codes, _codes_of_names(capture, "instants"))
    pool = capture.strings
    functions = [pool[code] for code in slice_codes.tolist()]
    for pattern in patterns:
        if not any(name_fits(function, pattern) for function in functions):
            raise _no_match("function", pattern, sorted(functions))
    mask = np.zeros(len(pool), np.bool_)
    for code in codes.tolist():
        mask[code] = Selection.matches(pool[code], patterns)
    return mask


def _codes_of_names(capture: HasTables, table: str) -> NDArray[np.int64]:
    """Return the codes of the names of a table's rows, ascending."""
    occurs = np.zeros(1, np.bool_)
    for batch in capture.batches(table):
        codes = batch.array("name")  # making a column may add strings to the pool
        larger = np.zeros(max(occurs.size, len(capture.strings) + 1), np.bool_)
        larger[: occurs.size] = occurs
        larger[codes] = True  # code -1 (null) sets the last element
        larger[-1] = False
        occurs = larger
    return np.flatnonzero(occurs)


def _no_match(noun: str, pattern: str, names: Sequence[str]) -> UsageError:
    first_names = ", ".join(names[:8])
    if len(names) > 8:
        first_names += ", …"
    remedy = "the capture names none"
    if first_names:
        remedy = f"there are {first_names}"
    return UsageError(
        f"there is no {noun} {pattern!r}{did_you_mean(pattern, names)}", remedy=remedy
    )


def _matching(
    noun: str, patterns: Sequence[str], names_of_items: Sequence[tuple[str, ...]]
) -> Bools:
    """Return which items match a pattern by a name; UsageError for a pattern without a match."""
    mask = np.zeros(len(names_of_items), np.bool_)
    for pattern in patterns:
        matches = [any(name_fits(name, pattern) for name in names) for names in names_of_items]
        if not any(matches):
            # The name, or for an item without one ("None") its number.
            shown_names = {
                names[-1] if names[0] == "None" else names[0] for names in names_of_items
            }
            raise _no_match(noun, pattern, sorted(shown_names))
        mask |= np.array(matches, np.bool_)
    return mask
