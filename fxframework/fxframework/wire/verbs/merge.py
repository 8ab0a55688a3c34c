"""Merging: the records of several captures in one file, in the order of time, as bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.errors import UsageError
from fxframework.kernels.sorting import stable_order
from fxframework.model.capture import Capture, Window
from fxframework.model.strings import TextColumn
from fxframework.wire.capture import DeclaredCapture
from fxframework.wire.verbs.copies import CopyReader, is_among, offsets_of

if TYPE_CHECKING:
    from fxframework.io.sink import Sink
    from fxframework.wire.format import Format

__all__ = ["MergedPart", "Merger", "merged"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
PIECE = 1 << 20
"""Bytes of records that are put together at a time."""
EARLIEST = -(1 << 63)


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


# --- Declared formats -----------------------------------------------------------------------------


class Merger:
    """Merges captures of a declared format (``fxframework.registry.ExportSession``).

    Their headers must be the same, which is written once. A record without a time keeps its place
    behind the one before it.
    """

    def __init__(self, format: Format, sink: Sink) -> None:
        if not format.merges:
            raise UsageError(
                f"several {format.name} captures cannot be merged into one file: its records "
                + ("depend on those before them" if format.timed_tables else "have no times"),
                remedy="convert each of them, or name an exporter with -t, such as csv",
            )
        self._format = format
        self._sink = sink
        self._header: bytes | None = None
        self._parts: list[MergedPart] = []
        self._lost = 0

    def write(self, capture: Capture) -> None:
        """Add the records of a capture, whose bytes ``close`` copies."""
        whole = capture.whole if isinstance(capture, Window) else capture
        if not isinstance(whole, DeclaredCapture) or whole.format != self._format.name:
            raise UsageError(
                f"{whole.format} captures cannot be written as {self._format.name}",
                path=whole.name,
            )
        limits = whole.request.limits
        reader = CopyReader(self._format, whole.source, limits, with_unknown=True)
        blocks = list(reader.copies())
        offsets, sizes = (
            np.concatenate([np.zeros(0, np.int64), *(getattr(block, name) for block in blocks)])
            for name in ("offsets", "sizes")
        )
        self._lost += sum(len(block.losses) for block in blocks)
        self._take_header(reader.header, whole.name)
        keep = offsets >= len(reader.header)
        if isinstance(capture, Window):
            keep &= ~is_among(offsets, np.setdiff1d(offsets_of(whole), offsets_of(capture)))
        offsets, sizes = offsets[keep], sizes[keep]
        times = self._times(whole, offsets)
        self._parts.append(MergedPart(whole.source.data, offsets, sizes, times))

    def _take_header(self, header: bytes, name: str) -> None:
        """Take what a file begins with. Raises UsageError if it is not that of the others."""
        if self._header not in (None, header):
            raise UsageError(
                f"{self._format.name} captures with different headers cannot be merged", path=name
            )
        self._header = header

    def _times(self, capture: DeclaredCapture, offsets: I64) -> I64:
        """Return the time of each record: that of its first row, or of the record before it."""
        nothing = np.zeros(0, np.int64)
        batches = [
            (batch.array("offset"), batch.array("ts"))
            for name in self._format.timed_tables
            for batch in capture.batches(name)
        ]
        places, times = (
            np.concatenate([nothing, *column]) for column in zip(*batches, strict=True)
        )
        order = np.lexsort((times, places))
        places, times = places[order], times[order]
        row = np.searchsorted(places, offsets)
        has_time = is_among(offsets, places)
        before = np.maximum.accumulate(np.where(has_time, np.arange(offsets.size), -1))
        known = np.append(times, EARLIEST)[np.minimum(row, times.size)]
        return np.where(before < 0, EARLIEST, known[before])

    def close(self) -> Mapping[str, int]:
        """Write the records; return the number of stretches that are left out."""
        self._sink.write(self._header or (self._format.opening if self._parts else b""))
        for piece in merged(self._parts):
            self._sink.write(piece)
        return {"damaged stretches": self._lost} if self._lost else {}
