"""Nesting: how Perfetto nests slices, and binds flows to them, on the tracks of a trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fx_trace import format as wire
from fx_trace.references import quirks
from fx_trace.references.importer import EventRows
from fxframework.io.words import WORD
from fxframework.kernels.annotations import Array, Fallible, View, flag, i64, status
from fxframework.kernels.buffers import full, room, view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap
from fxframework.kernels.notes import Notes

__all__ = ["OPEN", "Nesting"]

OPEN = -1
"""The length of a slice that has not ended."""
MAX_DEPTH = 512
"""Slices of a track beyond this depth get no place in its nesting."""
NOTHING = -1
"""What is below the outermost slice."""


class Nesting(Kernel):
    """Nests events, and binds flows: ``notes`` takes what has no place, by number of its quirk.

    ``order`` (int64) has the indexes of the events by time. A slice is the number of the event
    that began it; its length is the event's ``word``, OPEN also for ends. ``tops`` has the
    innermost slice of each track, and ``below`` the one around each slice; ``ended`` counts those
    of a track with a length.
    """

    order: View[i64]
    events: EventRows
    notes: Notes
    tops: Array[i64]
    depths: Array[i64]
    ended: Array[i64]
    below: Array[i64]
    flows: PairMap

    def __init__(
        self, order: NDArray[np.int64], events: EventRows, tracks: int, notes: Notes
    ) -> None:
        self.order = view(order, "i8")
        self.events = events
        self.notes = notes
        self.tops = full(tracks, "i8", NOTHING)
        self.depths = full(tracks, "i8")
        self.ended = full(tracks, "i8")
        self.below = room(len(order), "i8")
        self.flows = PairMap()

    def step(self) -> Fallible[i64]:
        """Take all events."""
        at = 0
        while at < len(self.order):
            event = self.order[at]
            kind = self.events.kind[event]
            if wire.EVENT_FLOW_BEGIN <= kind <= wire.EVENT_FLOW_END:
                self.flow(event)
            elif kind in (wire.EVENT_DURATION_END, wire.EVENT_ASYNC_END):
                self.end(event)
            else:
                self.begin(event)
            at += 1
        return 0

    def note(self, event: i64, quirk: i64) -> status:
        """Note that an event is lost, or that another is because of it."""
        self.notes.add(quirk, WORD * self.events.at[event], self.events.record[event], 0)
        return 0

    def pop(self, track: i64) -> i64:
        """Remove the innermost slice of a track; return it."""
        top = self.tops[track]
        self.tops[track] = self.below[top]
        self.depths[track] -= 1
        self.ended[track] -= self.events.word[top] != OPEN
        return top

    def close(self, event: i64) -> Fallible[flag]:
        """Close what ends before an event on its track.

        Return whether the event does not partly overlap a slice, which costs it its place.
        """
        track = self.events.track[event]
        ts = self.events.ts[event]
        length = self.events.word[event]
        inner_is_open = False
        one = self.tops[track] if self.ended[track] else NOTHING
        while one != NOTHING:
            below = self.below[one]
            lasts = self.events.word[one]
            ends = self.events.ts[one] + lasts
            if lasts == OPEN:
                inner_is_open = True
            elif inner_is_open:
                if ts > ends:
                    self.note(event, quirks.TRUNCATED)
                    while self.pop(track) != one:
                        pass
                    inner_is_open = False
            elif ends < ts or (ends == ts and (lasts != 0 or length != 0)):
                self.pop(track)  # which need not be this one
            elif length != OPEN and ts < ends < ts + length:
                return False
            one = below
        return True

    def begin(self, event: i64) -> status:
        """Add a slice to its track."""
        track = self.events.track[event]
        if not self.close(event):
            self.note(event, quirks.OVERLAP)
        elif self.depths[track] >= MAX_DEPTH:
            self.note(event, quirks.TOO_DEEP)
        else:
            self.below[event] = self.tops[track]
            self.tops[track] = event
            self.depths[track] += 1
            self.ended[track] += self.events.word[event] != OPEN
        return 0

    def end(self, event: i64) -> status:
        """End the innermost open slice of the same key."""
        self.close(event)
        track = self.events.track[event]
        one = self.tops[track]
        while one != NOTHING and (
            self.events.word[one] != OPEN or self.events.key[one] != self.events.key[event]
        ):
            one = self.below[one]
        if one == NOTHING:
            self.note(event, quirks.END_STRAY)
        elif one == self.tops[track]:
            self.pop(track)
        else:
            self.events.word[one] = self.events.ts[event] - self.events.ts[one]
            self.ended[track] += 1
        return 0

    def flow(self, event: i64) -> status:
        """Begin, go on with or end a flow in what came last on its track."""
        kind = self.events.kind[event]
        number = self.events.word[event]
        begun = self.flows.get(number, 0) > 0
        begins = kind == wire.EVENT_FLOW_BEGIN
        if self.tops[self.events.track[event]] == NOTHING:
            self.note(event, quirks.FLOW_OUTSIDE)
        elif kind == wire.EVENT_FLOW_STEP:
            if not begun:
                self.note(event, quirks.FLOW_STEP_STRAY)
        elif begun == begins:
            self.note(event, quirks.FLOW_TWICE if begins else quirks.FLOW_END_STRAY)
        else:
            self.flows.put(number, 0, begins)
        return 0
