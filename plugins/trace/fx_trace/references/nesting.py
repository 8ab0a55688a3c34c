"""Nesting: how Perfetto nests slices, and binds flows to them, on the tracks of a trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from fx_trace.format import (
    EVENT_ASYNC_BEGIN,
    EVENT_ASYNC_END,
    EVENT_ASYNC_INSTANT,
    EVENT_DURATION_BEGIN,
    EVENT_DURATION_END,
    EVENT_FLOW_BEGIN,
    EVENT_FLOW_END,
    EVENT_FLOW_STEP,
)
from fx_trace.references import quirks
from fxframework.kernels.annotations import Array, Fallible, View, flag, i64, status, with_gil
from fxframework.kernels.buffers import full, grown, room, view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap
from fxframework.kernels.notes import Notes

__all__ = ["KIND_BITS", "Nesting", "Tracks"]

I64 = NDArray[np.int64]
OPEN = -1
"""The length of a slice that has not ended."""
ANY = -1
"""Ends a slice whatever its key."""
MAX_DEPTH = 512
"""Slices of a track beyond this depth get no place in its nesting."""
KIND_BITS = 4
KIND_MASK = 15
FEW = 64
NONE = -1
"""No loss."""


@final
class Tracks:
    """The open slices of tracks, each of a thread or of asynchronous operations that share a row.

    ``truncated`` counts slices with a length that were passed while one inside them was open. A
    slice knows the one ``below`` it; ``ended`` counts those of a track with a length.
    """

    tops: Array[i64]
    depths: Array[i64]
    ended: Array[i64]
    begins: Array[i64]
    lengths: Array[i64]
    keys: Array[i64]
    below: Array[i64]
    used: i64
    free: i64
    truncated: i64

    def __init__(self, tracks: int) -> None:
        self.tops = full(tracks, "i8", -1)
        self.depths = full(tracks, "i8")
        self.ended = full(tracks, "i8")
        self.begins = room(FEW, "i8")
        self.lengths = room(FEW, "i8")
        self.keys = room(FEW, "i8")
        self.below = room(FEW, "i8")
        self.used = 0
        self.free = -1
        self.truncated = 0

    @with_gil
    def grow(self) -> status:
        """Make room for more slices."""
        size = 2 * self.used
        self.begins = grown(self.begins, size, self.used)
        self.lengths = grown(self.lengths, size, self.used)
        self.keys = grown(self.keys, size, self.used)
        self.below = grown(self.below, size, self.used)
        return 0

    def pop(self, track: i64) -> i64:
        """Remove the innermost slice of a track; return it."""
        one = self.tops[track]
        self.tops[track] = self.below[one]
        self.depths[track] -= 1
        self.ended[track] -= self.lengths[one] != OPEN
        self.below[one] = self.free
        self.free = one
        return one

    def close(self, track: i64, ts: i64, length: i64) -> flag:
        """Close what ends before something of this length begins at ``ts``.

        Return whether that does not partly overlap a slice, which costs it its place.
        """
        if self.ended[track] == 0:
            return True
        inner_is_open = False
        one = self.tops[track]
        while one >= 0:
            below = self.below[one]
            lasts = self.lengths[one]
            ends = self.begins[one] + lasts
            if lasts == OPEN:
                inner_is_open = True
            elif inner_is_open:
                if ts > ends:
                    self.truncated += 1
                    while self.pop(track) != one:
                        pass
                    inner_is_open = False
            elif ends < ts or (ends == ts and (lasts != 0 or length != 0)):
                self.pop(track)  # which need not be this one
            elif length != OPEN and ts < ends < ts + length:
                return False
            one = below
        return True

    def begin(self, track: i64, ts: i64, length: i64, key: i64) -> Fallible[i64]:
        """Add a slice, or one without an end (OPEN); return the loss that costs it its place."""
        if self.tops[track] >= 0 and not self.close(track, ts, length):
            return quirks.OVERLAP
        if self.depths[track] >= MAX_DEPTH:
            return quirks.TOO_DEEP
        one = self.free
        if one >= 0:
            self.free = self.below[one]
        else:
            if self.used == len(self.begins):
                self.grow()
            one = self.used
            self.used += 1
        self.begins[one] = ts
        self.lengths[one] = length
        self.keys[one] = key
        self.below[one] = self.tops[track]
        self.tops[track] = one
        self.depths[track] += 1
        self.ended[track] += length != OPEN
        return NONE

    def end(self, track: i64, ts: i64, key: i64) -> i64:
        """End the innermost open slice, of this key unless that is ANY; return the loss."""
        if self.tops[track] < 0:
            return quirks.END_STRAY
        self.close(track, ts, OPEN)
        one = self.tops[track]
        while one >= 0:
            if self.lengths[one] == OPEN and key in (ANY, self.keys[one]):
                if one == self.tops[track]:
                    self.pop(track)
                else:
                    self.lengths[one] = ts - self.begins[one]
                    self.ended[track] += 1
                return NONE
            one = self.below[one]
        return quirks.END_STRAY


class Nesting(Kernel):
    """Nests events, and binds flows: ``notes`` takes what has no place, by number of its quirk.

    ``order`` (int64) has the indexes of the events by time; ``ts``, ``what``, ``word``, ``offset``
    and ``record`` (int64) are theirs, as in ``EventRows``. ``rows`` has the tracks of asynchronous
    events, in that order; ``tracks`` is the number of all.
    """

    order: View[i64]
    ts: View[i64]
    what: View[i64]
    word: View[i64]
    offset: View[i64]
    record: View[i64]
    rows: View[i64]
    row: i64
    tracks: Tracks
    flows: PairMap
    notes: Notes

    def __init__(
        self, order: I64, events: Mapping[str, NDArray[Any]], rows: I64, tracks: int, notes: Notes
    ) -> None:
        self.order = view(order, "i8")
        self.ts = view(events["ts"], "i8")
        self.what = view(events["what"], "i8")
        self.word = view(events["word"], "i8")
        self.offset = view(events["offset"], "i8")
        self.record = view(events["record"], "i8")
        self.rows = view(rows, "i8")
        self.row = 0
        self.tracks = Tracks(tracks)
        self.flows = PairMap()
        self.notes = notes

    def step(self) -> Fallible[i64]:
        """Take all events."""
        at = 0
        while at < len(self.order):
            event = self.order[at]
            loss = self.take(event, self.what[event] & KIND_MASK, self.what[event] >> KIND_BITS)
            if self.tracks.truncated:
                self.note(event, quirks.TRUNCATED, self.tracks.truncated)
                self.tracks.truncated = 0
            if loss != NONE:
                self.note(event, loss, 1)
            at += 1
        return 0

    def take(self, event: i64, kind: i64, track: i64) -> Fallible[i64]:
        """Give an event its place; return the loss that costs it that."""
        ts = self.ts[event]
        if EVENT_FLOW_BEGIN <= kind <= EVENT_FLOW_END:
            return self.flow(kind, track, self.word[event])
        key = ANY
        if EVENT_ASYNC_BEGIN <= kind <= EVENT_ASYNC_END:
            key = track
            track = self.rows[self.row]
            self.row += 1
        if kind in (EVENT_DURATION_END, EVENT_ASYNC_END):
            return self.tracks.end(track, ts, key)
        length = self.word[event]
        if kind in (EVENT_DURATION_BEGIN, EVENT_ASYNC_BEGIN):
            length = OPEN
        elif kind == EVENT_ASYNC_INSTANT:
            length = 0
        return self.tracks.begin(track, ts, length, key)

    def flow(self, kind: i64, track: i64, number: i64) -> Fallible[i64]:
        """Begin, go on with or end a flow in what came last on a track; return the loss."""
        if self.tracks.tops[track] < 0:
            return quirks.FLOW_OUTSIDE
        begun = self.flows.get(number, 0) > 0
        if kind == EVENT_FLOW_STEP:
            return NONE if begun else quirks.FLOW_STEP_STRAY
        begins = kind == EVENT_FLOW_BEGIN
        if begun == begins:
            return quirks.FLOW_TWICE if begins else quirks.FLOW_END_STRAY
        self.flows.put(number, 0, begins)
        return NONE

    def note(self, event: i64, quirk: i64, times: i64) -> status:
        """Note that an event is lost, or that others are because of it."""
        self.notes.add(quirk, self.offset[event], self.record[event], 0)
        self.notes.totals[quirk] += times - 1
        return 0
