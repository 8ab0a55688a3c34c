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
from fxframework.model.schema import ARG_TYPES, BEGIN_END, TABLE_CODES, TableSchema
from fxframework.model.strings import StringPool
from fxframework.model.table import Table

__all__ = ["Gathered"]

_TYPES = {name: number for number, name in ARG_TYPES.items()}
_VALUES = {"int": 0, "uint": 0, "float": 0.0, "str": None}
OPEN = -1
"""Length of a slice that is not closed."""


class Gathered:
    """Collects rows of tables with these schemas. ``limits.max_depth`` bounds the depth of slices.

    Texts are str or bytes, times integer nanoseconds. A missing column is null, zero or empty, as
    in ``Table.of``; ``ticks`` defaults to the time.
    """

    def __init__(self, schemas: Mapping[str, TableSchema], limits: Limits | None = None) -> None:
        self._schemas = schemas
        self._deepest = (limits or Limits()).max_depth or 1 << 30
        self._columns: dict[str, dict[str, list[Any]]] = {name: {} for name in schemas}
        self._lengths: Counter[str] = Counter()
        self._threads: dict[Hashable, int] = {}
        self._thread_rows: list[dict[str, Any]] = []
        self._processes: dict[int, dict[str, Any]] = {}
        self._stacks: dict[int, list[tuple[Hashable, int]]] = defaultdict(list)
        self._begun: Counter[tuple[int, Hashable]] = Counter()

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
        for name, value in args.items() if isinstance(args, Mapping) else args:
            kind, column, held = _argument(value)
            values = {**_VALUES, column: held}
            if column == "int":
                values = {**_VALUES, "int": _signed(held), "uint": held & U64_MAX}
            self.row(
                "args", offset, table=TABLE_CODES[table], parent=row, name=name, type=kind, **values
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
        found = self._threads.get(key)
        if found is None:
            found = self._threads[key] = len(self._thread_rows)
            self._thread_rows.append({"offset": offset, "pid": pid, "tid": tid, "name": None})
        if name is not None:
            self._thread_rows[found]["name"] = name
        return found

    def belongs(self, thread: int, pid: int) -> None:
        """Set the process of a thread."""
        self._thread_rows[thread]["pid"] = pid

    def process(self, pid: int, offset: int, name: str | bytes | None = None) -> None:
        """Add a process; a name replaces an earlier one. Processes of threads need no call."""
        known = self._processes.setdefault(pid, {"offset": offset, "pid": pid, "name": None})
        if name is not None:
            known["name"] = name

    # --- Slices ----------------------------------------------------------------------------------

    def begin(self, key: Hashable, offset: int, /, *, thread: int, ts: int, **values: Any) -> int:
        """Begin a slice inside the innermost open one of its thread; return its row.

        ``key`` identifies the end that closes it; ``values`` are passed to ``row``.
        """
        stack = self._stacks[thread]
        row = self.row(
            "slices",
            offset,
            thread=thread,
            ts=ts,
            dur=OPEN,
            depth=min(len(stack), self._deepest),
            parent=stack[-1][1] if stack else -1,
            kind=BEGIN_END,
            **values,
        )
        stack.append((key, row))
        self._begun[thread, key] += 1
        return row

    def end(self, key: Hashable, *, thread: int, ts: int) -> int | None:
        """End the innermost open slice of a key on a thread; slices inside it are never closed.

        Returns its row, or None if no such slice is open.
        """
        if not self._begun[thread, key]:
            return None
        stack = self._stacks[thread]
        while True:
            own, row = stack.pop()
            self._begun[thread, own] -= 1
            if own == key:
                slices = self._columns["slices"]
                slices["dur"][row] = max(0, ts - slices["ts"][row])
                return row

    @property
    def open_offsets(self) -> list[int]:
        """Byte offsets of the records of slices that are not closed, in order of the rows."""
        slices = self._columns["slices"]
        if not slices:
            return []
        return [at for at, dur in zip(slices["offset"], slices["dur"], strict=True) if dur == OPEN]

    # --- Tables ----------------------------------------------------------------------------------

    def table(self, name: str, pool: StringPool) -> Table:
        """Return a table of all rows so far. Raises UsageError for a table without a schema."""
        if name not in self._schemas:
            raise UsageError(
                f"there is no table {name!r}", remedy=f"there are {', '.join(self._schemas)}"
            )
        if name == "threads":
            rows = [{**each, "id": id, "pid": each["pid"] or 0}
                    for id, each in enumerate(self._thread_rows)]  # fmt: skip
        elif name == "processes":
            known = {
                each["pid"]: {"offset": each["offset"], "pid": each["pid"], "name": None}
                for each in reversed(self._thread_rows)
                if each["pid"] is not None
            }
            rows = list((dict(reversed(known.items())) | self._processes).values())
        else:
            return Table.of(self._schemas[name], pool, **self._columns[name])
        columns = {column: [row[column] for row in rows] for column in (rows[0] if rows else ())}
        return Table.of(self._schemas[name], pool, **columns)


def _argument(value: Any) -> tuple[int, str, Any]:
    """Return the type of an argument, the column for its value, and the value of that column."""
    if value is None:
        return _TYPES["null"], "int", 0
    if isinstance(value, bool):
        return _TYPES["bool"], "int", int(value)
    if isinstance(value, int):
        if -(1 << 63) <= value < 1 << 64:
            return _TYPES["uint64" if value >> 63 > 0 else "int64"], "int", value
        return _TYPES["string"], "str", hex(value)
    if isinstance(value, float | np.floating):
        return _TYPES["double"], "float", float(value)
    return _TYPES["string"], "str", value


def _signed(value: int) -> int:
    """Reinterpret 64 bits as a signed number."""
    return value - (1 << 64) if value >> 63 > 0 else value
