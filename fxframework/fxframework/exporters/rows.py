"""Rows: the threads and the arguments that rows of tables refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.kit.row_texts import BLOB, NULL, STRING, json_double
from fxframework.model.capture import Capture
from fxframework.model.schema import ARG_TYPES, TABLE_CODES

__all__ = ["ArgumentStream", "Arguments", "Columns", "Task", "pieces", "tasks"]

INTEGERS = frozenset({"int32", "int64"})
BITS = frozenset({"uint32", "uint64", "pointer", "koid"})
PIECE = 1 << 20
"""Characters collected before they are written."""
Decode = Callable[[bytes], str]


class Task(NamedTuple):
    """A thread with the names of its process and itself; None if unknown."""

    pid: int
    tid: int
    process: str | None
    thread: str | None


class RowArgs(NamedTuple):
    """Arguments of consecutive rows: begin and end for each row, and their columns."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]


def tasks(capture: Capture) -> dict[int, Task]:
    """Return the threads of a capture by id, as in the columns ``thread``."""
    if "threads" not in capture.schemas:
        return {}
    processes: dict[int, str | None] = {}
    if "processes" in capture.schemas:
        table = capture.table("processes")
        processes = dict(zip(table.array("pid").tolist(), table.texts("name"), strict=True))
    table = capture.table("threads")
    ids, pids, tids = (table.array(name).tolist() for name in ("id", "pid", "tid"))
    return {
        number: Task(pid, tid, processes.get(pid), name)
        for number, pid, tid, name in zip(ids, pids, tids, table.texts("name"), strict=True)
    }


def pieces(texts: Iterable[str]) -> Iterator[bytes]:
    """Concatenate texts as UTF-8, and yield them in pieces of a few megabytes at most."""
    some: list[str] = []
    held = 0
    for text in texts:
        some.append(text)
        held += len(text)
        if held > PIECE:
            yield "".join(some).encode("utf-8", "replace")
            some.clear()
            held = 0
    if some:
        yield "".join(some).encode("utf-8", "replace")


class Arguments:
    """The arguments of one table's rows, with names and values as JSON.

    ``decode`` decodes strings; by default, invalid UTF-8 becomes U+FFFD.
    """

    def __init__(self, capture: Capture, table: str, decode: Decode | None = None) -> None:
        self._decode = decode or (lambda data: data.decode("utf-8", "replace"))
        self._pool = capture.strings
        self._texts: dict[int, str] = {}
        parts: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("parent", "name", "type", "int", "uint", "float", "str")
        }
        if "args" in capture.schemas and table in TABLE_CODES:
            self._types = capture.schemas["args"].column("type").values
            for batch in capture.batches("args"):
                mine = batch.array("table") == TABLE_CODES[table]
                for name, some in parts.items():
                    some.append(batch.array(name)[mine])
        empty = np.zeros(0, np.int64)
        whole = {name: np.concatenate(some) if some else empty for name, some in parts.items()}
        order = np.argsort(whole["parent"], kind="stable")
        self._columns = {name: column[order] for name, column in whole.items()}
        self._parents = self._columns["parent"]

    def __len__(self) -> int:
        return int(self._parents.size)

    def of(self, rows: NDArray[np.int64]) -> list[range]:
        """Return for each of these rows the range of its arguments, for ``members``."""
        first = np.searchsorted(self._parents, rows, "left").tolist()
        last = np.searchsorted(self._parents, rows, "right").tolist()
        return [range(start, stop) for start, stop in zip(first, last, strict=True)]

    def members(self, places: range) -> list[tuple[str, str]]:
        """Return names and values of arguments as JSON."""
        names = self._columns["name"]
        return [(self._text(int(names[at])), self._value(at)) for at in places]

    def _text(self, code: int) -> str:
        """Return a pooled string as JSON."""
        text = self._texts.get(code)
        if text is None:
            text = orjson.dumps(self._decode(self._bytes(code))).decode()
            self._texts[code] = text
        return text

    def _bytes(self, code: int) -> bytes:
        return self._pool.bytes_of(code) if code >= 0 else b""

    def _value(self, at: int) -> str:
        columns = self._columns
        kind = self._types.get(int(columns["type"][at]), "")
        code = int(columns["str"][at])
        if code >= 0:  # a string or bytes, whatever the type
            return self._text(code) if kind == "string" else f'"{self._bytes(code).hex()}"'
        if kind in INTEGERS:
            return str(int(columns["int"][at]))
        if kind in BITS:
            return str(int(columns["uint"][at]))
        if kind == "bool":
            return "true" if columns["int"][at] else "false"
        if kind == "double":
            return json_double(float(columns["float"][at]))
        return "null"


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
