"""The pack: encodes columns of events as records, without a Python object per event.

Time stamps are kept exactly, also where records around them in the original file are gone.
"""

from __future__ import annotations

from typing import final

from fx_xray.format import (
    ARGUMENT,
    CUSTOM,
    CUT_REACH_BITS,
    CUT_RECORD_JUMP,
    DONE,
    ENTER_ARG,
    EXIT,
    FLUSH,
    GROW,
    LATEST,
    LOW32,
    MAX_FUNCTION_ID,
    NO_CPU,
    NOTHING,
    SIGN,
    TAIL_EXIT,
    TYPED,
)
from fxframework.kernels.annotations import (
    Array,
    Fallible,
    View,
    flag,
    i32,
    i64,
    u8,
    u16,
    u32,
    void,
)
from fxframework.kernels.buffers import full
from fxframework.kernels.kernel import Kernel

__all__ = ["DROPPED", "BasicPack", "EventColumns", "FdrPack", "ThreadBuffers"]

LOW40 = 0xFFFFFFFFFF
LOW48 = 0xFFFFFFFFFFFF
LOW56 = 0xFFFFFFFFFFFFFF
MAX_BASIC_FUNCTION = 0x7FFFFFFF
"""Basic mode's ids are signed."""
HEADROOM = 160
"""Bytes that a record without payload takes at most, with all that may come before and behind it:
extents, a preamble of 64, NewCPUId, a record of 16, and the end of a buffer."""
NEW_BUFFER, END_OF_BUFFER, NEW_CPU, TSC_WRAP = 0x01, 0x03, 0x05, 0x07
WALL_TIME, CUSTOM_EVENT, CALL_ARGUMENT, EXTENTS = 0x09, 0x0B, 0x0D, 0x0F
TYPED_EVENT, PID = 0x11, 0x13
"""First bytes of metadata records."""

DROPPED = (
    "calls of functions with greater numbers than fit",
    "arguments of no call",
    "typed events",
    "custom events",
    "events larger than a buffer",
    "CPUs of events",
    "CPUs that are not known",
    "CPU numbers above 255",
    "kinds of exits",
    "arguments beyond the size of a buffer",
)
"""Names of the losses of a version, in the order of the counts."""
D_FUNCTION, D_ARGUMENT, D_TYPED, D_CUSTOM, D_LARGE = 0, 1, 2, 3, 4
D_EVENT_CPU, D_NO_CPU, D_CPU, D_TAIL_EXIT, D_MANY = 5, 6, 7, 8, 9


@final
class EventColumns:
    """The events to be packed, as columns; time stamps and values are the bits of uint64."""

    kind: View[u8]
    payloads: View[u8]
    function: View[u32]
    tsc: View[i64]
    value: View[i64]
    cpu: View[u16]
    thread: View[i32]
    size: View[i32]
    count: i64

    def __init__(
        self,
        kind: memoryview,
        function: memoryview,
        tsc: memoryview,
        cpu: memoryview,
        thread: memoryview,
        value: memoryview,
        size: memoryview,
        payloads: memoryview,
    ) -> None:
        self.kind = memoryview(kind)
        self.function = memoryview(function)
        self.tsc = memoryview(tsc)
        self.cpu = memoryview(cpu)
        self.thread = memoryview(thread)
        self.value = memoryview(value)
        self.size = memoryview(size)
        self.payloads = memoryview(payloads)
        self.count = len(self.kind)


@final
class ThreadBuffers:
    """The current buffer of each thread."""

    process: View[i64]
    number: View[i64]
    start: Array[i64]
    room: Array[i64]
    fill: Array[i64]
    base: Array[i64]
    cpu: Array[i64]
    call: Array[i64]
    wall: Array[i64]
    rank: Array[i64]
    skewed: Array[u8]

    def __init__(self, processes: memoryview, numbers: memoryview) -> None:
        threads = len(processes)
        self.process = memoryview(processes)
        self.number = memoryview(numbers)
        self.start = full(threads, "i8")
        """Start of the buffer in the arena."""
        self.room = full(threads, "i8")
        self.fill = full(threads, "i8")
        """Bytes in use; 0 without a buffer."""
        self.base = full(threads, "i8")
        """Time stamp to which deltas refer."""
        self.skewed = full(threads, "u1")
        """Whether llvm-xray uses another one, until a record with an absolute time."""
        self.cpu = full(threads, "i8")
        self.call = full(threads, "i8", NOTHING)
        """Position in the buffer of the call that gets arguments; -1 for none."""
        self.wall = full(threads, "i8")
        """Time stamp from which the wall time is derived; it never decreases."""
        self.rank = full(threads, "i8")
        """Position among the threads with an output buffer; 0 for none."""


class FdrPack(Kernel):
    """Packs events of the flight data recorder.

    The buffers of threads lie in ``arena``, of which ``words`` is the same memory as uint32. Full
    ones go to ``out``; ``places`` has the place of each one's wall time there, ``walls`` the time
    stamp that it is made of. The caller makes room, empties ``out`` and calls ``run()`` again.
    """

    version: i64
    size: i64
    limit: i64
    head: i64
    preamble: i64
    wrap: i64
    buffers: ThreadBuffers
    events: EventColumns
    arena: Array[u8]
    out: Array[u8]
    words: Array[u32]
    places: Array[i64]
    walls: Array[i64]
    counts: Array[i64]
    row: i64
    written: i64
    made: i64
    needed: i64
    thread: i64
    ranks: i64

    def __init__(
        self, *, version: int, size: int, limit: int, head: int, preamble: int, wrap: int
    ) -> None:
        none = full(0, "i8")
        self.version = version
        self.size = size
        self.limit = limit
        self.head = head
        self.preamble = preamble
        self.wrap = wrap
        self.buffers = ThreadBuffers(none, none)
        self.events = EventColumns(
            full(0, "u1"), full(0, "u4"), none, full(0, "u2"), full(0, "i4"), none,
            full(0, "i4"), full(0, "u1"),
        )  # fmt: skip
        self.arena = full(0, "u1")
        self.words = full(0, "u4")
        self.out = full(0, "u1")
        self.places = none
        self.walls = none
        self.counts = full(len(DROPPED), "i8")
        self.row = 0
        self.written = 0
        self.made = 0
        self.needed = 0
        self.thread = 0
        self.ranks = 0

    def step(self) -> Fallible[i64]:
        """Pack ``events`` from ``row`` on. Return why it stops."""
        why = DONE
        while self.row < self.events.count and why == DONE:
            why = self.event()
        return why

    def end_thread(self, thread: int) -> int:
        """Output the buffer of a thread. Return the reason for stopping."""
        fill = self.buffers.fill[thread]
        if fill and not self.end_buffer(thread, fill):
            return FLUSH
        return DONE

    # --- Bytes ---

    def put_metadata(self, at: i64, first: i64, low: i64, high: i64) -> void:
        """Write 16 bytes: ``first``, eight of ``low`` and seven of ``high``."""
        self.arena[at] = first
        index = 0
        while index < 8:
            self.arena[at + 1 + index] = (low >> (8 * index)) & 0xFF
            index += 1
        index = 0
        while index < 7:
            self.arena[at + 9 + index] = (high >> (8 * index)) & 0xFF
            index += 1

    def put_function(self, at: i64, word: i64, delta: i64) -> void:
        """Write the 8 bytes of a function record."""
        if at & 3 == 0:
            self.words[at >> 2] = word
            self.words[(at >> 2) + 1] = delta
            return
        index = 0
        while index < 4:
            self.arena[at + index] = (word >> (8 * index)) & 0xFF
            self.arena[at + 4 + index] = (delta >> (8 * index)) & 0xFF
            index += 1

    def put_cpu(self, at: i64, cpu: i64, tsc: i64) -> void:
        """Write a NewCPUId."""
        self.put_metadata(at, NEW_CPU, cpu | (tsc & LOW48) << 16, (tsc >> 48) & 0xFFFF)

    # --- Buffers ---

    def begin_buffer(self, thread: i64, cpu: i64, tsc: i64) -> void:
        """Begin a buffer; its extents and its wall time are filled in at its end."""
        at = self.buffers.start[thread]
        if self.head:
            self.put_metadata(at, EXTENTS, 0, 0)
            at += 16
        self.put_metadata(at, NEW_BUFFER, self.buffers.number[thread] & LOW32, 0)
        self.put_metadata(at + 16, WALL_TIME, 0, 0)
        at += 32
        if self.version >= 3:
            self.put_metadata(at, PID, self.buffers.process[thread] & LOW32, 0)
            at += 16
        self.put_cpu(at, cpu, tsc)
        self.buffers.fill[thread] = self.head + self.preamble
        self.buffers.base[thread] = tsc
        self.buffers.skewed[thread] = 0
        self.buffers.cpu[thread] = cpu
        self.buffers.call[thread] = NOTHING
        if (tsc ^ SIGN) > (self.buffers.wall[thread] ^ SIGN):
            self.buffers.wall[thread] = tsc

    def end_buffer(self, thread: i64, fill: i64) -> flag:
        """Output the first ``fill`` bytes of a buffer. Return False without room."""
        start = self.buffers.start[thread]
        at = self.written
        nbytes = self.size if self.version < 2 else fill
        if self.made >= len(self.places) or at + nbytes > len(self.out):
            self.needed = nbytes
            return False
        if self.head:
            self.put_metadata(start, EXTENTS, fill - 16, 0)
        index = 0
        while index < fill:
            self.out[at + index] = self.arena[start + index]
            index += 1
        if self.version < 2:
            while index < nbytes:
                self.out[at + index] = 0
                index += 1
            self.out[at + fill] = END_OF_BUFFER
            odd = (nbytes - fill) & 7
            if odd:
                # Readers since LLVM 7 take what follows for records: an event of `odd` bytes
                # leaves as many whole ones as zeros make elsewhere.
                self.out[at + fill + 16] = CUSTOM_EVENT
                self.out[at + fill + 17] = odd
        self.places[self.made] = at + self.head + 16
        self.walls[self.made] = self.buffers.wall[thread]
        if self.buffers.rank[thread] == 0:
            self.ranks += 1
            self.buffers.rank[thread] = self.ranks
        self.made += 1
        self.written = at + nbytes
        self.buffers.fill[thread] = 0
        return True

    def carry_call(self, thread: i64) -> i64:
        """Begin a buffer with the call of an argument. Return the reason for stopping."""
        call = self.buffers.call[thread]
        begin = self.head + self.preamble
        if call <= begin:
            return DONE
        held = self.buffers.fill[thread] - call
        source = self.buffers.start[thread] + call
        word = self.arena[source]
        word |= self.arena[source + 1] << 8
        word |= self.arena[source + 2] << 16
        high = self.arena[source + 3]
        word |= high << 24
        if not self.end_buffer(thread, call):
            return FLUSH
        # The target precedes the source, so copying upwards is safe.
        target = self.buffers.start[thread] + begin
        index = 8
        while index < held:
            self.arena[target + index] = self.arena[source + index]
            index += 1
        self.begin_buffer(thread, self.buffers.cpu[thread], self.buffers.base[thread])
        self.put_function(target, word, 0)
        self.buffers.call[thread] = begin
        self.buffers.fill[thread] = begin + held
        return DONE

    # --- Events ---

    def event(self) -> i64:
        """Pack the event of ``row`` and the calls after it. Return the reason for stopping."""
        row = self.row
        kind = self.events.kind[row]
        thread = self.events.thread[row]
        if self.buffers.fill[thread] and kind <= ENTER_ARG and self.calls(thread):
            return DONE
        nbytes = self.needs(row, kind, thread)
        if nbytes < 0:
            self.row = row + 1
            return DONE
        fill = self.buffers.fill[thread]
        if fill + HEADROOM + nbytes > self.buffers.room[thread]:
            self.thread = thread
            self.needed = fill + HEADROOM + nbytes
            return GROW
        tsc = self.events.tsc[row]
        cpu = self.events.cpu[row]
        absolute = kind >= CUSTOM and self.version < 5
        no_cpu = kind >= CUSTOM and cpu == NO_CPU
        if no_cpu:
            cpu = self.buffers.cpu[thread]
        # A time stamp of the other sign counts as far away.
        base = self.buffers.base[thread]
        near = (tsc < 0) == (base < 0) and tsc >= base and tsc - base <= self.wrap
        near = near and not self.buffers.skewed[thread]
        own = kind == ARGUMENT or absolute
        moved = not own and cpu != self.buffers.cpu[thread]
        wraps = not own and not near
        clocked = moved or wraps
        ends = fill - self.head + nbytes + (16 if clocked else 0) > self.limit
        if fill and (ends or (clocked and self.looks_cut(base, tsc, moved))):
            if kind == ARGUMENT:
                if self.carry_call(thread) == FLUSH:
                    return FLUSH
                if self.version < 2 and self.buffers.fill[thread] + nbytes > self.limit:
                    self.counts[D_MANY] += 1
                    self.row = row + 1
                    return DONE
            elif fill > self.head + self.preamble and not self.end_buffer(thread, fill):
                return FLUSH
        if no_cpu and not absolute and cpu != NO_CPU:
            self.counts[D_NO_CPU] += 1
        fill = self.buffers.fill[thread]
        if fill == 0:
            self.begin_buffer(thread, cpu, tsc)
        elif moved:
            self.put_cpu(self.buffers.start[thread] + fill, cpu, tsc)
            self.buffers.cpu[thread] = cpu
            self.buffers.base[thread] = tsc
            self.buffers.skewed[thread] = 0
            self.buffers.fill[thread] = fill + 16
        elif wraps:
            self.put_metadata(self.buffers.start[thread] + fill, TSC_WRAP, tsc, 0)
            self.buffers.base[thread] = tsc
            self.buffers.skewed[thread] = 0
            self.buffers.fill[thread] = fill + 16
        self.put_event(row, kind, thread, cpu, no_cpu)
        self.buffers.fill[thread] += nbytes
        self.row = row + 1
        return DONE

    def looks_cut(self, base: i64, tsc: i64, moved: flag) -> flag:
        """Return whether a reader takes a record of this time for one that was cut in half.

        A reader does so where the time is far from the one before, its low bits are near it, and
        the second half of the record could be a record itself. The first record of a buffer is
        safe: no time is before it.
        """
        time = tsc ^ SIGN
        before = base ^ SIGN
        apart = time - before if time >= before else before - time
        if 0 <= apart <= CUT_RECORD_JUMP:
            return False
        half = (tsc >> 40) & 0xFFFFFF if moved else (tsc >> 56) & 0xFF
        if half & 1:
            first = half & 0xFF
            sound = (
                first == END_OF_BUFFER
                or first == NEW_CPU
                or first == TSC_WRAP
                or first == CUSTOM_EVENT
                or first == TYPED_EVENT
            )
        else:
            sound = half & 8 == 0 and half >> 4 != 0
        mask = LOW40 if moved else LOW56
        ahead = ((tsc & mask) - (base & mask)) & mask
        return sound and ahead >> CUT_REACH_BITS == 0 and before <= LATEST - ahead

    def needs(self, row: i64, kind: i64, thread: i64) -> i64:
        """Return the bytes of an event; count one that the version cannot hold, and return -1."""
        why = NOTHING
        nbytes = 8
        if kind == ARGUMENT:
            nbytes = 16
            if self.buffers.call[thread] < 0:
                self.counts[D_ARGUMENT] += 1
                return -1
        elif kind >= CUSTOM:
            nbytes = 16 + self.events.size[row]
            if kind == TYPED and self.version < 3:
                why = D_TYPED
            elif self.version < 2 and self.preamble + nbytes > self.limit:
                why = D_LARGE
        elif self.events.function[row] > MAX_FUNCTION_ID:
            why = D_FUNCTION
        if why >= 0:
            self.counts[why] += 1
            self.buffers.call[thread] = NOTHING
            return -1
        return nbytes

    def calls(self, thread: i64) -> i64:
        """Pack calls of one thread, until another record is needed. Return their number."""
        fill = self.buffers.fill[thread]
        at = self.buffers.start[thread] + fill
        if at & 3 or self.buffers.skewed[thread]:
            return 0
        cpu = self.buffers.cpu[thread]
        base = self.buffers.base[thread]
        rest = min(self.head + self.limit, self.buffers.room[thread] - HEADROOM) - fill
        first = self.row
        row = first
        bound = min(self.events.count, row + (rest >> 3))
        index = at >> 2
        while row < bound:
            kind = self.events.kind[row]
            tsc = self.events.tsc[row]
            function = self.events.function[row]
            if (
                kind > ENTER_ARG
                or self.events.thread[row] != thread
                or self.events.cpu[row] != cpu
                or function > MAX_FUNCTION_ID
                or (tsc < 0) != (base < 0)
                or tsc < base
                or tsc - base > self.wrap
            ):
                break
            self.words[index] = function << 4 | kind << 1
            self.words[index + 1] = tsc - base
            index += 2
            base = tsc
            row += 1
        if row > first:
            fill += (row - first) << 3
            self.buffers.fill[thread] = fill
            self.buffers.base[thread] = base
            self.buffers.call[thread] = fill - 8
            self.row = row
        return row - first

    def put_event(self, row: i64, kind: i64, thread: i64, cpu: i64, no_cpu: flag) -> void:
        """Write the record of an event."""
        fill = self.buffers.fill[thread]
        at = self.buffers.start[thread] + fill
        tsc = self.events.tsc[row]
        if kind == ARGUMENT:
            call = self.buffers.start[thread] + self.buffers.call[thread]
            if self.version < 4 and fill == self.buffers.call[thread] + 8:
                # Up to version 3 it is an enter record, followed by its arguments.
                if self.arena[call] & 0x0E == 0x06:
                    self.arena[call] = self.arena[call] & 0xF0
            self.put_metadata(at, CALL_ARGUMENT, self.events.value[row], 0)
        elif kind <= ENTER_ARG:
            word = self.events.function[row] << 4 | kind << 1
            self.put_function(at, word, (tsc - self.buffers.base[thread]) & LOW32)
            self.buffers.base[thread] = tsc
            self.buffers.call[thread] = fill
        else:
            self.put_payload(row, kind, thread, cpu, no_cpu)
            self.buffers.call[thread] = NOTHING

    def put_payload(self, row: i64, kind: i64, thread: i64, cpu: i64, no_cpu: flag) -> void:
        """Write a custom or typed event with its payload."""
        at = self.buffers.start[thread] + self.buffers.fill[thread]
        tsc = self.events.tsc[row]
        low = self.events.size[row]
        high = 0
        if kind == TYPED:
            high = self.events.function[row] & 0xFFFF
        if self.version >= 5:
            low |= ((tsc - self.buffers.base[thread]) & LOW32) << 32
            self.buffers.base[thread] = tsc
        else:
            low |= (tsc & LOW32) << 32
            if kind == CUSTOM and self.version == 4:
                high = cpu
                if no_cpu:
                    self.counts[D_NO_CPU] += 1
            elif not no_cpu:
                self.counts[D_EVENT_CPU] += 1
            high = (tsc >> 32) & LOW32 | high << 32
            if kind == TYPED:
                # llvm-xray reads half of the time as a delta: force a TSCWrap that corrects it.
                self.buffers.skewed[thread] = 1
        self.put_metadata(at, TYPED_EVENT if kind == TYPED else CUSTOM_EVENT, low, high)
        begin = self.events.value[row]
        size = self.events.size[row]
        index = 0
        while index < size:
            self.arena[at + 16 + index] = self.events.payloads[begin + index]
            index += 1


class BasicPack(Kernel):
    """Packs events as records of basic mode into ``out`` (uint32), until it is full."""

    version: i64
    out: Array[u32]
    processes: View[i64]
    numbers: View[i64]
    events: EventColumns
    counts: Array[i64]
    row: i64
    written: i64
    last_thread: i64

    def __init__(self, out: memoryview, *, version: int) -> None:
        none = full(0, "i8")
        self.version = version
        self.out = memoryview(out)
        self.processes = none
        self.numbers = none
        self.events = EventColumns(
            full(0, "u1"), full(0, "u4"), none, full(0, "u2"), full(0, "i4"), none,
            full(0, "i4"), full(0, "u1"),
        )  # fmt: skip
        self.counts = full(len(DROPPED), "i8")
        self.row = 0
        self.written = 0
        self.last_thread = NOTHING

    def step(self) -> Fallible[i64]:
        """Pack ``events`` from ``row`` on. Return why it stops."""
        while self.row < self.events.count:
            if self.written + 8 > len(self.out):
                return FLUSH
            kind = self.events.kind[self.row]
            if kind == ARGUMENT:
                self.argument()
            elif kind <= ENTER_ARG:
                self.call(kind)
            else:
                self.counts[D_CUSTOM if kind == CUSTOM else D_TYPED] += 1
                if self.last_thread == self.events.thread[self.row]:
                    self.last_thread = NOTHING
            self.row += 1
        return DONE

    def argument(self) -> void:
        """Pack an argument of the call before it."""
        row = self.row
        thread = self.events.thread[row]
        if self.last_thread != thread:
            self.counts[D_ARGUMENT] += 1
            return
        value = self.events.value[row]
        at = self.written
        self.out[at] = 1
        self.out[at + 1] = self.events.function[row]
        self.out[at + 2] = self.numbers[thread] & LOW32
        self.out[at + 3] = self.processes[thread] & LOW32 if self.version >= 3 else 0
        self.out[at + 4] = value & LOW32
        self.out[at + 5] = (value >> 32) & LOW32
        self.out[at + 6] = 0
        self.out[at + 7] = 0
        self.written = at + 8

    def call(self, kind: i64) -> void:
        """Pack the entry or the exit of a function."""
        row = self.row
        thread = self.events.thread[row]
        function = self.events.function[row]
        if function > MAX_BASIC_FUNCTION:
            self.counts[D_FUNCTION] += 1
            self.last_thread = NOTHING
            return
        cpu = self.events.cpu[row]
        if cpu == NO_CPU:
            self.counts[D_NO_CPU] += 1
            cpu = 0
        elif cpu > 255:
            self.counts[D_CPU] += 1
        if kind == TAIL_EXIT and self.version < 2:
            self.counts[D_TAIL_EXIT] += 1
            kind = EXIT
        tsc = self.events.tsc[row]
        at = self.written
        self.out[at] = (cpu & 0xFF) << 16 | kind << 24
        self.out[at + 1] = function
        self.out[at + 2] = tsc & LOW32
        self.out[at + 3] = (tsc >> 32) & LOW32
        self.out[at + 4] = self.numbers[thread] & LOW32
        self.out[at + 5] = self.processes[thread] & LOW32 if self.version >= 3 else 0
        self.out[at + 6] = 0
        self.out[at + 7] = 0
        self.last_thread = thread
        self.written = at + 8
