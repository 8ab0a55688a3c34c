"""The timeline: the events of a trace in order of time, out of its sound stretches.

Threads are merged by time; the events of one thread keep the order in which it wrote them.
"""

from __future__ import annotations

from typing import final

from fx_xray.format import (
    ARGUMENT,
    BACK,
    BASIC_BYTES,
    BASIC_CPU_AT,
    BASIC_ID_AT,
    BASIC_KIND_AT,
    BASIC_TSC_AT,
    BASIC_VALUE_AT,
    CALL_ARGUMENT,
    CPU_AT,
    CPU_TSC_AT,
    CUSTOM,
    CUSTOM_EVENT,
    CUT,
    DELTA,
    DELTA_AT,
    ENTER,
    ENTER_ARG,
    EVENT_CPU_AT,
    EVENT_CPU_VERSION,
    EVENT_DELTA_VERSION,
    EVENT_TSC_AT,
    EVENT_TYPE_AT,
    FIRST,
    FIRST_ARGUMENT,
    FIRST_NEW_CPU,
    FUNCTION_BYTES,
    FUNCTION_ID,
    FUNCTION_KIND,
    IS_METADATA,
    LATEST,
    METADATA_BYTES,
    METADATA_KIND,
    NEW_CPU,
    NO_CPU,
    NOTHING,
    SIGN,
    SIZE_AT,
    TSC_WRAP,
    TYPE_AT,
    TYPED,
    TYPED_EVENT,
    VALUE_AT,
    WRAP_TSC_AT,
)
from fx_xray.read.scan import Bytes, wrapped
from fxframework.io.words import BYTE_1, BYTE_2, BYTE_3, BYTE_4, BYTE_5, BYTE_6, BYTE_7
from fxframework.kernels.annotations import (
    Array,
    Column,
    Fallible,
    View,
    flag,
    i32,
    i64,
    inline,
    u8,
    u16,
    u32,
    virtual,
    void,
)
from fxframework.kernels.buffers import full, grown
from fxframework.kernels.kernel import Kernel
from fxframework.kernels.rows import Rows

try:
    import cython
except ImportError:  # only who compiles needs Cython
    from fxframework.io import plain as cython

__all__ = ["BasicTimeline", "EventBuffer", "FdrTimeline", "Stretches"]

FEW = 8
"""Threads up to which the next one is looked for among all of them; more are kept as a heap."""
GO_ON, PAUSE, DONE = 0, 1, 2
"""Of a thread: it goes on; another thread comes first, or there is no more room; it has ended."""
NEARBY = 40
"""Bits of the ticks by which an event with a time of its own may be ahead of its thread."""


@final
class EventBuffer(Rows):
    """Events in order of time, in columns of a fixed room.

    ``tsc`` has the bits of a uint64, ``thread`` the number of the thread, ``value`` the argument or
    the place of the payload, ``size`` the bytes of a payload, -1 for an argument of no call.
    """

    kind: Column[u8]
    function: Column[u32]
    tsc: Column[i64]
    offset: Column[i64]
    value: Column[i64]
    cpu: Column[u16]
    thread: Column[i32]
    size: Column[i32]


@final
class Stretches:
    """Sound stretches in the order of their threads, and in each in the order of writing.

    ``base`` is the biased time of a record that was cut, or of a buffer before its first NewCPUId.
    Those of thread n are from ``first[n]`` to before ``last[n]``.
    """

    start: View[i64]
    stop: View[i64]
    base: View[i64]
    first: View[i64]
    last: View[i64]
    flags: View[u8]

    def __init__(
        self,
        start: memoryview,
        stop: memoryview,
        flags: memoryview,
        base: memoryview,
        first: memoryview,
        last: memoryview,
    ) -> None:
        self.start = memoryview(start)
        self.stop = memoryview(stop)
        self.flags = memoryview(flags)
        self.base = memoryview(base)
        self.first = memoryview(first)
        self.last = memoryview(last)


@final
class Threads:
    """Which thread comes next: by the biased time of its next event, then by its number."""

    head: Array[i64]
    heap: Array[i64]
    used: i64
    bound: i64

    def __init__(self, first: memoryview, last: memoryview) -> None:
        threads = len(first)
        self.head = full(threads, "i8", SIGN)
        self.heap = full(threads, "i8")
        self.used = 0
        self.bound = LATEST
        for thread in range(threads):
            if first[thread] < last[thread]:
                self.heap[self.used] = thread
                self.used += 1

    def choose(self) -> i64:
        """The place in the heap of the next thread; ``bound`` is up to when it comes first."""
        if self.used <= FEW:
            return self.choose_of_few()
        other = self.heap[1]
        if self.used > 2 and self.before(self.heap[2], other):
            other = self.heap[2]
        self.bound = self.head[other]
        if other < self.heap[0] and self.bound > SIGN:
            self.bound -= 1
        return 0

    def choose_of_few(self) -> i64:
        """The same without a heap: a branch on which thread comes first is hard to predict."""
        best = LATEST
        second = LATEST
        place = -1
        other = -1
        at = 0
        while at < self.used:
            head = self.head[self.heap[at]]
            less = head < best or place < 0
            between = not less and (head < second or other < 0)
            second = best if less else (head if between else second)
            other = place if less else (at if between else other)
            best = head if less else best
            place = at if less else place
            at += 1
        if 0 <= other < place and second > SIGN:
            second -= 1
        self.bound = second
        return place

    def before(self, left: i64, right: i64) -> flag:
        """Return whether one thread comes before another."""
        if self.head[left] == self.head[right]:
            return left < right
        return self.head[left] < self.head[right]

    def advance(self) -> void:
        """Put the thread that was chosen where its new time belongs."""
        if self.used > FEW:
            self.sift()

    def sift(self) -> void:
        """Put the first thread of the heap where it belongs."""
        place = 0
        thread = self.heap[0]
        child = 1
        while child < self.used:
            below = self.heap[child]
            if child + 1 < self.used and self.before(self.heap[child + 1], below):
                child += 1
                below = self.heap[child]
            if self.before(thread, below):
                break
            self.heap[place] = below
            place = child
            child = 2 * place + 1
        self.heap[place] = thread

    def drop(self, place: i64) -> void:
        """Take a thread that has no events left out of the heap."""
        self.used -= 1
        used = self.used
        if used > FEW:
            self.heap[0] = self.heap[used]
            self.sift()
            return
        at = place
        while at < used:
            self.heap[at] = self.heap[at + 1]
            at += 1
        if used == FEW:
            # They were a heap so far, and are in order of their numbers from here on.
            at = 1
            while at < used:
                thread = self.heap[at]
                to = at
                while to > 0 and self.heap[to - 1] > thread:
                    self.heap[to] = self.heap[to - 1]
                    to -= 1
                self.heap[to] = thread
                at += 1


class Timeline(Kernel):
    """Base of the timelines: merges threads by time. ``big`` says the order of bytes.

    Arrays have a number for each thread: its next stretch, the next record in this one and where it
    ends; the biased time, the CPU and the function of the record before.
    """

    bytes: Bytes
    data: View[u8]
    stretches: Stretches
    events: EventBuffer
    threads: Threads
    next_of: Array[i64]
    at_of: Array[i64]
    stop_of: Array[i64]
    base_of: Array[i64]
    function_of: Array[i64]
    cpu_of: Array[i32]
    thread: i64

    def __init__(
        self, data: memoryview, stretches: Stretches, events: EventBuffer, *, big: bool
    ) -> None:
        threads = len(stretches.first)
        self.bytes = Bytes(data, big=big)
        self.data = self.bytes.data
        self.stretches = stretches
        self.events = events
        self.threads = Threads(stretches.first, stretches.last)
        self.next_of = grown(stretches.first, threads, threads)
        self.at_of = full(threads, "i8")
        self.stop_of = full(threads, "i8")
        self.base_of = full(threads, "i8", SIGN)
        self.cpu_of = full(threads, "i4", NO_CPU)
        self.function_of = full(threads, "i8", NOTHING)
        self.thread = 0

    def step(self) -> Fallible[i64]:
        """Fill ``events`` again; return how many there are: fewer than fit only at the end."""
        self.events.rows = 0
        while self.events.rows < self.events.room and self.threads.used:
            if 1 < self.threads.used <= FEW:
                self.merge()
                if self.events.rows == self.events.room:
                    break
            place = self.threads.choose()
            self.thread = self.threads.heap[place]
            if self.take() == DONE:
                self.threads.drop(place)
            else:
                self.threads.advance()
        return self.events.rows

    @virtual
    def merge(self) -> void:
        """Take events of few threads in a quick way, where there is one."""

    @virtual
    def take(self) -> i64:
        """Take the events of the thread up to the bound; PAUSE or DONE."""
        return DONE

    def pause(self, head: i64) -> i64:
        """Let other threads come first: the next event is at this biased time."""
        self.threads.head[self.thread] = head
        return PAUSE

    def argument(self, at: i64, value: i64, end: i64) -> i64:
        """Take an argument of the call before it: the record from ``at`` to ``end``."""
        base = self.base_of[self.thread]
        function = self.function_of[self.thread]
        orphan = function < 0
        if orphan and base > self.threads.bound:
            return self.pause(base)
        if self.events.rows == self.events.room:
            # Before any other event, where it belongs to the one before.
            return self.pause(base if orphan else SIGN)
        cpu = self.cpu_of[self.thread]
        self.put(at, ARGUMENT, max(function, 0), base, cpu, value, -1 if orphan else 0)
        self.at_of[self.thread] = end
        return GO_ON

    def put(
        self, at: i64, kind: i64, function: i64, time: i64, cpu: i64, value: i64, size: i64
    ) -> void:
        """Add an event of the thread, of the record at ``at``."""
        count = self.events.rows
        self.events.kind[count] = kind
        self.events.function[count] = function
        self.events.tsc[count] = time ^ SIGN
        self.events.cpu[count] = cpu
        self.events.thread[count] = self.thread
        self.events.offset[count] = at
        self.events.value[count] = value
        self.events.size[count] = size
        self.events.rows = count + 1


class FdrTimeline(Timeline):
    """Events of the flight data recorder. ``data`` is little-endian (see ``normalise``)."""

    version: i64
    most: i64
    latest_of: Array[i64]

    def __init__(
        self,
        data: memoryview,
        stretches: Stretches,
        events: EventBuffer,
        *,
        version: int,
        most: int,
    ) -> None:
        Timeline.__init__(self, data, stretches, events, big=False)
        self.version = version
        self.most = most
        self.latest_of = full(len(stretches.first), "i8", SIGN)

    def merge(self) -> void:
        """Take function records of few threads in order of time, up to a record of another kind.

        Threads take turns so often that a branch on which one is next would be guessed wrong.
        """
        count = self.events.rows
        most = self.events.room
        used = self.threads.used
        while count < most:
            thread = self.threads.heap[0]
            time = self.threads.head[thread]
            place = 1
            while place < used:
                other = self.threads.heap[place]
                head = self.threads.head[other]
                thread = other if head < time else thread
                time = min(head, time)
                place += 1
            at = self.at_of[thread]
            stop = self.stop_of[thread]
            if at >= stop:
                break
            word = self.word(at)
            if IS_METADATA.get(word):
                break
            kind = FUNCTION_KIND.get(word)
            self.events.offset[count] = at
            at += FUNCTION_BYTES
            head = SIGN
            if at < stop:
                following = self.word(at)
                if not IS_METADATA.get(following):
                    head = time + DELTA.get(following)
                    if not cython.compiled and head > LATEST:
                        head = wrapped(head)
                elif kind == ENTER and METADATA_KIND.get(following) == CALL_ARGUMENT:
                    kind = ENTER_ARG
            if self.function_of[thread] < 0 and time < self.latest_of[thread]:
                kind |= BACK
            function = FUNCTION_ID.get(word)
            self.events.tsc[count] = time ^ SIGN
            self.events.value[count] = 0
            self.events.function[count] = function
            self.events.thread[count] = thread
            self.events.size[count] = 0
            self.events.cpu[count] = self.cpu_of[thread]
            self.threads.head[thread] = head
            self.at_of[thread] = at
            self.base_of[thread] = time
            self.function_of[thread] = function
            self.events.kind[count] = kind
            count += 1
        self.events.rows = count

    def take(self) -> i64:
        """Take the events of the thread up to the bound; PAUSE or DONE."""
        thread = self.thread
        state = GO_ON
        while state == GO_ON:
            at = self.at_of[thread]
            if at >= self.stop_of[thread]:
                state = self.next_stretch()
            elif not IS_METADATA.get(self.data[at]):
                state = self.calls(at)
            else:
                state = self.metadata(at)
        return state

    def leave_call(self) -> void:
        """Note that no argument can follow."""
        thread = self.thread
        if self.function_of[thread] >= 0:
            self.latest_of[thread] = self.base_of[thread]
            self.function_of[thread] = NOTHING

    def next_stretch(self) -> i64:
        """Go on with the next stretch of the thread."""
        thread = self.thread
        place = self.next_of[thread]
        if place == self.stretches.last[thread]:
            return DONE
        flags = self.stretches.flags[place]
        at = self.stretches.start[place]
        stop = self.stretches.stop[place]
        self.leave_call()
        if flags & FIRST:
            self.base_of[thread] = self.stretches.base[place]
            self.cpu_of[thread] = NO_CPU
        if flags & CUT:
            self.base_of[thread] = self.stretches.base[place]
            if self.data[at] == FIRST_NEW_CPU:
                self.cpu_of[thread] = self.bytes.number(at + CPU_AT, 2)
            at = stop
        self.at_of[thread] = at
        self.stop_of[thread] = stop
        self.next_of[thread] = place + 1
        return GO_ON

    @inline
    def word(self, at: i64) -> i64:
        """As ``Bytes.word``, in this module, where the compiler can inline it."""
        if not cython.compiled:
            return int.from_bytes(self.data[at : at + 8], "little", signed=True)
        return (
            self.data[at]
            | BYTE_1.put(self.data[at + 1])
            | BYTE_2.put(self.data[at + 2])
            | BYTE_3.put(self.data[at + 3])
            | BYTE_4.put(self.data[at + 4])
            | BYTE_5.put(self.data[at + 5])
            | BYTE_6.put(self.data[at + 6])
            | BYTE_7.put(self.data[at + 7])
        )

    def calls(self, at: i64) -> i64:
        """Take function records, one after another."""
        thread = self.thread
        stop = self.stop_of[thread]
        base = self.base_of[thread]
        function = self.function_of[thread]
        cpu = self.cpu_of[thread]
        bound = self.threads.bound
        count = self.events.rows
        most = self.events.room
        state = GO_ON
        while at < stop:
            word = self.word(at)
            if IS_METADATA.get(word):
                break
            time = base + DELTA.get(word)
            if not cython.compiled and time > LATEST:
                time = wrapped(time)
            if time > bound or count == most:
                self.threads.head[thread] = time
                state = PAUSE
                break
            base = time
            kind = FUNCTION_KIND.get(word)
            self.events.offset[count] = at
            at += FUNCTION_BYTES
            if kind == ENTER and at < stop and self.data[at] == FIRST_ARGUMENT:
                kind = ENTER_ARG
            if function < 0 and time < self.latest_of[thread]:
                kind |= BACK
            function = FUNCTION_ID.get(word)
            self.events.tsc[count] = base ^ SIGN
            self.events.value[count] = 0
            self.events.function[count] = function
            self.events.thread[count] = thread
            self.events.size[count] = 0
            self.events.cpu[count] = cpu
            self.events.kind[count] = kind
            count += 1
        self.events.rows = count
        self.at_of[thread] = at
        self.base_of[thread] = base
        self.function_of[thread] = function
        return state

    def metadata(self, at: i64) -> i64:
        """Take the metadata record at ``at``."""
        thread = self.thread
        kind = METADATA_KIND.get(self.data[at])
        if kind == CALL_ARGUMENT:
            return self.argument(at, self.bytes.number(at + VALUE_AT, 8), at + METADATA_BYTES)
        self.leave_call()
        if kind in (CUSTOM_EVENT, TYPED_EVENT):
            return self.event(at, kind)
        if kind == NEW_CPU:
            self.cpu_of[thread] = self.bytes.number(at + CPU_AT, 2)
            self.base_of[thread] = self.bytes.number(at + CPU_TSC_AT, 8) ^ SIGN
        elif kind == TSC_WRAP:
            self.base_of[thread] = self.bytes.number(at + WRAP_TSC_AT, 8) ^ SIGN
        self.at_of[thread] = at + METADATA_BYTES
        return GO_ON

    def event(self, at: i64, kind: i64) -> i64:
        """Take a custom or typed event."""
        thread = self.thread
        size = self.bytes.number(at + SIZE_AT, 4)
        cpu = NO_CPU
        what = 0
        base = self.base_of[thread]
        if self.version >= EVENT_DELTA_VERSION:
            time = base + self.bytes.signed32(at + DELTA_AT)
            if not cython.compiled:
                time = wrapped(time)
            order = time
            cpu = self.cpu_of[thread]
            if kind == TYPED_EVENT:
                what = self.bytes.number(at + TYPE_AT, 2)
        else:
            time = self.bytes.number(at + EVENT_TSC_AT, 8) ^ SIGN
            # A time of its own, which may be nonsense, keeps its place in the thread.
            order = base
            if time >= base and (time - base) >> NEARBY == 0:
                order = time
            if kind == TYPED_EVENT:
                what = self.bytes.number(at + EVENT_TYPE_AT, 2)
            elif self.version == EVENT_CPU_VERSION:
                cpu = self.bytes.number(at + EVENT_CPU_AT, 2)
        if order > self.threads.bound or self.events.rows == self.events.room:
            return self.pause(order)
        if self.version >= EVENT_DELTA_VERSION:
            self.base_of[thread] = time
        self.at_of[thread] = at + METADATA_BYTES + size
        if self.most and METADATA_BYTES + size > self.most:
            return GO_ON
        kind = CUSTOM if kind == CUSTOM_EVENT else TYPED
        self.put(at, kind, what, time, cpu, at + METADATA_BYTES, size)
        return GO_ON


class BasicTimeline(Timeline):
    """Events of basic mode."""

    def take(self) -> i64:
        """Take the events of the thread up to the bound; PAUSE or DONE."""
        thread = self.thread
        state = GO_ON
        while state == GO_ON:
            at = self.at_of[thread]
            if at >= self.stop_of[thread]:
                state = self.next_stretch()
            elif self.bytes.number(at, 2):
                value = self.bytes.number(at + BASIC_VALUE_AT, 8)
                state = self.argument(at, value, at + BASIC_BYTES)
            else:
                state = self.call(at)
        return state

    def next_stretch(self) -> i64:
        """Go on with the next stretch of the thread."""
        thread = self.thread
        place = self.next_of[thread]
        if place == self.stretches.last[thread]:
            return DONE
        self.at_of[thread] = self.stretches.start[place]
        self.stop_of[thread] = self.stretches.stop[place]
        self.function_of[thread] = NOTHING
        self.cpu_of[thread] = NO_CPU
        self.next_of[thread] = place + 1
        return GO_ON

    def call(self, at: i64) -> i64:
        """Take a function record."""
        thread = self.thread
        time = self.bytes.number(at + BASIC_TSC_AT, 8) ^ SIGN
        if time > self.threads.bound or self.events.rows == self.events.room:
            return self.pause(time)
        kind = self.data[at + BASIC_KIND_AT]
        after = at + BASIC_BYTES
        if kind == ENTER and after < self.stop_of[thread] and self.bytes.number(after, 2):
            kind = ENTER_ARG
        if time < self.base_of[thread]:
            kind |= BACK
        cpu = self.data[at + BASIC_CPU_AT]
        function = self.bytes.number(at + BASIC_ID_AT, 4)
        self.put(at, kind, function, time, cpu, 0, 0)
        self.base_of[thread] = time
        self.cpu_of[thread] = cpu
        self.function_of[thread] = function
        self.at_of[thread] = after
        return GO_ON
