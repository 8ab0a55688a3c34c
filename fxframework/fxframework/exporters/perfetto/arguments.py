"""Arguments as debug annotations, strings as interned ids, and the bytes after event fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.perfetto.wire import (
    Messages,
    integer,
    interleave,
    message,
    runs,
    string,
)
from fxframework.exporters.rows import ArgumentStream, Columns
from fxframework.model.capture import Capture
from fxframework.model.schema import ARG_TYPES
from fxframework.model.strings import TextColumn

__all__ = ["INTERNED", "NEEDED", "SEQUENCE_FLAGS", "Arguments", "Interned", "Tails"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
DENSE = 8
"""Ids are looked up in a dense table if their range is at most this many times their number."""
CHUNK = 1 << 15
"""Arguments encoded at a time."""
SEQUENCE_FLAGS, INTERNED, NEEDED = 13, 12, 2
"""Fields of TracePacket, and the flag of a packet that needs the interned state."""
DEBUG_ANNOTATIONS = 4
ARGUMENT_NAMES, STRINGS = 3, 29
"""Fields of InternedData."""
NAME_IID, BOOL, UINT, INT, DOUBLE, STRING, POINTER, STRING_IID = 1, 2, 3, 4, 5, 6, 7, 17
"""Fields of DebugAnnotation."""
_TYPE = {name: number for number, name in ARG_TYPES.items()}
_FIELDS = {
    BOOL: ("bool",),
    UINT: ("uint32", "uint64", "koid"),
    INT: ("int32", "int64"),
    POINTER: ("pointer",),
}


class Interned:
    """The strings of a capture's pool that a packet sequence has interned, by use."""

    def __init__(self, capture: Capture, emit: Callable[[bytes], None]) -> None:
        self._capture = capture
        self._emit = emit
        self._known: dict[int, NDArray[np.bool_]] = {}
        self._fresh: dict[int, list[I64]] = {}

    def need(self, field: int, codes: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the iids of codes (0 for null); call ``announce`` before writing them.

        ``field`` is the field of InternedData for this use of the strings.
        """
        known = self._known.get(field)
        size = len(self._capture.strings)
        if known is None or known.size < size + 1:
            grown = np.zeros(size + size // 2 + 1, np.bool_)
            if known is not None:
                grown[: known.size - 1] = known[:-1]
            grown[-1] = True  # index -1: null
            known = self._known[field] = grown
        fresh = codes[~known[codes]]
        if fresh.size:
            known[fresh] = True
            self._fresh.setdefault(field, []).append(np.unique(fresh).astype(np.int64))
        return (codes.astype(np.int64) + 1).view(np.uint64)

    def announce(self) -> None:
        """Write the needed strings that are not interned yet."""
        bytes_of = self._capture.strings.bytes_of
        for field in sorted(self._fresh):
            codes = np.sort(np.concatenate(self._fresh.pop(field)))
            entries = (
                message(field, integer(1, code + 1) + string(2, bytes_of(code)))
                for code in codes.tolist()
            )
            for _, some in runs(entries):
                self._emit(integer(SEQUENCE_FLAGS, NEEDED) + message(INTERNED, b"".join(some)))


class Arguments:
    """Encodes the arguments of one table's rows, for requests in order of the rows."""

    def __init__(self, capture: Capture, table: str, interned: Interned) -> None:
        self._capture = capture
        self._interned = interned
        self._stream = ArgumentStream(capture, table) if "args" in capture.schemas else None

    def _of(self, rows: I64) -> Iterator[tuple[slice, Columns]]:
        """Yield slices of the rows with the columns of their arguments, in order of the rows."""
        if self._stream is not None and self._stream.count:
            for some, found in self._stream.pieces(rows):
                yield some, found.columns

    def encoded(self, rows: I64) -> tuple[I64, U8, I64]:
        """Return the rows that have arguments, the encoded bytes, and the length per row."""
        ids = [np.zeros(0, np.int64)]
        lengths = [np.zeros(0, np.int64)]
        data = [np.zeros(0, np.uint8)]
        for _, columns in self._of(rows):
            parents = columns["parent"]
            if not parents.size:
                continue
            sizes = np.empty(parents.size, np.int64)
            for at in range(0, parents.size, CHUNK):
                some = slice(at, at + CHUNK)
                letters, sizes[some] = self._encode(
                    {name: column[some] for name, column in columns.items()}
                )
                data.append(letters)
            first = np.flatnonzero(np.append(True, parents[1:] != parents[:-1]))
            ids.append(parents[first])
            lengths.append(np.add.reduceat(sizes, first))
        return np.concatenate(ids), np.concatenate(data), np.concatenate(lengths)

    def _encode(self, columns: Columns) -> tuple[U8, I64]:
        kinds, names, texts = (columns[name] for name in ("type", "name", "str"))
        body = Messages(kinds.size)
        body.varints(NAME_IID, self._interned.need(ARGUMENT_NAMES, names), names >= 0)
        for field, types in _FIELDS.items():
            body.varints(field, columns["uint"], np.isin(kinds, [_TYPE[name] for name in types]))
        body.fixed64(DOUBLE, columns["float"].astype("<f8"), kinds == _TYPE["double"])
        body.varints(STRING_IID, self._interned.need(STRINGS, texts), texts >= 0)
        body.constant(string(STRING, "null"), kinds == _TYPE["null"])
        every = Messages(kinds.size).embed(DEBUG_ANNOTATIONS, body)
        return every.data(), every.lengths

    def texts(self, rows: I64) -> Iterator[tuple[slice, Mapping[int, str]]]:
        """Yield slices of the rows with their arguments as text, ``name=value``, by row.

        Bytes, of a blob or an unknown type, are written in hex.
        """
        if self._stream is None or not self._stream.count:
            yield slice(rows.size), {}
        names = ("parent", "name", "type", "int", "uint", "float", "str")
        pool = self._capture.strings
        for some, columns in self._of(rows):
            found: dict[int, list[str]] = {}
            for row, name, kind, signed, unsigned, number, text in zip(
                *(columns[column].tolist() for column in names), strict=True
            ):
                value: object = {
                    "double": number,
                    "int32": signed,
                    "int64": signed,
                    "bool": "true" if unsigned else "false",
                    "null": "null",
                }.get(ARG_TYPES.get(kind, ""), unsigned)
                if text >= 0:
                    value = pool[text] if kind == _TYPE["string"] else pool.bytes_of(text).hex()
                found.setdefault(row, []).append(f"{pool.text(name)}={value}")
            yield some, {row: " ".join(parts) for row, parts in found.items()}


class Tails:
    """Bytes to append to the fields of events (arguments and flows), by row id."""

    def __init__(self, ids: I64) -> None:
        self._ids = ids
        self._parts: list[tuple[U8, I64, I64]] = []

    def add(self, ids: I64, data: U8, lengths: I64) -> None:
        """Append bytes to rows: ``data`` has a stretch of ``lengths`` for each of ``ids``."""
        if not ids.size:
            return
        order = np.argsort(ids, kind="stable")
        if not np.array_equal(order, np.arange(ids.size)):
            starts = np.cumsum(lengths) - lengths
            data = TextColumn.gather(data, starts[order], lengths[order]).data
            ids, lengths = ids[order], lengths[order]
        first = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
        total = np.add.reduceat(lengths, first)
        starts = np.cumsum(total) - total
        place = _places(ids[first], self._ids)
        found = ids[first][place] == self._ids
        self._parts.append((data, starts[place], np.where(found, total[place], 0)))

    def every(self) -> tuple[I64, U8]:
        """Return lengths and bytes of the tails of all rows."""
        return self.of(np.arange(self._ids.size), np.ones(self._ids.size, np.bool_))

    def of(self, places: I64, shown: NDArray[np.bool_]) -> tuple[I64, U8]:
        """Return lengths and bytes of the tails at these indexes; empty where not ``shown``."""
        parts = []
        for data, starts, sizes in self._parts:
            lengths = np.where(shown, sizes[places], 0)
            parts.append((TextColumn.gather(data, starts[places], lengths).data, lengths))
        total = sum((lengths for _, lengths in parts), np.zeros(places.size, np.int64))
        return total, interleave(parts)


def _places(ids: I64, asked: I64) -> I64:
    """Return the indexes of ids among sorted ones; an arbitrary index for a missing id."""
    high = max(int(ids[-1]), int(asked.max(initial=0)))
    if high > DENSE * (ids.size + asked.size):
        return np.minimum(np.searchsorted(ids, asked), ids.size - 1)
    table = np.zeros(high + 1, np.int64)
    table[ids] = np.arange(ids.size)
    return table[asked]
