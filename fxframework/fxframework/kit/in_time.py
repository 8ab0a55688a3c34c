"""Events as texts, sorted by time in bounded memory."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from typing import Self

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.io.temporary import TemporaryFile
from fxframework.kernels.arrays import I64, U8
from fxframework.kit.row_texts import stretches
from fxframework.kit.runs import SortedRuns
from fxframework.model.clock import NS_MAX
from fxframework.model.strings import TextColumn

MOST_WAITING = 1 << 18
"""The most events that wait in memory; if there are more, they go to a temporary file."""
MOST_WAITING_BYTES = 32 << 20
"""The most bytes of events that wait in memory."""
PIECE = 1 << 12
"""The most events that are read from the file at a time."""
PIECE_BYTES = 1 << 18
"""The most bytes of events that are read at a time, except for a single longer event."""


@attrs.frozen
class Events:
    """Events as texts: the text of each is ``sizes`` bytes of ``data`` from ``starts`` on.

    ``places`` are further columns of an exporter, of shape (columns, events); all others are of
    shape (events,). ``times`` are in nanoseconds.
    """

    times: I64
    data: U8
    starts: I64
    sizes: I64
    places: I64

    def __len__(self) -> int:
        return int(self.times.size)

    def take(self, which: slice | I64) -> Events:
        """Return some of the events, which share ``data``."""
        return attrs.evolve(
            self,
            times=self.times[which],
            starts=self.starts[which],
            sizes=self.sizes[which],
            places=self.places[:, which],
        )

    def text(self) -> TextColumn:
        """Return the texts, one after another."""
        return TextColumn.gather(self.data, self.starts, self.sizes)

    def kept(self) -> Events:
        """Return a copy with the bytes of these texts only, so that ``data`` can be freed."""
        text = self.text()
        return attrs.evolve(self, data=text.data, starts=text.offsets[:-1])


def joined_events(parts: Sequence[Events]) -> Events:
    """Return the events of several parts, one part after another."""
    starts = []
    data_before = 0
    for part in parts:
        starts.append(part.starts + data_before)
        data_before += part.data.size
    return Events(
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.data for part in parts]),
        np.concatenate(starts),
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.places for part in parts], axis=1),
    )


class InTime:
    """Sorts rendered events by time, keeping the order of arrival for equal times.

    Events wait in memory until nothing earlier can come. If too many wait, they and all that follow
    are sorted in runs, and their texts are in a temporary file.
    """

    def __init__(self, emit: Callable[[Events], None]) -> None:
        self._emit = emit
        self._waiting: Events | None = None
        self._runs = SortedRuns()
        self._texts: TemporaryFile | None = None

    def add(self, events: Events, earliest: int) -> None:
        """Add events, and emit those before ``earliest``.

        No later call may add an event before ``earliest``.
        """
        if self._texts is not None:
            self._spill(events, self._texts)
            return
        if self._waiting is not None:
            events = joined_events([self._waiting, events])
        if (events.times[1:] < events.times[:-1]).any():
            events = events.take(np.argsort(events.times, kind="stable"))
        ready = len(events)
        if earliest <= NS_MAX:  # a larger number says that nothing follows
            ready = int(np.searchsorted(events.times, earliest))
        if ready:
            self._emit(events.take(slice(ready)))
        waiting = events.take(slice(ready, None))
        if len(waiting) > MOST_WAITING or int(waiting.sizes.sum()) > MOST_WAITING_BYTES:
            self._texts = TemporaryFile()
            self._waiting = None
            self._spill(waiting, self._texts)
        else:
            self._waiting = waiting.kept() if len(waiting) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None and self._waiting is not None:
            self._emit(self._waiting)
        if self._texts is not None:
            with self._texts as texts:
                if kind is None:
                    self._merge(texts)

    def _spill(self, events: Events, texts: TemporaryFile) -> None:
        """Write the texts to the file, and keep the rest of the events in runs."""
        text = events.text()
        file_position = texts.tell()
        texts.write(text.data.data)
        columns = {
            "time": events.times,
            "start": text.offsets[:-1] + file_position,
            "size": events.sizes,
        }
        for number, column in enumerate(events.places):
            columns[f"place {number}"] = column
        self._runs.add(columns)

    def _merge(self, texts: TemporaryFile) -> None:
        """Emit the events in the runs, in order."""
        texts.flush()
        nbytes = texts.tell()
        mapping = None
        data: NDArray[np.uint8] = np.zeros(0, np.uint8)
        if nbytes:
            mapping = mmap.mmap(texts.fileno(), nbytes, access=mmap.ACCESS_READ)
            data = np.frombuffer(mapping, np.uint8)
        for columns, order in self._runs.windows():
            times, starts, sizes, *place_columns = columns.values()
            places = np.array(place_columns, np.int64)
            places = places.reshape(len(place_columns), times.size)
            events = Events(times, data, starts, sizes, places).take(order)
            for piece in stretches(events.sizes, PIECE_BYTES, PIECE):
                self._emit(events.take(piece))
            if mapping is not None and hasattr(mapping, "madvise"):
                mapping.madvise(mmap.MADV_DONTNEED)  # pages that were read count as our memory
