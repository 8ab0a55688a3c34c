"""JSON columns: values of record JSON as arrays, and arrays as bytes at their places.

What a column does not take is marked as odd, a mask of shape (objects,).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np

from fxframework.kernels.arrays import I64, U8, Bools
from fxframework.wire.cursor import RefusalError
from fxframework.wire.many import SHIFTS

Numbers = int | I64
"""A number of each object, or one for all of them."""
I64_MAX = (1 << 63) - 1


# --- Values to columns ---------------------------------------------------------------------------


@attrs.frozen(eq=False)
class Column:
    """Bytes of each object of a group, one after another."""

    lengths: I64
    """Bytes of each object, shape (objects,)."""
    data: U8
    counts: I64
    """What a length or a count in the record says of them, shape (objects,)."""

    def only(self, rows: Bools) -> Column:
        """Return the column without the bytes of the other rows."""
        data = self.data[np.repeat(rows, self.lengths)]
        return Column(np.where(rows, self.lengths, 0), data, self.counts)


def octets(values: Sequence[bytes], counts: I64 | None = None) -> Column:
    """Return bytes as a column; ``counts`` are their lengths, unless other ones are given."""
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    data = np.frombuffer(b"".join(values), np.uint8)
    if counts is None:
        counts = lengths
    return Column(lengths, data, counts)


def usual(values: Sequence[Any], kind: type, instead: Any, odd: Bools) -> Sequence[Any]:
    """Return the values, ``instead`` in place of those not of this very type: these are odd."""
    if set(map(type, values)) <= {kind}:
        return values
    odd |= np.array([type(value) is not kind for value in values])
    return [value if type(value) is kind else instead for value in values]


def integers(values: Sequence[Any], least: int, most: int, odd: Bools) -> I64:
    """Return integers of a range; those from 2^63 on wrap. Others are marked in ``odd``."""
    values = usual(values, int, least, odd)
    if values and not least <= min(values) <= max(values) <= most:
        odd |= np.array([not least <= value <= most for value in values])
        values = [value if least <= value <= most else least for value in values]
    dtype = np.uint64 if most > I64_MAX else np.int64
    return np.array(values, dtype).view(np.int64)


def texts(values: Sequence[Any], odd: Bools) -> Column:
    """Return strings as UTF-8. Other values are marked in ``odd``."""
    values = usual(values, str, "", odd)
    joined = "".join(values)
    if not joined.isascii():
        return octets([value.encode() for value in values])
    lengths = np.fromiter(map(len, values), np.int64, len(values))
    return Column(lengths, np.frombuffer(joined.encode(), np.uint8), lengths)


def converted(values: Sequence[Any], convert: Callable[[Any], bytes], odd: Bools) -> list[bytes]:
    """Return what ``convert`` makes of each value. Those that it refuses are marked in ``odd``."""
    contents = []
    for row, value in enumerate(values):
        try:
            contents.append(convert(value))
        except (RefusalError, TypeError, ValueError):
            odd[row] = True
            contents.append(b"")
    return contents


# --- Columns to bytes ----------------------------------------------------------------------------


def store(out: U8, places: I64, numbers: Numbers, nbytes: int, *, big: bool) -> None:
    """Write the low ``nbytes`` bytes of numbers to places of ``out``."""
    order = ">" if big else "<"
    if not places.size:
        return
    if nbytes in SHIFTS:
        kind = f"{order}i{nbytes}"
        step = 1
        if not (int(np.bitwise_or.reduce(places)) | out.ctypes.data) & nbytes - 1:
            step = nbytes  # a third of the time
            places = places >> SHIFTS[nbytes]
        # Numbers begin at any byte: this view has one at each, overlapping with its neighbours.
        view = np.ndarray(((out.size - nbytes) // step + 1,), kind, out.data, 0, (step,))
        # An array, unlike a Python number, is cut to the bits of the view.
        view[places] = np.asarray(numbers, np.int64)
        return
    words = np.asarray(numbers, np.int64).astype(f"{order}i8").reshape(-1, 1).view(np.uint8)
    low_bytes = words[:, 8 - nbytes :] if big else words[:, :nbytes]
    out[places[:, None] + np.arange(nbytes)] = low_bytes


def scatter(out: U8, places: I64, column: Column) -> None:
    """Write the bytes of a column to places of ``out``."""
    # Byte 5 of the data, in a text that starts at byte 3 of it, goes to the text's place - 3 + 5.
    starts = np.cumsum(column.lengths) - column.lengths
    targets = np.repeat(places - starts, column.lengths)
    targets += np.arange(column.data.size)
    out[targets] = column.data
