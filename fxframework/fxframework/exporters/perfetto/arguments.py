"""Arguments as debug annotations, strings as interned ids, and the bytes after event fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.columns import Columns, first_of_runs, picked, starts_of
from fxframework.exporters.perfetto.wire import (
    Messages,
    integer,
    interleave,
    message,
    runs,
    string,
    total_lengths,
)
from fxframework.exporters.rows import ArgumentStream
from fxframework.kernels.arrays import I64, U8
from fxframework.kernels.sorting import places_among
from fxframework.model.capture import Capture
from fxframework.model.schema import ArgType
from fxframework.model.strings import TextColumn

CHUNK = 1 << 15
"""Arguments encoded at a time."""
# Fields of TracePacket.
INTERNED = 12
SEQUENCE_FLAGS = 13
NEEDED = 2
"""Flag of a packet that needs the interned state."""
DEBUG_ANNOTATIONS = 4
"""Field of TrackEvent."""
# Fields of InternedData.
ARGUMENT_NAMES = 3
STRINGS = 29
# Fields of DebugAnnotation.
NAME_IID = 1
BOOL = 2
UINT = 3
INT = 4
DOUBLE = 5
STRING = 6
POINTER = 7
STRING_IID = 17
_FIELDS = {
    BOOL: (ArgType.BOOL,),
    UINT: (ArgType.UINT32, ArgType.UINT64, ArgType.KOID),
    INT: (ArgType.INT32, ArgType.INT64),
    POINTER: (ArgType.POINTER,),
}


class Interned:
    """The strings of a capture's pool that a packet sequence has interned, by use."""

    def __init__(self, capture: Capture, emit: Callable[[bytes], None]) -> None:
        self._capture = capture
        self._emit = emit
        self._interned_by_field: dict[int, NDArray[np.bool_]] = {}
        """Whether each code is interned. The last element is for null, whose code is -1."""
        self._new_by_field: dict[int, list[I64]] = {}
        """Codes to announce."""

    def need(self, field: int, codes: NDArray[Any]) -> NDArray[np.uint64]:
        """Return the iids of codes (0 for null); call ``announce`` before writing them.

        ``field`` is the field of InternedData for this use of the strings.
        """
        is_interned = self._interned_by_field.get(field)
        size = len(self._capture.strings)
        if is_interned is None or is_interned.size < size + 1:
            enlarged = np.zeros(size + size // 2 + 1, np.bool_)
            if is_interned is not None:
                enlarged[: is_interned.size - 1] = is_interned[:-1]
            enlarged[-1] = True  # null needs no string
            self._interned_by_field[field] = is_interned = enlarged
        new_codes = codes[~is_interned[codes]]
        if new_codes.size:
            is_interned[new_codes] = True
            distinct_codes = np.unique(new_codes).astype(np.int64)
            self._new_by_field.setdefault(field, []).append(distinct_codes)
        return (codes.astype(np.int64) + 1).view(np.uint64)

    def announce(self) -> None:
        """Write the needed strings that are not interned yet."""
        bytes_of = self._capture.strings.bytes_of
        for field in sorted(self._new_by_field):
            codes = np.sort(np.concatenate(self._new_by_field.pop(field)))
            entries = (
                message(field, integer(1, code + 1) + string(2, bytes_of(code)))
                for code in codes.tolist()
            )
            for _, run in runs(entries):
                self._emit(integer(SEQUENCE_FLAGS, NEEDED) + message(INTERNED, b"".join(run)))


class Arguments:
    """Encodes the arguments of one table's rows, for requests in order of the rows."""

    def __init__(self, capture: Capture, table: str, interned: Interned) -> None:
        self._capture = capture
        self._interned = interned
        self._stream = ArgumentStream(capture, table) if "args" in capture.schemas else None

    def _columns_of(self, rows: I64) -> Iterator[tuple[slice, Columns]]:
        """Yield slices of the rows with the columns of their arguments, in order of the rows."""
        if self._stream is not None and self._stream.count:
            for part, arguments in self._stream.pieces(rows):
                yield part, arguments.columns

    def encoded(self, rows: I64) -> tuple[I64, U8, I64]:
        """Return the rows that have arguments, the encoded bytes, and the length per row."""
        rows_with_arguments = [np.zeros(0, np.int64)]
        lengths = [np.zeros(0, np.int64)]
        data = [np.zeros(0, np.uint8)]
        for _, columns in self._columns_of(rows):
            parents = columns["parent"]
            if not parents.size:
                continue
            sizes = np.empty(parents.size, np.int64)
            for start in range(0, parents.size, CHUNK):
                chunk = slice(start, start + CHUNK)
                encoded, sizes[chunk] = self._encode(picked(columns, chunk))
                data.append(encoded)
            first_of_row = first_of_runs(parents)
            rows_with_arguments.append(parents[first_of_row])
            lengths.append(np.add.reduceat(sizes, first_of_row))
        return np.concatenate(rows_with_arguments), np.concatenate(data), np.concatenate(lengths)

    def _encode(self, columns: Columns) -> tuple[U8, I64]:
        kinds = columns["type"]
        names = columns["name"]
        texts = columns["str"]
        body = Messages(kinds.size)
        name_iids = self._interned.need(ARGUMENT_NAMES, names)
        body.varints(NAME_IID, name_iids, names >= 0)
        for field, types in _FIELDS.items():
            body.varints(field, columns["uint"], np.isin(kinds, types))
        body.fixed64(DOUBLE, columns["float"].astype("<f8"), kinds == ArgType.DOUBLE)
        text_iids = self._interned.need(STRINGS, texts)
        body.varints(STRING_IID, text_iids, texts >= 0)
        body.constant(string(STRING, "null"), kinds == ArgType.NULL)
        annotations = Messages(kinds.size).embed(DEBUG_ANNOTATIONS, body)
        return annotations.data(), annotations.lengths

    def texts(self, rows: I64) -> Iterator[tuple[slice, Mapping[int, str]]]:
        """Yield slices of the rows with their arguments as text, ``name=value``, by row.

        Bytes, of a blob or an unknown type, are written in hex.
        """
        if self._stream is None or not self._stream.count:
            yield slice(rows.size), {}
        names = ("parent", "name", "type", "int", "uint", "float", "str")
        pool = self._capture.strings
        for part, columns in self._columns_of(rows):
            texts_by_row: dict[int, list[str]] = {}
            for row, name, kind, signed, unsigned, double, text in zip(
                *(columns[column].tolist() for column in names), strict=True
            ):
                value: object = unsigned
                # Whatever the type is called, a value with a string is a string or bytes.
                if text >= 0:
                    value = pool[text] if kind == ArgType.STRING else pool.bytes_of(text).hex()
                elif kind == ArgType.DOUBLE:
                    value = double
                elif kind in {ArgType.INT32, ArgType.INT64}:
                    value = signed
                elif kind == ArgType.BOOL:
                    value = "true" if unsigned else "false"
                elif kind == ArgType.NULL:
                    value = "null"
                texts_by_row.setdefault(row, []).append(f"{pool.text(name)}={value}")
            yield part, {row: " ".join(texts) for row, texts in texts_by_row.items()}


class Tails:
    """Bytes to append to the fields of events (arguments and flows), by row id."""

    def __init__(self, ids: I64) -> None:
        self._row_ids = ids
        self._parts: list[tuple[U8, I64, I64]] = []
        """Bytes, and for each row where its tail starts in them, and how long it is."""

    def add(self, ids: I64, data: U8, lengths: I64) -> None:
        """Append bytes to rows: ``data`` has a stretch of ``lengths`` for each of ``ids``."""
        if not ids.size:
            return
        order = np.argsort(ids, kind="stable")
        if not np.array_equal(order, np.arange(ids.size)):
            starts = starts_of(lengths)[order]
            ids = ids[order]
            lengths = lengths[order]
            data = TextColumn.gather(data, starts, lengths).data
        # The parts of a row are beside one another now, and are one tail.
        first_of_id = first_of_runs(ids)
        tail_ids = ids[first_of_id]
        tail_lengths = np.add.reduceat(lengths, first_of_id)
        tail_starts = starts_of(tail_lengths)
        index = places_among(self._row_ids, tail_ids)
        lengths_of_rows = np.where(index >= 0, tail_lengths[index], 0)
        self._parts.append((data, tail_starts[index], lengths_of_rows))

    def every(self) -> tuple[I64, U8]:
        """Return lengths and bytes of the tails of all rows."""
        row_count = self._row_ids.size
        return self.of(np.arange(row_count), np.ones(row_count, np.bool_))

    def of(self, places: I64, shown: NDArray[np.bool_]) -> tuple[I64, U8]:
        """Return lengths and bytes of the tails at these indexes; empty where not ``shown``."""
        gathered = []
        for data, starts, sizes in self._parts:
            lengths = np.where(shown, sizes[places], 0)
            tails = TextColumn.gather(data, starts[places], lengths)
            gathered.append((tails.data, lengths))
        return total_lengths(gathered, places.size), interleave(gathered)
