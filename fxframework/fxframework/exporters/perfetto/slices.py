"""Numbers the tracks of slices: those of threads and of asynchronous operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.perfetto.nest import OPEN
from fxframework.exporters.perfetto.order import Columns, parents_of
from fxframework.exporters.perfetto.tracks import KeyedTracks, process_uuids
from fxframework.model.schema import ASYNC

__all__ = ["SliceTracks", "ends_of"]

I64 = NDArray[np.int64]


class SliceTracks:
    """Finds the track number of each slice; asynchronous slices have separate tracks.

    ``process`` has the small process id by thread id, the last for no thread; the first tracks
    correspond to its elements. The tracks of ``operations`` follow.
    """

    def __init__(self, process: NDArray[Any], operations: KeyedTracks) -> None:
        self._process = process
        self._operations = operations
        self._open: list[Columns] = []
        """Asynchronous slices that may enclose later ones, with name and id of the outermost
        slice; sorted by row, each part much shorter than the one before."""

    def of(self, columns: Columns, following: int) -> I64:
        """Return the tracks of slices; later slices do not begin before ``following`` (ns)."""
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
        """Set name and id of slices inside open ones to those of the outermost slice."""
        parents = columns["parent"]
        for part in self._open:
            place = np.minimum(np.searchsorted(part["row"], parents), part["row"].size - 1)
            within = np.flatnonzero(part["row"][place] == parents)
            for name in ("name", "id"):
                columns[name][within] = part[name][place[within]]

    def _keep(self, columns: Columns, following: int) -> None:
        """Keep slices that may enclose later ones; forget finished ones."""
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
    """Return the ends of slices; ``OPEN`` for a slice that was never closed."""
    found: I64 = np.where(dur < 0, OPEN, start + np.minimum(dur, OPEN - 1 - np.maximum(start, 0)))
    return found
