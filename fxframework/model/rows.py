"""Rows: which rows of a capture's tables belong to a selection, by thread, category or function."""

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
    """What rows are chosen of: the part of a Capture that gives its tables."""

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
        """A whole table."""

    def batches(self, name: str, rows: int = 65536) -> Iterator[Table]:
        """A table, some rows at a time."""


class RowMarks:
    """Marks on rows of a table, by their numbers: a byte a row."""

    def __init__(self) -> None:
        self._marks = np.zeros(0, np.bool_)

    def add(self, rows: NDArray[np.int64]) -> None:
        """Mark these rows; negative numbers are none."""
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
        """Which of these rows are marked, same shape."""
        out = np.zeros(rows.shape, np.bool_)
        known = (rows >= 0) & (rows < self._marks.size)
        out[known] = self._marks[rows[known]]
        return out


def thread_mask(selection: Selection, capture: HasTables) -> Bools | None:
    """By thread id, whether the thread is selected; None where all are.

    Raises UsageError where a name matches no thread or process, and where the capture knows none.
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
        called = [
            (str(name), str(tid), f"{pid}/{tid}")
            for name, pid, tid in zip(table.texts("name"), pids, tids, strict=True)
        ]
        mask[ids] &= _fitting("thread", selection.threads, called)
    if selection.processes:
        processes = capture.table("processes")
        names = dict(zip(processes.array("pid").tolist(), processes.texts("name"), strict=True))
        mask[ids] &= _fitting(
            "process", selection.processes, [(str(names.get(pid)), str(pid)) for pid in pids]
        )
    return mask


def category_mask(selection: Selection, capture: HasTables) -> Bools | None:
    """By string code, whether it is a selected category; None where all are.

    Raises UsageError for a pattern that no category of the capture fits; blobs may have some that
    no table shows.
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
            raise _nothing("category", pattern, known)
    mask = np.zeros(len(texts), np.bool_)
    for code in used:
        mask[code] = code >= 0 and Selection.matches(texts[code], selection.categories)
    return mask


def function_mask(selection: Selection, capture: HasTables) -> Bools | None:
    """By string code, whether it is the name of a selected function; None where all are.

    Raises UsageError where there are no slices, and for a pattern that the name of none fits.
    """
    if not selection.functions:
        return None
    if "slices" not in capture.schemas:
        raise UsageError(
            f"{capture.format} captures have no slices, which functions are the names of",
            path=capture.name,
            remedy=f"it has {', '.join(capture.tables)}",
        )
    used = np.zeros(1, np.bool_)
    for name in ("slices", "instants"):
        for batch in capture.batches(name) if name in capture.schemas else ():
            codes = batch.array("name")  # strings may be known only once a column is made
            grown = np.zeros(max(used.size, len(capture.strings) + 1), np.bool_)
            grown[: used.size] = used
            grown[codes] = True  # -1 is the last one, which no string is
            grown[-1] = False
            used = grown
        if name == "slices":
            known = np.flatnonzero(used).tolist()
    texts = capture.strings
    for pattern in selection.functions:
        if not any(name_fits(texts[code], pattern) for code in known):
            raise _nothing("function", pattern, sorted(texts[code] for code in known))
    mask = np.zeros(len(texts), np.bool_)
    for code in np.flatnonzero(used).tolist():
        mask[code] = Selection.matches(texts[code], selection.functions)
    return mask


def _nothing(what: str, pattern: str, known: Sequence[str]) -> UsageError:
    some = ", ".join(known[:8]) + (", …" if len(known) > 8 else "")
    return UsageError(
        f"there is no {what} {pattern!r}{did_you_mean(pattern, known)}",
        remedy=f"there are {some}" if some else "the capture names none",
    )


def _fitting(what: str, patterns: Sequence[str], called: Sequence[tuple[str, ...]]) -> Bools:
    """Which of the things that are called so fit a pattern; UsageError for one that none fits."""
    mask = np.zeros(len(called), np.bool_)
    for pattern in patterns:
        fits = [any(name_fits(name, pattern) for name in names) for names in called]
        if not any(fits):
            known = {names[-1] if names[0] == "None" else names[0] for names in called}
            raise _nothing(what, pattern, sorted(known))
        mask |= np.array(fits, np.bool_)
    return mask
