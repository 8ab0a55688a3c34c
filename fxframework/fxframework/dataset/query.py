"""Query: SQL over the tables of a dataset, and joined forms of them, as views of duckdb."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from fxframework.dataset.manifest import Entry
from fxframework.dataset.part import COLUMNS
from fxframework.dataset.store import DATASET, Store
from fxframework.errors import FxError, LimitError, UnreadableError
from fxframework.io.remote import is_address
from fxframework.kit.shown import in_quotes
from fxframework.model.schema import (
    CELLS,
    STANDARD_TABLES,
    TABLE_CODES,
    THREAD_COLUMNS,
    ArgType,
    TableSchema,
)
from fxframework.query import ARGS, JOINED, Queries, member_names

if TYPE_CHECKING:
    import pyarrow as pa

TEXT = (ArgType.STRING.value, ArgType.BLOB.value)
SIGNED = (ArgType.INT32.value, ArgType.INT64.value)
"""As numbers, which are what SQL compares."""
INT64_END = 1 << 63
"""The first number that does not fit into a signed column."""


def is_dataset(name: str | os.PathLike[str]) -> bool:
    """Return whether a folder or an address is a dataset."""
    from pathlib import Path

    name = os.fspath(name)
    if not is_address(name):
        return (Path(name) / DATASET).is_file()
    if "." in name.rstrip("/").rpartition("/")[2]:
        return False  # the address of a capture: avoid a request
    return Store(name).read(DATASET) is not None


class DatasetQueries(Queries):
    """The views of a dataset: every table of every finished capture.

    Each view has the columns ``capture``, ``capture_file`` and ``capture_host``; ``captures`` is
    the manifest. Only the columns and row groups that a query needs are read.
    """

    def __init__(self, root: str) -> None:
        super().__init__()
        self._store = Store(root)
        if self._store.read(DATASET) is None:
            raise UnreadableError(
                "this is not a dataset", path=root, remedy="make one with `fxf batch`"
            )
        entries = self._store.entries().values()
        self._entries = sorted(entries, key=lambda entry: entry.file)
        self._schemas: dict[str, pa.Schema] = {}
        self._made: set[str] = set()
        """Names of the views that there are."""
        present_tables = {table for entry in self._entries for table in entry.rows}
        self._tables = [table for table in STANDARD_TABLES if table in present_tables]
        self._tables += sorted(present_tables - set(self._tables))

    @property
    def views(self) -> dict[str, tuple[str, ...]]:
        """The views with their columns; of a joined view, those that are known in advance."""
        columns: dict[str, tuple[str, ...]] = {"captures": tuple(_manifest([]).column_names)}
        for table in self._tables:
            names = tuple(self._schema(table).names)
            columns[table] = names
            if table in JOINED:
                columns[JOINED[table]] = (*names, ARGS)
        return columns

    def _make_views(self, words: AbstractSet[str], *, everything: bool) -> None:  # noqa: ARG002
        joined_tables = [table for table in self._tables if JOINED.get(table) in words]
        for table in self._tables:
            is_needed_to_join = joined_tables and table in {"threads", "processes", "args"}
            if table in words or table in joined_tables or is_needed_to_join:
                self._make_view(table)
        for table in joined_tables:
            name = JOINED[table]
            if name not in self._made:
                self._made.add(name)
                self._connection.execute(f"create view {name} as {self._joined_query(table)}")
        if "captures" in words and "captures" not in self._made:
            self._made.add("captures")
            self._connection.register("captures", _manifest(self._entries))

    def _with_rows(self, table: str) -> list[Entry]:
        return [entry for entry in self._entries if entry.rows.get(table)]

    def _schema(self, table: str) -> pa.Schema:
        """Return the columns of a table: of a file of each format, or of the standard table."""
        if table not in self._schemas:
            import pyarrow as pa
            from pyarrow import parquet

            # Reversed, so that the first capture of a format stays.
            entry_of_format = {entry.format: entry for entry in reversed(self._with_rows(table))}
            schemas = [
                parquet.read_schema(self._file(table, entry), filesystem=self._store.files)
                for _, entry in sorted(entry_of_format.items())
            ]
            if not schemas:
                schemas = [_empty_schema(self._table_schema(table))]
            self._schemas[table] = pa.unify_schemas(schemas, promote_options="permissive")
        return self._schemas[table]

    def _file(self, table: str, entry: Entry) -> str:
        """Return the path of the file with the rows of a table of a capture."""
        return self._store.place(self._store.parquet(table, entry.capture))

    def _table_schema(self, table: str) -> TableSchema | None:
        """Return the schema of a table without rows, from the reader of an empty capture."""
        from fxframework.host import default_host

        formats = {entry.format for entry in self._entries if table in entry.rows}
        for format in sorted(formats):
            with (
                contextlib.suppress(FxError),
                default_host().open(b"", format=format) as capture,
            ):
                if table in capture.schemas:
                    return capture.schemas[table]
        return STANDARD_TABLES.get(table)

    def _make_view(self, table: str) -> None:
        if table in self._made:
            return
        from pyarrow import dataset

        self._made.add(table)
        files = [self._file(table, entry) for entry in self._with_rows(table)]
        schema = self._schema(table)
        rows: Any = schema.empty_table()
        if files:
            rows = dataset.dataset(
                files, schema=schema, format="parquet", filesystem=self._store.files
            )
        self._connection.register(table, rows)

    # --- Joined views ---

    def _joined_query(self, table: str) -> str:
        """Return the query of a table joined with ids, names, and its arguments as a struct."""
        own_columns = set(self._schema(table).names)
        columns = ["t.*"]
        joins = []
        for thread_column, prefix in THREAD_COLUMNS.items():
            if thread_column not in own_columns or "threads" not in self._tables:
                continue
            alias = f"threads_{thread_column}"
            expressions = {
                f"{prefix}pid": f"{alias}.pid",
                f"{prefix}tid": f"{alias}.tid",
                f"{prefix}process_name": f"{alias}.process_name",
                f"{prefix}thread_name": f"{alias}.name",
            }
            columns += [
                f"{expression} as {name}"
                for name, expression in expressions.items()
                if name not in own_columns
            ]
            joins.append(
                f"left join ({self._thread_query()}) {alias} "
                f"on {alias}.capture = t.capture and {alias}.id = t.{thread_column}"
            )
        if "args" in self._tables and table in TABLE_CODES:
            struct = self._arguments(table)
            if struct is not None:
                columns.append(f"a.{ARGS}")
                joins.append(
                    f"left join (select capture, parent, {struct} as {ARGS} from args "  # noqa: S608
                    f'where "table" = {TABLE_CODES[table]} group by capture, parent) a '
                    "on a.capture = t.capture and a.parent = t.row"
                )
        return f"select {', '.join(columns)} from {table} t {' '.join(joins)}"  # noqa: S608 (our own)

    def _thread_query(self) -> str:
        """Return the query of threads with the names of their processes."""
        if "processes" not in self._tables:
            return "select *, null::varchar as process_name from threads"
        return (
            "select th.*, p.process_name from threads th left join (select capture, pid, "
            "arg_min({'name': name}, row).name as process_name from processes group by all) p "
            "on p.capture = th.capture and p.pid = th.pid"
        )

    def _arguments(self, table: str) -> str | None:
        """Return the expression of the struct of a row's arguments; None if no row has any."""
        names_and_types = self._connection.sql(
            f"select coalesce(name, ''), list(distinct type), "  # noqa: S608
            f"max(uint) filter (type in {SIGNED}), "
            f"max(uint) filter (type not in {SIGNED}) "
            f'from args where "table" = {TABLE_CODES[table]} group by 1 order by 1'
        ).fetchall()
        if not names_and_types:
            return None
        rows = sum(entry.rows.get(table, 0) for entry in self._entries)
        if len(names_and_types) * rows > CELLS:
            raise LimitError(
                f"{len(names_and_types):,} names of arguments times {rows:,} rows of {table} are "
                f"more than {CELLS:,} values",
                remedy="join the table `args` yourself, or select fewer rows first",
            )
        columns = "{'type': type, 'int': int, 'uint': uint, 'float': float, 'str': str}"
        fields = []
        members = member_names([name for name, *_ in names_and_types])
        for member, (name, types, signed, unsigned) in zip(members, names_and_types, strict=True):
            # Of several arguments of one name, the first one of a row counts.
            quoted_name = name.replace("'", "''")
            first = f"arg_min({columns}, row) filter (coalesce(name, '') = '{quoted_name}')"
            value = _value(first, set(types), signed or 0, unsigned or 0)
            fields.append(f"{in_quotes(member)} := {value}")
        return f"struct_pack({', '.join(fields)})"


def _value(argument: str, types: set[int], greatest_signed: int, greatest_unsigned: int) -> str:
    """Return the SQL of an argument's value.

    Its type is the one that fits all arguments of the name, which have ``types``; text if none
    does. ``argument`` is the SQL of a struct of the argument's columns. The greatest signed and
    unsigned values are given as the column ``uint`` has them, where a negative value is 2**63 or
    more.
    """
    types = types - {ArgType.NULL}
    are_whole = not types & {*TEXT, ArgType.DOUBLE, ArgType.BOOL}
    argument = f"({argument})"
    if types and types <= {*TEXT}:
        return f"{argument}.str"
    if types == {ArgType.BOOL}:
        value = f"{argument}.int != 0"
    elif types == {ArgType.DOUBLE}:
        value = f"{argument}.float"
    elif are_whole and greatest_unsigned < INT64_END:
        value = f"{argument}.int"
    elif are_whole and greatest_signed < INT64_END:
        value = f"{argument}.uint"
    else:
        value = (
            f"case when {argument}.type in {TEXT} then {argument}.str "
            f"when {argument}.type = {ArgType.DOUBLE} then {argument}.float::varchar "
            f"when {argument}.type = {ArgType.BOOL} then ({argument}.int != 0)::varchar "
            f"when {argument}.type in {SIGNED} then {argument}.int::varchar "
            f"else {argument}.uint::varchar end"
        )
    return f"case when {argument}.type = {ArgType.NULL} then null else {value} end"


def _empty_schema(schema: TableSchema | None) -> Any:
    """Return the columns of a table without files."""
    import numpy as np
    import pyarrow as pa

    fields = [pa.field(name, pa.string()) for name in COLUMNS]
    for column in schema.all_columns if schema is not None else ():
        if column.kind in {"code", "text"}:
            arrow_type = pa.string()
        elif column.kind in {"bytes", "array"}:
            arrow_type = pa.list_(pa.int64())
        else:
            arrow_type = pa.from_numpy_dtype(np.dtype(column.kind))
        fields.append(pa.field(column.name, arrow_type))
    return pa.schema(fields)


def _manifest(entries: Iterable[Entry]) -> pa.Table:
    """Return the manifest as a table; rows and findings are maps."""
    import pyarrow as pa

    string_type = pa.string()
    integer_type = pa.int64()
    counts = pa.map_(string_type, integer_type)
    types = {
        "capture": string_type,
        "file": string_type,
        "host": string_type,
        "size": integer_type,
        "version": string_type,
        "outcome": string_type,
        "format": string_type,
        "rows": counts,
        "findings": counts,
        "code": string_type,
        "message": string_type,
        "written": integer_type,
        "seconds": pa.float64(),
    }
    entries = list(entries)

    def values(name: str) -> list[Any]:
        if name in {"rows", "findings"}:
            return [list(getattr(entry, name).items()) for entry in entries]
        if name in {"code", "message"}:
            return [entry.error and getattr(entry.error, name) for entry in entries]
        return [getattr(entry, name) for entry in entries]

    columns = [pa.array(values(name), arrow_type) for name, arrow_type in types.items()]
    return pa.table(columns, names=list(types))
