"""Events in order of time as JSON, and the ends of slices between them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.nesting import BEGIN, END, OTHER, OpenSlices
from fxframework.kit.in_time import Events
from fxframework.model.strings import TextColumn

__all__ = ["ALONE", "ENDLESS", "ON_THREAD", "SLICE", "Nesting"]

I64 = NDArray[np.int64]
SLICE, ALONE, ON_THREAD = BEGIN, END, OTHER
"""What an event is: a slice, an event of no thread, or one within the slices of its thread."""
ENDLESS = -(1 << 63)
"""When a slice ends that was never closed."""
BETWEEN = np.frombuffer(b",\n", np.uint8)
PIECE = 1 << 16
"""Ends written at a time."""
SPARE = 1 << 20
"""Bytes of ends that were written already, and may be kept."""


class Nesting:
    """Writes events, and before each the ends of slices of its thread that it is not in.

    ``comma``: whether something was written, behind which a comma is due.
    """

    def __init__(self, threads: int, *, comma: bool) -> None:
        self.comma = comma
        self._open = OpenSlices(threads)
        # The texts of the ends of open slices, by the number of the slice.
        self._starts = self._sizes = np.zeros(0, np.int64)
        self._texts = np.zeros(0, np.uint8)
        self._bytes_used = 0

    def texts(self, events: Events) -> NDArray[np.uint8]:
        """Return the text of events, and of the ends before them.

        The ``places`` of the events, of shape (6, events), are what an event is; its thread; the
        rows of the slice around it and of itself (of an event on a thread: of its slice); when it
        ends; and of its bytes those that are its end's.
        """
        what, *_, tails = events.places
        is_slice = what == SLICE
        self._make_room(int(tails[is_slice].sum()))
        columns = (*events.places[:-1], events.times)
        order, numbers = self._open.settle(*(np.ascontiguousarray(each) for each in columns))
        sizes = events.sizes - np.where(is_slice, tails, 0)
        ends_at = events.starts[is_slice] + sizes[is_slice]
        self._keep(numbers, TextColumn.gather(events.data, ends_at, tails[is_slice]))
        return self._joined(order, events.data, events.starts, sizes)

    def rest(self) -> Iterator[NDArray[np.uint8]]:
        """Yield the text of the ends that are still to come; those of no thread come last."""
        numbers = self._open.rest()
        nothing = np.zeros(0, np.int64)
        for first in range(0, numbers.size, PIECE):
            piece = ~numbers[first : first + PIECE]
            yield self._joined(piece, np.zeros(0, np.uint8), nothing, nothing)

    def _keep(self, numbers: I64, ends: TextColumn) -> None:
        """Keep the ends of slices that begin."""
        most = int(numbers.max(initial=-1)) + 1
        if most > self._starts.size:
            more = most + most // 2 - self._starts.size
            self._starts = np.pad(self._starts, (0, more))
            self._sizes = np.pad(self._sizes, (0, more))
        self._texts[self._bytes_used :][: ends.data.size] = ends.data
        self._starts[numbers] = self._bytes_used + ends.offsets[:-1]
        self._sizes[numbers] = np.diff(ends.offsets)
        self._bytes_used += ends.data.size

    def _make_room(self, nbytes: int) -> None:
        """Make room for more bytes of ends: leave out those that were written."""
        if self._bytes_used + nbytes <= self._texts.size:
            return
        numbers = self._open.rest()
        kept = TextColumn.gather(self._texts, self._starts[numbers], self._sizes[numbers])
        self._texts = np.empty(2 * (kept.data.size + nbytes) + SPARE, np.uint8)
        self._texts[: kept.data.size] = kept.data
        self._starts[numbers] = kept.offsets[:-1]
        self._bytes_used = kept.data.size

    def _joined(
        self, order: I64, data: NDArray[np.uint8], starts: I64, sizes: I64
    ) -> NDArray[np.uint8]:
        """Return the texts of events and ends (``~number``), with what is between them."""
        ends = np.flatnonzero(order < 0)
        numbers = ~order[ends]
        texts_of_ends = TextColumn.gather(self._texts, self._starts[numbers], self._sizes[numbers])
        begins = np.flatnonzero(order >= 0)
        # Of each stretch, and what is between it and the one before: where it starts, its size.
        stretches = np.zeros((order.size, 2, 2), np.int64)
        stretches[:, 0] = data.size + texts_of_ends.data.size, BETWEEN.size
        stretches[begins, 1] = np.stack((starts[order[begins]], sizes[order[begins]]), 1)
        stretches[ends, 1, 0] = data.size + texts_of_ends.offsets[:-1]
        stretches[ends, 1, 1] = self._sizes[numbers]
        stretches = stretches[stretches[:, 1, 1] > 0]  # some slices have no end
        if stretches.size and not self.comma:
            stretches[0, 0, 1] = 0
            self.comma = True
        source = np.concatenate((data, texts_of_ends.data, BETWEEN))
        first, size = stretches.reshape(-1, 2).T
        return TextColumn.gather(source, first, size).data
