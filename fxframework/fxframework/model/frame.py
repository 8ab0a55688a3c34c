"""Frames: a table joined with the names, ids and arguments that its rows refer to, as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fxframework.errors import LimitError
from fxframework.model.arrow import code_columns
from fxframework.model.schema import CELLS, TABLE_CODES, THREAD_COLUMNS, TableSchema
from fxframework.model.strings import StringPool
from fxframework.model.threads import Threads

if TYPE_CHECKING:
    import pyarrow as pa

    from fxframework.model.table import Table

__all__ = ["frame_of"]

ARGUMENT = "arg_"
"""Prefix of argument columns."""

NULL, DOUBLE, STRING, BOOL, BLOB = 0, 5, 6, 9, 10
SIGNED = (1, 3)


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
        missing = rows < 0
        for column, values in (("pid", threads.pids), ("tid", threads.tids)):
            joined[prefix + column] = pa.array(_taken(values, rows), mask=missing)
        for column, codes in (
            ("process_name", threads.process_names),
            ("thread_name", threads.names),
        ):
            picked = np.where(missing, -1, _taken(codes, rows))
            joined.update(code_columns(prefix + column, picked, table.pool))
    return joined


def _taken(values: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return the values of some rows; arbitrary values for negative rows."""
    return values[rows] if values.size else np.zeros(rows.size, values.dtype)


def _arguments(table: Table, args: Table) -> dict[str, Any]:
    """Return a column for each argument name that occurs in the table."""
    rows = table.array("row")
    mine = np.flatnonzero(args.array("table") == TABLE_CODES[table.name])
    parents = args.array("parent")[mine]
    order = np.argsort(rows, kind="stable")
    at = np.searchsorted(rows, parents, sorter=order)
    there = at < rows.size
    there[there] = rows[order[at[there]]] == parents[there]
    mine, to = mine[there], order[at[there]]
    # Sort by name, backwards within a name, so that the first of equal arguments is written last.
    names = args.array("name")[mine]
    by_name = np.lexsort((-np.arange(names.size), names))
    mine, to, names = mine[by_name], to[by_name], names[by_name]
    distinct, starts = np.unique(names, return_index=True)
    if distinct.size * len(table) > CELLS:
        raise LimitError(
            f"{distinct.size:,} names of arguments times {len(table):,} rows of {table.name} "
            f"are more than {CELLS:,} values",
            remedy="join the table `args` yourself, or select fewer rows first",
        )
    texts = table.pool
    columns: dict[str, Any] = {}
    bounds = [*starts.tolist(), names.size]
    for code, start, stop in zip(distinct.tolist(), bounds, bounds[1:], strict=False):
        values = _Values(args, mine[start:stop], to[start:stop], len(table))
        name = ARGUMENT + texts.text(code)
        if name not in columns:
            columns.update(values.columns(name, table.pool))
    return columns


class _Values:
    """The arguments of one name: their rows in `args` and in the joined table."""

    def __init__(self, args: Table, rows: NDArray[Any], to: NDArray[Any], count: int) -> None:
        self._args = args
        self._rows = rows
        self._to = to
        self._count = count
        self._types = args.array("type")[rows]

    def columns(self, name: str, pool: StringPool) -> dict[str, pa.Array]:
        """Return a column of the arguments' common type, or of strings if they differ.

        A column of the bytes of strings that are not UTF-8 may follow (``code_columns``).
        """
        types = set(np.unique(self._types).tolist()) - {NULL}
        if types <= {STRING, BLOB}:
            codes = np.full(self._count, -1, np.int32)
            codes[self._to] = self._of("str")
            return code_columns(name, codes, pool)
        numbers = self._numbers(types)
        return {name: self._texts(pool) if numbers is None else numbers}

    def _numbers(self, types: set[int]) -> pa.Array | None:
        """Return a column of bools, integers or doubles; None if these types have no common one."""
        if types == {BOOL}:
            return self._spread(self._of("int") != 0)
        if types == {DOUBLE}:
            return self._spread(self._of("float"))
        if not types & {STRING, BLOB, DOUBLE, BOOL}:
            signed = np.isin(self._types, (*SIGNED, NULL))
            large = self._of("uint") > np.uint64((1 << 63) - 1)
            if not (large & ~signed).any():
                return self._spread(self._of("int"))
            if not (large & signed).any():
                return self._spread(self._of("uint"))
        return None

    def _of(self, column: str) -> NDArray[Any]:
        values: NDArray[Any] = self._args.array(column)[self._rows]
        return values

    def _spread(self, values: NDArray[Any]) -> pa.Array:
        """Scatter the values to their rows; null elsewhere and where an argument is null."""
        import pyarrow as pa

        out = np.zeros(self._count, values.dtype)
        out[self._to] = values
        missing = np.ones(self._count, np.bool_)
        missing[self._to] = self._types == NULL
        return pa.array(out, mask=missing)

    def _texts(self, pool: StringPool) -> pa.Array:
        """Return values of several types as strings."""
        import pyarrow as pa

        out: list[str | None] = [None] * self._count
        values = zip(
            self._to.tolist(),
            self._types.tolist(),
            self._of("int").tolist(),
            self._of("uint").tolist(),
            self._of("float").tolist(),
            self._of("str").tolist(),
            strict=True,
        )
        for row, kind, signed, unsigned, double, code in values:
            if kind in (STRING, BLOB):
                octets = pool.bytes_of(code) if code >= 0 else None
                out[row] = None if octets is None else octets.decode("utf-8", "backslashreplace")
            elif kind == DOUBLE:
                out[row] = repr(double)
            elif kind == BOOL:
                out[row] = "true" if signed else "false"
            elif kind != NULL:
                out[row] = str(signed if kind in SIGNED else unsigned)
            else:
                out[row] = None
        return pa.array(out, pa.string())
