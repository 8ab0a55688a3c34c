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
        unlimited = capture.batches
        vars(capture).update(batches=lambda name, rows=size: unlimited(name, min(rows, size)))

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
        batches=failing(capture.batches),
        records=failing(capture.records),
        table=no_table,
        records_json=failing(capture.records_json),
    )


def widen(column: str) -> Change:
    """Add a column of integers to every table of a capture."""
    extra = Column(column, "i8", "added by a test")

    def wider(table: Table) -> Table:
        columns = {name: table[name] for name in table.columns}
        rows = len(table)
        columns[column] = np.arange(1, rows + 1, dtype=np.int64)
        return Table(table.schema.extended(extra), rows, columns, table.pool)

    def prepare(capture: Capture) -> None:
        schemas = {key: schema.extended(extra) for key, schema in capture.schemas.items()}
        _through(capture, wider)
        vars(capture).update(schemas=schemas)

    return prepare


def without(table: str, row: int) -> Change:
    """Remove a row and its arguments; rows that refer to it refer to its parent, if it has one."""

    def prepare(capture: Capture) -> None:
        parent_row = -1
        if table == "slices":
            parent_row = int(capture.table(table).array("parent")[row])

        def renumbered(rows: NDArray[np.int64]) -> NDArray[np.int64]:
            rows = np.where(rows == row, parent_row, rows)
            return rows - (rows > row)

        def fewer(whole: Table) -> Table:
            part = whole
            changed = {}
            if whole.name == table:
                part = whole.select(whole.array("row") != row)
                changed["row"] = renumbered(part.array("row"))
            elif whole.name == "args":
                code = TABLE_CODES[table]
                is_of_table = whole.array("table") == code
                is_of_row = is_of_table & (whole.array("parent") == row)
                part = whole.select(~is_of_row)
                parent = part.array("parent")
                of_table = part.array("table") == code
                changed["parent"] = np.where(of_table, renumbered(parent), parent)
            reference = {"slices": "parent", "flows": "slice"}.get(whole.name)
            if table == "slices" and reference:
                changed[reference] = renumbered(part.array(reference))
            return part.replaced(**changed) if changed else part

        _through(capture, fewer)

    return prepare


REFERENCES = frozenset({*THREAD_COLUMNS, "parent", "slice", "node"})
"""Columns that identify rows of tables."""


def _in_column(table: str, column: str, change: Callable[[Table], ColumnData]) -> Change:
    """Replace a column, of one table or of all ("") that have it, by what ``change`` returns."""

    def changed(whole: Table) -> Table:
        has_column = column in whole
        if table:
            has_column = whole.name == table
        return whole.replaced(**{column: change(whole)}) if has_column else whole

    return lambda capture: _through(capture, changed)


def _appended(whole: Table, column: str, suffix: bytes) -> NDArray[Any]:
    """Return the codes of the texts in a column with more behind them; -1 stays."""
    pool = whole.pool
    old_codes = whole.array(column)
    new_codes = [
        code if code < 0 else pool.intern(pool.bytes_of(code) + suffix)
        for code in old_codes.tolist()
    ]
    return np.array(new_codes, old_codes.dtype)


def alter(table: str, column: str) -> Change:
    """Give each row another value in a column; references, and texts, change places."""

    def altered(whole: Table) -> ColumnData:
        old_values = whole[column]
        if column in REFERENCES or not isinstance(old_values, np.ndarray) or old_values.ndim > 1:
            last_first = np.arange(len(whole))[::-1]
            return whole.select(last_first)[column]
        schema = whole.schema.column(column)
        if schema.kind == "code":
            return _appended(whole, column, b"~")
        if schema.values:
            # The next value of the enumeration; after the last, the first.
            enumeration = np.array(sorted(schema.values), old_values.dtype)
            next_index = (np.searchsorted(enumeration, old_values) + 1) % enumeration.size
            return enumeration[next_index]
        if old_values.dtype == np.bool_:
            return ~old_values
        increased: NDArray[Any] = old_values + old_values.dtype.type(1)
        return increased

    return _in_column(table, column, altered)


LONG = b"~" * 200
"""What makes a text long."""


def lengthen(table: str, column: str, end: bytes) -> Change:
    """Give each row a long text in a column, which ends so."""

    def longer(whole: Table) -> ColumnData:
        values = whole[column]
        suffix = LONG + end
        if isinstance(values, TextColumn):
            return TextColumn.of(values.bytes_of(row) + suffix for row in range(len(whole)))
        return _appended(whole, column, suffix)

    return _in_column(table, column, longer)


def enlarge(table: str, column: str) -> Change:
    """Add 2**32 to each number in a column that is not negative."""

    def larger(whole: Table) -> ColumnData:
        values = whole.array(column)
        beyond_32_bits = values + values.dtype.type(1 << 32)
        return np.where(values >= 0, beyond_32_bits, values)

    return _in_column(table, column, larger)


def rename(odd: bytes) -> Change:
    """Append ``odd`` to every string of the pool in rows."""

    def renamed(table: Table) -> Table:
        codes = [column.name for column in table.schema.all_columns if column.kind == "code"]
        return table.replaced(**{name: _appended(table, name, odd) for name in codes})

    return lambda capture: _through(capture, renamed)


def shifted(by: int) -> Change:
    """Shift the times of all rows by so many nanoseconds."""
    return _in_column("", "ts", lambda table: table.array("ts") + np.int64(by))


def _through(capture: Capture, change: Callable[[Table], Table]) -> None:
    """Apply a change to all tables of a capture."""
    # A copy of the unchanged capture makes the tables.
    unchanged = copy.copy(capture)
    table = unchanged.table
    batches = unchanged.batches
    vars(capture).update(
        table=lambda name: change(table(name)),
        batches=lambda name, rows=65536: map(change, batches(name, rows)),
        row_counts=lambda: {name: len(change(table(name))) for name in unchanged.schemas},
    )
