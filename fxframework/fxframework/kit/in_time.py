"""Events as texts, sorted by time in bounded memory."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from typing import Self

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.io.temporary import TemporaryFile
from fxframework.kit.row_texts import stretches
from fxframework.kit.runs import SortedRuns
from fxframework.model.clock import NS_MAX
from fxframework.model.strings import TextColumn

__all__ = ["Events", "InTime", "joined_events"]

I64 = NDArray[np.int64]
U8 = NDArray[np.uint8]
WAITING = 1 << 18
WAITING_BYTES = 32 << 20
"""Most events, and bytes of them, that wait in memory; more go to a temporary file."""
PIECE = 1 << 12
PIECE_BYTES = 1 << 18
"""Most events, and bytes of them, read from the file at a time, except a single longer event."""


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
        columns = (self.times, self.starts, self.sizes)
        times, starts, sizes = (column[which] for column in columns)
        return Events(times, self.data, starts, sizes, self.places[:, which])

    def text(self) -> TextColumn:
        """Return the texts, one after another."""
        return TextColumn.gather(self.data, self.starts, self.sizes)

    def kept(self) -> Events:
        """Return a copy that holds only the bytes of its own texts."""
        text = self.text()
        return attrs.evolve(self, data=text.data, starts=text.offsets[:-1])


def joined_events(parts: Sequence[Events]) -> Events:
    """Return the events of several parts, one part after another."""
    bases = np.cumsum([0, *(part.data.size for part in parts[:-1])]).tolist()
    return Events(
        np.concatenate([part.times for part in parts]),
        np.concatenate([part.data for part in parts]),
        np.concatenate([part.starts + base for part, base in zip(parts, bases, strict=True)]),
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
            events = Events(times, data, starts, sizes, shown).take(order)
            for piece in stretches(events.sizes, PIECE_BYTES, PIECE):
                self._emit(events.take(piece))
            if isinstance(mapped, mmap.mmap) and hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)  # pages that were read count as our memory
