"""Merging: the records of several captures in one file, in the order of time, as bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.sorting import stable_order
from fxframework.model.strings import TextColumn

__all__ = ["MergedPart", "merged"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
PIECE = 1 << 20
"""Bytes of records that are put together at a time."""


@attrs.define(eq=False)
class MergedPart:
    """The records of a capture, as columns of shape (records,).

    Each is ``sizes`` bytes of ``data`` from ``starts`` on. ``times`` are those by which they are
    put in order: int64 of a unit that all captures share.
    """

    data: U8
    starts: I64
    sizes: I64
    times: I64
    beside: Mapping[str, I64] = attrs.field(factory=dict)
    """Further columns, for ``change``."""


def merged(
    parts: Sequence[MergedPart],
    change: Callable[[TextColumn, Mapping[str, I64]], None] = lambda _records, _beside: None,
) -> Iterator[memoryview]:
    """Yield the records of all parts in the order of time, thousands at a time.

    Those of one time are in the order of the parts; those of a single part keep their order. The
    bytes of some records, and the columns ``beside`` of these, are given to ``change``, which may
    change the bytes.
    """
    if not parts:
        return
    times = np.concatenate([part.times for part in parts])
    sizes = np.concatenate([part.sizes for part in parts])
    bounds = np.cumsum([0, *(part.times.size for part in parts)])
    order = stable_order(times) if len(parts) > 1 else None
    if order is None:
        order = np.arange(times.size)
    ends = np.cumsum(sizes[order])
    cuts = np.arange(PIECE, int(ends[-1]) if ends.size else 0, PIECE)
    for rows in np.split(order, np.searchsorted(ends, cuts)):
        of_part = np.searchsorted(bounds, rows, "right") - 1
        records = gathered(parts, of_part, rows - bounds[of_part])
        names = parts[0].beside
        beside = {
            name: np.concatenate([part.beside[name] for part in parts])[rows] for name in names
        }
        change(records, beside)
        yield records.data.data


def gathered(parts: Sequence[MergedPart], of_part: I64, rows: I64) -> TextColumn:
    """Return records, each a row of a part, in this order."""
    grouped = np.argsort(of_part, kind="stable")
    groups = np.split(grouped, np.searchsorted(of_part[grouped], np.arange(1, len(parts))))
    sizes = np.empty(rows.size, np.int64)
    pieces = []
    for part, group in zip(parts, groups, strict=True):
        own = rows[group]
        sizes[group] = part.sizes[own]
        pieces.append(TextColumn.gather(part.data, part.starts[own], part.sizes[own]).data)
    places = np.empty(rows.size, np.int64)
    places[grouped] = np.cumsum(sizes[grouped]) - sizes[grouped]
    return TextColumn.gather(np.concatenate(pieces), places, sizes)
