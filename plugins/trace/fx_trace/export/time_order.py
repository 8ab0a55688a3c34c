"""Sorts rendered events by time, in bounded memory."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fx_trace.export.items import Events, joined_events
from fxframework.io.temporary import TemporaryFile
from fxframework.kit.runs import SortedRuns
from fxframework.model.clock import NS_MAX

WAITING = 1 << 18
WAITING_BYTES = 32 << 20
"""Most events, and bytes of them, that wait in memory; more go to a temporary file."""
PIECE = 1 << 12
PIECE_BYTES = 1 << 18
"""Most events, and bytes of them, read from the file at a time, except a single longer event."""


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
        if earliest <= NS_MAX:
            ready = int(np.searchsorted(events.times, earliest))
        if ready:
            self._emit(events.take(slice(ready)))
        events = events.take(slice(ready, None))
        self._waiting = events.kept() if len(events) else None
        if len(events) > WAITING or int(events.sizes.sum()) > WAITING_BYTES:
            self._texts, self._waiting = TemporaryFile(), None
            self._spill(events, self._texts)

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
        text, at = events.text(), texts.tell()
        texts.write(text.data.data)
        columns = {"time": events.times, "start": text.offsets[:-1] + at, "size": events.sizes}
        self._runs.add(columns | {f"place {n}": each for n, each in enumerate(events.places)})

    def _merge(self, texts: TemporaryFile) -> None:
        """Emit what is in the runs."""
        texts.flush()
        nbytes = texts.tell()
        mapped = mmap.mmap(texts.fileno(), nbytes, access=mmap.ACCESS_READ) if nbytes else b""
        data: NDArray[np.uint8] = np.frombuffer(mapped, np.uint8)
        for columns, order in self._runs.windows():
            times, starts, sizes, *places = columns.values()
            shown = np.array(places, np.int64).reshape(len(places), times.size)
            for piece in _pieces(Events(times, data, starts, sizes, shown).take(order)):
                self._emit(piece)
            if isinstance(mapped, mmap.mmap) and hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)  # pages that were read count as our memory


def _pieces(events: Events) -> Iterator[Events]:
    behind = np.cumsum(events.sizes)
    at = 0
    while at < len(events):
        taken = int(behind[at - 1]) if at else 0
        stop = min(at + PIECE, max(at + 1, int(np.searchsorted(behind, taken + PIECE_BYTES))))
        yield events.take(slice(at, stop))
        at = stop
