"""Changed captures: what a test does to the tables of an open capture before it is exported."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.model.capture import Capture, Record, Summary
from fxframework.model.schema import TABLE_CODES, THREAD_COLUMNS, Column
from fxframework.model.strings import TextColumn
from fxframework.model.table import ColumnData, Table

Change = Callable[[Capture], None]
"""Changes an open capture."""


class BrokenCaptureError(Exception):
    """Raised by a capture that fails in the middle."""


class Foreign(Capture):
    """The tables of a capture, in a capture of a format that nobody knows."""

    format = "foreign"

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture.source, capture.request, capture.diagnostics)
        self.strings = capture.strings
        self.schemas = capture.schemas  # type: ignore[misc]
        self._capture = capture

    def records(self) -> Iterator[Record]:
        """Yield none: only its tables are used."""
        return iter(())

    def summary(self) -> Summary:
        """Return the summary of the capture."""
        return self._capture.summary()

    def _table(self, name: str) -> Table:
        return self._capture.table(name)


def untouched(_capture: Capture) -> None:
    """Do not change a capture."""


def rebatch(size: int) -> Change:
    """Limit the batches of a capture to ``size`` rows."""

    def prepare(capture: Capture) -> None:
        whole = capture.batches
        vars(capture).update(batches=lambda name, rows=size: whole(name, min(rows, size)))

    return prepare


def break_off(capture: Capture) -> None:
    """Make every view of a capture fail after its first item."""

    def failing(view: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def broken(*args: Any, **kwargs: Any) -> Iterator[Any]:
            yield from itertools.islice(view(*args, **kwargs), 1)
            raise BrokenCaptureError

        return broken

    def no_table(name: str) -> Table:
        raise BrokenCaptureError(name)

    vars(capture).update(
        batches=failing(capture.batches), records=failing(capture.records), table=no_table,
        records_json=failing(capture.records_json),
    )  # fmt: skip


def widen(column: str) -> Change:
    """Add a column of integers to every table of a capture."""
    extra = Column(column, "i8", "added by a test")

    def wider(given: Table) -> Table:
        columns = {name: given[name] for name in given.columns}
        columns[column] = np.arange(1, len(given) + 1, dtype=np.int64)
        return Table(given.schema.extended(extra), len(given), columns, given.pool)

    def prepare(capture: Capture) -> None:
        schemas = {key: schema.extended(extra) for key, schema in capture.schemas.items()}
        _through(capture, wider)
        vars(capture).update(schemas=schemas)

    return prepare


def without(table: str, row: int) -> Change:
    """Remove a row and its arguments; rows that refer to it refer to its parent, if it has one."""

    def prepare(capture: Capture) -> None:
        above = int(capture.table(table).array("parent")[row]) if table == "slices" else -1

        def renumbered(rows: NDArray[np.int64]) -> NDArray[np.int64]:
            rows = np.where(rows == row, above, rows)
            return rows - (rows > row)

        def fewer(given: Table) -> Table:
            changed = {}
            if given.name == table:
                given = given.select(given.array("row") != row)
                changed["row"] = renumbered(given.array("row"))
            elif given.name == "args":
                of_table = given.array("table") == TABLE_CODES[table]
                kept = ~of_table | (given.array("parent") != row)
                given, of_table = given.select(kept), of_table[kept]
                parent = given.array("parent")
                changed["parent"] = np.where(of_table, renumbered(parent), parent)
            reference = {"slices": "parent", "flows": "slice"}.get(given.name)
            if table == "slices" and reference:
                changed[reference] = renumbered(given.array(reference))
            return given.replaced(**changed) if changed else given

        _through(capture, fewer)

    return prepare


REFERENCES = frozenset({*THREAD_COLUMNS, "parent", "slice", "node"})
"""Columns that identify rows of tables."""


def _in_column(table: str, column: str, change: Callable[[Table], ColumnData]) -> Change:
    """Replace a column, of one table or of all ("") that have it, by what ``change`` returns."""

    def changed(given: Table) -> Table:
        there = given.name == table if table else column in given
        return given.replaced(**{column: change(given)}) if there else given

    return lambda capture: _through(capture, changed)


def _appended(given: Table, column: str, more: bytes) -> NDArray[Any]:
    """Return the codes of the texts in a column with more behind them; -1 stays."""
    old, pool = given.array(column), given.pool
    codes = [code if code < 0 else pool.intern(pool.bytes_of(code) + more) for code in old.tolist()]
    return np.array(codes, old.dtype)


def alter(table: str, column: str) -> Change:
    """Give each row another value in a column; references, and texts, change places."""

    def altered(given: Table) -> ColumnData:
        old, shape = given[column], given.schema.column(column)
        if column in REFERENCES or not isinstance(old, np.ndarray) or old.ndim > 1:
            return given.select(np.arange(len(given))[::-1])[column]
        if shape.kind == "code":
            return _appended(given, column, b"~")
        if shape.values:
            known = sorted(shape.values)
            return np.array(known, old.dtype)[(np.searchsorted(known, old) + 1) % len(known)]
        return ~old if old.dtype == np.bool_ else old + old.dtype.type(1)

    return _in_column(table, column, altered)


LONG = b"~" * 200
"""What makes a text long."""


def lengthen(table: str, column: str, end: bytes) -> Change:
    """Give each row a long text in a column, which ends so."""

    def longer(given: Table) -> ColumnData:
        old, more = given[column], LONG + end
        if isinstance(old, TextColumn):
            return TextColumn.of(old.bytes_of(row) + more for row in range(len(given)))
        return _appended(given, column, more)

    return _in_column(table, column, longer)


def enlarge(table: str, column: str) -> Change:
    """Add 2**32 to each number in a column that is not negative."""

    def larger(given: Table) -> ColumnData:
        old = given.array(column)
        return np.where(old >= 0, old + old.dtype.type(1 << 32), old)

    return _in_column(table, column, larger)


def rename(odd: bytes) -> Change:
    """Append ``odd`` to every string of the pool in rows."""

    def renamed(given: Table) -> Table:
        codes = [each.name for each in given.schema.all_columns if each.kind == "code"]
        return given.replaced(**{name: _appended(given, name, odd) for name in codes})

    return lambda capture: _through(capture, renamed)


def shifted(by: int) -> Change:
    """Shift the times of all rows by so many nanoseconds."""
    return _in_column("", "ts", lambda given: given.array("ts") + np.int64(by))


def _through(capture: Capture, change: Callable[[Table], Table]) -> None:
    """Apply a change to all tables of a capture."""
    # A copy of the unchanged capture makes the tables.
    inner = copy.copy(capture)
    table, batches = inner.table, inner.batches
    vars(capture).update(
        table=lambda which: change(table(which)),
        batches=lambda which, rows=65536: map(change, batches(which, rows)),
        row_counts=lambda: {name: len(change(table(name))) for name in inner.schemas},
    )
