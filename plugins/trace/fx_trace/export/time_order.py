"""Sorts rendered events by time, in bounded memory."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from fx_trace.export.items import Events, joined_events
from fxframework.io.temporary import TemporaryFile
from fxframework.model.clock import NS_MAX

I64 = NDArray[np.int64]
WAITING = 1 << 18
WAITING_BYTES = 32 << 20
"""Most events, and bytes of them, that wait in memory; more go to a temporary file."""
PIECE = 1 << 12
PIECE_BYTES = 1 << 18
"""Most events of a run, and bytes of them, read at a time, except a single longer event."""


class _Piece(NamedTuple):
    """A piece of a run in the file."""

    at: int
    events: int
    nbytes: int


class InTime:
    """Sorts rendered events by time, keeping the order of arrival for equal times.

    Events wait in memory until nothing earlier can come. Too many of them go to a temporary file as
    sorted runs, which are merged at the end.
    """

    def __init__(self, emit: Callable[[Events], None]) -> None:
        self._emit = emit
        self._waiting: Events | None = None
        self._runs: list[list[_Piece]] = []
        self._file: TemporaryFile | None = None
        self._columns = 2
        """Columns of numbers in a piece: times, sizes and places."""

    def add(self, events: Events, earliest: int) -> None:
        """Add events, and emit those before ``earliest``.

        No later call may add an event before ``earliest``.
        """
        if self._waiting is not None:
            events = joined_events([self._waiting, events])
        events = _sorted(events)
        if not self._runs:
            ready = len(events)
            if earliest <= NS_MAX:
                ready = int(np.searchsorted(events.times, earliest))
            if ready:
                self._emit(events.take(slice(ready)))
            events = events.take(slice(ready, None))
        self._waiting = events.kept() if len(events) else None
        if len(events) > WAITING or int(events.sizes.sum()) > WAITING_BYTES:
            self._spill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._finish()
        if self._file is not None:
            self._file.close()

    def _spill(self) -> None:
        """Write the waiting events to the file."""
        events, self._waiting = self._waiting, None
        assert events is not None  # noqa: S101 (there are too many of them)
        self._columns = 2 + len(events.places)
        if self._file is None:
            self._file = TemporaryFile()
        pieces = []
        for part in _parts(events):
            at = self._file.tell()
            text = part.text()
            for column in (part.times, part.sizes, *part.places):
                self._file.write(np.ascontiguousarray(column).data)
            self._file.write(text.data.data)
            pieces.append(_Piece(at, len(part), int(text.data.size)))
        self._runs.append(pieces)

    def _read(self, piece: _Piece) -> Events:
        assert self._file is not None  # noqa: S101 (there is a run)
        columns = self._columns
        self._file.seek(piece.at)
        numbers = np.frombuffer(self._file.read(8 * columns * piece.events), np.int64)
        times, sizes, *places = numbers.reshape(columns, piece.events)
        data = np.frombuffer(self._file.read(piece.nbytes), np.uint8)
        shown = np.array(places, np.int64).reshape(columns - 2, piece.events)
        return Events(times, data, np.cumsum(sizes) - sizes, sizes, shown)

    def _finish(self) -> None:
        """Merge the runs and the waiting events."""
        runs: list[Iterator[Events]] = [map(self._read, pieces) for pieces in self._runs]
        if self._waiting is not None:
            runs.append(_parts(self._waiting))
        for events in _merged(runs):
            self._emit(events)


def _merged(runs: Iterable[Iterator[Events]]) -> Iterator[Events]:
    """Yield the events of sorted runs in order of time; at equal times earlier runs come first."""
    live = [(piece, run) for run in runs for piece in itertools.islice(run, 1)]
    while live:
        # The events after the last one of a piece are not known yet.
        bound = min(int(piece.times[-1]) for piece, _ in live)
        taken = [int(np.searchsorted(piece.times, bound)) for piece, _ in live]
        if not any(taken):
            first = next(place for place, (piece, _) in enumerate(live) if piece.times[0] == bound)
            taken[first] = int(np.searchsorted(live[first][0].times, bound, side="right"))
        ready = [piece.take(slice(n)) for (piece, _), n in zip(live, taken, strict=True) if n]
        yield _sorted(joined_events(ready))
        left = [
            (piece.take(slice(n, None)), run) for (piece, run), n in zip(live, taken, strict=True)
        ]
        live = [
            (piece, run)
            for rest, run in left
            for piece in ([rest] if len(rest) else itertools.islice(run, 1))
        ]


def _sorted(events: Events) -> Events:
    if not (events.times[1:] < events.times[:-1]).any():
        return events
    return events.take(np.argsort(events.times, kind="stable"))


def _parts(events: Events) -> Iterator[Events]:
    """Yield events in pieces."""
    behind = np.cumsum(events.sizes)
    at = 0
    while at < len(events):
        taken = int(behind[at - 1]) if at else 0
        stop = min(at + PIECE, max(at + 1, int(np.searchsorted(behind, taken + PIECE_BYTES))))
        yield events.take(slice(at, stop))
        at = stop
