"""The exporters `arrow`, `parquet` and `duckdb`, which write tables for columnar tools."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fxframework.errors import MissingExtraError, TemporaryFileError, UsageError, did_you_mean
from fxframework.exporters.main_table import main_table
from fxframework.io.folder import Folder
from fxframework.io.pending import scratch_folder
from fxframework.io.sink import Sink
from fxframework.kit.export import Export
from fxframework.kit.shown import in_quotes
from fxframework.model.capture import Capture
from fxframework.model.schema import STANDARD_TABLES, Column
from fxframework.model.table import Table
from fxframework.model.timeline import spare

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from fxframework.model.arrow import ArrowShape

MEMORY = "200MB"
"""Memory limit of the database while it is filled."""
ROWS = 1 << 20
"""Rows of an Arrow batch and of a Parquet row group."""
Write = Callable[["pa.RecordBatchReader", Sink], None]


def open_arrow(sink: Sink, options: Mapping[str, Any]) -> Export:
    """Open the exporter `arrow`: an Arrow IPC file of one table, or a folder of all."""
    kind = _FolderExport if isinstance(sink, Folder) else _TableExport
    return kind(sink, options, ".arrow", write_arrow)


def open_parquet(sink: Sink, options: Mapping[str, Any]) -> Export:
    """Open the exporter `parquet`: a Parquet file of one table, or a folder of all."""
    kind = _FolderExport if isinstance(sink, Folder) else _TableExport
    return kind(sink, options, ".parquet", write_parquet)


def arrow_schema(capture: Capture, table: str, schema: pa.Schema) -> pa.Schema:
    """Add each column's description, unit and enumeration names to an Arrow schema as metadata."""
    if table not in capture.schemas:
        return schema.with_metadata({"fxframework.table": table})
    columns = {column.name: column for column in capture.schemas[table].all_columns}
    fields = []
    for field in schema:
        if field.name in columns:
            field = field.with_metadata(_meaning(columns[field.name]))
        fields.append(field)
    import pyarrow as pa

    about = {
        "fxframework.table": table,
        "fxframework.format": capture.format,
        "fxframework.capture": os.fspath(capture.name),
    }
    if capture.utc_offset_ns is not None:
        about["fxframework.utc_offset_ns"] = str(capture.utc_offset_ns)
    return pa.schema(fields, metadata=about)


def _meaning(column: Column) -> dict[str, str]:
    metadata = {"description": column.doc}
    if column.unit:
        metadata["unit"] = column.unit
    if column.values:
        names = [f"{number}={name}" for number, name in column.values.items()]
        metadata["values"] = ", ".join(names)
    return metadata


class _Rows:
    """The rows of one table of several captures as Arrow tables of the same schema."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._parts: list[tuple[Capture, ArrowShape, pa.Table]] = []

    def add(self, capture: Capture) -> None:
        """Add a capture, which must stay open until ``tables`` is exhausted."""
        from fxframework.model.arrow import ArrowShape

        schema = capture.schemas.get(self._name) or STANDARD_TABLES[self._name]
        kinds = {column.name: column.kind for column in schema.all_columns}
        shape = ArrowShape(kinds, capture.strings)
        for batch in capture.batches(self._name, ROWS):
            shape.see(batch)
        empty = shape.table(Table.of(schema, capture.strings))
        about = arrow_schema(capture, self._name, empty.schema)
        self._parts.append((capture, shape, empty.cast(about)))

    def whole(self) -> pa.Table:
        """Return an empty table with the common schema and dictionaries."""
        return together([empty for _, _, empty in self._parts]).unify_dictionaries()

    def tables(self) -> Iterator[pa.Table]:
        """Yield tables of ``ROWS`` rows each, except the last."""
        waiting: list[pa.Table] = []
        for rows in self._batches():
            waiting.append(rows)
            del rows  # so that it is freed before the next batch is made
            while sum(map(len, waiting)) >= ROWS:
                joined = _joined(waiting)
                remainder = joined.slice(ROWS)
                waiting = [remainder] if len(remainder) else []
                yield joined.slice(0, ROWS)
                del joined, remainder
        if any(map(len, waiting)):
            yield _joined(waiting)

    def _batches(self) -> Iterator[pa.Table]:
        """Yield the batches of the captures, with the same schema and one dictionary per column."""
        common = self.whole()
        captures = [capture for capture, _, _ in self._parts]
        for capture, shape, empty in self._parts:
            for batch in capture.batches(self._name, ROWS):
                rows = shape.table(batch).cast(empty.schema)
                if len(captures) > 1:
                    rows = together([common, rows]).unify_dictionaries().combine_chunks()
                yield rows
                del rows
            spare(captures, capture)

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows as a RecordBatchReader."""
        import pyarrow as pa

        batches = itertools.chain.from_iterable(table.to_batches() for table in self.tables())
        return pa.RecordBatchReader.from_batches(self.whole().schema, batches)


def _joined(tables: list[pa.Table]) -> pa.Table:
    """Join tables of equal schema and dictionaries into one with contiguous columns."""
    import pyarrow as pa

    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()


class _TableExport(Export):
    """Writes one table of all captures to a file."""

    def __init__(self, sink: Sink, options: Mapping[str, Any], suffix: str, write: Write) -> None:
        super().__init__(sink, options)
        self._table = options["table"]
        self._suffix = suffix
        self._write = write
        self._rows: _Rows | None = None

    def write(self, capture: Capture) -> None:
        """Add the table of a capture. Raises WriteRefusedError if no table has rows."""
        counts = capture.row_counts()
        name = self._table or main_table(capture, counts)
        if name not in capture.tables:
            raise UsageError(
                f"{capture.format} captures have no table {name!r}"
                f"{did_you_mean(name, capture.tables)}",
                path=capture.name,
                remedy=f"-o table=NAME chooses one of {', '.join(capture.tables)}",
            )
        self._table = name
        self._rows = self._rows or _Rows(name)
        self._rows.add(capture)
        self._drop_rows(counts, but={name})

    def close(self) -> Mapping[str, int]:
        """Write the file; return the counts of rows of the other tables."""
        if self._rows is not None:
            self._write(self._rows.reader(), self._sink)
        return super().close()


class _FolderExport(_TableExport):
    """Writes each table of the captures to a separate file, named after the table."""

    _sink: Folder

    def __init__(self, sink: Sink, options: Mapping[str, Any], suffix: str, write: Write) -> None:
        super().__init__(sink, options, suffix, write)
        if self._table:
            raise UsageError(
                "a folder gets all tables",
                remedy=f"omit -o table={self._table}, or name a file as OUT",
            )
        self._captures: list[Capture] = []

    def write(self, capture: Capture) -> None:
        """Add every table of a capture."""
        self._captures.append(capture)

    def close(self) -> Mapping[str, int]:
        """Write the files, which omit nothing."""
        for name in dict.fromkeys(name for capture in self._captures for name in capture.tables):
            rows = _Rows(name)
            for capture in self._captures:
                if name in capture.tables:
                    rows.add(capture)
            with self._sink.file(f"{name}{self._suffix}") as sink:
                self._write(rows.reader(), sink)
        return {}


def together(parts: Sequence[pa.Table]) -> pa.Table:
    """Join tables of several captures; a column that one of them lacks is null there.

    Dictionaries of strings get the same type.
    """
    import pyarrow as pa

    if len(parts) == 1:
        return parts[0]

    def cast(field: pa.Field) -> pa.Field:
        kind = field.type
        if not (pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type)):
            return field
        return field.with_type(pa.dictionary(pa.int32(), pa.string()))

    parts_alike = []
    for part in parts:
        fields = [cast(field) for field in part.schema]
        schema = pa.schema(fields, metadata=part.schema.metadata)
        parts_alike.append(part.cast(schema))
    return pa.concat_tables(parts_alike, promote_options="permissive")


class _File(io.RawIOBase):
    """A sink as a file object for pyarrow; closing it does not commit the sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, data: Any) -> int:
        """Append bytes."""
        view = memoryview(data)
        self._sink.write(view)
        return view.nbytes

    def tell(self) -> int:
        """Bytes written so far."""
        return self._sink.written

    def writable(self) -> bool:
        """Return True."""
        return True


def write_arrow(rows: pa.RecordBatchReader, sink: Sink) -> None:
    """Write an Arrow IPC file; a column must have the same dictionary in all batches."""
    import pyarrow as pa

    with pa.ipc.new_file(pa.PythonFile(_File(sink), "w"), rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)


def parquet_writer(sink: Sink, schema: pa.Schema, *, plain: bool = False) -> Any:
    """Return a ``pyarrow.parquet.ParquetWriter`` with zstd and dictionary-encoded names.

    A ``plain`` file has only Parquet types, without the embedded Arrow schema.
    """
    import pyarrow as pa
    from pyarrow import parquet

    return parquet.ParquetWriter(
        pa.PythonFile(_File(sink), "w"),
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=[field.name for field in schema if pa.types.is_dictionary(field.type)],
        dictionary_pagesize_limit=1 << 30,
        version="2.6",
        store_schema=not plain,
        memory_pool=pa.system_memory_pool(),  # other pools keep the memory that is freed
    )


def write_parquet(rows: pa.RecordBatchReader, sink: Sink) -> None:
    """Write a Parquet file with a row group per batch."""
    with parquet_writer(sink, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch, row_group_size=ROWS)


def write_csv(rows: pa.RecordBatchReader, sink: Sink) -> None:
    """Write comma-separated values with a header line; nested values become text."""
    import pyarrow as pa
    from pyarrow import csv

    table = rows.read_all()

    def plain(column: pa.ChunkedArray) -> Any:
        if pa.types.is_dictionary(column.type):
            return column.cast(column.type.value_type)
        if pa.types.is_nested(column.type):
            values = column.to_pylist()
            return pa.array([None if value is None else str(value) for value in values])
        return column

    columns = [plain(column) for column in table.columns]
    plain_table = pa.table(columns, names=table.column_names)
    csv.write_csv(plain_table, pa.PythonFile(_File(sink), "w"))


def _plain(table: pa.Table) -> tuple[pa.Table, int]:
    """Return a table for duckdb, and the bytes of its dictionary strings if each row has its own.

    A dictionary that is longer than the strings of its rows, one after another, is replaced by
    these: duckdb would convert the whole of it for each batch.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    string_bytes = 0
    columns = list(table.columns)
    for index, column in enumerate(columns):
        if pa.types.is_dictionary(column.type):
            row_bytes = 0
            dictionary_bytes = 0
            for chunk in column.chunks:
                lengths = pc.cast(pc.binary_length(chunk.dictionary), pa.int64())
                chunk_bytes = pc.sum(lengths.take(chunk.indices)).as_py()
                row_bytes += chunk_bytes or 0
                dictionary_bytes += pc.sum(lengths).as_py() or 0
            string_bytes += row_bytes
            # Strings of rows have an offset of 4 bytes each, too.
            if row_bytes + 4 * len(column) <= dictionary_bytes:
                columns[index] = column.cast(column.type.value_type)
    return pa.table(columns, table.schema.names), string_bytes


class DatabaseExport(Export):
    """Writes every table to a database in a temporary file, which is copied to the output."""

    def __init__(self, sink: Sink, options: Mapping[str, Any]) -> None:
        super().__init__(sink, options)
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("duckdb", "sql", purpose="a database file") from None
        self._error = duckdb.IOException
        self._stack = contextlib.ExitStack()
        self._path = self._stack.enter_context(scratch_folder("duckdb")) / "capture.duckdb"
        with self._writing():
            # Beyond its memory limit, duckdb uses a file beside the database.
            connection = duckdb.connect(str(self._path), config={"memory_limit": MEMORY})
            self._connection = self._stack.enter_context(connection)
        self._created_tables: set[str] = set()
        self._string_bytes = 0
        """Bytes of strings so far, which the budget bounds."""

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Convert errors of duckdb to TemporaryFileError, and remove the temporary file."""
        try:
            yield
        except self._error as error:
            self._stack.close()
            folder = str(self._path.parent.parent)
            raise TemporaryFileError(OSError(str(error)), folder=folder) from error

    def write(self, capture: Capture) -> None:
        """Add every table of a capture, with the capture's name in each row."""
        with self._writing():
            self._add(capture)

    def _add(self, capture: Capture) -> None:
        for name in capture.tables:
            rows = _Rows(name)
            rows.add(capture)
            for table in itertools.chain([rows.whole()], rows.tables()):
                self._insert(name, table, capture.name)
                del table

    def _insert(self, name: str, table: pa.Table, capture_name: str) -> None:
        """Append rows to a table of the database; the first call for a name creates the table."""
        import pyarrow as pa

        table, nbytes = _plain(table)
        if self._sink.budget is not None:
            self._string_bytes += nbytes
            self._sink.budget.check_output(self._string_bytes, path=self._sink.name)
        capture_names = pa.DictionaryArray.from_arrays(
            pa.nulls(len(table), pa.int32()).fill_null(0), [capture_name]
        )
        self._connection.register("given", table.append_column("capture", capture_names))
        relation = self._connection.table("given")
        if name in self._created_tables:
            self._add_columns(name, relation)
            table_name = in_quotes(name)
            self._connection.execute(f"insert into {table_name} by name from given")
        else:
            relation.create(name)
        self._connection.unregister("given")
        self._created_tables.add(name)

    def _add_columns(self, name: str, rows: duckdb.DuckDBPyRelation) -> None:
        """Give a table the columns that only these rows have; they are null in earlier ones."""
        known = self._connection.table(name).columns
        for column, kind in zip(rows.columns, rows.types, strict=True):
            if column not in known:
                added = f"{in_quotes(column)} {kind}"
                self._connection.execute(f"alter table {in_quotes(name)} add column {added}")

    def close(self) -> Mapping[str, int]:
        """Copy the database file to the output, which omits nothing."""
        with self._writing():
            self._connection.execute("checkpoint")
            self._connection.close()
        with self._stack, self._path.open("rb") as file:
            shutil.copyfileobj(file, self._sink, 1 << 20)
        return {}
