"""Operations: the tracks that Perfetto gives to asynchronous events, and what all tracks lose."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fx_trace.format import EventType
from fx_trace.references.nesting import KIND_BITS, OPEN, TRUNCATED, Nesting, Tracks

__all__ = ["nested"]

I64 = NDArray[np.int64]
Loss = tuple[int, int, int]
"""The index of an event, the number of the loss, and how often it is."""


def nested(events: Mapping[str, NDArray[Any]], threads: int, names: Sequence[int]) -> list[Loss]:
    """Put events on their tracks by time, those of one time in the order of the file.

    ``events`` are ``EventRows``; threads have the tracks below ``threads``, operations the numbers
    of ``names``, which has the names of their texts. Return what is lost, in that order.
    """
    ts, what, word = (events[name] for name in ("ts", "what", "word"))
    ordered = bool((ts[1:] >= ts[:-1]).all())
    order = np.arange(ts.size) if ordered else np.argsort(ts, kind="stable")
    tracks = Tracks()
    tracks.reserve(threads)
    nesting = Nesting(order, ts, what, word, tracks)
    nesting.run()
    columns = nesting.losses.filled()
    lost: list[Loss] = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    kind = what[order] & (1 << KIND_BITS) - 1
    later = order[(kind >= EventType.ASYNC_BEGIN) & (kind <= EventType.ASYNC_END)]
    if later.size:
        lost += _operations(names, later, ts[later], what[later], word[later])
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        lost.sort(key=lambda one: int(place[one[0]]))
    return lost


def _operations(names: Sequence[int], order: I64, *columns: I64) -> Iterator[Loss]:
    """Put asynchronous events on the tracks of their operations; yield what is lost."""
    tracks = Tracks()
    numbers = itertools.count()
    rows = AsyncTracks(lambda: next(numbers))
    for event, ts, what, word in zip(
        order.tolist(), *(column.tolist() for column in columns), strict=True
    ):
        kind, number = what & (1 << KIND_BITS) - 1, what >> KIND_BITS
        row = rows.of(names[number], word)
        if kind == EventType.ASYNC_END:
            track = row.end(word)
        else:
            track = row.begin(word) if kind == EventType.ASYNC_BEGIN else row.instant(word)
        tracks.reserve(track)
        if kind == EventType.ASYNC_END:
            loss = tracks.end(track, ts, number)
        else:
            length = OPEN if kind == EventType.ASYNC_BEGIN else 0
            loss = tracks.begin(track, ts, length, number)
        if tracks.truncated:
            yield event, TRUNCATED, tracks.truncated
        if loss:
            yield event, loss, 1


@attrs.define
class _Row:
    """One of the tracks that operations of one name share."""

    cookie: int
    track: int
    nested: int = 0
    listed: bool = False
    """Whether it is among the free rows."""


class _Operations:
    """Tracks of the operations of one name: each id has one, which it may inherit."""

    def __init__(self, new_track: Callable[[], int]) -> None:
        self._new_track = new_track
        self._rows: list[_Row] = []
        self._of: dict[int, int] = {}
        self._free: list[int] = []

    def begin(self, cookie: int) -> int:
        """Return the track of an operation that begins."""
        row = self._rows[self._index(cookie)]
        row.nested += 1
        return row.track

    def end(self, cookie: int) -> int:
        """Return the track of an operation that ends, whether it began or not."""
        index = self._index(cookie)
        row = self._rows[index]
        row.nested = max(row.nested - 1, 0)
        self._offer(index)
        return row.track

    def instant(self, cookie: int) -> int:
        """Return the track of a moment of an operation."""
        self.begin(cookie)
        return self.end(cookie)

    def _index(self, cookie: int) -> int:
        index = self._of.get(cookie)
        if index is not None:
            return index
        while self._free:
            index = heapq.heappop(self._free)
            row = self._rows[index]
            row.listed = False
            if not row.nested:
                del self._of[row.cookie]
                row.cookie = cookie
                break
        else:
            index = len(self._rows)
            self._rows.append(_Row(cookie, self._new_track()))
        self._of[cookie] = index
        return index

    def _offer(self, index: int) -> None:
        row = self._rows[index]
        if not row.nested and not row.listed:
            row.listed = True
            heapq.heappush(self._free, index)


class AsyncTracks:
    """Tracks of asynchronous operations, over all processes.

    An id belongs to the name that it was first seen with; only then do names tell apart.
    ``new_track`` returns the number of a new track.
    """

    def __init__(self, new_track: Callable[[], int]) -> None:
        self._new_track = new_track
        self._names: dict[int, int] = {}
        self._operations: dict[int, _Operations] = {}

    def of(self, name: int, cookie: int) -> _Operations:
        """Return the operations among which one of this name and id is."""
        name = self._names.setdefault(cookie, name)
        found = self._operations.get(name)
        if found is None:
            found = self._operations[name] = _Operations(self._new_track)
        return found
