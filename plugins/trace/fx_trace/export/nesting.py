"""Events in order of time as JSON, and the ends of slices between them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fxframework.kernels.arrays import I64
from fxframework.kernels.nesting import BEGIN, END, OTHER, OpenSlices
from fxframework.kit.in_time import Events
from fxframework.model.strings import TextColumn

SLICE = BEGIN
ALONE = END
ON_THREAD = OTHER
"""What an event is: a slice, an event of no thread, or one within the slices of its thread."""
WHAT, THREAD, PARENT, ROW, UNTIL, TAIL = range(6)
"""Columns of ``Events.places``: what an event is; its thread; the row of the slice around it; its
own row (of an event on a thread, that of the slice it is in); when it ends; and how many of its
last bytes are the text of its end."""
PLACES = 6
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
        self._starts = np.zeros(0, np.int64)
        self._sizes = np.zeros(0, np.int64)
        self._texts = np.zeros(0, np.uint8)
        self._bytes_used = 0

    def texts(self, events: Events) -> NDArray[np.uint8]:
        """Return the text of events, and of the ends before them.

        The ``places`` of the events are the columns PLACES, of shape (6, events).
        """
        places = np.ascontiguousarray(events.places)
        is_slice = places[WHAT] == SLICE
        tails = np.where(is_slice, places[TAIL], 0)
        self._make_room(int(tails.sum()))
        times = np.ascontiguousarray(events.times)
        order, numbers = self._open.settle(
            places[WHAT], places[THREAD], places[PARENT], places[ROW], places[UNTIL], times
        )
        sizes = events.sizes - tails
        end_starts = events.starts[is_slice] + sizes[is_slice]
        end_texts = TextColumn.gather(events.data, end_starts, tails[is_slice])
        self._keep(numbers, end_texts)
        return self._joined(order, events.data, events.starts, sizes)

    def rest(self) -> Iterator[NDArray[np.uint8]]:
        """Yield the text of the ends that are still to come; those of no thread come last."""
        numbers = self._open.rest()
        no_rows = np.zeros(0, np.int64)
        for first in range(0, numbers.size, PIECE):
            order = ~numbers[first : first + PIECE]
            yield self._joined(order, np.zeros(0, np.uint8), no_rows, no_rows)

    def _keep(self, numbers: I64, ends: TextColumn) -> None:
        """Keep the ends of slices that begin."""
        count = int(numbers.max(initial=-1)) + 1
        if count > self._starts.size:
            spare_rows = count + count // 2 - self._starts.size
            self._starts = np.pad(self._starts, (0, spare_rows))
            self._sizes = np.pad(self._sizes, (0, spare_rows))
        self._texts[self._bytes_used :][: ends.data.size] = ends.data
        self._starts[numbers] = self._bytes_used + ends.offsets[:-1]
        self._sizes[numbers] = np.diff(ends.offsets)
        self._bytes_used += ends.data.size

    def _make_room(self, nbytes: int) -> None:
        """Make room for more bytes of ends: leave out those that were written."""
        if self._bytes_used + nbytes <= self._texts.size:
            return
        numbers = self._open.rest()
        starts = self._starts[numbers]
        ends = TextColumn.gather(self._texts, starts, self._sizes[numbers])
        room = 2 * (ends.data.size + nbytes) + SPARE
        self._texts = np.empty(room, np.uint8)
        self._texts[: ends.data.size] = ends.data
        self._starts[numbers] = ends.offsets[:-1]
        self._bytes_used = ends.data.size

    def _joined(
        self, order: I64, data: NDArray[np.uint8], starts: I64, sizes: I64
    ) -> NDArray[np.uint8]:
        """Return the texts of events and ends (``~number``), with what is between them."""
        ends = np.flatnonzero(order < 0)
        numbers = ~order[ends]
        starts_of_ends = self._starts[numbers]
        texts_of_ends = TextColumn.gather(self._texts, starts_of_ends, self._sizes[numbers])
        begins = np.flatnonzero(order >= 0)
        # Two stretches of ``source`` for each event or end, first the comma before it: where a
        # stretch starts, and its size.
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
