"""Merging: the records of several captures in one file, in the order of time, as bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs
import numpy as np

from fxframework.errors import UsageError
from fxframework.kernels.arrays import I64, U8
from fxframework.kernels.sorting import stable_order
from fxframework.model.capture import Capture, Window, under_views
from fxframework.model.strings import TextColumn
from fxframework.wire.capture import DeclaredCapture
from fxframework.wire.verbs.copies import CopyReader, is_among, offsets_of

if TYPE_CHECKING:
    from fxframework.io.sink import Sink
    from fxframework.wire.format import Format

PIECE = 1 << 20
"""Bytes of records that are put together at a time."""
EARLIEST = -(1 << 63)
"""The time of what comes before all other records."""


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
    order = None
    if len(parts) > 1:  # a single part keeps its order
        order = stable_order(times)
    if order is None:
        order = np.arange(times.size)
    beside = {}
    for name in parts[0].beside:
        beside[name] = np.concatenate([part.beside[name] for part in parts])
    ends = np.cumsum(sizes[order])
    piece_ends = np.arange(PIECE, ends.max(initial=0), PIECE)
    for rows in np.split(order, np.searchsorted(ends, piece_ends)):
        part_of_row = np.searchsorted(bounds, rows, "right") - 1
        records = gathered(parts, part_of_row, rows - bounds[part_of_row])
        columns = {name: column[rows] for name, column in beside.items()}
        change(records, columns)
        yield records.data.data


def gathered(parts: Sequence[MergedPart], part_of_row: I64, rows: I64) -> TextColumn:
    """Return records, each a row of a part, in this order."""
    # First the bytes of each part, one behind the other; then each record is taken from there.
    by_part = np.argsort(part_of_row, kind="stable")
    part_begins = np.searchsorted(part_of_row[by_part], np.arange(1, len(parts)))
    sizes = np.empty(rows.size, np.int64)
    bytes_of_parts = []
    for part, places_in_order in zip(parts, np.split(by_part, part_begins), strict=True):
        own_rows = rows[places_in_order]
        own_sizes = part.sizes[own_rows]
        sizes[places_in_order] = own_sizes
        own_records = TextColumn.gather(part.data, part.starts[own_rows], own_sizes)
        bytes_of_parts.append(own_records.data)
    sizes_by_part = sizes[by_part]
    starts = np.empty(rows.size, np.int64)
    starts[by_part] = np.cumsum(sizes_by_part) - sizes_by_part
    return TextColumn.gather(np.concatenate(bytes_of_parts), starts, sizes)


class MergeSession:
    """Merges captures into one file in the order of time (``fxframework.registry.ExportSession``).

    A format says what is special about it in four places:

    * ``opening`` is what the file begins with.
    * ``part`` gives the records of a capture with their times. What cannot be written is left out
      there, and counted in ``lost``. A record that others depend on gets the time EARLIEST, and so
      comes before them.
    * ``settle`` sees all parts before the first byte is written. Where captures mean different
      things by the same number, it gives one of them another, in a column ``beside``.
    * ``change`` puts such numbers into the bytes of records.
    """

    opening = b""
    """What the file begins with, known once all captures are added."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.parts: list[MergedPart] = []
        self.lost: Counter[str] = Counter()
        """What is not written, by name."""

    def part(self, capture: Capture) -> MergedPart:
        """Return the records of a capture, or of a part of one (``Window``)."""
        raise NotImplementedError

    def settle(self) -> None:
        """Make the columns ``beside`` of all parts agree."""

    def change(self, records: TextColumn, beside: Mapping[str, I64]) -> None:
        """Change the bytes of some records; ``beside`` has further columns of theirs."""

    def write(self, capture: Capture) -> None:
        """Add the records of a capture, whose bytes ``close`` copies."""
        self.parts.append(self.part(capture))

    def close(self) -> Mapping[str, int]:
        """Write the records; return the counts of what is not written."""
        self.settle()
        self.sink.write(self.opening)
        for piece in merged(self.parts, self.change):
            self.sink.write(piece)
        return +self.lost


# --- Declared formats -----------------------------------------------------------------------------


class Merger(MergeSession):
    """Merges captures of a declared format.

    Their headers must be the same, which is written once. A record without a time keeps its place
    behind the one before it.
    """

    def __init__(self, format: Format, sink: Sink) -> None:
        if not format.merges:
            reason = "have no times"
            if format.timed_tables:
                reason = "depend on those before them"
            raise UsageError(
                f"several {format.name} captures cannot be merged into one file: its records "
                + reason,
                remedy="convert each of them, or name an exporter with -t, such as csv",
            )
        super().__init__(sink)
        self._format = format
        self._header: bytes | None = None

    def part(self, capture: Capture) -> MergedPart:
        """Return the records of a capture."""
        whole = under_views(capture)
        if not isinstance(whole, DeclaredCapture) or whole.format != self._format.name:
            raise UsageError(
                f"{whole.format} captures cannot be written as {self._format.name}",
                path=whole.name,
            )
        limits = whole.request.limits
        reader = CopyReader(self._format, whole.source, limits, with_unknown=True)
        blocks = list(reader.copies())
        nothing = np.zeros(0, np.int64)
        offsets = np.concatenate([nothing, *(block.offsets for block in blocks)])
        sizes = np.concatenate([nothing, *(block.sizes for block in blocks)])
        self.lost["damaged stretches"] += sum(len(block.losses) for block in blocks)
        self._take_header(reader.header, whole.name)
        is_written = offsets >= len(reader.header)
        if isinstance(capture, Window):
            left_out = np.setdiff1d(
                offsets_of(whole, self._format), offsets_of(capture, self._format)
            )
            is_written &= ~is_among(offsets, left_out)
        offsets = offsets[is_written]
        sizes = sizes[is_written]
        times = self._times(whole, offsets)
        return MergedPart(whole.source.data, offsets, sizes, times)

    def _take_header(self, header: bytes, name: str) -> None:
        """Take what a file begins with. Raises UsageError if it is not that of the others."""
        if self._header not in (None, header):
            raise UsageError(
                f"{self._format.name} captures with different headers cannot be merged", path=name
            )
        self._header = header
        self.opening = header or self._format.opening

    def _times(self, capture: DeclaredCapture, offsets: I64) -> I64:
        """Return the time of each record: that of its first row, or of the record before it."""
        offset_parts = [np.zeros(0, np.int64)]
        time_parts = [np.zeros(0, np.int64)]
        for name in self._format.timed_tables:
            for batch in capture.batches(name):
                offset_parts.append(batch.array("offset"))
                time_parts.append(batch.array("ts"))
        row_offsets = np.concatenate(offset_parts)
        row_times = np.concatenate(time_parts)
        order = np.lexsort((row_times, row_offsets))  # the earliest row of each record first
        row_offsets = row_offsets[order]
        row_times = np.append(row_times[order], EARLIEST)
        has_time = is_among(offsets, row_offsets)
        # 5 - - 3 -: the records that times are taken from are 0 0 0 3 3; before a time, it is -1.
        timed_records = np.where(has_time, np.arange(offsets.size), -1)
        source = np.maximum.accumulate(timed_records)
        first_row = np.searchsorted(row_offsets, offsets[source])
        return np.where(source < 0, EARLIEST, row_times[first_row])
