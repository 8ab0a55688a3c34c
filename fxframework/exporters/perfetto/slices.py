"""The tracks of slices, by number: those of threads, and those of asynchronous operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.perfetto.nest import OPEN
from fxframework.exporters.perfetto.order import ASYNC, Columns, parents_of
from fxframework.exporters.perfetto.tracks import KeyedTracks, process_uuids

__all__ = ["SliceTracks", "ends_of"]

I64 = NDArray[np.int64]


class SliceTracks:
    """The number of the track of each slice; asynchronous ones have tracks of their own.

    ``process`` has the small id of the process of each thread id, and of none; there are as many
    tracks of threads. The others follow, in the order of ``operations``.
    """

    def __init__(self, process: NDArray[Any], operations: KeyedTracks) -> None:
        self._process = process
        self._operations = operations
        self._open: list[Columns] = []
        """Asynchronous slices that may enclose later ones, with name and id of the outermost: by
        ascending rows, each part much shorter than the one before."""

    def of(self, columns: Columns, following: int) -> I64:
        """Tracks of slices; no later ones begin before ``following`` (ns)."""
        thread = columns["thread"].astype(np.int64)
        size = self._process.size
        tracks: I64 = np.where(thread < 0, size - 1, thread)
        chosen = np.flatnonzero(columns["kind"] == ASYNC)
        if not chosen.size:
            return tracks
        chosen = chosen[np.argsort(columns["row"][chosen], kind="stable")]
        some = {name: columns[name][chosen] for name in ("row", "parent", "ts", "dur", "name")}
        some["id"] = columns["id"][chosen].view(np.int64)
        some["end"] = ends_of(some["ts"], some["dur"])
        self._look_up(some)
        up = parents_of(some["row"], some["parent"])
        while not np.array_equal(further := up[up], up):
            up = further
        outermost = {name: some[name][up] for name in ("name", "id")}
        places = self._operations.numbers(
            process_uuids(self._process[thread[chosen]]),
            outermost["name"].astype(np.int64),
            outermost["id"],
        )
        tracks[chosen] = size + places
        self._keep({"row": some["row"], "end": some["end"], **outermost}, following)
        return tracks

    def _look_up(self, columns: Columns) -> None:
        """Give slices within open ones the name and id of these."""
        parents = columns["parent"]
        for part in self._open:
            place = np.minimum(np.searchsorted(part["row"], parents), part["row"].size - 1)
            within = np.flatnonzero(part["row"][place] == parents)
            for name in ("name", "id"):
                columns[name][within] = part[name][place[within]]

    def _keep(self, columns: Columns, following: int) -> None:
        """Keep slices that may enclose later ones; forget those that are over."""
        self._open.append(columns)
        while True:
            part = self._open.pop()
            on = part["end"] >= following
            part = {name: column[on] for name, column in part.items()}
            if not self._open or self._open[-1]["row"].size > 2 * part["row"].size:
                break
            before = self._open.pop()
            both = {name: np.concatenate((before[name], part[name])) for name in part}
            order = np.argsort(both["row"], kind="stable")
            self._open.append({name: column[order] for name, column in both.items()})
        if part["row"].size:
            self._open.append(part)


def ends_of(start: I64, dur: I64) -> I64:
    """Ends of slices; ``OPEN`` for one that was never closed."""
    found: I64 = np.where(dur < 0, OPEN, start + np.minimum(dur, OPEN - 1 - np.maximum(start, 0)))
    return found
