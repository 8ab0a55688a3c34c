"""Masks that select rows of a capture's tables by thread, category or function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fxframework.errors import UsageError, did_you_mean
from fxframework.model.schema import TableSchema
from fxframework.model.selection import Selection, name_fits
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

__all__ = ["HasTables", "RowMarks", "category_mask", "function_mask", "thread_mask"]

Bools = NDArray[np.bool_]


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
        needed = int(rows.max()) + 1
        if needed > self._marks.size:
            grown = np.zeros(max(needed, 2 * self._marks.size), np.bool_)
            grown[: self._marks.size] = self._marks
            self._marks = grown
        self._marks[rows] = True

    def of(self, rows: NDArray[np.int64]) -> Bools:
        """Return which of these rows are marked, in the same shape."""
        out = np.zeros(rows.shape, np.bool_)
        known = (rows >= 0) & (rows < self._marks.size)
        out[known] = self._marks[rows[known]]
        return out

    def among(self, first: int, count: int) -> Bools:
        """Return which of ``count`` rows from ``first`` on are marked."""
        out = np.zeros(count, np.bool_)
        known = self._marks[first : first + count]
        out[: known.size] = known
        return out


def thread_mask(selection: Selection, capture: HasTables) -> Bools | None:
    """Return a mask of the selected threads, indexed by thread id; None if all are selected.

    Raises UsageError for a pattern that matches no thread or process, and for a capture without
    a table of them.
    """
    if not (selection.threads or selection.processes):
        return None
    for name, asked in (("threads", selection.threads), ("processes", selection.processes)):
        if asked and not {name, "threads"} <= capture.schemas.keys():
            raise UsageError(
                f"{capture.format} captures have no table of {name}",
                path=capture.name,
                remedy="choose its logs by number, with --pid and --tid"
                if "logs" in capture.schemas
                else f"it has {', '.join(capture.tables)}",
            )
    table = capture.table("threads")
    ids, pids, tids = (table.array(name).tolist() for name in ("id", "pid", "tid"))
    mask = np.zeros(max(ids, default=-1) + 1, np.bool_)
    mask[ids] = True
    if selection.threads:
        names_of = [
            (str(name), str(tid), f"{pid}/{tid}")
            for name, pid, tid in zip(table.texts("name"), pids, tids, strict=True)
        ]
        mask[ids] &= _matching("thread", selection.threads, names_of)
    if selection.processes:
        processes = capture.table("processes")
        names = dict(zip(processes.array("pid").tolist(), processes.texts("name"), strict=True))
        mask[ids] &= _matching(
            "process", selection.processes, [(str(names.get(pid)), str(pid)) for pid in pids]
        )
    return mask


def category_mask(selection: Selection, capture: HasTables) -> Bools | None:
    """Return a mask of the selected categories, indexed by string code; None if all are selected.

    Raises UsageError for a pattern that matches no category, unless the capture has blobs, whose
    categories no table shows.
    """
    if not selection.categories:
        return None
    hidden = "blobs" in capture.schemas and any(len(batch) for batch in capture.batches("blobs"))
    used: set[int] = set()
    for name, schema in capture.schemas.items():
        if any(column.name == "category" for column in schema.columns):
            for batch in capture.batches(name):
                used.update(np.unique(batch.array("category")).tolist())
    texts = capture.strings
    known = sorted({texts[code] for code in used if code >= 0})
    for pattern in selection.categories:
        if not hidden and not any(name_fits(text, pattern) for text in known):
            raise _no_match("category", pattern, known)
    mask = np.zeros(len(texts), np.bool_)
    for code in used:
        mask[code] = code >= 0 and Selection.matches(texts[code], selection.categories)
    return mask


def function_mask(selection: Selection, capture: HasTables) -> Bools | None:
    """Return a mask of the selected functions, indexed by string code; None if all are selected.

    Raises UsageError for a capture without slices, and for a pattern that matches no slice.
    """
    if not selection.functions:
        return None
    if "slices" not in capture.schemas:
        raise UsageError(
            f"{capture.format} captures have no slices, so functions cannot be selected",
            path=capture.name,
            remedy=f"it has {', '.join(capture.tables)}",
        )
    used = np.zeros(1, np.bool_)
    for name in ("slices", "instants"):
        for batch in capture.batches(name) if name in capture.schemas else ():
            codes = batch.array("name")  # making a column may add strings to the pool
            grown = np.zeros(max(used.size, len(capture.strings) + 1), np.bool_)
            grown[: used.size] = used
            grown[codes] = True  # code -1 (null) sets the last element
            grown[-1] = False
            used = grown
        if name == "slices":
            known = np.flatnonzero(used).tolist()
    texts = capture.strings
    for pattern in selection.functions:
        if not any(name_fits(texts[code], pattern) for code in known):
            raise _no_match("function", pattern, sorted(texts[code] for code in known))
    mask = np.zeros(len(texts), np.bool_)
    for code in np.flatnonzero(used).tolist():
        mask[code] = Selection.matches(texts[code], selection.functions)
    return mask


def _no_match(what: str, pattern: str, known: Sequence[str]) -> UsageError:
    some = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    return UsageError(
        f"there is no {what} {pattern!r}{did_you_mean(pattern, known)}",
        remedy=f"there are {some}" if some else "the capture names none",
    )


def _matching(what: str, patterns: Sequence[str], names_of: Sequence[tuple[str, ...]]) -> Bools:
    """Return which items match a pattern by a name; UsageError for a pattern without a match."""
    mask = np.zeros(len(names_of), np.bool_)
    for pattern in patterns:
        fits = [any(name_fits(name, pattern) for name in names) for names in names_of]
        if not any(fits):
            known = {names[-1] if names[0] == "None" else names[0] for names in names_of}
            raise _no_match(what, pattern, sorted(known))
        mask |= np.array(fits, np.bool_)
    return mask
