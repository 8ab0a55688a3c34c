"""Slices in stretches: begin and end events of each track, in order of time within each stretch.

A stretch begins no earlier than all slices of the one before have begun. What is open at its end
goes on in the next one, so that the events of a track are those of all slices at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from fxframework.exporters.perfetto.nest import OPEN, Nesting
from fxframework.model.capture import Capture
from fxframework.model.schema import SLICE_KINDS

__all__ = [
    "COLUMNS",
    "ROWS",
    "Columns",
    "SliceTracks",
    "Stretch",
    "columns_of",
    "joined_columns",
    "stretches",
]

I64 = NDArray[np.int64]
Columns = dict[str, NDArray]  # type: ignore[type-arg]
COLUMNS = ("row", "ts", "dur", "thread", "kind", "depth", "parent", "category", "name", "id")
ROWS = 1 << 19
"""Slices of a stretch, where no more of them are open."""
MOST_LATE = 64
"""Levels of slices that begin together and are looked at, innermost first in the file."""
ASYNC = next(number for number, name in SLICE_KINDS.items() if name == "async")


@attrs.frozen(eq=False)
class Stretch:
    """Slices and their events; all but ``columns`` and ``events`` have one length.

    In them those that were open before come first on their track.
    """

    columns: Columns
    """The slices that begin here, in order of their rows."""
    place: I64
    """The place of each slice in ``columns``; -1 for one that was open before."""
    track: I64
    lane: I64
    start: I64
    end: I64
    events: I64
    """The place ``i`` of a slice in the arrays above for its begin, ``~i`` for its end."""
    cut: int
    """Slices that were cut short."""


class SliceTracks:
    """The number of the track of each slice; asynchronous ones have tracks of their own.

    ``process`` has the number of the process of each thread id, and of none; there are as many
    tracks of threads.
    """

    def __init__(self, process: I64) -> None:
        self._process = process
        self._numbers: dict[tuple[int, ...], int] = {}
        self.keys: list[tuple[int, int, int]] = []
        """Process, name and id of each track of asynchronous slices."""
        none = np.zeros(0, np.int64)
        self._open: Columns = dict.fromkeys(("row", "name", "id", "end"), none)
        """Asynchronous slices that may enclose later ones, with name and id of the outermost."""

    def of(self, columns: Columns, limit: int) -> I64:
        """Tracks of slices; no later ones begin before ``limit``."""
        thread = columns["thread"].astype(np.int64)
        size = self._process.size
        tracks: I64 = np.where(thread < 0, size - 1, thread)
        chosen = np.flatnonzero(columns["kind"] == ASYNC)
        if not chosen.size:
            return tracks
        some = {name: column[chosen] for name, column in columns.items()}
        now = {
            "row": some["row"],
            "name": some["name"].astype(np.int64),
            "id": some["id"].view(np.int64),
            "end": _ends(some["ts"], some["dur"]),
        }
        known = self._open["row"].size
        every = {name: np.concatenate((self._open[name], now[name])) for name in now}
        up = _parents(every["row"], np.concatenate((np.full(known, -1), some["parent"])))
        while not np.array_equal(further := up[up], up):
            up = further
        every |= {name: every[name][up] for name in ("name", "id")}
        key = self._process[thread[chosen]], every["name"][known:], every["id"][known:]
        distinct, which = np.unique(np.stack(key, axis=1), axis=0, return_inverse=True)
        numbers = [self._number(each) for each in distinct.tolist()]
        tracks[chosen] = np.array(numbers, np.int64)[which.reshape(-1)]
        on = every["end"] >= limit
        self._open = {name: column[on] for name, column in every.items()}
        return tracks

    def _number(self, key: Sequence[int]) -> int:
        process, name, id = key
        number = self._numbers.setdefault((process, name, id), self._process.size + len(self.keys))
        if number == self._process.size + len(self.keys):
            self.keys.append((process, name, id))
        return number


def columns_of(capture: Capture, table: str, names: Sequence[str]) -> Iterator[Columns]:
    """These columns of the rows of a table, some rows at a time."""
    for batch in capture.batches(table, ROWS):
        yield {name: batch.array(name) for name in names}


def joined_columns(parts: Sequence[Columns], names: Sequence[str]) -> Columns:
    """The columns of parts that follow each other; those of one part are not copied."""
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def stretches(
    capture: Capture, names: Sequence[str], tracks: Callable[[Columns, int], I64]
) -> Iterator[Stretch]:
    """The slices of a capture that begin at time 0 or later, in stretches.

    ``names`` are those of columns beside ``COLUMNS``; ``tracks`` gives the tracks of slices where
    no later ones begin before a time.
    """
    held = _Open()
    for columns, limit in _cut(capture, (*COLUMNS, *names), held):
        track = tracks(columns, limit)
        chosen = columns["ts"] >= 0
        if not chosen.all():
            track = track[chosen]
            columns = {name: column[chosen] for name, column in columns.items()}
        yield held.go_on(columns, track, limit)


class _Open:
    """The slices that are open at the end of a stretch, in the order in which they began."""

    def __init__(self) -> None:
        none = np.zeros(0, np.int64)
        self._columns: Columns = dict.fromkeys(("track", "start", "end", "depth", "lane"), none)
        self.count = 0

    def go_on(self, columns: Columns, track: I64, limit: int) -> Stretch:
        """The stretch of the slices that begin now, up to ``limit``."""
        begin = columns["ts"]
        count = self.count
        both = {
            name: np.concatenate((earlier, now), dtype=np.int64)
            for (name, earlier), now in zip(
                self._columns.items(),
                (
                    track,
                    begin,
                    _ends(begin, columns["dur"]),
                    columns["depth"],
                    np.full(begin.size, -1),
                ),
                strict=True,
            )
        }
        first = np.concatenate((np.arange(count), _first_rows(columns)))
        order = np.lexsort((-both["end"], both["depth"], first, both["start"], both["track"]))
        del first
        for name in both:  # one at a time: there are many slices where many are open
            both[name] = both[name][order]
        nesting = Nesting(
            both["track"], both["start"], both["end"], both["depth"], both["lane"], limit
        )
        nesting.run()
        place = np.maximum(order - count, -1)
        del order
        events = np.asarray(nesting.events)[: nesting.count]
        if count:
            events = events[(events < 0) | (place[np.maximum(events, 0)] >= 0)]
        on = np.flatnonzero(both["end"] >= limit)
        self.count = on.size
        self._columns = {name: column[on] for name, column in both.items()}
        return Stretch(
            columns=columns,
            place=place,
            track=both["track"],
            lane=both["lane"],
            start=both["start"],
            end=both["end"],
            events=events,
            cut=nesting.cut,
        )


def _cut(capture: Capture, names: Sequence[str], held: _Open) -> Iterator[tuple[Columns, int]]:
    """Rows in their order, up to where all that follow begin later, and when these begin.

    A stretch has as many rows as are open at least, so that these are looked at seldom enough.
    """
    earliest = [
        int(each["ts"].min(initial=OPEN)) for each in columns_of(capture, "slices", ("ts",))
    ]
    if not earliest:
        return
    later = np.minimum.accumulate(np.array([OPEN, *earliest[:0:-1]], np.int64))[::-1].tolist()
    waiting: list[Columns] = []
    wanted = ROWS
    for columns, following in zip(columns_of(capture, "slices", names), later, strict=True):
        waiting.append(columns)
        size = sum(each["ts"].size for each in waiting)
        if not size or (size < wanted and following != OPEN):
            continue
        joined = joined_columns(waiting, names)
        waiting.clear()
        times = joined["ts"]
        before = np.maximum.accumulate(times)
        after = np.minimum.accumulate(np.append(times[1:], following)[::-1])[::-1]
        ends = np.flatnonzero(before < after)
        stop = int(ends[-1]) + 1 if ends.size else 0
        if stop:
            yield {name: column[:stop] for name, column in joined.items()}, int(after[stop - 1])
        waiting = [{name: column[stop:] for name, column in joined.items()}]
        wanted = max(ROWS, 2 * (size - stop), held.count)


def _ends(start: I64, dur: I64) -> I64:
    """Ends of slices; ``OPEN`` for one that was never closed."""
    found: I64 = np.where(dur < 0, OPEN, start + np.minimum(np.maximum(dur, 0), OPEN - 1 - start))
    return found


def _parents(rows: I64, parents: I64) -> I64:
    """For each row the place of the slice around it; its own where there is none."""
    own = np.arange(rows.size)
    if not rows.size:
        return own
    if np.array_equal(rows, own):
        return np.where(parents >= 0, parents, own)
    order = np.argsort(rows, kind="stable")
    place = order[np.minimum(np.searchsorted(rows, parents, sorter=order), rows.size - 1)]
    return np.where((parents >= 0) & (rows[place] == parents), place, own)


def _first_rows(columns: Columns) -> I64:
    """For each slice, the least row of it and of those within it that begin with it.

    Complete events may precede the enclosing one in the file, which begins first.
    """
    first: I64 = columns["row"].astype(np.int64)
    parents, start = _parents(first, columns["parent"]), columns["ts"]
    late = np.flatnonzero((start[parents] == start) & (parents > np.arange(first.size)))
    for _ in range(MOST_LATE):
        found = first.copy()
        np.minimum.at(found, parents[late], first[late])
        if np.array_equal(found, first):
            break
        first = found
    return first
