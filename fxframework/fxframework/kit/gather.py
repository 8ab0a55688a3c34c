"""Builds tables from rows added one by one, with their threads, arguments and nesting.

For formats read record by record, such as lines of text: all rows are kept in memory as lists.
Formats with large files use kernels (``fxframework.kit.scanned``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from fxframework.errors import UsageError
from fxframework.io.limits import Limits
from fxframework.io.words import U64_MAX
from fxframework.model.schema import BEGIN_END, TABLE_CODES, ArgType, TableSchema
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

_NO_VALUES = {"int": 0, "uint": 0, "float": 0.0, "str": None}
"""Columns for the value of an argument, as they are for a value of another type."""
OPEN = -1
"""Length of a slice that is not closed."""


class Gathered:
    """Collects rows of tables with these schemas. ``limits.max_depth`` bounds the depth of slices.

    Texts are str or bytes, times integer nanoseconds. A missing column is null, zero or empty, as
    in ``Table.of``; ``ticks`` defaults to the time.
    """

    def __init__(self, schemas: Mapping[str, TableSchema], limits: Limits | None = None) -> None:
        if limits is None:
            limits = Limits()
        self._schemas = schemas
        self._max_depth = limits.max_depth or 1 << 30
        self._columns: dict[str, dict[str, list[Any]]] = {name: {} for name in schemas}
        """Values by table and column."""
        self._lengths: Counter[str] = Counter()
        """Rows by table."""
        self._threads: dict[Hashable, int] = {}
        """Ids of threads, by ``tid`` or ``(pid, tid)``."""
        self._thread_rows: list[dict[str, Any]] = []
        """Columns of each thread, by its id."""
        self._processes: dict[int, dict[str, Any]] = {}
        """Columns of each process that ``process`` added, by its pid."""
        self._open_slices: dict[int, list[tuple[Hashable, int]]] = defaultdict(list)
        """Key and row of each open slice, by thread, the innermost one last."""
        self._open_counts: Counter[tuple[int, Hashable]] = Counter()
        """Number of open slices, by thread and key."""

    # --- Rows ------------------------------------------------------------------------------------

    def row(
        self,
        table: str,
        offset: int,
        /,
        *,
        args: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = (),
        **values: Any,
    ) -> int:
        """Add a row that comes from the record at a byte offset; return its number.

        ``args`` are arguments of the row, by name: None, bool, int, float, str or bytes. An integer
        of more than 64 bits becomes a hexadecimal string. All rows of a table must have the same
        columns.
        """
        if "ts" in values and "ticks" not in values:
            values["ticks"] = values["ts"] & U64_MAX
        columns = self._columns[table]
        row = self._lengths[table]
        if not row:
            columns.update({name: [] for name in ("offset", *values)})
        columns["offset"].append(offset)
        for name, value in values.items():
            columns[name].append(value)
        self._lengths[table] = row + 1
        if args:
            self.add_args(table, row, offset, args)
        return row

    def add_args(
        self, table: str, row: int, offset: int, args: Mapping[Any, Any] | Iterable[tuple[Any, Any]]
    ) -> None:
        """Add arguments, which come from the record at a byte offset, to a row."""
        names_and_values = args.items() if isinstance(args, Mapping) else args
        for name, value in names_and_values:
            type_number, column, column_value = _argument(value)
            values: dict[str, Any] = dict(_NO_VALUES)
            if column == "int":  # shown by two columns
                values["int"] = _signed(column_value)
                values["uint"] = column_value & U64_MAX
            else:
                values[column] = column_value
            table_code = TABLE_CODES[table]
            self.row(
                "args", offset, table=table_code, parent=row, name=name, type=type_number, **values
            )

    # --- Threads and processes -------------------------------------------------------------------

    def thread(
        self,
        tid: int,
        offset: int,
        *,
        pid: int | None = None,
        name: str | bytes | None = None,
    ) -> int:
        """Return the id of a thread, for the columns ``thread``, ``prev`` and ``next``.

        With a ``pid``, a thread is identified by both numbers; without one, by ``tid`` alone, and
        ``belongs`` may set its process later. A name replaces an earlier one.
        """
        key = tid if pid is None else (pid, tid)
        if key not in self._threads:
            self._threads[key] = len(self._thread_rows)
            self._thread_rows.append({"offset": offset, "pid": pid, "tid": tid, "name": None})
        thread = self._threads[key]
        if name is not None:
            self._thread_rows[thread]["name"] = name
        return thread

    def belongs(self, thread: int, pid: int) -> None:
        """Set the process of a thread."""
        self._thread_rows[thread]["pid"] = pid

    def process(self, pid: int, offset: int, name: str | bytes | None = None) -> None:
        """Add a process; a name replaces an earlier one. Processes of threads need no call."""
        process = self._processes.setdefault(pid, {"offset": offset, "pid": pid, "name": None})
        if name is not None:
            process["name"] = name

    # --- Slices ----------------------------------------------------------------------------------

    def begin(self, key: Hashable, offset: int, /, *, thread: int, ts: int, **values: Any) -> int:
        """Begin a slice inside the innermost open one of its thread; return its row.

        ``key`` identifies the end that closes it; ``values`` are passed to ``row``.
        """
        open_slices = self._open_slices[thread]
        parent = -1
        if open_slices:
            _, parent = open_slices[-1]
        row = self.row(
            "slices",
            offset,
            thread=thread,
            ts=ts,
            dur=OPEN,
            depth=min(len(open_slices), self._max_depth),
            parent=parent,
            kind=BEGIN_END,
            **values,
        )
        open_slices.append((key, row))
        self._open_counts[thread, key] += 1
        return row

    def end(self, key: Hashable, *, thread: int, ts: int) -> int | None:
        """End the innermost open slice of a key on a thread; slices inside it are never closed.

        Returns its row, or None if no such slice is open.
        """
        # Counted, so that an end without a begin need not search the open slices.
        if not self._open_counts[thread, key]:
            return None
        open_slices = self._open_slices[thread]
        while True:
            innermost_key, row = open_slices.pop()
            self._open_counts[thread, innermost_key] -= 1
            if innermost_key == key:
                slices = self._columns["slices"]
                slices["dur"][row] = max(0, ts - slices["ts"][row])
                return row

    @property
    def open_offsets(self) -> list[int]:
        """Byte offsets of the records of slices that are not closed, in order of the rows."""
        slices = self._columns["slices"]
        if not slices:
            return []
        offsets_and_lengths = zip(slices["offset"], slices["dur"], strict=True)
        return [offset for offset, length in offsets_and_lengths if length == OPEN]

    # --- Tables ----------------------------------------------------------------------------------

    def table(self, name: str, pool: StringPool) -> Table:
        """Return a table of all rows so far. Raises UsageError for a table without a schema."""
        if name not in self._schemas:
            raise UsageError(
                f"there is no table {name!r}", remedy=f"there are {', '.join(self._schemas)}"
            )
        if name == "threads":
            rows = [
                {**row, "id": thread, "pid": row["pid"] or 0}
                for thread, row in enumerate(self._thread_rows)
            ]
        elif name == "processes":
            rows = self._process_rows()
        else:
            return Table.of(self._schemas[name], pool, **self._columns[name])
        columns = {}
        if rows:
            columns = {column: [row[column] for row in rows] for column in rows[0]}
        return Table.of(self._schemas[name], pool, **columns)

    def _process_rows(self) -> list[dict[str, Any]]:
        """Return the columns of each process: those of threads, in their order, then others.

        A process has the offset of its first thread, unless it was added itself.
        """
        processes: dict[int, dict[str, Any]] = {}
        for thread in self._thread_rows:
            pid = thread["pid"]
            if pid is not None and pid not in processes:
                processes[pid] = {"offset": thread["offset"], "pid": pid, "name": None}
        processes |= self._processes
        return list(processes.values())


def _argument(value: Any) -> tuple[int, str, Any]:
    """Return the type of an argument, the column for its value, and the value of that column."""
    if value is None:
        return ArgType.NULL, "int", 0
    if isinstance(value, bool):
        return ArgType.BOOL, "int", int(value)
    if isinstance(value, int):
        if -(1 << 63) <= value < 1 << 63:
            return ArgType.INT64, "int", value
        if 0 <= value <= U64_MAX:
            return ArgType.UINT64, "int", value
        return ArgType.STRING, "str", hex(value)
    if isinstance(value, float | np.floating):
        return ArgType.DOUBLE, "float", float(value)
    return ArgType.STRING, "str", value


def _signed(value: int) -> int:
    """Return a number of up to 64 bits as the signed one with the same bits."""
    if value >= 1 << 63:
        return value - (1 << 64)
    return value
