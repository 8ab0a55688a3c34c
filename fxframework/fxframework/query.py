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

if TYPE_CHECKING:
    import pyarrow as pa

    from fxframework.model.capture import Capture
    from fxframework.model.table import Table

__all__ = ["JOINED", "Database", "Queries", "member_names"]

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
ARGUMENT = "arg_"
UNNAMED = "unnamed"
WORD = re.compile(r'"((?:[^"]|"")+)"|[A-Za-z_][A-Za-z_0-9]*')
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
    def _make(self, words: AbstractSet[str], *, everything: bool) -> None:
        """Create the views among ``words``, with the columns among them or with every column."""

    def query(self, query: str) -> pa.Table:
        """Run one or more statements and return the result of the last one as an Arrow table.

        Raises UsageError for a statement that cannot be run.
        """
        if query != readable_name(query):
            raise UsageError("the query is not valid UTF-8", remedy="write it in UTF-8")
        words = {
            (match[1] or match[0]).replace('""', '"').lower() for match in WORD.finditer(query)
        }
        everything = "*" in query or "select" not in words or bool(words & EVERYTHING)
        try:
            self._make(words, everything=everything)
            return self._run(query)
        except self._duckdb.BinderException:
            # The query may use a column that it does not name; if not, this improves the message.
            self._make(words, everything=True)
        try:
            return self._run(query)
        except self._duckdb.BinderException as error:
            raise self._refused(query, error) from None

    def _run(self, query: str) -> pa.Table:
        import pyarrow as pa

        def run() -> pa.Table:
            result = self._connection.sql(query)
            return pa.table({}) if result is None else result.to_arrow_table()

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
        try:
            self._connection.execute(query)  # unlike sql(), this reports the line of the error
        except self._duckdb.Error as placed:
            error = placed
        text = str(error).strip()
        kind, _, rest = text.partition(": ")
        message = rest if kind.endswith("Error") and rest else text
        missing = re.search(r"Table with name (\S+) does not exist", text)
        views = sorted(self.views)
        remedy = f"the views are {', '.join(views)}"
        if missing:
            message = f"there is no table {missing[1]!r}{did_you_mean(missing[1], views)}"
            place = text.find("LINE ")
            message += f"\n{text[place:]}" if place >= 0 else ""
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

    @property
    def views(self) -> dict[str, tuple[str, ...]]:
        """Columns of each view, by name; of joined views those known without decoding."""
        found: dict[str, tuple[str, ...]] = {}
        for capture in self.captures:
            for name in capture.tables:
                schema = capture.schemas.get(name)
                columns = () if schema is None else [column.name for column in schema.all_columns]
                found[name] = tuple(dict.fromkeys((*found.get(name, ()), *columns)))
                if name in JOINED:
                    found[JOINED[name]] = (*found[name], ARGS)
        return found

    def _make(self, words: AbstractSet[str], *, everything: bool) -> None:
        """Create the views among ``words``, with the columns among them or with every column."""
        tables = dict.fromkeys(name for capture in self.captures for name in capture.tables)
        for name in tables:
            if name in words:
                self._view(name, name, _plain, None if everything else words)
            if JOINED.get(name) in words:
                self._view(JOINED[name], name, _with_names, None)

    def _view(
        self,
        view: str,
        table: str,
        make: Callable[[Table, Capture, Sequence[str]], pa.Table],
        words: AbstractSet[str] | None,
    ) -> None:
        """Register a view with the columns named in ``words`` (None: all) and those it has."""
        import pyarrow as pa

        from fxframework.exporters.columnar import together
        from fxframework.model.arrow import BYTES, number_column

        known = self._made.get(view, frozenset())
        made: set[str] = set()
        parts = []
        for capture in self.captures:
            if table not in capture.tables:
                continue
            rows = capture.table(table)
            octets = [  # columns with the bytes of strings that are not UTF-8, only on request
                name + BYTES
                for name in rows.columns
                if name + BYTES in known or (words and name.lower() + BYTES in words)
            ]
            columns = [
                name
                for name in rows.columns
                if words is None or name.lower() in words or name in known or name + BYTES in octets
            ] or [rows.columns[0]]
            made.update(columns, octets)
            if made <= known:
                return
            part = make(rows, capture, columns)
            for name in set(octets).difference(part.column_names):
                part = part.append_column(name, pa.nulls(len(rows), pa.binary()))
            if len(self.captures) > 1:
                zeros = number_column(np.zeros(len(rows), np.int32))
                name = pa.DictionaryArray.from_arrays(zeros, [capture.name])
                part = part.append_column(CAPTURE, name)
            parts.append(part)
        self._made[view] = frozenset(made)
        self._connection.register(view, together(parts))


def _plain(table: Table, _capture: Capture, columns: Sequence[str]) -> pa.Table:
    """Return columns of a table unchanged."""
    return table.to_arrow(columns)


def member_names(names: Sequence[str]) -> list[str]:
    """Return the members of a struct that are for arguments of these names.

    SQL does not tell capitals from small letters: of names that it takes for equal, the first one
    by code points stays, others get ``#2`` and so on. The empty name is ``unnamed``.
    """
    members: dict[str, str] = {}
    taken: set[str] = set()
    for name in sorted(names):
        member, number = name or UNNAMED, 1
        while member.lower() in taken:
            number += 1
            member = f"{name or UNNAMED}#{number}"
        taken.add(member.lower())
        members[name] = member
    return [members[name] for name in names]


def _with_names(table: Table, capture: Capture, _columns: Sequence[str]) -> pa.Table:
    """Return a table with names and ids added to its columns, and its arguments as one struct."""
    import pyarrow as pa

    frame = capture.frame(table.name, args=True)
    own = [name for name in frame.column_names if not name.startswith(ARGUMENT)]
    values = [name for name in frame.column_names if name.startswith(ARGUMENT)]
    if not values:
        return frame.select(own)
    # Dictionaries of several captures differ, so that strings are stored plain.
    columns = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in (frame.column(name).combine_chunks() for name in values)
    ]
    names = member_names([name.removeprefix(ARGUMENT) for name in values])
    struct = pa.StructArray.from_arrays(columns, names)
    return frame.select(own).append_column(ARGS, struct)


def _plain_sums(result: pa.Table) -> pa.Table:
    """Return the result with 128-bit integers, such as sums, converted to int64 where they fit."""
    import pyarrow as pa

    for place, field in enumerate(result.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            with contextlib.suppress(pa.ArrowInvalid):
                column = result.column(place).cast(pa.int64())
                result = result.set_column(place, field.name, column)
    return result
