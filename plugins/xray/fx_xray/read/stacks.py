"""Stacks: which call each event of a batch is of, how deep it is, and on which stack.

For exporters and parts (``views.py``); the rows of tables are made in ``match.py``.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from fx_xray.format import ARGUMENT, ENTER, ENTER_ARG
from fx_xray.read.match import OpenCalls
from fxframework.kernels.annotations import (
    Array,
    Bytes,
    Column,
    Fallible,
    View,
    flag,
    i32,
    i64,
    status,
    u8,
    u32,
)
from fxframework.kernels.buffers import full, room, view
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import PairMap
from fxframework.kernels.rows import Rows

__all__ = ["NO_STACKS", "CallMatch"]

NO_STACKS = -1


@final
class InnerEnds(Rows):
    """Calls that the exit of another one ends: the place of that exit, the innermost call first."""

    place: Column[i64]
    function: Column[u32]
    stack: Column[i64]
    shown: Column[u8]


@final
class Stacks(Rows):
    """Distinct stacks: the function on top, and the stack below it, -1 for none."""

    function: Column[u32]
    parent: Column[i64]


class CallMatch(Kernel):
    """Matches the events of batches, by thread, in the order of records.

    After ``load`` and ``run`` there are, by place: ``depth`` (calls around the call that an event
    begins or ends, or around the event), ``entered`` (entry time in ticks of the call that an exit
    ends), ``ended`` (1 for such an exit), ``shown`` and ``stack`` (of the call, by its number in
    ``stacks``); and ``inner``. Beyond ``deepest`` calls (0: no limit; NO_STACKS) a stack is that
    below it. An argument is shown if the call is that it belongs to.
    """

    kind: Bytes
    function: View[u32]
    tsc: View[i64]
    thread: View[i32]
    size: View[i32]
    call_marks: Bytes
    other_marks: Bytes
    depth: Array[i64]
    entered: Array[i64]
    stack: Array[i64]
    ended: Array[u8]
    shown: Array[u8]
    shown_call: Array[u8]
    open: OpenCalls
    inner: InnerEnds
    stacks: Stacks
    numbers: PairMap
    deepest: i64
    count: i64
    unmatched: i64
    calls: i64
    others: i64
    all_shown: flag

    def __init__(self, threads: int, deepest: int) -> None:
        self.kind = self.call_marks = self.other_marks = room(0, "u1")
        self.function = room(0, "u4")
        self.tsc = room(0, "i8")
        self.thread = room(0, "i4")
        self.size = room(0, "i4")
        self.depth = room(0, "i8")
        self.entered = room(0, "i8")
        self.stack = room(0, "i8")
        self.ended = room(0, "u1")
        self.shown = room(0, "u1")
        self.shown_call = full(threads, "u1")
        self.open = OpenCalls(threads)
        self.inner = InnerEnds()
        self.stacks = Stacks()
        self.numbers = PairMap(64)
        self.deepest = deepest
        self.count = 0
        self.unmatched = 0
        self.calls = 0
        self.others = 0
        self.all_shown = True

    def load(self, batch: Any, marks: tuple[memoryview, memoryview] | None) -> None:
        """Set the events to match: ``events.Events``, or a ``Batch`` without arguments.

        ``marks`` (uint8) say which of their calls, and which of their other events and of the
        exits without a call, belong to the view; None: all.
        """
        self.count = len(batch.kind)
        self.kind = view(batch.kind, "u1")
        self.function = view(batch.function, "u4")
        self.tsc = view(batch.tsc.view(np.int64), "i8")
        self.thread = view(batch.thread, "i4")
        self.size = view(getattr(batch, "size", batch.thread), "i4")
        self.all_shown = marks is None
        if marks is not None:
            self.call_marks, self.other_marks = (memoryview(each) for each in marks)
        self.depth = room(self.count, "i8")
        self.entered = room(self.count, "i8")
        self.stack = room(self.count, "i8")
        self.ended = room(self.count, "u1")
        self.shown = room(self.count, "u1")
        self.calls = 0
        self.others = 0
        self.inner.renew(64)

    def step(self) -> Fallible[i64]:
        """Match the events."""
        place = 0
        while place < self.count:
            kind = self.kind[place]
            thread = self.thread[place]
            self.entered[place] = 0
            self.ended[place] = 0
            self.stack[place] = -1
            if kind == ENTER or kind == ENTER_ARG:
                self.enter(place, thread)
            elif kind == ARGUMENT:
                self.depth[place] = self.open.depth[thread]
                self.shown[place] = self.shown_call[thread] if self.size[place] >= 0 else 0
            elif kind > ARGUMENT or not self.leave(place, thread):
                self.depth[place] = self.open.depth[thread]
                shown = self.all_shown or self.other_marks[self.others]
                self.shown[place] = shown
                self.others += 1
                if kind < ARGUMENT and shown:
                    self.unmatched += 1
            if kind < ARGUMENT:
                self.shown_call[thread] = self.shown[place]
            place += 1
        return 0

    def enter(self, place: i64, thread: i64) -> status:
        """Begin a call; a node has twice its stack's number, and 1 if it is shown, as its row."""
        function = self.function[place]
        depth = self.open.depth[thread]
        stack = -1
        if self.deepest == NO_STACKS:
            stack = 0
        elif depth:
            stack = self.open.row[self.open.top[thread]] // 2
        if self.deepest == 0 or depth <= self.deepest:
            before = self.stacks.rows
            below = stack
            stack = self.numbers.number(below + 1, function)
            if stack == before:
                self.stacks.add_row()
                self.stacks.function[before] = function
                self.stacks.parent[before] = below
        shown = self.all_shown or self.call_marks[self.calls]
        self.calls += 1
        self.depth[place] = depth
        self.stack[place] = stack
        self.shown[place] = shown
        return self.open.push(thread, function, stack * 2 + shown, self.tsc[place], 0)

    def leave(self, place: i64, thread: i64) -> Fallible[i64]:
        """End the innermost call of the function, and those inside it; 0 where none is open."""
        function = self.function[place]
        call = self.open.find(thread, function)
        if call < 0:
            return 0
        node = self.open.top[thread]
        while node != call:
            row = self.inner.add_row()
            self.inner.place[row] = place
            self.inner.function[row] = self.open.function[node]
            self.inner.stack[row] = self.open.row[node] // 2
            self.inner.shown[row] = self.open.row[node] % 2
            self.open.pop(thread)
            node = self.open.top[thread]
        self.entered[place] = self.open.tsc[call]
        self.stack[place] = self.open.row[call] // 2
        self.shown[place] = self.open.row[call] % 2
        self.ended[place] = 1
        self.open.pop(thread)
        self.depth[place] = self.open.depth[thread]
        return 1
