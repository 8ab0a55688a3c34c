"""The pack: encodes columns of events as records, without a Python object per event.

Time stamps are kept exactly, also where records around them in the original file are gone.
"""

from __future__ import annotations

from typing import final

from fx_xray.format import (
    ARGUMENT,
    BASIC_ARGUMENT,
    BASIC_CPU,
    BASIC_KIND,
    BASIC_MAX_CPU,
    BASIC_PID_VERSION,
    BASIC_TAIL_EXIT_VERSION,
    CPU_AT,
    CPU_TSC_AT,
    CUSTOM,
    CUT_REACH_BITS,
    CUT_RECORD_JUMP,
    DONE,
    ENTER_ARG,
    EVENT_CPU_VERSION,
    EVENT_DELTA_VERSION,
    EXIT,
    EXTENTS_VERSION,
    FIRST_ARGUMENT,
    FIRST_CUSTOM_EVENT,
    FIRST_END_OF_BUFFER,
    FIRST_EXTENTS,
    FIRST_NEW_BUFFER,
    FIRST_NEW_CPU,
    FIRST_PID,
    FIRST_TSC_WRAP,
    FIRST_TYPED_EVENT,
    FIRST_WALL_TIME,
    FLUSH,
    FUNCTION_BYTES,
    FUNCTION_DELTA_AT,
    FUNCTION_ID,
    FUNCTION_KIND,
    GROW,
    IS_METADATA,
    KIND_2,
    LATEST,
    LOW32,
    MAX_FUNCTION_ID,
    METADATA_BYTES,
    NO_CPU,
    NOTHING,
    PID_VERSION,
    SIGN,
    SIZE_AT,
    TAIL_EXIT,
    TYPED,
    WRAP_TSC_AT,
)
from fxframework.io.words import BYTE_0, BYTE_1, BYTE_2, BYTE_3, HIGH_HALF, Bits
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

__all__ = ["DROPPED", "LEFT_OUT", "BasicPack", "EventColumns", "FdrPack", "ThreadBuffers"]

ONE = 1
BYTE, WORD_BITS = 8, 64
LOW16 = 0xFFFF
CPU_TSC_HIGH = Bits("tsc", WORD_BITS - BYTE * (CPU_TSC_AT - CPU_AT), WORD_BITS - 1)
"""Of a time stamp: its last bits in a NewCPUId, behind the eight bytes after the first."""
CPU_TSC_REST = Bits("tsc", WORD_BITS - BYTE * CPU_TSC_AT, WORD_BITS - 1)
WRAP_TSC_REST = Bits("tsc", WORD_BITS - BYTE * WRAP_TSC_AT, WORD_BITS - 1)
"""Of a time stamp: its bits in the second half of a NewCPUId, and of a TSCWrap."""
WORDS = 4
"""Bytes of a number of the arena's ``words``."""
MAX_BASIC_FUNCTION = 0x7FFFFFFF
"""Basic mode's ids are signed."""
HEADROOM = 160
"""Bytes that a record without payload takes at most, with all that may come before and behind it:
extents, a preamble of 64, NewCPUId, a record of 16, and the end of a buffer."""

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
LEFT_OUT = (*DROPPED[:5], DROPPED[9])
"""Those by which an event is not written; by the others, something of it is changed."""
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
    left_out: Array[u8]
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
        left_out: memoryview,
    ) -> None:
        self.kind = memoryview(kind)
        self.function = memoryview(function)
        self.tsc = memoryview(tsc)
        self.cpu = memoryview(cpu)
        self.thread = memoryview(thread)
        self.value = memoryview(value)
        self.size = memoryview(size)
        self.payloads = memoryview(payloads)
        self.left_out = memoryview(left_out)
        """Why an event was not written: 1 + the number of the loss; 0 if it was."""
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
            full(0, "i4"), full(0, "u1"), full(0, "u1"),
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
            self.arena[at + 1 + index] = BYTE_0.get(low >> BYTE * index)
            index += 1
        index = 0
        while index < 7:
            self.arena[at + 9 + index] = BYTE_0.get(high >> BYTE * index)
            index += 1

    def put_function(self, at: i64, word: i64, delta: i64) -> void:
        """Write the 8 bytes of a function record."""
        index = at // WORDS
        if at == index * WORDS:
            self.words[index] = word
            self.words[index + 1] = delta
            return
        index = 0
        while index < 4:
            self.arena[at + index] = BYTE_0.get(word >> BYTE * index)
            self.arena[at + FUNCTION_DELTA_AT + index] = BYTE_0.get(delta >> BYTE * index)
            index += 1

    def put_cpu(self, at: i64, cpu: i64, tsc: i64) -> void:
        """Write a NewCPUId."""
        below = BYTE * (CPU_TSC_AT - CPU_AT)
        self.put_metadata(at, FIRST_NEW_CPU, cpu | tsc << below, CPU_TSC_HIGH.get(tsc))

    # --- Buffers ---

    def begin_buffer(self, thread: i64, cpu: i64, tsc: i64) -> void:
        """Begin a buffer; its extents and its wall time are filled in at its end."""
        at = self.buffers.start[thread]
        if self.head:
            self.put_metadata(at, FIRST_EXTENTS, 0, 0)
            at += METADATA_BYTES
        self.put_metadata(at, FIRST_NEW_BUFFER, self.buffers.number[thread] & LOW32, 0)
        at += METADATA_BYTES
        self.put_metadata(at, FIRST_WALL_TIME, 0, 0)
        at += METADATA_BYTES
        if self.version >= PID_VERSION:
            self.put_metadata(at, FIRST_PID, self.buffers.process[thread] & LOW32, 0)
            at += METADATA_BYTES
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
        nbytes = self.size if self.version < EXTENTS_VERSION else fill
        if self.made >= len(self.places) or at + nbytes > len(self.out):
            self.needed = nbytes
            return False
        if self.head:
            self.put_metadata(start, FIRST_EXTENTS, fill - METADATA_BYTES, 0)
        index = 0
        while index < fill:
            self.out[at + index] = self.arena[start + index]
            index += 1
        if self.version < EXTENTS_VERSION:
            while index < nbytes:
                self.out[at + index] = 0
                index += 1
            self.out[at + fill] = FIRST_END_OF_BUFFER
            odd = (nbytes - fill) % FUNCTION_BYTES
            if odd:
                # Readers since LLVM 7 take what follows for records: an event of `odd` bytes
                # leaves as many whole ones as zeros make elsewhere.
                self.out[at + fill + METADATA_BYTES] = FIRST_CUSTOM_EVENT
                self.out[at + fill + METADATA_BYTES + SIZE_AT] = odd
        self.places[self.made] = at + self.head + METADATA_BYTES
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
        word = (
            self.arena[source]
            | BYTE_1.put(self.arena[source + 1])
            | BYTE_2.put(self.arena[source + 2])
            | BYTE_3.put(self.arena[source + 3])
        )
        if not self.end_buffer(thread, call):
            return FLUSH
        # The target precedes the source, so copying upwards is safe.
        target = self.buffers.start[thread] + begin
        index = FUNCTION_BYTES
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
        absolute = kind >= CUSTOM and self.version < EVENT_DELTA_VERSION
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
        ends = fill - self.head + nbytes + (METADATA_BYTES if clocked else 0) > self.limit
        if fill and (ends or (clocked and self.looks_cut(base, tsc, moved))):
            if kind == ARGUMENT:
                if self.carry_call(thread) == FLUSH:
                    return FLUSH
                fill = self.buffers.fill[thread]
                if self.version < EXTENTS_VERSION and fill + nbytes > self.limit:
                    self.counts[D_MANY] += 1
                    self.events.left_out[row] = 1 + D_MANY
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
            self.buffers.fill[thread] = fill + METADATA_BYTES
        elif wraps:
            self.put_metadata(self.buffers.start[thread] + fill, FIRST_TSC_WRAP, tsc, 0)
            self.buffers.base[thread] = tsc
            self.buffers.skewed[thread] = 0
            self.buffers.fill[thread] = fill + METADATA_BYTES
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
        # The bits of the time in the first half of the record; the second begins with the rest.
        bits = WORD_BITS - BYTE * (CPU_TSC_AT if moved else WRAP_TSC_AT)
        half = CPU_TSC_REST.get(tsc) if moved else WRAP_TSC_REST.get(tsc)
        if IS_METADATA.get(half):
            first = BYTE_0.get(half)
            sound = (
                first == FIRST_END_OF_BUFFER
                or first == FIRST_NEW_CPU
                or first == FIRST_TSC_WRAP
                or first == FIRST_CUSTOM_EVENT
                or first == FIRST_TYPED_EVENT
            )
        else:
            sound = KIND_2.get(half) == 0 and FUNCTION_ID.get(half) != 0
        mask = (ONE << bits) - 1
        ahead = ((tsc & mask) - (base & mask)) & mask
        return sound and ahead >> CUT_REACH_BITS == 0 and before <= LATEST - ahead

    def needs(self, row: i64, kind: i64, thread: i64) -> i64:
        """Return the bytes of an event; count one that the version cannot hold, and return -1."""
        why = NOTHING
        nbytes = FUNCTION_BYTES
        if kind == ARGUMENT:
            nbytes = METADATA_BYTES
            if self.buffers.call[thread] < 0:
                self.counts[D_ARGUMENT] += 1
                self.events.left_out[row] = 1 + D_ARGUMENT
                return -1
        elif kind >= CUSTOM:
            nbytes = METADATA_BYTES + self.events.size[row]
            if kind == TYPED and self.version < PID_VERSION:
                why = D_TYPED
            elif self.version < EXTENTS_VERSION and self.preamble + nbytes > self.limit:
                why = D_LARGE
        elif self.events.function[row] > MAX_FUNCTION_ID:
            why = D_FUNCTION
        if why >= 0:
            self.counts[why] += 1
            self.events.left_out[row] = 1 + why
            self.buffers.call[thread] = NOTHING
            return -1
        return nbytes

    def calls(self, thread: i64) -> i64:
        """Pack calls of one thread, until another record is needed. Return their number."""
        fill = self.buffers.fill[thread]
        at = self.buffers.start[thread] + fill
        index = at // WORDS
        if at != index * WORDS or self.buffers.skewed[thread]:
            return 0
        cpu = self.buffers.cpu[thread]
        base = self.buffers.base[thread]
        rest = min(self.head + self.limit, self.buffers.room[thread] - HEADROOM) - fill
        first = self.row
        row = first
        bound = min(self.events.count, row + rest // FUNCTION_BYTES)
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
            self.words[index] = FUNCTION_ID.put(function) | FUNCTION_KIND.put(kind)
            self.words[index + 1] = tsc - base
            index += 2
            base = tsc
            row += 1
        if row > first:
            fill += (row - first) * FUNCTION_BYTES
            self.buffers.fill[thread] = fill
            self.buffers.base[thread] = base
            self.buffers.call[thread] = fill - FUNCTION_BYTES
            self.row = row
        return row - first

    def put_event(self, row: i64, kind: i64, thread: i64, cpu: i64, no_cpu: flag) -> void:
        """Write the record of an event."""
        fill = self.buffers.fill[thread]
        at = self.buffers.start[thread] + fill
        tsc = self.events.tsc[row]
        if kind == ARGUMENT:
            call = self.buffers.start[thread] + self.buffers.call[thread]
            first = fill == self.buffers.call[thread] + FUNCTION_BYTES
            if self.version < EVENT_CPU_VERSION and first:
                # Up to version 3 it is an enter record, followed by its arguments.
                if FUNCTION_KIND.get(self.arena[call]) == ENTER_ARG:
                    self.arena[call] ^= FUNCTION_KIND.put(ENTER_ARG)
            self.put_metadata(at, FIRST_ARGUMENT, self.events.value[row], 0)
        elif kind <= ENTER_ARG:
            word = FUNCTION_ID.put(self.events.function[row]) | FUNCTION_KIND.put(kind)
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
            high = self.events.function[row] & LOW16
        if self.version >= EVENT_DELTA_VERSION:
            low |= HIGH_HALF.put((tsc - self.buffers.base[thread]) & LOW32)
            self.buffers.base[thread] = tsc
        else:
            low |= HIGH_HALF.put(tsc & LOW32)
            if kind == CUSTOM and self.version == EVENT_CPU_VERSION:
                high = cpu
                if no_cpu:
                    self.counts[D_NO_CPU] += 1
            elif not no_cpu:
                self.counts[D_EVENT_CPU] += 1
            high = HIGH_HALF.get(tsc) | HIGH_HALF.put(high)
            if kind == TYPED:
                # llvm-xray reads half of the time as a delta: force a TSCWrap that corrects it.
                self.buffers.skewed[thread] = 1
        first = FIRST_TYPED_EVENT if kind == TYPED else FIRST_CUSTOM_EVENT
        self.put_metadata(at, first, low, high)
        begin = self.events.value[row]
        size = self.events.size[row]
        index = 0
        while index < size:
            self.arena[at + METADATA_BYTES + index] = self.events.payloads[begin + index]
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
            full(0, "i4"), full(0, "u1"), full(0, "u1"),
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
                why = D_CUSTOM if kind == CUSTOM else D_TYPED
                self.counts[why] += 1
                self.events.left_out[self.row] = 1 + why
                if self.last_thread == self.events.thread[self.row]:
                    self.last_thread = NOTHING
            self.row += 1
        return DONE

    def process(self, thread: i64) -> i64:
        """Return the number that a record has for the process of a thread."""
        return self.processes[thread] & LOW32 if self.version >= BASIC_PID_VERSION else 0

    def argument(self) -> void:
        """Pack an argument of the call before it."""
        row = self.row
        thread = self.events.thread[row]
        if self.last_thread != thread:
            self.counts[D_ARGUMENT] += 1
            self.events.left_out[row] = 1 + D_ARGUMENT
            return
        value = self.events.value[row]
        at = self.written
        self.out[at] = BASIC_ARGUMENT
        self.out[at + 1] = self.events.function[row]
        self.out[at + 2] = self.numbers[thread] & LOW32
        self.out[at + 3] = self.process(thread)
        self.out[at + 4] = value & LOW32
        self.out[at + 5] = HIGH_HALF.get(value)
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
            self.events.left_out[row] = 1 + D_FUNCTION
            self.last_thread = NOTHING
            return
        cpu = self.events.cpu[row]
        if cpu == NO_CPU:
            self.counts[D_NO_CPU] += 1
            cpu = 0
        elif cpu > BASIC_MAX_CPU:
            self.counts[D_CPU] += 1
        if kind == TAIL_EXIT and self.version < BASIC_TAIL_EXIT_VERSION:
            self.counts[D_TAIL_EXIT] += 1
            kind = EXIT
        tsc = self.events.tsc[row]
        at = self.written
        self.out[at] = BASIC_CPU.put(cpu & BASIC_MAX_CPU) | BASIC_KIND.put(kind)
        self.out[at + 1] = function
        self.out[at + 2] = tsc & LOW32
        self.out[at + 3] = HIGH_HALF.get(tsc)
        self.out[at + 4] = self.numbers[thread] & LOW32
        self.out[at + 5] = self.process(thread)
        self.out[at + 6] = 0
        self.out[at + 7] = 0
        self.last_thread = thread
        self.written = at + 8
