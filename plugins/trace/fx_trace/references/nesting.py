"""Nesting: how Perfetto nests slices, and binds flows to them, on the tracks of a trace."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace.references import quirks
from fx_trace.references.importer import EventRows
from fxframework.kernels.annotations import Array, Column, Fallible, View, flag, i64, status
from fxframework.kernels.buffers import full, view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap
from fxframework.kernels.notes import Notes
from fxframework.kernels.rows import Rows

__all__ = ["Nesting", "Slices", "Tracks"]

I64 = NDArray[np.int64]
OPEN = -1
"""The length of a slice that has not ended."""
ANY = -1
"""Ends a slice whatever its key."""
MAX_DEPTH = 512
"""Slices of a track beyond this depth get no place in its nesting."""
NONE = -1
"""No loss."""


@final
class Slices(Rows):
    """Slices of tracks, each with the one ``below`` it."""

    begin: Column[i64]
    length: Column[i64]
    key: Column[i64]
    below: Column[i64]


@final
class Tracks:
    """The open slices of tracks, each of a thread or of asynchronous operations that share a row.

    ``truncated`` counts slices with a length that were passed while one inside them was open;
    ``ended`` counts those of a track with a length.
    """

    tops: Array[i64]
    depths: Array[i64]
    ended: Array[i64]
    slices: Slices
    free: i64
    truncated: i64

    def __init__(self, tracks: int) -> None:
        self.tops = full(tracks, "i8", -1)
        self.depths = full(tracks, "i8")
        self.ended = full(tracks, "i8")
        self.slices = Slices()
        self.free = -1
        self.truncated = 0

    def pop(self, track: i64) -> i64:
        """Remove the innermost slice of a track; return it."""
        one = self.tops[track]
        self.tops[track] = self.slices.below[one]
        self.depths[track] -= 1
        self.ended[track] -= self.slices.length[one] != OPEN
        self.slices.below[one] = self.free
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
            below = self.slices.below[one]
            lasts = self.slices.length[one]
            ends = self.slices.begin[one] + lasts
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
            self.free = self.slices.below[one]
        else:
            one = self.slices.add_row()
        self.slices.begin[one] = ts
        self.slices.length[one] = length
        self.slices.key[one] = key
        self.slices.below[one] = self.tops[track]
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
            if self.slices.length[one] == OPEN and key in (ANY, self.slices.key[one]):
                if one == self.tops[track]:
                    self.pop(track)
                else:
                    self.slices.length[one] = ts - self.slices.begin[one]
                    self.ended[track] += 1
                return NONE
            one = self.slices.below[one]
        return quirks.END_STRAY


class Nesting(Kernel):
    """Nests events, and binds flows: ``notes`` takes what has no place, by number of its quirk.

    ``order`` (int64) has the indexes of the events by time. ``rows`` has the tracks of asynchronous
    events, in that order; ``tracks`` is the number of all.
    """

    order: View[i64]
    events: EventRows
    rows: View[i64]
    row: i64
    tracks: Tracks
    flows: PairMap
    notes: Notes

    def __init__(self, order: I64, events: EventRows, rows: I64, tracks: int, notes: Notes) -> None:
        self.order = view(order, "i8")
        self.events = events
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
            loss = self.take(event)
            if self.tracks.truncated:
                self.note(event, quirks.TRUNCATED, self.tracks.truncated)
                self.tracks.truncated = 0
            if loss != NONE:
                self.note(event, loss, 1)
            at += 1
        return 0

    def take(self, event: i64) -> Fallible[i64]:
        """Give an event its place; return the loss that costs it that."""
        ts = self.events.ts[event]
        kind = self.events.kind[event]
        track = self.events.track[event]
        if wire.EVENT_FLOW_BEGIN <= kind <= wire.EVENT_FLOW_END:
            return self.flow(kind, track, self.events.word[event])
        key = ANY
        if wire.EVENT_ASYNC_BEGIN <= kind <= wire.EVENT_ASYNC_END:
            key = track
            track = self.rows[self.row]
            self.row += 1
        if kind in (wire.EVENT_DURATION_END, wire.EVENT_ASYNC_END):
            return self.tracks.end(track, ts, key)
        length = self.events.word[event]
        if kind in (wire.EVENT_DURATION_BEGIN, wire.EVENT_ASYNC_BEGIN):
            length = OPEN
        elif kind == wire.EVENT_ASYNC_INSTANT:
            length = 0
        return self.tracks.begin(track, ts, length, key)

    def flow(self, kind: i64, track: i64, number: i64) -> Fallible[i64]:
        """Begin, go on with or end a flow in what came last on a track; return the loss."""
        if self.tracks.tops[track] < 0:
            return quirks.FLOW_OUTSIDE
        begun = self.flows.get(number, 0) > 0
        if kind == wire.EVENT_FLOW_STEP:
            return NONE if begun else quirks.FLOW_STEP_STRAY
        begins = kind == wire.EVENT_FLOW_BEGIN
        if begun == begins:
            return quirks.FLOW_TWICE if begins else quirks.FLOW_END_STRAY
        self.flows.put(number, 0, begins)
        return NONE

    def note(self, event: i64, quirk: i64, times: i64) -> status:
        """Note that an event is lost, or that others are because of it."""
        self.notes.add(quirk, self.events.offset[event], self.events.record[event], 0)
        self.notes.totals[quirk] += times - 1
        return 0
