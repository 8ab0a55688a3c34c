"""Numbers the tracks of slices: those of threads and of asynchronous operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.columns import joined, picked
from fxframework.exporters.perfetto.order import Columns, parents_of
from fxframework.exporters.perfetto.tracks import KeyedTracks, process_uuids
from fxframework.kernels.arrays import I64
from fxframework.kernels.nesting import NEVER_ENDS
from fxframework.kernels.sorting import outermost, places_among
from fxframework.model.schema import ASYNC


class SliceTracks:
    """Finds the track number of each slice; asynchronous slices have separate tracks.

    ``process`` has the small process id by thread id, the last for no thread; the first tracks
    correspond to its elements. The tracks of ``operations`` follow.
    """

    def __init__(self, process: NDArray[Any], operations: KeyedTracks) -> None:
        self._process_of_thread = process
        self._operations = operations
        self._open: list[Columns] = []
        """Asynchronous slices that may enclose later ones, with name and id of the outermost
        slice; sorted by row, each part much shorter than the one before."""

    def of(self, columns: Columns, following: int) -> I64:
        """Return the tracks of slices; later slices do not begin before ``following`` (ns)."""
        thread = columns["thread"].astype(np.int64)
        thread_count = self._process_of_thread.size
        tracks: I64 = np.where(thread < 0, thread_count - 1, thread)
        async_rows = np.flatnonzero(columns["kind"] == ASYNC)
        if not async_rows.size:
            return tracks
        # Parents are looked up by row, and these columns are in order of time.
        async_rows = async_rows[np.argsort(columns["row"][async_rows], kind="stable")]
        names = ("row", "parent", "ts", "dur", "name")
        operations = {name: columns[name][async_rows] for name in names}
        operations["id"] = columns["id"][async_rows].view(np.int64)
        operations["end"] = ends_of(operations["ts"], operations["dur"])
        self._look_up(operations)
        outer = outermost(parents_of(operations["row"], operations["parent"]))
        operations["name"] = operations["name"][outer]
        operations["id"] = operations["id"][outer]
        operation_numbers = self._operations.numbers(
            process_uuids(self._process_of_thread[thread[async_rows]]),
            operations["name"].astype(np.int64),
            operations["id"],
        )
        tracks[async_rows] = thread_count + operation_numbers
        names_to_keep = ("row", "end", "name", "id")
        self._keep({name: operations[name] for name in names_to_keep}, following)
        return tracks

    def _look_up(self, columns: Columns) -> None:
        """Set name and id of slices inside open ones to those of the outermost slice."""
        parents = columns["parent"]
        for part in self._open:
            places = places_among(parents, part["row"])
            inside_open = np.flatnonzero(places >= 0)
            for name in ("name", "id"):
                columns[name][inside_open] = part[name][places[inside_open]]

    def _keep(self, columns: Columns, following: int) -> None:
        """Keep slices that may enclose later ones, which start at ``following`` or later.

        Slices that have ended by then are forgotten.
        """
        self._open.append(columns)
        while True:
            part = self._open.pop()
            is_unfinished = part["end"] >= following
            part = picked(part, is_unfinished)
            if not self._open or self._open[-1]["row"].size > 2 * part["row"].size:
                break
            # Join parts of similar size, so that there are few; filter what was joined again.
            earlier = self._open.pop()
            both = joined([earlier, part], part)
            order = np.argsort(both["row"], kind="stable")
            self._open.append(picked(both, order))
        if part["row"].size:
            self._open.append(part)


def ends_of(start: I64, dur: I64) -> I64:
    """Return the ends of slices; ``NEVER_ENDS`` for a slice that was never closed."""
    longest = NEVER_ENDS - 1 - np.maximum(start, 0)  # so that no end overflows, or is NEVER_ENDS
    ends: I64 = np.where(dur < 0, NEVER_ENDS, start + np.minimum(dur, longest))
    return ends
