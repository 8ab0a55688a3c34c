"""Query: SQL over the tables of a dataset, and joined forms of them, as views of duckdb."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from fxframework.dataset.manifest import Entry
from fxframework.dataset.part import COLUMNS
from fxframework.dataset.store import DATASET, Store
from fxframework.errors import FxError, LimitError, UnreadableError
from fxframework.io.remote import is_address
from fxframework.model.schema import (
    ARG_TYPES,
    CELLS,
    STANDARD_TABLES,
    TABLE_CODES,
    THREAD_COLUMNS,
    TableSchema,
)
from fxframework.query import ARGS, JOINED, Queries, member_names

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DatasetQueries", "is_dataset"]

TYPES = {name: number for number, name in ARG_TYPES.items()}
TEXT = {TYPES["string"], TYPES["blob"]}
SIGNED = {TYPES["int32"], TYPES["int64"]}


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
        self._entries = sorted(self._store.entries().values(), key=lambda entry: entry.file)
        self._schemas: dict[str, pa.Schema] = {}
        self._made: set[str] = set()
        known = {name for entry in self._entries for name in entry.rows}
        self._tables = [name for name in STANDARD_TABLES if name in known]
        self._tables += sorted(known - set(self._tables))

    @property
    def views(self) -> dict[str, tuple[str, ...]]:
        """The views with their columns; of a joined view, those that are known in advance."""
        found: dict[str, tuple[str, ...]] = {"captures": tuple(_manifest([]).column_names)}
        for name in self._tables:
            found[name] = tuple(self._schema(name).names)
            if name in JOINED:
                found[JOINED[name]] = (*found[name], ARGS)
        return found

    def _make(self, words: AbstractSet[str], *, everything: bool) -> None:  # noqa: ARG002
        wanted = [name for name in self._tables if name in words or JOINED.get(name) in words]
        joined = [name for name in wanted if JOINED.get(name) in words]
        more = ["threads", "processes", "args"] if joined else []
        for name in dict.fromkeys([*wanted, *(each for each in more if each in self._tables)]):
            self._view(name)
        for name in joined:
            if JOINED[name] not in self._made:
                self._made.add(JOINED[name])
                self._connection.execute(f"create view {JOINED[name]} as {self._joined(name)}")
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

            first = {entry.format: entry for entry in reversed(self._with_rows(table))}
            place = self._store.place
            found = [
                parquet.read_schema(
                    place(self._store.parquet(table, entry.capture)),
                    filesystem=self._store.files,
                )
                for _, entry in sorted(first.items())
            ]
            if not found:
                found = [_empty_schema(self._table_schema(table))]
            self._schemas[table] = pa.unify_schemas(found, promote_options="permissive")
        return self._schemas[table]

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

    def _view(self, table: str) -> None:
        if table in self._made:
            return
        from pyarrow import dataset

        self._made.add(table)
        files = [
            self._store.place(self._store.parquet(table, entry.capture))
            for entry in self._with_rows(table)
        ]
        schema = self._schema(table)
        if not files:
            self._connection.register(table, schema.empty_table())
            return
        self._connection.register(
            table,
            dataset.dataset(files, schema=schema, format="parquet", filesystem=self._store.files),
        )

    # --- Joined views ---

    def _joined(self, table: str) -> str:
        """Return the query of a table joined with ids, names, and its arguments as a struct."""
        own = set(self._schema(table).names)
        columns, joins = ["t.*"], []
        for column, prefix in THREAD_COLUMNS.items():
            if column not in own or "threads" not in self._tables:
                continue
            who = f"threads_{column}"
            given = {f"{prefix}pid": f"{who}.pid", f"{prefix}tid": f"{who}.tid"}
            given[f"{prefix}process_name"] = f"{who}.process_name"
            given[f"{prefix}thread_name"] = f"{who}.name"
            columns += [f"{what} as {name}" for name, what in given.items() if name not in own]
            joins.append(
                f"left join ({self._thread_query()}) {who} "
                f"on {who}.capture = t.capture and {who}.id = t.{column}"
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
        mine = f'from args where "table" = {TABLE_CODES[table]}'
        found = self._connection.sql(
            f"select coalesce(name, ''), list(distinct type), max(uint) filter (type in "
            f"{tuple(sorted(SIGNED))}), max(uint) filter (type not in {tuple(sorted(SIGNED))}) "
            f"{mine} group by 1 order by 1"
        ).fetchall()
        if not found:
            return None
        rows = sum(entry.rows.get(table, 0) for entry in self._entries)
        if len(found) * rows > CELLS:
            raise LimitError(
                f"{len(found):,} names of arguments times {rows:,} rows of {table} are more than "
                f"{CELLS:,} values",
                remedy="join the table `args` yourself, or select fewer rows first",
            )
        value = "{'type': type, 'int': int, 'uint': uint, 'float': float, 'str': str}"
        fields = []
        members = member_names([name for name, *_ in found])
        for member, (name, types, signed, unsigned) in zip(members, found, strict=True):
            text = name.replace("'", "''")
            first = f"arg_min({value}, row) filter (coalesce(name, '') = '{text}')"
            quoted = member.replace('"', '""')
            fields.append(f'"{quoted}" := {_value(first, set(types), signed, unsigned)}')
        return f"struct_pack({', '.join(fields)})"


def _value(first: str, types: set[int], signed: int | None, unsigned: int | None) -> str:
    """Return the expression of an argument: of the common type of its name, else text."""
    null, double, boolean = TYPES["null"], TYPES["double"], TYPES["bool"]
    types = types - {null}
    large = 1 << 63
    if types <= TEXT and types:
        return f"({first}).str"
    if types == {boolean}:
        kind = "{0}.int != 0"
    elif types == {double}:
        kind = "{0}.float"
    elif not types & {*TEXT, double, boolean} and (unsigned or 0) < large:
        kind = "{0}.int"
    elif not types & {*TEXT, double, boolean} and (signed or 0) < large:
        kind = "{0}.uint"
    else:
        texts, whole = tuple(sorted(TEXT)), tuple(sorted(SIGNED))
        kind = (
            f"case when {{0}}.type in {texts} then {{0}}.str when {{0}}.type = {double} then "
            f"{{0}}.float::varchar when {{0}}.type = {boolean} then ({{0}}.int != 0)::varchar "
            f"when {{0}}.type in {whole} then {{0}}.int::varchar else {{0}}.uint::varchar end"
        )
    given = kind.format(f"({first})")
    return f"case when ({first}).type = {null} then null else {given} end"


def _empty_schema(schema: TableSchema | None) -> Any:
    """Return the columns of a table without files."""
    import numpy as np
    import pyarrow as pa

    fields = [pa.field(name, pa.string()) for name in COLUMNS]
    for column in schema.all_columns if schema is not None else ():
        if column.kind in {"code", "text"}:
            kind = pa.string()
        elif column.kind in {"bytes", "array"}:
            kind = pa.list_(pa.int64())
        else:
            kind = pa.from_numpy_dtype(np.dtype(column.kind))
        fields.append(pa.field(column.name, kind))
    return pa.schema(fields)


def _manifest(entries: Iterable[Entry]) -> pa.Table:
    """Return the manifest as a table; rows and findings are maps."""
    import pyarrow as pa

    counts = pa.map_(pa.string(), pa.int64())
    kinds = {
        "capture": pa.string(), "file": pa.string(), "host": pa.string(), "size": pa.int64(),
        "version": pa.string(), "outcome": pa.string(), "format": pa.string(), "rows": counts,
        "findings": counts, "code": pa.string(), "message": pa.string(), "written": pa.int64(),
        "seconds": pa.float64(),
    }  # fmt: skip
    several: Sequence[Entry] = list(entries)

    def values(name: str) -> list[Any]:
        if name in {"rows", "findings"}:
            return [list(getattr(entry, name).items()) for entry in several]
        if name in {"code", "message"}:
            return [entry.error and getattr(entry.error, name) for entry in several]
        return [getattr(entry, name) for entry in several]

    return pa.table(
        [pa.array(values(name), kind) for name, kind in kinds.items()], names=list(kinds)
    )
