"""Rows: the threads and the arguments that rows of tables refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.kernels.templates import Templates
from fxframework.kit.row_texts import (
    BLOB,
    NULL,
    STRING,
    ArgumentTexts,
    stretches,
    string_bytes,
    string_lengths,
    value_forms,
)
from fxframework.model.capture import Capture
from fxframework.model.schema import ARG_TYPES, TABLE_CODES
from fxframework.model.strings import StringPool
from fxframework.model.table import Table
from fxframework.model.threads import Threads

__all__ = [
    "ArgumentMembers",
    "ArgumentStream",
    "Columns",
    "Task",
    "json_arguments",
    "tasks",
]

Bounds = tuple[NDArray[np.int64], NDArray[np.int64]]
KEPT = 16 << 20
"""Most bytes of texts kept from one part of a table to the next."""
STRING_BYTES = 8 << 20
"""Most bytes of strings of the rows of a part, except a single row."""


class Task(NamedTuple):
    """A thread with the names of its process and itself; None if unknown."""

    pid: int
    tid: int
    process: str | None
    thread: str | None

    @property
    def label(self) -> str:
        """The names of process and thread, or their koids."""
        return f"{self.process or self.pid}/{self.thread or self.tid}"


class RowArgs(NamedTuple):
    """Arguments of consecutive rows: begin and end for each row, and their columns."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]


def tasks(capture: Capture, *, distinct: bool = False) -> dict[int, Task]:
    """Return the threads of a capture by id, as in the columns ``thread``.

    With ``distinct``, no two have the same process and tid (``Threads.distinct_tids``).
    """
    threads, pool = Threads(capture.schemas, capture.table), capture.strings
    tids = threads.distinct_tids() if distinct else threads.tids
    columns = (threads.ids, threads.pids, tids, threads.process_names, threads.names)

    def text(code: int) -> str | None:
        return pool[code] if code >= 0 else None

    return {
        number: Task(pid, tid, text(process), text(name))
        for number, pid, tid, process, name in zip(*(c.tolist() for c in columns), strict=True)
    }


def json_arguments(
    templates: Templates, pool: StringPool, name: Callable[[str], str]
) -> ArgumentTexts:
    """Return the texts of arguments with values as JSON; ``name`` shows a name given as JSON."""

    def string(code: int) -> str:
        return orjson.dumps(pool.text(code)).decode()

    forms = value_forms(
        templates, string=string, blob=lambda code: f'"{pool.bytes_of(code).hex()}"'
    )
    return ArgumentTexts(templates, lambda code: name(string(code)), forms)


class ArgumentMembers:
    """The arguments of the rows of a table as members of templates; none without a table."""

    def __init__(self, capture: Capture, table: str | None, texts: ArgumentTexts) -> None:
        self._stream: ArgumentStream | None = None
        if table is not None and table in TABLE_CODES and "args" in capture.schemas:
            self._stream = ArgumentStream(capture, table)
        self._texts = texts
        self.count = self._stream.count if self._stream else 0
        """Total number of arguments."""

    def parts(self, batches: Iterable[Table]) -> Iterator[tuple[Table, Bounds]]:
        """Yield batches, in parts of few arguments and bytes of strings, with bounds of members.

        The templates hold the members of a part, and have forgotten what was written before.
        """
        templates = self._texts.templates
        for batch in batches:
            for some, (starts, stops, columns) in self._args(batch):
                part = batch.select(some)
                nbytes = string_bytes(part)
                if columns:
                    lengths = string_lengths(part.pool)
                    behind = np.cumsum(lengths[columns["name"]] + lengths[columns["str"]])
                    nbytes += np.append(0, behind)[stops] - np.append(0, behind)[starts]
                for rows in stretches(nbytes, STRING_BYTES):
                    templates.forget(KEPT)
                    first, last = starts[rows][0], stops[rows][-1]
                    if self._stream is not None and columns:
                        here = {name: column[first:last] for name, column in columns.items()}
                        templates.hold(*self._texts.of(here, self._stream.kinds(here)))
                    yield part.select(rows), (starts[rows] - first, stops[rows] - first)

    def _args(self, batch: Table) -> Iterator[tuple[slice, RowArgs]]:
        """Yield slices of the rows with their arguments."""
        if self._stream is None or not self.count:
            none = np.zeros(len(batch), np.int64)
            yield slice(None), RowArgs(none, none, {})
        else:
            yield from self._stream.pieces(batch.array("row"))


COLUMNS = ("parent", "name", "type", "int", "uint", "float", "str")
Columns = dict[str, NDArray[Any]]


class ArgumentStream:
    """The arguments of one table's rows, as columns, for requests in order of the rows.

    Arguments that are not in the order of their rows, such as those added by the end of a slice,
    are kept in memory; of the others, at most a batch.
    """

    def __init__(self, capture: Capture, table: str) -> None:
        self.count = 0
        """Total number of arguments."""
        self._types = np.full(256, NULL)
        """The standard number of each type."""
        numbers = {name: number for number, name in ARG_TYPES.items()}
        for number, name in capture.schemas["args"].column("type").values.items():
            self._types[number] = numbers.get(name, NULL)
        self._batches = _argument_batches(capture, table)
        self._parts: list[Columns] = []
        """Arguments read ahead."""
        self._last = -1
        kept = []
        for _, late, size in _argument_batches(capture, table):
            self.count += size
            if late["parent"].size:
                kept.append(late)
        self._late = _joined(kept)
        order = np.argsort(self._late["parent"], kind="stable")
        self._late = {name: column[order] for name, column in self._late.items()}

    def kinds(self, columns: Columns) -> NDArray[np.integer]:
        """Return the type of each argument by its value: what has a text is a string, or a blob."""
        types = self._types[columns["type"]]
        numbers = np.where((types == STRING) | (types == BLOB), NULL, types)
        return np.where(columns["str"] >= 0, np.where(types == STRING, STRING, BLOB), numbers)

    def pieces(self, rows: NDArray[np.int64]) -> Iterator[tuple[slice, RowArgs]]:
        """Yield the results of ``of`` for slices of the rows, in bounded memory.

        A slice has at most the arguments of a batch and of a row.
        """
        at = 0
        while at < rows.size:
            while self._last <= rows[at] and (batch := next(self._batches, None)) is not None:
                self._read(batch[0])
            # The arguments of a batch's last row may continue in the next batch.
            more = self._last > rows[at]
            stop = int(np.searchsorted(rows, self._last)) if more else rows.size
            yield slice(at, stop), self.of(rows[at:stop])
            at = stop

    def of(self, rows: NDArray[np.int64]) -> RowArgs:
        """Return the arguments of rows, int64 of shape (n,), sorted and after earlier requests."""
        if not rows.size:
            return self._args_of(rows, _joined([]))
        first, last = int(rows[0]), int(rows[-1])
        while self._last <= last and (batch := next(self._batches, None)) is not None:
            self._read(batch[0])
        found = _joined(self._parts)
        start, stop = np.searchsorted(found["parent"], [first, last + 1]).tolist()
        self._parts = [{name: column[stop:] for name, column in found.items()}]
        here = {name: column[start:stop] for name, column in found.items()}
        start, stop = np.searchsorted(self._late["parent"], [first, last + 1]).tolist()
        if stop > start:
            late = {name: column[start:stop] for name, column in self._late.items()}
            here = _joined([here, late])
            order = np.argsort(here["parent"], kind="stable")
            here = {name: column[order] for name, column in here.items()}
        return self._args_of(rows, here)

    def _args_of(self, rows: NDArray[np.int64], columns: Columns) -> RowArgs:
        starts = np.searchsorted(columns["parent"], rows, "left")
        stops = np.searchsorted(columns["parent"], rows, "right")
        return RowArgs(starts, stops, columns)

    def _read(self, columns: Columns) -> None:
        self._parts.append(columns)
        if columns["parent"].size:
            self._last = int(columns["parent"][-1])


def _argument_batches(capture: Capture, table: str) -> Iterator[tuple[Columns, Columns, int]]:
    """Yield arguments of a table's rows: those in order of the rows, late ones, and the number."""
    last = -1
    for batch in capture.batches("args"):
        mine = batch.array("table") == TABLE_CODES[table]
        if not mine.any():
            continue
        columns = {name: batch.array(name)[mine] for name in COLUMNS}
        parents = columns["parent"]
        highest = np.maximum.accumulate(np.append(last, parents))
        late = parents < highest[:-1]
        last = int(highest[-1])
        yield (
            {name: column[~late] for name, column in columns.items()},
            {name: column[late] for name, column in columns.items()},
            parents.size,
        )


def _joined(parts: list[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    kinds = (np.int64, np.int32, np.uint8, np.int64, np.uint64, np.float64, np.int32)
    empty = {name: np.zeros(0, kind) for name, kind in zip(COLUMNS, kinds, strict=True)}
    return {name: np.concatenate([p[name] for p in parts or [empty]]) for name in COLUMNS}
