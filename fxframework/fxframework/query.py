"""SQL over captures: their tables, plain and joined, as views of a duckdb connection."""

from __future__ import annotations

import abc
import contextlib
import re
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Self

import numpy as np

from fxframework.errors import MissingExtraError, UsageError, did_you_mean, readable_name
from fxframework.model.schema import ARGUMENT

if TYPE_CHECKING:
    import pyarrow as pa

    from fxframework.model.capture import Capture
    from fxframework.model.table import Table

JOINED = {
    "slices": "slices_with_names",
    "instants": "instants_with_names",
    "counters": "counters_with_names",
    "flows": "flows_with_names",
    "sched": "sched_with_names",
    "logs": "logs_with_keys",
}
"""Names of the joined views, by table: with names, process, thread, and arguments as a struct."""
CAPTURE = "capture"
"""Column with the name of the capture, if there are several captures."""
ARGS = "args"
"""Column of joined views with the arguments as a struct."""
UNNAMED = "unnamed"
"""Member of the struct for arguments without a name."""
WORD = re.compile(r'"((?:[^"]|"")+)"|[A-Za-z_][A-Za-z_0-9]*')
"""A word of SQL that may be a name, perhaps in quotes, in which ``""`` stands for a quote."""
EVERYTHING = frozenset({"natural", "describe", "summarize", "show", "pivot", "unpivot"})
"""Words of statements that may use columns without naming them."""


class Queries(abc.ABC):
    """A duckdb connection whose views are created when a query mentions them. A context manager."""

    captures: Sequence[Capture] = ()
    """The captures that are read for a query."""

    def __init__(self) -> None:
        try:
            import duckdb
            import pyarrow  # noqa: F401, ICN001 (results are its tables)
        except ImportError as missing:
            raise MissingExtraError(missing.name or "duckdb", "sql", purpose="a query") from None
        self._duckdb = duckdb
        self._connection = duckdb.connect(
            config={"enable_external_access": "false", "python_enable_replacements": "false"}
        )
        self._connection.execute("set autoinstall_known_extensions = false")
        self._connection.execute("set autoload_known_extensions = false")
        self._connection.execute("set lock_configuration = true")

    @property
    @abc.abstractmethod
    def views(self) -> dict[str, tuple[str, ...]]:
        """Columns of each view that queries may use, by name of the view."""

    @abc.abstractmethod
    def _make_views(self, words: AbstractSet[str], *, everything: bool) -> None:
        """Create the views among ``words``, with the columns among them or with every column."""

    def query(self, query: str) -> pa.Table:
        """Run one or more statements and return the result of the last one as an Arrow table.

        Raises UsageError for a statement that cannot be run.
        """
        if query != readable_name(query):
            raise UsageError("the query is not valid UTF-8", remedy="write it in UTF-8")
        words = set()
        for match in WORD.finditer(query):
            name = match[1] or match[0]  # without the quotes, if there are any
            words.add(name.replace('""', '"').lower())
        everything = "*" in query or "select" not in words or bool(words & EVERYTHING)
        try:
            self._make_views(words, everything=everything)
            return self._run(query)
        except self._duckdb.BinderException:
            # The query may use a column that it does not name; if not, this improves the message.
            self._make_views(words, everything=True)
        try:
            return self._run(query)
        except self._duckdb.BinderException as error:
            raise self._refused(query, error) from None

    def _run(self, query: str) -> pa.Table:
        """Run the query. Raises BinderException of duckdb, and UsageError for other errors."""
        import pyarrow as pa

        def run() -> pa.Table:
            relation = self._connection.sql(query)
            return pa.table({}) if relation is None else relation.to_arrow_table()

        try:
            return _plain_sums(self._interruptibly(run))
        except self._duckdb.BinderException:
            raise
        except self._duckdb.Error as error:
            raise self._refused(query, error) from None

    def _interruptibly(self, run: Callable[[], pa.Table]) -> pa.Table:
        """Run a query in another thread: neither Ctrl-C nor limits interrupt it in this one."""
        with ThreadPoolExecutor(1) as threads:
            result = threads.submit(run)
            try:
                return result.result()
            except KeyboardInterrupt:
                self._connection.interrupt()
                raise

    def _refused(self, query: str, error: Exception) -> UsageError:
        """Return the error for a query that duckdb refuses."""
        try:
            self._connection.execute(query)  # unlike sql(), this reports the line of the error
        except self._duckdb.Error as error_with_line:
            error = error_with_line
        # Such as `Parser Error: syntax error at or near "x"`, then the line and a marker below it.
        text = str(error).strip()
        kind, _, details = text.partition(": ")
        message = text
        if kind.endswith("Error") and details:
            message = details
        missing_table = re.search(r"Table with name (\S+) does not exist", text)
        view_names = sorted(self.views)
        remedy = f"the views are {', '.join(view_names)}"
        if missing_table:
            name = missing_table[1]
            message = f"there is no table {name!r}{did_you_mean(name, view_names)}"
            line_start = text.find("LINE ")
            if line_start >= 0:
                message += f"\n{text[line_start:]}"
        elif "operations are disabled" in text:
            remedy = "a query reads the tables of the captures only; -o OUT writes its result"
        elif kind != "Catalog Error":
            remedy = "correct the query; `fxf sql FILE 'describe slices'` lists columns"
        return UsageError(message, remedy=remedy)

    def close(self) -> None:
        """Close the connection; the captures stay open."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Database(Queries):
    """Views of the tables of captures. Only the columns that a query names are decoded."""

    def __init__(self, captures: Sequence[Capture]) -> None:
        super().__init__()
        self.captures = list(captures)
        self._made: dict[str, frozenset[str]] = {}
        """The columns of each view that was created."""

    @property
    def views(self) -> dict[str, tuple[str, ...]]:
        """Columns of each view, by name; of joined views those known without decoding."""
        columns_by_view: dict[str, tuple[str, ...]] = {}
        for capture in self.captures:
            for name in capture.tables:
                columns = list(columns_by_view.get(name, ()))
                if name in capture.schemas:
                    columns += [column.name for column in capture.schemas[name].all_columns]
                columns_by_view[name] = tuple(dict.fromkeys(columns))
                if name in JOINED:
                    columns_by_view[JOINED[name]] = (*columns_by_view[name], ARGS)
        return columns_by_view

    def _make_views(self, words: AbstractSet[str], *, everything: bool) -> None:
        """Create the views among ``words``, with the columns among them or with every column."""
        table_names = dict.fromkeys(name for capture in self.captures for name in capture.tables)
        for name in table_names:
            if name in words:
                self._view(name, name, _plain, None if everything else words)
            if JOINED.get(name) in words:
                self._view(JOINED[name], name, _with_names, None)

    def _view(
        self,
        view: str,
        table: str,
        select: Callable[[Table, Capture, Sequence[str]], pa.Table],
        words: AbstractSet[str] | None,
    ) -> None:
        """Register a view with the columns named in ``words`` (None: all) and those it has."""
        import pyarrow as pa

        from fxframework.exporters.columnar import together
        from fxframework.model.arrow import number_column

        present_columns = self._made.get(view, frozenset())
        view_columns: set[str] = set()
        part_views = []
        for capture in self.captures:
            if table not in capture.tables:
                continue
            rows = capture.table(table)
            columns, byte_columns = _columns_wanted(rows.columns, words, present_columns)
            view_columns.update(columns, byte_columns)
            if view_columns <= present_columns:
                return
            part = select(rows, capture, columns)
            for name in set(byte_columns).difference(part.column_names):
                part = part.append_column(name, pa.nulls(len(rows), pa.binary()))
            if len(self.captures) > 1:
                zero_column = number_column(np.zeros(len(rows), np.int32))
                name = pa.DictionaryArray.from_arrays(zero_column, [capture.name])
                part = part.append_column(CAPTURE, name)
            part_views.append(part)
        self._made[view] = frozenset(view_columns)
        self._connection.register(view, together(part_views))


def _columns_wanted(
    table_columns: Sequence[str], words: AbstractSet[str] | None, present_columns: AbstractSet[str]
) -> tuple[list[str], list[str]]:
    """Return the columns of a table to read, and the columns of bytes that a view has of them.

    A column of bytes has the strings that are not UTF-8, and exists only on request. ``words`` are
    the names in the query, in lower case, None for all columns; ``present_columns`` are those that
    the view has already.
    """
    from fxframework.model.arrow import BYTES

    wanted_columns = []
    byte_columns = []
    for name in table_columns:
        bytes_name = name + BYTES
        wants_bytes = bytes_name in present_columns
        if words and bytes_name.lower() in words:
            wants_bytes = True
        if wants_bytes:
            byte_columns.append(bytes_name)
        if wants_bytes or words is None or name.lower() in words or name in present_columns:
            wanted_columns.append(name)
    if not wanted_columns:
        wanted_columns.append(table_columns[0])  # for the number of rows: a view needs a column
    return wanted_columns, byte_columns


def _plain(table: Table, _capture: Capture, columns: Sequence[str]) -> pa.Table:
    """Return columns of a table unchanged."""
    return table.to_arrow(columns)


def member_names(names: Sequence[str]) -> list[str]:
    """Return the members of a struct that are for arguments of these names.

    SQL ignores case: of names that differ only in case, the first one by code points stays, others
    get ``#2`` and so on. The empty name is ``unnamed``.
    """
    members: dict[str, str] = {}
    lower_case_members: set[str] = set()
    for name in sorted(names):
        member = name or UNNAMED
        number = 1
        while member.lower() in lower_case_members:
            number += 1
            member = f"{name or UNNAMED}#{number}"
        lower_case_members.add(member.lower())
        members[name] = member
    return [members[name] for name in names]


def _with_names(table: Table, capture: Capture, _columns: Sequence[str]) -> pa.Table:
    """Return a table with names and ids added to its columns, and its arguments as one struct."""
    import pyarrow as pa

    frame = capture.frame(table.name, args=True)
    argument_columns = [name for name in frame.column_names if name.startswith(ARGUMENT)]
    other_columns = [name for name in frame.column_names if not name.startswith(ARGUMENT)]
    if not argument_columns:
        return frame.select(other_columns)
    argument_values = []
    for name in argument_columns:
        column = frame.column(name).combine_chunks()
        # Dictionaries of several captures differ, so that strings are stored plain.
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        argument_values.append(column)
    members = member_names([name.removeprefix(ARGUMENT) for name in argument_columns])
    struct = pa.StructArray.from_arrays(argument_values, members)
    return frame.select(other_columns).append_column(ARGS, struct)


def _plain_sums(result: pa.Table) -> pa.Table:
    """Return the result with 128-bit integers, such as sums, converted to int64 where they fit."""
    import pyarrow as pa

    for position, field in enumerate(result.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            with contextlib.suppress(pa.ArrowInvalid):  # a sum of more than 64 bits
                column = result.column(position).cast(pa.int64())
                result = result.set_column(position, field.name, column)
    return result
