"""Table: named columns of equal length over a shared string pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fxframework.errors import MissingExtraError, UsageError, did_you_mean
from fxframework.model.schema import Column, TableSchema
from fxframework.model.strings import StringPool, TextColumn

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ColumnData", "Table"]

ColumnData = NDArray[Any] | TextColumn
"""A column: a numpy array of shape (rows,), (rows, 2) for `bytes` and `array`, or a TextColumn."""


_NULL = frozenset(
    {"offset", "thread", "parent", "slice", "prev", "next", "prev_priority", "next_priority"}
)
"""Columns of numbers in which -1 says that there is none."""


class Table(Mapping[str, ColumnData]):
    """Columns by name; ``len(table)`` is the number of rows.

    A column may be given as a function that makes it when it is first asked for. Iterating gives
    the column names in the schema's order; ``texts(name)`` resolves a code column.
    """

    def __init__(
        self,
        schema: TableSchema,
        rows: int,
        columns: Mapping[str, ColumnData | Callable[[], ColumnData]],
        pool: StringPool,
    ) -> None:
        missing = {column.name for column in schema.all_columns} ^ columns.keys()
        if missing:
            msg = f"table {schema.name}: columns {sorted(missing)} do not match the schema"
            raise ValueError(msg)
        self.schema = schema
        self.pool = pool
        self._rows = rows
        self._columns = dict(columns)

    @classmethod
    def of(cls, schema: TableSchema, pool: StringPool, **given: Any) -> Table:
        """A table of these columns; one that is not given is null, zero or empty in every row.

        A column is anything that numpy makes an array of, or one value for all rows. A code
        column may be given as texts (str, or bytes), None for null; a text column as texts.
        Raises UsageError for a name that the schema does not have, ValueError for columns of
        different lengths.
        """
        known = {column.name: column for column in schema.all_columns}
        for name in given:
            if name not in known:
                raise UsageError(
                    f"table {schema.name} has no column {name!r}{did_you_mean(name, known)}",
                    remedy=f"it has {', '.join(known)}",
                )
        columns = {name: _column(known[name], value, pool) for name, value in given.items()}
        lengths = {
            len(column)
            for column in columns.values()
            if isinstance(column, TextColumn) or column.ndim
        }
        if len(lengths) > 1:
            msg = f"table {schema.name}: columns of {sorted(lengths)} rows"
            raise ValueError(msg)
        rows = max(lengths, default=0)
        for name, column in known.items():
            if name not in columns:
                columns[name] = _filler(column, rows)
                continue
            made = columns[name]
            if not isinstance(made, TextColumn) and made.ndim == 0:
                columns[name] = np.broadcast_to(made, rows)
        return cls(schema, rows, columns, pool)

    @property
    def name(self) -> str:
        """The table's name."""
        return self.schema.name

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[str]:
        return (column.name for column in self.schema.all_columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> ColumnData:
        try:
            column = self._columns[name]
        except KeyError:
            raise UsageError(
                f"table {self.name} has no column {name!r}{did_you_mean(name, self)}",
                remedy=f"it has {', '.join(self)}",
            ) from None
        if callable(column):
            column = column()
            if name != "row":  # as quickly made as fetched, and large
                self._columns[name] = column
        return column

    def array(self, name: str) -> NDArray[Any]:
        """A column that is a numpy array; TypeError for a text column."""
        column = self[name]
        if isinstance(column, TextColumn):
            msg = f"{self.name}.{name} is text"
            raise TypeError(msg)
        return column

    def texts(self, name: str) -> list[str | None]:
        """A code or text column as Python strings; None where the code is -1."""
        column = self[name]
        if isinstance(column, TextColumn):
            return list(column)
        pool: list[str | None] = [*self.pool.texts(), None]
        return [pool[code] for code in column.tolist()]

    def plain(self, name: str) -> list[Any]:
        """A column as people and text formats read it, as plain Python values.

        Codes and texts are strings (None for null), numbers of an enumeration their names where
        they have one, pairs tuples; everything else is a Python number or bool.
        """
        column = self[name]
        schema = self.schema.column(name)
        if isinstance(column, TextColumn) or schema.kind == "code":
            return self.texts(name)
        if column.ndim > 1:
            return [tuple(pair) for pair in column.tolist()]
        if schema.values:
            return [schema.values.get(value, value) for value in column.tolist()]
        return column.tolist()  # type: ignore[no-any-return]

    def select(self, rows: slice | NDArray[Any]) -> Table:
        """The rows of a slice, a boolean mask or an index array, as a table."""
        if isinstance(rows, slice):
            count = len(range(*rows.indices(self._rows)))
        elif rows.dtype == np.bool_:
            count = int(np.count_nonzero(rows))
        else:
            count = int(rows.size)

        def picked(name: str) -> Callable[[], ColumnData]:
            def make() -> ColumnData:
                column = self[name]
                if isinstance(column, TextColumn):
                    return column[rows] if isinstance(rows, slice) else column.take(rows)
                return column[rows]

            return make

        return Table(self.schema, count, {name: picked(name) for name in self}, self.pool)

    def batches(self, rows: int) -> Iterator[Table]:
        """The rows in order, at most ``rows`` at a time."""
        for at in range(0, len(self), rows):
            yield self.select(slice(at, at + rows))

    def to_arrow(self) -> pa.Table:
        """The table as pyarrow holds it: codes as dictionaries, text as binary-safe strings.

        Raises MissingExtraError where pyarrow is not installed.
        """
        try:
            import pyarrow as pa
        except ImportError:
            raise MissingExtraError("pyarrow", "arrow", purpose="an Arrow table") from None
        pool = (
            _arrow_pool(self.pool) if any(c.kind == "code" for c in self.schema.columns) else None
        )
        arrays = [_arrow_column(self[c.name], c.kind, pool) for c in self.schema.all_columns]
        return pa.table(arrays, names=list(self))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The Arrow C stream interface: polars, duckdb and pandas take the table as it is."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Table {self.name}: {self._rows} rows, {', '.join(self)}>"


def _arrow_pool(pool: StringPool) -> Any:
    import pyarrow as pa

    values = [pool.bytes_of(code) for code in range(len(pool))]
    try:
        return pa.array([value.decode() for value in values], pa.string())
    except UnicodeDecodeError:
        return pa.array(values, pa.binary())


def _arrow_column(column: ColumnData, kind: str, pool: Any) -> Any:
    import pyarrow as pa

    if kind == "code":
        codes = np.asarray(column)
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pool)
    if isinstance(column, TextColumn):
        values = [column.bytes_of(row) for row in range(len(column))]
        try:
            return pa.array([value.decode() for value in values], pa.large_string())
        except UnicodeDecodeError:
            return pa.array(values, pa.large_binary())
    if column.ndim == 2:
        flat = np.ascontiguousarray(column).reshape(-1)
        return pa.FixedSizeListArray.from_arrays(pa.array(flat), 2)
    return pa.array(np.ascontiguousarray(column))


def _column(column: Column, value: Any, pool: StringPool) -> ColumnData:
    """A column of a value for all rows (of shape ()) or of one a row."""
    if column.kind == "text":
        return value if isinstance(value, TextColumn) else TextColumn.of(value)
    if column.kind == "code":
        if isinstance(value, str | bytes | None):
            return np.asarray(_code(value, pool), np.int32)
        if not isinstance(value, np.ndarray):
            value = [_code(each, pool) for each in value]
        return np.asarray(value, np.int32)
    return np.asarray(value, "i8" if column.kind in _PAIRS else column.kind)


def _code(value: str | bytes | int | None, pool: StringPool) -> int:
    if value is None:
        return -1
    if isinstance(value, str):
        value = value.encode(errors="surrogateescape")
    return pool.intern(value) if isinstance(value, bytes) else int(value)


def _filler(column: Column, rows: int) -> ColumnData:
    """A column that was not given."""
    if column.name == "row":
        return np.arange(rows, dtype=np.int64)
    if column.kind == "text":
        return TextColumn.of([""] * rows)
    if column.kind in _PAIRS:
        return np.zeros((rows, 2), np.int64)
    if column.kind == "code":
        return np.broadcast_to(np.int32(-1), rows)
    value = -1 if column.name in _NULL else 0
    return np.broadcast_to(np.asarray(value, column.kind), rows)


_PAIRS = ("bytes", "array")
