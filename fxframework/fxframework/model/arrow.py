"""Conversion of tables to Arrow. Needs pyarrow; import it only where an Arrow table is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fxframework.errors import MissingExtraError
from fxframework.model.strings import StringPool, TextColumn

try:
    import pyarrow as pa
except ImportError:
    raise MissingExtraError("pyarrow", "arrow", purpose="an Arrow table") from None

__all__ = ["BYTES", "ArrowShape", "code_columns", "number_column", "text_column"]

Column = NDArray[Any] | TextColumn


class Columns(Protocol):
    """A mapping from column names to columns, such as a Table."""

    def __getitem__(self, name: str, /) -> Column: ...


BYTES = "_bytes"
"""Ends the name of the column with the bytes of strings that are not UTF-8."""
SPELLED_OUT = 256 << 20
"""Above this many bytes, binary values stay a dictionary and are not repeated row by row."""
SMALL_STRINGS = (1 << 31) - 1
"""The most bytes that the int32 offsets of Arrow's `string` can address."""


class ArrowShape:
    r"""The Arrow types and dictionaries of a table's columns, the same for every batch of its rows.

    Pass all rows to ``see`` before the first call of ``table``. A column of codes becomes a
    dictionary of all strings that occur in it. Invalid UTF-8 in a string becomes ``\xNN``; if one
    has some, a column ``NAME_bytes`` follows, with the bytes of such strings, null in other rows.
    """

    def __init__(self, kinds: Mapping[str, str], pool: StringPool) -> None:
        self._columns: dict[str, _Codes | _Texts | _Numbers] = {}
        for name, kind in kinds.items():
            if kind == "code":
                self._columns[name] = _Codes(pool)
            elif kind == "text":
                self._columns[name] = _Texts()
            else:
                self._columns[name] = _Numbers()

    def see(self, table: Columns) -> None:
        """Note the strings that occur in these rows."""
        # Making a column may add strings to the pool, so make all columns before reading the pool.
        columns = {name: table[name] for name in self._columns}
        for name, column in columns.items():
            self._columns[name].see(column)

    def table(self, table: Columns) -> pa.Table:
        """Convert rows to an Arrow table."""
        columns: dict[str, pa.Array] = {}
        for name, shape in self._columns.items():
            columns.update(shape.arrays(name, table[name]))
        return pa.table(columns)


class _Numbers:
    """A column of numbers or of pairs of numbers."""

    def see(self, column: Any) -> None:
        """Do nothing: the type of a number column does not depend on its rows."""

    def arrays(self, name: str, column: Any) -> dict[str, pa.Array]:
        if column.ndim == 2:
            return {name: pa.FixedSizeListArray.from_arrays(number_column(np.ravel(column)), 2)}
        return {name: number_column(column)}


class _Texts:
    """A text column."""

    def __init__(self) -> None:
        self._binary = False

    def see(self, column: Any) -> None:
        self._binary = self._binary or pa.types.is_large_binary(text_column(column).type)

    def arrays(self, name: str, column: Any) -> dict[str, pa.Array]:
        values = text_column(column, binary=self._binary)
        if not self._binary:
            return {name: values}
        texts, invalid = _escaped(values)
        return {name: texts, name + BYTES: invalid}


class _Codes:
    """A column of codes: a dictionary, and the bytes as ``code_columns`` describes them."""

    def __init__(self, pool: StringPool) -> None:
        self._pool = pool
        self._occurs = np.zeros(0, np.bool_)
        self._nbytes = 0
        """Total bytes of the strings of all rows; counted only if the pool has invalid UTF-8."""
        self._values: pa.Array = None
        """The dictionary; None until all strings were seen."""
        self._invalid: pa.Array = None
        """The bytes of values that are not UTF-8, null for others; None if all are UTF-8."""
        self._index_of_code = np.zeros(0, np.int32)

    def see(self, codes: Any) -> None:
        size = len(self._pool) + 1
        if self._occurs.size != size:  # the last element is for code -1
            occurs = np.zeros(size, np.bool_)
            occurs[: max(self._occurs.size - 1, 0)] = self._occurs[:-1]
            self._occurs = occurs
        self._occurs[codes] = True
        if not self._pool.pool.array("valid").all():
            self._nbytes += int(self._pool.pool.array("lengths")[codes[codes >= 0]].sum())
        self._values = None

    def _make_dictionary(self) -> None:
        occurring = np.flatnonzero(self._occurs[:-1])
        self._index_of_code = np.full(len(self._pool) + 1, -1, np.int32)
        self._index_of_code[occurring] = np.arange(occurring.size, dtype=np.int32)
        self._values = text_column(self._pool.column(occurring), small=True)
        if not _is_text(self._values):
            self._values, self._invalid = _escaped(self._values)

    def arrays(self, name: str, codes: Any) -> dict[str, pa.Array]:
        if self._values is None:
            self._make_dictionary()
        indexes = self._index_of_code[codes]
        # Give nulls the index 0: polars checks the indexes of nulls, too.
        indices = number_column(np.maximum(indexes, 0), indexes < 0)
        arrays = {name: pa.DictionaryArray.from_arrays(indices, self._values)}
        if self._invalid is not None:
            if self._nbytes <= SPELLED_OUT:
                arrays[name + BYTES] = self._invalid.take(indices)
            else:
                arrays[name + BYTES] = pa.DictionaryArray.from_arrays(indices, self._invalid)
        return arrays


def number_column(values: NDArray[Any], nulls: NDArray[np.bool_] | None = None) -> pa.Array:
    """Convert numbers or bools without copying; rows where ``nulls`` is true become null.

    ``pyarrow.array`` returns the same, but imports pandas first if it is installed.
    """
    values = np.ascontiguousarray(values)
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    arrow_type = pa.from_numpy_dtype(values.dtype)
    data = values
    if values.dtype == np.bool_:  # a bit each in Arrow
        data = np.packbits(values, bitorder="little")
    validity = None
    if nulls is not None and nulls.any():
        validity = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(arrow_type, values.size, [validity, pa.py_buffer(data)])


def text_column(column: TextColumn, *, small: bool = False, binary: bool | None = None) -> pa.Array:
    """Convert strings to `large_string`, or to `string` if ``small`` and they fit.

    With ``binary`` they become `large_binary` or `binary`; None chooses that if one of them is
    not UTF-8.
    """
    first = int(column.offsets[0])
    stop = int(column.offsets[-1])
    offsets = column.offsets - first
    data = np.ascontiguousarray(column.data[first:stop])
    text_type = pa.large_string()
    binary_type = pa.large_binary()
    offset_type: type = np.int64
    if small and data.size <= SMALL_STRINGS:
        text_type = pa.string()
        binary_type = pa.binary()
        offset_type = np.int32
    offset_buffer = pa.py_buffer(np.ascontiguousarray(offsets, offset_type))
    buffers = [None, offset_buffer, pa.py_buffer(data)]
    array = pa.Array.from_buffers(binary_type if binary else text_type, len(column), buffers)
    try:
        # Only the full validation finds what is not UTF-8.
        array.validate(full=binary is None)
    except pa.ArrowInvalid:
        return pa.Array.from_buffers(binary_type, len(column), buffers)
    return array


def code_columns(name: str, codes: NDArray[Any], pool: StringPool) -> dict[str, pa.Array]:
    """Convert codes of a pool to a dictionary of the strings that occur; code -1 becomes null.

    If one of the strings is not UTF-8, a column of bytes follows (see ``ArrowShape``). It is a
    plain `binary` column, because not every library accepts a dictionary of binary values, and a
    dictionary if the plain values might take more than ``SPELLED_OUT`` bytes.
    """
    shape = _Codes(pool)
    shape.see(np.ascontiguousarray(codes))
    return shape.arrays(name, codes)


def _is_text(values: pa.Array) -> bool:
    return bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))


def _escaped(values: pa.Array) -> tuple[pa.Array, pa.Array]:
    r"""Strings with invalid bytes as ``\xNN``, and the bytes of those that have some, else null."""
    texts: list[str] = []
    invalid: list[bytes | None] = []
    for value in values.to_pylist():
        try:
            texts.append(value.decode())
            invalid.append(None)
        except UnicodeDecodeError:
            texts.append(value.decode("utf-8", "backslashreplace"))
            invalid.append(value)
    text_type = pa.large_string() if pa.types.is_large_binary(values.type) else pa.string()
    return pa.array(texts, text_type), pa.array(invalid, values.type)
