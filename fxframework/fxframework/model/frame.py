"""Frames: a table joined with the names, ids and arguments that its rows refer to, as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fxframework.errors import LimitError
from fxframework.kernels.arrays import I64
from fxframework.kernels.sorting import places_among
from fxframework.model.arrow import code_columns
from fxframework.model.schema import (
    ARGUMENT,
    CELLS,
    TABLE_CODES,
    THREAD_COLUMNS,
    ArgType,
    TableSchema,
)
from fxframework.model.strings import StringPool
from fxframework.model.threads import Threads

if TYPE_CHECKING:
    import pyarrow as pa

    from fxframework.model.table import Table

__all__ = ["frame_of"]

SIGNED = (ArgType.INT32, ArgType.INT64)


def frame_of(
    table: Table,
    schemas: Mapping[str, TableSchema],
    read: Callable[[str], Table],
    *,
    args: bool,
) -> pa.Table:
    """Return a table with joined columns after its own; see ``Capture.frame``.

    ``schemas`` are those of the capture's tables; ``read`` returns a table by name.
    """
    joined: dict[str, Any] = {}
    if "threads" in schemas:
        joined |= _thread_columns(table, schemas, read)
    if args and "args" in schemas and table.name in TABLE_CODES and "row" in table:
        joined |= _arguments(table, read("args"))
    frame = table.to_arrow()
    for name, column in joined.items():
        if name not in frame.column_names:
            frame = frame.append_column(name, column)
    return frame


def _thread_columns(
    table: Table, schemas: Mapping[str, TableSchema], read: Callable[[str], Table]
) -> dict[str, Any]:
    """Return pid, tid, process name and thread name for each column that holds a thread."""
    import pyarrow as pa

    columns = [name for name in THREAD_COLUMNS if name in table]
    if not columns:
        return {}
    threads = Threads(schemas, read)
    joined: dict[str, Any] = {}
    for name in columns:
        prefix = THREAD_COLUMNS[name]
        rows = threads.rows(table.array(name))
        is_missing = rows < 0
        for column, numbers in (("pid", threads.pids), ("tid", threads.tids)):
            joined[prefix + column] = pa.array(_taken(numbers, rows), mask=is_missing)
        for column, names in (
            ("process_name", threads.process_names),
            ("thread_name", threads.names),
        ):
            codes = np.where(is_missing, -1, _taken(names, rows))
            joined.update(code_columns(prefix + column, codes, table.pool))
    return joined


def _taken(values: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return the values of some rows; arbitrary values for negative rows."""
    return values[rows] if values.size else np.zeros(rows.size, values.dtype)


def _arguments(table: Table, args: Table) -> dict[str, Any]:
    """Return a column for each argument name that occurs in the table."""
    args_rows, table_rows = _args_of(table, args)
    # Sort by name, backwards within a name, so that the first of equal arguments is written last.
    names = args.array("name")[args_rows]
    by_name = np.lexsort((-np.arange(names.size), names))
    args_rows = args_rows[by_name]
    table_rows = table_rows[by_name]
    distinct_names, starts = np.unique(names[by_name], return_index=True)
    if distinct_names.size * len(table) > CELLS:
        raise LimitError(
            f"{distinct_names.size:,} names of arguments times {len(table):,} rows of {table.name} "
            f"are more than {CELLS:,} values",
            remedy="join the table `args` yourself, or select fewer rows first",
        )
    columns: dict[str, Any] = {}
    bounds = [*starts.tolist(), names.size]
    for code, start, stop in zip(distinct_names.tolist(), bounds, bounds[1:], strict=False):
        values = _Values(args, args_rows[start:stop], table_rows[start:stop], len(table))
        name = ARGUMENT + table.pool.text(code)
        if name not in columns:
            columns.update(values.columns(name, table.pool))
    return columns


def _args_of(table: Table, args: Table) -> tuple[I64, I64]:
    """Return the rows of the arguments of a table's rows, and the indices of these rows."""
    args_rows = np.flatnonzero(args.array("table") == TABLE_CODES[table.name])
    parents = args.array("parent")[args_rows]
    rows = table.array("row")  # of a selection: neither complete nor perhaps ascending
    by_row = np.argsort(rows, kind="stable")
    places = places_among(parents, rows[by_row])
    is_there = places >= 0
    return args_rows[is_there], by_row[places[is_there]]


class _Values:
    """The arguments of one name: their rows in `args` and in the joined table."""

    def __init__(self, args: Table, rows: I64, table_rows: I64, count: int) -> None:
        self._args = args
        self._rows = rows
        self._table_rows = table_rows
        self._count = count
        self._types = args.array("type")[rows]

    def columns(self, name: str, pool: StringPool) -> dict[str, pa.Array]:
        """Return a column of the arguments' common type, or of strings if they differ.

        A column of the bytes of strings that are not UTF-8 may follow (``code_columns``).
        """
        types = set(np.unique(self._types).tolist()) - {ArgType.NULL}
        if types <= {ArgType.STRING, ArgType.BLOB}:
            codes = np.full(self._count, -1, np.int32)
            codes[self._table_rows] = self._of("str")
            return code_columns(name, codes, pool)
        numbers = self._numbers(types)
        if numbers is not None:
            return {name: numbers}
        return {name: self._texts(pool)}

    def _numbers(self, types: set[int]) -> pa.Array | None:
        """Return a column of bools, integers or doubles; None if these types have no common one."""
        if types == {ArgType.BOOL}:
            return self._scattered(self._of("int") != 0)
        if types == {ArgType.DOUBLE}:
            return self._scattered(self._of("float"))
        if not types & {ArgType.STRING, ArgType.BLOB, ArgType.DOUBLE, ArgType.BOOL}:
            # ``int`` and ``uint`` are the same 64 bits: those with the highest one are negative
            # numbers or large ones.
            is_signed = np.isin(self._types, (*SIGNED, ArgType.NULL))
            has_high_bit = self._of("uint") > np.uint64((1 << 63) - 1)
            if not (has_high_bit & ~is_signed).any():
                return self._scattered(self._of("int"))
            if not (has_high_bit & is_signed).any():
                return self._scattered(self._of("uint"))
        return None

    def _of(self, column: str) -> NDArray[Any]:
        values: NDArray[Any] = self._args.array(column)[self._rows]
        return values

    def _scattered(self, values: NDArray[Any]) -> pa.Array:
        """Scatter the values to their rows; null elsewhere and where an argument is null."""
        import pyarrow as pa

        column = np.zeros(self._count, values.dtype)
        column[self._table_rows] = values
        is_null = np.ones(self._count, np.bool_)
        is_null[self._table_rows] = self._types == ArgType.NULL
        return pa.array(column, mask=is_null)

    def _texts(self, pool: StringPool) -> pa.Array:
        """Return values of several types as strings."""
        import pyarrow as pa

        texts: list[str | None] = [None] * self._count
        values = zip(
            self._table_rows.tolist(),
            self._types.tolist(),
            self._of("int").tolist(),
            self._of("uint").tolist(),
            self._of("float").tolist(),
            self._of("str").tolist(),
            strict=True,
        )
        for row, value_type, signed, unsigned, double, code in values:
            text: str | None = None
            if value_type in (ArgType.STRING, ArgType.BLOB):
                if code >= 0:
                    text = pool.bytes_of(code).decode("utf-8", "backslashreplace")
            elif value_type == ArgType.DOUBLE:
                text = repr(double)
            elif value_type == ArgType.BOOL:
                text = "true" if signed else "false"
            elif value_type != ArgType.NULL:
                text = str(signed if value_type in SIGNED else unsigned)
            # Also None is set: an earlier argument of the name may have had a text.
            texts[row] = text
        return pa.array(texts, pa.string())
