"""Nesting: how Perfetto nests slices, and binds flows to them, on the tracks of a trace."""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray

from fx_trace.format import (
    EVENT_ASYNC_BEGIN,
    EVENT_ASYNC_END,
    EVENT_DURATION_BEGIN,
    EVENT_DURATION_END,
    EVENT_FLOW_BEGIN,
    EVENT_FLOW_END,
    EVENT_FLOW_STEP,
)
from fxframework.kernels.annotations import (
    Array,
    Column,
    Fallible,
    View,
    flag,
    i64,
    public,
    status,
    with_gil,
)
from fxframework.kernels.buffers import full, grown, room, view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap
from fxframework.kernels.rows import Rows

__all__ = ["ANY", "KIND_BITS", "LOSSES", "NONE", "OPEN", "LossRows", "Nesting", "Tracks"]

OPEN = -1
"""The length of a slice that has not ended."""
ANY = -1
"""Ends a slice whatever its key."""
MAX_DEPTH = 512
"""Slices of a track beyond this depth get no place in its nesting."""
KIND_BITS = 4
KIND_MASK = 15
FEW = 64
(
    NONE, OVERLAP, TOO_DEEP, END_STRAY, TRUNCATED, FLOW_OUTSIDE, FLOW_TWICE, FLOW_STEP_STRAY,
    FLOW_END_STRAY,
) = range(9)  # fmt: skip
LOSSES = (
    "", "overlap", "too-deep", "end-stray", "truncated", "flow-outside", "flow-twice",
    "flow-step-stray", "flow-end-stray",
)  # fmt: skip
"""The quirk for each number of a loss."""


@final
class Tracks:
    """The open slices of tracks, each of a thread or of asynchronous operations that share a row.

    ``truncated`` counts slices with a length that were passed, in the last call, while one inside
    them was open. A slice knows the one ``below`` it; ``ended`` counts those of a track with a
    length.
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

    def __init__(self) -> None:
        self.tops = full(FEW, "i8", -1)
        self.depths = full(FEW, "i8")
        self.ended = full(FEW, "i8")
        self.begins = room(FEW, "i8")
        self.lengths = room(FEW, "i8")
        self.keys = room(FEW, "i8")
        self.below = room(FEW, "i8")
        self.used = 0
        self.free = -1
        self.truncated = 0

    @public
    @with_gil
    def reserve(self, track: i64) -> status:
        """Make room for a track of this number."""
        size = len(self.tops)
        if track >= size:
            more = 2 * track + 1
            self.tops = grown(self.tops, more, size)
            self.depths = grown(self.depths, more, size)
            self.ended = grown(self.ended, more, size)
            while size < more:
                self.tops[size] = -1
                self.depths[size] = 0
                self.ended[size] = 0
                size += 1
        return 0

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

    @public
    def begin(self, track: i64, ts: i64, length: i64, key: i64) -> Fallible[i64]:
        """Add a slice, or one without an end (OPEN); return the loss that costs it its place."""
        self.truncated = 0
        if self.tops[track] >= 0 and not self.close(track, ts, length):
            return OVERLAP
        if self.depths[track] >= MAX_DEPTH:
            return TOO_DEEP
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

    @public
    def end(self, track: i64, ts: i64, key: i64) -> i64:
        """End the innermost open slice, of this key unless that is ANY; return the loss."""
        self.truncated = 0
        if self.tops[track] < 0:
            return END_STRAY
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
        return END_STRAY


class LossRows(Rows):
    """A row per loss: the index of the event, the number of the loss, and how often it is."""

    event: Column[i64]
    loss: Column[i64]
    times: Column[i64]


class Nesting(Kernel):
    """Nests the events of threads, and binds flows: ``losses`` has what has no place.

    ``order`` (int64) has the indexes of the events by time; ``ts``, ``what`` and ``word`` (int64)
    are theirs: the time; the number of the track above the type of event; the length, or the id of
    a flow. Asynchronous events are stepped over.
    """

    order: View[i64]
    ts: View[i64]
    what: View[i64]
    word: View[i64]
    tracks: Tracks
    flows: PairMap
    losses: LossRows

    def __init__(
        self,
        order: NDArray[np.int64],
        ts: NDArray[np.int64],
        what: NDArray[np.int64],
        word: NDArray[np.int64],
        tracks: Tracks,
    ) -> None:
        self.order = view(order, "i8")
        self.ts = view(ts, "i8")
        self.what = view(what, "i8")
        self.word = view(word, "i8")
        self.tracks = tracks
        self.flows = PairMap()
        self.losses = LossRows()

    def step(self) -> Fallible[i64]:
        """Take all events."""
        at = 0
        while at < len(self.order):
            event = self.order[at]
            kind = self.what[event] & KIND_MASK
            track = self.what[event] >> KIND_BITS
            ts = self.ts[event]
            if not EVENT_ASYNC_BEGIN <= kind <= EVENT_ASYNC_END:
                if EVENT_FLOW_BEGIN <= kind <= EVENT_FLOW_END:
                    loss = self.flow(kind, track, self.word[event])
                else:
                    if kind == EVENT_DURATION_END:
                        loss = self.tracks.end(track, ts, ANY)
                    else:
                        length = OPEN if kind == EVENT_DURATION_BEGIN else self.word[event]
                        loss = self.tracks.begin(track, ts, length, 0)
                    if self.tracks.truncated:
                        self.lose(event, TRUNCATED, self.tracks.truncated)
                if loss != NONE:
                    self.lose(event, loss, 1)
            at += 1
        return 0

    def flow(self, kind: i64, track: i64, number: i64) -> Fallible[i64]:
        """Begin, go on with or end a flow in what came last on a track; return the loss."""
        if self.tracks.tops[track] < 0:
            return FLOW_OUTSIDE
        begun = self.flows.get(number, 0) > 0
        if kind == EVENT_FLOW_BEGIN:
            self.flows.put(number, 0, 1)
            return FLOW_TWICE if begun else NONE
        if kind == EVENT_FLOW_STEP:
            return NONE if begun else FLOW_STEP_STRAY
        if begun:
            self.flows.put(number, 0, 0)
            return NONE
        return FLOW_END_STRAY

    def lose(self, event: i64, loss: i64, times: i64) -> status:
        """Note a loss."""
        if self.losses.rows == self.losses.room:
            self.losses.grow()
        row = self.losses.rows
        self.losses.event[row] = event
        self.losses.loss[row] = loss
        self.losses.times[row] = times
        self.losses.rows = row + 1
        return 0
