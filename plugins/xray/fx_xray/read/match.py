"""The match: which exit ends which entry, and the rows of `slices`, `instants` and `args`.

What exporters and parts ask of a call is in ``stacks.py``.
"""

from __future__ import annotations

from typing import final

from fx_xray.format import (
    ARGUMENT,
    BACK,
    DATA,
    ENTER,
    ENTER_ARG,
    EVENT_TYPE,
    EXIT,
    LATEST,
    NOTHING,
    SIGN,
    TAIL_EXIT,
    TYPED,
    UNWOUND,
)
from fx_xray.read.scan import wrapped
from fx_xray.read.timeline import EventBuffer
from fx_xray.rules import (
    TIME_BACK,
    TOO_DEEP,
    UNMATCHED_EXIT,
    UNWOUND_CALL,
)
from fxframework.io.words import HIGH_HALF
from fxframework.kernels.annotations import (
    Array,
    Column,
    Fallible,
    flag,
    i32,
    i64,
    inline,
    public,
    status,
    u8,
    u16,
    u32,
    void,
)
from fxframework.kernels.buffers import full
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.maps import CountMap
from fxframework.kernels.notes import Notes
from fxframework.kernels.rows import Rows

try:
    import cython
except ImportError:  # only who compiles needs Cython
    from fxframework.io import plain as cython

__all__ = ["Args", "Instants", "Match", "OpenCalls", "Slices"]

DEEP = 64
"""Calls this deep are counted by function, so that it is known without going down the stack whether
a function is open."""


@final
class OpenCalls(Rows):
    """The open calls of each thread, the innermost first.

    A call has a node: of its own, or, once rows are adopted, the row of `slices` that it is.
    """

    row: Column[i64]
    tsc: Column[i64]
    offset: Column[i64]
    below: Column[i64]
    function: Column[u32]
    top: Array[i64]
    depth: Array[i64]
    shallow: Array[i64]
    deep: CountMap
    free: i64
    adopted: flag

    def __init__(self, threads: int) -> None:
        super().__init__(256)
        self.top = full(threads, "i8", NOTHING)
        self.depth = full(threads, "i8")
        self.shallow = full(threads, "i8", NOTHING)
        self.deep = CountMap()
        self.free = NOTHING
        self.adopted = False

    def adopt(self, slices: Slices) -> None:
        """Take the rows of `slices`, which all have room, as nodes; no call is open yet."""
        self.adopted = True
        self.function = slices.function
        self.tsc = slices.ticks
        self.offset = slices.offset
        self.below = slices.parent

    @inline
    def row_of(self, node: i64) -> i64:
        """Return the row of `slices` of a call."""
        return node if self.adopted else self.row[node]

    def push(self, thread: i64, function: i64, row: i64, tsc: i64, offset: i64) -> status:
        """Open a call. The columns of a row that is adopted are the caller's to fill."""
        top = self.top[thread]
        depth = self.depth[thread]
        node = row
        if not self.adopted:
            node = self.free
            if node >= 0:
                self.free = self.below[node]
            else:
                node = self.add_row()
            self.row[node] = row
            self.function[node] = function
            self.tsc[node] = tsc
            self.offset[node] = offset
            self.below[node] = top
        if depth >= DEEP:
            if depth == DEEP:
                self.shallow[thread] = top
            self.deep.add(HIGH_HALF.put(thread) | function, 1)
        self.top[thread] = node
        self.depth[thread] = depth + 1
        return 0

    def pop(self, thread: i64) -> status:
        """Close the innermost call of a thread; what is known of it stays until the next push."""
        node = self.top[thread]
        depth = self.depth[thread] - 1
        self.top[thread] = self.below[node]
        self.depth[thread] = depth
        if depth >= DEEP:
            function = self.function[node]
            self.deep.add(HIGH_HALF.put(thread) | function, -1)
        if not self.adopted:
            self.below[node] = self.free
            self.free = node
        return 0

    def find(self, thread: i64, function: i64) -> i64:
        """The place of the innermost open call of a function on a thread; -1: there is none."""
        node = self.top[thread]
        if self.depth[thread] > DEEP and self.deep.get(HIGH_HALF.put(thread) | function) <= 0:
            node = self.shallow[thread]
        while node >= 0 and self.function[node] != function:
            node = self.below[node]
        return node

    @public
    def list_offsets(self, out: Array[i64]) -> i64:
        """Put the offsets of all open calls into ``out``; return how many there are."""
        count = 0
        for thread in range(len(self.top)):
            node = self.top[thread]
            while node >= 0:
                out[count] = self.offset[node]
                count += 1
                node = self.below[node]
        return count


@final
class Slices(Rows):
    """Rows of `slices`: what is known when a call is entered."""

    offset: Column[i64]
    ticks: Column[i64]
    parent: Column[i64]
    thread: Column[i32]
    depth: Column[i32]
    function: Column[u32]
    cpu: Column[u16]
    entry: Column[u8]


@final
class Instants(Rows):
    """Rows of `instants`: exits of calls that are not open, and custom and typed events.

    ``function`` is the type of an event.
    """

    offset: Column[i64]
    ticks: Column[i64]
    thread: Column[i32]
    kind: Column[u8]
    function: Column[u32]
    cpu: Column[u16]


@final
class Args(Rows):
    """Rows of `args`; ``name`` is the number of the argument, or DATA or EVENT_TYPE.

    Of DATA, ``value`` and ``size`` are the place and the bytes of the payload.
    """

    offset: Column[i64]
    parent: Column[i64]
    value: Column[i64]
    of_instant: Column[u8]
    name: Column[i32]
    size: Column[i32]

    @inline
    def add(
        self, offset: i64, of_instant: i64, parent: i64, name: i64, value: i64, size: i64
    ) -> void:
        """Add a row."""
        row = self.rows
        self.offset[row] = offset
        self.of_instant[row] = of_instant
        self.parent[row] = parent
        self.name[row] = name
        self.value[row] = value
        self.size[row] = size
        self.rows = row + 1


class Match(Kernel):
    """Makes rows of events. The caller has made room for what ``events`` may make.

    ``lengths`` and ``ends`` say by row of `slices` how many ticks a call took, -1 where it was not
    left, and how it ended; where they are known (``again``) they stay as they are for open calls.
    """

    events: EventBuffer
    notes: Notes
    lengths: Array[i64]
    ends: Array[u8]
    again: flag
    max_depth: i64
    counted: i64
    open: OpenCalls
    slices: Slices
    instants: Instants
    args: Args
    counts: Array[i64]
    far_counts: CountMap
    unmatched: i64
    unwound: i64
    low: i64
    high: i64
    row: i64
    argument: i64
    of_instant: flag

    def __init__(
        self,
        events: EventBuffer,
        notes: Notes,
        lengths: memoryview,
        ends: memoryview,
        *,
        threads: int,
        counted: int,
        max_depth: int,
        again: bool,
    ) -> None:
        self.events = events
        self.notes = notes
        self.lengths = memoryview(lengths)
        self.ends = memoryview(ends)
        self.again = again
        self.max_depth = max_depth
        self.open = OpenCalls(threads)
        self.slices = Slices(0)
        self.instants = Instants(0)
        self.args = Args(0)
        self.counted = counted
        self.counts = full(counted, "i8")
        self.far_counts = CountMap()
        self.unmatched = 0
        self.unwound = 0
        self.low = LATEST
        self.high = SIGN
        self.row = 0
        self.of_instant = False
        self.argument = 0

    def step(self) -> Fallible[i64]:
        """Make the rows of ``events``."""
        index = 0
        while index < self.events.rows:
            kind = self.events.kind[index]
            time = self.events.tsc[index] ^ SIGN
            self.low = min(self.low, time)
            self.high = max(self.high, time)
            if kind & BACK:
                self.notes.add(TIME_BACK, self.events.offset[index], -1, 0)
                kind &= BACK - 1
            if kind == ENTER or kind == ENTER_ARG:
                self.enter(index, kind)
            elif kind == EXIT or kind == TAIL_EXIT:
                self.leave(index, kind)
            elif kind == ARGUMENT:
                self.add_argument(index)
            else:
                self.add_event(index, kind)
            index += 1
        return 0

    def enter(self, index: i64, kind: i64) -> status:
        """A call is entered."""
        thread = self.events.thread[index]
        function = self.events.function[index]
        tsc = self.events.tsc[index]
        offset = self.events.offset[index]
        place = self.slices.rows
        row = self.slices.first + place
        top = self.open.top[thread]
        self.slices.parent[place] = self.open.row_of(top) if top >= 0 else -1
        depth = self.open.depth[thread]
        self.open.push(thread, function, row, tsc, offset)
        if depth > self.max_depth:
            self.notes.add(TOO_DEEP, offset, -1, depth)
            depth = self.max_depth
        self.slices.offset[place] = offset
        self.slices.ticks[place] = tsc
        self.slices.thread[place] = thread
        self.slices.function[place] = function
        self.slices.depth[place] = depth
        self.slices.cpu[place] = self.events.cpu[index]
        self.slices.entry[place] = kind
        self.slices.rows = place + 1
        if not self.again:
            self.lengths[row] = -1
            self.ends[row] = 0
        if function < self.counted:
            self.counts[function] += 1
        else:
            self.far_counts.add(function, 1)
        self.row = row
        self.of_instant = False
        self.argument = 0
        return 0

    def leave(self, index: i64, kind: i64) -> status:
        """A function is left."""
        thread = self.events.thread[index]
        function = self.events.function[index]
        tsc = self.events.tsc[index]
        self.argument = 0
        top = self.open.top[thread]
        if top < 0 or self.open.function[top] != function:
            node = self.open.find(thread, function)
            if node < 0:
                return self.add_exit(index, kind)
            while self.open.top[thread] != node:
                self.notes.add(UNWOUND_CALL, self.open.offset[self.open.top[thread]], -1, 0)
                self.unwound += 1
                self.end(thread, tsc, UNWOUND)
        self.end(thread, tsc, kind)
        return 0

    def end(self, thread: i64, tsc: i64, how: i64) -> status:
        """The innermost call of a thread ends."""
        node = self.open.top[thread]
        self.open.pop(thread)
        row = self.open.row_of(node)
        took = tsc - self.open.tsc[node]
        if not cython.compiled:
            took = wrapped(took)
        self.lengths[row] = max(took, 0)
        self.ends[row] = how
        self.row = row
        self.of_instant = False
        return 0

    def add_exit(self, index: i64, kind: i64) -> status:
        """Add the exit of a call that is not open."""
        function = self.events.function[index]
        self.notes.add(UNMATCHED_EXIT, self.events.offset[index], -1, function)
        self.unmatched += 1
        self.add_instant(index, kind)
        return 0

    def add_instant(self, index: i64, kind: i64) -> void:
        """Add a row to `instants`."""
        place = self.instants.rows
        self.instants.offset[place] = self.events.offset[index]
        self.instants.ticks[place] = self.events.tsc[index]
        self.instants.thread[place] = self.events.thread[index]
        self.instants.kind[place] = kind
        self.instants.function[place] = self.events.function[index]
        self.instants.cpu[place] = self.events.cpu[index]
        self.instants.rows = place + 1
        self.row = self.instants.first + place
        self.of_instant = True

    def add_argument(self, index: i64) -> void:
        """Add an argument of the call before it, or of none."""
        offset = self.events.offset[index]
        value = self.events.value[index]
        if self.events.size[index] < 0:
            self.args.add(offset, 0, -1, 0, value, 0)
        else:
            self.args.add(offset, self.of_instant, self.row, self.argument, value, 0)
            self.argument += 1

    def add_event(self, index: i64, kind: i64) -> void:
        """Add a custom or typed event, with its payload and its type as arguments."""
        row = self.row
        of_instant = self.of_instant
        offset = self.events.offset[index]
        self.add_instant(index, kind)
        self.args.add(offset, 1, self.row, DATA, self.events.value[index], self.events.size[index])
        if kind == TYPED:
            self.args.add(offset, 1, self.row, EVENT_TYPE, self.events.function[index], 0)
        # Arguments that come behind the event belong to the call before it.
        self.row = row
        self.of_instant = of_instant
