"""Rows: what the rows of any table refer to: threads by their ids, and arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from fxframework.model.capture import Capture
from fxframework.model.schema import TABLE_CODES

__all__ = ["Arguments", "Person", "json_double", "people", "pieces"]

INTEGERS = frozenset({"int32", "int64"})
BITS = frozenset({"uint32", "uint64", "pointer", "koid"})
PIECE = 1 << 20
"""Characters that are gathered before they are written."""
Decode = Callable[[bytes], str]


class Person(NamedTuple):
    """A thread, and the names of it and of its process, None where they are not known."""

    pid: int
    tid: int
    process: str | None
    thread: str | None


class Stretch(NamedTuple):
    """Arguments of consecutive rows: where those of each begin and end, and their columns."""

    starts: NDArray[np.int64]
    stops: NDArray[np.int64]
    columns: dict[str, NDArray[Any]]
    kinds: NDArray[np.str_]
    """The name of each one's type."""


def people(capture: Capture) -> dict[int, Person]:
    """The threads of a capture, by what other tables' ``thread`` holds; empty if it has none."""
    if "threads" not in capture.schemas:
        return {}
    processes: dict[int, str | None] = {}
    if "processes" in capture.schemas:
        table = capture.table("processes")
        processes = dict(zip(table.array("pid").tolist(), table.texts("name"), strict=True))
    table = capture.table("threads")
    ids, pids, tids = (table.array(name).tolist() for name in ("id", "pid", "tid"))
    return {
        number: Person(pid, tid, processes.get(pid), name)
        for number, pid, tid, name in zip(ids, pids, tids, table.texts("name"), strict=True)
    }


def json_double(value: float) -> str:
    """The shortest text that reads back as the double; NaN and infinities as strings."""
    if value != value:  # noqa: PLR0124 (only NaN differs from itself)
        return '"NaN"'
    if value in {float("inf"), float("-inf")}:
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(value)


def pieces(texts: Iterable[str]) -> Iterator[bytes]:
    """Texts one behind the other as UTF-8, in pieces of a few megabytes at most.

    However long each text is, no more of them are held.
    """
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
    """The arguments of one table's rows, each as a name and a value in JSON.

    ``decode`` makes text of the bytes of a string; what is not UTF-8 becomes U+FFFD by default.
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
        """For each of these rows the places of its arguments, for ``members``."""
        first = np.searchsorted(self._parents, rows, "left").tolist()
        last = np.searchsorted(self._parents, rows, "right").tolist()
        return [range(start, stop) for start, stop in zip(first, last, strict=True)]

    def stretch(self, rows: NDArray[np.int64]) -> Stretch:
        """The arguments of rows in order, int64 of shape (n,), as columns."""
        starts = np.searchsorted(self._parents, rows, "left")
        stops = np.searchsorted(self._parents, rows, "right")
        first, last = int(starts.min(initial=len(self))), int(stops.max(initial=0))
        columns = {name: column[first:last] for name, column in self._columns.items()}
        kinds = np.full(last - first, "null", "U8")
        for number in np.unique(columns["type"]).tolist():
            kinds[columns["type"] == number] = self._types.get(int(number), "")
        return Stretch(starts - first, stops - first, columns, kinds)

    def members(self, places: range) -> list[tuple[str, str]]:
        """Names, as text in JSON, and values in JSON."""
        names = self._columns["name"]
        return [(self._text(int(names[at])), self._value(at)) for at in places]

    def _text(self, code: int) -> str:
        """A pooled string as JSON."""
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
        if code >= 0:  # bytes, whatever the number of their type means in other formats
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
