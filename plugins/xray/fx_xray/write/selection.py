"""The selection: which events belong to the rows of the tables that were chosen.

Calls are matched as the tables match them, so that the number of an entry is that of its slice.
"""

from __future__ import annotations

from fx_xray.format import (
    ARGUMENT,
    BACK,
    ENTER,
    ENTER_ARG,
    EXIT,
    TAIL_EXIT,
)
from fx_xray.read.match import OpenCalls
from fx_xray.read.timeline import EventBuffer
from fxframework.kernels.annotations import Array, Fallible, View, i64, status, u8
from fxframework.kernels.buffers import full
from fxframework.kernels.kernel import Kernel

__all__ = ["Selection"]


class Selection(Kernel):
    """Says in ``keep`` which of ``events`` belong to the rows that are marked.

    ``slices`` and ``instants`` have a byte a row, and one more for rows beyond the last mark.
    """

    slices: View[u8]
    instants: View[u8]
    last_slice: i64
    last_instant: i64
    slice: i64
    instant: i64
    open: OpenCalls
    kept_call: Array[u8]
    keep: Array[u8]
    events: EventBuffer
    kept: i64

    def __init__(self, slices: memoryview, instants: memoryview, *, threads: int) -> None:
        self.slices = memoryview(slices)
        self.instants = memoryview(instants)
        self.last_slice = len(self.slices) - 1
        self.last_instant = len(self.instants) - 1
        self.slice = 0
        self.instant = 0
        self.open = OpenCalls(threads)
        self.kept_call = full(threads, "u1")
        """By thread: whether the call belongs to which arguments would."""
        self.events = EventBuffer(0)
        self.keep = full(0, "u1")
        self.kept = 0

    def choose(self, events: EventBuffer) -> memoryview:
        """Return a byte for each event: 1 where it belongs; ``kept`` says how many do."""
        if len(self.keep) < events.rows:
            self.keep = full(events.room, "u1")
        self.events = events
        self.run()
        return self.keep

    def step(self) -> Fallible[i64]:
        """Choose among ``events``."""
        self.kept = 0
        index = 0
        while index < self.events.rows:
            kept = self.belongs(index, self.events.kind[index] & (BACK - 1))
            self.keep[index] = kept
            self.kept += kept
            index += 1
        return 0

    def belongs(self, index: i64, kind: i64) -> status:
        """Return whether an event belongs."""
        thread = self.events.thread[index]
        if kind == ARGUMENT:
            return self.kept_call[thread] if self.events.size[index] >= 0 else 0
        if kind == ENTER or kind == ENTER_ARG:
            kept = self.slices[min(self.slice, self.last_slice)]
            self.open.push(thread, self.events.function[index], self.slice, 0, 0)
            self.slice += 1
            self.kept_call[thread] = kept
            return kept
        if kind == EXIT or kind == TAIL_EXIT:
            kept = self.leave(thread, self.events.function[index])
            self.kept_call[thread] = kept
            return kept
        return self.next_instant()

    def next_instant(self) -> i64:
        """Return whether the next row of `instants` is marked."""
        kept = self.instants[min(self.instant, self.last_instant)]
        self.instant += 1
        return kept

    def leave(self, thread: i64, function: i64) -> status:
        """Return whether the exit of a function belongs."""
        node = self.open.find(thread, function)
        if node < 0:
            return self.next_instant()
        while self.open.top[thread] != node:
            self.open.pop(thread)
        row = self.open.row_of(node)
        self.open.pop(thread)
        return self.slices[min(row, self.last_slice)]
