"""Table: named columns of equal length over a shared string pool."""

from __future__ import annotations

import functools
import html
import reprlib
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fxframework.errors import (
    BadCallError,
    BadTypeError,
    MissingExtraError,
    UsageError,
    checked_type,
    did_you_mean,
)
from fxframework.model.schema import Column, TableSchema
from fxframework.model.strings import StringPool, TextColumn, read_only

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from pandas import DataFrame

__all__ = ["ColumnData", "Table", "html_table", "null_of"]

ColumnData = NDArray[Any] | TextColumn
"""A column: a numpy array of shape (rows,), (rows, 2) for `bytes` and `array`, or a TextColumn."""
NULLABLE = frozenset(
    {"offset", "thread", "parent", "slice", "prev", "next", "prev_priority", "next_priority"}
)
"""Columns of numbers in which -1 means null."""
PAIRS = frozenset({"bytes", "array"})
"""Kinds of columns with two numbers a row."""
ROWS = 65536
"""Rows converted to tuples together."""
HTML_ROWS = 20
"""Rows that a notebook shows."""


class Table:
    """Columns by name: ``table["ts"]``; ``len(table)`` is the number of rows.

    Columns are read-only: they are shared by all who read the capture. To change one, copy it.

    ``table.columns`` has their names in the schema's order; ``texts(name)`` returns the strings
    of a code or text column. Iteration yields rows as named tuples with codes as strings, which
    is convenient but slow. A column may be given as a function, called on first use.

    Polars, duckdb, pyarrow and pandas accept a table directly: ``pl.DataFrame(table)``,
    ``pa.table(table)``, ``pd.DataFrame(table)``; for many rows ``table.to_pandas()`` is faster.
    """

    def __init__(
        self,
        schema: TableSchema,
        rows: int,
        columns: Mapping[str, ColumnData | Callable[[], ColumnData]],
        pool: StringPool,
    ) -> None:
        defaults = {
            column.name: functools.partial(_default_column, column, rows)
            for column in schema.all_columns
            if column.optional
        }
        columns = {**defaults, **columns}
        schema_names = {column.name for column in schema.all_columns}
        mismatched = schema_names ^ columns.keys()  # missing ones, and ones too many
        if mismatched:
            raise BadCallError(
                f"the columns of table {schema.name} do not match its schema: {sorted(mismatched)}",
                remedy="give exactly the columns of the schema, or use Table.of()",
            )
        self.schema = schema
        self.pool = pool
        self._rows = rows
        self._columns = {
            name: column if callable(column) else _read_only(column)
            for name, column in columns.items()
        }

    @classmethod
    def of(cls, schema: TableSchema, pool: StringPool, **given: Any) -> Table:
        """Make a table of these columns; a missing column is null, zero or empty in every row.

        A column is anything that numpy converts to an array, or one value for all rows. A code
        column may be given as texts (str or bytes), None for null; a text column as texts; a
        column of an enumeration as names, such as ``scope="global"``.
        Raises BadCallError for a name that the schema does not have, a value that the column
        cannot hold, and columns of different lengths.
        """
        schema_columns = {column.name: column for column in schema.all_columns}
        columns: dict[str, ColumnData] = {}
        for name, value in given.items():
            if name not in schema_columns:
                hint = did_you_mean(name, schema_columns)
                raise BadCallError(
                    f"table {schema.name} has no column {name!r}{hint}",
                    remedy=f"it has {', '.join(schema_columns)}",
                )
            schema_column = schema_columns[name]
            try:
                columns[name] = _column(schema_column, value, pool)
            except (TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
                raise BadCallError(
                    f"column {name!r} of table {schema.name}, of kind {schema_column.kind!r}, "
                    f"cannot hold {reprlib.repr(value)}: {error}",
                ) from error
        lengths = {
            len(column)
            for column in columns.values()
            if isinstance(column, TextColumn) or column.ndim
        }
        if len(lengths) > 1:
            raise BadCallError(f"table {schema.name} has columns of {sorted(lengths)} rows")
        rows = max(lengths, default=0)
        for name, schema_column in schema_columns.items():
            column = columns.get(name)
            if column is None:
                columns[name] = _default_column(schema_column, rows)
            elif not isinstance(column, TextColumn) and column.ndim == 0:
                columns[name] = np.broadcast_to(column, rows)  # one value for all rows
        return cls(schema, rows, columns, pool)

    @property
    def name(self) -> str:
        """The table's name."""
        return self.schema.name

    def __len__(self) -> int:
        return self._rows

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, in the schema's order."""
        return tuple(column.name for column in self.schema.all_columns)

    def __iter__(self) -> Iterator[Any]:
        Row = namedtuple(self.name, self.columns)  # type: ignore[misc]  # noqa: PYI024
        for batch in self.batches(ROWS):
            columns = [batch._values(name) for name in self.columns]  # noqa: SLF001
            yield from map(Row._make, zip(*columns, strict=True))

    def _values(self, name: str) -> list[Any]:
        """Return a column as Python values: codes and texts as strings, pairs as tuples."""
        column = self[name]
        if isinstance(column, TextColumn) or self.schema.column(name).kind == "code":
            return self.texts(name)
        values: list[Any] = column.tolist()
        if column.ndim > 1:
            return [tuple(pair) for pair in values]
        return values

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> ColumnData:
        try:
            column = self._columns[name]
        except (KeyError, TypeError):  # a list cannot even be looked up
            checked_type(name, str, "the name of a column", "a str")
            raise UsageError(
                f"table {self.name} has no column {name!r}{did_you_mean(name, self.columns)}",
                remedy=f"it has {', '.join(self.columns)}",
            ) from None
        if callable(column):
            with self.pool.lock:  # what makes it may be shared with other columns
                column = _read_only(column())
            if name != "row":  # large, and as fast to make as to fetch
                self._columns[name] = column
        return column

    def array(self, name: str) -> NDArray[Any]:
        """Return a column as a numpy array. Raises TypeError for a text column."""
        column = self[name]
        if isinstance(column, TextColumn):
            msg = f"{self.name}.{name} is text"
            raise BadTypeError(msg, remedy=f"texts({name!r}) has its values")
        return column

    def tuples(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of some numpy columns as tuples of Python numbers; codes stay codes."""
        return zip(*(self.array(name).tolist() for name in names), strict=True)

    def texts(self, name: str) -> list[str | None]:
        """Return a code or text column as Python strings; None where the code is -1.

        Raises TypeError for a column of another kind.
        """
        column = self[name]
        if isinstance(column, TextColumn):
            return list(column)
        kind = self.schema.column(name).kind
        if kind != "code":
            msg = f"{self.name}.{name} has no texts: it is of kind {kind!r}"
            raise BadTypeError(msg, remedy=f"array({name!r}) and plain({name!r}) have its values")
        return self.pool.take(column)

    def plain(self, name: str) -> list[Any]:
        """Return a column as plain Python values for display and text formats.

        Codes and texts become strings (None for null), values of an enumeration their names if
        they have one, pairs tuples; everything else becomes a Python number or bool.
        """
        values = self._values(name)
        names = self.schema.column(name).values
        if not names:
            return values
        return [names.get(value, value) for value in values]

    def select(self, rows: slice | NDArray[Any]) -> Table:
        """Return the rows of a slice, a boolean mask or an index array, as a table."""
        checked_type(rows, (slice, np.ndarray), "the rows", "a slice or a numpy array")
        return self._selected(rows, self.__getitem__)

    def _selected(self, rows: slice | NDArray[Any], whole: Callable[[str], ColumnData]) -> Table:
        """Return some rows of the columns that ``whole`` returns by name."""
        if isinstance(rows, slice):
            count = len(range(*rows.indices(self._rows)))
        elif rows.dtype == np.bool_:
            count = int(np.count_nonzero(rows))
        else:
            count = int(rows.size)

        def selected(name: str) -> ColumnData:
            column = whole(name)
            if isinstance(column, TextColumn):
                return column[rows] if isinstance(rows, slice) else column.take(rows)
            return column[rows]

        columns = {name: functools.partial(selected, name) for name in self.columns}
        return Table(self.schema, count, columns, self.pool)

    def replaced(self, **columns: ColumnData) -> Table:
        """Return the table with other values in these columns; the others are made when used."""
        others = {name: functools.partial(self.__getitem__, name) for name in self.columns}
        return Table(self.schema, self._rows, {**others, **columns}, self.pool)

    def batches(self, rows: int) -> Iterator[Table]:
        """Yield the rows in order, at most ``rows`` at a time."""
        checked_type(rows, Integral, "the size of batches", "an int")
        row_numbers: ColumnData | None = None

        def whole(name: str) -> ColumnData:
            nonlocal row_numbers
            if name != "row":
                return self[name]
            # The table does not cache row numbers: they are made once for all batches.
            if row_numbers is None:
                row_numbers = self[name]
            return row_numbers

        for first in range(0, len(self), rows):
            yield self._selected(slice(first, first + rows), whole)

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        r"""Return the table, or some of its columns, as a pyarrow table.

        Code columns become dictionaries of strings, null for -1; text columns `large_string`. If
        one of their strings is not UTF-8, its invalid bytes are ``\xNN``, and a binary column
        ``NAME_bytes`` follows, which has the bytes of such strings and is null for others. Pairs
        are lists of two integers. Raises MissingExtraError if pyarrow is not installed.
        """
        from fxframework.model.arrow import ArrowShape

        names = self.columns if columns is None else columns
        columns_by_name = {name: self[name] for name in names}
        shape = ArrowShape({name: self.schema.column(name).kind for name in names}, self.pool)
        shape.see(columns_by_name)
        return shape.table(columns_by_name)

    def to_polars(self) -> pl.DataFrame:
        """Return a polars DataFrame. Raises MissingExtraError without polars or pyarrow."""
        arrow = self.to_arrow()
        try:
            import polars as pl
        except ImportError:
            raise MissingExtraError("polars", "frames", purpose="a polars DataFrame") from None
        frame = pl.from_arrow(arrow)
        assert isinstance(frame, pl.DataFrame)  # noqa: S101 (a table makes a frame)
        return frame

    def to_pandas(self) -> DataFrame:
        """Return a pandas DataFrame. Raises MissingExtraError without pandas or pyarrow.

        Code columns are categories; missing strings are NaN or None, depending on pandas.
        """
        arrow = self.to_arrow()
        try:
            import pandas  # noqa: F401, ICN001 (pyarrow uses it)
        except ImportError:
            raise MissingExtraError("pandas", "frames", purpose="a pandas DataFrame") from None
        frame: DataFrame = arrow.to_pandas()
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return an Arrow C stream, through which polars, duckdb and pyarrow accept the table."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Table {self.name}: {self._rows} rows, {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        """Return the first rows as HTML, for a notebook."""
        first_rows = self.select(slice(0, HTML_ROWS))
        columns = {name: first_rows.plain(name) for name in first_rows.columns}
        title = f"{self.name}: {self._rows:,} rows"
        if len(first_rows) < self._rows:
            title += f", the first {len(first_rows)} shown"
        return html_table(title, list(columns), zip(*columns.values(), strict=True))


def html_table(title: str, names: list[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return an HTML table with a caption; None becomes an empty cell."""

    def cells(tag: str, values: Iterable[Any]) -> str:
        texts = ("" if value is None else html.escape(str(value)) for value in values)
        return "<tr>" + "".join(f"<{tag}>{text}</{tag}>" for text in texts) + "</tr>"

    body = "".join(cells("td", row) for row in rows)
    head = ""
    if names:
        head = f"<thead>{cells('th', names)}</thead>"
    return f"<table><caption>{html.escape(title)}</caption>{head}<tbody>{body}</tbody></table>"


def _read_only(column: ColumnData) -> ColumnData:
    """Return a column that cannot be written to, without copying; its owner still can."""
    return column.read_only() if isinstance(column, TextColumn) else read_only(column)


def _column(column: Column, value: Any, pool: StringPool) -> ColumnData:
    """Convert a given value: to an array of shape () if it is for all rows, else of one per row."""
    if column.kind == "text":
        return value if isinstance(value, TextColumn) else TextColumn.of(value)
    if column.kind == "code":
        # A text is one value for all rows, although it is a sequence.
        if isinstance(value, str | bytes | None):
            return np.asarray(_code(value, pool), np.int32)
        if not isinstance(value, np.ndarray):
            value = [_code(string, pool) for string in value]
        codes = np.asarray(value, np.int32)
        pool.check(codes)
        return codes
    if column.values and not isinstance(value, np.ndarray):
        numbers = {name: number for number, name in column.values.items()}
        if isinstance(value, str | int):
            value = _number(value, numbers)
        else:
            value = [_number(name, numbers) for name in value]
    return np.asarray(value, "i8" if column.kind in PAIRS else column.kind)


def _number(value: Any, numbers: Mapping[str, int]) -> Any:
    """Return the number of a name of an enumeration. Raises ValueError for an unknown name."""
    if not isinstance(value, str):
        return value
    if value not in numbers:
        raise ValueError(f"{value!r} is not one of {', '.join(numbers)}")
    return numbers[value]


def _code(value: str | bytes | int | None, pool: StringPool) -> int:
    if value is None:
        return -1
    if isinstance(value, str):
        value = value.encode(errors="surrogateescape")
    return pool.intern(value) if isinstance(value, bytes) else int(value)


def null_of(column: Column) -> Any:
    """Return the value of a column in a row without one: null, zero or empty."""
    if column.kind in PAIRS:
        return (0, 0)
    if column.kind == "code":
        return None
    if column.kind == "text":
        return ""
    return -1 if column.name in NULLABLE else 0


def _default_column(column: Column, rows: int) -> ColumnData:
    """Return the default of a column that was not given."""
    if column.name == "row":
        return np.arange(rows, dtype=np.int64)
    if column.kind == "text":
        return TextColumn.of([""] * rows)
    if column.kind in PAIRS:
        return np.zeros((rows, 2), np.int64)
    if column.kind == "code":
        return np.broadcast_to(np.int32(-1), rows)
    return np.broadcast_to(np.asarray(null_of(column), column.kind), rows)
