"""Nesting: how Perfetto nests slices, and binds flows to them, on the tracks of a trace."""

from __future__ import annotations

import heapq
from typing import Final

import attrs

__all__ = ["AsyncTracks", "Flows", "Track"]

OPEN: Final = -1
"""The length of a slice that has not ended."""
MAX_DEPTH: Final = 512
"""Slices of a track beyond this depth get no place in its nesting."""

# A slice on a track: when it begins, its length, and what ends it (name and category).
Slice = list[int]


class Track:
    """The open slices of one thread, or of asynchronous operations that share a row."""

    __slots__ = ("ended", "open", "truncated")

    def __init__(self) -> None:
        self.open: list[Slice] = []
        self.ended = 0
        """How many of them have a length."""
        self.truncated = 0
        """Slices with a length that were passed while one inside them was open."""

    def close(self, ts: int, length: int) -> bool:
        """Close what ends before something of this length begins at ``ts``.

        False where that partly overlaps a slice, which costs it its place.
        """
        if not self.ended:
            return True
        slices = self.open
        inner_is_open = False
        for at in range(len(slices) - 1, -1, -1):
            begins, lasts, _ = slices[at]
            if lasts == OPEN:
                inner_is_open = True
                continue
            ends = begins + lasts
            if inner_is_open:
                if ts > ends:
                    self.truncated += 1
                    self.ended -= sum(one[1] != OPEN for one in slices[at:])
                    del slices[at:]
                    inner_is_open = False
                continue
            if ends < ts or (ends == ts and (lasts or length)):
                last = slices.pop()  # which need not be this one
                self.ended -= last[1] != OPEN
            elif length != OPEN and ts < ends < ts + length:
                return False
        return True

    def begin(self, ts: int, length: int, key: int) -> str | None:
        """Add a slice, or one without an end (OPEN); return the quirk that costs it its place."""
        slices = self.open
        if slices and not self.close(ts, length):
            return "overlap"
        if len(slices) >= MAX_DEPTH:
            return "too-deep"
        slices.append([ts, length, key])
        self.ended += length != OPEN
        return None

    def end(self, ts: int, key: int | None) -> bool:
        """End the innermost open slice (of this key, if one is given); False without one."""
        slices = self.open
        if not slices:
            return False
        self.close(ts, OPEN)
        for at in range(len(slices) - 1, -1, -1):
            one = slices[at]
            if one[1] == OPEN and (key is None or one[2] == key):
                one[1] = ts - one[0]
                if at == len(slices) - 1:
                    slices.pop()
                else:
                    self.ended += 1
                return True
        return False


@attrs.define
class _Row:
    """One of the tracks that operations of one name share."""

    cookie: int
    track: Track = attrs.field(factory=Track)
    nested: int = 0
    listed: bool = False
    """Whether it is among the free rows."""


class _Operations:
    """Tracks of the operations of one name: each id has one, which it may inherit."""

    def __init__(self) -> None:
        self._rows: list[_Row] = []
        self._of: dict[int, int] = {}
        self._free: list[int] = []

    def begin(self, cookie: int) -> Track:
        """Return the track of an operation that begins."""
        row = self._rows[self._index(cookie)]
        row.nested += 1
        return row.track

    def end(self, cookie: int) -> Track:
        """Return the track of an operation that ends, whether it began or not."""
        index = self._index(cookie)
        row = self._rows[index]
        row.nested = max(row.nested - 1, 0)
        self._offer(index)
        return row.track

    def instant(self, cookie: int) -> Track:
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
            self._rows.append(_Row(cookie))
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
    """

    def __init__(self) -> None:
        self._names: dict[int, bytes] = {}
        self._operations: dict[bytes, _Operations] = {}

    def of(self, name: bytes, cookie: int) -> _Operations:
        """Return the operations among which one of this name and id is."""
        name = self._names.setdefault(cookie, name)
        found = self._operations.get(name)
        if found is None:
            found = self._operations[name] = _Operations()
        return found


class Flows:
    """Flows under way, by their ids. Each step gives the quirk that costs it its place."""

    def __init__(self) -> None:
        self._begun: set[int] = set()

    def begin(self, track: Track | None, flow: int) -> str | None:
        """Begin a flow in what came last on a track."""
        if track is None or not track.open:
            return "flow-outside"
        if flow in self._begun:
            return "flow-twice"
        self._begun.add(flow)
        return None

    def step(self, track: Track | None, flow: int) -> str | None:
        """Return a step of a flow."""
        if track is None or not track.open:
            return "flow-outside"
        return None if flow in self._begun else "flow-step-stray"

    def end(self, track: Track | None, flow: int) -> str | None:
        """End a flow."""
        if track is None or not track.open:
            return "flow-outside"
        if flow not in self._begun:
            return "flow-end-stray"
        self._begun.discard(flow)
        return None
