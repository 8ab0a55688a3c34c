"""Arrow: tables as pyarrow holds them. Imported where an Arrow table is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.errors import MissingExtraError
from fxframework.model.strings import StringPool, TextColumn

try:
    import pyarrow as pa
except ImportError:
    raise MissingExtraError("pyarrow", "arrow", purpose="an Arrow table") from None

__all__ = ["arrow_table", "code_column", "number_column", "text_column"]

Column = NDArray[Any] | TextColumn

SPELLED_OUT = 256 << 20
"""Bytes of values that may be written out for each row."""
SMALL_STRINGS = (1 << 31) - 1
"""Bytes that the offsets of Arrow's `string` can count."""


def arrow_table(columns: Mapping[str, Column], kinds: Sequence[str], pool: StringPool) -> pa.Table:
    """Columns of the kinds of a schema, over the pool of their codes, as pyarrow holds them."""
    arrays = [
        _column(column, kind, pool) for column, kind in zip(columns.values(), kinds, strict=True)
    ]
    return pa.table(arrays, names=list(columns))


def _column(column: Column, kind: str, pool: StringPool) -> pa.Array:
    if isinstance(column, TextColumn):
        return text_column(column)
    if kind == "code":
        return code_column(column, pool)
    if column.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(number_column(np.ravel(column)), 2)
    return number_column(column)


def number_column(values: NDArray[Any], nulls: NDArray[np.bool_] | None = None) -> pa.Array:
    """Numbers or bools over their own memory, null where ``nulls``.

    ``pyarrow.array`` gives the same, but imports pandas first where that is installed.
    """
    values = np.ascontiguousarray(values)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    kind = pa.from_numpy_dtype(values.dtype)
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else values
    valid = None
    if nulls is not None and nulls.any():
        valid = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(kind, values.size, [valid, pa.py_buffer(data)])


def text_column(column: TextColumn, *, small: bool = False) -> pa.Array:
    """Strings, `large_string` (`string` where ``small`` asks for it, if they fit).

    Where some are not UTF-8, all of them are binary: `large_binary`, or `binary`.
    """
    offsets = column.offsets - column.offsets[0]
    data = np.ascontiguousarray(column.data[int(column.offsets[0]) : int(column.offsets[-1])])
    small = small and data.size <= SMALL_STRINGS
    kinds = (pa.string(), pa.binary()) if small else (pa.large_string(), pa.large_binary())
    buffers = [
        None,
        pa.py_buffer(np.ascontiguousarray(offsets, np.int32 if small else np.int64)),
        pa.py_buffer(data),
    ]
    made = pa.Array.from_buffers(kinds[0], len(column), buffers)
    try:
        made.validate(full=True)
    except pa.ArrowInvalid:
        return pa.Array.from_buffers(kinds[1], len(column), buffers)
    return made


def code_column(codes: NDArray[Any], pool: StringPool) -> pa.Array:
    """Strings of a pool by their codes, null for -1, as a dictionary of the strings that occur.

    Where one of these is not UTF-8 it is a column of `binary` values, as not every library takes
    a dictionary of them; but for long values that many rows share, which stay a dictionary.
    """
    codes = np.ascontiguousarray(codes)
    occurs = np.zeros(len(pool) + 1, np.bool_)
    occurs[codes] = True  # -1 is the last one
    used = np.flatnonzero(occurs[:-1])
    place = np.full(len(pool) + 1, -1, np.int32)
    place[used] = np.arange(used.size, dtype=np.int32)
    values = text_column(pool.column(used), small=True)
    # A null has the index 0: polars checks the indexes of nulls, too.
    places = place[codes]
    indices = number_column(np.maximum(places, 0), places < 0)
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        lengths = np.diff(pool.column(used).offsets)
        if int(lengths @ np.bincount(place[codes[codes >= 0]], minlength=used.size)) <= SPELLED_OUT:
            return values.take(indices)
    return pa.DictionaryArray.from_arrays(indices, values)
