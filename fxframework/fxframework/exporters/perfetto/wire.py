"""Bulk encoding of Protobuf: converts columns of field values to the bytes of many messages.

All messages of a batch have the same fields in the same order. Their bytes are rows of a uint8
matrix with a mask of the bytes in use, so that a batch takes a few numpy operations. Numbers of
fields and types follow Perfetto's public ``perfetto_trace.proto``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.columns import starts_of
from fxframework.kernels.arrays import U8
from fxframework.model.strings import TextColumn

RUN = 1 << 18
"""Bytes of names written at a time."""
# Wire types.
VARINT = 0
FIXED64 = 1
LENGTH = 2


def varint(value: int) -> bytes:
    """Encode a 64-bit integer as a varint; negative ones as two's complement."""
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def tag(number: int, wire: int) -> bytes:
    """Encode the key of a field."""
    return varint(number << 3 | wire)


def message(number: int, content: bytes) -> bytes:
    """Encode a field with an embedded message or bytes."""
    return tag(number, LENGTH) + varint(len(content)) + content


def string(number: int, value: str | bytes) -> bytes:
    """Encode a string field; invalid UTF-8 becomes U+FFFD."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return message(number, value.encode("utf-8", "replace"))


def integer(number: int, value: int) -> bytes:
    """Encode a varint field."""
    return tag(number, VARINT) + varint(value)


class Messages:
    """Builds ``rows`` messages field by field, in the order of the calls."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self._bytes: list[U8] = []
        self._used: list[NDArray[np.bool_]] = []
        self.lengths = np.zeros(rows, np.int64)
        """Current length of each message, int64 of shape (rows,)."""

    def constant(self, data: bytes, present: NDArray[np.bool_] | None = None) -> Messages:
        """Append the same bytes to every message, or to those that are ``present``."""
        row = np.frombuffer(data, np.uint8)
        matrix = np.broadcast_to(row, (self.rows, row.size))
        return self._append_rows(matrix, present)

    def varints(
        self, number: int, values: Any, present: NDArray[np.bool_] | None = None
    ) -> Messages:
        """Append a varint field; negative values as 64-bit two's complement."""
        if present is not None and not present.any():
            return self
        self.constant(tag(number, VARINT), present)
        return self._raw_varints(np.asarray(values), present)

    def fixed64(
        self, number: int, values: Any, present: NDArray[np.bool_] | None = None
    ) -> Messages:
        """Append a field of eight bytes: float64 or uint64 values."""
        self.constant(tag(number, FIXED64), present)
        matrix = np.ascontiguousarray(values).view(np.uint8).reshape(self.rows, 8)
        return self._append_rows(matrix, present)

    def padded(self, number: int, matrix: U8, sizes: NDArray[np.int64]) -> Messages:
        """Append a field of bytes: the first ``sizes`` of each row of a (rows, width) matrix.

        Rows of size 0 get no field.
        """
        self.constant(tag(number, LENGTH), sizes > 0)
        self._raw_varints(sizes, sizes > 0)
        self._bytes.append(matrix)
        places = np.arange(matrix.shape[1])
        self._used.append(places < sizes[:, None])
        self.lengths += np.clip(sizes, 0, matrix.shape[1])
        return self

    def header(self, number: int, sizes: NDArray[np.int64]) -> Messages:
        """Append the key and length of a field whose bytes are added later."""
        self.constant(tag(number, LENGTH))
        return self._raw_varints(sizes, None)

    def embed(
        self, number: int, inner: Messages, tail: NDArray[np.int64] | None = None
    ) -> Messages:
        """Append embedded messages; ``tail`` has the lengths of bytes added to each later."""
        total = inner.lengths if tail is None else inner.lengths + tail
        self.header(number, total)
        self._bytes += inner._bytes
        self._used += inner._used
        self.lengths += inner.lengths
        return self

    def _raw_varints(self, values: NDArray[Any], present: NDArray[np.bool_] | None) -> Messages:
        if values.dtype == np.int64:
            bits_left = values.view(np.uint64)  # two's complement
        else:
            bits_left = values.astype(np.uint64, copy=False)
        columns: list[NDArray[np.uint8]] = []
        used: list[NDArray[np.bool_]] = []
        continues = np.ones(self.rows, np.bool_) if present is None else present
        # Each round makes one byte of all varints: 7 bits, and a high bit if more bytes follow.
        while continues.any():
            used.append(continues)
            self.lengths += continues
            low_bits = bits_left.astype(np.uint8) & np.uint8(0x7F)
            bits_left = bits_left >> np.uint64(7)
            continues = continues & (bits_left != 0)
            low_bits[continues] |= np.uint8(0x80)
            columns.append(low_bits)
        if columns:
            self._bytes.append(np.stack(columns, axis=1))
            self._used.append(np.stack(used, axis=1))
        return self

    def _append_rows(self, matrix: U8, present: NDArray[np.bool_] | None) -> Messages:
        """Append all bytes of each row, or of those that are ``present``."""
        if present is None:
            used = np.broadcast_to(np.True_, matrix.shape)
            self.lengths += matrix.shape[1]
        elif present.any():
            used = np.broadcast_to(present[:, None], matrix.shape)
            self.lengths += matrix.shape[1] * present
        else:
            return self
        self._bytes.append(matrix)
        self._used.append(used)
        return self

    def data(self) -> U8:
        """Return the concatenated messages, uint8."""
        if not self._bytes:
            return np.zeros(0, np.uint8)
        is_used = np.concatenate(self._used, axis=1)
        return np.concatenate(self._bytes, axis=1)[is_used]


def runs(texts: Iterable[bytes]) -> Iterator[tuple[slice, list[bytes]]]:
    """Yield byte strings in runs of bounded size, with the slice of each run."""
    run_start = 0
    run: list[bytes] = []
    run_bytes = 0
    for text in texts:
        run.append(text)
        run_bytes += len(text) + 1
        if run_bytes > RUN:
            yield slice(run_start, run_start + len(run)), run
            run_start += len(run)
            run = []
            run_bytes = 0
    if run:
        yield slice(run_start, run_start + len(run)), run


def total_lengths(parts: Iterable[tuple[U8, NDArray[np.int64]]], rows: int) -> NDArray[np.int64]:
    """Return the bytes of each row in several parts (see ``interleave``), of shape (rows,)."""
    totals = np.zeros(rows, np.int64)
    for _, lengths in parts:
        totals += lengths
    return totals


def interleave(parts: Iterable[tuple[U8, NDArray[np.int64]]]) -> U8:
    """Interleave the rows of several batches: all bytes of row 0, then of row 1, and so on.

    A part has the concatenated bytes of its rows, and the length of each row.
    """
    nonempty = [(data, lengths) for data, lengths in parts if data.size]
    if len(nonempty) == 1:
        return nonempty[0][0]
    if not nonempty:
        return np.zeros(0, np.uint8)
    rows = nonempty[0][1].size
    # Where in the joined bytes the bytes of each row and part are, row by row.
    starts = np.empty((rows, len(nonempty)), np.int64)
    sizes = np.empty((rows, len(nonempty)), np.int64)
    part_start = 0
    for column, (data, lengths) in enumerate(nonempty):
        starts[:, column] = starts_of(lengths) + part_start
        sizes[:, column] = lengths
        part_start += data.size
    joined = np.concatenate([data for data, _ in nonempty])
    return TextColumn.gather(joined, starts.reshape(-1), sizes.reshape(-1)).data
